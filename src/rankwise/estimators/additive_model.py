"""Base class of the additive estimators: missing values, categories, scores and fitted curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from rankwise.additive.coordinates import PENALTIES
from rankwise.additive.fitting import Blueprint, Blueprints, Layout
from rankwise.additive.parameters import (
    lists_pairs,
    read_columns,
    read_directions,
    read_surfaces,
)
from rankwise.additive.problem import AdditiveProblem
from rankwise.additive.shapes import FittedCurve, FittedSurface, FittedTerms
from rankwise.additive.training import LOSSES
from rankwise.arrays import AnyArray, Floats, MatrixLike
from rankwise.design.additive import predict
from rankwise.design.terms import Terms
from rankwise.estimators.base import POSITIVE, SHARE, Constraints, Ranker
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.notices import Notice
from rankwise.fitting.problem import Problem
from rankwise.pairs.labels import Cost, Ties
from rankwise.runtime.threads import default_threads
from rankwise.solvers.solution import Solution

__all__ = ["AUTO_COUNTS", "AdditiveModel"]

_MOST_COLUMNS = 5000  # of a model of curves; text has more, and pairs of columns grow with their square
# Numbers of surfaces that "auto" tries, while they help.
AUTO_COUNTS = (0, 5, 20, 80, 160)


class AdditiveModel(Ranker):
    """The part of `AdditiveRanker` and `AdditiveRankerCV` that does not depend on how the settings are found."""

    duality_gap_: float
    loss_: str

    _coefficients = "values_"
    _has_gap = True
    _parameter_constraints: ClassVar[Constraints] = {
        **Ranker._parameter_constraints,
        "adaptive": [Interval(Integral, 0, None, closed="left")],
        "alpha": [POSITIVE],
        "loss": [StrOptions(set(LOSSES))],
        "penalty": [StrOptions(set(PENALTIES))],
        "selective": [Interval(Integral, 0, None, closed="left")],
        "tol": [SHARE],
    }
    _takes_missing = True
    _takes_outputs = False

    terms_: Terms
    constant_columns_: npt.NDArray[np.int64]
    interactions_: npt.NDArray[np.int64]
    values_: Floats
    shares_: Floats
    importances_: Floats

    def predict(self, X: MatrixLike) -> Floats:  # noqa: D102 - as in FittedRanker
        check_is_fitted(self)
        rows = np.asarray(self._check_rows(X, reset=False))
        return predict(rows, self.terms_, self.values_, self._threads())

    @property
    def curves_(self) -> list[FittedCurve]:
        """The contribution of each column to the score, one curve per column that varies within queries."""
        return self._fitted_terms().curves(self._names())

    @property
    def surfaces_(self) -> list[FittedSurface]:
        """The contributions of pairs of columns beyond their curves, the most important first."""
        return self._fitted_terms().surfaces(self._names())

    def _fitted_terms(self) -> FittedTerms:
        check_is_fitted(self)
        return FittedTerms(self.terms_, self.values_, self.shares_, self.importances_)

    def _names(self) -> list[str]:
        given = getattr(self, "feature_names_in_", None)
        numbered = (f"x{column}" for column in range(self.n_features_in_))
        return list(numbered) if given is None else [str(name) for name in given]

    def _threads(self) -> int:
        return default_threads() if self.n_threads is None else int(self.n_threads)

    # --- training data on its way in ---

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, example in (("n_knots", 8), ("surface_knots", 5)):
            for given in self._tried(name):
                if not isinstance(given, Integral) or given < 2:
                    raise InvalidInputError(
                        f"{name}={given!r} is not a number of knots.",
                        f"use at least 2, for example {example}.",
                    )
        if self.monotone is not None and self.penalty != "difference":
            raise InvalidInputError(
                f"monotone needs steps from knot to knot, which penalty={self.penalty!r} does not have.",
                "use penalty='difference'.",
            )
        if self.monotone is not None and self.loss == "hinge":
            raise InvalidInputError(
                "monotone needs a smooth loss, which loss='hinge' is not.",
                "use loss='squared_hinge' or 'squared'.",
            )

    def _tried(self, name: str) -> Sequence[int]:
        """Return the values of a parameter of knots that are to be tried."""
        return [getattr(self, name)]

    def _which_pairs(self) -> tuple[Ties, Cost]:
        """With a margin, ties have no winner and a listed pair's magnitude is its margin."""
        return (self.ties, self.cost) if self.loss == "squared" else ("exclude", "magnitude")

    # --- models ---

    def _blueprints(self, data: Problem) -> Blueprints:
        """Resolve the parameters that describe columns."""
        X: AnyArray = data.design.stored()
        if X.shape[1] > _MOST_COLUMNS:
            raise InvalidInputError(
                f"X has {X.shape[1]:,} columns, and curves are for tables of at most {_MOST_COLUMNS:,}.",
                "use RankRLSCV, which takes sparse text with many columns, or select columns.",
            )
        names = getattr(self, "feature_names_in_", ())
        levels: list[int] = []
        if self.categorical is not None:
            levels = read_columns("categorical", self.categorical, X.shape[1], names)
        directions = read_directions(self.monotone, X.shape[1], names)
        if set(levels) & set(directions):
            raise InvalidInputError(
                "A column is both categorical and monotone; levels of a category have no order.",
                "take it out of one of the two.",
            )
        weight = data.pairs.row_weight
        return Blueprints(X, data.pairs.queries, weight, levels, self.penalty, directions, self._threads())

    def _problem(
        self, data: Problem, n_knots: int, surface_knots: int, *, holds_out: bool = True
    ) -> AdditiveProblem:
        """Choose the first knots to be tried."""
        blueprints = self._blueprints(data)
        blueprint = blueprints.at(n_knots, surface_knots)
        if not blueprint.plan.curves:
            raise InvalidInputError(
                "Every column of X is constant inside each query, so no ranking depends on X.",
                "check that qid groups the rows that compete, or add columns that differ between them.",
            )
        self.constant_columns_ = blueprint.plan.constant
        if holds_out:
            data = replace(data, design=blueprint.curves.design)
        return AdditiveProblem(data, blueprints, self.loss, float(self.tol), self.max_iter)

    def _listed_surfaces(self, blueprint: Blueprint) -> list[tuple[int, int]] | None:
        """Return the pairs of sides that the caller listed; None where a number of them is to be chosen."""
        if not lists_pairs(self.interactions):
            return None
        names = getattr(self, "feature_names_in_", ())
        return read_surfaces(
            self.interactions, blueprint.plan, blueprint.directions, blueprint.X.shape[1], names
        )

    def _finish(self, layout: Layout, solution: Solution, blueprints: Blueprints) -> list[Notice]:
        """Purify the model, set its fitted attributes and return the notices about it."""
        X, queries, weight = blueprints.X, blueprints.queries, blueprints.weight
        found = FittedTerms.of_solution(layout, solution.coef, X, queries, weight, self._threads())
        self.terms_, self.values_, self.shares_, self.importances_ = found
        self.interactions_ = np.array(
            [(s.first.column, s.second.column) for s in found.terms.surfaces], dtype=np.int64
        ).reshape(-1, 2)
        self.loss_, self.n_iter_ = self.loss, max(1, solution.n_iter)
        self._forget("duality_gap_")
        if self.loss != "squared":
            self.duality_gap_ = float(solution.certificate)
        if solution.status.is_good:
            return []
        what = (
            f"The solver stopped after {solution.n_iter} iterations, a certificate of "
            f"{solution.certificate:.1e} away from the minimum (tol={self.tol}): {solution.status.value}"
        )
        return [Notice(what, "raise max_iter or tol, or use a larger alpha")]
