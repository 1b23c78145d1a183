"""Listed pairs that judge a model, in lockstep with the objectives of all folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.pairs.preferences import MaskedPreferences
from rankwise.selection.scorers import Judge

__all__ = ["FoldPairs", "LeftOutPairs"]


@dataclass(frozen=True)
class LeftOutPairs:
    """Which pairs each fold trains without, and by which of them it is judged.

    Attributes
    ----------
    pair, fold : (entries,) int64
        Fold ``fold[k]`` lacks pair ``pair[k]``; sorted by fold. Several folds may lack the same pair.
    judges : (entries,) bool
        Whether the pair judges that fold. Where folds are made of items, pairs between two folds do not.
    n_folds : int
    """

    pair: Ints
    fold: Ints
    judges: npt.NDArray[np.bool_]
    n_folds: int

    @classmethod
    def from_folds(cls, fold: npt.NDArray[np.integer]) -> LeftOutPairs:
        """Let each pair be left out by one fold, and judge it; -1 for pairs that none leaves out."""
        order = np.argsort(fold, kind="stable")
        pair = order[np.searchsorted(fold[order], 0) :]
        return cls(
            pair,
            fold[pair].astype(np.int64),
            np.ones(pair.size, dtype=np.bool_),
            int(fold.max(initial=-1)) + 1,
        )


class FoldPairs:
    """Every fold's objective at once, each judged by pairs it does not see.

    Parameters
    ----------
    design : Design
    masked : MaskedPreferences
        A column a fold, with the entries of `left_out`.
    left_out : LeftOutPairs
    judge : Judge
        Of the differences of the entries that judge, in their order.
    column_scale : (features,) float64, optional
    """

    def __init__(
        self,
        design: Design,
        masked: MaskedPreferences,
        left_out: LeftOutPairs,
        judge: Judge,
        column_scale: Floats | None = None,
    ) -> None:
        self._design = design
        self._masked = masked
        self._judging = left_out.judges
        self._judge = judge
        self._scale = column_scale
        self.row_lanes = [left_out.fold[left_out.judges]]
        self.rhs = self._scaled(design.tdot(masked.pull))

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return every fold's product, and the differences that its judging pairs have."""
        scores = self._design.dot(self._scaled(vectors))
        image = self._design.tdot(self._masked.laplacian(scores))
        return self._scaled(image), [self._masked.held_out_differences(scores)[self._judging]]

    def errors(self, output: int, scores: Floats) -> Floats:
        """Judge (alphas, pairs) differences."""
        return self._judge.errors(scores)

    def _scaled(self, vectors: Floats) -> Floats:
        return vectors if self._scale is None else vectors * self._scale[:, None]
