"""What candidates are fitted to and scored by: labelled rows or listed pairs, in folds that are assigned once."""

from __future__ import annotations

from typing import Protocol

from rankwise.arrays import Floats, Matrix, Splits
from rankwise.automatic.figures import Figure
from rankwise.automatic.scaling import ScaledColumns
from rankwise.estimators.base import Ranker
from rankwise.metrics import Metric

__all__ = ["Problem"]


class Problem(Protocol):
    """What candidates are fitted to and scored by."""

    metric: Metric
    columns: ScaledColumns
    cv: Splits | None

    @property
    def n_rows(self) -> int:
        """Rows to fit."""

    @property
    def n_training_rows(self) -> int:
        """Rows that weigh something."""

    def fit(
        self, estimator: Ranker, X: Matrix, scored: Matrix | None = None, *, by_rank: bool = False
    ) -> Ranker:
        """Fit all rows; `scored` are the rows of an evaluation set, scaled like X."""

    def held_out(
        self, estimator: Ranker, model: Ranker, X: Matrix, scored: Matrix | None, *, by_rank: bool = False
    ) -> Floats:
        """Return the scores of what is held out: of rows, or of pairs the differences.

        `estimator` is fitted without each fold in turn; `model`, fitted on all rows, scores an evaluation set. With
        `by_rank`, models are fitted to the ranks of labels.
        """

    def spread(self, held_out: Floats) -> float:
        """Return how far held-out scores spread inside queries, or differences around 0."""

    def figure(self, held_out: Floats) -> Figure:
        """Return the value of the metric, and that of each unit."""

    def constant_figure(self) -> Figure:
        """Return the figure of scores that are all the same."""

    def describe(self) -> str:
        """Say what scored."""

    def sample(self, at_most: int, seed: int) -> Problem:
        """Return about so many rows, with the folds that they have; or the problem itself where that saves nothing."""
