"""Kernel RankRLS that chooses alpha, and gamma, on exact hold-out predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.validation import check_choice, check_count
from rankwise.design import Design
from rankwise.estimators.kernel_ranker import KernelRanker
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.pairwise import PreferenceRanker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.problems.kernel import basis_size
from rankwise.problems.training import TrainingData
from rankwise.selection.grids import POWERS_OF_TWO, warn_of_edges
from rankwise.selection.hold_out_plan import check_cv_parameter
from rankwise.selection.kernel_choice import KernelChoice
from rankwise.selection.kernel_search import Choose, KernelSearch
from rankwise.selection.nested import check_can_nest, check_nested, nested_score
from rankwise.selection.reading import AVERAGING, METHODS, check_alphas
from rankwise.threads import one_blas_thread

__all__ = ["KernelRankRLSCV"]

# What only a search over iterations says.
_OF_SURFACES = ("surface_", "unpenalised_", "choices_", "best_iteration_", "keeps_basis_", "n_products_")


class KernelRankRLSCV(PreferenceRanker, KernelRanker, LinearRankRLS):
    """`KernelRankRLS` with alpha, and gamma, chosen on rows that the model did not see.

    One symmetric eigendecomposition a gamma gives the held-out predictions of every alpha, without refitting: exact
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
    cv : "auto", "leave-query-out", "leave-pair-out", int or splitter, default="auto"
        An integer makes so many folds of whole queries, or of the rows of one ranking. Leave-pair-out scores each
        pair of rows of one global ranking by the model that saw neither. "auto" leaves out queries where
        there are several; in one ranking pairs, up to 2000 rows, and else makes 10 folds; where leave-pair-out has no
        closed form, or not at a fair price, `cv_` says so. Also a scikit-learn splitter, or a list of its splits, that
        puts each row into at most one test set.
    nested : bool or int, default=False
        Also estimate the score of the whole procedure, choice included, on so many outer folds (True: 5).
    averaging : {"folds", "pooled"}, default="folds"
        For folds of the rows of one ranking: average the folds' values, or score all held-out rows together. Pooled
        scores are shifted so that a fold's training rows score on average what their labels are.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`; leave-pair-out takes those that count pairs.
    degree, coef0, kernel_params, basis, query_weight, ties, cost, memory_limit, random_state, n_threads
        As in `KernelRankRLS`. Leave-pair-out takes one decomposition whatever they are, with ties left out also a
        system for each pair of levels. With ``cost="relative"`` it takes a decomposition for each pair of levels, and
        raises where those are too many. Rows that weigh differently have no closed form with ties left out, or with
        that cost.
    solver : {"auto", "eigen", "cg"}, default="auto"
        "eigen" decomposes a matrix of rows × rows, or of basis × basis. "cg" multiplies by the kernel, which may be a
        LinearOperator, a precomputed matrix on disk (`numpy.memmap`), or made again block by block where it does not
        fit in memory: folds or an `eval_set` scorer, 5 folds by default, every alpha at every iteration as in
        `RankRLSCV`. For a reduced set all alphas converge in lockstep, preconditioned by a sample of the rows. "auto"
        is "cg" for operators only.
    method : {"auto", "hybrid", "tikhonov", "early-stopping"}, default="auto"
        As in `RankRLSCV`, for ``solver="cg"`` without a reduced set; "auto" is "hybrid" there and else "tikhonov".
    patience, judge_rows, tol, max_iter
        Of solver "cg", as in `RankRLSCV`.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
    gamma_ : float
        One for all outputs.
    alphas_ : ndarray of shape (alphas,)
    cv_errors_ : ndarray of shape (alphas,) or (alphas, outputs); a first axis where `gamma` is a list
        The held-out value of `scoring`; NaN where the grid went on for another gamma only.
    best_score_ : float, or ndarray of shape (outputs,)
        That of the choice. It is optimistic: the choice was made on the same rows.
    nested_score_ : float, or ndarray of shape (outputs,)
        Only with `nested`: the value on outer folds that took no part in the choice.
    cv_ : str
        What was held out, in words.
    surface_, unpenalised_, choices_, best_iteration_, n_products_, keeps_basis_
        As in `RankRLSCV`; only with ``solver="cg"`` and no reduced set.
    solver_, method_, n_iter_
    dual_coef_, basis_, X_fit_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
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

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        alphas: Any = POWERS_OF_TWO,
        cv: Any = "auto",
        nested: Any = False,
        averaging: str = "folds",
        scoring: str | Metric = "pairwise_error",
        gamma: Any = "scale",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        basis: Any = None,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        solver: str = "auto",
        method: str = "auto",
        patience: int = 10,
        judge_rows: int = 20_000,
        tol: float = 1e-5,
        max_iter: int | None = None,
        memory_limit: int | None = None,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.alphas = alphas
        self.cv = cv
        self.nested = nested
        self.averaging = averaging
        self.scoring = scoring
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.basis = basis
        self.query_weight = query_weight
        self.ties = ties
        self.cost = cost
        self.solver = solver
        self.method = method
        self.patience = patience
        self.judge_rows = judge_rows
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
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
        eval_set: Any = None,
        **unknown: Never,
    ) -> KernelRankRLSCV:
        """Choose alpha and gamma, and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `KernelRankRLS.fit`.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows to score by instead of what `cv` says; the model is then fitted on X, y alone. For a precomputed kernel
            the kernel between these rows and the training rows.
        """
        refuse_unknown("fit", unknown)
        metric, gammas = self._check_parameters()
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        check_can_nest(self.nested, data.design, eval_set)
        search = self._search(data.design, metric)
        given = None if eval_set is None else self._eval_set(data, eval_set, metric)
        choose, self.cv_ = search.of_rows(data, given)
        several = data.several_outputs
        self._choose_gamma(data.design, data.row_weight, gammas, choose, metric, several=several)
        self._forget("nested_score_")
        if self.nested:
            self.nested_score_ = nested_score(self, data, metric, self._row_indexer(data))
        return self

    @one_blas_thread
    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        magnitude: Any = None,
        weight: Any = None,
        eval_set: Any = None,
        groups: Any = None,
        **unknown: Never,
    ) -> KernelRankRLSCV:
        """Choose alpha and gamma, and fit the model to preferences: a list of pairs instead of labels.

        `scoring` must be "pairwise_error" or "concordance". Pairs that tie (magnitude 0) train, but score nothing.

        Parameters
        ----------
        X, pairs, magnitude, weight
            As in `KernelRankRLS.fit_pairs`.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What to score by, instead of what `cv` says; the pairs are row numbers of the X beside them.
        groups : array-like of shape (pairs,), optional
            What is held out together, such as queries or annotators; anything hashable. Without it
            ``cv="leave-query-out"`` holds out each connected component of the rows, and "leave-pair-out" all
            comparisons of each two rows. "auto" leaves out groups or components where there are several, with
            ``solver="cg"`` 5 folds of them, else it makes 5 folds of pairs.
        """
        refuse_unknown("fit_pairs", unknown)
        metric, gammas = self._check_parameters()
        if self.nested:
            raise InvalidInputError("nested is for labelled rows.", "use nested=False with fit_pairs.")
        data = self._pair_data(X, pairs, magnitude, weight)
        search = self._search(data.design, metric)
        if search.by_products and self.basis is not None:
            raise InvalidInputError(
                "solver='cg' on a reduced set is for labelled rows.", "use solver='eigen' with fit_pairs."
            )
        given = None if eval_set is None else self._pair_eval_set(data, eval_set, metric)
        choose, self.cv_ = search.of_pairs(data, groups, given)
        self._choose_gamma(data.design, None, gammas, choose, metric, several=False)
        self._forget("nested_score_")
        return self

    def _search(self, design: Design, metric: Metric) -> KernelSearch:
        """Settle which method is used."""
        is_operator = not design.has_rows
        self.solver_ = ("cg" if is_operator else "eigen") if self.solver == "auto" else self.solver
        if is_operator and self.solver_ != "cg":
            raise InvalidInputError(
                f"solver={self.solver!r} needs the kernel as a matrix.", "use solver='cg' with an operator."
            )
        converges = self.solver_ == "eigen" or self.basis is not None
        if converges and self.method not in {"auto", "tikhonov"}:
            raise InvalidInputError(
                f"method={self.method!r} stops early, and a decomposition or a reduced set knows the converged models "
                "only.",
                "use method='auto', or solver='cg' without a basis.",
            )
        self.method_ = ("tikhonov" if converges else "hybrid") if self.method == "auto" else self.method
        return KernelSearch(
            self.cv,
            metric,
            self.averaging,
            self.alphas_,
            self.solver_ == "cg",
            basis_size(self.basis, design.shape[0]),
            self.method_,
            self.patience,
            self.judge_rows,
            float(self.tol),
            self.max_iter,
            self.random_state,
            self.n_threads,
        )

    def _choose_gamma(
        self,
        design: Design,
        row_weight: Floats | None,
        gammas: list[Any],
        choose: Choose,
        metric: Metric,
        *,
        several: bool,
    ) -> None:
        sign = -1.0 if metric.greater_is_better else 1.0
        choices: list[KernelChoice] = []
        best, chosen = np.inf, gammas[0]
        for gamma in gammas:
            choices.append(choose(self._problem(design, row_weight, gamma)))
            error = float((sign * choices[-1].best).mean())
            if error < best or not choices[1:]:
                best, chosen, kept = error, gamma, choices[-1]
        self._problem(design, row_weight, chosen)  # sets the attributes of the chosen kernel again
        self.alphas_ = np.unique(np.concatenate([choice.alphas for choice in choices]))
        tables = np.full((len(gammas), self.alphas_.size, kept.values.shape[1]), np.nan)
        for one, choice in zip(tables, choices, strict=True):
            one[np.searchsorted(self.alphas_, choice.alphas)] = choice.values
        table = tables[0] if _is_one(self.gamma) else tables
        alphas = kept.alphas[np.minimum(kept.positions, kept.alphas.size - 1)]
        warn_of_edges(self.alphas, kept.alphas, kept.values, metric)
        self.cv_errors_ = table if several else table[..., 0]
        self.alpha_ = alphas if several else float(alphas[0])
        self.best_score_ = kept.best if several else float(kept.best[0])
        self.dual_coef_ = np.array(kept.dual) if several else kept.dual[0]
        self._forget(*_OF_SURFACES)
        self._set({"n_iter_": 0, **kept.extra})

    def _row_indexer(self, data: TrainingData) -> Callable[[Any, Any], Any]:
        """Return what gives X of some rows to a model of others."""
        X = self._problem(data.design, data.row_weight, getattr(self, "gamma_", "scale")).X
        if self.kernel_.is_precomputed:
            return lambda rows, train: X[np.ix_(rows, train)]
        return lambda rows, _: X[rows]

    def _check_parameters(self) -> tuple[Metric, list[Any]]:
        self._check_loss_parameters()
        self._check_kernel_parameters()
        check_cv_parameter(self.cv)
        check_nested(self.nested)
        check_choice("averaging", self.averaging, AVERAGING)
        check_choice("solver", self.solver, ("auto", "eigen", "cg"))
        check_choice("method", self.method, ("auto", *METHODS))
        for name in ("patience", "judge_rows"):
            check_count(name, getattr(self, name), optional=False)
        self.alphas_ = check_alphas(self.alphas)
        gammas = [self.gamma] if _is_one(self.gamma) else list(self.gamma)
        if not gammas:
            raise InvalidInputError(
                "gamma is an empty list.", "use 'scale', or a list such as [0.01, 0.1, 1]."
            )
        return get_metric(self.scoring), gammas


def _is_one(gamma: Any) -> bool:
    return isinstance(gamma, str) or np.ndim(gamma) == 0
