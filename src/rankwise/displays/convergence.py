"""Plot of the validation error by iteration for each alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.arrays import Estimator, Ints
from rankwise.data.validation import check_alphas
from rankwise.displays.reading import Reading, axes_to_draw_on, import_pyplot, write_alphas
from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ConvergenceDisplay"]

_CURVES = 6


@dataclass
class ConvergenceDisplay:
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
        surface = Reading.of(estimator, output)
        if alphas is None:
            last = surface.alphas.size - 1
            spread = np.linspace(1, last, min(_CURVES, last)).round().astype(int)
            # The chosen one takes the place of its neighbour; alpha = 0 is drawn in any case.
            if surface.chosen_row:
                spread[np.argmin(np.abs(spread - surface.chosen_row))] = surface.chosen_row
            shown = spread.tolist()
        else:
            shown = [_position(surface, alpha) for alpha in check_alphas(alphas).tolist()]
        return cls(surface, np.unique([0, *shown])).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ConvergenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.
        **kwargs
            Passed to `matplotlib.axes.Axes.plot` for every curve.
        """
        self.ax_ = axes_to_draw_on(ax, (7.0, 4.5))
        self.figure_: Any = self.ax_.figure
        one = self.surface
        names = write_alphas(one.alphas)
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
                step = one.choices[one.chosen][1]
                star = {"markersize": 14, "markerfacecolor": line.get_color(), "markeredgecolor": "black"}
                name = f"chosen: iteration {step}"
                self.ax_.plot(step, values[step - 1], "*", linestyle="none", label=name, zorder=4, **star)
        self.ax_.set(xlabel="iteration", ylabel=one.label)
        self.ax_.locator_params(axis="x", integer=True)
        self.ax_.grid(visible=True, alpha=0.25)
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        self.ax_.legend(title="alpha (dot: best)", **beside)
        return self


def _position(surface: Reading, alpha: float) -> int:
    close = np.flatnonzero(np.isclose(surface.alphas, alpha, rtol=1e-9, atol=0.0))
    if close.size == 0:
        raise InvalidInputError(
            f"alpha={alpha!r} is not in the grid of the model.", "choose among model.alphas_, or fit with it."
        )
    return int(close[0])
