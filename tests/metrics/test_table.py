"""The table of metrics: names, descriptions, invariances, evaluators and validation."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from optional import polars as pl
from rankwise import metrics
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import METRICS, evaluate, get_metric, per_query, preference_error
from strategies import rankings

# Every metric, with options under which any labels of rankings() are valid and some query counts.
EVERYTHING = [
    *(get_metric(name) for name in ("pairwise_error", "concordance", "kendall_tau")),
    get_metric("pairwise_error", average="pooled", ties=1),
    get_metric("auc", relevant=2),
    get_metric("ndcg", empty="zero"),
    get_metric("ndcg@3", empty="zero", ties="stable"),
    get_metric("average_precision@3", empty="zero"),
    get_metric("precision@2", empty="zero"),
    get_metric("reciprocal_rank", empty="zero", ties="stable"),
    get_metric("err@4", empty="one", max_grade=4),
    get_metric("mean_ndcg"),
    get_metric("mean_ndcg", convention=None, empty="zero"),
    get_metric("ndcg@2", convention="letor3"),
]
BY_NAME = pytest.mark.parametrize("metric", EVERYTHING, ids=repr)
BY_FAMILY = pytest.mark.parametrize(
    "metric", [METRICS["pairwise_error"], get_metric("ndcg", empty="zero")], ids=repr
)


def usable(metric, y, qid):
    """Whether some query counts, under the metric's own view of the labels."""
    levels = np.asarray(y) >= metric.options["relevant"] if metric.base_name == "auc" else np.asarray(y)
    own = {}
    for level, key in zip(levels, qid, strict=True):
        own.setdefault(key, set()).add(level)
    return not metric.takes_weights or any(len(labels) > 1 for labels in own.values())


@BY_NAME
@given(data=rankings(), seed=st.integers(0, 9))
def test_row_order_names_and_monotone_transforms_change_nothing(metric, data, seed):
    y, scores, qid, _ = data
    assume(usable(metric, y, qid))
    reference = metric(y, scores, qid)
    assert 0 <= reference <= 1 or metric.base_name == "kendall_tau"
    renamed = [f"query {key}" for key in qid]
    ranks = np.unique(scores, return_inverse=True)[1]
    assert metric(y, ranks**3.0 - 7, renamed) == pytest.approx(reference, abs=1e-12)
    if "keep the order of the rows" not in metric.describe():  # stable ties do, and so they need that order
        moved = np.random.default_rng(seed).permutation(len(y))
        assert metric(y[moved], scores[moved], [qid[r] for r in moved]) == pytest.approx(reference, abs=1e-12)


@BY_NAME
@pytest.mark.parametrize("order", ["C", "F"])
def test_many_equals_one_at_a_time(metric, order):
    rng = np.random.default_rng(3)
    y, qid = rng.integers(0, 5, 3000), rng.choice(["a", "b", "c", "d"], 3000, p=[0.9, 0.05, 0.04, 0.01])
    scores = np.asarray(np.round(rng.normal(size=(3000, 12)), 1), order=order)
    evaluator = metric.prepare(y, check_qid(qid, 3000), n_threads=3)
    alone = [metric(y, column, qid) for column in scores.T]
    assert evaluator.many(scores) == pytest.approx(alone, abs=1e-15)
    assert evaluator.many(scores[:, ::-2]) == pytest.approx(alone[::-2], abs=1e-15)
    assert evaluator.many(scores).tolist() == metric.prepare(y, qid, n_threads=1).many(scores).tolist()
    assert evaluator.many(scores[:, :0]).shape == (0,)
    with ThreadPoolExecutor(4) as pool:  # evaluators keep no state between calls
        assert list(pool.map(evaluator, scores.T)) == pytest.approx(alone, abs=1e-15)


