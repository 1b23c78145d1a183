"""Decompositions: what is singular, what is indefinite, what is out of range, and the least norm."""

import numpy as np
import pytest

from rankwise.data.validation import check_qid
from rankwise.design import DenseDesign
from rankwise.objectives.moved import MatrixQuadratic
from rankwise.pairs.factor import factor_of
from rankwise.pairs.labels import label_graph
from rankwise.solvers.direct import DirectFactor
from rankwise.solvers.dual import DualObjective, DualSpectrum, indefiniteness, is_indefinite, is_positive
from rankwise.solvers.eigen import EigenFactor
from rankwise.solvers.solution import Status

FACTORS = [DirectFactor, EigenFactor]


def matrix_of(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    return (Q * eigenvalues) @ Q.T


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("size", [1e-120, 1.0, 1e120])
def test_a_regular_system_is_solved_exactly(kind, alpha, outputs, size):
    rng = np.random.default_rng(0)
    H, b = size * matrix_of([0.1, 1.0, 5.0]), size * rng.normal(size=(3, outputs))
    b = b[:, 0] if outputs == 1 else b
    kept = H.copy()
    solution = kind(MatrixQuadratic(H, b)).solve(alpha * size)
    assert (solution.status, solution.rank) == (Status.EXACT, None)
    np.testing.assert_allclose((H + alpha * size * np.eye(3)) @ solution.coef / size, b / size, atol=1e-12)
    np.testing.assert_array_equal(H, kept)


@pytest.mark.parametrize("kind", FACTORS)
def test_what_does_not_iterate_has_nothing_to_count_and_nothing_left(kind):
    solution = kind(MatrixQuadratic(np.eye(2), np.ones(2))).solve(1.0)
    assert solution.n_iter == solution.n_products == solution.n_reads == solution.n_restarts == 0
    assert solution.certificate == solution.gain == 0.0
    assert solution.history == []
    assert solution.rank is solution.spectrum is None


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_singular_system_has_its_rank_and_the_least_norm(kind, outputs):
    H = matrix_of([0.0, 0.0, 1.0, 5.0])
    b = H @ np.random.default_rng(0).normal(size=(4, outputs))
    b = b[:, 0] if outputs == 1 else b
    factor = kind(MatrixQuadratic(H, b))
    solution = factor.solve(0.0)
    assert (solution.status, solution.rank) == (Status.SINGULAR, 2)
    np.testing.assert_allclose(solution.coef, np.linalg.pinv(H, rcond=1e-10) @ b, atol=1e-12)
    assert factor.solve(1e-3).status is Status.EXACT


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


def test_what_pivots_lose_is_measured_by_the_number_of_columns():
    """Pivots of a matrix of n columns are rounding below n times that of one number, and not above."""
    eps = np.finfo(np.float64).eps
    for n in (4, 64):
        for share, status in ((0.3, Status.SINGULAR), (8.0, Status.EXACT)):
            H = np.eye(n)
            H[-1, -2] = H[-2, -1] = 1.0
            H[-1, -1] = 1.0 + share * n * eps
            assert DirectFactor(MatrixQuadratic(H, np.eye(n)[0])).solve(0.0).status is status


@pytest.mark.parametrize("kind", FACTORS)
def test_what_is_out_of_range_is_told_before_anything_is_solved(kind):
    for H, b in ((np.diag([np.inf, 1.0]), np.ones(2)), (np.full((2, 2), 1e-300), np.full(2, 1e-150))):
        solution = kind(MatrixQuadratic(H, b)).solve(0.0)
        assert (solution.status, solution.certificate) == (Status.OUT_OF_RANGE, np.inf)
        np.testing.assert_array_equal(solution.coef, 0.0)
    assert (
        kind(MatrixQuadratic(np.full((2, 2), 1e-300), np.full(2, 1e-150))).solve(1.0).status is Status.EXACT
    )
    assert kind(MatrixQuadratic(np.eye(2), np.ones(2))).solve(np.inf).status is Status.OUT_OF_RANGE


class TestDualSpectrum:
    @pytest.mark.parametrize("outputs", [1, 3])
    @pytest.mark.parametrize("alpha", [0.0, 0.5])
    def test_a_positive_matrix_is_inverted(self, outputs, alpha):
        M = matrix_of([0.01, 1.0, 2.0, 7.0])
        t = np.random.default_rng(0).normal(size=(4, outputs))
        t = t[:, 0] if outputs == 1 else t
        spectrum = DualSpectrum.of_matrix(M.copy())
        np.testing.assert_allclose((M + alpha * np.eye(4)) @ spectrum.solve(t, alpha), t, atol=1e-10)
        np.testing.assert_allclose(spectrum.extremes, (0.01, 7.0))
        assert spectrum.vectors.shape == (4, 4)

    @pytest.mark.parametrize("seed", range(6))
    def test_without_a_penalty_the_least_norm_is_taken(self, seed):
        t = np.random.default_rng(0).normal(size=4)
        M = matrix_of([0.0, 0.0, 1.0, 7.0], seed)
        np.testing.assert_allclose(
            DualSpectrum.of_matrix(M.copy()).solve(t, 0.0), np.linalg.pinv(M, rcond=1e-10) @ t, atol=1e-10
        )

    @pytest.mark.parametrize("alpha", [0.0, 0.5])
    def test_an_indefinite_matrix_is_cut_to_its_positive_part(self, alpha):
        M = matrix_of([-3.0, -1e-3, 1e-12, 1.0, 7.0])
        values, vectors = np.linalg.eigh(M)
        spectrum = DualSpectrum.of_matrix(M.copy())
        t = np.random.default_rng(0).normal(size=5)
        positive = vectors[:, 3:]
        expected = positive @ ((positive.T @ t) / (values[3:] + alpha))
        np.testing.assert_allclose(spectrum.solve(t, alpha), expected, atol=1e-10)
        np.testing.assert_allclose(spectrum.extremes, (-3.0, 7.0))
        assert spectrum.values.size == 2

    def test_negative_rounding_is_no_reason_to_drop_anything(self):
        spectrum = DualSpectrum.of_matrix(matrix_of([-1e-11, 0.5, 1.0]))
        assert spectrum.vectors.shape == (3, 3)
        assert spectrum.values.min() == 0.0
        assert spectrum.extremes[0] < 0

    def test_where_nothing_is_positive_nothing_is_left(self):
        spectrum = DualSpectrum.of_matrix(np.diag([-2.0, -1.0]))
        assert spectrum.extremes == (-2.0, 0.0)
        np.testing.assert_array_equal(spectrum.solve(np.ones(2), 1.0), 0.0)


def test_indefiniteness_is_a_share_of_the_largest_absolute_value():
    assert indefiniteness(-1.0, 4.0) == 0.25
    assert indefiniteness(-4.0, 1.0) == 1.0
    assert indefiniteness(-4.0, -1.0) == 1.0
    assert indefiniteness(0.0, 1.0) == indefiniteness(0.5, 1.0) == indefiniteness(0.0, 0.0) == 0.0
    assert is_indefinite(-1e-8, 1.0)
    assert not is_indefinite(-1e-10, 1.0)
    assert is_indefinite(-1e-10, 1e-3)


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


def test_the_dual_quadratic_is_that_of_its_matrices():
    rng = np.random.default_rng(0)
    root, y = rng.normal(size=(9, 9)), rng.normal(size=9)
    K, graph = root @ root.T, label_graph(y, check_qid(np.arange(9) // 3, 9))
    factor = factor_of(graph)
    F = factor.apply(np.eye(9))
    objective = DualObjective(DenseDesign(K.copy()), factor, graph.pull)
    v, block = rng.normal(size=9), rng.normal(size=(9, 4))
    np.testing.assert_allclose(objective.product(v), F @ K @ F.T @ v, atol=1e-9)
    assert objective.n_products == 1
    np.testing.assert_allclose(objective.product(block), F @ K @ F.T @ block, atol=1e-9)
    assert objective.n_products == 5
    assert objective.n_features == 9
    np.testing.assert_allclose(F.T @ objective.rhs, graph.pull, atol=1e-9)
    np.testing.assert_allclose(objective.dual_coefficients(v), F.T @ v, atol=1e-12)
    np.testing.assert_allclose(objective.diagonal(), np.diag(F @ K @ F.T), atol=1e-9)
    np.testing.assert_allclose(objective.matrix(), F @ K @ F.T, atol=1e-9)
