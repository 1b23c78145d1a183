"""Metrics of the top of a list: NDCG, MeanNDCG, ERR, average precision (MAP), precision and reciprocal rank (MRR)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwise import _core
from rankwise.arrays import Bools
from rankwise.data.queries import Queries
from rankwise.data.validation import check_choice, check_count, check_number
from rankwise.exceptions import InvalidInputError, UndefinedMetricError
from rankwise.metrics.metric import METRICS, Doubles, Evaluator, Given, Kind, Options, metric

_GAINS = {"exp": "gain 2^y - 1", "linear": "gain y"}
_DISCOUNTS = {
    "log2": "discount 1/log2(1 + position)",
    "letor": "positions 1 and 2 undiscounted, then 1/log2(position)",
}
_TIES = {
    "average": "tied scores averaged over all orders",
    "stable": "tied scores keep the order of the rows",
}
_EMPTY = {
    "skip": "queries without a relevant row skipped",
    "zero": "queries without a relevant row count 0",
    "one": "queries without a relevant row count 1",
}
_EMPTY_VALUE = {"skip": np.nan, "zero": 0.0, "one": 1.0}
_CHOICES = {"gain": _GAINS, "discount": _DISCOUNTS, "ties": _TIES, "empty": _EMPTY}

_PLAIN = {"gain": "exp", "discount": "log2", "ties": "average", "empty": "skip"}
# Both scripts of the LETOR benchmarks agree on these; they differ in queries with fewer than k rows.
_LETOR = {"gain": "exp", "discount": "letor", "ties": "stable", "empty": "zero"}
_CONVENTIONS = ("letor3", "letor4")


def _check(name: str, options: dict[str, Any]) -> None:
    """Check options, and set those that a convention fixes."""
    convention = options.get("convention")
    check_count("k", options.get("k"), optional=name != "precision")
    for option, choices in _CHOICES.items():
        if option in options:
            check_choice(option, options[option], choices)
    if "relevant" in options:
        check_number("relevant", options["relevant"], remedy="pass the smallest label that is relevant")
    if options.get("max_grade") is not None:
        check_number("max_grade", options["max_grade"], remedy="pass the largest possible grade")
    if convention is None:
        return
    check_choice("convention", convention, _CONVENTIONS)
    for option in _LETOR.keys() & options.keys():
        given, wanted = options[option], _LETOR[option]
        if given not in {wanted, METRICS[name].options[option]}:
            raise InvalidInputError(
                f"convention={convention!r} means {option}={wanted!r}, not {given!r}.",
                f"leave {option} out, or leave the convention out and set every option.",
            )
        options[option] = wanted


def _gains(given: Given, gain: str) -> Doubles:
    """Return the gain of each row, grouped by query."""
    labels = given.queries.group(given.labels)
    if (labels < 0).any():
        raise InvalidInputError(
            f"holds negative labels (smallest {labels.min():g}), whose gain would be negative.",
            "shift the labels so that the smallest is 0, or use pairwise_error, which takes any labels.",
            about="y_true",
        )
    if gain == "linear":
        return labels.copy()  # the caller may write to the labels while an evaluator lives
    if labels.max() > 1000:
        raise InvalidInputError(
            f"goes up to {labels.max():g}, and 2^y overflows.",
            "rescale the labels; ndcg also takes gain='linear'.",
            about="y_true",
        )
    return np.exp2(labels) - 1.0


def _discount_sums(discount: str, n: int) -> Doubles:
    """Return the sums of the discounts of the first 0, 1, ..., n positions."""
    position = np.arange(1.0, n + 1.0)
    discounts = 1.0 / np.log2(1.0 + position if discount == "log2" else np.maximum(position, 2.0))
    return np.concatenate(([0.0], np.cumsum(discounts)))


def _evaluator(
    name: str,
    options: Options,
    kernel: Callable[..., None],
    worth: Doubles,
    given: Given,
    *,
    divisor: Doubles | float = 1.0,
    discount_sums: Doubles | None = None,
    zeroed: Bools | None = None,
) -> Evaluator:
    """Return the evaluator of a compiled metric of the worth of each row, over a divisor for each query.

    `zeroed` are the queries that score 0 whatever the scores. Queries without a row of positive worth are empty.
    """
    queries = given.queries
    relevant = np.add.reduceat(worth, queries.offsets[:-1]) > 0
    counted = relevant if options["empty"] == "skip" else np.ones(len(queries), dtype=np.bool_)
    if not counted.any():
        raise UndefinedMetricError(
            f"no query has a relevant row, so {name} is undefined.",
            "check y_true, or pass empty='zero' to count such queries as 0.",
        )
    longest = int(queries.sizes.max())
    k = min(options.get("k") or longest, longest)
    is_stable = options["ties"] == "stable"
    sums = np.empty(0) if discount_sums is None else discount_sums
    divisors = np.where(relevant, divisor, 1.0)
    # The value of queries whose value the scores cannot change; NaN for the others.
    fixed = np.where(relevant, np.nan, _EMPTY_VALUE[options["empty"]])
    if zeroed is not None:
        fixed[zeroed] = 0.0

    def values(block: Doubles, n_threads: int) -> Doubles:
        out = np.empty((block.shape[1], len(queries)))
        kernel(queries.order, queries.offsets, block, worth, sums, k, is_stable, out, n_threads)
        out /= divisors
        return np.where(np.isnan(fixed), out, fixed)

    return Evaluator(queries, counted, given.n_threads, values)


def _shorter_than_k(options: Options, queries: Queries, *conventions: str) -> Bools | None:
    """Return the lists with fewer than k rows, which some conventions count 0."""
    return queries.sizes < (options["k"] or 0) if options["convention"] in conventions else None


def _prepare_ndcg(options: Options, given: Given) -> Evaluator:
    queries, gains = given.queries, _gains(given, options["gain"])
    longest = int(queries.sizes.max())
    sums = _discount_sums(options["discount"], longest)
    best = np.empty(len(queries))
    cutoff = min(options["k"] or longest, longest)
    _core.best_gains(queries.order, queries.offsets, gains, sums, cutoff, best, given.n_threads)
    zeroed = _shorter_than_k(options, queries, *_CONVENTIONS)
    kernel = _core.discounted_gain
    return _evaluator("ndcg", options, kernel, gains, given, divisor=best, discount_sums=sums, zeroed=zeroed)


def _mean_ndcg_options(options: Options) -> dict[str, Any]:
    return {**_PLAIN, **options} if options["convention"] is None else {**options, **_LETOR}


def _prepare_mean_ndcg(options: Options, given: Given) -> Evaluator:
    options = _mean_ndcg_options(options)
    gains = _gains(given, options["gain"])
    sums = _discount_sums(options["discount"], int(given.queries.sizes.max()))
    kernel = _core.mean_normalised_gain
    return _evaluator("mean_ndcg", options, kernel, gains, given, discount_sums=sums)


def _prepare_err(options: Options, given: Given) -> Evaluator:
    gains = _gains(given, "exp")
    largest = float(given.labels.max())
    max_grade = largest if options["max_grade"] is None else float(options["max_grade"])
    if largest > max_grade:
        raise InvalidInputError(
            f"goes up to {largest:g}, above max_grade={max_grade:g}.",
            "pass the largest grade that the scale of the labels has.",
            about="y_true",
        )
    chance = gains / np.exp2(max_grade)
    return _evaluator("err", options, _core.expected_reciprocal_rank, chance, given)


def _prepare_map(options: Options, given: Given) -> Evaluator:
    worth = _relevance(options, given)
    n_relevant = np.add.reduceat(worth, given.queries.offsets[:-1])
    return _evaluator("average_precision", options, _core.summed_precision, worth, given, divisor=n_relevant)


def _prepare_precision(options: Options, given: Given) -> Evaluator:
    worth, k = _relevance(options, given), float(options["k"])
    zeroed = _shorter_than_k(options, given.queries, "letor3")
    return _evaluator("precision", options, _core.relevant_at_top, worth, given, divisor=k, zeroed=zeroed)


def _prepare_mrr(options: Options, given: Given) -> Evaluator:
    return _evaluator("reciprocal_rank", options, _core.reciprocal_rank, _relevance(options, given), given)


def _relevance(options: Options, given: Given) -> Doubles:
    """Return 1 for relevant rows and else 0, grouped by query."""
    return given.queries.group(given.labels >= options["relevant"]).astype(np.float64)


def _words(title: str, which: str, options: Options) -> str:
    k, convention = options.get("k"), options.get("convention")
    named = title if k is None else f"{title}@{k}"
    relevant = f"; relevant means label >= {options['relevant']:g}" if "relevant" in options else ""
    script = "" if convention is None else f" (the script of {convention.upper()})"
    rest = f"{_TIES[options['ties']]}; {_EMPTY[options['empty']]}; mean over queries{script}"
    return f"{named}: {which}{relevant}; {rest}"


def _ndcg_words(options: Options) -> str:
    k, is_short = options["k"], options["convention"] is not None and options["k"] is not None
    short = f"; lists of fewer than {k} rows score 0" if is_short else ""
    return _words("NDCG", f"{_GAINS[options['gain']]}; {_DISCOUNTS[options['discount']]}{short}", options)


def _mean_ndcg_words(options: Options) -> str:
    options = _mean_ndcg_options(options)
    which = "mean of NDCG@1, NDCG@2, ... down to the last row"
    scale = f"{_GAINS[options['gain']]}; {_DISCOUNTS[options['discount']]}"
    return _words("MeanNDCG", f"{which}; {scale}", options)


def _err_words(options: Options) -> str:
    grade = "the largest label" if options["max_grade"] is None else f"{options['max_grade']:g}"
    return _words("ERR", f"a row satisfies with probability (2^y - 1) / 2^g, g = {grade}", options)


def _map_words(options: Options) -> str:
    k = options["k"]
    beyond = "" if k is None else f"; relevant rows beyond position {k} contribute 0"
    return _words("MAP", f"mean precision at the relevant rows{beyond}", options)


def _precision_words(options: Options) -> str:
    short = "score 0" if options["convention"] == "letor3" else "are filled up with irrelevant ones"
    which = f"share of relevant rows among the first {options['k']}; lists of fewer rows {short}"
    return _words("P", which, options)


def _mrr_words(options: Options) -> str:
    k = options["k"]
    beyond = "" if k is None else f", 0 if that lies beyond position {k}"
    return _words("MRR", f"1 / position of the first relevant row{beyond}", options)


@metric(
    Kind(_check, _prepare_ndcg, _ndcg_words),
    k=None,
    gain="exp",
    discount="log2",
    ties="average",
    empty="skip",
    convention=None,
)
def ndcg() -> None:
    """Normalised discounted cumulative gain, mean over queries.

    Parameters
    ----------
    y_true : (rows,) numbers
        The labels; real numbers, but not negative ones, whose gain would be negative.
    scores : (rows,) numbers
        The predictions; larger is better.
    qid : (rows,) ids, optional
        The query of each row, in any order; without it all rows form one query.
    k : int, optional
        Only the first k positions count; all by default.
    gain : {"exp", "linear"}
        A row gains 2^y - 1, or y as in `sklearn.metrics.ndcg_score`.
    discount : {"log2", "letor"}
        Position i is divided by log2(1 + i); or positions 1 and 2 by 1 and position i >= 3 by log2(i).
    ties : {"average", "stable"}
        Rows with equal scores: the expectation over all their orders, or the order of the rows.
    empty : {"skip", "zero", "one"}
        Queries without a positive gain are skipped, or count as 0 or 1.
    convention : {"letor3", "letor4"}, optional
        The script of a LETOR benchmark; sets `gain`, `discount`, `ties` and `empty`, and queries with fewer
        than k rows score 0.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from rankwise.metrics import ndcg
    >>> round(ndcg([2, 0, 1, 1, 0], [0.1, 0.7, 0.3, 0.2, 0.9], ["a", "a", "a", "b", "b"], k=2), 4)
    0.4023
    """


@metric(Kind(_check, _prepare_mean_ndcg, _mean_ndcg_words), empty="skip", convention="letor4")
def mean_ndcg() -> None:
    """Mean of NDCG@1, NDCG@2, ... down to the last row of a query, mean over queries.

    The figure that the script of LETOR 4 calls MeanNDCG. With ``convention=None`` it takes the conventions of
    `ndcg` (discount 1/log2(1 + i), ties averaged, and `empty`).

    Examples
    --------
    >>> from rankwise.metrics import mean_ndcg
    >>> mean_ndcg([0, 1, 0], [3.0, 2.0, 1.0])
    0.6666666666666666
    """


@metric(Kind(_check, _prepare_err, _err_words), k=None, max_grade=None, ties="average", empty="skip")
def err() -> None:
    """Reciprocal rank expected of a reader who stops when satisfied (Chapelle et al. 2009).

    A reader goes down the list and is satisfied by a row with probability (2^y - 1) / 2^max_grade; the metric
    is the expectation of one over the position where that happens.

    Parameters
    ----------
    y_true, scores, qid, k, ties, empty
        As for `ndcg`. Averaging a run of n tied rows costs n min(n, k) operations.
    max_grade : float, optional
        The largest grade of the scale. By default the largest label in `y_true`; give it if figures from
        different data are compared.

    Examples
    --------
    >>> from rankwise.metrics import err
    >>> err([0, 2, 1], [3.0, 2.0, 1.0], max_grade=2)
    0.3958333333333333
    """


@metric(
    Kind(_check, _prepare_map, _map_words),
    relevant=1,
    k=None,
    ties="average",
    empty="skip",
    convention=None,
)
def average_precision() -> None:
    """Mean average precision: the mean precision at the relevant rows, mean over queries.

    Parameters
    ----------
    y_true : (rows,) numbers
        The labels; any real numbers.
    scores : (rows,) numbers
        The predictions; larger is better.
    qid : (rows,) ids, optional
        The query of each row, in any order; without it all rows form one query.
    relevant : float
        Rows with at least this label are relevant.
    k : int, optional
        Relevant rows beyond this position contribute 0; the sum is still divided by the number of all
        relevant rows, as trec_eval does.
    ties : {"average", "stable"}
        Rows with equal scores: the expectation over all their orders, or the order of the rows.
    empty : {"skip", "zero", "one"}
        Queries without a relevant row are skipped, or count as 0 or 1.
    convention : {"letor3", "letor4"}, optional
        The script of a LETOR benchmark; sets `ties` and `empty`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from rankwise.metrics import average_precision
    >>> average_precision([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0])
    0.8333333333333333
    """


@metric(
    Kind(_check, _prepare_precision, _precision_words),
    k=10,
    relevant=1,
    ties="average",
    empty="skip",
    convention=None,
)
def precision() -> None:
    """Share of relevant rows among the first k, mean over queries.

    A list of fewer than k rows is filled up with irrelevant ones; with ``convention="letor3"`` it scores 0.
    The other parameters are those of `average_precision`.

    Examples
    --------
    >>> from rankwise.metrics import precision
    >>> precision([1, 0, 2, 0], [4.0, 3.0, 2.0, 1.0], k=3)
    0.6666666666666666
    """


@metric(Kind(_check, _prepare_mrr, _mrr_words), relevant=1, k=None, ties="average", empty="skip")
def reciprocal_rank() -> None:
    """Mean reciprocal rank: one over the position of the first relevant row, mean over queries.

    With `k` a query whose first relevant row lies beyond position k scores 0. The other parameters are those
    of `average_precision`.

    Examples
    --------
    >>> from rankwise.metrics import reciprocal_rank
    >>> reciprocal_rank([0, 0, 1, 1], [4.0, 3.0, 2.0, 1.0])
    0.3333333333333333
    """
