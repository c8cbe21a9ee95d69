import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.docscrape import FunctionDoc
from numpydoc.validate import validate

import grpo

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "grpo").glob("*.py"))
SUBJECTS = sorted({path.stem for path in SOURCES} - {"__init__", "_validate", "book"})
UNCHECKED = {"ES01", "EX01", "SA01", "SA04", "GL01"}  # as in pyproject.toml

CONSTANTS = {"CONVENTIONS", "SURROGATES"}
FUNCTIONS = [name for name in grpo.__all__ if inspect.isfunction(getattr(grpo, name))]
CLASSES = [name for name in grpo.__all__ if inspect.isclass(getattr(grpo, name))]

every_function = pytest.mark.parametrize("name", FUNCTIONS)


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def public_names(module):
    """Return the functions and classes that a module defines and does not hide."""
    return {
        name
        for name, member in inspect.getmembers(module)
        if (inspect.isfunction(member) or inspect.isclass(member))
        and member.__module__ == module.__name__
        and not name.startswith("_")
    }


def test_the_subject_modules_are_known():
    assert SUBJECTS == [
        "advantage",
        "conventions",
        "dataset",
        "engines",
        "entropy",
        "evidence",
        "exact",
        "groups",
        "identification",
        "kl",
        "language",
        "loss",
        "precision",
        "rewards",
        "step",
        "surrogates",
        "train",
    ]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_public_names_are_offered_by_the_package(subject):
    module = import_module(f"grpo.{subject}")
    names = public_names(module)
    assert names
    assert names <= set(grpo.__all__)
    assert all(getattr(grpo, name) is getattr(module, name) for name in names)


def test_the_package_offers_nothing_else():
    modules = [import_module(f"grpo.{subject}") for subject in SUBJECTS]
    assert set(grpo.__all__) == set().union(CONSTANTS, *map(public_names, modules))
    assert set(grpo.__all__) == CONSTANTS.union(FUNCTIONS, CLASSES)
    assert len(grpo.__all__) == len(set(grpo.__all__))  # ruff sorts them


def test_importing_the_package_imports_nothing_of_the_pages():
    found = run("-c", "import sys, grpo; print(*sys.modules)")
    assert found.returncode == 0, found.stderr
    modules = set(found.stdout.split())
    assert "grpo.advantage" in modules
    assert not modules & {"matplotlib", "IPython", "tabulate", "grpo.book"}


@pytest.mark.parametrize("module", [*SUBJECTS, "_validate", "__init__"])
def test_modules_import_numpy_and_the_standard_library_only(module):
    tree = ast.parse((ROOT / "src" / "grpo" / f"{module}.py").read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.partition(".")[0])
    assert imported <= {"grpo", "numpy", *sys.stdlib_module_names}


@pytest.mark.parametrize("name", FUNCTIONS + CLASSES)
def test_docstrings_are_valid_numpydoc(name):
    errors = validate(f"grpo.{name}")["errors"]
    assert [error for error in errors if error[0] not in UNCHECKED] == []


@every_function
def test_docstrings_have_every_section_and_a_source(name):
    documented = FunctionDoc(getattr(grpo, name))
    for section in ("Summary", "Parameters", "Returns", "Raises", "Notes", "Examples"):
        assert documented[section], section
    notes = "\n".join(documented["Notes"])
    assert ".. math::" in notes
    assert re.search(r"arXiv:\d{4}\.\d{5}|Schulman", notes)
    assert [raised.type for raised in documented["Raises"]] == ["ValueError"]
    assert re.search(rf"from grpo import .*\b{name}\b", "\n".join(documented["Examples"]))


@pytest.mark.parametrize("name", FUNCTIONS + CLASSES)
def test_documented_defaults_are_those_of_the_signature(name):
    signature = inspect.signature(getattr(grpo, name)).parameters
    for documented in FunctionDoc(getattr(grpo, name))["Parameters"]:
        default = re.search(r"default `?(.+?)`?$", documented.type)
        for parameter in documented.name.split(", "):
            known = signature[parameter].default
            if default is None:
                without = None if "optional" in documented.type else inspect.Parameter.empty
                assert known is without, parameter
            elif inspect.isfunction(known):
                assert default[1] == known.__name__, parameter
            else:
                assert ast.literal_eval(default[1]) == known, parameter


@pytest.mark.parametrize("name", CLASSES)
def test_docstrings_of_classes_say_what_their_fields_are(name):
    documented = FunctionDoc(getattr(grpo, name))
    fields = {field for one in documented["Parameters"] for field in one.name.split(", ")}
    assert fields == set(getattr(grpo, name).__dataclass_fields__)


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=" ".join)
def test_the_repository_passes_ruff(command):
    found = run("-m", "ruff", *command, "--no-cache", ".")
    assert found.returncode == 0, found.stdout + found.stderr
