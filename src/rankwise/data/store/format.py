"""What a store on disk looks like: a folder of plain little-endian arrays and a JSON header.

====================  ===============================================================================
values.bin            (entries,) float32 or float64
columns.bin           (entries,) int32, from 0, ascending inside a row
row_start.bin         (rows + 1,) int64
labels.bin            (rows,) float64
query_start.bin       (queries + 1,) int64, the first row of each query
query_text.bin        the query ids as UTF-8, one behind the other
query_text_end.bin    (queries,) int64
header.json           shape, types, and for each file its size and the XXH64 of each of its segments
====================  ===============================================================================

A store without query ids has the same files, with no query. The version is raised when an older library
could not read what a newer one wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from rankwise import _core
from rankwise.exceptions import Change, InvalidInputError

__all__ = ["FILES", "HEADER", "ITEM_FILES", "VERSION", "Header", "Segment", "read_header"]

HEADER = "header.json"
FORMAT = "rankwise store"
VERSION = 1
FILES = (
    "values.bin",
    "columns.bin",
    "row_start.bin",
    "labels.bin",
    "query_start.bin",
    "query_text.bin",
    "query_text_end.bin",
)
# Of stores whose rows have ids; readers that do not know them see a store without.
ITEM_FILES = ("item_text.bin", "item_text_end.bin")
Segment = tuple[int, str]  # bytes, checksum


@dataclass(frozen=True)
class Header:
    """The header of a store.

    Attributes
    ----------
    rows, columns, entries, queries : int
    value_type : {"float32", "float64"}
    qid_kind : {"i", "f", "U"} or None
        Whether ids are integers, real numbers or text; None without ids.
    is_finite : bool
        Whether no value is NaN.
    files : dict of lists of (bytes, checksum)
    first_column : {0, 1}
        What the first column is called in text; 1 in headers that do not say it.
    """

    rows: int
    columns: int
    entries: int
    queries: int
    value_type: str
    qid_kind: str | None
    is_finite: bool
    files: dict[str, list[Segment]]
    first_column: int = 1

    def to_json(self) -> str:
        """Return the text of the header, with a checksum of itself."""
        return json.dumps({**self._content(), "checksum": self.checksum}, indent=1)

    @property
    def checksum(self) -> str:
        """The checksum of the header, and so of all that the store holds."""
        return _own_checksum(self._content())

    def _content(self) -> dict[str, object]:
        return {"format": FORMAT, "version": VERSION, **vars(self)}

    @property
    def has_items(self) -> bool:
        """Whether rows have ids."""
        return all(name in self.files for name in ITEM_FILES)

    @property
    def names(self) -> tuple[str, ...]:
        """The files of the store."""
        return FILES + (ITEM_FILES if self.has_items else ())

    def size_of(self, name: str) -> int:
        """Return how many bytes a file should have."""
        return sum(size for size, _ in self.files[name])


def _own_checksum(content: dict[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    return f"{_core.checksum(np.frombuffer(text, dtype=np.uint8)):016x}"


def read_header(text: bytes, path: str) -> Header:
    """Return the header that a text holds."""
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise InvalidInputError(
                f"{path} is not a store.", "pass the folder that save_store wrote.", Change("store")
            )
        version, checksum = int(content["version"]), content.pop("checksum")
        own_checksum = _own_checksum(content)
    except (ValueError, OverflowError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise damaged(path, f"{HEADER} cannot be read") from error
    if version > VERSION:
        raise InvalidInputError(
            f"{path} was written by a newer rankwise (format {version}; this one reads up to {VERSION}).",
            "upgrade rankwise, or write the store again with this one.",
        )
    if checksum != own_checksum:
        raise damaged(path, f"the checksum of {HEADER} does not fit")
    try:
        header = Header(
            **{
                name: content[name]
                for name in Header.__dataclass_fields__
                if name in content or name != "first_column"
            }
        )
        _check(header)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path, f"{HEADER} makes no sense ({error})") from error
    return header


def _check(header: Header) -> None:
    for name in ("rows", "columns", "entries", "queries"):
        number = getattr(header, name)
        if type(number) is not int or not 0 <= number < 2**62:
            raise ValueError(name)
    if header.columns >= 2**31 or header.value_type not in {"float32", "float64"}:
        raise ValueError("columns or value_type")
    if header.first_column not in {0, 1}:
        raise ValueError("first_column")
    if header.qid_kind not in {"i", "f", "U", None} or (header.qid_kind is None) != (header.queries == 0):
        raise ValueError("qid_kind")
    width = np.dtype(header.value_type).itemsize
    wanted = {
        "values.bin": width * header.entries,
        "columns.bin": 4 * header.entries,
        "row_start.bin": 8 * (header.rows + 1),
        "labels.bin": 8 * header.rows,
        "query_start.bin": 8 * (header.queries + 1),
        "query_text_end.bin": 8 * header.queries,
        "query_text.bin": header.size_of("query_text.bin"),
    }
    if header.has_items:
        wanted["item_text.bin"] = header.size_of("item_text.bin")
        wanted["item_text_end.bin"] = 8 * header.rows
    for name, size in wanted.items():
        unit = 4 if name == "columns.bin" else 1  # a segment's numbers are looked at, so it has whole ones
        if header.size_of(name) != size or any(
            type(n) is not int or n < 0 or n % unit or not isinstance(c, str) for n, c in header.files[name]
        ):
            raise ValueError(name)


def damaged(path: str, what: str) -> InvalidInputError:
    """Say that a store is damaged."""
    return InvalidInputError(
        f"The store {path} is damaged: {what}.", "copy it again from where it is whole, or write it again."
    )
