"""Sphinx extension: code and printed lines in one quiet fold below what they produced.

A code cell with the tag `evidence` gives its figures and tables to the page. What else it has, the
code and the printed lines, lies in a fold below them. Cells that follow each other share one fold.
A cell that shows nothing joins a fold of its section, the next one if there is one. A solution has
the tag `hide-cell` and a fold of its own.

    <div class="results"><div class="cell_output" id="shown-NAME">figure, table</div></div>
    <details class="evidence"><summary>How this figure was computed · 9 lines</summary>
      <div class="cell" id="cell-NAME" data-order="3">cell_input, cell_output</div>
    </details>

NAME is the notebook's id of the cell; every code cell of a page has its `cell-NAME`.
"""

import nbformat
from docutils import nodes
from sphinx.addnodes import start_of_file
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform


def setup(app):
    app.add_node(Cell, html=(visit_cell, depart_cell))
    app.add_node(Fold, html=(visit_fold, depart_fold))
    app.add_transform(NameCells)
    app.add_post_transform(FoldEvidence)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Cell(nodes.container):
    """A code cell that knows its place in the notebook."""


class Fold(nodes.General, nodes.Element):
    """A closed box with a summary: the evidence for something shown, or a solution."""


def visit_cell(translator, node):
    order = {"data-order": node["cell_index"]}
    translator.body.append(translator.starttag(node, "div", CLASS="docutils container", **order))


def depart_cell(translator, node):
    translator.body.append("</div>\n")


def visit_fold(translator, node):
    summary = translator.encode(node["summary"])
    translator.body.append(translator.starttag(node, "details") + f"<summary>{summary}</summary>\n")


def depart_fold(translator, node):
    translator.body.append("</details>\n")


class NameCells(SphinxTransform):
    """Make a `Cell` with the id `cell-NAME` of each code cell, before links are resolved."""

    default_priority = 200

    def apply(self):
        """Look the ids up in the notebook; MyST-NB keeps only the index of a cell."""
        cells = code_cells(self.document)
        if not cells:
            return
        notebook = nbformat.read(self.env.doc2path(self.env.docname), as_version=4)
        for cell in cells:
            name = f"cell-{notebook.cells[cell['cell_index']].id}"
            named = Cell("", *cell.children, **cell.attributes | {"ids": [name]})
            put_in_place(cell, named)
            self.document.ids[name] = named


class FoldEvidence(SphinxPostTransform):
    """Put the evidence below what it produced, and solutions into folds."""

    default_priority = 100  # after the choice of outputs, before MyST-NB folds by its own tags
    formats = ("html",)

    def run(self):
        """Fold the evidence page by page; the single page has all of them in one tree."""
        pages = {}
        for run in runs(self.document):
            page = around(run[0], (start_of_file, nodes.document))
            pages.setdefault(page, []).append(run)
        for page, found in pages.items():
            fold_evidence(page, found)
        for cell in code_cells(self.document):
            if cell.attributes.get("hide_mode") == "all":
                del cell["hide_mode"]
                fold = Fold(classes=["solution"], summary="Solution")
                put_in_place(cell, fold)
                fold.append(cell)


def fold_evidence(page, found):
    """Fold runs of tagged cells, and let those that show nothing join another."""
    folds, homeless = [], []
    for run in found:
        results = [shown for cell in run if (shown := take_results(cell)).children]
        fold = Fold(classes=["evidence"], cells=run, results=results)
        fold["section"], fold["at"] = around(run[0], nodes.section), run[0]["cell_index"]
        if results:
            put_in_place(run[0], nodes.container("", *results, classes=["results"]), fold)
            folds.append(fold)
        else:
            put_in_place(run[0])
            homeless.append(fold)
        for cell in run[1:]:
            cell.parent.remove(cell)
    for fold in homeless:
        if folds:
            home(fold, folds)["cells"] += fold["cells"]
        else:
            page.append(fold)
            folds = [fold]
    for fold in folds:
        fold.extend(sorted(fold["cells"], key=lambda cell: cell["cell_index"]))
        fold["summary"] = summary(fold)


def put_in_place(node, *others):
    """Replace a node; unlike `replace_self` this hands no ids and classes on."""
    at = node.parent.index(node)
    node.parent[at : at + 1] = others


def code_cells(document):
    return [
        node for node in document.findall(nodes.container) if node.get("nb_element") == "cell_code"
    ]


def runs(document):
    """Return lists of tagged cells that follow each other with nothing between them."""
    found = []
    for cell in code_cells(document):
        if "evidence" in cell["cell_metadata"].get("tags", ()):
            if found and neighbour(found[-1][-1]) is cell:
                found[-1].append(cell)
            else:
                found.append([cell])
    return found


def neighbour(node):
    """Return the node after this one that a reader sees."""
    for after in node.findall(descend=False, siblings=True):
        if after is not node and not isinstance(after, nodes.Invisible):
            return after
    return None


def take_results(cell):
    """Move what a cell shows besides printed text into a box of its own and return that box."""
    name = cell["ids"][0].removeprefix("cell-")
    shown = nodes.container(classes=["cell_output"], ids=[f"shown-{name}"])
    for output in [node for node in cell if node.get("nb_element") == "cell_code_output"]:
        for node in list(output):
            if "output" not in node.get("classes", ()):
                output.remove(node)
                shown.append(node)
        if not output.children:
            cell.remove(output)
    return shown


def around(node, kind):
    """Return the innermost node of a kind, or one of several kinds, around this one."""
    while node is not None and not isinstance(node, kind):
        node = node.parent
    return node


def home(fold, folds):
    """Return the fold to join: the next of the section, else its last, else the next at all."""
    near = [one for one in folds if one["section"] is fold["section"]]
    after = [one for one in near if one["at"] > fold["at"]]
    if near:
        return after[0] if after else near[-1]
    return next((one for one in folds if one["at"] > fold["at"]), folds[-1])


def summary(fold):
    """Return the author's words or our own, and how much the fold holds."""
    own = [
        cell["cell_metadata"]["evidence"] for cell in fold if "evidence" in cell["cell_metadata"]
    ]
    code = count_lines(fold, "cell_code_source")
    printed = count_lines(fold, "cell_code_output")
    size = plural(code, "line") + (f", {plural(printed, 'line')} of output" if printed else "")
    return f"{own[0] if own else words(fold['results'])} · {size}"


def words(results):
    """Say what was computed: `How this figure was computed`."""
    counts = {
        kind: sum(1 for box in results for _ in box.findall(node))
        for kind, node in (("figure", nodes.figure), ("table", nodes.table))
    }
    parts = [
        f"this {kind}" if count == 1 else f"these {kind}s"
        for kind, count in counts.items()
        if count
    ] or ["these numbers"]
    was = "was" if parts[0].startswith("this") and len(parts) == 1 else "were"
    return f"How {' and '.join(parts)} {was} computed"


def count_lines(fold, element):
    return sum(
        bool(line.strip())
        for box in fold.findall(nodes.container)
        if box.get("nb_element") == element
        for text in box.findall(nodes.literal_block)
        for line in text.astext().splitlines()
    )


def plural(count, word):
    return f"{count} {word}" + "s" * (count != 1)
