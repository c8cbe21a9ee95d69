"""Numbers with fewer digits than numpy has."""

import numpy as np

from grpo._validate import as_finite


def round_to_bfloat16(values):
    r"""Return numbers rounded to bfloat16, to the nearest and in a tie to the even one.

    Parameters
    ----------
    values : array_like
        Numbers within the range of float32.

    Returns
    -------
    float32 or ndarray of float32
        The rounded numbers.

    Raises
    ------
    ValueError
        If a number is NaN, infinite, or rounds to infinity.

    Notes
    -----
    .. math:: x = \pm m \cdot 2^{e}, \quad m \text{ of } 8 \text{ binary digits}

    bfloat16 is the upper half of float32: 8 bits of exponent and 8 significant ones
    (arXiv:1905.12322). Between 4 and 8 its numbers are 1/32 apart.

    Examples
    --------
    >>> from grpo import round_to_bfloat16
    >>> print(round_to_bfloat16([-5.3, 257, 1.0]))
    [ -5.3125 256.       1.    ]
    """
    numbers = as_finite("values", values)
    with np.errstate(over="ignore"):
        single = np.asarray(numbers, dtype=np.float32)
    # Rounding float64 to float32 first could turn a near tie into a tie: keep a trace of the rest.
    bits = single.view(np.uint32).astype(np.uint64)
    rest = np.sign(np.abs(numbers.astype(float)) - np.abs(single.astype(float))).astype(np.int64)
    half, lowest = bits & 0xFFFF, (bits >> 16) & 1
    above = (half > 0x8000) | ((half == 0x8000) & ((rest > 0) | ((rest == 0) & (lowest == 1))))
    rounded = ((bits >> 16) + above).astype(np.uint32) << np.uint32(16)
    found = rounded.view(np.float32)
    if not np.isfinite(found).all():
        raise ValueError(
            f"values are too large for bfloat16: {numbers[~np.isfinite(found)].flat[0]}"
        )
    return found[()]
