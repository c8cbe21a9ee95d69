from fractions import Fraction
from math import comb, isclose, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    expectation,
    group_sizes,
    inner_probabilities,
    probabilities,
    rewards,
    seeds,
)

from grpo import (
    all_equal,
    baseline_standard_error,
    baseline_variance,
    degenerate_probability,
    full_batch_probability,
    groups_to_sample,
    informative_groups,
    informative_per_rollout,
    informative_probability,
    nondegenerate_mask,
    rollouts_per_informative_group,
    sample_groups,
)

OF_P_AND_G = (
    degenerate_probability,
    informative_probability,
    informative_per_rollout,
    rollouts_per_informative_group,
    baseline_variance,
    baseline_standard_error,
)
of_p_and_g = pytest.mark.parametrize("function", OF_P_AND_G)
enumerated = pytest.mark.parametrize("G", range(1, 7))
tenths = pytest.mark.parametrize("p", [Fraction(k, 10) for k in range(11)], ids=str)


def close(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-15)


def differ(group):
    return len(set(group)) > 1


@given(probabilities, group_sizes, st.integers(0, 9), seeds)
def test_samples_are_uniforms_below_p_group_by_group(p, G, n, seed):
    rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
    found = sample_groups(p, G, n, rng=rng)
    assert found.dtype == np.float64
    assert found.tolist() == [[float(same.random() < p) for _ in range(G)] for _ in range(n)]
    assert rng.random() == same.random()


def test_a_uniform_equal_to_p_is_wrong():
    p = np.random.default_rng(0).random()
    assert sample_groups(p, 1, 1, rng=np.random.default_rng(0)) == 0


@pytest.mark.parametrize("p", [0, 1])
def test_certain_rewards_are_constant(p):
    assert (sample_groups(p, 8, 100, rng=np.random.default_rng(0)) == p).all()


# By hand: 0.5**4 is 1/16; 0.9**2 + 0.1**2 = 0.82; 0.9**4 + 0.1**4 = 0.6561 + 0.0001
@pytest.mark.parametrize(
    ("p", "G", "expected"),
    [(0.5, 1, 1), (0.5, 4, 0.125), (0.9, 2, 0.82), (0.9, 4, 0.6562), (0, 4, 1), (1, 4, 1)],
)
def test_probabilities_worked_by_hand(p, G, expected):
    assert degenerate_probability(p, G) == close(expected)
    assert informative_probability(p, G) == close(1 - expected)
    assert informative_per_rollout(p, G) == close((1 - expected) / G)


@tenths
@enumerated
def test_probabilities_agree_with_enumeration(p, G):
    informative = expectation(differ, p, G)
    assert degenerate_probability(float(p), G) == close(float(1 - informative))
    assert informative_probability(float(p), G) == close(float(informative))
    assert informative_per_rollout(float(p), G) == close(float(informative / G))


@of_p_and_g
@given(p=st.integers(0, 1024).map(lambda k: k / 1024), G=group_sizes)
def test_right_and_wrong_may_be_swapped(function, p, G):
    assert function(p, G) == close(function(1 - p, G))


@given(probabilities, group_sizes)
def test_a_group_is_either_degenerate_or_informative(p, G):
    assert degenerate_probability(p, G) + informative_probability(p, G) == close(1)


@given(
    st.one_of(
        st.floats(1e-300, 0.5),
        st.floats(0.5, 1, exclude_max=True),
        st.sampled_from([1e-300, 1e-17, 1e-12, 1 - 1e-12, 1e-6]),
    ),
    st.integers(2, 64),
)
def test_informative_probability_is_relatively_accurate(p, G):
    exact = 1 - Fraction(p) ** G - (1 - Fraction(p)) ** G
    assert isclose(informative_probability(p, G), exact, rel_tol=1e-13)


@given(probabilities)
def test_two_and_three_rollouts_tie(p):
    # 1 - p**2 - (1-p)**2 = 2 p (1-p), and 1 - p**3 - (1-p)**3 = 3 p (1-p)
    assert informative_per_rollout(p, [2, 3]) == close([p * (1 - p)] * 2)


