"""The convention behind advantages is named, or it is said that the data cannot tell."""

from dataclasses import replace

import numpy as np
import pytest

from grpo import (
    CONVENTIONS,
    Convention,
    centred_rewards,
    identify,
    read_precision,
    sample_groups,
)

KINDS = (0.2, 0.5, 0.8, "continuous")
VERL = CONVENTIONS["verl.grpo"]


def draw(kind, groups, G, seed=0):
    """Return rewards of a success rate, or continuous ones that float32 holds exactly."""
    rng = np.random.default_rng(seed)
    if kind == "continuous":
        return rng.random((groups, G), dtype=np.float32).astype(float)
    return sample_groups(kind, G, groups, rng=rng)


def spread(candidate, rewards, sets):
    """Return what a candidate divides by, without eps."""
    if candidate.scale == "group mean":
        return sets["group"].mean()
    if candidate.scale == "centred batch std":
        return (rewards - rewards.mean(axis=1, keepdims=True)).std(ddof=candidate.correction)
    values = sets[candidate.scale.removesuffix(" std")]
    return values.std(ddof=candidate.correction) if values.size > candidate.correction else 0


def recomputed(candidate, rewards):
    """Return the advantages of a candidate by a plain implementation of its own."""
    if candidate.layout == "columns":
        return recomputed(replace(candidate, layout="rows"), rewards.T).T
    if candidate.layout == "interleaved":
        r = rewards.reshape(rewards.shape[::-1]).T
        return recomputed(replace(candidate, layout="rows"), r).T.reshape(rewards.shape)
    found = np.empty(rewards.shape)
    for (g, i), r in np.ndenumerate(rewards):
        sets = {"group": rewards[g], "leave-one-out": np.delete(rewards[g], i), "batch": rewards}
        baseline = (
            sets[candidate.baseline.removesuffix(" mean")].mean() if candidate.baseline else 0
        )
        found[g, i] = candidate.factor * (r - baseline)
        if candidate.scale:
            std = spread(candidate, rewards, sets)
            if std > 0 or (candidate.divide_zero_std is not False and candidate.eps > 0):
                found[g, i] /= std + candidate.eps
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("G", [2, 4, 8, 16])
@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_entry_of_the_registry_is_named(name, G, kind, dtype):
    rewards = draw(kind, 32, G)
    advantages = replace(CONVENTIONS[name], dtype=dtype)(rewards)
    found = identify(rewards, advantages)
    assert name in found.names
    live = np.ptp(rewards, axis=1) > 0
    for one in found.candidates:  # each of them explains the data: it could not be told
        size = [
            np.abs(recomputed(replace(one, eps=eps), rewards)[live])
            for eps in one.eps_range or (None, None)
        ]
        slack = 1e-6
        if read_precision(advantages).is_coarse:  # 1.0 may be 0.999998 with two decimals
            slack = read_precision(advantages).error(advantages[live]) + 1e-6
        assert (np.abs(advantages[live]) <= size[0] * (1 + 2e-5) + slack).all()
        assert (np.abs(advantages[live]) >= size[1] * (1 - 2e-5) - slack).all()
    if CONVENTIONS[name].scale == "centred batch std":
        assert name in found.candidates[0].names
        assert len({one.scale for one in found.candidates if one.names}) == 1 or G == 2
        assert len(found.candidates) == 1 or "a correction can pass for an eps" in str(found)
    elif G > 2:
        assert len(found.candidates) == 1
    elif len(found.candidates) > 1:
        assert "cannot tell" in str(found) and "groups of four" in str(found)


@pytest.mark.parametrize("name", [name for name, c in CONVENTIONS.items() if c.scale])
def test_eps_is_solved_from_the_data(name):
    rewards = draw("continuous", 16, 8)
    for eps in (1e-3, 1e-5, 1e-7):
        convention = replace(CONVENTIONS[name], dtype="float64", eps=eps)
        one, *others = identify(rewards, convention(rewards)).candidates
        assert not others or one.scale == "centred batch std"
        assert one.eps == pytest.approx(eps, rel=1e-2)
        assert one.eps_range[0] <= eps <= one.eps_range[1]


def test_eps_is_bounded_where_float32_hides_it():
    rewards = draw("continuous", 16, 8)
    (one,) = identify(rewards, CONVENTIONS["rlhfbook.std"](rewards)).candidates
    assert one.eps_range[0] == 0
    assert 1e-8 < one.eps_range[1] < 1e-5
    assert "of at most" in str(one)


