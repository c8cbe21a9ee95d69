"""Numbers in Chromium: their cards by mouse, keyboard and touch, the way there and back."""

import pytest
import site_assets
from book_pages import read_all
from chromium import needs_chromium, visit
from test_browser_accessible import AXE
from test_browser_live import start_python, wait_until_idle

pytestmark = needs_chromium
CHAPTER = "03_degenerate_groups"
READ = "a.number[data-at='values/0/0/2']"  # 65.6%, printed in a fold
HAND = "a.number[data-at='by-hand/0/0/4']"  # 0.6562
CODE = "a.number[data-at='exercise-2/code/2/1']"  # 0.8
ROW = "a.number[data-at='cost-table/0/4/4']"  # 218.75, in a table
CARD = "#number-card:popover-open"


def test_the_card_by_mouse(page, address):
    visit(page, address, CHAPTER)
    page.hover(HAND)
    card = page.wait_for_selector(CARD)
    assert "all right 0.6561, all wrong 0.0001, sum 0.6562" in card.inner_text()
    assert page.inner_text(f"{CARD} mark") == "0.6562"
    assert "hecked by make test" in card.inner_text()
    assert "all_right + all_wrong" in page.inner_text(f"{CARD} .number-code")
    link, box = page.locator(HAND).bounding_box(), card.bounding_box()
    assert 0 <= box["y"] - link["y"] - link["height"] < 40  # just below
    page.mouse.move(box["x"] + 20, box["y"] + 10, steps=5)
    page.wait_for_timeout(500)
    assert page.locator(CARD).count() == 1  # it stays while the pointer is on it
    page.mouse.move(5, 5)
    page.wait_for_selector(CARD, state="detached")
    page.hover(ROW)
    page.wait_for_selector(CARD)
    assert page.inner_text(f"{CARD} mark") == "218.75"
    assert page.locator(f"{CARD} th").count() == 6
    assert page.locator(f"{CARD} td").count() == 6


def test_the_card_by_keyboard(page, address):
    visit(page, address, CHAPTER)
    before = page.locator(READ)
    before.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(CARD)
    assert before.get_attribute("aria-expanded") == "true"
    described = before.get_attribute("aria-describedby")
    assert "65.6% of the groups" in page.inner_text(f"#{described}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')").startswith("api.html#grpo.")
    page.keyboard.press("Escape")
    page.wait_for_selector(CARD, state="detached")
    assert page.evaluate("s => document.activeElement === document.querySelector(s)", READ)
    assert before.get_attribute("aria-describedby") is None
    assert before.get_attribute("aria-expanded") == "false"


def test_tab_opens_a_card_and_leaves_it(page, address):
    visit(page, address, CHAPTER)
    links = page.locator("a.number")
    links.nth(0).focus()
    page.keyboard.press("Tab")
    seen = set()
    for _ in range(12):
        where = page.evaluate(
            "document.activeElement.closest('#number-card') ? 'card' :"
            " document.activeElement.dataset.at ?? 'other'"
        )
        seen.add(where)
        assert page.locator(CARD).count() == (where != "other")
        page.keyboard.press("Tab")
    assert "card" in seen
    assert len(seen) > 3


def test_the_card_by_touch_fits_a_phone(chromium, address):
    context = chromium.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    page = context.new_page()
    visit(page, address, CHAPTER)
    for selector in (READ, ROW):
        page.tap(selector)
        card = page.wait_for_selector(CARD)
        box = card.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert box["y"] >= 0 and box["y"] + box["height"] <= 800
        assert page.url.endswith(f"{CHAPTER}.html")
        page.keyboard.press("Escape")
        page.wait_for_selector(CARD, state="detached")
    context.close()


@pytest.mark.parametrize("selector", [READ, ROW, CODE])
def test_to_the_cell_and_back(page, address, selector):
    page.emulate_media(reduced_motion="reduce")
    visit(page, address, CHAPTER)
    link = page.locator(selector).first
    link.click()
    page.click(f"{CARD} .number-go")
    page.wait_for_selector(CARD, state="detached")
    cell = link.get_attribute("href").removeprefix("#")
    assert page.url.endswith(f"#{cell}")
    inside = "id => document.getElementById(id).contains(document.activeElement)"
    assert page.evaluate(inside, cell)
    assert page.locator(":focus").is_visible()
    assert 0 <= page.locator(".number-back").bounding_box()["y"] < 900
    page.click(".number-back a")
    assert page.locator(".number-back").count() == 0
    assert link.evaluate("link => document.activeElement === link")
    assert 0 <= link.bounding_box()["y"] < 900
    assert page.locator(CARD).count() == 0


