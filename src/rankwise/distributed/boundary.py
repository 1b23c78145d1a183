"""The boundary between estimators and Dask data: training data, and lazy scores and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Estimator, Floats, InMemory, Ints, Labels
from rankwise.data.validation import check_columns, validated
from rankwise.distributed.blocks import blocks_of, rows_of, uniform
from rankwise.distributed.cluster import current_client, release_clusters  # noqa: F401 - estimators call it from here
from rankwise.distributed.data import TIMEOUT, ClusterRows, distribute, local_values
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError

if TYPE_CHECKING:
    import pandas as pd

# Solvers that walk through the rows themselves, block by block.
_WALKERS = ("stochastic", "egdm-blocks")


def training_data(
    estimator: Estimator,
    X: object,
    y: Labels,
    qid: Labels | None,
    sample_weight: Labels | None,
    query_importance: Labels | None,
) -> tuple[ClusterRows, *tuple[AnyArray | None, ...]]:
    """Return rows that will be held in whole queries, and the values per row at the client."""
    rows = _checked(estimator, X)
    values = [
        local_values(value, rows.client, rows.timeout) for value in (y, qid, sample_weight, query_importance)
    ]
    return rows.grouped(values[1]), *values


def _checked(estimator: Estimator, X: object) -> ClusterRows:
    """Return the rows behind a Dask collection; raise if the estimator or its solver cannot take them."""
    if not estimator._takes_clusters:  # noqa: SLF001 - for this module
        raise InvalidInputError(
            f"X is on a Dask cluster, and {type(estimator).__name__} needs its rows in the memory of one machine.",
            "use RankRLS, RankRLSCV, RankSVM or RankSVMCV, or pass X.compute() if it fits.",
        )
    solver = getattr(estimator, "solver", "auto")
    if solver in _WALKERS:
        raise UnsuitableSolverError(
            f"solver={solver!r} reads X block by block, so every block would travel to the client.",
            "use solver='cg' or 'egdm', which exchange a vector per product.",
        )
    rows = X if isinstance(X, ClusterRows) else distribute(X).X
    if not rows.survey.is_finite:
        raise InvalidInputError(
            "X contains NaN or infinity.", "impute or drop those entries, for example with X.fillna(0)."
        )
    return rows


def check_rows(estimator: Estimator, X: object, *, reset: bool) -> ClusterRows:
    """Return rows of a cluster whose columns are those of the model; with `reset` they become those of the model."""
    rows = _checked(estimator, X)
    if rows.columns is not None:
        # scikit-learn checks the names of a data frame and their order.
        import pandas as pd  # noqa: PLC0415 - only where columns have names

        frame = pd.DataFrame(np.empty((0, rows.shape[1])), columns=rows.columns)
        validated(estimator, frame, reset=reset, is_finite=True, ensure_min_samples=0)
    else:
        check_columns(estimator, rows, reset=reset)  # type: ignore[arg-type]
        if reset:
            estimator.__dict__.pop("feature_names_in_", None)
    return rows


def scored_data(
    X: object, y: Labels, qid: Labels | None, sample_weight: Labels | None
) -> tuple[object, *tuple[AnyArray | None, ...]]:
    """Return the data of a score: labels and ids at the client, X unchanged."""
    values = (y, qid, sample_weight)
    is_lazy = any(dask.is_dask_collection(value) for value in values)
    client = X.client if isinstance(X, ClusterRows) else current_client() if is_lazy else None
    return X, *(local_values(value, client, TIMEOUT) for value in values)


# --- scores and ranks, computed partition by partition when somebody asks for them ---


def predicted(model: Estimator, X: Any) -> Any:
    """Return the scores of a Dask collection: a Dask array, or a series for a DataFrame; nothing is computed yet."""
    if isinstance(X, ClusterRows):
        check_rows(model, X, reset=False)
        sizes, columns = np.diff(X.survey.ends, prepend=0).tolist(), (X.survey.first_column, X.shape[1])
        parts = [dask.delayed(_products)(model.coef_, block, *columns) for block in X.source.blocks]
        return _joined(parts, sizes, model, np.float64)
    if hasattr(X, "columns"):
        if model.coef_.ndim == 1:
            return X.map_partitions(_frame_scores, model, meta=("score", np.float64))
        blocks = list(X.to_delayed())
        sizes = [np.nan] * len(blocks)
    else:
        blocks, sizes = blocks_of(X).blocks, X.chunks[0]
    return _joined([dask.delayed(_scores)(model, block) for block in blocks], sizes, model, np.float64)


def ranked(model: Estimator, X: object, qid: Labels | None) -> Any:
    """Return the ranks of a Dask collection inside queries, as a Dask array.

    Partitions are ranked one by one; computing them raises an error if one query is in two of them. Without query ids
    all rows are ranked together, which takes all scores in one place.
    """
    lazy = predicted(model, X)
    scores = lazy.to_dask_array() if hasattr(lazy, "to_dask_array") else lazy
    blocks, sizes = list(scores.to_delayed().ravel()), scores.chunks[0]
    if qid is None:
        ends = dask.delayed(np.cumsum)([dask.delayed(len)(block) for block in blocks])
        ranks = dask.delayed(_ranks)(model, dask.delayed(np.concatenate)(blocks))
        pieces = dask.delayed(np.split)(ranks, ends)
        return _joined([pieces[at] for at in range(len(blocks))], sizes, model, np.int64)
    ids = _id_blocks(qid, sizes)
    alone = dask.delayed(_require_whole)([dask.delayed(np.unique)(part) for part in ids])
    parts = [dask.delayed(_ranks)(model, block, part, alone) for block, part in zip(blocks, ids, strict=True)]
    return _joined(parts, sizes, model, np.int64)


def _frame_scores(frame: pd.DataFrame, model: Estimator) -> pd.Series:
    import pandas as pd  # noqa: PLC0415 - the frame is one of pandas

    scores = model.predict(frame) if len(frame) else np.empty(0)
    return pd.Series(scores, index=frame.index, name="score", dtype=np.float64)


def _joined(parts: list[Any], sizes: Sequence[float], model: Estimator, dtype: npt.DTypeLike) -> Any:
    rest = model.coef_.shape[:1] if model.coef_.ndim == 2 else ()
    arrays = [
        da.from_delayed(part, shape=(size, *rest), dtype=dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def _scores(model: Estimator, block: object) -> Floats:
    rows = cast("InMemory", block) if hasattr(block, "columns") else rows_of(block)
    if rows.shape[0] == 0:
        return np.empty((0, *model.coef_.shape[:-1]))
    scores: Floats = model.predict(rows)
    return scores


def _products(coef: Floats, block: object, first_column: int, n_columns: int) -> Floats:
    """Return the scores of a block whose columns were checked at the client."""
    return np.asarray(uniform(block, first_column, n_columns) @ coef.T)


def _id_blocks(qid: Labels, sizes: Sequence[float]) -> list[Any]:
    if dask.is_dask_collection(qid):
        return list(np.ravel(cast("Any", qid).to_delayed()))
    if any(np.isnan(size) for size in sizes):
        raise InvalidInputError(
            "The partitions of X have unknown sizes, and qid is in one piece.",
            "pass qid as a column of the same DataFrame, or call X.to_dask_array(lengths=True).",
        )
    ends, values = np.cumsum(sizes).astype(int), np.asarray(qid)
    return [values[end - int(size) : end] for end, size in zip(ends, sizes, strict=True)]


def _require_whole(distinct: list[AnyArray]) -> bool:
    seen: set[object] = set()
    for part in distinct:
        both = seen.intersection(part.tolist())
        if both:
            raise InvalidInputError(
                f"The query {next(iter(both))!r} has rows in two partitions, which are ranked one by one.",
                "bring queries together, for example with X.shuffle(on='qid'), or rank model.predict(X).compute().",
            )
        seen.update(part.tolist())
    return True


def _ranks(model: Estimator, scores: AnyArray, ids: Labels | None = None, whole: bool = True) -> Ints:
    own = None if ids is None else np.asarray(ids)
    ranks: Ints = model._ranks_of(np.asarray(scores), own)  # noqa: SLF001 - the estimator's own
    return ranks
