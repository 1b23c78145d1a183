"""Few cases in which every two settings meet, in place of the product of all settings."""

from itertools import combinations, product

import numpy as np
import pytest


def all_pairs(factors, allowed, given=()):
    """Return the given cases that are still allowed, and more until every allowed pair of values is in one.

    Greedy: the next case is the one that holds most of the pairs which no case holds yet, the first of equals.

    Parameters
    ----------
    factors : dict of lists
        The values of each setting.
    allowed : callable
        Takes a case as keywords and tells whether it is valid.
    given : iterable of dicts
        Cases to begin with.
    """
    names = list(factors)
    every = [
        values
        for values in product(*(range(len(of)) for of in factors.values()))
        if allowed(**{name: factors[name][at] for name, at in zip(names, values, strict=True)})
    ]
    levels = np.array(every)
    size = max(map(len, factors.values()))
    pairs = np.column_stack(
        [
            (number * size + levels[:, a]) * size + levels[:, b]
            for number, (a, b) in enumerate(combinations(range(len(names)), 2))
        ]
    )
    missing = np.zeros(pairs.max() + 1, dtype=bool)
    missing[pairs] = True
    place = {values: at for at, values in enumerate(every)}
    chosen = []

    def take(row):
        chosen.append({name: factors[name][at] for name, at in zip(names, every[row], strict=True)})
        missing[pairs[row]] = False

    for case in given:
        exists = case.keys() == factors.keys() and all(case[name] in factors[name] for name in names)
        row = place.get(tuple(factors[name].index(case[name]) for name in names)) if exists else None
        if row is not None:
            take(row)
    while missing.any():
        take(int(missing[pairs].sum(axis=1).argmax()))
    return chosen


def pairwise(allowed=lambda **_: True, indirect=(), **factors):
    """Parametrize a test by cases in which every two settings meet, in place of stacked decorators.

    Parameters
    ----------
    allowed : callable
        Takes a case as keywords and tells whether it is valid.
    indirect : list of str
        Arguments that are fixtures, which make what the test gets of the values.
    **factors : iterables
        The values of each argument of the test.
    """
    cases = all_pairs({name: list(values) for name, values in factors.items()}, allowed)
    values = [tuple(case.values()) for case in cases]
    return pytest.mark.parametrize(list(factors), values, indirect=indirect)


def is_valid_cost(ties, cost, **_):
    """Whether the two go together: pairs that tie have no relative cost."""
    return (ties, cost) != ("include", "relative")
