"""A tiny language whose every answer can be listed, and policies that speak it."""

from dataclasses import dataclass

import numpy as np

from grpo._validate import as_count, as_finite, as_generator

_MOST_ANSWERS = 2_000_000


@dataclass(frozen=True)
class Answers:
    """Answers in a language of V tokens and an end token, which has the number V.

    Parameters
    ----------
    V : int
        Tokens of the language beside the end token.
    tokens : ndarray of int, shape (n, steps)
        One answer a row; V from its end token on.
    """

    V: int
    tokens: np.ndarray

    @property
    def mask(self):
        """Return which tokens the policy chose: all up to the end token, with it."""
        ended = np.cumsum(self.tokens == self.V, axis=1)
        return (ended == 0) | ((ended == 1) & (self.tokens == self.V))

    @property
    def before(self):
        """Return the token before each one, V at the beginning."""
        return np.pad(self.tokens[:, :-1], ((0, 0), (1, 0)), constant_values=self.V)

    def __len__(self):
        """Return the number of answers."""
        return len(self.tokens)


def all_answers(V, steps):
    r"""Return every answer of at most `steps` tokens.

    Parameters
    ----------
    V : int
        Tokens of the language beside the end token, >= 1.
    steps : int
        Most tokens of an answer, >= 1; one that has not ended by then is cut off.

    Returns
    -------
    Answers
        All of them, each once: those that end, by length, then those that are cut off.

    Raises
    ------
    ValueError
        If V or `steps` is not a whole number >= 1, or there are more than two million answers.

    Notes
    -----
    .. math:: n = 1 + V + \dots + V^{\text{steps}}

    The outputs o of DeepSeekMath, section 4.1 (arXiv:2402.03300), for a vocabulary small enough.

    Examples
    --------
    >>> from grpo import all_answers
    >>> all_answers(2, 2).tokens
    array([[2, 2],
           [0, 2],
           [1, 2],
           [0, 0],
           [0, 1],
           [1, 0],
           [1, 1]])
    """
    V, steps = as_count("V", V), as_count("steps", steps)
    count = sum(V**length for length in range(steps + 1))
    if count > _MOST_ANSWERS:
        raise ValueError(f"V = {V} and steps = {steps} give {count} answers, too many to list")
    tokens = np.full((count, steps), V)
    first = 0
    for length in range(steps + 1):
        number = np.arange(V**length)
        for step in range(length):
            tokens[first : first + len(number), step] = number // V ** (length - 1 - step) % V
        first += len(number)
    return Answers(V, tokens)


def token_log_probabilities(logits, answers):
    r"""Return the log-probability of each token of each answer.

    Parameters
    ----------
    logits : array_like, shape (V + 1, V + 1)
        Row: the token before, V at the beginning. Column: the token that comes, V for the end.
    answers : Answers
        Answers of the same language.

    Returns
    -------
    ndarray of float64, shape (n, steps)
        Log-probabilities in nats, 0 where the mask is False; their sum over a row is that of the
        answer.

    Raises
    ------
    ValueError
        If the logits are not finite, not square, or belong to another language than the answers.

    Notes
    -----
    .. math:: \log \pi_\theta(o_t \mid o_{<t}) = \theta_{o_{t-1}, o_t}
        - \log \sum_v e^{\theta_{o_{t-1}, v}}

    The policy of DeepSeekMath, equation 3 (arXiv:2402.03300), with a memory of one token.

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import all_answers, token_log_probabilities
    >>> uniform = token_log_probabilities(np.zeros((3, 3)), all_answers(2, 1))
    >>> np.exp(uniform.sum(axis=1)).round(4)
    array([0.3333, 0.3333, 0.3333])
    """
    logits = _as_logits(logits, answers)
    return np.where(answers.mask, _log_policy(logits)[answers.before, answers.tokens], 0.0)


