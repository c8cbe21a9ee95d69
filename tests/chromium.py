"""Chromium for the tests: where it is, how it is started, how a page is visited."""

import os
import shutil

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
needs_chromium = pytest.mark.skipif(
    not CHROMIUM and os.environ.get("GRPO_BROWSER") != "required",
    reason="no Chromium here: install it (Debian, Ubuntu: sudo apt install chromium) or name it "
    "in the environment variable CHROMIUM",
)


def visit(page, address, name):
    page.goto(f"{address}chapters/{name}.html", wait_until="networkidle")
    page.wait_for_load_state("load")  # on a busy machine the network is idle before that


def open_search(page):
    """Press the keys once the page listens to them, and wait for the dialog."""
    page.keyboard.press("Control+k")
    page.wait_for_selector("#pst-search-dialog[open]", timeout=5000)