@given(inner_probabilities)
def test_from_three_rollouts_on_more_of_them_yield_less_each(p):
    assert (np.diff(informative_per_rollout(p, np.arange(3, 40))) < 0).all()


@pytest.mark.parametrize("G", [1, 2, 4])
@pytest.mark.parametrize("p", [0, 0.5, 1])
def test_the_price_is_infinite_where_no_group_can_be_informative(p, G):
    assert np.isposinf(rollouts_per_informative_group(p, G)) == (G == 1 or p in (0, 1))


# By hand: 4 / (7/8); 2 / 0.18; 4 / 0.3438
@pytest.mark.parametrize(
    ("p", "G", "expected"), [(0.5, 4, 32 / 7), (0.9, 2, 100 / 9), (0.9, 4, 4 / 0.3438)]
)
def test_prices_worked_by_hand(p, G, expected):
    assert rollouts_per_informative_group(p, G) == close(expected)


@given(inner_probabilities, st.integers(2, 24))
def test_the_price_is_one_over_the_yield(p, G):
    assert rollouts_per_informative_group(p, G) * informative_per_rollout(p, G) == close(1)


# By hand: whole groups times 1 - 0.6562, so 250, 250 again with 3 left over, 1, none and none
@pytest.mark.parametrize(
    ("budget", "expected"), [(1000, 85.95), (1003, 85.95), (4, 0.3438), (3, 0), (0, 0)]
)
def test_only_whole_groups_are_bought(budget, expected):
    assert informative_groups(budget, 0.9, 4) == close(expected)


@tenths
@enumerated
def test_baseline_variance_agrees_with_enumeration(p, G):
    variance = expectation(lambda group: (Fraction(sum(group), G) - p) ** 2, p, G)
    assert baseline_variance(float(p), G) == close(float(variance))
    assert baseline_standard_error(float(p), G) == close(sqrt(variance))


def test_baseline_spread_worked_by_hand():
    # 0.9 * 0.1 / 9 = 0.01, whose root is 0.1; 1/4 / 16 = 1/64, whose root is 1/8
    assert baseline_variance([0.9, 0.5], [9, 16]) == close([0.01, 1 / 64])
    assert baseline_standard_error([0.9, 0.5], [9, 16]) == close([0.1, 0.125])


def test_group_sizes_reach_the_largest_exact_integer():
    # 1/4 over 2**53
    assert baseline_variance(0.5, 2**53) == 2.0**-55


@of_p_and_g
def test_p_and_g_broadcast(function):
    p, G = [0.1, 0.5, 0.9], [2, 4]
    found = function(np.array(p)[:, None], G)
    assert found == close(np.array([[function(a, b) for b in G] for a in p]))


def test_budgets_broadcast_over_p_and_g():
    # 5 groups of 2 at 2 p (1-p); 2 groups of 4 at 1 - 0.6562 and 7/8
    assert informative_groups(10, [[0.9], [0.5]], [2, 4]) == close(
        np.array([[0.9, 0.6876], [2.5, 1.75]])
    )


@of_p_and_g
def test_numbers_give_a_number(function):
    assert isinstance(function(0.5, 4), float)
    assert isinstance(informative_groups(8, 0.5, 4), float)


@given(rewards())
def test_the_mask_finds_the_groups_whose_rewards_differ(batch):
    mask = nondegenerate_mask(batch)
    assert mask.dtype == bool
    assert mask.shape == batch.shape[:-1]
    for index in np.ndindex(mask.shape):
        assert mask[index] == differ(batch[index].tolist())


# By hand: the population std of (0, d) is d/2
@pytest.mark.parametrize(
    ("group", "tol", "live"),
    [
        ([1, 0], {"tol": 0.5}, False),
        ([1, 0], {"tol": 0.499}, True),
        ([1, 0], {"tol": 0}, True),
        ([1, 1], {"tol": 0}, False),
        ([0, 1.8e-6], {}, False),
        ([0, 2.2e-6], {}, True),
    ],
)
def test_the_mask_counts_a_std_up_to_tol_as_equal(group, tol, live):
    assert nondegenerate_mask(group, **tol) == live


