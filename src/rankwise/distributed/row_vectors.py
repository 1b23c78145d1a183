"""Values per row that stay on the workers: what solvers of margin losses compute with, where queries are whole there.

Scores are linear in the coefficients, and a line search only asks for the loss and the slope at some of them: numbers.
So a `RowVector` stands for an array of scores, or of a loss's derivatives by them. Sums and multiples of such vectors
are noted down; when somebody wants numbers, or ``X'u``, the workers are told in one exchange what they do not know yet.

A solver's iteration then exchanges a vector of the columns each way, and a few numbers per trial of its line search;
nothing that has a value per row travels. A worker that was made again is told how to make everything that is still in
use: scores from the coefficients that they belong to, the rest from scores.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import numpy as np

from rankwise.arrays import Floats
from rankwise.distributed.cluster import UnknownError, undisturbed
from rankwise.distributed.local_vectors import Pairs, Step, Terms, Want
from rankwise.distributed.worker_rows import WorkerRows

if TYPE_CHECKING:
    from rankwise.distributed.cluster import Cluster

__all__ = ["RowSpace", "RowVector"]


class _Node:
    """Something that workers have under a name, or can make.

    Attributes
    ----------
    step : Step
    parents : tuple of _Node
        What the step refers to.
    coef : (columns,) float64 or None
        Of scores: the coefficients that they belong to, by which they can be made again without their parents.
    is_told : bool
        Whether workers have it.
    dots : dict of str to float
        Products with others that came with it.
    """

    def __init__(self, step: Step, parents: tuple[_Node, ...] = (), coef: Floats | None = None) -> None:
        self.step, self.parents, self.coef = step, parents, coef
        self.is_told = False
        self.dots: dict[str, float] = {}

    @property
    def name(self) -> str:
        return self.step.name

    def settle(self) -> None:
        """Take note that workers have it; sums of scores let their parts go."""
        self.is_told = True
        coefs = [parent.coef for parent in self.parents if parent.coef is not None]
        if self.step.made_by != "sum" or not coefs or len(coefs) < len(self.parents):
            return
        total = np.zeros_like(coefs[0])
        for (factor, _), coef in zip(self.step.terms, coefs, strict=True):
            total += factor * coef
        self.coef, self.parents = total, ()
        self.step = Step(self.name, "score", total)


class RowVector:
    """A value per row, on the workers; what arrays of scores are to solvers.

    Parameters
    ----------
    space : RowSpace
    terms : tuple of (float, _Node)
        What it is the sum of.
    """

    __array_ufunc__ = None  # a number times a vector is the vector's own affair

    def __init__(self, space: RowSpace, terms: tuple[tuple[float, _Node], ...]) -> None:
        self.space, self.terms = space, terms

    def __add__(self, other: RowVector) -> RowVector:
        factors: dict[_Node, float] = {}
        for factor, node in (*self.compact().terms, *other.compact().terms):
            factors[node] = factors.get(node, 0.0) + factor
        return RowVector(self.space, tuple((factor, node) for node, factor in factors.items()))

    def __sub__(self, other: RowVector) -> RowVector:
        return self + -other

    def __mul__(self, factor: float) -> RowVector:
        return RowVector(self.space, tuple((float(factor) * own, node) for own, node in self.terms))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> RowVector:
        return self * (1 / divisor)

    def __neg__(self) -> RowVector:
        return self * -1.0

    def __matmul__(self, other: RowVector) -> float:
        return self.space.product(self, other)

    def compact(self) -> RowVector:
        """Be one vector from now on, where it is a sum; so sums of sums do not grow."""
        if len(self.terms) > 1:
            self.terms = ((1.0, self.space.added(self.terms)),)
        return self

    def node(self) -> _Node:
        """Return the vector itself as something that workers have."""
        if len(self.terms) != 1 or self.terms[0][0] != 1.0:
            self.terms = ((1.0, self.space.added(self.terms)),)
        return self.terms[0][1]

    @property
    def named_terms(self) -> Terms:
        """Factors and names."""
        return tuple((factor, node.name) for factor, node in self.terms)


class RowSpace:
    """All vectors over the rows of a cluster, and the pairs of one loss, of which every worker has its queries'.

    Parameters
    ----------
    parts : list of Pairs
        One per share.
    """

    def __init__(self, cluster: Cluster, parts: Sequence[Pairs]) -> None:
        self.cluster, self.name = cluster, f"pairs-{uuid4().hex}"
        cluster.keep(self.name, WorkerRows.keep_pairs, [(part,) for part in parts])
        self._n_named = 0
        self._dropped: list[str] = []
        self._sums: list[weakref.ref[_Node]] = []
        weakref.finalize(self, cluster.forget, self.name).atexit = False

    def zeros(self) -> RowVector:
        """Return the scores of no coefficients."""
        return RowVector(self, ())

    def scores(self, coef: Floats) -> RowVector:
        """Return ``X coef``."""
        own = coef.copy()
        return RowVector(self, ((1.0, self.made(Step(self._new_name(), "score", own), (), own)),))

    def added(self, terms: tuple[tuple[float, _Node], ...]) -> _Node:
        """Return a sum as one vector."""
        named = tuple((factor, node.name) for factor, node in terms)
        coef = None if terms else np.zeros(self.cluster.survey.shape[1])
        node = self.made(Step(self._new_name(), "sum", terms=named), tuple(node for _, node in terms), coef)
        # It is made with the next exchange, whatever that is about: its parts need not wait for it.
        self._sums.append(weakref.ref(node))
        return node

    def point(self, scores: _Node) -> _Node:
        """Return the pairs that are violated at some scores."""
        return self.made(Step(self._new_name(), "point", point=scores.name), (scores,))

    def of_point(self, made_by: str, point: _Node, width: float | None = None) -> _Node:
        """Return what a loss makes of a point."""
        step = Step(self._new_name(), made_by, point=point.name, width=width)  # type: ignore[arg-type]
        return self.made(step, (point,))

    def image(self, point: _Node, v: RowVector, width: float | None) -> _Node:
        """Return the image of a vector under the Laplacian of the pairs that are violated at a point."""
        step = Step(self._new_name(), "laplacian", terms=v.named_terms, point=point.name, width=width)
        return self.made(step, (point, *(node for _, node in v.terms)))

    def made(self, step: Step, parents: tuple[_Node, ...], coef: Floats | None = None) -> _Node:
        """Return something that workers can make, and forget when it is no longer in use."""
        node = _Node(step, parents, coef)
        weakref.finalize(node, self._dropped.append, node.name).atexit = False
        return node

    def product(self, one: RowVector, other: RowVector) -> float:
        """Return the inner product."""
        total = 0.0
        for factor, node in one.terms:
            missing = tuple(term for term in other.terms if term[1].name not in node.dots)
            if missing:
                self.find([self.dots_with(node, [other for _, other in missing])], [n for _, n in missing])
            total += factor * sum(share * node.dots[own.name] for share, own in other.terms)
        return total

    def dots_with(self, node: _Node, others: Sequence[_Node]) -> tuple[Want, _Node]:
        """Return the wish for products of a vector with others, and the vector."""
        return Want("dot", node.name, tuple((1.0, other.name) for other in others)), node

    def find(self, wanted: Sequence[tuple[Want, _Node | None]], others: Iterable[_Node] = ()) -> list[Floats]:
        """Tell workers what they do not know, and return the sums of what they answer."""
        wishes = [want for want, _ in wanted]
        needed = [*(node for _, node in wanted if node is not None), *others]

        def exchange() -> list[Floats]:
            steps = self._untold(needed)
            dropped, self._dropped[:] = list(self._dropped), []
            totals: list[Floats] | None = None
            told = [(self.name, dropped, [node.step for node in steps], wishes)] * len(self.cluster.shares)
            try:
                for found in self.cluster.answers(WorkerRows.exchange, told):
                    totals = found if totals is None else [a + b for a, b in zip(totals, found, strict=True)]
            except UnknownError:
                for node in _with_parents(needed):
                    node.is_told = False
                raise
            for node in steps:
                node.settle()
            assert totals is not None
            return totals

        totals = undisturbed(exchange)
        for (want, node), found in zip(wanted, totals, strict=True):
            if want.what == "dot":
                assert node is not None
                node.dots.update(zip((name for _, name in want.terms), found.tolist(), strict=True))
        return totals

    def pulled(self, u: RowVector) -> Floats:
        """Return ``X'u``."""
        nodes = [node for _, node in u.terms]
        return self.find([(Want("pulled", terms=u.named_terms), None)], nodes)[0]

    def degrees(self, point: _Node, width: float | None) -> Floats:
        """Return for each row, at the client, the weight of its violated pairs; nothing else travels row by row."""

        def exchange() -> list[Floats]:
            self.find([], [point])
            try:
                return list(self.cluster.everywhere(WorkerRows.degrees, self.name, point.name, width))
            except UnknownError:
                for node in _with_parents([point]):
                    node.is_told = False
                raise

        return self.cluster.shares.joined(undisturbed(exchange))

    def _untold(self, needed: Iterable[_Node]) -> list[_Node]:
        """Return what workers have to make, what is needed for something else before it."""
        sums = [node for ref in self._sums if (node := ref()) is not None]
        self._sums.clear()
        return [node for node in _with_parents([*needed, *sums]) if not node.is_told]

    def _new_name(self) -> str:
        self._n_named += 1
        return f"v{self._n_named}"


def _with_parents(nodes: Iterable[_Node]) -> list[_Node]:
    """Return nodes and all that they are made of, each after what it is made of."""
    found: dict[_Node, None] = {}
    for node in nodes:
        _visit(node, found)
    return list(found)


def _visit(node: _Node, found: dict[_Node, None]) -> None:
    # No closure: one that calls itself would keep what it found until the garbage collector comes.
    if node not in found:
        for parent in node.parents:
            _visit(parent, found)
        found[node] = None


def as_floats(vector: RowVector) -> Floats:
    """Let a vector pass where solvers have an array: they only do with it what it can."""
    return cast("Floats", vector)
