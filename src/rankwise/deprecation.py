"""Calls as they were written once: still understood, with a warning that says what to write."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar, cast

__all__ = ["former_names", "former_order", "warn_former"]

P = ParamSpec("P")
R = TypeVar("R")
WRAPPER = "former_call"  # what all of them are called


def warn_former(was: str, write: str) -> None:
    """Warn whoever called a wrapper: a `FutureWarning`, which is shown by default."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and (
        depth == 1 or frame.f_code.co_name == WRAPPER
    ):  # one may stand inside another
        depth, frame = depth + 1, frame.f_back
    message = f"{was} is deprecated and goes with version 0.3. Hint: write {write}."
    warnings.warn(message, FutureWarning, stacklevel=depth)


def former_order(
    order: Sequence[str], is_former: Callable[[Sequence[object]], bool], write: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Understand positional arguments in the order that a function once had.

    Parameters
    ----------
    order : sequence of str
        What the arguments were, by the names that they have now.
    is_former : callable
        Tells by the positional arguments whether they are in that order.
    write : str
        The call as it is written now.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def former_call(*args: P.args, **kwargs: P.kwargs) -> R:
            if not is_former(args):
                return function(*args, **kwargs)
            warn_former(f"{function.__name__}({', '.join(order)})", write)
            return cast("Callable[..., R]", function)(**dict(zip(order, args, strict=False)), **kwargs)

        return former_call

    return decorate


def former_names(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Understand keywords by the names that parameters once had: ``former_names(file="path")``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def former_call(*args: P.args, **kwargs: P.kwargs) -> R:
            for was in names.keys() & kwargs.keys() if kwargs else ():  # a service may call `load` often
                warn_former(f"{function.__name__}({was}=...)", f"{names[was]}=...")
                kwargs[names[was]] = kwargs.pop(was)
            return function(*args, **kwargs)

        return former_call

    return decorate
