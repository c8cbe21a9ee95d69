"""Name the convention behind advantages that a trainer returned."""

from dataclasses import dataclass

import numpy as np

from grpo._validate import as_finite, as_rewards
from grpo.conventions import BASELINES, CONVENTIONS
from grpo.evidence import (
    APART,
    BATCH_WIDE,
    _Batch,
    _evidence_of,
    _of_columns,
    _precisions,
    _scaled_evidence,
    _summed,
)
from grpo.groups import all_equal

SHOWN, EXCEPTIONS = 4, 8  # candidates and groups in the printed form
LAYOUTS = {
    "rows": "each row is a group",
    "columns": "each column was taken as a group: wrong axis, or rewards laid out as (G, groups)",
    "interleaved": "the flat batch was read as (G, groups), so that a group is every n-th rollout",
    "halves": "each group was taken in two halves",
}


@dataclass(frozen=True)
class Candidate:
    """A convention that explains advantages, with what the data say about its numbers.

    Parameters
    ----------
    baseline, scale, correction : str or None, str or None, int
        As in `Convention`.
    layout : {"rows", "columns", "interleaved", "halves"}
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
    rewards_error : float, default 0.0
        By how much the rewards are off, if this is to explain the advantages.
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
    rewards_error: float = 0.0

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
        if self.rewards_error:
            words.append(f"if the rewards are rounded by up to {self.rewards_error:.0e}")
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
        The best explanation; where nothing fits, the one that explains most groups.
    advice : tuple of str
        What input would tell the candidates apart.
    explained : tuple of bool, default ()
        Where nothing fits, for each group whether `closest` explains it.
    """

    candidates: tuple
    closest: Candidate
    advice: tuple
    explained: tuple = ()

    @property
    def names(self):
        """Return the entries of `CONVENTIONS` that compute one of the candidates."""
        return tuple(dict.fromkeys(name for one in self.candidates for name in one.names))

    def __str__(self):
        """Return the findings as lines of text."""
        if not self.candidates:
            return "\n".join(self._partly())
        lines = [str(one) for one in self.candidates[:SHOWN]]
        if len(self.candidates) > SHOWN:
            lines.append(f"... and {len(self.candidates) - SHOWN} more")
        if self.names:
            lines.append(f"as in {', '.join(self.names)}")
        return "\n".join([*lines, *self.advice])

    def _partly(self):
        """Yield what is to be said where no convention explains all groups."""
        count, n = sum(self.explained), len(self.explained)
        if 2 * count > n:
            others = [str(i) for i, fits in enumerate(self.explained) if not fits]
            listed = ", ".join(others[:EXCEPTIONS]) + ", ..." * (len(others) > EXCEPTIONS)
            yield f"no known convention explains all {n} groups"
            yield f"{self.closest}: {count} of {n} groups; not group{'s'[: n - count - 1]} {listed}"
        else:
            yield f"no known convention: none explains more than half of the {n} groups"
        yield "If numbers were rounded further than they show, give atol and rewards_atol."


