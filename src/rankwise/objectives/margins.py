"""The weighted mean of a loss over pairs: the objective of RankSVM without its penalty."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.design import Products
from rankwise.losses import HingeLoss, HingeLossPoint, SmoothLoss, SmoothLossPoint
from rankwise.pairs.graph import MarginPairs, SmoothedHinge

__all__ = ["HingeObjective", "HingePoint", "HingeSample", "MeanLoss", "MeanLossPoint"]


class _MeanOverPairs:
    """A design and pairs over its rows.

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
        self.design = design
        self.pairs = pairs
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
        """Return ``Xw``, without the base."""
        return self.design.dot(coef if self._scale is None else coef * self._scale)

    def pull_back(self, score_gradient: Floats) -> Floats:
        """Return ``X'u``."""
        pulled = self.design.tdot(score_gradient)
        if self._scale is None:
            return pulled
        return pulled * (self._scale if pulled.ndim == 1 else self._scale[:, None])

    def based(self, scores: Floats) -> Floats:
        """Return the scores at which the loss is evaluated."""
        return scores if self.base is None else scores + self.base


class MeanLoss(_MeanOverPairs):
    """``(1/Σω) Σ ω loss`` for a smooth loss; implements `MarginObjective`."""

    def __init__(
        self,
        design: Products,
        pairs: MarginPairs,
        loss: SmoothLoss,
        base: Floats | None = None,
        scale: Floats | None = None,
    ) -> None:
        super().__init__(design, pairs, base, scale)
        self._loss = loss

    def at(self, coef: Floats) -> MeanLossPoint:
        """Evaluate at a coefficient vector."""
        return self.at_scores(self.scores(coef))

    def at_scores(self, scores: Floats) -> MeanLossPoint:
        """Evaluate where the scores are known."""
        return MeanLossPoint(self, self._loss.at(self.pairs, self.based(scores)))

    def sample(self, n_rows: int) -> None:
        """None: the solvers of smooth losses use all rows."""


class _MeanPoint:
    def __init__(self, objective: _MeanOverPairs, point: Any) -> None:
        self._objective = objective
        self._point = point

    @cached_property
    def value(self) -> Floats:
        """The mean loss."""
        return np.asarray(self._point.value / self._objective.pairs.weight)

    @cached_property
    def score_gradient(self) -> Floats:
        """A subgradient with respect to the scores."""
        gradient: Floats = self._point.gradient / self._objective.pairs.weight
        return gradient

    @property
    def offset(self) -> float:
        """Where the plane that touches the loss here meets scores of 0: ``loss - gradient'f``."""
        return float(self._point.offset / self._objective.pairs.weight) + self._at_base(self.score_gradient)

    def _at_base(self, gradient: Floats) -> float:
        """Return the value at the base of the linear function with this gradient."""
        base = self._objective.base
        return 0.0 if base is None else float(gradient @ base)

    @cached_property
    def gradient(self) -> Floats:
        """A subgradient with respect to the coefficients."""
        return self._objective.pull_back(self.score_gradient)


class MeanLossPoint(_MeanPoint):
    """The mean of a smooth loss at some scores."""

    def __init__(self, objective: MeanLoss, point: SmoothLossPoint) -> None:
        super().__init__(objective, point)

    def score_hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian with respect to the scores; no data are read for it."""
        image: Floats = self._point.hessian_product(v) / self._objective.pairs.weight
        return image

    def score_hessian_diagonal(self) -> Floats:
        """Return the diagonal of the Hessian with respect to the scores."""
        diagonal: Floats = self._point.hessian_diagonal() / self._objective.pairs.weight
        return diagonal

    def hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian: two reads."""
        return self._objective.pull_back(self.score_hessian_product(self._objective.scores(v)))


class HingeObjective(_MeanOverPairs):
    """``(1/Σω) Σ ω max(0, t)``; implements `MarginObjective`, and can be smoothed."""

    def at(self, coef: Floats) -> HingePoint:
        """Evaluate at a coefficient vector."""
        return self.at_scores(self.scores(coef))

    def at_scores(self, scores: Floats) -> HingePoint:
        """Evaluate where the scores are known."""
        return HingePoint(self, HingeLoss().at(self.pairs, self.based(scores)))

    def sample(self, n_rows: int) -> HingeSample | None:
        """Return the mean hinge over the pairs of about `n_rows` rows."""
        thinned = self.pairs.thinned(n_rows)
        return None if thinned is None else HingeSample(self, *thinned)


class HingeSample(_MeanOverPairs):
    """The mean hinge over the pairs of some rows."""

    def __init__(self, objective: HingeObjective, rows: Rows, pairs: MarginPairs) -> None:
        super().__init__(objective.design, pairs, None if objective.base is None else objective.base[rows])
        self.rows = rows

    def at_scores(self, scores: Floats) -> HingePoint:
        """Evaluate where the scores of those rows are known."""
        return HingePoint(self, HingeLoss().at(self.pairs, self.based(scores)))


class HingePoint(_MeanPoint):
    """The mean hinge at some scores."""

    def __init__(self, objective: _MeanOverPairs, point: HingeLossPoint) -> None:
        super().__init__(objective, point)

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the mean Huberised hinge at the same scores."""
        total = self._objective.pairs.weight
        point: SmoothedHinge = self._point.smoothed(delta)
        gradient = point.gradient / total
        return SmoothedHinge(point.value / total, gradient, point.active / total + self._at_base(gradient))

    def smoothed_hessian_diagonal(self, delta: float) -> Floats:
        """Return the diagonal of its Hessian with respect to the scores."""
        diagonal: Floats = self._point.smoothed_hessian_diagonal(delta) / self._objective.pairs.weight
        return diagonal

    def smoothed_hessian_product(self, v: Floats, delta: float) -> Floats:
        """Apply its Hessian with respect to the scores."""
        image: Floats = self._point.smoothed_hessian_product(v, delta) / self._objective.pairs.weight
        return image
