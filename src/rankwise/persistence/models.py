"""Models as plain values: which classes a file may name, and what is kept of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator

import rankwise
from rankwise.design.terms import Terms
from rankwise.exceptions import ModelFileError
from rankwise.json_values import Json
from rankwise.kernels import Kernel
from rankwise.persistence.defaults import DEFAULTS, current, former, is_default
from rankwise.persistence.parameters import FIT_BY_TYPE, unfit_parameter
from rankwise.persistence.reader import PLAIN, Reader
from rankwise.persistence.transformers import (
    PRIVATE,
    TRANSFORMERS,
    check_transformer,
    is_pipeline,
    parameters_of,
)
from rankwise.persistence.values import features_taken, wrong

if TYPE_CHECKING:
    from rankwise.persistence.writer import Writer

__all__ = ["RANKERS", "choosing_class", "read_step", "without_runs", "write_step"]

# By their public names: a class is looked up, and imported, once a file names it. Estimators know how to save
# themselves, so this room must not import theirs.
RANKERS = (
    "AdditiveRanker",
    "AdditiveRankerCV",
    "AverageRanker",
    "KernelRankRLS",
    "KernelRankRLSCV",
    "KernelRankSVM",
    "RankRLS",
    "RankRLSCV",
    "RankSVM",
    "RankSVMCV",
)
_CHOOSER = "AutoRanker"
# They control how a computation runs, which is not for a file to say: models have them at their defaults.
_RUNS = frozenset({"n_threads", "n_jobs", "memory", "memory_limit", "time_limit", "verbose"})
_MOST_COLUMNS = 2**24  # of curves, whose arrays do not tell how many columns there are

_USUAL = frozenset({"name", "class", "parameters", "attributes"})  # what every step of a file has
_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]*_")
_METHODS = ("fit", "score", "transform", "inverse_transform", "predict", "partial_fit")


class ChoosingModel(Protocol):
    """A ranker that chose its model, which files keep as any other, and the choice beside it."""

    best_estimator_: BaseEstimator

    def _written(self, writer: Writer) -> dict[str, Json]:
        """Return the choice as JSON."""

    @classmethod
    def _read(cls, written: object, chosen: BaseEstimator, reader: Reader) -> BaseEstimator:
        """Make the ranker that some JSON describes, around the model that it chose."""


def choosing_class() -> type[ChoosingModel]:
    """Return the class of rankers that choose their model."""
    found: type[ChoosingModel] = getattr(rankwise, _CHOOSER)
    return found


class _Kind:
    """What is known of a class that files may name, found out once.

    Attributes
    ----------
    kind : type
    omitted : dict
        Parameters with the values that they have where a file leaves them out.
    required : frozenset of str
        Parameters without a default.
    plain : frozenset of (str, type)
        Parameters with the types of JSON values that may be taken as they are.
    """

    def __init__(self, kind: type) -> None:
        self.kind, self.is_ranker = kind, kind.__name__ in RANKERS
        self.names = frozenset(signature(kind).parameters)
        self.omitted = current(kind)
        self.required = self.names.difference(self.omitted)
        self.plain = frozenset(pair for pair in FIT_BY_TYPE if pair[0] in self.names)

    def made(
        self, parameters: Mapping[str, object], attributes: Mapping[str, object], defaults: int
    ) -> BaseEstimator:
        """Return what `__init__`, which only assigns, and `setattr` make, without calling either."""
        step: BaseEstimator = object.__new__(self.kind)
        omitted = self.omitted if defaults == DEFAULTS else former(self.kind, defaults)
        step.__dict__ = {**omitted, **parameters, **attributes}
        return step


def without_runs(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those that control how a computation runs, those of kernels included."""
    kept = {key: value for key, value in parameters.items() if key not in _RUNS}
    if isinstance(options := kept.get("kernel_params"), dict):
        kept["kernel_params"] = {key: value for key, value in options.items() if key != "n_jobs"}
    return kept


@lru_cache(256)
def _known(name: str) -> _Kind | None:
    """Return the class that a file means by a name; None where it means none."""
    kind = getattr(rankwise, name) if name in RANKERS else TRANSFORMERS.get(name)
    return None if kind is None else _Kind(kind)


