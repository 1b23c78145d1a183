"""What the additive estimators share: columns with missing values and categories, the finished model, prediction."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from rankwise.additive.choosing import Split
from rankwise.additive.coordinates import PENALTIES
from rankwise.additive.fitting import Blueprint, Layout
from rankwise.additive.knots import plan_knots
from rankwise.additive.purification import purified, with_knots_of_surfaces
from rankwise.additive.shapes import FittedCurve, FittedSurface, spread_inside_queries, term_masses
from rankwise.additive.training import LOSSES, MarginTraining, SquaredTraining, Training
from rankwise.arrays import Floats, Ints
from rankwise.data.containers import check_total, unmasked
from rankwise.data.preferences import Preferences, check_pairs
from rankwise.data.queries import Queries
from rankwise.data.validation import (
    check_choice,
    check_count,
    check_importance,
    check_number,
    check_qid,
    check_seed,
    check_weights_of_queries,
)
from rankwise.design.additive import predict
from rankwise.estimators.pairwise import PreferenceRanker
from rankwise.estimators.refusals import in_our_words
from rankwise.exceptions import InvalidInputError, NoPairsError, caller_level
from rankwise.memory import fits
from rankwise.metrics import get_metric
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES
from rankwise.pairs.margins import PreferenceMargins
from rankwise.pairs.preferences import PreferenceGraph, preference_graph
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.margin_fit import MarginFit, label_margins
from rankwise.selection.pair_systems import LeftOutPairs
from rankwise.selection.reading import (
    difference_scorer,
    preference_scorer,
    read_eval_set,
    read_pair_eval_set,
    row_scorer,
)
from rankwise.selection.scorers import PreferenceScorer
from rankwise.solvers.choose import choose_margin_solver
from rankwise.solvers.solution import Solution
from rankwise.terms import Terms
from rankwise.threads import default_threads

__all__ = ["AdditiveModel"]

SIDE_KNOTS = 5  # of a surface, along each column
_LOOKED_AT = 20_000  # rows whose spread inside queries tells how much a term matters


class AdditiveModel(PreferenceRanker):
    """The part of `AdditiveRanker` and `AdditiveRankerCV` that does not depend on how the settings are found."""

    terms_: Terms
    values_: Floats
    shares_: Floats
    importances_: Floats

    def predict(self, X: Any) -> Floats:
        """Return a score for each row of X: higher is better.

        The score is the sum of what `curves_` and `surfaces_` say about the row. Only differences between rows of one
        query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
            NaN counts as missing.

        Returns
        -------
        scores : ndarray of shape (rows,)
        """
        check_is_fitted(self)
        X = self._check_matrix(X, reset=False)
        return predict(X, self.terms_, self.values_, self._threads())

    @property
    def curves_(self) -> list[FittedCurve]:
        """What each column adds to the score, one curve per column that tells rows of a query apart."""
        check_is_fitted(self)
        names = self._names()
        out = []
        for number, curve in enumerate(self.terms_.curves):
            values = self.values_[self.terms_.values_of(number)]
            shares = self.shares_[self.terms_.values_of(number)]
            n_knots = curve.knots.size
            out.append(
                FittedCurve(
                    curve.column,
                    names[curve.column],
                    curve.knots,
                    values[:n_knots],
                    float(values[n_knots]) if curve.has_missing else 0.0,
                    curve.is_levels,
                    shares[:n_knots],
                    float(self.importances_[number]),
                )
            )
        return out

    @property
    def surfaces_(self) -> list[FittedSurface]:
        """What pairs of columns add to the score beyond their curves, the strongest first."""
        check_is_fitted(self)
        names, out = self._names(), []
        for number, surface in enumerate(self.terms_.surfaces, start=len(self.terms_.curves)):
            first, second = surface.first, surface.second
            grid = self.values_[self.terms_.values_of(number)].reshape(first.n_values, second.n_values)
            out.append(
                FittedSurface(
                    (first.column, second.column),
                    (names[first.column], names[second.column]),
                    (first.knots, second.knots),
                    grid,
                    (first.has_missing, second.has_missing),
                    (first.is_levels, second.is_levels),
                    float(self.importances_[number]),
                )
            )
        return sorted(out, key=lambda surface: -surface.importance)

    def _names(self) -> list[str]:
        given = getattr(self, "feature_names_in_", None)
        return [f"x{column}" for column in range(self.n_features_in_)] if given is None else [str(n) for n in given]

    def _threads(self) -> int:
        return default_threads() if self.n_threads is None else int(self.n_threads)

    # What comes in.

    def _check_model_parameters(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_choice("penalty", self.penalty, PENALTIES)
        check_choice("query_weight", self.query_weight, QUERY_WEIGHTS)
        check_choice("ties", self.ties, TIES)
        check_choice("cost", self.cost, COSTS)
        if self.loss == "squared" and self.cost == "relative" and self.ties == "include":
            raise InvalidInputError(
                "cost='relative' divides by the difference of the labels, which is 0 for tied rows.",
                "set ties='exclude'.",
            )
        check_number("tol", self.tol, minimum=0, remedy="use a small positive number such as 1e-3")
        if float(self.tol) >= 1:
            raise InvalidInputError(
                f"tol={self.tol!r} is not below 1: it is a share of what can be gained over no model.", "use 1e-3."
            )
        check_count("max_iter", self.max_iter)
        check_count("n_threads", self.n_threads)
        check_seed(self.random_state)
        if self.monotone is not None and (self.penalty != "difference" or self.loss == "hinge"):
            raise InvalidInputError(
                f"monotone needs steps from knot to knot and a smooth loss, not penalty={self.penalty!r} with "
                f"loss={self.loss!r}.",
                "use penalty='difference' with loss='squared_hinge' or 'squared'.",
            )

    def _check_matrix(
        self, X: Any, y: Any = None, *, reset: bool, min_rows: int = 2, look_at_values: bool = True
    ) -> Any:
        X, y = unmasked("X", X), unmasked("y", y)
        if sp.issparse(X) and not fits(8 * X.shape[0] * X.shape[1]):
            raise InvalidInputError(
                f"X is a sparse matrix of {X.shape[0]} × {X.shape[1]}, and as an array it does not fit into memory.",
                "curves are for columns that most rows have; use RankSVM or RankRLS on text.",
            )
        options: dict[str, Any] = {
            "accept_sparse": "csr",
            "dtype": (np.float64, np.float32),
            "ensure_all_finite": "allow-nan",
            "reset": reset,
        }
        if y is not None:
            options.update(multi_output=True, y_numeric=True, ensure_min_samples=min_rows)
        try:
            checked = validate_data(self, X, **({} if y is None else {"y": y}), **options)
        except ValueError as error:
            fitted = () if reset else getattr(self, "feature_names_in_", ())
            raise in_our_words(error, X, fitted) from error
        X = checked if y is None else checked[0]
        X = X.toarray() if sp.issparse(X) else X
        if y is None:
            return X
        if np.ndim(checked[1]) == 2 and np.shape(checked[1])[1] > 1:
            raise InvalidInputError(
                f"y has {np.shape(checked[1])[1]} columns, and a curve has one value per knot.",
                "fit one model per output.",
            )
        labels = column_or_1d(checked[1], dtype=np.float64, warn=True)
        check_total("y", float(np.abs(labels).max(initial=0.0)), "divide y by a constant.")
        return X, labels

    def _columns(self, name: str, given: Any) -> list[int]:
        """Return the columns that a parameter names, by number or by name."""
        names = list(getattr(self, "feature_names_in_", ()))
        numbers = []
        for column in given:
            if isinstance(column, str) and column in names:
                numbers.append(names.index(column))
            elif not isinstance(column, (str, bool)) and np.issubdtype(type(column), np.integer):
                numbers.append(int(column) + (self.n_features_in_ if column < 0 else 0))
            else:
                raise InvalidInputError(
                    f"{name} names a column {column!r} that X does not have.",
                    "use column numbers, or the names of a data frame's columns.",
                )
            if not 0 <= numbers[-1] < self.n_features_in_:
                raise InvalidInputError(
                    f"{name} names column {column}, and X has {self.n_features_in_}.", "columns count from 0."
                )
        return numbers

    def _directions(self) -> dict[int, int]:
        """Return the columns whose curves must be monotone, and which way."""
        given = self.monotone
        if given is None:
            return {}
        if isinstance(given, Mapping):
            columns, signs = self._columns("monotone", given), list(given.values())
        else:
            signs = list(given)
            columns = list(range(len(signs)))
            if len(signs) != self.n_features_in_:
                raise InvalidInputError(
                    f"monotone has {len(signs)} entries, and X has {self.n_features_in_} columns.",
                    "pass one of -1, 0, 1 per column, or a dict such as {'price': -1}.",
                )
        for sign in signs:
            if sign not in (-1, 0, 1):
                raise InvalidInputError(
                    f"monotone has {sign!r}.", "use 1 (never falls), -1 (never rises) or 0 (free)."
                )
        return {column: int(sign) for column, sign in zip(columns, signs, strict=True) if sign}

    def _blueprint(self, X: Any, queries: Queries, weight: Floats | None, n_knots: int) -> Blueprint:
        """Choose the knots, and set what is said about the columns."""
        check_count("n_knots", n_knots, optional=False)
        if n_knots < 2:
            raise InvalidInputError("n_knots=1 makes every curve a constant.", "use at least 2; 8 is a good start.")
        levels = () if self.categorical is None else self._columns("categorical", self.categorical)
        directions = self._directions()
        if set(levels) & set(directions):
            raise InvalidInputError(
                "A column is both categorical and monotone; levels of a category have no order.",
                "take it out of one of the two.",
            )
        plan = plan_knots(X, queries, n_knots, min(SIDE_KNOTS, n_knots), levels=levels, weight=weight)
        if not plan.curves:
            raise InvalidInputError(
                "Every column of X is constant inside each query, so no ranking depends on X.",
                "check that qid groups the rows that compete, or add columns that differ between them.",
            )
        self.constant_columns_ = plan.constant
        return Blueprint(X, plan, self.penalty, directions, self._threads())

    def _listed_surfaces(self, blueprint: Blueprint) -> list[tuple[int, int]] | None:
        """Return the pairs of curves that the caller listed; None where a number of them is to be chosen."""
        given = self.interactions
        if not _is_list_of_pairs(given):
            return None
        number = {curve.column: place for place, curve in enumerate(blueprint.plan.curves)}
        pairs = []
        for pair in given:
            columns = self._columns("interactions", pair)
            if len(columns) != 2 or columns[0] == columns[1]:
                raise InvalidInputError(
                    f"interactions has {pair!r}, which is no pair of columns.", "list pairs such as [(0, 3)]."
                )
            for column in columns:
                if column not in number:
                    raise InvalidInputError(
                        f"interactions has {pair!r}, but column {column} is constant inside every query.",
                        "leave that pair out.",
                    )
                if column in blueprint.directions:
                    raise InvalidInputError(
                        f"interactions has {pair!r}, but column {column} must be monotone, which a surface would undo.",
                        "leave that pair out, or the column out of monotone.",
                    )
            first, second = sorted(number[column] for column in columns)
            pairs.append((first, second))
        return list(dict.fromkeys(pairs))

    def _check_interactions(self, given: Any) -> None:
        if isinstance(given, str):
            check_choice("interactions", given, ("auto",))
        elif not _is_list_of_pairs(given) and (
            not isinstance(given, Integral) or isinstance(given, bool) or given < 0
        ):
            raise InvalidInputError(
                f"interactions={given!r} is neither a number of pairs nor a list of pairs.",
                "use 'auto', a number such as 20, or a list such as [(0, 3), (1, 2)].",
            )

    def _labelled(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any, n_knots: int
    ) -> tuple[Blueprint, TrainingData]:
        """Pass labelled rows through validation, and set the attributes that describe them."""
        X, y, queries, row_weight = self._check_fit_input(X, y, qid, sample_weight)
        if self.query_weight == "equal":
            check_weights_of_queries(row_weight, queries)
        importance = check_importance(query_importance, queries)
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
        X = self._check_matrix(X, reset=True)
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
        margins = PreferenceMargins.of_graph(graph, chosen)
        if margins.winner.size == 0:
            raise NoPairsError(
                "Without the pairs that are held out, none is left to train on.", "use more folds, or hold less out."
            )
        return self._margin_training(margins)

    def _margin_training(self, pairs: Any) -> MarginTraining:
        solver = choose_margin_solver(self.loss, pairs, float(self.tol))
        second = "smoothing" if solver == "bundle" else None
        return MarginTraining(pairs, MarginFit(self.loss, solver, float(self.tol), self.max_iter, second))

    # What is held out.

    def _eval_split(self, training: Training, eval_set: Any) -> Split:
        X, y, queries = read_eval_set(
            eval_set,
            lambda X, y: self._check_matrix(X, y, reset=False),
            with_qid=self.fitted_with_qid_,
            n_outputs=1,
        )
        scorer = row_scorer(get_metric(self.scoring), y, queries, self.n_threads, "eval_set")
        return Split(training, scorer, X=X)

    def _held_rows(self, data: TrainingData, is_held: npt.NDArray[np.bool_], rows: Ints | None = None) -> Split:
        """Return a split that scores by held-out rows, or by some of them."""
        rows = np.flatnonzero(is_held) if rows is None else rows
        weight = np.ones(data.queries.n_rows) if data.row_weight is None else data.row_weight
        scorer = row_scorer(
            get_metric(self.scoring), data.y[rows], data.queries.subset(rows), self.n_threads,
            "what was held out", weight[rows],
        )  # fmt: skip
        return Split(self._label_training(data, weight * ~is_held), scorer, rows, share=scorer.n_counted)

    def _pair_eval_split(self, training: Training, eval_set: Any) -> Split:
        X, pairs = read_pair_eval_set(eval_set, lambda X: self._check_matrix(X, reset=False))
        return Split(training, preference_scorer(get_metric(self.scoring), pairs, "eval_set"), X=X)

    def _pair_split(self, data: PairData, left_out: LeftOutPairs, fold: int) -> Split:
        is_own = left_out.fold == fold
        chosen = np.ones(len(data.preferences), dtype=np.bool_)
        chosen[left_out.pair[is_own]] = False
        scoring = left_out.pair[is_own & left_out.is_scored]
        metric = get_metric(self.scoring)
        scorer = difference_scorer(metric, data.scoring_weight[scoring], "what was held out")
        winner, loser = data.preferences.winner[scoring], data.preferences.loser[scoring]
        rows = np.arange(data.design.shape[0])
        return Split(self._pair_training(data.graph, chosen), PreferenceScorer(winner, loser, scorer), rows)

    # What comes out.

    def _finish(
        self, layout: Layout, solution: Solution, X: Any, queries: Queries, row_weight: Floats | None
    ) -> None:
        """Purify the model, and set the attributes that describe it."""
        values = layout.coordinates.exact_values(solution.coef)
        terms, values = with_knots_of_surfaces(layout.terms, values)
        shares = term_masses(X, terms, row_weight, self._threads())
        masses = [shares[terms.values_of(number)] for number in range(len(terms.all_terms))]
        self.terms_, self.shares_ = terms, shares
        self.values_, _ = purified(terms, values, masses)
        rows = _whole_queries(queries, _LOOKED_AT)
        weight = None if row_weight is None else row_weight[rows]
        self.importances_ = spread_inside_queries(
            X[rows], terms, self.values_, queries.subset(rows), weight, self._threads()
        )
        self.interactions_ = np.array(
            [(s.first.column, s.second.column) for s in terms.surfaces], dtype=np.int64
        ).reshape(-1, 2)
        self.loss_, self.n_iter_ = self.loss, max(1, solution.n_iter)
        self._forget("duality_gap_")
        if self.loss != "squared":
            self.duality_gap_ = float(solution.certificate)
        if not solution.status.is_good:
            warnings.warn(
                f"The solver stopped after {solution.n_iter} iterations, a certificate of "
                f"{solution.certificate:.1e} away from the minimum (tol={self.tol}): {solution.status.value}. "
                "Hint: raise max_iter or tol, or use a larger alpha.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.input_tags.allow_nan = True
        return tags


def _is_list_of_pairs(given: Any) -> bool:
    """Tell whether something lists pairs of columns: none, or some that are no numbers."""
    return not isinstance(given, str) and isinstance(given, (Sequence, np.ndarray)) and all(
        np.ndim(pair) == 1 for pair in given
    )


def _whole_queries(queries: Queries, at_most: int) -> Ints:
    """Return the rows of as many whole queries as make about so many rows, evenly chosen; of one, an even share."""
    if queries.n_rows <= at_most:
        return np.arange(queries.n_rows)
    if len(queries) == 1:
        return np.linspace(0, queries.n_rows - 1, at_most).astype(np.int64)
    every = -(-queries.n_rows // at_most)
    return np.flatnonzero(queries.codes % every == 0)
