"""Arguments that say where, what type and by which name: what is none of these is refused with a remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import DType
from rankwise.exceptions import InvalidInputError

__all__ = [
    "check_dtype",
    "check_level",
    "check_name",
    "check_names",
    "check_path",
    "check_real",
    "is_number",
    "list_names",
]

# What tables of text cannot be read again with: ends of lines, zero bytes, and halves of characters.
_UNWRITABLE = re.compile("[\0\n\r\ud800-\udfff]")


def is_number(value: object) -> bool:
    """Tell whether this is a real number, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_path(name: str, path: object) -> str:
    """Return a path as text; a number is none, though `open` takes it for a file that is open already."""
    if not isinstance(path, (str, bytes, os.PathLike)) or "\0" in os.fsdecode(path):
        raise InvalidInputError(f"{name}={path!r} is no path.", "pass the name of a file, or a Path.")
    return os.fsdecode(path)


def check_name(name: str, given: object) -> str:
    """Return the name of something as text that files can hold."""
    if not isinstance(given, str) or _UNWRITABLE.search(given):
        raise InvalidInputError(
            f"{name}={given!r} is no name.",
            f"pass {name} as a text without line breaks and broken characters.",
        )
    return given


def list_names(name: str, given: object) -> list[Any]:
    """Return names, or numbers in their place, one by one as they are; whatever goes through them once is taken."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        example = [given] if isinstance(given, (str, int)) else ["a", "b"]
        raise InvalidInputError(f"{name}={given!r} is no list of names.", f"pass {example}.")
    return list(given)


def check_names(name: str, given: object) -> list[str]:
    """Return names as a list of text."""
    return [str(one) for one in list_names(name, given)]


def check_dtype(dtype: npt.DTypeLike) -> DType:
    """Return the type that X shall have."""
    try:
        kind: DType = np.dtype(dtype)
        written = str(kind)
    except (TypeError, ValueError):
        kind, written = np.dtype(object), repr(dtype)
    if kind not in {np.dtype(np.float32), np.dtype(np.float64)} or dtype is None:
        raise InvalidInputError(f"dtype={written} is not an option.", "use numpy.float64 or numpy.float32.")
    return kind


def check_real(name: str, value: object, remedy: str) -> None:
    """Raise unless this is a finite real number."""
    if not is_number(value) or not np.isfinite(float(value)):  # type: ignore[arg-type]
        raise InvalidInputError(f"{name}={value!r} is no finite number.", f"{remedy}.")


def check_level(level: object) -> None:
    """Raise unless this is a level of confidence."""
    if not is_number(level) or not 0 < level < 1:  # type: ignore[operator]
        raise InvalidInputError(f"level={level!r} is not between 0 and 1.", "use for example 0.95.")
