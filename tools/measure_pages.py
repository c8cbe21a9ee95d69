"""Measure what a reader of the built book waits for and loads, in Chromium; no test.

`make book` first. Bytes are those of the files, gzipped where a server would.
"""

import functools
import gzip
import http.server
import sys
import threading
import time
from pathlib import Path

import refresh
from playwright.sync_api import sync_playwright
from serve import HTML, Handler

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from chromium import CHROMIUM, QUIET

CHAPTER = "03_degenerate_groups"
MEGABYTE = 1e6
COMPRESSED_ALREADY = (".whl", ".zip", ".woff", ".woff2", ".png")
READY = "document.querySelector('.live-status').textContent.startsWith('Ready')"
IDLE = "!document.querySelector('.live-busy')"


class Page:
    """A page in a context of its own, with what it loaded."""

    def __init__(self, browser, address, name):
        self.page = browser.new_context().new_page()
        self.loaded = set()
        self.page.on("request", lambda r: self.loaded.add(r.url.partition("?")[0]))
        self.page.goto(f"{address}chapters/{name}.html", wait_until="networkidle")
        self.address = address

    def files(self):
        """Return the files of the site that the page has asked for."""
        paths = (url.removeprefix(self.address) for url in self.loaded if "blob:" not in url)
        return [HTML / path for path in paths if (HTML / path).is_file()]

    def seconds(self, action, condition):
        """Return how long it takes from the action until the condition holds."""
        start = time.perf_counter()
        action()
        self.page.wait_for_function(condition, polling=10, timeout=120_000)
        return time.perf_counter() - start

    def run(self, code):
        """Put code into the first editor and return the seconds until it has run."""
        cell = self.page.locator("div.cell:has(.live-editor:visible)").first
        cell.locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(code)
        return self.seconds(lambda: self.page.keyboard.press("Control+Enter"), IDLE)


def transferred(files):
    """Return the megabytes that the files take on the way."""
    sizes = (
        path.stat().st_size
        if path.suffix in COMPRESSED_ALREADY
        else len(gzip.compress(path.read_bytes()))
        for path in files
    )
    return sum(sizes) / MEGABYTE


def memory(browser):
    """Return the megabytes of the page's own processes and of the whole browser, shares split."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = {True: 0, False: 0}
    for process in processes:
        status = Path(f"/proc/{process['id']}/smaps_rollup").read_text()
        sizes[process["type"] == "renderer"] += next(
            int(line.split()[1]) for line in status.splitlines() if "Pss:" in line
        )
    return [kilobytes * 1024 / MEGABYTE for kilobytes in (sizes[True], sum(sizes.values()))]


def main():
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=HTML)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        pages = {path.stem: Page(browser, address, path.stem) for path in refresh.notebooks()}
        before = {name: transferred(page.files()) for name, page in pages.items()}
        largest = max(before, key=before.get)
        scripts = {p for page in pages.values() for p in page.files() if p.suffix == ".js"}
        script = max(
            (p for p in scripts if "mathjax" not in p.parts), key=lambda p: p.stat().st_size
        )
        browser.close()

        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = Page(browser, address, CHAPTER)
        known, idle = set(page.files()), memory(browser)
        first = page.seconds(lambda: page.page.click("text=Run this page"), f"{READY} && {IDLE}")
        everything = page.seconds(lambda: page.page.click("text=Run all"), IDLE)
        edited = page.run("print(1 + 1)")
        figure = page.run(
            "import matplotlib.pyplot as plt\nfrom grpo import book\n"
            "fig, ax = plt.subplots()\nax.plot([1, 2, 3])\nbook.show(fig)"
        )
        loaded = set(page.files()) - known
        print(f"largest page before the button ({largest})   {before[largest]:6.2f} MB")
        print(
            f"largest script besides MathJax ({script.name}) {script.stat().st_size / 1e3:6.0f} kB"
        )
        print(f"loaded once after the button                  {transferred(loaded):6.1f} MB")
        print(f"first result after the click                  {first:6.2f} s")
        print(f"all cells of {CHAPTER}             {everything:6.2f} s")
        print(f"an edited cell                                {edited:6.2f} s")
        print(f"a figure                                      {figure:6.2f} s")
        print(f"memory of the page, of the browser, before    {idle[0]:4.0f}, {idle[1]:.0f} MB")
        loaded_memory = memory(browser)
        print(f"the same after              {loaded_memory[0]:22.0f}, {loaded_memory[1]:.0f} MB")
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
