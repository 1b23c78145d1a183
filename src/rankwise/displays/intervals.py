"""Points with bars: candidates of an automatic choice, and strengths of a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray
from rankwise.automatic.candidate_table import CandidateTable
from rankwise.displays.drawing import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
