"""Explanations of scores and of differences between rows: terms in the user's columns that add up exactly."""

from rankwise.explanations.explaining import Explanation, Part, explain, explain_pair
from rankwise.explanations.importance import FeatureImportance, feature_importance

__all__ = [
    "Explanation",
    "FeatureImportance",
    "Part",
    "explain",
    "explain_pair",
    "feature_importance",
]
