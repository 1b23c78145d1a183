"""Rankers of a kernel's space: the kernel, its reduced set, prediction by dual coefficients."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Floats, Matrix, MatrixLike, Rows
from rankwise.data.validation import check_precomputed, read_seed
from rankwise.design import Design, whole_entries
from rankwise.estimators.base import Ranker
from rankwise.estimators.fitted import require_finite
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.problem import KernelProblem, Problem
from rankwise.kernels import Kernel, resolve_gamma
from rankwise.kernels.basis import choose_basis
from rankwise.kernels.design import KernelDesign
from rankwise.runtime.memory import MemoryBudget
from rankwise.runtime.threads import one_blas_thread

__all__ = ["KernelRanker"]


class KernelRanker(Ranker):
    """A ranker whose scores are kernel values times `dual_coef_`."""

    _coefficients = "dual_coef_"

    dual_coef_: Floats
    X_fit_: Matrix | None
    gamma_: float
    kernel_: Kernel
    basis_: Rows | None

    @one_blas_thread
    def predict(self, X: MatrixLike) -> Floats:  # noqa: D102 - as in FittedRanker
        check_is_fitted(self)
        checked = self._check_rows(X, reset=False)
        dual = np.ascontiguousarray(self.dual_coef_.T)
        with np.errstate(over="ignore", invalid="ignore"):
            return require_finite(self._scores(checked, dual))

    def _scores(self, X: Matrix, dual: Floats) -> Floats:
        if self.kernel_.is_precomputed:
            if self.basis_ is None or not hasattr(X, "__getitem__"):
                whole = np.zeros((self.n_features_in_, *dual.shape[1:]))
                whole[slice(None) if self.basis_ is None else self.basis_] = dual
                return np.asarray(X @ whole, dtype=np.float64)
            return np.asarray(X[:, self.basis_] @ dual, dtype=np.float64)
        assert self.X_fit_ is not None
        return KernelDesign(self.kernel_, whole_entries(X), self.X_fit_).dot(dual)

    def _problem(
        self, problem: Problem, gamma: str | float, like: KernelProblem | None = None
    ) -> KernelProblem:
        """Resolve the kernel and the reduced set.

        Parameters
        ----------
        like : KernelProblem, optional
            That of another gamma, whose reduced set serves again unless it was chosen by the kernel.
        """
        design, row_weight = problem.design, problem.pairs.row_weight
        if not design.has_rows and self.kernel != "precomputed":
            raise InvalidInputError(
                f"kernel={self.kernel!r} looks at the rows of X, and a LinearOperator does not show them.",
                "pass a matrix, or kernel='precomputed' and an operator that multiplies by the kernel.",
            )
        X = whole_entries(design.stored())
        kernel = Kernel(self.kernel, {} if self.kernel_params is None else self.kernel_params)
        if kernel.takes("gamma") and "gamma" not in kernel.parameters:
            own = {**kernel.parameters, "gamma": resolve_gamma(gamma, X, row_weight)}
            kernel = Kernel(self.kernel, own)
        if kernel.is_precomputed:
            X = X.toarray() if hasattr(X, "toarray") else X
            check_precomputed(X)
        by_kernel = isinstance(self.basis, tuple) and self.basis[:1] == ("leverage",)
        basis = None if like is None else like.basis
        if self.basis is not None and (like is None or by_kernel):
            basis = choose_basis(self.basis, kernel, X, read_seed(self.random_state), row_weight)
        return KernelProblem(kernel, X, basis, MemoryBudget(self.memory_limit), design.n_threads)

    def _keep_kernel(self, problem: KernelProblem) -> None:
        """Set the attributes that describe the kernel and the reduced set."""
        self.kernel_, self.basis_ = problem.kernel, problem.basis
        if problem.kernel.takes("gamma"):
            self.gamma_ = problem.kernel.parameters["gamma"]
        rows = slice(None) if self.basis_ is None else self.basis_
        self.X_fit_ = None if self.kernel_.is_precomputed else _contiguous(problem.X[rows])

    def _require_matrix(self, design: Design, by_default: str) -> str:
        """Return the solver to take; operators are only multiplied by."""
        is_operator = not design.has_rows
        solver = str(("cg" if is_operator else by_default) if self.solver == "auto" else self.solver)
        if is_operator and solver != "cg":
            raise InvalidInputError(
                f"solver={self.solver!r} needs the kernel as a matrix.", "use solver='cg' with an operator."
            )
        return solver

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _contiguous(rows: Matrix) -> Matrix:
    """Return rows that lie in memory as a file can hold them, so that a copy predicts the same bits."""
    if isinstance(rows, np.ndarray) and not rows.flags.c_contiguous and not rows.flags.f_contiguous:
        return np.ascontiguousarray(rows)
    return rows
