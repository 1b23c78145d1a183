"""What stands at the top of the queries."""

import numpy as np

from rankwise import RankRLS
from rankwise.data.queries import encode_queries
from rankwise.metrics import ndcg
from rankwise.report import Report
from rankwise.report.evidence import look_at_top


def make(seed=0, n_queries=30):
    rng = np.random.default_rng(seed)
    qid = np.repeat(rng.permutation(n_queries), rng.integers(2, 15, n_queries))
    y = rng.integers(0, 4, qid.size).astype(float)
    order = rng.permutation(qid.size)
    return y[order], qid[order], rng.normal(size=qid.size)


def test_shares_of_grades_equal_counting_query_by_query():
    y, qid, scores = make()
    curve, grades, shares = look_at_top(y, encode_queries(qid), scores)
    for position in range(10):
        found = []
        for query in np.unique(qid):
            own = np.flatnonzero(qid == query)
            ranked = own[np.argsort(-scores[own])]
            found += list(y[ranked[position : position + 1]])
        expected = [np.mean(np.array(found) == grade) for grade in grades]
        np.testing.assert_allclose(shares[position], expected)
    assert [k for k, _ in curve][:5] == [1, 2, 3, 5, 10]
    for k, value in curve:
        assert value == ndcg(y, scores, qid, k=k)


def test_many_grades_have_no_shades():
    y, qid, scores = make()
    assert look_at_top(y + np.arange(y.size) % 7, encode_queries(qid), scores) is None


def test_a_report_shows_itself_in_a_notebook_and_leaves_out_what_is_empty():
    y, qid, scores = make()
    X = np.column_stack([scores, y + scores])
    report = Report(RankRLS().fit(X, y, qid=qid), X, y, qid)
    page = report.html()
    assert "Grades in the top ten" in page
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<script" not in shown  # it is escaped inside its attribute
    one = Report(RankRLS().fit(X, y), X, y).html()
    assert "Grades in the top ten" not in one
