"""The array types that rankwise computes with, and those that it takes from its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = [
    "AnyArray",
    "ArrayLike",
    "Bools",
    "DType",
    "Estimator",
    "Floats",
    "Ints",
    "Labels",
    "Matrix",
    "MatrixLike",
    "Rows",
]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]  # numbers of rows
AnyArray = npt.NDArray[Any]  # of whatever type
DType = np.dtype[Any]


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


class _HasShape(Protocol):
    """A sparse matrix, a data frame, a LinearOperator, a matrix on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""


# What a caller may pass: arrays, lists and Series, and for matrices whatever has rows and columns.
MatrixLike = ArrayLike | _HasShape
Labels = ArrayLike
Estimator: TypeAlias = "BaseEstimator"  # scikit-learn tells no types: this one is for readers
