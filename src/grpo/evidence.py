"""What rewards and advantages say about a rule, group by group."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from grpo._validate import as_finite, as_tolerance
from grpo.advantage import decoupled_advantages
from grpo.conventions import BASELINES, CONVENTIONS, SCALES

LARGEST_EPS = 1e-2  # what is larger is no guard against a division by zero
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53
MOST_DECIMALS, FEWEST_DECIMALS = 5, 2
# Chance of an accident below which exact rewards are believed, with and without a known eps.
CHANCES = {True: 1e-4, False: 1e-6}
AT_ONCE = 2_000_000  # numbers in one array
APART = "columns apart"  # the scale of GDPO
GDPO = {"ms-swift.gdpo": {"correction": 1, "eps": 1e-8}}  # swift/rl_core/advantage.py, 2026-08-22
BATCH_WIDE = {"batch mean", "batch std", "centred batch std"}


@dataclass(frozen=True)
class Precision:
    """How far a number that was written down may be from the number that was computed.

    Parameters
    ----------
    name : str
        In words, such as "2 decimals", "bfloat16" or "float32".
    absolute : float, default 0.0
        Largest error that does not depend on the number.
    relative : float, default 0.0
        Largest error as a share of the number.
    """

    name: str
    absolute: float = 0.0
    relative: float = 0.0

    @property
    def is_coarse(self):
        """Return whether the numbers have fewer digits than float32."""
        return max(self.absolute, self.relative) > FLOAT32

    def error(self, values):
        """Return the largest error of each value, in units of the values."""
        return self.absolute + self.relative * np.abs(values)


def read_precision(values):
    r"""Return the precision of numbers, as their own digits show it.

    Parameters
    ----------
    values : array_like
        Numbers as they were logged.

    Returns
    -------
    Precision
        Half a unit of the last decimal, if all numbers have at most five decimals; of numbers with
        fewer than two, half a unit of the second. Otherwise half a unit of the last binary digit
        of bfloat16, float16, float32 or float64, the first that holds all of them. Numbers that
        have few decimals and are bfloat16 numbers as well get both errors.

    Raises
    ------
    ValueError
        If a number is NaN or infinite.

    Notes
    -----
    .. math:: |x - \tilde x| \le \tfrac{1}{2} 10^{-d}
        \quad\text{or}\quad |x - \tilde x| \le 2^{-p} |\tilde x|

    With d decimals, or p significant binary digits: 8 in bfloat16 (arXiv:1905.12322), 11 in
    float16, 24 in float32, 53 in float64.

    Examples
    --------
    >>> from grpo import read_precision
    >>> read_precision([0.866, -0.29])
    Precision(name='3 decimals', absolute=0.0005, relative=0.0)
    >>> read_precision([0.8671875, -0.2890625]).name
    'bfloat16'
    """
    values = as_finite("values", values).astype(float).ravel()
    binary = _binary_precision(values)
    for decimals in range(MOST_DECIMALS + 1):
        if np.array_equal(values, values.round(decimals)):
            kept = max(decimals, FEWEST_DECIMALS)
            relative = binary.relative if binary.is_coarse else 0.0
            return Precision(_in_words(decimals), 0.5 / 10**kept, relative)
    return binary


def _in_words(decimals):
    return f"{decimals} decimal{'s' * (decimals > 1)}" if decimals else "whole numbers"


def _binary_precision(values):
    with np.errstate(over="ignore", under="ignore"):
        single, half = values.astype(np.float32), values.astype(np.float16)
    if not np.array_equal(values, single):
        return Precision("float64", relative=FLOAT64)
    if not (single.view(np.uint32) & 0xFFFF).any():
        return Precision("bfloat16", relative=2.0**-8)
    if np.array_equal(values, half):
        return Precision("float16", relative=2.0**-11)
    return Precision("float32", relative=FLOAT32)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What each group of a batch says about one rule.

    Parameters
    ----------
    baseline, scale, correction : str or None, str or None, int
        The rule, as in `Convention`, or the scale "columns apart": GDPO, `decoupled_advantages`.
    divide_zero_std : bool or None
        As in `Convention`; None where no group shows it.
    low, high : ndarray, shape (groups,)
        The interval of eps that the group allows, in units of reward: from minus to plus infinity
        where it says nothing. Empty, with `low > high`, where no eps explains the group.
    silent : ndarray of bool, shape (groups,)
        Whether all rewards of the group are equal, as they were given.
    telling : ndarray of bool, shape (groups,)
        Whether the group has a rollout off the baseline.
    residual : ndarray, shape (groups,)
        Largest difference between the advantages of the group and those of the rule.
    eps : float
        What the rollout says that tells eps best, in units of reward; 0 without a scale.
    rewards_error : float
        By how much the rewards were taken to be off.
    factor : float, default 1.0
        A constant by which the advantages are multiplied.
    """

    baseline: str | None
    scale: str | None
    correction: int
    divide_zero_std: bool | None
    low: np.ndarray
    high: np.ndarray
    silent: np.ndarray
    telling: np.ndarray
    residual: np.ndarray
    eps: float
    rewards_error: float
    factor: float = 1.0

    def explains(self, eps):
        """Return for each group whether the rule explains it with this eps."""
        return (self.low <= eps) & (eps <= self.high)

    def eps_range(self):
        """Return the smallest and the largest eps with which most groups are explained.

        Both are in [0, 0.01]. Of several stretches of eps with equally many groups it is the
        first; None if no group is explained.
        """
        return self._range

    @cached_property
    def _range(self):
        limit = LARGEST_EPS if self.scale else 0.0
        of_all = max(0.0, float(self.low.max())), min(limit, float(self.high.min()))
        if of_all[0] <= of_all[1]:
            return of_all
        low, high = np.maximum(self.low, 0.0), np.minimum(self.high, limit)
        fits = low <= high
        if not fits.any():
            return None
        starts, ends = np.sort(low[fits]), np.sort(high[fits])
        covered = np.arange(1, starts.size + 1) - np.searchsorted(ends, starts, side="left")
        best = starts[covered.argmax()]
        return float(best), float(ends[np.searchsorted(ends, best, side="left")])

    def explained(self):
        """Return for each group whether it is explained with the eps of `eps_range`."""
        found = self.eps_range()
        return np.zeros(self.low.shape, bool) if found is None else self.explains(found[0])

    @property
    def names(self):
        """Return the entries of `CONVENTIONS` with this rule and an eps in `eps_range`.

        Of GDPO, which needs the columns, "ms-swift.gdpo".
        """
        found = self.eps_range()
        if found is None:
            return ()
        if self.scale == APART:
            return tuple(name for name, one in GDPO.items() if found[0] <= one["eps"] <= found[1])
        return tuple(name for name, known in CONVENTIONS.items() if self._is(known, *found))

    def _is(self, known, low, high):
        if (known.baseline, known.scale, 1) != (self.baseline, self.scale, self.factor):
            return False
        if known.scale is None:
            return True
        return (
            known.correction == self.correction
            and self.divide_zero_std in (None, known.divide_zero_std)
            and low <= known.eps <= high
        )


