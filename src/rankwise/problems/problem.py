"""A ranking problem after validation: a design, and the pairs of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Ints
from rankwise.design import Design, matrix_rows
from rankwise.pairs.pairs import Pairs

__all__ = ["Problem"]

_BLOCK = 1 << 18  # entries of X that are looked at together


@dataclass(frozen=True)
class Problem:
    """Rows and their pairs, with as many outputs as the pairs have."""

    design: Design
    pairs: Pairs

    @cached_property
    def row_codes(self) -> Ints:
        """Numbers of the rows, which equal rows share: their scores are equal, whatever a formula rounds.

        A random projection identifies equal rows. It is computed in the same way for every row, unlike a BLAS product,
        whose rounding depends on the position. The rows of an operator cannot be read and all count as different.
        """
        n_rows, n_columns = self.design.shape
        if not self.design.has_rows:
            return np.arange(n_rows)
        X, direction = matrix_rows(self.design), np.random.default_rng(0).normal(size=n_columns)
        if not isinstance(X, np.ndarray):
            return _codes(X @ direction)
        content = np.empty(n_rows)
        step = max(1, _BLOCK // n_columns)
        for first in range(0, n_rows, step):
            content[first : first + step] = (X[first : first + step] * direction).sum(axis=1)
        return _codes(content)


def _codes(content: Floats | Ints) -> Ints:
    return np.unique(content, return_inverse=True)[1].reshape(-1).astype(np.int64, copy=False)
