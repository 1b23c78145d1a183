"""The words for input that an estimator refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwise.arrays import Floats
from rankwise.exceptions import InvalidInputError

__all__ = ["in_our_words", "refuse_unknown", "require_finite"]

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


def in_our_words(error: ValueError, X: object, fitted: Sequence[str] = ()) -> InvalidInputError:
    """Return an error of scikit-learn's validation as one that ends in a remedy.

    Parameters
    ----------
    fitted : sequence of str
        The names of the columns that the model was fitted with, if X is to have the same.
    """
    text = str(error).strip()
    if "NaN" in text:
        text = text.partition("\n")[0]  # scikit-learn goes on to recommend estimators that do not rank
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
            "use AutoRanker or AdditiveRanker, which take missing values in X, or fill them in, for example with "
            "sklearn.impute.SimpleImputer in a Pipeline; rows whose label is missing must be dropped."
        )
    if "sample(s)" in message or "samples" in message:
        return "a ranker needs at least two rows with different labels, and one label per row."
    if "feature(s)" in message or "features" in message:
        return "pass a matrix with one row per item and the columns that the model was fitted with."
    if "could not convert" in message or "dtype" in message:
        return "encode text and categories as numbers first, for example with sklearn.preprocessing.OneHotEncoder."
    return "pass a two-dimensional numeric X with one row per item, and one finite label per row in y."


def _some(names: list[str], shown: int = 5) -> str:
    """Return ``'a', 'b'``, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"{', '.join(map(repr, names[:shown]))}{more}"
