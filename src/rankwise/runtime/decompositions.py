"""Decompositions of matrices by SciPy, with the threads of BLAS where the matrix is large."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotrf

from rankwise.arrays import Floats
from rankwise.runtime.threads import large_algebra


def diagonalise(matrix: Floats, *, overwrite: bool = False) -> tuple[Floats, Floats]:
    """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, by divide and conquer.

    Parameters
    ----------
    matrix : (n, n) float64
        Its lower half is used.
    overwrite : bool
        Whether the matrix may be overwritten.
    """
    driver = "evd" if matrix.shape[0] > 1 else "ev"  # SciPy 1.11 asks for too little room for one number
    with large_algebra(matrix.shape[0]):
        values, vectors = scipy.linalg.eigh(matrix, check_finite=False, overwrite_a=overwrite, driver=driver)
    return values, vectors


def singular(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the left singular vectors, the singular values in descending order, and the right singular vectors.

    Columns may differ in length by as much as numbers can. The eigenvalues of ``Z'Z`` are the squares of the singular
    values, and the small ones get lost beside the rounding errors of the largest. Orthogonal triangles from both sides,
    the large columns first, leave a matrix that is nearly diagonal: small entries are never added to large ones.
    """
    order = np.argsort(-np.abs(matrix).max(axis=0, initial=0.0), kind="stable")
    with large_algebra(min(matrix.shape)):
        left, triangle = np.linalg.qr(matrix[:, order])
        right, triangle = np.linalg.qr(triangle.T)
        inner_left, values, inner_right = np.linalg.svd(triangle.T)
        vectors = np.empty_like(right)
        vectors[order] = right @ inner_right.T
        return left @ inner_left, values, vectors


def factorise(matrix: Floats) -> bool:
    """Replace the lower half of a symmetric matrix by its Cholesky factor; tell whether it is positive definite.

    Parameters
    ----------
    matrix : (n, n) float64, in Fortran order
    """
    with large_algebra(matrix.shape[0]):
        return bool(dpotrf(matrix, lower=1, overwrite_a=1, clean=0)[1] == 0)
