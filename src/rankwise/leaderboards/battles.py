"""Read battles: who met whom, who won, and with which weight, cluster and contest columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.exceptions import InvalidInputError

__all__ = ["Battles", "Column", "column_names", "read_battles", "read_features", "sides_of"]

Column = str | AnyArray | Sequence[Hashable]

_SIDES = (("model_a", "model_b"), ("item_a", "item_b"))
_TIES = frozenset({"tie", "tie (bothbad)", "both_bad", "bothbad", "both bad", "draw"})
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
        The number of battles that an entry stands for: its weight where the table has counts, otherwise 1.
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
    left_out: dict[str, int] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)

    def taken(self, keep: AnyArray) -> Battles:
        """Return the entries that a mask or positions choose."""
        entries = {name: getattr(self, name)[keep] for name in _ENTRIES}
        return replace(self, **entries, cluster=None if self.cluster is None else self.cluster[keep])


_ENTRIES = ("first", "second", "score", "weight", "units", "row", "style")


def column_names(table: Any) -> list[str]:
    """Return the names of the columns of a data frame, an Arrow table or a mapping; none for arrays."""
    names: Any = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", table.keys() if isinstance(table, Mapping) else ())
    return [str(name) for name in names]


def sides_of(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the two columns of items, or None where a table has no battles."""
    there = set(names)
    for sides in _SIDES:
        if there.issuperset(sides) and there & {"winner", "score", "wins_a"}:
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
    if type(table).__name__ == "LazyFrame":
        raise InvalidInputError("battles is a LazyFrame, which holds no rows yet.", "pass battles.collect().")
    names = column_names(table)
    if not names:
        table, names = _named(table), ["winner", "loser"]
    sides = sides_of(names)
    if sides is None:
        raise InvalidInputError(
            f"The columns {', '.join(names[:12])} do not describe battles.", _FORMATS, about=""
        )
    used = {*sides}
    left, right = (_values(table, name) for name in sides)
    columns, style_names = _style(table, names, style, left.size, used)
    groups = _cluster(table, names, cluster, left.size, used)
    weight = np.ones(left.size)
    if "weight" in names:
        used.add("weight")
        weight = _numbers(table, "weight")
        if not (weight >= 0).all() or np.isinf(weight).any():
            at = int(np.argmin(np.where(np.isfinite(weight), weight, -1.0)))
            raise InvalidInputError(
                f"Row {at} has weight {weight[at]}.", "pass weights of 0 or more.", about=""
            )
    items, first, second = _numbered(left, right, more_items)
    outcomes, is_counted = _outcomes(table, names, sides, used)
    missing = (first < 0) | (second < 0)
    same = (first == second) & ~missing
    unknown = np.isnan(sum(amount for _, amount in outcomes)) & ~missing & ~same
    bad = np.isnan(columns).any(axis=1) & ~missing & ~same & ~unknown
    reasons = {
        "an item id is missing": missing,
        "an item meets itself": same,
        "the outcome is missing": unknown,
        "a contest column is missing": bad,
    }
    keep = ~(missing | same | unknown | bad)
    rows, scores, amounts = [], [], []
    for score, amount in outcomes:
        there = np.flatnonzero(keep & (amount > 0) & (weight > 0))
        rows.append(there)
        scores.append(np.full(there.size, score))
        amounts.append(amount[there])
    row, amount = np.concatenate(rows), np.concatenate(amounts)
    order = np.argsort(row, kind="stable")
    row, amount = row[order], amount[order]
    whole = is_counted and bool((amount == np.round(amount)).all())
    return Battles(
        items,
        first[row],
        second[row],
        np.concatenate(scores)[order],
        weight[row] * amount,
        (amount if whole else np.ones(row.size)).astype(np.int64),
        row,
        columns[row],
        style_names,
        None if groups is None else np.unique(groups[row], return_inverse=True)[1].reshape(-1),
        {reason: int(mask.sum()) for reason, mask in reasons.items() if mask.any()},
        [name for name in names if name not in used],
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
        values = np.array([np.atleast_1d(np.asarray(items[one], dtype=float)) for one in ids])
        return ids, [f"feature {at}" for at in range(values.shape[1])], _complete(values)
    names = column_names(items)
    if len(names) < 2:
        raise InvalidInputError(
            "items has no columns of features.", "pass a table with a column item and columns of numbers."
        )
    key = "item" if "item" in names else names[0]
    others = [name for name in names if name != key]
    ids = _values(items, key).tolist()
    if len(set(ids)) < len(ids):
        raise InvalidInputError("items names an item twice.", "pass one row for each item.")
    return ids, others, _complete(np.column_stack([_numbers(items, name) for name in others]))


def _complete(values: Floats) -> Floats:
    if not np.isfinite(values).all():
        raise InvalidInputError(
            "items has features that are missing.", "fill them, or leave the columns out."
        )
    return values


def _named(table: Any) -> dict[str, AnyArray]:
    array = np.asarray(table)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidInputError(
            f"battles has shape {array.shape}.",
            "pass an array with two columns, winner and loser, or a table.",
        )
    return {"winner": array[:, 0], "loser": array[:, 1]}


def _values(table: Any, name: str) -> AnyArray:
    values = np.asarray(table[name])
    if values.ndim != 1:
        raise InvalidInputError(f"Column {name} has shape {values.shape}.", "pass one value for each battle.")
    return values


def _numbers(table: Any, name: str) -> Floats:
    values = _values(table, name)
    if values.dtype == object:
        values = np.array([np.nan if _is_missing(one) else one for one in values.tolist()], dtype=object)
    try:
        return values.astype(float)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Column {name} has values that are not numbers.", f"convert {name}, or leave it out."
        ) from error