def answer_gradients(logits, answers, slopes):
    r"""Return the gradient in the logits of a quantity that is known by its slope at each token.

    Parameters
    ----------
    logits : array_like, shape (V + 1, V + 1)
        As `token_log_probabilities` takes them.
    answers : Answers
        Answers of the same language.
    slopes : array_like, shape (n, steps)
        Derivative of the quantity in the log-probability of each token; all ones for the score.

    Returns
    -------
    ndarray of float64, shape (n, V + 1, V + 1)
        One gradient an answer, in the unit of the quantity.

    Raises
    ------
    ValueError
        If the logits do not fit the answers, or the slopes do not or are not finite.

    Notes
    -----
    .. math:: \frac{\partial f}{\partial \theta_{c v}} = \sum_{t : o_{t-1} = c}
        \frac{\partial f}{\partial \log \pi(o_t)} \left( [o_t = v] - \pi(v \mid c) \right)

    The score of the policy of DeepSeekMath, equation 3 (arXiv:2402.03300), for a softmax.

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import all_answers, answer_gradients
    >>> answer_gradients(np.zeros((2, 2)), all_answers(1, 1), [[1], [1]])[:, 1]
    array([[-0.5,  0.5],
           [ 0.5, -0.5]])
    """
    logits, slopes = _as_logits(logits, answers), as_finite("slopes", slopes)
    if slopes.shape != answers.mask.shape:
        raise ValueError(f"slopes must have shape {answers.mask.shape}, got {slopes.shape}")
    policy, before = np.exp(_log_policy(logits)), answers.before
    gradients = np.zeros((len(answers), *logits.shape))
    rows = np.arange(len(answers))
    for step in range(answers.tokens.shape[1]):
        slope = np.where(answers.mask[:, step], slopes[:, step], 0.0)
        gradients[rows, before[:, step], answers.tokens[:, step]] += slope
        gradients[rows, before[:, step]] -= slope[:, None] * policy[before[:, step]]
    return gradients


def sample_answers(logits, steps, n, *, rng):
    r"""Draw answers from a policy.

    Parameters
    ----------
    logits : array_like, shape (V + 1, V + 1)
        As `token_log_probabilities` takes them.
    steps : int
        Most tokens of an answer.
    n : int
        How many answers.
    rng : numpy.random.Generator
        Source of randomness; one number is drawn for each token that could be.

    Returns
    -------
    Answers
        The n answers.

    Raises
    ------
    ValueError
        If the logits are not finite or not square, a count is not a whole number >= 1, or `rng`
        is not a Generator.

    Notes
    -----
    .. math:: o_t \sim \pi_\theta(\cdot \mid o_{<t})

    The rollouts of DeepSeekMath, section 4.1 (arXiv:2402.03300).

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import sample_answers
    >>> always_end = np.array([[0.0, 0.0], [0.0, 50.0]])
    >>> sample_answers(always_end, 2, 1, rng=np.random.default_rng(0)).tokens
    array([[1, 1]])
    """
    logits = _as_logits(logits)
    steps, n, rng = as_count("steps", steps), as_count("n", n), as_generator(rng)
    V = len(logits) - 1
    cumulative = np.exp(_log_policy(logits)).cumsum(axis=1)[:, :-1]
    tokens, last, ended = np.full((n, steps), V), np.full(n, V), np.zeros(n, dtype=bool)
    for step in range(steps):
        drawn = (rng.random(n)[:, None] > cumulative[last]).sum(axis=1)
        last = np.where(ended, V, drawn)
        tokens[:, step] = last
        ended |= last == V
    return Answers(V, tokens)


def _as_logits(logits, answers=None):
    logits = as_finite("logits", logits).astype(float)
    size = len(logits) if answers is None and logits.ndim else getattr(answers, "V", 0) + 1
    if logits.shape != (size, size) or size < 2:
        raise ValueError(f"logits must have shape (V + 1, V + 1), got {logits.shape}")
    return logits


def _log_policy(logits):
    """Return the log-probabilities of the next token, a row for each token before."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
