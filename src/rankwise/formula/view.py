"""A model, whether it stands alone, at the end of a pipeline, or behind an encoder of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, MatrixLike
from rankwise.data.validation import check_names
from rankwise.exceptions import InvalidInputError
from rankwise.losses import LOSSES
from rankwise.model_selection import predict_scores
from rankwise.preprocessing import QueryScaler
from rankwise.preprocessing.column_steps import held_text
from rankwise.preprocessing.table_encoder import TableEncoder


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
    calibration : two lists of float, or None
        Of the `AutoRanker` that chose the model.
    candidates : CandidateTable or None
        Of the same.
    """

    encoder: TableEncoder | None
    steps: tuple[BaseEstimator, ...]
    ranker: BaseEstimator
    calibration: Sequence[Sequence[float]] | None = None
    candidates: Any = None

    @classmethod
    def of(cls, model: Any) -> ModelView:
        """View a fitted ranker, a fitted pipeline that ends in one, or the best estimator of a search."""
        chosen = getattr(model, "best_estimator_", None)
        if chosen is not None:
            view = cls.of(chosen)
            encoder = view.encoder or getattr(model, "encoder_", None)
            calibration, candidates = (getattr(model, key, None) for key in ("calibration_", "candidates_"))
            return replace(view, encoder=encoder, calibration=calibration, candidates=candidates)
        parts = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
        *steps, ranker = [step for step in parts if step is not None and step != "passthrough"]
        if not hasattr(ranker, "predict"):
            raise InvalidInputError(
                f"{type(ranker).__name__} has no predict.",
                "pass a fitted ranker, or a pipeline that ends in one.",
            )
        check_is_fitted(ranker)
        if not steps:  # a ranker that takes tables
            return cls(getattr(ranker, "encoder_", None), (), ranker)
        encoder = steps.pop(0) if isinstance(steps[0], TableEncoder) else None
        return cls(encoder, tuple(steps), ranker)

    @property
    def of_mean(self) -> list[tuple[float, ModelView]]:
        """The models of a mean and their weights; nothing for another model."""
        models = map(ModelView.of, getattr(self.ranker, "rankers_", ()))
        return list(zip(np.asarray(getattr(self.ranker, "weights_", ())).tolist(), models, strict=False))

    @property
    def has_trees(self) -> bool:
        """Whether the model has boosted trees, which have no formula in columns."""
        return hasattr(self.ranker, "roots_") or any(one.has_trees for _, one in self.of_mean)

    @property
    def needs_queries(self) -> bool:
        """Whether a row can only be scored together with the others of its query."""
        scales = any(isinstance(step, QueryScaler) for step in self.steps)
        return scales or any(one.needs_queries for _, one in self.of_mean)

    @property
    def is_probability(self) -> bool:
        """Whether differences of scores are log odds."""
        loss = getattr(self.ranker, "loss_", None)
        return loss in LOSSES and LOSSES[loss].is_probability

    @property
    def own_names(self) -> list[str] | None:
        """The names of the columns that the first part saw in training, where it saw names."""
        parts = [part for part in (self.encoder, *self.steps, self.ranker) if part is not None]
        own = getattr(parts[0], "feature_names_in_", None)
        return None if own is None else [str(name) for name in own]

    @property
    def left_out(self) -> set[str]:
        """The columns of a table that training left out."""
        steps = [] if self.encoder is None else self.encoder.columns_
        return {step["name"] for step in steps if step["kind"] == "left out"}

    @property
    def texts(self) -> list[str]:
        """The columns that contained texts in training, and are texts wherever they are read again."""
        return [] if self.encoder is None else [s["name"] for s in self.encoder.columns_ if held_text(s)]

    def is_dense(self, otherwise: bool) -> bool:
        """Tell whether training saw an array, where the model knows."""
        return bool(getattr(self.ranker, "is_dense_", otherwise))

    @property
    def held_out(self) -> tuple[Floats, tuple[float, float]] | None:
        """Of a two-sided model that chose alpha: the held-out value of each ranking, and the interval of their mean."""
        figures = getattr(self.ranker, "figures_", None)
        return None if figures is None else (figures, self.ranker.interval_)

    def results(self, model: Any) -> dict[str, object]:
        """Return the alpha, the counts of the training data, and the held-out value of the model that was viewed."""
        names = {"alpha": "alpha_", "queries": "n_queries_", "pairs": "n_pairs_"}
        found = {key: getattr(self.ranker, name, None) for key, name in names.items()}
        found |= {
            "held_out_value": getattr(model, "best_score_", None),
            "scored_by": getattr(model, "cv_", None),
        }
        return {key: value for key, value in found.items() if value is not None}

    def weights(self, given: Sequence[str] | None) -> dict[str, float]:
        """Return the weight of each column that a linear ranker sees; nothing for another one."""
        weights = np.asarray(getattr(self.ranker, "coef_", np.zeros((0, 0))))
        if weights.ndim != 1:
            return {}
        own = self.names_after(given)
        if own is None or len(own) != weights.size:  # a step of the caller's does not name its columns
            own = [f"x{at}" for at in range(weights.size)]
        return dict(zip(own, weights.tolist(), strict=True))

    def numbers(self, X: MatrixLike) -> MatrixLike:
        """Return the rows as numbers, before the steps."""
        return X if self.encoder is None else self.encoder.transform(X)

    def predict(self, X: MatrixLike, qid: ArrayLike | None = None) -> Floats:
        """Return the scores of rows of numbers."""
        model = make_pipeline(*self.steps, self.ranker) if self.steps else self.ranker
        return np.asarray(predict_scores(model, X, qid), dtype=np.float64)

    def names(self, n_columns: int, given: Sequence[str] | None, *, of_numbers: bool = False) -> list[str]:
        """Return a name for each column, or for each number that an encoder makes: given, the model's own, or x0, …."""
        if given is None and of_numbers and self.encoder is not None:
            return [str(name) for name in self.encoder.get_feature_names_out()]
        if given is not None:
            names = check_names("feature_names", given)
            if len(names) != n_columns:
                raise InvalidInputError(
                    f"The model has {n_columns} columns, and feature names of {len(names)} were given.",
                    "give one name per column, in the order of the columns.",
                )
            return names
        for part in (self.encoder, *self.steps, self.ranker):
            own = getattr(part, "feature_names_in_", None)
            if own is not None and len(own) == n_columns:
                return [str(name) for name in own]
        return [f"x{number}" for number in range(n_columns)]

    def names_after(self, given: Sequence[str] | None = None) -> list[str] | None:
        """Return the names of the columns that the ranker sees; None where nothing prepares or names them."""
        names: Any = given
        for part in (self.encoder, *self.steps):
            if hasattr(part, "get_feature_names_out"):
                names = part.get_feature_names_out(None if hasattr(part, "feature_names_in_") else names)
        return None if names is None else [str(name) for name in names]

    def describe(self) -> str:
        """Return the model in a few words, such as ``StandardScaler, RankRLSCV``."""
        names = ", ".join(type(part).__name__ for part in (*self.steps, self.ranker))
        models = "; ".join(one.describe() for _, one in self.of_mean)
        return f"{names} of {models}" if models else names
