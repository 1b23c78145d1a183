"""Validation of the caller's input: everything is checked here, and nothing is checked again below.

Matrices and labels go through scikit-learn's `validate_data`, parameters of estimators through its constraints. The
functions here check the input that scikit-learn does not know: query ids, pairs, weights of rows, queries and pairs,
and evaluation sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.validation import validate_data

from rankwise.arrays import (
    AnyArray,
    ArrayLike,
    DType,
    Floats,
    Importance,
    Ints,
    Labels,
    Matrix,
    MatrixLike,
    RandomSource,
    is_sparse,
)
from rankwise.data.containers import as_array, check_magnitude, is_moderate, is_null, is_plain, readable
from rankwise.data.mapped import MappedMatrix
from rankwise.data.queries import Queries, encode_queries, one_query
from rankwise.exceptions import InvalidInputError, MissingQueriesError, NoPairsError
from rankwise.runtime.memory import fits

_SEEDS = 2**31 - 1  # scikit-learn's own estimators, which get the seeds, take no larger ones
_SYMMETRY = 1e-8  # of the largest entry of a kernel
_ROWS_AT_ONCE = 512


# --- parameters ---


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return `value` if it is one of the choices; else raise an error that lists them."""
    valid = list(choices)
    if isinstance(value, str) and value in valid:
        return value
    close = get_close_matches(str(value), valid, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidInputError(
        f"{name}={value!r} is not an option.", f"{hint}{name} is one of {', '.join(map(repr, valid))}."
    )


def check_number(name: str, value: object, *, minimum: float = -np.inf, remedy: str) -> None:
    """Raise unless `value` is a finite real number, of at least `minimum` where there is one."""
    if not isinstance(value, Real) or not np.isfinite(float(value)) or float(value) < minimum:
        least = "" if minimum == -np.inf else f" of at least {minimum}"
        raise InvalidInputError(f"{name}={value!r} is not a finite number{least}.", f"{remedy}.")


def check_count(name: str, value: object, *, optional: bool = True) -> None:
    """Raise unless `value` is a positive integer, or None where that is the default."""
    is_positive = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
    if is_positive or (value is None and optional):
        return
    remedy = "use None for the default" if optional else "use a positive integer"
    raise InvalidInputError(f"{name}={value!r} is not a positive integer.", f"{remedy}.")


def check_level(level: float) -> None:
    """Raise unless this is a level of confidence."""
    if not 0 < level < 1:
        raise InvalidInputError(f"level={level!r} is not between 0 and 1.", "use for example 0.95.")


def check_dtype(dtype: npt.DTypeLike) -> DType:
    """Return the type that X shall have."""
    return np.dtype(check_choice("dtype", np.dtype(dtype).name, ("float64", "float32")))


def list_names(name: str, given: object) -> list[Any]:
    """Return names, or numbers in their place, as a list; one text is not a list of its letters."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise InvalidInputError(f"{name}={given!r} is not a list of names.", f"pass [{given!r}].")
    return list(given)


def check_names(name: str, given: object) -> list[str]:
    """Return names as a list of text."""
    return [str(one) for one in list_names(name, given)]


def read_seed(random_state: RandomSource) -> int:
    """Return a seed: an integer is one, generators draw it, and None asks the system for it."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_SEEDS))
    if isinstance(random_state, np.random.Generator) or random_state is None:
        return int(np.random.default_rng(random_state).integers(_SEEDS))
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InvalidInputError(
            f"random_state={random_state!r} is not a seed.",
            "use an integer such as 0, with which the same data give the same result; "
            "None, a RandomState and a Generator give another one in every call.",
        )
    return int(random_state)


def check_alphas(alphas: ArrayLike, *, positive: bool = False) -> Floats:
    """Return a grid of alphas: finite, not negative, in increasing order, without duplicates."""
    example = "pass for example alphas=2.0 ** np.arange(-10, 11)."
    grid = np.unique(_as_numbers("alphas", alphas, example))
    if grid.size == 0:
        raise InvalidInputError("alphas is empty.", example)
    if not np.isfinite(grid).all() or grid[0] < 0:
        raise InvalidInputError(
            "alphas must be finite and not negative.", "use powers of two around 1; 0 means no penalty."
        )
    if positive and grid[0] == 0:
        raise InvalidInputError(
            "alphas contains 0.", "use positive values, such as 10.0 ** -np.arange(1, 7)."
        )
    return grid


def rows_of_eval_set(eval_set: object, *, with_qid: bool) -> tuple[Any, Any, Any]:
    """Return the parts of an evaluation set of labelled rows, which has query ids where the fit has them."""
    X, y, qid = _parts(eval_set, "y", "qid")
    if qid is None and with_qid:
        raise MissingQueriesError(
            "fit was called with query ids, but eval_set has none; its score would be a global one.",
            "pass eval_set=(X_val, y_val, qid_val).",
        )
    return X, y, qid


def pairs_of_eval_set(eval_set: object) -> tuple[Any, Any, Any]:
    """Return the parts of an evaluation set of listed pairs."""
    return _parts(eval_set, "pairs", "weight")


def _parts(eval_set: Any, second: str, third: str) -> tuple[Any, Any, Any]:
    """Return the parts of an evaluation set, the last one None where it was left out."""
    is_one = isinstance(eval_set, (tuple, list)) and len(eval_set) in {2, 3}
    # XGBoost and LightGBM take a list of tuples.
    if not is_one or (isinstance(eval_set, list) and isinstance(eval_set[0], tuple)):
        raise InvalidInputError(
            f"eval_set must be a tuple (X, {second}) or (X, {second}, {third}).",
            "pass one evaluation set, not a list of them.",
        )
    X, beside, last = (*eval_set, None)[:3]
    return X, beside, last


# --- rows and labels ---


class Validated(Protocol):
    """An estimator that remembers the columns it was fitted with."""

    n_features_in_: int


def check_rows(
    estimator: Validated, X: MatrixLike, *, reset: bool, look_at_values: bool = True, missing: bool = False
) -> Matrix:
    """Return a checked matrix.

    Parameters
    ----------
    reset : bool
        Whether its columns are those of the model from now on.
    look_at_values : bool
        Whether to look for numbers that are not finite.
    missing : bool
        Whether NaN counts as missing; a sparse matrix then becomes an array.
    """
    given: Any = readable("X", X)
    if isinstance(given, LinearOperator) and not missing:
        return check_columns(estimator, given, reset=reset)
    # Where there are no rows, there are no scores.
    least = {"ensure_min_samples": int(reset)}
    checked: Matrix = _looked_at(
        estimator, given, reset=reset, missing=missing, look_at_values=look_at_values, **least
    )
    return checked


def check_labelled(
    estimator: Validated, X: MatrixLike, y: Labels, *, reset: bool, min_rows: int = 2, missing: bool = False
) -> tuple[Matrix, Floats]:
    """Return a checked matrix and the labels of its rows; see `check_rows`."""
    given: Any = readable("X", X)
    labels: Any = _numeric(y)
    if isinstance(given, LinearOperator) and not missing:
        return check_columns(estimator, given, reset=reset), check_labels(labels, given.shape[0])
    if reset and not missing and is_plain(given, labels, min_rows):
        estimator.n_features_in_ = given.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        return given, labels.astype(np.float64, copy=False)
    options = {"y": labels, "multi_output": True, "y_numeric": True, "ensure_min_samples": min_rows}
    checked, target = _looked_at(estimator, given, reset=reset, missing=missing, **options)
    return checked, np.asarray(target, dtype=np.float64)


def _looked_at(
    estimator: Validated, X: Any, *, reset: bool, missing: bool, look_at_values: bool = True, **options: Any
) -> Any:
    """Validate a matrix, and labels where there are some; its values too, unless they are known to be moderate."""
    # Stores record this when they are written; a new check would be a pass over the disk.
    is_stored = isinstance(X, MappedMatrix) and X.is_on_disk
    is_known = is_stored or (look_at_values and is_moderate(X))
    is_finite = not look_at_values or (bool(X.is_finite) if is_stored else is_known)
    found = validated(estimator, X, reset=reset, is_finite=is_finite, missing=missing, **options)
    if (reset or "y" in options) and not (is_known or missing):
        check_magnitude(found[0] if isinstance(found, tuple) else found)
    return found


def validated(
    estimator: object,
    X: MatrixLike,
    *,
    reset: bool,
    is_finite: bool = False,
    missing: bool = False,
    **options: object,
) -> Any:
    """Pass a matrix, and labels where there are some, through scikit-learn's validation; add a hint to its errors.

    With `missing`, NaN is allowed, and a sparse matrix becomes an array.
    """
    if missing:
        X = _as_array(X)
    if hasattr(X, "columns") and getattr(X, "shape", ())[1:] == (0,):  # scikit-learn fails on such frames
        raise InvalidInputError("X has no columns.", "pass the features as its columns.")
    options["ensure_all_finite"] = "allow-nan" if missing else not is_finite
    options |= {"accept_sparse": "csr", "accept_large_sparse": True, "dtype": (np.float64, np.float32)}
    try:
        return validate_data(estimator, X, reset=reset, **options)
    except ValueError as error:
        text = str(error).strip()
        if "NaN" in text:  # scikit-learn goes on to recommend estimators that do not rank
            text = text.partition("\n")[0]
        text = text if text.endswith((".", "!", "?")) else text + "."
        hint = next(hint for word, hint in _HINTS.items() if word in text)
        raise InvalidInputError(text, hint) from error


_HINTS = {
    "2D": "pass a two-dimensional numeric X with one row per item.",
    "NaN": "use AdditiveRanker, or AutoRanker with a data frame, which take missing values in X, or fill them in, for "
    "example with sklearn.impute.SimpleImputer in a Pipeline; rows whose label is missing must be dropped.",
    "infinity": "replace infinite values, or drop those rows.",
    "eature names": "pass the columns of the fit in their order: X[list(model.feature_names_in_)].",
    "sample": "a ranker needs at least two rows with different labels, and one label per row.",
    "feature": "pass a matrix with one row per item and the columns that the model was fitted with.",
    "could not convert": "encode text and categories as numbers first, for example with "
    "sklearn.preprocessing.OneHotEncoder, or pass the data frame to AutoRanker or AdditiveRankerCV.",
    "": "pass a two-dimensional numeric X with one row per item, and one finite label per row in y.",
}


def check_columns(estimator: Validated, X: Matrix, *, reset: bool) -> Matrix:
    """Check only the number of columns, for rows that scikit-learn cannot read."""
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        raise InvalidInputError(
            f"X has {X.shape[1]} columns, but the model was fitted with {estimator.n_features_in_}.",
            "score rows that have the columns of the training data.",
        )
    return X


def check_labels(y: Labels, n_rows: int) -> Floats:
    """Check the labels of rows that scikit-learn cannot read."""
    labels = np.asarray(_numeric(y), dtype=np.float64)
    if labels.ndim not in {1, 2} or labels.shape[0] != n_rows or not np.isfinite(labels).all():
        raise InvalidInputError(
            f"y must hold one finite number per row ({n_rows}), got shape {labels.shape}.",
            "drop rows whose label is missing.",
        )
    return labels


def check_precomputed(K: Matrix) -> None:
    """Raise unless a precomputed training kernel is square and symmetric."""
    if K.shape[0] != K.shape[1]:
        raise InvalidInputError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} matrix.",
            "fit takes the kernel between training rows; predict takes that between new and training rows.",
        )
    if not isinstance(K, np.ndarray):
        return  # an operator cannot be looked at
    size = max(float(K.max(initial=0.0)), -float(K.min(initial=0.0)))
    # Some rows at a time: a kernel on disk is never copied whole.
    parts = [slice(first, first + _ROWS_AT_ONCE) for first in range(0, K.shape[0], _ROWS_AT_ONCE)]
    largest = max(float(np.abs(K[rows] - K[:, rows].T).max(initial=0.0)) for rows in parts)
    if largest > _SYMMETRY * size:
        raise InvalidInputError(
            f"The precomputed kernel is not symmetric: K and its transpose differ by up to {largest:.3g}.",
            "pass (K + K.T) / 2 if the difference is rounding.",
        )


