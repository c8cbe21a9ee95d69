"""Name the convention behind advantages that a trainer returned."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from grpo._validate import as_finite, as_rewards, as_tolerance
from grpo.conventions import BASELINES, CONVENTIONS, SCALES, Convention
from grpo.groups import all_equal

LARGEST_EPS = 1e-2  # what is larger is no guard against a division by zero
SHOWN = 4  # candidates in the printed form
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53
LAYOUTS = {
    "rows": "each row is a group",
    "columns": "each column was taken as a group: wrong axis, or rewards laid out as (G, groups)",
    "interleaved": "the flat batch was read as (G, groups), so that a group is every n-th rollout",
}


@dataclass(frozen=True)
class Candidate:
    """A convention that explains advantages, with what the data say about its numbers.

    Parameters
    ----------
    baseline, scale, correction : str or None, str or None, int
        As in `Convention`.
    layout : {"rows", "columns", "interleaved"}
        What was taken as a group.
    divide_zero_std : bool or None
        As in `Convention`; None where the data do not show it.
    eps : float or None
        Solved from the data, in units of reward; None without a scale.
    eps_range : tuple of float or None
        All that agrees with the data, given the rounding of the advantages.
    factor : float
        A constant by which the advantages are multiplied.
    residual : float
        Largest difference between the advantages and this explanation.
    names : tuple of str, default ()
        The entries of `CONVENTIONS` that compute this.
    """

    baseline: str | None
    scale: str | None
    correction: int
    layout: str
    divide_zero_std: bool | None
    eps: float | None
    eps_range: tuple | None
    factor: float
    residual: float
    names: tuple = ()

    def __str__(self):
        """Return one line of words."""
        words = [f"{self.baseline or 'no'} baseline, {self.scale or 'no scale'}"]
        if self.scale:
            words.append(f"correction {self.correction}")
            words.append(f"eps {self._eps_in_words()}")
        if self.divide_zero_std is not None:
            words.append(f"zero std {'divides' if self.divide_zero_std else 'does not divide'}")
        if self.factor != 1:
            words.append(f"times {self.factor:.4g}")
        if self.layout != "rows":
            words.append(LAYOUTS[self.layout])
        return ", ".join(words)

    def _eps_in_words(self):
        low, high = self.eps_range or (self.eps, self.eps)
        if high - low <= 0.2 * high:
            return f"{self.eps:.1e}"
        return f"between {low:.1e} and {high:.1e}" if low else f"of at most {high:.0e}"


@dataclass(frozen=True)
class Identification:
    """What `identify` found.

    Parameters
    ----------
    candidates : tuple of Candidate
        All that the data cannot tell apart, the simplest first; empty if nothing fits.
    closest : Candidate
        The best explanation; where nothing fits, the one with the smallest residual.
    advice : tuple of str
        What input would tell the candidates apart.
    """

    candidates: tuple
    closest: Candidate
    advice: tuple

    @property
    def names(self):
        """Return the entries of `CONVENTIONS` that compute one of the candidates."""
        return tuple(dict.fromkeys(name for one in self.candidates for name in one.names))

    def __str__(self):
        """Return the findings as lines of text."""
        if not self.candidates:
            return (
                f"no known convention; closest: {self.closest} "
                f"(off by up to {self.closest.residual:.2g}; if the advantages are rounded, "
                "give atol)"
            )
        lines = [str(one) for one in self.candidates[:SHOWN]]
        if len(self.candidates) > SHOWN:
            lines.append(f"... and {len(self.candidates) - SHOWN} more")
        if self.names:
            lines.append(f"as in {', '.join(self.names)}")
        return "\n".join([*lines, *self.advice])


def identify(rewards, advantages, atol=0.0):
    r"""Name the convention that turned rewards into advantages.

    Parameters
    ----------
    rewards : array_like, shape (groups, G)
        Rewards; each row is one group, G >= 2.
    advantages : array_like, shape (groups, G)
        What the stack returned for them, one number a rollout. They count as float32 if every
        one of them is a float32 number.
    atol : float, default 0.0
        Absolute error of the advantages, such as 5e-5 for numbers copied with four decimals.

    Returns
    -------
    Identification
        The candidates that the data cannot tell apart, with eps solved from the data, and what
        input would tell them apart.

    Raises
    ------
    ValueError
        If the shapes are not one shape (groups, G) with G >= 2, a number is NaN or infinite,
        `atol` is negative, or the data are silent: equal rewards in every group, or advantages
        that are all 0. Where a convention has no name here, `candidates` is empty.

    Notes
    -----
    .. math::
        \frac{r_i - b_i}{\hat A_i} = \frac{s_i + \epsilon}{c}

    The left side is known up to the rounding of the advantage of DeepSeekMath, section 4.1.2
    (arXiv:2402.03300). For each baseline :math:`b` and scale :math:`s`, and each layout of the
    groups, every rollout gives an interval for eps; a candidate fits if all intervals meet below
    0.01. A factor :math:`c` other than 1 is tried only where no candidate fits without.

    Examples
    --------
    >>> from grpo import CONVENTIONS, identify
    >>> rewards = [[1, 0, 1, 0], [1, 0, 0, 0]]
    >>> found = identify(rewards, CONVENTIONS["trl.grpo(group)"](rewards))
    >>> print(found)
    group mean baseline, group std, correction 1, eps 1.0e-04
    as in trl.grpo(group), rasbt
    """
    rewards, advantages = as_rewards(rewards), as_finite("advantages", advantages).astype(float)
    rewards = as_finite("rewards", rewards).astype(float)
    atol = as_tolerance("atol", atol)
    if rewards.ndim != 2 or rewards.shape != advantages.shape or not rewards.size:
        raise ValueError(
            f"rewards and advantages must both have one shape (groups, G), "
            f"got {rewards.shape} and {advantages.shape}"
        )
    if rewards.shape[1] < 2:
        raise ValueError("nothing can be identified: a group of one rollout has no other")
    if all_equal(rewards).all():
        raise ValueError("nothing can be identified: all rewards of every group are equal")
    if not advantages.any():
        raise ValueError("nothing can be identified: all advantages are 0")
    in_float32 = np.all(advantages == advantages.astype(np.float32))
    for unit in (FLOAT32,) if in_float32 else (FLOAT64, FLOAT32):
        for with_factor in (False, True):
            tried = _explanations(rewards, advantages, atol, unit, with_factor)
            fitting = [candidate for candidate, fits in tried if fits]
            if fitting:
                return _ranked(fitting, rewards)
    tried = _explanations(rewards, advantages, atol, FLOAT32, with_factor=False)
    closest = min((candidate for candidate, _ in tried), key=lambda one: one.residual)
    return Identification((), closest, ())


def _explanations(rewards, advantages, atol, unit, with_factor):
    """Yield (candidate, whether it fits) for each layout, baseline, scale and correction."""
    for layout in LAYOUTS:
        r, a = _arranged(rewards, layout), _arranged(advantages, layout)
        if r.shape[1] < 2 or (layout == "interleaved" and len(r) == 1):
            continue
        for baseline, scale in product(BASELINES, SCALES):
            by_group = {baseline, scale} - {"batch mean", "batch std", None}
            if (layout != "rows" and not by_group) or (with_factor and scale == "batch std"):
                continue  # the same as in rows, the same as a factor
            for correction in (0, 1) if scale else (0,):
                convention = Convention(baseline, scale, correction, single="zero")
                evidence = _Evidence(convention, r, a, atol, unit)
                yield _explained(convention, layout, evidence, with_factor)


def _arranged(values, layout):
    """Return the values with one row for each group that the layout means."""
    if layout == "columns":
        return values.T
    if layout == "interleaved":
        return values.reshape(values.shape[::-1]).T
    return values


def _explained(convention, layout, evidence, with_factor):
    """Return the candidate of a convention and whether it explains every advantage."""
    for factor in (with_factor and evidence.factors()) or [1.0]:
        if convention.scale is None:
            eps_range, divides, fits = None, None, evidence.fits_without_scale(factor)
        else:
            eps_range = evidence.eps_range(factor)
            divides, fits = evidence.zero_std_rule(factor)
            fits = fits and eps_range is not None
        if fits:
            break
    eps = None
    if convention.scale:
        eps = evidence.eps_estimate(factor, *(eps_range or (0.0, LARGEST_EPS)))
    candidate = Candidate(
        convention.baseline,
        convention.scale,
        convention.correction,
        layout,
        divides,
        eps,
        eps_range,
        factor,
        evidence.residual(factor, eps),
    )
    return replace(candidate, names=_names(candidate) if fits else ()), fits


class _Evidence:
    """What every rollout says about a convention: difference, spread, advantage, their errors."""

    def __init__(self, convention, rewards, advantages, atol, unit):
        self.a, self.atol, self.unit = advantages, atol, unit
        self.n = replace(convention, scale=None)(rewards)
        self.s = np.ones(rewards.shape)
        if convention.scale:
            self.s = self.s * convention.standard_deviation(rewards, np.full(rewards.shape, True))
        largest = np.abs(rewards).max()
        # Whole numbers, halves, ... sixteenths have exact sums; means of others lose digits.
        exact = largest <= 2**8 and (rewards * 16 == np.round(rewards * 16)).all()
        self.n_error = (2 if exact else 16) * unit * largest
        self.told = np.abs(self.n) > 4 * self.n_error
        self.spread = self.s > 1e-12 * largest
        # A mean of squares minus a squared mean loses the digits of a small spread.
        self.s_error = self.n_error * (1 + largest / np.where(self.spread, self.s, np.inf))

    def factors(self):
        """Return the constant factors that the advantages may have: without eps, and with it."""
        use = self.told & self.spread
        a, n, s = self.a[use], self.n[use], self.s[use]
        if not a.all() or not a.size:
            return []
        found = [float(np.sum(a * n / s) / np.sum((n / s) ** 2))]
        if np.ptp(s) > 1e-3 * s.max():
            slope, _ = np.linalg.lstsq(np.stack([s, np.ones_like(s)], 1), n / a, rcond=None)[0]
            found += [float(1 / slope)] if slope else []
        return [factor for factor in found if factor]

    def fits_without_scale(self, factor):
        predicted = factor * self.n
        allowed = self.atol + 8 * self.unit * np.abs(predicted) + abs(factor) * self.n_error
        return bool(self.told.any() and (np.abs(self.a - predicted) <= allowed).all())

    def eps_range(self, factor):
        """Return the smallest and the largest eps that agree with every rollout, or None."""
        use, a = self.told & self.spread, self.a / factor
        if not use.any():
            return (0.0, LARGEST_EPS) if self.told.any() else None
        if (a * self.n)[use].min() <= 0:
            return None
        solved, error = self._solved(factor)
        low, high = (solved - error).max(), (solved + error).min()
        nothing = ~self.told & self.spread  # at the baseline: the advantage is 0 up to rounding
        most = abs(factor) * (4 * self.n_error / np.where(self.spread, self.s, 1)) + self.atol
        if low > min(high, LARGEST_EPS) or high < 0 or (np.abs(self.a) > most)[nothing].any():
            return None
        return float(max(low, 0)), float(min(high, LARGEST_EPS))

    def eps_estimate(self, factor, low, high):
        """Return the eps of the rollout that tells it best, within the range."""
        solved, error = self._solved(factor)
        return float(np.clip(solved[error.argmin()], low, high)) if solved.size else 0.0

    def _solved(self, factor):
        """Return eps as each rollout has it, and how far rounding may have moved it."""
        use = self.told & self.spread & (self.a != 0)
        a, n, s = self.a[use] / factor, self.n[use], self.s[use]
        denominator, a = n / a, np.abs(a)
        error = np.abs(denominator) * (8 * self.unit + self.atol / abs(factor) / a)
        error = error + self.n_error / a + self.s_error[use]
        if factor != 1:
            error = 4 * error + 64 * self.unit * np.abs(denominator)  # the factor errs as well
        return denominator - s, error

    def zero_std_rule(self, factor):
        """Return whether a standard deviation of 0 divides (None: not seen), and if that fits."""
        use = self.told & ~self.spread
        if not use.any():
            return None, True
        a, n = np.abs(self.a[use] / factor), np.abs(self.n[use])
        if (np.abs(a - n) <= self.atol + 8 * self.unit * n + self.n_error).all():
            return False, True
        return True, bool((a >= n / LARGEST_EPS).all())

    def residual(self, factor, eps):
        """Return the largest difference to the advantages, undivided where there is no spread."""
        divisor = np.where(self.spread, self.s + (eps or 0), 1)
        return float(np.abs(self.a - factor * self.n / divisor).max())


def _names(candidate):
    """Return the entries of the registry that a candidate stands for."""
    if candidate.factor != 1 or candidate.layout != "rows":
        return ()
    return tuple(name for name, known in CONVENTIONS.items() if _is(candidate, known))


def _is(candidate, known):
    if (known.baseline, known.scale) != (candidate.baseline, candidate.scale):
        return False
    if known.scale is None:
        return True
    low, high = candidate.eps_range
    return (
        known.correction == candidate.correction
        and candidate.divide_zero_std in (None, known.divide_zero_std)
        and low <= known.eps <= high
    )


def _ranked(candidates, rewards):
    """Return the identification with the simplest candidates first."""

    def simplicity(one):
        return (
            not one.names,
            list(LAYOUTS).index(one.layout),
            len(f"{one.factor:.4g}"),
            len(f"{one.eps or 0:.4g}"),
            one.scale is not None,
            BASELINES.index(one.baseline),
            one.residual,
        )

    candidates = tuple(sorted(candidates, key=simplicity))
    return Identification(candidates, candidates[0], tuple(_advice(candidates, rewards)))


def _advice(candidates, rewards):
    """Yield what input would tell the candidates apart."""

    def differ(*fields):
        return len({tuple(getattr(one, field) for field in fields) for one in candidates}) > 1

    if len(candidates) > 1:
        yield f"The data cannot tell these {len(candidates)} apart."
    if differ("baseline", "scale", "correction", "factor"):
        if rewards.shape[1] == 2:
            yield "Try groups of four or more: in groups of two many conventions agree."
        elif all(one.scale == "batch std" for one in candidates):
            yield "Try a batch of another size or spread: in one, a correction can pass for an eps."
        elif candidates[0].factor != 1:
            yield "Try two group sizes: a factor can stand for a correction or a leave-one-out."
        else:
            yield "Try groups of different mean and spread, such as [1, 0, 0, 0] and [1, 1, 0, 0]."
    if differ("layout"):
        yield "Try more groups than a group has rollouts, with rewards that all differ."
    eps = {CONVENTIONS[name].eps for one in candidates if one.scale for name in one.names}
    if len(eps) > 1:
        yield (
            f"Try rewards that differ by {min(eps):.0e} only, to see which eps it is: "
            + ", ".join(f"{value:.0e}" for value in sorted(eps))
        )
    rules = {
        CONVENTIONS[name].divide_zero_std
        for one in candidates
        if one.scale and one.divide_zero_std is None
        for name in one.names
    }
    if len(rules) > 1:
        yield "Try a group of equal rewards such as 0.1: does a standard deviation near 0 divide?"
