"""Sphinx extension: the foot of every page says with what, and when, its numbers were checked."""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def setup(app):
    app.connect("config-inited", add_to_footer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_to_footer(app, config):
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "matplotlib"))
    line = f"Checked with Python {platform.python_version()}, {packages}{commit_date()}."
    options = config.html_theme_options
    options["extra_footer"] = f"<p>{line}</p>\n{options.get('extra_footer', '')}"


def commit_date():
    """Return the date of the commit in words, or nothing outside a repository."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%cs"]
    try:
        process = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return f"; text and numbers of {process.stdout.strip()}" if process.stdout.strip() else ""
