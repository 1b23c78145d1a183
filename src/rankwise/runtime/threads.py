"""How many threads the compiled kernels use when nobody says, and how many linear algebra does.

The threads of a BLAS wait for each other many times in one product, spinning. Where every processor has other work
too, each wait costs a time slice: with six busy processes on two processors a product of 0.1 ms took 12 ms, a Cholesky
decomposition of 0.1 ms 320 ms. On a quiet machine products with vectors gain nothing either, for memory is the limit.
So every public method of an estimator holds BLAS to one thread, and lets go only around the products and
decompositions of large matrices, where the machine has processors to spare.
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

from rankwise.runtime.interrupts import interruptible
from rankwise.runtime.memory import make_room_for_blas

if TYPE_CHECKING:
    from threadpoolctl import LibController

__all__ = ["blas_held", "default_threads", "is_held_by_thread", "large_algebra", "one_blas_thread"]

# From this many rows of a square matrix on, decompositions gain by BLAS threads on a quiet machine: at 500 two threads
# took 1.1 (eigenvectors) and 1.8 (Cholesky) times as long as one, at 1000 both took 0.7 times.
LARGE_MATRIX = 768

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def default_threads() -> int:
    """Return the number of processors this process may use, or 1 where the caller is already parallel.

    Already parallel means: a child process of `multiprocessing` or joblib (loky), or any thread but the main
    one (joblib's threading backend, the workers of dask). What a control group allows is rounded up.
    ``RANKWISE_NUM_THREADS`` overrides all.
    """
    asked = os.environ.get("RANKWISE_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    in_worker = multiprocessing.parent_process() is not None
    if in_worker or threading.current_thread() is not threading.main_thread():
        return 1
    return _processors()


def one_blas_thread(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a method that fits: it holds BLAS to one thread while it runs, and raises what interrupted it."""

    @interruptible
    @functools.wraps(method)
    def held(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        make_room_for_blas()
        with blas_held():
            return method(*args, **kwargs)

    return held


class blas_held:  # noqa: N801
    """Hold BLAS to one thread in a block, such as one that has threads of its own."""

    def __enter__(self) -> None:
        try:
            for holds in _needed_holds():
                holds.hold(self)
        except BaseException:  # Ctrl-C, of all moments
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        for holds in _needed_holds():
            holds.let_go(self)


@contextmanager
def large_algebra(size: int) -> Iterator[None]:
    """Let BLAS have its threads back for work on a matrix of so many rows and columns, where that pays.

    It does on a large matrix, on a machine that is not busy, unless another thread holds BLAS as well.
    """
    if size < LARGE_MATRIX or _is_busy():
        yield
        return
    lowered = [
        holds for holds in _needed_holds() if holds.is_lowered
    ]  # not those that a block around has suspended
    try:
        for holds in lowered:
            holds.suspend()
        yield
    finally:
        for holds in lowered:
            holds.resume()


class _Holds:
    """Who holds the BLAS libraries to one thread.

    The number of threads of most libraries belongs to the whole process: the first who holds lowers it, and the last
    who lets go restores it, so that fits in several threads do not raise what another one has lowered.
    """

    per_thread = False

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._holders: dict[object, int] = {}  # and their threads
        self._lowered: list[tuple[LibController, int]] | None = None  # None while nobody holds

    def hold(self, holder: object) -> None:
        with self.lock:
            self._holders[holder] = threading.get_ident()
            if self._lowered is None:
                self._lower()

    def let_go(self, holder: object) -> None:
        """End a hold; one that was interrupted before it began is no fault."""
        with self.lock:
            self._holders.pop(holder, None)
            if not self._holders:
                self._restore()

    @property
    def is_lowered(self) -> bool:
        return self._lowered is not None

    def suspend(self) -> None:
        """Restore what this thread holds, where no other thread holds."""
        with self.lock:
            if set(self._holders.values()) == {threading.get_ident()}:
                self._restore()

    def resume(self) -> None:
        with self.lock:
            if self._holders and self._lowered is None:
                self._lower()

    def _lower(self) -> None:
        self._lowered = []
        with _in_control():
            for library in _libraries(self.per_thread):
                n_threads = library.get_num_threads()
                if n_threads is not None and n_threads > 1:
                    self._lowered.append((library, n_threads))
                    library.set_num_threads(1)

    def _restore(self) -> None:
        if self._lowered:
            with _in_control():
                for library, n_threads in self._lowered:
                    if library.get_num_threads() == 1:  # else somebody else has set it since
                        library.set_num_threads(n_threads)
        self._lowered = None


class _OwnHolds(_Holds, threading.local):
    """The same for libraries that ask OpenMP, where each thread has a number of its own."""

    per_thread = True


_HOLDS = (_Holds(), _OwnHolds())


@functools.cache
def _needed_holds() -> tuple[_Holds, ...]:
    return tuple(holds for holds in _HOLDS if _libraries(holds.per_thread))


def is_held_by_thread() -> bool:
    """Tell whether each thread has a number of BLAS threads of its own, so that another one would not be held."""
    return _HOLDS[1] in _needed_holds()


def _renew_locks() -> None:
    """In a forked child nobody is left who could let go of a lock."""
    for holds in _HOLDS:
        holds.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


@functools.cache
def _libraries(per_thread: bool) -> list[LibController]:
    """Return the BLAS libraries; looking for them takes milliseconds, setting their threads microseconds."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  the command line starts without it

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if _is_per_thread(library) == per_thread]


def _is_per_thread(library: LibController) -> bool:
    # Before 3.8, threadpoolctl set the number of the process.
    return hasattr(library, "clear_controlling_thread") and library.threading_layer == "openmp"


class _in_control:  # noqa: N801  a class, for a generator would take as long as all the rest
    """Make threadpoolctl listen to this thread.

    From 3.8 on, it listens to the first thread that sets something, and silently to no other until that one is done.
    """

    def __enter__(self) -> None:
        self._clear()

    def __exit__(self, *error: object) -> None:
        self._clear()

    @staticmethod
    def _clear() -> None:
        for kind in _controlled_kinds():
            kind.clear_controlling_thread(force=True)


@functools.cache
def _controlled_kinds() -> list[type[LibController]]:
    kinds = {type(library) for library in (*_libraries(per_thread=False), *_libraries(per_thread=True))}
    return [kind for kind in kinds if hasattr(kind, "clear_controlling_thread")]


def _is_busy(loads: Path = Path("/proc/loadavg")) -> bool:
    """Tell whether more threads want to run at this moment than there are processors."""
    try:
        running = loads.read_text().split()[3].partition("/")[0]
        return int(running) > (os.cpu_count() or 1)
    except (OSError, IndexError, ValueError):
        return hasattr(os, "getloadavg") and os.getloadavg()[0] > (os.cpu_count() or 1)


def _processors() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _control_group_quota()
    return allowed if quota is None else max(1, min(allowed, quota))


@functools.cache
def _control_group_quota(root: str = "/sys/fs/cgroup", membership: str = "/proc/self/cgroup") -> int | None:
    """Return how many processors the control groups of this process allow, rounded up; None without a limit."""
    try:
        lines = Path(membership).read_text().splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            quotas += [_quota(folder / "cpu.max") for folder in _upwards(Path(root), path)]
        elif "cpu" in controllers.split(","):
            for mount in (Path(root, controllers), Path(root, "cpu")):
                quotas += [
                    _quota(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")
                    for folder in _upwards(mount, path)
                ]
    return min((quota for quota in quotas if quota is not None), default=None)


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """Return the folders of a control group and of those it is part of; inside a container the root is its own."""
    parts = [part for part in path.split("/") if part not in {"", ".."}]
    return (root.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))


def _quota(*files: Path) -> int | None:
    try:
        words = " ".join(file.read_text() for file in files).split()
        quota, period = int(words[0]), int(words[1])
    except (OSError, ValueError, IndexError):  # not there, or "max"
        return None
    return -(-quota // period) if quota > 0 and period > 0 else None
