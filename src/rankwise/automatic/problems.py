"""Training data in folds, which candidates are fitted to and scored on.

Folds are assigned once. Where the additive search scores its settings on one or a few folds (`scored_folds`), every
candidate is compared on the same ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats, Ints, Matrix, Splits
from rankwise.automatic.scaling import ScaledColumns, bytes_of
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric
from rankwise.pairs.figures import Evaluation, Figure
from rankwise.pairs.pairs import Pairs
from rankwise.selection.plan import plan_of, scored_folds

# Larger matrices are not copied for every fold: the rows that are held out weigh nothing instead.
_COPIED_BYTES = 1 << 26


@dataclass(frozen=True)
class SplitProblem:
    """Rows and their pairs, and the folds or the evaluation set that score.

    The values of entries are the scores of rows, or the differences of listed pairs.

    Attributes
    ----------
    columns : ScaledColumns
    pairs : Pairs
    metric : Metric
    seed : int
    cv : list of (train, test), or None where an evaluation set scores
    cv_description : str
    n_folds : int
        How many folds there are, some of which score.
    scored : Pairs, optional
        The pairs of an evaluation set.
    """

    columns: ScaledColumns
    pairs: Pairs
    metric: Metric
    seed: int
    cv: Splits | None = None
    cv_description: str = ""
    n_folds: int = 1
    scored: Pairs | None = None

    @classmethod
    def in_folds(
        cls, columns: ScaledColumns, pairs: Pairs, metric: Metric, seed: int, cv: object
    ) -> SplitProblem:
        """Assign entries to folds."""
        plan = plan_of(cv, pairs, metric, seed)
        if plan.repeats:
            raise InvalidInputError(
                f"cv={cv!r:.80} tests the same {pairs.entries} several times, and AutoRanker scores each once.",
                "use a splitter whose test sets do not overlap, such as QueryKFold.",
            )
        n_scored, description = plan.n_folds, plan.description
        if pairs.has_blocks:  # probabilities of listed pairs are calibrated on all of them
            n_scored, description = scored_folds(cv, plan, pairs)
        splits = [(np.flatnonzero(plan.trained(fold)), plan.scoring(fold)) for fold in range(n_scored)]
        return cls(columns, pairs, metric, seed, splits, description, plan.n_folds)

    @cached_property
    def with_ranks(self) -> SplitProblem:
        """The same with ranks for labels, if the metric counts pairs."""
        return replace(self, pairs=self.pairs.with_ranks()) if self.metric.takes_weights else self

    @cached_property
    def fold(self) -> Ints:
        """The fold that each entry scores; -1 for none."""
        fold = np.full(self.pairs.n_entries, -1)
        for number, (_, test) in enumerate(self.cv or ()):
            fold[test] = number
        return fold

    @cached_property
    def evaluation(self) -> Evaluation:
        """The metric of the entries that score."""
        if self.scored is not None:
            return self.scored.evaluation(self.metric, None, 1, self.seed)
        return self.pairs.evaluation(self.metric, self.fold, self.n_folds, self.seed)

    def figure(self, values: Floats) -> Figure:
        """Return the mean over queries, over the folds of one ranking or over pairs, and the value of each unit."""
        return self.evaluation.figure(values)

    def spread(self, values: Floats) -> float:
        """Return how far held-out scores spread inside queries."""
        return self.evaluation.spread(values)

    def fit(self, estimator: Any, X: Matrix, scored: Matrix | None = None) -> Ranker:
        """Fit all entries; `scored` are the rows of an evaluation set, scaled like X."""
        rows, given = self.pairs.training(X)
        if self.scored is not None and scored is not None:
            given["eval_set"] = self.scored.validation(scored)
        return self._learn(estimator, rows, **given)

    def _learn(self, estimator: Any, X: Matrix, **given: Any) -> Ranker:
        fitted: Ranker = getattr(estimator, self.pairs.fit_method)(X, **given)
        return fitted

    def held_out(
        self, estimator: Any, model: Ranker, X: Matrix, scored: Matrix | None, known: Floats | None = None
    ) -> Floats:
        """Return the value of each entry that is held out, by a model that did not see it; 0 for the others.

        `estimator` is fitted without each fold in turn, but for the fold of `stopped_early`, whose values may be
        `known`; `model`, fitted to all entries, scores an evaluation set.
        """
        if self.scored is not None and scored is not None:
            return self.scored.values(model.predict(scored))
        without, found = None if known is None else self._first_to_score, np.zeros(self.pairs.n_entries)
        for number, (train, test) in enumerate(self.cv or ()):
            found[test] = known if number == without else self._values(train, test, estimator, X)
        return found

    def stopped_early(self, estimator: Any, X: Matrix, scored: Matrix | None) -> tuple[Floats, Figure]:
        """Fit all entries but those of one fold, or of the evaluation set, which stop the fit; score these."""
        if self.scored is not None and scored is not None:
            found = self.scored.values(self.fit(estimator, X, scored).predict(scored))
            return found, self.figure(found)
        assert self.cv is not None
        train, test = self.cv[self._first_to_score]
        found = self._values(train, test, estimator, X, eval_set=self.pairs.validation(X, test))
        values = np.zeros(self.pairs.n_entries)
        values[test] = found
        return found, self._evaluation_of(self._first_to_score).figure(values)

    @cached_property
    def _first_to_score(self) -> int:
        """The first fold that the metric is defined on: in few rows all labels may be equal."""
        for number in range(len(self.cv or ())):
            with suppress(InvalidInputError):
                self._evaluation_of(number).figure(np.zeros(self.pairs.n_entries))
                return number
        return 0

    def _evaluation_of(self, fold: int) -> Evaluation:
        only = np.where(self.fold == fold, 0, -1)
        return self.pairs.evaluation(self.metric, only, self.n_folds, self.seed)

    def _values(self, train: Ints, test: Ints, estimator: Any, X: Matrix, **beside: Any) -> Floats:
        """Return the values of some entries by the estimator, fitted to others."""
        rows, given = self.pairs.training(X, train, copies=bytes_of(X) <= _COPIED_BYTES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
            fitted = self._learn(estimator, rows, **given, **beside)
        return self.pairs.values(np.asarray(fitted.predict(self.pairs.tested(X, test))), test)

    def assembled(self, parts: Sequence[Floats]) -> Floats | None:
        """Return `held_out` from the scores of the rows that each split tests; None where they are not all here."""
        if self.scored is not None:
            return self.scored.values(parts[0])
        tests = [test for _, test in self.cv or ()]
        rows = np.arange(self.pairs.n_rows)
        n_rows = [self.pairs.tested(rows, test).shape[0] for test in tests]
        if [part.size for part in parts] != n_rows:
            return None
        found = np.zeros(self.pairs.n_entries)
        for test, scores in zip(tests, parts, strict=True):
            found[test] = self.pairs.values(scores, test)
        return found

    def describe(self) -> str:
        """Describe the validation in words."""
        if self.scored is not None:
            n_entries = int(np.count_nonzero(self.evaluation.weight))
            return f"an evaluation set of {n_entries:,} {self.scored.entries}"
        n_scoring, there, unit = self.evaluation.counts()
        share = f"all {there:,}" if n_scoring == there else f"{n_scoring:,} of {there:,}"
        return f"{self.cv_description}, {share} {unit}"