def group_evidence(rewards, advantages, atol=None, rewards_atol=None, weights=None):
    r"""Return what each group says about each rule that turns rewards into advantages.

    Parameters
    ----------
    rewards : array_like, shape (groups, G), or sequence of array_like
        Rewards; each row, or each array, is one group. Groups may differ in size, G >= 2. With
        `weights` an array of shape (groups, G, m), the m rewards of each rollout.
    advantages : array_like, shape (groups, G), or sequence of array_like
        One number a rollout.
    atol : float, optional
        Absolute error of the advantages; by default as `read_precision` has it.
    rewards_atol : float, optional
        Absolute error of the rewards. By default they count as exact where a rule then explains
        most groups, too well for an accident unless `atol` is given, and otherwise as
        `read_precision` has them; whole numbers are exact.
    weights : array_like, shape (m,), optional
        The weights of several rewards. The rules are then tried on the weighted sum, and GDPO on
        the single rewards, as exact numbers.

    Returns
    -------
    tuple of Evidence
        One for each rule: a baseline, a scale and a correction, and where a group shows it,
        whether a standard deviation of 0 divides. With `weights` the last one is that of GDPO.

    Raises
    ------
    ValueError
        If the shapes do not agree, a group has fewer than two rollouts, a number is NaN or
        infinite, or a tolerance is negative.

    Notes
    -----
    .. math::
        \frac{|r_i - b_i| - \delta_n}{|\hat A_i| + \delta_A} - s_i - \delta_s
        \;\le\; \epsilon \;\le\;
        \frac{|r_i - b_i| + \delta_n}{|\hat A_i| - \delta_A} - s_i + \delta_s

    The advantage of DeepSeekMath, section 4.1.2 (arXiv:2402.03300), solved for eps, with the
    largest errors of the three numbers. The right side is infinite where
    :math:`|\hat A_i| \le \delta_A`. The interval of a group is what its rollouts have in common.

    Examples
    --------
    >>> from grpo import CONVENTIONS, group_evidence
    >>> rewards = [[1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0], [1, 0]]
    >>> trl = CONVENTIONS["trl.grpo(group)"]
    >>> made = [trl(group) for group in rewards]
    >>> made[2] = [0.7, 0.7, 0.7]  # a silent group that two prompts were merged into
    >>> most = max(group_evidence(rewards, made), key=lambda one: one.explained().sum())
    >>> most.names[0], most.explained()
    ('trl.grpo(group)', array([ True,  True, False,  True]))
    """
    columns = None
    if weights is not None:
        columns, rewards, weights = _summed(rewards, weights)
    batch = _Batch.of(rewards, advantages)
    read = _precisions(batch.r, batch.a, atol, rewards_atol)
    found = _evidence_of(batch, *read)
    return found if columns is None else (*found, _of_columns(batch, read[0], columns, weights))


