"""From the losses of tokens to the loss of a batch."""

import numpy as np

from grpo._validate import as_finite, as_number, as_positive, as_tolerance

BY = ("tokens", "sequences", "constant", "sum")


def clipped_loss(ratio, advantages, low=0.2, high=0.2):
    r"""Return the clipped policy loss of each token.

    Parameters
    ----------
    ratio : array_like
        Probability of the token under the policy over that under the sampling policy, >= 0.
    advantages : array_like
        Advantages; broadcasts against `ratio`.
    low, high : float, default 0.2
        The ratio is clipped to [1 - low, 1 + high].

    Returns
    -------
    ndarray
        One loss a token, in units of the advantages.

    Raises
    ------
    ValueError
        If a ratio is negative, NaN or infinite, an advantage is NaN or infinite, the shapes do
        not fit, or a bound is negative.

    Notes
    -----
    .. math::
        -\min\left(\rho \hat A,\ \operatorname{clip}(\rho, 1 - \epsilon_l, 1 + \epsilon_h)
        \hat A\right)

    The objective of DeepSeekMath, equation 3 (arXiv:2402.03300), with a minus sign; separate
    bounds as in DAPO, section 3.1 (arXiv:2503.14476).

    Examples
    --------
    >>> from grpo import clipped_loss
    >>> clipped_loss([0.5, 1.0, 1.5], 1.0)
    array([-0.5, -1. , -1.2])
    >>> clipped_loss([0.5, 1.0, 1.5], -1.0)
    array([0.8, 1. , 1.5])
    """
    ratio, advantages, low, high = _clip_arguments(ratio, advantages, low, high)
    return -np.minimum(ratio * advantages, np.clip(ratio, 1 - low, 1 + high) * advantages)


def clip_binds(ratio, advantages, low=0.2, high=0.2):
    r"""Return for which tokens the clip takes the gradient away.

    Parameters
    ----------
    ratio : array_like
        Probability of the token under the policy over that under the sampling policy, >= 0.
    advantages : array_like
        Advantages; broadcasts against `ratio`.
    low, high : float, default 0.2
        The ratio is clipped to [1 - low, 1 + high].

    Returns
    -------
    ndarray of bool
        True where the ratio is outside and the advantage would push it further.

    Raises
    ------
    ValueError
        As `clipped_loss` does.

    Notes
    -----
    .. math::
        (\hat A > 0 \wedge \rho > 1 + \epsilon_h) \vee (\hat A < 0 \wedge \rho < 1 - \epsilon_l)

    On the other side of the interval the minimum in DeepSeekMath, equation 3 (arXiv:2402.03300),
    takes the branch that is not clipped. The share of these tokens is the clip fraction.

    Examples
    --------
    >>> from grpo import clip_binds
    >>> clip_binds([0.5, 1.0, 1.5], 1.0)
    array([False, False,  True])
    >>> clip_binds([0.5, 1.0, 1.5], -1.0)
    array([ True, False, False])
    """
    ratio, advantages, low, high = _clip_arguments(ratio, advantages, low, high)
    return ((advantages > 0) & (ratio > 1 + high)) | ((advantages < 0) & (ratio < 1 - low))


def rejection_mask(log_ratios, low, high):
    r"""Return which tokens are kept by their ratio of policy to sampling policy.

    Parameters
    ----------
    log_ratios : array_like
        Logarithms of the ratios, in nats.
    low, high : float
        Smallest and largest ratio that is kept, 0 < low <= high.

    Returns
    -------
    ndarray of bool
        True where the ratio is in [low, high].

    Raises
    ------
    ValueError
        If a log-ratio is NaN or infinite, or the bounds are not 0 < low <= high.

    Notes
    -----
    .. math:: \log \epsilon_l \le \log \rho \le \log \epsilon_h

    Compared as logarithms, so that no ratio overflows. A rejected token must leave the
    denominator too: hand the mask to `aggregate_loss`. The ratio is that of DeepSeekMath,
    equation 3 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import rejection_mask
    >>> rejection_mask([0.1, -1.5, 0.8, -10.0, 0.3], low=0.5, high=2.0)
    array([ True, False, False, False,  True])
    """
    log_ratios = as_finite("log_ratios", log_ratios)
    low, high = as_number("low", low), as_number("high", high)
    if not 0 < low <= high:
        raise ValueError(f"low and high must be 0 < low <= high, got {low} and {high}")
    return (log_ratios >= np.log(low)) & (log_ratios <= np.log(high))


