"""Additive models with their settings chosen on held-out rows or pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwise.additive.alphas import DEFAULT_ALPHAS, Ladder
from rankwise.additive.choosing import Search
from rankwise.additive.coordinates import PLAIN, Rounds
from rankwise.additive.fitting import AdditiveFit
from rankwise.additive.parameters import Interactions, check_interactions
from rankwise.additive.problem import AdditiveProblem
from rankwise.additive.settings import Candidate, Knots, Wanted
from rankwise.additive.squared import SquaredSearch
from rankwise.arrays import AnyArray, ArrayLike, RandomSource
from rankwise.data.containers import as_array
from rankwise.data.validation import check_alphas, check_choice
from rankwise.estimators.additive_model import AUTO_COUNTS, AdditiveModel
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.selection.exact import exact_for_columns
from rankwise.selection.plan import is_exact_name
from rankwise.selection.result import oriented
from rankwise.solvers.solution import Solution, Status

__all__ = ["AdditiveRankerCV", "Watch", "affordable_knots", "n_scored_folds"]

# "auto" tries the first of these, and the largest with this many rows per knot and, of surfaces, at most this many
# cells per row. On 4,000 rows of PMLB's houses 17 x 17 knots had an error .0008 above that of 33 x 33, in half of the
# time; on all 12,000 rows of pol .0039 for .0038, in a fifth of it.
_ROWS_OF_A_KNOT = 40
_CELLS_OF_A_ROW = 4
_AUTO_KNOTS = {"n_knots": (8, 16, 32, 64), "surface_knots": (5, 9, 17, 33)}
# Folds that score candidates, of the five that "auto" makes, by the number of rows; with fewer queries than this, all.
_SCORED_FOLDS = ((10_000, 1), (3_000, 2), (1_000, 3))
_FEW_QUERIES = 100
# Above this many rows, curves of few columns were never ahead.
_SELECTIVE_ROWS = 800


@dataclass
class Watch:
    """Limits the time of a search, and keeps it."""

    deadline: float | None = None
    search: Search | None = None


class AdditiveRankerCV(AdditiveModel):
    """`AdditiveRanker` with alpha, knots and the number of surfaces chosen on held-out rows or pairs.

    The search has five stages, and each starts from the best candidate so far: curves on coarse and fine knots with
    alphas a decade apart, surfaces in growing numbers, surfaces on a fine grid with alphas half a decade apart,
    adapted penalties, and (up to 800 rows) curves of few columns. Candidates are fitted loosely; the chosen one is
    fitted to `tol`. Every fold ranks the pairs of columns by its own training rows, so that no held-out row has a say
    in the pairs that it scores.

    Parameters
    ----------
    alphas : array-like, default=1e-1, 3e-2, 1e-2, ..., 1e-5
        The grid; order and duplicates do not matter. The default one goes on beyond an end at which the best lies.
    n_knots : int, "auto" or list of int, default="auto"
        The most knots of a curve to try, in the order given until two in a row do not help: "auto" is 8 and the largest
        of 16, 32 and 64 with 40 rows per knot.
    interactions : int, "auto", list of int or list of pairs, default="auto"
        How many surfaces to try, in increasing order while they help: "auto" is 0, 5, 20, 80, 160. Or which pairs
        of columns have one.
    cv : "auto", "time", int, splitter, "leave-query-out" or "leave-pair-out", default="auto"
        Folds of whole queries, or of rows where there is one ranking, or of listed pairs; "auto" makes 5, and scores
        candidates on one of them from 10,000 rows on, on two from 3,000 and on three from 1,000 (on all where there
        are fewer than 100 queries). "time" is that of `RankRLSCV`. With the squared loss
        and no surfaces, or listed ones, hold-out can be exact, as in `RankRLSCV`, and "auto" makes it so
        where that is cheap. Not used where `fit` gets an `eval_set`.
    scoring, random_state : default="pairwise_error", 0
        As in `RankSVMCV`.
    surface_knots : int, "auto" or list of int, default="auto"
        The most knots of a surface along each of its columns to try: "auto" is 5 and the largest of 9, 17 and 33 with
        40 rows per knot and at most four cells per row in all surfaces.
    adaptive : int, default=2
        The most rounds in which the penalty is adapted, as in `AdditiveRanker`, while that helps. There are none where
        finer knots were tried and did not help, and where the squared loss knows all alphas at once.
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
        As in `RankRLSCV`: the optimistic value of the chosen setting, and a description of the validation.
    surface_ : ndarray of shape (alphas, iterations)
        With the squared loss and given surfaces, where hold-out is not exact: the held-out value of `scoring` after
        every iteration; `unpenalised_`, `best_iteration_`, `choices_` and `n_products_` as in `RankRLSCV`.
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

    alpha_: float
    best_score_: float
    n_knots_: int
    surface_knots_: int
    adaptive_: int
    selective_: int
    cv_results_: dict[str, AnyArray]

    _grid = DEFAULT_ALPHAS
    watch: Watch | None = None  # set by AutoRanker, which reads the held-out scores of the search

    def __init__(
        self,
        alphas: ArrayLike = DEFAULT_ALPHAS,
        *,
        n_knots: str | int | Sequence[int] = "auto",
        interactions: Interactions | Sequence[int] = "auto",
        cv: object = "auto",
        scoring: str | Metric = "pairwise_error",
        surface_knots: str | int | Sequence[int] = "auto",
        loss: str = "squared_hinge",
        penalty: str = "difference",
        adaptive: int = 2,
        selective: int = 8,
        query_weight: str = "equal",
        ties: str = "include",
        cost: str = "magnitude",
        monotone: Mapping[int | str, int] | Sequence[int] | None = None,
        categorical: Sequence[int | str] | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, data: Problem, eval_set: Plan | None) -> None:
        """Try the settings, and fit the best one on all rows."""
        n_rows = data.design.shape[0]
        n_knots = self._affordable("n_knots", n_rows)
        surface_knots = self._affordable("surface_knots", n_rows, self._most_surfaces(data.design.shape[1]))
        problem = self._problem(data, n_knots[0], surface_knots[0])
        listed = self._listed_surfaces(problem.blueprints.at(n_knots[0], surface_knots[0]))
        ladder = Ladder.of_grid(check_alphas(self.alphas).tolist())
        rounds = Rounds(int(self.adaptive), int(self.selective) if n_rows <= _SELECTIVE_ROWS else 0)
        wanted = Wanted(ladder, n_knots, surface_knots, self._counts(), listed, rounds)
        if self.loss == "squared" and not problem.blueprints.directions and not any(wanted.counts):
            self._learn_squares(problem, wanted, eval_set)
            return
        if is_exact_name(self.cv) and eval_set is None:
            raise InvalidInputError(
                f"cv={self.cv!r} is exact for the squared loss of curves, and of surfaces that are listed.",
                "use loss='squared' with interactions=0 or a list of pairs and without monotone, or cv=5.",
            )
        held_out = self._held_out(problem.data, eval_set)
        splits, self.cv_ = problem.splits(held_out, self._metric), held_out.description
        n_scored = len(splits)
        if eval_set is None and isinstance(self.cv, str) and self.cv == "auto":
            n_scored = n_scored_folds(n_rows, len(problem.blueprints.queries), n_scored)
        if n_scored < len(splits):
            splits, self.cv_ = splits[:n_scored], f"{n_scored} of {self.cv_}"
        watch = self.watch or Watch()
        watch.search = search = Search(problem.blueprints, splits, wanted, problem.tol, watch.deadline)
        best = search.run()
        found = search.fit_best(AdditiveFit(search.blueprint, problem.training()))
        notices = self._finish(*found, problem.blueprints)
        facts = self._facts(search.tried, best.knots, best.rounds)
        selection = search.selection(self.values_).with_facts(n_iter_=self.n_iter_, **facts)
        self._keep(replace(selection, notices=notices), data)

    def _learn_squares(self, problem: AdditiveProblem, wanted: Wanted, eval_set: Plan | None) -> None:
        """Choose among all alphas at once, which the squared loss of given terms allows."""
        exact = exact_for_columns(self.cv, "tikhonov", problem.data, len(wanted.ladder.alphas), "folds")
        held_out = self._held_out(problem.data, eval_set, exact)
        self.cv_ = held_out.description
        search = SquaredSearch(problem, held_out, self._metric, wanted)
        search.run()
        n_iter = int(str(search.selection.facts["n_iter_"]))
        solution = Solution(search.selection.models[0], Status.EXACT, n_iter=n_iter)
        self._finish(search.layout, solution, problem.blueprints)  # what is to be said is in the selection
        selection = replace(search.selection, models=[self.values_])
        self._keep(selection.with_facts(**self._facts(search.tried, search.best)), problem.data)

    def _facts(self, tried: Sequence[Candidate], knots: Knots, rounds: Rounds = PLAIN) -> dict[str, object]:
        """Return the candidates and choices of the parameters other than alpha."""
        errors = np.array([one.error for one in tried])
        results = {
            "n_knots": np.array([one.knots.curve for one in tried]),
            "surface_knots": np.array([one.knots.surface for one in tried]),
            "interactions": np.array([one.n_pairs for one in tried]),
            "adaptive": np.array([one.rounds.steps for one in tried]),
            "selective": np.array([one.rounds.terms for one in tried]),
            "alpha": np.array([one.alpha for one in tried]),
            "score": oriented(errors, greater_is_better=self._metric.greater_is_better),
        }
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

    def _tried(self, name: str) -> list[int]:
        given = getattr(self, name)
        if isinstance(given, str):
            check_choice(name, given, ("auto",))
            return list(_AUTO_KNOTS[name])
        numbers: list[int] = np.atleast_1d(as_array(name, given)).tolist()
        if not numbers:
            first, *_, last = _AUTO_KNOTS[name]
            raise InvalidInputError(f"{name} is empty.", f"use 'auto', or a list such as [{first}, {last}].")
        return numbers

    def _affordable(self, name: str, n_rows: int, n_surfaces: int = 0) -> list[int]:
        """Return the numbers of knots to try."""
        is_auto = isinstance(getattr(self, name), str)
        return affordable_knots(name, n_rows, n_surfaces) if is_auto else self._tried(name)

    def _most_surfaces(self, n_columns: int) -> int:
        """Return how many surfaces a model may have."""
        most = n_columns * (n_columns - 1) // 2
        return min(max(self._counts(), default=most), most)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for given in self.interactions if self._is_list_of_counts() else [self.interactions]:
            check_interactions(given)

    def _is_list_of_counts(self) -> bool:
        given = self.interactions
        return not isinstance(given, str) and as_array("interactions", given).ndim == 1 and len(given) > 0


def n_scored_folds(n_rows: int, n_queries: int, n_folds: int) -> int:
    """Return how many folds score candidates: large folds tell settings apart, and one of them is enough."""
    if 1 < n_queries < _FEW_QUERIES:
        return n_folds
    return next((min(n, n_folds) for least, n in _SCORED_FOLDS if n_rows >= least), n_folds)


def affordable_knots(name: str, n_rows: int, n_surfaces: int = 0) -> list[int]:
    """Return the numbers of knots that "auto" tries: the least, and the largest that has enough rows."""
    first, *finer = _AUTO_KNOTS[name]
    fits = [
        n
        for n in finer
        if n * _ROWS_OF_A_KNOT <= n_rows and n_surfaces * (n - 1) ** 2 <= _CELLS_OF_A_ROW * n_rows
    ]
    return [first, *fits[-1:]]
