"""Contributions of each column to the scores of rows."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import ArrayLike, Floats, Matrix, MatrixLike, is_sparse
from rankwise.data.containers import as_rows
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.explanations.explanation import Explanation, Part
from rankwise.formula.folding import folded
from rankwise.formula.formula import Column, Formula, Table
from rankwise.formula.reading import formula_of, rows_for
from rankwise.formula.tables import codes_as_written, rows_as_written
from rankwise.formula.view import ModelView

Inputs = tuple[tuple[int, ...], ...]
_OTHER_ROWS = 32  # whose values mask those of a row


class _Contributions(NamedTuple):
    """The contribution of each part to the scores of some rows.

    Attributes
    ----------
    names : list of str
    inputs : list of tuple of tuple of int
        Which columns a part is about: one, two of a surface; each is several where it is a product.
    values : (rows, parts) float64
    constant : float
    """

    names: list[str]
    inputs: list[Inputs]
    values: Floats
    constant: float


def explain(
    model: BaseEstimator,
    X: MatrixLike,
    qid: ArrayLike | None = None,
    *,
    rows: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
    output: int | None = None,
) -> list[Explanation]:
    """Explain the score of each row by the contributions of its columns.

    The contributions are of the user's own columns, through imputers, encoders and scalers, and add up to what
    `predict` returns. With a kernel, the parts are its basis rows. Boosted trees are explained by masking: a part is
    how much the score falls, on average, where its column has the values of other rows of X.

    Parameters
    ----------
    model : estimator or sklearn.pipeline.Pipeline
        A fitted ranker, or a pipeline that ends in one.
    X : array-like, sparse matrix or data frame of shape (rows, columns)
        Whole queries, where the model scales inside queries.
    qid : array-like of shape (rows,), optional
        Needed where the model scales inside queries.
    rows : sequence of int, optional
        Which rows to explain; by default all.
    feature_names : sequence of str, optional
    output : int, optional
        Which one, where the model has several.

    Returns
    -------
    list of Explanation
        One per row, in the order of `rows`; each has ``text()``, ``to_html()`` and ``plot()``.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), [0, 1, 2]
    >>> model = rankwise.RankRLS().fit(X, y)
    >>> why = rankwise.explain(model, X, feature_names=["price", "age"])[2]
    >>> bool(abs(sum(part.contribution for part in why.parts) - model.predict(X)[2]) < 1e-12)
    True
    """
    found, own, chosen = _explained(model, X, qid, rows, feature_names, output)
    table = Table(own, qid)
    totals = (found.values.sum(axis=1) + found.constant).tolist()
    return [
        Explanation(f"row {row}", total, found.constant, _parts(found, numbers, table, [row]))
        for row, total, numbers in zip(chosen, totals, found.values, strict=True)
    ]


def explain_pair(
    model: BaseEstimator,
    X: MatrixLike,
    i: int,
    j: int,
    qid: ArrayLike | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    output: int | None = None,
) -> Explanation:
    """Explain the difference of the scores of rows i and j by the contributions of columns.

    Parameters
    ----------
    model, X, qid, feature_names, output
        As in `explain`.
    i, j : int
        Rows of one query.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> model = rankwise.RankRLS(alpha=0.1).fit(X, [0, 1, 2, 3])
    >>> why = rankwise.explain_pair(model, X, 3, 0, feature_names=["rating", "price"])
    >>> [part.name for part in why.parts], bool(np.isclose(why.total, np.subtract(*model.predict(X)[[3, 0]])))
    (['rating'], True)
    """
    found, own, chosen = _explained(model, X, qid, [i, j], feature_names, output)
    queries = check_qid(qid, own.shape[0]).codes
    if queries[chosen[0]] != queries[chosen[1]]:
        raise InvalidInputError(
            f"Rows {i} and {j} are of different queries, whose scores cannot be compared.",
            "name two rows of one query.",
        )
    difference = found.values[0] - found.values[1]
    parts = _parts(found, difference, Table(own, qid), chosen)
    return Explanation(f"row {i} against row {j}", float(difference.sum()), 0.0, parts)


def contributions(
    formula: Formula, X: MatrixLike, qid: ArrayLike | None, rows: Sequence[int]
) -> _Contributions:
    """Return the contributions of a formula's parts to the scores of some rows; queries are scaled by all of X."""
    table = Table(X, qid)
    parts: dict[Inputs, Floats] = {}
    for term in formula.terms:
        added = term.weight * table.numbers(term.column)[list(rows)]
        parts[(term.column.inputs,)] = parts.get((term.column.inputs,), 0.0) + added
    for surface in formula.surfaces:
        key = tuple(column.inputs for column in surface.columns)
        added = surface.apply(*(table.values(column)[list(rows)] for column in surface.columns))
        parts[key] = parts.get(key, 0.0) + added
    inputs = list(parts)
    names = [formula.title(key) for key in inputs]
    values = np.column_stack(list(parts.values())) if parts else np.zeros((len(rows), 0))
    if formula.kernel is not None:
        kernel = table.kernel_values(formula.kernel)[list(rows)] * formula.kernel.dual
        names += [f"basis row {number}" for number in range(kernel.shape[1])]
        inputs += [()] * kernel.shape[1]
        values = np.column_stack([values, kernel])
    return _Contributions(names, inputs, values, formula.constant)


