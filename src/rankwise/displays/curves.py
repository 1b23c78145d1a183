"""The curves and surfaces of an additive model, on one page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.additive.shapes import FittedCurve, FittedSurface
from rankwise.displays.drawing import ROOM, Display, curve_limits
from rankwise.estimators.additive import AdditiveMixin
from rankwise.exceptions import InvalidInputError
from rankwise.explanations.explanation import import_pyplot
from rankwise.formula.view import ModelView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 3.0, 2.4  # inches of one picture
_COLUMNS = 4


@dataclass(repr=False)
class CurvesDisplay(Display):
    """Plot the contributions of columns and pairs of columns to the score, the most important first.

    Weak curves are enlarged, up to four times the scale of the strongest; below each, a histogram shows the
    training rows. Surfaces show the contribution of a pair beyond both curves, on one colour scale. Create it with
    `from_estimator`.

    Parameters
    ----------
    curves : sequence of FittedCurve
    surfaces : sequence of FittedSurface

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : list of matplotlib Axes
        Curves, then surfaces.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AdditiveRanker
    >>> from rankwise.displays import CurvesDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(400, 3))
    >>> model = AdditiveRanker().fit(X, X[:, 0] ** 2 + X[:, 1] * X[:, 2])
    >>> display = CurvesDisplay.from_estimator(model)  # doctest: +SKIP
    >>> len(display.axes_) >= 3  # doctest: +SKIP
    True
    """

    curves: Sequence[FittedCurve]
    surfaces: Sequence[FittedSurface]

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        n_curves: int = 12,
        n_surfaces: int = 4,
        figure: Figure | None = None,
    ) -> CurvesDisplay:
        """Draw a fitted model.

        Parameters
        ----------
        estimator : AdditiveRanker or AdditiveRankerCV
            Or a pipeline that ends in one, or an `AutoRanker` that chose one.
        n_curves, n_surfaces : int
            The largest number of curves and surfaces; the most important ones are drawn.
        figure : matplotlib Figure, optional
            Where to draw; by default a new figure.
        """
        check_is_fitted(estimator)
        view = ModelView.of(estimator)
        ranker = view.ranker
        if not isinstance(ranker, AdditiveMixin):
            raise InvalidInputError(
                f"{type(ranker).__name__} has no curves.",
                "pass a fitted AdditiveRanker or AdditiveRankerCV.",
            )
        curves = sorted(ranker.curves_, key=lambda curve: -curve.importance)[:n_curves]
        surfaces = ranker.surfaces_[:n_surfaces]
        names = view.names_after()
        if names is not None:
            curves = [replace(one, name=names[one.column]) for one in curves]
            both = [(names[one.columns[0]], names[one.columns[1]]) for one in surfaces]
            surfaces = [replace(one, names=own) for one, own in zip(surfaces, both, strict=True)]
        return cls(curves, surfaces).plot(figure=figure)

    def plot(self, *, figure: Figure | None = None) -> CurvesDisplay:
        """Draw; see `from_estimator`."""
        pyplot = import_pyplot()
        pictures: list[FittedCurve | FittedSurface] = [*self.curves, *self.surfaces]
        n_pictures = len(pictures)
        n_columns = max(1, min(_COLUMNS, math.ceil(math.sqrt(n_pictures))))  # about a square
        n_lines = -(-n_pictures // n_columns)
        if figure is None:
            figure = pyplot.figure(figsize=(_WIDTH * n_columns, _HEIGHT * n_lines), layout="constrained")
        places = figure.add_gridspec(max(n_lines, 1), n_columns)
        self.figure_, self.axes_ = figure, []
        limits = curve_limits([[curve.missing, *curve.values.tolist()] for curve in self.curves])
        colours = max((float(np.abs(s.values).max()) for s in self.surfaces), default=1.0) or 1.0
        mesh = None
        for number, one in enumerate(pictures):
            ax = figure.add_subplot(places[divmod(number, n_columns)])
            self.axes_.append(ax)
            if isinstance(one, FittedSurface):
                mesh = _draw_surface(ax, one, colours)
                continue
            _draw_curve(ax, one)
            ax.set_ylim(*limits[number])
            if number % n_columns == 0:
                ax.set_ylabel("added to the score")
        if mesh is not None:  # below all pictures: beside its own it would part the columns of the others
            below: dict[str, Any] = {"location": "bottom", "shrink": 0.6, "aspect": 40}
            figure.colorbar(mesh, ax=self.axes_, label="added to the score", **below)
        return self

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        shapes = {one.name: one.importance for one in self.curves}
        shapes |= {" × ".join(one.names): one.importance for one in self.surfaces}
        rows = [[name, f"{importance:.4g}"] for name, importance in shapes.items()]
        about = f"{len(self.curves)} curves and {len(self.surfaces)} surfaces"
        return about, ["columns", "importance"], rows


def _draw_curve(ax: Axes, curve: FittedCurve) -> None:
    below = ax.inset_axes((0.0, 0.0, 1.0, 0.8 * ROOM), sharex=ax)
    below.set_axis_off()
    knots = curve.knots
    labels = curve.labels or [f"{knot:g}" for knot in knots]
    has_bars = curve.is_levels or knots.size < (2 if curve.labels is None else 3)
    if has_bars:
        values, shares = curve.values, curve.shares
        if curve.missing != 0.0:
            labels = [*labels, "missing"]
            values, shares = np.append(values, curve.missing), np.append(shares, 1 - shares.sum())
        places = np.arange(values.size)
        ax.bar(places, values, width=0.6)
        ax.set_xticks(places, labels)
        below.bar(places, shares, width=0.6, color="0.7")
    else:
        ax.plot(knots, curve.values, marker=".", markersize=4)
        # The share of a knot lies half-way to its neighbours; the root, because spikes would hide everything else.
        edges = np.concatenate([knots[:1], (knots[1:] + knots[:-1]) / 2, knots[-1:]])
        below.stairs(np.sqrt(curve.shares / np.diff(edges)), edges, fill=True, color="0.7")
        if curve.labels is not None:
            ax.set_xticks(knots[[0, -1]], [labels[0], labels[-1]])
    if curve.missing != 0.0 and not has_bars:
        ax.axhline(curve.missing, linestyle=":", linewidth=1, label="missing")
        ax.legend(loc="best", fontsize="x-small", frameon=False)
    ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    ax.set(xlabel=curve.name)
    ax.set_title(f"importance {curve.importance:.3g}", fontsize="small")


def _draw_surface(ax: Axes, surface: FittedSurface, colours: float) -> QuadMesh:
    (one, other), values = surface.knots, surface.values
    grid = values[: one.size, : other.size].T
    ends = [
        (np.arange(own.size), labels or [f"{level:g}" for level in own]) if is_levels else (own, labels)
        for own, is_levels, labels in zip(surface.knots, surface.is_levels, surface.labels, strict=True)
    ]
    is_smooth = not any(surface.is_levels) and min(grid.shape) > 1
    shading: Literal["nearest", "gouraud"] = "gouraud" if is_smooth else "nearest"
    tones: Any = {"cmap": "RdBu_r", "vmin": -colours, "vmax": colours}
    mesh = ax.pcolormesh(ends[0][0], ends[1][0], grid, shading=shading, **tones)
    for set_ticks, (places, labels) in zip((ax.set_xticks, ax.set_yticks), ends, strict=True):
        if labels is not None:
            set_ticks(places, labels)
    ax.set(xlabel=surface.names[0], ylabel=surface.names[1])
    ax.set_title(f"importance {surface.importance:.3g}", fontsize="small")
    return mesh
