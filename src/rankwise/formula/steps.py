"""Steps of one column on its way into a model: each maps the values of a column to new ones.

Every transformer that rankwise's hints recommend works on one column at a time, or maps each of its values to a
result. A chain of these steps therefore describes everything that a pipeline does to a column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.special

from rankwise.arrays import AnyArray, Floats
from rankwise.data.containers import is_null
from rankwise.preprocessing import QueryScaler

Level = str | float  # a value of a column


class Step(ABC):
    """The base of the steps; they are values, and equal where their parts are."""

    @abstractmethod
    def apply(self, values: AnyArray, qid: AnyArray | None) -> AnyArray:
        """Return the transformed values of one column.

        Parameters
        ----------
        values : (rows,) float64, or objects where the column is text
        qid : (rows,) ids or None
        """


@dataclass(frozen=True)
class Affine(Step):
    """``(x - center) * scale + shift``: the centre is kept apart, so that nothing large cancels."""

    center: float = 0.0
    scale: float = 1.0
    shift: float = 0.0

    def apply(self, values: Floats, qid: AnyArray | None) -> Floats:
        return (values - self.center) * self.scale + self.shift


@dataclass(frozen=True)
class Fill(Step):
    """Replace missing values by `value`, a number or a text."""

    value: Level

    def apply(self, values: AnyArray, qid: AnyArray | None) -> AnyArray:
        out = values.copy()
        out[is_missing(values)] = self.value
        return out


@dataclass(frozen=True)
class IsMissing(Step):
    """1 where a value is missing, else 0."""

    def apply(self, values: AnyArray, qid: AnyArray | None) -> Floats:
        return is_missing(values).astype(np.float64)


@dataclass(frozen=True)
class Levels(Step):
    """One result for each known value, one for all others, and one for missing values.

    Attributes
    ----------
    levels : tuple of float or str
    values : tuple of float
    other, missing : float
    """

    levels: tuple[Level, ...]
    values: tuple[float, ...]
    other: float = 0.0
    missing: float = 0.0

    @property
    def is_text(self) -> bool:
        """Whether the levels are texts."""
        return any(isinstance(level, str) for level in self.levels)

    def apply(self, values: AnyArray, qid: AnyArray | None) -> Floats:
        table = dict(zip(self.levels, self.values, strict=True))
        out = np.array([table.get(value, self.other) for value in values.tolist()], dtype=np.float64)
        out[is_missing(values)] = self.missing
        return out


@dataclass(frozen=True)
class Pieces(Step):
    """A polynomial between each two breaks; the first and the last go on outside.

    Attributes
    ----------
    breaks : tuple of float
        Where one piece ends and the next begins.
    starts : tuple of float
        The offset that is subtracted from a value in each piece; one more than breaks.
    coefficients : tuple of tuple of float
        Of each piece, the highest power first.
    missing : float or None
        The result for missing values; None: they stay missing.
    """

    breaks: tuple[float, ...]
    starts: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    missing: float | None = None

    @property
    def is_constant(self) -> npt.NDArray[np.bool_]:
        """Which pieces are constant."""
        return np.asarray(~np.asarray(self.coefficients)[:, :-1].any(axis=1))

    @property
    def is_flat_outside(self) -> bool:
        """Whether the first and the last piece are constant."""
        return bool(self.is_constant[[0, -1]].all())

    def apply(self, values: Floats, qid: AnyArray | None) -> Floats:
        piece = np.searchsorted(self.breaks, values, side="right")
        # Nothing times infinity is no number: constant pieces are not multiplied.
        local = np.where(self.is_constant[piece], 0.0, values - np.asarray(self.starts)[piece])
        table, out = np.asarray(self.coefficients)[piece], np.zeros(values.shape)
        for power in range(table.shape[1]):
            out = out * local + table[:, power]
        return np.where(np.isnan(values), np.nan if self.missing is None else self.missing, out)


def curve(knots: Sequence[float], values: Sequence[float], missing: float | None = None) -> Pieces:
    """Return a function that is linear between knots and constant outside of them."""
    gap, rise = np.diff(knots), np.diff(values)
    slopes = np.divide(rise, gap, out=np.zeros_like(gap), where=gap > 0).tolist()
    table = [(0.0, values[0]), *zip(slopes, values, strict=False), (0.0, values[-1])]
    return Pieces(tuple(knots), (knots[0], *knots), tuple(table), missing)


def stairs(edges: Sequence[float], values: Sequence[float]) -> Pieces:
    """Return the function that is ``values[k]`` where ``edges[k - 1] <= x < edges[k]``."""
    return Pieces(tuple(edges), (0.0,) * len(values), tuple((value,) for value in values))


def clip(low: float, high: float) -> Pieces:
    """Return the function that brings a value into an interval."""
    return Pieces((low, high), (0.0,) * 3, ((0.0, low), (1.0, 0.0), (0.0, high)))


@dataclass(frozen=True)
class Power(Step):
    """The Yeo-Johnson or the Box-Cox transformation."""

    exponent: float
    is_box_cox: bool = False

    def apply(self, values: Floats, qid: AnyArray | None) -> Floats:
        if self.is_box_cox:
            return np.asarray(scipy.special.boxcox(values, self.exponent), dtype=np.float64)
        size = np.abs(values)
        up, down = (scipy.special.boxcox1p(size, exponent) for exponent in (self.exponent, 2 - self.exponent))
        return np.asarray(np.where(values >= 0, up, -down))


@dataclass(frozen=True)
class NormalQuantile(Step):
    """The normal quantile of a probability, bounded as in scikit-learn's QuantileTransformer."""

    low: float = float(scipy.special.ndtri(1e-7 - np.spacing(1)))
    high: float = float(scipy.special.ndtri(1 - (1e-7 - np.spacing(1))))

    def apply(self, values: Floats, qid: AnyArray | None) -> Floats:
        return np.asarray(np.clip(scipy.special.ndtri(values), self.low, self.high))


@dataclass(frozen=True)
class QueryScale(Step):
    """Scale a column of a whole query, as `rankwise.preprocessing.QueryScaler` does."""

    method: str

    def apply(self, values: Floats, qid: AnyArray | None) -> Floats:
        column = values[:, None]
        return np.asarray(QueryScaler(self.method).fit(column, qid=qid).transform(column, qid=qid))[:, 0]


def is_missing(values: AnyArray) -> npt.NDArray[np.bool_]:
    """Tell which values are NaN, or None and its like in a column of objects."""
    if values.dtype != object:
        return np.asarray(np.isnan(values))
    return np.array(list(map(is_null, values.tolist())), dtype=np.bool_)
