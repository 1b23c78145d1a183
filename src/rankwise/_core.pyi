from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Doubles: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]
_Levels: TypeAlias = npt.NDArray[np.int32]

# ---- metrics: results are written to the last array argument; scores are (rows, columns) with any strides

def dense_levels(
    rows: _Integers,
    offsets: _Integers,
    labels: _Doubles,
    levels: _Levels,
    n_levels: _Integers,
    n_threads: int,
) -> None: ...
def count_pairs(
    rows: _Integers,
    offsets: _Integers,
    scores: _Doubles,
    levels: _Levels,
    n_levels: _Integers,
    weights: _Doubles | None,
    out: _Doubles,
    n_threads: int,
) -> None: ...
def discounted_gain(
    rows: _Integers,
    offsets: _Integers,
    scores: _Doubles,
    values: _Doubles,
    discount_sums: _Doubles,
    k: int,
    stable: bool,
    out: _Doubles,
    n_threads: int,
) -> None: ...

mean_normalised_gain = discounted_gain
relevant_at_top = discounted_gain
summed_precision = discounted_gain
reciprocal_rank = discounted_gain
expected_reciprocal_rank = discounted_gain

# ---- preferences: the Laplacian of a list of neighbours, written to `out`

def preference_laplacian(
    start: _Integers,
    neighbour: npt.NDArray[np.int32] | _Integers,
    weight: _Doubles | None,
    F: _Doubles,
    out: _Doubles,
    n_threads: int,
) -> None: ...
