"""The notebooks as the tests and the links of the pages see them."""

from functools import cache

import nbformat
from refresh import notebooks

# Chapters whose evidence still stands in front. A rewritten chapter is taken off this list, and
# `test_layout.py` and `test_notebooks.py` hold it to the new layout. The list has to become empty.
TO_DO = [
    "08_which_convention",
    "15_questions",
]


@cache
def read_all():
    """Return {name: notebook} in the order of reading."""
    return {path.stem: nbformat.read(path, as_version=4) for path in notebooks()}


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def output_texts(cell):
    """Return what a reader can read in the outputs of a cell: no pictures, no object names."""
    return [text for _, text in numbered_output_texts(cell)]


def numbered_output_texts(cell):
    """Yield (index of the output, what a reader can read in it)."""
    for index, output in enumerate(cell.outputs):
        if output.output_type == "stream":
            yield index, output.text
        elif output.output_type in ("display_data", "execute_result"):
            for kind in ("text/markdown", "text/plain"):
                text = output.data.get(kind, "")
                if text and not text.startswith("<IPython.core"):
                    yield index, text


def svg_outputs(cell):
    return [
        output.data["image/svg+xml"]
        for output in cell.get("outputs", [])
        if "image/svg+xml" in output.get("data", {})
    ]


def captions(cell):
    """Return the caption and the alternative text of a figure's cell."""
    figure = cell.metadata.get("mystnb", {})
    return {
        "caption": figure.get("figure", {}).get("caption", ""),
        "alt": figure.get("image", {}).get("alt", ""),
    }
