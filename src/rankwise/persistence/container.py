"""The bytes of a model file: a prefix, a JSON header, the arrays it names, and a checksum of all that.

====================  =====================================================================================
8 bytes               ``RANKWISE``
2 + 2 bytes           major and minor version of the format, little-endian
4 bytes               the length of the header, little-endian; a multiple of 64 less these 16 bytes
header                JSON in ASCII, padded with spaces; its list ``arrays`` gives name, type, shape and order
arrays                one after the other in the order of that list, each padded with zeros to 64 bytes
32 bytes              SHA-256 of everything before
====================  =====================================================================================

Nothing here knows what a model is. Nothing is allocated for what a file only promises: sizes are compared with what is
there first.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Never

import numpy as np

from rankwise.arrays import AnyArray, DType
from rankwise.exceptions import MemoryLimitError, ModelFileError
from rankwise.json_values import Json
from rankwise.memory import fits

__all__ = ["FORMAT", "MAGIC", "Container", "gathered", "is_storable", "read_container", "write_container"]

MAGIC = b"RANKWISE"
FORMAT = (1, 0)  # major: a reader of another one cannot read it; minor: it can, and misses something

Array = AnyArray
_Entry = tuple[DType, tuple[int, ...], Any]  # type, shape, order in memory

_PREFIX = 16
_ALIGNMENT = 64
_CHECKSUM = 32
_CHUNK = 1 << 22
_MAX_HEADER = 1 << 26
_MAX_AXES = 32
_TYPES = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,6}")
_LAST_CHARACTER = 0x10FFFF


class Container:
    """A header and the arrays it names.

    Parameters
    ----------
    header : dict
        JSON values only; without the list of arrays, which is made from `arrays`.
    arrays : mapping from str to ndarray
        Booleans, integers, floats and fixed-width strings; their order in memory (C or Fortran) is kept.
    version : (int, int)
    """

    def __init__(
        self, header: dict[str, Any], arrays: Mapping[str, Array], version: tuple[int, int] = FORMAT
    ) -> None:
        self.header, self.arrays, self.version = header, arrays, version


def is_storable(dtype: DType) -> bool:
    """Tell whether a file can hold arrays of this type."""
    return _TYPES.fullmatch(_little(dtype).str) is not None


def write_container(stream: BinaryIO, container: Container) -> None:
    """Write to a binary stream, front to back."""
    entries = [
        {"name": name, "dtype": _little(array.dtype).str, "shape": list(array.shape), "order": _order(array)}
        for name, array in container.arrays.items()
    ]
    text = json.dumps({**container.header, "arrays": entries}, allow_nan=False).encode("ascii")
    text += b" " * (-(_PREFIX + len(text)) % _ALIGNMENT)
    if len(text) > _MAX_HEADER:
        raise ModelFileError(
            f"The header of the model file would take {len(text) / 2**20:.0f} MiB, more than "
            f"{_MAX_HEADER / 2**20:.0f} MiB.",
            "shorten the feature names, or pass parameters as arrays instead of lists.",
        )
    checksum = hashlib.sha256()

    def write(data: bytes | memoryview) -> None:
        checksum.update(data)
        stream.write(data)

    write(MAGIC + b"".join(part.to_bytes(2, "little") for part in container.version))
    write(len(text).to_bytes(4, "little") + text)
    for array in container.arrays.values():
        write(_bytes_of(array))
        write(bytes(-array.nbytes % _ALIGNMENT))
    stream.write(checksum.digest())


def read_container(stream: BinaryIO, *, only_header: bool = False) -> Container:
    """Read a stream to its end; everything is compared with the checksum before it is looked at.

    Parameters
    ----------
    only_header : bool
        Whether the arrays are left out of the result.
    """
    if not stream.seekable():
        stream = gathered(stream)
    start = stream.tell()
    size = stream.seek(0, io.SEEK_END) - start
    stream.seek(start)
    prefix = stream.read(_PREFIX)
    version = _check_prefix(prefix)
    if size < _PREFIX + _CHECKSUM:
        raise _damaged("it ends too early")
    length = int.from_bytes(prefix[12:16], "little")
    room = size - _PREFIX - _CHECKSUM - length
    if room < 0 or length > _MAX_HEADER:
        raise _damaged(f"its header is said to take {length} bytes")
    content = _read_checked(stream, prefix, size, _PREFIX + length if only_header else size)
    header = _parse(bytes(content[_PREFIX : _PREFIX + length]))
    entries, needed = _check_entries(header.pop("arrays", None), room)
    if needed != room:
        raise _damaged(f"{room - needed} bytes belong to nothing")
    arrays: dict[str, Array] = {}
    at = _PREFIX + length
    for name, (dtype, shape, order) in () if only_header else entries.items():
        arrays[name] = _array_at(content, at, dtype, shape, order)
        at += _padded(arrays[name].nbytes)
    return Container(header, arrays, version)


def _check_prefix(prefix: bytes) -> tuple[int, int]:
    """Return the version of the format that a file is written in, if it can be read."""
    if prefix[: len(MAGIC)] != MAGIC:
        raise ModelFileError(
            "This is not a rankwise model file.",
            "pass a file that model.save or `rankwise fit` wrote; data files are read by rankwise.data.",
        )
    if len(prefix) < _PREFIX:
        raise _damaged("it ends too early")
    major, minor = (int.from_bytes(prefix[at : at + 2], "little") for at in (8, 10))
    if major != FORMAT[0]:
        raise ModelFileError(
            f"The model file has format {major}.{minor}, and this version of rankwise reads format {FORMAT[0]}.",
            "upgrade rankwise (pip install --upgrade rankwise)."
            if major > FORMAT[0]
            else "the file is damaged: write it again.",
        )
    return major, minor


def gathered(stream: BinaryIO) -> BinaryIO:
    """Read what comes through a pipe into memory: no more than its header says, and no more than there is room for."""
    content = io.BytesIO()

    def fetch(n_bytes: int) -> bool:
        while n_bytes and (chunk := stream.read(min(n_bytes, _CHUNK))):
            content.write(chunk)
            n_bytes -= len(chunk)
        return n_bytes == 0

    is_whole = fetch(_PREFIX)
    prefix = content.getvalue()
    _check_prefix(prefix)
    length = int.from_bytes(prefix[12:16], "little")
    if length > _MAX_HEADER:
        raise _damaged(f"its header is said to take {length} bytes")
    if is_whole and fetch(length):
        needed = _check_entries(_parse(content.getvalue()[_PREFIX:]).get("arrays"), 2**62)[1]
        if not fits(2 * needed):
            raise MemoryLimitError(
                f"The model takes {needed / 1e9:,.1f} GB, and comes through a pipe, which takes as much again.",
                "save it to a file first, or use a machine with more memory.",
            )
        fetch(needed + _CHECKSUM + 1)  # one byte more would be one too many
    content.seek(0)
    return content


def _read_checked(stream: BinaryIO, prefix: bytes, size: int, n_kept: int) -> memoryview:
    """Return the first `n_kept` of the bytes whose beginning was read already, once all agree with their checksum."""
    content = np.empty(n_kept, dtype=np.uint8).data
    content[: len(prefix)] = prefix
    checksum = hashlib.sha256(prefix)
    at, end = len(prefix), size - _CHECKSUM
    while at < end:
        chunk = stream.read(min(end - at, _CHUNK))
        if not chunk:
            raise _damaged("it ends too early")
        checksum.update(chunk)
        if at < n_kept:
            content[at : at + len(chunk)] = chunk[: n_kept - at]
        at += len(chunk)
    if stream.read(_CHECKSUM) != checksum.digest():
        raise _damaged("its checksum does not match its contents")
    return content


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is no finite number")
    return number


def _without_duplicates(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice")
    return found


_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_without_duplicates
)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = _DECODER.decode(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise _damaged(f"its header cannot be read ({error})") from error
    if not isinstance(header, dict):
        raise _damaged("its header is no JSON object")
    return header


def _check_entries(entries: object, room: int) -> tuple[dict[str, _Entry], int]:
    """Return what is said of each array, and how much all take, after comparing that with the room there is."""
    found: dict[str, _Entry] = {}
    needed = 0
    if not isinstance(entries, list):
        raise _damaged("its header lists no arrays")
    for entry in entries:
        if not isinstance(entry, dict):
            raise _damaged("its header lists something that is no array")
        name, kind, shape, order = (entry.get(key) for key in ("name", "dtype", "shape", "order"))
        if not isinstance(name, str) or name in found or order not in ("C", "F"):
            raise _damaged(f"its header describes array {name!r} wrongly")
        if not isinstance(kind, str) or not _TYPES.fullmatch(kind):
            raise _damaged(f"array {name!r} has type {kind!r}, which no model file holds")
        if (
            not isinstance(shape, list)
            or len(shape) > _MAX_AXES
            or not all(type(axis) is int and axis >= 0 for axis in shape)
            or math.prod(max(axis, 1) for axis in shape) >= 2**60 // (dtype := np.dtype(kind)).itemsize
        ):
            raise _damaged(f"array {name!r} has shape {shape!r}")
        needed += _padded(math.prod(shape) * dtype.itemsize)
        if needed > room:
            raise _damaged(f"there is no room for array {name!r}")
        found[name] = dtype, tuple(shape), order
    return found, needed


def _array_at(content: memoryview, at: int, dtype: DType, shape: tuple[int, ...], order: str) -> Array:
    """Return an array in the bytes of its file, which it shares with the others."""
    flat: Array = np.frombuffer(content, dtype, math.prod(shape), at)
    if dtype.kind == "U" and flat.size and int(flat.view(np.uint32).max()) > _LAST_CHARACTER:
        raise _damaged("it holds text that is none")
    if dtype.kind == "b" and flat.size and int(flat.view(np.uint8).max()) > 1:
        raise _damaged("it holds truth values that are none")
    array = flat if len(shape) == 1 else flat.reshape(shape, order="F" if order == "F" else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _bytes_of(array: Array) -> bytes | memoryview:
    if array.size == 0:
        return b""
    ordered = array.T if _order(array) == "F" else array
    flat = np.ascontiguousarray(ordered, dtype=_little(array.dtype)).reshape(-1)
    return flat.view(np.uint8).data


def _order(array: Array) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _little(dtype: DType) -> DType:
    return dtype.newbyteorder("<")


def _padded(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT


def _damaged(how: str) -> ModelFileError:
    return ModelFileError(
        f"The model file is damaged: {how}.", "copy it again from where it came, or save the model again."
    )
