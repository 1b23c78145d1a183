"""Model files: a zip archive (stored) of ``model.json`` and one ``.npy`` member per array.

Nothing in a file is executed: it can only name the classes listed below. ``zipfile`` compares the CRC of each member,
so damage is detected. A file from a stranger may still contain anything: sizes are compared with the bytes present
before memory is allocated, parameters are checked by the constraints of their class, and the arrays that compiled code
reads must have consistent types and shapes. Parameters that control how a computation runs are neither saved nor
restored.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections import UserList
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any, BinaryIO, Self

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import rankwise
from rankwise.arrays import AnyArray
from rankwise.exceptions import ModelFileError
from rankwise.files import replacing
from rankwise.json_values import Json, json_value
from rankwise.kernels import KERNELS, Kernel
from rankwise.metrics import METRICS, Metric, get_metric
from rankwise.persistence.checks import (
    MOST_COLUMNS,
    NUMERIC,
    RANKERS,
    check_estimator,
    check_fields,
    is_number,
    last_step,
    require,
)

__all__ = ["load", "read_header", "save"]

File = str | os.PathLike[str] | BinaryIO

_FORMAT = 1
_HEADER = "model.json"
_LONGEST_HEADER = 1 << 26  # bytes; Python values take up to fifty times as much memory as their JSON
_DEEPEST = 100
_SCALARS = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64",
]  # fmt: skip
_SPARSE = {kind.__name__: kind for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)}

_MODULES = {
    name: module
    for module, names in {
        "rankwise": RANKERS,
        "rankwise.automatic.leaderboard": ["Entry", "Leaderboard"],
        "rankwise.automatic.scaling": ["RankScaler"],
        "rankwise.design.terms": ["Curve", "Surface", "Terms"],
        "rankwise.model_selection": ["PreferenceKFold", "QueryKFold"],
        "rankwise.preprocessing": ["QueryScaler", "TableEncoder"],
        "sklearn.compose": ["ColumnTransformer"],
        "sklearn.impute": ["MissingIndicator", "SimpleImputer"],
        "sklearn.model_selection": [
            "GroupKFold", "KFold", "LeaveOneGroupOut", "StratifiedGroupKFold", "StratifiedKFold",
        ],
        "sklearn.pipeline": ["FeatureUnion", "Pipeline"],
        "sklearn.preprocessing": [*NUMERIC, "OneHotEncoder", "OrdinalEncoder", "FunctionTransformer"],
    }.items()
    for name in names
}  # fmt: skip
_RUN_PARAMETERS = frozenset({"n_threads", "n_jobs", "memory", "memory_limit", "time_limit", "verbose"})
# Attributes and parameters that files leave out: a search, unfitted models, and the time that a candidate took.
_LEFT_OUT = {"AutoRanker": {"rivals", "search_"}, "AverageRanker": {"rankers"}, "Entry": {"seconds"}}
# Attributes that scikit-learn's fit sets under a private name, and that transform needs.
_PRIVATE = {
    "ColumnTransformer": {
        "_columns", "_n_features", "_remainder", "_transformer_to_input_indices", "_name_to_fitted_passthrough",
    },
    "KBinsDiscretizer": {"_encoder"},
    "MissingIndicator": {"_n_features", "_precomputed"},
    "OneHotEncoder": {
        "_default_to_infrequent_mappings", "_drop_idx_after_grouping", "_infrequent_enabled", "_infrequent_indices",
        "_n_features_outs",
    },
    "OrdinalEncoder": {
        "_default_to_infrequent_mappings", "_infrequent_enabled", "_infrequent_indices", "_missing_indices",
    },
    "PowerTransformer": {"_scaler"},
    "SimpleImputer": {"_fill_dtype", "_fit_dtype"},
}  # fmt: skip
_OUTPUT = "_sklearn_output_config"
_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")
_SUMMARY = [
    "n_features_in_", "n_queries_", "n_pairs_", "n_ignored_queries_", "alpha_", "gamma_", "scaling_", "solver_",
    "method_", "cv_", "best_score_", "best_iteration_", "n_iter_", "duality_gap_",
]  # fmt: skip


def save(model: BaseEstimator, path: File, *, notes: Mapping[str, object] | None = None) -> None:
    """Write a fitted ranker, or a pipeline that ends in one, to one file.

    The file contains arrays and JSON, and no code. `rankwise.load` returns a model whose fitted attributes and
    predictions are the same bit for bit. The file is written under a temporary name and then renamed, so an existing
    file is replaced by a complete one or stays as it was.

    Parameters
    ----------
    model : estimator or sklearn.pipeline.Pipeline
        A ranker of rankwise, alone or after steps that prepare its columns: scikit-learn's scalers, imputers,
        encoders, splines, bins, quantiles and powers, `ColumnTransformer`, `FeatureUnion` and pipelines of these, and
        the transformers of `rankwise.preprocessing`.
    path : path or binary stream
    notes : mapping, optional
        JSON values to keep beside the model, such as where the data came from.

    Examples
    --------
    >>> import io
    >>> import rankwise
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 2]
    >>> model, file = rankwise.RankRLS().fit(X, y), io.BytesIO()
    >>> rankwise.save(model, file, notes={"data": "three rows"})
    >>> again = rankwise.load(io.BytesIO(file.getvalue()))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    ranker = last_step(model)
    if type(ranker).__name__ not in RANKERS:
        raise ModelFileError(
            f"The model is a {type(ranker).__name__}, which is not a ranker of rankwise.",
            f"save one of {', '.join(RANKERS)}, or a Pipeline that ends in one.",
        )
    check_is_fitted(ranker)
    chosen = last_step(getattr(ranker, "best_estimator_", ranker))
    summary = {name.rstrip("_"): getattr(chosen, name) for name in _SUMMARY if hasattr(chosen, name)}
    arrays: dict[str, AnyArray] = {}
    try:
        header: dict[str, Json] = {
            "format": _FORMAT,
            "rankwise": rankwise.__version__,
            "sklearn": sklearn.__version__,
            "estimator": type(chosen).__name__,
            "features": _feature_names(model),
            "training": json_value(summary),
            "notes": json_value({} if notes is None else dict(notes)),
        }
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"notes={notes!r:.80} is not JSON ({error}).", "pass a dictionary.") from error
    header["model"] = _write(model, "model", arrays)
    text = json.dumps(header, allow_nan=False).encode()
    if len(text) > _LONGEST_HEADER:
        raise ModelFileError(
            f"The model has {len(text) >> 20} MiB of names and parameters, more than {_LONGEST_HEADER >> 20} MiB.",
            "shorten the feature names, or pass parameters as arrays instead of lists.",
        )
    if isinstance(path, str | os.PathLike):
        with replacing(path) as stream:
            _write_archive(stream, text, arrays)
    else:
        buffer = io.BytesIO()  # a pipe cannot be sought in, and a zip archive is
        _write_archive(buffer, text, arrays)
        path.write(buffer.getbuffer())