def _clip_arguments(ratio, advantages, low, high):
    ratio, advantages = as_finite("ratio", ratio), as_finite("advantages", advantages)
    if (ratio < 0).any():
        raise ValueError(f"ratio must be >= 0, got {ratio[ratio < 0].flat[0]}")
    try:
        np.broadcast_shapes(ratio.shape, advantages.shape)
    except ValueError:
        raise ValueError(
            f"ratio and advantages must fit, got shapes {ratio.shape} and {advantages.shape}"
        ) from None
    return ratio, advantages, as_tolerance("low", low), as_tolerance("high", high)


def aggregate_loss(losses, mask, by, longest=None, denominator=None):
    r"""Return the loss of a batch from the losses of its tokens.

    Parameters
    ----------
    losses : array_like, shape (n, T)
        One loss a token; each row is one sequence, in any unit.
    mask : array_like of bool, shape (n, T)
        Which tokens count; the others are padding, or rejected.
    by : {"tokens", "sequences", "constant", "sum"}
        Mean over the tokens of the batch; mean of each sequence, then mean over the sequences;
        sum over `longest` tokens a sequence; plain sum.
    longest : float, optional
        The constant length, in tokens, for "constant".
    denominator : float, optional
        For one part of a batch: the number of tokens ("tokens") or sequences ("sequences",
        "constant") of the whole batch. The losses of the parts then add up to that of the whole.
        By default that of this part; a sequence without a token does not count.

    Returns
    -------
    float
        The loss, in the unit of `losses`.

    Raises
    ------
    ValueError
        If the shapes are not one shape (n, T), a counted loss is NaN or infinite, no token
        counts, `by` is not listed, or a length or denominator is missing, not positive or given
        where it does not belong.

    Notes
    -----
    .. math::
        \frac{\sum_{it} \ell_{it}}{\sum_i T_i}, \qquad
        \frac{1}{n} \sum_i \frac{1}{T_i} \sum_t \ell_{it}, \qquad
        \frac{1}{n L} \sum_{it} \ell_{it}

    Over tokens: DAPO, section 3.3 (arXiv:2503.14476). Over sequences: the objective of
    DeepSeekMath, equation 3 (arXiv:2402.03300). By a constant: Dr. GRPO (arXiv:2503.20783).

    Examples
    --------
    >>> from grpo import aggregate_loss
    >>> losses = [[1, 1, 0, 0], [2, 2, 2, 2]]
    >>> mask = [[True, True, False, False], [True, True, True, True]]
    >>> round(aggregate_loss(losses, mask, by="tokens"), 4)
    1.6667
    >>> aggregate_loss(losses, mask, by="sequences")
    1.5
    """
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.ndim != 2 or np.shape(losses) != mask.shape:
        raise ValueError(
            f"losses and mask must have one shape (n, T) and mask must be bool, "
            f"got {np.shape(losses)} and {mask.shape} of {mask.dtype}"
        )
    if by not in BY:
        raise ValueError(f"by must be one of {BY}, got {by!r}")
    if (longest is not None) != (by == "constant"):
        raise ValueError(f"longest belongs to by='constant' alone, got {longest} for {by!r}")
    losses = as_finite("losses", np.where(mask, losses, 0))
    tokens = mask.sum(axis=1)
    if not tokens.any():
        raise ValueError("no token counts: mask is False everywhere")
    if by == "sum":
        if denominator is not None:
            raise ValueError(f"a sum has no denominator, got {denominator}")
        return float(losses.sum())
    if denominator is None:
        denominator = tokens.sum() if by == "tokens" else np.count_nonzero(tokens)
    denominator = as_positive("denominator", denominator)
    if by == "sequences":
        return float((losses.sum(axis=1) / np.maximum(tokens, 1)).sum() / denominator)
    if by == "constant":
        denominator *= as_positive("longest", longest)
    return float(losses.sum() / denominator)
