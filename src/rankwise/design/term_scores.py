"""Scores of additive models, computed from the original numbers in double precision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.arrays import AnyArray, Floats, InMemory, SparseMatrix, is_sparse
from rankwise.design.protocol import accepted_dtype
from rankwise.design.terms import Terms
from rankwise.pairs.blocks import as_table

__all__ = ["MANY_CODES", "csr_arrays", "float_array", "places_among_terms", "predict"]

# Fewer codes than this are faster on one thread.
MANY_CODES = 1 << 16


def predict(X: InMemory, terms: Terms, values: Floats, n_threads: int = 1) -> Floats:
    """Return ``E v``, the score of each row, computed from the original numbers in double precision.

    Parameters
    ----------
    X : array or SciPy sparse matrix
        Absent entries are zeros.
    values : (n_values,) or (n_values, k) float64
    """
    table = as_table(values)
    out = np.empty((X.shape[0], table.shape[1]))
    threads = n_threads if X.shape[0] * len(terms.all_terms) >= MANY_CODES else 1
    if is_sparse(X):
        place = places_among_terms(terms, X.shape[1])
        arrays = csr_arrays(X.tocsr(), 0, X.shape[0])
        _core.additive_predict_csr(*arrays, place, terms.compiled, table, out, threads)
    else:
        _core.additive_predict(float_array(X), terms.compiled, table, out, threads)
    return out.reshape(X.shape[0], *values.shape[1:])


def float_array(X: npt.ArrayLike) -> AnyArray:
    """Return an array of floats that begin at multiples of their size, as the kernels take it."""
    array = np.asarray(X)
    array = array.astype(accepted_dtype(array.dtype), copy=False)
    is_regular = array.flags.aligned and all(stride % array.itemsize == 0 for stride in array.strides)
    return array if is_regular else np.ascontiguousarray(array)


def csr_arrays(X: SparseMatrix, first: int, last: int) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the arrays of some rows of a CSR matrix, as the kernels take them.

    Not by SciPy's slices, which may first convert all column numbers of a matrix on disk.
    """
    start = X.indptr[first : last + 1]
    own = slice(int(start[0]), int(start[-1]))
    values = X.data[own]
    pointers = start - start[0]
    if X.indices.dtype == np.int64:
        pointers = pointers.astype(np.int64, copy=False)
    return values.astype(accepted_dtype(values.dtype), copy=False), X.indices[own], pointers


def places_among_terms(terms: Terms, n_columns: int) -> npt.NDArray[np.int32]:
    """Return the position of each column of X among the columns that terms read; -1 for the others."""
    place = np.full(n_columns, -1, dtype=np.int32)
    place[terms.columns] = np.arange(terms.columns.size, dtype=np.int32)
    return place
