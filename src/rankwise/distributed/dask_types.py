"""What this room asks of Dask's objects, which tell no types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from rankwise.arrays import AnyArray, DType

__all__ = ["Actor", "ActorFuture", "Client", "DaskArray", "Frame", "Future", "Lazy"]

Lazy = object  # a block that is not computed yet: Dask's Delayed


class Future(Protocol):
    """What becomes of a task."""

    @property
    def status(self) -> str:
        """Such as "pending", "finished" or "error"."""

    def done(self) -> bool:
        """Whether it has ended, well or badly."""

    def result(self, timeout: float | None = None) -> object:
        """Wait for what it returns."""

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for what it raises."""

    def release(self) -> None:
        """Let the scheduler forget the task."""


class ActorFuture(Protocol):
    """What becomes of a call to an actor."""

    def result(self, timeout: float | None = None) -> object:
        """Wait for what it returns."""


class Actor(Protocol):
    """An actor as its client sees it."""

    def call(self, method: str, *args: object) -> ActorFuture:
        """Call `WorkerRows.call`."""

    def release(self) -> None:
        """Let the worker forget the rows."""


class Client(Protocol):
    """A client of a cluster."""

    def nthreads(self) -> dict[str, int]:
        """Return the threads of every worker, by its address."""

    def scheduler_info(self, n_workers: int) -> Mapping[str, Mapping[str, Mapping[str, object]]]:
        """Return what the scheduler knows."""

    def submit(self, function: Callable[..., object], *args: object, **options: object) -> Future:
        """Start a task."""

    def compute(self, collections: Sequence[Lazy], **options: object) -> list[Future]:
        """Start the tasks of several graphs."""

    def cancel(self, futures: Sequence[Future]) -> None:
        """Give tasks up."""

    def as_current(self) -> AbstractContextManager[object]:
        """Be the client of a block."""


class DaskArray(Protocol):
    """A Dask array."""

    @property
    def ndim(self) -> int:
        """One for labels, two for rows and columns."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> DType:
        """Of the entries."""

    @property
    def chunks(self) -> tuple[tuple[float, ...], ...]:
        """How it is cut; NaN where that is unknown."""

    def to_delayed(self) -> AnyArray:
        """Return its blocks."""

    def rechunk(self, chunks: Mapping[int, int]) -> DaskArray:
        """Cut it otherwise."""


class Frame(Protocol):
    """A Dask DataFrame."""

    @property
    def columns(self) -> Sequence[object]:
        """Their names."""

    def to_delayed(self) -> list[Lazy]:
        """Return its partitions."""

    def map_partitions(self, function: Callable[..., object], *args: object, **options: object) -> Frame:
        """Apply a function to each of them."""
