"""Files and folders appear whole or not at all: written under a temporary name beside their place, then renamed."""

from __future__ import annotations

import ctypes
import glob
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rankwise.exceptions import InvalidInputError

try:
    import fcntl
except ImportError:  # a system without it leaves folders for somebody to remove
    fcntl = None  # type: ignore[assignment]

__all__ = ["replacing", "replacing_path"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends, and vanishes if it fails.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.replacing import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "notes.txt")) as stream:
    ...         _ = stream.write(b"whole")
    ...     Path(folder, "notes.txt").read_bytes()
    b'whole'
    """
    target = _place(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def replacing_path(target: Path) -> Iterator[Path]:
    """Yield a new name beside `target`; what is there at the end takes its place, or is removed on an error.

    A process that is killed meanwhile leaves a folder behind, which the next one that writes there removes.
    """
    target = _place(target)
    _remove_abandoned(target)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".unfinished", dir=target.parent))
    except OSError as error:
        raise InvalidInputError(
            f"{target} cannot be written: {error.strerror}.",
            "check the folder, and that you may write there.",
        ) from error
    claim = _claim(folder)
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
        if claim is not None:
            os.close(claim)


def _claim(folder: Path) -> int | None:
    """Lock a folder until the descriptor is closed or the process ends; None where that is not possible or not ours."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned(target: Path) -> None:
    """Remove what killed processes left of the same target: folders that nobody has locked any more."""
    for folder in target.parent.glob(f".{glob.escape(target.name)}.*.unfinished"):
        try:
            is_new = time.time() - folder.stat().st_mtime < _LOCKED_AFTER
        except OSError:
            continue  # its owner has just removed it
        if is_new:
            continue
        claim = _claim(folder)
        if claim is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(claim)


# Seconds after which whoever made a folder has locked it.
_LOCKED_AFTER = 60


def _place(path: str | os.PathLike[str]) -> Path:
    """Return where something is written to: a link keeps pointing where it points, and a device stays a device."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        raise InvalidInputError(
            f"{os.fspath(path)} is no ordinary file, and cannot be replaced.",
            "name a file; - is standard output.",
        )
    return target


def _take_place(unfinished: Path, target: Path) -> None:
    if not target.is_dir():
        unfinished.replace(target)
    elif not _exchange(unfinished, target):
        old = unfinished.with_name(f"{unfinished.name}.old")
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