def _write_archive(stream: BinaryIO, text: bytes, arrays: Mapping[str, AnyArray]) -> None:
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for name, array in arrays.items():
            with archive.open(
                zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=array.nbytes > 1 << 30
            ) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)


def load(path: File) -> BaseEstimator:
    """Read a model that `model.save` or `rankwise.save` wrote.

    Loading executes no code from the file: only the classes of rankwise and known transformers are ever made.

    Parameters
    ----------
    path : path or binary stream
        A stream is read from its current position to its end.

    Returns
    -------
    estimator or sklearn.pipeline.Pipeline
        The model that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or was written by a newer version.

    Examples
    --------
    >>> import io
    >>> import rankwise
    >>> file = io.BytesIO()  # or a path
    >>> rankwise.save(rankwise.RankRLS().fit([[0.0], [1.0]], [0, 1]), file)
    >>> rankwise.load(io.BytesIO(file.getvalue())).predict([[0.0], [3.0]]).round(6).tolist()
    [0.0, 1.0]
    """
    with _Archive(path) as archive:
        model = archive.read(archive.header["model"])
        require(type(last_step(model)).__name__ in RANKERS, "its last step is not a ranker")
        return model


def read_header(path: File) -> dict[str, Any]:
    """Return the description of a model file, without the model.

    Parameters
    ----------
    path : path or binary stream

    Returns
    -------
    dict
        ``format``, ``rankwise`` and ``sklearn`` (versions), ``estimator``, ``features`` (names or None),
        ``training`` (a summary) and ``notes``.

    Examples
    --------
    >>> import io
    >>> import rankwise
    >>> from rankwise.persistence import read_header
    >>> file = io.BytesIO()
    >>> rankwise.save(rankwise.RankRLS().fit([[0.0], [1.0]], [0, 1]), file, notes={"by": "me"})
    >>> header = read_header(io.BytesIO(file.getvalue()))
    >>> header["estimator"], header["notes"]
    ('RankRLS', {'by': 'me'})
    """
    with _Archive(path) as archive:
        return {key: value for key, value in archive.header.items() if key != "model"}


