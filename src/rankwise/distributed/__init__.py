"""Training on a Dask cluster with the same estimators: ``fit`` accepts Dask collections and the result of `read`.

Only this package imports Dask (``pip install 'rankwise[dask]'``). It is imported when an estimator gets Dask data.
"""

from __future__ import annotations

from rankwise.exceptions import MissingPackageError

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        "Training on a cluster needs Dask, which is not installed.", "pip install 'rankwise[dask]'."
    ) from error

from rankwise.distributed.data import ClusterData, distribute, read

__all__ = ["ClusterData", "distribute", "read"]
