"""Write files and folders whole or not at all.

The new content is written to a temporary folder beside its place, brought to disk, and then renamed. A process that is
killed leaves the old content or the new one. A folder that already exists is moved into the temporary folder first, so
a kill between the two renames leaves both folders there, in ``.NAME.xxxxxxxx``.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rankwise.exceptions import OutputError

Name = str | os.PathLike[str]

_PREFIX = 40  # characters of a name that its temporary folder repeats; names have at most 255 bytes


@contextmanager
def replacing(path: Name) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends, and is removed if the block fails.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "notes.txt")) as stream:
    ...         _ = stream.write(b"whole")
    ...     Path(folder, "notes.txt").read_bytes()
    b'whole'
    """
    target = place_of(path)
    if target.is_dir():
        raise OutputError(f"{os.fsdecode(path)} is a folder.", "name a file.")
    with _beside(path, target) as new, new.open("xb") as stream:
        yield stream


@contextmanager
def replacing_folder(path: Name) -> Iterator[Path]:
    """Yield the name of a folder to make, which takes the place of `path` when the block ends.

    Other files beside that folder are temporary: they are removed with everything else if the block fails.
    """
    target = place_of(path)
    if target.is_file():
        raise OutputError(f"{os.fsdecode(path)} is a file.", "name a folder, or one that does not exist yet.")
    with _beside(path, target) as new:
        yield new


def place_of(path: Name) -> Path:
    """Return the file or folder that a path leads to: links stay links, and pipes and devices are not replaced."""
    target = Path(os.path.realpath(os.fsdecode(path)))
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise OutputError(
            f"{os.fsdecode(path)} is not an ordinary file and cannot be replaced.",
            "name a file; - is standard output.",
        )
    return target


@contextmanager
def _beside(path: Name, target: Path) -> Iterator[Path]:
    try:
        with tempfile.TemporaryDirectory(
            prefix=f".{target.name[:_PREFIX]}.", dir=target.parent, ignore_cleanup_errors=True
        ) as folder:
            new = Path(folder, "new")
            yield new
            _sync(new)
            if target.exists():
                shutil.copymode(target, new)
            old = Path(folder, "old")
            try:
                if target.is_dir():  # only an empty folder can be replaced in one step
                    target.rename(old)
                new.replace(target)
            except BaseException:
                if old.exists() and not target.exists():
                    old.rename(target)
                raise
            _sync_names(target.parent)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(
            f"{os.fsdecode(path)} could not be written: {error.strerror or error}.",
            "check the folder, the free space, and that you may write there.",
        ) from error


def _sync(path: Path) -> None:
    """Bring a file, or a folder and everything in it, to disk."""
    if path.is_dir():
        for child in path.iterdir():
            _sync(child)
        _sync_names(path)
    else:
        with path.open("r+b") as stream:
            os.fsync(stream.fileno())


def _sync_names(folder: Path) -> None:
    """Bring the names in a folder to disk, on systems and file systems that can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # of file systems that cannot
            raise
    finally:
        os.close(descriptor)