def _feature_names(model: Any) -> list[Json] | None:
    for step in [model, *(one for _, one in getattr(model, "steps", ()))]:
        if (names := vars(step).get("feature_names_in_") if hasattr(step, "__dict__") else None) is not None:
            return [str(name) for name in names]
    return None


@cache
def _class(name: str) -> type:
    require(name in _MODULES, f"class {name!r:.80} is unknown")
    found: type = getattr(import_module(_MODULES[name]), name)
    return found


# --- writing ---


def _write(value: Any, name: str, arrays: dict[str, AnyArray]) -> Json:  # noqa: C901, PLR0911, PLR0912 - one branch per type
    """Return the JSON of a value; `name` is that of the attribute or parameter, for arrays and errors."""
    if value is None or type(value) in {bool, int, str}:
        return value  # type: ignore[no-any-return]
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if type(value) is np.ndarray:
        if value.dtype == object:
            return {
                "$objects": [_write(one, name, arrays) for one in value.ravel()],
                "shape": list(value.shape),
            }
        if value.dtype.kind not in "biufU" or value.dtype == np.longdouble:
            raise _unsuitable(value, name)
        key = name if name not in arrays else f"{name}-{len(arrays)}"
        arrays[key] = value.astype(value.dtype.newbyteorder("<"), copy=False)
        return {"$array": key}
    if isinstance(value, np.generic) and value.dtype.name in _SCALARS:
        return {"$numpy": value.dtype.name, "value": _write(value.item(), name, arrays)}
    if isinstance(value, str):  # numpy.str_
        return str(value)
    if type(value) is list or isinstance(value, UserList):  # scikit-learn's list of remaining columns
        return [_write(one, name, arrays) for one in value]
    if type(value) in {tuple, range, slice}:
        items = value if type(value) is tuple else (value.start, value.stop, value.step)
        return {f"${type(value).__name__}": [_write(one, name, arrays) for one in items]}
    if isinstance(value, dict):
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: _write(one, name, arrays) for key, one in value.items()}
        return {"$dict": [[_write(one, name, arrays) for one in pair] for pair in value.items()]}
    if isinstance(value, np.dtype | type) and (kind := np.dtype(value).name) in {*_SCALARS, "object"}:
        return {"$dtype" if isinstance(value, np.dtype) else "$type": kind}
    if type(value).__name__ in _SPARSE and type(value) is _SPARSE[type(value).__name__]:
        parts = (value.data, value.indices, value.indptr)
        return {
            "$sparse": type(value).__name__,
            "parts": [_write(one, name, arrays) for one in parts],
            "shape": [int(axis) for axis in value.shape],
        }
    if type(value).__name__ == "BSpline" and type(value).__module__.startswith("scipy."):
        return {
            "$spline": [
                _write(one, name, arrays) for one in (value.t, value.c, int(value.k), value.extrapolate)
            ]
        }
    if isinstance(value, Metric) and value.base_name in METRICS:
        return {"$metric": value.base_name, "options": _write(dict(value.options), name, arrays)}
    if type(value) is Kernel and isinstance(value.name, str):
        return {"$kernel": value.name, "parameters": _write(_kept(value.parameters), name, arrays)}
    if type(value).__name__ in _MODULES and type(value) is _class(type(value).__name__):
        return _write_object(value, arrays)
    raise _unsuitable(value, name)


def _write_object(value: Any, arrays: dict[str, AnyArray]) -> Json:
    cls: Any = type(value)
    kind = cls.__name__
    omitted = _LEFT_OUT.get(kind, set())
    parameters = {name: getattr(value, name) for name in _parameter_names(cls) if name not in omitted}
    if kind == "ColumnTransformer" and hasattr(value, "_columns"):  # instead of a function that chose them
        parameters["transformers"] = [
            (name, step, chosen if callable(columns) else columns)
            for (name, step, columns), chosen in zip(value.transformers, value._columns, strict=True)  # noqa: SLF001
        ]
    if isinstance(parameters.get("random_state"), np.random.RandomState | np.random.Generator):
        parameters["random_state"] = None
    written: dict[str, Json] = {
        "$class": kind,
        "parameters": {name: _write(one, name, arrays) for name, one in _kept(parameters).items()},
    }
    if isinstance(value, BaseEstimator):
        written["attributes"] = {
            name: _write(one, name, arrays)
            for name, one in vars(value).items()
            if name not in omitted and _is_attribute(cls, name)
        }
    return written


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in signature(kind).parameters if name not in _RUN_PARAMETERS)


