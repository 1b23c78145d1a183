"""Leave-pair-out of one ranking: choice of the closed form, its cost, and its errors.

Each pair is scored by the model that saw neither of its rows. Without the rows i and j, ``e_U`` solves the 2 × 2 system
``T_UU e_U = (Tt)_U`` with ``T = M - uu'``, so a pair costs O(1) once ``T`` is there, and the held-out difference is
``(y_i - y_j) - (e_i - e_j)``. "size" convention; the 2009 paper's equation 38, whose pairs weigh 1, is this with
``alpha / (m - 2)``.

For unit cost, row weights and any query weight: with row weights w of sum S every graph in which every two rows are
compared is ``L = s S (D_w - ww'/S)``, so the model without rows i and j is the "size" convention's with another alpha
and other labels (docs/mathematics.md, section 4):

- its alpha is ``alpha · s S / (s' S')``, where s' and S' are s and S without the two rows: the same for all
  pairs where rows weigh the same and labels do not matter, else a number that depends on the pair;
- under magnitude cost its labels are y. Under unit cost they are ``(below' - above') / S'``, the weights of the rows
  below and above, which two rows change by a step each: ``S'`` times them is
  ``q = below - above - w_i sign(y - y_i) - w_j sign(y - y_j)``.

T is a sum over eigenvalues of ``1 / (σ + α)``, so T times a step is one more product of the coordinates, with their
running sums in the order of the labels. As a function of ``log α`` each term has its poles at distance π from the real
line, whatever σ: Chebyshev interpolation over an interval of half-width h gains a factor of about ``2π / h`` a node,
and a few nodes give all pairs to the last digits: three to six where no row dominates, some fifty where one weighs a
hundred times as much as all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import asinh, ceil, log, pi

import numpy as np
import numpy.typing as npt
from numpy.polynomial.chebyshev import chebvander

from rankwise import _core
from rankwise.arrays import Floats, Rows
from rankwise.holdout.decomposition import HoldOut
from rankwise.pairs.pairs import ComparedRows
from rankwise.runtime.memory import MemoryBudget
from rankwise.runtime.progress import ShareProgress
from rankwise.runtime.threads import blas_held

# Floating-point operations; a processor does 3 to 25 thousand million a second, the more the larger its matrices.
_AFFORDABLE = 5e11  # up to so many "auto" takes leave-pair-out: a weighted 1500 rows
_MOST = 3e13  # up to so many it is done for whoever asks for it: an hour or so
_ROUNDING = 1e-11
_PAIR_BLOCK = 1 << 18  # entries of T made at a time: 2 MB
_NODES = 6  # alphas between which those of pairs of different weight are interpolated, about
_PRECISION = 1e-14  # of the interpolation
_BLOCK = 1 << 16  # pairs scored at a time: half a MiB an array

# Some rows, and all rows from the first of them on.
Block = tuple[slice, slice]


def refusal(
    rankings: Sequence[ComparedRows] | None, rank: int, n_alphas: int, *, is_asked_for: bool
) -> str | None:
    """Return why leave-pair-out is not taken, as the end of a sentence that begins with it, or None.

    `rankings` are None where not every two rows are compared.
    """
    if rankings is None:
        return "has no closed form for ties='exclude' or cost='relative'"
    costs = [_cost(one, min(rank, one.y.size), n_alphas) for one in rankings]
    total, needed = sum(price for price, _ in costs), max(n_bytes for _, n_bytes in costs)
    if total > (_MOST if is_asked_for else _AFFORDABLE):
        return f"would take about {total:.0e} operations"
    return None if MemoryBudget().allows(int(needed)) else f"would take {needed / 2**30:.1f} GiB of memory"


def pair_out_errors(
    hold_out: HoldOut, rankings: Sequence[ComparedRows], alphas: Floats, code: Rows, n_threads: int
) -> Floats:
    """Return the share of the pairs that models without their rows order wrongly, (alphas, outputs).

    Parameters
    ----------
    hold_out : HoldOut
        Of the graph that the rankings share.
    code : (all rows,) int64
        Rows that share a number tie.
    """
    rows, weight = rankings[0].rows, rankings[0].weight
    if rows is not None:
        code = code[rows]
        hold_out = hold_out if rows.size == hold_out.coordinates.shape[0] else hold_out.of_rows(rows)
    if all(one.cost == "magnitude" and one.is_even for one in rankings):
        # Several outputs share a graph only where no label changes the weight of pairs, and so alpha.
        y = rankings[0].y
        lowest, highest = y.argmin(axis=0, keepdims=True), y.argmax(axis=0, keepdims=True)
        factor = float(rankings[0].alpha_factor(lowest, highest)[0])
        root_share = np.sqrt(weight / weight.sum())
        labels = np.column_stack([one.y for one in rankings])
        return leave_pair_out_error(
            hold_out, labels, root_share, alphas * factor, code=code, n_threads=n_threads
        )
    errors = [
        compared_pair_out_error(hold_out, one, alphas, code=code, n_threads=n_threads) for one in rankings
    ]
    return np.column_stack(errors)


def _cost(one: ComparedRows, rank: int, n_alphas: int) -> tuple[float, float]:
    """Return an output's floating-point operations, and the bytes of its largest arrays beside the decomposition."""
    n_rows, products = one.y.size, 3 if one.cost == "unit" else 1
    price = float(n_alphas * (1 if one.is_even else _NODES) * n_rows**2 * (products * rank + 20.0))
    if one.cost == "magnitude" and one.is_even:
        price = 0.0  # what leave-pair-out takes anyway: "auto" asks about rows alone
    return price, 24.0 * products * n_rows * rank


