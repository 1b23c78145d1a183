"""The chosen model, its table of held-out values, and what it was chosen on, against refits."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

from all_pairs import pairwise
from rankwise import KernelRankRLS, KernelRankRLSCV
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.kernels import choose_basis
from rankwise.metrics import get_metric
from rankwise.pairs.labelled import units_of_rows
from strategies import make_problem

ALPHAS = [0.01, 1.0, 10.0]


def data(seed=0, rows=60, queries=8, outputs=1):
    problem = make_problem(seed, rows=rows, queries=queries, features=3)
    rng = np.random.default_rng(seed)
    Y = np.column_stack(
        [np.round(np.abs(problem.X[:, k]) * 2 + 0.3 * rng.normal(size=rows)) for k in range(outputs)]
    )
    return problem.X, (Y[:, 0] if outputs == 1 else Y), problem.qid


def refit_value(X, y, qid, groups, metric, judged, **options):
    scores = np.empty(y.size)
    for group in np.unique(groups):
        test = groups == group
        model = KernelRankRLS(solver="eigen", **options).fit(
            X[~test], y[~test], None if qid is None else qid[~test]
        )
        scores[test] = model.predict(X[test])
    return get_metric(metric)(y, scores, judged)


@pairwise(
    settings=[
        {},
        {"query_weight": "pairs"},
        {"ties": "exclude"},
        {"ties": "exclude", "cost": "unit", "query_weight": "equal"},
    ],
    basis=[None, 20],
    scoring=["pairwise_error", "ndcg@5"],
)
def test_leave_query_out(settings, basis, scoring):
    X, y, qid = data()
    y = y - y.min()
    rows = None if basis is None else np.arange(20)
    model = KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, basis=rows, scoring=scoring, **settings).fit(X, y, qid)
    assert model.cv_ == f"leave-query-out over {len(set(qid))} queries"
    for a, alpha in enumerate(ALPHAS):
        if basis is None:
            expected = refit_value(X, y, qid, qid, scoring, qid, gamma=0.5, alpha=alpha, **settings)
        else:  # the same basis rows in every refit, although some are held out: features of Z
            expected = refit_value(
                KernelFeatures.of(X), y, qid, qid, scoring, qid, kernel="linear", alpha=alpha, **settings
            )
        assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)
    best = np.argmax if scoring.startswith("ndcg") else np.argmin
    assert model.alpha_ == ALPHAS[best(model.cv_errors_)]
    same = KernelRankRLS(gamma=0.5, alpha=model.alpha_, basis=rows, **settings).fit(X, y, qid)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-8)


class KernelFeatures:
    @staticmethod
    def of(X):
        values, vectors = np.linalg.eigh(rbf_kernel(X[:20], gamma=0.5))
        return rbf_kernel(X, X[:20], gamma=0.5) @ (vectors / np.sqrt(values))


@pytest.mark.parametrize("settings", [{}, {"ties": "exclude"}, {"query_weight": "pairs", "cost": "unit"}])
def test_folds_of_one_ranking(settings):
    X, y, _ = data(1)
    model = KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, cv=4, **settings).fit(X, y)
    assert model.cv_ == "4 folds of rows"
    fold = units_of_rows(y, check_qid(None, 60)).folds(4, 0)
    for a, alpha in enumerate(ALPHAS):
        expected = refit_value(X, y, None, fold, "pairwise_error", fold, gamma=0.5, alpha=alpha, **settings)
        assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("query_weight", ["size", "pairs"])
def test_leave_pair_out(query_weight):
    X, y, _ = data(2, rows=18)
    model = KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, query_weight=query_weight).fit(X, y)
    assert model.cv_ == "leave-pair-out over 18 rows"
    for a, alpha in enumerate(ALPHAS):
        outcomes = []
        for i in range(18):
            for j in range(i):
                if y[i] != y[j]:
                    kept = np.setdiff1d(np.arange(18), [i, j])
                    one = KernelRankRLS(gamma=0.5, alpha=alpha, query_weight=query_weight).fit(
                        X[kept], y[kept]
                    )
                    f = one.predict(X[[i, j]])
                    outcomes.append((f[0] - f[1]) * (y[i] - y[j]) < 0)
        assert model.cv_errors_[a] == pytest.approx(np.mean(outcomes), abs=1e-12)


def test_gamma_is_searched_around_the_decomposition():
    X, y, qid = data(4)
    gammas = [0.01, 0.5, 20.0]
    model = KernelRankRLSCV(alphas=ALPHAS, gamma=gammas).fit(X, y, qid)
    singles = [KernelRankRLSCV(alphas=ALPHAS, gamma=g).fit(X, y, qid) for g in gammas]
    np.testing.assert_allclose(model.cv_errors_, [s.cv_errors_ for s in singles])
    best = singles[int(np.argmin([s.best_score_ for s in singles]))]
    assert (model.gamma_, model.alpha_, model.best_score_) == (best.gamma_, best.alpha_, best.best_score_)
    np.testing.assert_allclose(model.predict(X), best.predict(X))


def test_a_reduced_set_is_chosen_once(monkeypatch):
    chosen = []

    def counted(*arguments):
        chosen.append(choose_basis(*arguments))
        return chosen[-1]

    monkeypatch.setattr("rankwise.estimators.kernel.choose_basis", counted)
    model = KernelRankRLSCV(alphas=ALPHAS, gamma=[0.1, 1.0], basis=("kmeans", 8)).fit(*data(5))
    assert len(chosen) == 1
    np.testing.assert_array_equal(model.basis_, chosen[0])


@pytest.mark.parametrize(
    "settings",
    [{"ties": "exclude"}, {"query_weight": "pairs"}, {"query_weight": "equal", "cost": "unit"}],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_pooled_auc_of_refits(settings, weighted):
    """Folds are comparable because a fold's training rows score on average what their labels are."""
    X, y, _ = data(1)
    y = (y > np.median(y)).astype(float)
    weight = np.random.default_rng(0).integers(1, 4, size=60).astype(float) if weighted else np.ones(60)
    given = {"sample_weight": weight} if weighted else {}
    model = KernelRankRLSCV(
        alphas=ALPHAS, gamma=0.5, cv=5, averaging="pooled", scoring="auc", **settings
    ).fit(X, y, **given)
    fold = units_of_rows(y, check_qid(None, 60)).folds(5, 0)
    for a, alpha in enumerate(ALPHAS):
        scores = np.empty(60)
        for k in range(5):
            test = fold == k
            one = KernelRankRLS(gamma=0.5, alpha=alpha, solver="eigen", **settings)
            one.fit(X[~test], y[~test], **({"sample_weight": weight[~test]} if weighted else {}))
            shift = np.average(y[~test] - one.predict(X[~test]), weights=weight[~test])
            scores[test] = one.predict(X[test]) + shift
        expected = roc_auc_score(y, scores, sample_weight=weight)
        assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)
    assert model.best_score_ == model.cv_errors_.max()


