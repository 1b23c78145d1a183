"""Model files: a zip archive (stored) of ``model.json`` and one ``.npy`` member per array.

Nothing in a file is executed: it can only name the classes listed below. ``zipfile`` compares the CRC of each member,
so damage is detected. A file from a stranger may still contain anything: sizes are compared with the bytes present
before memory is allocated, parameters are checked by the constraints of their class, only fitted attributes are set,
and the model scores a row as it did when it was saved. Our compiled code checks the arrays that it is given; the few
that other compiled code takes without a look are checked here. Parameters that control how a computation runs are
neither saved nor restored.
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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from inspect import signature
from numbers import Integral
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import rankwise
from rankwise.arrays import AnyArray
from rankwise.data.containers import check_sparse
from rankwise.exceptions import MissingQueriesError, ModelFileError
from rankwise.files import replacing
from rankwise.json_values import Json, json_value
from rankwise.metrics import METRICS, Metric, get_metric
from rankwise.model_selection import predict_scores

__all__ = ["load", "read_header", "save"]

File = str | os.PathLike[str] | BinaryIO

_FORMAT = 1
_HEADER = "model.json"
_MAGIC = np.lib.format.magic(1, 0)  # the first bytes of a .npy array
_LONGEST_HEADER = 1 << 26  # bytes; Python values take up to fifty times as much memory as their JSON
_SCALARS = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "float64",
]  # fmt: skip
_SPARSE = {kind.__name__: kind for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)}

RANKERS = [
    "AdditiveRanker", "AdditiveRankerCV", "AutoRanker", "AverageRanker", "KernelRankRLS", "KernelRankRLSCV",
    "KernelRankSVM", "KernelRankSVMCV", "RankRLS", "RankRLSCV", "RankSVM", "RankSVMCV", "TwoSidedRankRLS",
    "TwoSidedRankRLSCV", "BradleyTerry",
]  # fmt: skip
# More columns need as many bytes in the file, and a row to try the model is then sparse, so that it takes no memory.
_MANY_COLUMNS = 1 << 24

_MODULES = {
    name: module
    for module, names in {
        "rankwise": RANKERS,
        "rankwise.automatic.candidate_table": ["Entry", "CandidateTable"],
        "rankwise.automatic.scaling": ["QueryProducts", "RankScaler"],
        "rankwise.automatic.trees": ["BoostedTrees"],
        "rankwise.design.terms": ["Curve", "Surface", "Terms"],
        "rankwise.kernels": ["Kernel"],
        "rankwise.model_selection": ["PreferenceKFold", "QueryKFold"],
        "rankwise.preprocessing": ["QueryScaler", "TableEncoder"],
        "sklearn.compose": ["ColumnTransformer"],
        "sklearn.impute": ["MissingIndicator", "SimpleImputer"],
        "sklearn.model_selection": [
            "GroupKFold", "KFold", "LeaveOneGroupOut", "StratifiedGroupKFold", "StratifiedKFold",
        ],
        "sklearn.pipeline": ["FeatureUnion", "Pipeline"],
        "sklearn.preprocessing": [
            "FunctionTransformer", "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "OneHotEncoder",
            "OrdinalEncoder", "PowerTransformer", "QuantileTransformer", "RobustScaler", "SplineTransformer",
            "StandardScaler",
        ],
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
    if type(ranker).__name__ not in RANKERS:
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
    with suppress(Exception):  # some steps of scikit-learn take only values that they know
        _try(model)
        header["tried"] = True
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
        _require(type(_last_step(model)).__name__ in RANKERS, "its last step is not a ranker")
        if header.get("tried"):
            _try(model)
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
        return {key: value for key, value in header.items() if key not in {"model", "tried"}}


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
    columns = (
        value.transformers if kind.__name__ == "ColumnTransformer" and hasattr(value, "_columns") else ()
    )
    if any(callable(one) for *_, one in columns):  # the columns instead of a function that chose them
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
    return {
        name: _kept(value) if name in {"kernel_params", "parameters"} and isinstance(value, dict) else value
        for name, value in parameters.items()
        if name not in _RUN_PARAMETERS
    }


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


@lru_cache(maxsize=256)  # curves share few headers, and reading one takes longer than reading its array
def _array_header(text: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return np.lib.format.read_array_header_1_0(io.BytesIO(text))


def _array(name: str, archive: zipfile.ZipFile) -> AnyArray:
    data = archive.read(f"{name}.npy")
    _require(data[:8] == _MAGIC, f"{name} is not an array")
    start = 10 + int.from_bytes(data[8:10], "little")
    shape, is_fortran, dtype = _array_header(data[8:start])
    _require(dtype.kind in "biufU" and max(shape, default=0) <= len(data), f"{name} has no numbers or text")
    # Raises where the bytes are too few.
    array = np.ndarray(shape, dtype, data, start, order="F" if is_fortran else "C")
    if dtype.kind == "b":  # numbers that are no truth value
        array = array.view("u1") != 0
    found: AnyArray = array.astype(dtype.newbyteorder("="))
    return found


def _read(value: Any, archive: zipfile.ZipFile) -> Any:
    """Return the value that some JSON describes."""
    if isinstance(value, list):
        return [_read(one, archive) for one in value]
    if not isinstance(value, dict):
        return value
    kind = next(iter(value), "")
    if kind == "$array":
        return _array(value[kind], archive)
    parts = {key: _read(one, archive) for key, one in value.items()}
    if kind in {"$class", "$sparse"}:
        n_columns = parts["attributes"].get("n_features_in_", 0) if kind == "$class" else max(parts["shape"])
        _require(n_columns <= max(_MANY_COLUMNS, archive.start_dir), f"it has {n_columns} columns")
    return _KINDS[kind](*parts.values()) if kind.startswith("$") else parts


def _object(name: str, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    kind = _class(name)
    unknown = [key for key in _kept(parameters) if key not in _parameter_names(kind)]
    _require(not unknown, f"{name} has no parameter {', '.join(unknown):.80}")
    made: Any = kind(**_kept(parameters))
    for key in attributes:
        _require(_is_attribute(kind, key), f"{name} has no attribute {key!r:.80}")
    if isinstance(made, BaseEstimator):
        vars(made).update(attributes)
    _check_object(made)
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


_KINDS: Mapping[str, Any] = {
    "$class": _object,
    "$dict": dict,
    "$dtype": lambda name: np.dtype({**dict(zip(_SCALARS, _SCALARS, strict=True)), "object": "O"}[name]),
    "$float": lambda text: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
    "$metric": lambda name, options: get_metric(name, **options),
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


def _check_object(made: Any) -> None:
    """Raise unless the parameters and attributes of an object belong together, where its trial could not tell."""
    if hasattr(made, "_parameter_constraints"):
        made._validate_params()  # noqa: SLF001 - as fit does
    names = getattr(made, "feature_names_in_", None)
    if names is not None:
        is_whole = names.shape == (made.n_features_in_,) and all(isinstance(name, str) for name in names)
        _require(is_whole and len(set(names)) == names.size, "the feature names are not one per column")
    if hasattr(made, "children_"):
        splits = np.flatnonzero(made.features_ >= 0)
        _require((made.children_[splits] > splits[:, None]).all(), "a node of a tree leads back")
    if hasattr(made, "_n_features_outs"):
        _check_one_hot(made)


def _check_one_hot(step: Any) -> None:
    """Raise unless all codes lie inside the sparse matrix that scikit-learn makes of them without a look."""
    absent = [None] * len(step.categories_)
    mappings = getattr(step, "_default_to_infrequent_mappings", absent)
    rare = getattr(step, "_infrequent_indices", absent)
    dropped = absent if step._drop_idx_after_grouping is None else step._drop_idx_after_grouping  # noqa: SLF001
    parts = zip(step.categories_, mappings, rare, dropped, step._n_features_outs, strict=True)  # noqa: SLF001
    for values, mapping, places, drop, n_columns in parts:
        codes = np.arange(values.size) if mapping is None else mapping
        n_codes = n_columns + (drop is not None)
        is_sorted = values.dtype == object or np.searchsorted(values, values).max() < values.size
        is_whole = is_sorted and codes.shape == values.shape and (mapping is None) == (places is None)
        is_whole &= 0 <= codes.min() <= codes.max() < n_codes and (drop is None or 0 <= drop < n_codes)
        _require(is_whole, "an encoder makes other columns than it has")


def _try(model: Any) -> None:
    """Let a model score one row, which fails in some way where its parts do not belong together."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if type(model).__name__ == "BradleyTerry":
            ends = model.items_[:1], model.items_[-1:]
            model.predict_proba(*ends)
            model.difference(*ends)
        elif type(model).__name__.startswith("TwoSided"):
            sides = zip((model.row_fit_, model.column_fit_), model.coef_.shape, strict=True)
            model.predict(*(np.ones((1, size if kept is None else kept.shape[1])) for kept, size in sides))
        else:
            row = _row(model)
            try:  # to ask the steps whether they want query ids would take longer than all the rest
                model.predict(row)
            except MissingQueriesError:
                predict_scores(model, row, np.zeros(1))


def _row(model: Any) -> Any:
    """Return one row of ones, or of missing values for tables."""
    n_features = features_taken(model) or 0
    encoder: Any = (
        model.steps[0][1] if type(model).__name__ == "Pipeline" else getattr(model, "encoder_", None)
    )
    if type(encoder).__name__ == "TableEncoder":
        columns = [SimpleNamespace(to_list=lambda: [None])] * n_features
        return SimpleNamespace(columns=encoder.feature_names_in_, get_columns=lambda: columns)
    return np.ones((1, n_features)) if n_features < _MANY_COLUMNS else sp.csr_matrix((1, n_features))


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
