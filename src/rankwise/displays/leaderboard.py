"""Strengths of a leaderboard with their intervals and tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray
from rankwise.displays.reading import axes_to_draw_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LeaderboardDisplay"]

_COLOURS = 10  # of matplotlib's cycle


@dataclass
class LeaderboardDisplay:
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
        self.ax_ = ax = axes_to_draw_on(ax, (7.0, 1.0 + 0.27 * n_items))
        self.figure_: Any = ax.figure
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
