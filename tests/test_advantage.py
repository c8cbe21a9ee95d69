from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import group_sizes, rewards, seeds

from grpo import (
    advantages,
    bessel_ratio,
    centred_rewards,
    leave_one_out_baseline,
    rloo_advantages,
)

PER_ROLLOUT = (advantages, centred_rewards, leave_one_out_baseline, rloo_advantages)
every_function = pytest.mark.parametrize("function", PER_ROLLOUT)
relative = pytest.mark.parametrize("function", (advantages, centred_rewards, rloo_advantages))


def close(expected):
    return pytest.approx(expected, rel=1e-11, abs=1e-11)


def in_fractions(group, correction):
    """Return the mean of one group and its standard deviation, rounded once each."""
    group = [Fraction(r) for r in group]
    mean = sum(group) / len(group)
    return mean, sqrt(sum((r - mean) ** 2 for r in group) / (len(group) - correction))


@pytest.mark.parametrize(
    ("group", "correction", "eps", "expected"),
    [
        # mean 1/2, every deviation 1/2, so std 1/2; under Bessel sqrt(4 (1/4) / 3) = 1/sqrt(3)
        ([1, 0, 1, 0], 0, 0, [1, -1, 1, -1]),
        ([1, 0, 1, 0], 1, 0, [sqrt(3) / 2, -sqrt(3) / 2, sqrt(3) / 2, -sqrt(3) / 2]),
        # the same with eps as large as the std: half of it
        ([1, 0, 1, 0], 0, 0.5, [0.5, -0.5, 0.5, -0.5]),
        # mean 1/4, squares 9/16 + 3/16 = 3/4: std sqrt(3/4 / 4) = sqrt(3)/4, under Bessel 1/2
        ([1, 0, 0, 0], 0, 0, [sqrt(3), -1 / sqrt(3), -1 / sqrt(3), -1 / sqrt(3)]),
        ([1, 0, 0, 0], 1, 0, [1.5, -0.5, -0.5, -0.5]),
        # mean 2, squares 1 + 0 + 1 = 2: over 3, 2 and 1
        ([1, 2, 3], 0, 0, [-sqrt(1.5), 0, sqrt(1.5)]),
        ([1, 2, 3], 1, 0, [-1, 0, 1]),
        ([1, 2, 3], 2, 0, [-sqrt(0.5), 0, sqrt(0.5)]),
        # one rollout is its own mean
        ([5], 0, 1e-8, [0]),
        ([3, 3, 3, 3], 0, 1e-8, [0, 0, 0, 0]),
    ],
)
def test_advantages_worked_by_hand(group, correction, eps, expected):
    assert advantages(group, correction=correction, eps=eps) == pytest.approx(expected, rel=1e-14)


def test_defaults_are_population_and_1e_8():
    # 1/2 over (1/2 + 1e-8)
    assert advantages([1, 0])[0] == pytest.approx(1 / (1 + 2e-8), rel=1e-14)


@given(rewards(spread=True, min_group=2, max_dims=1), st.integers(0, 1), st.floats(0, 10))
def test_advantages_agree_with_exact_arithmetic(group, correction, eps):
    mean, std = in_fractions(group, correction)
    assert advantages(group, correction, eps) == close(
        [float(Fraction(r) - mean) / (std + eps) for r in group]
    )


@relative
@given(batch=rewards(min_group=2))
def test_every_group_has_mean_zero(function, batch):
    assert function(batch).mean(axis=-1) == close(np.zeros(batch.shape[:-1]))


@every_function
@given(batch=rewards(min_group=2), seed=seeds)
def test_permuting_a_group_permutes_the_result(function, batch, seed):
    order = np.random.default_rng(seed).permutation(batch.shape[-1])
    assert function(batch[..., order]) == close(function(batch)[..., order])


@relative
@given(batch=rewards(min_group=2), shift=st.integers(-100, 100))
def test_a_shift_of_the_rewards_changes_nothing(function, batch, shift):
    assert function(batch + shift) == close(function(batch))


@given(rewards(min_group=2), st.integers(-100, 100))
def test_the_baseline_shifts_with_the_rewards(batch, shift):
    assert leave_one_out_baseline(batch + shift) == close(leave_one_out_baseline(batch) + shift)


@given(rewards(), st.floats(0.01, 100), st.floats(0.001, 10))
def test_scaling_rewards_and_eps_together_changes_nothing(batch, scale, eps):
    assert advantages(scale * batch, eps=scale * eps) == close(advantages(batch, eps=eps))


@given(rewards(spread=True, min_group=2), st.floats(0, 10), st.integers(0, 1))
def test_the_std_of_advantages_is_short_of_one_by_eps(batch, eps, correction):
    std = batch.std(axis=-1, ddof=correction)
    found = advantages(batch, eps=eps, correction=correction).std(axis=-1, ddof=correction)
    assert found == close(std / (std + eps))


@pytest.mark.parametrize("function", (centred_rewards, leave_one_out_baseline, rloo_advantages))
@given(batch=rewards(min_group=2), scale=st.floats(-100, 100))
def test_what_has_the_unit_of_reward_scales_with_it(function, batch, scale):
    assert function(scale * batch) == close(scale * function(batch))


