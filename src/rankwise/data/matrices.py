"""Matrices and labels on their way into an estimator: by scikit-learn's checks, and those that it does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse.linalg
from sklearn.utils.validation import column_or_1d, validate_data

from rankwise.arrays import AnyArray, ArrayLike, Floats, Importance, Labels, Matrix, MatrixLike, is_sparse
from rankwise.data.containers import (
    check_magnitude,
    check_not_tiny,
    check_total,
    is_moderate,
    is_plain,
    unmasked,
)
from rankwise.data.queries import Queries
from rankwise.data.store.mapped import MappedMatrix
from rankwise.data.validation import check_importance, check_qid, check_weights, check_weights_of_queries
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.memory import fits

__all__ = [
    "RowValues",
    "Validated",
    "check_array",
    "check_columns",
    "check_labelled",
    "check_labelled_array",
    "check_labels",
    "check_precomputed",
    "check_row_values",
    "check_rows",
    "check_weighted",
    "largest",
    "one_output",
    "pays_as_array",
    "through_scikit_learn",
]

_SYMMETRY = 1e-8  # of the largest entry of a kernel
_TILE = 512
# Above this share of filled cells an array takes less memory than a sparse matrix, and is faster.
_DENSE = 0.5

# Larger weights leave less room for the squares of columns.
_MUCH_WEIGHT = 1e8
# What scikit-learn is asked of labels, and of values that may be missing.
_LABELS: dict[str, object] = {"multi_output": True, "y_numeric": True}
_MISSING = "allow-nan"


class RowValues(NamedTuple):
    """What stands beside the labels of rows: their queries, their weights, and how important each query is."""

    queries: Queries
    row_weight: Floats | None
    importance: Floats | None


class Validated(Protocol):
    """An estimator that remembers the columns it was fitted with."""

    n_features_in_: int


def check_rows(
    estimator: Validated,
    X: MatrixLike,
    *,
    reset: bool,
    look_at_values: bool = True,
    may_vanish: bool = False,
) -> Matrix:
    """Return a checked matrix.

    Parameters
    ----------
    reset : bool
        Whether its columns are those of the model from now on.
    look_at_values : bool
        Whether to look for numbers that are not finite.
    may_vanish : bool
        Whether the squares of the columns of training data may all be too small for numbers.
    """
    given: Any = unmasked("X", X)
    if isinstance(given, scipy.sparse.linalg.LinearOperator):
        return check_columns(estimator, given, reset=reset)
    is_known, is_finite = _looked_at(given) if look_at_values else (False, True)
    # Where there are no rows, there are no scores.
    checked: Matrix = through_scikit_learn(
        estimator, given, reset=reset, is_finite=is_finite, ensure_min_samples=int(reset)
    )
    if reset:
        _check_values(checked, is_known, may_vanish=may_vanish)
    return checked


def check_labelled(
    estimator: Validated,
    X: MatrixLike,
    y: Labels,
    *,
    reset: bool,
    min_rows: int = 2,
    may_vanish: bool = False,
) -> tuple[Matrix, Floats]:
    """Return a checked matrix and the labels of its rows; see `check_rows`."""
    given: Any = unmasked("X", X)
    target: Any = unmasked("y", y)
    if isinstance(given, scipy.sparse.linalg.LinearOperator):
        checked = check_columns(estimator, given, reset=reset)
        return checked, check_labels(target, given.shape[0])
    if reset and is_plain(given, target, min_rows):
        estimator.n_features_in_ = given.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        _check_values(given, is_known=True, may_vanish=may_vanish)
        return given, _check_label_size(target.astype(np.float64, copy=False))
    is_known, is_finite = _looked_at(given)
    options = {**_LABELS, "y": target, "ensure_min_samples": min_rows, "is_finite": is_finite}
    checked, labels = through_scikit_learn(estimator, given, reset=reset, **options)
    _check_values(checked, is_known, may_vanish=may_vanish or not reset)
    return checked, _check_label_size(labels)


def check_array(estimator: Validated, X: MatrixLike, *, reset: bool) -> AnyArray:
    """Return a checked array, in which NaN counts as missing; a sparse matrix becomes one."""
    given: Any = unmasked("X", X)
    _require_array(given)
    checked = through_scikit_learn(
        estimator, given, reset=reset, ensure_all_finite=_MISSING, ensure_min_samples=int(reset)
    )
    return _as_array(checked)


def check_labelled_array(
    estimator: Validated, X: MatrixLike, y: Labels, *, reset: bool
) -> tuple[AnyArray, Floats]:
    """Return a checked array and one label for each of its rows; see `check_array`."""
    given: Any = unmasked("X", X)
    _require_array(given)
    options = {**_LABELS, "y": unmasked("y", y), "ensure_min_samples": 2, "ensure_all_finite": _MISSING}
    checked, labels = through_scikit_learn(estimator, given, reset=reset, **options)
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise InvalidInputError(
            f"y has {labels.shape[1]} columns, and a curve has one value per knot.",
            "fit one model per output.",
        )
    return _as_array(checked), _check_label_size(column_or_1d(labels, dtype=np.float64, warn=True))


def check_row_values(
    y: Floats,
    qid: ArrayLike | None,
    sample_weight: ArrayLike | None,
    query_importance: Importance | None,
    *,
    by_query: bool,
) -> RowValues:
    """Return checked ids and weights of the rows of y; with `by_query` pairs are divided by what their query weighs."""
    queries = check_qid(qid, y.shape[0])
    row_weight = check_weights(sample_weight, y.shape[0])
    if row_weight is not None:
        total = float(row_weight.sum()) * largest(y)
        check_total("y times sample_weight", total, "use labels and weights around 1.")
    if by_query:
        check_weights_of_queries(row_weight, queries)
    return RowValues(queries, row_weight, check_importance(query_importance, queries))


def check_weighted(X: Matrix, row_weight: Floats | None) -> None:
    """Raise where products of a matrix are too large once they are multiplied by large weights."""
    if row_weight is not None and (isinstance(X, np.ndarray) or is_sparse(X)):
        most = float(row_weight.max())
        if most > _MUCH_WEIGHT:
            check_magnitude(X, float(np.sqrt(_MUCH_WEIGHT / most)))


def through_scikit_learn(
    estimator: object, X: MatrixLike, *, reset: bool, is_finite: bool = False, **options: object
) -> Any:
    """Pass a matrix, and labels where there are some, through scikit-learn's validation."""
    if is_finite:
        options["ensure_all_finite"] = False
    options |= {"accept_sparse": "csr", "accept_large_sparse": True, "dtype": (np.float64, np.float32)}
    try:
        with np.errstate(invalid="ignore"):  # scikit-learn adds up numbers, which may be very large
            checked = validate_data(estimator, X, reset=reset, **options)
        return (checked[0], np.asarray(checked[1], dtype=np.float64)) if "y" in options else checked
    except ValueError as error:
        if "could not convert" in str(error) and "y" in options:
            _check_numbers(options["y"])
        fitted = () if reset else getattr(estimator, "feature_names_in_", ())
        raise _in_our_words(error, X, fitted) from error


