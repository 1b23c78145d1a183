"""Column parameters of additive models: categories, monotone columns and pairs of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from rankwise.additive.knots import KnotPlan
from rankwise.data.containers import as_array
from rankwise.data.validation import check_choice, list_names
from rankwise.exceptions import InvalidInputError

# "auto", how many pairs of columns get a surface, or which.
Interactions = str | int | Sequence[Sequence[int | str]]


def read_columns(name: str, given: Iterable[Any], n_columns: int, names: Sequence[str]) -> list[int]:
    """Return the columns that a parameter names, by number or by name."""
    numbers = []
    for column in list_names(name, given):
        is_number = isinstance(column, Integral) and not isinstance(column, bool)
        if isinstance(column, str) and column in names:
            numbers.append(list(names).index(column))
        elif is_number and -n_columns <= column < n_columns:
            numbers.append(int(column) % n_columns)
        else:
            raise InvalidInputError(
                f"{name} names a column {column!r} that X does not have.",
                "use the names of a data frame's columns, or numbers from 0.",
            )
    return numbers


def read_directions(given: Any, n_columns: int, names: Sequence[str]) -> dict[int, int]:
    """Return the columns whose curves must be monotone, and which way."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        columns, signs = read_columns("monotone", given, n_columns, names), list(given.values())
    else:
        listed = as_array("monotone", given)
        signs = listed.tolist()
        columns = list(range(listed.size))
        if listed.shape != (n_columns,):
            raise InvalidInputError(
                f"monotone has {listed.size} entries, and X has {n_columns} columns.",
                "pass one of -1, 0, 1 per column, or a dict such as {'price': -1}.",
            )
    for sign in signs:
        if sign not in (-1, 0, 1):
            raise InvalidInputError(
                f"monotone has {sign!r}.", "use 1 (never falls), -1 (never rises) or 0 (free)."
            )
    return {column: int(sign) for column, sign in zip(columns, signs, strict=True) if sign}


def lists_pairs(given: Any) -> bool:
    """Tell whether something lists pairs of columns, maybe none."""
    is_list = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, (str, bytes))
    is_list = is_list and getattr(given, "ndim", 1) > 0
    return is_list and all(np.ndim(pair) == 1 for pair in given)


def check_interactions(given: Any) -> None:
    """Raise unless something is "auto", a number of surfaces, or a list of pairs of columns."""
    if isinstance(given, str):
        check_choice("interactions", given, ("auto",))
    elif not lists_pairs(given) and (not isinstance(given, Integral) or isinstance(given, bool) or given < 0):
        raise InvalidInputError(
            f"interactions={given!r} is neither a number of pairs nor a list of pairs.",
            "use 'auto', a number such as 20, or a list such as [(0, 3), (1, 2)].",
        )


def read_surfaces(
    given: Iterable[Any],
    plan: KnotPlan,
    directions: Mapping[int, int],
    n_columns: int,
    names: Sequence[str],
) -> list[tuple[int, int]]:
    """Return listed pairs of columns as pairs of sides, each once."""
    number = {side.column: place for place, side in enumerate(plan.sides)}
    pairs = []
    for pair in given:
        columns = read_columns("interactions", pair, n_columns, names)
        if len(columns) != 2 or columns[0] == columns[1]:
            raise InvalidInputError(
                f"interactions has {pair!r}, which is not a pair of columns.", "list pairs such as [(0, 3)]."
            )
        reasons = {"both columns are constant inside every query": all(c in plan.constant for c in columns)}
        for column in columns:
            reasons[f"column {column} has one value everywhere"] = column not in number
            reasons[f"column {column} must be monotone, which a surface would undo"] = column in directions
        for reason, holds in reasons.items():
            if holds:
                raise InvalidInputError(f"interactions has {pair!r}, but {reason}.", "leave that pair out.")
        first, second = sorted(number[column] for column in columns)
        pairs.append((first, second))
    return list(dict.fromkeys(pairs))
