"""Base class of the RankSVM estimators: parameters, pairs with margins, and attributes of solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions

from rankwise.arrays import ArrayLike, Floats, Labels, MatrixLike
from rankwise.design import Design
from rankwise.estimators.base import POSITIVE, SHARE, Constraints, Ranker
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.fitting.margins import MarginFit, curvature_of
from rankwise.fitting.problem import Problem, Restriction
from rankwise.losses import LOSSES, MARGIN_LOSSES
from rankwise.pairs.graph import MarginPairs
from rankwise.pairs.labels import Cost, Ties
from rankwise.pairs.pairs import Pairs
from rankwise.selection.path import EvalSetMonitor
from rankwise.selection.result import Selection, one_or_all
from rankwise.solvers.choose import MARGIN_SOLVERS
from rankwise.solvers.solution import Solution

__all__ = ["MARGIN_GRID", "MarginRanker"]

MARGIN_GRID = tuple(10.0**-power for power in range(1, 7))  # the default of `alphas`


class MarginRanker(Ranker):
    """The part of the RankSVM estimators that does not depend on how alpha is found, nor on a kernel."""

    duality_gap_: float | Floats
    n_reads_: int
    loss_: str

    # Ties have no winner, and a listed pair's magnitude is its margin.
    ties: ClassVar[Ties] = "exclude"
    cost: ClassVar[Cost] = "magnitude"
    _has_gap = True
    _parameter_constraints: ClassVar[Constraints] = {
        **Ranker._parameter_constraints,
        "alpha": [POSITIVE],
        "loss": [StrOptions(set(MARGIN_LOSSES))],
        "solver": [StrOptions({"auto", *MARGIN_SOLVERS})],
        "tol": [SHARE],
    }

    def predict_pairs(self, X: MatrixLike, pairs: ArrayLike | MatrixLike) -> Floats:  # noqa: D102 - as in FittedRanker
        difference = super().predict_pairs(X, pairs)
        return np.asarray(expit(difference)) if LOSSES[self.loss_].is_probability else difference

    predict_pairs.__doc__ = Ranker.predict_pairs.__doc__

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver != "auto" and self.loss not in MARGIN_SOLVERS[self.solver].losses:
            able = [name for name, solver in MARGIN_SOLVERS.items() if self.loss in solver.losses]
            raise UnsuitableSolverError(
                f"solver={self.solver!r} cannot minimise loss={self.loss!r}.",
                f"use solver='auto' or one of {', '.join(map(repr, able))}.",
            )

    def _require_labels(self, y: Labels | None) -> None:
        if LOSSES[self.loss].is_probability:
            raise InvalidInputError(
                "loss='logistic' is a model of listed pairs, and labels induce too many to list.",
                "use fit_pairs with the pairs that were observed, or loss='squared_hinge' for labels.",
            )
        super()._require_labels(y)

    def _margin_fit(self, pairs: MarginPairs, restriction: Restriction | None = None) -> MarginFit:
        return MarginFit.of_pairs(pairs, self.loss, self.solver, float(self.tol), self.max_iter, restriction)

    def _solve(
        self,
        fit: MarginFit,
        design: Design,
        pairs: Pairs,
        margins: Sequence[MarginPairs],
        starts: Sequence[Floats | None] = (),
        monitors: Sequence[EvalSetMonitor] = (),
    ) -> list[Solution]:
        """Solve the problem of every output."""
        solutions: list[Solution] = []
        alpha = float(self.alpha)
        for output, (own, start, monitor) in enumerate(zip_longest(margins, starts, monitors)):
            curvature = curvature_of(design, pairs.graph(output))
            solutions.append(fit.solve(design, own, alpha, start=start, curvature=curvature, watcher=monitor))
        return solutions

    def _keep_solutions(
        self,
        selection: Selection,
        fit: MarginFit,
        solutions: Sequence[Solution],
        n_reads: int,
        problem: Problem,
    ) -> None:
        """Set the fitted attributes of the selection and its solutions; warn if a solution did not converge."""
        facts = {
            "solver_": fit.solver,
            "loss_": fit.loss,
            "n_reads_": n_reads,
            "n_iter_": max(1, *(s.n_iter for s in solutions)),
            "duality_gap_": one_or_all(
                [float(s.certificate) for s in solutions], problem.pairs.several_outputs
            ),
        }
        notices = fit.notices(solutions)
        self._keep(replace(selection.with_facts(**facts), notices=[*selection.notices, *notices]), problem)
