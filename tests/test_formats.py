"""The EPUB and the single page: complete, named after the version, with formulas and pictures."""

import zipfile
from collections import Counter

import build_book
import checked_with
import pytest
from book_pages import read_all, svg_outputs
from bs4 import BeautifulSoup

import grpo

FIGURES = sum(len(svg_outputs(cell)) for nb in read_all().values() for cell in nb.cells)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a function that builds a form of the book and returns the file to open."""

    def build(form):
        folder = tmp_path_factory.mktemp(form)
        process = build_book.build(folder, form)
        assert process.returncode == 0, process.stdout
        return build_book.product(folder, form)

    return build


def test_epub(built):
    path = built("epub")
    assert path.name == f"grpo-worked-numerical-example-{grpo.__version__}.epub"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    package = BeautifulSoup(files["content.opf"], "xml")
    assert package.find("title").string == "GRPO: A Worked Numerical Example"
    for known in ("identifier", "contributor", "publisher", "rights"):
        assert len(package.find(known).string) > 10
    pages = [item for item in package.find_all("item") if item["media-type"].startswith("app")]
    contents = BeautifulSoup(files["nav.xhtml"], "xml")
    formulas = figures = 0
    for name in read_all():
        href = f"chapters/{name}.xhtml"
        assert contents.find("a", href=href), name
        page = BeautifulSoup(files[href], "xml")
        (entry,) = [item for item in pages if item["href"] == href]
        assert (entry.get("properties") == "mathml") == bool(page.math)
        assert not page.find_all("script")
        for style in page.find_all("link", rel="stylesheet"):
            assert style["href"].removeprefix("../") in files, style
        formulas += len(page.find_all("math"))
        for image in page.find_all("img"):
            assert image["src"].removeprefix("../") in files
            assert image["alt"]
            figures += 1
    assert formulas > 100
    assert figures == FIGURES


def test_the_published_pages_link_to_both(monkeypatch):
    assert checked_with.to_take_along() == ""
    monkeypatch.setenv("BOOK_URL", "https://example.org/")
    links = BeautifulSoup(checked_with.to_take_along(), "html.parser").find_all("a")
    name = f"grpo-worked-numerical-example-{grpo.__version__}"
    assert [link["href"] for link in links] == [
        f"https://example.org/{name}.{suffix}" for suffix in ("epub", "zip")
    ]


def test_one_page(built, tmp_path):
    name = f"grpo-worked-numerical-example-{grpo.__version__}"
    packed = built("onepage")
    assert packed.name == f"{name}.zip"
    with zipfile.ZipFile(packed) as archive:
        assert all(file.startswith(f"{name}/") for file in archive.namelist())
        archive.extractall(tmp_path)
    path = tmp_path / name / "index.html"
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    ids = Counter(element["id"] for element in page.find_all(id=True))
    assert not [name for name, count in ids.items() if count > 1]
    for link in page.find_all("a", href=True):
        target = link["href"]
        assert target.startswith(("http", "#")), link
        assert target == "#" or target.startswith("http") or target[1:] in ids, link
    assert len(page.find_all("math")) > 100
    assert not page.find_all("merror")
    article = page.find(class_="bd-article")
    assert len(article.find_all("img")) == FIGURES
    for element in page.select("img, script[src], link[href]"):
        file = (element.get("src") or element["href"]).partition("?")[0]
        assert (path.parent / file).exists(), element
