"""From the losses of tokens to the loss of a batch."""

import numpy as np

from grpo._validate import as_finite, as_number, as_tolerance

BY = ("tokens", "sequences", "constant", "sum")


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
    denominator = _positive("denominator", denominator)
    if by == "sequences":
        return float((losses.sum(axis=1) / np.maximum(tokens, 1)).sum() / denominator)
    if by == "constant":
        denominator *= _positive("longest", longest)
    return float(losses.sum() / denominator)


def _positive(name, value):
    if as_tolerance(name, as_number(name, value)) == 0:
        raise ValueError(f"{name} must be > 0, got {value}")
    return float(value)
