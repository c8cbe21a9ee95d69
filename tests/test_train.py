from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from grpo import (
    advantages,
    centred_rewards,
    clip_binds,
    clipped_loss,
    expected_update,
    grpo_loss,
    rloo_advantages,
    softmax,
    train,
)


@given(seeds, st.floats(-700, 700))
def test_softmax(seed, shift):
    logits = np.random.default_rng(seed).normal(size=(3, 5))
    found = softmax(logits + shift)
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-13)
    np.testing.assert_allclose(np.log(found[:, 1:] / found[:, :1]), logits[:, 1:] - logits[:, :1])


@given(st.floats(0.01, 3), st.floats(-3, 3), st.floats(0, 0.9), st.floats(0, 0.9))
def test_the_clip_binds_where_the_loss_is_flat(ratio, advantage, low, high):
    edges = np.abs(np.array([ratio - 1 + low, ratio - 1 - high]))
    if edges.min() < 1e-4 or abs(advantage) < 1e-3:
        return
    step = 1e-6
    slope = (
        clipped_loss(ratio + step, advantage, low, high)
        - clipped_loss(ratio - step, advantage, low, high)
    ) / (2 * step)
    binds = clip_binds(ratio, advantage, low, high)
    assert slope == pytest.approx(0 if binds else -advantage, rel=1e-6, abs=1e-9)


@given(st.floats(0, 3))
def test_without_an_advantage_there_is_no_gradient_to_clip(ratio):
    assert not clip_binds(ratio, 0.0)


def test_the_defaults_are_those_of_the_papers():
    args = np.log([[0.5, 0.5]]), np.log([[0.2, 0.8]]), np.log([[0.9, 0.1]]), [[0, 1]], [[1, -1]]
    # ratios 2.5 and 0.625, the first clipped to 1.2 and the second to 0.8; no penalty
    assert grpo_loss(*args)[0] == pytest.approx((-1.2 + 0.8) / 2, rel=1e-14)


def test_nothing_is_logged_of_a_batch_without_live_groups():
    solved = np.array([[40.0, 0.0]])
    _, log = train(solved, budget=20, dynamic=True, rng=np.random.default_rng(0))
    for name in ("live_groups", "effective_prompts", "group_mean_max", "k3", "clip_fraction"):
        assert not log[name].any(), name


