"""Public reports about executable books: each trap, and that this book does not step into it.

`data/field_reports.json` says where each was reported. CONTRIBUTING.md has the list in words.
"""

import copy
import json
import re
import tomllib
from pathlib import Path

import build_book
import pytest
import refresh
import test_notebooks
import yaml
from book_pages import code_cells, output_texts, read_all
from bs4 import BeautifulSoup

ROOT = refresh.CHAPTERS.parent
REPORTS = json.loads(
    Path(__file__).with_name("data").joinpath("field_reports.json").read_text(encoding="utf-8")
)
BOOK = {report["id"] for report in REPORTS if report["kind"] == "book-ci"}
CELLS = [(name, cell) for name, notebook in read_all().items() for cell in code_cells(notebook)]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_report_is_answered_here_and_in_contributing():
    tested = set(
        re.findall(
            r"[BR]\d\d", " ".join(name for name in globals() if name.startswith("test_")).upper()
        )
    )
    listed = set(
        re.findall(r"\b[BR]\d\d\b", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    )
    assert tested == listed == BOOK


def test_b01_b13_no_value_is_glued():
    assert not [cell.id for _, cell in CELLS if re.search(r"\bglue\b", cell.source)]
    pages = [*refresh.notebooks(), *refresh.CHAPTERS.glob("*.md")]
    assert not [page.name for page in pages if "{glue" in page.read_text(encoding="utf-8")]


def test_b02_no_output_shows_the_type_of_a_number():
    for name, cell in CELLS:
        for text in output_texts(cell):
            if not text.startswith("```python"):  # the source of a function
                assert not re.search(r"\bnp\.\w+(?:\(|_\b)", text), (name, cell.id)


def test_b03_a_cell_has_the_outputs_that_it_is_meant_to_have():
    # a plot that returns its labels would add one more
    for name, cell in CELLS:
        shown = [output for output in cell.outputs if output.output_type == "execute_result"]
        assert len(shown) <= 1, (name, cell.id)
        for output in shown:
            assert set(output.data) & {"text/markdown", "image/svg+xml"}, (name, cell.id)


def test_b04_b05_one_stream_a_cell_and_none_of_warnings():
    for name, cell in CELLS:
        streams = [output.name for output in cell.outputs if output.output_type == "stream"]
        assert streams in ([], ["stdout"]), (name, cell.id)


def test_b06_the_kernel_has_the_name_that_every_machine_knows():
    assert {nb.metadata.kernelspec.name for nb in read_all().values()} == {"python3"}
    assert "--nbval-current-env" in OPTIONS["tool"]["pytest"]["ini_options"]["addopts"]


def test_b07_pictures_are_compared_by_their_own_test():
    kinds = {
        kind for _, cell in CELLS for output in cell.outputs for kind in output.get("data", {})
    }
    assert "image/svg+xml" in kinds
    assert not kinds & {"image/png", "image/jpeg", "application/pdf"}
    assert (ROOT / "tests" / "figures.py").exists()


def test_b08_no_stored_output_is_an_error():
    assert not [cell.id for _, cell in CELLS for o in cell.outputs if o.output_type == "error"]


def test_b09_the_major_version_is_pinned_and_every_page_is_built(html):
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert re.search(r"^jupyter-book==1\.", requirements, re.M)
    entries = re.findall(r"chapters/\w+", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert len(list((html / "chapters").glob("*.html"))) == len(entries) > 10


def test_b10_nothing_is_taken_from_a_cache_of_executed_pages():
    assert CONFIG["execute"] == {"execute_notebooks": "off"}


@pytest.mark.parametrize(
    "pattern", [r"0x[0-9a-f]{6,}", r"\b20\d\d-\d\d-\d\d \d\d:\d\d", r"\btook \d|\belapsed\b"]
)
def test_b11_no_output_has_an_address_or_a_time(pattern):
    assert not [cell.id for _, cell in CELLS for t in output_texts(cell) if re.search(pattern, t)]


def test_b12_no_output_has_more_digits_than_all_pythons_agree_on():
    for name, cell in CELLS:
        for text in output_texts(cell):
            assert not re.search(r"(?<![\w.])\d\.\d{13,}", text), (name, cell.id)


def test_b14_no_page_asks_another_site_for_a_script(html):
    for path in (html / "chapters").glob("*.html"):
        page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        asked = [e.get("src") or e.get("href") for e in page.find_all(["script", "link"])]
        assert not [url for url in asked if url and re.match(r"(https?:)?//", url)], path.name


def test_b15_a_second_build_does_not_hide_a_warning(tmp_path, monkeypatch):
    for made in ("html", ".doctrees"):
        (tmp_path / "_build" / made).mkdir(parents=True)
        (tmp_path / "_build" / made / "old").write_text("of an earlier build")
    commands = []
    monkeypatch.setattr(build_book.subprocess, "run", lambda command, **_: commands.append(command))
    build_book.build(tmp_path)
    assert not list((tmp_path / "_build").rglob("old"))
    assert "-W" in commands[0]


def test_r17_a_link_to_a_notebook_becomes_one_to_its_page(html):
    # that the page and the place in it exist is what test_html.py looks at
    with_fragment = 0
    for path in (html / "chapters").glob("*.html"):
        page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        targets = [link["href"] for link in page.find(class_="bd-article").find_all("a", href=True)]
        assert not [href for href in targets if re.search(r"\.ipynb(?:#|$)", href)], path.name
        with_fragment += sum(bool(re.search(r"^\w+\.html#", href)) for href in targets)
    sources = "".join(path.read_text(encoding="utf-8") for path in refresh.notebooks())
    assert with_fragment >= len(re.findall(r"\]\(\w+\.ipynb#", sources)) > 50


@pytest.mark.parametrize("uncounted", [False, True])
def test_r19_an_output_that_was_cleared_is_missed(monkeypatch, uncounted):
    name = "03_degenerate_groups"
    changed = copy.deepcopy(read_all()[name])
    (cell,) = [cell for cell in code_cells(changed) if cell.id == "kl-term"]
    cell.outputs = []
    if uncounted:
        cell.execution_count = None
    monkeypatch.setitem(test_notebooks.NOTEBOOKS, name, changed)
    with pytest.raises(AssertionError, match="kl-term"):
        test_notebooks.test_a_cell_that_prints_has_its_output(name)
    if uncounted:  # nbval does not compare such a cell at all
        with pytest.raises(AssertionError):
            test_notebooks.test_all_code_cells_were_run_in_order(name)
