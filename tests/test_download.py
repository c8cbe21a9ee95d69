"""What a page offers for download runs where nothing of the book is installed."""

import json
import os
import subprocess
import sysconfig
import venv
from types import SimpleNamespace

import download
import nbformat
import pytest
import refresh
import run_downloads
from book_pages import read_all

FEW = ["01_setup", "08_which_convention"]  # the second one reads data of the package
# tools/run_downloads.py runs all of them, in an environment that has nothing.


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """Return a Python that sees the packages of this environment, but not the one of the book."""
    folder = tmp_path / "environment"
    venv.create(folder)
    variables = {"base": str(folder), "platbase": str(folder)}
    packages = sysconfig.get_path("purelib", "venv", variables)
    with open(os.path.join(packages, "neighbours.pth"), "w", encoding="utf-8") as lines:
        lines.write(sysconfig.get_path("purelib"))  # the .pth that leads to src/ is not followed
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return run_downloads.python_of(folder)


def run(python, *arguments, **options):
    return subprocess.run([python, *arguments], capture_output=True, text=True, **options)


@pytest.mark.parametrize("name", read_all())
def test_a_download_is_the_stored_notebook_after_one_more_cell(html, name):
    saved = html / "_sources" / "chapters" / f"{name}.ipynb"
    first, *rest = nbformat.read(saved, as_version=4).cells
    assert first == download.first_cell("")
    stored = json.loads((refresh.CHAPTERS / saved.name).read_text(encoding="utf-8"))
    given = json.loads(saved.read_text(encoding="utf-8"))
    assert given["cells"][1:] == stored["cells"] and len(rest) == len(stored["cells"])
    assert {**given, "cells": []} == {**stored, "cells": []}
    nbformat.validate(given)


@pytest.mark.parametrize("name", FEW)
def test_a_download_runs_in_an_empty_folder_with_the_stored_outputs(
    name, stranger, address, tmp_path
):
    assert run(stranger, "-c", "import grpo").returncode != 0
    saved = tmp_path / "empty" / f"{name}.ipynb"
    saved.parent.mkdir()
    notebook = nbformat.read(refresh.CHAPTERS / saved.name, as_version=4)
    notebook.cells.insert(0, download.first_cell(address))
    nbformat.write(notebook, saved)
    assert run_downloads.execute(stranger, saved) == ""
    assert run_downloads.differences(refresh.CHAPTERS / saved.name, saved) == []


def test_a_changed_output_is_a_difference(tmp_path):
    stored, saved = refresh.CHAPTERS / "01_setup.ipynb", tmp_path / "01_setup.ipynb"
    notebook = nbformat.read(stored, as_version=4)
    notebook.cells.insert(0, download.first_cell(""))
    changed = next(cell for cell in notebook.cells if cell.get("outputs"))
    nbformat.write(notebook, saved)
    assert run_downloads.differences(stored, saved) == []
    changed.outputs.pop()
    nbformat.write(notebook, saved)
    assert run_downloads.differences(stored, saved) == [changed.id]


@pytest.mark.parametrize("foreign", [False, True])
def test_without_an_address_the_message_says_what_to_do_and_that_helps(
    foreign, stranger, html, tmp_path
):
    if foreign:  # the empty package of that name on the package index
        (tmp_path / "grpo").mkdir()
        (tmp_path / "grpo" / "__init__.py").touch()
    source = download.first_cell("").source
    failed = run(stranger, "-c", source, cwd=tmp_path)
    assert failed.returncode
    assert "This page needs the package of its book. Install it with" in failed.stderr
    (command,) = [line for line in failed.stderr.splitlines() if "-m pip install" in line]
    requirement = command.split('"')[1]
    installed = run(stranger, "-m", "pip", "install", "--quiet", requirement, cwd=html)
    assert installed.returncode == 0, installed.stderr
    assert run(stranger, "-c", source, cwd=html).returncode == 0


def test_a_wheel_that_cannot_be_had_is_named_in_the_message():
    source = download.first_cell("https://example.org/book/").source
    wheel = "https://example.org/book/_static/wheels/grpo_worked_numerical_example-"
    assert source.count(wheel) == 3
    assert f'    python -m pip install "grpo-worked-numerical-example[pages] @ {wheel}' in source


def test_no_page_shows_or_runs_the_first_cell(html):
    for page in (html / "chapters").glob("*.html"):
        assert "Not a cell of the book" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("repository", ["", "somebody/a-book"])
@pytest.mark.parametrize("url", ["", "https://example.org/"])
def test_colab_is_offered_where_it_can_open_a_notebook_that_finds_the_wheel(
    url, repository, monkeypatch
):
    monkeypatch.setenv("BOOK_URL", url)
    monkeypatch.setenv("BOOK_REPOSITORY", repository)
    config = SimpleNamespace(html_theme_options={"launch_buttons": {}})
    download.offer_colab(None, config)
    offered = bool(config.html_theme_options["launch_buttons"])
    assert offered == bool(url and repository)
    if offered:
        assert config.html_theme_options["repository_url"] == f"https://github.com/{repository}"


def test_pages_that_do_not_know_their_repository_offer_no_colab(html):
    assert not any("colab.research" in page.read_text("utf-8") for page in html.rglob("*.html"))
