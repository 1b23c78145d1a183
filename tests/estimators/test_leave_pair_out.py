"""Leave-pair-out of one ranking by both estimators that choose alpha, against refits without the two rows."""

import re
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from oracles import label_pairs, solve_rankrls
from rankwise import KernelRankRLSCV, RankRLSCV
from rankwise.exceptions import InvalidInputError
from rankwise.holdout import leave_pair_out
from rankwise.holdout.leave_pair_out import _cost, refusal
from rankwise.permutation import permutation_test
from rankwise.selection import plan as selection_plan

ALPHAS = [0.01, 1.0, 10.0]
ROWS = 14


def data(n_levels=None, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, columns))
    y = X[:, 0] + rng.normal(size=ROWS)
    if n_levels is not None:
        y = np.argsort(np.argsort(y)) * n_levels // ROWS + 0.0
    return X, y


def chooser(kind, **settings):
    """The estimator that chooses; the rbf kernel, or the columns themselves."""
    if kind == "kernel":
        return KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, **settings)
    return RankRLSCV(ALPHAS, method="tikhonov", **settings)


def features(kind, X):
    if kind == "linear":
        return X
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=0.5))
    return vectors * np.sqrt(np.maximum(values, 0))


def refit_errors(Z, y, weight, settings):
    """Fit explicit pairs without each two rows that weigh something and differ; one error per alpha."""
    weight = np.ones(y.size) if weight is None else weight
    wrong, total = np.zeros(len(ALPHAS)), 0.0
    for i, j in zip(*np.nonzero(y[:, None] > y), strict=True):
        if weight[i] * weight[j] == 0:
            continue
        kept = np.setdiff1d(np.arange(y.size), [i, j])
        pairs = label_pairs(y[kept], sample_weight=weight[kept], **settings)
        for a, alpha in enumerate(ALPHAS):
            difference = (Z[i] - Z[j]) @ solve_rankrls(Z[kept], pairs, alpha)
            wrong[a] += weight[i] * weight[j] * (0.5 if abs(difference) < 1e-10 else difference < 0)
        total += weight[i] * weight[j]
    return wrong / total


WEIGHTS = np.array([0.5, 2, 1, 1, 3, 1, 1, 0.5, 1, 4, 1, 2, 1, 1])
ZEROS = np.where(np.arange(ROWS) % 5 == 2, 0.0, 1.0)
CASES = {
    "weight 0": ({}, 3, ZEROS),
    "weight 0 and others": ({}, None, ZEROS * WEIGHTS),
    "distinct labels": ({"ties": "exclude"}, None, None),
    "distinct labels of equal queries": ({"ties": "exclude", "query_weight": "equal"}, None, WEIGHTS),
    "distinct but for rows of weight 0": ({"ties": "exclude"}, ROWS - 3, None),
    "weights of pairs": ({"query_weight": "pairs"}, 4, WEIGHTS),
    "weights of pairs, unit": ({"query_weight": "pairs", "cost": "unit"}, None, WEIGHTS),
    "ties in equal queries": ({"query_weight": "equal"}, 4, None),
    "ties in equal queries, weights": ({"query_weight": "equal", "cost": "unit"}, 5, WEIGHTS),
    "even weights, all compared": ({"query_weight": "pairs"}, 5, np.full(ROWS, 3.0)),
    "unit, many levels": ({"cost": "unit"}, 10, None),
}


@pytest.mark.parametrize("kind", ["linear", "kernel"])
@pytest.mark.parametrize("case", CASES)
def test_refits(case, kind):
    settings, n_levels, weight = CASES[case]
    X, y = data(n_levels)
    if case == "distinct but for rows of weight 0":
        weight = np.isin(np.arange(ROWS), np.unique(y, return_index=True)[1]).astype(float)
    model = chooser(kind, **settings).fit(X, y, sample_weight=weight)
    n_rows = ROWS if weight is None else np.count_nonzero(weight)
    assert model.cv_ == f"leave-pair-out over {n_rows} rows"
    np.testing.assert_allclose(
        model.cv_errors_, refit_errors(features(kind, X), y, weight, settings), atol=1e-12
    )
    named = model.set_params(cv="leave-pair-out").fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(named.cv_errors_, model.cv_errors_)


