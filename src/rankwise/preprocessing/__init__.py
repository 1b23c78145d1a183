"""Feature preparation that ranking needs: columns scaled inside queries, and tables with columns of any type."""

from rankwise.preprocessing.query_scaler import QueryScaler
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["QueryScaler", "TableEncoder"]
