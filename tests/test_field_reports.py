"""Public bug reports, each by its worked value, and beside it the rule that it is a case of.

`data/field_reports.json` says where each was reported and how the value was worked out.
"""

import json
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest
from book_pages import read_all
from hypothesis import given
from hypothesis import strategies as st
from strategies import distribution_pairs, rewards, seeds

from grpo import (
    CONVENTIONS,
    Convention,
    advantages,
    aggregate_loss,
    all_equal,
    batch_arithmetic,
    by_group,
    centred_rewards,
    clip_binds,
    clipped_loss,
    decoupled_advantages,
    degenerate_probability,
    expectation_over_counts,
    grpo_loss,
    k1,
    k2,
    k3,
    kl_divergence,
    kl_gradient,
    log_ratio,
    nondegenerate_mask,
    overlong_penalty,
    penalty_gradients,
    rejection_mask,
    reward_spread,
    rloo_advantages,
    round_to_bfloat16,
    silent_probabilities,
    silent_shares,
    success_count_probabilities,
    whitened_advantages,
)

REPORTS = json.loads(
    Path(__file__).with_name("data").joinpath("field_reports.json").read_text(encoding="utf-8")
)
NUMERIC = {report["id"]: report for report in REPORTS if report["kind"] == "numeric"}
ASKED = [report for report in REPORTS if report["kind"] in ("numeric", "use")]
DTYPES = (np.float16, np.float32, np.float64)
SINGLE_ZERO = Convention("group mean", "group std", 1, single="zero")


def case(name):
    report = NUMERIC[name]
    return report["input"], report["expected"]


def close(found, name, key):
    report = NUMERIC[name]
    expected = report["expected"]
    for part in key.split("."):
        expected = expected[part]
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(report["tolerance"], 1e-15))


def test_every_numeric_report_has_a_test_that_reads_all_its_values(monkeypatch):
    class Recorded(dict):
        def __getitem__(self, key):
            read.add((name, key))
            return super().__getitem__(key)

    tests = {
        name.split("_")[1].upper(): function
        for name, function in globals().items()
        if re.match(r"test_[nr]\d\d_", name)
    }
    assert set(tests) == set(NUMERIC)
    read = set()
    for name, function in tests.items():
        monkeypatch.setitem(NUMERIC[name], "expected", Recorded(NUMERIC[name]["expected"]))
        function()
    values = {
        (name, key)
        for name, report in NUMERIC.items()
        for key, value in report["expected"].items()
        if not isinstance(value, str)
    }
    assert not values - read


def test_n01_four_definitions_of_one_group():
    given_case, _ = case("N01")
    r = np.array(given_case["rewards"])
    close(advantages(r, eps=0)[[0, -1]], "N01", "population")
    close(advantages(r, correction=1, eps=0)[[0, -1]], "N01", "sample")
    close(centred_rewards(r)[[0, -1]], "N01", "centred_only")
    close(rloo_advantages(r)[[0, -1]], "N01", "rloo")


