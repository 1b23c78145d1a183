"""Memory limits, checked before large allocations."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from rankwise.exceptions import MemoryLimitError

_FALLBACK = 4 * 2**30  # on systems that do not tell
_SHARE = 0.8  # of the available memory may be used by default
_ALWAYS_FITS = 2**26  # asking the system takes a tenth of a millisecond and more


def fits(n_bytes: float, share: float = _SHARE) -> bool:
    """Tell whether `n_bytes` may be allocated: up to a share of the currently available memory."""
    return n_bytes <= _ALWAYS_FITS or n_bytes <= share * available_memory()


@dataclass(frozen=True)
class MemoryBudget:
    """A limit on allocations.

    Attributes
    ----------
    limit : int or None
        Bytes; None means 80 % of the currently available memory.
    """

    limit: int | None = None

    @property
    def free(self) -> int:
        """Bytes that may be allocated now."""
        return int(_SHARE * available_memory()) if self.limit is None else self.limit

    def allows(self, n_bytes: int) -> bool:
        """Tell whether `n_bytes` may be allocated."""
        return fits(n_bytes) if self.limit is None else n_bytes <= self.limit

    def demand(self, n_bytes: int, n_rows: int, what: str) -> None:
        """Raise an error unless `n_bytes` may be allocated; the message names a basis that fits."""
        if not self.allows(n_bytes):
            free = self.free
            raise MemoryLimitError(
                f"{what} takes about {n_bytes / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB may be used.",
                f"use basis={largest_basis(n_rows, free)}, which fits, or solver='cg', which makes kernel "
                "rows again whenever it needs them; or raise memory_limit.",
            )


def largest_basis(n_rows: int, free: int) -> int:
    """Return the most basis rows whose design and decomposition fit: ``8 (2 m b + 4 b²)`` bytes."""
    size = (sqrt(n_rows**2 + free / 2) - n_rows) / 4
    return max(1, min(n_rows, int(size)))


def check_columns_fit(n_columns: int, n_vectors: int = 4) -> None:
    """Raise an error unless `n_vectors` vectors with a number for each column fit in memory.

    A sparse matrix may have billions of columns and take little memory. A linear model has a coefficient for each
    column, and its solver also holds a gradient, a direction and its image.
    """
    n_bytes = 8 * n_columns * n_vectors
    if not fits(n_bytes, 1.0):
        free = available_memory()
        raise MemoryLimitError(
            f"A model of {n_columns:,} columns takes {8 * n_columns / 1e9:,.1f} GB for its coefficients alone and "
            f"{n_bytes / 1e9:,.1f} GB during the fit, and {free / 1e9:,.1f} GB are free.",
            "column numbers as large as these are usually typos or hashes: number the columns that occur from 1, or "
            "hash them to fewer, such as 2^20.",
        )


def available_memory() -> int:
    """Return the bytes that this process could still allocate, by the system and its control groups (version 2)."""
    return min([_system_available(), *(_left(*group) for group in _limited_groups())])


def _system_available() -> int:
    with suppress(OSError), Path("/proc/meminfo").open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _FALLBACK


@functools.cache
def control_groups(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> tuple[Path, ...]:
    """Return the folder of this process's control group and those of the groups around it.

    Inside a container the group may be shown as the root itself, so the root is always among them.
    """
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    group = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")
    parts = [part for part in group.split("/") if part not in {"", ".."}]
    return tuple(root.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))


@functools.cache
def _limited_groups() -> list[tuple[Path, int]]:
    """Return the groups that limit the memory of this process, with their limits, which hardly ever change."""
    found = []
    for folder in control_groups():
        with suppress(OSError, ValueError):  # there is no such file, or no limit ("max")
            found.append((folder, int((folder / "memory.max").read_text(encoding="ascii"))))
    return found


def _left(folder: Path, limit: int) -> int:
    """Return the bytes left in a group; cached pages of files count as free, for the system gives them back."""
    try:
        usage = int((folder / "memory.current").read_text(encoding="ascii"))
        counts = dict(
            line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        )
    except (OSError, ValueError):
        return limit
    cached = sum(int(counts.get(name, 0)) for name in ("active_file", "inactive_file"))
    return max(limit - max(usage - cached, 0), 0)
