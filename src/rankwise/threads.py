"""How many threads the compiled kernels use when nobody says."""

from __future__ import annotations

import multiprocessing
import os
import threading

__all__ = ["default_threads"]


def default_threads() -> int:
    """Return the number of processors this process may use, or 1 where the caller is already parallel.

    Already parallel means: a child process of `multiprocessing` or joblib (loky), or any thread but the main
    one (joblib's threading backend, the workers of dask). ``RANKWISE_NUM_THREADS`` overrides both.
    """
    asked = os.environ.get("RANKWISE_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    in_worker = multiprocessing.parent_process() is not None
    if in_worker or threading.current_thread() is not threading.main_thread():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
