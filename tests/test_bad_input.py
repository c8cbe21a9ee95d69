from math import inf, nan

import numpy as np
import pytest

import grpo

SOME = np.random.default_rng(0)
HALF = [0.5, 0.5]

OF_REWARDS = {
    "advantages": grpo.advantages,
    "centred_rewards": grpo.centred_rewards,
    "leave_one_out_baseline": grpo.leave_one_out_baseline,
    "rloo_advantages": grpo.rloo_advantages,
    "nondegenerate_mask": grpo.nondegenerate_mask,
    "advantage_invariants": lambda r: grpo.advantage_invariants(r, r),
}
SILENT = {
    "silent_shares": grpo.silent_shares,
    "reward_spread": lambda r, *bounds: grpo.reward_spread(r, 0, *bounds),
}
OF_P_AND_G = {
    "degenerate_probability": grpo.degenerate_probability,
    "silent_probabilities": grpo.silent_probabilities,
    "informative_probability": grpo.informative_probability,
    "informative_groups": lambda p, G: grpo.informative_groups(100, p, G),
    "informative_per_rollout": grpo.informative_per_rollout,
    "rollouts_per_informative_group": grpo.rollouts_per_informative_group,
    "baseline_variance": grpo.baseline_variance,
    "baseline_standard_error": grpo.baseline_standard_error,
}
OF_ONE_P = {
    "sample_groups": lambda p: grpo.sample_groups(p, 4, 2, rng=SOME),
    "expectation_over_outcomes": lambda p: grpo.expectation_over_outcomes([1, 2], p, 1),
    "expectation_over_counts": lambda p: grpo.expectation_over_counts([1, 2], p, 1),
    "grpo_step_stats": lambda p: grpo.grpo_step_stats(p, 4, rng=SOME),
    "full_batch_probability": lambda p: grpo.full_batch_probability(2, 4, p, 4),
    "groups_to_sample": lambda p: grpo.groups_to_sample(2, p, 4),
}
OF_COUNTS = {
    "full_batch_probability G": ("G", lambda n: grpo.full_batch_probability(2, 4, 0.5, n)),
    "full_batch_probability live": ("live", lambda n: grpo.full_batch_probability(n, 4, 0.5, 4)),
    "groups_to_sample G": ("G", lambda n: grpo.groups_to_sample(2, 0.5, n)),
    "groups_to_sample live": ("live", lambda n: grpo.groups_to_sample(n, 0.5, 4)),
    "sample_groups G": ("G", lambda n: grpo.sample_groups(0.5, n, 2, rng=SOME)),
    "grpo_step_stats G": ("G", lambda n: grpo.grpo_step_stats(0.5, n, rng=SOME)),
    "grpo_step_stats n": ("n_prompts", lambda n: grpo.grpo_step_stats(0.5, 4, n, rng=SOME)),
    "sample_log_ratio": ("n", lambda n: grpo.sample_log_ratio(HALF, HALF, n, rng=SOME)),
    "outcomes": ("G", grpo.outcomes),
    "expectation_over_outcomes": (
        "G",
        lambda n: grpo.expectation_over_outcomes([1, 2], 0.5, n),
    ),
    "expectation_over_counts": ("G", lambda n: grpo.expectation_over_counts([1, 2], 0.5, n)),
    "batch_arithmetic prompts": ("prompts", lambda n: grpo.batch_arithmetic(n, 4, 8)),
    "batch_arithmetic G": ("G", lambda n: grpo.batch_arithmetic(100, n, 8)),
    "batch_arithmetic per_device": ("per_device", lambda n: grpo.batch_arithmetic(100, 4, n)),
    "batch_arithmetic devices": ("devices", lambda n: grpo.batch_arithmetic(100, 4, 8, n)),
    "batch_arithmetic accumulation": (
        "accumulation",
        lambda n: grpo.batch_arithmetic(100, 4, 8, accumulation=n),
    ),
    "batch_arithmetic epochs": ("epochs", lambda n: grpo.batch_arithmetic(100, 4, 8, epochs=n)),
}
OF_RNG = {
    "sample_groups": lambda rng: grpo.sample_groups(0.5, 4, 2, rng=rng),
    "sample_log_ratio": lambda rng: grpo.sample_log_ratio(HALF, HALF, 3, rng=rng),
    "grpo_step_stats": lambda rng: grpo.grpo_step_stats(0.5, 4, rng=rng),
}
OF_LOG_RATIOS = {"k1": grpo.k1, "k2": grpo.k2, "k3": grpo.k3}
OF_TWO_DISTRIBUTIONS = {
    "log_ratio": grpo.log_ratio,
    "kl_divergence": grpo.kl_divergence,
    "exact_summary": lambda p, q: grpo.exact_summary(grpo.k1, p, q),
    "sample_log_ratio": lambda p, q: grpo.sample_log_ratio(p, q, 3, rng=SOME),
}
OF_VALUES = {
    "expectation_over_outcomes": lambda v: grpo.expectation_over_outcomes(v, 0.5, 2),
    "expectation_over_counts": lambda v: grpo.expectation_over_counts(v, 0.5, 3),
}


