"""What arrays and sparse matrices must be like before anything converts them.

NumPy drops the mask of a masked array on conversion, and SciPy trusts the arrays of a sparse matrix, whose
conversion to another format then reads and writes outside them: both are looked at before.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray, Matrix, MatrixLike, is_sparse
from rankwise.data.store.mapped import MappedMatrix
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.threads import default_threads

__all__ = [
    "as_array",
    "as_rows",
    "check_magnitude",
    "check_not_tiny",
    "check_sparse",
    "check_total",
    "compressed_misfit",
    "is_moderate",
    "is_plain",
    "refuse_unreadable",
    "unmasked",
]

# Squares of larger numbers, summed over many rows, overflow ...
_LARGEST = 1e150
# ... one over those of smaller ones, times a label, too ...
_SMALLEST = 1e-80
# ... and labels and weights are summed over many pairs.
_LARGEST_TOTAL = 1e140
_LIMITS = {np.dtype(np.float64): _LARGEST, np.dtype(np.float32): float(np.finfo(np.float32).max)}
# Fewer entries are looked at by one thread.
_MANY = 1 << 20
# Subclasses are masked, or on disk.
_PLAIN = (np.ndarray, sp.csr_matrix, sp.csr_array)
_INTEGERS = {np.dtype(np.int32), np.dtype(np.int64)}


def unmasked(name: str, values: object) -> Any:
    """Return what a caller passed, a masked array that masks nothing as a plain one; raise where anything is masked.

    A sparse matrix is looked at too, see `check_sparse`, and containers that cannot be read are refused.
    """
    if type(values) is np.ndarray:
        return values
    refuse_unreadable(name, values)
    if sp.issparse(values):
        check_sparse(name, values)
        return values
    if isinstance(values, np.ma.MaskedArray):
        n_masked = int(np.count_nonzero(np.ma.getmaskarray(values)))
        if n_masked:
            raise _masked(name, f"hides {n_masked} of {values.size} entries")
        return np.ma.getdata(values)
    if isinstance(values, (list, tuple)) and any(
        isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in values
    ):
        raise _masked(name, "holds masked entries")
    return values


def refuse_unreadable(name: str, values: object) -> None:
    """Raise where values are of a type whose entries NumPy would misread, or that has none yet."""
    if isinstance(values, np.matrix):
        raise InvalidInputError(
            f"{name} is an np.matrix, whose rows are matrices again.", f"pass np.asarray({name})."
        )
    if type(values).__name__ == "LazyFrame":
        raise InvalidInputError(
            f"{name} is a LazyFrame, which holds a query and no rows yet.", f"pass {name}.collect()."
        )


def as_array(name: str, values: object) -> AnyArray:
    """Return what a caller passed as an array; lists of uneven length are none."""
    given = unmasked(name, values)
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} is no array ({error}).", "pass a list, or rows that all have the same length."
        ) from error


def as_rows(name: str, X: object) -> Any:
    """Return rows as they were passed, lists as an array; raise where they are no matrix."""
    rows = unmasked(name, X) if hasattr(X, "shape") else as_array(name, X)
    if len(rows.shape) != 2:
        raise InvalidInputError(
            f"{name} has shape {tuple(rows.shape)}.", "pass a matrix with one row per item."
        )
    return rows


def check_sparse(name: str, X: sp.spmatrix) -> None:
    """Raise unless the arrays of a sparse matrix describe one of its shape."""
    if X.ndim != 2:
        raise InvalidInputError(f"{name} has shape {X.shape}.", "pass a matrix with one row per item.")
    if isinstance(X, MappedMatrix) and X.is_on_disk:
        return  # looked at when its store was opened; doing so again is a pass over the disk
    check = _CHECKS.get(X.format)
    problem = check(X) if check is not None else None
    if problem is not None:
        raise InvalidInputError(
            f"{name} is a {X.format.upper()} matrix whose arrays do not fit together: {problem}.",
            "build it again, for example with scipy.sparse.coo_matrix((values, (rows, columns)), shape=shape).tocsr(), "
            "which checks them.",
        )


def compressed_misfit(
    data: AnyArray,
    indices: AnyArray,
    indptr: AnyArray,
    n_lines: int,
    n_across: int,
    axes: tuple[str, str] = ("row", "column"),
) -> str | None:
    """Say what is wrong with the arrays of a compressed matrix; None where they fit.

    Parameters
    ----------
    n_lines, n_across : int
        The rows and columns of a CSR matrix, the columns and rows of a CSC matrix.
    axes : (str, str)
        What those are called.
    """
    for name, array in (("indices", indices), ("indptr", indptr)):
        if not isinstance(array, np.ndarray) or array.dtype not in _INTEGERS or array.ndim != 1:
            return f"{name} is not a vector of 32-bit or 64-bit integers"
    line, across = axes
    if indptr.size != n_lines + 1:
        return f"indptr has {indptr.size} entries, and {n_lines} {line}s need {n_lines + 1}"
    start, ids = np.ascontiguousarray(indptr), np.ascontiguousarray(indices[: data.shape[0]])
    misfit = _core.compressed_misfit(start, ids, n_across, _threads(ids.size))
    if misfit == "indices":
        ids = ids[: start[-1]]
        at = int(np.argmax((ids < 0) | (ids >= n_across)))
        where = int(np.searchsorted(start, at, side="right")) - 1
        return f"{line} {where} has an entry in {across} {ids[at]}, and {across}s are numbered from 0 to {n_across - 1}"
    return None if misfit is None else _pointer_misfit(start, ids.size, line)


def _pointer_misfit(start: AnyArray, n_entries: int, line: str) -> str:
    if start[0] != 0:
        return f"indptr starts with {start[0]} instead of 0"
    falls = start[1:] < start[:-1]
    if falls.any():
        return f"indptr falls at {line} {int(np.argmax(falls))}"
    return f"indptr ends with {start[-1]}, and there are {n_entries} entries"


def is_moderate(X: object) -> bool:
    """Tell by one quick pass whether all values of an array or sparse matrix, and their squares, are surely finite."""
    values = getattr(X, "data", None) if sp.issparse(X) else X
    if not isinstance(values, np.ndarray) or values.dtype not in _LIMITS:
        return False
    if not (values.flags.c_contiguous or values.flags.f_contiguous):
        return False
    return _core.values_fit(values.ravel(order="K"), _LIMITS[values.dtype], _threads(values.size))


def is_plain(X: MatrixLike, y: npt.ArrayLike, min_rows: int) -> bool:
    """Tell by a quick look whether training data need no further look, nor a conversion of X.

    X is a plain array or CSR matrix, y an array of as many labels, all of them finite and moderate. What is left out is
    not wrong, but a matter of the thorough checks, which know what to say about it.
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


