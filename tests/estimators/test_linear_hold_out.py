"""RankRLSCV by exact hold-out, against refits without the rows or pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.linear_model import Ridge

from all_pairs import pairwise
from rankwise import KernelRankRLS, KernelRankRLSCV, RankRLS, RankRLSCV
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import get_metric
from rankwise.pairs.labelled import units_of_rows
from rankwise.pairs.plan import oriented
from rankwise.selection.grids import best_positions
from strategies import make_problem

ALPHAS = [0.01, 1.0, 10.0]
SETTINGS = [
    {},
    {"query_weight": "pairs"},
    {"query_weight": "equal", "cost": "unit"},
    {"ties": "exclude"},
    {"ties": "exclude", "cost": "relative"},
]


def data(seed=0, rows=60, queries=8, features=4, outputs=1):
    problem = make_problem(seed, rows=rows, queries=queries, features=features)
    rng = np.random.default_rng(seed)
    Y = np.column_stack(
        [np.round(problem.X[:, k % features] * 2 + rng.normal(size=rows)) for k in range(outputs)]
    )
    return problem.X, (Y[:, 0] if outputs == 1 else Y), problem.qid


def refit_value(X, y, qid, groups, metric, judged, **options):
    scores = np.empty(y.size)
    for group in np.unique(groups):
        test = groups == group
        model = RankRLS(solver="eigen", **options).fit(
            X[~test], y[~test], None if qid is None else qid[~test]
        )
        scores[test] = model.predict(X[test])
    return get_metric(metric)(y, scores, judged)


@pairwise(
    settings=SETTINGS, features=[4, 80], storage=[np.asarray, sp.csr_matrix, aslinearoperator, np.float32]
)
def test_leave_query_out(settings, features, storage):
    X, y, qid = data(features=features)
    X = X.astype(np.float32).astype(float)
    model = RankRLSCV(ALPHAS, cv="leave-query-out", **settings).fit(storage(X), y, qid)
    assert (model.cv_, model.method_) == (f"leave-query-out over {len(set(qid))} queries", "tikhonov")
    for a, alpha in enumerate(ALPHAS):
        expected = refit_value(X, y, qid, qid, "pairwise_error", qid, alpha=alpha, **settings)
        assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)
    assert model.best_score_ == model.cv_errors_.min()
    same = RankRLS(model.alpha_, solver="eigen", **settings).fit(X, y, qid)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-8)
    assert not hasattr(model, "surface_")


@pytest.mark.parametrize("query_weight", ["size", "pairs"])
@pytest.mark.parametrize("features", [4, 30])
def test_leave_pair_out(query_weight, features):
    X, y, _ = data(2, rows=18, features=features)
    model = RankRLSCV(ALPHAS, cv="leave-pair-out", query_weight=query_weight).fit(X, y)
    assert model.cv_ == "leave-pair-out over 18 rows"
    for a, alpha in enumerate(ALPHAS):
        outcomes = []
        for i in range(18):
            for j in range(i):
                if y[i] != y[j]:
                    kept = np.setdiff1d(np.arange(18), [i, j])
                    one = RankRLS(alpha, query_weight=query_weight, solver="eigen").fit(X[kept], y[kept])
                    f = one.predict(X[[i, j]])
                    outcomes.append((f[0] - f[1]) * (y[i] - y[j]) < 0)
        assert model.cv_errors_[a] == pytest.approx(np.mean(outcomes), abs=1e-12)


def test_several_outputs_and_scaling():
    X, Y, qid = data(3, outputs=3)
    X = X * [1, 10, 0.1, 3]
    for settings in ({}, {"ties": "exclude"}, {"penalty_power": [0.0, 0.25]}):
        model = RankRLSCV(ALPHAS, cv="leave-query-out", **settings).fit(X, Y, qid)
        assert model.cv_errors_.shape == (3, 3)
        chosen = {**settings, "penalty_power": model.penalty_power_}
        for c in range(3):
            one = RankRLSCV(ALPHAS, cv="leave-query-out", **chosen).fit(X, Y[:, c], qid)
            np.testing.assert_allclose(model.cv_errors_[:, c], one.cv_errors_)
            same = RankRLS(model.alpha_[c], solver="eigen", **chosen).fit(X, Y[:, c], qid)
            np.testing.assert_allclose(model.coef_[c], same.coef_, atol=1e-8)


@pytest.mark.parametrize(
    ("rows", "with_qid", "settings", "words"),
    [
        (60, True, {}, "leave-query-out over 8 queries"),
        (60, False, {}, "leave-pair-out over 60 rows"),
        (2100, False, {}, "10 folds of rows"),
        (
            60,
            False,
            {"ties": "exclude"},
            "5 folds of rows (leave-pair-out has no closed form for ties='exclude' or cost='relative')",
        ),
    ],
)
def test_auto_says_what_it_picked(rows, with_qid, settings, words):
    X, y, qid = data(4, rows=rows)
    model = RankRLSCV(ALPHAS, method="tikhonov", **settings).fit(X, y, qid if with_qid else None)
    assert model.cv_ == words.replace("8 queries", f"{len(set(qid))} queries")
    assert RankRLSCV(ALPHAS, **settings).fit(X, y).method_ == "hybrid"


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (RankRLSCV(ALPHAS, method="tikhonov"), 2100),
        (RankRLSCV(ALPHAS, cv=10, method="tikhonov", tol=1e-10), 60),
        (KernelRankRLSCV("linear", alphas=ALPHAS, cv=10), 60),
        (KernelRankRLSCV("linear", alphas=ALPHAS, cv=10, solver="cg", method="tikhonov", tol=1e-10), 60),
    ],
    ids=["exact", "iterations", "kernel", "kernel iterations"],
)
@pytest.mark.parametrize("offset", [0.0, 20.0])
def test_pooled_folds_of_rows_are_ridge_with_an_intercept(model, rows, offset):
    X, y, _ = data(5, rows=rows)
    X = X + offset
    model = clone(model).set_params(averaging="pooled").fit(X, y)
    fold = units_of_rows(y, check_qid(None, y.size)).folds(10, 0)
    for a, alpha in enumerate(ALPHAS):
        scores = np.empty(y.size)
        for k in range(10):
            test = fold == k
            scores[test] = Ridge(alpha=alpha, solver="svd").fit(X[~test], y[~test]).predict(X[test])
        assert model.cv_errors_[a] == pytest.approx(get_metric("pairwise_error")(y, scores), abs=1e-9)


@pairwise(sparse=[False, True], kernel=[None, "linear", "rbf"], with_qid=[False, True])
def test_equal_rows_tie_when_they_are_held_out(kernel, with_qid, sparse):
    """As they do in refits; labels minus residuals are equal but for rounding."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(120, 3)).astype(float)
    y = X[:, 0] + rng.normal(size=120).round()
    fold = np.arange(120) // 10
    qid = fold if with_qid else None
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(12)]
    if kernel is None:
        model = RankRLSCV(ALPHAS, cv="leave-query-out", method="tikhonov")
        if not with_qid:
            model.set_params(cv=splits, tol=1e-12)
    else:
        model = KernelRankRLSCV(
            kernel, gamma=0.5, alphas=ALPHAS, cv="leave-query-out" if with_qid else splits
        )
    model.fit(sp.csr_matrix(X) if sparse else X, y, qid)
    for a, alpha in enumerate(ALPHAS):
        refit = RankRLS(alpha) if kernel is None else KernelRankRLS(kernel, gamma=0.5, alpha=alpha)
        errors = []
        for train, test in splits:
            refit.fit(X[train], y[train], None if qid is None else qid[train])
            _, code = np.unique(X[test], axis=0, return_inverse=True)
            scores = np.array([refit.predict(X[test])[np.argmax(code == c)] for c in code.ravel()])
            errors.append(get_metric("pairwise_error")(y[test], scores))
        assert model.cv_errors_[a] == pytest.approx(np.mean(errors), abs=1e-9)


