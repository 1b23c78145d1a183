"""What the kernel estimators share: the kernel, its reduced set, and prediction by dual coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Floats
from rankwise.data.validation import check_choice, check_count, check_number
from rankwise.design import Design, as_design
from rankwise.estimators.linear import LinearRanker
from rankwise.estimators.refusals import require_finite
from rankwise.exceptions import InvalidInputError
from rankwise.kernels import KERNELS, Kernel, KernelDesign, whole_entries
from rankwise.memory import MemoryBudget
from rankwise.problems.kernel import KernelProblem, check_precomputed, choose_basis, resolve_gamma
from rankwise.threads import one_blas_thread

__all__ = ["KernelRanker"]

_HAS_GAMMA = {"rbf", "poly", "polynomial", "sigmoid", "laplacian", "chi2"}
_HAS_OFFSET = {"poly", "polynomial", "sigmoid"}


class KernelRanker(LinearRanker):
    """A ranker of a kernel's space, whatever its loss: the kernel, its reduced set, prediction."""

    dual_coef_: Floats

    @one_blas_thread
    def predict(self, X: Any) -> Floats:
        """Return a score for each row of X: higher is better.

        Only differences between rows of one query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
            For ``kernel="precomputed"`` the kernel between these rows and all training rows.

        Returns
        -------
        scores : ndarray of shape (rows,), or (rows, outputs) for several outputs
        """
        check_is_fitted(self)
        X = self._check_matrix(X, reset=False)
        dual = np.ascontiguousarray(self.dual_coef_.T)
        with np.errstate(over="ignore", invalid="ignore"):
            return require_finite(self._scores(X, dual))

    def _scores(self, X: Any, dual: Floats) -> Floats:
        if self.kernel_.is_precomputed:
            if self.basis_ is None or not hasattr(X, "__getitem__"):
                whole = np.zeros((self.n_features_in_, *dual.shape[1:]))
                whole[slice(None) if self.basis_ is None else self.basis_] = dual
                return np.asarray(X @ whole, dtype=np.float64)
            return np.asarray(X[:, self.basis_] @ dual, dtype=np.float64)
        return KernelDesign(self.kernel_, whole_entries(X), self.X_fit_).dot(dual)

    def _design(self, X: Any) -> Design:
        """Return the rows as they are: which kernels may shift them, the kernels know."""
        return as_design(X, self.n_threads)

    def _problem(self, design: Design, row_weight: Floats | None, gamma: Any) -> KernelProblem:
        """Resolve the kernel and the reduced set, and set the attributes that describe them."""
        if not design.has_rows and self.kernel != "precomputed":
            raise InvalidInputError(
                f"kernel={self.kernel!r} looks at the rows of X, and a LinearOperator does not show them.",
                "pass a matrix, or kernel='precomputed' and an operator that multiplies by the kernel.",
            )
        X = whole_entries(design.stored())
        self.kernel_ = self._make_kernel(gamma, X, row_weight)
        if self.kernel_.is_precomputed:
            X = X.toarray() if hasattr(X, "toarray") else X
            check_precomputed(X)
        self.basis_ = choose_basis(self.basis, self.kernel_, X, self.random_state, row_weight)
        rows = slice(None) if self.basis_ is None else self.basis_
        self.X_fit_ = None if self.kernel_.is_precomputed else _contiguous(X[rows])
        return KernelProblem(self.kernel_, X, self.basis_, MemoryBudget(self.memory_limit), design.n_threads)

    def _make_kernel(self, gamma: Any, X: Any, row_weight: Floats | None) -> Kernel:
        parameters = dict(self.kernel_params or {})
        if isinstance(self.kernel, str):
            if self.kernel in _HAS_GAMMA:
                self.gamma_ = resolve_gamma(gamma, X, row_weight)
                parameters.setdefault("gamma", self.gamma_)
            if self.kernel in _HAS_OFFSET:
                parameters.setdefault("coef0", self.coef0)
            if self.kernel in {"poly", "polynomial"}:
                parameters.setdefault("degree", self.degree)
        return Kernel(self.kernel, parameters)

    def _check_kernel_parameters(self) -> None:
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS)
        check_number("degree", self.degree, minimum=1, remedy="use a whole number such as 3")
        check_count("memory_limit", self.memory_limit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _contiguous(rows: Any) -> Any:
    """Return rows that lie in memory as a file can hold them, so that a copy predicts the same bits."""
    if isinstance(rows, np.ndarray) and not rows.flags.c_contiguous and not rows.flags.f_contiguous:
        return np.ascontiguousarray(rows)
    return rows
