"""What measures the stacks again notices a change, on a stand-in that needs no torch."""

import io
import sys
import zipfile

import measure_stacks
import pytest

SOURCE = """
open({trace!r}, "w")  # nothing at the top of the module may run

@unknown_decorator
def advantage(group, eps=0.0):
    return (group - group.mean()) / (group.std(ddof={ddof}) + eps)

class Trainer:
    def step(self, unknown):
        unknown.fails()
        mean = group.mean()
        centred = group - mean
        late = unknown.fails_too()
"""
# Deviations 2, -2, 2, -2, 0: the squares sum to 16, and 16 / (5 - 1) is the square of 2.
INPUTS = {"five": [3, -1, 3, -1, 1]}
EXPECTED = {"whole": {"five": [1, -1, 1, -1, 0]}, "part": {"five": [2, -2, 2, -2, 0]}}


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Return a function that measures the stand-in and returns what the tool returns."""
    file = "standin/core.py"
    whole = ("standin", [(file, "advantage")], "", "result = advantage(group)")
    part = ("standin", [(file, "step", "mean", "late")], "", "result = centred")
    table = {"inputs": INPUTS, "advantages": EXPECTED}
    monkeypatch.setattr(measure_stacks, "CONVENTIONS", {"whole": whole, "part": part})
    monkeypatch.setattr(measure_stacks, "vectors", lambda: table)
    monkeypatch.setattr(measure_stacks, "MEASURED", tmp_path / "measured.json")
    monkeypatch.setattr(measure_stacks, "torch_environment", lambda: sys.executable)

    def run(*arguments, source=SOURCE, ddof=1):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(file, source.format(trace=str(tmp_path / "ran"), ddof=ddof))
            archive.writestr(
                zipfile.ZipInfo("standin-2.0.dist-info/METADATA", (2026, 5, 4, 0, 0, 0)),
                "Metadata-Version: 2.1\nName: standin\nVersion: 2.0\n",
            )
        monkeypatch.setattr(measure_stacks, "obtain", lambda *_: zipfile.ZipFile(packed))
        changed = measure_stacks.main(list(arguments))
        assert not (tmp_path / "ran").exists()
        return changed

    return run


def test_what_is_as_before_is_no_change(measure, capsys):
    assert not measure()
    assert "nothing changed" in capsys.readouterr().out


def test_a_changed_ddof_is_noticed_with_version_old_and_new(measure, capsys):
    assert measure(ddof=0)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if " whole " in line]
    stack, version, _, convention, vector, old, new = row.split(" | ")
    assert (stack, version, convention, vector) == ("standin", "2.0", "whole", "five")
    assert old == "[1, -1, 1, -1, 0]"
    assert new.startswith("[1.118")  # the root of 5 / 4


@pytest.mark.parametrize("lost", ["def advantage", "        mean ="])
def test_a_function_that_is_gone_is_a_change(measure, capsys, lost):
    assert measure(source=SOURCE.replace(lost, lost.replace("mean", "m").replace("adv", "new_adv")))
    assert "LookupError" in capsys.readouterr().out


def test_a_function_that_fails_or_does_not_end_is_a_change(measure, monkeypatch, capsys):
    body = "    return (group"
    assert measure(source=SOURCE.replace(body, "    raise ValueError('no')\n" + body))
    assert "ValueError: no" in capsys.readouterr().out
    monkeypatch.setattr(measure_stacks, "SECONDS", 2)
    assert measure(source=SOURCE.replace(body, "    while True: pass\n" + body))
    assert "TimeoutExpired" in capsys.readouterr().out


def test_what_the_table_does_not_have_is_kept_with_version_and_day(measure, monkeypatch):
    known = {"part": EXPECTED["part"]}
    table = {"inputs": INPUTS, "advantages": known}
    monkeypatch.setattr(measure_stacks, "vectors", lambda: table)
    assert measure("standin==2.0", "--store")
    assert measure_stacks.reference() == EXPECTED
    assert not measure()
    assert '"version": "2.0"' in measure_stacks.MEASURED.read_text(encoding="utf-8")


def test_an_unknown_stack_is_answered_with_the_known_ones(measure, capsys):
    with pytest.raises(SystemExit):
        measure("nonesuch")
    assert "there are standin" in capsys.readouterr().err


def test_the_last_run_is_of_the_stacks_of_the_index_and_of_the_vectors_of_the_table():
    stored = measure_stacks.json.loads(measure_stacks.MEASURED.read_text(encoding="utf-8"))
    assert stored["stacks"].keys() >= {"trl", "verl", "openrlhf", "ms-swift"}
    for rows in stored["advantages"].values():
        assert rows.keys() == measure_stacks.vectors()["inputs"].keys()
    # ms-swift took TRL's rule: the group mean, the std with the correction, and 1e-4.
    swift, trl = (measure_stacks.reference()[name] for name in ("ms-swift.grpo", "trl.grpo(group)"))
    for label in ("mixed4 [1,0,1,0]", "rare8 [1,0*7]", "cont4 [.2,.5,.5,.9]"):
        assert swift[label] == pytest.approx(trl[label], rel=1e-6)
