"""RankSVM with its regularisation chosen on held-out rows, by warm starts along the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never, Self

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.validation import check_count
from rankwise.design import Design
from rankwise.estimators.margin_ranker import MarginRanker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import Change, InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.problems.training import TrainingData
from rankwise.selection.alpha_path import AlphaChoice, AlphaPath, Split, choose_alpha
from rankwise.selection.cv import (
    check_cv,
    folds_of_pairs,
    folds_of_rows,
    folds_that_score,
    scoring_rows,
    scoring_share,
)
from rankwise.selection.grids import is_default_grid, warn_of_edges
from rankwise.selection.margin_fit import curvature_of, label_margins, one_or_all, prepare_columns
from rankwise.selection.reading import check_alphas, row_scorer
from rankwise.solvers.solution import Status
from rankwise.threads import one_blas_thread

__all__ = ["RankSVMCV"]

_GRID = tuple(10.0**-power for power in range(1, 7))


class RankSVMCV(MarginRanker):
    """`RankSVM` with alpha chosen on held-out rows, or on held-out pairs.

    The grid is walked from the largest alpha to the smallest, each fit starting from the one before, and only as long
    as that can help: the walk ends where every alpha down to a hundredth of the best one had a larger held-out error,
    by more than the standard error of the difference over the folds. (With an `eval_set`, and where alphas are so large
    that the loss is nearly linear, the walk goes on.) On Ctrl-C the choice is made among the alphas that all folds have
    scored; the model is then the first fold's, fitted without its rows.

    Parameters
    ----------
    alphas : array-like, default=1e-1, 1e-2, ..., 1e-6
        The grid; order and duplicates do not matter. The default grid goes on where the best value lies at its end
        and still becomes better, by at most as many values again on either side; another one is taken as it is, and a
        best alpha at its end is warned of.
    cv : "auto", int or splitter, default="auto"
        Folds of whole queries, or of rows where there is one ranking, or of listed pairs; "auto" makes 5. Not used
        where `fit` gets an `eval_set`.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        As in `RankSVM`; the last is for `fit_pairs` only.
    judge_rows : int, default=None
        With folds, let at most about so many held-out rows (whole queries) or pairs score; a fixed choice, that of
        `RankRLSCV`, which `cv_` names. By default all do.
    query_weight, solver, tol, max_iter, n_threads
        As in `RankSVM`.
    random_state : int, default=0
        Seeds the folds.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
        The chosen alpha; of equally good ones the largest.
    alphas_ : ndarray of shape (alphas,)
        The grid, in increasing order, with what came to it.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, averaged over held-out queries, or over the folds of one ranking or of
        pairs; NaN for those that the walk did not come to, or that came to the grid for another output.
    best_score_ : float, or ndarray of shape (outputs,)
        Its value for the chosen alpha. It is optimistic: the choice was made on the same rows.
    cv_ : str
        What scored the models, in words.
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
        judge_rows: int | None = None,
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
        self.judge_rows = judge_rows
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads

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
        """Choose alpha and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `RankSVM.fit`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows to score by, instead of folds; the model is then fitted on X, y alone.
        """
        refuse_unknown("fit", unknown)
        grid, metric = self._check_parameters(), get_metric(self.scoring)
        data = self._labelled_data(X, y, qid, sample_weight, query_importance)
        prepare_columns(data.design)
        outputs = range(len(data.columns))
        whole = [label_margins(data, output, data.row_weight) for output in outputs]
        graphs = [data.graph(output, data.row_weight) for output in outputs]
        if eval_set is not None:
            scoring, scorers = self._eval_set(data, eval_set, metric)
            self.cv_ = f"an evaluation set of {scoring.shape[0]} rows"
            splits = [[Split(pairs, scoring, scorer)] for pairs, scorer in zip(whole, scorers, strict=True)]
        else:
            splits = self._folds(data, metric)
        several = data.several_outputs
        self._select(data.design, whole, graphs, splits, grid, is_refit=eval_set is None, several=several)
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
        """Choose alpha and fit the model to preferences: a list of pairs instead of labels.

        `scoring` must be "pairwise_error" or "concordance".

        Parameters
        ----------
        X, pairs, magnitude, weight
            As in `RankSVM.fit_pairs`.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What to score by instead of folds; the pairs are row numbers of the X beside them. The model is then fitted
            on the training pairs alone.
        groups : array-like of shape (pairs,), optional
            What must not be divided between folds, such as prompts or raters; anything hashable. Without it, the folds
            that are made of a number `cv` keep all comparisons of the same two rows together. A splitter in `cv`, such
            as `rankwise.model_selection.PreferenceKFold`, splits the list of pairs, and gets the groups.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankSVMCV
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 5))
        >>> noisy = X[:, 0] + rng.normal(size=100)
        >>> pairs = [(i, j) for i, j in rng.integers(100, size=(500, 2)) if noisy[i] > noisy[j]]
        >>> model = RankSVMCV(loss="logistic").fit_pairs(X, pairs)
        >>> model.cv_
        '5 folds of pairs'
        """
        refuse_unknown("fit_pairs", unknown)
        grid, metric = self._check_parameters(), get_metric(self.scoring)
        data = self._pair_data(X, pairs, magnitude, weight)
        prepare_columns(data.design)
        whole = self._listed_margins(data.graph)
        if eval_set is not None:
            scoring, scorers = self._pair_eval_set(data, eval_set, metric)
            self.cv_ = f"an evaluation set of {scorers[0].winner.size} pairs"
            splits = [Split(whole, scoring, scorers[0])]
        else:
            left_out, words = folds_of_pairs(self.cv, data, groups, self.random_state)
            left_out, how_many = scoring_share(data, left_out, self.judge_rows, self.random_state)
            self.cv_ = words + how_many
            folds = [
                self._pair_fold(data, left_out, fold, metric) for fold in folds_that_score(data, left_out)
            ]
            splits = [Split(margins, data.design, scorer) for margins, scorer in folds]
        is_refit = eval_set is None
        self._select(data.design, [whole], [data.graph], [splits], grid, is_refit=is_refit, several=False)
        return self

    def _folds(self, data: TrainingData, metric: Metric) -> list[list[Split]]:
        """Return the splits of every output."""
        fold, words = folds_of_rows(self.cv, data, self.random_state)
        scored, how_many = scoring_rows(data, fold, self.judge_rows, self.random_state)
        self.cv_ = words + how_many
        weight = np.ones(fold.size) if data.row_weight is None else data.row_weight
        splits: list[list[Split]] = [[] for _ in data.columns]
        problem: InvalidInputError | None = None
        for number in range(int(fold.max(initial=-1)) + 1):
            rows = scored[fold[scored] == number]
            scoring, queries = data.design.rows(rows), data.queries.subset(rows)
            for output, labels in enumerate(data.columns):
                try:
                    scorer = row_scorer(
                        metric, labels[rows], queries, self.n_threads, "what was held out", weight[rows]
                    )
                except (NoPairsError, UndefinedMetricError) as error:
                    problem = error  # others may score; this one is not trained then
                    continue
                pairs = label_margins(data, output, weight * (fold != number))
                splits[output].append(Split(pairs, scoring, scorer, scorer.n_counted))
        if problem is not None and not all(splits):
            raise problem
        return splits

    def _select(
        self,
        design: Design,
        whole: Sequence[MarginPairs],
        graphs: Sequence[PairGraph],
        splits: Sequence[Sequence[Split]],
        grid: Floats,
        *,
        is_refit: bool,
        several: bool,
    ) -> None:
        """Choose alpha for every output, and set the attributes."""
        reads = design.reads
        fit = self._margin_fit(splits[0][0].pairs)
        choices: list[AlphaChoice] = []
        default = _GRID if is_default_grid(grid, _GRID) else ()
        for pairs, graph, own in zip(whole, graphs, splits, strict=True):
            path = AlphaPath(fit, design, own, curvature_of(design, graph))
            choices.append(choose_alpha(path, grid, pairs if is_refit else None, default))
            if choices[-1].solution.status is Status.INTERRUPTED:
                if len(choices) < len(whole):
                    raise KeyboardInterrupt  # there is no model of the other outputs
                self.cv_ += f", interrupted after {choices[-1].n_scored} of {grid.size} alphas"
        sign = -1.0 if get_metric(self.scoring).greater_is_better else 1.0
        self.alphas_ = np.unique(np.concatenate([choice.grid for choice in choices]))
        values = np.full((self.alphas_.size, len(choices)), np.nan)
        for column, choice in zip(values.T, choices, strict=True):
            column[np.searchsorted(self.alphas_, choice.grid)] = sign * choice.errors
        self.cv_errors_ = values if several else values[:, 0]
        self.alpha_ = one_or_all([float(choice.grid[choice.best]) for choice in choices], several)
        self.best_score_ = one_or_all(
            [sign * float(choice.errors[choice.best]) for choice in choices], several
        )
        warn_of_edges(self.alphas, self.alphas_, values, get_metric(self.scoring), _GRID)
        self.n_reads_ = design.reads - reads
        solutions = [choice.solution for choice in choices]
        self.coef_ = self._report_solutions(fit, solutions, several)

    def _check_parameters(self) -> Floats:
        """Return the grid."""
        self._check_margin_parameters()
        check_cv(self.cv)
        check_count("judge_rows", self.judge_rows)
        get_metric(self.scoring)
        grid = check_alphas(self.alphas)
        if grid[0] == 0:
            raise InvalidInputError(
                "alphas contains 0.",
                "use positive values, such as 10.0 ** -np.arange(1, 7).",
                Change("alphas"),
            )
        return grid
