"""The array types that rankwise computes with, and names for what comes in from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import spmatrix
    from scipy.sparse.linalg import LinearOperator
    from sklearn.base import BaseEstimator

__all__ = ["AnyArray", "Bools", "DType", "Estimator", "Floats", "Ints", "MatrixLike", "Rows"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]  # numbers of rows
AnyArray = npt.NDArray[Any]  # of whatever type
DType = np.dtype[Any]

# Neither SciPy nor scikit-learn tells its types, so for checkers these are as good as anything: they are for readers.
MatrixLike: TypeAlias = "npt.ArrayLike | spmatrix | LinearOperator"  # or a data frame: rows of numbers
Estimator: TypeAlias = "BaseEstimator"
