"""Estimates of the ends of a spectrum, against their recurrences on explicit matrices and vectors."""

import numpy as np
import pytest

from rankwise.solvers.lanczos import Lanczos
from rankwise.solvers.spectrum import (
    RunningSpectrum,
    _bound,
    _ends,
    lanczos_estimate,
    lanczos_spectrum,
    power_spectrum,
)

RISK = 1e-4


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


class Counted:
    """A matrix that counts its products."""

    def __init__(self, H):
        self.H, self.n_products = H, 0

    def __call__(self, v):
        self.n_products += 1 if v.ndim == 1 else v.shape[1]
        return self.H @ v


@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("n_iter", [1, 2, 20])
@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_power_iteration_is_the_papers_two_recursions(alpha, n_iter, size):
    H, alpha = size * matrix_of(np.linspace(1, 6, 8)), size * alpha
    found = power_spectrum(lambda v: H @ v, 8, alpha, n_iter=n_iter, seed=3)
    A = H / size + alpha / size * np.eye(8)
    top, bottom = np.random.default_rng(3).normal(size=(8, 2)).T
    if alpha == 0:
        top, bottom = A @ top, A @ bottom  # in the range of H
    for step in range(n_iter):
        top, bottom = top / np.linalg.norm(top), bottom / np.linalg.norm(bottom)
        largest, smallest = np.linalg.norm(A @ top), bottom @ A @ bottom
        np.testing.assert_allclose(np.array(found.history[step]) / size, [largest, smallest], rtol=1e-9)
        top, bottom = A @ top, A @ bottom - largest * bottom
    assert (found.largest, found.smallest) == found.history[-1]
    assert found.n_iter == len(found.history) == n_iter


def test_power_iteration_of_a_multiple_of_the_identity_ends_at_once():
    found = power_spectrum(lambda v: 2.0 * v, 1, 1.0)
    assert (found.n_iter, found.largest, found.smallest) == (1, 3.0, 3.0)


def lanczos_run(H, start, steps):
    run = Lanczos(start[:, None])
    for _ in range(steps):
        run.advance((H @ run.vectors[:, 0])[:, None])
    return run


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_ends_are_those_of_the_matrix_seen_from_the_space(steps):
    H = matrix_of(np.linspace(1, 6, 9))
    start = np.random.default_rng(0).normal(size=9)
    basis = [start / np.linalg.norm(start)]
    for _ in range(steps - 1):
        v = H @ basis[-1]
        for _ in range(2):
            v = v - np.array(basis).T @ (np.array(basis) @ v)
        basis.append(v / np.linalg.norm(v))
    V = np.array(basis).T
    values, vectors = np.linalg.eigh(V.T @ H @ V)
    ends = _ends(lanczos_run(H, start, steps))
    assert ends.largest == pytest.approx(values[-1])
    assert ends.smallest == pytest.approx(values[0])
    top = V @ vectors[:, -1]
    assert ends.residual == pytest.approx(np.linalg.norm(H @ top - values[-1] * top), abs=1e-10)
    np.testing.assert_allclose(np.abs(ends.top), np.abs(vectors[:, -1]), atol=1e-9)


@pytest.mark.parametrize("steps", [1, 3, 8])
@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_the_bound_is_where_the_polynomials_reach_what_a_random_start_hardly_ever_has_less_than(
    steps, share, size
):
    """The sum of squares of ``p_0 = 1``, ``β p_(j+1) = (x - a) p_j - β' p_(j-1)``, by its definition."""
    n = 60
    H = size * matrix_of(np.linspace(1, 6, n))
    run = lanczos_run(H, np.random.default_rng(0).normal(size=n), steps)
    a = [float(d[0]) / size for d in run.diagonal]
    beta = [float(b[0]) / size for b in run.off_diagonal]

    def length(x):
        polynomials, before = [1.0], 0.0
        for j in range(steps):
            following = ((x - a[j]) * polynomials[-1] - (beta[j - 1] if j else 0.0) * before) / beta[j]
            before = polynomials[-1]
            polynomials.append(following)
        return np.linalg.norm(polynomials)

    component = RISK * share * np.sqrt(np.pi / (2 * n))
    largest = _ends(run).largest
    allowed = largest * 1.01
    found = _bound(run, largest, allowed, share)
    assert length(found / size * (1 + 1e-5)) >= 1 / component
    assert length(found / size * (1 - 1e-4)) <= 1 / component
    assert found >= largest


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("accuracy", [0.5, 0.01, 1e-4])
@pytest.mark.parametrize("n", [40, 120])
def test_every_step_has_its_bounds_and_it_ends_at_the_first_that_is_close_enough(alpha, accuracy, n):
    H = matrix_of(np.linspace(1, 100, n))
    for seed in range(3):
        product = Counted(H)
        found, run = lanczos_estimate(product, n, alpha, accuracy=accuracy, seed=seed)
        assert product.n_products == found.n_iter + (alpha == 0)  # the start, in the range of H
        assert found.n_iter == run.n_steps == len(found.history)
        assert (found.largest, found.smallest) == found.history[-1]
        bounds, smallest = np.array(found.history).T
        assert (bounds >= (100 + alpha) * (1 - 1e-12)).all()
        assert (np.diff(bounds) <= 1e-9 * bounds[:-1]).all()
        assert (smallest >= 1 + alpha - 1e-9).all()
        assert (np.diff(smallest) <= 1e-9).all()
        assert found.largest <= (1 + accuracy) * (100 + alpha) * (1 + 1e-9)
        again = Lanczos(run.combine(0, np.eye(run.n_steps)[0])[:, None])
        for step in range(1, found.n_iter):  # none before was so close to what its space knew
            again.advance((H @ again.vectors[:, 0])[:, None])
            ritz = _ends(again).largest
            assert bounds[step - 1] - alpha > ritz + accuracy * (ritz + alpha) * (1 - 1e-6)


