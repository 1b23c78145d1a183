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
import warnings
import zipfile
from collections import UserList
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from itertools import pairwise
from numbers import Integral, Real
from types import UnionType
from typing import Any, BinaryIO, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import rankwise
from rankwise.arrays import AnyArray
from rankwise.design.terms import Terms
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
# Transformers of numbers, which are tried on a row of ones.
_NUMERIC = [
    "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "PowerTransformer", "QuantileTransformer",
    "RobustScaler", "SplineTransformer", "StandardScaler",
]  # fmt: skip
_MOST_COLUMNS = 1 << 24  # of models whose arrays do not have one entry per column
_MOST_CURVES = 1 << 20  # columns of additive models, which exports list
_MOST_KNOTS = 1 << 16

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
        "sklearn.preprocessing": [*_NUMERIC, "OneHotEncoder", "OrdinalEncoder", "FunctionTransformer"],
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
    "n_features_in_", "n_queries_", "n_pairs_", "n_ignored_queries_", "alpha_", "gamma_", "penalty_power_", "solver_",
    "method_", "cv_", "best_score_", "best_iteration_", "n_iter_", "duality_gap_",
]  # fmt: skip
# Types of the fitted attributes of rankers. Several outputs make an array of a number.
_TYPES: Mapping[str, tuple[Any, ...]] = {
    name: kinds
    for kinds, names in {
        (
            Integral,
        ): "n_components_ n_features_in_ n_iter_ n_knots_ n_products_ n_queries_ n_reads_ n_samples_seen_ "
        "n_unpaired_rows_ adaptive_ selective_ surface_knots_",
        (Integral, np.ndarray): "best_iteration_ n_ignored_queries_ n_pairs_",
        (Real,): "baseline_ expected_score_ gamma_ log_loss_ penalty_power_",
        (Real, np.ndarray): "alpha_ best_score_ duality_gap_",
        (bool,): "fitted_with_qid_ is_dense_ keeps_basis_",
        (str,): "cv_ loss_ method_ solver_",
        (list,): "calibration_ expected_interval_ history_ rankers_ skipped_",
        (dict,): "choices_ cv_results_",
        (
            np.ndarray,
        ): "alphas_ constant_columns_ cv_errors_ importances_ interactions_ shares_ surface_ unpenalised_ "
        "values_ weights_ children_ features_ missing_left_ roots_ thresholds_",
        (Metric,): "metric_",
    }.items()
    for name in names.split()
}


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


@contextmanager
def _opened(path: File) -> Iterator[tuple[dict[str, Any], zipfile.ZipFile]]:
    """Open a model file, and yield its JSON and the archive; whatever fails in the block is due to the file."""
    name = f"{os.fspath(path)}: " if isinstance(path, str | os.PathLike) else ""
    source: Any = io.BytesIO(path.read()) if hasattr(path, "read") else path
    try:
        with zipfile.ZipFile(source) as archive:
            _check_members(archive)
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


def _check_members(archive: zipfile.ZipFile) -> None:
    """Raise unless the members are stored one after the other, as save does: together they fit in the file."""
    members, end = archive.infolist(), 0
    for member in members:
        is_plain = member.compress_type == zipfile.ZIP_STORED and member.flag_bits == 0
        is_plain = is_plain and member.file_size == member.compress_size
        _require(is_plain and member.header_offset >= end, "its members are not stored as save does")
        end = member.header_offset + member.file_size + 1
    _require(end <= archive.start_dir, "its members overlap")
    _require(len(set(archive.namelist())) == len(members), "two members have one name")
    first = members[0]
    _require(first.filename == _HEADER and first.header_offset == 0, "it does not begin with a model")
    _require(first.file_size <= _LONGEST_HEADER, "its header is too long")


