"""The parts of projected Newton steps, each against what it stands for written out coordinate by coordinate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from rankwise.design import as_design
from rankwise.losses import SquaredHingeLoss
from rankwise.objectives import MeanLoss
from rankwise.objectives.moved import MatrixQuadratic
from rankwise.pairs.margins import PreferenceMargins
from rankwise.solvers.bounded import (
    Bounds,
    _longest,
    _newton_step,
    bounded_gap,
    minimise_bounded,
    penalty_change,
    polished,
)
from rankwise.solvers.solution import Solution, Status

REACH = 10.0  # within how many times their size coefficients without a penalty are proved to be best


def random_bounds(rng, size):
    lower = np.where(rng.random(size) < 0.5, -rng.exponential(size=size), -np.inf)
    upper = np.where(rng.random(size) < 0.5, rng.exponential(size=size), np.inf)
    return Bounds(lower, upper)


def lowest_move(w, g, alpha, lower, upper):
    """The least of ``g d + alpha d²`` over the d that a coefficient may move by."""
    ends = [end - w for end in (lower, upper) if np.isfinite(end)]
    free = -g / (2 * alpha) if alpha > 0 else 0.0
    ends += [free] if lower <= w + free <= upper else []
    return min([g * d + alpha * d * d for d in ends], default=0.0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("alpha", [1e-3, 0.5, 40.0])
def test_the_gap_is_what_each_coefficient_could_still_gain(seed, alpha):
    rng = np.random.default_rng(seed)
    bounds = random_bounds(rng, 6)
    w, g = bounds.projected(rng.normal(size=6)), rng.normal(size=6)
    expected = -sum(map(lowest_move, w, g, np.full(6, alpha), bounds.lower, bounds.upper))
    assert bounded_gap(w, g, alpha, bounds) == pytest.approx(expected, rel=1e-12)
    # Without a penalty within ten times the size, its own or the one that matters, and inside the bounds.
    units = np.where(np.arange(6) % 2, rng.exponential(size=6), 0.0)
    size = REACH * np.maximum(units, np.abs(w))
    is_out = units > 0
    lower = np.where(is_out, np.maximum(bounds.lower, w - size), bounds.lower)
    upper = np.where(is_out, np.minimum(bounds.upper, w + size), bounds.upper)
    expected = -sum(map(lowest_move, w, g, np.where(is_out, 0.0, alpha), lower, upper))
    assert bounded_gap(w, g, alpha, bounds, units) == pytest.approx(expected, rel=1e-12)


def test_no_gap_is_negative():
    assert bounded_gap(np.zeros(2), np.ones(2), 1.0, Bounds(np.zeros(2), np.zeros(2))) == 0.0
    assert bounded_gap(np.ones(2), np.zeros(2), 1.0, Bounds.not_negative(np.ones(2, dtype=bool))) == 0.0


def test_who_is_held_stands_near_a_bound_and_is_pushed_against_it():
    bounds = Bounds(np.array([0.0, 0.0, 0.0, 0.0, -np.inf, -1.0]), np.array([9.0, 9.0, 9.0, 9.0, 2.0, 2.0]))
    w = np.array([0.0, 0.0, 1e-3, 0.5, 2.0, 2.0 - 1e-3])
    g = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    np.testing.assert_array_equal(bounds.held(w, g, 1e-2), [True, False, True, False, True, True])
    np.testing.assert_array_equal(bounds.held(w, g, 0.0), [True, False, False, False, True, False])
    np.testing.assert_array_equal(bounds.held(w, np.zeros(6), 1e-2), False)
    near = np.array([0.0, 0.0, 1e-2, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(bounds.held(w, g, near), [True, False, True, True, True, False])


@pytest.mark.parametrize("penalty", [0.7, np.array([0.0, 0.7, 2.0])])
def test_a_penalty_changes_by_the_difference_of_its_values(penalty):
    before, after = np.random.default_rng(0).normal(size=(2, 3))
    change = (penalty * after**2).sum() - (penalty * before**2).sum()
    assert penalty_change(before, after, penalty) == pytest.approx(change)


@pytest.mark.parametrize("seed", range(10))
def test_a_step_is_led_on_until_one_coefficient_has_moved_by_its_stride(seed):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=5)
    direction[seed % 5] = 0.0
    stride = rng.uniform(0.5, 3, size=5)
    step = stride * rng.uniform(-1, 1, size=5)
    length = _longest(step, direction, stride)
    moves = direction != 0
    assert length >= 0
    moved = np.abs(step + length * direction)
    assert (moved[moves] / stride[moves]).max() == pytest.approx(1.0)
    assert _longest(step, np.zeros(5), stride) == np.inf


class TestNewtonStep:
    def quadratic(self, eigenvalues, seed=0):
        Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))[0]
        return MatrixQuadratic((Q * np.asarray(eigenvalues)) @ Q.T, np.zeros(len(eigenvalues)))

    @pytest.mark.parametrize("is_fine", [False, True])
    @pytest.mark.parametrize("preconditioned", [False, True])
    @pytest.mark.parametrize("penalty", [0.3, np.array([0.0, 0.0, 1.0, 2.0] * 3)])
    def test_newtons_equation_is_solved_to_a_share_among_the_free(self, is_fine, preconditioned, penalty):
        objective = self.quadratic(np.geomspace(0.1, 10, 12))
        g = np.random.default_rng(1).normal(size=12)
        is_free = np.arange(12) % 3 != 1
        A = 2 * objective.matrix() + 2 * np.diag(np.broadcast_to(penalty, 12))
        inverse = 1 / np.diag(A) if preconditioned else 1.0
        stride = np.full(12, np.inf) if is_fine else None
        step = _newton_step(objective.at(np.zeros(12)), g * is_free, penalty, is_free, inverse, stride)
        np.testing.assert_array_equal(step[~is_free], 0.0)

        def size(r):
            return np.sqrt((r * inverse * r)[is_free].sum())

        share = size(g + A @ step) / size(g)
        assert share <= (1e-3 if is_fine else 0.1)
        assert share > 0 or is_fine  # and not further than that: products are what it costs
        n_cg = objective.n_products
        assert n_cg <= 9  # free ones
        exact = np.linalg.solve(A[np.ix_(is_free, is_free)], -g[is_free])
        error = step[is_free] - exact
        assert (
            error @ A[np.ix_(is_free, is_free)] @ error <= 0.1 * exact @ A[np.ix_(is_free, is_free)] @ exact
        )

    @pytest.mark.parametrize("n_distinct", [1, 2, 3])
    def test_as_many_products_as_distinct_eigenvalues(self, n_distinct):
        objective = self.quadratic(np.repeat(10.0 ** np.arange(n_distinct), 4))
        g = np.random.default_rng(1).normal(size=4 * n_distinct)
        everything, far = np.ones(g.size, dtype=bool), np.full(g.size, 1e9)
        step = _newton_step(objective.at(np.zeros(g.size)), g, 0.5, everything, 1.0, far)
        assert objective.n_products == n_distinct
        np.testing.assert_allclose((2 * objective.matrix() + np.eye(g.size)) @ step, -g, atol=1e-9)

    def test_a_diagonal_that_is_exact_takes_one_product(self):
        H = np.diag(np.geomspace(1e-3, 1e3, 8))
        objective = MatrixQuadratic(H, np.zeros(8))
        g = np.random.default_rng(1).normal(size=8)
        step = _newton_step(
            objective.at(np.zeros(8)), g, 0.1, np.ones(8, dtype=bool), 1 / (2 * np.diag(H) + 0.2), None
        )
        assert objective.n_products == 1
        np.testing.assert_allclose(step, -g / (2 * np.diag(H) + 0.2), rtol=1e-10)

    def test_a_stride_ends_a_step_that_has_no_curvature_and_one_that_is_too_long(self):
        g, everything = np.array([1.0, -2.0, 0.5]), np.ones(3, dtype=bool)
        stride = np.array([3.0, 3.0, 0.4])
        flat = MatrixQuadratic(np.zeros((3, 3)), np.zeros(3))
        step = _newton_step(flat.at(np.zeros(3)), g, 0.0, everything, 1.0, stride)
        np.testing.assert_allclose(step, -g * 0.8)  # the last one moved by 0.4
        little = MatrixQuadratic(np.diag([0.1, 0.1, 0.1]), np.zeros(3))
        step = _newton_step(little.at(np.zeros(3)), g, 0.0, everything, 1.0, stride)
        np.testing.assert_allclose(step, -g * 0.8)
        curved = MatrixQuadratic(np.diag([1.0, 1.0, 1.0]), np.zeros(3))
        step = _newton_step(curved.at(np.zeros(3)), g, 0.0, everything, 1.0, stride)
        np.testing.assert_allclose(step, -g / 2)


def least_squares(seed, rows=30, columns=6):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(rows, columns)), rng.normal(size=rows)
    return X, y, MatrixQuadratic(X.T @ X, X.T @ y)


def value_of(objective, w, penalty):
    return float(objective.at(w).value) + (penalty * w**2).sum()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("has_start", [False, True])
def test_bounds_on_both_sides_have_the_minimum_of_scipy_and_what_was_gained_is_told(
    seed, preconditioned, has_start
):
    rng = np.random.default_rng(seed)
    X, y, objective = least_squares(seed)
    alpha, bounds = 0.4, Bounds(np.full(6, -0.05), np.linspace(0.0, 0.1, 6))
    expected = lsq_linear(
        np.vstack([X, np.sqrt(alpha) * np.eye(6)]), np.append(y, np.zeros(6)), (bounds.lower, bounds.upper),
        tol=1e-14,
    ).x  # fmt: skip
    start = rng.normal(size=6) if has_start else None
    solution = minimise_bounded(
        objective, alpha, bounds, tol=1e-9, start=start,
        diagonal=2 * objective.diagonal() if preconditioned else None,
    )  # fmt: skip
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.coef, expected, atol=1e-5)
    gain = value_of(objective, np.zeros(6), alpha) - value_of(objective, solution.coef, alpha)
    assert solution.gain == pytest.approx(gain + solution.certificate, rel=1e-9)
    assert solution.certificate == solution.history[-1] <= 1e-9 * solution.gain
    assert len(solution.history) == solution.n_iter + 1
    assert solution.n_iter <= 6


def test_a_quadratic_without_bounds_whose_diagonal_is_known_takes_one_step():
    objective = MatrixQuadratic(np.diag(np.geomspace(1e-2, 1e2, 5)), np.ones(5))
    nothing = Bounds(np.full(5, -np.inf), np.full(5, np.inf))
    solution = minimise_bounded(objective, 0.1, nothing, tol=1e-12, diagonal=2 * objective.diagonal())
    assert (solution.status, solution.n_iter) == (Status.CONVERGED, 1)
    np.testing.assert_allclose(solution.coef, 1 / (objective.diagonal() + 0.1), rtol=1e-10)
    # At 0 the gap is the square of the gradient over 4 alpha.
    assert solution.history[0] == pytest.approx(4 * 5 / 0.4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("with_diagonal", [False, True])
def test_coefficients_without_a_penalty_end_where_their_slope_does(scale, with_diagonal):
    X, y, objective = least_squares(3)
    units = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 0.0]) / scale
    X = X * np.where(units > 0, scale, 1.0)
    objective = MatrixQuadratic(X.T @ X, X.T @ y)
    alpha, bounds = 5.0, Bounds.not_negative(np.arange(6) < 3)
    penalty = np.where(units > 0, 0.0, alpha)
    expected = lsq_linear(
        np.vstack([X, np.diag(np.sqrt(penalty))]), np.append(y, np.zeros(6)), (bounds.lower, bounds.upper),
        tol=1e-14,
    ).x  # fmt: skip
    diagonal = 2 * objective.diagonal() if with_diagonal else None
    solution = minimise_bounded(objective, alpha, bounds, tol=1e-7, units=units, diagonal=diagonal)
    assert solution.status is Status.CONVERGED
    unit = np.where(units > 0, units, 1.0)
    np.testing.assert_allclose(solution.coef / unit, expected / unit, atol=1e-6)
    gain = value_of(objective, np.zeros(6), penalty) - value_of(objective, solution.coef, penalty)
    assert solution.gain == pytest.approx(gain + solution.certificate, rel=1e-9)
    assert solution.n_iter <= 10


def squared_hinge(seed=0, rows=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    winner = rng.integers(rows, size=100)
    loser = (winner + rng.integers(1, rows, size=100)) % rows
    return MeanLoss(
        as_design(X), PreferenceMargins(rows, winner, loser, np.ones(100), np.ones(100)), SquaredHingeLoss()
    )


def test_reads_iterations_and_what_a_monitor_sees():
    objective, bounds = squared_hinge(), Bounds.not_negative(np.arange(5) < 4)
    seen = []

    def watch(coef, gap, n_iter):
        seen.append((coef.copy(), gap, n_iter))
        return n_iter == 2

    before = objective.n_reads
    solution = minimise_bounded(objective, 1e-3, bounds, tol=1e-13, monitor=watch)
    assert solution.status is Status.STOPPED
    assert [n_iter for _, _, n_iter in seen] == [0, 1, 2]
    np.testing.assert_array_equal(solution.coef, seen[-1][0])
    assert [gap for _, gap, _ in seen] == solution.history
    assert solution.n_reads == objective.n_reads - before
    for n_iter in (0, 1, 2):
        cut = minimise_bounded(objective, 1e-3, bounds, tol=1e-13, max_iter=n_iter)
        assert (cut.status, cut.n_iter) == (Status.MAX_ITER, n_iter)
        np.testing.assert_array_equal(cut.coef, seen[n_iter][0])
    solution = minimise_bounded(objective, 1e-3, bounds, tol=0.0, enough=seen[1][1])
    assert (solution.status, solution.n_iter) == (Status.CONVERGED, 1)


@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e8])
def test_a_tolerance_of_zero_ends_at_rounding(alpha):
    objective, bounds = squared_hinge(), Bounds.not_negative(np.arange(5) < 4)
    solution = minimise_bounded(objective, alpha, bounds, tol=0.0)
    assert solution.status in {Status.CONVERGED, Status.STAGNATED}
    assert solution.certificate <= 1e-14
    assert solution.n_iter <= 30


class TestPolishing:
    @pytest.mark.parametrize("seed", range(4))
    def test_the_free_ones_have_no_slope_left(self, seed):
        _, _, objective = least_squares(seed)
        bounds = Bounds(np.full(6, -0.03), np.full(6, 0.1))
        units = np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
        for kind in (None, units):
            penalty = 0.4 * np.ones(6) if kind is None else np.where(units > 0, 0.0, 0.4)
            best = minimise_bounded(objective, 0.4, bounds, tol=1e-9, units=kind)
            moved = np.where((best.coef > bounds.lower) & (best.coef < bounds.upper), 1.001, 1.0) * best.coef
            slope = objective.at(moved).gradient + 2 * penalty * moved
            rough = replace(best, coef=moved, certificate=bounded_gap(moved, slope, 0.4, bounds, kind))
            found = polished(rough, objective, 0.4, bounds, kind)
            assert found.status is Status.EXACT
            np.testing.assert_allclose(found.coef, best.coef, atol=1e-5)
            is_free = (found.coef > bounds.lower) & (found.coef < bounds.upper)
            assert 0 < is_free.sum() < 6
            slope = objective.at(found.coef).gradient + 2 * penalty * found.coef
            np.testing.assert_allclose(slope[is_free], 0.0, atol=1e-10)
            assert found.certificate == bounded_gap(found.coef, slope, 0.4, bounds, kind) < rough.certificate
            assert (found.n_iter, found.gain) == (rough.n_iter, rough.gain)

    def test_what_leaves_the_bounds_or_is_singular_is_left_as_it_was(self):
        _, _, objective = least_squares(0)
        bounds = Bounds.not_negative(np.ones(6, dtype=bool))
        inside = Solution(
            np.full(6, 0.01), Status.CONVERGED, certificate=1e3
        )  # some of these would be negative
        assert polished(inside, objective, 0.4, bounds) is inside
        proved = Solution(
            np.zeros(6), Status.CONVERGED, certificate=0.0
        )  # nothing is free, nothing is better
        assert polished(proved, objective, 0.4, bounds) is proved
        twice = MatrixQuadratic(np.ones((2, 2)), np.ones(2))
        nothing = Bounds(np.full(2, -np.inf), np.full(2, np.inf))
        rough = Solution(np.array([0.5, 0.4]), Status.CONVERGED, certificate=1.0)
        assert polished(rough, twice, 0.4, nothing, np.ones(2)) is rough


@pytest.mark.parametrize("has_start", [False, True])
def test_it_ends_at_the_first_point_whose_gap_is_a_share_of_the_gain(has_start):
    objective, bounds = squared_hinge(rows=30), Bounds.not_negative(np.arange(5) < 4)
    start = np.full(5, 3.0) if has_start else None
    told = []
    minimise_bounded(
        objective,
        1e-4,
        bounds,
        tol=1e-13,
        start=start,
        monitor=lambda w, gap, _: told.append((w.copy(), gap)),
    )
    at_zero = value_of(objective, np.zeros(5), 1e-4)
    gains = [max(at_zero - value_of(objective, w, 1e-4), 0.0) for w, _ in told]
    seen = set()
    for tol in (0.9, 0.5, 0.1, 1e-2, 1e-3, 1e-5):
        is_met = [gap <= tol * (gap + gain) for (_, gap), gain in zip(told, gains, strict=True)]
        first = [*is_met, True].index(True)  # the one after the last is not told
        found = minimise_bounded(objective, 1e-4, bounds, tol=tol, start=start)
        assert (found.status, found.n_iter) == (Status.CONVERGED, first)
        seen.add(first)
    assert len(seen) >= 2
    usual = minimise_bounded(objective, 1e-4, bounds, start=start)
    assert usual.certificate <= 1e-3 * usual.gain