def check_magnitude(X: Matrix, share: float = 1.0) -> None:
    """Raise where X, an array or a sparse matrix of finite numbers, has some whose products no float64 can hold.

    `share` is what remains of the usual limit where the products are multiplied by large weights.
    """
    values: Any = X.data if is_sparse(X) else X
    if values.dtype != np.float64 or values.size == 0 or (share == 1.0 and is_moderate(X)):
        return
    largest = max(float(values.max()), -float(values.min()))
    if largest > _LARGEST * share:
        raise InvalidInputError(
            f"X has values as large as {largest:.1e}, whose products are too large for floating-point numbers.",
            "bring X to values around 1, for example with sklearn.preprocessing.MaxAbsScaler; if the number stands for "
            "a missing value, replace it first.",
        )


def check_not_tiny(X: Matrix) -> None:
    """Raise where X, an array or a CSR matrix, is not zero but so small that the squares of all its values vanish."""
    values: Any = X.data if is_sparse(X) else X
    if values.size == 0:
        return
    flat = (
        values
        if values.ndim == 1
        else values.reshape(-1)
        if values.flags.c_contiguous
        else values.T.reshape(-1)
    )
    first, largest = 0, 0.0
    while first < flat.size:
        last = first + max(1024, first)  # mostly the first few tell
        largest = max(largest, float(np.abs(flat[first:last]).max()))
        if largest >= _SMALLEST:
            return
        first = last
    if largest > 0:
        raise InvalidInputError(
            f"X has no value larger than {largest:.1e}, and products of such numbers are too small for floating-point "
            "numbers.",
            "bring X to values around 1, for example with sklearn.preprocessing.MaxAbsScaler.",
        )


