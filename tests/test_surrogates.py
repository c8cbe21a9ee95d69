import numpy as np
import pytest

from grpo import SURROGATES, all_answers, judge, ratios, token_log_probabilities

ANSWERS = all_answers(3, 4)
OLD = np.random.default_rng(0).normal(size=(4, 4))
REWARDS = (ANSWERS.tokens == 0).sum(axis=1) == 1  # exactly one token 0
MOVED = OLD + 0.7 * np.random.default_rng(1).normal(size=(4, 4))
UNBIASED = "product of ratios"


def central_differences(f, at, step=1e-6):
    slopes = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        moved = np.zeros_like(at)
        moved[place] = step
        slopes[place] = (f(at + moved) - f(at - moved)) / (2 * step)
    return slopes


def expected_reward(logits):
    return np.exp(token_log_probabilities(logits, ANSWERS).sum(axis=1)) @ REWARDS


def test_the_exact_gradient_is_that_of_central_differences():
    found = judge(SURROGATES[UNBIASED], MOVED, OLD, OLD, ANSWERS, REWARDS)
    np.testing.assert_allclose(found.exact, central_differences(expected_reward, MOVED), atol=1e-9)


@pytest.mark.parametrize("distance", [0, 0.1, 1, 5])
def test_the_product_of_ratios_is_unbiased(distance):
    logits = OLD + distance * (MOVED - OLD)
    found = judge(SURROGATES[UNBIASED], logits, OLD, OLD, ANSWERS, REWARDS)
    np.testing.assert_allclose(found.gradient, found.exact, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in SURROGATES if n not in ("geometric mean", "GSPO")])
def test_all_that_sum_over_tokens_agree_where_nothing_moved(name):
    found = judge(SURROGATES[name], OLD, OLD, OLD, ANSWERS, REWARDS)
    np.testing.assert_allclose(found.gradient, found.exact, atol=1e-13)
    assert found.stopped == 0
    assert found.effective == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("name", [n for n in SURROGATES if n != UNBIASED])
def test_all_others_are_biased_once_the_policy_has_moved(name):
    found = judge(SURROGATES[name], MOVED, OLD, OLD, ANSWERS, REWARDS)
    assert np.abs(found.gradient - found.exact).max() > 1e-3


@pytest.mark.parametrize("name", SURROGATES)
def test_slopes_are_those_of_the_loss(name):
    """Detached weights are constants, so their loss is differentiated with the weights held."""
    rng = np.random.default_rng(3)
    mask = np.array([[True, True, False], [True, True, True], [True, False, False]])
    new, old, sampler = -rng.random((3, 3, 3)) - 0.2
    advantages = np.array([1.0, -0.5, 0.7])
    surrogate = SURROGATES[name]
    losses, slopes = surrogate(new, old, sampler, advantages, mask)
    assert losses.shape == (3,)
    assert not slopes[~mask].any()
    if name == "CISPO":
        weight = np.minimum(np.exp(new - old), 1.28)
        expected = np.where(mask, -weight * advantages[:, None], 0)
    else:
        total = lambda at: surrogate(at, old, sampler, advantages, mask)[0].sum()  # noqa: E731
        expected = central_differences(total, new)
    np.testing.assert_allclose(slopes, expected, atol=1e-8)


def test_variance_and_effective_share_by_loops():
    found = judge(SURROGATES["token ratio"], MOVED, OLD, OLD, ANSWERS, REWARDS)
    new, old = (token_log_probabilities(one, ANSWERS) for one in (MOVED, OLD))
    chances = np.exp(old.sum(axis=1))
    policies = np.exp(MOVED) / np.exp(MOVED).sum(axis=1, keepdims=True)
    steps = []
    for tokens, mask, row_new, row_old, reward in zip(
        ANSWERS.tokens, ANSWERS.mask, new, old, REWARDS, strict=True
    ):
        step, before = np.zeros((4, 4)), 3
        for token, told, a, b in zip(tokens, mask, row_new, row_old, strict=True):
            if told:
                score = -policies[before]
                score[token] += 1
                step[before] += np.exp(a - b) * (reward - chances @ REWARDS) * score
            before = token
        steps.append(step)
    mean = sum(chance * step for chance, step in zip(chances, steps, strict=True))
    variance = sum(c * ((s - mean) ** 2).sum() for c, s in zip(chances, steps, strict=True))
    np.testing.assert_allclose(found.gradient, mean, atol=1e-13)
    assert found.variance == pytest.approx(variance, rel=1e-10)
    weights = np.exp((new - old).sum(axis=1))
    assert found.effective == pytest.approx(1 / (chances @ weights**2), rel=1e-10)


