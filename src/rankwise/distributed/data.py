"""Rows on a cluster with their labels and query ids: from Dask collections, or from files that the workers read."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import uuid4

import dask
import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, DType, Floats, Labels
from rankwise.data.queries import Queries
from rankwise.data.store import META, Store, open_store, reopen_store
from rankwise.data.svmlight import load_svmlight
from rankwise.data.tables import TableReader, is_table, load_table, open_tables
from rankwise.data.validation import check_count, check_number, check_qid
from rankwise.design.protocol import Design
from rankwise.distributed.blocks import LabelledRows, Source, Survey, blocks_of, look_at
from rankwise.distributed.cluster import Cluster, computed, current_client
from rankwise.distributed.design import DaskDesign
from rankwise.distributed.shares import cut
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.threads import default_threads

TIMEOUT = 300.0
_MOST_VALUES = 1 << 30  # of one share: row pointers have 32 bits
# The first bytes of compressed files, which cannot be read from the middle.
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class ClusterRows:
    """X on a cluster: `fit` takes it in place of a matrix.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
    columns : list of str or None
    """

    source: Source
    survey: Survey
    client: Any
    timeout: float = TIMEOUT
    n_threads: int | None = None
    queries: Queries | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.survey.shape

    @property
    def dtype(self) -> DType:
        """Of the values."""
        return self.survey.dtype

    @property
    def columns(self) -> list[str] | None:
        """The names of the columns, if they have names."""
        return self.source.names

    def grouped(self, qid: AnyArray | None) -> ClusterRows:
        """Return the same rows, to be held in whole queries."""
        return replace(self, queries=None if qid is None else check_qid(qid, self.shape[0]))

    def as_design(self, n_threads: int | None) -> Design:
        """Load the rows into workers."""
        n_shares = max(len(self.client.nthreads()), -(-self.survey.nnz // _MOST_VALUES), 1)
        shares = cut(self.survey.work, self.queries, n_shares)
        n_threads, timeout = self.n_threads or n_threads, self.timeout
        cluster = Cluster(self.client, self.source, self.survey, shares, timeout, n_threads)
        return DaskDesign(cluster, default_threads())


@dataclass(frozen=True)
class ClusterData:
    """Rows on a cluster, with labels and query ids at the client.

    Attributes
    ----------
    X : ClusterRows
    y : (rows,) or (rows, outputs) float64, or None
    qid : (rows,) array, or None
    """

    X: ClusterRows
    y: Floats | None
    qid: AnyArray | None


def distribute(
    X: object,
    y: Labels | None = None,
    qid: Labels | None = None,
    *,
    client: Any = None,
    timeout: float = TIMEOUT,
    n_threads: int | None = None,
) -> ClusterData:
    """Prepare Dask data for `fit`, with options; `fit` does this with the defaults itself.

    Parameters
    ----------
    X : Dask array or DataFrame of shape (rows, features)
        Blocks are arrays or CSR matrices; a DataFrame holds the features alone. It is computed twice, so it should
        come from files, or be persisted if it fits beside the rows themselves.
    y, qid : Dask array or series, or array-like, of as many rows
    client : distributed.Client, optional
        By default the current one. With ``direct_to_workers=True`` vectors go straight to the workers, otherwise the
        scheduler carries them.
    timeout : float, default=300
        Seconds without an answer of a worker, or without a loaded block, after which an error names the worker.
    n_threads : int, optional
        Threads of a product on each worker; by default `n_threads` of the estimator, else the threads of the worker.

    Returns
    -------
    ClusterData
        With ``X``, ``y`` and ``qid``.
    """
    client = current_client() if client is None else client
    return _surveyed(blocks_of(X), client, timeout, n_threads, y, qid)


def _surveyed(
    source: Source,
    client: Any,
    timeout: float,
    n_threads: int | None,
    y: Labels | None = None,
    qid: Labels | None = None,
) -> ClusterData:
    """Look at every block of a source."""
    check_number("timeout", timeout, minimum=1.0, remedy="use seconds, such as 300")
    check_count("n_threads", n_threads)
    token = uuid4().hex[:8]
    looks = [
        dask.delayed(look_at, pure=False)(block, dask_key_name=f"rankwise-look-{token}-block{at}")
        for at, block in enumerate(source.blocks)
    ]
    facts = computed(client, looks, timeout)
    if not any(fact.shape[0] for fact in facts):
        raise InvalidInputError("X has no rows.", "check the source of its blocks.")
    survey = Survey.of(facts, n_columns=source.n_columns, one_based=source.one_based)
    if survey.shape[1] == 0:
        raise InvalidInputError("X has no columns.", "pass the features as its columns.")
    labels = [fact.labels for fact in facts if fact.labels is not None]
    if labels:
        y = np.concatenate([own for own, _ in labels])
        ids = [own for _, own in labels if own is not None]
        qid = np.concatenate(ids) if len(ids) == len(labels) else None
    rows = ClusterRows(source, survey, client, float(timeout), n_threads)
    return ClusterData(rows, *(local_values(given, client, timeout) for given in (y, qid)))


def local_values(values: Labels | None, client: Any, timeout: float) -> AnyArray | None:
    """Return a Dask array or series as an array at the client, everything else unchanged."""
    if not dask.is_dask_collection(values):
        return cast("AnyArray | None", values)
    return np.asarray(computed(client, [values], timeout)[0])


# --- files that the workers read ---


def _text(path: str, dtype: str, first: int = 0, last: int | None = None) -> LabelledRows:
    """Read the bytes [first, last) of a text file, which are whole lines; all lines of a compressed one."""
    lines: str | io.BytesIO = path
    if last is not None:
        with Path(path).open("rb") as file:
            file.seek(first)
            lines = io.BytesIO(file.read(last - first))
    # Columns keep their numbers: only all parts together show whether the first is 0 or 1.
    return LabelledRows(*load_svmlight(lines, zero_based=True, dtype=dtype, n_threads=1))


def _table(path: str, **options: Any) -> LabelledRows:
    """Read a file of Parquet or Arrow."""
    table = load_table(path, **options)
    if table.y is None:
        raise InvalidInputError(f"{path} has no labels.", "name their column with label=.")
    return LabelledRows(table.X, table.y, table.qid)


def _stored(path: str, identity: str, rows: slice) -> LabelledRows:
    """Read some rows of a store."""
    store = reopen_store(path, identity)
    return LabelledRows(store.X[rows], store.y[rows], None if store.qid is None else store.qid[rows])


def read(
    source: StrPath | Store | Sequence[StrPath | Store],
    *,
    client: Any = None,
    label: str = "label",
    qid: str | None = "qid",
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    dtype: npt.DTypeLike = np.float64,
    block_bytes: int = 1 << 26,
    timeout: float = TIMEOUT,
    n_threads: int | None = None,
) -> ClusterData:
    """Read files on the workers of a cluster.

    Every worker must see the files under the same names. They are read twice, once to find their sizes and once to load
    them, and again when a worker is lost.

    Parameters
    ----------
    source : path, list of paths, or Store
        Text in the format of svmlight or LETOR, plain (cut into pieces) or compressed by gzip, bz2, xz or zstd;
        tables of Parquet or Arrow; or a folder that `rankwise.data.save_store` wrote.
    client : distributed.Client, optional
        By default the current one.
    label, qid, features
        The columns of tables; see `rankwise.data.load_table`.
    n_features : int, optional
        The number of columns of text; by default the largest column number.
    dtype : {np.float64, np.float32}, default=np.float64
        Of text and tables; a store keeps its own.
    block_bytes : int, default=2^26
        The approximate size of a piece of a text file or of a store.
    timeout, n_threads
        As in `distribute`.

    Returns
    -------
    ClusterData
        With ``X``, which `fit` takes, and ``y`` and ``qid`` at the client.
    """
    check_count("block_bytes", block_bytes, optional=False)
    client = current_client() if client is None else client
    given: Sequence[StrPath | Store] = (
        [source] if isinstance(source, (str, os.PathLike, Store)) else list(source)
    )
    if not given:
        raise InvalidInputError("There are no files to read.", "pass at least one path.")
    kind, names, width, one_based = np.dtype(dtype).name, None, n_features, False
    stores = [own for own in given if isinstance(own, Store) or Path(own, META).is_file()]
    if stores and len(given) > 1:
        raise InvalidInputError(
            f"{len(given)} sources, {len(stores)} of them stores.", "read one store at a time."
        )
    paths = [os.path.abspath(path) for path in given if not isinstance(path, Store)]  # noqa: PTH100 - workers are in other folders
    parts: list[Callable[[], LabelledRows]]
    if stores:
        store = stores[0] if isinstance(stores[0], Store) else open_store(stores[0])
        (n_rows, width), path = store.X.shape, os.path.abspath(store.path)  # noqa: PTH100
        step = max(1, int(block_bytes / max(store.n_bytes / max(n_rows, 1), 1)))
        pieces = [slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]
        parts = [partial(_stored, path, store.identity, rows) for rows in pieces]
    elif all(is_table(path) for path in paths):
        # All files must have the columns of the first.
        first = TableReader(open_tables(paths[0], [qid]), label, qid, features)
        names, options = first.names, {"label": label, "qid": qid, "dtype": kind}
        parts = [partial(_table, path, features=first.features, **options) for path in paths]
    else:
        one_based = True
        pieces_of = [(path, piece) for path in paths for piece in _pieces(path, block_bytes)]
        parts = [partial(_text, path, kind, *piece) for path, piece in pieces_of]
    token = uuid4().hex[:8]
    blocks = [
        dask.delayed(part, pure=False)(dask_key_name=f"rankwise-read-{token}-part{at}")
        for at, part in enumerate(parts)
    ]
    return _surveyed(Source(blocks, names, width, one_based), client, timeout, n_threads)


def _pieces(path: str, block_bytes: int) -> list[tuple[int, int | None]]:
    """Return the bytes of each piece of a text file."""
    try:
        with Path(path).open("rb") as file:
            is_compressed = file.read(6).startswith(_COMPRESSED)
            size = file.seek(0, os.SEEK_END)
            cuts = sorted({0, size, *(_next_line(file, at) for at in range(block_bytes, size, block_bytes))})
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read: {error.strerror}.", "check its name; the client reads it, too."
        ) from error
    return [(0, None)] if is_compressed or len(cuts) <= 2 else list(pairwise(cuts))


def _next_line(file: BinaryIO, at: int) -> int:
    """Return the position of the first line that begins at or after a byte."""
    if at == 0:
        return 0
    file.seek(at - 1)
    while chunk := file.read(1 << 16):
        found = chunk.find(b"\n")
        if found >= 0:
            return int(file.tell() - len(chunk) + found + 1)
    return int(file.tell())
