"""A model, whether it stands alone or at the end of a pipeline."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray, ArrayLike, MatrixLike, is_sparse
from rankwise.data.validation import check_names
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["ModelView", "dense_rows", "without_encoder"]

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ModelView:
    """A fitted ranker and what prepares its columns.

    Attributes
    ----------
    steps : tuple of transformers
        Applied to the rows in turn; those that take `qid` get it.
    ranker : estimator
    """

    steps: tuple[BaseEstimator, ...]
    ranker: BaseEstimator

    @classmethod
    def of(cls, model: object) -> ModelView:
        """Look at a fitted ranker, a fitted pipeline that ends in one, or what a search chose of those."""
        chosen = getattr(model, "best_estimator_", None)
        if chosen is not None:
            if getattr(model, "encoder_", None) is not None:
                raise InvalidInputError(
                    "This model turns the columns of a table into others first.",
                    "pass model.best_estimator_, and model.encoder_.transform(X) in the place of X.",
                )
            return cls.of(chosen)
        if isinstance(model, Pipeline):
            steps = tuple(step for _, step in model.steps[:-1] if step is not None and step != "passthrough")
            view = cls(steps, model.steps[-1][1])
        else:
            view = cls((), model)
        if not hasattr(view.ranker, "predict"):
            raise InvalidInputError(
                f"{type(view.ranker).__name__} has no predict.",
                "pass a fitted ranker, or a pipeline that ends in one.",
            )
        check_is_fitted(view.ranker)
        return view

    def prepare(self, X: MatrixLike, qid: ArrayLike | None) -> MatrixLike:
        """Return the rows as the ranker sees them."""
        for step in self.steps:
            takes_qid = "qid" in inspect.signature(step.transform).parameters
            X = step.transform(X, qid=qid) if takes_qid else step.transform(X)
        return X

    def predict(self, rows: MatrixLike, qid: ArrayLike | None) -> Doubles:
        """Return the scores of prepared rows; a mean of several models prepares them once more, for each."""
        predict = self.ranker.predict
        takes_qid = qid is not None and "qid" in inspect.signature(predict).parameters
        return np.asarray(predict(rows, qid=qid) if takes_qid else predict(rows), dtype=np.float64)

    @property
    def weights(self) -> Doubles | None:
        """One weight per prepared column, or None where the model is no weighted sum of them."""
        coef = getattr(self.ranker, "coef_", None)
        if coef is None or np.ndim(coef) != 1:
            return None
        return np.asarray(coef, dtype=np.float64)

    def names(self, n_columns: int, given: Sequence[str] | None) -> list[str]:
        """Return a name for each column: the caller's, the model's own, or its number."""
        if given is not None:
            names = check_names("feature_names", given)
            if len(names) != n_columns:
                raise InvalidInputError(
                    f"The model has {n_columns} columns, and feature names of {len(names)} were given.",
                    "give one name per column, in the order of the columns.",
                )
            return names
        for part in (*self.steps, self.ranker):
            own = getattr(part, "feature_names_in_", None)
            if own is not None and len(own) == n_columns:
                return [str(name) for name in own]
        return [f"column {number}" for number in range(n_columns)]

    def prepared_names(self, n_columns: int, names: Sequence[str]) -> list[str]:
        """Return a name for each column that the ranker was given, from those of the user's columns."""
        if n_columns == len(names):
            return list(names)
        own: AnyArray = np.asarray(names, dtype=object)
        for step in self.steps:
            if not hasattr(step, "get_feature_names_out"):
                break
            # A step that knows names takes no others.
            own = step.get_feature_names_out(None if hasattr(step, "feature_names_in_") else own)
        if len(own) == n_columns:
            return [str(name) for name in own]
        return [f"column {number}" for number in range(n_columns)]

    def describe(self) -> str:
        """Return the model in a few words, such as ``StandardScaler, RankRLSCV``."""
        names = [type(part).__name__ for part in (*self.steps, self.ranker)]
        models = getattr(self.ranker, "rankers_", None)
        if models is not None:
            names[-1] += f" of {'; '.join(ModelView.of(model).describe() for model in models)}"
        return ", ".join(names)


def without_encoder(model: object) -> tuple[object, TableEncoder | None]:
    """Return a model of numbers, and what makes these of a table's columns before it; None where nothing does."""
    chosen = getattr(model, "best_estimator_", None)
    if chosen is not None:
        encoder = getattr(model, "encoder_", None)
        return without_encoder(chosen) if encoder is None else (chosen, encoder)
    if isinstance(model, Pipeline) and len(model.steps) > 1 and isinstance(model.steps[0][1], TableEncoder):
        return model[1:], model.steps[0][1]
    return model, None


def dense_rows(X: MatrixLike, rows: npt.NDArray[np.int64]) -> Doubles:
    """Return some rows of a matrix or data frame as numbers."""
    if is_sparse(X):
        return np.asarray(X.tocsr()[rows].toarray(), dtype=np.float64)
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[rows].to_numpy(), dtype=np.float64)
    return np.asarray(np.asarray(X)[rows], dtype=np.float64)
