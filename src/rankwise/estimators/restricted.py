"""Parameters that say what is known of coefficients before any data: signs, a model to stay near, penalties."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import ArrayLike, Floats
from rankwise.data.containers import unmasked
from rankwise.exceptions import InvalidInputError
from rankwise.problems.restriction import Restriction

__all__ = ["read_restriction"]


def read_restriction(
    n_features: int,
    positive: bool | ArrayLike,
    prior: ArrayLike | None,
    column_penalty: ArrayLike | None,
    *,
    takes_unpenalised: bool,
) -> Restriction | None:
    """Return what parameters say of coefficients; None where they say nothing.

    Parameters
    ----------
    takes_unpenalised : bool
        Whether columns may go without a penalty.
    """
    if positive is None or isinstance(positive, bool | np.bool_):
        signs = np.ones(n_features) if positive else None
    else:
        signs = _one_per_column("positive", positive, n_features, "True, False or", "signs 1, -1 or 0 (any)")
        if not np.isin(signs, (-1, 0, 1)).all():
            raise InvalidInputError("positive has other entries than 1, -1 and 0.", "use 0 for any sign.")
        signs = signs if signs.any() else None
    origin, penalty = (
        None if given is None else _one_per_column(name, given, n_features, "", "finite numbers")
        for name, given in (("prior", prior), ("column_penalty", column_penalty))
    )
    if penalty is not None:
        _check_penalty(penalty, is_signed=signs is not None, takes_unpenalised=takes_unpenalised)
    if signs is None and origin is None and penalty is None:
        return None
    return Restriction(None if signs is None else signs.astype(np.int64), origin, penalty)


def _check_penalty(penalty: Floats, *, is_signed: bool, takes_unpenalised: bool) -> None:
    if (penalty < 0).any():
        raise InvalidInputError(
            f"column_penalty has {penalty.min():g}, and a penalty is not negative.", "use 0 or more."
        )
    if not penalty.any():
        raise InvalidInputError("column_penalty is 0 everywhere.", "use alpha=0 instead, or RankRLS.")
    if not penalty.all() and (is_signed or not takes_unpenalised):
        what = "a sign" if is_signed else "a loss with a margin"
        raise InvalidInputError(
            f"column_penalty is 0 for some columns, and with {what} there is no gap to prove without a penalty.",
            "use a small penalty such as 1e-6 for them.",
        )


def _one_per_column(name: str, given: ArrayLike, n_features: int, other: str, what: str) -> Floats:
    try:
        numbers = np.asarray(unmasked(name, given), dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (n_features,) or not np.isfinite(numbers).all():
        must = " ".join([*other.split(), str(n_features), what])
        raise InvalidInputError(
            f"{name} must be {must}, one per column of X.", "pass an array of that length."
        )
    return numbers