@given(seeds, st.sampled_from([0.0, 0.3]))
def test_the_gradient_is_the_slope_of_the_loss(seed, beta):
    rng = np.random.default_rng(seed)
    before, reference = rng.normal(size=(2, 3, 4))
    logits = before + 0.1 * rng.normal(size=(3, 4))
    answers = rng.integers(4, size=(3, 5))
    given_advantages = rng.normal(size=(3, 5))

    def loss(logits):
        return grpo_loss(logits, before, reference, answers, given_advantages, beta=beta)[0]

    gradient = grpo_loss(logits, before, reference, answers, given_advantages, beta=beta)[1]
    step = 1e-6
    for x, v in product(range(3), range(4)):
        e = np.zeros((3, 4))
        e[x, v] = step
        slope = (loss(logits + e) - loss(logits - e)) / (2 * step)
        assert gradient[x, v] == pytest.approx(slope, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("advantage", [advantages, centred_rewards, rloo_advantages])
def test_the_expected_gradient_is_the_weight_times_that_of_the_accuracy(advantage):
    # every group of three answers out of three, with its probability
    logits, G = np.array([0.3, -0.2, 0.8]), 3
    policy = softmax(logits)
    total = np.zeros(3)
    for answers in product(range(3), repeat=G):
        found = advantage((np.array(answers) == 0).astype(float))
        gradient = grpo_loss([logits], [logits], [logits], [answers], [found])[1]
        total += policy[list(answers)].prod() * gradient[0]
    of_accuracy = policy[0] * ((np.arange(3) == 0) - policy)
    weight = expected_update(policy[0], G, advantage)
    np.testing.assert_allclose(total, -weight * of_accuracy, rtol=1e-7, atol=1e-10)


def start(n=6, V=4):
    return np.random.default_rng(1).normal(size=(n, V))


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_is_logged(dynamic):
    G, prompts, budget = 4, 5, 1000
    logits, log = train(
        start(), G=G, prompts=prompts, budget=budget, dynamic=dynamic, rng=np.random.default_rng(0)
    )
    batches = len(log["rollouts"])
    assert all(len(values) == batches for values in log.values())
    assert log["rollouts"][-2] < budget <= log["rollouts"][-1] < budget + G * prompts
    sampled = np.diff(log["rollouts"], prepend=0) / G
    live = log["effective_prompts"]
    np.testing.assert_allclose(log["groups/degenerate"], 1 - live / sampled)
    np.testing.assert_array_equal(log["live_groups"], np.cumsum(live))
    assert log["accuracy"][-1] == pytest.approx(softmax(logits)[:, 0].mean(), rel=1e-14)
    assert log["group_mean_max"].max() < 1e-12
    assert log["k3"][-1] > 0
    if dynamic:
        assert (live[:-1] == prompts).all()
    else:
        assert (sampled[:-1] == prompts).all()
    assert log["accuracy"][-1] > softmax(start())[:, 0].mean()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("settings", [{}, {"G": 6, "prompts": 5, "beta": 0.1, "epochs": 1}])
def test_many_runs_are_the_single_ones_to_the_last_bit(settings, dynamic):
    def over_the_batch(rewards):
        return rewards - rewards.mean(axis=(-2, -1), keepdims=True)

    for advantage in (advantages, over_the_batch):
        settings |= {"advantage": advantage, "dynamic": dynamic, "budget": 3000, "rate": 0.5}
        together, logs = train(start(), **settings, rng=np.random.default_rng(5).spawn(9))
        for i, rng in enumerate(np.random.default_rng(5).spawn(9)):
            alone, log = train(start(), **settings, rng=rng)
            np.testing.assert_array_equal(together[i], alone)
            assert log.keys() == logs[i].keys()
            for name in log:
                np.testing.assert_array_equal(logs[i][name], log[name], err_msg=name)
    assert together.shape == (9, *start().shape)


def test_a_seed_reads_its_own_generator_prompt_by_prompt():
    # the first batch by hand: prompts first, then one uniform number an answer
    policy, (ours, theirs) = softmax(start()), (np.random.default_rng(2) for _ in range(2))
    _, log = train(start(), G=4, prompts=5, budget=1, rng=ours)
    chosen, draws = theirs.integers(6, size=1), theirs.random((1, 4))
    right = draws < policy[chosen, :1]
    assert log["silent_lowest"][0] == (not right.any())
    assert log["silent_highest"][0] == right.all()


def test_batches_of_the_loss_are_taken_one_by_one():
    rng = np.random.default_rng(0)
    before, reference = rng.normal(size=(2, 3, 2, 4, 5))
    logits = before + 0.1 * rng.normal(size=before.shape)
    answers, found = rng.integers(5, size=(3, 2, 4, 6)), rng.normal(size=(3, 2, 4, 6))
    together = grpo_loss(logits, before, reference, answers, found, beta=0.1)
    for i in product(range(3), range(2)):
        alone = grpo_loss(logits[i], before[i], reference[i], answers[i], found[i], beta=0.1)
        assert together[0][i] == alone[0]
        np.testing.assert_array_equal(together[1][i], alone[1])
        assert {name: values[i] for name, values in together[2].items()} == alone[2]


@pytest.mark.parametrize(
    ("logit", "silent"), [(-40.0, (1, 0)), (40.0, (0, 1)), (0.0, (0.9**4, 0.1**4))]
)
def test_silent_groups_are_split_by_their_reward(logit, silent):
    # ten answers: at equal logits each is right with p = 1/10
    initial = np.array([[logit] + [0.0] * 9])
    groups = 4000
    _, log = train(
        initial, G=4, prompts=groups, budget=4 * groups, rate=0, rng=np.random.default_rng(0)
    )
    for name, share in zip(("silent_lowest", "silent_highest"), silent, strict=True):
        error = np.sqrt(share * (1 - share) / groups)
        assert abs(log[name][0] - share) <= 4 * error + 1e-12
    parts = log["silent_lowest"] + log["silent_highest"] + log["silent_other"]
    np.testing.assert_allclose(parts, log["groups/degenerate"], rtol=1e-14)


def test_runs_repeat_and_leave_the_start_alone():
    initial = start()
    runs = [train(initial, budget=500, rng=np.random.default_rng(3))[0] for _ in range(2)]
    np.testing.assert_array_equal(*runs)
    np.testing.assert_array_equal(initial, start())


def test_one_small_step_is_the_expected_one_on_average():
    initial, rate, G = start(n=1), 1e-3, 4
    policy = softmax(initial)[0]
    steps = np.array(
        [
            train(initial, G=G, prompts=1, budget=1, epochs=1, rate=rate, rng=rng)[0][0]
            - initial[0]
            for rng in np.random.default_rng(0).spawn(4000)
        ]
    )
    of_accuracy = policy[0] * ((np.arange(4) == 0) - policy)
    expected = rate * expected_update(policy[0], G) * of_accuracy
    error = steps.std(axis=0) / np.sqrt(len(steps))
    assert (np.abs(steps.mean(axis=0) - expected) < 4 * error).all()


def test_without_advantage_the_penalty_holds_the_policy_at_the_reference():
    _, log = train(
        start(),
        advantage=lambda r: np.zeros_like(r),
        budget=500,
        beta=0.5,
        rng=np.random.default_rng(0),
    )
    assert log["accuracy"] == pytest.approx(softmax(start())[:, 0].mean(), abs=1e-12)
    assert log["k3"] == pytest.approx(0, abs=1e-12)


SOME = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: softmax([]), r"last axis of answers, got shape \(0,\)"),
        (lambda: softmax([0, np.inf]), r"logits\[1\] is inf"),
        (lambda: clipped_loss(-1, 1), "ratio must be >= 0, got -1"),
        (lambda: clipped_loss(np.nan, 1), "ratio must be finite"),
        (lambda: clipped_loss([1, 1], [1, 1, 1]), r"got shapes \(2,\) and \(3,\)"),
        (lambda: clip_binds(1, np.inf), "advantages must be finite"),
        (lambda: clip_binds(1, 1, low=-0.1), "low must be >= 0, got -0.1"),
        (lambda: clipped_loss(1, 1, high=np.nan), "high must be finite"),
        (lambda: grpo_loss([[0, 0]], [[0, 0]], [[0, 0]], [[2]], [[1]]), r"in \[0, 2\), got \[2\]"),
        (lambda: grpo_loss([[0, 0]], [[0, 0]], [[0, 0]], [[0.0]], [[1]]), "whole numbers"),
        (lambda: grpo_loss([[0, 0]], [[0, 0]], [[0, 0]], [[0]], [[1, 2]]), r"\(1, 1\), \(1, 2\)"),
        (lambda: grpo_loss([0, 0], [0, 0], [0, 0], [[0]], [[1]]), r"and \(2,\)"),
        (
            lambda: grpo_loss([[0, 0]], [[0]], [[0, 0]], [[0]], [[1]]),
            r"shape \(1, 2\), got \(1, 1\)",
        ),
        (lambda: grpo_loss([[0]], [[0]], [[0]], [[0]], [[1]], beta=-1), "beta must be >= 0"),
        (lambda: train([0, 0], rng=SOME), r"shape \(n, V\), got \(2,\)"),
        (lambda: train([[0, np.nan]], rng=SOME), r"initial\[0, 1\] is nan"),
        (lambda: train([[0, 0]], rng=0), "rng must be .* got 0"),
        (lambda: train([[0, 0]], rng=[]), r"rng must be .* got \[\]"),
        (lambda: train([[0, 0]], rng=[SOME, 1]), "rng must be .* got 1"),
        (lambda: train([[0, 0]], G=0, rng=SOME), "G must be >= 1"),
        (lambda: train([[0, 0]], budget=0, rng=SOME), "budget must be >= 1"),
        (lambda: train([[0, 0]], prompts=0.5, rng=SOME), "prompts must be a whole number"),
        (lambda: train([[0, 0]], epochs=0, rng=SOME), "epochs must be >= 1"),
        (lambda: train([[0, 0]], rate="fast", rng=SOME), "rate must be real"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
