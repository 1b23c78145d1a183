"""The solvers of losses with margins: agreement, honest certificates, bounded work."""

import numpy as np
import pytest
import scipy.optimize

from all_pairs import pairwise
from oracles import label_pairs
from rankwise.data.queries import encode_queries, one_query
from rankwise.design import as_design
from rankwise.losses import LOSSES, HingeLoss, LogisticLoss, SquaredHingeLoss
from rankwise.objectives import MarginObjective, SquaredObjective
from rankwise.pairs.labels import find_levels, label_graph, pair_scale
from rankwise.pairs.preferences import preference_graph
from rankwise.pairs.violations import ViolationSweep
from rankwise.solvers import bundle
from rankwise.solvers.bundle import minimise_by_planes
from rankwise.solvers.krylov import Curvature, Preconditioner
from rankwise.solvers.newton import LowerBound, minimise_by_newton, minimise_smoothed
from rankwise.solvers.solution import Status
from strategies import make_problem


def plain(objective, alpha, **options):
    return minimise_by_planes(objective, alpha, line_search=False, **options)


HINGE = {"smoothing": minimise_smoothed, "bundle": minimise_by_planes, "plain": plain}
SMOOTH = {"newton": minimise_by_newton, "bundle": minimise_by_planes}


def sweep_of(problem):
    queries = one_query(problem.y.size) if problem.qid is None else encode_queries(problem.qid)
    levels = find_levels(problem.y, queries, problem.sample_weight)
    return ViolationSweep.from_levels(
        levels, queries, row_weight=problem.sample_weight, scale=pair_scale(levels, "equal")
    )


def objectives(loss, **options):
    problem = make_problem(1, rows=80, features=6, **options)
    return MarginObjective(as_design(problem.X), sweep_of(problem), LOSSES[loss])


def value(objective, alpha, coef):
    return float(objective.at(coef).value) + alpha * coef @ coef


