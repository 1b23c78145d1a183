"""How much memory may be used: asked before anything large is allocated."""

from __future__ import annotations

import functools
import mmap
import os
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from rankwise.exceptions import MemoryLimitError

try:
    import resource
except ImportError:  # pragma: no cover - Windows
    resource = None  # type: ignore[assignment]

__all__ = [
    "MemoryBudget",
    "available_memory",
    "check_columns_fit",
    "fits",
    "group_available",
    "make_room_for_blas",
]

_FALLBACK = 4 * 2**30
_UNLIMITED = 2**63 - 1
_NO_LIMIT = 2**60  # version 1 of control groups says "unlimited" by a number larger than this
_SHARE = 0.8  # of the available memory may be used when nobody says
_ALWAYS_FITS = (
    2**26
)  # so little is not worth asking the system for, which takes a tenth of a millisecond and more


_WORK_SPACE = 2 * 40 * 2**20  # OpenBLAS takes 32 MiB for a thread, and NumPy and SciPy have one each


@functools.cache
def make_room_for_blas() -> None:
    """Have BLAS take its work space now where the address space is limited; raise if there is no room for it.

    OpenBLAS takes it at the first product, and where it gets none it tries for ever, or ends the process.
    """
    if resource is None or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import numpy as np  # noqa: PLC0415 - the command line starts without it
    from scipy.linalg.blas import dgemm  # noqa: PLC0415 - the same

    try:
        mmap.mmap(-1, _WORK_SPACE).close()
    except (OSError, ValueError) as error:
        raise MemoryLimitError(
            "The address space of this process is limited, and leaves no room for linear algebra.",
            f"allow {_WORK_SPACE >> 20} MiB more (ulimit -v).",
        ) from error
    square = np.ones((256, 256))
    dgemm(1.0, square @ square, square)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        after_in_child=make_room_for_blas.cache_clear
    )  # it gives the work space up in a child


def fits(n_bytes: float, share: float = _SHARE) -> bool:
    """Tell whether so much may be allocated: up to a share of what is available at this moment."""
    return n_bytes <= _ALWAYS_FITS or n_bytes <= share * available_memory()


@dataclass(frozen=True)
class MemoryBudget:
    """How much may be allocated; asked before it is.

    Attributes
    ----------
    limit : int or None
        Bytes; None means 80 % of what is available at the moment of asking.
    """

    limit: int | None = None

    @property
    def free(self) -> int:
        """Bytes that may be allocated now."""
        return int(_SHARE * available_memory()) if self.limit is None else self.limit

    def allows(self, n_bytes: int) -> bool:
        """Tell whether so much may be allocated."""
        return fits(n_bytes) if self.limit is None else n_bytes <= self.limit

    def demand(self, n_bytes: int, n_rows: int, what: str) -> None:
        """Raise unless so much may be allocated; the message names a basis that fits."""
        if not self.allows(n_bytes):
            free = self.free
            raise MemoryLimitError(
                f"{what} takes about {n_bytes / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB may be used.",
                f"use basis={largest_basis(n_rows, free)}, which fits, or solver='cg', which makes kernel "
                "rows again whenever it needs them; or raise memory_limit.",
            )


def largest_basis(n_rows: int, free: int) -> int:
    """Return the most basis rows whose design and decomposition fit: ``8 (m b + 4 b²)`` bytes."""
    size = (sqrt(n_rows**2 + 16 * free / 8) - n_rows) / 8
    return max(1, min(n_rows, int(size)))


def check_columns_fit(n_columns: int, n_vectors: int = 4) -> None:
    """Raise unless there is room for some vectors with a number for each column.

    A sparse matrix may have billions of columns and take no room; a linear model of them has coefficients, and whatever
    finds them holds a gradient, a direction and its image beside. Asked for too late, the system ends the process.
    """
    n_bytes = 8 * n_columns * n_vectors
    if not fits(n_bytes, 1.0):
        free = available_memory()
        raise MemoryLimitError(
            f"A model of {n_columns:,} columns takes {8 * n_columns / 1e9:,.1f} GB for its coefficients alone and "
            f"{n_bytes / 1e9:,.1f} GB while it is found, and {free / 1e9:,.1f} GB are free.",
            "numbers of columns that large are a typo, or hashes: number the columns that occur from 1, or hash them "
            "to fewer, such as 2^20.",
        )


def available_memory() -> int:
    """Return the bytes that this process could still allocate, as the system and its control groups see it."""
    return min(_system_available(), _least_left(_own_groups()))


def _system_available() -> int:
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _FALLBACK  # a system that does not tell


def group_available(process: Path = Path("/proc/self"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the least that is left in the control groups a process is in: its own, and those around it.

    Pages of files count as used there, a store's that was just read among them, and are given back when
    memory is asked for; so they count as free here.
    """
    return _least_left(_limited_groups(process, root))


@functools.cache
def _own_groups() -> list[_Group]:
    """Return the groups that limit this process, looked for once: what they allow hardly ever changes."""
    return _limited_groups(Path("/proc/self"), Path("/sys/fs/cgroup"))


def _limited_groups(process: Path, root: Path) -> list[_Group]:
    try:
        memberships = (process / "cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        memberships = []
    groups = {_VERSION_1: "/", _VERSION_2: "/"}  # inside a container a group may be seen as the root itself
    for line in memberships:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            groups[_VERSION_2] = group
        elif "memory" in controllers.split(","):
            groups[_VERSION_1] = group
    found = []
    for version, group in groups.items():
        base = root / version.folder
        own = base / group.strip("/")
        for folder in (own, *own.parents):
            try:
                limit = int((folder / version.limit).read_text(encoding="ascii"))
            except (OSError, ValueError):
                limit = _UNLIMITED  # no such group here, or "max"
            if limit < _NO_LIMIT:
                found.append(_Group(version, folder, limit))
            if folder == base:
                break
    return found


def _least_left(groups: list[_Group]) -> int:
    return min((group.left for group in groups), default=_UNLIMITED)


@dataclass(frozen=True)
class _GroupFiles:
    """What the files of a version of control groups are called."""

    folder: str
    limit: str
    usage: str
    pages_of_files: tuple[str, str]


@dataclass(frozen=True)
class _Group:
    """A control group with a limit."""

    files: _GroupFiles
    folder: Path
    limit: int

    @property
    def left(self) -> int:
        try:
            usage = int((self.folder / self.files.usage).read_text(encoding="ascii"))
            counts = dict(
                line.split()
                for line in (self.folder / "memory.stat").read_text(encoding="ascii").splitlines()
            )
            cached = sum(int(counts.get(name, 0)) for name in self.files.pages_of_files)
            return max(self.limit - max(usage - cached, 0), 0)
        except (OSError, ValueError):
            return _UNLIMITED  # it is gone


_VERSION_1 = _GroupFiles(
    "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")
)
_VERSION_2 = _GroupFiles("", "memory.max", "memory.current", ("active_file", "inactive_file"))
