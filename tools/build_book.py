"""Build the HTML from the stored outputs; every warning is an error."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(folder):
    """Build the book into `folder`/_build and return the finished process with its output."""
    shutil.rmtree(folder / "_build", ignore_errors=True)  # a second build would hide warnings
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    return subprocess.run(
        [*jupyter_book, "build", "-W", "-n", "--keep-going", "--path-output", folder, ROOT],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


if __name__ == "__main__":
    process = build(ROOT)
    if process.returncode:
        sys.exit(process.stdout + "\nThe book was not built: see the warnings above.")
    page = ROOT / "_build" / "html" / "index.html"
    print(f"The book is built. Open it in a browser:\n\n    {page.as_uri()}\n")