def _check_numbers(y: object) -> None:
    """Raise unless labels are numbers."""
    try:
        np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"y must be numbers ({error}).",
            "encode grades as numbers in their order, for example with {'bad': 0, 'good': 1}[grade].",
        ) from error


def pays_as_array(X: object) -> bool:
    """Tell whether an array takes less memory than a sparse matrix, and is faster; models are the same."""
    if not is_sparse(X) or isinstance(X, MappedMatrix):
        return not is_sparse(X)
    return bool(X.nnz >= _DENSE * X.shape[0] * X.shape[1])


def largest(y: Floats) -> float:
    """Return the size of the largest label."""
    return max(float(y.max(initial=0.0)), -float(y.min(initial=0.0)))


def _looked_at(X: object) -> tuple[bool, bool]:
    """Return whether the values of X are known to be moderate, and to be finite.

    What is on disk is known since it was written; looking again is a pass over the disk.
    """
    if isinstance(X, MappedMatrix) and X.is_on_disk:
        return True, bool(X.is_finite)
    moderate = is_moderate(X)
    return moderate, moderate


def _require_array(given: object) -> None:
    """Raise where the values of X cannot be had as an array."""
    if is_sparse(given) and not fits(8 * given.shape[0] * given.shape[1]):
        raise InvalidInputError(
            f"X, a sparse matrix of {given.shape[0]} × {given.shape[1]}, does not fit into memory as an array.",
            "use RankSVM or RankRLS; curves are for columns that most rows have.",
        )
    if isinstance(given, scipy.sparse.linalg.LinearOperator):
        raise InvalidInputError(
            "Curves look at the values of X, and a LinearOperator shows none.",
            "pass an array or a data frame.",
        )


def _as_array(X: Matrix) -> AnyArray:
    return X.toarray() if is_sparse(X) else np.asarray(X)


def _check_values(X: Matrix, is_known: bool, *, may_vanish: bool) -> None:
    """Raise where numbers are too large to be multiplied, or too small."""
    if not is_known:
        check_magnitude(X)
    if not may_vanish:
        check_not_tiny(X)


