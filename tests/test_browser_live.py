"""The cells in Chromium: they run, print what is stored, can be edited, stopped and reset."""

from pathlib import Path

import pytest
from book_pages import code_cells, read_all
from chromium import needs_chromium, visit
from refresh import CHAPTERS

pytestmark = needs_chromium
each_chapter = pytest.mark.parametrize("name", read_all())


def start_python(page):
    page.click("text=Run this page")
    page.wait_for_function(
        "document.querySelector('.live-status').textContent.startsWith('Ready')", timeout=90_000
    )
    wait_until_idle(page)


def wait_until_idle(page):
    page.wait_for_function("!document.querySelector('.live-busy')", timeout=90_000)


def own_output(page, index):
    """Return the printed text of the reader's own run of a live cell."""
    cell = page.locator("div.cell:has(.live-editor)").nth(index)
    return "".join(cell.locator(".live-output pre[data-kind=stdout]").all_text_contents())


@each_chapter
def test_all_cells_run_in_the_page_and_print_what_is_stored(frame, address, name):
    frame.goto(f"{address}chapters/{name}.html")
    start_python(frame)
    frame.click("text=Run all")
    wait_until_idle(frame)
    assert frame.locator("[data-kind=error]").all_text_contents() == []
    shown = [
        cell
        for cell in code_cells(read_all()[name])
        if "remove-input" not in cell.metadata.get("tags", ())
    ]
    assert frame.locator("div.cell:has(.live-editor)").count() == len(shown)
    for index, cell in enumerate(shown):
        stored = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        if "adv_mean" not in stored:  # rounding errors, see nbval_sanitize.cfg
            assert own_output(frame, index) == stored, cell.id
        figures = sum("image/svg+xml" in o.get("data", {}) for o in cell.outputs)
        own = frame.locator("div.cell:has(.live-editor)").nth(index).locator(".live-output img")
        assert own.count() == figures


LEAKS = """
import os, random, sys, warnings
import colorsys
import matplotlib.pyplot as plt, numpy as np, grpo
from grpo import book

leaked = 1
random.seed(0), np.random.seed(0)
plt.rcParams["lines.markersize"] = 99
np.set_printoptions(precision=1)
np.seterr(divide="raise")
warnings.simplefilter("error")
os.environ["LEAKED"] = os.getcwd()
os.chdir("/")
sys.path.append("leaked")
grpo.advantages = book.BLUE = None
plt.figure()
raise KeyboardInterrupt  # before the figure is shown and closed
"""
LEAKED = """
import os, random, sys, warnings
names = sorted(name for name in globals() if not name.startswith("__"))
new = sorted({"colorsys", "grpo", "grpo.book"} & set(sys.modules))
import matplotlib.pyplot as plt, numpy as np, grpo
from grpo import book
print([name for name in names if name == "leaked"], [name for name in new if name == "colorsys"])
print(random.random() == 0.8444218515250481, round(np.random.random(), 12) == 0.548813503927)
print(plt.get_fignums(), plt.rcParams["lines.markersize"])
print(np.get_printoptions()["precision"], np.geterr()["divide"])
print([rule for rule in warnings.filters if rule[:3] == ("error", None, Warning)])
print(os.environ.get("LEAKED"), os.getcwd() == "/", "leaked" in sys.path)
print(callable(grpo.advantages), book.BLUE)
"""
NO_LEAK = """[] []
False False
[] 6.0
8 warn
[]
None False False
True #0072B2
"""


def write_and_run(page, code):
    """Run code of the reader's in the first cell whose code is in sight; return what it prints."""
    index = page.evaluate(
        "[...document.querySelectorAll('div.cell:has(.live-editor)')]"
        ".findIndex(cell => cell.querySelector('.cm-content').checkVisibility())"
    )
    editor = page.locator("div.cell:has(.live-editor)").nth(index).locator(".cm-content")
    editor.fill(code)
    editor.press("Control+Enter")
    wait_until_idle(page)
    return own_output(page, index)


def test_nothing_of_one_page_is_left_for_the_next(frame, address):
    visit(frame, address, "03_degenerate_groups")
    start_python(frame)
    write_and_run(frame, LEAKS)
    assert "KeyboardInterrupt" in frame.locator("[data-kind=error]").inner_text()
    leaked = write_and_run(frame, LEAKED).splitlines()
    for seen, wanted in zip(leaked, NO_LEAK.splitlines(), strict=True):
        assert seen != wanted, "this line could not tell"
    visit(frame, address, "04_kl_estimators")
    start_python(frame)
    assert write_and_run(frame, LEAKED) == NO_LEAK


