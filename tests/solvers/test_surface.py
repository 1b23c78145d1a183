"""The Krylov space and the surface read from it, against direct solves for every alpha and every step."""

import numpy as np
import pytest
import scipy.sparse as sp

from all_pairs import pairwise
from making_blocks import graph_of_outputs
from oracles import label_pairs, solve_rankrls
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.fitting.problem import Problem
from rankwise.metrics import get_metric
from rankwise.objectives import ScaledObjective, SquaredObjective, prior_scale
from rankwise.pairs.labelled import LabelPairs, units_of_rows
from rankwise.pairs.labels import label_graph
from rankwise.pairs.plan import Plan, Scorer
from rankwise.selection.krylov import ColumnCoordinates, ColumnSurface, Rule, ScoredGraph
from rankwise.selection.surface import _scored_graphs
from rankwise.solvers.krylov import conjugate_gradients
from strategies import make_problem

ALPHAS = np.concatenate(([0.0], 2.0 ** np.arange(-8, 9, 4)))


def evaluated(objective, validation, scorer):
    return ScoredGraph(objective.graph, rows=as_design(validation.X), scorers=[scorer])


def surface_of(objective, alphas, scored=None, penalty_power=0.0, **options):
    scored = ScoredGraph(objective.graph) if scored is None else scored
    return ColumnSurface(ColumnCoordinates(objective.design, penalty_power), scored, alphas, **options)


FOREVER = Rule(steps=10**9)


def problem_and_objective(seed=0, *, features=12, rows=80, **options):
    problem = make_problem(seed, rows=rows, features=features)
    graph = label_graph(problem.y, check_qid(problem.qid, rows), **options)
    return problem, SquaredObjective(as_design(problem.X), graph)


