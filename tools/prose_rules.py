r"""Find the numbers in the prose of a notebook and say what supports each of them.

Prose is every Markdown cell, and every caption and alternative text of a figure. A number in it
is of one of these kinds, tried in this order:

heading     `## 3.1 The ...`: the chapter's own number, counting up
exercise    `**2.**` at the start of a line: counting up within the notebook
list item   `2. ` at the start of a line: counting up within the list
reference   `[chapter 3](...)`, `[section 3.1](...)`: the number of the page or heading linked to
report      `[trl #2703](...)`: the number that the address of the report ends with
equation    `Eq. 4` after a citation: listed below, with what the equation is
name        `k3`, `float32`: a word of the notebook's code or outputs, or listed below
parameter   `G = 4`, `eps=1e-8`, also in mathematics and in code: a line of code or output nearby,
            or a column of an output table nearby, that has this name has this value
result      everything else: stands, to the character, in an output nearby. A plus sign may be
            left out, and both sides of 182/512 may stand alone.
loose       digits that belong to none of these, as in 7x: never right

Nearby are the two code cells before and the two after, and for a caption its own cell. Where a
sentence has several numbers, a parameter or a result of one or two significant digits also has to
share a line of output nearby with another result of the sentence, the one that stands on the
fewest lines: it is p = 0.9, not p = 0.7, that stands beside 65.6%. A row of a table counts as one
line with the table's caption and headings. In a sentence of parameters alone, lines of code count
too.

Not looked at: whole numbers inside mathematics and code (the 2 of $2^G$ is part of the formula),
the targets of links and citations, which the build of the pages checks.

`prose_exceptions.toml` lists the passages that are right for another reason.

`Page.support` gives for a parameter and a result the position that bears it out: of the positions
that these rules allow, the one whose line has most of the sentence's other numbers, and of these
the nearest. The tests ask whether there is one; the links of the pages lead to it.
"""

import bisect
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

from book_pages import captions, code_cells, markdown_cells, numbered_output_texts

EQUATIONS = {
    ("shao2024deepseekmath", "4"): "the estimator of the KL divergence",
}
NAMES = {"GSM8K": "the data set of grade-school problems", "r1": "the end of open-r1, a repository"}
EXCEPTIONS = tomllib.loads(
    Path(__file__).with_name("prose_exceptions.toml").read_text(encoding="utf-8")
)["exception"]

