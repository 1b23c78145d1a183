"""Additive models of curves and surfaces, fitted with a pairwise loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from rankwise.additive.alphas import Ladder
from rankwise.additive.choosing import Search
from rankwise.additive.coordinates import Rounds
from rankwise.additive.fitting import AdditiveFit
from rankwise.additive.parameters import Interactions, check_interactions
from rankwise.additive.problem import AdditiveProblem
from rankwise.additive.settings import Knots, Split, Wanted
from rankwise.arrays import RandomSource
from rankwise.estimators.additive_model import AUTO_COUNTS, AdditiveModel
from rankwise.estimators.base import say
from rankwise.exceptions import NoPairsError, UndefinedMetricError
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan

__all__ = ["AdditiveRanker"]


class AdditiveRanker(AdditiveModel):
    """Rank by a sum of curves of single columns and surfaces of pairs of columns.

    Every column becomes a piecewise linear curve, and chosen pairs of columns a bilinear surface; a row's score is the
    sum of their values, so the whole model can be plotted (`curves_`, `surfaces_`,
    `rankwise.displays.CurvesDisplay`). Minimises the weighted mean over pairs ``(Σ ω loss) / (Σ ω) + alpha ‖u‖²``,
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
        How many pairs of columns get a surface, those that promise most given the curves; or which pairs. "auto" adds
        surfaces while they lower the error of held-out queries, and none where too little can be held out.
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
        small ones more: one or two rounds give few and sharp steps, which fine knots want.
    selective : int, default=0
        How many times, after those, to fit again with the penalty of each curve and surface adapted to how much it does
        in the last model: four to eight rounds leave few columns, where there are many and few queries.
    query_weight : {"size", "pairs", "equal"}, default="equal"
        Whether a query's total weight grows with its rows, its pairs, or not at all.
    ties, cost : str, default="include", "magnitude"
        As in `RankRLS`, for ``loss="squared"`` only.
    monotone : dict or array-like, default=None
        1 for columns whose curve must not fall, -1 where it must not rise, 0 otherwise: by column (number or name), or
        one per column. Such columns are in no surface, so that the score itself is monotone in them.
    categorical : list of int or str, default=None
        Columns that hold codes of categories: they get one value per level, and no order.
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
        Seeds that choice.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    curves_ : list of FittedCurve
        Knots, values and importance of each column that tells rows of a query apart; each curve is 0 on average over
        the training rows.
    surfaces_ : list of FittedSurface
        The same of pairs of columns, the most important first, without main effects of either column: along each line
        of its grid, a surface is 0 on average. `predict` is the sum of curves and surfaces.
    constant_columns_ : ndarray of int
        Columns that are the same in all rows of each query: they get no curve, and surfaces with other columns.
    interactions_ : ndarray of shape (surfaces, 2)
        The pairs of columns that have a surface.
    terms_ : Terms
        Curves and surfaces as arrays.
    values_, shares_ : ndarray of shape (values,)
        The values of all terms, and how the training rows are spread over them.
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

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        n_knots: int = 8,
        interactions: Interactions = "auto",
        surface_knots: int = 5,
        loss: str = "squared_hinge",
        penalty: str = "difference",
        adaptive: int = 0,
        selective: int = 0,
        query_weight: str = "equal",
        ties: str = "include",
        cost: str = "magnitude",
        monotone: Mapping[int | str, int] | Sequence[int] | None = None,
        categorical: Sequence[int | str] | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        scoring: str | Metric = "pairwise_error",
        validation_fraction: float = 0.2,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    # An `eval_set` is of use to ``interactions="auto"`` alone, and of no harm otherwise.
    _looks_at_eval_set = True

    def _learn(self, data: Problem, eval_set: Plan | None) -> None:
        """Choose how many surfaces help, where that is asked for, and fit all terms together."""
        knots = Knots(int(self.n_knots), int(self.surface_knots))
        problem, alpha = (
            self._problem(data, *knots, holds_out=isinstance(self.interactions, str)),
            float(self.alpha),
        )
        blueprints = problem.blueprints
        blueprint = blueprints.at(*knots)
        listed = self._listed_surfaces(blueprint)
        count = 0 if listed is not None or isinstance(self.interactions, str) else int(self.interactions)
        if isinstance(self.interactions, str):
            count = self._choose_count(problem, knots, eval_set)
        fit = AdditiveFit(blueprint, problem.training())
        sample = partial(replace(problem, data=data).sample, blueprint)
        del problem  # and the codes of its curves
        rounds = Rounds(int(self.adaptive), int(self.selective))
        found = (
            fit.solve_with_best(alpha, count, rounds=rounds, sample=sample)
            if listed is None
            else fit.solve_adapting(alpha, rounds, listed)
        )
        say(self._finish(*found, blueprints))

    def _choose_count(self, problem: AdditiveProblem, knots: Knots, eval_set: Plan | None) -> int:
        """Return how many surfaces lower the error of held-out rows."""
        splits = self._splits(problem, eval_set)
        if not splits or len(problem.blueprints.at(*knots).plan.sides) < 2:
            return 0
        wanted = Wanted(Ladder([float(self.alpha)]), knots[:1], knots[1:], AUTO_COUNTS)
        return Search(problem.blueprints, splits, wanted, problem.tol).run().n_pairs

    def _splits(self, problem: AdditiveProblem, eval_set: Plan | None) -> list[Split]:
        """Return the validation data that choose the number of surfaces; empty if too few rows can be held out."""
        data, metric = problem.data, self._metric
        if eval_set is not None:
            return problem.splits(eval_set, metric)
        units = data.pairs.units()
        if units is None or units.n_units < 2:
            return []
        try:
            return problem.splits(self._watched(data, None), metric)
        except (NoPairsError, UndefinedMetricError):
            return []

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_interactions(self.interactions)