def _summed(columns, weights):
    """Return the columns, their weighted sum and the weights; refuse what does not fit."""
    columns, weights = as_finite("rewards", columns).astype(float), as_finite("weights", weights)
    if columns.ndim != 3 or 0 in columns.shape or weights.shape != columns.shape[2:]:
        raise ValueError(
            f"with weights, rewards must have shape (groups, G, m) and weights (m,), "
            f"got {columns.shape} and {weights.shape}"
        )
    return columns, columns @ weights, weights


def _of_columns(batch, of_advantages, columns, weights):
    """Return the evidence for GDPO, at the eps of the stack that has it."""
    (rule,) = GDPO.values()
    expected = decoupled_advantages(columns, weights, **rule).ravel()
    unit = _units(batch, of_advantages)[-1]
    off = np.abs(batch.a - expected)
    allowed = of_advantages.error(batch.a) + 64 * unit * np.abs(expected).max()
    fits = ~np.logical_or.reduceat(off > allowed, batch.start)
    eps = rule["eps"]
    live = np.ptp(columns, axis=1).any(axis=1)
    return Evidence(
        "group mean",
        APART,
        rule["correction"],
        None,
        np.where(fits, eps, np.inf),
        np.where(fits, eps, -np.inf),
        ~live,
        live,
        batch.largest_in_groups(off),
        eps,
        0.0,
    )


def _precisions(rewards, advantages, atol, rewards_atol):
    """Return the precisions of both, whether the rewards may be exact, and whether to doubt it."""
    of_advantages = _given("atol", atol) or read_precision(advantages)
    given = _given("rewards_atol", rewards_atol)
    if given:
        return of_advantages, given, not given.absolute, False
    read = read_precision(rewards)
    if (rewards == np.round(rewards)).all() or not read.is_coarse:
        read = Precision("exact")
    return of_advantages, read, True, atol is None


def _given(name, atol):
    if atol is None:
        return None
    return Precision("as given", as_tolerance(name, atol))


