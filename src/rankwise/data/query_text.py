"""Query ids as text: runs of rows that carry one id, and ids turned into numbers where all of them are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.exceptions import InvalidInputError

__all__ = ["QueryRuns", "decode_ids", "encode_any_ids", "encode_ids"]

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_MOST_DIGITS = 15  # that a double tells apart
_NOT_IN_AN_ID = re.compile(r"[ \t\n\r\v\f#\x00]")
_KINDS = {"i": "integers", "f": "real numbers", "U": "text"}


@dataclass(frozen=True)
class QueryRuns:
    """Runs of consecutive rows with one id.

    Attributes
    ----------
    start : (runs,) int64
        The first row of each.
    text : bytes
        The ids, one behind the other.
    text_end : (runs,) int64
    """

    start: npt.NDArray[np.int64]
    text: bytes
    text_end: npt.NDArray[np.int64]

    def texts(self) -> list[str]:
        """Return the id of each run; bytes that are not UTF-8 survive as surrogates."""
        ends = self.text_end.tolist()
        pieces = (self.text[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True))
        return [piece.decode("utf-8", "surrogateescape") for piece in pieces]

    def repeat(self, ids: npt.NDArray[Any], n_rows: int) -> npt.NDArray[Any]:
        """Return one id a row."""
        return np.repeat(ids, np.diff(self.start, append=n_rows))


def decode_ids(texts: Sequence[str], kind: str | None = None) -> npt.NDArray[Any]:
    """Return ids as int64 if all are integers, else as float64 if all are real numbers, else as text.

    Parameters
    ----------
    texts : sequence of str
    kind : {"i", "f", "U"}, optional
        What earlier ids were; then these must be so too.
    """
    if kind != "U":
        if kind != "f" and all(map(_INTEGER.fullmatch, texts)):
            return np.array([int(text) for text in texts], dtype=np.int64)
        if kind != "i" and all(map(_is_real, texts)):
            return np.array([float(text) for text in texts], dtype=np.float64)
        if kind is not None:
            odd = next(text for text in texts if not (_INTEGER.fullmatch if kind == "i" else _is_real)(text))
            raise InvalidInputError(
                f"Query id {odd!r} is of another kind than the ids before it, which are {_KINDS[kind]}.",
                "read the whole file at once, or write ids of one kind only.",
            )
    return np.array(texts, dtype=np.str_)


def _is_real(text: str) -> bool:
    return bool(_REAL.fullmatch(text)) and sum(c.isdigit() for c in re.split("[eE]", text)[0]) <= _MOST_DIGITS


def encode_ids(ids: npt.NDArray[Any]) -> list[bytes]:
    """Return ids as they are written behind ``qid:``."""
    texts = [str(value) for value in ids.tolist()]
    for text in texts:
        if not text or _NOT_IN_AN_ID.search(text):
            raise InvalidInputError(
                f"Query id {text!r} cannot be written: it is empty, or has spaces or a # in it.",
                "pass ids without them, for example np.unique(qid, return_inverse=True)[1].",
            )
    return [text.encode("utf-8", "surrogateescape") for text in texts]


def encode_any_ids(ids: npt.NDArray[Any], runs: npt.NDArray[np.int64]) -> tuple[list[bytes], str]:
    """Return the text of the id of each run, given as a position in `ids`, and what they are: "i", "f" or "U"."""
    kind = {"b": "i", "u": "i"}.get(ids.dtype.kind, ids.dtype.kind)
    if ids.dtype.kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max:
        kind = "U"
    if kind not in "if":
        kind = "U"
    names = [str(int(value)) if kind == "i" else str(value) for value in ids.tolist()]
    if any(not name for name in names):
        raise InvalidInputError("A query id is the empty text.", "give those rows an id.")
    if len(set(names)) < len(names):
        raise InvalidInputError(
            "Some query ids differ only by their type, such as 1 and '1'.", "pass ids of one type."
        )
    texts = [name.encode("utf-8", "surrogateescape") for name in names]
    return [texts[code] for code in runs.tolist()], kind
