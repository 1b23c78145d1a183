"""Access to X: dense, sparse by rows, or a linear operator. Storage is invisible above this package.

Every sum is kept in float64, and a float32 matrix is never copied to float64 as a whole. Where only differences between
rows matter, columns far from zero are shifted (`rankwise.design.offsets`).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator

from rankwise.arrays import Matrix, MatrixLike, is_sparse
from rankwise.design.additive import AdditiveDesign
from rankwise.design.csr import CsrDesign
from rankwise.design.dense import DenseDesign
from rankwise.design.offsets import Shift, find_shift, sampled_rows
from rankwise.design.operator import OperatorDesign
from rankwise.design.protocol import Design, GramProduct, Products
from rankwise.design.shifted import ShiftedDesign
from rankwise.runtime.memory import MemoryBudget
from rankwise.runtime.threads import default_threads

__all__ = [
    "AdditiveDesign",
    "CsrDesign",
    "DenseDesign",
    "Design",
    "GramProduct",
    "OperatorDesign",
    "Products",
    "Shift",
    "ShiftedDesign",
    "as_design",
    "comparing_design",
    "default_threads",
    "matrix_rows",
    "shifted_design",
    "whole_entries",
]

# A shifted copy may take one part in so many of the memory there is.
_COPY_SHARE = 4


def as_design(X: MatrixLike | Design, n_threads: int | None = None) -> Design:
    """Return the design of an array, a SciPy sparse matrix, a LinearOperator, or a design itself."""
    if isinstance(X, Design):
        return X
    if hasattr(X, "as_design"):  # rows that know their own storage, such as those of a cluster
        made: Design = X.as_design(n_threads)
        return made
    threads = default_threads() if n_threads is None else n_threads
    if is_sparse(X):
        return CsrDesign(X.tocsr(), threads)
    if isinstance(X, LinearOperator):
        return OperatorDesign(X, threads)
    return DenseDesign(np.asarray(X), threads)


def comparing_design(X: MatrixLike, n_threads: int | None = None) -> Design:
    """Return the design of X for whatever only compares its rows: columns far from zero are shifted."""
    design = as_design(X, n_threads)
    # A few rows of an operator would take a product for each of them; weights of terms lie between 0 and 1.
    if design.is_encoded or not design.has_rows or design.shape[0] == 0:
        return design
    sample = design.gathered(sampled_rows(*design.shape)).matrix()
    # One row alone, the first of a stream, does not tell where the columns are.
    return shifted_design(design, find_shift(sample, even_if_alike=design.shape[0] > 1))


def matrix_rows(design: Design) -> Matrix:
    """Return the matrix behind a design as something whose rows can be sliced."""
    return whole_entries(design.matrix())


def whole_entries(X: Matrix) -> Matrix:
    """Return rows whose entries are stored in one piece each: scikit-learn's norms would square parts one by one."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def shifted_design(X: MatrixLike, shift: Shift | None, n_threads: int | None = None) -> Design:
    """Return the design of X with the same constants subtracted from its columns as from other rows."""
    design = as_design(X, n_threads)
    if shift is None or not design.has_rows:
        return design
    if hasattr(design, "shifted"):  # rows that are far away are shifted where they are
        moved: Design = design.shifted(shift)
        return moved
    if not _may_be_copied(design):
        return ShiftedDesign.of(design, shift)
    kind = DenseDesign if design.is_dense else CsrDesign
    return kind(shift.taken_off(design.matrix()), design.n_threads, shift)


def _may_be_copied(design: Design) -> bool:
    """Tell whether a copy with other values is in order: products with it are as fast as with X itself."""
    if design.dtype != np.float64 or design.is_on_disk:
        return False
    per_value = 8 if design.is_dense else 16
    return MemoryBudget().allows(_COPY_SHARE * per_value * design.nnz)
