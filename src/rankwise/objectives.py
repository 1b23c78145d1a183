"""Objectives: losses of the scores of a design. Every objective and its scale is defined here, once.

Conventions
-----------
With ``f = Xw`` and the pairs ``i > j`` of the graph, of weight ``ω`` and wanted difference ``z``:

- **RankRLS** minimises a *sum* over pairs,

      Σ ω (z - (f_i - f_j))² + α‖w‖²   =   f'Lf - 2r'f + c + α‖w‖²

  so its solution satisfies ``(X'LX + αI) w = X'r``. The objective has no factor ½.
- **RankSVM** minimises a *weighted mean* over pairs (as its paper does; one query, or queries of equal weight),

      (Σ ω loss(z - (f_i - f_j))) / (Σ ω) + α‖w‖²

  with the hinge ``max(0, t)``, its square, or the logistic loss of listed pairs; ``z`` is 1 for labels. In
  the form ``½‖w‖² + C Σ ω loss`` this is ``C = 1 / (2αΣω)`` (the paper prints ``1/(λN)``).
- **AdditiveRanker** minimises such a mean for every loss. ``Σω`` in the divisor counts the pairs with different labels.
  With the squared loss and ``ties="include"`` the sum above it has pairs with tied labels too.

A pair of rows i, j of query q weighs ``ω = s_q · importance_q · w_i · w_j`` (row weights ``w``, 1 by
default). ``query_weight`` names ``s_q``:

======== ======================== ==========================================================
size     1 / (rows of the query)  `L` is the centering of the large-scale RankRLS paper
pairs    1                        the 2007 and 2009 RankRLS papers
equal    1 / (pairs of the query) pairs with different labels; each query weighs the same
======== ======================== ==========================================================

The penalty ``α‖w‖²`` is not part of an objective: solvers add it, once.

With ``w = w₀ + s u``, a penalty on ``‖u‖²`` keeps w near w₀, in units of s for each column. Solvers treat it as any
other objective, and its certificates hold.

A quadratic objective is the sum of parts that are read one after the other: blocks of whole queries. One large ranking
has no smaller queries, but where ties are compared too it can be cut between any two rows. With ``N`` and ``n`` the
weights of the rows so far and of the next ones,

    scatter of all = scatter of the rows so far + scatter of the next ones + N n / (N + n) · δδ'

with ``δ`` the difference of their means, and likewise for the labels. So a block of rows is a query of its own plus one
pair between two means, and the parts add up to the whole exactly, in any order.

A solver declares which one it minimises: a `QuadraticObjective`, or the `MarginObjective` of a loss with margins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from rankwise.arrays import Floats, Ints, Rows
from rankwise.design import Design, Products
from rankwise.design.fused import in_row_order
from rankwise.losses import Loss
from rankwise.pairs.blocks import QueryBlocks, laplacian
from rankwise.pairs.graph import MarginPairs, PairGraph, SmoothedHinge

_MOST_ROWS = 20_000  # of a part
_MOST_VALUES = 1 << 24  # stored values of a part: 64 to 128 MiB of them
_PROBES = 8  # random vectors that estimate the sizes of columns known only by their products
# Columns of a matrix that are made by products at once: bounds the (rows, columns) block of scores.
_TOGETHER = 64


class QuadraticPoint:
    """``w'Hw - 2b'w`` at a point, without the constant, which does not change the minimum."""

    def __init__(self, objective: QuadraticObjective, coef: Floats) -> None:
        self._objective, self._coef = objective, coef

    @cached_property
    def _image(self) -> Floats:
        return self._objective.product(self._coef)

    @property
    def value(self) -> Floats:
        """The objective, one entry per output."""
        return np.asarray((self._coef * (self._image - 2 * self._objective.rhs)).sum(axis=0))

    @property
    def gradient(self) -> Floats:
        """``2 (Hw - b)``."""
        return 2 * (self._image - self._objective.rhs)

    def hessian_product(self, v: Floats) -> Floats:
        """Apply ``2 H``."""
        return 2 * self._objective.product(v)


class QuadraticObjective(ABC):
    """``w'Hw - 2b'w + c``, known by its products ``Hv``."""

    @property
    def n_features(self) -> int:
        """The length of a coefficient vector."""
        return int(self.rhs.shape[0])

    @property
    @abstractmethod
    def rhs(self) -> Floats:
        """The linear term ``b``, a column per output where there are several."""

    @abstractmethod
    def product(self, v: Floats) -> Floats:
        """Apply ``H`` to a vector or to the columns of a block."""

    def matrix(self) -> Floats:
        """Return ``H`` itself."""
        n = self.n_features
        out = np.empty((n, n))
        for start in range(0, n, _TOGETHER):
            stop = min(start + _TOGETHER, n)
            out[:, start:stop] = self.product(_units(n, np.arange(start, stop)))
        return (out + out.T) / 2

    def diagonal(self) -> Floats:
        """Return the diagonal of ``H``."""
        return np.diagonal(self.matrix()).copy()

    def sizes(self) -> Floats | None:
        """Return a cheap approximation of the diagonal of ``H``; None where it does not refer to columns."""
        return None

    def at(self, coef: Floats) -> QuadraticPoint:
        """Evaluate at a coefficient vector, or at several as columns."""
        return QuadraticPoint(self, coef)


def _units(n: int, columns: Ints) -> Floats:
    """Return some columns of the unit matrix."""
    unit = np.zeros((n, columns.size))
    unit[columns, np.arange(columns.size)] = 1.0
    return unit


class SquaredObjective(QuadraticObjective):
    """The squared loss of a design over a graph: ``H = X'LX``, ``b = X'r``.

    Where the storage and the graph allow it, a product reads X once (`Design.gram_product`).
    """

    def __init__(self, design: Design, graph: PairGraph) -> None:
        self.design = design
        self.graph = graph

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.design.shape[1])

    @cached_property
    def rhs(self) -> Floats:
        """``X'r``."""
        return self.design.tdot(self.graph.pull)

    @cached_property
    def _fused(self) -> Callable[[Floats], Floats] | None:
        return None if self.graph.blocks is None else self.design.gram_product(self.graph.blocks)

    def product(self, v: Floats) -> Floats:
        """Apply ``X'LX``."""
        if self._fused is not None:
            return self._fused(v)
        return self.design.tdot(self.graph.laplacian(self.design.dot(v)))

    def matrix(self) -> Floats:
        """Return ``X'LX``, which is formed once; where reading X gives ``X'r`` as well, that is kept too."""
        return self._matrix

    @cached_property
    def _matrix(self) -> Floats:
        blocks = self.graph.blocks
        if blocks is not None:
            system = None if "rhs" in self.__dict__ else self.design.gram_system(blocks, self.graph.pull)
            if system is not None:
                matrix, self.rhs = system
                return matrix
            gram = self.design.gram_matrix(blocks)
            if gram is not None:
                return gram
        return super().matrix()

    def _diagonal(self) -> Floats | None:
        graph = self.graph
        if graph.blocks is not None:
            return self.design.gram_diagonal(graph.blocks)
        return None if graph.edges is None else self.design.squared_differences(*graph.edges)

    def diagonal(self) -> Floats:
        """Return ``diag(X'LX)``."""
        diagonal = self._diagonal()
        return super().diagonal() if diagonal is None else diagonal

    def sizes(self) -> Floats:
        """Return ``diag(X'LX)``; where only the whole matrix would give it, an estimate from random rows."""
        diagonal = self._diagonal() if self.design.has_rows else None
        if diagonal is not None:
            return diagonal
        noise = np.random.default_rng(0).normal(size=(self.design.shape[0], _PROBES))
        pull = self.graph.laplacian(noise)
        squares: Floats = (self.design.tdot(pull) ** 2).mean(axis=1)  # about diag(X'L²X)
        return squares * (np.vdot(noise, pull) / max(float(np.vdot(pull, pull)), np.finfo(np.float64).tiny))


