"""Read battles: who met whom, who won, and with which weight, cluster and contest columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.data.columns import names_of
from rankwise.data.containers import is_null
from rankwise.exceptions import InvalidInputError

Column = str | AnyArray | Sequence[Hashable]

_SIDES = (("model_a", "model_b"), ("item_a", "item_b"))
_TIES = ("tie", "tie (bothbad)", "both_bad", "bothbad", "both bad", "draw")
_COUNTS = {"wins_a": 1.0, "ties": 0.5, "wins_b": 0.0}
_FORMATS = (
    "name the columns model_a, model_b, winner; or winner, loser; or item_a, item_b, score; "
    "or item_a, item_b, wins_a, wins_b and perhaps ties."
)


@dataclass
class Battles:
    """Battles as arrays, one entry for each row and outcome.

    Attributes
    ----------
    items : list
        The ids of all items; `first` and `second` are positions in it.
    first, second : ndarray of shape (entries,)
        The two items of a battle, in the order in which they were shown.
    score : ndarray of shape (entries,)
        1 if the first item won, 0 if the second did, ½ for a tie.
    weight : ndarray of shape (entries,)
        Weight 2 means the same as two equal battles.
    units : ndarray of shape (entries,)
        The number of battles that an entry stands for: its count where the table has counts, otherwise 1.
    row : ndarray of shape (entries,)
        The row of the caller's table.
    style : ndarray of shape (entries, columns)
    style_names : list of str
    cluster : ndarray of shape (entries,) or None
        Numbers of clusters from 0.
    left_out : dict
        A reason, and the number of rows that were left out for it.
    unused : list of str
        Columns of the table that were not read.
    """

    items: list[Any]
    first: Ints
    second: Ints
    score: Floats
    weight: Floats
    units: Ints
    row: Ints
    style: Floats
    style_names: list[str]
    cluster: Ints | None
    left_out: dict[str, int]
    unused: list[str]

    def grouped(self) -> tuple[Ints, Ints]:
        """Return one entry of each group of equal battles, and the group of each entry.

        Contest columns, clusters and unequal weights keep all entries apart.
        """
        each = self.weight / self.units
        if self.style.shape[1] or self.cluster is not None or (each != each[0]).any():
            return (np.arange(each.size),) * 2
        key = (self.first * len(self.items) + self.second) * 3 + (2 * self.score).astype(np.int64)
        group = (np.cumsum(np.bincount(key) > 0) - 1)[key]
        chosen = np.empty(int(group.max()) + 1, np.int64)
        chosen[group] = np.arange(group.size)
        return chosen, group


def sides_of(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the two columns of items, or None where a table has no battles."""
    there = set(names)
    for sides in _SIDES:
        if there.issuperset(sides) and (there & {"winner", "score"} or there >= {"wins_a", "wins_b"}):
            return sides
    return ("winner", "loser") if there.issuperset(("winner", "loser")) else None


