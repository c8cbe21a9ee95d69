"""What README, CONTRIBUTING and CITATION say about the project; doctest runs the examples."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from prose_rules import NOTICED

import grpo

ROOT = Path(__file__).parents[1]
README, CONTRIBUTING = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_files_that_are_named_exist(text):
    linked = re.findall(r"\[[^]\"]+\]\((?!http)([\w./-]+)\)", text)
    named = re.findall(r"`([\w./]+/[\w./]*|\w+\.(?:md|cff|txt|toml|yml))`", text)
    run = re.findall(r"chapters/\w+\.ipynb", text)
    made = {"_build", "_static/wheels", ".cache/site", ".cache/torch", "web/node_modules"}
    for name in {*linked, *named, *run} - made:
        places = (
            ROOT / name,
            ROOT / "src" / "grpo" / name,
            ROOT / "web" / name,
            ROOT / "tests" / name,
        )
        assert any(place.exists() for place in places), name
    assert all(re.findall(r"!\[([^]]*)\]", text))


def test_make_targets_that_are_named_exist():
    targets = set(re.findall(r"^([a-z ]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    known = {word for line in targets for word in line.split()}
    named = set(re.findall(r"\bmake (?:PYTHON=\S+ )?([a-z]+)", README + CONTRIBUTING))
    assert len(named) > 6
    assert named <= known


def test_counts_and_limits_are_those_of_the_tests():
    assert f"{NOTICED:.0%}".replace("%", " %") in README
    minimum = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {minimum} or newer" in README
    reports = json.loads((ROOT / "tests/data/field_reports.json").read_text("utf-8"))
    assert sum(report["kind"] in ("numeric", "use") for report in reports) == 30
    assert "Thirty questions" in README
    measured = json.loads((ROOT / "src/grpo/data/advantage_vectors.json").read_text("utf-8"))
    assert len(measured["stacks"]) == 14
    assert "fourteen training stacks" in README


def test_there_is_one_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    latest, date = re.search(r"^## (\d\S+) \((\S+)\)", changes, re.M).groups()
    assert grpo.__version__ == PROJECT["version"] == citation["version"] == latest
    assert str(citation["date-released"]) == date
