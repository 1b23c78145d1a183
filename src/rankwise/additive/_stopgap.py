"""The expanded matrix times the coordinates, until the compiled storage is there."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.design import CsrDesign


class ExpandedDesign:
    kind = "csr"
    shift = None
    is_on_disk = False

    def __init__(self, E: Any, coordinates: Any, n_threads: int) -> None:
        self._E = CsrDesign(E, n_threads)
        self._T = coordinates
        self.shape = (E.shape[0], coordinates.n_coordinates)
        self.n_threads = n_threads
        self.nnz, self.dtype = E.nnz, E.dtype

    @property
    def reads(self) -> int:
        return self._E.reads

    def dot(self, v): return self._E.dot(self._T.to_values(v))
    def tdot(self, u): return self._T.from_values(self._E.tdot(u))
    def gram_matrix(self, blocks): return self._T.from_values(self._T.from_values(self._E.gram_matrix(blocks)).T)
    def gram_diagonal(self, blocks): return np.diagonal(self.gram_matrix(blocks)).copy()
    def gram_product(self, blocks, folds=None): return None
    def gram_system(self, blocks, pull): return None
    def matrix(self): return self._E.matrix() @ self._T.matrix
    def rows(self, index): return ExpandedDesign(self._E.matrix()[index], self._T, self.n_threads)
    def gathered(self, rows): return self.rows(rows)
    def squared_differences(self, one, other, weight): return CsrDesign(self.matrix(), self.n_threads).squared_differences(one, other, weight)
