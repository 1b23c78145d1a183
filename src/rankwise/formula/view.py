"""A model, whether it stands alone, at the end of a pipeline, or behind an encoder of tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, MatrixLike
from rankwise.data.validation import check_names
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = ["ModelView"]


@dataclass(frozen=True)
class ModelView:
    """A fitted ranker and the preprocessing of its columns.

    Attributes
    ----------
    encoder : TableEncoder or None
        The encoder of tables, which comes first.
    steps : tuple of transformers
        Applied to the rows in turn; those that take `qid` get it.
    ranker : estimator
    """

    encoder: TableEncoder | None
    steps: tuple[BaseEstimator, ...]
    ranker: BaseEstimator

    @classmethod
    def of(cls, model: Any) -> ModelView:
        """View a fitted ranker, a fitted pipeline that ends in one, or the best estimator of a search."""
        chosen = getattr(model, "best_estimator_", None)
        if chosen is not None:
            view = cls.of(chosen)
            return replace(view, encoder=getattr(model, "encoder_", None) or view.encoder)
        parts = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
        *steps, ranker = [step for step in parts if step is not None and step != "passthrough"]
        if not hasattr(ranker, "predict"):
            raise InvalidInputError(
                f"{type(ranker).__name__} has no predict.",
                "pass a fitted ranker, or a pipeline that ends in one.",
            )
        check_is_fitted(ranker)
        encoder = steps.pop(0) if steps and isinstance(steps[0], TableEncoder) else None
        return cls(encoder, tuple(steps), ranker)

    def numbers(self, X: MatrixLike) -> MatrixLike:
        """Return the rows as numbers, before the steps."""
        return X if self.encoder is None else self.encoder.transform(X)

    def predict(self, X: MatrixLike, qid: ArrayLike | None) -> Floats:
        """Return the scores of rows of numbers."""
        for step in self.steps:
            X = _with_qid(step.transform, X, qid)
        return np.asarray(_with_qid(self.ranker.predict, X, qid), dtype=np.float64)

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

    def describe(self) -> str:
        """Return the model in a few words, such as ``StandardScaler, RankRLSCV``."""
        names = [type(part).__name__ for part in (*self.steps, self.ranker)]
        models = getattr(self.ranker, "rankers_", None)
        if models is not None:
            names[-1] += f" of {'; '.join(ModelView.of(model).describe() for model in models)}"
        return ", ".join(names)


def _with_qid(method: Callable[..., Any], X: MatrixLike, qid: ArrayLike | None) -> Any:
    takes_qid = qid is not None and "qid" in inspect.signature(method).parameters
    return method(X, qid=qid) if takes_qid else method(X)
