"""The figures have words beside them, and the comparison of `figures.py` is sharp."""

import re

import pytest
from book_pages import captions, code_cells, output_texts, read_all, svg_outputs
from figures import NUMBER, differences, elements

NOTEBOOKS = read_all()
FIGURES = {
    (name, cell.id): cell
    for name, notebook in NOTEBOOKS.items()
    for cell in code_cells(notebook)
    if svg_outputs(cell) or "book.show(" in cell.source
}


@pytest.mark.parametrize("name, cell", FIGURES)
def test_a_cell_that_shows_a_figure_has_one_picture(name, cell):
    assert len(svg_outputs(FIGURES[name, cell])) == 1


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
