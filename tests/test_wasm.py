"""The same numbers on another platform: every cell in WebAssembly, with another numpy.

Printed text and tables must agree to the character with the stored outputs, but for what
`nbval_sanitize.cfg` masks.
"""

import configparser
import json
import re
import subprocess
from pathlib import Path

import pytest
import refresh
import site_assets
from book_pages import code_cells, output_texts, read_all, svg_outputs

CELLS = [(name, cell.id) for name, nb in read_all().items() for cell in code_cells(nb)]


@pytest.fixture(scope="module")
def wasm():
    """Return {notebook: {cell: outputs}} of a run in Pyodide under Node."""
    script = Path(__file__).with_name("run_in_wasm.mjs")
    site = site_assets.prepare()
    process = subprocess.run(
        [site_assets.node_program("node"), script, site, *refresh.notebooks()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def sanitized(text):
    rules = configparser.ConfigParser(interpolation=None)
    rules.read(Path(__file__).with_name("nbval_sanitize.cfg"), encoding="utf-8")
    for rule in rules.sections():
        text = re.sub(rules[rule]["regex"], rules[rule]["replace"], text)
    return text.strip()


@pytest.mark.parametrize("name, cell", CELLS)
def test_cell_gives_its_stored_output_in_webassembly(name, cell, wasm):
    (stored,) = [one for one in code_cells(read_all()[name]) if one.id == cell]
    fresh = wasm[name][cell]
    assert not [text for kind, text in fresh if kind in ("error", "stderr")]
    shown = "".join(text for kind, text in fresh if kind in ("stdout", "markdown", "text"))
    expected = "".join(output_texts(stored))
    assert sanitized(shown) == sanitized(expected)
    assert sum(kind == "svg" for kind, _ in fresh) == len(svg_outputs(stored))
