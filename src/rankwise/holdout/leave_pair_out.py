"""Leave-pair-out of one ranking: which closed form answers, what it takes, and the errors it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.holdout.compared_pairs import ComparedRows, compared_pair_out_error
from rankwise.holdout.decomposition import HoldOut
from rankwise.holdout.pairs import leave_pair_out_error
from rankwise.problems.training import TrainingData
from rankwise.runtime.memory import MemoryBudget

__all__ = ["PairForm", "counted_rows", "pair_forms", "pair_out_errors", "refusal"]


# Floating-point operations; a processor does 3 to 25 thousand million a second, the more the larger its matrices.
_AFFORDABLE = 5e11  # up to so many "auto" takes leave-pair-out: a weighted 1500 rows
_MOST = 3e13  # up to so many it is done for whoever asks for it: an hour or so
_NODES = 6  # alphas between which those of pairs of different weight are interpolated, about


@dataclass(frozen=True)
class PairForm:
    """How one output answers.

    Attributes
    ----------
    price : float
        Floating-point operations; infinite where there is no closed form.
    n_bytes : float
        The largest arrays together, beside the decomposition.
    description : str
        What stands against it, as the end of a sentence that begins with "leave-pair-out".
    """

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
    costly = [form for form in forms if form.price > most]
    if costly:
        return costly[0].description
    total = sum(form.price for form in forms)
    if total > most:
        return f"would take about {total:.0e} operations for {len(forms)} outputs"
    needed = max(form.n_bytes for form in forms)
    return None if MemoryBudget().allows(int(needed)) else f"would take {needed / 2**30:.1f} GiB of memory"


def pair_out_errors(hold_out: HoldOut, data: TrainingData, outputs: Sequence[int], alphas: Floats) -> Floats:
    """Return the share of the pairs that models without their rows order wrongly, (alphas, outputs).

    Parameters
    ----------
    hold_out : HoldOut
        Of the outputs' graph, in which every two rows are compared.
    """
    rows, n_threads = counted_rows(data), data.design.n_threads
    weight, code = _weights(data, rows), data.row_codes[rows]
    labels = [data.columns[output][rows] for output in outputs]
    if rows.size < data.queries.n_rows:
        hold_out = hold_out.of_rows(rows)
    compared = [ComparedRows(y, weight, data.cost, data.query_weight) for y in labels]
    if data.cost == "magnitude" and all(one.is_even for one in compared):
        # Several outputs share a graph only where no label changes the weight of pairs, and so alpha.
        pair = _a_pair(labels[0])
        factor = float(compared[0].alpha_factor(*pair)[0])
        root_share = np.sqrt(weight / weight.sum())
        return leave_pair_out_error(
            hold_out, np.column_stack(labels), root_share, alphas * factor, code=code, n_threads=n_threads
        )
    errors = [
        compared_pair_out_error(hold_out, one, alphas, code=code, n_threads=n_threads) for one in compared
    ]
    return np.column_stack(errors)


def _form(data: TrainingData, y: Floats, weight: Floats, rank: int, n_alphas: int) -> PairForm:
    n_rows = y.size
    if data.cost == "relative" or (data.ties == "exclude" and np.unique(y).size < n_rows):
        setting = "cost='relative'" if data.cost == "relative" else "ties='exclude'"
        return PairForm(np.inf, 0.0, f"has no closed form for {setting}")
    one = ComparedRows(y, weight, data.cost, data.query_weight)
    products = 3 if data.cost == "unit" else 1
    nodes = 1 if one.is_even else _NODES
    price = float(n_alphas * nodes * n_rows**2 * (products * rank + 20.0))
    if data.cost == "magnitude" and one.is_even:
        price = 0.0  # what leave-pair-out takes anyway: "auto" asks about rows alone
    return PairForm(price, 24.0 * products * n_rows * rank, f"would take about {price:.0e} operations")


def _weights(data: TrainingData, rows: Rows) -> Floats:
    return np.ones(rows.size) if data.row_weight is None else data.row_weight[rows]


def _a_pair(y: Floats) -> tuple[Rows, Rows]:
    """Return two rows with different labels."""
    return np.array([np.argmin(y)]), np.array([np.argmax(y)])
