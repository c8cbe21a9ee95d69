"""Groups of binary rewards: how often one teaches nothing, and what that costs."""

import numpy as np

from grpo._validate import (
    as_count,
    as_finite,
    as_generator,
    as_group_size,
    as_number,
    as_probability,
    as_rewards,
    as_tolerance,
    group_mean,
    group_std,
)


def sample_groups(p, G, n, *, rng):
    r"""Draw groups of independent Bernoulli rewards.

    Parameters
    ----------
    p : float
        Probability that one rollout is right, in [0, 1].
    G : int
        Rollouts in a group, G >= 1.
    n : int
        Number of groups, n >= 0.
    rng : numpy.random.Generator
        Source of the n * G uniform numbers, used group by group.

    Returns
    -------
    ndarray of float64, shape (n, G)
        Rewards, 1.0 where the uniform number is below `p` and 0.0 elsewhere.

    Raises
    ------
    ValueError
        If an argument is outside the range given.

    Notes
    -----
    .. math:: r_i \sim \mathrm{Bernoulli}(p), \quad i = 1, \dots, G

    The verifiable reward of DeepSeekMath, section 4.1 (arXiv:2402.03300), for one prompt.

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import sample_groups
    >>> sample_groups(0.5, G=4, n=2, rng=np.random.default_rng(0))
    array([[0., 1., 1., 1.],
           [0., 0., 0., 0.]])
    """
    p = as_number("p", as_probability(p))
    G, n = as_count("G", G), as_count("n", n, smallest=0)
    return (as_generator(rng).random((n, G)) < p).astype(float)


def degenerate_probability(p, G):
    r"""Return the probability that all rewards of a group are equal.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    float or ndarray
        The probability.

    Raises
    ------
    ValueError
        If p is outside [0, 1] or G is not a whole number >= 1.

    Notes
    -----
    .. math:: \Pr\left[\sum_i r_i \in \{0, G\}\right] = p^G + (1-p)^G

    DAPO, section 3.2 (arXiv:2503.14476), names the two cases: accuracy 1 and accuracy 0. At
    G = 1 they are all there is, and the probability is 1.

    Examples
    --------
    >>> from grpo import degenerate_probability
    >>> degenerate_probability(0.9, [4, 8, 16]).round(4)
    array([0.6562, 0.4305, 0.1853])
    """
    p, G = as_probability(p), as_group_size(G)
    return p**G + (1 - p) ** G


def informative_probability(p, G):
    r"""Return the probability that a group holds both a right and a wrong rollout.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    float or ndarray
        The probability, with full relative accuracy also where p is close to 0.

    Raises
    ------
    ValueError
        If p is outside [0, 1] or G is not a whole number >= 1.

    Notes
    -----
    .. math:: 1 - p^G - (1-p)^G

    The groups that dynamic sampling keeps: DAPO, equation 11 (arXiv:2503.14476). Computed as
    ``-expm1(G * log1p(-q)) - q**G`` with q = min(p, 1 - p), since the plain difference loses its
    digits for a rare success.

    Examples
    --------
    >>> from grpo import informative_probability
    >>> informative_probability([0.5, 0.9], 4).round(4)
    array([0.875 , 0.3438])
    """
    p, G = as_probability(p), as_group_size(G)
    rarer = np.minimum(p, 1 - p)
    return np.where(G == 1, 0.0, -np.expm1(G * np.log1p(-rarer)) - rarer**G)[()]


def nondegenerate_mask(rewards, tol=1e-6):
    r"""Return which groups have rewards that differ.

    Parameters
    ----------
    rewards : array_like, shape (..., G)
        Rewards; each run of the last axis is one group.
    tol : float, default 1e-6
        Largest population standard deviation, in units of reward, that counts as equal.

    Returns
    -------
    ndarray of bool, shape (...)
        True where the group carries gradient.

    Raises
    ------
    ValueError
        If a group is empty, a reward is NaN or infinite, or `tol` is negative or NaN.

    Notes
    -----
    .. math:: \operatorname{std}(r_1, \dots, r_G) > \text{tol}

    The condition of dynamic sampling, DAPO, equation 11 (arXiv:2503.14476), for rewards of any
    kind.

    Examples
    --------
    >>> from grpo import nondegenerate_mask
    >>> nondegenerate_mask([[1, 0, 1, 0], [1, 1, 1, 1]])
    array([ True, False])
    """
    rewards = as_rewards(rewards)
    return group_std(rewards, group_mean(rewards))[..., 0] > as_tolerance("tol", tol)


