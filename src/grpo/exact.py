"""Exact expectations over everything a group of binary rewards can be."""

from math import comb

import numpy as np

from grpo._validate import as_count, as_finite, as_number, as_probability
from grpo.advantage import advantages

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


def expected_update(p, G, advantage=advantages):
    r"""Return the expected policy-gradient step on one prompt over the gradient of its accuracy.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in (0, 1).
    G : int
        Rollouts in a group, 2 <= G <= 1029.
    advantage : callable, default `advantages`
        Takes rewards of shape (n, G) and returns their advantages; must treat all rollouts of a
        group alike.

    Returns
    -------
    float or ndarray, of the shape of `p`
        The weight of the prompt, in units of one over those of the advantage's divisor: 1 for an
        unbiased estimate of the gradient of the accuracy.

    Raises
    ------
    ValueError
        If p is not in (0, 1), G is not a whole number in [2, 1029], or the advantages have
        another shape than the rewards.

    Notes
    -----
    .. math::
        w(p, G) = \frac{1}{p (1-p)} \operatorname{E}\left[
        \frac{1}{G} \sum_i \hat A_i (r_i - p) \right]

    The score of a Bernoulli logit is r - p, and p (1-p) the gradient of p. The sum is over the
    number of right rollouts, which is binomial. The weight of the population-normalised
    advantage is the mean of :math:`\sqrt{k (G-k)}` over G p (1-p); without a standard deviation
    it is (G-1)/G, the factor that Dr. GRPO leaves (arXiv:2503.20783).

    Examples
    --------
    >>> from grpo import centred_rewards, expected_update, rloo_advantages
    >>> expected_update([0.1, 0.5], G=4).round(4)
    array([1.6903, 1.616 ])
    >>> expected_update([0.1, 0.5], G=4, advantage=centred_rewards)
    array([0.75, 0.75])
    >>> expected_update([0.1, 0.5], G=4, advantage=rloo_advantages)
    array([1., 1.])
    """
    p, G = as_probability(p), as_count("G", G, smallest=2)
    at_edge = (p == 0) | (p == 1)
    if at_edge.any():
        raise ValueError(f"p must be in (0, 1), got {p[at_edge].flat[0]:g}")
    right = np.arange(G) < np.arange(G + 1)[:, None]
    found = as_finite("advantages", advantage(right.astype(float)))
    if found.shape != right.shape:
        raise ValueError(f"advantage must keep the shape {right.shape}, got {found.shape}")
    # sum_i A_i (r_i - p) is linear in p
    slopes = np.stack([np.mean(found * right, axis=1), np.mean(found, axis=1)], axis=1)
    weights = [
        expectation_over_counts(slopes, one, G) @ [1, -one] / (one * (1 - one)) for one in p.flat
    ]
    return np.reshape(weights, p.shape)[()]
