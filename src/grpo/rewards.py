"""What is added to a reward before it becomes an advantage."""

import numpy as np

from grpo._validate import as_count, as_finite


def overlong_penalty(lengths, longest, ramp):
    r"""Return the penalty for answers that come close to the longest allowed length.

    Parameters
    ----------
    lengths : array_like
        Lengths of answers, in tokens, >= 0.
    longest : int
        From where on the penalty is full, in tokens.
    ramp : int
        How many tokens before that it begins, 1 <= ramp <= longest.

    Returns
    -------
    float or ndarray
        The penalty, in units of reward: 0 up to longest - ramp, falling to -1 at `longest`.

    Raises
    ------
    ValueError
        If a length is negative, NaN or infinite, or `longest` or `ramp` is out of range.

    Notes
    -----
    .. math::
        \max\left(-1, \min\left(0,
        \frac{L_{\text{max}} - L_{\text{ramp}} - L}{L_{\text{ramp}}} \right)\right)

    with :math:`L_{\text{max}}` for `longest` and :math:`L_{\text{ramp}}` for `ramp`. Soft overlong
    punishment: DAPO, section 3.4 (arXiv:2503.14476), which calls the ramp's length the cache.

    Examples
    --------
    >>> from grpo import overlong_penalty
    >>> overlong_penalty([10_000, 18_432, 30_000], longest=20_480, ramp=4096)
    array([ 0. , -0.5, -1. ])
    """
    lengths = as_finite("lengths", lengths)
    if (lengths < 0).any():
        raise ValueError(f"lengths must be >= 0, got {lengths[lengths < 0].flat[0]:g}")
    longest, ramp = as_count("longest", longest), as_count("ramp", ramp)
    if ramp > longest:
        raise ValueError(f"ramp must be <= longest = {longest}, got {ramp}")
    return np.clip((longest - ramp - lengths) / ramp, -1, 0) + 0.0
