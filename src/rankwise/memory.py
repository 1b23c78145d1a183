"""How much memory may be used: asked before anything large is allocated."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory"]

_FALLBACK = 4 * 2**30


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
