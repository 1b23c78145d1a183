"""Save a model, load it again, and look at what a model file says about itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard

import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import rankwise
from rankwise.exceptions import ModelFileError
from rankwise.files import replacing
from rankwise.json_values import Json
from rankwise.persistence.container import FORMAT, Container, write_container
from rankwise.persistence.container_reader import read_container, read_file
from rankwise.persistence.defaults import DEFAULTS, current
from rankwise.persistence.models import RANKERS, choosing_class, read_step, write_step
from rankwise.persistence.parameters import unfit_parameter
from rankwise.persistence.reader import Reader
from rankwise.persistence.transformers import TRANSFORMERS, is_pipeline
from rankwise.persistence.values import wrong

if TYPE_CHECKING:
    from rankwise.persistence.writer import Writer

__all__ = ["load", "read_header", "save"]

File = str | os.PathLike[str] | BinaryIO
_RANKERS = frozenset(RANKERS)
Step = tuple[str, BaseEstimator | str]  # of a pipeline
_SUMMARY = (
    "n_features_in_",
    "n_queries_",
    "n_pairs_",
    "n_ignored_queries_",
    "alpha_",
    "gamma_",
    "scaling_",
    "solver_",
    "method_",
    "cv_",
    "best_score_",
    "best_iteration_",
    "n_iter_",
    "duality_gap_",
)


def save(model: BaseEstimator, path: File, *, notes: Mapping[str, object] | None = None) -> None:
    """Write a fitted ranker, or a pipeline of scalers that ends in one, to one file.

    The file holds arrays and a JSON header, and no code; `rankwise.load` gives back a model whose parameters, fitted
    attributes and predictions are the same bit for bit. It is written under a temporary name and then renamed, so that
    an existing file is replaced by a whole one or stays as it was.

    Parameters
    ----------
    model : estimator or sklearn.pipeline.Pipeline
        An `AutoRanker`, or a ranker of rankwise, alone or after steps that prepare its columns: scikit-learn's scalers,
        imputers, encoders, splines, bins, quantiles and powers, `ColumnTransformer`, `FeatureUnion` and pipelines of
        these, and the transformers of `rankwise.preprocessing`.
    path : path or binary stream
    notes : mapping, optional
        Anything JSON can say, kept in the header beside the model, such as where the data came from.

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
    notes = {} if notes is None else notes
    if not isinstance(notes, Mapping):
        raise ModelFileError(f"notes={notes!r} is no mapping.", "pass a dictionary.")
    chooser = model if hasattr(model, "best_estimator_") and isinstance(model, choosing_class()) else None
    if chooser is not None:
        check_is_fitted(chooser)
        model = chooser.best_estimator_
    steps = model.steps if is_pipeline(model) else [("", model)]
    if not hasattr(steps[-1][1], "predict"):
        raise ModelFileError(
            f"The model is a {type(steps[-1][1]).__name__}, which ranks nothing.",
            f"save one of {', '.join(RANKERS)}, or a Pipeline that ends in one.",
        )
    check_is_fitted(steps[-1][1])
    from rankwise.persistence.writer import Writer  # noqa: PLC0415 - who loads a model has no use for it

    writer = Writer(write_step)
    description: dict[str, Json] = {
        "format": list(FORMAT),
        "rankwise": rankwise.__version__,
        "sklearn": sklearn.__version__,
        "estimator": type(steps[-1][1]).__name__,
        "features": _feature_names(steps if chooser is None else [("", chooser), *steps]),
        "training": writer.write(_training_summary(model), "training"),
        "notes": writer.write(dict(notes), "notes"),
    }
    header: dict[str, Json] = {
        "defaults": DEFAULTS,
        "steps": [_write_named(name, step, len(steps) > 1, writer) for name, step in steps],
    }
    if is_pipeline(model):
        # Where a pipeline keeps its transformers is the affair of whoever fits it, and no file's.
        options = {
            key: value
            for key, value in model.get_params(deep=False).items()
            if key not in {"steps", "memory"}
        }
        header["pipeline"] = writer.write(options, "pipeline")
    if chooser is not None:
        header["automatic"] = chooser._written(writer)  # noqa: SLF001 - of this house's own class
    container = Container(header, writer.arrays, description)
    destination: Any = nullcontext(path) if hasattr(path, "write") else replacing(path)
    with destination as stream:
        write_container(stream, container)


