"""Trying candidates on the same folds: first on a sample where there is much, then the best of it on all rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankwise.arrays import Matrix
from rankwise.automatic.average import mean_of
from rankwise.automatic.candidates import AVERAGE, BASIS, METHODS, Candidate, Setting
from rankwise.automatic.labelled_rows import LabelledRows
from rankwise.automatic.problems import Problem
from rankwise.automatic.scaling import entries
from rankwise.automatic.search import CLEARLY, Search, SoFar, Trial
from rankwise.automatic.stages import Facts, stages
from rankwise.automatic.targets import exportable_to
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.runtime.progress import ProgressLine

__all__ = ["run_search"]

# Entries of X up to which every candidate is scored by all rows: some seconds of work.
_ALL = 1_500_000
_SAMPLED = 500_000  # entries of the sample that finds finalists otherwise
_COMPARED = 1_500_000  # entries of the sample that compares them, unless there is time for all rows
_COMPARED_BY = 2  # folds of it at first
# Folds that choose the alpha of what costs more than least squares, on a sample and from so many rows on; all compare.
_CHOSEN_BY = 2
_ROWS_TO_CHOOSE = 5000
_FEWEST_ROWS = 4000
# Entries times cost up to which several models, for their mean, are fitted to all rows.
_MEAN_WORK = 5e8
_EDGE = "The best alpha is the"  # how a method begins to warn of the end of its grid


def run_search(search: Search) -> Trial:
    """Try candidates, and return what was chosen, fitted to all rows."""
    start = time.monotonic()
    whole = search.problem
    sample = None if entries(whole.columns.X) <= _ALL else _sample(search, _SAMPLED)
    with ProgressLine("choosing") as progress:
        run = _Run(search, start, progress)
        if sample is None:
            run.try_stages(whole, "all")
            run.try_means(search.trials, whole)
            search.judged_by = whole.describe()
        else:
            run.try_stages(sample, "sample")
            run.try_finalists(sample)
        chosen = search.choose(search.rule)
        if chosen.n_rows < whole.n_training_rows:
            chosen = run.refit(chosen, whole)
    for warning in chosen.warned:
        # The methods' own grids have gone on as far as they go.
        if search.alphas is None and str(warning.message).startswith(_EDGE):
            continue
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return chosen


def _sample(search: Search, n_entries: int) -> Problem | None:
    """Return a sample of about so many entries; None where it saves little, or the problem has none."""
    whole = search.problem
    n_rows = max(_FEWEST_ROWS, int(whole.n_rows * n_entries / entries(whole.columns.X)))
    if n_rows >= 0.8 * whole.n_rows:
        return None
    sample = whole.sample(n_rows, search.random_state)
    return None if sample is whole else sample


@dataclass
class _Run:
    """One search while it runs."""

    search: Search
    start: float
    progress: ProgressLine
    unit_seconds: float = 0.0

    def try_stages(self, problem: Problem, judged: str) -> None:
        """Try what the stages say, until nothing is left or time is up."""
        search = self.search
        one_alpha = search.alphas is not None and len(search.alphas) == 1
        varies_loss = not one_alpha and not search.fixed
        varies = {"varies_loss": varies_loss, "varies_basis": search.basis is None}
        facts = Facts.of(problem, **varies, is_sample=judged == "sample")
        for candidates in stages(facts, search.methods, search.scalings, SoFar(search)):
            allowed = [one for one in candidates if self._is_allowed(one)]
            self.try_all(allowed, problem, judged)
        if not search.trials:
            raise InvalidInputError(
                f"No candidate can run in {search.target!r}."
                if search.target is not None
                else "None of the methods can learn from these data.",
                "allow more methods and scalings, or leave the target out.",
            )

    def try_means(self, trials: Sequence[Trial], problem: Problem) -> None:
        """Score the mean of the best of each form, as far as they are close to the best; then without the last one."""
        search, best_of_form = self.search, dict[str, Trial]()
        if search.methods is not None and AVERAGE not in search.methods:
            return
        for trial in search.close(trials):
            best_of_form.setdefault(METHODS[trial.candidate.method].form, trial)
        parts = list(best_of_form.values())
        for number in range(len(parts), 1, -1):
            self._try_mean(parts[:number], problem)

    def _try_mean(self, parts: Sequence[Trial], problem: Problem) -> None:
        """Score a mean of candidates that were tried: that takes no fit."""
        start, first = time.monotonic(), parts[0]
        candidate = Candidate(AVERAGE, parts=tuple(part.candidate for part in parts))
        spreads = [problem.spread(part.held_out) for part in parts]
        if not all(spreads) or not self._is_allowed(candidate):
            return
        ranker = mean_of([part.model for part in parts], spreads)
        weighted = [weight * part.held_out for weight, part in zip(ranker.weights_, parts, strict=True)]
        held_out = np.sum(weighted, axis=0)
        warned = [one for part in parts for one in part.warned]
        figure = problem.figure(held_out)
        seconds = time.monotonic() - start + sum(part.seconds for part in parts)
        self.search.trials.append(
            Trial(candidate, figure, [], ranker, held_out, seconds, first.n_rows, warned, first.judged)
        )

    def _is_allowed(self, candidate: Candidate) -> bool:
        known = any(trial.candidate == candidate for trial in self.search.trials)
        target = self.search.target
        return not known and (target is None or target in exportable_to(candidate))

    def try_finalists(self, sample: Problem) -> None:
        """Compare the best of a sample by more rows: of each form one, for variants differ little.

        More rows are kinder to curves and kernels than a sample is, so only what is clearly behind is left out.
        """
        search, by_form = self.search, dict[str, Candidate]()
        whole = search.problem
        assert isinstance(whole, LabelledRows)  # listed pairs are not sampled
        for trial in search.close(search.trials, CLEARLY):
            by_form.setdefault(METHODS[trial.candidate.method].form, trial.candidate)
        finalists = list(by_form.values())
        larger = whole if self._has_time_for_all(finalists) else _sample(search, _COMPARED) or whole
        assert isinstance(larger, LabelledRows)
        self.unit_seconds *= entries(larger.columns.X) / _SAMPLED
        self._compare(finalists, larger)
        how = search.final_trials[0].judged
        if how == "sample":
            search.scored_on = sample
        screened = f"{sample.describe()} of a sample of {sample.n_rows:,} of {whole.n_rows:,} rows"
        compared = search.scored_on.describe()
        if larger is not whole and larger.scored is None:
            compared += f" of a sample of {larger.n_rows:,} of {whole.n_rows:,} rows"
        search.judged_by = (
            screened if how == "sample" else f"{compared}; the finalists were found by {screened}"
        )

    def _compare(self, finalists: Sequence[Candidate], larger: LabelledRows) -> None:
        """Fit finalists without some folds, and score their means; without these hold out one fold after the other."""
        search, before = self.search, len(self.search.trials)
        n_folds = 1 if larger is search.problem else _COMPARED_BY
        has_folds = larger.scored is None
        part = larger.without_first_folds(n_folds) if has_folds else larger
        if has_folds:
            search.scored_on = larger.first_folds(n_folds)
        self.try_all(finalists, part, "fold" if has_folds else "all")
        compared = search.trials[before:]
        work = sum(METHODS[one.candidate.method].cost for one in search.close(compared))
        if work * entries(search.problem.columns.X) <= _MEAN_WORK:
            self.try_means(compared, part)
        is_mean = search.rule == "best" and bool(search.choose("best").candidate.parts)
        if has_folds and not is_mean:
            self._race(larger, n_folds)

    def _has_time_for_all(self, finalists: Sequence[Candidate]) -> bool:
        """Tell whether a time limit lets finalists be compared by all rows."""
        limit = self.search.time_limit
        if limit is None:
            return False
        ratio = entries(self.search.problem.columns.X) / _SAMPLED
        work = sum(METHODS[one.method].cost for one in finalists)
        return time.monotonic() - self.start + ratio * self.unit_seconds * work < limit

    def _race(self, whole: LabelledRows, n_before: int) -> None:
        """Hold out one fold after the other, as long as two finalists are close; keep what then remains."""
        search = self.search
        singles = [one for one in search.trials if one.judged == "fold" and not one.candidate.parts]
        racing = search.close(singles)
        n_folds = int(whole.folds[0].max()) + 1
        for number in range(n_before, n_folds):
            if len(racing) < 2:
                break
            part = whole.first_folds(number + 1)
            further = self._on_one_more_fold(racing, number, part)
            if len(further) < len(racing):
                break
            search.scored_on, racing = part, [replace(trial, judged="all") for trial in search.close(further)]
        search.trials += [trial for trial in racing if trial.judged == "all"]

    def _on_one_more_fold(self, racing: Sequence[Trial], number: int, part: LabelledRows) -> list[Trial]:
        """Score candidates by one more fold, until it is time to stop."""
        search, further = self.search, list[Trial]()
        for trial in racing:
            if not self._has_time(trial.candidate):
                search.stopped = f"the time limit of {search.time_limit:g} s"
                break
            self._show(trial.candidate)
            further.append(self._on_fold(trial, number, part))
        return further

    def _on_fold(self, trial: Trial, number: int, part: LabelledRows) -> Trial:
        """Score a candidate, whose regularisation the first fold chose, by one more fold."""
        start, candidate = time.monotonic(), trial.candidate
        _, X, _ = part.columns.get(candidate.scaling)
        estimator = METHODS[candidate.method].fixed(trial.ranker)
        held_out = np.zeros((1, part.n_rows))
        known = np.flatnonzero((part.folds[0] >= 0) & (part.folds[0] < number))
        is_first = trial.judged == "fold"  # then the scores are those of held-out rows alone
        held_out[0, known] = trial.held_out[0] if is_first else trial.held_out[0, known]
        test = np.flatnonzero(part.folds[0] == number)
        held_out[0, test] = part.without(test, estimator, X, by_rank=candidate.ranks_labels)
        seconds = trial.seconds + time.monotonic() - start
        return replace(trial, held_out=held_out, figure=part.figure(held_out), seconds=seconds)

    def try_all(self, candidates: Sequence[Candidate], problem: Problem, judged: str) -> None:
        """Try the candidates that there is time for."""
        search = self.search
        for number, candidate in enumerate(candidates):
            if search.trials and not self._has_time(candidate):
                search.stopped = f"the time limit of {search.time_limit:g} s"
                continue  # others may be cheaper
            self._show(candidate, len(candidates) - number - 1)
            try:
                trial = self._try(candidate, problem, judged)
            except MemoryLimitError as error:
                if not search.trials:
                    raise
                search.skipped.append(f"{candidate.describe()}: {error.problem}")
                continue
            search.trials.append(trial)

    def _has_time(self, candidate: Candidate) -> bool:
        limit = self.search.time_limit
        if limit is None:
            return True
        return time.monotonic() - self.start + self.unit_seconds * METHODS[candidate.method].cost < limit

    def _show(self, candidate: Candidate, n_left: int = 0) -> None:
        trials, metric = self.search.trials, self.search.problem.metric
        best = f"; best yet {metric.name} {self.search.best(trials).figure.value:.4f}" if trials else ""
        left = f", at least {n_left} more" if n_left else ""
        self.progress.update(f"candidate {len(trials) + 1}{left}: {candidate.describe()}{best}")

    def _setting(self, candidate: Candidate, problem: Problem, X: Matrix) -> Setting:
        search, cv = self.search, problem.cv
        sampled = [one for one in search.trials if one.candidate == candidate and one.judged == "sample"]
        found = gamma = None
        if sampled and METHODS[candidate.method].is_mean:
            found = float(sampled[0].ranker.alpha_) * sampled[0].n_rows / problem.n_training_rows
        if sampled:
            gamma = getattr(sampled[0].ranker, "gamma_", None)
        is_sample = cv is not None and problem is not search.problem
        has_many = isinstance(problem, LabelledRows) and problem.n_rows >= _ROWS_TO_CHOOSE
        if cv is not None and (is_sample or has_many) and METHODS[candidate.method].cost > 1:
            cv = cv[:_CHOSEN_BY]
        return Setting(
            problem.metric,
            cv,
            search.alphas,
            int(X.shape[1]),
            problem.n_rows,
            BASIS if search.basis is None else search.basis,
            search.random_state,
            search.n_threads,
            found,
            gamma,
            is_sample,
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
        n_rows = problem.n_training_rows
        return Trial(candidate, figure, scalers, fitted, held_out, seconds, n_rows, list(warned), judged)

    def refit(self, trial: Trial, whole: Problem) -> Trial:
        """Fit what was chosen without some of the rows to all of them, with the regularisation that it chose."""
        if trial.candidate.parts:
            tried = {one.candidate: one for one in self.search.trials if one.judged == trial.judged}
            fitted = [self.refit(tried[part], whole).model for part in trial.candidate.parts]
            spreads = [1 / (len(fitted) * weight) for weight in trial.ranker.weights_.tolist()]
            return replace(trial, ranker=mean_of(fitted, spreads))
        self.progress.update(f"fitting {trial.candidate.describe()} to all rows")
        scalers, X, _ = whole.columns.get(trial.candidate.scaling)
        method = METHODS[trial.candidate.method]
        estimator = method.fixed(trial.ranker)
        if method.is_mean:
            estimator.set_params(alpha=estimator.alpha * trial.n_rows / whole.n_training_rows)
        return replace(
            trial, scalers=scalers, ranker=whole.fit(estimator, X, by_rank=trial.candidate.ranks_labels)
        )
