"""Values as JSON: what JSON has stays as it is, arrays go beside it, and the rest is written as ``{"$kind": …}``.

Only the kinds in the tables below are ever made from a file, each by code that checks what it is given; no name from a
file is imported or called.
"""

from __future__ import annotations

import math
from collections import UserList
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from rankwise.arrays import AnyArray, ArrayLike
from rankwise.data.containers import compressed_misfit
from rankwise.exceptions import ModelFileError
from rankwise.kernels import KERNELS, Kernel
from rankwise.metrics import METRICS, Metric
from rankwise.model_selection import PreferenceKFold, QueryKFold
from rankwise.persistence.container import is_storable
from rankwise.terms import Curve, Surface, Terms

__all__ = ["Reader", "Writer", "is_splitter", "wrong"]

Array = AnyArray

_DEPTH = 32
_PLAIN = {bool, int, float, str, type(None)}
_SCALARS = {
    np.dtype(kind).name: np.dtype(kind).type
    for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
_DTYPES = {*_SCALARS, "object"}
_SPARSE = {kind.__name__: kind for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)}
_FOLDS = ("n_splits", "shuffle", "random_state")
_SPLITTERS: Mapping[str, tuple[type, tuple[str, ...]]] = {
    "GroupKFold": (GroupKFold, _FOLDS),
    "KFold": (KFold, _FOLDS),
    "LeaveOneGroupOut": (LeaveOneGroupOut, ()),
    "PreferenceKFold": (PreferenceKFold, ("n_splits", "by", "random_state")),
    "QueryKFold": (QueryKFold, _FOLDS),
    "StratifiedGroupKFold": (StratifiedGroupKFold, _FOLDS),
    "StratifiedKFold": (StratifiedKFold, _FOLDS),
}


def is_splitter(value: Any) -> bool:
    """Tell whether this is one of the splitters that a file can hold."""
    kind = type(value).__name__
    return kind in _SPLITTERS and type(value) is _SPLITTERS[kind][0]