def by_linear_constraints(problem, alpha, nonnegative=False):
    """The hinge problem's minimum from its dual over explicit pairs, by a bounded quasi-Newton method."""
    pairs = label_pairs(problem.y, problem.qid, ties="exclude", cost="unit", query_weight="equal")
    D = problem.X[pairs.winner] - problem.X[pairs.loser]
    share = pairs.weight / pairs.weight.sum()

    def negative_dual(a):
        v = D.T @ (share * a)
        v = np.where(
            nonnegative, np.maximum(v, 0.0), v
        )  # the best coefficients are v / 2α, or 0 at their bound
        return v @ v / (4 * alpha) - share @ a, share * (D @ v / (2 * alpha) - 1)

    result = scipy.optimize.minimize(
        negative_dual,
        np.full(share.size, 0.5),
        jac=True,
        bounds=[(0, 1)] * share.size,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return -result.fun


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_the_minimum_is_that_of_the_dual_over_explicit_pairs(alpha):
    problem = make_problem(1, rows=40)
    objective = MarginObjective(as_design(problem.X), sweep_of(problem), HingeLoss)
    solution = minimise_smoothed(objective, alpha, tol=1e-8)
    assert value(objective, alpha, solution.coef) == pytest.approx(
        by_linear_constraints(problem, alpha), abs=1e-6
    )


@pairwise(
    options=[{}, {"queries": 1, "real": True}, {"weighted": True}, {"levels": 2}],
    alpha=[1.0, 1e-2, 1e-4],
    loss=["hinge", "squared_hinge"],
)
def test_all_solvers_agree_to_the_stated_gap(loss, alpha, options):
    objective = objectives(loss, **options)
    solvers = HINGE if loss == "hinge" else SMOOTH
    tight = next(iter(solvers.values()))(objective, alpha, tol=1e-9)
    assert tight.status is Status.CONVERGED
    minimum = value(objective, alpha, tight.coef) - tight.certificate  # at most the true minimum
    for name, solve in solvers.items():
        for tol in (1e-2, 1e-4):
            before = objective.design.reads
            solution = solve(objective, alpha, tol=tol)
            assert solution.status is Status.CONVERGED, name
            excess = value(objective, alpha, solution.coef) - minimum
            assert excess <= solution.certificate + 2e-9, name
            # The rule: value - bound <= tol (value at 0 - bound), with the bound that the certificate proves.
            at_zero = value(objective, alpha, np.zeros(objective.n_features))
            bound = value(objective, alpha, solution.coef) - solution.certificate
            assert solution.certificate <= tol * (at_zero - bound) * (1 + 1e-9) + 1e-12, name
            assert solution.gain == pytest.approx(at_zero - bound, rel=1e-6, abs=1e-12), name
            assert len(solution.history) in {solution.n_iter, solution.n_iter + 1}
            assert objective.design.reads - before <= 2 * solution.n_iter + 20 or name == "newton"


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("solve", [minimise_smoothed, minimise_by_planes, minimise_by_newton])
def test_rounding_leaves_gaps_far_below_any_that_one_would_ask_for(solve, alpha):
    """Slopes tell where to go long after values have become equal but for rounding."""
    objective = objectives("squared_hinge" if solve is minimise_by_newton else "hinge")
    solution = solve(objective, alpha, tol=1e-10)
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("scale", [1e5, 1e7, 1e10])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_columns_of_any_scale_get_an_honest_gap(loss, scale):
    """Steep planes and tiny penalties: what is proved must stay true, reached or not."""
    problem = make_problem(1, rows=80, features=6)
    problem.X = problem.X * scale
    pairs = sweep_of(problem)
    design = as_design(problem.X)
    objective = MarginObjective(design, pairs, LOSSES[loss])
    solvers = HINGE if loss == "hinge" else SMOOTH
    solutions = [solve(objective, 1e-4, tol=1e-3, max_iter=300) for solve in solvers.values()]
    assert solutions[0].status is Status.CONVERGED  # smoothing, and Newton
    lowest = min(value(objective, 1e-4, solution.coef) for solution in solutions)
    for solution in solutions:
        assert value(objective, 1e-4, solution.coef) - solution.certificate <= lowest + 1e-6


def test_logistic_agrees_with_bfgs_on_explicit_pairs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    winner = rng.integers(0, 30, size=80)
    loser = (winner + rng.integers(1, 30, size=80)) % 30
    weight = rng.random(80)
    graph = preference_graph(winner, loser, 30, weight=weight)
    objective = MarginObjective(as_design(X), graph.ordered(), LogisticLoss)
    D = X[winner] - X[loser]
    expected = scipy.optimize.minimize(
        lambda w: weight @ np.logaddexp(0, -D @ w) / weight.sum() + 0.01 * w @ w, np.zeros(4), tol=1e-10
    )
    for solve in SMOOTH.values():
        solution = solve(objective, 0.01, tol=1e-8)
        assert value(objective, 0.01, solution.coef) == pytest.approx(expected.fun, abs=1e-7)


@pytest.mark.parametrize("rows", [200, 2000])
@pytest.mark.parametrize(("alpha", "tol"), [(1e-2, 1e-2), (1e-3, 1e-2), (1e-3, 1e-3)])
def test_iterations_of_plain_planes_stay_within_the_papers_bound(rows, alpha, tol):
    """Teo et al.: log2(value at 0 / ...) + 8 G²/(λ tol) iterations, G the largest gradient; independent of rows."""
    problem = make_problem(0, rows=rows, features=10, queries=1, real=True)
    objective = MarginObjective(as_design(problem.X), sweep_of(problem), HingeLoss)
    solution = plain(objective, alpha, tol=tol)
    steepest = np.linalg.norm(objective.at(np.zeros(10)).gradient)
    assert solution.n_iter <= 8 * steepest**2 / (2 * alpha * tol) + 20
    assert minimise_by_planes(objective, alpha, tol=tol).n_iter <= solution.n_iter + 2


def test_a_sampled_line_search_and_dropped_planes_change_nothing(monkeypatch):
    problem = make_problem(0, rows=400, features=10, queries=1, real=True)
    objective = MarginObjective(as_design(problem.X), sweep_of(problem), HingeLoss)
    expected = minimise_by_planes(objective, 1e-3, tol=1e-6)
    monkeypatch.setattr(bundle, "_SAMPLE", 50)
    monkeypatch.setattr(bundle, "_MOST_PLANES", 12)
    monkeypatch.setattr(bundle, "_IDLE", 3)
    solution = minimise_by_planes(objective, 1e-3, tol=1e-5)
    assert solution.status is Status.CONVERGED
    assert value(objective, 1e-3, solution.coef) <= value(objective, 1e-3, expected.coef) + 1e-5


@pytest.mark.parametrize("solve", [*HINGE.values(), minimise_by_newton])
def test_the_minimum_as_a_start_needs_no_more_steps(solve):
    objective = objectives("squared_hinge" if solve is minimise_by_newton else "hinge")
    tight = solve(objective, 1e-2, tol=1e-7)
    again = solve(objective, 1e-2, tol=1e-3, start=tight.coef)
    assert again.n_iter <= max(3, solve(objective, 1e-2, tol=1e-3).n_iter)
    assert again.status is Status.CONVERGED


@pytest.mark.parametrize("solve", [*HINGE.values(), minimise_by_newton])
def test_a_monitor_can_stop(solve):
    objective = objectives("squared_hinge" if solve is minimise_by_newton else "hinge")
    seen = []

    def monitor(coef, gap, n_iter):
        seen.append((coef.copy(), gap))
        return n_iter >= 2

    solution = solve(objective, 1e-4, tol=1e-9, monitor=monitor)
    assert solution.status is Status.STOPPED
    np.testing.assert_array_equal(solution.coef, seen[-1][0])
    assert solution.certificate == seen[-1][1]


def test_a_lower_bound_never_falls_and_never_exceeds_the_minimum():
    objective = objectives("hinge")
    minimum = value(objective, 0.01, minimise_smoothed(objective, 0.01, tol=1e-10).coef)
    bound, before = LowerBound(0.01), 0.0
    rng = np.random.default_rng(0)
    for _ in range(50):
        coef = rng.normal(size=objective.n_features)
        point = objective.at(coef)
        bound.add(point.gradient, float(point.value) - point.gradient @ coef)
        assert before <= bound.value <= minimum
        before = bound.value


def margin_objective(X, problem, loss):
    pairs, design = sweep_of(problem), as_design(X)
    return MarginObjective(design, pairs, LOSSES[loss])


def curvature_of(X, problem, *, is_whole=True):
    queries = one_query(problem.y.size) if problem.qid is None else encode_queries(problem.qid)
    graph = label_graph(problem.y, queries, ties="exclude", query_weight="equal")
    return Curvature(SquaredObjective(as_design(X), graph), is_whole=is_whole)


EVERY = [("hinge", name, solve) for name, solve in HINGE.items()]
EVERY += [("squared_hinge", name, solve) for name, solve in SMOOTH.items()]


@pytest.mark.parametrize(("loss", "name", "solve"), EVERY)
@pytest.mark.parametrize("alpha", [1e2, 1e4, 1e9, 1e15, 1e30, 1e100])
def test_a_large_alpha_has_its_limit_and_not_zero(loss, name, solve, alpha):
    """-g₀/(2α), also where the gain is far below the rounding errors of the objective."""
    problem = make_problem(1, rows=80, features=6, weighted=True)
    pairs = label_pairs(
        problem.y,
        problem.qid,
        ties="exclude",
        cost="unit",
        query_weight="equal",
        sample_weight=problem.sample_weight,
    )
    D = problem.X[pairs.winner] - problem.X[pairs.loser]
    pull = D.T @ pairs.weight / pairs.weight.sum() * (1 if loss == "hinge" else 2)
    solution = solve(margin_objective(problem.X, problem, loss), alpha)
    assert solution.status is Status.CONVERGED
    limit = pull / (2 * alpha)
    assert np.linalg.norm(solution.coef - limit) <= (1e-9 + 10 / alpha) * np.linalg.norm(limit)
    assert solution.certificate <= 1e-3 * solution.gain


@pairwise(case=EVERY, alpha=[1.0, 1e-3], is_whole=[True, False, None])
def test_nothing_in_a_solver_has_units(case, alpha, is_whole):
    loss, _, solve = case
    """A power of two scales every number exactly, so any absolute constant would show in the last digit."""
    problem = make_problem(1, rows=80, features=6)
    results = []
    for scale in (1.0, 2.0**20, 2.0**-20, 2.0**60):
        X = problem.X * scale
        curvature = None if is_whole is None else curvature_of(X, problem, is_whole=is_whole)
        objective = margin_objective(X, problem, loss)
        solution = solve(objective, alpha * scale**2, max_iter=60, curvature=curvature)
        results.append((solution.coef * scale, solution.certificate, solution.n_iter))
    for coef, gap, n_iter in results[1:]:
        np.testing.assert_array_equal(coef, results[0][0])
        assert (gap, n_iter) == results[0][1:]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("excess", [1e-6, 1e-9])
def test_pairs_that_nearly_contradict_each_other_leave_a_small_model(loss, excess):
    """Nothing but the difference of their weights pulls, far below the rounding errors of the objective."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    one = rng.integers(0, 30, size=100)
    other = (one + rng.integers(1, 30, size=100)) % 30
    weight = np.concatenate([1 + excess * rng.random(100), np.ones(100)])
    graph = preference_graph(np.concatenate([one, other]), np.concatenate([other, one]), 30, weight=weight)
    margins, D, total = graph.ordered(), X[one] - X[other], weight.sum()
    slope, curvature = {"hinge": (1, 0), "squared_hinge": (2, 2), "logistic": (0.5, 0.25)}[loss]
    pull = slope * D.T @ (weight[:100] - weight[100:]) / total
    H = curvature * D.T @ (D * (weight[:100] + weight[100:])[:, None]) / total
    design = as_design(X)
    if loss == "hinge":
        solution = minimise_smoothed(MarginObjective(design, margins, HingeLoss), 0.1)
    else:
        kind = SquaredHingeLoss if loss == "squared_hinge" else LogisticLoss
        solution = minimise_by_newton(MarginObjective(design, margins, kind), 0.1, tol=1e-8)
    expected = np.linalg.solve(H + 0.2 * np.eye(4), pull)
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.coef, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize(("loss", "name", "solve"), EVERY)
def test_the_papers_absolute_rule_can_be_asked_for(loss, name, solve):
    objective = objectives(loss)
    solution = solve(objective, 10.0, tol=0.05, is_absolute=True)
    assert solution.certificate <= 0.05
    relative = solve(objective, 10.0, tol=0.05)
    assert relative.certificate <= 0.05 * relative.gain < 0.05**2


class TestPreconditioning:
    def problem(self):
        rng = np.random.default_rng(3)
        problem = make_problem(3, rows=300, features=12, queries=20)
        problem.X = np.exp(problem.X) @ (np.eye(12) + 0.3 * rng.normal(size=(12, 12)))
        return problem, problem.X * 10.0 ** rng.uniform(-5, 5, size=12)

    @pytest.mark.parametrize("is_whole", [True, False])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_it_changes_no_model(self, loss, is_whole):
        problem, X = self.problem()
        solve = minimise_smoothed if loss == "hinge" else minimise_by_newton
        for rows, alpha in ((problem.X, 1e-3), (X, 1e2)):
            objective = margin_objective(rows, problem, loss)
            plain = solve(objective, alpha)
            other = solve(objective, alpha, curvature=curvature_of(rows, problem, is_whole=is_whole))
            assert other.status is Status.CONVERGED
            difference = value(objective, alpha, other.coef) - value(objective, alpha, plain.coef)
            assert -plain.certificate - 1e-12 <= difference <= other.certificate + 1e-12

    @pairwise(is_whole=[True, False], loss=["hinge", "squared_hinge"], alpha=[1e-1, 1e-4])
    def test_columns_over_ten_decades_take_at_most_ten_times_the_reads(self, loss, alpha, is_whole):
        problem, X = self.problem()
        standard = (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0)
        solve = minimise_smoothed if loss == "hinge" else minimise_by_newton
        reads = []
        for rows in (standard, X):
            curvature = curvature_of(rows, problem, is_whole=is_whole)
            objective = margin_objective(rows, problem, loss)
            assert solve(objective, alpha, curvature=curvature).status is Status.CONVERGED
            reads.append(objective.design.reads)
        assert reads[1] <= 10 * reads[0]

    def test_columns_that_say_nothing(self):
        problem, X = self.problem()
        curvature = curvature_of(np.column_stack([X, np.full(300, 7.0), X[:, 0]]), problem)
        preconditioner = Preconditioner(curvature, 0.1, lambda: np.ones(300))
        preconditioner.update(np.ones(300))
        assert np.isfinite(preconditioner.solve(np.ones(14))).all()
