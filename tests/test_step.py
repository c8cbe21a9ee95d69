from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import probabilities, rewards, seeds

from grpo import advantage_invariants, advantages, grpo_step_stats

NEED_A_LIVE_GROUP = ("adv_std_live", "group_std_min", "group_std_max")
SILENT = ("silent_lowest", "silent_highest", "silent_other")
INVARIANTS = {"adv_mean", "group_mean_max", *NEED_A_LIVE_GROUP}


def close(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.fixture
def batch():
    """Return 256 groups of 8 whose difficulty differs: p rises from 0.2 to 0.9."""
    p = np.linspace(0.2, 0.9, 256)[:, None]
    return (np.random.default_rng(0).random((256, 8)) < p).astype(float)


def test_invariants_worked_by_hand():
    found = advantage_invariants(
        [[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]],
        [[1, -1, 1, -1], [-3, -3, -3, 1], [5, -6, 0, 0]],
    )
    assert found == close(
        {
            # 0 - 8 - 1 over 12
            "adv_mean": -0.75,
            # the live rows: mean -1, squares 4 + 0 + 4 + 0 + 4 + 4 + 4 + 4 = 24, over 8
            "adv_std_live": sqrt(3),
            # rows 0, -8/4 and -1/4
            "group_mean_max": 2,
            "group_std_min": 1,
            # row -3, -3, -3, 1 about -2: squares 1 + 1 + 1 + 9 = 12, over 4
            "group_std_max": sqrt(3),
        }
    )


@given(rewards(min_group=2, max_dims=2, spread=True).filter(lambda array: array.ndim == 2))
def test_grpo_meets_the_invariants(array):
    found = advantage_invariants(array, advantages(array, eps=0))
    assert found == close(
        {
            "adv_mean": 0,
            "adv_std_live": 1,
            "group_mean_max": 0,
            "group_std_min": 1,
            "group_std_max": 1,
        }
    )


def test_the_wrong_axis_shows_in_the_group_means_alone(batch):
    computed = (batch - batch.mean(axis=0)) / batch.std(axis=0)
    found = advantage_invariants(batch, computed)
    assert found["adv_mean"] == close(0)
    assert found["group_mean_max"] > 0.5


def test_normalising_the_whole_batch_shows_in_the_group_means_alone(batch):
    found = advantage_invariants(batch, (batch - batch.mean()) / batch.std())
    assert found["adv_mean"] == close(0)
    assert found["group_mean_max"] > 0.5


@pytest.mark.parametrize("G", [2, 4, 16])
def test_bessel_shows_in_the_group_stds(G):
    array = np.eye(G)
    found = advantage_invariants(array, advantages(array, correction=1, eps=0))
    ratio = sqrt((G - 1) / G)
    assert [found[name] for name in NEED_A_LIVE_GROUP] == close([ratio] * 3)
    assert found["group_mean_max"] == close(0)


def test_centring_alone_shows_in_the_group_stds():
    # rewards 1, 0, 0, 0: std sqrt(3)/4; rewards 1, 0, 1, 0: std 1/2
    array = np.array([[1, 0, 0, 0], [1, 0, 1, 0]])
    found = advantage_invariants(array, array - array.mean(axis=1, keepdims=True))
    assert found["group_std_min"] == close(sqrt(3) / 4)
    assert found["group_std_max"] == close(0.5)


def test_degenerate_groups_count_in_the_means_only():
    found = advantage_invariants([[1, 1], [1, 0]], [[7, 9], [1, -1]])
    # (7 + 9) / 4; the live row is 1, -1; the means are 8 and 0
    assert found == close(
        {
            "adv_mean": 4,
            "adv_std_live": 1,
            "group_mean_max": 8,
            "group_std_min": 1,
            "group_std_max": 1,
        }
    )


def test_without_a_live_group_the_stds_are_nan():
    found = advantage_invariants([[1, 1], [0, 0]], np.zeros((2, 2)))
    assert {name for name, value in found.items() if isnan(value)} == set(NEED_A_LIVE_GROUP)
    assert found["adv_mean"] == found["group_mean_max"] == 0


def test_every_invariant_is_a_float(batch):
    found = advantage_invariants(batch.astype(int), advantages(batch))
    assert found.keys() == INVARIANTS
    assert {type(value) for value in found.values()} == {float}


def test_published_live_groups():
    # 512 prompts, groups of four, one generator for the four batches in turn
    rng = np.random.default_rng(0)
    stats = [grpo_step_stats(p, 4, rng=rng) for p in (0.3, 0.5, 0.7, 0.9)]
    assert [found["effective_prompts"] for found in stats] == [399, 450, 384, 182]
    assert [found["live_frac"] for found in stats] == [n / 512 for n in (399, 450, 384, 182)]


@given(probabilities, st.integers(1, 8), st.integers(1, 20), seeds)
def test_the_step_counts_the_groups_that_differ(p, G, n_prompts, seed):
    drawn = np.random.default_rng(seed).random((n_prompts, G)) < p
    live = sum(len(set(group)) > 1 for group in drawn.tolist())
    found = grpo_step_stats(p, G, n_prompts, rng=np.random.default_rng(seed))
    assert found.keys() == {"p", "G", "live_frac", "effective_prompts", *SILENT, *INVARIANTS}
    assert found["silent_lowest"] == close(np.mean(drawn.sum(axis=1) == 0))
    assert found["silent_highest"] == close(np.mean(drawn.sum(axis=1) == G))
    assert found["silent_other"] == 0
    assert (found["p"], found["G"]) == (p, G)
    assert found["effective_prompts"] == live
    assert type(found["effective_prompts"]) is int
    assert found["live_frac"] == close(live / n_prompts)
    assert isnan(found["adv_std_live"]) == (live == 0)


def test_the_step_uses_the_population_std_with_eps_1e_8():
    # of groups of four the smallest std is sqrt(3)/4 and the largest 1/2; 512 groups hold both
    found = grpo_step_stats(0.5, 4, rng=np.random.default_rng(1))
    assert found["group_std_min"] == close(1 / (1 + 1e-8 * 4 / sqrt(3)))
    assert found["group_std_max"] == close(1 / (1 + 2e-8))
    assert found["adv_std_live"] == pytest.approx(1, abs=3e-8)
    assert found["adv_mean"] == close(0)
    assert found["group_mean_max"] == close(0)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_the_live_and_the_silent_shares_agree_within_five_standard_errors(p):
    exact = 1 - p**4 - (1 - p) ** 4
    found = grpo_step_stats(p, 4, 20_000, rng=np.random.default_rng(2))
    assert abs(found["live_frac"] - exact) < 5 * sqrt(exact * (1 - exact) / 20_000)
    for name, exact in (("silent_lowest", (1 - p) ** 4), ("silent_highest", p**4)):
        assert abs(found[name] - exact) < 5 * sqrt(exact * (1 - exact) / 20_000)
