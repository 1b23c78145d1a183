"""The candidates of an automatic choice, each with its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.automatic.candidate_table import CandidateTable
from rankwise.displays.reading import check_axes, import_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CandidatesDisplay"]

_SHOWN = 20
_COLOURS = {"chosen": "crimson", "rival": "black", "other": "tab:blue"}


@dataclass
class CandidatesDisplay:
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
        pyplot = import_pyplot()
        shown = list(self.candidates)[:_SHOWN]
        if ax is None:
            ax = pyplot.subplots(figsize=(8.0, 1.2 + 0.3 * len(shown)), layout="constrained")[1]
        self.ax_, self.figure_ = ax, check_axes(ax).figure
        for place, entry in enumerate(shown):
            kind = "chosen" if entry.is_chosen else "rival" if entry.is_rival else "other"
            error = entry.standard_error if np.isfinite(entry.standard_error) else 0.0
            options = {"fmt": "*" if entry.is_chosen else "o", "color": _COLOURS[kind], "capsize": 3}
            ax.errorbar(entry.value, place, xerr=error, **{**options, **kwargs})
        ax.set_yticks(range(len(shown)), [entry.description for entry in shown])
        ax.invert_yaxis()
        better = "higher" if self.candidates.greater_is_better else "lower"
        ax.set_xlabel(
            f"{self.candidates.metric} ({better} is better) ± standard error\n{self.candidates.judged_by}"
        )
        if self.candidates.constant is not None:
            ax.axvline(self.candidates.constant, color="0.4", linestyle=":")
            ax.set_title("\n".join(self.candidates.remarks()), fontsize="medium")
        ax.grid(visible=True, axis="x", alpha=0.25)
        return self
