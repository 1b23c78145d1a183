"""The interface of designs: the operations on X that the rest of the library uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from rankwise.arrays import AnyArray, DType, Floats
from rankwise.design import gram
from rankwise.design.offsets import Shift
from rankwise.pairs.blocks import Folds, QueryBlocks
from rankwise.pairs.graph import MarginPairs

# Nanoseconds on one core of a current server; only their ratios matter, and only roughly.
_DENSE_GRAM = 0.05  # a multiply-add of a dense symmetric product
_SPARSE_GRAM = 3.0  # a multiply-add of a sparse one
_PRODUCT = 2.0  # a non-zero in one product X'LXv

_BLOCK = 1 << 16  # values of pairs of rows that are subtracted at a time

RowIndex = slice | npt.NDArray[np.int64] | npt.NDArray[np.bool_]


class GramProduct(Protocol):
    """``V -> X' L X V`` for V of shape (columns,) or (columns, k), reading X once."""

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; `held_out` (rows,) receives the held-out scores."""


class Products(Protocol):
    """Products with X alone, which suffice for losses with margins.

    Attributes
    ----------
    shape : (int, int)
    reads : int
        The number of complete reads of X so far.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def reads(self) -> int: ...

    def zero_scores(self) -> Floats:
        """Return ``X 0``, in whatever form `dot` returns scores."""

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""


class Design(ABC):
    """A matrix of m rows and n columns; vectors are (m,) or (n,), blocks of them (m, k) or (n, k).

    This class implements the operations for which a storage has no better method.

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy dtype of the stored values
    nnz : int
        The number of stored values.
    has_rows : bool
        Whether rows can be read; an operator is known by its products only.
    is_dense : bool
        Whether every value is stored.
    n_threads : int
        The number of threads of its products.
    reads : int
        The number of complete reads of X so far.
    shift : Shift or None
        Constants subtracted from its columns; comparisons of rows do not depend on them.
    is_on_disk : bool
        Whether the values are read from a store whenever they are needed.
    is_encoded : bool
        Whether it stores codes of the user's columns and computes its own columns from them.
    widest_matrix : float
        The number of columns above which solvers do not use ``X' L X``.
    """

    shape: tuple[int, int]
    dtype: DType
    nnz: int
    has_rows: bool
    is_dense: bool
    n_threads: int
    reads: int
    shift: Shift | None = None
    is_on_disk: bool = False
    is_encoded: bool = False
    widest_matrix: float = inf

    @property
    def work(self) -> tuple[float, float]:
        """Approximate nanoseconds of a product ``X' L X v``, and of the matrix ``X' L X``."""
        multiplied = self.nnz * self.nnz / max(self.shape[0], 1)
        return _PRODUCT * self.nnz, multiplied * (_DENSE_GRAM if self.is_dense else _SPARSE_GRAM)

    @abstractmethod
    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""

    @abstractmethod
    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""

    def zero_scores(self) -> Floats:
        """Return ``X 0``."""
        return np.zeros(self.shape[0])

    def counting(self, pairs: MarginPairs) -> tuple[Products, MarginPairs] | None:
        """Return products and pairs that evaluate losses on the workers with the rows; None for local rows."""
        return None

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """Return the fused product ``V -> X' L X V``; None where composing `dot`, L and `tdot` is as good."""
        return None

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``X' L X``, (n, n); None where the storage cannot give it."""
        if not self.has_rows:
            return None
        self.reads += 1
        return gram.gram_matrix(gram.CentredBlocks(self.dense_rows, blocks, self.shape[1], self.n_threads))

    def gram_system(self, blocks: QueryBlocks, pull: Floats) -> tuple[Floats, Floats] | None:
        """Return ``X' L X`` and ``X' r`` in one read of X, for an r that sums to zero in every query.

        None where `gram_matrix` and `tdot` are as good.
        """
        return None

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``diag(X' L X)`` in one or two reads of X; None where the storage cannot give it."""
        if not self.has_rows:
            return None
        self.reads += 1
        return gram.gram_diagonal(gram.CentredBlocks(self.dense_rows, blocks, self.shape[1], self.n_threads))

    def squared_differences(
        self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], weight: Floats
    ) -> Floats | None:
        """Return ``Σ weight_k (x_one[k] - x_other[k])²``, column by column; None where the storage cannot give it.

        This is ``diag(X' L X)`` of pairs that are listed one by one.
        """
        if not self.has_rows:
            return None
        self.reads += 1
        out = np.zeros(self.shape[1])
        step = max(1, max(_BLOCK, self.shape[1]) * self.shape[0] // max(1, self.nnz))
        for first in range(0, one.size, step):
            pairs = slice(first, first + step)
            a: Any = self.gathered(one[pairs]).matrix()
            b: Any = self.gathered(other[pairs]).matrix()
            difference = a.astype(np.float64) - b
            squares = difference.power(2) if sp.issparse(a) else np.square(difference)
            out += weight[pairs] @ squares
        return out

    @abstractmethod
    def rows(self, index: RowIndex) -> Design:
        """Return the design of a subset of rows; of a matrix on disk, many rows stay there."""

    def gathered(self, rows: npt.NDArray[np.int64]) -> Design:
        """Return the design of so few rows that they fit in memory, where that can be."""
        return self.rows(rows)

    def dense_rows(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Return a few rows as a new C-ordered array in float64."""
        run = slice(int(rows[0]), int(rows[-1]) + 1) if rows.size else slice(0)
        is_run = np.array_equal(rows, np.arange(run.start or 0, run.stop))
        found: Any = (self.rows(run) if is_run else self.gathered(rows)).matrix()
        return np.array(found.toarray() if sp.issparse(found) else found, dtype=np.float64, order="C")

    @abstractmethod
    def matrix(self) -> AnyArray | sp.csr_matrix:
        """Return X as an array or a SciPy matrix; an operator's takes a product for each column."""

    def stored(self) -> AnyArray | sp.csr_matrix | LinearOperator:
        """Return X as it was given, without computing anything: an array, a SciPy matrix or an operator."""
        return self.matrix()

    def expect_products(self) -> None:
        """Prepare for many of `dot` and `tdot`, where that pays."""
        return


def accepted_dtype(dtype: DType) -> DType:
    """Return the dtype that values are kept in: float32 and float64 stay, everything else becomes float64."""
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
