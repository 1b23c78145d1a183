"""The validation boundary: what comes from the caller is checked here and nowhere below.

Matrices go through scikit-learn's own validation in the estimators; here is what scikit-learn does not
know about: query ids, weights of rows and of queries, and options chosen by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from rankwise.arrays import AnyArray, Importance, RandomSource
from rankwise.data.containers import check_total, unmasked
from rankwise.data.queries import Queries, encode_queries, one_query
from rankwise.exceptions import InvalidInputError

__all__ = [
    "check_choice",
    "check_count",
    "check_flag",
    "check_importance",
    "check_number",
    "check_numbers",
    "check_qid",
    "check_seed",
    "check_weights",
    "check_weights_of_queries",
    "read_seed",
]

# The pairs of a query without a row of this weight weigh so little together that one over it may overflow.
_SMALLEST_WEIGHT = 1e-100

_LARGEST_COUNT, _MOST_THREADS = 2**63 - 1, 2**31 - 1  # what compiled code can count to
_SEEDS = 2**31 - 1  # what scikit-learn's own estimators, to whom seeds are handed on, take


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


def check_number(name: str, value: object, *, minimum: float, remedy: str) -> None:
    """Raise unless `value` is a finite real number of at least `minimum`."""
    if not isinstance(value, Real) or isinstance(value, bool) or not minimum <= float(value) < np.inf:
        raise InvalidInputError(
            f"{name}={value!r} is not a finite number of at least {minimum}.", f"{remedy}."
        )


def check_count(name: str, value: object, *, optional: bool = True) -> None:
    """Raise unless `value` is a positive integer, or None where that is the default."""
    if value is None and optional:
        return
    largest = _MOST_THREADS if name == "n_threads" else _LARGEST_COUNT
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= int(value) <= largest:
        remedy = "use None for the default" if optional else "use a positive integer"
        raise InvalidInputError(f"{name}={value!r} is not a positive integer.", f"{remedy}.")


def check_flag(name: str, value: object) -> None:
    """Raise unless `value` is True or False: any other text would count as True."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name}={value!r} is neither True nor False.", f"use {name}=True or False.")


def check_seed(random_state: object) -> None:
    """Raise unless `random_state` is what `read_seed` takes."""
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)) or random_state is None:
        return
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InvalidInputError(
            f"random_state={random_state!r} is not a seed.",
            "use an integer such as 0, with which the same data give the same result; "
            "None, a RandomState and a Generator give another one in every call.",
        )


def read_seed(random_state: RandomSource) -> int:
    """Return the seed that is meant: an integer is one, generators draw it, and None asks the system for it."""
    check_seed(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_SEEDS))
    if isinstance(random_state, np.random.Generator) or random_state is None:
        return int(np.random.default_rng(random_state).integers(_SEEDS))
    return int(random_state)


def check_numbers(name: str, values: object, n_rows: int | None = None) -> npt.NDArray[np.float64]:
    """Return one finite number per row as float64; arrays, lists, and Series of pandas or polars will do."""
    values = unmasked(name, values)
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind != "c":
            numbers = numbers.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be numbers ({error}).",
            f"pass one number per row as {name}, without missing values.",
        ) from error
    if numbers.dtype.kind == "c":
        raise InvalidInputError(
            f"{name} holds complex numbers.", "rankings need real numbers: pass the real part."
        )
    if numbers.ndim != 1:
        raise InvalidInputError(
            f"{name} must have one dimension, got an array of shape {numbers.shape}.",
            "pass one number per row; take a single column of a matrix with values[:, 0].",
        )
    if n_rows is not None and numbers.shape[0] != n_rows:
        raise InvalidInputError(
            f"{name} has {numbers.shape[0]} entries where {n_rows} are expected.",
            "pass one number per row, for the same rows in the same order.",
        )
    bad = ~np.isfinite(numbers)
    if bad.any():
        raise InvalidInputError(
            f"{name} is NaN or infinite in {int(bad.sum())} of {numbers.shape[0]} rows, first in row "
            f"{int(np.argmax(bad))}.",
            "drop those rows or replace the values.",
        )
    return np.ascontiguousarray(numbers)


