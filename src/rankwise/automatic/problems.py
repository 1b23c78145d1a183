"""What a choice is made on: labelled rows or listed pairs, in folds that are assigned once for all candidates."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats, Ints, Matrix, Splits
from rankwise.automatic.figures import Figure
from rankwise.automatic.scaling import ScaledColumns, bytes_of
from rankwise.cached import cached_property
from rankwise.data.preferences import Preferences
from rankwise.data.queries import Queries
from rankwise.design import as_design
from rankwise.estimators.base import Ranker
from rankwise.metrics import Metric
from rankwise.metrics.metric import Evaluator
from rankwise.preprocessing.rank_scaler import mid_ranks
from rankwise.problems.folds import FoldAssigner

__all__ = ["LabelledRows", "ListedPairs", "Problem"]

# Rows of one ranking that make a block, whose difference is one observation for standard errors.
_BLOCK_ROWS = 30
_BLOCKS = 100  # at most, in each fold
# Larger matrices are not copied for every fold: the rows that are held out weigh nothing instead.
_COPIED_BYTES = 1 << 26


class Problem(Protocol):
    """What candidates are fitted to and scored by."""

    metric: Metric
    columns: ScaledColumns
    cv: Splits | None

    @property
    def n_rows(self) -> int:
        """Rows to fit."""

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

    def figure(self, held_out: Floats) -> Figure:
        """Return the value of the metric, and that of each unit."""

    def describe(self) -> str:
        """Say what scored."""

    def sample(self, at_most: int, seed: int) -> Problem:
        """Return about so many rows, with the folds that they have; or the problem itself where that saves nothing."""


@dataclass
class LabelledRows:
    """Rows with labels.

    Attributes
    ----------
    columns : ScaledColumns
    y : (rows,) float64
    queries : Queries
    weight : (rows,) float64 or None
    metric : Metric
    folds : list of (rows,) int32
        Assignments to folds, in each of which every row that is held out at all is held out once; -1 for the others.
        Regularisation is chosen on the first, and candidates are compared by all.
    block : (rows,) int64
        In one ranking: the block of the row inside its fold.
    cv : list of (train, test), or None
    scored : tuple (y, Queries, block), optional
        The labels and queries of an evaluation set.
    cv_description : str
    """

    columns: ScaledColumns
    y: Floats
    queries: Queries
    weight: Floats | None
    metric: Metric
    folds: list[npt.NDArray[np.int32]]
    block: Ints
    cv: Splits | None
    cv_description: str
    scored: tuple[Floats, Queries, Ints] | None = None

    @property
    def n_rows(self) -> int:
        """Rows to fit."""
        return self.queries.n_rows

    @property
    def qid(self) -> Ints | None:
        """Query ids, None for one ranking."""
        return self.queries.codes if len(self.queries) > 1 else None

    def fit(
        self, estimator: Ranker, X: Matrix, scored: Matrix | None = None, *, by_rank: bool = False
    ) -> Ranker:
        """Fit all rows."""
        y = _ranked(self.y, self.weight) if by_rank else self.y
        if self.scored is None or scored is None:
            estimator.fit(X, y, self.qid, sample_weight=self.weight)
            return estimator
        labels, queries, _ = self.scored
        ids = () if self.qid is None else (queries.codes,)
        estimator.fit(X, y, self.qid, sample_weight=self.weight, eval_set=(scored, labels, *ids))
        return estimator

    def held_out(
        self, estimator: Ranker, model: Ranker, X: Matrix, scored: Matrix | None, *, by_rank: bool = False
    ) -> Floats:
        """Return a score for each row that is held out, by the model that did not see it; a line per assignment."""
        if self.scored is not None and scored is not None:
            return np.asarray(model.predict(scored))[None]
        scores = np.zeros((len(self.folds), self.n_rows))
        is_copied = bytes_of(X) <= _COPIED_BYTES
        for line, test in self.tests():
            others = np.ones(self.n_rows, dtype=np.bool_)
            others[test] = False
            fitted = clone(estimator)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
                if is_copied:
                    rows = np.flatnonzero(others)
                    weight = None if self.weight is None else self.weight[rows]
                    ids = None if self.qid is None else self.qid[rows]
                    y = _ranked(self.y[rows], weight) if by_rank else self.y[rows]
                    fitted.fit(X[rows], y, ids, sample_weight=weight)
                else:
                    weight = others.astype(np.float64) if self.weight is None else self.weight * others
                    y = _ranked(self.y, weight) if by_rank else self.y
                    fitted.fit(X, y, self.qid, sample_weight=weight)
            scores[line, test] = fitted.predict(X[test]) if is_copied else fitted.predict(X)[test]
        return scores

    def tests(self) -> Iterator[tuple[int, Ints]]:
        """Yield the rows of each fold, with the number of the assignment."""
        for line, fold in enumerate(self.folds):
            for number in range(int(fold.max()) + 1):
                yield line, np.flatnonzero(fold == number)

    @cached_property
    def _evaluators(self) -> tuple[Ints, list[tuple[Evaluator, Evaluator]]]:
        """The rows that score, and the metric on them: by query, or for each assignment by fold and by block."""
        if self.scored is not None:
            y, queries, block = self.scored
            rows, weight = np.arange(y.size), None
            folds = [np.zeros(y.size, dtype=np.int64)]
        else:
            held = self.folds[0] >= 0
            held = held if self.weight is None else held & (self.weight > 0)
            rows = np.flatnonzero(held)
            y, queries, block = self.y[rows], self.queries.subset(rows), self.block[rows]
            weight = self.weight[rows] if self.weight is not None and self.metric.takes_weights else None
            folds = [fold[rows].astype(np.int64) for fold in self.folds]
        if len(queries) > 1:
            both = self.metric.prepare(y, queries, sample_weight=weight)
            return rows, [(both, both)] * len(folds)
        return rows, [
            (
                self.metric.prepare(y, fold, sample_weight=weight),
                self.metric.prepare(y, fold * (block.max() + 1) + block, sample_weight=weight),
            )
            for fold in folds
        ]

    def figure(self, held_out: Floats) -> Figure:
        """Return the mean over queries, or over the folds of one ranking, and the value of each query or block."""
        rows, evaluators = self._evaluators
        wholes, units = [], []
        for scores, (whole, parts) in zip(held_out[:, rows], evaluators, strict=True):
            wholes.append(whole(scores))
            found = parts.per_query(scores)
            units.append(found.values[found.counted])
        has_queries = evaluators[0][0] is evaluators[0][1]
        values = np.mean(units, axis=0) if has_queries else np.concatenate(units)
        share = np.full(values.size, 1 / max(values.size, 1))
        return Figure(float(np.mean(wholes)), values, share, 1 if has_queries else len(evaluators))

    def describe(self) -> str:
        """Say what scored."""
        rows, evaluators = self._evaluators
        if self.scored is not None:
            return f"an evaluation set of {rows.size:,} rows"
        if len(self.queries) == 1:
            n_scoring, there, what = rows.size, self.n_rows, "rows"
        else:
            n_scoring, there, what = int(evaluators[0][0].counted.sum()), len(self.queries), "queries"
        times = f", {len(self.folds)} times" if len(self.folds) > 1 else ""
        share = f"all {there:,}" if n_scoring == there else f"{n_scoring:,} of {there:,}"
        return f"{self.cv_description}{times}, {share} {what}"

    def sample(self, at_most: int, seed: int) -> LabelledRows:
        """Return about so many rows, whole queries of them, with the folds and blocks that they have."""
        design = as_design(self.columns.X, 1)
        chosen = FoldAssigner(design, self.y, self.queries, self.weight).sample(at_most, seed)
        return self.subset(np.flatnonzero(chosen))

    def subset(self, rows: Ints) -> LabelledRows:
        """Return some of the rows, with the folds and blocks that they have."""
        queries = self.queries.subset(rows)
        weight = None if self.weight is None else self.weight[rows]
        ids = queries.codes if len(queries) > 1 else None
        columns = ScaledColumns(self.columns.X[rows], ids, weight, self.columns.scored)
        fold = np.unique(self.folds[0][rows], return_inverse=True)
        own = (fold[1] + min(int(fold[0][0]), 0)).astype(np.int32)
        return replace(
            self,
            columns=columns,
            y=self.y[rows],
            queries=queries,
            weight=weight,
            folds=[own],
            block=self.block[rows],
            cv=None if self.cv is None else splits_of(own),
        )


def _ranked(y: Floats, weight: Floats | None) -> Floats:
    """Replace labels by their ranks among all labels, from 0 to 1: the same order, without long tails."""
    values, places = mid_ranks(y, weight)
    return np.interp(y, values, places)


def splits_of(fold: Ints | npt.NDArray[np.int32]) -> Splits:
    """Return folds as a list of (train, test)."""
    return [
        (np.flatnonzero(fold != number), np.flatnonzero(fold == number))
        for number in range(int(fold.max()) + 1)
    ]


def blocks_of_rows(assigner: FoldAssigner, n_folds: int, seed: int) -> Ints:
    """Assign the rows of one ranking to blocks, as many in each fold as make good observations."""
    n_blocks = int(np.clip(assigner.n_units // (n_folds * _BLOCK_ROWS), 1, _BLOCKS))
    return np.maximum(assigner.folds(n_blocks, seed), 0).astype(np.int64)


@dataclass
class ListedPairs:
    """Pairs of rows, winner first.

    Attributes
    ----------
    columns : ScaledColumns
    pairs : Preferences
    unit : (pairs,) int64
        What is not divided between folds, and is one observation: all comparisons of two rows, or a group.
    metric : Metric
    cv : list of (train, test), or None
    scored : Preferences, optional
        The pairs of an evaluation set.
    cv_description : str
    """

    columns: ScaledColumns
    pairs: Preferences
    unit: Ints
    metric: Metric
    cv: Splits | None
    cv_description: str
    scored: Preferences | None = None

    @property
    def n_rows(self) -> int:
        """Rows to fit."""
        return int(self.columns.X.shape[0])

    def fit(
        self, estimator: Ranker, X: Matrix, scored: Matrix | None = None, *, by_rank: bool = False
    ) -> Ranker:
        """Fit all pairs."""
        if self.scored is None or scored is None:
            return self._fit(estimator, X, slice(None))
        weight = () if self.scored.weight is None else (self.scored.weight,)
        return self._fit(estimator, X, slice(None), eval_set=(scored, _edges(self.scored), *weight))

    def held_out(
        self, estimator: Ranker, model: Ranker, X: Matrix, scored: Matrix | None, *, by_rank: bool = False
    ) -> Floats:
        """Return the difference of each pair's scores, by the model that did not see it."""
        if self.scored is not None and scored is not None:
            return _difference(model.predict(scored), self.scored, slice(None))
        found = np.zeros(len(self.pairs))
        for train, test in self.cv or ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
                fitted = self._fit(clone(estimator), X, train)
            found[test] = _difference(fitted.predict(X), self.pairs, test)
        return found

    def _fit(
        self,
        estimator: Ranker,
        X: Matrix,
        chosen: Ints | slice,
        eval_set: tuple[Matrix | Ints | Floats, ...] | None = None,
    ) -> Ranker:
        magnitude, weight = (
            None if values is None else values[chosen] for values in (self.pairs.magnitude, self.pairs.weight)
        )
        estimator.fit_pairs(X, _edges(self.pairs)[chosen], magnitude, weight, eval_set)
        return estimator

    @cached_property
    def _tested(self) -> tuple[Preferences, Floats, Ints]:
        """The pairs that score, how much each counts, and its unit."""
        pairs = self.pairs if self.scored is None else self.scored
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight.astype(np.float64)
        if pairs.magnitude is not None:
            weight = weight * (pairs.magnitude > 0)  # nobody won a tie
        unit = self.unit if self.scored is None else np.arange(len(pairs))
        if self.scored is None:
            is_tested = np.zeros(len(pairs), dtype=np.bool_)
            for _, test in self.cv or ():
                is_tested[test] = True
            weight = weight * is_tested
        return pairs, weight, unit

    @property
    def fold(self) -> Ints:
        """The fold that each pair is held out with; -1 for pairs that never are."""
        fold = np.full(len(self.pairs), -1)
        for number, (_, test) in enumerate(self.cv or ()):
            fold[test] = number
        return fold

    @property
    def tested_weight(self) -> Floats:
        """How much each pair counts: nothing where it was never held out, or has no winner."""
        return self._tested[1]

    def figure(self, held_out: Floats) -> Figure:
        """Return the share of the held-out pairs that the scores contradict, or agree with."""
        _, weight, unit = self._tested
        tie = float(getattr(self.metric, "ties", 0.5))
        wrong = np.where(held_out == 0, tie, held_out < 0)
        right = 1.0 - wrong if self.metric.greater_is_better else wrong
        total = np.bincount(unit, weight)
        is_there = total > 0
        values = np.bincount(unit, weight * right)[is_there] / total[is_there]
        share = total[is_there] / total.sum()
        return Figure(float((share * values).sum()), values, share)

    def describe(self) -> str:
        """Say what scored."""
        n_pairs = int((self._tested[1] > 0).sum())
        if self.scored is not None:
            return f"an evaluation set of {n_pairs:,} pairs"
        return f"{self.cv_description}, {'all ' if n_pairs == len(self.pairs) else ''}{n_pairs:,} pairs"

    def sample(self, at_most: int, seed: int) -> Self:
        """Return the problem itself: pairs are few beside the rows they compare, or cost little."""
        return self


def _edges(pairs: Preferences) -> Ints:
    return np.column_stack([pairs.winner, pairs.loser])


def _difference(scores: Floats, pairs: Preferences, chosen: Ints | slice) -> Floats:
    return np.asarray(scores[pairs.winner[chosen]] - scores[pairs.loser[chosen]])
