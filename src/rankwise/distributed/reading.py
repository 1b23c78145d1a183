"""Files and stores that workers read themselves: the client sees names, labels and query ids only."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import dask
import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Floats, InMemory
from rankwise.data.store.format import HEADER
from rankwise.data.store.reading import Store, open_store
from rankwise.data.tables.arrow_files import is_table
from rankwise.data.tables.reading import load_table
from rankwise.data.text.svmlight import load_svmlight
from rankwise.data.validation import check_count
from rankwise.distributed.cluster import current_client
from rankwise.distributed.dask_types import Client
from rankwise.distributed.data import ClusterData, options_of, surveyed
from rankwise.distributed.source import Source
from rankwise.exceptions import InvalidInputError

__all__ = ["read"]

StrPath = str | os.PathLike[str]

# The first bytes of compressed files, which cannot be read from the middle.
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True)
class ReadRows:
    """Rows that were read with their labels."""

    X: InMemory
    rows_and_labels: tuple[Floats, AnyArray | None]


@dataclass(frozen=True)
class _Text:
    """Lines of a text file that begin in [first, last); all of a compressed one."""

    path: str
    first: int = 0
    last: int | None = None
    dtype: str = "float64"

    def __call__(self) -> ReadRows:
        # Columns keep their numbers here: which is the first, all parts together tell.
        X, y, qid = load_svmlight(self._source(), zero_based=True, dtype=self.dtype, n_threads=1)
        return ReadRows(X, (y, qid))

    def _source(self) -> str | io.BytesIO:
        if self.last is None:
            return self.path
        with Path(self.path).open("rb") as file:
            first = _next_line(file, self.first)
            last = _next_line(file, self.last)
            file.seek(first)
            return io.BytesIO(file.read(last - first))


@dataclass(frozen=True)
class _Table:
    """A file of Parquet or Arrow."""

    path: str
    label: str
    qid: str | None
    features: Sequence[str] | None
    dtype: str

    def __call__(self) -> ReadRows:
        table = load_table(
            self.path, label=self.label, qid=self.qid, features=self.features, dtype=self.dtype
        )
        if table.y is None:
            raise InvalidInputError(f"{self.path} has no labels.", "name their column by label=.")
        return ReadRows(table.X, (table.y, table.qid))


@dataclass(frozen=True)
class _Stored:
    """Some rows of a store."""

    path: str
    checksum: str
    first: int
    last: int

    def __call__(self) -> ReadRows:
        store = open_store(self.path, verify=False)
        if store.header.checksum != self.checksum:
            raise InvalidInputError(f"Another store took the place of {self.path}.", "read it again.")
        rows = slice(self.first, self.last)
        qid = store.qid
        return ReadRows(store.X[rows], (store.y[rows], None if qid is None else qid[rows]))


def read(
    source: StrPath | Store | Sequence[StrPath | Store],
    *,
    client: Client | None = None,
    label: str = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    dtype: npt.DTypeLike = np.float64,
    block_bytes: int = 1 << 26,
    scattered: str = "shuffle",
    timeout: float = 300.0,
    n_threads: int | None = None,
    direct: bool = True,
) -> ClusterData:
    """Read files on the workers of a cluster.

    Every worker must see the files under the same names. They are read twice: once to look at them, and once to load
    them where they belong; and again where a worker is lost.

    Parameters
    ----------
    source : path, list of paths, or Store
        Text in the format of svmlight or LETOR, plain (and cut into pieces) or compressed by gzip, bz2, xz or zstd;
        tables of Parquet or Arrow; or a folder that `rankwise.data.save_store` wrote.
    client : distributed.Client, optional
        By default the current one.
    label, qid, features
        The columns of tables; see `rankwise.data.load_table`.
    n_features : int, optional
        The number of columns of text; by default as many as there are.
    dtype : {np.float64, np.float32}, default=np.float64
        Of text and tables; a store keeps its own.
    block_bytes : int, default=2^26
        About what a piece of a text file or of a store takes.
    scattered, timeout, n_threads, direct
        As in `distribute`.

    Returns
    -------
    ClusterData
        With ``X``, which `fit` takes, and ``y`` and ``qid`` at the client.
    """
    check_count("block_bytes", block_bytes, optional=False)
    options = options_of(scattered, timeout, n_threads, direct)
    client = current_client() if client is None else client
    given: Sequence[StrPath | Store] = (
        [source] if isinstance(source, (str, os.PathLike, Store)) else list(source)
    )
    if not given:
        raise InvalidInputError("There are no files to read.", "pass at least one path.")
    kind = np.dtype(dtype).name
    names: list[str] | None = None
    width, one_based = n_features, False
    stores = [own for own in given if _is_store(own)]
    if len(stores) not in {0, 1} or (stores and len(given) > 1):
        raise InvalidInputError(
            f"{len(given)} sources, of which {len(stores)} are stores.", "read one store at a time."
        )
    paths = [os.path.abspath(path) for path in given if not isinstance(path, Store)]  # noqa: PTH100 - workers are in other folders
    parts: list[Callable[[], ReadRows]]
    if stores:
        store = stores[0] if isinstance(stores[0], Store) else open_store(stores[0], verify=False)
        parts = [*_parts_of_store(store, block_bytes)]
        width = store.header.columns
    elif all(is_table(path) for path in paths):
        wanted, names = features, None if features is None else list(features)
        if features is None:
            # All files must have the columns of the first.
            found = load_table(paths[0], label=label, qid=qid, dtype=kind)
            wanted = names = found.feature_names if isinstance(found.X, np.ndarray) else None
        parts = [_Table(path, label, qid, wanted, kind) for path in paths]
    else:
        one_based = True
        parts = [part for path in paths for part in _parts_of_text(path, block_bytes, kind)]
    token = uuid4().hex[:8]
    blocks = [
        dask.delayed(_read, pure=False)(part, dask_key_name=f"rankwise-read-{token}-part{at}")
        for at, part in enumerate(parts)
    ]
    return surveyed(Source(blocks, names, width, one_based), client, options)


def _read(part: Callable[[], ReadRows]) -> ReadRows:
    return part()


def _is_store(path: StrPath | Store) -> bool:
    return isinstance(path, Store) or Path(path, HEADER).is_file()


def _parts_of_store(store: Store, block_bytes: int) -> list[_Stored]:
    row_bytes = store.n_bytes / max(store.header.rows, 1)
    step = max(1, int(block_bytes / max(row_bytes, 1)))
    path = os.path.abspath(store.path)  # noqa: PTH100 - the same
    n_rows = store.header.rows
    return [
        _Stored(path, store.header.checksum, first, min(first + step, n_rows))
        for first in range(0, n_rows, step)
    ]


def _parts_of_text(path: str, block_bytes: int, dtype: str) -> list[_Text]:
    try:
        with Path(path).open("rb") as file:
            is_compressed = file.read(6).startswith(_COMPRESSED)
            size = file.seek(0, os.SEEK_END)
            cuts = sorted({0, size, *(_next_line(file, at) for at in range(block_bytes, size, block_bytes))})
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read: {error.strerror}.", "check its name; the client looks at it once."
        ) from error
    if is_compressed or len(cuts) <= 2:
        return [_Text(path, dtype=dtype)]
    return [_Text(path, first, last, dtype) for first, last in pairwise(cuts)]


def _next_line(file: BinaryIO, at: int) -> int:
    """Return where the first line begins that does so at or after a byte."""
    if at == 0:
        return 0
    file.seek(at - 1)
    while chunk := file.read(1 << 16):
        found = chunk.find(b"\n")
        if found >= 0:
            return int(file.tell() - len(chunk) + found + 1)
    return int(file.tell())
