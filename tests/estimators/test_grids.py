"""Grids go on where the best alpha lies at their end, or it is said."""

import warnings

import numpy as np
import pytest

from rankwise import KernelRankRLSCV, RankRLSCV, RankSVMCV
from rankwise.displays.regularisation import Reading
from rankwise.persistence import load, save
from rankwise.selection.grids import POWERS_OF_TWO, alphas_beyond, worth_keeping

DECADES = tuple(10.0**-power for power in range(1, 7))


def data(scale, outputs=1, rows=120):
    """Large columns and more noise than signal want a large alpha; small ones that all count a small one."""
    rng = np.random.default_rng(0)
    spread = np.geomspace(1, 0.2, 12)
    X = rng.normal(size=(rows, 12)) * spread
    signal = X[:, :1] if scale >= 1 else (X / spread**2).sum(axis=1, keepdims=True)
    y = signal + 2 * rng.normal(size=(rows, outputs))
    return scale * X, y[:, 0] if outputs == 1 else y, np.arange(rows) // 10


def eval_set(scale):
    X, y, qid = data(scale, rows=200)
    return X[120:], y[120:], qid[120:]


LEAST_SQUARES = [
    RankRLSCV(),
    RankRLSCV(method="tikhonov", cv=4),
    RankRLSCV(cv="leave-query-out", scoring="concordance"),
    RankRLSCV(cv="leave-query-out", penalty_power=[0.0, 0.25]),
    KernelRankRLSCV("linear"),
    KernelRankRLSCV("linear", solver="cg"),
    KernelRankRLSCV("linear", solver="cg", method="tikhonov", tol=1e-8),
]


def named(model):
    return str(model).replace("\n", "")


# An eval_set takes the place of what is held out in turn.
JUDGED = [
    (model, by) for model in LEAST_SQUARES for by in ("folds", "rows") if by == "folds" or model.cv == "auto"
]


