"""Encoding of query ids as numbers of queries, and their conversion from text and to text.

Ids may be anything hashable: integers, negative ones, floats, strings, tuples; rows of a query need not
be adjacent. All other code works with a `Queries`: small integer codes and a permutation that brings
the rows of a query together. The data itself is never permuted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray
from rankwise.exceptions import InvalidInputError

# Numbers as Python writes them; others (01, +1, 1e3, -0) would come back as another text.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_REAL = re.compile(r"-?[0-9]+\.[0-9]+(e[+-][0-9]+)?|-?[0-9]e[+-][0-9]+")
_LARGEST = 2**63 - 1
_NOT_IN_AN_ID = re.compile(r"[ \t\n\r\v\f#\x00]")
_KINDS = {"i": "integers", "f": "real numbers", "U": "text"}


@dataclass(frozen=True)
class Queries:
    """Rows grouped by query; everything about them is known when they are encoded.

    Attributes
    ----------
    codes : (rows,) int64
        The query of each row, as a position in `ids`.
    ids : (queries,) array
        The caller's ids; sorted where they can be ordered, else in order of first appearance.
    n_rows : int
    sizes : (queries,) int64
        The number of rows of each query.
    offsets : (queries + 1,) int64
        Where each query starts in grouped order, and the number of rows at the end.
    is_grouped : bool
        Whether the rows are already in grouped order.
    order : (rows,) int64
        The rows in grouped order: those of the first query, then those of the second, ...
    """

    codes: npt.NDArray[np.int64]
    ids: AnyArray
    n_rows: int = field(init=False)
    sizes: npt.NDArray[np.int64] = field(init=False)
    offsets: npt.NDArray[np.int64] = field(init=False)
    is_grouped: bool = field(init=False)
    order: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        codes, n_rows = self.codes, self.codes.size
        sizes = np.bincount(codes, minlength=len(self)).astype(np.int64, copy=False)
        is_grouped = bool(np.all(codes[1:] >= codes[:-1]))
        self.__dict__.update(
            n_rows=n_rows,
            sizes=sizes,
            offsets=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64, copy=False),
            is_grouped=is_grouped,
            order=np.arange(n_rows, dtype=np.int64) if is_grouped else np.argsort(codes, kind="stable"),
        )

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """Return the caller's id of each row."""
        return np.asarray(self.ids[self.codes], dtype=dtype)

    def group(self, values: AnyArray) -> AnyArray:
        """Return one value per row in grouped order; the same array if the rows are already in this order."""
        return values if self.is_grouped else values[self.order]

    def subset(self, rows: npt.NDArray[np.int64]) -> Queries:
        """Return the queries of some rows, in the order of those rows."""
        codes = self.codes[rows]
        is_there = np.bincount(codes, minlength=len(self)) > 0
        return Queries((np.cumsum(is_there) - 1)[codes], self.ids[is_there])


def one_query(n_rows: int) -> Queries:
    """All rows in one global ranking."""
    return Queries(np.zeros(n_rows, dtype=np.int64), np.zeros(1, dtype=np.int64))


def encode_queries(qid: AnyArray) -> Queries:
    """Encode a one-dimensional array of ids that has no missing entries."""
    if qid.dtype.kind in "iuf" and qid.size and bool(np.all(qid[1:] >= qid[:-1])):
        # Files come sorted by query: then no sort is needed.
        starts = np.ones(qid.size, dtype=np.bool_)
        np.not_equal(qid[1:], qid[:-1], out=starts[1:])
        return Queries(np.cumsum(starts, dtype=np.int64) - 1, qid[starts])
    if qid.dtype != object:
        ids, codes = np.unique(qid, return_inverse=True)
        return Queries(codes.astype(np.int64, copy=False), ids)
    # Objects of mixed types cannot always be sorted: hash them, then sort if they allow it.
    position: dict[Any, int] = {}
    codes = np.fromiter((position.setdefault(key, len(position)) for key in qid), np.int64, count=qid.size)
    ids = np.empty(len(position), dtype=object)
    ids[:] = list(position)
    try:
        by_value = sorted(range(len(position)), key=ids.__getitem__)
    except TypeError:
        return Queries(codes, ids)
    rank = np.empty(len(position), dtype=np.int64)
    rank[by_value] = np.arange(len(position))
    return Queries(rank[codes], ids[by_value])


def ranks_inside(scores: AnyArray, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ranks inside queries: 1 is best, tied rows share the smallest."""
    order = np.lexsort((-scores, codes))
    new_query = np.concatenate(([True], codes[order][1:] != codes[order][:-1]))
    new_score = new_query | np.concatenate(([True], scores[order][1:] != scores[order][:-1]))
    position = np.arange(order.size)
    start = np.maximum.accumulate(np.where(new_query, position, 0))
    first = np.maximum.accumulate(np.where(new_score, position, 0))
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = first - start + 1
    return ranks


def decode_ids(texts: Sequence[str], kind: str | None = None) -> AnyArray:
    """Return ids as int64 or float64 if writing those again gives every text as it is, else as text.

    So different texts are different ids, and `encode_ids` gives them back: of ``01`` and ``1``, neither is a number.

    Parameters
    ----------
    texts : sequence of str
    kind : {"i", "f", "U"}, optional
        The type of earlier ids, which these must have too.
    """
    if kind != "U":
        if kind != "f" and all(map(_is_integer, texts)):
            return np.array([int(text) for text in texts], dtype=np.int64)
        if kind != "i" and all(map(_is_real, texts)):
            return np.array([float(text) for text in texts], dtype=np.float64)
        if kind is not None:
            odd = next(text for text in texts if not (_is_integer if kind == "i" else _is_real)(text))
            raise InvalidInputError(
                f"Query id {odd!r} is of another kind than the ids before it, which are {_KINDS[kind]}.",
                "read the whole file at once, or write ids of one kind only.",
            )
    return np.array(texts, dtype=np.str_)


def _is_integer(text: str) -> bool:
    return bool(_INTEGER.fullmatch(text)) and (len(text) < 19 or -_LARGEST - 1 <= int(text) <= _LARGEST)


def _is_real(text: str) -> bool:
    # A zero has two signs that are equal as numbers.
    return bool(_REAL.fullmatch(text)) and text != "-0.0" and str(float(text)) == text


def encode_ids(ids: AnyArray) -> list[bytes]:
    """Return ids as they are written behind ``qid:``."""
    if ids.dtype.kind in "mM":
        ids = ids.astype(np.str_)  # as numbers they would count nanoseconds
    if ids.dtype.kind == "f":
        ids = ids + 0.0  # -0.0 and 0.0 are one id
    texts = [str(value) for value in ids.tolist()]
    for text in texts:
        if not text or _NOT_IN_AN_ID.search(text):
            raise InvalidInputError(
                f"Query id {text!r} cannot be written: it is empty, or has spaces or a # in it.",
                "pass ids without them, for example np.unique(qid, return_inverse=True)[1].",
            )
    return [text.encode("utf-8", "surrogateescape") for text in texts]
