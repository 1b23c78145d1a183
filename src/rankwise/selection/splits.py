"""Reading numbers of folds, names, splitters and lists of splits, whatever is split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from rankwise.arrays import Ints
from rankwise.exceptions import Change, InvalidInputError

__all__ = [
    "EXACT_CV",
    "FOLDS",
    "Splitter",
    "as_splitter",
    "count_folds",
    "is_exact_name",
    "read_splits",
    "requests_groups",
]

EXACT_CV = ("leave-query-out", "leave-pair-out")

FOLDS = 5  # what "auto" makes where it leaves out neither queries nor pairs


class Splitter(Protocol):
    """Anything with the method of scikit-learn's splitters."""

    def split(self, X: object, y: object = None, groups: object = None) -> Iterable[tuple[object, object]]:
        """Yield training and test positions."""


def is_exact_name(cv: object) -> bool:
    """Tell whether `cv` names an exact hold-out, which takes a decomposition."""
    return isinstance(cv, str) and cv in EXACT_CV


def count_folds(cv: object, n_units: int, unit: str) -> int:
    """Return how many folds "auto" or a number makes of so many units; raise where there are too few."""
    n_folds = min(FOLDS, n_units) if cv == "auto" else int(str(cv))
    if n_folds > n_units or n_folds < 2:
        raise InvalidInputError(
            f"{n_folds} folds are more than the {n_units} {unit} there are."
            if n_folds > n_units
            else f"There is one of {unit} only, which cannot be split.",
            f"use cv <= {n_units}." if n_units > 1 else "pass an eval_set.",
            Change("cv", n_units),
            Change("eval_set"),
        )
    return n_folds


class _Listed:
    """Splits that the caller has made; scikit-learn's own class would cost a twentieth of `import rankwise`."""

    def __init__(self, splits: list[tuple[object, object]] | tuple[tuple[object, object], ...]) -> None:
        self._splits = splits

    def split(self, X: object, y: object = None, groups: object = None) -> Iterable[tuple[object, object]]:
        """Return the splits."""
        return self._splits

    def __str__(self) -> str:
        return f"{len(self._splits)} given splits"


def as_splitter(cv: object) -> Splitter | None:
    """Return a splitter, or a list of (train, test) as one; None for names and numbers."""
    if isinstance(cv, (list, tuple)):
        return _Listed(cv)
    found: Splitter | None = cv if not isinstance(cv, str) and hasattr(cv, "split") else None
    return found


def requests_groups(splitter: Splitter, *, unknown: bool = False) -> bool:
    """Tell whether a splitter looks at groups; `unknown` where it does not say.

    Those of scikit-learn that do not look warn about groups.
    """
    if isinstance(splitter, _Listed):
        return False
    routing = getattr(splitter, "get_metadata_routing", None)
    return unknown if routing is None else "groups" in routing().split.requests


def read_splits(
    splitter: Splitter, X: object, y: object, groups: object, unit: str
) -> Iterator[tuple[Ints, Ints]]:
    """Yield training and test positions, in increasing order and none of them on both sides."""
    n_units = len(X)  # type: ignore[arg-type]
    given = groups if requests_groups(splitter, unknown=True) else None
    try:
        splits = list(splitter.split(X, y, given))
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"cv={splitter} cannot split {n_units} {unit} ({error}).",
            "pass the groups that it asks for, or use cv=5, KFold or PreferenceKFold.",
        ) from error
    if not splits:
        raise InvalidInputError(f"cv={splitter} makes no folds.", "use cv=5.")
    for split in splits:
        try:
            train, test = (_positions(side, n_units) for side in split)
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"cv={splitter} holds a split that is no pair of positions of {unit} ({error}).",
                f"make every split (train, test), two arrays of positions from 0 to {n_units - 1}, or two masks.",
            ) from error
        if np.intersect1d(train, test, assume_unique=True).size:
            raise InvalidInputError(
                f"cv={splitter} trains on {unit} that it tests.", "use KFold, GroupKFold or PreferenceKFold."
            )
        yield train, test


def _positions(side: object, n_units: int) -> Ints:
    chosen = np.asarray(side)
    if chosen.size == 0:
        return np.empty(0, dtype=np.int64)
    if chosen.ndim != 1:
        raise ValueError(f"an array of shape {chosen.shape}")
    return np.unique(np.arange(n_units)[chosen])