def check_columns(estimator: Validated, X: Matrix, *, reset: bool) -> Matrix:
    """Check the number of columns alone, of rows that scikit-learn cannot look into."""
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        raise InvalidInputError(
            f"X has {X.shape[1]} columns, but the model was fitted with {estimator.n_features_in_}.",
            "score rows that have the columns of the training data.",
        )
    return X


def check_labels(y: Labels, n_rows: int) -> Floats:
    """Check labels that scikit-learn does not see, because it cannot look into their rows."""
    _check_numbers(y)
    labels = np.asarray(y, dtype=np.float64)
    if labels.ndim not in {1, 2} or labels.shape[0] != n_rows or not np.isfinite(labels).all():
        raise InvalidInputError(
            f"y must hold one finite number per row ({n_rows}), got shape {labels.shape}.",
            "drop rows whose label is missing.",
        )
    return _check_label_size(labels)


def one_output(y: Floats) -> Floats:
    """Return labels as a vector; raise where they have several columns."""
    if y.size > y.shape[0]:
        raise InvalidInputError(
            f"y has {y.shape[1]} columns, and one model is chosen for one.",
            "fit an AutoRanker for each column of labels.",
        )
    return y.reshape(-1)


def _check_label_size(y: Floats) -> Floats:
    check_total(
        "y",
        largest(y),
        "divide y by a constant; if the number stands for a missing label, drop the rows that have it.",
    )
    return y


def check_precomputed(K: Matrix) -> None:
    """Raise unless a precomputed training kernel is square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix.",
            "fit takes the kernel between training rows; predict takes that between new and training rows.",
        )
    if not isinstance(K, np.ndarray):
        return  # an operator cannot be looked at
    largest, size = 0.0, float(np.finfo(np.float64).tiny)
    # Tile by tile: a kernel on disk is read in pieces that fit in cache, and never copied whole.
    for first in range(0, K.shape[0], _TILE):
        for second in range(0, first + 1, _TILE):
            rows, columns = slice(first, first + _TILE), slice(second, second + _TILE)
            tile, mirrored = np.asarray(K[rows, columns]), np.asarray(K[columns, rows]).T
            largest = max(largest, float(np.abs(tile - mirrored).max(initial=0.0)))
            size = max(size, float(np.abs(tile).max(initial=0.0)))
    if largest > _SYMMETRY * size:
        raise InvalidInputError(
            f"The precomputed kernel is not symmetric: K and its transpose differ by up to {largest:.3g}.",
            "pass (K + K.T) / 2 if that is what you mean.",
        )


def _in_our_words(error: ValueError, X: object, fitted: Sequence[str] = ()) -> InvalidInputError:
    """Return an error of scikit-learn's validation as one that ends in a remedy.

    Parameters
    ----------
    fitted : sequence of str
        The names of the columns that the model was fitted with, if X is to have the same.
    """
    text = str(error).strip()
    if "NaN" in text:
        text = text.partition("\n")[0]  # scikit-learn goes on to recommend estimators that do not rank
    if "at least one array or dtype is required" in text:
        text = "X has no columns."
    text = text if text.endswith((".", "!", "?")) else text + "."
    given = list(getattr(X, "columns", ()))
    if not len(fitted) or given == list(fitted) or not all(isinstance(name, str) for name in given):
        return InvalidInputError(text, _remedy(text))
    moved = [one for one, other in zip(given, fitted, strict=False) if one != other]
    what = f" Moved: {_some(moved)}." if sorted(given) == sorted(fitted) else ""
    return InvalidInputError(
        f"{text}{what}", "pass the columns of the fit in their order: X[list(model.feature_names_in_)]."
    )


def _remedy(message: str) -> str:
    if "NaN" in message or "infinity" in message:
        return (
            "use AdditiveRanker, or AutoRanker with a data frame, which take missing values in X, or fill them in, for "
            "example with sklearn.impute.SimpleImputer in a Pipeline; rows whose label is missing must be dropped."
        )
    if "sample(s)" in message or "samples" in message:
        return "a ranker needs at least two rows with different labels, and one label per row."
    if "feature(s)" in message or "features" in message or "columns" in message:
        return "pass a matrix with one row per item and the columns that the model was fitted with."
    if "could not convert" in message or "dtype" in message:
        return "encode text and categories as numbers first, for example with sklearn.preprocessing.OneHotEncoder."
    return "pass a two-dimensional numeric X with one row per item, and one finite label per row in y."


def _some(names: list[str], shown: int = 5) -> str:
    """Return ``'a', 'b'``, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"{', '.join(map(repr, names[:shown]))}{more}"
