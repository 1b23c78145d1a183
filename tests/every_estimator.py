"""Every estimator in configurations that go different ways through the code, and small problems for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    KernelRankSVMCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)

STEP = 2.0**-10  # entries of X are multiples of it, so that offsets, scales and float32 change no difference


@dataclass(frozen=True)
class Problem:
    """Labels or listed pairs, rows to validate on, and new rows to score; what a case does not need is ignored."""

    X: np.ndarray
    y: np.ndarray
    qid: Any
    weight: np.ndarray | None
    fold: np.ndarray  # of rows, for splits that the caller makes; queries are whole
    basis: np.ndarray
    pairs: np.ndarray
    magnitude: np.ndarray
    pair_weight: np.ndarray | None
    pair_fold: np.ndarray
    judging: tuple[np.ndarray, np.ndarray, np.ndarray]  # X, y, qid
    judging_pairs: np.ndarray
    new: np.ndarray
    importance: dict[Any, float] | None = None

    def columns(self, change):
        """Change the columns of all matrices alike."""
        X, *others = self.judging
        return replace(self, X=change(self.X), judging=(change(X), *others), new=change(self.new))

    def rows(self, index):
        """Take rows, in this order, some maybe twice and some not at all; basis rows must be among them."""
        place = np.full(len(self.X), -1)
        place[index[::-1]] = np.arange(len(index))[::-1]  # the first copy
        kept = (place[self.pairs] >= 0).all(axis=1)
        return replace(
            self,
            X=self.X[index],
            y=self.y[index],
            qid=None if self.qid is None else [self.qid[i] for i in index],
            weight=None if self.weight is None else self.weight[index],
            fold=self.fold[index],
            basis=place[self.basis],
            pairs=place[self.pairs],
        ).listed(np.flatnonzero(kept))

    def listed(self, index):
        """Take listed pairs, in this order."""
        return replace(
            self,
            pairs=self.pairs[index],
            magnitude=self.magnitude[index],
            pair_weight=None if self.pair_weight is None else self.pair_weight[index],
            pair_fold=self.pair_fold[index],
        )

    def labels(self, change):
        """Change the labels of all rows, and of those to score by, alike."""
        X, y, qid = self.judging
        return replace(self, y=change(self.y), judging=(X, change(y), qid))


def make_problem(seed, *, in_queries, outputs=1, levels=None, weighted=False):
    """Queries of 1 to 5 rows that stand mixed, or one ranking; X in multiples of `STEP`, some of it 0."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = 24, 4
    spread = 2.0 ** rng.integers(-1, 2, size=n_columns)
    direction = rng.normal(size=(n_columns, outputs))

    def draw(rows):
        X = np.round(rng.normal(size=(rows, n_columns)) * spread / STEP) * STEP
        X[rng.random(X.shape) < 0.15] = 0.0
        real = X @ direction + rng.normal(size=(rows, outputs))
        y = (
            real
            if levels is None
            else np.floor((real - real.min(axis=0)) / np.ptp(real, axis=0) * (levels - 0.01))
        )
        return X, y[:, 0] if outputs == 1 else y

    X, y = draw(n_rows)
    qid = np.concatenate([np.arange(7), rng.permutation(np.arange(17) % 6)])  # query 6 has one row
    if in_queries:
        for query in range(6):  # two labels in each query, at least
            rows = np.flatnonzero(qid == query)
            y[rows[0]] = y[rows[1]] + 1
    query_fold = rng.permutation(np.arange(7) % 3)
    winner, loser = rng.integers(n_rows, size=(2, 40))
    pairs = np.column_stack([winner, loser])[winner != loser]
    first = y if y.ndim == 1 else y[:, 0]
    should_swap = (first[pairs[:, 0]] < first[pairs[:, 1]]) & (rng.random(len(pairs)) < 0.8)
    pairs[should_swap] = pairs[should_swap, ::-1]
    couple = np.sort(pairs, axis=1) @ [n_rows, 1]
    judging_qid = np.arange(12) % 3
    judging_X, judging_y = draw(12)
    judging_y[:3] = judging_y[3:6] + 1
    return Problem(
        X=X,
        y=y,
        qid=qid if in_queries else None,
        weight=rng.integers(1, 4, size=n_rows).astype(float) if weighted else None,
        fold=query_fold[qid] if in_queries else rng.permutation(np.arange(n_rows) % 3),
        basis=rng.permutation(n_rows)[:8],
        pairs=pairs,
        magnitude=rng.integers(1, 5, size=len(pairs)).astype(float),
        pair_weight=rng.integers(1, 4, size=len(pairs)).astype(float) if weighted else None,
        pair_fold=(couple * 7919) % 3,
        judging=(judging_X, judging_y, judging_qid),
        judging_pairs=np.column_stack([np.arange(6), np.arange(6) + 6]),
        new=draw(9)[0],
    )


