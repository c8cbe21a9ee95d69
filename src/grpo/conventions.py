"""The advantages of named training stacks, and which of them a trainer's numbers follow."""

from dataclasses import dataclass

import numpy as np

from grpo._validate import as_count, as_rewards, as_tolerance, not_finite

BASELINES = ("group mean", "leave-one-out mean", "batch mean", None)
SCALES = (
    "group std",
    "leave-one-out std",
    "batch std",
    "centred batch std",
    "group mean",
    None,
)
SPREADS = ("two passes", "one pass", "after centring")
SINGLE = ("refuse", "zero", "raw", "nan")
MISSING = ("refuse", "nan", "mask")


@dataclass(frozen=True)
class Convention:
    r"""How a stack turns the rewards of a group into advantages.

    Parameters
    ----------
    baseline : {"group mean", "leave-one-out mean", "batch mean", None}
        What is subtracted from each reward.
    scale : {"group std", "leave-one-out std", "batch std", "centred batch std", "group mean", None}
        What the difference is divided by; for "leave-one-out std" the standard deviation of the
        other rollouts of the group, for "centred batch std" that of all differences of the batch.
    correction : int, default 0
        What is subtracted from the number of rewards under the sum of squares.
    eps : float, default 0.0
        Added to the standard deviation, in units of reward; with `eps_inside` to the variance,
        in those units squared.
    spread : {"two passes", "one pass", "after centring"}, default "two passes"
        How the sum of squares is formed: around the mean; as the mean of squares minus the
        square of the mean; or in two passes once the mean has been subtracted. They differ in
        rounding only.
    single : {"refuse", "zero", "raw", "nan"}, default "refuse"
        What becomes of a rollout that is alone where another one is needed: an error, advantage
        0, the scaled reward itself (mean 0 and standard deviation 1), or NaN.
    divide_zero_std : bool, default True
        Whether a standard deviation of exactly 0 still divides, with eps; if not, the difference
        is left as it is.
    missing : {"refuse", "nan", "mask"}, default "refuse"
        What becomes of a group with a NaN among its rewards: an error, NaN for all of it, or
        advantage 0 for that rollout while the others form the group.
    dtype : str, optional
        In what the stack computes; by default in the dtype of the rewards.
    eps_inside : bool, default False
        Whether eps stands inside the square root.

    Raises
    ------
    ValueError
        If a field has a value that is not listed.

    Notes
    -----
    .. math:: \hat A_i = \frac{r_i - b_i}{s_i + \epsilon}

    The advantage of DeepSeekMath, section 4.1.2 (arXiv:2402.03300), with the choices that it
    leaves open. Without a scale the division is left out, as Dr. GRPO proposes
    (arXiv:2503.20783).

    Examples
    --------
    >>> from grpo import Convention
    >>> dr_grpo = Convention(baseline="group mean", scale=None)
    >>> dr_grpo([[1, 0, 1, 0], [1, 1, 1, 0]])
    array([[ 0.5 , -0.5 ,  0.5 , -0.5 ],
           [ 0.25,  0.25,  0.25, -0.75]])
    """

    baseline: str | None
    scale: str | None
    correction: int = 0
    eps: float = 0.0
    spread: str = "two passes"
    single: str = "refuse"
    divide_zero_std: bool = True
    missing: str = "refuse"
    dtype: str | None = None
    eps_inside: bool = False

    def __post_init__(self):
        """Refuse a value that is not listed."""
        for name, allowed in (
            ("baseline", BASELINES),
            ("scale", SCALES),
            ("spread", SPREADS),
            ("single", SINGLE),
            ("missing", MISSING),
            ("dtype", ("float32", "float64", None)),
            ("eps_inside", (False, True)),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}")
        as_count("correction", self.correction, smallest=0)
        as_tolerance("eps", self.eps)

    def __call__(self, rewards):
        r"""Return the advantages of rewards.

        Parameters
        ----------
        rewards : array_like, shape (groups, G) or (G,)
            Rewards; each row is one group. NaN stands for a missing one.

        Returns
        -------
        ndarray, of the shape of `rewards`
            The advantages, without unit where there is a scale; NaN where the fields say so.

        Raises
        ------
        ValueError
            If a group is empty, a reward is infinite, a reward is NaN or a rollout is alone and
            the convention refuses it, or a group has no spread and eps is 0.
        """
        rewards = as_rewards(rewards).astype(self.dtype, copy=False)
        if np.isinf(rewards).any():
            raise not_finite("rewards", rewards)
        present = ~np.isnan(rewards)
        if self.missing == "refuse" and not present.all():
            raise not_finite("rewards", rewards)
        known = np.where(present, rewards, rewards.dtype.type(0))
        centred = known - self._baseline(known, present)
        alone = self._alone(present)
        advantages = centred
        if self.scale:
            std = self._divisor(known, present, centred)
            advantages = self._scaled(centred, np.where(alone, 1, std).astype(centred.dtype))
        if alone.any():
            advantages = np.where(alone, self._of_a_single(known), advantages)
        if self.missing == "nan":
            return np.where(present.all(axis=-1, keepdims=True), advantages, np.nan)
        return np.where(present, advantages, rewards.dtype.type(0))

    def _baseline(self, known, present):
        if self.baseline is None:
            return known.dtype.type(0)
        if self.baseline == "batch mean":
            return _mean(known.ravel(), present.ravel())
        if self.baseline == "group mean":
            return _mean(known, present)
        others = np.maximum(_count(present) - 1, 1).astype(known.dtype)
        return (known.sum(axis=-1, keepdims=True) - known) / others

    def _scaled(self, centred, std):
        eps = centred.dtype.type(self.eps)
        if self.eps_inside:
            std, eps = np.sqrt(std**2 + eps), centred.dtype.type(0)
        if self.divide_zero_std:
            if (std + eps == 0).any():
                zero = "have no spread" if self.scale != "group mean" else "have a mean of -eps"
                raise ValueError(f"eps = {self.eps}, and the rewards of a group {zero}")
            return centred / (std + eps)
        return np.where(std > 0, centred / np.where(std > 0, std + eps, 1), centred)

    def _divisor(self, known, present, centred):
        """Return what the scale divides by, without eps, 0 where it is not defined."""
        if self.scale == "group mean":
            return _mean(known, present)
        if self.scale == "leave-one-out std":
            return self._spread(*_others(known, present))[..., 0]
        if self.scale == "group std":
            return self._spread(known, present)
        values = known if self.scale == "batch std" else centred
        return self._spread(values.ravel(), present.ravel())

    def _spread(self, values, present):
        if self.spread == "after centring":
            values = np.where(present, values - _mean(values, present), 0)
        return _std(values, present, self.correction, one_pass=self.spread == "one pass")

    def _alone(self, present):
        """Return which rollouts have too few others for their baseline and scale."""
        needed = 2 if self.baseline == "leave-one-out mean" or self.single == "raw" else 1
        if self.scale == "group std":
            needed = max(needed, self.correction + 1)
        return np.broadcast_to(_count(present) < needed, present.shape)

    def _of_a_single(self, known):
        if self.single == "refuse":
            raise ValueError(f"a group of one rollout has no {self.baseline} or no {self.scale}")
        if self.single == "raw":
            if self.scale in ("group mean", None):
                return known
            return known / (1 + known.dtype.type(self.eps))
        return known.dtype.type(0 if self.single == "zero" else np.nan)


