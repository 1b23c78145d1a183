"""Rows come to actors, by tasks from their graph.

Never from data that the client scattered, which have no graph: what a task copies can be made again on any worker.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import dask
import distributed
import numpy as np

from rankwise.distributed.actor_handle import ActorHandle, wait_for
from rankwise.distributed.dask_types import Client, Future, Lazy
from rankwise.distributed.shares import Share, Shares
from rankwise.distributed.source import Source, Survey
from rankwise.distributed.worker_rows import fill
from rankwise.runtime.progress import ProgressLine

__all__ = ["Loading"]

_POLL = 0.2  # seconds between two looks at what became of a worker


@dataclass(frozen=True)
class Loading:
    """What is loaded, and how long nothing may happen meanwhile."""

    client: Client
    source: Source
    survey: Survey
    timeout: float
    line: ProgressLine

    def load(self, handles: dict[int, ActorHandle], shares: Shares) -> ActorHandle | None:
        """Let tasks copy rows into actors, all in one graph: blocks that several need are made once.

        Takes away the handles of workers that are lost meanwhile; returns one of a worker that does nothing, if any.
        """
        owners: list[int] = []
        loads: list[Lazy] = []
        for number, handle in handles.items():
            own = self._tasks(handle, shares[number])
            loads += own
            owners += [number] * len(own)
        futures = self.client.compute(loads, optimize_graph=False)
        silent = self._await(futures, owners, handles)
        self.client.cancel(
            [future for future, owner in zip(futures, owners, strict=True) if owner not in handles]
        )
        return silent

    def _tasks(self, handle: ActorHandle, share: Share) -> list[Lazy]:
        """Return the tasks that copy blocks into an actor, each to be done on its worker."""
        ends, loads = self.survey.ends, []
        starts = np.concatenate(([0], ends[:-1]))
        for at, (first, last) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            where, chosen = share.within(first, last)
            if (chosen.stop - chosen.start if isinstance(chosen, slice) else chosen.size) == 0:
                continue
            with dask.annotate(workers=[handle.address], allow_other_workers=False):
                load = dask.delayed(fill, pure=False)(
                    handle.name,
                    where,
                    self.source.blocks[at],
                    chosen,
                    self.survey.first_column,
                    dask_key_name=f"rankwise-load-{handle.name.removeprefix('rankwise-rows-')}-block{at}",
                )
            loads.append(load)
        return loads

    def _await(
        self, futures: list[Future], owners: list[int], handles: dict[int, ActorHandle]
    ) -> ActorHandle | None:
        """Wait for tasks; take away the handles of workers that are lost meanwhile."""
        began, n_done = time.monotonic(), 0
        with self.line:
            while waiting := self._unfinished(futures, owners, handles):
                if len(futures) - len(waiting) > n_done:
                    began, n_done = time.monotonic(), len(futures) - len(waiting)
                if time.monotonic() - began > self.timeout:
                    return handles[owners[waiting[0]]]
                self.line.update(f"loading block {n_done} of {len(futures)}", n_done / len(futures))
                wait_for([futures[at] for at in waiting], _POLL)
        for future, owner in zip(futures, owners, strict=True):
            if owner in handles and future.status != "finished":
                error = future.exception(timeout=self.timeout) if future.status == "error" else None
                if error is not None and not isinstance(error, (LookupError, distributed.KilledWorker)):
                    raise error
                del handles[owner]
        return None

    def _unfinished(
        self, futures: list[Future], owners: list[int], handles: dict[int, ActorHandle]
    ) -> list[int]:
        """Return the tasks that are worth waiting for."""
        waiting = [at for at, future in enumerate(futures) if not future.done()]
        alive: Mapping[str, int] = self.client.nthreads() if waiting else {}
        for number in {owners[at] for at in waiting} & handles.keys():
            if handles[number].address not in alive or handles[number].is_lost:
                del handles[number]
        return [at for at in waiting if owners[at] in handles]
