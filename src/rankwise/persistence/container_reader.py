"""Model files read: everything is compared with the checksum before it is looked at.

Nothing is allocated for what a file only promises: sizes are compared with what is there first. The arrays of a model
share the bytes that were read, so that these are copied once. A small model is read in the time that unpickling takes,
which is why few functions are called for one.
"""

from __future__ import annotations

import hashlib
import io
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np

from rankwise import _core
from rankwise.arrays import AnyArray, DType
from rankwise.exceptions import MemoryLimitError, ModelFileError
from rankwise.memory import fits
from rankwise.persistence.container import ALIGNMENT, FORMAT, MAGIC, MAX_HEADER, PREFIX, TYPES, Container

__all__ = ["gathered", "read_container"]

_Layout = tuple[int, int, int, int, int]  # major version; where index, header, description and arrays begin

_NOTHING = np.empty(0)
_CHUNK = 1 << 22
_ORDERS = ("C", "F")
_MAX_AXES = 32
_DEEPEST = 1000  # brackets inside brackets
_LAST_CHARACTER = 0x10FFFF
_OLD_PREFIX = 16  # of format 1: magic, version, and the length of its one text
_CHECKSUM = {1: 32, 2: 8}  # bytes of each format


def read_container(stream: BinaryIO, *, only_header: bool = False) -> Container:
    """Read a stream to its end.

    Parameters
    ----------
    only_header : bool
        Whether the description is read in place of the arrays.
    """
    if not stream.seekable():
        stream = gathered(stream)
    start = stream.tell()
    size = stream.seek(0, io.SEEK_END) - start
    stream.seek(start)
    if only_header or size > _CHUNK:  # what is no model is not read to its end
        layout = _layout(stream.read(PREFIX.size), size)
        stream.seek(start)
    if only_header:
        content = _checked_head(stream, size, layout)
    else:
        content = np.empty(size, dtype=np.uint8)
        _fill(stream, content)
        layout = _layout(content.data, size)
        if not (_core.is_whole(content) if layout[0] > 1 else _has_sha256(content)):
            raise _mismatch()
    major, begin, middle, end, first = layout
    kept, room = None if only_header else content, size - first - _CHECKSUM[major]
    if major == 1:
        header = _parsed(content, middle, end, {})
        arrays, room = _arrays(_old_index(header), kept, first, room)
    else:
        arrays, room = _arrays(_json(content, begin, middle, {}), kept, first, room)
        header = _parsed(content, middle, end, {} if only_header else arrays)
    if room:
        raise _damaged(f"{room} bytes belong to nothing")
    return Container(header, arrays, _parsed(content, end, first, {}) if only_header and major > 1 else {})


def _layout(prefix: bytes | memoryview, size: int) -> _Layout:
    """Return where the parts of a file begin, if it can be read and is long enough for what its prefix says."""
    if size < PREFIX.size:
        raise _not_a_model() if bytes(prefix[: len(MAGIC)]) != MAGIC else _damaged("it ends too early")
    magic, major, minor, n_index, n_header, n_description = PREFIX.unpack_from(prefix)
    if magic != MAGIC:
        raise _not_a_model()
    begin = PREFIX.size
    if major != FORMAT[0]:
        if major != 1:
            raise ModelFileError(
                f"The model file has format {major}.{minor}, and this version of rankwise reads formats 1 and "
                f"{FORMAT[0]}.",
                "upgrade rankwise (pip install --upgrade rankwise)."
                if major > FORMAT[0]
                else "the file is damaged: write it again.",
            )
        begin, n_index, n_header, n_description = _OLD_PREFIX, 0, n_index, 0
    middle = begin + n_index
    end = middle + n_header
    first = end + n_description
    if first - begin > MAX_HEADER or first + _CHECKSUM[major] > size:
        raise _damaged(f"its header is said to take {first - begin} bytes")
    return major, begin, middle, end, first


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
    major, begin, middle, end, first = _layout(head, 2**62 if is_whole else len(head))
    if fetch(first - PREFIX.size):
        texts = np.frombuffer(content.getvalue(), dtype=np.uint8)
        index = _old_index(_parsed(texts, middle, end, {})) if major == 1 else _json(texts, begin, middle, {})
        needed = 2**62 - _arrays(index, None, first, 2**62)[1]
        if not fits(2 * needed):
            raise MemoryLimitError(
                f"The model takes {needed / 1e9:,.1f} GB, and comes through a pipe, which takes as much again.",
                "save it to a file first, or use a machine with more memory.",
            )
        fetch(needed + _CHECKSUM[major] + 1)  # one byte more would be one too many
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
    major, n_kept = layout[0], layout[-1]
    head = np.empty(n_kept, dtype=np.uint8)
    _fill(stream, head)
    checksum: Any = _core.Xxh3() if major > 1 else hashlib.sha256()
    checksum.update(head)
    left = size - n_kept - _CHECKSUM[major]
    chunk = np.empty(min(left, _CHUNK), dtype=np.uint8)
    while left:
        piece = chunk[:left]
        _fill(stream, piece)
        checksum.update(piece)
        left -= piece.size
    found = checksum.digest.to_bytes(8, "little") if major > 1 else checksum.digest()
    if stream.read(_CHECKSUM[major]) != found:
        raise _mismatch()
    return head


