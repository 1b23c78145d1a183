"""A ranker that chooses everything by itself, and says how it chose."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import ClassVar, Never

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Matrix, MatrixLike, RandomSource, is_sparse
from rankwise.automatic.calibrated import CalibratedRanker
from rankwise.automatic.candidate_table import CandidateTable, candidate_table
from rankwise.automatic.candidates import AVERAGE, FIXED, METHODS, SCALINGS
from rankwise.automatic.description import describe_choice
from rankwise.automatic.encoding import EncodingRanker, name_columns
from rankwise.automatic.nested import check_can_nest, nested_figure
from rankwise.automatic.problems import Problem
from rankwise.automatic.reading import (
    labelled_rows,
    listed_pairs,
    read_pairs,
    read_rows,
    refuse_operator,
    resolve_metric,
)
from rankwise.automatic.rivals import rival_entries
from rankwise.automatic.running import run_search
from rankwise.automatic.search import RULES, Search, Trial
from rankwise.automatic.targets import check_encoder, encoder_exportable_to
from rankwise.data.containers import pays_as_array
from rankwise.data.validation import check_alphas, check_choice, check_names, read_seed
from rankwise.design import Design
from rankwise.estimators.base import COUNT, NOT_NEGATIVE, Constraints
from rankwise.estimators.fitted import refuse_unknown
from rankwise.exceptions import MissingQueriesError
from rankwise.exporters.targets import TARGETS
from rankwise.metrics import Metric
from rankwise.model_selection import predict_scores
from rankwise.pairs.labels import Cost, QueryWeight, Ties
from rankwise.preprocessing.table_encoder import TableEncoder
from rankwise.problems.training import PairData, TrainingProblem

__all__ = ["AutoRanker", "keep_encoder"]


class AutoRanker(CalibratedRanker, EncodingRanker):
    """Choose how columns are scaled, which method learns and how it is regularised, and fit that.

    Every candidate is scored on the same folds: it chooses its own regularisation on them, is fitted without each fold
    in turn, and scores the rows of that fold. Their values query by query say how sure a difference between two
    candidates is. Where there is much, a sample rules out most candidates, and a larger one compares the finalists.

    Parameters
    ----------
    scoring : "auto", str or Metric, default="auto"
        What is optimised: a name of `rankwise.metrics.METRICS`. "auto" is NDCG@10 for grades inside queries, and the
        pairwise error otherwise.
    rule : {"best", "one-standard-error"}, default="best"
        Neither takes a mean or a kernel, which columns do not explain, unless it is ahead of the best other candidate
        by more than a standard error of the difference. "best" takes the candidate with the best value; of several that
        are ahead like that a mean, unless it is worse by more than a standard error. "one-standard-error" takes, of
        those that are not worse by more than one standard error of the difference, one that can be exported, of these
        one of the simplest form (linear, curves, surfaces, kernel, mean), and of these the best.
    cv : "auto", int, splitter or list of (train, test), default="auto"
        Folds of whole queries, of rows where there is one ranking, or of listed pairs; "auto" makes 5, and
        assigns the rows of small data to them up to four times. Not used where there is an `eval_set`.
    methods : "auto" or list of str, default="auto"
        What may be tried: "rls", "svm-squared", "svm", "logistic" (pairs only), "curves", "surfaces",
        "kernel"; and "average", the mean of the scores of the best linear model, the best curves and the best kernel,
        as far as they are close to the best of them.
    scalings : "auto" or list of str, default="auto"
        Which ways to scale columns may be tried: "none", "standard", "max-abs", "rank", "query-minmax",
        "query-standard", "query-rank", "standard+query-standard", "standard+query-rank" (the columns and
        their ranks side by side).
    alphas : array-like, optional
        One grid for every method, instead of their own, which go on where the best value lies at an end.
    fixed : dict, optional
        Parameters that are not to be chosen, for every method that has them: ``{"ties": "exclude", "cost": "unit"}``,
        ``{"query_weight": "equal"}``, ``{"gamma": [0.1, 1.0]}``.
    target : str, optional
        Only candidates that can be exported to this format.
    time_limit : float, optional
        No candidate is begun that is expected to end after so many seconds, and cheaper ones are; the best is kept,
        fitted to all rows. Where it leaves time for that, all rows of large data compare the finalists, not a sample.
        By default what is tried depends on the data alone: seconds for thousands of rows, minutes for millions.
    nested : bool or int, default=False
        Also estimate the score of the whole procedure, choice included, on so many outer folds (True: 5).
    rivals : sequence of estimators, default=()
        Rankers of other packages, such as ``lightgbm.LGBMRanker()``, scored on the same folds and listed beside the
        candidates; never chosen.
    calibration : {"sigmoid", "isotonic"}, default="sigmoid"
        After `fit_pairs`: how differences of scores become the probabilities of `predict_pairs_proba`.
    encoder : "auto", TableEncoder or None, default="auto"
        What turns the columns of a data frame or an Arrow table into numbers. "auto" is a
        `rankwise.preprocessing.TableEncoder` where X has columns that are not numbers, or values that are missing.
    basis : int, default=None
        Rows of the reduced set of kernels. By default 200, and more or all of them where a kernel is ahead.
    random_state : int, RandomState, Generator or None, default=0
        Seeds folds, samples and reduced sets.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    best_estimator_ : estimator or Pipeline
        What was chosen: a ranker of rankwise, maybe after scalers.
    encoder_ : TableEncoder or None
        What turned the columns of X into those that `best_estimator_` takes, where it was needed.
    candidates_ : CandidateTable
        Every candidate with its value ± standard error, how much worse than the best it is, its time, and what it can
        be exported to; printed, it is a table.
    best_score_ : float
        The held-out value of the choice. It is optimistic: the choice was made on the same rows.
    nested_score_, nested_error_ : float
        Only with `nested`: the value on outer folds that took no part in any choice, and its standard error.
    metric_ : Metric
    cv_ : str
        What scored, in words.
    log_loss_ : float
        After `fit_pairs` on folds: the log-loss of calibrated probabilities on held-out pairs, calibrated on the other
        folds.
    stopped_ : str
        What ended the search before everything was tried: the time limit, or nothing.
    search_ : Search
        The search itself, with the fitted model of every candidate; copies and files of the model lack it.
    skipped_ : list of str
        Candidates that did not fit in memory.
    is_dense_ : bool
        Whether X was taken as an array: so is a sparse matrix of which at least half is filled.
    fitted_with_qid_ : bool
    n_features_in_, feature_names_in_, n_queries_, n_pairs_, n_ignored_queries_
        As in `RankRLS`.

    Notes
    -----
    Means and spreads of columns are taken of all rows before folds are held out; labels play no part in them.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AutoRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = AutoRanker(methods=["rls"]).fit(X, y, qid=np.arange(300) // 10)
    >>> model.cv_
    '5 folds of queries, 4 times, all 30 queries'
    >>> model.candidates_.chosen.method
    'rls'
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}

    best_estimator_: BaseEstimator
    candidates_: CandidateTable
    metric_: Metric
    best_score_: float
    nested_score_: float
    nested_error_: float
    cv_: str
    stopped_: str
    skipped_: list[str]
    search_: Search
    is_dense_: bool

    def __init__(
        self,
        scoring: str | Metric = "auto",
        *,
        rule: str = "best",
        cv: object = "auto",
        methods: str | Sequence[str] = "auto",
        scalings: str | Sequence[str] = "auto",
        alphas: ArrayLike | None = None,
        fixed: dict[str, object] | None = None,
        target: str | None = None,
        time_limit: float | None = None,
        nested: bool | int = False,
        rivals: Sequence[BaseEstimator] = (),
        calibration: str = "sigmoid",
        encoder: TableEncoder | str | None = "auto",
        basis: int | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    _takes_outputs = False
    _parameter_constraints: ClassVar[Constraints] = {
        **EncodingRanker._parameter_constraints,
        "basis": [COUNT, None],
        "calibration": [StrOptions({"sigmoid", "isotonic"})],
        "fixed": [Mapping, None],
        "rivals": [list, tuple],
        "rule": [StrOptions(set(RULES))],
        "target": [StrOptions(set(TARGETS)), None],
        "time_limit": [NOT_NEGATIVE, None],
    }
    # The pairs of a choice are all that labels order; what candidates make of ties is in `fixed`.
    ties: ClassVar[Ties] = "include"
    cost: ClassVar[Cost] = "magnitude"
    query_weight: ClassVar[QueryWeight] = "size"

    def _design(self, X: Matrix) -> Design:
        refuse_operator(X)
        self.is_dense_ = pays_as_array(X)
        return super()._design(X.toarray() if is_sparse(X) and self.is_dense_ else X)

    def _encoded(self, X: MatrixLike) -> Matrix:
        """Check rows to be scored, and bring them into the form of those of the fit."""
        rows = super()._encoded(X)
        return rows.toarray() if is_sparse(rows) and self.is_dense_ else rows

    def _learn(self, data: TrainingProblem, eval_set: object) -> None:
        """Assign rows or pairs to folds once, try every candidate on them, and keep the best."""
        if self.nested:
            check_can_nest(data, eval_set)
        self._forget("nested_score_", "nested_error_", "calibration_", "log_loss_")
        metric = resolve_metric(self.scoring, data, with_qid=self.fitted_with_qid_)
        how = (metric, self.cv, read_seed(self.random_state))
        if isinstance(data, PairData):
            listed = listed_pairs(data, *how, read_pairs(eval_set, self._encoded))
            chosen = self._choose(listed)
            if listed.scored is None:
                self._calibrate(chosen.held_out, listed.tested_weight, listed.fold)
            return
        scored = read_rows(eval_set, self._encoded, with_qid=self.fitted_with_qid_)
        problem = labelled_rows(data, *how, scored)
        self._choose(problem)
        if self.nested:
            self.nested_score_, self.nested_error_ = nested_figure(self, problem)

    def predict(self, X: MatrixLike, qid: ArrayLike | None = None, **unknown: Never) -> Floats:
        """Return a score for each row of X: higher is better.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (rows, features)
        qid : array-like of shape (rows,), optional
            Needed where the chosen model scales columns inside queries (`needs_queries_`), and the queries must be
            there whole.
        """
        refuse_unknown("predict", unknown)
        check_is_fitted(self)
        rows = self._encoded(X)
        if self.needs_queries_ and qid is None:
            raise MissingQueriesError(
                "The chosen model scales columns inside queries, and predict was called without query ids.",
                "pass qid= to predict; to be independent of them, fit with scalings=['none', 'standard'].",
            )
        if rows.shape[0] == 0:  # scikit-learn's scalers refuse them
            return np.empty(0)
        with warnings.catch_warnings():
            # Names were compared with those of the fit above.
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            scores = predict_scores(self.best_estimator_, rows, qid if self.needs_queries_ else None)
        return np.asarray(scores)

    @property
    def needs_queries_(self) -> bool:
        """Whether rows can only be scored together with the others of their query."""
        check_is_fitted(self)
        return self.candidates_.chosen.needs_queries

    def _scores_of(self, X: MatrixLike, qid: ArrayLike | None) -> Floats:
        return self.predict(X, qid)

    def describe(self) -> str:
        """Say what was tried, what scored it and what was chosen, for a reader."""
        check_is_fitted(self)
        return describe_choice(self)

    def _choose(self, problem: Problem) -> Trial:
        check_encoder(self.encoder_, self.target)
        search = Search(
            problem,
            _listed(self.methods),
            _listed(self.scalings),
            None if self.alphas is None else tuple(check_alphas(self.alphas).tolist()),
            dict(self.fixed or {}),
            self.rule,
            self.target,
            None if self.time_limit is None else float(self.time_limit),
            self.basis,
            read_seed(self.random_state),
            self.n_threads,
        )
        chosen = run_search(search)
        self.search_ = search
        self.metric_, self.cv_ = problem.metric, search.judged_by
        self.stopped_, self.skipped_ = search.stopped, search.skipped
        self.best_estimator_ = chosen.model
        if self.encoder_ is None and hasattr(self, "feature_names_in_"):
            _name_columns(self.best_estimator_, self.feature_names_in_)
        self.best_score_ = chosen.figure.value
        rivals = [] if not self.rivals else rival_entries(self.rivals, search.scored_on)
        self.candidates_ = candidate_table(search, chosen, rivals)
        if self.encoder_ is not None:
            self.candidates_ = self.candidates_.limited_to(encoder_exportable_to(self.encoder_))
        return chosen

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, known in (("methods", (*METHODS, AVERAGE)), ("scalings", SCALINGS)):
            for one in _listed(getattr(self, name)) or ():
                check_choice(name, one, known)
        for name in self.fixed or {}:
            check_choice("a name in fixed", name, FIXED)

    def __getstate__(self) -> dict[str, object]:
        state: dict[str, object] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "search_"}


def keep_encoder(ranker: AutoRanker, encoder: TableEncoder) -> None:
    """Let `predict` of a ranker that was fitted to what a fitted encoder gave take tables from now on."""
    ranker.encoder_ = encoder
    name_columns(ranker)
    ranker.candidates_ = ranker.candidates_.limited_to(encoder_exportable_to(encoder))


def _name_columns(model: BaseEstimator, names: npt.NDArray[np.object_]) -> None:
    """Tell a model that was fitted to an array what its columns are called."""
    for part in getattr(model, "rankers_", ()):
        _name_columns(part, names)
    first = model[0] if isinstance(model, Pipeline) else model
    first.feature_names_in_ = names


def _listed(names: str | Sequence[str]) -> list[str] | None:
    if isinstance(names, str):
        return None if names == "auto" else [names]
    return check_names("methods or scalings", names)
