"""Leave-pair-out for one ranking by its levels: ties left out, or pairs that weigh by their labels.

There RankRLS is no ridge regression, and how much a row weighs depends on how many rows the other levels have.
Without a row i of level a and a row j of level b the Laplacian is

    L = P - C W C'            P: the rows' degrees, constant on a level; C: the levels' indicators; W: levels × levels

where P depends on (a, b) alone. All pairs of rows of two levels share a matrix B that is positive and answers for all
rows, and what tells one pair from another is a change of rank 4 or 6 (see `cpp/held_out_pairs.hpp`), O(1) a pair. Two
ways lead to B, and `LevelRanking.price` tells which is cheaper:

- one decomposition a pair of levels, of the kernel with the degrees P: for any W, the relative cost's too;
- where W is 1 between all levels, P is ``m - 2 - n_l``, plus 1 on a and on b. So one decomposition for all is followed
  by a system of the size of the two levels: the more levels there are, the cheaper.

Rows weigh 1 each; the weight of pairs is that of the rows that are left. See docs/mathematics.md, section 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import combinations

import numpy as np
from threadpoolctl import threadpool_limits

from rankwise import _core
from rankwise.holdout.levels import LevelRanking, LevelSystem, Reweighted, Rows
from rankwise.pairs.graph import Floats

__all__ = ["level_pair_out_error", "level_pair_out_scores"]

_ROUNDING = 1e-10
_PAIR_BLOCK = 1 << 20  # pairs judged at a time
_BATCH = 1 << 20  # doubles in the rows of some pairs of levels

# The position of an alpha, rows i and rows j of some pairs of levels, and the scores of all their pairs, (pairs, 2).
_Found = tuple[int, list[tuple[Rows, Rows]], Floats]


def level_pair_out_scores(
    reweighted: Reweighted, ranking: LevelRanking, alphas: Floats, *, shares: bool, n_threads: int = 1
) -> Iterator[_Found]:
    """Yield scores of rows i and j without the two of them, in portions.

    Every pair of rows with different labels comes once an alpha; only differences of scores mean anything.

    Parameters
    ----------
    shares : bool
        Whether all pairs of levels share one decomposition: only where the ranking `is_multipartite`.

    Yields
    ------
    position of the alpha, list of (rows i, rows j), (pairs, 2) float64
    """
    roads = _by_systems if shares else _by_decompositions
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
        yield from roads(reweighted, ranking, alphas, learns, n_threads)


def level_pair_out_error(
    reweighted: Reweighted, ranking: LevelRanking, alphas: Floats, *, shares: bool, n_threads: int = 1
) -> Floats:
    """Return the share of the pairs with different labels that are ordered wrongly, a tie counting one half."""
    balance = np.zeros(alphas.size)
    for at, _, scores in level_pair_out_scores(
        reweighted, ranking, alphas, shares=shares, n_threads=n_threads
    ):
        better = scores[:, 1] - scores[:, 0]  # the second level is the higher one
        better[np.abs(better) <= _ROUNDING * np.abs(scores).sum(axis=1)] = 0.0
        balance[at] += np.count_nonzero(better > 0) - np.count_nonzero(better < 0)
    total = (ranking.level.size**2 - ranking.sizes @ ranking.sizes) / 2
    return np.asarray(0.5 * (1.0 - balance / total))


def _by_decompositions(
    reweighted: Reweighted,
    ranking: LevelRanking,
    alphas: Floats,
    learns: dict[tuple[int, int], float],
    n_threads: int,
) -> Iterator[_Found]:
    """Decompose once a pair of levels."""
    rows_of = ranking.rows_of
    cached: tuple[Floats, tuple[Floats, Floats]] | None = None
    for (a, b), scale in learns.items():
        left = ranking.left(a, b)
        degree = ranking.coupling @ left
        whole = float(degree.max())
        shape = degree / whole
        if cached is None or not np.allclose(cached[0], shape, rtol=1e-15, atol=0):
            cached = shape, reweighted(shape[ranking.level])
        coupling, vectors, correction = _change(ranking, a, b)
        n_vectors = vectors.shape[1]
        pull = ranking.weighed_difference @ left
        to = np.column_stack([vectors, pull])
        sums = _level_sums(cached[1][0], ranking)
        for at, alpha in enumerate(alphas):
            system = LevelSystem(cached[1], whole, sums, coupling, float(alpha) / scale)
            products = vectors.T @ (system.level_products @ to)
            second = rows_of[b]
            to_second = system.across_levels(second)
            middle = to_second @ system.middle
            other = system.features[second]
            own_second = np.square(other) @ system.inverse + np.einsum("rl,rl->r", middle, to_second)
            of_second = to_second @ (system.to_level @ to)
            step = max(1, _PAIR_BLOCK // second.size)
            for start in range(0, rows_of[a].size, step):
                first = rows_of[a][start : start + step]
                mine = system.features[first] * system.inverse
                to_first = system.across_levels(first)
                own = np.einsum("rk,rk->r", mine, system.features[first])
                own += np.einsum("rl,rl->r", to_first @ system.middle, to_first)
                of_first = to_first @ (system.to_level @ to)
                scores = np.empty((first.size * second.size, 2))
                _core.level_pair_scores(
                    mine @ other.T + to_first @ middle.T,
                    own,
                    own_second,
                    np.ascontiguousarray(of_first[:, :n_vectors]),
                    np.ascontiguousarray(of_second[:, :n_vectors]),
                    np.ascontiguousarray(products[:, :n_vectors]),
                    np.ascontiguousarray(of_first[:, n_vectors]),
                    np.ascontiguousarray(of_second[:, n_vectors]),
                    np.ascontiguousarray(products[:, n_vectors]),
                    correction,
                    float(pull[a]),
                    float(pull[b]),
                    scores,
                    n_threads,
                )
                yield at, [(first, second)], scores


def _change(ranking: LevelRanking, a: int, b: int) -> tuple[Floats, Floats, Floats]:
    """Return what makes ``B^-1 = α K^-1 + P - D W D'`` the system without a row of each of two levels.

    That is the coupling of C in B, the vectors h beside e_i and e_j, as sums of columns of C, and M. In general
    ``D = C diag(√(n'/n))``, so that B is positive whatever W: the indicators without i and j are D plus
    ``c_a 1_a - e_i`` in column a and ``c_b 1_b - e_j`` in column b, ``c = 1 - √(n'/n)``, and h are
    1_a, 1_b, D W_a, D W_b.
    """
    W, both = ranking.coupling, [a, b]
    left, n_rows = ranking.left(a, b), ranking.level.size
    indicators = np.zeros((ranking.values.size, 2))
    indicators[both, [0, 1]] = 1.0
    if ranking.is_plain:
        n_a, n_b = (float(size) for size in ranking.sizes[both])
        return _plain_coupling(ranking), indicators, _plain_correction(n_a, n_b, n_rows)
    root = np.sqrt(left / ranking.sizes)
    leaving = np.vstack([-np.eye(2), np.diag(1 - root[both]), np.zeros((2, 2))])  # c 1 - e
    onto = np.vstack([np.zeros((4, 2)), np.eye(2)])
    correction = -leaving @ onto.T - onto @ leaving.T - leaving @ W[np.ix_(both, both)] @ leaving.T
    correction[[0, 1], [0, 1]] -= (W @ left)[both]
    vectors = np.hstack([indicators, root[:, None] * W[:, both]])
    return root[:, None] * W * root, vectors, np.ascontiguousarray(correction)


def _plain_coupling(ranking: LevelRanking) -> Floats:
    """Where W is 1 between all levels: of rank 1 but for the levels themselves, and such that B is positive.

    As K is centred, so is B, and multiples of a constant do not count: neither this factor, nor what they add to M.
    """
    n_rows, n_levels = ranking.level.size, ranking.values.size
    return np.full((n_levels, n_levels), (n_rows - 2) / n_rows) - np.eye(n_levels)


def _plain_correction(n_a: float, n_b: float, n_rows: int) -> Floats:
    """Return M over ``(e_i, e_j, 1_a, 1_b)`` there."""
    m_a, m_b = n_a - n_rows + 1.0, n_b - n_rows + 1.0
    return np.array([[m_a, -1, -1, 0], [-1, m_b, 0, -1], [-1, 0, 0, 0], [0, -1, 0, 0]])


def _by_systems(
    reweighted: Reweighted,
    ranking: LevelRanking,
    alphas: Floats,
    learns: dict[tuple[int, int], float],
    n_threads: int,
) -> Iterator[_Found]:
    """Decompose once, with the degrees that levels have which neither row is of; then a system a pair of levels."""
    degree = ranking.level.size - 2.0 - ranking.sizes
    whole = float(degree.max())
    decomposition = reweighted((degree / whole)[ranking.level])
    sums = _level_sums(decomposition[0], ranking)
    coupling = _plain_coupling(ranking)
    pull = ranking.weighed_difference @ ranking.sizes
    batches = {
        scale: list(_batches(ranking, [pair for pair, own in learns.items() if own == scale], sums.shape[1]))
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
    batches: list[list[tuple[int, int]]],
    pool: Executor,
) -> Iterator[_Found]:
    to_levels = system.across_levels(slice(None))
    left = np.hstack([system.features * system.inverse, to_levels @ system.middle])
    right = np.hstack([system.features, to_levels])
    # What the rows of all levels pull, and what those of one level do: the columns of BC times either.
    pulled = to_levels @ (system.to_level @ np.column_stack([pull, ranking.weighed_difference]))

    def solve(batch: list[tuple[int, int]]) -> _Found:
        rows = [(ranking.rows_of[a], ranking.rows_of[b]) for a, b in batch]
        sizes = np.array([(i.size, j.size) for i, j in rows], dtype=np.int64)
        is_row = np.arange(sizes.sum(axis=1).max()) < sizes.sum(axis=1)[:, None]
        index = np.zeros(is_row.shape, dtype=np.int64)
        index[is_row] = np.concatenate([part for pair in rows for part in pair])
        padding = is_row[:, :, None]
        B = np.where(padding, left[index], 0.0) @ np.where(padding, right[index], 0.0).transpose(0, 2, 1)
        gone = 1 + np.array(batch)
        own = pulled[index, 0] - pulled[index, gone[:, :1]] - pulled[index, gone[:, 1:]]
        system = B + np.eye(B.shape[1])
        solved = np.linalg.solve(system, np.concatenate([B, np.where(is_row, own, 0.0)[:, :, None]], axis=2))
        first, second = np.array(batch).T
        step = ranking.weighed_difference[first, second]
        pulls = np.column_stack([pull[first] - step, pull[second] + step])
        scores = np.empty((int((sizes[:, 0] * sizes[:, 1]).sum()), 2))
        _core.multipartite_pair_scores(
            np.ascontiguousarray(solved[:, :, :-1]),
            np.ascontiguousarray(solved[:, :, -1]),
            sizes,
            pulls,
            ranking.level.size,
            scores,
        )
        return at, rows, scores

    yield from pool.map(solve, batches)


def _batches(
    ranking: LevelRanking, pairs: list[tuple[int, int]], rank: int
) -> Iterator[list[tuple[int, int]]]:
    """Yield pairs of levels of about the same size, so many that their rows stay in cache."""
    size_of = ranking.sizes.astype(np.int64)
    both = {(a, b): int(size_of[a] + size_of[b]) for a, b in pairs}
    batch: list[tuple[int, int]] = []
    for pair in sorted(pairs, key=both.__getitem__):
        is_full = (len(batch) + 1) * both[pair] * (rank + both[pair] + ranking.values.size) > _BATCH
        if batch and (is_full or 4 * both[batch[0]] < 3 * both[pair]):
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


def _level_sums(features: Floats, ranking: LevelRanking) -> Floats:
    """Return ``C'Φ``."""
    order = np.concatenate(ranking.rows_of)
    start = np.concatenate([[0], np.cumsum(ranking.sizes[:-1])]).astype(np.int64)
    return np.asarray(np.add.reduceat(features[order], start, axis=0))