class Writer:
    """Turns values into JSON, and collects the arrays that go beside it.

    Attributes
    ----------
    arrays : dict from str to ndarray
        By a name made of where they were found, such as ``coef_`` or ``parameters/alphas``.

    Parameters
    ----------
    write_step : callable, optional
        Writes an estimator that stands inside another one, given what its names begin with and this writer.
    """

    def __init__(self, write_step: Callable[[Any, str, Writer], dict[str, Any]] | None = None) -> None:
        self.arrays: dict[str, Array] = {}
        self._write_step = write_step

    def write(self, value: Any, name: str, depth: int = 0) -> Any:  # noqa: C901, PLR0911 - one line per type
        """Return the JSON of a value; `name` says what it is, in array names and in errors."""
        if depth > _DEPTH:
            raise ModelFileError(
                f"{name} is nested more than {_DEPTH} levels deep.",
                "flatten it; a model file holds plain values.",
            )
        if value is None or type(value) in {bool, int, str}:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, name, depth)
        if isinstance(value, np.generic):
            return self._scalar(value, name)
        if type(value) in {list, tuple}:
            items = [self.write(item, f"{name}/{at}", depth + 1) for at, item in enumerate(value)]
            return items if type(value) is list else {"$tuple": items}
        if type(value) is dict:
            return self._mapping(value, name, depth)
        if type(value) is slice:
            return {"$slice": [value.start, value.stop, value.step]}
        if type(value) is range:
            return {"$range": [value.start, value.stop, value.step]}
        if type(value).__name__ in _SPARSE and type(value) is _SPARSE[type(value).__name__]:
            parts = {part: self._array(getattr(value, part), f"{name}/{part}", depth) for part in _CSR}
            return {"$sparse": {"kind": type(value).__name__, "shape": list(value.shape), **parts}}
        return self._object(value, name, depth)

    def _array(self, array: Array, name: str, depth: int) -> Any:
        if type(array) is not np.ndarray:
            _refuse(array, name)
        if array.dtype == object:
            items = [self.write(item, f"{name}/{at}", depth + 1) for at, item in enumerate(array.ravel())]
            return {"$objects": {"shape": list(array.shape), "items": items}}
        if not is_storable(array.dtype):
            raise ModelFileError(
                f"{name} is an array of type {array.dtype}, which a model file does not hold.",
                "convert it to float64 (astype) before fitting, or set that parameter to a plain value.",
            )
        while name in self.arrays:
            name += "+"
        self.arrays[name] = array
        return {"$array": name}

    def _scalar(self, value: np.generic, name: str) -> Any:
        if isinstance(value, np.str_):
            return {"$numpy": "str", "value": str(value)}
        if value.dtype.name not in _SCALARS:
            _refuse(value, name)
        return {"$numpy": value.dtype.name, "value": self.write(value.item(), name)}

    def _mapping(self, value: dict[Any, Any], name: str, depth: int) -> Any:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: self.write(item, f"{name}/{key}", depth + 1) for key, item in value.items()}
        pairs = [
            [self.write(key, name, depth + 1), self.write(item, f"{name}/{key}", depth + 1)]
            for key, item in value.items()
        ]
        return {"$dict": pairs}

    def _object(self, value: object, name: str, depth: int) -> Any:  # noqa: PLR0911 - one line per type
        kind = type(value).__name__
        if isinstance(value, Metric) and type(METRICS.get(value.base_name)) is type(value):
            options = {field.name: getattr(value, field.name) for field in fields(value)}
            return {"$metric": {"name": value.base_name, "options": self.write(options, name, depth + 1)}}
        if type(value) is Kernel:
            parameters = self.write(dict(value.parameters), f"{name}/parameters", depth + 1)
            return {"$kernel": {"name": self.write(value.name, name), "parameters": parameters}}
        if is_splitter(value):
            parameters = {part: getattr(value, part) for part in _SPLITTERS[kind][1]}
            return {"$splitter": {"name": kind, "parameters": self.write(parameters, name, depth + 1)}}
        if type(value) is Terms:
            return {"$terms": self._terms(value, name, depth + 1)}
        if isinstance(value, BaseEstimator) and self._write_step is not None:
            return {"$step": self._write_step(value, f"{name}/", self)}
        if kind == "BSpline" and type(value).__module__.startswith("scipy.interpolate"):
            spline: Any = value
            parts = (spline.t, spline.c, int(spline.k), spline.extrapolate)
            written = [
                self.write(part, f"{name}/{key}", depth) for key, part in zip(_SPLINE, parts, strict=True)
            ]
            return {"$spline": dict(zip(_SPLINE, written, strict=True))}
        if isinstance(value, np.dtype) and value.name in _DTYPES:
            return {"$dtype": value.name}
        if isinstance(value, type) and value.__name__ in _SCALARS and value is _SCALARS[value.__name__]:
            return {"$type": value.__name__}
        if isinstance(value, list | UserList):  # how scikit-learn lists columns that are left over
            return self.write(list(value), name, depth)
        return _refuse(value, name)

    def _terms(self, terms: Terms, name: str, depth: int) -> dict[str, Any]:
        def curve(part: Curve, where: str) -> dict[str, Any]:
            return {key: self.write(getattr(part, key), f"{name}/{where}/{key}", depth) for key in _CURVE}

        return {
            "curves": [curve(part, str(at)) for at, part in enumerate(terms.curves)],
            "surfaces": [
                [curve(part.first, f"{at}/first"), curve(part.second, f"{at}/second")]
                for at, part in enumerate(terms.surfaces)
            ],
        }


_SPLINE = ("t", "c", "k", "extrapolate")
_CSR = ("data", "indices", "indptr")
_CURVE = ("column", "knots", "is_levels", "has_missing")