VALUE = r"[+-]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
NUMBER = re.compile(rf"(?<![\w.])(?<!\d[,/])(?:{VALUE})(?:/\d+)?[%×]?(?![\w])")
PAIR = re.compile(rf"(?<![A-Za-z])(?P<name>[A-Za-z_]+)\$?\s*=\s*\$?(?P<value>{VALUE})(?![\w%×/])")
NAME = re.compile(r"(?<![\w\\])(?P<value>[A-Za-z]+\d+[A-Za-z]?)(?!\w)")
HEADING = re.compile(r"^#+ (?P<value>\d+(?:\.\d+)?) ", re.M)
EXERCISE = re.compile(r"^\*\*(?P<value>\d+)\.\*\*", re.M)
LIST_ITEM = re.compile(r"^(?P<value>\d+)\. ", re.M)
REFERENCE = re.compile(
    r"\[(?:[Cc]hapter|[Ss]ection) (?P<value>\d+(?:\.\d+)?)\]"
    r"\((?P<target>\d\d)_\w+\.ipynb(?:#(?P<anchor>\d*))?"
)
REPORT = re.compile(r"\[[\w.-]+ #(?P<value>\d+)\]\(https://github\.com/[\w./-]+/(?P<target>\d+)\)")
EQUATION = re.compile(r"\{cite:p\}`(?P<work>\w+)`,? Eq\. (?P<value>\d+)")
IGNORED = re.compile(r"\]\([^)]*\)|\{cite:p\}`[^`]*`|^:::.*$|^```.*$", re.M)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]+\$|`[^`]+`|^```.*?^```", re.M | re.S)
IN_FORMULA = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+|(?:\.\d+)?[eE][+-]?\d+)(?![\w.])")
LOOSE = re.compile(r"\d+")
STOPS = re.compile(r"# @param .*")  # the values that a reader may choose support none
GREEK = {"epsilon": "eps"}
NEARBY = 2
NOTICED = 0.99  # the share of changed last digits that the rules have to notice


@dataclass(frozen=True)
class Number:
    """A number in a text: its kind and characters, where it begins, what it belongs to."""

    kind: str
    text: str
    start: int
    owner: str = ""


@dataclass(frozen=True)
class Position:
    """Where a number stands in the code (`output` is None) or in an output of a cell.

    `token` counts the numbers of the line, see `tokens`; `start` and `end` are its characters,
    `column` its column if the line is the row of a table.
    """

    cell: str
    output: int | None
    line: int
    token: int
    start: int
    end: int
    column: int | None = None


@cache
def numbers(text):
    """Return every number of a text, in order, each once."""
    found = []

    def take(pattern, kind, group="value", owner=lambda match: ""):
        nonlocal text
        for match in list(pattern.finditer(text)):
            found.append(Number(kind, match[group], match.start(group), owner(match)))
            text = blank(text, *match.span(group))

    take(HEADING, "heading")
    take(EXERCISE, "exercise")
    take(LIST_ITEM, "list item")
    take(EQUATION, "equation", owner=lambda match: match["work"])
    take(REFERENCE, "reference", owner=lambda match: match["anchor"] or str(int(match["target"])))
    take(REPORT, "report", owner=lambda match: match["target"])
    for match in list(IGNORED.finditer(text)):
        text = blank(text, *match.span())
    take(NAME, "name")
    take(PAIR, "parameter", owner=lambda match: match["name"])
    for formula in list(FORMULA.finditer(text)):
        for match in IN_FORMULA.finditer(text, *formula.span()):
            found.append(Number("result", match[0], match.start()))
        text = blank(text, *formula.span())
    take(NUMBER, "result", group=0)
    take(LOOSE, "loose", group=0)
    return sorted(found, key=lambda number: number.start)


@cache
def sentences(text):
    """Return the numbers of a text, gathered sentence by sentence."""
    ends = [match.end() for match in re.finditer(r"[.?!:;]\s|\n\n|\n- |$", text)]
    gathered = [[] for _ in ends]
    for number in numbers(text):
        gathered[bisect.bisect_right(ends, number.start)].append(number)
    return gathered


def blank(text, start, end):
    """Overwrite a passage with a character that belongs to no number and no name."""
    return text[:start] + "\0" * (end - start) + text[end:]


def prose(notebook):
    """Return {place: text} for everything the rules apply to."""
    texts = {cell.id: cell.source for cell in markdown_cells(notebook)}
    for cell in code_cells(notebook):
        texts.update({f"{cell.id}, {kind}": text for kind, text in captions(cell).items() if text})
    return texts


class Line:
    """A line of code or output, or the row of a table with the table's caption and headings."""

    def __init__(self, *parts):
        self.positions = {}
        for part in parts:
            for text, positions in part.items():
                self.positions.setdefault(text, []).extend(positions)


class CellEvidence:
    """What the code and the outputs of one cell offer in support of numbers."""

    def __init__(self, cell):
        self.id = cell.id
        self.code, self.output, self.values, self.words = [], [], {}, set()
        for i, line in enumerate(cell.source.splitlines()):
            self.code.append(self._line(None, i, STOPS.sub("", line)))
        for output, text in numbered_output_texts(cell):
            lines = text.splitlines()
            for i, line in enumerate(lines):
                self.output.append(self._line(output, i, line))
            self._add_table(output, lines)

    def _line(self, output, i, text):
        line = Line(self._positions(output, i, text))
        self.words.update(re.findall(r"\w+", text))
        for word in set(re.findall(r"[A-Za-z]+", text)):
            self._add_values(word, line.positions)
        return line

    def _positions(self, output, i, text):
        """Return {form of a number: its positions in a line}."""
        found, row = {}, text.startswith("|")
        for token, (form, start, end) in enumerate(tokens(text)):
            column = text.count("|", 0, start) - 1 if row else None
            position = Position(self.id, output, i, token, start, end, column)
            for variant in {form, form.removeprefix("+")}:
                found.setdefault(variant, []).append(position)
        return found

    def _add_table(self, output, lines):
        rows = [i for i, line in enumerate(lines) if i and line.startswith("|")]
        if not rows:
            return
        caption, header = (self._positions(output, i, lines[i]) for i in (0, rows[0]))
        names = lines[rows[0]].strip("|").split("|")
        for i in rows:
            row = self._positions(output, i, lines[i])
            self.output.append(Line(caption, header, row))
            for column, name in enumerate(names if i != rows[0] else ()):
                own = {
                    text: [one for one in positions if one.column == column]
                    for text, positions in row.items()
                }
                for word in re.findall(r"[A-Za-z]+", name):
                    self._add_values(word, {text: some for text, some in own.items() if some})

    def _add_values(self, word, positions):
        values = self.values.setdefault(word, {})
        for text, some in positions.items():
            values.setdefault(text, []).extend(some)


class Evidence:
    """What some cells, the nearest first, offer in support of numbers."""

    def __init__(self, cells):
        self.cells = cells
        self.distance = {cell.id: distance for distance, cell in enumerate(cells)}
        self.output = [line for cell in cells for line in cell.output]
        self.code = [line for cell in cells for line in cell.code]

    def position(self, number, sentence):
        """Return the nearest position that bears a parameter or a result out, or None."""
        known = self._known(number)
        results = {other.text for other in sentence if other.kind == "result"}
        parameters = {other.text for other in sentence if other.kind == "parameter"}
        lines = self.output if results or number.kind == "result" else self.code + self.output
        others = (results or parameters) - {number.text}
        if not known:
            return None
        if not others or (number.kind == "result" and significant_digits(number.text) >= 3):
            allowed = [*known, *self._on(lines, number.text)] if number.kind == "result" else known
        else:
            times = {other: sum(other in line.positions for line in lines) for other in others}
            rarest = {other for other in others if times[other] == min(times.values())}
            allowed = self._on([one for one in lines if rarest & one.positions.keys()], number.text)
        shared = dict.fromkeys(allowed, 0)
        for line in lines:
            together = len((results | parameters) & line.positions.keys())
            for position in line.positions.get(number.text, ()):
                if position in shared:
                    shared[position] = max(shared[position], together)
        return min(
            shared,
            key=lambda one: (
                one not in known,
                -shared[one],
                self.distance[one.cell],
                one.output is None,
                one.output or 0,
                one.line,
                one.token,
            ),
            default=None,
        )

    def _known(self, number):
        """Return where the number stands: a result in outputs, a parameter beside its name."""
        if number.kind == "result":
            return set(self._on(self.output, number.text))
        name = GREEK.get(number.owner, number.owner)
        values = [cell.values.get(name, {}).get(number.text, ()) for cell in self.cells]
        return {position for some in values for position in some}

    @staticmethod
    def _on(lines, text):
        return [position for line in lines for position in line.positions.get(text, ())]


class Page:
    """A notebook: its prose, and the evidence for the numbers in it."""

    def __init__(self, name, notebook):
        self.name, self.chapter = name, str(int(name[:2]))
        self.prose = prose(notebook)
        evidence = {cell.id: CellEvidence(cell) for cell in code_cells(notebook)}
        self.words = set().union(*(cell.words for cell in evidence.values()))
        self.nearby, self._findings = {}, {}
        for i, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                own = Evidence([evidence[cell.id]])
                self.nearby |= {f"{cell.id}, caption": own, f"{cell.id}, alt": own}
            else:
                before = [c.id for c in notebook.cells[:i] if c.cell_type == "code"][::-1][:NEARBY]
                after = [c.id for c in notebook.cells[i:] if c.cell_type == "code"][:NEARBY]
                nearest_first = [one for pair in zip_longest(before, after) for one in pair if one]
                self.nearby[cell.id] = Evidence([evidence[one] for one in nearest_first])

    def support(self, place, number, sentence=()):
        """Return the position that bears a number out, or whether its kind's rule holds.

        For counters, which `out_of_order` checks, that is always so.
        """
        match number.kind:
            case "reference":
                return number.text.replace(".", "") == number.owner
            case "report":
                return number.text == number.owner
            case "equation":
                return (number.owner, number.text) in EQUATIONS
            case "heading":
                return number.text.split(".")[0] == self.chapter
            case "name":
                return number.text in NAMES or number.text in self.words
            case "parameter" | "result":
                return self.nearby[place].position(number, sentence)
        return number.kind in ("exercise", "list item")

    def findings(self, place, text):
        """Return [(number, its support)] of a text that stands in this place."""
        if (place, text) not in self._findings:
            self._findings[place, text] = [
                (number, self.support(place, number, sentence))
                for sentence in sentences(text)
                for number in sentence
            ]
        return self._findings[place, text]

    def unsupported(self, texts=None):
        """Return [(place, number)] for all numbers that no rule and no exception covers."""
        texts = texts or self.prose
        found = [(place, number) for place, text in texts.items() for number in numbers(text)]
        wrong = out_of_order(found)
        for place, text in texts.items():
            wrong += [(place, number) for number, it in self.findings(place, text) if not it]
        return [
            (place, number)
            for place, number in wrong
            if not excepted(self.name, texts[place], number)
        ]


def tokens(line):
    """Return [(text, start, end)] of the numbers of a line: 182/512 whole, then 182, then 512."""
    found = []
    for match in NUMBER.finditer(line):
        found.append((match[0], *match.span()))
        if "/" in match[0]:
            middle = line.index("/", match.start())
            end = match.start() + len(match[0].rstrip("%×"))
            found.append((line[match.start() : middle], match.start(), middle))
            found.append((line[middle + 1 : end], middle + 1, end))
    return found


def significant_digits(text):
    """Return the number of digits from the first that is not zero, without an exponent."""
    return len(re.sub(r"[eE].*|\D", "", text).lstrip("0"))


def out_of_order(found):
    """Return the headings, exercises and list items that do not count up by one."""
    wrong, last = [], {}
    for place, number in found:
        if number.kind not in ("heading", "exercise", "list item"):
            continue
        key = (number.kind, place if number.kind == "list item" else "")
        chapter, _, section = number.text.partition(".")
        count = int(section or 0) if number.kind == "heading" else int(chapter)
        if count != last.get(key, -1 if number.kind == "heading" else 0) + 1:
            wrong.append((place, number))
        last[key] = count
    return wrong


def excepted(name, text, number):
    """Return whether the number lies inside a passage listed as an exception."""
    return any(
        exception["notebook"] == name and match.start() <= number.start < match.end()
        for exception in EXCEPTIONS
        for match in re.finditer(re.escape(exception["passage"]), text)
    )
