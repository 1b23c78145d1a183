"""A CSR matrix whose arrays are mapped from a store on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.exceptions import InvalidInputError

__all__ = ["MappedMatrix", "gather_rows"]

# Non-zeros that a thread asks for while it works on as many: 4 M of them are 32 MiB in float32.
READ_AHEAD = 1 << 22


class MappedMatrix(sp.csr_matrix):  # type: ignore[misc]
    """A SciPy CSR matrix over arrays that are mapped from disk, read-only; everything sparse matrices do works.

    What SciPy makes of it (rows chosen, products) lies in memory. Pickled, it is the path of its store, and what tells
    whether that still holds the same rows.

    Attributes
    ----------
    path : str or None
        The store; None for a matrix that SciPy made of another one.
    identity : str
        The checksum of the store's header, which holds the checksums of all else.
    is_finite : bool
        Whether all values are known to be finite.
    """

    path: str | None = None
    identity = ""
    is_finite = False

    @classmethod
    def over(
        cls,
        arrays: tuple[npt.NDArray[Any], npt.NDArray[np.int32], npt.NDArray[Any]],
        shape: tuple[int, int],
        path: str,
        *,
        identity: str,
        is_finite: bool,
    ) -> MappedMatrix:
        """Return the matrix over values, column numbers and row pointers; none of them is copied."""
        matrix = cls((0, 0), dtype=arrays[0].dtype)
        # The constructor would turn all arrays into plain ones, and copy them to 64-bit where pointers need it.
        matrix.data, matrix.indices, matrix.indptr = arrays
        matrix._shape = shape
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        matrix.path, matrix.identity, matrix.is_finite = path, identity, is_finite
        return matrix

    @property
    def read_ahead(self) -> int:
        """How many non-zeros products should ask for ahead; 0 in memory."""
        return READ_AHEAD if self.path is not None else 0

    def __reduce__(self) -> Any:
        return super().__reduce__() if self.path is None else (_reopen, (self.path, self.identity))


def _reopen(path: str, identity: str) -> MappedMatrix:
    from rankwise.data.store import open_store  # noqa: PLC0415  # the store is made of this module's matrices

    matrix = open_store(path, verify=False).X
    if matrix.identity != identity:
        raise InvalidInputError(
            f"The store {path} was written again after its matrix was pickled, and holds other rows now.",
            "let stores be while other processes work on them, and pass a matrix of the store as it is now.",
        )
    return matrix


def gather_rows(
    arrays: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return values, column numbers and row pointers of some rows, whatever the types of the arrays."""
    values, columns, start = arrays
    first = start[rows].astype(np.int64)
    lengths = start[rows + 1] - first
    pointers = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64, copy=False)
    entries = np.repeat(first - pointers[:-1], lengths) + np.arange(pointers[-1])
    return np.asarray(values[entries]), np.asarray(columns[entries]), pointers
