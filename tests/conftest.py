import build_book
import pytest
import site_assets
from chromium import CHROMIUM, QUIET
from serve import serving


def pytest_configure(config):
    """Gather the assets of the site once, before workers need them at the same time."""
    if not hasattr(config, "workerinput"):
        site_assets.prepare()


@pytest.fixture(scope="session")
def html(tmp_path_factory):
    """Return the folder of the book, built from the stored outputs with warnings as errors."""
    folder = tmp_path_factory.mktemp("book")
    process = build_book.build(folder)
    assert process.returncode == 0, process.stdout
    assert "WARNING" not in process.stdout
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


@pytest.fixture
def page(chromium, address):
    """Return a new page whose errors and foreign requests fail the test at its end."""
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
