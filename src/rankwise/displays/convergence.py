"""The course of the validation error, alpha by alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.validation import check_alphas
from rankwise.displays.reading import Reading, check_axes, import_pyplot, write_alphas
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ConvergenceDisplay"]

_CURVES = 6


@dataclass
class ConvergenceDisplay:
    """Validation error against iteration for several alphas, and without penalty.

    Make it with `from_estimator`.

    Parameters
    ----------
    alphas : ndarray of shape (curves,)
        In increasing order; the first is 0.
    values : ndarray of shape (curves, iterations)
    metric : str
    greater_is_better : bool
    chosen : (alpha, iteration), optional
        What the model has; its curve is heavier, with a star at the iteration.

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

    alphas: Floats
    values: Floats
    metric: str
    greater_is_better: bool = False
    chosen: tuple[float, int] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
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
            Values of its grid; by default six that are spread over it, the chosen one among them.
        output : int, default=0
            Which output, where there are several.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        reading = Reading.of(estimator, output)
        shown = (
            _spread(reading)
            if alphas is None
            else [_position(reading, alpha) for alpha in check_alphas(alphas).tolist()]
        )
        rows = np.unique([0, *shown])
        alpha, iteration, _ = reading.choices[reading.chosen]
        display = cls(
            reading.alphas[rows],
            reading.values[rows],
            reading.metric,
            reading.greater_is_better,
            (alpha, iteration),
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        **kwargs
            Passed to `matplotlib.axes.Axes.plot` for every curve.
        """
        pyplot = import_pyplot()
        self.ax_ = (
            pyplot.subplots(figsize=(7.0, 4.5), layout="constrained")[1] if ax is None else check_axes(ax)
        )
        self.figure_: Any = self.ax_.figure
        shades = pyplot.get_cmap("viridis_r")(np.linspace(0.15, 1.0, max(self.alphas.size - 1, 1)))
        colours: list[Any] = ["crimson", *shades]
        self.lines_: list[Any] = []
        names = ["0 (no penalty)", *write_alphas(self.alphas)[1:]]
        chosen, step = self.chosen or (None, 0)
        for alpha, name, values, colour in zip(self.alphas, names, self.values, colours, strict=False):
            is_chosen = alpha == chosen
            is_first = not self.lines_  # alpha = 0: on top, since the smallest alphas run along it
            best = np.argmax(values) if self.greater_is_better else np.argmin(values)
            options = {
                "color": colour,
                "linestyle": "--" if is_first else "-",
                "marker": "o",
                "markevery": [int(best)],  # where early stopping would end
                "markersize": 5,
                "label": f"{name}, chosen" if is_chosen else name,
                "linewidth": 3.0 if is_chosen else 1.5,
                "zorder": 3 if is_first else 2,
            }
            (line,) = self.ax_.plot(np.arange(1, values.size + 1), values, **{**options, **kwargs})
            self.lines_.append(line)
        if chosen in self.alphas:
            row = int(np.flatnonzero(self.alphas == chosen)[0])
            fill = {"markerfacecolor": self.lines_[row].get_color(), "markeredgecolor": "black"}
            options = {
                "markersize": 14,
                "linestyle": "none",
                "label": f"chosen: iteration {step}",
                "zorder": 4,
            }
            self.ax_.plot(step, self.values[row, step - 1], "*", **fill, **options)
        better = "higher" if self.greater_is_better else "lower"
        self.ax_.set(xlabel="iteration", ylabel=f"validation {self.metric} ({better} is better)")
        self.ax_.locator_params(axis="x", integer=True)
        self.ax_.grid(visible=True, alpha=0.25)
        self.ax_.legend(
            title="alpha (dot: best)", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False
        )
        return self


def _spread(reading: Reading) -> list[int]:
    n_alphas = reading.alphas.size
    rows = np.linspace(1, n_alphas - 1, min(_CURVES, n_alphas - 1)).round().astype(int).tolist()
    chosen = int(np.flatnonzero(reading.alphas == reading.choices[reading.chosen][0])[0])
    if chosen == 0:
        return list(rows)  # early stopping: that curve is drawn in any case
    nearest = int(np.argmin([abs(row - chosen) for row in rows])) if rows else 0
    return [*rows[:nearest], chosen, *rows[nearest + 1 :]]


def _position(reading: Reading, alpha: float) -> int:
    close = np.flatnonzero(np.isclose(reading.alphas, alpha, rtol=1e-9, atol=0.0))
    if close.size == 0:
        raise InvalidInputError(
            f"alpha={alpha!r} is not in the grid of the model.", "choose among model.alphas_, or fit with it."
        )
    return int(close[0])