def each(functions, *bad):
    """Return a row for each function and each of `bad`, a tuple of arguments and a message."""
    return [
        pytest.param(lambda f=f, args=args: f(*args), message, id=f"{name}: {message}")
        for name, f in functions.items()
        for *args, message in bad
    ]


BAD = [
    *each(
        OF_REWARDS
        | {"all_equal": grpo.all_equal, "Convention": grpo.Convention("group mean", None)}
        | SILENT,
        (1.5, "scalar 1.5"),
        ([], "G = 0"),
        ([[], []], r"G = 0 .*\(2, 0\)"),
        ([[1, 0], [1]], "rewards must be numbers in a rectangular array"),
        ([["a", "b"]], "rewards must be .*'a'"),
        ([[1, 0], [nan, 1]], r"rewards\[1, 0\] is nan"),
        ([[1, inf]], r"rewards\[0, 1\] is inf"),
        ([[1, -inf]], r"rewards\[0, 1\] is -inf"),
        ([[1, inf, -inf]], r"rewards\[0, 1\] is inf"),
        (None, "rewards .* None"),
        ([[1, None]], r"rewards .*\[1, None\]"),
        ([[1j, 0]], "rewards .*1j"),
        ([["1", "0"]], "rewards .*'1'"),
        ([[10**400, 0]], "rewards .*10000"),
        ({"r": 1}, "rewards .*'r': 1"),
    ),
    *each(
        {name: OF_REWARDS[name] for name in ("leave_one_out_baseline", "rloo_advantages")},
        ([1], "at least 2 rollouts, got G = 1"),
        ([[1], [0]], r"at least 2 rollouts, got G = 1 .*\(2, 1\)"),
    ),
    *each(
        OF_REWARDS,
        ([[1e308, 1e308]], "rewards are too large.*float64"),
        (np.full((2, 4), 3e38, np.float32), "rewards are too large.*float32"),
    ),
    *each(
        {name: OF_REWARDS[name] for name in ("advantages", "nondegenerate_mask")},
        ([1e200, 0], "rewards are too large.*float64"),
        (np.array([[1, 0], [1e30, 0]], np.float32), "rewards are too large.*float32"),
    ),
    *each(
        {"advantages": lambda correction: grpo.advantages([1, 0, 1, 0], correction)},
        (4, "correction .*G = 4.* got 4"),
        (-1, "correction .* got -1"),
        (0.5, "correction .* got 0.5"),
        (nan, "correction .* got nan"),
        ("1", "correction .* got '1'"),
        (None, "correction .* got None"),
        (1j, "correction .* got 1j"),
        ([0, 1], r"correction .* got \[0, 1\]"),
        (np.array([0, 1]), r"correction .* got .*\[0, 1\]"),
    ),
    *each(
        {
            "advantages eps": lambda eps: grpo.advantages([1, 0], eps=eps),
            "nondegenerate_mask tol": lambda tol: grpo.nondegenerate_mask([1, 0], tol),
        },
        (-1e-8, "(eps|tol) .*-1e-08"),
        (nan, "(eps|tol) .*nan"),
        (inf, "(eps|tol) .*inf"),
        (None, "(eps|tol) .*None"),
        ("1", "(eps|tol) .*'1'"),
        (1j, "(eps|tol) .*1j"),
        ([1e-8, 1], r"(eps|tol) .*\[1e-08, 1\]"),
    ),
    *each(
        {"advantages": lambda rewards, eps: grpo.advantages(rewards, eps=eps)},
        ([1, 1, 1], 0, "eps = 0.*equal rewards"),
        ([[1, 0], [1, 1]], 0, "eps = 0.*equal rewards"),
        ([5], 0, "eps = 0.*equal rewards"),
        # the mean of three 0.1 is not 0.1 in float64, so the std is not 0
        ([0.1] * 3, 0, "eps = 0.*equal rewards"),
        # the square of 1e-30 is 0 in float32, and so is eps
        (np.array([1e-30, 0], np.float32), 1e-50, "eps = 1e-50 and the spread .*float32"),
    ),
    *each(
        {"bessel_ratio": grpo.bessel_ratio},
        (0, "G .* got 0"),
        ([4, -1], "G .* got -1"),
        (2.5, "G .* got 2.5"),
        (nan, "G is nan"),
        ("four", "G must be .*'four'"),
        (None, "G .* None"),
        (4j, "G .*4j"),
        (1e300, r"G .* got 1e\+300"),
        # the first even number above the integers that float64 holds without a gap
        (2**53 + 2, r"G .* got 9.0072e\+15|got 9007199254740994"),
    ),
    *each(
        OF_P_AND_G,
        (-0.1, 4, r"p must be in \[0, 1\], got -0.1"),
        ([0.5, 1.5, -1], 4, r"p must be in \[0, 1\], got 1.5"),
        ([0.5, nan], 4, r"p\[1\] is nan"),
        (inf, 4, "p is inf"),
        ("half", 4, "p must be .*'half'"),
        (None, 4, "p .* None"),
        (0.5j, 4, "p .*0.5j"),
        (0.5, 0, "G .* got 0"),
        (0.5, [4, -2, 0], "G .* got -2"),
        (0.5, 3.5, "G .* got 3.5"),
        (0.5, nan, "G is nan"),
        (0.5, inf, "G is inf"),
        (0.5, "four", "G must be .*'four'"),
        (0.5, None, "G .* None"),
        (0.5, 4j, "G .*4j"),
        ([0.5, 0.5], [2, 3, 4], r"\([23],\) \([23],\)"),
    ),
    *each(
        OF_ONE_P,
        (-0.1, r"p must be in \[0, 1\], got -0.1"),
        (1.5, r"p must be in \[0, 1\], got 1.5"),
        (nan, "p is nan"),
        ([0.5, 0.5], r"one number, got .*\(2,\)"),
        ("half", "p must be .*'half'"),
        (None, "p .* None"),
        (0.5j, "p .*0.5j"),
    ),
    *[
        row
        for name, (argument, f) in OF_COUNTS.items()
        for row in each(
            {name: f},
            (0, f"{argument} must be >= 1, got 0"),
            (-3, f"{argument} must be >= 1, got -3"),
            (2.5, f"{argument} must be a whole number, got 2.5"),
            (nan, f"{argument} must be a whole number, got nan"),
            ("2", f"{argument} must be a whole number, got '2'"),
            (None, f"{argument} must be a whole number, got None"),
            (1j, f"{argument} must be a whole number, got 1j"),
        )
    ],
    *each(
        {
            "sample_groups n": lambda n: grpo.sample_groups(0.5, 4, n, rng=SOME),
            "informative_groups budget": lambda n: grpo.informative_groups(n, 0.5, 4),
        },
        (-1, "(n|budget) must be >= 0, got -1"),
        (1.5, "(n|budget) must be a whole number, got 1.5"),
        (None, "(n|budget) must be a whole number, got None"),
    ),
    *each(
        OF_RNG,
        (None, "rng must be a numpy.random.Generator, got None"),
        (0, "Generator, got 0"),
        (np.random, "Generator, got <module 'numpy.random'"),
        (np.random.RandomState(0), "Generator, got RandomState"),
        (np.random.default_rng, "Generator, got <.*default_rng"),
    ),
    *each(
        OF_LOG_RATIOS,
        (nan, "u is nan"),
        ([0, inf], r"u\[1\] is inf"),
        ([[0, -inf]], r"u\[0, 1\] is -inf"),
        ([[0], [0, 1]], "u must be numbers in a rectangular array"),
        ("one", "u must be .*'one'"),
        (None, "u .* None"),
        (1j, "u .*1j"),
    ),
    *each({"k2": grpo.k2}, ([0, -1e200], r"overflows float64 at u = -1e\+200")),
    *each(
        {"k3": grpo.k3},
        (1000.0, "overflows float64 at u = 1000.0"),
        ([0, 720, 710], "overflows float64 at u = 720.0"),
        (np.float32(100), "overflows float32 at u = 100.0"),
    ),
    *each(
        OF_TWO_DISTRIBUTIONS,
        ([0.5, 0.6], HALF, r"policy must sum to 1, got 1\.1"),
        (HALF, [0.5, 0.4], r"reference must sum to 1, got 0\.9"),
        ([0.5, 0.5 - 1.5e-9], HALF, r"policy must sum to 1, got 0\.9999999985"),
        ([0, -0.5, 1.75, -0.25], HALF, "policy must not be negative, got -0.5"),
        (HALF, [1.5, -0.5], "reference must not be negative, got -0.5"),
        ([], [], r"policy .*\(0,\)"),
        (1, 1, r"policy .*\(\)"),
        ([HALF], [HALF], r"policy .*\(1, 2\)"),
        (HALF, [HALF], r"reference .*\(1, 2\)"),
        ([1], HALF, r"\(1,\) and \(2,\)"),
        ([0.5, nan], HALF, r"policy\[1\] is nan"),
        (HALF, [inf, 0.5], r"reference\[0\] is inf"),
        (HALF, [0, 1], r"infinite: reference\[0\] is 0, policy\[0\] is 0.5"),
        ([0, 0.25, 0.75], [0.5, 0.5, 0], r"infinite: reference\[2\] is 0, policy\[2\] is 0.75"),
        ("ab", HALF, "policy must be .*'ab'"),
        (None, HALF, "policy .* None"),
        (HALF, None, "reference .* None"),
        ([0.5j, 0.5], HALF, "policy .*0.5j"),
    ),
    *each(
        {"sample_summary": grpo.sample_summary},
        ([], 0.1, r"two or more, got shape \(0,\)"),
        ([1], 0.1, r"two or more, got shape \(1,\)"),
        (1, 0.1, r"two or more, got shape \(\)"),
        ([[1, 2]], 0.1, r"two or more, got shape \(1, 2\)"),
        ([1, nan], 0.1, r"estimates\[1\] is nan"),
        ([1, -inf], 0.1, r"estimates\[1\] is -inf"),
        (["a", "b"], 0.1, "estimates must be .*'a'"),
        (None, 0.1, "estimates .* None"),
        ([1j, 2], 0.1, "estimates .*1j"),
        ([1, 2], nan, "true_kl is nan"),
        ([1, 2], inf, "true_kl is inf"),
        ([1, 2], None, "true_kl .* None"),
        ([1, 2], 1j, "true_kl .*1j"),
        ([1, 2], [0.1], r"true_kl .*\(1,\)"),
    ),
    *each({"outcomes": grpo.outcomes}, (21, "<= 20 .*got 21")),
    *each(
        {"expectation_over_outcomes": lambda G: grpo.expectation_over_outcomes([1, 2], 0.5, G)},
        (21, "<= 20 .*got 21"),
    ),
    *each(
        OF_VALUES,
        (1, r"= 4 rows, got shape \(\)"),
        ([1, 2, 3], r"= 4 rows, got shape \(3,\)"),
        ([1, 2, 3, 4, 5], r"= 4 rows, got shape \(5,\)"),
        ([1, 2, nan, 4], r"values\[2\] is nan"),
        ([1, 2, 3, inf], r"values\[3\] is inf"),
        ([[1], [2], [3, 4], [5]], "values must be numbers in a rectangular array"),
        (["a", "b", "c", "d"], "values must be .*'a'"),
        (None, "values .* None"),
        ([1, 2, 3, 4j], "values .*4j"),
    ),
    *each(
        SILENT,
        (np.ones((0, 4)), r"\(0, 4\)"),
        ([[1, 0]], 1, 1, "lowest must be < highest, got 1.0 and 1.0"),
        ([[1, 0]], 2, "lowest must be < highest, got 2.0 and 1.0"),
        ([[1, 0]], nan, "lowest is nan"),
        ([[1, 0]], 0, inf, "highest is inf"),
        ([[1, 0]], [0], r"lowest must be one number, got \[0\]"),
        ([[1, 0]], 0, None, "highest .* None"),
    ),
    *each(
        {"batch_arithmetic": grpo.batch_arithmetic},
        (100, 3, 8, "G = 3 does not divide the 8 completions"),
        (100, 3, 4, 2, 2, "G = 3 does not divide the 16 completions"),
        (100, 4, 8, 1, 1, 1, "tokens", "unit must be 'completions' or 'prompts', got 'tokens'"),
    ),
    *each(
        {"whitened_advantages": grpo.whitened_advantages},
        ([], r"not be empty.*\(0,\)"),
        ([1, nan], r"computed\[1\] is nan"),
        ([[1, -inf]], r"computed\[0, 1\] is -inf"),
        ([[1, 0], [1]], "computed must be numbers in a rectangular array"),
        (["a", "b"], "computed must be .*'a'"),
        (None, "computed .* None"),
        ([1e200, 0], "computed is too large"),
        ([1, 0], [1], r"\(2,\) and \(1,\)"),
        ([1, 0], 5, r"\(2,\) and \(\)"),
        ([1, 0], [1, -2], "lengths must be whole numbers >= 0, got -2"),
        ([1, 0], [1, 2.5], "lengths must be whole numbers >= 0, got 2.5"),
        ([1, 0], [1, nan], r"lengths\[1\] is nan"),
        ([1, 0], [0, 0], "correction must be < 0, the number of responses or tokens, got 0"),
        ([1, 0], None, 2, "correction must be < 2, the number of responses or tokens, got 2"),
        ([1, 0], [1, 2], 3, "correction must be < 3, .* got 3"),
        ([1, 0], None, -1, "correction must be >= 0, got -1"),
        ([1, 0], None, 0.5, "correction must be a whole number, got 0.5"),
        ([1, 0], None, 0, -1, "eps must be >= 0, got -1"),
        ([1, 0], None, 0, nan, "eps is nan"),
        ([1e-200, 0], None, 0, 0, "eps = 0"),
    ),
    *each(
        {"expectation_over_counts": grpo.expectation_over_counts},
        (np.ones(1031), 0.5, 1030, "got 1030"),
    ),
    *each(
        {"identify": grpo.identify},
        ([[1, 0]], [[1, -1]], -1, r"atol .* got -1"),
        ([[1, 0]], [[1, -1]], None, nan, r"rewards_atol .* nan"),
        ([[1, 0]], [[1, -1]], "much", r"atol must be .*much"),
        ([[1, nan]], [[1, -1]], r"rewards\[0, 1\] is nan"),
        ([[1, 0]], [[1, inf]], r"advantages\[0, 1\] is inf"),
        ([[1, 1]], [[0, 0]], "all rewards of every group are equal"),
        ([1, 0], [1, -1], r"one shape \(groups, G\), got \(2,\)"),
        ([[1], [0]], [[1], [0]], "a group of one rollout"),
        ([[1, 0]], None, "advantages .* None"),
    ),
    *each(
        {"group_evidence": grpo.group_evidence},
        ([[1, 0], [1]], [[1, -1], [1]], "group 1 has 1"),
        ([[1, 0]], [[1, -1, 0]], r"sizes \[2\] and \[3\]"),
        ([[1, nan]], [[1, -1]], r"rewards\[0\]\[1\] is nan"),
        ([[1, 0]], [[1, -1]], -1, r"atol .* got -1"),
        ([[1, 0]], None, "advantages must be groups of numbers, got None"),
        ([[[1, 0]]], [[[1, -1]]], r"shape \(G,\), got \(1, 2\)"),
    ),
    *each(
        {"read_precision": grpo.read_precision},
        ([1, nan], r"values\[1\] is nan"),
        (inf, "values is inf"),
        ([1j], "values must be real numbers"),
        ("ab", "values must be real numbers, got 'ab'"),
    ),
    *each(
        {"advantage_invariants": grpo.advantage_invariants},
        ([1, 0], [1, -1], r"\(2,\) and \(2,\)"),
        ([[[1, 0]]], [[[1, -1]]], r"\(1, 1, 2\) and \(1, 1, 2\)"),
        ([[1, 0]], [[1, -1], [1, -1]], r"\(1, 2\) and \(2, 2\)"),
        ([[1, 0]], [1, -1], r"\(1, 2\) and \(2,\)"),
        (np.ones((0, 4)), np.ones((0, 4)), r"\(0, 4\) and \(0, 4\)"),
        ([[1, 0]], [[1, nan]], r"computed\[0, 1\] is nan"),
        ([[1, 0]], [[inf, 0]], r"computed\[0, 0\] is inf"),
        ([[1, 0]], [["a", "b"]], "computed must be .*'a'"),
        ([[1, 0]], None, "computed .* None"),
        ([[1, 0]], [[1j, 0]], "computed .*1j"),
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
