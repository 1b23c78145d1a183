"""What a search for curves and surfaces tries, and what it scores by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankwise.additive.alphas import Ladder
from rankwise.additive.training import Training
from rankwise.arrays import Floats, Ints
from rankwise.selection.scorers import MetricScorer, Scorer, oriented

__all__ = ["Candidate", "Knots", "Split", "Wanted", "joined"]

# Queries whose errors are compared one by one: of fewer nothing can be said, and with more chance decides nothing.
_FEW, _MANY = 10, 10_000


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

    def by_query(self, scores: Floats) -> Floats | None:
        """Return the error of each query that counts; None where what is held out has no queries."""
        if not isinstance(self.scorer, MetricScorer):
            return None
        found = self.scorer.evaluator.per_query(scores).values[self.scorer.evaluator.counted]
        return oriented(found, greater_is_better=self.scorer.greater_is_better)


def joined(parts: Sequence[Floats | None]) -> Floats | None:
    """Return the errors of the queries of all splits; None where they are too few to compare settings by, or many."""
    known = [part for part in parts if part is not None]
    every = np.concatenate(known) if len(known) == len(parts) else np.empty(0)
    return every if _FEW <= every.size <= _MANY else None


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
    rounds : int
        The most rounds in which the penalty is adapted.
    """

    ladder: Ladder
    n_knots: Sequence[int]
    surface_knots: Sequence[int]
    counts: Sequence[int] = ()
    fixed: Sequence[tuple[int, int]] | None = None
    rounds: int = 0


@dataclass(frozen=True, order=True)
class Candidate:
    """One setting that was tried; of equally good ones the smaller model comes first."""

    error: float
    n_pairs: int
    knots: Knots
    rounds: int  # in which the penalty was adapted
    rank: float  # minus alpha
    step: int = field(compare=False)  # of the ladder
    is_worth: bool = field(default=True, compare=False)
    by_query: Floats | None = field(
        default=None, compare=False, repr=False
    )  # the error of each held-out query

    @property
    def alpha(self) -> float:
        """The penalty."""
        return -self.rank

    def is_clearly_better(self, other: Candidate) -> bool:
        """Tell whether the error is lower by more than a standard error of the difference, paired over queries.

        Among some dozens of settings that hardly differ, the least error is that of chance; where queries are few, what
        was no gain was often chosen. Of one ranking nothing tells how far chance goes.
        """
        if self.by_query is None or other.by_query is None:
            return self.error < other.error
        gain = other.by_query - self.by_query
        return self.error < other.error and float(gain.mean()) > float(gain.std(ddof=1)) / np.sqrt(gain.size)

    def is_alike(self, other: Candidate) -> bool:
        """Tell whether nothing but alpha differs."""
        return (self.n_pairs, self.knots, self.rounds) == (other.n_pairs, other.knots, other.rounds)
