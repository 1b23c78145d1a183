"""Conversion of a fitted model to its formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.additive.shapes import FittedSurface
from rankwise.arrays import ArrayLike, Floats, MatrixLike, is_sparse
from rankwise.estimators.additive import AdditiveMixin
from rankwise.estimators.kernel_rls import KernelMixin
from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import Column, Formula, KernelSum, Surface, Term, sum_of, weighted_sum
from rankwise.formula.steps import Fill, IsMissing, Levels, Step, curve
from rankwise.formula.tables import inputs_of, rows_as_read
from rankwise.formula.transformers import columns_after
from rankwise.formula.view import ModelView
from rankwise.persistence import features_taken
from rankwise.preprocessing import TableEncoder

__all__ = ["formula_of", "formula_of_encoder", "rows_for"]


def formula_of(
    model: BaseEstimator | ModelView, feature_names: Sequence[str] | None = None, *, output: int | None = None
) -> Formula:
    """Return the formula of a fitted ranker, or of a fitted pipeline that ends in one.

    Parameters
    ----------
    feature_names : sequence of str, optional
        One per column that the model takes; by default the model's own, or x0, x1, …
    output : int, optional
        Which one, where the model has several.
    """
    view = model if isinstance(model, ModelView) else ModelView.of(model)
    if view.of_mean:
        views = [replace(view, steps=(*view.steps, *one.steps), ranker=one.ranker) for _, one in view.of_mean]
        parts = [formula_of(one, feature_names, output=output) for one in views]
        return weighted_sum(parts, [weight for weight, _ in view.of_mean])
    table, dates = (None, ()) if view.encoder is None else inputs_of(view.encoder)
    n_inputs = _n_inputs(view) if table is None else len(table)
    columns: list[Column] = [Column(number) for number in range(n_inputs)]
    for step in (view.encoder, *view.steps):
        columns = columns_after(step, columns)
    names = view.names(n_inputs, table if feature_names is None else feature_names)
    if len(set(names)) != len(names):
        raise InvalidInputError("Two columns have the same name.", "give every column a name of its own.")
    is_text = tuple(_texts(columns, n_inputs))
    ranker, formula = view.ranker, Formula(tuple(names), is_text, dates=dates)
    if isinstance(ranker, KernelMixin):
        return replace(formula, kernel=_kernel(ranker, columns, output))
    if isinstance(ranker, AdditiveMixin):
        terms, surfaces = _additive(ranker, columns)
        return replace(formula, terms=terms, surfaces=surfaces)
    if view.has_trees:
        raise InvalidInputError(
            "Boosted trees have no formula in columns, and are not exported.",
            "fit AutoRanker with prefer='readable'.",
        )
    if not hasattr(ranker, "coef_"):
        raise InvalidInputError(
            f"{type(ranker).__name__} has no weights.",
            "pass a ranker of rankwise, or a pipeline that ends in one.",
        )
    coef = _one_output(ranker.coef_, output)
    if len(coef) != len(columns):
        raise InvalidInputError(
            f"The steps make {len(columns)} columns, and the ranker takes {len(coef)}.",
            "fit the pipeline again.",
        )
    return replace(formula, terms=sum_of(columns, coef))


def formula_of_encoder(encoder: TableEncoder) -> Formula:
    """Return the formula of the sum of all columns that a fitted encoder makes of a table."""
    names, dates = inputs_of(encoder)
    columns = columns_after(encoder, [Column(number) for number in range(len(names))])
    terms = sum_of(columns, np.ones(len(columns)))
    is_text = tuple(_texts(columns, len(names)))
    return Formula(tuple(names), is_text, terms=terms, dates=dates)


def rows_for(model: object, X: MatrixLike) -> MatrixLike:
    """Return rows as the formula of a model takes them: as they are, or as an encoder of tables reads them."""
    encoder = ModelView.of(model).encoder
    return X if encoder is None else rows_as_read(encoder, X)


def _additive(
    ranker: AdditiveMixin, columns: Sequence[Column]
) -> tuple[tuple[Term, ...], tuple[Surface, ...]]:
    """Return the curves and the surfaces of a model of these."""
    terms = tuple(
        Term(1.0, _then(columns[one.column], _curve(one.knots, one.values, one.missing, one.is_levels)))
        for one in ranker.curves_
    )
    return terms, tuple(_surface(s, columns) for s in ranker.surfaces_)


def _then(column: Column, step: Step) -> Column:
    """Return the column with one more step; a table of codes becomes a table of the step's values."""
    codes = column.steps[-1] if column.steps else None
    if not isinstance(codes, Levels):
        return column.then(step)
    *values, other, missing = step.apply(np.array([*codes.values, codes.other, codes.missing]), None).tolist()
    return replace(column, steps=(*column.steps[:-1], Levels(codes.levels, tuple(values), other, missing)))


