"""Contributions of each column to the scores of rows, and their display as text, HTML and figure."""

from __future__ import annotations

import html
import math
import operator
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import ArrayLike, Floats, Matrix, MatrixLike, is_sparse
from rankwise.data.containers import as_rows
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError, MissingPackageError, MissingQueriesError
from rankwise.formula.formula import Column, Formula, Table, folded
from rankwise.formula.reading import formula_of, rows_for
from rankwise.formula.tables import codes_as_written, rows_as_written
from rankwise.formula.view import ModelView

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


# --- display ---

_WIDTH = 24  # letters of the longest bar in text


@dataclass(frozen=True)
class Part:
    """The contribution of one column, product or pair of columns, or basis row.

    Attributes
    ----------
    name : str
        Of the column, in the user's words; ``a:b`` for a product, ``a × b`` for a pair; ``basis row 3`` for a
        kernel.
    values : tuple
        The row's values, in the column's own units; for a pair of rows, those of both.
    contribution : float

    Examples
    --------
    >>> from rankwise.explanations import Part
    >>> part = Part("price", (9.5,), -0.25)
    >>> part.name, part.contribution
    ('price', -0.25)
    """

    name: str
    values: tuple[object, ...]
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """Parts that add up to a score, or to the difference of two.

    Attributes
    ----------
    title : str
    total : float
        The score that `predict` returns, or the difference of two.
    constant : float
        The part of the score that belongs to no column; 0 in a difference.
    parts : tuple of Part
        The largest first; those that contribute nothing are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> model = rankwise.RankRLS(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> (why,) = rankwise.explain(model, np.array([[2.0]]), feature_names=["rating"])
    >>> bool(abs(why.constant + sum(part.contribution for part in why.parts) - why.total) < 1e-12)
    True
    """

    title: str
    total: float
    constant: float
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return self.text()

    def text(self, n_parts: int = 12) -> str:
        """Return it as lines of text.

        Parameters
        ----------
        n_parts : int
            How many parts are shown; the others become one line.
        """
        rows = self._rows(n_parts)
        width = max(len(name) for name, _, _ in rows)
        values = max(len(value) for _, value, _ in rows)
        largest = max(abs(number) for _, _, number in rows) or 1.0
        lines = [self.title]
        for name, value, number in rows:
            bar = ("+" if number > 0 else "-") * round(_WIDTH * abs(number) / largest)
            lines.append(f"  {name.ljust(width)}  {value.rjust(values)}  {number:+11.4g}  {bar}".rstrip())
        lines.append(f"  {'total'.ljust(width)}  {''.rjust(values)}  {self.total:+11.4g}")
        return "\n".join(lines)

    def to_html(self, n_parts: int = 12) -> str:
        """Return it as a table in HTML that needs nothing else; everything from outside is escaped."""
        rows = self._rows(n_parts)
        largest = max(abs(number) for _, _, number in rows) or 1.0
        bars = [
            f'<div style="height:.7em;width:{8 * abs(number) / largest:.2f}em;'
            f'background:{"#2a78b5" if number > 0 else "#c0504d"}"></div>'
            for *_, number in rows
        ]
        cells = [[name, value, f"{number:+.4g}"] for name, value, number in rows]
        head = ["column", "value", "contribution"]
        return html_table(self.title, head, [*cells, ["total", "", f"{self.total:+.4g}"]], [*bars, ""])

    _repr_html_ = to_html

    def plot(self, ax: Axes | None = None, n_parts: int = 12) -> Axes:
        """Draw bars with matplotlib, and return the axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
        n_parts : int
        """
        rows = self._rows(n_parts)
        if ax is None:
            _, ax = import_pyplot().subplots(figsize=(6, 0.6 + 0.3 * len(rows)))
        labels = [f"{name} = {value}" if value else name for name, value, _ in rows]
        numbers = [number for _, _, number in rows]
        ax.barh(range(len(rows)), numbers, color=["C0" if number > 0 else "C3" for number in numbers])
        ax.set_yticks(range(len(rows)), labels)
        ax.invert_yaxis()
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_title(self.title)
        ax.set_xlabel("contribution")
        return ax

    def _rows(self, n_parts: int) -> list[tuple[str, str, float]]:
        rows = [(part.name, shown(part.values), part.contribution) for part in self.parts[:n_parts]]
        others = self.parts[n_parts:]
        if others:
            rows.append((f"{len(others):,} others", "", math.fsum(part.contribution for part in others)))
        if self.constant or not rows:
            rows.append(("constant", "", self.constant))
        return rows


def html_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], bars: Sequence[str] | None = None
) -> str:
    """Return a table in HTML that needs nothing else; all but the markup of bars is escaped."""
    heads = "".join(f"<th>{html.escape(one)}</th>" for one in head)
    lines = ""
    for row, bar in zip(rows, bars or [""] * len(rows), strict=True):
        first, *others = map(html.escape, row)
        cells = "".join(f'<td style="text-align:right">{cell}</td>' for cell in others)
        lines += f"<tr><td>{first}</td>{cells}{f'<td>{bar}</td>' if bars else ''}</tr>"
    top = f"<caption>{html.escape(title)}</caption><thead><tr>{heads}</tr></thead>"
    return f'<table class="rankwise">{top}<tbody>{lines}</tbody></table>'


def import_pyplot() -> ModuleType:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only when something is drawn
    except ImportError as error:
        raise MissingPackageError(
            "Pictures need matplotlib, which is not installed.", "pip install 'rankwise[report]'."
        ) from error
    return plt


def shown(values: Sequence[object]) -> str:
    """Return the text of a cell: one value, or those of a pair of rows."""
    return " / ".join(_one(value) for value in values)


def _one(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_one(part) for part in value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)
