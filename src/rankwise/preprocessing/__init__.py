"""Feature preparation that ranking needs: columns scaled by rank or inside each query, and tables as they are."""

from rankwise.preprocessing.query_scaler import QueryScaler
from rankwise.preprocessing.rank_scaler import RankScaler
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["QueryScaler", "RankScaler", "TableEncoder"]
