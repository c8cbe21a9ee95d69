"""Checks of arguments: each returns the argument in the form that the caller needs."""

import operator

import numpy as np

_LARGEST_EXACT = 2**53


def as_floats(name, values):
    """Return `values` as a floating-point array, keeping the dtype of one that already is."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be numbers in a rectangular array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, got {values!r}")
    return array if array.dtype.kind == "f" else array.astype(float)


def as_finite(name, values):
    """Return `values` as a floating-point array; refuse NaN and infinity."""
    array = as_floats(name, values)
    if not np.isfinite(array).all():
        raise not_finite(name, array)
    return array


def not_finite(name, array):
    """Return the error that names the first entry of `array` that is NaN or infinite."""
    where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    place = f"[{', '.join(map(str, where))}]" if where else ""
    return ValueError(f"{name} must be finite, but {name}{place} is {array[where]}")


def as_rewards(rewards, smallest_group=1):
    """Return rewards as floats of shape (..., G) with G >= `smallest_group`.

    NaN is not looked for here: `group_mean` finds it in an array G times smaller.
    """
    rewards = as_floats("rewards", rewards)
    if rewards.ndim == 0:
        raise ValueError(f"rewards must have a last axis of G rollouts, got the scalar {rewards}")
    if rewards.shape[-1] < smallest_group:
        raise ValueError(
            f"a group needs at least {smallest_group} rollout{'s' * (smallest_group > 1)}, "
            f"got G = {rewards.shape[-1]} (rewards of shape {rewards.shape})"
        )
    return rewards


def group_mean(rewards):
    """Return the mean over the last axis, kept as an axis; refuse NaN and infinite rewards.

    The mean of equal rewards is that reward, whatever their sum is rounded to.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        mean = rewards.mean(axis=-1, keepdims=True)
    if not np.isfinite(mean).all():
        if not np.isfinite(rewards).all():
            raise not_finite("rewards", rewards)
        raise ValueError(f"rewards are too large: their sum overflows {rewards.dtype}")
    first = rewards[..., :1]
    rounding = rewards.shape[-1] * np.finfo(mean.dtype).eps * np.abs(mean)
    if ((first != mean) & (np.abs(first - mean) <= rounding)).any():
        equal = rewards.max(axis=-1, keepdims=True) == rewards.min(axis=-1, keepdims=True)
        return np.where(equal, first, mean)
    return mean


def group_std(rewards, mean, correction=0, where=True):
    """Return the standard deviation over the last axis, kept as an axis; refuse an overflow."""
    with np.errstate(over="ignore"):
        std = rewards.std(axis=-1, keepdims=True, ddof=correction, mean=mean, where=where)
    if not np.isfinite(std).all():
        raise ValueError(f"rewards are too large: their squares overflow {rewards.dtype}")
    return std


def positive_divisor(rewards, std, eps):
    """Return std + eps, 1 where all rewards are equal and eps vanishes in their dtype.

    Refuse eps = 0 where there is no spread, and a spread that vanishes together with eps.
    """
    divisor = std + rewards.dtype.type(eps)
    zero = divisor == 0
    if zero.any():
        if eps == 0:
            raise ValueError("eps = 0, and a group has equal rewards or no measurable spread")
        if np.ptp(rewards, axis=-1)[zero[..., 0]].any():
            raise ValueError(f"eps = {eps} and the spread of a group are both 0 in {rewards.dtype}")
        return np.where(zero, rewards.dtype.type(1), divisor)
    return divisor


def as_probability(p):
    """Return `p` as float64; refuse what is not in [0, 1]."""
    p = as_finite("p", p).astype(float)
    outside = (p < 0) | (p > 1)
    if outside.any():
        raise ValueError(f"p must be in [0, 1], got {p[outside].flat[0]}")
    return p


def as_group_size(G, smallest=1):
    """Return `G` as an integer array; refuse fractions and sizes below `smallest`."""
    sizes = as_finite("G", G)
    wrong = (sizes != np.floor(sizes)) | (sizes < smallest) | (sizes > _LARGEST_EXACT)
    if wrong.any():
        raise ValueError(f"G must be a whole number >= {smallest}, got {sizes[wrong].flat[0]:g}")
    return sizes.astype(int)


def as_number(name, value):
    """Return `value` as a float; refuse an array, NaN and infinity."""
    number = as_finite(name, value)
    if number.ndim:
        raise ValueError(f"{name} must be one number, got {value} of shape {number.shape}")
    return float(number)


def as_tolerance(name, value):
    """Return `value` as a float; refuse what is not a number >= 0."""
    number = as_number(name, value)
    if number < 0:
        raise ValueError(f"{name} must be >= 0, got {value}")
    return number


def as_positive(name, value):
    """Return `value` as a float; refuse what is not a number > 0."""
    number = as_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be > 0, got {value}")
    return number


def as_count(name, value, smallest=1):
    """Return `value` as an int; refuse fractions and values below `smallest`."""
    try:
        count = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, got {value!r}") from None
    if count < smallest:
        raise ValueError(f"{name} must be >= {smallest}, got {count}")
    return count


def as_generator(rng):
    """Return `rng`; refuse anything but a `numpy.random.Generator`."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator, got {rng!r}")
    return rng


def as_distribution(name, probabilities):
    """Return a one-dimensional float64 array that is non-negative and sums to one."""
    array = as_finite(name, probabilities).astype(float)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a list of probabilities, got shape {array.shape}")
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array[array < 0][0]}")
    if abs(array.sum() - 1) > 1e-9:
        raise ValueError(f"{name} must sum to 1, got {array.sum()}")
    return array
