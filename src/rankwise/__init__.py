"""Learning to rank from scores, queries and preferences."""

from rankwise.estimators.kernel_rls import KernelRankRLS
from rankwise.estimators.kernel_rls_cv import KernelRankRLSCV
from rankwise.estimators.kernel_svm import KernelRankSVM
from rankwise.estimators.rank_rls import RankRLS
from rankwise.estimators.rank_rls_cv import RankRLSCV
from rankwise.estimators.rank_svm import RankSVM
from rankwise.estimators.rank_svm_cv import RankSVMCV

__all__ = [
    "KernelRankRLS",
    "KernelRankRLSCV",
    "KernelRankSVM",
    "RankRLS",
    "RankRLSCV",
    "RankSVM",
    "RankSVMCV",
    "__version__",
]

__version__ = "0.1.0.dev0"
