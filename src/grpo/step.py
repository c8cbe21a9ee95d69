"""One synthetic training step, and the invariants that tell whether it was done right."""

import numpy as np

from grpo._validate import as_count, as_finite, as_rewards, group_mean, group_std
from grpo.advantage import advantages
from grpo.groups import all_equal, nondegenerate_mask, sample_groups, silent_shares


def advantage_invariants(rewards, computed):
    r"""Return what to look at in the advantages that a trainer computed from rewards.

    Parameters
    ----------
    rewards : array_like, shape (n, G)
        Rewards; each row is one group.
    computed : array_like, shape (n, G)
        The advantages under test, without unit.

    Returns
    -------
    dict of str to float
        `adv_mean`, the mean over the whole batch; `adv_std_live`, the population standard
        deviation over all rollouts of the live groups; `group_mean_max`, the largest absolute
        mean of a group; `group_std_min` and `group_std_max`, the smallest and largest population
        standard deviation within a live group. What needs a live group is NaN where there is none.

    Raises
    ------
    ValueError
        If the shapes differ or are not (n, G), or a number is NaN or infinite.

    Notes
    -----
    .. math::
        \max_g \left| \frac{1}{G} \sum_i \hat A_{gi} \right| = 0, \qquad
        \operatorname{std}_i \hat A_{gi} =
        \begin{cases} 1 & \text{population} \\ \sqrt{(G-1)/G} & \text{Bessel} \end{cases}

    Both follow from the advantage of DeepSeekMath, section 4.1.2 (arXiv:2402.03300), up to eps.
    The mean over the batch is zero for several wrong normalisations too; the mean of each group
    is not.

    Examples
    --------
    >>> from grpo import advantage_invariants, advantages
    >>> rewards = [[1, 0, 1, 0], [1, 1, 1, 1]]
    >>> found = advantage_invariants(rewards, advantages(rewards, correction=1))
    >>> {name: round(value, 3) for name, value in found.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'adv_mean': 0.0, 'adv_std_live': 0.866, 'group_mean_max': 0.0,
     'group_std_min': 0.866, 'group_std_max': 0.866}
    """
    rewards = as_rewards(as_finite("rewards", rewards))
    computed = as_finite("computed", computed)
    if rewards.ndim != 2 or rewards.shape != computed.shape or not len(rewards):
        raise ValueError(
            f"rewards and computed must both have one shape (n, G), "
            f"got {rewards.shape} and {computed.shape}"
        )
    live = computed[nondegenerate_mask(rewards)]
    group_std = live.std(axis=1) if len(live) else np.array([np.nan])
    return {
        "adv_mean": float(computed.mean()),
        "adv_std_live": float(live.std()) if len(live) else np.nan,
        "group_mean_max": float(np.abs(computed.mean(axis=1)).max()),
        "group_std_min": float(group_std.min()),
        "group_std_max": float(group_std.max()),
    }


def reward_spread(rewards, correction=0, lowest=0.0, highest=1.0):
    r"""Return the two standard deviations of rewards that logs confuse, and the silent shares.

    Parameters
    ----------
    rewards : array_like, shape (n, G)
        Rewards; each row is one group.
    correction : int, default 0
        As in `advantages`.
    lowest : float, default 0.0
        As in `silent_shares`.
    highest : float, default 1.0
        As in `silent_shares`.

    Returns
    -------
    dict of str to float
        `group_std_mean`, the mean over groups of the standard deviation within; `batch_std`, the
        standard deviation of all rewards; both in units of reward. `groups/degenerate`, the
        share of groups with equal rewards; then its parts, the entries of `silent_shares`.

    Raises
    ------
    ValueError
        If the shape is not (n, G) with n >= 1, a reward is NaN or infinite, `correction` is not a
        whole number in [0, G), or not lowest < highest.

    Notes
    -----
    .. math::
        \frac{1}{n} \sum_g \operatorname{std}_i r_{gi}
        \quad\text{and}\quad \operatorname{std}_{gi} r_{gi}

    Only the first says whether there is a learning signal in the sense of DeepSeekMath, section
    4.1.2 (arXiv:2402.03300): the second is large where each group agrees with itself.

    Examples
    --------
    >>> from grpo import reward_spread
    >>> found = reward_spread([[0, 0, 0, 0], [1, 1, 1, 1]])
    >>> found["group_std_mean"], found["batch_std"], found["groups/degenerate"]
    (0.0, 0.5, 1.0)
    >>> found["silent_lowest"], found["silent_highest"], found["silent_other"]
    (0.5, 0.5, 0.0)
    """
    rewards = as_rewards(as_finite("rewards", rewards))
    correction = as_count("correction", correction, smallest=0)
    if rewards.ndim != 2 or not len(rewards):
        raise ValueError(f"rewards must have shape (n, G), got {rewards.shape}")
    if correction >= rewards.shape[1]:
        raise ValueError(f"correction must be < G = {rewards.shape[1]}, got {correction}")
    return {
        "group_std_mean": float(group_std(rewards, group_mean(rewards), correction).mean()),
        "batch_std": float(rewards.std(ddof=correction)),
        "groups/degenerate": float(all_equal(rewards).mean()),
        **silent_shares(rewards, lowest, highest),
    }


def grpo_step_stats(p, G, n_prompts=512, *, rng):
    r"""Draw one synthetic batch and return what a trainer should log about it.

    Parameters
    ----------
    p : float
        Probability that one rollout is right, in [0, 1], the same for every prompt.
    G : int
        Rollouts in a group, G >= 1.
    n_prompts : int, default 512
        Prompts in the batch, each with one group.
    rng : numpy.random.Generator
        Source of the rewards.

    Returns
    -------
    dict of str to float or int
        `p` and `G` as given; `live_frac`, the share of groups that carry gradient;
        `effective_prompts`, their number; then the entries of `silent_shares` and those of
        `advantage_invariants`.

    Raises
    ------
    ValueError
        If an argument is outside the range given.

    Notes
    -----
    .. math::
        \operatorname{E}[\text{live\_frac}] = 1 - p^G - (1-p)^G, \quad
        \operatorname{E}[\text{silent\_lowest}] = (1-p)^G, \quad
        \operatorname{E}[\text{silent\_highest}] = p^G

    The advantages are those of DeepSeekMath, section 4.1.2 (arXiv:2402.03300), with the
    population standard deviation and eps = 1e-8.

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import grpo_step_stats
    >>> stats = grpo_step_stats(0.9, G=4, rng=np.random.default_rng(0))
    >>> stats["effective_prompts"], round(stats["live_frac"], 3)
    (178, 0.348)
    """
    rewards = sample_groups(p, G, as_count("n_prompts", n_prompts), rng=rng)
    live = nondegenerate_mask(rewards)
    return {
        "p": p,
        "G": G,
        "live_frac": float(live.mean()),
        "effective_prompts": int(live.sum()),
        **silent_shares(rewards),
        **advantage_invariants(rewards, advantages(rewards)),
    }
