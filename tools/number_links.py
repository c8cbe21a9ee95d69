"""Sphinx extension: each number of the prose leads to the computation that supports it.

A parameter or a result becomes a link to its cell, `<a class="number" href="#cell-by-hand"
data-at="by-hand/0/0/2">`: the third number of the first line of the first output of the cell
by-hand (`code` instead of the output: of its source). A formula or a piece of code becomes one
link with all its positions. What the card of a position shows is written once at the end of the
page; `web/numbers.js` puts it together. The element of an output has the id `out-by-hand-0`.

Only the HTML is changed, on its way into MyST-NB: EPUB and the single page show plain text.
"""

import json
import re
from html import escape
from pathlib import Path

import nbformat
from book_pages import captions, code_cells, markdown_cells, numbered_output_texts
from checked_with import last_commit
from docutils import nodes
from printed_by import imported_functions, printed_by, used_names
from prose_rules import FORMULA, Page, Position

# Headings are link targets themselves, and a link cannot stand in another one.
NOT_LINKED = re.compile(r"^#+ [^\n]*|\[[^\]]*\]\([^)]*\)|\$\$.*?\$\$|^```.*?^```", re.M | re.S)


def setup(app):
    app.connect("builder-inited", add_the_cards)
    app.connect("source-read", link_numbers)
    app.connect("doctree-read", name_outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_the_cards(app):
    if app.builder.name == "html":
        app.add_js_file("live/numbers.js", loading_method="defer")
        app.add_css_file("live/numbers.css")


def link_numbers(app, docname, source):
    """Put the links into the source of a notebook before its Markdown is parsed."""
    path = Path(app.env.doc2path(docname))
    if app.builder.name == "html" and path.suffix == ".ipynb":
        notebook = nbformat.reads(source[0], as_version=4)
        add_links(path.stem, notebook)
        source[0] = nbformat.writes(notebook)


def add_links(name, notebook):
    """Link the numbers of Markdown cells and captions; append what the cards show."""
    page, positions = Page(name, notebook), set()
    for cell in markdown_cells(notebook):
        cell.source = linked(page, cell.id, cell.source, positions)
    for cell in code_cells(notebook):
        caption = captions(cell)["caption"]
        if caption:
            figure = cell.metadata.mystnb.figure
            figure.caption = linked(page, f"{cell.id}, caption", caption, positions)
        cell.metadata["cell_id"] = cell.id
    cells = {cell.id: cell for cell in code_cells(notebook)}
    imported = imported_functions(cells.values())
    content = {
        "commit": last_commit("%h"),
        "cards": {
            address(one): card(cells[one.cell], one, imported) for one in sorted(positions, key=str)
        },
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    script = f'<script type="application/json" id="number-cards">{text}</script>'
    notebook.cells.append(nbformat.v4.new_markdown_cell(script))


def linked(page, place, text, positions):
    """Return a text with its numbers as links, and add the positions to those given."""
    for start, end, some in reversed(links(page, place, text)):
        positions.update(some)
        at = " ".join(map(address, some))
        label = text[start:end].strip("$`")
        spoken = "" if label == text[start:end] else f' aria-label="{escape(label)}"'
        opening = f'<a class="number" href="#cell-{some[0].cell}" data-at="{at}"{spoken}>'
        text = f"{text[:start]}{opening}{text[start:end]}</a>{text[end:]}"
    return text


def links(page, place, text):
    """Return [(start, end, positions)] of the passages that become links."""
    formulas = [match.span() for match in FORMULA.finditer(text)]
    barred = [match.span() for match in NOT_LINKED.finditer(text)]
    found = {}
    for number, support in page.findings(place, text):
        if isinstance(support, Position) and not around(barred, number.start):
            own = number.start, number.start + len(number.text)
            span = around(formulas, number.start) or own
            found.setdefault(span, []).append(support)
    return [(*span, list(dict.fromkeys(some))) for span, some in sorted(found.items())]


def around(spans, at):
    """Return the span around a character, or None."""
    return next((span for span in spans if span[0] <= at < span[1]), None)


def address(position):
    """Return a position as the pages write it."""
    output = "code" if position.output is None else position.output
    return f"{position.cell}/{output}/{position.line}/{position.token}"


def card(cell, position, imported):
    """Return what a card shows: a line, or where in a table; code; functions of the package."""
    if position.output is None:
        line = cell.source.splitlines()[position.line].strip()
        return {"line": line, "by": used_names(re.findall(r"\w+", line), imported)}
    text = dict(numbered_output_texts(cell))[position.output]
    line = text.splitlines()[position.line]
    code, names = printed_by(cell.source, text, position, imported)
    shown = {"code": code, "by": names}
    if line.startswith("|"):
        header = next(i for i, one in enumerate(text.splitlines()) if one.startswith("|"))
        number = line[position.start : position.end]
        return shown | {
            "row": max(0, position.line - header - 1),
            "column": position.column,
            "number": number,
        }
    return shown | {"line": line.strip("*")}


def name_outputs(app, doctree):
    """Give the containers of outputs the names that the notebook has for their cells."""
    if app.builder.name != "html":
        return
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") != "cell_code":
            continue
        name = cell["cell_metadata"]["cell_id"]
        for part in cell.children:
            if part.get("nb_element") == "cell_code_output":
                for index, output in enumerate(part.children):
                    readable_part(output)["ids"].append(f"out-{name}-{index}")


def readable_part(output):
    """Return the part of an output that a position can be in: its table or its text."""
    if output.get("nb_element") != "mime_bundle":
        return output
    markdown = next((one for one in output.children if one["mime_type"] == "text/markdown"), output)
    return next(markdown.findall(nodes.table), markdown.children[0])
