"""One HTML page about a board, with the style and the content security policy of a model's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwise.arrays import AnyArray, Ints
from rankwise.leaderboards.contest import Contest, Fit, Rates
from rankwise.report import markup as html
from rankwise.report.evidence import reliability, reliability_table

if TYPE_CHECKING:
    from rankwise.leaderboards.estimator import BradleyTerry

_ITEMS = 200  # rows of the board, and neighbours
_PAIRS = 15
_NAMED = 12  # battles of two neighbours, or items, that are named


def board_page(
    model: BradleyTerry,
    contest: Contest,
    fitted: Fit,
    predicting: Fit,
    flips: Mapping[tuple[Any, Any], Ints],
    title: str,
) -> str:
    """Return the page of a board with its fits of strengths and of predictions, and the rows of `find_flips`."""
    found, board = model.diagnostics_, model.table_
    tiles = {"battles": found["battles"], "items": found["items"], "tiers": board["tier"].max()}
    if found["components"] > 1:
        tiles["components"] = found["components"]
    head = "".join(
        f'<div class="tile"><b>{html.number(float(count))}</b><span>{kind}</span></div>'
        for kind, count in tiles.items()
    )
    sections = {
        "board": ("Board", _board(board, model.level)),
        "results": ("Expected and observed", _results(model, contest, fitted.rates)),
        "calibration": ("Calibration", _calibration(contest, predicting)),
        "effects": ("Effects", _effects(model.effects_) if model.effects_["value"].size else ""),
        "deciding": ("Deciding battles", _deciding(flips, found["battles"]) if flips else ""),
        "data": ("Data", _data(model)),
    }
    lead = f"Bradley-Terry strengths with {model.level:.0%} intervals, ties: {model.ties}"
    return html.whole_page(
        title,
        f'<p class="lead">{html.text(lead)}</p><div class="tiles">{head}</div>',
        {label: html.section(key, label, body) for key, (label, body) in sections.items() if body},
        {},
    )


def _board(board: Mapping[str, AnyArray], level: float) -> str:
    low, high = float(board["low"].min()), float(board["high"].max())
    counts = [key for key in ("battles", "wins", "ties", "flips", "component") if key in board]
    rows = []
    for at, strength in enumerate(html.alike(board["strength"][:_ITEMS].tolist())):
        row = {key: column[at] for key, column in board.items()}
        rows.append(
            [
                html.name(row["item"]),
                html.interval((low, high), row["low"], row["high"], row["strength"]),
                strength,
                html.brackets(row["low"], row["high"]),
                str(row["place"]),
                f"{row['place_low']} to {row['place_high']}",
                str(row["tier"]),
                f"{row['p_first']:.1%}",
                *(html.number(float(row[key])) for key in counts),
            ]
        )
    head = ["item", "~", "#strength", "#interval", "#place", "#places", "#tier", "#first"]
    rest = len(board["item"]) - len(rows)
    notes = f"{html.counted(rest, 'more item')} not shown. " if rest else ""
    notes += "Items are in a lower tier than every item that is significantly better. "
    notes += "<i>flips</i>: battles to remove before the next item overtakes." if "flips" in board else ""
    return (
        f"<p>A difference of 1 between strengths means odds of 2.7 to 1. Intervals of strengths and places have "
        f"a level of {level:.0%}; <i>first</i> is the probability of being the best.</p>"
        f"{html.listing('Board', [*head, *(f'#{key}' for key in counts)], rows, 'board')}<p><small>{notes}</small></p>"
    )


def _results(model: BradleyTerry, contest: Contest, rates: Rates) -> str:
    """Compare the points of each pair of items with those that the model expects."""
    n, ahead = contest.n_items, contest.first < contest.second
    low, high = np.minimum(contest.first, contest.second), np.maximum(contest.first, contest.second)
    keys, pair = np.unique(low * n + high, return_inverse=True)
    observed = np.where(ahead, contest.points, contest.weight - contest.points)
    wanted = contest.weight * np.where(ahead, rates.expected, 1 - rates.expected)
    columns = (contest.weight, observed, wanted, rates.curvature[0])
    total, points, expected, variance = (np.asarray(np.bincount(pair, one)) for one in columns)
    residual = (points - expected) / np.sqrt(variance)
    rows = [
        [
            html.name(model.items_[keys[at] // n]),
            html.name(model.items_[keys[at] % n]),
            html.number(total[at]),
            html.number(points[at]),
            html.decimals(expected[at], 1),
            html.decimals(residual[at], 1),
        ]
        for at in np.argsort(-np.abs(residual), kind="stable")[:_PAIRS]
    ]
    head = ["first item", "second item", "#battles", "#points", "#expected", "#deviation"]
    return (
        f"<p>{html.counted(keys.size, 'pair')} of items met. The pairs furthest from their expectation, in standard "
        f"deviations; {html.number((np.abs(residual) > 3).sum())} of them are beyond 3. Many such pairs mean that one "
        f"strength per item is not enough.</p>{html.listing('Expected and observed', head, rows, 'board pairs')}"
    )


def _calibration(contest: Contest, predicting: Fit) -> str:
    """Compare probabilities with results, each battle left out of the fit that predicts it."""
    score, expected = contest.score, contest.held_out(predicting)[1]
    chance = np.concatenate([expected, 1 - expected])
    weight = np.concatenate([contest.weight * score, contest.weight * (1 - score)])
    chance, weight = chance[weight > 0], weight[weight > 0]
    log_loss = float(np.average(-np.log(np.maximum(chance, 1e-15)), weights=weight))
    words = "<p>Each battle is predicted by a fit without it; a tie is half a win of both.</p>"
    return words + reliability_table(reliability(chance, weight), log_loss)


def _effects(effects: Mapping[str, AnyArray]) -> str:
    rows = [
        [
            html.name(effect),
            html.decimals(value, 3),
            html.brackets(low, high),
            html.decimals(float(np.exp(value)), 3),
        ]
        for effect, value, _, low, high in zip(*effects.values(), strict=True)
    ]
    words = "<p>Strengths are adjusted for the order of presentation and for columns of a battle.</p>"
    return words + html.listing(
        "Effects", ["effect", "#coefficient", "#interval", "#factor of the odds"], rows
    )


def _deciding(flips: Mapping[tuple[Any, Any], Ints], battles: float) -> str:
    rows = [
        [
            html.name(upper),
            html.name(lower),
            html.number(removed.size),
            f"{removed.size / battles:.2%}",
            _shown(removed),
        ]
        for (upper, lower), removed in list(flips.items())[:_ITEMS]
    ]
    head = ["item", "would be overtaken by", "#battles", "#of all", "rows, from 0"]
    return (
        "<p>The fewest battles whose removal exchanges two neighbours, the most influential first; a refit confirmed "
        f"each number.</p>{html.listing('Deciding battles', head, rows, 'board pairs')}"
    )


def _data(model: BradleyTerry) -> str:
    facts = {**model.diagnostics_, **model.get_params(deep=False)}
    facts["left_out"] = [f"{count} rows: {reason}" for reason, count in facts["left_out"].items()]
    shown = {key: _shown(value) for key, value in facts.items()}
    return html.fact_table({key.replace("_", " "): value for key, value in shown.items() if value})


def _shown(value: Any) -> str:
    if isinstance(value, list | np.ndarray):
        return ", ".join(map(str, value[:_NAMED])) + ("…" if len(value) > _NAMED else "")
    return str(value) if isinstance(value, bool | str) else html.number(value)
