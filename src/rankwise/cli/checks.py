"""What rows must be like to be learned from, validated on or scored; said of files and options, not of arrays."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from rankwise.cli.inputs import Rows
from rankwise.data.wording import how_many
from rankwise.exceptions import InvalidInputError, MemoryLimitError, MissingQueriesError, NoPairsError
from rankwise.runtime.memory import check_columns_fit

__all__ = ["check_complete", "check_ordered", "check_trainable", "check_valid", "missing_ids"]


def check_complete(rows: Rows) -> Rows:
    """Refuse rows with NaN, which may be looked at and converted, but no ranker learns from or scores."""
    X = rows.X
    values = X.data if scipy.sparse.issparse(X) else X
    if getattr(X, "is_finite", False) or not np.isnan(values).any():
        return rows
    raise InvalidInputError(
        f"{rows.source} has {how_many(int(np.isnan(values).sum()), 'missing values')}, and no method here takes them.",
        "read them as 0 with --missing zero, or fill them in before; stores: convert the source with --missing zero.",
    )


def check_trainable(rows: Rows) -> Rows:
    """Refuse rows that nothing can be learned from."""
    check_complete(rows)
    n_rows, n_columns = (int(n) for n in rows.X.shape)
    if n_columns == 0:
        raise InvalidInputError(
            f"{rows.source} has no columns beside the labels.", "write column:value after the labels."
        )
    if n_rows < 2:
        raise NoPairsError(
            f"{rows.source} has one {'row' if rows.pairs is None else 'item'}, and a ranking takes two.",
            "train on more of them.",
            names_file=True,
        )
    check_ordered(rows)
    if not _varies(rows.X):
        raise InvalidInputError(
            f"no column of {rows.source} varies, so that every row would get the same score.",
            "check that the file holds the features; `rankwise inspect` shows what is in it.",
        )
    try:
        check_columns_fit(n_columns)
    except MemoryLimitError as error:
        raise error.restated(f"{rows.source}: {error.problem[0].lower()}{error.problem[1:]}") from error
    return rows


def check_valid(valid: Rows, train: Rows) -> Rows:
    """Refuse rows on which models of the training rows cannot be validated."""
    check_complete(valid)
    if (valid.pairs is None) != (train.pairs is None):
        raise InvalidInputError(
            f"{valid.source} and {train.source} are of different kinds.",
            "give preferences or rows with labels for both.",
        )
    if train.qid is not None and valid.qid is None:
        raise MissingQueriesError(
            f"{valid.source} has no query ids, and {train.source} has.", _id_hint(valid), names_file=True
        )
    return check_ordered(valid)


def check_ordered(rows: Rows) -> Rows:
    """Refuse rows, or preferences, that say of no two rows which is better."""
    if rows.pairs is not None:
        # A magnitude of 0 is a tie.
        if rows.magnitude is not None and not (rows.magnitude > 0).any():
            raise NoPairsError(
                f"every preference of {rows.source} is a tie (magnitude 0), so that nothing says what is better.",
                "check that --magnitude names the column that says by how much the winner won.",
                names_file=True,
            )
        return rows
    assert rows.y is not None
    if rows.weight is not None and not rows.weight.any():
        raise NoPairsError(
            f"every weight of {rows.source} is 0, so that no row counts.",
            "check that --weight names the column of weights.",
            names_file=True,
        )
    if rows.y.size and (rows.y == rows.y[0]).all():
        raise NoPairsError(
            f"all labels of {rows.source} are {rows.y[0]:g}, so that no row is better than another.",
            "check that --label names the column of labels."
            if rows.names is not None
            else "labels that say which row is better stand at the beginning of each line, as in `2 qid:7 1:0.5`.",
            names_file=True,
        )
    queries = rows.queries
    sizes = queries.sizes
    labels, start = rows.y[queries.order], queries.offsets[:-1]
    if (np.maximum.reduceat(labels, start) > np.minimum.reduceat(labels, start)).any():
        return rows
    what = (
        "every query has a single row" if sizes.max() == 1 else "no query has two rows with different labels"
    )
    raise NoPairsError(
        f"{rows.source}: {what}, so that nothing says which row is better.",
        "check that --qid names the column that rows which compete have in common."
        if rows.names is not None
        else "write the same qid: for rows that compete.",
        names_file=True,
    )


def missing_ids(rows: Rows, what: str) -> MissingQueriesError:
    """Say that rows have no query ids, and what needs them."""
    return MissingQueriesError(
        f"{rows.source} has no query ids, and {what}.", _id_hint(rows), names_file=True
    )


def _id_hint(rows: Rows) -> str:
    return "add --qid COLUMN." if rows.names is not None else "write qid: and an id after each label."


def _varies(X: object) -> bool:
    """Tell whether some column has two values; of what is stored sparsely, whether anything is not 0."""
    if scipy.sparse.issparse(X):
        return getattr(X, "is_finite", False) or bool(np.count_nonzero(X.data))  # type: ignore[attr-defined]
    return bool((X[:1] != X).any())  # type: ignore[index]
