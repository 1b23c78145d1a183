"""Training on a Dask cluster, by the same estimators: ``fit`` takes Dask collections, and what `read` returns.

This room alone imports Dask (``pip install 'rankwise[dask]'``), and is imported when Dask data arrive.
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
