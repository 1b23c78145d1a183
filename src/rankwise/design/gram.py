"""X' L X and its diagonal from dense rows: of an array by one compiled pass, of other storages block by block.

L does not see a shift inside a query, so each query is centred before anything is squared: features far from
zero lose no digits. With rows z centred and S_k the weighted sums of the segments (see `rankwise.pairs.blocks`),

    X' L X = sum of w degree z z'  -  sum over segments S_k T_k',

where T is zero for the coupling "all", -scale S for "others", and scale W S for "relative".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas
from scipy.linalg.blas import dsyrk

from rankwise import _core
from rankwise.arrays import Floats
from rankwise.pairs.blocks import MANY_SCORES, QueryBlocks, as_table
from rankwise.runtime.threads import LARGE_MATRIX, blas_held, large_algebra

# Doubles in a block: 1 MB is copied, centred and multiplied without leaving the cache of a core.
BLOCK_SIZE = 1 << 17

# Stripes of rows whose sums are kept apart, so that threads can share them out: each of so many rows at least, and so
# many that its sums take an eighth of the memory of its rows.
STRIPE_ROWS = 1024
STRIPES = 32

Fetch = Callable[[npt.NDArray[np.int64]], Floats]

# BLAS's own function, which compiled code can call from its threads.
_DSYRK = cython_blas.__pyx_capi__["dsyrk"]
_IS_USUAL_BLAS = "(char *, char *, int *, int *, " in str(_DSYRK)  # not one with integers of 64 bits


def dense_system(
    X: npt.NDArray[np.float64] | npt.NDArray[np.float32], blocks: QueryBlocks, pull: Floats, n_threads: int
) -> tuple[Floats, Floats] | None:
    """Return ``X' L X`` and ``X' r`` from one pass over an array; None where blocks are better.

    Parameters
    ----------
    X : (rows, n) float64 or float32
        In any memory order.
    pull : (rows,) or (rows, outputs) float64
        ``r``, which sums to zero in every query.
    """
    n = X.shape[1]
    rows = max(1, BLOCK_SIZE // max(n, 1))
    is_regular = X.flags.aligned and all(stride % X.itemsize == 0 for stride in X.strides)
    if not _IS_USUAL_BLAS or not is_regular or not 0 < n < LARGE_MATRIX or blocks.coupling == "relative":
        return None
    if blocks.coupling == "others" and np.diff(blocks.query_start).max(initial=0) > rows:
        return None  # a level may be as large as the query, and its sum needs all of it
    table = as_table(pull)
    matrix, rhs = np.empty((n, n)), np.empty((n, table.shape[1]))
    threads = n_threads if X.size >= MANY_SCORES else 1
    with blas_held():
        _core.dense_gram(
            X, blocks.compiled(), table, matrix, rhs, rows, n_stripes(blocks.order.size, n), _DSYRK, threads
        )
    return matrix, rhs.reshape(n, *pull.shape[1:])


def n_stripes(n_rows: int, n_columns: int) -> int:
    """Return the number of stripes, from the shape alone, because the rounding of the sums depends on it."""
    return min(max(n_rows // max(STRIPE_ROWS, 8 * n_columns), 1), STRIPES)


@dataclass(frozen=True)
class CentredBlocks:
    """Walks the rows of a design in dense blocks.

    Attributes
    ----------
    fetch : callable
        Gives some rows as a new C-ordered float64 array.
    """

    fetch: Fetch
    blocks: QueryBlocks
    columns: int
    n_threads: int

    def __iter__(self) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield ``(Z, S, T)``: centred rows times the root of their weight, and the segments' terms."""
        start = self.blocks.query_start
        for first, last in self._query_runs():
            if (start[last] - start[first]) * self.columns > 2 * BLOCK_SIZE and last == first + 1:
                yield from self._large_query(first)
            else:
                yield self._whole_queries(first, last)

    def _query_runs(self) -> Iterator[tuple[int, int]]:
        start = self.blocks.query_start
        rows = max(1, BLOCK_SIZE // max(1, self.columns))
        first = 0
        while first < start.size - 1:
            last = int(np.searchsorted(start, start[first] + rows, side="right")) - 1
            last = max(last, first + 1)
            yield first, last
            first = last

    def _whole_queries(self, first: int, last: int) -> tuple[Floats, Floats, Floats]:
        blocks = self.blocks
        Z = self._rows(int(blocks.query_start[first]), int(blocks.query_start[last]))
        segments = int(blocks.query_segment[last] - blocks.query_segment[first])
        needed = blocks.coupling != "all"
        S = np.zeros((segments if needed else 0, self.columns))
        threads = self.n_threads if last - first > self.n_threads and Z.size >= MANY_SCORES else 1
        _core.centre_queries(blocks.compiled(), first, last, Z, S if needed else None, threads)
        return Z, S, self._coupled(first, last, S)

    def _coupled(self, first: int, last: int, S: Floats) -> Floats:
        blocks = self.blocks
        if blocks.coupling == "relative":
            T = np.empty_like(S)
            _core.couple_relative(blocks.compiled(), first, last, S, T, self.n_threads)
            return T
        if blocks.coupling == "others":
            scale = np.repeat(blocks.scale[first:last], np.diff(blocks.query_segment[first : last + 1]))
            return -scale[:, None] * S
        return S

    def _rows(self, first: int, last: int) -> Floats:
        """Return some of the grouped rows."""
        return self.fetch(self.blocks.order[first:last])

    def _large_query(self, query: int) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield rows piece by piece, and a level's sum once it ends: there may be as many levels as rows."""
        blocks, pieces = self.blocks, self._pieces(query)
        mean, compiled = self._mean(pieces), blocks.compiled()
        S = none = np.zeros((0, self.columns))
        origin = int(blocks.query_segment[query])  # the level whose sum is the first of S
        for first, last in pieces:
            Z, ended = self._rows(first, last), 0
            if blocks.coupling == "all":
                _core.shift_rows(compiled, first, last, mean, Z, None, 0)
            else:
                begun = int(np.searchsorted(blocks.segment_start, last, side="left"))
                S = np.vstack([S, np.zeros((begun - origin - S.shape[0], self.columns))])
                _core.shift_rows(compiled, first, last, mean, Z, S, origin)
            if blocks.coupling == "others":
                ended = int(np.searchsorted(blocks.segment_start, last, side="right")) - 1 - origin
            yield Z, S[:ended], -blocks.scale[query] * S[:ended]
            S, origin = S[ended:], origin + ended
        if blocks.coupling == "relative":  # every level meets every other
            yield none, S, self._coupled(query, query + 1, S)

    def _pieces(self, query: int) -> list[tuple[int, int]]:
        start, end = (int(p) for p in self.blocks.query_start[query : query + 2])
        step = max(1, BLOCK_SIZE // max(1, self.columns))
        return [(first, min(first + step, end)) for first in range(start, end, step)]

    def _mean(self, pieces: list[tuple[int, int]]) -> Floats:
        weight = self.blocks.row_weight
        total = np.zeros(self.columns)
        mass = 0.0
        for first, last in pieces:
            w = np.ones(last - first) if weight is None else weight[first:last]
            total += w @ self._rows(first, last)
            mass += float(w.sum())
        return total / mass if mass > 0 else total


def gram_matrix(centred: CentredBlocks) -> Floats:
    """Return ``X' L X``."""
    G: npt.NDArray[np.float64] = np.zeros((centred.columns, centred.columns), order="F")
    if centred.columns == 0:
        return G
    with large_algebra(centred.columns):
        for Z, S, T in centred:
            # Z' Z of C-ordered rows, the upper half only.
            G = dsyrk(1.0, Z.T, beta=1.0, c=G, overwrite_c=1)
            if S.shape[0]:
                G -= S.T @ T
    upper = np.triu(G)
    return upper + np.triu(G, 1).T


def gram_diagonal(centred: CentredBlocks) -> Floats:
    """Return ``diag(X' L X)``."""
    diagonal = np.zeros(centred.columns)
    for Z, S, T in centred:
        diagonal += np.einsum("ij,ij->j", Z, Z) - np.einsum("ij,ij->j", S, T)
    return diagonal
