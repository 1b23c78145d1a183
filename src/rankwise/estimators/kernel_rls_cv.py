"""Kernel RankRLS that chooses alpha, and gamma, on exact hold-out predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from rankwise.arrays import ArrayLike, Floats, RandomSource
from rankwise.data.containers import as_array
from rankwise.data.validation import check_alphas
from rankwise.estimators.base import Constraints
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.notices import notices_of_extremes
from rankwise.fitting.problem import KernelProblem, Problem
from rankwise.holdout.spaces import KernelSpace
from rankwise.kernels.basis import Basis, basis_size
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.selection.exact import choose_exactly
from rankwise.selection.grids import POWERS_OF_TWO
from rankwise.selection.krylov import Dual
from rankwise.selection.plan import Exact
from rankwise.selection.result import Selection, on_one_grid
from rankwise.selection.surface import EXACT, Reading

__all__ = ["KernelRankRLSCV"]


class KernelRankRLSCV(KernelRanker):
    """`KernelRankRLS` with alpha, and gamma, chosen on rows that the model did not see.

    One symmetric eigendecomposition per gamma gives the held-out predictions of every alpha, without refitting: exact
    leave-query-out, leave-pair-out, and k-fold. Where the kernel is too large to be decomposed, ``solver="cg"`` chooses
    by products with it alone.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As in `KernelRankRLS`.
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid; the default one goes on beyond its ends as in `RankRLSCV`.
    gamma : "scale", "auto", float, or a list of those, default="scale"
        As in `KernelRankRLS`; from a list the best is chosen.
    cv : "auto", "time", "leave-query-out", "leave-pair-out", int or splitter, default="auto"
        As in `RankRLSCV`. "auto" leaves out queries where there are several; in one ranking pairs, up to 2000 rows, and
        else makes 10 folds; where leave-pair-out has no closed form, or not at a fair price, `cv_` says so.
    averaging, scoring : default="folds", "pairwise_error"
        As in `RankRLSCV`; leave-pair-out takes metrics that count pairs.
    kernel_params, basis, query_weight, ties, cost, memory_limit, random_state, n_threads
        As in `KernelRankRLS`. Leave-pair-out has no closed form with ties left out or ``cost="relative"``.
    solver : {"auto", "eigen", "cg"}, default="auto"
        "eigen" decomposes a matrix of rows × rows, or of basis × basis. "cg" multiplies by the kernel, which may be a
        LinearOperator, a precomputed matrix on disk (`numpy.memmap`), or made again block by block where it does not
        fit in memory: folds or an `eval_set` score, 5 folds by default, every alpha at every iteration as in
        `RankRLSCV`. It takes no `basis`. "auto" is "cg" for operators only.
    method : {"auto", "hybrid", "tikhonov", "early-stopping"}, default="auto"
        As in `RankRLSCV`, for ``solver="cg"``; "auto" is "hybrid" there and else "tikhonov".
    patience, tol, max_iter
        Of solver "cg", as in `RankRLSCV`.

    Attributes
    ----------
    alpha_, alphas_, best_score_, cv_, method_
        As in `RankRLSCV`.
    gamma_ : float
        One for all outputs.
    cv_errors_ : ndarray of shape (alphas,) or (alphas, outputs); a first axis where `gamma` is a list
        The held-out value of `scoring`; NaN where the grid went on for another gamma only.
    surface_, unpenalised_, choices_, best_iteration_, n_products_, keeps_basis_
        As in `RankRLSCV`; only with ``solver="cg"``.
    solver_, n_iter_, dual_coef_, basis_, X_fit_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_
        As in `KernelRankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(120, 1))
    >>> y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=120)
    >>> model = KernelRankRLSCV(gamma=[0.1, 1.0]).fit(X, y, qid=np.arange(120) // 10)
    >>> model.cv_
    'leave-query-out over 12 queries'
    >>> model.cv_errors_.shape, bool(model.best_score_ < 0.15)
    ((2, 21), True)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **KernelRanker._parameter_constraints,
        "solver": [StrOptions({"auto", "eigen", "cg"})],
    }
    _whole_components = True

    def __init__(
        self,
        kernel: str | Callable[..., ArrayLike] = "rbf",
        *,
        alphas: ArrayLike = POWERS_OF_TWO,
        cv: object = "auto",
        averaging: str = "folds",
        scoring: str | Metric = "pairwise_error",
        gamma: str | float | Sequence[str | float] = "scale",
        kernel_params: Mapping[str, object] | None = None,
        basis: Basis = None,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        solver: str = "auto",
        method: str = "auto",
        patience: int = 10,
        tol: float = 1e-5,
        max_iter: int | None = None,
        memory_limit: int | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Choose alpha under every gamma, and keep the best."""
        self.solver_ = self._require_matrix(problem.design, "eigen")
        self.method_ = self._resolve_method()
        alphas = check_alphas(self.alphas)
        exact = None
        if self.solver_ == "eigen":
            n_rows = problem.design.shape[0]
            rank = n_rows if self.basis is None else basis_size(self.basis, n_rows)
            exact = Exact(rank, alphas.size, refits=True, is_pooled=self.averaging == "pooled")
        plan = self._held_out(problem, eval_set, exact)
        self.cv_ = plan.description
        problems: list[KernelProblem] = []
        tried: list[Selection] = []
        for gamma in self._gammas():
            problems.append(self._problem(problem, gamma, *problems[:1]))
            tried.append(self._choose_alpha(problems[-1], problem, plan, alphas))
        best = int(np.argmin([one.error for one in tried]))
        alphas, tables = on_one_grid([one.table for one in tried])
        errors = tables[0] if _is_one(self.gamma) else np.array(tables)
        self._keep_kernel(problems[best])
        self._keep(tried[best], problem, beside=replace(tried[best], alphas=alphas, errors=errors))

    def _choose_alpha(self, kernel: KernelProblem, problem: Problem, plan: Plan, alphas: Floats) -> Selection:
        """Choose alpha for one kernel: by products with it, or from one decomposition."""
        if self.solver_ == "eigen":
            options = (self._metric, self.averaging, alphas)
            return choose_exactly(KernelSpace(kernel), problem, plan, *options).with_facts(n_iter_=0)
        tol = float(self.tol)
        tol = tol if self.method_ == "tikhonov" else min(tol, EXACT)
        reading = Reading(self._metric, self.method_, self.averaging, self.patience, tol, self.max_iter)
        dual = Dual(kernel, kernel.products(problem.design))
        selection, best = reading.choose(problem, plan, alphas, [dual])
        indefinite = notices_of_extremes(kernel.kernel, {"on the pairs": best.extremes})
        return replace(selection, notices=[*selection.notices, *indefinite])

    def _resolve_method(self) -> str:
        converges = self.solver_ == "eigen"
        if converges and self.method not in {"auto", "tikhonov"}:
            raise InvalidInputError(
                f"method={self.method!r} stops early, and a decomposition knows the converged models only.",
                "use method='auto', or solver='cg' without a basis.",
            )
        if not converges and self.basis is not None:
            raise InvalidInputError(
                "solver='cg' multiplies by the kernel of all rows, and basis names a part of them.",
                "use solver='eigen' with a basis.",
            )
        return str(("tikhonov" if converges else "hybrid") if self.method == "auto" else self.method)

    def _gammas(self) -> list[str | float]:
        gammas = [self.gamma] if _is_one(self.gamma) else list(self.gamma)
        if not gammas:
            raise InvalidInputError(
                "gamma is an empty list.", "use 'scale', or a list such as [0.01, 0.1, 1]."
            )
        return gammas

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._gammas()


def _is_one(gamma: object) -> bool:
    return isinstance(gamma, str) or as_array("gamma", gamma).ndim == 0
