"""A sample of the changes that must not pass unnoticed; `tools/mutate.py` tries all kinds."""

import random

import mutate
import pytest


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return mutate.copy_of_the_project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("kind", ["digit in prose", "README number"])
def test_a_change_is_noticed(copy, kind):
    assert mutate.try_kind(copy, kind, sample=1, seed=0) == (1, [])


def test_a_check_that_sees_nothing_leaves_survivors(copy, monkeypatch):
    blind = mutate.Kind(mutate.dropped_chapter, ("tests/test_kl.py", "-k", "worked_by_hand"))
    monkeypatch.setitem(mutate.KINDS, "dropped chapter", blind)
    tried, survivors = mutate.try_kind(copy, "dropped chapter", sample=1, seed=0)
    assert tried == len(survivors) == 1


@pytest.mark.parametrize("kind", mutate.KINDS)
def test_changes_are_changes_and_the_seed_decides(kind):
    def first():
        return next(mutate.KINDS[kind].changes(mutate.ROOT, random.Random(1)))

    change = first()
    assert change == first()
    assert change.text != (mutate.ROOT / change.file).read_text(encoding="utf-8")
