"""Leave-pair-out of one ranking: choice of the closed form, its cost, and its errors.

Each pair is scored by the model that saw neither of its rows. Without the rows i and j, ``e_U`` solves the 2 × 2 system
``T_UU e_U = (Tt)_U`` with ``T = M - uu'``, so a pair costs O(1) once ``T`` is there, and the held-out difference is
``(y_i - y_j) - (e_i - e_j)``. "size" convention; the 2009 paper's equation 38, whose pairs weigh 1, is this with
``alpha / (m - 2)``. Other weights and unit cost are in `rankwise.holdout.compared_pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankwise import _core
from rankwise.arrays import Floats, Rows
from rankwise.holdout.compared_pairs import compared_pair_out_error, leaves_one_level, sum_over_blocks
from rankwise.holdout.decomposition import HoldOut
from rankwise.pairs.pairs import ComparedRows
from rankwise.runtime.memory import MemoryBudget
from rankwise.runtime.threads import blas_held

__all__ = [
    "PairForm",
    "leave_pair_out_error",
    "pair_forms",
    "pair_out_errors",
    "refusal",
]


# Floating-point operations; a processor does 3 to 25 thousand million a second, the more the larger its matrices.
_AFFORDABLE = 5e11  # up to so many "auto" takes leave-pair-out: a weighted 1500 rows
_MOST = 3e13  # up to so many it is done for whoever asks for it: an hour or so
_ROUNDING = 1e-11
_PAIR_BLOCK = 1 << 18  # entries of T made at a time: 2 MB
_NODES = 6  # alphas between which those of pairs of different weight are interpolated, about


@dataclass(frozen=True)
class PairForm:
    """The closed form for one output.

    Attributes
    ----------
    price : float
        Floating-point operations; infinite without a closed form.
    n_bytes : float
        The largest arrays together, beside the decomposition.
    description : str
        The obstacle to it, as the end of a sentence that begins with "leave-pair-out".
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


def leave_pair_out_error(
    decomposition: HoldOut,
    y: Floats,
    root_share: Floats,
    alphas: Floats,
    *,
    code: Rows | None = None,
    n_threads: int = 1,
) -> Floats:
    """Return the share of the pairs with different labels that the models fitted without them order wrongly.

    A tie counts one half. One minus this is the averaged leave-pair-out AUC where y has two levels. A pair weighs the
    product of its rows' weights.

    Parameters
    ----------
    decomposition : HoldOut
        Of the centered problem ("size", ties included, magnitudes).
    y : (rows, outputs) float64
    root_share : (rows,) float64
        ``u``: the root of each row's share of the total weight.
    alphas : (alphas,) float64
    code : (rows,) int64, optional
        Equal rows share a number: they tie, however small alpha is and however large its rounding errors.
    n_threads : int
        The number of threads that share the blocks of pairs.

    Returns
    -------
    (alphas, outputs) float64
    """
    n_rows, n_outputs = y.shape
    decomposition = decomposition.centred(root_share)
    residual = decomposition.residual(_centred(y, root_share), alphas)
    residual = np.ascontiguousarray(np.moveaxis(residual, 2, 1))
    diagonals = np.ascontiguousarray(decomposition.diagonals(alphas))
    is_weighted = bool(np.ptp(root_share) > 0)
    labels = np.ascontiguousarray(y.T)
    levels = [_level(column) for column in labels]
    has_equal_rows = code is not None and np.unique(code).size < n_rows

    def scorer(block: tuple[slice, slice]) -> Floats:
        rows, columns = block
        counts = np.zeros((2, alphas.size, n_outputs))
        i, j = np.arange(rows.start, rows.stop)[:, None], np.arange(columns.start, columns.stop)[None, :]
        is_tie = [leaves_one_level(level, i, j) for level in levels]
        if has_equal_rows:
            assert code is not None
            is_tie = [tie | ((code[i] == code[j]) & (i < j)) for tie in is_tie]
        for a, alpha in enumerate(alphas):
            across = decomposition.between(rows, columns, float(alpha))
            for c in range(n_outputs):
                counts[:, a, c] = _core.count_ridge_pairs(
                    np.where(is_tie[c], np.nan, across)
                    if is_tie[c].any()
                    else across,  # neither right nor wrong
                    rows.start,
                    columns.start,
                    labels[c],
                    diagonals[a],
                    residual[a, c],
                    root_share,
                    is_weighted,
                    _ROUNDING,
                )
        return counts

    # Whole blocks in threads of their own: the library's threads would wait for each other at every product.
    with blas_held():
        wrong, right = sum_over_blocks(scorer, _upper_blocks(n_rows), n_rows, n_threads)
    total = np.array([_weight_of_pairs(column, root_share if is_weighted else None) for column in labels])
    # What rounding cannot tell from a tie, such as twin rows, is half wrong.
    return np.asarray(0.5 * (1.0 + (wrong - right) / total))


def _weight_of_pairs(labels: Floats, root_share: Floats | None) -> float:
    """Return the total weight of the pairs with different labels."""
    share = None if root_share is None else root_share**2
    level = np.bincount(_level(labels), weights=share)
    return float(level.sum() ** 2 - (level.astype(np.float64) ** 2).sum()) / 2


def _level(labels: Floats) -> Rows:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _centred(y: Floats, root_share: Floats) -> Floats:
    """Return ``t`` in the units in which the weights add up to 1."""
    return root_share[:, None] * (y - root_share**2 @ y)


def _upper_blocks(n_rows: int) -> Iterator[tuple[slice, slice]]:
    step = max(1, _PAIR_BLOCK // n_rows)
    for first in range(0, n_rows, step):
        yield slice(first, min(first + step, n_rows)), slice(first, n_rows)
