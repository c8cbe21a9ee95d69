"""Run the notebooks as a stranger would: saved from the site into an empty folder.

    python tools/run_downloads.py            all of them
    python tools/run_downloads.py 03 08      those whose names begin so

Builds the book for an address on this machine, serves it, and runs what its pages offer for
download in an empty virtual environment that has `jupyter execute` and nothing else. Versions are
held to requirements.txt, so that every output must equal the stored one to the character.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

import build_book
import nbformat
from refresh import notebooks
from serve import serving

ROOT = Path(__file__).resolve().parent.parent
EXECUTE = "from nbclient.cli import main; main()"  # what the command `jupyter execute` calls


def main(beginnings):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder / "_build" / "html") as address:
            os.environ["BOOK_URL"] = address
            process = build_book.build(folder)
            if process.returncode:
                sys.exit(process.stdout)
            python = empty_environment(folder / "environment")
            wrong = []
            for path in notebooks():
                if path.name.startswith(beginnings):
                    saved = folder / path.stem / path.name
                    saved.parent.mkdir()
                    urllib.request.urlretrieve(f"{address}_sources/chapters/{path.name}", saved)
                    found = execute(python, saved) or differences(path, saved)
                    print(path.name, found or "as stored", flush=True)
                    wrong += [path.name] if found else []
    return len(wrong)


def empty_environment(folder):
    """Return the Python of a new environment that can execute notebooks; pip keeps to the pins."""
    venv.create(folder, with_pip=True, clear=True)
    pins = folder / "pins.txt"
    shutil.copy(ROOT / "requirements.txt", pins)
    os.environ["PIP_CONSTRAINT"] = str(pins)
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    python = python_of(folder)
    subprocess.run([python, "-m", "pip", "install", "-q", "nbclient", "ipykernel"], check=True)
    return python


def python_of(environment):
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def execute(python, notebook):
    """Run the notebook in its folder and store its outputs in it; return what went wrong."""
    process = subprocess.run(
        [python, "-c", EXECUTE, "--inplace", notebook.name],
        cwd=notebook.parent,
        capture_output=True,
        text=True,
        errors="replace",
    )
    return process.stderr if process.returncode else ""


def differences(stored, run):
    """Return the names of the cells, without the added first one, that differ in code or output."""
    one, other = (nbformat.read(path, as_version=4).cells for path in (stored, run))
    if [cell.id for cell in one] != [cell.id for cell in other[1:]]:
        return ["the cells are not the same"]
    return [
        before.id
        for before, after in zip(one, other[1:], strict=True)
        if before.source != after.source or shown(before) != shown(after)
    ]


def shown(cell):
    """Return the outputs of a cell, text of one stream joined, without counts and times."""
    result = []
    for output in cell.get("outputs", []):
        kind = output.get("name", output.output_type)
        content = output.get("text", output.get("data", output))
        if "text" in output and result and result[-1][0] == kind:
            result[-1] = kind, result[-1][1] + content
        else:
            result.append((kind, content))
    return result


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:]) or ""))
