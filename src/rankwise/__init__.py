"""Learning to rank from scores, queries and preferences.

Estimators are imported on first access, so that a program loads only the modules that it uses. This module imports
nothing else of the library, so every package may import it. Type checkers read its names from `__init__.pyi`.
"""

from __future__ import annotations

from importlib import import_module

__all__ = [
    "AdditiveRanker",
    "AdditiveRankerCV",
    "AutoRanker",
    "AverageRanker",
    "BradleyTerry",
    "KernelRankRLS",
    "KernelRankRLSCV",
    "KernelRankSVM",
    "KernelRankSVMCV",
    "RankRLS",
    "RankRLSCV",
    "RankSVM",
    "RankSVMCV",
    "TwoSidedRankRLS",
    "TwoSidedRankRLSCV",
    "__version__",
    "explain",
    "explain_pair",
    "export",
    "feature_importance",
    "load",
    "save",
    "suggest",
]

__version__ = "0.1.0"

_HOMES = {
    "AdditiveRanker": "rankwise.estimators.additive",
    "AdditiveRankerCV": "rankwise.estimators.additive",
    "AutoRanker": "rankwise.automatic.ranker",
    "AverageRanker": "rankwise.automatic.average",
    "BradleyTerry": "rankwise.leaderboards.estimator",
    "KernelRankRLS": "rankwise.estimators.kernel_rls",
    "KernelRankRLSCV": "rankwise.estimators.kernel_rls",
    "KernelRankSVM": "rankwise.estimators.kernel_svm",
    "KernelRankSVMCV": "rankwise.estimators.kernel_svm",
    "RankRLS": "rankwise.estimators.rank_rls",
    "RankRLSCV": "rankwise.estimators.rank_rls",
    "RankSVM": "rankwise.estimators.rank_svm",
    "RankSVMCV": "rankwise.estimators.rank_svm",
    "TwoSidedRankRLS": "rankwise.two_sided.estimators",
    "TwoSidedRankRLSCV": "rankwise.two_sided.estimators",
    "explain": "rankwise.explanations",
    "explain_pair": "rankwise.explanations",
    "export": "rankwise.exporters",
    "feature_importance": "rankwise.explanations",
    "load": "rankwise.persistence",
    "save": "rankwise.persistence",
    "suggest": "rankwise.leaderboards.next_pair",
}

# Packages that are imported when they are first asked for, as in ``rankwise.metrics.ndcg``.
_PACKAGES = frozenset(
    (
        "data",
        "datasets",
        "displays",
        "distributed",
        "exceptions",
        "metrics",
        "model_selection",
        "preprocessing",
    )
)


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"rankwise.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
