"""What estimators ask at their validation boundary where X is on a cluster."""

from __future__ import annotations

from typing import cast

import dask
import numpy as np

from rankwise.arrays import AnyArray, Estimator, Labels, MatrixLike
from rankwise.data.matrices import check_columns, through_scikit_learn
from rankwise.distributed.actors import Options
from rankwise.distributed.cluster import current_client
from rankwise.distributed.data import ClusterRows, distribute, local_values
from rankwise.distributed.prediction import predicted, ranked
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError

__all__ = ["check_rows", "predicted", "ranked", "scored_data", "training_data"]

# Solvers that walk through the rows themselves, a block after the other.
_WALKERS = ("stochastic", "egdm-blocks")
_LARGEST = 1e150
_SMALLEST = 1e-80


def training_data(
    estimator: Estimator,
    X: object,
    y: Labels,
    qid: Labels | None,
    sample_weight: Labels | None,
    query_importance: Labels | None,
) -> tuple[ClusterRows, *tuple[AnyArray | None, ...]]:
    """Return rows that will be held in whole queries, and everything that has a value per row at the client."""
    rows = checked_rows(estimator, X)
    values = [
        local_values(value, rows.client, rows.options.timeout)
        for value in (y, qid, sample_weight, query_importance)
    ]
    return rows.grouped(values[1]), *values


def checked_rows(estimator: Estimator, X: object) -> ClusterRows:
    """Return the rows behind a Dask collection; raise where the estimator or its solver cannot take them."""
    name = type(estimator).__name__
    if not estimator._takes_clusters:  # noqa: SLF001 - what estimators tell this room
        raise InvalidInputError(
            f"X is on a Dask cluster, and {name} needs its rows in the memory of one machine.",
            "use RankRLS, RankRLSCV, RankSVM or RankSVMCV, or pass X.compute() where it fits.",
        )
    solver = getattr(estimator, "solver", "auto")
    if solver in _WALKERS:
        raise UnsuitableSolverError(
            f"solver={solver!r} walks through X block by block, and every block of a cluster would have to come to "
            "the client.",
            "use solver='cg' or 'egdm', which exchange a vector per product.",
        )
    rows = X if isinstance(X, ClusterRows) else distribute(X).X
    survey = rows.survey
    if not survey.is_finite:
        raise InvalidInputError(
            "X contains NaN or infinity.", "impute or drop those entries, for example with X.fillna(0)."
        )
    if survey.largest > _LARGEST:
        raise InvalidInputError(
            f"X has values as large as {survey.largest:.1e}, whose products are too large for floating-point numbers.",
            "bring X to values around 1; if the number stands for a missing value, replace it first.",
        )
    if 0 < survey.largest < _SMALLEST:
        raise InvalidInputError(
            f"X has no value larger than {survey.largest:.1e}, and products of such numbers are too small for "
            "floating-point numbers.",
            "bring X to values around 1.",
        )
    return rows


def check_rows(estimator: Estimator, X: object, *, reset: bool) -> ClusterRows:
    """Return rows of a cluster, whose columns are those of the model; `reset` takes them for such."""
    rows = checked_rows(estimator, X)
    if rows.columns is not None:
        # Of a data frame scikit-learn checks the names and their order.
        frame = cast("MatrixLike", rows.empty_frame())
        through_scikit_learn(estimator, frame, reset=reset, is_finite=True, ensure_min_samples=0)
    else:
        check_columns(estimator, rows, reset=reset)  # type: ignore[arg-type]
        if reset:
            estimator.__dict__.pop("feature_names_in_", None)
    return rows


def scored_data(
    X: object, y: Labels, qid: Labels | None, sample_weight: Labels | None
) -> tuple[object, *tuple[AnyArray | None, ...]]:
    """Return what a score is made of: labels and ids at the client, X as a collection whose scores come there."""
    client = X.client if isinstance(X, ClusterRows) else current_client() if _is_lazy(y, qid) else None
    values = [local_values(value, client, Options().timeout) for value in (y, qid, sample_weight)]
    return X, *values


def _is_lazy(*values: object) -> bool:
    return any(dask.is_dask_collection(value) and not isinstance(value, np.ndarray) for value in values)