@pairwise(scale=[1e-12, 1e-9, 1e7, 1e10], cv=["leave-pair-out", "folds"], kernel=[False, True])
def test_units_of_the_columns_change_no_held_out_error(kernel, cv, scale):
    """Where one ranking is divided, the intercept is a column of its own, whose length has no such units."""
    X, y, _ = data(1)
    fold = np.arange(60) % 5
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    options = {"cv": splits if cv == "folds" else cv, "method": "tikhonov"}
    if kernel:
        options |= {"kernel": "linear", "basis": np.arange(6)}
    model = KernelRankRLSCV(**options) if kernel else RankRLSCV(**options)
    errors = [
        model.set_params(alphas=np.array(ALPHAS) * unit**2).fit(X * unit, y).cv_errors_
        for unit in (1.0, scale)
    ]
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-12)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_pairs_of_equal_rows_tie_when_their_query_is_held_out(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 2))[rng.integers(3, size=40)]
    pairs = np.array([(i, j) for i in range(40) for j in range(i // 8 * 8, i // 8 * 8 + 8) if i != j])
    pairs = pairs[rng.random(len(pairs)) < 0.6]
    weight = rng.random(len(pairs))  # so that nothing else ties
    equal = (X[pairs[:, 0]] == X[pairs[:, 1]]).all(axis=1)
    share = weight[equal].sum() / weight.sum()
    settings = {"alphas": ALPHAS, "cv": "leave-query-out", "averaging": "pooled"}
    model = RankRLSCV(**settings) if kernel is None else KernelRankRLSCV(kernel, gamma=0.5, **settings)
    group = pairs[:, 0] // 8
    errors = model.fit_pairs(X, pairs, weight=weight, groups=group).cv_errors_
    # Pairs of equal rows train nothing and cost one half each; without them only the others score.
    model.fit_pairs(X, pairs[~equal], weight=weight[~equal], groups=group[~equal])
    np.testing.assert_allclose(errors, model.cv_errors_ * (1 - share) + share / 2, atol=1e-12)


def test_rounding_does_not_decide_between_equally_good_alphas():
    errors = np.array([[np.nextafter(0.3, 0), 0.2], [0.3, 0.3], [0.5, 0.2]])
    assert best_positions(errors).tolist() == [1, 2]
    assert best_positions(oriented(1 - errors, greater_is_better=True)).tolist() == [1, 2]


@pairwise(
    cv=["leave-query-out", "leave-pair-out"],
    grouped=[False, True],
    cost=["magnitude", "unit", "relative"],
    averaging=["folds", "pooled"],
)
def test_pairs(cv, grouped, cost, averaging):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    block = rng.integers(10, size=120) * 4
    pairs = block[:, None] + np.array([rng.choice(4, 2, replace=False) for _ in range(120)])
    magnitude, weight = rng.uniform(0.5, 2, 120), rng.uniform(0.5, 2, 120)
    ties = "exclude" if cost == "relative" else "include"
    groups = block // 8 if grouped else None
    model = RankRLSCV(ALPHAS, cv=cv, cost=cost, ties=ties, averaging=averaging)
    model.fit_pairs(X, pairs, magnitude, weight, groups=groups)
    of_query = groups if grouped else block
    key = np.sort(pairs, axis=1) @ [100, 1] if cv == "leave-pair-out" else of_query
    assert f"over {np.unique(key).size} " in model.cv_
    for a, alpha in enumerate(ALPHAS):
        wrong = np.empty(120)
        for k in np.unique(key):
            test = key == k
            one = RankRLS(alpha, cost=cost, ties=ties, solver="eigen")
            f = one.fit_pairs(X, pairs[~test], magnitude[~test], weight[~test]).predict(X)
            wrong[test] = f[pairs[test, 0]] < f[pairs[test, 1]]
        if averaging == "pooled":
            expected = np.average(wrong, weights=weight)
        else:
            expected = np.mean(
                [np.average(wrong[key == k], weights=weight[key == k]) for k in np.unique(key)]
            )
        assert model.cv_errors_[a] == pytest.approx(expected, abs=1e-9)
    same = RankRLS(model.alpha_, cost=cost, ties=ties, solver="eigen").fit_pairs(X, pairs, magnitude, weight)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "with_qid", "rows", "message"),
    [
        ({"cv": "leave-pair-out"}, True, 20, "one global ranking.*Hint: use cv='leave-query-out'"),
        ({"cv": "leave-pair-out"}, False, 2, "nothing to train on from 2 rows.*Hint"),
        ({"cv": "leave-query-out"}, False, 20, "two queries.*Hint"),
        ({"cv": "leave-query-out", "method": "hybrid"}, True, 20, "stops early.*Hint: use method='auto'"),
        ({"cv": "leave-one-out"}, True, 20, "did you mean"),
    ],
)
def test_bad_input(options, with_qid, rows, message):
    X, y = np.arange(2.0 * rows).reshape(rows, 2), np.arange(rows) % 4
    with pytest.raises(InvalidInputError, match=message):
        RankRLSCV(**options).fit(X, y, np.arange(rows) // 5 if with_qid else None)


def test_pairs_that_cannot_be_grouped():
    X, pairs = np.eye(3), [[0, 1], [1, 2]]
    with pytest.raises(InvalidInputError, match="Hint: pass qid, or groups"):
        RankRLSCV(cv="leave-query-out").fit_pairs(X, pairs)
