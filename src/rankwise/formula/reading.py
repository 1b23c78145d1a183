"""Conversion of a fitted model to its formula.

scikit-learn's transformers are steps of columns; transformers that mix columns raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import sklearn.preprocessing as sk
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from rankwise.additive.shapes import FittedCurve, FittedSurface
from rankwise.arrays import AnyArray, ArrayLike, Floats, MatrixLike, is_sparse
from rankwise.data.summary import how_many
from rankwise.estimators.additive import AdditiveMixin
from rankwise.estimators.kernel import KernelMixin
from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import Column, Formula, KernelSum, Surface, Term, sum_of, weighted_sum
from rankwise.formula.steps import (
    Affine,
    Fill,
    IsMissing,
    Level,
    Levels,
    NormalQuantile,
    Pieces,
    Power,
    QueryScale,
    Step,
    clip,
    curve,
    is_missing,
    stairs,
)
from rankwise.formula.tables import columns_of_encoder, inputs_of, rows_as_read
from rankwise.formula.view import ModelView
from rankwise.persistence import features_taken
from rankwise.preprocessing import QueryScaler, TableEncoder

Columns = list[Column]
Fitted = TypeVar("Fitted")


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
    ranker, formula = view.ranker, Formula(tuple(names), _texts(columns, n_inputs), dates=dates)
    if isinstance(ranker, KernelMixin):
        return replace(formula, kernel=_kernel(ranker, columns, output))
    if isinstance(ranker, AdditiveMixin):
        terms = tuple(Term(1.0, _then(columns[one.column], _curve(one))) for one in ranker.curves_)
        return replace(formula, terms=terms, surfaces=tuple(_surface(s, columns) for s in ranker.surfaces_))
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
    return Formula(tuple(names), _texts(columns, len(names)), terms=terms, dates=dates)


def rows_for(model: object, X: MatrixLike) -> MatrixLike:
    """Return rows as the formula of a model takes them: as they are, or as an encoder of tables reads them."""
    encoder = ModelView.of(model).encoder
    return X if encoder is None else rows_as_read(encoder, X)


def _then(column: Column, step: Step) -> Column:
    """Return the column with one more step; a table of codes becomes a table of the step's values."""
    codes = column.steps[-1] if column.steps else None
    if not isinstance(codes, Levels):
        return column.then(step)
    *values, other, missing = step.apply(np.array([*codes.values, codes.other, codes.missing]), None).tolist()
    return replace(column, steps=(*column.steps[:-1], Levels(codes.levels, tuple(values), other, missing)))


def _curve(fitted: FittedCurve) -> Step:
    knots, values, missing = fitted.knots.tolist(), fitted.values.tolist(), fitted.missing
    if fitted.is_levels:  # a level that training did not have counts as missing
        return Levels(tuple(knots), tuple(values), missing, missing)
    return curve(knots, values, missing)


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
    coef: Floats = np.atleast_2d(np.asarray(given, dtype=np.float64))
    n = len(coef)
    at = 0 if output is None and n == 1 else output
    if not isinstance(at, Integral) or not 0 <= at < n:
        raise InvalidInputError(
            f"The model has {how_many(n, 'outputs')}, and output is {output}.",
            "leave output out." if n == 1 else f"choose one of them: output=0 to {n - 1}.",
        )
    return np.asarray(coef[at])


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


def _texts(columns: Sequence[Column], n_inputs: int) -> tuple[bool, ...]:
    """Tell which inputs hold texts: those that are compared with texts, or filled with one."""
    parts = [part for column in columns for part in column.parts]
    texts = {part.number for part in parts if any(map(_is_of_text, part.steps))}
    return tuple(at in texts for at in range(n_inputs))


def _is_of_text(step: Step) -> bool:
    return step.is_text if isinstance(step, Levels) else isinstance(getattr(step, "value", None), str)