def test_where_the_space_is_complete_nothing_else_is_left_to_bound():
    product = Counted(matrix_of(np.repeat([1.0, 2.0, 5.0], 4)))
    found = lanczos_spectrum(product, 12, 1.0, accuracy=1e-9)
    assert product.n_products == found.n_iter == 3
    assert found.largest == pytest.approx(6.0, rel=1e-8)
    assert found.smallest == pytest.approx(2.0)
    few = Counted(np.diag([1.0, 4.0]))
    assert lanczos_spectrum(few, 2, 0.0, accuracy=1e-12).n_iter <= 2


def test_without_a_penalty_directions_that_h_does_not_see_do_not_count():
    H = matrix_of([*[0.0] * 10, *np.linspace(2, 3, 10)])
    assert lanczos_spectrum(lambda v: H @ v, 20, 0.0).smallest >= 2 - 1e-9
    assert power_spectrum(lambda v: H @ v, 20, 0.0).smallest >= 2 - 1e-9
    assert lanczos_spectrum(lambda v: H @ v, 20, 0.1, accuracy=1e-9).smallest == pytest.approx(0.1, abs=1e-6)
    assert lanczos_spectrum(lambda v: 0 * v, 20, 0.0).largest == 0.0


def test_a_start_toward_a_right_hand_side_is_half_of_it():
    H, rhs = matrix_of(np.linspace(1, 100, 300)), np.random.default_rng(9).normal(size=300)
    for size in (1e-200, 1.0, 1e200):
        _, run = lanczos_estimate(lambda v: H @ v, 300, 1.0, rhs=size * rhs)
        first = run.combine(0, np.eye(run.n_steps)[0])
        assert first @ rhs / np.linalg.norm(rhs) == pytest.approx(np.sqrt(0.5), abs=0.1)
    # Without a penalty it must stay in the range of H, and without a pull there is nothing to start at.
    for alpha, side in ((0.0, rhs), (1.0, np.zeros(300))):
        _, run = lanczos_estimate(lambda v: H @ v, 300, alpha, rhs=side)
        _, other = lanczos_estimate(lambda v: H @ v, 300, alpha)
        np.testing.assert_array_equal(run.vectors, other.vectors)


def test_products_that_overflow_have_no_spectrum():
    def overflow(v):
        return np.full_like(v, np.inf)

    assert lanczos_spectrum(overflow, 3, 1.0).largest == np.inf
    assert power_spectrum(overflow, 3, 1.0).largest == np.inf
    running = RunningSpectrum(3)
    running.refresh(overflow)
    assert (running.largest, running.smallest) == (np.inf, np.inf)


class TestRunning:
    def test_one_part_is_bounded_within_the_accuracy_of_its_steps(self):
        H = matrix_of([*np.linspace(1, 5, 30), 20.0])
        for seed in range(10):
            product = Counted(H)
            running = RunningSpectrum(31, seed=seed)
            running.refresh(product)
            assert 20.0 * (1 - 1e-9) <= running.largest <= 1.05 * 20.0
            assert 1 - 1e-9 <= running.smallest <= 20.0
            assert 2 <= product.n_products <= 12
            assert running.history == [(running.largest, running.smallest)]

    def test_a_second_part_of_the_same_source_starts_where_the_first_ended(self):
        H = matrix_of([*np.linspace(1, 5, 300), 10.0])
        running, counts = RunningSpectrum(301), []
        for _ in range(3):
            product = Counted(H)
            running.refresh(product)
            counts.append(product.n_products)
        assert counts[0] >= counts[1] + 2
        assert counts[2] <= counts[1]
        assert 30.0 * (1 - 1e-9) <= running.largest <= 1.05 * 30.0
        assert len(running.history) == 3
        spectrum = running.of(0.5)
        assert (spectrum.largest, spectrum.smallest) == (running.largest + 0.5, running.smallest + 0.5)
        assert spectrum.history == [(a + 0.5, b + 0.5) for a, b in running.history]
        assert spectrum.n_iter == 3

    def test_ends_of_few_columns_are_found_exactly_and_rounding_below_zero_is_none(self):
        running = RunningSpectrum(2)
        running.refresh(lambda v: np.diag([3.0, 3.0]) @ v)
        assert (running.largest, running.smallest) == pytest.approx((3.0, 3.0))
        running.refresh(lambda v: np.diag([-1e-18, 0.0]) @ v)
        assert running.smallest == pytest.approx(3.0)