def _count(present):
    return present.sum(axis=-1, keepdims=True)


def _mean(values, present):
    """Return the mean of what is present over the last axis, in the dtype of the values."""
    count = np.maximum(_count(present), 1).astype(values.dtype)
    return values.sum(axis=-1, keepdims=True) / count


def _std(values, present, correction, one_pass):
    """Return the standard deviation of what is present, 0 where it is not defined."""
    count, mean = _count(present), _mean(values, present)
    free = np.maximum(count - correction, 1).astype(values.dtype)
    if one_pass:
        n = np.maximum(count, 1).astype(values.dtype)
        variance = np.maximum(_mean(values**2, present) - mean**2, 0) * (n / free)
    else:
        deviations = np.where(present, values - mean, 0)
        variance = (deviations**2).sum(axis=-1, keepdims=True) / free
    return np.where(count > correction, np.sqrt(variance), values.dtype.type(0))


def _others(known, present):
    """Return for each rollout the rewards of its group without its own, on one more axis."""
    G = known.shape[-1]
    other = ~np.eye(G, dtype=bool)
    kept = present[..., None, :] & other
    return np.where(kept, known[..., None, :], known.dtype.type(0)), kept


def _torch(baseline, scale=None, eps=0.0, **fields):
    """Return a convention as PyTorch computes it: float32, Bessel's correction, NaN spreads."""
    fields = {"missing": "nan", "dtype": "float32", "correction": int(scale is not None)} | fields
    return Convention(baseline, scale, eps=eps, **fields)


