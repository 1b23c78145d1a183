"""Decompositions: what is singular, what is indefinite, what is out of range, and the least norm."""

import numpy as np
import pytest

from all_pairs import pairwise
from rankwise.objectives import MatrixQuadratic
from rankwise.solvers.direct import (
    DirectFactor,
    is_positive,
    solve_by_eigenvalues,
)
from rankwise.solvers.solution import Status

SOLVES = [lambda objective, alpha: DirectFactor(objective).solve(alpha), solve_by_eigenvalues]


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


@pairwise(solve=SOLVES, alpha=[0.0, 0.7], outputs=[1, 3], size=[1e-120, 1.0, 1e120])
def test_a_regular_system_is_solved_exactly(solve, alpha, outputs, size):
    rng = np.random.default_rng(0)
    H, b = size * matrix_of([0.1, 1.0, 5.0]), size * rng.normal(size=(3, outputs))
    b = b[:, 0] if outputs == 1 else b
    kept = H.copy()
    solution = solve(MatrixQuadratic(H, b), alpha * size)
    assert (solution.status, solution.rank) == (Status.EXACT, None)
    np.testing.assert_allclose((H + alpha * size * np.eye(3)) @ solution.coef / size, b / size, atol=1e-12)
    np.testing.assert_array_equal(H, kept)


@pytest.mark.parametrize("solve", SOLVES)
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_singular_system_has_its_rank_and_the_least_norm(solve, outputs):
    H = matrix_of([0.0, 0.0, 1.0, 5.0])
    b = H @ np.random.default_rng(0).normal(size=(4, outputs))
    b = b[:, 0] if outputs == 1 else b
    objective = MatrixQuadratic(H, b)
    solution = solve(objective, 0.0)
    assert (solution.status, solution.rank) == (Status.SINGULAR, 2)
    np.testing.assert_allclose(solution.coef, np.linalg.pinv(H, rcond=1e-10) @ b, atol=1e-12)
    assert solve(objective, 1e-3).status is Status.EXACT


@pytest.mark.parametrize(("difference", "status"), [(1e-5, Status.EXACT), (1e-10, Status.SINGULAR)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_two_columns_that_are_nearly_the_same(difference, status, scale):
    """Cholesky goes through both; a pivot of the square of 1e-10 is rounding, whatever another column's scale is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X = np.column_stack([X, X[:, 2] + difference * rng.normal(size=30)]) * [1.0, 1.0, scale, scale]
    H, b = X.T @ X, X.T @ rng.normal(size=30)
    solution = DirectFactor(MatrixQuadratic(H, b)).solve(0.0)
    if status is Status.EXACT:
        assert solution.status is status
    else:
        assert solution.status is status or scale != 1.0
        np.testing.assert_allclose(H @ solution.coef, b, atol=1e-8 * np.abs(b).max())


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_positive_matrices_are_told_from_indefinite_ones(size):
    assert is_positive(size * matrix_of([0.0, 1.0, 3.0]))
    assert is_positive(size * matrix_of([-1e-12, 1.0, 3.0]))
    assert not is_positive(size * matrix_of([-1e-6, 1.0, 3.0]))
    assert not is_positive(size * np.diag([1.0, -1.0]))
    kernel = size * matrix_of([1.0, 2.0])
    kept = kernel.copy()
    is_positive(kernel)
    np.testing.assert_array_equal(kernel, kept)
    assert is_positive(np.zeros((2, 2)))
    assert is_positive(np.zeros((0, 0)))
