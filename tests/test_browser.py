"""The pages in Chromium: nothing from outside, readable everywhere, and cells that run.

Without Chromium these tests are skipped, unless GRPO_BROWSER=required.
"""

import functools
import http.server
import os
import shutil
import threading

import pytest
import refresh
import site_assets
from book_pages import code_cells, read_all
from playwright.sync_api import sync_playwright
from serve import Handler

PAGES = [path.stem for path in refresh.notebooks()] + ["api", "references"]
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
if not CHROMIUM and os.environ.get("GRPO_BROWSER") != "required":
    pytest.skip(
        "no Chromium here: install it (Debian, Ubuntu: sudo apt install chromium) or name it in "
        "the environment variable CHROMIUM",
        allow_module_level=True,
    )
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# docutils writes the list of references with roles that axe does not accept together.
AXE = """axe.run(
    {include: ['.bd-article'], exclude: ['.citation-list']},
    {preload: false, resultTypes: ['violations']},
)"""
each_page = pytest.mark.parametrize("name", PAGES)
each_chapter = pytest.mark.parametrize("name", read_all())


@pytest.fixture(scope="module")
def address(html):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=html)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, address):
    """Return a new page whose errors and foreign requests fail the test at its end."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    wrong = []
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    own = (address, "blob:", "data:")
    page.on("request", lambda r: None if r.url.startswith(own) else wrong.append(r.url))
    yield page
    context.close()
    assert not wrong


def visit(page, address, name):
    page.goto(f"{address}chapters/{name}.html", wait_until="networkidle")


@each_page
def test_page_is_whole_and_readable(page, address, name):
    visit(page, address, name)
    formulas = page.locator(".bd-article .math").count()
    assert (page.locator(".bd-article mjx-container").count() > 0) == (formulas > 0)
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth)")
    page.add_script_tag(path=site_assets.MODULES / "axe-core" / "axe.min.js")
    for theme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        page.wait_for_timeout(300)  # the theme fades in
        found = page.evaluate(AXE)
        serious = [
            f"{theme}: {violation['id']}: {node['html'][:200]}"
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]
        assert not serious, "\n".join(serious)


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


def test_search_finds_rloo(page, address):
    page.goto(f"{address}search.html?q=RLOO")
    page.click("#search-results li a >> nth=0")
    page.wait_for_url("**/chapters/**")
    assert "RLOO" in page.inner_text(".bd-article")


def test_nothing_is_loaded_for_python_before_the_button_is_pressed(page, address):
    requests = []
    page.on("request", lambda r: requests.append(r.url))
    visit(page, address, "03_degenerate_groups")
    sizes = [len(page.request.get(url).body()) for url in requests if url.startswith(address)]
    assert not any("pyodide" in url or "editor" in url for url in requests)
    assert sum(sizes) < 6e6


def start_python(page):
    page.click("text=Run this page")
    page.wait_for_function(
        "document.querySelector('.live-status').textContent.startsWith('Ready')", timeout=90_000
    )
    wait_until_idle(page)


def wait_until_idle(page):
    page.wait_for_function("!document.querySelector('.live-busy')", timeout=90_000)


def own_output(page, index):
    """Return the printed text of the reader's own run of a live cell."""
    cell = page.locator("div.cell:has(.live-editor)").nth(index)
    return "".join(cell.locator(".live-output pre[data-kind=stdout]").all_text_contents())


@each_chapter
def test_all_cells_run_in_the_page_and_print_what_is_stored(page, address, name):
    visit(page, address, name)
    start_python(page)
    page.click("text=Run all")
    wait_until_idle(page)
    assert page.locator("[data-kind=error]").all_text_contents() == []
    shown = [
        cell
        for cell in code_cells(read_all()[name])
        if "remove-input" not in cell.metadata.get("tags", ())
    ]
    assert page.locator("div.cell:has(.live-editor)").count() == len(shown)
    for index, cell in enumerate(shown):
        stored = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        if "adv_mean" not in stored:  # rounding errors, see nbval_sanitize.cfg
            assert own_output(page, index) == stored, cell.id
        figures = sum("image/svg+xml" in o.get("data", {}) for o in cell.outputs)
        own = page.locator("div.cell:has(.live-editor)").nth(index).locator(".live-output img")
        assert own.count() == figures


def test_a_reader_edits_runs_stops_and_resets(page, address):
    visit(page, address, "03_degenerate_groups")
    start_python(page)
    page.click("text=Run all")
    wait_until_idle(page)
    shown = [
        cell.id
        for cell in code_cells(read_all()["03_degenerate_groups"])
        if "remove-input" not in cell.metadata.get("tags", ())
    ]
    index = shown.index("by-hand")
    cell = page.locator("div.cell:has(.live-editor)").nth(index)
    editor = cell.locator(".cm-content")

    def write(code):
        editor.click()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.insert_text(code)
        page.keyboard.press("Control+Enter")

    write("p = 0.5\nprint(f'{degenerate_probability(p, 4):.4f}')")
    wait_until_idle(page)
    assert own_output(page, index) == "0.1250\n"

    write("1 / 0")
    wait_until_idle(page)
    assert "ZeroDivisionError" in cell.locator("[data-kind=error]").inner_text()

    write("while True:\n    pass")
    page.wait_for_selector("div.cell.live-busy")
    assert page.evaluate("1 + 1") == 2
    page.click("text=Stop")
    page.wait_for_function(
        "document.querySelector('.live-status').textContent.startsWith('Ready')", timeout=90_000
    )
    cell.get_by_role("button", name="Reset").click()
    assert "0.6562" in cell.locator(".cell_output:not(.live-output)").inner_text()
    assert "p, G = 0.9, 4" in editor.inner_text()

    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.classList.contains('cm-content')")


def test_a_book_without_python_says_so_and_stays_complete(chromium, address):
    page = chromium.new_page()
    page.route("**/manifest.json", lambda route: route.fulfill(status=404))
    visit(page, address, "01_setup")
    page.click("text=Run this page")
    page.wait_for_function("document.querySelector('.live-status').textContent.includes('without')")
    assert page.locator(".cell_output").first.is_visible()
    assert page.locator(".live-editor").count() == 0
    page.close()


def test_a_page_opened_from_a_file_says_how_to_serve_it(chromium, html):
    page = chromium.new_page()
    foreign = []
    page.on("request", lambda r: None if r.url.startswith("file:") else foreign.append(r.url))
    page.goto((html / "chapters" / "01_setup.html").as_uri(), wait_until="networkidle")
    assert page.locator("mjx-container").count() > 0
    page.click("text=Run this page")
    assert "make serve" in page.inner_text(".live-status")
    assert not [url for url in foreign if not url.startswith(("data:", "blob:"))]
    page.close()
