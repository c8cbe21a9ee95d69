import numpy as np
import pytest
from hypothesis import given
from strategies import seeds

from grpo import entropy, entropy_slope, softmax

POLICY = np.array([0.6, 0.3, 0.1])


def test_entropies_by_hand():
    assert entropy([1.0, 0.0]) == 0
    assert entropy([0.25] * 4) == pytest.approx(np.log(4))
    assert entropy([0.5, 0.25, 0.25]) == pytest.approx(1.5 * np.log(2))


@pytest.mark.parametrize(
    ("right", "slope", "after"), [(0, -0.0806985931, 0.8026663665), (2, 0.0238238342, 0.921805503)]
)
def test_the_reported_steps(right, slope, after):
    """Report R15: the exact policy gradient of the success probability, rate 1."""
    step = POLICY * ((np.arange(3) == right) - POLICY[right])
    assert entropy(POLICY) == pytest.approx(0.8979457249, abs=1e-8)
    assert entropy_slope(POLICY, step) == pytest.approx(slope, abs=1e-8)
    assert entropy(softmax(np.log(POLICY) + step)) == pytest.approx(after, abs=1e-8)


@given(seed=seeds)
def test_the_slope_is_that_of_central_differences(seed):
    rng = np.random.default_rng(seed)
    logits, step = rng.normal(size=(2, 5))
    up, down = (entropy(softmax(logits + sign * 1e-6 * step)) for sign in (1, -1))
    found = entropy_slope(softmax(logits), step)
    assert found == pytest.approx((up - down) / 2e-6, abs=1e-7)
    assert entropy_slope(softmax(logits), step + 3) == pytest.approx(found, abs=1e-12)


def test_at_an_edge_nothing_changes():
    assert entropy_slope([1.0, 0.0], [5.0, 2.0]) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entropy([0.5]), "policy must sum to 1, got 0.5"),
        (lambda: entropy([-0.5, 1.5]), "policy must not be negative"),
        (lambda: entropy_slope([0.5, 0.5], [1.0]), r"got \(2,\) and \(1,\)"),
        (lambda: entropy_slope([0.5, 0.5], [1.0, np.nan]), r"step\[1\] is nan"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