def _evidence_of(batch, of_advantages, of_rewards, may_be_exact, doubted):
    """Return the evidence at the finest precision at which a rule explains the groups for sure.

    If at none of them a rule explains all groups, at the finest one where it explains most.
    """
    rewards_error = float(of_rewards.error(np.abs(batch.r).max()))
    coarse = of_advantages.is_coarse
    a_error = of_advantages.error(batch.a)
    steps = [(unit, 0.0) for unit in _units(batch, of_advantages) if may_be_exact]
    steps += [(FLOAT32, rewards_error)] if rewards_error else []
    partly = None
    for unit, r_error in steps:
        found = _rules(batch, a_error, unit, r_error)
        share = np.array([one.explained().mean() * one.telling.any() for one in found])
        best = [one for one, k in zip(found, share, strict=True) if k == share.max()]
        if doubted and r_error < rewards_error and (coarse or not any(one.names for one in best)):
            odds = _log_odds(batch, a_error, unit, rewards_error)
            best = [one for one in best if _is_no_accident(one, batch.distinct, odds)]
        if best and share.max() == 1:
            return found
        if best and partly is None and 2 * share.max() > 1:
            partly = found
    return found if partly is None or share.max() == 1 else partly


def _units(batch, of_advantages):
    """Return the roundings that the advantages may have been computed with, the finest first."""
    in_float32 = np.array_equal(batch.a, batch.a.astype(np.float32))
    return (FLOAT32,) if of_advantages.is_coarse or in_float32 else (FLOAT64, FLOAT32)


def _log_odds(batch, a_error, unit, doubt):
    """Return for each group how unlikely a rollout fits if its reward is off by up to `doubt`.

    The logarithm of how far that moves an advantage, in units of the error of the advantage.
    """
    spread = np.where(batch.silent, 1, batch.high - batch.low)
    largest = batch.largest_in_groups(np.abs(batch.a))
    error = batch.largest_in_groups(a_error) + 8 * unit * largest
    moved = doubt * largest / spread
    return np.log(np.maximum(moved / np.where(error > 0, error, np.inf), 1))


def _is_no_accident(one, distinct, odds):
    """Return whether rewards that are off would hardly have fitted as well.

    Each rollout beyond those that determine a group's baseline and scale is one chance to notice,
    and equal rewards count once.
    """
    of_batch = one.scale in BATCH_WIDE
    used = 2 if one.scale and not of_batch else 1
    chances = np.where(one.explained(), np.maximum(distinct - used, 0), 0)
    total = (chances * odds).sum() - (odds.max() if of_batch else 0)
    return bool(total > -np.log(CHANCES[bool(one.names)]))


class _Batch:
    """Rewards and advantages in one row, group after group."""

    def __init__(self, r, a, size):
        self.r, self.a, self.size = r, a, size
        self.start = np.concatenate([[0], np.cumsum(size)[:-1]])
        self.index = np.repeat(np.arange(len(size)), size)
        self.low = np.minimum.reduceat(r, self.start)
        self.high = np.maximum.reduceat(r, self.start)
        self.silent = self.low == self.high
        order = np.lexsort((r, self.index))
        new = np.ones(r.shape, bool)
        new[1:] = (np.diff(r[order]) != 0) | (np.diff(self.index[order]) != 0)
        self.distinct = np.add.reduceat(new[order.argsort()].astype(int), self.start)

    @classmethod
    def of(cls, rewards, advantages):
        """Return the batch of two lists of groups, or of two arrays; refuse what does not fit."""
        groups = [
            np.asarray(each) for each in (rewards, advantages) if isinstance(each, np.ndarray)
        ]
        if len(groups) == 2 and groups[0].ndim == 2 and groups[0].shape == groups[1].shape:
            names = ("rewards", "advantages")
            r, a = (as_finite(*one).astype(float) for one in zip(names, groups, strict=True))
            if r.shape[0] and r.shape[1] > 1:
                return cls(r.ravel(), a.ravel(), np.full(len(r), r.shape[1]))
        groups = _groups("rewards", rewards), _groups("advantages", advantages)
        sizes = [[one.size for one in each] for each in groups]
        if sizes[0] != sizes[1] or not sizes[0]:
            raise ValueError(
                "rewards and advantages must have the same groups, "
                f"got sizes {_shortened(sizes[0])} and {_shortened(sizes[1])}"
            )
        if min(sizes[0]) < 2:
            raise ValueError(
                f"a group needs at least 2 rollouts, but group {sizes[0].index(min(sizes[0]))} "
                f"has {min(sizes[0])}"
            )
        r, a = (np.concatenate(each) for each in groups)
        return cls(r, a, np.array(sizes[0]))

    def sums(self, values):
        """Return the sums over the groups, at each rollout."""
        return np.add.reduceat(values, self.start, axis=-1)[..., self.index]

    def largest_in_groups(self, values):
        """Return the largest of each group, of the last axis."""
        return np.maximum.reduceat(values, self.start, axis=-1)


