"""Rows or pairs that score a kernel model, in lockstep with products of the kernel and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Rows
from rankwise.design import Design
from rankwise.pairs.factor import Factor
from rankwise.pairs.preference_factor import IncidenceFactor
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.selection.pair_systems import LeftOutPairs
from rankwise.selection.row_systems import Pooling
from rankwise.selection.scorers import Scorer

__all__ = ["KernelFoldPairs", "KernelFoldRows", "KernelRows"]


class KernelRows:
    """The dual of one graph, scored by rows of their own, or by nobody; one column and one table per output.

    Parameters
    ----------
    kernel : Design
        The square kernel of the training rows.
    factor : Factor
    pull : (rows,) or (rows, outputs) float64
    rows : Design, optional
        The kernel between the rows to score by and the training rows.
    scorers : sequence of Scorer
        One an output.
    """

    def __init__(
        self,
        kernel: Design,
        factor: Factor,
        pull: Floats,
        rows: Design | None = None,
        scorers: Sequence[Scorer] = (),
    ) -> None:
        self._kernel, self._factor, self._rows, self._scorers = kernel, factor, rows, scorers
        target = factor.target(pull)
        self.rhs = target.reshape(target.shape[0], -1)
        n_rows = 0 if rows is None else rows.shape[0]
        self.row_columns = [np.full(n_rows, column, dtype=np.int64) for column in range(self.rhs.shape[1])]

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return ``FKF' @ vectors`` and the rows' scores, output by output."""
        dual = self._factor.transposed(vectors)
        image = self._factor.apply(self._kernel.dot(dual))
        if self._rows is None:
            return image, [np.empty(0)] * vectors.shape[1]
        return image, list(self._rows.dot(dual).T)

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores of an output."""
        return np.zeros(scores.shape[0]) if self._rows is None else self._scorers[output].errors(scores)

    def dual_coefficients(self, column: int, b: Floats) -> Floats:
        """Return ``F'b``."""
        return self._factor.transposed(b)


class KernelFoldRows:
    """The duals of all folds at once: the product with the kernel scores the rows that a fold does not see.

    Parameters
    ----------
    kernel : Design
        The square kernel of all rows.
    factors : sequence of Factor, one per fold
        In which the fold's own rows weigh nothing.
    pulls : sequence of (rows,) float64, one per fold
    fold : (rows,) int32
        The fold of each row; -1 for rows that are in every training set.
    scored : (rows to score by,) int64
    make_scorer : callable
        Makes the scorer of those rows, in the order it is given.
    pooling : Pooling, optional
        Where rows of different folds are compared.
    """

    def __init__(
        self,
        kernel: Design,
        factors: Sequence[Factor],
        pulls: Sequence[Floats],
        fold: npt.NDArray[np.int32],
        scored: Rows,
        make_scorer: Callable[[Rows], Scorer],
        pooling: Pooling | None = None,
    ) -> None:
        self._kernel, self._factors, self._pooling = kernel, factors, pooling
        self._rows = scored[np.argsort(fold[scored], kind="stable")]
        self._scorer = make_scorer(self._rows)
        self._column = fold[self._rows].astype(np.int64)
        self.row_columns = [self._column]
        self.rhs = np.column_stack([f.target(pull) for f, pull in zip(factors, pulls, strict=True)])

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return every fold's product, and the held-out rows' scores."""
        columns = [np.ascontiguousarray(column) for column in vectors.T]
        dual = [f.transposed(column) for f, column in zip(self._factors, columns, strict=True)]
        scores = self._kernel.dot(np.column_stack(dual))
        image = [
            f.apply(np.ascontiguousarray(column)) for f, column in zip(self._factors, scores.T, strict=True)
        ]
        held_out = scores[self._rows, self._column]
        if self._pooling is not None:
            held_out -= (self._pooling.share * scores).sum(axis=0)[self._column]
        return np.column_stack(image), [held_out]

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, rows) scores."""
        return self._scorer.errors(
            scores if self._pooling is None else scores + self._pooling.label[self._column]
        )

    def dual_coefficients(self, column: int, b: Floats) -> Floats:
        """Return ``F'b`` of a fold."""
        return self._factors[column].transposed(b)


class KernelFoldPairs:
    """The duals of all folds of listed pairs at once, each scored by pairs that it does not see.

    Parameters
    ----------
    kernel : Design
        The square kernel of all rows.
    graph : PreferenceGraph
    left_out : LeftOutPairs
    scorer : Scorer
        Of the differences of the entries to score by, in their order.
    """

    def __init__(
        self, kernel: Design, graph: PreferenceGraph, left_out: LeftOutPairs, scorer: Scorer
    ) -> None:
        self._kernel, self._scorer = kernel, scorer
        self._factor = IncidenceFactor(graph)
        self._keeps = np.ones((graph.winner.size, left_out.n_folds))
        self._keeps[left_out.pair, left_out.fold] = 0.0
        self._column = left_out.fold[left_out.is_scored]
        pair = left_out.pair[left_out.is_scored]
        self._winner, self._loser = graph.winner[pair], graph.loser[pair]
        self.row_columns = [self._column]
        self.rhs = self._keeps * self._factor.target(graph.pull)[:, None]

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return every fold's product, and the differences that its scoring pairs have."""
        scores = self._kernel.dot(self._factor.transposed(self._keeps * vectors))
        held_out = scores[self._winner, self._column] - scores[self._loser, self._column]
        return self._keeps * self._factor.apply(scores), [held_out]

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, pairs) differences."""
        return self._scorer.errors(scores)

    def dual_coefficients(self, column: int, b: Floats) -> Floats:
        """Return ``F'b`` of a fold."""
        return self._factor.transposed(self._keeps[:, column] * b)
