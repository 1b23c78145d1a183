"""Eigenvectors and Cholesky factors, of small matrices and of those that BLAS gets its threads back for."""

import numpy as np
import pytest

from rankwise.runtime.decompositions import diagonalise, factorise, singular
from rankwise.runtime.threads import LARGE_MATRIX


@pytest.mark.parametrize("size", [0, 1, 2, 7, LARGE_MATRIX + 5])
@pytest.mark.parametrize("overwrite", [False, True])
def test_eigenvectors(size, overwrite):
    A = np.random.default_rng(size).normal(size=(size, size))
    A += A.T
    given = A.copy()
    values, vectors = diagonalise(given, overwrite=overwrite)
    assert overwrite or np.array_equal(given, A)
    assert np.all(np.diff(values) >= 0)
    np.testing.assert_allclose(vectors * values @ vectors.T, A, atol=1e-10 * max(size, 1))


@pytest.mark.parametrize("size", [0, 1, 2, 7, LARGE_MATRIX + 5])
def test_cholesky_factors(size):
    A = np.random.default_rng(size).normal(size=(size, size))
    A = A @ A.T + np.eye(size)
    factor = A.copy().T
    assert factorise(factor)
    lower = np.tril(factor)
    np.testing.assert_allclose(lower @ lower.T, A, atol=1e-10 * max(size, 1))
    if size:
        A[size // 2, size // 2] = -1.0
        assert not factorise(A.T)


def test_singular_values_of_columns_of_any_length():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 4)) * [1.0, 1e-9, 1e9, 1e-3]
    left, values, right = singular(Z)
    np.testing.assert_allclose((left * values) @ right.T, Z, rtol=1e-9)
