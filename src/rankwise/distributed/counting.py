"""Violated pairs counted where the rows are: a design and pairs for objectives of margins, over `RowVector`s."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

from rankwise.arrays import Floats, Ints
from rankwise.distributed.local_vectors import Pairs, Want
from rankwise.distributed.row_vectors import RowSpace, RowVector, as_floats
from rankwise.pairs.graph import SmoothedHinge

if TYPE_CHECKING:
    from rankwise.distributed.design import DaskDesign

__all__ = ["ClusterPairs", "ClusterScores", "QueryPairs", "pairs_on"]


class QueryPairs(Protocol):
    """Pairs inside queries that can be divided: `rankwise.pairs.violations.ViolationSweep`."""

    @property
    def n_rows(self) -> int:
        """How many rows they refer to."""

    @property
    def weight(self) -> float:
        """Their total weight."""

    @property
    def query_rows(self) -> tuple[Ints, Ints]:
        """The rows in the order of their queries, and where each query starts."""

    def part(self, rows: Ints | slice, queries: Ints) -> Pairs:
        """Return the pairs of some queries, whose rows are these."""


def pairs_on(design: DaskDesign, pairs: QueryPairs) -> RowSpace | None:
    """Tell every worker the pairs of its queries; None where a query is on several."""
    shares = design.cluster.shares
    owner = shares.query_owners(*pairs.query_rows)
    if owner is None:
        return None
    parts = [pairs.part(share.rows, (owner == number).nonzero()[0]) for number, share in enumerate(shares)]
    return RowSpace(design.cluster, parts)


@dataclass(frozen=True)
class ClusterScores:
    """What objectives of margins ask of a design; scores stay on the workers."""

    design: DaskDesign
    space: RowSpace

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.design.shape

    @property
    def reads(self) -> int:
        """How many times the data were read completely so far."""
        return self.design.reads

    def zero_scores(self) -> Floats:
        """Return the scores of no coefficients."""
        return as_floats(self.space.zeros())

    def dot(self, v: Floats) -> Floats:
        """Return ``X v``, which is made when somebody looks at it."""
        self.design.count(v)
        return as_floats(self.space.scores(v))

    def tdot(self, u: Floats) -> Floats:
        """Return ``X' u``."""
        self.design.reads += 1
        self.design.cluster.n_products += 1
        return self.space.pulled(cast("RowVector", u))


@dataclass(frozen=True)
class ClusterPairs:
    """Pairs with margins inside whole queries; implements `MarginPairs`."""

    pairs: QueryPairs
    space: RowSpace

    @property
    def n_rows(self) -> int:
        """How many rows the pairs refer to."""
        return self.pairs.n_rows

    @property
    def weight(self) -> float:
        """The total weight of the pairs."""
        return self.pairs.weight

    def at(self, scores: Floats) -> ClusterViolations:
        """Return the pairs that are violated at some scores."""
        return ClusterViolations(self.space, cast("RowVector", scores))

    def thinned(self, n_rows: int) -> None:
        """None: only one large ranking is thinned, and it is not whole on a worker."""


class ClusterViolations:
    """The pairs that are violated at some scores; implements `ViolatedPairs`."""

    def __init__(self, space: RowSpace, scores: RowVector) -> None:
        self._space = space
        # A line search asks for the products of gradients with what the scores are the sum of.
        parts = [node for _, node in scores.terms]
        own = scores.node()
        self._beside = [own, *(node for node in parts if node is not own)]
        self._point = space.point(own)

    @cached_property
    def net_wins(self) -> Floats:
        """For each row the weight it wins minus the weight it loses."""
        return as_floats(RowVector(self._space, ((1.0, self._space.of_point("net_wins", self._point)),)))

    @cached_property
    def _hinge(self) -> tuple[float, float]:
        (found,) = self._space.find([(Want("hinge", self._point.name), self._point)])
        return float(found[0]), float(found[1])

    @property
    def active(self) -> float:
        """``Σ ωz``."""
        return self._hinge[1]

    def hinge(self) -> float:
        """Return ``Σ ω (z - (f_i - f_j))``."""
        return self._hinge[0]

    def squared_hinge(self) -> tuple[float, Floats]:
        """Return ``Σ ω (z - (f_i - f_j))²`` and its derivative by the scores."""
        numbers, gradient = self._gradient("squared", None)
        return float(numbers[0]), gradient

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the Huberised hinge at the same scores."""
        numbers, gradient = self._gradient("smoothed", delta)
        return SmoothedHinge(float(numbers[0]), gradient, float(numbers[1]))

    def laplacian(self, v: Floats, width: float | None = None) -> Floats:
        """Apply their ``L = A'ΩA`` to a vector, of those with ``t <= width`` only if that is given."""
        image = self._space.image(self._point, cast("RowVector", v), width)
        return as_floats(RowVector(self._space, ((1.0, image),)))

    def degrees(self, width: float | None = None) -> Floats:
        """Return for each row the weight of its violated pairs: an array at the client."""
        return self._space.degrees(self._point, width)

    def _gradient(self, made_by: str, width: float | None) -> tuple[Floats, Floats]:
        space = self._space
        node = space.of_point(made_by, self._point, width)
        wanted = [(Want("numbers", node.name), node), space.dots_with(node, self._beside)]
        numbers, _ = space.find(wanted, self._beside)
        return numbers, as_floats(RowVector(space, ((1.0, node),)))
