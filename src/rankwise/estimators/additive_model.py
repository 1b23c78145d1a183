"""A fitted additive model: its scores, and its curves and surfaces to look at."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankwise.additive.fitting import Layout
from rankwise.additive.purification import purified, with_knots_of_surfaces
from rankwise.additive.shapes import FittedCurve, FittedSurface, spread_inside_queries, term_masses
from rankwise.arrays import Floats, Ints, MatrixLike
from rankwise.data.queries import Queries
from rankwise.design.additive import predict
from rankwise.estimators.base import Ranker
from rankwise.exceptions import caller_level
from rankwise.solvers.solution import Solution
from rankwise.terms import Terms
from rankwise.threads import default_threads

__all__ = ["AdditiveModel"]

_LOOKED_AT = 20_000  # rows whose spread inside queries tells how much a term matters


class AdditiveModel(Ranker):
    """The part of `AdditiveRanker` and `AdditiveRankerCV` that does not depend on how a model was found."""

    terms_: Terms
    values_: Floats
    shares_: Floats
    importances_: Floats

    def predict(self, X: MatrixLike) -> Floats:
        """Return a score for each row of X: higher is better.

        The score is the sum of what `curves_` and `surfaces_` say about the row. Only differences between rows of one
        query mean anything.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
            NaN counts as missing.

        Returns
        -------
        scores : ndarray of shape (rows,)
        """
        check_is_fitted(self)
        return predict(self._check_rows(X, reset=False), self.terms_, self.values_, self._threads())

    @property
    def curves_(self) -> list[FittedCurve]:
        """What each column adds to the score, one curve per column that tells rows of a query apart."""
        check_is_fitted(self)
        names = self._names()
        out = []
        for number, curve in enumerate(self.terms_.curves):
            values = self.values_[self.terms_.values_of(number)]
            shares = self.shares_[self.terms_.values_of(number)]
            n_knots = curve.knots.size
            out.append(
                FittedCurve(
                    curve.column,
                    names[curve.column],
                    curve.knots,
                    values[:n_knots],
                    float(values[n_knots]) if curve.has_missing else 0.0,
                    curve.is_levels,
                    shares[:n_knots],
                    float(self.importances_[number]),
                )
            )
        return out

    @property
    def surfaces_(self) -> list[FittedSurface]:
        """What pairs of columns add to the score beyond their curves, the strongest first."""
        check_is_fitted(self)
        names, out = self._names(), []
        for number, surface in enumerate(self.terms_.surfaces, start=len(self.terms_.curves)):
            first, second = surface.first, surface.second
            grid = self.values_[self.terms_.values_of(number)].reshape(first.n_values, second.n_values)
            out.append(
                FittedSurface(
                    (first.column, second.column),
                    (names[first.column], names[second.column]),
                    (first.knots, second.knots),
                    grid,
                    (first.has_missing, second.has_missing),
                    (first.is_levels, second.is_levels),
                    float(self.importances_[number]),
                )
            )
        return sorted(out, key=lambda surface: -surface.importance)

    def _names(self) -> list[str]:
        given = getattr(self, "feature_names_in_", None)
        return (
            [f"x{column}" for column in range(self.n_features_in_)]
            if given is None
            else [str(n) for n in given]
        )

    def _threads(self) -> int:
        return default_threads() if self.n_threads is None else int(self.n_threads)

    def _finish(
        self, layout: Layout, solution: Solution, X: Any, queries: Queries, row_weight: Floats | None
    ) -> None:
        """Purify the model, and set the attributes that describe it."""
        values = layout.coordinates.exact_values(solution.coef)
        terms, values = with_knots_of_surfaces(layout.terms, values)
        shares = term_masses(X, terms, row_weight, self._threads())
        masses = [shares[terms.values_of(number)] for number in range(len(terms.all_terms))]
        self.terms_, self.shares_ = terms, shares
        self.values_, _ = purified(terms, values, masses)
        rows = _whole_queries(queries, _LOOKED_AT)
        weight = None if row_weight is None else row_weight[rows]
        self.importances_ = spread_inside_queries(
            X[rows], terms, self.values_, queries.subset(rows), weight, self._threads()
        )
        self.interactions_ = np.array(
            [(s.first.column, s.second.column) for s in terms.surfaces], dtype=np.int64
        ).reshape(-1, 2)
        self.loss_, self.n_iter_ = self.loss, max(1, solution.n_iter)
        self._forget("duality_gap_")
        if self.loss != "squared":
            self.duality_gap_ = float(solution.certificate)
        if not solution.status.is_good:
            warnings.warn(
                f"The solver stopped after {solution.n_iter} iterations, a certificate of "
                f"{solution.certificate:.1e} away from the minimum (tol={self.tol}): {solution.status.value}. "
                "Hint: raise max_iter or tol, or use a larger alpha.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there is a model: a fit that was interrupted early leaves attributes and none."""
        return hasattr(self, "values_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.input_tags.allow_nan = True
        return tags


def _whole_queries(queries: Queries, at_most: int) -> Ints:
    """Return the rows of as many whole queries as make about so many rows, evenly chosen; of one, an even share."""
    if queries.n_rows <= at_most:
        return np.arange(queries.n_rows)
    if len(queries) == 1:
        return np.linspace(0, queries.n_rows - 1, at_most).astype(np.int64)
    every = -(-queries.n_rows // at_most)
    return np.flatnonzero(queries.codes % every == 0)
