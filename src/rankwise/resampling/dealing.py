"""Dealing queries, rows or pairs to folds, by what they hold instead of by their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankwise.data.queries import Queries
from rankwise.design import Design
from rankwise.pairs.graph import Floats

__all__ = ["deal_folds", "deal_pairs", "hold_out", "sample_rows", "share_as_folds"]

Ints = npt.NDArray[np.int64]


def deal_folds(
    design: Design, labels: Floats, queries: Queries, n_folds: int, seed: int
) -> npt.NDArray[np.int32]:
    """Deal whole queries to folds, or the rows where there is one query only.

    Folds depend on what the rows hold, not on their order nor on the names of queries: queries are sorted
    by size and rows by label, ties by a random projection of their content, and each run of `n_folds`
    neighbours is dealt in random order. So folds also have nearly equal sizes and like labels.
    """
    rng = np.random.default_rng(seed)
    content = design.dot(rng.normal(size=design.shape[1]))
    if len(queries) == 1:
        return _deal(np.lexsort((content, labels)), n_folds, rng)
    total = np.bincount(queries.codes, weights=content, minlength=len(queries))
    return _deal(np.lexsort((total, -queries.sizes)), n_folds, rng)[queries.codes]


def hold_out(
    design: Design, labels: Floats, queries: Queries, share: float, seed: int
) -> npt.NDArray[np.bool_]:
    """Choose a share of the queries, or of the rows where there is one query only, as `deal_folds` does."""
    n_units = len(queries) if len(queries) > 1 else queries.n_rows
    return np.equal(deal_folds(design, labels, queries, share_as_folds(share, n_units), seed), 0)


def sample_rows(
    design: Design, labels: Floats, queries: Queries, at_most: int, seed: int
) -> npt.NDArray[np.bool_]:
    """Choose about so many rows: whole queries drawn at random, and of a huge one an even sample of its labels.

    Like folds, the choice depends on what the rows hold, not on their order nor on the names of queries.
    """
    rng = np.random.default_rng(seed)
    content = design.dot(rng.normal(size=design.shape[1]))
    n_queries = len(queries)
    cap = at_most if n_queries == 1 else max(2, at_most // 10)  # no query is to be the whole sample
    total = np.bincount(queries.codes, weights=content, minlength=n_queries)
    drawn = np.lexsort((total, -queries.sizes))[rng.permutation(n_queries)]
    rows_so_far = np.cumsum(np.minimum(queries.sizes[drawn], cap))
    drawn = drawn[: max(1, int(np.searchsorted(rows_so_far, at_most, side="right")))]
    is_whole = np.zeros(n_queries, dtype=np.bool_)
    is_whole[drawn[queries.sizes[drawn] <= cap]] = True
    chosen: npt.NDArray[np.bool_] = is_whole[queries.codes]
    for query in drawn[queries.sizes[drawn] > cap]:
        rows = np.flatnonzero(queries.codes == query)
        by_label = rows[np.lexsort((content[rows], labels[rows]))]
        chosen[by_label[np.linspace(0, rows.size - 1, cap).round().astype(np.int64)]] = True
    return chosen


def deal_pairs(
    design: Design, winner: Ints, loser: Ints, unit: Ints, n_folds: int, seed: int
) -> npt.NDArray[np.int32]:
    """Deal pairs to folds, those of one unit together, as `deal_folds` deals the rows of a query.

    Units are sorted by size, ties by the content of the rows they compare, which depends neither on the order of
    the pairs nor on that of the rows, nor on which row won.
    """
    rng = np.random.default_rng(seed)
    content = design.dot(rng.normal(size=design.shape[1]))
    size = np.bincount(unit)
    position = np.bincount(unit, weights=content[winner] + content[loser])
    spread = np.bincount(unit, weights=np.abs(content[winner] - content[loser]))
    return _deal(np.lexsort((spread, position, -size)), n_folds, rng)[unit]


def share_as_folds(share: float, n_units: int) -> int:
    """Return how many folds make one of them the wanted share, if there are that many units."""
    return min(max(2, round(1 / share)), max(n_units, 2))


def _deal(order: Ints, n_folds: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    n_runs = -(-order.size // n_folds)
    hands = rng.permuted(np.tile(np.arange(n_folds, dtype=np.int32), (n_runs, 1)), axis=1)
    fold = np.empty(order.size, dtype=np.int32)
    fold[order] = hands.ravel()[: order.size]
    return fold
