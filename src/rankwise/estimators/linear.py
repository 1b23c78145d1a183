"""Linear rankers: the pairwise squared loss and losses with margins, at one alpha or with alpha chosen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import field, replace
from itertools import zip_longest
from numbers import Real
from typing import ClassVar, Never, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Labels, Matrix, MatrixLike
from rankwise.data.validation import check_alphas, check_numbers
from rankwise.design import Design, as_design, comparing_design
from rankwise.estimators.base import Ranker, SelectionMixin, is_on_cluster, require_finite
from rankwise.estimators.parameters import BaseEstimator, estimator, one_of, parameter, refuse_unknown
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.fitting.margins import MarginFit, curvature_of, margins_of
from rankwise.fitting.problem import Problem, Restriction
from rankwise.fitting.squares import LeastSquares
from rankwise.holdout.spaces import ColumnSpace
from rankwise.losses import LOSSES, MARGIN_LOSSES, HingeLoss
from rankwise.metrics import Metric
from rankwise.objectives import PassedQueries, SquaredObjective
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES, Cost, QueryWeight, Ties
from rankwise.pairs.plan import Plan
from rankwise.runtime.memory import check_columns_fit
from rankwise.runtime.threads import blas_held, one_blas_thread
from rankwise.selection.exact import choose_exactly, exact_for_columns
from rankwise.selection.grids import POWERS_OF_TWO
from rankwise.selection.krylov import ColumnCoordinates, Coordinates
from rankwise.selection.path import (
    EvalSetMonitor,
    choose_on_paths,
    margin_problems,
    paths_of,
    set_apart,
    squared_problems,
    stop_early,
)
from rankwise.selection.plan import is_exact_name
from rankwise.selection.result import Selection, one_or_all, outputs_of
from rankwise.selection.surface import AVERAGING, METHODS, SurfaceSearch, table_tolerance
from rankwise.solvers.choose import ITERATIVE, MARGIN_SOLVERS, SOLVERS, SolverOptions
from rankwise.solvers.momentum import MOMENTUM
from rankwise.solvers.solution import Solution

MARGIN_GRID = tuple(10.0**-power for power in range(1, 7))  # the default of `alphas`
# Up to here the matrix X'LX is small, and solving with it after every call takes less than a second.
_FEW_COLUMNS = 2048
# Below, OpenBLAS takes no second thread, and holding it would be a tenth of the time.
_MANY_ENTRIES = 1 << 13


@estimator()
class LinearMixin(BaseEstimator):
    """Adds scores ``X @ coef_``, and signs, a prior and penalties of coefficients."""

    # It needs only products with X, which workers of a cluster can do.
    _takes_clusters: ClassVar[bool] = True

    positive: bool | ArrayLike = False
    prior: ArrayLike | None = None
    column_penalty: ArrayLike | None = None

    coef_: Floats = field(init=False)

    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better, and only differences inside a query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
            A Dask collection has lazy scores, a Dask array.

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
        if is_on_cluster(X):
            check_is_fitted(self)
            return self._cluster.predicted(self, X)  # type: ignore[no-any-return]
        quick = self._quick_scores(X)
        if quick is not None:
            return quick
        check_is_fitted(self)
        # A sparse product multiplies every value, so that one that is not finite shows in the scores.
        checked = self._check_rows(X, reset=False, look_at_values=not issparse(X))
        design, coef = as_design(checked, self.n_threads), np.ascontiguousarray(self.coef_.T)
        held = blas_held() if design.nnz >= _MANY_ENTRIES else nullcontext()
        with np.errstate(over="ignore", invalid="ignore"), held:
            scores = design.dot(coef)
        if not np.isfinite(scores).all():
            self._check_rows(X, reset=False)
        return require_finite(scores)

    def _quick_scores(self, X: MatrixLike) -> Floats | None:
        """Return the scores of a small plain array; None where something has to be looked at.

        One query of some rows is what a service scores at a time, and the checks of scikit-learn take ten times as
        long as the product. A value that is not finite shows in the scores.
        """
        if type(X) is not np.ndarray or X.dtype != np.float64 or not X.flags.c_contiguous:
            return None
        is_known = "coef_" in self.__dict__ and "feature_names_in_" not in self.__dict__
        if not is_known or X.shape[1:] != (self.n_features_in_,) or not 0 < X.size < _MANY_ENTRIES:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Floats = X @ np.ascontiguousarray(self.coef_.T)
        return scores if np.isfinite(scores).all() else None

    def _design(self, X: Matrix) -> Design:
        check_columns_fit(self.n_features_in_)
        return comparing_design(X, self.n_threads)

    def _restriction(self) -> Restriction | None:
        """Return the restriction by `positive`, `prior` and `column_penalty`; None without one."""
        prior, penalty, signs = map(self._one_per_column, ("prior", "column_penalty", "positive"))
        if signs is not None and not np.isin(signs, (-1, 0, 1)).all():
            raise InvalidInputError("positive has other entries than 1, -1 and 0.", "use 0 for any sign.")
        if prior is None and penalty is None and (signs is None or not signs.any()):
            return None
        if penalty is not None and (penalty.min() < 0 or not penalty.any()):
            raise InvalidInputError(
                "column_penalty is negative, or 0 everywhere.",
                "use positive numbers, and 0 for free columns.",
            )
        found = Restriction(None if signs is None else signs.astype(np.int64), prior, penalty)
        refused = {
            "signs": (found.is_signed, {HingeLoss.name, *SOLVERS, *MARGIN_SOLVERS}),
            "columns without a penalty": (found.has_free_columns, {HingeLoss.name, "bundle"}),
            "positive, prior or column_penalty": (True, {"stochastic", "egdm-blocks"}),
        }
        for what, (is_given, cannot) in refused.items():
            for name, instead in (("loss", "squared_hinge"), ("solver", "auto")):
                if is_given and (value := getattr(self, name, "auto")) in cannot:
                    raise InvalidInputError(
                        f"{name}={value!r} does not support {what}.", f"use {name}={instead!r}."
                    )
        return found

    def _one_per_column(self, name: str) -> Floats | None:
        given: ArrayLike | None = getattr(self, name)
        if name == "positive" and isinstance(given, (bool, np.bool_)):
            given = np.ones(self.n_features_in_) if given else None
        return None if given is None else check_numbers(name, given, self.n_features_in_, "column")

    def _refuse_restriction(self, what: str, remedy: str) -> None:
        """Raise where a parameter says something of the coefficients."""
        if self._restriction() is not None:
            raise InvalidInputError(f"{what} does not support positive, prior or column_penalty.", remedy)


@estimator()
class SquaresMixin(BaseEstimator):
    """Adds the parameters of the pairwise squared loss."""

    query_weight: QueryWeight = one_of(QUERY_WEIGHTS, default="size")
    ties: Ties = one_of(TIES, default="include")
    cost: Cost = one_of(COSTS, default="magnitude")
    tol: float = parameter("not negative", default=1e-5)
    max_iter: int | None = parameter("count", None, default=None)


@estimator()
class RankRLS(LinearMixin, SquaresMixin, Ranker):
    """Rank by a linear function fitted with the pairwise squared loss.

    Minimises, over the pairs i > j that the labels order inside each query,
    ``Σ ω (z - (f_i - f_j))² + alpha ‖w‖²`` with ``f = Xw``; `rankwise.objectives` states the weights ``ω``
    and the wanted differences ``z``. For one global ranking this is ridge regression with a free intercept.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty on ``‖w‖²``; larger is simpler. With 0, a singular problem gets its solution of least
        norm, with a warning.
    query_weight : {"size", "pairs", "equal"}, default="size"
        Whether a query's total weight grows with its rows, its pairs, or not at all.
    ties : {"include", "exclude"}, default="include"
        Whether rows with equal labels are asked to have equal scores.
    cost : {"magnitude", "unit", "relative"}, default="magnitude"
        The wanted difference of a pair: the difference of its labels, 1, or the difference of its labels
        with the error measured relative to it (which needs ``ties="exclude"``).
    solver : str, default="auto"
        All give the same model. "direct" and "eigen" form a features × features matrix; "cg" (conjugate gradients)
        does not. "stochastic" reads the data once in blocks and continues with "cg" from there: for data that are
        slow to read. "gdm" and "egdm" are gradient descent with momentum, with a given pace, and with one
        estimated from the spectrum (by Lanczos; "egdm-power": as in the paper; "egdm-blocks": from one read).
    tol : float, default=1e-5
        Iterative solvers stop at this relative residual of the normal equations; if the scales of columns
        differ by more than a factor of 30, of rescaled columns, which changes no model.
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
        gradients with "auto", otherwise of the named solver. "direct" and "eigen" have no iterates, and raise an
        error.
    patience : int, default=10
        Early stopping ends after this many iterations without improvement (with "stochastic": reads of the data).
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
        Seed of the choice of rows or pairs that early stopping holds out.
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
    n_components_ : int
        After `fit_pairs`: connected components among the rows in pairs.
    n_unpaired_rows_ : int
        After `fit_pairs`: rows in no pair.
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

    alpha: float = parameter("not negative", default=1.0, kw_only=False)
    solver: str = one_of(SOLVERS, default="auto")
    learning_rate: float | None = parameter("positive", None, default=None)
    momentum: float = parameter("share", default=MOMENTUM)
    penalty_power: float = parameter("finite", default=0.0)
    early_stopping: bool = parameter("boolean", default=False)
    patience: int = parameter("count", default=10)
    scoring: str | Metric = "pairwise_error"
    validation_fraction: float = parameter("positive share", default=0.1)

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        self._forget("_passed", "n_samples_seen_")
        fit = self._least_squares()
        if self.early_stopping:
            if self.solver not in {"auto", *ITERATIVE}:
                raise InvalidInputError(
                    f"early_stopping chooses among iterates, and solver={self.solver!r} has none.",
                    "use solver='auto' or another that iterates, or early_stopping=False.",
                )
            self._refuse_restriction(
                "early_stopping", "use early_stopping=False, and choose alpha by RankRLSCV."
            )
            fit.resolved(problem.design, forms_matrix=False)  # raises if something is missing
            watched = self._watched(problem, eval_set)
            self._keep(stop_early(fit, problem, watched, self._metric, self.patience), problem)
            return
        graphs = problem.pairs.graphs()
        fit = fit.resolved(problem.design, forms_matrix=graphs[0].blocks is not None)
        solutions = [fit.solve(SquaredObjective(problem.design, graph)) for graph in graphs]
        self._keep(_selection_of(fit, solutions), problem)

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
        before: PassedQueries | None = self.__dict__.get("_passed")
        problem = self._labelled(X, y, qid, sample_weight, None, is_part=True, reset=before is None)
        self._refuse_restriction("partial_fit", "use fit, or partial_fit without it.")
        design, pairs, fit = problem.design, problem.pairs, self._least_squares()
        if design.shape[1] > _FEW_COLUMNS:
            raise InvalidInputError(
                f"partial_fit keeps a matrix of columns × columns, and X has {design.shape[1]} columns.",
                f"use at most {_FEW_COLUMNS} columns, or fit from a store with solver='stochastic'.",
            )
        ids = frozenset() if qid is None else frozenset(pairs.queries.ids.tolist())
        settings = (self.ties, self.cost, self.query_weight, pairs.n_outputs, qid is not None)
        # Nothing is kept before everything is done, so that a failure leaves the model as it was.
        with np.errstate(over="ignore", invalid="ignore"):
            objectives = [SquaredObjective(design, graph) for graph in pairs.graphs()]
            sums = tuple((objective.matrix(), objective.rhs) for objective in objectives)
            passed = PassedQueries(settings, sums, ids, pairs.n_rows, pairs.attributes)
            passed = passed if before is None else _sum(before, passed)
        fit = replace(fit, solver="direct") if fit.solver in {"auto", "stochastic"} else fit
        solutions = [fit.solve(objective) for objective in passed.objectives()]
        self._describe(passed.attributes, with_qid=qid is not None)
        found = _selection_of(fit, solutions).with_facts(n_samples_seen_=passed.n_rows, _passed=passed)
        self._keep(found, problem)
        return self

    def _least_squares(self) -> LeastSquares:
        options = SolverOptions(self.tol, self.max_iter, self.learning_rate, self.momentum)
        restriction = self._restriction()
        if restriction is not None and restriction.is_signed and self.alpha == 0:
            raise InvalidInputError(
                "positive with alpha=0 leaves no gap to prove.", "use a small alpha such as 1e-8."
            )
        return LeastSquares(self.solver, float(self.alpha), float(self.penalty_power), options, restriction)


