"""Least-squares search over knots and alphas, for curves and fixed surfaces.

Hold-out is exact where one decomposition of the coordinates suffices, as in `RankRLSCV`; otherwise one run of conjugate
gradients per split gives the models of all alphas. Either way the penalty is relative to all rows, whereas the other
losses weight it by the pairs that a fold trains on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankwise.additive.choosing import PATIENCE, Candidate, Knots, Wanted, is_worth
from rankwise.additive.coordinates import PLAIN
from rankwise.additive.fitting import AdditiveProblem, Layout
from rankwise.arrays import Floats
from rankwise.fitting.problem import Problem
from rankwise.holdout.spaces import ColumnSpace, exact_bytes
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.runtime.memory import fits
from rankwise.selection.exact import choose_exactly
from rankwise.selection.krylov import ColumnCoordinates
from rankwise.selection.result import Choice, Selection
from rankwise.selection.surface import EXACT, SurfaceSearch

_STALLED = 10  # iterations; alphas are read converged
# Non-zeros of a row, two for a curve and four for a surface, up to which all iterations take no time; more of them stop
# at the tolerance.
_NARROW = 33


@dataclass
class SquaredSearch:
    """The choice of knots and alpha by the squared loss on held-out rows or pairs.

    Attributes
    ----------
    problem : AdditiveProblem
        A problem with the squared loss, without monotone curves.
    held_out : Plan
    metric : Metric
    wanted : Wanted
        Only its fixed surfaces are used; its numbers of surfaces are ignored.
    best : Knots
    selection : Selection
        The choice of alpha for the best knots, for means over pairs; its model holds the coordinates of `layout`.
    layout : Layout
    tried : list of Candidate
    """

    problem: AdditiveProblem
    held_out: Plan
    metric: Metric
    wanted: Wanted
    best: Knots = field(init=False)
    selection: Selection = field(init=False)
    layout: Layout = field(init=False)
    tried: list[Candidate] = field(default_factory=list)

    def run(self) -> None:
        """Try more and more knots while they help noticeably."""
        wanted = self.wanted
        self.best = Knots(wanted.n_knots[0], wanted.surface_knots[0])
        self.layout = self._layout(self.best)
        self.selection = self._choose(self.best, self.layout)
        self._refine([Knots(n, self.best.surface) for n in wanted.n_knots[1:]])
        if wanted.fixed:
            self._refine([Knots(self.best.curve, n) for n in wanted.surface_knots[1:]])

    def _refine(self, finer: Sequence[Knots]) -> None:
        worse = 0
        for knots in finer:
            layout = self._layout(knots)
            if self.held_out.is_exact and not fits(exact_bytes(layout.design.shape)):
                return
            selection = self._choose(knots, layout)
            if is_worth(selection.error, self.selection.error):
                self.best, self.layout, self.selection = knots, layout, selection
                worse = 0
                continue
            self.problem.blueprints.forget(*knots)
            worse += 1
            if worse >= PATIENCE:
                return

    def _layout(self, knots: Knots) -> Layout:
        blueprint = self.problem.blueprints.at(*knots)
        return blueprint.layout(self.wanted.fixed) if self.wanted.fixed else blueprint.curves

    def _choose(self, knots: Knots, layout: Layout) -> Selection:
        """Choose alpha for some knots, and fit everything."""
        data = replace(self.problem.data, design=layout.design)
        # RankRLS minimises the sum over pairs.
        weight, ladder = data.pairs.graphs()[0].weight, self.wanted.ladder
        grid = np.sort(ladder.alphas)
        default = tuple(weight * grid) if ladder.is_default else (np.inf,)
        found = _in_means(self._in_sums(data, layout, weight * grid, default), weight, grid)
        alphas, errors = found.table
        n_pairs = len(self.wanted.fixed or ())
        self.tried += [
            Candidate(error, n_pairs, knots, PLAIN, -alpha, 0)
            for alpha, error in zip(alphas.tolist()[::-1], errors[::-1, 0].tolist(), strict=True)
        ]
        return found

    def _in_sums(
        self, data: Problem, layout: Layout, alphas: Floats, default: tuple[float, ...]
    ) -> Selection:
        """Choose among alphas of sums over pairs."""
        problem, held_out = self.problem, self.held_out
        if held_out.is_exact:
            space = ColumnSpace.of_design(layout.design, 0.0)
            found = choose_exactly(space, data, held_out, self.metric, "folds", alphas, default=default)
            return found.with_facts(n_iter_=0)
        if held_out.has_eval_set:
            held_out = replace(held_out, eval_rows=layout.encoded(held_out.eval_rows.stored()))
        is_narrow = layout.design.nnz <= _NARROW * layout.design.shape[0]
        tol = min(problem.tol, EXACT) if is_narrow else problem.tol
        search = SurfaceSearch(self.metric, "tikhonov", "folds", _STALLED, tol, problem.max_iter, default)
        return search.choose(data, held_out, alphas, [ColumnCoordinates(layout.design)])[0]


def _in_means(found: Selection, weight: float, grid: Floats) -> Selection:
    """Return a selection with alphas of means over pairs; those of the grid are themselves."""

    def mean(alpha: float) -> float:
        own = alpha / weight
        nearest = float(grid[np.argmin(np.abs(grid - own))])
        return nearest if abs(nearest - own) <= 1e-9 * own else own

    def means(choices: Sequence[Choice]) -> list[Choice]:
        return [choice._replace(alpha=mean(choice.alpha)) for choice in choices]

    alphas, _ = found.table
    choices = found.choices and {method: means(made) for method, made in found.choices.items()}
    return replace(
        found,
        alphas=np.array([mean(alpha) for alpha in alphas.tolist()]),
        chosen=means(found.chosen),
        choices=choices,
    )
