"""Which kinds of values a model file can hold beside what JSON has.

What JSON has stays as it is, arrays go beside it, and the rest is written as ``{"$kind": …}`` (`writer.py`). Only the
kinds in the tables below are ever made from a file, each by code that checks what it is given (`reader.py`); no name
from a file is imported or called.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from rankwise.exceptions import ModelFileError
from rankwise.model_selection import PreferenceKFold, QueryKFold

__all__ = [
    "COMPRESSED",
    "CURVE",
    "DEPTH",
    "DTYPES",
    "SCALARS",
    "SPARSE",
    "SPLINE",
    "SPLITTERS",
    "is_splitter",
    "wrong",
]

DEPTH = 32
SCALARS = {
    np.dtype(kind).name: np.dtype(kind).type
    for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
DTYPES = {*SCALARS, "object"}
SPARSE = {kind.__name__: kind for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)}
_FOLDS = ("n_splits", "shuffle", "random_state")
SPLITTERS: Mapping[str, tuple[type, tuple[str, ...]]] = {
    "GroupKFold": (GroupKFold, _FOLDS),
    "KFold": (KFold, _FOLDS),
    "LeaveOneGroupOut": (LeaveOneGroupOut, ()),
    "PreferenceKFold": (PreferenceKFold, ("n_splits", "by", "random_state")),
    "QueryKFold": (QueryKFold, _FOLDS),
    "StratifiedGroupKFold": (StratifiedGroupKFold, _FOLDS),
    "StratifiedKFold": (StratifiedKFold, _FOLDS),
}
# The parts of each, as attributes.
SPLINE = ("t", "c", "k", "extrapolate")
COMPRESSED = ("data", "indices", "indptr")
CURVE = ("column", "knots", "is_levels", "has_missing")


def is_splitter(value: object) -> bool:
    """Tell whether this is one of the splitters that a file can hold."""
    kind = type(value).__name__
    return kind in SPLITTERS and type(value) is SPLITTERS[kind][0]


def features_taken(step: object) -> int | None:
    """Return how many columns a step takes; None where it says no number, but perhaps an array."""
    found = getattr(step, "n_features_in_", None)
    return int(found) if isinstance(found, int | np.integer) else None


def wrong(how: str) -> ModelFileError:
    """Return the error of a file that is whole and makes no sense."""
    return ModelFileError(
        f"The model file cannot be understood: {how}.",
        "upgrade rankwise if a newer version wrote it, else save the model again.",
    )
