"""A whole training run on a policy that is a table: one softmax over answers for each prompt."""

import numpy as np

from grpo._validate import as_count, as_finite, as_generator, as_number, as_tolerance
from grpo.advantage import advantages
from grpo.groups import all_equal
from grpo.kl import k3
from grpo.loss import clip_binds, clipped_loss


def softmax(logits):
    r"""Return the probabilities that logits stand for.

    Parameters
    ----------
    logits : array_like, shape (..., V)
        Logits, in nats.

    Returns
    -------
    ndarray of float64, shape (..., V)
        The probabilities; each run of the last axis sums to 1.

    Raises
    ------
    ValueError
        If a logit is NaN or infinite, or there is none.

    Notes
    -----
    .. math:: \pi_v = \frac{e^{\theta_v}}{\sum_w e^{\theta_w}}

    The policy of DeepSeekMath, equation 3 (arXiv:2402.03300), over a vocabulary small enough to
    sum over.

    Examples
    --------
    >>> from grpo import softmax
    >>> softmax([0.0, 0.0, 0.0, 0.0])
    array([0.25, 0.25, 0.25, 0.25])
    """
    logits = as_finite("logits", logits).astype(float)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits must have a last axis of answers, got shape {logits.shape}")
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def grpo_loss(logits, sampled_from, reference, answers, advantages, low=0.2, high=0.2, beta=0.0):
    r"""Return the loss of a batch of groups, its gradient and what a trainer logs about it.

    Parameters
    ----------
    logits : array_like, shape (n, V)
        Logits of the policy for each of n prompts.
    sampled_from : array_like, shape (n, V)
        Logits of the policy that the answers were sampled from.
    reference : array_like, shape (n, V)
        Logits of the reference policy.
    answers : array_like of int, shape (n, G)
        Sampled answers, one group a prompt, each in [0, V).
    advantages : array_like, shape (n, G)
        Their advantages.
    low, high : float, default 0.2
        The ratio of the policies is clipped to [1 - low, 1 + high].
    beta : float, default 0.0
        Weight of the KL penalty, by k3 in the loss.

    Returns
    -------
    loss : float
        The mean over all answers.
    gradient : ndarray, shape (n, V)
        Its gradient in the logits of the policy.
    logged : dict of str to float
        `k3`, the mean estimate in nats; `clip_fraction`, the share of answers whose clip binds.

    Raises
    ------
    ValueError
        If shapes do not fit, an answer is not in [0, V), or a number is NaN or out of range.

    Notes
    -----
    .. math::
        \frac{1}{nG} \sum_{xi} \left[ -\min\left(\rho_{xi} \hat A_{xi},
        \operatorname{clip}(\rho_{xi}, 1 - \epsilon_l, 1 + \epsilon_h) \hat A_{xi}\right)
        + \beta\, k_3(u_{xi}) \right]

    DeepSeekMath, equation 3 (arXiv:2402.03300), for answers of one token; separate bounds as in
    DAPO, section 3.1 (arXiv:2503.14476).

    Examples
    --------
    >>> from grpo import grpo_loss
    >>> logits = [[0.0, 0.0]]
    >>> loss, gradient, logged = grpo_loss(logits, logits, logits, [[0, 1]], [[1, -1]])
    >>> gradient
    array([[-0.5,  0.5]])
    """
    answers, advantages = np.asarray(answers), as_finite("advantages", advantages)
    policy = softmax(logits)
    n, V = policy.shape if policy.ndim == 2 else (0, 0)
    if answers.ndim != 2 or answers.shape != advantages.shape or len(answers) != n:
        raise ValueError(
            f"answers and advantages must have one shape (n, G) and logits (n, V), got "
            f"{answers.shape}, {advantages.shape} and {policy.shape}"
        )
    if answers.dtype.kind not in "iu" or ((answers < 0) | (answers >= V)).any():
        raise ValueError(f"answers must be whole numbers in [0, {V}), got {answers.ravel()[:8]}")
    beta = as_tolerance("beta", beta)

    def log_probability(logits):
        table = np.log(softmax(logits))
        if table.shape != policy.shape:
            raise ValueError(f"all logits must have shape {policy.shape}, got {table.shape}")
        return np.take_along_axis(table, answers, axis=1)

    own = log_probability(logits)
    ratio = np.exp(own - log_probability(sampled_from))
    u = log_probability(reference) - own
    binds = clip_binds(ratio, advantages, low, high)
    losses = clipped_loss(ratio, advantages, low, high) + beta * k3(u)
    # through the ratio where the clip does not bind, and through the log-ratio of the penalty
    per_score = np.where(binds, 0.0, -ratio * advantages) - beta * np.expm1(u)
    gradient = -per_score.sum(axis=1, keepdims=True) * policy
    np.add.at(gradient, (np.arange(n)[:, None], answers), per_score)
    logged = {"k3": float(k3(u).mean()), "clip_fraction": float(binds.mean())}
    return float(losses.mean()), gradient / answers.size, logged


