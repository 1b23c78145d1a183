"""Objectives cut into parts, and learning from them in one read."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from all_pairs import is_valid_cost, pairwise
from making_blocks import graph_of_outputs
from oracles import block_least_squares, label_pairs
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.objectives import SquaredObjective, parts_of
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES, label_graph
from rankwise.solvers.direct import DirectFactor
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.solution import Status
from rankwise.solvers.stochastic import Memory, stochastic
from strategies import make_problem

STORAGES = {"dense": np.asarray, "csr": sp.csr_matrix, "operator": aslinearoperator}


def objective_of(problem, storage="dense", **options):
    graph = label_graph(
        problem.y, check_qid(problem.qid, problem.y.size), row_weight=problem.sample_weight, **options
    )
    return SquaredObjective(as_design(STORAGES[storage](problem.X)), graph)


@pairwise(
    is_valid_cost, storage=STORAGES, queries=[1, 6], weighted=[False, True],
    query_weight=QUERY_WEIGHTS, ties=TIES, cost=COSTS,
)  # fmt: skip
def test_parts_add_up_to_the_explicit_pairs(storage, queries, weighted, query_weight, ties, cost):
    options = {"ties": ties, "cost": cost, "query_weight": query_weight}
    problem = make_problem(2, queries=queries, weighted=weighted)
    pairs = label_pairs(problem.y, problem.qid, sample_weight=problem.sample_weight, **options)
    parts = list(parts_of(objective_of(problem, storage, **options), 7))
    is_cut = storage != "operator" and (queries > 1 or ties == "include")
    assert (len(parts) > 1) == is_cut
    H = problem.X.T @ pairs.laplacian @ problem.X
    np.testing.assert_allclose(sum(part.product(np.eye(5)) for part in parts), H, atol=1e-9)
    np.testing.assert_allclose(sum(part.rhs for part in parts), problem.X.T @ pairs.pull, atol=1e-9)
    np.testing.assert_allclose(sum(part.diagonal() for part in parts), np.diag(H), atol=1e-9)


def test_a_query_is_never_cut_and_a_walk_is_one_read():
    problem = make_problem(4, rows=200, queries=12)
    objective = objective_of(problem, "csr")
    codes = check_qid(problem.qid, 200).codes
    seen = []
    for part in parts_of(objective, 30):
        rows = [np.flatnonzero((row == problem.X).all(axis=1))[0] for row in part.design.matrix().toarray()]
        seen.append(set(codes[rows]))
        assert len(seen[-1]) == 1 or part.design.shape[0] <= 30
    assert sum(len(queries) for queries in seen) == len(set.union(*seen)) == len(set(codes))
    assert objective.design.reads == 1


@pytest.mark.parametrize("outputs", [1, 2])
def test_learning_equals_its_explicit_recursion(outputs):
    """With as many local iterations as columns, a block is solved exactly."""
    problem = make_problem(5, rows=60, features=3, queries=1, real=True)
    y = problem.y if outputs == 1 else np.column_stack([problem.y, problem.X[:, 1] ** 2])
    objective = SquaredObjective(as_design(problem.X), graph_of_outputs(y, check_qid(None, 60)))
    memory, blocks = Memory.empty(objective.rhs.shape), []
    for part in parts_of(objective, 25):
        memory = memory.learn(part, 0.7)
        blocks.append((part.product(np.eye(3)), part.rhs))
    expected = block_least_squares(blocks, 0.7)
    np.testing.assert_allclose(memory.coef, expected, atol=1e-9)
    np.testing.assert_allclose(memory.curvature, np.diag(objective.matrix()), atol=1e-9)


def test_a_single_block_is_the_whole_problem():
    problem = make_problem(6, features=3)
    objective = objective_of(problem)
    memory = Memory.empty((3,)).learn(next(iter(parts_of(objective))), 0.5)
    np.testing.assert_allclose(memory.coef, DirectFactor(objective).solve(0.5).coef, atol=1e-9)


@pytest.mark.parametrize("queries", [1, 30])
def test_one_read_comes_close_and_the_rest_converges(queries):
    rng = np.random.default_rng(0)
    X = sp.random(4000, 300, density=0.05, random_state=rng, format="csr")
    y = X @ rng.normal(size=300) + 0.1 * rng.normal(size=4000)
    qid = None if queries == 1 else rng.integers(queries, size=4000)
    objective = SquaredObjective(as_design(X), label_graph(y, check_qid(qid, 4000)))
    memory = Memory.empty((300,))
    for part in parts_of(objective, 400):
        memory = memory.learn(part, 1.0)
    exact = DirectFactor(objective).solve(1.0).coef

    def gap(w):
        return objective.at(w).value + w @ w - objective.at(exact).value - exact @ exact

    assert gap(memory.coef) < 0.05 * gap(np.zeros(300))
    one_product = conjugate_gradients(objective, 1.0, max_iter=1)
    assert gap(memory.coef) < gap(one_product.coef)
    solution = stochastic(objective, 1.0, tol=1e-11)
    np.testing.assert_allclose(solution.coef, exact, atol=1e-8)
    assert len(solution.history) == solution.n_iter


def test_a_monitor_sees_every_read_and_may_stop():
    objective = objective_of(make_problem(7, rows=80, features=20))
    seen = []

    def watch(coef, gap, n_iter):
        seen.append((n_iter, gap))
        return n_iter == 4

    solution = stochastic(objective, 1e-3, tol=1e-14, monitor=watch)
    assert solution.status is Status.STOPPED
    assert [n for n, _ in seen] == [1, 2, 3, 4]
    assert np.isinf(seen[0][1])
    assert np.isfinite(seen[1][1])
    first = stochastic(objective, 1e-3, monitor=lambda *_: True)
    assert first.status is Status.STOPPED
    assert first.n_iter == 1


def test_one_read_is_an_answer_and_more_are_conjugate_gradients_from_there():
    objective = objective_of(make_problem(9, rows=80, features=12))
    memory = Memory.empty((12,))
    for part in parts_of(objective):
        memory = memory.learn(part, 1e-2)
    one = stochastic(objective, 1e-2, tol=1e-12, max_iter=1)
    np.testing.assert_array_equal(one.coef, memory.coef)
    assert (one.status, one.n_iter, one.history) == (Status.MAX_ITER, 1, [np.inf])
    four = stochastic(objective, 1e-2, tol=1e-12, max_iter=4)
    later = conjugate_gradients(objective, 1e-2, tol=1e-12, max_iter=3, start=memory.coef)
    np.testing.assert_array_equal(four.coef, later.coef)
    assert (four.n_iter, four.history) == (4, [np.inf, *later.history])
    assert four.certificate == later.certificate