class ScaledObjective(QuadraticObjective):
    """An objective of ``u``, where ``w = origin + column_scale u``, plus ``Σ penalty u²``; its constant is left out.

    A penalty on ``‖u‖²`` is a prior on the columns. With ``s = D^-p``, ``D = diag(H)``, it becomes ``α w'D^(2p) w``:
    another model, chosen on purpose.
    """

    def __init__(
        self,
        objective: QuadraticObjective,
        column_scale: Floats,
        origin: Floats | None = None,
        penalty: Floats | float = 0.0,
    ) -> None:
        self.unscaled, self.column_scale = objective, column_scale
        self.origin, self.penalty = origin, penalty

    @cached_property
    def rhs(self) -> Floats:
        """``s (b - H w₀)``."""
        rhs = self.unscaled.rhs
        if self.origin is not None and self.origin.any():
            pulled = self.unscaled.product(self.origin)
            rhs = rhs - (pulled if rhs.ndim == pulled.ndim else pulled[:, None])
        return self._scaled(rhs)

    def product(self, v: Floats) -> Floats:
        """Apply ``diag(s) H diag(s) + diag(penalty)``."""
        return self._scaled(self.unscaled.product(self._scaled(v))) + (v.T * self.penalty).T

    def matrix(self) -> Floats:
        """Return the matrix."""
        scaled: Floats = self.unscaled.matrix() * self.column_scale * self.column_scale[:, None]
        scaled[np.diag_indices_from(scaled)] += self.penalty
        return scaled

    def diagonal(self) -> Floats:
        """Return its diagonal."""
        return np.asarray(self.unscaled.diagonal() * self.column_scale**2 + self.penalty)

    def sizes(self) -> Floats | None:
        """Return its approximate diagonal, without the penalty."""
        sizes = self.unscaled.sizes()
        return None if sizes is None else sizes * self.column_scale**2

    def to_coef(self, u: Floats) -> Floats:
        """Return ``w₀ + s u``."""
        coef = self._scaled(u)
        if self.origin is None:
            return coef
        return coef + (self.origin if u.ndim == self.origin.ndim else self.origin[:, None])

    def _scaled(self, v: Floats) -> Floats:
        return (v.T * self.column_scale).T


