"""What the RankSVM estimators share: parameters, pairs with margins, what is reported of solutions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Floats
from rankwise.data.validation import check_choice, check_count, check_number, check_seed
from rankwise.estimators.linear import LinearRanker
from rankwise.estimators.pairwise import PreferenceRanker
from rankwise.exceptions import InvalidInputError, NoPairsError, UnsuitableSolverError, caller_level
from rankwise.losses import LOSSES, MARGIN_LOSSES
from rankwise.metrics import Metric
from rankwise.pairs.graph import MarginPairs
from rankwise.pairs.labels import QUERY_WEIGHTS, Cost, Ties
from rankwise.pairs.margins import PreferenceMargins
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.margin_fit import MarginFit, one_or_all
from rankwise.selection.pair_systems import LeftOutPairs
from rankwise.selection.reading import difference_scorer
from rankwise.selection.scorers import PreferenceScorer
from rankwise.solvers.choose import MARGIN_SOLVERS, choose_margin_solver
from rankwise.solvers.solution import Solution, Status

__all__ = ["MarginRanker", "check_alpha"]


class MarginRanker(PreferenceRanker, LinearRanker):
    """The part of the RankSVM estimators that does not depend on how alpha is found, nor on a kernel."""

    # Ties have no winner, and a listed pair's magnitude is its margin.
    ties: ClassVar[Ties] = "exclude"
    cost: ClassVar[Cost] = "magnitude"

    def predict_pairs(self, X_a: Any, X_b: Any) -> Floats:
        """Return how much each row of `X_a` is preferred to the same row of `X_b`.

        Parameters
        ----------
        X_a, X_b : array-like, sparse matrix or data frame of shape (pairs, features)

        Returns
        -------
        ndarray of shape (pairs,)
            The difference of the scores: positive where A is preferred, negative where B is. After a fit with
            ``loss="logistic"`` the probability that A is preferred.
        """
        difference: Floats = super().predict_pairs(X_a, X_b)
        return np.asarray(expit(difference)) if LOSSES[self.loss_].is_probability else difference

    def _check_margin_parameters(self) -> None:
        check_choice("loss", self.loss, MARGIN_LOSSES)
        check_choice("query_weight", self.query_weight, QUERY_WEIGHTS)
        check_choice("solver", self.solver, ("auto", *MARGIN_SOLVERS))
        check_number("tol", self.tol, minimum=0, remedy="use a small positive number such as 1e-3")
        if float(self.tol) >= 1:
            raise InvalidInputError(
                f"tol={self.tol!r} is not below 1: it is a share of what can be gained over w = 0.",
                "use 1e-3.",
            )
        check_count("max_iter", self.max_iter)
        check_count("n_threads", self.n_threads)
        check_seed(self.random_state)
        if self.solver != "auto" and self.loss not in MARGIN_SOLVERS[self.solver].losses:
            able = [name for name, solver in MARGIN_SOLVERS.items() if self.loss in solver.losses]
            raise UnsuitableSolverError(
                f"solver={self.solver!r} cannot minimise loss={self.loss!r}.",
                f"use solver='auto' or one of {', '.join(map(repr, able))}.",
            )

    def _labelled_data(
        self, X: Any, y: Any, qid: Any, sample_weight: Any, query_importance: Any
    ) -> TrainingData:
        if LOSSES[self.loss].is_probability:
            raise InvalidInputError(
                "loss='logistic' is a model of listed pairs, and labels induce too many to list.",
                "use fit_pairs with the pairs that were observed, or loss='squared_hinge' for labels.",
            )
        return self._training_data(X, y, qid, sample_weight, query_importance)

    def _listed_margins(
        self, graph: PreferenceGraph, chosen: npt.NDArray[np.bool_] | None = None
    ) -> PreferenceMargins:
        if LOSSES[self.loss].is_probability and np.any(graph.difference != 1):
            raise InvalidInputError(
                "loss='logistic' has no margins, so magnitudes would be ignored.",
                "pass how sure a preference is as weight, and a tie as two opposite pairs of half the weight.",
            )
        margins = PreferenceMargins.of_graph(graph, chosen)
        if margins.winner.size == 0:
            raise NoPairsError(
                "Without the pairs that are held out, none is left to train on.",
                "use more folds, or hold less out.",
            )
        return margins

    def _pair_fold(
        self, data: PairData, left_out: LeftOutPairs, fold: int, metric: Metric
    ) -> tuple[PreferenceMargins, PreferenceScorer]:
        """Return what a fold trains on, and the pairs that it is scored by."""
        is_own = left_out.fold == fold
        chosen = np.ones(len(data.preferences), dtype=np.bool_)
        chosen[left_out.pair[is_own]] = False
        scoring = left_out.pair[is_own & left_out.is_scored]
        scorer = difference_scorer(metric, data.scoring_weight[scoring], "what was held out")
        winner, loser = data.preferences.winner[scoring], data.preferences.loser[scoring]
        return self._listed_margins(data.graph, chosen), PreferenceScorer(winner, loser, scorer)

    def _margin_fit(self, pairs: MarginPairs) -> MarginFit:
        solver, second = self.solver, None
        if solver == "auto":
            solver = choose_margin_solver(self.loss, pairs, float(self.tol))
            # Steep planes lose their digits sooner than steep slopes: columns of 1e5 at alpha 1e-4 are too much.
            # Over few pairs a narrow kink does: of 36 fits of 1,800 pairs, two came no nearer than 4e-7 and 2e-6.
            second = {"bundle": "smoothing", "smoothing": "bundle"}.get(solver)
        return MarginFit(self.loss, solver, float(self.tol), self.max_iter, second)

    def _report_solutions(self, fit: MarginFit, solutions: Sequence[Solution], several: bool) -> Floats:
        """Set the attributes that describe the solutions, warn about bad ones, and return their coefficients."""
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
        return np.ascontiguousarray(one_or_all([s.coef for s in solutions], several))


def check_alpha(alpha: object) -> None:
    """Raise unless alpha is a positive number."""
    check_number("alpha", alpha, minimum=0, remedy="use a positive number such as 1e-4")
    if alpha == 0:
        raise InvalidInputError(
            "alpha=0 leaves the minimum undetermined and no gap to prove.", "use a small one such as 1e-8."
        )
