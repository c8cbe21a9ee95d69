"""The search in Chromium: thirty reports find their section; a keyboard is enough."""

import tomllib
from pathlib import Path

import pytest
from chromium import needs_chromium, open_search, visit

pytestmark = needs_chromium
QUERIES = [
    (words, f"chapters/{page}.html#{anchor}")
    for page, answers in tomllib.loads(
        (Path(__file__).parent / "data" / "search_queries.toml").read_text(encoding="utf-8")
    ).items()
    for words, anchor in answers.items()
]
FIELD = "#pst-search-dialog input"
HITS = "#search-hits a"


def search(page, words):
    """Type words and return the addresses of the hits when they are there."""
    page.fill(FIELD, words)
    page.wait_for_function(
        "words => document.getElementById('search-hits').dataset.query === words", arg=words
    )
    return page.eval_on_selector_all(HITS, "links => links.map(link => link.href)")


@pytest.fixture
def dialog(page, address):
    visit(page, address, "03_degenerate_groups")
    open_search(page)
    return page


def test_thirty_reports_find_the_section_that_answers(dialog, address):
    hits = {words: search(dialog, words)[:2] for words, _ in QUERIES}
    assert len(hits) == 30
    assert not {w: hits[w] for w, section in QUERIES if f"{address}{section}" not in hits[w]}


def test_every_symptom_of_the_index_finds_its_question(dialog, address):
    visit(dialog, address, "15_questions")
    symptoms = dialog.eval_on_selector_all(
        "#index tbody tr",
        "rows => rows.map(row => [row.cells[0].innerText, row.querySelector('a').href])",
    )
    assert len(symptoms) > 30
    open_search(dialog)
    assert not [words for words, question in symptoms if question not in search(dialog, words)[:2]]


def test_a_name_of_the_package_leads_to_its_entry(dialog, address):
    hits = search(dialog, "degenerate_probability")
    assert hits[0] == f"{address}chapters/api.html#grpo.degenerate_probability"


def test_the_keyboard_chooses_opens_and_closes(dialog):
    first, second = search(dialog, "clip fraction")[:2]
    focused = "document.activeElement.href"
    dialog.keyboard.press("ArrowDown")
    assert dialog.evaluate(focused) == first
    dialog.keyboard.press("ArrowDown")
    assert dialog.evaluate(focused) == second
    dialog.keyboard.press("ArrowUp")
    dialog.keyboard.press("ArrowUp")
    assert dialog.evaluate("document.activeElement.matches('#pst-search-dialog input')")
    dialog.keyboard.press("Escape")
    dialog.locator("#pst-search-dialog").wait_for(state="hidden")
    open_search(dialog)
    dialog.keyboard.press("ArrowDown")
    dialog.keyboard.press("Enter")
    dialog.wait_for_url(first)
    top = dialog.locator(f"[id='{first.partition('#')[2]}']").bounding_box()["y"]
    assert -1 <= top < 300


def test_enter_in_the_field_opens_the_first_hit_of_the_same_page(dialog):
    (first, *_) = search(dialog, "how many of my groups have zero variance")
    dialog.keyboard.press("Enter")
    dialog.wait_for_url(first)
    dialog.locator("#pst-search-dialog").wait_for(state="hidden")


def test_a_hit_shows_its_sentence_with_the_words_marked(dialog):
    search(dialog, "leave-one-out mean of nobody")
    sentence = dialog.locator("#search-hits .search-sentence").first
    assert sentence.inner_text().strip() == "A leave-one-out mean of nobody is not defined either."
    assert sentence.locator("mark").all_inner_texts() == ["leave-one-out", "mean", "nobody"]


def test_code_and_printed_lines_are_not_found(dialog):
    search(dialog, "correction=1")  # in code only, as a whole
    assert "correction=1" not in dialog.inner_text("#search-hits")
    search(dialog, "unclipped smaller 0.50, binding 0.25")  # printed by a cell
    assert "unclipped smaller" not in dialog.inner_text("#search-hits")


def test_no_hit_is_said(dialog):
    assert search(dialog, "ξξξξ") == []
    assert dialog.inner_text("#search-status") == "Nothing found"


def test_nothing_is_loaded_before_the_search_is_opened(page, address):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    visit(page, address, "03_degenerate_groups")
    assert not any("pagefind" in url for url in requests)
    assert sum("_static/search/" in url for url in requests) == 2  # the script and its style
    page.click("button.search-button-field")
    search(page, "clip fraction")
    assert any("pagefind" in url for url in requests)


def test_a_page_opened_from_a_file_says_what_to_do(chromium, html):
    page = chromium.new_page()
    page.goto((html / "chapters" / "03_degenerate_groups.html").as_uri())
    open_search(page)
    page.fill(FIELD, "clip fraction")
    page.wait_for_selector("#search-status:has-text('make serve')")
    page.close()


def test_sphinx_has_left_no_search_of_its_own(html):
    assert not [
        *html.rglob("searchindex.js"),
        *html.rglob("searchtools.js"),
        *html.rglob("search.html"),
    ]
    index = html / "_static" / "search" / "pagefind"
    assert sum(file.stat().st_size for file in index.rglob("*.*")) < 400e3