def _curve(knots: Floats, values: Floats, missing: float, is_levels: bool) -> Step:
    if is_levels:  # a level that training did not have counts as missing
        return Levels(tuple(knots.tolist()), tuple(values.tolist()), missing, missing)
    return curve(knots.tolist(), values.tolist(), missing)


def _surface(fitted: FittedSurface, columns: Sequence[Column]) -> Surface:
    grid = np.asarray(fitted.values, dtype=np.float64)
    # Missing values add nothing where the surface has no line for them.
    grid = np.pad(grid, [(0, int(not has)) for has in fitted.missing])
    sides, knots = [], []
    for number, own, is_levels in zip(fitted.columns, fitted.knots, fitted.is_levels, strict=True):
        if not is_levels:
            sides.append(columns[number])
            knots.append(tuple(own.tolist()))
            continue
        # Levels are numbered; unknown and missing ones have the last number.
        places = tuple(map(float, range(own.size + 1)))
        step = Levels(tuple(own.tolist()), places[:-1], places[-1], places[-1])
        sides.append(_then(columns[number], step))
        knots.append(places)
    return Surface((sides[0], sides[1]), (knots[0], knots[1]), tuple(map(tuple, grid.tolist())))


def _one_output(given: ArrayLike, output: int | None) -> Floats:
    coef: Floats = np.asarray(given, dtype=np.float64)
    if coef.ndim == 1:
        if output is not None and (not isinstance(output, Integral) or output != 0):
            raise InvalidInputError(f"The model has one output, and output is {output}.", "leave output out.")
        return coef
    if not isinstance(output, Integral) or not 0 <= output < coef.shape[0]:
        raise InvalidInputError(
            f"The model has {coef.shape[0]} outputs, and output is {output}.",
            f"choose one of them: output=0 to {coef.shape[0] - 1}.",
        )
    return np.asarray(coef[output])


def _kernel(ranker: KernelMixin, columns: Sequence[Column], output: int | None) -> KernelSum:
    if ranker.kernel_.is_precomputed or not isinstance(ranker.kernel_.name, str):
        raise InvalidInputError(
            "A kernel that is a function, or whose values were computed elsewhere, has no formula in columns.",
            "fit with a kernel by name, such as kernel='rbf'.",
        )
    basis = ranker.X_fit_.toarray() if is_sparse(ranker.X_fit_) else ranker.X_fit_
    dual = _one_output(ranker.dual_coef_, output)
    return KernelSum(ranker.kernel_, tuple(columns), np.asarray(basis, dtype=np.float64), dual)


def _n_inputs(view: ModelView) -> int:
    found = [number for part in (*view.steps, view.ranker) if (number := features_taken(part)) is not None]
    if not found:
        raise InvalidInputError(
            "No step of the model has its number of columns.", "fit the pipeline as a whole."
        )
    return found[0]


def _texts(columns: Sequence[Column], n_inputs: int) -> list[bool]:
    """Tell which inputs hold texts: those that are compared with texts, or filled with one."""
    found = [False] * n_inputs
    for column in columns:
        if column.sides:
            found = [a or b for a, b in zip(found, _texts(column.sides, n_inputs), strict=True)]
            continue
        for step in column.steps:
            if isinstance(step, Fill | IsMissing):
                found[column.number] |= isinstance(getattr(step, "value", None), str)
                continue
            found[column.number] |= isinstance(step, Levels) and step.is_text
            break
    return found
