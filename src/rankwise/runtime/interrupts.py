"""Signals that ask a process to stop: the moments at which they wait, and what becomes of a fit that is interrupted.

A fit that has a model when Ctrl-C comes keeps it on the estimator, and raises a KeyboardInterrupt that says what was
kept: a loop over fits ends, and the line that would save the model is not reached. Inside `keep_on_interrupt` it
warns and returns instead.
"""

from __future__ import annotations

import functools
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from types import FrameType
from typing import ParamSpec, TypeVar

from rankwise.exceptions import caller_level

__all__ = [
    "HEARD",
    "interruptible",
    "keep_on_interrupt",
    "left_on_interrupt",
    "signals_later",
    "tell_interrupted",
    "when_fit_ends",
]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_KEEPS: ContextVar[bool] = ContextVar("_KEEPS", default=False)


class _Fit(threading.local):
    """The fit of this thread: the estimator, the messages to raise and the calls to make when it ends.

    Not a context variable: event loops copy the context, and the copy would keep the estimator and its rows.
    """

    estimator: object = None
    told: list[str] | None = None
    ending: ExitStack | None = None


_FIT = _Fit()

# Set by whoever hears Ctrl-C and goes on to finish what there is: the process is not stuck, and nobody is to end it.
HEARD = threading.Event()

# Those that somebody sends to end a process, and that a handler may turn into an exception.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def signals_later() -> Iterator[None]:
    """Let Ctrl-C and its like take effect at the end of the block; only for blocks that take a moment.

    What is done by handlers of Python's waits; a signal that ends the process at once, or that is ignored, stays as it
    is. Other threads than the main one are not interrupted anyway.

    Examples
    --------
    >>> from rankwise.runtime.interrupts import signals_later
    >>> with signals_later():
    ...     pass  # two steps of which nobody may see the first alone
    """
    came: list[signal.Signals] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(signal.Signals(number))

    before = {}
    try:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                signal.signal(number, note)
                before[number] = handler
    except ValueError:  # not the main thread, where signals do not arrive
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came:
        before[number](number, None)


# Seconds between looks for signals: one that comes just before a thread begins to wait does not wake it.
_LOOK = 0.1


def left_on_interrupt(work: Callable[[], Result]) -> Result:
    """Do work that looks for no signals in a thread, so that Ctrl-C need not wait for its end.

    An interrupted thread goes on, and its result is dropped; the process does not wait for it. Threads in which no
    signals arrive do the work themselves.

    Examples
    --------
    >>> from rankwise.runtime.interrupts import left_on_interrupt
    >>> left_on_interrupt(lambda: 2 * 21)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    context = copy_context()  # with NumPy's handling of overflows
    done: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(context.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system allows no more of them
        return work()
    while thread.is_alive():
        thread.join(_LOOK)
    if failed:
        raise failed[0]
    return done[0]


@contextmanager
def keep_on_interrupt() -> Iterator[None]:
    """Have Ctrl-C end a fit early instead of raising, in the block: the best model so far is the result.

    For notebooks and long searches that are stopped when they are good enough. A ConvergenceWarning says how far a fit
    came. An interruption before there is any model raises KeyboardInterrupt in any case.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(100, 5)), rng.integers(0, 3, size=100)
    >>> with rankwise.keep_on_interrupt():
    ...     model = rankwise.RankRLSCV().fit(X, y)  # Ctrl-C, and the model is the best of those that were tried
    >>> model.coef_.shape
    (5,)
    """
    token = _KEEPS.set(True)
    try:
        yield
    finally:
        _KEEPS.reset(token)


def interruptible(fit: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a method that fits: what was told of an interruption is raised at its end.

    Methods of the same estimator that call each other are one fit; of another estimator, one of its own.
    """

    @functools.wraps(fit)
    def fitting(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if args and _FIT.estimator is args[0]:
            return fit(*args, **kwargs)
        around = vars(_FIT).copy()
        messages: list[str] = []
        try:
            with ExitStack() as ending:
                _FIT.estimator, _FIT.told, _FIT.ending = args[0] if args else None, messages, ending
                result = fit(*args, **kwargs)
        finally:
            vars(_FIT).clear()
            vars(_FIT).update(around)
        if messages:
            raise KeyboardInterrupt(messages[-1])
        return result

    return fitting


def when_fit_ends(call: Callable[[], object]) -> None:
    """Make a call at the end of the fit of this thread, however it ends; outside of fits, never."""
    if _FIT.ending is not None:
        _FIT.ending.callback(call)


def tell_interrupted(what: str, remedy: str) -> None:
    """Say that Ctrl-C ended a fit that keeps the best model so far, now or when the estimator has it.

    Parameters
    ----------
    what : str
        How far the fit came, and what is kept; a sentence without its end.
    remedy : str
        How to get the final model.
    """
    told = _FIT.told
    if _KEEPS.get() or told is None:
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - the command line starts without it

        warnings.warn(f"{what}. Hint: {remedy}.", ConvergenceWarning, stacklevel=caller_level())
    else:
        told.append(
            f"{what}; it is on the estimator, which can predict. Hint: {remedy}; or fit inside "
            "`with rankwise.keep_on_interrupt():`, where Ctrl-C ends a fit and raises nothing."
        )
