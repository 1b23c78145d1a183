"""Scaling of columns for candidates; each scaled version is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from rankwise.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Matrix, is_sparse
from rankwise.data.validation import check_qid
from rankwise.formula.formula import Column, Product
from rankwise.formula.steps import Affine, curve
from rankwise.pairs.labels import mid_ranks
from rankwise.preprocessing import QueryScaler, TableEncoder
from rankwise.runtime.memory import MemoryBudget

# Copies of X that together take less are kept; of larger ones only the last.
_KEPT_BYTES = 1 << 27
# Larger copies are made in single precision, so that X and its copy take less than twice X.
_SINGLE_BYTES = 1 << 28
# The name of the columns of a table as they are, for curves and trees.
CODES = "codes"
# The name of columns with the products of those of queries and the others.
PRODUCTS = "products"
# Values of a column that a scaling by ranks keeps.
_RANK_KNOTS = 256
# Places from 0 to 1 vary by 1/√12; so scaled, a column without ties varies by 1, as a standardised one does.
_RANK_UNIT = float(np.sqrt(12.0))


class RankScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns by the weighted rank of their values in training, linear between values.

    Unlike scikit-learn's QuantileTransformer it has weights of rows, and no jump at a value that occurs often.
    """

    def fit(self, X: Matrix, y: object = None, sample_weight: Floats | None = None) -> RankScaler:
        """Find the ranks of every column; y is ignored."""
        rows = validate_data(self, X, dtype=(np.float64, np.float32))
        self.knots_: list[Floats] = []
        self.places_: list[Floats] = []
        for column in rows.T:
            values, places = mid_ranks(column.astype(np.float64, copy=False), sample_weight)
            if values.size > _RANK_KNOTS:
                wanted = np.linspace(places[0], places[-1], _RANK_KNOTS)
                kept = np.unique(np.searchsorted(places, wanted).clip(0, places.size - 1))
                values, places = values[kept], places[kept]
            self.knots_.append(values)
            self.places_.append((places - 0.5) * _RANK_UNIT)
        return self

    def transform(self, X: Matrix) -> AnyArray:
        """Replace values by their ranks; values outside of those of training become the smallest or the largest."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        out: AnyArray = np.empty_like(rows)
        for at, (knots, places) in enumerate(zip(self.knots_, self.places_, strict=True)):
            out[:, at] = np.interp(rows[:, at], knots, places)
        return out

    def formula_columns(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that it makes, for exports and explanations."""
        shapes = zip(columns, self.knots_, self.places_, strict=True)
        return [column.then(curve(knots.tolist(), places.tolist())) for column, knots, places in shapes]


