"""Pictures: what they show is what the model says, and what they cannot show they refuse."""

import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rankwise import KernelRankRLS, KernelRankRLSCV, KernelRankSVM, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.displays import ConvergenceDisplay, SurfaceDisplay
from rankwise.exceptions import InvalidInputError, MissingPackageError
from rankwise.report import Report
from report.test_report import balanced

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 10))
Y = X[:, :3] @ [1.0, -1.0, 0.5] + RNG.normal(size=200)
PAIRS = np.array([(i, j) for i, j in RNG.integers(200, size=(300, 2)) if Y[i] > Y[j]])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return RankRLSCV(cv=3).fit(X, Y)


def marked(display):
    return {
        line.get_label().partition(":")[0].partition(" (")[0]: line.get_xydata()[0]
        for line in display.ax_.lines
    }


def drawn(display):
    return display.surface.alphas[display.rows]


def test_the_surface_and_the_choices(model, tmp_path):
    display = SurfaceDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.mesh_.get_array(), model.surface_)
    below = display.ax_.collections[1]
    np.testing.assert_array_equal(below.get_array()[0], model.unpenalised_)
    for method, (x, height) in marked(display).items():
        alpha, iteration, _ = model.choices_[method]
        assert x == iteration
        assert height < -10.5 if alpha == 0 else height == np.log2(alpha)
    assert set(marked(display)) == {"hybrid", "tikhonov", "early-stopping"}
    assert display.figure_ is display.ax_.figure
    assert "pairwise error (lower is better)" in display.colorbar_.ax.get_ylabel()
    display.figure_.savefig(tmp_path / "surface.png")
    assert (tmp_path / "surface.png").stat().st_size > 5000


@pytest.mark.parametrize("method", ["hybrid", "tikhonov"])
def test_nothing_is_cut_off_and_the_colours_stand_beside_the_surface(method):
    fitted = RankRLSCV(cv=3, method=method).fit(X, Y)
    display = SurfaceDisplay.from_estimator(fitted)
    display.figure_.canvas.draw()
    legend = display.legend_
    box = legend.get_window_extent()
    whole = display.figure_.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    axes, colours = display.ax_.get_window_extent(), display.colorbar_.ax.get_window_extent()
    assert box.y0 >= axes.y1
    assert 0 < colours.x0 - axes.x1 < 0.08 * whole.width
    assert axes.width > 0.7 * whole.width


@pytest.mark.parametrize("is_own", [True, False])
def test_a_notebook_shows_the_legends_whole(model, is_own):
    # Notebooks save with bbox_inches="tight", which cuts off what takes no part in the layout.
    for kind in (SurfaceDisplay, ConvergenceDisplay):
        ax = None if is_own else plt.subplots()[1]
        display = kind.from_estimator(model, ax=ax)
        display.figure_.canvas.draw()
        kept = display.figure_.get_tightbbox().padded(1e-9)
        legend = display.legend_ if kind is SurfaceDisplay else display.ax_.get_legend()
        box = legend.get_window_extent().transformed(display.figure_.dpi_scale_trans.inverted())
        assert kept.x0 <= box.x0 < box.x1 <= kept.x1
        assert kept.y0 <= box.y0 < box.y1 <= kept.y1


@pytest.mark.parametrize("method", ["hybrid", "tikhonov"])
def test_the_legend_says_whether_tikhonovs_choice_is_final(method):
    display = SurfaceDisplay.from_estimator(RankRLSCV(cv=3, method=method).fit(X, Y))
    legend = " ".join(text.get_text() for text in display.legend_.get_texts())
    assert ("not converged" in legend) == (method == "hybrid")
    assert f"{method} (chosen): " in legend
    assert legend.count("chosen") == 1


@pytest.mark.parametrize(
    "alphas",
    [[1.0], [0.0, 3.0], [0.1, 1.0, 100.0], 2.0 ** np.arange(-3, 3)],
    ids=["one", "zero", "odd", "even"],
)
def test_any_grid_can_be_drawn(alphas, tmp_path):
    fitted = RankRLSCV(alphas, scoring="concordance").fit_pairs(X, PAIRS)
    surface = SurfaceDisplay.from_estimator(fitted)
    assert "concordance (higher is better)" in surface.colorbar_.ax.get_ylabel()
    surface.figure_.savefig(tmp_path / "surface.png")
    curves = ConvergenceDisplay.from_estimator(fitted)
    assert len(curves.lines_) == 1 + np.count_nonzero(alphas)
    curves.figure_.savefig(tmp_path / "curves.png")


def test_several_outputs_are_drawn_one_at_a_time(tmp_path):
    fitted = RankRLSCV(cv=3, ties="exclude").fit(X, np.column_stack([Y, Y**2]))
    for output in range(2):
        display = SurfaceDisplay.from_estimator(fitted, output=output)
        assert marked(display)["hybrid"][0] == fitted.best_iteration_[output]
        n_iter = display.surface.values.shape[1]
        np.testing.assert_array_equal(display.surface.values[1:], fitted.surface_[output][:, :n_iter])
        display.figure_.savefig(tmp_path / "surface.png")
        ConvergenceDisplay.from_estimator(fitted, output=output)


