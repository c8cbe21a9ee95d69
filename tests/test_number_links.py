"""The links from numbers to their computation: which there are, where they lead, their weight."""

import gzip
import json
import re

import build_book
import nbformat
import number_links
import printed_by
import pytest
from book_pages import code_cells, numbered_output_texts, read_all
from bs4 import BeautifulSoup
from prose_rules import Page, Position, tokens

import grpo

LINKED = 0.97  # of the parameters and results in Markdown cells and captions
each_chapter = pytest.mark.parametrize("name", read_all())


def soup(html, name):
    text = (html / "chapters" / f"{name}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser")


def shown(html, name):
    """Return the links of a page and what their cards show."""
    page = soup(html, name)
    links = page.select(".bd-article a.number")
    return links, json.loads(page.find(id="number-cards").string)


def test_nearly_all_numbers_are_linked():
    numbers, linked = 0, 0
    for name, notebook in read_all().items():
        page = Page(name, notebook)
        for place, text in page.prose.items():
            if place.endswith(", alt"):
                continue
            spans = [span[:2] for span in number_links.links(page, place, text)]
            for number, _ in page.findings(place, text):
                if number.kind in ("parameter", "result", "loose"):
                    numbers += 1
                    linked += bool(number_links.around(spans, number.start))
    assert numbers > 300
    assert linked / numbers >= LINKED


@each_chapter
def test_every_position_is_linked_and_every_link_has_a_position(html, name):
    """The rules that check the numbers give the links, on the page as well."""
    page = Page(name, read_all()[name])
    expected = [
        " ".join(map(number_links.address, positions))
        for place, text in page.prose.items()
        if not place.endswith(", alt")
        for _, _, positions in number_links.links(page, place, text)
    ]
    links, content = shown(html, name)
    found = [link["data-at"] for link in links]
    assert sorted(found) == sorted(expected)
    assert set(content["cards"]) == {at for one in found for at in one.split()}


@each_chapter
def test_the_position_of_a_link_shows_its_number(html, name):
    """Read each number from the stored notebook by its address alone."""
    cells = {cell.id: cell for cell in code_cells(read_all()[name])}
    page = soup(html, name)
    for link in page.select(".bd-article a.number"):
        for at in link["data-at"].split():
            cell_id, output, line, token = at.split("/")
            cell = cells[cell_id]
            text = (
                cell.source if output == "code" else dict(numbered_output_texts(cell))[int(output)]
            )
            number = tokens(text.splitlines()[int(line)])[int(token)][0].removeprefix("+")
            assert number in link.get_text().replace("\\,", ""), (link, number)
            if output != "code":
                assert page.find(id=f"out-{cell_id}-{output}"), at
        assert page.find(id=link["href"].removeprefix("#"))


@each_chapter
def test_every_card_says_what_computed_its_number(html, name):
    _, content = shown(html, name)
    assert re.fullmatch(r"[0-9a-f]{7,}|", content["commit"])
    for at, card in content["cards"].items():
        source = at.split("/")[1] == "code"
        assert source or card["code"] or card["by"], at
        assert len(card.get("code", [])) <= printed_by.LINES
        assert set(card["by"]) <= set(grpo.__all__)


def test_every_function_named_has_an_entry(html):
    entries = {element["id"] for element in soup(html, "api").select("dt[id]")}
    for name in read_all():
        for card in shown(html, name)[1]["cards"].values():
            assert {f"grpo.{function}" for function in card["by"]} <= entries


def test_what_is_no_result_is_not_linked(html):
    for name in read_all():
        for link in soup(html, name).select(".bd-article a.number"):
            assert not link.find_parent(["h1", "h2", "h3", "a"]), link
            assert not link.find_parent(class_="citation"), link
    text = "## 3.1 In 2024\n\nSee [chapter 3](03_degenerate_groups.ipynb) and k3.\n\n1. One\n"
    page = Page("03_degenerate_groups", read_all()["03_degenerate_groups"])
    assert number_links.links(page, "formula", text) == []


def test_a_formula_becomes_one_link_with_all_its_positions():
    page = Page("03_degenerate_groups", read_all()["03_degenerate_groups"])
    text = "Let $p = 0.9, G = 4$. Then it is 0.6562."
    (formula, result) = number_links.links(page, "formula", text)
    assert text[slice(*formula[:2])] == "$p = 0.9, G = 4$"
    assert len(formula[2]) == 2
    assert text[slice(*result[:2])] == "0.6562"


