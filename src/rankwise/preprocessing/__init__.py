"""Feature preparation that ranking needs: columns scaled inside queries, or spread over knots."""

from rankwise.preprocessing.hat_basis import HatBasis
from rankwise.preprocessing.query_scaler import QueryScaler

__all__ = ["HatBasis", "QueryScaler"]
