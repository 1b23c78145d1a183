"""Streams: partial_fit against a direct solve of everything so far, and what a stream refuses."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone

import rankwise
from oracles import label_pairs, solve_rankrls
from rankwise import RankRLS
from rankwise.exceptions import InvalidInputError, MemoryLimitError, UnsuitableSolverError
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES
from rankwise.solvers.choose import SOLVERS
from rankwise.streaming import state
from rankwise.streaming.pending import SeenQueries
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
    group = np.arange(len(problem.y)) % 7 if problem.qid is None else problem.qid
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


@pytest.mark.parametrize(
    ("cost", "queries", "solver"),
    [
        (cost, queries, solver)
        for cost in ("magnitude", "unit")
        for queries in (1, 6)
        for solver in ("auto", "stochastic")
        if (cost, queries, solver) != ("unit", 1, "stochastic")  # which is refused
    ],
)
def test_several_outputs(cost, queries, solver):
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


def sparse_alike(rows=9000, columns=2500, seed=0):
    """Columns that are all alike: much harder to learn from small portions than words are."""
    rng = np.random.default_rng(seed)
    X = sp.random(rows, columns, density=15 / columns, random_state=rng, format="csr")
    return X, X @ rng.normal(size=columns) + 0.5 * rng.normal(size=rows)


@pytest.mark.parametrize("query_size", [0, 50])
@pytest.mark.parametrize("call_rows", [50, 400, 1000])
def test_small_calls_learn_nearly_as_much_as_large_ones(query_size, call_rows):
    X, y = sparse_alike()
    qid = np.arange(9000) // query_size if query_size else None
    pick = lambda rows: (X[rows], y[rows], None if qid is None else qid[rows])  # noqa: E731
    test = slice(8000, 9000)
    small = RankRLS(1.0)
    for first in range(0, 8000, call_rows):
        small.partial_fit(*pick(slice(first, first + call_rows)))
    large = RankRLS(1.0).partial_fit(*pick(slice(0, 8000)))
    error, best = 1 - small.score(*pick(test)), 1 - large.score(*pick(test))
    assert error <= 1.1 * best


def cut_into_blocks(monkeypatch, rows):
    monkeypatch.setattr("rankwise.streaming.pending._BLOCK_ROWS", rows)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(("queries", "cost"), [(1, "magnitude"), (12, "magnitude"), (12, "unit")])
def test_rows_that_make_a_block_are_learned_from_as_one(monkeypatch, queries, weighted, outputs, cost):
    """However a stream is cut into calls, what is settled are blocks: here of 40 rows or more."""
    problem = make_problem(18, rows=120, queries=queries, weighted=weighted)
    if outputs == 2:
        problem.y = np.column_stack([problem.y, problem.X[:, 0] > 0]).astype(float)
    calls = calls_of(problem, 7)
    blocks, block = [], []
    for rows in calls:
        block = [*block, rows]
        if sum(part.size for part in block) >= 40:
            blocks, block = [*blocks, np.concatenate(block)], []
    done = sum(rows.size for rows in blocks)
    n_calls = int(np.searchsorted(np.cumsum([rows.size for rows in calls]), done)) + 1
    cut_into_blocks(monkeypatch, 1)
    expected = streamed(RankRLS(0.5, solver="stochastic", cost=cost), problem, blocks)
    cut_into_blocks(monkeypatch, 40)
    model = streamed(RankRLS(0.5, solver="stochastic", cost=cost), problem, calls[:n_calls])
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-10)
    assert model.n_samples_seen_ == expected.n_samples_seen_ == done


def test_what_is_kept_is_a_copy_and_bounded(monkeypatch):
    """Callers refill their arrays; and neither rows nor values pile up."""
    problem = make_problem(19, rows=120, queries=1, real=True)
    model, again = RankRLS(solver="stochastic"), RankRLS(solver="stochastic")
    cut_into_blocks(monkeypatch, 50)
    X, y, weight = np.empty((10, 5)), np.empty(10), np.empty(10)
    for first in range(0, 120, 10):
        rows = slice(first, first + 10)
        X[:], y[:], weight[:] = problem.X[rows], problem.y[rows], 1 + np.arange(10)
        model.partial_fit(X, y, sample_weight=weight)
        again.partial_fit(problem.X[rows], problem.y[rows], sample_weight=1.0 + np.arange(10))
        assert sum(part.n_rows for part in model._stream.memory.pending) < 50
    np.testing.assert_array_equal(model.coef_, again.coef_)
    monkeypatch.setattr("rankwise.streaming.pending._BLOCK_VALUES", 60)
    model.partial_fit(problem.X[:20], problem.y[:20])
    assert not model._stream.memory.pending


def test_storages_and_precisions_may_change_between_calls():
    problem = make_problem(20, rows=120, queries=1, real=True)
    kinds = [np.asarray, sp.csr_matrix, np.float32, lambda X: sp.csr_matrix(X.astype(np.float32))]
    mixed, plain = RankRLS(solver="stochastic"), RankRLS(solver="stochastic")
    for number, rows in enumerate(np.array_split(np.arange(120), 12)):
        weight = np.ones(rows.size) if number % 3 == 0 else None
        mixed.partial_fit(kinds[number % 4](problem.X[rows]), problem.y[rows], sample_weight=weight)
        plain.partial_fit(problem.X[rows], problem.y[rows])
    np.testing.assert_allclose(mixed.coef_, plain.coef_, atol=1e-5)


def test_a_penalty_that_changes_between_small_calls():
    problem = make_problem(21, rows=60, features=3, queries=1, real=True)
    model = RankRLS(100.0, solver="stochastic")
    for rows in np.array_split(np.arange(60), 6):
        model.partial_fit(problem.X[rows], problem.y[rows])
    strict = np.linalg.norm(model.coef_)
    model.set_params(alpha=0.5).partial_fit(problem.X[:0:-1], problem.y[:0:-1])
    assert np.linalg.norm(model.coef_) > strict


def test_rows_out_of_range_leave_the_stream_as_it_was():
    problem = make_problem(22, queries=1, real=True)
    for solver in ("auto", "stochastic"):
        model = RankRLS(solver=solver).partial_fit(problem.X, problem.y)
        before = model.coef_.copy()
        with pytest.raises(InvalidInputError, match=r"as large as .*too large.*Hint"):
            model.partial_fit(problem.X * 1e200, problem.y)
        np.testing.assert_array_equal(model.coef_, before)
        model.partial_fit(problem.X[:10], problem.y[:10])
        expected = RankRLS(solver=solver).partial_fit(problem.X, problem.y)
        expected.partial_fit(problem.X[:10], problem.y[:10])
        np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_a_set_of_seen_queries_does_not_change_when_it_grows():
    first = SeenQueries().plus(["a", "b"])
    second, third = first.plus(["c"]), first.plus(["d"])
    assert [len(seen) for seen in (first, second, third)] == [2, 3, 3]
    assert "c" in second
    assert "c" not in first
    assert "c" not in third
    assert "d" in third
    assert "d" not in second
    assert "d" not in second.plus(["e"])


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
    begun = RankRLS(solver="stochastic").partial_fit(problem.X, problem.y)
    with pytest.raises(UnsuitableSolverError, match=r"dense or sparse"):
        begun.partial_fit(aslinearoperator(problem.X), problem.y)
    monkeypatch.setattr("rankwise.runtime.memory._ALWAYS_FITS", 0)
    monkeypatch.setattr("rankwise.runtime.memory.available_memory", lambda: 1000)
    monkeypatch.setattr(state, "fits_direct", lambda _: True)
    with pytest.raises(MemoryLimitError, match=r"different labels.*Hint: use ties='include'"):
        RankRLS(ties="exclude").partial_fit(problem.X, problem.y)
    monkeypatch.setattr(state, "fits_direct", lambda _: False)
    monkeypatch.setattr("rankwise.fitting.squares.fits_direct", lambda _: False)
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
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_in_mid_stream_goes_its_own_way(solver, queries, again):
    problem = make_problem(11, queries=queries)
    calls = calls_of(problem)
    whole = streamed(RankRLS(solver=solver), problem, calls)
    half = streamed(RankRLS(solver=solver), problem, calls[:2])
    before, n_rows = half.coef_.copy(), half.n_samples_seen_
    other = again(half)
    streamed(other, problem, calls[2:])
    np.testing.assert_array_equal(other.coef_, whole.coef_)
    # The original is where it was, and takes the same rows, in another order, as if nothing had happened.
    np.testing.assert_array_equal(half.coef_, before)
    assert half.n_samples_seen_ == n_rows
    expected = streamed(RankRLS(solver=solver), problem, [*calls[:2], *calls[:1:-1]])
    np.testing.assert_array_equal(streamed(half, problem, calls[:1:-1]).coef_, expected.coef_)
    np.testing.assert_array_equal(other.coef_, whole.coef_)
    if queries > 1:
        assert half.n_queries_ == other.n_queries_ == whole.n_queries_
        with pytest.raises(InvalidInputError, match="came in an earlier call"):
            streamed(half, problem, calls[3:])


def test_changing_the_coefficients_does_not_change_what_the_stream_remembers():
    problem = make_problem(16, queries=1)
    calls = calls_of(problem)
    model = streamed(RankRLS(solver="stochastic"), problem, calls[:2])
    model.coef_[:] = 1e9
    whole = streamed(RankRLS(solver="stochastic"), problem, calls)
    np.testing.assert_array_equal(streamed(model, problem, calls[2:]).coef_, whole.coef_)


def test_a_saved_model_goes_on_with_its_stream(tmp_path):
    problem = make_problem(17, queries=6)
    calls = calls_of(problem)
    model = streamed(RankRLS(), problem, calls[:2])
    model.save(tmp_path / "model.rankwise")
    loaded = rankwise.load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    for each in (model, loaded):
        streamed(each, problem, calls[2:])
        np.testing.assert_array_equal(each.coef_, streamed(RankRLS(), problem, calls).coef_)


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


def test_parameters_of_gradient_descent():
    problem = make_problem(15)
    slow = RankRLS(0.5, solver="gdm", learning_rate=1e-3, momentum=0.5, tol=1e-10)
    np.testing.assert_allclose(
        slow.fit(problem.X, problem.y, problem.qid).coef_, explicit(problem, 0.5), atol=1e-7
    )
    for wrong in ({"momentum": 1.0}, {"momentum": "0.9"}, {"learning_rate": 0.0}, {"learning_rate": -1.0}):
        with pytest.raises(InvalidInputError, match="Hint"):
            RankRLS(solver="gdm", **wrong).fit(problem.X, problem.y)


@pytest.mark.parametrize("n_features", [5, 2500])
@pytest.mark.parametrize("with_qid", [True, False])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_call_of_rows_that_weigh_nothing_changes_nothing(n_features, with_qid, at):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, n_features)), rng.integers(3, size=60).astype(float)
    qid = np.repeat(np.arange(12), 5)
    calls = [(slice(0, 30), None), (slice(40, 60), None)]

    def fed(calls):
        model = RankRLS()
        for rows, weight in calls:
            model.partial_fit(X[rows], y[rows], qid=qid[rows] if with_qid else None, sample_weight=weight)
        return model.coef_

    nothing = (slice(30, 40), np.zeros(10))
    np.testing.assert_allclose(fed([*calls[:at], nothing, *calls[at:]]), fed(calls), atol=1e-14)
