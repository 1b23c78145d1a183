"""Duels in a report: wins and losses, the model's predictions, and the calibration of its probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from scipy.special import expit

from rankwise.arrays import Floats, Ints
from rankwise.automatic.calibration import Calibration
from rankwise.formula.view import ModelView
from rankwise.report.markup import alike, bar, columns, counted, decimals, listing, name, number, section

_ITEMS = 30  # items that the table shows
_BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Probability = Callable[[Floats], Floats]
Bin = tuple[float, float, float, float, float]  # low, high, weight of pairs, mean probability, share of wins


def probability_of(view: ModelView) -> Probability | None:
    """Return the function from differences of scores to probabilities; None if the model has none."""
    if view.calibration is not None:
        return Calibration(*view.calibration)
    return (lambda difference: np.asarray(expit(difference))) if view.is_probability else None


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


def duels_section(
    pairs: Ints,
    weight: Floats,
    scores: Floats,
    probability: Probability | None,
    names: Sequence[str] | None,
    thing: str,
) -> str:
    """Show the items with their wins and losses beside the model's, and how far probabilities can be believed."""
    winner, loser = pairs.T
    won, lost = (np.bincount(side, weights=weight, minlength=scores.size) for side in (winner, loser))
    fought = np.flatnonzero(won + lost)
    order = fought[np.argsort(-scores[fought], kind="stable")]
    shown = order[:_ITEMS]
    ranks = np.searchsorted(-scores[order], -scores[shown], side="left") + 1
    cells: dict[str, Iterable[str]] = {
        "#rank": map(str, ranks.tolist()),
        thing: [name(f"row {row}" if names is None else names[row]) for row in shown.tolist()],
        "#score": alike(scores[shown].tolist()),
        "#won": map(number, won[shown].tolist()),
        "#lost": map(number, lost[shown].tolist()),
    }
    expectation, believed = "", ""
    if probability is not None:
        chance = probability(scores[winner] - scores[loser])
        expected = np.bincount(winner, weights=weight * chance, minlength=scores.size)
        expected += np.bincount(loser, weights=weight * (1 - chance), minlength=scores.size)
        cells["#wins expected"] = [decimals(value, 1) for value in expected[shown].tolist()]
        expectation = ", and about as often as expected, which is the sum of its probabilities over its duels"
        log_loss = float(np.average(-np.log(np.clip(chance, 1e-15, 1)), weights=weight))
        believed = reliability_table(reliability(chance, weight), log_loss)
    more = fought.size - shown.size
    rest = f"<p><small>{counted(more, f'more {thing}')} not shown.</small></p>" if more else ""
    return section(
        "duels",
        "Wins and losses",
        f"<p>{counted(fought.size, thing)} fought. Who stands high should have won more than lost{expectation}.</p>"
        f"{columns('Wins and losses', cells)}{rest}{believed}",
    )


def reliability_table(bins: Sequence[Bin], log_loss: float) -> str:
    """Show the probabilities of favourites beside the shares of their wins."""
    head = ["chance of the favourite", "#duels", "#said", "#won", "~"]
    rows = [
        (f"{low:.0%} to {high:.0%}", number(count), f"{said:.0%}", f"{right:.0%}", bar(right))
        for low, high, count, said, right in bins
    ]
    return (
        "<h3>Can its probabilities be believed?</h3><p>Of the duels whose favourite it gave such a chance, so many "
        "were won by the favourite. The two shares should agree. "
        f"Log-loss {decimals(log_loss)}; a coin has {decimals(float(np.log(2)))}.</p>"
        + listing("Probabilities", head, rows)
    )
