"""The formula of a score: a constant and terms of the user's columns, of products or pairs of them, or of a kernel.

Numbers are added in the order of the terms, after `folded` has simplified them. Everything here is plain data that an
exporter can write in another language; `evaluate` is what such a text must agree with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, ArrayLike, Floats, MatrixLike, is_sparse
from rankwise.exceptions import InvalidInputError
from rankwise.formula.steps import Affine, Fill, IsMissing, Levels, Pieces, QueryScale, Step
from rankwise.kernels import Kernel


@dataclass(frozen=True)
class Column:
    """A column of the user's, or a product of two, and the steps on its way into the model."""

    input: int | Product
    steps: tuple[Step, ...] = ()

    @property
    def sides(self) -> tuple[Column, ...]:
        """Both factors of a product, or nothing."""
        return (self.input.first, self.input.second) if isinstance(self.input, Product) else ()

    @property
    def number(self) -> int:
        """Which column of the user's it is; products are several."""
        assert isinstance(self.input, int)
        return self.input

    @property
    def parts(self) -> tuple[Column, ...]:
        """The columns of the user's that it is made of, each with its own steps."""
        return tuple(part for side in self.sides for part in side.parts) if self.sides else (self,)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Which columns of the user's it is made of."""
        return tuple(part.number for part in self.parts)

    @property
    def every_step(self) -> tuple[Step, ...]:
        """Its steps, after those of its factors."""
        return (*(step for side in self.sides for step in side.every_step), *self.steps)

    def then(self, *steps: Step) -> Column:
        """Return the column with more steps."""
        return replace(self, steps=(*self.steps, *steps))


@dataclass(frozen=True)
class Product:
    """Two columns, each after its own steps, multiplied."""

    first: Column
    second: Column


@dataclass(frozen=True)
class Term:
    """``weight * column``."""

    weight: float
    column: Column


@dataclass(frozen=True)
class Surface:
    """A function of two columns: bilinear between knots, constant outside of them.

    Attributes
    ----------
    columns : (Column, Column)
    knots : (tuple of float, tuple of float)
        Of each of both columns.
    values : tuple of tuple of float
        At the knots: a line for each knot of the first column, an entry for each of the second. Where missing values
        have values of their own, there is one line or entry more, the last.
    """

    columns: tuple[Column, Column]
    knots: tuple[tuple[float, ...], tuple[float, ...]]
    values: tuple[tuple[float, ...], ...]

    def apply(self, first: Floats, second: Floats) -> Floats:
        """Return the values at pairs of numbers."""
        grid = np.asarray(self.values, dtype=np.float64)
        (i, s), (j, t) = (_place(x, np.asarray(k)) for x, k in zip((first, second), self.knots, strict=True))
        # Read at the corners of a cell. A missing value stands at the last line, and has no next one.
        i1, j1 = np.minimum(i + 1, grid.shape[0] - 1), np.minimum(j + 1, grid.shape[1] - 1)
        low = grid[i, j] * (1 - t) + grid[i, j1] * t
        high = grid[i1, j] * (1 - t) + grid[i1, j1] * t
        return np.asarray(low * (1 - s) + high * s)


@dataclass(frozen=True)
class KernelSum:
    """``sum of dual[b] * kernel(row, basis[b])`` over the columns as the kernel sees them."""

    kernel: Kernel
    columns: tuple[Column, ...]
    basis: Floats
    dual: Floats

    @property
    def settings(self) -> tuple[str, float, float, float]:
        """Return the name of the kernel, its gamma, its offset and its degree."""
        parameters = self.kernel.parameters
        name = str(self.kernel.name).replace("polynomial", "poly")
        gamma, offset = (float(parameters.get(key, 1.0)) for key in ("gamma", "coef0"))
        return name, gamma, offset, float(parameters.get("degree", 3))