def leave_pair_out_error(
    decomposition: HoldOut,
    y: Floats,
    root_share: Floats,
    alphas: Floats,
    *,
    code: Rows | None = None,
    n_threads: int = 1,
) -> Floats:
    """Return the share of the pairs with different labels that the models fitted without them order wrongly.

    A tie counts one half. One minus this is the averaged leave-pair-out AUC where y has two levels. A pair weighs the
    product of its rows' weights.

    Parameters
    ----------
    decomposition : HoldOut
        Of the centered problem ("size", ties included, magnitudes).
    y : (rows, outputs) float64
    root_share : (rows,) float64
        ``u``: the root of each row's share of the total weight.
    alphas : (alphas,) float64
    code : (rows,) int64, optional
        Equal rows share a number: they tie, however small alpha is and however large its rounding errors.
    n_threads : int
        The number of threads that share the blocks of pairs.

    Returns
    -------
    (alphas, outputs) float64
    """
    n_rows, n_outputs = y.shape
    decomposition = decomposition.centred(root_share)
    residual = decomposition.residual(root_share[:, None] * (y - root_share**2 @ y), alphas)
    residual = np.ascontiguousarray(np.moveaxis(residual, 2, 1))
    diagonals = np.ascontiguousarray(decomposition.diagonals(alphas))
    is_weighted = bool(np.ptp(root_share) > 0)
    labels = np.ascontiguousarray(y.T)
    levels = [np.unique(column, return_inverse=True)[1].astype(np.int64) for column in labels]
    has_equal_rows = code is not None and np.unique(code).size < n_rows

    def scorer(block: Block) -> Floats:
        rows, columns = block
        counts = np.zeros((2, alphas.size, n_outputs))
        i, j = _indices(block)
        is_tie = [leaves_one_level(level, i, j) for level in levels]
        if has_equal_rows:
            assert code is not None
            is_tie = [tie | ((code[i] == code[j]) & (i < j)) for tie in is_tie]
        for a, alpha in enumerate(alphas):
            across = decomposition.between(rows, columns, float(alpha))
            for c in range(n_outputs):
                counts[:, a, c] = _core.count_ridge_pairs(
                    np.where(is_tie[c], np.nan, across)
                    if is_tie[c].any()
                    else across,  # neither right nor wrong
                    rows.start,
                    columns.start,
                    labels[c],
                    diagonals[a],
                    residual[a, c],
                    root_share,
                    is_weighted,
                    _ROUNDING,
                )
        return counts

    # Whole blocks in threads of their own: the library's threads would wait for each other at every product.
    with blas_held():
        wrong, right = sum_over_blocks(scorer, n_rows, _PAIR_BLOCK, n_threads)
    total = np.array([_weight_of_pairs(level, root_share**2 if is_weighted else None) for level in levels])
    # What rounding cannot tell from a tie, such as twin rows, is half wrong.
    return np.asarray(0.5 * (1.0 + (wrong - right) / total))


def _weight_of_pairs(level: Rows, weight: Floats | None) -> float:
    """Return the total weight of the pairs with different labels."""
    of_level = np.bincount(level, weights=weight).astype(np.float64)
    return float(of_level @ (of_level.sum() - of_level)) / 2


def _blocks(n_rows: int, size: int) -> Iterator[Block]:
    """Yield blocks of about so many pairs."""
    step = max(1, size // n_rows)
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows)), slice(first, n_rows)


def _indices(block: Block) -> tuple[Rows, Rows]:
    """Return the rows of all pairs of a block, as a column and a row of indices."""
    rows, columns = block
    return np.arange(rows.start, rows.stop)[:, None], np.arange(columns.start, columns.stop)[None, :]


