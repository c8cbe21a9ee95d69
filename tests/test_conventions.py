"""The conventions of named stacks, held to what the stacks' own functions returned."""

import json
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import rewards

from grpo import CONVENTIONS, Convention, advantages, centred_rewards, rloo_advantages

MEASURED = json.loads(
    (files("grpo") / "data" / "advantage_vectors.json").read_text(encoding="utf-8")
)
VECTORS = [(name, label) for name, rows in MEASURED["advantages"].items() for label in rows]
STEP = 2.0**-23  # of float32, relative


def by_group(convention):
    return convention.scale not in ("batch std", "centred batch std")


def numbers(values):
    return np.array([np.nan if value is None else value for value in values])


def test_the_registry_has_the_names_of_the_measured_stacks():
    described = MEASURED["conventions"]
    assert list(CONVENTIONS) == list(described)
    was_read = {name for name, stack in MEASURED["stacks"].items() if stack.get("read_only")}
    run = [name for name, one in described.items() if one["stack"] not in was_read]
    assert run == list(MEASURED["advantages"])
    assert {one["stack"] for one in described.values()} == set(MEASURED["stacks"])


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(KeyError, match=r"no convention 'trl'; there are .*verl\.grpo"):
        CONVENTIONS["trl"]


@pytest.mark.parametrize("name", CONVENTIONS)
def test_the_registry_agrees_with_the_description_in_the_data(name):
    described, convention = MEASURED["conventions"][name], CONVENTIONS[name]
    assert convention.baseline == described["baseline"]
    assert convention.scale == described["scale"]
    assert convention.eps == described.get("eps", 0)
    assert convention.correction == described.get("correction", 0)


@pytest.mark.parametrize("name, label", VECTORS)
def test_measured_vectors_are_reproduced(name, label):
    given_rewards = numbers(MEASURED["inputs"][label]).astype(np.float32)
    measured = MEASURED["advantages"][name][label]
    if isinstance(measured, str):  # the error that the stack raised
        with pytest.raises(ValueError, match="group of one rollout"):
            CONVENTIONS[name](given_rewards)
        return
    computed = CONVENTIONS[name](given_rewards)
    float64 = MEASURED["conventions"][name]["stack"] == "open-instruct"
    assert computed.dtype == (np.float64 if float64 else np.float32)
    # A difference of two rewards is known to one step of float32 of the rewards. Divided by a
    # standard deviation of that same size it would be noise; there the order of the operations
    # is the stack's own, and the noise is the same to six digits.
    divided = CONVENTIONS[name].scale and CONVENTIONS[name].divide_zero_std
    absolute = 0 if divided else STEP * np.nanmax(np.abs(given_rewards))
    np.testing.assert_allclose(computed, numbers(measured), rtol=2e-6, atol=absolute)


@pytest.mark.parametrize("name", [name for name, c in CONVENTIONS.items() if by_group(c)])
def test_rows_are_computed_as_if_they_were_alone(name):
    group = np.random.default_rng(0).random((5, 8))
    rows = [CONVENTIONS[name](row) for row in group]
    np.testing.assert_allclose(CONVENTIONS[name](group), rows, rtol=1e-5)


@given(rewards(min_group=2, spread=True))
def test_known_combinations_are_the_functions_of_the_package(r):
    for correction in (0, 1):
        own = Convention("group mean", "group std", correction, 1e-4)(r)
        np.testing.assert_allclose(own, advantages(r, correction, 1e-4), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(Convention("group mean", None)(r), centred_rewards(r), atol=1e-13)
    loo = Convention("leave-one-out mean", None)(r)
    np.testing.assert_allclose(loo, rloo_advantages(r), atol=1e-12)


@given(rewards(min_group=3, max_dims=2, spread=True), st.sampled_from([0, 1]))
def test_leave_one_out_std_is_that_of_the_others(r, correction):
    r = np.atleast_2d(r)
    computed = Convention("leave-one-out mean", "leave-one-out std", correction, 0.5)(r)
    for group, found in zip(r, computed, strict=True):
        for i, own in enumerate(group):
            others = [Fraction(x) for x in np.delete(group, i)]
            mean = sum(others) / len(others)
            squares = sum((x - mean) ** 2 for x in others)
            std = sqrt(squares / (len(others) - correction))
            assert found[i] == pytest.approx(float(Fraction(own) - mean) / (std + 0.5), rel=1e-11)


@given(rewards(min_group=2, max_dims=2))
def test_the_three_ways_to_form_the_squares_agree_on_exact_numbers(r):
    two, one, after = (
        Convention("group mean", "group std", 0, 0.5, spread=spread)(r)
        for spread in ("two passes", "one pass", "after centring")
    )
    np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(after, two, rtol=1e-12, atol=1e-14)


def test_batch_mean_and_batch_std_worked_by_hand():
    # mean of all 5/8; squares 5 (3/8)^2 + 3 (5/8)^2 = 15/8: std sqrt(15/64) = sqrt(15)/8
    r = [[1, 0, 1, 0], [1, 1, 1, 0]]
    expected = (np.array(r) - 5 / 8) / (sqrt(15) / 8)
    np.testing.assert_allclose(Convention("batch mean", "batch std")(r), expected, rtol=1e-14)
    expected = (np.array(r) - [[1 / 2], [3 / 4]]) / (sqrt(15) / 8)
    np.testing.assert_allclose(Convention("group mean", "batch std")(r), expected, rtol=1e-14)
    np.testing.assert_array_equal(Convention(None, None)(r), r)


def test_stacks_that_were_read_worked_by_hand():
    # means 1/2 and 1/4; the squares of the differences are 4 (1/4) and 3 (1/16) + 9/16 = 3/4
    r = np.array([[1, 0, 1, 0], [1, 0, 0, 0]])
    centred = np.array([[1, -1, 1, -1], [3 / 2, -1 / 2, -1 / 2, -1 / 2]]) / 2
    bessel = np.array([[sqrt(1 / 3)], [1 / 2]])
    expected = {
        "ms-swift.grpo": centred / (bessel + 1e-4),
        "ms-swift.rloo(group std)": centred * 4 / 3 / (bessel + 1e-4),
        "ms-swift.reinforce++": centred / (sqrt(7 / 4 / 7) + 1e-4),
        "rllm.grpo": centred / (np.array([[1 / 2], [sqrt(3 / 16)]]) + 1e-6),
        "rllm.reinforce++": centred / (sqrt(7 / 4 / 8) + 1e-6),
        "areal(group)": centred / (bessel + 1e-5),
        "skyrl.grpo": centred / (bessel + 1e-6),
        "skyrl.maxrl": np.array([[1, -1, 1, -1], [3, -1, -1, -1]]),  # r / mean - 1
    }
    for name, values in expected.items():
        rtol = 5e-6 if name == "skyrl.maxrl" else 1e-6 if CONVENTIONS[name].dtype[5:] == "32" else 0
        np.testing.assert_allclose(CONVENTIONS[name](r), values, rtol=rtol or 1e-13)
    assert list(expected) == list(CONVENTIONS)[-len(expected) :]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ms-swift.grpo", 0),
        ("ms-swift.rloo(group std)", 0),
        ("ms-swift.reinforce++", 0),
        ("rllm.grpo", 3 / (1 + 1e-6)),
        ("rllm.reinforce++", 0),
        ("areal(group)", 0),
        ("skyrl.grpo", 3 / (1 + 1e-6)),
        ("skyrl.maxrl", 3),
    ],
)
def test_a_single_rollout_of_the_stacks_that_were_read(name, expected):
    np.testing.assert_allclose(CONVENTIONS[name]([[3.0]]), [[expected]], rtol=1e-7)


