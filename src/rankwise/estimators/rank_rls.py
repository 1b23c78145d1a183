"""Linear RankRLS: least squares over pairs, without ever listing them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from rankwise.data.validation import check_choice
from rankwise.design import Design
from rankwise.estimators.linear_rls import LinearRankRLS, check_number
from rankwise.estimators.pairwise import PairwiseRanker
from rankwise.exceptions import UnsuitableSolverError
from rankwise.objectives import SquaredObjective
from rankwise.pairs.graph import Floats, PairGraph
from rankwise.solvers.choose import SOLVERS, SolverOptions, choose_solver, fits_direct, matrix_bytes
from rankwise.solvers.solution import Solution, Status

__all__ = ["RankRLS"]


class RankRLS(PairwiseRanker, LinearRankRLS):
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

    coef_: Floats

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
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        self._learn(data.design, self._graphs(data))
        if data.several_outputs:
            self.coef_ = np.atleast_2d(self.coef_)  # y may have a single column
        return self

    def _learn(self, design: Design, graphs: Sequence[PairGraph]) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        self.solver_ = self._resolve_solver(design, forms_matrix=graphs[0].blocks is not None)
        solutions = [self._solve(SquaredObjective(design, graph)) for graph in graphs]
        coef = np.column_stack([s.coef for s in solutions]) if len(solutions) > 1 else solutions[0].coef
        self.coef_ = np.ascontiguousarray(coef.T)
        self.n_iter_ = max(s.n_iter for s in solutions)

    def _solve(self, objective: SquaredObjective) -> Solution:
        options = SolverOptions(tol=self.tol, max_iter=self.max_iter, precondition=self.precondition)
        solution = SOLVERS[self.solver_](objective, float(self.alpha), options)
        if solution.status is Status.SINGULAR:
            warnings.warn(
                f"X has no more than {solution.rank} independent directions inside queries, fewer than its "
                f"{objective.n_features} columns, and alpha={self.alpha} does not choose between the "
                "solutions: the one of least norm was taken. Hint: use alpha > 0.",
                scipy.linalg.LinAlgWarning,
                stacklevel=4,
            )
        elif not solution.status.is_good:
            warnings.warn(
                f"solver={self.solver_!r} stopped after {solution.n_iter} iterations at a relative residual of "
                f"{solution.certificate:.1e} (tol={self.tol}): {solution.status.value}. Hint: raise max_iter "
                "or tol, use a larger alpha, or scale the columns.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return solution

    def _resolve_solver(self, design: Design, *, forms_matrix: bool) -> str:
        n_features = design.shape[1]
        if self.precondition is not None and not forms_matrix and not fits_direct(n_features):
            raise UnsuitableSolverError(
                f"precondition={self.precondition!r} needs the diagonal of X'LX, which for pairs comes only with the "
                f"whole matrix of {n_features} × {n_features}.",
                "use precondition=None, and scale the columns before if their scales differ much.",
            )
        if self.solver == "auto":
            return choose_solver(design, forms_matrix=forms_matrix)
        if self.solver in {"direct", "eigen"} and not fits_direct(n_features):
            raise UnsuitableSolverError(
                f"solver={self.solver!r} forms a matrix of {n_features} × {n_features}, which takes about "
                f"{matrix_bytes(n_features) / 2**30:.1f} GiB, more than is free.",
                "use solver='cg', which needs only a few vectors of that length.",
            )
        return self.solver

    def _check_parameters(self) -> None:
        self._check_loss_parameters()
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        if self.precondition is not None:
            check_choice("precondition", self.precondition, ("jacobi",))
        check_number("alpha", self.alpha, minimum=0, remedy="use 0 or a positive number")
