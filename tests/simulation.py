r"""Find the sentences of a notebook that rest on a simulation alone.

A name is random if it is `rng` or `default_rng`, or bound by a statement that uses a random name.
A code cell simulates if it uses one (importing and making a generator aside). A line of its output
is covered if it names an exact value beside the simulated one: it holds a word of `EXACT`, or is
in a table with a column of that name.

A sentence rests on a simulation if one of its results stands in an output nearby of a cell that
simulates, and in no covered line nor output of another cell nearby, and has no `± error` after it
(which `prose.py` finds in an output); or if it stands right beside
such a cell and holds a word of `COMPARISON`. Nearby is as in `prose.py`. What is in
`data/simulated_statements.toml` has its standard error there, or the reason why it needs none.
"""

import ast
import re
import tomllib
from pathlib import Path

from book_pages import code_cells, output_texts
from prose_rules import NEARBY, numbers, prose, tokens

EXACT = re.compile(r"\b(exact|expected|true|by hand|formula)\b", re.I)
COMPARISON = re.compile(r"\b(ahead|behind|better|worse|faster|slower|wins|loses)\b(?! this book)")
STATEMENTS = tomllib.loads(
    (Path(__file__).parent / "data" / "simulated_statements.toml").read_text(encoding="utf-8")
)["statement"]


def names(tree, context):
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }


def simulating(notebook):
    """Return the ids of the code cells that use what was drawn."""
    random, found = {"rng", "default_rng"}, set()
    for cell in code_cells(notebook):
        for statement in ast.parse(cell.source).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            bound = names(statement, ast.Store)
            for loop in ast.walk(statement):
                if isinstance(loop, ast.For | ast.comprehension):
                    bound -= names(loop.target, ast.Store) if not uses(loop.iter, random) else set()
            if isinstance(statement, ast.FunctionDef):
                bound = {statement.name}
            if uses(statement, random):
                random |= bound
                found |= {cell.id} - {"setup"}
            else:
                random -= bound - {"rng"}
    return found


def uses(tree, random):
    """Return whether a statement or an expression has a random name in it."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return bool(names(tree, ast.Load) & random or "default_rng" in attributes)


def results(cell, simulates):
    """Return the numbers of a cell's outputs: simulated alone, and covered or exact."""
    alone, covered = set(), set()
    for text in output_texts(cell):
        header = next((line for line in text.splitlines() if line.startswith("|")), "")
        for line in text.splitlines():
            exact = not simulates or EXACT.search(line) or EXACT.search(header)
            (covered if exact else alone).update(number_texts(line))
    return alone, covered


def resting_on_simulation(notebook):
    """Return [(place, sentence)] of all sentences that rest on a simulation alone."""
    drawn, found, texts = simulating(notebook), [], prose(notebook)
    for i, cell in enumerate(notebook.cells):
        before, after = around(notebook, i)
        alone, covered = set(), set()
        for other in before + after:
            drawn_alone, exact = results(other, other.id in drawn)
            alone |= drawn_alone
            covered |= exact
        next_to = any(other.id in drawn for other in before[-1:] + after[:1])
        for place in (cell.id, f"{cell.id}, caption", f"{cell.id}, alt"):
            text = texts.get(place, "")
            for start, sentence in split(text):
                values = {
                    number.text
                    for number in numbers(text)
                    if number.kind == "result" and start <= number.start < start + len(sentence)
                }
                with_error = {v for v in values if f"{v} ± " in sentence or f"± {v}" in sentence}
                unsure = values & (alone - covered) - with_error
                compared = next_to and COMPARISON.search(sentence)
                if (unsure or compared) and not with_error:
                    found.append((place, sentence))
    return found


def split(text):
    """Return the sentences of a text with the places at which they begin."""
    ends = [match.end() for match in re.finditer(r"(?<!Dr)[.?!]\**\s|\n\n|\n- |$", text)]
    return [
        (start, text[start:end])
        for start, end in zip([0, *ends], ends, strict=False)
        if text[start:end].strip()
    ]


def around(notebook, i):
    """Return the code cells nearby, before and after; for a figure's caption its own."""
    cells = notebook.cells
    if cells[i].cell_type == "code":
        return [cells[i]], []
    before = [c for c in cells[:i] if c.cell_type == "code"]
    return before[-NEARBY:], [c for c in cells[i:] if c.cell_type == "code"][:NEARBY]


def near_outputs(notebook, place):
    """Return the outputs of the code cells near a place."""
    i = next(i for i, c in enumerate(notebook.cells) if c.id == place.split(", ")[0])
    before, after = around(notebook, i)
    return [text for cell in before + after for text in output_texts(cell)]


def number_texts(line):
    """Return the numbers of a line of output, in every form that prose may use."""
    return {form for text, *_ in tokens(line) for form in (text, text.removeprefix("+"))}
