"""Every solver, storage and setting against the explicit list of pairs."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from all_pairs import is_valid_cost, pairwise
from counting import counting
from making_blocks import graph_of_outputs
from oracles import label_pairs, solve_rankrls
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.losses import LOSSES
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES, label_graph
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.direct import solve_by_eigenvalues
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.solution import Status
from strategies import make_problem

STORAGES = {
    "dense": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "csr": sp.csr_matrix,
    "csr_array": sp.csr_array,
    "operator": aslinearoperator,
}
TIGHT = SolverOptions(tol=1e-13)


def relative(actual, expected):
    return np.linalg.norm(actual - expected) / max(np.linalg.norm(expected), 1e-300)


def objective_of(problem, storage="dense", **options):
    queries = check_qid(problem.qid, problem.y.size)
    graph = label_graph(problem.y, queries, row_weight=problem.sample_weight, **options)
    return SquaredObjective(as_design(STORAGES[storage](problem.X)), graph)


@cache
def explicit_solution(seed, queries, weighted, alpha, **settings):
    problem = make_problem(seed, queries=queries, weighted=weighted)
    pairs = label_pairs(problem.y, problem.qid, sample_weight=problem.sample_weight, **settings)
    return solve_rankrls(problem.X, pairs, alpha)


@pairwise(
    is_valid_cost,
    solver=SOLVERS,
    storage=STORAGES,
    ties=TIES,
    cost=COSTS,
    query_weight=QUERY_WEIGHTS,
    weighted=[False, True],
)
def test_solution_equals_the_explicit_pairs(solver, storage, ties, cost, query_weight, weighted):
    settings = {"ties": ties, "cost": cost, "query_weight": query_weight}
    for seed, queries in [(0, 6), (1, 1)]:
        problem = make_problem(seed, queries=queries, weighted=weighted)
        for alpha in (0.01, 3.0):
            solution = SOLVERS[solver](objective_of(problem, storage, **settings), alpha, TIGHT)
            expected = explicit_solution(seed, queries, weighted, alpha, **settings)
            assert relative(solution.coef, expected) < 1e-8


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_matrices_are_summed_in_float64(storage, solver):
    problem = make_problem(4)
    problem.X = problem.X.astype(np.float32)
    pairs = label_pairs(problem.y, problem.qid)
    solution = SOLVERS[solver](objective_of(problem, storage), 0.5, TIGHT)
    assert solution.coef.dtype == np.float64
    assert relative(solution.coef, solve_rankrls(problem.X, pairs, 0.5)) < 1e-8


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_outputs(solver):
    problem = make_problem(5)
    y = np.column_stack([problem.y, np.random.default_rng(0).normal(size=problem.y.size)])
    graph = graph_of_outputs(y, check_qid(problem.qid, len(y)))
    solution = SOLVERS[solver](SquaredObjective(as_design(problem.X), graph), 0.5, TIGHT)
    for column in range(2):
        expected = solve_rankrls(problem.X, label_pairs(y[:, column], problem.qid), 0.5)
        assert relative(solution.coef[:, column], expected) < 1e-8


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_singular_problem_gets_its_least_norm_solution(solver):
    problem = make_problem(6, features=4)
    problem.X = np.column_stack([problem.X, problem.X[:, :2], np.ones(len(problem.X))])
    solution = SOLVERS[solver](objective_of(problem), 0.0, TIGHT)
    expected = solve_rankrls(problem.X, label_pairs(problem.y, problem.qid), 0.0)
    assert relative(solution.coef, expected) < 1e-8
    if solver in {"direct", "eigen"}:
        assert solution.status is Status.SINGULAR
        assert solution.rank == 4


def test_a_path_of_decompositions():
    problem = make_problem(7)
    objective = objective_of(problem)
    pairs = label_pairs(problem.y, problem.qid)
    for alpha in 2.0 ** np.arange(-10, 11):
        assert (
            relative(solve_by_eigenvalues(objective, alpha).coef, solve_rankrls(problem.X, pairs, alpha))
            < 1e-8
        )


def test_cg_counts_its_products_and_stays_within_the_bound_of_exact_arithmetic():
    problem = make_problem(8, rows=60, features=7)
    objective = objective_of(problem)
    products = counting(objective)
    solution = conjugate_gradients(objective, 0.1, tol=1e-8)
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 7 + 1
    assert sum(products) == solution.n_iter == len(solution.history)
    assert solution.certificate <= 1e-8


def test_cg_within_its_condition_number_bound():
    """At most ½√κ ln(2/ε) steps reduce the error, in the energy norm, by ε."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(300, 80)))[0]
    Q -= Q.mean(axis=0)
    X = Q * np.sqrt(np.linspace(1, 400, 80))
    y = rng.normal(size=300)
    objective = SquaredObjective(as_design(X), label_graph(y, check_qid(None, 300)))
    H = objective.matrix() + 1.0 * np.eye(80)
    eigenvalues = np.linalg.eigvalsh(H)
    kappa = eigenvalues[-1] / eigenvalues[0]
    exact = np.linalg.solve(H, objective.rhs)
    for epsilon in (1e-2, 1e-4):
        steps = int(np.ceil(0.5 * np.sqrt(kappa) * np.log(2 / epsilon)))
        gap = conjugate_gradients(objective, 1.0, tol=1e-15, max_iter=steps).coef - exact
        assert gap @ H @ gap <= epsilon**2 * (exact @ H @ exact)


