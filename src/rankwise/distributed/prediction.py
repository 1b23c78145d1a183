"""Scores and ranks of Dask data: computed when somebody asks for them, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Estimator, Floats, InMemory, Ints, Labels
from rankwise.distributed.dask_types import DaskArray, Frame, Lazy
from rankwise.distributed.data import ClusterRows
from rankwise.distributed.source import blocks_of
from rankwise.distributed.worker_rows import rows_of, uniform
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["predicted", "ranked"]


def predicted(model: Estimator, X: object) -> DaskArray | Frame:
    """Return the scores of a Dask collection: a Dask array, or a series for a DataFrame; nothing is computed yet."""
    if isinstance(X, ClusterRows):
        sizes, columns = np.diff(X.survey.ends, prepend=0).tolist(), (X.survey.first_column, X.shape[1])
        blocks: Sequence[Lazy] = [dask.delayed(uniform)(block, *columns) for block in X.source.blocks]
        return _joined([dask.delayed(_scores)(model, block) for block in blocks], sizes, model, np.float64)
    if hasattr(X, "columns"):
        frame = cast("Frame", X)
        if model.coef_.ndim == 2:
            return _of_frame(model, frame)
        return frame.map_partitions(model_frame_scores, model, meta=("score", np.float64))
    array = cast("DaskArray", X)
    blocks = blocks_of(array).blocks
    return _joined(
        [dask.delayed(_scores)(model, block) for block in blocks], array.chunks[0], model, np.float64
    )


def ranked(model: Estimator, X: object, qid: Labels | None) -> DaskArray:
    """Return the ranks of a Dask collection inside queries, as a Dask array.

    Partitions are ranked one by one; computing them raises an error where one query is in two of them. Without query
    ids all rows are ranked together, which takes all scores in one place.
    """
    lazy = predicted(model, X)
    scores = cast("DaskArray", lazy.to_dask_array() if hasattr(lazy, "to_dask_array") else lazy)
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


def model_frame_scores(frame: pd.DataFrame, model: Estimator) -> pd.Series:
    """Return the scores of a partition of a DataFrame as a series beside its rows."""
    import pandas as pd  # noqa: PLC0415 - the frame is pandas'

    scores = model.predict(frame) if len(frame) else np.empty(0)
    return pd.Series(scores, index=frame.index, name="score", dtype=np.float64)


def _of_frame(model: Estimator, X: Frame) -> DaskArray:
    blocks = X.to_delayed()
    sizes = (np.nan,) * len(blocks)
    return _joined([dask.delayed(_scores)(model, block) for block in blocks], sizes, model, np.float64)


def _joined(parts: list[Lazy], sizes: Sequence[float], model: Estimator, dtype: npt.DTypeLike) -> DaskArray:
    rest = model.coef_.shape[:1] if model.coef_.ndim == 2 else ()
    arrays = [
        da.from_delayed(part, shape=(size, *rest), dtype=dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return cast("DaskArray", da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True))


def _scores(model: Estimator, block: object) -> Floats:
    rows = cast("InMemory", block) if hasattr(block, "columns") else rows_of(block)
    if rows.shape[0] == 0:
        return np.empty((0, *model.coef_.shape[:-1]))
    scores: Floats = model.predict(rows)
    return scores


def _id_blocks(qid: Labels, sizes: Sequence[float]) -> list[Lazy]:
    if dask.is_dask_collection(qid):
        return list(np.ravel(cast("DaskArray", qid).to_delayed()))
    if any(np.isnan(size) for size in sizes):
        raise InvalidInputError(
            "The partitions of X are of unknown sizes, and qid is in one piece.",
            "pass qid as a column of the same DataFrame, or call X.to_dask_array(lengths=True).",
        )
    ends = np.cumsum(sizes).astype(int)
    values = np.asarray(qid)
    return [values[end - int(size) : end] for end, size in zip(ends, sizes, strict=True)]


def _distinct(ids: Labels) -> set[object]:
    return set(np.unique(np.asarray(ids)).tolist())


def _require_whole(distinct: list[set[object]]) -> bool:
    seen: set[object] = set()
    for part in distinct:
        both = seen & part
        if both:
            raise InvalidInputError(
                f"The query {next(iter(both))!r} has rows in two partitions, which are ranked one by one.",
                "bring queries together, for example with X.shuffle(on='qid'), or rank model.predict(X).compute().",
            )
        seen |= part
    return True


def _ranks(model: Estimator, scores: AnyArray, ids: Labels, whole: bool) -> Ints:
    ranks: Ints = model._ranks_of(np.asarray(scores), np.asarray(ids))  # noqa: SLF001 - the estimator's own, of a partition
    return ranks


def _all_ranks(model: Estimator, blocks: list[AnyArray]) -> Ints:
    ranks: Ints = model._ranks_of(np.concatenate(blocks), None)  # noqa: SLF001
    return ranks


def _piece(ranks: AnyArray, blocks: list[AnyArray], at: int) -> AnyArray:
    first = sum(block.shape[0] for block in blocks[:at])
    return ranks[first : first + blocks[at].shape[0]]