def test_normalising_over_the_wrong_axis_is_recognised():
    for kind in KINDS:
        rewards = draw(kind, 6, 4)
        (one,) = identify(rewards, VERL(rewards.T).T).candidates
        assert (one.layout, one.scale, one.correction) == ("columns", "group std", 1)
        assert one.names == ()


def test_an_interleaved_batch_is_recognised():
    rewards = draw("continuous", 6, 4)
    read = rewards.ravel().reshape(4, 6)  # as (G, groups)
    (one,) = identify(rewards, VERL(read.T).T.reshape(6, 4)).candidates
    assert (one.layout, one.baseline) == ("interleaved", "group mean")


@pytest.mark.parametrize("baseline", ["group mean", "leave-one-out mean", "batch mean", None])
def test_scaling_by_the_batch_is_recognised(baseline):
    rewards = draw("continuous", 16, 4)
    convention = Convention(baseline, "batch std", 1, 1e-4)
    found = identify(rewards, convention(rewards))
    assert (found.candidates[0].baseline, found.candidates[0].scale) == (baseline, "batch std")
    assert found.candidates[0].correction == 1
    assert found.candidates[0].eps == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize("factor", [0.5, -1.0, 3.0])
def test_a_constant_factor_is_recognised(factor):
    rewards = draw(0.5, 16, 8)
    for name in ("verl.grpo", "tinker"):
        found = identify(rewards, factor * CONVENTIONS[name](rewards))
        assert found.candidates[0].factor == pytest.approx(factor, rel=1e-5)
        assert found.candidates[0].scale == CONVENTIONS[name].scale
        assert found.candidates[0].correction == CONVENTIONS[name].correction
        assert "Try two group sizes" in str(found)
        for one in found.candidates:
            np.testing.assert_allclose(
                recomputed(one, rewards), factor * CONVENTIONS[name](rewards), atol=1e-4
            )


def test_a_factor_is_found_where_all_groups_have_one_spread():
    rewards = [[1, 0, 1, 0], [0, 1, 1, 0]]
    found = identify(rewards, 0.5 * VERL(rewards))
    (factor,) = (
        one.factor
        for one in found.candidates
        if (one.layout, one.baseline, one.scale, one.correction)
        == ("rows", "group mean", "group std", 1)
    )
    assert factor == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_the_rule_for_a_zero_std_is_recognised(factor):
    # a lone winner has competitors without a spread; others have one
    rewards = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0.2, 0.5, 0.1, 0.9]])
    for divides in (False, True):
        stack = replace(CONVENTIONS["nemo.grpo(LOO,default)"], divide_zero_std=divides)
        found = identify(rewards, factor * stack(rewards))
        one = found.candidates[0]
        assert (one.baseline, one.scale) == ("leave-one-out mean", "leave-one-out std")
        assert one.divide_zero_std is divides
        assert one.factor == pytest.approx(factor, rel=1e-5)


def test_the_residual_is_the_largest_difference():
    rewards = draw("continuous", 8, 4)
    advantages = centred_rewards(rewards)
    advantages[2, 1] += 0.3
    closest = identify(rewards, advantages).closest
    difference = np.abs(recomputed(closest, rewards) - advantages).max()
    assert closest.residual == pytest.approx(difference, rel=1e-9)


def test_what_cannot_be_told_is_said():
    # one group of each spread: group and batch, mean and batch mean are the same
    rewards = [[1, 0, 1, 0], [0, 1, 1, 0]]
    found = identify(rewards, VERL(rewards))
    assert len(found.candidates) > 1
    assert "Try groups of different mean and spread" in str(found)
    wider = [*rewards, [1, 0, 0, 0], [1, 1, 1, 0]]
    assert len(identify(wider, VERL(wider)).candidates) == 1


def test_rounded_numbers_need_their_error():
    rewards = draw("continuous", 8, 4)
    rounded = VERL(rewards).astype(float).round(4)
    assert "give atol" in str(identify(rewards, rounded, atol=0))
    (one,) = identify(rewards, rounded, atol=5.1e-5).candidates
    assert (one.baseline, one.scale, one.correction) == ("group mean", "group std", 1)


TRL = CONVENTIONS["trl.grpo(group)"]


