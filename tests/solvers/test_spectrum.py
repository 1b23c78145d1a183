"""Estimates of the ends of a spectrum, against their recurrences on explicit matrices and vectors."""

import numpy as np
import pytest

from all_pairs import pairwise
from rankwise.solvers.krylov import Lanczos
from rankwise.solvers.momentum import (
    _bound,
    _grow,
    lanczos_estimate,
    power_spectrum,
)

RISK = 1e-4


def lanczos_spectrum(*problem, **options):
    return lanczos_estimate(*problem, **options)[0]


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


@pairwise(alpha=[0.0, 0.7], n_iter=[1, 2, 20], size=[1e-150, 1.0, 1e150])
def test_power_iteration_is_the_papers_two_recursions(alpha, n_iter, size):
    H, alpha = size * matrix_of(np.linspace(1, 6, 8)), size * alpha
    found = power_spectrum(lambda v: H @ v, 8, alpha, n_iter=n_iter, seed=3)
    A = H / size + alpha / size * np.eye(8)
    top, bottom = np.random.default_rng(3).normal(size=(8, 2)).T
    if alpha == 0:
        top, bottom = A @ top, A @ bottom  # in the range of H
    for _ in range(n_iter):
        top, bottom = top / np.linalg.norm(top), bottom / np.linalg.norm(bottom)
        largest, smallest = np.linalg.norm(A @ top), bottom @ A @ bottom
        top, bottom = A @ top, A @ bottom - largest * bottom
    np.testing.assert_allclose(np.array(found) / size, [largest, smallest], rtol=1e-9)


def lanczos_run(H, start, steps):
    run = Lanczos(start[:, None])
    *_, ends = _grow(run, lambda v: H @ v, steps)
    return run, ends


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
    _, ends = lanczos_run(H, start, steps)
    assert ends.largest == pytest.approx(values[-1])
    assert ends.smallest == pytest.approx(values[0])
    top = V @ vectors[:, -1]
    assert ends.residual == pytest.approx(np.linalg.norm(H @ top - values[-1] * top), abs=1e-10)
    np.testing.assert_allclose(np.abs(ends.top), np.abs(vectors[:, -1]), atol=1e-9)


@pairwise(steps=[1, 3, 8], share=[1.0, 0.6], size=[1e-8, 1.0, 1e8])
def test_the_bound_is_where_the_polynomials_reach_what_a_random_start_hardly_ever_has_less_than(
    steps, share, size
):
    """The sum of squares of ``p_0 = 1``, ``β p_(j+1) = (x - a) p_j - β' p_(j-1)``, by its definition."""
    n = 60
    H = size * matrix_of(np.linspace(1, 6, n))
    run, ends = lanczos_run(H, np.random.default_rng(0).normal(size=n), steps)
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
    found = _bound(run, ends.largest, 1.01 * ends.largest, share)
    assert length(found / size * (1 + 1e-5)) >= 1 / component
    assert length(found / size * (1 - 1e-4)) <= 1 / component
    assert found >= ends.largest


def test_without_a_penalty_directions_that_h_does_not_see_do_not_count():
    H = matrix_of([*[0.0] * 10, *np.linspace(2, 3, 10)])
    assert lanczos_spectrum(lambda v: H @ v, 20, 0.0).smallest >= 2 - 1e-9
    assert power_spectrum(lambda v: H @ v, 20, 0.0).smallest >= 2 - 1e-9
    assert lanczos_spectrum(lambda v: H @ v, 20, 0.1, accuracy=1e-9).smallest == pytest.approx(0.1, abs=1e-6)
    assert lanczos_spectrum(lambda v: 0 * v, 20, 0.0).largest == 0.0
