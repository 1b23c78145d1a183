"""RankSVM with its regularisation chosen on held-out rows, by warm starts along the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rankwise.design import Design
from rankwise.estimators.folds import check_cv, folds_of_rows
from rankwise.estimators.margin_fit import MarginFit, label_margins, one_or_all, prepare_columns
from rankwise.estimators.margin_ranker import MarginRanker
from rankwise.estimators.selection import check_alphas, judge_rows
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import Floats, MarginPairs
from rankwise.resampling import Judge
from rankwise.solvers.solution import Solution

__all__ = ["RankSVMCV"]

_GRID = tuple(10.0**-power for power in range(1, 7))


@dataclass(frozen=True)
class _Split:
    """What is trained on and what judges, for one output."""

    pairs: MarginPairs
    judging: Design
    judge: Judge


class RankSVMCV(MarginRanker):
    """`RankSVM` with alpha chosen on held-out rows.

    The grid is walked from the largest alpha to the smallest, each fit starting from the one before.

    Parameters
    ----------
    alphas : array-like, default=1e-1, 1e-2, ..., 1e-6
        The grid; order and duplicates do not matter.
    cv : "auto", int or splitter, default="auto"
        Folds of whole queries, or of rows where there is one ranking; "auto" makes 5. Not used where `fit` gets an
        `eval_set`.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    query_weight, solver, tol, max_iter, n_threads
        As in `RankSVM`.
    random_state : int, default=0
        Seeds the folds.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
        The chosen alpha; of equally good ones the largest.
    alphas_ : ndarray of shape (alphas,)
        The grid, in increasing order.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, averaged over folds.
    best_score_ : float, or ndarray of shape (outputs,)
        Its value for the chosen alpha. It is optimistic: the choice was made on the same rows.
    cv_ : str
        What judged the models, in words.
    n_reads_ : int
        How many times the solvers read X, selection and refit together.
    coef_, duality_gap_, n_iter_, solver_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_
        As in `RankSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVMCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = RankSVMCV().fit(X, y, qid=np.arange(300) // 10)
    >>> model.cv_errors_.shape
    (6,)
    >>> bool(model.best_score_ < 0.3)
    True
    """

    def __init__(
        self,
        alphas: Any = _GRID,
        *,
        cv: Any = "auto",
        scoring: str | Metric = "pairwise_error",
        loss: str = "hinge",
        query_weight: str = "equal",
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.query_weight = query_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        query_importance: Any = None,
        eval_set: Any = None,
    ) -> Self:
        """Choose alpha and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `RankSVM.fit`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows that judge, instead of folds; the model is then fitted on X, y alone.
        """
        self._check_margin_parameters()
        check_cv(self.cv)
        grid = check_alphas(self.alphas)
        if grid[0] == 0:
            raise InvalidInputError(
                "alphas contains 0.", "use positive values, such as 10.0 ** -np.arange(1, 7)."
            )
        metric = get_metric(self.scoring)
        data = self._labelled_data(X, y, qid, sample_weight, query_importance)
        prepare_columns(data.design)
        reads = data.design.reads
        if eval_set is not None:
            judging, judges = self._eval_set(data, eval_set, metric)
            self.cv_ = f"an evaluation set of {judging.shape[0]} rows"
            whole = [label_margins(data, output, data.row_weight) for output in range(len(judges))]
            splits = [[_Split(pairs, judging, judge)] for pairs, judge in zip(whole, judges, strict=True)]
        else:
            splits = self._folds(data, metric)
        fit = self._margin_fit(splits[0][0].pairs)
        paths = [[self._walk(fit, data.design, split, grid) for split in own] for own in splits]
        errors = np.array([np.mean([errors for errors, _ in own], axis=0) for own in paths])
        chosen = [int(grid.size - 1 - np.argmin(row[::-1])) for row in errors]
        solutions = [
            self._final(fit, data, output, grid[best], own, is_refit=eval_set is None, best=best)
            for output, (own, best) in enumerate(zip(paths, chosen, strict=True))
        ]
        several = data.several_outputs
        sign = -1.0 if metric.greater_is_better else 1.0
        self.alphas_ = grid
        self.cv_errors_ = sign * (errors.T if several else errors[0])
        self.alpha_ = one_or_all([float(grid[best]) for best in chosen], several)
        self.best_score_ = one_or_all(
            [float(sign * row[best]) for row, best in zip(errors, chosen, strict=True)], several
        )
        self.n_reads_ = data.design.reads - reads
        self.coef_ = self._report_solutions(fit, solutions, several, stacklevel=3)
        return self

    def _folds(self, data: TrainingData, metric: Metric) -> list[list[_Split]]:
        """Return the splits of every output."""
        fold, self.cv_ = folds_of_rows(self.cv, data, self.random_state)
        weight = np.ones(fold.size) if data.row_weight is None else data.row_weight
        splits: list[list[_Split]] = [[] for _ in data.columns]
        for number in range(int(fold.max(initial=-1)) + 1):
            rows = np.flatnonzero((fold == number) & (weight > 0))
            judging, queries = data.design.rows(rows), data.queries.subset(rows)
            for output, labels in enumerate(data.columns):
                judge = judge_rows(
                    metric, labels[rows], queries, self.n_threads, "what was held out", weight[rows]
                )
                pairs = label_margins(data, output, weight * (fold != number))
                splits[output].append(_Split(pairs, judging, judge))
        return splits

    def _walk(
        self, fit: MarginFit, design: Design, split: _Split, grid: Floats
    ) -> tuple[Floats, list[Solution]]:
        """Fit every alpha, largest first; return errors and solutions in the order of the grid."""
        solutions: list[Solution] = []
        for alpha in grid[::-1]:
            start = solutions[-1].coef if solutions else None
            solutions.append(fit.solve(design, split.pairs, float(alpha), start=start, title="selecting"))
        scores = split.judging.dot(np.column_stack([solution.coef for solution in solutions]))
        errors: Floats = split.judge.errors(np.ascontiguousarray(scores.T))
        return errors[::-1], solutions[::-1]

    def _final(
        self,
        fit: MarginFit,
        data: TrainingData,
        output: int,
        alpha: float,
        paths: list[tuple[Floats, list[Solution]]],
        *,
        is_refit: bool,
        best: int,
    ) -> Solution:
        found = [solutions[best] for _, solutions in paths]
        if not is_refit:
            return found[0]
        # The folds' models share most of their rows with the final one: their mean is a good start.
        start = np.mean([solution.coef for solution in found], axis=0)
        return fit.solve(data.design, label_margins(data, output, data.row_weight), float(alpha), start=start)