@dataclass(frozen=True)
class Case:
    """An estimator and the data it is for.

    Attributes
    ----------
    data : {"queries", "ranking", "pairs"}
    outputs : int
    levels : int or None
        Of the labels; None for real-valued ones, all different.
    judged : {"itself", "splits", "eval_set"}
        What chooses or stops: the estimator's own way, splits that the caller makes, or an evaluation set.
    stream : bool
        Whether `partial_fit` gets the rows in two parts.
    """

    name: str
    model: Any
    data: str
    outputs: int = 1
    levels: int | None = None
    judged: str = "itself"
    stream: bool = False

    def __str__(self):
        return self.name

    @property
    def is_kernel(self):
        return hasattr(self.model, "kernel")

    @property
    def is_additive(self):
        return hasattr(self.model, "n_knots")

    @property
    def is_margin(self):
        return getattr(self.model, "loss", "squared") != "squared"

    @property
    def is_precomputed(self):
        return self.is_kernel and self.model.kernel == "precomputed"

    @property
    def chooses(self):
        """Whether something judges models while one is fitted."""
        return (
            hasattr(self.model, "alphas")
            or getattr(self.model, "early_stopping", False)
            or (self.is_additive and self.model.interactions == "auto")
        )

    @property
    def splits_itself(self):
        """Whether the estimator decides which rows or pairs score, and exactness does not say it for it."""
        exact = getattr(self.model, "cv", 5) == "leave-query-out"
        return self.chooses and self.judged == "itself" and not exact

    def problem(self, seed, *, weighted=False):
        return make_problem(
            seed,
            in_queries=self.data == "queries",
            outputs=self.outputs,
            levels=self.levels,
            weighted=weighted,
        )

    def fit(self, problem, convert=None, **parameters):
        """Fit the problem; `convert` stores matrices in another way."""
        model = clone(self.model).set_params(**parameters)
        if getattr(model, "basis", None) == "rows of the problem":
            model.set_params(basis=problem.basis)
        store = (lambda X: X) if convert is None else convert
        options: dict[str, Any] = {}
        is_listed = self.data == "pairs"
        if self.judged == "splits":
            fold = problem.pair_fold if is_listed else problem.fold
            model.set_params(
                cv=[(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
            )
        elif self.judged == "eval_set":
            X, y, qid = problem.judging
            rows = store(X)
            options["eval_set"] = (rows, problem.judging_pairs) if is_listed else (rows, y)
            if self.data == "queries":
                options["eval_set"] = (rows, y, qid)
        X = _kernel(problem.X, problem.X) if self.is_precomputed else store(problem.X)
        if is_listed:
            magnitude = None if getattr(model, "loss", None) == "logistic" else problem.magnitude
            return model.fit_pairs(X, problem.pairs, magnitude, problem.pair_weight, **options)
        if self.stream:
            return self._fit_stream(model, problem, store)
        options["query_importance"] = problem.importance
        return model.fit(X, problem.y, qid=problem.qid, sample_weight=problem.weight, **options)

    def _fit_stream(self, model, problem, store):
        second = np.isin(problem.fold, [0])  # whole queries
        for part in (~second, second):
            rows = problem.rows(np.flatnonzero(part)) if part.any() else None
            if rows is not None:
                model.partial_fit(store(rows.X), rows.y, qid=rows.qid, sample_weight=rows.weight)
        return model

    def scores(self, model, problem, convert=None):
        """Return the scores of the new rows, one column per output, up to a constant."""
        if self.is_precomputed:
            scores = model.predict(_kernel(problem.new, problem.X))
        elif self.is_kernel or self.is_additive or convert is not None:
            scores = model.predict(problem.new if convert is None else convert(problem.new))
        else:  # differences first: predict would round offsets of 1e9 into its scores
            scores = (problem.new - problem.new[0]) @ model.coef_.T
        scores = scores.reshape(len(problem.new), -1)
        return scores - scores.mean(axis=0)


def _kernel(A, B):
    return rbf_kernel(A, B, gamma=0.2)


ALPHAS = [0.25, 1.0, 4.0, 16.0]  # around what separates good from bad on these problems
SMALL = [0.01, 0.1, 1.0]
TIGHT = 1e-10  # residuals: what an iterative solver leaves must not hide a difference

RLS = [
    Case("RankRLS", RankRLS(), "queries"),
    Case("RankRLS, one ranking", RankRLS(query_weight="pairs"), "ranking", levels=4),
    Case("RankRLS eigen", RankRLS(solver="eigen", query_weight="equal"), "queries", levels=4),
    Case("RankRLS cg", RankRLS(solver="cg", tol=TIGHT), "queries"),
    Case("RankRLS cg, one ranking", RankRLS(solver="cg", tol=TIGHT), "ranking"),
    Case("RankRLS gdm", RankRLS(8.0, solver="gdm", tol=TIGHT, max_iter=5000), "queries"),
    Case("RankRLS egdm", RankRLS(solver="egdm", tol=TIGHT, max_iter=5000), "queries"),
    Case("RankRLS egdm-power", RankRLS(8.0, solver="egdm-power", tol=TIGHT, max_iter=5000), "ranking"),
    Case("RankRLS egdm-blocks", RankRLS(8.0, solver="egdm-blocks", tol=TIGHT, max_iter=5000), "queries"),
    Case("RankRLS stochastic", RankRLS(solver="stochastic", tol=TIGHT), "queries"),
    Case("RankRLS unit", RankRLS(ties="exclude", cost="unit", query_weight="equal"), "queries", levels=4),
    Case("RankRLS unit, ties", RankRLS(cost="unit"), "ranking", levels=4),
    Case(
        "RankRLS relative",
        RankRLS(ties="exclude", cost="relative", solver="cg", tol=TIGHT),
        "queries",
        levels=4,
    ),
    Case("RankRLS penalty power", RankRLS(penalty_power=0.25, solver="cg", tol=TIGHT), "queries"),
    Case("RankRLS early stopping", RankRLS(0.0, early_stopping=True), "queries", judged="eval_set"),
    Case("RankRLS early stopping, hold-out", RankRLS(0.0, early_stopping=True), "queries", levels=4),
    Case(
        "RankRLS early stopping, one ranking",
        RankRLS(0.0, early_stopping=True, validation_fraction=0.3),
        "ranking",
    ),
    Case("RankRLS outputs", RankRLS(solver="cg", tol=TIGHT), "queries", outputs=3),
    Case("RankRLS outputs, ties excluded", RankRLS(ties="exclude"), "ranking", outputs=2, levels=4),
    Case("RankRLS stream", RankRLS(), "queries", stream=True),
    Case("RankRLS pairs", RankRLS(), "pairs"),
    Case("RankRLS pairs cg", RankRLS(cost="unit", solver="cg", tol=TIGHT), "pairs"),
    Case(
        "RankRLS pairs, early stopping", RankRLS(0.0, early_stopping=True, validation_fraction=0.3), "pairs"
    ),
]
RLS_CV = [
    Case("RankRLSCV folds", RankRLSCV(ALPHAS, cv=3, tol=TIGHT), "queries"),
    Case("RankRLSCV splits", RankRLSCV(ALPHAS, tol=TIGHT), "queries", levels=4, judged="splits"),
    Case("RankRLSCV eval_set", RankRLSCV(ALPHAS, scoring="ndcg@3"), "queries", levels=4, judged="eval_set"),
    Case("RankRLSCV early stopping", RankRLSCV(ALPHAS, method="early-stopping"), "queries", judged="splits"),
    Case(
        "RankRLSCV penalty power",
        RankRLSCV(ALPHAS, penalty_power=[0.0, 0.25], method="tikhonov", tol=TIGHT),
        "queries",
        judged="splits",
    ),
    Case("RankRLSCV exact", RankRLSCV(ALPHAS, cv="leave-query-out", ties="exclude"), "queries", levels=4),
    Case("RankRLSCV pooled", RankRLSCV(ALPHAS, averaging="pooled", cv=4, tol=TIGHT), "ranking"),
    Case(
        "RankRLSCV pooled splits",
        RankRLSCV(ALPHAS, averaging="pooled", tol=TIGHT),
        "ranking",
        judged="splits",
    ),
    Case("RankRLSCV exact splits", RankRLSCV(ALPHAS, method="tikhonov"), "ranking", judged="splits"),
    Case("RankRLSCV pair out", RankRLSCV(ALPHAS, cv="leave-pair-out"), "ranking"),
    Case(
        "RankRLSCV pair out, levels", RankRLSCV(ALPHAS, cv="leave-pair-out", cost="unit"), "ranking", levels=3
    ),
    Case("RankRLSCV outputs", RankRLSCV(ALPHAS, cv=3, tol=TIGHT), "ranking", outputs=2),
    Case(
        "RankRLSCV outputs, ties excluded",
        RankRLSCV(ALPHAS, cv=3, ties="exclude"),
        "queries",
        outputs=2,
        levels=4,
    ),
    Case("RankRLSCV pairs", RankRLSCV(ALPHAS, cv=3, tol=TIGHT), "pairs"),
    Case(
        "RankRLSCV pairs, splits", RankRLSCV(ALPHAS, averaging="pooled", tol=TIGHT), "pairs", judged="splits"
    ),
    Case("RankRLSCV pairs, eval_set", RankRLSCV(ALPHAS), "pairs", judged="eval_set"),
    Case("RankRLSCV pairs, exact", RankRLSCV(ALPHAS, cv="leave-pair-out"), "pairs"),
]
SVM = [
    Case("RankSVM", RankSVM(0.1, tol=1e-6), "queries"),
    Case("RankSVM bundle", RankSVM(0.1, solver="bundle", tol=1e-10), "queries", levels=4),
    Case("RankSVM bundle, one ranking", RankSVM(0.1, solver="bundle", tol=1e-10), "ranking"),
    Case(
        "RankSVM squared",
        RankSVM(0.1, loss="squared_hinge", query_weight="size", tol=1e-10),
        "queries",
        levels=4,
    ),
    Case("RankSVM squared, one ranking", RankSVM(0.1, loss="squared_hinge", tol=1e-10), "ranking"),
    Case("RankSVM outputs", RankSVM(0.1, loss="squared_hinge", tol=1e-10), "queries", outputs=2, levels=4),
    Case(
        "RankSVM early stopping",
        RankSVM(1e-3, loss="squared_hinge", early_stopping=True),
        "queries",
        levels=4,
        judged="eval_set",
    ),
    Case("RankSVM pairs", RankSVM(0.1, loss="hinge", solver="bundle", tol=1e-10), "pairs"),
    Case("RankSVM pairs, logistic", RankSVM(0.1, loss="logistic", tol=1e-10), "pairs"),
    Case("RankSVMCV folds", RankSVMCV(SMALL, cv=3, loss="squared_hinge", tol=1e-9), "queries", levels=4),
    Case("RankSVMCV splits", RankSVMCV([0.1, 1.0], solver="bundle", tol=1e-6), "ranking", judged="splits"),
    Case(
        "RankSVMCV eval_set", RankSVMCV(SMALL, loss="squared_hinge", tol=1e-9), "queries", judged="eval_set"
    ),
    Case("RankSVMCV outputs", RankSVMCV(SMALL, cv=3, loss="squared_hinge", tol=1e-9), "ranking", outputs=2),
    Case("RankSVMCV pairs", RankSVMCV(SMALL, cv=3, loss="logistic", tol=1e-9), "pairs"),
    Case(
        "RankSVMCV pairs, splits", RankSVMCV(SMALL, loss="squared_hinge", tol=1e-9), "pairs", judged="splits"
    ),
]
CHOSEN = "rows of the problem"
KERNEL = [
    Case("KernelRankRLS rbf", KernelRankRLS(gamma=0.2), "queries"),
    Case(
        "KernelRankRLS linear", KernelRankRLS("linear", solver="eigen", ties="exclude"), "ranking", levels=4
    ),
    Case("KernelRankRLS cg", KernelRankRLS(gamma=0.2, solver="cg", tol=TIGHT), "queries"),
    Case("KernelRankRLS basis", KernelRankRLS("rbf", gamma=0.2, basis=CHOSEN), "queries"),
    Case("KernelRankRLS basis cg", KernelRankRLS("linear", basis=CHOSEN, solver="cg", tol=TIGHT), "ranking"),
    Case("KernelRankRLS scale", KernelRankRLS(gamma="scale"), "ranking"),
    Case("KernelRankRLS precomputed", KernelRankRLS("precomputed"), "queries", outputs=2),
    Case("KernelRankRLS pairs", KernelRankRLS(gamma=0.2), "pairs"),
    Case("KernelRankRLSCV", KernelRankRLSCV(alphas=ALPHAS, gamma=[0.1, 0.3]), "queries", levels=4),
    Case(
        "KernelRankRLSCV pair out", KernelRankRLSCV(alphas=ALPHAS, gamma=0.2, cv="leave-pair-out"), "ranking"
    ),
    Case(
        "KernelRankRLSCV pooled",
        KernelRankRLSCV("linear", alphas=ALPHAS, averaging="pooled"),
        "ranking",
        judged="splits",
    ),
    Case("KernelRankRLSCV basis", KernelRankRLSCV(alphas=ALPHAS, gamma=0.2, cv=3, basis=CHOSEN), "queries"),
    Case(
        "KernelRankRLSCV cg",
        KernelRankRLSCV(alphas=ALPHAS, gamma=0.2, solver="cg", tol=TIGHT, cv=3),
        "queries",
    ),
    Case(
        "KernelRankRLSCV cg, eval_set",
        KernelRankRLSCV("linear", alphas=ALPHAS, solver="cg", method="early-stopping"),
        "queries",
        judged="eval_set",
    ),
    Case("KernelRankRLSCV outputs", KernelRankRLSCV(alphas=ALPHAS, gamma=0.2, cv=3), "ranking", outputs=2),
    Case("KernelRankRLSCV pairs", KernelRankRLSCV(alphas=ALPHAS, gamma=0.2, cv="leave-pair-out"), "pairs"),
    Case("KernelRankSVM", KernelRankSVM(gamma=0.2, alpha=0.1, solver="bundle", tol=1e-10), "queries"),
    Case(
        "KernelRankSVM basis",
        KernelRankSVM(gamma=0.2, alpha=0.1, loss="squared_hinge", basis=CHOSEN, tol=1e-10),
        "ranking",
        outputs=2,
    ),
    Case(
        "KernelRankSVMCV folds",
        KernelRankSVMCV(alphas=SMALL, gamma=0.2, cv=3, loss="squared_hinge", tol=1e-9),
        "queries",
        levels=4,
    ),
    Case("KernelRankSVM pairs", KernelRankSVM("linear", alpha=0.1, loss="logistic", tol=1e-10), "pairs"),
]
ADDITIVE = [
    Case("AdditiveRanker", AdditiveRanker(0.03, n_knots=4, interactions=2, tol=1e-12), "queries", levels=4),
    Case("AdditiveRanker squared", AdditiveRanker(0.03, interactions=1, loss="squared"), "ranking"),
    Case(
        "AdditiveRanker monotone",
        AdditiveRanker(0.1, interactions=0, monotone=[1, 1, 1, 1], tol=1e-12),
        "queries",
        judged="itself",
    ),
    Case("AdditiveRanker auto", AdditiveRanker(0.1, n_knots=3, tol=1e-12), "queries", judged="eval_set"),
    Case("AdditiveRanker pairs", AdditiveRanker(0.1, interactions=1, tol=1e-12), "pairs"),
    Case(
        "AdditiveRankerCV splits",
        AdditiveRankerCV(SMALL, n_knots=[2, 4], interactions=[0, 1], tol=1e-12),
        "queries",
        levels=4,
        judged="splits",
    ),
    Case("AdditiveRankerCV folds", AdditiveRankerCV(SMALL, cv=3, interactions=0, tol=1e-12), "ranking"),
    Case(
        "AdditiveRankerCV squared",
        AdditiveRankerCV(SMALL, interactions=1, loss="squared", ties="exclude"),
        "queries",
        judged="eval_set",
    ),
    Case("AdditiveRankerCV pairs", AdditiveRankerCV(SMALL, cv=3, interactions=0, tol=1e-12), "pairs"),
]
CASES = [*RLS, *RLS_CV, *SVM, *KERNEL, *ADDITIVE]
