"""Settings of the search for curves and surfaces: splits, candidates and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankwise.additive.alphas import Ladder
from rankwise.additive.coordinates import PLAIN, Rounds
from rankwise.additive.training import Training
from rankwise.arrays import Ints
from rankwise.pairs.plan import Scorer

__all__ = ["PATIENCE", "Candidate", "Knots", "Split", "Wanted"]

# How many alphas, numbers of knots or of surfaces in a row that do not help end their growth. With one, chance decides:
# on two folds of PMLB's cpu_act 16 knots were no better than 8 on the rows held out, and errors of .0705 and .0663 were
# chosen where .0622 and .0632 could be had.
PATIENCE = 2


@dataclass(frozen=True)
class Split:
    """A train-test split: training pairs and the scorer of the held-out rows or pairs.

    Attributes
    ----------
    training : Training
    scorer : Scorer
    rows : (rows,) int64 or None
        The rows of the design whose scores the scorer takes; None where `X` holds them.
    X : (rows, columns) array or None
    share : float
        The weight of the split in the mean over splits.
    """

    training: Training
    scorer: Scorer
    rows: Ints | None = None
    X: npt.NDArray[np.floating] | None = None
    share: float = 1.0


class Knots(NamedTuple):
    """The most knots of a curve, and of a surface along each of its columns."""

    curve: int
    surface: int


@dataclass(frozen=True)
class Wanted:
    """Candidate values of the search, each tried in increasing order while the held-out error falls.

    Attributes
    ----------
    ladder : Ladder
        The alphas.
    n_knots, surface_knots : sequence of int
    counts : sequence of int
        Numbers of surfaces. Without 0, models of curves alone are fitted but not chosen.
    fixed : list of pairs of sides, or None
        Surfaces of every model; no others are then added.
    rounds : Rounds
        The maximum number of rounds in which the penalty is adapted.
    """

    ladder: Ladder
    n_knots: Sequence[int]
    surface_knots: Sequence[int]
    counts: Sequence[int] = ()
    fixed: Sequence[tuple[int, int]] | None = None
    rounds: Rounds = PLAIN


@dataclass(frozen=True, order=True)
class Candidate:
    """One setting that was tried; of equally good ones the smaller model comes first."""

    error: float
    n_pairs: int
    knots: Knots
    rounds: Rounds  # in which the penalty was adapted
    rank: float  # minus alpha
    step: int = field(compare=False)  # of the ladder
    is_worth: bool = field(default=True, compare=False)

    @property
    def alpha(self) -> float:
        """The penalty."""
        return -self.rank

    @property
    def key(self) -> tuple[Knots, int, Rounds, float]:
        """The setting without its error."""
        return self.knots, self.n_pairs, self.rounds, self.alpha

    def is_alike(self, other: Candidate) -> bool:
        """Tell whether nothing but alpha differs."""
        return (self.n_pairs, self.knots, self.rounds) == (other.n_pairs, other.knots, other.rounds)
