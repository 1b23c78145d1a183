"""Parameters of rankers that stand at their defaults: files leave them out, and a number says which ones were meant.

A default may change later, and a file must not change with it. Whoever changes one raises `DEFAULTS` and writes the
former value into `FORMER`; a test compares every default with those of each number. Classes of scikit-learn are written
in full, for their defaults are not ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import signature

__all__ = ["DEFAULTS", "FORMER", "current", "former", "is_default"]

DEFAULTS = 3
# By the number that a file has: class, parameter, and the value that was its default until that number.
FORMER: Mapping[int, Mapping[str, Mapping[str, object]]] = {
    1: {"RankSVMCV": {"scoring": "pairwise_error"}, "AdditiveRankerCV": {"adaptive": 0}},
    2: {"AdditiveRankerCV": {"selective": 0}},
}

_PLAIN = (bool, int, float, str, tuple, type(None))


@cache
def current(kind: type) -> dict[str, object]:
    """Return the parameters of a class that have a default, with it."""
    given = signature(kind).parameters.values()
    return {one.name: one.default for one in given if one.default is not one.empty}


def is_default(kind: type, name: str, value: object) -> bool:
    """Tell whether a file may leave this value out, and have it back to the last bit."""
    default = current(kind).get(name, _PLAIN)
    return type(value) is type(default) and type(value) in _PLAIN and repr(value) == repr(default)


def former(kind: type, number: int) -> dict[str, object]:
    """Return what a file with that number of defaults means by a parameter that it leaves out."""
    found = dict(current(kind))
    for at, changed in sorted(FORMER.items(), reverse=True):
        if at >= number:
            found.update(changed.get(kind.__name__, {}))
    return found
