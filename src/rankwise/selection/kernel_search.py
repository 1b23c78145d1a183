"""The methods to an alpha for one kernel: one decomposition, products alone, or a reduced set in lockstep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric
from rankwise.problems.kernel import KernelProblem
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.selection.closed_form_pairs import decompose_pairs_of_kernel, held_out_pair_values
from rankwise.selection.cv import folds_of_pairs, folds_of_rows, groups_of_pairs, scoring_rows
from rankwise.selection.decompositions import Candidate, candidates_of, decompose, held_out_values
from rankwise.selection.held_out import HeldOutSystems, RowFoldSystems
from rankwise.selection.hold_out_plan import EXACT_CV, plan_hold_out
from rankwise.selection.kernel_choice import KernelChoice, choose_among, values_on_rows
from rankwise.selection.kernel_surface import (
    KernelEvalSetSystems,
    KernelFoldSystems,
    KernelPairFoldSystems,
    choose_by_products,
)
from rankwise.selection.pair_systems import LeftOutPairs
from rankwise.selection.reduced_set import ReducedPath
from rankwise.selection.scorers import Scorer

__all__ = ["Choose", "KernelSearch"]

Choose = Callable[[KernelProblem], KernelChoice]
EvalSet = tuple[Design, Sequence[Scorer]]


@dataclass(frozen=True)
class KernelSearch:
    """How to choose; the same for every gamma.

    Attributes
    ----------
    by_products : bool
        Whether only products with the kernel, or with the features of a reduced set, are taken.
    n_basis : int or None
        The rows of the reduced set; None without one.
    """

    cv: Any
    metric: Metric
    averaging: str
    alphas: Floats
    by_products: bool
    n_basis: int | None
    method: str
    patience: int
    judge_rows: int
    tol: float
    max_iter: int | None
    seed: int
    n_threads: int | None

    def of_rows(self, data: TrainingData, eval_set: EvalSet | None) -> tuple[Choose, str]:
        """Return what chooses for labelled rows, and in words by what."""
        if self.by_products:
            return self._rows_by_products(data, eval_set)
        if eval_set is not None:
            return partial(self._decompose_and_judge, data, eval_set), _words(eval_set, "rows")
        plan = plan_hold_out(
            self.cv,
            data,
            self.metric,
            self.seed,
            rank=data.queries.n_rows if self.n_basis is None else self.n_basis,
            n_alphas=self.alphas.size,
            is_pooled=self.averaging == "pooled",
            can_refit=self.n_basis is None,
        )

        def choose(problem: KernelProblem) -> KernelChoice:
            candidates = candidates_of(data, partial(decompose, problem))
            return self._best_of(
                candidates, lambda c, alphas: held_out_values(c, problem, data, plan, self.metric, alphas)
            )

        return choose, plan.words

    def of_pairs(self, data: PairData, groups: Any, eval_set: EvalSet | None) -> tuple[Choose, str]:
        """Return what chooses for listed pairs, and in words by what."""
        if self.by_products:
            return self._pairs_by_products(data, groups, eval_set)
        group, words = self._groups(data, groups)
        words = words if eval_set is None else f"an evaluation set of {_n_pairs(eval_set)} pairs"

        def choose(problem: KernelProblem) -> KernelChoice:
            candidate = decompose_pairs_of_kernel(problem, data.graph, group)

            def values(alphas: Floats) -> Floats:
                if eval_set is None:
                    return held_out_pair_values(candidate, data, group, self.metric, self.averaging, alphas)
                dual = np.column_stack([candidate.coefficients(float(alpha)) for alpha in alphas])
                errors = eval_set[1][0].errors(problem.scores(eval_set[0], dual).T)
                return np.asarray((-errors if self.metric.greater_is_better else errors)[:, None])

            return choose_among(
                self.alphas, values, self.metric, lambda _, alpha: candidate.coefficients(alpha)
            )

        return choose, words

    def _best_of(
        self, candidates: Sequence[Candidate], table: Callable[[Candidate, Floats], Floats]
    ) -> KernelChoice:
        """Choose by the tables of all candidates, side by side."""
        models = {output: (c, at) for c in candidates for at, output in enumerate(c.outputs)}

        def dual_of(output: int, alpha: float) -> Floats:
            candidate, at = models[output]
            return candidate.coefficients(candidate.target[:, at], alpha)

        return choose_among(
            self.alphas,
            lambda alphas: np.column_stack([table(c, alphas) for c in candidates]),
            self.metric,
            dual_of,
        )

    def _decompose_and_judge(
        self, data: TrainingData, eval_set: EvalSet, problem: KernelProblem
    ) -> KernelChoice:
        candidates = candidates_of(data, partial(decompose, problem))
        return self._best_of(
            candidates, lambda c, alphas: values_on_rows(c, problem, *eval_set, self.metric, alphas)
        )

    def _rows_by_products(self, data: TrainingData, eval_set: EvalSet | None) -> tuple[Choose, str]:
        words = ""
        if eval_set is None:
            self._require_folds()
            fold, words = folds_of_rows(self.cv, data, self.seed)
            scored, how_many = scoring_rows(data, fold, self.judge_rows, self.seed)
            options = (data, fold, scored, self.metric, self.averaging, self.n_threads)
            words += how_many

        def choose(problem: KernelProblem) -> KernelChoice:
            if problem.basis is not None:
                path = ReducedPath(
                    problem, data, self.metric, self.alphas, self.tol, self.max_iter, self.seed
                )
                if eval_set is None:
                    return path.scored_by_folds(RowFoldSystems(*options))
                return path.scored_by_rows(*eval_set)
            kernel = problem.products(data.design)
            systems: HeldOutSystems
            if eval_set is None:
                systems = KernelFoldSystems(*options, kernel)
            else:
                systems = KernelEvalSetSystems(data, kernel, problem.against(eval_set[0]), eval_set[1])
            return self._by_products(data, kernel, systems, refit=eval_set is None)

        return choose, words if eval_set is None else _words(eval_set, "rows")

    def _pairs_by_products(self, data: PairData, groups: Any, eval_set: EvalSet | None) -> tuple[Choose, str]:
        words = ""
        if eval_set is None:
            self._require_folds()
            whole = self._is_auto and groups is None and data.graph.n_components > 1
            together = groups_of_pairs("leave-query-out", data, None)[0] if whole else groups
            left_out, words = folds_of_pairs(self.cv, data, together, self.seed)
            words = words.replace("groups", "connected components") if whole else words

        def choose(problem: KernelProblem) -> KernelChoice:
            kernel = problem.products(data.design)
            systems: HeldOutSystems
            if eval_set is None:
                systems = KernelPairFoldSystems(data, left_out, self.metric, self.averaging, kernel)
            else:
                systems = KernelEvalSetSystems(data, kernel, problem.against(eval_set[0]), eval_set[1])
            return self._by_products(data, kernel, systems, refit=eval_set is None)

        return choose, words if eval_set is None else f"an evaluation set of {_n_pairs(eval_set)} pairs"

    def _by_products(
        self, data: TrainingProblem, kernel: Design, systems: HeldOutSystems, *, refit: bool
    ) -> KernelChoice:
        return choose_by_products(
            data,
            kernel,
            systems,
            self.metric,
            self.alphas,
            refit=refit,
            method=self.method,
            patience=self.patience,
            tol=self.tol,
            max_iter=self.max_iter,
        )

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "auto"

    def _require_folds(self) -> None:
        if isinstance(self.cv, str) and self.cv in EXACT_CV:
            raise InvalidInputError(
                f"cv={self.cv!r} takes a decomposition, and solver='cg' only multiplies.",
                "use cv=5 or an eval_set, or solver='eigen'.",
            )

    def _groups(self, data: PairData, groups: Any) -> tuple[npt.NDArray[np.int64], str]:
        """Number the groups of pairs that are held out in turn."""
        cv = self.cv
        if self._is_auto and (groups is not None or data.graph.n_components > 1):
            cv = "leave-query-out"
        if isinstance(cv, str) and cv in EXACT_CV:
            return groups_of_pairs(cv, data, groups)
        left_out, words = folds_of_pairs(cv, data, groups, self.seed)
        return _as_groups(left_out, len(data.preferences)), words


def _as_groups(left_out: LeftOutPairs, n_pairs: int) -> npt.NDArray[np.int64]:
    """Return the fold that lacks each pair, -1 for none."""
    if np.unique(left_out.pair).size < left_out.pair.size or not left_out.is_scored.all():
        raise InvalidInputError(
            "cv leaves pairs out of several folds, or out of training without scoring by them.",
            "use solver='cg', which takes any folds; or PreferenceKFold(by='pairs'), KFold or GroupKFold.",
        )
    group = np.full(n_pairs, -1, dtype=np.int64)
    group[left_out.pair] = left_out.fold
    return group


def _words(eval_set: EvalSet, what: str) -> str:
    return f"an evaluation set of {eval_set[0].shape[0]} {what}"


def _n_pairs(eval_set: EvalSet) -> int:
    return int(getattr(eval_set[1][0], "winner").size)  # noqa: B009
