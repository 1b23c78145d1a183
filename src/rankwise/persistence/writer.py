"""Values on their way into a model file, as JSON and arrays beside it."""

from __future__ import annotations

import math
from collections import UserList
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import AnyArray, is_sparse
from rankwise.design.terms import Curve, Terms
from rankwise.exceptions import ModelFileError
from rankwise.json_values import Json
from rankwise.kernels import Kernel
from rankwise.metrics import METRICS, Metric
from rankwise.persistence.container import is_storable
from rankwise.persistence.values import (
    COMPRESSED,
    CURVE,
    DEPTH,
    DTYPES,
    SCALARS,
    SPARSE,
    SPLINE,
    SPLITTERS,
    is_splitter,
)

__all__ = ["Writer"]


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

    def __init__(self, write_step: Callable[[object, str, Writer], Json] | None = None) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._write_step = write_step

    def write(self, value: object, name: str, depth: int = 0) -> Json:  # noqa: C901, PLR0911 - one line per type
        """Return the JSON of a value; `name` says what it is, in array names and in errors."""
        if depth > DEPTH:
            raise ModelFileError(
                f"{name} is nested more than {DEPTH} levels deep.",
                "flatten it; a model file holds plain values.",
            )
        if value is None or type(value) is bool or type(value) is int or type(value) is str:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, name, depth)
        if isinstance(value, np.generic):
            return self._scalar(value, name)
        if type(value) is list:
            return self._items(value, name, depth)
        if type(value) is tuple:
            return {"$tuple": self._items(value, name, depth)}
        if type(value) is dict:
            return self._mapping(value, name, depth)
        if type(value) is slice:
            return {"$slice": [value.start, value.stop, value.step]}
        if type(value) is range:
            return {"$range": [value.start, value.stop, value.step]}
        if is_sparse(value) and type(value) is SPARSE.get(type(value).__name__):
            parts = {part: self._array(getattr(value, part), f"{name}/{part}", depth) for part in COMPRESSED}
            return {"$sparse": {"kind": type(value).__name__, "shape": list(value.shape), **parts}}
        return self._object(value, name, depth)

    def _items(self, items: Iterable[object], name: str, depth: int) -> list[Json]:
        return [self.write(item, f"{name}/{at}", depth + 1) for at, item in enumerate(items)]

    def _array(self, array: AnyArray, name: str, depth: int) -> Json:
        if type(array) is not np.ndarray:
            _refuse(array, name)
        if array.dtype == object:
            items = self._items(array.ravel(), name, depth)
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

    def _scalar(self, value: np.generic, name: str) -> Json:
        if isinstance(value, np.str_):
            return {"$numpy": "str", "value": str(value)}
        if value.dtype.name not in SCALARS:
            _refuse(value, name)
        return {"$numpy": value.dtype.name, "value": self.write(value.item(), name)}

    def _mapping(self, value: dict[object, object], name: str, depth: int) -> Json:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {str(key): self.write(item, f"{name}/{key}", depth + 1) for key, item in value.items()}
        pairs = [
            [self.write(key, name, depth + 1), self.write(item, f"{name}/{key}", depth + 1)]
            for key, item in value.items()
        ]
        return {"$dict": pairs}

    def _object(self, value: object, name: str, depth: int) -> Json:  # noqa: PLR0911 - one line per type
        kind = type(value).__name__
        if isinstance(value, Metric) and value.base_name in METRICS:
            options = self.write(dict(value.options), name, depth + 1)
            return {"$metric": {"name": value.base_name, "options": options}}
        if type(value) is Kernel:
            parameters = self.write(dict(value.parameters), f"{name}/parameters", depth + 1)
            return {"$kernel": {"name": self.write(value.name, name), "parameters": parameters}}
        if is_splitter(value):
            parameters = {part: getattr(value, part) for part in SPLITTERS[kind]}
            return {"$splitter": {"name": kind, "parameters": self.write(parameters, name, depth + 1)}}
        if type(value) is Terms:
            return {"$terms": self._terms(value, name, depth + 1)}
        if isinstance(value, BaseEstimator) and self._write_step is not None:
            return {"$step": self._write_step(value, f"{name}/", self)}
        if kind == "BSpline" and type(value).__module__.startswith("scipy.interpolate"):
            spline: Any = value
            parts = (spline.t, spline.c, int(spline.k), spline.extrapolate)
            written = [
                self.write(part, f"{name}/{key}", depth + 1) for key, part in zip(SPLINE, parts, strict=True)
            ]
            return {"$spline": dict(zip(SPLINE, written, strict=True))}
        if isinstance(value, np.dtype) and value.name in DTYPES:
            return {"$dtype": value.name}
        if isinstance(value, type) and value.__name__ in SCALARS and value is SCALARS[value.__name__]:
            return {"$type": value.__name__}
        if isinstance(value, list | UserList):  # how scikit-learn lists columns that are left over
            return self.write(list(value), name, depth)
        return _refuse(value, name)

    def _terms(self, terms: Terms, name: str, depth: int) -> Json:
        def curve(part: Curve, where: str) -> Json:
            return {key: self.write(getattr(part, key), f"{name}/{where}/{key}", depth) for key in CURVE}

        return {
            "curves": [curve(part, str(at)) for at, part in enumerate(terms.curves)],
            "surfaces": [
                [curve(part.first, f"{at}/first"), curve(part.second, f"{at}/second")]
                for at, part in enumerate(terms.surfaces)
            ],
        }


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
