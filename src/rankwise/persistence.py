"""Model files: a zip archive (stored) of ``model.json`` and one ``.npy`` member per array.

Nothing in a file is executed: it can only name the classes listed below. ``zipfile`` compares the CRC of each member,
so damage is detected. A file from a stranger may still contain anything: sizes are compared with the bytes present
before memory is allocated, parameters are checked by the constraints of their class, fitted attributes by its
annotations, and the arrays of a ranker must belong together, because compiled code does not look again. Parameters
that control how a computation runs are neither saved nor restored.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
import warnings
import zipfile
from collections import UserList
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from inspect import signature
from itertools import pairwise
from numbers import Integral, Real
from types import UnionType
from typing import Any, BinaryIO, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import rankwise
from rankwise.arrays import AnyArray
from rankwise.data.containers import check_sparse
from rankwise.exceptions import ModelFileError
from rankwise.files import replacing
from rankwise.json_values import Json, json_value
from rankwise.kernels import KERNELS, Kernel
from rankwise.metrics import METRICS, Metric, get_metric

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

RANKERS = [
    "AdditiveRanker", "AdditiveRankerCV", "AutoRanker", "AverageRanker", "KernelRankRLS", "KernelRankRLSCV",
    "KernelRankSVM", "KernelRankSVMCV", "RankRLS", "RankRLSCV", "RankSVM", "RankSVMCV", "TwoSidedRankRLS",
    "TwoSidedRankRLSCV",
]  # fmt: skip
# Transformers that are tried on a row.
_SCALERS = [
    "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "PowerTransformer", "QuantileTransformer",
    "RobustScaler", "SplineTransformer", "StandardScaler",
]  # fmt: skip
_NUMERIC = {*_SCALERS, "SimpleImputer"}
_MOST_COLUMNS = 1 << 24  # of models whose arrays do not have one entry per column
_MOST_CURVES = 1 << 20  # columns of additive models, which exports list

_MODULES = {
    name: module
    for module, names in {
        "rankwise": [*RANKERS, "BradleyTerry"],
        "rankwise.automatic.candidate_table": ["Entry", "CandidateTable"],
        "rankwise.automatic.scaling": ["RankScaler"],
        "rankwise.automatic.trees": ["BoostedTrees"],
        "rankwise.design.terms": ["Curve", "Surface", "Terms"],
        "rankwise.model_selection": ["PreferenceKFold", "QueryKFold"],
        "rankwise.preprocessing": ["QueryScaler", "TableEncoder"],
        "sklearn.compose": ["ColumnTransformer"],
        "sklearn.impute": ["MissingIndicator", "SimpleImputer"],
        "sklearn.model_selection": [
            "GroupKFold", "KFold", "LeaveOneGroupOut", "StratifiedGroupKFold", "StratifiedKFold",
        ],
        "sklearn.pipeline": ["FeatureUnion", "Pipeline"],
        "sklearn.preprocessing": [*_SCALERS, "OneHotEncoder", "OrdinalEncoder", "FunctionTransformer"],
    }.items()
    for name in names
}  # fmt: skip
_RUN_PARAMETERS = frozenset({"n_threads", "n_jobs", "memory", "memory_limit", "time_limit", "verbose"})
# Attributes and parameters that files leave out: a search, unfitted models, and the time that a candidate took.
_LEFT_OUT = {"AutoRanker": {"rivals", "search_"}, "AverageRanker": {"rankers"}, "Entry": {"seconds"}}
# Of scikit-learn's steps private attributes too, which transform needs.
_FITTED, _FITTED_STEP = re.compile(r"[A-Za-z]\w*_"), re.compile(r"[A-Za-z]\w*_|_[a-z]\w*")
_SUMMARY = [
    "n_features_in_", "n_queries_", "n_pairs_", "n_ignored_queries_", "alpha_", "gamma_", "penalty_power_", "solver_",
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
    ranker = _last_step(model)
    if type(ranker).__name__ not in {*RANKERS, "BradleyTerry"}:
        raise ModelFileError(
            f"The model is a {type(ranker).__name__}, which is not a ranker of rankwise.",
            f"save one of {', '.join(RANKERS)}, or a Pipeline that ends in one.",
        )
    check_is_fitted(ranker)
    chosen = _last_step(getattr(ranker, "best_estimator_", ranker))
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
    with _opened(path) as (header, archive):
        model: BaseEstimator = _read(header["model"], archive)
        is_board = type(model).__name__ == "BradleyTerry"
        _require(is_board or _is_ranker(model), "its last step is not a ranker")
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
    with _opened(path) as (header, _):
        return {key: value for key, value in header.items() if key != "model"}


def _feature_names(model: Any) -> list[Json] | None:
    for step in [model, *(one for _, one in getattr(model, "steps", ()))]:
        if (names := vars(step).get("feature_names_in_") if hasattr(step, "__dict__") else None) is not None:
            return [str(name) for name in names]
    return None


@cache
def _class(name: str) -> type:
    _require(name in _MODULES, f"class {name!r:.80} is unknown")
    found: type = getattr(import_module(_MODULES[name]), name)
    return found


# --- writing ---


def _write(value: Any, name: str, arrays: dict[str, AnyArray]) -> Json:  # noqa: C901, PLR0911, PLR0912 - one branch per type
    """Return the JSON of a value; `name` is that of the attribute or parameter, for arrays and errors."""

    def listed(items: Iterable[Any]) -> list[Json]:
        return [_write(one, name, arrays) for one in items]

    kind: Any = type(value)
    if value is None or kind in {bool, int, str}:
        return value  # type: ignore[no-any-return]
    if isinstance(value, str):  # numpy.str_
        return str(value)
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is np.ndarray and value.dtype == object:
        return {"$objects": listed(value.ravel()), "shape": list(value.shape)}
    if kind is np.ndarray and value.dtype.kind in "biufU" and value.dtype != np.longdouble:
        key = name if name not in arrays else f"{name}-{len(arrays)}"
        arrays[key] = value.astype(value.dtype.newbyteorder("<"), copy=False)
        return {"$array": key}
    if isinstance(value, np.generic) and value.dtype.name in _SCALARS:
        return {"$numpy": value.dtype.name, "value": _write(value.item(), name, arrays)}
    if kind is list or isinstance(value, UserList):  # scikit-learn's list of remaining columns
        return listed(value)
    if kind in {tuple, range, slice}:
        return {
            f"${kind.__name__}": listed(value if kind is tuple else (value.start, value.stop, value.step))
        }
    if isinstance(value, dict):
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: _write(one, name, arrays) for key, one in value.items()}
        return {"$dict": [listed(pair) for pair in value.items()]}
    if isinstance(value, np.dtype | type) and (scalar := np.dtype(value).name) in {*_SCALARS, "object"}:
        return {"$dtype" if isinstance(value, np.dtype) else "$type": scalar}
    if kind in _SPARSE.values():
        parts = listed((value.data, value.indices, value.indptr))
        return {"$sparse": kind.__name__, "parts": parts, "shape": [int(axis) for axis in value.shape]}
    if kind.__name__ == "BSpline" and kind.__module__.startswith("scipy."):
        return {"$spline": listed((value.t, value.c, int(value.k), value.extrapolate))}
    if isinstance(value, Metric) and value.base_name in METRICS:
        return {"$metric": value.base_name, "options": _write(dict(value.options), name, arrays)}
    if kind is Kernel and isinstance(value.name, str):
        return {"$kernel": value.name, "parameters": _write(_kept(value.parameters), name, arrays)}
    if kind.__name__ in _MODULES and kind is _class(kind.__name__):
        return _write_object(value, arrays)
    described = f"an array of type {value.dtype}" if kind is np.ndarray else f"a {kind.__name__}"
    remedy = "set the parameter to a plain value before saving (set_params)"
    if hasattr(value, "get_params"):
        remedy = "save the ranker alone and apply this step before it"
    elif callable(value):
        remedy = "use a kernel by name, or kernel='precomputed' with the function's values"
    raise ModelFileError(
        f"{name} is {described} ({value!r:.80}), which a model file cannot hold.",
        f"{remedy}; or pickle the model, for readers who trust you.",
    )


def _write_object(value: Any, arrays: dict[str, AnyArray]) -> Json:
    kind: Any = type(value)
    omitted = _LEFT_OUT.get(kind.__name__, set())
    parameters = {name: getattr(value, name) for name in _parameter_names(kind) if name not in omitted}
    if kind.__name__ == "ColumnTransformer" and hasattr(
        value, "_columns"
    ):  # instead of a function that chose them
        parameters["transformers"] = [
            (name, step, chosen if callable(columns) else columns)
            for (name, step, columns), chosen in zip(value.transformers, value._columns, strict=True)  # noqa: SLF001
        ]
    if isinstance(parameters.get("random_state"), np.random.RandomState | np.random.Generator):
        parameters["random_state"] = None
    if isinstance(parameters.get("cv"), list | tuple):  # numbers of training rows
        parameters["cv"] = signature(kind).parameters["cv"].default
    attributes = vars(value) if isinstance(value, BaseEstimator) else {}
    attributes = {
        name: one for name, one in attributes.items() if name not in omitted and _is_attribute(kind, name)
    }
    return {
        "$class": kind.__name__,
        "parameters": {name: _write(one, name, arrays) for name, one in _kept(parameters).items()},
        "attributes": {name: _write(one, name, arrays) for name, one in attributes.items()},
    }


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in signature(kind).parameters if name not in _RUN_PARAMETERS)


@cache
def _is_attribute(kind: Any, name: str) -> bool:
    """Tell whether a file may set this attribute."""
    pattern = _FITTED_STEP if kind.__module__.startswith("sklearn.") else _FITTED
    default = getattr(kind, name, None)
    return bool(pattern.fullmatch(name)) and not (callable(default) or isinstance(default, property))


def _kept(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters, and those of kernels, without the ones that control how a computation runs."""
    kept = {name: value for name, value in parameters.items() if name not in _RUN_PARAMETERS}
    if isinstance(options := kept.get("kernel_params"), dict):
        kept["kernel_params"] = _kept(options)
    return kept


