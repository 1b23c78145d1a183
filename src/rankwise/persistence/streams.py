"""What `partial_fit` remembers, in model files: the exact statistics of everything so far.

A stream that learns as rows come keeps rows that are not yet a block; those stay with the process, and such a model
starts anew after it was loaded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Shift
from rankwise.json_values import Json
from rankwise.objectives.accumulated import Group, GrowingRanking, PassedQueries
from rankwise.objectives.parts import RunningMean
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES
from rankwise.persistence.reader import Reader
from rankwise.persistence.values import wrong
from rankwise.persistence.writer import Writer
from rankwise.streaming.accumulators import ExactQueries, ExactRanking, PairOptions
from rankwise.streaming.pending import Remembered, SeenQueries
from rankwise.streaming.state import Stream

__all__ = ["read_stream", "write_stream"]

_PLAIN = ("with_qid", "n_rows", "n_pairs", "n_ignored")


def write_stream(stream: Stream, prefix: str, writer: Writer) -> Json:
    """Return the JSON of a stream; None where it is none that a file keeps."""
    if not stream.exact:
        return None
    parts: dict[str, object] = {name: getattr(stream, name) for name in _PLAIN}
    parts["label_shape"] = list(stream.label_shape)
    parts["options"] = [stream.options.ties, stream.options.cost, stream.options.query_weight]
    parts["seen"] = list(stream.seen)
    parts["shift"] = None if stream.shift is None else [stream.shift.columns, stream.shift.values]
    parts["memory"] = [_statistics(own) for own in stream.memory.exact]
    return writer.write(parts, f"{prefix}stream")


def _statistics(own: ExactQueries | ExactRanking) -> list[object]:
    if isinstance(own, ExactQueries):
        return [own.statistics.matrix, own.statistics.rhs]
    return [
        [
            float(level),
            float(group.mean.weight),
            group.mean.row,
            np.asarray(group.mean.label),
            group.scatter,
            group.cross,
        ]
        for level, group in own.statistics.groups.items()
    ]


def read_stream(written: object, reader: Reader, n_features: int) -> Stream:
    """Return the stream that some JSON describes; what it holds must have the sizes that it says."""
    parts = reader.read(written)
    names = {*_PLAIN, "label_shape", "options", "seen", "shift", "memory"}
    if not isinstance(parts, dict) or set(parts) != names:
        raise wrong("what partial_fit remembers is not complete")
    shape, counts = _shape(parts["label_shape"]), (parts["n_pairs"], parts["n_ignored"])
    n_outputs = shape[0] if shape else 1
    if (
        type(parts["with_qid"]) is not bool
        or type(parts["n_rows"]) is not int
        or not isinstance(parts["seen"], list)
        or not all(
            isinstance(c, np.ndarray) and c.shape == (n_outputs,) and c.dtype.kind == "i" for c in counts
        )
    ):
        raise wrong("what partial_fit remembers is of the wrong kind")
    opened = Stream.opened(
        _options(parts["options"]),
        exact=True,
        with_qid=parts["with_qid"],
        n_features=0,  # what a file remembers takes the place of zeros, for which there may be no room
        label_shape=shape,
        shift=_shift(parts["shift"], n_features),
    )
    memory, own_shape = parts["memory"], () if opened.splits else shape
    if not isinstance(memory, list) or len(memory) != len(opened.memory.current):
        raise wrong("partial_fit remembers another number of outputs")
    accumulators = tuple(
        _restored(empty, own, n_features, own_shape)
        for empty, own in zip(opened.memory.exact, memory, strict=True)
    )
    try:
        seen = SeenQueries().plus(parts["seen"])
    except TypeError as error:
        raise wrong("an id of a query is none") from error
    n_pairs, n_ignored = counts
    return replace(
        opened,
        memory=Remembered(accumulators, accumulators),
        n_rows=parts["n_rows"],
        n_pairs=n_pairs,
        n_ignored=n_ignored,
        seen=seen,
    )


def _restored(
    empty: ExactQueries | ExactRanking, own: object, n_features: int, shape: tuple[int, ...]
) -> ExactQueries | ExactRanking:
    square, cross = (n_features, n_features), (n_features, *shape)
    if isinstance(empty, ExactQueries):
        matrix, rhs = _arrays(own, [square, cross])
        return replace(empty, statistics=PassedQueries(matrix, rhs))
    options = empty.statistics
    groups = {}
    if not isinstance(own, list):
        raise wrong("partial_fit remembers no levels")
    for group in own:
        if not isinstance(group, list) or len(group) != 6 or not all(type(one) is float for one in group[:2]):
            raise wrong("partial_fit remembers a level that is none")
        row, label, scatter, both = _arrays(group[2:], [(n_features,), shape, square, cross])
        groups[group[0]] = Group(RunningMean(group[1], row, label), scatter, both)
    return ExactRanking(GrowingRanking(options.ties, options.cost, options.query_weight, groups))


def _arrays(found: object, shapes: list[tuple[int, ...]]) -> list[Floats]:
    if not isinstance(found, list) or len(found) != len(shapes):
        raise wrong("what partial_fit remembers is not complete")
    for own, shape in zip(found, shapes, strict=True):
        if not isinstance(own, np.ndarray) or own.dtype != np.float64 or own.shape != shape:
            raise wrong(f"what partial_fit remembers is not of shape {shape}")
    return found


def _shape(given: object) -> tuple[int, ...]:
    if (
        not isinstance(given, list)
        or len(given) > 1
        or not all(type(n) is int and 0 < n < 2**31 for n in given)
    ):
        raise wrong("partial_fit remembers outputs that are none")
    return tuple(given)


def _options(given: object) -> PairOptions:
    known = (TIES, COSTS, QUERY_WEIGHTS)
    if (
        not isinstance(given, list)
        or len(given) != len(known)
        or not all(isinstance(own, str) and own in choices for own, choices in zip(given, known, strict=True))
    ):
        raise wrong("partial_fit remembers pairs of no known kind")
    return PairOptions(*given)


def _shift(given: object, n_features: int) -> Shift | None:
    if given is None:
        return None
    if (
        not isinstance(given, list)
        or len(given) != 2
        or not all(isinstance(own, np.ndarray) and own.ndim == 1 for own in given)
        or given[0].dtype != np.int64
        or given[1].dtype != np.float64
        or given[0].size != given[1].size
        or not ((given[0] >= 0) & (given[0] < n_features)).all()
        or not (np.diff(given[0]) > 0).all()
    ):
        raise wrong("partial_fit remembers offsets of columns that are none")
    return Shift(given[0], given[1])
