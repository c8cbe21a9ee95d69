"""Surrogates of the policy gradient once the policy has moved, and what they do on average."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from grpo._validate import as_finite, as_positive
from grpo.language import answer_gradients, token_log_probabilities
from grpo.loss import clip_binds, clipped_loss

LEVELS = ("token", "product", "geometric")
_LARGEST_LOG = 700.0  # e**700 is still far from the largest float64


def ratios(new, old, mask, level):
    r"""Return the ratio of two policies that belongs to each token.

    Parameters
    ----------
    new, old : array_like, shape (n, T)
        Log-probabilities of the tokens under the two policies, in nats.
    mask : array_like of bool, shape (n, T)
        Which tokens count; each row needs one.
    level : {"token", "product", "geometric"}
        The token's own ratio; the product over its sequence; the geometric mean over it.

    Returns
    -------
    ndarray of float64, shape (n, T)
        The ratios; 1 where the mask is False. Their logarithms end at -700 and 700.

    Raises
    ------
    ValueError
        If the shapes differ, a counted log-probability is NaN or infinite, a row has no token,
        or `level` is not listed.

    Notes
    -----
    .. math::
        \frac{\pi_\theta(o_t)}{\pi_{\text{old}}(o_t)}, \qquad
        \prod_t \frac{\pi_\theta(o_t)}{\pi_{\text{old}}(o_t)}, \qquad
        \left( \prod_t \frac{\pi_\theta(o_t)}{\pi_{\text{old}}(o_t)} \right)^{1/T}

    The first: DeepSeekMath, equation 3 (arXiv:2402.03300). The last: GSPO (arXiv:2507.18071).

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import ratios
    >>> new, old = np.log([[0.5, 0.4]]), np.log([[0.25, 0.2]])
    >>> for level in ("token", "product", "geometric"):
    ...     print(level, ratios(new, old, [[True, True]], level).round(4))
    token [[2. 2.]]
    product [[4. 4.]]
    geometric [[2. 2.]]
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {LEVELS}, got {level!r}")
    mask = np.asarray(mask)
    if mask.ndim != 2 or mask.dtype != bool or {np.shape(new), np.shape(old)} != {mask.shape}:
        raise ValueError(
            f"new, old and mask must have one shape (n, T) and mask must be bool, got "
            f"{np.shape(new)}, {np.shape(old)} and {mask.shape} of {mask.dtype}"
        )
    tokens = mask.sum(axis=1, keepdims=True)
    if not tokens.all():
        raise ValueError(f"row {int(tokens.argmin())} has no token that counts")
    logs = as_finite("new", np.where(mask, new, 0)) - as_finite("old", np.where(mask, old, 0))
    if level != "token":
        logs = np.where(mask, logs.sum(axis=1, keepdims=True), 0)
    if level == "geometric":
        logs = logs / tokens
    return np.exp(np.clip(logs, -_LARGEST_LOG, _LARGEST_LOG))


def _reinforce(new, old, sampler, advantages, mask):
    """Return losses and slopes of the plain policy gradient, as if the policy had not moved."""
    A = _column(advantages, mask)
    return -(A * np.where(mask, new, 0)).sum(axis=1), np.where(mask, -A, 0.0)


def _importance(new, old, sampler, advantages, mask, level):
    """Return losses and slopes weighted by a ratio of the policy to the one that sampled."""
    A, ratio = _column(advantages, mask), ratios(new, old, mask, level)
    return _of_sequences(-ratio * A, -ratio * A, mask, level)


def _clipped(new, old, sampler, advantages, mask, level="token", low=0.2, high=0.2):
    """Return losses and slopes of the minimum of a ratio and the clipped ratio."""
    A, ratio = _column(advantages, mask), ratios(new, old, mask, level)
    slopes = np.where(clip_binds(ratio, A, low, high), 0.0, -ratio * A)
    return _of_sequences(clipped_loss(ratio, A, low, high), slopes, mask, level)


def _detached(new, old, sampler, advantages, mask, cap=1.28):
    """Return losses and slopes with a capped ratio as a constant weight of the log-probability."""
    A = _column(advantages, mask)
    weight = np.minimum(ratios(new, old, mask, "token"), as_positive("cap", cap))
    losses = np.where(mask, -weight * A * np.where(mask, new, 0), 0.0)
    return losses.sum(axis=1), np.where(mask, -weight * A, 0.0)


def _decoupled(new, old, sampler, advantages, mask, cap=2.0, low=0.2, high=0.2):
    """Return losses and slopes of the clipped loss times a capped ratio of old to sampler."""
    A = _column(advantages, mask)
    weight = np.minimum(ratios(old, sampler, mask, "token"), as_positive("cap", cap))
    ratio = ratios(new, old, mask, "token")
    slopes = np.where(clip_binds(ratio, A, low, high), 0.0, -ratio * A)
    return _of_sequences(weight * clipped_loss(ratio, A, low, high), weight * slopes, mask, "token")


def _of_sequences(losses, slopes, mask, level):
    """Return the sum over the tokens, or the loss of the sequence once, with its slopes."""
    mask = np.asarray(mask)
    if level == "token":
        return np.where(mask, losses, 0.0).sum(axis=1), np.where(mask, slopes, 0.0)
    first = mask.argmax(axis=1)
    if level == "geometric":
        slopes = slopes / mask.sum(axis=1, keepdims=True)
    return losses[np.arange(len(losses)), first], np.where(mask, slopes, 0.0)


