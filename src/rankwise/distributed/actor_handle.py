"""One actor as the client sees it: where it is, how it is called, and whether it is still there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import distributed

from rankwise.distributed.connections import Connection
from rankwise.distributed.dask_types import Actor, ActorFuture, Client, Future
from rankwise.distributed.worker_rows import Answer, WorkerRows
from rankwise.runtime.interrupts import signals_later

__all__ = ["ActorHandle", "Call", "LostError", "actor_at", "wait_for"]


class LostError(Exception):
    """The worker of a share is gone."""


class Call(Protocol):
    """A question that was asked."""

    def look(self, patience: float) -> Answer | Exception | None:
        """Return the answer, or what broke the way to the actor; None where nothing came for so many seconds."""


@dataclass(frozen=True)
class _ConnectedCall:
    connection: Connection
    number: int

    def look(self, patience: float) -> Answer | Exception | None:
        # Half of an answer that a signal made us forget would be taken for the beginning of the next one.
        with signals_later():
            try:
                return cast("Answer | None", self.connection.answer(self.number, patience))
            except OSError as error:
                return error


@dataclass(frozen=True)
class _DaskCall:
    future: ActorFuture

    def look(self, patience: float) -> Answer | Exception | None:
        # A signal inside Dask's own waiting could be lost with what it happens to interrupt there.
        with signals_later():
            try:
                return cast("Answer", self.future.result(timeout=patience))
            except TimeoutError as error:
                error.with_traceback(None)  # which Dask's waiting refers to, and which refer to our callers
                return None
            except Exception as error:  # noqa: BLE001 - the caller looks at it
                return error


@dataclass
class ActorHandle:
    """Where a share is.

    Attributes
    ----------
    address : str
        Of the worker.
    name : str
        Of the actor.
    future : Future
        Tells what became of the actor.
    actor : Actor
        Calls by way of Dask.
    connection : Connection or None
        The other way.
    """

    address: str
    name: str
    future: Future
    actor: Actor
    connection: Connection | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the actor is known to be gone."""
        return self.future.status not in {"pending", "finished"}

    def ask(self, method: str, args: tuple[object, ...], may_wait: Callable[[], None]) -> Call | None:
        """Call the actor; None where it is lost. `may_wait` raises where it takes too long to be heard."""
        if self.is_lost:
            return None
        try:
            if self.connection is not None:
                return _ConnectedCall(self.connection, self.connection.ask(method, args, may_wait))
        except (LostError, OSError):
            return None
        try:
            return _DaskCall(self.actor.call(method, *args))
        except (RuntimeError, OSError):
            return None

    def close(self) -> None:
        """Let go of the actor."""
        if self.connection is not None:
            self.connection.close()
        # Dask's calls refer to themselves, and to the actor, until the garbage is collected.
        self.future.release()
        self.actor.release()


def actor_at(client: Client, address: str, name: str, *, is_direct: bool) -> Actor:
    """Return what calls the actor of that name."""
    with client.as_current():
        kind = _DirectActor if is_direct else _Actor
        return cast("Actor", kind(WorkerRows, address, name))


def wait_for(futures: Sequence[Future], seconds: float) -> None:
    """Wait until tasks have ended, at most so long."""
    try:
        distributed.wait(futures, timeout=seconds)
    except TimeoutError as error:
        error.with_traceback(None)


class _Actor(distributed.Actor):  # type: ignore[misc]
    """An actor whose rows can be freed without waiting for garbage collection."""

    def release(self) -> None:
        if self._future is not None:
            self._future.release()


class _DirectActor(_Actor):
    """An actor that is called straight at its worker, so that the scheduler carries no vectors."""

    @property
    def _worker_rpc(self) -> object:
        return self._client.rpc(self._address)