def identify(rewards, advantages, atol=None, rewards_atol=None, weights=None):
    r"""Name the convention that turned rewards into advantages.

    Parameters
    ----------
    rewards : array_like, shape (groups, G)
        Rewards; each row is one group, G >= 2. With `weights` of shape (groups, G, m).
    advantages : array_like, shape (groups, G)
        What the stack returned for them, one number a rollout.
    atol : float, optional
        Absolute error of the advantages, such as 5e-5 for numbers copied with four decimals; by
        default as `read_precision` has it.
    rewards_atol : float, optional
        Absolute error of the rewards. By default they count as exact if a convention then fits,
        too well for an accident unless `atol` is given, and otherwise as `read_precision` has
        them; whole numbers are exact.
    weights : array_like, shape (m,), optional
        The weights of several rewards. The conventions are then tried on the weighted sum, and
        GDPO on the single ones.

    Returns
    -------
    Identification
        The candidates that the data cannot tell apart, with eps solved from the data, and what
        input would tell them apart.

    Raises
    ------
    ValueError
        If the shapes are not one shape (groups, G) with G >= 2, a number is NaN or infinite,
        a tolerance is negative, or the data are silent: equal rewards in every group, or advantages
        that are all 0. Where a convention has no name here, `candidates` is empty.

    Notes
    -----
    .. math::
        \frac{r_i - b_i}{\hat A_i} = \frac{s_i + \epsilon}{c}

    The left side is known up to the rounding of the advantage of DeepSeekMath, section 4.1.2
    (arXiv:2402.03300). For each baseline :math:`b` and scale :math:`s`, and each layout of the
    groups, every rollout gives an interval for eps (`group_evidence`); a candidate fits if all
    intervals meet below 0.01. Other layouts of the groups are tried where no entry of
    `CONVENTIONS` fits, a factor :math:`c` other than 1 where nothing fits without.

    Examples
    --------
    >>> from grpo import CONVENTIONS, identify
    >>> rewards = [[1, 0, 1, 0], [1, 0, 0, 0]]
    >>> found = identify(rewards, CONVENTIONS["trl.grpo(group)"](rewards))
    >>> print(found)
    group mean baseline, group std, correction 1, eps 1.0e-04
    as in trl.grpo(group), rasbt, ms-swift.grpo
    """
    columns = None
    if weights is not None:
        columns, rewards, weights = _summed(rewards, weights)
    rewards, advantages = as_rewards(rewards), as_finite("advantages", advantages).astype(float)
    rewards = as_finite("rewards", rewards).astype(float)
    if rewards.ndim != 2 or rewards.shape != advantages.shape or not rewards.size:
        raise ValueError(
            f"rewards and advantages must both have one shape (groups, G), "
            f"got {rewards.shape} and {advantages.shape}"
        )
    if rewards.shape[1] < 2:
        raise ValueError("nothing can be identified: a group of one rollout has no other")
    read = _precisions(rewards, advantages, atol, rewards_atol)
    live = ~all_equal(rewards) if columns is None else np.ptp(columns, axis=1).any(axis=1)
    if not live.any():
        raise ValueError("nothing can be identified: all rewards of every group are equal")
    if not advantages.any():
        raise ValueError("nothing can be identified: all advantages are 0")
    batches = {}
    for layout in LAYOUTS:
        r, a = _arranged(rewards, layout), _arranged(advantages, layout)
        if r is not None and r.shape[1] >= 2:
            batches[layout] = _Batch.of(r, a)
    in_rows = _evidence_of(batches["rows"], *read)
    if columns is not None:
        in_rows = (*in_rows, _of_columns(batches["rows"], read[0], columns, weights))
    most = max(in_rows, key=lambda one: (one.explained().sum(), -one.residual.max()))
    explained = most.explained()
    partly = Identification((), _candidate(most, "rows"), (), tuple(explained.tolist()))
    if 2 * (explained & most.telling).sum() > most.telling.sum() and not explained.all():
        return partly
    candidates = [_candidate(one, "rows") for one in in_rows if _fits(one)]
    in_rows_fit = bool(candidates)
    if not any(one.names for one in candidates):
        for layout, batch in batches.items():
            if layout == "rows" or (layout == "halves" and in_rows_fit):
                continue
            by_group = [one for one in _evidence_of(batch, *read) if _is_by_group(one)]
            candidates += [_candidate(one, layout) for one in by_group if _fits(one)]
    candidates = _without_coincidences(candidates) or _scaled(batches, read[0])
    if candidates:
        return _ranked(candidates, rewards)
    return partly


def _fits(one):
    """Return whether evidence explains every group with one eps, and was asked something."""
    return bool(one.telling.any() and one.explained().all())


def _without_coincidences(candidates):
    """Leave out the scales of single stacks with an eps that none has, if another has a name."""
    named = {one.scale for one in candidates if one.names}
    own = {"centred batch std", "group mean"} - named
    return [one for one in candidates if not named or one.scale not in own]


def _is_by_group(one):
    """Return whether a rule depends on what was taken as a group."""
    return bool({one.baseline, one.scale} - BATCH_WIDE - {None}) or one.scale == "centred batch std"


def _scaled(batches, of_advantages):
    """Return the candidates with a constant factor, at the finest rounding that has any."""
    rounds = [list(_scaled_evidence(batch, of_advantages)) for batch in batches.values()]
    for step in range(max(map(len, rounds))):
        found = [
            _candidate(one, layout)
            for layout, steps in zip(batches, rounds, strict=True)
            for one in (steps[step] if step < len(steps) else ())
            if _fits(one) and (layout == "rows" or _is_by_group(one))
        ]
        unique = {
            (one.layout, one.baseline, one.scale, one.correction, one.divide_zero_std): one
            for one in reversed(found)
        }
        if unique:
            return [one for one in unique.values() if one.layout != "halves"] or [*unique.values()]
    return []