def _groups(name, values):
    try:
        groups = [as_finite(f"{name}[{i}]", group).astype(float) for i, group in enumerate(values)]
    except TypeError:
        raise ValueError(f"{name} must be groups of numbers, got {values!r}") from None
    for i, group in enumerate(groups):
        if group.ndim != 1:
            raise ValueError(f"{name}[{i}] must have shape (G,), got {group.shape}")
    return groups


def _shortened(sizes):
    return sizes if len(sizes) <= 8 else f"{str(sizes[:8])[:-1]}, ...]"


class _Spreads:
    """The baselines and scales of a batch, with the largest error of each."""

    def __init__(self, batch, unit, r_error):
        self.batch, self.r_error, self.known = batch, r_error, {}
        r, G = batch.r, batch.size[batch.index]
        self.largest = np.abs(r).max()
        # Whole numbers, halves, ... sixteenths have exact sums; means of others lose digits.
        self.exact = self.largest <= 2**8 and bool((r * 16 == np.round(r * 16)).all())
        self.unit = unit
        self.n_error = (2 if self.exact else 16) * unit * self.largest
        self.G, total = G, batch.sums(r)
        silent = batch.silent[batch.index]
        mean = np.where(silent, r, total / G)
        others = np.where(silent, r, (total - r) / (G - 1))
        self.means = {
            "group mean": mean,
            "leave-one-out mean": others,
            "batch mean": np.full(r.shape, r[0] if np.ptp(r) == 0 else r.mean()),
            None: np.zeros(r.shape),
        }
        self.squares = batch.sums((r - mean) ** 2)
        self.smallest_noise = np.zeros(r.shape) if self.exact else np.sqrt(unit) / 2 * abs(others)

    def difference(self, baseline):
        """Return the rewards minus the baseline, and its error at each rollout."""
        n = self.batch.r - self.means[baseline]
        error = np.full(n.shape, self.n_error + (2 if baseline else 1) * self.r_error)
        if baseline in ("group mean", "leave-one-out mean") and self.exact and not self.r_error:
            error[self.batch.silent[self.batch.index]] = 0  # equal and exact: the mean is theirs
        return n, error

    def spread(self, scale, correction):
        """Return what the scale divides by, and its error at each rollout."""
        ones = np.ones(self.batch.r.shape)
        if scale is None:
            return ones, 0 * ones
        if scale == "group mean":
            mean = self.means["group mean"]
            return mean, (self.n_error + self.r_error) * ones
        if scale == "group std":
            squares, count = self.squares, self.G
        elif scale == "leave-one-out std":
            # without the own reward: the squares less that of its distance to the mean of the rest
            distance = self.batch.r - self.means["leave-one-out mean"]
            squares = self.squares - distance**2 * (self.G - 1) / self.G
            squares = np.where(squares > 1e-13 * self.largest**2, squares, 0)
            count = self.G - 1
        else:
            own_mean = 0 if scale == "batch std" else self.means["group mean"]
            values = self.batch.r - own_mean
            squares = np.sum((values - values.mean()) ** 2) * ones
            count = self.batch.r.size * ones
        free = np.maximum(count - correction, 1)
        std = np.where(count > correction, np.sqrt(squares / free), 0)
        std = np.where(std > 1e-12 * self.largest, std, 0)
        # A mean of squares minus a squared mean loses the digits of a small spread.
        lost = self.n_error * (1 + self.largest / np.where(std > 0, std, np.inf))
        if not self.exact:
            residue = 8 * np.sqrt(self.unit) * self.largest
            lost = np.where(std > 0, np.minimum(lost, self.n_error + residue), residue)
        lost = np.where(count > 1, lost, 0)  # of one reward it is 0 for sure
        moved = np.where(count > 1, self.r_error * np.sqrt(count / free), 0)
        return std, lost + (2 if scale == "centred batch std" else 1) * moved


