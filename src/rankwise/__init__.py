"""Learning to rank from scores, queries and preferences."""

from rankwise.estimators.rank_rls import RankRLS

__all__ = ["RankRLS", "__version__"]

__version__ = "0.1.0.dev0"
