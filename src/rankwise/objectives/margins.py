"""The weighted mean of a loss over pairs: the objective of RankSVM without its penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.design import Products
from rankwise.losses import Loss
from rankwise.pairs.graph import MarginPairs, SmoothedHinge

__all__ = ["MarginObjective", "MarginPoint"]


class MarginPoint:
    """The mean loss at some scores; curvature and smoothing only where the loss has them."""

    def __init__(self, objective: MarginObjective, scores: Floats) -> None:
        self._objective, self._total = objective, objective.pairs.weight
        self._point: Any = objective.loss(objective.pairs, scores)

    @cached_property
    def value(self) -> Floats:
        """The mean loss."""
        return np.asarray(self._point.value / self._total)

    @cached_property
    def score_gradient(self) -> Floats:
        """A subgradient with respect to the scores; no data are read for it."""
        return np.asarray(self._point.gradient / self._total)

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

    def score_hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian with respect to the scores; no data are read for it."""
        return np.asarray(self._point.hessian_product(v) / self._total)

    def score_hessian_diagonal(self) -> Floats:
        """Return the diagonal of the Hessian with respect to the scores."""
        return np.asarray(self._point.hessian_diagonal() / self._total)

    def hessian_product(self, v: Floats) -> Floats:
        """Apply the Hessian: two reads."""
        return self._objective.pull_back(self.score_hessian_product(self._objective.scores(v)))

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the mean Huberised hinge at the same scores."""
        point: SmoothedHinge = self._point.smoothed(delta)
        gradient = point.gradient / self._total
        active = point.active / self._total + self._at_base(gradient)
        return SmoothedHinge(point.value / self._total, gradient, active)

    def smoothed_hessian_diagonal(self, delta: float) -> Floats:
        """Return the diagonal of its Hessian with respect to the scores."""
        return np.asarray(self._point.smoothed_hessian_diagonal(delta) / self._total)


@dataclass(eq=False)
class MarginObjective:
    """``(1/Σω) Σ ω loss`` of the scores ``Xw``: moving along a line of scores reads no data.

    Parameters
    ----------
    loss : type of Loss
        Solvers that need Hessians take losses with `is_smooth`, the one that smooths takes the hinge.
    base : (rows,) float64, optional
        Scores of an earlier model, added to all scores before the loss is evaluated.
    scale : (features,) float64, optional
        The factor of each coefficient: its unit.
    """

    design: Products
    pairs: MarginPairs
    loss: type[Loss]
    base: Floats | None = None
    scale: Floats | None = None

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
        return self.design.dot(coef if self.scale is None else coef * self.scale)

    def pull_back(self, score_gradient: Floats) -> Floats:
        """Return ``X'u`` for a vector or the columns of a block: one read."""
        pulled = self.design.tdot(score_gradient)
        return pulled if self.scale is None else (pulled.T * self.scale).T

    def at(self, coef: Floats) -> MarginPoint:
        """Evaluate at a coefficient vector."""
        return self.at_scores(self.scores(coef))

    def at_scores(self, scores: Floats) -> MarginPoint:
        """Evaluate where the scores are known."""
        return MarginPoint(self, scores if self.base is None else scores + self.base)

    def sample(self, n_rows: int) -> tuple[Rows, MarginObjective] | None:
        """Return about `n_rows` rows and the loss over their pairs; None where that would not be much cheaper."""
        thinned = None if self.loss.is_smooth else self.pairs.thinned(n_rows)
        if thinned is None:
            return None
        rows, pairs = thinned
        return rows, MarginObjective(
            self.design, pairs, self.loss, None if self.base is None else self.base[rows]
        )
