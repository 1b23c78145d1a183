"""How sure a mean over pairs is, where pairs share items.

Ten duels of one item are not ten independent observations: if its score is wrong, all of them go wrong together. The
variance counts every two pairs that share an item as dependent (dyadic clusters: Aronow, Samii and Assenova 2015);
where no item comes twice it is that of independent pairs.
"""

from __future__ import annotations

import numpy as np
import scipy.stats

from rankwise.arrays import ArrayLike, Ints
from rankwise.data.validation import check_numbers
from rankwise.metrics.bootstrap import Interval
from rankwise.metrics.comparison import Comparison
from rankwise.metrics.metric import Doubles

__all__ = ["compare_over_pairs", "mean_over_pairs", "variance_over_pairs", "wrong_pairs"]


def wrong_pairs(scores: Doubles, pairs: Ints) -> Doubles:
    """Return 1 for each pair of winner and loser that scores contradict, and one half where they tie."""
    difference = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    return np.where(difference < 0, 1.0, np.where(difference == 0, 0.5, 0.0))


def variance_over_pairs(residuals: Doubles, pairs: Ints) -> float:
    """Return the variance of a sum over pairs, from what each pair adds beyond its mean.

    The sum over every two pairs that share an item is that over items of squared sums, less what pairs of the same two
    items were counted twice.
    """
    items = np.zeros(int(pairs.max(initial=0)) + 1)
    np.add.at(items, pairs[:, 0], residuals)
    np.add.at(items, pairs[:, 1], residuals)
    dyads = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    same = np.bincount(dyads, weights=residuals)
    # Never less than as if the couples of items were independent: with few items the estimate may fall below zero.
    return float(max(np.sum(items**2) - np.sum(same**2), np.sum(same**2)))


def mean_over_pairs(
    values: ArrayLike, pairs: Ints, weight: Doubles | None = None, *, level: float = 0.95
) -> Interval:
    """Return a (weighted) mean over pairs with an interval that knows which pairs share items."""
    mean, error, freedom = _estimate(check_numbers("values", values, len(pairs)), pairs, weight)
    reach = float(scipy.stats.t.ppf((1 + level) / 2, freedom)) * error if freedom > 0 else np.nan
    return Interval(mean, mean - reach, mean + reach, level, len(pairs), "pairs")


def compare_over_pairs(
    first: Doubles, second: Doubles, pairs: Ints, weight: Doubles | None = None, *, level: float = 0.95
) -> Comparison:
    """Compare two errors pair by pair: the first minus the second, tested by the same variance.

    Where all pairs differ alike there is no variance to test by: then by the signs of the items, of which all but one
    could have been others.
    """
    difference = first - second
    interval = mean_over_pairs(difference, pairs, weight, level=level)
    mean, error, freedom = _estimate(difference, pairs, weight)
    p_value = 1.0
    if freedom > 0 and mean != 0:
        p_value = float(2 * scipy.stats.t.sf(abs(mean) / error, freedom)) if error > 0 else 0.5**freedom
    wins, losses = int((difference < 0).sum()), int((difference > 0).sum())
    return Comparison(interval, p_value, wins, losses, difference.size - wins - losses, "pairwise_error")


def _estimate(values: Doubles, pairs: Ints, weight: Doubles | None) -> tuple[float, float, int]:
    """Return the mean, its standard error, and the degrees of freedom: items less one."""
    share = np.ones(values.size) if weight is None else weight
    mean = float(np.average(values, weights=share))
    residuals = share * (values - mean)
    error = np.sqrt(variance_over_pairs(residuals, pairs)) / float(share.sum())
    return mean, float(error), int(np.unique(pairs).size) - 1
