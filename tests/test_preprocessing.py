"""QueryScaler: every query on its own, dense and sparse, alone and in pipelines."""

import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise
from oracles import scaled_in_queries
from rankwise import RankRLS
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import ndcg
from rankwise.model_selection import QueryKFold, cross_validate_ranker, make_ranking_scorer, predict_scores
from rankwise.preprocessing import QueryScaler
from real_data import NEEDS_REAL_DATA, ohsumed
from strategies import QUERY_IDS, make_problem

METHODS = ["minmax", "standard", "rank"]

EXPECTED_FAILURES = {
    "check_methods_subset_invariance": "a query is scaled by its own rows, so a part of it is scaled otherwise",
}


@parametrize_with_checks(
    [QueryScaler(method) for method in METHODS], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_common_checks(estimator, check):
    check(estimator)


@st.composite
def tables(draw):
    n, columns = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    entries = draw(st.sampled_from([st.integers(-2, 2), st.floats(-1e6, 1e6, width=32), st.integers(0, 3)]))
    if draw(st.booleans()):
        entries = st.one_of(entries, st.just(np.nan), st.just(0))
    X = draw(st.lists(st.lists(entries, min_size=columns, max_size=columns), min_size=n, max_size=n))
    qid = [QUERY_IDS[code] for code in draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))]
    return np.array(X, dtype=float), qid


def difference_inside_queries(scaled, expected, qid):
    """The largest difference of the two that is not one constant a query and column."""
    gap = scaled - expected
    worst = 0.0
    for query in dict.fromkeys(qid):
        rows = [row for row, other in enumerate(qid) if other == query]
        for column in gap[rows].T:
            known = column[~np.isnan(column)]
            worst = max(worst, np.ptp(known)) if known.size else worst
    return worst


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=50, deadline=None)
@given(table=tables())
def test_agrees_with_each_column_of_each_query_alone(method, table):
    X, qid = table
    expected = scaled_in_queries(X, qid, method)
    dense = QueryScaler(method).fit_transform(X, qid=qid)
    np.testing.assert_allclose(dense, expected, atol=1e-9)
    for convert in (sp.csr_matrix, sp.csr_array, sp.csc_matrix):
        sparse = QueryScaler(method).fit_transform(convert(X), qid=qid)
        assert sparse.format == "csr"
        assert sparse.nnz == np.count_nonzero(X)
        scaled = sparse.toarray()
        assert (scaled[X == 0] == 0).all()  # what was nothing stays nothing
        assert (np.isnan(scaled) == np.isnan(X)).all()
        assert difference_inside_queries(scaled, expected, qid) < 1e-9
        if method == "minmax" and not (X < 0).any():
            np.testing.assert_allclose(scaled, expected, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_stored_zeros_split_entries_and_float32(method):
    problem = make_problem(0, rows=60, features=4, queries=5)
    X = np.where(np.random.default_rng(0).random(problem.X.shape) < 0.5, 0.0, problem.X)
    plain = QueryScaler(method).fit_transform(sp.csr_matrix(X), qid=problem.qid)
    stored = sp.csr_matrix((np.ravel(X), np.tile(np.arange(4), 60), np.arange(0, 241, 4)), shape=X.shape)
    again = QueryScaler(method).fit_transform(stored, qid=problem.qid)
    np.testing.assert_allclose(again.toarray(), plain.toarray(), atol=1e-12)
    halves = sp.csr_matrix(
        (np.repeat(np.ravel(X) / 2, 2), np.repeat(np.tile(np.arange(4), 60), 2), np.arange(0, 481, 8)),
        shape=X.shape,
    )
    before = halves.data.copy()
    np.testing.assert_allclose(
        QueryScaler(method).fit_transform(halves, qid=problem.qid).toarray(), plain.toarray(), atol=1e-12
    )
    assert (halves.data == before).all()
    for X32 in (X.astype(np.float32), sp.csr_matrix(X, dtype=np.float32)):
        assert QueryScaler(method).fit_transform(X32, qid=problem.qid).dtype == np.float32


@pytest.mark.parametrize("method", METHODS)
def test_extreme_values(method):
    X = np.array([[1e150], [-1e150], [0.0], [5e-324], [1e-323], [0.1], [0.1], [0.1]])
    qid = [1, 1, 1, 2, 2, 3, 3, 3]
    for matrix in (X, sp.csr_matrix(X)):
        scaled = QueryScaler(method).fit_transform(matrix, qid=qid)
        scaled = scaled.toarray() if sp.issparse(scaled) else scaled
        assert np.isfinite(scaled).all()
        assert scaled[0] > scaled[2] > scaled[1]
        assert scaled[4] > scaled[3]
        assert (scaled[5:] == scaled[5]).all()  # 0.1 + 0.1 + 0.1 is not 0.3, and still this is constant


@pytest.mark.parametrize("method", METHODS)
def test_a_query_larger_than_a_block(method):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300_000, 2)), 3)
    scaled = QueryScaler(method).fit_transform(X)
    column = X[:, 1]
    if method == "minmax":
        expected = (column - column.min()) / np.ptp(column)
    elif method == "standard":
        expected = (column - column.mean()) / column.std()
    else:
        expected = (
            np.searchsorted(np.sort(column), column)
            + np.searchsorted(np.sort(column), column, side="right")
            - 1
        )
        expected = expected / 2 / (column.size - 1)
    np.testing.assert_allclose(scaled[:, 1], expected, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_rows_and_the_names_of_queries_do_not_matter(method):
    problem = make_problem(2, rows=80, features=3, queries=7)
    scaled = QueryScaler(method).fit_transform(problem.X, qid=problem.qid)
    order = np.random.default_rng(0).permutation(80)
    names = [f"q{-code}" for code in problem.qid[order]]
    again = QueryScaler(method).fit_transform(problem.X[order], qid=names)
    np.testing.assert_allclose(again, scaled[order], atol=1e-12)


def test_what_is_wrong_is_said():
    X = np.eye(3)
    with pytest.raises(InvalidInputError, match=r"method='minmx'.*did you mean 'minmax'"):
        QueryScaler("minmx").fit(X)
    with pytest.raises(InvalidInputError, match="qid has 2 entries, but X has 3 rows"):
        QueryScaler().fit(X, qid=[1, 2])
    with pytest.raises(
        MissingQueriesError, match=r"transform was called without them.*Hint: .*enable_metadata_routing"
    ):
        QueryScaler().fit(X, qid=[1, 1, 2]).transform(X)
    assert QueryScaler().fit(X).transform(X).tolist() == X.tolist()


def test_names_and_containers():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 3.0]})
    scaler = QueryScaler().set_output(transform="pandas").fit(frame, qid=[1, 1])
    assert scaler.transform(frame, qid=[1, 1]).to_dict("list") == {"a": [0.0, 1.0], "b": [0.0, 0.0]}
    assert scaler.get_feature_names_out().tolist() == ["a", "b"]