def _numeric(y: Labels) -> AnyArray:
    """Return labels as an array, text and objects as numbers; scikit-learn's error would not name y."""
    labels = as_array("y", y)
    hint = "encode grades as numbers in their order, for example with {'bad': 0, 'good': 1}[grade]."
    return labels if labels.dtype.kind in "fiuc" else _as_numbers("y", labels, hint)


def _as_array(X: Any) -> Any:
    """Return a sparse matrix as an array, other rows as they are; raise where that cannot be."""
    if isinstance(X, LinearOperator):
        raise InvalidInputError(
            "Curves need the values of X, which a LinearOperator does not have.",
            "pass an array or a data frame.",
        )
    if not is_sparse(X):
        return X
    if not fits(8 * X.shape[0] * X.shape[1]):
        raise InvalidInputError(
            f"X, a sparse matrix of {X.shape[0]} × {X.shape[1]}, does not fit into memory as an array.",
            "use RankSVM or RankRLS; curves suit columns with a value in most rows.",
        )
    return X.toarray()


# --- one value per row ---


def check_numbers(name: str, values: object, n_rows: int | None = None, unit: str = "row") -> Floats:
    """Return one finite number per row as float64; arrays, lists, and Series of pandas or polars will do."""
    numbers = _as_numbers(name, values, f"pass one number per {unit} as {name}, without missing values.")
    if numbers.ndim != 1:
        raise InvalidInputError(
            f"{name} must have one dimension, got an array of shape {numbers.shape}.",
            f"pass one number per {unit}; take a single column of a matrix with values[:, 0].",
        )
    if n_rows is not None and numbers.shape[0] != n_rows:
        raise InvalidInputError(
            f"{name} has {numbers.shape[0]} entries where {n_rows} are expected.",
            f"pass one number per {unit}, in their order.",
        )
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise InvalidInputError(
            f"{name} is NaN or infinite in {int(bad.sum())} of {numbers.shape[0]} entries, first in {unit} "
            f"{int(np.argmax(bad))}.",
            "drop those entries or replace the values.",
        )
    return np.ascontiguousarray(numbers)


