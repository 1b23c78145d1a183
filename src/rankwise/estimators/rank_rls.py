"""Linear RankRLS: least squares over pairs, without ever listing them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankwise.data.queries import Queries
from rankwise.data.validation import check_choice, check_importance
from rankwise.design import Design, as_design
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError, NoPairsError, UnsuitableSolverError
from rankwise.objectives import SquaredObjective
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import (
    COSTS,
    QUERY_WEIGHTS,
    TIES,
    LabelGraph,
    Levels,
    find_levels,
    label_graph,
    laplacian_depends_on_labels,
)
from rankwise.solvers.choose import SOLVERS, SolverOptions, choose_solver, fits_direct, matrix_bytes
from rankwise.solvers.solution import Solution, Status

__all__ = ["RankRLS"]

# Pairs whose labels differ by less than this share of the largest difference dominate the relative cost.
_NEAR_TIE = 1e-4


class RankRLS(Ranker):
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
        What a query's total weight grows with: its rows, its pairs, or nothing.
    ties : {"include", "exclude"}, default="include"
        Whether rows with equal labels are asked to have equal scores.
    cost : {"magnitude", "unit", "relative"}, default="magnitude"
        The wanted difference of a pair: the difference of its labels, 1, or the difference of its labels
        with the error measured relative to it (which needs ``ties="exclude"``).
    solver : {"auto", "direct", "eigen", "cg"}, default="auto"
        All give the same model. "direct" and "eigen" form a features × features matrix; "cg" does not.
    precondition : {None, "jacobi"}, default=None
        For "cg" only: helps where columns have very different scales, hurts on tf-idf text.
    tol : float, default=1e-5
        Iterative solvers stop at this relative residual of the normal equations.
    max_iter : int, default=None
        The most iterations; by default enough to converge.
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
    n_features_in_ : int
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
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.query_weight = query_weight
        self.ties = ties
        self.cost = cost
        self.solver = solver
        self.precondition = precondition
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        query_importance: Any = None,
    ) -> RankRLS:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        y : array-like of shape (rows,) or (rows, outputs)
            Labels: grades or real-valued scores, higher is better.
        qid : array-like of shape (rows,), optional
            The query of each row; anything hashable, in any order. Without it all rows form one ranking.
        sample_weight : array-like of shape (rows,), optional
            A pair weighs the product of its rows' weights: weight 2 equals duplication, 0 removal.
        query_importance : dict or array-like of shape (rows,), optional
            A factor on the weight of every pair of a query.
        """
        self._check_parameters()
        X, y, queries, row_weight = self._check_fit_input(X, y, qid, sample_weight)
        importance = check_importance(query_importance, queries)
        design = as_design(X, self.n_threads)
        solver = self._resolve_solver(design)

        labels = LabelInput(y, queries, row_weight, importance)
        self._warn_about_near_ties(labels)
        solutions = [
            self._solve(SquaredObjective(design, graph), solver) for graph in self._graphs(labels, design.n_threads)
        ]
        coef = np.column_stack([s.coef for s in solutions]) if y.ndim == 2 else solutions[0].coef

        self.coef_ = np.ascontiguousarray(coef.T)
        self.n_iter_ = max(s.n_iter for s in solutions)
        self.solver_ = solver
        self.fitted_with_qid_ = qid is not None
        self.n_queries_ = len(queries)
        counts = np.array([level.n_pairs for level in labels.levels])
        ignored = np.array([int((~level.ordered).sum()) for level in labels.levels])
        self.n_pairs_ = counts if y.ndim == 2 else int(counts[0])
        self.n_ignored_queries_ = ignored if y.ndim == 2 else int(ignored[0])
        return self

    def predict(self, X: Any) -> Floats:
        """Return a score for each row of X: higher is better.

        Only differences between rows of one query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
        check_is_fitted(self)
        design = as_design(self._check_matrix(X, reset=False), self.n_threads)
        return design.dot(np.ascontiguousarray(self.coef_.T))

    def _graphs(self, labels: LabelInput, n_threads: int) -> list[LabelGraph]:
        """Return one graph for all outputs where they can share it, else one an output."""
        options: dict[str, Any] = {
            "ties": self.ties,
            "cost": self.cost,
            "query_weight": self.query_weight,
            "row_weight": labels.row_weight,
            "query_importance": labels.importance,
            "n_threads": n_threads,
        }
        shared = not laplacian_depends_on_labels(options["ties"], options["cost"], options["query_weight"])
        if labels.y.ndim == 2 and shared:
            return [label_graph(labels.y, labels.queries, **options)]
        return [
            label_graph(column, labels.queries, levels=levels, **options)
            for column, levels in zip(labels.columns, labels.levels, strict=True)
        ]

    def _solve(self, objective: SquaredObjective, solver: str) -> Solution:
        options = SolverOptions(tol=self.tol, max_iter=self.max_iter, precondition=self.precondition)
        solution = SOLVERS[solver](objective, float(self.alpha), options)
        if solution.status is Status.SINGULAR:
            warnings.warn(
                f"X has no more than {solution.rank} independent directions inside queries, fewer than its "
                f"{objective.n_features} columns, and alpha={self.alpha} does not choose between the "
                "solutions: the one of least norm was taken. Hint: use alpha > 0.",
                scipy.linalg.LinAlgWarning,
                stacklevel=3,
            )
        elif not solution.status.is_good:
            warnings.warn(
                f"solver={solver!r} stopped after {solution.n_iter} iterations at a relative residual of "
                f"{solution.certificate:.1e} (tol={self.tol}): {solution.status.value}. Hint: raise max_iter "
                "or tol, use a larger alpha, or scale the columns.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution

    def _resolve_solver(self, design: Design) -> str:
        if self.solver == "auto":
            return choose_solver(design)
        n_features = design.shape[1]
        if self.solver in {"direct", "eigen"} and not fits_direct(n_features):
            raise UnsuitableSolverError(
                f"solver={self.solver!r} forms a matrix of {n_features} × {n_features}, which takes about "
                f"{matrix_bytes(n_features) / 2**30:.1f} GiB, more than is free.",
                "use solver='cg', which needs only a few vectors of that length.",
            )
        return self.solver

    def _check_parameters(self) -> None:
        check_choice("query_weight", self.query_weight, QUERY_WEIGHTS)
        check_choice("ties", self.ties, TIES)
        check_choice("cost", self.cost, COSTS)
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        if self.precondition is not None:
            check_choice("precondition", self.precondition, ("jacobi",))
        if self.cost == "relative" and self.ties == "include":
            raise InvalidInputError(
                "cost='relative' divides by the difference of the labels, which is 0 for tied rows.",
                "set ties='exclude'.",
            )
        _check_number("alpha", self.alpha, minimum=0, remedy="use 0 or a positive number")
        _check_number("tol", self.tol, minimum=0, remedy="use a small positive number such as 1e-5")
        _check_count("max_iter", self.max_iter)
        _check_count("n_threads", self.n_threads)

    def _warn_about_near_ties(self, labels: LabelInput) -> None:
        if self.cost != "relative":
            return
        for levels in labels.levels:
            gaps = np.diff(levels.value)[levels.query[1:] == levels.query[:-1]]
            if gaps.size and gaps.min() < _NEAR_TIE * gaps.max():
                warnings.warn(
                    f"Labels that differ by only {gaps.min():.3g} weigh 1/difference² in cost='relative' and "
                    "dominate the fit. Hint: round the labels, or use cost='magnitude'.",
                    UserWarning,
                    stacklevel=3,
                )


@dataclass
class LabelInput:
    """Labels that came through the door, with their levels."""

    y: Floats
    queries: Queries
    row_weight: Floats | None
    importance: Floats | None

    def __post_init__(self) -> None:
        self.columns: list[Floats] = (
            [self.y] if self.y.ndim == 1 else list(np.ascontiguousarray(self.y.T))
        )
        self.levels: list[Levels] = [find_levels(c, self.queries, self.row_weight) for c in self.columns]
        for output, levels in enumerate(self.levels):
            if levels.n_pairs == 0:
                which = f"output {output} of y" if self.y.ndim == 2 else "y"
                single = self.queries.sizes.max(initial=0) <= 1
                raise NoPairsError(
                    f"No query has two different labels in {which}, so nothing says which row is better.",
                    "every query has a single row: check that qid groups the rows that compete."
                    if single
                    else "check that y holds the labels and that qid groups rows with different labels.",
                )


def _check_number(name: str, value: object, *, minimum: float, remedy: str) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(value) or value < minimum:
        raise InvalidInputError(f"{name}={value!r} is not a finite number of at least {minimum}.", f"{remedy}.")


def _check_count(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
        raise InvalidInputError(f"{name}={value!r} is not a positive integer.", "use None for the default.")
