"""Rows or pairs that judge a model: an evaluation set, a held-out share, or folds; and what they see of it.

The systems here join a quadratic objective to what judges it, in the form that `rankwise.solvers.surface`
reads. Folds are lanes of one block product: in lane c the rows (or the pairs) of fold c weigh nothing, and
their inner products, which the product forms anyway, are their held-out scores.
"""

from rankwise.resampling.dealing import Dealer, deal_folds, deal_pairs, share_as_folds, tell_apart_by
from rankwise.resampling.judges import DifferenceJudge, Judge, MetricJudge, PreferenceJudge
from rankwise.resampling.kernel_rows import KernelFoldPairs, KernelFoldRows, KernelRows
from rankwise.resampling.pairs import FoldPairs, LeftOutPairs
from rankwise.resampling.rows import EvaluationRows, FoldRows, NoRows, Pooling

__all__ = [
    "Dealer",
    "DifferenceJudge",
    "EvaluationRows",
    "FoldPairs",
    "FoldRows",
    "Judge",
    "KernelFoldPairs",
    "KernelFoldRows",
    "KernelRows",
    "LeftOutPairs",
    "MetricJudge",
    "NoRows",
    "Pooling",
    "PreferenceJudge",
    "deal_folds",
    "deal_pairs",
    "share_as_folds",
    "tell_apart_by",
]
