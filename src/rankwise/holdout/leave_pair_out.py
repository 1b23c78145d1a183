"""Leave-pair-out of one ranking: which closed form answers, what it takes, and the errors it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.holdout.compared_pairs import ComparedRows, compared_pair_out_error
from rankwise.holdout.decomposition import HoldOut, PrimalHoldOut
from rankwise.holdout.level_pairs import level_pair_out_error
from rankwise.holdout.levels import LevelRanking
from rankwise.holdout.pairs import leave_pair_out_error
from rankwise.problems.training import TrainingData
from rankwise.runtime.memory import MemoryBudget

__all__ = ["PairForm", "counted_rows", "pair_forms", "pair_out_errors", "refusal"]


# Floating-point operations; a processor does 3 to 25 thousand million a second, the more the larger its matrices.
_AFFORDABLE = 5e11  # up to so many "auto" takes leave-pair-out: three levels of 2000 rows, or a weighted 1500
_MOST = 3e13  # up to so many it is done for whoever asks for it: an hour or so
_NODES = 6  # alphas between which those of pairs of different weight are interpolated, about


@dataclass(frozen=True)
class PairForm:
    """How one output answers.

    Attributes
    ----------
    kind : {"compared", "shared", "decompositions", "none"}
        Every two rows are compared; or by levels, which share one decomposition or take one each.
    price : float
        Floating-point operations.
    n_bytes : float
        The largest arrays together, beside the decomposition.
    description : str
        What stands against it, as the end of a sentence that begins with "leave-pair-out".
    """

    kind: str
    price: float
    n_bytes: float
    description: str


def counted_rows(data: TrainingData) -> Rows:
    """Return the rows that weigh something: the others are as good as absent."""
    n_rows = data.queries.n_rows
    return np.arange(n_rows) if data.row_weight is None else np.flatnonzero(data.row_weight > 0)


def pair_forms(data: TrainingData, rank: int, n_alphas: int) -> list[PairForm]:
    """Return how each output would answer."""
    rows = counted_rows(data)
    rank = min(rank, rows.size)
    return [_form(data, column[rows], _weights(data, rows), rank, n_alphas) for column in data.columns]


def refusal(forms: Sequence[PairForm], *, is_asked_for: bool) -> str | None:
    """Return why leave-pair-out is not taken, or None."""
    most = _MOST if is_asked_for else _AFFORDABLE
    if any(form.kind == "none" for form in forms):
        return next(form.description for form in forms if form.kind == "none")
    costly = [form for form in forms if form.price > most]
    if costly:
        return costly[0].description
    total = sum(form.price for form in forms)
    if total > most:
        return f"would take about {total:.0e} operations for {len(forms)} outputs"
    needed = max(form.n_bytes for form in forms)
    return None if MemoryBudget().allows(int(needed)) else f"would take {needed / 2**30:.1f} GiB of memory"


def pair_out_errors(
    hold_out: HoldOut,
    reweighted: Callable[[Rows, Floats], PrimalHoldOut],
    data: TrainingData,
    outputs: Sequence[int],
    alphas: Floats,
) -> Floats:
    """Return the share of the pairs that models without their rows order wrongly, (alphas, outputs).

    Parameters
    ----------
    hold_out : HoldOut
        Of the outputs' graph.
    reweighted : callable
        Takes rows and their degrees; see `rankwise.holdout.levels.Reweighted`.
    """
    rows, n_threads = counted_rows(data), data.design.n_threads
    weight, code = _weights(data, rows), data.row_codes[rows]
    labels = [data.columns[output][rows] for output in outputs]
    forms = [_form(data, y, weight, min(hold_out.rank, rows.size), alphas.size) for y in labels]
    if rows.size < data.queries.n_rows:
        hold_out = hold_out.of_rows(rows)
    compared = [ComparedRows(y, weight, data.cost, data.query_weight) for y in labels]
    if data.cost == "magnitude" and all(
        form.kind == "compared" and one.is_even for form, one in zip(forms, compared, strict=True)
    ):
        # Several outputs share a graph only where no label changes the weight of pairs, and so alpha.
        pair = _a_pair(labels[0])
        factor = float(compared[0].alpha_factor(*pair)[0])
        root_share = np.sqrt(weight / weight.sum())
        return leave_pair_out_error(
            hold_out, np.column_stack(labels), root_share, alphas * factor, code=code, n_threads=n_threads
        )
    errors = []
    for y, form, one in zip(labels, forms, compared, strict=True):
        if form.kind == "compared":
            errors.append(compared_pair_out_error(hold_out, one, alphas, code=code, n_threads=n_threads))
        else:
            error = level_pair_out_error(
                partial(reweighted, rows),
                _ranking(data, y),
                alphas / _pair_weight(data, float(weight[0])),
                shares=form.kind == "shared",
                code=code,
                n_threads=n_threads,
            )
            errors.append(error)
    return np.column_stack(errors)


def _form(data: TrainingData, y: Floats, weight: Floats, rank: int, n_alphas: int) -> PairForm:
    n_rows = y.size
    if data.cost != "relative" and (data.ties == "include" or np.unique(y).size == n_rows):
        one = ComparedRows(y, weight, data.cost, data.query_weight)
        products = 3 if data.cost == "unit" else 1
        nodes = 1 if one.is_even else _NODES
        price = float(n_alphas * nodes * n_rows**2 * (products * rank + 20.0))
        if data.cost == "magnitude" and one.is_even:
            price = 0.0  # what leave-pair-out takes anyway: "auto" asks about rows alone
        n_bytes = 24.0 * products * n_rows * rank
        return PairForm("compared", price, n_bytes, f"would take about {price:.0e} operations")
    what = "cost='relative'" if data.cost == "relative" else "ties='exclude'"
    if np.ptp(weight) > 0:
        return PairForm("none", 0.0, 0.0, f"has no closed form for {what} with rows that weigh differently")
    ranking = _ranking(data, y)
    n_levels = ranking.values.size
    description = (
        f"takes a decomposition for each of {n_levels * (n_levels - 1) // 2} pairs of levels with {what}"
    )
    n_bytes = 8.0 * (n_rows * (2 * n_rows + 3 * rank + 3 * n_levels) + 5 * n_levels**2)
    best = PairForm("decompositions", ranking.price(rank, n_alphas, shares=False), n_bytes, description)
    if ranking.is_multipartite:
        price = ranking.price(rank, n_alphas, shares=True)
        if price < best.price:
            best = PairForm("shared", price, n_bytes, f"would take about {price:.0e} operations with {what}")
    return best


def _ranking(data: TrainingData, y: Floats) -> LevelRanking:
    return LevelRanking.of_labels(y, ties=data.ties, cost=data.cost, query_weight=data.query_weight)


def _weights(data: TrainingData, rows: Rows) -> Floats:
    return np.ones(rows.size) if data.row_weight is None else data.row_weight[rows]


def _pair_weight(data: TrainingData, weight: float) -> float:
    """Return how many times what it would be a pair weighs where every row weighs so much."""
    power = {"size": 1, "pairs": 2, "equal": 0}[data.query_weight]
    importance = 1.0 if data.importance is None else float(data.importance[0])
    return max(weight**power * importance, np.finfo(np.float64).tiny)


def _a_pair(y: Floats) -> tuple[Rows, Rows]:
    """Return two rows with different labels."""
    return np.array([np.argmin(y)]), np.array([np.argmax(y)])
