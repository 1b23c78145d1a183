"""Functions of measures, pictures and checks refuse what they cannot mean, with a remedy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from rankwise import AdditiveRanker, AutoRanker, KernelRankRLS, RankRLS, RankRLSCV
from rankwise.displays import CurvesDisplay, LeaderboardDisplay, SurfaceDisplay
from rankwise.exceptions import InvalidInputError
from rankwise.explanations import explain
from rankwise.json_values import json_value
from rankwise.metrics import auc_estimate, bootstrap_interval, bootstrap_mean, evaluate
from rankwise.model_selection import cross_validate_ranker, fit_ranker
from rankwise.permutation import permutation_test

RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(60, 3)), np.arange(60) // 6
Y = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.5, 0.5]).astype(float)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: bootstrap_mean([]), "values is empty"),
        (lambda: bootstrap_mean([1.0, 2.0], [1.0, -1.0]), "weight is negative, or 0 everywhere"),
        (lambda: bootstrap_mean([1.0, 2.0], [0.0, 0.0]), "weight is negative, or 0 everywhere"),
        (lambda: auc_estimate([0, 1], np.zeros((2, 1, 1))), r"scores has shape \(2, 1, 1\)"),
        (lambda: evaluate(Y, Y, QID, metrics=3), "metrics=3 is no list"),
        (lambda: cross_validate_ranker(RankRLS(), X, Y, QID, scoring=3), "scoring=3 is no metric"),
        (lambda: fit_ranker(StandardScaler, X, Y), "has no fit"),
        (lambda: permutation_test(RankRLS, X, Y, QID, n_permutations=2), "is no estimator"),
        (lambda: CurvesDisplay.from_estimator(AdditiveRanker(alpha=0.1).fit(X, Y), figure=3), "figure=3 is none"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_a_remedy(call, said):
    with pytest.raises(InvalidInputError, match=said) as refusal:
        call()
    assert refusal.value.hint


def test_one_unit_has_a_mean_and_no_interval():
    found = bootstrap_mean([0.5])
    assert (found.value, found.n) == (0.5, 1)
    assert np.isnan([found.low, found.high]).all()


def test_an_interval_of_rows_that_are_never_ordered_is_none():
    drawn = [
        bootstrap_interval([1.0, 0.0], [1.0, 2.0], metric="pairwise_error", n_resamples=1, random_state=seed)
        for seed in range(8)
    ]
    assert any(np.isnan(one.low) for one in drawn)
    assert any(one.low == 1.0 for one in drawn)


def test_json_says_plain_values_alone():
    assert json_value({"a": (np.float64(1.0), np.inf), 2: None}) == {"a": [1.0, None], "2": None}
    with pytest.raises(TypeError, match="JSON has no complex"):
        json_value(1j)


def test_gamma_auto_is_one_by_the_columns():
    found = KernelRankRLS("rbf", gamma="auto").fit(X, Y, QID)
    same = KernelRankRLS("rbf", gamma=1 / 3).fit(X, Y, QID)
    np.testing.assert_allclose(found.predict(X), same.predict(X), rtol=1e-9)


def test_a_basis_may_be_listed():
    found = KernelRankRLS("rbf", basis=[0, 7, 20]).fit(X, Y, QID)
    assert found.basis_.tolist() == [0, 7, 20]
    same = KernelRankRLS("rbf", basis=np.array([0, 7, 20])).fit(X, Y, QID)
    np.testing.assert_array_equal(found.predict(X), same.predict(X))


def test_pictures_are_drawn_where_they_are_asked_for():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    figure, axes = plt.subplots(1, 3)
    model = AutoRanker(methods=["rls"], scalings=["none"], cv=3).fit(X, Y, QID)
    board = LeaderboardDisplay.from_estimator(model, ax=axes[0])
    assert board.ax_ is axes[0]
    assert board.figure_ is figure
    assert explain(RankRLS().fit(X, Y, QID), X, QID, rows=[0])[0].plot(ax=axes[1]) is axes[1]
    plt.close(figure)


@pytest.mark.parametrize("options", [{}, {"vmin": 0.1}, {"vmax": 0.9}])
def test_surfaces_of_one_value_and_of_zeros_have_colours(options):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    model = RankRLSCV(alphas=[0.5, 1.0, 2.0, 4.0], cv=3).fit(X, Y, QID)
    for values in (np.zeros_like(model.surface_), np.full_like(model.surface_, 0.5)):
        model.surface_ = values
        shown = SurfaceDisplay.from_estimator(model, **options)
        low, high = shown.mesh_.get_clim()
        assert low <= values.min() or "vmin" in options
        assert high >= values.max() or "vmax" in options
        plt.close(shown.figure_)


def test_sparse_columns_without_entries_are_explained():
    model = RankRLS().fit(X, Y, QID)
    found = explain(model, sp.csr_matrix((2, 3)), rows=[1])[0]
    assert found.total == pytest.approx(0.0, abs=1e-12)