def train(
    initial,
    *,
    advantage=advantages,
    G=8,
    prompts=16,
    budget=10_000,
    rate=1.0,
    epochs=2,
    beta=0.0,
    dynamic=False,
    rng,
):
    r"""Train a table of logits by group-relative policy optimisation; return policy and log.

    Parameters
    ----------
    initial : array_like, shape (n, V)
        Logits of the policy at the start, which is the reference too. Answer 0 is the right one.
    advantage : callable, default `advantages`
        Takes rewards of shape (prompts, G) and returns their advantages.
    G : int, default 8
        Rollouts in a group.
    prompts : int, default 16
        Groups in a batch, of prompts drawn with replacement.
    budget : int, default 10_000
        Rollouts to spend; the last batch is the one that reaches it.
    rate : float, default 1.0
        Learning rate, per answer of a group: the step on a prompt is `rate` times the gradient of
        the mean over its own group.
    epochs : int, default 2
        Steps on each batch.
    beta : float, default 0.0
        Weight of the KL penalty.
    dynamic : bool, default False
        Whether silent groups are dropped and prompts drawn until the batch is full (DAPO), or
        the budget is spent.
    rng : numpy.random.Generator
        Source of prompts and answers.

    Returns
    -------
    logits : ndarray, shape (n, V)
        The trained policy.
    log : dict of str to ndarray
        One entry a batch: `rollouts` spent so far; `accuracy`, the exact mean success
        probability over all prompts after the update; `groups/degenerate`, the share of sampled
        groups that were silent; `live_groups`, the number of live groups seen so far;
        `effective_prompts`, the live groups in the batch; `group_mean_max`, the largest absolute
        mean of the advantages of a group; `k3` per answer in nats, and `clip_fraction`, both in
        the last epoch.

    Raises
    ------
    ValueError
        If an argument is outside the range given.

    Notes
    -----
    .. math:: \theta \leftarrow \theta - \text{rate} \cdot \nabla_\theta \mathcal{L}(\theta)

    Iterative GRPO, DeepSeekMath, algorithm 1 (arXiv:2402.03300), without a reward model; dynamic
    sampling by DAPO, equation 11 (arXiv:2503.14476).

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import train
    >>> logits, log = train(np.zeros((4, 3)), budget=2000, rng=np.random.default_rng(0))
    >>> print(f"{log['accuracy'][-1]:.3f} after {len(log['k3'])} batches")
    0.996 after 16 batches
    """
    initial = as_finite("initial", initial).astype(float)
    if initial.ndim != 2 or not initial.size:
        raise ValueError(f"initial must have shape (n, V), got {initial.shape}")
    G, prompts = as_count("G", G), as_count("prompts", prompts)
    budget, epochs = as_count("budget", budget), as_count("epochs", epochs)
    rate = as_number("rate", rate)
    rng = as_generator(rng)
    logits, rows, spent, seen_live = initial.copy(), [], 0, 0
    while spent < budget:
        policy = softmax(logits)
        chosen, answers, sampled = _sample_batch(
            policy, G, prompts, dynamic, (budget - spent) // G + 1, rng
        )
        spent += sampled * G
        rewards = (answers == 0).astype(float)
        found = advantage(rewards)
        live = ~all_equal(rewards)
        silent = sampled - live.sum()
        seen_live += int(live.sum())
        row = {
            "rollouts": spent,
            "groups/degenerate": silent / sampled,
            "live_groups": seen_live,
            "effective_prompts": int(live.sum()),
            "group_mean_max": np.abs(found.mean(axis=1)).max(initial=0),
            "k3": 0.0,
            "clip_fraction": 0.0,
        }
        before = logits[chosen]
        for _ in range(epochs if len(chosen) else 0):
            _, gradient, logged = grpo_loss(
                logits[chosen], before, initial[chosen], answers, found, beta=beta
            )
            np.subtract.at(logits, chosen, rate * len(chosen) * gradient)
            row |= logged
        rows.append(row | {"accuracy": softmax(logits)[:, 0].mean()})
    return logits, {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _sample_batch(policy, G, prompts, dynamic, most, rng):
    """Return prompts and answers of a batch, and how many groups were sampled for it."""
    chosen, answers, sampled = _sample_groups(policy, G, min(prompts, most), rng)
    if not dynamic:
        return chosen, answers, sampled
    live = ~all_equal(answers == 0)
    chosen, answers = chosen[live], answers[live]
    while len(chosen) < prompts and sampled < most:
        missing = min(prompts - len(chosen), most - sampled)
        more, their_answers, count = _sample_groups(policy, G, missing, rng)
        live = ~all_equal(their_answers == 0)
        chosen = np.concatenate([chosen, more[live]])
        answers = np.concatenate([answers, their_answers[live]])
        sampled += count
    return chosen, answers, sampled


def _sample_groups(policy, G, n, rng):
    """Draw n prompts and G answers of each, by inverting the distribution function."""
    chosen = rng.integers(len(policy), size=n)
    steps = policy.cumsum(axis=1)[chosen]
    draws = rng.random((n, G))
    answers = (draws[:, :, None] >= steps[:, None, :-1]).sum(axis=2)
    return chosen, answers, n
