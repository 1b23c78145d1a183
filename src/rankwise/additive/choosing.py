"""The search for knots, surfaces and alpha of additive models, scored on held-out rows or pairs.

Search stages, in order; each starts from the best candidate so far:

1. Curves alone, on the coarsest and the finest knots, with alphas a decade apart. Of nearly equal alphas the largest is
   kept: surfaces will explain part of the effects that a small alpha would fit.
2. Surfaces on coarse grids, in growing numbers, at the alpha of the curves or, if none help, at larger ones. Every
   split ranks the pairs of columns by its own training rows, so that held-out rows do not influence the choice.
3. Alphas half a decade apart, first with the coarse grids and from the best one on with the finest.
4. The penalty adapted to the model (`rankwise.additive.coordinates.adapted_scale`), in rounds: on the coarse grid, and
   on a fine one that is noticeably better without, or better even so. It is chosen if it is noticeably better then.
5. Few curves, by penalties adapted to whole terms.

Candidates are compared, not reported, so that their fits are looser than the estimator's; the estimator fits the best
one to its own tolerance.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from rankwise.additive.coordinates import PLAIN, Rounds
from rankwise.additive.fitting import AdditiveFit, Blueprints, Layout, RankedPairs, Split
from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.selection.grids import WORTH, is_default_grid
from rankwise.selection.result import Choice, Selection
from rankwise.solvers.solution import Solution

_BEYOND = 6  # steps of the default grid beyond either end: three decades


def _step(number: int) -> float:
    """Return one of the default alphas, two per decade from 0.1 down."""
    return float(f"{10.0 ** (-(number + 2) / 2):.1g}")


DEFAULT_ALPHAS = tuple(_step(number) for number in range(9))


@dataclass(frozen=True)
class Ladder:
    """A grid of alphas, numbered from the largest one at 0; the default grid continues beyond its ends.

    Attributes
    ----------
    alphas : sequence of float
        From the largest down.
    """

    alphas: Sequence[float]

    def at(self, step: int) -> float | None:
        """Return an alpha; None beyond the ends of the ladder."""
        if not self.is_beyond(step):
            return self.alphas[step]
        return _step(step) if self.is_default and -_BEYOND <= step < len(self.alphas) + _BEYOND else None

    @property
    def is_default(self) -> bool:
        """Whether this is the default grid."""
        return is_default_grid(np.sort(self.alphas), DEFAULT_ALPHAS)

    @property
    def first(self) -> int:
        """Where a search starts: at 1e-2 in the default grid, which most data want or less."""
        return 2 if self.is_default else 0

    @property
    def stride(self) -> int:
        """Steps between the alphas of a coarse search: a decade of the default grid, every alpha of another."""
        return 2 if self.is_default else 1

    def is_beyond(self, step: int) -> bool:
        """Tell whether a step lies beyond the grid."""
        return not 0 <= step < len(self.alphas)


def is_worth(error: float, before: float) -> bool:
    """Tell whether going beyond a grid, or to finer knots, gains as much as it must in every other grid."""
    return error < before - WORTH * abs(before)


# How many alphas, numbers of knots or of surfaces in a row that do not help end their growth. With one, chance decides:
# on two folds of PMLB's cpu_act 16 knots were no better than 8 on the rows held out, and errors of .0705 and .0663 were
# chosen where .0622 and .0632 could be had.
PATIENCE = 2


class Knots(NamedTuple):
    """The most knots of a curve, and of a surface along each of its columns."""

    curve: int
    surface: int


@dataclass(frozen=True)
class Wanted:
    """Candidate values of the search, each tried in increasing order while the held-out error falls.

    Attributes
    ----------
    ladder : Ladder
        The alphas.
    n_knots, surface_knots : sequence of int
    counts : sequence of int
        Numbers of surfaces. Without 0, models of curves alone are fitted but not chosen.
    fixed : list of pairs of sides, or None
        Surfaces of every model; no others are then added.
    rounds : Rounds
        The maximum number of rounds in which the penalty is adapted.
    """

    ladder: Ladder
    n_knots: Sequence[int]
    surface_knots: Sequence[int]
    counts: Sequence[int] = ()
    fixed: Sequence[tuple[int, int]] | None = None
    rounds: Rounds = PLAIN


@dataclass(frozen=True, order=True)
class Candidate:
    """One setting that was tried; of equally good ones the smaller model comes first."""

    error: float
    n_pairs: int
    knots: Knots
    rounds: Rounds  # in which the penalty was adapted
    rank: float  # minus alpha
    step: int = field(compare=False)  # of the ladder
    is_worth: bool = field(default=True, compare=False)

    @property
    def alpha(self) -> float:
        """The penalty."""
        return -self.rank

    @property
    def key(self) -> tuple[Knots, int, Rounds, float]:
        """The setting without its error."""
        return self.knots, self.n_pairs, self.rounds, self.alpha


_SAME_ALPHA = 5e-3  # a larger alpha may be behind by this share of the remaining gain
_FINER_CURVES, _FINER_SURFACES = 1e-2, 5e-3  # the shares of the remaining gain that finer knots must add


_Key = tuple[Knots, int, Rounds, float]


class _TimeIsUpError(Exception):
    """The deadline has passed, and something was tried."""


@dataclass
class Search:
    """Candidates and their held-out errors.

    Attributes
    ----------
    blueprints : Blueprints
    splits : sequence of Split
    wanted : Wanted
    deadline : float, optional
        The time of `time.monotonic` after which nothing else is tried.
    tried : list of Candidate
        In the order of trial.
    held_out : dict of key of a candidate to list of ndarray
        The scores by which every split scored it.
    """

    blueprints: Blueprints
    splits: Sequence[Split]
    wanted: Wanted
    deadline: float | None = None
    tried: list[Candidate] = field(default_factory=list)
    held_out: dict[_Key, list[Floats]] = field(default_factory=dict)
    _fits: dict[Knots, list[AdditiveFit]] = field(default_factory=dict)
    _ranked: list[RankedPairs] = field(default_factory=list)
    _solutions: dict[_Key, list[Solution]] = field(default_factory=dict)
    _scoring: dict[int, tuple[Layout, Design]] = field(default_factory=dict)

    @property
    def best(self) -> Candidate:
        """The best candidate; among equals the one with fewer surfaces and the larger alpha."""
        return min(one for one in self.tried if one.is_worth)

    def run(self) -> Candidate:
        """Run the stages until the deadline; return the best candidate."""
        wanted, fixed = self.wanted, self.wanted.fixed
        n_fixed = 0 if fixed is None else len(fixed)
        with suppress(_TimeIsUpError):
            curves = self._choose_curves(n_fixed)
            if fixed is None and any(wanted.counts):
                curves = self._add_surfaces(curves)
            if curves.n_pairs and len(wanted.surface_knots) > 1:
                self._refine_surfaces(curves)
            else:
                walked = self._walk(curves.knots, curves.step, curves.n_pairs, stride=1)
                # Where finer curves did not help, there are hardly any sharp steps to adapt to.
                if len(wanted.n_knots) == 1 or walked.knots.curve != wanted.n_knots[0]:
                    self._adapt(walked)
            self._select(n_fixed)
        return self.best

    def selection(self, model: Floats) -> Selection:
        """Return the choice, with the errors of other alphas for the same knots and surfaces."""
        best = self.best
        chosen = best.knots, best.n_pairs
        alike = [one for one in self.tried if one.is_worth and (one.knots, one.n_pairs) == chosen]
        beside = {one.alpha: one.error for one in sorted(alike, reverse=True)}  # of several rounds the best
        alphas = np.array(sorted(beside))
        errors = np.array([[beside[alpha]] for alpha in alphas.tolist()])
        return Selection([model], [Choice(best.alpha, 0, best.error)], alphas, errors)

    def fit_best(self, fit: AdditiveFit) -> tuple[Layout, Solution]:
        """Fit the best candidate, from the means of the splits' models.

        Where surfaces were chosen by their number, all training rows rank the pairs again.
        """
        best = self.best
        pairs = self.wanted.fixed or ()
        if self.wanted.fixed is None and best.n_pairs:
            curves = self._nearest(best.knots, best.alpha, 0)
            assert curves is not None
            pairs, _ = fit.best_pairs(best.alpha, best.n_pairs, self._mean(curves, ()))
        plain = best.knots, best.n_pairs, PLAIN, best.alpha
        return fit.solve_adapting(best.alpha, best.rounds, pairs, self._mean(plain, pairs))

    def _mean(self, key: _Key, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return the mean of the splits' models for these pairs; a pair that no split has gets 0."""
        knots, count, _, _ = key
        blueprint, solutions = self.blueprints.at(*knots), self._solutions[key]
        models: dict[object, list[Floats]] = {}
        curves = range(len(blueprint.plan.curves))
        for number, solution in enumerate(solutions):
            own = self._pairs(number, count)
            blocks = np.split(solution.coef, np.cumsum(blueprint.coordinates(own).sizes)[:-1])
            for term, block in zip([*curves, *own], blocks, strict=True):
                models.setdefault(term, []).append(block)
        sized = zip([*curves, *pairs], blueprint.coordinates(pairs).sizes, strict=True)
        return np.concatenate(
            [np.mean(models[term], axis=0) if term in models else np.zeros(size) for term, size in sized]
        )

    # --- stages ---

    def _choose_curves(self, count: int) -> Candidate:
        """Choose knots and alpha of curves, with the surfaces that every model has."""
        ladder, surface = self.wanted.ladder, self.wanted.surface_knots[0]
        knots, worse = Knots(self.wanted.n_knots[0], surface), 0
        best = self._walk(
            knots, ladder.first, count, stride=ladder.stride, patience=PATIENCE, needed=_SAME_ALPHA
        )
        for n_knots in self.wanted.n_knots[1:]:
            if worse >= PATIENCE:
                break
            step, first = self._simplest(best).step, len(self.tried)
            finer = self._walk(Knots(n_knots, surface), step, count, stride=ladder.stride, needed=_SAME_ALPHA)
            if finer.error < best.error - _FINER_CURVES * _room(best.error):
                self._forget(best.knots)
                best, worse = finer, 0
                continue
            self._give_up(first)
            self._forget(finer.knots)
            worse += 1
        return self._simplest(best)

    def _simplest(self, best: Candidate) -> Candidate:
        """Return the candidate of the largest alpha that is hardly worse than the best."""
        nearly = best.error + _SAME_ALPHA * _room(best.error)
        alike = [one for one in self.tried if one.key[:3] == best.key[:3] and one.error <= nearly]
        return max(alike, key=lambda one: one.alpha)

    def _add_surfaces(self, curves: Candidate) -> Candidate:
        """Add surfaces in growing numbers at the alpha of the curves, else at larger ones; return the best candidate.

        Surfaces have many more values than curves: where curves want hardly any penalty, surfaces may want some.
        """
        fits, solutions = self._fits_with(curves.knots), self._solutions[curves.key]
        self._ranked = [fit.rank_pairs(s.coef) for fit, s in zip(fits, solutions, strict=True)]
        most = min(ranked.gains.size for ranked in self._ranked)
        counts = dict.fromkeys(min(count, most) for count in self.wanted.counts if min(count, most))
        alone = curves
        if 0 not in self.wanted.counts and counts:
            self._give_up(0)
            alone = replace(curves, error=np.inf)
        for larger in range(PATIENCE + 1):
            best, worse = alone, 0
            for count in counts:
                step = curves.step - larger * self.wanted.ladder.stride
                found = self._try(curves.knots, step, count)
                if found is None:
                    break
                best, worse = (found, 0) if found.error < best.error else (best, worse + 1)
                if worse >= PATIENCE:
                    break
            if best is not alone:
                return best
        return curves

    def _refine_surfaces(self, found: Candidate) -> None:
        """Choose between the coarse and finer grids, each with its alpha and adapted penalty."""
        plain = self._walk(found.knots, found.step, found.n_pairs, stride=1)
        coarse, first = self._adapt(plain), len(self.tried)
        # A noticeable gain may come before or after the penalty is adapted. Products with fine grids are dear.
        promising = max(coarse.error, plain.error - _FINER_SURFACES * _room(plain.error))
        for n_knots in self.wanted.surface_knots[1:]:
            knots = Knots(plain.knots.curve, n_knots)
            fine = self._walk(knots, plain.step, plain.n_pairs, stride=1)
            best = self._adapt(fine) if fine.error < promising else fine
            if best.error < coarse.error - _FINER_SURFACES * _room(coarse.error):
                return
            self._forget(knots)
        self._give_up(first)

    def _adapt(self, plain: Candidate) -> Candidate:
        """Adapt the penalty to the model's steps, again while that helps noticeably; return the best candidate."""
        best = plain
        for number in range(self.wanted.rounds.steps):
            first = len(self.tried)
            found = self._try(best.knots, best.step, best.n_pairs, Rounds(number + 1))
            if found is None or not is_worth(found.error, best.error):
                self._give_up(first)
                break
            best = found
        return best

    def _select(self, count: int) -> None:
        """Adapt the penalty of the best curves to whole terms, in all rounds: the first may be worse than none.

        This comes last, for curves of few columns may be ahead of the first surfaces, and would end the search before
        finer ones. An alpha beyond the grid makes all curves nearly 0, and which of them is largest chance.
        """
        alike = [one for one in self.tried if one.is_worth and (one.n_pairs, one.rounds) == (count, PLAIN)]
        if not (alike and self.wanted.rounds.terms):
            return
        best, plain, first = self.best, min(alike), len(self.tried)
        step = min(max(plain.step, 0), len(self.wanted.ladder.alphas) - 1)
        self._try(plain.knots, step, count)
        n_rounds = self.wanted.rounds.terms
        found = [self._try(plain.knots, step, count, Rounds(terms=n + 1)) for n in range(n_rounds)]
        if not is_worth(min(one.error for one in found if one is not None), best.error):
            self._give_up(first)

    # --- one candidate after another ---

    def _walk(
        self, knots: Knots, step: int, count: int, *, stride: int, patience: int = 1, needed: float = 0.0
    ) -> Candidate:
        """Try an alpha, then smaller ones while the error falls, else larger ones; return the best candidate.

        Parameters
        ----------
        patience : int
            How many smaller alphas in a row may be no better: the errors of the first alphas are noisy.
        needed : float
            The share of the remaining gain by which a smaller alpha must be better: it takes more iterations.
        """
        best = self._try(knots, step, count)
        assert best is not None
        for direction in (1, -1):
            start, worse, at = best, 0, step
            reached, share = best.error, needed if direction > 0 else 0.0
            while worse < (patience if direction > 0 else 1):
                at += direction * stride
                found = self._try(knots, at, count)
                if found is None:
                    break
                if self.wanted.ladder.is_beyond(at) and not is_worth(found.error, best.error):
                    self._give_up(-1)
                    break
                best = found if found.error < best.error else best
                is_better = found.error < reached - share * _room(reached)
                reached, worse = (found.error, 0) if is_better else (reached, worse + 1)
            if best is not start:
                break
        return best

    def _try(self, knots: Knots, step: int, count: int, rounds: Rounds = PLAIN) -> Candidate | None:
        """Fit every split and score it; None where the ladder ends."""
        alpha = self.wanted.ladder.at(step)
        if alpha is None:
            return None
        key = knots, count, rounds, alpha
        if key in self._solutions:
            return next(one for one in self.tried if one.key == key)
        if self.deadline is not None and self.tried and time.monotonic() > self.deadline:
            raise _TimeIsUpError
        held_out, solutions = [], []
        before = None if rounds == PLAIN else self._solutions[knots, count, rounds.one_less, alpha]
        start = self._nearest(knots, alpha, count)
        for number, fit in enumerate(self._fits_with(knots)):
            pairs = self._pairs(number, count)
            if before is not None:
                by_terms = rounds.terms > 0
                layout, solution = fit.solve(alpha, pairs, before=before[number].coef, by_terms=by_terms)
            else:
                at = None if start is None else self._solutions[start][number].coef
                layout, solution = fit.solve(alpha, pairs, at)
            held_out.append(self._scores(number, layout, solution.coef))
            solutions.append(solution)
        scored = zip(self.splits, held_out, strict=True)
        errors = [float(split.scorer.errors_of_rows(scores[None, :])[0]) for split, scores in scored]
        error = float(np.average(errors, weights=[split.scorer.share for split in self.splits]))
        self._solutions[key], self.held_out[key] = solutions, held_out
        self.tried.append(Candidate(error, count, knots, rounds, -alpha, step))
        return self.tried[-1]

    def _give_up(self, first: int) -> None:
        """Exclude the candidates from this one on from the choice."""
        self.tried[first:] = [replace(one, is_worth=False) for one in self.tried[first:]]

    def _forget(self, knots: Knots) -> None:
        """Release the codes of these knots: they are as large as the rows in single precision."""
        self._fits.pop(knots, None)
        self.blueprints.forget(*knots)

    def _fits_with(self, knots: Knots) -> list[AdditiveFit]:
        if knots not in self._fits:
            blueprint = self.blueprints.at(*knots)
            fits = [AdditiveFit(blueprint, split.training, is_loose=True) for split in self.splits]
            self._fits[knots] = fits
        return self._fits[knots]

    def _pairs(self, number: int, count: int) -> Sequence[tuple[int, int]]:
        if self.wanted.fixed is not None:
            return self.wanted.fixed
        return self._ranked[number].best(count) if count else ()

    def _nearest(self, knots: Knots, alpha: float, count: int) -> _Key | None:
        """Return the nearest models of the same knots with as many surfaces or fewer; those of curves fit any grid."""
        fewer = [
            key
            for key in self._solutions
            if key[1] <= count
            and key[2] == PLAIN
            and key[0].curve == knots.curve
            and (key[1] == 0 or key[0] == knots)
        ]
        return min(fewer, key=lambda key: (count - key[1], abs(np.log(key[3] / alpha))), default=None)

    def _scores(self, number: int, layout: Layout, coef: Floats) -> Floats:
        split = self.splits[number]
        if split.X is None:
            scores, rows = layout.design.dot(coef), split.scorer.rows
            return scores if rows is None else scores[rows]
        kept = self._scoring.get(number)
        if kept is None or kept[0] is not layout:
            kept = self._scoring[number] = layout, layout.encoded(split.X)
        return kept[1].dot(coef)


def _room(error: float) -> float:
    """Return how much the error can still fall: if larger values of the metric are better, errors go down to -1."""
    return abs(error + 1) if error < 0 else error
