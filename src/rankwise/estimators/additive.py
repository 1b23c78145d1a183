"""Additive models of curves and surfaces, with given settings or with settings chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from rankwise.additive.choosing import DEFAULT_ALPHAS, Candidate, Knots, Ladder, Search, Wanted
from rankwise.additive.coordinates import PENALTIES, PLAIN, Rounds
from rankwise.additive.fitting import AdditiveFit, AdditiveProblem, Blueprints, Layout
from rankwise.additive.knots import MANY_LEVELS
from rankwise.additive.parameters import (
    Interactions,
    check_interactions,
    lists_pairs,
    read_columns,
    read_directions,
    read_surfaces,
)
from rankwise.additive.shapes import FittedCurve, FittedSurface, FittedTerms
from rankwise.additive.squared import SquaredSearch
from rankwise.additive.training import LOSSES
from rankwise.arrays import AnyArray, ArrayLike, Floats, MatrixLike
from rankwise.data.columns import is_table_like
from rankwise.data.columns import read_columns as read_table
from rankwise.data.containers import as_array
from rankwise.data.validation import check_alphas
from rankwise.design.terms import Curve, Terms, predict
from rankwise.estimators.base import Ranker, SelectionMixin, say
from rankwise.estimators.linear import RankRLS, RankRLSCV, RankSVM
from rankwise.estimators.parameters import BaseEstimator, estimator, one_of, parameter
from rankwise.exceptions import InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.fitting.notices import Notice
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES, Cost, QueryWeight, Ties
from rankwise.pairs.plan import Plan, oriented
from rankwise.preprocessing.column_steps import knots_as_written
from rankwise.preprocessing.table_encoder import TableEncoder
from rankwise.runtime.threads import default_threads
from rankwise.selection.exact import exact_for_columns
from rankwise.selection.plan import is_exact_name, scored_folds
from rankwise.solvers.solution import Solution, Status

MOST_COLUMNS = 5000  # of a model of curves; text has more, and pairs of columns grow with their square
# Numbers of surfaces that "auto" tries, while they help.
AUTO_COUNTS = (0, 5, 20, 80, 160)


@estimator()
class AdditiveMixin(BaseEstimator):
    """Adds curves and surfaces, missing values and categories."""

    _coefficients = "values_"
    _has_gap = True
    _takes_missing = True
    _takes_outputs = False
    loss: str = one_of(LOSSES, default="squared_hinge")
    penalty: str = one_of(PENALTIES, default="difference")
    query_weight: QueryWeight = one_of(QUERY_WEIGHTS, default="equal")
    ties: Ties = one_of(TIES, default="include")
    cost: Cost = one_of(COSTS, default="magnitude")
    monotone: Mapping[int | str, int] | Sequence[int] | None = None
    categorical: Sequence[int | str] | None = None
    tol: float = parameter("share", default=1e-3)
    max_iter: int | None = parameter("count", None, default=None)

    terms_: Terms = field(init=False)
    constant_columns_: npt.NDArray[np.int64] = field(init=False)
    interactions_: npt.NDArray[np.int64] = field(init=False)
    values_: Floats = field(init=False)
    shares_: Floats = field(init=False)
    importances_: Floats = field(init=False)
    encoder_: TableEncoder = field(init=False)

    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better, and only differences inside a query mean anything.

        Parameters
        ----------
        X : array-like or data frame of shape (rows, features)
            NaN is missing.

        Returns
        -------
        scores : ndarray of shape (rows,)
        """
        check_is_fitted(self)
        rows = np.asarray(self._check_rows(X, reset=False))
        n_threads = default_threads() if self.n_threads is None else int(self.n_threads)
        return predict(rows, self.terms_, self.values_, n_threads)

    @property
    def curves_(self) -> list[FittedCurve]:
        """The contribution of each column to the score, one curve per column that varies within queries."""
        return self._fitted_terms().curves(self._names(), self._labels)

    @property
    def surfaces_(self) -> list[FittedSurface]:
        """The contributions of pairs of columns beyond their curves, the most important first."""
        return self._fitted_terms().surfaces(self._names(), self._labels)

    @property
    def feature_importances_(self) -> Floats:
        """How far scores vary with each column: the sum of the importances of its curve and of its surfaces."""
        check_is_fitted(self)
        found = np.zeros(self.n_features_in_)
        for term, importance in zip(self.terms_.all_terms, self.importances_, strict=True):
            sides = (term,) if isinstance(term, Curve) else (term.first, term.second)
            found[[side.column for side in sides]] += importance
        return found

    def _labels(self, curve: Curve) -> list[str] | None:
        if self._encoder is None:
            return None
        return knots_as_written(self._encoder.columns_[curve.column], curve.knots)

    def _fitted_terms(self) -> FittedTerms:
        check_is_fitted(self)
        return FittedTerms(self.terms_, self.values_, self.shares_, self.importances_)

    def _names(self) -> list[str]:
        numbered = [f"x{column}" for column in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", numbered)]

    # --- data on their way in ---

    @property
    def _encoder(self) -> TableEncoder | None:
        return getattr(self, "encoder_", None)

    def _read_rows(self, X: MatrixLike, *, reset: bool) -> Floats | None:
        """Return a table with texts, booleans or dates as codes; None for other rows."""
        if reset:
            self._forget("encoder_")
            if is_table_like(X) and any(column.kind != "number" for column in read_table(X)):
                self.encoder_ = TableEncoder(max_levels=MANY_LEVELS - 1, codes=True).fit(X)
                self.n_features_in_ = self.encoder_.n_features_in_
                self.feature_names_in_ = self.encoder_.feature_names_in_
        if self._encoder is None:
            return None
        if is_table_like(X):
            return self._encoder.transform(X)
        codes = as_array("X", X)
        is_right = codes.shape[1:] == (self.n_features_in_,) and codes.dtype.kind in "biuf"
        if not is_right or np.isinf(codes).any():
            raise InvalidInputError(
                f"The model was fitted to a table of {self.n_features_in_} columns, and X is an array of type "
                f"{codes.dtype} and shape {codes.shape}, or infinite.",
                "pass a table with these columns, or the codes that encoder_ makes of one.",
            )
        return codes.astype(np.float64)

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        given: Any = self.interactions
        lists_counts = hasattr(self, "cv") and np.ndim(as_array("interactions", given)) == 1 and len(given)
        for one in given if lists_counts else [given]:
            check_interactions(one)
        if self.monotone is not None and self.penalty != "difference":
            raise InvalidInputError(
                f"monotone needs steps from knot to knot, which penalty={self.penalty!r} does not have.",
                "use penalty='difference'.",
            )
        if self.monotone is not None and self.loss == "hinge":
            raise InvalidInputError(
                "monotone needs a smooth loss, which loss='hinge' is not.",
                "use loss='squared_hinge' or 'squared'.",
            )

    def _which_pairs(self) -> tuple[Ties, Cost]:
        """With a margin, ties have no winner and a listed pair's magnitude is its margin."""
        return (self.ties, self.cost) if self.loss == "squared" else ("exclude", "magnitude")

    # --- models ---

    def _problem(
        self, data: Problem, n_knots: int, surface_knots: int, *, holds_out: bool = True
    ) -> tuple[AdditiveProblem, list[tuple[int, int]] | None]:
        """Resolve the parameters that describe columns, with the first knots, and the pairs of sides that are listed.

        The latter are None where a number of surfaces is to be chosen.
        """
        X: AnyArray = data.design.stored()
        n_columns, names = X.shape[1], getattr(self, "feature_names_in_", ())
        if n_columns > MOST_COLUMNS:
            raise InvalidInputError(
                f"X has {n_columns:,} columns, and curves are for tables of at most {MOST_COLUMNS:,}.",
                "use RankRLSCV, which takes sparse text with many columns, or select columns.",
            )
        given = () if self.categorical is None else self.categorical
        levels = read_columns("categorical", given, n_columns, names)
        if self._encoder is not None:
            levels += [at for at, step in enumerate(self._encoder.columns_) if step["kind"] == "category"]
        directions = read_directions(self.monotone, n_columns, names)
        if set(levels) & set(directions):
            raise InvalidInputError(
                "A column is both categorical and monotone; levels of a category have no order.",
                "take it out of one of the two.",
            )
        pairs, n_threads = data.pairs, data.design.n_threads
        blueprints = Blueprints(
            X, pairs.queries, pairs.row_weight, set(levels), self.penalty, directions, n_threads
        )
        blueprint = blueprints.at(n_knots, surface_knots)
        if not blueprint.plan.curves:
            raise InvalidInputError(
                "Every column of X is constant inside each query, so no ranking depends on X.",
                "check that qid groups the rows that compete, or add columns that differ between them.",
            )
        self.constant_columns_ = blueprint.plan.constant
        listed = None
        if lists_pairs(self.interactions):
            listed = read_surfaces(self.interactions, blueprint.plan, directions, n_columns, names)
        if holds_out:
            data = replace(data, design=blueprint.curves.design)
        return AdditiveProblem(data, blueprints, self.loss, float(self.tol), self.max_iter), listed

    def _finish(self, layout: Layout, solution: Solution, blueprints: Blueprints) -> list[Notice]:
        """Purify the model, set its fitted attributes and return the notices about it."""
        rows = (blueprints.X, blueprints.queries, blueprints.weight, blueprints.n_threads)
        found = FittedTerms.of_solution(layout, solution.coef, *rows)
        self.terms_, self.values_, self.shares_, self.importances_ = found
        sides = [(one.first.column, one.second.column) for one in found.terms.surfaces]
        self.interactions_ = np.array(sides, dtype=np.int64).reshape(-1, 2)
        self.loss_, self.n_iter_ = self.loss, max(1, solution.n_iter)
        self._forget("duality_gap_")
        if self.loss != "squared":
            self.__dict__["duality_gap_"] = float(solution.certificate)
        if solution.status.is_good:
            return []
        what = (
            f"The solver stopped after {solution.n_iter} iterations, a certificate of "
            f"{solution.certificate:.1e} away from the minimum (tol={self.tol}): {solution.status.value}"
        )
        return [Notice(what, "raise max_iter or tol, or use a larger alpha")]


@estimator(RankRLS, RankSVM)
class AdditiveRanker(AdditiveMixin, Ranker):
    """Rank by a sum of curves of single columns and surfaces of pairs of columns.

    Every column becomes a piecewise linear curve, and chosen pairs of columns a bilinear surface; a row's score is the
    sum of their values, so the whole model can be plotted (`curves_`, `surfaces_`,
    `rankwise.displays.CurvesDisplay`). A data frame may hold texts, booleans, dates and missing values: a text is a
    level of a category, levels of fewer than five rows and new ones are taken together, and missing values get a value
    of their own. Minimises the weighted mean over pairs ``(Σ ω loss) / (Σ ω) + alpha ‖u‖²``,
    where ``u`` are differences of neighbouring values in the units of `rankwise.additive.coordinates`;
    `rankwise.objectives` states the weights ``ω``. The divisor counts the pairs with different labels, also where
    ``loss="squared"`` with ``ties="include"`` adds pairs with tied labels to the sum.

    Parameters
    ----------
    alpha : float, default=1e-3
        The penalty, positive; larger is flatter.
    n_knots : int, default=8
        The most knots of a curve: the extremes of the column, its frequent values, and quantiles of the rest. One
        ranking over few columns may want 32.
    interactions : int, "auto" or list of pairs, default="auto"
        How many pairs of columns get a surface, those with the largest gain beyond the curves; or which pairs.
        "auto" adds surfaces while they lower the error of held-out queries, and none where too little can be held out.
    surface_knots : int, default=5
        The most knots of a surface along each of its columns; few columns that act together closely, such as latitude
        and longitude, may want 12.
    loss : {"squared_hinge", "squared", "hinge"}, default="squared_hinge"
        With ``t = 1 - (f_i - f_j)``: ``max(0, t)²``, or ``max(0, t)``; or the squared loss of `RankRLS`, as a mean.
    penalty : {"difference", "second_difference", "ridge"}, default="difference"
        Whether curves are drawn towards constants, towards straight lines, or each value to 0. Levels of categories and
        missing values always get a plain ridge.
    adaptive : int, default=0
        How many times to fit again with the penalty adapted to the last model, large steps being penalised less and
        small ones more: one or two rounds give few and sharp steps, which suits fine knots.
    selective : int, default=0
        How many times, after those, to fit again with the penalty of each curve and surface adapted to its size in the
        last model: four to eight rounds leave few columns, where there are many and few queries.
    query_weight : {"size", "pairs", "equal"}, default="equal"
        Whether a query's total weight grows with its rows, its pairs, or not at all.
    ties, cost
        As in `RankRLS`, for ``loss="squared"`` only.
    monotone : dict or array-like, default=None
        1 for columns whose curve must not fall, -1 where it must not rise, 0 otherwise: by column (number or name), or
        one per column. Such columns are in no surface, so that the score itself is monotone in them.
    categorical : list of int or str, default=None
        Columns of numbers that are categories: one value per level, without order. Texts of a data frame are
        categories anyway.
    tol : float, default=1e-3
        When to stop, as in `RankSVM`; for the squared loss the relative residual of an iterative solution.
    max_iter : int, default=None
        The most iterations of the solver; by default enough to converge.
    scoring : str or Metric, default="pairwise_error"
        The metric of ``interactions="auto"``: a name of `rankwise.metrics.METRICS`.
    validation_fraction : float, default=0.2
        The share of queries (of rows, where there is one ranking; of pairs, in `fit_pairs`) that it holds out if `fit`
        gets no `eval_set`.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the choice of held-out queries or rows.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    curves_ : list of FittedCurve
        Knots, values and importance of each column that varies inside queries; each curve is 0 on average over
        the training rows.
    surfaces_ : list of FittedSurface
        The same of pairs of columns, the most important first, without main effects of either column: along each line
        of its grid, a surface is 0 on average. `predict` is the sum of curves and surfaces.
    constant_columns_ : ndarray of int
        Columns that are the same in all rows of each query: they get no curve, and surfaces with other columns.
    feature_importances_ : ndarray of shape (columns,)
        The importances of the curve and of the surfaces of each column, added up.
    encoder_ : TableEncoder
        The codes of texts, booleans and dates, if X was a data frame with such columns.
    interactions_ : ndarray of shape (surfaces, 2)
        The pairs of columns that have a surface.
    terms_ : Terms
        Curves and surfaces as arrays.
    values_ : ndarray of shape (values,)
        The values of all terms.
    shares_ : ndarray of shape (values,)
        The share of the training rows at each value.
    importances_ : ndarray of shape (terms,)
        The standard deviation of each term's contribution inside queries, curves first.
    duality_gap_ : float
        As in `RankSVM`; not for the squared loss.
    n_iter_, loss_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AdditiveRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(400, 3))
    >>> y = X[:, 0] ** 2 + X[:, 1] * X[:, 2]
    >>> model = AdditiveRanker(interactions=1).fit(X, y, qid=np.arange(400) // 20)
    >>> model.surfaces_[0].columns
    (1, 2)
    >>> model.score(X, y, qid=np.arange(400) // 20) > 0.85
    True
    """

    alpha: float = parameter("positive", default=1e-3, kw_only=False)
    n_knots: int = parameter("count from 2", default=8)
    interactions: Interactions = "auto"
    surface_knots: int = parameter("count from 2", default=5)
    adaptive: int = parameter("count from 0", default=0)
    selective: int = parameter("count from 0", default=0)
    scoring: str | Metric = "pairwise_error"
    validation_fraction: float = parameter("positive share", default=0.2)

    # An `eval_set` is of use to ``interactions="auto"`` alone, and of no harm otherwise.
    _looks_at_eval_set = True

    def _learn(self, data: Problem, eval_set: Plan | None) -> None:
        """Choose how many surfaces help, where that is asked for, and fit all terms together."""
        knots, alpha = Knots(int(self.n_knots), int(self.surface_knots)), float(self.alpha)
        is_auto = isinstance(self.interactions, str)
        problem, listed = self._problem(data, *knots, holds_out=is_auto)
        blueprints = problem.blueprints
        blueprint = blueprints.at(*knots)
        count = self._choose_count(problem, knots, eval_set) if is_auto else 0
        if not is_auto and listed is None:
            count = int(self.interactions)  # type: ignore[arg-type]
        fit = AdditiveFit(blueprint, problem.training())
        problem = replace(problem, data=data)  # without the codes of its curves
        pairs, start = listed or [], None
        if count:
            pairs, start = (problem.sample(blueprint) or fit).best_pairs(alpha, count)
        rounds = Rounds(int(self.adaptive), int(self.selective))
        say(self._finish(*fit.solve_adapting(alpha, rounds, pairs, start), blueprints))

    def _choose_count(self, problem: AdditiveProblem, knots: Knots, eval_set: Plan | None) -> int:
        """Return how many surfaces lower the error of held-out rows; 0 where too few can be held out."""
        units = problem.data.pairs.units()
        cannot_hold_out = eval_set is None and (units is None or units.n_units < 2)
        if cannot_hold_out or len(problem.blueprints.at(*knots).plan.sides) < 2:
            return 0
        try:
            splits = problem.splits(self._watched(problem.data, eval_set), self._metric)
        except (NoPairsError, UndefinedMetricError):
            if eval_set is not None:
                raise
            return 0
        wanted = Wanted(Ladder([float(self.alpha)]), knots[:1], knots[1:], AUTO_COUNTS)
        return Search(problem.blueprints, splits, wanted).run().n_pairs


# "auto" tries the first of these, and the largest with this many rows per knot and, of surfaces, so many cells per row:
# more of them up to a number of cells that takes seconds. On 4,000 rows of PMLB's houses 17 x 17 knots had an error
# .0008 above that of 33 x 33, on 3,000 of wine_quality_white 9 x 9 one .006 above it; on all 12,000 rows of pol it was
# .0039 for .0038, in a fifth of the time.
_ROWS_OF_A_KNOT = 40
_CELLS_OF_A_ROW, _MOST_CELLS_OF_A_ROW, _CHEAP_CELLS = 4, 24, 70_000
_AUTO_KNOTS = {"n_knots": (8, 16, 32, 64), "surface_knots": (5, 9, 17, 33)}
# Above this many rows, curves of few columns were never ahead.
_SELECTIVE_ROWS = 800


@dataclass
class Watch:
    """Limits the time of a search, and keeps it."""

    deadline: float | None = None
    search: Search | None = None


@estimator(AdditiveRanker, RankRLSCV)
class AdditiveRankerCV(AdditiveMixin, SelectionMixin, Ranker):
    """`AdditiveRanker` with alpha, knots and the number of surfaces chosen on held-out rows or pairs.

    The search has five stages, and each starts from the best candidate so far: curves on coarse and fine knots with
    alphas a decade apart, surfaces in growing numbers, alphas half a decade apart with surfaces on the coarse and on a
    fine grid, adapted penalties, and (up to 800 rows) curves of few columns. Candidates are fitted loosely; the chosen
    one is fitted to `tol`. Every fold ranks the pairs of columns by its own training rows, so that held-out rows do not
    influence the pairs that they score.

    Parameters
    ----------
    alphas : array-like, default=1e-1, 3e-2, 1e-2, ..., 1e-5
        The grid; order and duplicates do not matter. The default grid is extended if the best value is at an end.
    n_knots : int, "auto" or list of int, default="auto"
        The most knots of a curve to try, in the order given until two in a row do not help: "auto" is 8 and the largest
        of 16, 32 and 64 with 40 rows per knot.
    interactions : int, "auto", list of int or list of pairs, default="auto"
        How many surfaces to try, in increasing order while they help: "auto" is 0, 5, 20, 80, 160. Or which pairs
        of columns have one.
    cv : "auto", "time", int, splitter, "leave-query-out" or "leave-pair-out", default="auto"
        Folds of whole queries, or of rows where there is one ranking, or of listed pairs; "auto" makes 5, and scores
        candidates on one of them from 10,000 rows on, on two from 3,000 and on three from 1,000 (on all where there
        are fewer than 100 queries). In one ranking it divides no equal rows, where more than half of the rows differ.
        "time" is that of `RankRLSCV`. With the squared loss and no surfaces, or listed ones, hold-out can be exact, as
        in `RankRLSCV`, and "auto" makes it so
        where that is cheap. Not used where `fit` gets an `eval_set`.
    scoring, random_state
        As in `RankRLSCV`.
    surface_knots : int, "auto" or list of int, default="auto"
        The most knots of a surface along each of its columns to try: "auto" is 5 and the largest of 9, 17 and 33 with
        40 rows per knot and at most four cells per row in all surfaces, or 24 up to 70,000 cells.
    adaptive : int, default=2
        The most rounds in which the penalty is adapted, as in `AdditiveRanker`, while that helps. There are none if
        finer knots did not help, nor where the squared loss has all alphas at once.
    selective : int, default=8
        Up to 800 rows, the rounds in which the best curves are fitted again with the penalty of each adapted to its
        size, as in `AdditiveRanker`; the best round is taken if it beats every other candidate.
    loss, penalty, query_weight, ties, cost, monotone, categorical, tol, max_iter, n_threads
        As in `AdditiveRanker`.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha; of equally good settings, the one with the fewest surfaces and the largest alpha.
    n_knots_, surface_knots_ : int
        The chosen numbers of knots.
    adaptive_ : int
        The chosen number of rounds in which the penalty was adapted.
    selective_ : int
        The chosen number of rounds in which it was adapted to whole curves.
    alphas_, cv_errors_ : ndarray of shape (alphas,)
        The alphas that were tried with the chosen knots and number of surfaces, and the held-out value of `scoring`.
    cv_results_ : dict of ndarrays
        All that was tried: "n_knots", "surface_knots", "interactions", "adaptive", "selective", "alpha" and "score",
        the value of `scoring`, in the order of trial.
    best_score_, cv_
        As in `RankRLSCV`.
    surface_ : ndarray of shape (alphas, iterations)
        With the squared loss and given surfaces, where hold-out is not exact: the held-out value of `scoring` after
        every iteration; `unpenalised_`, `best_iteration_`, `choices_` and `n_products_` as in `RankRLSCV`.
    encoder_, feature_importances_
        As in `AdditiveRanker`.
    curves_, surfaces_, constant_columns_, interactions_, terms_, values_, shares_, importances_, duality_gap_, n_iter_
        As in `AdditiveRanker`.
    loss_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `AdditiveRanker`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AdditiveRankerCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(400, 3))
    >>> y = X[:, 0] ** 2 + X[:, 1] * X[:, 2]
    >>> model = AdditiveRankerCV(cv=3, interactions=[0, 1]).fit(X, y, qid=np.arange(400) // 20)
    >>> model.interactions_.tolist()
    [[1, 2]]
    >>> model.cv_
    '3 folds of queries'
    """

    watch: Watch = field(init=False)  # set by AutoRanker

    alphas: ArrayLike = parameter(default=DEFAULT_ALPHAS, kw_only=False)
    n_knots: str | int | Sequence[int] = parameter("auto", "count from 2", "array-like", default="auto")
    interactions: Interactions | Sequence[int] = "auto"
    surface_knots: str | int | Sequence[int] = parameter("auto", "count from 2", "array-like", default="auto")
    adaptive: int = parameter("count from 0", default=2)
    selective: int = parameter("count from 0", default=8)

    n_knots_: int = field(init=False)
    surface_knots_: int = field(init=False)
    adaptive_: int = field(init=False)
    selective_: int = field(init=False)
    cv_results_: dict[str, AnyArray] = field(init=False)

    def _learn(self, data: Problem, eval_set: Plan | None) -> None:
        """Try the settings, and fit the best one on all rows."""
        data, n_columns = data.with_equal_rows_together(), data.design.shape[1]
        n_rows, counts = data.design.shape[0], self._counts()
        most = min([comb(n_columns, 2), *counts[-1:]])
        n_knots, surface_knots = self._knots("n_knots", n_rows), self._knots("surface_knots", n_rows, most)
        problem, listed = self._problem(data, n_knots[0], surface_knots[0])
        ladder = Ladder(sorted(check_alphas(self.alphas).tolist(), reverse=True))
        rounds = Rounds(int(self.adaptive), int(self.selective) if n_rows <= _SELECTIVE_ROWS else 0)
        wanted = Wanted(ladder, n_knots, surface_knots, counts, listed, rounds)
        if self.loss == "squared" and not problem.blueprints.directions and not any(wanted.counts):
            self._learn_squares(problem, wanted, eval_set)
            return
        if is_exact_name(self.cv) and eval_set is None:
            raise InvalidInputError(
                f"cv={self.cv!r} is exact for the squared loss of curves, and of surfaces that are listed.",
                "use loss='squared' with interactions=0 or a list of pairs and without monotone, or cv=5.",
            )
        held_out = self._plan(problem.data, eval_set, samples=False)
        n_scored, self.cv_ = scored_folds(self.cv, held_out, data.pairs)
        splits = problem.splits(held_out, self._metric)[: max(n_scored, 1)]
        watch = getattr(self, "watch", Watch())
        watch.search = search = Search(problem.blueprints, splits, wanted, watch.deadline)
        best = search.run()
        found = search.fit_best(AdditiveFit(problem.blueprints.at(*best.knots), problem.training()))
        notices = self._finish(*found, problem.blueprints)
        facts = self._facts(search.tried, best.knots, best.rounds)
        selection = search.selection(self.values_).with_facts(n_iter_=self.n_iter_, **facts)
        self._keep(replace(selection, notices=notices), data)

    def _learn_squares(self, problem: AdditiveProblem, wanted: Wanted, eval_set: Plan | None) -> None:
        """Choose among all alphas at once, which the squared loss of given terms allows."""
        exact = exact_for_columns(self.cv, "tikhonov", problem.data, len(wanted.ladder.alphas), "folds")
        held_out = self._plan(problem.data, eval_set, exact)
        search = SquaredSearch(problem, held_out, self._metric, wanted)
        search.run()
        n_iter = int(str(search.selection.facts["n_iter_"]))
        solution = Solution(search.selection.models[0], Status.EXACT, n_iter=n_iter)
        self._finish(search.layout, solution, problem.blueprints)  # what is to be said is in the selection
        selection = replace(search.selection, models=[self.values_])
        self._keep(selection.with_facts(**self._facts(search.tried, search.best)), problem.data)

    def _facts(self, tried: Sequence[Candidate], knots: Knots, rounds: Rounds = PLAIN) -> dict[str, object]:
        """Return the candidates and choices of the parameters other than alpha."""
        names = ("n_knots", "surface_knots", "interactions", "adaptive", "selective", "alpha", "score")
        rows = [(*one.knots, one.n_pairs, *one.rounds, one.alpha, one.error) for one in tried]
        columns = map(np.array, zip(*rows, strict=True))
        results = dict(zip(names, columns, strict=True))
        results["score"] = oriented(results["score"], greater_is_better=self._metric.greater_is_better)
        return {
            "cv_results_": results,
            "n_knots_": knots.curve,
            "surface_knots_": knots.surface,
            "adaptive_": rounds.steps,
            "selective_": rounds.terms,
        }

    def _counts(self) -> list[int]:
        given = self.interactions
        if isinstance(given, str):
            return list(AUTO_COUNTS)
        return sorted({int(count) for count in np.atleast_1d(given)}) if np.ndim(given) < 2 else []

    def _knots(self, name: str, n_rows: int, n_surfaces: int = 0) -> list[int]:
        """Return the numbers of knots to try."""
        given = getattr(self, name)
        if isinstance(given, str):
            return affordable_knots(name, n_rows, n_surfaces)
        numbers: list[int] = np.atleast_1d(as_array(name, given)).tolist()
        if not numbers or not all(isinstance(one, int) and one >= 2 for one in numbers):
            first, *_, last = _AUTO_KNOTS[name]
            raise InvalidInputError(
                f"{name}={given!r} does not list numbers of knots, at least 2.",
                f"use 'auto', or a list such as [{first}, {last}].",
            )
        return numbers


def affordable_knots(name: str, n_rows: int, n_surfaces: int = 0) -> list[int]:
    """Return the numbers of knots that "auto" tries: the least, and the largest that has enough rows."""
    first, *finer = _AUTO_KNOTS[name]
    most = max(_CELLS_OF_A_ROW * n_rows, min(_MOST_CELLS_OF_A_ROW * n_rows, _CHEAP_CELLS))
    fits = [n for n in finer if n * _ROWS_OF_A_KNOT <= n_rows and n_surfaces * (n - 1) ** 2 <= most]
    return [first, *fits[-1:]]
