"""The estimator of leaderboards."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Hashable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy import stats
from scipy.sparse.csgraph import connected_components
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.data.validation import check_parameters
from rankwise.exceptions import InvalidInputError, caller_level
from rankwise.leaderboards.battles import Battles, Column, read_battles, read_features
from rankwise.leaderboards.contest import Contest, Fit
from rankwise.leaderboards.flips import FlipSearch
from rankwise.leaderboards.next_pair import choose_pairs
from rankwise.leaderboards.places import (
    draw_places,
    guaranteed_places,
    p_values,
    rank_in,
    shrink,
    tiers,
)

__all__ = ["BradleyTerry"]

_ELO = 400 / np.log(10)
_PENALTIES = np.logspace(-2, 2, 9)  # for predict_proba


class BradleyTerry(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A leaderboard of items from battles between two of them.

    The probability that a beats b is ``1 / (1 + exp(-(s_a - s_b)))``. Strengths have mean zero, in every component of
    a board that is not connected. The objective is the summed logistic loss plus ``penalty/2 · ‖t‖²``; intervals use
    the sandwich covariance, and the model's variance for items with fewer than five points won or lost.

    Parameters
    ----------
    penalty : float, default=0.1
        The ridge on strengths. 0 gives maximum likelihood, which needs a board where every item can be reached from
        every other one by a chain of wins.
    ties : {"half", "davidson"}, default="half"
        A tie is half a win for both, or an outcome with a probability of its own (Davidson's model). The two have
        different scales: half-win strengths are about Davidson's divided by ``1 + ν/2``.
    first_advantage : bool, default=False
        Estimate the advantage of the item that is shown first.
    places : {"draws", "guaranteed"}, default="draws"
        Intervals of places from draws around shrunken strengths, or sets from Holm-corrected tests, which are wider.
    level : float, default=0.95
        The coverage of intervals; tests of tiers have error ``1 - level``.
    random_state : int, default=0
        The seed of the draws.

    Attributes
    ----------
    table_ : dict of ndarray
        The board, best item first: ``item, strength, low, high, place, place_low, place_high, tier, p_first, battles,
        wins, ties``; ``component`` if the board falls apart; ``flips`` after `find_flips`.
    effects_ : dict of ndarray
        Coefficients of the order, of contest columns and features, and Davidson's log ν: ``effect, value, low, high``.
    items_ : ndarray of shape (items,)
        Ids in the order of `strengths_` and `covariance_`.
    strengths_ : ndarray of shape (items,)
    covariance_ : ndarray of shape (items, items)
    component_ : ndarray of shape (items,)
        The connected component of each item; differences between components are unknown.
    deviance_ : float
        Twice the summed logistic loss.
    diagnostics_ : dict
        Counts of battles, rows left out, repeated and contradictory battles; items that never lost or never won.

    Examples
    --------
    >>> from rankwise import BradleyTerry
    >>> battles = {"winner": ["ann", "ann", "bob", "ann", "cy"], "loser": ["bob", "cy", "cy", "bob", "bob"]}
    >>> board = BradleyTerry().fit(battles)
    >>> board.table_["item"].tolist(), board.table_["tier"].tolist()
    (['ann', 'cy', 'bob'], [1, 1, 1])
    >>> board.predict_proba(["ann"], ["bob"]).round(1).tolist()
    [0.8]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [Interval(Real, 0, None, closed="left")],
        "ties": [StrOptions({"half", "davidson"})],
        "first_advantage": ["boolean"],
        "places": [StrOptions({"draws", "guaranteed"})],
        "level": [Interval(Real, 0, 1, closed="neither")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    table_: dict[str, AnyArray]
    effects_: dict[str, AnyArray]
    items_: AnyArray
    strengths_: Floats
    covariance_: Floats
    component_: Ints
    deviance_: float
    diagnostics_: dict[str, Any]

    def __init__(
        self,
        penalty: float = 0.1,
        *,
        ties: str = "half",
        first_advantage: bool = False,
        places: str = "draws",
        level: float = 0.95,
        random_state: int = 0,
    ) -> None:
        self.penalty = penalty
        self.ties = ties
        self.first_advantage = first_advantage
        self.places = places
        self.level = level
        self.random_state = random_state

    def fit(
        self, battles: Any, *, style: Any = None, items: Any = None, cluster: Column | None = None
    ) -> Self:
        """Estimate strengths, intervals, places and tiers.

        Parameters
        ----------
        battles : data frame, Arrow table, mapping of columns, or array of winners and losers
            Columns ``model_a, model_b, winner`` (model_a, model_b, tie or tie (bothbad)); ``winner, loser``;
            ``item_a, item_b, score`` (1, ½, 0); or ``item_a, item_b, wins_a, wins_b`` and perhaps ``ties``; and
            perhaps ``weight``, where 2 means two equal battles. The first of two items is the one shown first.
        style : list of str, or array of shape (battles, columns), optional
            Contest columns that strengths are adjusted for: columns of differences, or ``x`` for ``x_a - x_b``.
        items : table or mapping, optional
            Features of items, by id. Items that never played get a strength from them.
        cluster : str or array of shape (battles,), optional
            Judges, prompts or users, whose battles may depend on each other.
        """
        parameters = self.get_params(deep=False)
        defaults = type(self)().get_params(deep=False)
        check_parameters(type(self).__name__, self._parameter_constraints, parameters, defaults)
        davidson = self.ties == "davidson"
        if items is not None and (davidson or self.penalty == 0):
            raise InvalidInputError(
                "Features of items need ties='half' and a penalty above 0.",
                "leave out items, or change these.",
            )
        ids, names, values = ([], [], np.empty((0, 0))) if items is None else read_features(items)
        read = read_battles(battles, style, cluster, ids)
        self._check(read, davidson=davidson)
        features, scales = _aligned(read.items, ids, values)
        contest = Contest.of(read, features, davidson=davidson, first_advantage=self.first_advantage)
        if self.penalty == 0:
            _check_reachable(contest, read.items)
        fitted = contest.fit(self.penalty)
        covariance = contest.covariance(fitted)
        degrees = float("inf") if contest.cluster is None else float(contest.cluster.max())
        n = contest.n_items
        self.items_ = _objects(read.items)
        estimate = contest.centring() @ contest.expand() @ fitted.theta
        self.strengths_, self.covariance_ = estimate[:n], covariance[:n, :n]
        self.component_, self.deviance_ = contest.component, 2 * fitted.rates.loss
        self.degrees_ = degrees
        self._set_effects(contest, fitted, covariance, read.style_names, names, scales)
        self._set_table(contest, fitted, covariance)
        self._set_prediction(contest)
        self.diagnostics_ = _diagnosed(read, contest)
        self._battles, self._contest, self._fitted = read, contest, fitted
        if read.left_out:
            told = "; ".join(f"{count} because {reason}" for reason, count in read.left_out.items())
            warnings.warn(f"Rows were left out: {told}.", UserWarning, stacklevel=caller_level())
        return self

    def _check(self, read: Battles, *, davidson: bool) -> None:
        if read.weight.sum() == 0 or read.units.sum() < 2:
            told = "".join(f" ({count} rows: {reason})" for reason, count in read.left_out.items())
            raise InvalidInputError(f"There are fewer than two battles{told}.", "pass more battles.")
        if (read.score == 0.5).all():
            raise InvalidInputError(
                "All battles are ties, which order nothing.", "pass battles with winners."
            )
        if davidson and not (read.score == 0.5).any():
            raise InvalidInputError("There are no ties for Davidson's model.", "use ties='half'.")
        if read.cluster is not None and read.cluster.max() < 1:
            raise InvalidInputError("All battles are in one cluster.", "leave out cluster.")

    def _set_effects(
        self,
        contest: Contest,
        fitted: Fit,
        covariance: Floats,
        style: list[str],
        names: list[str],
        scales: Floats,
    ) -> None:
        n, f = contest.n_items, len(names)
        value = fitted.theta[n:].copy()
        own = np.concatenate([fitted.inverse.diagonal()[n : n + f], covariance.diagonal()[n:]])
        error = np.sqrt(own)
        value[:f] /= scales
        error[:f] /= scales
        effect = [*names, *(["first"] if self.first_advantage else []), *style]
        effect += ["log_nu"] if contest.davidson else []
        half = self._quantile() * error
        self.effects_ = {
            "effect": np.array(effect, dtype=object),
            "value": value,
            "error": error,
            "low": value - half,
            "high": value + half,
        }

    def _set_table(self, contest: Contest, fitted: Fit, covariance: Floats) -> None:
        n, error = contest.n_items, 1 - self.level
        strength, component = self.strengths_, self.component_
        shrunk = shrink(contest, fitted, covariance)
        rng = np.random.default_rng(self.random_state)
        drawn = draw_places(shrunk, component, self.degrees_, rng)
        self._drawn = drawn
        p = p_values(strength, self.covariance_, component, self.degrees_)
        place = rank_in(strength, component)
        if self.places == "guaranteed":
            low, high = guaranteed_places(strength, p, component, error)
        else:
            lowest = np.quantile(drawn, error / 2, axis=0, method="lower").astype(np.int64)
            highest = np.quantile(drawn, 1 - error / 2, axis=0, method="higher").astype(np.int64)
            low, high = np.minimum(lowest, place), np.maximum(highest, place)
        half = self._quantile() * np.sqrt(self.covariance_.diagonal())
        won = contest.pull(contest.total, sign=1.0)
        wins = np.bincount(contest.first, contest.wins, n) + np.bincount(contest.second, contest.losses, n)
        order = np.lexsort((place, -np.bincount(component)[component], component))
        table: dict[str, AnyArray] = {
            "item": self.items_,
            "strength": strength,
            "low": strength - half,
            "high": strength + half,
            "place": place,
            "place_low": low,
            "place_high": high,
            "tier": tiers(strength, p, component, error),
            "p_first": (drawn == 1).mean(axis=0),
            "battles": won,
            "wins": wins,
            "ties": contest.pull(contest.ties, sign=1.0),
        }
        if component.max() > 0:
            table["component"] = component + 1
        self.table_ = {key: column[order] for key, column in table.items()}
        self.shrunk_strengths_, self.shrunk_covariance_ = shrunk.strength, shrunk.covariance
        self.places_penalty_ = shrunk.penalty

    def _set_prediction(self, contest: Contest) -> None:
        """Choose the penalty of predictions by the log-loss of each battle left out, one Newton step each."""
        best, chosen, start = np.inf, None, None
        for penalty in _PENALTIES[::-1]:
            fitted = contest.fit(float(penalty), start)
            start = fitted.theta
            loss = held_out_loss(contest, fitted)
            if loss < best:
                best, chosen = loss, fitted
        assert chosen is not None
        expand = contest.centring() @ contest.expand()
        self.prediction_ = expand @ chosen.theta
        self.prediction_penalty_ = chosen.penalty

    def _quantile(self) -> float:
        upper = (1 + self.level) / 2
        return float(
            stats.t.ppf(upper, self.degrees_) if np.isfinite(self.degrees_) else stats.norm.ppf(upper)
        )

    def _positions(self, items: Any) -> Ints:
        check_is_fitted(self)
        place = {one: at for at, one in enumerate(self.items_.tolist())}
        listed = [items] if isinstance(items, str) or not isinstance(items, Sequence | np.ndarray) else items
        wanted = listed.tolist() if isinstance(listed, np.ndarray) else list(listed)
        unknown = [one for one in wanted if one not in place]
        if unknown:
            raise InvalidInputError(f"Item {unknown[0]!r:.80} is not on the board.", "see table_['item'].")
        return np.array([place[one] for one in wanted], dtype=np.int64)

    def _pairs(self, a: Any, b: Any) -> tuple[Ints, Ints]:
        first, second = self._positions(a), self._positions(b)
        if (self.component_[first] != self.component_[second]).any():
            raise InvalidInputError(
                "Two of the items are in different components, and no chain of battles joins them.",
                "compare items of the same component; suggest proposes battles that join components.",
            )
        return first, second

    def difference(self, a: Any, b: Any) -> tuple[Floats, Floats, Floats]:
        """Return the differences of the strengths of a and b, with the lower and upper ends of their intervals.

        Parameters
        ----------
        a, b : item or list of items

        Returns
        -------
        difference, low, high : ndarray
        """
        first, second = self._pairs(a, b)
        gap = self.strengths_[first] - self.strengths_[second]
        own = self.covariance_.diagonal()
        half = self._quantile() * np.sqrt(own[first] + own[second] - 2 * self.covariance_[first, second])
        return gap, gap - half, gap + half

    def predict_proba(self, a: Any, b: Any) -> Floats:
        """Return the probability that a beats b; with Davidson's model the columns win, tie and loss.

        The penalty behind these probabilities is chosen by held-out log-loss. Contest columns are zero, and with
        `first_advantage` a is shown first.

        Parameters
        ----------
        a, b : item or list of items
        """
        first, second = self._pairs(a, b)
        z = self.prediction_[first] - self.prediction_[second]
        z = z + (self.prediction_[len(self.items_)] if self.first_advantage else 0.0)
        if self.ties == "half":
            p: Floats = expit(z)
            return p
        parts = np.column_stack(
            [np.exp(z / 2), np.full(z.size, np.exp(self.prediction_[-1])), np.exp(-z / 2)]
        )
        shares: Floats = parts / parts.sum(axis=1, keepdims=True)
        return shares

    def find_flips(self) -> dict[tuple[Any, Any], Ints]:
        """Find the battles that must be removed before the next item overtakes, and add ``flips`` to `table_`.

        Returns
        -------
        dict
            The rows of battles to remove, for each two neighbours (upper, lower).
        """
        check_is_fitted(self)
        if self.ties == "davidson":
            raise InvalidInputError("Flips are not available for Davidson's model.", "use ties='half'.")
        search = FlipSearch(
            self._battles, self._contest.features, self.penalty, first_advantage=self.first_advantage
        )
        board = self._positions(self.table_["item"])
        flips, found = np.full(board.size, np.nan), {}
        for at, (upper, lower) in enumerate(itertools.pairwise(board)):
            if self.component_[upper] == self.component_[lower]:
                removed = search.find(int(upper), int(lower))
                if removed is not None:
                    flips[at] = removed.size
                    found[self.items_[upper], self.items_[lower]] = search.battles.row[removed]
        self.table_["flips"] = flips
        return found

    def suggest(self, n: int = 10, goal: str | int = "board") -> list[tuple[Any, Any]]:
        """Return the pairs of items whose battle tells most, the most informative first; no pair twice.

        Parameters
        ----------
        n : int
        goal : {"board", "first"} or int
            The whole board, the first item, or the first k items.
        """
        check_is_fitted(self)
        if self.ties == "davidson":
            raise InvalidInputError("suggest is not available for Davidson's model.", "use ties='half'.")
        contest, size = self._contest, len(self.items_)
        inverse = contest.expand() @ self._fitted.inverse @ contest.expand().T
        covariance = inverse[:size, :size] + contest.means() * (1 / max(self.penalty, 1e-3))
        pairs = np.column_stack(np.triu_indices(size, 1))
        p = expit(self.strengths_[pairs[:, 0]] - self.strengths_[pairs[:, 1]])
        weight = np.ones(len(pairs))
        if goal != "board":
            first = 1 if goal == "first" else int(goal)
            member = (self._drawn <= first).mean(axis=0)
            unsure = member * (1 - member)
            weight = unsure[pairs[:, 0]] + unsure[pairs[:, 1]]
        chosen = choose_pairs(np.eye(size), covariance, pairs, p * (1 - p), n, weight)
        return [(self.items_[a], self.items_[b]) for a, b in chosen]

    def elo(self, anchor: Hashable = None, rating: float = 1000.0) -> dict[str, AnyArray]:
        """Return the board on the Elo scale, 400/log 10 points to a unit of strength.

        Parameters
        ----------
        anchor : item, optional
            The item that has `rating`; intervals are then those of the differences from it. By default the mean of the
            strengths has it.
        rating : float

        Returns
        -------
        dict of ndarray
            ``item, rating, low, high``.
        """
        check_is_fitted(self)
        items = self.table_["item"].tolist()
        columns = [self.table_[name] for name in ("strength", "low", "high")]
        if anchor is not None:
            columns = list(self.difference(items, [anchor] * len(items)))
        rated = [rating + _ELO * column for column in columns]
        return {"item": self.table_["item"], "rating": rated[0], "low": rated[1], "high": rated[2]}


def held_out_loss(contest: Contest, fitted: Fit) -> float:
    """Return the mean log-loss of battles, each left out of the fit by one Newton step."""
    rates = fitted.rates
    expand = contest.expand()
    variance = contest.difference_variance(expand @ fitted.inverse @ expand.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        curvature = np.where(contest.total > 0, rates.curvature / contest.total, 0.0)
    leverage = np.minimum(curvature * variance, 0.99)
    z, loss = contest.margins(fitted.theta), 0.0
    eta = float(fitted.theta[-1]) if contest.davidson else 0.0
    for at, (weight, slope, _) in enumerate(contest.outcome_slopes(rates)):
        left = z - variance * slope / (1 - leverage)
        if contest.davidson:
            logits = np.stack([left / 2, np.full_like(left, eta), -left / 2])
            loss += float(weight @ (np.logaddexp.reduce(logits, axis=0) - logits[at]))
        else:
            loss += float(weight @ (np.logaddexp(0, left) - (1.0, 0.5, 0.0)[at] * left))
    return loss / float(contest.total.sum())


def _objects(values: list[Any]) -> AnyArray:
    array = np.empty(len(values), dtype=object)
    for at, one in enumerate(values):
        array[at] = one
    return array


def _aligned(items: list[Any], ids: list[Any], values: Floats) -> tuple[Floats, Floats]:
    """Return the features of all items in standard units, and the scales of the columns."""
    if not values.size:
        return np.empty((len(items), 0)), np.ones(0)
    place = {one: at for at, one in enumerate(ids)}
    absent = [one for one in items if one not in place]
    if absent:
        raise InvalidInputError(
            f"Item {absent[0]!r:.80} has no features.", "pass a row of items for each item."
        )
    features = values[[place[one] for one in items]]
    features = features - features.mean(axis=0)
    scales = features.std(axis=0)
    scales[scales == 0] = 1.0
    return features / scales, scales


def _check_reachable(contest: Contest, items: list[Any]) -> None:
    """Raise unless chains of wins lead from every item to every other one of its component."""
    beaten = np.concatenate(
        [contest.second[contest.points > 0], contest.first[contest.total > contest.points]]
    )
    winner = np.concatenate(
        [contest.first[contest.points > 0], contest.second[contest.total > contest.points]]
    )
    n = contest.n_items
    graph = sp.coo_array((np.ones(beaten.size), (winner, beaten)), shape=(n, n))
    parts = connected_components(graph, directed=True, connection="strong")[1]
    if len(set(zip(parts.tolist(), contest.component.tolist(), strict=True))) == contest.component.max() + 1:
        return
    won, lost = contest.won_and_lost()
    named = [items[at] for at in np.flatnonzero((won == 0) | (lost == 0))[:3]]
    told = (
        f"{', '.join(map(str, named))} never lost or never won"
        if named
        else "one group of items never lost to the rest"
    )
    raise InvalidInputError(
        f"With penalty=0 there is no finite estimate: {told}.", "use a penalty such as 0.1."
    )


def _diagnosed(read: Battles, contest: Contest) -> dict[str, Any]:
    won, lost = contest.won_and_lost()
    played = won + lost > 0
    n = contest.n_items
    low, high = np.minimum(read.first, read.second), np.maximum(read.first, read.second)
    pair = low * n + high
    result = np.where(read.first == low, read.score, 1 - read.score)
    judge = np.zeros(pair.size, np.int64) if read.cluster is None else read.cluster
    key = judge * n * n + pair
    outcomes = [np.unique(key[result == value]) for value in (1.0, 0.0)]
    repeated = 0
    if read.cluster is not None:
        repeated = int(pair.size - np.unique(np.stack([key, 2 * result]), axis=1).shape[1])
    return {
        "battles": float(contest.total.sum()),
        "items": n,
        "components": int(contest.component.max()) + 1,
        "left_out": read.left_out,
        "unused_columns": read.unused,
        "contradictory": int(np.intersect1d(outcomes[0], outcomes[1]).size),
        "repeated": repeated,
        "never_lost": [read.items[at] for at in np.flatnonzero(played & (lost == 0))],
        "never_won": [read.items[at] for at in np.flatnonzero(played & (won == 0))],
        "never_played": [read.items[at] for at in np.flatnonzero(~played)],
    }
