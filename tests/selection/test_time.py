"""Folds in the order of time: every query is scored by models of earlier queries, as refits by hand show."""

import datetime as dt

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from rankwise import (
    AdditiveRankerCV,
    AutoRanker,
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
from rankwise.metrics import pairwise_error, spearman
from rankwise.model_selection import PreferenceKFold, cross_validate_ranker

N_QUERIES = 21  # six blocks: 6 that only train, and five times 3 that are scored
ALPHAS = [0.01, 1.0, 100.0]
EXACT, MARGIN = {"method": "tikhonov"}, {"tol": 1e-7}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    day = rng.permutation(np.repeat(np.arange(N_QUERIES), 6))
    X = rng.normal(size=(day.size, 4))
    return X, X[:, 0] + 0.1 * day * X[:, 1] + rng.normal(size=day.size), day


def windows(day):
    """Return (train, test) of each fold."""
    return [
        (np.flatnonzero(day < first), np.flatnonzero((day >= first) & (day < first + 3)))
        for first in range(6, N_QUERIES, 3)
    ]


CHOOSERS = {
    "surface": (RankRLSCV(ALPHAS, patience=100), RankRLS()),
    "decomposed": (RankRLSCV(ALPHAS, **EXACT), RankRLS()),
    "ties left out": (RankRLSCV(ALPHAS, **EXACT, ties="exclude"), RankRLS(ties="exclude")),
    "restricted": (RankRLSCV(ALPHAS, positive=True), RankRLS(positive=True)),
    "kernel": (KernelRankRLSCV(gamma=0.1, alphas=ALPHAS), KernelRankRLS(gamma=0.1)),
    "kernel products": (
        KernelRankRLSCV(gamma=0.1, alphas=ALPHAS, solver="cg", tol=1e-10, **EXACT),
        KernelRankRLS(gamma=0.1),
    ),
    "margins": (RankSVMCV(ALPHAS, **MARGIN), RankSVM(**MARGIN)),
    "kernel margins": (
        KernelRankSVMCV(gamma=0.1, alphas=ALPHAS, **MARGIN),
        KernelRankSVM(gamma=0.1, **MARGIN),
    ),
}


@pytest.mark.parametrize("name", CHOOSERS)
def test_errors_are_those_of_refits_on_earlier_queries(name, data):
    X, y, day = data
    chooser, single = CHOOSERS[name]
    model = clone(chooser).set_params(cv="time").fit(X, y, day)
    converged = model.surface_[:, -1] if name == "surface" else model.cv_errors_
    for alpha, error in zip(model.alphas_, converged, strict=True):
        scores = np.zeros(y.size)
        for train, test in windows(day):
            scores[test] = (
                clone(single).set_params(alpha=alpha).fit(X[train], y[train], day[train]).predict(X[test])
            )
        scored = np.flatnonzero(day >= 6)
        assert error == pytest.approx(pairwise_error(y[scored], scores[scored], day[scored]), abs=1e-9)
    assert model.cv_ == "the test sets of 5 expanding windows of queries"


@pytest.mark.parametrize("name", [*CHOOSERS, "curves"])
def test_ids_sort_as_numbers_texts_and_dates(name, data):
    X, y, day = data
    chooser = AdditiveRankerCV(interactions=0) if name == "curves" else CHOOSERS[name][0]
    dates = np.datetime64("2025-12-20") + day
    objects = np.array([dt.date(2025, 12, 20) + dt.timedelta(int(one)) for one in day])
    given = clone(chooser).set_params(cv=windows(day)).fit(X, y, day)
    for ids in (day * 10 - 7, dates, dates.astype(str), objects):
        model = clone(chooser).set_params(cv="time").fit(X, y, ids)
        np.testing.assert_array_equal(model.cv_errors_, given.cv_errors_)
        assert model.best_score_ == given.best_score_


def test_the_automatic_choice_scores_later_queries(data):
    X, y, day = data
    model = AutoRanker("pairwise_error", cv="time", methods=["rls"]).fit(X, y, day)
    given = AutoRanker("pairwise_error", cv=windows(day), methods=["rls"], estimate=False).fit(X, y, day)
    assert model.best_score_ == given.best_score_
    entry, scores = next(one for one in model.candidates_ if one.scaling == "standard"), np.zeros(y.size)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for train, test in windows(day):
        scores[test] = RankRLS(entry.alpha).fit(Z[train], y[train], day[train]).predict(Z[test])
    scored = day >= 6
    assert entry.value == pytest.approx(pairwise_error(y[scored], scores[scored], day[scored]), abs=1e-12)


def test_cross_validation(data):
    X, y, day = data
    found = cross_validate_ranker(RankRLS(), X, y, day, scoring="rank_ic", cv="time")["test_score"]
    for (train, test), value in zip(windows(day), found, strict=True):
        scores = RankRLS().fit(X[train], y[train], day[train]).predict(X[test])
        assert value == pytest.approx(spearman(y[test], scores, day[test]))


def test_groups_of_listed_pairs(data):
    X, y, day = data
    order = np.lexsort((y, day))
    pairs = np.column_stack([order[1:], order[:-1]])[day[order[1:]] == day[order[:-1]]]
    groups = day[pairs[:, 0]]
    splits = [
        (np.flatnonzero(groups < first), np.flatnonzero((groups >= first) & (groups < first + 3)))
        for first in range(6, N_QUERIES, 3)
    ]
    for chooser in (RankRLSCV(ALPHAS), KernelRankRLSCV(gamma=0.1, alphas=ALPHAS)):
        model = clone(chooser).set_params(cv="time").fit_pairs(X, pairs, groups=groups)
        given = clone(chooser).set_params(cv=splits).fit_pairs(X, pairs)
        np.testing.assert_allclose(model.cv_errors_, given.cv_errors_, atol=1e-12)
    by_items = KernelRankRLSCV(gamma=0.1, alphas=ALPHAS, cv=PreferenceKFold(3, by="items")).fit_pairs(
        X, pairs
    )
    check_pairs(by_items, X, pairs, list(PreferenceKFold(3, by="items").split(pairs)))
    check_pairs(model, X, pairs, splits)


def check_pairs(model, X, pairs, splits):
    """Compare the errors with those of refits; pairs of two folds are on neither side."""
    single = KernelRankRLS(gamma=0.1)
    for alpha, error in zip(model.alphas_, model.cv_errors_, strict=True):
        wrong = []
        for train, test in splits:
            scores = clone(single).set_params(alpha=alpha).fit_pairs(X, pairs[train]).predict(X)
            wrong.append(np.mean(scores[pairs[test, 0]] < scores[pairs[test, 1]]))
        assert error == pytest.approx(np.mean(wrong), abs=1e-12)


@pytest.mark.parametrize("chooser", [RankRLSCV(), AutoRanker()], ids=["RankRLSCV", "AutoRanker"])
def test_too_few_queries(chooser, data):
    X, y, day = data
    with pytest.raises(InvalidInputError, match=r"needs 6 queries or more, and there are 5.*Hint"):
        clone(chooser).set_params(cv="time").fit(X[day < 5], y[day < 5], day[day < 5])
    with pytest.raises(MissingQueriesError, match=r"there are none.*Hint: pass qid"):
        clone(chooser).set_params(cv="time").fit(X, y)
    with pytest.raises(MissingQueriesError, match=r"Hint: pass qid"):
        cross_validate_ranker(RankRLS(), X, y, cv="time")


def test_rows_may_score_several_folds(data):
    """Random splits test some rows several times; each test set counts as a fold of its own."""
    X, y, _ = data
    cv = ShuffleSplit(4, test_size=0.3, random_state=0)
    model = RankRLSCV(ALPHAS, cv=cv, method="tikhonov").fit(X, y)
    for alpha, error in zip(model.alphas_, model.cv_errors_, strict=True):
        found = [
            pairwise_error(y[test], RankRLS(alpha).fit(X[train], y[train]).predict(X[test]))
            for train, test in cv.split(X)
        ]
        assert error == pytest.approx(np.mean(found), abs=1e-9)
    with pytest.raises(InvalidInputError, match=r"several times.*Hint"):
        KernelRankRLSCV(cv=cv).fit(X, y)
