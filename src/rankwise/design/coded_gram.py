"""X' L X of curves from their codes: sums over pairs of cells, where dense rows would be expanded and multiplied.

With d the weight of each row's pairs, s the sum of a query's rows and S that of each of its levels,

    X' L X = sum of d x x'  -  sum over queries of scale s s'  (+ the sum over levels of scale S S', for "others"),

see `rankwise.pairs.blocks`. Rows need not be centred first, as in `rankwise.design.gram`: their entries lie between
0 and 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import dsyrk

from rankwise import _core
from rankwise.arrays import Floats, Ints
from rankwise.pairs.blocks import QueryBlocks
from rankwise.runtime.memory import fits
from rankwise.runtime.threads import large_algebra

if TYPE_CHECKING:
    from rankwise.design.additive import AdditiveDesign

__all__ = ["coded_gram", "work"]

# Nanoseconds: of a pair of columns of a row from codes, and of an entry of the matrix for each dense row.
_PAIR, _ENTRY = 1.2, 0.035
# Of a code in a product, and of a product of no rows.
_CODE, _CALL = 0.75, 2e4
_SUMS = 1 << 20  # numbers in the sums of some queries


def coded_gram(design: AdditiveDesign, blocks: QueryBlocks) -> Floats | None:
    """Return ``E' L E`` by values of the curves; None where dense rows are better: surfaces, or few knots.

    The coupling "relative" joins every two levels of a query, which is left to dense rows too.
    """
    cells = design.cells
    if cells.terms.surfaces or blocks.coupling == "relative" or not _pays(design, blocks):
        return None
    threads = design.threads_used()
    degree = np.repeat(blocks.degree, np.diff(blocks.segment_start))
    weight = np.zeros(design.shape[0])
    weight[blocks.order] = degree if blocks.row_weight is None else degree * blocks.row_weight
    squares = np.empty((cells.n_entries, cells.n_entries))
    _core.additive_squares(design.compiled, weight, squares, threads)
    half = np.ascontiguousarray(np.asarray(cells.adjoint @ squares).T)
    del squares
    G = np.asfortranarray(cells.adjoint @ half)
    units = [(blocks.query_start, -1.0, blocks.scale)]
    if blocks.coupling == "others":
        own = np.repeat(blocks.scale, np.diff(blocks.query_segment))
        units.append((blocks.segment_start, 1.0, own))
    with large_algebra(G.shape[0]):
        for start, sign, scale in units:
            for rows in _scaled_sums(design, blocks, start, scale):
                G = dsyrk(sign, rows.T, beta=1.0, c=G, overwrite_c=1)
    return np.asarray(np.triu(G) + np.triu(G, 1).T)


def work(design: AdditiveDesign) -> tuple[float, float]:
    """Estimate the nanoseconds of a product ``X'LXv`` and of ``X'LX``, where queries have many rows."""
    from_codes, from_rows = _gram_work(design, 0)
    is_coded = from_codes < from_rows and not design.terms.surfaces and _has_room(design)
    return design.shape[0] * design.row_work * _CODE + _CALL, from_codes if is_coded else from_rows


def _gram_work(design: AdditiveDesign, n_units: int) -> tuple[float, float]:
    """Estimate the nanoseconds of the matrix from codes, and from dense rows."""
    n_rows, n_columns = design.shape[0], len(design.cells.columns)
    entries = _ENTRY * float(design.terms.n_values) ** 2
    return n_rows * _PAIR * n_columns * (n_columns + 1) / 2 + n_units * entries, n_rows * entries


def _has_room(design: AdditiveDesign) -> bool:
    return fits(8 * design.cells.n_entries**2)


def _pays(design: AdditiveDesign, blocks: QueryBlocks) -> bool:
    n_units = blocks.scale.size + (blocks.degree.size if blocks.coupling == "others" else 0)
    from_codes, from_rows = _gram_work(design, n_units)
    return from_codes < from_rows and _has_room(design)


def _scaled_sums(design: AdditiveDesign, blocks: QueryBlocks, start: Ints, scale: Floats) -> Iterator[Floats]:
    """Yield the sums of some units' rows after the other, times the root of each unit's scale."""
    step = max(1, _SUMS // max(design.cells.n_entries, 1))
    for first in range(0, start.size - 1, step):
        own = start[first : first + step + 1]
        rows = slice(int(own[0]), int(own[-1]))
        weight = None if blocks.row_weight is None else blocks.row_weight[rows]
        sums = np.empty((own.size - 1, design.cells.n_entries))
        _core.additive_sums_of_units(
            design.compiled, blocks.order[rows], weight, own - own[0], sums, design.threads_used()
        )
        values = np.asarray(design.cells.adjoint @ sums.T).T
        yield np.ascontiguousarray(values * np.sqrt(scale[first : first + step])[:, None])
