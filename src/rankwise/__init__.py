"""Learning to rank from scores, queries and preferences.

Estimators are imported when they are first asked for, so that a program pays only for what it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwise.estimators.kernel_rls import KernelRankRLS
    from rankwise.estimators.kernel_rls_cv import KernelRankRLSCV
    from rankwise.estimators.rank_rls import RankRLS
    from rankwise.estimators.rank_rls_cv import RankRLSCV

__all__ = ["KernelRankRLS", "KernelRankRLSCV", "RankRLS", "RankRLSCV", "__version__"]

__version__ = "0.1.0.dev0"

_HOMES = {
    "KernelRankRLS": "rankwise.estimators.kernel_rls",
    "KernelRankRLSCV": "rankwise.estimators.kernel_rls_cv",
    "RankRLS": "rankwise.estimators.rank_rls",
    "RankRLSCV": "rankwise.estimators.rank_rls_cv",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankwise' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
