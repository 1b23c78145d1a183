"""The files of a store that is being written: bytes go out while the next rows are parsed."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rankwise import _core
from rankwise.data.store.format import Segment

__all__ = ["StoreFile", "WritesBehind"]

# Bytes that get a checksum of their own; smaller pieces are gathered first.
SEGMENT = 1 << 22
# Bytes that may be on their way to disk while the next rows are parsed.
MOST_BEHIND = 2 * SEGMENT
# Bytes of each file that are looked at again after a write: what of them has reached the disk leaves the page cache.
_LET_GO = 64 * SEGMENT


class WritesBehind:
    """Writes that go on while the next rows are made, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._is_on, self._can_wait = False, True
        self._executor: ThreadPoolExecutor | None = None
        self._outstanding: deque[tuple[Future[None], int]] = deque()

    def before_rows(self, n_bytes: int, *, may_wait: bool) -> None:
        """Say whether the arrays that come now, of so many bytes, may be written later.

        Too much of what came before is written first. A query that makes a large block of its own is written at once:
        nothing of it is held while the next rows are parsed.
        """
        may_wait = may_wait and n_bytes <= 2 * MOST_BEHIND
        self.wait(MOST_BEHIND if may_wait else 0)
        self._is_on = may_wait and self._can_wait

    def do(self, write: Callable[[npt.NDArray[np.uint8]], None], content: npt.NDArray[np.uint8]) -> None:
        """Write, now or later."""
        if not self._is_on:
            write(content)
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1)
        try:
            later = self._executor.submit(write, content)
        except RuntimeError:  # no thread is to be had: there is no room for one, or Python is about to end
            self.wait()
            self._executor, self._can_wait, self._is_on = None, False, False
            write(content)
            return
        self._outstanding.append((later, content.size))

    def wait(self, most_left: int = 0) -> None:
        """Wait until no more than so many bytes are left to be written, and raise what went wrong."""
        left = sum(size for _, size in self._outstanding)
        while self._outstanding and (left > most_left or self._outstanding[0][0].done()):
            write, size = self._outstanding.popleft()
            write.result()
            left -= size

    def close(self) -> None:
        """Wait for the write that is under way, and give up those that are not."""
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


class StoreFile:
    """A file that is written in pieces, with a checksum for each few megabytes."""

    def __init__(self, path: Path, behind: WritesBehind) -> None:
        self._file: BinaryIO = path.open("wb", buffering=0)
        self._behind = behind
        self._written = 0
        self._pending: list[npt.NDArray[np.uint8]] = []
        self._pending_bytes = 0
        self._segments: list[Segment] = []

    def append(self, content: npt.NDArray[np.uint8]) -> None:
        """Write some bytes, at once or with those that follow."""
        if self._pending_bytes + content.size < SEGMENT:
            content = content.copy()  # it waits here, and its owner may fill the same array again
        self._pending.append(content)
        self._pending_bytes += content.size
        if self._pending_bytes >= SEGMENT:
            self._flush()

    def finish(self) -> list[Segment]:
        """Write what waits, and return the sizes and checksums of all segments."""
        self._flush()
        self.close()
        return self._segments

    def close(self) -> None:
        """Forget what waits."""
        self._pending = []
        self._file.close()

    def _flush(self) -> None:
        if not self._pending_bytes:
            return
        content = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        self._pending, self._pending_bytes = [], 0
        self._behind.do(self._write, content)

    def _write(self, content: npt.NDArray[np.uint8]) -> None:
        self._segments.append((content.size, f"{_core.checksum(content):016x}"))
        left = content.data
        while left:
            left = left[self._file.write(left) :]
        self._written += content.size
        self._let_go()

    def _let_go(self) -> None:
        """Have what was written brought to disk now, and forget what is there already.

        New pages for the page cache can cost more than all else about writing, and a store that is larger than memory
        would drive out what others have there. A slow disk keeps nobody waiting: what it has not taken yet stays.
        """
        if hasattr(os, "posix_fadvise"):
            first = max(0, self._written - _LET_GO)
            with suppress(OSError):  # advice may be refused, and then costs time only
                os.posix_fadvise(self._file.fileno(), first, self._written - first, os.POSIX_FADV_DONTNEED)
