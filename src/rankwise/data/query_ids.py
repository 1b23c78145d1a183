"""Query ids as text, and their conversion to numbers where all ids are numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rankwise.arrays import AnyArray
from rankwise.exceptions import InvalidInputError

# Numbers as Python writes them; others (01, +1, 1e3, -0) would come back as another text.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_REAL = re.compile(r"-?[0-9]+\.[0-9]+(e[+-][0-9]+)?|-?[0-9]e[+-][0-9]+")
_LARGEST = 2**63 - 1
_NOT_IN_AN_ID = re.compile(r"[ \t\n\r\v\f#\x00]")
_KINDS = {"i": "integers", "f": "real numbers", "U": "text"}


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
