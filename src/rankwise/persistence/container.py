"""The bytes of a model file: a prefix, three texts, the arrays that the first lists, and a checksum of all that.

====================  =====================================================================================
8 bytes               ``RANKWISE``
2 + 2 bytes           major and minor version of the format; integers are little-endian
4 + 4 + 4 bytes       the lengths of the three texts, which are JSON in ASCII
index                 a list of the arrays: name, type, shape and order in memory of each
header                the model: all else that `load` needs
description           for people; padded with spaces, so that it ends at a multiple of 64
arrays                one after the other in the order of that list, each padded with zeros to 64 bytes
8 bytes               XXH3 of everything before, in 64 bits
====================  =====================================================================================

The checksum is there for damage; against somebody who means harm, who would write a new one, a reader checks whatever
it makes (`reader.py`). Nothing here knows what a model is. Format 1, which is still read (`container_reader.py`), had
one text, whose arrays were objects, and a SHA-256, which took twenty times as long as unpickling does.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from rankwise import _core
from rankwise.arrays import AnyArray, DType
from rankwise.exceptions import ModelFileError
from rankwise.json_values import Json

__all__ = [
    "ALIGNMENT",
    "FORMAT",
    "MAGIC",
    "MAX_HEADER",
    "PREFIX",
    "TYPES",
    "Container",
    "is_storable",
    "padded",
    "write_container",
]

MAGIC = b"RANKWISE"
FORMAT = (2, 0)  # major: a reader of another one cannot read it; minor: it can, and misses something

PREFIX = struct.Struct("<8sHHIII")
ALIGNMENT = 64
MAX_HEADER = 1 << 26
TYPES = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,6}")
_SHORTEST = 256  # bytes before the checksum, which is defined otherwise for very few


class Container:
    """A header, the arrays it names, and a description.

    Parameters
    ----------
    header : dict
        JSON values only.
    arrays : mapping from str to ndarray
        Booleans, integers, floats and fixed-width strings; their order in memory (C or Fortran) is kept.
    description : dict
        JSON values only, which nothing depends on.
    """

    def __init__(
        self,
        header: dict[str, Any],
        arrays: Mapping[str, AnyArray],
        description: Mapping[str, Json] | None = None,
    ) -> None:
        self.header, self.arrays, self.description = header, arrays, description or {}


def is_storable(dtype: DType) -> bool:
    """Tell whether a file can hold arrays of this type."""
    return TYPES.fullmatch(_little(dtype).str) is not None


def padded(n_bytes: int) -> int:
    """Return how many bytes an array takes in a file."""
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def write_container(stream: BinaryIO, container: Container) -> None:
    """Write to a binary stream, front to back."""
    entries = [
        [name, _little(array.dtype).str, list(array.shape), _order(array)]
        for name, array in container.arrays.items()
    ]
    texts = [_text(entries), _text(container.header), _text(container.description)]
    length = PREFIX.size + sum(map(len, texts))
    texts[-1] += b" " * (max(padded(length), _SHORTEST) - length)
    if (length := sum(map(len, texts))) > MAX_HEADER:
        raise ModelFileError(
            f"The header of the model file would take {length / 2**20:.0f} MiB, more than "
            f"{MAX_HEADER / 2**20:.0f} MiB.",
            "shorten the feature names, or pass parameters as arrays instead of lists.",
        )
    checksum = _core.Xxh3()

    def write(data: bytes | memoryview) -> None:
        checksum.update(np.frombuffer(data, dtype=np.uint8))
        stream.write(data)

    write(b"".join([PREFIX.pack(MAGIC, *FORMAT, *map(len, texts)), *texts]))
    for array in container.arrays.values():
        if array.size:
            write(_bytes_of(array))
            write(bytes(-array.nbytes % ALIGNMENT))
    stream.write(checksum.digest.to_bytes(8, "little"))


def _text(values: Json) -> bytes:
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode("ascii")


def _bytes_of(array: AnyArray) -> memoryview:
    ordered = array.T if _order(array) == "F" else array
    flat = np.ascontiguousarray(ordered, dtype=_little(array.dtype)).reshape(-1)
    return flat.view(np.uint8).data


def _order(array: AnyArray) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _little(dtype: DType) -> DType:
    return dtype.newbyteorder("<")
