"""Sphinx extension: the index of the search, made by Pagefind from the built pages.

One record a section, question or function, so that a hit leads to it. A record has the words in
which people ask for it: the symptoms in the index of the questions, and `search_words.toml`.
"""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import site_assets
from bs4 import BeautifulSoup, SoupStrainer
from sphinx.errors import ExtensionError

WORDS = Path(__file__).resolve().parent.parent / "chapters" / "search_words.toml"
SYMPTOMS = ("15_questions", "index")  # the page and the section with the table of symptoms
ARTICLE = SoupStrainer("article", class_="bd-article")
NOT_READ = (
    "details, .cell_input, pre, .highlight, .cell_output thead, .cell_output tbody, .headerlink, "
    "div.math, script, style, .toctree-wrapper"
)


def setup(app):
    app.connect("builder-inited", use_own_search)
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def use_own_search(app):
    if app.builder.name == "html":
        app.builder.search = False  # no index and no page of Sphinx's own
        app.add_js_file("search/search.js", loading_method="defer")
        app.add_css_file("search/search.css")


def write_index(app, exception):
    if exception or app.builder.name != "html":
        return
    static = app.outdir / "_static"
    for unused in ("searchtools.js", "language_data.js"):
        (static / unused).unlink(missing_ok=True)
    subprocess.run(
        [site_assets.node_program("node"), site_assets.WEB / "search_index.mjs"],
        input=json.dumps(
            {"records": records(app.outdir), "folder": str(static / "search" / "pagefind")}
        ),
        encoding="utf-8",
        check=True,
    )


def records(html):
    """Return what the index has: address, text, title, page and the words of those who ask."""
    words = {
        f"chapters/{page}.html#{anchor}": list(asked)
        for page, anchors in tomllib.loads(WORDS.read_text(encoding="utf-8")).items()
        for anchor, asked in anchors.items()
    }
    found = []
    for path in sorted((html / "chapters").glob("*.html")):
        article = BeautifulSoup(path.read_bytes(), "lxml", parse_only=ARTICLE).article
        url = path.relative_to(html).as_posix()
        if path.stem == SYMPTOMS[0]:
            for row in article.find(id=SYMPTOMS[1]).extract().select("tbody tr"):
                words.setdefault(url + row.a["href"], []).append(row.td.get_text())
        found += page_records(article, url)
    unknown = words.keys() - {record["url"] for record in found}
    if unknown:
        raise ExtensionError(f"{WORDS.name} names sections that do not exist: {sorted(unknown)}")
    for record in found:
        record["meta"]["words"] = " ".join(words.get(record["url"], []))
    return found


def page_records(article, url):
    """Return the records of one page; each takes its part out of the one that it stands in."""
    for element in article.select(NOT_READ):
        element.decompose()
    for formula in article.select(".math"):
        formula.replace_with(plain(formula.get_text()))
    page = article.h1.get_text()
    parts = [
        *((dt["id"], dt["id"].removeprefix("grpo."), dt.parent) for dt in article.select("dt[id]")),
        *((s["id"], s.h2.get_text(), s) for s in article.select("section:has(> h2)")),
        (article.section["id"], page, article.section),
    ]
    return [
        {
            "url": f"{url}#{anchor}",
            "content": text_of(part.extract()),
            "meta": {"title": title, "page": page},
        }
        for anchor, title, part in parts
    ]


def text_of(part):
    """Return the text under the heading, in one line."""
    for heading in part.select("h1, h2, dt"):
        heading.decompose()
    return re.sub(r"\s+([.,;:?!)])", r"\1", " ".join(part.get_text(" ").split()))


def plain(tex):
    """Return a formula in words that can be searched."""
    tex = re.sub(r"\\(?:text|math|frac|left|right)\w*|\\[()]", "", tex).replace("}{", "/")
    tex = re.sub(r"\\([a-zA-Z]+)", r" \1", tex)
    return " ".join(re.sub(r"[\\{}]", "", tex).split()).replace("( ", "(")
