"""Files and folders that appear once they are complete, and never half-written."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rankwise.exceptions import InvalidInputError

__all__ = ["replacing"]


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a new name beside `target`; what is there at the end takes its place, or is removed on an error."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".unfinished", dir=target.parent))
    except OSError as error:
        raise InvalidInputError(
            f"{target} cannot be written: {error.strerror}.",
            "check the folder, and that you may write there.",
        ) from error
    try:
        unfinished = folder / target.name
        try:
            yield unfinished
            _take_place(unfinished, target)
        except OSError as error:
            raise InvalidInputError(
                f"{target} could not be written: {error.strerror or error}; nothing was changed.",
                "make room on the disk, or write to another one.",
            ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _take_place(unfinished: Path, target: Path) -> None:
    if not target.is_dir():
        unfinished.replace(target)
    elif not _exchange(unfinished, target):
        old = unfinished.with_name("old")
        target.replace(old)
        try:
            unfinished.replace(target)
        except OSError:
            old.replace(target)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names at once, so that there is a whole folder at every moment; False where that cannot be done."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
