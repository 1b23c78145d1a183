"""Rankers of LightGBM, XGBoost and CatBoost beside ours: their rows are grouped for them, whatever their order."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from rankwise import AutoRanker
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import per_query
from rankwise.model_selection import QueryKFold, cross_validate_ranker, fit_ranker

RIVALS = {
    "lightgbm": ("LGBMRanker", {"n_estimators": 15, "n_jobs": 1, "verbose": -1, "random_state": 0}),
    "xgboost": ("XGBRanker", {"n_estimators": 15, "n_jobs": 1, "random_state": 0}),
    "catboost": (
        "CatBoostRanker",
        {
            "iterations": 15,
            "thread_count": 1,
            "random_seed": 0,
            "verbose": False,
            "allow_writing_files": False,
        },
    ),
}


@pytest.fixture(params=RIVALS)
def rival(request):
    package = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    name, parameters = RIVALS[request.param]
    return getattr(package, name)(**parameters)


@pytest.fixture(scope="module")
def shuffled():
    """Rows of queries that do not stand together, with ids that do not sort as they come."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = np.digitize(np.abs(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=600), [0, 1, 2]).astype(float)
    qid = np.array([f"search {number}" for number in rng.permutation(600) // 12])
    return X, y, qid


def by_hand(rival, X, y, qid):
    """Fit as the package's own manual says, to rows sorted by query."""
    order = np.argsort(qid, kind="stable")
    _, codes, sizes = np.unique(qid[order], return_inverse=True, return_counts=True)
    package = type(rival).__module__.split(".")[0]
    own = {"lightgbm": {"group": sizes}, "xgboost": {"qid": codes}, "catboost": {"group_id": codes}}[package]
    return type(rival)(**rival.get_params()).fit(X[order], y[order], **own)


def test_rows_are_grouped(rival, shuffled):
    X, y, qid = shuffled
    wanted = by_hand(rival, X, y, qid).predict(X)
    found = fit_ranker(rival, X, y, qid).predict(X)
    # The order of queries is ours, and sums of gradients follow it.
    assert spearmanr(found, wanted).statistic > 0.97
    ordered = np.argsort(qid, kind="stable")
    again = fit_ranker(rival, X[ordered], y[ordered], qid[ordered])
    assert spearmanr(again.predict(X), wanted).statistic > 0.97


def test_cross_validation_in_one_line(rival, shuffled):
    X, y, qid = shuffled
    splits = list(QueryKFold(3).split(X, groups=qid))
    found = cross_validate_ranker(rival, X, y, qid, scoring=["ndcg@10", "concordance"], cv=splits)
    for (train, test), ndcg in zip(splits, found["test_ndcg@10"], strict=True):
        fitted = fit_ranker(rival, X[train], y[train], qid[train])
        expected = per_query(y[test], fitted.predict(X[test]), qid[test], metric="ndcg@10").mean()
        assert ndcg == pytest.approx(expected, abs=1e-12)
    assert (found["test_concordance"] > 0.6).all()


def test_the_table_of_candidates_lists_a_rival_and_never_chooses_it(rival, shuffled):
    X, y, qid = shuffled
    splits = list(QueryKFold(3).split(X, groups=qid))
    model = AutoRanker(cv=splits, methods=["rls"], rivals=[rival]).fit(X, y, qid=qid)
    entry = next(entry for entry in model.candidates_ if entry.is_rival)
    assert entry.description == type(rival).__name__
    assert not entry.is_chosen
    assert entry.value > model.best_score_  # trees see that only the size of the first column matters
    scores = np.zeros(len(y))
    for train, test in splits:
        scores[test] = fit_ranker(rival, X[train], y[train], qid[train]).predict(X[test])
    by_query = per_query(y, scores, qid, metric="ndcg@10")
    assert entry.value == pytest.approx(by_query.mean(), abs=1e-12)
    values = by_query.values[by_query.counted]
    assert entry.standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(values.size), rel=1e-9)
    assert type(rival).__name__ in str(model.candidates_)


def test_weights_reach_the_rival(rival, shuffled):
    X, y, qid = shuffled
    weight = np.where(np.char.endswith(qid, "7"), 50.0, 1.0)
    plain = fit_ranker(rival, X, y, qid).predict(X)
    weighted = fit_ranker(type(rival)(**rival.get_params()), X, y, qid, weight).predict(X)
    assert not np.allclose(plain, weighted)


def test_rivals_want_labelled_rows(rival, shuffled):
    X = shuffled[0]
    with pytest.raises(InvalidInputError, match="folds of labelled rows"):
        AutoRanker(methods=["rls"], rivals=[rival]).fit_pairs(
            X, np.array([[0, 1], [2, 3], [4, 5], [6, 7]] * 3)
        )


def test_what_learns_no_queries_is_refused():
    X, y, qid = np.arange(24.0).reshape(12, 2), np.arange(12) % 3, np.arange(12) // 6
    with pytest.raises(InvalidInputError, match=r"Ridge\.fit takes no qid.*Hint: pass a ranker"):
        fit_ranker(Ridge(), X, y, qid)
    with pytest.raises(InvalidInputError, match=r"KNeighborsRegressor\.fit takes no sample_weight"):
        fit_ranker(KNeighborsRegressor(), X, y, sample_weight=np.ones(12))
    assert fit_ranker(Ridge(), X, y).coef_.shape == (2,)
    with pytest.raises(InvalidInputError, match=r"Ridge\.fit takes no qid"):
        AutoRanker(methods=["rls"], cv=2, rivals=[Ridge()]).fit(X, y, qid)
    with pytest.raises(InvalidInputError, match=r"LGBMRegressor\.fit takes no group"):
        fit_ranker(pytest.importorskip("lightgbm").LGBMRegressor(), X, y, qid)
