"""A data set of prompts: how their success probability varies, and how many steps it makes."""

import numpy as np

from grpo._validate import as_count, as_finite, as_positive


def success_count_probabilities(a, b, G):
    r"""Return the distribution of the number right in a group of a random prompt.

    Parameters
    ----------
    a, b : float
        Parameters of the Beta distribution of the success probability over prompts, > 0.
    G : int
        Rollouts in a group, G >= 1.

    Returns
    -------
    ndarray of float64, shape (G + 1,)
        The probabilities of 0, 1, ..., G right rollouts.

    Raises
    ------
    ValueError
        If a or b is not a number > 0, or G is not a whole number >= 1.

    Notes
    -----
    .. math::
        \Pr[k] = \binom{G}{k} \frac{B(a + k, b + G - k)}{B(a, b)}
        = \binom{G}{k} \frac{\prod_{i<k} (a+i) \prod_{j<G-k} (b+j)}{\prod_{l<G} (a+b+l)}

    The Beta-binomial distribution; its two ends are the silent groups of DAPO, section 3.2
    (arXiv:2503.14476).

    Examples
    --------
    >>> from grpo import success_count_probabilities
    >>> success_count_probabilities(1, 1, G=4)
    array([0.2, 0.2, 0.2, 0.2, 0.2])
    """
    return np.exp(_log_probabilities(as_positive("a", a), as_positive("b", b), as_count("G", G)))


def _log_probabilities(a, b, G):
    """Return the logarithm of the Beta-binomial probabilities of 0 to G."""
    i, k = np.arange(G), np.arange(1, G + 1)
    log_binomial = np.concatenate([[0.0], np.cumsum(np.log(G - k + 1) - np.log(k))])
    right = np.concatenate([[0.0], np.cumsum(np.log(a + i))])
    wrong = np.concatenate([[0.0], np.cumsum(np.log(b + i))])
    return log_binomial + right + wrong[::-1] - np.log(a + b + i).sum()


def beta_degenerate_probability(a, b, G):
    r"""Return the probability that a group of a random prompt is silent.

    Parameters
    ----------
    a, b : float
        Parameters of the Beta distribution of the success probability over prompts, > 0.
    G : int
        Rollouts in a group, G >= 1.

    Returns
    -------
    float
        The probability.

    Raises
    ------
    ValueError
        If a or b is not a number > 0, or G is not a whole number >= 1.

    Notes
    -----
    .. math::
        \operatorname{E}\left[p^G + (1-p)^G\right]
        = \frac{B(a + G, b) + B(a, b + G)}{B(a, b)}

    The rate of the two cases of DAPO, section 3.2 (arXiv:2503.14476), averaged over prompts.

    Examples
    --------
    >>> from grpo import beta_degenerate_probability
    >>> round(beta_degenerate_probability(1, 1, G=4), 4)
    0.4
    """
    if as_count("G", G) == 1:
        return 1.0
    probabilities = success_count_probabilities(a, b, G)
    return float(probabilities[0] + probabilities[-1])


def intraclass_correlation(a, b):
    r"""Return the correlation of two rollouts of the same random prompt.

    Parameters
    ----------
    a, b : float
        Parameters of the Beta distribution of the success probability over prompts, > 0.

    Returns
    -------
    float
        The correlation, in (0, 1).

    Raises
    ------
    ValueError
        If a or b is not a number > 0.

    Notes
    -----
    .. math:: \rho = \frac{\operatorname{Var}(p)}{\bar p (1 - \bar p)} = \frac{1}{a + b + 1}

    Given the prompt, the rollouts of DeepSeekMath, section 4.1 (arXiv:2402.03300), are
    independent; the correlation comes from the prompt that they share.

    Examples
    --------
    >>> from grpo import intraclass_correlation
    >>> round(intraclass_correlation(1, 1), 4)
    0.3333
    """
    return 1 / (as_positive("a", a) + as_positive("b", b) + 1)


def fit_beta(counts, G):
    r"""Return the Beta distribution of prompts that fits counts of right rollouts best.

    Parameters
    ----------
    counts : array_like of int, shape (n,)
        Right rollouts of each of n prompts, in [0, G].
    G : int
        Rollouts of each prompt, G >= 2.

    Returns
    -------
    tuple of float
        The parameters a and b of largest likelihood.

    Raises
    ------
    ValueError
        If a count is not a whole number in [0, G], there are fewer than two, all rollouts agree,
        the counts vary no more than by chance, or every one is 0 or G (the likelihood then grows
        without bound as a + b does, or as it vanishes).

    Notes
    -----
    .. math:: \max_{a, b} \sum_i \log \Pr[k_i \mid a, b]

    By search on ever finer grids of the mean and the intra-class correlation. The group of
    rollouts a prompt is that of DeepSeekMath, section 4.1 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import fit_beta
    >>> a, b = fit_beta([0, 0, 1, 2, 4, 4], G=4)
    >>> print(f"{a:.2f} {b:.2f}")
    0.29 0.32
    """
    G = as_count("G", G, smallest=2)
    numbers = as_finite("counts", counts)
    wrong = (numbers != np.floor(numbers)) | (numbers < 0) | (numbers > G)
    if wrong.any():
        raise ValueError(f"counts must be whole numbers in [0, {G}], got {numbers[wrong][0]:g}")
    if numbers.ndim != 1 or numbers.size < 2:
        raise ValueError(f"counts must be a list of two or more, got shape {numbers.shape}")
    seen = np.bincount(numbers.astype(int), minlength=G + 1)
    if numbers.sum() in (0, G * numbers.size):
        raise ValueError(f"all rollouts agree: every count is {numbers[0]:g}")

    def likelihood(mean, rho):
        size = 1 / rho - 1
        return seen @ _log_probabilities(mean * size, (1 - mean) * size, G)

    low, high = np.array([1e-6, 1e-6]), np.array([1 - 1e-6, 1 - 1e-6])
    while (high - low).max() > 1e-9:
        grid = np.linspace(low, high, 9)
        values = np.array([[likelihood(mean, rho) for rho in grid[:, 1]] for mean in grid[:, 0]])
        best = np.array(np.unravel_index(values.argmax(), values.shape))
        low = np.array([grid[max(best[i] - 1, 0), i] for i in (0, 1)])
        high = np.array([grid[min(best[i] + 1, 8), i] for i in (0, 1)])
    mean, rho = (low + high) / 2
    if rho < 1e-5:
        raise ValueError("the counts vary no more than by chance: one p explains them all")
    if rho > 1 - 1e-5:
        raise ValueError("the likelihood grows without bound: every count is 0 or G")
    size = 1 / rho - 1
    return float(mean * size), float((1 - mean) * size)


