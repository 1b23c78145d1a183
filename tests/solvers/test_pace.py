"""The pace of descent with momentum: the factors an iteration that theory gives, and what a wrong one costs."""

import numpy as np
import pytest

from rankwise.objectives.moved import MatrixQuadratic
from rankwise.solvers import momentum as module
from rankwise.solvers.momentum import _best_pace, _Pace, estimated_descent, gradient_descent
from rankwise.solvers.solution import Status
from rankwise.solvers.spectrum import Spectrum


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


def problem(eigenvalues, seed=0):
    H = matrix_of(eigenvalues, seed)
    return MatrixQuadratic(H, np.random.default_rng(seed + 1).normal(size=len(H)))


def factor(pace, eigenvalue):
    """The largest factor an iteration along an eigenvector: of ``w' = (1 + μ - step κ) w - μ w_before``."""
    two_steps = np.array([[1 + pace.momentum - pace.step * eigenvalue, -pace.momentum], [1.0, 0.0]])
    return np.abs(np.linalg.eigvals(two_steps)).max()


@pytest.mark.parametrize(("largest", "smallest"), [(1.0, 1.0), (4.0, 1.0), (1e3, 1e-3), (1e200, 1e190)])
def test_the_best_pace_has_one_factor_for_the_whole_range(largest, smallest):
    pace = _best_pace(largest, smallest)
    root = np.sqrt(largest / smallest)
    assert pace.rate == pytest.approx((root - 1) / (root + 1), abs=1e-12)  # the least that any pace can have
    for eigenvalue in np.geomspace(smallest, largest, 9):
        assert factor(pace, eigenvalue) == pytest.approx(pace.rate, abs=1e-6)
    assert factor(pace, 1.2 * largest) > pace.rate * 1.001 or largest == smallest


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_a_factor_tells_its_eigenvalue(momentum):
    pace = _Pace(0.1, momentum)
    for eigenvalue in (
        1e-3,
        45.0,
        100.0,
    ):  # where the factors are real: below and beyond what was planned for
        two_steps = np.array([[1 + momentum - 0.1 * eigenvalue, -momentum], [1.0, 0.0]])
        values = np.linalg.eigvals(two_steps)
        if np.isreal(values).all():
            slowest = float(values[np.argmax(np.abs(values))].real)
            assert pace.eigenvalue_of(slowest) == pytest.approx(eigenvalue, rel=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("excess", [1.05, 3.0, 1e4])
def test_a_slower_pace_is_stable_where_this_one_grew_and_not_slower_than_it_must_be(momentum, excess):
    limit = 2 * (1 + momentum)  # the step beyond which an eigenvalue of 1 grows
    pace = _Pace(excess * limit, momentum)
    growth = factor(pace, 1.0)
    assert growth > 1
    slower = pace.slower(growth)
    assert slower.momentum == momentum
    assert factor(slower, 1.0) <= 1.0
    assert slower.step <= pace.step / 1.1
    assert slower.step >= 0.9 * min((1 + np.sqrt(momentum)) ** 2, pace.step / 1.1)
    # Growth that cannot be told from none, and one beyond all numbers.
    assert 0 < pace.slower(0.5).step <= pace.step / 1.1
    assert pace.slower(np.inf).step == pytest.approx(pace.step / 1e6)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_default_step_is_the_longest_under_the_trace(momentum):
    """``(1 + √μ)²`` over a bound of the largest eigenvalue: the end of what is planned for."""
    objective = problem(np.linspace(1, 9, 5))
    trace = np.trace(objective.matrix()) + 0.5
    found = gradient_descent(objective, 0.5, momentum=momentum, max_iter=10, tol=0.0)
    rate = (1 + np.sqrt(momentum)) ** 2 / ((1 - momentum) * trace)
    same = gradient_descent(objective, 0.5, momentum=momentum, learning_rate=rate, max_iter=10, tol=0.0)
    np.testing.assert_allclose(found.history, same.history, rtol=1e-9)
    assert found.n_products == same.n_products == 10


@pytest.mark.parametrize("estimator", ["lanczos", "power", "blocks"])
@pytest.mark.parametrize("scale", [2.0**-300, 2.0**-40, 2.0**40, 2.0**300])
def test_nothing_has_units(estimator, scale):
    """Powers of four scale every number exactly, roots included, but for what LAPACK does about large ones."""
    base = problem(np.geomspace(0.1, 10, 15))
    moved = MatrixQuadratic(scale * base.matrix(), base.rhs / scale)

    def solve(objective, alpha):
        if estimator == "blocks":
            return gradient_descent(objective, alpha, tol=1e-8)
        return estimated_descent(objective, alpha, estimator=estimator, tol=1e-8)

    one, other = solve(base, 0.5), solve(moved, 0.5 * scale)
    assert one.status is other.status is Status.CONVERGED
    np.testing.assert_allclose(one.history, other.history, rtol=1e-6)  # as many, and any constant would show
    assert one.n_products == other.n_products
    np.testing.assert_allclose(other.coef * scale * scale, one.coef, rtol=1e-9, atol=0)


def with_estimate(monkeypatch, largest, smallest):
    """Let the descent believe that the spectrum ends there."""
    monkeypatch.setattr(module, "power_spectrum", lambda *_, **__: Spectrum(largest, smallest, 0))


def planned(largest, smallest, tol):
    """How many iterations bring a component down by `tol` at the best pace, with the rise of momentum before it."""
    rate = (np.sqrt(largest / smallest) - 1) / (np.sqrt(largest / smallest) + 1)
    return np.log(tol * (1 - rate) / 4) / np.log(rate)


def test_the_true_ends_take_as_many_iterations_as_planned(monkeypatch):
    objective = problem(np.geomspace(1, 400, 60))
    with_estimate(monkeypatch, 400.0, 1.0)
    solution = estimated_descent(objective, 0.0, estimator="power", tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 1.1 * planned(400.0, 1.0, 1e-9)
    assert solution.n_restarts == 0
    assert (solution.spectrum.largest, solution.spectrum.smallest) == (400.0, 1.0)


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_an_end_that_is_too_low_is_found_out_by_its_growth(monkeypatch, share):
    objective = problem(np.geomspace(1, 400, 60))
    with_estimate(monkeypatch, share * 400.0, 1.0)
    solution = estimated_descent(objective, 0.0, estimator="power", tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert 1 <= solution.n_restarts <= 4
    assert 0.9 * 400 <= solution.spectrum.largest <= 1.3 * 400
    assert solution.n_iter <= 2 * planned(400.0, 1.0, 1e-9) + 100


@pytest.mark.parametrize("excess", [3.0, 30.0, 200.0])
def test_an_end_that_is_too_high_below_is_found_out_by_its_slowness(monkeypatch, excess):
    objective = problem(np.geomspace(1, 400, 60))
    with_estimate(monkeypatch, 400.0, excess)
    solution = estimated_descent(objective, 0.0, estimator="power", tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert solution.n_restarts == 0
    assert 0.1 <= solution.spectrum.smallest <= 3.0
    assert solution.n_iter <= 2 * planned(400.0, 1.0, 1e-9)


def test_the_smallest_eigenvalue_is_never_taken_to_be_below_the_penalty(monkeypatch):
    objective = problem([*[0.0] * 5, *np.geomspace(100, 400, 20)])
    with_estimate(monkeypatch, 401.0, 101.0)
    solution = estimated_descent(objective, 1.0, estimator="power", tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert solution.spectrum.smallest >= 1.0
    assert solution.spectrum.smallest <= 3.0


@pytest.mark.parametrize("ends", [(0.0, 0.0), (-1e-16, -1e-17), (5.0, 0.0), (5.0, 9.0), (5.0, -1.0)])
def test_ends_that_cannot_be_are_replaced(monkeypatch, ends):
    """H = 0 and rounding: any pace will do, and what is wrong about it is found out."""
    objective = problem([2.0, 3.0, 5.0])
    with_estimate(monkeypatch, *ends)
    solution = estimated_descent(objective, 0.0, estimator="power", tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert solution.n_iter < 1000


@pytest.mark.parametrize("factor_", [1.5, 30.0, 1e5])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_rate_that_is_too_high_takes_few_restarts(factor_, momentum):
    objective = problem(np.geomspace(1, 100, 30))
    limit = 2 * (1 + momentum) / ((1 - momentum) * 100.0)
    solution = gradient_descent(objective, 0.0, learning_rate=factor_ * limit, momentum=momentum, tol=1e-7)
    assert solution.status is Status.CONVERGED
    assert 1 <= solution.n_restarts <= 6
    alone = gradient_descent(
        objective, 0.0, learning_rate=(1 + np.sqrt(momentum)) ** 2 / ((1 - momentum) * 105.0), momentum=momentum,
        tol=1e-7,
    )  # fmt: skip
    assert solution.n_iter <= 1.5 * alone.n_iter + 200


@pytest.mark.parametrize("estimator", ["lanczos", "power"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**60])
def test_what_a_tolerance_below_rounding_costs_is_bounded(estimator, seed, scale):
    """Residuals that are rounding alone do not fall, and that is no reason to look for smaller eigenvalues."""
    base = problem(np.linspace(1, 4, 10), seed)
    objective = MatrixQuadratic(scale * base.matrix(), base.rhs)
    solution = estimated_descent(objective, 0.0, estimator=estimator, tol=0.0)
    assert solution.status is Status.STAGNATED
    assert solution.certificate < 1e-14
    assert 500 <= solution.n_iter <= 3000


@pytest.mark.parametrize("seed", range(3))
def test_a_pace_at_which_a_component_neither_grows_nor_falls_is_slowed_down(monkeypatch, seed):
    """The largest eigenvalue is 401, and the pace for 400 and the penalty has a factor of 1 there."""
    objective = problem([*[0.0] * 5, *np.geomspace(100, 400, 20)], seed)
    assert factor(_best_pace(400.0, 1.0), 401.0) == pytest.approx(1.0, abs=1e-3)
    with_estimate(monkeypatch, 400.0, 100.0)
    solution = estimated_descent(objective, 1.0, estimator="power", tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert solution.n_restarts == 1


def test_products_beyond_all_numbers_are_given_up(monkeypatch):
    objective = problem(np.linspace(1, 4, 10))
    monkeypatch.setattr(objective, "product", lambda v: np.full_like(v, np.inf))
    solution = gradient_descent(objective, 0.0, learning_rate=0.1)
    assert (solution.status, solution.n_restarts) == (Status.OUT_OF_RANGE, 100)
    assert solution.n_iter == solution.n_products + 101
    np.testing.assert_array_equal(solution.coef, 0.0)


def test_a_start_that_promises_enough_is_asked_again():
    """Few columns: the space of the estimate is all there is, and one product checks the solution in it."""
    objective = problem(np.linspace(1.0, 5.0, 6))
    solution = estimated_descent(objective, 0.5, tol=1e-9)
    assert (solution.status, solution.n_iter) == (Status.CONVERGED, 0)
    assert solution.n_products == solution.spectrum.n_iter + 1
    residual = objective.matrix() @ solution.coef + 0.5 * solution.coef - objective.rhs
    assert solution.certificate == pytest.approx(
        np.linalg.norm(residual) / np.linalg.norm(objective.rhs), abs=1e-15
    )
    watched = estimated_descent(objective, 0.5, tol=1e-9, monitor=lambda *_: False)
    assert watched.n_iter > 0  # whoever watches sees the way from 0
