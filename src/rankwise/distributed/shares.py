"""The rows of each actor: whole queries, or a run of rows of one ranking, with about equally many non-zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.data.queries import Queries
from rankwise.pairs.blocks import Folds, QueryBlocks


@dataclass(frozen=True)
class Share:
    """Some rows of the whole, in ascending order: a run of them, or a list where queries were scattered."""

    rows: slice | Ints

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.rows.stop - self.rows.start if isinstance(self.rows, slice) else self.rows.size

    def positions(self, rows: Ints) -> Ints:
        """Return the positions in the share of rows of the whole."""
        return rows - self.rows.start if isinstance(self.rows, slice) else np.searchsorted(self.rows, rows)

    def within(self, first: int, last: int) -> tuple[int, slice | Ints]:
        """Return the first position here of the rows [first, last), and which of those rows are here."""
        if isinstance(self.rows, slice):
            low, high = max(first, self.rows.start), min(last, self.rows.stop)
            return low - self.rows.start, slice(low - first, max(low, high) - first)
        low, high = np.searchsorted(self.rows, (first, last))
        return int(low), self.rows[low:high] - first


class Shares(Sequence[Share]):
    """All shares.

    Parameters
    ----------
    shares : sequence of Share
    owner : (rows,) int32, optional
        The share of each row, where shares are not runs.
    """

    def __init__(self, shares: Sequence[Share], owner: npt.NDArray[np.int32] | None = None) -> None:
        self._shares, self._owner = list(shares), owner
        self._ends = np.cumsum([share.size for share in shares])
        self.n_rows = int(self._ends[-1])

    def __len__(self) -> int:
        return len(self._shares)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - as of a list
        return self._shares[index]

    def owners(self, rows: Ints) -> Ints:
        """Return the share of each of these rows."""
        if self._owner is not None:
            return self._owner[rows].astype(np.int64)
        return np.searchsorted(self._ends, rows, side="right")

    def split(self, per_row: Floats) -> list[Floats]:
        """Return the part of each share of a value per row."""
        return [np.ascontiguousarray(per_row[share.rows]) for share in self]

    def joined(self, parts: Sequence[Floats]) -> Floats:
        """Put the values of all shares into the order of the whole."""
        out = np.empty((self.n_rows, *parts[0].shape[1:]))
        for share, part in zip(self, parts, strict=True):
            out[share.rows] = part
        return out

    def listed(self, rows: Ints) -> list[tuple[Ints, Ints]]:
        """Return for each share the positions of its rows in this list, and in the share."""
        owner = self.owners(rows)
        found = [np.flatnonzero(owner == number) for number in range(len(self))]
        return [(at, share.positions(rows[at])) for share, at in zip(self, found, strict=True)]

    def query_owners(self, order: Ints, query_start: Ints) -> Ints | None:
        """Return the share of each query, none of which is empty; None where a query has rows on several."""
        owner, start = self.owners(order), query_start[:-1]
        own = np.minimum.reduceat(owner, start)
        return None if np.any(own != np.maximum.reduceat(owner, start)) else own

    def whole_queries(
        self, blocks: QueryBlocks, folds: Folds | None
    ) -> list[tuple[QueryBlocks, Folds | None]] | None:
        """Return the queries of every share, for its rows; None where a query has rows on several shares."""
        sizes = np.diff(blocks.query_start)
        if sizes.min(initial=1) == 0:
            return self.whole_queries(*_of_queries(blocks, folds, np.flatnonzero(sizes)))
        own = self.query_owners(blocks.order, blocks.query_start)
        if own is None:
            if folds is None and blocks.row_weight is not None and not blocks.row_weight.all():
                # Rows of weight 0 may have any query id.
                return self.whole_queries(_heavy(blocks), None)
            return None
        parts = []
        for number, share in enumerate(self):
            part, kept = _of_queries(blocks, folds, np.flatnonzero(own == number))
            local = replace(part, order=share.positions(part.order))
            if kept is not None:
                kept = Folds(np.ascontiguousarray(kept.fold[share.rows]), kept.degree, kept.scale)
            parts.append((local, kept))
        return parts

    def one_ranking(
        self, blocks: QueryBlocks, folds: Folds | None
    ) -> list[tuple[QueryBlocks, Folds | None]] | None:
        """Return the rows of every share, where all rows are compared in one ranking; None for other pairs.

        The degree and scale of each part are those of the whole.
        """
        if blocks.scale.size != 1 or blocks.coupling != "all":
            return None
        parts: list[tuple[QueryBlocks, Folds | None]] = []
        owner = self.owners(blocks.order)
        for number, share in enumerate(self):
            piece = np.flatnonzero(owner == number)
            part = replace(
                blocks,
                order=share.positions(blocks.order[piece]),
                query_start=np.array([0, piece.size]),
                segment_start=np.array([0, piece.size]),
                row_weight=None if blocks.row_weight is None else blocks.row_weight[piece],
            )
            kept = None if folds is None else replace(folds, fold=folds.fold[share.rows].copy(), scored=None)
            parts.append((part, kept))
        return parts


def _of_queries(blocks: QueryBlocks, folds: Folds | None, queries: Ints) -> tuple[QueryBlocks, Folds | None]:
    return blocks.chosen(queries), None if folds is None else folds.chosen(blocks, queries)


def _heavy(blocks: QueryBlocks) -> QueryBlocks:
    """Return the blocks without rows of weight 0."""
    assert blocks.row_weight is not None
    kept = blocks.row_weight > 0
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return replace(
        blocks,
        order=blocks.order[kept],
        query_start=before[blocks.query_start],
        segment_start=before[blocks.segment_start],
        row_weight=blocks.row_weight[kept],
    )


def cut(work: Ints, queries: Queries | None, n_shares: int) -> Shares:
    """Cut the rows into shares of about equal work; rows of one query go to one share, wherever they are."""
    if queries is None or len(queries) == 1:
        return Shares(_runs(np.cumsum(work), np.arange(1, work.size + 1), n_shares))
    codes = queries.codes
    ends = np.flatnonzero(np.concatenate((codes[1:] != codes[:-1], [True]))) + 1
    if ends.size == len(queries):
        return Shares(_runs(np.cumsum(work)[ends - 1], ends, n_shares))
    first = np.full(len(queries), codes.size)
    np.minimum.at(first, codes, np.arange(codes.size))
    in_order = np.argsort(first)
    total = np.bincount(codes, weights=work, minlength=len(queries))[in_order]
    owner = np.empty(len(queries), dtype=np.int32)
    owner[in_order] = _balanced(np.cumsum(total), n_shares)
    of_row = owner[codes]
    present = np.unique(of_row)
    of_row = np.searchsorted(present, of_row).astype(np.int32)
    return Shares([Share(np.flatnonzero(of_row == number)) for number in range(present.size)], of_row)


def _runs(total: Ints, ends: Ints, n_shares: int) -> list[Share]:
    share = _balanced(total, n_shares)
    last = np.flatnonzero(np.concatenate((share[1:] != share[:-1], [True])))
    stops = ends[last].tolist()
    return [Share(slice(low, high)) for low, high in zip([0, *stops[:-1]], stops, strict=True)]


def _balanced(total: Ints | Floats, n_shares: int) -> npt.NDArray[np.int32]:
    """Return the share of each unit, by the middle of its work in the running total."""
    middle = total - np.diff(total, prepend=0) / 2
    share = np.minimum(middle * n_shares / max(total[-1], 1), n_shares - 1)
    found: npt.NDArray[np.int32] = share.astype(np.int32)
    return found