class BalancedObjective(ScaledObjective):
    """An objective and its penalty in units in which columns have like sizes: the same model by another way.

    ``H' + cI = S (H + αI) S``, where c, called `floor`, is the least of ``αS²``: all that is left to a solver to add.
    Columns may have an alpha each.
    """

    def __init__(
        self,
        objective: QuadraticObjective,
        alpha: float | Floats,
        column_scale: Floats,
        origin: Floats | None = None,
    ) -> None:
        penalty = alpha * column_scale**2
        self.floor = float(penalty.min(initial=np.inf))
        super().__init__(objective, column_scale, origin, penalty - self.floor)


class MinimisedObjective(QuadraticObjective):
    """An objective of the other columns, minimised over some: ``H - H_·U H_UU⁺ H_U·``, which is 0 in the columns U.

    The constructor computes a product for each column of U; later products cost as much as those of the objective.
    """

    def __init__(self, objective: QuadraticObjective, columns: Ints) -> None:
        self._objective, self._columns = objective, columns
        self._joined = objective.product(_units(objective.n_features, columns))
        inner = self._joined[columns]
        # Each in its own units, for what is small beside another column need not be rounding.
        units = np.sqrt(np.multiply.outer(np.diagonal(inner), np.diagonal(inner)))
        self._inverse = np.linalg.pinv((inner + inner.T) / (2 * units), rcond=1e-13, hermitian=True) / units
        self._shares = self._inverse @ self._joined.T

    @cached_property
    def rhs(self) -> Floats:
        """``b - H_·U H_UU⁺ b_U``."""
        return self._reduced(self._objective.rhs)

    def product(self, v: Floats) -> Floats:
        """Apply the matrix."""
        return self._reduced(self._objective.product(v))

    def _reduced(self, image: Floats) -> Floats:
        reduced: Floats = image - self._shares.T @ image[self._columns]
        reduced[self._columns] = 0.0
        return reduced

    def matrix(self) -> Floats:
        """Return the matrix."""
        matrix = self._objective.matrix() - self._joined @ self._shares
        matrix[self._columns] = matrix[:, self._columns] = 0.0
        return np.asarray((matrix + matrix.T) / 2)

    def diagonal(self) -> Floats:
        """Return an upper estimate of the diagonal: that of H."""
        diagonal = self._objective.diagonal()
        diagonal[self._columns] = 0.0
        return diagonal

    def sizes(self) -> Floats | None:
        """Return an upper estimate of the approximate diagonal."""
        sizes = self._objective.sizes()
        if sizes is not None:
            sizes[self._columns] = 0.0
        return sizes

    def completed(self, coef: Floats) -> Floats:
        """Return the coefficients of all columns, given those of the others."""
        whole: Floats = coef.copy()
        whole[self._columns] = 0.0
        whole[self._columns] = self._inverse @ self._objective.rhs[self._columns] - self._shares @ whole
        return whole


