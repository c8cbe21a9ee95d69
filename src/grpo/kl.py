"""Estimators of the KL divergence from single samples, and their exact moments."""

import numpy as np

from grpo._validate import (
    as_count,
    as_distribution,
    as_finite,
    as_generator,
    as_number,
)


def log_ratio(policy, reference):
    r"""Return the log-ratio of reference to policy for each token.

    Parameters
    ----------
    policy : array_like, shape (V,)
        Probabilities of the V tokens under the policy.
    reference : array_like, shape (V,)
        Probabilities of the same tokens under the reference policy.

    Returns
    -------
    ndarray of float64, shape (V,)
        The log-ratios in nats; 0 for a token that the policy never samples.

    Raises
    ------
    ValueError
        If either is not a distribution, the shapes differ, or the reference gives probability 0
        to a token that the policy samples (the divergence is infinite).

    Notes
    -----
    .. math:: u = \log \frac{\pi_{\text{ref}}}{\pi_\theta}

    The logarithm of the ratio in DeepSeekMath, equation 4 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import log_ratio
    >>> log_ratio([0.5, 0.5], [0.25, 0.75]).round(4)
    array([-0.6931,  0.4055])
    """
    policy = as_distribution("policy", policy)
    reference = as_distribution("reference", reference)
    if policy.shape != reference.shape:
        raise ValueError(
            f"policy and reference must have one shape, got {policy.shape} and {reference.shape}"
        )
    sampled = policy > 0
    missing = sampled & (reference == 0)
    if missing.any():
        raise ValueError(
            f"the divergence is infinite: reference[{missing.argmax()}] is 0, "
            f"policy[{missing.argmax()}] is {policy[missing.argmax()]}"
        )
    u = np.zeros_like(policy)
    u[sampled] = np.log(reference[sampled]) - np.log(policy[sampled])
    return u


def kl_divergence(policy, reference):
    r"""Return the exact KL divergence of the policy from the reference policy.

    Parameters
    ----------
    policy : array_like, shape (V,)
        Probabilities of the V tokens under the policy.
    reference : array_like, shape (V,)
        Probabilities of the same tokens under the reference policy.

    Returns
    -------
    float
        The divergence in nats.

    Raises
    ------
    ValueError
        As `log_ratio` does.

    Notes
    -----
    .. math::
        \mathbb{D}_{\text{KL}}(\pi_\theta \,\|\, \pi_{\text{ref}})
        = \sum_v \pi_\theta(v) \log \frac{\pi_\theta(v)}{\pi_{\text{ref}}(v)}

    The penalty of DeepSeekMath, equation 3 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import kl_divergence
    >>> round(kl_divergence([0.5, 0.5], [0.25, 0.75]), 4)
    0.1438
    """
    u = log_ratio(policy, reference)
    return float(as_distribution("policy", policy) @ -u)


def k1(u):
    r"""Return the estimator k1, minus the log-ratio.

    Parameters
    ----------
    u : array_like
        Log-ratios of reference to policy, in nats.

    Returns
    -------
    float or ndarray
        One estimate a sample, in nats.

    Raises
    ------
    ValueError
        If a log-ratio is NaN or infinite.

    Notes
    -----
    .. math:: k_1(u) = -u

    Schulman, Approximating KL Divergence (2020). Unbiased; negative wherever u > 0.

    Examples
    --------
    >>> from grpo import k1
    >>> k1([-0.1, 0.1])
    array([ 0.1, -0.1])
    """
    return -as_finite("u", u)


