"""Parameters of a choice: grids of alphas, values of scaling, folds; refused before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from rankwise.arrays import ArrayLike, Floats, Labels, MatrixLike
from rankwise.data.containers import unmasked
from rankwise.data.validation import check_choice, check_count
from rankwise.exceptions import Change, InvalidInputError, MissingQueriesError

__all__ = [
    "EXACT_CV",
    "check_alphas",
    "check_cv",
    "check_nested",
    "check_outputs",
    "check_positive",
    "check_powers",
    "is_exact_name",
    "pairs_to_score",
    "rows_to_score",
]

EXACT_CV = ("leave-query-out", "leave-pair-out")


def is_exact_name(cv: object) -> bool:
    """Tell whether `cv` names an exact hold-out, which takes a decomposition."""
    return isinstance(cv, str) and cv in EXACT_CV


def check_cv(cv: object) -> None:
    """Raise unless `cv` is a name, a number of folds, a splitter, or a list of (train, test)."""
    if isinstance(cv, str):
        check_choice("cv", cv, ("auto", *EXACT_CV))
    elif not isinstance(cv, (list, tuple)) and not hasattr(cv, "split"):
        check_count("cv", cv, optional=False)
        if cv == 1:
            raise InvalidInputError("cv=1 leaves nothing to train on.", "use cv of at least 2.")


def rows_to_score(eval_set: object, *, with_qid: bool) -> tuple[MatrixLike, Labels, ArrayLike | None]:
    """Return the parts of an evaluation set of labelled rows; nothing but their number is looked at."""
    if not _is_one_set(eval_set):
        raise InvalidInputError(
            "eval_set must be a tuple (X, y) or (X, y, qid).", "pass one evaluation set, not a list of them."
        )
    X, y, qid = (*eval_set, None)[:3]
    if qid is None and with_qid:
        raise MissingQueriesError(
            "fit was called with query ids, but eval_set has none; its score would be a global one.",
            "pass eval_set=(X_val, y_val, qid_val).",
        )
    return X, y, qid


def check_outputs(y: Floats, n_outputs: int) -> None:
    """Raise unless the labels of an evaluation set have as many outputs as those of the training data."""
    given = 1 if y.ndim == 1 else y.shape[1]
    if given != n_outputs:
        raise InvalidInputError(
            f"eval_set has {given} outputs, but y has {n_outputs}.", "give both the same columns of labels."
        )


def pairs_to_score(eval_set: object) -> tuple[MatrixLike, ArrayLike, ArrayLike | None]:
    """Return the parts of an evaluation set of listed pairs; nothing but their number is looked at."""
    if not _is_one_set(eval_set):
        raise InvalidInputError(
            "eval_set must be a tuple (X, pairs) or (X, pairs, weight).",
            "pass the rows to score by and the pairs among them, numbered from 0 in that X.",
        )
    X, pairs, weight = (*eval_set, None)[:3]
    return X, pairs, weight


def _is_one_set(eval_set: object) -> TypeGuard[Sequence[Any]]:
    """Tell whether this has the parts of an evaluation set; XGBoost and LightGBM take a list of tuples."""
    if not isinstance(eval_set, (tuple, list)) or len(eval_set) not in {2, 3}:
        return False
    return isinstance(eval_set, tuple) or not isinstance(eval_set[0], tuple)


def check_nested(nested: object) -> None:
    """Raise unless `nested` is a truth value or a number of outer folds."""
    if not isinstance(nested, bool):
        check_count("nested", nested, optional=False)
        if nested == 1:
            raise InvalidInputError("nested=1 leaves nothing to train on.", "use nested=True, or at least 2.")


def check_alphas(alphas: ArrayLike) -> Floats:
    """Return a grid of alphas: finite, not negative, in increasing order, without duplicates."""
    example = "pass for example alphas=2.0 ** np.arange(-10, 11)."
    try:
        grid = np.unique(np.asarray(unmasked("alphas", alphas), dtype=np.float64).ravel())
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"alphas must be numbers ({error}).", example) from error
    if grid.size == 0:
        raise InvalidInputError("alphas is empty.", example)
    if not np.isfinite(grid).all() or grid[0] < 0:
        raise InvalidInputError(
            "alphas must be finite and not negative.", "use powers of two around 1; 0 means no penalty."
        )
    return grid


def check_positive(alphas: ArrayLike) -> None:
    """Raise unless a grid of alphas is one of positive numbers."""
    if check_alphas(alphas)[0] == 0:
        raise InvalidInputError(
            "alphas contains 0.", "use positive values, such as 10.0 ** -np.arange(1, 7).", Change("alphas")
        )


def check_powers(scaling: ArrayLike) -> list[float]:
    """Return the values of `scaling` to try."""
    try:
        powers = np.asarray(unmasked("scaling", scaling), dtype=np.float64).ravel()
    except (TypeError, ValueError):
        powers = np.empty(0)
    if powers.size == 0 or not np.isfinite(powers).all():
        raise InvalidInputError(
            f"scaling={scaling!r} is not a number or a list of numbers.", "use 0 (off) or 0.25."
        )
    return [float(power) for power in powers]
