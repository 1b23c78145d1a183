"""JSON values and types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

__all__ = ["Json", "json_value"]

Json: TypeAlias = Union[bool, int, float, str, "Sequence[Json]", "Mapping[str, Json]", None]


def json_value(data: object) -> Json:
    """Return plain Python values in place of arrays and tuples; NaN and infinite numbers become null."""
    if isinstance(data, Mapping):
        return {str(key): json_value(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [json_value(value) for value in data]
    if hasattr(data, "tolist"):  # arrays of numpy, and their numbers
        return json_value(data.tolist())
    if data is None or isinstance(data, (bool, int, str)):
        return data
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    raise TypeError(f"JSON has no {type(data).__name__}.")