def k2(u):
    r"""Return the estimator k2, half the squared log-ratio.

    Parameters
    ----------
    u : array_like
        Log-ratios of reference to policy, in nats.

    Returns
    -------
    float or ndarray
        One estimate a sample, in nats.

    Raises
    ------
    ValueError
        If a log-ratio is NaN or infinite, or so large that its square overflows.

    Notes
    -----
    .. math:: k_2(u) = \tfrac{1}{2} u^2

    Schulman, Approximating KL Divergence (2020). Biased; never negative.

    Examples
    --------
    >>> from grpo import k2
    >>> k2([-0.1, 0.1]).round(4)
    array([0.005, 0.005])
    """
    u = as_finite("u", u)
    with np.errstate(over="ignore"):
        return _within_range(0.5 * u**2, u)


def k3(u):
    r"""Return the estimator k3.

    Parameters
    ----------
    u : array_like
        Log-ratios of reference to policy, in nats.

    Returns
    -------
    float or ndarray
        One estimate a sample, in nats.

    Raises
    ------
    ValueError
        If a log-ratio is NaN or infinite, or so large that exp(u) overflows its dtype.

    Notes
    -----
    .. math:: k_3(u) = e^u - u - 1

    DeepSeekMath, equation 4 (arXiv:2402.03300), from Schulman, Approximating KL Divergence
    (2020). Unbiased where the policy samples every token that the reference does; never negative.
    Computed as ``expm1(u) - u``: subtracting 1 from exp(u) loses
    the digits of a small u and can give a negative result.

    Examples
    --------
    >>> from grpo import k3
    >>> k3([-0.1, 0.0, 0.1]).round(6)
    array([0.004837, 0.      , 0.005171])
    """
    u = as_finite("u", u)
    with np.errstate(over="ignore"):
        return _within_range(np.expm1(u) - u, u)


def _within_range(estimates, u):
    """Return the estimates; refuse one that overflows."""
    too_large = np.isinf(estimates)
    if too_large.any():
        raise ValueError(f"the estimate overflows {u.dtype} at u = {u[too_large].flat[0]}")
    return estimates


def exact_summary(estimator, policy, reference):
    r"""Return the exact moments of an estimator by summing over all tokens.

    Parameters
    ----------
    estimator : callable
        `k1`, `k2`, `k3` or another function of an array of log-ratios.
    policy : array_like, shape (V,)
        Probabilities of the V tokens under the policy, which is sampled.
    reference : array_like, shape (V,)
        Probabilities of the same tokens under the reference policy.

    Returns
    -------
    dict of str to float
        `mean`, `bias` (mean minus the divergence) and `sd` in nats; `negative`, the probability
        of an estimate below 0.

    Raises
    ------
    ValueError
        As `log_ratio` does.

    Notes
    -----
    .. math::
        \operatorname{E}[k] = \sum_v \pi_\theta(v)\, k(u_v), \qquad
        \operatorname{sd}[k]^2 = \sum_v \pi_\theta(v) \left(k(u_v) - \operatorname{E}[k]\right)^2

    The enumeration behind the table of Schulman, Approximating KL Divergence (2020), for
    distributions small enough to sum over.

    Examples
    --------
    >>> from grpo import exact_summary, k1
    >>> exact = exact_summary(k1, [0.5, 0.5], [0.25, 0.75])
    >>> {name: round(value, 4) for name, value in exact.items()}
    {'mean': 0.1438, 'bias': 0.0, 'sd': 0.5493, 'negative': 0.5}
    """
    u = log_ratio(policy, reference)
    policy = as_distribution("policy", policy)
    estimates = estimator(u)
    mean = policy @ estimates
    return {
        "mean": float(mean),
        "bias": float(mean - kl_divergence(policy, reference)),
        "sd": float(np.sqrt(policy @ (estimates - mean) ** 2)),
        "negative": float(policy @ (estimates < 0)),
    }


