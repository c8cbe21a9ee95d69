"""Break copies of the book on purpose, and count which breaks the checks notice.

    python tools/mutate.py                        every kind, a sample of each
    python tools/mutate.py --kind "digit in prose" --sample 200

Each change is made alone, to a copy of the project, and the checks that can see its kind are run
there. A check that stays green lets the change survive. Which changes are tried depends on --seed
alone. `KINDS` is the table of kinds; a further kind is one function and one line.
"""

import argparse
import ast
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LEFT_HERE = (
    ".git",
    ".venv",
    "oldest",
    "newest",
    "_build",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
)
NODE_MODULES = "web/node_modules"  # large, and no change is made to it: linked
PROSE = ("tests/test_prose.py::test_every_number_in_the_prose_is_supported[{name}]",)
FIGURES = ("tests/test_figures.py", "{file}", "-k", "{name}")
HYGIENE = ("tests/test_notebooks.py",)
MODULES = (
    *("groups", "loss", "kl", "advantage", "dataset", "exact", "step", "train", "conventions"),
    *("bad_input", "field_reports", "identification"),
)
# The tests of the package alone; without the conftest, which would pack the changed package.
PACKAGE = ("--noconftest", *map("tests/test_{}.py".format, MODULES))
DIGIT = re.compile(r"\d")
NO_NUMBER = re.compile(
    r"\]\([^)]*\)|\{[^}]*\}`[^`]*`"  # targets of links, citations
    r"|\$\$[\s\S]*?\$\$|\$[^$]*\$|`[^`]*`"  # formulas and code
    r"|^(?:#+ |\*\*)?\d+\. ?.*|[A-Za-z]\d+",  # headings, list items, names
    re.M,
)


class Change(NamedTuple):
    """A file of the project, its new text, and in words what is other there."""

    file: str
    text: str
    what: str


def notebooks(root):
    """Return [(name of the file, notebook)] of all chapters, each time read anew."""
    paths = sorted((root / "chapters").glob("*.ipynb"))
    return [
        (path.relative_to(root).as_posix(), json.loads(path.read_text("utf-8"))) for path in paths
    ]


