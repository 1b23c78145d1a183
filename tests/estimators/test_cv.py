"""What `cv` means is the same for every estimator that chooses: a table of estimators and values of `cv`."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut

from all_pairs import pairwise
from rankwise import KernelRankRLS, KernelRankRLSCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import err, get_metric
from rankwise.model_selection import PreferenceKFold, QueryKFold, cross_validate_ranker

ALPHAS = [0.1, 1.0]
MODELS = {
    "RankRLSCV": RankRLSCV(ALPHAS),
    "RankRLSCV tikhonov": RankRLSCV(ALPHAS, method="tikhonov"),
    "KernelRankRLSCV eigen": KernelRankRLSCV("linear", alphas=ALPHAS),
    "KernelRankRLSCV cg": KernelRankRLSCV("linear", alphas=ALPHAS, solver="cg"),
    "KernelRankRLSCV basis": KernelRankRLSCV("linear", alphas=ALPHAS, basis=np.arange(12)),
    "RankSVMCV": RankSVMCV(ALPHAS, loss="squared_hinge"),
}
EXACT = {"RankRLSCV", "RankRLSCV tikhonov", "KernelRankRLSCV eigen", "KernelRankRLSCV basis"}
ROWS = np.arange(30)
GIVEN = [(ROWS[10:], ROWS[:10]), (np.r_[ROWS[:10], ROWS[20:]], ROWS[10:20]), (ROWS[:20], ROWS[20:])]
QID = np.arange(30) % 6
# What every estimator says, with query ids and without.
FITS = {
    "3": (3, "3 folds of queries", "3 folds of rows"),
    "KFold": (KFold(3), f"the test sets of {KFold(3)}", f"the test sets of {KFold(3)}"),
    "GroupKFold": (GroupKFold(3), f"the test sets of {GroupKFold(3)}", MissingQueriesError),
    "QueryKFold": (QueryKFold(3), f"the test sets of {QueryKFold(3)}", MissingQueriesError),
    "LeaveOneGroupOut": (LeaveOneGroupOut(), f"the test sets of {LeaveOneGroupOut()}", MissingQueriesError),
    "list": (GIVEN, "the test sets of 3 given splits", "the test sets of 3 given splits"),
    "too many folds": (KFold(31), InvalidInputError, InvalidInputError),
    "31": (31, InvalidInputError, InvalidInputError),
    "1": (1, InvalidInputError, InvalidInputError),
    "name": ("leave-one-out", InvalidInputError, InvalidInputError),
    "float": (2.5, InvalidInputError, InvalidInputError),
}


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    return X, (X[:, 0] + rng.normal(size=30)).round()


@pairwise(name=MODELS, with_qid=[True, False], cv=FITS)
def test_every_estimator_reads_cv_alike(name, cv, with_qid):
    value, *expected = FITS[cv]
    said = expected[0 if with_qid else 1]
    model = clone(MODELS[name]).set_params(cv=value)
    qid = QID if with_qid else None
    if isinstance(said, str):
        assert model.fit(*data(), qid=qid).cv_ == said
        return
    with pytest.raises(said, match="Hint: "):
        model.fit(*data(), qid=qid)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cv", ["leave-query-out", "leave-pair-out"])
def test_exact_hold_out_is_for_decompositions(name, cv):
    model = clone(MODELS[name]).set_params(cv=cv)
    qid = QID if cv == "leave-query-out" else None
    if name in EXACT:
        assert model.fit(*data(), qid=qid).cv_.startswith(cv)
        return
    with pytest.raises(InvalidInputError, match=r"takes a decomposition.*Hint: use cv=5"):
        model.fit(*data(), qid=qid)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("cv", "groups", "said"),
    [
        (3, None, "3 folds of pairs"),
        (3, "given", "3 folds of groups"),
        (KFold(3), None, f"the test sets of {KFold(3)}"),
        (GroupKFold(3), "given", f"the test sets of {GroupKFold(3)}"),
        (GroupKFold(3), None, InvalidInputError),
        (PreferenceKFold(3, by="groups"), "given", f"the test sets of {PreferenceKFold(3, by='groups')}"),
        (PreferenceKFold(3, by="groups"), None, InvalidInputError),
    ],
)
def test_every_estimator_reads_cv_of_pairs_alike(name, cv, groups, said):
    X, y = data()
    winner, loser = np.nonzero(y[:, None] > y)
    pairs = np.column_stack([winner, loser])[::9]
    groups = None if groups is None else np.arange(len(pairs)) % 5
    model = clone(MODELS[name]).set_params(cv=cv)
    if isinstance(said, str):
        assert model.fit_pairs(X, pairs, groups=groups).cv_ == said
        return
    with pytest.raises(said, match="Hint: "):
        model.fit_pairs(X, pairs, groups=groups)


@pairwise(basis=[None, np.arange(12)], weighted=[False, True], qid=[QID, np.zeros(30, dtype=int)])
def test_folds_that_divide_queries_equal_refits(basis, weighted, qid):
    """Queries that lose rows have no closed form: each fold is fitted again, with the reduced set of all rows."""
    X, y = data()
    rng = np.random.default_rng(1)
    weight = rng.integers(1, 4, size=30).astype(float) if weighted else None
    importance = {query: 1.5 + query for query in np.unique(qid)} if weighted else None
    options = {"ties": "exclude", "query_weight": "pairs"}
    model = KernelRankRLSCV("rbf", gamma=0.3, alphas=ALPHAS, cv=GIVEN, basis=basis, **options)
    model.fit(X, y, qid, sample_weight=weight, query_importance=importance)
    metric = get_metric("pairwise_error")
    for alpha, error in zip(model.alphas_, model.cv_errors_, strict=True):
        scores, fold = np.empty(30), np.empty(30, dtype=int)
        for number, (train, test) in enumerate(GIVEN):
            # The basis stands among the rows: others of it weigh nothing where they are held out.
            own = np.isin(ROWS, train) * (1.0 if weight is None else weight)
            refit = KernelRankRLS("rbf", gamma=0.3, alpha=alpha, basis=basis, **options)
            refit.fit(X, y, qid, sample_weight=own, query_importance=importance)
            scores[test], fold[test] = refit.predict(X[test]), number
        expected = metric(y, scores, qid * 3 + fold, sample_weight=weight)
        assert error == pytest.approx(expected, abs=1e-9)


def test_alphas_that_are_lost_beside_the_columns():
    """Without the query that the first column is of, only alpha is left of its equation, and rounding takes that."""
    X = np.zeros((8, 2))
    X[[1, 2, 5], 0] = 9e6, -4.5e7, -2.2e7
    X[7, 1] = 1.0
    y, qid = [0, 1, 0, 2, 0, 3, 0, 1], ["b", "a", "a", "a", "a", "c", "d", "d"]
    with pytest.raises(InvalidInputError, match=r"alphas vanish by rounding.*Hint: scale the columns"):
        RankRLSCV([0.1, 1.0], cv="leave-query-out").fit(X, y, qid)
    assert np.isfinite(RankRLSCV([1e9], cv="leave-query-out").fit(X, y, qid).predict(X)).all()


@pytest.mark.parametrize(
    ("chooser", "model"),
    [
        (RankSVMCV([0.1, 1.0], loss="squared_hinge", tol=1e-9), RankSVM(loss="squared_hinge", tol=1e-9)),
        (RankRLSCV([0.1, 1.0], positive=True), RankRLS(positive=True)),
        (RankRLSCV([0.1, 1.0], method="tikhonov"), RankRLS()),
    ],
    ids=["margins", "restricted", "closed form"],
)
def test_the_largest_grade_is_that_of_all_folds(chooser, model):
    """ERR takes it from the labels, and not every fold has rows of the best grade."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(48, 3)), np.arange(48) // 6
    y = np.digitize(X[:, 0] + rng.normal(size=48), [0, 1]) + 2 * (qid == 0)
    cv = [(np.flatnonzero(qid % 4 != fold), np.flatnonzero(qid % 4 == fold)) for fold in range(4)]
    found = clone(chooser).set_params(cv=cv, scoring="err").fit(X, y, qid)
    for alpha, value in zip(found.alphas_, found.cv_errors_, strict=True):
        scores = np.empty(48)
        for train, test in cv:
            scores[test] = (
                clone(model).set_params(alpha=alpha).fit(X[train], y[train], qid[train]).predict(X[test])
            )
        assert value == pytest.approx(err(y, scores, qid), abs=1e-9)
    by_fold = cross_validate_ranker(RankRLS(), X, y, qid, scoring="err", cv=cv)["test_score"]
    fitted = [RankRLS().fit(X[train], y[train], qid[train]).predict(X[test]) for train, test in cv]
    expected = [
        err(y[test], own, qid[test], max_grade=y.max()) for (_, test), own in zip(cv, fitted, strict=True)
    ]
    np.testing.assert_allclose(by_fold, expected)
