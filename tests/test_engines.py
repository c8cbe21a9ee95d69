from math import erf, exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo import clip_binds, effective_sample_size, mean_weight, sampler_policy

POLICY = np.array([0.45, 0.3, 0.15, 0.1])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, POLICY),
        ({"top_p": 0.75}, [0.6, 0.4, 0, 0]),
        ({"top_p": 0.76}, [0.5, 1 / 3, 1 / 6, 0]),
        ({"top_p": 1e-9}, [1, 0, 0, 0]),
        ({"top_k": 2}, [0.6, 0.4, 0, 0]),
        ({"top_k": 9}, POLICY),
        ({"top_k": 3, "top_p": 0.6}, [0.6, 0.4, 0, 0]),  # 0.5 of what three tokens keep, 0.8333
        ({"temperature": 0.5}, POLICY**2 / 0.325),  # 0.2025 + 0.09 + 0.0225 + 0.01
    ],
)
def test_policies_by_hand(settings, expected):
    np.testing.assert_allclose(sampler_policy(np.log(POLICY), **settings), expected, atol=1e-14)


def test_an_unchanged_policy_has_the_kept_mass_as_its_ratio():
    """Report R10: 0.45 + 0.3 = 0.75 for every token that can be drawn, and it is clipped away."""
    kept = sampler_policy(np.log(POLICY), top_p=0.75)
    ratio = POLICY[kept > 0] / kept[kept > 0]
    np.testing.assert_allclose(ratio, 0.75, atol=1e-12)
    assert kept[kept > 0] @ ratio == pytest.approx(0.75, abs=1e-12)
    assert clip_binds(ratio, -1.0).all()
    assert not clip_binds(1.0, -1.0)


def test_equal_tokens_and_batches():
    logits = np.zeros((2, 3))
    np.testing.assert_allclose(sampler_policy(logits, top_k=2), [[0.5, 0.5, 0]] * 2)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=20), st.floats(-500, 500))
def test_the_effective_size_is_between_one_and_all(logs, shift):
    found = effective_sample_size(logs)
    assert 1 - 1e-12 <= found <= len(logs) * (1 + 1e-12)
    assert effective_sample_size(np.add(logs, shift)) == pytest.approx(found, rel=1e-9)


def test_effective_sizes_by_hand():
    assert effective_sample_size([0.0] * 7) == pytest.approx(7)
    assert effective_sample_size([1000.0, -1000.0]) == 1
    assert effective_sample_size(np.log([3, 1])) == pytest.approx(16 / 10)


@pytest.mark.parametrize("treatment", ["capped", "masked"])
@pytest.mark.parametrize(
    ("tokens", "sd", "cap"), [(9000, 0.02, 2.0), (50, 0.1, 1.2), (1, 0.5, 0.5)]
)
def test_means_of_cut_weights_are_those_of_quadrature(tokens, sd, cap, treatment):
    v = tokens * sd**2
    z = np.linspace(-12, 12, 400_001)
    weights = np.exp(-v / 2 + sqrt(v) * z)
    density = np.exp(-(z**2) / 2) / sqrt(2 * np.pi)
    cut = np.minimum(weights, cap) if treatment == "capped" else weights * (weights <= cap)
    expected = np.trapezoid(cut * density, z)
    assert mean_weight(tokens, sd, cap, treatment) == pytest.approx(expected, abs=1e-4)


def test_the_reported_mean():
    """Report R09, and its formula written out once more."""
    m, v, cap = -1.8, 3.6, 2.0
    below = [0.5 * (1 + erf((log(cap) - m - shift) / sqrt(2 * v))) for shift in (v, 0)]
    assert below[0] + cap * (1 - below[1]) == pytest.approx(0.4686694741, abs=1e-9)
    assert mean_weight(9000, 0.02, 2.0) == pytest.approx(0.4686694741, abs=1e-9)
    assert exp(m) == pytest.approx(0.1652988882, abs=1e-9)


def test_limits_of_the_mean():
    assert mean_weight(10, 0.1) == 1
    assert mean_weight(10, 0.1, 1e12) == pytest.approx(1, abs=1e-12)
    assert mean_weight(100_000, 1.0, 2.0) == 0  # almost every answer has a weight near 0
    assert mean_weight(1, 1e-9, 2.0, "masked") == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sampler_policy([np.nan]), r"logits\[0\] is nan"),
        (lambda: sampler_policy([0.0], temperature=0), "temperature must be > 0, got 0"),
        (lambda: sampler_policy([0.0], top_p=0), r"top_p must be in \(0, 1\], got 0"),
        (lambda: sampler_policy([0.0], top_p=1.5), "1.5"),
        (lambda: sampler_policy([0.0], top_k=0), "top_k must be >= 1, got 0"),
        (lambda: effective_sample_size([]), r"got shape \(0,\)"),
        (lambda: effective_sample_size([inf]), r"log_weights\[0\] is inf"),
        (lambda: mean_weight(0, 0.1), "tokens must be >= 1, got 0"),
        (lambda: mean_weight(1, 0), "sd must be > 0, got 0"),
        (lambda: mean_weight(1, 0.1, -1), "cap must be > 0, got -1"),
        (lambda: mean_weight(1, 0.1, 2, "cut"), "treatment must be one of .* got 'cut'"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
