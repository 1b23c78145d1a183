"""Docstrings that share entries: ``As in `Other`.`` is replaced by the words of that class."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc, signature
from typing import Any, TypeVar

__all__ = ["like"]

Class = TypeVar("Class", bound=type[Any])

# Names, maybe their type, and an indented text.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)( : .*)?\n((?:    .*(?:\n|\Z))*)", flags=re.MULTILINE)
_AS_IN = re.compile(r"    As in `(\w+)`[.;,:]?\s*")


def like(*others: type[Any]) -> Callable[[Class], Class]:
    """Complete the docstring of a class, so that `help` and the site show every entry in full.

    An entry such as ``tol, max_iter`` with the text ``As in `RankRLS`. A note.`` becomes the entries of that class,
    each followed by the note. Types are copied too, unless the entry has its own; defaults are those of the class.
    """
    known = {other.__name__: (other, _entries(cleandoc(other.__doc__ or ""))) for other in others}

    def complete(cls: Class) -> Class:
        def written(entry: re.Match[str]) -> str:
            names, own, text = entry.groups()
            found = _AS_IN.match(text)
            if found is None:
                return entry[0]
            other, entries = known[found[1]]
            note = text[found.end() :]
            note = f"    {note[:1].upper()}{note[1:]}" if note else ""
            parts = []
            for name in names.split(", "):
                kind, words = entries[name]
                parameter = signature(cls).parameters.get(name)
                if parameter is not None and parameter != signature(other).parameters[name]:
                    default = parameter.default
                    shown = f'"{default}"' if isinstance(default, str) else repr(default)
                    kind = re.sub("default=.*", f"default={shown}", kind)
                is_own = own is not None and "," not in names
                parts.append(f"{name}{own if is_own else kind}\n{words}{note}")
            return "".join(parts)

        cls.__doc__ = cls.__doc__ and _ENTRY.sub(written, cleandoc(cls.__doc__))
        return cls

    return complete


def _entries(doc: str) -> dict[str, tuple[str, str]]:
    """Return the type and the text of each name."""
    return {
        name: (entry[2] or "", entry[3]) for entry in _ENTRY.finditer(doc) for name in entry[1].split(", ")
    }
