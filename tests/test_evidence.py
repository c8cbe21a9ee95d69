"""What each group says about a rule: intervals of eps by hand, precision read off the digits."""

import numpy as np
import pytest

from grpo import CONVENTIONS, group_evidence, identify, read_precision, round_to_bfloat16

TRL = CONVENTIONS["trl.grpo(group)"]


def of(found, baseline, scale, correction=0):
    """Return the evidence for a rule; the first one where a standard deviation is 0."""
    fields = (baseline, scale, correction)
    return next(one for one in found if (one.baseline, one.scale, one.correction) == fields)


def test_the_interval_of_a_group_worked_by_hand():
    # n = 1/2 and std = 1/2: eps in [0.5 / (0.98 + 0.01) - 0.5, 0.5 / (0.98 - 0.01) - 0.5]
    rewards, advantages = [[1, 0, 1, 0]], [[0.98, -0.98, 0.98, -0.98]]
    one = of(group_evidence(rewards, advantages, atol=0.01), "group mean", "group std")
    assert one.low[0] == pytest.approx(0.5 / 0.99 - 0.5, abs=1e-6)
    assert one.high[0] == pytest.approx(0.5 / 0.97 - 0.5, abs=1e-6)


def test_an_advantage_within_its_error_bounds_eps_from_below_only():
    rewards, advantages = [[1, 0, 0, 0]], [[0.004, 0, 0, 0]]
    one = of(group_evidence(rewards, advantages, atol=0.005), "group mean", "group std")
    assert one.high[0] == np.inf
    assert one.low[0] == pytest.approx(0.75 / 0.009 - np.sqrt(3) / 4, rel=1e-5)
    assert one.eps_range() is None and not one.explained().any()


def test_rounded_rewards_widen_the_interval():
    # differences off by 2 (0.005), the standard deviation by sqrt(4/4) 0.005
    rewards, advantages = [[0.75, 0.25, 0.75, 0.25]], [[1.0, -1.0, 1.0, -1.0]]
    found = group_evidence(rewards, advantages, atol=0, rewards_atol=0.005)
    one = of(found, "group mean", "group std")
    assert one.low[0] == pytest.approx(0.24 - 0.25 - 0.005, abs=1e-6)
    assert one.high[0] == pytest.approx(0.26 - 0.25 + 0.005, abs=1e-6)


def test_groups_of_unequal_sizes():
    rewards = [[1, 0, 1, 0], [1, 0, 0], [0.3, 0.9], [1, 1, 0, 0, 1, 0]]
    made = [TRL(np.array(group)) for group in rewards]
    made[3] = made[3][::-1]
    one = of(group_evidence(rewards, made), "group mean", "group std", 1)
    assert one.explained().tolist() == [True, True, True, False]
    assert "trl.grpo(group)" in one.names
    assert one.eps == pytest.approx(1e-4, rel=1e-2)
    # the last one is mirrored: 1/2 over sqrt(3/10), off by twice that
    assert one.residual[3] == pytest.approx(1 / np.sqrt(0.3), rel=1e-3)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_all_groups_are_explained_by_the_rule_that_made_them(name):
    rng = np.random.default_rng(0)
    rule = CONVENTIONS[name]
    rewards = rng.random((12, 5), dtype=np.float32).astype(float)
    rewards[4] = 0.5
    fitting = [
        one
        for one in group_evidence(rewards, rule(rewards))
        if name in one.names and one.explained().all()
    ]
    assert len(fitting) == 1
    assert fitting[0].silent.nonzero()[0].tolist() == [4]


def test_verdicts_on_silent_groups():
    rewards = [[1, 0, 0, 1], [0] * 4, [1] * 4, [0] * 4]
    made = [*TRL(np.array(rewards, float))[:1], [0] * 4, [0.5] * 4, [0, 0, 0, 0.1]]
    one = of(group_evidence(rewards, made), "group mean", "group std", 1)
    assert one.silent.tolist() == [False, True, True, True]
    assert one.telling.tolist() == [True, False, False, False]
    assert one.explained().tolist() == [True, True, False, False]


def test_the_eps_of_most_groups_is_chosen():
    rng = np.random.default_rng(1)
    rewards = rng.random((10, 6))
    made = np.concatenate(
        [
            CONVENTIONS["verl.grpo"](rewards[:3]),
            CONVENTIONS["trl.grpo(group)"](rewards[3:]),
        ]
    )
    one = of(group_evidence(rewards, made), "group mean", "group std", 1)
    low, high = one.eps_range()
    assert low <= 1e-4 <= high and high < 2e-4
    assert one.explained().tolist() == [False] * 3 + [True] * 7
    assert one.explains(1e-6).tolist() == [True] * 3 + [False] * 7


def test_one_array_and_a_list_of_rows_say_the_same():
    rewards = np.random.default_rng(2).random((3, 4))
    made = TRL(rewards)
    for one, other in zip(
        group_evidence(rewards, made), group_evidence(list(rewards), list(made)), strict=True
    ):
        np.testing.assert_array_equal(one.low, other.low)
        np.testing.assert_array_equal(one.high, other.high)


