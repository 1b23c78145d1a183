"""Additive models with their settings chosen on held-out rows or pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwise.additive.choosing import Candidate, Search
from rankwise.additive.fitting import AdditiveFit, Blueprint
from rankwise.additive.parameters import Interactions, check_interactions
from rankwise.arrays import AnyArray, ArrayLike
from rankwise.data.validation import check_count
from rankwise.estimators.additive_model import AUTO_COUNTS, AdditiveModel
from rankwise.estimators.choosing import ChoosingRanker
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric
from rankwise.problems.training import TrainingProblem
from rankwise.selection.grids import check_alphas, check_positive
from rankwise.selection.scorers import oriented
from rankwise.selection.splits import check_cv

__all__ = ["AdditiveRankerCV"]

_GRID = tuple(float(f"{10.0 ** (-power / 2):.1g}") for power in range(2, 11))


class AdditiveRankerCV(ChoosingRanker, AdditiveModel):
    """`AdditiveRanker` with alpha, the number of surfaces and the number of knots chosen on held-out rows or pairs.

    Curves alone walk the grid of alphas from the largest down, as long as that helps; then surfaces are added in
    growing numbers, with the alphas next to the best one. Every fold ranks the pairs of columns by its own training
    rows, so that nothing held out has a say in which pairs it is scored with.

    Parameters
    ----------
    alphas : array-like, default=1e-1, 3e-2, 1e-2, ..., 1e-5
        The grid; order and duplicates do not matter.
    n_knots : int or list of int, default=8
        What to try.
    interactions : int, "auto", list of int or list of pairs, default="auto"
        How many surfaces to try, in increasing order while they help: "auto" is 0, 5, 10, 20, 40, 80. Or which pairs of
        columns have one.
    cv : "auto", int or splitter, default="auto"
        Folds of whole queries, or of rows where there is one ranking, or of listed pairs; "auto" makes 5. Not used
        where `fit` gets an `eval_set`.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    judge_rows : int, default=None
        With folds, let at most about so many held-out rows (whole queries) or pairs score, as in `RankSVMCV`.
    surface_knots, loss, penalty, query_weight, ties, cost, monotone, categorical, tol, max_iter, n_threads
        As in `AdditiveRanker`.
    random_state : int, default=0
        Seeds the folds.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha; of equally good settings, the one with the fewest surfaces and the largest alpha.
    n_knots_ : int
        The chosen number of knots.
    cv_results_ : dict of ndarrays
        What was tried: "n_knots", "interactions", "alpha" and "score", the value of `scoring`, in the order of trial.
    best_score_ : float
        Its value for the chosen setting. It is optimistic: the choice was made on the same rows.
    cv_ : str
        What scored the models, in words.
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
    n_knots_: int
    cv_results_: dict[str, AnyArray]
    best_score_: float

    def __init__(
        self,
        alphas: ArrayLike = _GRID,
        *,
        n_knots: int | Sequence[int] = 8,
        interactions: Interactions | Sequence[int] = "auto",
        cv: object = "auto",
        scoring: str | Metric = "pairwise_error",
        judge_rows: int | None = None,
        surface_knots: int = 5,
        loss: str = "squared_hinge",
        penalty: str = "difference",
        query_weight: str = "equal",
        ties: str = "include",
        cost: str = "magnitude",
        monotone: Mapping[int | str, int] | Sequence[int] | None = None,
        categorical: Sequence[int | str] | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _choose(self, data: TrainingProblem, eval_set: object, groups: ArrayLike | None) -> None:
        """Try the settings, and fit the best one on all rows."""
        grid, knots = check_alphas(self.alphas).tolist(), self._knots()
        problem = self._problem(data, knots[0])
        held_out = self._held_out(problem.data, eval_set, groups)
        self.cv_, splits = held_out.description, problem.splits(held_out, self._metric)
        blueprint, listed = problem.blueprint, self._listed_surfaces(problem.blueprint)
        results: list[tuple[int, Candidate]] = []
        found: tuple[Candidate, Blueprint, Search] | None = None
        for n_knots in knots:
            if n_knots != knots[0]:
                blueprint = self._problem(data, n_knots).blueprint
            search = Search(blueprint, splits, listed)
            best = search.run(grid, self._counts())
            results += [(n_knots, candidate) for candidate in search.tried]
            if found is None or best.error < found[0].error:
                found, self.n_knots_ = (best, blueprint, search), n_knots
            if search.is_interrupted:
                self.cv_ += ", interrupted"
                break
        assert found is not None
        best, blueprint, search = found
        is_gain = self._metric.greater_is_better
        self.cv_results_ = {
            "n_knots": np.array([n_knots for n_knots, _ in results]),
            "interactions": np.array([candidate.n_pairs for _, candidate in results]),
            "alpha": np.array([candidate.alpha for _, candidate in results]),
            "score": oriented(np.array([one.error for _, one in results]), greater_is_better=is_gain),
        }
        self.alpha_, self.best_score_ = best.alpha, oriented(best.error, greater_is_better=is_gain)
        fit = AdditiveFit(blueprint, problem.training())
        if listed is not None:
            layout, solution = fit.solve(best.alpha, listed, search.start_of_curves)
        else:
            layout, solution = fit.solve_with_best(best.alpha, best.n_pairs, search.start_of_curves)
        self._finish(layout, solution, problem)

    def _counts(self) -> list[int]:
        given = self.interactions
        if isinstance(given, str):
            return list(AUTO_COUNTS)
        return sorted({int(count) for count in np.atleast_1d(given)}) if np.ndim(given) < 2 else []

    def _knots(self) -> list[int]:
        return [self.n_knots] if np.ndim(self.n_knots) == 0 else list(self.n_knots)

    def _check_parameters(self) -> None:
        self._check_model_parameters()
        for given in self.interactions if self._is_list_of_counts() else [self.interactions]:
            check_interactions(given)
        check_cv(self.cv)
        check_count("judge_rows", self.judge_rows)
        self._metric  # noqa: B018 - raises where there is none of that name
        check_positive(self.alphas)
        if not self._knots():
            raise InvalidInputError("n_knots is empty.", "use 8, or a list such as [8, 32].")

    def _is_list_of_counts(self) -> bool:
        given = self.interactions
        return not isinstance(given, str) and np.ndim(given) == 1 and len(given) > 0