def check_total(name: str, total: float, remedy: str) -> None:
    """Raise where labels or weights as large as this, or of this sum, have squares that no float64 can hold."""
    if total > _LARGEST_TOTAL:
        raise InvalidInputError(
            f"{name} has numbers as large as {total:.1e}, whose products are too large for floating-point numbers.",
            remedy,
        )


def _threads(n_entries: int) -> int:
    return default_threads() if n_entries >= _MANY else 1


def _masked(name: str, what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{name} is a masked array that {what}.",
        "drop those rows, or say what the masked entries are, for example with values.filled(0).",
    )


def _compressed(X: sp.spmatrix) -> str | None:
    by_row = X.format == "csr"
    n_lines, n_across = X.shape if by_row else X.shape[::-1]
    axes = ("row", "column") if by_row else ("column", "row")
    return compressed_misfit(X.data, X.indices, X.indptr, n_lines, n_across, axes)


def _blocked(X: sp.spmatrix) -> str | None:
    if X.data.ndim != 3 or any(
        size < 1 or n % size for n, size in zip(X.shape, X.data.shape[1:], strict=True)
    ):
        return f"blocks of shape {X.data.shape[1:]} do not fill a matrix of shape {X.shape}"
    n_rows, n_columns = (n // size for n, size in zip(X.shape, X.data.shape[1:], strict=True))
    axes = ("row of blocks", "column of blocks")
    return compressed_misfit(X.data, X.indices, X.indptr, n_rows, n_columns, axes)


def _coordinates(X: sp.spmatrix) -> str | None:
    return _listed(X.row, X.col, X.shape, X.data.size)


def _listed(rows: AnyArray, columns: AnyArray, shape: tuple[int, ...], n_values: int) -> str | None:
    for axis, at, limit in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if at.size != n_values:
            return f"there are {n_values} values and {at.size} {axis} numbers"
        outside = np.flatnonzero((at < 0) | (at >= limit))
        if outside.size:
            entry = int(outside[0])
            return f"entry {entry} is in {axis} {at[entry]}, and {axis}s are numbered from 0 to {limit - 1}"
    return None


def _lists(X: sp.spmatrix) -> str | None:
    lengths = [len(row) for row in X.rows]
    if len(lengths) != X.shape[0] or lengths != [len(row) for row in X.data]:
        return "rows and data have lists of different lengths"
    columns = np.fromiter(chain.from_iterable(X.rows), np.int64, count=sum(lengths))
    return _listed(np.repeat(np.arange(X.shape[0]), lengths), columns, X.shape, columns.size)


def _keys(X: sp.spmatrix) -> str | None:
    keys = np.array(list(X.keys()), dtype=np.int64).reshape(-1, 2)
    return _listed(keys[:, 0], keys[:, 1], X.shape, len(keys))


def _diagonals(X: sp.spmatrix) -> str | None:
    if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]:
        return f"there are {X.offsets.size} offsets for data of shape {X.data.shape}"
    return None  # SciPy passes over diagonals that are outside


_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "csr": _compressed,
    "csc": _compressed,
    "bsr": _blocked,
    "coo": _coordinates,
    "lil": _lists,
    "dok": _keys,
    "dia": _diagonals,
}
