"""Model files read: everything is compared with the checksum before it is looked at.

Nothing is allocated for what a file only promises: sizes are compared with what is there first. The arrays of a model
share the bytes that were read, so that these are copied once. A small model is read in the time that unpickling takes,
which is why few functions are called for one.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from functools import lru_cache
from typing import Any, BinaryIO, Literal

import numpy as np

from rankwise import _core
from rankwise.arrays import AnyArray, DType
from rankwise.exceptions import Change, MemoryLimitError, ModelFileError
from rankwise.persistence.container import ALIGNMENT, FORMAT, MAGIC, MAX_HEADER, PREFIX, TYPES, Container
from rankwise.runtime.memory import fits

__all__ = ["gathered", "read_container", "read_file"]

# Whether of format 1; where index, header, description and arrays begin.
_Layout = tuple[bool, int, int, int, int]
# Type, shape, order, the place after the texts, and whether any bytes are numbers of the type as it is here.
_Entry = tuple[DType, tuple[int, ...], Literal["C", "F"], int, bool]
_Index = tuple[dict[str, _Entry], int]  # of the arrays, and the bytes that they take

_SHORT = 1 << 12  # bytes of an index that is worth remembering
_SMALL = 1 << 14  # bytes that are copied before it matters to where
_CHUNK = 1 << 22
_ORDERS = ("C", "F")
_MAX_AXES = 32
_DEEPEST = 1000  # brackets inside brackets
_LAST_CHARACTER = 0x10FFFF
_OLD_PREFIX = 16  # of format 1: magic, version, and the length of its one text
_CHECKSUM = {True: 32, False: 8}  # bytes, of format 1 and of others


def read_container(stream: BinaryIO, *, only_header: bool = False) -> Container:
    """Read a stream to its end.

    Parameters
    ----------
    only_header : bool
        Whether the description is read in place of the arrays.
    """
    if type(stream) is io.BytesIO and not only_header:
        return _from_memory(stream.read())
    if not stream.seekable():
        stream = gathered(stream)
    start = stream.tell()
    size = stream.seek(0, io.SEEK_END) - start
    stream.seek(start)
    return _from_stream(stream, size, only_header)


def read_file(path: str | os.PathLike[str], *, only_header: bool = False) -> Container:
    """Read a file of that name."""
    with io.FileIO(path) as stream:  # a third faster than `open`, and read in large pieces anyway
        status = os.fstat(stream.fileno())
        if stat.S_ISREG(status.st_mode):
            return _from_stream(stream, status.st_size, only_header)
        return read_container(stream, only_header=only_header)


def _from_memory(source: bytes) -> Container:
    """Read bytes, which are copied and summed up in one pass, for arrays can be written to."""
    layout = _layout(source, len(source))
    content = _memory(len(source))
    is_whole = _core.copy_whole(source, content)
    if not (_has_sha256(content) if layout[0] else is_whole):
        raise _mismatch()
    return _container(content, layout)


def _from_stream(stream: BinaryIO, size: int, only_header: bool) -> Container:
    """Read so many bytes straight into the memory of the arrays."""
    if only_header or size > _CHUNK:  # what is no model is not read to its end
        start = stream.tell()
        layout = _layout(stream.read(PREFIX.size), size)
        stream.seek(start)
        if only_header:
            return _described(_checked_head(stream, size, layout), size, layout)
    content = _memory(size)
    _fill(stream, content)
    layout = _layout(content.data, size)
    if not (_has_sha256(content) if layout[0] else _core.is_whole(content)):
        raise _mismatch()
    return _container(content, layout)


def _memory(size: int) -> AnyArray:
    """Return room for a file: at a multiple of 64 where it is large, for processors copy faster to there."""
    if size < _SMALL:
        return np.empty(size, dtype=np.uint8)
    room = np.empty(size + ALIGNMENT, dtype=np.uint8)
    return room[_core.aligned(room) :][:size]


def _container(content: AnyArray, layout: _Layout) -> Container:
    """Make what the bytes of a file hold, which agree with their checksum."""
    is_old, begin, middle, end, first = layout
    old = _parsed(content, middle, end, {}) if is_old else None
    index = _index(content, begin, middle) if old is None else _old_index(old)
    _require_room(index, content.size - first - _CHECKSUM[is_old])
    arrays = _arrays(index, content, first)
    return Container(_parsed(content, middle, end, arrays) if old is None else old, arrays)


def _described(head: AnyArray, size: int, layout: _Layout) -> Container:
    """Make what the texts of a file say, and compare what they say of the arrays with the room that there is."""
    is_old, begin, middle, end, first = layout
    header = _parsed(head, middle, end, {})
    index = _old_index(header) if is_old else _index(head, begin, middle)
    _require_room(index, size - first - _CHECKSUM[is_old])
    return Container(header, {}, {} if is_old else _parsed(head, end, first, {}))


def _layout(prefix: bytes | memoryview, size: int) -> _Layout:
    """Return where the parts of a file begin, if it can be read and is long enough for what its prefix says."""
    if size < PREFIX.size:
        raise _not_a_model() if bytes(prefix[: len(MAGIC)]) != MAGIC else _damaged("it ends too early")
    magic, major, minor, n_index, n_header, n_description = PREFIX.unpack_from(prefix)
    if magic != MAGIC:
        raise _not_a_model()
    if not 0 < major <= FORMAT[0]:
        raise ModelFileError(
            f"The model file has format {major}.{minor}, and this version of rankwise reads formats 1 and {FORMAT[0]}.",
            "upgrade rankwise (pip install --upgrade rankwise)."
            if major
            else "the file is damaged: write it again.",
        )
    begin, is_old = PREFIX.size, major == 1
    if is_old:
        begin, n_index, n_header, n_description = _OLD_PREFIX, 0, n_index, 0
    middle = begin + n_index
    end = middle + n_header
    first = end + n_description
    if first - begin > MAX_HEADER or first + _CHECKSUM[is_old] > size:
        raise _damaged(f"its header is said to take {first - begin} bytes")
    return is_old, begin, middle, end, first


def gathered(stream: BinaryIO) -> BinaryIO:
    """Read what comes through a pipe into memory: no more than its header says, and no more than there is room for."""
    content = io.BytesIO()

    def fetch(n_bytes: int) -> bool:
        while n_bytes and (chunk := stream.read(min(n_bytes, _CHUNK))):
            content.write(chunk)
            n_bytes -= len(chunk)
        return n_bytes == 0

    is_whole = fetch(PREFIX.size)
    head = content.getvalue()
    is_old, begin, middle, end, first = _layout(head, 2**62 if is_whole else len(head))
    if fetch(first - PREFIX.size):
        texts = np.frombuffer(content.getvalue(), dtype=np.uint8)
        index = _old_index(_parsed(texts, middle, end, {})) if is_old else _index(texts, begin, middle)
        needed = index[1]
        if not fits(2 * needed):
            raise MemoryLimitError(
                f"The model takes {needed / 1e9:,.1f} GB, and comes through a pipe, which takes as much again.",
                "save it to a file first, or use a machine with more memory.",
            )
        fetch(needed + _CHECKSUM[is_old] + 1)  # one byte more would be one too many
    content.seek(0)
    return content


def _fill(stream: BinaryIO, content: AnyArray) -> None:
    read: Any = stream.readinto  # type: ignore[attr-defined]  # every binary stream has it, and its type does not say so
    at = read(content)
    while at < content.size:  # a system may read less than it is asked for
        n_bytes = read(content[at:])
        if not n_bytes:
            raise _damaged("it ends too early")
        at += n_bytes


def _checked_head(stream: BinaryIO, size: int, layout: _Layout) -> AnyArray:
    """Return the texts of a file, once all of it agrees with its checksum, without keeping the rest."""
    is_old, *_, n_kept = layout
    head = np.empty(n_kept, dtype=np.uint8)
    _fill(stream, head)
    checksum: Any = hashlib.sha256() if is_old else _core.Xxh3()
    checksum.update(head)
    left = size - n_kept - _CHECKSUM[is_old]
    chunk = np.empty(min(left, _CHUNK), dtype=np.uint8)
    while left:
        piece = chunk[:left]
        _fill(stream, piece)
        checksum.update(piece)
        left -= piece.size
    found = checksum.digest() if is_old else checksum.digest.to_bytes(8, "little")
    if stream.read(_CHECKSUM[is_old]) != found:
        raise _mismatch()
    return head


def _has_sha256(content: AnyArray) -> bool:
    end = content.size - _CHECKSUM[True]
    return hashlib.sha256(content[:end].data).digest() == content[end:].tobytes()


def _json(content: AnyArray, begin: int, end: int, arrays: dict[str, AnyArray]) -> object:
    try:
        return _core.read_json(content, begin, end, _DEEPEST, arrays)
    except ValueError as error:
        raise _damaged(f"its header cannot be read ({error})") from error


def _parsed(content: AnyArray, begin: int, end: int, arrays: dict[str, AnyArray]) -> dict[str, Any]:
    found = _json(content, begin, end, arrays)
    if not isinstance(found, dict):
        raise _damaged("its header is no JSON object")
    return found


def _old_index(header: dict[str, object]) -> _Index:
    """Take the list of the arrays out of a header of format 1."""
    entries = header.pop("arrays", None)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _damaged("its header lists no arrays")
    return _entries([[entry.get(key) for key in ("name", "dtype", "shape", "order")] for entry in entries])


def _index(content: AnyArray, begin: int, end: int) -> _Index:
    """Return what the index of a file says; models of the same shapes have the same one, which is read once."""
    if end - begin > _SHORT:
        return _entries(_json(content, begin, end, {}))
    return _short_index(content[begin:end].tobytes())


@lru_cache(256)
def _short_index(text: bytes) -> _Index:
    return _entries(_json(np.frombuffer(text, dtype=np.uint8), 0, len(text), {}))


def _entries(index: object) -> _Index:
    """Check what is said of the arrays: nothing is compared with the bytes that there are."""
    if not isinstance(index, list):
        raise _damaged("its header lists no arrays")
    entries: dict[str, _Entry] = {}
    at = 0
    for entry in index:
        if not isinstance(entry, list) or len(entry) != 4:
            raise _damaged("its header lists something that is no array")
        name, kind, shape, order = entry
        if not isinstance(name, str) or name in entries or order not in _ORDERS:
            raise _damaged(f"its header describes array {name!r} wrongly")
        dtype = np.dtype(kind) if isinstance(kind, str) and TYPES.fullmatch(kind) else None
        if dtype is None:
            raise _damaged(f"array {name!r} has type {kind!r}, which no model file holds")
        size = _size(shape, 2**60 // dtype.itemsize)
        if size is None:
            raise _damaged(f"array {name!r} has shape {shape!r}")
        entries[name] = dtype, tuple(shape), order, at, dtype.kind in "iuf" and dtype.isnative
        at += -(-size * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    return entries, at


def _require_room(index: _Index, room: int) -> None:
    if index[1] > room:
        raise _damaged(f"there is no room for arrays of {index[1]} bytes")
    if index[1] < room:
        raise _damaged(f"{room - index[1]} bytes belong to nothing")


def _arrays(index: _Index, content: AnyArray, first: int) -> dict[str, AnyArray]:
    """Return the arrays that the bytes of a file hold from some place on, which they share."""
    arrays: dict[str, AnyArray] = {}
    for name, (dtype, shape, order, at, is_plain) in index[0].items():
        array: AnyArray = np.ndarray(shape, dtype, content, first + at, None, order)
        arrays[name] = array if is_plain else _converted(array)
    return arrays


def _size(shape: object, limit: int) -> int | None:
    """Return how many numbers an array has; None where its shape is none, or the product of its axes beyond a limit."""
    if not isinstance(shape, list) or len(shape) > _MAX_AXES:
        return None
    size = largest = 1
    for axis in shape:
        if type(axis) is not int or axis < 0:
            return None
        size *= axis
        largest *= axis or 1
    return size if largest < limit else None


def _converted(array: AnyArray) -> AnyArray:
    """Return an array of this machine's numbers, once its bytes are known to be values of its type."""
    kind, flat = array.dtype.kind, array.ravel("K")
    if kind == "U" and flat.size and int(flat.view(np.uint32).max()) > _LAST_CHARACTER:
        raise _damaged("it holds text that is none")
    if kind == "b" and flat.size and int(flat.view(np.uint8).max()) > 1:
        raise _damaged("it holds truth values that are none")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _not_a_model() -> ModelFileError:
    return ModelFileError(
        "This is not a rankwise model file.",
        "pass a file that model.save or `rankwise fit` wrote; data files are read by rankwise.data.",
        Change("model"),
    )


def _mismatch() -> ModelFileError:
    return _damaged("its checksum does not match its contents")


def _damaged(how: str) -> ModelFileError:
    return ModelFileError(
        f"The model file is damaged: {how}.", "copy it again from where it came, or save the model again."
    )