def check_qid(
    qid: npt.ArrayLike | None, n_rows: int, *, name: str = "qid", what: str = "query", beside: str = "X"
) -> Queries:
    """Encode query ids; ``None`` means that all rows form one query, and encoded ids are taken as they are.

    Parameters
    ----------
    name, what, beside : str
        For errors: the argument, the meaning of its ids, and the argument that has as many rows.
    """
    if qid is None:
        return one_query(n_rows)
    if isinstance(qid, Queries) and qid.n_rows == n_rows:
        return qid
    given = readable(name, qid)
    if not hasattr(given, "__iter__"):
        raise InvalidInputError(f"{name}={qid!r} is a single value.", f"pass one {what} id per row.")
    ids = _as_column(given)
    if ids.ndim != 1:
        raise InvalidInputError(
            f"{name} must have one dimension, got an array of shape {ids.shape}.",
            f"pass one {what} id per row, for example df['query'].to_numpy().",
        )
    if ids.shape[0] != n_rows:
        raise InvalidInputError(
            f"{name} has {ids.shape[0]} entries, but {beside} has {n_rows} rows.",
            f"{name} gives the {what} of each row (not the sizes of the groups), in the order of the rows.",
        )
    missing = None if ids.dtype.kind in "iub" else _missing(ids)
    if missing is not None and missing.any():
        raise InvalidInputError(
            f"{name} is missing (NaN or None) in {int(missing.sum())} of {n_rows} rows, first in row "
            f"{int(np.argmax(missing))}.",
            f"give those rows a {what} id of their own, or drop them.",
        )
    try:
        return encode_queries(ids)
    except TypeError as error:
        raise InvalidInputError(
            f"{name} holds entries that cannot be compared or hashed ({error}).",
            f"use integers, strings or tuples as {what} ids.",
        ) from error


