"""Preferences: winners and losers listed by id, side by side as duels, or in a log of clicks.

Joachims (2002), "Optimizing search engines using clickthrough data": users read from the top, so a user who clicks
a result has seen the results above it and skipped them. "Click > skip above" counts only these as losers. Clicks
still depend on the position of a result. Weights of one over the probability that a position is examined (Joachims,
Swaminathan and Schnabel, 2017) correct this bias on average, but add variance; bounding the weights limits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import AnyArray, ArrayLike, Floats, InMemory, Ints, MatrixLike
from rankwise.data.columns import names_of
from rankwise.data.containers import as_array, readable
from rankwise.data.queries import Queries
from rankwise.data.tables import TableFile, TableReader, import_pyarrow, joined, numbers_of, open_tables
from rankwise.data.validation import check_choice, check_numbers, check_pairs, check_qid
from rankwise.exceptions import InvalidInputError

# Prefixes of column names: winner_age and loser_age are the ages of the winner and of the loser.
WINNER_AND_LOSER = ("winner_", "loser_")


# Winners and losers by id


class PreferenceTable(NamedTuple):
    """Comparisons as `fit_pairs` takes them.

    Attributes
    ----------
    X : ndarray of shape (items, features)
    pairs : ndarray of shape (pairs, 2)
        Row numbers of winner and loser.
    magnitude, weight : ndarray of shape (pairs,) or None
    item_ids : ndarray of shape (items,)
        The id of each row of X.
    feature_names : list of str

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise.data import load_preferences
    >>> items = pa.table({"id": ["tea", "milk"], "price": [2.0, 1.0]})
    >>> table = load_preferences(pa.table({"winner": ["tea"], "loser": ["milk"]}), items)
    >>> table.item_ids[table.pairs[0]].tolist(), table.feature_names, table.weight
    (['tea', 'milk'], ['price'], None)
    """

    X: Any
    pairs: npt.NDArray[np.int64]
    magnitude: npt.NDArray[np.float64] | None
    weight: npt.NDArray[np.float64] | None
    item_ids: AnyArray
    feature_names: list[str]


def load_preferences(
    pairs: npt.ArrayLike,
    items: object,
    *,
    item_id: str = "id",
    winner: str = "winner",
    loser: str = "loser",
    magnitude: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    missing: str = "error",
    dtype: npt.DTypeLike = np.float64,
) -> PreferenceTable:
    """Read a table of comparisons and the table of the items that they compare.

    Parameters
    ----------
    pairs : path, glob, folder, list of those, Arrow table or data frame
        One row for each comparison: the item that won, and the item that lost.
    items : the same
        One row for each item: its id and its features.
    item_id : str, default="id"
        The column of `items` that the comparisons refer to. Ids in CSV files are taken as they are written.
    winner, loser : str
        The columns of `pairs` with the ids of the two items.
    magnitude, weight : str, optional
        The columns with the arguments of `fit_pairs` of these names; by default columns named so, if there are any.
    features, embedding, missing, dtype
        Options for the table of items, as in `load_table`.

    Returns
    -------
    PreferenceTable
        A named tuple ``(X, pairs, magnitude, weight, item_ids, feature_names)``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankwise import RankRLS
    >>> from rankwise.data import load_preferences
    >>> items = pa.table({"id": ["tea", "cola", "milk"], "sugar": [0.0, 10.6, 4.8], "price": [1.0, 2.0, 1.0]})
    >>> duels = pa.table({"winner": ["tea", "milk"], "loser": ["cola", "cola"], "weight": [3, 1]})
    >>> table = load_preferences(duels, items)
    >>> table.pairs.tolist(), table.weight.tolist()
    ([[0, 1], [2, 1]], [3.0, 1.0])
    >>> model = RankRLS().fit_pairs(table.X, table.pairs, table.magnitude, table.weight)
    """
    catalogue = open_tables(items, [item_id])
    catalogue[0].require([item_id], "item_id")
    reader = TableReader(catalogue, None, item_id, features, embedding, missing=missing, dtype=dtype)
    comparisons = open_tables(pairs, [winner, loser])
    return read_preferences(comparisons, reader, winner, loser, magnitude=magnitude, weight=weight)


def read_preferences(
    comparisons: Sequence[TableFile], items: TableReader, winner: str, loser: str, **amounts: str | None
) -> PreferenceTable:
    """Read open tables; the query id of `items` is the id of the items. See `load_preferences`."""
    found: dict[str, Floats] = {}
    for role in ("magnitude", "weight"):
        name = amounts.get(role) or (role if role in comparisons[0].schema.names else None)
        if name is not None:
            found[role] = numbers_of(comparisons, name, role)
    table = items.load()
    ids = np.asarray(table.qid)
    values, counts = np.unique(ids, return_counts=True)
    if counts.max(initial=0) > 1:
        twice = values[counts > 1].tolist()[0]
        rows = np.flatnonzero(ids == twice)[:2].tolist()
        raise InvalidInputError(f"Item {twice!r} comes twice, in rows {rows}.", "keep one row per item.")
    edges = np.concatenate(
        [
            np.column_stack(
                [_row_numbers(file, ids, winner, "winner"), _row_numbers(file, ids, loser, "loser")]
            )
            for file in comparisons
        ]
    )
    checked = check_pairs(edges, ids.size, **found)
    return PreferenceTable(table.X, edges, checked.magnitude, checked.weight, ids, table.feature_names)


def _row_numbers(file: TableFile, ids: AnyArray, name: str, role: str) -> Ints:
    """Return the row number of the winner, or of the loser, of each comparison of a table."""
    pa = import_pyarrow()
    file.require([name], role)
    found = [batch.ids(name, f"the {name}") for batch in file.batches([name])]
    values, wanted = pa.array(joined([ids[:0], *found])), pa.array(ids)
    if values.type != wanted.type:
        values, wanted = _as_text(values), _as_text(wanted)
    rows = np.asarray(pa.compute.index_in(values, value_set=wanted).fill_null(-1))
    shown = ", ".join(map(repr, values.filter(pa.array(rows < 0)).unique()[:5].to_pylist()))
    problem = f"the table of items lacks {shown} ({(rows < 0).sum():,} comparisons)"
    file.refuse(name, rows < 0, problem, "add those items with their features, or drop those comparisons.")
    return rows.astype(np.int64)


def _as_text(values: Any) -> Any:
    pa = import_pyarrow()
    if pa.types.is_floating(values.type):
        whole = values.cast(pa.int64(), safe=False)
        values = whole if whole.cast(values.type).equals(values) else values  # a join turns 7 into 7.0
    return values.cast(pa.string())


# Duels


def duel_columns(names: Sequence[str]) -> list[str]:
    """Return the features of both sides: ``["age"]`` if there are columns ``winner_age`` and ``loser_age``."""
    winner, loser = WINNER_AND_LOSER
    found = [name.removeprefix(winner) for name in names if name.startswith(winner)]
    return [name for name in found if name and loser + name in names]


def row_numbers(X: MatrixLike, pairs: ArrayLike | MatrixLike) -> AnyArray | None:
    """Return pairs of row numbers of X as an array; None where `pairs` holds rows to compare with those of X."""
    readable("X", X)
    readable("pairs", pairs)
    if sp.issparse(pairs) or (hasattr(X, "columns") and names_of(X) == names_of(pairs)):
        return None
    edges = as_array("pairs", pairs)
    if edges.ndim == 2 and edges.shape[1] != 2:
        return None
    given = X if hasattr(X, "shape") else as_array("X", X)
    if tuple(given.shape) == edges.shape:
        if edges.dtype.kind not in "iu":
            return None
        if np.asarray(given).dtype.kind in "iu":
            raise InvalidInputError(
                "X and pairs have the same shape, so that pairs may be row numbers or rows of X's two columns.",
                "turn X into real numbers where pairs are row numbers, and both where they are rows.",
            )
    return edges


def duel_sides(duels: Any) -> tuple[Any, Any]:
    """Split a table with columns such as ``winner_age`` and ``loser_age`` into two tables with columns ``age``.

    Parameters
    ----------
    duels : data frame of pandas or polars, or Arrow table
        A row for each duel. Columns of one side only are left out.

    Returns
    -------
    winners, losers : tables
    """
    readable("X", duels)
    table = _arrow(duels)
    found = duel_columns(names_of(table) if hasattr(table, "columns") else [])
    if not found:
        raise InvalidInputError(
            "There are no pairs, and no two columns such as winner_age and loser_age.",
            "pass pairs of row numbers, a second table with the rows that lost, or a table with such columns.",
        )
    sides = [[side + name for name in found] for side in WINNER_AND_LOSER]
    if hasattr(table, "iloc"):
        first, second = (table[side].set_axis(found, axis=1) for side in sides)
    else:
        first, second = (table.select(side).rename_columns(found) for side in sides)
    return first, second


def stack_duels(winners: Any, losers: Any) -> tuple[Any, Ints]:
    """Stack two tables or matrices; row k of the first won against row k of the second.

    Parameters
    ----------
    winners, losers : data frames, Arrow tables or matrices
        With the same columns.

    Returns
    -------
    X : table or matrix
    pairs : (duels, 2) int64
    """
    winners, losers = _arrow(winners), _arrow(losers)
    if not hasattr(winners, "columns"):
        return stack_preferred(winners, losers)
    if len(losers) != len(winners) or names_of(losers) != names_of(winners):
        shapes = [f"{len(side):,} × {len(names_of(side))}" for side in (winners, losers)]
        raise InvalidInputError(
            f"The two tables have {' and '.join(shapes)} rows and columns.",
            "pass tables with the same columns; row k of both is duel k.",
        )
    # Whoever has such a table has the package.
    if hasattr(winners, "iloc"):
        import pandas as pd  # noqa: PLC0415

        return pd.concat([winners, losers], ignore_index=True), _pairs(len(winners))
    import pyarrow as pa  # noqa: PLC0415

    return pa.concat_tables([winners, losers], promote_options="permissive"), _pairs(len(winners))


def stack_preferred(preferred: ArrayLike, rejected: ArrayLike) -> tuple[InMemory, Ints]:
    """Turn a matrix of preferred rows and a matrix of rejected rows into one matrix and a list of pairs.

    Parameters
    ----------
    preferred, rejected : array-like or sparse matrix of shape (pairs, features)
        Row k of `preferred` was preferred to row k of `rejected`. Data frames become arrays.

    Returns
    -------
    X : ndarray or CSR matrix of shape (2 pairs, features)
        The preferred rows, then the rejected ones.
    pairs : ndarray of shape (pairs, 2)

    Examples
    --------
    >>> from rankwise.data import stack_preferred
    >>> X, pairs = stack_preferred([[1.0, 2.0], [0.0, 3.0]], [[1.0, 1.0], [0.0, 1.0]])
    >>> X.shape
    (4, 2)
    >>> pairs.tolist()
    [[0, 2], [1, 3]]
    """
    sides = [
        readable(name, side) if sp.issparse(side) else as_array(name, side)
        for name, side in (("preferred", preferred), ("rejected", rejected))
    ]
    if any(side.ndim != 2 for side in sides) or sides[0].shape != sides[1].shape:
        raise InvalidInputError(
            f"preferred and rejected have shapes {sides[0].shape} and {sides[1].shape}.",
            "pass two matrices of the same shape, row k of both being pair k.",
        )
    is_sparse = any(map(sp.issparse, sides))
    return sp.vstack(sides, format="csr") if is_sparse else np.vstack(sides), _pairs(sides[0].shape[0])


def _pairs(n: int) -> Ints:
    """Return the pairs of the first n rows and the n rows below them."""
    rows = np.arange(n, dtype=np.int64)
    return np.column_stack([rows, rows + n])


def read_duels(X: Any, pairs: Any) -> tuple[Any, Any]:
    """Return rows and a list of pairs; the rows of duels are stacked."""
    if pairs is None:
        X, pairs = duel_sides(X)
    elif (edges := row_numbers(X, pairs)) is not None:
        return X, edges
    return stack_duels(X, pairs)


def _arrow(table: Any) -> Any:
    """Return a data frame of polars as an Arrow table, everything else as it is."""
    return table.to_arrow() if hasattr(table, "to_arrow") else table


# Clicks


def pairs_from_clicks(
    session: npt.ArrayLike,
    position: npt.ArrayLike,
    clicked: npt.ArrayLike,
    *,
    against: Literal["above", "all"] = "above",
    propensity: npt.ArrayLike | None = None,
) -> tuple[Ints, Floats]:
    """Turn a log of shown results into preferences: clicked results beat skipped results.

    Parameters
    ----------
    session : array-like of shape (entries,)
        The list in which each result was shown (one query asked once); anything hashable, in any order.
    position : array-like of shape (entries,)
        The position of the result in its list; smaller is higher.
    clicked : array-like of shape (entries,)
        Whether it was clicked: True or False, 1 or 0.
    against : {"above", "all"}, default="above"
        Which results of the same list that were not clicked a clicked one beats: those above it ("click >
        skip above"), or all of them.
    propensity : array-like of shape (entries,), optional
        The probability that a user looks at the result, such as ``position ** -0.7``. A pair then weighs one over its
        winner's propensity.

    Returns
    -------
    pairs : ndarray of shape (pairs, 2)
        Winner and loser as entry numbers of the log; with ``row``, the row of X of each entry, ``row[pairs]``
        is the argument of `RankRLS.fit_pairs` (drop pairs of a row with itself first). Sorted by session and
        position of the winner. Empty if no result was skipped.
    weight : ndarray of shape (pairs,)
        All 1 without propensities.

    Examples
    --------
    Of three results the second and third were clicked; both beat the first.

    >>> from rankwise.data import pairs_from_clicks
    >>> pairs, weight = pairs_from_clicks(["s1"] * 3, [1, 2, 3], [0, 1, 1], propensity=[1.0, 0.5, 0.25])
    >>> pairs.tolist()
    [[1, 0], [2, 0]]
    >>> weight.tolist()
    [2.0, 4.0]
    """
    check_choice("against", against, ("above", "all"))
    places = check_numbers("position", position)
    sessions = check_qid(session, places.size, name="session", what="session", beside="position")
    clicks = check_numbers("clicked", clicked, places.size)
    if not np.isin(clicks, (0, 1)).all():
        raise InvalidInputError(
            "clicked must be True or False, 1 or 0.",
            "for counts or dwell times pass a condition, such as count > 0.",
        )
    seen = (
        np.ones(places.size) if propensity is None else check_numbers("propensity", propensity, places.size)
    )
    if (seen <= 0).any() or (seen > 1).any():
        raise InvalidInputError(
            "propensity must hold probabilities above 0 and up to 1.",
            "replace zeros by the smallest propensity you trust.",
        )

    order = np.lexsort((places, sessions.codes))
    _check_positions(places[order], sessions, order)
    is_click = clicks[order] == 1
    clicked_at, passed_at = np.flatnonzero(is_click), np.flatnonzero(~is_click)
    # Losers of a click are a run of `passed_at`: from the session's first to a bound that `against` names.
    session_start, session_end = sessions.offsets[:-1], sessions.offsets[1:]
    here = sessions.codes[order][clicked_at]
    last = session_end[here] if against == "all" else clicked_at
    first_loser = np.searchsorted(passed_at, session_start[here])
    n_losers = np.searchsorted(passed_at, last) - first_loser
    winner = np.repeat(clicked_at, n_losers)
    step = np.arange(winner.size) - np.repeat(np.cumsum(n_losers) - n_losers, n_losers)
    loser = passed_at[np.repeat(first_loser, n_losers) + step]
    pairs = np.column_stack([order[winner], order[loser]]).astype(np.int64, copy=False)
    return pairs, 1.0 / seen[pairs[:, 0]]


def _check_positions(sorted_places: Floats, sessions: Queries, order: Ints) -> None:
    codes = sessions.codes[order]
    twice = (sorted_places[1:] == sorted_places[:-1]) & (codes[1:] == codes[:-1])
    if twice.any():
        at = int(np.argmax(twice))
        raise InvalidInputError(
            f"Session {sessions.ids[codes[at]]!r} has two results at position {sorted_places[at]:g}.",
            "a session is one list shown once: give each showing an id of its own.",
        )