@dataclass(frozen=True)
class Formula:
    """A model in the user's columns.

    Attributes
    ----------
    names : tuple of str
        Of all columns that the model reads, in their order.
    is_text : tuple of bool
        Which of them hold texts.
    constant : float
    terms : tuple of Term
    surfaces : tuple of Surface
    kernel : KernelSum or None
    dates : tuple of int
        Columns that held dates, and are days since 1970 here.
    """

    names: tuple[str, ...]
    is_text: tuple[bool, ...]
    constant: float = 0.0
    terms: tuple[Term, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    kernel: KernelSum | None = None
    dates: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column that is read, with its steps."""
        pairs = [column for surface in self.surfaces for column in surface.columns]
        of_kernel = () if self.kernel is None else self.kernel.columns
        return (*(term.column for term in self.terms), *pairs, *of_kernel)

    @property
    def kinds(self) -> frozenset[type]:
        """Which steps occur."""
        return frozenset(type(step) for column in self.columns for step in column.every_step)

    @property
    def needs_whole_queries(self) -> bool:
        """Whether a score depends on the other rows of its query."""
        return QueryScale in self.kinds

    @property
    def takes_missing(self) -> bool:
        """Whether missing values have a meaning."""
        steps = (step for column in self.columns for step in column.every_step)
        return any(isinstance(s, Fill | IsMissing) or getattr(s, "missing", None) is not None for s in steps)

    @property
    def weights(self) -> Floats | None:
        """One weight per column where the score is the constant and a weighted sum of them as they come."""
        if self.surfaces or self.kernel is not None:
            return None
        out = np.zeros(len(self.names))
        for term in self.terms:
            if term.column.steps or term.column.sides:
                return None
            out[term.column.number] += term.weight
        return out

    def title(self, columns: Sequence[Sequence[int]]) -> str:
        """Name a column by its inputs, a product as ``a:b``, and several columns together as ``a × b``."""
        return " × ".join(":".join(self.names[number] for number in inputs) for inputs in columns)

    def evaluate(self, X: MatrixLike, qid: ArrayLike | None = None) -> Floats:
        """Return the score of each row."""
        weights = self.weights
        if weights is not None and is_sparse(X):
            return np.asarray(X @ weights + self.constant)
        table = Table(X, qid)
        out = np.full(table.n_rows, self.constant)
        for term in self.terms:
            out += term.weight * table.numbers(term.column)
        for surface in self.surfaces:
            out += surface.apply(*(table.values(column) for column in surface.columns))
        if self.kernel is not None:
            out += table.kernel_values(self.kernel) @ self.kernel.dual
        return out


class Table:
    """The user's rows, column by column; steps that several terms share are computed once.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (rows, columns)
    qid : (rows,) ids or None
    """

    def __init__(self, X: MatrixLike, qid: ArrayLike | None = None) -> None:
        rows: Any = X if hasattr(X, "shape") else np.asarray(X)  # lists
        self._X = rows.tocsc() if is_sparse(X) else rows
        self._qid = None if qid is None else np.asarray(qid)
        self.n_rows = int(self._X.shape[0])
        self._made: dict[Column, AnyArray] = {}

    def values(self, column: Column) -> AnyArray:
        """Return the values of a column after its steps."""
        if column not in self._made:
            if column.steps:
                before = self.values(replace(column, steps=column.steps[:-1]))
                self._made[column] = column.steps[-1].apply(before, self._qid)
            elif column.sides:
                first, second = map(self.numbers, column.sides)
                self._made[column] = first * second
            else:
                self._made[column] = self._raw(column.number)
        return self._made[column]

    def numbers(self, column: Column) -> Floats:
        """Return the values of a column after its steps, which are numbers then."""
        found = self.values(column)
        if found.dtype.kind == "O":
            raise InvalidInputError(
                f"Column {column.inputs[0]} of X holds texts, and the model takes numbers there.",
                "pass rows with the columns that the model was fitted with.",
            )
        return found

    def kernel_values(self, kernel: KernelSum) -> Floats:
        """Return the kernel between the rows and the basis."""
        rows = np.column_stack([self.values(column) for column in kernel.columns])
        return kernel.kernel.matrix(rows, kernel.basis)

    def _raw(self, number: int) -> AnyArray:
        if is_sparse(self._X):
            return np.asarray(self._X[:, [number]].toarray()[:, 0], dtype=np.float64)
        column = self._X.iloc[:, number] if hasattr(self._X, "iloc") else self._X[:, number]
        return as_values(column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column))


def as_values(found: AnyArray) -> AnyArray:
    """Return a column as doubles where it holds numbers, else as objects."""
    if found.dtype.kind in "biuf":
        return np.asarray(found, dtype=np.float64)
    objects = np.asarray(found, dtype=object)
    if any(isinstance(value, str) for value in objects.tolist()):
        return objects
    try:
        return np.array([np.nan if value is None else value for value in objects.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        return objects


def _place(x: Floats, knots: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the knot before each number, and how far it stands on the way to the next one."""
    missing = np.isnan(x)
    inside = np.clip(np.where(missing, knots[0], x), knots[0], knots[-1])
    at = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, max(knots.size - 2, 0))
    gap = knots[np.minimum(at + 1, knots.size - 1)] - knots[at]
    share = np.divide(inside - knots[at], gap, out=np.zeros_like(inside), where=gap > 0)
    return np.where(missing, knots.size, at), np.where(missing, 0.0, share)


