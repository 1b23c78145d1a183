"""Kernel RankSVM: the linear solvers on the explicit features of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Never, Self

import numpy as np

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.estimators.margin_ranker import MarginRanker, check_alpha
from rankwise.estimators.pairwise import PairwiseRanker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.selection.margin_fit import curvature_of, label_margins
from rankwise.threads import one_blas_thread

__all__ = ["KernelRankSVM"]


class KernelRankSVM(KernelRanker, MarginRanker, PairwiseRanker):
    """Rank by a function of a kernel's space, fitted with a pairwise loss that stops at a margin.

    Minimises the objective of `RankSVM` over functions ``f(x) = Σ a_i k(x, x_i)`` with the penalty ``alpha ‖f‖²`` of
    the kernel's space. The kernel becomes an explicit feature map, exact where the basis holds all rows, and the linear
    solvers run on it.

    Parameters
    ----------
    kernel, gamma, degree, coef0, kernel_params, basis, memory_limit
        As in `KernelRankRLS`; a precomputed kernel must be a matrix. Without a `basis` all rows are one, which takes
        memory of a few matrices of rows × rows.
    alpha : float, default=1e-4
        The penalty, positive; larger is simpler.
    loss, query_weight, solver, tol, max_iter
        As in `RankSVM`.
    random_state : int, default=0
        Seeds the choice of the reduced set.
    n_threads : int, default=None
        As in `RankSVM`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (basis,), or (outputs, basis)
        Scores are the kernel values with the basis rows times these.
    duality_gap_, n_iter_, n_reads_, solver_, loss_
        As in `RankSVM`; reads are reads of the feature map.
    basis_, X_fit_, gamma_
        As in `KernelRankRLS`.
    n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankSVM, RankSVM
    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> y = np.abs(X[:, 0])
    >>> model = KernelRankSVM("rbf", gamma=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95 > RankSVM().fit(X, y).score(X, y))
    True
    """

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1e-4,
        basis: Any = None,
        loss: str = "hinge",
        query_weight: str = "equal",
        solver: str = "auto",
        memory_limit: int | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.basis = basis
        self.loss = loss
        self.query_weight = query_weight
        self.solver = solver
        self.memory_limit = memory_limit
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads

    @one_blas_thread
    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        query_importance: Any = None,
        **unknown: Never,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
            For ``kernel="precomputed"`` the kernel between all pairs of rows.
        y, qid, sample_weight, query_importance
            As in `RankSVM.fit`.
        """
        refuse_unknown("fit", unknown)
        self._check_parameters()
        data = self._labelled_data(X, y, qid, sample_weight, query_importance)
        outputs = range(len(data.columns))
        pairs = [label_margins(data, output, data.row_weight) for output in outputs]
        graphs = [data.graph(output, data.row_weight) for output in outputs]
        self._solve(data.design, pairs, graphs, data.row_weight, several=data.several_outputs)
        return self

    def _learn(self, design: Design, graphs: Sequence[PairGraph]) -> None:
        """Fit listed pairs."""
        graph = graphs[0]
        assert isinstance(graph, PreferenceGraph)
        self._solve(design, [self._listed_margins(graph)], graphs, None, several=False)

    def _solve(
        self,
        design: Design,
        pairs: Sequence[MarginPairs],
        graphs: Sequence[PairGraph],
        row_weight: Floats | None,
        *,
        several: bool,
    ) -> None:
        problem = self._problem(design, row_weight, self.gamma)
        if problem.basis is None:
            problem = problem.with_all_rows()
        feature_map = problem.feature_map()
        features = problem.features(feature_map)
        fit = self._margin_fit(pairs[0])
        solutions = [
            fit.solve(features, own, float(self.alpha), curvature=curvature_of(features, graph))
            for own, graph in zip(pairs, graphs, strict=True)
        ]
        self.n_reads_ = features.reads
        coef = self._report_solutions(fit, solutions, several)
        self.dual_coef_ = np.ascontiguousarray(feature_map.dual_coefficients(coef.T).T)

    def _check_parameters(self) -> None:
        self._check_margin_parameters()
        self._check_kernel_parameters()
        check_alpha(self.alpha)