def all_equal(rewards):
    r"""Return which groups have rewards that are all equal, exactly.

    Parameters
    ----------
    rewards : array_like, shape (..., G)
        Rewards; each run of the last axis is one group.

    Returns
    -------
    ndarray of bool, shape (...)
        True where the group carries no gradient.

    Raises
    ------
    ValueError
        If a group is empty or a reward is NaN or infinite.

    Notes
    -----
    .. math:: \max_i r_i = \min_i r_i

    The negation of the condition of dynamic sampling, DAPO, equation 11 (arXiv:2503.14476), for
    rewards of any kind. No rounding is involved: the standard deviation of seven rewards of 0.1
    is not 0.

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import all_equal
    >>> all_equal([[0.1] * 7, [0.1] * 6 + [0.2]])
    array([ True, False])
    >>> print(np.std([0.1] * 7))
    1.3877787807814457e-17
    """
    rewards = as_finite("rewards", as_rewards(rewards))
    return rewards.max(axis=-1) == rewards.min(axis=-1)


def silent_shares(rewards, lowest=0.0, highest=1.0):
    r"""Return which share of the groups is silent at the lowest, the highest and another reward.

    Parameters
    ----------
    rewards : array_like, shape (..., G)
        Rewards; each run of the last axis is one group. There is one group at least.
    lowest : float, default 0.0
        The reward of an answer that fails.
    highest : float, default 1.0
        The reward of an answer that is right, > lowest.

    Returns
    -------
    dict of str to float
        `silent_lowest`, the share of groups in which every reward is `lowest`; `silent_highest`,
        in which every one is `highest`; `silent_other`, in which all agree on another value. Their
        sum is the share of groups without gradient.

    Raises
    ------
    ValueError
        If there is no group, a group is empty, a reward is NaN or infinite, or `lowest` and
        `highest` are not numbers with lowest < highest.

    Notes
    -----
    .. math::
        \frac{1}{n} \left| \{ g : r_{g1} = \dots = r_{gG} = r_{\min} \} \right|, \quad
        \frac{1}{n} \left| \{ g : r_{g1} = \dots = r_{gG} = r_{\max} \} \right|

    DAPO, section 3.2 (arXiv:2503.14476), names the two: accuracy 0 and accuracy 1. The first are
    prompts that are too hard, the second too easy. What the numbers are compared with is not read
    off the batch: in a batch where everybody fails the lowest reward is the highest too.

    Examples
    --------
    >>> from grpo import silent_shares
    >>> silent_shares([[0, 0], [0, 0], [1, 1], [1, 0]])
    {'silent_lowest': 0.5, 'silent_highest': 0.25, 'silent_other': 0.0}
    """
    silent = all_equal(rewards)
    if not silent.size:
        raise ValueError(f"there must be a group, got rewards of shape {np.shape(rewards)}")
    lowest, highest = as_number("lowest", lowest), as_number("highest", highest)
    if lowest >= highest:
        raise ValueError(f"lowest must be < highest, got {lowest} and {highest}")
    first = as_rewards(rewards)[..., 0]
    at_lowest = silent & (first == first.dtype.type(lowest))
    at_highest = silent & (first == first.dtype.type(highest))
    return {
        "silent_lowest": float(at_lowest.mean()),
        "silent_highest": float(at_highest.mean()),
        "silent_other": float((silent & ~at_lowest & ~at_highest).mean()),
    }


