"""In which order what is tried: each stage starts from the best of those before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankwise.arrays import is_sparse
from rankwise.automatic.candidates import KERNELS, METHODS, SCALINGS, Candidate
from rankwise.automatic.labelled_rows import LabelledRows
from rankwise.automatic.problems import Problem
from rankwise.data.mapped import MappedMatrix

__all__ = ["Facts", "SoFar", "stages"]

# Up to so many rows the best kernel is also tried on all of them, and up to so many on a larger reduced set: both take
# some seconds. All of 2,250 rows had errors 2 to 21 % below those of 300 (the Laplacian kernel on six sets that were
# developed on), 700 rows a half of that.
_ALL_ROWS = 2500
_POLISHED_ROWS = 5000
_POLISHED_BASIS = 1000

Options = tuple[tuple[str, Any], ...]


class SoFar(Protocol):
    """What was tried so far."""

    def best(self, *methods: str, **options: object) -> Candidate | None:
        """Return the best candidate, of some methods or of all, with some options; None where none was tried."""

    def is_close(self, method: str) -> bool:
        """Tell whether the best candidate of a method may be the best of all, as far as figures are sure."""

    def ranker(self, candidate: Candidate) -> Any:
        """Return what was fitted for a candidate, with what it chose."""

    def promising(self, scalings: Sequence[str]) -> list[str]:
        """Sort scalings by how well linear models did on them, without those that are clearly worse."""


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
    has_ranks : bool
        Whether labels may be replaced by their ranks: the metric counts pairs.
    varies_loss, varies_basis : bool
        Whether other losses, and larger reduced sets, may be tried.
    n_rows : int
    has_magnitudes : bool
        Whether listed pairs say by how much the winner won.
    is_sample : bool
        Whether finalists are to be found, which then are compared by more rows.
    """

    kind: str
    has_queries: bool
    is_sparse: bool
    is_mapped: bool
    has_ties: bool
    has_levels: bool
    has_sizes: bool
    has_ranks: bool
    varies_loss: bool
    n_rows: int
    has_magnitudes: bool = False
    is_sample: bool = False
    varies_basis: bool = True

    @classmethod
    def of(cls, problem: Problem, *, varies_loss: bool, varies_basis: bool, is_sample: bool = False) -> Facts:
        """Look at the data; one alpha of the caller's, where the loss does not vary, is of one loss."""
        X = problem.columns.X
        stored: dict[str, Any] = {
            "is_sparse": is_sparse(X),
            "is_mapped": isinstance(X, MappedMatrix),
            "varies_loss": varies_loss,
            "varies_basis": varies_basis,
            "n_rows": problem.n_rows,
            "is_sample": is_sample,
        }
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
                has_ranks=has_levels and problem.metric.takes_weights,  # those that count pairs do
                **stored,
            )
        magnitude = getattr(problem, "pairs").magnitude  # noqa: B009
        return cls(
            "pairs",
            has_queries=False,
            has_ties=magnitude is not None and bool((magnitude == 0).any()),
            has_levels=magnitude is not None and np.unique(magnitude[magnitude > 0]).size > 1,
            has_sizes=False,
            has_ranks=False,
            has_magnitudes=magnitude is not None and bool((magnitude != 1).any()),
            **stored,
        )


def stages(
    facts: Facts, methods: Sequence[str] | None, scalings: Sequence[str] | None, so_far: SoFar
) -> Iterator[list[Candidate]]:
    """Yield lists of candidates; `so_far` tells, when the next list is asked for, how those before it did.

    Parameters
    ----------
    facts : Facts
    methods, scalings : sequence of str, optional
        What the caller allows.
    so_far : SoFar
    """
    best = so_far.best
    possible = [
        name
        for name, method in METHODS.items()
        if facts.kind in method.takes and (methods is None or name in methods)
    ]
    if facts.has_magnitudes and methods is None:
        possible.remove("logistic")  # a model of who wins, which says nothing of by how much
    linear = [name for name in possible if METHODS[name].form == "linear"]
    ways = list(scalings) if scalings is not None else _scalings(facts)
    if linear:
        yield from _linear(facts, linear, ways, so_far, is_asked=methods is not None)
    start = best(*linear) if linear else None
    if "curves" in possible and not facts.is_sparse:
        yield from _curves("curves", ways, start)
    if "surfaces" in possible and not facts.is_sparse:
        yield from _curves("surfaces", ways, best("curves") or start)
    if "kernel" in possible:
        yield from _kernels(facts, ways, start, so_far, linear)


def _linear(
    facts: Facts, methods: Sequence[str], ways: Sequence[str], so_far: SoFar, *, is_asked: bool
) -> Iterator[list[Candidate]]:
    """Yield linear models: scalings first, by the quickest method, then what pairs ask for, then other losses."""
    best = so_far.best
    first, *others = methods
    yield [Candidate(first, way) for way in ways if "+" not in way]
    yield [Candidate(first, way) for way in _beside(ways, best(first))]
    if first == "rls" and facts.varies_loss:
        for variants in _losses(facts):
            start = best("rls")
            if start is not None:
                yield [
                    Candidate("rls", start.scaling, _joined(start.options, options)) for options in variants
                ]
    for name in others:
        found = best(*methods)
        # The plain hinge costs most; it is worth trying where margins help at all, and hardly differs on many rows.
        is_worth = found is not None and found.method != "rls" and not facts.is_sample
        if found is not None and (name != "svm" or is_asked or is_worth):
            yield [Candidate(name, found.scaling)]


