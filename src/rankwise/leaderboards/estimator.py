"""The estimator of leaderboards."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Mapping
from itertools import pairwise
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy import stats
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, softmax
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.estimators.parameters import BaseEstimator, check_parameters, estimator, one_of, parameter
from rankwise.exceptions import InvalidInputError, MemoryLimitError, caller_level
from rankwise.files import replacing
from rankwise.leaderboards.battles import Battles, Column, read_battles, read_features
from rankwise.leaderboards.contest import Contest, Fit, FlipSearch
from rankwise.leaderboards.next_pair import choose_pairs
from rankwise.leaderboards.places import (
    draw_places,
    guaranteed_places,
    p_values,
    rank_in,
    satterthwaite,
    shrink,
    tiers,
    variances,
)
from rankwise.persistence import save
from rankwise.runtime.memory import fits
from rankwise.runtime.progress import ShareProgress

_ELO = 400 / np.log(10)
_PENALTIES = (100.0, 10.0, 1.0, 0.1, 0.01)  # for predict_proba; the log-loss is flat around its minimum


@estimator()
class BradleyTerry(BaseEstimator):
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
        wins, ties``; ``component`` if the board is not connected; ``flips`` after `find_flips`.
    effects_ : dict of ndarray
        Coefficients of the order, of contest columns and features, and Davidson's log ν: ``effect, value, error, low,
        high``.
    items_ : ndarray of shape (items,)
        Ids in the order of `strengths_` and `covariance_`.
    strengths_ : ndarray of shape (items,)
    covariance_ : ndarray of shape (items, items)
        The sandwich covariance of `strengths_`.
    cluster_covariance_ : ndarray of shape (items, items)
        The part of it that was estimated from clusters.
    model_covariance_ : ndarray of shape (items, items)
        The inverse of the penalised Hessian, which `suggest` uses.
    component_ : ndarray of shape (items,)
        The connected component of each item; differences between components are unknown.
    deviance_ : float
        Twice the summed loss.
    diagnostics_ : dict
        Counts of battles and of rows left out; ``repeated``, battles beyond the first of the same two items with the
        same result (and cluster); ``contradictory``, pairs of items (in the same cluster) that both won; items that
        never lost, never won or never played.

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

    penalty: float = parameter("not negative", default=0.1, kw_only=False)
    ties: str = one_of(("davidson",), default="half")
    first_advantage: bool = parameter("boolean", default=False)
    places: str = one_of(("guaranteed",), default="draws")
    level: float = parameter("positive share", default=0.95)
    random_state: int = parameter(Interval(Integral, 0, None, closed="left"), default=0)

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
        check_parameters(self)
        davidson = self.ties == "davidson"
        if items is not None and (davidson or self.penalty == 0):
            raise InvalidInputError(
                "Features of items need ties='half' and a penalty above 0.",
                "leave out items, or change these.",
            )
        ids, names, values = ([], [], np.empty((0, 0))) if items is None else read_features(items)
        read = read_battles(battles, style, cluster, ids)
        _check(read, davidson=davidson)
        features, scales = _aligned(read.items, ids, values)
        # Coefficients of contest columns are found in standard units, and returned in those of the table.
        units = _nonzero(np.sqrt(np.mean(read.style**2, axis=0)))
        read.style /= units
        contest = Contest.of(read, features, davidson=davidson, first_advantage=self.first_advantage)
        if self.penalty == 0:
            _check_reachable(contest, read.items)
        fitted = contest.fit(self.penalty)
        (covariance, clustered), n = contest.covariance(fitted), contest.n_items
        self.items_ = np.fromiter(read.items, object, len(read.items))
        self.strengths_, self.covariance_ = fitted.theta[:n], covariance[:n, :n]
        self.cluster_covariance_ = clustered[:n, :n]
        self.model_covariance_ = fitted.inverse[:n, :n]
        self.component_, self.deviance_ = contest.component, 2 * fitted.rates.loss
        self.degrees_ = np.inf if contest.cluster is None else float(contest.cluster.max())
        self.diagnostics_ = _diagnosed(read, contest)
        # Coefficients of features given the strengths: their mean, and the variance that the penalty leaves.
        to_features = features.T @ contest.prior
        spread = np.eye(len(names)) - to_features @ features
        spread = spread / (self.penalty or 1.0) + to_features @ self.model_covariance_ @ to_features.T
        columns = [*(["first"] if self.first_advantage else []), *read.style_names]
        columns += ["log_nu"] if davidson else []
        scale = np.concatenate([scales, np.ones(int(self.first_advantage)), units, np.ones(int(davidson))])
        value = np.concatenate([to_features @ self.strengths_, fitted.theta[n:]]) / scale
        variance = np.concatenate([spread.diagonal(), covariance.diagonal()[n:]])
        from_clusters = np.concatenate([np.zeros(len(names)), clustered.diagonal()[n:]])
        error, half = np.sqrt(variance) / scale, self._half(variance, from_clusters) / scale
        self.effects_ = {
            "effect": np.array([*names, *columns], dtype=object),
            "value": value,
            "error": error,
            "low": value - half,
            "high": value + half,
        }
        shrunk = shrink(contest, fitted, covariance)
        self.shrunk_strengths_, self.shrunk_covariance_ = shrunk.theta[:n], shrunk.inverse[:n, :n]
        self.places_penalty_ = shrunk.penalty
        self._set_table(contest)
        predicting = _best_prediction(contest)
        self.prediction_, self.prediction_penalty_ = predicting.theta, predicting.penalty
        self._battles, self._contest, self._fitted, self._predicting = read, contest, fitted, predicting
        self._flips: dict[tuple[Any, Any], Ints] | None = None
        if read.left_out:
            told = "; ".join(f"{count} because {reason}" for reason, count in read.left_out.items())
            warnings.warn(f"Rows were left out: {told}.", UserWarning, stacklevel=caller_level())
        return self

    def _set_table(self, contest: Contest) -> None:
        strength, component, error = self.strengths_, self.component_, 1 - self.level
        drawn = self._drawn_places()
        clustered = self.cluster_covariance_
        p = p_values(strength, self.covariance_, clustered, component, self.degrees_)
        place = rank_in(strength, component)
        if self.places == "guaranteed":
            low, high = guaranteed_places(strength, p, component, error)
        else:
            lowest = np.quantile(drawn, error / 2, axis=0, method="lower").astype(np.int64)
            highest = np.quantile(drawn, 1 - error / 2, axis=0, method="higher").astype(np.int64)
            low, high = np.minimum(lowest, place), np.maximum(highest, place)
        half = self._half(self.covariance_.diagonal(), clustered.diagonal())
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
            "battles": contest.summed(contest.weight, contest.weight),
            "wins": contest.summed(*(contest.weight * (contest.score == result) for result in (1, 0))),
            "ties": contest.summed(contest.tied, contest.tied),
        }
        if component.max() > 0:
            table["component"] = component + 1
        order = np.lexsort((place, component))
        self.table_ = {key: column[order] for key, column in table.items()}

    def _drawn_places(self) -> Ints:
        covariance = self.shrunk_covariance_
        return draw_places(
            self.shrunk_strengths_, covariance, self.component_, self.degrees_, self.random_state
        )

    def _half(self, variance: Floats, clustered: Floats) -> Floats:
        """Return half the width of intervals."""
        degrees = satterthwaite(variance, clustered, self.degrees_)
        half: Floats = stats.t.ppf((1 + self.level) / 2, degrees) * np.sqrt(variance)
        return half

    def _positions(self, items: Any) -> Ints:
        check_is_fitted(self)
        place = {one: at for at, one in enumerate(self.items_.tolist())}
        wanted = items if isinstance(items, list) or (hasattr(items, "ndim") and items.ndim) else [items]
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
        own, clustered = (
            variances(one, first, second) for one in (self.covariance_, self.cluster_covariance_)
        )
        half = self._half(own, clustered)
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
        parts = np.column_stack([z / 2, np.full(z.size, self.prediction_[-1]), -z / 2])
        shares: Floats = softmax(parts, axis=1)
        return shares

    def find_flips(self) -> dict[tuple[Any, Any], Ints]:
        """Find the battles that must be removed before the next item overtakes, and add ``flips`` to `table_`.

        Returns
        -------
        dict
            The rows of battles to remove, for each two neighbours (upper, lower).
        """
        self._refuse_davidson("Flips are")
        if not hasattr(self, "_battles"):
            raise InvalidInputError("A model that was loaded has no battles.", "fit it again to find flips.")
        if self._flips is not None:
            return self._flips
        search = FlipSearch(self._battles, self._contest, self._fitted)
        board = self._positions(self.table_["item"])
        flips, found = np.full(board.size, np.nan), {}
        with ShareProgress("finding flips", f"{board.size:,} places") as progress:
            for at, (upper, lower) in enumerate(pairwise(board.tolist())):
                progress.reach((at + 1) / board.size)
                rows = None
                if self.component_[upper] == self.component_[lower]:
                    rows = search.find(upper, lower)
                if rows is not None:
                    flips[at] = rows.size
                    found[self.items_[upper], self.items_[lower]] = rows
        self.table_["flips"], self._flips = flips, found
        return found

    def _refuse_davidson(self, subject: str) -> None:
        check_is_fitted(self)
        if self.ties == "davidson":
            raise InvalidInputError(f"{subject} not available for Davidson's model.", "use ties='half'.")

    def suggest(self, n: int = 10, goal: str | int = "board") -> list[tuple[Any, Any]]:
        """Return the pairs of items whose battle tells most, the most informative first; no pair twice.

        Parameters
        ----------
        n : int
        goal : {"board", "first"} or int
            The whole board, the first item, or the first k items.
        """
        self._refuse_davidson("suggest is")
        same = self.component_[:, None] == self.component_
        # The mean of a component has the variance of its prior.
        covariance = self.model_covariance_ + same / same.sum(axis=1) / max(self.penalty, 1e-3)
        doubt = None
        if goal != "board":
            member = (self._drawn_places() <= (1 if goal == "first" else int(goal))).mean(axis=0)
            doubt = member * (1 - member)
        chosen = choose_pairs(covariance, self.strengths_, n, doubt)
        return [(self.items_[a], self.items_[b]) for a, b in chosen]

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, object] | None = None) -> None:
        """Write the board to a model file, without its battles; `rankwise.load` reads it.

        Parameters
        ----------
        path : path
        notes : mapping, optional
            JSON values to keep beside the board.
        """
        save(self, path, notes=notes)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, title: str = "Leaderboard") -> str:
        """Return one HTML page about the board, and write it to a file; with ties="half" it includes the flips.

        Parameters
        ----------
        path : path, optional
            An existing file is replaced by a complete one.
        title : str
        """
        from rankwise.leaderboards.page import board_page  # noqa: PLC0415 - imports the report

        flips = {} if self.ties == "davidson" else self.find_flips()
        page = board_page(self, self._contest, self._fitted, self._predicting, flips, title)
        if path is not None:
            with replacing(path) as stream:
                stream.write(page.encode())
        return page

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


def _check(read: Battles, *, davidson: bool) -> None:
    """Raise unless the battles can order items, and fit in memory as a matrix of items."""
    if read.units.sum() < 2:
        told = "".join(f" ({count} rows: {reason})" for reason, count in read.left_out.items())
        raise InvalidInputError(f"There are fewer than two battles{told}.", "pass more battles.")
    is_tie = read.score == 0.5
    if is_tie.all():
        raise InvalidInputError("All battles are ties, which order nothing.", "pass battles with winners.")
    if davidson and not is_tie.any():
        raise InvalidInputError("There are no ties for Davidson's model.", "use ties='half'.")
    if read.cluster is not None and read.cluster.max() < 1:
        raise InvalidInputError("All battles are in one cluster.", "leave out cluster.")
    if not fits(80 * len(read.items) ** 2):  # about ten matrices
        raise MemoryLimitError(
            f"The covariance of {len(read.items):,} items does not fit in memory.",
            "check that the columns have ids of items, or leave out items with few battles.",
        )


def _best_prediction(contest: Contest) -> Fit:
    """Choose the penalty of predictions by the log-loss of battles that are left out one at a time."""
    fits = [contest.fit(_PENALTIES[0], small=1e-3)]
    for penalty in _PENALTIES[1:]:
        fits.append(contest.fit(penalty, fits[-1].theta, small=1e-3))
    return min(fits, key=lambda one: float(contest.weight @ contest.held_out(one)[0]))


def _nonzero(scales: Floats) -> Floats:
    return np.where(scales == 0, 1.0, scales)


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
    scales = _nonzero(features.std(axis=0))
    return features / scales, scales


def _check_reachable(contest: Contest, items: list[Any]) -> None:
    """Raise unless chains of wins lead from every item to every other one of its component."""
    n, won, lost = contest.n_items, contest.score > 0, contest.score < 1
    winner = np.concatenate([contest.first[won], contest.second[lost]])
    loser = np.concatenate([contest.second[won], contest.first[lost]])
    graph = sp.coo_array((np.ones(winner.size), (winner, loser)), shape=(n, n))
    if connected_components(graph, connection="strong")[0] == contest.component.max() + 1:
        return
    named = [items[at] for at in np.flatnonzero(np.min(contest.won_and_lost(), axis=0) == 0)[:3]]
    told = f"{', '.join(map(str, named)) or 'a group of items'} never lost or never won"
    raise InvalidInputError(
        f"With penalty=0 there is no finite estimate: {told}.", "use a penalty such as 0.1."
    )


def _diagnosed(read: Battles, contest: Contest) -> dict[str, Any]:
    """Count battles, and name items whose strengths rest on the penalty or on features alone."""
    won, lost = contest.won_and_lost()
    n, played = contest.n_items, won + lost > 0
    low, high = np.minimum(read.first, read.second), np.maximum(read.first, read.second)
    pair = low * n + high + (0 if read.cluster is None else n * n * read.cluster)
    result = np.where(read.first == low, read.score, 1 - read.score)
    both = np.intersect1d(pair[result == 1], pair[result == 0])
    kinds = np.unique(3 * pair + (2 * result).astype(np.int64))
    named = {
        "never_lost": played & (lost == 0),
        "never_won": played & (won == 0),
        "never_played": ~played,
    }
    return {
        "battles": float(contest.weight.sum()),
        "items": n,
        "components": int(contest.component.max()) + 1,
        "left_out": read.left_out,
        "unused_columns": read.unused,
        "contradictory": both.size,
        "repeated": int(read.units.sum()) - kinds.size,
        **{name: [read.items[at] for at in np.flatnonzero(mask)] for name, mask in named.items()},
    }