def columns_after(step: BaseEstimator | str | None, columns: Sequence[Column]) -> Columns:
    """Return the columns that a fitted transformer makes of columns."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return list(columns)
    if isinstance(step, str) and step == "drop":
        return []
    if hasattr(step, "formula_columns"):  # a transformer that knows its own formula
        return list(step.formula_columns(columns))
    reader = _READERS.get(type(step))
    if reader is None or getattr(step, "func", None) is not None:
        raise InvalidInputError(
            f"{type(step).__name__} has no formula in single columns.",
            f"use one of {', '.join(kind.__name__ for kind in _READERS)}, or apply it where the columns are made.",
        )
    n_features = getattr(step, "n_features_in_", len(columns))
    if isinstance(step, TableEncoder):  # which leaves columns out, and takes lists apart
        n_features = len(inputs_of(step)[0])
    if n_features != len(columns):
        raise InvalidInputError(
            f"{type(step).__name__} takes {n_features} columns, and gets {len(columns)}.",
            "fit the pipeline again.",
        )
    return reader(step, list(columns))


def _each(make: Callable[[Fitted, int], tuple[Step, ...]]) -> Callable[[Fitted, Columns], Columns]:
    """Read a transformer that makes one column of one."""
    return lambda step, columns: [column.then(*make(step, at)) for at, column in enumerate(columns)]


def _standard(step: sk.StandardScaler | sk.RobustScaler, at: int) -> tuple[Affine]:
    scale = 1.0 if step.scale_ is None else 1.0 / float(step.scale_[at])
    centers = step.center_ if isinstance(step, sk.RobustScaler) else step.mean_ if step.with_mean else None
    return (Affine(0.0 if centers is None else float(centers[at]), scale),)


def _min_max(step: sk.MinMaxScaler, at: int) -> tuple[Step, ...]:
    low, high = step.feature_range
    affine = Affine(float(step.data_min_[at]), float(step.scale_[at]), float(low))
    return (affine, clip(float(low), float(high))) if step.clip else (affine,)


def _max_abs(step: sk.MaxAbsScaler, at: int) -> tuple[Step, ...]:
    affine = Affine(0.0, 1.0 / float(step.scale_[at]))
    return (affine, clip(-1.0, 1.0)) if getattr(step, "clip", False) else (affine,)


def _power(step: sk.PowerTransformer, at: int) -> tuple[Step, ...]:
    power = Power(float(step.lambdas_[at]), step.method == "box-cox")
    return (power, *_standard(step._scaler, at)) if step.standardize else (power,)  # noqa: SLF001 - kept nowhere else


def _quantile(step: sk.QuantileTransformer, at: int) -> tuple[Step, ...]:
    knots, shares = step.quantiles_[:, at], step.references_
    values, first, counts = np.unique(knots, return_index=True, return_counts=True)
    shape = curve(knots.tolist(), shares.tolist())
    if values.size < knots.size:
        shape = _jumping(values, shares[first], shares[first + counts - 1])
    return (shape, NormalQuantile()) if step.output_distribution == "normal" else (shape,)


def _jumping(values: AnyArray, below: AnyArray, above: AnyArray) -> Pieces:
    """Return lines between values, where each value has a left limit, a right limit, and the mean of both at itself.

    The smallest value stays at its left limit and the largest at its right one, as in scikit-learn.
    """
    middle = (below + above) / 2
    middle[0], middle[-1] = below[0], above[-1] if values.size > 1 else below[0]
    slopes = np.append((below[1:] - above[:-1]) / np.diff(values), 0.0)
    # A piece of one number at each value, and the line to the next value.
    breaks = np.column_stack([values, np.nextafter(values, np.inf)]).ravel()
    lines = np.column_stack([np.zeros(values.size), middle, slopes, above]).reshape(-1, 2)
    coefficients = [(0.0, float(below[0])), *map(tuple, lines.tolist())]
    starts = (float(values[0]), *np.repeat(values, 2).tolist())
    return Pieces(tuple(breaks.tolist()), starts, tuple(coefficients))


def _query_scaler(step: QueryScaler, columns: Columns) -> Columns:
    scaled = [column.then(QueryScale(step.method)) for column in columns]
    return [*columns, *scaled] if step.passthrough else scaled


def _imputer(step: SimpleImputer, columns: Columns) -> Columns:
    _check_marker(step)
    # A column that had no value in training is dropped; one that is to be kept is filled with 0.
    values = zip(columns, step.statistics_.tolist(), strict=True)
    filled = [column.then(Fill(value)) for column, value in values if not _is_gone(value)]
    return filled + (_indicator(step.indicator_, columns) if step.add_indicator else [])


def _indicator(step: MissingIndicator, columns: Columns) -> Columns:
    _check_marker(step)
    return [columns[int(at)].then(IsMissing()) for at in step.features_]


def _check_marker(step: SimpleImputer | MissingIndicator) -> None:
    marker = step.missing_values
    if not _is_gone(marker):
        raise InvalidInputError(
            f"{type(step).__name__} takes {marker!r} for a missing value.",
            "write missing values as NaN, and leave missing_values as it is.",
        )


def _one_hot(step: sk.OneHotEncoder, columns: Columns) -> Columns:
    out = []
    for at, (column, categories) in enumerate(zip(columns, step.categories_, strict=True)):
        levels, groups, has_rare = _groups(step, at, categories)
        dropped = None if step.drop_idx_ is None else step.drop_idx_[at]
        # Values that were not there in training go to the rare ones where the encoder says so.
        for_new = groups[-1] if has_rare and step.handle_unknown == "infrequent_if_exist" else None
        for group in groups:
            if dropped is None or levels[int(dropped)] not in group:
                takes_new = group is for_new
                # What takes new values must know the old ones that are not its own.
                known = [level for level in (levels if takes_new else group) if level is not None]
                missing = float(None in group) if None in levels else float(takes_new)
                values = tuple(float(level in group) for level in known)
                out.append(column.then(Levels(tuple(known), values, float(takes_new), missing)))
    return out


def _ordinal(step: sk.OrdinalEncoder, columns: Columns) -> Columns:
    out = []
    unknown = np.nan if step.unknown_value is None else float(step.unknown_value)
    for at, (column, categories) in enumerate(zip(columns, step.categories_, strict=True)):
        # NaN has a value of its own and no place among the codes; None is numbered like any other level.
        has_nan = any(level is not None and _is_gone(level) for level in categories.tolist())
        groups = [group for group in _groups(step, at, categories)[1] if not has_nan or group != [None]]
        codes = {level: float(code) for code, group in enumerate(groups) for level in group}
        missing = float(step.encoded_missing_value) if has_nan else codes.pop(None, unknown)
        out.append(column.then(Levels(tuple(codes), tuple(codes.values()), unknown, missing)))  # type: ignore[arg-type]
    return out


def _groups(
    step: sk.OneHotEncoder | sk.OrdinalEncoder, at: int, categories: AnyArray
) -> tuple[list[Level | None], list[list[Level | None]], bool]:
    """Return the values that an encoder knows, and those that it does not tell apart: each alone, the rare ones last.

    Missing values are None; the last entry tells whether there are rare values.
    """
    every = getattr(step, "infrequent_categories_", None)
    listed = None if every is None else every[at]
    levels, rare = (
        [None if _is_gone(level) else level for level in given]
        for given in (categories.tolist(), [] if listed is None else listed.tolist())
    )
    if levels.count(None) > 1:
        raise InvalidInputError(
            f"{type(step).__name__} tells None and NaN apart, and a formula has one way to be missing.",
            "write missing values as NaN everywhere before the fit.",
        )
    groups = [[level] for level in levels if level not in rare]
    return levels, [*groups, rare] if rare else groups, bool(rare)


def _is_gone(level: object) -> bool:
    return bool(is_missing(np.array([level], dtype=object))[0])


def _bins(step: sk.KBinsDiscretizer, columns: Columns) -> Columns:
    out = []
    for column, edges in zip(columns, step.bin_edges_, strict=True):
        bins = np.arange(len(edges) - 1)
        shapes = bins[None] if step.encode == "ordinal" else bins[:, None] == bins
        out += [column.then(stairs(edges[1:-1].tolist(), shape)) for shape in shapes.astype(float).tolist()]
    return out


def _spline(step: sk.SplineTransformer, columns: Columns) -> Columns:
    """Read polynomials off as many values of each piece as determine them.

    scikit-learn 1.9 extrapolates columns after the first from an inner knot where degree <= 1 and extrapolation is
    "linear". The values that it computes are the only description that agrees with every version.
    """
    if step.extrapolation == "periodic":
        raise InvalidInputError(
            "SplineTransformer(extrapolation='periodic') has infinitely many pieces.",
            "use another extrapolation, or bring the column into one period where it is made.",
        )
    knots = [np.unique(spline.t[step.degree : spline.t.size - step.degree]) for spline in step.bsplines_]
    powers, shares = np.arange(step.degree, -1, -1), (np.arange(step.degree + 1) + 0.5) / (step.degree + 1)
    out = []
    for at, (column, own) in enumerate(zip(columns, knots, strict=True)):
        breaks, starts, widths = own[1:-1], own[:-1], np.diff(own)
        # A piece more on either side, the first before its start; scikit-learn fails there where the degree is 0.
        if step.extrapolation == "linear" or (step.degree and step.extrapolation != "error"):
            ends = own[0] - own[1], own[-1] - own[-2]
            breaks, starts, widths = own, np.append(own[0], own), np.concatenate((ends[:1], widths, ends[1:]))
        X = np.tile([one[0] for one in knots], (starts.size * shares.size, 1))
        X[:, at] = np.add.outer(starts, np.zeros(shares.size)).ravel() + np.outer(widths, shares).ravel()
        made = step.transform(X)
        table = np.hsplit(made.toarray() if sp.issparse(made) else made, len(knots))[at]
        values = table.reshape(starts.size, shares.size, -1)
        found = np.linalg.solve(np.vander(shares), values) / widths[:, None, None] ** powers[:, None]
        is_flat = np.ptp(values, axis=1, keepdims=True) == 0
        found = np.where(is_flat, np.where(powers[:, None] == 0, values[:, :1], 0.0), found)
        out += [
            column.then(
                Pieces(tuple(breaks.tolist()), tuple(starts.tolist()), tuple(map(tuple, one.tolist())))
            )
            for one in np.moveaxis(found, 2, 0)
        ]
    return out


def _column_transformer(step: ColumnTransformer, columns: Columns) -> Columns:
    out = []
    for name, inner, _ in step.transformers_:
        own = step._transformer_to_input_indices[name]  # noqa: SLF001 - however they were chosen
        out += columns_after(inner, [columns[at] for at in own])
    return out


def _union(step: FeatureUnion, columns: Columns) -> Columns:
    out = []
    for name, inner in step.transformer_list:
        made = columns_after(inner, columns)
        weight = (step.transformer_weights or {}).get(name)
        out += made if weight is None else [column.then(Affine(scale=float(weight))) for column in made]
    return out


def _pipeline(step: Pipeline, columns: Columns) -> Columns:
    for _, inner in step.steps:
        columns = columns_after(inner, columns)
    return columns


_READERS: Mapping[type, Callable[[Any, Columns], Columns]] = {
    ColumnTransformer: _column_transformer,
    FeatureUnion: _union,
    # Without a function, as ColumnTransformer passes columns through.
    sk.FunctionTransformer: lambda _, columns: columns,
    sk.KBinsDiscretizer: _bins,
    sk.MaxAbsScaler: _each(_max_abs),
    sk.MinMaxScaler: _each(_min_max),
    MissingIndicator: _indicator,
    sk.OneHotEncoder: _one_hot,
    sk.OrdinalEncoder: _ordinal,
    Pipeline: _pipeline,
    sk.PowerTransformer: _each(_power),
    sk.QuantileTransformer: _each(_quantile),
    QueryScaler: _query_scaler,
    sk.RobustScaler: _each(_standard),
    SimpleImputer: _imputer,
    sk.SplineTransformer: _spline,
    sk.StandardScaler: _each(_standard),
    TableEncoder: columns_of_encoder,
}