@pytest.mark.parametrize(
    ("options", "with_qid", "rows", "message"),
    [
        ({"cv": "leave-pair-out"}, True, 20, "one global ranking.*Hint: use cv='leave-query-out'"),
        ({"cv": "leave-pair-out"}, False, 2, "nothing to train on from 2 rows"),
        ({"cv": "leave-pair-out", "scoring": "ndcg"}, False, 20, "scores pairs"),
        ({"cv": "leave-query-out"}, False, 20, "at least two queries"),
        ({"cv": "leave-one-out"}, False, 20, "did you mean"),
        ({"cv": 1}, False, 20, "'cv' parameter"),
        ({"cv": 21}, False, 20, "cv=21 needs at least 21 rows, got 20"),
        ({"gamma": []}, False, 20, "gamma is an empty list"),
        ({"gamma": [1.0, -1.0]}, False, 20, "gamma=-1.0"),
        ({"alphas": [-1.0]}, False, 20, "not negative"),
    ],
)
def test_bad_input(options, with_qid, rows, message):
    X, y = np.arange(2.0 * rows).reshape(rows, 2), np.arange(rows) % 4
    with pytest.raises(InvalidInputError, match=message):
        KernelRankRLSCV(**options).fit(X, y, np.arange(rows) // 5 if with_qid else None)


@pytest.mark.parametrize("n_rows", [3, 4, 8])
def test_few_rows_with_a_copy_are_chosen_by_leave_pair_out(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    X[-1] = X[0]
    assert KernelRankRLSCV().fit(X, rng.permutation(n_rows).astype(float)).cv_.startswith("leave-pair-out")
