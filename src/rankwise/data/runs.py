"""Runs and judgements in TREC format: the items that a system returned for each query, and their labels.

A run has lines ``qid Q0 item rank score tag``, judgements ("qrels") have lines ``qid 0 item label``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rankwise.arrays import ArrayLike, Floats
from rankwise.data.svmlight import open_text, read_lines
from rankwise.data.validation import check_names, check_numbers
from rankwise.exceptions import InvalidInputError

Run = dict[str, dict[str, float]]


@dataclass(frozen=True)
class JudgedRuns:
    r"""The rows of some runs with their labels.

    Attributes
    ----------
    labels : (rows,) float64
        Items without a judgement have the label 0.
    scores : (runs, rows) float64
        Items that a run lacks are ranked below all its items.
    qid, items : (rows,) str
    n_left_out : int
        Queries of the judgements that one of the runs does not have; they do not count.

    Examples
    --------
    >>> import io
    >>> from rankwise.data import judge_runs, load_judgements, load_run
    >>> run = load_run(io.BytesIO(b"q1 Q0 a 1 0.9 mine\nq1 Q0 b 2 0.4 mine\n"))
    >>> judgements = load_judgements(io.BytesIO(b"q1 0 a 2\nq1 0 c 1\n"))
    >>> judged = judge_runs([run], judgements)
    >>> judged.scores.shape, judged.n_left_out
    ((1, 3), 0)
    """

    labels: Floats
    scores: Floats
    qid: npt.NDArray[np.str_]
    items: npt.NDArray[np.str_]
    n_left_out: int


def load_run(path: str | os.PathLike[str] | BinaryIO) -> Run:
    r"""Return the score of each item of each query.

    Parameters
    ----------
    path : path or binary stream
        Compressed or not.

    Examples
    --------
    >>> import io
    >>> from rankwise.data import load_run
    >>> load_run(io.BytesIO(b"q1 Q0 a 1 0.9 mine\nq1 Q0 b 2 0.4 mine\n"))
    {'q1': {'a': 0.9, 'b': 0.4}}
    """
    return _read(path, "qid Q0 item rank score tag", value_at=4)


def load_judgements(path: str | os.PathLike[str] | BinaryIO) -> Run:
    r"""Return the label of each judged item of each query; lines are ``qid 0 item label``.

    Parameters
    ----------
    path : path or binary stream
        Compressed or not.

    Returns
    -------
    dict of dict
        Labels by query, then item.

    Examples
    --------
    >>> import io
    >>> from rankwise.data import load_judgements
    >>> load_judgements(io.BytesIO(b"q1 0 a 2\nq1 0 c 1\n"))
    {'q1': {'a': 2.0, 'c': 1.0}}
    """
    labels = _read(path, "qid 0 item label", value_at=3)
    return {qid: {item: max(0.0, label) for item, label in own.items()} for qid, own in labels.items()}


def _read(path: str | os.PathLike[str] | BinaryIO, wanted: str, *, value_at: int) -> Run:
    """Return the values of lines with the query first and the item third."""
    found: Run = {}
    for number, line, name in read_lines(path):
        entries = line.split()
        if len(entries) != len(wanted.split()):
            raise InvalidInputError(
                f"{name}, line {number}: {line[:60]!r} is not `{wanted}`.",
                "check that the file is the one you mean.",
            )
        own, item = found.setdefault(entries[0], {}), entries[2]
        if item in own:
            raise InvalidInputError(
                f"{name}, line {number}: item {item!r} of query {entries[0]!r} comes twice.",
                "keep one line for each.",
            )
        own[item] = _number(entries[value_at], f"{name}, line {number}")
    return found


def judge_runs(runs: Sequence[Run], judgements: Run) -> JudgedRuns:
    r"""Return the rows of several runs with their labels, query by query; a row is an item that one of them has.

    Parameters
    ----------
    runs : sequence of runs, as `load_run` returns them
    judgements : judgements, as `load_judgements` returns them

    Returns
    -------
    JudgedRuns

    Examples
    --------
    >>> import io
    >>> from rankwise.data import judge_runs, load_judgements, load_run
    >>> run = load_run(io.BytesIO(b"q1 Q0 a 1 0.9 mine\nq1 Q0 b 2 0.4 mine\n"))
    >>> judgements = load_judgements(io.BytesIO(b"q1 0 a 2\nq1 0 c 1\n"))
    >>> judged = judge_runs([run], judgements)
    >>> judged.items.tolist(), judged.labels.tolist()
    (['a', 'b', 'c'], [2.0, 0.0, 1.0])
    """
    labels: list[float] = []
    scores: list[list[float]] = [[] for _ in runs]
    queries: list[str] = []
    items: list[str] = []
    known = [query for query in judgements if all(query in run for run in runs)]
    if not known:
        raise InvalidInputError(
            "The runs and the judgements have no query in common.", "check that they use the same query ids."
        )
    for query in known:
        right = judgements[query]
        every = list(dict.fromkeys(item for own in (*(run[query] for run in runs), right) for item in own))
        labels += [right.get(item, 0.0) for item in every]
        queries += [query] * len(every)
        items += every
        for run, own_scores in zip(runs, scores, strict=True):
            own = run[query]
            below = min(own.values()) - 1.0
            own_scores += [own.get(item, below) for item in every]
    return JudgedRuns(
        np.array(labels), np.array(scores), np.array(queries), np.array(items), len(judgements) - len(known)
    )


def save_run(
    qid: Sequence[object],
    items: Sequence[object],
    ranks: Sequence[int],
    scores: ArrayLike,
    path: str | os.PathLike[str] | BinaryIO,
    *,
    tag: str,
) -> None:
    r"""Write lines of TREC: ``qid Q0 item rank score tag``.

    Parameters
    ----------
    qid, items, ranks, scores : sequences, one entry per row
        An item comes once in each query.
    path : path or binary stream
        A file is replaced only once everything is written; ``"-"`` is standard output.
    tag : str
        The name of the run.

    Examples
    --------
    >>> import io
    >>> from rankwise.data import save_run
    >>> stream = io.BytesIO()
    >>> save_run(["q1", "q1"], ["a", "b"], [1, 2], [0.9, 0.4], stream, tag="mine")
    >>> stream.getvalue()
    b'q1 Q0 a 1 0.9 mine\nq1 Q0 b 2 0.4 mine\n'
    """
    values = check_numbers("scores", scores).tolist()
    queries, names = check_names("qid", qid), check_names("items", items)
    twice = next((row for row, n in Counter(zip(queries, names, strict=True)).items() if n > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"item {twice[1]!r} of query {twice[0]!r} comes twice, and a TREC run has an item of a query once.",
            "give the rows ids of their own, or write a .tsv or .parquet file.",
        )
    with open_text(path) as stream:
        stream.writelines(
            f"{_word(query)} Q0 {_word(item)} {int(rank)} {score!r} {_word(tag)}\n".encode()
            for query, item, rank, score in zip(queries, names, ranks, values, strict=True)
        )


def _number(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InvalidInputError(f"{place}: {text!r} is not a number.", "write a finite number there.")
    return value


def _word(value: object) -> str:
    text = str(value).encode(errors="backslashreplace").decode()
    if not text or text.split() != [text]:
        raise InvalidInputError(
            f"{text!r} is not a valid id in a TREC run.",
            "use ids without spaces, or write a .tsv or .parquet file.",
        )
    return text