def silent_probabilities(p, G):
    r"""Return how often a group of binary rewards is silent because all fail, or all succeed.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    dict of str to float or ndarray
        The expectations of the first two `silent_shares`; the third is 0. At G = 1 they sum to 1.

    Raises
    ------
    ValueError
        If p is outside [0, 1] or G is not a whole number >= 1.

    Notes
    -----
    .. math:: (1-p)^G \quad\text{and}\quad p^G

    The two terms of `degenerate_probability`: accuracy 0 and accuracy 1 in DAPO, section 3.2
    (arXiv:2503.14476). For a data set of prompts they are the two ends of
    `success_count_probabilities`.

    Examples
    --------
    >>> from grpo import silent_probabilities
    >>> for name, share in silent_probabilities(0.9, G=4).items():
    ...     print(f"{name} {share:.4f}")
    silent_lowest 0.0001
    silent_highest 0.6561
    """
    p, G = as_probability(p), as_group_size(G)
    return {"silent_lowest": (1 - p) ** G, "silent_highest": p**G}


def informative_groups(budget, p, G):
    r"""Return the expected number of informative groups that a budget of rollouts buys.

    Parameters
    ----------
    budget : int
        Rollouts to spend; only whole groups are counted.
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    float or ndarray
        Expected number of groups.

    Raises
    ------
    ValueError
        If `budget` is not a whole number >= 0, p is outside [0, 1] or G is not a whole
        number >= 1.

    Notes
    -----
    .. math:: \left\lfloor \frac{\text{budget}}{G} \right\rfloor \left(1 - p^G - (1-p)^G\right)

    The expectation of a binomial count, one trial a group; the probability is that of DAPO,
    equation 11 (arXiv:2503.14476).

    Examples
    --------
    >>> from grpo import informative_groups
    >>> informative_groups(1000, 0.9, [4, 8, 16]).round(2)
    array([85.95, 71.19, 50.51])
    """
    whole_groups = as_count("budget", budget, smallest=0) // as_group_size(G)
    return whole_groups * informative_probability(p, G)


def informative_per_rollout(p, G):
    r"""Return the expected number of informative groups per rollout.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    float or ndarray
        Groups per rollout.

    Raises
    ------
    ValueError
        If p is outside [0, 1] or G is not a whole number >= 1.

    Notes
    -----
    .. math:: \frac{1 - p^G - (1-p)^G}{G}

    The probability is that of DAPO, equation 11 (arXiv:2503.14476). G = 2 and G = 3 both give
    p (1 - p), exactly.

    Examples
    --------
    >>> from grpo import informative_per_rollout
    >>> informative_per_rollout(0.9, [2, 3, 4]).round(4)
    array([0.09  , 0.09  , 0.0859])
    """
    return informative_probability(p, G) / as_group_size(G)


def rollouts_per_informative_group(p, G):
    r"""Return how many rollouts one informative group costs on average.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    float or ndarray
        Rollouts per group; infinite where no group can be informative (p = 0, p = 1 or G = 1).

    Raises
    ------
    ValueError
        If p is outside [0, 1] or G is not a whole number >= 1.

    Notes
    -----
    .. math:: \frac{G}{1 - p^G - (1-p)^G}

    The mean of a geometric distribution times G: resampling until one group passes the
    condition of DAPO, equation 11 (arXiv:2503.14476).

    Examples
    --------
    >>> from grpo import rollouts_per_informative_group
    >>> rollouts_per_informative_group(0.9, [4, 8, 16]).round(1)
    array([11.6, 14. , 19.6])
    """
    with np.errstate(divide="ignore", over="ignore"):
        return 1 / np.asarray(informative_per_rollout(p, G))[()]


