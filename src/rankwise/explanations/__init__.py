"""Why a row has its score, and why one row stands above another: terms in the user's columns that add up exactly."""

from rankwise.explanations.explaining import explain, explain_pair
from rankwise.explanations.explanation import Explanation, Part
from rankwise.explanations.importance import FeatureImportance, feature_importance

__all__ = [
    "Explanation",
    "FeatureImportance",
    "Part",
    "explain",
    "explain_pair",
    "feature_importance",
]