@dataclass(frozen=True)
class Interpolation:
    """Chebyshev nodes between two numbers on a logarithmic scale, for functions like ``α / (σ + α)``."""

    low: float
    high: float

    @cached_property
    def nodes(self) -> Floats:
        """The numbers at which the function is asked for."""
        half = log(self.high / self.low) / 2
        if half < 1e-15:
            return np.array([self.low])
        n_nodes = 2 + ceil(-log(_PRECISION) / asinh(pi / half))
        return np.asarray(self.low * np.exp(half * (1 + _chebyshev_points(n_nodes))))

    def weights(self, at: Floats) -> Floats:
        """Return the weight of each node, (nodes, ...): the values at the nodes with them are those at the points."""
        n_nodes = self.nodes.size
        if n_nodes == 1:
            return np.ones((1, *at.shape))
        half = log(self.high / self.low) / 2
        # Taken back from the nodes, the points would have errors of a rounding over `half`, and so the sum of weights.
        own = chebvander(_chebyshev_points(n_nodes), n_nodes - 1)
        others = chebvander(np.clip(np.log(at / self.low) / half - 1, -1, 1), n_nodes - 1)
        own[:, 0] /= 2  # discrete orthogonality of the polynomials at their nodes
        return np.asarray(np.moveaxis(others @ (2 / n_nodes * own.T), -1, 0))


def _chebyshev_points(n_points: int) -> Floats:
    return np.asarray(np.cos((np.arange(n_points) + 0.5) * pi / n_points))


def compared_pair_out_error(
    decomposition: HoldOut,
    ranking: ComparedRows,
    alphas: Floats,
    *,
    code: Rows | None = None,
    n_threads: int = 1,
) -> Floats:
    """Return the share of the pairs with different labels that the models without them order wrongly, (alphas,).

    A tie counts one half, and a pair weighs the product of its rows' weights. Rows that share a `code` tie.
    """
    code = np.arange(ranking.y.size) if code is None else code
    terms = _Terms(decomposition, ranking)
    interpolation = _interpolation(ranking)
    at_nodes = [_AtNodes(terms, float(alpha) * interpolation.nodes) for alpha in alphas]

    def scorer(block: Block) -> Floats:
        i, j = _indices(block)
        factor = ranking.alpha_factor(i, j)
        counts = (ranking.level[i] != ranking.level[j]) & (i < j) & (factor > 0)
        counts &= code[i] != code[j]
        weight = np.where(counts, ranking.weight[i] * ranking.weight[j], 0.0)
        shares = interpolation.weights(np.clip(factor, interpolation.low, interpolation.high))
        return np.array([_balance(*terms.of_block(block, own, shares), weight) for own in at_nodes])

    # Whole blocks in threads of their own: the library's threads would wait for each other at every product.
    with blas_held():
        balance = sum_over_blocks(scorer, ranking.y.size, _BLOCK, n_threads)
    return np.asarray(0.5 * (1.0 - balance / _weight_of_pairs(ranking.level, ranking.weight)))


