"""Linear operators as designs: matrices known only by their products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator

from rankwise.arrays import DType, Floats, Ints
from rankwise.design.protocol import Design, RowIndex
from rankwise.exceptions import InvalidInputError


class OperatorDesign(Design):
    """A SciPy LinearOperator as a design. It has no ``X' L X``, which would need a product for each column."""

    has_rows = False
    is_dense = False
    nnz = 0

    def __init__(self, operator: LinearOperator, n_threads: int = 1) -> None:
        self.operator = operator
        self.n_threads = n_threads
        self.shape: tuple[int, int] = operator.shape
        self.dtype: DType = np.dtype(np.float64 if operator.dtype is None else operator.dtype)
        self.reads = 0

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""
        self.reads += 1
        return np.asarray(self.operator @ v, dtype=np.float64)

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        self.reads += 1
        try:
            return np.asarray(self.operator.T @ u, dtype=np.float64)
        except NotImplementedError as error:
            raise InvalidInputError(
                "X is a LinearOperator that cannot multiply from the left: it has no rmatvec.",
                "make it with rmatvec=, the product with the transpose of X.",
            ) from error

    def matrix(self) -> Floats:
        """Return the matrix, made by a product for each column."""
        return self.dot(np.eye(self.shape[1]))

    def stored(self) -> LinearOperator:
        return self.operator

    def rows(self, index: RowIndex) -> OperatorDesign:
        """Return the design of a subset of rows."""
        return known_rows(self, np.arange(self.shape[0])[index])


def operator_design(
    shape: tuple[int, int],
    dot: Callable[[Floats], Floats],
    tdot: Callable[[Floats], Floats],
    n_threads: int = 1,
) -> OperatorDesign:
    """Return the design of a matrix that is known by these products, with vectors and blocks alike."""
    operator = LinearOperator(shape, matvec=dot, rmatvec=tdot, matmat=dot, rmatmat=tdot, dtype=np.float64)
    return OperatorDesign(operator, n_threads)


def known_rows(design: Design, rows: Ints, dot: Callable[[Floats], Floats] | None = None) -> OperatorDesign:
    """Return the design of some rows of one that multiplies all its rows; `dot` gives scores of these alone."""

    def tdot(u: Floats) -> Floats:
        full = np.zeros((design.shape[0], *u.shape[1:]))
        np.add.at(full, rows, u)
        return design.tdot(full)

    shape = (rows.size, design.shape[1])
    return operator_design(shape, dot or (lambda v: design.dot(v)[rows]), tdot, design.n_threads)


def selected_rows(design: Design, rows: Ints, step: int) -> OperatorDesign:
    """Return the design of some rows of one on disk, which are read `step` rows at a time for each product."""
    parts = [slice(first, first + step) for first in range(0, rows.size, step)]

    def dot(v: Floats) -> Floats:
        return np.concatenate([design.gathered(rows[part]).dot(v) for part in parts])

    def tdot(u: Floats) -> Floats:
        total = np.zeros((design.shape[1], *u.shape[1:]))
        for part in parts:
            total += design.gathered(rows[part]).tdot(u[part])
        return total

    return operator_design((rows.size, design.shape[1]), dot, tdot, design.n_threads)
