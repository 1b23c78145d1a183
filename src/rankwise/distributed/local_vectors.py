"""Values per row on one worker: scores, and what a loss over its whole queries makes of them.

The client names what is made, and says in which `Step`s; it gets back the numbers that it wants. A step whose result is
here already is not done again: so any exchange can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from rankwise.arrays import Floats

__all__ = ["LocalVectors", "Pairs", "Step", "Terms", "Violated", "Want"]

Terms = tuple[tuple[float, str], ...]  # factors and names: a sum


class _Smoothed(Protocol):
    """`rankwise.pairs.graph.SmoothedHinge`."""

    @property
    def value(self) -> float:
        """The loss."""

    @property
    def gradient(self) -> Floats:
        """Its derivative by the scores."""

    @property
    def active(self) -> float:
        """Slopes times margins."""


class Violated(Protocol):
    """Pairs inside their margin at some scores: what is asked of `rankwise.pairs.graph.ViolatedPairs`."""

    @property
    def net_wins(self) -> Floats:
        """What each row wins minus what it loses."""

    @property
    def active(self) -> float:
        """Weights times margins."""

    def hinge(self) -> float:
        """Return the hinge."""

    def degrees(self, width: float | None = None) -> Floats:
        """Return the weight of each row's pairs."""

    def laplacian(self, v: Floats, width: float | None = None) -> Floats:
        """Apply their Laplacian."""

    def squared_hinge(self) -> tuple[float, Floats]:
        """Return the squared hinge and its derivative."""

    def smoothed(self, delta: float) -> _Smoothed:
        """Return the smoothed hinge."""


class Pairs(Protocol):
    """Pairs of whole queries: what is asked of `rankwise.pairs.violations.ViolationSweep`."""

    n_threads: int

    @property
    def n_rows(self) -> int:
        """How many rows they refer to."""

    def at(self, scores: Floats) -> Violated:
        """Return those that are violated."""


class _Rows(Protocol):
    """Rows that are multiplied by vectors in the client's order of columns: `WorkerRows`."""

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``."""

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""


@dataclass(frozen=True)
class Step:
    """How something is made.

    Attributes
    ----------
    name : str
        What it is called from then on.
    made_by : str
        "score": ``X coef``. "sum": of `terms`. "point": the pairs violated at the scores of that name. Of a point:
        "net_wins"; "smoothed", the gradient of the hinge smoothed by `width`, or "squared", that of the squared hinge,
        with their numbers; "laplacian", the image of a vector.
    """

    name: str
    made_by: Literal["score", "sum", "point", "net_wins", "smoothed", "squared", "laplacian"]
    coef: Floats | None = None
    terms: Terms = ()
    point: str = ""
    width: float | None = None


@dataclass(frozen=True)
class Want:
    """What the client gets back: a sum over all workers.

    Attributes
    ----------
    what : str
        "numbers" of a gradient: its loss, and the active margins. "hinge" of a point: the same. "dot": the products
        of a vector with those of `terms`. "pulled": ``X'u`` of the sum of `terms`.
    """

    what: Literal["numbers", "hinge", "dot", "pulled"]
    name: str = ""
    terms: Terms = ()


class LocalVectors:
    """What was made so far.

    Parameters
    ----------
    rows : WorkerRows
    pairs : Pairs
        Of the queries that are here.
    """

    def __init__(self, rows: _Rows, pairs: Pairs) -> None:
        self._rows, self._pairs = rows, pairs
        self._vectors: dict[str, Floats] = {}
        self._points: dict[str, Violated] = {}
        self._numbers: dict[str, Floats] = {}

    def exchange(self, dropped: list[str], steps: list[Step], wanted: list[Want]) -> list[Floats]:
        """Forget some things, make others, and return what is wanted."""
        for name in dropped:
            for kept in (self._vectors, self._points, self._numbers):
                kept.pop(name, None)
        for step in steps:
            if step.name not in self._vectors and step.name not in self._points:
                self._make(step)
        return [self._found(want) for want in wanted]

    def degrees(self, point: str, width: float | None) -> Floats:
        """Return for each row the weight of its violated pairs."""
        return self._points[point].degrees(width)

    def _make(self, step: Step) -> None:
        if step.made_by == "point":
            self._points[step.name] = self._pairs.at(self._vectors[step.point])
        else:
            self._vectors[step.name] = self._vector(step)

    def _vector(self, step: Step) -> Floats:
        if step.made_by == "score":
            assert step.coef is not None
            return self._rows.dot(step.coef)
        if step.made_by == "sum":
            return self._sum(step.terms)
        point = self._points[step.point]
        if step.made_by == "smoothed":
            assert step.width is not None
            smoothed = point.smoothed(step.width)
            self._numbers[step.name] = np.array([smoothed.value, smoothed.active])
            return smoothed.gradient
        if step.made_by == "squared":
            value, gradient = point.squared_hinge()
            self._numbers[step.name] = np.array([value])
            return gradient
        if step.made_by == "laplacian":
            return point.laplacian(self._sum(step.terms), step.width)
        return point.net_wins

    def _found(self, want: Want) -> Floats:
        if want.what == "numbers":
            return self._numbers[want.name]
        if want.what == "hinge":
            point = self._points[want.name]
            return np.array([point.hinge(), point.active])
        if want.what == "pulled":
            return self._rows.tdot(self._sum(want.terms))
        return np.array([float(self._vectors[want.name] @ self._vectors[other]) for _, other in want.terms])

    def _sum(self, terms: Terms) -> Floats:
        if len(terms) == 1 and terms[0][0] == 1.0:
            return self._vectors[terms[0][1]]
        total = np.zeros(self._pairs.n_rows)
        for factor, name in terms:
            total += factor * self._vectors[name]
        return total