class _Terms:
    """The terms of T, and the difference of two held-out scores from its entries."""

    def __init__(self, decomposition: HoldOut, ranking: ComparedRows) -> None:
        self.ranking = ranking
        self.u = np.sqrt(ranking.weight / ranking.weight.sum())
        centred = decomposition.centred(self.u)
        self.spectral, self.identity, self.rank = centred.spectral, centred.identity, centred.rank
        self.coordinates = centred.coordinates
        self.target = self.u * ranking.labels
        self.pulled = self.coordinates.T @ self.target
        self.steps = self._steps() if ranking.cost == "unit" else None

    def _steps(self) -> Floats:
        """Return the coordinates' sums over the rows above each row minus those below."""
        level = self.ranking.level
        sums = np.zeros((int(level.max()) + 1, self.rank))
        np.add.at(sums, level, self.u[:, None] * self.coordinates)
        below = np.cumsum(sums, axis=0) - sums
        return np.asarray((sums.sum(axis=0) - sums - 2 * below)[level])

    def of_block(self, block: Block, at: _AtNodes, shares: Floats) -> tuple[Floats, Floats]:
        """Return the differences of all pairs of a block, and how far rounding reaches."""
        i, j = block
        w_i, w_j = self.ranking.weight[i][:, None], self.ranking.weight[j]
        across, d_i, d_j, e_i, e_j = np.zeros((5, *shares.shape[1:]))
        for node, share in enumerate(shares):
            spectral = at.spectral[node]
            left, right = self.coordinates[i] * spectral, self.coordinates[j]
            across += share * (left @ right.T)
            d_i += share * at.diagonal[node, i][:, None]
            d_j += share * at.diagonal[node, j]
            if self.steps is None:
                e_i += share * at.residual[node, i][:, None]
                e_j += share * at.residual[node, j]
            else:
                e_i += share * (at.residual[node, i][:, None] - w_j * (left @ self.steps[j].T))
                e_j += share * (at.residual[node, j] - w_i * ((self.steps[i] * spectral) @ right.T))
        return self._difference(*_indices(block), across, d_i, d_j, e_i, e_j)

    def _difference(
        self, i: Rows, j: Rows, across: Floats, d_i: Floats, d_j: Floats, e_i: Floats, e_j: Floats
    ) -> tuple[Floats, Floats]:
        """Return ``f(i) - f(j)`` times the labels' sign, from the entries of T and of ``T q``, and its rounding."""
        ranking, u, q = self.ranking, self.u, self.ranking.labels
        sign, both = np.sign(ranking.level[i] - ranking.level[j]), ranking.weight[i] + ranking.weight[j]
        gap = q[i] - q[j]
        size = np.abs(gap)
        if self.steps is not None:
            # The step of i is 0 at i itself and the sign of the difference at j.
            e_i = e_i - self.identity * ranking.weight[j] * u[i] * sign
            e_j = e_j + self.identity * ranking.weight[i] * u[j] * sign
            gap = gap - both * sign
            size = np.full_like(gap, ranking.weight.sum())
        determinant = d_i * d_j - across**2
        determinant = np.where(determinant > 0, determinant, np.finfo(np.float64).tiny)
        error = ((d_j * e_i - across * e_j) / u[i] - (d_i * e_j - across * e_i) / u[j]) / determinant
        scale = (
            np.maximum(ranking.weight.sum() - both, ranking.weight.min()) if self.steps is not None else 1.0
        )
        difference = np.where(leaves_one_level(ranking.level, i, j), 0.0, (gap - error) * sign / scale)
        return difference, _ROUNDING * size * d_i * d_j / determinant / scale


class _AtNodes:
    """The diagonal and the residual for some alphas, (alphas, rows)."""

    def __init__(self, terms: _Terms, alphas: Floats) -> None:
        self.spectral = terms.spectral(alphas)
        self.diagonal = terms.identity + self.spectral @ np.square(terms.coordinates).T
        self.residual = terms.identity * terms.target + (self.spectral * terms.pulled) @ terms.coordinates.T
        if terms.steps is not None:  # each row's own step leaves in all of its pairs
            own = self.spectral @ (terms.coordinates * terms.steps).T
            self.residual -= terms.ranking.weight * own


def _balance(difference: Floats, bound: Floats, weight: Floats) -> float:
    """Return the weight of the pairs in the right order minus that of those in the wrong one."""
    return float(weight[difference > bound].sum() - weight[difference < -bound].sum())


def _interpolation(ranking: ComparedRows) -> Interpolation:
    """Return the interpolation between the alphas of the pairs without which something is left to learn."""
    low, high = np.inf, 0.0
    for block in _blocks(1 if ranking.query_weight == "size" else ranking.y.size, _BLOCK):
        i, j = _indices(block)
        factor = ranking.alpha_factor(i, j)
        learns = factor[(ranking.level[i] != ranking.level[j]) & (i < j) & (factor > 0)]
        low, high = min(low, float(learns.min(initial=np.inf))), max(high, float(learns.max(initial=0.0)))
    return Interpolation(low, high) if low <= high else Interpolation(1.0, 1.0)


def leaves_one_level(level: Rows, i: Rows, j: Rows) -> npt.NDArray[np.bool_]:
    """Tell for pairs with different labels whether all other rows have one label, so that nothing is left to learn.

    The model without them scores all rows alike; a formula would give the sign of its rounding errors.
    """
    size = np.bincount(level)
    opponents = (level.size - size)[level]
    n_ordered = opponents.sum() // 2
    return np.asarray(opponents[i] + opponents[j] - 1 == n_ordered)


def sum_over_blocks(score: Callable[[Block], Floats], n_rows: int, size: int, n_threads: int) -> Floats:
    """Add up the results of `score` for blocks of about so many pairs."""
    listed = list(_blocks(n_rows, size))
    total: Floats = np.zeros(())
    progress = ShareProgress("leave-pair-out", f"{n_rows * (n_rows - 1) // 2:,} pairs")
    with progress, ThreadPoolExecutor(n_threads) as pool:
        try:
            for number, part in enumerate(pool.map(score, listed), 1):
                total = total + part
                progress.reach(1.0 - (1.0 - number / len(listed)) ** 2)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, blocks that have not begun do not
    return total