def check_weights(
    sample_weight: npt.ArrayLike | None, n_rows: int, *, may_all_be_zero: bool = False
) -> Floats | None:
    """Return weights of rows as float64, or None where every row weighs 1."""
    weights = _amounts("sample_weight", sample_weight, n_rows, "row", "use 0 to leave a row out.")
    if weights is not None and not may_all_be_zero and not weights.any():
        raise InvalidInputError(
            "sample_weight is zero everywhere.", "give at least two rows a positive weight."
        )
    return weights


def check_importance(query_importance: Importance | None, queries: Queries) -> Floats | None:
    """Return one non-negative factor per query, or None where all are equally important.

    Accepts a mapping from query id to factor (missing ids have factor 1) or one value per row, constant
    inside each query.
    """
    if query_importance is None:
        return None
    if isinstance(query_importance, Mapping):
        given = _importance_by_id(query_importance, queries)
        values = _amounts("query_importance", given, len(queries), "query", "use 0 to leave a query out.")
    else:
        rows = _amounts("query_importance", query_importance, queries.n_rows, "row", "use 0 to leave it out.")
        values = np.zeros(len(queries))
        values[queries.codes] = rows
        if not np.array_equal(values[queries.codes], rows):  # type: ignore[arg-type]
            raise InvalidInputError(
                "query_importance changes inside a query.", "give all rows of a query the same importance."
            )
    if values is not None and not values.any():
        raise InvalidInputError(
            "query_importance is zero for every query.", "give at least one query a positive importance."
        )
    return values