@given(rewards(min_group=2, spread=True))
def test_rule_no_population_advantage_exceeds_the_root_of_the_others(r):
    G = r.shape[-1]
    found = advantages(r, eps=0)
    assert np.abs(found).max() <= sqrt(G - 1) * (1 + 1e-12)
    bessel = advantages(r, correction=1, eps=0)
    np.testing.assert_allclose(bessel, found * sqrt((G - 1) / G), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(rloo_advantages(r), G / (G - 1) * centred_rewards(r), atol=1e-11)


def test_n02_a_single_rollout_does_not_poison_the_rest():
    given_case, expected = case("N02")
    r, ids = np.array(given_case["rewards"]), given_case["group_ids"]
    population = by_group(lambda group: advantages(group, eps=1e-300), r, ids)
    sample = by_group(SINGLE_ZERO, r, ids)
    assert np.isfinite([*population, *sample]).all() == expected["all_finite"]
    close(population[1:], "N02", "group1_population")
    close(sample[1:], "N02", "group1_sample")
    assert population[0] == sample[0] == expected["singleton_mean_baseline"]
    with pytest.raises(ValueError, match="at least 2 rollouts"):
        by_group(rloo_advantages, r, ids)
    raw = by_group(replace(CONVENTIONS["verl.grpo"], dtype=None), r, ids)
    assert raw[0] == pytest.approx(2, rel=1e-5)


@given(seeds, st.integers(1, 5))
def test_rule_groups_by_id_do_not_depend_on_order_or_on_other_groups(seed, n):
    rng = np.random.default_rng(seed)
    groups = [rng.integers(0, 3, size=rng.integers(1, 6)) / 4 for _ in range(n)]
    ids = np.repeat(rng.permutation(100)[:n], [len(group) for group in groups])
    flat = np.concatenate(groups)
    expected = np.concatenate([advantages(group) for group in groups])
    order = rng.permutation(len(flat))
    np.testing.assert_allclose(by_group(advantages, flat[order], ids[order]), expected[order])
    names = np.char.add("prompt ", ids.astype(str))
    np.testing.assert_array_equal(
        by_group(advantages, flat, names), by_group(advantages, flat, ids)
    )


def test_n06_the_spread_of_equal_rewards_is_zero():
    given_case, expected = case("N06")
    for group in given_case["rewards"]:
        std = reward_spread([group])["group_std_mean"]
        assert (std, std**2) == (expected["std"], expected["variance"])
        assert np.isrealobj(std) == expected["std_is_real"]
        assert all_equal(group) == expected["degenerate_group"]
        assert not nondegenerate_mask(group, tol=0)
        assert not advantages(group).any()


@given(
    st.floats(-1e4, 1e4),
    st.integers(2, 200),
    st.sampled_from(DTYPES),
    st.sampled_from([advantages, centred_rewards, rloo_advantages]),
)
def test_rule_equal_rewards_give_exactly_zero(value, G, dtype, function):
    group = np.full((2, G), value, dtype)
    assert not function(group).any()
    assert not nondegenerate_mask(group, tol=0).any()


def test_n07_a_group_is_dropped_for_its_spread_and_not_for_its_mean():
    given_case, expected = case("N07")
    groups = np.array(given_case["groups"])
    assert nondegenerate_mask(groups, given_case["tolerance"]).tolist() == expected["keep"]
    assert (~all_equal(groups)).tolist() == expected["keep_exact_tolerance_0"]


@given(rewards(), st.integers(-3, 3), st.integers(-4, 4))
def test_rule_what_is_silent_does_not_depend_on_shift_and_scale(r, shift, power):
    moved = (r + shift) * 2.0**power
    np.testing.assert_array_equal(all_equal(moved), all_equal(r))


def test_n08_a_group_is_kept_or_dropped_whole():
    given_case, expected = case("N08")
    r = np.array(given_case["rewards"])
    assert nondegenerate_mask(r) and r.size == expected["rows_kept"]
    close(advantages(r, eps=0), "N08", "population")
    assert advantages(r, eps=0).sum() == pytest.approx(expected["sum"], abs=1e-12)
    assert all_equal(r[1:])  # what dropping the one row would leave


@given(rewards(min_group=2, spread=True))
def test_rule_a_live_group_has_advantages_of_both_signs_that_sum_to_zero(r):
    found = advantages(r)
    assert nondegenerate_mask(r).all()
    assert ((found > 0).any(axis=-1) & (found < 0).any(axis=-1)).all()
    np.testing.assert_allclose(found.sum(axis=-1), 0, atol=1e-10)


def test_n09_eps_outside_and_inside_the_root():
    given_case, _ = case("N09")
    outside = Convention("group mean", "group std", given_case["ddof"], given_case["eps"])
    r = given_case["rewards"]
    close(outside(r), "N09", "eps_outside")
    close(replace(outside, eps_inside=True)(r), "N09", "eps_inside")
    close(replace(outside, eps=0)(r), "N09", "no_eps")


@given(rewards(min_group=2, spread=True), st.floats(1e-8, 1))
def test_rule_eps_inside_as_the_formula_says(r, eps):
    found = Convention("group mean", "group std", 0, eps, eps_inside=True)(r)
    mean = r.mean(axis=-1, keepdims=True)
    variance = np.mean((r - mean) ** 2, axis=-1, keepdims=True)
    np.testing.assert_allclose(found, (r - mean) / np.sqrt(variance + eps), rtol=1e-11, atol=1e-13)


def test_n12_tiny_differences_get_full_size_advantages():
    given_case, expected = case("N12")
    r = np.array(given_case["rewards"])
    found = [advantages(r / 0.01 * scale, eps=0) for scale in given_case["scales"]]
    for one in found:
        close(one, "N12", "population")
    assert np.allclose(found, found[0], rtol=0, atol=1e-9) == expected["same_for_all_scales"]
    close(centred_rewards(r), "N12", "centred_only")
    assert nondegenerate_mask(given_case["outcome"]) == expected["keep_by_outcome"]
    close(advantages([0, 1e-9], eps=0), "N12", "G2_population_any_gap")


@given(rewards(min_group=2, spread=True), st.integers(-8, 8), st.integers(-20, 20))
def test_rule_advantages_know_neither_shift_nor_scale(r, shift, power):
    moved = advantages((r + shift) * 2.0**power, eps=0)
    np.testing.assert_allclose(moved, advantages(r, eps=0), rtol=1e-9, atol=1e-9)


def test_n13_a_penalty_on_a_whole_group_cancels():
    given_case, expected = case("N13")
    r = np.array(given_case["rewards"], dtype=float)
    penalised = r - np.array(given_case["penalty_per_group"])[:, None]
    close(advantages(penalised, eps=0), "N13", "population")
    close(centred_rewards(penalised), "N13", "centred")
    changed = np.abs(advantages(penalised) - advantages(r)).max() > 1e-9
    assert changed == expected["changed_by_penalty"]


@given(rewards(min_group=2, max_dims=2), seeds)
def test_rule_what_all_rollouts_of_a_group_share_cancels(r, seed):
    r = np.atleast_2d(r)
    shared = np.random.default_rng(seed).integers(-64, 64, size=(len(r), 1)) / 8
    for function in (centred_rewards, rloo_advantages):
        np.testing.assert_allclose(function(r + shared), function(r), atol=1e-11)


def test_n16_normalise_each_reward_or_their_sum():
    given_case, _ = case("N16")
    groups, weights = np.array(given_case["groups"], dtype=float), given_case["weights"]
    close(advantages(groups @ weights, eps=0), "N16", "grpo_population")
    before = decoupled_advantages(groups, weights, eps=0, over_batch=False)
    close(before, "N16", "gdpo_before_batch_population")
    sample = decoupled_advantages(groups, weights, correction=1, eps=0, over_batch=False)
    close(sample, "N16", "gdpo_before_batch_sample")
    close(decoupled_advantages(groups, weights, eps=0), "N16", "gdpo_final_population")
    scaled = np.array([NUMERIC["N16"]["expected"]["scale_example"]["input"]], dtype=float)
    close(advantages(scaled @ weights, eps=0)[0], "N16", "scale_example.grpo_population")
    before = decoupled_advantages(scaled, weights, eps=0, over_batch=False)
    close(before[0], "N16", "scale_example.gdpo_before_batch")


@given(seeds, st.integers(1, 4), st.integers(2, 5), st.integers(1, 3))
def test_rule_the_unit_of_one_reward_does_not_matter_when_each_is_normalised(seed, n, G, m):
    rng = np.random.default_rng(seed)
    r = rng.integers(0, 5, size=(n, G, m)).astype(float)
    weights = rng.integers(1, 4, size=m)
    units = 10.0 ** rng.integers(-3, 4, size=m)
    found = decoupled_advantages(r * units, weights, eps=0)
    np.testing.assert_allclose(found, decoupled_advantages(r, weights, eps=0), rtol=1e-6, atol=1e-6)
    assert found.std() == pytest.approx(1) or not found.any()
    one = decoupled_advantages(r[..., :1], [1], eps=1e-8, over_batch=False)
    np.testing.assert_allclose(one, advantages(r[..., 0]), rtol=1e-12, atol=1e-12)


def test_n18_centre_by_group_and_scale_by_batch():
    given_case, expected = case("N18")
    groups = given_case["groups"]
    for correction, name in ((0, "population"), (1, "sample")):
        close(Convention("group mean", "batch std", correction)(groups), "N18", f"batch_{name}")
        found = reward_spread(groups, correction)["batch_std"]
        assert found == pytest.approx(expected[f"batch_std_{name}"], abs=1e-12)


@given(rewards(min_group=2, max_dims=2, spread=True))
def test_rule_a_shared_divisor_keeps_the_proportions_of_all_groups(r):
    scaled = Convention("group mean", "batch std")(r)
    centred = centred_rewards(r)
    np.testing.assert_allclose(scaled * r.std(), centred, rtol=1e-11, atol=1e-12)


def test_n19_which_standard_deviation_is_logged():
    given_case, expected = case("N19")
    found = reward_spread(given_case["groups"])
    assert found["group_std_mean"] == expected["mean_group_std"]
    assert found["groups/degenerate"] == expected["frac_zero_std"]
    close(found["batch_std"], "N19", "batch_std_population")
    close(reward_spread(given_case["groups"], 1)["batch_std"], "N19", "batch_std_sample")


@given(rewards(min_group=2, max_dims=2))
def test_rule_the_spread_of_the_batch_is_that_within_and_that_between(r):
    r = np.atleast_2d(r)
    found = reward_spread(r)
    within = np.mean(r.var(axis=1))
    between = r.mean(axis=1).var()
    assert found["batch_std"] ** 2 == pytest.approx(within + between, rel=1e-10, abs=1e-12)
    assert found["group_std_mean"] <= found["batch_std"] + 1e-12


def test_n23_the_first_loss_is_zero_and_its_gradient_is_not():
    given_case, expected = case("N23")
    logits, answers = [given_case["logits"]], [given_case["actions"]]
    found = advantages([given_case["rewards"]], eps=0)
    loss, gradient, _ = grpo_loss(logits, logits, logits, answers, found)
    assert loss == pytest.approx(expected["loss"], abs=1e-12)
    close(gradient[0], "N23", "grad_logits")


@given(seeds)
def test_rule_the_loss_at_the_sampling_policy_is_zero_for_any_batch(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(3, 4))
    answers = rng.integers(4, size=(3, 6))
    found = advantages((answers == 0).astype(float))
    loss, gradient, _ = grpo_loss(logits, logits, logits, answers, found)
    assert loss == pytest.approx(0, abs=1e-12)
    live = found.any(axis=1)
    assert gradient[live].any(axis=1).all() and not gradient[~live].any()


def test_n25_token_mean_and_sequence_mean():
    lengths = np.array(case("N25")[0]["lengths"])
    mask = np.arange(6) < lengths[:, None]
    values = np.where(mask, [[2.0], [10.0]], 777.0)
    close(aggregate_loss(values, mask, "tokens"), "N25", "token_mean")
    close(aggregate_loss(values, mask, "sequences"), "N25", "seq_mean")


def test_n26_micro_batches_over_the_tokens_of_the_whole():
    given_case, expected = case("N26")
    parts = [np.array([part]) for part in given_case["microbatches"]]
    tokens = sum(part.size for part in parts)
    found = sum(
        aggregate_loss(part, np.full(part.shape, True), "tokens", denominator=tokens)
        for part in parts
    )
    close(found, "N26", "token_mean")
    whole = np.concatenate(parts, axis=1)
    in_one = aggregate_loss(whole, np.full(whole.shape, True), "tokens")
    assert (abs(found - in_one) < 1e-12) == expected["independent_of_split"]


def test_n27_the_denominator_is_used_once():
    parts = [np.array([part], float) for part in case("N27")[0]["microbatches"]]
    tokens = sum(part.size for part in parts)
    found = sum(
        aggregate_loss(part, np.full(part.shape, True), "tokens", denominator=tokens)
        for part in parts
    )
    close(found, "N27", "accumulated")


@given(seeds, st.sampled_from(["tokens", "sequences", "constant", "sum"]))
def test_rule_no_split_of_a_batch_changes_its_loss(seed, by):
    rng = np.random.default_rng(seed)
    losses, mask = rng.normal(size=(6, 4)), rng.random((6, 4)) < 0.6
    mask[:, 0] = True
    longest = 4 if by == "constant" else None
    denominator = {"tokens": mask.sum(), "sum": None}.get(by, 6)
    cuts = [0, *sorted(rng.choice(np.arange(1, 6), size=2, replace=False)), 6]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    total = sum(
        aggregate_loss(losses[part], mask[part], by, longest, denominator) for part in parts
    )
    assert total == pytest.approx(aggregate_loss(losses, mask, by, longest), abs=1e-12)


def test_n29_silent_groups_in_the_denominator():
    given_case, expected = case("N29")
    A = np.array(given_case["advantages"])
    losses = clipped_loss(given_case["ratios"], A)[:, None]
    everything = np.full(losses.shape, True)
    live = np.repeat(~all_equal(A.reshape(-1, given_case["group_size"])), 2)[:, None]
    kept = aggregate_loss(losses, everything, "tokens")
    excluded = aggregate_loss(losses, live, "tokens")
    close(kept, "N29", "kept_in_denominator")
    close(excluded, "N29", "excluded")
    assert excluded / kept == pytest.approx(expected["ratio"], rel=1e-9)


def test_n30_rejected_tokens_leave_the_denominator():
    given_case, expected = case("N30")
    u = np.array(given_case["log_ratios"])
    keep = rejection_mask(u, *given_case["keep_range"])
    assert keep.tolist() == expected["keep"]
    losses = np.exp(u) * given_case["token_loss"]
    close(aggregate_loss(losses[None], keep[None], "tokens"), "N30", "loss")


def test_a_ratio_on_the_border_is_kept():
    assert rejection_mask([np.log(0.5), np.log(2.0)], low=0.5, high=2.0).all()


@given(seeds)
def test_rule_what_is_masked_changes_neither_value_nor_denominator(seed):
    rng = np.random.default_rng(seed)
    losses = rng.normal(size=(1, 12))
    keep = rng.random((1, 12)) < 0.5
    keep[0, 0] = True
    found = aggregate_loss(np.where(keep, losses, np.inf), keep, "tokens")
    assert found == pytest.approx(losses[keep].mean(), rel=1e-12, abs=1e-13)


@given(st.floats(-800, 800), st.floats(0.01, 1), st.floats(1, 100))
def test_rule_rejection_does_not_overflow(u, low, high):
    found = rejection_mask([u], low, high)[0]
    if abs(u) < 700 and min(abs(exp(u) / low - 1), abs(exp(u) / high - 1)) > 1e-9:
        assert found == (low <= exp(u) <= high)
    elif abs(u) >= 700:
        assert not found


def test_n32_where_the_clip_binds():
    given_case, expected = case("N32")
    ratio, A, eps = given_case["ratios"], given_case["advantages"], given_case["eps"]
    losses = clipped_loss(ratio, A, eps, eps)
    close(-losses, "N32", "objective")
    close(losses.mean(), "N32", "loss")
    binds = clip_binds(ratio, A, eps, eps)
    assert binds.tolist() == expected["zero_gradient"]
    close(binds.mean(), "N32", "clip_fraction_binding")
    close(np.mean(np.abs(np.subtract(ratio, 1)) > eps), "N32", "fraction_outside_interval")


def test_n33_two_bounds():
    given_case, _ = case("N33")
    ratio, A = given_case["ratios"], np.array(given_case["advantages"])
    bounds = given_case["eps_low"], given_case["eps_high"]
    losses, binds = clipped_loss(ratio, A, *bounds), clip_binds(ratio, A, *bounds)
    close(-losses, "N33", "objective")
    close(losses.mean(), "N33", "loss")
    close(np.mean(binds & (A < 0)), "N33", "low_fraction")
    close(np.mean(binds & (A > 0)), "N33", "high_fraction")


@given(st.floats(0, 5), st.floats(-5, 5), st.floats(0, 0.99), st.floats(0, 2))
def test_rule_the_clipped_objective_is_never_above_the_free_one(ratio, A, low, high):
    found = -clipped_loss(ratio, A, low, high)
    assert found <= ratio * A
    binds = clip_binds(ratio, A, low, high)
    assert binds == (found < ratio * A) or A == 0 or found == pytest.approx(ratio * A)
    if 1 - low <= ratio <= 1 + high:
        assert not binds


def test_n38_sign_and_direction_of_the_divergence():
    given_case, _ = case("N38")
    policy, reference = np.array(given_case["policy"]), np.array(given_case["reference"])
    u = log_ratio(policy, reference)
    close(kl_divergence(policy, reference), "N38", "kl_policy_ref")
    close(kl_divergence(reference, policy), "N38", "kl_ref_policy")
    for name, estimator in (("k1", k1), ("k2", k2), ("k3", k3)):
        close(estimator(u), "N38", name)
        close(policy @ estimator(u), "N38", f"mean_{name}")


@given(distribution_pairs())
def test_rule_a_divergence_is_not_negative_and_k1_and_k3_have_it_as_mean(pair):
    policy, reference = pair
    divergence, u = kl_divergence(policy, reference), log_ratio(policy, reference)
    assert divergence >= -1e-15
    assert policy @ k1(u) == pytest.approx(divergence, abs=1e-12)
    assert policy @ k3(u) == pytest.approx(divergence, abs=1e-9)
    assert k3(u).min() >= 0


def test_n41_silent_groups_still_feel_the_penalty():
    given_case, expected = case("N41")
    policy, reference = np.array(given_case["policy"]), np.array(given_case["reference"])
    found = advantages(given_case["rewards"])
    score = np.eye(2)[[0, 0, 1, 1]] - policy
    np.testing.assert_array_equal(-found @ score / 4, expected["policy_grad"])
    in_loss = policy @ penalty_gradients(k3, "loss", policy, reference)
    close(given_case["beta"] * in_loss, "N41", "total_grad_k3")
    reverse = given_case["beta"] * kl_gradient(policy, reference)
    close(reverse, "N41", "total_grad_reverse_kl")


@given(seeds, st.floats(0.01, 1))
def test_rule_the_penalty_of_a_silent_group_is_that_of_the_penalty_alone(seed, beta):
    rng = np.random.default_rng(seed)
    logits, reference = rng.normal(size=(2, 1, 4))
    answers = rng.integers(4, size=(1, 6))
    silent = advantages(np.ones((1, 6)))
    gradient = grpo_loss(logits, logits, reference, answers, silent, beta=beta)[1]
    policy = np.exp(logits[0]) / np.exp(logits[0]).sum()
    other = np.exp(reference[0]) / np.exp(reference[0]).sum()
    rows = penalty_gradients(k3, "loss", policy, other)
    np.testing.assert_allclose(gradient[0], beta * rows[answers[0]].mean(axis=0), atol=1e-10)


def test_n43_how_often_a_group_is_silent():
    given_case, _ = case("N43")
    close(degenerate_probability(given_case["p"], given_case["G"]), "N43", "p_dead")


@given(st.fractions(0, 1), st.integers(1, 30))
def test_rule_a_silent_group_is_all_right_or_all_wrong(p, G):
    exact = Fraction(p) ** G + (1 - Fraction(p)) ** G
    assert degenerate_probability(float(p), G) == pytest.approx(float(exact), rel=1e-9)


def test_n46_soft_overlong_penalty():
    given_case, _ = case("N46")
    found = overlong_penalty(given_case["L"], given_case["L_max"], given_case["L_cache"])
    close(found, "N46", "penalty")


@given(st.integers(1, 1000), st.data())
def test_rule_the_penalty_falls_from_nothing_to_minus_one(longest, data):
    ramp = data.draw(st.integers(1, longest))
    found = overlong_penalty(np.arange(longest + 5), longest, ramp)
    assert (np.diff(found) <= 0).all()
    assert found[longest - ramp] == 0
    assert found[longest] == found[-1] == -1
    np.testing.assert_allclose(np.diff(found[longest - ramp : longest + 1]), -1 / ramp, rtol=1e-9)


def bfloat16_sum(term, n):
    total = np.float32(0)
    for _ in range(n):
        total = round_to_bfloat16(total + np.float32(term))
    return total


def test_n47_bfloat16():
    given_case, expected = case("N47")
    rounded = float(round_to_bfloat16(given_case["logp"]))
    assert rounded == expected["bf16_logp"]
    assert exp(given_case["logp"] - rounded) == pytest.approx(
        expected["ratio_fp32_over_bf16"], abs=1e-6
    )
    between = np.arange(4, 8, 2.0**-8)  # halfway between two numbers among others
    error = np.abs(round_to_bfloat16(between).astype(float) - between).max()
    assert error == expected["max_abs_error_for_logp_in_4_8"]
    assert exp(error) == pytest.approx(expected["max_single_token_ratio"], rel=1e-12)
    assert given_case["ones_to_add"] == expected["true_sum"]
    assert bfloat16_sum(1, given_case["ones_to_add"]) == expected["sum_of_1000_ones_bf16"]
    assert (
        bfloat16_sum(-0.5, given_case["halves_to_add"]) == expected["sum_of_1000_minus_half_bf16"]
    )


def test_bfloat16_rounds_ties_to_the_even_digit():
    step = 2.0**-7  # above 1
    ties = 1 + step * np.array([0.5, 1.5, 2.5])
    np.testing.assert_array_equal(round_to_bfloat16(ties), 1 + step * np.array([0, 2, 2]))
    above = np.nextafter(ties, 2)
    np.testing.assert_array_equal(round_to_bfloat16(above), 1 + step * np.array([1, 2, 3]))
    single = np.nextafter(ties.astype(np.float32), np.float32(2))
    np.testing.assert_array_equal(round_to_bfloat16(single), 1 + step * np.array([1, 2, 3]))


@given(st.floats(-1e30, 1e30))
def test_rule_bfloat16_is_the_nearest_number_with_eight_binary_digits(x):
    found = float(round_to_bfloat16(x))
    if abs(x) < 1e-30:
        return
    exponent = int(np.floor(np.log2(abs(x))))
    step = Fraction(2) ** (exponent - 7)
    scaled = Fraction(x) / step
    nearest = int(np.floor(scaled)) if scaled - int(np.floor(scaled)) < Fraction(1, 2) else None
    expected = round(scaled)  # Python rounds a tie to the even one
    assert found == float(expected * step)
    assert nearest in (None, expected)
    assert float(round_to_bfloat16(found)) == found


def test_r01_only_the_place_in_the_group_is_left():
    given_case, expected = case("R01")
    for i, group in enumerate(given_case["groups"]):
        for name, correction in (("population", 0), ("sample", 1)):
            found = advantages(group, correction, eps=given_case["eps"])
            np.testing.assert_allclose(found, expected[name][i], rtol=0, atol=1e-9)
    assert given_case["groups"][3] == [10 * r for r in given_case["groups"][4]]


@given(st.integers(2, 40), st.integers(1, 1000), st.integers(-8, 8))
def test_rule_one_against_the_rest_has_the_advantages_of_its_group_size(G, size, worst):
    group = np.full(G, float(worst))
    group[-1] += size
    found = advantages(group, eps=0)
    np.testing.assert_allclose(found[:-1], -1 / sqrt(G - 1), rtol=1e-9)
    assert found[-1] == pytest.approx(sqrt(G - 1), rel=1e-9)
    assert advantages(group, 1, eps=0)[-1] == pytest.approx((G - 1) / sqrt(G), rel=1e-9)


def test_r03_a_reward_that_does_not_apply_adds_nothing():
    given_case, _ = case("R03")
    weights, over_batch = given_case["weights"], given_case["over_batch"]
    for name in ("whole_group_missing", "one_missing"):
        r = np.array(given_case[name], dtype=float)
        close(decoupled_advantages(r, weights, eps=0, over_batch=over_batch), "R03", name)
    filled = decoupled_advantages(np.nan_to_num(r), weights, eps=0, over_batch=over_batch)
    (naive,) = NUMERIC["R03"]["naive_wrong"].values()
    np.testing.assert_allclose(filled[0], naive, rtol=0, atol=5e-5)


@given(seeds, st.integers(1, 4), st.integers(2, 6), st.integers(1, 3), st.sampled_from([0, 1]))
def test_rule_each_reward_is_normalised_over_those_that_have_it(seed, n, G, m, correction):
    rng = np.random.default_rng(seed)
    r = rng.integers(0, 3, size=(n, G, m)).astype(float)
    r[rng.random(r.shape) < 0.3] = np.nan
    r[0, 0, 0] = 1.0
    weights = rng.integers(1, 4, size=m)
    expected = np.zeros((n, G))
    for g, k in np.ndindex(n, m):
        there = ~np.isnan(r[g, :, k])
        column = r[g, there, k]
        if len(set(column)) > 1:
            deviations = column - column.mean()
            std = sqrt(np.sum(deviations**2) / (len(column) - correction))
            expected[g, there] += weights[k] * deviations / std
    once = decoupled_advantages(r, weights, correction, eps=0, over_batch=False)
    np.testing.assert_allclose(once, expected, rtol=1e-9, atol=1e-12)


@given(seeds, st.booleans())
def test_rule_a_rollout_that_no_reward_applies_to_is_as_if_it_were_not_there(seed, over_batch):
    rng = np.random.default_rng(seed)
    r = rng.integers(0, 3, size=(3, 4, 2)).astype(float)
    more = np.concatenate([np.full((3, 1, 2), np.nan), r], axis=1)
    found = decoupled_advantages(more, [1, 2], eps=0, over_batch=over_batch)
    without = decoupled_advantages(r, [1, 2], eps=0, over_batch=over_batch)
    np.testing.assert_allclose(found[:, 1:], without, rtol=1e-12, atol=1e-12)
    assert not found[:, 0].any()


def test_r05_whitening_by_tokens_and_once_more():
    given_case, expected = case("R05")
    tokens = given_case["token_weighted"]
    found = whitened_advantages(tokens["rewards"], tokens["lengths"], eps=0)
    close(found, "R05", "token_weighted")
    close(whitened_advantages(tokens["rewards"], eps=0), "R05", "per_response")
    once = np.array(given_case["twice"]["group_advantages"])
    twice = whitened_advantages(once, eps=0)
    close(twice, "R05", "twice")
    assert twice[0, 0] == pytest.approx(1 / sqrt(np.mean(~all_equal(once))))
    assert expected["factor"].startswith("1/sqrt(live share)")


@given(seeds, st.integers(1, 6), st.integers(1, 8), st.sampled_from([0, 1]))
def test_rule_whitening_by_tokens_is_that_of_the_list_of_tokens(seed, n, longest, correction):
    rng = np.random.default_rng(seed)
    A, lengths = rng.normal(size=n), rng.integers(0, longest + 1, size=n)
    lengths[0] += 2
    tokens = np.repeat(A, lengths)
    found = whitened_advantages(A, lengths, correction, eps=0)
    assert not found[lengths == 0].any()
    if len(set(tokens)) > 1:
        expected = (tokens - tokens.mean()) / tokens.std(ddof=correction)
        np.testing.assert_allclose(np.repeat(found, lengths), expected, rtol=1e-9, atol=1e-12)
    else:
        assert not found.any()


@given(rewards(min_group=2, max_dims=2, spread=True), st.integers(0, 8), st.sampled_from([0, 1]))
def test_rule_whitening_multiplies_by_one_over_the_root_of_the_live_share(r, silent, correction):
    live = np.atleast_2d(r)
    batch = np.concatenate([live, np.ones((silent, live.shape[1]))])
    once = advantages(batch, correction, eps=1e-300)
    expected = advantages(batch, eps=1e-300) / sqrt(len(live) / len(batch))
    np.testing.assert_allclose(whitened_advantages(once, eps=0), expected, rtol=1e-9, atol=1e-12)


def test_whitening_by_tokens_wakes_a_silent_group():
    # tokens 1 and 1, -1 three times and again, 0 eight times: mean -1/4, variance 7/16
    found = whitened_advantages([[1, -1, 1, -1], [0] * 4], [[1, 3, 1, 3], [2] * 4], eps=0)
    np.testing.assert_allclose(found[1], 1 / sqrt(7), rtol=1e-12)


def test_reinforce_plus_plus_with_and_without_a_baseline_worked_by_hand():
    two_prompts = [[1, 0, 0, 0], [1, 1, 0, 0]]
    # mean 3/8 and variance 15/64: 5/8 over the root of it
    plain = whitened_advantages(two_prompts, eps=0)
    np.testing.assert_allclose(plain[:, 0], 5 / sqrt(15), rtol=1e-12)
    # squares of the differences 9/16, three of 1/16 and four of 1/4: 7/4 over 8
    centred = whitened_advantages(centred_rewards(two_prompts), eps=0)
    np.testing.assert_allclose(centred[:, 0], [0.75 / sqrt(7 / 32), 0.5 / sqrt(7 / 32)], rtol=1e-12)


def test_eps_and_correction_of_whitening_worked_by_hand():
    # 3 and 1: mean 2, sum of squares 2, so the std is 1, and by Bessel the root of 2
    np.testing.assert_allclose(whitened_advantages([3, 1], eps=0.25), [0.8, -0.8], rtol=1e-12)
    bessel = whitened_advantages([3, 1], correction=1, eps=0)
    np.testing.assert_allclose(bessel, [sqrt(0.5), -sqrt(0.5)], rtol=1e-12)


def test_r07_too_hard_or_too_easy():
    given_case, expected = case("R07")
    names = {"all_zero": "silent_lowest", "all_one": "silent_highest"}
    for function in (silent_shares, reward_spread):
        found = function(given_case["rewards"])
        assert {key: found[name] for key, name in names.items()} == {
            key: expected[key] for key in names
        }
        assert found["silent_other"] == 0
    assert found["groups/degenerate"] == expected["silent"]
    p, G = given_case["expected_at"]["p"], given_case["expected_at"]["G"]
    theory = silent_probabilities(p, G)
    for (key, name), count in zip(names.items(), (0, G), strict=True):
        close(theory[name], "R07", f"theory.{key}")
        by_counts = expectation_over_counts(np.arange(G + 1) == count, p, G)
        assert theory[name] == pytest.approx(by_counts, rel=1e-12)


@given(rewards(max_dims=2), st.integers(-4, 0), st.integers(1, 4))
def test_rule_the_silent_shares_are_counts_of_groups(r, lowest, highest):
    groups = np.atleast_2d(r).round()
    found = silent_shares(groups, lowest, highest)
    sets = [set(group) for group in groups.tolist()]
    assert found["silent_lowest"] == pytest.approx(np.mean([s == {lowest} for s in sets]))
    assert found["silent_highest"] == pytest.approx(np.mean([s == {highest} for s in sets]))
    assert sum(found.values()) == pytest.approx(np.mean([len(s) == 1 for s in sets]))


def test_the_lowest_reward_is_compared_in_the_dtype_of_the_rewards():
    tenth = np.full((1, 3), 0.1, np.float32)
    assert silent_shares(tenth, lowest=0.1)["silent_lowest"] == 1
    assert silent_shares(tenth, lowest=0, highest=0.1)["silent_highest"] == 1


@given(st.fractions(0, 1), st.integers(1, 30))
def test_rule_the_two_silent_probabilities_are_exact(p, G):
    found = silent_probabilities(float(p), G)
    assert found["silent_lowest"] == pytest.approx(float((1 - p) ** G), rel=1e-9)
    assert found["silent_highest"] == pytest.approx(float(p**G), rel=1e-9)
    assert sum(found.values()) == pytest.approx(degenerate_probability(float(p), G))


def test_over_prompts_the_silent_probabilities_are_the_ends_of_the_counts():
    p = (np.arange(20_000) + 0.5) / 20_000  # the uniform distribution, Beta(1, 1)
    found = silent_probabilities(p, 4)
    ends = success_count_probabilities(1, 1, 4)[[0, -1]]
    np.testing.assert_allclose([share.mean() for share in found.values()], ends, rtol=1e-7)


def test_r16_a_batch_of_completions():
    given_case, expected = case("R16")
    found = batch_arithmetic(
        given_case["prompts"],
        given_case["generations"],
        given_case["per_device"],
        given_case["devices"],
        given_case["accumulation"],
        given_case["epochs"],
    )
    for name in ("completions_per_step", "prompts_per_step", "steps"):
        assert found[name] == expected[name]
    assert found["prompts_left_over"] == 0
    naive = 2 * 8000 / (4 * 2 * 3)
    assert naive == pytest.approx(NUMERIC["R16"]["naive_wrong"], abs=5e-3)


@given(st.integers(1, 60), *[st.integers(1, 4)] * 5, st.sampled_from(["completions", "prompts"]))
def test_rule_the_steps_are_those_of_a_loop_over_the_data(
    prompts, G, size, devices, accumulation, epochs, unit
):
    per_device = size * G if unit == "completions" else size
    found = batch_arithmetic(prompts, G, per_device, devices, accumulation, epochs, unit)
    steps, left = 0, 0
    for _ in range(epochs):
        waiting = [prompt for prompt in range(prompts) for _ in range(G)]
        while len(waiting) >= found["completions_per_step"]:
            waiting = waiting[found["completions_per_step"] :]
            steps += 1
        left = len(set(waiting))
    assert (found["steps"], found["prompts_left_over"]) == (steps, left)
    assert found["prompts_per_step"] == size * devices * accumulation
    assert found["completions_per_step"] == G * found["prompts_per_step"]


SOME = np.zeros((2, 3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: by_group(advantages, [1, 0], [0]), r"one shape \(n,\), got \(2,\) and \(1,\)"),
        (lambda: by_group(advantages, [[1, 0]], [[0, 0]]), r"one shape \(n,\), got \(1, 2\)"),
        (lambda: by_group(advantages, [], []), "G = 0"),
        (lambda: by_group(advantages, [1, 0], [0.5, 1]), "group_ids must be whole numbers"),
        (lambda: by_group(advantages, [1, np.nan], [0, 0]), r"rewards\[1\] is nan"),
        (lambda: decoupled_advantages(SOME, [1]), r"got \(2, 3, 2\) and \(1,\)"),
        (lambda: decoupled_advantages(SOME[0], [1, 1]), r"\(groups, G, m\)"),
        (lambda: decoupled_advantages(SOME * np.nan, [1, 1]), r"every reward is NaN.*\(2, 3, 2\)"),
        (lambda: decoupled_advantages([[[1, np.nan], [0, np.inf]]], [1, 1]), r"\[0, 1, 1\] is inf"),
        (
            lambda: decoupled_advantages([[[1], [0], [np.nan]]], [1], correction=2),
            "correction must be < G = 2, got 2",
        ),
        (lambda: decoupled_advantages(SOME, [1, np.inf]), r"weights\[1\] is inf"),
        (lambda: decoupled_advantages(SOME, [1, 1], correction=3), "correction must be < G = 3"),
        (lambda: reward_spread([1, 0]), r"shape \(n, G\), got \(2,\)"),
        (lambda: reward_spread([[1, np.nan]]), r"rewards\[0, 1\] is nan"),
        (lambda: reward_spread([[1, 0]], 2), "correction must be < G = 2, got 2"),
        (lambda: rejection_mask([0.0], 0, 2), "0 < low <= high, got 0.0 and 2.0"),
        (lambda: rejection_mask([0.0], 3, 2), "0 < low <= high, got 3.0 and 2.0"),
        (lambda: rejection_mask([np.nan], 0.5, 2), r"log_ratios\[0\] is nan"),
        (lambda: overlong_penalty(-1, 10, 5), "lengths must be >= 0, got -1"),
        (lambda: overlong_penalty(1, 10, 11), "ramp must be <= longest = 10, got 11"),
        (lambda: overlong_penalty(1, 0, 1), "longest must be >= 1, got 0"),
        (lambda: overlong_penalty(np.nan, 10, 1), "lengths must be finite"),
        (lambda: round_to_bfloat16(np.inf), "values must be finite"),
        (lambda: round_to_bfloat16(3.4e38), "too large for bfloat16: 3.4e"),
        (lambda: round_to_bfloat16([1e300]), r"too large for bfloat16: 1e\+300"),
        (lambda: Convention("group mean", None, eps_inside="yes"), "eps_inside"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


QUESTIONS = read_all()["15_questions"].cells
ENTRIES = "\n".join(cell.source for cell in QUESTIONS if cell.cell_type == "markdown")


@pytest.mark.parametrize("entry", re.split(r"\n(?=## )", ENTRIES), ids=lambda e: e.split("\n")[0])
def test_each_question_links_to_a_chapter_and_to_its_reports(entry):
    if re.match(r"## 15\.\d", entry):
        assert re.search(r"\]\(\d\d_\w+\.ipynb", entry)
        assert "\nReported in: [" in entry or "\nNot from a public report: " in entry


def test_the_index_leads_to_the_heading_that_it_names():
    anchors = {
        title: f"15{number}-{re.sub(r'[^a-z0-9 -]', '', title.lower()).replace(' ', '-')}"
        for number, title in re.findall(r"^## 15\.(\d+) (.+)$", ENTRIES, re.M)
    }
    rows = re.findall(r"^\| [^|]+ \| \[(.+)\]\(#(.+)\) \|$", ENTRIES, re.M)
    assert {title for title, _ in rows} == set(anchors)
    assert [(title, anchors[title]) for title, _ in rows] == rows


def test_each_report_is_linked_once():
    linked = re.findall(r"\]\((https://github\.com/[^)]+)\)", ENTRIES)
    reported = [url for r in ASKED for url in (r["url"], *r["more_urls"])]
    assert sorted(linked) == sorted(reported)


def test_the_missing_module_is_in_the_index_under_the_words_of_the_error():
    (report,) = [report for report in REPORTS if report["kind"] == "use"]
    assert report["id"] == "R18"
    rows = re.findall(r"^\| (.+) \| \[.+\]\(#1531-", ENTRIES, re.M)
    assert "`No module named grpo`" in rows
    assert "pip install grpo" not in ENTRIES
