"""What one reads is prose, figures and tables; the evidence lies below them, in one kind of fold.

A chapter on the list TO_DO of `book_pages.py` is not yet held to it.
"""

import re
import tomllib

import pytest
from book_pages import TO_DO, code_cells, read_all
from bs4 import BeautifulSoup
from chromium import needs_chromium, visit
from refresh import CHAPTERS

DONE = [name for name in read_all() if name not in TO_DO]
OPEN_RAW_BLOCKS = 3
SCREENS = 10.5
COLUMNS = 72
each_done = pytest.mark.parametrize("name", DONE)
SUMMARY = re.compile(r"\w.+ · [1-9]\d* lines?(, [1-9]\d* lines? of output)?")


@pytest.fixture(scope="module")
def article(html):
    """Return a function that reads the article of a page of the built book."""

    def read(name):
        text = (html / "chapters" / f"{name}.html").read_text(encoding="utf-8")
        return BeautifulSoup(text, "html.parser").find(class_="bd-article")

    return read


def test_the_list_of_chapters_to_do_is_right():
    assert set(TO_DO) <= set(read_all())
    settings = tomllib.loads((CHAPTERS / "ruff.toml").read_text(encoding="utf-8"))
    assert settings.get("format", {}).get("exclude", []) == [f"{name}.ipynb" for name in TO_DO]


@each_done
def test_every_fold_says_what_it_holds(article, name):
    page = article(name)
    for details in page.find_all("details"):
        (kind,) = details["class"]
        assert kind in ("evidence", "solution")
        summary = details.find("summary").get_text()
        assert summary == "Solution" if kind == "solution" else SUMMARY.fullmatch(summary)
        assert details.select(".cell .cell_input pre")
        if kind == "evidence":
            assert not details.select("figure, table"), "a figure or table inside a fold"
    assert "Show code cell" not in page.get_text()


@each_done
def test_a_fold_stands_below_what_it_produced(article, name):
    page = article(name)
    for fold in page.select("details.evidence"):
        before = fold.find_previous_sibling()
        assert before["class"][:1] == ["results"], "a fold without its figure or table"
    assert not page.select("details + details"), "two folds in a row"
    for fold in page.select("details.solution"):
        assert "cell" in fold.find_previous_sibling()["class"]


@each_done
def test_every_code_cell_is_on_the_page_once_and_in_its_place(article, name):
    page = article(name)
    cells = {
        f"cell-{cell.id}": i
        for i, cell in enumerate(read_all()[name].cells)
        if cell.cell_type == "code"
    }
    order = {cell["id"]: int(cell["data-order"]) for cell in page.select("div.cell")}
    assert len(page.select("div.cell")) == len(order)
    assert order == cells
    moved = {cell["id"] for cell in page.select("details.evidence .cell")}
    for group in (
        [cell for cell in order if cell not in moved],
        *(
            [cell["id"] for cell in fold.select(".cell")]
            for fold in page.select("details.evidence")
        ),
    ):
        assert group == sorted(group, key=cells.get)


@each_done
def test_few_raw_blocks_stand_open(article, name):
    found = open_raw_blocks(article(name))
    assert len(found) <= (0 if name == "00_introduction" else OPEN_RAW_BLOCKS), found


def open_raw_blocks(page):
    """Return the printed blocks outside folds, but not what an exercise says before its answer."""
    return [
        block.get_text()
        for block in page.select(".cell_output .output.stream, .cell_output .text_plain")
        if not block.find_parent("details") and not block.get_text().startswith("Not answered yet")
    ]


@each_done
def test_code_is_narrow(name):
    for cell in code_cells(read_all()[name]):
        for line in cell.source.splitlines():
            assert len(line) <= COLUMNS, f"{cell.id}: {line}"


@each_done
def test_values_of_a_parameter_are_set_in_one_cell(name):
    """A parameter with a form, `p = 0.9  # @param ...`, is assigned nowhere else."""
    cells = code_cells(read_all()[name])
    for cell in cells:
        for parameter in re.findall(r"^(\w+) = .+# @param ", cell.source, re.M):
            again = re.compile(
                rf"^\s*(?:\w+, )*{parameter}(?:, \w+)* =|\bfor [^:\n]*\b{parameter}\b[^:\n]* in\b",
                re.M,
            )
            places = [other.id for other in cells if again.search(other.source)]
            assert places == [cell.id], parameter


def test_about_this_book_is_linked_from_every_page(html):
    for name in [*read_all(), "api", "references"]:
        text = (html / "chapters" / f"{name}.html").read_text(encoding="utf-8")
        footer = BeautifulSoup(text, "html.parser").find("footer", class_="bd-footer-content")
        assert footer.select("a[href$='99_about.html'], a[href='#']")


@needs_chromium
@pytest.mark.parametrize("name", [name for name in DONE if name != "99_about"])
def test_the_first_screenful_has_a_question_and_an_example(page, address, name):
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, address, name)
    first = ".bd-article :is(.results img, .results table, div.cell .cell_input, .table, .math)"
    box = page.locator(f"{first} >> visible=true").first.bounding_box()
    assert box["y"] + min(box["height"], 300) <= 800
    assert "?" in page.evaluate(
        "[...document.querySelectorAll('.bd-article p')].filter("
        "one => one.getBoundingClientRect().bottom <= 800).map(one => one.innerText).join(' ')"
    )


@needs_chromium
def test_the_landing_page_is_one_screenful(page, address):
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, address, "00_introduction")
    for one in page.locator(".results img, .ways a").all():
        box = one.bounding_box()
        assert box["y"] + box["height"] <= 800
    ways = [
        one.split(":")[0].split(" from")[0] for one in page.locator(".ways li").all_inner_texts()
    ]
    assert ways == ["Read", "Move a value", "Find my symptom", "Bring my numbers"]


@needs_chromium
@each_done
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_nothing_is_cut(page, address, name, width):
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, address, name)
    if width == 1280 and name != "15_questions":  # a list to look things up in
        height = page.locator(".bd-article").bounding_box()["height"]
        assert height <= SCREENS * 800
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(CUT)
    assert cut == []


# Whatever stands outside the article's column, unless it lies in a box that scrolls; and boxes
# that scroll without saying so: a table needs an edge and a first column that stays.
CUT = """(() => {
    const right = document.querySelector('.bd-article').getBoundingClientRect().right + 1;
    const scrolls = one => /auto|scroll/.test(getComputedStyle(one).overflowX);
    const inside = one => one.parentElement.closest('pre, .pst-scrollable-table-container, .math');
    const cut = [...document.querySelectorAll('.bd-article :is(p, li, img, table, pre)')]
        .filter(one => !inside(one) && one.getBoundingClientRect().right > right);
    const boxes = [...document.querySelectorAll('.pst-scrollable-table-container')]
        .filter(one => one.scrollWidth > one.clientWidth + 1)
        .filter(one => !scrolls(one) || getComputedStyle(one).borderRightWidth === '0px'
            || getComputedStyle(one.querySelector('td')).position !== 'sticky');
    const printed = [...document.querySelectorAll('.cell_output pre')]
        .filter(one => one.scrollWidth > one.clientWidth + 1);
    return [...cut, ...boxes, ...printed].map(one => one.outerHTML.slice(0, 200));
})()"""