def sum_of(columns: Sequence[Column], weights: Floats) -> tuple[Term, ...]:
    """Return the terms of a weighted sum of columns; those that weigh nothing are left out."""
    both = zip(weights.tolist(), columns, strict=True)
    return tuple(Term(weight, column) for weight, column in both if weight != 0)


def weighted_sum(formulas: Sequence[Formula], weights: Sequence[float]) -> Formula:
    """Return the formula of a weighted sum of scores of the same columns; at most one of them may have a kernel."""
    if sum(one.kernel is not None for one in formulas) > 1:
        raise InvalidInputError(
            "The mean of several models with kernels has no formula.",
            "average models of which one has a kernel.",
        )
    terms, surfaces, kernel, constant = [], [], None, 0.0
    for one, weight in zip(formulas, weights, strict=True):
        constant += weight * one.constant
        terms += [replace(term, weight=weight * term.weight) for term in one.terms]
        for surface in one.surfaces:
            grid = weight * np.asarray(surface.values)
            surfaces.append(replace(surface, values=tuple(map(tuple, grid.tolist()))))
        if one.kernel is not None:
            kernel = replace(one.kernel, dual=weight * one.kernel.dual)
    is_text = tuple(any(column) for column in zip(*(one.is_text for one in formulas), strict=True))
    names, dates = formulas[0].names, formulas[0].dates
    return Formula(names, is_text, constant, tuple(terms), tuple(surfaces), kernel, dates)


# --- simplification of terms that leaves the score unchanged ---


def folded(formula: Formula) -> Formula:
    """Fold scales and shifts into weights and the constant, and add up terms of the same values.

    A centre stays where it is, ``weight * (x - center)``, because a difference that is taken late loses digits. The
    exception is a product with a category, which is 0 in most rows: its levels become one table times the other side.
    """
    constant, terms = formula.constant, []
    for term in formula.terms:
        more, plain = _fold_affine(term)
        rest, plain = _fold_marks(plain)
        constant += more + rest
        terms.append(plain)
    return replace(formula, constant=constant, terms=tuple(_merged(terms)))


def raw(formula: Formula) -> Formula:
    """Fold centres as well, so that a linear model is weights of the columns as they come, and a constant."""
    formula = folded(formula)
    constant, terms = formula.constant, []
    for term in formula.terms:
        steps = term.column.steps
        if len(steps) == 1 and isinstance(steps[0], Affine):
            constant -= term.weight * steps[0].center
            terms.append(Term(term.weight, Column(term.column.input)))
        else:
            terms.append(term)
    return replace(formula, constant=constant, terms=tuple(_merged(terms)))


def _fold_affine(term: Term) -> tuple[float, Term]:
    """Return the term's share of the constant, and the term without it."""
    weight, constant, steps = term.weight, 0.0, list(term.column.steps)
    late = 0.0  # subtracted from the values of the remaining steps
    while steps and isinstance(steps[-1], Affine):
        last = steps.pop()
        assert isinstance(last, Affine)
        # weight * ((x - center) * scale + shift - late)
        constant += weight * (last.shift - late)
        weight, late = weight * last.scale, last.center
    if not steps and late and _table_side(term.column) is None:
        return constant, Term(weight, Column(term.column.input, (Affine(center=late),)))
    return constant - weight * late, Term(weight, replace(term.column, steps=tuple(steps)))


