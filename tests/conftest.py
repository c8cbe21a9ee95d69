import contextlib
import json
import time

import build_book
import pytest
import site_assets
from chromium import CHROMIUM, QUIET
from serve import serving

KEEP_PYTHON = """
if (window !== top)
    window.Worker = function (url) { return (top.python ??= new top.Worker(url)) }
"""
LONGEST_FIRST = ("test_browser_pages.py", "test_wasm.py", "test_browser_live.py", "test_formats.py")


def pytest_configure(config):
    """Gather the assets of the site once, before workers need them at the same time."""
    if not hasattr(config, "workerinput"):
        site_assets.prepare()


def pytest_collection_modifyitems(items):
    """Put the files that take longest first, so that the workers end together."""
    place = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


@pytest.fixture(scope="session")
def html(tmp_path_factory, worker_id):
    """Return the folder of the book, built from the stored outputs with warnings as errors.

    The first worker that needs it builds it for all.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "book"
    ending = folder / "ending.json"
    try:
        folder.mkdir()
    except FileExistsError:
        while not ending.exists():
            time.sleep(0.1)
    else:
        process = build_book.build(folder)
        written = folder / "being-written"
        written.write_text(json.dumps([process.returncode, process.stdout]), encoding="utf-8")
        written.rename(ending)
    code, output = json.loads(ending.read_text(encoding="utf-8"))
    assert code == 0, output
    assert "WARNING" not in output
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def address(html):
    with serving(html) as served:
        yield served


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright  # slow to import, needed by two files

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@contextlib.contextmanager
def watched_page(chromium, address):
    """Give a new page; its errors and foreign requests fail the test at its end."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    wrong = []
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    own = (address, "blob:", "data:")
    page.on("request", lambda r: None if r.url.startswith(own) else wrong.append(r.url))
    yield page
    context.close()
    assert not wrong


@pytest.fixture
def page(chromium, address):
    with watched_page(chromium, address) as page:
        yield page


@pytest.fixture(scope="module")
def frame(chromium, address):
    """Return a frame for one page of the book after another, all with the same Python.

    The worker with Python belongs to the page around the frame, which stays. Each page of the book
    starts it as ever, and it begins anew (`reset` in `web/runner.py`).
    """
    with watched_page(chromium, address) as page:
        page.add_init_script(KEEP_PYTHON)
        around = "<iframe name=book style='width: 1280px; height: 900px'></iframe>"
        page.route(
            f"{address}around", lambda route: route.fulfill(body=around, content_type="text/html")
        )
        page.goto(f"{address}around")
        yield page.frame("book")