def read_battles(
    table: Any, style: Any = None, cluster: Column | None = None, more_items: Iterable[Hashable] = ()
) -> Battles:
    """Read battles from a table with named columns, or from an array of winners and losers.

    Parameters
    ----------
    table : data frame, Arrow table, mapping of columns, or array of shape (battles, 2)
    style : list of str, or array of shape (battles, columns), optional
        Contest columns: names of columns of differences, or ``x`` for the columns ``x_a`` and ``x_b``.
    cluster : str or array of shape (battles,), optional
    more_items : iterable
        Items that are on the board although they have not played.
    """
    names = names_of(table)
    if not names:
        array = np.asarray(table)
        if array.ndim != 2 or array.shape[1] != 2:
            raise InvalidInputError(
                f"battles has shape {array.shape}.",
                "pass an array with two columns, winner and loser, or a table.",
            )
        table, names = {"winner": array[:, 0], "loser": array[:, 1]}, ["winner", "loser"]
    source = _Source(table, names)
    sides = sides_of(names)
    if sides is None:
        raise InvalidInputError(f"The columns {', '.join(names[:12])} do not describe battles.", _FORMATS)
    left, right = (source.values(name).tolist() for name in sides)
    _check_length(sides[1], len(right), len(left))
    columns, style_names = _style(source, style, len(left))
    weight = source.numbers("weight") if "weight" in names else np.ones(len(left))
    if not (np.isfinite(weight) & (weight >= 0)).all():
        at = int(np.argmin(np.where(np.isfinite(weight), weight, -1.0)))
        raise InvalidInputError(f"Row {at} has weight {weight[at]}.", "pass weights of 0 or more.")
    outcomes = _outcomes(source, sides, len(left))
    groups = None if cluster is None else _cluster(source, cluster, len(left))
    items, first, second = _numbered(left, right, more_items)
    reasons = {
        "an item id is missing": (first < 0) | (second < 0),
        "an item meets itself": first == second,
        "the outcome is missing": np.isnan(np.sum(list(outcomes.values()), axis=0)),
        "a contest column is missing": ~np.isfinite(columns).all(axis=1),
    }
    left_out: dict[str, int] = {}
    keep = np.ones(len(left), bool)
    for reason, mask in reasons.items():
        count = int((keep & mask).sum())
        left_out |= {reason: count} if count else {}
        keep &= ~mask
    row, outcome = np.nonzero(np.column_stack([keep & (weight > 0) & (one > 0) for one in outcomes.values()]))
    amount = np.column_stack(list(outcomes.values()))[row, outcome]
    there = np.isin(np.arange(len(items)), [first[row], second[row]])
    if not all(there):  # items whose battles were all left out
        more = set(more_items)
        there |= np.array([item in more for item in items])
        items = [item for item, is_there in zip(items, there, strict=True) if is_there]
        first, second = (np.cumsum(there) - 1)[first], (np.cumsum(there) - 1)[second]
    is_counted = "wins_a" in source.used and bool((amount == np.round(amount)).all())
    return Battles(
        items,
        first[row],
        second[row],
        np.array(list(outcomes))[outcome],
        weight[row] * amount,
        (amount if is_counted else np.ones(row.size)).astype(np.int64),
        row,
        columns[row],
        style_names,
        None if groups is None else np.unique(groups[row], return_inverse=True)[1].reshape(-1),
        left_out,
        [name for name in names if name not in source.used],
    )


def read_features(items: Any) -> tuple[list[Any], list[str], Floats]:
    """Return ids, names and values of the features of items.

    Parameters
    ----------
    items : data frame, Arrow table or mapping
        A table with a column ``item`` (else the first one) of ids and columns of numbers; or a mapping from each id to
        a sequence of numbers.
    """
    if isinstance(items, Mapping) and "item" not in items:
        ids = list(items)
        values = np.array([np.atleast_1d(np.asarray(one, dtype=float)) for one in items.values()])
        others = [f"feature {at}" for at in range(values.shape[1])]
    else:
        source = _Source(items, names_of(items))
        key = "item" if "item" in source.names else source.names[0]
        others = [name for name in source.names if name != key]
        ids = source.values(key).tolist()
        if not others or len(set(ids)) < len(ids):
            raise InvalidInputError(
                "items has no features, or names an item twice.",
                "pass one row for each item, with a column item and columns of numbers.",
            )
        values = np.column_stack([source.numbers(name) for name in others])
    if not np.isfinite(values).all():
        raise InvalidInputError(
            "items has features that are missing.", "fill them, or leave the columns out."
        )
    return ids, others, values


class _Source:
    """A table, and the columns of it that were read."""

    def __init__(self, table: Any, names: list[str]) -> None:
        self.table, self.names, self.used = table, names, set[str]()

    def values(self, name: str) -> AnyArray:
        if name not in self.names:
            raise InvalidInputError(
                f"There is no column {name!r:.80}.", f"choose from {', '.join(self.names[:20])}."
            )
        self.used.add(name)
        column = self.table[name]
        # An array of tuples, which may be ids, would have two dimensions.
        is_list = isinstance(column, list | tuple)
        return np.fromiter(column, object, len(column)) if is_list else np.asarray(column)

    def numbers(self, name: str) -> Floats:
        values = self.values(name)
        if values.dtype == object:
            values = np.array([np.nan if _is_missing(one) else one for one in values.tolist()], dtype=object)
        try:
            return values.astype(float)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"Column {name} has values that are not numbers.", f"convert {name}, or leave it out."
            ) from error


