"""The base of displays, and those of models: curves and surfaces, candidates, and leaderboards."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.additive.shapes import FittedCurve, FittedSurface
from rankwise.arrays import AnyArray
from rankwise.automatic.candidate_table import CandidateTable
from rankwise.estimators.additive import AdditiveMixin
from rankwise.exceptions import InvalidInputError
from rankwise.explanations.explaining import html_table, import_pyplot
from rankwise.formula.view import ModelView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

LARGEST = 4.0  # how often the scale of the strongest curve may be enlarged for a weak one
ROOM = 0.12  # of a picture's height, at the bottom: a histogram of the rows


class Display(ABC):
    """The base of displays."""

    @abstractmethod
    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        """Return the content in a few words, the names of columns, and rows of cells."""

    def _axes(self, ax: Any, size: tuple[float, float]) -> Any:
        """Keep and return the given axes, or those of a new figure of this size in inches."""
        if ax is None:
            _, ax = import_pyplot().subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._table()[0]}>"

    def _repr_html_(self) -> str:
        return html_table(*self._table())


def curve_limits(curves: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the vertical limits of pictures of curves: zero, all values of a curve, and room below.

    No curve's scale is much finer than that of the strongest one.
    """
    ends = [(min(0.0, *values), max(0.0, *values)) for values in curves]
    least = max((high - low for low, high in ends), default=0.0) / LARGEST
    found = []
    for low, high in ends:
        pad = 0.05 * (high - low) + max(least - (high - low), 0.0) / 2 or 0.01
        room = (high - low + 2 * pad) * ROOM / (1 - ROOM)
        found.append((low - pad - room, high + pad))
    return found


# --- points with bars ---

_SHOWN = 20
_COLOURS = 10  # of matplotlib's cycle


@dataclass(repr=False)
class CandidatesDisplay(Display):
    """Held-out values of all candidates with bars of one standard error, the best on top.

    Make it with `from_estimator`.

    Parameters
    ----------
    candidates : CandidateTable

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AutoRanker
    >>> from rankwise.displays import CandidatesDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> model = AutoRanker(methods=["rls"]).fit(X, X[:, 0] + rng.normal(size=300))
    >>> display = CandidatesDisplay.from_estimator(model)  # doctest: +SKIP
    """

    candidates: CandidateTable

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None, **kwargs: Any
    ) -> CandidatesDisplay:
        """Draw the candidates of a fitted `AutoRanker`.

        Parameters
        ----------
        estimator : AutoRanker
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        check_is_fitted(estimator)
        return cls(estimator.candidates_).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> CandidatesDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        **kwargs
            Passed to `matplotlib.axes.Axes.errorbar` for every candidate.
        """
        table, shown = self.candidates, list(self.candidates)[:_SHOWN]
        ax = self._axes(ax, (8.0, 1.2 + 0.3 * len(shown)))
        for place, entry in enumerate(shown):
            colour = "crimson" if entry.is_chosen else "black" if entry.is_rival else "tab:blue"
            options = {"fmt": "*" if entry.is_chosen else "o", "color": colour, "capsize": 3}
            error = np.nan_to_num(entry.standard_error)
            ax.errorbar(entry.value, place, xerr=error, **{**options, **kwargs})
        ax.set_yticks(range(len(shown)), [entry.description for entry in shown])
        ax.invert_yaxis()
        better = "higher" if table.greater_is_better else "lower"
        ax.set_xlabel(f"{table.metric} ({better} is better) ± standard error\n{table.judged_by}")
        if table.constant is not None:
            ax.axvline(table.constant, color="0.4", linestyle=":")
            ax.set_title("\n".join(table.remarks()), fontsize="medium")
        ax.grid(visible=True, axis="x", alpha=0.25)
        return self

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        return f"{len(self.candidates)} candidates", self.candidates.header(), self.candidates.lines()


@dataclass(repr=False)
class LeaderboardDisplay(Display):
    """Strengths with their intervals, the best item on top, in one colour for each tier.

    Make it with `from_estimator`.

    Parameters
    ----------
    table : mapping
        The columns ``item, strength, low, high, tier``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from rankwise import BradleyTerry
    >>> from rankwise.displays import LeaderboardDisplay
    >>> battles = {"winner": ["ann", "ann", "bob", "ann", "cy"], "loser": ["bob", "cy", "cy", "bob", "bob"]}
    >>> display = LeaderboardDisplay.from_estimator(BradleyTerry().fit(battles))  # doctest: +SKIP
    """

    table: Mapping[str, AnyArray]

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, n_items: int = 40, ax: Axes | None = None, **kwargs: Any
    ) -> LeaderboardDisplay:
        """Draw a fitted `BradleyTerry`.

        Parameters
        ----------
        estimator : BradleyTerry
        n_items : int
            The largest number of items; the best ones are drawn.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        check_is_fitted(estimator)
        return cls({key: column[:n_items] for key, column in estimator.table_.items()}).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> LeaderboardDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        **kwargs
            Passed to `matplotlib.axes.Axes.errorbar` for every tier.
        """
        table, n_items = self.table, len(self.table["item"])
        ax = self._axes(ax, (7.0, 1.0 + 0.27 * n_items))
        for tier in sorted(set(table["tier"].tolist())):
            places = (table["tier"] == tier).nonzero()[0]
            strength, low, high = (table[key][places] for key in ("strength", "low", "high"))
            options = {
                "fmt": "o",
                "capsize": 3,
                "color": f"C{(tier - 1) % _COLOURS}",
                "label": f"tier {tier}",
            }
            ax.errorbar(strength, places, xerr=[strength - low, high - strength], **{**options, **kwargs})
        ax.set_yticks(range(n_items), [str(item) for item in table["item"]])
        ax.set_ylim(n_items - 0.5, -0.5)
        ax.set_xlabel("strength (log odds)")
        ax.legend(loc="best", fontsize="small")
        ax.grid(visible=True, axis="x", alpha=0.25)
        return self

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        keys = ["item", "strength", "low", "high", "tier"]
        cells = [
            [f"{x:.3f}" if isinstance(x, float) else str(x) for x in self.table[key].tolist()] for key in keys
        ]
        return f"{len(cells[0])} items", keys, [list(row) for row in zip(*cells, strict=True)]


# --- curves and surfaces ---

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
