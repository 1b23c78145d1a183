"""What the rest of the library may ask of X."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from rankwise.arrays import AnyArray, DType, Floats
from rankwise.design.offsets import Shift
from rankwise.pairs.blocks import Folds, QueryBlocks

__all__ = ["Design", "GramProduct", "RowIndex", "accepted_dtype"]


RowIndex = slice | npt.NDArray[np.int64] | npt.NDArray[np.bool_]


class GramProduct(Protocol):
    """``V -> X' L X V`` for V of shape (columns,) or (columns, k), reading X once."""

    def __call__(self, v: Floats, held_out: Floats | None = None) -> Floats:
        """Return the product; `held_out` (rows,) receives the scores that folds do not see."""


class Design(Protocol):
    """A matrix of m rows and n columns; vectors are (m,) or (n,), blocks of them (m, k) or (n, k).

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy dtype of the stored values
    nnz : int
        The number of stored values.
    has_rows : bool
        Whether rows can be looked at; an operator is known by its products only.
    is_dense : bool
        Whether every value is stored.
    n_threads : int
        How many threads its products may use.
    reads : int
        How many times X was read completely so far.
    """

    shape: tuple[int, int]
    dtype: DType
    nnz: int
    has_rows: bool
    is_dense: bool
    n_threads: int
    reads: int

    @property
    def shift(self) -> Shift | None:
        """What was subtracted from its columns; nothing that compares rows sees it."""

    @property
    def is_on_disk(self) -> bool:
        """Whether the values are read from a store whenever they are needed."""

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """Return the fused product ``V -> X' L X V``; None where composing `dot`, L and `tdot` is as good."""

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``X' L X``, (n, n); None where the storage cannot give it."""

    def gram_system(self, blocks: QueryBlocks, pull: Floats) -> tuple[Floats, Floats] | None:
        """Return ``X' L X`` and ``X' r`` in one read of X, for an r that sums to zero in every query.

        None where `gram_matrix` and `tdot` are as good.
        """

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``diag(X' L X)`` in one or two reads of X; None where the storage cannot give it."""

    def squared_differences(
        self, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], weight: Floats
    ) -> Floats | None:
        """Return ``Σ weight_k (x_one[k] - x_other[k])²``, column by column; None where the storage cannot give it.

        This is ``diag(X' L X)`` of pairs that are listed one by one.
        """

    def rows(self, index: RowIndex) -> Design:
        """Return the design of a subset of rows; of a matrix on disk, many rows stay there."""

    def gathered(self, rows: npt.NDArray[np.int64]) -> Design:
        """Return the design of so few rows that they fit in memory, where that can be."""

    def matrix(self) -> AnyArray | sp.csr_matrix:
        """Return X as an array or a SciPy matrix; an operator's takes a product for each column."""

    def stored(self) -> AnyArray | sp.csr_matrix | LinearOperator:
        """Return X as it was given, without computing anything: an array, a SciPy matrix or an operator."""

    def expect_products(self) -> None:
        """Prepare for many of `dot` and `tdot`, where that pays."""


def accepted_dtype(dtype: DType) -> DType:
    """Return the dtype that values are kept in: float32 and float64 stay, everything else becomes float64."""
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)
