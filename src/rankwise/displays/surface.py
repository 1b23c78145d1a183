"""Plot of the regularisation surface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.arrays import Estimator, Floats
from rankwise.displays.reading import Reading, axes_to_draw_on, write_alphas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SurfaceDisplay"]

# Marks of the three methods: they differ in shape, so that they can be told apart without colour.
_MARKS = {"hybrid": ("*", 15), "tikhonov": ("D", 9), "early-stopping": ("o", 9)}


@dataclass
class SurfaceDisplay:
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
        cls,
        estimator: Estimator,
        *,
        output: int = 0,
        ax: Axes | None = None,
        title: str | None = None,
        **kwargs: Any,
    ) -> SurfaceDisplay:
        """Draw the surface of a fitted model.

        Parameters
        ----------
        estimator : RankRLSCV, or KernelRankRLSCV with ``solver="cg"``
        output : int, default=0
            Which output, where there are several.
        ax : matplotlib Axes, optional
        title : str, optional
            The title of the legend; by default the metric and the model.
        **kwargs
            Passed to `plot`.
        """
        return cls(Reading.of(estimator, output)).plot(ax, title=title, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, levels: int = 6, title: str | None = None, **kwargs: Any
    ) -> SurfaceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        levels : int, default=6
            How many contour lines to draw at most; 0 for none.
        title : str, optional
            The title of the legend; by default the metric and the model.
        **kwargs
            Passed to `matplotlib.axes.Axes.pcolormesh`, for example ``cmap``.
        """
        self.ax_ = axes_to_draw_on(ax, (7.5, 5.6))
        self.figure_: Any = self.ax_.figure
        one = self.surface
        centres = np.log2(one.alphas[1:])
        middle = (centres[1:] + centres[:-1]) / 2
        first, last = (middle[0], middle[-1]) if middle.size else (centres[0] + 0.5, centres[-1] - 0.5)
        edges = np.concatenate([[2 * centres[0] - first], middle, [2 * centres[-1] - last]])
        # The row of alpha = 0 lies below the grid; its height does not depend on the grid's steps.
        bottom, height = edges[0], edges[-1] - edges[0]
        below = (bottom - 0.1 * height, bottom - 0.04 * height)
        heights = np.concatenate([[np.mean(below)], centres])
        self._draw_mesh(edges, below, kwargs)
        self._draw_contours(levels, centres)
        self._draw_choices(heights)
        shown = [0, *range(1, heights.size, max(1, -(-(heights.size - 1) // 11)))]
        names = write_alphas(one.alphas)
        self.ax_.set_yticks(heights[shown], [names[at] for at in shown])
        self.ax_.set(xlabel="iteration", ylabel="alpha")
        self.ax_.locator_params(axis="x", integer=True)
        # The legend stands above the surface, one line per method, and has the title, which would stand there too. In
        # a figure of our own it belongs to the figure: the layout keeps its height free and does not narrow the axes.
        options: dict[str, Any] = {
            "frameon": False,
            "alignment": "left",
            "title": f"Validation {one.metric} of {one.model}" if title is None else str(title),
            "title_fontproperties": {"weight": "bold"},
        }
        if ax is None:
            self.legend_ = self.figure_.legend(loc="outside upper left", **options)
        else:
            above = {
                "loc": "lower left",
                "bbox_to_anchor": (0.0, 1.0),
                "borderaxespad": 0.3,
                "borderpad": 0.0,
            }
            self.legend_ = self.ax_.legend(**above, **options)
        return self

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

    def _draw_contours(self, levels: int, centres: Floats) -> None:
        grid = self.surface.values[1:]
        best, worst = np.nanmin(grid), np.nanmax(grid)
        if levels < 1 or min(grid.shape) < 2 or best == worst:
            return
        if self.surface.greater_is_better:
            best, worst = worst, best
        # Close together near the best value, where the choice is made.
        lines = np.sort(best + (worst - best) * np.geomspace(0.02, 0.6, levels))
        steps = np.arange(1, grid.shape[1] + 1)
        self.ax_.contour(steps, centres, grid, lines, colors="white", linewidths=0.7, alpha=0.7)

    def _draw_choices(self, heights: Floats) -> None:
        one = self.surface
        for method, (alpha, iteration, value) in one.choices.items():
            row, is_chosen = one.alphas.tolist().index(alpha), method == one.chosen
            note = " (chosen)" if is_chosen else ""
            # Only Tikhonov's own run goes on until every alpha has converged.
            note += " (not converged)" if method == "tikhonov" and not is_chosen else ""
            marker, size = _MARKS[method]
            self.ax_.plot(
                iteration,
                heights[row],
                marker,
                markersize=size,
                markerfacecolor="crimson" if is_chosen else "none",
                markeredgecolor="white" if is_chosen else "crimson",
                markeredgewidth=1.0 if is_chosen else 2.0,
                linestyle="none",
                label=f"{method}{note}: {value:.4g} at alpha {write_alphas(one.alphas)[row]}, iteration {iteration}",
                clip_on=False,
                zorder=5,
            )
