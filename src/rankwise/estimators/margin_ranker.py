"""What the RankSVM estimators share: parameters, pairs with margins, what is reported of solutions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import ArrayLike, Floats, Labels, MatrixLike
from rankwise.data.validation import check_choice, check_number
from rankwise.estimators.base import Importance, Ranker
from rankwise.estimators.checks import check_running
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError, caller_level
from rankwise.losses import LOSSES, MARGIN_LOSSES
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.pairs.labels import QUERY_WEIGHTS, Cost, Ties
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.margin_fit import MarginFit, label_margins, listed_margins
from rankwise.selection.result import one_or_all
from rankwise.solvers.choose import MARGIN_SOLVERS, choose_margin_solver
from rankwise.solvers.solution import Solution, Status

__all__ = ["MarginRanker", "check_alpha"]


class MarginRanker(Ranker):
    """The part of the RankSVM estimators that does not depend on how alpha is found, nor on a kernel."""

    # Ties have no winner, and a listed pair's magnitude is its margin.
    ties: ClassVar[Ties] = "exclude"
    cost: ClassVar[Cost] = "magnitude"

    def predict_pairs(self, X_a: MatrixLike, X_b: MatrixLike) -> Floats:  # noqa: D102 - as in Ranker
        difference = super().predict_pairs(X_a, X_b)
        return np.asarray(expit(difference)) if LOSSES[self.loss_].is_probability else difference

    predict_pairs.__doc__ = Ranker.predict_pairs.__doc__

    def _check_margin_parameters(self) -> None:
        check_choice("loss", self.loss, MARGIN_LOSSES)
        check_choice("query_weight", self.query_weight, QUERY_WEIGHTS)
        check_choice("solver", self.solver, ("auto", *MARGIN_SOLVERS))
        check_running(self.tol, self.max_iter, self.n_threads, self.random_state, example="1e-3")
        if float(self.tol) >= 1:
            raise InvalidInputError(
                f"tol={self.tol!r} is not below 1: it is a share of what can be gained over w = 0.",
                "use 1e-3.",
            )
        if self.solver != "auto" and self.loss not in MARGIN_SOLVERS[self.solver].losses:
            able = [name for name, solver in MARGIN_SOLVERS.items() if self.loss in solver.losses]
            raise UnsuitableSolverError(
                f"solver={self.solver!r} cannot minimise loss={self.loss!r}.",
                f"use solver='auto' or one of {', '.join(map(repr, able))}.",
            )

    def _training_data(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_importance: Importance | None,
    ) -> TrainingData:
        if LOSSES[self.loss].is_probability:
            raise InvalidInputError(
                "loss='logistic' is a model of listed pairs, and labels induce too many to list.",
                "use fit_pairs with the pairs that were observed, or loss='squared_hinge' for labels.",
            )
        return super()._training_data(X, y, qid, sample_weight, query_importance)

    def _margins(
        self, data: TrainingData | PairData, row_weight: Floats | None = None
    ) -> tuple[Sequence[MarginPairs], Sequence[PairGraph]]:
        """Return the pairs of every output, with margins and as graphs; row weights may differ from the data's own."""
        if isinstance(data, PairData):
            return [listed_margins(data.graph, self.loss)], [data.graph]
        weight, outputs = data.row_weight if row_weight is None else row_weight, range(len(data.columns))
        margins = [label_margins(data, output, weight) for output in outputs]
        return margins, [data.graph(output, weight) for output in outputs]

    def _margin_fit(self, pairs: MarginPairs) -> MarginFit:
        solver, second = self.solver, None
        if solver == "auto":
            solver = choose_margin_solver(self.loss, pairs, float(self.tol))
            # Steep planes lose their digits sooner than steep slopes: columns of 1e5 at alpha 1e-4 are too much.
            # Over few pairs a narrow kink does: of 36 fits of 1,800 pairs, two came no nearer than 4e-7 and 2e-6.
            second = {"bundle": "smoothing", "smoothing": "bundle"}.get(solver)
        return MarginFit(self.loss, solver, float(self.tol), self.max_iter, second)

    def _report_solutions(self, fit: MarginFit, solutions: Sequence[Solution], *, several: bool) -> None:
        """Set the attributes that describe the solutions, and warn about bad ones."""
        self.solver_, self.loss_ = fit.solver, fit.loss
        self.duality_gap_ = one_or_all([float(s.certificate) for s in solutions], several)
        self.n_iter_ = max(1, *(s.n_iter for s in solutions))
        for solution in solutions:
            if not solution.status.is_good:
                remedy = "raise max_iter or tol, use a larger alpha, or scale the columns"
                if self.solver_ == "smoothing" and solution.status is Status.STAGNATED:
                    remedy = f"use solver='bundle', which can prove smaller gaps; or {remedy}"
                if solution.status is Status.INTERRUPTED:
                    can_go_on = "warm_start" in self.get_params()
                    remedy = "fit again" + (", with warm_start=True to go on from here" if can_go_on else "")
                gain = solution.gain
                share = f", {solution.certificate / gain:.1e} of what can be gained" if gain > 0 else ""
                warnings.warn(
                    f"solver={self.solver_!r} stopped after {solution.n_iter} iterations at a duality gap of "
                    f"{solution.certificate:.1e}{share} (tol={self.tol}): "
                    f"{solution.status.value}. Hint: {remedy}.",
                    ConvergenceWarning,
                    stacklevel=caller_level(),
                )


def check_alpha(alpha: object) -> None:
    """Raise unless alpha is a positive number."""
    check_number("alpha", alpha, minimum=0, remedy="use a positive number such as 1e-4")
    if alpha == 0:
        raise InvalidInputError(
            "alpha=0 leaves the minimum undetermined and no gap to prove.", "use a small one such as 1e-8."
        )
