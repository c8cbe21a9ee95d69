import statistics
from fractions import Fraction
from math import exp, factorial, fsum, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import distribution_pairs, rewards, seeds

from grpo import (
    exact_summary,
    k1,
    k2,
    k3,
    kl_divergence,
    kl_gradient,
    log_ratio,
    penalty_gradients,
    sample_log_ratio,
    sample_summary,
)

ESTIMATORS = (k1, k2, k3)
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)

# u is log(1/2) and log(3/2), so the divergence is (log 2 - log 3/2) / 2 = log(4/3) / 2
POLICY, REFERENCE = [0.5, 0.5], [0.25, 0.75]
U, KL = (-log(2), log(1.5)), log(4 / 3) / 2


def close(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-14)


def moments(estimate, policy, reference):
    """Return the summary by plain loops over the tokens."""
    tokens = [
        (float(p), estimate(log(q / p)), log(p / q))
        for p, q in zip(policy, reference, strict=True)
        if p > 0
    ]
    mean = fsum(p * k for p, k, _ in tokens)
    return {
        "mean": mean,
        "bias": mean - fsum(p * divergence for p, _, divergence in tokens),
        "sd": sqrt(fsum(p * (k - mean) ** 2 for p, k, _ in tokens)),
        "negative": fsum(p for p, k, _ in tokens if k < 0),
    }


def test_log_ratio_worked_by_hand():
    assert log_ratio(POLICY, REFERENCE) == close(list(U))


def test_log_ratio_of_a_token_never_sampled_is_zero():
    assert log_ratio([1, 0, 0], [0.5, 0.5, 0]) == close([-log(2), 0, 0])


def test_log_ratio_reaches_the_smallest_probabilities():
    # log(1/2) + 310 log 10, although the ratio itself overflows
    assert log_ratio([1, 1e-310], [0.5, 0.5]) == close([-log(2), 310 * log(10) - log(2)])


def test_log_ratio_allows_for_rounding_of_the_sum():
    assert log_ratio([0.5, 0.5 - 5e-10], [0.5, 0.5]) == pytest.approx([0, 1e-9], abs=1e-12)


@given(distribution_pairs())
def test_log_ratio_changes_sign_with_the_roles(pair):
    assert log_ratio(*pair) == close(-log_ratio(*reversed(pair)))


def test_divergence_worked_by_hand():
    assert kl_divergence(POLICY, REFERENCE) == close(KL)
    # the reverse: (log(1/2) + 3 log(3/2)) / 4 = log(27/16) / 4
    assert kl_divergence(REFERENCE, POLICY) == close(log(27 / 16) / 4)
    # a token never sampled adds nothing
    assert kl_divergence([1, 0], [0.5, 0.5]) == close(log(2))


@given(distribution_pairs())
def test_divergence_is_the_weighted_sum_of_log_ratios(pair):
    found = kl_divergence(*pair)
    assert isinstance(found, float)
    assert found == close(fsum(p * log(p / q) for p, q in zip(*pair, strict=True)))


@given(distribution_pairs(max_weight=20))
def test_divergence_is_positive_unless_the_two_are_equal(pair):
    policy, reference = pair
    assert kl_divergence(policy, policy) == 0
    assert kl_divergence(policy, reference) > 0 or policy == pytest.approx(reference)


def test_estimators_worked_by_hand():
    # at u = log 2: k3 is 2 - log 2 - 1; at u = -log 2: 1/2 + log 2 - 1
    u, half_square = [log(2), -log(2), 0], log(2) ** 2 / 2
    assert k1(u) == close([-log(2), log(2), 0])
    assert k2(u) == close([half_square, half_square, 0])
    assert k3(u) == close([1 - log(2), log(2) - 0.5, 0])


@given(st.floats(-30, 30))
def test_estimators_agree_with_their_formulas(u):
    assert k1(u) == -u
    assert k2(u) == close(u * u / 2)
    assert k3(u) == close(exp(u) - u - 1)


@given(
    st.one_of(
        st.floats(-1e300, 709),
        *(st.floats(-size, size) for size in (1, 1e-8, 1e-12, 1e-16, 1e-300)),
    )
)
def test_k3_is_never_negative(u):
    assert k3(u) >= 0


@given(
    st.one_of(
        st.floats(-(2.0**120), 88, width=32),
        *(st.floats(-(2.0**-n), 2.0**-n, width=32) for n in (0, 10, 20, 24, 126)),
    )
)
def test_k3_is_never_negative_in_float32(u):
    assert k3(np.float32(u)) >= 0


@given(st.floats(-1e-3, 1e-3))
def test_k3_keeps_the_digits_of_a_tiny_log_ratio(u):
    # u**2/2 + u**3/6; the next term is below 5e-8 of the first. expm1(u) is rounded at 2**-53 u
    assert float(k3(u)) == pytest.approx(
        u**2 / 2 + u**3 / 6, rel=1e-7, abs=abs(u) * 2.0**-52 + 1e-320
    )