def test_stopping_short_is_said():
    solution = conjugate_gradients(objective_of(make_problem(10)), 1e-6, tol=1e-12, max_iter=2)
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter == 2
    assert solution.certificate > 1e-12


def test_labels_that_pull_nothing_give_zero():
    problem = make_problem(11, queries=1)
    problem.y[:] = 1.0
    solution = conjugate_gradients(objective_of(problem), 1.0)
    assert solution.status is Status.CONVERGED
    assert not solution.coef.any()


@pytest.mark.parametrize("cost", ["magnitude", "unit"])
def test_value_gradient_and_curvature(cost):
    problem = make_problem(12)
    objective = objective_of(problem, cost=cost)
    pairs = label_pairs(problem.y, problem.qid, cost=cost)
    rng = np.random.default_rng(0)
    w, d = rng.normal(size=(2, problem.X.shape[1]))
    point = objective.at(w)
    whole = point.value + objective.graph.constant
    assert whole == pytest.approx(pairs.squared_loss(problem.X @ w), rel=1e-11)
    h = 1e-5
    slope = (objective.at(w + h * d).value - objective.at(w - h * d).value) / (2 * h)
    assert point.gradient @ d == pytest.approx(slope, rel=1e-7)
    bend = (objective.at(w + h * d).gradient - objective.at(w - h * d).gradient) / (2 * h)
    np.testing.assert_allclose(point.hessian_product(d), bend, rtol=1e-7, atol=1e-7)


def test_the_loss_table_names_its_losses():
    assert all(name == loss.name for name, loss in LOSSES.items())


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_columns_of_very_different_scales_keep_their_coefficients(storage):
    # A time in milliseconds beside a ratio: nothing is singular, so the small columns must not be dropped.
    problem = make_problem(7)
    scale = 10.0 ** np.linspace(-6, 10, problem.X.shape[1])
    scaled = make_problem(7)
    scaled.X = problem.X * scale
    solution = SOLVERS["direct"](objective_of(scaled, storage), 1.0, TIGHT)
    H, b = objective_of(problem).matrix(), objective_of(problem).rhs
    expected = np.linalg.solve(H + np.diag(scale**-2), b) / scale
    assert solution.status is Status.EXACT
    np.testing.assert_allclose(solution.coef, expected, rtol=1e-8)
