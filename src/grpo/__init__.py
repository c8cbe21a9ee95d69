"""GRPO on toy data: the functions behind every number of the book.

The modules are named after their subject: `advantage`, `groups`, `kl`, `step`, `loss`, `exact`,
`conventions` and `identification`. They need numpy only. `grpo.book` serves
the pages and has to be imported by name.
"""

from grpo.advantage import (
    advantages,
    bessel_ratio,
    centred_rewards,
    leave_one_out_baseline,
    rloo_advantages,
)
from grpo.conventions import CONVENTIONS, Convention
from grpo.exact import expectation_over_counts, expectation_over_outcomes, outcomes
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
)
from grpo.identification import Candidate, Identification, identify
from grpo.kl import (
    exact_summary,
    k1,
    k2,
    k3,
    kl_divergence,
    log_ratio,
    sample_log_ratio,
    sample_summary,
)
from grpo.loss import aggregate_loss
from grpo.step import advantage_invariants, grpo_step_stats

__version__ = "1.0.0"

__all__ = [
    "CONVENTIONS",
    "Candidate",
    "Convention",
    "Identification",
    "advantage_invariants",
    "advantages",
    "aggregate_loss",
    "all_equal",
    "baseline_standard_error",
    "baseline_variance",
    "bessel_ratio",
    "centred_rewards",
    "degenerate_probability",
    "exact_summary",
    "expectation_over_counts",
    "expectation_over_outcomes",
    "full_batch_probability",
    "groups_to_sample",
    "grpo_step_stats",
    "identify",
    "informative_groups",
    "informative_per_rollout",
    "informative_probability",
    "k1",
    "k2",
    "k3",
    "kl_divergence",
    "leave_one_out_baseline",
    "log_ratio",
    "nondegenerate_mask",
    "outcomes",
    "rloo_advantages",
    "rollouts_per_informative_group",
    "sample_groups",
    "sample_log_ratio",
    "sample_summary",
]
