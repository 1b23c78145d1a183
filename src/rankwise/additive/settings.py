"""What a search for curves and surfaces tries, and what it scores by."""

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
    """What is trained on, and what it is scored by.

    Attributes
    ----------
    training : Training
    scorer : Scorer
    rows : (rows,) int64 or None
        Training rows to score by; None where `X` holds others.
    X : (rows, columns) array or None
    share : float
        How much it says beside other splits.
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
    """What is to be tried, each in increasing order while the held-out error falls.

    Attributes
    ----------
    ladder : Ladder
        The alphas.
    n_knots, surface_knots : sequence of int
    counts : sequence of int
        Numbers of surfaces. Without 0 curves alone are tried and not chosen.
    fixed : list of pairs of curves, or None
        Surfaces that every model has; then no others are added.
    rounds : Rounds
        The most rounds in which the penalty is adapted.
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
