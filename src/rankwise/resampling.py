"""Rows that judge a model: an evaluation set, a held-out share, or folds; and what they see while it is fitted.

The two systems here join a quadratic objective to the rows that judge it, in the form that
`rankwise.solvers.surface` reads. Folds are lanes of one block product: in lane c the rows of fold c weigh
nothing, and their inner products, which the product forms anyway, are their held-out scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.blocks import Folds, laplacian
from rankwise.data.queries import Queries
from rankwise.design import Design
from rankwise.metrics import Evaluator
from rankwise.objectives import QuadraticObjective
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import LabelGraph

__all__ = ["EvaluationRows", "FoldRows", "Judge", "NoRows", "deal_folds", "hold_out"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judge:
    """A metric with its labels prepared, turned so that lower is better."""

    evaluator: Evaluator
    greater_is_better: bool

    def errors(self, scores: Floats) -> Floats:
        """Judge (alphas, rows) scores."""
        values = self.evaluator.many(scores.T)
        return -values if self.greater_is_better else values


class EvaluationRows:
    """An objective judged by rows of their own; one lane and one table an output.

    Parameters
    ----------
    objective : QuadraticObjective
        With one right-hand side an output.
    rows : Design
        The rows that judge.
    judges : sequence of Judge
        One an output.
    column_scale : (features,) float64, optional
        Scores are ``rows @ (column_scale * v)``: for objectives in scaled coordinates.
    """

    def __init__(
        self,
        objective: QuadraticObjective,
        rows: Design,
        judges: Sequence[Judge],
        column_scale: Floats | None = None,
    ) -> None:
        self._objective = objective
        self._design = rows
        self._judges = judges
        self._scale = column_scale
        self.rhs = objective.rhs.reshape(objective.n_features, -1)
        self.row_lanes = [np.full(rows.shape[0], lane, dtype=np.int64) for lane in range(self.rhs.shape[1])]

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return ``H @ vectors`` and the rows' scores, output by output."""
        squeezed = vectors[:, 0] if vectors.shape[1] == 1 else vectors  # the kernels are faster on one vector
        image = self._objective.product(squeezed).reshape(vectors.shape)
        scale = None if self._scale is None else self._scale.reshape(-1, *[1] * (squeezed.ndim - 1))
        scores = self._design.dot(squeezed if scale is None else squeezed * scale)
        return image, list(scores.reshape(self._design.shape[0], -1).T)

    def errors(self, output: int, scores: Floats) -> Floats:
        """Judge (alphas, rows) scores of an output."""
        return self._judges[output].errors(scores)


class NoRows:
    """An objective that nobody judges: only its residuals are watched. One lane and one table an output."""

    def __init__(self, objective: QuadraticObjective) -> None:
        self._objective = objective
        self.rhs = objective.rhs.reshape(objective.n_features, -1)
        self.row_lanes = [np.empty(0, dtype=np.int64) for _ in range(self.rhs.shape[1])]

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return ``H @ vectors``."""
        squeezed = vectors[:, 0] if vectors.shape[1] == 1 else vectors
        return self._objective.product(squeezed).reshape(vectors.shape), [np.empty(0)] * vectors.shape[1]

    def errors(self, output: int, scores: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(scores.shape[0])


class FoldRows:
    """Every fold's objective at once, each judged by the rows it does not see.

    Parameters
    ----------
    design : Design
    graphs : sequence of LabelGraph, one a fold
        The same rows and segments, with the fold's own rows at weight 0.
    fold : (rows,) int32
        The fold of each row; -1 for rows that are in every training set.
    judged : (rows that judge,) int64
        Which rows judge; every one has a fold.
    make_judge : callable
        Makes the judge of those rows, in the order it is given.
    column_scale : (features,) float64, optional
    """

    def __init__(
        self,
        design: Design,
        whole: LabelGraph,
        graphs: Sequence[LabelGraph],
        fold: npt.NDArray[np.int32],
        judged: Rows,
        make_judge: Callable[[Rows], Judge],
        column_scale: Floats | None = None,
    ) -> None:
        self._design = design
        self._scale = column_scale
        self._rows = judged[np.argsort(fold[judged], kind="stable")]
        self._judge = make_judge(self._rows)
        self.row_lanes = [fold[self._rows].astype(np.int64)]
        self._graphs = graphs
        self._fold = fold
        self._held_out = np.zeros(design.shape[0])
        self._product = self._lockstep(whole)
        self.rhs = self._scaled(design.tdot(np.column_stack([graph.pull for graph in graphs])))
        self.n_products = 0

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return every fold's product, and the held-out rows' scores."""
        self.n_products += vectors.shape[1]
        image = self._product(self._scaled(vectors))
        return self._scaled(image), [self._held_out[self._rows]]

    def _lockstep(self, whole: LabelGraph) -> Callable[[Floats], Floats]:
        """Choose how the folds' products are made: reading X once, if storage and coupling allow it."""
        design, held_out, blocks = self._design, self._held_out, whole.blocks
        if blocks.coupling == "relative":
            return self._one_laplacian_a_fold
        folds = Folds(
            self._fold,
            np.column_stack([graph.blocks.degree for graph in self._graphs]),
            np.column_stack([graph.blocks.scale for graph in self._graphs]),
        )
        fused = design.gram_product(blocks, folds)
        if fused is not None:
            return lambda v: fused(v, held_out)
        return lambda v: design.tdot(
            laplacian(blocks, design.dot(v), n_threads=design.n_threads, folds=folds, held_out=held_out)
        )

    def _one_laplacian_a_fold(self, v: Floats) -> Floats:
        scores = self._design.dot(v)
        rows = np.flatnonzero(self._fold >= 0)
        self._held_out[rows] = scores[rows, self._fold[rows]]
        lanes = [
            graph.laplacian(np.ascontiguousarray(column))
            for graph, column in zip(self._graphs, scores.T, strict=True)
        ]
        return self._design.tdot(np.column_stack(lanes))

    def errors(self, output: int, scores: Floats) -> Floats:
        """Judge (alphas, rows) scores."""
        return self._judge.errors(scores)

    def _scaled(self, vectors: Floats) -> Floats:
        return vectors if self._scale is None else vectors * self._scale[:, None]


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
    n_folds = min(max(2, round(1 / share)), max(n_units, 2))
    return np.equal(deal_folds(design, labels, queries, n_folds, seed), 0)


def _deal(order: Rows, n_folds: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    n_runs = -(-order.size // n_folds)
    hands = rng.permuted(np.tile(np.arange(n_folds, dtype=np.int32), (n_runs, 1)), axis=1)
    fold = np.empty(order.size, dtype=np.int32)
    fold[order] = hands.ravel()[: order.size]
    return fold