def pass_at_k(n, right, k):
    r"""Return the unbiased estimate of the probability that one of k answers is right.

    Parameters
    ----------
    n : int
        Answers that were sampled, n >= 1.
    right : array_like of int
        How many of them are right, in [0, n].
    k : int
        Answers that may be tried, 1 <= k <= n.

    Returns
    -------
    float or ndarray, of the shape of `right`
        The estimate.

    Raises
    ------
    ValueError
        If an argument is outside the range given.

    Notes
    -----
    .. math:: 1 - \binom{n - c}{k} \Big/ \binom{n}{k}

    Chen et al., equation 1 (arXiv:2107.03374): the share of all sets of k answers that hold a
    right one.

    Examples
    --------
    >>> from grpo import pass_at_k
    >>> pass_at_k(4, [0, 1, 2, 4], k=2).round(4)
    array([0.    , 0.5   , 0.8333, 1.    ])
    """
    n, k = as_count("n", n), as_count("k", k)
    if k > n:
        raise ValueError(f"k must be <= n = {n}, got {k}")
    right = as_finite("right", right)
    wrong = (right != np.floor(right)) | (right < 0) | (right > n)
    if wrong.any():
        raise ValueError(f"right must be whole numbers in [0, {n}], got {right[wrong].flat[0]:g}")
    # C(n-c, k) / C(n, k) is the product of (n - c - i) / (n - i) over i < k
    i = np.arange(k)
    return 1 - np.prod(np.maximum(n - right[..., None] - i, 0) / (n - i), axis=-1)[()]


def batch_arithmetic(
    prompts, G, per_device, devices=1, accumulation=1, epochs=1, unit="completions"
):
    r"""Return how many prompts and completions one step takes, and how many steps there are.

    Parameters
    ----------
    prompts : int
        Prompts in the data set, >= 1.
    G : int
        Completions of each prompt, G >= 1.
    per_device : int
        Batch size of one device in one pass, >= 1, in `unit`.
    devices, accumulation, epochs : int, default 1
        Devices that share a batch, passes before each step, and passes over the data set.
    unit : {"completions", "prompts"}, default "completions"
        What `per_device` counts. A prompt that is sampled G times is G completions.

    Returns
    -------
    dict of str to int
        `completions_per_step` and `prompts_per_step`; `steps` in all epochs, where each uses its
        completions once; `prompts_left_over`, which an epoch does not use since they do not fill
        a batch.

    Raises
    ------
    ValueError
        If a number is not whole or < 1, `unit` is another one, or G does not divide the
        completions of a step, so that a group would be cut.

    Notes
    -----
    .. math::
        \text{prompts per step} = \frac{\text{per device} \cdot \text{devices} \cdot
        \text{accumulation}}{G}, \qquad
        \text{steps} = \text{epochs} \cdot
        \left\lfloor \frac{\text{prompts}}{\text{prompts per step}} \right\rfloor

    where `per_device` counts completions; where it counts prompts there is no division by G. A
    step is one of the loop over batches in DeepSeekMath, algorithm 1 (arXiv:2402.03300).

    Examples
    --------
    >>> from grpo import batch_arithmetic
    >>> batch_arithmetic(8000, G=6, per_device=4, devices=3, accumulation=2, epochs=2)
    ... # doctest: +NORMALIZE_WHITESPACE
    {'completions_per_step': 24, 'prompts_per_step': 4, 'steps': 4000, 'prompts_left_over': 0}
    """
    prompts, G, epochs = as_count("prompts", prompts), as_count("G", G), as_count("epochs", epochs)
    size = as_count("per_device", per_device)
    size *= as_count("devices", devices) * as_count("accumulation", accumulation)
    if unit not in ("completions", "prompts"):
        raise ValueError(f"unit must be 'completions' or 'prompts', got {unit!r}")
    completions = size if unit == "completions" else size * G
    if completions % G:
        raise ValueError(f"G = {G} does not divide the {completions} completions of a step")
    at_once = completions // G
    return {
        "completions_per_step": completions,
        "prompts_per_step": at_once,
        "steps": epochs * (prompts // at_once),
        "prompts_left_over": prompts % at_once,
    }
