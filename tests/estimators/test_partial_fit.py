"""Streams: partial_fit against a direct solve of everything so far, and what a stream refuses."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone

from oracles import label_pairs, solve_rankrls
from rankwise import RankRLS
from rankwise.estimators import streaming
from rankwise.exceptions import InvalidInputError, MemoryLimitError, UnsuitableSolverError
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES
from rankwise.solvers.choose import SOLVERS
from strategies import make_problem

SETTINGS = [
    {"ties": t, "cost": c, "query_weight": w}
    for t in TIES
    for c in COSTS
    for w in QUERY_WEIGHTS
    if (t, c) != ("include", "relative")
]


def calls_of(problem, n_calls=4):
    """Rows of each call: whole queries where there are some, any rows otherwise."""
    group = np.arange(problem.y.size) % 7 if problem.qid is None else problem.qid
    names = np.unique(group)
    return [np.flatnonzero(np.isin(group, part)) for part in np.array_split(names, n_calls)]


def streamed(model, problem, calls, X=None):
    X = problem.X if X is None else X
    for rows in calls:
        model.partial_fit(
            X[rows],
            problem.y[rows],
            None if problem.qid is None else problem.qid[rows],
            None if problem.sample_weight is None else problem.sample_weight[rows],
        )
    return model


def explicit(problem, alpha, rows=None, **settings):
    rows = np.arange(problem.y.size) if rows is None else rows
    pick = lambda values: None if values is None else values[rows]  # noqa: E731
    pairs = label_pairs(
        problem.y[rows], pick(problem.qid), sample_weight=pick(problem.sample_weight), **settings
    )
    return solve_rankrls(problem.X[rows], pairs, alpha)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize("queries", [1, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_columns_equal_everything_so_far(settings, queries, weighted):
    problem = make_problem(1, rows=50, queries=queries, weighted=weighted)
    calls = calls_of(problem)
    model = RankRLS(0.3, **settings)
    for number, rows in enumerate(calls):
        streamed(model, problem, [rows])
        so_far = np.sort(np.concatenate(calls[: number + 1]))
        np.testing.assert_allclose(model.coef_, explicit(problem, 0.3, so_far, **settings), atol=1e-8)
    whole = RankRLS(0.3, **settings).fit(problem.X, problem.y, problem.qid, problem.sample_weight)
    assert model.n_queries_ == whole.n_queries_
    assert model.n_samples_seen_ == 50
    assert model.solver_ == "direct"
    if queries > 1:
        assert model.n_pairs_ == whole.n_pairs_
        assert model.n_ignored_queries_ == whole.n_ignored_queries_
    else:
        assert not hasattr(model, "n_pairs_")


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "stochastic"])
def test_every_solver_takes_the_statistics(solver):
    problem = make_problem(2)
    model = streamed(RankRLS(0.5, solver=solver, tol=1e-12), problem, calls_of(problem))
    np.testing.assert_allclose(model.coef_, explicit(problem, 0.5), atol=1e-8)
    assert model.solver_ == solver


@pytest.mark.parametrize("storage", [sp.csr_matrix, aslinearoperator, np.float32])
def test_storages(storage):
    problem = make_problem(3)
    for queries in (None, problem.qid):
        problem.qid = queries
        model = RankRLS(0.5)
        for rows in calls_of(problem):
            model.partial_fit(
                storage(problem.X[rows]), problem.y[rows], None if queries is None else queries[rows]
            )
        np.testing.assert_allclose(model.coef_, explicit(problem, 0.5), atol=1e-5)


@pytest.mark.parametrize("cost", ["magnitude", "unit"])
@pytest.mark.parametrize("queries", [1, 6])
@pytest.mark.parametrize("solver", ["auto", "stochastic"])
def test_several_outputs(cost, queries, solver):
    if (cost, queries, solver) == ("unit", 1, "stochastic"):
        return  # refused, see below
    problem = make_problem(4, queries=queries)
    y = np.column_stack([problem.y, problem.X[:, 0] > 0, problem.X[:, 1] > 0]).astype(float)
    model, single = RankRLS(2.0, cost=cost, solver=solver), []
    for rows in calls_of(problem):
        model.partial_fit(problem.X[rows], y[rows], None if queries == 1 else problem.qid[rows])
    for column in y.T:
        problem.y = column
        single.append(streamed(RankRLS(2.0, cost=cost, solver=solver), problem, calls_of(problem)).coef_)
    np.testing.assert_allclose(model.coef_, single, atol=1e-9)
    assert model.predict(problem.X).shape == (40, 3)
    with pytest.raises(InvalidInputError, match=r"one dimension.*3 columns.*Hint"):
        model.partial_fit(problem.X, problem.y, None if queries == 1 else problem.qid + 100)


def test_a_prior_by_scaling_follows_the_whole_stream():
    problem = make_problem(5)
    model = streamed(RankRLS(0.5, scaling=0.25), problem, calls_of(problem))
    whole = RankRLS(0.5, scaling=0.25).fit(problem.X, problem.y, problem.qid)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)


def text_like(rows=6000, columns=2500, seed=0):
    """More columns than are few, as frequent as words are."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, columns + 1)
    ids = rng.choice(columns, size=(rows, 25), p=frequency / frequency.sum())
    X = sp.csr_matrix((np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, 25)), shape=(rows, columns))
    X.sum_duplicates()
    X = X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))).tocsr()
    y = X @ rng.normal(size=columns) + 0.3 * rng.normal(size=rows)
    return X, y


