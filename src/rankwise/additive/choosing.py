"""Choosing knots, surfaces and alpha by held-out rows or pairs, one after the other and only while that helps.

Curves alone walk down the alphas, and with more knots from where fewer were best. Then every split ranks the pairs of
columns by its own training rows, so that nothing held out has a say in them, and surfaces are added in growing numbers;
then with finer grids, and where those helped in growing numbers once more. Then the penalty is adapted to the models
(`rankwise.additive.coordinates.adapted_scale`), of every split to its own. Each step tries the alphas next to the best
so far. At last the best curves are thinned out (`rankwise.additive.coordinates.selecting_scale`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankwise.additive.alphas import is_worth
from rankwise.additive.coordinates import PLAIN, Rounds
from rankwise.additive.fitting import AdditiveFit, Blueprint, Blueprints, Layout, as_pairs, encode
from rankwise.additive.interactions import RankedPairs
from rankwise.additive.settings import PATIENCE, Candidate, Knots, Split, Wanted
from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.selection.result import Choice, Selection
from rankwise.solvers.solution import Solution

__all__ = ["Search"]

# Tries a step of the ladder and a number of surfaces, maybe the steps beside it; gives the best step and its error.
_At = Callable[[int, int], tuple[int, float]]


@dataclass
class Search:
    """What the splits say about the settings that were tried.

    Attributes
    ----------
    blueprints : Blueprints
    splits : sequence of Split
    wanted : Wanted
    tried : list of Candidate
        In the order of trial.
    """

    blueprints: Blueprints
    splits: Sequence[Split]
    wanted: Wanted
    tried: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._knots = Knots(self.wanted.n_knots[0], self.wanted.surface_knots[0])
        self._rounds = PLAIN
        self._fits: dict[Knots, list[AdditiveFit]] = {}
        self._ranked: list[RankedPairs] = []
        self._solutions: dict[tuple[Knots, int, Rounds, float], list[Solution]] = {}
        self._scoring: dict[int, tuple[Layout, Design]] = {}

    @property
    def best(self) -> Candidate:
        """The best of what was worth trying; of equally good ones the one with fewer surfaces and the larger alpha."""
        return min(one for one in self.tried if one.is_worth)

    @property
    def blueprint(self) -> Blueprint:
        """The knots of the best."""
        return self.blueprints.at(*self.best.knots)

    def run(self) -> Candidate:
        """Try what is wanted; return the best."""
        wanted, fixed = self.wanted, self.wanted.fixed
        first = 0 if fixed is None else len(fixed)
        self._walk_down(first)
        self._refine(first, [Knots(n, self._knots.surface) for n in wanted.n_knots[1:]])
        counts: Sequence[int] = ()
        if fixed is None and any(wanted.counts):
            counts = self._add_surfaces()
        self._refine_surfaces(counts)
        if not self._are_coarse_best:
            self._adapt()
        if self._rounds.steps:
            self._refine_surfaces(counts, at=self._just)  # sharp steps make more of a fine grid
        self._select(first)
        return self.best

    @property
    def _are_coarse_best(self) -> bool:
        """Whether finer knots were tried and did not help: then there are hardly any small steps to do without."""
        first = Knots(self.wanted.n_knots[0], self.wanted.surface_knots[0])
        return self._knots == first and any(one.knots != first for one in self.tried)

    def selection(self, model: Floats) -> Selection:
        """Return the choice, and what the alphas beside it were worth with the same knots and surfaces."""
        best = self.best
        alike = (one for one in self.tried if one.is_alike(best))
        beside = {one.alpha: one.error for one in alike}
        alphas = np.array(sorted(beside))
        errors = np.array([[beside[alpha]] for alpha in alphas.tolist()])
        return Selection([model], [Choice(best.alpha, 0, best.error)], alphas, errors)

    @property
    def start_of_curves(self) -> Floats | None:
        """The mean of the splits' curves near the best alpha: a start for the model of all rows."""
        best = self.best
        count = 0 if self.wanted.fixed is None else len(self.wanted.fixed)
        alike = [
            key
            for key in self._solutions
            if key[0].curve == best.knots.curve
            and key[1:3] == (count, PLAIN)
            and (not count or key[0] == best.knots)
        ]
        nearest = min(alike, key=lambda key: abs(np.log(key[3] / best.alpha)))
        return np.asarray(np.mean([s.coef for s in self._solutions[nearest]], axis=0))

    def _walk_down(self, count: int) -> None:
        """Try the alphas from the largest down, until two in a row were no better, and beyond an end that is best."""
        worse, best, last = 0, np.inf, len(self.wanted.ladder.alphas) - 1
        errors: dict[int, float] = {}
        for step in range(last + 1):
            error = self._try(step, count)
            if error is None:
                return
            errors[step] = error
            worse, best = (0, error) if error < best else (worse + 1, best)
            if worse >= PATIENCE:
                break
        if errors[0] == best:
            self._climb(count, errors, -1)
        if last in errors and errors[last] == min(errors.values()):
            self._climb(count, errors, 1)

    def _refine(self, count: int, finer: Sequence[Knots], at: _At | None = None) -> bool:
        """Try more and more knots with so many surfaces, while they help noticeably; tell whether any did."""
        has_helped, worse = False, 0
        for knots in finer:
            if worse >= PATIENCE:
                break
            best, kept, self._knots, first = self.best, self._knots, knots, len(self.tried)
            _, error = (at or self._around)(best.step, count)
            if is_worth(error, best.error):
                self._forget(kept)
                has_helped, worse = True, 0
                continue
            self._give_up(first)
            self._knots = kept
            self._forget(knots)
            worse += 1
        return has_helped

    def _select(self, count: int) -> None:
        """Adapt the penalty of the best curves to whole terms, in all rounds: the first may be worse than none.

        This comes last, for curves of few columns may be ahead of the first surfaces, and would end the search before
        finer ones. An alpha beyond the grid makes all curves nearly 0, and which of them is largest chance.
        """
        alike = [one for one in self.tried if one.is_worth and (one.n_pairs, one.rounds) == (count, PLAIN)]
        if not (alike and self.wanted.rounds.terms):
            return
        best, plain, first, least = self.best, min(alike), len(self.tried), np.inf
        self._knots = plain.knots
        step = min(max(plain.step, 0), len(self.wanted.ladder.alphas) - 1)
        for number in range(self.wanted.rounds.terms):
            self._rounds = Rounds(terms=number + 1)
            error = self._try(step, count)
            if error is None:
                break
            least = min(least, error)
        if not is_worth(least, best.error):
            self._give_up(first)

    def _adapt(self) -> None:
        """Adapt the penalty to the models' steps, again while that helps noticeably."""
        for number in range(self.wanted.rounds.steps):
            best, first, kept = self.best, len(self.tried), self._rounds
            self._rounds = Rounds(number + 1)
            _, error = self._around(best.step, best.n_pairs)
            if not is_worth(error, best.error):
                self._give_up(first)
                self._rounds = kept
                return

    def _add_surfaces(self) -> list[int]:
        """Add surfaces in growing numbers; return these."""
        wanted, curves = self.wanted, self.best
        of_curves = self._solutions[self._knots, 0, PLAIN, curves.alpha]
        fits = self._fits_now()
        self._ranked = [fit.rank_pairs(s.coef) for fit, s in zip(fits, of_curves, strict=True)]
        most = min(ranked.gains.size for ranked in self._ranked)
        counts = list(dict.fromkeys(min(count, most) for count in wanted.counts if min(count, most)))
        if 0 not in wanted.counts and counts:
            self._give_up(0)
        self._grow(curves.step, counts)
        return counts

    def _refine_surfaces(self, counts: Sequence[int], at: _At | None = None) -> None:
        """Try finer grids, and where they help larger ones of these numbers of surfaces."""
        if not self.best.n_pairs:
            return
        finer = [Knots(self._knots.curve, n) for n in self.wanted.surface_knots if n > self._knots.surface]
        if self._refine(self.best.n_pairs, finer, at):
            self._grow(self.best.step, [count for count in counts if count > self.best.n_pairs], at)

    def _grow(self, step: int, counts: Sequence[int], at: _At | None = None) -> None:
        """Try numbers of surfaces from where fewer were best."""
        worse = 0
        for count in counts:
            before = min((one.error for one in self.tried if one.is_worth), default=np.inf)
            step, error = (at or self._around)(step, count)
            worse = worse + 1 if error >= before else 0
            if worse >= PATIENCE:
                return

    def _around(self, step: int, count: int) -> tuple[int, float]:
        """Try an alpha, and those next to it as long as they are better; return the best step and its error."""
        first = self._try(step, count)
        errors = {step: np.inf if first is None else first}
        for direction in (-1, 1):
            self._climb(count, errors, direction)
        best = min(errors, key=lambda place: (errors[place], place))
        return best, errors[best]

    def _just(self, step: int, count: int) -> tuple[int, float]:
        """Try an alpha alone: an adapted model takes a fit for each of its rounds."""
        error = self._try(step, count)
        return step, np.inf if error is None else error

    def _climb(self, count: int, errors: dict[int, float], direction: int) -> None:
        """Go on in one direction while the error falls; beyond the grid only while it falls noticeably."""
        step = (min if direction < 0 else max)(errors) + direction
        while True:
            before = min(errors.values())
            error = self._try(step, count)
            if error is None:
                return
            if self.wanted.ladder.is_beyond(step) and not is_worth(error, before):
                self._give_up(-1)
                return
            errors[step] = error
            if error > before:
                return
            step += direction

    def _try(self, step: int, count: int) -> float | None:
        """Fit every split and score it; None where the ladder ends."""
        alpha = self.wanted.ladder.at(step)
        if alpha is None:
            return None
        errors, solutions = [], []
        for number, (fit, split) in enumerate(zip(self._fits_now(), self.splits, strict=True)):
            layout, solution = self._solve(fit, alpha, count, number)
            errors.append(float(split.scorer.errors(self._scores(number, layout, solution.coef)[None, :])[0]))
            solutions.append(solution)
        error = float(np.average(errors, weights=[split.share for split in self.splits]))
        self._solutions[self._knots, count, self._rounds, alpha] = solutions
        self.tried.append(Candidate(error, count, self._knots, self._rounds, -alpha, step))
        return error

    def _solve(self, fit: AdditiveFit, alpha: float, count: int, number: int) -> tuple[Layout, Solution]:
        """Fit one split, from the model of one round less if that was fitted with the same alpha."""
        pairs, rounds = self._pairs(number, count), self._rounds
        before = self._solutions.get((self._knots, count, rounds.one_less, alpha))
        if before is not None:
            return fit.solve(alpha, pairs, before=before[number].coef, by_terms=rounds.terms > 0)
        return fit.solve_adapting(alpha, rounds, pairs, self._start(alpha, count, number))

    def _give_up(self, first: int) -> None:
        """Leave what was tried from there on out of the choice."""
        self.tried[first:] = [replace(one, is_worth=False) for one in self.tried[first:]]

    def _forget(self, knots: Knots) -> None:
        """Give up the codes of these knots: they are as large as the rows in single precision."""
        self._fits.pop(knots, None)
        self.blueprints.forget(*knots)

    def _fits_now(self) -> list[AdditiveFit]:
        if self._knots not in self._fits:
            blueprint = self.blueprints.at(*self._knots)
            self._fits[self._knots] = [AdditiveFit(blueprint, split.training) for split in self.splits]
        return self._fits[self._knots]

    def _pairs(self, number: int, count: int) -> Sequence[tuple[int, int]]:
        if self.wanted.fixed is not None:
            return self.wanted.fixed
        return as_pairs(self._ranked[number], count) if count else ()

    def _start(self, alpha: float, count: int, number: int) -> Floats | None:
        """Return the nearest model of the same knots with as many surfaces or fewer; that of curves fits any grid."""
        fewer = [
            key
            for key in self._solutions
            if key[1] <= count
            and key[2] == PLAIN
            and (key[0] == self._knots or (key[1] == 0 and key[0].curve == self._knots.curve))
        ]
        if not fewer:
            return None
        nearest = min(fewer, key=lambda key: (count - key[1], abs(np.log(key[3] / alpha))))
        return self._solutions[nearest][number].coef

    def _scores(self, number: int, layout: Layout, coef: Floats) -> Floats:
        split = self.splits[number]
        if split.X is None:
            return np.asarray(layout.design.dot(coef)[split.rows])
        kept = self._scoring.get(number)
        if kept is None or kept[0] is not layout:
            kept = layout, encode(split.X, layout.terms, layout.coordinates, self.blueprints.n_threads)
            self._scoring[number] = kept
        return kept[1].dot(coef)