def test_a_capped_token_keeps_a_gradient_by_cispo_alone():
    """One logit, p 0.4 when sampled and 0.6 now, cap 1.28: -1.28 (1 - 0.6) against 0."""
    new, old, mask = np.log([[0.6]]), np.log([[0.4]]), np.array([[True]])
    in_the_logit = 1 - 0.6
    for surrogate, expected in (
        (lambda *a: SURROGATES["PPO clip"](*a, high=0.28), 0.0),
        (lambda *a: SURROGATES["CISPO"](*a, cap=1.28), -0.512),
        (lambda *a: SURROGATES["CISPO"](*a, cap=0.28), -0.112),
    ):
        _, slopes = surrogate(new, old, old, [1.0], mask)
        assert slopes[0, 0] * in_the_logit == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("bound", "expected"), [(0.2, -0.0769707468), (0.0003, -0.0003)])
def test_a_sequence_ratio_counts_once_a_sequence(bound, expected):
    """Two answers of 2 and 6 tokens: s = exp(0.1) and exp(-0.05), mean of -min(sA, clip(s)A)."""
    new = np.zeros((2, 6))
    new[0, 0], new[1] = 0.2, -0.05
    mask = np.arange(6) < [[2], [6]]
    gspo = SURROGATES["GSPO"]
    losses, _ = gspo(new, np.zeros((2, 6)), None, [1, -1], mask, low=bound, high=bound)
    assert losses.mean() == pytest.approx(expected, abs=1e-9)
    over_tokens = {0.2: 0.4371293389, 0.0003: 0.4997}[bound]
    assert (losses * [2, 6]).sum() / 8 == pytest.approx(over_tokens, abs=1e-9)


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("log_ratio", [-1000.0, 1000.0])
def test_extreme_ratios_have_a_limit(name, log_ratio):
    mask = np.full((2, 3), True)
    new = np.full((2, 3), log_ratio)
    losses, slopes = SURROGATES[name](new, new * 0, new * 0, [1.0, -1.0], mask)
    assert np.isfinite(losses).all()
    assert np.isfinite(slopes).all()


def test_levels_by_hand():
    new, old = np.log([[0.5, 0.4, 0.9]]), np.log([[0.25, 0.1, 0.3]])
    mask = np.array([[True, True, False]])
    np.testing.assert_allclose(ratios(new, old, mask, "token"), [[2, 4, 1]], rtol=1e-14)
    np.testing.assert_allclose(ratios(new, old, mask, "product"), [[8, 8, 1]], rtol=1e-14)
    root = np.sqrt(8)
    np.testing.assert_allclose(ratios(new, old, mask, "geometric"), [[root, root, 1]], rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ratios([[0.0]], [[0.0]], [[True]], "mean"), "level must be one of .* got 'mean'"),
        (lambda: ratios([[0.0]], [[0.0]], [[1]], "token"), "mask must be bool, .* int64"),
        (lambda: ratios([[0.0]], [[0.0, 1.0]], [[True]], "token"), r"one shape .* got \(1, 1\), "),
        (lambda: ratios([[0.0]], [[0.0]], [[False]], "token"), "row 0 has no token"),
        (lambda: ratios([[np.nan]], [[0.0]], [[True]], "token"), r"new\[0, 0\] is nan"),
        (
            lambda: judge(SURROGATES["CISPO"], OLD, OLD, OLD, ANSWERS, [1.0]),
            r"\(121,\), got \(1,\)",
        ),
        (lambda: judge(SURROGATES["CISPO"], OLD, OLD, OLD, ANSWERS, np.ones(121)), "no gradient"),
        (lambda: SURROGATES["CISPO"]([[0.0]], [[0.0]], None, [1.0, 2.0], [[True]]), r"got \(2,\)"),
        (
            lambda: SURROGATES["CISPO"]([[0.0]], [[0.0]], None, [1.0], [[True]], cap=0),
            "cap must be > 0",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