def _is_missing(value: Any) -> bool:
    unequal = value != value  # noqa: PLR0124 - true of NaN and NaT; pandas.NA gives no truth value
    return value is None or not isinstance(unequal, bool | np.bool_) or bool(unequal)


def _numbered(left: AnyArray, right: AnyArray, more: Iterable[Hashable]) -> tuple[list[Any], Ints, Ints]:
    """Return all items, sorted, and the positions of both sides; missing ids have position −1."""
    sides = left.tolist(), right.tolist()
    try:
        found = dict.fromkeys(chain(*sides, more))
    except TypeError as error:
        raise InvalidInputError(
            f"An item id cannot be hashed ({error}).", "pass text, numbers or tuples."
        ) from error
    present = [one for one in found if not _is_missing(one)]
    try:
        present.sort()
    except TypeError:  # ids of several types
        present.sort(key=lambda one: (type(one).__name__, repr(one)))
    place = dict.fromkeys(found, -1) | {one: at for at, one in enumerate(present)}
    first, second = (np.fromiter(map(place.__getitem__, side), np.int64, len(side)) for side in sides)
    return present, first, second


def _outcomes(
    table: Any, names: Sequence[str], sides: tuple[str, str], used: set[str]
) -> tuple[list[tuple[float, Floats]], bool]:
    """Return the amount of each outcome in every row, and whether amounts are counts."""
    if sides == ("winner", "loser"):
        return [(1.0, np.ones(len(_values(table, "winner"))))], False
    if "wins_a" in names and "wins_b" in names:
        counts = {
            score: name for name, score in (("wins_a", 1.0), ("ties", 0.5), ("wins_b", 0.0)) if name in names
        }
        used.update(counts.values())
        amounts = [(score, _numbers(table, name)) for score, name in counts.items()]
        if any((amount < 0).any() for _, amount in amounts):
            raise InvalidInputError("A count of battles is negative.", "pass counts of 0 or more.")
        return amounts, True
    if "score" in names:
        used.add("score")
        score = _numbers(table, "score")
    else:
        used.add("winner")
        winners = _values(table, "winner").tolist()
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
    return [(value, (score == value) + missing) for value in (1.0, 0.5, 0.0)], False


def _style(
    table: Any, names: Sequence[str], style: Any, n_rows: int, used: set[str]
) -> tuple[Floats, list[str]]:
    if style is None:
        return np.empty((n_rows, 0)), []
    given = [style] if isinstance(style, str) else style
    if all(isinstance(one, str) for one in given):
        columns = []
        for name in given:
            if name in names:
                used.add(name)
                columns.append(_numbers(table, name))
            elif f"{name}_a" in names and f"{name}_b" in names:
                used.update((f"{name}_a", f"{name}_b"))
                columns.append(_numbers(table, f"{name}_a") - _numbers(table, f"{name}_b"))
            else:
                raise InvalidInputError(
                    f"style names {name!r:.80}, and there is no column {name}, nor {name}_a and {name}_b.",
                    f"choose from {', '.join(names[:20])}.",
                )
        return np.column_stack(columns), list(given)
    values = np.asarray(style, dtype=float).reshape(len(style), -1)
    _check_length("style", len(values), n_rows)
    return values, column_names(style) or [f"style {at}" for at in range(values.shape[1])]


def _cluster(
    table: Any, names: Sequence[str], cluster: Column | None, n_rows: int, used: set[str]
) -> Ints | None:
    if cluster is None:
        return None
    if isinstance(cluster, str):
        if cluster not in names:
            raise InvalidInputError(
                f"There is no column {cluster!r:.80}.", f"choose from {', '.join(names[:20])}."
            )
        used.add(cluster)
        values = _values(table, cluster).tolist()
    else:
        values = np.asarray(cluster).tolist()
    _check_length("cluster", len(values), n_rows)
    if any(_is_missing(one) for one in dict.fromkeys(values)):
        raise InvalidInputError("cluster has missing values.", "give these battles a cluster of their own.")
    place = {one: at for at, one in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(place.__getitem__, values), np.int64, n_rows)


def _check_length(name: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        raise InvalidInputError(
            f"{name} has {length} rows, and battles has {n_rows}.", "pass one for each battle."
        )
