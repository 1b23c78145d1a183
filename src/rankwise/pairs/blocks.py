"""Pairs inside queries as arrays: the representation of a graph in the compiled kernels.

Every graph that labels induce acts on a vector of scores ``f`` in the same way. Rows are grouped by query,
and inside a query by *segment*. With row weights ``w`` and segment sums ``S_l = sum of w_i f_i over l``,

    (L f)_i = w_i (degree_k f_i - T_k)          for a row i of segment k
    T_k     = scale_q * sum over segments l of q of  W(k, l) S_l

where ``W`` is the *coupling* of segments:

    "all"       1             ties are compared too; the whole query is one segment
    "others"    k != l        a segment is a level of the labels, compared with the other levels
    "relative"  1/(v_k-v_l)^2 as "others", but each pair weighs one over its squared label difference
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import AnyArray, Floats

Coupling = Literal["all", "others", "relative"]
COUPLINGS: tuple[Coupling, ...] = ("all", "others", "relative")

# Waking threads costs about 10 microseconds: below this many rows times vectors one thread is faster.
MANY_SCORES = 1 << 16


@dataclass(frozen=True)
class QueryBlocks:
    """The Laplacian of a graph that has independent queries (see the module's docstring).

    Attributes
    ----------
    order : (rows,) int64
        Rows in grouped order (by query, then by segment), as positions in the caller's arrays.
    query_start : (queries + 1,) int64
        Where each query starts in grouped order.
    segment_start : (segments + 1,) int64
        Where each segment starts in grouped order.
    query_segment : (queries + 1,) int64
        The first segment of each query.
    degree : (segments,) float64
        The total weight of a row's pairs, for a row of weight 1; `scale` is included.
    scale : (queries,) float64
        The weight of a pair of rows of weight 1.
    coupling : str
    row_weight : (rows,) float64 or None
        In grouped order; None where all weigh 1.
    level_value : (segments,) float64 or None
        The label of each segment; only for the relative coupling.
    """

    order: npt.NDArray[np.int64]
    query_start: npt.NDArray[np.int64]
    segment_start: npt.NDArray[np.int64]
    query_segment: npt.NDArray[np.int64]
    degree: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    coupling: Coupling
    row_weight: npt.NDArray[np.float64] | None = None
    level_value: npt.NDArray[np.float64] | None = None

    def chosen(self, queries: npt.NDArray[np.int64]) -> QueryBlocks:
        """Return the blocks of some queries, in the order given; `order` holds the caller's rows as before."""
        segment, row = ranges(self.query_segment, queries), ranges(self.query_start, queries)
        return replace(
            self,
            order=self.order[row],
            query_start=_starts(np.diff(self.query_start)[queries]),
            segment_start=_starts(np.diff(self.segment_start)[segment]),
            query_segment=_starts(np.diff(self.query_segment)[queries]),
            degree=self.degree[segment],
            scale=self.scale[queries],
            row_weight=None if self.row_weight is None else self.row_weight[row],
            level_value=None if self.level_value is None else self.level_value[segment],
        )

    def of_rows(self, grouped: AnyArray) -> AnyArray:
        """Return values of rows in the caller's order from those in grouped order."""
        out = np.empty_like(grouped)
        out[self.order] = grouped
        return out

    def degrees(self) -> Floats:
        """Return the total weight of each row's pairs."""
        degree = np.repeat(self.degree, np.diff(self.segment_start))
        return self.of_rows(degree if self.row_weight is None else degree * self.row_weight)

    def compiled(self) -> _core.Blocks:
        """Return the same arrays as the compiled kernels take them."""
        return _core.Blocks(**vars(self))


@dataclass(frozen=True)
class Folds:
    """Cross-validation in lockstep: column c of a block of vectors sees the rows of fold c with weight 0.

    Only for the couplings "all" and "others".

    Attributes
    ----------
    fold : (rows,) int32
        In the caller's order; -1 for a row that is never held out.
    degree : (segments, folds) float64
    scale : (queries, folds) float64
        As in `QueryBlocks`, for the weights that each column sees.
    scored : (k,) int64, optional
        The rows whose held-out scores are used; workers need not send the others. None for all rows.
    """

    fold: npt.NDArray[np.int32]
    degree: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    scored: npt.NDArray[np.int64] | None = None

    def chosen(self, blocks: QueryBlocks, queries: npt.NDArray[np.int64]) -> Folds:
        """Return the folds of some queries of the blocks; see `QueryBlocks.chosen`."""
        segment = ranges(blocks.query_segment, queries)
        return replace(self, degree=self.degree[segment], scale=self.scale[queries])

    def compiled(self, held_out: npt.NDArray[np.float64] | None = None) -> _core.Folds:
        """Return the same arrays as the compiled kernels take them, and where held-out scores go."""
        if held_out is None:
            held_out = np.empty(self.fold.size)
        return _core.Folds(fold=self.fold, degree=self.degree, scale=self.scale, held_out=held_out)


def ranges(start: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the positions of some ranges, one range after the other."""
    sizes = np.diff(start)[chosen]
    ends = np.cumsum(sizes)
    return np.repeat(start[chosen] - ends + sizes, sizes) + np.arange(int(sizes.sum()))


def _starts(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64, copy=False)


def as_table(v: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a vector or a block of vectors as the kernels take it: two axes, C-ordered float64."""
    table = np.ascontiguousarray(v, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table


def laplacian(
    blocks: QueryBlocks,
    scores: npt.NDArray[np.float64],
    *,
    n_threads: int = 1,
    folds: Folds | None = None,
    held_out: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float64]:
    """Return ``L f`` for scores of shape (rows,) or (rows, k) in the caller's order; O(rows) per vector.

    With `folds`, `held_out` (rows,) receives the score that each held-out row has in the column of its fold.
    """
    table = as_table(scores)
    out = np.zeros_like(table)
    threads = n_threads if table.size >= MANY_SCORES else 1
    compiled_folds = None if folds is None else folds.compiled(held_out)
    _core.laplacian(blocks.compiled(), compiled_folds, table, out, threads)
    return out.reshape(scores.shape)
