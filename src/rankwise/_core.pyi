from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Doubles: TypeAlias = npt.NDArray[np.float64]
_Integers: TypeAlias = npt.NDArray[np.int64]
_Levels: TypeAlias = npt.NDArray[np.int32]

# ---- metrics: results are written to the last array argument; scores are (rows, columns) with any strides

def level_pairs(
    rows: _Integers,
    offsets: _Integers,
    labels: _Doubles,
    weights: _Doubles | None,
    levels: _Levels,
    n_levels: _Integers,
    totals: _Doubles,
    n_threads: int,
) -> None: ...
def best_gains(
    rows: _Integers,
    offsets: _Integers,
    values: _Doubles,
    discount_sums: _Doubles,
    k: int,
    out: _Doubles,
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

# ---- order statistics of RankSVM (cpp/order_statistics.hpp) ----

MAX_LEVELS: int

def counting_code(name: str) -> int: ...

class RankedQueries:
    def __init__(
        self,
        *,
        start: _Integers,
        counting: npt.NDArray[np.uint8],
        n_levels: _Levels,
        rank: _Levels,
        weight: _Doubles | None,
        scale: _Doubles | None,
    ) -> None: ...

class SortedScores:
    def __init__(
        self,
        *,
        score: _Doubles,
        order: _Levels,
        sorted_score: _Doubles,
        sorted_rank: _Levels,
    ) -> None: ...

def sort_scores(
    queries: RankedQueries,
    score: _Doubles,
    presorted_from: int,
    order: _Levels,
    sorted_score: _Doubles,
    sorted_rank: _Levels,
    n_threads: int,
) -> None: ...
def violation_counts(
    queries: RankedQueries,
    point: SortedScores,
    margin: float,
    won: _Doubles,
    lost: _Doubles,
    n_threads: int,
) -> None: ...
def violation_laplacian(
    queries: RankedQueries,
    point: SortedScores,
    margin: float,
    won: _Doubles,
    lost: _Doubles,
    V: _Doubles,
    out: _Doubles,
    n_threads: int,
) -> None: ...
def smoothed_violations(
    queries: RankedQueries,
    point: SortedScores,
    margin: float,
    delta: float,
    won: _Doubles,
    lost: _Doubles,
    excess: _Doubles,
    n_threads: int,
) -> None: ...

# ---- products: see the headers csr, laplacian, fused, gram_diagonal and dense in cpp/

class Blocks:
    def __init__(
        self,
        *,
        order: _Integers,
        query_start: _Integers,
        segment_start: _Integers,
        query_segment: _Integers,
        degree: _Doubles,
        scale: _Doubles,
        coupling: str,
        row_weight: _Doubles | None,
        level_value: _Doubles | None,
    ) -> None: ...

class Folds:
    def __init__(
        self, *, fold: npt.NDArray[np.int32], degree: _Doubles, scale: _Doubles, held_out: _Doubles
    ) -> None: ...

class Plan:
    def __init__(
        self,
        *,
        chunk_start: _Integers,
        chunk_query: _Integers,
        chunk_large: _Integers,
        chunk_work: _Integers,
        large_query: _Integers,
        large_start: _Integers,
        colsum: _Doubles,
    ) -> None: ...

def laplacian(blocks: Blocks, folds: Folds | None, F: _Doubles, out: _Doubles, n_threads: int) -> None: ...
def csr_dot(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    rank: npt.NDArray[np.int32] | None,
    V: _Doubles,
    out: _Doubles,
    n_threads: int,
    disk: Disk | None = None,
) -> None: ...
def csr_transposed_dot(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    rank: npt.NDArray[np.int32] | None,
    U: _Doubles,
    out: _Doubles,
    n_threads: int,
    disk: Disk | None = None,
) -> None: ...
def csr_fused(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    rank: npt.NDArray[np.int32] | None,
    blocks: Blocks,
    folds: Folds | None,
    plan: Plan,
    V: _Doubles,
    out: _Doubles,
    n_threads: int,
    disk: Disk | None = None,
) -> None: ...
def csr_gram_diagonal(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    blocks: Blocks,
    out: _Doubles,
    n_threads: int,
    disk: Disk | None = None,
) -> None: ...
def csr_weighted_sum(
    values: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    blocks: Blocks,
    folds: Folds | None,
    first: int,
    last: int,
    out: _Doubles,
    n_threads: int,
    disk: Disk | None = None,
) -> None: ...
def count_columns(ids: npt.NDArray[Any], out: _Integers, n_threads: int) -> None: ...
def rename_columns(
    ids: npt.NDArray[Any], rank: npt.NDArray[np.int32], out: npt.NDArray[Any], n_threads: int
) -> None: ...
def dense_gram(
    X: npt.NDArray[Any],
    blocks: Blocks,
    pull: _Doubles,
    out: _Doubles,
    rhs: _Doubles,
    buffer_rows: int,
    n_stripes: int,
    dsyrk: object,
    n_threads: int,
) -> None: ...
def centre_queries(
    blocks: Blocks, first: int, last: int, Z: _Doubles, sums: _Doubles | None, n_threads: int
) -> None: ...
def shift_rows(
    blocks: Blocks, first: int, last: int, shift: _Doubles, Z: _Doubles, sums: _Doubles | None, origin: int
) -> None: ...
def couple_relative(
    blocks: Blocks, first: int, last: int, sums: _Doubles, out: _Doubles, n_threads: int
) -> None: ...

# ---- preferences (cpp/preferences.hpp): the Laplacian of a list of neighbours, written to `out`

def preference_laplacian(
    start: _Integers,
    neighbour: npt.NDArray[np.int32] | _Integers,
    weight: _Doubles | None,
    F: _Doubles,
    out: _Doubles,
    n_threads: int,
) -> None: ...
def count_ridge_pairs(
    across: _Doubles,
    first_row: int,
    first_column: int,
    label: _Doubles,
    diagonal: _Doubles,
    residual: _Doubles,
    root_share: _Doubles,
    weighted: bool,
    rounding: float,
) -> tuple[float, float]: ...

# ---- svmlight/LETOR text (cpp/svmlight.hpp, cpp/svmlight_writer.hpp)

TEXT_PADDING: int

class _TextRows:
    rows: int
    entries: int
    has_qid: bool
    last_run: int
    smallest: int
    largest: int
    lines: int
    def __init__(self) -> None: ...
    def append(
        self,
        block: npt.NDArray[np.uint8],
        size: int,
        base: int,
        base_is_sure: bool,
        last_column: int,
        missing: str,
        n_threads: int,
    ) -> tuple[str, int, int] | None: ...
    def shift_columns(self, by: int) -> None: ...
    def take(
        self, n_rows: int
    ) -> tuple[npt.NDArray[Any], _Levels, _Integers, _Doubles, _Integers, bytes, _Integers]: ...

class TextRows32(_TextRows): ...
class TextRows64(_TextRows): ...

def write_svmlight(
    values: npt.NDArray[Any],
    columns: npt.NDArray[Any],
    start: npt.NDArray[Any],
    labels: _Doubles,
    run_start: _Integers,
    run_text: bytes,
    run_text_end: _Integers,
    base: int,
    n_threads: int,
) -> list[npt.NDArray[np.uint8]]: ...

# ---- checks of input: see the header input_checks

_Indices: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

def compressed_misfit(start: _Indices, indices: _Indices, limit: int, n_threads: int) -> str | None: ...
def values_fit(
    values: npt.NDArray[np.float64] | npt.NDArray[np.float32], limit: float, n_threads: int
) -> bool: ...

# ---- matrices on disk: see the headers disk and windows

class DirectFiles:
    def __init__(self, values: int, ids: int, values_begin: int, ids_begin: int) -> None: ...

class Disk:
    def __init__(self, files: DirectFiles | None, first: int, window: int) -> None: ...
    def part(self, first: int) -> Disk: ...
    def with_window(self, window: int) -> Disk: ...
    @property
    def window(self) -> int: ...
    @property
    def is_direct(self) -> bool: ...

# ---- additive models (cpp/additive_terms.hpp, cpp/additive.hpp) ----

_Numbers: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.float32]
_Codes: TypeAlias = npt.NDArray[np.uint32]
_Flags: TypeAlias = npt.NDArray[np.bool_]

