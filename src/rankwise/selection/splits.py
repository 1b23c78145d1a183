"""Reading the splits of a splitter, or of a list: pairs of training and test positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.exceptions import InvalidInputError

__all__ = ["read_splits"]

Ints = npt.NDArray[np.int64]


def read_splits(splits: Iterable[Any], n_units: int, cv: object, unit: str) -> Iterator[tuple[Ints, Ints]]:
    """Yield training and test positions, in increasing order and none of them on both sides.

    Parameters
    ----------
    splits : iterable of (train, test)
        Positions or masks.
    n_units : int
    cv, unit : object, str
        For errors: where the splits come from, and what is split.
    """
    n_splits = 0
    for n_splits, split in enumerate(splits, start=1):  # noqa: B007 - counted
        try:
            train, test = (_positions(side, n_units) for side in split)
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"cv={cv} holds a split that is no pair of positions of {unit} ({error}).",
                f"make every split (train, test), two arrays of positions from 0 to {n_units - 1}, or two masks.",
            ) from error
        if np.intersect1d(train, test, assume_unique=True).size:
            raise InvalidInputError(
                f"cv={cv} trains on {unit} that it tests.", "use KFold, GroupKFold or PreferenceKFold."
            )
        yield train, test
    if n_splits == 0:
        raise InvalidInputError(f"cv={cv} makes no folds.", "use cv=5.")


def _positions(side: Any, n_units: int) -> Ints:
    chosen = np.asarray(side)
    if chosen.size == 0:
        return np.empty(0, dtype=np.int64)
    if chosen.ndim != 1:
        raise ValueError(f"an array of shape {chosen.shape}")
    return np.unique(np.arange(n_units)[chosen])
