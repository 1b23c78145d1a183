"""Additive models with their settings chosen on held-out rows or pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, Self

import numpy as np

from rankwise.additive.choosing import Candidate, Search, Split
from rankwise.additive.fitting import AdditiveFit, Blueprint
from rankwise.additive.training import Training
from rankwise.arrays import Floats
from rankwise.data.queries import Queries
from rankwise.data.validation import check_count, check_qid
from rankwise.estimators.additive import AUTO_COUNTS
from rankwise.estimators.additive_parameters import check_interactions
from rankwise.estimators.additive_training import AdditiveTrainer
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import Change, InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.metrics import Metric, get_metric
from rankwise.problems.training import TrainingData
from rankwise.selection.cv import plan_rows
from rankwise.selection.cv_pairs import plan_pairs
from rankwise.selection.grids import check_alphas
from rankwise.selection.splits import Sampling, check_cv
from rankwise.threads import one_blas_thread

__all__ = ["AdditiveRankerCV"]

_GRID = tuple(float(f"{10.0 ** (-power / 2):.1g}") for power in range(2, 11))


class AdditiveRankerCV(AdditiveTrainer):
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

    def __init__(
        self,
        alphas: Any = _GRID,
        *,
        n_knots: Any = 8,
        interactions: Any = "auto",
        cv: Any = "auto",
        scoring: str | Metric = "pairwise_error",
        judge_rows: int | None = None,
        surface_knots: int = 5,
        loss: str = "squared_hinge",
        penalty: str = "difference",
        query_weight: str = "equal",
        ties: str = "include",
        cost: str = "magnitude",
        monotone: Any = None,
        categorical: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    @one_blas_thread
    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        query_importance: Any = None,
        eval_set: Any = None,
        **unknown: Never,
    ) -> Self:
        """Choose the settings and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `AdditiveRanker.fit`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows to score by, instead of folds; the model is then fitted on X, y alone.
        """
        refuse_unknown("fit", unknown)
        grid, knots = self._check_parameters()
        blueprint, data = self._labelled(X, y, qid, sample_weight, query_importance, knots[0])
        training = self._label_training(data, data.row_weight)
        if eval_set is not None:
            split, self.cv_ = self._eval_split(data, training, eval_set)
            splits = [split]
        else:
            splits = self._folds(data)
        self._choose(blueprint, training, splits, grid, knots, data.queries, data.row_weight)
        return self

    @one_blas_thread
    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        magnitude: Any = None,
        weight: Any = None,
        eval_set: Any = None,
        groups: Any = None,
        **unknown: Never,
    ) -> Self:
        """Choose the settings and fit the model to preferences: a list of pairs instead of labels.

        `scoring` must be "pairwise_error" or "concordance".

        Parameters
        ----------
        X, pairs, magnitude, weight
            As in `AdditiveRanker.fit_pairs`.
        eval_set, groups
            As in `RankSVMCV.fit_pairs`.
        """
        refuse_unknown("fit_pairs", unknown)
        grid, knots = self._check_parameters()
        blueprint, data = self._listed(X, pairs, magnitude, weight, knots[0])
        training = self._pair_training(data.graph)
        if eval_set is not None:
            split, self.cv_ = self._eval_split(data, training, eval_set)
            splits = [split]
        else:
            plan = plan_pairs(self.cv, data, groups, Sampling(self.random_state, self.judge_rows))
            self.cv_ = plan.description
            splits = [self._pair_split(data, plan, fold) for fold in plan.folds_that_score(data)]
        self._choose(blueprint, training, splits, grid, knots, check_qid(None, data.design.shape[0]), None)
        return self

    def _folds(self, data: TrainingData) -> list[Split]:
        sampling = Sampling(self.random_state, self.judge_rows)
        plan = plan_rows(self.cv, data, get_metric(self.scoring), sampling)
        fold, scored = plan.fold, plan.scored
        self.cv_ = plan.description
        splits: list[Split] = []
        problem: InvalidInputError | None = None
        for number in range(plan.n_folds):
            try:
                splits.append(self._held_rows(data, fold == number, scored[fold[scored] == number]))
            except (NoPairsError, UndefinedMetricError) as error:
                problem = error  # others may score; this one is not trained then
        if problem is not None and not splits:
            raise problem
        return splits

    def _choose(
        self,
        blueprint: Blueprint,
        training: Training,
        splits: Sequence[Split],
        grid: Floats,
        knots: Sequence[int],
        queries: Queries,
        row_weight: Floats | None,
    ) -> None:
        """Try the settings, fit the best one on all rows, and set the attributes."""
        listed = self._listed_surfaces(blueprint)
        results: list[tuple[int, Candidate]] = []
        found: tuple[Candidate, Blueprint, Search] | None = None
        for n_knots in knots:
            if n_knots != knots[0]:
                blueprint = self._blueprint(blueprint.X, queries, row_weight, n_knots)
            search = Search(blueprint, splits, listed)
            best = search.run(grid.tolist(), self._counts())
            results += [(n_knots, candidate) for candidate in search.tried]
            if found is None or best.error < found[0].error:
                found, self.n_knots_ = (best, blueprint, search), n_knots
            if search.is_interrupted:
                self.cv_ += ", interrupted"
                break
        assert found is not None
        best, blueprint, search = found
        sign = -1.0 if get_metric(self.scoring).greater_is_better else 1.0
        self.cv_results_ = {
            "n_knots": np.array([n_knots for n_knots, _ in results]),
            "interactions": np.array([candidate.n_pairs for _, candidate in results]),
            "alpha": np.array([candidate.alpha for _, candidate in results]),
            "score": np.array([sign * candidate.error for _, candidate in results]),
        }
        self.alpha_, self.best_score_ = best.alpha, sign * best.error
        fit = AdditiveFit(blueprint, training)
        if listed is not None:
            layout, solution = fit.solve(best.alpha, listed, search.start_of_curves)
        else:
            layout, solution = fit.solve_with_best(best.alpha, best.n_pairs, search.start_of_curves)
        self._finish(layout, solution, blueprint.X, queries, row_weight)

    def _counts(self) -> list[int]:
        given = self.interactions
        if isinstance(given, str):
            return list(AUTO_COUNTS)
        return sorted({int(count) for count in np.atleast_1d(given)}) if np.ndim(given) < 2 else []

    def _check_parameters(self) -> tuple[Floats, list[int]]:
        """Return the grid of alphas and the numbers of knots."""
        self._check_model_parameters()
        for given in self.interactions if self._is_list_of_counts() else [self.interactions]:
            check_interactions(given)
        check_cv(self.cv)
        check_count("judge_rows", self.judge_rows)
        get_metric(self.scoring)
        grid = check_alphas(self.alphas)
        if grid[0] == 0:
            raise InvalidInputError(
                "alphas contains 0.",
                "use positive values, such as 10.0 ** -np.arange(1, 6).",
                Change("alphas"),
            )
        knots = [self.n_knots] if np.ndim(self.n_knots) == 0 else list(self.n_knots)
        if not knots:
            raise InvalidInputError("n_knots is empty.", "use 8, or a list such as [8, 32].")
        return grid, knots

    def _is_list_of_counts(self) -> bool:
        given = self.interactions
        return not isinstance(given, str) and np.ndim(given) == 1 and len(given) > 0
