"""How many threads a compiled kernel may use when the caller does not say."""

from __future__ import annotations

import multiprocessing
import os

__all__ = ["default_threads"]


def default_threads() -> int:
    """Return the CPUs of this process; 1 in a daemon worker, whose pool already uses them all."""
    if multiprocessing.current_process().daemon:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
