"""A design that stores shifted copies of some columns: the others are not copied.

For matrices on disk, in float32, or too large to be copied. With o the shifted columns, ``C`` these columns as an
array and ``v₀`` equal to v but zero in o, the product with all columns is ``X v₀ + C v_o``. The columns o of X itself,
whose digits are lost, are never used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg.blas import dgemv

from rankwise.arrays import AnyArray, Floats
from rankwise.design.offsets import Shift
from rankwise.design.protocol import Design, GramProduct, RowIndex
from rankwise.exceptions import MemoryLimitError
from rankwise.pairs.blocks import Folds, QueryBlocks, as_table, laplacian
from rankwise.runtime.memory import MemoryBudget


class ShiftedDesign(Design):
    """A design with constants subtracted from some of its columns.

    Parameters
    ----------
    base : Design
    shift : Shift
    block : (rows, k) float64
        The shifted columns.
    """

    shift: Shift

    def __init__(self, base: Design, shift: Shift, block: Floats) -> None:
        self.base, self.shift = base, shift
        # In columns, which BLAS adds to a vector ten times as fast as a product of rows that short.
        self._block = np.asfortranarray(block)
        self.shape, self.dtype, self.nnz = base.shape, base.dtype, base.nnz
        self.has_rows, self.is_dense = base.has_rows, base.is_dense
        self.n_threads, self.is_on_disk = base.n_threads, base.is_on_disk

    @classmethod
    def of(cls, base: Design, shift: Shift) -> ShiftedDesign:
        """Read the columns once."""
        k = shift.columns.size
        n_bytes = 8 * base.shape[0] * k
        if not MemoryBudget().allows(2 * n_bytes):
            named = ", ".join(map(str, shift.columns[:5].tolist())) + (", ..." if k > 5 else "")
            raise MemoryLimitError(
                f"{k} columns of X ({named}) have means so much larger than their spread that products with them lose "
                f"their precision, and a copy of these columns takes {n_bytes / 2**30:.1f} GiB.",
                "subtract a constant from each of them, such as its mean, which changes no ranking.",
            )
        chosen = np.zeros((base.shape[1], k))
        chosen[shift.columns, np.arange(k)] = 1.0
        block = base.dot(chosen)
        block -= shift.values
        return cls(base, shift, block)

    @property
    def reads(self) -> int:
        """The number of complete reads of X so far."""
        return self.base.reads

    @reads.setter
    def reads(self, value: int) -> None:
        self.base.reads = value

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""
        scores = self.base.dot(self._without(v))
        if v.ndim == 1:
            scores = dgemv(1.0, self._block, v[self.shift.columns], beta=1.0, y=scores, overwrite_y=True)
            return np.asarray(scores)
        scores += self._block @ v[self.shift.columns]
        return scores

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        out = self.base.tdot(u)
        out[self.shift.columns] = self._block.T @ u
        return out

    def _without(self, v: Floats) -> Floats:
        """Return v with zeros in the place of the shifted columns."""
        kept = v.copy()
        kept[self.shift.columns] = 0.0
        return kept

    def gram_product(self, blocks: QueryBlocks, folds: Folds | None = None) -> GramProduct | None:
        """Return the product of the base, which sees zeros in the shifted columns, plus these columns of ``X' L X``."""
        fused, place = self.base.gram_product(blocks, folds), self.shift.columns
        if fused is None:
            return None
        n_folds = 1 if folds is None else folds.degree.shape[1]
        columns = (np.repeat(column[:, None], n_folds, axis=1) for column in self._block.T)
        images = [self.tdot(laplacian(blocks, v, n_threads=self.n_threads, folds=folds)) for v in columns]
        crossed = np.stack(images, axis=1)  # (columns, shifted columns, folds)

        def product(v: Floats, held_out: Floats | None = None) -> Floats:
            table = as_table(v)
            out = fused(self._without(table), held_out)
            own = np.broadcast_to(crossed, (*crossed.shape[:2], table.shape[1]))
            out += np.einsum("nkf,kf->nf", own, table[place])
            out[place] = np.einsum("nkf,nf->kf", own, table)
            if folds is not None and held_out is not None:
                rows = np.flatnonzero(folds.fold >= 0)
                held_out[rows] += np.einsum("ij,ji->i", self._block[rows], v[place][:, folds.fold[rows]])
            return out.reshape(v.shape)

        return product

    def gram_matrix(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``X' L X``, (n, n)."""
        G, place = self.base.gram_matrix(blocks), self.shift.columns
        if G is not None:
            G[:, place] = self.tdot(laplacian(blocks, self._block, n_threads=self.n_threads))
            G[place] = G[:, place].T
        return G

    def gram_diagonal(self, blocks: QueryBlocks) -> Floats | None:
        """Return ``diag(X' L X)``."""
        diagonal = self.base.gram_diagonal(blocks)
        if diagonal is not None:
            image = laplacian(blocks, self._block, n_threads=self.n_threads)
            diagonal[self.shift.columns] = np.einsum("ij,ij->j", self._block, image)
        return diagonal

    def rows(self, index: RowIndex) -> ShiftedDesign:
        """Return the design of a subset of rows."""
        return ShiftedDesign(self.base.rows(index), self.shift, self._block[index])

    def gathered(self, rows: npt.NDArray[np.int64]) -> ShiftedDesign:
        """Return the design of so few rows that they fit in memory."""
        return ShiftedDesign(self.base.gathered(rows), self.shift, self._block[rows])

    def matrix(self) -> AnyArray | sp.csr_matrix:
        """Return the matrix as an array or a SciPy matrix; it is copied."""
        return self.shift.taken_off(self.base.matrix())

    def expect_products(self) -> None:
        self.base.expect_products()