# --- reading ---


@contextmanager
def _opened(path: File) -> Iterator[tuple[dict[str, Any], zipfile.ZipFile]]:
    """Open a model file, and yield its JSON and the archive; whatever fails in the block is due to the file."""
    name = f"{os.fspath(path)}: " if isinstance(path, str | os.PathLike) else ""
    source: Any = io.BytesIO(path.read()) if hasattr(path, "read") else path
    try:
        with zipfile.ZipFile(source) as archive:
            members = archive.infolist()
            is_stored = all(one.compress_type == 0 and one.file_size == one.compress_size for one in members)
            is_whole = is_stored and sum(one.file_size for one in members) <= archive.start_dir
            _require(is_whole, "its members are not stored as save does")
            _require(archive.getinfo(_HEADER).file_size <= _LONGEST_HEADER, "its header is too long")
            header = json.loads(archive.read(_HEADER))
            version = header["format"]
            _require(
                version == _FORMAT, f"it has format {version!r:.20}, and this version reads format {_FORMAT}"
            )
            yield header, archive
    except (FileNotFoundError, IsADirectoryError, PermissionError, MemoryError):
        raise
    except ModelFileError as error:
        raise error.restated(f"{name}{error.problem}") from error
    except Exception as error:
        raise ModelFileError(
            f"{name}The model file is damaged, or is not one ({type(error).__name__}: {error!s:.200}).",
            "name a file that save wrote; if it is damaged, save the model again.",
        ) from error


