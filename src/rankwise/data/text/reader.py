"""svmlight and LETOR text on its way to arrays.

Blocks of whole lines are parsed by the compiled core on several threads; see `cpp/svmlight.hpp`. Values that are
written down, zeros among them, are stored; numbers are correctly rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise import _core
from rankwise.data.arguments import check_dtype
from rankwise.data.text.comments import comments_in
from rankwise.data.text.query_ids import QueryRuns
from rankwise.data.text.sources import (
    LONGEST_LINE,
    Source,
    list_sources,
    open_source,
    read_ahead,
    whole_lines,
)
from rankwise.data.validation import check_choice, check_count
from rankwise.exceptions import Change, InvalidInputError, MemoryLimitError
from rankwise.runtime.memory import available_memory
from rankwise.runtime.threads import default_threads

__all__ = ["Missing", "TextBlock", "TextReader", "ZeroBased", "check_last_column", "no_rows", "text_blocks"]

ZeroBased = bool | Literal["auto"]
Missing = Literal["error", "nan", "zero"]
MISSING: tuple[Missing, ...] = ("error", "nan", "zero")
LAST_COLUMN = 2**31 - 2  # columns are numbered by 32-bit integers
# Text that is parsed at a time: what a thread makes of its part should still be in cache when it is put in place.
PARSED_AT_ONCE = 1 << 22
# A column number is taken for a slip where it is beyond so many, and so many times the one before it, in data of at
# least so many entries.
_MANY_COLUMNS, _FAR, _MANY_ENTRIES = 1_000_000, 1000, 1000

# What is wrong, what to do about it and what that changes, by the names that the parser gives.
Problem: TypeAlias = tuple[str, str, *tuple[Change, ...]]
PROBLEMS: dict[str, Problem] = {
    "label": (
        "the label is not a number",
        "a line starts with its label: `2 qid:7 1:0.5 3:1 # comment`; a table has a name that ends in .csv or the like",
    ),
    "label_missing": ("the label is missing", "drop rows without a label, or give them one"),
    "qid_empty": ("the query id is empty or has a NUL byte in it", "write an id without spaces after `qid:`"),
    "qid_missing": (
        "this row has no query id, but earlier rows have",
        "write `qid:` after every label, or after none",
    ),
    "qid_unexpected": (
        "this row has a query id, but earlier rows have none",
        "write `qid:` after every label, or after none",
    ),
    "entry": (
        "this is not `column:value`",
        "after the label and an optional `qid:id`, write column:value without spaces; comments start with #",
    ),
    "column_zero": (" from 1, and this is column 0", "pass zero_based=True", Change("zero_based", True)),
    "column_too_large": (
        "the column number is too large",
        "raise n_features, or leave it out to take as many columns as there are",
        Change("n_features"),
    ),
    "value": ("the value is not a number", "write a decimal number such as 0.5, -3 or 1e-4"),
    "value_missing": (
        "the value is missing",
        "pass missing='nan' to read such values as NaN, or missing='zero' to leave them out",
        Change("missing"),
    ),
    "infinite": ("the number is infinite", "replace it by a finite one"),
    "duplicate": ("the column comes twice in this row", "write each column once per row"),
}


class TextBlock:
    """Rows as arrays: what the parser makes of text.

    Attributes
    ----------
    values : (entries,) float32 or float64
    columns : (entries,) int32
    start : (rows + 1,) int64
    labels : (rows,) float64
    runs : QueryRuns or None
        Which rows belong to which query; None where no row has an id.
    """

    def __init__(self, arrays: tuple[Any, ...], *, has_qid: bool) -> None:
        self.values, self.columns, self.start, self.labels, run_start, text, text_end = arrays
        self.runs = QueryRuns(run_start, text, text_end) if has_qid else None

    def matrix(self, n_columns: int) -> sp.csr_matrix:
        """Return the rows as a SciPy matrix; nothing is copied but the row pointers."""
        X = sp.csr_matrix(
            (self.values, self.columns, self.start), shape=(self.labels.size, n_columns), copy=False
        )
        X.has_sorted_indices = X.has_canonical_format = True  # the parser saw to it
        return X


class TextReader:
    """Files of text on their way to arrays; see `load_svmlight` for the parameters."""

    def __init__(
        self,
        paths: object,
        *,
        n_features: int | None = None,
        zero_based: ZeroBased = "auto",
        missing: Missing = "error",
        dtype: npt.DTypeLike = np.float64,
        n_threads: int | None = None,
        longest_line: int = LONGEST_LINE,
    ) -> None:
        check_count("n_features", n_features)
        check_count("longest_line", longest_line, optional=False)
        check_count("n_threads", n_threads)
        self.missing = check_choice("missing", missing, MISSING)
        if not isinstance(zero_based, (bool, np.bool_, str)) or zero_based not in {"auto", True, False}:
            raise InvalidInputError(
                f"zero_based={zero_based!r} is not an option.",
                "use True or False for columns that count from 0 or 1, or 'auto'.",
            )
        kind = check_dtype(dtype)
        self.sources = list_sources(paths)
        self.n_features = n_features
        self.n_threads = n_threads or default_threads()
        self.rows = _core.TextRows32() if kind == np.float32 else _core.TextRows64()
        self.base = 0 if zero_based is True else 1
        self.base_is_sure = zero_based != "auto"
        self.bytes_at_once = PARSED_AT_ONCE * self.n_threads
        self.longest_line = longest_line
        self.n_bytes = 0
        self.counting = "columns were said to count"  # from 1, by whoever says so
        self.looks_for_comments = False
        self.has_comments = False  # as far as was looked
        self.keeps_comments = False
        self.comments: list[str] = []  # of the rows that were not taken yet

    def parse_halves(self) -> None:
        """Parse half as much at a time."""
        self.bytes_at_once = max(1, PARSED_AT_ONCE * self.n_threads // 2)

    def parse(self) -> Iterator[None]:
        """Parse block after block; between them, rows may be taken."""
        for source in self.sources:
            lines_before = self.rows.lines
            with open_source(source) as stream:
                stop = Event()
                blocks = whole_lines(stream, source.name, self.bytes_at_once, self.longest_line, stop)
                # A thread that waits for a pipe could not be interrupted.
                ahead = source.is_regular and self.n_threads > 1
                for buffer, size in read_ahead(blocks, stop) if ahead else blocks:
                    self._demand_memory(source)
                    self._append(buffer, size, source, lines_before)
                    yield

    def _demand_memory(self, source: Source) -> None:
        """Raise while there is still room for the next block: asked for too late, the system ends the process."""
        free = available_memory()
        if free < 4 * self.bytes_at_once:
            raise MemoryLimitError(
                f"{source.name} does not fit in memory: after {self.n_bytes / 1e6:,.0f} MB of it, "
                f"{free / 1e6:,.0f} MB are free.",
                "write it to a store with save_store, and train on that; or read it with iter_svmlight.",
                Change("memory"),
            )

    def take_comments(self, n_rows: int) -> list[str]:
        """Return the comments of the first so many rows, and forget them."""
        taken, self.comments = self.comments[:n_rows], self.comments[n_rows:]
        return taken

    def take(self, n_rows: int | None = None) -> TextBlock:
        """Return the first so many rows, and forget them."""
        self._settle_base()
        return TextBlock(
            self.rows.take(self.rows.rows if n_rows is None else n_rows), has_qid=self.rows.has_qid
        )

    @property
    def n_columns(self) -> int:
        """How many columns there are so far."""
        return self.rows.largest + 1 if self.n_features is None else self.n_features

    def _append(self, buffer: bytearray, size: int, source: Source, lines_before: int) -> None:
        self.n_bytes += size
        if self.looks_for_comments and not self.has_comments:
            # The sign begins a comment wherever it stands.
            self.has_comments = buffer.find(b"#", 0, size) >= 0
        rows_before = self.rows.rows
        lines = self.rows.lines - lines_before
        last = LAST_COLUMN if self.n_features is None else min(self.n_features - 1, LAST_COLUMN)
        error = self.rows.append(
            np.frombuffer(buffer, dtype=np.uint8),
            size,
            self.base,
            self.base_is_sure,
            last + self.base,
            self.missing,
            self.n_threads,
        )
        if error is not None:
            problem, at, length = error
            what, remedy, *changes = PROBLEMS[problem]
            if problem == "column_zero":
                what = self.counting + what
            if problem == "column_too_large" and last == LAST_COLUMN:
                remedy = (
                    f"columns are numbered up to {LAST_COLUMN + self.base:,}: number those that occur from 1, or hash "
                    "their names to fewer"
                )
                changes = []
            raise _located(buffer, at, length, (what, remedy, *changes), source.name, lines)
        if self.keeps_comments:
            has_some = buffer.find(b"#", 0, size) >= 0
            n_rows = self.rows.rows - rows_before
            self.comments += comments_in(buffer, size) if has_some else [""] * n_rows

    def _settle_base(self) -> None:
        """Decide what the first column is called, once rows leave."""
        if self.base_is_sure:
            return
        self.base_is_sure = True
        if self.rows.smallest >= 0:
            return
        self.base = 0
        self.rows.shift_columns(1)
        if self.n_features is not None and self.rows.largest >= self.n_features:
            raise InvalidInputError(
                f"There is a column 0, so columns count from 0, and there is a column {self.rows.largest}, "
                f"which makes more than {self.n_features}.",
                "raise n_features, or leave it out.",
                Change("n_features"),
            )


def text_blocks(
    reader: TextReader, block_bytes: int, *, first_bytes: int | None = None
) -> Iterator[TextBlock]:
    """Yield blocks of about so much text, consecutive rows of a query together.

    The first block decides from what columns count, and may be larger.
    """
    any_rows = False
    taken_at, wanted = 0, first_bytes or block_bytes
    for _ in reader.parse():
        complete = reader.rows.last_run if reader.rows.has_qid else reader.rows.rows
        if reader.n_bytes - taken_at >= wanted and complete > 0:
            taken_at, wanted = reader.n_bytes, block_bytes
            any_rows = True
            yield reader.take(complete)
    if reader.rows.rows > 0:
        yield reader.take()
    elif not any_rows:
        raise no_rows(reader)


def _located(
    buffer: bytearray, at: int, length: int, problem: Problem, name: str, lines_before: int
) -> InvalidInputError:
    what, remedy, *changes = problem
    line = lines_before + buffer.count(b"\n", 0, at) + 1
    start = buffer.rfind(b"\n", 0, at) + 1
    if length == 0:  # the parser names the row: show its beginning
        end = buffer.find(b"\n", at)
        length = min(end - at, 40)
    text = bytes(buffer[at : at + min(length, 60)]).decode("utf-8", "backslashreplace")
    shown = repr(text.rstrip("\r")) + ("..." if length > 60 else "")
    return InvalidInputError(
        f"{name}, line {line}, column {at - start + 1}: {what}: {shown}.", f"{remedy}.", *changes
    )


def check_last_column(reader: TextReader, block: TextBlock) -> None:
    """Raise where one column number of whole data is so far from all others that it must be a slip.

    Every column costs time and memory, whether it occurs or not. Hashed columns are spread evenly, and new rows for a
    model may be few: both pass.
    """
    last = reader.n_columns - 1
    if reader.n_features is not None or last < _MANY_COLUMNS or block.columns.size < _MANY_ENTRIES:
        return
    before = int(block.columns.max(initial=0, where=block.columns < last))
    if before * _FAR < last:
        names = ", ".join(source.name for source in reader.sources)
        raise InvalidInputError(
            f"{names}: there is a column {last + reader.base}, and the one before it that occurs is "
            f"{before + reader.base}.",
            "correct the number; if it is meant, say how many columns there are (n_features, --columns).",
        )


def no_rows(reader: TextReader) -> InvalidInputError:
    """Say that there are no rows."""
    names = ", ".join(source.name for source in reader.sources)
    return InvalidInputError(
        f"{names}: there are no rows.", "pass a file with lines such as `2 qid:7 1:0.5 3:1`."
    )
