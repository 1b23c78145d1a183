"""Linear RankRLS: least squares over pairs, without ever listing them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Never

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.validation import check_choice, check_count, check_flag, check_number
from rankwise.design import Design
from rankwise.estimators.pairwise import PairwiseRanker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.estimators.streaming import StreamingRanker
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.objectives import QuadraticObjective, SquaredObjective
from rankwise.pairs.graph import PairGraph
from rankwise.problems.training import PairData, TrainingData
from rankwise.selection.early_stopping import EvalSet, stop_early
from rankwise.selection.solving import resolve_solver, solve
from rankwise.solvers.choose import ITERATIVE, SOLVERS
from rankwise.solvers.momentum import MOMENTUM
from rankwise.solvers.solution import Solution
from rankwise.threads import one_blas_thread

__all__ = ["RankRLS"]


class RankRLS(StreamingRanker, PairwiseRanker):
    """Rank by a linear function fitted with the pairwise squared loss.

    Minimises, over the pairs i > j that the labels order inside each query,
    ``Σ ω (z - (f_i - f_j))² + alpha ‖w‖²`` with ``f = Xw``; `rankwise.objectives` states the weights ``ω``
    and the wanted differences ``z``. For one global ranking this is ridge regression with a free intercept.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty on ``‖w‖²``; larger is simpler. With 0, a singular problem is answered by its solution of
        least norm, with a warning.
    query_weight : {"size", "pairs", "equal"}, default="size"
        What a query's total weight grows with: its rows, its pairs, or nothing.
    ties : {"include", "exclude"}, default="include"
        Whether rows with equal labels are asked to have equal scores.
    cost : {"magnitude", "unit", "relative"}, default="magnitude"
        The wanted difference of a pair: the difference of its labels, 1, or the difference of its labels
        with the error measured relative to it (which needs ``ties="exclude"``).
    solver : str, default="auto"
        All give the same model. "direct" and "eigen" form a features × features matrix; "cg" (conjugate gradients)
        does not. "stochastic" reads the data once in blocks and continues with "cg" from there: for data whose
        reading is slow. "gdm" and "egdm" are gradient descent with momentum, with a given pace, and with one
        estimated from the spectrum (by Lanczos; "egdm-power": as in the paper; "egdm-blocks": from one read).
    precondition : {None, "jacobi"}, default=None
        For "cg" only: helps where columns have very different scales, hurts on tf-idf text.
    tol : float, default=1e-5
        Iterative solvers stop at this relative residual of the normal equations.
    max_iter : int, default=None
        The most iterations; by default enough to converge.
    learning_rate : float, default=None
        η of "gdm"; by default the best that needs no knowledge of the spectrum.
    momentum : float, default=0.9
        μ of "gdm".
    scaling : float, default=0.0
        Penalise ``w'D^(2 scaling)w``, ``D = diag(X'LX)``, instead of ``w'w``: a prior that expects smaller
        coefficients of columns that vary much. 0 is off, 0.25 often helps on text.
    early_stopping : bool, default=False
        Stop the solver when held-out rows are no longer ranked better, and keep its best iterate: of conjugate
        gradients with "auto", otherwise of the solver that is named. "direct" and "eigen" have no iterates, and are
        refused.
    patience : int, default=10
        How many iterations (reads, of "stochastic") without improvement early stopping waits for.
    scoring : str or Metric, default="pairwise_error"
        What early stopping watches: a name of `rankwise.metrics.METRICS`. Pairs are scored by "pairwise_error" or
        "concordance" only.
    validation_fraction : float, default=0.1
        The share of queries (of rows, where there is one ranking; of pairs, in `fit_pairs`) that early stopping
        holds out if it gets no `eval_set`.
    random_state : int, default=0
        Seeds that choice.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    coef_ : ndarray of shape (features,), or (outputs, features)
    n_iter_ : int
        Iterations of an iterative solver, 0 otherwise.
    n_queries_ : int
    n_pairs_ : int, or ndarray of shape (outputs,)
        Pairs of rows with different labels inside a query.
    n_ignored_queries_ : int, or ndarray of shape (outputs,)
        Queries without such a pair. With ``ties="include"`` they still enter the objective.
    solver_ : str
        The solver that was used.
    best_iteration_ : int, or ndarray of shape (outputs,)
        With early stopping: the iteration that was kept.
    history_ : list of float, or list of lists
        With early stopping: the value of `scoring` after each iteration.
    n_features_in_ : int
    n_components_, n_unpaired_rows_ : int
        After `fit_pairs`: connected components among the rows in pairs, and rows in no pair.
    feature_names_in_ : ndarray of shape (features,)
        Only where X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    >>> y = [0, 1, 2, 0, 3]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankRLS(alpha=0.1).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid).tolist()
    [3, 2, 1, 2, 1]
    >>> model.score(X, y, qid=qid)
    1.0
    """

    coef_: Floats

    _squares_columns = False  # every solver tells by its status whether alpha leaves something to compute

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        solver: str = "auto",
        precondition: str | None = None,
        tol: float = 1e-5,
        max_iter: int | None = None,
        learning_rate: float | None = None,
        momentum: float = MOMENTUM,
        scaling: float = 0.0,
        early_stopping: bool = False,
        patience: int = 10,
        scoring: str | Metric = "pairwise_error",
        validation_fraction: float = 0.1,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.query_weight = query_weight
        self.ties = ties
        self.cost = cost
        self.solver = solver
        self.precondition = precondition
        self.tol = tol
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.scaling = scaling
        self.early_stopping = early_stopping
        self.patience = patience
        self.scoring = scoring
        self.validation_fraction = validation_fraction
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
    ) -> RankRLS:
        """Fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        y : array-like of shape (rows,) or (rows, outputs)
            Labels: grades or real-valued scores, higher is better.
        qid : array-like of shape (rows,), optional
            The query of each row; anything hashable, in any order. Without it all rows form one ranking.
        sample_weight : array-like of shape (rows,), optional
            A pair weighs the product of its rows' weights: weight 2 equals duplication, 0 removal.
        query_importance : dict or array-like of shape (rows,), optional
            A factor on the weight of every pair of a query.
        eval_set : tuple (X, y) or (X, y, qid), optional
            The rows that early stopping watches; by default a share of the training data.
        """
        refuse_unknown("fit", unknown)
        self._check_parameters()
        self._check_watched(eval_set)
        self._forget("_stream", "n_samples_seen_")
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        if not self.early_stopping:
            self._learn(data.design, data.graphs())
            if data.several_outputs:
                self.coef_ = np.atleast_2d(self.coef_)  # y may have a single column
            return self
        metric = get_metric(self.scoring)
        eval_set = None if eval_set is None else self._eval_set(data, eval_set, metric)
        self._set(self._stopped_early(data, metric, eval_set))
        return self

    @one_blas_thread
    def fit_pairs(
        self,
        X: Any,
        pairs: Any,
        magnitude: Any = None,
        weight: Any = None,
        eval_set: Any = None,
        **unknown: Never,
    ) -> RankRLS:
        """Fit the model to preferences: a list of pairs instead of labels.

        Each pair weighs `weight`; `query_weight` plays no part. A pair may come several times, which adds up its
        weights, and may contradict another one, which is noise. For preferred and rejected rows as two matrices see
        `rankwise.data.stack_preferred`, for clicks `rankwise.data.pairs_from_clicks`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        pairs : array-like of int of shape (pairs, 2)
            Row numbers of winner and loser.
        magnitude : float or array-like of shape (pairs,), optional
            By how much the winner is preferred, 1 by default; 0 says that the two tie. `cost` says what it does.
        weight : float or array-like of shape (pairs,), optional
            How much each pair weighs, 1 by default; 0 leaves it out.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What early stopping watches; the pairs are row numbers of the X beside them. By default a share of the
            training pairs is held out: `validation_fraction` of the couples of rows that are compared, chosen by the
            content of the two rows and `random_state`, with all comparisons of a couple. `scoring` must be
            "pairwise_error" or "concordance".

        Returns
        -------
        self
            With ``n_pairs_``, ``n_components_`` and ``n_unpaired_rows_`` as in `PairwiseRanker.fit_pairs`, which count
            all pairs, held out or not.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankRLS
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 5))
        >>> pairs = [(i, j) if X[i, 0] > X[j, 0] else (j, i) for i, j in zip(range(99), range(1, 100))]
        >>> model = RankRLS(0.0, early_stopping=True).fit_pairs(X[:60], pairs[:59], eval_set=(X, pairs[60:]))
        >>> model.score_pairs(X, pairs[60:]) == 1 - min(model.history_)
        True
        """
        refuse_unknown("fit_pairs", unknown)
        self._check_watched(eval_set)
        self._forget("_stream", "n_samples_seen_")
        if not self.early_stopping:
            return super().fit_pairs(X, pairs, magnitude, weight)
        self._check_parameters()
        data = self._pair_data(X, pairs, magnitude, weight)
        metric = get_metric(self.scoring)
        eval_set = None if eval_set is None else self._pair_eval_set(data, eval_set, metric)
        self._set(self._stopped_early(data, metric, eval_set))
        return self

    def _learn(self, design: Design, graphs: Sequence[PairGraph]) -> None:
        """Solve every graph's problem; several graphs are several outputs."""
        self.solver_ = self._resolve_solver(design, forms_matrix=graphs[0].blocks is not None)
        solutions = [self._solve(SquaredObjective(design, graph), self.solver_) for graph in graphs]
        coef = np.column_stack([s.coef for s in solutions]) if len(solutions) > 1 else solutions[0].coef
        self.coef_ = np.ascontiguousarray(coef.T)
        self.n_iter_ = max(s.n_iter for s in solutions)
        self._forget("best_iteration_", "history_")

    def _stopped_early(
        self, data: TrainingData | PairData, metric: Metric, eval_set: EvalSet | None
    ) -> dict[str, Any]:
        self._resolve_solver(data.design, forms_matrix=False)  # says what is missing
        return stop_early(self, data, metric, eval_set)

    def _solve(self, objective: QuadraticObjective, solver: str) -> Solution:
        return solve(self, solver, objective)

    def _resolve_solver(self, design: Design, *, forms_matrix: bool) -> str:
        return resolve_solver(self, design, forms_matrix=forms_matrix)

    def _check_watched(self, eval_set: Any) -> None:
        if eval_set is not None and not self.early_stopping:
            raise InvalidInputError(
                "eval_set was passed, but nothing looks at it.",
                "set early_stopping=True, or use RankRLSCV to choose alpha on it.",
            )

    def _check_parameters(self) -> None:
        self._check_loss_parameters()
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        if self.precondition is not None:
            check_choice("precondition", self.precondition, ("jacobi",))
        check_number("alpha", self.alpha, minimum=0, remedy="use 0 or a positive number")
        check_number("scaling", self.scaling, minimum=-np.inf, remedy="use 0 (off) or 0.25")
        if self.learning_rate is not None:
            check_number(
                "learning_rate",
                self.learning_rate,
                minimum=np.nextafter(0, 1),
                remedy="use None for the best",
            )
        if not isinstance(self.momentum, Real) or not 0 <= float(self.momentum) < 1:
            raise InvalidInputError(f"momentum={self.momentum!r} is not at least 0 and below 1.", "use 0.9.")
        if self.early_stopping and self.solver not in {"auto", *ITERATIVE}:
            raise InvalidInputError(
                f"early_stopping chooses among iterates, and solver={self.solver!r} has none.",
                "use solver='auto' or another that iterates, or early_stopping=False.",
            )
        check_flag("early_stopping", self.early_stopping)
        get_metric(self.scoring)
        check_count("patience", self.patience, optional=False)
        if not isinstance(self.validation_fraction, Real) or not 0 < float(self.validation_fraction) < 1:
            raise InvalidInputError(
                f"validation_fraction={self.validation_fraction!r} is not between 0 and 1.", "use 0.1."
            )
