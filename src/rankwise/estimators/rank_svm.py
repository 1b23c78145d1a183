"""Linear RankSVM: pairs with margins, in linearithmic time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from rankwise.data.validation import check_choice, check_count, check_number
from rankwise.design import Design
from rankwise.estimators.linear import LinearRanker
from rankwise.estimators.margin_fit import (
    MARGIN_LOSSES,
    HeldOut,
    MarginFit,
    label_margins,
    one_or_all,
    prepare_columns,
)
from rankwise.estimators.pairwise import PairwiseRanker
from rankwise.estimators.selection import judge_rows
from rankwise.estimators.training import TrainingData
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import Floats, MarginPairs, PairGraph
from rankwise.pairs.labels import QUERY_WEIGHTS, Cost, Ties
from rankwise.pairs.margins import PreferenceMargins
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.resampling import hold_out
from rankwise.solvers.choose import MARGIN_SOLVERS, choose_margin_solver
from rankwise.solvers.solution import Solution

__all__ = ["MarginRanker", "RankSVM"]


class MarginRanker(LinearRanker):
    """The part of `RankSVM` and `RankSVMCV` that does not depend on how alpha is found."""

    # Ties have no winner, and a listed pair's magnitude is its margin.
    ties: ClassVar[Ties] = "exclude"
    cost: ClassVar[Cost] = "magnitude"

    def _check_margin_parameters(self) -> None:
        check_choice("loss", self.loss, MARGIN_LOSSES)
        check_choice("query_weight", self.query_weight, QUERY_WEIGHTS)
        check_choice("solver", self.solver, ("auto", *MARGIN_SOLVERS))
        check_number("tol", self.tol, minimum=0, remedy="use a small positive number such as 1e-3")
        check_count("max_iter", self.max_iter)
        check_count("n_threads", self.n_threads)
        get_metric(self.scoring)
        if self.solver != "auto" and self.loss not in MARGIN_SOLVERS[self.solver].losses:
            able = [name for name, solver in MARGIN_SOLVERS.items() if self.loss in solver.losses]
            raise UnsuitableSolverError(
                f"solver={self.solver!r} cannot minimise loss={self.loss!r}.",
                f"use solver='auto' or one of {', '.join(map(repr, able))}.",
            )

    def _labelled_data(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any
    ) -> TrainingData:
        if self.loss == "logistic":
            raise InvalidInputError(
                "loss='logistic' is a model of listed pairs, and labels induce too many to list.",
                "use fit_pairs with the pairs that were observed, or loss='squared_hinge' for labels.",
            )
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        prepare_columns(data.design)
        return data

    def _margin_fit(self) -> MarginFit:
        solver = choose_margin_solver(self.loss) if self.solver == "auto" else self.solver
        return MarginFit(self.loss, solver, float(self.tol), self.max_iter)

    def _report_solutions(self, solutions: Sequence[Solution], several: bool, stacklevel: int) -> None:
        """Set the attributes that describe the solutions, and warn about bad ones."""
        self.coef_ = np.ascontiguousarray(one_or_all([s.coef for s in solutions], several))
        self.duality_gap_ = one_or_all([float(s.certificate) for s in solutions], several)
        self.n_iter_ = max(1, *(s.n_iter for s in solutions))
        for solution in solutions:
            if not solution.status.is_good:
                warnings.warn(
                    f"solver={self.solver_!r} stopped after {solution.n_iter} iterations at a duality gap of "
                    f"{solution.certificate:.1e} (tol={self.tol}): {solution.status.value}. Hint: raise max_iter or "
                    "tol, use a larger alpha, or scale the columns.",
                    ConvergenceWarning,
                    stacklevel=stacklevel,
                )


class RankSVM(PairwiseRanker, MarginRanker):
    """Rank by a linear function fitted with a pairwise loss that stops at a margin.

    Minimises the weighted mean over the pairs i > j that the labels order inside each query,
    ``(Σ ω loss) / (Σ ω) + alpha ‖w‖²`` with ``f = Xw`` and ``t = 1 - (f_i - f_j)``; `rankwise.objectives` states the
    weights ``ω``. Note that `RankRLS` minimises a sum instead: its `alpha` is on another scale. Time grows as
    ``rows · log(rows)``, however many different labels there are.

    Parameters
    ----------
    alpha : float, default=1e-4
        The penalty on ``‖w‖²``, positive; larger is simpler.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        ``max(0, t)``, its square, or ``log(1 + exp(f_j - f_i))``. The last is the model of Bradley and Terry for
        `fit_pairs` only; `predict_pairs` then returns probabilities.
    query_weight : {"size", "pairs", "equal"}, default="equal"
        What a query's total weight grows with: its rows, its pairs, or nothing.
    solver : {"auto", "smoothing", "bundle", "newton"}, default="auto"
        All find the same minimum. For the hinge: "smoothing" (L-BFGS on a hinge with a rounded kink, the default) or
        "bundle" (cutting planes with line search). For the smooth losses: "newton" (the default) or "bundle".
    tol : float, default=1e-3
        The duality gap to reach: the objective is proved to be within `tol` of its minimum.
    max_iter : int, default=None
        The most iterations; by default enough to converge.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    early_stopping : bool, default=False
        Stop when held-out rows are no longer ranked better, and keep the best iterate.
    patience : int, default=10
        How many iterations without improvement early stopping waits for.
    scoring : str or Metric, default="pairwise_error"
        What early stopping watches: a name of `rankwise.metrics.METRICS`.
    validation_fraction : float, default=0.1
        The share of queries (of rows, where there is one ranking) that early stopping holds out if `fit` gets
        no `eval_set`.
    random_state : int, default=0
        Seeds that choice.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    coef_ : ndarray of shape (features,), or (outputs, features)
    duality_gap_ : float, or ndarray of shape (outputs,)
        The objective at `coef_` is at most this much above its minimum: proved, not estimated.
    n_iter_ : int
    n_reads_ : int
        How many times the solvers read X.
    n_queries_, n_pairs_, n_ignored_queries_
        As in `RankRLS`; ignored queries play no part at all.
    solver_, loss_ : str
        The solver and the loss that were used.
    best_iteration_, history_
        With early stopping, as in `RankRLS`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVM
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    >>> y = [0, 1, 2, 0, 3]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankSVM(alpha=0.01).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid).tolist()
    [3, 2, 1, 2, 1]
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    """

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        loss: str = "hinge",
        query_weight: str = "equal",
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        warm_start: bool = False,
        early_stopping: bool = False,
        patience: int = 10,
        scoring: str | Metric = "pairwise_error",
        validation_fraction: float = 0.1,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.query_weight = query_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.patience = patience
        self.scoring = scoring
        self.validation_fraction = validation_fraction
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
        """Fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `RankRLS.fit`; the columns of `y` are fitted one by one.
        eval_set : tuple (X, y) or (X, y, qid), optional
            The rows that early stopping watches; by default a share of the training data.
        """
        self._check_parameters()
        if eval_set is not None and not self.early_stopping:
            raise InvalidInputError(
                "eval_set was passed, but nothing looks at it.",
                "set early_stopping=True, or use RankSVMCV to choose alpha on it.",
            )
        data = self._labelled_data(X, y, qid, sample_weight, query_importance)
        row_weight, held_out = data.row_weight, None
        if self.early_stopping:
            row_weight, held_out = self._held_out(data, eval_set)
        pairs = [label_margins(data, output, row_weight) for output in range(len(data.columns))]
        self._solve(data.design, pairs, held_out, several=data.several_outputs)
        if held_out is not None:
            sign = -1.0 if get_metric(self.scoring).greater_is_better else 1.0
            history = [[sign * error for error in rows.errors] for rows in held_out]
            self.history_ = history if data.several_outputs else history[0]
            self.best_iteration_ = one_or_all(
                [rows.best_iteration for rows in held_out], data.several_outputs
            )
        return self

    def predict_pairs(self, X_a: Any, X_b: Any) -> Floats:
        """Return how much each row of `X_a` is preferred to the same row of `X_b`.

        Parameters
        ----------
        X_a, X_b : array-like, sparse matrix or data frame of shape (pairs, features)

        Returns
        -------
        ndarray of shape (pairs,)
            The difference of the scores: positive where A is preferred, negative where B is. After a fit with
            ``loss="logistic"`` the probability that A is preferred.
        """
        difference: Floats = super().predict_pairs(X_a, X_b)
        return np.asarray(expit(difference)) if self.loss_ == "logistic" else difference

    def _learn(self, design: Design, graphs: Sequence[PairGraph]) -> None:
        """Fit listed pairs."""
        graph = graphs[0]
        assert isinstance(graph, PreferenceGraph)
        if self.loss == "logistic" and np.any(graph.difference != 1):
            raise InvalidInputError(
                "loss='logistic' has no margins, so magnitudes would be ignored.",
                "pass how sure a preference is as weight, and a tie as two opposite pairs of half the weight.",
            )
        prepare_columns(design)
        self._solve(design, [PreferenceMargins.of_graph(graph)], None, several=False)

    def _solve(
        self,
        design: Design,
        pairs: Sequence[MarginPairs],
        held_out: Sequence[HeldOut] | None,
        *,
        several: bool,
    ) -> None:
        starts = self._starts(len(pairs), design.shape[1])
        reads = design.reads
        fit = self._margin_fit()
        solutions = [
            fit.solve(
                design,
                own,
                float(self.alpha),
                start=start,
                held_out=None if held_out is None else held_out[output],
            )
            for output, (own, start) in enumerate(zip(pairs, starts, strict=True))
        ]
        self.solver_ = fit.solver
        self.loss_ = self.loss
        self.n_reads_ = design.reads - reads
        self._report_solutions(solutions, several, stacklevel=4)

    def _starts(self, n_outputs: int, n_features: int) -> list[Floats | None]:
        if self.warm_start and hasattr(self, "coef_"):
            last = np.atleast_2d(self.coef_)
            if last.shape == (n_outputs, n_features):
                return list(last.copy())
        return [None] * n_outputs

    def _held_out(self, data: TrainingData, eval_set: Any) -> tuple[Floats | None, list[HeldOut]]:
        """Return the weights of the rows that are trained on, and the rows that watch, output by output."""
        metric = get_metric(self.scoring)
        if eval_set is not None:
            design, judges = self._eval_set(data, eval_set, metric)
            return data.row_weight, [HeldOut(design, judge, self.patience) for judge in judges]
        is_held = hold_out(
            data.design, data.columns[0], data.queries, self.validation_fraction, self.random_state
        )
        rows = np.flatnonzero(is_held if data.row_weight is None else is_held & (data.row_weight > 0))
        design, queries = data.design.rows(rows), data.queries.subset(rows)
        judges = [
            judge_rows(metric, labels[rows], queries, self.n_threads, "what was held out")
            for labels in data.columns
        ]
        weight = np.ones(data.queries.n_rows) if data.row_weight is None else data.row_weight
        return weight * ~is_held, [HeldOut(design, judge, self.patience) for judge in judges]

    def _check_parameters(self) -> None:
        self._check_margin_parameters()
        check_number("alpha", self.alpha, minimum=0, remedy="use a positive number such as 1e-4")
        if self.alpha == 0:
            raise InvalidInputError(
                "alpha=0 leaves the minimum undetermined and no gap to prove.",
                "use a small one such as 1e-8.",
            )
        check_count("patience", self.patience, optional=False)
        if not isinstance(self.validation_fraction, Real) or not 0 < float(self.validation_fraction) < 1:
            raise InvalidInputError(
                f"validation_fraction={self.validation_fraction!r} is not between 0 and 1.", "use 0.1."
            )
