"""The pages in Chromium: nothing from outside, whole, and within reach."""

import gzip

import pytest
import refresh
from chromium import needs_chromium, visit

pytestmark = needs_chromium
PAGES = [path.stem for path in refresh.notebooks()] + ["api", "references"]
each_page = pytest.mark.parametrize("name", PAGES)


@each_page
def test_page_is_whole(page, address, name):
    visit(page, address, name)
    formulas = page.locator(".bd-article .math").count()
    assert (page.locator(".bd-article mjx-container").count() > 0) == (formulas > 0)
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth)")


@each_page
def test_page_fits_a_phone(page, address, name):
    page.set_viewport_size({"width": 360, "height": 740})
    visit(page, address, name)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_next_leads_through_the_whole_book_and_previous_back(page, address):
    visit(page, address, PAGES[0])
    for direction, expected in (("right-next", PAGES[1:]), ("left-prev", PAGES[-2::-1])):
        for name in expected:
            page.click(f"a.{direction}")
            page.wait_for_url(f"**/{name}.html")


def test_symptoms_in_the_index_lead_to_their_question(page, address):
    visit(page, address, "15_questions")
    links = page.locator("#index td a")
    assert links.count() > 30
    for i in range(0, links.count(), 4):
        links.nth(i).click()
        anchor = page.url.partition("#")[2]
        heading = page.locator(f"[id='{anchor}'] h2")
        page.wait_for_function(
            "id => Math.abs(document.getElementById(id).getBoundingClientRect().top) < 300",
            arg=anchor,
        )
        assert heading.inner_text().rstrip("#").endswith(links.nth(i).inner_text())


@pytest.mark.parametrize("width", [390, 800])
def test_the_sidebars_open_on_a_narrow_screen(page, address, width):
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, address, PAGES[0])
    page.click(".primary-toggle >> visible=true")
    page.click("#pst-primary-sidebar-modal a:has-text('15 Questions')")
    page.wait_for_url("**/15_questions.html")
    page.click(".secondary-toggle >> visible=true")
    assert page.locator("#pst-secondary-sidebar-modal a").first.is_visible()


def test_the_sidebar_closes_on_a_wide_screen(page, address):
    visit(page, address, PAGES[0])
    sidebar = page.locator("#pst-primary-sidebar a").first
    assert sidebar.is_visible()
    page.click(".primary-toggle >> visible=true")
    sidebar.wait_for(state="hidden")


def test_icons_are_drawn(page, address):
    visit(page, address, PAGES[0])
    assert page.evaluate("document.fonts.check('900 16px \"Font Awesome 6 Free\"')")
    assert page.locator("i.fa-solid:visible").count() > 3


@pytest.mark.parametrize("name", ["03_degenerate_groups", "api"])
def test_a_page_is_light_before_the_button_is_pressed(page, address, name):
    requests = []
    page.on("request", lambda r: requests.append(r.url))
    visit(page, address, name)
    assert not any("pyodide" in url or "editor" in url for url in requests)
    bodies = {url: page.request.get(url).body() for url in requests if url.startswith(address)}
    assert sum(len(gzip.compress(body)) for body in bodies.values()) < 1.5e6
    scripts = [url for url in bodies if ".js" in url and "mathjax" not in url]
    assert scripts
    assert max(len(bodies[url]) for url in scripts) < 500e3