def _beside(ways: Sequence[str], found: Candidate | None) -> list[str]:
    """Return which columns to try side by side: with ranks inside queries, or with what is best inside them."""
    pairs = [way for way in ways if "+" in way]
    if found is None or not found.needs_queries:
        return [way for way in pairs if way.endswith("rank")] or pairs
    own = [way for way in pairs if way.endswith(f"+{found.scaling}")]
    return own or pairs


def _curves(name: str, ways: Sequence[str], start: Candidate | None) -> Iterator[list[Candidate]]:
    """Yield additive models of columns as they are, and of what is best inside queries."""
    if name == "surfaces" and start is not None and start.method == "curves":
        yield [Candidate(name, start.scaling)]
        return
    plain = next((way for way in ("none", "standard", "rank") if way in ways), ways[0])
    inside = [start.scaling] if start is not None and start.needs_queries else []
    yield [Candidate(name, way) for way in dict.fromkeys([plain, *inside])]


def _kernels(
    facts: Facts, ways: Sequence[str], start: Candidate | None, so_far: SoFar, linear: Sequence[str]
) -> Iterator[list[Candidate]]:
    """Yield kernels on standardised columns or on columns by rank, and where they are ahead, variants of the best.

    The other of the two scalings is tried where the first comes close to the best, and linear models did not clearly
    worse on it. Elsewhere it was the best of all on 2 of 95 folds that were developed on, which lost nothing on test
    rows.
    """
    best = so_far.best
    options = start.options if start is not None and start.method == "rls" else ()
    if not facts.has_queries:
        # A reduced set has closed forms for whole queries; for the rows of one ranking with other options it has none.
        options = tuple(option for option in options if option[0] == "labels")
    plain = tuple(option for option in options if option[0] != "labels")
    # Pairs that are all 1 apart know labels by their order alone, as their ranks do.
    ranks_labels = facts.has_ranks and facts.varies_loss and ("cost", "unit") not in plain
    first = _joined(plain, (("labels", "ranks"),)) if ranks_labels else plain
    scalings = [way for way in ("standard", "max-abs", "rank") if way in ways] or ways[:1]
    better, *others = so_far.promising(scalings)
    names = [name for name in KERNELS if name == "rbf" or not facts.is_sparse]
    yield [Candidate("kernel", better, (("kernel", name), *first)) for name in names]
    found = best("kernel")
    if found is None or facts.is_sample:
        return
    if so_far.is_close("kernel"):
        yield [Candidate("kernel", way, (("kernel", name), *first)) for way in others for name in names]
        found = best("kernel") or found
    if best() == found:
        if ranks_labels:
            yield [Candidate("kernel", found.scaling, (found.options[0], *plain))]
        if start is not None:
            found = best("kernel") or found
            yield [Candidate("kernel", start.scaling, found.options)]
        found = best("kernel") or found
    if facts.varies_basis and best("kernel", *linear) == found and facts.n_rows <= _POLISHED_ROWS:
        # A rough kernel gains most by more rows, wherever kernels are worth their while at all.
        rough = best("kernel", kernel=KERNELS[0]) or found
        yield [
            _with_more_rows(one, facts, so_far)
            for one in dict.fromkeys([rough, found])
            if one in (rough, best())
        ]


def _with_more_rows(candidate: Candidate, facts: Facts, so_far: SoFar) -> Candidate:
    """Return a kernel on all rows, or on a larger reduced set; the candidate itself where it has all rows already."""
    fitted = so_far.ranker(candidate)
    if fitted.basis is None:
        return candidate
    size = "all" if facts.n_rows <= _ALL_ROWS else _POLISHED_BASIS
    gamma = float(fitted.gamma_)
    # More rows bear a narrower kernel: on one set (wine_quality_red) it took the error from .151 to .138.
    is_narrowest = isinstance(fitted.gamma, list) and gamma == max(fitted.gamma)
    more = (("basis", size), ("gamma", (gamma, 3 * gamma) if is_narrowest else gamma))
    return Candidate("kernel", candidate.scaling, _joined(candidate.options, more))


def _joined(options: Options, more: Options) -> Options:
    return tuple({**dict(options), **dict(more)}.items())


def _scalings(facts: Facts) -> list[str]:
    if facts.is_mapped:
        return ["none"]  # a store that does not fit in memory is read where it lies
    plain = ["none", "max-abs"] if facts.is_sparse else ["none", "standard", "rank"]
    if facts.is_sparse or not facts.has_queries:
        return plain
    return [*plain, *(name for name in SCALINGS if "query" in name)]


def _losses(facts: Facts) -> list[list[Options]]:
    """Return what else least squares can be asked for, each list from the best of the one before."""
    ties: Options = (("ties", "exclude"),) if facts.has_ties else ()
    ranks: Options = (("labels", "ranks"),) if facts.has_ranks else ()
    unit: Options = (*ties, ("cost", "unit")) if facts.has_levels else ()
    first = [options for options in (ties, unit, ranks) if options]
    second: list[Options] = [(("query_weight", "equal"),)] if facts.has_sizes else []
    return [variants for variants in (first, second) if variants]
