"""A whole training run on a policy that is a table: one softmax over answers for each prompt."""

import numpy as np

from grpo._validate import as_count, as_finite, as_generator, as_number, as_tolerance
from grpo.advantage import advantages
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
    logits : array_like, shape (..., n, V)
        Logits of the policy for each of n prompts; each entry of the axes before is one batch.
    sampled_from : array_like, shape (..., n, V)
        Logits of the policy that the answers were sampled from.
    reference : array_like, shape (..., n, V)
        Logits of the reference policy.
    answers : array_like of int, shape (..., n, G)
        Sampled answers, one group a prompt, each in [0, V).
    advantages : array_like, shape (..., n, G)
        Their advantages.
    low, high : float, default 0.2
        The ratio of the policies is clipped to [1 - low, 1 + high].
    beta : float, default 0.0
        Weight of the KL penalty, by k3 in the loss.

    Returns
    -------
    loss : float, or ndarray of shape (...)
        The mean over all answers of a batch.
    gradient : ndarray, shape (..., n, V)
        Its gradient in the logits of the policy.
    logged : dict of str to float, or ndarray of shape (...)
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
    V = policy.shape[-1]
    if (
        policy.ndim < 2
        or answers.shape != advantages.shape
        or answers.shape[:-1] != policy.shape[:-1]
        or not answers.size
    ):
        raise ValueError(
            f"answers and advantages must have one shape (..., n, G) and logits (..., n, V), got "
            f"{answers.shape}, {advantages.shape} and {policy.shape}"
        )
    if answers.dtype.kind not in "iu" or ((answers < 0) | (answers >= V)).any():
        raise ValueError(f"answers must be whole numbers in [0, {V}), got {answers.ravel()[:8]}")
    beta = as_tolerance("beta", beta)

    def log_probability(logits):
        table = np.log(softmax(logits))
        if table.shape != policy.shape:
            raise ValueError(f"all logits must have shape {policy.shape}, got {table.shape}")
        return np.take_along_axis(table, answers, axis=-1)

    def mean(of_answers):
        return of_answers.reshape(*answers.shape[:-2], -1).mean(axis=-1)[()]

    own = log_probability(logits)
    ratio = np.exp(own - log_probability(sampled_from))
    u = log_probability(reference) - own
    binds = clip_binds(ratio, advantages, low, high)
    losses = clipped_loss(ratio, advantages, low, high) + beta * k3(u)
    # through the ratio where the clip does not bind, and through the log-ratio of the penalty
    per_score = np.where(binds, 0.0, -ratio * advantages) - beta * np.expm1(u)
    gradient = -per_score.sum(axis=-1, keepdims=True) * policy
    flat = np.arange(0, policy.size, V).reshape(*policy.shape[:-1], 1) + answers
    np.add.at(gradient.reshape(-1), flat.ravel(), per_score.ravel())
    n, G = answers.shape[-2:]
    logged = {"k3": mean(k3(u)), "clip_fraction": mean(binds)}
    return mean(losses), gradient / (n * G), logged


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
        Takes rewards of shape (prompts, G) and returns their advantages; for several runs, of
        shape (runs, prompts, G).
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
    rng : numpy.random.Generator, or a list of them
        Source of prompts and answers. Each generator of a list makes one run; together they
        take far less time than one after the other, and give the same numbers.

    Returns
    -------
    logits : ndarray, shape (n, V), or (runs, n, V)
        The trained policy.
    log : dict of str to ndarray, or a list of them, one a run
        One entry a batch: `rollouts` spent so far; `accuracy`, the exact mean success
        probability over all prompts after the update; `groups/degenerate`, the share of sampled
        groups that were silent, and its parts `silent_lowest` (all wrong), `silent_highest` (all
        right) and `silent_other` (0 for rewards that are 0 or 1); `live_groups`, the number of
        live groups seen so far; `effective_prompts`, the live groups in the batch;
        `group_mean_max`, the largest absolute mean of the advantages of a group; `k3` per answer
        in nats, and `clip_fraction`, both in the last epoch.

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
    >>> runs = np.random.default_rng(0).spawn(100)
    >>> logits, logs = train(np.zeros((4, 3)), budget=2000, rng=runs)
    >>> final = [log["accuracy"][-1] for log in logs]
    >>> print(f"{np.mean(final):.4f} ± {np.std(final, ddof=1) / 10:.4f}")
    0.9961 ± 0.0001
    """
    initial = as_finite("initial", initial).astype(float)
    if initial.ndim != 2 or not initial.size:
        raise ValueError(f"initial must have shape (n, V), got {initial.shape}")
    G, prompts = as_count("G", G), as_count("prompts", prompts)
    budget, epochs = as_count("budget", budget), as_count("epochs", epochs)
    rate = as_number("rate", rate)
    several = not isinstance(rng, np.random.Generator)
    generators = _as_generators(rng if several else [rng])
    runs = len(generators)
    logits, rows = np.repeat(initial[None], runs, axis=0), []
    spent, seen_live, batches = np.zeros((3, runs), int)
    while (spent < budget).any():
        batches += spent < budget
        most = np.where(spent < budget, (budget - spent) // G + 1, 0)
        run, chosen, answers, counts = _sample_batches(
            softmax(logits), G, prompts, dynamic, most, generators
        )
        sampled, lowest, highest = counts
        live = sampled - lowest - highest
        spent += sampled * G
        seen_live += live
        of_batch = ("group_mean_max", "k3", "clip_fraction", "silent_other")
        row = {name: np.zeros(runs) for name in of_batch}
        groups = np.bincount(run, minlength=runs)
        for size in np.unique(groups[groups > 0]):  # one size until runs come to an end
            these, where = np.flatnonzero(groups == size), groups[run] == size
            at = these[:, None], chosen[where].reshape(-1, size)
            of_these = answers[where].reshape(-1, size, G)
            rewards = (of_these == 0).astype(float)
            found = advantage(rewards) if several else advantage(rewards[0])[None]
            before = logits[at]
            for _ in range(epochs):
                _, gradient, logged = grpo_loss(
                    logits[at], before, initial[at[1]], of_these, found, beta=beta
                )
                np.subtract.at(logits, at, rate * size * gradient)
            logged["group_mean_max"] = np.abs(found.mean(axis=-1)).max(axis=-1)
            for name, values in logged.items():
                row[name][these] = values
        with np.errstate(invalid="ignore"):  # 0 / 0 of runs that have ended
            row |= {
                "rollouts": spent.copy(),
                "accuracy": softmax(logits)[..., 0].mean(axis=-1),
                "groups/degenerate": (lowest + highest) / sampled,
                "silent_lowest": lowest / sampled,
                "silent_highest": highest / sampled,
                "live_groups": seen_live.copy(),
                "effective_prompts": live,
            }
        rows.append(row)
    columns = {name: np.array([row[name] for row in rows]) for name in row}
    logs = [
        {name: column[:count, i].copy() for name, column in columns.items()}
        for i, count in enumerate(batches)
    ]
    return (logits, logs) if several else (logits[0], logs[0])


def _as_generators(sequence):
    """Return a sequence of generators as a list; refuse anything else, and none."""
    if not isinstance(sequence, list | tuple) or not sequence:
        raise ValueError(
            f"rng must be a numpy.random.Generator or a list of them, got {sequence!r}"
        )
    return [as_generator(one) for one in sequence]


def _sample_batches(policy, G, prompts, dynamic, most, generators):
    """Sample a batch for each run, of at most so many groups, without silent ones if dynamic.

    Return run, prompt and answers of each group, by run; and three counts a run of all groups
    that were sampled: their number, those all wrong, those all right.
    """
    runs, n = policy.shape[:2]
    steps = policy.cumsum(axis=-1)[..., :-1]
    kept, sampled, lowest, highest = np.zeros((4, runs), int)
    parts = []
    while (missing := np.minimum(prompts - kept, most - sampled)).any():
        drawn = [
            (generators[i].integers(n, size=missing[i]), generators[i].random((missing[i], G)))
            for i in np.flatnonzero(missing)
        ]
        chosen, draws = map(np.concatenate, zip(*drawn, strict=True))
        run = np.repeat(np.arange(runs), missing)
        # by inverting the distribution function
        answers = (draws[:, :, None] >= steps[run, chosen][:, None]).sum(axis=-1)
        right = (answers == 0).sum(axis=-1)
        sampled += missing
        lowest += np.bincount(run[right == 0], minlength=runs)
        highest += np.bincount(run[right == G], minlength=runs)
        live = (right > 0) & (right < G) | (not dynamic)
        parts.append((run[live], chosen[live], answers[live]))
        kept += np.bincount(run[live], minlength=runs)
    run, chosen, answers = map(np.concatenate, zip(*parts, strict=True))
    by_run = np.argsort(run, kind="stable")
    return run[by_run], chosen[by_run], answers[by_run], (sampled, lowest, highest)
