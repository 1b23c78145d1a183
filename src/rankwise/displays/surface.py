"""The whole surface as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.arrays import Estimator, Floats
from rankwise.displays.reading import Reading, check_axes, import_pyplot, write_alphas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SurfaceDisplay"]

# Marks of the three methods: they differ in shape, so that they can be told apart without colour.
_MARKS = {"hybrid": "*", "tikhonov": "D", "early-stopping": "o"}


@dataclass
class SurfaceDisplay:
    """Validation error over alpha and iteration, with what the three methods choose.

    Make it with `from_estimator`. The row below the grid is alpha = 0, which early stopping reads.

    Parameters
    ----------
    alphas : ndarray of shape (alphas,)
        In increasing order; the first is 0.
    values : ndarray of shape (alphas, iterations)
        The value of the metric.
    choices : dict
        For each method the ``(alpha, iteration, value)`` that it chooses.
    metric : str
        The metric's name.
    greater_is_better : bool
    converged : bool
        Whether every alpha had converged at the last iteration; if not, the legend says so of Tikhonov's choice.
    chosen : str
        The method whose choice the model has; its mark is filled.

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

    alphas: Floats
    values: Floats
    choices: dict[str, tuple[float, int, float]]
    metric: str
    greater_is_better: bool = False
    converged: bool = True
    chosen: str = "hybrid"

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
            What stands above the legend; by default what is drawn.
        **kwargs
            Passed to `plot`.
        """
        reading = Reading.of(estimator, output)
        display = cls(
            reading.alphas,
            reading.values,
            reading.choices,
            reading.metric,
            reading.greater_is_better,
            converged=reading.chosen == "tikhonov",
            chosen=reading.chosen,
        )
        title = f"Validation {reading.metric} of {reading.model}" if title is None else title
        return display.plot(ax, title=title, **kwargs)

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
            What stands above the legend; by default what is drawn.
        **kwargs
            Passed to `matplotlib.axes.Axes.pcolormesh`, for example ``cmap``.
        """
        pyplot = import_pyplot()
        self.ax_ = (
            pyplot.subplots(figsize=(7.5, 5.6), layout="constrained")[1] if ax is None else check_axes(ax)
        )
        self.figure_: Any = self.ax_.figure
        self._draw_mesh(kwargs)
        self._draw_contours(levels)
        self._draw_choices()
        self._label()
        self._add_legend(
            f"Validation {self.metric} of RankRLS" if title is None else title, is_own=ax is None
        )
        return self

    @property
    def _edges(self) -> Floats:
        """The borders of the grid's cells, on a scale of binary logarithms."""
        centres = np.log2(self.alphas[1:])
        middle = (centres[1:] + centres[:-1]) / 2
        first, last = (middle[0], middle[-1]) if middle.size else (centres[0] + 0.5, centres[-1] - 0.5)
        return np.concatenate([[2 * centres[0] - first], middle, [2 * centres[-1] - last]])

    @property
    def _band(self) -> tuple[float, float]:
        """The borders of the row of alpha = 0, below the grid; its height does not depend on the grid's steps."""
        bottom, top = self._edges[[0, -1]]
        return float(bottom - 0.1 * (top - bottom)), float(bottom - 0.04 * (top - bottom))

    @property
    def _heights(self) -> Floats:
        """Where each alpha stands."""
        return np.concatenate([[np.mean(self._band)], np.log2(self.alphas[1:])])

    def _draw_mesh(self, options: dict[str, Any]) -> None:
        from matplotlib.colors import LogNorm  # noqa: PLC0415 - matplotlib is imported only when used

        finite = self.values[np.isfinite(self.values)]
        # On a logarithmic scale small differences near a small error remain visible.
        if finite.min() > 0 and "vmin" not in options and "vmax" not in options:
            options.setdefault("norm", LogNorm(finite.min(), max(finite.max(), finite.min() * (1 + 1e-9))))
        options.setdefault("cmap", "viridis_r" if not self.greater_is_better else "viridis")
        columns = np.arange(self.values.shape[1] + 1) + 0.5
        self.mesh_ = self.ax_.pcolormesh(
            columns, self._edges, self.values[1:], **{"rasterized": True, **options}
        )
        shared: dict[str, Any] = {"norm": self.mesh_.norm, "cmap": self.mesh_.cmap, "rasterized": True}
        self.ax_.pcolormesh(columns, self._band, self.values[:1], **shared)
        self.colorbar_ = self.figure_.colorbar(self.mesh_, ax=self.ax_, pad=0.02)
        self._ticks_of_colours(finite)

    def _ticks_of_colours(self, finite: Floats) -> None:
        # A validation error rarely spans a decade, so that the ticks of a logarithmic scale would be missing.
        ticks = np.geomspace(finite.min(), finite.max(), 6) if finite.min() > 0 else None
        if ticks is not None and finite.max() > finite.min():
            self.colorbar_.set_ticks(ticks.tolist(), labels=[f"{tick:.3g}" for tick in ticks])
            self.colorbar_.ax.minorticks_off()
        better = "higher" if self.greater_is_better else "lower"
        self.colorbar_.set_label(f"validation {self.metric} ({better} is better)")

    def _draw_contours(self, levels: int) -> None:
        grid = self.values[1:]
        best, worst = np.nanmin(grid), np.nanmax(grid)
        if levels < 1 or min(grid.shape) < 2 or best == worst:
            return
        if self.greater_is_better:
            best, worst = worst, best
        # Close together near the best value, where the choice is made.
        lines = best + (worst - best) * np.geomspace(0.02, 0.6, levels)
        iterations = np.arange(1, grid.shape[1] + 1)
        self.ax_.contour(
            iterations, self._heights[1:], grid, np.sort(lines), colors="white", linewidths=0.7, alpha=0.7
        )

    def _draw_choices(self) -> None:
        heights = dict(zip(self.alphas.tolist(), self._heights.tolist(), strict=True))
        names = dict(zip(self.alphas.tolist(), write_alphas(self.alphas), strict=True))
        for method, (alpha, iteration, value) in self.choices.items():
            is_chosen = method == self.chosen
            note = " (chosen)" if is_chosen else ""
            note += " (not converged)" if method == "tikhonov" and not self.converged else ""
            self.ax_.plot(
                iteration,
                heights[alpha],
                _MARKS[method],
                markersize=15 if method == "hybrid" else 9,
                markerfacecolor="crimson" if is_chosen else "none",
                markeredgecolor="white" if is_chosen else "crimson",
                markeredgewidth=1.0 if is_chosen else 2.0,
                linestyle="none",
                label=f"{method}{note}: {value:.4g} at alpha {names[alpha]}, iteration {iteration}",
                clip_on=False,
                zorder=5,
            )

    def _label(self) -> None:
        heights = self._heights
        names = write_alphas(self.alphas)
        stride = max(1, -(-(heights.size - 1) // 11))
        shown = range(1, heights.size, stride)
        self.ax_.set_yticks([heights[0], *(heights[i] for i in shown)], ["0", *(names[i] for i in shown)])
        self.ax_.set(xlabel="iteration", ylabel="alpha")
        self.ax_.locator_params(axis="x", integer=True)

    def _add_legend(self, title: str, *, is_own: bool) -> None:
        """Put the legend above the surface, one line per method: side by side they are wider than the axes.

        The title belongs to the legend, because that of the axes stands where the legend does. In a figure of our own
        it is a legend of the figure: the layout keeps its height free, but not its width, which would shrink the axes.
        """
        options: dict[str, Any] = {
            "frameon": False,
            "alignment": "left",
            "title": str(title),
            "title_fontproperties": {"weight": "bold"},
        }
        if is_own:
            self.legend_ = self.figure_.legend(loc="outside upper left", **options)
        else:
            above = {
                "loc": "lower left",
                "bbox_to_anchor": (0.0, 1.0),
                "borderaxespad": 0.3,
                "borderpad": 0.0,
            }
            self.legend_ = self.ax_.legend(**above, **options)
