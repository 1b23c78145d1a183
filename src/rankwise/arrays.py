"""The array types that rankwise computes with, and those that it takes from its callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from typing_extensions import TypeIs

__all__ = [
    "AnyArray",
    "ArrayLike",
    "Bools",
    "DType",
    "Estimator",
    "Floats",
    "Importance",
    "InMemory",
    "Ints",
    "Labels",
    "Matrix",
    "MatrixLike",
    "RandomSource",
    "Rows",
    "SparseMatrix",
    "Splits",
    "is_sparse",
    "shape_of",
]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]  # numbers of rows
Splits = list[tuple[Rows, Rows]]  # training and test rows of each fold
AnyArray = npt.NDArray[Any]  # of whatever type
DType = np.dtype[Any]
RandomSource: TypeAlias = "int | np.random.RandomState | np.random.Generator | None"  # a `random_state`
Importance = Mapping[Any, float] | ArrayLike  # of queries: by id, or one value per row


class Matrix(Protocol):
    """Rows and columns after validation: an array, a sparse matrix, or an operator, which cannot be indexed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> DType:
        """Of the entries."""

    def __getitem__(self, index: Any, /) -> Any:
        """Return some of the rows, or of the entries."""

    def __matmul__(self, other: Any, /) -> Any:
        """Multiply."""

    def astype(self, dtype: npt.DTypeLike, *, copy: bool = True) -> Any:
        """Return the same in another type."""


class SparseMatrix(Matrix, Protocol):
    """A compressed sparse matrix."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray
    has_canonical_format: bool

    @property
    def nnz(self) -> int:
        """Entries that are stored."""

    def copy(self) -> SparseMatrix:
        """Return a copy."""

    def sum_duplicates(self) -> None:
        """Add up entries that are stored in several pieces."""

    def tocsr(self, copy: bool = False) -> SparseMatrix:
        """Return the same, compressed by rows."""

    def tocsc(self, copy: bool = False) -> SparseMatrix:
        """Return the same, compressed by columns."""

    def toarray(self) -> AnyArray:
        """Return the same with its zeros."""


def shape_of(X: MatrixLike) -> tuple[int, ...]:
    """Return rows and columns of whatever a caller passes as a matrix."""
    return tuple(X.shape) if hasattr(X, "shape") else np.shape(X)


def is_sparse(X: object) -> TypeIs[SparseMatrix]:
    """Tell whether a matrix that came through validation is sparse."""
    return bool(sp.issparse(X))


InMemory: TypeAlias = AnyArray | SparseMatrix  # rows and columns that are not on disk


class _HasShape(Protocol):
    """A sparse matrix, a data frame, a LinearOperator, a matrix on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""


# Types that callers may pass: arrays, lists and Series, and for matrices anything with rows and columns.
MatrixLike = ArrayLike | _HasShape
Labels = ArrayLike
Estimator: TypeAlias = "BaseEstimator"  # scikit-learn tells no types: this one is for readers