def _candidate(one, layout):
    """Return a rule with what the groups say about its numbers."""
    eps, eps_range = None, None
    if one.scale:
        eps_range = one.eps_range()
        eps = one.eps if eps_range is None else min(max(one.eps, eps_range[0]), eps_range[1])
    return Candidate(
        one.baseline,
        one.scale,
        one.correction,
        layout,
        one.divide_zero_std,
        eps,
        eps_range,
        one.factor,
        float(one.residual.max()),
        one.names if layout == "rows" and _fits(one) else (),
        one.rewards_error,
    )


def _arranged(values, layout):
    """Return the values with one row for each group that the layout means, None without one."""
    if layout == "columns":
        return values.T
    if layout == "interleaved":
        return values.reshape(values.shape[::-1]).T if len(values) > 1 else None
    if layout == "halves":
        return values.reshape(2 * len(values), -1) if values.shape[1] % 2 == 0 else None
    return values


def _ranked(candidates, rewards):
    """Return the identification with the simplest candidates first."""

    def simplicity(one):
        return (
            not one.names,
            not _has_usual_eps(one),
            list(LAYOUTS).index(one.layout),
            len(f"{one.factor:.4g}"),
            len(f"{one.eps or 0:.4g}"),
            one.scale is not None,
            BASELINES.index(one.baseline),
            one.residual,
        )

    candidates = tuple(sorted(candidates, key=simplicity))
    return Identification(candidates, candidates[0], tuple(_advice(candidates, rewards)))


def _has_usual_eps(one):
    """Return whether an eps of `CONVENTIONS` is among those of a candidate."""
    if one.scale in (APART, None):
        return True
    low, high = one.eps_range
    return any(low <= known.eps <= high for known in CONVENTIONS.values() if known.scale)


def _advice(candidates, rewards):
    """Yield what input would tell the candidates apart."""

    def differ(*fields):
        return len({tuple(getattr(one, field) for field in fields) for one in candidates}) > 1

    if len(candidates) > 1:
        yield f"The data cannot tell these {len(candidates)} apart."
    if differ("baseline", "scale", "correction", "factor"):
        of_batch = all(one.scale in BATCH_WIDE for one in candidates)
        if of_batch:
            yield "Try a batch of another size or spread: in one, a correction can pass for an eps."
        if not of_batch or differ("baseline"):
            yield _other_groups(candidates[0], rewards)
    if candidates[0].factor != 1:
        yield "Try another step: a factor that a batch determines changes with it."
    if any(_group_size(one, rewards) == 2 and one.scale == "group std" for one in candidates):
        yield (
            "In groups of two, a standard deviation makes the same two advantages of any two "
            "rewards: what the rewards were cannot be seen."
        )
    if candidates[0].rewards_error:
        yield (
            "Rewards that are off by so little may be rounded, or lack a term such as the KL: "
            "the data cannot show which."
        )
    if differ("layout"):
        yield "Try more groups than a group has rollouts, with rewards that all differ."
    candidates = [one for one in candidates if one.scale not in (APART, None)]
    eps = {CONVENTIONS[name].eps for one in candidates for name in one.names}
    if len(eps) > 1:
        yield (
            f"Try rewards that differ by {min(eps):.0e} only, to see which eps it is: "
            + ", ".join(f"{value:.0e}" for value in sorted(eps))
        )
    rules = {
        CONVENTIONS[name].divide_zero_std
        for one in candidates
        if one.divide_zero_std is None
        for name in one.names
    }
    if len(rules) > 1:
        yield "Try a group of equal rewards such as 0.1: does a standard deviation near 0 divide?"


def _group_size(one, rewards):
    """Return how many rollouts a group has in the layout of a candidate."""
    return _arranged(rewards, one.layout).shape[1]


def _other_groups(first, rewards):
    """Return which groups would tell the candidates apart."""
    if rewards.shape[1] == 2:
        return "Try groups of four or more: in groups of two many conventions agree."
    if first.factor != 1:
        return "Try two group sizes: a factor can stand for a correction or a leave-one-out."
    if len(rewards) == 1:
        return "Try more groups: in one, the group and the batch are the same."
    return "Try groups of different mean and spread, such as [1, 0, 0, 0] and [1, 1, 0, 0]."
