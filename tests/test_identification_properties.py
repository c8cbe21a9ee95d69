"""`identify` is never wrong: whatever the rule, the batch and the digits, the truth is listed."""

import numpy as np
import pytest

from grpo import CONVENTIONS, identify, read_precision, round_to_bfloat16

TRL = CONVENTIONS["trl.grpo(group)"]
WRITTEN = (None, 4, 3, 2, "float32", "bfloat16")
FORMS = [
    *(("binary", None, written) for written in WRITTEN),
    *(("graded", None, written) for written in WRITTEN),
    *(("rounded", digits, written) for digits, written in ((4, None), (3, 4), (2, 3))),
]


def written(values, how):
    """Return advantages as a log has them: as they are, with so many decimals, or shorter."""
    if how == "bfloat16":
        return round_to_bfloat16(values).astype(float)
    if how == "float32":
        return values.astype(np.float32).astype(float)
    return values.astype(float) if how is None else values.astype(float).round(how)


def drawn(kind, P, G, rng):
    """Return rewards with a live group: 0 or 1, of two decimals, or with all digits."""
    while True:
        if kind == "binary":
            rewards = (rng.random((P, G)) < rng.uniform(0.1, 0.9, (P, 1))).astype(float)
        else:
            rewards = rng.random((P, G))
            rewards = rewards.round(2) if kind == "graded" else rewards
        if (np.ptp(rewards, axis=1) > 0).any():
            return rewards


@pytest.mark.parametrize("G", [2, 3, 4, 8])
@pytest.mark.parametrize("P", [1, 2, 4, 16])
def test_the_rule_is_listed_and_alone_only_if_no_other_gives_these_numbers(P, G):
    rng = np.random.default_rng([P, G])
    inputs = 0
    for kind, digits, how in FORMS:
        rewards = drawn(kind, P, G, rng)
        logged = rewards if digits is None else rewards.round(digits)
        made = {name: written(rule(rewards), how) for name, rule in CONVENTIONS.items()}
        if all(np.ptp(logged, axis=1) == 0):
            continue
        answered = {}
        for name, advantages in made.items():
            if not advantages.any():
                continue
            inputs += 1
            key = advantages.tobytes()
            if key not in answered:
                answered[key] = identify(logged, advantages)
            names = answered[key].names
            same = {other for other, values in made.items() if np.array_equal(values, advantages)}
            assert same <= set(names), (name, kind, digits, how, logged, advantages)
    assert inputs > 330  # 16 times: more than 5,000


def merged(rule, r):
    pairs = r[: len(r) // 2 * 2].reshape(-1, 2 * r.shape[1])
    return np.concatenate([rule(pairs).reshape(-1, r.shape[1]), rule(r[len(r) // 2 * 2 :])])


def in_halves(rule, r):
    return rule(r.reshape(2 * len(r), -1)).reshape(r.shape)


def zeroed(rule, r):
    advantages = rule(r)
    advantages[0, np.argmax(np.abs(advantages[0]))] = 0
    return advantages


FAULTS = {
    "random": lambda rule, r: np.random.default_rng(r.size).normal(size=r.shape),
    "merged": merged,
    "in halves": in_halves,
    "zeroed rows": zeroed,
    "clipped": lambda rule, r: np.clip(rule(r), -0.4, 0.4),
    "a KL in the reward": lambda rule, r: rule(
        r - 0.02 * np.random.default_rng(r.size).random(r.shape)
    ),
    "one of two columns": lambda rule, r: rule(
        r + (np.random.default_rng(r.size).random(r.shape) < 0.5)
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_no_rule_made_has_no_name_unless_the_numbers_are_those_of_one(fault):
    rng = np.random.default_rng(3)
    for P in (2, 8):
        for G in (4, 8):
            for kind in ("binary", "graded", "rounded"):
                for name in ("trl.grpo(group)", "rllm.grpo", "tinker"):
                    rewards = drawn(kind, P, G, rng)
                    advantages = FAULTS[fault](CONVENTIONS[name], rewards).astype(float)
                    found = identify(rewards, advantages)
                    error = read_precision(advantages).error(advantages) + 1e-4
                    for named in found.names:
                        agrees = np.abs(CONVENTIONS[named](rewards) - advantages) <= error
                        doubtful = [one for one in found.candidates if one.rewards_error]
                        assert agrees.all() or "may be rounded, or lack" in str(found)
                        assert agrees.all() or doubtful


def test_what_no_rule_made_has_no_name_in_a_batch_that_can_tell():
    rewards = drawn("rounded", 16, 8, np.random.default_rng(0))
    for fault in FAULTS.values():
        assert identify(rewards, fault(TRL, rewards)).names == ()