def as_written(notebook):
    """Return a notebook as nbformat writes it, so that its form gives nothing away."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def other_digit(match, rng):
    return rng.choice([digit for digit in "0123456789" if digit != match[0]])


def substituted(text, match, new):
    return text[: match.start()] + new + text[match.end() :]


def outputs(cell):
    """Return [(dictionary, key)] of all texts and tables among the outputs of a cell."""
    found = [(out, "text") for out in cell.get("outputs", []) if "text" in out]
    for out in cell.get("outputs", []):
        found += [(out["data"], key) for key in out.get("data", {}) if key == "text/markdown"]
    return found


def change_texts(root, rng, places, mutated):
    """Yield a change in one of the texts of a random chapter.

    `places(cell)` gives [(dictionary, key)], `mutated(text, rng)` the new text or None.
    """
    while True:
        file, notebook = rng.choice(notebooks(root))
        cells = [cell for cell in notebook["cells"] if places(cell)]
        if not cells:
            continue
        cell = rng.choice(cells)
        holder, key = rng.choice(places(cell))
        old = "".join(holder[key])
        new = mutated(old, rng)
        if new is None or new == old:
            continue
        holder[key] = new if isinstance(holder[key], str) else new.splitlines(keepends=True)
        at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
        before, after = (" ".join(text[max(0, at - 20) : at + 12].split()) for text in (old, new))
        yield Change(file, as_written(notebook), f"{cell['id']}: {before!r} became {after!r}")


def one_digit(text, rng):
    """Return a text with one digit of a number replaced; names, links and formulas are kept."""
    hidden = NO_NUMBER.sub(lambda match: "\0" * len(match[0]), text)
    found = list(DIGIT.finditer(hidden))
    if not found:
        return None
    match = rng.choice(found)
    return substituted(text, match, other_digit(match, rng))


def any_digit(text, rng):
    found = list(DIGIT.finditer(text))
    if not found or "0.00e+00" in text or "e-1" in text:  # see the rule `rounding` of nbval
        return None
    match = rng.choice(found)
    return substituted(text, match, other_digit(match, rng))


def digit_in_output(root, rng):
    return change_texts(root, rng, outputs, any_digit)


def digit_in_prose(root, rng):
    def places(cell):
        return [(cell, "source")] if cell["cell_type"] == "markdown" else []

    return change_texts(root, rng, places, one_digit)


def digit_in_caption(root, rng):
    def places(cell):
        figure = cell["metadata"].get("mystnb", {})
        texts = (figure.get("figure", {}), "caption"), (figure.get("image", {}), "alt")
        return [(holder, key) for holder, key in texts if key in holder]

    return change_texts(root, rng, places, one_digit)


def pictures(cell):
    data = [out.get("data", {}) for out in cell.get("outputs", [])]
    return [(one, "image/svg+xml") for one in data if "image/svg+xml" in one]


def moved_point(root, rng):
    def mutated(svg, rng):
        match = rng.choice(list(re.finditer(r"(?<=[ML] )\d+(?=\.\d+ \d+\.\d+)", svg)))
        return substituted(svg, match, str(int(match[0]) + 2))

    return change_texts(root, rng, pictures, mutated)


def deleted_path(root, rng):
    def mutated(svg, rng):
        return substituted(svg, rng.choice(list(re.finditer(r"<path [^>]*/>", svg))), "")

    return change_texts(root, rng, pictures, mutated)


def colour(root, rng):
    def mutated(svg, rng):
        match = rng.choice(list(re.finditer(r"#[0-9a-f]{6}", svg)))
        return substituted(svg, match, f"#{int(match[0][1:], 16) ^ 1:06x}")

    return change_texts(root, rng, pictures, mutated)


def change_notebooks(root, rng, mutated):
    """Yield a change of one code cell: `mutated(notebook, cell, rng)` says in words what it did."""
    while True:
        file, notebook = rng.choice(notebooks(root))
        cell = rng.choice([cell for cell in notebook["cells"] if cell["cell_type"] == "code"])
        what = mutated(notebook, cell, rng)
        if what:
            yield Change(file, as_written(notebook), f"{cell['id']}: {what}")


def removed_picture(root, rng):
    def mutated(notebook, cell, rng):
        if pictures(cell):
            cell["outputs"] = [o for o in cell["outputs"] if "image/svg+xml" not in str(o)]
            return "no picture"

    return change_notebooks(root, rng, mutated)


def cleared_output(root, rng):
    def mutated(notebook, cell, rng):
        if cell["outputs"]:
            cell["outputs"] = []
            return "no outputs"

    return change_notebooks(root, rng, mutated)


def null_count(root, rng):
    def mutated(notebook, cell, rng):
        cell["execution_count"], cell["outputs"] = None, []
        return "not run"

    return change_notebooks(root, rng, mutated)


def order_of_cells(root, rng):
    def mutated(notebook, cell, rng):
        cells = notebook["cells"]
        code = [i for i, one in enumerate(cells) if one["cell_type"] == "code"]
        i, j = rng.sample(code, 2)
        cells[i], cells[j] = cells[j], cells[i]
        return f"{cells[j]['id']} and {cells[i]['id']} exchanged"

    return change_notebooks(root, rng, mutated)


def seed(root, rng):
    return change_code(root, rng, r"(?<=default_rng\()\d+(?=\))")


def sample_size(root, rng):
    return change_code(root, rng, r"(?<=\b[a-z]{4}size=)\d\d+|(?<= = )\d[\d_]*000\b")


def change_code(root, rng, pattern):
    """Yield the number that the pattern finds in the code of a cell, one larger."""

    def mutated(notebook, cell, rng):
        source = "".join(cell["source"])
        found = list(re.finditer(pattern, source))
        if found:
            match = rng.choice(found)
            new = substituted(source, match, str(int(match[0]) + 1))
            cell["source"] = new.splitlines(keepends=True)
            return f"{match[0]} became {int(match[0]) + 1}"

    return change_notebooks(root, rng, mutated)


def change_file(root, rng, files, pattern, new):
    """Yield a change of what the pattern finds in the files; `new(match, rng)` replaces it."""
    places = []
    for path in sorted(path for file in files for path in root.glob(file)):
        text = path.read_text("utf-8")
        places += [(path, text, match) for match in re.finditer(pattern, text, re.M)]
    rng.shuffle(places)
    for path, text, match in places:
        line = text.count("\n", 0, match.start()) + 1
        replaced = new(match, rng)
        what = f"line {line}: {match[0].strip()[:40]!r} became {replaced.strip()[:40]!r}"
        yield Change(path.relative_to(root).as_posix(), substituted(text, match, replaced), what)


SIGNS = {" + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " < ": " <= ", " > ": " >= "}


def source_function(root, rng):
    signs = "|".join(map(re.escape, SIGNS))
    pattern = rf"(?<=[\w)\]])(?:{signs})(?=[\w(][^\"'`#.]*$)"
    files = ["src/grpo/[a-z]*.py"]
    for change in change_file(root, rng, files, pattern, lambda match, _: SIGNS[match[0]]):
        if not change.file.endswith("book.py") and is_code(root, change):
            yield change


def is_code(root, change):
    """Return whether a change is one of the program, not of a docstring or a comment."""

    def program(text):
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = ""
        return ast.dump(tree)

    return program((root / change.file).read_text("utf-8")) != program(change.text)


def readme_number(root, rng):
    return change_file(
        root,
        rng,
        ["README.md"],
        r"(?<=Python 3\.)\d\d(?= or newer)|\d\d(?= %)|Twenty-four(?= questions)|\bten(?= training)",
        lambda match, rng: str(int(match[0]) - 1) if match[0].isdigit() else "eleven",
    )


def dropped_chapter(root, rng):
    return change_file(root, rng, ["_toc.yml"], r"^ *- file: chapters/\d.*\n", lambda *_: "")


def execution_on(root, rng):
    pattern = r"(?<=execute_notebooks: )\"?off\"?"
    return change_file(root, rng, ["_config.yml"], pattern, lambda *_: "force")


def dead_link(root, rng):
    def places(cell):
        return [(cell, "source")] if cell["cell_type"] == "markdown" else []

    def mutated(text, rng):
        found = list(re.finditer(r"(?<=\]\()\d\d_\w+(?=\.ipynb)", text))
        return substituted(text, match := rng.choice(found), match[0] + "s") if found else None

    return change_texts(root, rng, places, mutated)


class Kind(NamedTuple):
    """What is changed, and the checks that can see it.

    In the checks, "{file}" stands for the changed file and "{name}" for its name.
    """

    changes: Callable
    checks: tuple


KINDS = {
    "digit in output": Kind(digit_in_output, ("{file}",)),
    "digit in prose": Kind(digit_in_prose, PROSE),
    "digit in caption": Kind(digit_in_caption, PROSE),
    "moved point": Kind(moved_point, FIGURES),
    "deleted path": Kind(deleted_path, FIGURES),
    "colour": Kind(colour, FIGURES),
    "removed picture": Kind(removed_picture, FIGURES),
    "source function": Kind(source_function, PACKAGE),
    "cleared output": Kind(cleared_output, (*HYGIENE, "{file}")),
    "null count": Kind(null_count, HYGIENE),
    "order of cells": Kind(order_of_cells, (*HYGIENE, "{file}")),
    "seed": Kind(seed, (*HYGIENE, "{file}")),
    "sample size": Kind(sample_size, ("{file}",)),
    "README number": Kind(readme_number, ("tests/test_readme.py",)),
    "dropped chapter": Kind(dropped_chapter, HYGIENE),
    "execution switched on": Kind(execution_on, ("tests/test_book_reports.py", "-k", "cache")),
    "dead link": Kind(dead_link, ("tests/test_html.py",)),
}


def copy_of_the_project(folder):
    """Return a copy in which a change does no harm."""
    root = Path(folder) / "copy"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*LEFT_HERE))
    if (ROOT / NODE_MODULES).exists():
        (root / NODE_MODULES).symlink_to(ROOT / NODE_MODULES)
    return root


def notices(root, checks, file):
    """Return whether the checks fail in the copy."""
    filled = [check.format(file=file, name=Path(file).stem) for check in checks]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [*command, *filled], cwd=root, env=environment, capture_output=True, text=True
    )
    if process.returncode not in (0, 1, 2):  # passed, failed, could not be read
        raise RuntimeError(f"{filled} cannot be run:\n{process.stdout}{process.stderr}")
    return process.returncode != 0


def try_kind(root, name, sample, seed):
    """Return how many changes were tried, and the survivors in words."""
    kind, survivors, tried, green = KINDS[name], [], set(), set()
    rng = random.Random(f"{seed} {name}")
    for change in itertools.islice(kind.changes(root, rng), 20 * sample):
        if len(tried) == sample:
            break
        if change in tried:
            continue
        tried.add(change)
        path = root / change.file
        if change.file not in green:
            if notices(root, kind.checks, change.file):
                raise RuntimeError(f"the checks of {name!r} are red before {change.file} changes")
            green.add(change.file)
        before = path.read_bytes()
        path.write_text(change.text, encoding="utf-8")
        if not notices(root, kind.checks, change.file):
            survivors.append(f"{change.file}, {change.what}")
        path.write_bytes(before)
    return len(tried), survivors


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be given several times")
    parser.add_argument("--sample", type=int, default=5, help="changes of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        root = copy_of_the_project(folder)
        print(f"{'kind':<24}tried  noticed  survivors", flush=True)
        for name in options.kind or KINDS:
            tried, survivors = try_kind(root, name, options.sample, options.seed)
            survived += len(survivors)
            print(
                f"{name:<24}{tried:>5}  {tried - len(survivors):>7}  {len(survivors)}", flush=True
            )
            print("".join(f"    {place}\n" for place in survivors), end="", flush=True)
    return survived > 0


if __name__ == "__main__":
    sys.exit(main())
