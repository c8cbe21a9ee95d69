"""Run every notebook as a stranger would: saved from the site into an empty folder.

    python tools/run_downloads.py            all of them
    python tools/run_downloads.py 03 08      those whose names begin so

Builds the book for an address on this machine, serves it, makes an empty virtual environment with
nothing but what `jupyter execute` needs, and runs what the pages offer for download there. Versions
are held to requirements.txt, so that the outputs must equal the stored ones to the last character.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from pathlib import Path

import build_book
import nbformat
from refresh import notebooks
from serve import server

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 600  # a notebook


def main(beginnings):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        site = folder / "_build" / "html"
        with server(site) as address:
            os.environ["BOOK_URL"] = address
            process = build_book.build(folder)
            if process.returncode:
                sys.exit(process.stdout)
            python = empty_environment(folder / "environment")
            failed = False
            for path in notebooks():
                if path.name.startswith(tuple(beginnings)):
                    saved = folder / path.stem / path.name
                    saved.parent.mkdir()
                    shutil.copy(site / "_sources" / "chapters" / path.name, saved)
                    found = differences(path, execute(python, saved))
                    print(path.name, *(found or ["as stored"]), sep="\n    ", flush=True)
                    failed |= bool(found)
    return failed
