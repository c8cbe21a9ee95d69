"""What the pages need: tables, figures, a function's source, exercises that check themselves."""

import ast
import inspect
import io
import os
import re
import textwrap

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import SVG, Markdown
from tabulate import tabulate
from tqdm import tqdm

_NUMBER = re.compile(r"[+-]?[\d.,/]+(e[+-]?\d+)?[%×]?")

# Okabe and Ito's palette: told apart with every common kind of colour blindness.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"

STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": mpl.cycler(
        color=[BLUE, VERMILLION, GREEN, PURPLE, ORANGE],
        linestyle=["-", "--", "-.", ":", (0, (5, 1))],
    ),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.figsize": (6.4, 3.8),
    "figure.constrained_layout.use": True,
    "font.size": 12,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "lines.linewidth": 2,
    "savefig.facecolor": "white",
    # Without a salt every run names the parts of an SVG anew.
    "svg.hashsalt": "grpo",
}


def use_style():
    """Give all figures of the notebook the book's style."""
    plt.rcParams.update(STYLE)


def show(figure):
    """Return a figure as SVG with nothing in it that tells when or where it was drawn."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return SVG(buffer.getvalue())


def table(rows, headers, caption):
    """Return a captioned Markdown table; cells are shown as they are given."""
    body = tabulate(
        rows, headers, tablefmt="pipe", disable_numparse=True, colalign=_alignment(rows)
    )
    return Markdown(f"**{caption}**\n\n{body}")


def _alignment(rows):
    """Align a column right if all its cells are numbers or empty, else left."""
    return [
        "right" if all(_NUMBER.fullmatch(str(cell)) or cell == "" for cell in column) else "left"
        for column in zip(*rows, strict=True)
    ]


def progress(steps):
    """Return the steps under a progress bar in JupyterLab, as they are where outputs are stored."""
    return tqdm(steps, leave=False) if "JPY_SESSION_NAME" in os.environ else steps


def source(function):
    """Return the source of a function, without its docstring, as Markdown."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    docstring = ast.parse("\n".join(lines)).body[0].body[0]
    if inspect.getdoc(function):
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return Markdown("\n".join(["```python", *lines, "```"]))


def check(answer, expected):
    """Say whether the answer to an exercise is right; raise an error if it is wrong."""
    if answer is None:
        return print("Not answered yet: put your answer in place of None and run the cell again.")
    np.testing.assert_allclose(answer, expected, rtol=1e-3, atol=1e-9, err_msg="Not yet right.")
    print("Right.")
