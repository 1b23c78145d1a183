"""What stands behind ``#`` in a line of text: in LETOR and in logs of search engines, the id of the document."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from rankwise.data.arguments import check_names

__all__ = ["comments_in", "item_ids"]

_NAMED = re.compile(r"\b(?:docid|doc_id|id)\s*[=:]\s*(\S+)", re.IGNORECASE)


def comments_in(buffer: bytearray, size: int) -> list[str]:
    """Return the comment of every row of some whole lines, empty where it has none; lines without a row have no say."""
    found = []
    for line in bytes(memoryview(buffer)[:size]).split(b"\n"):
        row, _, comment = line.partition(b"#")
        if row.strip():
            found.append(comment.strip().decode("utf-8", "backslashreplace"))
    return found


def item_ids(comments: Iterable[str]) -> npt.NDArray[np.str_]:
    """Return the ids that comments name: what stands behind ``docid =``, else the first word.

    Parameters
    ----------
    comments : iterable of str
        As `load_svmlight` returns them with ``comments=True``.

    Examples
    --------
    >>> from rankwise.data import item_ids
    >>> item_ids(["docid = GX008-86 inc = 1", "7555 rambo", ""]).tolist()
    ['GX008-86', '7555', '']
    """
    found = []
    for comment in check_names("comments", comments):
        named = _NAMED.search(comment)
        words = comment.split(maxsplit=1)
        found.append(named.group(1) if named else words[0] if words else "")
    return np.array(found, dtype=np.str_)
