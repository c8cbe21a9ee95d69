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


def own_output(page, index):
    """Return the printed text of the reader's own run of a live cell."""
    cell = page.locator("div.cell:has(.live-editor)").nth(index)
    return "".join(cell.locator(".live-output pre[data-kind=stdout]").all_text_contents())


@each_chapter
def test_all_cells_run_in_the_page_and_print_what_is_stored(page, address, name):
    visit(page, address, name)
    start_python(page)
    page.click("text=Run all")
    wait_until_idle(page)
    assert page.locator("[data-kind=error]").all_text_contents() == []
    shown = [
        cell
        for cell in code_cells(read_all()[name])
        if "remove-input" not in cell.metadata.get("tags", ())
    ]
    assert page.locator("div.cell:has(.live-editor)").count() == len(shown)
    for index, cell in enumerate(shown):
        stored = "".join(o.text for o in cell.outputs if o.output_type == "stream")
        if "adv_mean" not in stored:  # rounding errors, see nbval_sanitize.cfg
            assert own_output(page, index) == stored, cell.id
        figures = sum("image/svg+xml" in o.get("data", {}) for o in cell.outputs)
        own = page.locator("div.cell:has(.live-editor)").nth(index).locator(".live-output img")
        assert own.count() == figures


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