def _is_missing(value: Any) -> bool:
    """Tell whether a cell is missing, or an empty text."""
    return is_null(value) or (isinstance(value, str) and not value)


def _numbered(left: list[Any], right: list[Any], more: Iterable[Hashable]) -> tuple[list[Any], Ints, Ints]:
    """Return all items, sorted, and the positions of both sides; missing ids have position −1."""
    found = dict.fromkeys(chain(left, right, more))
    present = [one for one in found if not _is_missing(one)]
    try:
        present.sort()
    except TypeError:  # ids of several types
        present.sort(key=lambda one: (type(one).__name__, repr(one)))
    place = dict.fromkeys(found, -1) | {one: at for at, one in enumerate(present)}
    first, second = (np.fromiter(map(place.__getitem__, side), np.int64, len(side)) for side in (left, right))
    return present, first, second


def _outcomes(source: _Source, sides: tuple[str, str], n_rows: int) -> dict[float, Floats]:
    """Return the amount of each outcome in every row: 0 or 1, or a count; NaN where it is missing."""
    if sides == ("winner", "loser"):
        return {1.0: np.ones(n_rows)}
    if {"wins_a", "wins_b"} <= set(source.names):
        amounts = {score: source.numbers(name) for name, score in _COUNTS.items() if name in source.names}
        if any((amount < 0).any() for amount in amounts.values()):
            raise InvalidInputError("A count of battles is negative.", "pass counts of 0 or more.")
        return amounts
    if "score" in source.names:
        score = source.numbers("score")
    else:
        winners = source.values("winner").tolist()
        known: dict[Any, float] = dict.fromkeys(_TIES, 0.5)
        known |= {sides[0]: 1.0, "a": 1.0, sides[1]: 0.0, "b": 0.0}
        unknown = [one for one in dict.fromkeys(winners) if one not in known and not _is_missing(one)]
        if unknown:
            raise InvalidInputError(
                f"Row {winners.index(unknown[0])} has the outcome {unknown[0]!r:.80}, which is unknown.",
                f"use {sides[0]}, {sides[1]}, tie or tie (bothbad).",
            )
        score = np.array([known.get(one, np.nan) for one in winners])
    wrong = ~np.isin(score, (0.0, 0.5, 1.0)) & ~np.isnan(score)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidInputError(
            f"Row {at} has the score {score[at]:g}.",
            "use 1 for a win of item_a, 0 for a loss and 0.5 for a tie.",
        )
    missing = np.where(np.isnan(score), np.nan, 0.0)
    return {value: (score == value) + missing for value in (1.0, 0.5, 0.0)}


def _style(source: _Source, style: Any, n_rows: int) -> tuple[Floats, list[str]]:
    if style is None:
        return np.empty((n_rows, 0)), []
    given = [style] if isinstance(style, str) else style
    if names_of(given) or not all(isinstance(one, str) for one in given):
        values = np.asarray(style, dtype=float).reshape(len(style), -1)
        _check_length("style", len(values), n_rows)
        return values, names_of(style) or [f"style {at}" for at in range(values.shape[1])]
    columns = []
    for name in given:
        if name not in source.names and f"{name}_a" in source.names:
            columns.append(source.numbers(f"{name}_a") - source.numbers(f"{name}_b"))
        else:
            columns.append(source.numbers(name))
    return np.column_stack(columns), list(given)


def _cluster(source: _Source, cluster: Column, n_rows: int) -> Ints:
    values = source.values(cluster) if isinstance(cluster, str) else np.asarray(cluster)
    _check_length("cluster", len(values), n_rows)
    _, numbers, _ = _numbered(values.tolist(), [], ())
    if (numbers < 0).any():
        raise InvalidInputError("cluster has missing values.", "give these battles a cluster of their own.")
    return numbers


def _check_length(name: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        raise InvalidInputError(
            f"{name} has {length} rows, and there are {n_rows} battles.", "pass one for each battle."
        )