def check_qid(
    qid: npt.ArrayLike | None, n_rows: int, *, name: str = "qid", what: str = "query", beside: str = "X"
) -> Queries:
    """Encode query ids; ``None`` means that all rows form one query, and what was encoded before is taken as it is.

    Parameters
    ----------
    name, what, beside : str
        For errors: the argument, what its ids stand for, and the argument that has as many rows.
    """
    if qid is None:
        return one_query(n_rows)
    if isinstance(qid, Queries) and qid.n_rows == n_rows:
        return qid
    given = unmasked(name, qid)
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
) -> npt.NDArray[np.float64] | None:
    """Return weights of rows as float64, or None where every row weighs 1."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(unmasked("sample_weight", sample_weight))
        if weights.ndim == 0:
            weights = np.full(n_rows, weights)
        weights = weights.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"sample_weight must be numbers ({error}).", "pass one non-negative number per row."
        ) from error
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight must have shape ({n_rows},), got {weights.shape}.", "pass one weight per row."
        )
    if not np.isfinite(weights).all():
        raise InvalidInputError(
            "sample_weight contains NaN or infinity.", "replace them; a weight of 0 removes a row."
        )
    if (weights < 0).any():
        raise InvalidInputError(
            "sample_weight contains negative values.", "weights are counts: use 0 to leave a row out."
        )
    with np.errstate(over="ignore"):
        check_total("sample_weight", float(weights.sum()), "use weights around 1.")
    if 0 < weights.max(initial=0.0) < _SMALLEST_WEIGHT:
        raise InvalidInputError(
            f"No row weighs more than {weights.max():.1e}, and products of such weights are 0.",
            "use weights around 1.",
        )
    if not may_all_be_zero and not (weights > 0).any():
        raise InvalidInputError(
            "sample_weight is zero everywhere.", "give at least two rows a positive weight."
        )
    return weights


def check_weights_of_queries(row_weight: npt.NDArray[np.float64] | None, queries: Queries) -> None:
    """Raise where a query's rows weigh so little that dividing by the weight of its pairs overflows."""
    if row_weight is None or row_weight.min(initial=1.0) >= _SMALLEST_WEIGHT:
        return
    largest = np.zeros(len(queries))
    np.maximum.at(largest, queries.codes, row_weight)
    small = (largest > 0) & (largest < _SMALLEST_WEIGHT)
    if small.any():
        at = int(np.argmax(small))
        raise InvalidInputError(
            f"No row of query {queries.ids.tolist()[at]!r} weighs more than {largest[at]:.1e}, and "
            "query_weight='equal' divides by the weight of its pairs.",
            "use weights around 1 inside each query, and 0 to leave rows out.",
        )


def check_importance(query_importance: Importance | None, queries: Queries) -> npt.NDArray[np.float64] | None:
    """Return one non-negative factor per query, or None where all are equally important.

    Accepts a mapping from query id to factor (missing ids have factor 1) or one value per row, constant
    inside each query.
    """
    if query_importance is None:
        return None
    query_importance = unmasked("query_importance", query_importance)
    try:
        values = _importance_of_queries(query_importance, queries)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"query_importance must be numbers ({error}).", "pass one non-negative number per query."
        ) from error
    if not np.isfinite(values).all() or (values < 0).any():
        raise InvalidInputError(
            "query_importance must be finite and not negative.", "use 0 to leave a query out."
        )
    check_total("query_importance", float(values.max()), "use numbers around 1.")
    if not (values > 0).any():
        raise InvalidInputError(
            "query_importance is zero for every query.", "give at least one query a positive importance."
        )
    return values


def _importance_of_queries(query_importance: Importance, queries: Queries) -> npt.NDArray[np.float64]:
    if isinstance(query_importance, Mapping):
        keys = queries.ids.tolist()
        if queries.ids.dtype.kind in "mM":  # of which a list may hold plain integers
            names = np.array(list(query_importance), dtype=queries.ids.dtype).tolist()
            query_importance = dict(zip(names, query_importance.values(), strict=True))
        unknown = set(query_importance) - set(keys)
        if unknown:
            raise InvalidInputError(
                f"query_importance names {len(unknown)} queries that are not in qid, for example "
                f"{next(iter(unknown))!r}.",
                "use the ids that qid holds.",
            )
        values = np.array([query_importance.get(key, 1.0) for key in keys], dtype=np.float64)
    else:
        rows = np.asarray(query_importance, dtype=np.float64)
        if rows.shape != (queries.n_rows,):
            raise InvalidInputError(
                f"query_importance must have one value per row ({queries.n_rows}), got shape {rows.shape}.",
                "pass a dictionary {query id: importance}, or one value per row.",
            )
        values = np.zeros(len(queries))
        values[queries.codes] = rows
        if not np.array_equal(values[queries.codes], rows, equal_nan=True):
            raise InvalidInputError(
                "query_importance changes inside a query.", "give all rows of a query the same importance."
            )
    return values


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
    if ids.dtype.kind == "f":
        return np.asarray(np.isnan(ids), dtype=np.bool_)
    if ids.dtype.kind in "mM":
        return np.asarray(np.isnat(ids), dtype=np.bool_)
    if ids.dtype == object:
        # NaN and pandas.NA are the values that do not equal themselves
        return np.fromiter((v is None or _differs_from_itself(v) for v in ids), np.bool_, count=ids.size)
    return np.zeros(ids.shape, dtype=np.bool_)


def _differs_from_itself(value: object) -> bool:
    try:
        return bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return True
