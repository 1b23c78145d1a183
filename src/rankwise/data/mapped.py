"""Memory-mapped matrices: a CSR matrix with its files, and arrays backed by `numpy.memmap`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.arrays import AnyArray
from rankwise.runtime.memory import MemoryBudget

# Non-zeros that a thread asks the system for while it works on as many: 4 M of them are 32 MiB in float32.
READ_AHEAD = 1 << 22
# Bytes of an array that a thread reads at a time past the page cache: one disk gave 3.9 GB/s with 4 MiB, 3.3 with 16.
# A read begins and ends with whole blocks of 4 KiB, and its buffers are whole pages of 2 MiB: hence a little less.
DIRECT_READ = (1 << 22) - (1 << 14)
# So many threads read half as much each, for every one has three buffers.
_MANY_THREADS = 12


class MappedMatrix(sp.csr_matrix):  # type: ignore[misc]
    """A SciPy CSR matrix over arrays that are mapped from disk, read-only; it supports all operations of SciPy.

    Results of SciPy operations (selected rows, products) are in memory. A pickle contains the path of the store.

    Attributes
    ----------
    is_finite : bool
        Whether all values are known to be finite.
    files : DirectFiles or None
        For reads past the page cache, where the system supports them.
    """

    is_finite = False
    files: _core.DirectFiles | None = None
    _mapped: tuple[AnyArray, ...] = ()
    _reopen: tuple[Callable[..., MappedMatrix], tuple[str, str]] | None = None

    @classmethod
    def over(
        cls,
        arrays: tuple[AnyArray, npt.NDArray[np.int32], AnyArray],
        shape: tuple[int, int],
        *,
        is_finite: bool,
        files: _core.DirectFiles | None,
        reopen: tuple[Callable[..., MappedMatrix], tuple[str, str]],
    ) -> MappedMatrix:
        """Return the matrix over values, column numbers and row pointers; none of them is copied."""
        matrix = cls((0, 0), dtype=arrays[0].dtype)
        # The constructor would turn all arrays into plain ones, and copy them to 64-bit where pointers need it.
        matrix.data, matrix.indices, matrix.indptr = arrays
        matrix._shape = shape
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        matrix.is_finite, matrix.files = is_finite, files
        matrix._mapped, matrix._reopen = arrays, reopen
        return matrix

    @property
    def is_on_disk(self) -> bool:
        """Whether the arrays are still those of the store."""
        arrays = (self.data, self.indices, self.indptr)
        return bool(self._mapped) and all(
            own is stored for own, stored in zip(arrays, self._mapped, strict=True)
        )

    def disk(self, n_threads: int) -> _core.Disk | None:
        """Return how products with this many threads read the matrix; None in memory.

        A matrix that fits in memory is read once and stays in the page cache. A larger one is read past it: through a
        cache that cannot hold it, each GB would cost twice the processor time that a product takes.
        """
        if not self.is_on_disk:
            return None
        if self.files is None or MemoryBudget().allows(self.data.nbytes + self.indices.nbytes):
            return _core.Disk(None, 0, READ_AHEAD)
        n_bytes = DIRECT_READ // (1 if n_threads < _MANY_THREADS else 2)
        return _core.Disk(self.files, 0, n_bytes // max(self.data.itemsize, self.indices.itemsize))

    def __reduce__(self) -> tuple[object, ...]:
        if self._reopen is not None and self.is_on_disk:
            return self._reopen
        return sp.csr_matrix, ((self.data, self.indices, self.indptr), self.shape)


def exceeds_memory(array: AnyArray) -> bool:
    """Tell whether an array is mapped from a file and does not fit in memory."""
    base: object = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap) and not MemoryBudget().allows(array.nbytes)


def part_of(disk: _core.Disk, first: int, n_bytes: int) -> _core.Disk:
    """Return how products read consecutive entries, which take this many bytes.

    Callers multiply by a part several times: one that fits in memory is left to the page cache.
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
