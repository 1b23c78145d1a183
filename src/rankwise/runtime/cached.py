"""Attributes that are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - named as what it takes the place of
    """What `functools.cached_property` is from Python 3.12 on: it holds no lock while it computes.

    Before, one lock for all instances of a class made threads wait for each other's fits, and a process that was forked
    meanwhile wait for ever. Two threads that ask at the same moment may both compute; both get what the first has kept.

    Examples
    --------
    >>> from rankwise.runtime.cached import cached_property
    >>> class Rows:
    ...     @cached_property
    ...     def total(self):
    ...         print("adding")
    ...         return 6
    >>> rows = Rows()
    >>> rows.total + rows.total
    adding
    12
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.func = compute
        self._name = ""
        self.__doc__ = compute.__doc__
        self.__module__ = compute.__module__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Compute, and keep it where the next look finds it without asking here."""
        if instance is None:
            return self
        kept: T = instance.__dict__.setdefault(self._name, self.func(instance))
        return kept
