"""Two engines: one samples, another trains, and their probabilities are not the same."""

from math import erfc, exp, log, sqrt

import numpy as np

from grpo._validate import as_count, as_finite, as_number, as_positive, as_probability
from grpo.train import softmax

TREATMENTS = ("capped", "masked")


def sampler_policy(logits, temperature=1.0, top_k=None, top_p=1.0):
    r"""Return the probabilities from which a sampler draws, renormalised over what it keeps.

    Parameters
    ----------
    logits : array_like, shape (..., V)
        Logits of the policy, in nats.
    temperature : float, default 1.0
        Divides the logits, > 0.
    top_k : int, optional
        Keep the k likeliest tokens; all by default. Of equal ones the first are kept.
    top_p : float, default 1.0
        Then keep the likeliest tokens until their probabilities reach top_p, in (0, 1].

    Returns
    -------
    ndarray of float64, shape (..., V)
        Probabilities, 0 for the tokens that are cut off.

    Raises
    ------
    ValueError
        If a logit is NaN or infinite, the temperature is not > 0, `top_k` is not a whole number
        >= 1, or `top_p` is not in (0, 1].

    Notes
    -----
    .. math:: q(v) = \frac{\pi(v)}{\sum_{w \in K} \pi(w)}, \quad v \in K

    A token that is kept has the ratio of policy to sampler :math:`\sum_{w \in K} \pi(w)`, the kept
    mass, although the policy has not moved. Nucleus sampling: Holtzman et al., section 3.1
    (arXiv:1904.09751).

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import sampler_policy
    >>> sampler_policy(np.log([0.45, 0.3, 0.15, 0.1]), top_p=0.75).round(4)
    array([0.6, 0.4, 0. , 0. ])
    """
    policy = softmax(as_finite("logits", logits) / as_positive("temperature", temperature))
    top_p = as_number("top_p", as_probability(as_number("top_p", top_p)))
    if top_p == 0:
        raise ValueError("top_p must be in (0, 1], got 0")
    order = np.argsort(-policy, axis=-1, kind="stable")
    ranked = np.take_along_axis(policy, order, axis=-1)
    if top_k is not None:
        ranked[..., as_count("top_k", top_k) :] = 0
    ranked /= ranked.sum(axis=-1, keepdims=True)
    # a sum that reaches top_p up to rounding has reached it
    ranked[ranked.cumsum(axis=-1) - ranked >= top_p * (1 - 1e-12)] = 0
    kept = np.zeros_like(policy)
    np.put_along_axis(kept, order, ranked, axis=-1)
    return kept / kept.sum(axis=-1, keepdims=True)


def effective_sample_size(log_weights):
    r"""Return how many equally weighted samples the weighted ones are worth.

    Parameters
    ----------
    log_weights : array_like, shape (..., n)
        Logarithms of the importance weights, in nats; a constant in all of them does not matter.

    Returns
    -------
    float or ndarray, shape (...)
        Between 1 and n.

    Raises
    ------
    ValueError
        If a logarithm is NaN or infinite, or there is none.

    Notes
    -----
    .. math:: \frac{\left(\sum_i w_i\right)^2}{\sum_i w_i^2}

    Kong's measure, of the weights of DeepSeekMath, equation 3 (arXiv:2402.03300).

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import effective_sample_size
    >>> float(effective_sample_size(np.log([1, 1, 2])).round(4))
    2.6667
    """
    logs = as_finite("log_weights", log_weights)
    if logs.ndim == 0 or logs.shape[-1] == 0:
        raise ValueError(f"log_weights must have a last axis of samples, got shape {logs.shape}")
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return (weights.sum(axis=-1) ** 2 / (weights**2).sum(axis=-1))[()]


def mean_weight(tokens, sd, cap=None, treatment="capped"):
    r"""Return the mean of the product of ratios of an answer, cut at a cap.

    Parameters
    ----------
    tokens : int
        Tokens of the answer, >= 1.
    sd : float
        Standard deviation of the log-ratio of one token, in nats, > 0. The log-ratios are normal
        and independent, with the mean -sd**2 / 2 that makes each ratio 1 on average.
    cap : float, optional
        Largest weight, > 0; none by default.
    treatment : {"capped", "masked"}, default "capped"
        Whether a larger product counts as the cap or as 0.

    Returns
    -------
    float
        The mean; 1 without a cap.

    Raises
    ------
    ValueError
        If `tokens` is not a whole number >= 1, `sd` or `cap` is not > 0, or the treatment is not
        listed.

    Notes
    -----
    With :math:`m = -n s^2 / 2` and :math:`v = n s^2`,

    .. math::
        \operatorname{E}[\min(w, C)] = \Phi\left(\frac{\ln C - m - v}{\sqrt v}\right)
        + C \left(1 - \Phi\left(\frac{\ln C - m}{\sqrt v}\right)\right)

    and the first term alone where larger weights are masked. Truncated importance sampling:
    IMPALA, section 4.1 (arXiv:1802.01561).

    Examples
    --------
    >>> from grpo import mean_weight
    >>> round(mean_weight(9000, 0.02, cap=2.0), 4)
    0.4687
    """
    tokens, sd = as_count("tokens", tokens), as_positive("sd", sd)
    if treatment not in TREATMENTS:
        raise ValueError(f"treatment must be one of {TREATMENTS}, got {treatment!r}")
    if cap is None:
        return 1.0
    log_cap, v = log(as_positive("cap", cap)), tokens * sd**2
    kept = _normal_below((log_cap - v / 2) / sqrt(v))
    beyond = _normal_below(-(log_cap + v / 2) / sqrt(v))
    return kept + (exp(log_cap) * beyond if treatment == "capped" else 0.0)


def _normal_below(z):
    return erfc(-z / sqrt(2)) / 2
