"""Values out of a model file, each checked before it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from rankwise.arrays import AnyArray, DType, SparseMatrix
from rankwise.data.containers import compressed_misfit
from rankwise.design.terms import Curve, Surface, Terms
from rankwise.kernels import KERNELS, Kernel
from rankwise.metrics import METRICS, Metric, get_metric
from rankwise.persistence.defaults import DEFAULTS
from rankwise.persistence.values import (
    COMPRESSED,
    CURVE,
    DEPTH,
    DTYPES,
    SCALARS,
    SPARSE,
    SPLINE,
    SPLITTER_CLASSES,
    wrong,
)

__all__ = ["PLAIN", "Reader"]

Made = TypeVar("Made")

PLAIN = frozenset({bool, int, float, str, type(None), np.ndarray})  # values that need no reading


class Reader:
    """Turns JSON back into values.

    Parameters
    ----------
    arrays : mapping from str to ndarray
    read_step : callable, optional
        Makes an estimator that stands inside another one.
    defaults : int
        Which defaults the parameters have that a file leaves out.
    """

    def __init__(
        self,
        arrays: Mapping[str, AnyArray],
        read_step: Callable[[object, Reader], object] | None = None,
        defaults: int = DEFAULTS,
    ) -> None:
        self._arrays, self._read_step, self.defaults = arrays, read_step, defaults

    def read(self, value: object, depth: int = 0) -> object:
        """Return the value that some JSON stands for."""
        if depth > DEPTH:
            raise wrong(f"something is nested more than {DEPTH} levels deep")
        if isinstance(value, list):
            return self._items(value, depth)
        if not isinstance(value, dict):
            return value
        if "$" in "".join(value):  # one look for most
            if "$numpy" in value:
                return self._scalar(value, depth)
            if len(value) == 1:
                ((kind, content),) = value.items()
                if kind in _READERS:
                    return _READERS[kind](self, content, depth)
            if any(key.startswith("$") for key in value):
                kinds = ", ".join(sorted(value))
                raise wrong(f"it holds a kind of value that is not known here: {kinds:.80}")
        return {
            key: item if type(item) in PLAIN else self.read(item, depth + 1) for key, item in value.items()
        }

    def _items(self, items: object, depth: int) -> list[object]:
        if not isinstance(items, list):
            raise wrong(f"a list is {items!r:.80}")
        return [self.read(item, depth + 1) for item in items]

    def _tuple(self, items: object, depth: int) -> tuple[object, ...]:
        return tuple(self._items(items, depth))

    def _array(self, name: object, _: int = 0) -> AnyArray:
        if not isinstance(name, str) or name not in self._arrays:
            raise wrong(f"it has no array {name!r:.80}")
        return self._arrays[name]

    def _float(self, text: object, _: int) -> float:
        if not isinstance(text, str) or text not in {"nan", "inf", "-inf"}:
            raise wrong(f"a number is {text!r:.80}")
        return float(text)

    def _dict(self, pairs: object, depth: int) -> dict[object, object]:
        if not isinstance(pairs, list) or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in pairs
        ):
            raise wrong("a dictionary is no list of pairs")
        return _make(dict, [self._items(pair, depth) for pair in pairs])

    def _slice(self, bounds: object, _: int) -> slice:
        if (
            not isinstance(bounds, list)
            or len(bounds) != 3
            or not all(at is None or type(at) in {int, str} for at in bounds)
        ):
            raise wrong("a slice is none")
        return slice(*bounds)

    def _dtype(self, name: object, _: int) -> DType:
        if not isinstance(name, str) or name not in DTYPES:
            raise wrong(f"a type of numbers is {name!r:.80}")
        return np.dtype(name)

    def _type(self, name: object, _: int) -> type:
        if not isinstance(name, str) or name not in SCALARS:
            raise wrong(f"a type of numbers is {name!r:.80}")
        return SCALARS[name]

    def _spline(self, content: object, depth: int) -> object:
        from scipy.interpolate import BSpline  # noqa: PLC0415 - a tenth of a second that most models do not need

        knots, coefficients, degree, extrapolate = (
            self.read(part, depth + 1) for part in _members(content, *SPLINE)
        )
        if (
            not all(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in (knots, coefficients))
            or type(degree) is not int
            or not 0 <= degree < 100
            or not (type(extrapolate) is bool or (type(extrapolate) is str and extrapolate == "periodic"))
        ):
            raise wrong("a spline is none")
        return _make(BSpline, knots, coefficients, degree, extrapolate=extrapolate)

    def _step(self, written: object, depth: int) -> object:
        if self._read_step is None:
            raise wrong("an estimator stands where none can")
        return self._read_step(written, self)

    def _range(self, bounds: object, _: int) -> range:
        if not isinstance(bounds, list) or len(bounds) != 3 or not all(type(at) is int for at in bounds):
            raise wrong("a range is no range")
        return _make(range, *bounds)

    def _scalar(self, value: Mapping[str, object], depth: int) -> object:
        kind, plain = value["$numpy"], value.get("value")
        if isinstance(plain, dict):
            (text,) = _members(plain, "$float")
            plain = self._float(text, depth)
        if len(value) != 2 or not isinstance(kind, str):  # it may be an array
            raise wrong(f"a number is a {kind!r:.80}")
        if kind == "str" and type(plain) is str:
            return np.str_(plain)
        if kind not in SCALARS:
            raise wrong(f"a number is a {kind!r:.80}")
        make = SCALARS[kind]
        if make is np.bool_:
            fits = type(plain) is bool
        elif issubclass(make, np.integer):
            fits = type(plain) is int and int(np.iinfo(make).min) <= plain <= int(np.iinfo(make).max)
        else:
            fits = type(plain) is float and not float(np.finfo(make).max) < abs(plain) < np.inf
        if not fits:
            raise wrong(f"{plain!r:.80} is no {kind}")
        return make(plain)

    def _objects(self, content: object, depth: int) -> AnyArray:
        given, items = _members(content, "shape", "items")
        shape = _checked_shape(given)
        values = self._items(items, depth)
        if math.prod(shape) != len(values):
            raise wrong(f"{len(values)} objects do not make an array of shape {shape!r:.80}")
        array = np.empty(len(values), dtype=object)
        for at, value in enumerate(values):
            array[at] = value
        return array.reshape(shape)

    def _sparse(self, content: object, _: int) -> SparseMatrix:
        kind, given, *parts = _members(content, "kind", "shape", *COMPRESSED)
        shape = _checked_shape(given)
        if not isinstance(kind, str) or kind not in SPARSE or len(shape) != 2:
            raise wrong("a sparse matrix is of no known kind")
        arrays: list[Any] = [self.read(part) for part in parts]
        data, indices, indptr = arrays
        long, short = shape if kind.startswith("csr") else shape[::-1]
        # What a matrix of a file points to is read by compiled code that does not look again.
        if (
            not isinstance(data, np.ndarray)
            or data.ndim != 1
            or data.dtype.kind not in "biuf"
            or compressed_misfit(data, indices, indptr, long, short) is not None
            or not indptr[-1] == indices.size == data.size
        ):
            raise wrong("a sparse matrix is none")
        matrix: SparseMatrix = _make(SPARSE[kind], (data, indices, indptr), shape=tuple(shape))
        return matrix

    def _metric(self, content: object, depth: int) -> Metric:
        name, options = _members(content, "name", "options")
        if not isinstance(name, str) or name not in METRICS:
            raise wrong(f"metric {name!r:.80} is not known here")
        metric: Metric = _make(get_metric, name, **self._keywords(options, depth))
        return metric

    def _kernel(self, content: object, depth: int) -> Kernel:
        name, parameters = _members(content, "name", "parameters")
        if not isinstance(name, str) or name not in KERNELS:
            raise wrong(f"kernel {name!r:.80} is not known here")
        own = self._keywords(parameters, depth)
        return Kernel(name, {key: value for key, value in own.items() if key != "n_jobs"})

    def _splitter(self, content: object, depth: int) -> object:
        name, parameters = _members(content, "name", "parameters")
        if not isinstance(name, str) or name not in SPLITTER_CLASSES:
            raise wrong(f"splitter {name!r:.80} is not known here")
        return _make(SPLITTER_CLASSES[name], **self._keywords(parameters, depth))

    def _terms(self, content: object, depth: int) -> Terms:
        curves, surfaces = _members(content, "curves", "surfaces")
        if not isinstance(curves, list) or not isinstance(surfaces, list):
            raise wrong("terms are no lists")
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in surfaces):
            raise wrong("a surface has no two sides")
        return Terms(
            tuple(self._curve(part, depth) for part in curves),
            tuple(Surface(self._curve(one, depth), self._curve(other, depth)) for one, other in surfaces),
        )

    def _curve(self, content: object, depth: int) -> Curve:
        column, knots, is_levels, has_missing = (
            self.read(part, depth + 1) for part in _members(content, *CURVE)
        )
        # Compiled code searches the knots, and reads the column without looking again.
        if (
            type(column) is not int
            or not 0 <= column < 2**31
            or type(is_levels) is not bool
            or type(has_missing) is not bool
            or not isinstance(knots, np.ndarray)
            or knots.dtype != np.float64
            or knots.ndim != 1
            or not 1 <= knots.size < 2**16
            or not np.isfinite(knots).all()
            or not (knots[1:] > knots[:-1]).all()
        ):
            raise wrong("a curve has no column, or no increasing knots")
        return Curve(column, knots, is_levels, has_missing)

    def _keywords(self, content: object, depth: int) -> dict[str, Any]:
        keywords = self.read(content, depth + 1)
        if not isinstance(keywords, dict) or not all(isinstance(key, str) for key in keywords):
            raise wrong(f"parameters are {keywords!r:.80}")
        return keywords


_READERS: Mapping[str, Callable[[Reader, object, int], object]] = {
    f"${kind}": getattr(Reader, f"_{kind}")
    for kind in (
        "array",
        "dict",
        "dtype",
        "float",
        "kernel",
        "metric",
        "objects",
        "range",
        "slice",
        "sparse",
        "spline",
        "splitter",
        "step",
        "terms",
        "tuple",
        "type",
    )
}


def _members(content: object, *names: str) -> list[object]:
    if not isinstance(content, dict) or set(content) != set(names):
        raise wrong(f"{content!r:.80} does not have {', '.join(names)}")
    return [content[name] for name in names]


def _checked_shape(shape: object) -> list[int]:
    if (
        not isinstance(shape, list)
        or len(shape) > 32
        or not all(type(axis) is int and 0 <= axis < 2**48 for axis in shape)
        or math.prod(max(axis, 1) for axis in shape) >= 2**56
    ):
        raise wrong(f"an array has shape {shape!r:.80}")
    return shape


def _make(kind: Callable[..., Made], *arguments: object, **keywords: object) -> Made:
    try:
        return kind(*arguments, **keywords)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong(
            f"{getattr(kind, '__name__', 'a class')} does not take what it holds ({error})"
        ) from error