@BY_NAME
def test_per_query_means_equal_the_metric(metric):
    rng = np.random.default_rng(4)
    y, scores, qid = rng.integers(0, 3, 200), rng.normal(size=200), rng.integers(-20, 60, 200)
    result = per_query(y, scores, qid, metric=metric)
    assert result.ids.tolist() == sorted(set(qid.tolist()))
    assert np.isnan(result.values).tolist() == (~result.counted).tolist()
    assert len(result) == len(set(qid.tolist()))
    if metric.options.get("average") != "pooled":
        assert result.mean() == pytest.approx(metric(y, scores, qid))


@BY_NAME
def test_names_and_words(metric):
    assert metric.name.partition("@")[0] in METRICS
    assert get_metric(metric) == metric
    words = metric.describe()
    assert "over queries" in words or "all queries together" in words
    assert "tie" in words
    k = metric.options.get("k")
    assert k is None or str(k) in words


def test_describe_tells_conventions_apart():
    texts = [metric.describe() for metric in EVERYTHING]
    assert len(set(texts)) == len(texts)
    assert get_metric("ndcg@10", convention="letor4").describe() == (
        "NDCG@10: gain 2^y - 1; positions 1 and 2 undiscounted, then 1/log2(position); "
        "lists of fewer than 10 rows score 0; tied scores keep the order of the rows; "
        "queries without a relevant row count 0; mean over queries (the script of LETOR4)"
    )


OTHER_NAMES = {
    "map": "average_precision",
    "MAP@10": "average_precision@10",
    "mrr": "reciprocal_rank",
    "preference_error": "pairwise_error",
    "roc_auc": "auc",
    "NDCG@5": "ndcg@5",
}


def test_lookup():
    assert set(METRICS) == {metric.base_name for metric in METRICS.values()}
    assert all(callable(getattr(metrics, name)) for name in METRICS)  # one name for the function, too
    assert get_metric("ndcg@10").options["k"] == 10
    assert get_metric("precision@5").name == "precision@5"
    assert not METRICS["pairwise_error"].greater_is_better
    assert all(metric.greater_is_better for name, metric in METRICS.items() if name != "pairwise_error")
    with pytest.raises(
        InvalidInputError,
        match=r"Unknown metric .ndgc@10.\. Hint: did you mean .ndcg@10.\? There are pairwise_error",
    ):
        get_metric("ndgc@10")
    for other, meant in OTHER_NAMES.items():
        with pytest.raises(InvalidInputError, match=rf"Hint: did you mean '{meant}'\?"):
            get_metric(other)
    with pytest.raises(InvalidInputError, match="no number after"):
        get_metric("ndcg@ten")
    with pytest.raises(InvalidInputError, match="auc has no option 'k'"):
        get_metric("auc@5")
    with pytest.raises(InvalidInputError, match="takes no options"):
        get_metric("kendall_tau@5")
    with pytest.raises(InvalidInputError, match="mean_ndcg has no option 'k'"):
        get_metric("mean_ndcg@5")
    with pytest.raises(InvalidInputError, match="k=None is not a positive integer"):
        get_metric("precision", k=None)
    for name in (3, np.array(["ndcg", "auc"]), ["ndcg"]):
        with pytest.raises(InvalidInputError, match="Unknown metric"):
            get_metric(name)


def test_evaluate_encodes_once_and_names_what_it_returns():
    y, scores, qid = [1, 0, 1, 0], [2, 1, 0, 1], ["a", "a", "b", "b"]
    result = evaluate(y, scores, qid)
    assert list(result) == ["pairwise_error", "ndcg@10", "average_precision"]
    assert result["pairwise_error"] == 0.5
    assert evaluate(y, scores, check_qid(qid, 4)) == result
    with pytest.raises(InvalidInputError, match="list of names"):
        evaluate(y, scores, qid, metrics="average_precision")


