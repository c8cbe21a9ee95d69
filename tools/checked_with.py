"""Sphinx extension: the foot of every page says with what, and when, its numbers were checked.

Where the book is published, which BOOK_URL says, it links to the files to take along as well.
"""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from other_formats import NAME

ROOT = Path(__file__).resolve().parent.parent


def setup(app):
    app.connect("config-inited", add_to_footer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_to_footer(app, config):
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "matplotlib"))
    line = f"Checked with Python {platform.python_version()}, {packages}{commit_date()}."
    options = config.html_theme_options
    options["extra_footer"] = f"<p>{line}{to_take_along()}</p>\n{options.get('extra_footer', '')}"


def to_take_along():
    """Return links to the EPUB and the single page, where the book is published."""
    if not os.environ.get("BOOK_URL"):
        return ""
    address = f"{os.environ['BOOK_URL']}{NAME}"
    return (
        f' To take along: <a href="{address}.epub">EPUB</a>, <a href="{address}.zip">one page</a>.'
    )


def commit_date():
    """Return the date of the commit in words, or nothing outside a repository."""
    date = last_commit("%cs")
    return f"; text and numbers of {date}" if date else ""


def last_commit(form):
    """Return what git's format says of the last commit, or nothing outside a repository."""
    command = ["git", "-C", str(ROOT), "log", "-1", f"--format={form}"]
    try:
        process = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return process.stdout.strip()
