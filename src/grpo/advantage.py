"""Advantages of the rollouts of a group, relative to the group itself."""

import numpy as np

from grpo._validate import (
    as_count,
    as_group_size,
    as_rewards,
    as_tolerance,
    group_mean,
    group_std,
    positive_divisor,
)


def advantages(rewards, correction=0, eps=1e-8):
    r"""Return the group-relative advantages of GRPO.

    Parameters
    ----------
    rewards : array_like, shape (..., G)
        Rewards; each run of the last axis is one group. Floating dtypes are kept, others become
        float64.
    correction : int, default 0
        What is subtracted from G under the sum of squares. 0 is the population standard
        deviation of the paper and of `numpy.std`; 1 is Bessel's correction, PyTorch's default.
    eps : float, default 1e-8
        Added to the standard deviation, in units of reward.

    Returns
    -------
    ndarray, shape (..., G)
        The advantages, without unit, in the dtype of the rewards; exactly 0 where all rewards of a
        group are equal.

    Raises
    ------
    ValueError
        If a group is empty, a reward is NaN or infinite, `correction` is not a whole number in
        [0, G), `eps` is negative or NaN, `eps` is 0 and a group has no spread (0/0), `eps` and a
        spread both vanish in the dtype, or the rewards are so large that their squares overflow.

    Notes
    -----
    .. math:: \hat A_i = \frac{r_i - \bar r}{\operatorname{std}(r_1, \dots, r_G) + \epsilon}

    DeepSeekMath, section 4.1.2 (arXiv:2402.03300), writes it without the term eps, which every
    implementation adds in some size.

    Examples
    --------
    >>> from grpo import advantages
    >>> advantages([1, 0, 1, 0]).round(3)
    array([ 1., -1.,  1., -1.])
    >>> advantages([1, 0, 1, 0], correction=1).round(3)
    array([ 0.866, -0.866,  0.866, -0.866])
    """
    rewards = as_rewards(rewards)
    G = rewards.shape[-1]
    correction = as_count("correction", correction, smallest=0)
    if correction >= G:
        raise ValueError(f"correction must be < G = {G}, got {correction}")
    eps = as_tolerance("eps", eps)
    mean = group_mean(rewards)
    std = group_std(rewards, mean, correction)
    return (rewards - mean) / positive_divisor(rewards, std, eps)


def centred_rewards(rewards):
    r"""Return each reward minus the mean of its group, the advantage of Dr. GRPO.

    Parameters
    ----------
    rewards : array_like, shape (..., G)
        Rewards; each run of the last axis is one group.

    Returns
    -------
    ndarray, shape (..., G)
        The centred rewards, in units of reward.

    Raises
    ------
    ValueError
        If a group is empty or a reward is NaN or infinite.

    Notes
    -----
    .. math:: \tilde A_i = r_i - \bar r

    The advantage that Dr. GRPO proposes (arXiv:2503.20783).

    Examples
    --------
    >>> from grpo import centred_rewards
    >>> centred_rewards([1, 0, 1, 0])
    array([ 0.5, -0.5,  0.5, -0.5])
    """
    rewards = as_rewards(rewards)
    return rewards - group_mean(rewards)


def leave_one_out_baseline(rewards):
    r"""Return for each rollout the mean reward of the other rollouts of its group.

    Parameters
    ----------
    rewards : array_like, shape (..., G)
        Rewards; each run of the last axis is one group, G >= 2.

    Returns
    -------
    ndarray, shape (..., G)
        The baselines, in units of reward.

    Raises
    ------
    ValueError
        If G < 2 or a reward is NaN or infinite.

    Notes
    -----
    .. math:: b_i = \frac{1}{G-1} \sum_{j \neq i} r_j

    The leave-one-out estimator of RLOO (arXiv:2402.14740).

    Examples
    --------
    >>> from grpo import leave_one_out_baseline
    >>> leave_one_out_baseline([1, 0, 1, 0]).round(4)
    array([0.3333, 0.6667, 0.3333, 0.6667])
    """
    rewards = as_rewards(rewards, smallest_group=2)
    G = rewards.shape[-1]
    mean = group_mean(rewards)
    return mean + (mean - rewards) / (G - 1)


def rloo_advantages(rewards):
    r"""Return the REINFORCE leave-one-out advantages.

    Parameters
    ----------
    rewards : array_like, shape (..., G)
        Rewards; each run of the last axis is one group, G >= 2.

    Returns
    -------
    ndarray, shape (..., G)
        The advantages, in units of reward.

    Raises
    ------
    ValueError
        If G < 2 or a reward is NaN or infinite.

    Notes
    -----
    .. math::
        A_i^{\text{RLOO}} = r_i - \frac{1}{G-1} \sum_{j \neq i} r_j
        = \frac{G}{G-1} (r_i - \bar r)

    The leave-one-out estimator of RLOO (arXiv:2402.14740). The second form is an
    identity; the first is computed.

    Examples
    --------
    >>> from grpo import rloo_advantages
    >>> rloo_advantages([1, 0, 1, 0]).round(4)
    array([ 0.6667, -0.6667,  0.6667, -0.6667])
    """
    rewards = as_rewards(rewards, smallest_group=2)
    return rewards - leave_one_out_baseline(rewards)


def bessel_ratio(G):
    r"""Return how much smaller advantages are under Bessel's correction.

    Parameters
    ----------
    G : array_like of int
        Group size, G >= 1.

    Returns
    -------
    float or ndarray
        The ratio, without unit: 0 at G = 1 and tending to 1.

    Raises
    ------
    ValueError
        If G is not a whole number >= 1.

    Notes
    -----
    .. math:: \frac{\operatorname{std}_{1/G}}{\operatorname{std}_{1/(G-1)}} = \sqrt{\frac{G-1}{G}}

    The standard deviation is that of DeepSeekMath, section 4.1.2 (arXiv:2402.03300). Both are
    made from the same rewards, so the ratio holds for any that are not all equal, up to eps.

    Examples
    --------
    >>> from grpo import bessel_ratio
    >>> bessel_ratio([4, 16]).round(4)
    array([0.866 , 0.9682])
    """
    G = as_group_size(G)
    return np.sqrt((G - 1) / G)
