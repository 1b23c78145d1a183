"""Learning to rank from scores, queries and preferences."""

from rankwise.estimators.kernel_rls import KernelRankRLS
from rankwise.estimators.kernel_rls_cv import KernelRankRLSCV
from rankwise.estimators.rank_rls import RankRLS
from rankwise.estimators.rank_rls_cv import RankRLSCV

__all__ = ["KernelRankRLS", "KernelRankRLSCV", "RankRLS", "RankRLSCV", "__version__"]

__version__ = "0.1.0.dev0"
