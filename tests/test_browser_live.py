"""The cells in Chromium: they run, print what is stored, can be edited, stopped and reset."""

from pathlib import Path

import pytest
from book_pages import code_cells, read_all
from chromium import needs_chromium, visit

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


def own_output(page, cell):
    """Return the printed text of the reader's own run of a live cell."""
    own = page.locator(f".live-output[data-cell=cell-{cell}] pre[data-kind=stdout]")
    return "".join(own.all_text_contents())


def live_cells(name):
    """Return the cells of a notebook whose code stands on the page."""
    return [
        cell
        for cell in code_cells(read_all()[name])
        if "remove-input" not in cell.metadata.get("tags", ())
    ]


@each_chapter
def test_all_cells_run_in_the_page_and_print_what_is_stored(frame, address, name):
    visit(frame, address, name)
    start_python(frame)
    frame.click("text=Run all")
    wait_until_idle(frame)
    assert frame.locator("[data-kind=error]").all_text_contents() == []
    shown = live_cells(name)
    assert frame.locator("div.cell:has(.live-editor)").count() == len(shown)
    for number, cell in enumerate(shown, 1):
        root = frame.locator(f"#cell-{cell.id}")
        assert root.locator(f"button[aria-label='Run cell {number}']").count() == 1
        assert root.locator(f"button[aria-label='Reset cell {number}']").count() == 1
        stored = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        if "adv_mean" not in stored:  # rounding errors, see nbval_sanitize.cfg
            assert own_output(frame, cell.id) == stored, cell.id
        figures = sum("image/svg+xml" in o.get("data", {}) for o in cell.outputs)
        own = frame.locator(f".live-output[data-cell=cell-{cell.id}] img")
        assert own.count() == figures
    assert frame.locator("details.evidence:not([open])").count() == 0
    assert frame.locator("details.solution[open]").count() == 0


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
    cell = page.evaluate(
        "[...document.querySelectorAll('div.cell:has(.live-editor)')]"
        ".find(cell => cell.querySelector('.cm-content').checkVisibility()).id"
    )
    editor = page.locator(f"#{cell} .cm-content")
    editor.fill(code)
    editor.press("Control+Enter")
    wait_until_idle(page)
    return own_output(page, cell.removeprefix("cell-"))


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
    number = 1 + [cell.id for cell in live_cells("03_degenerate_groups")].index("by-hand")
    cell = page.locator("#cell-by-hand")
    editor = cell.locator(".cm-content")

    def write(code):
        editor.click()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.insert_text(code)
        page.keyboard.press("Control+Enter")

    write("p = 0.5\nprint(f'{degenerate_probability(p, 4):.4f}')")
    wait_until_idle(page)
    assert own_output(page, "by-hand") == "0.1250\n"

    write("1 / 0")
    wait_until_idle(page)
    error = cell.locator("[data-kind=error]").inner_text()
    assert f'File "<cell {number}>", line 1' in error
    assert "ZeroDivisionError" in error

    write("import time\ntime.sleep(3)\nprint('late')")
    page.wait_for_selector("div.cell.live-busy")
    cell.get_by_role("button", name="Reset").click()
    wait_until_idle(page)
    assert own_output(page, "by-hand") == ""

    write("while True:\n    pass")
    page.wait_for_selector("div.cell.live-busy")
    assert page.evaluate("1 + 1") == 2
    assert page.inner_text(".live-status") == f"Running cell {number} ..."
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
    assert "all_right, all_wrong = p**G" in editor.inner_text()

    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.classList.contains('cm-content')")


def test_a_moved_value_shows_its_figure_where_the_old_one_stood(page, address):
    visit(page, address, "03_degenerate_groups")
    start_python(page)
    stored, fold = page.locator("#shown-figure-waste"), page.locator("details:has(#cell-values)")
    assert fold.get_attribute("open") is None  # the set-up has run inside it
    top = stored.bounding_box()["y"]
    fold.locator("> summary").click()
    values = page.locator("#cell-values")
    values.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text("p, G = 0.5, 8")
    page.keyboard.press("Control+Enter")
    for name in ("values", "figure-waste"):
        page.locator(f"#cell-{name}").get_by_role("button", name="Run").click()
    wait_until_idle(page)
    own = page.locator(".live-output[data-cell=cell-figure-waste]:has(img)")
    assert not stored.is_visible()
    page.evaluate("scrollTo(0, 0)")
    assert abs(own.bounding_box()["y"] - top) < 80  # a note, "Your own run", stands above it
    assert "p = 0.5, G = 8, share 0.0078" in own_output(page, "figure-waste")
    page.locator("#cell-figure-waste").get_by_role("button", name="Reset").click()
    assert stored.is_visible() and not own.is_visible()


def test_the_notebook_is_saved_from_its_page(page, address, html):
    visit(page, address, "03_degenerate_groups")
    with page.expect_download() as download:
        page.click("text=Download the notebook")
    assert download.value.suggested_filename == "03_degenerate_groups.ipynb"
    saved = Path(download.value.path()).read_bytes()
    offered = html / "_sources" / "chapters" / "03_degenerate_groups.ipynb"
    assert saved == offered.read_bytes()  # tests/test_download.py says what that holds


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