@pytest.mark.parametrize("keep_basis", [True, False])
def test_every_alpha_after_every_step_is_its_conjugate_gradient_iterate(keep_basis):
    _, objective = problem_and_objective()
    run = surface_of(objective, ALPHAS, tol=1e-12, max_iter=500, keep_basis=keep_basis)
    run.advance(Rule(steps=8))
    for alpha in ALPHAS:
        for step in (1, 3, 8):
            expected = conjugate_gradients(objective, alpha, tol=1e-15, max_iter=step).coef
            np.testing.assert_allclose(run.coefficients(0, alpha, step), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("penalty_power", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("keep_basis", [True, False])
def test_converged_alphas_equal_direct_solves(penalty_power, keep_basis):
    """A wrong shift silently gives another model: compare with the penalty written out."""
    problem, objective = problem_and_objective(1)
    scale = prior_scale(objective, penalty_power)
    scaled = ScaledObjective(objective, scale)
    run = surface_of(
        objective, ALPHAS, penalty_power=penalty_power, tol=1e-11, max_iter=500, keep_basis=keep_basis
    )
    assert run.advance(FOREVER)
    pairs = label_pairs(problem.y, problem.qid)
    H = problem.X.T @ pairs.laplacian @ problem.X
    for index, alpha in enumerate(ALPHAS):
        penalty = alpha * np.diag(np.diag(H) ** (2 * penalty_power))
        expected = np.linalg.lstsq(H + penalty, problem.X.T @ pairs.pull, rcond=None)[0]
        step = int(run.tables[0].converged_at[index])
        actual = run.coefficients(0, alpha, step)
        np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)
        conjugate = conjugate_gradients(scaled, alpha, tol=1e-12, max_iter=500).coef
        np.testing.assert_allclose(scaled.to_coef(conjugate), expected, rtol=1e-7, atol=1e-9)


def test_residuals_are_the_true_ones():
    _, objective = problem_and_objective(2)
    run = surface_of(objective, ALPHAS, tol=0.0, max_iter=500)
    run.advance(Rule(steps=5))
    for index, alpha in enumerate(ALPHAS):
        w = run.coefficients(0, alpha, 5)
        residual = np.linalg.norm(objective.rhs - objective.product(w) - alpha * w)
        relative = residual / np.linalg.norm(objective.rhs)
        assert run.tables[0].residual[0, index] == pytest.approx(relative, rel=1e-6)


def test_validation_scores_move_with_the_coefficients():
    _, objective = problem_and_objective(3)
    validation = make_problem(30, rows=50, features=12)
    metric = get_metric("pairwise_error")
    scorer = Scorer(metric.prepare(validation.y, validation.qid), greater_is_better=False)
    run = surface_of(objective, ALPHAS, evaluated(objective, validation, scorer), tol=1e-10, max_iter=500)
    run.advance(Rule(steps=9))
    table = run.tables[0].table
    for index, alpha in enumerate(ALPHAS):
        for step in (1, 4, 9):
            scores = validation.X @ run.coefficients(0, alpha, step)
            assert table[index, step - 1] == pytest.approx(metric(validation.y, scores, validation.qid))


@pairwise(
    storage=[np.asarray, sp.csr_matrix],
    queries=[1, 8],
    options=[{}, {"ties": "exclude"}, {"ties": "exclude", "cost": "relative"}],
    penalty_power=[0.0, 0.25],
)
def test_folds_in_lockstep_equal_separate_fits(storage, queries, options, penalty_power):
    problem = make_problem(4, rows=60, features=6, queries=queries)
    encoded = check_qid(problem.qid, 60)
    design = as_design(storage(problem.X))
    fold = units_of_rows(problem.y, encoded).folds(3, seed=0)
    whole = label_graph(problem.y, encoded, **options)
    scale = prior_scale(SquaredObjective(design, whole), penalty_power)
    pairs = {"ties": "include", "cost": "magnitude", "query_weight": "size", **options}
    data = Problem(design, LabelPairs(problem.y, encoded, None, None, **pairs))
    plan = Plan.of_folds(fold)
    metric, coordinates = get_metric("pairwise_error"), ColumnCoordinates(design, penalty_power)
    (scored,) = _scored_graphs(data, plan, metric, "folds", coordinates)
    run = coordinates.surface(scored, ALPHAS, tol=1e-12, max_iter=500)
    run.advance(Rule(steps=5))
    held_out = np.empty((ALPHAS.size, 60))
    held_out[:, plan.held] = run.tables[0].scores
    for c in range(3):
        train = fold != c
        qid = None if problem.qid is None else problem.qid[train]
        graph = label_graph(problem.y[train], check_qid(qid, int(train.sum())), **options)
        alone = ScaledObjective(SquaredObjective(as_design(problem.X[train]), graph), scale)
        for index, alpha in enumerate(ALPHAS):
            coef = alone.to_coef(conjugate_gradients(alone, alpha, tol=1e-15, max_iter=5).coef)
            np.testing.assert_allclose(
                held_out[index, ~train], problem.X[~train] @ coef, rtol=1e-6, atol=1e-8
            )


def test_several_outputs_run_in_lockstep():
    problem = make_problem(5, rows=70, features=8)
    Y = np.column_stack([problem.y, np.random.default_rng(0).normal(size=70)])
    graph = graph_of_outputs(Y, check_qid(problem.qid, 70))
    objective = SquaredObjective(as_design(problem.X), graph)
    run = surface_of(objective, ALPHAS[1:], tol=1e-10, max_iter=500)
    run.advance(FOREVER)
    for output in range(2):
        pairs = label_pairs(Y[:, output], problem.qid)
        for alpha in ALPHAS[1:]:
            actual = run.coefficients(output, alpha, run.space.n_steps)
            np.testing.assert_allclose(actual, solve_rankrls(problem.X, pairs, alpha), rtol=1e-7, atol=1e-9)


def test_more_iterations_without_starting_over():
    _, objective = problem_and_objective(6)
    whole = surface_of(objective, ALPHAS, tol=1e-12, max_iter=500)
    whole.advance(Rule(steps=9))
    halves = surface_of(objective, ALPHAS, tol=1e-12, max_iter=500)
    assert halves.advance(Rule(steps=4))
    before = halves.n_products
    halves.advance(Rule(steps=9))
    assert halves.n_products - before == 5
    np.testing.assert_array_equal(halves.coefficients(0, 1.0, 9), whole.coefficients(0, 1.0, 9))
    cut = surface_of(objective, ALPHAS, tol=1e-12, max_iter=4)
    assert not cut.advance(FOREVER)
    assert cut.n_steps == 4


@pytest.mark.parametrize("later", [ALPHAS[:2], ALPHAS[-2:], ALPHAS[[1, -1]]], ids=str)
def test_alphas_that_come_later_are_as_if_they_had_been_there(later):
    _, objective = problem_and_objective(6)
    validation = make_problem(31, features=12)
    scorer = Scorer(
        get_metric("pairwise_error").prepare(validation.y, validation.qid), greater_is_better=False
    )
    scored = evaluated(objective, validation, scorer)
    whole = surface_of(objective, ALPHAS, scored, tol=1e-6, max_iter=500)
    run = surface_of(objective, np.setdiff1d(ALPHAS, later), scored, tol=1e-6, max_iter=500, widens=True)
    run.advance(Rule(steps=4))
    run.widen(later)
    run.advance(Rule(steps=9))
    whole.advance(Rule(steps=9))
    np.testing.assert_array_equal(run.tables[0].alphas, ALPHAS)
    np.testing.assert_array_equal(run.tables[0].table, whole.tables[0].table)
    np.testing.assert_array_equal(run.tables[0].converged_at, whole.tables[0].converged_at)
