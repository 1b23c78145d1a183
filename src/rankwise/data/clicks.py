"""Preferences from clicks.

Joachims (2002), "Optimizing search engines using clickthrough data": users read from the top, so a user who clicks
a result has seen the results above it and skipped them. "Click > skip above" counts only these as losers. Clicks
still depend on the position of a result. Weights of one over the probability that a position is examined (Joachims,
Swaminathan and Schnabel, 2017) correct this bias on average, but add variance; bounding the weights limits it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.data.queries import Queries
from rankwise.data.validation import check_choice, check_numbers, check_qid
from rankwise.exceptions import InvalidInputError


def pairs_from_clicks(
    session: npt.ArrayLike,
    position: npt.ArrayLike,
    clicked: npt.ArrayLike,
    *,
    against: Literal["above", "all"] = "above",
    propensity: npt.ArrayLike | None = None,
) -> tuple[Ints, Floats]:
    """Turn a log of shown results into preferences: clicked results beat skipped results.

    Parameters
    ----------
    session : array-like of shape (entries,)
        The list in which each result was shown (one query asked once); anything hashable, in any order.
    position : array-like of shape (entries,)
        The position of the result in its list; smaller is higher.
    clicked : array-like of shape (entries,)
        Whether it was clicked: True or False, 1 or 0.
    against : {"above", "all"}, default="above"
        Which results of the same list that were not clicked a clicked one beats: those above it ("click >
        skip above"), or all of them.
    propensity : array-like of shape (entries,), optional
        The probability that a user looks at the result, such as ``position ** -0.7``. A pair then weighs one over its
        winner's propensity.

    Returns
    -------
    pairs : ndarray of shape (pairs, 2)
        Winner and loser as entry numbers of the log; with ``row``, the row of X of each entry, ``row[pairs]``
        is the argument of `RankRLS.fit_pairs` (drop pairs of a row with itself first). Sorted by session and
        position of the winner. Empty if no result was skipped.
    weight : ndarray of shape (pairs,)
        All 1 without propensities.

    Examples
    --------
    Of three results the second and third were clicked; both beat the first.

    >>> from rankwise.data import pairs_from_clicks
    >>> pairs, weight = pairs_from_clicks(["s1"] * 3, [1, 2, 3], [0, 1, 1], propensity=[1.0, 0.5, 0.25])
    >>> pairs.tolist()
    [[1, 0], [2, 0]]
    >>> weight.tolist()
    [2.0, 4.0]
    """
    check_choice("against", against, ("above", "all"))
    places = check_numbers("position", position)
    sessions = check_qid(session, places.size, name="session", what="session", beside="position")
    clicks = check_numbers("clicked", clicked, places.size)
    if not np.isin(clicks, (0, 1)).all():
        raise InvalidInputError(
            "clicked must be True or False, 1 or 0.",
            "for counts or dwell times pass a condition, such as count > 0.",
        )
    seen = (
        np.ones(places.size) if propensity is None else check_numbers("propensity", propensity, places.size)
    )
    if (seen <= 0).any() or (seen > 1).any():
        raise InvalidInputError(
            "propensity must hold probabilities above 0 and up to 1.",
            "replace zeros by the smallest propensity you trust.",
        )

    order = np.lexsort((places, sessions.codes))
    _check_positions(places[order], sessions, order)
    is_click = clicks[order] == 1
    clicked_at, passed_at = np.flatnonzero(is_click), np.flatnonzero(~is_click)
    # Losers of a click are a run of `passed_at`: from the session's first to a bound that `against` names.
    session_start, session_end = sessions.offsets[:-1], sessions.offsets[1:]
    here = sessions.codes[order][clicked_at]
    last = session_end[here] if against == "all" else clicked_at
    first_loser = np.searchsorted(passed_at, session_start[here])
    n_losers = np.searchsorted(passed_at, last) - first_loser
    winner = np.repeat(clicked_at, n_losers)
    step = np.arange(winner.size) - np.repeat(np.cumsum(n_losers) - n_losers, n_losers)
    loser = passed_at[np.repeat(first_loser, n_losers) + step]
    pairs = np.column_stack([order[winner], order[loser]]).astype(np.int64, copy=False)
    return pairs, 1.0 / seen[pairs[:, 0]]


def _check_positions(sorted_places: Floats, sessions: Queries, order: Ints) -> None:
    codes = sessions.codes[order]
    twice = (sorted_places[1:] == sorted_places[:-1]) & (codes[1:] == codes[:-1])
    if twice.any():
        at = int(np.argmax(twice))
        raise InvalidInputError(
            f"Session {sessions.ids[codes[at]]!r} has two results at position {sorted_places[at]:g}.",
            "a session is one list shown once: give each showing an id of its own.",
        )