def _importance_by_id(given: Mapping[Any, Any], queries: Queries) -> list[object]:
    keys = queries.ids.tolist()
    if queries.ids.dtype.kind in "mM":  # of which a list may hold plain integers
        dates = np.array(list(given), dtype=queries.ids.dtype).tolist()
        given = dict(zip(dates, given.values(), strict=True))
    unknown = set(given) - set(keys)
    if unknown:
        raise InvalidInputError(
            f"query_importance names {len(unknown)} queries that are not in qid, for example "
            f"{next(iter(unknown))!r}.",
            "use the ids that qid holds.",
        )
    return [given.get(key, 1.0) for key in keys]


# --- pairs ---


@dataclass(frozen=True)
class Preferences:
    """A list of pairs that came through validation.

    Attributes
    ----------
    winner, loser : (pairs,) int64
        Row numbers of X.
    magnitude : (pairs,) float64 or None
        By how much the winner is preferred; None where magnitudes were not given.
    weight : (pairs,) float64 or None
        None where every pair weighs 1.
    """

    winner: Ints
    loser: Ints
    magnitude: Floats | None = None
    weight: Floats | None = None

    def __len__(self) -> int:
        return int(self.winner.shape[0])


def check_pairs(
    pairs: object, n_rows: int, magnitude: npt.ArrayLike | None = None, weight: npt.ArrayLike | None = None
) -> Preferences:
    """Check an array of shape (pairs, 2) whose rows are (winner, loser), as row numbers of X.

    Pairs that come twice or contradict each other are legal: the first is weight, the second noise.
    """
    if pairs is None:
        raise InvalidInputError(
            "There are no pairs.",
            "pass pairs of row numbers (winner, loser); AutoRanker also takes tables of duels.",
        )
    edges = as_array("pairs", pairs)
    if edges.size == 0:
        raise NoPairsError(
            "The list of pairs is empty.", "pass at least one pair (winner, loser) of row numbers."
        )
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise InvalidInputError(
            f"pairs must have shape (pairs, 2), got {edges.shape}.", "pass np.column_stack([winner, loser])."
        )
    # Data frames and joins turn integers into floats.
    if edges.dtype.kind not in "iu" and not (
        edges.dtype.kind == "f" and bool((edges == np.floor(edges)).all())
    ):
        raise InvalidInputError(
            f"pairs must hold row numbers (integers), got {edges.dtype}.",
            "translate item ids to row numbers first, for example with np.unique(ids, return_inverse=True); drop "
            "pairs with missing entries.",
        )
    outside = (edges < 0) | (edges >= n_rows)
    if outside.any():
        first = int(np.argmax(outside.any(axis=1)))
        raise InvalidInputError(
            f"Pair {first} is ({edges[first, 0]:.0f}, {edges[first, 1]:.0f}), but rows are numbered from 0 to "
            f"{n_rows - 1}.",
            "pairs hold row numbers of X, counted from 0; translate item ids to row numbers first.",
        )
    winner, loser = (np.ascontiguousarray(side, dtype=np.int64) for side in edges.T)
    itself = winner == loser
    if itself.any():
        raise InvalidInputError(
            f"Pair {int(np.argmax(itself))} prefers row {int(winner[np.argmax(itself)])} to itself.",
            "drop such pairs; two equal rows of X have two row numbers.",
        )
    instead = "swap winner and loser instead; 0 says that they tie."
    by = _amounts("magnitude", magnitude, winner.size, "pair", instead)
    weights = _amounts("weight", weight, winner.size, "pair", "use 0 to leave a pair out.")
    if weights is not None and not weights.any():
        raise NoPairsError("weight is zero for every pair.", "give at least one pair a positive weight.")
    return Preferences(winner, loser, by, weights)