class QueryProducts(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Standardised columns, and the products of those that are constant inside queries with the others.

    By itself a column of the query orders nothing, and is left out.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    def fit(
        self,
        X: Matrix,
        y: object = None,
        qid: ArrayLike | None = None,
        sample_weight: Floats | None = None,
    ) -> QueryProducts:
        """Find means, spreads and the columns that are constant inside queries; y is ignored."""
        rows = validate_data(self, X, dtype=(np.float64, np.float32))
        scaler = StandardScaler().fit(rows, sample_weight=sample_weight)
        self.mean_, self.scale_ = scaler.mean_, scaler.scale_
        self.of_query_ = of_queries(rows, check_qid(qid, len(rows)).codes)
        return self

    def transform(self, X: Matrix) -> AnyArray:
        """Return the columns of rows, and then all products of the first column of queries, of the second, ..."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        rows = (rows - self.mean_.astype(rows.dtype)) / self.scale_.astype(rows.dtype)
        others = rows[:, ~self.of_query_]
        n_bytes = others.nbytes * (1 + int(self.of_query_.sum()))
        MemoryBudget().demand(n_bytes, len(rows), "Products of columns")
        return np.hstack([others, *(others * column[:, None] for column in rows.T[self.of_query_])])

    def made_of(self) -> list[tuple[int, ...]]:
        """Return the columns that each new column is made of."""
        own, others = np.flatnonzero(self.of_query_).tolist(), np.flatnonzero(~self.of_query_).tolist()
        return [(other,) for other in others] + [(other, one) for one in own for other in others]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> AnyArray:
        """Return the names of the columns and, joined by a colon, of their products."""
        names = _check_feature_names_in(self, input_features)
        return np.array([":".join(names[list(parts)]) for parts in self.made_of()], dtype=object)

    def formula_columns(self, columns: Sequence[Column]) -> list[Column]:
        """Return the columns that it makes, for exports and explanations."""
        units = zip(columns, self.mean_.tolist(), self.scale_.tolist(), strict=True)
        scaled = [column.then(Affine(mean, 1.0 / scale)) for column, mean, scale in units]
        return [
            scaled[parts[0]] if len(parts) == 1 else Column(Product(scaled[parts[0]], scaled[parts[1]]))
            for parts in self.made_of()
        ]


def of_queries(X: Matrix, qid: Ints | None) -> Bools:
    """Tell which columns vary, but not inside queries."""
    if qid is None or is_sparse(X):
        return np.zeros(X.shape[1], dtype=np.bool_)
    first = np.unique(qid, return_index=True)[1][qid]
    own = [np.array_equal(column, column[first]) and np.ptp(column) > 0 for column in np.asarray(X).T]
    return np.array(own, dtype=np.bool_)


Scaler: TypeAlias = QueryProducts | QueryScaler | RankScaler | StandardScaler


def scalers_of(scaling: str, X: Matrix) -> list[Scaler]:
    """Return the transformers, not fitted, that the name of a scaling stands for."""
    if scaling == "none":
        return []
    if scaling == "standard":
        return [StandardScaler(with_mean=not is_sparse(X))]
    if scaling == PRODUCTS:
        return [QueryProducts()]
    return [RankScaler()] if scaling == "rank" else [QueryScaler(scaling.removeprefix("query-"))]


def chain(scalers: Sequence[Scaler], ranker: BaseEstimator) -> BaseEstimator | Pipeline:
    """Put fitted scalers before a fitted ranker, as one model."""
    return ranker if not scalers else Pipeline([("scaler", scalers[0]), ("ranker", ranker)])


# Fitted scalers, the scaled rows, and those of the evaluation set.
Scaled = tuple[list[Scaler], Matrix, Matrix | None]


@dataclass
class CodedTable:
    """The rows of a table as curves and trees take them: categories and missing values in a column of their own.

    Attributes
    ----------
    encoder : TableEncoder
    codes : (rows, columns) float64
    scored : (rows, columns) float64 or None
        The rows of an evaluation set.
    """

    encoder: TableEncoder
    codes: Floats
    scored: Floats | None = None

    @property
    def categories(self) -> list[int]:
        """The columns that are categories."""
        return [at for at, step in enumerate(self.encoder.columns_) if step["kind"] == "category"]


class ScaledColumns:
    """The rows of X, and maybe of an evaluation set, scaled in the ways that are asked for.

    A column's mean and spread are those of all rows; labels play no part in them.

    Parameters
    ----------
    X : ndarray or sparse matrix
    qid : (rows,) ids or None
    weight : (rows,) float64 or None
    scored : tuple (X, qid), optional
        The rows of an evaluation set.
    coded : CodedTable, optional
        Where X is an encoded table, its columns as they are.
    """

    def __init__(
        self,
        X: Matrix,
        qid: Ints | None,
        weight: Floats | None,
        scored: tuple[Matrix, Ints | None] | None = None,
        coded: CodedTable | None = None,
    ) -> None:
        self.X, self.qid, self.weight, self.scored, self.coded = X, qid, weight, scored, coded
        self._made: dict[str, Scaled] = {}

    @cached_property
    def of_queries(self) -> Bools:
        """Which columns vary, but not inside queries."""
        return of_queries(self.X, self.qid)

    def get(self, scaling: str) -> Scaled:
        """Return the fitted scalers, the scaled rows, and those of the evaluation set."""
        if scaling == CODES and self.coded is not None:
            return [], self.coded.codes, self.coded.scored
        if scaling in self._made:
            return self._made[scaling]
        scalers, X = scalers_of(scaling, self.X), self.X
        held, held_qid = (None, None) if self.scored is None else self.scored
        if scalers and bytes_of(X) > _SINGLE_BYTES and X.dtype == np.float64:
            self._made.clear()
            X = X.astype(np.float32)
        for scaler in scalers:
            if isinstance(scaler, QueryScaler):
                X = scaler.fit(X, qid=self.qid).transform(X, qid=self.qid)
                held = None if held is None else scaler.transform(held, qid=held_qid)
            else:
                ids = {"qid": self.qid} if isinstance(scaler, QueryProducts) else {}
                X = scaler.fit(X, sample_weight=self.weight, **ids).transform(X)
                held = None if held is None else scaler.transform(held)
        if sum(bytes_of(made[1]) for made in self._made.values()) + bytes_of(X) > _KEPT_BYTES:
            self._made.clear()
        if scalers:
            self._made[scaling] = scalers, X, held
        return scalers, X, held


def bytes_of(X: Matrix) -> int:
    """Return the bytes of a matrix; 0 where it does not say."""
    return int(X.data.nbytes + X.indices.nbytes) if is_sparse(X) else int(getattr(X, "nbytes", 0))