@pytest.mark.parametrize("kind", [list, pd.Series, pl.Series])
@BY_FAMILY
def test_containers(metric, kind):
    y, scores, qid = [2, 0, 1, 0], [2.5, 1.0, 0.0, 1.0], ["a", "a", "b", "b"]
    expected = metric(np.array(y), np.array(scores), np.array(qid))
    assert metric(kind(y), kind(scores), kind(qid)) == expected
    assert metric(np.array(y, np.int8), np.array(scores, np.float32), kind(qid)) == expected


@BY_NAME
def test_strides_and_later_writes(metric):
    rng = np.random.default_rng(5)
    table = rng.integers(0, 5, (300, 3)).astype(float)
    y, scores, qid = table[:, 0], table[::-1, 1], np.repeat(np.arange(30), 10)
    expected = metric(y.copy(), scores.copy(), qid)
    assert metric(y, scores, qid) == expected
    evaluator = metric.prepare(y, qid)
    kept = scores.copy()
    table[:] = 0
    assert evaluator(kept) == expected


BAD = {
    "lengths differ": ([1, 0], [1.0, 2.0, 3.0], None),
    "qid too short": ([1, 0], [1.0, 2.0], ["a"]),
    "NaN in scores": ([1, 0], [1.0, np.nan], None),
    "infinite score": ([1, 0], [1.0, np.inf], None),
    "NaN in labels": ([np.nan, 0], [1.0, 2.0], None),
    "scores in two dimensions": ([1, 0], [[1.0], [2.0]], None),
    "labels in two dimensions": ([[1, 0]], [1.0, 2.0], None),
    "a scalar": (1, 1.0, None),
    "text": (["good", "bad"], [1.0, 2.0], None),
    "complex": ([1, 0], [1j, 2.0], None),
    "a missing label": (pd.Series([1, None], dtype="Int64"), [1.0, 2.0], None),
    "nothing": ([], [], None),
    "ragged": ([[1], [1, 2]], [1.0, 2.0], None),
}


@pytest.mark.parametrize("case", BAD)
@BY_FAMILY
def test_bad_input_ends_in_a_remedy(metric, case):
    with pytest.raises(InvalidInputError, match=r"Hint: \S"):
        metric(*BAD[case])


@BY_FAMILY
def test_evaluators_check_scores(metric):
    evaluator = metric.prepare([3, 0, 1], ["a", "a", "a"])
    for bad in ([1.0, 2.0], [[1.0], [2.0], [3.0]], [1.0, np.nan, 2.0]):
        with pytest.raises(InvalidInputError, match="Hint:"):
            evaluator(bad)
    for bad in (np.zeros(3), np.zeros((2, 4)), np.full((3, 1), np.inf)):
        with pytest.raises(InvalidInputError, match="Hint:"):
            evaluator.many(bad)
    with pytest.raises(InvalidInputError, match="encode the query ids of the same rows"):
        metric.prepare([1, 0], check_qid(["a", "a", "a"], 3))


@BY_NAME
def test_weights_are_refused_where_they_mean_nothing(metric):
    if metric.takes_weights:
        assert metric([3, 0, 1], [3, 1, 2], sample_weight=[1, 2, 3]) == metric([3, 0, 1], [3, 1, 2])
    else:
        with pytest.raises(InvalidInputError, match="does not take sample_weight"):
            metric([3, 0, 1], [3, 1, 2], sample_weight=[1, 2, 3])


@pytest.mark.parametrize(("name", "counts"), [("pairwise_error", "counts 1;"), ("concordance", "counts 0;")])
def test_what_a_tie_counts_is_said(name, counts):
    metric = get_metric(name, ties=1)
    assert counts in metric.describe()
    assert f"counts {metric.prepare([0, 1])([5.0, 5.0]):g};" in metric.describe()


def test_preference_error_takes_pairs_first():
    scores, pairs = [0.3, 0.1, 0.2, 0.4], [[0, 1], [2, 3]]
    assert preference_error(pairs, scores=scores) == preference_error(pairs, scores) == 0.5
    with pytest.raises(InvalidInputError, match="pairs"):
        preference_error([0, 1], scores=scores)
