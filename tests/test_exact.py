from fractions import Fraction
from itertools import product
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import expectation, inner_probabilities, probabilities, seeds

from grpo import (
    advantages,
    centred_rewards,
    expectation_over_counts,
    expectation_over_outcomes,
    expected_update,
    outcomes,
    rloo_advantages,
)

small_groups = st.integers(1, 6)


def close(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("G", range(1, 9))
def test_outcomes_count_up_in_binary(G):
    found = outcomes(G)
    assert found.dtype == np.float64
    assert found.tolist() == [list(group) for group in product((0, 1), repeat=G)]


def test_outcomes_reach_the_largest_group_allowed():
    found = outcomes(20)
    assert found.shape == (2**20, 20)
    assert found[-1].all()


@given(probabilities, small_groups, seeds)
def test_expectation_over_outcomes_agrees_with_enumeration(p, G, seed):
    values = np.random.default_rng(seed).integers(-100, 100, 2**G).tolist()
    table = dict(zip(product((0, 1), repeat=G), values, strict=True))
    exact = expectation(table.__getitem__, p, G)
    assert expectation_over_outcomes(values, p, G) == close(float(exact))


@given(probabilities, small_groups, seeds)
def test_expectation_over_counts_agrees_with_enumeration(p, G, seed):
    values = np.random.default_rng(seed).integers(-100, 100, G + 1).tolist()
    exact = expectation(lambda group: values[sum(group)], p, G)
    assert expectation_over_counts(values, p, G) == close(float(exact))


@given(probabilities, st.integers(1, 64))
def test_expectation_over_counts_has_binomial_moments(p, G):
    k = np.arange(G + 1)
    assert expectation_over_counts(k**0, p, G) == close(1)
    assert expectation_over_counts(k, p, G) == close(G * p)
    assert expectation_over_counts((k - G * p) ** 2, p, G) == close(G * p * (1 - p))


@given(probabilities, small_groups)
def test_each_rollout_is_right_with_probability_p(p, G):
    assert expectation_over_outcomes(outcomes(G), p, G) == close([p] * G)


def test_expectations_worked_by_hand():
    # G = 2, p = 1/4: the outcomes 00, 01, 10, 11 have 9, 3, 3 and 1 sixteenths
    assert expectation_over_outcomes([1, 2, 3, 4], 0.25, 2) == close((9 + 6 + 9 + 4) / 16)
    # the counts 0, 1 and 2 have 9, 6 and 1
    assert expectation_over_counts([1, 2, 3], 0.25, 2) == close((9 + 12 + 3) / 16)


@pytest.mark.parametrize("p", [0, 1])
def test_certain_rewards_leave_one_outcome(p):
    assert expectation_over_outcomes([5, 6, 7, 8], p, 2) == (8 if p else 5)
    assert expectation_over_counts([5, 6, 7], p, 2) == (7 if p else 5)


@pytest.mark.parametrize("tail", [(), (3,), (3, 2), (0,)])
def test_axes_after_the_first_are_kept(tail):
    # every entry holds the number right, whose expectation is 3 * 0.2
    right = outcomes(3).sum(axis=1).reshape(-1, *[1] * len(tail))
    counts = np.arange(4.0).reshape(-1, *[1] * len(tail))
    for found in (
        expectation_over_outcomes(right * np.ones(tail), 0.2, 3),
        expectation_over_counts(counts * np.ones(tail), 0.2, 3),
    ):
        assert found.shape == tail
        assert found == close(np.full(tail, 0.6))


def test_numbers_give_a_number():
    assert isinstance(expectation_over_outcomes([1, 2], 0.5, 1), float)
    assert isinstance(expectation_over_counts([1, 2], 0.5, 1), float)


@pytest.mark.parametrize("G", [100, 1029])
def test_counts_reach_large_groups(G):
    # the middle count, in exact arithmetic
    middle = Fraction(comb(G, G // 2), 2**G)
    values = np.arange(G + 1) == G // 2
    assert expectation_over_counts(values, 0.5, G) == pytest.approx(float(middle), rel=1e-11)


@given(inner_probabilities, st.integers(2, 9))
def test_expected_update_is_the_sum_over_all_groups(p, G):
    def update(group, advantage):
        found = advantage(np.array(group, float))
        return Fraction(float(found @ (np.array(group) - p) / G))

    for advantage in (advantages, centred_rewards):
        exact = float(expectation(lambda group, f=advantage: update(group, f), p, G))
        computed = expected_update(p, G, advantage)
        assert computed == pytest.approx(exact / (p * (1 - p)), rel=1e-6)


@given(inner_probabilities, st.integers(2, 60))
def test_expected_update_in_closed_form(p, G):
    assert expected_update(p, G, centred_rewards) == pytest.approx((G - 1) / G, rel=1e-9)
    assert expected_update(p, G, rloo_advantages) == pytest.approx(1, rel=1e-9)
    k = np.arange(G + 1)
    chance = np.array([comb(G, i) * p**i * (1 - p) ** (G - i) for i in range(G + 1)])
    weight = chance @ np.sqrt(k * (G - k)) / (G * p * (1 - p))
    assert expected_update(p, G) == pytest.approx(weight, rel=1e-6)
    bessel = expected_update(p, G, lambda r: advantages(r, correction=1))
    assert bessel == pytest.approx(weight * sqrt((G - 1) / G), rel=1e-6)


@given(inner_probabilities, st.integers(2, 30))
def test_expected_update_without_a_baseline_by_hand(p, G):
    # E[r (r - p)] = p (1 - p), and E[r - p] = 0
    assert expected_update(p, G, lambda r: r) == pytest.approx(1, rel=1e-9)
    assert expected_update(p, G, np.ones_like) == pytest.approx(0, abs=1e-9)


def test_expected_update_of_two_four_and_many():
    assert expected_update([0.01, 0.3, 0.5, 0.9], 2) == pytest.approx([1, 1, 1, 1], rel=1e-7)
    # one right of four: sqrt(3)/4 with chance 4 p q^3; two right: 1/2 with chance 6 p^2 q^2
    p, q = 0.1, 0.9
    by_hand = (4 * p * q * (q**2 + p**2) * sqrt(3) / 4 + 6 * p**2 * q**2 / 2) / (p * q)
    assert expected_update(0.1, 4) == pytest.approx(by_hand, rel=1e-7)
    for p in (0.2, 0.5):
        assert expected_update(p, 1000) == pytest.approx(1 / sqrt(p * (1 - p)), rel=2e-3)


@pytest.mark.parametrize(
    ("p", "G", "advantage", "message"),
    [
        (0, 4, advantages, r"p must be in \(0, 1\), got 0"),
        ([0.5, 1], 4, advantages, r"p must be in \(0, 1\), got 1"),
        (1.5, 4, advantages, r"p must be in \[0, 1\], got 1.5"),
        (0.5, 1, advantages, "G must be >= 2, got 1"),
        (0.5, 1030, advantages, "got 1030"),
        (0.5, 4, lambda r: r.mean(axis=1), r"keep the shape \(5, 4\), got \(5,\)"),
        (0.5, 4, lambda r: r * np.nan, r"advantages\[0, 0\] is nan"),
    ],
)
def test_expected_update_refuses(p, G, advantage, message):
    with pytest.raises(ValueError, match=message):
        expected_update(p, G, advantage)
