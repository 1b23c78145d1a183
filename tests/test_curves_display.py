"""Pictures of additive models: what they draw is what the model has."""

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest

from rankwise import AdditiveRanker, RankRLS
from rankwise.displays import CurvesDisplay
from rankwise.exceptions import InvalidInputError

mpl.use("Agg")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 4))
    X[:, 3] = rng.integers(3, size=300)
    X[rng.random(300) < 0.1, 0] = np.nan
    y = np.nan_to_num(X[:, 0]) ** 2 + X[:, 1] * X[:, 2] + X[:, 3]
    return AdditiveRanker(interactions=[(1, 2), (0, 3)], categorical=[3]).fit(X, y)


def test_curves_and_surfaces_are_drawn_as_they_are(model, tmp_path):
    display = CurvesDisplay.from_estimator(model)
    assert len(display.axes_) == 6
    strengths = [curve.importance for curve in display.curves]
    assert strengths == sorted(strengths, reverse=True)
    for ax, curve in zip(display.axes_, display.curves, strict=False):
        assert ax.get_xlabel() == curve.name
        low, high = ax.get_ylim()
        levels = [0.0, curve.missing, *curve.values]
        assert low < min(levels) <= max(levels) < high  # nothing is cut off
        strongest = max(np.ptp([0.0, one.missing, *one.values]) for one in display.curves)
        assert (
            np.ptp(levels) > 0.15 * (high - low) or np.ptp(levels) < strongest / 4
        )  # and weak ones are enlarged
        assert high - low < 1.5 * max(np.ptp(levels), strongest / 4)
        if curve.is_levels:
            np.testing.assert_allclose([bar.get_height() for bar in ax.patches], curve.values)
        else:
            np.testing.assert_array_equal(ax.lines[0].get_xdata(), curve.knots)
            np.testing.assert_array_equal(ax.lines[0].get_ydata(), curve.values)
    for ax, surface in zip(display.axes_[4:], display.surfaces, strict=True):
        assert (ax.get_xlabel(), ax.get_ylabel()) == surface.names
        drawn = np.asarray(ax.collections[0].get_array()).reshape(surface.knots[1].size, -1)
        np.testing.assert_array_equal(
            drawn.T, surface.values[: surface.knots[0].size, : surface.knots[1].size]
        )
    display.figure_.savefig(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    mpl.pyplot.close(display.figure_)


def test_levels_dates_and_missing_values_are_shown_as_in_the_table():
    rng = np.random.default_rng(0)
    kind = rng.choice(["cup", "pot", None], 200)
    day = np.datetime64("2024-01-01") + rng.integers(0, 99, 200).astype("timedelta64[D]")
    new = rng.random(200) < 0.5
    X = pa.table({"kind": kind.tolist(), "day": day, "new": new})
    model = AdditiveRanker(interactions=[("kind", "new")]).fit(X, (kind == "cup") + 0.1 * new)
    display = CurvesDisplay.from_estimator(model)
    ticks = {
        ax.get_xlabel(): [text.get_text() for text in ax.get_xticklabels()]
        for ax in display.axes_[: len(display.curves)]
    }
    assert ticks["kind"] == ["cup", "pot", "missing"]
    assert ticks["day"] == [str(day.min()), str(day.max())]
    assert ticks["new"] == ["False", "True"]
    assert len(display.axes_[0].patches) == 3
    mpl.pyplot.close(display.figure_)


def test_a_page_may_be_short(model):
    display = CurvesDisplay.from_estimator(model, n_curves=2, n_surfaces=0, figure=mpl.figure.Figure())
    assert len(display.axes_) == 2
    assert repr(display) == "<CurvesDisplay: 2 curves and 0 surfaces>"
    assert display.curves[0].name in display._repr_html_()


def test_other_models_are_refused():
    fitted = RankRLS().fit(np.eye(3), [1, 2, 3])
    with pytest.raises(InvalidInputError, match=r"no curves.*Hint: pass a fitted AdditiveRanker"):
        CurvesDisplay.from_estimator(fitted)
