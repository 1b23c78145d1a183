"""Tables whose columns are not all numbers, as rows that rankers take."""

from __future__ import annotations

from sklearn.base import clone

from rankwise.arrays import ArrayLike, Importance, Labels, Matrix, MatrixLike
from rankwise.data.duels import read_duels
from rankwise.data.validation import check_choice
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing.table_columns import is_table_like, needs_encoding
from rankwise.preprocessing.table_encoder import TableEncoder
from rankwise.problems.training import PairData, TrainingData

__all__ = ["EncodingRanker"]


class EncodingRanker(Ranker):
    """A ranker that encodes the columns of tables where they need it."""

    encoder_: TableEncoder | None

    def _training_data(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_importance: Importance | None,
    ) -> TrainingData:
        self._require_labels(y)
        data = super()._training_data(self._encode(X, qid), y, qid, sample_weight, query_importance)
        self._name_columns()
        return data

    def _pair_data(
        self,
        X: MatrixLike,
        pairs: ArrayLike | MatrixLike | None,
        magnitude: ArrayLike | None,
        weight: ArrayLike | None,
    ) -> PairData:
        rows, edges = read_duels(X, pairs)
        data = super()._pair_data(self._encode(rows, None), edges, magnitude, weight)
        self._name_columns()
        return data

    def _encode(self, X: MatrixLike, qid: ArrayLike | None) -> MatrixLike:
        """Turn a table into numbers, where that is asked for or needed."""
        encoder = self.encoder
        if isinstance(encoder, str):
            check_choice("encoder", encoder, ("auto",))
            encoder = TableEncoder() if is_table_like(X) and needs_encoding(X) else None
        elif not isinstance(encoder, TableEncoder | None):
            raise InvalidInputError(
                f"encoder={encoder!r} is no TableEncoder.", "use 'auto', None or a TableEncoder."
            )
        self.encoder_ = None if encoder is None else clone(encoder).fit(X, qid=qid)
        return X if self.encoder_ is None else self.encoder_.transform(X)

    def keep_encoder(self, encoder: TableEncoder) -> None:
        """Say that X was encoded before the fit, so that `predict` takes tables from now on.

        Parameters
        ----------
        encoder : TableEncoder
            Fitted; what it gives is what the fit got.
        """
        self.encoder_ = encoder
        self._name_columns()

    def _name_columns(self) -> None:
        """Say of which columns X was, before it was encoded."""
        if self.encoder_ is not None:
            self.n_features_in_ = self.encoder_.n_features_in_
            self.feature_names_in_ = self.encoder_.feature_names_in_

    def _encoded(self, X: MatrixLike) -> Matrix:
        """Check rows to be scored, and encode them as those of the fit were."""
        return self._check_rows(X, reset=False) if self.encoder_ is None else self.encoder_.transform(X)
