"""Calls to the actors of all shares, answered in a fixed order, and repeated where a worker was lost.

All state of a solver lives at the client, and whatever an actor is asked can be asked again: a lost actor is made again
on another worker, told what it was told before, and asked once more. That is the whole recovery.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

import distributed
import numpy as np

from rankwise.arrays import Floats
from rankwise.distributed.actor_handle import Call, LostError, wait_for
from rankwise.distributed.actors import ATTEMPTS, POLL, Actors, Options
from rankwise.distributed.dask_types import Client, Lazy
from rankwise.distributed.shares import Shares
from rankwise.distributed.source import Source, Survey
from rankwise.exceptions import ClusterError
from rankwise.runtime.interrupts import when_fit_ends

__all__ = ["Arguments", "Cluster", "UnknownError", "computed", "current_client", "undisturbed"]

Arguments = Sequence[tuple[object, ...]]  # of one call to each share
Found = TypeVar("Found")


class UnknownError(Exception):
    """An actor that was made again does not know what it is asked to go on with: the exchange is to be repeated."""


class Cluster:
    """The rows of a source on the workers of a client.

    Attributes
    ----------
    shares : Shares
    survey : Survey
    n_products : int
        Vectors that were multiplied so far.
    n_rebuilt : int
        How many actors were made again.
    worker_seconds : (shares,) float64
        What each took for its last answer, by its own clock.
    """

    def __init__(
        self, client: Client, source: Source, survey: Survey, shares: Shares, options: Options
    ) -> None:
        self.shares, self.survey = shares, survey
        self.n_products = self.n_rebuilt = 0
        self.worker_seconds = np.zeros(len(shares))
        self._dropped: list[str] = []
        self._lock = threading.RLock()
        self._actors = Actors(client, source, survey, shares, options)
        weakref.finalize(self, self._actors.close).atexit = False  # also where a block cannot be read
        when_fit_ends(self._actors.close)  # a model may live on, and loads the rows again where it needs them
        self._actors.take(range(len(shares)))
        self._began = time.monotonic()

    def answers(self, method: Callable[..., Found], arguments: Arguments) -> Iterator[Found]:
        """Ask every actor, and yield the answers in the order of the shares, whoever answers first.

        Parameters
        ----------
        method : function
            One of `WorkerRows`, which is called there.
        """
        with self._lock, self._actors.line:
            self._drop()
            name = method.__name__
            calls = [self._actors.ask(number, name, *args) for number, args in enumerate(arguments)]
            for number, args in enumerate(arguments):
                yield cast("Found", self._answer(number, calls[number], name, args))
                calls[number] = None
            self._show()

    def everywhere(self, method: Callable[..., Found], *args: object) -> Iterator[Found]:
        """Ask every actor the same."""
        return self.answers(method, [args] * len(self.shares))

    def total(self, method: Callable[..., Floats], arguments: Arguments) -> Floats:
        """Add up the answers, in the order of the shares."""
        answers = self.answers(method, arguments)
        total = next(answers)
        for found in answers:
            total += found
        return total

    def set_up(self, method: Callable[..., Found], arguments: Arguments) -> list[Found]:
        """Tell every actor something that actors which are made again are told, too."""
        found = list(self.answers(method, arguments))
        self._actors.setup.append((method.__name__, arguments))
        return found

    def keep(self, name: str, method: Callable[..., Found], arguments: Arguments) -> list[Found]:
        """Tell every actor what later calls refer to by a name."""
        return self.set_up(method, [(name, *args) for args in arguments])

    def forget(self, name: str) -> None:
        """Let the actors drop what they were told under a name, when they are next asked something.

        Not at once: whoever forgets may do so at any moment, also in the middle of another call.
        """
        self._dropped.append(name)

    def _drop(self) -> None:
        while self._dropped:
            name = self._dropped.pop()
            self._actors.setup = [one for one in self._actors.setup if one[1][0][:1] != (name,)]
            for number in range(len(self.shares)):
                self._actors.ask(number, "drop", name)

    @property
    def addresses(self) -> list[str]:
        """The worker of each share."""
        return [handle.address for number in range(len(self.shares)) if (handle := self._actors[number])]

    def _answer(self, number: int, call: Call | None, method: str, args: tuple[object, ...]) -> object:
        for _ in range(ATTEMPTS):
            try:
                status, found, seconds = self._actors.wait(number, call)
            except LostError:
                self.n_rebuilt += 1
                self._actors.take([number])
                call = self._actors.ask(number, method, *args)
                continue
            if status == "done":
                self.worker_seconds[number] = seconds
                return found
            if status == "failed":
                raise found
            raise UnknownError
        raise self._actors.lost_too_often(number)

    def _show(self) -> None:
        slowest = int(np.argmax(self.worker_seconds))
        handle, seconds = self._actors[slowest], float(self.worker_seconds[slowest])
        if handle is not None and seconds > 0:
            # Of all that happened since the rows came: trials of a line search multiply nothing.
            rate = self.n_products * self.survey.nnz / (time.monotonic() - self._began)
            self._actors.line.update(
                f"{self.n_products} products, {rate:.2g} non-zeros/s, slowest {handle.address} {seconds:.2g} s"
            )


def undisturbed(exchange: Callable[[], Found]) -> Found:
    """Repeat an exchange that refers to earlier ones until no worker is lost in between."""
    for _ in range(ATTEMPTS):
        with contextlib.suppress(UnknownError):
            return exchange()
    raise ClusterError(
        f"Workers were lost in each of {ATTEMPTS} attempts at an exchange.", "use workers that stay."
    )


def computed(client: Client, collections: Sequence[Lazy], timeout: float) -> list[object]:
    """Compute small things, with a limit on how long nothing may happen."""
    many = client.compute(collections)
    began, n_done = time.monotonic(), 0
    while (done := sum(future.done() for future in many)) < len(many):
        if done > n_done:
            began, n_done = time.monotonic(), done
        if time.monotonic() - began > timeout:
            raise _nothing_comes(client, timeout)
        wait_for(many, POLL)
    try:
        # Results go with their worker; then they are computed again, which may take as long.
        return [future.result(timeout=timeout) for future in many]
    except TimeoutError:
        raise _nothing_comes(client, timeout) from None


def _nothing_comes(client: Client, timeout: float) -> ClusterError:
    workers = ", ".join(sorted(client.nthreads())) or "none"
    return ClusterError(
        f"Nothing was computed for {timeout:.0f} s (workers: {workers}).",
        "look at the dashboard; where blocks take that long, pass a larger timeout.",
    )


def current_client() -> Client:
    """Return the client of whoever calls, or say how to get one."""
    try:
        return cast("Client", distributed.get_client())
    except ValueError as error:
        raise ClusterError(
            "X is a Dask collection, and there is no client of a cluster.",
            "make one first: client = distributed.Client(distributed.LocalCluster()); or X.compute() what fits in "
            "memory.",
        ) from error
