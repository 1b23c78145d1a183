"""One side of a table: its objects as explicit features Z, whose inner products are the kernel, ``K = ZZ'``.

A linear kernel with no more features than objects keeps the features as they are: no matrix of objects × objects
is made. Every other kernel is decomposed, ``K = VΛV'``, into ``Z = VΛ^½``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_array

from rankwise.arrays import Floats
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.runtime.decompositions import diagonalise, singular
from rankwise.runtime.memory import available_memory, fits

_ROUNDING = 1e-13  # of one: leverages and pivots below it are rounding errors
_ASYMMETRY = 1e-8  # of the largest kernel value


def require_memory(n_bytes: float, what: str, hint: str) -> None:
    """Raise unless the given number of bytes may be allocated."""
    if not fits(n_bytes):
        free = available_memory() / 2**30
        raise MemoryLimitError(f"{what} takes {n_bytes / 2**30:.1f} GiB, and {free:.1f} GiB are free.", hint)


def read_matrix(X: Any, name: str, *, gaps: bool = False) -> Any:
    """Return a dense or CSR matrix of finite numbers; in a dense one gaps may be NaN."""
    finite = "allow-nan" if gaps and not sp.issparse(X) else True
    try:
        return check_array(
            X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite, input_name=name
        )
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"{name} cannot be used: {error}", "pass a matrix of finite numbers."
        ) from error


@dataclass
class Side:
    """The kernel of one side, and after `fit` its training objects.

    Attributes
    ----------
    name : {"row", "column"}
        For messages and the names of parameters.
    kernel : str or callable
        A name of scikit-learn's `pairwise_kernels`, "precomputed", or a function of two matrices.
    parameters : mapping
        Passed to the kernel.
    kept : matrix or None
        The training objects that new ones are compared with; None where coefficients belong to features.
    """

    name: str
    kernel: str | Callable[..., Any]
    parameters: Mapping[str, Any]
    kept: Any = None

    def fit(self, objects: Any) -> tuple[Floats, Floats | None]:
        """Return Z, and the matrix that turns kernel values with the training objects into Z (None: features do)."""
        X = read_matrix(objects, f"{self.name}s")
        n, d = X.shape
        if n < 2:
            raise InvalidInputError(f"There is only one {self.name}.", f"pass at least two {self.name}s.")
        if self.kernel == "linear" and d <= n:
            return _dense(X), None
        require_memory(
            24.0 * n * n,
            f"The kernel matrix of {n:,} {self.name}s",
            f"use {self.name}_kernel='linear' with fewer features than {self.name}s.",
        )
        if self.kernel == "linear" and not sp.issparse(X):
            self.kept = X
            basis = find_basis(X, centred=False)  # keeps digits that inner products lose
            return basis.vectors * np.sqrt(basis.values), basis.vectors / np.sqrt(basis.values)
        if self.kernel == "precomputed":
            if n != d:
                raise InvalidInputError(
                    f"The kernel of {self.name}s has shape {n} × {d}.",
                    f"pass a square matrix, or features with another {self.name}_kernel.",
                )
            K = _dense(X)
        else:
            self.kept = X
            K = self._values(X)
        largest = np.abs(K).max()
        if np.abs(K - K.T).max() > _ASYMMETRY * largest:
            raise InvalidInputError(
                f"The kernel of {self.name}s is not symmetric.",
                f"{self.name}_kernel must give k(a, b) = k(b, a).",
            )
        values, vectors = diagonalise((K + K.T) / 2)
        if values[0] < -_ASYMMETRY * largest:
            raise InvalidInputError(
                f"The kernel of {self.name}s is indefinite: an eigenvalue is {values[0]:.3g}, the largest "
                f"{values[-1]:.3g}.",
                f"use a positive semidefinite {self.name}_kernel, such as 'rbf', or add to the diagonal.",
            )
        large = values > n * np.finfo(float).eps * values[-1]
        roots = np.sqrt(values[large])
        return vectors[:, large] * roots, vectors[:, large] / roots

    def coordinates(self, objects: Any, size: int) -> Floats:
        """Return the matrix that coefficients multiply: features, or kernel values with training objects."""
        X = read_matrix(objects, f"{self.name}s")
        expected = size if self.kept is None else self.kept.shape[1]
        if X.shape[1] != expected:
            raise InvalidInputError(
                f"The {self.name}s have {X.shape[1]} columns, and the model was fitted with {expected}.",
                f"pass the kernel values between them and the training {self.name}s."
                if self.kernel == "precomputed"
                else "pass the same features as in fit.",
            )
        return _dense(X) if self.kept is None else self._values(X)

    def _values(self, X: Any) -> Floats:
        try:
            if callable(self.kernel):
                K = self.kernel(X, self.kept, **self.parameters)
            else:
                K = pairwise_kernels(X, self.kept, metric=self.kernel, **self.parameters)
        except TypeError as error:
            raise InvalidInputError(
                f"{self.name}_kernel={self.kernel!r:.60} cannot be computed: {error}",
                f"check {self.name}_kernel_params.",
            ) from error
        K = _dense(K)
        if K.shape != (X.shape[0], self.kept.shape[0]) or not np.isfinite(K).all():
            raise InvalidInputError(
                f"{self.name}_kernel has values that are not finite, or another shape than {X.shape[0]} × "
                f"{self.kept.shape[0]}.",
                "scale the features, or correct the function.",
            )
        return K


def _dense(X: Any) -> Floats:
    if sp.issparse(X):
        require_memory(
            8.0 * X.shape[0] * X.shape[1], "A dense copy of sparse features", "pass fewer of them."
        )
        X = X.toarray()
    return np.asarray(X, dtype=np.float64)


@dataclass(frozen=True)
class Basis:
    """Z as ``UΣW'`` with orthonormal U and W, after subtracting `shift`.

    Attributes
    ----------
    vectors : (objects, rank) float64
    values : (rank,) float64
        Squares of the singular values: eigenvalues of the kernel, or of the centred kernel.
    shift : (features,) float64
    rotation : (features, rank) float64
    rest : (objects,) float64
        The share of each object's unit vector that no direction explains; exactly 0 where rounding is all there is.
    """

    vectors: Floats
    values: Floats
    shift: Floats
    rotation: Floats
    rest: Floats

    def coordinates(self, Z: Floats) -> Floats:
        """Return objects in the rotated features, whose training values are ``UΣ``."""
        return np.asarray((Z - self.shift) @ self.rotation)


def find_basis(Z: Floats, *, centred: bool) -> Basis:
    """Decompose features; columns may differ in scale by many orders of magnitude.

    The rank is found with columns of equal length. Only then are the scales put back, and `singular` keeps the
    digits of small columns beside large ones.
    """
    n = Z.shape[0]
    shift = Z.mean(axis=0) if centred else np.zeros(Z.shape[1])
    X = Z - shift
    length = np.linalg.norm(X, axis=0)
    X[:, length <= _ROUNDING * np.linalg.norm(Z, axis=0)] = 0.0  # a constant column
    length[length <= 0] = 1.0
    scaled = X / length
    if np.abs(scaled.T @ scaled - np.eye(length.size)).max() < _ROUNDING:  # eigenvectors of a kernel
        vectors, roots, rotation = scaled, length, np.eye(length.size)
    else:
        span, triangle, _ = scipy.linalg.qr(scaled, mode="economic", pivoting=True, check_finite=False)
        span = span[:, np.abs(np.diag(triangle)) > _ROUNDING * n]
        left, roots, rotation = singular(span.T @ X) if span.shape[1] else (span[:0], span[0, :0], X[:0].T)
        vectors = span @ left
    rest = (1 - 1 / n if centred else 1.0) - np.square(vectors).sum(axis=1)
    rest[rest < _ROUNDING * n] = 0.0
    return Basis(vectors, np.square(roots), shift, rotation, rest)
