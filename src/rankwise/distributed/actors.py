"""Actors on workers: where the shares are, and how to tell that one is lost.

Nothing here waits without a limit, because a call to a worker that is killed may never return: the state of the actor
is looked at meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import uuid4

from rankwise.distributed.actor_handle import ActorHandle, Call, LostError, actor_at
from rankwise.distributed.connections import Connection, can_connect, new_secret
from rankwise.distributed.dask_types import Client
from rankwise.distributed.loading import Loading
from rankwise.distributed.shares import Shares
from rankwise.distributed.source import Source, Survey
from rankwise.distributed.worker_rows import Answer, WorkerRows
from rankwise.exceptions import ClusterError, MemoryLimitError
from rankwise.runtime.progress import ProgressLine

__all__ = ["ATTEMPTS", "POLL", "Actors", "Options"]

POLL = 0.2  # seconds between two looks at what became of a worker
ATTEMPTS = 5  # how often a share may be lost before anything was computed with it
# Seconds that a nanny may take to start a worker in place of one that is gone, while another could hold its share: it
# takes about 2, and two shares on one worker make every product twice as long.
_REPLACEMENT = 4.0
_MEMORY_SHARE = 0.6  # of a worker's limit: Dask pauses workers at 0.8


@dataclass(frozen=True)
class Options:
    """How a cluster is used; see `rankwise.distributed.distribute`."""

    scattered: str = "shuffle"
    timeout: float = 300.0
    n_threads: int | None = None
    direct: bool = True


@dataclass
class Actors:
    """The actors of all shares.

    Attributes
    ----------
    client : distributed.Client
        The caller's.
    setup : list of (method, arguments per share)
        What every new actor is told after it was filled.
    line : ProgressLine
    """

    client: Client
    source: Source
    survey: Survey
    shares: Shares
    options: Options
    setup: list[tuple[str, Sequence[tuple[object, ...]]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.token, self._generation = uuid4().hex[:8], 0
        self.line = ProgressLine("cluster")
        self._n_workers = len(self.workers())
        self._handles: list[ActorHandle | None] = [None] * len(self.shares)

    def __getitem__(self, number: int) -> ActorHandle | None:
        return self._handles[number]

    def workers(self) -> dict[str, int]:
        """Return the addresses of the workers that are there, and their threads."""
        return self.client.nthreads()

    def ask(self, number: int, method: str, *args: object) -> Call | None:
        """Call an actor without waiting for its answer; None where it is lost."""
        handle = self._handles[number]
        return None if handle is None else handle.ask(method, args, self._patience(handle))

    def wait(self, number: int, call: Call | None) -> Answer:
        """Return what an actor answers; raise `LostError` where it is gone."""
        handle = self._handles[number]
        if call is None or handle is None:
            raise LostError
        may_wait = self._patience(handle)
        while True:
            found = call.look(POLL)
            if isinstance(found, tuple):
                return found
            if found is not None:
                # Whatever an actor itself raises is part of its answer: the way to it is broken.
                raise LostError from found
            may_wait()

    def _patience(self, handle: ActorHandle) -> Callable[[], None]:
        """Return what raises where waiting for a worker is in vain, or has taken too long."""
        began = time.monotonic()

        def may_wait() -> None:
            waited = time.monotonic() - began
            if handle.is_lost or (waited > 1.0 and handle.address not in self.workers()):
                raise LostError
            if waited > self.options.timeout:
                raise self._silent(handle)

        return may_wait

    def take(self, numbers: Sequence[int]) -> None:
        """Make actors of these shares, fill them, and tell them what the others know."""
        waiting = list(numbers)
        for _ in range(ATTEMPTS):
            for number in waiting:
                self._leave(number)
            for number in waiting:
                self._handles[number] = self._new_handle(number)
            self._allocate(waiting)
            self._fill([number for number in waiting if self._handles[number] is not None])
            waiting = [number for number in waiting if self._handles[number] is None]
            if not waiting:
                return
        raise self.lost_too_often(waiting[0])

    def lost_too_often(self, number: int) -> ClusterError:
        """Return the error that ends it."""
        handle = self._handles[number]
        where = "" if handle is None else f", last on {handle.address}"
        return ClusterError(
            f"The rows of share {number} were lost {ATTEMPTS} times{where}.",
            "workers that end again and again are mostly out of memory: use more of them, or larger ones.",
        )

    def close(self) -> None:
        """Let go of all actors."""
        for number in range(len(self._handles)):
            self._leave(number)

    # --- places ---

    def _leave(self, number: int) -> None:
        handle = self._handles[number]
        if handle is not None:
            handle.close()
        self._handles[number] = None

    def _new_handle(self, number: int) -> ActorHandle:
        address = self._place(number)
        self._generation += 1
        name = f"rankwise-rows-{self.token}-share{number}-{self._generation}"
        threads = self.options.n_threads or self.workers().get(address, 1)
        future = self.client.submit(
            WorkerRows, name, threads, actor=True, workers=[address], allow_other_workers=False, key=name
        )
        return ActorHandle(
            address, name, future, actor_at(self.client, address, name, is_direct=self.options.direct)
        )

    def _place(self, number: int) -> str:
        """Choose a worker: one with few bytes of ours; where one was lost, its successor is waited for."""
        began = time.monotonic()
        while True:
            load = dict.fromkeys(sorted(self.workers()), 0)
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
                if problem is not None and (is_complete or waited > self.options.timeout):
                    raise problem
            elif waited > self.options.timeout:
                raise ClusterError(
                    f"No worker is left, and none came for {self.options.timeout:.0f} s.",
                    "start workers; a nanny starts those again that were killed.",
                )
            time.sleep(POLL)

    def _bytes(self, number: int) -> int:
        share, lengths = self.shares[number], self.survey.lengths
        nnz = share.size * self.survey.shape[1] if lengths is None else int(lengths[share.rows].sum())
        return self.survey.bytes_of(share.size, nnz)

    def _lacks_memory(self, address: str, n_bytes: int) -> MemoryLimitError | None:
        facts = self.client.scheduler_info(n_workers=-1)["workers"].get(address, {})
        limit = facts.get("memory_limit") or 0
        assert isinstance(limit, int)
        if not limit or n_bytes <= _MEMORY_SHARE * limit:
            return None
        return MemoryLimitError(
            f"The worker {address} would hold {n_bytes / 2**30:.2f} GiB of rows, and may use "
            f"{limit / 2**30:.2f} GiB.",
            "use more workers, or workers with more memory; float32 takes two thirds of the memory of sparse rows.",
        )

    # --- rows come ---

    def _allocate(self, numbers: Sequence[int]) -> None:
        survey, calls = self.survey, {}
        for number in numbers:
            share = self.shares[number]
            lengths = None if survey.lengths is None else survey.lengths[share.rows]
            try:
                self._created(number)
                self._connect(number)
            except LostError:
                self._leave(number)
                continue
            shape = (share.size, survey.shape[1])
            calls[number] = self.ask(number, "allocate", shape, survey.dtype, lengths)
        self._done(calls)

    def _created(self, number: int) -> None:
        handle, began = self._handles[number], time.monotonic()
        assert handle is not None
        while handle.future.status != "finished":
            waited = time.monotonic() - began
            if handle.is_lost or (waited > POLL and handle.address not in self.workers()):
                raise LostError
            if waited > self.options.timeout:
                raise self._silent(handle)
            time.sleep(POLL / 20)

    def _connect(self, number: int) -> None:
        """Connect to an actor, where its worker and what lies between allow it."""
        handle = self._handles[number]
        assert handle is not None
        host = urlsplit(handle.address).hostname
        if not self.options.direct or not can_connect(handle.address) or host is None:
            return
        secret = new_secret()
        status, port, _ = self.wait(number, self.ask(number, "listen", host, secret))
        if status != "done":
            return
        try:
            handle.connection = Connection((host, port), secret)
        except OSError:
            handle.connection = None  # a firewall lets Dask's ports through, and not this one

    def _done(self, calls: dict[int, Call | None]) -> None:
        """Wait until actors have done what they need before they can multiply; take away the handles of lost ones."""
        for number, call in calls.items():
            try:
                status, found, _ = self.wait(number, call)
            except LostError:
                self._leave(number)
                continue
            if status != "done":
                raise found

    def _fill(self, numbers: Sequence[int]) -> None:
        loading = Loading(self.client, self.source, self.survey, self.options.timeout, self.line)
        handles = {number: handle for number in numbers if (handle := self._handles[number]) is not None}
        silent = loading.load(handles, self.shares)
        if silent is not None:
            raise self._silent(silent)
        for number in set(numbers) - handles.keys():
            self._leave(number)
        # The actor knows what came: results of tasks go with their worker, and asking for them waits for ever.
        self._done({number: self.ask(number, "finish") for number in handles})
        for method, told in self.setup:
            self._done({n: self.ask(n, method, *told[n]) for n in numbers if self._handles[n] is not None})

    def _silent(self, handle: ActorHandle) -> ClusterError:
        return ClusterError(
            f"The worker {handle.address} did not answer for {self.options.timeout:.0f} s, and is still there.",
            "look at it on the dashboard; where it is only slow, pass a larger timeout to "
            "rankwise.distributed.distribute or read.",
        )