def _array(name: str, archive: zipfile.ZipFile) -> AnyArray:
    data = archive.read(f"{name}.npy")
    stream = io.BytesIO(data)
    _require(np.lib.format.read_magic(stream) == (1, 0), f"{name} is not an array")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    content = len(data) - stream.tell()
    is_whole = math.prod(shape) * dtype.itemsize == content and (
        content or max(shape, default=0) <= _MOST_COLUMNS
    )
    _require(
        is_whole and dtype.kind in "biufU", f"{name} declares {shape!r:.80} of {dtype!s:.20}: {content} bytes"
    )
    flat = np.frombuffer(data, dtype, offset=stream.tell()) if content else np.empty(0, dtype)
    if dtype.kind in "bU" and content:  # numbers that are neither a truth value nor a character
        codes = flat.view("u1" if dtype.kind == "b" else f"{dtype.byteorder}u4")
        _require(
            codes.max() <= (1 if dtype.kind == "b" else 0x10FFFF), f"{name} is not of type {dtype!s:.20}"
        )
    return flat.astype(dtype.newbyteorder("=")).reshape(shape, order="F" if is_fortran else "C")


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
    if not kind.startswith("$"):
        return parts
    return _made(*parts.values()) if kind == "$class" else _KINDS[kind](*parts.values())


def _made(name: str, parameters: dict[str, Any], attributes: Mapping[str, Any] | None = None) -> Any:
    kind, parameters = _class(name), _kept(parameters)
    unknown = set(parameters).difference(_parameter_names(kind))
    _require(not unknown, f"{name} has no parameter {unknown!r:.80}")
    if is_dataclass(kind):
        _check_fields(kind, parameters)
    made: Any = kind(**parameters)
    if isinstance(made, BaseEstimator):
        for key in attributes or ():
            _require(_is_attribute(kind, key), f"{name} has no attribute {key!r:.80}")
        vars(made).update(attributes or {})
        _check_estimator(made)
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
    data, indices, indptr = parts
    _require(
        data.dtype.kind in "biuf" and {indices.dtype.str, indptr.dtype.str} <= {"<i4", "<i8"},
        "a sparse matrix has other types than numbers",
    )
    # Compiled code does not look again. SciPy's check_format accepts pointers that go up and come back to 0.
    n_major, n_minor = shape if kind.startswith("csr") else shape[::-1]
    _require(
        data.shape == indices.shape == (indptr[-1],)
        and indptr.shape == (n_major + 1,)
        and indptr[0] == 0
        and (indptr[1:] >= indptr[:-1]).all()
        and (indices.size == 0 or 0 <= indices.min() <= indices.max() < n_minor),
        "a sparse matrix has entries outside its rows and columns",
    )
    return _SPARSE[kind]((data, indices, indptr), shape=tuple(shape))


def _spline(parts: list[Any]) -> Any:
    from scipy.interpolate import BSpline  # noqa: PLC0415 - a tenth of a second that most models do not need

    knots, coefficients, degree, extrapolate = parts
    _require(degree < 100, "a spline has a high degree")
    return BSpline(knots, coefficients, degree, extrapolate)


def _kernel(name: str, parameters: dict[str, Any]) -> Kernel:
    kernel = Kernel(name, _kept(parameters))
    _require(
        name in KERNELS
        and all(
            kernel.takes(key) and (_is_number(value) or (key == "gamma" and value is None))
            for key, value in kernel.parameters.items()
        ),
        f"kernel {name!r:.80} has parameters {parameters!r:.80}",
    )
    return kernel


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