def test_curves_of_chosen_alphas(model):
    _, ax = plt.subplots()
    display = ConvergenceDisplay.from_estimator(model, [64.0, 0.5], ax=ax, linewidth=3)
    assert display.ax_ is ax
    np.testing.assert_array_equal(drawn(display), [0.0, 0.5, 64.0])
    rows = [model.unpenalised_, *model.surface_[np.isin(model.alphas_, [0.5, 64.0])]]
    for line, row in zip(display.lines_, rows, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), row)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, model.n_iter_ + 1))
        assert line.get_linewidth() == 3
        assert line.get_markevery() == [np.argmin(row)]


@pytest.mark.parametrize("method", ["hybrid", "tikhonov", "early-stopping"])
def test_the_chosen_alpha_and_iteration_are_marked(method):
    fitted = RankRLSCV(cv=3, method=method).fit(X, Y)
    display = ConvergenceDisplay.from_estimator(fitted)
    heavy = [line for line in display.lines_ if line.get_label().endswith(", chosen")]
    assert heavy == [display.lines_[drawn(display).tolist().index(fitted.alpha_)]]
    assert heavy[0].get_linewidth() > max(one.get_linewidth() for one in display.lines_ if one not in heavy)
    (star,) = [line for line in display.ax_.lines if line not in display.lines_]
    assert star.get_xydata().tolist() == [[fitted.best_iteration_, fitted.best_score_]]
    others = fitted.alphas_[fitted.alphas_ != fitted.alpha_]
    if fitted.alpha_ > 0:  # its curve is not there, and neither is a star
        without = ConvergenceDisplay.from_estimator(fitted, others[:2])
        assert len(without.ax_.lines) == len(without.lines_) == 3


# Each model once, from rows or from pairs, and whether it has a surface.
CHOOSING = [
    (RankRLSCV(), False, True),
    (RankRLSCV(method="tikhonov"), False, False),  # few columns are held out exactly
    (RankRLSCV(method="tikhonov"), True, True),
    (RankRLSCV(cv=3, method="early-stopping", scoring="concordance"), True, True),
    (RankRLSCV(cv="leave-query-out"), False, False),
    (RankRLSCV(cv="leave-pair-out"), True, False),
    (RankSVMCV([0.1, 0.01], cv=3, loss="squared_hinge"), True, False),
    (KernelRankRLSCV(alphas=[0.5, 2.0], gamma=[0.1, 1.0], cv=3), True, False),
    (KernelRankRLSCV(alphas=[0.5, 2.0], basis=20), False, False),
    (KernelRankRLSCV(alphas=[0.5, 2.0], solver="cg", gamma=[0.1, 1.0], scoring="concordance"), False, True),
    (KernelRankRLSCV(solver="cg", method="tikhonov", alphas=[0.5, 2.0], cv=3), True, True),
    (KernelRankRLSCV(solver="cg", method="early-stopping", cv=3), False, True),
    (RankRLSCV(alphas=[0.5, 2.0], cv=3, method="hybrid", scoring="auto"), False, True),
    (RankRLS(solver="cg"), False, False),
    (RankSVM(), False, False),
    (KernelRankRLS("rbf", gamma=0.1), False, False),
    (KernelRankSVM("rbf", loss="squared_hinge"), False, False),
]


@pytest.mark.parametrize(
    ("model", "of_pairs", "has_surface"), CHOOSING, ids=lambda value: " ".join(str(value).split())
)
def test_pages_and_pictures_read_every_model(model, of_pairs, has_surface):
    rows, labels, fitted = X[:60], Y[:60], clone(model)
    pairs, qid = PAIRS[(PAIRS < 60).all(axis=1)], np.arange(60) // 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if of_pairs:
            page = Report(fitted.fit_pairs(rows, pairs), rows, pairs=pairs).html()
        else:
            page = Report(fitted.fit(rows, labels, qid=qid), rows, labels, qid).html()
    balanced(page)
    assert 'id="pick-query"' in page
    assert ('id="surface"' in page) == has_surface
    if has_surface:
        title = SurfaceDisplay.from_estimator(fitted).legend_.get_title().get_text()
        assert title.endswith(f" of {type(model).__name__.removesuffix('CV')}")
        assert fitted.alpha_ in drawn(ConvergenceDisplay.from_estimator(fitted))
    else:
        for kind in (SurfaceDisplay, ConvergenceDisplay):
            with pytest.raises(InvalidInputError, match=r"no regularisation surface.*Hint: fit a RankRLSCV"):
                kind.from_estimator(fitted)


def test_refusals(model):
    with pytest.raises(NotFittedError):
        SurfaceDisplay.from_estimator(RankRLSCV())
    with pytest.raises(InvalidInputError, match=r"not in the grid.*model\.alphas_"):
        ConvergenceDisplay.from_estimator(model, [3.0])
    with pytest.raises(InvalidInputError, match="no regularisation surface"):
        SurfaceDisplay.from_estimator(RankRLSCV([0.0]).fit(X, Y))


def test_displays_tell_about_themselves(model):
    for kind in (SurfaceDisplay, ConvergenceDisplay):
        display = kind.from_estimator(model)
        assert f"chosen: alpha {model.alpha_:g}, iteration {model.best_iteration_}" in repr(display)
        assert "\n" not in repr(display)
        assert display._repr_html_().count("<tr>") == 2 + model.alphas_.size


def test_without_matplotlib_the_remedy_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingPackageError, match=r"Hint: pip install 'rankwise\[report\]'"):
        SurfaceDisplay.from_estimator(model)
