"""Trying candidates on the same folds, first on a sample where there is much, and choosing one of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.pipeline import Pipeline

from rankwise.arrays import Floats, Matrix
from rankwise.automatic.candidates import METHODS, Candidate, Setting
from rankwise.automatic.figures import Figure, paired_difference
from rankwise.automatic.problems import Problem
from rankwise.automatic.scaling import Scaler, chain, entries
from rankwise.automatic.stages import Facts, stages
from rankwise.automatic.targets import exportable_to
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.progress import ProgressLine

__all__ = ["RULES", "Search", "Trial"]

RULES = ("best", "one-standard-error")

# Entries of X up to which every candidate is scored by all rows: some seconds of work.
_ALL = 1_500_000
_SAMPLED = 1_000_000  # entries of the sample otherwise
_FEWEST_ROWS = 4000
_FINALISTS = 3
_CLOSE = 2.0  # standard errors of a difference, within which two candidates may change places
_CLEARLY = 3.0  # standard errors, beyond which a scaling is worse whatever learns from it
# Entries times cost up to which a finalist is fitted to everything unless a time limit says otherwise.
_FINAL_WORK = 5e8
_EDGE = "The best alpha is the"  # how a method begins to warn of the end of its grid


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
        The selector, fitted to all rows, or all of the sample.
    seconds : float
    held_out : ndarray
        The scores of held-out rows, or the differences of held-out pairs.
    warned : list
        What it warned of.
    judged : {"all", "sample"}
    """

    candidate: Candidate
    figure: Figure
    scalers: list[Scaler]
    ranker: Ranker
    held_out: Floats
    seconds: float
    warned: list[warnings.WarningMessage] = field(default_factory=list)
    judged: str = "all"

    @property
    def model(self) -> Ranker | Pipeline:
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
    basis : int
        Rows of a reduced set.
    """

    problem: Problem
    methods: Sequence[str] | None
    scalings: Sequence[str] | None
    alphas: tuple[float, ...] | None
    fixed: dict[str, object]
    rule: str
    target: str | None
    time_limit: float | None
    basis: int
    random_state: int
    n_threads: int | None
    trials: list[Trial] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    stopped: str = ""
    judged_by: str = ""

    def run(self) -> Trial:
        """Try, and return what was chosen, fitted to all rows."""
        start = time.monotonic()
        whole = self.problem
        n_entries = entries(whole.columns.X)
        sample = self._sample(n_entries)
        with ProgressLine("choosing") as progress:
            run = _Run(self, start, progress)
            run.try_stages(whole if sample is None else sample, "all" if sample is None else "sample")
            if sample is not None:
                screened = f"{sample.describe()} of a sample of {sample.n_rows:,} of {whole.n_rows:,} rows"
                if not self.stopped:
                    run.try_finalists(whole, n_entries)
                self.judged_by = (
                    f"{whole.describe()}; the finalists were found by {screened}"
                    if any(trial.judged == "all" for trial in self.trials)
                    else screened
                )
            else:
                self.judged_by = whole.describe()
            chosen = self.choose(self.rule)
            if chosen.judged == "sample":
                chosen = run.refit(chosen, whole)
        for warning in chosen.warned:
            # The methods' own grids have gone on as far as they go.
            if self.alphas is None and str(warning.message).startswith(_EDGE):
                continue
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return chosen

    def choose(self, rule: str) -> Trial:
        """Return the best, or of the simplest form that is not worse by more than a standard error the best."""
        trials = [trial for trial in self.trials if trial.judged == "all"] or self.trials
        best = self.best(trials)
        if rule == "best":
            return best
        close = [trial for trial in trials if self.is_close(trial, best, 1.0)]
        return min(
            close,
            key=lambda trial: (
                not exportable_to(trial.candidate),
                METHODS[trial.candidate.method].complexity,
                self.loss(trial),
            ),
        )

    def best(self, trials: Sequence[Trial]) -> Trial:
        """Return the trial with the best value; of equals the first, which is simpler."""
        return min(trials, key=self.loss)

    def is_close(self, trial: Trial, best: Trial, errors: float) -> bool:
        """Tell whether a trial is worse than the best by at most so many standard errors of the difference."""
        difference, error = paired_difference(trial.figure, best.figure)
        return (
            trial is best or abs(difference) <= errors * error
        )  # never of a standard error that is not known

    def loss(self, trial: Trial) -> float:
        """Return the value, turned so that less is better."""
        return -trial.figure.value if self.problem.metric.greater_is_better else trial.figure.value

    def _sample(self, n_entries: int) -> Problem | None:
        whole = self.problem
        if n_entries <= _ALL:
            return None
        n_rows = max(_FEWEST_ROWS, int(whole.n_rows * _SAMPLED / n_entries))
        if n_rows >= 0.8 * whole.n_rows:
            return None
        sample = whole.sample(n_rows, self.random_state)
        return None if sample is whole else sample


@dataclass
class _SoFar:
    """What a search has tried so far."""

    search: Search

    def best(self, *methods: str) -> Candidate | None:
        of_these = [one for one in self.search.trials if not methods or one.candidate.method in methods]
        return self.search.best(of_these).candidate if of_these else None

    def is_close(self, method: str) -> bool:
        trials = self.search.trials
        own = [trial for trial in trials if trial.candidate.method == method]
        return bool(own) and self.search.is_close(self.search.best(own), self.search.best(trials), _CLOSE)

    def promising(self, scalings: Sequence[str]) -> list[str]:
        search = self.search
        plain = {
            trial.candidate.scaling: trial
            for trial in reversed(search.trials)
            if METHODS[trial.candidate.method].form == "linear" and not trial.candidate.options
        }
        known = sorted((way for way in scalings if way in plain), key=lambda way: search.loss(plain[way]))
        close = [way for way in known if search.is_close(plain[way], plain[known[0]], _CLEARLY)]
        return [*close, *(way for way in scalings if way not in plain)]


@dataclass
class _Run:
    """One search while it runs."""

    search: Search
    start: float
    progress: ProgressLine
    unit_seconds: float = 0.0

    def try_stages(self, problem: Problem, judged: str) -> None:
        """Try what the stages say, until nothing is left or it is time to stop."""
        search = self.search
        one_alpha = search.alphas is not None and len(search.alphas) == 1
        facts = Facts.of(problem, varies_loss=not one_alpha and not search.fixed)
        for candidates in stages(facts, search.methods, search.scalings, _SoFar(search)):
            allowed = [one for one in candidates if self._is_allowed(one)]
            if not self.try_all(allowed, problem, judged):
                return
        if not search.trials:
            raise InvalidInputError(
                f"No candidate can run in {search.target!r}."
                if search.target is not None
                else "None of the methods can learn from these data.",
                "allow more methods and scalings, or leave the target out.",
            )

    def _is_allowed(self, candidate: Candidate) -> bool:
        known = any(trial.candidate == candidate for trial in self.search.trials)
        target = self.search.target
        return not known and (target is None or target in exportable_to(candidate))

    def try_finalists(self, whole: Problem, n_entries: int) -> None:
        """Fit the best of the sample to everything, the best first."""
        search = self.search
        order = sorted(search.trials, key=search.loss)
        best = order[0]
        close = [trial for trial in order if search.is_close(trial, best, _CLOSE)]
        if search.rule == "one-standard-error":
            close.sort(key=lambda trial: (trial is not best, METHODS[trial.candidate.method].complexity))
        affordable = [one for one in close if self._is_affordable(one.candidate, n_entries)]
        if not affordable and METHODS[best.candidate.method].cost <= 1:
            affordable = [best]
        self.unit_seconds *= n_entries / max(_SAMPLED, 1)
        self.try_all([trial.candidate for trial in affordable[:_FINALISTS]], whole, "all")

    def _is_affordable(self, candidate: Candidate, n_entries: int) -> bool:
        return self.search.time_limit is not None or n_entries * METHODS[candidate.method].cost <= _FINAL_WORK

    def try_all(self, candidates: Iterable[Candidate], problem: Problem, judged: str) -> bool:
        """Try some candidates; tell whether to go on."""
        search = self.search
        for candidate in candidates:
            if search.trials and not self._has_time(candidate):
                search.stopped = f"the time limit of {search.time_limit:g} s"
                return False
            self._show(candidate)
            try:
                trial = self._try(candidate, problem, judged)
            except KeyboardInterrupt:
                if not search.trials:
                    raise
                search.stopped = "Ctrl-C"
                return False
            except MemoryLimitError as error:
                if not search.trials:
                    raise
                search.skipped.append(f"{candidate.describe()}: {error.problem}")
                continue
            search.trials.append(trial)
        return True

    def _has_time(self, candidate: Candidate) -> bool:
        limit = self.search.time_limit
        if limit is None:
            return True
        return time.monotonic() - self.start + self.unit_seconds * METHODS[candidate.method].cost < limit

    def _show(self, candidate: Candidate) -> None:
        trials, metric = self.search.trials, self.search.problem.metric
        best = f"; best yet {metric.name} {self.search.best(trials).figure.value:.4f}" if trials else ""
        self.progress.update(f"candidate {len(trials) + 1}, {candidate.describe()}{best}")

    def _setting(self, candidate: Candidate, problem: Problem, X: Matrix) -> Setting:
        search, cv = self.search, problem.cv
        sampled = [one for one in search.trials if one.candidate == candidate and one.judged == "sample"]
        found = float(np.squeeze(sampled[0].ranker.alpha_)) if sampled else None
        if cv is not None and entries(X) > _ALL:
            # One fold has rows enough to choose a regularisation by; all of them compare candidates.
            cv = cv[:1]
        return Setting(
            problem.metric,
            cv,
            search.alphas,
            int(X.shape[1]),
            problem.n_rows,
            search.basis,
            search.random_state,
            search.n_threads,
            found,
        )

    def _selector(self, candidate: Candidate, problem: Problem, X: Matrix) -> Ranker:
        """Make what chooses the regularisation of a candidate; what is fixed goes to every method that has it."""
        method = METHODS[candidate.method]
        made = method.selector(self._setting(candidate, problem, X), candidate.parameters)
        known = made.get_params(deep=False)
        made.set_params(**{name: value for name, value in self.search.fixed.items() if name in known})
        return made

    def _try(self, candidate: Candidate, problem: Problem, judged: str) -> Trial:
        start = time.monotonic()
        method = METHODS[candidate.method]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            scalers, X, scored = problem.columns.get(candidate.scaling)
            selector = self._selector(candidate, problem, X)
            by_rank = candidate.ranks_labels
            fitted = problem.fit(selector, X, scored, by_rank=by_rank)
            held_out = problem.held_out(method.fixed(fitted), fitted, X, scored, by_rank=by_rank)
            figure = problem.figure(held_out)
        seconds = time.monotonic() - start
        self.unit_seconds = max(self.unit_seconds, seconds / method.cost)
        return Trial(candidate, figure, scalers, fitted, held_out, seconds, list(warned), judged)

    def refit(self, trial: Trial, whole: Problem) -> Trial:
        """Fit what was chosen on a sample to all rows; where that takes long, with the regularisation of the sample."""
        self.progress.update(f"fitting {trial.candidate.describe()} to all rows")
        scalers, X, scored = whole.columns.get(trial.candidate.scaling)
        if self._is_affordable(trial.candidate, entries(X)):
            estimator = self._selector(trial.candidate, whole, X)
        else:
            estimator, scored = METHODS[trial.candidate.method].fixed(trial.ranker), None
        fitted = whole.fit(estimator, X, scored, by_rank=trial.candidate.ranks_labels)
        return replace(trial, scalers=scalers, ranker=fitted)
