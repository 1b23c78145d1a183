"""The training problem of additive models: training losses, held-out splits and a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankwise.additive.fitting import AdditiveFit, Blueprint, Blueprints
from rankwise.additive.knots import SAMPLED_ROWS
from rankwise.additive.settings import Split
from rankwise.additive.training import MarginTraining, SquaredTraining, Training
from rankwise.exceptions import NoPairsError
from rankwise.fitting.margins import MarginFit, margins_of
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan
from rankwise.solvers.choose import choose_margin_solver

__all__ = ["AdditiveProblem"]


@dataclass(frozen=True)
class AdditiveProblem:
    """Training data, the knots of their columns, and the loss of a pair.

    Attributes
    ----------
    data : Problem
        Its design is that of the curves where anything is held out.
    blueprints : Blueprints
    loss : str
    tol : float
    max_iter : int or None
    """

    data: Problem
    blueprints: Blueprints
    loss: str
    tol: float
    max_iter: int | None

    def splits(self, plan: Plan, metric: Metric) -> list[Split]:
        """Return the splits: one with an eval set, else one per fold that can be scored."""
        found = self.data.pairs.held_out(plan, metric)
        if plan.has_eval_set:
            return [Split(self.training(), found[0].scorer, X=plan.eval_rows.stored())]
        every = np.arange(self.data.design.shape[0])
        return [
            Split(
                self.training(trained),
                scorer,
                every if scorer.rows is None else scorer.rows,
                share=scorer.share,
            )
            for _, trained, scorer in found
        ]

    def sample(self, blueprint: Blueprint) -> AdditiveFit | None:
        """Return a fit on a sample of whole queries, or of rows of one ranking, that selects pairs of columns.

        None for small data and for listed pairs: all rows then select the pairs.
        """
        pairs = self.data.pairs
        rows = None if pairs.n_rows < 2 * SAMPLED_ROWS else pairs.draw_rows(SAMPLED_ROWS)
        if rows is None:
            return None
        own = replace(blueprint, X=blueprint.X[rows])
        try:
            part = Problem(own.curves.design, pairs.subset(rows))
        except NoPairsError:  # labels so rare that none was drawn
            return None
        return AdditiveFit(own, replace(self, data=part).training())

    def training(self, trained: Pairs | None = None) -> Training:
        """Return the training loss of all pairs, or of the training pairs of a split."""
        pairs = self.data.pairs if trained is None else trained
        if self.loss == "squared":
            return SquaredTraining(pairs.graph(), self.tol, self.max_iter)
        margins = margins_of(pairs, self.loss)
        solver = choose_margin_solver(self.loss, margins, self.tol)
        second = "smoothing" if solver == "bundle" else None
        return MarginTraining(margins, MarginFit(self.loss, solver, self.tol, self.max_iter, second))
