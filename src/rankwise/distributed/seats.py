"""Actors on workers: where the shares are, how they are filled, and how to tell that one is lost.

A share is filled by tasks from the graph of its rows (never from data that the client scattered, which have no graph):
that can be done again on any worker. Nothing here waits without a limit, because a call to a worker that is killed may
never return: the state of the actor is looked at meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import dask
import distributed
import numpy as np

from rankwise.distributed.holding import Answer, WorkerRows, fill
from rankwise.distributed.shares import Shares
from rankwise.distributed.source import Source, Survey
from rankwise.exceptions import ClusterError, MemoryLimitError
from rankwise.progress import ProgressLine

__all__ = ["ATTEMPTS", "POLL", "LostError", "Options", "Seats"]

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


class LostError(Exception):
    """The worker of a share is gone."""


@dataclass
class Seat:
    """Where a share is."""

    address: str
    name: str
    future: Any
    actor: Any

    @property
    def is_lost(self) -> bool:
        """Whether the actor is known to be gone."""
        return self.future.status not in {"pending", "finished"}


@dataclass
class Seats:
    """The actors of all shares.

    Attributes
    ----------
    client : distributed.Client
        The caller's.
    setup : list of (method, arguments per share)
        What every new actor is told after it was filled.
    line : ProgressLine
    """

    client: Any
    source: Source
    survey: Survey
    shares: Shares
    options: Options
    setup: list[tuple[str, Sequence[tuple[Any, ...]]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.token, self._generation = uuid4().hex[:8], 0
        self.line = ProgressLine("cluster")
        self._n_workers = len(self.workers())
        self._seats: list[Seat | None] = [None] * len(self.shares)

    def __getitem__(self, number: int) -> Seat | None:
        return self._seats[number]

    def workers(self) -> dict[str, int]:
        """Return the addresses of the workers that are there, and their threads."""
        found: dict[str, int] = self.client.nthreads()
        return found

    def ask(self, number: int, method: str, *args: Any) -> Any:
        """Call an actor without waiting; None where it is lost."""
        seat = self._seats[number]
        if seat is None or seat.is_lost:
            return None
        try:
            return seat.actor.call(method, *args)
        except (RuntimeError, OSError):
            return None

    def wait(self, number: int, call: Any) -> Answer:
        """Return what an actor answers; raise `LostError` where it is gone."""
        seat = self._seats[number]
        if call is None or seat is None:
            raise LostError
        began = time.monotonic()
        while True:
            try:
                answer: Answer = call.result(timeout=POLL)
            except TimeoutError:
                waited = time.monotonic() - began
                if seat.is_lost or (waited > 1.0 and seat.address not in self.workers()):
                    raise LostError from None
                if waited > self.options.timeout:
                    raise self._silent(seat) from None
            except Exception as error:
                # Whatever an actor itself raises is part of its answer: the way to it is broken.
                raise LostError from error
            else:
                return answer

    def take(self, numbers: Sequence[int]) -> None:
        """Make actors of these shares, fill them, and tell them what the others know."""
        waiting = list(numbers)
        for _ in range(ATTEMPTS):
            for number in waiting:
                self._seats[number] = None
            for number in waiting:
                self._seats[number] = self._new_seat(number)
            self._allocate(waiting)
            self._fill([number for number in waiting if self._seats[number] is not None])
            waiting = [number for number in waiting if self._seats[number] is None]
            if not waiting:
                return
        raise self.lost_too_often(waiting[0])

    def lost_too_often(self, number: int) -> ClusterError:
        """Return the error that ends it."""
        seat = self._seats[number]
        where = "" if seat is None else f", last on {seat.address}"
        return ClusterError(
            f"The rows of share {number} were lost {ATTEMPTS} times{where}.",
            "workers that end again and again are mostly out of memory: use more of them, or larger ones.",
        )

    # --- places ---

    def _new_seat(self, number: int) -> Seat:
        address = self._place(number)
        self._generation += 1
        name = f"rankwise-rows-{self.token}-share{number}-{self._generation}"
        threads = self.options.n_threads or self.workers().get(address, 1)
        future = self.client.submit(
            WorkerRows, name, threads, actor=True, workers=[address], allow_other_workers=False, key=name
        )
        with self.client.as_current():
            kind = _DirectActor if self.options.direct else distributed.Actor
            actor = kind(WorkerRows, address, name)
        return Seat(address, name, future, actor)

    def _place(self, number: int) -> str:
        """Choose a worker: one with few bytes of ours; where one was lost, its successor is waited for."""
        began = time.monotonic()
        while True:
            load = dict.fromkeys(sorted(self.workers()), 0)
            for other, seat in enumerate(self._seats):
                if seat is not None and seat.address in load and other != number:
                    load[seat.address] += self._bytes(other)
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
            except LostError:
                self._seats[number] = None
                continue
            shape = (share.size, survey.shape[1])
            calls[number] = self.ask(number, "allocate", shape, survey.dtype, lengths)
        self._done(calls)

    def _created(self, number: int) -> None:
        seat, began = self._seats[number], time.monotonic()
        assert seat is not None
        while seat.future.status != "finished":
            waited = time.monotonic() - began
            if seat.is_lost or (waited > POLL and seat.address not in self.workers()):
                raise LostError
            if waited > self.options.timeout:
                raise self._silent(seat)
            time.sleep(POLL / 20)

    def _done(self, calls: dict[int, Any]) -> None:
        """Wait until actors have done what they need before they can multiply; take away the seats of lost ones."""
        for number, call in calls.items():
            try:
                status, found, _ = self.wait(number, call)
            except LostError:
                self._seats[number] = None
                continue
            if status != "done":
                raise found

    def _fill(self, numbers: Sequence[int]) -> None:
        """Let tasks copy the rows into actors, all in one graph: blocks that several need are made once."""
        owners, loads = [], []
        for number in numbers:
            own = self._loads(number)
            loads += own
            owners += [number] * len(own)
        futures = self.client.compute(loads, optimize_graph=False)
        self._await(futures, owners)
        calls: dict[int, Any] = {}
        for number in numbers:
            mine = [future for future, owner in zip(futures, owners, strict=True) if owner == number]
            if self._seats[number] is None:
                self.client.cancel(mine)
            else:
                # The actor knows what came: results of tasks go with their worker, and asking for them waits for ever.
                calls[number] = self.ask(number, "finish")
        self._done(calls)
        for method, told in self.setup:
            self._done({n: self.ask(n, method, *told[n]) for n in numbers if self._seats[n] is not None})

    def _loads(self, number: int) -> list[Any]:
        """Return the tasks that copy blocks into an actor, each to be done on its worker."""
        seat, share = self._seats[number], self.shares[number]
        assert seat is not None
        ends, loads = self.survey.ends, []
        starts = np.concatenate(([0], ends[:-1]))
        for at, (first, last) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            where, chosen = share.within(first, last)
            if (chosen.stop - chosen.start if isinstance(chosen, slice) else chosen.size) == 0:
                continue
            with dask.annotate(workers=[seat.address], allow_other_workers=False):
                load = dask.delayed(fill, pure=False)(
                    seat.name,
                    where,
                    self.source.blocks[at],
                    chosen,
                    self.survey.first_column,
                    dask_key_name=f"rankwise-load-{seat.name.removeprefix('rankwise-rows-')}-block{at}",
                )
            loads.append(load)
        return loads

    def _await(self, futures: list[Any], owners: list[int]) -> None:
        """Wait for loads; take away the seats of workers that are lost meanwhile."""
        began, n_done = time.monotonic(), 0
        with self.line:
            while waiting := self._unfinished(futures, owners):
                if len(futures) - len(waiting) > n_done:
                    began, n_done = time.monotonic(), len(futures) - len(waiting)
                seat = self._seats[owners[waiting[0]]]
                if seat is not None and time.monotonic() - began > self.options.timeout:
                    raise self._silent(seat)
                self.line.update(f"loading block {n_done} of {len(futures)}", n_done / len(futures))
                try:
                    distributed.wait([futures[at] for at in waiting], timeout=POLL)
                except TimeoutError:
                    continue
        for future, owner in zip(futures, owners, strict=True):
            if self._seats[owner] is not None and future.status != "finished":
                error = future.exception(timeout=self.options.timeout) if future.status == "error" else None
                if error is not None and not isinstance(error, (LookupError, distributed.KilledWorker)):
                    raise error
                self._seats[owner] = None

    def _unfinished(self, futures: list[Any], owners: list[int]) -> list[int]:
        """Return the loads that are worth waiting for."""
        waiting = [at for at, future in enumerate(futures) if not future.done()]
        alive = self.workers() if waiting else {}
        for number in {owners[at] for at in waiting}:
            seat = self._seats[number]
            if seat is not None and (seat.address not in alive or seat.is_lost):
                self._seats[number] = None
        return [at for at in waiting if self._seats[owners[at]] is not None]

    def _silent(self, seat: Seat) -> ClusterError:
        return ClusterError(
            f"The worker {seat.address} did not answer for {self.options.timeout:.0f} s, and is still there.",
            "look at it on the dashboard; where it is only slow, pass a larger timeout to "
            "rankwise.distributed.distribute or read.",
        )


class _DirectActor(distributed.Actor):  # type: ignore[misc]
    """An actor that is called straight at its worker, so that the scheduler carries no vectors."""

    @property
    def _worker_rpc(self) -> Any:
        return self._client.rpc(self._address)
