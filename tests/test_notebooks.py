"""The notebooks are clean: executed in order, seeded, alone, and nothing stored but results.

Not compared by nbval, each for the reason in `nbval_sanitize.cfg`: the pictures (they have
`figures.py`) and the four means of chapter 5 that are rounding errors. No cell is skipped.
"""

import ast
import re

import nbformat
import pytest
import refresh
from book_pages import TO_DO, code_cells, markdown_cells, output_texts, read_all

NOTEBOOKS = read_all()
CELL_METADATA = {"tags", "mystnb", "evidence"}
TAGS = {"evidence", "hide-input", "hide-cell", "remove-input"}
each_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


@each_notebook
def test_all_code_cells_were_run_in_order(name):
    counts = [cell.execution_count for cell in code_cells(NOTEBOOKS[name])]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_a_cell_that_prints_has_its_output(name):
    for cell in code_cells(NOTEBOOKS[name]):
        last = ast.parse(cell.source).body[-1]
        shows = isinstance(last, ast.Expr) or re.search(r"\bprint\(|book\.check\(", cell.source)
        assert bool(cell.outputs) == bool(shows) or cell.id in ("setup", "source"), cell.id


@each_notebook
def test_outputs_are_results_only(name):
    for cell in code_cells(NOTEBOOKS[name]):
        for output in cell.outputs:
            assert output.output_type in ("stream", "execute_result", "display_data"), cell.id
            assert output.get("name", "stdout") == "stdout", cell.id
            assert not output.get("metadata"), cell.id
        for text in output_texts(cell):
            assert not re.search(r"np\.(float|int|bool|str)\w*\(|<\w[\w.]* object at", text), (
                cell.id
            )
            assert not re.search(r"(?<![\w.])nan\b", text) or "must be finite" in text, cell.id


@each_notebook
def test_metadata_is_clean(name):
    notebook = NOTEBOOKS[name]
    assert set(notebook.metadata) == {"kernelspec", "language_info", "myst"}
    assert {key: notebook.metadata[key] for key in refresh.KERNEL} == refresh.KERNEL
    assert notebook.metadata.myst.html_meta.description.endswith(".")
    for cell in notebook.cells:
        assert set(cell.metadata) <= CELL_METADATA, cell.id
        assert set(cell.metadata.get("tags", ())) <= TAGS, cell.id
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9-]+", identifier) for identifier in ids)


@each_notebook
def test_file_is_as_refresh_writes_it(name):
    path = refresh.CHAPTERS / f"{name}.ipynb"
    assert path.read_text(encoding="utf-8") == nbformat.writes(NOTEBOOKS[name]) + "\n"


@each_notebook
def test_random_numbers_are_seeded(name):
    for cell in code_cells(NOTEBOOKS[name]):
        for call in ast.walk(ast.parse(cell.source)):
            if isinstance(call, ast.Attribute) and ast.unparse(call.value) == "np.random":
                assert call.attr in ("default_rng", "random"), f"{cell.id}: {ast.unparse(call)}"
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("default_rng"):
                assert [ast.unparse(seed) for seed in call.args] == ["0"], cell.id


@each_notebook
def test_no_trailing_semicolon_no_magic_no_skipping(name):
    for cell in code_cells(NOTEBOOKS[name]):
        assert not cell.source.rstrip().endswith(";"), cell.id
        assert not re.search(r"^[%!]", cell.source, re.M), cell.id
        assert not re.search(r"nbval|pytest", cell.source, re.I), f"{cell.id}: no cell is skipped"


@each_notebook
def test_functions_of_the_package_are_not_written_again(name):
    import grpo

    for cell in code_cells(NOTEBOOKS[name]):
        for node in ast.walk(ast.parse(cell.source)):
            assert not (isinstance(node, ast.FunctionDef) and node.name in grpo.__all__), cell.id


@each_notebook
def test_chapter_has_all_its_parts(name):
    text = "\n".join(cell.source for cell in markdown_cells(NOTEBOOKS[name]))
    assert text.startswith("# ")
    if name == "00_introduction":  # the landing page, see test_layout.py
        return
    assert "## Break it on purpose" in text
    if name in TO_DO:
        assert re.search(r"What you will compute\n- ", text)
        assert "**What to know first:**" in text
    elif name != "99_about":
        needs = r":::\{container\} needs\nNeeds: [^:]+\. You will [^.]+\.\n:::"
        assert len(re.findall(needs, text)) == 1
        assert "What you will compute" not in text and "What to know first" not in text
    if name != "99_about":
        assert "## Summary" in text
    exercises = re.findall(r"^## Exercises?$", text, re.M)
    assert len(exercises) == 1
    checks = [cell for cell in code_cells(NOTEBOOKS[name]) if "book.check(answer" in cell.source]
    solutions = [cell for cell in checks if "hide-cell" in cell.metadata.get("tags", ())]
    assert solutions and len(checks) == 2 * len(solutions)
    for open_cell, solution in zip(checks[::2], checks[1::2], strict=True):
        assert open_cell.source.startswith("answer = None\n")
        assert open_cell.outputs[0].text.startswith("Not answered yet")
        assert solution.outputs[0].text.endswith("Right.\n")
        given, expected = (
            cell.source.rpartition("book.check")[2] for cell in (open_cell, solution)
        )
        assert given == expected, open_cell.id


def test_every_notebook_is_in_the_table_of_contents():
    toc = (refresh.CHAPTERS.parent / "_toc.yml").read_text(encoding="utf-8")
    listed = re.findall(r"chapters/(\d\d_\w+)", toc)
    assert listed == list(NOTEBOOKS)