class MatrixQuadratic(QuadraticObjective):
    """``u'Hu - 2b'u`` of a matrix and of one vector, or of one per output."""

    rhs: Floats = np.empty(0)

    def __init__(self, matrix: Floats, rhs: Floats) -> None:
        self._matrix, self.rhs = matrix, rhs

    def product(self, v: Floats) -> Floats:
        """Apply H."""
        return np.asarray(self._matrix @ v)

    def matrix(self) -> Floats:
        """Return H."""
        return self._matrix

    def sizes(self) -> Floats:
        """Return the diagonal."""
        return self.diagonal()


def prior_scale(objective: QuadraticObjective, power: float) -> Floats:
    """Return ``diag(H)^-power`` for `ScaledObjective`; columns that never vary keep scale 1."""
    diagonal = objective.diagonal()
    return np.where(diagonal > 0, diagonal, 1.0) ** -power


# --- parts ---


class BlockPart(QuadraticObjective):
    """``X_B'L_B X_B`` of a block of rows, and the term that joins a block of one ranking to the rows before it.

    Parameters
    ----------
    design, blocks : Design and QueryBlocks
        The block's rows, and the pairs among them.
    pull : (rows,) or (rows, outputs) float64
    join : (features,) and (outputs,) float64, optional
        The differences of the means of rows and of labels, times the root of their weight.
    """

    def __init__(
        self, design: Design, blocks: QueryBlocks, pull: Floats, join: tuple[Floats, Floats] | None = None
    ) -> None:
        self.design, self.blocks, self._pull = design, blocks, pull
        nothing = np.zeros(design.shape[1]), np.zeros(pull.shape[1:])
        self._join, self._label_join = nothing if join is None else join

    @cached_property
    def rhs(self) -> Floats:
        """``X_B'r_B``."""
        return np.asarray(self.design.tdot(self._pull) + np.multiply.outer(self._join, self._label_join))

    def product(self, v: Floats) -> Floats:
        """Apply ``X_B'L_B X_B``: the block is read twice, while it is in memory."""
        scores = laplacian(self.blocks, self.design.dot(v), n_threads=self.design.n_threads)
        return np.asarray(self.design.tdot(scores) + np.multiply.outer(self._join, self._join @ v))

    def diagonal(self) -> Floats:
        """Return the diagonal."""
        diagonal = self.design.gram_diagonal(self.blocks)
        assert diagonal is not None  # operators are not cut
        return np.asarray(diagonal + self._join**2)


def parts_of(objective: QuadraticObjective, n_rows: int | None = None) -> Iterator[QuadraticObjective]:
    """Yield the parts of an objective, blocks of about `n_rows` rows, or the objective if it cannot be cut."""
    if isinstance(objective, ScaledObjective):
        penalty = objective.penalty
        for part in parts_of(objective.unscaled, n_rows):
            yield ScaledObjective(part, objective.column_scale, objective.origin, penalty)
            penalty = 0.0  # the first part has it
        return
    blocks = objective.graph.blocks if isinstance(objective, SquaredObjective) else None
    if not isinstance(objective, SquaredObjective) or blocks is None or not objective.design.has_rows:
        yield objective
        return
    design, pull = objective.design, objective.graph.pull
    if n_rows is None:  # of a part, of which many fit in memory
        per_row = design.nnz / max(design.shape[0], 1)
        n_rows = int(np.clip(_MOST_VALUES / max(per_row, 1.0), 1, _MOST_ROWS))
    is_whole = blocks.scale.size > 1 or blocks.coupling != "all" or design.shape[0] <= n_rows
    yield from (query_parts if is_whole else row_parts)(design, blocks, pull, n_rows)
    design.reads += 1


