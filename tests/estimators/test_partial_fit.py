"""partial_fit against a direct solve of everything so far, and the calls that it refuses."""

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
from rankwise.exceptions import InvalidInputError
from rankwise.solvers.choose import SOLVERS
from strategies import make_problem

# Every pair of values of ties, cost and query_weight.
SETTINGS = [
    ("include", "magnitude", "size"),
    ("include", "unit", "pairs"),
    ("include", "magnitude", "equal"),
    ("exclude", "magnitude", "pairs"),
    ("exclude", "unit", "size"),
    ("exclude", "unit", "equal"),
    ("exclude", "relative", "size"),
    ("exclude", "relative", "pairs"),
    ("exclude", "relative", "equal"),
]


def calls_of(problem, n_calls=4):
    return [
        np.flatnonzero(np.isin(problem.qid, part)) for part in np.array_split(np.unique(problem.qid), n_calls)
    ]


def in_calls(model, problem, calls, storage=np.asarray):
    for rows in calls:
        weight = None if problem.sample_weight is None else problem.sample_weight[rows]
        model.partial_fit(storage(problem.X[rows]), problem.y[rows], problem.qid[rows], weight)
    return model


def explicit(problem, alpha, rows=slice(None), **settings):
    weight = None if problem.sample_weight is None else problem.sample_weight[rows]
    pairs = label_pairs(problem.y[rows], problem.qid[rows], sample_weight=weight, **settings)
    return solve_rankrls(problem.X[rows], pairs, alpha)


@pytest.mark.parametrize(("ties", "cost", "query_weight"), SETTINGS)
@pytest.mark.parametrize("weighted", [False, True])
def test_few_columns_equal_everything_so_far(ties, cost, query_weight, weighted):
    problem = make_problem(1, rows=50, queries=6, weighted=weighted)
    calls, settings = calls_of(problem), {"ties": ties, "cost": cost, "query_weight": query_weight}
    model = RankRLS(0.3, **settings)
    for number, rows in enumerate(calls):
        in_calls(model, problem, [rows])
        so_far = np.sort(np.concatenate(calls[: number + 1]))
        np.testing.assert_allclose(model.coef_, explicit(problem, 0.3, so_far, **settings), atol=1e-8)
    whole = RankRLS(0.3, **settings).fit(problem.X, problem.y, problem.qid, problem.sample_weight)
    for name in ("n_queries_", "n_pairs_", "n_ignored_queries_"):
        assert getattr(model, name) == getattr(whole, name)
    assert (model.n_samples_seen_, model.solver_) == (50, "direct")


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_takes_the_sums(solver):
    problem = make_problem(2)
    model = in_calls(RankRLS(0.5, solver=solver, tol=1e-12), problem, calls_of(problem))
    np.testing.assert_allclose(model.coef_, explicit(problem, 0.5), atol=1e-8)
    assert model.solver_ == ("direct" if solver == "stochastic" else solver)


@pytest.mark.parametrize("storage", [sp.csr_matrix, aslinearoperator, np.float32])
def test_storages(storage):
    problem = make_problem(3)
    model = in_calls(RankRLS(0.5), problem, calls_of(problem), storage)
    np.testing.assert_allclose(model.coef_, explicit(problem, 0.5), atol=1e-5)


@pytest.mark.parametrize("cost", ["magnitude", "unit"])
def test_several_outputs(cost):
    problem = make_problem(4, queries=6)
    y = np.column_stack([problem.y, problem.X[:, 0] > 0, problem.X[:, 1] > 0]).astype(float)
    model, single = RankRLS(2.0, cost=cost), []
    for rows in calls_of(problem):
        model.partial_fit(problem.X[rows], y[rows], problem.qid[rows])
    for column in y.T:
        problem.y = column
        single.append(in_calls(RankRLS(2.0, cost=cost), problem, calls_of(problem)).coef_)
    np.testing.assert_allclose(model.coef_, single, atol=1e-9)
    assert model.n_pairs_.shape == (3,)


def test_without_qid_the_rows_of_a_call_are_one_query():
    problem = make_problem(5, queries=4)
    model = RankRLS(0.5, penalty_power=0.25)
    for query in np.unique(problem.qid):
        rows = problem.qid == query
        model.partial_fit(problem.X[rows], problem.y[rows])
    whole = RankRLS(0.5, penalty_power=0.25).fit(problem.X, problem.y, problem.qid)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    assert model.n_queries_ == whole.n_queries_


