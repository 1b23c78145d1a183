"""Parameters that several estimators share, checked in one place: one name has one meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from rankwise.arrays import ArrayLike, Floats
from rankwise.data.containers import unmasked
from rankwise.data.parameters import check_alphas, check_cv, check_nested, check_positive
from rankwise.data.validation import check_choice, check_count, check_flag, check_number, check_seed
from rankwise.exceptions import InvalidInputError
from rankwise.kernels import KERNELS
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES
from rankwise.problems.restriction import Restriction
from rankwise.selection.scorers import resolve_scoring
from rankwise.selection.surface import AVERAGING, METHODS

__all__ = ["check_parameters", "read_restriction"]

Check = Callable[[str, Any], object]  # of a name and what was given by it; raises


def check_parameters(given: Mapping[str, object], *, has_gap: bool = False) -> None:
    """Raise unless those parameters that are in the table below make sense.

    Parameters
    ----------
    has_gap : bool
        Whether a solver ends by a proved gap, of which `tol` is a share; without a penalty there is none to prove.
    """
    for name, check in _CHECKS.items():
        if name in given:
            check(name, given[name])
    if "alpha" in given:
        remedy = "use a positive number such as 1e-4" if has_gap else "use 0 or a positive number"
        check_number("alpha", given["alpha"], minimum=0, remedy=remedy)
    if given.get("alphas") is not None:
        (check_positive if has_gap else check_alphas)(given["alphas"])  # type: ignore[arg-type]
    if has_gap and given.get("alpha") == 0:
        raise InvalidInputError(
            "alpha=0 leaves the minimum undetermined and no gap to prove.", "use a small one such as 1e-8."
        )
    tol = given.get("tol")
    if has_gap and isinstance(tol, Real) and float(tol) >= 1:
        raise InvalidInputError(
            f"tol={tol!r} is not below 1: it is a share of what can be gained over w = 0.", "use 1e-3."
        )


def read_restriction(
    n_features: int,
    positive: bool | ArrayLike,
    prior: ArrayLike | None,
    column_penalty: ArrayLike | None,
) -> Restriction | None:
    """Return what parameters say of coefficients; None where they say nothing."""
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
        _check_penalty(penalty)
    if signs is None and origin is None and penalty is None:
        return None
    return Restriction(None if signs is None else signs.astype(np.int64), origin, penalty)


def _one_of(*choices: str) -> Check:
    return partial(check_choice, choices=choices)


def _kernel(name: str, given: object) -> None:
    if not callable(given):
        check_choice(name, given, KERNELS)


def _share(name: str, given: object) -> None:
    if not isinstance(given, Real) or not 0 < float(given) < 1:
        raise InvalidInputError(f"{name}={given!r} is not between 0 and 1.", "use 0.1.")


def _momentum(name: str, given: object) -> None:
    if not isinstance(given, Real) or not 0 <= float(given) < 1:
        raise InvalidInputError(f"{name}={given!r} is not at least 0 and below 1.", "use 0.9.")


def _or_none(check: Check) -> Check:
    return lambda name, given: None if given is None else check(name, given)


def _check_penalty(penalty: Floats) -> None:
    if (penalty < 0).any():
        raise InvalidInputError(
            f"column_penalty has {penalty.min():g}, and a penalty is not negative.", "use 0 or more."
        )
    if not penalty.any():
        raise InvalidInputError(
            "column_penalty is 0 everywhere.",
            "use RankRLS(alpha=0) instead, or, with margins, a small alpha such as 1e-8.",
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


def _mapping(name: str, given: object) -> None:
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{name}={given!r} is no mapping.", "pass a dictionary, or leave it out.")


_CHECKS: dict[str, Check] = {
    "kernel": _kernel,
    "kernel_params": _or_none(_mapping),
    "scoring": lambda _, given: resolve_scoring(given),
    "query_weight": _one_of(*QUERY_WEIGHTS),
    "ties": _one_of(*TIES),
    "cost": _one_of(*COSTS),
    "tol": partial(check_number, minimum=0, remedy="use a small positive number such as 1e-3"),
    "max_iter": check_count,
    "n_threads": check_count,
    "random_state": lambda _, given: check_seed(given),
    "early_stopping": check_flag,
    "warm_start": check_flag,
    "patience": partial(check_count, optional=False),
    "validation_fraction": _share,
    "method": _one_of("auto", *METHODS),
    "averaging": _one_of(*AVERAGING),
    "judge_rows": partial(check_count, optional=False),
    "nested": lambda _, given: check_nested(given),
    "cv": lambda _, given: check_cv(given),
    "degree": partial(check_number, minimum=1, remedy="use a whole number such as 3"),
    "memory_limit": check_count,
    "precondition": _or_none(_one_of("jacobi")),
    "learning_rate": _or_none(
        partial(check_number, minimum=np.finfo(float).smallest_subnormal, remedy="use None for the best")
    ),
    "momentum": _momentum,
}
