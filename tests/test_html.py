"""The built pages: no warning, no dead link, and named for search engines and screen readers."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import refresh
from book_pages import read_all, svg_outputs
from bs4 import BeautifulSoup

PAGES = [path.stem for path in refresh.notebooks()] + ["api", "references"]
each_page = pytest.mark.parametrize("name", PAGES)


@pytest.fixture(scope="module")
def soup(html):
    """Return a function that reads a page of the built book, each once."""
    read = {}

    def page(path):
        if path not in read:
            read[path] = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        return read[path]

    return page


@each_page
def test_page_has_title_and_description(html, soup, name):
    page = soup(html / "chapters" / f"{name}.html")
    assert page.html["lang"] == "en"
    assert page.title.string.strip()
    description = page.find("meta", attrs={"name": "description"})
    assert len(description["content"]) > 40
    assert len(page.find(class_="bd-article").find_all("h1")) == 1


def test_titles_and_descriptions_differ(html, soup):
    pages = [soup(html / "chapters" / f"{name}.html") for name in PAGES]
    for texts in (
        [page.title.string for page in pages],
        [page.find("meta", attrs={"name": "description"})["content"] for page in pages],
    ):
        assert len(set(texts)) == len(PAGES)


@each_page
def test_internal_links_resolve(html, soup, name):
    source = html / "chapters" / f"{name}.html"
    for tag, attribute in (("a", "href"), ("img", "src"), ("script", "src"), ("link", "href")):
        for element in soup(source).find_all(tag, attrs={attribute: True}):
            target = urlsplit(element[attribute])
            if target.scheme or target.netloc:
                continue
            path = (source.parent / unquote(target.path)).resolve() if target.path else source
            assert path.is_relative_to(html.resolve()) and path.exists(), element
            if target.fragment and path.suffix == ".html":
                assert soup(path).find(id=unquote(target.fragment)), element


@each_page
def test_figures_are_shown_with_alternative_text(html, soup, name):
    article = soup(html / "chapters" / f"{name}.html").find(class_="bd-article")
    images = article.find_all("img")
    for image in images:
        assert len(image.get("alt", "")) > 80
        assert image.find_parent("figure").find("figcaption").get_text(strip=True)
    notebook = read_all().get(name)
    if notebook:
        assert len(images) == sum(len(svg_outputs(cell)) for cell in notebook.cells)


@each_page
def test_tables_have_headers_and_markup_is_rendered(html, soup, name):
    article = soup(html / "chapters" / f"{name}.html").find(class_="bd-article")
    for table in article.find_all("table"):
        assert table.thead.find_all("th")
    for code in article.find_all(["pre", "code", "script"]):
        code.extract()
    for math in article.find_all(class_="math"):
        math.extract()
    text = article.get_text()
    assert not re.search(r":::|\{cite|\$|(?<!\w)\*\*|\]\(|undefined|^\|", text, re.M)


@each_page
def test_page_says_with_what_it_was_checked(html, soup, name):
    footer = soup(html / "chapters" / f"{name}.html").find("footer", class_="bd-footer-content")
    assert f"numpy {np.__version__}" in footer.get_text()


@each_page
def test_page_shows_a_preview_where_its_address_is_shared(html, soup, name):
    page = soup(html / "chapters" / f"{name}.html")
    tags = {tag["property"]: tag["content"] for tag in page.find_all("meta", property=True)}
    description = page.find("meta", attrs={"name": "description"})
    assert tags["og:description"] == description["content"]
    assert tags["og:title"] == page.find(class_="bd-article").h1.get_text().strip("#")
    assert (html / tags["og:image"]).stat().st_size > 10_000
    assert tags["og:image:alt"]


@pytest.mark.parametrize("name", read_all())
def test_notebook_can_be_downloaded_from_its_page(html, soup, name):
    page = html / "chapters" / f"{name}.html"
    links = soup(page).select("a.btn-download-source-button")
    (saved,) = {(page.parent / link["href"]).resolve() for link in links}
    assert saved == (html / "_sources" / "chapters" / f"{name}.ipynb").resolve()


def test_api_page_describes_every_public_function(html, soup):
    import grpo

    page = soup(html / "chapters" / "api.html")
    described = {element["id"].rpartition(".")[2] for element in page.select("dt[id]")}
    members = {
        *("__call__", "names"),  # of Convention, and of Identification and Evidence
        *("explains", "eps_range", "explained"),  # of Evidence
        *("is_coarse", "error"),  # of Precision
    }
    assert described == members.union(grpo.__all__)
    assert "The conventions of fourteen stacks by name" in page.get_text()


def test_first_page_leads_to_the_introduction(html):
    assert "chapters/00_introduction.html" in (Path(html) / "index.html").read_text(
        encoding="utf-8"
    )
