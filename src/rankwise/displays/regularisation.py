"""The choice of alpha and iteration: its values, the surface over both, and the course of a few alphas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Estimator, Floats, Ints
from rankwise.displays.models import Display
from rankwise.exceptions import InvalidInputError
from rankwise.explanations.explaining import import_pyplot
from rankwise.pairs.plan import oriented
from rankwise.selection.result import Selection, resolve_scoring

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Marks of the three methods: they differ in shape, so that they can be told apart without colour.
_MARKS = {"hybrid": ("*", 15), "tikhonov": ("D", 9), "early-stopping": ("o", 9)}
_CURVES, _CONTOURS = 6, 6


@dataclass(frozen=True)
class Reading:
    """The validation results of one output of a fitted model.

    Attributes
    ----------
    alphas : (alphas,) float64
        In increasing order. A surface begins with alpha = 0, whether or not it is in the grid.
    values : (alphas, iterations) float64
        The value of the metric; of one iteration where models have converged.
    choices : dict
        For each method the ``(alpha, iteration, value)`` that it chooses.
    chosen : str
        The method whose choice the model has. If it is "tikhonov", the run went on until every alpha had converged.
    metric : str
        The metric's name.
    greater_is_better : bool
    model : str
        The name of the chosen model.
    judged_by : str
    steps : (iterations,) int64
        The iterations of the values, all of them unless `thinned`; 0 where models have converged.
    """

    alphas: Floats
    values: Floats
    choices: dict[str, tuple[float, int, float]]
    chosen: str
    metric: str
    greater_is_better: bool
    model: str
    judged_by: str
    steps: Ints

    @classmethod
    def of(cls, estimator: Estimator, output: int = 0) -> Reading | None:
        """Read a fitted model; None where it did not choose alpha."""
        check_is_fitted(estimator)
        selection = Selection.of_model(estimator)
        if selection is None or selection.alphas is None or selection.errors is None:
            return None
        metric = resolve_scoring(estimator.scoring, getattr(estimator, "loss", None))
        flip = partial(oriented, greater_is_better=metric.greater_is_better)
        own, positive = selection.chosen[output], selection.alphas > 0
        if selection.tables is not None and selection.unpenalised is not None and positive.any():
            unpenalised = selection.unpenalised[output]
            # An output that ended before the others has no values from then on.
            grown = np.isfinite(unpenalised)
            values = np.vstack([unpenalised, selection.tables[output][positive]])[:, grown]
            alphas, steps = np.append(0.0, selection.alphas[positive]), np.arange(1, values.shape[1] + 1)
            choices = {method: found[output] for method, found in (selection.choices or {}).items()}
            chosen = str(estimator.method_)
        else:
            # Several gammas: for each alpha its best. NaN: not tried.
            with np.errstate(invalid="ignore"):
                errors = selection.errors[..., output].reshape(-1, selection.alphas.size)
                best = np.fmin.reduce(errors, axis=0)
            tried = np.isfinite(best)
            alphas, values, steps = selection.alphas[tried], best[tried, None], np.zeros(1, dtype=np.int64)
            chosen, choices = "", {"": own}
        return cls(
            alphas,
            flip(values),
            {method: (one.alpha, one.step, flip(one.error)) for method, one in choices.items()},
            chosen,
            metric.name.replace("_", " "),
            metric.greater_is_better,
            type(estimator).__name__.removesuffix("CV"),
            str(getattr(estimator, "cv_", "held-out rows")),
            steps,
        )

    @classmethod
    def of_surface(cls, estimator: Estimator, output: int) -> Reading:
        """Read a fitted model that has a surface: a `RankRLSCV`, or a `KernelRankRLSCV` by conjugate gradients."""
        found = cls.of(estimator, output)
        if found is None or not found.is_surface:
            judged = "" if found is None else f": {found.judged_by} scored converged models"
            raise InvalidInputError(
                f"This {type(estimator).__name__} has no regularisation surface{judged}.",
                "fit a RankRLSCV(cv=5), or a KernelRankRLSCV(solver='cg') without a basis, and pass that.",
            )
        return found

    @property
    def is_surface(self) -> bool:
        """Whether there is a value after every iteration."""
        return bool(self.steps[0] > 0)

    @property
    def choice(self) -> tuple[float, int, float]:
        """The alpha and the iteration that the model has, and their value."""
        return self.choices[self.chosen]

    @property
    def chosen_row(self) -> int:
        """Return the place of the chosen alpha among the alphas."""
        return int(np.argmin(np.abs(self.alphas - self.choice[0])))

    @property
    def label(self) -> str:
        """Return the metric as the label of an axis."""
        return f"validation {self.metric} ({'higher' if self.greater_is_better else 'lower'} is better)"

    def some_rows(self, n: int) -> list[int]:
        """Return alpha = 0 and `n` others that are spread over the grid; the chosen one replaces its neighbour."""
        last = self.alphas.size - 1
        spread = np.linspace(1, last, min(n, last)).round().astype(int)
        if self.chosen_row:
            spread[np.argmin(np.abs(spread - self.chosen_row))] = self.chosen_row
        return sorted({0, *spread.tolist()})

    def best_of(self, row: int) -> int:
        """Return the place among the steps at which an alpha is best."""
        best = np.nanargmax if self.greater_is_better else np.nanargmin
        return int(best(self.values[row]))

    def thinned(self, at_most: int) -> Reading:
        """Return the values at fewer iterations, the chosen ones among them."""
        if self.steps.size <= at_most:
            return self
        kept = np.round(np.geomspace(1, self.steps.size, at_most)).astype(np.int64)
        steps = np.unique(np.append(kept, [step for _, step, _ in self.choices.values()]))
        return replace(self, steps=steps, values=self.values[:, steps - 1])

    def table(self) -> tuple[str, list[str], list[list[str]]]:
        """Return the best iteration of each alpha as a table for readers."""
        alpha, step, value = self.choice
        about = f"{self.alphas.size} alphas, {self.steps.size} iterations; chosen: alpha {alpha:g}, iteration {step}"
        known = [row for row in range(self.alphas.size) if np.isfinite(self.values[row]).any()]
        best = [(row, self.best_of(row)) for row in known]
        rows = [[f"{self.alphas[at]:.3g}", f"{self.steps[k]}", f"{self.values[at, k]:.4f}"] for at, k in best]
        return f"{about}, {self.metric} {value:.4f}", ["alpha", "best iteration", self.metric], rows


@dataclass(repr=False)
class SurfaceDisplay(Display):
    """Validation error over alpha and iteration, with the choices of the three methods.

    Make it with `from_estimator`. The row below the grid is alpha = 0, which early stopping reads.

    Parameters
    ----------
    surface : Reading
        The values of the metric, and the choices.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    mesh_ : matplotlib QuadMesh
    colorbar_ : matplotlib Colorbar
    legend_ : matplotlib Legend

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLSCV
    >>> from rankwise.displays import SurfaceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> display = SurfaceDisplay.from_estimator(RankRLSCV().fit(X, y))  # doctest: +SKIP
    >>> display.figure_.savefig("surface.png")  # doctest: +SKIP
    """

    surface: Reading

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, *, output: int = 0, ax: Axes | None = None, **kwargs: Any
    ) -> SurfaceDisplay:
        """Draw the surface of a fitted model.

        Parameters
        ----------
        estimator : RankRLSCV, or KernelRankRLSCV with ``solver="cg"``
        output : int, default=0
            Which output, where there are several.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        return cls(Reading.of_surface(estimator, output)).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> SurfaceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        **kwargs
            Passed to `matplotlib.axes.Axes.pcolormesh`, for example ``cmap``.
        """
        self._axes(ax, (7.5, 5.6))
        one = self.surface
        centres = np.log2(one.alphas[1:])
        middle = (centres[1:] + centres[:-1]) / 2
        first, last = (middle[0], middle[-1]) if middle.size else (centres[0] + 0.5, centres[-1] - 0.5)
        edges = np.concatenate([[2 * centres[0] - first], middle, [2 * centres[-1] - last]])
        # The row of alpha = 0 lies below the grid; its height does not depend on the grid's steps.
        bottom, height = edges[0], edges[-1] - edges[0]
        below = (bottom - 0.1 * height, bottom - 0.04 * height)
        heights = np.append(np.mean(below), centres)
        self._draw_mesh(edges, below, kwargs)
        self._draw_contours(centres)
        names = _write_alphas(one.alphas)
        self._draw_choices(heights, names)
        shown = [0, *range(1, heights.size, max(1, -(-(heights.size - 1) // 11)))]
        self.ax_.set_yticks(heights[shown], [names[at] for at in shown])
        self.ax_.set(xlabel="iteration", ylabel="alpha")
        self.ax_.locator_params(axis="x", integer=True)
        # The legend stands above the surface, one line per method, and has the title, which would stand there too. In
        # a figure of our own it belongs to the figure: the layout keeps its height free and does not narrow the axes.
        above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderpad": 0.0}
        owner, place = (self.figure_, {"loc": "outside upper left"}) if ax is None else (self.ax_, above)
        title = {
            "title": f"Validation {one.metric} of {one.model}",
            "title_fontproperties": {"weight": "bold"},
        }
        self.legend_ = owner.legend(frameon=False, alignment="left", **title, **place)
        return self

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        return self.surface.table()

    def _draw_mesh(self, edges: Floats, below: tuple[float, float], options: dict[str, Any]) -> None:
        from matplotlib.colors import LogNorm  # noqa: PLC0415 - matplotlib is imported only when used

        values = self.surface.values
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        # On a logarithmic scale small differences near a small error remain visible.
        if low > 0 and "vmin" not in options and "vmax" not in options:
            options.setdefault("norm", LogNorm(low, max(high, low * (1 + 1e-9))))
        options.setdefault("cmap", "viridis" if self.surface.greater_is_better else "viridis_r")
        columns = np.arange(values.shape[1] + 1) + 0.5
        self.mesh_ = self.ax_.pcolormesh(columns, edges, values[1:], **{"rasterized": True, **options})
        shared: dict[str, Any] = {"norm": self.mesh_.norm, "cmap": self.mesh_.cmap, "rasterized": True}
        self.ax_.pcolormesh(columns, below, values[:1], **shared)
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=self.ax_, pad=0.02)
        if 0 < low < high:  # rarely a decade, so that the ticks of a logarithmic scale would be missing
            ticks = np.geomspace(low, high, 6)
            self.colorbar_.set_ticks(ticks.tolist(), labels=[f"{tick:.3g}" for tick in ticks])
            self.colorbar_.ax.minorticks_off()
        self.colorbar_.set_label(self.surface.label)

    def _draw_contours(self, centres: Floats) -> None:
        grid = self.surface.values[1:]
        best, worst = np.nanmin(grid), np.nanmax(grid)
        if min(grid.shape) < 2 or best == worst:
            return
        if self.surface.greater_is_better:
            best, worst = worst, best
        # Close together near the best value, where the choice is made.
        lines = np.sort(best + (worst - best) * np.geomspace(0.02, 0.6, _CONTOURS))
        steps = np.arange(1, grid.shape[1] + 1)
        self.ax_.contour(steps, centres, grid, lines, colors="white", linewidths=0.7, alpha=0.7)

    def _draw_choices(self, heights: Floats, names: Sequence[str]) -> None:
        one = self.surface
        for method, (alpha, iteration, value) in one.choices.items():
            row, is_chosen = one.alphas.tolist().index(alpha), method == one.chosen
            note = " (chosen)" if is_chosen else ""
            # Only Tikhonov's own run goes on until every alpha has converged.
            note += " (not converged)" if method == "tikhonov" and not is_chosen else ""
            marker, size = _MARKS[method]
            edge, width, face = ("white", 1.0, "crimson") if is_chosen else ("crimson", 2.0, "none")
            style = {
                "markersize": size,
                "markerfacecolor": face,
                "markeredgecolor": edge,
                "markeredgewidth": width,
            }
            label = f"{method}{note}: {value:.4g} at alpha {names[row]}, iteration {iteration}"
            above = {"linestyle": "none", "clip_on": False, "zorder": 5}
            self.ax_.plot(iteration, heights[row], marker, label=label, **style, **above)


@dataclass(repr=False)
class ConvergenceDisplay(Display):
    """Validation error against iteration for several alphas, and without penalty.

    Make it with `from_estimator`. The curve of the chosen alpha is heavier, with a star at its iteration.

    Parameters
    ----------
    surface : Reading
        The values of the metric, and the choices.
    rows : ndarray of int
        Which alphas of the surface to draw; the first is 0.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLSCV
    >>> from rankwise.displays import ConvergenceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = RankRLSCV().fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(model, alphas=[0.5, 64.0])  # doctest: +SKIP
    >>> len(display.lines_)  # doctest: +SKIP
    3
    """

    surface: Reading
    rows: Ints

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        alphas: Sequence[float] | None = None,
        *,
        output: int = 0,
        ax: Axes | None = None,
        **kwargs: object,
    ) -> ConvergenceDisplay:
        """Draw curves of a fitted model.

        Parameters
        ----------
        estimator : RankRLSCV, or KernelRankRLSCV with ``solver="cg"``
        alphas : sequence of float, optional
            Values of its grid; by default about six that are spread over it, and the chosen one.
        output : int, default=0
            Which output, where there are several.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        surface = Reading.of_surface(estimator, output)
        rows = surface.some_rows(_CURVES)
        if alphas is not None:
            rows = [0, *(_position(surface, alpha) for alpha in alphas)]
        return cls(surface, np.unique(rows)).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        **kwargs
            Passed to `matplotlib.axes.Axes.plot` for every curve.
        """
        self._axes(ax, (7.0, 4.5))
        one, names = self.surface, _write_alphas(self.surface.alphas)
        shades = import_pyplot().get_cmap("viridis_r")(np.linspace(0.15, 1.0, max(self.rows.size - 1, 1)))
        self.lines_: list[Any] = []
        for row, colour in zip(self.rows.tolist(), ["crimson", *shades], strict=False):
            is_chosen, values = row == one.chosen_row, one.values[row]
            options = {
                "color": colour,
                "linestyle": "--" if row == 0 else "-",
                "marker": "o",
                "markevery": [one.best_of(row)],  # where early stopping would end
                "markersize": 5,
                "label": names[row] + " (no penalty)" * (row == 0) + ", chosen" * is_chosen,
                "linewidth": 3.0 if is_chosen else 1.5,
                "zorder": 3 if row == 0 else 2,  # on top, since the smallest alphas run along it
            }
            (line,) = self.ax_.plot(np.arange(1, values.size + 1), values, **{**options, **kwargs})
            self.lines_.append(line)
            if is_chosen:
                step = one.choice[1]
                star = {"markersize": 14, "markerfacecolor": line.get_color(), "markeredgecolor": "black"}
                name = f"chosen: iteration {step}"
                self.ax_.plot(step, values[step - 1], "*", linestyle="none", label=name, zorder=4, **star)
        self.ax_.set(xlabel="iteration", ylabel=one.label)
        self.ax_.locator_params(axis="x", integer=True)
        self.ax_.grid(visible=True, alpha=0.25)
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        self.ax_.legend(title="alpha (dot: best)", **beside)
        return self

    def _table(self) -> tuple[str, list[str], list[list[str]]]:
        return self.surface.table()


def _position(surface: Reading, alpha: float) -> int:
    close = np.flatnonzero(np.isclose(surface.alphas, alpha, rtol=1e-9, atol=0.0))
    if close.size == 0:
        raise InvalidInputError(
            f"alpha={alpha!r} is not in the grid of the model.", "choose among model.alphas_, or fit with it."
        )
    return int(close[0])


def _write_alphas(alphas: Floats) -> list[str]:
    """Write a grid that starts with 0 for matplotlib: as powers of two, if all the others are."""
    exponents = np.log2(alphas[1:])
    if (exponents == np.round(exponents)).all():
        return ["0", *(f"$2^{{{int(exponent)}}}$" for exponent in exponents)]
    return ["0", *(f"{alpha:.3g}" for alpha in alphas[1:])]
