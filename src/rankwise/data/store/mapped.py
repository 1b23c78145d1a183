"""A CSR matrix whose arrays are mapped from a store on disk."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.memory import MemoryBudget

__all__ = ["MappedMatrix", "gather_rows", "part_of"]

# Non-zeros that a thread asks the system for while it works on as many: 4 M of them are 32 MiB in float32.
READ_AHEAD = 1 << 22
# Bytes of an array that a thread reads at a time past the page cache: one disk gave 3.9 GB/s with 4 MiB, 3.3 with 16.
# A read begins and ends with whole blocks of 4 KiB, and its buffers are whole pages of 2 MiB: hence a little less.
DIRECT_READ = (1 << 22) - (1 << 14)
# So many threads read half as much each, for every one has three buffers.
_MANY_THREADS = 12


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
    files : DirectFiles or None
        For reads past the page cache, where the system has them.
    """

    path: str | None = None
    identity = ""
    is_finite = False
    files: _core.DirectFiles | None = None
    _mapped: tuple[AnyArray, ...] = ()

    @classmethod
    def over(
        cls,
        arrays: tuple[AnyArray, npt.NDArray[np.int32], AnyArray],
        shape: tuple[int, int],
        path: str,
        *,
        identity: str,
        is_finite: bool,
        files: _core.DirectFiles | None,
    ) -> MappedMatrix:
        """Return the matrix over values, column numbers and row pointers; none of them is copied."""
        matrix = cls((0, 0), dtype=arrays[0].dtype)
        # The constructor would turn all arrays into plain ones, and copy them to 64-bit where pointers need it.
        matrix.data, matrix.indices, matrix.indptr = arrays
        matrix._shape = shape
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        matrix.path, matrix.identity, matrix.is_finite, matrix.files = path, identity, is_finite, files
        matrix._mapped = arrays
        return matrix

    @property
    def is_on_disk(self) -> bool:
        """Whether the arrays are still those of the store."""
        arrays = (self.data, self.indices, self.indptr)
        return bool(self._mapped) and all(
            own is stored for own, stored in zip(arrays, self._mapped, strict=True)
        )

    def disk(self, n_threads: int) -> _core.Disk | None:
        """Return how products of so many threads get at the matrix; None in memory.

        What fits in memory is read once and stays in the page cache. What does not is read past it: through a cache
        that cannot hold it, each GB would cost twice the processor time that a product takes.
        """
        if not self.is_on_disk:
            return None
        if self.files is None or MemoryBudget().allows(self.data.nbytes + self.indices.nbytes):
            return _core.Disk(None, 0, READ_AHEAD)
        n_bytes = DIRECT_READ // (1 if n_threads < _MANY_THREADS else 2)
        return _core.Disk(self.files, 0, n_bytes // max(self.data.itemsize, self.indices.itemsize))

    def __reduce__(self) -> tuple[object, ...]:
        if self.is_on_disk:
            return _reopen, (self.path, self.identity)
        return sp.csr_matrix, ((self.data, self.indices, self.indptr), self.shape)


def _reopen(path: str, identity: str) -> MappedMatrix:
    from rankwise.data.store.reading import open_store  # noqa: PLC0415  # the store is made of this module's matrices

    matrix = open_store(path, verify=False).X
    if matrix.identity != identity:
        raise InvalidInputError(
            f"The store {path} was written again after its matrix was pickled, and holds other rows now.",
            "let stores be while other processes work on them, and pass a matrix of the store as it is now.",
        )
    return matrix


def part_of(disk: _core.Disk, first: int, n_bytes: int) -> _core.Disk:
    """Return how products get at consecutive entries, which take so many bytes.

    Whoever takes a part multiplies by it several times: one that fits in memory is left to the page cache.
    """
    if MemoryBudget().allows(n_bytes):
        return _core.Disk(None, 0, READ_AHEAD)
    return disk.part(first)


def gather_rows(
    arrays: tuple[AnyArray, AnyArray, AnyArray], rows: npt.NDArray[np.int64]
) -> tuple[AnyArray, AnyArray, npt.NDArray[np.int64]]:
    """Return values, column numbers and row pointers of some rows, whatever the types of the arrays."""
    values, columns, start = arrays
    first = start[rows].astype(np.int64)
    lengths = start[rows + 1] - first
    pointers = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64, copy=False)
    entries = np.repeat(first - pointers[:-1], lengths) + np.arange(pointers[-1])
    return np.asarray(values[entries]), np.asarray(columns[entries]), pointers