def full_batch_probability(live, n, p, G):
    r"""Return the probability that sampled groups hold as many informative ones as are wanted.

    Parameters
    ----------
    live : int
        Informative groups wanted, live >= 1.
    n : int
        Groups sampled, n >= 0.
    p : float
        Probability that one rollout is right, in [0, 1].
    G : int
        Rollouts in a group, G >= 1.

    Returns
    -------
    float
        The probability.

    Raises
    ------
    ValueError
        If an argument is outside the range given.

    Notes
    -----
    .. math:: \Pr[X \ge B] = 1 - \sum_{k<B} \binom{n}{k} q^k (1-q)^{n-k}, \qquad q = 1-p^G-(1-p)^G

    The number sampled until the batch is full is negative binomial: it is at most n with this
    probability. Filling a batch is dynamic sampling, DAPO, equation 11 (arXiv:2503.14476).

    Examples
    --------
    >>> from grpo import full_batch_probability
    >>> print(f"{full_batch_probability(16, 64, p=0.9, G=4):.4f}")
    0.9595
    """
    live, n = as_count("live", live), as_count("n", n, smallest=0)
    q = informative_probability(as_number("p", as_probability(p)), as_count("G", G))
    if n < live or q == 0:
        return 0.0
    if q == 1:
        return 1.0
    k = np.arange(1, live)
    log_binomial = np.concatenate([[0.0], np.cumsum(np.log(n - k + 1) - np.log(k))])
    k = np.arange(live)
    log_probability = log_binomial + k * np.log(q) + (n - k) * np.log1p(-q)
    return float(max(0.0, 1 - np.exp(log_probability).sum()))


def groups_to_sample(live, p, G, probability=0.95):
    r"""Return how many groups to sample so that enough of them are informative.

    Parameters
    ----------
    live : int
        Informative groups wanted, live >= 1.
    p : float
        Probability that one rollout is right, in (0, 1).
    G : int
        Rollouts in a group, G >= 2.
    probability : float, default 0.95
        With which probability the number has to suffice, in (0, 1).

    Returns
    -------
    int
        The smallest number of groups.

    Raises
    ------
    ValueError
        If an argument is outside the range given, or no group can be informative.

    Notes
    -----
    .. math:: \min \{ n : \Pr[X_n \ge B] \ge \text{probability} \}

    The quantile of a negative binomial distribution; filling a batch is dynamic sampling, DAPO,
    equation 11 (arXiv:2503.14476).

    Examples
    --------
    >>> from grpo import groups_to_sample
    >>> groups_to_sample(16, p=0.9, G=4)
    63
    """
    probability = as_number("probability", probability)
    if not 0 < probability < 1:
        raise ValueError(f"probability must be in (0, 1), got {probability}")
    high = as_count("live", live)
    if informative_probability(as_number("p", as_probability(p)), as_count("G", G)) == 0:
        raise ValueError(f"no group can be informative with p = {p} and G = {G}")
    while full_batch_probability(live, high, p, G) < probability:
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        enough = full_batch_probability(live, middle, p, G) >= probability
        low, high = (low, middle) if enough else (middle, high)
    return high


def baseline_variance(p, G):
    r"""Return the variance of the mean reward of a group.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    float or ndarray
        The variance, in units of reward squared.

    Raises
    ------
    ValueError
        If p is outside [0, 1] or G is not a whole number >= 1.

    Notes
    -----
    .. math:: \operatorname{Var}(\bar r) = \frac{p (1-p)}{G}

    The variance of a mean of G independent Bernoulli rewards; the group mean is the baseline of
    DeepSeekMath, section 4.1.2 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import baseline_variance
    >>> baseline_variance(0.5, [4, 16])
    array([0.0625  , 0.015625])
    """
    p, G = as_probability(p), as_group_size(G)
    return p * (1 - p) / G


def baseline_standard_error(p, G):
    r"""Return the standard error of the mean reward of a group.

    Parameters
    ----------
    p : array_like
        Probability that one rollout is right, in [0, 1].
    G : array_like of int
        Rollouts in a group, G >= 1; broadcasts against `p`.

    Returns
    -------
    float or ndarray
        The standard error, in units of reward.

    Raises
    ------
    ValueError
        If p is outside [0, 1] or G is not a whole number >= 1.

    Notes
    -----
    .. math:: \sqrt{\operatorname{Var}(\bar r)} = \sqrt{\frac{p (1-p)}{G}}

    The group mean is the baseline of DeepSeekMath, section 4.1.2 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import baseline_standard_error
    >>> baseline_standard_error(0.5, [4, 16])
    array([0.25 , 0.125])
    """
    return np.sqrt(baseline_variance(p, G))