def test_refused_calls_leave_the_model_as_it_was():
    problem = make_problem(7, queries=6)
    model = RankRLS().partial_fit(problem.X, problem.y, problem.qid)
    before, new = model.coef_.copy(), problem.qid + 1000
    with pytest.raises(InvalidInputError, match=r"came in an earlier call.*Hint: pass all rows of a query"):
        model.partial_fit(problem.X[:5], problem.y[:5], problem.qid[:5])
    with pytest.raises(InvalidInputError, match=r"presence of qid changed.*Hint"):
        model.partial_fit(problem.X, problem.y)
    with pytest.raises(InvalidInputError, match=r"outputs of y.*Hint"):
        model.partial_fit(problem.X, np.column_stack([problem.y, problem.y]), new)
    with pytest.raises(ValueError, match="5 features"):
        model.partial_fit(problem.X[:, :3], problem.y, new)
    with pytest.raises(InvalidInputError, match=r"as large as .*too large.*Hint"):
        model.partial_fit(problem.X * 1e200, problem.y, new)
    with pytest.raises(InvalidInputError, match=r"ties, cost.*Hint"):
        clone(model).set_params(ties="include").partial_fit(problem.X, problem.y, new).set_params(
            ties="exclude"
        ).partial_fit(problem.X, problem.y, problem.qid)
    assert (model.n_samples_seen_, model.coef_.tolist()) == (40, before.tolist())
    with pytest.raises(InvalidInputError, match=r"early_stopping.*only sums over queries.*Hint"):
        RankRLS(early_stopping=True).partial_fit(problem.X, problem.y)
    with pytest.raises(InvalidInputError, match=r"X has 2049 columns.*Hint: use at most 2048"):
        RankRLS().partial_fit(np.ones((2, 2049)), [0, 1])
    with pytest.raises(InvalidInputError, match=r"y is None.*Hint"):
        RankRLS().partial_fit(problem.X, None)


def test_copies_go_their_own_ways_and_files_hold_the_model(tmp_path):
    problem = make_problem(11, queries=6)
    calls = calls_of(problem)
    whole = in_calls(RankRLS(), problem, calls)
    half = in_calls(RankRLS(), problem, calls[:2])
    for again in (copy.deepcopy(half), pickle.loads(pickle.dumps(half))):
        np.testing.assert_array_equal(in_calls(again, problem, calls[2:]).coef_, whole.coef_)
    half.save(tmp_path / "model.rankwise")
    loaded = rankwise.load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(loaded.coef_, half.coef_)
    assert in_calls(loaded, problem, calls[2:]).n_samples_seen_ == sum(rows.size for rows in calls[2:])


def test_fit_and_clone_start_anew():
    problem = make_problem(12, queries=6)
    model = RankRLS().partial_fit(problem.X, problem.y, problem.qid)
    assert not hasattr(clone(model), "coef_")
    model.fit(problem.X[:20], problem.y[:20])
    assert not hasattr(model, "n_samples_seen_")
    expected = RankRLS().partial_fit(problem.X, problem.y).coef_
    np.testing.assert_array_equal(model.partial_fit(problem.X, problem.y).coef_, expected)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_call_of_rows_that_weigh_nothing_changes_nothing(at):
    problem = make_problem(13, rows=60, queries=12)
    calls = [(slice(0, 30), None), (slice(40, 60), None)]

    def fed(calls):
        model = RankRLS()
        for rows, weight in calls:
            model.partial_fit(problem.X[rows], problem.y[rows], sample_weight=weight)
        return model.coef_

    nothing = (slice(30, 40), np.zeros(10))
    np.testing.assert_allclose(fed([*calls[:at], nothing, *calls[at:]]), fed(calls), atol=1e-14)


def test_features_far_from_zero_lose_no_digits():
    problem = make_problem(14, rows=60, queries=6, real=True)
    expected = explicit(problem, 0.5)
    problem.X, problem.y = problem.X + 1e6, problem.y - 1e6
    np.testing.assert_allclose(in_calls(RankRLS(0.5), problem, calls_of(problem)).coef_, expected, rtol=1e-6)


def test_parameters_of_gradient_descent():
    problem = make_problem(15)
    slow = RankRLS(0.5, solver="gdm", learning_rate=1e-3, momentum=0.5, tol=1e-10)
    np.testing.assert_allclose(
        slow.fit(problem.X, problem.y, problem.qid).coef_, explicit(problem, 0.5), atol=1e-7
    )
    for wrong in ({"momentum": 1.0}, {"momentum": "0.9"}, {"learning_rate": 0.0}, {"learning_rate": -1.0}):
        with pytest.raises(InvalidInputError, match="Hint"):
            RankRLS(solver="gdm", **wrong).fit(problem.X, problem.y)
