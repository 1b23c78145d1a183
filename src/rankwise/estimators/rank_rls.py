"""Linear RankRLS: least squares over pairs, without ever listing them."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import ClassVar, Never, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from rankwise.arrays import ArrayLike, Labels, MatrixLike, RandomSource
from rankwise.data.queries import Queries
from rankwise.data.validation import check_qid, check_weights
from rankwise.estimators.base import POSITIVE, SHARE, Constraints, say
from rankwise.estimators.fitted import refuse_unknown
from rankwise.estimators.linear import LinearRanker
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.problem import Problem
from rankwise.fitting.squares import LeastSquares
from rankwise.metrics import Metric
from rankwise.objectives import SquaredObjective
from rankwise.objectives.accumulated import PassedQueries
from rankwise.pairs.labels import find_levels, label_graph, laplacian_depends_on_labels
from rankwise.pairs.plan import Plan
from rankwise.runtime.threads import one_blas_thread
from rankwise.selection.path import stop_early
from rankwise.selection.result import WRITTEN, outputs_of
from rankwise.solvers.choose import ITERATIVE, SOLVERS, SolverOptions
from rankwise.solvers.momentum import MOMENTUM

__all__ = ["RankRLS"]

# Up to here the matrix X'LX is small, and solving with it after every call takes less than a second.
_FEW_COLUMNS = 2048


class RankRLS(LinearRanker):
    """Rank by a linear function fitted with the pairwise squared loss.

    Minimises, over the pairs i > j that the labels order inside each query,
    ``Σ ω (z - (f_i - f_j))² + alpha ‖w‖²`` with ``f = Xw``; `rankwise.objectives` states the weights ``ω``
    and the wanted differences ``z``. For one global ranking this is ridge regression with a free intercept.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty on ``‖w‖²``; larger is simpler. With 0, a singular problem is answered by its solution of
        least norm, with a warning.
    query_weight : {"size", "pairs", "equal"}, default="size"
        Whether a query's total weight grows with its rows, its pairs, or not at all.
    ties : {"include", "exclude"}, default="include"
        Whether rows with equal labels are asked to have equal scores.
    cost : {"magnitude", "unit", "relative"}, default="magnitude"
        The wanted difference of a pair: the difference of its labels, 1, or the difference of its labels
        with the error measured relative to it (which needs ``ties="exclude"``).
    solver : str, default="auto"
        All give the same model. "direct" and "eigen" form a features × features matrix; "cg" (conjugate gradients)
        does not. "stochastic" reads the data once in blocks and continues with "cg" from there: for data whose
        reading is slow. "gdm" and "egdm" are gradient descent with momentum, with a given pace, and with one
        estimated from the spectrum (by Lanczos; "egdm-power": as in the paper; "egdm-blocks": from one read).
    precondition : {None, "jacobi"}, default=None
        For "cg" only: helps where columns have very different scales, hurts on tf-idf text.
    tol : float, default=1e-5
        Iterative solvers stop at this relative residual of the normal equations; where columns differ in scale by
        more than about 30, of columns brought to like scales, which changes no model.
    max_iter : int, default=None
        The most iterations; by default enough to converge.
    learning_rate : float, default=None
        η of "gdm"; by default the best that needs no knowledge of the spectrum.
    momentum : float, default=0.9
        μ of "gdm".
    penalty_power : float, default=0.0
        Penalise ``w'D^(2 penalty_power)w``, ``D = diag(X'LX)``, instead of ``w'w``: a prior that expects smaller
        coefficients of columns that vary much. 0 is off, 0.25 often helps on text.
    early_stopping : bool, default=False
        Stop the solver when held-out rows are no longer ranked better, and keep its best iterate: of conjugate
        gradients with "auto", otherwise of the solver that is named. "direct" and "eigen" have no iterates, and are
        refused.
    patience : int, default=10
        How many iterations (reads, of "stochastic") without improvement early stopping waits for.
    scoring : str or Metric, default="pairwise_error"
        The metric of early stopping: a name of `rankwise.metrics.METRICS`. Pairs are scored by "pairwise_error" or
        "concordance" only.
    validation_fraction : float, default=0.1
        The share of queries (of rows, where there is one ranking; of pairs, in `fit_pairs`) that early stopping
        holds out if it gets no `eval_set`.
    positive : bool or array-like of shape (features,), default=False
        Whether no coefficient may be negative; or a sign per column: 1 for not negative, -1 for not positive, 0 for
        any.
    prior : array-like of shape (features,), default=None
        A model to stay near: the penalty is ``alpha ‖w - prior‖²``.
    column_penalty : array-like of shape (features,), default=None
        A factor on `alpha` for each column. 0 leaves it free, which takes two products with X per such
        column; one that is constant inside queries keeps its penalty.
    random_state : int, RandomState, Generator or None, default=0
        Seeds that choice.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    coef_ : ndarray of shape (features,), or (outputs, features)
    n_iter_ : int
        Iterations of an iterative solver, 0 otherwise.
    n_queries_ : int
    n_pairs_ : int, or ndarray of shape (outputs,)
        Pairs of rows with different labels inside a query.
    n_ignored_queries_ : int, or ndarray of shape (outputs,)
        Queries without such a pair. With ``ties="include"`` they still enter the objective.
    solver_ : str
        The solver that was used.
    best_iteration_ : int, or ndarray of shape (outputs,)
        With early stopping: the iteration that was kept.
    history_ : list of float, or list of lists
        With early stopping: the value of `scoring` after each iteration.
    n_features_in_ : int
    n_components_, n_unpaired_rows_ : int
        After `fit_pairs`: connected components among the rows in pairs, and rows in no pair.
    feature_names_in_ : ndarray of shape (features,)
        Only where X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    >>> y = [0, 1, 2, 0, 3]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankRLS(alpha=0.1).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid).tolist()
    [3, 2, 1, 2, 1]
    >>> model.score(X, y, qid=qid)
    1.0
    """

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}

    n_samples_seen_: int

    _parameter_constraints: ClassVar[Constraints] = {
        **LinearRanker._parameter_constraints,
        "learning_rate": [POSITIVE, None],
        "momentum": [SHARE],
        "precondition": [StrOptions({"jacobi"}), None],
        "penalty_power": [Real],
        "solver": [StrOptions({"auto", *SOLVERS})],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        solver: str = "auto",
        precondition: str | None = None,
        tol: float = 1e-5,
        max_iter: int | None = None,
        learning_rate: float | None = None,
        momentum: float = MOMENTUM,
        penalty_power: float = 0.0,
        early_stopping: bool = False,
        patience: int = 10,
        scoring: str | Metric = "pairwise_error",
        validation_fraction: float = 0.1,
        positive: bool | ArrayLike = False,
        prior: ArrayLike | None = None,
        column_penalty: ArrayLike | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        self._forget("_passed", "n_samples_seen_")
        fit = self._least_squares()
        if self.early_stopping:
            remedy = "use early_stopping=False, and choose alpha by RankRLSCV."
            self._refuse_restriction("early_stopping, which stops on the way to a model without it", remedy)
            fit.resolved(problem.design, forms_matrix=False)  # says what is missing
            watched = self._watched(problem, eval_set)
            self._keep(stop_early(fit, problem, watched, self._metric, self.patience), problem)
            return
        graphs = problem.pairs.graphs()
        fit = fit.resolved(problem.design, forms_matrix=graphs[0].blocks is not None)
        solutions = [fit.solve(SquaredObjective(problem.design, graph)) for graph in graphs]
        coefs = outputs_of([solution.coef for solution in solutions])
        facts = {"solver_": fit.solver, "n_iter_": max(solution.n_iter for solution in solutions)}
        self._keep_models(coefs, facts, problem)
        say(fit.notices(solutions))

    @one_blas_thread
    def partial_fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **unknown: Never,
    ) -> Self:
        """Fit the model to more queries, as if all calls so far had been one.

        The model is exactly that of `fit` on all rows together, from the sums ``X'LX`` and ``X'r`` over the queries so
        far: a matrix of columns × columns, for at most 2,048 columns. For more columns, or more rows than fit into
        memory, fit from a store (`rankwise.save_store`) with ``solver="stochastic"``. `fit` starts anew, and so does
        the first call after it. The sums are part of a copy or a pickle of the model, but neither of `clone` nor of a
        file written by `save`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        y : array-like of shape (rows,) or (rows, outputs)
        qid : array-like of shape (rows,), optional
            A query must come whole, in one call. Without qid the rows of each call are one query.
        sample_weight : array-like of shape (rows,), optional

        Returns
        -------
        self
            With ``n_samples_seen_``.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankRLS
        >>> rng = np.random.default_rng(0)
        >>> X, y, qid = rng.normal(size=(90, 4)), rng.normal(size=90), np.repeat(np.arange(9), 10)
        >>> model = RankRLS()
        >>> for rows in np.split(np.arange(90), 3):
        ...     model = model.partial_fit(X[rows], y[rows], qid[rows])
        >>> bool(np.allclose(model.coef_, RankRLS().fit(X, y, qid).coef_))
        True
        """
        refuse_unknown("partial_fit", unknown)
        self._check_parameters()
        if self.early_stopping:
            raise InvalidInputError(
                "early_stopping holds rows out of a fit, and partial_fit keeps only sums over queries.",
                "set early_stopping=False, and score the model between the calls.",
            )
        self._refuse_restriction("partial_fit", "use fit, or partial_fit without it.")
        self._require_labels(y)
        before: PassedQueries | None = self.__dict__.get("_passed")
        checked, labels = self._check_labelled(X, y, reset=before is None, min_rows=1)
        queries = check_qid(qid, labels.shape[0])
        row_weight = check_weights(sample_weight, labels.shape[0], may_all_be_zero=True)  # others may come
        design, fit = self._design(checked), self._least_squares()
        if design.shape[1] > _FEW_COLUMNS:
            raise InvalidInputError(
                f"partial_fit keeps a matrix of columns × columns, and X has {design.shape[1]} columns.",
                f"use at most {_FEW_COLUMNS} columns, or fit from a store with solver='stochastic'.",
            )
        settings = (self.ties, self.cost, self.query_weight, labels.shape[1:], qid is not None)
        if before is not None:
            _check_continues(before, settings, queries if qid is not None else None)
        options = {
            "ties": self.ties,
            "cost": self.cost,
            "query_weight": self.query_weight,
            "row_weight": row_weight,
            "n_threads": design.n_threads,
        }
        columns = [labels] if labels.ndim == 1 else list(np.ascontiguousarray(labels.T))
        shares_graph = not laplacian_depends_on_labels(self.ties, self.cost, self.query_weight)
        wanted = [labels] if shares_graph else columns
        levels = [find_levels(column, queries, row_weight) for column in columns]
        # Nothing is kept before everything is done, so that a failure leaves the model as it was.
        with np.errstate(over="ignore", invalid="ignore"):
            objectives = [SquaredObjective(design, label_graph(one, queries, **options)) for one in wanted]
            passed = PassedQueries(
                settings,
                PassedQueries.sums_of(objectives),
                frozenset(queries.ids.tolist()) if qid is not None else frozenset(),
                labels.shape[0],
                len(queries),
                np.array([level.n_pairs for level in levels]),
                np.array([int((~level.ordered).sum()) for level in levels]),
            )
            passed = passed if before is None else before.plus(passed)
        fit = replace(fit, solver="direct") if fit.solver in {"auto", "stochastic"} else fit
        solutions = [fit.solve(objective) for objective in passed.objectives()]
        coefs = [solution.coef for solution in solutions]
        several = labels.ndim > 1
        self._forget(*WRITTEN, "n_components_", "n_unpaired_rows_")
        self.__dict__.update(
            coef_=np.array(coefs[0].T, order="C") if shares_graph or not several else np.array(coefs),
            solver_=fit.solver,
            n_iter_=max(solution.n_iter for solution in solutions),
            n_samples_seen_=passed.n_rows,
            n_queries_=passed.n_queries,
            n_pairs_=passed.n_pairs if several else int(passed.n_pairs[0]),
            n_ignored_queries_=passed.n_ignored if several else int(passed.n_ignored[0]),
            fitted_with_qid_=qid is not None,
            _passed=passed,
        )
        say(fit.notices(solutions))
        return self

    def _least_squares(self) -> LeastSquares:
        options = SolverOptions(
            tol=self.tol,
            max_iter=self.max_iter,
            precondition=self.precondition,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
        )
        restriction = self._restriction()
        if restriction is not None and self.solver in {"stochastic", "egdm-blocks"}:
            raise InvalidInputError(
                f"solver={self.solver!r} reads the data in blocks, and knows no prior, signs or penalties of columns.",
                "use solver='auto' or 'cg'.",
            )
        if restriction is not None and restriction.is_signed and self.alpha == 0:
            raise InvalidInputError(
                "positive with alpha=0 leaves no gap to prove.", "use a small alpha such as 1e-8."
            )
        return LeastSquares(self.solver, float(self.alpha), float(self.penalty_power), options, restriction)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.early_stopping and self.solver not in {"auto", *ITERATIVE}:
            raise InvalidInputError(
                f"early_stopping chooses among iterates, and solver={self.solver!r} has none.",
                "use solver='auto' or another that iterates, or early_stopping=False.",
            )


def _check_continues(before: PassedQueries, settings: tuple[object, ...], queries: Queries | None) -> None:
    """Raise unless a call of `partial_fit` fits those before it."""
    if settings != before.settings:
        raise InvalidInputError(
            "ties, cost, query_weight, the outputs of y or the presence of qid changed between calls of partial_fit.",
            "use the same in every call, or start anew with clone(model).",
        )
    again = [] if queries is None else [query for query in queries.ids.tolist() if query in before.ids]
    if again:
        raise InvalidInputError(
            f"{len(again)} of the {len(queries or ())} queries came in an earlier call already, for example "
            f"{again[0]!r}; pairs between the two calls would be missing.",
            "pass all rows of a query in one call: sort the rows by qid, and cut them between queries.",
        )
