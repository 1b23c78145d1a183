"""Scores as sums over the user's own columns, whatever prepares them, and over the basis rows of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.exceptions import InvalidInputError
from rankwise.explanations.explaining import contributions
from rankwise.formula.folding import folded
from rankwise.formula.formula import Formula
from rankwise.formula.reading import formula_of
from rankwise.formula.view import Doubles, dense_rows

__all__ = ["FormulaParts", "formula_parts"]


class FormulaParts:
    """What each of the user's columns, and each pair of them, adds to a score, as `rankwise.explain` has it."""

    def __init__(self, formula: Formula, qid: Any) -> None:
        self._formula, self._qid = formula, qid
        inputs = [(term.column.inputs,) for term in formula.terms]
        pairs = [tuple(column.inputs for column in surface.columns) for surface in formula.surfaces]
        self._inputs = list(dict.fromkeys([*inputs, *pairs]))
        by_column = [formula.title(own) for own in self._inputs]
        n_basis = 0 if formula.kernel is None else formula.kernel.dual.size
        self.names: Sequence[str] = [*by_column, *(f"basis row {number}" for number in range(n_basis))]
        of_columns = "what each column adds, after all that prepares it"
        of_basis = "what the kernel adds: how alike the row is to each of its basis rows, times a weight"
        told = [*([of_columns] if by_column else []), *([of_basis] if n_basis else [])]
        self.description = f"a sum of {', and of '.join(told)}"

    def of(self, X: Any, prepared: Any, rows: npt.NDArray[np.int64]) -> tuple[Doubles, Doubles]:
        """Return what each column or basis row adds, and the value of a column."""
        found = self._added(X, rows)
        shown = dense_rows(X, rows)
        values = np.full((rows.size, len(self.names)), np.nan)
        for at, own in enumerate(self._inputs):
            numbers = [number for inputs in own for number in inputs]
            if len(numbers) == 1:
                values[:, at] = shown[:, numbers[0]]
        return found, values

    def _added(self, X: Any, rows: npt.NDArray[np.int64]) -> Doubles:
        """Return what each part adds; kernels look at the queries of these rows alone, not at all of X."""
        if self._formula.kernel is None:
            return contributions(self._formula, X, self._qid, rows.tolist()).values
        if self._qid is None:
            return contributions(self._formula, dense_rows(X, rows), None, range(rows.size)).values
        ids = np.asarray(self._qid)
        wanted = set(ids[rows].tolist())
        whole = np.array([row for row, query in enumerate(ids.tolist()) if query in wanted])
        chosen = np.searchsorted(whole, rows).tolist()
        return contributions(self._formula, dense_rows(X, whole), ids[whole], chosen).values


def formula_parts(model: Any, names: Sequence[str], qid: Any) -> FormulaParts | None:
    """Return the parts of a model that is a sum over columns or basis rows; None where it is not one."""
    try:
        formula = folded(formula_of(model, names))
    except InvalidInputError:  # a step that looks at several columns at once, or names that repeat
        return None
    return None if any(formula.is_text) else FormulaParts(formula, qid)