def _is_number(value: object) -> bool:
    """Tell whether this is a number, and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


_hints = cache(get_type_hints)


def _check_fields(kind: type, fields: Mapping[str, object]) -> None:
    """Raise unless the values of a dataclass have the types of its fields, and curves have increasing knots."""
    hints = _hints(kind)
    for name, value in fields.items():
        _require(_fits(value, hints[name]), f"{kind.__name__} cannot have a {type(value).__name__} as {name}")
    if kind.__name__ == "Curve":
        knots: Any = fields["knots"]
        _require(
            0 <= int(fields["column"]) < _MOST_CURVES  # type: ignore[call-overload]
            and knots.dtype == np.float64
            and knots.ndim == 1
            and knots.size < _MOST_KNOTS
            and np.isfinite(knots).all()
            and (knots[1:] > knots[:-1]).all(),
            "a curve does not have a column and increasing knots",
        )


def _fits(value: object, hint: Any) -> bool:
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind in {Union, UnionType}:
        return any(_fits(value, one) for one in inner)
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if kind in {int, float}:
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, kind)


def _check_estimator(step: Any) -> None:
    """Raise unless the parameters and fitted attributes of an estimator can be used without harm."""
    kind = type(step).__name__
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()  # noqa: SLF001 - as fit does
    output = vars(step).get("_sklearn_output_config", {})
    _require(
        set(output) <= {"transform"} and set(output.values()) <= {"default", "pandas", "polars"},
        "an output container is unknown",
    )
    n_features = _check_columns(step)
    if kind in {*RANKERS, "BoostedTrees"}:
        _check_ranker(step, kind)
    elif kind == "BradleyTerry":
        _check_board(step)
    elif kind == "OneHotEncoder" and hasattr(step, "categories_"):
        _check_encoder(step)
    elif kind == "TableEncoder" and hasattr(step, "columns_"):
        _check_table_encoder(step, n_features)
    elif kind in _NUMERIC and n_features is not None:
        _try(step)
    elif kind == "ColumnTransformer":
        chosen = getattr(step, "_columns", step.transformers)
        is_whole = len(chosen) == len(step.transformers) and all(len(one) == 3 for one in step.transformers)
        _require(is_whole, "the transformers of columns are not a name, a step and columns each")
    elif kind == "Pipeline":
        _check_steps(step)


def _check_columns(step: Any) -> Any:
    """Raise unless an estimator has a number of columns and, if any, that many names; return the number."""
    n_features, names = vars(step).get("n_features_in_"), vars(step).get("feature_names_in_")
    if n_features is not None:
        _require(type(n_features) is int and n_features > 0, f"n_features_in_ is {n_features!r:.80}")
    if names is not None:
        is_named = names.shape == (n_features,) and all(isinstance(name, str) for name in names)
        _require(is_named and len(set(names)) == len(names), "the feature names are not one per column")
    return n_features


def _check_table_encoder(step: Any, n_features: int | None) -> None:
    step.describe()
    _require(
        len(step.columns_) == n_features and len(step.get_feature_names_out()), "an encoder lacks columns"
    )
    _require(all(map(_encodes, step.columns_)), "an encoder has a column without its numbers or categories")


def _check_board(step: Any) -> None:
    n_items = len(step.items_)
    columns = [*step.table_.values(), step.strengths_, step.shrunk_strengths_, step.component_]
    kinds = ("", "model_", "cluster_", "shrunk_")
    square = [getattr(step, f"{kind}covariance_") for kind in kinds]
    is_whole = all(len(one) == n_items for one in columns) and len(step.prediction_) >= n_items
    is_whole &= all(one.shape == (n_items, n_items) for one in square)
    _require(is_whole, "a leaderboard has arrays of other items")


def _check_steps(pipeline: Any) -> None:
    """Raise unless the steps of a pipeline have names, transform columns, and make those that a ranker takes."""
    names = [name for name, _ in pipeline.steps]
    is_named = names and len(set(names)) == len(names) and all(isinstance(name, str) for name in names)
    _require(is_named, "the steps of a pipeline do not have different names")
    between = [one for _, one in pipeline.steps[:-1]]
    _require(
        all(one == "passthrough" or hasattr(one, "transform") for one in between),
        "a step of a pipeline does not transform columns",
    )
    for (_, one), (_, other) in pairwise(pipeline.steps):
        if type(one).__name__ == "TableEncoder" and hasattr(one, "columns_"):
            made = len(one.get_feature_names_out())
            _require(made == (features_taken(other) or made), "the encoder makes other columns")


def _encodes(column: Mapping[str, Any]) -> bool:
    if column["kind"] in {"number", "date"}:
        return _is_number(column["fill"]) and isinstance(column["missing"], int)
    return column["kind"] != "category" or all(isinstance(level, str) for level in column["levels"])


def _try(step: Any) -> None:
    """Raise where the arrays of a transformer do not fit its columns: scikit-learn's errors would come later."""
    n_features = step.n_features_in_
    _require(n_features <= _MOST_COLUMNS, f"n_features_in_ is {n_features}")
    for name in ("mean_", "center_", "min_", "scale_"):
        values = getattr(step, name, None)
        is_whole = values is None or (np.shape(values) == (n_features,) and np.isfinite(values).all())
        _require(is_whole and (name != "scale_" or values is None or values.all()), f"{name} does not fit")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        step.transform(np.ones((1, n_features)))


