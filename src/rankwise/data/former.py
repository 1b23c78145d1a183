"""Functions by the names that they once had, which `rankwise.data` still knows; none of them is exported."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from rankwise.data.runs import load_judgements, load_run, save_run
from rankwise.data.store.writer import save_store
from rankwise.data.tables.reading import iter_table
from rankwise.data.text.writer import save_svmlight
from rankwise.deprecation import warn_former

__all__ = ["FORMER"]

P = ParamSpec("P")
R = TypeVar("R")


def _renamed(was: str, function: Callable[P, R], order: tuple[str, ...] = ()) -> Callable[P, R]:
    """Return the function under its old name; `order` are the positional arguments that it had there."""

    @wraps(function)
    def former_call(*args: P.args, **kwargs: P.kwargs) -> R:
        warn_former(was, f"{function.__name__}({', '.join(_NOW[was])})")
        named = dict(zip(order, args, strict=False))
        return cast("Callable[..., R]", function)(*(() if order else args), **named, **kwargs)

    former_call.__name__ = former_call.__qualname__ = was
    return former_call


_NOW = {
    "dump_svmlight": ("X", "y", "path"),
    "iterate_table": ("source",),
    "read_judgements": ("path",),
    "read_run": ("path",),
    "write_run": ("qid", "items", "ranks", "scores", "path", "tag=tag"),
    "write_store": ("source", "path"),
}

FORMER: dict[str, Callable[..., object]] = {
    "dump_svmlight": _renamed("dump_svmlight", save_svmlight),
    "iterate_table": _renamed("iterate_table", iter_table),
    "read_judgements": _renamed("read_judgements", load_judgements),
    "read_run": _renamed("read_run", load_run),
    "write_run": _renamed("write_run", save_run, ("path", "qid", "items", "ranks", "scores", "tag")),
    "write_store": _renamed("write_store", save_store, ("path", "source")),
}
