"""What the search has of a page, without a browser."""

import pytest
import search_index
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

PAGE = """<article class="bd-article"><section id="top"><h1>Title<a class="headerlink">#</a></h1>
<p>Intro.</p><section id="one"><h2>One</h2>
<p>Prose with <span class="math">\\(\\epsilon\\)</span>.</p>
<div class="cell"><div class="cell_input"><pre>code = 1</pre></div><div class="cell_output">
<pre>printed 1</pre><table><caption>Caption</caption><tbody><tr><td>cell</td></tr></tbody></table>
</div></div><details class="evidence"><p>folded</p></details></section></section></article>"""


def records():
    return search_index.page_records(BeautifulSoup(PAGE, "lxml").article, "chapters/x.html")


def test_a_section_is_a_record_with_prose_and_captions_only():
    one, top = records()
    assert one == {
        "url": "chapters/x.html#one",
        "content": "Prose with epsilon. Caption",
        "meta": {"title": "One", "page": "Title"},
    }
    assert (top["url"], top["content"]) == ("chapters/x.html#top", "Intro.")


def test_a_formula_can_be_searched():
    formula = r"\(\frac{1}{2} \sqrt{\epsilon} + (\pi_{\text{ref}})\)"
    assert search_index.plain(formula) == "1/2 sqrt epsilon + (pi_ref)"


def test_words_for_a_section_that_is_not_there_stop_the_build(tmp_path, monkeypatch):
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "x.html").write_text(PAGE)
    words = tmp_path / "words.toml"
    monkeypatch.setattr(search_index, "WORDS", words)
    words.write_text('[x]\none = ["asked"]')
    assert search_index.records(tmp_path)[0]["meta"]["words"] == "asked"
    words.write_text('[x]\ntwo = ["asked"]')
    with pytest.raises(ExtensionError, match=r"x\.html#two"):
        search_index.records(tmp_path)
