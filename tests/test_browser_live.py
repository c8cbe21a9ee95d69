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
def test_all_cells_run_in_the_page_and_print_what_is_stored(page, address, name):
    visit(page, address, name)
    start_python(page)
    page.click("text=Run all")
    wait_until_idle(page)
    assert page.locator("[data-kind=error]").all_text_contents() == []
    shown = live_cells(name)
    assert page.locator("div.cell:has(.live-editor)").count() == len(shown)
    for number, cell in enumerate(shown, 1):
        root = page.locator(f"#cell-{cell.id}")
        assert root.locator(f"button[aria-label='Run cell {number}']").count() == 1
        assert root.locator(f"button[aria-label='Reset cell {number}']").count() == 1
        stored = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        if "adv_mean" not in stored:  # rounding errors, see nbval_sanitize.cfg
            assert own_output(page, cell.id) == stored, cell.id
        figures = sum("image/svg+xml" in o.get("data", {}) for o in cell.outputs)
        own = page.locator(f".live-output[data-cell=cell-{cell.id}] img")
        assert own.count() == figures
    assert page.locator("details.evidence:not([open])").count() == 0
    assert page.locator("details.solution[open]").count() == 0


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