def write_step(step: object, prefix: str, writer: Writer) -> dict[str, Json]:
    """Return the JSON of one estimator or scaler; `prefix` starts the names of its arrays."""
    kind = type(step)
    name = kind.__name__
    if (known := _known(name)) is None or kind is not known.kind:
        raise ModelFileError(
            f"{name} is not one of the classes that a model file holds.",
            f"save one of {', '.join(RANKERS)}, or a Pipeline of {', '.join(TRANSFORMERS)} that ends in one; anything "
            "else can be pickled, for readers who trust you.",
        )
    parameters = parameters_of(step)
    if parameters.get("func") is not None:
        raise ModelFileError(
            f"{name} has a function, and a model file holds no code.",
            "do what it does where the columns are made; or pickle the model, for readers who trust you.",
        )
    writes = {
        key: writer.write(value, f"{prefix}parameters/{key}")
        for key, value in parameters.items()
        if name not in RANKERS or not is_default(kind, key, value)
    }
    if (unfit := unfit_parameter(parameters)) is not None:
        raise ModelFileError(
            f"{name} has {unfit}={parameters[unfit]!r:.80}, which a model file does not hold.",
            "set it to a value that fit takes before saving (set_params).",
        )
    kept = PRIVATE.get(name, frozenset())
    fitted = {key: value for key, value in vars(step).items() if _FITTED.fullmatch(key) or key in kept}
    written: dict[str, Json] = {
        "class": name,
        "parameters": writes,
        "attributes": {key: writer.write(value, f"{prefix}{key}") for key, value in fitted.items()},
    }
    remembered = vars(step).get("_stream") if name in RANKERS else None
    if remembered is not None:
        from rankwise.persistence.streams import write_stream  # noqa: PLC0415 - as below

        if (stream := write_stream(remembered, prefix, writer)) is not None:
            written["stream"] = stream
    if "_metadata_request" in vars(step):
        written["requests"] = {
            method: dict(getattr(vars(step)["_metadata_request"], method).requests)
            for method in _METHODS
            if hasattr(step, f"set_{method}_request")
        }
    if "_sklearn_output_config" in vars(step):
        written["output"] = vars(step)["_sklearn_output_config"].get("transform")
    return written


def read_step(written: object, reader: Reader) -> BaseEstimator:
    """Make the estimator or scaler that some JSON describes."""
    if not isinstance(written, dict) or not isinstance(name := written.get("class"), str):
        raise wrong("a step names no class")
    known = _known(name)
    if known is None:
        raise wrong(f"class {name!r:.80} is not known here")
    parameters, attributes = written.get("parameters"), written.get("attributes")
    if not isinstance(parameters, dict) or not isinstance(attributes, dict):
        raise wrong(f"{name} has no parameters or attributes")
    if parameters and not known.plain.issuperset(
        zip(parameters, map(type, parameters.values()), strict=True)
    ):
        parameters = _read_parameters(known, parameters, reader)
    if not PLAIN.issuperset(map(type, attributes.values())):
        attributes = {key: reader.read(value) for key, value in attributes.items()}
    parameters = without_runs(parameters)
    if known.required and not known.required <= parameters.keys():
        raise wrong(f"{name} lacks parameters ({', '.join(sorted(known.required - set(parameters)))})")
    if (refusal := _refusal(known.kind, tuple(attributes))) is not None:
        raise wrong(refusal)
    step = known.made(parameters, attributes, reader.defaults)
    if known.is_ranker:
        _check_shapes(step, known.names)
    else:
        check_transformer(step)
    if not _USUAL.issuperset(written):
        _restore_requests(step, written.get("requests"))
        _restore_output(step, written.get("output"))
        _restore_stream(step, written.get("stream"), reader)
    return step


def _read_parameters(known: _Kind, written: dict[str, object], reader: Reader) -> dict[str, object]:
    kind, parameters = known.kind, reader.read(written)
    if not isinstance(parameters, dict):
        raise wrong(f"{kind.__name__} has no parameters")
    for name in parameters:
        if name not in known.names:
            raise wrong(f"{kind.__name__} has no parameter {name!r:.80}")
    if (unfit := unfit_parameter(parameters)) is not None:
        raise wrong(f"{kind.__name__} cannot have {unfit}={parameters[unfit]!r:.80}")
    return parameters


@lru_cache(1024)
def _refusal(kind: type, names: tuple[object, ...]) -> str | None:
    """Return why no file may set such attributes; None where it may."""
    for name in names:
        if not isinstance(name, str) or not (
            _FITTED.fullmatch(name) or name in PRIVATE.get(kind.__name__, ())
        ):
            return f"{name!r:.80} is no fitted attribute"
        if isinstance(getattr(kind, name, None), property):
            return f"{name} is not an attribute to set"
    return None


def _restore_requests(step: object, requests: object) -> None:
    if requests is None:
        return
    if not isinstance(requests, dict):
        raise wrong("metadata requests are no requests")
    with sklearn.config_context(enable_metadata_routing=True):
        for method, wanted in requests.items():
            if method not in _METHODS or not isinstance(wanted, dict):
                raise wrong(f"method {method!r:.80} requests nothing")
            if not all(value is None or isinstance(value, bool | str) for value in wanted.values()):
                raise wrong("a metadata request is none")
            try:
                getattr(step, f"set_{method}_request")(**wanted)
            except (AttributeError, TypeError, ValueError) as error:
                raise wrong(f"a metadata request is none ({error})") from error


