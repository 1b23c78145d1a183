"""What was tried, and which of it is chosen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from sklearn.pipeline import Pipeline

from rankwise.arrays import Floats
from rankwise.automatic.candidates import METHODS, Candidate, complexity
from rankwise.automatic.figures import Figure, paired_difference
from rankwise.automatic.problems import Problem
from rankwise.automatic.scaling import Scaler, chain
from rankwise.automatic.targets import exportable_to
from rankwise.estimators.fitted import FittedRanker

__all__ = ["CLEARLY", "JUDGED", "RULES", "Search", "SoFar", "Trial"]

RULES = ("best", "one-standard-error")
JUDGED = ("all", "fold", "sample")  # by what, the surest first
_CLOSE = 2.0  # standard errors of a difference, within which two candidates may change places
CLEARLY = 3.0  # beyond which one is worse: a scaling whatever learns from it, a finalist however many rows there are


@dataclass
class Trial:
    """A candidate that was tried.

    Attributes
    ----------
    candidate : Candidate
    figure : Figure
    scalers : list
        Fitted.
    ranker : estimator
        The selector, fitted to all rows, to all but those of a fold, or to a sample.
    seconds : float
    held_out : ndarray
        The scores of held-out rows, or the differences of held-out pairs.
    warned : list
        What it warned of.
    n_rows : int
        That the ranker was fitted to.
    judged : {"all", "fold", "sample"}
        Whether all held-out rows scored it, those of one fold, or those of a sample.
    """

    candidate: Candidate
    figure: Figure
    scalers: list[Scaler]
    ranker: FittedRanker
    held_out: Floats
    seconds: float
    n_rows: int
    warned: list[warnings.WarningMessage] = field(default_factory=list)
    judged: str = "all"

    @property
    def model(self) -> FittedRanker | Pipeline:
        """The whole model: a ranker, or a pipeline of scalers that ends in one."""
        return chain(self.scalers, self.ranker)


@dataclass
class Search:
    """What is allowed, and for how long.

    Attributes
    ----------
    problem : Problem
    methods, scalings : sequence of str or None
    alphas : tuple of float or None
    fixed : dict
        Parameters that are not chosen, for every method that has them.
    rule : str
        One of `RULES`.
    target : str or None
        Where the model must be able to run.
    time_limit : float or None
        In seconds.
    basis : int or None
        Rows of every reduced set; None where larger ones may be tried.
    scored_on : Problem
        Whose held-out rows scored the final trials: the problem itself, its first fold, or a sample of it.
    judged_by : str
        The same in words.
    """

    problem: Problem
    methods: Sequence[str] | None
    scalings: Sequence[str] | None
    alphas: tuple[float, ...] | None
    fixed: dict[str, object]
    rule: str
    target: str | None
    time_limit: float | None
    basis: int | None
    random_state: int
    n_threads: int | None
    trials: list[Trial] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    stopped: str = ""
    judged_by: str = ""

    def __post_init__(self) -> None:
        self.scored_on: Problem = self.problem

    @property
    def final_trials(self) -> list[Trial]:
        """The trials that most held-out rows scored."""
        return next(filter(None, ([one for one in self.trials if one.judged == how] for how in JUDGED)), [])

    def choose(self, rule: str) -> Trial:
        """Return the best, or of the simplest form that is not worse by more than a standard error the best.

        A mean or a kernel is only chosen where it is ahead of the best readable candidate by a standard error.
        """
        trials = self.final_trials
        best, readable = self.best(trials), [trial for trial in trials if trial.candidate.is_readable]
        if readable:
            simple = self.best(readable)
            trials = [one for one in trials if one.candidate.is_readable or self.is_ahead(one, simple)]
        if rule == "best":
            best = self.best(trials)
            # The best of many is so by luck as well, which a mean of those that are close to it averages out.
            means = [trial for trial in trials if trial.candidate.parts and self.is_close(trial, best, 1.0)]
            return means[0] if means else best
        return min(
            [trial for trial in trials if self.is_close(trial, best, 1.0)] or [self.best(trials)],
            key=lambda trial: (
                not exportable_to(trial.candidate),
                complexity(trial.candidate),
                self.loss(trial),
            ),
        )

    def best(self, trials: Sequence[Trial]) -> Trial:
        """Return the trial with the best value; of equals the first, which is simpler."""
        return min(trials, key=self.loss)

    def close(self, trials: Sequence[Trial], errors: float = _CLOSE) -> list[Trial]:
        """Return the trials that may be the best of these, the best first."""
        order = sorted(trials, key=self.loss)
        return [trial for trial in order if self.is_close(trial, order[0], errors)]

    def is_close(self, trial: Trial, best: Trial, errors: float) -> bool:
        """Tell whether a trial is worse than the best by at most so many standard errors of the difference."""
        difference, error = paired_difference(trial.figure, best.figure)
        return (
            trial is best or abs(difference) <= errors * error
        )  # never of a standard error that is not known

    def is_ahead(self, trial: Trial, other: Trial) -> bool:
        """Tell whether a trial is better than another by more than a standard error of the difference."""
        _, error = paired_difference(trial.figure, other.figure)
        return self.loss(other) - self.loss(trial) > error  # never of a standard error that is not known

    def loss(self, trial: Trial) -> float:
        """Return the value, turned so that less is better."""
        return -trial.figure.value if self.problem.metric.greater_is_better else trial.figure.value


@dataclass
class SoFar:
    """What a search has tried so far."""

    search: Search

    def best(self, *methods: str, **options: object) -> Candidate | None:
        """Return the best candidate, of some methods or of all, with some options; None where none was tried."""
        of_these = [
            one
            for one in self.search.trials
            if (not methods or one.candidate.method in methods)
            and options.items() <= dict(one.candidate.options).items()
        ]
        return self.search.best(of_these).candidate if of_these else None

    def is_close(self, method: str) -> bool:
        """Tell whether the best candidate of a method may be the best of all."""
        trials = self.search.trials
        own = [trial for trial in trials if trial.candidate.method == method]
        return bool(own) and self.search.is_close(self.search.best(own), self.search.best(trials), _CLOSE)

    def ranker(self, candidate: Candidate) -> FittedRanker:
        """Return what was fitted for a candidate, with what it chose."""
        return next(trial.ranker for trial in self.search.trials if trial.candidate == candidate)

    def promising(self, scalings: Sequence[str]) -> list[str]:
        """Sort scalings by how well linear models did on them, without those that are clearly worse."""
        search = self.search
        plain = {
            trial.candidate.scaling: trial
            for trial in reversed(search.trials)
            if METHODS[trial.candidate.method].form == "linear" and not trial.candidate.options
        }
        known = sorted((way for way in scalings if way in plain), key=lambda way: search.loss(plain[way]))
        close = [way for way in known if search.is_close(plain[way], plain[known[0]], CLEARLY)]
        return [*close, *(way for way in scalings if way not in plain)]
