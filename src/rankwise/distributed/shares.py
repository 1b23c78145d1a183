"""The rows of each actor: whole queries, or a run of rows of one ranking, with about equally many non-zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.data.queries import Queries
from rankwise.pairs.blocks import Folds, QueryBlocks

Part = tuple[QueryBlocks, Folds | None]


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

    def parts(self, blocks: QueryBlocks, folds: Folds | None = None) -> tuple[list[Part], bool] | None:
        """Return the pairs and folds of every share's rows, and whether they are parts of one ranking.

        The degree and scale of such a part are those of the whole, and pairs between two shares are in none of them.
        None where a query has rows on several shares and is no ranking in which all rows are compared.
        """
        own = self.query_owners(blocks.order, blocks.query_start)
        if own is None and (blocks.scale.size > 1 or blocks.coupling != "all"):
            return None
        parts: list[Part] = []
        owner = self.owners(blocks.order)
        for number, share in enumerate(self):
            kept = folds
            if own is not None:
                queries = np.flatnonzero(own == number)
                part = blocks.chosen(queries)
                kept = None if folds is None else folds.chosen(blocks, queries)
            else:
                piece = np.flatnonzero(owner == number)
                ends = np.array([0, piece.size])
                weight = None if blocks.row_weight is None else blocks.row_weight[piece]
                part = replace(blocks, order=blocks.order[piece], query_start=ends, segment_start=ends)
                part = replace(part, row_weight=weight)
            if kept is not None:
                kept = replace(kept, fold=kept.fold[share.rows].copy(), scored=None)
            parts.append((replace(part, order=share.positions(part.order)), kept))
        return parts, own is None


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
