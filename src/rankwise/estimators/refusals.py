"""Input that an estimator refuses, or takes with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature

import numpy as np

from rankwise.arrays import Floats
from rankwise.exceptions import InvalidInputError, caller_level
from rankwise.fitting.notices import Notice
from rankwise.problems.training import PairData, TrainingProblem
from rankwise.runtime.interrupts import tell_interrupted

__all__ = ["hinting", "refuse_unknown", "require_finite", "say", "warn_of_near_ties"]

# Differences below this share of the largest one dominate the relative cost.
_NEAR_TIE = 1e-4
_OTHER_NAMES_OF_QID = frozenset(
    {"group", "groups", "group_id", "query", "queries", "query_id", "query_ids", "qids"}
)
_EVAL_QID = "pass the query id of each row in eval_set=(X_val, y_val, qid_val)."
_STOPPING = "leave it out; to stop early use RankSVM or RankRLS with early_stopping=True and patience=10."
# Arguments of XGBoost and LightGBM, of `fit` or of the estimator, and the way to write them here.
_ELSEWHERE = {
    "eval_group": _EVAL_QID,
    "eval_qid": _EVAL_QID,
    "callbacks": _STOPPING,
    "early_stopping_rounds": _STOPPING,
    "n_jobs": "set n_threads of the estimator.",
}


def refuse_unknown(method: str, unknown: Mapping[str, object]) -> None:
    """Raise where a method got arguments that it does not have: query ids go by other names elsewhere."""
    for name in unknown:
        if name.lower() in _OTHER_NAMES_OF_QID:
            raise InvalidInputError(
                f"{method} has no argument {name!r}.",
                "leave it out: pairs says which rows are compared."
                if method == "fit_pairs"
                else "pass the query id of each row as qid; sizes of groups become ids by "
                "np.repeat(np.arange(len(sizes)), sizes).",
            )
        refuse_elsewhere(method, name)
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def refuse_elsewhere(what: str, *names: str) -> None:
    """Raise where an argument is known from other packages alone."""
    for name in names:
        if name in _ELSEWHERE:
            raise InvalidInputError(f"{what} has no argument {name!r}.", _ELSEWHERE[name])


def hinting(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate `__init__` with hints for arguments of other packages."""
    own = signature(init).parameters

    @wraps(init)
    def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807
        refuse_elsewhere(type(self).__name__, *(kwargs.keys() - own))
        init(self, *args, **kwargs)

    return __init__


def require_finite(scores: Floats) -> Floats:
    """Return scores; raise where rows are so large that they have none."""
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores.reshape(scores.shape[0], -1)).all(axis=1)))
        raise InvalidInputError(
            f"The score of row {row} is too large for floating-point numbers.",
            "score rows that are like those of the training data; if a number stands for a missing value, replace it.",
        )
    return scores


def warn_of_near_ties(data: TrainingProblem) -> None:
    """Say it where the relative cost is all about a few small differences."""
    if isinstance(data, PairData):
        magnitude = data.preferences.magnitude
        parts = [] if magnitude is None else [magnitude[magnitude > 0]]
        what, by, which = "Pairs of a magnitude of", "magnitude", "magnitudes"
    else:
        parts = [np.diff(one.value)[one.query[1:] == one.query[:-1]] for one in data.levels]
        what, by, which = "Labels that differ by", "difference", "labels"
    for differences in parts:
        if differences.size and differences.min() < _NEAR_TIE * differences.max():
            seen = (
                f"{what} only {differences.min():.3g} weigh 1/{by}² in cost='relative' and dominate the fit"
            )
            say([Notice(seen, f"round the {which}, or use cost='magnitude'", UserWarning)])


def say(notices: Sequence[Notice]) -> None:
    """Warn of what a fit is to be warned of; Ctrl-C is told of when the estimator has its attributes."""
    for what, remedy, category in notices:
        if category is KeyboardInterrupt:
            tell_interrupted(what, remedy)
        else:
            assert issubclass(category, Warning)
            warnings.warn(f"{what}. Hint: {remedy}.", category, stacklevel=caller_level())