def _has_sha256(content: AnyArray) -> bool:
    return hashlib.sha256(content[: -_CHECKSUM[1]].data).digest() == content[-_CHECKSUM[1] :].tobytes()


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


def _old_index(header: dict[str, object]) -> object:
    """Take the list of the arrays out of a header of format 1."""
    entries = header.pop("arrays", None)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _damaged("its header lists no arrays")
    return [[entry.get(key) for key in ("name", "dtype", "shape", "order")] for entry in entries]


@lru_cache(256)
def _type(kind: str) -> DType | None:
    """Return the type of numbers that a file names; None where no file holds it."""
    return np.dtype(kind) if TYPES.fullmatch(kind) else None


def _arrays(index: object, content: AnyArray | None, at: int, room: int) -> tuple[dict[str, AnyArray], int]:
    """Return the arrays that the bytes of a file hold from some place on, which they share, and the room that is left.

    Without the bytes, what is said of the arrays is compared with the room alone.
    """
    if not isinstance(index, list):
        raise _damaged("its header lists no arrays")
    arrays: dict[str, AnyArray] = {}
    for entry in index:
        if type(entry) is not list or len(entry) != 4:
            raise _damaged("its header lists something that is no array")
        name, kind, shape, order = entry
        if type(name) is not str or name in arrays or order not in _ORDERS:
            raise _damaged(f"its header describes array {name!r} wrongly")
        dtype = _type(kind) if type(kind) is str else None
        if dtype is None:
            raise _damaged(f"array {name!r} has type {kind!r}, which no model file holds")
        size = _size(shape, 2**60 // dtype.itemsize)
        if size is None:
            raise _damaged(f"array {name!r} has shape {shape!r}")
        n_bytes = -(-size * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        room -= n_bytes
        if room < 0:
            raise _damaged(f"there is no room for array {name!r}")
        arrays[name] = (
            _NOTHING if content is None else _array(np.frombuffer(content, dtype, size, at), shape, order)
        )
        at += n_bytes
    return arrays, room


def _size(shape: object, limit: int) -> int | None:
    """Return how many numbers an array has; None where its shape is none, or the product of its axes beyond a limit."""
    if type(shape) is not list or len(shape) > _MAX_AXES:
        return None
    size = largest = 1
    for axis in shape:
        if type(axis) is not int or axis < 0:
            return None
        size *= axis
        largest *= axis or 1
    return size if largest < limit else None


def _array(flat: AnyArray, shape: list[int], order: str) -> AnyArray:
    """Return an array in its shape, once its bytes are known to be values of its type."""
    kind = flat.dtype.kind
    if kind == "U" and flat.size and int(flat.view(np.uint32).max()) > _LAST_CHARACTER:
        raise _damaged("it holds text that is none")
    if kind == "b" and flat.size and int(flat.view(np.uint8).max()) > 1:
        raise _damaged("it holds truth values that are none")
    if len(shape) != 1:
        flat = flat.reshape(shape, order="F" if order == "F" else "C")
    return flat if flat.dtype.isnative else flat.astype(flat.dtype.newbyteorder("="))


def _not_a_model() -> ModelFileError:
    return ModelFileError(
        "This is not a rankwise model file.",
        "pass a file that model.save or `rankwise fit` wrote; data files are read by rankwise.data.",
    )


def _mismatch() -> ModelFileError:
    return _damaged("its checksum does not match its contents")


def _damaged(how: str) -> ModelFileError:
    return ModelFileError(
        f"The model file is damaged: {how}.", "copy it again from where it came, or save the model again."
    )
