"""scikit-learn citizenship: the common checks, routing, pipelines, searches."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    KernelRankSVMCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import concordance, get_metric, ndcg
from rankwise.model_selection import QueryKFold, cross_validate_ranker, make_ranking_scorer
from strategies import make_problem


@parametrize_with_checks(
    [
        AdditiveRanker(tol=1e-13),
        AdditiveRankerCV(cv=2, alphas=[1e-1, 1e-3], interactions=0, adaptive=0, selective=0, tol=1e-13),
        KernelRankRLS(),
        KernelRankRLS("precomputed"),
        KernelRankRLSCV(alphas=(0.1, 1.0)),
        RankRLS(),
        RankRLSCV(),
        RankSVM(),
        # Tight, so that weights and copies of rows lead to the same model and not to one within the tolerance.
        RankSVMCV(cv=2, alphas=[1e-1, 1e-3], loss="squared_hinge", tol=1e-13),
        KernelRankSVM(),
        KernelRankSVMCV(cv=2, alphas=[1e-1, 1e-3], loss="squared_hinge", tol=1e-13),
    ],
)
def test_common_checks(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def problem():
    problem = make_problem(0, rows=200, features=4, queries=25, levels=3)
    problem.y = np.round(problem.X @ [1.0, -2.0, 0.5, 0.0] + np.random.default_rng(1).normal(size=200))
    problem.y -= problem.y.min()
    return problem


def test_one_qid_serves_estimator_scorer_and_splitter(routing, problem):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RankRLS()),
        {"rankrls__alpha": [0.01, 1.0, 100.0]},
        cv=QueryKFold(4),
        scoring=make_ranking_scorer("ndcg@5"),
    )
    search.fit(problem.X, problem.y, qid=problem.qid)
    best = search.cv_results_["mean_test_score"][search.best_index_]
    by_hand = []
    for train, test in GroupKFold(4).split(problem.X, None, problem.qid):
        model = make_pipeline(StandardScaler(), RankRLS(alpha=search.best_params_["rankrls__alpha"]))
        model.fit(problem.X[train], problem.y[train], qid=problem.qid[train])
        by_hand.append(ndcg(problem.y[test], model.predict(problem.X[test]), problem.qid[test], k=5))
    assert best == pytest.approx(np.mean(by_hand), rel=1e-12)
    assert search.score(problem.X, problem.y, qid=problem.qid) > 0.5


def test_default_score_and_group_k_fold(routing, problem):
    result = cross_validate(
        RankRLS(),
        problem.X,
        problem.y,
        params={"qid": problem.qid, "groups": problem.qid},
        cv=GroupKFold(3),
    )
    assert (result["test_score"] > 0.5).all()


def test_several_metrics_in_several_processes(routing, problem):
    scoring = {name: make_ranking_scorer(name) for name in ("pairwise_error", "concordance")}
    result = cross_validate(
        RankRLS(), sp.csr_matrix(problem.X), problem.y, params={"qid": problem.qid}, cv=QueryKFold(3),
        scoring=scoring, n_jobs=2,
    )  # fmt: skip
    np.testing.assert_allclose(result["test_pairwise_error"], result["test_concordance"] - 1, atol=1e-12)


def test_without_routing_nothing_is_scored_silently(problem):
    scorer = make_ranking_scorer("ndcg@5")
    model = RankRLS().fit(problem.X, problem.y, qid=problem.qid)
    with pytest.raises(MissingQueriesError, match=r"Hint: .*enable_metadata_routing"):
        scorer(model, problem.X, problem.y)
    with pytest.raises(MissingQueriesError, match=r"fitted with query ids.*Hint: pass qid="):
        model.score(problem.X, problem.y)
    with pytest.raises(MissingQueriesError):
        list(QueryKFold(3).split(problem.X))
    pipeline = make_pipeline(StandardScaler(), RankRLS()).fit(problem.X, problem.y, rankrls__qid=problem.qid)
    with pytest.raises(MissingQueriesError):
        pipeline.score(problem.X, problem.y)


def test_cross_validation_without_touching_the_configuration(problem):
    before = sklearn.get_config()
    result = cross_validate_ranker(
        make_pipeline(StandardScaler(), RankRLS()),
        problem.X,
        problem.y,
        problem.qid,
        scoring=["ndcg@10", "pairwise_error"],
        cv=4,
    )
    assert sklearn.get_config() == before
    assert result["test_ndcg@10"].shape == (4,)
    assert (result["test_pairwise_error"] <= 0).all()
    one = cross_validate_ranker(RankRLS(), problem.X, problem.y, cv=3)
    assert (one["test_score"] > 0.5).all()


@pytest.mark.parametrize("cv", [np.int64(4), None, GroupKFold(4), QueryKFold(4)])
def test_every_way_to_ask_for_folds_keeps_queries_whole(cv, problem):
    result = cross_validate_ranker(
        RankRLS(), problem.X, problem.y, problem.qid, cv=cv, return_indices=True,
        scoring=get_metric("ndcg@5", gain="linear"),
    )  # fmt: skip
    assert (result["test_score"] > 0.5).all()
    for train, test in zip(*result["indices"].values(), strict=True):
        assert not set(problem.qid[train]) & set(problem.qid[test])


def test_scorers_pickle_and_clone(problem):
    scorer = make_ranking_scorer("average_precision", global_ranking=True)
    again = pickle.loads(pickle.dumps(scorer))
    model = RankRLS().fit(problem.X, problem.y)
    labels = (problem.y > problem.y.mean()).astype(float)
    assert again(model, problem.X, labels) == scorer(model, problem.X, labels)
    assert clone(scorer).metric == "average_precision"
    with pytest.raises(InvalidInputError, match=r"did you mean"):
        make_ranking_scorer("ndgc")


def test_too_few_queries_for_the_folds(problem):
    with pytest.raises(InvalidInputError, match="cannot make 50 folds"):
        list(QueryKFold(50).split(problem.X, None, problem.qid))


@pytest.mark.parametrize(
    "convert",
    [
        pd.DataFrame,
        sp.csr_matrix,
        sp.csc_matrix,
        sp.csr_array,
        sp.coo_matrix,
        np.asfortranarray,
        lambda X: X.tolist(),
    ],
)
def test_containers_give_the_same_model(convert, problem):
    expected = RankRLS(tol=1e-12).fit(problem.X, problem.y, qid=problem.qid)
    model = RankRLS(tol=1e-12).fit(
        convert(problem.X), pd.Series(problem.y), qid=pd.Series(problem.qid.astype(str))
    )
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(model.predict(convert(problem.X)), expected.predict(problem.X), atol=1e-9)


def test_score_is_the_concordance(problem):
    weight = np.random.default_rng(0).integers(1, 4, size=200)
    model = RankRLS().fit(problem.X, problem.y, qid=problem.qid)
    expected = concordance(problem.y, model.predict(problem.X), problem.qid, sample_weight=weight)
    assert model.score(problem.X, problem.y, qid=problem.qid, sample_weight=weight) == expected