def test_the_nearest_position_beside_the_others_of_the_sentence():
    """Choose by hand: of three lines with 0.5, the one that also has 0.125 of the sentence."""
    far = nbformat.v4.new_code_cell("", id="far", outputs=[stream("p = 0.5: 0.125\n")])
    near = nbformat.v4.new_code_cell(
        "", id="near", outputs=[stream("p = 0.5\np = 0.7: 0.248\np = 0.5: 0.125, 1/8\n")]
    )
    prose = nbformat.v4.new_markdown_cell("At p = 0.5 it is 0.125, or 8 to one.", id="prose")
    page = Page("03_x", nbformat.v4.new_notebook(cells=[far, near, prose]))
    found = {number.text: support for number, support in page.findings("prose", prose.source)}
    assert found["0.5"] == Position("near", 0, 2, token=0, start=4, end=7)
    assert found["0.125"] == Position("near", 0, 2, token=1, start=9, end=14)
    assert found["8"] == Position("near", 0, 2, token=4, start=18, end=19)  # after 1/8 and 1


def stream(text):
    return nbformat.v4.new_output("stream", text=text)


def test_the_lines_that_printed_a_number():
    source = (
        "q = degenerate_probability(0.9, 4)\n"
        "other = 1\n"
        "for G in (4, 8):\n"
        '    print(f"size {G}: waste {q:.4f}")\n'
    )
    output = "size 4: waste 0.6562\nsize 8: waste 0.6562\n"
    waste = Position("cell", 0, 0, token=1, start=14, end=20)
    size = Position("cell", 0, 1, token=0, start=5, end=6)
    shown_line = 'print(f"size {G}: waste {q:.4f}")'
    imported = {"degenerate_probability"}
    assert printed_by.printed_by(source, output, waste, imported) == (
        ["q = degenerate_probability(0.9, 4)", shown_line],
        ["degenerate_probability"],
    )
    assert printed_by.printed_by(source, output, size, imported) == (
        ["for G in (4, 8):", shown_line],
        [],
    )


def test_the_line_that_computed_a_column():
    source = (
        "rows = []\n"
        "for p in (0.5, 0.9):\n"
        "    rows.append([p, f'{degenerate_probability(p, 4):.4f}'])\n"
        "book.table(rows, headers=['p', 'Waste'], caption='Waste')\n"
    )
    output = "**Waste**\n\n| p | Waste |\n|--:|--:|\n| 0.5 | 0.1250 |\n| 0.9 | 0.6562 |"
    position = Position("cell", 0, 5, token=1, start=8, end=14, column=1)
    code, functions = printed_by.printed_by(source, output, position, {"degenerate_probability"})
    assert code == [
        "for p in (0.5, 0.9):",
        "rows.append([p, f'{degenerate_probability(p, 4):.4f}'])",
    ]
    assert functions == ["degenerate_probability"]


@each_chapter
def test_the_links_are_light(html, name):
    """Compare each page with what it weighs without links, ids and cards."""
    text = (html / "chapters" / f"{name}.html").read_text(encoding="utf-8")
    plain = re.sub(r'<script type="application/json" id="number-cards">.*?</script>', "", text)
    plain = re.sub(r'<a class="number"[^>]*>(.*?)</a>', r"\1", plain, flags=re.S)
    plain = re.sub(r' id="(?:cell|out)-[^"]*"', "", plain)
    assert len(plain) < len(text)
    assert packed(text) - packed(plain) <= 15_000


def test_script_and_style_are_light(html):
    live = html / "_static" / "live"
    files = [live / name for name in ("numbers.js", "numbers.css")]
    assert sum(packed(file.read_text(encoding="utf-8")) for file in files) <= 25_000


def packed(text):
    return len(gzip.compress(text.encode()))


@pytest.mark.parametrize("form", ["epub", "onepage"])
def test_other_forms_have_plain_text(form):
    """The links are made for the HTML alone."""

    class App:
        class builder:  # noqa: N801
            name = build_book.BUILDERS[form][0].replace("onepage", "singlehtml")

        class env:  # noqa: N801
            doc2path = staticmethod(lambda name: f"{name}.ipynb")

    source = ["unchanged"]
    number_links.link_numbers(App, "03_degenerate_groups", source)
    assert source == ["unchanged"]
