"""Sphinx extension: the notebook that a page offers runs wherever it is saved.

What the site hands out is the stored notebook with one cell before it, which installs the package
of the book from the address of the site, BOOK_URL, or says where its wheel lies. Where the public
repository is known as well, BOOK_REPOSITORY, each page offers to open that notebook in Colab.
"""

import os
from pathlib import Path

import nbformat
import site_assets

DISTRIBUTION = "grpo-worked-numerical-example"
BRANCH = "notebooks"  # of the repository; .github/workflows/publish.yml puts the notebooks there
CELL_ID = "package-of-the-book"
INSTALL = """\
%pip install --quiet --force-reinstall --no-deps "{wheel}"
%pip install --quiet "{requirement}"
"""
CELL = """\
# Not a cell of the book: it provides the package that the cells below import.
{install}try:
    import grpo.book
except ImportError as error:
    raise ImportError(f'''{{error}}. This page needs the package of its book. Install it with

    python -m pip install "{requirement}"

{where}and run this cell again.
The project named grpo on the package index is another one.''') from None"""


def setup(app):
    app.connect("config-inited", offer_colab)
    app.connect("build-finished", prepare_downloads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def offer_colab(app, config):
    """Let the theme link to Colab where that can open the notebooks and they find the wheel."""
    if os.environ.get("BOOK_URL") and os.environ.get("BOOK_REPOSITORY"):
        config.html_theme_options |= {
            "repository_url": f"https://github.com/{os.environ['BOOK_REPOSITORY']}",
            "repository_branch": BRANCH,
            "launch_buttons": {"colab_url": "https://colab.research.google.com"},
        }


def prepare_downloads(app, exception):
    """Put the first cell into the copies that the links of the pages save."""
    if exception or app.builder.name != "html":
        return
    for path in Path(app.outdir, "_sources", "chapters").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.insert(0, first_cell(os.environ.get("BOOK_URL", "")))
        nbformat.write(notebook, path)


def first_cell(book_url):
    """Return the cell that installs the wheel of the site, or says where it lies."""
    (built,) = (site_assets.SITE / "wheels").glob(f"{DISTRIBUTION.replace('-', '_')}-*.whl")
    wheel = f"{book_url}_static/{site_assets.site_path(built)}"
    if book_url:
        requirement = f"{DISTRIBUTION}[pages] @ {wheel}"
        install, where = INSTALL.format(wheel=wheel, requirement=requirement), ""
    else:
        requirement = f"{wheel}[pages]"
        install, where = "", "in the folder of the built book, where its wheel lies, "
    source = CELL.format(install=install, requirement=requirement, where=where)
    return nbformat.v4.new_code_cell(source, id=CELL_ID)
