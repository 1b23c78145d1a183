"""Coefficients along the iterations, read off the Krylov space that a search has left."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Floats
from rankwise.data.validation import check_number
from rankwise.exceptions import InvalidInputError
from rankwise.selection.krylov_fit import KrylovFit

__all__ = ["PathReader"]


class PathReader(BaseEstimator):  # type: ignore[misc]
    """An estimator that keeps the Krylov space of its search, and forgets it when it is copied or saved."""

    # A run and a column of it, output by output.
    _models: Sequence[tuple[KrylovFit, int]] = ()

    def coef_path(self, alpha: float, output: int = 0) -> Floats:
        """Return the coefficients of any alpha after every iteration, (iterations, features).

        They are formed on demand from the Krylov space of the fit, which is not saved with the model.

        Parameters
        ----------
        alpha : float
            Need not be in the grid.
        output : int, default=0
        """
        check_is_fitted(self)
        if not self._models:
            raise InvalidInputError(
                "There is no Krylov space: this model was loaded or copied, or chosen by exact hold-out.",
                "call fit with cv=5, or RankRLS(alpha, solver='cg', max_iter=iteration).fit for one vector.",
            )
        check_number("alpha", alpha, minimum=0, remedy="use 0 or a positive number")
        if not isinstance(output, Integral) or not 0 <= output < len(self._models):
            raise InvalidInputError(
                f"output={output!r} is not one of the {len(self._models)} outputs.", "outputs count from 0."
            )
        fit, column = self._models[output]
        return fit.path(column, float(alpha))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_models": []} if "_models" in state else state
