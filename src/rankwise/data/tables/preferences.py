"""Lists of comparisons come in: a table of winners and losers by id, and a table of the items they name."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray
from rankwise.data.tables.arrow_columns import amounts_of, entries_of, ids_of
from rankwise.data.tables.arrow_files import open_sources
from rankwise.data.tables.column_names import check_columns
from rankwise.data.tables.plan import TablePlan
from rankwise.data.tables.table_source import TableSource, import_pyarrow
from rankwise.data.validation import check_pairs
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PreferenceTable", "load_preferences", "read_preferences"]

_ROWS = 1 << 16
_SHOWN = 5


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
        One row a comparison: who won, who lost.
    items : the same
        One row an item: its id and its features.
    item_id : str, default="id"
        The column of `items` that the comparisons refer to. Ids in CSV files are taken as they are written.
    winner, loser : str
        The columns of `pairs` with the ids of the two items.
    magnitude, weight : str, optional
        The columns with what `fit_pairs` knows by these names; by default columns named so, if there are any.
    features, embedding, missing, dtype
        Of the items, as in `load_table`.

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
    comparisons = open_sources(pairs, text_columns=(winner, loser))
    catalogue = open_sources(items, text_columns=(item_id,))
    for source in catalogue:
        check_columns(source, [item_id], "item_id")
    plan = TablePlan.of(
        catalogue,
        label=None,
        qid=item_id,
        features=features,
        embedding=embedding,
        missing=missing,
        dtype=dtype,
    )
    return read_preferences(comparisons, plan, winner=winner, loser=loser, magnitude=magnitude, weight=weight)


def read_preferences(
    comparisons: Sequence[TableSource],
    items: TablePlan,
    *,
    winner: str,
    loser: str,
    magnitude: str | None = None,
    weight: str | None = None,
) -> PreferenceTable:
    """Read tables that are open; what is the query id in the plan of the items is their id. See `load_preferences`."""
    assert items.qid is not None
    named = _amount_columns(comparisons[0], magnitude, weight)
    for source in comparisons:
        check_columns(source, [winner], "winner")
        check_columns(source, [loser], "loser")
        for role, column in named.items():
            check_columns(source, [column], role)
    ids = _Ids.of(items.sources, items.qid)
    X = items.load().X
    edges = np.concatenate([ids.resolve(source, winner, loser) for source in comparisons])
    amounts = {
        role: amounts_of(comparisons, column, "comparison", _IF_NEGATIVE[role])
        for role, column in named.items()
    }
    checked = check_pairs(edges, X.shape[0], amounts.get("magnitude"), amounts.get("weight"))
    return PreferenceTable(X, edges, checked.magnitude, checked.weight, ids.values, items.names)


class _Ids:
    """The ids of the items, and where each stands."""

    def __init__(self, values: AnyArray, names: str) -> None:
        self.values, self._names = values, names
        self._set = import_pyarrow().array(values)

    @classmethod
    def of(cls, sources: Sequence[TableSource], column: str) -> _Ids:
        """Read the ids of a catalogue, which must differ."""
        seen: dict[Any, str] = {}
        parts = []
        for source in sources:
            row = 0
            for batch in source.batches([column], _ROWS):
                values = ids_of(source, column, batch.column(0), row, "the id of an item")
                for at, value in enumerate(values.tolist()):
                    here = f"{source.name}, {source.place(row + at)}"
                    if seen.setdefault(value, here) != here:
                        raise InvalidInputError(
                            f"Item {value!r} comes twice: in {seen[value]}, and in {here}.",
                            "keep one row per item.",
                        )
                parts.append(values)
                row += batch.num_rows
        if not parts:
            raise InvalidInputError(
                "The table of items has no rows.", "check that the file is the one you mean."
            )
        return cls(np.concatenate(parts), sources[0].name)

    def resolve(self, source: TableSource, winner: str, loser: str) -> npt.NDArray[np.int64]:
        """Return row numbers of winner and loser for each comparison of a table."""
        pa = import_pyarrow()
        edges: list[npt.NDArray[np.int64]] = []
        unknown: list[str] = []
        n_unknown = row = 0
        for batch in source.batches([winner, loser], _ROWS):
            sides = []
            for name, role in ((winner, "winner"), (loser, "loser")):
                column = batch.column(batch.schema.get_field_index(name))
                values = pa.array(ids_of(source, name, column, row, f"the {role}"))
                wanted = self._set
                if values.type != wanted.type:
                    values, wanted = _as_text(pa, values), _as_text(pa, wanted)
                place = pa.compute.fill_null(pa.compute.index_in(values, value_set=wanted), -1)
                rows = np.asarray(place, dtype=np.int64)
                missed = np.flatnonzero(rows < 0)
                n_unknown += missed.size
                unknown += [
                    f"{_shown(source, values, at)} ({role} in {source.place(row + int(at))})"
                    for at in missed[: _SHOWN - len(unknown)]
                ]
                sides.append(rows)
            itself = np.flatnonzero((sides[0] == sides[1]) & (sides[0] >= 0))
            if itself.size:
                at = int(itself[0])
                raise InvalidInputError(
                    f"{source.name}, {source.place(row + at)}: {_shown(source, values, at)} is preferred to itself.",
                    "drop such comparisons.",
                )
            edges.append(np.column_stack(sides))
            row += batch.num_rows
        if n_unknown:
            more = f", and {n_unknown - len(unknown)} more" if n_unknown > len(unknown) else ""
            raise InvalidInputError(
                f"{source.name} names items that are not in {self._names}: {', '.join(unknown)}{more}.",
                "add those items with their features, or drop those comparisons.",
            )
        return np.concatenate(edges) if edges else np.empty((0, 2), dtype=np.int64)


def _shown(source: TableSource, ids: pa.Array, at: int) -> str:
    return repr(entries_of(ids.slice(int(at), 1), f"{source.name}, {source.place(int(at))}")[0])


def _as_text(pa: ModuleType, values: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type):
        whole = values.cast(pa.int64(), safe=False)
        if whole.cast(values.type).equals(values):
            values = whole  # a join with missing rows turns 7 into 7.0
    return values.cast(pa.string())


def _amount_columns(source: TableSource, magnitude: str | None, weight: str | None) -> dict[str, str]:
    """Return the columns of magnitude and weight: those that were named, or that are named so."""
    named = {}
    for role, column in (("magnitude", magnitude), ("weight", weight)):
        if column is not None:
            named[role] = column
        elif role in source.schema.names:
            named[role] = role
    return named


_IF_NEGATIVE = {
    "magnitude": "swap winner and loser instead; 0 says that they tie.",
    "weight": "use 0 to leave a comparison out.",
}
