"""The caller's containers: arrays, data frames and sparse matrices, before conversion."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, Matrix, MatrixLike, is_sparse
from rankwise.data.mapped import MappedMatrix
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.threads import default_threads

# Squares of larger numbers, summed over many rows, overflow. Some published data sets have 1.8e308 for a missing value.
_LARGEST = 1e75
_LIMITS = {np.dtype(np.float64): _LARGEST, np.dtype(np.float32): float(np.finfo(np.float32).max)}
# Fewer entries are looked at by one thread.
_MANY = 1 << 20
# Subclasses are masked, or on disk.
_PLAIN = (np.ndarray, sp.csr_matrix, sp.csr_array)
# Above this share of filled cells an array takes less memory than a sparse matrix, and is faster.
_DENSE = 0.5


def readable(name: str, values: object) -> Any:
    """Return values as they were passed; raise where NumPy would misread them."""
    if type(values) is np.ndarray:
        return values
    if type(values).__name__ == "LazyFrame":
        raise InvalidInputError(
            f"{name} is a LazyFrame, which holds a query and no rows yet.", f"pass {name}.collect()."
        )
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise InvalidInputError(
                f"{name} has masked entries.",
                "drop those rows, or replace the entries with values.filled(0).",
            )
        return np.ma.getdata(values)
    if sp.issparse(values):
        check_sparse(name, values)
    return values


def as_array(name: str, values: object) -> AnyArray:
    """Return values as an array; lists of uneven length cannot become one."""
    given = readable(name, values)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} cannot become an array ({error}).", "pass rows that all have the same length."
        ) from error


def is_null(value: object) -> bool:
    """Tell whether an object stands for a missing value: None, NaN, or NaT or NA of pandas."""
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64, Decimal)):
        return bool(value != value)  # noqa: PLR0124
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def as_rows(name: str, X: object) -> Any:
    """Return rows as they were passed, lists as an array; raise where they are not a matrix."""
    rows = readable(name, X) if hasattr(X, "shape") else as_array(name, X)
    if len(rows.shape) != 2:
        raise InvalidInputError(
            f"{name} has shape {tuple(rows.shape)}.", "pass a matrix with one row per item."
        )
    return rows


def check_sparse(name: str, X: sp.spmatrix) -> None:
    """Raise unless the indices of a sparse matrix fit its shape; SciPy does not check this for CSR or CSC."""
    if X.ndim != 2:
        raise InvalidInputError(f"{name} has shape {X.shape}.", "pass a matrix with one row per item.")
    if X.format not in {"csr", "csc"} or (isinstance(X, MappedMatrix) and X.is_on_disk):
        return  # looked at by SciPy, or when the store was opened
    n_lines, n_across = X.shape if X.format == "csr" else X.shape[::-1]
    is_whole = X.indptr.shape == (n_lines + 1,) and all(
        array.ndim == 1 and array.dtype in {np.dtype(np.int32), np.dtype(np.int64)}
        for array in (X.indices, X.indptr)
    )
    if is_whole:
        start, ids = np.ascontiguousarray(X.indptr), np.ascontiguousarray(X.indices[: X.data.shape[0]])
        is_whole = _core.compressed_misfit(start, ids, n_across, _threads(ids.size)) is None
    if not is_whole:
        raise InvalidInputError(
            f"{name} is a {X.format.upper()} matrix with indices that do not fit its shape {X.shape}.",
            "build it again with scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape).tocsr(), which checks "
            "them; rows and columns count from 0.",
        )


def is_moderate(X: object) -> bool:
    """Tell by one quick pass whether all values of an array or sparse matrix, and their squares, are surely finite."""
    values = getattr(X, "data", None) if sp.issparse(X) else X
    if not isinstance(values, np.ndarray) or values.dtype not in _LIMITS:
        return False
    if not (values.flags.c_contiguous or values.flags.f_contiguous):
        return False
    return _core.values_fit(values.ravel(order="K"), _LIMITS[values.dtype], _threads(values.size))


def is_plain(X: MatrixLike, y: npt.ArrayLike, min_rows: int) -> bool:
    """Tell by a quick check whether training data are valid and need no conversion of X.

    X is a plain array or CSR matrix, y an array of as many labels, all of them finite. Everything else goes through
    scikit-learn's checks, which take longer than a small fit.
    """
    return (
        isinstance(X, _PLAIN)
        and type(X) in _PLAIN
        and type(y) is np.ndarray
        and X.ndim == 2
        and y.ndim in {1, 2}
        and X.shape[0] == y.shape[0] >= min_rows
        and y.dtype.kind in "fiu"
        and min(X.shape[1], y.size) > 0
        and is_moderate(X)
        and bool(np.isfinite(y).all())
    )


def check_magnitude(X: Matrix) -> None:
    """Raise where X, an array or a sparse matrix of finite numbers, has some whose products no float64 can hold."""
    values: Any = X.data if is_sparse(X) else X
    if values.dtype != np.float64 or values.size == 0:
        return
    largest = max(float(values.max()), -float(values.min()))
    if largest > _LARGEST:
        raise InvalidInputError(
            f"X has values as large as {largest:.1e}, whose products are too large for floating-point numbers.",
            "bring X to values around 1, for example with sklearn.preprocessing.MaxAbsScaler; if the number stands for "
            "a missing value, replace it first.",
        )


def pays_as_array(X: object) -> bool:
    """Tell whether an array takes less memory than a sparse matrix, and is faster; models are the same."""
    if not is_sparse(X) or isinstance(X, MappedMatrix):
        return not is_sparse(X)
    return bool(X.nnz >= _DENSE * X.shape[0] * X.shape[1])


def _threads(n_entries: int) -> int:
    return default_threads() if n_entries >= _MANY else 1
