"""Feature preparation that ranking needs: columns scaled inside queries or by rank, spread over knots; and tables."""

from rankwise.preprocessing.hat_basis import HatBasis
from rankwise.preprocessing.query_scaler import QueryScaler
from rankwise.preprocessing.rank_scaler import RankScaler
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["HatBasis", "QueryScaler", "RankScaler", "TableEncoder"]
