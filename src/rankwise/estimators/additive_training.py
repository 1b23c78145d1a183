"""How the additive estimators train: columns with missing values and categories, pairs, what is held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg
from sklearn.utils.validation import column_or_1d

from rankwise.additive.choosing import Split
from rankwise.additive.coordinates import PENALTIES
from rankwise.additive.fitting import Blueprint
from rankwise.additive.knots import plan_knots
from rankwise.additive.training import LOSSES, MarginTraining, SquaredTraining, Training
from rankwise.arrays import Floats, Ints, Labels, MatrixLike
from rankwise.data.containers import check_total, unmasked
from rankwise.data.preferences import Preferences, check_pairs
from rankwise.data.queries import Queries
from rankwise.data.validation import (
    check_choice,
    check_count,
    check_importance,
    check_qid,
    check_weights,
    check_weights_of_queries,
)
from rankwise.estimators.additive_model import AdditiveModel
from rankwise.estimators.additive_parameters import lists_pairs, read_columns, read_directions, read_surfaces
from rankwise.estimators.checks import check_running, check_squared_loss
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.memory import fits
from rankwise.metrics import get_metric
from rankwise.pairs.preferences import PreferenceGraph, preference_graph
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.cv_pairs import PairPlan
from rankwise.selection.margin_fit import MarginFit, label_margins, listed_margins
from rankwise.selection.scorers import row_scorer, scorer_of_pairs
from rankwise.solvers.choose import choose_margin_solver

__all__ = ["AdditiveTrainer"]


class AdditiveTrainer(AdditiveModel):
    """The part of `AdditiveRanker` and `AdditiveRankerCV` that does not depend on how the settings are found."""

    def _check_model_parameters(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_choice("penalty", self.penalty, PENALTIES)
        check_squared_loss(self.query_weight, *self._which_pairs())
        check_running(self.tol, self.max_iter, self.n_threads, self.random_state, example="1e-3")
        if float(self.tol) >= 1:
            raise InvalidInputError(
                f"tol={self.tol!r} is not below 1: it is a share of what can be gained over no model.",
                "use 1e-3.",
            )
        check_count("surface_knots", self.surface_knots, optional=False)
        if self.surface_knots < 2:
            raise InvalidInputError("surface_knots=1 makes every surface a constant.", "use 5.")
        if self.monotone is not None and (self.penalty != "difference" or self.loss == "hinge"):
            raise InvalidInputError(
                f"monotone needs steps from knot to knot and a smooth loss, not penalty={self.penalty!r} with "
                f"loss={self.loss!r}.",
                "use penalty='difference' with loss='squared_hinge' or 'squared'.",
            )

    def _check_rows(self, X: MatrixLike, *, reset: bool, look_at_values: bool = True) -> Any:
        """Return a checked array; NaN counts as missing, and a sparse matrix becomes an array."""
        return _as_array(self._validated(_dense_fits(X), reset=reset, is_finite=False))

    def _check_labelled(
        self, X: MatrixLike, y: Labels, *, reset: bool, min_rows: int = 2
    ) -> tuple[Any, Floats]:
        """Return a checked array and the labels of its rows."""
        options = {
            "y": unmasked("y", y),
            "multi_output": True,
            "y_numeric": True,
            "ensure_min_samples": min_rows,
        }
        checked, labels = self._validated(_dense_fits(X), reset=reset, is_finite=False, **options)
        if labels.ndim == 2 and labels.shape[1] > 1:
            raise InvalidInputError(
                f"y has {labels.shape[1]} columns, and a curve has one value per knot.",
                "fit one model per output.",
            )
        labels = column_or_1d(labels, dtype=np.float64, warn=True)
        check_total("y", float(np.abs(labels).max(initial=0.0)), "divide y by a constant.")
        return _as_array(checked), labels

    def _validated(self, X: MatrixLike, *, reset: bool, is_finite: bool, **options: object) -> Any:
        options["ensure_all_finite"] = "allow-nan"
        return super()._validated(X, reset=reset, is_finite=False, **options)

    def _blueprint(self, X: Any, queries: Queries, weight: Floats | None, n_knots: int) -> Blueprint:
        """Choose the knots, and set what is said about the columns."""
        check_count("n_knots", n_knots, optional=False)
        if n_knots < 2:
            raise InvalidInputError(
                "n_knots=1 makes every curve a constant.", "use at least 2; 8 is a good start."
            )
        names = getattr(self, "feature_names_in_", ())
        levels = (
            []
            if self.categorical is None
            else read_columns("categorical", self.categorical, X.shape[1], names)
        )
        directions = read_directions(self.monotone, X.shape[1], names)
        if set(levels) & set(directions):
            raise InvalidInputError(
                "A column is both categorical and monotone; levels of a category have no order.",
                "take it out of one of the two.",
            )
        plan = plan_knots(X, queries, n_knots, int(self.surface_knots), levels=levels, weight=weight)
        if not plan.curves:
            raise InvalidInputError(
                "Every column of X is constant inside each query, so no ranking depends on X.",
                "check that qid groups the rows that compete, or add columns that differ between them.",
            )
        self.constant_columns_ = plan.constant
        return Blueprint(X, plan, self.penalty, directions, self._threads())

    def _listed_surfaces(self, blueprint: Blueprint) -> list[tuple[int, int]] | None:
        """Return the pairs of curves that the caller listed; None where a number of them is to be chosen."""
        if not lists_pairs(self.interactions):
            return None
        names = getattr(self, "feature_names_in_", ())
        return read_surfaces(
            self.interactions, blueprint.plan.curves, blueprint.directions, blueprint.X.shape[1], names
        )

    def _labelled(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any, n_knots: int
    ) -> tuple[Blueprint, TrainingData]:
        """Pass labelled rows through validation, and set the attributes that describe them."""
        self._require_labels(y)
        X, y = self._check_labelled(X, y, reset=True)
        queries = check_qid(qid, y.size)
        row_weight = check_weights(sample_weight, y.size)
        if row_weight is not None:
            total = float(row_weight.sum()) * float(np.abs(y).max(initial=0.0))
            check_total("y times sample_weight", total, "use labels and weights around 1.")
        if self.query_weight == "equal":
            check_weights_of_queries(row_weight, queries)
        importance = check_importance(query_importance, queries)
        if importance is not None and not importance.all():
            # A query of no importance is left out, of the knots as well.
            given = np.ones(queries.n_rows) if row_weight is None else row_weight
            row_weight = given * (importance[queries.codes] > 0)
        blueprint = self._blueprint(X, queries, row_weight, n_knots)
        ties, cost = self._which_pairs()
        data = TrainingData(
            blueprint.curves.design,
            y,
            queries,
            row_weight,
            importance,
            ties=ties,
            cost=cost,
            query_weight=self.query_weight,
        )
        self._forget("n_components_", "n_unpaired_rows_")
        self.fitted_with_qid_ = qid is not None
        self.n_queries_ = len(queries)
        self.n_pairs_ = data.levels[0].n_pairs
        self.n_ignored_queries_ = int((~data.levels[0].ordered).sum())
        return blueprint, data

    def _listed(
        self, X: Any, pairs: Any, magnitude: Any, weight: Any, n_knots: int
    ) -> tuple[Blueprint, PairData]:
        """Pass listed pairs through validation, and set the attributes that describe them."""
        X = self._check_rows(X, reset=True)
        preferences = check_pairs(pairs, X.shape[0], magnitude, weight)
        blueprint = self._blueprint(X, check_qid(None, X.shape[0]), None, n_knots)
        design = blueprint.curves.design
        graph = self._graph_of(preferences, design.shape[0])
        self.n_pairs_ = graph.n_pairs
        self.n_components_ = graph.n_components
        self.n_unpaired_rows_ = graph.n_unpaired_rows
        self.n_queries_, self.n_ignored_queries_, self.fitted_with_qid_ = 1, 0, False
        return blueprint, PairData(design, preferences, graph)

    def _graph_of(self, preferences: Preferences, n_rows: int) -> PreferenceGraph:
        ties, cost = self._which_pairs()
        graph = preference_graph(
            preferences.winner,
            preferences.loser,
            n_rows,
            magnitude=preferences.magnitude,
            weight=preferences.weight,
            ties=ties,
            cost=cost,
            n_threads=self._threads(),
        )
        if graph.n_pairs == 0:
            raise NoPairsError(
                "Every pair that weighs something is a tie (magnitude 0), so nothing says which row is better.",
                "pass at least one pair with a positive magnitude and weight.",
            )
        return graph

    def _which_pairs(self) -> tuple[Any, Any]:
        """Return `ties` and `cost`; with a margin, ties have no winner and a listed pair's magnitude is its margin."""
        return (self.ties, self.cost) if self.loss == "squared" else ("exclude", "magnitude")

    # What trains.

    def _label_training(self, data: TrainingData, row_weight: Floats | None) -> Training:
        if self.loss == "squared":
            return SquaredTraining(data.graph(0, row_weight), float(self.tol), self.max_iter)
        return self._margin_training(label_margins(data, 0, row_weight))

    def _pair_training(self, graph: PreferenceGraph, chosen: npt.NDArray[np.bool_] | None = None) -> Training:
        if self.loss == "squared":
            if chosen is not None:
                weight = graph.pair_weight * chosen
                graph = PreferenceGraph(
                    graph.n_rows, graph.winner, graph.loser, weight, graph.difference, graph.n_threads
                )
            return SquaredTraining(graph, float(self.tol), self.max_iter)
        return self._margin_training(listed_margins(graph, self.loss, chosen))

    def _margin_training(self, pairs: Any) -> MarginTraining:
        solver = choose_margin_solver(self.loss, pairs, float(self.tol))
        second = "smoothing" if solver == "bundle" else None
        return MarginTraining(pairs, MarginFit(self.loss, solver, float(self.tol), self.max_iter, second))

    # What is held out.

    def _eval_split(
        self, data: TrainingData | PairData, training: Training, eval_set: object
    ) -> tuple[Split, str]:
        """Return a split that scores by other rows or pairs, and what those are, in words."""
        found = self._eval_set(data, eval_set, get_metric(self.scoring))
        return Split(training, found.scorers[0], X=found.rows.stored()), found.description

    def _held_rows(
        self, data: TrainingData, is_held: npt.NDArray[np.bool_], rows: Ints | None = None
    ) -> Split:
        """Return a split that scores by held-out rows, or by some of them."""
        rows = np.flatnonzero(is_held) if rows is None else rows
        weight = np.ones(data.queries.n_rows) if data.row_weight is None else data.row_weight
        scorer = row_scorer(
            get_metric(self.scoring), data.y[rows], data.queries.subset(rows), self.n_threads,
            "what was held out", weight[rows],
        )  # fmt: skip
        return Split(self._label_training(data, weight * ~is_held), scorer, rows, share=scorer.n_counted)

    def _pair_split(self, data: PairData, plan: PairPlan, fold: int) -> Split:
        """Return a split that scores by held-out pairs."""
        chosen = plan.left_out.trained(fold, len(data.preferences))
        scorer = scorer_of_pairs(data, plan.left_out.scoring(fold), get_metric(self.scoring))
        rows = np.arange(data.design.shape[0])
        return Split(self._pair_training(data.graph, chosen), scorer, rows)


def _dense_fits(X: MatrixLike) -> Any:
    """Return X as it was given; raise where it is sparse, and as an array larger than memory."""
    given: Any = unmasked("X", X)
    if scipy.sparse.issparse(given) and not fits(8 * given.shape[0] * given.shape[1]):
        raise InvalidInputError(
            f"X, a sparse matrix of {given.shape[0]} × {given.shape[1]}, does not fit into memory as an array.",
            "use RankSVM or RankRLS; curves are for columns that most rows have.",
        )
    if isinstance(given, scipy.sparse.linalg.LinearOperator):
        raise InvalidInputError(
            "Curves look at the values of X, and a LinearOperator shows none.",
            "pass an array or a data frame.",
        )
    return given


def _as_array(X: Any) -> Any:
    return X.toarray() if scipy.sparse.issparse(X) else X