@cache
def _is_attribute(kind: Any, name: str) -> bool:
    """Tell whether a file may set this attribute."""
    if name == _OUTPUT or name in _PRIVATE.get(kind.__name__, ()):
        return True
    default = getattr(kind, name, None)
    return bool(_FITTED.fullmatch(name)) and not (callable(default) or isinstance(default, property))


def _kept(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters, and those of kernels, without the ones that control how a computation runs."""
    kept = {name: value for name, value in parameters.items() if name not in _RUN_PARAMETERS}
    if isinstance(options := kept.get("kernel_params"), dict):
        kept["kernel_params"] = _kept(options)
    return kept


def _unsuitable(value: object, name: str) -> ModelFileError:
    if callable(value) and not isinstance(value, type):
        return ModelFileError(
            f"{name} is a function ({value!r:.80}), and a model file contains no code.",
            "use a kernel by name, or kernel='precomputed' with the function's values; or pickle the model, for "
            "readers who trust you.",
        )
    kind = f"an array of type {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    return ModelFileError(
        f"{name} is {kind} ({value!r:.80}), which a model file cannot hold.",
        "set the parameter to a plain value before saving (set_params); or pickle the model, for readers who trust "
        "you.",
    )


# --- reading ---


class _Archive:
    """An open model file: the JSON, and the values that it describes. Any error inside its block is a ModelFileError.

    Parameters
    ----------
    path : path or binary stream
    """

    def __init__(self, path: File) -> None:
        self._path = path
        self.header: dict[str, Any] = {}

    def __enter__(self) -> Self:
        stream: Any = self._path
        stream = io.BytesIO(stream.read()) if hasattr(stream, "read") else open(stream, "rb")  # noqa: PTH123
        self._stream = stream
        try:
            self._zip = zipfile.ZipFile(stream)
            self._members = self._checked_members()
            require(self._members[_HEADER].file_size <= _LONGEST_HEADER, "its header is too long")
            self.header = json.loads(self._zip.read(_HEADER))
            version = self.header["format"]
        except Exception as error:
            stream.close()
            raise self._failure(error) from error
        if version != _FORMAT:
            stream.close()
            raise ModelFileError(
                f"{self._name}The model file has format {version!r:.20}, and this version reads format {_FORMAT}.",
                "upgrade rankwise (pip install --upgrade rankwise).",
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._stream.close()
        if isinstance(error, Exception) and not isinstance(error, MemoryError):
            raise self._failure(error) from error

    @property
    def _name(self) -> str:
        return f"{os.fspath(self._path)}: " if isinstance(self._path, str | os.PathLike) else ""

    def _failure(self, error: Exception) -> ModelFileError:
        """Return the error to raise: whatever fails while a file is read is due to the file."""
        if isinstance(error, ModelFileError):
            return error.restated(f"{self._name}{error.problem}")
        return ModelFileError(
            f"{self._name}The model file is damaged, or is not one ({type(error).__name__}: {error!s:.200}).",
            "name a file that save wrote; if it is damaged, save the model again.",
        )

    def _checked_members(self) -> dict[str, zipfile.ZipInfo]:
        """Return the members, which must be stored one after the other: together they fit in the file."""
        end, found = 0, {}
        for member in self._zip.infolist():
            is_plain = member.compress_type == zipfile.ZIP_STORED and member.flag_bits == 0
            require(
                is_plain and member.header_offset >= end and member.file_size == member.compress_size,
                "its members are not stored as save does",
            )
            end = member.header_offset + 30 + len(member.filename) + member.file_size
            found[member.filename] = member
        members = self._zip.infolist()
        require(
            members[0].header_offset == 0 and members[0].filename == _HEADER, "it does not begin with a model"
        )
        require(end <= self._zip.start_dir and len(found) == len(members), "its members overlap")
        return found

    def _array(self, name: str) -> AnyArray:
        data = self._zip.read(self._members[f"{name}.npy"])
        stream = io.BytesIO(data)
        require(np.lib.format.read_magic(stream) == (1, 0), f"{name} is not an array")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        content = len(data) - stream.tell()
        require(
            dtype.kind in "biufU"
            and not dtype.hasobject
            and math.prod(shape) * dtype.itemsize == content
            and (content or max(shape, default=0) <= MOST_COLUMNS),
            f"{name} declares shape {shape!r:.80} of {dtype!s:.20}, and has {content} bytes",
        )
        flat = np.frombuffer(data, dtype, offset=stream.tell()) if content else np.empty(0, dtype)
        if dtype.kind == "U" and content:
            require(flat.view(f"{dtype.byteorder}u4").max() <= 0x10FFFF, f"{name} is not text")
        if dtype.kind == "b" and content:
            require(flat.view(np.uint8).max() <= 1, f"{name} is not boolean")
        return flat.astype(dtype.newbyteorder("=")).reshape(shape, order="F" if is_fortran else "C")

    def read(self, value: Any, depth: int = 0) -> Any:
        """Return the value that some JSON describes."""
        require(depth < _DEEPEST, "it is nested too deeply")
        if isinstance(value, list):
            return [self.read(one, depth + 1) for one in value]
        if not isinstance(value, dict):
            return value
        kind = next(iter(value), "")
        if not kind.startswith("$"):
            return {key: self.read(one, depth + 1) for key, one in value.items()}
        if kind == "$class":
            return self._object(value, depth)
        content = self.read(value[kind], depth + 1)
        others = [self.read(one, depth + 1) for key, one in value.items() if key != kind]
        return self._array(content) if kind == "$array" else _KINDS[kind](content, *others)

    def _object(self, written: dict[str, Any], depth: int) -> Any:
        kind = _class(written["$class"])
        parameters = _kept(self.read(written["parameters"], depth + 1))
        unknown = set(parameters).difference(_parameter_names(kind))
        require(not unknown, f"{kind.__name__} has no parameter {unknown!r:.80}")
        if is_dataclass(kind):
            check_fields(kind, parameters)
        made = kind(**parameters)
        if isinstance(made, BaseEstimator):
            attributes = self.read(written["attributes"], depth + 1)
            for name in attributes:
                require(_is_attribute(kind, name), f"{kind.__name__} has no attribute {name!r:.80}")
            vars(made).update(attributes)
            check_estimator(made)
        return made


def _objects(items: list[Any], shape: list[int]) -> AnyArray:
    array = np.empty(len(items), dtype=object)
    for at, one in enumerate(items):
        array[at] = one
    return array.reshape(shape)


def _scalar(kind: str, value: Any) -> Any:
    require(kind in _SCALARS and type(value) in {bool, int, float}, f"{value!r:.80} is not a number")
    return np.dtype(kind).type(value)


def _sparse(kind: str, parts: list[Any], shape: list[int]) -> Any:
    data, indices, indptr = parts
    require(
        data.dtype.kind in "biuf" and {indices.dtype.str, indptr.dtype.str} <= {"<i4", "<i8"},
        "a sparse matrix has other types than numbers",
    )
    matrix = _SPARSE[kind]((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)  # compiled code does not look again
    return matrix


def _spline(parts: list[Any]) -> Any:
    from scipy.interpolate import BSpline  # noqa: PLC0415 - a tenth of a second that most models do not need

    knots, coefficients, degree, extrapolate = parts
    require(degree < 100, "a spline has a high degree")
    return BSpline(knots, coefficients, degree, extrapolate)


def _kernel(name: str, parameters: dict[str, Any]) -> Kernel:
    own = _kept(parameters)
    require(
        name in KERNELS and all(value is None or is_number(value) for value in own.values()),
        f"kernel {name!r:.80} has parameters {own!r:.80}",
    )
    return Kernel(name, own)


def _metric(name: str, options: dict[str, Any]) -> Metric:
    metric = get_metric(name, **options)
    metric.describe()
    return metric


_KINDS: Mapping[str, Any] = {
    "$dict": dict,
    "$dtype": lambda name: np.dtype({**dict(zip(_SCALARS, _SCALARS, strict=True)), "object": "O"}[name]),
    "$float": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
    "$kernel": _kernel,
    "$metric": _metric,
    "$numpy": _scalar,
    "$objects": _objects,
    "$range": lambda bounds: range(*bounds),
    "$slice": lambda bounds: slice(*bounds),
    "$sparse": _sparse,
    "$spline": _spline,
    "$tuple": tuple,
    "$type": lambda name: np.dtype(_SCALARS[_SCALARS.index(name)]).type,
}