# --- shared ---


def _as_numbers(name: str, values: object, hint: str) -> Floats:
    given = readable(name, values)
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be numbers ({error}).", hint) from error


def _amounts(name: str, values: object, n: int, unit: str, if_negative: str) -> Floats | None:
    """Return finite numbers that are not negative, one per unit; a single one counts for all, None stays None."""
    if values is None:
        return None
    is_single = isinstance(values, Real)
    amounts = check_numbers(name, np.full(n, values) if is_single else values, n, unit)
    if amounts.min(initial=0.0) < 0:
        raise InvalidInputError(f"{name} of {unit} {int(np.argmax(amounts < 0))} is negative.", if_negative)
    return amounts


def _as_column(values: Iterable[object]) -> AnyArray:
    if isinstance(values, np.ndarray) or hasattr(values, "to_numpy"):  # pandas, polars, pyarrow
        array = np.asarray(values)
    else:
        values = list(values)
        # numpy would turn [1, "a"] into strings, which merges 1 with "1", and tuples into a second axis
        kinds = {str if isinstance(v, str) else bool if isinstance(v, bool) else type(v) for v in values}
        is_plain = len(kinds) == 1 and kinds <= {int, float, str}
        array = np.asarray(values) if is_plain else np.empty(0)
        # ... integers of both signs beyond 2^63 into floats, which merges neighbours, and text loses NULs at its end
        if not is_plain or array.tolist() != values:
            array = np.empty(len(values), dtype=object)
            array[:] = values
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _missing(ids: AnyArray) -> npt.NDArray[np.bool_]:
    return np.array(list(map(is_null, ids)), dtype=np.bool_) if ids.dtype == object else ids != ids  # noqa: PLR0124
