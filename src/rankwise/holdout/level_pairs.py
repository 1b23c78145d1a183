"""Leave-pair-out for one ranking with few levels, whatever its pairs weigh: ties in or out, every cost.

Where ties are left out, or differences are not magnitudes, RankRLS is no ridge regression, and how much a row weighs
depends on how many rows the other levels have. Without a row of level a and one of level b the Laplacian is

    L = P - C W C'            P: the rows' degrees, constant on a level; C: the levels' indicators; W: levels × levels

where P depends on (a, b) alone. So one decomposition an unordered pair of levels gives ``A = (α K^-1 + P)^-1``, and
what else tells a pair of rows from another has rank levels + 3: a system of that size a pair (see
`cpp/held_out_pairs.hpp`; docs/mathematics.md, section 4). Rows weigh 1 each; the weight of pairs is that of the
rows that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.pairs.graph import Floats

__all__ = ["LevelRanking", "Reweighted", "level_pair_out_error", "level_pair_out_scores"]

# Takes the rows' degrees P; gives Φ and σ with ``(α K^-1 + P)^-1 = Φ diag(1 / (σ + α)) Φ'``.
Reweighted = Callable[[Floats], tuple[Floats, Floats]]

# A between the rows of two levels, its diagonals, its sums over levels on both sides, and over pairs of levels.
_Products = tuple[Floats, Floats, Floats, Floats, Floats, Floats]

_ROUNDING = 1e-10
_PAIR_BLOCK = 1 << 20  # pairs judged at a time


@dataclass(frozen=True)
class LevelRanking:
    """One ranking by its levels.

    Attributes
    ----------
    level : (rows,) int64
    values : (levels,) float64
        The labels, increasing.
    ties : {"include", "exclude"}
    cost : {"magnitude", "unit", "relative"}
    query_weight : {"size", "pairs", "equal"}
    """

    level: npt.NDArray[np.int64]
    values: Floats
    ties: str
    cost: str
    query_weight: str

    @classmethod
    def of_labels(cls, y: Floats, *, ties: str, cost: str, query_weight: str) -> LevelRanking:
        """Find the levels."""
        values, level = np.unique(y, return_inverse=True)
        return cls(level.reshape(-1).astype(np.int64), values, ties, cost, query_weight)

    @property
    def coupling(self) -> Floats:
        """``W``: what a pair of rows of two levels weighs, but for the scale of the query."""
        gap = self.values[:, None] - self.values
        if self.cost == "relative":
            np.fill_diagonal(gap, np.inf)
            return np.asarray(1.0 / gap**2)
        return np.ones_like(gap) if self.ties == "include" else 1.0 - np.eye(self.values.size)

    @property
    def difference(self) -> Floats:
        """``z``: the wanted difference of two levels."""
        gap = self.values[:, None] - self.values
        return np.asarray(np.sign(gap) if self.cost == "unit" else gap)

    def scale(self, sizes: Floats) -> float:
        """Return the weight of a pair in a ranking whose levels have so many rows; 0 where no pair is ordered."""
        ordered = float(sizes.sum() ** 2 - (sizes**2).sum()) / 2
        if ordered == 0:
            return 0.0
        return {"size": 1.0 / float(sizes.sum()), "pairs": 1.0, "equal": 1.0 / ordered}[self.query_weight]


def level_pair_out_scores(
    reweighted: Reweighted, ranking: LevelRanking, alphas: Floats, *, n_threads: int = 1
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]]:
    """Yield ``(alpha's position, i, j, scores)``: (rows i, rows j, 2) scores of i and j without the two of them.

    Every pair of rows with different labels comes once an alpha.
    """
    rows_of = [np.flatnonzero(ranking.level == level) for level in range(ranking.values.size)]
    sizes = np.array([rows.size for rows in rows_of], dtype=np.float64)
    W = ranking.coupling
    cached: tuple[Floats, tuple[Floats, Floats]] | None = None
    for a, b in combinations(range(sizes.size), 2):
        left = sizes.copy()
        left[[a, b]] -= 1
        scale, degree = ranking.scale(left), W @ left
        if scale == 0:
            for at in range(alphas.size):  # nothing is left to learn from: all scores are equal
                yield at, rows_of[a], rows_of[b], np.zeros((rows_of[a].size, rows_of[b].size, 2))
            continue
        shape = degree / degree.max()
        if cached is None or not np.allclose(cached[0], shape, rtol=1e-15, atol=0):
            cached = shape, reweighted(shape[ranking.level])
        whole = scale * degree.max()  # P is so many times the shape
        level_pair = _LevelPair(cached[1], whole, rows_of, (a, b))
        pull = scale * ((W * ranking.difference) @ left)
        for at, alpha in enumerate(alphas):
            for i, parts in level_pair.products(float(alpha)):
                scores = np.empty((i.size, rows_of[b].size, 2))
                ends = float(scale * degree[a]), float(scale * degree[b])
                _core.level_pair_scores(*parts, scale * W, pull, a, b, *ends, scores, n_threads)
                yield at, i, rows_of[b], scores


def level_pair_out_error(
    reweighted: Reweighted, ranking: LevelRanking, alphas: Floats, *, n_threads: int = 1
) -> Floats:
    """Return the share of the pairs with different labels that are ordered wrongly, a tie counting one half."""
    wrong, total = np.zeros(alphas.size), 0
    for at, i, j, scores in level_pair_out_scores(reweighted, ranking, alphas, n_threads=n_threads):
        better = scores[..., 1] - scores[..., 0]  # the second level is the higher one
        better[np.abs(better) <= _ROUNDING * np.abs(scores).sum(axis=2)] = 0.0
        wrong[at] += 0.5 * (better.size + np.count_nonzero(better < 0) - np.count_nonzero(better > 0))
        total += i.size * j.size if at == 0 else 0
    return wrong / total


@dataclass(frozen=True)
class _LevelPair:
    """``A`` between the rows of two levels, and the levels' sums of it."""

    decomposition: tuple[Floats, Floats]
    scale: float
    rows_of: list[npt.NDArray[np.int64]]
    levels: tuple[int, int]

    def products(self, alpha: float) -> Iterator[tuple[npt.NDArray[np.int64], _Products]]:
        """Yield some rows of the first level, and what the compiled pass asks about them."""
        features, values = self.decomposition
        d = 1.0 / self.scale / np.maximum(values + alpha / self.scale, np.finfo(np.float64).tiny)
        sums = np.stack([features[rows].sum(axis=0) for rows in self.rows_of])  # C'Φ
        weighted = sums * d
        first, second = (self.rows_of[level] for level in self.levels)
        other = features[second]
        own = np.square(other) @ d
        to_levels = np.ascontiguousarray(other @ weighted.T)
        level_products = np.ascontiguousarray(weighted @ sums.T)
        step = max(1, _PAIR_BLOCK // max(1, second.size))
        for start in range(0, first.size, step):
            i = first[start : start + step]
            mine = features[i]
            across = np.ascontiguousarray((mine * d) @ other.T)
            levels = np.ascontiguousarray(mine @ weighted.T)
            yield i, (across, np.square(mine) @ d, own, levels, to_levels, level_products)
