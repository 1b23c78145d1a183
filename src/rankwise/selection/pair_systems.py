"""Listed pairs that score a model, in lockstep with the objectives of all folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Ints
from rankwise.design import Design
from rankwise.pairs.preferences import MaskedPreferences
from rankwise.selection.scorers import Scorer

__all__ = ["FoldPairs", "LeftOutPairs"]


@dataclass(frozen=True)
class LeftOutPairs:
    """Which pairs each fold trains without, and by which of them it is scored.

    Attributes
    ----------
    pair, fold : (entries,) int64
        Fold ``fold[k]`` lacks pair ``pair[k]``; sorted by fold. Several folds may lack the same pair.
    is_scored : (entries,) bool
        Whether that fold is scored by the pair. Where folds are made of items, none is by pairs between two folds.
    n_folds : int
    """

    pair: Ints
    fold: Ints
    is_scored: npt.NDArray[np.bool_]
    n_folds: int

    @classmethod
    def from_folds(cls, fold: npt.NDArray[np.integer]) -> LeftOutPairs:
        """Let each pair be left out by one fold, which is scored by it; -1 for pairs that none leaves out."""
        order = np.argsort(fold, kind="stable")
        pair = order[np.searchsorted(fold[order], 0) :]
        return cls(
            pair,
            fold[pair].astype(np.int64),
            np.ones(pair.size, dtype=np.bool_),
            int(fold.max(initial=-1)) + 1,
        )


class FoldPairs:
    """Every fold's objective at once, each scored by pairs it does not see.

    Parameters
    ----------
    design : Design
    masked : MaskedPreferences
        A column a fold, with the entries of `left_out`.
    left_out : LeftOutPairs
    scorer : Scorer
        Of the differences of the entries to score by, in their order.
    column_scale : (features,) float64, optional
    """

    def __init__(
        self,
        design: Design,
        masked: MaskedPreferences,
        left_out: LeftOutPairs,
        scorer: Scorer,
        column_scale: Floats | None = None,
    ) -> None:
        self._design = design
        self._masked = masked
        self._scoring = left_out.is_scored
        self._scorer = scorer
        self._scale = column_scale
        self.row_columns = [left_out.fold[left_out.is_scored]]
        self.rhs = self._scaled(design.tdot(masked.pull))

    def multiply(self, vectors: Floats) -> tuple[Floats, Sequence[Floats]]:
        """Return every fold's product, and the differences that its scoring pairs have."""
        scores = self._design.dot(self._scaled(vectors))
        image = self._design.tdot(self._masked.laplacian(scores))
        return self._scaled(image), [self._masked.held_out_differences(scores)[self._scoring]]

    def errors(self, output: int, scores: Floats) -> Floats:
        """Score (alphas, pairs) differences."""
        return self._scorer.errors(scores)

    def _scaled(self, vectors: Floats) -> Floats:
        return vectors if self._scale is None else vectors * self._scale[:, None]
