"""Make .venv, the environment of the book, unless it is there and up to date.

Runs on the reader's own Python, so it uses the standard library only.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "made-from"
OLDEST = (3, 11)


def main():
    if sys.version_info < OLDEST:
        sys.exit(
            f"This book needs Python {OLDEST[0]}.{OLDEST[1]} or newer; {sys.executable} is "
            f"{sys.version.split()[0]}.\nInstall a newer one and name it, for example: "
            "make PYTHON=python3.12 book"
        )
    wanted = fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted and venv_python().exists():
        return
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError as error:
        sys.exit(
            f"{sys.executable} cannot make a virtual environment: {error}.\n"
            f"On Debian or Ubuntu: sudo apt install python{sys.version_info[0]}."
            f"{sys.version_info[1]}-venv; on Fedora: sudo dnf install python3-pip; "
            "elsewhere install Python from python.org."
        )
    print(f"Making .venv with Python {sys.version.split()[0]} (about a minute) ...", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    venv.create(VENV, with_pip=True)
    pip_install("--no-deps", "--requirement", "requirements.txt")  # the file is complete
    pip_install("--no-deps", "--no-build-isolation", "--editable", ".")
    STAMP.write_text(wanted)


def fingerprint():
    """Return what .venv depends on: the pinned packages, the project, its place, the Python."""
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode())
    for name in ("requirements.txt", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def venv_python():
    return VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def pip_install(*arguments):
    command = [venv_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*command, *arguments], cwd=ROOT).returncode:
        sys.exit("The packages could not be installed: see the message of pip above.")


if __name__ == "__main__":
    main()
