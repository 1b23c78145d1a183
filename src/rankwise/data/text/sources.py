"""Text from anywhere, in blocks of whole lines: files, compressed or not, standard input, open streams."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from types import ModuleType
from typing import BinaryIO, TypeVar, cast

from rankwise import _core
from rankwise.data.arguments import check_path
from rankwise.exceptions import Change, InvalidInputError, MemoryLimitError, MissingPackageError
from rankwise.runtime.memory import fits

__all__ = [
    "LONGEST_LINE",
    "ZSTD_MAGIC",
    "Metered",
    "Source",
    "import_zstandard",
    "list_sources",
    "open_source",
    "read_ahead",
    "reading",
    "whole_lines",
]

T = TypeVar("T")

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # how compressed files begin
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Bytes of the longest line that is read unless somebody says otherwise: a row of some twenty million values.
LONGEST_LINE = 1 << 28
_AT_ONCE = 1 << 20  # bytes that are read before somebody who wants to stop is listened to


@dataclass(frozen=True)
class Source:
    """Something to read from, and what error messages call it."""

    name: str
    place: str | BinaryIO

    @property
    def is_file(self) -> bool:
        """Whether it is a file on disk, opened and closed here."""
        return isinstance(self.place, str)

    @property
    def is_regular(self) -> bool:
        """Whether reading it never waits for somebody to write, as it does from a pipe."""
        return isinstance(self.place, str) and os.path.isfile(self.place)  # noqa: PTH113


def list_sources(paths: object) -> list[Source]:
    """Return the sources that a path, an open binary stream, ``"-"`` or a sequence of those means."""
    is_list = isinstance(paths, Iterable) and not _is_place(paths) and getattr(paths, "ndim", None) != 0
    places = cast("Iterable[object]", paths) if is_list else [paths]
    sources = [_source(place) for place in places]
    if not sources:
        raise InvalidInputError("There is no file to read.", "pass at least one path.")
    if sum(source.name == "standard input" for source in sources) > 1:
        raise InvalidInputError("Standard input can be read once.", "name '-' only once among the files.")
    return sources


def _is_place(given: object) -> bool:
    return isinstance(given, (str, bytes, os.PathLike)) or hasattr(given, "read")


def _source(place: object) -> Source:
    if hasattr(place, "read"):
        if isinstance(place, io.TextIOBase):
            raise InvalidInputError(
                "The stream yields text where bytes are needed.", "open the file with mode 'rb'."
            )
        return Source(str(getattr(place, "name", "stream")), cast("BinaryIO", place))
    path = check_path("paths", place)
    return Source("standard input", sys.stdin.buffer) if path == "-" else Source(path, path)


@contextmanager
def open_source(source: Source) -> Iterator[BinaryIO]:
    """Open a source for reading its text; gzip, bz2, xz and zstd are told by their first bytes."""
    try:
        raw = open(source.place, "rb") if isinstance(source.place, str) else source.place  # noqa: PTH123, SIM115
    except OSError as error:
        raise InvalidInputError(
            f"{source.name} cannot be opened: {error.strerror}.", "check the path, and that you may read it."
        ) from error
    try:
        buffered = raw if hasattr(raw, "peek") else io.BufferedReader(cast("io.RawIOBase", _Raw(raw)))
        yield _decompressed(cast("io.BufferedReader", buffered), source.name)
    finally:
        if source.is_file:
            raw.close()


class _Raw(io.RawIOBase):
    """Any object with a method `read`, as a raw stream."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader passes
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _decompressed(stream: io.BufferedReader, name: str) -> BinaryIO:
    with reading(name):
        magic = stream.peek(6)[:6]
    if magic.startswith(b"\x1f\x8b"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if magic.startswith(b"BZh"):
        return cast("BinaryIO", bz2.BZ2File(stream))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return cast("BinaryIO", lzma.LZMAFile(stream))
    if magic.startswith(ZSTD_MAGIC):
        return _zstd(stream, name)
    return stream


def import_zstandard(name: str) -> ModuleType:
    """Import what reads and writes a file that is compressed with zstd, or say how to get it."""
    try:
        import zstandard  # noqa: PLC0415 - only when such a file is read or written
    except ImportError as error:
        raise MissingPackageError(
            f"{name} is compressed with zstd, and the package zstandard is not installed.",
            "install it with: pip install 'rankwise[zstd]', or use gzip (.gz) instead.",
        ) from error
    return zstandard


def _zstd(stream: BinaryIO, name: str) -> BinaryIO:
    reader = import_zstandard(name).ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    return cast("BinaryIO", reader)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say that a file is damaged where its decompression fails."""
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise _damaged(name, error) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "zstandard":
            raise _damaged(name, error) from error
        raise


def _damaged(name: str, error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"{name} cannot be read to its end: {error}.", "the file seems damaged or cut off; fetch it again."
    )


def whole_lines(
    stream: BinaryIO, name: str, block_bytes: int, longest_line: int = LONGEST_LINE, stop: Event | None = None
) -> Iterator[tuple[bytearray, int]]:
    """Yield (buffer, size): the first `size` bytes are whole lines, and padding for the parser follows.

    Two buffers take turns: one may be filled while the other is parsed. A buffer holds about `block_bytes`, or
    one line where a line is longer.

    Parameters
    ----------
    longest_line : int
        Bytes; a longer line is an error. Something without any end of a line would take all memory there is.
    stop : Event, optional
        Set by whoever needs no more, from another thread.
    """
    padding = _core.TEXT_PADDING
    buffers = [bytearray(block_bytes + padding), bytearray(block_bytes + padding)]
    kept = memoryview(b"")  # the beginning of a line whose end was not read yet
    is_first = True
    while True:
        buffer = buffers[0]
        filled = len(kept)
        buffer[:filled] = kept
        kept = memoryview(b"")
        size, at_end = 0, False
        while not at_end and size == 0:
            if filled > longest_line:
                raise InvalidInputError(
                    f"{name} has a line of more than {longest_line / 1e6:,.0f} MB.",
                    "check that the file is text, a row per line; if it is, raise longest_line.",
                    Change("longest_line"),
                )
            if filled + padding >= len(buffer):
                buffer.extend(bytes(len(buffer)))
            filled, at_end = _fill(stream, name, buffer, filled, len(buffer) - padding, stop)
            size = filled if at_end else buffer.rfind(b"\n", 0, filled) + 1
        if is_first and buffer.startswith(_BYTE_ORDER_MARK):
            buffer[:3] = b"   "
        is_first = False
        if filled > size:
            kept = memoryview(bytes(memoryview(buffer)[size:filled]))
        if size:
            yield buffer, size
        if at_end:
            return
        buffers.reverse()


def _fill(
    stream: BinaryIO, name: str, buffer: bytearray, start: int, stop: int, stopping: Event | None
) -> tuple[int, bool]:
    with reading(name), memoryview(buffer) as view:
        while start < stop:
            end = min(stop, start + _AT_ONCE)
            n_read = stream.readinto(view[start:end])  # type: ignore[attr-defined]
            if not n_read or (stopping is not None and stopping.is_set()):
                return start, True
            start += n_read
    return start, False


def read_ahead(items: Iterable[T], stop: Event | None = None) -> Iterator[T]:
    """Yield the items, the next one being made by another thread while the caller works on this one.

    When the caller has enough, or is interrupted, `stop` is set, so that the thread need not come to an end of its own.
    """
    iterator = iter(items)
    end = object()
    with ThreadPoolExecutor(1) as executor:
        try:
            upcoming = executor.submit(next, iterator, end)
            while (item := upcoming.result()) is not end:
                upcoming = executor.submit(next, iterator, end)
                yield cast("T", item)
        finally:
            if stop is not None:
                stop.set()


class Metered:
    """A stream for a reader that holds all it reads: no more comes through than there is memory for.

    Parameters
    ----------
    stream : binary stream
    name : str
        What it is called in the error.
    """

    closed = False

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name, self._count = stream, name, 0

    def read(self, size: int = -1) -> bytes:
        """Read, unless that much again would not fit."""
        data = self._stream.read(size)
        self._count += len(data)
        if not fits(self._count):
            raise MemoryLimitError(
                f"{self._name} is read whole, and does not fit in memory: {self._count / 1e9:,.1f} GB so far.",
                "write it as Parquet, which is read in parts, or as svmlight text.",
            )
        return data

    def readable(self) -> bool:
        """Say so."""
        return True