def test_the_advantages_of_a_silent_group_are_evidence():
    live = [0.86588, -0.86588, -0.86588, 0.86588]
    for silent in ([5, -7, 100, 3.25], [3, 3, 3, 3], [0.01] * 4):
        found = identify([[1, 0, 0, 1], [0, 0, 0, 0]], [live, silent], atol=1e-5)
        assert found.candidates == ()
    assert "trl.grpo(group)" in identify([[1, 0, 0, 1], [0] * 4], [live, [0] * 4], 1e-5).names


def test_two_silent_groups_that_were_merged_are_not_named():
    # one of 0, one of 1, at G = 8: squares 16/4 over 15, so 1/2 over sqrt(4/15) = 0.968
    rewards = np.array([[1, 0, 0, 1, 0, 0, 1, 0], [0] * 8, [1] * 8, [1, 1, 1, 0, 0, 0, 0, 0]])
    advantages = TRL(rewards)
    advantages[1:3] = [[-0.96806], [0.96806]]
    found = identify(rewards, advantages)
    assert found.names == ()
    advantages[1:3] = TRL(rewards)[1:3]
    assert "trl.grpo(group)" in identify(rewards, advantages).names


@pytest.mark.parametrize("G", [7, 10])
def test_the_noise_of_equal_rewards_excludes_no_rule(G):
    # the mean of seven times 0.1 is not 0.1, and what remains is divided by little: chapter 9
    rewards = np.array([[0.1] * G, np.linspace(0, 1, G)])
    for name, convention in CONVENTIONS.items():
        assert name in identify(rewards, convention(rewards)).names


@pytest.mark.parametrize(
    ("rewards", "advantages", "atol"),
    [
        ([[1, 0, 0], [0, 0.25, 0.55]], [[1.155, -0.577, -0.577], [-0.968, -0.061, 1.029]], 5e-4),
        ([[1, 0, 0], [0, 0.45, 0.95]], [[1.15, -0.58, -0.58], [-0.98, -0.04, 1.02]], 0.005),
    ],
)
def test_rounded_advantages_do_not_exclude_the_truth(rewards, advantages, atol):
    for given in (atol, None):
        found = identify(rewards, advantages, given)
        assert "trl.grpo(group)" in found.names
        assert {
            (one.baseline, one.scale, one.correction, one.factor) for one in found.candidates
        } == {("group mean", "group std", 1, 1)}


def test_an_advantage_that_is_rounded_to_0_or_across_it_contradicts_nothing():
    rewards = np.array([[1, 0, 0.5, 0.501], [0.2, 0.9, 0.4, 0.1]])
    for near in (0.0, 0.004, -0.004):
        advantages = TRL(rewards).astype(float).round(2)
        advantages[0, 2] = near  # it is 0.00124
        assert "trl.grpo(group)" in identify(rewards, advantages, atol=0.006).names
    advantages[0, 2] = 0.01
    assert identify(rewards, advantages, atol=0.006).names == ()


def test_numpy_with_a_larger_eps_is_not_taken_for_another_stack():
    rewards = draw("continuous", 16, 8).round(2)
    (one,) = identify(rewards, CONVENTIONS["rllm.grpo"](rewards)).candidates
    assert one.names == ("rllm.grpo",)


def test_residue_of_a_one_pass_std_is_no_rule_for_a_zero_std():
    rewards = np.array([[0.35] * 7 + [0.9], np.arange(1, 9) / 10])
    advantages = CONVENTIONS["nemo.grpo(LOO,default)"](rewards)
    assert np.abs(advantages).max() > 1000  # 0.55 over the residue
    assert "nemo.grpo(LOO,default)" in identify(rewards, advantages).names


def test_small_batches_get_no_plain_name_of_another_rule():
    rewards = np.array([[0, 0, 1, 0], [0, 0, 0, 1]])
    found = identify(rewards, TRL(rewards.reshape(1, 8)).reshape(2, 4))
    assert len(found.candidates) > 1 and "different mean and spread" in str(found)
    found = identify(rewards, TRL(rewards.reshape(4, 2)).reshape(2, 4))
    assert {one.layout for one in found.candidates} == {"columns", "halves"}
    assert found.names == ()
    rewards = [[0.52, 0.65, 0.33, 0.95], [0.59, 0.62, 0.78, 0.45]]
    found = identify(rewards, CONVENTIONS["ms-swift.reinforce++"](rewards))
    assert found.candidates[0].scale == "centred batch std"
    assert found.names == ("ms-swift.reinforce++",)


