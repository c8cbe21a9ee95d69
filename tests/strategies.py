"""Inputs of the property-based tests, and the enumerations they are compared with."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("repeatable")

probabilities = st.floats(0, 1)
inner_probabilities = st.floats(0.001, 0.999)
group_sizes = st.integers(1, 24)
seeds = st.integers(0, 2**32 - 1)


def rewards(min_group=1, max_dims=3, spread=False):
    """Return a strategy of rewards that are multiples of 1/8, so that float sums are exact.

    With `spread` every group has two different rewards at least.
    """

    def of_shape(shape):
        return arrays(np.int64, shape, elements=st.integers(-64, 64)).map(lambda x: x / 8)

    def spread_out(array):
        equal = array.max(axis=-1) == array.min(axis=-1)
        array[..., 0] += equal
        return array

    shapes = array_shapes(min_dims=1, max_dims=max_dims, max_side=6).map(
        lambda shape: (*shape[:-1], shape[-1] + min_group - 1)
    )
    return shapes.flatmap(of_shape).map(spread_out if spread else lambda array: array)


@st.composite
def distribution_pairs(draw, max_weight=1000):
    """Draw two distributions over the same 2 to 6 tokens, with no token of probability 0."""
    weights = st.integers(1, max_weight)
    pairs = draw(st.lists(st.tuples(weights, weights), min_size=2, max_size=6))
    return tuple(np.array(side) / sum(side) for side in zip(*pairs, strict=True))


def weighted_groups(p, G):
    """Return every group of G binary rewards with its probability, in exact arithmetic."""
    p = Fraction(p)
    groups = product((0, 1), repeat=G)
    return [
        (group, prod((p if r else 1 - p for r in group), start=Fraction(1))) for group in groups
    ]


def expectation(function, p, G):
    """Return the exact expectation of `function` of a group, as a fraction."""
    return sum(probability * function(group) for group, probability in weighted_groups(p, G))
