"""Run the cells of a page one by one and hand over their outputs, without IPython.

`run_cell(number, code, emit)` calls `emit(kind, text)` for each output: "stdout", "stderr",
"error", "markdown", "html", "svg" or "text". All cells of a page share one namespace.
`reset()` leaves nothing of the cells that have run, so that another page may begin.
"""

import ast
import contextlib
import io
import linecache
import os
import random
import sys
import traceback
import types
import warnings

os.environ["MPLBACKEND"] = "agg"
with contextlib.redirect_stderr(io.StringIO()):  # it says that it builds a cache of fonts
    import matplotlib.pyplot as plt
    import numpy as np

namespace = {}


class Output:
    """Stands in for the display objects of IPython, which is not here."""

    def __init__(self, data):
        self.data = data


KINDS = {"Markdown": "markdown", "HTML": "html", "SVG": "svg"}
display_module = types.ModuleType("IPython.display")
for class_name, kind in KINDS.items():
    setattr(display_module, class_name, type(class_name, (Output,), {"kind": kind}))
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython"].get_ipython = lambda: None  # matplotlib asks
sys.modules["IPython.display"] = display_module


BEFORE_ALL_CELLS = {
    "modules": set(sys.modules),
    "style": dict(plt.rcParams),
    "environment": dict(os.environ),
    "path": list(sys.path),
    "folder": os.getcwd(),
    "warnings": list(warnings.filters),
    "numpy prints": np.get_printoptions(),
    "numpy errors": np.geterr(),
}


def reset():
    """Make Python as it was before the first cell, with random numbers that nobody has seeded."""
    before = BEFORE_ALL_CELLS
    namespace.clear()
    namespace["__name__"] = "__main__"
    plt.close("all")
    for name in set(sys.modules) - before["modules"]:
        del sys.modules[name]
    plt.rcParams.update(before["style"])
    os.environ.clear()
    os.environ.update(before["environment"])
    sys.path[:] = before["path"]
    os.chdir(before["folder"])
    warnings.filters[:] = before["warnings"]
    np.set_printoptions(**before["numpy prints"])
    np.seterr(**before["numpy errors"])
    np.random.seed()  # noqa: NPY002
    random.seed()


class Stream(io.TextIOBase):
    """A file that hands over what is written to it."""

    def __init__(self, kind, emit):
        self.kind, self.emit = kind, emit

    def write(self, text):
        """Hand over the text."""
        self.emit(self.kind, text)
        return len(text)


def run_cell(number, code, emit):
    """Run the code of a cell and emit its outputs; an error is an output as well."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)

    def display(*values):
        for value in values:
            show(value, emit)

    display_module.display = display
    try:
        with (
            contextlib.redirect_stdout(Stream("stdout", emit)),
            contextlib.redirect_stderr(Stream("stderr", emit)),
        ):
            display(*evaluate(code, name))
            for number in plt.get_fignums():
                from grpo import book

                display(book.show(plt.figure(number)))
    except BaseException as error:
        emit("error", readable(error))


def evaluate(code, name):
    """Execute a cell; return a list of the value of its last line, if that is an expression."""
    statements = ast.parse(code, name)
    last = statements.body[-1] if statements.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(statements, name, "exec"), namespace)
        return []
    del statements.body[-1]
    exec(compile(statements, name, "exec"), namespace)
    value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    return [] if value is None else [value]


def show(value, emit):
    """Emit a value as what it is."""
    if isinstance(value, Output):
        emit(value.kind, value.data)
    else:
        emit("text", repr(value))


def readable(error):
    """Return the traceback from the reader's own line on."""
    frames = traceback.extract_tb(error.__traceback__)
    own = next((i for i, frame in enumerate(frames) if frame.filename.startswith("<cell")), None)
    lines = traceback.format_list(frames[own:]) if own is not None else []
    return "".join(lines + traceback.format_exception_only(error))
