"""Exceptions of the library. Every message ends in a remedy, introduced by ``Hint:``."""

from __future__ import annotations

import sys
import unicodedata
from typing import Self

__all__ = [
    "ClusterError",
    "InvalidInputError",
    "MemoryLimitError",
    "MissingPackageError",
    "MissingQueriesError",
    "ModelFileError",
    "NoPairsError",
    "OutputError",
    "RankwiseError",
    "UndefinedMetricError",
    "UnsuitableSolverError",
    "caller_level",
    "visible",
]


def visible(text: object) -> str:
    """Escape control characters, so that text read from a file cannot send commands to a terminal."""
    written = str(text)
    if written.isprintable():  # nearly always
        return written
    return "".join(
        character
        if character == "\n" or unicodedata.category(character)[0] != "C"
        else character.encode("unicode_escape").decode()
        for character in written
    )


class RankwiseError(Exception):
    """The base of every error that rankwise raises on purpose.

    Parameters
    ----------
    problem : str
        One sentence that states the problem.
    hint : str
        The remedy.
    about : str
        The invalid argument, if the sentence begins with it; `problem` is then the rest of the sentence.
    """

    def __init__(self, problem: str, hint: str, *, about: str = "") -> None:
        self.problem = visible(f"{about} {problem}" if about else problem)
        self.hint = visible(hint)
        super().__init__(f"{self.problem} Hint: {self.hint}")

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel between processes (n_jobs > 1); the default would rebuild them from the joined text.
        return type(self), (self.problem, self.hint), self.__dict__

    def restated(self, problem: str) -> Self:
        """Return the same error with another description of the problem, such as one that names the file."""
        return type(self)(problem, self.hint)


class InvalidInputError(RankwiseError, ValueError):
    """Data or a parameter that no method could use."""


class OutputError(InvalidInputError, OSError):
    """A file or folder cannot be written; its old content is unchanged unless the message says otherwise."""


class MissingQueriesError(InvalidInputError):
    """Query ids were needed and not passed."""


class NoPairsError(InvalidInputError):
    """The labels order no two rows of any query, so there is nothing to learn from."""


class UndefinedMetricError(InvalidInputError):
    """No query has a row that the metric could count, so that it has no value."""


class UnsuitableSolverError(InvalidInputError):
    """The chosen solver cannot solve this problem."""


class MemoryLimitError(RankwiseError, MemoryError):
    """Something would not fit in memory; nothing was allocated."""


class ClusterError(RankwiseError, RuntimeError):
    """Workers of a cluster were lost or did not answer, and work could not go on without them."""


class MissingPackageError(RankwiseError, ImportError):
    """An optional package is needed for this, and not installed."""


class ModelFileError(RankwiseError, ValueError):
    """A model that cannot be written to a file, or a file that holds no model that can be read."""


def caller_level() -> int:
    """Return the ``stacklevel`` with which a warning points at the first line outside rankwise."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001  what `warnings` itself goes by
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "rankwise":
        level, frame = level + 1, frame.f_back
    return level