class Reader:
    """Turns JSON back into values.

    Parameters
    ----------
    arrays : mapping from str to ndarray
    read_step : callable, optional
        Makes an estimator that stands inside another one.
    """

    def __init__(
        self, arrays: Mapping[str, Array], read_step: Callable[[Any, Reader], Any] | None = None
    ) -> None:
        self._arrays, self._read_step = arrays, read_step

    def read(self, value: object, depth: int = 0) -> Any:
        """Return the value that some JSON stands for."""
        if depth > _DEPTH:
            raise wrong(f"something is nested more than {_DEPTH} levels deep")
        if isinstance(value, list):
            return self._items(value, depth)
        if not isinstance(value, dict):
            return value
        if "$numpy" in value:
            return self._scalar(value, depth)
        if len(value) == 1:
            ((kind, content),) = value.items()
            if kind in _READERS:
                return _READERS[kind](self, content, depth)
        if "$" in "".join(value) and any(key.startswith("$") for key in value):  # one look for most
            raise wrong(f"it holds a kind of value that is not known here: {', '.join(sorted(value))[:80]}")
        return {
            key: item if type(item) in _PLAIN else self.read(item, depth + 1) for key, item in value.items()
        }

    def _items(self, items: object, depth: int) -> list[Any]:
        if not isinstance(items, list):
            raise wrong(f"a list is {items!r:.80}")
        return [self.read(item, depth + 1) for item in items]

    def _tuple(self, items: object, depth: int) -> tuple[Any, ...]:
        return tuple(self._items(items, depth))

    def _array(self, name: object, _: int = 0) -> Array:
        if not isinstance(name, str) or name not in self._arrays:
            raise wrong(f"it has no array {name!r:.80}")
        return self._arrays[name]

    def _float(self, text: object, _: int) -> float:
        if not isinstance(text, str) or text not in {"nan", "inf", "-inf"}:
            raise wrong(f"a number is {text!r:.80}")
        return float(text)

    def _dict(self, pairs: ArrayLike, depth: int) -> dict[Any, Any]:
        found = {}
        for pair in self._items(pairs, depth):
            try:
                key, value = pair
                found[key] = value
            except (TypeError, ValueError) as error:
                raise wrong(f"a dictionary is wrong ({error})") from error
        return found

    def _slice(self, bounds: object, _: int) -> slice:
        if (
            not isinstance(bounds, list)
            or len(bounds) != 3
            or not all(at is None or type(at) in {int, str} for at in bounds)
        ):
            raise wrong("a slice is none")
        return slice(*bounds)

    def _dtype(self, name: object, _: int) -> np.dtype[Any]:
        if not isinstance(name, str) or name not in _DTYPES:
            raise wrong(f"a type of numbers is {name!r:.80}")
        return np.dtype(name)

    def _type(self, name: object, _: int) -> type:
        if not isinstance(name, str) or name not in _SCALARS:
            raise wrong(f"a type of numbers is {name!r:.80}")
        return _SCALARS[name]

    def _spline(self, content: object, depth: int) -> Any:
        from scipy.interpolate import BSpline  # noqa: PLC0415 - a tenth of a second that most models do not need

        knots, coefficients, degree, extrapolate = (
            self.read(part, depth + 1) for part in _members(content, *_SPLINE)
        )
        if (
            not all(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in (knots, coefficients))
            or type(degree) is not int
            or not 0 <= degree < 100
            or not (type(extrapolate) is bool or extrapolate == "periodic")
        ):
            raise wrong("a spline is none")
        return _make(BSpline, knots, coefficients, degree, extrapolate=extrapolate)

    def _step(self, written: object, depth: int) -> Any:
        if self._read_step is None:
            raise wrong("an estimator stands where none can")
        return self._read_step(written, self)

    def _range(self, bounds: object, _: int) -> range:
        if not isinstance(bounds, list) or len(bounds) != 3 or not all(type(at) is int for at in bounds):
            raise wrong("a range is no range")
        found: range = _make(range, *bounds)
        return found

    def _scalar(self, value: dict[str, Any], depth: int) -> Any:
        kind, plain = value["$numpy"], self.read(value.get("value"), depth + 1)
        if len(value) == 2 and kind == "str" and type(plain) is str:
            return np.str_(plain)
        if len(value) != 2 or not isinstance(kind, str) or kind not in _SCALARS:
            raise wrong(f"a number is a {kind!r:.80}")
        make = _SCALARS[kind]
        if make is np.bool_:
            fits = type(plain) is bool
        elif issubclass(make, np.integer):
            fits = type(plain) is int and int(np.iinfo(make).min) <= plain <= int(np.iinfo(make).max)
        else:
            fits = type(plain) is float and not float(np.finfo(make).max) < abs(plain) < np.inf
        if not fits:
            raise wrong(f"{plain!r:.80} is no {kind}")
        return make(plain)

    def _objects(self, content: object, depth: int) -> Array:
        shape, items = _members(content, "shape", "items")
        _check_shape(shape)
        values = self._items(items, depth)
        if math.prod(shape) != len(values):
            raise wrong(f"{len(values)} objects do not make an array of shape {shape!r:.80}")
        array = np.empty(len(values), dtype=object)
        for at, value in enumerate(values):
            array[at] = value
        return array.reshape(shape)

    def _sparse(self, content: object, _: int) -> Any:
        kind, shape, *parts = _members(content, "kind", "shape", *_CSR)
        _check_shape(shape)
        if not isinstance(kind, str) or kind not in _SPARSE or len(shape) != 2:
            raise wrong("a sparse matrix is of no known kind")
        data, indices, indptr = (self.read(part) for part in parts)
        long, short = shape if kind.startswith("csr") else shape[::-1]
        # What a matrix of a file points to is read by compiled code that does not look again.
        if (
            not all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr))
            or data.dtype.kind not in "biuf"
            or compressed_misfit(data, indices, indptr, long, short) is not None
            or not indptr[-1] == indices.size == data.size
        ):
            raise wrong("a sparse matrix is none")
        return _make(_SPARSE[kind], (data, indices, indptr), shape=tuple(shape))

    def _metric(self, content: object, depth: int) -> Metric:
        name, options = _members(content, "name", "options")
        if not isinstance(name, str) or name not in METRICS:
            raise wrong(f"metric {name!r:.80} is not known here")
        metric: Metric = _make(replace, METRICS[name], **self._keywords(options, depth))
        return metric

    def _kernel(self, content: object, depth: int) -> Kernel:
        name, parameters = _members(content, "name", "parameters")
        if not isinstance(name, str) or name not in KERNELS:
            raise wrong(f"kernel {name!r:.80} is not known here")
        return Kernel(name, self._keywords(parameters, depth))

    def _splitter(self, content: object, depth: int) -> Any:
        name, parameters = _members(content, "name", "parameters")
        if not isinstance(name, str) or name not in _SPLITTERS:
            raise wrong(f"splitter {name!r:.80} is not known here")
        return _make(_SPLITTERS[name][0], **self._keywords(parameters, depth))

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
            self.read(part, depth + 1) for part in _members(content, *_CURVE)
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


