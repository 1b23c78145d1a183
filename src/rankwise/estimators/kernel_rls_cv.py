"""Kernel RankRLS that chooses alpha, and gamma, on exact hold-out predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from rankwise.data.validation import check_choice
from rankwise.estimators.hold_out_plan import check_cv_parameter, plan_hold_out
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.estimators.kernel_selection import Candidate, candidates_of, decompose, judge
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.nested import check_nested, nested_score
from rankwise.estimators.selection import AVERAGING, check_alphas
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import Floats

__all__ = ["KernelRankRLSCV"]

_GRID = tuple(2.0**power for power in range(-10, 11))


class KernelRankRLSCV(KernelRanker, LinearRankRLS):
    """`KernelRankRLS` with alpha, and gamma, chosen on rows that the model did not see.

    One symmetric eigendecomposition a gamma gives the held-out predictions of every alpha, without refitting: exact
    leave-query-out, leave-pair-out, and k-fold.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As in `KernelRankRLS`.
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid.
    gammas : array-like, default=None
        Values of gamma to try; None means `gamma` alone.
    cv : "auto", "leave-query-out", "leave-pair-out", int or splitter, default="auto"
        An integer makes so many folds of whole queries, or of the rows of one ranking. Leave-pair-out judges each
        pair of rows of one global ranking by the model that saw neither. "auto" leaves out queries where
        there are several; in one ranking pairs, up to 2000 rows, and else makes 10 folds. Also a scikit-learn
        splitter, or a list of its splits, that puts each row into at most one test set.
    nested : bool or int, default=False
        Also estimate the score of the whole procedure, choice included, on so many outer folds (True: 5).
    averaging : {"folds", "pooled"}, default="folds"
        For folds of the rows of one ranking: average the folds' values, or judge all held-out rows together. Pooled
        scores are shifted so that a fold's training rows score on average what their labels are.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`; leave-pair-out takes those that count pairs.
    gamma, degree, coef0, kernel_params, basis, query_weight, ties, cost, memory_limit, random_state, n_threads
        As in `KernelRankRLS`. Leave-pair-out needs ``ties="include"``, ``cost="magnitude"`` and a `query_weight` of
        "size" or "pairs".

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
    gamma_ : float
        One for all outputs.
    alphas_ : ndarray of shape (alphas,)
    cv_errors_ : ndarray of shape (alphas,) or (alphas, outputs); a first axis of gammas where `gammas` is given
        The held-out value of `scoring`.
    best_score_ : float, or ndarray of shape (outputs,)
        That of the choice. It is optimistic: the choice was made on the same rows.
    nested_score_ : float, or ndarray of shape (outputs,)
        Only with `nested`: the value on outer folds that took no part in the choice.
    cv_ : str
        What was held out, in words.
    dual_coef_, basis_, X_fit_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `KernelRankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(120, 1))
    >>> y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=120)
    >>> model = KernelRankRLSCV(gammas=[0.1, 1.0]).fit(X, y, qid=np.arange(120) // 10)
    >>> model.cv_
    'leave-query-out over 12 queries'
    >>> model.cv_errors_.shape, bool(model.best_score_ < 0.15)
    ((2, 21), True)
    """

    # Nothing iterates here; the shared checks ask for them.
    tol: ClassVar[float] = 0.0
    max_iter: ClassVar[int | None] = None

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        alphas: Any = _GRID,
        gammas: Any = None,
        cv: Any = "auto",
        nested: Any = False,
        averaging: str = "folds",
        scoring: str | Metric = "pairwise_error",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        basis: Any = None,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        memory_limit: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alphas = alphas
        self.gammas = gammas
        self.cv = cv
        self.nested = nested
        self.averaging = averaging
        self.scoring = scoring
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.basis = basis
        self.query_weight = query_weight
        self.ties = ties
        self.cost = cost
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, query_importance: Any = None
    ) -> KernelRankRLSCV:
        """Choose alpha and gamma, and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `KernelRankRLS.fit`.
        """
        metric, gammas = self._check_parameters()
        self.alphas_ = check_alphas(self.alphas)
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        plan = plan_hold_out(
            self.cv,
            data,
            metric,
            self.random_state,
            is_pooled=self.averaging == "pooled",
            can_refit=self.basis is None,
        )
        self.cv_ = plan.words
        sign = -1.0 if metric.greater_is_better else 1.0
        tables, best, chosen = [], np.inf, gammas[0]
        for gamma in gammas:
            problem = self._problem(data.design, data.row_weight, gamma)
            candidates = candidates_of(data, partial(decompose, problem))
            table = np.column_stack([judge(c, problem, data, plan, metric, self.alphas_) for c in candidates])
            tables.append(table)
            error = float((sign * table).min(axis=0).mean())
            if error < best:
                best, chosen, kept = error, gamma, candidates
        self._problem(data.design, data.row_weight, chosen)  # sets the attributes of the chosen kernel again
        self._report(data, kept, np.array(tables), gammas.index(chosen), sign)
        if self.nested:
            self.nested_score_ = nested_score(self, data, metric, self._taker(data))
        else:
            self._forget("nested_score_")
        return self

    def _taker(self, data: TrainingData) -> Callable[[Any, Any], Any]:
        """Return what gives X of some rows to a model of others."""
        X = self._problem(data.design, data.row_weight, getattr(self, "gamma_", self.gamma)).X
        if self.kernel_.is_precomputed:
            return lambda rows, train: X[np.ix_(rows, train)]
        return lambda rows, _: X[rows]

    def _report(
        self, data: TrainingData, candidates: list[Candidate], tables: Floats, chosen: int, sign: float
    ) -> None:
        errors = sign * tables[chosen]
        # Of equally good alphas the largest: the simplest model.
        position = errors.shape[0] - 1 - np.argmin(errors[::-1], axis=0)
        alphas = self.alphas_[position]
        scores = tables[chosen][position, np.arange(position.size)]
        dual = [
            candidate.coefficients(candidate.target[:, at], float(alphas[output]))
            for candidate in candidates
            for at, output in enumerate(candidate.outputs)
        ]
        table = tables if self.gammas is not None else tables[0]
        several = data.several_outputs
        self.cv_errors_ = table if several else table[..., 0]
        self.alpha_ = alphas if several else float(alphas[0])
        self.best_score_ = scores if several else float(scores[0])
        self.dual_coef_ = np.array(dual) if several else dual[0]

    def _check_parameters(self) -> tuple[Metric, list[Any]]:
        self._check_loss_parameters()
        self._check_kernel_parameters()
        check_cv_parameter(self.cv)
        check_nested(self.nested)
        check_choice("averaging", self.averaging, AVERAGING)
        gammas = (
            [self.gamma] if self.gammas is None else list(np.atleast_1d(np.asarray(self.gammas)).tolist())
        )
        if not gammas:
            raise InvalidInputError("gammas is empty.", "use None, or a list such as [0.01, 0.1, 1].")
        return get_metric(self.scoring), gammas
