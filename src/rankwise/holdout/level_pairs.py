"""Leave-pair-out for one ranking by its levels: ties left out, or pairs that weigh by their labels.

There RankRLS is no ridge regression, and how much a row weighs depends on how many rows the other levels have.
Without a row i of level a and a row j of level b the Laplacian is

    L = P - C W C'            P: the rows' degrees, constant on a level; C: the levels' indicators; W: levels × levels

where P depends on (a, b) alone. All pairs of rows of two levels share a matrix B that is positive and answers for all
rows, and what tells one pair from another is a change of rank 4 or 6 (see `cpp/held_out_pairs.hpp`), O(1) per pair. Two
ways lead to B, and `LevelRanking.price` tells which is cheaper:

- one decomposition a pair of levels, of the kernel with the degrees P: for any W, the relative cost's too;
- where W is 1 between all levels, P is ``m - 2 - n_l``, plus 1 on a and on b. So one decomposition for all is followed
  by a system of the size of the two levels: the more levels there are, the cheaper.

Rows weigh 1 each; the weight of pairs is that of the rows that are left. See docs/mathematics.md, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from rankwise import _core
from rankwise.arrays import Floats, Rows
from rankwise.holdout.decomposition import PrimalHoldOut
from rankwise.holdout.levels import (
    LevelRanking,
    LevelSystem,
    Reweighted,
    change_without,
    level_sums,
    plain_coupling,
)
from rankwise.holdout.portions import pair_progress

__all__ = ["level_pair_out_error", "level_pair_out_scores"]

_ROUNDING = 1e-10
_PAIR_BLOCK = 1 << 20  # pairs scored at a time
_BATCH = 1 << 17  # entries of B for some pairs of levels
_AHEAD = 16  # batches
_SMALL = 1e8  # operations in the products of a pair of levels
_MANY_SCORES = 1 << 13  # fewer are not worth the start of a thread

# The position of an alpha, rows i and rows j of some pairs of levels, and the scores of all their pairs, (pairs, 2).
_Found = tuple[int, list[tuple[Rows, Rows]], Floats]


def level_pair_out_scores(
    reweighted: Reweighted, ranking: LevelRanking, alphas: Floats, *, shares: bool, n_threads: int = 1
) -> Iterator[_Found]:
    """Yield scores of rows i and j without the two of them, in portions.

    Every pair of rows with different labels comes once per alpha; only differences of scores mean anything.

    Parameters
    ----------
    shares : bool
        Whether all pairs of levels share one decomposition: only where the ranking `is_multipartite`.

    Yields
    ------
    position of the alpha, list of (rows i, rows j), (pairs, 2) float64
    """
    methods = _by_systems if shares else _by_decompositions
    learns: dict[tuple[int, int], float] = {}
    for a, b in combinations(range(ranking.values.size), 2):
        scale = ranking.scale_without(a, b)
        if scale > 0:
            learns[a, b] = scale
        else:  # nothing is left to learn from: all scores are equal
            rows = ranking.rows_of[a], ranking.rows_of[b]
            for at in range(alphas.size):
                yield at, [rows], np.zeros((rows[0].size * rows[1].size, 2))
    if learns:
        yield from methods(reweighted, ranking, alphas, learns, n_threads)


def level_pair_out_error(
    reweighted: Reweighted,
    ranking: LevelRanking,
    alphas: Floats,
    *,
    shares: bool,
    code: Rows | None = None,
    n_threads: int = 1,
) -> Floats:
    """Return the share of the pairs with different labels that are ordered wrongly, a tie counting one half.

    Rows that share a `code` tie.
    """
    code = np.arange(ranking.level.size) if code is None else code
    balance = np.zeros(alphas.size)
    total = float(ranking.level.size**2 - ranking.sizes @ ranking.sizes) / 2
    found = level_pair_out_scores(reweighted, ranking, alphas, shares=shares, n_threads=n_threads)
    n_scored = 0
    with pair_progress(total) as progress:
        for at, rows, scores in found:
            better = scores[:, 1] - scores[:, 0]  # the second level is the higher one
            equal = np.concatenate([(code[i][:, None] == code[j]).ravel() for i, j in rows])
            better[equal | (np.abs(better) <= _ROUNDING * np.abs(scores).sum(axis=1))] = 0.0
            balance[at] += np.count_nonzero(better > 0) - np.count_nonzero(better < 0)
            n_scored += better.size
            progress.reach(n_scored / (total * alphas.size))
    return np.asarray(0.5 * (1.0 - balance / total))


def _by_decompositions(
    reweighted: Reweighted,
    ranking: LevelRanking,
    alphas: Floats,
    learns: dict[tuple[int, int], float],
    n_threads: int,
) -> Iterator[_Found]:
    """Decompose once per pair of levels."""
    cached: tuple[Floats, PrimalHoldOut] | None = None
    n_rows, n_levels = ranking.level.size, ranking.values.size
    # The library's threads wait for each other at every product, which small levels do not repay.
    is_small = n_rows * (n_rows / n_levels) ** 2 < _SMALL
    with threadpool_limits(1 if is_small else None, user_api="blas"):
        for (a, b), scale in learns.items():
            degree = ranking.coupling @ ranking.left(a, b)
            shape = degree / degree.max()
            if cached is None or not np.allclose(cached[0], shape, rtol=1e-15, atol=0):
                cached = shape, reweighted(shape[ranking.level])
            sums = level_sums(cached[1].features, ranking)
            change = change_without(ranking, a, b)
            for at, alpha in enumerate(alphas):
                system = LevelSystem(cached[1], float(degree.max()), sums, change[0], float(alpha) / scale)
                for rows, scores in _of_two_levels(system, ranking, (a, b), change, n_threads):
                    yield at, [rows], scores


def _of_two_levels(
    system: LevelSystem,
    ranking: LevelRanking,
    levels: tuple[int, int],
    change: tuple[Floats, Floats, Floats],
    n_threads: int,
) -> Iterator[tuple[tuple[Rows, Rows], Floats]]:
    """Yield some rows of the first level, all of the second, and the scores of their pairs."""
    _, vectors, correction = change
    pull = ranking.weighed_difference @ ranking.left(*levels)
    to = system.to_level @ np.column_stack([vectors, pull])
    products = vectors.T @ (system.products @ to)
    every, second = (ranking.rows_of[level] for level in levels)
    to_second = system.across_levels(second)
    middle, other = to_second @ system.middle, system.features[second]
    own_second = np.square(other) @ system.inverse + np.einsum("rl,rl->r", middle, to_second)
    of_second = _parted(to_second @ to)
    step = max(1, _PAIR_BLOCK // second.size)
    for start in range(0, every.size, step):
        first = every[start : start + step]
        to_first, mine = system.across_levels(first), system.features[first]
        weighted = mine * system.inverse
        own = np.einsum("rk,rk->r", weighted, mine)
        own += np.einsum("rl,rl->r", to_first @ system.middle, to_first)
        scores = np.empty((first.size * second.size, 2))
        of_first, of_vectors = _parted(to_first @ to), _parted(products)
        _core.level_pair_scores(
            across=weighted @ other.T + to_first @ middle.T,
            own_a=own,
            own_b=own_second,
            to_a=of_first[0],
            to_b=of_second[0],
            vector_products=of_vectors[0],
            pulled_a=of_first[1],
            pulled_b=of_second[1],
            pulled_vectors=of_vectors[1],
            correction=correction,
            pull_a=float(pull[levels[0]]),
            pull_b=float(pull[levels[1]]),
            scores=scores,
            n_threads=n_threads if scores.size > _MANY_SCORES else 1,
        )
        yield (first, second), scores


def _parted(table: Floats) -> tuple[Floats, Floats]:
    """Return all columns but the last, and the last."""
    return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])


def _by_systems(
    reweighted: Reweighted,
    ranking: LevelRanking,
    alphas: Floats,
    learns: dict[tuple[int, int], float],
    n_threads: int,
) -> Iterator[_Found]:
    """Decompose once, with the degrees that levels have which neither row is of; then a system per pair of levels."""
    degree = ranking.level.size - 2.0 - ranking.sizes
    whole = float(degree.max())
    decomposition = reweighted((degree / whole)[ranking.level])
    sums = level_sums(decomposition.features, ranking)
    coupling = plain_coupling(ranking)
    pull = ranking.weighed_difference @ ranking.sizes
    batches = {
        scale: list(_batches(ranking, [pair for pair, own in learns.items() if own == scale]))
        for scale in set(learns.values())
    }
    # Whole batches in threads of their own: the library's threads would wait for each other at every product.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_threads) as pool:
        for at, alpha in enumerate(alphas):
            for scale, own in batches.items():
                system = LevelSystem(decomposition, whole, sums, coupling, float(alpha) / scale)
                yield from _in_batches(system, ranking, pull, at, own, pool)


def _in_batches(
    system: LevelSystem,
    ranking: LevelRanking,
    pull: Floats,
    at: int,
    batches: list[_Batch],
    pool: Executor,
) -> Iterator[_Found]:
    used = np.unique(np.concatenate([batch.index[batch.is_row] for batch in batches]))
    place = np.zeros(ranking.level.size, dtype=np.int64)
    place[used] = np.arange(used.size)
    to_levels, features = system.across_levels(used), system.features[used]
    whole = (features * system.inverse) @ features.T  # B of these rows
    whole += (to_levels @ system.middle) @ to_levels.T
    # What the rows of all levels pull, and what those of one level do: the columns of BC times either.
    pulled = to_levels @ (system.to_level @ np.column_stack([pull, ranking.weighed_difference]))

    def solve(batch: _Batch) -> _Found:
        index, first, second = place[batch.index], batch.levels[:, 0], batch.levels[:, 1]
        B = whole[index[:, :, None], index[:, None, :]]
        B *= batch.is_row[:, :, None] & batch.is_row[:, None, :]
        own = pulled[index, 0] - pulled[index, 1 + first[:, None]] - pulled[index, 1 + second[:, None]]
        rhs = np.concatenate([B, (own * batch.is_row)[:, :, None]], axis=2)
        solved = np.linalg.solve(B + np.eye(B.shape[1]), rhs)
        step = ranking.weighed_difference[first, second]
        scores = np.empty((int(batch.sizes.prod(axis=1).sum()), 2))
        _core.multipartite_pair_scores(
            np.ascontiguousarray(solved[:, :, :-1]),
            np.ascontiguousarray(solved[:, :, -1]),
            batch.sizes,
            np.column_stack([pull[first] - step, pull[second] + step]),
            ranking.level.size,
            scores,
        )
        return at, [(ranking.rows_of[a], ranking.rows_of[b]) for a, b in batch.levels], scores

    for start in range(0, len(batches), _AHEAD):  # finished scores wait for whoever takes them
        yield from pool.map(solve, batches[start : start + _AHEAD])


@dataclass(frozen=True)
class _Batch:
    """Some pairs of levels of about the same size.

    Attributes
    ----------
    levels, sizes : (pairs, 2) int64
        Their numbers, and how many rows they have.
    index : (pairs, width) int64
        Their rows, those of the first level first, padded to one width by some row.
    is_row : (pairs, width) bool
    """

    levels: Rows
    sizes: Rows
    index: Rows
    is_row: npt.NDArray[np.bool_]

    @classmethod
    def of_pairs(cls, ranking: LevelRanking, pairs: list[tuple[int, int]]) -> _Batch:
        """Look up the rows."""
        levels = np.array(pairs, dtype=np.int64)
        sizes = ranking.sizes.astype(np.int64)[levels]
        is_row = np.arange(sizes.sum(axis=1).max()) < sizes.sum(axis=1)[:, None]
        index = np.zeros(is_row.shape, dtype=np.int64)
        index[is_row] = np.concatenate([ranking.rows_of[level] for level in levels.reshape(-1)])
        return cls(levels, sizes, index, is_row)


def _batches(ranking: LevelRanking, pairs: list[tuple[int, int]]) -> Iterator[_Batch]:
    """Yield so many pairs of levels at a time that their systems stay in cache."""
    size_of = ranking.sizes.astype(np.int64)
    both = {(a, b): int(size_of[a] + size_of[b]) for a, b in pairs}
    batch: list[tuple[int, int]] = []
    for pair in sorted(pairs, key=both.__getitem__):
        is_full = (len(batch) + 1) * both[pair] ** 2 > _BATCH
        if batch and (is_full or 4 * both[batch[0]] < 3 * both[pair]):
            yield _Batch.of_pairs(ranking, batch)
            batch = []
        batch.append(pair)
    if batch:
        yield _Batch.of_pairs(ranking, batch)
