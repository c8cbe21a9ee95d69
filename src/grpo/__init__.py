"""GRPO on toy data: the functions behind every number of the book.

The modules are named after their subject: `rewards`, `advantage`, `groups`, `dataset`, `kl`,
`loss`, `language`, `surrogates`, `engines`, `entropy`, `step`, `train`, `exact`, `precision`,
`conventions`, `evidence` and `identification`. They need numpy only. `grpo.book` serves the pages
and has to be imported by name.
"""

from grpo.advantage import (
    advantages,
    bessel_ratio,
    by_group,
    centred_rewards,
    decoupled_advantages,
    leave_one_out_baseline,
    rloo_advantages,
    whitened_advantages,
)
from grpo.conventions import CONVENTIONS, Convention
from grpo.dataset import (
    batch_arithmetic,
    beta_degenerate_probability,
    fit_beta,
    intraclass_correlation,
    pass_at_k,
    success_count_probabilities,
)
from grpo.engines import effective_sample_size, mean_weight, sampler_policy
from grpo.entropy import entropy, entropy_slope
from grpo.evidence import Evidence, Precision, group_evidence, read_precision
from grpo.exact import (
    expectation_over_counts,
    expectation_over_outcomes,
    expected_update,
    outcomes,
)
from grpo.groups import (
    all_equal,
    baseline_standard_error,
    baseline_variance,
    degenerate_probability,
    full_batch_probability,
    groups_to_sample,
    informative_groups,
    informative_per_rollout,
    informative_probability,
    nondegenerate_mask,
    rollouts_per_informative_group,
    sample_groups,
    silent_probabilities,
    silent_shares,
)
from grpo.identification import Candidate, Identification, identify
from grpo.kl import (
    exact_summary,
    k1,
    k2,
    k3,
    kl_divergence,
    kl_gradient,
    log_ratio,
    penalty_gradients,
    sample_log_ratio,
    sample_summary,
)
from grpo.language import (
    Answers,
    all_answers,
    answer_gradients,
    sample_answers,
    token_log_probabilities,
)
from grpo.loss import aggregate_loss, clip_binds, clipped_loss, rejection_mask
from grpo.precision import round_to_bfloat16
from grpo.rewards import overlong_penalty
from grpo.step import advantage_invariants, grpo_step_stats, reward_spread
from grpo.surrogates import SURROGATES, Judgement, judge, ratios
from grpo.train import grpo_loss, softmax, train

__version__ = "1.1.0"

__all__ = [
    "CONVENTIONS",
    "SURROGATES",
    "Answers",
    "Candidate",
    "Convention",
    "Evidence",
    "Identification",
    "Judgement",
    "Precision",
    "advantage_invariants",
    "advantages",
    "aggregate_loss",
    "all_answers",
    "all_equal",
    "answer_gradients",
    "baseline_standard_error",
    "baseline_variance",
    "batch_arithmetic",
    "bessel_ratio",
    "beta_degenerate_probability",
    "by_group",
    "centred_rewards",
    "clip_binds",
    "clipped_loss",
    "decoupled_advantages",
    "degenerate_probability",
    "effective_sample_size",
    "entropy",
    "entropy_slope",
    "exact_summary",
    "expectation_over_counts",
    "expectation_over_outcomes",
    "expected_update",
    "fit_beta",
    "full_batch_probability",
    "group_evidence",
    "groups_to_sample",
    "grpo_loss",
    "grpo_step_stats",
    "identify",
    "informative_groups",
    "informative_per_rollout",
    "informative_probability",
    "intraclass_correlation",
    "judge",
    "k1",
    "k2",
    "k3",
    "kl_divergence",
    "kl_gradient",
    "leave_one_out_baseline",
    "log_ratio",
    "mean_weight",
    "nondegenerate_mask",
    "outcomes",
    "overlong_penalty",
    "pass_at_k",
    "penalty_gradients",
    "ratios",
    "read_precision",
    "rejection_mask",
    "reward_spread",
    "rloo_advantages",
    "rollouts_per_informative_group",
    "round_to_bfloat16",
    "sample_answers",
    "sample_groups",
    "sample_log_ratio",
    "sample_summary",
    "sampler_policy",
    "silent_probabilities",
    "silent_shares",
    "softmax",
    "success_count_probabilities",
    "token_log_probabilities",
    "train",
    "whitened_advantages",
]
