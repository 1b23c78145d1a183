"""Rankers that choose their regularisation: `fit` and `fit_pairs` with folds, exact hold-out, or an eval set."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Never, Self

from rankwise.arrays import ArrayLike, Labels, MatrixLike
from rankwise.data.validation import check_choice, check_count, check_running
from rankwise.estimators.base import Importance, Ranker
from rankwise.estimators.checks import check_squared_loss
from rankwise.estimators.refusals import refuse_unknown
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.problems.training import TrainingData, TrainingProblem
from rankwise.selection.cv import Decomposition, plan_rows
from rankwise.selection.cv_pairs import plan_pairs
from rankwise.selection.grids import POWERS_OF_TWO, check_alphas, warn_of_edges
from rankwise.selection.nested import check_can_nest, check_nested
from rankwise.selection.result import Selection
from rankwise.selection.splits import Sampling, check_cv
from rankwise.selection.surface import AVERAGING, METHODS
from rankwise.selection.systems import HeldOut
from rankwise.threads import one_blas_thread

__all__ = ["ChoosingRanker"]


class ChoosingRanker(Ranker):
    """A ranker that fits with several alphas, and keeps the one that ranks held-out rows or pairs best."""

    cv_: str
    _grid: ClassVar[tuple[float, ...]] = POWERS_OF_TWO  # the default of `alphas`
    nested: bool | int = False  # of those that have no such parameter

    @one_blas_thread
    def fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_importance: Importance | None = None,
        eval_set: object = None,
        **unknown: Never,
    ) -> Self:
        """Choose the regularisation and fit the model.

        Parameters
        ----------
        X, y, qid, sample_weight, query_importance
            As in `RankRLS.fit`; for ``kernel="precomputed"`` X is the kernel between all pairs of rows.
        eval_set : tuple (X, y) or (X, y, qid), optional
            Rows to score by, instead of what `cv` says; the model is then fitted on X, y alone. For a precomputed
            kernel the kernel between these rows and the training rows.
        """
        refuse_unknown("fit", unknown)
        self._check_parameters()
        data = self._training_data(X, y, qid, sample_weight, query_importance)
        check_can_nest(self.nested, data.design, eval_set)
        self._choose(data, eval_set, None)
        return self

    @one_blas_thread
    def fit_pairs(
        self,
        X: MatrixLike,
        pairs: ArrayLike,
        magnitude: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        eval_set: object = None,
        groups: ArrayLike | None = None,
        **unknown: Never,
    ) -> Self:
        """Choose the regularisation and fit the model to preferences: a list of pairs instead of labels.

        `scoring` must be "pairwise_error" or "concordance". Pairs that tie (magnitude 0) score nothing; least squares
        trains on them.

        Parameters
        ----------
        X, pairs, magnitude, weight
            As in `RankRLS.fit_pairs`.
        eval_set : tuple (X, pairs) or (X, pairs, weight), optional
            What to score by instead of what `cv` says; the pairs are row numbers of the X beside them. The model is
            then fitted on the training pairs alone.
        groups : array-like of shape (pairs,), optional
            What must not be divided between folds, such as prompts or raters; anything hashable. Without it, the folds
            that are made of a number `cv` keep all comparisons of the same two rows together. A splitter in `cv`, such
            as `rankwise.model_selection.PreferenceKFold`, splits the list of pairs, and gets the groups. For least
            squares, exactly and in turn, ``cv="leave-query-out"`` holds out each group, or without groups each
            connected component of the rows, and "leave-pair-out" all comparisons of each two rows. With a kernel "auto"
            leaves out groups or components where there are several, with ``solver="cg"`` 5 folds of them.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankRLSCV, RankSVMCV
        >>> from rankwise.model_selection import PreferenceKFold
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 5))
        >>> noisy = X[:, 0] + rng.normal(size=100)
        >>> pairs = [(i, j) for i, j in rng.integers(100, size=(500, 2)) if noisy[i] > noisy[j]]
        >>> model = RankRLSCV(cv=PreferenceKFold(3, by="items")).fit_pairs(X, pairs)
        >>> bool(model.best_score_ < 0.4)
        True
        >>> RankSVMCV(loss="logistic").fit_pairs(X, pairs).cv_
        '5 folds of pairs'
        """
        refuse_unknown("fit_pairs", unknown)
        self._check_parameters()
        if self.nested:
            raise InvalidInputError("nested is for labelled rows.", "use nested=False with fit_pairs.")
        self._choose(self._pair_data(X, pairs, magnitude, weight), eval_set, groups)
        return self

    @abstractmethod
    def _choose(self, data: TrainingProblem, eval_set: object, groups: ArrayLike | None) -> None:
        """Choose by an eval set, or by what `cv` makes of rows, or of pairs in groups; fit, and keep the model."""

    def _held_out(
        self,
        data: TrainingProblem,
        eval_set: object,
        groups: ArrayLike | None,
        *,
        by: Decomposition | None = None,
        whole_components: bool = False,
    ) -> HeldOut:
        """Read what to score by: an eval set, or what `cv` says."""
        sampling = Sampling(self.random_state, self.judge_rows)
        if eval_set is not None:
            return self._eval_set(data, eval_set, self._metric)
        if isinstance(data, TrainingData):
            return plan_rows(self.cv, data, self._metric, sampling, by)
        how = {"is_exact": by is not None, "whole_components": whole_components}
        return plan_pairs(self.cv, data, groups, sampling, **how)

    def _keep(self, best: Selection, data: TrainingProblem, beside: Selection | None = None) -> None:
        """Write what was chosen, maybe beside other tables; say it where the grid ended too soon."""
        self._write(best if beside is None else beside, self._metric, several=data.several_outputs)
        if any(choice.alpha > 0 for choice in best.chosen):  # early stopping has chosen no alpha
            warn_of_edges(self.alphas, *best.table, self._grid)

    def _check_least_squares(self) -> None:
        """Raise unless what both least-squares choosers may be told makes sense."""
        check_squared_loss(self.query_weight, self.ties, self.cost)
        check_running(self.tol, self.max_iter, self.n_threads, self.random_state, example="1e-5")
        check_choice("method", self.method, ("auto", *METHODS))
        check_choice("averaging", self.averaging, AVERAGING)
        for name in ("patience", "judge_rows"):
            check_count(name, getattr(self, name), optional=False)
        get_metric(self.scoring)
        check_nested(self.nested)
        check_cv(self.cv)
        check_alphas(self.alphas)

    @property
    def _metric(self) -> Metric:
        return get_metric(self.scoring)
