"""Learning to rank from scores, queries and preferences.

Estimators are imported on first access, so that a program loads only the modules that it uses. This module imports
nothing else of the library, so every package may import it. Type checkers read its names from `__init__.pyi`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

__version__ = "0.1.0"

_NAMES = {
    "automatic.average": ("AverageRanker",),
    "automatic.ranker": ("AutoRanker",),
    "estimators.additive": ("AdditiveRanker", "AdditiveRankerCV"),
    "estimators.kernel": ("KernelRankRLS", "KernelRankRLSCV", "KernelRankSVM", "KernelRankSVMCV"),
    "estimators.linear": ("RankRLS", "RankRLSCV", "RankSVM", "RankSVMCV"),
    "explanations": ("explain", "explain_pair", "feature_importance"),
    "exporters": ("export",),
    "leaderboards.estimator": ("BradleyTerry",),
    "leaderboards.next_pair": ("suggest",),
    "persistence": ("load", "save"),
    "two_sided.estimators": ("TwoSidedRankRLS", "TwoSidedRankRLSCV"),
}
_HOMES = {name: f"rankwise.{module}" for module, names in _NAMES.items() for name in names}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - names


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        if name.startswith("_") or find_spec(f"rankwise.{name}") is None:
            raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
        return import_module(f"rankwise.{name}")  # such as rankwise.metrics
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