@given(st.floats(-1, 1, width=32), group_sizes)
def test_the_mask_is_not_fooled_by_rounding_of_equal_float32_rewards(value, G):
    assert not nondegenerate_mask(np.full(G, value, np.float32))


def test_the_mask_of_no_groups_is_empty():
    assert nondegenerate_mask(np.ones((0, 4))).shape == (0,)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("G", [2, 4, 8])
def test_simulated_groups_agree_within_five_standard_errors(p, G):
    n = 20_000
    sample = sample_groups(p, G, n, rng=np.random.default_rng(G))
    means, live = sample.mean(axis=1), nondegenerate_mask(sample)
    waits = G * np.diff(np.flatnonzero(live))
    squares = (means - p) ** 2

    def within(values, exact):
        return abs(values.mean() - exact) < 5 * values.std() / sqrt(len(values))

    assert within(means, p)
    assert within(squares, baseline_variance(p, G))
    assert within(live, informative_probability(p, G))
    assert within(waits, rollouts_per_informative_group(p, G))


@given(rewards())
def test_all_equal_is_that_every_reward_is_the_first(r):
    expected = np.array([len(set(group.tolist())) == 1 for group in r.reshape(-1, r.shape[-1])])
    np.testing.assert_array_equal(all_equal(r).ravel(), expected)


def test_all_equal_knows_no_rounding():
    for dtype in (np.float16, np.float32, np.float64):
        group = np.full(7, 0.1, dtype)
        assert all_equal(group)
        group[3] = np.nextafter(group[3], dtype(1))
        assert not all_equal(group)


def exact_full_batch(live, n, p, G):
    """Return the binomial tail in exact arithmetic."""
    p = Fraction(p)
    q = 1 - p**G - (1 - p) ** G
    return sum(comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(live, n + 1))


@given(st.integers(1, 12), st.integers(0, 40), inner_probabilities, st.integers(2, 9))
def test_full_batch_probability_is_the_binomial_tail(live, n, p, G):
    exact = float(exact_full_batch(live, n, p, G))
    assert full_batch_probability(live, n, p, G) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(st.integers(1, 6), inner_probabilities, st.integers(2, 9), st.floats(0.05, 0.99))
def test_groups_to_sample_is_the_smallest_number_that_suffices(live, p, G, probability):
    n = groups_to_sample(live, p, G, probability)
    assert n >= live
    assert full_batch_probability(live, n, p, G) >= probability
    if n < 200:
        assert n == live or float(exact_full_batch(live, n - 1, p, G)) < probability + 1e-9


def test_filling_a_batch_at_the_edges():
    assert full_batch_probability(1, 5, 1.0, 4) == 0
    assert full_batch_probability(3, 2, 0.5, 4) == 0
    # one group of two is live with probability 1/2: two of two with 1/4, one of two with 3/4
    assert full_batch_probability(2, 2, 0.5, 2) == pytest.approx(1 / 4, rel=1e-14)
    assert full_batch_probability(1, 2, 0.5, 2) == pytest.approx(3 / 4, rel=1e-14)
    # a half to the power of two thousand is 0 in float64: every group is live
    assert full_batch_probability(3, 3, 0.5, 2000) == 1
    assert groups_to_sample(1, 0.5, 2, 0.75) == 2
    assert groups_to_sample(1, 0.5, 2, 0.76) == 3


@pytest.mark.parametrize("probability", [0, 1, -0.1, 1.1])
def test_a_certain_number_of_groups_does_not_exist(probability):
    with pytest.raises(ValueError, match=r"probability must be in \(0, 1\)"):
        groups_to_sample(1, 0.5, 4, probability)


@pytest.mark.parametrize(("p", "G"), [(0, 4), (1, 4), (0.5, 1)])
def test_a_batch_that_is_never_full(p, G):
    with pytest.raises(ValueError, match="no group can be informative with p"):
        groups_to_sample(1, p, G)
