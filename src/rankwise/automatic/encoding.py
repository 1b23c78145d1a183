"""Tables whose columns are not all numbers, as rows that rankers take."""

from __future__ import annotations

from sklearn.base import clone

from rankwise.arrays import ArrayLike, Importance, Labels, Matrix, MatrixLike
from rankwise.data.columns import is_table_like, needs_encoding
from rankwise.data.duels import read_duels
from rankwise.data.validation import check_choice
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing.table_encoder import TableEncoder
from rankwise.problems.training import PairData, TrainingData

__all__ = ["EncodingRanker", "name_columns"]


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
        name_columns(self)
        return data

    def _pair_data(
        self,
        X: MatrixLike,
        pairs: ArrayLike | MatrixLike | None,
        magnitude: ArrayLike | None,
        weight: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> PairData:
        rows, edges = read_duels(X, pairs)
        data = super()._pair_data(self._encode(rows, None), edges, magnitude, weight, groups)
        name_columns(self)
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

    def _encoded(self, X: MatrixLike) -> Matrix:
        """Check rows to be scored, and encode them as those of the fit were."""
        return self._check_rows(X, reset=False) if self.encoder_ is None else self.encoder_.transform(X)


def name_columns(ranker: EncodingRanker) -> None:
    """Say of which columns X was, before it was encoded."""
    if ranker.encoder_ is not None:
        ranker.n_features_in_ = ranker.encoder_.n_features_in_
        ranker.feature_names_in_ = ranker.encoder_.feature_names_in_
