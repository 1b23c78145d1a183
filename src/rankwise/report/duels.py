"""Duels in a report: wins and losses, the model's predictions, and the calibration of its probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit

from rankwise.arrays import Floats, Ints
from rankwise.automatic.calibration import Calibration
from rankwise.losses import LOSSES
from rankwise.report.markup import alike, counted, decimals, listing, name, number, section

__all__ = [
    "Duels",
    "Record",
    "duels_section",
    "look_at_duels",
    "probability_of",
    "record_errors",
    "reliability",
    "reliability_table",
]

_ITEMS = 30  # items that the table shows
_BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Probability = Callable[[Floats], Floats]
Bin = tuple[float, float, float, float, float]  # low, high, weight of pairs, mean probability, share of wins


@dataclass(frozen=True)
class Record:
    """One item: its place, its score, how often it won and lost, and how many wins the model expected (or None)."""

    called: str
    rank: int
    score: float
    won: float
    lost: float
    expected: float | None


@dataclass(frozen=True)
class Duels:
    """Statistics of duels.

    Attributes
    ----------
    records : list of Record
        By score.
    n_items : int
        How many items fought at all.
    bins : list of (low, high, pairs, said, right)
        How probable the model held its favourite, and in which share of the pairs that one won; empty where it has
        no probabilities.
    log_loss : float or None
    """

    records: list[Record]
    n_items: int
    bins: list[Bin]
    log_loss: float | None


def probability_of(ranker: object, calibration: Sequence[Sequence[float]] | None) -> Probability | None:
    """Return the function from differences of scores to probabilities; None if the model has none."""
    if calibration is not None:
        return Calibration(*calibration)
    loss = getattr(ranker, "loss_", None)
    if loss in LOSSES and LOSSES[loss].is_probability:
        return lambda difference: np.asarray(expit(difference))
    return None


def look_at_duels(
    pairs: Ints,
    weight: Floats,
    scores: Floats,
    probability: Probability | None,
    names: Sequence[str] | None,
) -> Duels:
    """Count wins and losses, and compare them with the model's predictions."""
    winner, loser = pairs.T
    won, lost = (np.bincount(side, weights=weight, minlength=scores.size) for side in (winner, loser))
    fought = np.flatnonzero(won + lost)
    order = fought[np.argsort(-scores[fought], kind="stable")]
    ranks = np.searchsorted(-scores[order], -scores[order], side="left") + 1
    expected, bins, log_loss = None, [], None
    if probability is not None:
        chance = probability(scores[winner] - scores[loser])
        expected = np.bincount(winner, weights=weight * chance, minlength=scores.size)
        expected += np.bincount(loser, weights=weight * (1 - chance), minlength=scores.size)
        bins = reliability(chance, weight)
        log_loss = float(np.average(-np.log(np.clip(chance, 1e-15, 1)), weights=weight))
    records = [
        Record(
            f"row {row}" if names is None else names[row],
            int(rank),
            float(scores[row]),
            float(won[row]),
            float(lost[row]),
            None if expected is None else float(expected[row]),
        )
        for row, rank in zip(order, ranks, strict=True)
    ]
    return Duels(records[:_ITEMS], fought.size, bins, log_loss)


def reliability(chance: Floats, weight: Floats) -> list[Bin]:
    """Compare the predicted and the observed wins of favourites; one at probability one half counts half a win."""
    said = np.maximum(chance, 1 - chance)
    right = np.where(chance > 0.5, 1.0, np.where(chance == 0.5, 0.5, 0.0))
    place = np.clip(np.searchsorted(_BINS, said, side="right") - 1, 0, len(_BINS) - 2)
    found = []
    for at, (low, high) in enumerate(pairwise(_BINS)):
        own = (place == at) & (weight > 0)
        if own.any():
            shares = [float(np.average(values[own], weights=weight[own])) for values in (said, right)]
            found.append((low, high, float(weight[own].sum()), shares[0], shares[1]))
    return found


def record_errors(pairs: Ints, weight: Floats, n_rows: int) -> Floats | None:
    """Return the errors of betting on the item that won more of its other duels; None where none fought twice."""
    winner, loser = pairs[:, 0], pairs[:, 1]
    won = np.bincount(winner, weights=weight, minlength=n_rows)
    fought = won + np.bincount(loser, weights=weight, minlength=n_rows)
    others = fought[pairs] - weight[:, None]  # without the duel that is bet on
    if not (others > 0).any():
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        first = np.where(others[:, 0] > 0, (won[winner] - weight) / others[:, 0], 0.5)
        second = np.where(others[:, 1] > 0, won[loser] / others[:, 1], 0.5)
    # Shares are sums in another order: equal ones may differ by rounding.
    equal = np.isclose(first, second, rtol=0, atol=1e-12)
    return np.where(equal, 0.5, np.where(first < second, 1.0, 0.0))


def duels_section(duels: Duels, thing: str) -> str:
    """Show the items with their wins and losses, and how far probabilities can be believed."""
    has_expected = duels.log_loss is not None
    head = ["#rank", thing, "#score", "#won", "#lost", *(["#wins expected"] if has_expected else [])]
    rows = [
        [
            str(one.rank),
            name(one.called),
            score,
            number(one.won),
            number(one.lost),
            *([decimals(one.expected, 1)] if has_expected else []),
        ]
        for one, score in zip(duels.records, alike([one.score for one in duels.records]), strict=True)
    ]
    more = duels.n_items - len(duels.records)
    rest = f"<p><small>{counted(more, f'more {thing}')} not shown.</small></p>" if more else ""
    expectation = ", and about as often as expected, which is the sum of its probabilities over its duels"
    body = (
        f"<p>{counted(duels.n_items, thing)} fought. Who stands high should have won more than lost"
        f"{expectation if has_expected else ''}.</p>{listing('Wins and losses', head, rows)}{rest}"
    )
    if duels.bins and duels.log_loss is not None:
        body += reliability_table(duels.bins, duels.log_loss)
    return section("duels", "Wins and losses", body)


def reliability_table(bins: Sequence[Bin], log_loss: float) -> str:
    """Show the probabilities of favourites beside the shares of their wins."""
    shares = [
        (
            f"{low:.0%} to {high:.0%}",
            number(count),
            f"{said:.0%}",
            f"{right:.0%}",
            f'<div class="length"><i style="width:{100 * right:.1f}%"></i></div>',
        )
        for low, high, count, said, right in bins
    ]
    return (
        "<h3>Can its probabilities be believed?</h3><p>Of the duels whose favourite it gave such a chance, so many "
        "were won by the favourite. The two shares should agree. "
        f"Log-loss {decimals(log_loss)}; a coin has {decimals(float(np.log(2)))}.</p>"
        + listing("Probabilities", ["chance of the favourite", "#duels", "#said", "#won", "~"], shares)
    )
