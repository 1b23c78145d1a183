"""Ranking metrics over queries: ragged, in any row order, in O(m log m), with their conventions named."""

from rankwise.metrics.bootstrap import Interval, bootstrap_interval, bootstrap_mean
from rankwise.metrics.comparison import Comparison, compare_rankings, holm, paired_test
from rankwise.metrics.delong import AucEstimate, auc_estimate
from rankwise.metrics.gain import err, mean_ndcg, ndcg
from rankwise.metrics.metric import Evaluator, Metric, PerQuery
from rankwise.metrics.pairwise import auc, concordance, kendall_tau, pairwise_error
from rankwise.metrics.preferences import preference_error
from rankwise.metrics.relevance import average_precision, precision, reciprocal_rank
from rankwise.metrics.table import METRICS, evaluate, get_metric, per_query

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
]