def _explained(
    model: BaseEstimator,
    given: MatrixLike,
    qid: ArrayLike | None,
    rows: Sequence[int] | None,
    names: Sequence[str] | None,
    output: int | None,
) -> tuple[_Contributions, Matrix, list[int]]:
    """Return the contributions to the scores of some rows, the rows as people write them, and their numbers."""
    view = ModelView.of(model)
    if view.has_trees:
        X: Matrix = as_rows("X", view.numbers(given))
        chosen = _chosen(X.shape[0], rows)
        own = codes_as_written(view.encoder, np.asarray(X)) if view.encoder and view.encoder.codes else X
        return _by_masking(view, X, chosen, names), own, chosen
    formula = folded(formula_of(model, names, output=output))
    if formula.needs_whole_queries and qid is None:
        raise MissingQueriesError(
            "The model scales columns inside queries, and the rows came without query ids.",
            "pass whole queries and qid=.",
        )
    X = as_rows("X", rows_for(model, given))
    if X.shape[1] != len(formula.names):
        raise InvalidInputError(
            f"X has {X.shape[1]} columns, and the model was fitted with {len(formula.names)}.",
            "pass rows with the columns of the fit, in their order.",
        )
    check_qid(qid, X.shape[0])
    chosen = _chosen(X.shape[0], rows)
    found = contributions(formula, X, qid, chosen)
    return found, X if view.encoder is None else rows_as_written(view.encoder, np.asarray(X)), chosen


def _by_masking(
    view: ModelView, X: Matrix, chosen: Sequence[int], names: Sequence[str] | None
) -> _Contributions:
    """Return how much lower scores are where a column has the values of other rows.

    Columns of trees act together, so that the last part is the rest of the score.
    """
    rows = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
    others = rows[np.unique(np.linspace(0, len(rows) - 1, _OTHER_ROWS).astype(np.int64))]
    own = rows[list(chosen)]
    values = np.zeros((len(own), rows.shape[1] + 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        scores, constant = view.predict(own), float(np.mean(view.predict(others)))
        for column in range(rows.shape[1]):
            masked = np.repeat(own, len(others), axis=0)
            masked[:, column] = np.tile(others[:, column], len(own))
            values[:, column] = scores - view.predict(masked).reshape(len(own), -1).mean(axis=1)
    values[:, -1] = scores - constant - values.sum(axis=1)
    called = view.names(rows.shape[1], names, of_numbers=True)
    inputs = [((column,),) for column in range(rows.shape[1])]
    return _Contributions([*called, "columns together"], [*inputs, ()], values, constant)


def _chosen(n_rows: int, rows: Sequence[int] | None) -> list[int]:
    chosen = [operator.index(row) for row in (range(n_rows) if rows is None else rows)]
    for row in chosen:
        if not -n_rows <= row < n_rows:
            raise InvalidInputError(
                f"There is no row {row} of {n_rows}.", f"name rows from 0 to {n_rows - 1}."
            )
    return [row % n_rows for row in chosen]


def _parts(found: _Contributions, numbers: Floats, table: Table, rows: Sequence[int]) -> tuple[Part, ...]:
    """Return the parts that contribute, the largest first, with the rows' values of their columns."""
    out = []
    for at in np.argsort(-np.abs(numbers), kind="stable").tolist():
        if numbers[at] != 0:
            columns = [table.values(Column(number)) for own in found.inputs[at] for number in own]
            values = zip(*(column[list(rows)].tolist() for column in columns), strict=True)
            shown = tuple(one[0] if len(one) == 1 else one for one in values)
            out.append(Part(found.names[at], shown, float(numbers[at])))
    return tuple(out)
