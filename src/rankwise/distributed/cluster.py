"""The actors of all shares: their placement, calls to them, and recovery of lost actors.

Actors are plain Dask actors, so that the client's own settings (`direct_to_workers`, TLS, gateways) apply. The
client holds all state of a solver, and every call can be repeated: a lost actor is created on another worker and filled
from the graph, and the earlier settings and the call are sent again. Every wait has a time limit.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from uuid import uuid4

import dask
import distributed

from rankwise.arrays import Floats
from rankwise.distributed.blocks import Source, Survey
from rankwise.distributed.shares import Shares
from rankwise.distributed.worker import WorkerRows, fill
from rankwise.exceptions import ClusterError, MemoryLimitError
from rankwise.runtime.progress import ProgressLine

Arguments = Sequence[tuple[object, ...]]  # of one call to each share
Found = TypeVar("Found")

_POLL = 0.2  # seconds between two looks at the state of a worker
_ATTEMPTS = 5  # how often a share may be lost in one call
# Seconds that a nanny may take to start a worker in place of a lost one, while another could hold the share: it takes
# about 2, and two shares on one worker make every product twice as long.
_REPLACEMENT = 4.0
_MEMORY_SHARE = 0.6  # of a worker's limit: Dask pauses workers at 0.8


class _Opened(threading.local):
    """The clusters that this thread opened and has not released."""

    def __init__(self) -> None:
        self.clusters: list[weakref.ref[Cluster]] = []


_OPENED = _Opened()


def release_clusters() -> None:
    """Free the rows of all clusters that this thread opened; later calls load them again."""
    while _OPENED.clusters:
        cluster = _OPENED.clusters.pop()()
        if cluster is not None:
            cluster.close()


class _LostError(Exception):
    """The worker of a share is gone."""


@dataclass(frozen=True)
class _Handle:
    """One actor, as the client sees it."""

    address: str
    name: str
    future: Any
    actor: Any

    @property
    def is_lost(self) -> bool:
        return self.future.status not in {"pending", "finished"}


class Cluster:
    """The rows of a source on the workers of a client.

    Attributes
    ----------
    n_reads : int
        The number of complete reads of the rows so far.
    n_products : int
        The number of vectors multiplied so far.
    n_rebuilt : int
        The number of actors that were created again.
    """

    def __init__(
        self,
        client: Any,
        source: Source,
        survey: Survey,
        shares: Shares,
        timeout: float,
        n_threads: int | None,
    ) -> None:
        self.shares, self.survey, self.timeout = shares, survey, timeout
        self.n_reads = self.n_products = self.n_rebuilt = 0
        self._client, self._source, self._n_threads = client, source, n_threads
        self._token, self._generation = uuid4().hex[:8], 0
        self._n_workers = len(client.nthreads())
        self._setup: list[tuple[str, Arguments]] = []
        self._dropped: list[str] = []
        self._lock = threading.RLock()
        self._line = ProgressLine("cluster")
        self._handles: list[_Handle | None] = [None] * len(shares)
        weakref.finalize(self, _release, client, self._handles).atexit = False
        _OPENED.clusters.append(weakref.ref(self))
        self._take(range(len(shares)))

    @property
    def addresses(self) -> list[str]:
        """The worker of each share."""
        return [handle.address for handle in self._handles if handle is not None]

    def count(self, vectors: Floats | None = None) -> None:
        """Count a read of all rows, and the vectors that were multiplied."""
        self.n_reads += 1
        self.n_products += 0 if vectors is None else 1 if vectors.ndim == 1 else vectors.shape[1]

    def close(self) -> None:
        """Free the rows on the workers."""
        _release(self._client, self._handles)

    # --- calls ---

    def answers(self, method: Callable[..., Found], arguments: Arguments) -> Iterator[Found]:
        """Call a method of `WorkerRows` on every actor; yield the answers in the order of the shares."""
        with self._lock, self._line:
            self._drop()
            name = method.__name__
            calls = [self._ask(number, name, args) for number, args in enumerate(arguments)]
            for number, args in enumerate(arguments):
                yield cast("Found", self._answer(number, calls[number], name, args))
                calls[number] = None
            self._line.update(f"{self.n_products} products")

    def everywhere(self, method: Callable[..., Found], *args: object) -> Iterator[Found]:
        """Call every actor with the same arguments."""
        return self.answers(method, [args] * len(self.shares))

    def total(self, method: Callable[..., Floats], arguments: Arguments) -> Floats:
        """Add up the answers, in the order of the shares."""
        answers = self.answers(method, arguments)
        total = next(answers)
        for found in answers:
            total = total + found
        return total

    def set_up(self, method: Callable[..., Found], arguments: Arguments) -> list[Found]:
        """Call every actor, and later every actor that is created again."""
        found = list(self.answers(method, arguments))
        self._setup.append((method.__name__, arguments))
        return found

    def forget(self, name: str) -> None:
        """Let the actors drop a product or pairs with the next call; finalizers run in the middle of other calls."""
        self._dropped.append(name)

    def _drop(self) -> None:
        while self._dropped:
            name = self._dropped.pop()
            self._setup = [one for one in self._setup if one[1][0][:1] != (name,)]
            for number in range(len(self.shares)):
                self._ask(number, "drop", (name,))

    def _ask(self, number: int, method: str, args: tuple[object, ...]) -> Any:
        """Call an actor without waiting; None where it is lost."""
        handle = self._handles[number]
        if handle is None or handle.is_lost:
            return None
        try:
            return handle.actor.call(method, *args)
        except (RuntimeError, OSError):  # "Worker holding Actor was lost"
            return None

    def _answer(self, number: int, call: Any, method: str, args: tuple[object, ...]) -> object:
        for _ in range(_ATTEMPTS):
            try:
                return self._wait(number, call)
            except _LostError:
                self.n_rebuilt += 1
                self._take([number])
                call = self._ask(number, method, args)
        raise _lost_too_often(number)

    def _wait(self, number: int, call: Any) -> object:
        """Return the result of a call; raise `_LostError` where the actor is gone."""
        handle = self._handles[number]
        if call is None or handle is None:
            raise _LostError
        began = time.monotonic()
        while True:
            try:
                is_done, found = call.result(timeout=_POLL)
            except TimeoutError as error:
                error.with_traceback(None)  # Dask keeps the error, and its frames would keep the model
                self._check_alive(handle, began)
                continue
            except Exception as error:
                raise _LostError from error
            if is_done:
                return cast("object", found)
            raise found

    def _check_alive(self, handle: _Handle, began: float) -> None:
        """Raise an error if the worker is gone, or has taken too long."""
        waited = time.monotonic() - began
        if handle.is_lost or (waited > 1.0 and handle.address not in self._client.nthreads()):
            raise _LostError
        if waited > self.timeout:
            raise ClusterError(
                f"The worker {handle.address} did not answer for {self.timeout:.0f} s, and is still connected.",
                "look at it on the dashboard; if it is only slow, pass a larger timeout to "
                "rankwise.distributed.distribute or read.",
            )

    # --- actors and their rows ---

    def _take(self, numbers: Sequence[int]) -> None:
        """Create the actors of these shares, fill them, and repeat the calls of `set_up`."""
        waiting = list(numbers)
        for _ in range(_ATTEMPTS):
            for number in waiting:
                self._leave(number)
            for number in waiting:
                self._handles[number] = self._new_handle(number)
            self._allocate(waiting)
            self._fill(waiting)
            self._each(waiting, "finish", [()] * len(self.shares))
            for method, arguments in self._setup:
                self._each(waiting, method, arguments)
            waiting = [number for number in waiting if self._handles[number] is None]
            if not waiting:
                return
        raise _lost_too_often(waiting[0])

    def _leave(self, number: int) -> None:
        handles = [self._handles[number]]
        self._handles[number] = None
        _release(self._client, handles)

    def _each(self, numbers: Sequence[int], method: str, arguments: Arguments) -> None:
        """Call a method that prepares actors; those that are lost meanwhile lose their handles."""
        calls = {n: self._ask(n, method, arguments[n]) for n in numbers if self._handles[n] is not None}
        for number, call in calls.items():
            try:
                self._wait(number, call)
            except _LostError:
                self._leave(number)

    def _new_handle(self, number: int) -> _Handle:
        address = self._place(number)
        self._generation += 1
        name = f"rankwise-rows-{self._token}-share{number}-{self._generation}"
        threads = self._n_threads or self._client.nthreads().get(address, 1)
        future = self._client.submit(
            WorkerRows, name, threads, actor=True, workers=[address], allow_other_workers=False, key=name
        )
        with self._client.as_current():
            return _Handle(address, name, future, distributed.Actor(WorkerRows, address, name))

    def _place(self, number: int) -> str:
        """Choose the worker with the fewest bytes of ours; wait a little for the successor of a lost one."""
        began = time.monotonic()
        while True:
            load: dict[str, int] = dict.fromkeys(sorted(self._client.nthreads()), 0)
            for other, handle in enumerate(self._handles):
                if handle is not None and handle.address in load and other != number:
                    load[handle.address] += self._bytes(other)
            waited = time.monotonic() - began
            if load:
                address = min(load, key=load.__getitem__)
                problem = self._lacks_memory(address, load[address] + self._bytes(number))
                is_complete = len(load) >= self._n_workers or load[address] == 0
                if problem is None and (is_complete or waited > _REPLACEMENT):
                    return address
                if problem is not None and (is_complete or waited > self.timeout):
                    raise problem
            elif waited > self.timeout:
                raise ClusterError(
                    f"No worker is left, and none joined for {self.timeout:.0f} s.",
                    "start workers; a nanny restarts workers that were killed.",
                )
            time.sleep(_POLL)

    def _bytes(self, number: int) -> int:
        share, lengths = self.shares[number], self.survey.lengths
        nnz = share.size * self.survey.shape[1] if lengths is None else int(lengths[share.rows].sum())
        return self.survey.bytes_of(share.size, nnz)

    def _lacks_memory(self, address: str, n_bytes: int) -> MemoryLimitError | None:
        facts = self._client.scheduler_info(n_workers=-1)["workers"].get(address, {})
        limit = facts.get("memory_limit") or 0
        if not limit or n_bytes <= _MEMORY_SHARE * limit:
            return None
        return MemoryLimitError(
            f"The worker {address} would hold {n_bytes / 2**30:.2f} GiB of rows, and may use "
            f"{limit / 2**30:.2f} GiB.",
            "use more workers, or workers with more memory; float32 takes two thirds of the memory of sparse rows.",
        )

    def _allocate(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            handle, began = self._handles[number], time.monotonic()
            assert handle is not None
            try:
                while handle.future.status != "finished":
                    self._check_alive(handle, began)
                    _wait_for([handle.future], _POLL / 20)
            except _LostError:
                self._leave(number)
        shapes = [(share.size, self.survey.shape[1]) for share in self.shares]
        lengths = self.survey.lengths
        own = [None if lengths is None else lengths[share.rows] for share in self.shares]
        told = [(shape, self.survey.dtype, length) for shape, length in zip(shapes, own, strict=True)]
        self._each(numbers, "allocate", told)

    def _fill(self, numbers: Sequence[int]) -> None:
        """Copy rows into actors by tasks of one graph: blocks that several shares need are computed once."""
        owners, tasks = [], []
        for number in numbers:
            own = self._tasks(number)
            tasks += own
            owners += [number] * len(own)
        futures = self._client.compute(tasks, optimize_graph=False)
        began, n_done = time.monotonic(), 0
        with self._line:
            while waiting := self._unfinished(futures, owners):
                done = len(futures) - len(waiting)
                if done > n_done:
                    began, n_done = time.monotonic(), done
                handle = self._handles[owners[waiting[0]]]
                if handle is not None and time.monotonic() - began > 1.0:
                    self._check_alive(handle, began)
                self._line.update(f"loading block {n_done} of {len(futures)}", n_done / len(futures))
                _wait_for([futures[at] for at in waiting], _POLL)
        for future, owner in zip(futures, owners, strict=True):
            if self._handles[owner] is not None and future.status != "finished":
                error = future.exception(timeout=self.timeout) if future.status == "error" else None
                if error is not None and not isinstance(error, (LookupError, distributed.KilledWorker)):
                    raise error
                self._leave(owner)
        self._client.cancel([f for f, n in zip(futures, owners, strict=True) if self._handles[n] is None])

    def _tasks(self, number: int) -> list[Any]:
        """Return the tasks that copy blocks into an actor, on its own worker."""
        handle, share, tasks = self._handles[number], self.shares[number], []
        if handle is None:
            return []
        ends = self.survey.ends.tolist()
        for at, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            where, chosen = share.within(first, last)
            if (chosen.stop - chosen.start if isinstance(chosen, slice) else chosen.size) == 0:
                continue
            with dask.annotate(workers=[handle.address], allow_other_workers=False):
                task = dask.delayed(fill, pure=False)(
                    handle.name,
                    where,
                    self._source.blocks[at],
                    chosen,
                    self.survey.first_column,
                    dask_key_name=f"rankwise-load-{handle.name.removeprefix('rankwise-rows-')}-block{at}",
                )
            tasks.append(task)
        return tasks

    def _unfinished(self, futures: Sequence[Any], owners: Sequence[int]) -> list[int]:
        """Return the tasks that are worth waiting for; lost workers lose their handles."""
        waiting = [at for at, future in enumerate(futures) if not future.done()]
        alive = self._client.nthreads() if waiting else {}
        for number in {owners[at] for at in waiting}:
            handle = self._handles[number]
            if handle is not None and (handle.address not in alive or handle.is_lost):
                self._leave(number)
        return [at for at in waiting if self._handles[owners[at]] is not None]


def _release(client: Any, handles: list[_Handle | None]) -> None:
    """Free the rows of actors; a function, because the finalizer of a cluster must not refer to it."""
    for at, handle in enumerate(handles):
        handles[at] = None
        if handle is not None and client.status == "running":
            # Cancelling drops every reference of this client: Dask's own calls keep the actor until garbage collection.
            client.cancel([handle.future], force=True)


def _lost_too_often(number: int) -> ClusterError:
    return ClusterError(
        f"The rows of share {number} were lost {_ATTEMPTS} times.",
        "workers that end again and again are mostly out of memory: use more of them, or larger ones.",
    )


def _wait_for(futures: Sequence[Any], seconds: float) -> None:
    try:
        distributed.wait(futures, timeout=seconds)
    except TimeoutError as error:
        error.with_traceback(None)


def computed(client: Any, collections: Sequence[Any], timeout: float) -> list[Any]:
    """Compute small results; raise where nothing is computed for `timeout` seconds."""
    many = client.compute(collections)
    began, n_done = time.monotonic(), 0
    try:
        while (done := sum(future.done() for future in many)) < len(many):
            if done > n_done:
                began, n_done = time.monotonic(), done
            if time.monotonic() - began > timeout:
                raise TimeoutError  # noqa: TRY301 - as results that do not come
            _wait_for(many, _POLL)
        # Results are lost with their worker and then computed again, which may take as long.
        return [future.result(timeout=timeout) for future in many]
    except TimeoutError:
        workers = ", ".join(sorted(client.nthreads())) or "none"
        raise ClusterError(
            f"No block was computed for {timeout:.0f} s (workers: {workers}).",
            "look at the dashboard; if blocks take that long, pass a larger timeout.",
        ) from None


def current_client() -> Any:
    """Return the current client."""
    try:
        return distributed.get_client()
    except ValueError as error:
        raise ClusterError(
            "X is a Dask collection, but there is no client of a cluster.",
            "make one first: client = distributed.Client(distributed.LocalCluster()); or pass X.compute() if it fits "
            "in memory.",
        ) from error