@pytest.mark.parametrize("method", METHODS)
def test_searches_route_qid_to_scaler_ranker_scorer_and_splitter(method):
    problem = make_problem(0, rows=200, features=4, queries=25, levels=3)
    problem.X *= np.random.default_rng(1).lognormal(sigma=3, size=problem.qid.max() + 1)[problem.qid, None]
    pipeline = make_pipeline(QueryScaler(method), RankRLS())
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            pipeline,
            {"rankrls__alpha": [0.01, 1.0], "queryscaler__method": METHODS},
            cv=QueryKFold(4),
            scoring=make_ranking_scorer("ndcg@5"),
            error_score="raise",
        ).fit(problem.X, problem.y, qid=problem.qid)
        by_hand = []
        for train, test in QueryKFold(4).split(problem.X, None, problem.qid):
            parts = {"method": search.best_params_["queryscaler__method"]}
            scaled = QueryScaler(**parts).fit_transform(problem.X, qid=problem.qid)  # whole queries: the same
            model = RankRLS(search.best_params_["rankrls__alpha"])
            model.fit(scaled[train], problem.y[train], qid=problem.qid[train])
            by_hand.append(ndcg(problem.y[test], model.predict(scaled[test]), problem.qid[test], k=5))
        assert search.best_score_ == pytest.approx(np.mean(by_hand), rel=1e-12)
        fitted = clone(pipeline).fit(problem.X, problem.y, qid=problem.qid)
        scores = fitted.predict(problem.X, qid=problem.qid)
    assert predict_scores(fitted, problem.X, problem.qid).tobytes() == scores.tobytes()
    result = cross_validate_ranker(pipeline, problem.X, problem.y, problem.qid, error_score="raise")
    assert (result["test_score"] > 0).all()
    with pytest.raises(MissingQueriesError):
        fitted.predict(problem.X)
    # a file carries the scaling, and what the scaler asks for
    stream = io.BytesIO()
    rankwise.save(fitted, stream)
    stream.seek(0)
    assert predict_scores(rankwise.load(stream), problem.X, problem.qid).tobytes() == scores.tobytes()


class TestRealData:
    pytestmark = NEEDS_REAL_DATA

    def test_reproduces_the_published_normalisation(self):
        published, _, qid = ohsumed()
        raw, _, same = ohsumed("Feature-min")
        assert (qid == same).all()
        scaled = QueryScaler().fit_transform(raw, qid=qid)
        # printed with six digits, of inputs printed with six
        np.testing.assert_allclose(scaled, published, rtol=0, atol=5.0001e-7)