def gdpo(columns, weights):
    """Return the advantages of GDPO with Bessel's correction and 1e-8, column by column."""
    total = np.zeros(columns.shape[:2])
    for m, weight in enumerate(weights):
        for g, group in enumerate(columns[:, :, m]):
            if np.ptp(group) > 0:
                total[g] += weight * (group - group.mean()) / (group.std(ddof=1) + 1e-8)
    return (total - total.mean()) / (total.std(ddof=1) + 1e-8)


def test_columns_that_are_normalised_apart_are_recognised():
    rng = np.random.default_rng(5)
    columns = (rng.random((8, 4, 2)) < 0.5).astype(float)
    columns[2, :, 0] = 1  # the first reward is silent there
    weights = [1, 0.25]
    made = gdpo(columns, weights)
    for digits in (None, 4, 3):
        given = made if digits is None else made.round(digits)
        found = identify(columns, given, weights=weights)
        assert found.names == ("ms-swift.gdpo",)
        assert (found.candidates[0].scale, found.candidates[0].correction) == ("columns apart", 1)
        last = group_evidence(columns, given, weights=weights)[-1]
        assert last.explained().all()
    made[5, 1] += 0.1
    last = group_evidence(columns, made, weights=weights)[-1]
    assert (~last.explained()).nonzero()[0].tolist() == [5]
    assert last.residual[5] == pytest.approx(0.1)
    # the weighted sum does not show it
    assert "ms-swift.gdpo" not in identify(columns @ weights, gdpo(columns, weights)).names


def test_with_columns_the_other_rules_are_tried_on_their_sum():
    rng = np.random.default_rng(6)
    columns = (rng.random((8, 4, 2)) < 0.5).astype(float)
    found = identify(columns, TRL(columns @ [1, 0.5]), weights=[1, 0.5])
    assert "trl.grpo(group)" in found.names and "ms-swift.gdpo" not in found.names


def test_columns_that_do_not_fit_their_weights_are_refused():
    for call in (identify, group_evidence):
        with pytest.raises(ValueError, match=r"got \(1, 2\) and \(1,\)"):
            call([[1, 0]], [[1, -1]], weights=[1])
        with pytest.raises(ValueError, match=r"weights\[0\] is nan"):
            call([[[1], [0]]], [[1, -1]], weights=[np.nan])


@pytest.mark.parametrize(
    ("values", "name", "error"),
    [
        ([1, 0, -1], "whole numbers", 0.005),
        ([1.5, 0.3], "1 decimal", 0.005),
        ([0.87, -0.29], "2 decimals", 0.005),
        ([0.866, -0.29], "3 decimals", 5e-4),
        ([0.86603], "5 decimals", 5e-6),
        ([float(np.float32(0.8660254))], "float32", 2.0**-24),
        ([float(np.float16(0.8660254))], "float16", 2.0**-11),
        ([float(round_to_bfloat16(0.8660254))], "bfloat16", 2.0**-8),
        ([0.8660254037844387], "float64", 2.0**-53),
    ],
)
def test_precision_is_read_off_the_digits(values, name, error):
    read = read_precision(values)
    assert read.name == name
    # the relative error of whole numbers and halves is that of bfloat16, which holds them as well
    assert max(read.absolute, read.relative) == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize("bits, half_unit", [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_no_number_is_farther_from_its_rounding_than_the_precision_says(bits, half_unit):
    values = np.random.default_rng(4).normal(size=10_000)
    if bits == "float16":
        short = values.astype(np.float16).astype(float)
    else:
        short = round_to_bfloat16(values).astype(float)
    off = np.abs(values - short) / np.abs(short)
    assert off.max() <= half_unit
    assert off.max() > 0.95 * half_unit  # and not much less would do


@pytest.mark.parametrize(
    ("rewards", "advantages", "message"),
    [
        ([[1, 0], [1, 0, 0]], [[1, -1], [1, -1]], r"same groups, got sizes \[2, 3\] and \[2, 2\]"),
        ([[1, 0], [1]], [[1, -1], [0]], "at least 2 rollouts, but group 1 has 1"),
        ([], [], r"got sizes \[\] and \[\]"),
        ([[1, np.nan]], [[1, 0]], r"rewards\[0\] must be finite, but rewards\[0\]\[1\] is nan"),
        ([[1, 0]], [[1, np.inf]], r"advantages\[0\]\[1\] is inf"),
        ([1, 0], [1, -1], r"rewards\[0\] must have shape \(G,\)"),
        (3, [[1]], "rewards must be groups of numbers, got 3"),
        ([["a", "b"]], [[1, 0]], "must be real numbers"),
    ],
)
def test_what_is_no_batch_is_refused(rewards, advantages, message):
    with pytest.raises(ValueError, match=message):
        group_evidence(rewards, advantages)


def test_a_negative_tolerance_is_refused():
    for name in ("atol", "rewards_atol"):
        with pytest.raises(ValueError, match=f"{name} must be >= 0, got -1"):
            group_evidence([[1, 0]], [[1, -1]], **{name: -1})
