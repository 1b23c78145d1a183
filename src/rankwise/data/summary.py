"""Summary statistics of a data set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankwise.arrays import InMemory, is_sparse
from rankwise.data.queries import Queries, one_query

_LEVELS_SHOWN = 12
_LOOKED_AT = 50_000_000  # values: a second or two
_GRADES = 31
_ONE = {"queries": "query"}  # the others lose their last letter


@dataclass(frozen=True)
class DataSummary:
    """Figures of a data set.

    Attributes
    ----------
    rows, columns, queries : int
    filled : float
        The share of cells that are not zero.
    sizes : tuple (smallest, median, largest)
        Rows in a query.
    pairs : int
        Pairs of rows of a query with different labels.
    unordered : int
        Queries without such a pair.
    labels : list of (str, int)
        The number of rows with each label, or in each range if there are many labels.
    is_graded : bool
        Whether labels are whole numbers from 0 up, few enough for gains of 2^y.
    empty_columns, constant_columns, missing : int
        Columns that are zero everywhere; that have one other value everywhere; cells that are NaN.
    query_columns : list of int
        Columns that vary, but never inside a query: no ranker can use them.
    problems : list of str
        Descriptions of problems that will affect a model.
    """

    rows: int
    columns: int
    queries: int
    filled: float
    sizes: tuple[int, float, int]
    pairs: int
    unordered: int
    labels: list[tuple[str, int]]
    is_graded: bool
    empty_columns: int
    constant_columns: int
    missing: int
    query_columns: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def summarise(X: InMemory, labels: npt.NDArray[np.float64] | None, queries: Queries | None) -> DataSummary:
    """Look at rows, labels and queries.

    Parameters
    ----------
    X : ndarray or sparse matrix
    labels : (rows,) float64, optional
    queries : Queries, optional
        None means one ranking.
    """
    n_rows, n_columns = (int(n) for n in X.shape)
    queries = one_query(n_rows) if queries is None else queries
    low, high, filled, missing = _columns(X)
    # A column that is 0 in some rows and something else in others varies: its range then holds 0 and more.
    constant = int(((low == high) & (low != 0)).sum())
    empty = int(((low == 0) & (high == 0)).sum()) + n_columns - low.size
    pairs, unordered = (0, 0) if labels is None else _ordered_pairs(labels, queries)
    sizes = queries.sizes
    summary = DataSummary(
        rows=n_rows, columns=n_columns, queries=len(queries), filled=filled, pairs=pairs, unordered=unordered,
        sizes=(int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        labels=[] if labels is None else label_counts(labels),
        is_graded=labels is not None and is_graded(labels),
        empty_columns=empty, constant_columns=constant, missing=missing,
        query_columns=constant_inside_queries(X, queries) if len(queries) > 1 else [],
    )  # fmt: skip
    summary.problems.extend(_problems(summary, low, high, has_labels=labels is not None))
    return summary


def constant_inside_queries(X: InMemory, queries: Queries) -> list[int]:
    """Return the columns that vary between queries and never inside one; [] for very large matrices."""
    if X.shape[0] * X.shape[1] > _LOOKED_AT or getattr(X, "is_on_disk", False):
        return []
    rows = X.toarray() if is_sparse(X) else X
    ordered, starts = rows[queries.order], queries.offsets[: len(queries)]
    low, high = (reduce.reduceat(ordered, starts, axis=0) for reduce in (np.minimum, np.maximum))
    inside, between = (low != high).any(axis=0), (low != low[:1]).any(axis=0)
    return [int(at) for at in np.flatnonzero(~inside & between)]


def is_graded(labels: npt.NDArray[np.float64]) -> bool:
    """Tell whether labels are grades: whole numbers from 0 up, few enough for gains of 2^y."""
    return bool(
        (labels >= 0).all() and (labels == np.floor(labels)).all() and labels.max(initial=0) < _GRADES
    )


def _columns(X: InMemory) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float, int]:
    """Return each column's smallest and largest value, the share of filled cells, and the number of NaN.

    For a sparse matrix with more columns than entries, only the columns that occur are returned.
    """
    n_cells = max(1, int(X.shape[0]) * int(X.shape[1]))
    if is_sparse(X):
        missing = int(np.isnan(X.data).sum())
        filled, rows = int(np.count_nonzero(X.data)) / n_cells, X
        if X.shape[1] > X.nnz:  # numbers that are hashes reach billions: nothing may be made for each of them
            occurring, position = np.unique(X.indices, return_inverse=True)
            rows = scipy.sparse.csr_matrix(
                (X.data, position.ravel(), X.indptr), shape=(X.shape[0], occurring.size)
            )
        low, high = (getattr(rows, f"nan{side}")(axis=0).toarray().ravel() for side in ("min", "max"))
        return low, high, filled, missing
    is_missing = np.isnan(X)
    filled = int(np.count_nonzero(X)) / n_cells
    low = np.where(is_missing, np.inf, X).min(axis=0)
    high = np.where(is_missing, -np.inf, X).max(axis=0)
    return low, high, filled, int(is_missing.sum())


def _ordered_pairs(labels: npt.NDArray[np.float64], queries: Queries) -> tuple[int, int]:
    """Count pairs of a query with different labels, and queries without any."""
    values, levels = np.unique(labels, return_inverse=True)
    _, first, counts = np.unique(
        queries.codes * values.size + levels.ravel(), return_index=True, return_counts=True
    )
    tied = np.bincount(queries.codes[first], weights=counts.astype(float) ** 2, minlength=len(queries))
    ordered = (queries.sizes.astype(float) ** 2 - tied) / 2
    return round(float(ordered.sum())), int((ordered == 0).sum())


def label_counts(labels: npt.NDArray[np.float64]) -> list[tuple[str, int]]:
    """Count the rows of each label, or of ranges of labels where there are many."""
    values, counts = np.unique(labels, return_counts=True)
    if values.size <= _LEVELS_SHOWN:
        return [(f"{value:g}", int(count)) for value, count in zip(values, counts, strict=True)]
    counts, edges = np.histogram(labels, bins=_LEVELS_SHOWN)
    return [(f"{edges[i]:.3g} to {edges[i + 1]:.3g}", int(count)) for i, count in enumerate(counts)]


def _problems(
    summary: DataSummary, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], *, has_labels: bool
) -> list[str]:
    found = []
    if has_labels and summary.pairs == 0:
        found.append("no query has two rows with different labels: there is nothing to learn from")
    cells, columns = summary.rows * summary.columns, summary.columns
    unordered = 0 if found else summary.unordered
    inside = "one value inside every query: cross it with another column (multiply the two), or leave it out"
    for count, total, things, verbs, problem in (
        (unordered, summary.queries, "queries", "has|have", "no two rows with different labels"),
        (summary.missing, cells, "cells", "is|are", "NaN: impute, or read as 0"),
        (summary.empty_columns, columns, "columns", "is|are", "0 everywhere"),
        (summary.constant_columns, columns, "columns", "has|have", "one value everywhere"),
        (len(summary.query_columns), columns, "columns", "has|have", inside),
    ):
        if count:
            found.append(f"{count:,} of {how_many(total, things)} {verbs.split('|')[count > 1]} {problem}")
    widths = (high - low)[(high > low) & np.isfinite(high - low)]
    if widths.size and widths.max() > 1000 * np.median(widths):
        found.append("columns have very different ranges: scale them (`rankwise fit` does)")
    if not np.isfinite(low).all() or not np.isfinite(high).all():
        found.append("some cells are infinite, or a column is NaN throughout")
    return found


def how_many(count: int, things: str) -> str:
    """Say how many there are: ``1 query``, ``2 queries``, ``1,000 rows``."""
    return f"{count:,} {things if count != 1 else _ONE.get(things, things.removesuffix('s'))}"
