"""Parameters that say what is known of coefficients before any data: signs, a model to stay near, penalties."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rankwise.arrays import ArrayLike, Floats, Ints
from rankwise.data.containers import unmasked
from rankwise.exceptions import InvalidInputError
from rankwise.problems.restriction import Restriction

__all__ = ["read_restriction", "refuse_restriction"]


class Restrictable(Protocol):
    """A ranker with parameters that say something of its coefficients."""

    n_features_in_: int
    positive: bool | ArrayLike
    prior: ArrayLike | None
    column_penalty: ArrayLike | None


_NAMES = ("positive", "prior", "column_penalty")


def read_restriction(ranker: Restrictable, *, takes_unpenalised: bool) -> Restriction | None:
    """Return what a ranker's parameters say of its coefficients; None where they say nothing.

    Parameters
    ----------
    ranker : estimator
        After its rows were checked, so that it knows how many columns there are.
    takes_unpenalised : bool
        Whether columns may go without a penalty.
    """
    n_features = int(ranker.n_features_in_)
    signs = _signs(ranker.positive, n_features)
    prior, penalty = (_numbers(name, getattr(ranker, name), n_features) for name in _NAMES[1:])
    if penalty is not None:
        if (penalty < 0).any():
            raise InvalidInputError(
                f"column_penalty has {penalty.min():g}, and a penalty is not negative.", "use 0 or more."
            )
        if not penalty.any():
            raise InvalidInputError("column_penalty is 0 everywhere.", "use alpha=0 instead, or RankRLS.")
        if not penalty.all() and (signs is not None or not takes_unpenalised):
            what = "a sign" if signs is not None else "a loss with a margin"
            raise InvalidInputError(
                f"column_penalty is 0 for some columns, and with {what} there is no gap to prove without a penalty.",
                "use a small penalty such as 1e-6 for them.",
            )
    solver = getattr(ranker, "solver", "auto")
    if signs is not None and solver != "auto":
        raise InvalidInputError(f"solver={solver!r} knows no signs.", "use solver='auto' with positive.")
    found = Restriction(signs, prior, penalty)
    return None if signs is None and prior is None and penalty is None else found


def refuse_restriction(ranker: Restrictable, what: str, remedy: str) -> None:
    """Raise where a ranker has parameters that say something of its coefficients."""
    for name in _NAMES:
        value = getattr(ranker, name)
        if value is not None and value is not False:
            raise InvalidInputError(f"{name} does not go with {what}.", remedy)


def _signs(positive: bool | ArrayLike | None, n_features: int) -> Ints | None:
    if positive is None or isinstance(positive, bool | np.bool_):
        return np.ones(n_features, dtype=np.int64) if positive else None
    try:
        signs = np.asarray(unmasked("positive", positive))
        is_fine = signs.shape == (n_features,) and bool(np.isin(signs, (-1, 0, 1)).all())
    except (TypeError, ValueError):
        is_fine = False
    if not is_fine:
        raise InvalidInputError(
            f"positive must be True, False or {n_features} signs, one per column.",
            "use 1 for coefficients that must not be negative, -1 for those that must not be positive, and 0 for any.",
        )
    found = signs.astype(np.int64)
    return found if found.any() else None


def _numbers(name: str, given: ArrayLike | None, n_features: int) -> Floats | None:
    if given is None:
        return None
    try:
        numbers = np.asarray(unmasked(name, given), dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (n_features,) or not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"{name} must be {n_features} finite numbers, one per column of X.",
            "pass an array of that length.",
        )
    return numbers