def _array(name: str, archive: zipfile.ZipFile) -> AnyArray:
    data = archive.read(f"{name}.npy")
    stream = io.BytesIO(data)
    _require(np.lib.format.read_magic(stream) == (1, 0), f"{name} is not an array")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    _require(dtype.kind in "biufU" and max(shape, default=0) <= len(data), f"{name} has {dtype!s:.20}")
    # Raises where the bytes are too few.
    array = np.ndarray(shape, dtype, data, stream.tell(), order="F" if is_fortran else "C")
    if dtype.kind == "b":  # numbers that are neither a truth value
        array = array.view("u1") != 0
    found: AnyArray = array.astype(dtype.newbyteorder("="))
    if dtype.kind == "U":  # nor a character
        codes = np.frombuffer(found.tobytes(), np.uint32)
        _require(codes.max(initial=0) <= sys.maxunicode, f"{name} is not text")
    return found


def _read(value: Any, archive: zipfile.ZipFile, depth: int = 0) -> Any:
    """Return the value that some JSON describes."""
    _require(depth < _DEEPEST, "it is nested too deeply")
    if isinstance(value, list):
        return [_read(one, archive, depth + 1) for one in value]
    if not isinstance(value, dict):
        return value
    kind = next(iter(value), "")
    if kind == "$array":
        return _array(value[kind], archive)
    parts = {key: _read(one, archive, depth + 1) for key, one in value.items()}
    return _KINDS[kind](*parts.values()) if kind.startswith("$") else parts