def _column(advantages, mask):
    advantages = as_finite("advantages", advantages).astype(float)
    if advantages.shape != np.shape(mask)[:1]:
        raise ValueError(
            f"advantages must have one entry a sequence, shape {np.shape(mask)[:1]}, "
            f"got {advantages.shape}"
        )
    return advantages[:, None]


SURROGATES = {
    "no correction": _reinforce,
    "token ratio": partial(_importance, level="token"),
    "product of ratios": partial(_importance, level="product"),
    "geometric mean": partial(_importance, level="geometric"),
    "PPO clip": _clipped,
    "DAPO clip-higher": partial(_clipped, high=0.28),
    "GSPO": partial(_clipped, level="geometric", low=3e-4, high=4e-4),
    "CISPO": _detached,
    "decoupled PPO": _decoupled,
}
"""Functions of (new, old, sampler, advantages, mask): log-probabilities of shape (n, T) under the
policy, the one before its updates and the one that sampled; one advantage a sequence; which tokens
count. Each returns one loss a sequence and its derivative in `new`, of shape (n, T)."""


@dataclass(frozen=True)
class Judgement:
    """What a surrogate does on average, beside the gradient of the expected reward.

    Parameters
    ----------
    gradient, exact : ndarray of float64, shape (V + 1, V + 1)
        Expected step of the surrogate, and the gradient that it stands for.
    variance : float
        Trace of the covariance matrix of the step of one answer.
    stopped : float
        Expected tokens without a slope, although their answer has an advantage, over the expected
        tokens of such answers.
    effective : float
        Effective share of the sample, for the product of the ratios.
    """

    gradient: np.ndarray
    exact: np.ndarray
    variance: float
    stopped: float
    effective: float

    @property
    def cosine(self):
        """Return the cosine between the step and the gradient; 0 if either is 0."""
        norms = np.linalg.norm(self.gradient) * np.linalg.norm(self.exact)
        return float((self.gradient * self.exact).sum() / norms) if norms else 0.0

    @property
    def length(self):
        """Return the length of the step over that of the gradient."""
        return float(np.linalg.norm(self.gradient) / np.linalg.norm(self.exact))


def judge(surrogate, logits, old, sampler, answers, rewards):
    r"""Return what a surrogate does on average over all answers of the sampler.

    Parameters
    ----------
    surrogate : callable
        An entry of `SURROGATES`, or a function like one.
    logits, old, sampler : array_like, shape (V + 1, V + 1)
        The policy, the one before its updates and the one that sampled, for
        `token_log_probabilities`.
    answers : Answers
        All answers of the language, from `all_answers`.
    rewards : array_like, shape (n,)
        Reward of each answer.

    Returns
    -------
    Judgement
        Expectation and variance, exact up to rounding.

    Raises
    ------
    ValueError
        If the answers are not all of the language, the shapes do not fit, or the expected reward
        has no gradient.

    Notes
    -----
    .. math::
        \operatorname{E}_{o \sim \text{sampler}} \left[ -\nabla_\theta \ell(o) \right]
        \quad \text{beside} \quad
        \nabla_\theta \operatorname{E}_{o \sim \pi_\theta}[r(o)]

    The objective of DeepSeekMath, equation 3 (arXiv:2402.03300), without its means over tokens.
    The advantage is the reward minus its mean under the sampler, the baseline of an endless group.

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import SURROGATES, all_answers, judge
    >>> answers, old = all_answers(2, 2), np.zeros((3, 3))
    >>> right = answers.tokens[:, 0] == 0
    >>> moved = old + [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    >>> found = judge(SURROGATES["product of ratios"], moved, old, old, answers, right)
    >>> round(found.cosine, 12), round(found.length, 12)
    (1.0, 1.0)
    """
    rewards = as_finite("rewards", rewards).astype(float)
    if rewards.shape != (len(answers),):
        raise ValueError(f"rewards must have shape ({len(answers)},), got {rewards.shape}")
    new, before, sampled = (token_log_probabilities(one, answers) for one in (logits, old, sampler))
    chances = np.exp(sampled.sum(axis=1))
    if abs(chances.sum() - 1) > 1e-9:
        raise ValueError(
            f"answers must be all of the language, but their chances sum to {chances.sum():.4f}"
        )
    advantages = rewards - chances @ rewards
    own = np.exp(new.sum(axis=1)) * advantages
    exact = answer_gradients(logits, answers, np.where(answers.mask, own[:, None], 0.0)).sum(axis=0)
    if not np.linalg.norm(exact) > 1e-14:
        raise ValueError("the expected reward has no gradient here")
    _, slopes = surrogate(new, before, sampled, advantages, answers.mask)
    steps = -answer_gradients(logits, answers, slopes)
    gradient = np.tensordot(chances, steps, axes=1)
    told = answers.mask & (advantages != 0)[:, None]
    weights = np.exp((new - sampled).sum(axis=1))
    return Judgement(
        gradient,
        exact,
        float(chances @ (steps**2).sum(axis=(1, 2)) - (gradient**2).sum()),
        float((chances @ (told & (slopes == 0)).sum(axis=1)) / (chances @ told.sum(axis=1))),
        float((chances @ weights) ** 2 / (chances @ weights**2)),
    )