@given(rewards(spread=True, min_group=2))
def test_bessel_shrinks_advantages_by_the_ratio(batch):
    population, bessel = (advantages(batch, correction, eps=0) for correction in (0, 1))
    assert bessel == close(bessel_ratio(batch.shape[-1]) * population)


@given(rewards(), st.sampled_from([1e-8, 1e-4, 1]))
def test_no_advantage_exceeds_the_root_of_g_minus_one(batch, eps):
    assert np.abs(advantages(batch, eps=eps)).max() <= sqrt(batch.shape[-1] - 1) + 1e-12


@given(st.integers(2, 64))
def test_a_lone_success_attains_the_bound(G):
    # mean 1/G and std sqrt(G - 1)/G, so (1 - 1/G) / std = sqrt(G - 1)
    assert advantages(np.eye(G)[0], eps=0)[0] == close(sqrt(G - 1))


@given(rewards())
def test_centred_rewards_agree_with_exact_arithmetic(batch):
    G = batch.shape[-1]
    for group, centred in zip(
        batch.reshape(-1, G), centred_rewards(batch).reshape(-1, G), strict=True
    ):
        mean, _ = in_fractions(group, 0)
        assert centred == close([float(Fraction(r) - mean) for r in group])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # mean (4 + 1 + 1) / 3 = 2; the others' means (1 + 1)/2, (4 + 1)/2 and (4 + 1)/2
        (centred_rewards, [2, -1, -1]),
        (leave_one_out_baseline, [1, 2.5, 2.5]),
        (rloo_advantages, [3, -1.5, -1.5]),
    ],
)
def test_unnormalised_forms_worked_by_hand(function, expected):
    assert function([4, 1, 1]) == pytest.approx(expected, rel=1e-14)


@given(rewards(min_group=2, max_dims=1))
def test_leave_one_out_baseline_is_the_mean_of_the_others(group):
    others = [[float(r) for j, r in enumerate(group) if j != i] for i in range(len(group))]
    assert leave_one_out_baseline(group) == close([sum(rest) / len(rest) for rest in others])


@given(rewards(min_group=2))
def test_rloo_is_reward_minus_the_leave_one_out_baseline(batch):
    assert rloo_advantages(batch) == close(batch - leave_one_out_baseline(batch))


@given(rewards(min_group=2))
def test_rloo_is_centred_reward_scaled(batch):
    G = batch.shape[-1]
    assert rloo_advantages(batch) == close(G / (G - 1) * (batch - batch.mean(-1, keepdims=True)))


def test_bessel_ratio_worked_by_hand():
    # sqrt(0/1), sqrt(1/2), sqrt(3/4), sqrt(8/9)
    expected = [0, sqrt(2) / 2, sqrt(3) / 2, 2 * sqrt(2) / 3]
    assert bessel_ratio([1, 2, 4, 9]) == pytest.approx(expected, rel=1e-15)
    assert isinstance(bessel_ratio(4), float)


@given(group_sizes)
def test_bessel_ratio_rises_below_one(G):
    assert bessel_ratio(G) < bessel_ratio(G + 1) < 1


@every_function
@given(batch=rewards(min_group=2))
def test_groups_do_not_see_each_other(function, batch):
    found = function(batch)
    assert found.shape == batch.shape
    for index in np.ndindex(batch.shape[:-1]):
        assert found[index] == close(function(batch[index]))


@every_function
def test_a_batch_of_no_groups_stays_empty(function):
    assert function(np.ones((0, 4))).shape == (0, 4)


@every_function
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floating_dtypes_are_kept(function, dtype):
    found = function(np.array([1, 0, 0, 0], dtype))
    assert found.dtype == dtype
    assert found == pytest.approx(function([1.0, 0.0, 0.0, 0.0]), rel=1e-6)


@every_function
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64])
def test_other_dtypes_become_float64(function, dtype):
    found = function(np.array([1, 0, 0, 0], dtype))
    assert found.dtype == np.float64
    assert found == pytest.approx(function([1.0, 0.0, 0.0, 0.0]), rel=1e-15)


@every_function
def test_the_rewards_are_left_alone(function):
    batch = np.array([[1.0, 0, 1, 0]])
    function(batch)
    assert batch.tolist() == [[1, 0, 1, 0]]


@relative
@given(
    value=st.floats(-1e3, 1e3),
    shape=st.tuples(st.integers(1, 3), st.integers(2, 300)),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_equal_rewards_give_exactly_zero(function, value, shape, dtype):
    assert not function(np.full(shape, value, dtype)).any()


def test_a_near_tie_is_not_equal():
    # a difference of one step survives beside an equal group whose mean is off by as much
    tie = np.full(7, 0.1, np.float32)
    live = tie.copy()
    live[0] = np.nextafter(live[0], np.float32(1))
    assert not centred_rewards([tie, live])[0].any()
    assert centred_rewards([tie, live])[1].any()
