"""What a score is a sum of: weighted columns, or values read off curves and surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rankwise.additive.shapes import each_term_alone
from rankwise.formula.view import Doubles, ModelView, dense_rows

__all__ = ["ScoreParts", "TermParts", "parts_of"]


class ScoreParts(Protocol):
    """The parts of a score.

    Attributes
    ----------
    names : list of str
        One per part.
    description : str
        What a score is a sum of, inside "A score is ...".
    """

    names: Sequence[str]
    description: str

    def of(self, X: Any, prepared: Any, rows: npt.NDArray[np.int64]) -> tuple[Doubles, Doubles]:
        """Return what each part adds to the scores of some rows, and the value of its column, NaN where it has two."""


class ColumnParts:
    """Weights times columns."""

    def __init__(self, weights: Doubles, names: Sequence[str], *, is_scaled: bool) -> None:
        self.weights, self.names = weights, names
        self.description = f"a sum over columns of weight × value{' after scaling' if is_scaled else ''}"

    def of(self, X: Any, prepared: Any, rows: npt.NDArray[np.int64]) -> tuple[Doubles, Doubles]:
        """Return what each column adds, and its value."""
        return dense_rows(prepared, rows) * self.weights, dense_rows(X, rows)


class TermParts:
    """Curves and surfaces.

    Attributes
    ----------
    ranker : AdditiveRanker
    columns : list of str
        Names of the columns that the ranker was given.
    """

    def __init__(self, ranker: Any, columns: Sequence[str]) -> None:
        self.ranker, self.columns = ranker, columns
        terms = ranker.terms_
        self.names: Sequence[str] = [
            *(columns[curve.column] for curve in terms.curves),
            *(f"{columns[one.first.column]} × {columns[one.second.column]}" for one in terms.surfaces),
        ]
        self.description = "a sum of values that are read off the curves and surfaces below"

    def of(self, X: Any, prepared: Any, rows: npt.NDArray[np.int64]) -> tuple[Doubles, Doubles]:
        """Return what each curve and surface adds, and the values of the curves' columns."""
        terms = self.ranker.terms_
        own = dense_rows(prepared, rows)
        # As they come where a column is still the same one, and as the ranker got them otherwise.
        shown = dense_rows(X, rows) if X.shape[1] == own.shape[1] else own
        values = np.full((rows.size, len(self.names)), np.nan)
        values[:, : len(terms.curves)] = shown[:, [curve.column for curve in terms.curves]]
        return np.column_stack(list(each_term_alone(own, terms, self.ranker.values_, 1))), values


def parts_of(view: ModelView, names: Sequence[str]) -> ScoreParts | None:
    """Return the parts that scores of a model are sums of; None where they are not.

    Parameters
    ----------
    view : ModelView
    names : list of str
        Of the user's columns.
    """
    weights = view.weights
    if weights is not None and weights.size == len(names):
        return ColumnParts(weights, names, is_scaled=bool(view.steps))
    if hasattr(view.ranker, "terms_"):
        n_columns = int(view.ranker.n_features_in_)
        return TermParts(view.ranker, view.prepared_names(n_columns, names))
    return None
