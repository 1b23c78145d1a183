"""Model selection that keeps queries whole and passes `qid` to splitters, estimators and scorers."""

from rankwise.model_selection.cross_validation import (
    RankingScorer,
    cross_validate_ranker,
    fit_ranker,
    make_ranking_scorer,
    predict_scores,
)
from rankwise.model_selection.splitters import PreferenceKFold, QueryKFold

__all__ = [
    "PreferenceKFold",
    "QueryKFold",
    "RankingScorer",
    "cross_validate_ranker",
    "fit_ranker",
    "make_ranking_scorer",
    "predict_scores",
]
