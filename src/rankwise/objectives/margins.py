"""The weighted mean of a loss over pairs: the objective of RankSVM without its penalty."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.design import Products
from rankwise.losses import Loss
from rankwise.pairs.graph import MarginPairs, SmoothedHinge

__all__ = ["MeanLoss", "MeanLossPoint"]


class MeanLoss:
    """``(1/Σω) Σ ω loss`` of the scores ``Xw``: moving along a line of scores reads no data.

    Parameters
    ----------
    base : (rows,) float64, optional
        Scores of an earlier model, added to all scores before the loss is evaluated.
    scale : (features,) float64, optional
        The factor of each coefficient: its unit.
    """

    def __init__(
        self,
        design: Products,
        pairs: MarginPairs,
        loss: type[Loss],
        base: Floats | None = None,
        scale: Floats | None = None,
    ) -> None:
        self.design, self.pairs, self.loss = design, pairs, loss
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
        """Return ``X'u``: one read."""
        pulled = self.design.tdot(score_gradient)
        return pulled if self._scale is None else pulled * self._scale

    def at(self, coef: Floats) -> MeanLossPoint:
        """Evaluate at a coefficient vector."""
        return self.at_scores(self.scores(coef))

    def at_scores(self, scores: Floats) -> MeanLossPoint:
        """Evaluate where the scores are known."""
        based = scores if self.base is None else scores + self.base
        return MeanLossPoint(self, self.loss(self.pairs, based))

    def sample(self, n_rows: int) -> tuple[Rows, MeanLoss] | None:
        """Return about `n_rows` rows and the mean over their pairs; None where that would not be much cheaper."""
        thinned = self.pairs.thinned(n_rows)
        if thinned is None:
            return None
        rows, pairs = thinned
        return rows, MeanLoss(self.design, pairs, self.loss, None if self.base is None else self.base[rows])


class MeanLossPoint:
    """The mean loss at some scores."""

    def __init__(self, objective: MeanLoss, point: Loss) -> None:
        self._objective, self._point = objective, point
        self._weight = objective.pairs.weight

    @cached_property
    def value(self) -> Floats:
        """The mean loss."""
        return np.asarray(self._point.value / self._weight)

    @cached_property
    def score_gradient(self) -> Floats:
        """A subgradient with respect to the scores; no data are read for it."""
        return np.asarray(self._point.gradient / self._weight)

    @property
    def offset(self) -> float:
        """Where the plane that touches the loss here meets scores of 0: ``loss - gradient'f``."""
        return float(self._point.offset / self._weight) + self._at_base(self.score_gradient)

    def _at_base(self, gradient: Floats) -> float:
        """Return the value at the base of the linear function with this gradient."""
        base = self._objective.base
        return 0.0 if base is None else float(gradient @ base)

    @cached_property
    def gradient(self) -> Floats:
        """A subgradient with respect to the coefficients."""
        return self._objective.pull_back(self.score_gradient)

    def hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian: two reads."""
        image = self._point.hessian_product(self._objective.scores(v))
        return self._objective.pull_back(image / self._weight)

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the mean loss at the same scores with its kink, where it has one, rounded off."""
        point = self._point.smoothed(delta)
        gradient = point.gradient / self._weight
        active = point.active / self._weight + self._at_base(gradient)
        return SmoothedHinge(point.value / self._weight, gradient, active)

    def score_hessian_diagonal(self, delta: float) -> Floats:
        """Return the diagonal of its Hessian with respect to the scores."""
        return self._point.hessian_diagonal(delta) / self._weight