@given(st.floats(-1, 1))
def test_k3_agrees_with_its_series_in_exact_arithmetic(u):
    series = float(sum(Fraction(u) ** n / factorial(n) for n in range(2, 20)))
    assert float(k3(u)) == pytest.approx(series, rel=0, abs=abs(u) * 2.0**-51 + 1e-320)


def test_k3_reaches_the_largest_exponential():
    # log(2**1023) is a little below the overflow of float64, log(2**127) of float32
    assert k3(1023 * log(2)) == pytest.approx(2.0**1023, rel=1e-12)
    assert k3(np.float32(127 * log(2))) == pytest.approx(2.0**127, rel=1e-5)


@given(st.floats(1e-6, 100))
def test_only_k1_can_be_negative(u):
    assert k1(u) < 0 < k1(-u)
    assert k2(u) > 0 and k2(-u) > 0
    assert k3(u) > 0 and k3(-u) > 0


@every_estimator
@given(u=rewards())
def test_estimators_work_entry_by_entry(estimator, u):
    found = estimator(u)
    assert found.shape == u.shape
    assert found.ravel() == close([float(estimator(float(x))) for x in u.flat])


@every_estimator
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floating_dtypes_are_kept(estimator, dtype):
    assert estimator(np.array([0.5, -0.5], dtype)).dtype == dtype


@every_estimator
def test_integers_become_float64_and_numbers_give_a_number(estimator):
    assert estimator(np.array([1, 0])).dtype == np.float64
    assert isinstance(estimator(1), float)


@pytest.mark.parametrize(
    ("estimator", "mean", "sd", "negative"),
    [
        # two equally likely values: mean (a + b)/2, sd |a - b|/2
        (k1, KL, (U[1] - U[0]) / 2, 0.5),
        (k2, (U[0] ** 2 + U[1] ** 2) / 4, (U[0] ** 2 - U[1] ** 2) / 4, 0),
        # k3 is 1/2 + log 2 - 1 and 3/2 - log 3/2 - 1
        (k3, KL, (log(2) + log(1.5) - 1) / 2, 0),
    ],
)
def test_exact_summary_worked_by_hand(estimator, mean, sd, negative):
    expected = {"mean": mean, "bias": mean - KL, "sd": sd, "negative": negative}
    assert exact_summary(estimator, POLICY, REFERENCE) == close(expected)


@pytest.mark.parametrize(
    ("estimator", "estimate"),
    [
        (k1, lambda u: -u),
        (k2, lambda u: u * u / 2),
        (k3, lambda u: exp(u) - u - 1),
        (lambda u: u**3 - 1, lambda u: u**3 - 1),
    ],
    ids=["k1", "k2", "k3", "another function"],
)
@given(pair=distribution_pairs())
def test_exact_summary_agrees_with_plain_loops(estimator, estimate, pair):
    found = exact_summary(estimator, *pair)
    assert found == pytest.approx(moments(estimate, *pair), rel=1e-9, abs=1e-12)
    assert {type(value) for value in found.values()} == {float}


@given(distribution_pairs())
def test_k1_and_k3_are_unbiased(pair):
    for estimator in (k1, k3):
        assert exact_summary(estimator, *pair)["bias"] == pytest.approx(0, abs=1e-12)


@given(distribution_pairs())
def test_the_bias_of_k2_is_its_mean_minus_the_divergence(pair):
    tokens = list(zip(*pair, strict=True))
    half_squares = fsum(p * log(q / p) ** 2 / 2 for p, q in tokens)
    bias = exact_summary(k2, *pair)["bias"]
    assert bias == close(half_squares - fsum(p * log(p / q) for p, q in tokens))


def test_k3_misses_the_mass_of_the_reference_where_the_policy_never_samples():
    # one token sampled, u = log 1/2: k3 is 1/2 + log 2 - 1, and the divergence log 2
    assert exact_summary(k3, [1, 0], [0.5, 0.5])["bias"] == close(-0.5)
    assert exact_summary(k1, [1, 0], [0.5, 0.5])["bias"] == close(0)


@given(seeds, st.integers(1, 50), distribution_pairs())
def test_samples_are_tokens_chosen_by_one_call(seed, n, pair):
    rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
    found = sample_log_ratio(*pair, n, rng=rng)
    tokens = same.choice(len(pair[0]), size=n, p=pair[0])
    assert found == close([log(pair[1][v] / pair[0][v]) for v in tokens])
    assert rng.random() == same.random()


@every_estimator
def test_simulated_estimates_agree_within_five_standard_errors(estimator):
    policy, reference, n = [0.5, 0.3, 0.2], [0.4, 0.4, 0.2], 40_000
    u = sample_log_ratio(policy, reference, n, rng=np.random.default_rng(0))
    exact = moments(lambda u: float(estimator(u)), policy, reference)
    found = sample_summary(estimator(u), kl_divergence(policy, reference))
    assert abs(found["mean"] - exact["mean"]) < 5 * exact["sd"] / sqrt(n)
    assert abs(found["negative"] - exact["negative"]) <= 5 * 0.5 / sqrt(n)
    # the kurtosis of these three-valued estimates is below 10, so sd(s) is below 1.5 sd / sqrt(n)
    assert abs(found["sd"] - exact["sd"]) < 5 * 1.5 * exact["sd"] / sqrt(n)
    assert found["z"] == close(found["bias"] / found["standard_error"])