def _restore_stream(step: BaseEstimator, written: object, reader: Reader) -> None:
    if written is None:
        return
    if type(step).__name__ not in RANKERS or not hasattr(step, "partial_fit"):
        raise wrong(f"{type(step).__name__} does not learn from streams")
    from rankwise.persistence.streams import read_stream  # noqa: PLC0415 - most models remember none

    step._stream = read_stream(written, reader, step.n_features_in_)  # noqa: SLF001 - a part of the model


def _restore_output(step: BaseEstimator, output: object) -> None:
    if output is None:
        return
    is_known = isinstance(output, str) and output in {"default", "pandas", "polars"}
    if not is_known or not hasattr(step, "set_output"):
        raise wrong("an output container is unknown")
    step.set_output(transform=output)


def _check_shapes(step: BaseEstimator, parameters: frozenset[str]) -> None:
    """Raise unless the parts of a ranker fit together: compiled code will read them by these sizes."""
    n_features = getattr(step, "n_features_in_", None)
    if type(n_features) is not int or n_features < 1:
        raise wrong("it does not say how many features the model takes")
    if "rankers" in parameters:
        _check_average(step, n_features)
    elif "n_knots" in parameters:
        _check_terms(step, n_features)
    elif "kernel" in parameters:
        _check_kernel_model(step, n_features)
    else:
        _check_coefficients(getattr(step, "coef_", None), n_features)


def _check_average(step: BaseEstimator, n_features: int) -> None:
    rankers, weights = getattr(step, "rankers_", None), getattr(step, "weights_", None)
    if not isinstance(rankers, list) or not rankers:
        raise wrong("the mean of several models has none")
    for ranker in rankers:
        parts = [part for _, part in ranker.steps] if is_pipeline(ranker) else [ranker]
        if type(parts[-1]).__name__ not in RANKERS or features_taken(parts[0]) != n_features:
            raise wrong("one of several models ranks nothing, or takes other columns")
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float64 or weights.shape != (len(rankers),):
        raise wrong(f"the weights of several models are not {len(rankers)} numbers")


def _check_kernel_model(step: BaseEstimator, n_features: int) -> None:
    kernel, basis = getattr(step, "kernel_", None), getattr(step, "basis_", None)
    rows: Any = getattr(step, "X_fit_", None)
    if not isinstance(kernel, Kernel):
        raise wrong("the model has no kernel")
    if basis is not None and not (
        isinstance(basis, np.ndarray) and basis.ndim == 1 and basis.dtype.kind in "iu" and basis.size
    ):
        raise wrong("the basis is none")
    if kernel.is_precomputed:
        if basis is not None and not 0 <= basis.min() <= basis.max() < n_features:
            raise wrong("the basis names rows that were not there")
        _check_coefficients(getattr(step, "dual_coef_", None), n_features if basis is None else basis.size)
        return
    if not (isinstance(rows, np.ndarray) or sp.issparse(rows)) or rows.ndim != 2 or rows.dtype.kind != "f":
        raise wrong("the model has no basis rows")
    if rows.shape[1] != n_features or (basis is not None and basis.size != rows.shape[0]):
        raise wrong(f"the basis rows have shape {rows.shape}")
    _check_coefficients(getattr(step, "dual_coef_", None), rows.shape[0])


def _check_terms(step: BaseEstimator, n_features: int) -> None:
    terms = getattr(step, "terms_", None)
    if not isinstance(terms, Terms):
        raise wrong("the model has no curves")
    if n_features > _MOST_COLUMNS:
        raise wrong(f"it has {n_features} columns, of which no curves can be had")
    sides = [*terms.curves, *(side for s in terms.surfaces for side in (s.first, s.second))]
    if any(side.column >= n_features for side in sides):
        raise wrong(f"a curve is of a column beyond the {n_features} there are")
    sizes = {"values_": terms.n_values, "shares_": terms.n_values, "importances_": len(terms.all_terms)}
    for name, size in sizes.items():
        array = getattr(step, name, None)
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (size,):
            raise wrong(f"{name} are not {size} numbers")


def _check_coefficients(coef: object, n_columns: int) -> None:
    if (
        not isinstance(coef, np.ndarray)
        or coef.dtype != np.float64
        or coef.ndim not in {1, 2}
        or coef.shape[-1] != n_columns
    ):
        raise wrong(f"the model's coefficients are not {n_columns} numbers per output")
