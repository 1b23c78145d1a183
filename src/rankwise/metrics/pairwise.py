"""Metrics that count pairs of rows of a query: pairwise error, concordance, AUC, Kendall's tau and Spearman's rho.

Only pairs whose labels differ count. With row weights s a pair weighs s_i s_j, so that a weight of 2 equals
writing the row twice, and a weight of 0 equals leaving it out. Queries without a pair do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy.stats

from rankwise import _core
from rankwise.arrays import ArrayLike, Ints
from rankwise.data.validation import check_choice, check_number, check_numbers, check_pairs
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics.metric import _KINDS, Doubles, Evaluator, Given, Kind, Metric, Options, metric

_AVERAGES = {"queries": "mean over queries with a pair", "pooled": "over the pairs of all queries together"}


def preference_error(
    pairs: ArrayLike, scores: ArrayLike, weight: ArrayLike | None = None, *, ties: float = 0.5
) -> float:
    """Share of preferences that the scores contradict.

    Parameters
    ----------
    pairs : (preferences, 2) integers
        Winner and loser of each preference, as row numbers.
    scores : (rows,) numbers
        The predictions; larger is better.
    weight : (preferences,) numbers, optional
        Weights of the preferences.
    ties : {0.5, 1, 0}
        The cost of a preference whose rows have equal scores.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from rankwise.metrics import preference_error
    >>> preference_error([[0, 1], [1, 2], [0, 2], [2, 1]], [0.3, 0.1, 0.2])
    0.25
    """
    _check_tie_cost(ties)
    column = check_numbers("scores", scores)
    checked = check_pairs(pairs, column.shape[0], weight=weight)
    difference = column[checked.winner] - column[checked.loser]
    weights = np.ones(len(checked)) if checked.weight is None else checked.weight
    return contradicted(difference, weights, float(ties)) / float(weights.sum())


def contradicted(difference: Doubles, weight: Doubles, tie_cost: float) -> float:
    """Add up the weights of the preferences whose winner scores less, and `tie_cost` times those of ties.

    Parameters
    ----------
    difference : (preferences,) float64
        Score of the winner minus score of the loser.
    weight : (preferences,) float64
    tie_cost : float
    """
    return float(weight[difference < 0].sum() + tie_cost * weight[difference == 0].sum())


def wrong_pairs(scores: Doubles, pairs: Ints) -> Doubles:
    """Return 1 for each pair of winner and loser that scores contradict, and one half where they tie."""
    return (1.0 - np.sign(scores[pairs[:, 0]] - scores[pairs[:, 1]])) / 2


def _check_tie_cost(ties: object) -> None:
    if not isinstance(ties, Real) or ties not in (0, 0.5, 1):
        raise InvalidInputError(
            f"ties={ties!r} is not an option.", "a tie in the scores counts as 0.5 of an error, as 1 or as 0."
        )


def _check(name: str, options: dict[str, Any]) -> None:
    if "ties" in options:
        _check_tie_cost(options["ties"])
    if "average" in options:
        check_choice("average", options["average"], _AVERAGES)
    if options.get("relevant") is not None:
        check_number("relevant", options["relevant"], remedy="pass the smallest label that is relevant")


def _count_pairs(given: Given) -> tuple[Doubles, Doubles, Callable[[Doubles, int], Doubles]]:
    """Return the weight of the pairs that labels order in each query, of all pairs, and the counter for scores.

    The counter returns (columns, queries, 3) weights of wrong, undecided, and equally scored pairs.
    """
    labels, queries, weights, n_threads = given
    rows, offsets = queries.order, queries.offsets
    if not queries.is_grouped:
        labels, weights = labels[rows], None if weights is None else weights[rows]
    levels = np.empty(queries.n_rows, dtype=np.int32)
    n_levels = np.empty(len(queries), dtype=np.int64)
    totals = np.empty((len(queries), 2))
    _core.level_pairs(rows, offsets, labels, weights, levels, n_levels, totals, n_threads)
    ordered, every = totals.T
    if not ordered.any():
        raise NoPairsError(
            "no query has two rows with different labels, so there are no pairs to count.",
            "check that labels vary inside queries, and that qid names queries, not rows.",
        )

    def count(block: Doubles, n_threads: int) -> Doubles:
        out = np.empty((block.shape[1], n_levels.shape[0], 3))
        _core.count_pairs(rows, offsets, block, levels, n_levels, weights, out, n_threads)
        return out

    return ordered, every, count


def _prepare_order(options: Options, given: Given, *, rightly: bool) -> Evaluator:
    """Prepare the share of the pairs that scores order wrongly, or correctly."""
    ordered, _, count = _count_pairs(given)
    counted, tie_cost = ordered > 0, float(options.get("ties", 0.5))
    divisor = np.where(counted, ordered, 1.0)

    def values(block: Doubles, n_threads: int) -> Doubles:
        counts = count(block, n_threads)
        wrong = counts[:, :, 0] + tie_cost * counts[:, :, 1]
        return np.asarray((ordered - wrong if rightly else wrong) / divisor)

    shares = ordered if options["average"] == "pooled" else None
    return Evaluator(given.queries, counted, given.n_threads, values, shares)


def _prepare_auc(options: Options, given: Given) -> Evaluator:
    labels = given.labels
    if options["relevant"] is not None:
        labels = (labels >= options["relevant"]).astype(np.float64)
    elif ((labels != labels.min()) & (labels != labels.max())).any():
        raise InvalidInputError(
            "has more than two levels, and auc needs two.",
            "pass relevant=1 to call every label of at least 1 relevant, or use concordance.",
            about="y_true",
        )
    return _prepare_order(options, given._replace(labels=labels), rightly=True)


def _prepare_tau(options: Options, given: Given) -> Evaluator:
    ordered, every, count = _count_pairs(given)

    def values(block: Doubles, n_threads: int) -> Doubles:
        wrong, undecided, equal_scores = np.moveaxis(count(block, n_threads), 2, 0)
        difference = ordered - undecided - 2.0 * wrong
        scale = np.sqrt(ordered * np.maximum(every - equal_scores, 0.0))
        return np.asarray(np.divide(difference, scale, out=np.zeros(scale.shape), where=scale > 0))

    return Evaluator(given.queries, ordered > 0, given.n_threads, values)


def _prepare_spearman(options: Options, given: Given) -> Evaluator:
    codes = given.queries.codes
    wanted = _centred_ranks(given.labels, codes)
    spread = np.bincount(codes, wanted**2)
    if not spread.any():
        raise NoPairsError(
            "no query has two rows with different labels, so there is no order to correlate with.",
            "check that labels vary inside queries, and that qid names queries, not rows.",
        )

    def values(block: Doubles, n_threads: int) -> Doubles:
        found = np.zeros((block.shape[1], spread.size))
        for out, scores in zip(found, block.T, strict=True):
            own = _centred_ranks(scores, codes)
            scale = np.sqrt(spread * np.bincount(codes, own**2))
            np.divide(np.bincount(codes, own * wanted), scale, out=out, where=scale > 0)
        return found

    return Evaluator(given.queries, spread > 0, given.n_threads, values)


def _centred_ranks(values: Doubles, codes: Ints) -> Doubles:
    """Return the ranks of values inside their queries, ties averaged, less the mean rank of the query."""
    # One ranking of all rows, query by query: its mid-ranks differ by a constant from those inside a query.
    place = np.unique(values, return_inverse=True)[1].reshape(-1) + codes * values.size
    ranks = scipy.stats.rankdata(place)
    return np.asarray(ranks - (np.bincount(codes, ranks) / np.maximum(np.bincount(codes), 1))[codes])


def _refuse_labels(*_: object) -> Evaluator:
    raise InvalidInputError(
        "The log-loss needs listed pairs, not labels.", "use fit_pairs, or another scoring."
    )


def _order_words(title: str, which: str, options: Options, *, rightly: bool) -> str:
    ties = options.get("ties", 0.5)
    cost = 1 - ties if rightly else ties
    return f"{title}: {which}; a tie in the scores counts {cost:g}; {_AVERAGES[options['average']]}"


def _auc_words(options: Options) -> str:
    relevant = options["relevant"]
    which = "the larger label" if relevant is None else f"label >= {relevant:g}"
    chance = f"probability that one of the rows with {which} scores above one of the others of its query"
    return _order_words("AUC", chance, options, rightly=True)


_SHARE = "share of the pairs with different labels that the scores order"
_TAU = (
    "Kendall tau-b of labels and scores (ties in either corrected for, as scipy.stats.kendalltau); "
    "0 where all scores of a query are equal; mean over queries with a pair"
)
_RHO = (
    "Spearman correlation of labels and scores (ties averaged, as scipy.stats.spearmanr); "
    "0 where all scores of a query are equal; mean over queries with a pair"
)
_PROBABILITY = "log-loss: mean of -log of the probability that was given to the winner of a pair"

_ERROR = Kind(
    _check,
    partial(_prepare_order, rightly=False),
    lambda options: _order_words("pairwise error", f"{_SHARE} wrongly", options, rightly=False),
    greater_is_better=False,
    counts_pairs=True,
)
_CONCORDANCE = Kind(
    _check,
    partial(_prepare_order, rightly=True),
    lambda options: _order_words("concordance", f"{_SHARE} correctly", options, rightly=True),
    counts_pairs=True,
)
# The metric of listed pairs whose differences of scores are log-odds; `scoring="auto"` may mean it.
LOG_LOSS = Metric("log_loss", {})
_KINDS["log_loss"] = Kind(_check, _refuse_labels, lambda _: _PROBABILITY, greater_is_better=False)


@metric(_ERROR, ties=0.5, average="queries")
def pairwise_error() -> None:
    """Share of the pairs with different labels that the scores put in the wrong order.

    Parameters
    ----------
    y_true : (rows,) numbers
        The labels; any real numbers.
    scores : (rows,) numbers
        The predictions; larger is better.
    qid : (rows,) ids, optional
        The query of each row, in any order; without it all rows form one query.
    ties : {0.5, 1, 0}
        The cost of a pair with equal scores.
    average : {"queries", "pooled"}
        Mean over the queries that have a pair, or over the pairs of all queries together.
    sample_weight : (rows,) numbers, optional
        Row weights; a pair weighs the product of the weights of its rows.

    Returns
    -------
    float
        Between 0 (every pair in order) and 1; 0.5 for constant scores.

    Examples
    --------
    >>> from rankwise.metrics import pairwise_error
    >>> pairwise_error([2, 1, 0, 1, 0], [0.9, 0.1, 0.4, 0.3, 0.3], ["a", "a", "a", "b", "b"])
    0.41666666666666663
    """


@metric(_CONCORDANCE, ties=0.5, average="queries")
def concordance() -> None:
    """Share of the pairs with different labels that the scores put in the right order.

    One minus `pairwise_error`, with the same parameters: `ties` is the cost of a tie.

    Examples
    --------
    >>> from rankwise.metrics import concordance
    >>> concordance([3.5, 2.0, 1.0], [10, 30, 5])
    0.6666666666666666
    """


@metric(Kind(_check, _prepare_auc, _auc_words, counts_pairs=True), relevant=None, average="queries")
def auc() -> None:
    """Area under the ROC curve inside queries: the concordance of relevant and other rows.

    Parameters
    ----------
    y_true : (rows,) numbers
        Labels of two levels, or any labels together with `relevant`.
    scores, qid, average, sample_weight
        As for `pairwise_error`; a tie in the scores counts one half.
    relevant : float, optional
        Rows with at least this label are relevant.

    Examples
    --------
    >>> from rankwise.metrics import auc
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.3])
    0.75
    """


@metric(Kind(_check, _prepare_tau, lambda _: _TAU, counts_pairs=True, bounds=(-1.0, 1.0)))
def kendall_tau() -> None:
    """Kendall's tau-b of labels and scores, mean over queries.

    Equals `scipy.stats.kendalltau` on each query. Queries whose labels are all equal do not count; where
    only the scores are all equal the query counts 0, so that a constant model scores 0 and not NaN.

    Examples
    --------
    >>> from rankwise.metrics import kendall_tau
    >>> kendall_tau([1, 2, 3, 1, 2], [10, 20, 30, 2, 1], [7, 7, 7, 8, 8])
    0.0
    """


@metric(Kind(_check, _prepare_spearman, lambda _: _RHO, bounds=(-1.0, 1.0)))
def spearman() -> None:
    """Spearman's rank correlation of labels and scores, mean over queries.

    Equals `scipy.stats.spearmanr` on each query. Where queries are dates this is the rank information coefficient of
    finance. Queries whose labels are all equal do not count; where only the scores are all equal the query counts 0.

    Examples
    --------
    >>> from rankwise.metrics import spearman
    >>> spearman([1, 2, 3, 1, 2], [10, 20, 30, 2, 1], [7, 7, 7, 8, 8])
    0.0
    """
