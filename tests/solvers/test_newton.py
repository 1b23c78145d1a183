"""Newton's steps inside their region, against the Krylov spaces and Hessians written out."""

import numpy as np
import pytest
import scipy.optimize

from oracles import galerkin
from rankwise.design import as_design
from rankwise.losses import LogisticLoss, SquaredHingeLoss
from rankwise.objectives import MeanLoss, SquaredObjective
from rankwise.pairs.margins import PreferenceMargins
from rankwise.pairs.preferences import preference_graph
from rankwise.solvers.newton import _newton_step, minimise_by_newton
from rankwise.solvers.preconditioner import Curvature, Preconditioner
from rankwise.solvers.solution import Status


def preferences(seed=0, rows=40, features=6, pairs=150):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * np.geomspace(0.3, 3, features)
    winner = rng.integers(rows, size=pairs)
    loser = (winner + rng.integers(1, rows, size=pairs)) % rows
    return X, winner, loser


def objective_of(X, winner, loser, loss=SquaredHingeLoss):
    ones = np.ones(winner.size)
    return MeanLoss(as_design(X), PreferenceMargins(len(X), winner, loser, ones, ones), loss())


def plain(alpha):
    return Preconditioner(None, alpha, lambda: np.ones(0))


def with_matrix(X, winner, loser, alpha, *, is_whole=True):
    graph = preference_graph(winner, loser, len(X))
    curvature = Curvature(SquaredObjective(as_design(X), graph), is_whole=is_whole)
    preconditioner = Preconditioner(curvature, alpha, lambda: np.ones(len(X)))
    preconditioner.update(np.ones(len(X)))
    return preconditioner


def krylov_steps(A, g, P):
    """The minima of the quadratic model in the spaces ``span{P⁻¹g, P⁻¹AP⁻¹g, ...}``, one after the other."""
    basis, steps = [np.linalg.solve(P, -g)], []
    for _ in range(g.size):
        steps.append(galerkin(A, np.column_stack(basis), -g))
        vector = np.linalg.solve(P, A @ basis[-1])
        for _ in range(2):
            for other in basis:
                vector = vector - other * (other @ vector) / (other @ other)
        basis.append(vector / np.linalg.norm(vector))
    return steps


