"""The levels of one ranking, what leave-pair-out by them takes, and the system of a kernel and their coupling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Rows
from rankwise.holdout.decomposition import PrimalHoldOut

__all__ = [
    "LevelRanking",
    "LevelSystem",
    "Reweighted",
    "change_without",
    "leaves_one_level",
    "level_sums",
    "plain_coupling",
]

# Takes the rows' degrees P; gives Φ and σ with ``(α K^-1 + P)^-1 = Φ diag(1 / (σ + α)) Φ'``, K centred.
Reweighted = Callable[[Floats], PrimalHoldOut]


# What the calls for a pair of levels take, in floating-point operations: where each decomposes, and where they share.
_CALLS, _SHARED_CALLS = 1e6, 2e4


def leaves_one_level(level: Rows, i: Rows, j: Rows) -> npt.NDArray[np.bool_]:
    """Tell for pairs with different labels whether all other rows have one label, so that nothing is left to learn.

    The model without them scores all rows alike; a formula would give the sign of its rounding errors.
    """
    size = np.bincount(level)
    opponents = (level.size - size)[level]
    n_ordered = opponents.sum() // 2
    return np.asarray(opponents[i] + opponents[j] - 1 == n_ordered)


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

    level: Rows
    values: Floats
    ties: str
    cost: str
    query_weight: str

    @classmethod
    def of_labels(cls, y: Floats, *, ties: str, cost: str, query_weight: str) -> LevelRanking:
        """Find the levels."""
        values, level = np.unique(y, return_inverse=True)
        return cls(level.astype(np.int64), values, ties, cost, query_weight)

    @cached_property
    def rows_of(self) -> list[Rows]:
        """The rows of each level."""
        return np.split(np.argsort(self.level, kind="stable"), np.cumsum(np.bincount(self.level))[:-1])

    @cached_property
    def sizes(self) -> Floats:
        """How many rows each level has."""
        return np.bincount(self.level).astype(np.float64)

    @cached_property
    def coupling(self) -> Floats:
        """``W``: what a pair of rows of two levels weighs, but for the scale of the query."""
        gap = self.values[:, None] - self.values
        if self.cost == "relative":
            np.fill_diagonal(gap, np.inf)
            return np.asarray(1.0 / gap**2)
        return np.ones_like(gap) if self.ties == "include" else 1.0 - np.eye(self.values.size)

    @cached_property
    def weighed_difference(self) -> Floats:
        """``W`` times the wanted difference of two levels."""
        gap = self.values[:, None] - self.values
        return np.asarray(self.coupling * (np.sign(gap) if self.cost == "unit" else gap))

    def scale(self, left: Floats, total: float) -> float:
        """Return the weight of a pair where the levels have so many rows; 0 where no pair is ordered."""
        ordered = float(total**2 - left @ left) / 2
        if ordered == 0:
            return 0.0
        return {"size": 1.0 / total, "pairs": 1.0, "equal": 1.0 / ordered}[self.query_weight]

    def scale_without(self, a: int, b: int) -> float:
        """Return the weight of a pair when a row of each of two levels has left."""
        return self.scale(self.left(a, b), float(self.level.size - 2))

    def left(self, a: int, b: int) -> Floats:
        """Return how many rows each level has then."""
        sizes = self.sizes.copy()
        sizes[[a, b]] -= 1
        return sizes

    @property
    def is_plain(self) -> bool:
        """Whether W is 1 between all levels."""
        return self.ties == "exclude" and self.cost != "relative"

    @property
    def is_multipartite(self) -> bool:
        """Whether W is 1 between all levels, and no level loses all its pairs when two rows leave."""
        return self.is_plain and bool(self.level.size - 2 > self.sizes.max())

    def price(self, rank: int, n_alphas: int, *, shares: bool) -> float:
        """Return about how many floating-point operations leave-pair-out takes.

        Parameters
        ----------
        rank : int
            The columns of the features, or the rows of the kernel.
        shares : bool
            Whether all pairs of levels share one decomposition.
        """
        m, levels, sizes = self.level.size, self.values.size, self.sizes
        decomposition = 2.0 * m * min(rank, m) ** 2 + 9.0 * min(rank, m) ** 3
        n_pairs = levels * (levels - 1) / 2
        of_rows = n_alphas * m**2 * (rank + levels + 300.0)
        inside = 2.0 * levels**2 * rank + 3.0 * levels**3
        if not shares:
            per_alpha = inside + 4.0 * (m / levels) * rank * levels + _CALLS
            return float(n_pairs * (decomposition + n_alphas * per_alpha) + of_rows)
        size, count = np.unique(sizes, return_counts=True)
        both = size[:, None] + size
        times = np.outer(count, count) / 2
        systems = float((times * (3.0 * both**3 + _SHARED_CALLS)).sum())
        n_scales = size.size**2 / 2 if self.query_weight == "equal" else 1.0
        whole = n_scales * (inside + 4.0 * m * rank * levels) + 4.0 * m**2 * (rank + levels)
        return float(decomposition + n_alphas * (systems + whole) + of_rows)


class LevelSystem:
    """``B = (α K^-1 + c P - C W C')^-1`` for one alpha, as ``A + (AC) X (AC)'`` with ``A = (α K^-1 + c P)^-1``.

    Parameters
    ----------
    decomposition : PrimalHoldOut
        Of `Reweighted` for P.
    scale : float
        ``c``.
    sums : (levels, rank) float64
        ``C'Φ``.
    coupling : (levels, levels) float64
        ``W``; symmetric.
    """

    def __init__(
        self, decomposition: PrimalHoldOut, scale: float, sums: Floats, coupling: Floats, alpha: float
    ) -> None:
        self.features = decomposition.features
        self.inverse = decomposition.shrinkage(np.array([alpha / scale]))[0] / scale
        self._weighted = sums * self.inverse
        self.products = self._weighted @ sums.T  # C'AC; that of B is this times to_level
        unit = np.eye(coupling.shape[0])
        self.middle = np.linalg.solve(unit - coupling @ self.products, coupling)  # X
        self.to_level = unit + self.middle @ self.products

    def across_levels(self, rows: Rows | slice) -> Floats:
        """Return rows of ``AC``; those of ``BC`` are this times `to_level`."""
        return np.asarray(self.features[rows] @ self._weighted.T)


def change_without(ranking: LevelRanking, a: int, b: int) -> tuple[Floats, Floats, Floats]:
    """Return what makes ``B^-1 = α K^-1 + P - D W D'`` the system without a row of each of two levels.

    That is the coupling of C in B, the vectors h beside e_i and e_j, as sums of columns of C, and M. In general
    ``D = C diag(√(n'/n))``, so that B is positive whatever W: the indicators without i and j are D plus
    ``c_a 1_a - e_i`` in column a and ``c_b 1_b - e_j`` in column b, ``c = 1 - √(n'/n)``, and h are 1_a, 1_b, D W_a and
    D W_b.
    """
    W, both = ranking.coupling, [a, b]
    left, n_rows = ranking.left(a, b), ranking.level.size
    indicators = np.zeros((ranking.values.size, 2))
    indicators[both, [0, 1]] = 1.0
    if ranking.is_plain:
        return plain_coupling(ranking), indicators, _plain_correction(ranking.sizes[both], n_rows)
    root = np.sqrt(left / ranking.sizes)
    leaving = np.vstack([-np.eye(2), np.diag(1 - root[both]), np.zeros((2, 2))])  # c 1 - e
    onto = np.vstack([np.zeros((4, 2)), np.eye(2)])
    correction = -leaving @ onto.T - onto @ leaving.T - leaving @ W[np.ix_(both, both)] @ leaving.T
    correction[[0, 1], [0, 1]] -= (W @ left)[both]
    vectors = np.hstack([indicators, root[:, None] * W[:, both]])
    return root[:, None] * W * root, vectors, np.ascontiguousarray(correction)


def plain_coupling(ranking: LevelRanking) -> Floats:
    """Where W is 1 between all levels: of rank 1 but for the levels themselves, and such that B is positive.

    As K is centred, so is B, and multiples of a constant do not count: neither this factor, nor what they add to M.
    """
    n_rows, n_levels = ranking.level.size, ranking.values.size
    return np.full((n_levels, n_levels), (n_rows - 2) / n_rows) - np.eye(n_levels)


def _plain_correction(sizes: Floats, n_rows: int) -> Floats:
    """Return M over ``(e_i, e_j, 1_a, 1_b)`` there."""
    m_a, m_b = sizes - n_rows + 1
    return np.array([[m_a, -1, -1, 0], [-1, m_b, 0, -1], [-1, 0, 0, 0], [0, -1, 0, 0]])


def level_sums(features: Floats, ranking: LevelRanking) -> Floats:
    """Return ``C'Φ``."""
    order = np.concatenate(ranking.rows_of)
    start = np.concatenate([[0], np.cumsum(ranking.sizes[:-1])]).astype(np.int64)
    return np.asarray(np.add.reduceat(features[order], start, axis=0))
