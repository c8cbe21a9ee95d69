"""Every figure is fresh: drawn again, it has the same elements in the same places.

nbval does not compare pictures (see `nbval_sanitize.cfg`); this takes its place. Coordinates may
move by half a pixel. Everything else, such as colours, widths, scales, angles and the glyphs of
the labels, is compared to the character. Identifiers are made from coordinates, so they are
numbered in order of appearance first.
"""

import re
from xml.etree import ElementTree

import pytest
import refresh
from book_pages import captions, code_cells, output_texts, read_all, svg_outputs

HALF_A_PIXEL = 0.5
FACTORS = re.compile(r"(?:scale|rotate|matrix)\([^)]*\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
COORDINATES = {"d", "x", "y", "width", "height", "viewBox", "transform", "points"}
IDENTIFIER = re.compile(r"\b[a-z][0-9a-f]{10}\b")
NOTEBOOKS = read_all()
FIGURES = {
    (name, cell.id): cell
    for name, notebook in NOTEBOOKS.items()
    for cell in code_cells(notebook)
    if svg_outputs(cell) or "book.show(" in cell.source
}


def elements(svg):
    """Return [(tag, attributes, text)] of a picture with its identifiers numbered."""
    order = {}
    svg = IDENTIFIER.sub(lambda match: order.setdefault(match[0], f"id{len(order)}"), svg)
    return [
        (element.tag, element.attrib, (element.text or "").strip())
        for element in ElementTree.fromstring(svg).iter()
    ]


def differences(stored, fresh):
    """Return in words what differs between two pictures."""
    if len(stored) != len(fresh):
        return [f"{len(stored)} elements stored, {len(fresh)} drawn"]
    found = []
    for (tag, old, old_text), (new_tag, new, new_text) in zip(stored, fresh, strict=True):
        if (tag, old_text, list(old)) != (new_tag, new_text, list(new)):
            found.append(f"{tag} {old_text} became {new_tag} {new_text}")
            continue
        for key in old:
            before, after = NUMBER.findall(old[key]), NUMBER.findall(new[key])
            moved = [abs(float(a) - float(b)) for a, b in zip(before, after, strict=False)]
            same = (
                key in COORDINATES
                and NUMBER.sub("#", old[key]) == NUMBER.sub("#", new[key])
                and FACTORS.findall(old[key]) == FACTORS.findall(new[key])
                and max(moved, default=0) <= HALF_A_PIXEL
            )
            if not same and old[key] != new[key]:
                found.append(f"{tag} {key}: {old[key][:60]} became {new[key][:60]}")
    return found


@pytest.fixture(scope="module")
def drawn_again():
    """Return a function that gives the figures of a notebook run anew."""
    runs = {}

    def figures(name):
        if name not in runs:
            cells = code_cells(refresh.run(refresh.CHAPTERS / f"{name}.ipynb"))
            runs[name] = {cell.id: svg_outputs(cell) for cell in cells}
        return runs[name]

    return figures


@pytest.mark.parametrize("name, cell", FIGURES)
def test_figure_is_fresh(name, cell, drawn_again):
    (stored,), (fresh,) = svg_outputs(FIGURES[name, cell]), drawn_again(name)[cell]
    found = differences(elements(stored), elements(fresh))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name, cell", FIGURES)
def test_figure_has_caption_alternative_text_and_printed_series(name, cell):
    figure = FIGURES[name, cell]
    texts = captions(figure)
    assert len(texts["caption"]) > 20 and texts["caption"].endswith(".")
    assert len(texts["alt"]) > 80 and texts["alt"].endswith(".")
    printed = " ".join(output_texts(figure))
    assert len(NUMBER.findall(printed)) >= 8, "print what the figure shows"


def test_comparison_notices_a_moved_point_a_colour_and_a_label():
    stored = svg_outputs(next(iter(FIGURES.values())))[0]
    path = re.search(r'd="M (\d+)\.\d+', stored)
    moved = stored[: path.start(1)] + str(int(path[1]) + 2) + stored[path.end(1) :]
    recoloured = stored.replace("#0072b2", "#0072b3", 1)
    relabelled = re.sub(r'(href="#DejaVuSans-)\w+', r"\g<1>0", stored, count=1)
    for changed in (moved, recoloured, relabelled):
        assert changed != stored
        assert differences(elements(stored), elements(changed))
    assert not differences(elements(stored), elements(stored))