@pytest.mark.parametrize("is_preconditioned", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
@pytest.mark.parametrize("seed", range(3))
class TestOneStep:
    def setup(self, seed, alpha, is_preconditioned):
        X, winner, loser = preferences(seed)
        objective = objective_of(X, winner, loser)
        w = 0.1 * np.random.default_rng(seed).normal(size=6)
        point = objective.at(w)
        g = point.gradient + 2 * alpha * w
        A = np.column_stack([point.hessian_product(unit) for unit in np.eye(6)]) + 2 * alpha * np.eye(6)

        def preconditioner():  # of its own for every step, for it learns from them
            return with_matrix(X, winner, loser, alpha) if is_preconditioned else plain(alpha)

        P = np.linalg.inv(np.column_stack([preconditioner().solve(unit) for unit in np.eye(6)]))
        return X, objective, point, g, A, P, preconditioner

    def test_without_a_region_it_is_the_first_iterate_that_solves_newtons_equation_to_its_share(
        self, seed, alpha, is_preconditioned
    ):
        X, objective, point, g, A, P, preconditioner = self.setup(seed, alpha, is_preconditioned)
        reads = objective.n_reads
        step = _newton_step(objective, point, g, alpha, np.inf, preconditioner())
        n_cg = (objective.n_reads - reads) // 2

        def size(r):
            return np.sqrt(r @ np.linalg.solve(P, r))

        paths = krylov_steps(A, g, P)
        shares = [size(g + A @ s) / size(g) for s in paths]
        assert n_cg == 1 + next(k for k, share in enumerate(shares) if share <= 0.3)
        np.testing.assert_allclose(step.coef, paths[n_cg - 1], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(step.scores, X @ step.coef, atol=1e-9)
        assert step.length == pytest.approx(np.sqrt(step.coef @ P @ step.coef), rel=1e-6)
        s = step.coef
        assert step.predicted == pytest.approx(-(g @ s) - s @ A @ s / 2, rel=1e-9)
        assert step.predicted > 0

    def test_a_region_ends_it_on_its_sphere_and_on_the_way_between_iterates(
        self, seed, alpha, is_preconditioned
    ):
        _, objective, point, g, A, P, preconditioner = self.setup(seed, alpha, is_preconditioned)
        free = _newton_step(objective, point, g, alpha, np.inf, preconditioner())
        cauchy = krylov_steps(A, g, P)[0]
        first = np.sqrt(cauchy @ P @ cauchy)
        inside = _newton_step(objective, point, g, alpha, 1.01 * free.length, preconditioner())
        np.testing.assert_allclose(inside.coef, free.coef, rtol=1e-9)
        short = _newton_step(objective, point, g, alpha, 0.5 * first, preconditioner())
        np.testing.assert_allclose(short.coef, 0.5 * cauchy, rtol=1e-9)
        radius = 0.5 * (first + free.length)
        if free.length > 1.01 * first:  # more than one iterate
            path = [np.zeros(6), *krylov_steps(A, g, P)]
            lengths = [np.sqrt(s @ P @ s) for s in path]
            leaves = next(k for k, length in enumerate(lengths) if length > radius)
            step = _newton_step(objective, point, g, alpha, radius, preconditioner())
            assert step.length == pytest.approx(radius, rel=1e-6)
            along = step.coef - path[leaves - 1]
            whole = path[leaves] - path[leaves - 1]
            share = (along @ whole) / (whole @ whole)
            assert 0 < share < 1
            np.testing.assert_allclose(along, share * whole, atol=1e-7)
            s = step.coef
            assert step.predicted == pytest.approx(-(g @ s) - s @ A @ s / 2, rel=1e-6)


def test_a_preconditioner_that_waits_is_told_what_a_step_took_and_ends_one_that_takes_too_long():
    X, winner, loser = preferences(0, rows=200, features=30, pairs=900)
    objective = objective_of(X * np.geomspace(0.01, 1, 30), winner, loser)
    point = objective.at(np.zeros(30))
    graph = preference_graph(winner, loser, 200)
    counts = []
    for already in (0, 14):
        curvature = Curvature(SquaredObjective(objective.design, graph), is_whole=True)
        waiting = Preconditioner(curvature, 1e-9, lambda: np.ones(200))
        waiting.learn(np.ones(30), 1.0, already)
        reads = objective.n_reads
        _newton_step(objective, point, point.gradient, 1e-9, np.inf, waiting)
        counts.append((objective.n_reads - reads) // 2)
        assert waiting.n_plain == 16 - already - counts[-1]
    assert counts[0] > 2 == counts[1]


def test_a_loss_that_is_a_parabola_all_the_way_takes_one_step_and_four_reads():
    """Columns so small that every pair is inside its margin, and a Hessian that is a multiple of the identity."""
    X = np.vstack([np.eye(4), -np.eye(4)]) * 1e-2
    objective = objective_of(X, np.arange(4), np.arange(4, 8))
    solution = minimise_by_newton(objective, 1e-2, tol=1e-9)
    assert solution.status is Status.CONVERGED
    # The gradient at 0, a product (two reads), the gradient there.
    assert (solution.n_iter, solution.n_reads) == (1, 4)
    # Four pairs of difference 0.02 along a column each: mean of (1 - 0.02 w)² + 0.01 w²
    np.testing.assert_allclose(solution.coef, 0.02 / 4 / (0.02**2 / 4 + 1e-2), rtol=1e-9)
    assert len(solution.history) == 2
    again = minimise_by_newton(objective, 1e-2, tol=1e-9, start=solution.coef)
    assert (again.status, again.n_iter, again.n_reads) == (Status.CONVERGED, 0, 2)
    np.testing.assert_array_equal(again.coef, solution.coef)


@pytest.mark.parametrize("loss", [SquaredHingeLoss, LogisticLoss])
@pytest.mark.parametrize("alpha", [1e-5, 1e-2])
@pytest.mark.parametrize("distance", [0.0, 10.0, 1e3])
def test_from_anywhere_it_ends_at_the_minimum_in_few_steps(loss, alpha, distance):
    """Far away a logistic loss is a plane, and Newton's step leads far beyond the minimum: the region shrinks."""
    X, winner, loser = preferences(1)
    objective = objective_of(X, winner, loser, loss)
    start = distance * np.random.default_rng(0).normal(size=6)
    told = []
    solution = minimise_by_newton(
        objective, alpha, tol=1e-8, start=start, monitor=lambda coef, *_: told.append(coef.copy())
    )
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= (25 if distance <= 10 else 80)

    def value(w):
        return float(objective.at(w).value) + alpha * w @ w

    found = scipy.optimize.minimize(
        lambda w: (value(w), objective.at(w).gradient + 2 * alpha * w), np.zeros(6), jac=True, method="BFGS",
        options={"gtol": 1e-9},
    )  # fmt: skip
    assert value(solution.coef) <= found.fun + 1e-8 * (value(np.zeros(6)) - found.fun)
    values = [value(w) for w in told]
    assert (np.diff(values) <= 1e-12 * np.abs(values[0])).all()  # never uphill
    at_zero = value(np.zeros(6))
    assert solution.gain == pytest.approx(at_zero - value(solution.coef) + solution.certificate, rel=1e-6)
    slope = objective.at(solution.coef).gradient + 2 * alpha * solution.coef
    assert solution.certificate <= slope @ slope / (4 * alpha) * 1.01


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_tolerance_of_zero_ends_at_what_rounding_leaves(scale):
    X, winner, loser = preferences(2)
    objective = objective_of(scale * X, winner, loser)
    solution = minimise_by_newton(objective, 1e-3, tol=0.0)
    assert solution.status in {Status.STAGNATED, Status.CONVERGED}
    assert solution.n_iter < 40
    assert solution.certificate <= 1e-14 * scale**2


def test_pairs_that_contradict_each_other_exactly_leave_zero():
    X, winner, loser = preferences(3)
    both = np.concatenate([winner, loser]), np.concatenate([loser, winner])
    solution = minimise_by_newton(objective_of(X, *both), 1e-2)
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.coef, 0.0, atol=1e-12)
    assert solution.n_iter <= 2


def test_counts_are_those_of_this_call():
    X, winner, loser = preferences(4)
    objective = objective_of(X, winner, loser)
    one = minimise_by_newton(objective, 1e-3, tol=1e-6)
    before = objective.n_reads
    other = minimise_by_newton(objective, 1e-3, tol=1e-6)
    assert one.n_reads == other.n_reads == objective.n_reads - before
    assert other.n_iter == one.n_iter == len(one.history) - 1
    told = []

    def watch(_, gap, n_iter):
        told.append((gap, n_iter))
        return n_iter == 2

    stopped = minimise_by_newton(objective, 1e-3, tol=1e-6, monitor=watch)
    assert told == list(zip(one.history[:3], range(3), strict=True))
    assert (stopped.status, stopped.n_iter, stopped.certificate) == (Status.STOPPED, 2, told[-1][0])
    for n_iter in (0, 1):
        cut = minimise_by_newton(objective, 1e-3, tol=1e-6, max_iter=n_iter)
        assert (cut.status, cut.n_iter, cut.history) == (Status.MAX_ITER, n_iter, one.history[: n_iter + 1])


@pytest.mark.parametrize("solve_from", [0.0, 30.0])
def test_it_ends_at_the_first_point_whose_gap_is_a_share_of_the_gain(solve_from):
    X, winner, loser = preferences(5)
    objective, told = objective_of(X, winner, loser, LogisticLoss), []
    start = solve_from * np.ones(6) if solve_from else None
    minimise_by_newton(
        objective, 1e-4, tol=1e-12, start=start, monitor=lambda w, gap, _: told.append((w.copy(), gap))
    )
    at_zero = float(objective.at(np.zeros(6)).value)
    gains = [max(at_zero - float(objective.at(w).value) - 1e-4 * w @ w, 0.0) for w, _ in told]
    seen = set()
    for tol in (0.9, 0.3, 1e-2, 1e-3, 1e-5):
        first = next(k for k, (_, gap) in enumerate(told) if gap <= tol * (gap + gains[k]))
        found = minimise_by_newton(objective, 1e-4, tol=tol, start=start)
        assert (found.status, found.n_iter) == (Status.CONVERGED, first)
        seen.add(first)
    assert len(seen) > 2
    usual = minimise_by_newton(objective, 1e-4)
    assert usual.certificate <= 1e-3 * usual.gain
