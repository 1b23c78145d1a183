"""Kernel RankRLS that chooses alpha, and gamma, on exact hold-out predictions."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from rankwise.data.validation import check_choice, check_count
from rankwise.estimators.kernel_problem import KernelProblem
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.estimators.kernel_selection import Candidate, Plan, decompose, given_folds, judge
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.selection import check_alphas
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import Floats
from rankwise.resampling import deal_folds

__all__ = ["KernelRankRLSCV"]

_GRID = tuple(2.0**power for power in range(-10, 11))
_FOLDS = 10
_OUTER_FOLDS = 5
_CV = ("auto", "leave-query-out", "leave-pair-out")
_PAIR_METRICS = {"pairwise_error", "concordance", "auc"}
_MANY_ROWS = 2000  # up to so many rows "auto" holds out every pair of one ranking


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
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`; leave-pair-out takes those that count pairs. Folds of one ranking are
        judged one by one and averaged.
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
        plan = self._plan(data, metric)
        sign = -1.0 if metric.greater_is_better else 1.0
        tables, best, chosen = [], np.inf, gammas[0]
        for gamma in gammas:
            problem = self._problem(data.design, data.row_weight, gamma)
            candidates = self._candidates(problem, data)
            table = np.column_stack([judge(c, problem, data, plan, metric, self.alphas_) for c in candidates])
            tables.append(table)
            error = float((sign * table).min(axis=0).mean())
            if error < best:
                best, chosen, kept = error, gamma, candidates
        self._problem(data.design, data.row_weight, chosen)  # sets the attributes of the chosen kernel again
        self._report(data, kept, np.array(tables), gammas.index(chosen), sign)
        if self.nested:
            self.nested_score_ = self._nested(data, metric)
        return self

    def _candidates(self, problem: KernelProblem, data: TrainingData) -> list[Candidate]:
        graphs = data.graphs()
        if len(graphs) == 1:
            return [decompose(problem, graphs[0], list(range(len(data.columns))))]
        return [decompose(problem, graph, [output]) for output, graph in enumerate(graphs)]

    def _report(
        self, data: TrainingData, candidates: list[Candidate], tables: Floats, chosen: int, sign: float
    ) -> None:
        errors = sign * tables[chosen]
        # Of equally good alphas the largest: the simplest model.
        position = errors.shape[0] - 1 - np.argmin(errors[::-1], axis=0)
        alphas = self.alphas_[position]
        scores = tables[chosen][position, np.arange(position.size)]
        dual = [
            candidate.dual_coefficients(candidate.target[:, at], float(alphas[output]))
            for candidate in candidates
            for at, output in enumerate(candidate.outputs)
        ]
        table = tables if self.gammas is not None else tables[0]
        several = data.several_outputs
        self.cv_errors_ = table if several else table[..., 0]
        self.alpha_ = alphas if several else float(alphas[0])
        self.best_score_ = scores if several else float(scores[0])
        self.dual_coef_ = np.array(dual) if several else dual[0]

    def _plan(self, data: TrainingData, metric: Metric) -> Plan:
        queries = data.queries
        cv = self._resolve_cv(data, metric)
        if cv == "leave-pair-out":
            self.cv_ = f"leave-pair-out over {queries.n_rows} rows"
            # Pairs that weigh 1 make L m times the centering; without two rows m - 2 times.
            scale = 1.0 if self.query_weight == "size" else queries.n_rows / (queries.n_rows - 2)
            return Plan("pairs", np.zeros(queries.n_rows, dtype=np.int64), scale)
        if cv == "leave-query-out":
            self.cv_ = f"leave-query-out over {len(queries)} queries"
            return Plan("queries", queries.codes)
        unit, n_units = ("queries", len(queries)) if len(queries) > 1 else ("rows", queries.n_rows)
        if isinstance(cv, Integral):
            if int(cv) > n_units:
                raise InvalidInputError(
                    f"cv={cv} is more than the {n_units} {unit} there are.", f"use cv <= {n_units}."
                )
            fold = deal_folds(data.design, data.columns[0], queries, int(cv), self.random_state).astype(
                np.int64
            )
        else:
            fold = given_folds(cv, data)
        self.cv_ = f"{fold.max() + 1} folds of {unit}"
        if unit == "queries":
            return Plan("queries", fold)
        if self._is_ridge() and self.query_weight == "size":
            return Plan("rows", fold)
        if self.basis is not None:
            raise InvalidInputError(
                "Folds of the rows of one ranking have no closed form here, and a reduced set is not refitted.",
                "use ties='include', cost='magnitude', query_weight='size'; or basis=None.",
            )
        return Plan("refit", fold)

    def _resolve_cv(self, data: TrainingData, metric: Metric) -> Any:
        one_ranking = len(data.queries) == 1
        can_pair = self._is_ridge() and (
            self.query_weight == "size" or (self.query_weight == "pairs" and data.row_weight is None)
        )
        can_pair = can_pair and data.importance is None and not _has_zero(data.row_weight)
        n_rows = data.queries.n_rows
        if self.cv == "auto":
            if not one_ranking:
                return "leave-query-out"
            pairs = can_pair and metric.base_name in _PAIR_METRICS and 3 <= n_rows <= _MANY_ROWS
            return "leave-pair-out" if pairs else min(_FOLDS, n_rows)
        if self.cv == "leave-query-out" and one_ranking:
            raise InvalidInputError(
                "cv='leave-query-out' needs two queries or more, and all rows form one ranking.",
                "pass qid, or use cv='leave-pair-out' or a number of folds.",
            )
        if self.cv == "leave-pair-out":
            self._check_pairs(one_ranking=one_ranking, n_rows=n_rows, can_pair=can_pair, metric=metric)
        return self.cv

    def _check_pairs(self, *, one_ranking: bool, n_rows: int, can_pair: bool, metric: Metric) -> None:
        if not one_ranking:
            raise InvalidInputError(
                "cv='leave-pair-out' is for one global ranking, and qid names several queries.",
                "use cv='leave-query-out'.",
            )
        if n_rows < 3:
            raise InvalidInputError(
                f"cv='leave-pair-out' leaves nothing to train on from {n_rows} rows.",
                "use three rows or more.",
            )
        if not can_pair:
            raise InvalidInputError(
                "cv='leave-pair-out' has a closed form only for ties='include', cost='magnitude' and "
                "query_weight='size' with positive weights, or 'pairs' without weights.",
                "use a number of folds, which refits where it must.",
            )
        if metric.base_name not in _PAIR_METRICS:
            raise InvalidInputError(
                f"cv='leave-pair-out' judges pairs, and scoring={metric.name!r} does not count them.",
                "use scoring='pairwise_error', or a number of folds.",
            )

    def _is_ridge(self) -> bool:
        return bool(self.ties == "include" and self.cost == "magnitude")

    def _nested(self, data: TrainingData, metric: Metric) -> Any:
        """Choose and fit on all but one outer fold, and judge on that fold."""
        queries = data.queries
        n_units = len(queries) if len(queries) > 1 else queries.n_rows
        n_outer = min(n_units, _OUTER_FOLDS if self.nested is True else int(self.nested))
        fold = deal_folds(data.design, data.columns[0], queries, n_outer, self.random_state + 1)
        inner = clone(self).set_params(nested=False)
        is_square = self.kernel_.is_precomputed
        matrix = self._problem(data.design, data.row_weight, getattr(self, "gamma_", self.gamma)).X
        scores = np.empty(data.y.shape)
        per_row = None if data.importance is None else data.importance[queries.codes]
        for number in range(n_outer):
            test, train = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            model = inner.fit(
                matrix[np.ix_(train, train)] if is_square else matrix[train],
                data.y[train],
                queries.codes[train] if len(queries) > 1 else None,
                None if data.row_weight is None else data.row_weight[train],
                None if per_row is None else per_row[train],
            )
            scores[test] = model.predict(matrix[np.ix_(test, train)] if is_square else matrix[test])
        groups = queries.codes if len(queries) > 1 else fold
        values = [
            metric(labels, column, groups)
            for labels, column in zip(data.columns, scores.reshape(data.queries.n_rows, -1).T, strict=True)
        ]
        return np.array(values) if data.several_outputs else float(values[0])

    def _check_parameters(self) -> tuple[Metric, list[Any]]:
        self._check_loss_parameters()
        self._check_kernel_parameters()
        if isinstance(self.cv, str):
            check_choice("cv", self.cv, _CV)
        elif isinstance(self.cv, Integral) or not (hasattr(self.cv, "split") or np.iterable(self.cv)):
            check_count("cv", self.cv, optional=False)
            if self.cv == 1:
                raise InvalidInputError("cv=1 leaves nothing to train on.", "use cv of at least 2.")
        if not isinstance(self.nested, bool):
            check_count("nested", self.nested, optional=False)
        gammas = (
            [self.gamma] if self.gammas is None else list(np.atleast_1d(np.asarray(self.gammas)).tolist())
        )
        if not gammas:
            raise InvalidInputError("gammas is empty.", "use None, or a list such as [0.01, 0.1, 1].")
        return get_metric(self.scoring), gammas


def _has_zero(weight: Floats | None) -> bool:
    return weight is not None and bool((weight == 0).any())
