"""The entropy of a policy, and what one step does to it."""

import numpy as np

from grpo._validate import as_distribution, as_finite


def entropy(policy):
    r"""Return the entropy of a policy.

    Parameters
    ----------
    policy : array_like, shape (V,)
        Probabilities of V answers.

    Returns
    -------
    float
        The entropy in nats, between 0 and log V.

    Raises
    ------
    ValueError
        If `policy` is not a distribution.

    Notes
    -----
    .. math:: H(\pi) = -\sum_a \pi_a \log \pi_a

    The quantity of Cui et al., section 2 (arXiv:2505.22617).

    Examples
    --------
    >>> from grpo import entropy
    >>> round(entropy([0.6, 0.3, 0.1]), 4)
    0.8979
    """
    policy = as_distribution("policy", policy)
    some = policy[policy > 0]
    return float(-(some @ np.log(some))) + 0.0


def entropy_slope(policy, step):
    r"""Return how fast the entropy changes along a step of the logits.

    Parameters
    ----------
    policy : array_like, shape (V,)
        Probabilities of V answers, the softmax of the logits.
    step : array_like, shape (V,)
        Direction in the logits, in nats; a constant in all of them does not matter.

    Returns
    -------
    float
        Derivative of the entropy, in nats for each unit of the step.

    Raises
    ------
    ValueError
        If `policy` is not a distribution, the shapes differ, or a step is NaN or infinite.

    Notes
    -----
    .. math:: \frac{\mathrm{d} H}{\mathrm{d} t} = -\sum_a \pi_a (\log \pi_a + H) g_a
        = -\operatorname{Cov}_\pi(\log \pi, g)

    The covariance of Cui et al., section 3 (arXiv:2505.22617): the entropy falls where the
    likely answers gain.

    Examples
    --------
    >>> from grpo import entropy_slope
    >>> policy, rewards = [0.6, 0.3, 0.1], [1, 0, 0]
    >>> step = [chance * (reward - 0.6) for chance, reward in zip(policy, rewards)]
    >>> round(entropy_slope(policy, step), 4)
    -0.0807
    """
    policy, step = as_distribution("policy", policy), as_finite("step", step)
    if step.shape != policy.shape:
        raise ValueError(
            f"policy and step must have one shape, got {policy.shape} and {step.shape}"
        )
    logs = np.log(np.where(policy > 0, policy, 1.0))
    return float(-(policy * (logs + entropy(policy))) @ step)
