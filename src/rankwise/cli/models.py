"""Models that are read, and data brought into the shape that they know."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankwise.arrays import MatrixLike
from rankwise.cli.checks import check_complete, missing_ids
from rankwise.cli.columns import lacks_columns
from rankwise.cli.encoding import encoded, numbers_of_table
from rankwise.cli.inputs import Rows, stored, widen
from rankwise.cli.printing import remark
from rankwise.data.containers import pays_as_array
from rankwise.data.wording import how_many
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["SavedModel", "fit_columns", "read_model", "remark_on_queries"]


@dataclass(frozen=True)
class SavedModel:
    """A model that was read, and what its file says beside it."""

    path: str
    model: Any
    notes: dict[str, Any]
    header: dict[str, Any] = field(default_factory=dict)
    encoder: Any = None
    calibration: list[list[float]] | None = None  # of differences of scores, to probabilities
    chooser: Any = None  # what chose the model, where something did

    @property
    def n_columns(self) -> int:
        """How many columns the model takes."""
        from rankwise.persistence import features_taken  # noqa: PLC0415 - imports every estimator

        found = features_taken(self.model)
        assert found is not None  # every model that was read says so
        return found

    @property
    def whole(self) -> BaseEstimator:
        """The model with what encodes tables before it."""
        if self.encoder is None:
            return self.model
        steps = getattr(self.model, "steps", [("ranker", self.model)])
        return Pipeline([("table", self.encoder), *steps])

    @property
    def learned_from_queries(self) -> bool:
        """Whether the training rows had query ids."""
        steps = getattr(self.model, "steps", None)
        return bool(getattr(self.model if steps is None else steps[-1][1], "fitted_with_qid_", False))

    @property
    def scales_inside_queries(self) -> bool:
        """Whether the model looks at all rows of a query at once, and so must know which those are."""
        return any(type(step).__name__ == "QueryScaler" for step in self._steps)

    @property
    def _steps(self) -> list[Any]:
        """What prepares columns, in the model or in those that it is the mean of."""
        models = getattr(self.model, "rankers_", [self.model])
        return [step for model in models for _, step in getattr(model, "steps", [])]

    def is_dense(self, X: MatrixLike) -> bool:
        """Tell whether the model takes arrays; one that was not saved by `fit` says so by what centres its columns."""
        centres = ("with_mean", "with_centering")
        if any(getattr(step, name, False) for step in self._steps for name in centres):
            return True
        return bool(self.notes.get("is_dense", pays_as_array(X)))

    def names(self, rows: Rows) -> list[str]:
        """Return the names of the columns, as training had them or as the data have them."""
        own = self.notes.get("feature_names")
        return [str(name) for name in own] if own else rows.column_names()


def read_model(path: str) -> SavedModel:
    """Read a model and what its file says beside it."""
    from rankwise.persistence import load, read_header  # noqa: PLC0415 - imports every estimator

    if path == "-":
        stream = io.BytesIO(sys.stdin.buffer.read())
        header = read_header(stream)
        stream.seek(0)
        return _saved("standard input", load(stream), header)
    if Path(path).is_dir():
        raise InvalidInputError(
            f"{path} is a folder, not a model file.", "name the file that `rankwise fit -o` wrote."
        )
    header = read_header(path)
    return _saved(path, load(path), header)


def _saved(path: str, model: BaseEstimator, header: dict[str, Any]) -> SavedModel:
    """Take apart a ranker that chose its model, and maybe encodes what the model takes."""
    from rankwise.formula.view import ModelView  # noqa: PLC0415 - with every estimator

    encoder = ModelView.of(model).encoder
    chosen = getattr(model, "best_estimator_", model)
    if encoder is not None and chosen is model:
        chosen = model[1:]  # a pipeline that begins with the encoder
    notes = {**_notes_of(model, encoder), **header["notes"]}
    chooser = model if hasattr(model, "best_estimator_") else None
    return SavedModel(path, chosen, notes, header, encoder, getattr(model, "calibration_", None), chooser)


def _notes_of(model: BaseEstimator, encoder: TableEncoder | None) -> dict[str, Any]:
    """Return what `rankwise fit` would have written beside a model, as far as one that Python saved knows it."""
    own = getattr(model, "feature_names_in_", None)
    stored = {"is_dense": True} if getattr(model, "is_dense_", False) else {}
    if own is None:
        return stored
    names = [str(name) for name in own]
    reading = {"features": names, "embedding": None}
    if encoder is None:
        return {"feature_names": names, "reading": reading, **stored}
    made = [str(name) for name in encoder.get_feature_names_out()]
    return {"feature_names": made, "reading": {**reading, "encoded": "yes"}, **stored}


def fit_columns(rows: Rows, saved: SavedModel) -> Rows:
    """Bring the columns of the data into the order, number and storage that the model knows."""
    if rows.qid is None and saved.scales_inside_queries:
        raise missing_ids(rows, f"the model {saved.path} scales inside queries")
    if saved.encoder is not None:
        if rows.table is None:
            raise InvalidInputError(
                f"{rows.source} is no table, and the model {saved.path} was trained on one.",
                "use a table with the columns of the training table.",
            )
        rows = encoded(rows, saved.encoder)
    elif rows.table is not None and saved.notes.get("feature_names"):
        rows = numbers_of_table(rows, saved.notes["feature_names"])
    return stored(check_complete(_in_order(rows, saved)), is_dense=saved.is_dense(rows.X))


def remark_on_queries(rows: Rows, saved: SavedModel, qid: str, done: str) -> None:
    """Say that rows are one ranking where those of training were not, and what is done with them as such."""
    if rows.qid is None and rows.pairs is None and saved.learned_from_queries:
        missing = f"column {qid}" if rows.names is not None else "query ids"
        remedy = " (--qid COLUMN)" if rows.names is not None else ""
        remark(f"{rows.source} has no {missing}: all rows are {done} as one ranking{remedy}")


def _in_order(rows: Rows, saved: SavedModel) -> Rows:
    wanted, given = saved.n_columns, int(rows.X.shape[1])
    names = saved.notes.get("feature_names")
    if names and rows.names is not None:
        place = {name: position for position, name in enumerate(rows.names)}
        missing = [name for name in names if name not in place]
        if not missing:
            return replace(rows, X=rows.X[:, [place[name] for name in names]], names=list(names))
        raise lacks_columns(rows.source, missing, wanted, rows.names)
    first = saved.notes.get("first_column")
    if first is not None and rows.first_column is not None and first != rows.first_column:
        raise InvalidInputError(
            f"{rows.source} counts its columns from {rows.first_column}, and the training data of {saved.path} from "
            f"{first}.",
            "write the store again from its source, with --zero-based as the training data were read.",
        )
    if given > wanted or (given < wanted and rows.first_column is None):
        raise InvalidInputError(
            f"{rows.source} has {how_many(given, 'columns')}, but the model {saved.path} was trained on {wanted:,}.",
            "use data with the columns of the training data; `rankwise inspect` shows what a file or a model has.",
        )
    if given < wanted:
        # Text does not write zeros, so its last columns may not occur; worth a word, for it may be the wrong file.
        remark(
            f"{rows.source} has {how_many(given, 'columns')} and the model {wanted:,}; the others are taken as 0."
        )
        return widen(rows, wanted)
    return rows
