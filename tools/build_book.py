"""Build the book from the stored outputs; every warning is an error.

Without an argument the HTML; `epub` and `onepage` make a file to take along.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILDERS = {
    "html": ("html", []),
    "onepage": ("singlehtml", ["--builder", "singlehtml"]),
    "epub": ("epub", ["--builder", "custom", "--custom-builder", "epub"]),
}


def build(folder, form="html"):
    """Build the book into `folder`/_build and return the finished process with its output."""
    name, options = BUILDERS[form]
    for made in (name, ".doctrees", "jupyter_execute"):  # a second build would hide warnings
        shutil.rmtree(folder / "_build" / made, ignore_errors=True)
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    return subprocess.run(
        [
            *jupyter_book,
            "build",
            *options,
            "-W",
            "-n",
            "--keep-going",
            "--path-output",
            folder,
            ROOT,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def product(folder, form="html"):
    """Return the file to open or to take along; the latter is named after the version."""
    from other_formats import NAME

    made = folder / "_build" / BUILDERS[form][0]
    if form == "epub":
        return Path(shutil.copy(made / f"{NAME}.epub", folder / "_build"))
    if form == "onepage":
        mend_one_page(made)
        named = made.with_name(NAME)
        shutil.rmtree(named, ignore_errors=True)
        made.rename(named)
        return Path(shutil.make_archive(named, "zip", named.parent, NAME))
    return made / "index.html"


def mend_one_page(made):
    """Put the page where its links expect it, and tell the sections of one name apart.

    Sphinx writes it into the folder of the first page, and repeats "summary" for each chapter.
    """
    inside = made / "chapters" / "00_introduction.html"
    text = inside.read_text(encoding="utf-8").replace("chapters/00_introduction.html#", "#")
    text = text.replace('"#document-chapters/00_introduction"', '"#"')
    text = re.sub(
        r'<link rel="(?:index|search|next|prev)"[^>]*>', "", text
    )  # there are no such pages
    text = re.sub(r"<button [^>]*search-button__button.*?</button>", "", text, flags=re.S)
    shutil.rmtree(inside.parent)
    pages, seen = re.split(r'(?=<span id="document-)', text), set()
    for number, page in enumerate(pages):
        names = set(re.findall(r'\bid="([^"]+)"', page))
        for name in names & seen:
            page = re.sub(
                rf'\b(id="|href="#){re.escape(name)}"', rf'\g<1>{name}-page-{number}"', page
            )
        seen |= names
        pages[number] = page
    (made / "index.html").write_text("".join(pages), encoding="utf-8")


if __name__ == "__main__":
    form = sys.argv[1] if len(sys.argv) > 1 else "html"
    process = build(ROOT, form)
    if process.returncode:
        sys.exit(process.stdout + "\nThe book was not built: see the warnings above.")
    print(f"The book is built. Open it:\n\n    {product(ROOT, form).as_uri()}\n")
