"""The array types that rankwise computes with, and those that it takes from its callers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

__all__ = ["ArrayLike", "Bools", "Floats", "Ints", "Labels", "Matrix", "MatrixLike", "Rows"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]  # numbers of rows


class Matrix(Protocol):
    """Rows and columns after validation: an array, a sparse matrix, or an operator, which cannot be indexed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the entries."""

    def __getitem__(self, index: Any, /) -> Any:
        """Return some of the rows, or of the entries."""

    def __matmul__(self, other: Any, /) -> Any:
        """Multiply."""


class _HasShape(Protocol):
    """A sparse matrix, a data frame, a LinearOperator, a matrix on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""


# What a caller may pass: arrays, lists and Series, and for matrices whatever has rows and columns.
MatrixLike = ArrayLike | _HasShape
Labels = ArrayLike
