"""How certain an AUC is: the variance and covariances of DeLong, DeLong and Clarke-Pearson (1988)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt
import scipy.stats

from rankwise.arrays import ArrayLike
from rankwise.data.arguments import check_level
from rankwise.data.containers import as_array
from rankwise.data.validation import check_numbers
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics.bootstrap import score_limits
from rankwise.metrics.metric import Doubles

__all__ = ["AucEstimate", "auc_estimate"]

_FEWEST = 10  # rows of either label that an interval needs; fewer were not simulated


@dataclass(frozen=True)
class AucEstimate:
    """The AUC of one or several score columns over the same rows, with their covariance.

    Attributes
    ----------
    auc : (columns,) float64
    covariance : (columns, columns) float64
    n_above, n_below : int
        The rows of the larger and of the smaller label.

    Examples
    --------
    >>> from rankwise.metrics import auc_estimate
    >>> estimate = auc_estimate([1, 1, 0, 0], [0.9, 0.4, 0.5, 0.1])
    >>> estimate.auc.tolist(), estimate.covariance.shape
    ([0.75], (1, 1))
    """

    auc: Doubles
    covariance: Doubles
    n_above: int
    n_below: int

    def interval(self, level: float = 0.95) -> Doubles:
        """Return the score intervals of Newcombe (2006, method 5), (columns, 2).

        The variance is never smaller than DeLong's. With fewer than ten rows of either label it is NaN,
        with a warning.
        """
        check_level(level)
        if min(self.n_above, self.n_below) < _FEWEST:
            warnings.warn(
                f"The AUC has no interval: there are {self.n_above} rows of the larger label and {self.n_below} of the "
                f"smaller one. Hint: pass y_true with at least {_FEWEST} rows of each.",
                UserWarning,
                stacklevel=3,  # the decorator stands between
            )
            return np.full((self.auc.size, 2), np.nan)
        quantile = scipy.stats.norm.ppf((1 + level) / 2)
        rest = (self.n_above + self.n_below) / 2 - 1

        def limits(auc: float, variance: float) -> tuple[float, float]:
            least = variance / (auc * (1 - auc)) if 0 < auc < 1 else 0.0

            def squared_reach(mean: float) -> float:
                newcombe = (1 + rest * ((1 - mean) / (2 - mean) + mean / (1 + mean))) / (
                    self.n_above * self.n_below
                )
                return float(quantile**2 * mean * (1 - mean) * max(newcombe, least))

            return score_limits(auc, squared_reach)

        variances = np.diagonal(self.covariance)
        return np.array([limits(*own) for own in zip(self.auc.tolist(), variances.tolist(), strict=True)])

    def p_value(self, first: int = 0, second: int = 1) -> float:
        """Return the two-sided p-value of the hypothesis that two columns have the same AUC."""
        for column in (first, second):
            if (
                not isinstance(column, Integral)
                or isinstance(column, bool)
                or not 0 <= column < self.auc.size
            ):
                raise InvalidInputError(
                    f"There is no column {column!r} among {self.auc.size}.",
                    "count the columns of scores from 0.",
                )
        difference = float(self.auc[first] - self.auc[second])
        C = self.covariance
        variance = float(C[first, first] + C[second, second] - 2 * C[first, second])
        if variance <= 0:
            return 1.0 if difference == 0 else 0.0
        return float(2 * scipy.stats.norm.sf(abs(difference) / np.sqrt(variance)))


def auc_estimate(y_true: ArrayLike, scores: ArrayLike) -> AucEstimate:
    """AUC with DeLong's covariance, in O(m log m) a column.

    Parameters
    ----------
    y_true : (rows,) numbers
        Two different values; the larger marks the rows that should be above.
    scores : (rows,) or (rows, columns) numbers
        The predictions of one model or several; larger is better. A tie counts one half.

    Returns
    -------
    AucEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.metrics import auc_estimate
    >>> y = np.repeat([0, 1], 50)
    >>> scores = np.random.default_rng(0).normal(size=(100, 2)) + np.outer(y, [1.0, 2.0])
    >>> estimate = auc_estimate(y, scores)
    >>> estimate.interval().shape, bool(estimate.p_value() < 0.05)
    ((2, 2), True)
    """
    labels = check_numbers("y_true", y_true)
    table = as_array("scores", scores)
    if table.ndim not in {1, 2} or table.size == 0:
        raise InvalidInputError(f"scores has shape {table.shape}.", "pass one column of scores, or several.")
    table = table[:, np.newaxis] if table.ndim == 1 else table
    columns = np.column_stack([check_numbers("scores", column, labels.size) for column in table.T])
    levels = np.unique(labels)
    if levels.size > 2:
        raise InvalidInputError(
            f"auc needs two levels, and y_true has {levels.size}.", "pass y_true >= 1, for example."
        )
    if levels.size < 2:
        raise NoPairsError("y_true has a single level, so there is nothing to rank.", "pass rows of both.")
    above = _placements(columns, labels == levels[1])
    below = 1.0 - _placements(columns, labels == levels[0])
    covariance = _covariance(above) + _covariance(below)
    return AucEstimate(above.mean(axis=0), covariance, len(above), len(below))


def _placements(columns: Doubles, chosen: npt.NDArray[np.bool_]) -> Doubles:
    """Return for each chosen row the share of the other rows that score less, ties counting one half."""
    placements = np.empty((int(chosen.sum()), columns.shape[1]))
    for at, scores in enumerate(columns.T):
        others = np.sort(scores[~chosen])
        own = scores[chosen]
        less = np.searchsorted(others, own, side="left") + np.searchsorted(others, own, side="right")
        placements[:, at] = less / (2 * others.size)
    return placements


def _covariance(placements: Doubles) -> Doubles:
    """Return the covariance of the mean; that of a single row is unknown and counts 0."""
    centred = placements - placements.mean(axis=0)
    n_rows = placements.shape[0]
    return np.asarray(centred.T @ centred / (n_rows * max(1, n_rows - 1)))