_READERS: Mapping[str, Callable[[Reader, Any, int], Any]] = {
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


def wrong(how: str) -> ModelFileError:
    """Return the error of a file that is whole and makes no sense."""
    return ModelFileError(
        f"The model file cannot be understood: {how}.",
        "upgrade rankwise if a newer version wrote it, else save the model again.",
    )


def _members(content: object, *names: str) -> list[Any]:
    if not isinstance(content, dict) or set(content) != set(names):
        raise wrong(f"{content!r:.80} does not have {', '.join(names)}")
    return [content[name] for name in names]


def _check_shape(shape: object) -> None:
    if (
        not isinstance(shape, list)
        or len(shape) > 32
        or not all(type(axis) is int and 0 <= axis < 2**48 for axis in shape)
        or math.prod(max(axis, 1) for axis in shape) >= 2**56
    ):
        raise wrong(f"an array has shape {shape!r:.80}")


def _make(kind: Any, *arguments: Any, **keywords: Any) -> Any:
    try:
        return kind(*arguments, **keywords)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong(f"{kind.__name__} does not take what it holds ({error})") from error


def _refuse(value: object, name: str) -> NoReturn:
    if callable(value) and not isinstance(value, type):
        raise ModelFileError(
            f"{name} is a function ({value!r:.80}), and a model file holds no code.",
            "use a kernel by name, or kernel='precomputed' with the function's values; or pickle the model, for "
            "readers who trust you.",
        )
    raise ModelFileError(
        f"{name} is a {type(value).__name__} ({value!r:.80}), which a model file does not hold.",
        "set it to a plain value before saving (set_params), such as a list, an array or a number of folds; a fitted "
        "model does not need it to predict.",
    )
