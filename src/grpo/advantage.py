"""Advantages of the rollouts of a group, relative to the group itself."""

import numpy as np

from grpo._validate import (
    as_count,
    as_finite,
    as_floats,
    as_group_size,
    as_rewards,
    as_tolerance,
    group_mean,
    group_std,
    not_finite,
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
        deviation, `numpy.std`'s default; 1 is Bessel's correction, PyTorch's default. The paper
        leaves it open.
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


def by_group(advantage, rewards, group_ids):
    r"""Return the advantages of rewards whose groups are told by ids.

    Parameters
    ----------
    advantage : callable
        Takes the rewards of one group, of shape (G,), and returns its advantages: `advantages`,
        `rloo_advantages`, a `Convention` or any other.
    rewards : array_like, shape (n,)
        Rewards in any order; NaN where `advantage` allows it.
    group_ids : array_like, shape (n,)
        The group of each reward: whole numbers or strings. Groups may differ in size.

    Returns
    -------
    ndarray, shape (n,)
        The advantages, in the order of the rewards.

    Raises
    ------
    ValueError
        If the shapes differ, there is no reward, an id is not a whole number or a string, or
        `advantage` refuses a group.

    Notes
    -----
    .. math:: \hat A_i = f(r_j : g_j = g_i)_i

    Which rollouts form a group cannot be told from the numbers: a batch of prompts in turn and a
    batch of copies in turn look alike. The group is that of DeepSeekMath, section 4.1.2
    (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import by_group, centred_rewards
    >>> by_group(centred_rewards, [1, 0, 0, 2, 0], ["a", "b", "a", "b", "b"]).round(4)
    array([ 0.5   , -0.6667, -0.5   ,  1.3333, -0.6667])
    """
    rewards, ids = as_rewards(rewards), np.asarray(group_ids)
    if rewards.ndim != 1 or ids.shape != rewards.shape:
        raise ValueError(
            f"rewards and group_ids must have one shape (n,), got {rewards.shape} and {ids.shape}"
        )
    if ids.dtype.kind not in "iuUS":
        raise ValueError(f"group_ids must be whole numbers or strings, got {group_ids!r}")
    found = np.empty(rewards.shape)
    for group in np.unique(ids):
        found[ids == group] = advantage(rewards[ids == group])
    return found


def decoupled_advantages(rewards, weights, correction=0, eps=1e-8, over_batch=True):
    r"""Return advantages from several rewards, each normalised by itself before they are added.

    Parameters
    ----------
    rewards : array_like, shape (groups, G, m)
        The m rewards of each rollout; NaN where a reward does not apply.
    weights : array_like, shape (m,)
        Their weights.
    correction : int, default 0
        As in `advantages`.
    eps : float, default 1e-8
        Added to each standard deviation, without unit after the first division.
    over_batch : bool, default True
        Whether the sum is normalised once more, over the whole batch, as `whitened_advantages`
        does. A rollout to which no reward applies is left out of that.

    Returns
    -------
    ndarray of float64, shape (groups, G)
        The advantages, without unit. A reward without spread in its group contributes 0, and so
        does a reward to a rollout that it does not apply to.

    Raises
    ------
    ValueError
        If the shapes do not fit, a reward is infinite, all are NaN, a weight is NaN or infinite,
        `eps` is out of range, or `correction` is not in [0, n) for the n rollouts of a group that
        a reward applies to.

    Notes
    -----
    .. math::
        S_i = \sum_m w_m \frac{r_{im} - \bar r_m}{\operatorname{std}(r_m) + \epsilon}, \qquad
        \hat A_i = \frac{S_i - \bar S}{\operatorname{std}(S) + \epsilon}

    The decoupled normalisation of GDPO (arXiv:2601.05242); the mean and the standard deviation of
    the second step are those of the batch. A reward is normalised over the rollouts of the group
    that have it, and what is missing adds nothing: 0 is the advantage of a rollout at the mean,
    whereas a reward of 0 would count as an answer that failed.

    Examples
    --------
    >>> from grpo import decoupled_advantages
    >>> rewards = [[[0, 0], [1, 0]], [[0, 0], [1, 1]]]
    >>> decoupled_advantages(rewards, [1, 1], over_batch=False).round(3)
    array([[-1.,  1.],
           [-2.,  2.]])
    >>> only_one_has_a_second_reward = [[[0, 7], [1, float("nan")]]]
    >>> decoupled_advantages(only_one_has_a_second_reward, [1, 1], over_batch=False).round(3)
    array([[-1.,  1.]])
    """
    rewards = as_floats("rewards", rewards).astype(float)
    if np.isinf(rewards).any():
        raise not_finite("rewards", np.where(np.isnan(rewards), 0.0, rewards))
    weights = as_finite("weights", weights)
    if rewards.ndim != 3 or 0 in rewards.shape or weights.shape != rewards.shape[2:]:
        raise ValueError(
            f"rewards must have shape (groups, G, m) and weights (m,), "
            f"got {rewards.shape} and {weights.shape}"
        )
    applies = ~np.isnan(rewards)
    if not applies.any():
        raise ValueError(f"every reward is NaN, in rewards of shape {rewards.shape}")
    of_each = _normalised(np.moveaxis(rewards, 2, 0), np.moveaxis(applies, 2, 0), correction, eps)
    total = np.tensordot(weights, of_each, axes=1)
    return whitened_advantages(total, applies.any(axis=2), correction, eps) if over_batch else total


def whitened_advantages(computed, lengths=None, correction=0, eps=1e-8):
    r"""Return advantages normalised over the whole batch, by responses or by tokens.

    Parameters
    ----------
    computed : array_like
        One advantage for each response: rewards, or advantages that were normalised by group
        before.
    lengths : array_like of int, optional
        Tokens of each response, in the shape of `computed`; each response then counts as often
        as it is long. By default each counts once.
    correction : int, default 0
        What is subtracted from the number of tokens, or of responses, under the sum of squares.
    eps : float, default 1e-8
        Added to the standard deviation, in the unit of `computed`.

    Returns
    -------
    ndarray of float64, of the shape of `computed`
        The advantages, without unit; 0 for a response without tokens, and everywhere if the
        others do not differ.

    Raises
    ------
    ValueError
        If `computed` is empty, the shapes differ, a number is NaN or infinite, a length is not a
        whole number >= 0, `eps` is out of range, or `correction` is not in [0, n) for n tokens or
        responses.

    Notes
    -----
    .. math::
        \hat A_i = \frac{A_i - \bar A}{\operatorname{std}(A) + \epsilon}, \qquad
        \bar A = \frac{\sum_i L_i A_i}{\sum_i L_i}, \quad
        \operatorname{std}(A)^2 = \frac{\sum_i L_i (A_i - \bar A)^2}{\sum_i L_i - c}

    with :math:`L_i` for the lengths and c for `correction`. The global normalisation of
    REINFORCE++ (arXiv:2501.03262). Group advantages with a population standard deviation of one
    are multiplied by :math:`1/\sqrt{\text{live share}}` when each response counts once and the
    groups are of one size.

    Examples
    --------
    >>> from grpo import whitened_advantages
    >>> whitened_advantages([1, 0]).round(4)
    array([ 1., -1.])
    >>> whitened_advantages([1, 0], lengths=[1, 3]).round(4)
    array([ 1.7321, -0.5774])
    """
    computed = as_finite("computed", computed).astype(float)
    counts = as_finite("lengths", np.ones(computed.shape) if lengths is None else lengths)
    if counts.shape != computed.shape or not computed.size:
        raise ValueError(
            f"computed must not be empty and lengths must have its shape, "
            f"got {computed.shape} and {counts.shape}"
        )
    wrong = (counts < 0) | (counts != np.floor(counts))
    if wrong.any():
        raise ValueError(f"lengths must be whole numbers >= 0, got {counts[wrong][0]:g}")
    correction, eps = as_count("correction", correction, smallest=0), as_tolerance("eps", eps)
    total = counts.sum()
    if correction >= total:
        raise ValueError(
            f"correction must be < {total:g}, the number of responses or tokens, got {correction}"
        )
    counted = counts > 0
    if np.ptp(computed[counted]) == 0:
        return np.zeros(computed.shape)
    deviations = np.where(counted, computed - (counts * computed).sum() / total, 0.0)
    with np.errstate(over="ignore"):
        std = np.sqrt((counts * deviations**2).sum() / (total - correction))
    if not np.isfinite(std):
        raise ValueError("computed is too large: its squares overflow float64")
    return deviations / positive_divisor(computed.reshape(1, -1), std.reshape(1, 1), eps)[0, 0]


def _normalised(values, present, correction, eps):
    """Return `advantages` of what is present on the last axis; 0 elsewhere and without spread."""
    largest = values.max(axis=-1, keepdims=True, where=present, initial=-np.inf)
    smallest = values.min(axis=-1, keepdims=True, where=present, initial=np.inf)
    spread = largest > smallest
    varied = np.where(spread, values, np.arange(values.shape[-1]))
    present = present | ~spread
    n = present.sum(axis=-1).min()
    if as_count("correction", correction, smallest=0) >= n:
        raise ValueError(f"correction must be < G = {n}, got {correction}")
    mean = varied.mean(axis=-1, keepdims=True, where=present)
    std = group_std(varied, mean, correction, where=present)
    divisor = positive_divisor(varied, np.where(spread, std, 1.0), as_tolerance("eps", eps))
    return np.where(spread & present, (varied - mean) / divisor, 0.0)


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
