"""Labelled rows in folds: what candidates are fitted to, and how what they say of held-out rows is scored."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats, Ints, Matrix, Splits
from rankwise.automatic.average import spread_inside
from rankwise.automatic.figures import Figure
from rankwise.automatic.scaling import HeldOutColumns, ScaledColumns, bytes_of, mid_ranks
from rankwise.data.queries import Queries
from rankwise.estimators.base import Ranker
from rankwise.metrics import Metric
from rankwise.metrics.metric import Evaluator
from rankwise.selection.folds import FoldAssigner

__all__ = ["LabelledRows", "blocks_of_rows", "splits_of"]

# Rows of one ranking that make a block, whose difference is one observation for standard errors.
_BLOCK_ROWS = 30
_BLOCKS = 100  # at most, in each fold
# Larger matrices are not copied for every fold: the rows that are held out weigh nothing instead.
_COPIED_BYTES = 1 << 26


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
    scored_weight : (rows of the evaluation set,) float64 or None
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
    scored_weight: Floats | None = None

    @property
    def n_rows(self) -> int:
        """Rows to fit."""
        return self.queries.n_rows

    @property
    def n_training_rows(self) -> int:
        """Rows that weigh something."""
        return self.n_rows if self.weight is None else int((self.weight > 0).sum())

    @property
    def qid(self) -> Ints | None:
        """Query ids, None for one ranking."""
        return self.queries.codes if len(self.queries) > 1 else None

    @property
    def known(self) -> Queries | None:
        """The same as rankers take them without another look."""
        return self.queries if len(self.queries) > 1 else None

    def fit(
        self, estimator: Ranker, X: Matrix, scored: Matrix | None = None, *, by_rank: bool = False
    ) -> Ranker:
        """Fit all rows."""
        y = _ranked(self.y, self.weight) if by_rank else self.y
        if self.scored is None or scored is None:
            return estimator.fit(X, y, self.known, sample_weight=self.weight)
        labels, queries, _ = self.scored
        ids = () if self.known is None else (queries,)
        return estimator.fit(X, y, self.known, sample_weight=self.weight, eval_set=(scored, labels, *ids))

    def held_out(
        self, estimator: Ranker, model: Ranker, X: Matrix, scored: Matrix | None, *, by_rank: bool = False
    ) -> Floats:
        """Return a score for each row that is held out, by the model that did not see it; a line per assignment."""
        if self.scored is not None and scored is not None:
            return np.asarray(model.predict(scored))[None]
        scores = np.zeros((len(self.folds), self.n_rows))
        for line, test in self.tests():
            scores[line, test] = self.without(test, estimator, X, by_rank=by_rank)
        return scores

    def without(self, test: Ints, estimator: Ranker, X: Matrix, *, by_rank: bool = False) -> Floats:
        """Return the scores of some rows by the estimator, fitted to the others."""
        others = np.ones(self.n_rows, dtype=np.bool_)
        others[test] = False
        if bytes_of(X) <= _COPIED_BYTES:
            rows = np.flatnonzero(others)
            seen, y, known = X[rows], self.y[rows], None if self.known is None else self.known.subset(rows)
            weight = None if self.weight is None else self.weight[rows]
        else:
            seen, y, known = X, self.y, self.known
            weight = others.astype(np.float64) if self.weight is None else self.weight * others
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
            estimator.fit(seen, _ranked(y, weight) if by_rank else y, known, sample_weight=weight)
        return np.asarray(estimator.predict(X[test]))

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
            folds, weight = [np.zeros(y.size, dtype=np.int32)], self.scored_weight
        else:
            y, queries, block, folds, weight = self.y, self.queries, self.block, self.folds, self.weight
        held = folds[0] >= 0
        rows = np.flatnonzero(held if weight is None else held & (weight > 0))
        y, queries, block = y[rows], queries.subset(rows), block[rows]
        folds = [fold[rows].astype(np.int64) for fold in folds]
        weight = weight[rows] if weight is not None and self.metric.takes_weights else None
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

    def spread(self, held_out: Floats) -> float:
        """Return how far held-out scores spread inside queries."""
        rows, _ = self._evaluators
        if self.scored is not None:
            queries, weight = self.scored[1], self.scored_weight
        else:
            queries, weight = self.queries, self.weight
        queries, weight = queries.subset(rows), None if weight is None else weight[rows]
        return float(np.mean([spread_inside(scores, queries.codes, weight) for scores in held_out[:, rows]]))

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

    def constant_figure(self) -> Figure:
        """Return the figure of scores that are all the same."""
        n_rows = self.n_rows if self.scored is None else self.scored[0].size
        return self.figure(np.zeros((len(self.folds), n_rows)))

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
        chosen = FoldAssigner(self.y, self.queries, self.weight).sample(at_most, seed)
        return self.subset(np.flatnonzero(chosen))

    def first_folds(self, number: int) -> LabelledRows:
        """Return the same rows, of which only those of the first so many folds are ever held out."""
        fold = np.where(self.folds[0] < number, self.folds[0], -1).astype(np.int32)
        description = self.cv_description
        if number <= self.folds[0].max():
            description = f"the first {'' if number == 1 else f'{number} '}of {description}"
        return replace(self, folds=[fold], cv=splits_of(fold), cv_description=description)

    def without_first_folds(self, number: int) -> LabelledRows:
        """Return the same rows, with those of the first so many folds as an evaluation set: they train nothing."""
        is_held = (self.folds[0] >= 0) & (self.folds[0] < number)
        rows, X = np.flatnonzero(is_held), self.columns.X
        queries = self.queries.subset(rows)
        if 0 < bytes_of(X) <= _COPIED_BYTES:
            others = self.subset(np.flatnonzero(~is_held))
            ids = queries.codes if self.qid is not None else None
            own = others.columns
            columns, weight = ScaledColumns(own.X, own.qid, own.weight, (X[rows], ids)), others.weight
        else:
            others, columns = self, HeldOutColumns(self.columns, rows)
            weight = np.ones(self.n_rows) if self.weight is None else self.weight.copy()
            weight[rows] = 0.0
        return replace(
            others,
            columns=columns,
            weight=weight,
            folds=[np.full(others.n_rows, -1, dtype=np.int32)],
            cv=None,
            scored=(self.y[rows], queries, self.block[rows]),
            scored_weight=None if self.weight is None else self.weight[rows],
        )

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