def query_parts(design: Design, blocks: QueryBlocks, pull: Floats, n_rows: int) -> Iterator[BlockPart]:
    """Cut between queries, in the order of their rows; a query is never cut, however large."""
    blocks, _ = in_row_order(blocks)
    start, first, n_queries = blocks.query_start, 0, blocks.scale.size
    while first < n_queries:
        last = int(np.searchsorted(start, start[first] + n_rows, side="right")) - 1
        last = max(last, first + 1)
        part = blocks.chosen(np.arange(first, last))
        order = part.order
        lowest = int(order.min(initial=design.shape[0]))
        if order.size and int(order.max()) - lowest == order.size - 1:
            # Rows that stand together, though levels may mix them: a store reads them in one go.
            rows = slice(lowest, lowest + order.size)
            yield BlockPart(design.rows(rows), replace(part, order=order - lowest), pull[rows])
        else:
            local = replace(part, order=np.arange(order.size))
            yield BlockPart(design.gathered(order), local, pull[order])
        first = last


def row_parts(design: Design, blocks: QueryBlocks, pull: Floats, n_rows: int) -> Iterator[BlockPart]:
    """Cut one ranking, in which ties are compared too, between rows."""
    degree, weight = float(blocks.degree[0]), np.ones(design.shape[0])
    if blocks.row_weight is not None:
        weight[blocks.order] = blocks.row_weight
    # L is a centering times the degree, so labels that pull like this can be read off.
    labels = np.divide(pull.T, degree * weight, out=np.zeros_like(pull.T), where=degree * weight > 0).T
    before, mean, label_mean = 0.0, np.zeros(design.shape[1]), np.zeros(pull.shape[1:])
    for first in range(0, design.shape[0], n_rows):
        rows = slice(first, min(first + n_rows, design.shape[0]))
        part, own = design.rows(rows), weight[rows]
        total = float(own.sum())
        share = own / (total or 1.0)
        gap, label_gap = part.tdot(share) - mean, share @ labels[rows] - label_mean
        whole = np.array([0, own.size], dtype=np.int64)
        pairs = replace(
            blocks,
            order=np.arange(own.size, dtype=np.int64),
            query_start=whole,
            segment_start=whole,
            scale=np.array([degree / (total or 1.0)]),
            row_weight=None if blocks.row_weight is None else own,
        )
        moved = total / ((before + total) or 1.0)
        root = sqrt(degree * before * moved)
        local = laplacian(pairs, np.ascontiguousarray(labels[rows]), n_threads=part.n_threads)
        yield BlockPart(part, pairs, local, (root * gap, root * label_gap))
        before, mean, label_mean = before + total, mean + moved * gap, label_mean + moved * label_gap


@dataclass(frozen=True)
class PassedQueries:
    """The sum over whole queries. It is immutable: adding queries returns a new one.

    Attributes
    ----------
    settings : tuple
        Everything that later calls must agree in: options of pairs, the shape of labels, and whether there are ids.
    sums : tuple of (matrix, right-hand side)
        Of each graph.
    ids : frozenset
        The ids of the queries, where they have some.
    n_rows : int
    attributes : dict
        Of `rankwise.pairs.pairs.Pairs`: counts of queries and pairs.
    """

    settings: tuple[object, ...]
    sums: tuple[tuple[Floats, Floats], ...]
    ids: frozenset[Hashable]
    n_rows: int
    attributes: dict[str, Any]

    def plus(self, other: PassedQueries) -> PassedQueries:
        """Return the sum over the queries of both."""
        pairs = zip(self.sums, other.sums, strict=True)
        return PassedQueries(
            self.settings,
            tuple((matrix + more, rhs + more_rhs) for (matrix, rhs), (more, more_rhs) in pairs),
            self.ids | other.ids,
            self.n_rows + other.n_rows,
            {name: count + other.attributes[name] for name, count in self.attributes.items()},
        )

    def objectives(self) -> list[MatrixQuadratic]:
        """Return the objective of each graph over everything so far."""
        return [MatrixQuadratic(np.asarray(matrix), rhs) for matrix, rhs in self.sums]


