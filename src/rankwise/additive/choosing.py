"""Choosing alpha and the number of surfaces by held-out rows or pairs.

First the curves alone walk the grid of alphas, from the largest down. Then every split ranks the pairs of columns by
its own training rows, so that nothing held out has a say in them, and surfaces are added in growing numbers, each with
the alphas next to the best so far, while the held-out error falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rankwise.additive.fitting import AdditiveFit, Blueprint, Layout, as_pairs, encode
from rankwise.additive.interactions import RankedPairs
from rankwise.additive.training import Training
from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.selection.scorers import Scorer
from rankwise.solvers.solution import Solution, Status

__all__ = ["Candidate", "Search", "Split"]

# How many steps without a lower error end a walk.
_PATIENCE = 2


@dataclass(frozen=True)
class Split:
    """What is trained on, and what it is scored by.

    Attributes
    ----------
    training : Training
    scorer : Scorer
    rows : (rows,) int64 or None
        Training rows to score by; None where `X` holds others.
    X : (rows, columns) array or None
    share : float
        How much it says beside other splits.
    """

    training: Training
    scorer: Scorer
    rows: Ints | None = None
    X: npt.NDArray[np.floating] | None = None
    share: float = 1.0

    @property
    def n_rows(self) -> int:
        """How many rows score."""
        part = self.X if self.rows is None else self.rows
        assert part is not None
        return int(part.shape[0])


@dataclass(frozen=True, order=True)
class Candidate:
    """One setting that was tried; of equally good ones the smaller model comes first."""

    error: float
    n_pairs: int
    rank: float  # minus alpha
    alpha: float = field(compare=False)


@dataclass
class Search:
    """What the splits say about the settings that were tried.

    Attributes
    ----------
    blueprint : Blueprint
    splits : sequence of Split
    fixed : list of pairs of curves, or None
        Surfaces that every model has; then no others are added.
    tried : list of Candidate
    """

    blueprint: Blueprint
    splits: Sequence[Split]
    fixed: Sequence[tuple[int, int]] | None = None
    tried: list[Candidate] = field(default_factory=list)
    is_interrupted: bool = False
    _solutions: dict[tuple[int, float], list[Solution]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._fits = [AdditiveFit(self.blueprint, split.training) for split in self.splits]
        self._ranked: list[RankedPairs] = []
        self._scoring: dict[int, tuple[Layout, Design]] = {}

    @property
    def best(self) -> Candidate:
        """The best of what was tried; of equally good ones the one with fewer surfaces and the larger alpha."""
        return min(self.tried)

    def run(self, grid: Sequence[float], counts: Sequence[int]) -> Candidate:
        """Try alphas, and numbers of surfaces in increasing order; return the best."""
        alphas = sorted(grid, reverse=True)
        first = len(self.fixed) if self.fixed is not None else 0
        self._walk(alphas, first)
        wanted = [count for count in counts if count > 0 and self.fixed is None]
        if wanted and not self.is_interrupted:
            at = alphas.index(self.best.alpha)
            of_curves = self._solutions[0, alphas[at]]
            self._ranked = [fit.rank_pairs(s.coef) for fit, s in zip(self._fits, of_curves, strict=True)]
            self._add(alphas, at, wanted)
            if 0 not in counts:
                self.tried = [c for c in self.tried if c.n_pairs] or self.tried
        return self.best

    @property
    def start_of_curves(self) -> Floats | None:
        """The mean of the splits' curves near the best alpha: a start for the model of all rows."""
        count = 0 if self.fixed is None else len(self.fixed)
        alphas = [alpha for n_pairs, alpha in self._solutions if n_pairs == count]
        nearest = min(alphas, key=lambda alpha: abs(np.log(alpha / self.best.alpha)))
        return np.asarray(np.mean([s.coef for s in self._solutions[count, nearest]], axis=0))

    def _walk(self, alphas: Sequence[float], count: int) -> None:
        worse = 0
        for alpha in alphas:
            before = min((c.error for c in self.tried), default=np.inf)
            self._try(alpha, count)
            worse = worse + 1 if not self.tried or self.tried[-1].error > before else 0
            if worse >= _PATIENCE or self.is_interrupted:
                return

    def _add(self, alphas: Sequence[float], at: int, counts: Sequence[int]) -> None:
        best, worse = np.inf if 0 not in counts else self.best.error, 0
        most = min(ranked.gains.size for ranked in self._ranked)
        for count in dict.fromkeys(min(count, most) for count in counts):
            if count == 0:
                continue
            errors = {at: self._try(alphas[at], count)}
            for direction in (-1, 1):
                step = at + direction
                while 0 <= step < len(alphas) and not self.is_interrupted:
                    errors[step] = self._try(alphas[step], count)
                    if errors[step] > min(errors.values()):
                        break
                    step += direction
            at = min(errors, key=lambda place: (errors[place], place))
            worse = worse + 1 if errors[at] >= best else 0
            best = min(best, errors[at])
            if worse >= _PATIENCE or self.is_interrupted:
                return

    def _try(self, alpha: float, count: int) -> float:
        errors, solutions = [], []
        for number, (fit, split) in enumerate(zip(self._fits, self.splits, strict=True)):
            pairs = (
                self.fixed
                if self.fixed is not None
                else as_pairs(self._ranked[number], count)
                if count
                else ()
            )
            try:
                layout, solution = fit.solve(alpha, pairs, self._start(alpha, count, number))
            except KeyboardInterrupt:
                if not self.tried:
                    raise
                self.is_interrupted = True
                return np.inf
            if solution.status is Status.INTERRUPTED:
                if not self.tried:
                    raise KeyboardInterrupt
                self.is_interrupted = True
                return np.inf
            errors.append(float(split.scorer.errors(self._scores(number, layout, solution.coef)[None, :])[0]))
            solutions.append(solution)
        error = float(np.average(errors, weights=[split.share for split in self.splits]))
        self._solutions[count, alpha] = solutions
        self.tried.append(Candidate(error, count, -alpha, alpha))
        return error

    def _start(self, alpha: float, count: int, number: int) -> Floats | None:
        fewer = [key for key in self._solutions if key[0] <= count]
        if not fewer:
            return None
        nearest = min(fewer, key=lambda key: (count - key[0], abs(np.log(key[1] / alpha))))
        return self._solutions[nearest][number].coef

    def _scores(self, number: int, layout: Layout, coef: Floats) -> Floats:
        split = self.splits[number]
        if split.X is None:
            return np.asarray(layout.design.dot(coef)[split.rows])
        kept = self._scoring.get(number)
        if kept is None or kept[0] is not layout:
            kept = layout, encode(split.X, layout.terms, layout.coordinates, self.blueprint.n_threads)
            self._scoring[number] = kept
        return kept[1].dot(coef)
