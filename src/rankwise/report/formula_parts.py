"""Scores as sums over the user's own columns, whatever prepares them: splines, bins, imputers, query scalers."""

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
        inputs = [(term.column.input,) for term in formula.terms]
        pairs = [tuple(column.input for column in surface.columns) for surface in formula.surfaces]
        self._inputs = list(dict.fromkeys([*inputs, *pairs]))
        self.names: Sequence[str] = [" × ".join(formula.names[at] for at in own) for own in self._inputs]
        self.description = "a sum of what each column adds, after all that prepares it"

    def of(self, X: Any, prepared: Any, rows: npt.NDArray[np.int64]) -> tuple[Doubles, Doubles]:
        """Return what each column adds, and its value."""
        found = contributions(self._formula, X, self._qid, rows.tolist())
        shown = dense_rows(X, rows)
        values = np.full((rows.size, len(self._inputs)), np.nan)
        for at, own in enumerate(self._inputs):
            if len(own) == 1:
                values[:, at] = shown[:, own[0]]
        return found.values, values


def formula_parts(model: Any, names: Sequence[str], qid: Any) -> FormulaParts | None:
    """Return the parts of a model that is a sum over columns; None where it is not one."""
    try:
        formula = folded(formula_of(model, names))
    except InvalidInputError:  # a step that looks at several columns at once, or names that repeat
        return None
    return None if formula.kernel is not None or any(formula.is_text) else FormulaParts(formula, qid)