def kl_gradient(policy, reference, direction="reverse"):
    r"""Return the gradient of a KL divergence in the logits of the policy.

    Parameters
    ----------
    policy : array_like, shape (V,)
        Probabilities of the V tokens under the policy, the softmax of its logits.
    reference : array_like, shape (V,)
        Probabilities of the same tokens under the reference policy.
    direction : {"reverse", "forward"}, default "reverse"
        "reverse" is the divergence of the policy from the reference, the one that
        `kl_divergence(policy, reference)` returns; "forward" that of the reference from the
        policy.

    Returns
    -------
    ndarray of float64, shape (V,)
        The gradient in nats; it sums to zero.

    Raises
    ------
    ValueError
        As `log_ratio` does; if `direction` is not listed, or for "forward" the policy gives
        probability 0 to a token that the reference samples.

    Notes
    -----
    .. math::
        \frac{\partial}{\partial \theta_v} \mathbb{D}_{\text{KL}}(\pi_\theta \| \pi_{\text{ref}})
        = \pi_v \left(-u_v - \mathbb{D}_{\text{KL}}\right), \qquad
        \frac{\partial}{\partial \theta_v} \mathbb{D}_{\text{KL}}(\pi_{\text{ref}} \| \pi_\theta)
        = \pi_v - \pi_{\text{ref},v}

    Of the penalty of DeepSeekMath, equation 3 (arXiv:2402.03300), and of its reverse; compare
    Tang and Munos (arXiv:2506.09477).

    Examples
    --------
    >>> from grpo import kl_gradient
    >>> kl_gradient([0.5, 0.5], [0.25, 0.75]).round(4)
    array([ 0.2747, -0.2747])
    >>> kl_gradient([0.5, 0.5], [0.25, 0.75], "forward")
    array([ 0.25, -0.25])
    """
    if direction == "forward":
        log_ratio(reference, policy)
        return as_distribution("policy", policy) - as_distribution("reference", reference)
    if direction != "reverse":
        raise ValueError(f"direction must be 'reverse' or 'forward', got {direction!r}")
    u = log_ratio(policy, reference)
    policy = as_distribution("policy", policy)
    return policy * (-u - policy @ -u)


_SLOPES = {k1: lambda u: -np.ones_like(u), k2: lambda u: u, k3: np.expm1}


def penalty_gradients(estimator, placement, policy, reference):
    r"""Return the gradient that a KL penalty gives for each token that may be sampled.

    Parameters
    ----------
    estimator : {k1, k2, k3}
        The estimator, one of the functions of this package.
    placement : {"loss", "weighted loss", "reward"}
        Where the estimate is put: in the loss, differentiated through the log-ratio; in the loss
        times the ratio of policy to sampling policy, differentiated through both, at a ratio of
        1; or, with a minus sign, in the reward, so that it multiplies the score.
    policy : array_like, shape (V,)
        Probabilities of the V tokens under the policy, which is sampled.
    reference : array_like, shape (V,)
        Probabilities of the same tokens under the reference policy.

    Returns
    -------
    ndarray of float64, shape (V, V)
        Row v is the gradient in the V logits, in nats, if token v was sampled. Their mean under
        the policy is the gradient in expectation.

    Raises
    ------
    ValueError
        As `log_ratio` does; if the estimator or the placement is not listed.

    Notes
    -----
    .. math::
        k'(u_v) (\pi - e_v), \qquad
        k'(u_v) (\pi - e_v) + k(u_v) (e_v - \pi), \qquad
        k(u_v) (e_v - \pi)

    with :math:`e_v` the unit vector of the token. The log-ratio u has the gradient
    :math:`\pi - e_v`, and the score is :math:`e_v - \pi`. Placements as in Tang and Munos
    (arXiv:2506.09477).

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import k1, penalty_gradients
    >>> policy, reference = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    >>> (policy @ penalty_gradients(k1, "loss", policy, reference)).round(4)
    array([0., 0.])
    >>> (policy @ penalty_gradients(k1, "reward", policy, reference)).round(4)
    array([ 0.2747, -0.2747])
    """
    if estimator not in _SLOPES:
        raise ValueError(f"estimator must be k1, k2 or k3 of this package, got {estimator!r}")
    if placement not in ("loss", "weighted loss", "reward"):
        raise ValueError(
            f"placement must be 'loss', 'weighted loss' or 'reward', got {placement!r}"
        )
    u = log_ratio(policy, reference)
    score = np.eye(len(u)) - as_distribution("policy", policy)
    through_estimate, through_score = -_SLOPES[estimator](u), estimator(u)
    if placement == "loss":
        through_score = 0 * u
    elif placement == "reward":
        through_estimate = 0 * u
    return (through_estimate + through_score)[:, None] * score