def test_groups_of_two_with_a_std_show_nothing_of_the_rewards():
    rewards = draw("continuous", 4, 2)
    assert "what the rewards were cannot be seen" in str(identify(rewards, TRL(rewards)))
    assert "cannot be seen" not in str(identify(rewards, CONVENTIONS["tinker"](rewards)))


def test_where_most_groups_follow_a_rule_the_others_are_listed():
    rewards = draw(0.5, 16, 8)
    advantages = TRL(rewards)
    advantages[[1, 5]] += 0.25
    found = identify(rewards, advantages)
    assert found.names == () and found.candidates == ()
    assert [i for i, fits in enumerate(found.explained) if not fits] == [1, 5]
    assert "14 of 16 groups; not groups 1, 5" in str(found)
    assert "closest" not in str(found)
    few = TRL(rewards)
    few[2:] += 0.25
    assert "none explains more than half" in str(identify(rewards, few))


def test_a_batch_wide_factor_asks_for_another_step():
    rewards = draw("continuous", 8, 4)
    found = identify(rewards, 3.454 * centred_rewards(rewards))
    assert found.candidates[0].factor == pytest.approx(3.454)
    assert "Try another step" in str(found)


@pytest.mark.parametrize("digits", [2, 3, 4])
def test_rounded_rewards_have_a_tolerance_of_their_own(digits):
    rewards = draw("continuous", 16, 8)
    for name in ("trl.grpo(group)", "tinker", "trl.rloo", "rllm.grpo"):
        advantages = CONVENTIONS[name](rewards)
        for given in (None, 0.5 / 10**digits):
            found = identify(rewards.round(digits), advantages, rewards_atol=given)
            assert name in found.names
            assert found.candidates[0].rewards_error == pytest.approx(0.5 / 10**digits)
        assert identify(rewards.round(digits), advantages, rewards_atol=0).names == ()


def test_rewards_that_nearly_fit_as_they_are_may_be_rounded_all_the_same():
    # found among 36,391 generated batches: AReaL's 1e-5, and rewards with four decimals
    rewards = [[0.8115, 0.3328, 0.4199], [0.3306, 0.461, 0.8245]]
    advantages = [
        [1.137687087059021, -0.7396435141563416, -0.39804357290267944],
        [-0.8130074143409729, -0.303556889295578, 1.1165642738342285],
    ]
    assert "areal(group)" in identify(rewards, advantages).names


def test_exact_rewards_of_few_decimals_are_not_taken_as_rounded():
    rewards = draw("continuous", 16, 8).round(2)
    (one,) = identify(rewards, TRL(rewards)).candidates
    assert one.rewards_error == 0
    assert one.names == ("trl.grpo(group)", "rasbt", "ms-swift.grpo")


def test_what_no_convention_explains_has_no_candidate():
    rewards = draw("continuous", 8, 4)
    found = identify(rewards, np.random.default_rng(1).normal(size=(8, 4)))
    assert found.candidates == ()
    assert found.names == ()
    assert found.closest.residual > 0.1
    assert str(found).startswith("no known convention")


def test_a_changed_advantage_is_noticed():
    rewards = draw("continuous", 8, 4)
    for name, convention in CONVENTIONS.items():
        advantages = convention(rewards)
        advantages[3, 2] *= 1.001
        assert name not in identify(rewards, advantages).names


@pytest.mark.parametrize(
    ("rewards", "advantages", "message"),
    [
        ([[1, 0], [1, 1]], [[1, -1, 0], [0, 0, 0]], r"\(2, 2\) and \(2, 3\)"),
        ([1, 0], [1, -1], r"one shape \(groups, G\), got \(2,\)"),
        ([[1, 0]], [[1, np.nan]], r"advantages\[0, 1\] is nan"),
        ([[1, np.nan]], [[1, 0]], r"rewards\[0, 1\] is nan"),
        ([[1, 1], [0, 0]], [[0, 0], [0, 0]], "all rewards of every group are equal"),
        ([[0.1] * 3], [[-0.8] * 3], "all rewards of every group are equal"),
        ([[1, 0]], [[0, 0]], "all advantages are 0"),
        ([[1], [0]], [[1], [0]], "a group of one rollout"),
        ([[1, 0]], [["a", "b"]], "advantages must be real numbers"),
    ],
)
def test_what_cannot_be_answered_is_refused(rewards, advantages, message):
    with pytest.raises(ValueError, match=message):
        identify(rewards, advantages)
    with pytest.raises(ValueError, match=r"atol .* got -1"):
        identify([[1, 0]], [[1, -1]], atol=-1)
