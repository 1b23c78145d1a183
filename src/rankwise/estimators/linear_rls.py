"""What the linear RankRLS estimators share: parameters, labels on their way to graphs, prediction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwise.data.queries import Queries
from rankwise.data.validation import check_choice, check_importance
from rankwise.design import Design, as_design
from rankwise.estimators.base import Ranker
from rankwise.estimators.pairwise import NEAR_TIE
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import (
    COSTS,
    QUERY_WEIGHTS,
    TIES,
    LabelGraph,
    Levels,
    find_levels,
    label_graph,
    laplacian_depends_on_labels,
)

__all__ = ["LinearRankRLS", "TrainingData", "check_count", "check_number"]


@dataclass
class TrainingData:
    """A design and its labels, after the door.

    Attributes
    ----------
    columns : list of (rows,) float64
        The labels, output by output.
    levels : list of Levels
        Their levels, output by output.
    """

    design: Design
    y: Floats
    queries: Queries
    row_weight: Floats | None
    importance: Floats | None

    def __post_init__(self) -> None:
        self.columns: list[Floats] = [self.y] if self.y.ndim == 1 else list(np.ascontiguousarray(self.y.T))
        self.levels: list[Levels] = [find_levels(c, self.queries, self.row_weight) for c in self.columns]
        for output, levels in enumerate(self.levels):
            if levels.n_pairs == 0:
                which = f"output {output} of y" if self.y.ndim == 2 else "y"
                raise NoPairsError(
                    f"No query has two different labels in {which}, so nothing says which row is better.",
                    "every query has a single row: check that qid groups the rows that compete."
                    if self.queries.sizes.max(initial=0) <= 1
                    else "check that y holds the labels and that qid groups rows with different labels.",
                )

    @property
    def several_outputs(self) -> bool:
        """Whether y has columns."""
        return self.y.ndim == 2


class LinearRankRLS(Ranker):
    """The part of `RankRLS` and `RankRLSCV` that does not depend on how alpha is found."""

    def predict(self, X: Any) -> Floats:
        """Return a score for each row of X: higher is better.

        Only differences between rows of one query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
        check_is_fitted(self)
        design = as_design(self._check_matrix(X, reset=False), self.n_threads)
        return design.dot(np.ascontiguousarray(self.coef_.T))

    def _training_data(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any
    ) -> TrainingData:
        """Pass everything through the door, and set the attributes that describe it."""
        X, y, queries, row_weight = self._check_fit_input(X, y, qid, sample_weight)
        importance = check_importance(query_importance, queries)
        data = TrainingData(as_design(X, self.n_threads), y, queries, row_weight, importance)
        self._warn_about_near_ties(data)
        self.fitted_with_qid_ = qid is not None
        self.n_queries_ = len(queries)
        pairs = np.array([levels.n_pairs for levels in data.levels])
        ignored = np.array([int((~levels.ordered).sum()) for levels in data.levels])
        self.n_pairs_ = pairs if data.several_outputs else int(pairs[0])
        self.n_ignored_queries_ = ignored if data.several_outputs else int(ignored[0])
        return data

    def _graph(self, data: TrainingData, output: int, row_weight: Floats | None) -> LabelGraph:
        """Build the graph of one output, under row weights that may differ from the data's."""
        levels = data.levels[output]
        if row_weight is not data.row_weight:
            levels = levels.reweighted(row_weight)
        return label_graph(
            data.columns[output],
            data.queries,
            ties=self.ties,
            cost=self.cost,
            query_weight=self.query_weight,
            row_weight=row_weight,
            query_importance=data.importance,
            levels=levels,
            n_threads=data.design.n_threads,
        )

    def _graphs(self, data: TrainingData) -> list[LabelGraph]:
        """Return one graph for all outputs where they can share it, else one an output."""
        if not data.several_outputs or laplacian_depends_on_labels(self.ties, self.cost, self.query_weight):
            return [self._graph(data, output, data.row_weight) for output in range(len(data.columns))]
        return [
            label_graph(
                data.y,
                data.queries,
                ties=self.ties,
                cost=self.cost,
                query_weight=self.query_weight,
                row_weight=data.row_weight,
                query_importance=data.importance,
                n_threads=data.design.n_threads,
            )
        ]

    def _check_loss_parameters(self) -> None:
        check_choice("query_weight", self.query_weight, QUERY_WEIGHTS)
        check_choice("ties", self.ties, TIES)
        check_choice("cost", self.cost, COSTS)
        if self.cost == "relative" and self.ties == "include":
            raise InvalidInputError(
                "cost='relative' divides by the difference of the labels, which is 0 for tied rows.",
                "set ties='exclude'.",
            )
        check_number("tol", self.tol, minimum=0, remedy="use a small positive number such as 1e-5")
        check_count("max_iter", self.max_iter)
        check_count("n_threads", self.n_threads)

    def _warn_about_near_ties(self, data: TrainingData) -> None:
        if self.cost != "relative":
            return
        for levels in data.levels:
            gaps = np.diff(levels.value)[levels.query[1:] == levels.query[:-1]]
            if gaps.size and gaps.min() < NEAR_TIE * gaps.max():
                warnings.warn(
                    f"Labels that differ by only {gaps.min():.3g} weigh 1/difference² in cost='relative' and "
                    "dominate the fit. Hint: round the labels, or use cost='magnitude'.",
                    UserWarning,
                    stacklevel=4,
                )


def check_number(name: str, value: object, *, minimum: float, remedy: str) -> None:
    """Raise unless `value` is a finite real number of at least `minimum`."""
    if not isinstance(value, Real) or isinstance(value, bool) or not minimum <= float(value) < np.inf:
        raise InvalidInputError(
            f"{name}={value!r} is not a finite number of at least {minimum}.", f"{remedy}."
        )


def check_count(name: str, value: object) -> None:
    """Raise unless `value` is a positive integer or None."""
    if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
        raise InvalidInputError(f"{name}={value!r} is not a positive integer.", "use None for the default.")
