import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from grpo import aggregate_loss

# three sequences of 2, 8 and 5 tokens with losses 1, 2 and 0 a token; room for ten
LENGTHS, PER_TOKEN = np.array([2, 8, 5]), np.array([1.0, 2.0, 0.0])
MASK = np.arange(10) < LENGTHS[:, None]
LOSSES = np.where(MASK, PER_TOKEN[:, None], 99.0)
WAYS = ("tokens", "sequences", "constant", "sum")


def longest(by):
    return 10 if by == "constant" else None


@pytest.mark.parametrize(
    ("by", "kept", "dropped"),
    [
        ("tokens", 18 / 15, 18 / 10),  # 2 * 1 + 8 * 2 over the tokens
        ("sequences", 3 / 3, 3 / 2),  # 1 + 2 + 0 over the sequences
        ("constant", 18 / 30, 18 / 20),
        ("sum", 18, 18),
    ],
)
def test_one_batch_by_hand(by, kept, dropped):
    assert aggregate_loss(LOSSES, MASK, by, longest(by)) == pytest.approx(kept, rel=1e-15)
    live = aggregate_loss(LOSSES[:2], MASK[:2], by, longest(by))
    assert live == pytest.approx(dropped, rel=1e-15)


@pytest.mark.parametrize("by", WAYS)
@given(seed=seeds, n=st.integers(1, 6), cut=st.integers(0, 6))
def test_splitting_a_batch_changes_nothing(by, seed, n, cut):
    rng = np.random.default_rng(seed)
    losses, mask = rng.normal(size=(n, 5)), rng.random((n, 5)) < 0.7
    mask[:, 0] = True
    whole = aggregate_loss(losses, mask, by, longest(by))
    denominator = {"tokens": mask.sum(), "sum": None}.get(by, n)
    parts = [slice(0, cut), slice(cut, None)]
    total = sum(
        aggregate_loss(losses[part], mask[part], by, longest(by), denominator)
        for part in parts
        if len(losses[part])
    )
    assert total == pytest.approx(whole, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("by", WAYS)
@given(seed=seeds)
def test_order_padding_and_what_is_masked_do_not_matter(by, seed):
    rng = np.random.default_rng(seed)
    losses, mask = rng.normal(size=(4, 6)), rng.random((4, 6)) < 0.6
    mask[0, 0] = True
    expected = aggregate_loss(losses, mask, by, longest(by))
    rows, columns = rng.permutation(4), rng.permutation(6)
    moved = aggregate_loss(losses[rows][:, columns], mask[rows][:, columns], by, longest(by))
    assert moved == pytest.approx(expected, rel=1e-12, abs=1e-12)
    noise = np.where(mask, losses, np.nan)
    assert aggregate_loss(noise, mask, by, longest(by)) == expected
    padded = [np.pad(array, ((0, 2), (0, 3))) for array in (losses, mask)]
    assert aggregate_loss(*padded, by, longest(by)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(seed=seeds, by=st.sampled_from(WAYS))
def test_the_loss_is_linear(seed, by):
    a, b = np.random.default_rng(seed).normal(size=(2, 3, 10))
    found = aggregate_loss(2 * a - 3 * b, MASK, by, longest(by))
    parts = [aggregate_loss(losses, MASK, by, longest(by)) for losses in (a, b)]
    assert found == pytest.approx(2 * parts[0] - 3 * parts[1], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((LOSSES[:2], MASK, "sum"), r"one shape \(n, T\).* got \(2, 10\) and \(3, 10\)"),
        ((LOSSES, MASK.astype(int), "sum"), "mask must be bool, .* int64"),
        ((LOSSES[0], MASK[0], "sum"), r"one shape \(n, T\)"),
        ((LOSSES, MASK, "mean"), "by must be one of .* got 'mean'"),
        ((LOSSES, MASK, "constant"), "longest belongs to .* got None for 'constant'"),
        ((LOSSES, MASK, "tokens", 10), "longest belongs to .* got 10 for 'tokens'"),
        ((LOSSES, MASK, "constant", 0), "longest must be > 0, got 0"),
        ((LOSSES, MASK, "constant", -1), "longest must be > 0, got -1"),
        ((LOSSES, MASK, "tokens", None, 0), "denominator must be > 0, got 0"),
        ((LOSSES, MASK, "tokens", None, np.nan), "denominator is nan"),
        ((LOSSES, MASK, "sum", None, 3), "a sum has no denominator, got 3"),
        ((LOSSES, MASK & False, "tokens"), "no token counts"),
        ((np.full((3, 10), np.nan), MASK, "sum"), r"losses\[0, 0\] is nan"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        aggregate_loss(*arguments)