def test_an_indefinite_kernel_is_that_of_its_positive_part():
    X, y = data()
    K = rbf_kernel(X, gamma=0.5) - 0.4 * np.eye(ROWS)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = np.linalg.eigh(centred)
    assert values[0] < -0.1
    Z = vectors * np.sqrt(np.maximum(values, 0))
    with pytest.warns(UserWarning, match="indefinite"):
        model = KernelRankRLSCV("precomputed", alphas=ALPHAS, cv="leave-pair-out").fit(K, y)
    np.testing.assert_allclose(model.cv_errors_, refit_errors(Z, y, None, {}), atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
@pytest.mark.parametrize("settings", [{}, {"query_weight": "pairs", "cost": "unit"}], ids=str)
def test_weight_0_is_absence_to_the_letter(kind, settings):
    X, y = data(4)
    kept = ZEROS > 0
    X[~kept] *= 100
    y[~kept] += 17
    model, without = (chooser(kind, **settings) for _ in range(2))
    model.fit(X, y, sample_weight=ZEROS)
    without.fit(X[kept], y[kept])
    assert (model.cv_, model.alpha_) == (without.cv_, without.alpha_)
    np.testing.assert_allclose(model.cv_errors_, without.cv_errors_, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), without.predict(X), atol=1e-8)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_importance_only_scales(kind):
    """The importance of the only query is a factor of the loss: the same models at other alphas."""
    X, y = data(4)
    for settings in ({}, {"query_weight": "pairs", "cost": "unit"}):
        model, plain = (chooser(kind, cv="leave-pair-out", **settings) for _ in range(2))
        model.set_params(alphas=np.array(ALPHAS) * 3).fit(X, y, query_importance=np.full(ROWS, 3.0))
        np.testing.assert_allclose(model.cv_errors_, plain.fit(X, y).cv_errors_, atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
@pytest.mark.parametrize("settings", [{"query_weight": "equal"}, {"cost": "unit"}], ids=str)
def test_outputs_go_their_own_ways(kind, settings):
    """One column has ties, another none, and each is what it is alone."""
    X, _ = data()
    Y = np.column_stack([data(None, 1)[1], data(5, 2)[1], data(11, 3)[1]])
    model = chooser(kind, **settings).fit(X, Y)
    for c in range(3):
        one = chooser(kind, **settings).fit(X, Y[:, c])
        np.testing.assert_allclose(model.cv_errors_[:, c], one.cv_errors_, atol=1e-12)


def test_a_reduced_set():
    X, y = data(10)
    basis = np.arange(0, ROWS, 2)
    values, vectors = np.linalg.eigh(rbf_kernel(X[basis], gamma=0.5))
    Z = rbf_kernel(X, X[basis], gamma=0.5) @ (vectors / np.sqrt(values))
    for settings in ({}, {"cost": "unit", "query_weight": "pairs"}):
        model = KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, basis=basis, **settings).fit(X, y)
        same = RankRLSCV(ALPHAS, cv="leave-pair-out", **settings).fit(Z, y)
        assert model.cv_ == same.cv_
        np.testing.assert_allclose(model.cv_errors_, same.cv_errors_, atol=1e-12)


