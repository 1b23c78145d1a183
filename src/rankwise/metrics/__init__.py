"""Ranking metrics over queries: ragged, in any row order, in O(m log m), with their conventions named."""

from rankwise.metrics.comparison import Comparison, compare_rankings, holm, paired_test
from rankwise.metrics.intervals import (
    AucEstimate,
    Interval,
    auc_estimate,
    bootstrap_interval,
    bootstrap_mean,
)
from rankwise.metrics.metric import METRICS, Evaluator, Metric, PerQuery, evaluate, get_metric, per_query
from rankwise.metrics.pairwise import (
    auc,
    concordance,
    kendall_tau,
    pairwise_error,
    preference_error,
    spearman,
)
from rankwise.metrics.top import average_precision, err, mean_ndcg, ndcg, precision, reciprocal_rank

__all__ = [
    "METRICS",
    "AucEstimate",
    "Comparison",
    "Evaluator",
    "Interval",
    "Metric",
    "PerQuery",
    "auc",
    "auc_estimate",
    "average_precision",
    "bootstrap_interval",
    "bootstrap_mean",
    "compare_rankings",
    "concordance",
    "err",
    "evaluate",
    "get_metric",
    "holm",
    "kendall_tau",
    "mean_ndcg",
    "ndcg",
    "paired_test",
    "pairwise_error",
    "per_query",
    "precision",
    "preference_error",
    "reciprocal_rank",
    "spearman",
]