@pytest.mark.parametrize(("model", "judged_by"), JUDGED, ids=named)
@pytest.mark.parametrize("scale", [0.003, 100.0])
def test_the_default_grid_goes_on_as_if_it_had_been_longer(model, scale, judged_by):
    given = {} if judged_by == "folds" else {"eval_set": eval_set(scale)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(alphas=POWERS_OF_TWO).fit(*data(scale), **given)
    grid = model.alphas_
    assert set(POWERS_OF_TWO) < set(grid)
    assert not POWERS_OF_TWO[0] <= model.alpha_ <= POWERS_OF_TWO[-1]
    assert grid[0] < model.alpha_
    ratio = grid[1:] / grid[:-1]
    np.testing.assert_array_equal(ratio, 2.0)
    assert model.cv_errors_.shape == grid.shape
    best = np.max if model.scoring == "concordance" else np.min
    assert best(model.cv_errors_) == model.best_score_
    again = {"alpha": model.alpha_, "errors": model.cv_errors_, "prediction": model.predict(data(scale)[0])}
    if hasattr(model, "surface_"):
        assert model.surface_.shape[0] == grid.size
        again["surface"] = model.surface_
    model.set_params(alphas=grid).fit(*data(scale), **given)
    assert model.alpha_ == again["alpha"]
    np.testing.assert_allclose(model.cv_errors_, again["errors"], atol=1e-9)
    np.testing.assert_allclose(model.predict(data(scale)[0]), again["prediction"], rtol=1e-6, atol=1e-9)
    if "surface" in again:
        steps = min(model.surface_.shape[1], again["surface"].shape[1])
        np.testing.assert_allclose(model.surface_[:, :steps], again["surface"][:, :steps], atol=1e-9)


def test_margins_go_on_along_the_path():
    X, y, qid = data(1000.0)
    model = RankSVMCV(loss="squared_hinge", cv=3, tol=1e-6, random_state=1).fit(X, y, qid)
    assert model.alpha_ > max(DECADES)
    np.testing.assert_allclose(model.alphas_[1:] / model.alphas_[:-1], 10.0)
    assert np.min(model.cv_errors_) == model.best_score_
    wide = RankSVMCV(model.alphas_, loss="squared_hinge", cv=3, tol=1e-6, random_state=1).fit(X, y, qid)
    assert wide.alpha_ == model.alpha_
    np.testing.assert_allclose(wide.cv_errors_, model.cv_errors_, atol=0.01)


def test_where_nothing_is_gained_the_grid_stays():
    """One column: all alphas rank alike."""
    X, y, qid = data(1.0)
    for model in (*LEAST_SQUARES, RankSVMCV(loss="squared_hinge")):
        grid = DECADES if isinstance(model, RankSVMCV) else POWERS_OF_TWO
        model.set_params(alphas=grid).fit(X[:, :1], y, qid)
        np.testing.assert_array_equal(model.alphas_, np.sort(grid))
        assert model.alpha_ == max(grid)


def test_an_end_of_the_default_grid_is_not_said_where_nothing_better_is_beyond():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.integers(3, size=40).astype(float)  # nothing to be learned
    qid = np.arange(40) // 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RankSVMCV(tol=1e-6).fit(X, y, qid)  # exact, so that no solver's way there decides
    at = int(np.flatnonzero(model.alphas_ == model.alpha_)[0])
    assert model.alpha_ == max(DECADES)
    assert model.cv_errors_[at] < 0.96 * model.cv_errors_[at - 1]  # four times what is worth a word elsewhere
    with pytest.warns(UserWarning, match="largest of the grid"):
        RankSVMCV(DECADES[:5]).fit(X, y, qid)


def test_several_outputs_and_gammas_share_a_grid(tmp_path):
    X, Y, qid = data(1e-3, outputs=2)
    model = RankRLSCV(cv="leave-query-out").fit(X, Y, qid)
    assert model.cv_errors_.shape == (model.alphas_.size, 2)
    np.testing.assert_array_equal(model.cv_errors_.min(axis=0), model.best_score_)
    margins = RankSVMCV(loss="squared_hinge", cv=3).fit(1e3 * X, 1e3 * Y, qid)
    assert margins.cv_errors_.shape == (margins.alphas_.size, 2)
    np.testing.assert_array_equal(np.nanmin(margins.cv_errors_, axis=0), margins.best_score_)
    model = KernelRankRLSCV(gamma=[1e-3, 1e9]).fit(X, Y[:, 0], qid)
    assert model.cv_errors_.shape == (2, model.alphas_.size)
    assert model.alphas_.size > len(POWERS_OF_TWO)
    assert np.nanmin(model.cv_errors_) == model.best_score_
    save(model, tmp_path / "model.rw")
    curve = Reading.of(load(tmp_path / "model.rw"))
    assert np.isfinite(curve.values).all()
    assert curve.values.min() == model.best_score_


def test_an_end_of_a_grid_that_somebody_chose_is_said():
    low, high = 2.0 ** np.arange(7), 2.0 ** np.arange(-8, 0)
    for scale, grid, words in (
        (1.0, low, "largest of the grid, 64"),
        (0.01, high, "smallest of the grid, 0.0039"),
    ):
        for model in (RankRLSCV(), RankRLSCV(cv="leave-query-out"), KernelRankRLSCV("linear")):
            with pytest.warns(
                UserWarning, match=rf"best alpha is the {words}.* Hint: extend alphas"
            ) as noted:
                model.set_params(alphas=grid, method="tikhonov").fit(*data(scale))
            np.testing.assert_array_equal(model.alphas_, grid)
            assert {warning.filename for warning in noted} == {__file__}
    with pytest.warns(UserWarning, match="is the smallest of the grid, 0.001") as noted:
        RankSVMCV(10.0 ** np.arange(-3.0, 2.0), loss="squared_hinge").fit(*data(0.3))
    assert {warning.filename for warning in noted} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankRLSCV(low[:4], method="tikhonov").fit(*data(1.0))  # so few were picked


def more_of(known, errors):
    return alphas_beyond(known, errors, POWERS_OF_TWO, small_is_cheap=True)


def test_a_grid_grows_to_three_times_its_length_at_most_and_for_something():
    grid = np.array(POWERS_OF_TWO)
    for falls in (1.0, -1.0):
        known = grid
        while more_of(known, falls * np.log(known)[:, None]) is not None:
            more = more_of(known, falls * np.log(known)[:, None])
            assert more.size <= 5
            known = np.union1d(known, more)
        assert known.size == 2 * grid.size
        assert worth_keeping(known, falls * np.log(known)[:, None], POWERS_OF_TWO).all()
    nearly_flat = np.ones((known.size, 1))
    nearly_flat[-1] -= 1e-4
    np.testing.assert_array_equal(known[worth_keeping(known, nearly_flat, POWERS_OF_TWO)], grid)
