"""Feature preparation that ranking needs: columns scaled inside each query, and tables as people have them."""

from rankwise.preprocessing.query_scaler import QueryScaler
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["QueryScaler", "TableEncoder"]