class Terms:
    def __init__(
        self,
        *,
        used: _Integers,
        column: _Integers,
        start: _Integers,
        knots: _Doubles,
        is_levels: _Flags,
        has_missing: _Flags,
        offsets: _Integers,
        curves: int,
    ) -> None: ...

class Additive:
    def __init__(
        self,
        *,
        codes: _Codes,
        first: int,
        rows: int,
        columns: int,
        decoded: int,
        shift: _Levels,
        cells: _Levels,
        curve_start: _Integers,
        side_column: _Levels,
        side_start: _Integers,
        side_cell: _Levels,
        side_origin: _Doubles,
        side_slope: _Doubles,
        side_cells: _Levels,
        surface_sides: _Levels,
        surface_start: _Integers,
        instructions: str,
    ) -> None: ...

def widest_instructions() -> str: ...
def additive_predict(X: _Numbers, terms: Terms, V: _Doubles, out: _Doubles, n_threads: int) -> None: ...
def additive_predict_csr(
    values: _Numbers,
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    place: _Levels,
    terms: Terms,
    V: _Doubles,
    out: _Doubles,
    n_threads: int,
) -> None: ...
def additive_encode(
    X: _Numbers, terms: Terms, shift: _Levels, out: _Codes, first_row: int, n_threads: int
) -> None: ...
def additive_encode_csr(
    values: _Numbers,
    ids: npt.NDArray[Any],
    start: npt.NDArray[Any],
    place: _Levels,
    terms: Terms,
    shift: _Levels,
    out: _Codes,
    first_row: int,
    n_threads: int,
) -> None: ...
def additive_dot(X: Additive, V: _Doubles, out: _Doubles, n_parts: int, n_threads: int) -> None: ...
def additive_transposed_dot(
    X: Additive, U: _Doubles, out: _Doubles, n_parts: int, n_threads: int
) -> None: ...
def additive_fused(
    X: Additive,
    blocks: Blocks,
    folds: Folds | None,
    plan: Plan,
    V: _Doubles,
    out: _Doubles,
    n_parts: int,
    n_threads: int,
) -> None: ...
def additive_weighted_sum(
    X: Additive,
    blocks: Blocks,
    folds: Folds | None,
    first: int,
    last: int,
    out: _Doubles,
    n_parts: int,
    n_threads: int,
) -> None: ...
def additive_expand(
    X: Additive,
    side: _Levels,
    side_values: _Integers,
    side_knots: _Integers,
    offsets: _Integers,
    curves: int,
    rows: _Integers,
    out: _Doubles,
    n_threads: int,
) -> None: ...
def additive_squares(X: Additive, weight: _Doubles, out: _Doubles, n_threads: int) -> None: ...
def additive_sums_of_units(
    X: Additive, rows: _Integers, weight: _Doubles | None, start: _Integers, out: _Doubles, n_threads: int
) -> None: ...
def pair_histograms(
    bins: npt.NDArray[np.uint8],
    g: _Doubles,
    h: _Doubles,
    first: _Integers,
    second: _Integers,
    out: _Doubles,
    n_threads: int,
) -> None: ...