def test_a_mean_that_is_minus_eps_cannot_divide():
    with pytest.raises(ValueError, match=r"eps = 0\.0, and the rewards of a group have a mean"):
        Convention("group mean", "group mean")([[0, 0], [1, 0]])


def test_missing_rewards():
    r = [[1, np.nan, 0, 0], [1, 1, 0, 0]]
    masked = Convention("group mean", "group std", 1, missing="mask")
    # three rewards: mean 1/3, squares 4/9 + 1/9 + 1/9 = 2/3, over 2: std 1/sqrt(3)
    expected = np.array([2, 0, -1, -1]) / sqrt(3)
    np.testing.assert_allclose(masked(r)[0], expected, rtol=1e-14)
    np.testing.assert_allclose(masked(r)[1], Convention("group mean", "group std", 1)(r[1]))
    spread = replace(masked, missing="nan")(r)
    assert np.isnan(spread[0]).all()
    np.testing.assert_array_equal(spread[1], masked(r)[1])
    alone = Convention("group mean", "group std", 1, missing="mask", single="zero")
    np.testing.assert_array_equal(alone([np.nan, 3, np.nan]), [0, 0, 0])


@pytest.mark.parametrize(
    ("single", "expected"), [("zero", [0.0]), ("raw", [3 / 1.5]), ("nan", [np.nan])]
)
def test_a_single_rollout(single, expected):
    convention = Convention("group mean", "group std", 1, 0.5, single=single)
    np.testing.assert_array_equal(convention([3.0]), expected)


def test_a_lone_winner_under_a_leave_one_out_std():
    # its three competitors are equal: nothing divides it, or eps alone
    lone = Convention("leave-one-out mean", "leave-one-out std", 1, 1e-6, divide_zero_std=False)
    assert lone([1, 0, 0, 0])[0] == 1
    assert replace(lone, divide_zero_std=True)([1, 0, 0, 0])[0] == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"baseline": "mean"}, "baseline must be one of .* got 'mean'"),
        ({"scale": "std"}, "scale must be one of .* got 'std'"),
        ({"spread": "three"}, "spread .* 'three'"),
        ({"single": 0}, "single .* got 0"),
        ({"missing": "drop"}, "missing .* 'drop'"),
        ({"dtype": "float16"}, "dtype .* 'float16'"),
        ({"correction": -1}, "correction .* got -1"),
        ({"correction": 0.5}, "correction .* got 0.5"),
        ({"eps": -1e-8}, "eps .* got -1e-08"),
        ({"eps": np.nan}, "eps .* nan"),
    ],
)
def test_unknown_fields_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Convention(**({"baseline": "group mean", "scale": "group std"} | fields))


@pytest.mark.parametrize(
    ("convention", "r", "message"),
    [
        (Convention("group mean", None), [[1, np.nan]], r"rewards\[0, 1\] is nan"),
        (CONVENTIONS["tinker"], [[1, np.inf]], r"rewards\[0, 1\] is inf"),
        (Convention("group mean", "group std"), [[1, 1]], "eps = 0.0, .* no spread"),
        (Convention("leave-one-out mean", None), [[1], [0]], "a group of one rollout"),
        (Convention("group mean", "group std", 1, 1.0), [1], "a group of one rollout"),
        (Convention("group mean", None), [], "G = 0"),
        (Convention("group mean", None), "ab", "rewards must be real numbers, got 'ab'"),
    ],
)
def test_rewards_without_an_answer_are_refused(convention, r, message):
    with pytest.raises(ValueError, match=message):
        convention(r)
