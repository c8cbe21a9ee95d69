from fractions import Fraction
from itertools import combinations
from math import comb, factorial, lgamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from grpo import (
    beta_degenerate_probability,
    degenerate_probability,
    fit_beta,
    intraclass_correlation,
    pass_at_k,
    success_count_probabilities,
)

shapes = st.integers(1, 8)


def beta(a, b):
    """Return the Beta function of whole numbers, exactly."""
    return Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))


@given(shapes, shapes, st.integers(1, 20))
def test_counts_are_beta_binomial(a, b, G):
    exact = [float(comb(G, k) * beta(a + k, b + G - k) / beta(a, b)) for k in range(G + 1)]
    found = success_count_probabilities(a, b, G)
    np.testing.assert_allclose(found, exact, rtol=1e-11)
    assert found.sum() == pytest.approx(1, rel=1e-12)


@given(st.floats(0.1, 20), st.floats(0.1, 20), st.integers(1, 20))
def test_moments_of_counts(a, b, G):
    k, found = np.arange(G + 1), success_count_probabilities(a, b, G)
    mean = a / (a + b)
    assert found @ k == pytest.approx(G * mean, rel=1e-9)
    # G p q of a binomial, and G (G - 1) covariances of two rollouts of one prompt
    rho = intraclass_correlation(a, b)
    variance = G * mean * (1 - mean) * (1 + (G - 1) * rho)
    assert found @ (k - G * mean) ** 2 == pytest.approx(variance, rel=1e-9)


@given(shapes, shapes, st.integers(1, 20))
def test_degenerate_rate_in_closed_form(a, b, G):
    exact = float((beta(a + G, b) + beta(a, b + G)) / beta(a, b))
    if G == 1:
        exact = 1.0
    assert beta_degenerate_probability(a, b, G) == pytest.approx(exact, rel=1e-11)


def test_degenerate_rate_by_hand():
    # p uniform: the mean of p^4 + (1-p)^4 is 2/5
    assert beta_degenerate_probability(1, 1, 4) == pytest.approx(2 / 5, rel=1e-14)
    # nearly one p for all prompts: the rate of that p
    found = beta_degenerate_probability(9e6, 1e6, 4)
    assert found == pytest.approx(degenerate_probability(0.9, 4), rel=1e-5)
    assert intraclass_correlation(1, 1) == pytest.approx(1 / 3, rel=1e-15)


def log_likelihood(a, b, counts, G):
    return sum(
        lgamma(a + k)
        + lgamma(b + G - k)
        - lgamma(a + b + G)
        - lgamma(a)
        - lgamma(b)
        + lgamma(a + b)
        for k in counts
    )


@given(seeds, st.integers(4, 16))
def test_the_fit_is_where_the_likelihood_is_flat(seed, G):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 1, size=60)
    counts = rng.binomial(G, p)
    a, b = fit_beta(counts, G)
    best = log_likelihood(a, b, counts, G)
    for factor in (0.98, 1.02):
        assert log_likelihood(a * factor, b, counts, G) < best
        assert log_likelihood(a, b * factor, counts, G) < best
        assert log_likelihood(a * factor, b * factor, counts, G) < best


def test_two_prompts_can_be_fitted():
    # right and wrong exchanged: a and b exchanged
    a, b = fit_beta([0, 3], 4)
    assert fit_beta([4, 1], 4) == pytest.approx((b, a), rel=1e-5)
    assert intraclass_correlation(a, b) > 0.3


def test_the_fit_recovers_the_distribution_of_many_prompts():
    # counts in the very proportions of Beta(2, 3)
    proportions = success_count_probabilities(2, 3, 8)
    counts = np.repeat(np.arange(9), np.round(1e6 * proportions).astype(int))
    assert fit_beta(counts, 8) == pytest.approx((2, 3), rel=1e-3)


@pytest.mark.parametrize("n", range(1, 7))
def test_pass_at_k_is_the_share_of_sets_with_a_right_answer(n):
    for right in range(n + 1):
        answers = [1] * right + [0] * (n - right)
        for k in range(1, n + 1):
            sets = list(combinations(answers, k))
            share = sum(any(chosen) for chosen in sets) / len(sets)
            assert pass_at_k(n, right, k) == pytest.approx(share, rel=1e-13, abs=1e-15)


@given(st.integers(1, 40), st.floats(0, 1), st.data())
def test_pass_at_k_is_unbiased(n, p, data):
    k = data.draw(st.integers(1, n))
    chance = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    found = np.dot(chance, pass_at_k(n, np.arange(n + 1), k))
    assert found == pytest.approx(1 - (1 - p) ** k, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: success_count_probabilities(0, 1, 4), "a must be > 0, got 0"),
        (lambda: success_count_probabilities(1, -2, 4), "b must be > 0, got -2"),
        (lambda: success_count_probabilities(1, 1, 0), "G must be >= 1, got 0"),
        (lambda: beta_degenerate_probability(np.nan, 1, 4), "a must be finite"),
        (lambda: beta_degenerate_probability(1, 1, 0.5), "G must be a whole number, got 0.5"),
        (lambda: intraclass_correlation(1, 0), "b must be > 0, got 0"),
        (lambda: intraclass_correlation([1], 1), "a must be one number"),
        (lambda: fit_beta([1, 5], 4), r"in \[0, 4\], got 5"),
        (lambda: fit_beta([1, 0.5], 4), r"in \[0, 4\], got 0.5"),
        (lambda: fit_beta([1], 4), r"two or more, got shape \(1,\)"),
        (lambda: fit_beta([1, 2], 1), "G must be >= 2, got 1"),
        (lambda: fit_beta([4, 4, 4], 4), "all rollouts agree: every count is 4"),
        (lambda: fit_beta([2, 2, 2], 4), "no more than by chance"),
        (lambda: fit_beta([0, 4, 0, 4], 4), "every count is 0 or G"),
        (lambda: fit_beta([np.nan, 1], 4), r"counts\[0\] is nan"),
        (lambda: pass_at_k(4, 5, 2), r"in \[0, 4\], got 5"),
        (lambda: pass_at_k(4, 1.5, 2), r"in \[0, 4\], got 1.5"),
        (lambda: pass_at_k(4, 1, 5), "k must be <= n = 4, got 5"),
        (lambda: pass_at_k(4, 1, 0), "k must be >= 1, got 0"),
        (lambda: pass_at_k(0, 0, 1), "n must be >= 1, got 0"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
