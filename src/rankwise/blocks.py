"""Pairs inside queries as arrays: what the compiled kernels know about a graph.

Every graph that labels induce acts on a vector of scores ``f`` in the same way. Rows are grouped by query,
and inside a query by *segment*. With row weights ``w`` and segment sums ``S_l = sum of w_i f_i over l``,

    (L f)_i = w_i (degree_k f_i - T_k)          for a row i of segment k
    T_k     = scale_q * sum over segments l of q of  W(k, l) S_l

where ``W`` is the *coupling* of segments:

    "all"       1             ties are compared too; the whole query is one segment
    "others"    k != l        a segment is a level of the labels, compared with the other levels
    "relative"  1/(v_k-v_l)^2 as "others", but each pair weighs one over its squared label difference
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["Coupling", "QueryBlocks"]

Coupling = Literal["all", "others", "relative"]


@dataclass(frozen=True)
class QueryBlocks:
    """The Laplacian of a graph that has independent queries (see the module's docstring).

    Attributes
    ----------
    order : (rows,) int64
        Rows in grouped order (by query, then by segment), as positions in the caller's arrays.
    query_start : (queries + 1,) int64
        Where each query starts in grouped order.
    segment_start : (segments + 1,) int64
        Where each segment starts in grouped order.
    query_segment : (queries + 1,) int64
        The first segment of each query.
    degree : (segments,) float64
        The total weight of a row's pairs, for a row of weight 1; `scale` is included.
    scale : (queries,) float64
        The weight of a pair of rows of weight 1.
    coupling : str
    row_weight : (rows,) float64 or None
        In grouped order; None where all weigh 1.
    level_value : (segments,) float64 or None
        The label of each segment; only for the relative coupling.
    """

    order: npt.NDArray[np.int64]
    query_start: npt.NDArray[np.int64]
    segment_start: npt.NDArray[np.int64]
    query_segment: npt.NDArray[np.int64]
    degree: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    coupling: Coupling
    row_weight: npt.NDArray[np.float64] | None = None
    level_value: npt.NDArray[np.float64] | None = None
