"""Rows that score a model, in lockstep with the objective that they score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Rows
from rankwise.blocks import Folds, laplacian
from rankwise.design import Design
from rankwise.objectives import QuadraticObjective
from rankwise.pairs.labels import LabelGraph
from rankwise.selection.scorers import Scorer

__all__ = ["EvaluationRows", "FoldRows", "NoRows", "Pooling"]


class EvaluationRows:
    """An objective scored by rows of their own; one column and one table per output.

    Parameters
    ----------
    objective : QuadraticObjective
        With one right-hand side per output.
    rows : Design
        The rows to score by.
    scorers : sequence of Scorer
        One an output.
    column_scale : (features,) float64, optional
        Scores are ``rows @ (column_scale * v)``: for objectives in scaled coordinates.
    """

    def __init__(
        self,
        objective: QuadraticObjective,
        rows: Design,
        scorers: Sequence[Scorer],
        column_scale: Floats | None = None,
    ) -> None:
        self._objective = objective
        self._design = rows
        self._scorers = scorers
        self._scale = column_scale
        self.rhs = objective.rhs.reshape(objective.n_features, -1)
        self.row_columns = [
            np.full(rows.shape[0], column, dtype=np.int64) for column in range(self.rhs.shape[1])
        ]

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return ``H @ vectors`` and the rows' scores, output by output."""
        squeezed = vectors[:, 0] if vectors.shape[1] == 1 else vectors  # the kernels are faster on one vector
        image = self._objective.product(squeezed).reshape(vectors.shape)
        scale = None if self._scale is None else self._scale.reshape(-1, *[1] * (squeezed.ndim - 1))
        scores = self._design.dot(squeezed if scale is None else squeezed * scale)
        return image, list(scores.reshape(self._design.shape[0], -1).T)

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output."""
        return self._scorers[output].errors(scores)


class NoRows:
    """An objective that nobody scores: only its residuals are watched. One column and one table per output."""

    def __init__(self, objective: QuadraticObjective) -> None:
        self._objective = objective
        self.rhs = objective.rhs.reshape(objective.n_features, -1)
        self.row_columns = [np.empty(0, dtype=np.int64) for _ in range(self.rhs.shape[1])]

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return ``H @ vectors``."""
        squeezed = vectors[:, 0] if vectors.shape[1] == 1 else vectors
        return self._objective.product(squeezed).reshape(vectors.shape), [np.empty(0)] * vectors.shape[1]

    def errors(self, output: int, scores: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(scores.shape[0])


@dataclass(frozen=True)
class Pooling:
    """Makes the scores of different folds' models comparable: training rows score on average what their labels are.

    Attributes
    ----------
    share : (rows, folds) float64
        Each row's share of the weight that a fold trains on; columns sum to 1.
    label : (folds,) float64
        The mean label of those rows.
    """

    share: Floats
    label: Floats

    @classmethod
    def of_folds(cls, fold: npt.NDArray[np.int32], labels: Floats, row_weight: Floats | None) -> Pooling:
        """Return what pools folds of the rows of one ranking."""
        trains = fold[:, None] != np.arange(int(fold.max(initial=-1)) + 1)
        weight = trains * (1.0 if row_weight is None else row_weight[:, None])
        share = weight / weight.sum(axis=0)
        return cls(share, labels @ share)


class FoldRows:
    """Every fold's objective at once, each scored by the rows it does not see.

    Parameters
    ----------
    design : Design
    whole : LabelGraph
        The graph of all rows.
    graphs : iterable of LabelGraph, one per fold
        The same rows and segments, with the fold's own rows at weight 0. Read once, and kept only where the
        coupling needs them: eight graphs of a large data set would take as much memory as the data.
    fold : (rows,) int32
        The fold of each row; -1 for rows that are in every training set.
    scored : (rows to score by,) int64
        Which rows to score by; every one has a fold.
    make_scorer : callable
        Makes the scorer of those rows, in the order it is given.
    column_scale : (features,) float64, optional
    pooling : Pooling, optional
        Where rows of different folds are compared.
    """

    def __init__(
        self,
        design: Design,
        whole: LabelGraph,
        graphs: Iterable[LabelGraph],
        fold: npt.NDArray[np.int32],
        scored: Rows,
        make_scorer: Callable[[Rows], Scorer],
        column_scale: Floats | None = None,
        pooling: Pooling | None = None,
    ) -> None:
        self._design = design
        self._scale = column_scale
        self._rows = scored[np.argsort(fold[scored], kind="stable")]
        self._scorer = make_scorer(self._rows)
        self.row_columns = [fold[self._rows].astype(np.int64)]
        self._fold = fold
        self._mean_row = None if pooling is None else design.tdot(pooling.share)
        self._label = None if pooling is None else pooling.label[self.row_columns[0]]
        self._held_out = np.zeros(design.shape[0])
        self._graphs: list[LabelGraph] = []
        pull, degree, scale = [], [], []
        for graph in graphs:
            pull.append(graph.pull)
            degree.append(graph.blocks.degree)
            scale.append(graph.blocks.scale)
            if graph.blocks.coupling == "relative":
                self._graphs.append(graph)
        folds = Folds(fold, np.column_stack(degree), np.column_stack(scale))
        self.rhs = self._scaled(design.tdot(np.column_stack(pull)))
        self._product = self._one_laplacian_a_fold if self._graphs else self._lockstep(whole, folds)
        self.n_products = 0

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return every fold's product, and the held-out rows' scores."""
        self.n_products += vectors.shape[1]
        coef = self._scaled(vectors)
        image = self._product(coef)
        scores = self._held_out[self._rows]
        if self._mean_row is not None:
            scores -= (self._mean_row * coef).sum(axis=0)[self.row_columns[0]]
        return self._scaled(image), [scores]

    def _lockstep(self, whole: LabelGraph, folds: Folds) -> Callable[[Floats], Floats]:
        """Choose how the folds' products are made: reading X once, if the storage allows it."""
        design, held_out, blocks = self._design, self._held_out, whole.blocks
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
        columns = [
            graph.laplacian(np.ascontiguousarray(column))
            for graph, column in zip(self._graphs, scores.T, strict=True)
        ]
        return self._design.tdot(np.column_stack(columns))

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores."""
        return self._scorer.errors(scores if self._label is None else scores + self._label)

    def _scaled(self, vectors: Floats) -> Floats:
        return vectors if self._scale is None else vectors * self._scale[:, None]
