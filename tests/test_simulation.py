"""Every statement that rests on a simulation has its standard error, or says why it needs none."""

import copy
import re

import pytest
from book_pages import read_all
from prose_rules import VALUE, prose
from simulation import STATEMENTS, near_outputs, resting_on_simulation

NOTEBOOKS = read_all()
WITH_ERROR = re.compile(rf"{VALUE} ± {VALUE}")


def unlisted(name, notebook):
    listed = [(s["place"], s["passage"]) for s in STATEMENTS if s["notebook"] == name]
    return [
        (place, sentence.strip())
        for place, sentence in resting_on_simulation(notebook)
        if (place, sentence.strip()) not in listed
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_statement_rests_on_a_simulation_unnoticed(name):
    wrong = unlisted(name, NOTEBOOKS[name])
    assert not wrong, (
        "give the standard error (x ± e, as an output nearby has it), or list the sentence in "
        "tests/data/simulated_statements.toml:\n" + "\n".join(map(str, wrong))
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_an_error_in_prose_belongs_to_its_value(name):
    """The value and the error stand together in an output nearby."""
    for place, text in prose(NOTEBOOKS[name]).items():
        for stated in WITH_ERROR.findall(text):
            outputs = near_outputs(NOTEBOOKS[name], place)
            assert any(stated in output for output in outputs), f"{name}, {place}: {stated}"


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s["passage"][:40])
def test_listed_statements_are_needed_and_explained(statement):
    name = statement["notebook"]
    assert ("exact" in statement) != ("drawn" in statement)
    assert statement.get("exact", statement.get("drawn")).strip()
    found = {(place, s.strip()) for place, s in resting_on_simulation(NOTEBOOKS[name])}
    assert (statement["place"], statement["passage"]) in found, "no such sentence, or not needed"


@pytest.mark.parametrize(
    ("name", "cell", "stated"),
    [
        ("14_training_run", "matched-read", "by 0.0130 ± 0.0009 after"),
        ("14_training_run", "live-read", "18.3 ± 1.1"),
        ("13_data_set_of_prompts", "uniform-text", ""),
    ],
)
def test_a_comparison_without_its_error_is_noticed(name, cell, stated):
    """Take the error away, or state in words what a simulation shows."""
    notebook = copy.deepcopy(NOTEBOOKS[name])
    text = next(c for c in notebook.cells if c.id == cell)
    if stated:
        assert stated in text.source
        text.source = text.source.replace(stated, re.sub(r" ± [\d.]+", "", stated))
    else:
        text.source += " The simulated share is better."
    assert unlisted(name, notebook)