def _selection_of(fit: LeastSquares, solutions: Sequence[Solution]) -> Selection:
    """Return the models of one alpha."""
    facts = {"solver_": fit.solver, "n_iter_": max(solution.n_iter for solution in solutions)}
    models = outputs_of([solution.coef for solution in solutions])
    return Selection(models, (), facts=facts, notices=fit.notices(solutions))


def _sum(before: PassedQueries, new: PassedQueries) -> PassedQueries:
    """Add the queries of a call of `partial_fit` to those before it, if they fit."""
    if new.settings != before.settings:
        raise InvalidInputError(
            "ties, cost, query_weight, the outputs of y or the presence of qid changed between calls of partial_fit.",
            "use the same in every call, or start anew with clone(model).",
        )
    if again := before.ids & new.ids:
        raise InvalidInputError(
            f"{len(again)} of the {len(new.ids)} queries came in an earlier call already, for example "
            f"{next(iter(again))!r}; pairs between the two calls would be missing.",
            "pass all rows of a query in one call: sort the rows by qid, and cut them between queries.",
        )
    return before.plus(new)


@estimator(RankRLS)
class RankRLSCV(LinearMixin, SquaresMixin, SelectionMixin, Ranker):
    """`RankRLS` with its regularisation chosen on held-out rows.

    Every alpha of the grid and every iteration of conjugate gradients share one Krylov space, so one run
    gives the validation error of them all. The three methods of the large-scale RankRLS paper are three ways
    to read that table.

    Parameters
    ----------
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid; order and duplicates do not matter. The default grid is extended, by at most its length on
        either side, while the best value is at an end; with another grid, a best alpha at an end gives a warning.
    cv : "auto", "time", "leave-query-out", "leave-pair-out", int, splitter or list of (train, test), default="auto"
        Folds of whole queries, of rows where there is one ranking, or of pairs in `fit_pairs`. "time" sorts queries by
        their ids, such as dates, and scores each of 5 folds by a model of earlier queries alone; the first sixth of the
        queries only trains. "leave-query-out" and "leave-pair-out" are exact and take one decomposition for every
        alpha: each query, or each pair of rows of one global ranking, is scored by the converged models that did not
        see it.
        Leave-pair-out takes time in proportion to the square of the rows: it shows its progress on a terminal, warns
        beforehand from 10,000,000,000 pairs times alphas on (about 31,000 rows for the default grid), and ``cv=10`` is
        the alternative. "auto" makes 5 folds; with ``method="tikhonov"`` and
        few columns or rows it is exact instead, and leaves out queries, pairs up to 2000 rows, else 10 folds of rows.
        Leave-pair-out has a closed form for every `query_weight` and any row weights, but not with ties left out or
        ``cost="relative"``: "auto" then makes folds, and `cv_` says so. Not used where there is an `eval_set`.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    method : {"auto", "hybrid", "tikhonov", "early-stopping"}, default="auto"
        "tikhonov" lets every alpha converge and chooses among them; "early-stopping" uses no penalty and chooses the
        iteration; "hybrid" chooses both, and is the fastest. "auto" is "tikhonov" where hold-out is exact, which
        has no other, and else "hybrid".
    averaging : {"folds", "pooled"}, default="folds"
        For folds of rows of one ranking, and of pairs: average the folds' errors, or score all held-out rows
        together. With ``cv="leave-pair-out"`` of listed pairs, a fold is all comparisons of two rows, and "folds"
        counts every two rows alike: the `weight` of their pairs matters between them only when pooled. Pooled scores of
        rows are shifted so that a fold's training rows have the same mean score as mean label.
    penalty_power : float or list of float, default=0.0
        As in `RankRLS`; from a list the best is chosen.
    query_weight, ties, cost
        As in `RankRLS`.
    patience : int, default=10
        Stop after this many iterations in which no cell of the table improved.
    tol : float, default=1e-5
        The relative residual at which an alpha has converged.
    max_iter : int, default=None
        The most iterations; by default 1000.
    positive, prior
        As in `RankRLS`.
    column_penalty
        As in `RankRLS`. With this, `positive` or `prior`, every alpha is fitted separately, on folds or on an eval set:
        there is no surface, and ``method`` is "tikhonov".
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds and of the choice of scoring rows.
    n_threads : int, default=None
        As in `RankRLS`.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
        The chosen alpha; 0 after early stopping.
    best_iteration_ : int, or ndarray of shape (outputs,)
    best_score_ : float, or ndarray of shape (outputs,)
        The value of `scoring` in the chosen cell. It is optimistic: the choice was made on the same rows. The score
        of the whole procedure is that of `rankwise.model_selection.cross_validate_ranker`.
    alphas_ : ndarray of shape (alphas,)
        The grid, in increasing order, with its extensions.
    surface_ : ndarray of shape (alphas, iterations), or (outputs, alphas, iterations)
        The value of `scoring` for every alpha after every iteration. Exact hold-out has no iterations, and so neither
        this, nor `unpenalised_`, `best_iteration_` and `keeps_basis_`.
    unpenalised_ : ndarray of shape (iterations,), or (outputs, iterations)
        The same without penalty (alpha = 0), whether or not 0 is in the grid; early stopping uses it.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, at the iteration the method would choose for it.
    choices_ : dict
        For each method, the ``(alpha, iteration, value)`` it reads from the surface; a list over outputs if
        there are several. "tikhonov" is exact only where the run went on until every alpha converged.
    penalty_power_ : float
    method_ : str
    cv_ : str
        A description of the validation. With folds, at most about 20,000 held-out rows (whole queries) or pairs score.
    n_iter_ : int
        Iterations of the selection.
    n_products_ : int
        Products of the Hessian with a vector, in selection and refit together.
    keeps_basis_ : bool
        Whether the Krylov basis was stored; if it would not have fitted in memory, a short recurrence ran.
    coef_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_, n_components_, n_unpaired_rows_
        As in `RankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = RankRLSCV().fit(X, y, qid=np.arange(300) // 10)
    >>> model.surface_.shape[0]
    21
    >>> bool(model.best_score_ < 0.3)
    True
    """

    alphas: ArrayLike = parameter(default=POWERS_OF_TWO, kw_only=False)
    method: str = one_of(METHODS, default="auto")
    averaging: str = one_of(AVERAGING, default="folds")
    penalty_power: ArrayLike = parameter(Real, "array-like", default=0.0)
    patience: int = parameter("count", default=10)

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Choose by a decomposition where hold-out is exact, on paths with restrictions, else on the surface."""
        metric, averaging, restriction = self._metric, self.averaging, self._restriction()
        alphas = check_alphas(self.alphas, positive=restriction is not None)
        powers: list[float] = check_numbers("penalty_power", np.atleast_1d(self.penalty_power)).tolist()
        if not powers:
            raise InvalidInputError(
                "penalty_power is an empty list.", "use 0.0, or a list such as [0.0, 0.5]."
            )
        exact, power, self.method_ = None, powers[0], "tikhonov"
        if restriction is None:
            exact = exact_for_columns(self.cv, self.method, problem, alphas.size, averaging)
        elif (
            self.method not in {"auto", "tikhonov"}
            or len(powers) > 1
            or (eval_set is None and is_exact_name(self.cv))
        ):
            raise InvalidInputError(
                "With positive, prior or column_penalty there is neither a surface nor a closed form.",
                "use cv=5 or an eval_set, method='auto' and one value of penalty_power.",
            )
        plan = self._plan(problem, eval_set, exact)
        if restriction is not None:
            options = SolverOptions(tol=self.tol, max_iter=self.max_iter)
            fit = LeastSquares("auto", 1.0, power, options, restriction)
            fit = fit.resolved(problem.design, forms_matrix=problem.pairs.has_blocks)
            paths = paths_of(squared_problems(fit, problem), problem, plan, metric)
            selection, solutions = choose_on_paths(paths, alphas, POWERS_OF_TWO)
            selection = replace(selection, notices=fit.notices(solutions))
            selection = selection.with_facts(n_iter_=max(one.n_iter for one in solutions))
        elif plan.is_exact:
            spaces = [ColumnSpace.of_design(problem.design, power) for power in powers]
            tried = [choose_exactly(space, problem, plan, metric, averaging, alphas) for space in spaces]
            best = int(np.argmin([one.error for one in tried]))
            selection, power = tried[best].with_facts(n_iter_=0), powers[best]
        else:
            self.method_ = "hybrid" if self.method == "auto" else self.method
            tol = table_tolerance(problem.design, self.method_, self.tol)
            search = SurfaceSearch(metric, self.method_, averaging, self.patience, tol, self.max_iter)
            coordinates: list[Coordinates] = [ColumnCoordinates(problem.design, power) for power in powers]
            selection, surfaces = search.choose(problem, plan, alphas, coordinates)
            power = powers[coordinates.index(surfaces.coordinates)]
        if selection.choices is None:
            selection = replace(selection, choices={"tikhonov": selection.chosen})
            selection = selection.with_facts(n_products_=0)
        self._keep(selection.with_facts(penalty_power_=power), problem)


@estimator()
class MarginMixin(BaseEstimator):
    """Adds pairs with margins, their solvers, and the attributes of their solutions."""

    # Ties have no winner, and a listed pair's magnitude is its margin.
    ties: ClassVar[Ties] = "exclude"
    cost: ClassVar[Cost] = "magnitude"
    _has_gap = True
    loss: str = one_of(MARGIN_LOSSES, default="hinge")
    query_weight: QueryWeight = one_of(QUERY_WEIGHTS, default="equal")
    solver: str = one_of(MARGIN_SOLVERS, default="auto")
    tol: float = parameter("share", default=1e-3)
    max_iter: int | None = parameter("count", None, default=None)

    def predict_pairs(self, X: MatrixLike, pairs: ArrayLike | MatrixLike) -> Floats:  # noqa: D102 - as in RankingMixin
        difference = super().predict_pairs(X, pairs)  # type: ignore[misc]  # of Ranker
        return np.asarray(expit(difference)) if LOSSES[self.loss_].is_probability else difference

    predict_pairs.__doc__ = Ranker.predict_pairs.__doc__

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        if self.solver != "auto" and self.loss not in MARGIN_SOLVERS[self.solver].losses:
            able = [name for name, solver in MARGIN_SOLVERS.items() if self.loss in solver.losses]
            raise UnsuitableSolverError(
                f"solver={self.solver!r} cannot minimise loss={self.loss!r}.",
                f"use solver='auto' or one of {', '.join(map(repr, able))}.",
            )

    def _require_labels(self, y: Labels | None) -> None:
        if LOSSES[self.loss].is_probability:
            raise InvalidInputError(
                "loss='logistic' is a model of listed pairs, and labels induce too many to list.",
                "use fit_pairs with the pairs that were observed, or loss='squared_hinge' for labels.",
            )
        super()._require_labels(y)  # type: ignore[misc]

    def _solve_margins(
        self,
        problem: Problem,
        restriction: Restriction | None = None,
        plan: Plan | None = None,
        *,
        starts: Sequence[Floats] = (),
        monitors: Sequence[EvalSetMonitor] = (),
    ) -> Selection:
        """Solve the problem of every output, with a plan at the alpha that its splits choose on the grid."""
        design, pairs = problem.design, problem.pairs
        margins = [margins_of(pairs, self.loss, output) for output in range(pairs.n_outputs)]
        settings = (self.loss, self.solver, float(self.tol), self.max_iter, restriction)
        fit = MarginFit.of_pairs(margins[0], *settings)
        if plan is not None:
            paths = paths_of(margin_problems(fit, problem, margins), problem, plan, self._metric)
            found, solutions = choose_on_paths(paths, check_alphas(self.alphas), MARGIN_GRID)
        else:
            solutions, alpha = [], float(self.alpha)
            for output, (own, start, monitor) in enumerate(zip_longest(margins, starts, monitors)):
                curvature = curvature_of(design, pairs.graph(output))
                solution = fit.solve(design, own, alpha, start=start, curvature=curvature, watcher=monitor)
                solutions.append(solution)
            found = Selection([solution.coef for solution in solutions], ())
        gaps = [float(solution.certificate) for solution in solutions]
        found = found.with_facts(
            solver_=fit.solver,
            loss_=fit.loss,
            n_iter_=max(1, *(solution.n_iter for solution in solutions)),
            duality_gap_=one_or_all(gaps, pairs.several_outputs),
        )
        return replace(found, notices=fit.notices(solutions))


@estimator(RankRLS)
class RankSVM(MarginMixin, LinearMixin, Ranker):
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
        Whether a query's total weight grows with its rows, its pairs, or not at all.
    solver : {"auto", "smoothing", "bundle", "newton"}, default="auto"
        All find the same minimum. For the hinge: "smoothing" (L-BFGS on a hinge with a rounded kink, the default) or
        "bundle" (cutting planes with line search). For the smooth losses: "newton" (the default) or "bundle".
        Where rounding stops "bundle", because some columns are much larger than others, the default solver goes on
        from there; `solver_` names the last one.
    tol : float, default=1e-3
        Stopping tolerance, below 1: stop once the objective minus its proved lower bound is at most `tol` times the
        objective at ``w = 0`` minus that bound. The rule does not depend on units, and does not accept ``w = 0``
        unless it is the minimum.
    max_iter : int, default=None
        The most iterations; by default enough to converge.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    early_stopping : bool, default=False
        Stop the solver when held-out rows are no longer ranked better, and keep its best iterate.
    patience, scoring, validation_fraction
        As in `RankRLS`.
    positive, prior
        As in `RankRLS`.
    column_penalty
        As in `RankRLS`. In place of 0 stands next to nothing of the curvature of the column, and `duality_gap_` is that
        of this objective.
    random_state, n_threads
        As in `RankRLS`.

    Attributes
    ----------
    coef_ : ndarray of shape (features,), or (outputs, features)
    duality_gap_ : float, or ndarray of shape (outputs,)
        The objective at `coef_` is at most this much above its minimum: proved, not estimated, and not relative.
    n_iter_ : int
    n_queries_, n_pairs_, n_features_in_, feature_names_in_, n_components_, n_unpaired_rows_
        As in `RankRLS`.
    n_ignored_queries_ : int, or ndarray of shape (outputs,)
        Queries without such a pair, which play no part.
    solver_ : str
        The solver that was used.
    loss_ : str
        The loss that was used.
    best_iteration_, history_
        As in `RankRLS`.

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

    alpha: float = parameter("positive", default=1e-4, kw_only=False)
    warm_start: bool = parameter("boolean", default=False)
    early_stopping: bool = parameter("boolean", default=False)
    patience: int = parameter("count", default=10)
    scoring: str | Metric = "pairwise_error"
    validation_fraction: float = parameter("positive share", default=0.1)

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Solve the problem of every output."""
        design, pairs, monitors = problem.design, problem.pairs, []
        design.expect_products()
        if self.early_stopping:
            pairs, rows, scorers = set_apart(problem, self._watched(problem, eval_set), self._metric)
            monitors = [EvalSetMonitor(rows, [own], self.patience) for own in scorers]
        last = np.atleast_2d(getattr(self, "coef_", np.empty(0)))
        is_start = self.warm_start and last.shape == (pairs.n_outputs, design.shape[1])
        starts = list(last.copy()) if is_start else []
        own = Problem(design, pairs)
        found = self._solve_margins(own, self._restriction(), starts=starts, monitors=monitors)
        chosen = [choice for one in monitors for choice in one.choices(float(self.alpha))]
        histories = [one.history[0] for one in monitors] or None
        self._keep(replace(found, chosen=chosen, histories=histories), problem)


