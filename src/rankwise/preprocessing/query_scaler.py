"""Columns brought to one scale inside each query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arrays import AnyArray, ArrayLike, Floats, Labels, Matrix, MatrixLike, is_sparse
from rankwise.data.containers import readable
from rankwise.data.queries import Queries
from rankwise.data.validation import check_choice, check_qid
from rankwise.exceptions import MissingQueriesError

_BLOCK = 1 << 18  # numbers worked on at a time: they stay in cache


class QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale every column inside every query, by the rows of that query alone.

    The scale of a feature often depends on the query: a frequent word gives all its documents a small score. Scaling
    inside queries makes the rows of different queries comparable. The scaler learns nothing from the training rows:
    it scales a query alike in training and prediction, and needs all rows of each query, with their ids.

    Parameters
    ----------
    method : {"minmax", "standard", "rank"}, default="minmax"
        - "minmax": ``(x - min) / (max - min)``, from 0 to 1; LETOR's "QueryLevelNorm".
        - "standard": ``(x - mean) / deviation``, the deviation without the correction for small samples.
        - "rank": the rank, from 0 (smallest) to 1; tied rows share the mean of their ranks.

        A column that is constant in a query, which it is where the query has one row, becomes 0.
    passthrough : bool, default=False
        Whether to put the unscaled columns before the scaled ones, so that a model has both.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (features,)
        Only where X has string column names.
    fitted_with_qid_ : bool

    Notes
    -----
    **Sparse matrices stay sparse.** Where a column of a query has zeros, the scaled value of 0 is subtracted, so that 0
    stays 0. The result differs from that of the same dense matrix by one constant for each query and column, which a
    linear ranker cannot see; with "minmax" it does not differ where no value is negative.

    NaN is left as it is and takes no part, as in scikit-learn's scalers.

    Under metadata routing, ``qid`` is requested by default and reaches the scaler in pipelines and searches. Without
    routing, scikit-learn cannot pass it on; then `transform` raises an error instead of taking all rows for one query.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.preprocessing import QueryScaler
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [100.0, 7.0], [300.0, 8.0], [200.0, 9.0]])
    >>> QueryScaler().fit_transform(X, qid=["a", "a", "b", "b", "b"]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.5], [0.5, 1.0]]
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    fitted_with_qid_: bool

    def __init__(self, method: str = "minmax", *, passthrough: bool = False) -> None:
        self.method = method
        self.passthrough = passthrough

    def fit(self, X: MatrixLike, y: Labels | None = None, qid: ArrayLike | None = None) -> Self:
        """Remember the columns, and whether there are queries; nothing is learned from the values.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        y : ignored
        qid : array-like of shape (rows,), optional
            The query of each row, in any order. Without it all rows are one query, here and in `transform`.
        """
        check_choice("method", self.method, _SCALES)
        check_qid(qid, self._check(X, reset=True).shape[0])
        self.fitted_with_qid_ = qid is not None
        return self

    def transform(self, X: MatrixLike, qid: ArrayLike | None = None) -> AnyArray | sp.csr_matrix:
        """Scale rows, each by its own query.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        qid : array-like of shape (rows,), optional
            Required if `fit` had it.

        Returns
        -------
        ndarray or CSR matrix of shape (rows, features), with `passthrough` of twice as many columns
            Of float32 where X is, else float64.
        """
        check_is_fitted(self)
        rows = self._check(X, reset=False)
        if qid is None and self.fitted_with_qid_:
            raise MissingQueriesError(
                "QueryScaler was fitted with query ids, and transform was called without them; all rows would be "
                "scaled as one query.",
                "pass qid= to transform; inside a Pipeline first call sklearn.set_config(enable_metadata_routing=True) "
                "and pass qid= to fit, predict and score, or use rankwise.model_selection.predict_scores.",
            )
        queries = check_qid(qid, rows.shape[0])
        if is_sparse(rows):
            scaled = _scale_sparse(rows, queries, self.method)
            return sp.hstack([rows, scaled], format="csr") if self.passthrough else scaled
        n_columns = rows.shape[1]
        out = np.empty((rows.shape[0], 2 * n_columns if self.passthrough else n_columns), dtype=rows.dtype)
        out[:, : out.shape[1] - n_columns] = rows[:, : out.shape[1] - n_columns]
        into, scale = out[:, out.shape[1] - n_columns :], _SCALES[self.method]
        for at, columns in _blocks(queries, n_columns):
            into[at, columns] = scale(rows[at, columns].astype(np.float64, copy=False))
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> AnyArray:
        """Return the names of the columns; with `passthrough` those of the scaled ones end in the method.

        Parameters
        ----------
        input_features : array-like of str, optional
        """
        names = np.asarray(super().get_feature_names_out(input_features))
        if not self.passthrough:
            return names
        return np.concatenate([names, np.array([f"{name} ({self.method})" for name in names], dtype=object)])

    def fit_transform(
        self, X: MatrixLike, y: Labels | None = None, qid: ArrayLike | None = None
    ) -> AnyArray | sp.csr_matrix:
        """Fit and scale the same rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        y : ignored
        qid : array-like of shape (rows,), optional
        """
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    def _check(self, X: MatrixLike, *, reset: bool) -> Matrix:
        rows: Matrix = validate_data(
            self,
            readable("X", X),
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
            reset=reset,
        )
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _blocks(queries: Queries, n_columns: int) -> Iterator[tuple[npt.NDArray[np.int64], slice]]:
    """Yield the row numbers of queries of equal size, one query per line, and the columns to take of them."""
    by_size = np.argsort(queries.sizes, kind="stable")
    sizes, first = np.unique(queries.sizes[by_size], return_index=True)
    for size, chosen in zip(sizes.tolist(), np.split(by_size, first[1:]), strict=True):
        width = max(1, min(n_columns, _BLOCK // size))
        height = max(1, _BLOCK // (size * width))
        for start in range(0, chosen.size, height):
            rows = queries.offsets[chosen[start : start + height], None] + np.arange(size)
            for column in range(0, n_columns, width):
                yield queries.order[rows], slice(column, column + width)


# Blocks have the axes (queries, rows, columns). np.fmin and np.fmax pass over NaN.


def _minmax(block: Floats) -> Floats:
    low, high = _bounds(block)
    return _ratio(block - low, high - low)


def _standard(block: Floats) -> Floats:
    low, high = _bounds(block)
    present = ~np.isnan(block)
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    # Offsets from the smallest, relative to the range: neither the mean nor a square can overflow or cancel.
    offset = _ratio(block - low, high - low)
    mean = np.where(present, offset, 0.0).sum(axis=1, keepdims=True) / count
    offset -= mean
    deviation = np.sqrt(np.where(present, offset**2, 0.0).sum(axis=1, keepdims=True) / count)
    return np.where(high - low > 0, _ratio(offset, deviation), block - block)


def _rank(block: Floats) -> Floats:
    low, high = _bounds(block)
    position = rankdata(block, axis=1, nan_policy="omit") - 1.0
    last = np.maximum((~np.isnan(block)).sum(axis=1, keepdims=True) - 1, 1)
    return np.where(high > low, position / last, block - block)


_SCALES = {"minmax": _minmax, "standard": _standard, "rank": _rank}


def _bounds(block: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest number of each column of a query."""
    return np.fmin.reduce(block, axis=1, keepdims=True), np.fmax.reduce(block, axis=1, keepdims=True)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Divide; a ratio with denominator 0 is 0."""
    return part / np.where(whole > 0, whole, 1.0)


def _scale_sparse(X: sp.csr_matrix, queries: Queries, method: str) -> sp.csr_matrix:
    """Scale the stored entries; zero stays zero."""
    X = X.copy()
    X.sum_duplicates()
    if X.nnz == 0:
        return X
    # Rows brought together by query, then read by columns: the entries of a column of a query stand together, unsorted.
    places = sp.csr_matrix((np.arange(X.nnz), X.indices, X.indptr), shape=X.shape)
    by_column = places[queries.order].tocsc()
    order, query = by_column.data, queries.codes[queries.order][by_column.indices]
    column = np.repeat(np.arange(X.shape[1]), np.diff(by_column.indptr))
    begins = np.ones(order.size, dtype=np.bool_)
    begins[1:] = (column[1:] != column[:-1]) | (query[1:] != query[:-1])
    start = np.flatnonzero(begins)
    cell = np.cumsum(begins) - 1
    values = X.data[order].astype(np.float64)
    if method == "rank":
        by_value = np.lexsort((values, cell))
        order, values = order[by_value], values[by_value]
    X.data[order] = _Stored(values, start, cell, queries.sizes[query[start]]).scale(method)
    return X


class _Stored:
    """The stored entries of a sparse matrix, by column of a query; for ranks, in increasing order.

    Parameters
    ----------
    values : (entries,) float64
    start : (cells,) int
        Where each column of a query starts.
    cell : (entries,) int
        Which one an entry belongs to.
    size : (cells,) int
        The rows of its query.
    """

    def __init__(
        self,
        values: Floats,
        start: npt.NDArray[np.int64],
        cell: npt.NDArray[np.int64],
        size: npt.NDArray[np.int64],
    ) -> None:
        self.values, self.start, self.cell = values, start, cell
        self.n_present = size - self._sum(np.isnan(values))
        self.n_zero = size - self._sum(values != 0)  # NaN is not 0
        self.n_unstored = size - self._sum(np.ones(values.size))

    def scale(self, method: str) -> Floats:
        """Return the scaled entries, in the same order."""
        return self._ranked() if method == "rank" else self._divided(method)

    def _divided(self, method: str) -> Floats:
        low, high = (reduce.reduceat(self.values, self.start) for reduce in (np.fmin, np.fmax))
        has_zero = self.n_zero > 0
        low, high = np.where(has_zero, np.fmin(low, 0), low), np.where(has_zero, np.fmax(high, 0), high)
        spread, origin = high - low, np.where(has_zero, 0.0, low)
        scaled = _ratio(self.values - origin[self.cell], spread[self.cell])
        if method == "standard":
            count = np.maximum(self.n_present, 1)
            mean = self._sum(np.nan_to_num(scaled)) / count  # unstored entries are 0
            square = self._sum(np.nan_to_num((scaled - mean[self.cell]) ** 2)) + self.n_unstored * mean**2
            origin = np.where(has_zero, 0.0, mean)
            scaled = _ratio(scaled - origin[self.cell], np.sqrt(square / count)[self.cell])
        return np.where(spread[self.cell] > 0, scaled, self.values - self.values)

    def _ranked(self) -> Floats:
        values, cell = self.values, self.cell
        differs = (values[1:] != values[:-1]) | (cell[1:] != cell[:-1])
        tied = np.concatenate(
            ([0], np.cumsum(differs))
        )  # runs of equal entries of a cell share their mean position
        counts = np.bincount(tied)
        middle = (np.cumsum(counts) - (counts + 1) / 2.0)[tied]
        position = middle - self.start[cell] + np.where(values > 0, self.n_unstored[cell], 0)
        n_negative = self._sum(values < 0)
        zero = np.where(self.n_zero > 0, n_negative + (self.n_zero - 1) / 2.0, 0.0)
        position[values == 0] = zero[cell[values == 0]]
        low, high = (reduce.reduceat(values, self.start) for reduce in (np.fmin, np.fmax))
        constant = (low == high) & ((low == 0) | (self.n_zero == 0))
        ranks = (position - zero[cell]) / np.maximum(self.n_present - 1, 1)[cell]
        return np.where(np.isnan(values), np.nan, np.where(constant[cell], 0.0, ranks))

    def _sum(self, entries: AnyArray) -> AnyArray:
        """Add up the values of each column of a query."""
        return np.asarray(np.add.reduceat(entries.astype(np.float64), self.start))
