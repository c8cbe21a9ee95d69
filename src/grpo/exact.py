"""Exact expectations over everything a group of binary rewards can be."""

from math import comb

import numpy as np

from grpo._validate import as_count, as_finite, as_number, as_probability

_MOST_OUTCOMES = 20
_MOST_COUNTS = 1029


def outcomes(G):
    r"""Return every group of G binary rewards.

    Parameters
    ----------
    G : int
        Rollouts in a group, 1 <= G <= 20.

    Returns
    -------
    ndarray of float64, shape (2**G, G)
        One group a row, counting up in binary.

    Raises
    ------
    ValueError
        If G is not a whole number in [1, 20]; beyond, `expectation_over_counts` serves.

    Notes
    -----
    .. math:: \{0, 1\}^G

    The sample space of the verifiable reward in DeepSeekMath, section 4.1 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import outcomes
    >>> outcomes(2)
    array([[0., 0.],
           [0., 1.],
           [1., 0.],
           [1., 1.]])
    """
    G = as_count("G", G)
    if G > _MOST_OUTCOMES:
        raise ValueError(f"G must be <= {_MOST_OUTCOMES} to list 2**G groups, got {G}")
    return (np.arange(2**G)[:, None] >> np.arange(G)[::-1] & 1).astype(float)


def expectation_over_outcomes(values, p, G):
    r"""Return the exact expectation of a quantity given for every group of binary rewards.

    Parameters
    ----------
    values : array_like, shape (2**G, ...)
        The quantity for each row of `outcomes(G)`, in any unit.
    p : float
        Probability that one rollout is right, in [0, 1].
    G : int
        Rollouts in a group, 1 <= G <= 20.

    Returns
    -------
    float or ndarray, shape (...)
        The expectation, in the unit of `values`.

    Raises
    ------
    ValueError
        If the first axis of `values` is not 2**G long, a value is NaN or infinite, p is not one
        number in [0, 1] or G is not a whole number in [1, 20].

    Notes
    -----
    .. math::
        \operatorname{E}[f] = \sum_{r \in \{0,1\}^G} f(r) \prod_i p^{r_i} (1-p)^{1-r_i}

    The expectation over the group in DeepSeekMath, equation 3 (arXiv:2402.03300), for a binary
    reward.

    Examples
    --------
    >>> from grpo import expectation_over_outcomes, outcomes
    >>> all_equal = outcomes(4).std(axis=1) == 0
    >>> print(f"{expectation_over_outcomes(all_equal, 0.9, 4):.4f}")
    0.6562
    """
    p = as_number("p", as_probability(p))
    right = outcomes(G)
    values = as_finite("values", values)
    if values.ndim == 0 or len(values) != len(right):
        raise ValueError(f"values must have 2**{G} = {len(right)} rows, got shape {values.shape}")
    probabilities = np.where(right == 1, p, 1 - p).prod(axis=1)
    return np.tensordot(probabilities, values, axes=1)[()]


def expectation_over_counts(values, p, G):
    r"""Return the exact expectation of a quantity that depends on the number right alone.

    Parameters
    ----------
    values : array_like, shape (G + 1, ...)
        The quantity for 0, 1, ..., G right rollouts, in any unit.
    p : float
        Probability that one rollout is right, in [0, 1].
    G : int
        Rollouts in a group, 1 <= G <= 1029.

    Returns
    -------
    float or ndarray, shape (...)
        The expectation, in the unit of `values`.

    Raises
    ------
    ValueError
        If the first axis of `values` is not G + 1 long, a value is NaN or infinite, p is not one
        number in [0, 1] or G is not a whole number in [1, 1029].

    Notes
    -----
    .. math:: \operatorname{E}[f] = \sum_{k=0}^{G} \binom{G}{k} p^k (1-p)^{G-k} f(k)

    The sum over outcomes gathered by the number right, which is binomial; the expectation is
    that of DeepSeekMath, equation 3 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import expectation_over_counts
    >>> print(f"{expectation_over_counts([1, 0, 0, 0, 1], 0.9, 4):.4f}")
    0.6562
    """
    p, G = as_number("p", as_probability(p)), as_count("G", G)
    if G > _MOST_COUNTS:
        raise ValueError(f"G must be <= {_MOST_COUNTS} to stay in the range of float64, got {G}")
    values = as_finite("values", values)
    if values.ndim == 0 or len(values) != G + 1:
        raise ValueError(f"values must have G + 1 = {G + 1} rows, got shape {values.shape}")
    probabilities = np.array([comb(G, k) * p**k * (1 - p) ** (G - k) for k in range(G + 1)])
    return np.tensordot(probabilities, values, axes=1)[()]