@given(
    st.lists(st.integers(-64, 64), min_size=2, max_size=20).filter(lambda x: len(set(x)) > 1),
    st.integers(-8, 8),
)
def test_sample_summary_agrees_with_the_statistics_module(eighths, true_kl):
    estimates = [x / 8 for x in eighths]
    mean, sd, root = statistics.fmean(estimates), statistics.pstdev(estimates), sqrt(len(eighths))
    assert sample_summary(estimates, true_kl) == close(
        {
            "mean": mean,
            "bias": mean - true_kl,
            "sd": sd,
            "standard_error": sd / root,
            "z": (mean - true_kl) * root / sd,
            "negative": sum(x < 0 for x in estimates) / len(estimates),
        }
    )


@pytest.mark.parametrize(
    ("true_kl", "z"), [(0.5, 0), (0.25, float("inf")), (0.75, float("-inf"))], ids=str
)
def test_equal_estimates_have_no_standard_error(true_kl, z):
    found = sample_summary([0.5, 0.5], true_kl)
    assert found["standard_error"] == 0
    assert found["z"] == z


def test_zero_is_not_a_negative_estimate():
    found = sample_summary([-1, 0, 1, 2], 0.5)
    assert found["negative"] == 0.25
    assert {type(value) for value in found.values()} == {float}


def softmax_of(logits):
    powers = np.exp(logits)
    return powers / powers.sum()


def slope_in_logits(function, policy, step=1e-5):
    """Return the gradient of a function of the policy in its logits, by central differences."""
    logits = np.log(policy)
    shifts = step * np.eye(len(policy))
    return np.array(
        [
            (function(softmax_of(logits + e)) - function(softmax_of(logits - e))) / (2 * step)
            for e in shifts
        ]
    )


def plain_kl(p, q):
    return np.sum(p * np.log(p / q))


@given(distribution_pairs(max_weight=50))
def test_kl_gradients_are_slopes_of_the_divergences(pair):
    policy, reference = pair
    reverse = slope_in_logits(lambda p: plain_kl(p, reference), policy)
    np.testing.assert_allclose(kl_gradient(policy, reference), reverse, atol=1e-8)
    forward = slope_in_logits(lambda p: plain_kl(reference, p), policy)
    np.testing.assert_allclose(kl_gradient(policy, reference, "forward"), forward, atol=1e-8)


PLAIN = {k1: lambda u: -u, k2: lambda u: u**2 / 2, k3: lambda u: np.exp(u) - u - 1}


@pytest.mark.parametrize("estimator", [k1, k2, k3])
@given(pair=distribution_pairs(max_weight=20), data=st.data())
def test_penalty_gradients_are_slopes_of_what_is_differentiated(estimator, pair, data):
    policy, reference = pair
    v = data.draw(st.integers(0, len(policy) - 1))
    k = PLAIN[estimator]
    fixed = k(np.log(reference[v] / policy[v]))
    losses = {
        "loss": lambda p: k(np.log(reference[v] / p[v])),
        "weighted loss": lambda p: p[v] / policy[v] * k(np.log(reference[v] / p[v])),
        "reward": lambda p: np.log(p[v]) * fixed,
    }
    for placement, loss in losses.items():
        rows = penalty_gradients(estimator, placement, policy, reference)
        slope = slope_in_logits(loss, policy)
        np.testing.assert_allclose(rows[v], slope, rtol=1e-5, atol=1e-6)


@given(distribution_pairs())
def test_which_divergence_an_estimator_descends_in_expectation(pair):
    policy, reference = pair
    reverse, forward = kl_gradient(policy, reference), kl_gradient(policy, reference, "forward")
    for estimator, placement, expected in (
        (k1, "loss", 0 * policy),
        (k2, "loss", reverse),
        (k3, "loss", forward),
        (k1, "reward", reverse),
        (k1, "weighted loss", reverse),
        (k3, "weighted loss", reverse),
    ):
        mean = policy @ penalty_gradients(estimator, placement, policy, reference)
        np.testing.assert_allclose(mean, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kl_gradient([0.5, 0.5], [0.5, 0.5], "both"), "direction must be .* 'both'"),
        (lambda: kl_gradient([1, 0], [0.5, 0.5], "forward"), "the divergence is infinite"),
        (lambda: kl_gradient([0.5, 0.5], [1, 0]), "the divergence is infinite"),
        (lambda: penalty_gradients("k3", "loss", [1], [1]), "estimator must be k1, k2 or k3"),
        (lambda: penalty_gradients(k3, "advantage", [1], [1]), "placement must be .*'advantage'"),
        (lambda: penalty_gradients(k3, "loss", [0.5, 0.6], [1, 0]), "policy must sum to 1"),
    ],
)
def test_gradients_refuse_what_they_do_not_know(call, message):
    with pytest.raises(ValueError, match=message):
        call()