def _numpy(baseline, scale, **fields):
    """Return a convention as rLLM computes it with NumPy: float64, no correction, 1e-6."""
    return Convention(baseline, scale, eps=1e-6, missing="nan", dtype="float64", **fields)


class _Conventions(dict):
    def __missing__(self, name):
        raise KeyError(f"no convention {name!r}; there are {', '.join(self)}")


#: The conventions of fourteen stacks by name, in summer 2026. Chapter 8 says at which commit each
#: was read, and for which ten the stack's own function was run.
CONVENTIONS = _Conventions(
    {
        "trl.grpo(group)": _torch("group mean", "group std", 1e-4, single="zero", missing="mask"),
        "trl.grpo(none)": _torch("group mean", missing="mask"),
        "trl.rloo": _torch("leave-one-out mean", single="zero", missing="mask"),
        "verl.grpo": _torch("group mean", "group std", 1e-6, single="raw"),
        "verl.grpo(no std)": _torch("group mean", single="raw"),
        "openrlhf.group_norm": _torch("group mean", "group std", 1e-9, single="nan"),
        "openrlhf.dr_grpo": _torch("group mean"),
        "openrlhf.rloo": _torch("leave-one-out mean", single="nan"),
        "nemo.grpo(LOO,default)": _torch(
            "leave-one-out mean",
            "leave-one-out std",
            1e-6,
            spread="one pass",
            single="zero",
            divide_zero_std=False,
        ),
        "nemo.grpo(no LOO)": _torch(
            "group mean", "group std", 1e-6, spread="one pass", single="zero", divide_zero_std=False
        ),
        "rlhfbook.std": _torch("group mean", "group std", 1e-8, single="nan"),
        "rlhfbook.loo": _torch("leave-one-out mean"),
        "slime.grpo": _torch(
            "group mean", "group std", 1e-6, spread="after centring", single="nan"
        ),
        "open-instruct.standard": _torch(
            "group mean", "group std", 1e-8, correction=0, dtype="float64"
        ),
        "open-instruct.centered": _torch("group mean", dtype="float64"),
        "tinker": _torch("group mean"),
        "prime-rl": _torch("group mean"),
        "rasbt": _torch("group mean", "group std", 1e-4, single="nan"),
        "ms-swift.grpo": _torch("group mean", "group std", 1e-4, single="zero"),
        "ms-swift.rloo(group std)": _torch("leave-one-out mean", "group std", 1e-4, single="zero"),
        "ms-swift.reinforce++": _torch("group mean", "centred batch std", 1e-4),
        "rllm.grpo": _numpy("group mean", "group std", single="raw"),
        "rllm.reinforce++": _numpy("group mean", "centred batch std"),
        "areal(group)": _torch("group mean", "group std", 1e-5, single="zero", dtype="float64"),
        "skyrl.grpo": _torch("group mean", "group std", 1e-6, single="raw"),
        "skyrl.maxrl": _torch("group mean", "group mean", 1e-6, correction=0, single="raw"),
    }
)