def test_a_fold_around_the_evidence_opens(page, address):
    visit(page, address, CHAPTER)
    assert not page.locator("#out-values-0").is_visible()
    page.click(READ)
    page.click(f"{CARD} .number-go")
    assert page.locator("#out-values-0").is_visible()


def test_every_card_marks_its_number(page, address):
    """The script counts the numbers of a line as the rules do."""
    for name in read_all():
        visit(page, address, name)
        cards = page.evaluate(
            """() => [...document.querySelectorAll("a.number")].map((link) => {
                link.click();
                const card = document.getElementById("number-card");
                const marked = [...card.querySelectorAll("mark, .number-marked")];
                const original = link.querySelector("mjx-container") ? null : link.textContent;
                return [link.dataset.at, original, marked.map((one) => one.textContent)];
            })"""
        )
        for at, text, marked in cards:
            assert len(marked) == len(at.split()), (name, at)
            if text is not None:
                assert all(one.removeprefix("+") in text for one in marked), (name, at, marked)


def test_browsers_without_anchors_place_the_card_by_script(page, address):
    page.add_init_script("CSS.supports = () => false")
    visit(page, address, CHAPTER)
    page.add_style_tag(content=".number-card { position-area: none !important }")
    link = page.locator(HAND)
    link.click()
    box, at = page.locator(CARD).bounding_box(), link.bounding_box()
    assert (
        abs(box["y"] - at["y"] - at["height"]) < 20 or abs(box["y"] + box["height"] - at["y"]) < 20
    )


def test_without_javascript_a_number_leads_to_its_cell(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}chapters/{CHAPTER}.html")
    page.click(READ)
    assert page.url.endswith("#cell-values")
    assert page.locator("#cell-values").bounding_box()["y"] < 720
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_with_an_open_card_is_readable(page, address, scheme):
    page.emulate_media(color_scheme=scheme)
    visit(page, address, CHAPTER)
    page.click(ROW)
    page.wait_for_selector(CARD)
    page.add_script_tag(path=site_assets.MODULES / "axe-core" / "axe.min.js")
    found = [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in page.evaluate(AXE, ".bd-article")["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert not found


def test_cards_ask_for_nothing(page, address):
    visit(page, address, CHAPTER)
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.click(HAND)
    page.wait_for_selector(CARD)
    page.wait_for_timeout(300)
    assert requests == []


def test_a_number_that_a_reader_moved_is_marked(page, address):
    visit(page, address, CHAPTER)
    start_python(page)
    index = page.locator("div.cell:has(.live-editor)").evaluate_all(
        "cells => cells.findIndex((cell) => cell.id === 'cell-by-hand')"
    )
    cell = page.locator("div.cell:has(.live-editor)").nth(index)
    original = cell.locator(".cm-content").inner_text()

    def run(code):
        cell.locator(".cm-content").click()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.insert_text(code)
        page.keyboard.press("Control+Enter")
        wait_until_idle(page)

    stale = page.locator("a.number-stale")
    run(original)
    assert stale.count() == 0
    run(f"p = 0.5\n{original}")
    assert {"0.6561", "0.0001", "0.6562"} <= set(stale.all_text_contents())
    page.click(HAND)
    text = page.inner_text(f"{CARD} .number-then")
    assert text == "No longer from this page's values. In the book: 0.6562. In your run: 0.1250."
    page.keyboard.press("Escape")
    run("print('no number here')")
    page.click(HAND)
    assert "Your run has no number there" in page.inner_text(CARD)
    page.keyboard.press("Escape")
    run(f"p = 0.9\nprint('first')\n{original}")
    assert page.locator(f"{HAND}.number-stale").count() == 0  # the very line is still printed
    run("1 / 0")
    assert page.locator(f"{HAND}.number-stale").count() == 1
    cell.get_by_role("button", name="Reset").click()
    assert stale.count() == 0
