"""Files appear whole or not at all: written under a temporary name beside their place, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


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
    target = Path(os.path.realpath(path))  # a link keeps pointing where it points
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
