"""Files and folders appear whole or not at all: written beside their place, brought to disk, then renamed.

What is written stands in a hidden folder ``.NAME.xxxxxxxx.unfinished`` beside its place, under the name ``new``, until
it is complete. A power cut or a kill at any moment leaves the old or the new content under the name, never neither:

1. the new content is written, and brought to disk (`durable`);
2. the two names are exchanged at once. Where the system cannot do that with folders, the old one is moved to ``old`` in
   the hidden folder first: where ``new`` and ``old`` stand there together, the new one is complete and only has to be
   renamed, which whoever opens or writes the name next does (`recover`);
3. the folder around them is brought to disk, and only then the old content is removed.

What a process that was killed leaves is removed by the next one that writes the same name; see `hidden_folders`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rankwise.exceptions import OutputError
from rankwise.files.hidden_folders import folder_beside, folders_beside, remove, remove_abandoned
from rankwise.runtime.interrupts import signals_later

try:
    import fcntl
except ImportError:  # a system that has no other way than fsync
    fcntl = None  # type: ignore[assignment]

__all__ = ["TAKING_PLACE", "noting_written", "place_of", "recover", "replacing", "replacing_folder"]

Name = str | os.PathLike[str]

_NEW, _OLD = "new", "old"
_ATTEMPTS = 100

_REMEDIES = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EFBIG, errno.EDQUOT), "make room on the disk, or write to another one."
    ),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "close other files, or raise the limit (ulimit -n)."),
}

# Held while something takes its place: whoever wants to end the process at once waits so long.
TAKING_PLACE = threading.Lock()


class _Noted(threading.local):
    names: list[str] | None = None  # of all that took its place in this thread


_NOTED = _Noted()


@contextmanager
def replacing(path: Name, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends, and vanishes if it fails.

    Parameters
    ----------
    path : str or path
    durable : bool, default=True
        Whether to wait until the disk has it; without that, a power cut soon after can leave an empty file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.files.replacing import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "notes.txt")) as stream:
    ...         _ = stream.write(b"whole")
    ...     Path(folder, "notes.txt").read_bytes()
    b'whole'
    """
    target = place_of(path)
    if target.is_dir():
        raise OutputError(f"{os.fsdecode(path)} is a folder.", "name a file.")
    with _beside(path, target, durable=durable) as unfinished, unfinished.open("xb") as stream:
        yield stream


@contextmanager
def replacing_folder(path: Name, *, durable: bool = True) -> Iterator[Path]:
    """Yield a new name; the folder that is there at the end takes the place of `path`, or is removed on an error."""
    target = place_of(path)
    if target.exists() and not target.is_dir():
        raise OutputError(f"{os.fsdecode(path)} is a file.", "name a folder, or one that does not exist yet.")
    with _beside(path, target, durable=durable) as unfinished:
        yield unfinished


@contextmanager
def noting_written() -> Iterator[list[str]]:
    """Yield a list that the names of all that takes its place in the block are added to."""
    around, _NOTED.names = _NOTED.names, []
    try:
        yield _NOTED.names
    finally:
        _NOTED.names = around


def recover(path: Name) -> None:
    """Finish what a process that was killed between two renames had begun: nothing is under the name otherwise.

    Whoever does it first is right, the process itself included if it is still alive: the next step is the same for all.
    """
    target = Path(os.path.realpath(path))
    if os.path.lexists(target):
        return
    for folder in folders_beside(target):
        if (folder / _OLD).is_dir() and (folder / _NEW).is_dir():
            with suppress(OSError):  # somebody else was faster
                (folder / _NEW).rename(target)
                return


@contextmanager
def _beside(path: Name, target: Path, *, durable: bool) -> Iterator[Path]:
    """Yield the name for the new content; at the end it takes its place."""
    name, made, is_in_place = _in_words(path, target), False, False
    recover(target)
    remove_abandoned(target)
    try:
        with folder_beside(target) as folder:
            made, unfinished = True, folder / _NEW
            yield unfinished
            _keep_access(unfinished, target)
            if durable:
                _sync(unfinished)
            with signals_later(), TAKING_PLACE:
                _take_place(unfinished, target)
                is_in_place = True
                if _NOTED.names is not None:
                    _NOTED.names.append(os.fsdecode(path))
                if durable:
                    _sync_folder(target.parent)
                remove(folder)
    except (OSError, ValueError) as error:
        if made and not isinstance(error, OSError):
            raise  # somebody else's
        if isinstance(error, OutputError):
            raise
        raise _failure(name, error, made=made, is_in_place=is_in_place) from error