def _check_encoder(step: Any) -> None:
    """Raise unless the categories of an encoder agree with the sparse matrix that it makes of them."""
    categories = step.categories_
    mappings = getattr(step, "_default_to_infrequent_mappings", [None] * len(categories))
    dropped = getattr(step, "_drop_idx_after_grouping", None)
    dropped = [None] * len(categories) if dropped is None else list(dropped)
    sizes = []
    for values, mapping, drop in zip(categories, mappings, dropped, strict=True):
        size = values.size
        _require(values.ndim == 1 and size, "an encoder has a column without categories")
        if mapping is not None:
            is_whole = mapping.shape == (size,) and mapping.dtype.kind in "iu"
            _require(
                is_whole and 0 <= mapping.min() <= mapping.max() < size, "an encoder groups other categories"
            )
            size = int(mapping.max()) + 1
        if drop is not None:
            _require(
                isinstance(drop, int | np.integer) and 0 <= drop < size, "an encoder drops a missing category"
            )
            size -= 1
        sizes.append(size)
    _require(step.n_features_in_ == len(sizes), "an encoder has categories of other columns")
    _require(list(getattr(step, "_n_features_outs", sizes)) == sizes, "an encoder makes other columns")


def _check_ranker(step: Any, kind: str) -> None:
    """Raise unless the arrays that compiled code reads have the sizes that it expects."""
    for name, value in vars(step).items():
        kinds = _TYPES.get(name)
        is_right = kinds is None or (isinstance(value, kinds) and isinstance(value, bool) == (bool in kinds))
        _require(is_right, f"{name} is a {type(value).__name__}")
    if hasattr(step, "cv_errors_"):
        _check_search(step)
    if kind.startswith("TwoSided"):
        _check_two_sided(step)
        return
    n_features = step.n_features_in_
    if kind == "AutoRanker":
        _check_choice(step)
    elif kind == "AverageRanker":
        for ranker in step.rankers_:
            _require(
                _is_ranker(ranker) and features_taken(ranker) == n_features, "the models of a mean differ"
            )
            _require(
                np.ndim(getattr(_last_step(ranker), "coef_", 0.0)) < 2,
                "a model of a mean has several outputs",
            )
        _require(step.rankers_ and _numbers(step.weights_, len(step.rankers_)), "a mean lacks weights")
    elif kind.startswith("Additive"):
        _check_terms(step, n_features)
    elif kind.startswith("Kernel"):
        _check_kernel(step, n_features)
    elif kind == "BoostedTrees":
        _check_trees(step, n_features)
    else:
        _require(_coefficients(step.coef_, n_features), f"coef_ does not have {n_features} columns")


def _check_two_sided(step: Any) -> None:
    """Raise unless the coefficients belong to the training objects, which have features."""
    coef = step.coef_
    is_table = isinstance(coef, np.ndarray) and coef.ndim == 2 and coef.dtype == np.float64
    _require(is_table, "coef_ is not a table")
    for kept, size in zip((step.row_fit_, step.column_fit_), coef.shape, strict=True):
        belongs = kept is None or (kept.ndim == 2 and kept.dtype == np.float64 and kept.shape[0] == size)
        _require(belongs, "coef_ does not belong to its objects")


def _is_ranker(model: object) -> bool:
    """Tell whether this is a ranker, alone or after steps; raise scikit-learn's error where a step is not fitted."""
    for _, step in getattr(model, "steps", ())[:-1]:
        if step != "passthrough":
            check_is_fitted(step)
    return isinstance(model, BaseEstimator) and type(_last_step(model)).__name__ in {*RANKERS, "BoostedTrees"}


def _check_choice(step: Any) -> None:
    _require(_is_ranker(step.best_estimator_), "the chosen model is not a ranker")
    first = step.best_estimator_ if step.encoder_ is None else step.encoder_
    _require(features_taken(first) == step.n_features_in_, "the chosen model takes other columns")
    if step.encoder_ is not None:
        _require(type(step.encoder_).__name__ == "TableEncoder", "the encoder does not encode tables")
        made = len(step.encoder_.get_feature_names_out())
        _require(made == features_taken(step.best_estimator_), "the encoder makes other columns")
    board = step.candidates_
    _require(type(board).__name__ == "CandidateTable", "there is no table of candidates")
    _require(sum(entry.is_chosen for entry in board) == 1, "the table of candidates does not name one choice")
    str(board)


