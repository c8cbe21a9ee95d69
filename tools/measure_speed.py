"""Measure what CONTRIBUTING.md says about speed and size; no test, since times vary."""

import contextlib
import io
import subprocess
import sys
import tempfile
import time
import timeit
import tracemalloc
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import build_book
import nbformat
import numpy as np
import refresh
from jupyter_client.manager import start_new_kernel

from grpo import advantages

MEGABYTE = 2**20
WORTH_NAMING = 12  # files of tests
ELSEWHERE = ("test_browser_pages.py", "test_browser_live.py", "test_wasm.py")


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def start_kernel():
    """Start a kernel, import what every page imports, and stop it."""
    manager, client = start_new_kernel(kernel_name="python3")
    client.execute_interactive("import numpy, matplotlib.pyplot", timeout=60)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run_cells(path):
    """Run the code cells of a notebook here; return CPU seconds and the largest cell's memory."""
    namespace, cpu, peak = {}, 0.0, 0
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    for measure_memory in (False, True):
        namespace = {}
        for cell in cells:
            code = compile(cell.source, f"{path.stem}, {cell.id}", "exec")
            if measure_memory:
                tracemalloc.start()
                before = tracemalloc.get_traced_memory()[0]
                exec(code, namespace)
                peak = max(peak, tracemalloc.get_traced_memory()[1] - before)
                tracemalloc.stop()
            else:
                start = time.process_time()
                exec(code, namespace)
                cpu += time.process_time() - start
    return cpu, peak


def run_tests(*options):
    """Run the tests; return the seconds it took, and how many of them each file took."""
    by_file = Counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *options]
        duration = seconds(lambda: subprocess.run(command, check=True))
        for test in ElementTree.parse(report).iter("testcase"):
            by_file[test.get("classname")] += float(test.get("time"))
    return duration, by_file


def bare_expression(rewards):
    mean = rewards.mean(axis=-1, keepdims=True)
    return (rewards - mean) / (rewards.std(axis=-1, keepdims=True) + 1e-8)


def main():
    pages = refresh.notebooks()

    cpu, peaks = zip(*(quietly(run_cells, path) for path in pages), strict=True)
    floor = seconds(lambda: [start_kernel() for _ in pages])
    elsewhere = [f"--ignore=tests/{name}" for name in ELSEWHERE]
    tests, _ = run_tests(*elsewhere)
    everything, by_file = run_tests()
    with tempfile.TemporaryDirectory() as folder:
        html = seconds(lambda: build_book.build(Path(folder)))
        count = len(list((Path(folder) / "_build/html/chapters").glob("*.html")))

    rewards = np.random.default_rng(0).random((4096, 16), dtype=np.float32)
    ours, bare = (
        min(timeit.repeat(lambda f=f: f(rewards), number=200, repeat=9))
        for f in (advantages, bare_expression)
    )
    print(f"{len(pages)} kernels started one by one    {floor:6.1f} s")
    print(f"tests with CPython alone          {tests:6.1f} s, {tests / floor:.2f} of that")
    print(f"all tests                         {everything:6.1f} s")
    for name, duration in by_file.most_common(WORTH_NAMING):
        print(f"    {name:<30}{duration:6.1f} s in one of two workers")
    print(f"HTML, cold                        {html:6.1f} s, {html / count:.2f} s a page")
    print(f"CPU of all cells                  {sum(cpu):6.1f} s")
    print(f"memory of the largest cell        {max(peaks) / MEGABYTE:6.0f} MB")
    print(f"advantages, 4096 x 16 float32     {ours / bare:6.2f} of the bare numpy expression")


def quietly(action, *arguments):
    """Run an action in the folder of the chapters, without what it prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(refresh.CHAPTERS):
        return action(*arguments)


if __name__ == "__main__":
    main()