# --- losses with margins ---


class MarginPoint:
    """The mean loss at some scores; curvature and smoothing only where the loss has them."""

    def __init__(self, objective: MarginObjective, scores: Floats) -> None:
        self._objective, self._total = objective, objective.pairs.weight
        self._point: Any = objective.loss(objective.pairs, scores)

    @cached_property
    def value(self) -> Floats:
        """The mean loss."""
        return np.asarray(self._point.value / self._total)

    @cached_property
    def score_gradient(self) -> Floats:
        """A subgradient with respect to the scores; no data are read for it."""
        return np.asarray(self._point.gradient / self._total)

    @property
    def offset(self) -> float:
        """Where the plane that touches the loss here meets scores of 0: ``loss - gradient'f``."""
        return float(self._point.offset / self._total) + self._at_base(self.score_gradient)

    def _at_base(self, gradient: Floats) -> float:
        """Return the value at the base of the linear function with this gradient."""
        base = self._objective.base
        return 0.0 if base is None else float(gradient @ base)

    @cached_property
    def gradient(self) -> Floats:
        """A subgradient with respect to the coefficients."""
        return self._objective.pull_back(self.score_gradient)

    def score_hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian with respect to the scores; no data are read for it."""
        return np.asarray(self._point.hessian_product(v) / self._total)

    def score_hessian_diagonal(self) -> Floats:
        """Return the diagonal of the Hessian with respect to the scores."""
        return np.asarray(self._point.hessian_diagonal() / self._total)

    def hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian: two reads."""
        return self._objective.pull_back(self.score_hessian_product(self._objective.scores(v)))

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the mean Huberised hinge at the same scores."""
        point: SmoothedHinge = self._point.smoothed(delta)
        gradient = point.gradient / self._total
        active = point.active / self._total + self._at_base(gradient)
        return SmoothedHinge(point.value / self._total, gradient, active)

    def smoothed_hessian_diagonal(self, delta: float) -> Floats:
        """Return the diagonal of its Hessian with respect to the scores."""
        return np.asarray(self._point.smoothed_hessian_diagonal(delta) / self._total)


@dataclass(eq=False)
class MarginObjective:
    """``(1/Σω) Σ ω loss`` of the scores ``Xw``: moving along a line of scores reads no data.

    Parameters
    ----------
    loss : type of Loss
        Solvers that need Hessians take losses with `is_smooth`, the one that smooths takes the hinge.
    base : (rows,) float64, optional
        Scores of an earlier model, added to all scores before the loss is evaluated.
    scale : (features,) float64, optional
        The factor of each coefficient: its unit.
    """

    design: Products
    pairs: MarginPairs
    loss: type[Loss]
    base: Floats | None = None
    scale: Floats | None = None

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.design.shape[1])

    def zero_scores(self) -> Floats:
        """Return the scores of no coefficients, without the base."""
        return self.design.zero_scores()

    def scores(self, coef: Floats) -> Floats:
        """Return ``Xw``, without the base: one read."""
        return self.design.dot(coef if self.scale is None else coef * self.scale)

    def pull_back(self, score_gradient: Floats) -> Floats:
        """Return ``X'u`` for a vector or the columns of a block: one read."""
        pulled = self.design.tdot(score_gradient)
        return pulled if self.scale is None else (pulled.T * self.scale).T

    def at(self, coef: Floats) -> MarginPoint:
        """Evaluate at a coefficient vector."""
        return self.at_scores(self.scores(coef))

    def at_scores(self, scores: Floats) -> MarginPoint:
        """Evaluate where the scores are known."""
        return MarginPoint(self, scores if self.base is None else scores + self.base)

    def sample(self, n_rows: int) -> tuple[Rows, MarginObjective] | None:
        """Return about `n_rows` rows and the loss over their pairs; None where that would not be much cheaper."""
        thinned = None if self.loss.is_smooth else self.pairs.thinned(n_rows)
        if thinned is None:
            return None
        rows, pairs = thinned
        return rows, MarginObjective(
            self.design, pairs, self.loss, None if self.base is None else self.base[rows]
        )