def _check_search(step: Any) -> None:
    """Raise unless the held-out values of a search, which reports draw, belong to its alphas and its choice."""
    alphas, errors, outputs = step.alphas_, step.cv_errors_, np.shape(step.alpha_)
    for value in (step.alpha_, step.best_score_, getattr(step, "best_iteration_", step.alpha_)):
        is_number = np.shape(value) == outputs and np.asarray(value).dtype.kind in "if"
        _require(is_number, "the choice is not a number per output")
    one_per_alpha = errors.shape[: errors.ndim - len(outputs)][-1:] == alphas.shape
    _require(
        one_per_alpha and alphas.dtype.kind == errors.dtype.kind == "f", "the errors are not one per alpha"
    )
    table = getattr(step, "surface_", None)
    if table is not None:
        n_iter, bare = table.shape[-1], step.unpenalised_
        is_whole = table.shape == (*outputs, alphas.size, n_iter) and bare.shape == (*outputs, n_iter)
        _require(is_whole and table.dtype.kind == bare.dtype.kind == "f", "the surface has other alphas")
    choices = getattr(step, "choices_", None if table is None else {})
    if choices is not None:
        _require(step.method_ in choices, "the method chose nothing")
        triples = [triple for made in choices.values() for triple in (made if outputs else [made])]
        _require(all(map(_is_choice, triples)), "a choice is not an alpha, an iteration and a value")


def _is_choice(values: Any) -> bool:
    return len(values) == 3 and all(map(_is_number, values))


def _check_trees(step: Any, n_features: int) -> None:
    """Raise unless every node splits a column of X, and leads to nodes after it or is a leaf."""
    feature, children, n_nodes = step.features_, step.children_, step.features_.size
    arrays = (feature, step.thresholds_, step.values_, step.missing_left_)
    is_whole = all(one.shape == (n_nodes,) for one in arrays) and children.shape == (n_nodes, 2)
    kinds = "".join(one.dtype.kind for one in (*arrays, children, step.roots_))
    _require(is_whole and kinds == "iffiii", "the nodes of trees are not whole")
    _require(feature.max(initial=-1) < n_features, "a tree has a column beyond the last one")
    inner = np.flatnonzero(feature >= 0)
    after = children[inner] > inner[:, None]
    _require((after & (children[inner] < n_nodes)).all(), "a node of a tree leads back")
    roots = step.roots_
    _require(roots.ndim == 1 and ((roots >= 0) & (roots < n_nodes)).all(), "a tree has no root")
    _require(np.isfinite(step.values_).all() and np.isfinite(step.baseline_), "a leaf has no value")


def _check_kernel(step: Any, n_features: int) -> None:
    basis = step.basis_
    _require(isinstance(step.kernel_, Kernel) and n_features <= _MOST_COLUMNS, "the model has no kernel")
    if basis is not None:
        _require(basis.ndim == 1 and basis.dtype.kind in "iu" and basis.size, "the basis does not list rows")
    if step.kernel_.is_precomputed:
        _require(basis is None or 0 <= basis.min() <= basis.max() < n_features, "the basis lists other rows")
        n_rows = n_features if basis is None else basis.size
    else:
        rows = step.X_fit_
        _require(isinstance(rows, np.ndarray) or sp.issparse(rows), "the model has no basis rows")
        values = rows.data if sp.issparse(rows) else rows
        _require(np.isfinite(values).all(), "X_fit_ has values that are not finite")
        _require(
            rows.ndim == 2 and rows.dtype.kind == "f" and rows.shape[1] == n_features,
            "X_fit_ has other columns",
        )
        n_rows = rows.shape[0]
        _require(n_rows and (basis is None or basis.size == n_rows), "the basis has other rows")
    _require(_coefficients(step.dual_coef_, n_rows), f"dual_coef_ does not have {n_rows} columns")


def _check_terms(step: Any, n_features: int) -> None:
    terms = step.terms_
    _require(isinstance(terms, Terms) and n_features <= _MOST_CURVES, "the model has no curves")
    _require(
        all(side.column < n_features for side in terms.sides), "a curve has a column beyond the last one"
    )
    sizes = {"values_": terms.n_values, "shares_": terms.n_values, "importances_": len(terms.all_terms)}
    for name, size in sizes.items():
        _require(_numbers(getattr(step, name), size), f"{name} does not have {size} numbers")


def _numbers(array: Any, size: int) -> bool:
    is_array = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == (size,)
    return is_array and bool(np.isfinite(array).all())


def _coefficients(array: Any, size: int) -> bool:
    is_array = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim in {1, 2}
    return is_array and array.size > 0 and array.shape[-1] == size
