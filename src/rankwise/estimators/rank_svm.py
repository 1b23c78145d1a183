"""Linear RankSVM: pairs with margins, in linearithmic time."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Never, Self

import numpy as np

from rankwise.arrays import Floats
from rankwise.data.validation import check_count, check_flag
from rankwise.design import Design
from rankwise.estimators.margin_ranker import MarginRanker, check_alpha
from rankwise.estimators.pairwise import PairwiseRanker
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.problems.training import TrainingData
from rankwise.selection.cv import held_out_pairs
from rankwise.selection.margin_fit import (
    HeldOut,
    curvature_of,
    label_margins,
    one_or_all,
    prepare_columns,
)
from rankwise.selection.reading import row_scorer
from rankwise.selection.scorers import Scorer
from rankwise.solvers.solution import Solution, Status
from rankwise.threads import one_blas_thread

__all__ = ["RankSVM"]


class RankSVM(MarginRanker, PairwiseRanker):
    """Rank by a linear function fitted with a pairwise loss that stops at a margin.

    Minimises the weighted mean over the pairs i > j that the labels order inside each query,
    ``(Σ ω loss) / (Σ ω) + alpha ‖w‖²`` with ``f = Xw`` and ``t = 1 - (f_i - f_j)``; `rankwise.objectives` states the
    weights ``ω``. Note that `RankRLS` minimises a sum instead: its `alpha` is on another scale. Time grows as
    ``rows · log(rows)``, however many different labels there are.

    Parameters
    ----------
    alpha : float, default=1e-4
        The penalty on ``‖w‖²``, positive; larger is simpler.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        ``max(0, t)``, its square, or ``log(1 + exp(f_j - f_i))``. The last is the model of Bradley and Terry for
        `fit_pairs` only; `predict_pairs` then returns probabilities.
    query_weight : {"size", "pairs", "equal"}, default="equal"
        What a query's total weight grows with: its rows, its pairs, or nothing.
    solver : {"auto", "smoothing", "bundle", "newton"}, default="auto"
        All find the same minimum. For the hinge: "smoothing" (L-BFGS on a hinge with a rounded kink, the default) or
        "bundle" (cutting planes with line search). For the smooth losses: "newton" (the default) or "bundle".
    tol : float, default=1e-3
        When to stop, as a share below 1 of what can be gained over ``w = 0``: once the objective less its proved lower
        bound is at most `tol` times the objective at 0 less that bound. The rule has no units, and never takes 0 for
        the minimum while anything pulls.
    max_iter : int, default=None
        The most iterations; by default enough to converge.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    early_stopping : bool, default=False
        Stop when held-out rows are no longer ranked better, and keep the best iterate.
    patience : int, default=10
        How many iterations without improvement early stopping waits for.
    scoring : str or Metric, default="pairwise_error"
        What early stopping watches: a name of `rankwise.metrics.METRICS`.
    validation_fraction : float, default=0.1
        The share of queries (of rows, where there is one ranking) that early stopping holds out if `fit` gets
        no `eval_set`.
    random_state : int, default=0
        Seeds that choice.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    coef_ : ndarray of shape (features,), or (outputs, features)
    duality_gap_ : float, or ndarray of shape (outputs,)
        The objective at `coef_` is at most this much above its minimum: proved, not estimated, and not relative.
    n_iter_ : int
    n_reads_ : int
        How many times the solvers read X.
    n_queries_, n_pairs_, n_ignored_queries_
        As in `RankRLS`; ignored queries play no part at all.
    solver_, loss_ : str
        The solver and the loss that were used.
    best_iteration_, history_
        With early stopping, as in `RankRLS`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankSVM
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    >>> y = [0, 1, 2, 0, 3]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankSVM(alpha=0.01).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid).tolist()
    [3, 2, 1, 2, 1]
    >>> bool(model.duality_gap_ <= 1e-3)
    True
    """

    def __init__(
        self,
        alpha: float = 1e-4,
        *,
        loss: str = "hinge",
        query_weight: str = "equal",
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        warm_start: bool = False,
        early_stopping: bool = False,
        patience: int = 10,
        scoring: str | Metric = "pairwise_error",
        validation_fraction: float = 0.1,
        random_state: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.query_weight = query_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
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
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `RankRLS.fit`; the columns of `y` are fitted one by one.
        eval_set : tuple (X, y) or (X, y, qid), optional
            The rows that early stopping watches; by default a share of the training data.
        """
        refuse_unknown("fit", unknown)
        self._check_parameters()
        self._check_watched(eval_set)
        data = self._labelled_data(X, y, qid, sample_weight, query_importance)
        prepare_columns(data.design)
        row_weight, held_out = data.row_weight, None
        if self.early_stopping:
            row_weight, held_out = self._held_out(data, eval_set)
        outputs = range(len(data.columns))
        pairs = [label_margins(data, output, row_weight) for output in outputs]
        graphs = [data.graph(output, row_weight) for output in outputs]
        self._solve(data.design, pairs, graphs, held_out, several=data.several_outputs)
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
    ) -> Self:
        """Fit the model to preferences: a list of pairs instead of labels.

        Time and memory grow with the number of pairs. The loss is a mean weighted by `weight`; `query_weight` plays no
        part. For preferred and rejected rows as two matrices see `rankwise.data.stack_preferred`, for clicks
        `rankwise.data.pairs_from_clicks`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        pairs : array-like of int of shape (pairs, 2)
            Row numbers of winner and loser.
        magnitude : float or array-like of shape (pairs,), optional
            The margin of each pair, 1 by default: by how much the winner's score should be higher. Ties (0) take no
            part. Not for ``loss="logistic"``, which has no margins.
        weight : float or array-like of shape (pairs,), optional
            How much each pair weighs, 1 by default; 0 leaves it out.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What early stopping watches, as in `RankRLS.fit_pairs`.

        Returns
        -------
        self
            With ``n_pairs_``, ``n_components_`` and ``n_unpaired_rows_`` as in `RankRLS.fit_pairs`.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
        >>> model = RankSVM(0.01, loss="logistic").fit_pairs(X, [[1, 0], [2, 0], [4, 3]])
        >>> bool(model.predict_pairs(X[[4]], X[[0]])[0] > 0.5)
        True
        """
        refuse_unknown("fit_pairs", unknown)
        self._check_watched(eval_set)
        if not self.early_stopping:
            return super().fit_pairs(X, pairs, magnitude, weight)
        self._check_parameters()
        data = self._pair_data(X, pairs, magnitude, weight)
        metric = get_metric(self.scoring)
        scorer: Scorer
        if eval_set is not None:
            design, (scorer,) = self._pair_eval_set(data, eval_set, metric)
            margins = self._listed_margins(data.graph)
        else:
            left_out = held_out_pairs(data, self.validation_fraction, self.random_state)
            design, (margins, scorer) = data.design, self._pair_fold(data, left_out, 0, metric)
        prepare_columns(data.design)
        held_out = [HeldOut(design, scorer, self.patience)]
        self._solve(data.design, [margins], [data.graph], held_out, several=False)
        return self

    def _learn(self, design: Design, graphs: Sequence[PairGraph]) -> None:
        """Fit listed pairs."""
        graph = graphs[0]
        assert isinstance(graph, PreferenceGraph)
        prepare_columns(design)
        self._solve(design, [self._listed_margins(graph)], graphs, None, several=False)

    def _solve(
        self,
        design: Design,
        pairs: Sequence[MarginPairs],
        graphs: Sequence[PairGraph],
        held_out: Sequence[HeldOut] | None,
        *,
        several: bool,
    ) -> None:
        starts = self._starts(len(pairs), design.shape[1])
        reads = design.reads
        fit = self._margin_fit(pairs[0])
        watching = [None] * len(pairs) if held_out is None else held_out
        solutions: list[Solution] = []
        for own, graph, start, rows in zip(pairs, graphs, starts, watching, strict=True):
            curvature = curvature_of(design, graph)
            solutions.append(
                fit.solve(design, own, float(self.alpha), start=start, curvature=curvature, held_out=rows)
            )
            if solutions[-1].status is Status.INTERRUPTED and len(solutions) < len(pairs):
                raise KeyboardInterrupt  # there is no model of the other outputs
        self.n_reads_ = design.reads - reads
        self.coef_ = self._report_solutions(fit, solutions, several)
        self._forget("best_iteration_", "history_")
        if held_out is not None:
            sign = -1.0 if get_metric(self.scoring).greater_is_better else 1.0
            history = [[sign * error for error in rows.errors] for rows in held_out]
            self.history_ = history if several else history[0]
            self.best_iteration_ = one_or_all([rows.best_iteration for rows in held_out], several)

    def _starts(self, n_outputs: int, n_features: int) -> list[Floats | None]:
        if self.warm_start and hasattr(self, "coef_"):
            last = np.atleast_2d(self.coef_)
            if last.shape == (n_outputs, n_features):
                return list(last.copy())
        return [None] * n_outputs

    def _held_out(self, data: TrainingData, eval_set: Any) -> tuple[Floats | None, list[HeldOut]]:
        """Return the weights of the rows that are trained on, and the rows that watch, output by output."""
        metric = get_metric(self.scoring)
        if eval_set is not None:
            design, scorers = self._eval_set(data, eval_set, metric)
            return data.row_weight, [HeldOut(design, scorer, self.patience) for scorer in scorers]
        is_held = data.assigner.share(self.validation_fraction, self.random_state)
        rows = np.flatnonzero(is_held)
        design, queries = data.design.rows(rows), data.queries.subset(rows)
        weight = np.ones(data.queries.n_rows) if data.row_weight is None else data.row_weight
        scorers = [
            row_scorer(metric, labels[rows], queries, self.n_threads, "what was held out", weight[rows])
            for labels in data.columns
        ]
        return weight * ~is_held, [HeldOut(design, scorer, self.patience) for scorer in scorers]

    def _check_watched(self, eval_set: Any) -> None:
        if eval_set is not None and not self.early_stopping:
            raise InvalidInputError(
                "eval_set was passed, but nothing looks at it.",
                "set early_stopping=True, or use RankSVMCV to choose alpha on it.",
            )

    def _check_parameters(self) -> None:
        self._check_margin_parameters()
        check_flag("early_stopping", self.early_stopping)
        check_flag("warm_start", self.warm_start)
        check_alpha(self.alpha)
        get_metric(self.scoring)
        check_count("patience", self.patience, optional=False)
        if not isinstance(self.validation_fraction, Real) or not 0 < float(self.validation_fraction) < 1:
            raise InvalidInputError(
                f"validation_fraction={self.validation_fraction!r} is not between 0 and 1.", "use 0.1."
            )