def sample_log_ratio(policy, reference, n, *, rng):
    r"""Draw tokens from the policy and return their log-ratios.

    Parameters
    ----------
    policy : array_like, shape (V,)
        Probabilities of the V tokens under the policy, which is sampled.
    reference : array_like, shape (V,)
        Probabilities of the same tokens under the reference policy.
    n : int
        Number of tokens, n >= 1.
    rng : numpy.random.Generator
        Source of the tokens, by one call of `rng.choice`.

    Returns
    -------
    ndarray of float64, shape (n,)
        The log-ratios in nats.

    Raises
    ------
    ValueError
        As `log_ratio` does; if n is not a whole number >= 1.

    Notes
    -----
    .. math:: u_i = \log \frac{\pi_{\text{ref}}(v_i)}{\pi_\theta(v_i)}, \quad v_i \sim \pi_\theta

    The samples at which DeepSeekMath, equation 4 (arXiv:2402.03300), takes its estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from grpo import sample_log_ratio
    >>> sample_log_ratio([0.5, 0.5], [0.25, 0.75], 3, rng=np.random.default_rng(0)).round(4)
    array([ 0.4055, -0.6931, -0.6931])
    """
    u = log_ratio(policy, reference)
    policy = as_distribution("policy", policy)
    return u[as_generator(rng).choice(len(u), size=as_count("n", n), p=policy)]


def sample_summary(estimates, true_kl):
    r"""Return the sample moments of estimates of a known divergence, with standard errors.

    Parameters
    ----------
    estimates : array_like, shape (n,)
        Estimates in nats, n >= 2.
    true_kl : float
        The exact divergence in nats.

    Returns
    -------
    dict of str to float
        `mean`, `bias` (mean minus `true_kl`), `sd` (population form) and `standard_error` of the
        mean in nats; `z`, the bias in standard errors (0 where both are 0, signed infinity where
        only the standard error is); `negative`, the share of estimates below 0.

    Raises
    ------
    ValueError
        If there are fewer than two estimates, or one of them or `true_kl` is NaN or infinite.

    Notes
    -----
    .. math:: \text{SE} = \frac{\text{sd}}{\sqrt n}, \qquad z = \frac{\text{bias}}{\text{SE}}

    Each estimator has its own standard error. The columns are those of the table in Schulman,
    Approximating KL Divergence (2020).

    Examples
    --------
    >>> from grpo import sample_summary
    >>> sample = sample_summary([0.1, 0.3, -0.1, 0.5], true_kl=0.1)
    >>> {name: round(value, 4) for name, value in sample.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'mean': 0.2, 'bias': 0.1, 'sd': 0.2236,
     'standard_error': 0.1118, 'z': 0.8944, 'negative': 0.25}
    """
    estimates = as_finite("estimates", estimates)
    if estimates.ndim != 1 or estimates.size < 2:
        raise ValueError(f"estimates must be a list of two or more, got shape {estimates.shape}")
    mean, sd = estimates.mean(), estimates.std()
    standard_error = sd / np.sqrt(estimates.size)
    bias = mean - as_number("true_kl", true_kl)
    with np.errstate(divide="ignore"):
        z = bias / standard_error if bias else 0.0
    return {
        "mean": float(mean),
        "bias": float(bias),
        "sd": float(sd),
        "standard_error": float(standard_error),
        "z": float(z),
        "negative": float(np.mean(estimates < 0)),
    }