@pytest.mark.parametrize(
    "settings", [{"ties": "exclude"}, {"ties": "exclude", "cost": "relative"}], ids=["ties", "relative"]
)
@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_ties_left_out_and_relative_cost_have_no_closed_form(kind, settings):
    X, y = data(5)
    words = "has no closed form for ties='exclude' or cost='relative'"
    model = chooser(kind, **settings).fit(X, y)
    # Two rows in each, at least: one alone judges nothing.
    assert model.cv_ == f"{5 if kind == 'linear' else ROWS // 2} folds of rows (leave-pair-out {words})"
    with pytest.raises(InvalidInputError, match=rf"cv='leave-pair-out' {words}.*Hint: use cv=10"):
        model.set_params(cv="leave-pair-out").fit(X, y)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_a_price_that_is_too_high(kind, monkeypatch):
    """Above one price "auto" takes folds and says so; above another leave-pair-out raises."""
    X, y = data(None)
    words = r"would take about \d+e\+\d+ operations"
    monkeypatch.setattr(leave_pair_out, "_AFFORDABLE", 1e3)
    model = chooser(kind, cost="unit").fit(X, y)
    assert re.search(words, model.cv_)
    assert model.set_params(cv="leave-pair-out").fit(X, y).cv_ == f"leave-pair-out over {ROWS} rows"
    monkeypatch.setattr(leave_pair_out, "_MOST", 1e3)
    with pytest.raises(InvalidInputError, match=f"{words}.*Hint: use cv=10"):
        model.fit(X, y)


@pytest.mark.parametrize("averaging", ["folds", "pooled"])
def test_folds_that_auto_makes_of_a_few_rows_can_judge(averaging):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(9, 3)), np.arange(9) % 3, np.arange(1.0, 10.0)
    model = KernelRankRLSCV(alphas=[0.1, 1.0], ties="exclude", averaging=averaging).fit(
        X, y, sample_weight=weight
    )
    n_folds = 4 if averaging == "folds" else 9  # rows of different folds are compared where they are pooled
    assert model.cv_.startswith(f"{n_folds} folds of rows (leave-pair-out has no closed form")
    assert np.isfinite(model.cv_errors_).all()


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_permutations(kind):
    """Permuted labels are outputs of one fit."""
    X, y = data(10)
    model = chooser(kind, cost="unit")
    found = permutation_test(model, X, y, n_permutations=4)
    alone = chooser(kind, cost="unit").fit(X, y)
    assert found.statistic == pytest.approx(alone.best_score_, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "levels", "n_features"),
    [({}, None, 700), ({"cost": "unit"}, None, 700)],
)
def test_the_memory_that_is_asked_for_is_about_what_is_taken(options, levels, n_features, monkeypatch):
    """What has the size of the rows; blocks of a fixed size come on top, and are small beside it only here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, n_features))
    y = rng.normal(size=1000) if levels is None else rng.integers(levels, size=1000)
    asked = []

    def noting(rankings, rank, n_alphas, **options):
        asked.append(max(_cost(one, rank, n_alphas)[1] for one in rankings))
        return refusal(rankings, rank, n_alphas, **options)

    monkeypatch.setattr(selection_plan, "refusal", noting)
    model = RankRLSCV(alphas=[1.0], cv="leave-pair-out", **options)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert asked[-1] / 2.5 < peak < 2 * asked[-1]


def test_many_pairs_are_told_of_before_they_are_scored(monkeypatch):
    X, y = data(3)
    model = chooser("linear", cv="leave-pair-out")
    model.fit(X, y)  # few pairs: no warning, which would be an error here
    n_pairs = int((y[:, None] > y).sum())
    monkeypatch.setattr(selection_plan, "_MANY_PAIRS", n_pairs * len(ALPHAS))
    told = rf"scores {n_pairs} pairs with each of 3 alphas, which takes about 0 s or more\. Hint: use cv=10"
    with pytest.warns(UserWarning, match=told):
        model.fit(X, y)
    monkeypatch.setattr(selection_plan, "_PAIRS_PER_SECOND", n_pairs * len(ALPHAS) / 7200)
    with pytest.warns(UserWarning, match="takes about 2 h or more"):
        RankRLSCV(ALPHAS, method="tikhonov", cv="leave-pair-out", n_threads=1).fit(X, y)