def _object(name: str, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    kind = _class(name)
    hints = _hints(kind)
    for key, value in {**parameters, **attributes}.items():
        _require(_fits(value, hints.get(key, Any)), f"{key} of {name} is a {type(value).__name__}")
    made: Any = kind(**_kept(parameters))
    for key in attributes:
        _require(_is_attribute(kind, key), f"{name} has no attribute {key!r:.80}")
    if isinstance(made, BaseEstimator):
        vars(made).update(attributes)
    _check(made, name)
    return made


def _objects(items: list[Any], shape: list[int]) -> AnyArray:
    array = np.empty(len(items), dtype=object)
    for at, one in enumerate(items):
        array[at] = one
    return array.reshape(shape)


def _scalar(kind: str, value: Any) -> Any:
    _require(kind in _SCALARS and type(value) in {bool, int, float}, f"{value!r:.80} is not a number")
    return np.dtype(kind).type(value)


def _sparse(kind: str, parts: list[Any], shape: list[int]) -> Any:
    matrix = _SPARSE[kind](tuple(parts), shape=tuple(shape))
    _require(matrix.dtype.kind in "biuf", "a sparse matrix has other types than numbers")
    check_sparse("X_fit_", matrix)
    return matrix


def _spline(parts: list[Any]) -> Any:
    from scipy.interpolate import BSpline  # noqa: PLC0415 - a tenth of a second that most models do not need

    _require(parts[2] < 100, "a spline has a high degree")
    return BSpline(*parts)


def _kernel(name: str, parameters: dict[str, Any]) -> Kernel:
    kernel = Kernel(name, _kept(parameters))
    for key, value in kernel.parameters.items():
        is_number = _fits(value, float) or (key == "gamma" and value is None)
        _require(kernel.takes(key) and is_number, f"kernel {name!r:.80} has {key!r:.80}")
    _require(name in KERNELS, f"kernel {name!r:.80} is unknown")
    return kernel


def _metric(name: str, options: dict[str, Any]) -> Metric:
    metric = get_metric(name, **options)
    metric.describe()
    return metric


_KINDS: Mapping[str, Any] = {
    "$class": _object,
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


# --- checks of models that were read ---


def _require(condition: object, problem: str) -> None:
    """Raise the error of a file that is invalid unless a condition holds."""
    if not condition:
        raise ModelFileError(
            f"The model file is invalid: {problem}.",
            "upgrade rankwise if a newer version wrote it, else save the model again.",
        )


def features_taken(step: object) -> int | None:
    """Return the number of columns that a step takes; None if it does not tell.

    A FeatureUnion or Pipeline asks its first step; if that is a word such as "passthrough", the next one.
    """
    found = getattr(step, "n_features_in_", None)
    inner = getattr(step, "transformer_list", getattr(step, "steps", ())) if found is None else ()
    first = next((one for _, one in inner if not isinstance(one, str | None)), None)
    if first is not None:
        return features_taken(first)
    return int(found) if isinstance(found, Integral) else None


def _last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if type(model).__name__ == "Pipeline" else model


_hints = cache(get_type_hints)


def _fits(value: Any, hint: Any) -> bool:  # noqa: PLR0911 - one branch per kind of annotation
    """Tell whether a value has the type of an annotation."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in {Any, object} or getattr(kind, "_is_protocol", False):
        return True
    if kind in {Union, UnionType}:
        return any(_fits(value, one) for one in inner)
    if kind in {list, tuple}:
        return isinstance(value, kind) and all(_fits(one, inner[0]) for one in value)
    if is_typeddict(kind):
        return isinstance(value, dict) and all(
            _fits(value[key], one) for key, one in _hints(kind).items() if key in value
        )
    if kind in {int, float}:
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is np.ndarray and isinstance(value, np.ndarray):
        return get_args(inner[1])[0] in {Any, value.dtype.type}
    return isinstance(value, kind)


def _check(step: Any, kind: str) -> None:
    """Raise unless the parameters and fitted attributes of an object belong together."""
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()  # noqa: SLF001 - as fit does
    n_features, names = getattr(step, "n_features_in_", None), vars(step).get("feature_names_in_")
    if isinstance(step, BaseEstimator) and n_features is not None:
        _require(type(n_features) is int and 0 < n_features <= 2**31, f"n_features_in_ is {n_features!r:.80}")
    if names is not None:
        is_named = names.shape == (n_features,) and all(isinstance(name, str) for name in names)
        _require(is_named and len(set(names)) == len(names), "the feature names are not one per column")
    if hasattr(step, "cv_errors_"):
        _check_search(step)
    if kind in _CHECKS:
        _CHECKS[kind](step)
    else:
        _columns_made(step)


def _is_ranker(model: object) -> bool:
    """Tell whether this is a ranker, alone or after steps; raise scikit-learn's error where a step is not fitted."""
    for _, step in getattr(model, "steps", ())[:-1]:
        if step != "passthrough":
            check_is_fitted(step)
    return isinstance(model, BaseEstimator) and type(_last_step(model)).__name__ in {*RANKERS, "BoostedTrees"}


def _check_search(step: Any) -> None:
    """Raise unless the held-out values of a search, which reports draw, belong to its alphas and its choice."""
    alphas, errors, outputs = step.alphas_, step.cv_errors_, np.shape(step.alpha_)
    n_alphas = errors.shape[: errors.ndim - len(outputs)][-1:]
    is_whole = n_alphas == alphas.shape and np.shape(step.best_score_) == outputs
    if (surface := getattr(step, "surface_", None)) is not None:
        is_whole &= surface.shape[:-1] == (*outputs, alphas.size)
        is_whole &= step.unpenalised_.shape == (*outputs, surface.shape[-1])
    if (choices := getattr(step, "choices_", None)) is not None:
        triples = [one for made in choices.values() for one in (made if outputs else [made])]
        is_whole &= all(len(one) == 3 and all(_fits(value, float) for value in one) for one in triples)
        is_whole &= step.method_ in choices
    _require(is_whole, "the held-out values do not belong to the alphas")


def _check_linear(step: Any) -> None:
    _require(
        _coefficients(step.coef_, step.n_features_in_), f"coef_ does not have {step.n_features_in_} columns"
    )


def _check_kernel(step: Any) -> None:
    basis, rows, n_rows = step.basis_, step.X_fit_, step.n_features_in_
    _require(None not in step.kernel_.parameters.values(), "the kernel lacks its gamma")
    _require(basis is None or (basis.ndim == 1 and basis.size), "the basis does not list rows")
    if not step.kernel_.is_precomputed:
        _require(rows.shape[1] == n_rows and rows.dtype.kind == "f", "X_fit_ has other columns")
        _require(np.isfinite(rows.data if sp.issparse(rows) else rows).all(), "X_fit_ is not finite")
        n_rows = rows.shape[0]
        _require(n_rows and (basis is None or basis.size == n_rows), "the basis has other rows")
    elif basis is not None:
        _require(0 <= basis.min() <= basis.max() < n_rows, "the basis lists other rows")
        n_rows = basis.size
    _require(_coefficients(step.dual_coef_, n_rows), f"dual_coef_ does not have {n_rows} columns")


def _coefficients(array: AnyArray, size: int) -> bool:
    return array.ndim in {1, 2} and array.size > 0 and array.shape[-1] == size


def _check_curve(curve: Any) -> None:
    knots = curve.knots
    is_increasing = knots.ndim == 1 and np.isfinite(knots).all() and (knots[1:] > knots[:-1]).all()
    _require(curve.column >= 0 and is_increasing, "a curve does not have a column and increasing knots")


def _check_terms(step: Any) -> None:
    terms = step.terms_
    _require(step.n_features_in_ <= _MOST_CURVES, "the model has too many columns")
    _require(
        all(side.column < step.n_features_in_ for side in terms.sides),
        "a curve has a column beyond the last one",
    )
    sizes = {"values_": terms.n_values, "shares_": terms.n_values, "importances_": len(terms.all_terms)}
    for name, size in sizes.items():
        array = getattr(step, name)
        _require(array.shape == (size,) and np.isfinite(array).all(), f"{name} does not have {size} numbers")
    encoder = vars(step).get("encoder_")
    if encoder is not None:
        is_whole = encoder.codes and getattr(encoder, "n_features_in_", None) == step.n_features_in_
        _require(is_whole, "the encoder makes other columns than the curves read")
        for side in terms.sides:
            column = encoder.columns_[side.column]
            codes = np.arange(len(column["levels"]) + 1) if column["kind"] == "category" else side.knots
            _require(np.isin(side.knots, codes).all(), "a curve has levels that its column does not")


def _check_trees(step: Any) -> None:
    """Raise unless every node splits a column of X, and leads to nodes after it or is a leaf."""
    feature, children, n_nodes = step.features_, step.children_, step.features_.size
    arrays = (feature, step.thresholds_, step.values_, step.missing_left_)
    is_whole = all(one.shape == (n_nodes,) for one in arrays) and children.shape == (n_nodes, 2)
    _require(is_whole and feature.max(initial=-1) < step.n_features_in_, "the nodes of trees are not whole")
    inner = np.flatnonzero(feature >= 0)
    after = children[inner] > inner[:, None]
    _require((after & (children[inner] < n_nodes)).all(), "a node of a tree leads back")
    roots = step.roots_
    _require(roots.ndim == 1 and ((roots >= 0) & (roots < n_nodes)).all(), "a tree has no root")
    _require(np.isfinite(step.values_).all() and np.isfinite(step.baseline_), "a leaf has no value")


def _check_mean(step: Any) -> None:
    for ranker in step.rankers_:
        is_single = np.ndim(getattr(_last_step(ranker), "coef_", 0.0)) < 2
        is_same = _is_ranker(ranker) and features_taken(ranker) == step.n_features_in_
        _require(is_single and is_same, "the models of a mean differ")
    is_weighted = step.rankers_ and step.weights_.shape == (len(step.rankers_),)
    _require(is_weighted and np.isfinite(step.weights_).all(), "a mean lacks weights")


def _check_choice(step: Any) -> None:
    _require(_is_ranker(step.best_estimator_), "the chosen model is not a ranker")
    first = step.best_estimator_ if step.encoder_ is None else step.encoder_
    _require(features_taken(first) == step.n_features_in_, "the chosen model takes other columns")
    if step.encoder_ is not None:
        made = len(step.encoder_.get_feature_names_out())
        _require(made == features_taken(step.best_estimator_), "the encoder makes other columns")
    _require(sum(entry.is_chosen for entry in step.candidates_) == 1, "the candidates do not name one choice")
    str(step.candidates_)


def _check_two_sided(step: Any) -> None:
    for kept, size in zip((step.row_fit_, step.column_fit_), step.coef_.shape, strict=True):
        belongs = kept is None or (kept.ndim == 2 and kept.dtype == np.float64 and kept.shape[0] == size)
        _require(belongs, "coef_ does not belong to its objects")


def _check_board(step: Any) -> None:
    n_items = len(step.items_)
    columns = [*step.table_.values(), step.strengths_, step.shrunk_strengths_, step.component_]
    square = [getattr(step, f"{kind}covariance_") for kind in ("", "model_", "cluster_", "shrunk_")]
    is_whole = all(len(one) == n_items for one in columns) and len(step.prediction_) >= n_items
    _require(
        is_whole and all(one.shape == (n_items, n_items) for one in square), "a leaderboard is not whole"
    )


def _check_encoder(step: Any) -> None:
    if not hasattr(step, "n_features_in_"):
        return
    step.describe()
    for column in step.columns_:
        is_list = isinstance(column.get("fill"), list)
        _require(is_list == (column["kind"] == "list"), "an encoder has a column without its numbers")
    is_whole = len(step.columns_) == step.n_features_in_ and len(step.get_feature_names_out())
    _require(is_whole, "an encoder lacks columns")


def _check_one_hot(step: Any) -> None:
    """Raise unless the categories agree with the sparse matrix that scikit-learn makes of them, unchecked."""
    np.dtype(step.dtype)
    if not hasattr(step, "n_features_in_"):
        return
    is_whole = not step._infrequent_enabled or hasattr(step, "_infrequent_indices")  # noqa: SLF001
    _require(is_whole, "an encoder lacks its rare categories")
    absent = [None] * len(step.categories_)
    mappings = getattr(step, "_default_to_infrequent_mappings", absent)
    dropped = absent if step._drop_idx_after_grouping is None else step._drop_idx_after_grouping  # noqa: SLF001
    sizes = []
    for values, mapping, drop in zip(step.categories_, mappings, dropped, strict=True):
        codes = np.arange(values.size) if mapping is None else mapping
        size = int(codes.max()) + 1
        is_whole = (
            values.ndim == 1 and codes.shape == values.shape and codes.min() >= 0 and size <= values.size
        )
        _require(is_whole, "an encoder groups other categories")
        _require(
            drop is None or (_fits(drop, int) and 0 <= drop < size), "an encoder drops a missing category"
        )
        sizes.append(size - (drop is not None))
    is_whole = step.n_features_in_ == len(sizes) and list(step._n_features_outs) == sizes  # noqa: SLF001
    _require(is_whole, "an encoder makes other columns")


def _columns_made(step: Any) -> int | None:
    """Return how many columns a step makes of numbers, by trying it, or of a table; None if it takes other rows.

    Raises where the arrays of a step do not fit its columns: scikit-learn's errors would come later.
    """
    if type(step).__name__ == "TableEncoder" and hasattr(step, "columns_"):
        return len(step.get_feature_names_out())
    if type(step).__name__ not in _NUMERIC or not any(name.endswith("_") for name in vars(step)):
        return None
    n_features = step.n_features_in_
    _require(n_features <= _MOST_COLUMNS, f"n_features_in_ is {n_features}")
    for name in ("mean_", "center_", "min_", "scale_"):
        values = getattr(step, name, None)
        is_whole = values is None or (np.shape(values) == (n_features,) and np.isfinite(values).all())
        _require(is_whole and (name != "scale_" or values is None or values.all()), f"{name} does not fit")
    powers, splines = getattr(step, "lambdas_", np.zeros(1)), getattr(step, "bsplines_", ())
    _require(np.abs(powers).max() < 1e9, "a power is too high")
    _require(all(one.c.ndim == 2 for one in splines), "a spline does not fit")
    # Splines may refuse numbers beyond their knots.
    row = np.array([[one.t[one.k] for one in splines]]) if splines else np.ones((1, n_features))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return int(step.transform(row).shape[1])


def _check_bins(step: Any) -> None:
    if _columns_made(step) is None:
        return
    _require(all(isinstance(edges, np.ndarray) for edges in step.bin_edges_), "bins have no edges")
    if step.encode != "ordinal":
        for n_bins, values in zip(step.n_bins_, step._encoder.categories_, strict=True):  # noqa: SLF001
            is_whole = values.size == n_bins and (values == np.arange(values.size)).all()
            _require(is_whole, "an encoder has other bins")


def _check_columns(step: Any) -> None:
    """Raise unless the steps of columns are steps, and take as many columns as they get."""
    chosen, n_features = getattr(step, "_columns", step.transformers), getattr(step, "n_features_in_", 2**31)
    names = set(getattr(step, "feature_names_in_", ()))
    for name, one, columns in (*step.transformers, *getattr(step, "transformers_", ())):
        taken = features_taken(one)
        are_columns = isinstance(columns, str | Integral | slice | list | tuple | np.ndarray)
        _require(isinstance(name, str) and are_columns, "a step of columns has no name, or no columns")
        is_step = isinstance(one, str) or hasattr(one, "transform")
        # A single column, outside a list, is passed as a vector, which no step takes.
        is_step &= one == "drop" or not isinstance(columns, str | Integral)
        listed = list(columns) if isinstance(columns, list | tuple | np.ndarray) else []
        is_step &= any(
            all(isinstance(column, kind) for column in listed) for kind in (str, Integral, np.bool_)
        )
        if hasattr(step, "transformers_"):
            is_step &= all(column in names for column in listed if isinstance(column, str))
        numbers = [column for column in listed if _fits(column, int)]
        is_step &= all(-n_features <= column < n_features for column in numbers)
        n_columns = sum(listed) if listed and isinstance(listed[0], bool | np.bool_) else len(listed)
        fits = taken is None or n_columns in {taken, 0}
        _require(is_step and fits, "the steps of columns take other columns")
    _require(len(chosen) == len(step.transformers), "there are not as many steps as groups of columns")


def _check_steps(pipeline: Any) -> None:
    """Raise unless the steps of a pipeline have names, transform columns, and make those that the next one takes."""
    names = [name for name, _ in pipeline.steps]
    is_named = names and len(set(names)) == len(names) and all(isinstance(name, str) for name in names)
    transforms = all(one == "passthrough" or hasattr(one, "transform") for _, one in pipeline.steps[:-1])
    _require(is_named and transforms, "the steps of a pipeline are not names and transformers")
    for (_, one), (_, other) in pairwise(pipeline.steps):
        widths = {_columns_made(one), features_taken(other)} - {None}
        _require(len(widths) < 2, "a step makes other columns than the next one takes")


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    **dict.fromkeys(RANKERS, _check_linear),
    **dict.fromkeys([name for name in RANKERS if name.startswith("Kernel")], _check_kernel),
    **dict.fromkeys([name for name in RANKERS if name.startswith("Additive")], _check_terms),
    **dict.fromkeys([name for name in RANKERS if name.startswith("TwoSided")], _check_two_sided),
    "AutoRanker": _check_choice,
    "AverageRanker": _check_mean,
    "BoostedTrees": _check_trees,
    "BradleyTerry": _check_board,
    "ColumnTransformer": _check_columns,
    "KBinsDiscretizer": _check_bins,
    "Curve": _check_curve,
    "OneHotEncoder": _check_one_hot,
    "Pipeline": _check_steps,
    "TableEncoder": _check_encoder,
}
