"""Columns that only what is held out has: the model without it has zeros there, and rows tie by them."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from all_pairs import pairwise
from oracles import pairwise_error
from rankwise import KernelRankRLSCV, RankRLS, RankRLSCV
from rankwise.metrics import preference_error
from rankwise.pairs.known_columns import codes_of_groups, differing_pairs

ALPHAS = [0.01, 0.1, 1.0, 10.0]
STORAGES = {"dense": np.asarray, "sparse": sp.csr_matrix, "far from zero": lambda X: X + 1e6}
MODELS = {
    "columns": lambda **options: RankRLSCV(ALPHAS, method="tikhonov", **options),
    "kernel": lambda **options: KernelRankRLSCV("linear", alphas=ALPHAS, **options),
}


def words(n_queries=12, size=6, n_own=4, n_shared=3, seed=0):
    """Rows of queries: words that all may have, and words of each query; and labels that go by the first ones."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), size)
    shared = (rng.random((qid.size, n_shared)) < 0.3) * 1.0
    own = np.zeros((qid.size, n_own * n_queries))
    for row, query in enumerate(qid):
        own[row, n_own * query : n_own * (query + 1)] = rng.random(n_own) < 0.5
    return np.hstack([own, shared]), shared.sum(axis=1) + rng.integers(0, 2, qid.size), qid


def scores_of_refits(X, y, qid, fold, alpha):
    """Fit without each fold; what is zero but for rounding is zero."""
    scores = np.empty(y.size)
    for number in np.unique(fold):
        test = fold == number
        model = RankRLS(alpha, solver="direct").fit(X[~test], y[~test], None if qid is None else qid[~test])
        scores[test] = (X[test] @ model.coef_).round(9)
    return scores


@pairwise(storage=STORAGES, name=MODELS, n_folds=[4, 12])
def test_words_of_a_query_that_is_held_out_order_nothing(name, storage, n_folds):
    X, y, qid = words()
    fold = qid % n_folds
    cv = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(n_folds)]
    model = MODELS[name](cv="leave-query-out" if n_folds == 12 else cv).fit(STORAGES[storage](X), y, qid)
    expected = [pairwise_error(y, scores_of_refits(X, y, qid, fold, alpha), qid) for alpha in ALPHAS]
    np.testing.assert_allclose(model.cv_errors_, expected, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", MODELS)
def test_words_of_the_rows_that_are_held_out_order_nothing(name, storage):
    X, y, fold = words(n_queries=6, n_shared=2, seed=1)
    cv = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(6)]
    model = MODELS[name](cv=cv).fit(STORAGES[storage](X), y)
    expected = [pairwise_error(y, scores_of_refits(X, y, None, fold, alpha), fold) for alpha in ALPHAS]
    np.testing.assert_allclose(model.cv_errors_, expected, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", MODELS)
def test_words_of_the_pairs_that_are_held_out_order_nothing(name, storage):
    X, y, qid = words(seed=2)
    pairs = np.array(
        [(i, j) for i in range(y.size) for j in range(y.size) if qid[i] == qid[j] and y[i] > y[j]]
    )
    groups = qid[pairs[:, 0]]
    model = (RankRLSCV(ALPHAS, cv="leave-query-out") if name == "columns" else MODELS[name]()).fit_pairs(
        STORAGES[storage](X), pairs, groups=groups
    )
    expected = []
    for alpha in ALPHAS:
        errors = []
        for group in np.unique(groups):
            kept = groups != group
            coef = RankRLS(alpha, solver="direct").fit_pairs(X, pairs[kept]).coef_
            errors.append(preference_error(pairs[~kept], (X @ coef).round(9)))
        expected.append(np.mean(errors))
    np.testing.assert_allclose(model.cv_errors_, expected, atol=1e-12)


def known_without(X, qid, others):
    """Which columns differ between two rows of a query among some rows."""
    return np.array(
        [
            any(np.ptp(X[others & (qid == query), column]) > 0 for query in np.unique(qid[others]))
            for column in range(X.shape[1])
        ]
    )


@pytest.fixture(params=[1, 10**6], ids=["in blocks", "at once"])
def _blocks(request, monkeypatch):
    monkeypatch.setattr("rankwise.pairs.known_columns._BLOCK", 8 * request.param)
    monkeypatch.setattr("rankwise.pairs.known_columns._ROWS", 3 * request.param)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_matrix])
def test_codes_are_shared_by_rows_that_known_columns_do_not_tell_apart(as_matrix):
    rng = np.random.default_rng(0)
    for _ in range(100):
        qid = np.sort(rng.integers(0, 5, 16))
        group = rng.integers(-1, 3, 5)[qid]
        X = rng.integers(0, 2, (16, 4)) * (rng.random((16, 4)) < 0.4) * 1.0
        trains = rng.random(16) < 0.8
        # One that trains, where there is one.
        beside = np.array([np.lexsort((~trains, qid != query))[0] for query in qid])
        codes = codes_of_groups(as_matrix(X), beside, group, trains)
        never = ~known_without(X, qid, trains)
        for i, j in itertools.combinations(np.flatnonzero(group >= 0), 2):
            if qid[i] == qid[j]:
                known = known_without(X, qid, trains & (group != group[i])) | never
                assert (codes[i] == codes[j]) == (X[i] == X[j])[known].all()


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_matrix])
def test_pairs_differ_by_the_columns_of_other_groups(as_matrix):
    rng = np.random.default_rng(1)
    for _ in range(100):
        X = rng.integers(0, 2, (8, 5)) * (rng.random((8, 5)) < 0.5) * 1.0
        winner, loser = rng.integers(0, 8, (2, 9))
        group, trains = rng.integers(-1, 3, 9), rng.random(9) < 0.8
        found = differing_pairs(as_matrix(X), winner, loser, group, trains)
        for pair in np.flatnonzero(group >= 0):
            others = trains & (group != group[pair])
            ever = (X[winner[trains]] != X[loser[trains]]).any(axis=0)
            known = (X[winner[others]] != X[loser[others]]).any(axis=0) | ~ever
            assert found[pair] == (X[winner[pair]] != X[loser[pair]])[known].any()