def _failure(name: str, error: Exception, *, made: bool, is_in_place: bool) -> OutputError:
    if not made:
        return _not_written(name, error)
    reason = getattr(error, "strerror", None) or str(error)
    if is_in_place:
        return OutputError(
            f"{name} was written, but the disk did not confirm it: {reason}.", "check the disk."
        )
    remedy = _REMEDIES.get(
        getattr(error, "errno", None) or 0, "check the disk and the folder, and that you may write there."
    )
    return OutputError(f"{name} could not be written: {reason}; nothing was changed.", remedy)


def place_of(path: Name) -> Path:
    """Return where something is written to: a link keeps pointing where it points, and a device stays a device."""
    if not isinstance(path, (str, bytes, os.PathLike)):  # a number is a file that is open already
        raise OutputError(f"{path!r} is no path.", "pass the name of a file, or a Path.")
    name = os.fsdecode(path)
    try:
        target = Path(os.path.realpath(name))
        if target.is_symlink():
            raise OutputError(f"{name} is a link that leads back to itself.", "name a file.")
        mode = Path(name).stat().st_mode
    except FileNotFoundError:
        return target
    except (OSError, ValueError) as error:  # a NUL byte in the name
        if isinstance(error, OutputError):
            raise
        raise _not_written(name, error) from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OutputError(
            f"{name} is no ordinary file, and cannot be replaced.", "name a file; - is standard output."
        )
    return target


def _in_words(path: Name, target: Path) -> str:
    """Name a target as whoever asked for it did, and where that leads to."""
    name = os.fsdecode(path)
    return f"{name} (a link to {target})" if Path(name).is_symlink() else name


def _not_written(name: str, error: Exception) -> OutputError:
    return OutputError(
        f"{name} cannot be written: {getattr(error, 'strerror', None) or error}.",
        "check the folder, and that you may write there.",
    )


def _keep_access(new: Path, old: Path) -> None:
    """Give the new content the owner, group and permissions of what it replaces: a secret stays one."""
    try:
        was = old.stat()
    except FileNotFoundError:
        return
    mode, now = stat.S_IMODE(was.st_mode) & 0o777, new.stat()
    if hasattr(os, "chown"):
        if now.st_uid != was.st_uid:
            with suppress(OSError):  # only the superuser gives files away
                os.chown(new, was.st_uid, -1)
        if now.st_gid != was.st_gid:
            try:
                os.chown(new, -1, was.st_gid)
            except OSError:
                mode &= 0o707  # what its group might do, another one may not
    if new.is_dir():
        for file in new.iterdir():
            _keep_access(file, old / file.name)
    new.chmod(mode)


def _sync(path: Path) -> None:
    """Bring a file, or a folder and all that is in it, to disk."""
    if path.is_dir():
        for child in path.iterdir():
            _sync(child)
        _sync_folder(path)
        return
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
        if fcntl is not None and hasattr(
            fcntl, "F_FULLFSYNC"
        ):  # elsewhere, the disk may still hold it in its cache
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk, where a system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some file systems have nothing to bring
            raise
    finally:
        os.close(descriptor)


def _take_place(unfinished: Path, target: Path) -> None:
    for _ in range(_ATTEMPTS):
        try:
            if not target.is_dir() or not unfinished.is_dir():
                unfinished.replace(target)
                return
            if _exchange(unfinished, target):
                return
            old = unfinished.with_name(_OLD)
            remove(old)
            target.rename(old)
            unfinished.rename(target)
        except OSError as error:
            if not unfinished.exists() and target.exists():
                return  # somebody who opened it did the last step for us
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}:
                _put_back(unfinished.with_name(_OLD), target)
                raise
        else:
            return
        # Somebody else wrote the same name meanwhile: what counts is that one of us was last.
    raise OSError(errno.EBUSY, "others write the same name all the time")


def _put_back(old: Path, target: Path) -> None:
    with suppress(OSError):
        if old.is_dir() and not target.exists():
            old.rename(target)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names at once, so that there is a whole folder at every moment; False where that cannot be done."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
