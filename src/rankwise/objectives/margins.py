"""The weighted mean of a loss over pairs: the objective of RankSVM without its penalty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.design import Products
from rankwise.losses import HingeLoss, SmoothLoss
from rankwise.pairs.graph import MarginPairs, SmoothedHinge

__all__ = ["HingeObjective", "HingePoint", "MarginObjective", "MarginPoint", "MeanLoss", "MeanLossPoint"]


class MarginPoint:
    """The mean loss at some scores."""

    def __init__(self, objective: MarginObjective[Any], point: Any) -> None:
        self._objective, self._point = objective, point
        self._total = objective.pairs.weight

    @cached_property
    def value(self) -> Floats:
        """The mean loss."""
        return np.asarray(self._point.value / self._total)

    @cached_property
    def score_gradient(self) -> Floats:
        """A subgradient with respect to the scores; no data are read for it."""
        gradient: Floats = self._point.gradient / self._total
        return gradient

    @property
    def offset(self) -> float:
        """Where the plane that touches the loss here meets scores of 0: ``loss - gradient'f``."""
        return float(self._point.offset / self._total) + self._at_base(self.score_gradient)

    def _at_base(self, gradient: Floats) -> float:
        """Return the value at the base of the linear function with this gradient."""
        base = self._objective.base
        return 0.0 if base is None else float(gradient @ base)

    @cached_property
    def gradient(self) -> Floats:
        """A subgradient with respect to the coefficients."""
        return self._objective.pull_back(self.score_gradient)


class MeanLossPoint(MarginPoint):
    """The mean of a smooth loss at some scores."""

    def score_hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian with respect to the scores; no data are read for it."""
        image: Floats = self._point.hessian_product(v) / self._total
        return image

    def score_hessian_diagonal(self) -> Floats:
        """Return the diagonal of the Hessian with respect to the scores."""
        diagonal: Floats = self._point.hessian_diagonal() / self._total
        return diagonal

    def hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian: two reads."""
        return self._objective.pull_back(self.score_hessian_product(self._objective.scores(v)))


class HingePoint(MarginPoint):
    """The mean hinge at some scores."""

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the mean Huberised hinge at the same scores."""
        point: SmoothedHinge = self._point.smoothed(delta)
        gradient = point.gradient / self._total
        active = point.active / self._total + self._at_base(gradient)
        return SmoothedHinge(point.value / self._total, gradient, active)

    def smoothed_hessian_diagonal(self, delta: float) -> Floats:
        """Return the diagonal of its Hessian with respect to the scores."""
        diagonal: Floats = self._point.smoothed_hessian_diagonal(delta) / self._total
        return diagonal


Point_co = TypeVar("Point_co", bound=MarginPoint, covariant=True)


class MarginObjective(ABC, Generic[Point_co]):
    """A convex loss of the scores ``Xw``: moving along a line of scores reads no data.

    Parameters
    ----------
    base : (rows,) float64, optional
        Scores of an earlier model, added to all scores before the loss is evaluated.
    scale : (features,) float64, optional
        The factor of each coefficient: its unit.
    """

    def __init__(
        self, design: Products, pairs: MarginPairs, base: Floats | None = None, scale: Floats | None = None
    ) -> None:
        self.design, self.pairs = design, pairs
        self.base, self._scale = base, scale

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.design.shape[1])

    @property
    def n_reads(self) -> int:
        """The number of complete reads of the data so far."""
        return self.design.reads

    def zero_scores(self) -> Floats:
        """Return the scores of no coefficients, without the base."""
        return self.design.zero_scores()

    def scores(self, coef: Floats) -> Floats:
        """Return ``Xw``, without the base: one read."""
        return self.design.dot(coef if self._scale is None else coef * self._scale)

    def pull_back(self, score_gradient: Floats) -> Floats:
        """Return ``X'u`` for a vector or the columns of a block: one read."""
        pulled = self.design.tdot(score_gradient)
        if self._scale is None:
            return pulled
        return pulled * (self._scale if pulled.ndim == 1 else self._scale[:, None])

    def at(self, coef: Floats) -> Point_co:
        """Evaluate at a coefficient vector."""
        return self.at_scores(self.scores(coef))

    def at_scores(self, scores: Floats) -> Point_co:
        """Evaluate where the scores are known."""
        return self._at(scores if self.base is None else scores + self.base)

    @abstractmethod
    def _at(self, scores: Floats) -> Point_co:
        """Evaluate at scores that contain the base."""

    def sample(self, n_rows: int) -> tuple[Rows, MarginObjective[Point_co]] | None:
        """Return about `n_rows` rows and the loss over their pairs; None where that would not be much cheaper."""
        return None


class MeanLoss(MarginObjective[MeanLossPoint]):
    """``(1/Σω) Σ ω loss`` for a smooth loss."""

    def __init__(
        self,
        design: Products,
        pairs: MarginPairs,
        loss: type[SmoothLoss],
        base: Floats | None = None,
        scale: Floats | None = None,
    ) -> None:
        super().__init__(design, pairs, base, scale)
        self._loss = loss

    def _at(self, scores: Floats) -> MeanLossPoint:
        return MeanLossPoint(self, self._loss(self.pairs, scores))


class HingeObjective(MarginObjective[HingePoint]):
    """``(1/Σω) Σ ω max(0, t)``, which can be smoothed."""

    def _at(self, scores: Floats) -> HingePoint:
        return HingePoint(self, HingeLoss(self.pairs, scores))

    def sample(self, n_rows: int) -> tuple[Rows, HingeObjective] | None:
        """Return the mean hinge over the pairs of about `n_rows` rows."""
        thinned = self.pairs.thinned(n_rows)
        if thinned is None:
            return None
        rows, pairs = thinned
        return rows, HingeObjective(self.design, pairs, None if self.base is None else self.base[rows])
