"""Conjugate gradients step by step, against the best point of every Krylov space written out."""

import numpy as np
import pytest

from all_pairs import pairwise
from counting import counting
from oracles import galerkin
from rankwise.objectives import MatrixQuadratic
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.solution import Status


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


def krylov_point(A, b, steps, start=None):
    """The point of ``start + span{r, Ar, ...}`` at which ``w'Aw - 2b'w`` is least."""
    start = np.zeros_like(b) if start is None else start
    basis = [b - A @ start]
    for _ in range(steps - 1):
        vector = A @ basis[-1]
        for _ in range(2):
            for other in basis:
                vector = vector - other * (other @ vector) / (other @ other)
        basis.append(vector / np.linalg.norm(vector))
    return start + galerkin(A, np.column_stack(basis), b - A @ start)


@pairwise(has_start=[False, True], outputs=[1, 3])
def test_every_iterate_is_the_best_of_its_krylov_space(has_start, outputs):
    rng = np.random.default_rng(0)
    H, alpha = matrix_of(np.geomspace(0.1, 10, 8)) * np.outer(*[np.geomspace(0.5, 3, 8)] * 2), 0.3
    b = rng.normal(size=(8, outputs)) * 10.0 ** np.arange(-150, -150 + 100 * outputs, 100)
    start = rng.normal(size=(8, outputs)) * np.abs(b).max(axis=0) if has_start else None
    A = H + alpha * np.eye(8)
    seen = []

    def watch(coef, gap, n_iter):
        seen.append((coef.copy(), gap, n_iter))
        return n_iter == 5

    flat = (lambda v: v[:, 0]) if outputs == 1 else (lambda v: v)
    objective = MatrixQuadratic(H, flat(b))
    products = counting(objective)
    solution = conjugate_gradients(
        objective, alpha, tol=1e-12, monitor=watch,
        start=None if start is None else flat(start),
    )  # fmt: skip
    assert solution.status is Status.STOPPED
    assert [n_iter for _, _, n_iter in seen] == [1, 2, 3, 4, 5]
    assert sum(products) == outputs * (5 + has_start)
    for steps, (coef, gap, _) in enumerate(seen, start=1):
        expected = np.column_stack(
            [krylov_point(A, b[:, k], steps, None if start is None else start[:, k]) for k in range(outputs)]
        )  # fmt: skip
        unit = np.abs(b).max(axis=0)
        np.testing.assert_allclose(coef.reshape(8, -1) / unit, expected / unit, rtol=1e-7, atol=1e-9)
        residual = np.linalg.norm((b - A @ expected) / unit, axis=0) / np.linalg.norm(b / unit, axis=0)
        assert gap == pytest.approx(residual.max(), rel=1e-7)
        assert solution.history[steps - 1] == gap
    np.testing.assert_array_equal(solution.coef, seen[-1][0])
    assert solution.certificate == seen[-1][1]
    cut = conjugate_gradients(
        objective, alpha, tol=1e-12, max_iter=5,
        start=None if start is None else flat(start),
    )  # fmt: skip
    np.testing.assert_array_equal(cut.coef, solution.coef)
    assert cut.history == solution.history
    assert sum(products) == 2 * outputs * (5 + has_start)


@pytest.mark.parametrize("n_distinct", [1, 2, 5])
def test_as_many_steps_as_distinct_eigenvalues(n_distinct):
    H = matrix_of(np.repeat(np.arange(1.0, n_distinct + 1), 4))
    b = np.random.default_rng(1).normal(size=H.shape[0])
    objective = MatrixQuadratic(H, b)
    products = counting(objective)
    solution = conjugate_gradients(objective, 0.5, tol=1e-9)
    assert (solution.status, solution.n_iter, sum(products)) == (Status.CONVERGED, n_distinct, n_distinct)
    # Below 1e-9 the residual is measured once more before it is believed.
    products.clear()
    solution = conjugate_gradients(objective, 0.5, tol=0.99e-9)
    assert (solution.status, solution.n_iter, sum(products)) == (Status.CONVERGED, n_distinct, n_distinct + 1)


def test_a_tight_tolerance_is_met_by_the_true_residual_or_not_at_all():
    """Solutions are so large that the recurrence believes in less than it has: it starts over, from the truth."""
    H, n_restarts, n_met = matrix_of(np.geomspace(1e-5, 1, 40)), 0, 0
    for seed in range(3):
        b = np.random.default_rng(seed).normal(size=40)
        for tol in (1e-11, 3e-12, 1e-12):
            objective = MatrixQuadratic(H, b)
            products = counting(objective)
            solution = conjugate_gradients(objective, 1e-6, tol=tol)
            true = np.linalg.norm(b - H @ solution.coef - 1e-6 * solution.coef) / np.linalg.norm(b)
            assert solution.certificate == solution.history[-1] == pytest.approx(true, rel=1e-3)
            assert solution.status is (Status.CONVERGED if solution.certificate <= tol else Status.STAGNATED)
            n_restarts += sum(products) - solution.n_iter - 1
            n_met += solution.certificate <= tol
    assert 1 <= n_restarts <= 20
    assert n_met >= 5


def test_a_start_that_is_the_solution_takes_no_step():
    H, b = matrix_of([1.0, 2.0, 5.0]), np.ones(3)
    exact = np.linalg.solve(H + np.eye(3), b)
    objective = MatrixQuadratic(H, b)
    products = counting(objective)
    solution = conjugate_gradients(objective, 1.0, start=exact)
    assert (solution.status, solution.n_iter, sum(products)) == (Status.CONVERGED, 0, 1)
    assert solution.certificate < 1e-14
    np.testing.assert_array_equal(solution.coef, exact)