def _rule_fields():
    """Return (baseline, scale, correction) of each rule that is tried."""
    fields = []
    for baseline, scale in product(BASELINES, SCALES):
        if scale == "group mean" and baseline != "group mean":
            continue
        if scale == "centred batch std" and baseline != "group mean":
            continue  # the same as the batch std; or, left out of its mean, the same but for eps
        fields += [
            (baseline, scale, correction)
            for correction in ((0, 1) if scale and scale.endswith("std") else (0,))
        ]
    return fields


RULES = _rule_fields()


def _stacked(function, arguments, known):
    """Return the two values of a function for each tuple of arguments, computed once for each."""
    for one in arguments:
        if one not in known:
            known[one] = function(*one)
    return [np.stack(each) for each in zip(*(known[one] for one in arguments), strict=True)]


def _rules(batch, a_error, unit, r_error, rules=RULES, factors=None):
    """Return the evidence for each rule, with the advantages divided by a factor for each."""
    factors = np.ones(len(rules)) if factors is None else factors
    spreads = _Spreads(batch, unit, r_error)
    found, at_once = [], max(1, AT_ONCE // batch.r.size)
    for first in range(0, len(rules), at_once):
        part = slice(first, first + at_once)
        found += _part(batch, a_error, spreads, rules[part], factors[part])
    return tuple(found)


def _part(batch, a_error, spreads, rules, factors):
    n, n_error = _stacked(spreads.difference, [rule[:1] for rule in rules], spreads.known)
    s, s_error = _stacked(spreads.spread, [rule[1:] for rule in rules], spreads.known)
    c = factors[:, None]
    unit, own = spreads.unit, np.where(c == 1, 1, 4)  # the factor errs as well
    a = batch.a / c
    d = own * (a_error / np.abs(c) + np.where(c == 1, 8, 24) * unit * np.abs(a))
    n_error, s_error = own * n_error, own * s_error

    low, high = _eps_intervals(a, d, n, n_error, s, s_error)
    told = np.abs(n) > 4 * spreads.n_error
    flat = told & (s == 0)
    whole = np.maximum.reduceat(np.where(flat, -np.inf, low), batch.start, axis=-1)
    upper = np.minimum.reduceat(np.where(flat, np.inf, high), batch.start, axis=-1)
    if not spreads.r_error:
        most = np.maximum.reduceat(a, batch.start, axis=-1)
        least = np.minimum.reduceat(a, batch.start, axis=-1)
        room = 2 * batch.largest_in_groups(d)
        whole[batch.silent & (most - least > room)] = np.inf  # equal rewards, equal advantages
    telling = np.logical_or.reduceat(told, batch.start, axis=-1)
    scaled = np.array([scale is not None for _, scale, _ in rules])
    eps = np.clip(_narrowest(low, high, told & ~flat), 0, LARGEST_EPS) * scaled
    divisor = np.where(s != 0, s + eps[:, None], 1)
    residual = batch.largest_in_groups(np.abs(batch.a - c * n / divisor))
    zero_stds = flat.any(axis=1)
    found = []
    for i, rule in enumerate(rules):

        def evidence(divides, low, high, rule=rule, i=i):
            own = batch.silent, telling[i], residual[i], float(eps[i])
            return Evidence(*rule, divides, low, high, *own, spreads.r_error, float(factors[i]))

        if not zero_stds[i]:
            found.append(evidence(None, whole[i], upper[i]))
            continue
        plain = np.abs(a[i] - n[i]) <= d[i] + n_error[i]
        for divides, open_to_eps in ((False, plain), (True, np.zeros_like(plain))):
            asks = flat[i] & ~open_to_eps
            least = np.where(asks, low[i], -np.inf)
            most = np.where(asks, high[i], np.inf)
            if not divides and not spreads.r_error:
                # Rounding noise may stand for a spread: not below half a step, none of exact sums.
                least = np.where(asks & (spreads.smallest_noise == 0), np.inf, least)
                most -= spreads.smallest_noise
            found.append(
                evidence(
                    divides,
                    np.maximum(whole[i], np.maximum.reduceat(least, batch.start)),
                    np.minimum(upper[i], np.minimum.reduceat(most, batch.start)),
                )
            )
    return found


def _scaled_evidence(batch, of_advantages):
    """Yield the evidence for each rule times a constant factor, for the finest rounding first.

    The rewards count as exact.
    """
    a_error = of_advantages.error(batch.a)
    rules = [fields for fields in RULES if fields[1] not in BATCH_WIDE]  # that is a factor
    for unit in _units(batch, of_advantages):
        spreads = _Spreads(batch, unit, 0.0)
        tried, factors = [], []
        for rule in rules:
            for factor in _factors(batch, spreads, *rule):
                tried.append(rule)
                factors.append(factor)
        if tried:
            found = _rules(batch, a_error, unit, 0.0, tried, np.array(factors))
            yield found


def _factors(batch, spreads, baseline, scale, correction):
    """Return the constant factors that the advantages may have: without eps, and with it."""
    n, _ = spreads.difference(baseline)
    s, _ = spreads.spread(scale, correction)
    use = (np.abs(n) > 4 * spreads.n_error) & (s > 0)
    a, n, s = batch.a[use], n[use], s[use]
    if not a.size or not a.all():
        return []
    found = [float(np.sum(a * n / s) / np.sum((n / s) ** 2))]
    if np.ptp(s) > 1e-3 * s.max():
        slope, _ = np.linalg.lstsq(np.stack([s, np.ones_like(s)], 1), n / a, rcond=None)[0]
        found += [float(1 / slope)] if slope else []
    return [factor for factor in found if factor]


def _eps_intervals(a, d, n, n_error, s, s_error):
    """Return the eps that each rollout allows: -inf and inf at most, low > high for none."""
    sign, N = np.where(n < 0, -1.0, 1.0), np.abs(n)
    flipped = s < 0  # a negative mean as the scale: solve for minus eps
    sign = np.where(flipped, -sign, sign)
    A, s = sign * a, np.abs(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(N > n_error, (N - n_error) / (A + d), -np.inf) - s - s_error
        high = (N + n_error) / (A - d)
        other = (n_error - N) / (-A - d)  # the difference has the other sign
    low = np.where((N > n_error) & (A + d <= 0), np.inf, low)
    high = np.where(A - d > 0, high, np.where(A + d >= 0, np.inf, other))
    high = np.where((high <= 0) & (A != 0), -np.inf, high - np.maximum(s - s_error, 0))
    return np.where(flipped, -high, low), np.where(flipped, -low, high)


def _narrowest(low, high, use):
    """Return for each rule the middle of the narrowest interval, 0 without one."""
    with np.errstate(invalid="ignore"):
        width = np.where(use & np.isfinite(low) & np.isfinite(high), high - low, np.inf)
    at = width.argmin(axis=-1)[:, None]
    width = np.take_along_axis(width, at, axis=-1)
    with np.errstate(invalid="ignore"):
        middle = (np.take_along_axis(low, at, -1) + np.take_along_axis(high, at, -1)) / 2
    return np.where(np.isfinite(width), middle, 0)[:, 0]
