"""Run the notebooks and the tests of the package with the oldest or the newest numpy.

    python tools/other_versions.py oldest
    python tools/other_versions.py newest

The oldest numpy and matplotlib are those that pyproject.toml allows; they need Python 3.11 or
3.12. All other packages are the pinned ones. What is drawn or built is left out: pictures are
promised for the pinned environment only.
"""

import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "matplotlib")
LEFT_OUT = (
    "figures",
    "html",
    "formats",
    "browser_pages",
    "browser_live",
    "wasm",
    "site_assets",
    "download",
)


def main(which):
    folder = ROOT / ".cache" / which
    venv.create(folder, with_pip=True, clear=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*install, "--no-deps", "--requirement", "requirements.txt")
    if which == "oldest":
        run(*install, *oldest())
    else:
        run(*install, "--upgrade", *PACKAGES)
    run(*install, "--no-deps", "--no-build-isolation", "--editable", ".")
    run(python, "-c", "import numpy, matplotlib as m; print(numpy.__version__, m.__version__)")
    left_out = [f"--ignore=tests/test_{name}.py" for name in LEFT_OUT]
    pictures = ["-p", "no:figures"]
    return subprocess.run([python, "-m", "pytest", *pictures, *left_out], cwd=ROOT).returncode


def oldest():
    """Return the oldest versions that pyproject.toml allows, as pip writes them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return [name + "==" + re.search(name + r">=([\d.]+)", text)[1] for name in PACKAGES]


def run(*command):
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    if sys.argv[1:] not in (["oldest"], ["newest"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
