# The compiled kernels; what they compute is written in the headers of cpp/.
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ids: TypeAlias = npt.NDArray[np.int64]
_Rank: TypeAlias = npt.NDArray[np.int32]

class Blocks:
    def __init__(
        self,
        order: _Ids,
        query_start: _Ids,
        segment_start: _Ids,
        query_segment: _Ids,
        degree: _Floats,
        scale: _Floats,
        coupling: int,
        row_weight: _Floats | None,
        level_value: _Floats | None,
    ) -> None: ...

class Folds:
    def __init__(
        self, fold: npt.NDArray[np.int32], degree: _Floats, scale: _Floats, held_out: _Floats
    ) -> None: ...

class Plan:
    def __init__(
        self,
        chunk_start: _Ids,
        chunk_query: _Ids,
        chunk_large: _Ids,
        chunk_work: _Ids,
        large_query: _Ids,
        large_start: _Ids,
        colsum: _Floats,
    ) -> None: ...

def laplacian(blocks: Blocks, folds: Folds | None, F: _Floats, out: _Floats, n_threads: int) -> None: ...
def csr_dot(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    rank: _Rank | None,
    V: _Floats,
    out: _Floats,
    n_threads: int,
) -> None: ...
def csr_transposed_dot(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    rank: _Rank | None,
    U: _Floats,
    out: _Floats,
    n_threads: int,
) -> None: ...
def csr_fused(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    rank: _Rank | None,
    blocks: Blocks,
    folds: Folds | None,
    plan: Plan,
    V: _Floats,
    out: _Floats,
    n_threads: int,
) -> None: ...
def csr_squared_norms(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    weight: _Floats,
    out: _Floats,
    n_threads: int,
) -> None: ...
def csr_gram_diagonal(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    blocks: Blocks,
    out: _Floats,
    n_threads: int,
) -> None: ...
def csr_weighted_sum(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    blocks: Blocks,
    folds: Folds | None,
    first: int,
    last: int,
    out: _Floats,
    n_threads: int,
) -> None: ...
def count_columns(ids: npt.NDArray[Any], out: _Ids, n_threads: int) -> None: ...
def rename_columns(ids: npt.NDArray[Any], rank: _Rank, out: npt.NDArray[Any], n_threads: int) -> None: ...
def centre_queries(
    blocks: Blocks, first: int, last: int, Z: _Floats, sums: _Floats | None, n_threads: int
) -> None: ...
def shift_rows(
    blocks: Blocks, first: int, last: int, shift: _Floats, Z: _Floats, sums: _Floats | None, origin: int
) -> None: ...
def couple_relative(
    blocks: Blocks, first: int, last: int, sums: _Floats, out: _Floats, n_threads: int
) -> None: ...
