r"""Find the numbers in the prose of a notebook and say which of them nothing supports.

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
"""

import bisect
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from book_pages import captions, code_cells, markdown_cells, output_texts

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


class Evidence:
    """What the code and the outputs of some cells offer in support of numbers."""

    def __init__(self, cells):
        self.results, self.values, self.code, self.output = set(), {}, [], []
        self.words = set()
        for cell in cells:
            for line in cell.source.splitlines():
                self._add_line(self.code, line)
            for text in output_texts(cell):
                self.results |= number_texts(text)
                self._add_table(text)
                for line in text.splitlines():
                    self._add_line(self.output, line)

    def _add_line(self, lines, line):
        found = number_texts(line)
        lines.append(found)
        self.words.update(re.findall(r"\w+", line))
        for word in re.findall(r"[A-Za-z]+", line):
            self.values.setdefault(word, set()).update(found)

    def _add_table(self, text):
        caption, *lines = text.splitlines()
        rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
        for row in rows:
            self.output.append(number_texts(" | ".join([caption, *rows[0], *row])))
        for header, *column in zip(*rows, strict=True) if rows else ():
            for word in re.findall(r"[A-Za-z]+", header):
                self.values.setdefault(word, set()).update(*map(number_texts, column))

    def bears_out(self, number, known, results, parameters):
        """Return whether the number is known here and stands where its sentence puts it."""
        lines = self.output if results else self.code + self.output
        others = (results or parameters) - {number}
        times = {other: sum(other in line for line in lines) for other in others}
        rarest = {other for other in others if times[other] == min(times.values())}
        return number in known and (
            not others or any(number in line and line & rarest for line in lines)
        )


class Page:
    """A notebook: its prose, and the evidence for the numbers in it."""

    def __init__(self, name, notebook):
        self.name, self.chapter = name, str(int(name[:2]))
        self.prose = prose(notebook)
        self.everywhere = Evidence(code_cells(notebook))
        self.nearby = {}
        for i, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                own = Evidence([cell])
                self.nearby |= {f"{cell.id}, caption": own, f"{cell.id}, alt": own}
            else:
                before = [c for c in notebook.cells[:i] if c.cell_type == "code"][-NEARBY:]
                after = [c for c in notebook.cells[i:] if c.cell_type == "code"][:NEARBY]
                self.nearby[cell.id] = Evidence(before + after)

    def supports(self, place, number, sentence=()):
        """Return whether the notebook bears out a number (for counters see `out_of_order`)."""
        if number.kind == "reference":
            return number.text.replace(".", "") == number.owner
        if number.kind == "loose":
            return False
        if number.kind == "report":
            return number.text == number.owner
        if number.kind == "equation":
            return (number.owner, number.text) in EQUATIONS
        if number.kind == "heading":
            return number.text.split(".")[0] == self.chapter
        if number.kind == "name":
            return number.text in NAMES or number.text in self.everywhere.words
        if number.kind in ("exercise", "list item"):
            return True
        nearby = self.nearby[place]
        known = nearby.results
        if number.kind == "result" and significant_digits(number.text) >= 3:
            return number.text in known
        if number.kind == "parameter":
            known = nearby.values.get(GREEK.get(number.owner, number.owner), ())
        results = {other.text for other in sentence if other.kind == "result"}
        parameters = {other.text for other in sentence if other.kind == "parameter"}
        return nearby.bears_out(number.text, known, results, parameters)

    def unsupported(self, texts=None):
        """Return [(place, number)] for all numbers that no rule and no exception covers."""
        texts = texts or self.prose
        found = [(place, number) for place, text in texts.items() for number in numbers(text)]
        wrong = out_of_order(found)
        for place, text in texts.items():
            for sentence in sentences(text):
                wrong += [(place, n) for n in sentence if not self.supports(place, n, sentence)]
        return [
            (place, number)
            for place, number in wrong
            if not excepted(self.name, texts[place], number)
        ]


def number_texts(text):
    """Return the numbers of an output or a line of code, in every form that prose may use."""
    found = set()
    for match in NUMBER.finditer(text):
        whole = match[0]
        parts = {whole, *whole.rstrip("%×").split("/")} if "/" in whole else {whole}
        found |= parts | {part.removeprefix("+") for part in parts}
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
