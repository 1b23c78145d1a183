"""Leave-pair-out of one ranking: which closed form answers, what it takes, and the errors it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.holdout.compared_pairs import compared_pair_out_error
from rankwise.holdout.decomposition import HoldOut
from rankwise.holdout.pairs import leave_pair_out_error
from rankwise.pairs.compared import ComparedRows
from rankwise.runtime.memory import MemoryBudget

__all__ = ["PairForm", "pair_forms", "pair_out_errors", "refusal"]


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


def pair_forms(rankings: Sequence[ComparedRows] | None, rank: int, n_alphas: int) -> list[PairForm]:
    """Return how each output would answer; None where not every two rows are compared."""
    if rankings is None:
        return [PairForm(np.inf, 0.0, "has no closed form for ties='exclude' or cost='relative'")]
    return [_form(one, min(rank, one.y.size), n_alphas) for one in rankings]


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


def pair_out_errors(
    hold_out: HoldOut, rankings: Sequence[ComparedRows], alphas: Floats, code: Rows, n_threads: int
) -> Floats:
    """Return the share of the pairs that models without their rows order wrongly, (alphas, outputs).

    Parameters
    ----------
    hold_out : HoldOut
        Of the graph that the rankings share.
    code : (all rows,) int64
        Rows that share a number tie.
    """
    rows, weight = rankings[0].rows, rankings[0].weight
    if rows is not None:
        code = code[rows]
        hold_out = hold_out if rows.size == hold_out.coordinates.shape[0] else hold_out.of_rows(rows)
    if all(one.cost == "magnitude" and one.is_even for one in rankings):
        # Several outputs share a graph only where no label changes the weight of pairs, and so alpha.
        pair = _a_pair(rankings[0].y)
        factor = float(rankings[0].alpha_factor(*pair)[0])
        root_share = np.sqrt(weight / weight.sum())
        labels = np.column_stack([one.y for one in rankings])
        return leave_pair_out_error(
            hold_out, labels, root_share, alphas * factor, code=code, n_threads=n_threads
        )
    errors = [
        compared_pair_out_error(hold_out, one, alphas, code=code, n_threads=n_threads) for one in rankings
    ]
    return np.column_stack(errors)


def _form(one: ComparedRows, rank: int, n_alphas: int) -> PairForm:
    n_rows = one.y.size
    products = 3 if one.cost == "unit" else 1
    nodes = 1 if one.is_even else _NODES
    price = float(n_alphas * nodes * n_rows**2 * (products * rank + 20.0))
    if one.cost == "magnitude" and one.is_even:
        price = 0.0  # what leave-pair-out takes anyway: "auto" asks about rows alone
    return PairForm(price, 24.0 * products * n_rows * rank, f"would take about {price:.0e} operations")


def _a_pair(y: Floats) -> tuple[Rows, Rows]:
    """Return two rows with different labels."""
    return np.array([np.argmin(y)]), np.array([np.argmax(y)])
