"""Mistakes that people make, and the message of each: one clear error that ends in a hint."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from optional import polars as pl
from rankwise import (
    AdditiveRanker,
    AutoRanker,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    KernelRankSVMCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.data import stack_preferred
from rankwise.data.validation import check_importance, check_pairs, check_qid, check_weights
from rankwise.exceptions import InvalidInputError, MissingQueriesError, NoPairsError
from rankwise.metrics import auc_estimate, bootstrap_mean, ndcg
from rankwise.model_selection import QueryKFold, cross_validate_ranker, fit_ranker
from rankwise.permutation import permutation_test
from strategies import make_problem

ESTIMATORS = [
    RankRLS(),
    RankRLSCV(),
    RankSVM(),
    RankSVMCV(alphas=[0.1, 1.0]),
    KernelRankRLS(),
    KernelRankRLSCV(),
    KernelRankSVM(),
    KernelRankSVMCV(alphas=[0.1, 1.0]),
    AdditiveRanker(),
    AutoRanker(methods=["rls"]),
]
PROBLEM = make_problem(0, real=True)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid
N = len(X)
PAIRS = np.array([[0, 1], [2, 3], [8, 5], [1, 7], [9, 2], [4, 6]])
FRAME = pd.DataFrame(X, columns=[f"c{at}" for at in range(X.shape[1])])

each = pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)


def lazy(values):
    return pl.DataFrame(values).lazy()


def changed(values, value):
    values = np.array(values, dtype=float)
    values.flat[1] = value
    return values


def beyond():
    """Return a matrix with a column number from 1, which SciPy takes."""
    return sp.csr_matrix((np.ones(N), np.full(N, 3), np.arange(N + 1)), shape=(N, 3))


def fit(model=None, X=X, y=Y, qid=QID, **options):
    return clone(RankRLS() if model is None else model).fit(X, y, qid, **options)


def pairs(model=None, X=X, pairs=PAIRS, **options):
    return clone(RankRLS() if model is None else model).fit_pairs(X, pairs, **options)


MISTAKES = [
    # Rows and labels
    (lambda: fit(X=changed(X, np.nan)), r"X contains NaN\. Hint: use AdditiveRanker, .*SimpleImputer"),
    (lambda: fit(X=changed(X, np.inf)), r"X contains infinity.*Hint: replace infinite values"),
    (lambda: fit(X=changed(X, np.finfo(float).max)), r"values as large as 1\.8e\+308.*Hint: .*missing value"),
    (lambda: fit(X=beyond()), r"X is a CSR matrix with indices that do not fit its shape.*Hint: build it again"),
    (lambda: fit(X=X[:, 0]), "(?s)Expected 2D array.*Hint: pass a two-dimensional"),
    (lambda: fit(X=X.astype(str).astype(object) + "x"), "could not convert.*Hint: encode text and categories"),
    (lambda: fit(X=lazy(X)), r"X is a LazyFrame.*Hint: pass X\.collect\(\)"),
    (lambda: fit(X=np.ma.masked_greater(X, 1.0)), "X has masked entries.*Hint: drop those rows"),
    (lambda: fit(y=changed(Y, np.nan)), "y contains NaN.*Hint: .*whose label is missing must be dropped"),
    (lambda: fit(y=np.where(Y > 0, "good", "bad")), "y must be numbers .*Hint: encode grades as numbers"),
    (lambda: fit(y=Y[:-1]), "inconsistent numbers of samples.*Hint: .*one label per row"),
    (lambda: fit(y=None), "the target y is None.*Hint: pass the labels"),
    (lambda: fit(y=np.ones(N)), "No query has two different labels.*Hint: "),
    (lambda: fit(AdditiveRanker(), y=np.column_stack([Y, Y])), "2 columns.*AdditiveRanker .*Hint: fit one model per"),
    (lambda: fit(AdditiveRanker(), aslinearoperator(X)), "a LinearOperator does not have.*Hint: "),
    (lambda: fit(KernelRankRLS("precomputed")), "must be a square matrix.*Hint: fit takes the kernel"),
    (lambda: fit(KernelRankRLS("precomputed"), X @ X.T + np.arange(N)), r"is not symmetric.*Hint: .*K\.T"),
    # Queries
    (lambda: fit(qid=QID[:-1]), r"qid has \d+ entries, but X has \d+ rows.*Hint: .*not the sizes of the groups"),
    (lambda: fit(qid=7), "qid=7 is a single value.*Hint: pass one query id per row"),
    (lambda: fit(qid=changed(QID, np.nan)), r"qid is missing \(NaN or None\) in 1 .*first in row 1.*Hint: "),
    (lambda: fit(qid=np.ones((N, 2))), "qid must have one dimension.*Hint: "),
    (lambda: check_qid(pd.array([1, pd.NA, 2]), 3), "qid is missing.*Hint: "),
    (lambda: check_qid(np.array(["2020-01-01", "NaT"], "datetime64[D]"), 2), "qid is missing.*Hint: "),
    (lambda: check_qid([[1], [2], {}], 3), "hashed.*Hint: "),
    (lambda: fit().rank(X), r"rank was called without.*Hint: pass qid=.*np\.zeros\(len\(X\)\)"),
    (lambda: fit().score(X, Y), "score was called without.*Hint: pass qid= to score"),
    (lambda: fit(RankRLSCV(), eval_set=(X, Y)), "eval_set has none.*Hint: pass eval_set=.*qid_val"),
    # Weights
    (lambda: fit(sample_weight=changed(np.ones(N), -1)), "sample_weight of row 1 is negative.*Hint: use 0"),
    (lambda: fit(sample_weight=changed(np.ones(N), np.nan)), "sample_weight is NaN or inf.*row 1.*Hint: "),
    (lambda: fit(sample_weight=np.zeros(N)), "sample_weight is zero everywhere.*Hint: "),
    (lambda: fit(sample_weight=[1.0, 2.0]), r"sample_weight has 2 entries where .*Hint: pass one number per row"),
    (lambda: check_weights(["a", "b", "c"], 3), "sample_weight must be numbers.*Hint: "),
    (lambda: fit(query_importance={"z": 1.0}), "names 1 queries that are not in qid.*Hint: "),
    (lambda: fit(query_importance=dict.fromkeys(QID, -1.0)), "query_importance of query 0 is negative.*Hint: "),
    (lambda: fit(query_importance=np.arange(N)), "changes inside a query.*Hint: "),
    (lambda: fit(query_importance=dict.fromkeys(QID, 0.0)), "zero for every query.*Hint: "),
    (lambda: fit(AutoRanker(), query_importance=np.ones(N)), "no query_importance.*Hint: leave it out"),
    # Pairs
    (lambda: pairs(pairs=None), "There are no pairs.*Hint: pass pairs of row numbers"),
    (lambda: pairs(pairs=[]), "list of pairs is empty.*Hint: "),
    (lambda: pairs(pairs=[0, 1]), r"must have shape \(pairs, 2\), got \(2,\).*Hint: .*column_stack"),
    (lambda: pairs(pairs=[[0, 1], [0, N]]), r"Pair 1 is \(0, \d+\), but rows are numbered from 0.*Hint: "),
    (lambda: pairs(pairs=[[-1, 1]]), r"Pair 0 is \(-1, 1\).*Hint: "),
    (lambda: pairs(pairs=[[2**64 - 1, 1]]), "Pair 0 is .*rows are numbered"),
    (lambda: pairs(pairs=[[0, 1], [2, 2]]), "Pair 1 prefers row 2 to itself.*Hint: "),
    (lambda: pairs(pairs=[[0.5, 1]]), "row numbers .integers., got float64.*Hint: "),
    (lambda: pairs(pairs=[[np.nan, 1]]), "Hint: .*drop pairs with missing entries"),
    (lambda: pairs(pairs=[["a", "b"]]), "Hint: translate item ids to row numbers"),
    (lambda: pairs(pairs=lazy(PAIRS)), r"pairs is a LazyFrame.*Hint: pass pairs\.collect\(\)"),
    (lambda: pairs(weight=-np.ones(6)), "weight of pair 0 is negative.*Hint: use 0 to leave a pair out"),
    (lambda: pairs(weight=[1.0, 2.0]), r"weight has 2 entries where 6 are expected.*Hint: "),
    (lambda: pairs(weight=np.zeros(6)), "weight is zero for every pair.*Hint: "),
    (lambda: pairs(magnitude=-np.ones(6)), "magnitude of pair 0 is negative.*Hint: swap winner and loser"),
    (lambda: pairs(magnitude=changed(np.ones(6), np.inf)), "magnitude is NaN.*first in pair 1.*Hint: "),
    (lambda: pairs(groups=np.arange(6)), "groups was passed.*Hint: leave it out"),
    (lambda: stack_preferred(X, X[1:]), "Hint: pass two matrices of the same shape"),
    # Parameters
    (lambda: fit(RankRLS(-1.0)), r"'alpha' parameter of RankRLS must be .*Got -1\.0.*Hint: .*default, 1\.0"),
    (lambda: fit(RankSVM(0.0)), r"'alpha' parameter of RankSVM must be .*\(0\.0, inf\)"),
    (lambda: fit(RankRLS(solver="cgg")), "'solver' parameter of RankRLS must be .*Hint: did you mean 'cg'"),
    (lambda: fit(RankSVM(loss="hing")), "'loss' parameter .*Hint: did you mean 'hinge'"),
    (lambda: fit(RankRLS(scoring="ndgc@10")), "ndgc@10.*Hint: .*ndcg"),
    (lambda: fit(RankRLS(ties="included")), "Hint: did you mean 'include'"),
    (lambda: fit(RankRLS(max_iter=0)), "'max_iter' parameter .*Got 0 instead.*Hint: "),
    (lambda: fit(RankRLS(random_state="0")), "'random_state' parameter .*Hint: "),
    (lambda: fit(RankRLS(cost="relative")), "Hint: set ties='exclude'"),
    (lambda: fit(RankRLS(early_stopping="yes")), "'early_stopping' parameter .*Hint: "),
    (lambda: fit(RankRLS(early_stopping=True, solver="direct")), "iterates.*has none.*Hint: "),
    (lambda: fit(RankRLSCV(cv=1)), "'cv' parameter of RankRLSCV .*Got 1 instead"),
    (lambda: fit(RankRLSCV(cv="leave-queries-out")), "Hint: did you mean 'leave-query-out'"),
    (lambda: fit(RankRLSCV([])), "alphas is empty.*Hint: "),
    (lambda: fit(RankRLSCV([-1.0])), "alphas must be finite and not negative.*Hint: "),
    (lambda: fit(RankSVMCV([0.0, 1.0])), "alphas contains 0.*Hint: use positive values"),
    (lambda: fit(RankRLSCV(["a"])), "alphas must be numbers.*Hint: "),
    (lambda: fit(RankRLSCV(penalty_power="off")), "'penalty_power' parameter of RankRLSCV must be.*Hint: leave"),
    (lambda: fit(RankRLSCV(penalty_power=[])), "penalty_power is an empty list.*Hint: "),
    (lambda: fit(KernelRankRLS("rfb")), "'kernel' parameter .*Hint: did you mean 'rbf'"),
    (lambda: fit(AdditiveRanker(n_knots=1)), "'n_knots' parameter .*Got 1 instead.*Hint: "),
    (lambda: fit(AutoRanker(target="moon")), "'target' parameter of AutoRanker .*Hint: "),
    (lambda: fit(RankRLS(), eval_set=(X, Y, QID)), "eval_set was passed.*Hint: .*early_stopping=True"),
    (lambda: fit(KernelRankRLS(), eval_set=(X, Y, QID)), "eval_set was passed.*Hint: .*RankRLSCV"),
    # Columns that moved
    (lambda: fit(X=FRAME).predict(FRAME[FRAME.columns[::-1]]), r"same order.*Hint: .*X\[list\(model.feature_names_in_"),
    (lambda: fit(X=FRAME).predict(FRAME.rename(columns={"c0": "days"})), "(?s)unseen .*- days.*Hint: pass the columns"),
    (lambda: fit().predict(X[:, 1:]), "expecting .* features.*Hint: "),
    # Functions
    (lambda: bootstrap_mean([]), "values is empty.*Hint: "),
    (lambda: bootstrap_mean([1.0, 2.0], [1.0, -1.0]), "weight is negative, or 0 everywhere.*Hint: "),
    (lambda: auc_estimate([0, 1], np.zeros((2, 1, 1))), r"scores has shape \(2, 1, 1\).*Hint: "),
    (lambda: ndcg(changed(Y, np.nan), Y, QID), "y_true is NaN or infinite in 1 .*first in row 1.*Hint: "),
    (lambda: ndcg(Y, Y[:-1], QID), "entries where .* are expected.*Hint: "),
    (lambda: fit_ranker(StandardScaler, X, Y), "has no fit.*Hint: "),
    (lambda: permutation_test(RankRLS, X, Y, QID, n_permutations=2), "is not an estimator.*Hint: "),
]  # fmt: skip


@pytest.mark.parametrize(("call", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_mistakes(call, said):
    with pytest.raises(InvalidInputError, match=said) as refusal:
        call()
    assert refusal.value.hint


def test_kinds_of_mistakes():
    with pytest.raises(MissingQueriesError):
        fit().rank(X)
    for given in ({"pairs": []}, {"weight": 0.0}):
        with pytest.raises(NoPairsError):
            pairs(**given)


@each
def test_every_parameter_is_checked(model):
    """By a value that nobody could mean; an error names the parameter, and ends in a hint."""
    for name in model.get_params(deep=False):
        with pytest.raises(InvalidInputError, match=rf"(?s)({name}|Unknown metric).*Hint: \S"):
            clone(model).set_params(**{name: object()}).fit(X, Y, QID)


@each
def test_query_ids_under_another_name(model):
    for name in ("group", "groups", "query_id", "qids"):
        said = rf"has no argument '{name}'. Hint: pass the query id of each row as qid; .*np.repeat"
        with pytest.raises(InvalidInputError, match=f"fit {said}"):
            clone(model).fit(X, Y, **{name: QID})
    with pytest.raises(InvalidInputError, match=r"fit_pairs has no argument 'group'. Hint: leave it out"):
        clone(model).fit_pairs(X, PAIRS, group=np.zeros(len(PAIRS)))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("eval_group", r"eval_set=\(X_val, y_val, qid_val\)"),
        ("eval_qid", r"eval_set=\(X_val, y_val, qid_val\)"),
        ("callbacks", "early_stopping=True"),
        ("early_stopping_rounds", "early_stopping=True"),
        ("n_jobs", "set n_threads"),
        ("C", "set the penalty, alpha"),
        ("lambda_", "set the penalty, alpha"),
        ("group", "query id of each row as qid"),
    ],
)
@each
def test_arguments_of_other_packages(model, name, hint):
    with pytest.raises(InvalidInputError, match=rf"^fit has no argument '{name}'.*Hint: .*{hint}"):
        clone(model).fit(X, Y, QID, **{name: None})
    kind = type(model)
    with pytest.raises(
        InvalidInputError, match=rf"^{kind.__name__} has no argument '{name}'.*Hint: .*{hint}"
    ):
        kind(**{name: None})


def test_a_subclass_may_have_arguments_of_other_packages():
    class Own(RankRLS):
        def __init__(self, n_jobs=1):
            super().__init__()
            self.n_jobs = n_jobs

    assert clone(Own(n_jobs=3)).n_jobs == 3
    assert Own().fit(X, Y, QID).coef_.size == X.shape[1]


@pytest.mark.parametrize("model", [RankRLSCV(), RankRLS(early_stopping=True), AutoRanker(methods=["rls"])])
def test_lists_of_evaluation_sets(model):
    for n in (1, 2):
        with pytest.raises(
            InvalidInputError, match=r"eval_set must be a tuple .*Hint: pass one evaluation set"
        ):
            clone(model).fit(X, Y, QID, eval_set=[(X, Y, QID)] * n)


@each
def test_arguments_that_nobody_has_stay_a_type_error(model):
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'sample_weights'"):
        clone(model).fit(X, Y, sample_weights=np.ones(N))


@each
def test_routing_sees_the_arguments_as_they_were(model):
    """Arguments that are refused by name must not become something that scikit-learn could request."""
    with sklearn.config_context(enable_metadata_routing=True):
        requests = model.get_metadata_routing()
    assert set(requests.fit.requests) == set(inspect.signature(model.fit).parameters) - {"X", "y", "unknown"}
    assert requests.fit.requests["qid"] is True
    assert set(requests.score.requests) == {"qid", "sample_weight"}


@each
def test_no_rows_have_no_scores(model):
    model = clone(model).fit(X, Y, QID)
    for rows in (X[:0], sp.csr_matrix(X)[:0], pd.DataFrame(X)[:0]):
        assert model.predict(rows).shape == (0,)
        assert model.rank(rows, qid=[]).shape == (0,)


def test_a_model_of_queries_may_rank_all_rows_together():
    model = fit()
    scores = model.predict(X)
    together = model.rank(X, qid=np.zeros(N))
    np.testing.assert_array_equal(together, [1 + int((scores > own).sum()) for own in scores])


def test_pairs_of_any_type_that_holds_whole_numbers():
    for dtype in (np.int8, np.uint16, np.int32, np.float64):
        checked = check_pairs(np.array([[0, 1], [2, 1]], dtype=dtype), 3, [1, 0], 2)
        assert checked.winner.dtype == np.int64
        assert checked.winner.tolist() == [0, 2]
        assert checked.magnitude.tolist() == [1.0, 0.0]
        assert checked.weight.tolist() == [2.0, 2.0]
    for frames in (pd, pl):
        table = frames.DataFrame({"winner": [0, 2], "loser": [1, 1]})
        assert check_pairs(table, 3, frames.Series([1.5, 2.0])).magnitude.tolist() == [1.5, 2.0]
    assert len(check_pairs([[0, 1], [0, 1], [1, 0]], 2)) == 3  # repetitions and contradictions are legal


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix, sp.coo_array])
def test_two_matrices_become_one(convert):
    preferred, rejected = X[:4], X[4:8]
    stacked, listed = stack_preferred(convert(preferred), convert(rejected))
    rows = stacked.toarray() if sp.issparse(stacked) else stacked
    np.testing.assert_array_equal(rows[listed[:, 0]], preferred)
    np.testing.assert_array_equal(rows[listed[:, 1]], rejected)


def test_importance_by_row_by_name_and_by_date():
    queries = check_qid(["b", "a", "b"], 3)
    assert check_importance({"a": 3.0}, queries).tolist() == [3.0, 1.0]
    assert check_importance([2.0, 5.0, 2.0], queries).tolist() == [5.0, 2.0]
    days = ["2020-01-03", "2020-01-01", "2020-01-02"]
    dates = check_qid(np.array(days, dtype="datetime64[ns]"), 3)
    assert check_importance({pd.Timestamp(days[0]): 3.0}, dates).tolist() == [1.0, 1.0, 3.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda model, cv: cross_val_score(model, X, Y, groups=QID, cv=cv),
        lambda model, cv: cross_val_predict(model, X, Y, groups=QID, cv=cv),
        lambda model, cv: GridSearchCV(model, {}, cv=cv).fit(X, Y, groups=QID),
    ],
    ids=["cross_val_score", "cross_val_predict", "GridSearchCV"],
)
@pytest.mark.parametrize(
    "model", [RankRLS(), make_pipeline(StandardScaler(), RankRLS())], ids=["alone", "pipeline"]
)
def test_query_ids_that_only_the_splitter_gets_are_warned_of(call, model):
    said = r"rankers are fitted and scored without query ids.*Hint: .*enable_metadata_routing.*cross_validate_ranker"
    with pytest.warns(UserWarning, match=said):
        call(model, QueryKFold(3))


def test_nobody_is_warned_where_query_ids_arrive():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_validate_ranker(RankRLS(), X, Y, QID, cv=QueryKFold(3))
        RankRLSCV(cv=QueryKFold(3)).fit(X, Y, QID)
        with sklearn.config_context(enable_metadata_routing=True):
            cross_val_score(RankRLS(), X, Y, params={"qid": QID}, cv=QueryKFold(3))
        cross_val_score(Ridge(), X, Y, groups=QID, cv=GroupKFold(3))
