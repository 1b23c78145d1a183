"""Labelled rows or listed pairs in folds, which candidates are fitted to and scored on.

Folds are assigned once. Where the additive search scores its settings on one or a few folds (`scored_folds`), every
candidate is compared on the same ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats, Ints, Matrix, MatrixLike, Splits
from rankwise.automatic.average import spread_inside
from rankwise.automatic.scaling import CodedTable, ScaledColumns, bytes_of, ranked
from rankwise.data.preferences import read_duels
from rankwise.data.queries import Queries
from rankwise.data.summary import is_graded
from rankwise.data.validation import (
    Preferences,
    check_numbers,
    check_pairs,
    check_qid,
    pairs_of_eval_set,
    rows_of_eval_set,
)
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.problem import Problem
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.metric import Evaluator
from rankwise.pairs.labelled import LabelPairs, units_of_rows
from rankwise.pairs.listed import PreferencePairs
from rankwise.pairs.plan import Units
from rankwise.selection.plan import as_splitter, count_folds, plan_of, read_splits, scored_folds

__all__ = [
    "Figure",
    "LabelledRows",
    "ListedPairs",
    "labelled_rows",
    "listed_pairs",
    "paired_difference",
    "resolve_metric",
    "splits_of",
]

# Rows of one ranking that make a block, whose difference is one observation for standard errors.
_BLOCK_ROWS = 30
_BLOCKS = 100  # at most, in each fold
# Larger matrices are not copied for every fold: the rows that are held out weigh nothing instead.
_COPIED_BYTES = 1 << 26

CheckMatrix = Callable[[MatrixLike], Matrix]


@dataclass(frozen=True)
class Figure:
    """The value of a metric on held-out units: queries, blocks of the rows of one ranking, or compared couples.

    Attributes
    ----------
    value : float
    per_unit : (units,) float64
    share : (units,) float64
        How much each unit counts; they sum to 1.
    """

    value: float
    per_unit: Floats
    share: Floats

    @property
    def standard_error(self) -> float:
        """The standard error of the value; NaN where there is one unit."""
        n_units = int((self.share > 0).sum())
        if n_units < 2:
            return float("nan")
        centred = self.per_unit - (self.share * self.per_unit).sum()
        spread = float(((self.share * centred) ** 2).sum()) * n_units / (n_units - 1)
        return float(np.sqrt(spread))


def paired_difference(first: Figure, second: Figure) -> tuple[float, float]:
    """Return ``first - second`` and the standard error of that difference, unit by unit."""
    difference = Figure(first.value - second.value, first.per_unit - second.per_unit, first.share)
    return difference.value, difference.standard_error


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
    fold : (rows,) int64
        The fold that a row scores; -1 for rows that score none.
    block : (rows,) int64
        In one ranking: the block of the row inside its fold.
    cv : list of (train, test), or None where an evaluation set scores
    cv_description : str
    scored : tuple (y, Queries, block), optional
        The labels and queries of an evaluation set, which then scores instead of folds.
    """

    columns: ScaledColumns
    y: Floats
    queries: Queries
    weight: Floats | None
    metric: Metric
    fold: Ints
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

    @property
    def known(self) -> Queries | None:
        """The same as rankers take them without another look."""
        return self.queries if len(self.queries) > 1 else None

    @property
    def by_rank(self) -> LabelledRows:
        """The same with ranks for labels, which have no long tails, if the metric counts pairs."""
        return replace(self, y=ranked(self.y, self.weight)) if self.metric.takes_weights else self

    def fit(self, estimator: Ranker, X: Matrix, scored: Matrix | None = None) -> Ranker:
        """Fit all rows; `scored` are the rows of an evaluation set, scaled like X."""
        if self.scored is None or scored is None:
            return estimator.fit(X, self.y, self.known, sample_weight=self.weight)
        labels, queries, _ = self.scored
        ids = () if self.known is None else (queries,)
        return estimator.fit(
            X, self.y, self.known, sample_weight=self.weight, eval_set=(scored, labels, *ids)
        )

    def held_out(
        self,
        estimator: Ranker,
        model: Ranker,
        X: Matrix,
        scored: Matrix | None,
        known: Floats | None = None,
    ) -> Floats:
        """Return a score for each row that is held out, by a model that did not see it; 0 for the others.

        `estimator` is fitted without each fold in turn, but for the fold of `stopped_early`, whose scores may be
        `known`; `model`, fitted to all rows, scores an evaluation set.
        """
        if self.scored is not None and scored is not None:
            return np.asarray(model.predict(scored))
        without = None if known is None else self._first_to_score
        parts = [
            known if known is not None and number == without else self._scores(*split, estimator, X)
            for number, split in enumerate(self.cv or ())
        ]
        return self._in_place(parts)

    def stopped_early(self, estimator: Ranker, X: Matrix, scored: Matrix | None) -> tuple[Floats, Figure]:
        """Fit all rows but those of one fold, or of the evaluation set, which stop the fit; score these."""
        if self.scored is not None and scored is not None:
            found = np.asarray(self.fit(estimator, X, scored).predict(scored))
            return found, self.figure(found)
        assert self.cv is not None
        train, test = self.cv[self._first_to_score]
        ids = () if self.known is None else (self.known.subset(test),)
        found = self._scores(train, test, estimator, X, eval_set=(X[test], self.y[test], *ids))
        scores = np.zeros(self.n_rows)
        scores[test] = found
        return found, self._only(self._first_to_score).figure(scores)

    @cached_property
    def _first_to_score(self) -> int:
        """The first fold that the metric is defined on: in few rows all labels may be equal."""
        for number in range(len(self.cv or ())):
            with suppress(InvalidInputError):
                self._only(number).figure(np.zeros(self.n_rows))
                return number
        return 0

    def _only(self, number: int) -> LabelledRows:
        """Return the same, scored by one fold."""
        return replace(self, fold=np.where(self.fold == number, 0, -1))

    def assembled(self, parts: Sequence[Floats]) -> Floats | None:
        """Return `held_out` from the scores of each split of `cv`; None where they are not all here."""
        if self.scored is not None:
            return parts[0]
        tests = [test for _, test in self.cv or ()]
        is_whole = [part.size for part in parts] == [test.size for test in tests]
        return self._in_place(parts) if is_whole else None

    def _in_place(self, parts: Sequence[Floats]) -> Floats:
        scores = np.zeros(self.n_rows)
        for (_, test), part in zip(self.cv or (), parts, strict=True):
            scores[test] = part
        return scores

    def _scores(self, train: Ints, test: Ints, estimator: Ranker, X: Matrix, **how: Any) -> Floats:
        """Return the scores of some rows by the estimator, fitted to others."""
        if bytes_of(X) <= _COPIED_BYTES:
            seen, y, known = X[train], self.y[train], None if self.known is None else self.known.subset(train)
            weight = None if self.weight is None else self.weight[train]
        else:
            seen, y, known, weight = X, self.y, self.known, np.zeros(self.n_rows)
            weight[train] = 1.0 if self.weight is None else self.weight[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
            estimator.fit(seen, y, known, sample_weight=weight, **how)
        return np.asarray(estimator.predict(X[test]))

    @cached_property
    def _scoring(self) -> tuple[Ints, Queries, Floats | None, Evaluator, Evaluator]:
        """The rows that score, their queries and weights, and the metric on them: by query, or by fold and block."""
        if self.scored is not None:
            y, queries, block = self.scored
            fold, weight = np.zeros(y.size, dtype=np.int64), None
        else:
            y, queries, block, weight = self.y, self.queries, self.block, self.weight
            fold = self.fold
        rows = np.flatnonzero(fold >= 0 if weight is None else (fold >= 0) & (weight > 0))
        y, queries, block, fold = y[rows], queries.subset(rows), block[rows], fold[rows]
        weight = None if weight is None else weight[rows]
        counted = weight if self.metric.takes_weights else None
        if len(queries) > 1:
            both = self.metric.prepare(y, queries, sample_weight=counted)
            return rows, queries, weight, both, both
        return (
            rows,
            queries,
            weight,
            self.metric.prepare(y, fold, sample_weight=counted),
            self.metric.prepare(y, fold * (block.max() + 1) + block, sample_weight=counted),
        )

    def spread(self, held_out: Floats) -> float:
        """Return how far held-out scores spread inside queries."""
        rows, queries, weight, _, _ = self._scoring
        return spread_inside(held_out[rows], queries.codes, weight)

    def figure(self, held_out: Floats) -> Figure:
        """Return the mean over queries, or over the folds of one ranking, and the value of each query or block."""
        rows, _, _, whole, parts = self._scoring
        found = parts.per_query(held_out[rows])
        values = found.values[found.counted]
        return Figure(float(whole(held_out[rows])), values, np.full(values.size, 1 / max(values.size, 1)))

    def describe(self) -> str:
        """Say what scored."""
        rows, _, _, whole, _ = self._scoring
        if self.scored is not None:
            return f"an evaluation set of {rows.size:,} rows"
        if len(self.queries) == 1:
            n_scoring, there, unit = rows.size, self.n_rows, "rows"
        else:
            n_scoring, there, unit = int(whole.counted.sum()), len(self.queries), "queries"
        share = f"all {there:,}" if n_scoring == there else f"{n_scoring:,} of {there:,}"
        return f"{self.cv_description}, {share} {unit}"


@dataclass
class ListedPairs:
    """Pairs of rows, winner first.

    Attributes
    ----------
    columns : ScaledColumns
    pairs : Preferences
    unit : (pairs,) int64
        The unit that folds keep whole and that is one observation: all comparisons of two rows, or a group.
    metric : Metric
    cv : list of (train, test), or None
    cv_description : str
    scored : Preferences, optional
        The pairs of an evaluation set.
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

    @property
    def by_rank(self) -> ListedPairs:
        """The same: pairs have no labels."""
        return self

    def fit(self, estimator: Ranker, X: Matrix, scored: Matrix | None = None) -> Ranker:
        """Fit all pairs."""
        if self.scored is None or scored is None:
            return self._fit(estimator, X, slice(None))
        weight = () if self.scored.weight is None else (self.scored.weight,)
        return self._fit(estimator, X, slice(None), eval_set=(scored, _edges(self.scored), *weight))

    def held_out(self, estimator: Ranker, model: Ranker, X: Matrix, scored: Matrix | None) -> Floats:
        """Return the difference of each pair's scores, by a model that did not see it."""
        if self.scored is not None and scored is not None:
            return _difference(model.predict(scored), self.scored, slice(None))
        found = np.zeros(len(self.pairs))
        for train, test in self.cv or ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
                fitted = self._fit(estimator, X, train)
            found[test] = _difference(fitted.predict(X), self.pairs, test)
        return found

    def assembled(self, parts: Sequence[Floats]) -> Floats | None:
        """Return `held_out` from the scores that each split gives to all rows; None where they are not all here."""
        if self.scored is not None:
            return _difference(parts[0], self.scored, slice(None))
        if self.cv is None or len(parts) != len(self.cv):
            return None
        found = np.zeros(len(self.pairs))
        for (_, test), scores in zip(self.cv, parts, strict=True):
            found[test] = _difference(scores, self.pairs, test)
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
        return estimator.fit_pairs(X, _edges(self.pairs)[chosen], magnitude, weight, eval_set)

    @cached_property
    def fold(self) -> Ints:
        """The fold that each pair is held out with; -1 for pairs that never are."""
        fold = np.full(len(self.pairs), -1)
        for number, (_, test) in enumerate(self.cv or ()):
            fold[test] = number
        return fold

    @cached_property
    def tested_weight(self) -> Floats:
        """How much each pair counts that scores: nothing where it was never held out, or has no winner."""
        pairs = self.pairs if self.scored is None else self.scored
        weight = np.ones(len(pairs)) if pairs.weight is None else pairs.weight.astype(np.float64)
        if pairs.magnitude is not None:
            weight = weight * (pairs.magnitude > 0)  # a tie has no winner
        return weight * (self.fold >= 0) if self.scored is None else weight

    def spread(self, held_out: Floats) -> float:
        """Return how far held-out differences spread around 0."""
        return float(np.sqrt(np.average(held_out**2, weights=self.tested_weight) / 2))

    def figure(self, held_out: Floats) -> Figure:
        """Return the share of the held-out pairs that the scores contradict, or agree with."""
        weight = self.tested_weight
        unit = self.unit if self.scored is None else np.arange(weight.size)
        wrong = np.where(held_out == 0, float(getattr(self.metric, "ties", 0.5)), held_out < 0)
        right = 1.0 - wrong if self.metric.greater_is_better else wrong
        total = np.bincount(unit, weight)
        is_there = total > 0
        values = np.bincount(unit, weight * right)[is_there] / total[is_there]
        share = total[is_there] / total.sum()
        return Figure(float((share * values).sum()), values, share)

    def describe(self) -> str:
        """Say what scored."""
        n_pairs = int((self.tested_weight > 0).sum())
        if self.scored is not None:
            return f"an evaluation set of {n_pairs:,} pairs"
        return f"{self.cv_description}, {'all ' if n_pairs == len(self.pairs) else ''}{n_pairs:,} pairs"


def _edges(pairs: Preferences) -> Ints:
    return np.column_stack([pairs.winner, pairs.loser])


def _difference(scores: Floats, pairs: Preferences, chosen: Ints | slice) -> Floats:
    return np.asarray(scores[pairs.winner[chosen]] - scores[pairs.loser[chosen]])


def splits_of(fold: npt.NDArray[np.integer]) -> Splits:
    """Return folds as a list of (train, test)."""
    return [
        (np.flatnonzero(fold != number), np.flatnonzero(fold == number))
        for number in range(int(fold.max()) + 1)
    ]


# --- from what `fit` and `fit_pairs` were given ---


def resolve_metric(scoring: str | Metric, data: Problem, *, with_qid: bool) -> Metric:
    """Return the metric that `scoring` names; "auto" is NDCG@10 for grades inside queries, else the pairwise error."""
    is_auto = isinstance(scoring, str) and scoring == "auto"
    if isinstance(pairs := data.pairs, LabelPairs):
        if pairs.importance is not None:
            raise InvalidInputError(
                "Candidates are compared by queries that count alike, so there is no query_importance.",
                "leave it out, or use RankRLSCV, which takes it.",
            )
        by_grades = is_auto and with_qid and is_graded(pairs.y)
        return get_metric("ndcg@10" if by_grades else "pairwise_error" if is_auto else scoring)
    metric = get_metric("pairwise_error" if is_auto else scoring)
    if metric.base_name not in {"pairwise_error", "concordance"}:
        raise InvalidInputError(
            f"scoring={metric.name!r} needs rows with labels, and pairs have none.",
            "use scoring='pairwise_error' or 'concordance' with fit_pairs.",
        )
    return metric


def labelled_rows(
    data: Problem,
    metric: Metric,
    cv: object,
    seed: int,
    eval_set: object,
    check_matrix: CheckMatrix,
    coded: CodedTable | None = None,
    *,
    with_qid: bool,
) -> LabelledRows:
    """Assign rows to folds, and those of one ranking to blocks inside them; or read the evaluation set."""
    pairs = data.pairs
    assert isinstance(pairs, LabelPairs)
    X, y, queries, weight = data.design.stored(), pairs.y, pairs.queries, pairs.row_weight
    ids = queries.codes if len(queries) > 1 else None
    if eval_set is not None:
        rows, given, qid = rows_of_eval_set(eval_set, with_qid=with_qid)
        X_scored = check_matrix(rows)
        if coded is not None:
            coded.scored = coded.encoder.transform(rows)
        labels = check_numbers("y of eval_set", given, X_scored.shape[0]).reshape(-1)
        scored = check_qid(qid, X_scored.shape[0])
        columns = ScaledColumns(X, ids, weight, (X_scored, scored.codes if ids is not None else None), coded)
        block = _blocks(units_of_rows(labels, scored), 1, seed)
        fold, none = np.full(queries.n_rows, -1), np.zeros(queries.n_rows, dtype=np.int64)
        return LabelledRows(
            columns, y, queries, weight, metric, fold, none, None, "", (labels, scored, block)
        )
    assigner = units_of_rows(y, queries, pairs.entry_weight)
    plan = plan_of(cv, pairs, metric, seed)
    n_folds = plan.n_folds
    n_scored, description = scored_folds(cv, plan, pairs)
    splits = [(np.flatnonzero(plan.trained(number)), plan.scoring(number)) for number in range(n_scored)]
    _check_once(cv, splits, "rows")
    fold = np.full(queries.n_rows, -1)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    block = np.zeros(queries.n_rows, dtype=np.int64) if ids is not None else _blocks(assigner, n_folds, seed)
    columns = ScaledColumns(X, ids, weight, coded=coded)
    return LabelledRows(columns, y, queries, weight, metric, fold, block, splits, description)


def _check_once(cv: object, splits: Splits, entries: str) -> None:
    """Raise where rows or pairs are tested several times: each has one held-out score."""
    tested = np.concatenate([test for _, test in splits])
    if np.unique(tested).size < tested.size:
        raise InvalidInputError(
            f"cv={cv!r:.80} tests the same {entries} several times, and AutoRanker scores each once.",
            "use a splitter whose test sets do not overlap, such as QueryKFold.",
        )


def _blocks(assigner: Units, n_folds: int, seed: int) -> Ints:
    """Assign the rows of one ranking to blocks, as many in each fold as make good observations."""
    n_blocks = int(np.clip(assigner.n_units // (n_folds * _BLOCK_ROWS), 1, _BLOCKS))
    return np.maximum(assigner.folds(n_blocks, seed + 2), 0).astype(np.int64)


def listed_pairs(
    data: Problem,
    metric: Metric,
    cv: object,
    seed: int,
    eval_set: object,
    check_matrix: CheckMatrix,
    coded: CodedTable | None = None,
) -> ListedPairs:
    """Assign pairs to folds, all comparisons of two rows, or of a group, together; rows of equal content are one."""
    own = data.pairs
    assert isinstance(own, PreferencePairs)
    X, found, code = data.design.stored(), own.preferences, data.row_codes
    winner, loser = code[found.winner], code[found.loser]
    same_two = np.minimum(winner, loser) * np.int64(code.size) + np.maximum(winner, loser)
    unit, word, groups = np.unique(same_two, return_inverse=True)[1].reshape(-1), "pairs", None
    if own.groups is not None:
        unit, word, groups = own.groups.codes, "groups", np.asarray(own.groups)
    if eval_set is not None:
        given, listed, weight = pairs_of_eval_set(eval_set)
        rows, pairs = read_duels(given, listed)
        X_scored = check_matrix(rows)
        if coded is not None:
            coded.scored = coded.encoder.transform(rows)
        scored = check_pairs(pairs, X_scored.shape[0], weight=weight)
        return ListedPairs(
            ScaledColumns(X, None, None, (X_scored, None), coded), found, unit, metric, None, "", scored
        )
    columns = ScaledColumns(X, None, None, coded=coded)
    splitter = as_splitter(cv)
    if splitter is not None:
        splits = list(read_splits(splitter, _edges(found), None, groups, "pairs"))
        _check_once(cv, splits, "pairs")
        return ListedPairs(columns, found, unit, metric, splits, f"the test sets of {splitter}")
    n_folds = count_folds(cv, int(np.unique(unit).size), word)
    fold = Units.of_codes(unit, found.weight).folds(n_folds, seed)
    return ListedPairs(columns, found, unit, metric, splits_of(fold), f"{n_folds} folds of {word}")