@estimator(RankSVM, RankRLSCV)
class RankSVMCV(MarginMixin, LinearMixin, SelectionMixin, Ranker):
    """`RankSVM` with alpha chosen on held-out rows, or on held-out pairs.

    The grid is walked from the largest alpha to the smallest, each fit starting from the one before, and only as long
    as that can help: the walk ends where every alpha down to a hundredth of the best one had a larger held-out error,
    by more than the standard error of the difference over the folds. (With an `eval_set`, and where alphas are so large
    that the loss is nearly linear, the walk goes on.)

    Parameters
    ----------
    alphas : array-like, default=1e-1, 1e-2, ..., 1e-6
        The grid; the default one goes on beyond its ends as in `RankRLSCV`.
    cv : "auto", "time", int or splitter, default="auto"
        Folds of whole queries, or of rows where there is one ranking, or of listed pairs; "auto" makes 5. "time" is
        that of `RankRLSCV`. Not used where `fit` gets an `eval_set`.
    scoring : "auto", str or Metric, default="auto"
        As in `RankRLSCV`. "auto" is the pairwise error, and for ``loss="logistic"`` the log-loss of the held-out pairs:
        the order alone says nothing about the scale of the probabilities that `predict_pairs` returns.
    loss, query_weight, solver, tol, max_iter, positive, prior, column_penalty
        As in `RankSVM`.
    random_state
        As in `RankRLSCV`; by default all held-out rows or pairs score.
    n_threads
        As in `RankSVM`.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
        The chosen alpha; of equally good ones the largest.
    alphas_, best_score_, cv_
        As in `RankRLSCV`.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, averaged over held-out queries, or over the folds of one ranking or of
        pairs; NaN for those that the walk did not come to, or that came to the grid for another output.
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

    alphas: ArrayLike = parameter(default=MARGIN_GRID, kw_only=False)
    scoring: str | Metric = "auto"

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Choose alpha, and fit all pairs with it."""
        problem.design.expect_products()
        plan = self._plan(problem, eval_set)
        self._keep(self._solve_margins(problem, self._restriction(), plan), problem)