def load(path: File) -> BaseEstimator:
    """Read a model that `model.save` or `rankwise.save` wrote.

    Loading executes no code from the file: only the classes of rankwise and the known scalers are ever made.

    Parameters
    ----------
    path : path or binary stream
        A stream is read from where it stands to its end.

    Returns
    -------
    estimator or sklearn.pipeline.Pipeline
        What was saved.

    Raises
    ------
    ModelFileError
        Where the file is none of rankwise's, damaged, or of a newer format.

    Examples
    --------
    >>> import io
    >>> import rankwise
    >>> file = io.BytesIO()  # or a path
    >>> rankwise.save(rankwise.RankRLS().fit([[0.0], [1.0]], [0, 1]), file)
    >>> rankwise.load(io.BytesIO(file.getvalue())).predict([[0.0], [3.0]]).round(6).tolist()
    [0.0, 1.0]
    """
    try:
        return _load(path)
    except ModelFileError as error:
        if not _has_name(path):
            raise
        raise _naming(path, error) from error


def _load(file: File) -> BaseEstimator:
    container = _reader(file)(file)
    try:
        return _made(container)
    except RecursionError as error:  # models inside models, each of which may be nested
        raise wrong("something is nested too deep") from error


def _made(container: Container) -> BaseEstimator:
    header = container.header
    defaults = header.get("defaults", DEFAULTS)
    if type(defaults) is not int or not 0 < defaults <= DEFAULTS:
        raise wrong(f"its parameters have defaults {defaults!r:.80}, which are not known here")
    reader = Reader(container.arrays, read_step, defaults)
    written = header.get("steps")
    if not isinstance(written, list) or not written:
        raise wrong("it holds no model")
    steps = [_read_named(step, reader) for step in written]
    model, options = steps[-1][1], header.get("pipeline")
    if type(model).__name__ not in _RANKERS:
        raise wrong("its last step is no ranker")
    if options is not None:
        model = _read_pipeline(steps, reader.read(options))
    elif steps[1:]:
        raise wrong("it holds several steps and no pipeline")
    chooser = header.get("automatic")
    if chooser is None:
        return model
    return choosing_class()._read(chooser, model, reader)  # noqa: SLF001 - as above


def read_header(path: File) -> dict[str, Any]:
    """Return what a model file says about itself, after comparing its checksum.

    Parameters
    ----------
    path : path or binary stream

    Returns
    -------
    dict
        ``format``, ``rankwise`` and ``sklearn`` (versions), ``estimator``, ``features`` (names or None),
        ``training`` (a summary), ``notes``, and ``steps`` with each step's ``class``, ``parameters`` and
        ``attributes``; arrays are only named.

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
    try:
        container = _reader(path)(path, only_header=True)
    except ModelFileError as error:
        if not _has_name(path):
            raise
        raise _naming(path, error) from error
    return {**container.description, **container.header}


def _reader(file: object) -> Callable[..., Container]:
    # Asking for a method takes a tenth of the time of asking for the protocol of paths.
    if hasattr(file, "read"):
        return read_container
    if not isinstance(file, (str, bytes, os.PathLike)) or "\0" in os.fsdecode(file):
        raise ModelFileError(f"{file!r} is no path.", "pass the name of a file, a Path or a binary stream.")
    return read_file


def _has_name(file: File) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(file, (str, os.PathLike))


def _naming(path: str | os.PathLike[str], error: ModelFileError) -> ModelFileError:
    """Say in an error which file it is about."""
    return error.restated(f"{os.fspath(path)}: {error.problem}")


def _write_named(name: str, step: object, has_others: bool, writer: Writer) -> dict[str, Json]:
    if step is None or isinstance(step, str):
        return {"name": name, "class": None, "parameters": {}, "attributes": {}}
    return {"name": name, **write_step(step, f"{name}/" if has_others else "", writer)}


def _read_named(written: object, reader: Reader) -> Step:
    if not isinstance(written, dict) or not isinstance(written.get("name"), str):
        raise wrong("a step has no name")
    if written.get("class", "") is None:
        return written["name"], "passthrough"
    return written["name"], read_step(written, reader)


def _read_pipeline(steps: list[Step], options: object) -> BaseEstimator:
    kind = TRANSFORMERS["Pipeline"]
    if not isinstance(options, dict) or not options.keys() <= current(kind).keys():
        raise wrong("its pipeline has options that are not known here")
    own = {key: value for key, value in options.items() if key != "memory"}
    if unfit_parameter(own) is not None:
        raise wrong("its pipeline has options that are none")
    if len({name for name, _ in steps}) != len(steps):
        raise wrong("two steps have the same name")
    pipeline: BaseEstimator = kind(steps, **own)
    return pipeline


def _training_summary(model: BaseEstimator) -> dict[str, object]:
    """Return what a reader of the header wants to know first about how the model came about."""
    last = model.steps[-1][1] if is_pipeline(model) else model
    found = {name.rstrip("_"): getattr(last, name) for name in _SUMMARY if hasattr(last, name)}
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in found.items()}


def _feature_names(steps: list[Step]) -> list[str] | None:
    for _, step in steps:
        if hasattr(step, "feature_names_in_"):
            return [str(name) for name in step.feature_names_in_]
    return None
