"""The words for input that an estimator refuses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankwise.arrays import Floats
from rankwise.exceptions import InvalidInputError

__all__ = ["refuse_unknown", "require_finite"]

_OTHER_NAMES_OF_QID = frozenset(
    {"group", "groups", "group_id", "query", "queries", "query_id", "query_ids", "qids"}
)


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
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def require_finite(scores: Floats) -> Floats:
    """Return scores; raise where rows are so large that they have none."""
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores.reshape(scores.shape[0], -1)).all(axis=1)))
        raise InvalidInputError(
            f"The score of row {row} is too large for floating-point numbers.",
            "score rows that are like those of the training data; if a number stands for a missing value, replace it.",
        )
    return scores
