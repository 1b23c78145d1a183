"""The interfaces of objectives for solvers: a quadratic, or a convex loss of linear scores."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats

__all__ = [
    "ConvexPoint",
    "MarginObjective",
    "MarginPoint",
    "QuadraticObjective",
    "ScoreSample",
    "SmoothPoint",
]


class ConvexPoint(Protocol):
    """An objective evaluated at one coefficient vector."""

    @property
    def value(self) -> Floats:
        """The objective, one entry per output."""

    @property
    def gradient(self) -> Floats:
        """A subgradient."""


class SmoothPoint(ConvexPoint, Protocol):
    """A point at which the objective has curvature."""

    def hessian_product(self, v: Floats) -> Floats:
        """Apply the (generalised) Hessian."""


class QuadraticObjective(Protocol):
    """``w'Hw - 2b'w + c``, known by its products ``Hv``."""

    @property
    def n_features(self) -> int:
        """The length of a coefficient vector."""

    @property
    def rhs(self) -> Floats:
        """The linear term ``b``, a column per output where there are several."""

    @property
    def n_products(self) -> int:
        """The number of vectors multiplied by H so far; a block of k vectors counts k."""

    def product(self, v: Floats) -> Floats:
        """Apply ``H`` to a vector or to the columns of a block."""

    def matrix(self) -> Floats:
        """Return ``H`` itself."""

    def diagonal(self) -> Floats:
        """Return the diagonal of ``H``."""

    def sizes(self) -> Floats | None:
        """Return a cheap approximation of the diagonal of ``H``; None where it does not refer to columns."""

    def at(self, coef: Floats) -> SmoothPoint:
        """Evaluate at a coefficient vector."""


class MarginPoint(ConvexPoint, Protocol):
    """A loss of linear scores, at some scores."""

    @property
    def score_gradient(self) -> Floats:
        """A subgradient with respect to the scores; no data are read for it."""

    @property
    def offset(self) -> float:
        """Where the plane that touches the loss here meets scores of 0: ``loss - gradient'f``."""


class ScoreSample(Protocol):
    """A loss estimated from some of the rows."""

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Which rows."""

    def at_scores(self, scores: Floats) -> MarginPoint:
        """Evaluate where the scores of those rows are known."""


class MarginObjective(Protocol):
    """A convex loss of the scores ``Xw``: moving along a line of scores reads no data."""

    @property
    def n_features(self) -> int:
        """The length of a coefficient vector."""

    @property
    def n_reads(self) -> int:
        """The number of complete reads of the data so far."""

    def scores(self, coef: Floats) -> Floats:
        """Return ``Xw``: one read."""

    def pull_back(self, score_gradient: Floats) -> Floats:
        """Return ``X'u`` for a vector or the columns of a block: one read."""

    def at_scores(self, scores: Floats) -> MarginPoint:
        """Evaluate where the scores are known."""

    def sample(self, n_rows: int) -> ScoreSample | None:
        """Return an estimate from about `n_rows` rows; None where that would not be much cheaper."""