def _fold_marks(term: Term) -> tuple[float, Term]:
    """Return the share of the constant, and the term: a curve of a 0-or-1 product becomes its weight.

    Two categories have as many products as pairs of levels, which are merged only where nothing comes after them.
    """
    steps, sides = term.column.steps, term.column.sides
    is_mark = bool(sides) and all(map(_is_mark, sides))
    if not (steps and is_mark) or any(isinstance(step, QueryScale) for step in steps):
        return 0.0, term
    ends = np.array([0.0, 1.0])
    for step in steps:
        ends = step.apply(ends, None)
    return term.weight * float(ends[0]), Term(
        term.weight * float(ends[1] - ends[0]), Column(term.column.input)
    )


def _is_mark(column: Column) -> bool:
    """Tell whether a column is 0 or 1: a level, an indicator of missing values, or a product of those."""
    if not column.steps:
        return bool(column.sides) and all(map(_is_mark, column.sides))
    last = column.steps[-1]
    return isinstance(last, IsMissing) or (
        isinstance(last, Levels) and {*last.values, last.other, last.missing} <= {0.0, 1.0}
    )


def _merged(terms: Iterable[Term]) -> list[Term]:
    """Add up terms of the same column: weights, and the values of tables with the same keys."""
    groups: dict[object, list[Term]] = {}
    for term in terms:
        groups.setdefault(_what(term.column), []).append(term)
    return [group[0] if len(group) == 1 else _sum(group) for group in groups.values()]


def _what(column: Column) -> object:
    """Return the key that columns share whose terms are merged."""
    at = None if column.steps else _table_side(column)
    if at is not None:
        own, other = column.sides[at], column.sides[1 - at]
        return at, other, own.input, own.steps[:-1]
    keys = _keys(column.steps[-1]) if column.steps else None
    return column if keys is None else (column.input, column.steps[:-1], keys)


def _sum(group: Sequence[Term]) -> Term:
    """Return the sum of terms that have the same in common."""
    column, weights = group[0].column, [term.weight for term in group]
    at = None if column.steps else _table_side(column)
    if at is not None:
        sides = list(column.sides)
        step = _added([term.column.sides[at].steps[-1] for term in group], weights)
        sides[at] = replace(sides[at], steps=(*sides[at].steps[:-1], step))
        return Term(1.0, Column(Product(*sides)))
    if not column.steps or _keys(column.steps[-1]) is None:
        return Term(sum(weights), column)
    step = _added([term.column.steps[-1] for term in group], weights)
    return Term(1.0, replace(column, steps=(*column.steps[:-1], step)))


def _table_side(column: Column) -> int | None:
    """Return which side of a product is a category, the second before the first."""
    found = [at for at, side in enumerate(column.sides) if side.steps and isinstance(side.steps[-1], Levels)]
    return found[-1] if found else None


def _keys(step: Step) -> object:
    """Return the positions of a table's values, or None for a step without a table."""
    if isinstance(step, Levels):
        return Levels
    if isinstance(step, Pieces):
        return step.breaks, step.starts, len(step.coefficients[0]), step.missing is None
    return None


def _added(steps: Sequence[Any], weights: Sequence[float]) -> Step:
    """Return the weighted sum of tables whose values stand at the same places."""
    first = steps[0]

    def total(of: Callable[[Any], object]) -> Any:
        parts = (weight * np.asarray(of(step)) for step, weight in zip(steps, weights, strict=True))
        return sum(parts, start=np.zeros_like(np.asarray(of(first), dtype=np.float64))).tolist()

    if isinstance(first, Levels):
        other, missing = total(lambda step: step.other), total(lambda step: step.missing)
        known: dict[Any, float] = {}
        for step, weight in zip(steps, weights, strict=True):
            for level, value in zip(step.levels, step.values, strict=True):
                known[level] = known.get(level, other) + weight * (value - step.other)
        return Levels(tuple(known), tuple(known.values()), other, missing)
    pieces = tuple(tuple(piece) for piece in total(lambda step: step.coefficients))
    missing = None if first.missing is None else total(lambda step: step.missing)
    return Pieces(first.breaks, first.starts, pieces, missing)
