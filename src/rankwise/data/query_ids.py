"""Query ids as text: runs of rows with one id, and conversion to numbers where all ids are numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray
from rankwise.exceptions import InvalidInputError

# Numbers as Python writes them: what is written otherwise (01, +1, 1e3, -0) would come back as another text.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_REAL = re.compile(r"-?[0-9]+\.[0-9]+(e[+-][0-9]+)?|-?[0-9]e[+-][0-9]+")
_LARGEST = 2**63 - 1
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

    def repeat(self, ids: AnyArray, n_rows: int) -> AnyArray:
        """Return one id per row."""
        return np.repeat(ids, np.diff(self.start, append=n_rows))


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


def _names(ids: AnyArray) -> list[str]:
    """Return the text of each id, one for ids that are equal."""
    if ids.dtype.kind in "mM":
        ids = ids.astype(np.str_)  # as numbers they would count nanoseconds
    if ids.dtype.kind == "f":
        ids = ids + 0.0  # -0.0 and 0.0 are one id
    return [str(value) for value in ids.tolist()]


def encode_ids(ids: AnyArray) -> list[bytes]:
    """Return ids as they are written behind ``qid:``."""
    texts = _names(ids)
    for text in texts:
        if not text or _NOT_IN_AN_ID.search(text):
            raise InvalidInputError(
                f"Query id {text!r} cannot be written: it is empty, or has spaces or a # in it.",
                "pass ids without them, for example np.unique(qid, return_inverse=True)[1].",
            )
    return [text.encode("utf-8", "surrogateescape") for text in texts]
