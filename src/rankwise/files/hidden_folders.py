"""Hidden folders beside a target, in which it is made: locked by their owners, removed by others when those are gone.

A folder ``.NAME.xxxxxxxx.unfinished`` that nobody has locked was left by a process that was killed. Where a file system
has no locks, one that has not been touched for a day was.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankwise.runtime.interrupts import signals_later

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "folder_beside",
    "folders_beside",
    "remove",
    "remove_abandoned",
    "remove_own",
    "scratch_folder",
]

_ENDING = ".unfinished"
_LONGEST = 200  # bytes of a name that go into the name of its hidden folder as they are
_ATTEMPTS = 100
_LEFT_AFTER = 24 * 3600  # seconds, where there are no locks

# Those that this process works in, so that they can be removed where it has to end at once.
_OWN: set[Path] = set()


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Make a folder for the duration of the block, locked so that others leave it alone."""
    made: list[tuple[Path, int | None]] = []
    try:
        with signals_later():  # whatever comes meanwhile finds the folder known, and removed below
            made.append(_make_beside(target))
        yield made[0][0]
    finally:
        _release(made)


def _make_beside(target: Path) -> tuple[Path, int | None]:
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix=f"{_stem(target)}.", suffix=_ENDING, dir=target.parent))
        try:
            claim = _claim(folder)
        except BlockingIOError:
            continue  # somebody took it for abandoned before it was locked, and removes it
        if folder.exists():
            _OWN.add(folder)
            return folder, claim
        if claim is not None:
            os.close(claim)
    raise OSError(errno.EBUSY, "others write the same name all the time")


def _release(made: list[tuple[Path, int | None]]) -> None:
    """Remove folders and end their locks, once each, even if a signal comes at this very moment."""
    try:
        with signals_later():
            _remove_all(made)
    except BaseException:
        with signals_later():
            _remove_all(made)
        raise


def _remove_all(made: list[tuple[Path, int | None]]) -> None:
    while made:
        folder, claim = made.pop()
        if claim is not None:
            os.close(claim)  # first, for removing takes descriptors, of which there may be no more
        remove(folder)


def folders_beside(target: Path) -> list[Path]:
    """Return all hidden folders of a target."""
    try:
        return list(target.parent.glob(f"{glob.escape(_stem(target))}.*{_ENDING}"))
    except OSError:  # a folder that may not be listed
        return []


def remove_abandoned(target: Path) -> None:
    """Remove those that were left by processes that are gone."""
    for folder in folders_beside(target):
        with suppress(OSError):  # its owner is at work, or has just removed it
            claim = _claim(folder)
            if claim is not None:
                remove(folder)
                os.close(claim)
            elif time.time() - folder.stat().st_mtime > _LEFT_AFTER:
                remove(folder)


def remove(folder: Path) -> None:
    """Remove a folder and what is in it, as far as that goes."""
    shutil.rmtree(folder, ignore_errors=True)
    _OWN.discard(folder)


def remove_own() -> None:
    """Remove all folders that this process works in: it is about to end, and does not wait for whoever writes there."""
    for folder in list(_OWN):
        gone = folder.with_name(f"{folder.stem}-{folder.suffix}")
        with suppress(OSError):  # it is being removed already
            folder.rename(
                gone
            )  # whoever goes on writing there finds it no more, and cannot keep it from being empty
            remove(gone)
        _OWN.discard(folder)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder among the system's temporary files, and remove it at the end of the block."""
    made: list[tuple[Path, int | None]] = []
    try:
        with signals_later():
            made.append((Path(tempfile.mkdtemp(prefix="rankwise-")), None))
            _OWN.add(made[0][0])
        yield made[0][0]
    finally:
        _release(made)


def _stem(target: Path) -> str:
    """Return how the names of hidden folders of a target begin; a long name is cut, and told by its hash."""
    name = target.name
    if len(os.fsencode(name)) > _LONGEST:
        name = f"{name[: _LONGEST // 8]}~{hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()}"
    return f".{name}"


def _claim(folder: Path) -> int | None:
    """Lock a folder until the descriptor is closed or the process ends; None where there are no locks.

    Raises BlockingIOError where somebody else has it.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor
