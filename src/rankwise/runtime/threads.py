"""Numbers of threads of the compiled kernels and of BLAS.

The threads of a BLAS wait for each other many times in one product, spinning. Where every processor has other work
too, each wait costs a time slice: with six busy processes on two processors a product of 0.1 ms took 12 ms, a Cholesky
decomposition of 0.1 ms 320 ms. On a quiet machine products with vectors gain nothing either, for memory is the limit.
So every fit limits BLAS to one thread, and lifts the limit only around the products and decompositions of large
matrices, where the machine has processors to spare.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import LibController

# From this many rows of a square matrix on, decompositions gain by BLAS threads on a quiet machine: at 500 two threads
# took 1.1 (eigenvectors) and 1.8 (Cholesky) times as long as one, at 1000 both took 0.7 times.
LARGE_MATRIX = 768

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def default_threads() -> int:
    """Return the number of processors this process may use, or 1 where the caller is already parallel.

    Already parallel means: a child process of `multiprocessing` or joblib (loky), or any thread but the main
    one (joblib's threading backend, the workers of dask). The quota of a control group is rounded up.
    ``RANKWISE_NUM_THREADS`` overrides all.
    """
    asked = os.environ.get("RANKWISE_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if multiprocessing.parent_process() is not None or not _is_main_thread():
        return 1
    return _processors()


@functools.cache
def _processors() -> int:
    """Return how many processors the system and the control group of this process allow."""
    from joblib import cpu_count  # type: ignore[import-untyped]  # noqa: PLC0415 - the command line starts without it

    return int(cpu_count())


class _Limited(threading.local):
    """The depth of nested BLAS limits of this thread, and the limited libraries with their numbers of threads."""

    def __init__(self) -> None:
        self.depth = 0
        self.libraries: list[tuple[LibController, int]] = []

    def lower(self) -> None:
        for library in _blas_libraries():
            n_threads = library.get_num_threads()
            if n_threads is not None and n_threads > 1:
                self.libraries.append((library, n_threads))
                library.set_num_threads(1)

    def restore(self) -> None:
        while self.libraries:
            library, n_threads = self.libraries[-1]
            if library.get_num_threads() == 1:  # else somebody else has set it since
                library.set_num_threads(n_threads)
            self.libraries.pop()
            if hasattr(library, "clear_controlling_thread"):  # from threadpoolctl 3.8 on
                library.clear_controlling_thread()


_LIMITED = _Limited()


@functools.cache
def _blas_libraries() -> list[LibController]:
    """Return the BLAS libraries; finding them takes milliseconds, setting their threads microseconds."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - the command line starts without it

    found: list[LibController] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


class blas_held:  # noqa: N801 - a class, because a generator would take as long as all the rest
    """Limit BLAS to one thread in a block."""

    def __enter__(self) -> None:
        if _LIMITED.depth == 0:
            _LIMITED.lower()
        _LIMITED.depth += 1

    def __exit__(self, *error: object) -> None:
        _LIMITED.depth -= 1
        if _LIMITED.depth == 0:
            _LIMITED.restore()


def one_blas_thread(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a method that fits: BLAS has one thread while it runs."""
    # Not by contextlib.ContextDecorator: warnings would point at its line instead of the caller's.

    @functools.wraps(method)
    def held(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with blas_held():
            return method(*args, **kwargs)

    return held


@contextmanager
def large_algebra(size: int) -> Iterator[None]:
    """Lift the limit on BLAS threads for work on a matrix with `size` rows and columns, where this is faster.

    It is faster for large matrices on a machine that is not busy. The limit stays in place outside the main thread,
    because other threads then compute at the same time.
    """
    if size < LARGE_MATRIX or not _LIMITED.libraries or not _is_main_thread() or _is_busy():
        yield
        return
    try:
        _LIMITED.restore()
        yield
    finally:
        _LIMITED.lower()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_busy(loads: Path = Path("/proc/loadavg")) -> bool:
    """Tell whether more threads want to run at this moment than there are processors."""
    try:
        running = loads.read_text(encoding="ascii").split()[3].partition("/")[0]
    except OSError:
        return os.getloadavg()[0] > (os.cpu_count() or 1) if hasattr(os, "getloadavg") else False
    return int(running) > (os.cpu_count() or 1)
