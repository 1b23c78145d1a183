"""How much memory may be used: asked before anything large is allocated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from rankwise.exceptions import MemoryLimitError

__all__ = ["MemoryBudget", "available_memory"]

_FALLBACK = 4 * 2**30
_SHARE = 0.8  # of the available memory may be used when nobody says


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
        return n_bytes <= self.free

    def demand(self, n_bytes: int, n_rows: int, what: str) -> None:
        """Raise unless so much may be allocated; the message names a basis that fits."""
        free = self.free
        if n_bytes > free:
            raise MemoryLimitError(
                f"{what} takes about {n_bytes / 2**30:.2f} GiB, and {free / 2**30:.2f} GiB may be used.",
                f"use basis={largest_basis(n_rows, free)}, which fits, or solver='cg', which makes kernel "
                "rows again whenever it needs them; or raise memory_limit.",
            )


def largest_basis(n_rows: int, free: int) -> int:
    """Return the most basis rows whose design and decomposition fit: ``8 (m b + 4 b²)`` bytes."""
    size = (sqrt(n_rows**2 + 16 * free / 8) - n_rows) / 8
    return max(1, min(n_rows, int(size)))


def available_memory() -> int:
    """Return the bytes that this process could still allocate, as the system and its control group see it."""
    return min(_system_available(), _cgroup_available())


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


def _cgroup_available() -> int:
    root = Path("/sys/fs/cgroup")
    for limit, usage in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ):
        try:
            text = limit.read_text(encoding="ascii").strip()
            if text != "max":
                return max(int(text) - int(usage.read_text(encoding="ascii")), 0)
        except (OSError, ValueError):
            continue
    return 2**63 - 1
