"""Pairwise losses in score space: arguments are scores and pairs, never the features.

A loss is a class with an entry in `LOSSES`. Estimators take their choices from this table, solvers look up the losses
that they can minimise, the command line takes its methods from it, and the tests run over all entries. Made of pairs
and scores, a loss is evaluated there, and sorts the scores only once. All losses are sums over pairs, with
``t = z - (f_i - f_j)``:

=============  =========================  ===========================================================
squared        ``t²``                     any pairs; the whole graph is one quadratic
hinge          ``max(0, t)``              pairs inside their margin count; no curvature
squared_hinge  ``max(0, t)²``             the squared loss of the pairs inside their margin
logistic       ``log(1 + exp(f_j-f_i))``  listed pairs: Bradley-Terry, ``P(i > j) = 1/(1 + exp(f_j-f_i))``
=============  =========================  ===========================================================
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import entr, expit

from rankwise.arrays import Floats
from rankwise.pairs.graph import SmoothedHinge, ViolatedPairs
from rankwise.pairs.preferences import PreferenceGraph


class Loss:
    """A convex function of the scores, given the pairs, at some scores: it has `value` and `gradient`.

    Attributes
    ----------
    name : str
        The name of the loss in estimators.
    method : str or None
        The command-line name of the model that minimises it; None where several models do.
    has_margin : bool
        Whether only pairs near or inside a margin cost something: a loss of RankSVM.
    is_smooth : bool
        Whether it has curvature: `hessian_product` and `hessian_diagonal`, generalised where a pair is at its margin.
    is_probability : bool
        Whether it is the likelihood of a model of who wins. Such a loss takes listed pairs, without magnitudes.
    """

    name: ClassVar[str]
    method: ClassVar[str | None]
    has_margin: ClassVar[bool] = True
    is_smooth: ClassVar[bool] = False
    is_probability: ClassVar[bool] = False

    def __init__(self, pairs: Any, scores: Floats) -> None:
        """Keep the graph, the pairs with margins or the listed pairs, and the scores."""
        self._pairs, self._scores = pairs, scores

    @cached_property
    def _violated(self) -> ViolatedPairs:
        return cast("ViolatedPairs", self._pairs.at(self._scores))


class SquaredLoss(Loss):
    """``Σ ω t² = f'Lf - 2r'f + c``, at some scores or at several, as columns."""

    name, method, has_margin, is_smooth = "squared", None, False, True

    @cached_property
    def _image(self) -> Floats:
        return np.asarray(self._pairs.laplacian(self._scores))

    @property
    def value(self) -> Floats:
        """The loss, one entry per output."""
        value = (self._scores * (self._image - 2 * self._pairs.pull)).sum(axis=0)
        return np.asarray(value + self._pairs.constant)

    @property
    def gradient(self) -> Floats:
        """``2 (Lf - r)``."""
        return np.asarray(2 * (self._image - self._pairs.pull))

    def hessian_product(self, v: Floats) -> Floats:
        """Return ``2 L v``: the curvature is the same everywhere."""
        return np.asarray(2 * self._pairs.laplacian(v))


class HingeLoss(Loss):
    """``Σ ω max(0, t) = Σ_V ωz - d_V'f`` over the violated pairs V, with net wins ``d``."""

    name, method = "hinge", "svm"

    @cached_property
    def value(self) -> Floats:
        """The loss."""
        return np.asarray(self._violated.hinge())

    @property
    def gradient(self) -> Floats:
        """A subgradient: ``-d_V``."""
        return np.asarray(-self._violated.net_wins)

    @property
    def offset(self) -> float:
        """``Σ_V ωz``: exact, however large the scores are."""
        return self._violated.active

    def smoothed(self, delta: float) -> SmoothedHinge:
        """Return the Huberised hinge at the same scores; nothing is sorted again."""
        return self._violated.smoothed(delta)

    def smoothed_hessian_diagonal(self, delta: float) -> Floats:
        """Return the diagonal of its Hessian with respect to the scores: pairs near the kink curve by ``1/δ``."""
        return self._violated.degrees(delta) / delta


class SquaredHingeLoss(Loss):
    """``Σ ω max(0, t)²``: the squared loss of the violated pairs."""

    name, method, is_smooth = "squared_hinge", "svm-squared", True

    @cached_property
    def _value_and_gradient(self) -> tuple[float, Floats]:
        return self._violated.squared_hinge()

    @property
    def value(self) -> Floats:
        """The loss."""
        return np.asarray(self._value_and_gradient[0])

    @property
    def gradient(self) -> Floats:
        """``2 (L_V f - r_V)``."""
        return self._value_and_gradient[1]

    @property
    def offset(self) -> float:
        """The loss less its derivative times the scores."""
        value, gradient = self._value_and_gradient
        return value - float(gradient @ self._scores)

    def hessian_product(self, v: Floats) -> Floats:
        """Return ``2 L_V v``: a generalised Hessian, where a pair at its margin counts as satisfied."""
        return np.asarray(2 * self._violated.laplacian(v))

    def hessian_diagonal(self) -> Floats:
        """Return twice the weight of each row's violated pairs."""
        return 2 * self._violated.degrees()


class LogisticLoss(Loss):
    """``Σ ω log(1 + exp(f_j - f_i))`` over listed pairs: the likelihood of Bradley and Terry's model."""

    name, method = "logistic", "logistic"
    is_smooth, is_probability = True, True

    def __init__(self, pairs: PreferenceGraph, scores: Floats) -> None:
        super().__init__(pairs, scores)
        self._difference = pairs.differences(scores)
        self._lost = expit(-self._difference)  # the probability that the loser would have won

    @cached_property
    def value(self) -> Floats:
        """The loss."""
        return np.asarray(self._pairs.pair_weight @ np.logaddexp(0.0, -self._difference))

    @cached_property
    def gradient(self) -> Floats:
        """``-A'Ωp``, p the probability that the loser would have won."""
        return np.asarray(-self._pairs.at_rows(self._pairs.pair_weight * self._lost))

    @property
    def offset(self) -> float:
        """The entropy of the predictions, weighted."""
        return float(self._pairs.pair_weight @ (entr(self._lost) + entr(1 - self._lost)))

    def hessian_product(self, v: Floats) -> Floats:
        """Return ``A'Ω diag(p (1 - p)) A v``."""
        return np.asarray(self._pairs.at_rows(self._curvature * self._pairs.differences(v)))

    def hessian_diagonal(self) -> Floats:
        """Return the sum of ``ω p (1 - p)`` over each row's pairs."""
        return np.asarray(self._pairs.at_both(self._curvature))

    @property
    def _curvature(self) -> Floats:
        return np.asarray(self._pairs.pair_weight * self._lost * (1 - self._lost))


LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (SquaredLoss, HingeLoss, SquaredHingeLoss, LogisticLoss)
}
MARGIN_LOSSES = tuple(name for name, loss in LOSSES.items() if loss.has_margin)
