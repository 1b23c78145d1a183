import numpy as np
import numpy.typing as npt

# ---- order statistics of RankSVM (cpp/order_statistics.hpp) ----

class RankedQueries:
    def __init__(
        self,
        start: npt.NDArray[np.int64],
        counting: npt.NDArray[np.uint8],
        n_levels: npt.NDArray[np.int32],
        rank: npt.NDArray[np.int32],
        weight: npt.NDArray[np.float64] | None,
        scale: npt.NDArray[np.float64] | None,
    ) -> None: ...

class SortedScores:
    def __init__(
        self,
        score: npt.NDArray[np.float64],
        order: npt.NDArray[np.int32],
        sorted_score: npt.NDArray[np.float64],
        sorted_rank: npt.NDArray[np.int32],
        /,
    ) -> None: ...

def sort_scores(
    queries: RankedQueries,
    score: npt.NDArray[np.float64],
    presorted_from: int,
    order: npt.NDArray[np.int32],
    sorted_score: npt.NDArray[np.float64],
    sorted_rank: npt.NDArray[np.int32],
    n_threads: int,
    /,
) -> None: ...
def violation_counts(
    queries: RankedQueries,
    point: SortedScores,
    margin: float,
    won: npt.NDArray[np.float64],
    lost: npt.NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def violation_laplacian(
    queries: RankedQueries,
    point: SortedScores,
    margin: float,
    won: npt.NDArray[np.float64],
    lost: npt.NDArray[np.float64],
    v: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
def smoothed_violations(
    queries: RankedQueries,
    point: SortedScores,
    margin: float,
    delta: float,
    won: npt.NDArray[np.float64],
    lost: npt.NDArray[np.float64],
    excess: npt.NDArray[np.float64],
    n_threads: int,
    /,
) -> None: ...
