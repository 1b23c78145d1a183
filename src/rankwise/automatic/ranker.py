"""AutoRanker: the choice of a model as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field
from math import ceil
from numbers import Integral
from typing import Any, ClassVar, Never

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator
from scipy.stats import t as student_t
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from rankwise.additive.knots import MANY_LEVELS
from rankwise.additive.shapes import FittedCurve, FittedSurface
from rankwise.arrays import (
    ArrayLike,
    Floats,
    Importance,
    Labels,
    Matrix,
    MatrixLike,
    Splits,
    is_sparse,
)
from rankwise.automatic.calibration import CalibratedRanker
from rankwise.automatic.candidate_table import CandidateTable, candidate_table
from rankwise.automatic.candidates import AVERAGE, FIXED, METHODS
from rankwise.automatic.problems import SplitProblem
from rankwise.automatic.scaling import CodedTable, QueryProducts, ScaledColumns
from rankwise.automatic.search import PREFERENCES, Search, Trial
from rankwise.data.columns import is_table_like, needs_encoding
from rankwise.data.containers import pays_as_array
from rankwise.data.preferences import read_duels
from rankwise.data.summary import is_graded
from rankwise.data.validation import (
    check_alphas,
    check_choice,
    check_count,
    check_names,
    check_numbers,
    check_pairs,
    check_qid,
    pairs_of_eval_set,
    read_seed,
    rows_of_eval_set,
)
from rankwise.design import Design
from rankwise.estimators.additive import AdditiveMixin
from rankwise.estimators.base import is_on_cluster
from rankwise.estimators.parameters import estimator, one_of, parameter, refuse_unknown
from rankwise.exceptions import InvalidInputError, MissingQueriesError, NoPairsError, UndefinedMetricError
from rankwise.exporters.targets import TARGETS, check_exportable
from rankwise.exporters.targets import exportable_to as formula_exportable_to
from rankwise.fitting.problem import Problem
from rankwise.formula.reading import formula_of_encoder
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection import predict_scores
from rankwise.pairs.figures import Figure
from rankwise.pairs.labelled import LabelPairs
from rankwise.pairs.labels import Cost, QueryWeight, Ties
from rankwise.pairs.listed import PreferencePairs
from rankwise.preprocessing.table_encoder import TableEncoder

_OUTER_FOLDS = 5
# Rows up to which outer folds estimate the score, and up to which they do where there are few queries.
_SMALL, _FEW_QUERIES, _FEW_ROWS = 500, 30, 3000


@estimator()
class AutoRanker(CalibratedRanker):
    """Choose a model by held-out scores: linear, curves, or curves and surfaces; and fit it.

    Every candidate is scored on the same folds: it chooses its own regularisation on them, is fitted without each fold
    in turn, and scores the rows of that fold. The values query by query give the standard error of a difference
    between two candidates.

    Parameters
    ----------
    scoring : "auto", str or Metric, default="auto"
        The metric, by a name of `rankwise.metrics.METRICS`. "auto" is NDCG@10 for grades inside queries, and the
        pairwise error otherwise.
    prefer : {"readable", "accuracy"}, default="readable"
        "readable" tries linear models, curves, and curves and surfaces, and takes the best value or the simplest model
        that is behind by less than half a standard error of the difference. "accuracy" adds kernels, boosted trees and
        means of several models, and takes the best value. Neither takes columns scaled inside queries, which make
        `predict` need whole queries, unless they are ahead by a standard error.
    cv : "auto", "time", int, splitter or list of (train, test), default="auto"
        Folds of whole queries, of rows where there is one ranking, or of listed pairs; "auto" makes 5, and scores on
        one of them from 10,000 rows on, on two from 3,000 and on three from 1,000, as `AdditiveRankerCV` does. In one
        ranking it divides no equal rows, where more than half of the rows differ: copies would make scores too good.
        "time" sorts queries by their ids, such as dates, and scores each of 5 folds by a model of earlier queries
        alone. Not used where there is an `eval_set`.
    methods : "auto" or list of str, default="auto"
        Exactly these are tried, whatever they cost: "rls", "svm-squared", "svm", "logistic" (pairs only), "curves",
        "surfaces", "kernel", "trees", and "average", the means of the best models of different forms.
    alphas : array-like, optional
        One grid for every method instead of their own, which are extended if the best value is at an end.
    fixed : dict, optional
        Parameters that are not chosen, for every method that has them: ``{"ties": "exclude", "cost": "unit"}``,
        ``{"query_weight": "equal"}``, ``{"gamma": [0.1, 1.0], "basis": 500}``.
    target : str, optional
        Only candidates that can be exported to this format.
    effort : float, default=1
        A factor of the budget, which is 15 processor seconds or 30 times `RankRLSCV`, whichever is larger. Candidates
        are tried if their cost, estimated from counts, fits in the rest of it; `skipped_` lists the others.
    time_limit : float, optional
        A limit in seconds, in place of the budget.
    estimate : bool, default=True
        Also estimate the score of the whole procedure on rows that took no part in the choice, and score boosted trees
        as a reference.
    rivals : sequence of estimators, default=()
        Rankers of other packages, such as ``lightgbm.LGBMRanker()``, scored on the same folds and listed beside the
        candidates; never chosen.
    calibration : {"sigmoid", "isotonic"}, default="sigmoid"
        After `fit_pairs`: how differences of scores become the probabilities of `predict_pairs_proba`.
    encoder : "auto", TableEncoder or None, default="auto"
        Turns the columns of a data frame or an Arrow table into numbers. "auto" is a
        `rankwise.preprocessing.TableEncoder` where X has columns that are not numbers, or values that are missing.
        Curves, surfaces and trees take categories and missing values as they are (``codes=True``), and columns that
        are constant inside queries for surfaces, unless the encoder has words, lists or crosses.
    verbose : bool, default=False
        Print a line for each candidate also where there is neither a terminal nor a notebook to show progress.
    random_state : int, RandomState, Generator or None, default=0
        Seed of folds and reduced sets.
    n_threads : int, default=None
        Threads of the compiled kernels; by default the CPUs this process may use, and 1 inside a worker.

    Attributes
    ----------
    best_estimator_ : estimator or Pipeline
        The chosen ranker of rankwise, perhaps behind a scaler, or behind products of columns of queries with others.
    encoder_ : TableEncoder or None
        Turns the columns of X into those that `best_estimator_` takes, where that is needed.
    candidates_ : CandidateTable
        Every candidate with its value ± standard error, its difference from the best, its time, and its export
        targets; printed, it is a table.
    best_score_ : float
        The held-out value of the choice. It is optimistic: the choice was made on the same rows.
    expected_score_ : float
        Only with `estimate`: the value on rows that took no part in the choice. Up to 500 rows, or 30 queries of at
        most 3,000 rows, the whole procedure is repeated without each of five outer folds; otherwise the choice among
        the candidates is repeated on queries drawn at random, and scored by the others.
    expected_interval_ : list of float
        Its 95 % interval. It also covers the truth where labels are noise.
    metric_ : Metric
    cv_ : str
        A description of the validation.
    log_loss_ : float
        After `fit_pairs` on folds: the log-loss of calibrated probabilities on held-out pairs, calibrated on the other
        folds.
    skipped_ : list of str
        Candidates that were not tried, with reasons.
    search_ : Search
        The search itself, with the settings and held-out scores of every candidate; not in copies and files of the
        model.
    is_dense_ : bool
        Whether X was used as an array; so is a sparse matrix with at least half of its entries filled.
    fitted_with_qid_ : bool
    n_features_in_, feature_names_in_, n_queries_, n_pairs_, n_ignored_queries_
        As in `RankRLS`.

    Notes
    -----
    Means and scales of columns are computed from all rows, without labels, before folds are held out.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import AutoRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = AutoRanker(methods=["rls"]).fit(X, y, qid=np.arange(300) // 10)
    >>> model.cv_
    '5 folds of queries, all 30 queries'
    >>> model.candidates_.chosen.method
    'rls'
    """

    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}

    scoring: str | Metric = parameter(default="auto", kw_only=False)
    prefer: str = one_of(PREFERENCES, default="readable")
    cv: object = parameter("splitter", default="auto")
    methods: str | Sequence[str] = "auto"
    alphas: ArrayLike | None = None
    fixed: dict[str, object] | None = parameter(Mapping, None, default=None)
    target: str | None = parameter(StrOptions(set(TARGETS)), None, default=None)
    effort: float = parameter("positive", default=1.0)
    time_limit: float | None = parameter("not negative", None, default=None)
    estimate: bool = parameter("boolean", default=True)
    rivals: Sequence[BaseEstimator] = parameter(list, tuple, default=())
    calibration: str = one_of(("isotonic",), default="sigmoid")
    encoder: TableEncoder | str | None = "auto"
    verbose: bool = parameter("boolean", default=False)

    best_estimator_: BaseEstimator = field(init=False)
    encoder_: TableEncoder | None = field(init=False)
    candidates_: CandidateTable = field(init=False)
    metric_: Metric = field(init=False)
    expected_score_: float = field(init=False)
    expected_interval_: list[float] = field(init=False)
    skipped_: list[str] = field(init=False)
    search_: Search = field(init=False)
    is_dense_: bool = field(init=False)
    coded: CodedTable | None = field(init=False)  # of the table that is being fitted

    _takes_outputs = False
    # The pairs of a choice are all that labels order; what candidates make of ties is in `fixed`.
    ties: ClassVar[Ties] = "include"
    cost: ClassVar[Cost] = "magnitude"
    query_weight: ClassVar[QueryWeight] = "size"

    # --- rows on their way in ---

    def _labelled(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_importance: Importance | None,
        **options: Any,
    ) -> Problem:
        self._require_labels(y)
        if query_importance is not None:
            raise InvalidInputError(
                "AutoRanker compares candidates by queries of equal weight, and takes no query_importance.",
                "leave it out, or use RankRLSCV, which takes it.",
            )
        data = super()._labelled(self._encode(X, qid), y, qid, sample_weight, None, **options)
        _name_given_columns(self)
        by_grades = qid is not None and is_graded(check_numbers("y", y, data.pairs.n_rows))
        self.metric_ = self._resolved("ndcg@10" if by_grades else "pairwise_error")
        return data.with_equal_rows_together()

    def _listed(self, X: MatrixLike, pairs: ArrayLike | MatrixLike | None, *rest: Any) -> Problem:
        rows, edges = read_duels(X, pairs)
        data = super()._listed(self._encode(rows, None), edges, *rest)
        _name_given_columns(self)
        self.metric_ = self._resolved("pairwise_error")
        return data.with_equal_rows_together()

    def _resolved(self, default: str) -> Metric:
        is_auto = isinstance(self.scoring, str) and self.scoring == "auto"
        return get_metric(default if is_auto else self.scoring)

    def _encode(self, X: MatrixLike, qid: ArrayLike | None) -> MatrixLike:
        """Turn a table into numbers, where that is asked for or needed."""
        encoder = self.encoder
        if isinstance(encoder, str):
            check_choice("encoder", encoder, ("auto",))
            is_table = is_table_like(X) and not is_on_cluster(X)  # base refuses the latter
            encoder = TableEncoder() if is_table and needs_encoding(X) else None
        elif not isinstance(encoder, TableEncoder | None):
            raise InvalidInputError(
                f"encoder={encoder!r} is not a TableEncoder.", "use 'auto', None or a TableEncoder."
            )
        self.encoder_ = None if encoder is None else clone(encoder).fit(X, qid=qid)
        if self.encoder is not None:  # the rows of a nested choice are coded already
            self.coded = None if self.encoder_ is None else _coded(self.encoder_, X)
        return X if self.encoder_ is None else self.encoder_.transform(X)

    def _design(self, X: Matrix) -> Design:
        if isinstance(X, LinearOperator):
            raise InvalidInputError(
                "AutoRanker scales columns and holds out rows, which a LinearOperator does not allow.",
                "pass a matrix, or use RankRLSCV, which takes operators.",
            )
        self.is_dense_ = pays_as_array(X)
        return super()._design(X.toarray() if is_sparse(X) and self.is_dense_ else X)

    def _encoded(self, X: MatrixLike) -> Matrix:
        """Check rows to be scored, and bring them into the form of those of the fit."""
        rows = self._check_rows(X, reset=False) if self.encoder_ is None else self.encoder_.transform(X)
        return rows.toarray() if is_sparse(rows) and self.is_dense_ else rows

    # --- the choice ---

    def _labelled_eval_set(self, problem: Problem, eval_set: object) -> Any:
        rows, given, qid = rows_of_eval_set(eval_set, with_qid=self.fitted_with_qid_)
        X = self._encoded_eval_set(rows)
        labels = check_numbers("y of eval_set", given, X.shape[0]).reshape(-1)
        settings = (self.ties, self.cost, self.query_weight)
        queries = check_qid(qid, X.shape[0])
        return X, LabelPairs(labels, queries, None, None, *settings, may_be_empty=True)

    def _listed_eval_set(self, problem: Problem, eval_set: object) -> Any:
        given, listed, weight = pairs_of_eval_set(eval_set)
        rows, edges = read_duels(given, listed)
        X = self._encoded_eval_set(rows)
        checked = check_pairs(edges, X.shape[0], weight=weight)
        return X, PreferencePairs.listed(checked, X.shape[0], self.ties, self.cost)

    def _encoded_eval_set(self, rows: MatrixLike) -> Matrix:
        if self.coded is not None:
            self.coded.scored = self.coded.encoder.transform(rows)
        return self._encoded(rows)

    def _learn(self, data: Problem, eval_set: Any) -> None:
        """Assign rows or pairs to folds once, try every candidate on them, and keep the best."""
        self._forget("expected_score_", "expected_interval_", "calibration_", "log_loss_")
        coded, pairs, seed = self.__dict__.pop("coded", None), data.pairs, read_seed(self.random_state)
        X, ids = data.design.stored(), pairs.queries.codes if len(pairs.queries) > 1 else None
        if eval_set is None:
            columns = ScaledColumns(X, ids, pairs.row_weight, coded=coded)
            problem = SplitProblem.in_folds(columns, pairs, self.metric_, seed, self.cv)
        else:
            rows, scored = eval_set
            held = rows, None if ids is None else scored.queries.codes
            columns = ScaledColumns(X, ids, pairs.row_weight, held, coded)
            problem = SplitProblem(columns, pairs, self.metric_, seed, scored=scored)
        chosen, n_queries = self._choose(problem), len(pairs.queries)
        is_small = pairs.n_rows <= _SMALL or (1 < n_queries <= _FEW_QUERIES and pairs.n_rows <= _FEW_ROWS)
        in_order = isinstance(self.cv, str) and self.cv == "time"  # folds at random would look ahead
        may_nest = eval_set is None and self.time_limit is None and not in_order and pairs.has_blocks
        self._expect(problem, is_nested=is_small and may_nest and data.design.has_rows)
        if eval_set is None and not pairs.has_blocks:
            self._calibrate(chosen.held_out, problem.evaluation.weight, problem.fold)

    def _expect(self, problem: SplitProblem, *, is_nested: bool) -> None:
        """Keep the expected score and its interval, if they are wanted."""
        if not self.estimate:
            return
        try:
            figure, cv = self._nested(problem) if is_nested else (self.search_.expected(), problem.cv)
        except BaseException:
            self._forget("best_estimator_")  # an interrupted fit leaves no model
            raise
        half = figure.standard_error * float(student_t.ppf(0.975, max(figure.per_unit.size - 1, 1)))
        half *= 1.0 if cv is None else _widening(cv)
        self.expected_score_ = figure.value
        self.expected_interval_ = np.clip(
            [figure.value - half, figure.value + half], *problem.metric.bounds
        ).tolist()

    def _choose(self, problem: SplitProblem) -> Trial:
        check_encoder(self.encoder_, self.target)
        search = Search(
            problem,
            _listed(self.methods),
            self.prefer,
            None if self.alphas is None else tuple(check_alphas(self.alphas).tolist()),
            dict(self.fixed or {}),
            self.target,
            float(self.effort),
            None if self.time_limit is None else float(self.time_limit),
            self.rivals,
            self.estimate,
            read_seed(self.random_state),
            self.n_threads,
            self.verbose,
        )
        chosen = search.run()
        self.search_, self.skipped_ = search, search.skipped
        self.cv_ = problem.describe()
        self.best_estimator_ = chosen.model
        self.best_score_ = chosen.figure.value
        targets = TARGETS if self.encoder_ is None else _exportable_after(self.encoder_)
        self.candidates_ = candidate_table(search, chosen, targets)
        if self.encoder_ is None and hasattr(self, "feature_names_in_"):
            _name_columns(self.best_estimator_, self.feature_names_in_)
        coded = problem.columns.coded
        if coded is not None and chosen.candidate.is_coded:
            self.encoder_ = coded.encoder
            _name_columns(self.best_estimator_, coded.encoder.feature_names_in_, coded.encoder)
        return chosen

    def _nested(self, problem: SplitProblem) -> tuple[Figure, Splits]:
        """Choose and fit without each outer fold, and return the figure of the scores of that fold."""
        X, ids, pairs = problem.columns.X, problem.columns.qid, problem.pairs
        units = pairs.units()
        assert units is not None
        n_outer = min(units.n_units, _OUTER_FOLDS)
        fold = units.folds(n_outer, problem.seed + 1).astype(np.int64)
        inner = clone(self).set_params(
            estimate=False, rivals=(), scoring=problem.metric, encoder=None, verbose=False
        )
        fewest = units.n_units - ceil(units.n_units / n_outer)
        if isinstance(inner.cv, Integral) and fewest > 1:
            inner.set_params(cv=min(int(inner.cv), fewest))
        elif not isinstance(inner.cv, str):
            inner.set_params(cv="auto")  # splits of all rows do not fit some of them
        scores, coded = np.zeros(pairs.n_rows), problem.columns.coded
        splits = [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(n_outer)]
        for train, test in splits:
            rows, given = pairs.training(X, train)
            if coded is not None:
                inner.coded = CodedTable(coded.encoder, coded.codes[train])
            try:
                inner.fit(rows, **given)
            except (NoPairsError, UndefinedMetricError):  # too few rows to choose by: constant scores
                continue
            tested = None if ids is None else ids[test]
            if coded is not None and inner.encoder_ is not None:  # it chose a model of codes
                scores[test] = inner._scores_of_encoded(coded.codes[test], tested)  # noqa: SLF001
            else:
                scores[test] = inner.predict(X[test], tested)
        evaluation = pairs.evaluation(problem.metric, fold, n_outer, problem.seed)
        return evaluation.figure(scores), splits

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
                "pass qid= to predict, with all rows of each query; or fit AdditiveRankerCV, which scores single rows.",
            )
        return self._scores_of_encoded(rows, qid)

    def _scores_of_encoded(self, rows: Matrix, qid: ArrayLike | None) -> Floats:
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

    @property
    def coef_(self) -> Floats:
        """The weights of the columns as `best_estimator_` takes them, in their own units; of linear models only."""
        scaler, ranker = self._scaler_and_ranker()
        if isinstance(scaler, StandardScaler):
            return np.asarray(ranker.coef_ / scaler.scale_)
        if scaler is not None:
            raise AttributeError("Products, and columns scaled inside queries, have no weights in own units.")
        return np.asarray(ranker.coef_)

    @property
    def curves_(self) -> list[FittedCurve]:
        """The curves of the chosen model, where it has some."""
        return self._scaler_and_ranker()[1].curves_  # type: ignore[no-any-return]

    @property
    def surfaces_(self) -> list[FittedSurface]:
        """The surfaces of the chosen model, where it has some."""
        return self._scaler_and_ranker()[1].surfaces_  # type: ignore[no-any-return]

    @property
    def feature_importances_(self) -> Floats:
        """How far scores vary with every column that `best_estimator_` takes; of linear models and curves only.

        The sizes of the weights of a standardised column and its products, or the importances of its curve and
        surfaces, added up.
        """
        scaler, ranker = self._scaler_and_ranker()
        found = np.zeros((ranker if scaler is None else scaler).n_features_in_)
        if not hasattr(ranker, "curves_"):
            parts = scaler.made_of() if isinstance(scaler, QueryProducts) else range(found.size)
            for columns, weight in zip(parts, np.abs(ranker.coef_), strict=True):
                found[np.array(columns)] += weight
            return found
        for curve in ranker.curves_:
            found[curve.column] += curve.importance
        for surface in ranker.surfaces_:
            found[list(surface.columns)] += surface.importance
        return found

    def _scaler_and_ranker(self) -> tuple[Any, Any]:
        model = self.best_estimator_
        return (model[0], model[-1]) if isinstance(model, Pipeline) else (None, model)

    def describe(self) -> str:
        """Describe the candidates, the validation and the chosen model in words."""
        check_is_fitted(self)
        board = self.candidates_
        lines = [
            f"scored by {self.cv_}, {board.metric}",
            f"          {self.metric_.describe()}",
            "",
            str(board),
            "",
            f"chose     {board.chosen.parameters}",
            *(f"          - {part}" for part in board.chosen.parts),
        ]
        if hasattr(self, "expected_score_"):
            low, high = self.expected_interval_
            known = f", 95 % interval {low:.4f} to {high:.4f}" if np.isfinite(low) else ""
            lines.append(f"expect    {board.metric} {self.expected_score_:.4f}{known}")
        if hasattr(self, "log_loss_"):
            lines.append(
                f"          log-loss {self.log_loss_:.4f} of probabilities; one half everywhere has {np.log(2):.4f}"
            )
        return "\n".join([*lines, *(f"skipped   {reason}" for reason in self.skipped_)])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for one in _listed(self.methods) or ():
            check_choice("methods", one, (*METHODS, AVERAGE))
        fixed = self.fixed or {}
        for name in fixed:
            check_choice("a name in fixed", name, FIXED)
        check_count("fixed={'basis': ...}", fixed.get("basis"))
        if np.size(fixed.get("gamma")) == 0:  # type: ignore[arg-type]
            raise InvalidInputError(
                "fixed has an empty list of gamma.", "list numbers above 0, or leave it out."
            )
        for rival in self.rivals:
            if isinstance(rival, type) or not (hasattr(rival, "fit") and hasattr(rival, "get_params")):
                raise InvalidInputError(
                    f"rivals holds {rival!r:.80}, which is not an estimator.",
                    "pass estimators that are not fitted, such as LGBMRanker().",
                )

    def __getstate__(self) -> dict[str, object]:
        state: dict[str, object] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "search_"}


def check_encoder(encoder: TableEncoder | None, target: str | None) -> None:
    """Raise if a target cannot express the encoding of a table, whatever model follows."""
    if encoder is not None and target is not None:
        check_exportable(formula_of_encoder(encoder), target, filled=True)


def _coded(encoder: TableEncoder, X: MatrixLike) -> CodedTable | None:
    """Return a table for curves and trees; None where an encoder makes more of its columns than they take."""
    if encoder.crosses or any(step["kind"] in {"list", "words"} for step in encoder.columns_):
        return None
    coder = clone(encoder).set_params(codes=True, max_levels=MANY_LEVELS - 1).fit(X)
    return CodedTable(coder, coder.transform(X))


def _exportable_after(encoder: TableEncoder) -> list[str]:
    """Name the targets that can express the encoding of a table."""
    try:
        return formula_exportable_to(formula_of_encoder(encoder))
    except InvalidInputError:  # words
        return []


def _name_given_columns(ranker: AutoRanker) -> None:
    """Name the columns of X as they were before they were encoded."""
    if ranker.encoder_ is not None:
        ranker.n_features_in_ = ranker.encoder_.n_features_in_
        ranker.feature_names_in_ = ranker.encoder_.feature_names_in_


def _name_columns(
    model: BaseEstimator, names: npt.NDArray[np.object_], encoder: TableEncoder | None = None
) -> None:
    """Set the column names of a model that was fitted to an array, or to the codes of a table."""
    for part in getattr(model, "rankers_", ()):
        _name_columns(part, names, encoder)
    first = model[0] if isinstance(model, Pipeline) else model
    first.feature_names_in_ = names
    if encoder is not None and isinstance(first, AdditiveMixin):
        first.encoder_ = encoder


def _widening(cv: Splits) -> float:
    """Return the factor from independent folds to folds that trained each other's models, for standard errors.

    Where labels are noise, the error of a fold j is a sum over the folds k of its training rows, whose term for j and k
    is also a term of the error of fold k. If m of K folds score, that multiplies the variance of their mean by
    ``(K + m - 2) / (K - 1)``. A signal makes the factor smaller, and the interval a little too wide.
    """
    n_folds = float(np.mean([1 + train.size / test.size for train, test in cv]))
    return float(np.sqrt((n_folds + len(cv) - 2) / (n_folds - 1)))


def _listed(names: str | Sequence[str]) -> list[str] | None:
    if isinstance(names, str):
        return None if names == "auto" else [names]
    return check_names("methods", names)
