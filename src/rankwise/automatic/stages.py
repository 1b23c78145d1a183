"""In which order what is tried: each stage starts from the best of those before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.automatic.candidates import METHODS, SCALINGS, Candidate
from rankwise.automatic.problems import LabelledRows, Problem
from rankwise.data.store.mapped import MappedMatrix

__all__ = ["Facts", "stages"]

Options = tuple[tuple[str, Any], ...]
# What was found so far: the best candidate of some methods, and whether one of them is worth following up.
Best = Callable[..., Candidate]


@dataclass(frozen=True)
class Facts:
    """What of the data decides which candidates make sense.

    Attributes
    ----------
    kind : {"labels", "pairs"}
    has_queries : bool
        Whether there are several.
    is_sparse, is_mapped : bool
    has_ties, has_levels : bool
        Whether some pairs tie, and whether differences between labels differ.
    has_sizes : bool
        Whether queries have different numbers of rows.
    is_small : bool
        Whether everything can be tried, and not only what is linear.
    """

    kind: str
    has_queries: bool
    is_sparse: bool
    is_mapped: bool
    has_ties: bool
    has_levels: bool
    has_sizes: bool

    @classmethod
    def of(cls, problem: Problem) -> Facts:
        """Look at the data."""
        X = problem.columns.X
        stored = {"is_sparse": sp.issparse(X), "is_mapped": isinstance(X, MappedMatrix)}
        if isinstance(problem, LabelledRows):
            queries = problem.queries
            order = np.lexsort((problem.y, queries.codes))
            labels, codes = problem.y[order], queries.codes[order]
            inside = codes[1:] == codes[:-1]
            steps = np.diff(labels)[inside]
            positive = steps[steps > 0]
            sizes = queries.sizes
            # Two levels a query, always equally far apart: the size of a difference says nothing.
            spread = np.maximum.reduceat(labels, queries.offsets[:-1]) - np.minimum.reduceat(
                labels, queries.offsets[:-1]
            )
            has_levels = positive.size > 0 and bool((spread[spread > 0] > positive.min() * (1 + 1e-9)).any())
            return cls(
                "labels",
                len(queries) > 1,
                has_ties=bool((steps == 0).any()),
                has_levels=has_levels,
                has_sizes=bool(sizes.min() != sizes.max()),
                **stored,
            )
        magnitude = getattr(problem, "pairs").magnitude  # noqa: B009
        return cls(
            "pairs",
            has_queries=False,
            has_ties=magnitude is not None and bool((magnitude == 0).any()),
            has_levels=magnitude is not None and np.unique(magnitude[magnitude > 0]).size > 1,
            has_sizes=False,
            **stored,
        )


def stages(
    facts: Facts, methods: Sequence[str] | None, scalings: Sequence[str] | None, best: Best
) -> Iterator[list[Candidate]]:
    """Yield lists of candidates; `best` tells, when the next list is asked for, the best of those that were tried.

    Parameters
    ----------
    facts : Facts
    methods, scalings : sequence of str, optional
        What the caller allows.
    best : callable
        ``best(*methods)`` is the best candidate so far, of these methods where any are named.
    """
    possible = [
        name
        for name, method in METHODS.items()
        if facts.kind in method.takes and (methods is None or name in methods)
    ]
    if facts.kind == "pairs" and facts.has_levels and methods is None:
        possible.remove("logistic")  # a model of who wins, which says nothing of by how much
    linear = [name for name in possible if METHODS[name].form == "linear"]
    ways = list(scalings) if scalings is not None else _scalings(facts)
    if linear:
        first, *others = linear
        yield [Candidate(first, way) for way in ways]
        if first == "rls":
            for variants in _losses(facts):
                start = best("rls")
                yield [
                    Candidate("rls", start.scaling, _joined(start.options, options)) for options in variants
                ]
        for name in others:
            # The plain hinge costs most; it is worth trying where margins help at all.
            if name != "svm" or methods is not None or best().method != "rls":
                yield [Candidate(name, best(*linear).scaling)]
    for name in [name for name in possible if name not in linear]:
        chosen = best() if linear else None
        # A reduced set has closed forms for whole queries; for the rows of one ranking with these options it has none.
        takes_options = facts.has_queries and chosen is not None and chosen.method == "rls"
        options = chosen.options if takes_options and chosen is not None else ()
        tried = list(dict.fromkeys([ways[min(1, len(ways) - 1)], *([chosen.scaling] if chosen else ways)]))
        yield [Candidate(name, way, options) for way in tried]


def _joined(options: Options, more: Options) -> Options:
    return tuple({**dict(options), **dict(more)}.items())


def _scalings(facts: Facts) -> list[str]:
    if facts.is_mapped:
        return ["none"]  # a store that does not fit in memory is read where it lies
    plain = ["none", "max-abs" if facts.is_sparse else "standard"]
    if facts.is_sparse or not facts.has_queries:
        return plain
    return [*plain, *(name for name in SCALINGS if "query" in name)]


def _losses(facts: Facts) -> list[list[Options]]:
    """Return what else least squares can be asked for, each list from the best of the one before."""
    ties: Options = (("ties", "exclude"),) if facts.has_ties else ()
    first = [options for options in (ties, (*ties, ("cost", "unit")) if facts.has_levels else ()) if options]
    second: list[Options] = [(("query_weight", "equal"),)] if facts.has_sizes else []
    return [variants for variants in (first, second) if variants]
