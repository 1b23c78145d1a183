"""Calls that mean something else than they say: queries left out, arguments of other libraries, columns that moved."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import (
    AdditiveRanker,
    AutoRanker,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.estimators.base import Ranker
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.model_selection import QueryKFold, cross_validate_ranker
from strategies import make_problem

ESTIMATORS = [
    RankRLS(),
    RankRLSCV(),
    RankSVM(),
    RankSVMCV(alphas=[0.1, 1.0]),
    KernelRankRLS(),
    KernelRankRLSCV(),
    KernelRankSVM(),
]
PROBLEM = make_problem(0, real=True)
X, Y, QID = PROBLEM.X, PROBLEM.y, PROBLEM.qid
PAIRS = np.array([[0, 1], [2, 3], [8, 5], [1, 7], [9, 2], [4, 6]])

each = pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)


@each
def test_a_model_of_queries_ranks_inside_queries(model):
    model = clone(model).fit(X, Y, QID)
    with pytest.raises(
        MissingQueriesError, match=r"rank was called without.*Hint: pass qid=.*np.zeros\(len\(X\)\)"
    ):
        model.rank(X)
    together = model.rank(X, qid=np.zeros(len(X)))
    scores = model.predict(X)
    np.testing.assert_array_equal(together, [1 + int((scores > own).sum()) for own in scores])
    alone = clone(model).fit(X, Y)
    np.testing.assert_array_equal(alone.rank(X), alone.rank(X, qid=np.zeros(len(X))))


@pytest.mark.parametrize("name", ["group", "groups", "query_id", "qids"])
@each
def test_query_ids_under_another_name(model, name):
    said = rf"has no argument '{name}'. Hint: pass the query id of each row as qid; .*np.repeat"
    with pytest.raises(InvalidInputError, match=f"fit {said}"):
        clone(model).fit(X, Y, **{name: QID})
    fitted = clone(model).fit(X, Y)
    for method in ("score", "rank"):
        arguments = (X, Y) if method == "score" else (X,)
        with pytest.raises(InvalidInputError, match=f"{method} {said}"):
            getattr(fitted, method)(*arguments, **{name: QID})
    if name == "group":
        with pytest.raises(InvalidInputError, match=r"fit_pairs has no argument 'group'. Hint: leave it out"):
            clone(model).fit_pairs(X, PAIRS, group=np.zeros(len(PAIRS)))
    if hasattr(model, "partial_fit"):
        with pytest.raises(InvalidInputError, match=f"partial_fit {said}"):
            clone(model).partial_fit(X, Y, **{name: QID})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("eval_group", r"eval_set=\(X_val, y_val, qid_val\)"),
        ("eval_qid", r"eval_set=\(X_val, y_val, qid_val\)"),
        ("callbacks", "early_stopping=True"),
        ("early_stopping_rounds", "early_stopping=True"),
        ("n_jobs", "set n_threads"),
    ],
)
@each
def test_arguments_of_boosted_trees(model, name, hint):
    with pytest.raises(InvalidInputError, match=rf"^fit has no argument '{name}'.*Hint: .*{hint}"):
        clone(model).fit(X, Y, QID, **{name: None})
    kind = type(model)
    with pytest.raises(
        InvalidInputError, match=rf"^{kind.__name__} has no argument '{name}'.*Hint: .*{hint}"
    ):
        kind(**{name: None})


def test_a_subclass_may_have_arguments_of_boosted_trees():
    class Own(RankRLS):
        def __init__(self, n_jobs=1):
            super().__init__()
            self.n_jobs = n_jobs

    assert clone(Own(n_jobs=3)).n_jobs == 3


@pytest.mark.parametrize("n", [1, 2, 3])
@each
def test_lists_of_evaluation_sets(model, n):
    if not hasattr(model, "cv"):
        model = RankRLS(early_stopping=True)
    with pytest.raises(InvalidInputError, match=r"eval_set must be a tuple .*Hint: pass one evaluation set"):
        clone(model).fit(X, Y, QID, eval_set=[(X, Y, QID)] * n)
    with pytest.raises(InvalidInputError, match=r"eval_set must be a tuple .*Hint"):
        clone(model).fit_pairs(X, PAIRS, eval_set=[(X, PAIRS)] * n)


EVERY = [*ESTIMATORS, AdditiveRanker(), AutoRanker(methods=["rls"], scalings=["standard"])]
every = pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)


def matrix_of(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(values)


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (matrix_of, r"np.matrix.* Hint: pass np.asarray\({}\)"),
        (lambda values: pl.DataFrame(values).lazy(), r"LazyFrame.* Hint: pass {}.collect\(\)"),
    ],
    ids=["matrix", "LazyFrame"],
)
@every
def test_containers_that_cannot_be_read(model, make, hint):
    pairs = (*PAIRS, PAIRS[0])
    fitted = clone(model).fit(X, Y, QID)
    calls = [
        ("X", lambda: clone(model).fit(make(X), Y, QID)),
        ("y", lambda: clone(model).fit(X, make(Y[:, None]), QID)),
        ("qid", lambda: clone(model).fit(X, Y, make(QID[:, None]))),
        ("X", lambda: clone(model).fit_pairs(make(X), pairs)),
        ("pairs", lambda: clone(model).fit_pairs(X, make(PAIRS))),
        ("X", lambda: fitted.predict(make(X))),
        ("X", lambda: fitted.predict_pairs(make(X), PAIRS)),
        ("pairs", lambda: fitted.predict_pairs(X, make(PAIRS))),
    ]
    for name, call in calls:
        with pytest.raises(InvalidInputError, match=f"^{name} is an? " + hint.format(name)):
            call()


@every
def test_no_rows_have_no_scores(model):
    model = clone(model).fit(X, Y, QID)
    for rows in (X[:0], sp.csr_matrix(X)[:0], pd.DataFrame(X)[:0]):
        assert model.predict(rows).shape == (0,)
        assert model.rank(rows, qid=[]).shape == (0,)
        with pytest.raises(InvalidInputError, match="is empty"):
            model.score(rows, [], qid=[])
    with pytest.raises(InvalidInputError, match=r"expecting .* features"):
        model.predict(X[:0, 1:])


@every
def test_labels_that_are_text(model):
    grades = np.array(["bad", "good"])[(np.median(Y) < Y).astype(int)]
    with pytest.raises(InvalidInputError, match=r"^y must be numbers .*Hint: encode grades as numbers"):
        clone(model).fit(X, grades, QID)
    with pytest.raises(InvalidInputError, match=r"^y must be numbers"):
        clone(model).fit(pd.DataFrame(X), pd.Series(grades, dtype="category"), QID)


def test_columns_of_text_are_not_blamed_on_labels():
    with pytest.raises(InvalidInputError, match=r"could not convert.*Hint: encode text and categories"):
        RankRLS().fit(X.astype(str).astype(object) + "x", Y, QID)


@each
def test_fit_is_written_once(model):
    assert type(model).fit is Ranker.fit is AutoRanker.fit
    assert type(model).fit_pairs is Ranker.fit_pairs is AutoRanker.fit_pairs


@pytest.mark.parametrize("model", [RankRLS(), RankSVM(), KernelRankRLS(), KernelRankSVM()])
def test_what_nothing_would_look_at_is_refused(model):
    for given in ({"eval_set": (X, Y)}, {"eval_set": (X, Y, QID)}):
        with pytest.raises(InvalidInputError, match=r"eval_set was passed.*Hint: .*such as RankRLSCV"):
            clone(model).fit(X, Y, **given)
    with pytest.raises(InvalidInputError, match=r"eval_set was passed.*Hint"):
        clone(model).fit_pairs(X, PAIRS, eval_set=(X, PAIRS))
    with pytest.raises(InvalidInputError, match=r"groups was passed.*Hint: leave it out"):
        clone(model).fit_pairs(X, PAIRS, groups=np.arange(len(PAIRS)))


def test_groups_of_pairs_are_for_folds():
    with pytest.raises(InvalidInputError, match="groups was passed"):
        AdditiveRanker().fit_pairs(X, PAIRS, groups=np.arange(len(PAIRS)))
    with pytest.raises(InvalidInputError, match=r"no query_importance.*Hint: leave it out"):
        AutoRanker().fit(X, Y, QID, query_importance=np.ones(len(X)))


@each
def test_pairs_that_were_forgotten(model):
    with pytest.raises(InvalidInputError, match=r"There are no pairs.*Hint: pass pairs of row numbers"):
        clone(model).fit_pairs(X)


@each
def test_arguments_that_nobody_has_stay_a_type_error(model):
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'sample_weights'"):
        clone(model).fit(X, Y, sample_weights=np.ones(len(X)))
    for method in ("fit", "fit_pairs", "partial_fit", "score"):
        if hasattr(model, method):
            with pytest.raises(TypeError, match=rf"{method}\(\) got an unexpected keyword argument 'n'"):
                getattr(model, method)(X, PAIRS if method == "fit_pairs" else Y, n=1)


@each
def test_routing_sees_the_arguments_as_they_were(model):
    """What is refused by name must not become something that scikit-learn could request."""
    with sklearn.config_context(enable_metadata_routing=True):
        requests = model.get_metadata_routing()
    assert set(requests.fit.requests) == set(inspect.signature(model.fit).parameters) - {"X", "y", "unknown"}
    assert requests.fit.requests["qid"] is True
    assert set(requests.score.requests) == {"qid", "sample_weight"}


@each
def test_columns_that_moved_are_named(model):
    names = ["age", "clicks", *(f"c{i}" for i in range(X.shape[1] - 2))]
    frame = pd.DataFrame(X, columns=names)
    model = clone(model).fit(frame, Y, QID)
    other = frame[["clicks", "age", *names[2:]]]
    said = (
        r"same order as they were in fit\. Moved: 'clicks', 'age'\. "
        r"Hint: pass the columns of the fit in their order: X\[list\(model.feature_names_in_\)\]"
    )
    with pytest.raises(InvalidInputError, match=said):
        model.predict(other)
    np.testing.assert_array_equal(model.predict(other[list(model.feature_names_in_)]), model.predict(frame))
    with pytest.raises(
        InvalidInputError, match=r"(?s)Feature names unseen .*- days.*Hint: pass the columns of the fit"
    ):
        model.predict(frame.rename(columns={"age": "days"}))
    with pytest.raises(InvalidInputError, match=r"(?s)- age.*Hint: pass the columns of the fit"):
        model.predict(frame.drop(columns="age"))


def test_columns_of_polars_that_moved_are_named():
    frame = pl.DataFrame({f"c{i}": X[:, i] for i in range(X.shape[1])})
    model = RankRLS().fit(frame, Y, QID)
    other = frame[["c1", "c0", *frame.columns[2:]]]
    if not hasattr(model, "feature_names_in_"):
        pytest.skip("this scikit-learn does not read the names of polars columns")
    with pytest.raises(InvalidInputError, match=r"Moved: 'c1', 'c0'"):
        model.predict(other)
    np.testing.assert_array_equal(model.predict(other[list(model.feature_names_in_)]), model.predict(frame))


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


def test_folds_of_rows_with_groups_are_warned_of_by_scikit_learn():
    with pytest.warns(UserWarning, match="groups parameter is ignored"):
        cross_val_score(RankRLS(), X, Y, groups=QID)


def test_nobody_is_warned_where_query_ids_arrive():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_validate_ranker(RankRLS(), X, Y, QID, cv=QueryKFold(3))
        RankRLSCV(cv=QueryKFold(3)).fit(X, Y, QID)
        for train, _ in QueryKFold(3).split(X, Y, QID):
            RankRLS().fit(X[train], Y[train], QID[train])
        with sklearn.config_context(enable_metadata_routing=True):
            cross_val_score(RankRLS(), X, Y, params={"qid": QID}, cv=QueryKFold(3))
        cross_val_score(Ridge(), X, Y, groups=QID, cv=GroupKFold(3))