@pytest.mark.parametrize("query_weight", ["size", "pairs"])
@pytest.mark.parametrize("query_size", [0, 50])
@pytest.mark.parametrize("call_rows", [100, 1000, 5000])
def test_many_columns_come_close_in_one_pass(query_weight, query_size, call_rows):
    X, y = text_like()
    qid = np.arange(6000) // query_size if query_size else None
    factor = {"size": 1, "pairs": query_size or 5000}[query_weight]
    train, test = np.arange(5000), np.arange(5000, 6000)
    model = RankRLS(3.0 * factor, query_weight=query_weight)
    for first in range(0, 5000, call_rows):
        rows = train[first : first + call_rows]
        model.partial_fit(X[rows], y[rows], None if qid is None else qid[rows])
    assert model.solver_ == "stochastic"
    assert model.n_samples_seen_ == 5000
    pick = lambda rows: (X[rows], y[rows], None if qid is None else qid[rows])  # noqa: E731
    whole = RankRLS(3.0 * factor, query_weight=query_weight, tol=1e-9).fit(*pick(train))
    error, best = 1 - model.score(*pick(test)), 1 - whole.score(*pick(test))
    assert error <= 1.1 * best


def test_one_block_is_the_whole_target():
    """A stream whose block holds everything is solved, up to its few iterations, like fit."""
    problem = make_problem(6, features=3, queries=1)
    model = RankRLS(0.5, solver="stochastic").partial_fit(problem.X, problem.y)
    np.testing.assert_allclose(model.coef_, explicit(problem, 0.5), atol=1e-8)


def test_a_query_in_two_calls_is_refused_and_nothing_is_lost():
    problem = make_problem(7, queries=6)
    model = RankRLS().partial_fit(problem.X, problem.y, problem.qid)
    before = model.coef_.copy()
    with pytest.raises(
        InvalidInputError, match=r"came in an earlier call.*Hint: pass all rows of a query in one call"
    ):
        model.partial_fit(problem.X[:5], problem.y[:5], problem.qid[:5])
    assert model.n_samples_seen_ == 40
    other = make_problem(8, queries=6)
    other.qid = other.qid + 1000
    model.partial_fit(other.X, other.y, other.qid)
    clean = RankRLS().partial_fit(problem.X, problem.y, problem.qid).partial_fit(other.X, other.y, other.qid)
    np.testing.assert_array_equal(model.coef_, clean.coef_)
    assert not np.array_equal(model.coef_, before)


def test_what_else_a_stream_refuses(monkeypatch):
    problem = make_problem(9, queries=6)
    model = RankRLS().partial_fit(problem.X, problem.y, problem.qid)
    with pytest.raises(InvalidInputError, match=r"with qid, and this one comes without.*Hint"):
        model.partial_fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="5 features"):
        model.partial_fit(problem.X[:, :3], problem.y, problem.qid + 100)
    with pytest.raises(InvalidInputError, match=r"changed while rows were coming in.*Hint"):
        model.set_params(ties="exclude").partial_fit(problem.X, problem.y, problem.qid + 100)
    with pytest.raises(InvalidInputError, match=r"early_stopping.*Hint"):
        RankRLS(early_stopping=True).partial_fit(problem.X, problem.y)
    with pytest.raises(InvalidInputError, match=r"y is None.*Hint"):
        RankRLS().partial_fit(problem.X, None)
    with pytest.raises(UnsuitableSolverError, match=r"ties='include'"):
        RankRLS(solver="stochastic", ties="exclude").partial_fit(problem.X, problem.y)
    with pytest.raises(UnsuitableSolverError, match=r"scaling=0"):
        RankRLS(solver="stochastic", scaling=0.25).partial_fit(problem.X, problem.y)
    with pytest.raises(UnsuitableSolverError, match=r"dense or sparse"):
        RankRLS(solver="stochastic").partial_fit(aslinearoperator(problem.X), problem.y)
    monkeypatch.setattr("rankwise.memory.available_memory", lambda: 1000)
    monkeypatch.setattr(streaming, "fits_direct", lambda _: True)
    with pytest.raises(MemoryLimitError, match=r"different labels.*Hint: use ties='include'"):
        RankRLS(ties="exclude").partial_fit(problem.X, problem.y)
    monkeypatch.setattr(streaming, "fits_direct", lambda _: False)
    monkeypatch.setattr("rankwise.estimators.solving.fits_direct", lambda _: False)
    with pytest.raises(UnsuitableSolverError, match=r"forms a matrix"):
        RankRLS(solver="direct").partial_fit(problem.X, problem.y)


