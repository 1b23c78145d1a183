"""Learning to rank from scores, queries and preferences.

Estimators are imported when they are first asked for, so that a program pays only for what it uses.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as checkers know it; the module typing takes as long to import as all of this
if TYPE_CHECKING:
    from typing import Any

    from rankwise.automatic.ranker import AutoRanker
    from rankwise.estimators.kernel_rls import KernelRankRLS
    from rankwise.estimators.kernel_rls_cv import KernelRankRLSCV
    from rankwise.estimators.kernel_svm import KernelRankSVM
    from rankwise.estimators.rank_rls import RankRLS
    from rankwise.estimators.rank_rls_cv import RankRLSCV
    from rankwise.estimators.rank_svm import RankSVM
    from rankwise.estimators.rank_svm_cv import RankSVMCV
    from rankwise.persistence import load, save

__all__ = [
    "AutoRanker",
    "KernelRankRLS",
    "KernelRankRLSCV",
    "KernelRankSVM",
    "RankRLS",
    "RankRLSCV",
    "RankSVM",
    "RankSVMCV",
    "__version__",
    "load",
    "save",
]

__version__ = "0.1.0.dev0"

_HOMES = {
    "AutoRanker": "rankwise.automatic.ranker",
    "KernelRankRLS": "rankwise.estimators.kernel_rls",
    "KernelRankRLSCV": "rankwise.estimators.kernel_rls_cv",
    "KernelRankSVM": "rankwise.estimators.kernel_svm",
    "RankRLS": "rankwise.estimators.rank_rls",
    "RankRLSCV": "rankwise.estimators.rank_rls_cv",
    "RankSVM": "rankwise.estimators.rank_svm",
    "RankSVMCV": "rankwise.estimators.rank_svm_cv",
    "load": "rankwise.persistence",
    "save": "rankwise.persistence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
