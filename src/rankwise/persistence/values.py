"""Which kinds of values a model file can hold beside what JSON has.

What JSON has stays as it is, arrays go beside it, and the rest is written as ``{"$kind": …}`` (`writer.py`). Only the
kinds in the tables below are ever made from a file, each by code that checks what it is given (`reader.py`); no name
from a file is imported or called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

import numpy as np
import scipy.sparse as sp

from rankwise.exceptions import ModelFileError

__all__ = [
    "COMPRESSED",
    "CURVE",
    "DEPTH",
    "DTYPES",
    "SCALARS",
    "SPARSE",
    "SPLINE",
    "SPLITTERS",
    "SPLITTER_CLASSES",
    "Classes",
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


class Classes(Mapping[str, type]):
    """Classes by their names, imported from their modules once somebody asks for them: most models need none."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> type:
        found: type = getattr(import_module(self._homes[name]), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __contains__(self, name: object) -> bool:
        return name in self._homes  # without importing anything


_FOLDS = ("n_splits", "shuffle", "random_state")
# Each with the parameters that are kept.
SPLITTERS: Mapping[str, tuple[str, ...]] = {
    "GroupKFold": _FOLDS,
    "KFold": _FOLDS,
    "LeaveOneGroupOut": (),
    "PreferenceKFold": ("n_splits", "by", "random_state"),
    "QueryKFold": _FOLDS,
    "StratifiedGroupKFold": _FOLDS,
    "StratifiedKFold": _FOLDS,
}
SPLITTER_CLASSES = Classes(
    {
        name: "rankwise.model_selection"
        if name in {"PreferenceKFold", "QueryKFold"}
        else "sklearn.model_selection"
        for name in SPLITTERS
    }
)
# The parts of each, as attributes.
SPLINE = ("t", "c", "k", "extrapolate")
COMPRESSED = ("data", "indices", "indptr")
CURVE = ("column", "knots", "is_levels", "has_missing")


def is_splitter(value: object) -> bool:
    """Tell whether this is one of the splitters that a file can hold."""
    kind = type(value).__name__
    return kind in SPLITTERS and type(value) is SPLITTER_CLASSES[kind]


def features_taken(step: object) -> int | None:
    """Return how many columns a step takes; None where it says no number, but perhaps an array.

    A FeatureUnion or Pipeline asks its first step, which may be a word; then the next one knows.
    """
    found = getattr(step, "n_features_in_", None)
    inner = getattr(step, "transformer_list", getattr(step, "steps", ())) if found is None else ()
    first = next((one for _, one in inner if not isinstance(one, str | None)), None)
    if first is not None:
        return features_taken(first)
    return int(found) if isinstance(found, int | np.integer) else None


def wrong(how: str) -> ModelFileError:
    """Return the error of a file that is whole and makes no sense."""
    return ModelFileError(
        f"The model file cannot be understood: {how}.",
        "upgrade rankwise if a newer version wrote it, else save the model again.",
    )