def test_an_interrupted_call_leaves_the_stream_as_it_was(monkeypatch):
    problem = make_problem(10, queries=6)
    calls = calls_of(problem)
    model = streamed(RankRLS(solver="stochastic"), problem, calls[:2])
    before = pickle.dumps(model)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rankwise.solvers.stochastic.Memory.learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            streamed(model, problem, calls[2:3])
    np.testing.assert_array_equal(
        streamed(model, problem, calls[2:]).coef_, streamed(pickle.loads(before), problem, calls[2:]).coef_
    )


@pytest.mark.parametrize("solver", ["auto", "stochastic"])
@pytest.mark.parametrize("queries", [1, 6])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_pickling_in_mid_stream(solver, queries, again):
    problem = make_problem(11, queries=queries)
    calls = calls_of(problem)
    whole = streamed(RankRLS(solver=solver), problem, calls)
    half = again(streamed(RankRLS(solver=solver), problem, calls[:2]))
    np.testing.assert_array_equal(streamed(half, problem, calls[2:]).coef_, whole.coef_)


def test_fit_and_clone_start_anew():
    problem = make_problem(12, queries=6)
    model = RankRLS().partial_fit(problem.X, problem.y, problem.qid)
    assert not hasattr(clone(model), "coef_")
    model.fit(problem.X[:20], problem.y[:20])
    assert not hasattr(model, "n_samples_seen_")
    expected = RankRLS().partial_fit(problem.X, problem.y).coef_
    np.testing.assert_array_equal(model.partial_fit(problem.X, problem.y).coef_, expected)
    model.fit_pairs(problem.X, [[0, 1], [2, 3]])
    assert not hasattr(model, "n_samples_seen_")


def test_rows_one_at_a_time_and_calls_without_a_pair():
    problem = make_problem(13, queries=1, real=True)
    model = RankRLS(0.5)
    for row in range(40):
        model.partial_fit(problem.X[row : row + 1], problem.y[row : row + 1])
    np.testing.assert_allclose(model.coef_, explicit(problem, 0.5), atol=1e-8)
    silent = RankRLS().partial_fit(problem.X[:3], [1.0, 1.0, 1.0])
    np.testing.assert_allclose(silent.coef_, 0.0, atol=1e-15)
    assert silent.score(problem.X, problem.y) == 0.5


def test_features_far_from_zero_lose_no_digits():
    problem = make_problem(14, rows=60, queries=1, real=True)
    shifted = RankRLS(0.5)
    for rows in np.array_split(np.arange(60), 8):
        shifted.partial_fit(problem.X[rows] + 1e6, problem.y[rows] - 1e6)
    np.testing.assert_allclose(shifted.coef_, explicit(problem, 0.5), rtol=1e-6)


# --- early stopping between reads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("with_eval_set", [True, False])
@pytest.mark.parametrize("scaling", [0.0, 0.25])
def test_early_stopping_keeps_the_best_read(outputs, with_eval_set, scaling):
    X, y = text_like(2000, 400)
    y = y if outputs == 1 else np.column_stack([y, X[:, 0].toarray().ravel() + 0.1 * y])
    model = RankRLS(1e-3, solver="stochastic", early_stopping=True, patience=4, scaling=scaling, tol=1e-10)
    model.fit(X[:1500], y[:1500], eval_set=(X[1500:], y[1500:]) if with_eval_set else None)
    histories = [model.history_] if outputs == 1 else model.history_
    assert model.solver_ == "stochastic"
    assert model.n_iter_ == max(len(history) for history in histories)
    for output, history in enumerate(histories):
        best = int(np.argmin(history))
        assert np.atleast_1d(model.best_iteration_)[output] == best + 1
    if with_eval_set:
        scores, labels = model.predict(X[1500:]), y[1500:]
        for output, history in enumerate(histories):
            one = RankRLS(1.0)
            one.coef_, one.n_features_in_, one.fitted_with_qid_ = (
                np.atleast_2d(model.coef_)[output],
                400,
                False,
            )
            column = labels if outputs == 1 else labels[:, output]
            assert 1 - one.score(X[1500:], column) == pytest.approx(min(history))
        assert scores.shape == labels.shape


def test_parameters_of_gradient_descent():
    problem = make_problem(15)
    slow = RankRLS(0.5, solver="gdm", learning_rate=1e-3, momentum=0.5, tol=1e-10)
    np.testing.assert_allclose(
        slow.fit(problem.X, problem.y, problem.qid).coef_, explicit(problem, 0.5), atol=1e-7
    )
    for wrong in ({"momentum": 1.0}, {"momentum": "0.9"}, {"learning_rate": 0.0}, {"learning_rate": -1.0}):
        with pytest.raises(InvalidInputError, match="Hint"):
            RankRLS(solver="gdm", **wrong).fit(problem.X, problem.y)