def test_a_reader_edits_runs_stops_and_resets(page, address):
    visit(page, address, "03_degenerate_groups")
    start_python(page)
    page.click("text=Run all")
    wait_until_idle(page)
    shown = [
        cell.id
        for cell in code_cells(read_all()["03_degenerate_groups"])
        if "remove-input" not in cell.metadata.get("tags", ())
    ]
    index = shown.index("by-hand")
    cell = page.locator("div.cell:has(.live-editor)").nth(index)
    editor = cell.locator(".cm-content")

    def write(code):
        editor.click()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.insert_text(code)
        page.keyboard.press("Control+Enter")

    write("p = 0.5\nprint(f'{degenerate_probability(p, 4):.4f}')")
    wait_until_idle(page)
    assert own_output(page, index) == "0.1250\n"

    write("1 / 0")
    wait_until_idle(page)
    error = cell.locator("[data-kind=error]").inner_text()
    assert f'File "<cell {index + 1}>", line 1' in error
    assert "ZeroDivisionError" in error

    write("import time\ntime.sleep(3)\nprint('late')")
    page.wait_for_selector("div.cell.live-busy")
    cell.get_by_role("button", name="Reset").click()
    wait_until_idle(page)
    assert own_output(page, index) == ""

    write("while True:\n    pass")
    page.wait_for_selector("div.cell.live-busy")
    assert page.evaluate("1 + 1") == 2
    assert page.inner_text(".live-status") == f"Running cell {index + 1} ..."
    assert page.get_by_role("button", name="Stop").is_visible()
    assert page.locator(".live-bar").bounding_box()["y"] >= 0  # it stays in sight
    page.click("text=Stop")
    assert "Stopped" in cell.locator("[data-kind=stopped]").inner_text()
    page.wait_for_function(
        "document.querySelector('.live-status').textContent.startsWith('Ready. Variables')",
        timeout=90_000,
    )
    cell.get_by_role("button", name="Reset").click()
    assert "0.6562" in cell.locator(".cell_output:not(.live-output)").inner_text()
    assert "p, G = 0.9, 4" in editor.inner_text()

    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.classList.contains('cm-content')")


def test_the_notebook_is_saved_from_its_page(page, address):
    visit(page, address, "03_degenerate_groups")
    with page.expect_download() as download:
        page.click("text=Download the notebook")
    assert download.value.suggested_filename == "03_degenerate_groups.ipynb"
    saved = Path(download.value.path()).read_bytes()
    assert saved == (CHAPTERS / "03_degenerate_groups.ipynb").read_bytes()


def test_a_browser_without_webassembly_is_told_so(page, address):
    page.add_init_script("delete window.WebAssembly")
    visit(page, address, "01_setup")
    page.click("text=Run this page")
    assert "WebAssembly" in page.inner_text(".live-status")
    assert page.locator(".live-editor").count() == 0


def test_a_failed_download_is_told_and_can_be_tried_again(chromium, address):
    page = chromium.new_page()
    numpy_wheel = "**/numpy-*.whl"
    page.route(numpy_wheel, lambda route: route.abort())
    visit(page, address, "01_setup")
    page.click("text=Run this page")
    page.wait_for_function(
        "document.querySelector('.live-status').textContent.includes('could not be started')",
        timeout=90_000,
    )
    page.unroute(numpy_wheel)
    page.click("text=Restart")
    page.wait_for_function(
        "document.querySelector('.live-status').textContent.startsWith('Ready')", timeout=90_000
    )
    page.close()


def test_a_book_without_python_says_so_and_stays_complete(chromium, address):
    page = chromium.new_page()
    page.route("**/manifest.json", lambda route: route.fulfill(status=404))
    visit(page, address, "01_setup")
    page.click("text=Run this page")
    page.wait_for_function("document.querySelector('.live-status').textContent.includes('without')")
    assert page.locator(".cell_output").first.is_visible()
    assert page.locator(".live-editor").count() == 0
    page.close()


def test_a_page_opened_from_a_file_says_how_to_serve_it(chromium, html):
    page = chromium.new_page()
    foreign = []
    page.on("request", lambda r: None if r.url.startswith("file:") else foreign.append(r.url))
    page.goto((html / "chapters" / "01_setup.html").as_uri(), wait_until="networkidle")
    assert page.locator("mjx-container").count() > 0
    page.click("text=Run this page")
    assert "make serve" in page.inner_text(".live-status")
    assert not [url for url in foreign if not url.startswith(("data:", "blob:"))]
    page.close()
