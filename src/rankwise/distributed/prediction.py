"""Scores and ranks of Dask data: computed when somebody asks for them, partition by partition."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np

from rankwise.arrays import AnyArray
from rankwise.distributed.data import ClusterRows
from rankwise.distributed.holding import rows_of, uniform
from rankwise.exceptions import InvalidInputError

__all__ = ["predicted", "ranked"]


def predicted(model: Any, X: Any) -> Any:
    """Return the scores of a Dask collection: a Dask array, or a series for a DataFrame; nothing is computed yet."""
    if isinstance(X, ClusterRows):
        sizes, columns = np.diff(X.survey.ends, prepend=0).tolist(), (X.survey.first_column, X.shape[1])
        blocks = [dask.delayed(uniform)(block, *columns) for block in X.source.blocks]
        return _joined([dask.delayed(_scores)(model, block) for block in blocks], sizes, model, np.float64)
    if hasattr(X, "columns"):
        several = model.coef_.ndim == 2
        meta = None if several else ("score", np.float64)
        return X.map_partitions(model_frame_scores, model, meta=meta) if not several else _of_frame(model, X)
    blocks = X.to_delayed().ravel() if len(X.chunks[1]) == 1 else X.rechunk({1: -1}).to_delayed().ravel()
    return _joined([dask.delayed(_scores)(model, block) for block in blocks], X.chunks[0], model, np.float64)


def ranked(model: Any, X: Any, qid: Any) -> Any:
    """Return the ranks of a Dask collection inside queries, as a Dask array.

    Partitions are ranked one by one; computing them raises an error where one query is in two of them. Without query
    ids all rows are ranked together, which takes all scores in one place.
    """
    scores = predicted(model, X)
    scores = scores.to_dask_array() if hasattr(scores, "to_dask_array") else scores
    blocks = list(scores.to_delayed().ravel())
    sizes = scores.chunks[0]
    if qid is None:
        whole = dask.delayed(_all_ranks)(model, blocks)
        parts = [dask.delayed(_piece)(whole, blocks, at) for at in range(len(blocks))]
    else:
        ids = _id_blocks(qid, sizes)
        alone = dask.delayed(_require_whole)([dask.delayed(_distinct)(part) for part in ids])
        parts = [
            dask.delayed(_ranks)(model, block, part, alone) for block, part in zip(blocks, ids, strict=True)
        ]
    return _joined(parts, sizes, model, np.int64)


def model_frame_scores(frame: Any, model: Any) -> Any:
    """Return the scores of a partition of a DataFrame as a series beside its rows."""
    import pandas as pd  # noqa: PLC0415 - the frame is pandas'

    scores = model.predict(frame) if len(frame) else np.empty(0)
    return pd.Series(scores, index=frame.index, name="score", dtype=np.float64)


def _of_frame(model: Any, X: Any) -> Any:
    blocks = X.to_delayed()
    sizes = (np.nan,) * len(blocks)
    return _joined([dask.delayed(_scores)(model, block) for block in blocks], sizes, model, np.float64)


def _joined(parts: list[Any], sizes: Any, model: Any, dtype: Any) -> Any:
    rest = model.coef_.shape[:1] if model.coef_.ndim == 2 else ()
    arrays = [
        da.from_delayed(part, shape=(size, *rest), dtype=dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def _scores(model: Any, block: Any) -> Any:
    rows = block if hasattr(block, "columns") else rows_of(block)
    if rows.shape[0] == 0:
        return np.empty((0, *model.coef_.shape[:-1]))
    return model.predict(rows)


def _id_blocks(qid: Any, sizes: Any) -> list[Any]:
    if dask.is_dask_collection(qid):
        return list(np.ravel(qid.to_delayed()))
    if any(np.isnan(size) for size in sizes):
        raise InvalidInputError(
            "The partitions of X are of unknown sizes, and qid is in one piece.",
            "pass qid as a column of the same DataFrame, or call X.to_dask_array(lengths=True).",
        )
    ends = np.cumsum(sizes).astype(int)
    values = np.asarray(qid)
    return [values[end - int(size) : end] for end, size in zip(ends, sizes, strict=True)]


def _distinct(ids: Any) -> Any:
    return set(np.unique(np.asarray(ids)).tolist())


def _require_whole(distinct: list[set[Any]]) -> bool:
    seen: set[Any] = set()
    for part in distinct:
        both = seen & part
        if both:
            raise InvalidInputError(
                f"The query {next(iter(both))!r} has rows in two partitions, which are ranked one by one.",
                "bring queries together, for example with X.shuffle(on='qid'), or rank model.predict(X).compute().",
            )
        seen |= part
    return True


def _ranks(model: Any, scores: AnyArray, ids: Any, whole: bool) -> Any:
    return model._ranks_of(np.asarray(scores), np.asarray(ids))  # noqa: SLF001 - the estimator's own, of a partition


def _all_ranks(model: Any, blocks: list[AnyArray]) -> Any:
    return model._ranks_of(np.concatenate(blocks), None)  # noqa: SLF001


def _piece(ranks: AnyArray, blocks: list[AnyArray], at: int) -> AnyArray:
    first = sum(block.shape[0] for block in blocks[:at])
    return ranks[first : first + blocks[at].shape[0]]
