"""What is read from a decomposition, against the matrix ``M`` written out."""

import numpy as np
import pytest

from all_pairs import pairwise
from rankwise.holdout.decomposition import DualHoldOut, PrimalHoldOut
from rankwise.solvers.direct import DualSpectrum

ROWS = 9
ALPHAS = np.array([1e-3, 0.1, 1.0, 30.0])
KINDS = ["primal", "dual", "features of an indefinite kernel"]


def design(scale=1.0):
    """A column twice, a column of zeros, and a row twice."""
    Z = np.random.default_rng(0).normal(size=(ROWS, 4)) * scale
    Z[:, 2] = Z[:, 1]
    Z[:, 3] = 0.0
    Z[5] = Z[4]
    return Z


def hold_out(kind, Z):
    if kind == "primal":
        return PrimalHoldOut.with_vectors(Z)[0]
    K = Z @ Z.T
    if kind != "dual":  # what is below zero is cut off, and the kernel of Z is left
        orthogonal = np.linalg.svd(Z)[0][:, -1]
        K -= 0.3 * np.trace(K) * np.outer(orthogonal, orthogonal)
    return DualHoldOut.of_spectrum(DualSpectrum.of_matrix(K))


def matrix_of(Z, alpha, u=None):
    """``M``, or ``M - uu'``."""
    inner = Z.T @ Z + alpha * np.eye(Z.shape[1])
    M = np.eye(len(Z)) - Z @ np.linalg.solve(inner, Z.T)
    return M if u is None else M - np.outer(u, u)


def centred_problem(kind, is_centred):
    """A decomposition, and M for each alpha; where it is centred, of a design that the direction is orthogonal to."""
    Z, u = design(), None
    if is_centred:
        u = np.sqrt(np.arange(1.0, ROWS + 1))
        u /= np.linalg.norm(u)
        Z -= np.outer(u, u @ Z)
    decomposition = hold_out(kind, Z)
    return decomposition if u is None else decomposition.centred(u), [
        matrix_of(Z, alpha, u) for alpha in ALPHAS
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_centred", [False, True])
def test_every_way_to_read_the_matrix(kind, is_centred):
    decomposition, Ms = centred_problem(kind, is_centred)
    target = np.random.default_rng(1).normal(size=(ROWS, 2))
    residual, diagonals = decomposition.residual(target, ALPHAS), decomposition.diagonals(ALPHAS)
    rows, columns = slice(1, 4), slice(4, ROWS)  # off the diagonal
    some, coordinates = np.array([6, 0, 3]), decomposition.coordinates
    inside = decomposition.inside(some, ALPHAS)
    assert coordinates.shape == (ROWS, decomposition.rank)
    for a, (alpha, M) in enumerate(zip(ALPHAS, Ms, strict=True)):
        near = {"rtol": 0, "atol": 1e-10}
        between = coordinates * decomposition.spectral(ALPHAS)[a] @ coordinates.T
        np.testing.assert_allclose(decomposition.identity * np.eye(ROWS) + between, M, **near)
        np.testing.assert_allclose(residual[a], M @ target, **near)
        np.testing.assert_allclose(diagonals[a], np.diag(M), **near)
        np.testing.assert_allclose(decomposition.between(rows, columns, alpha), M[rows, columns], **near)
        np.testing.assert_allclose(inside[a], M[np.ix_(some, some)], **near)


@pairwise(kind=KINDS, is_centred=[False, True], size=[1, 3, 7])
def test_groups_of_any_size_by_a_system_of_the_rank(kind, is_centred, size):
    decomposition, Ms = centred_problem(kind, is_centred)
    rng = np.random.default_rng(size)
    rows = rng.permutation(ROWS)[:size]
    own = rng.normal(size=(ALPHAS.size, size, 2))
    found = decomposition.without(rows, ALPHAS, own)
    for a, M in enumerate(Ms):
        np.testing.assert_allclose(M[np.ix_(rows, rows)] @ found[a], own[a], rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_weigh_nothing_are_left_out(kind):
    """Before the direction that the centering removes is, or after."""
    rows = np.delete(np.arange(ROWS), [0, 7])
    u = np.zeros(ROWS)
    u[rows] = rows.size**-0.5
    Z = design() - design()[rows].mean(axis=0)
    Z[[0, 7]] = 0.0
    whole, target = hold_out(kind, Z), np.random.default_rng(1).normal(size=(rows.size, 1))
    for found, direction in (
        (whole.of_rows(rows), None),
        (whole.of_rows(rows).centred(u[rows]), u[rows]),
        (whole.centred(u).of_rows(rows), u[rows]),
    ):
        for a, residual in enumerate(found.residual(target, ALPHAS)):
            expected = matrix_of(Z[rows], ALPHAS[a], direction) @ target
            np.testing.assert_allclose(residual, expected, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("kind", KINDS)
def test_units_of_the_columns_do_not_matter(kind, scale):
    target = np.random.default_rng(1).normal(size=(ROWS, 1))
    found = hold_out(kind, design(scale)).residual(target, ALPHAS * scale**2)
    for a, alpha in enumerate(ALPHAS):
        np.testing.assert_allclose(found[a], matrix_of(design(), alpha) @ target, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("n_free", [0, 1])
def test_columns_that_are_rounding_do_not_fit_when_alpha_is_0(scale, n_free):
    Z = design()
    u = np.linalg.svd(Z)[0][:, 3]
    decomposition = hold_out("primal", Z * scale)
    decomposition = decomposition.centred(u) if n_free else decomposition
    orthogonal = np.delete(np.linalg.svd(Z)[0], [0, 1, 3] if n_free else [0, 1], axis=1)  # of two directions
    target = np.random.default_rng(1).normal(size=(ROWS, 1))
    found = decomposition.residual(target, np.zeros(1))[0]
    np.testing.assert_allclose(found, orthogonal @ (orthogonal.T @ target), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_alpha_0_holds_rows_out_of_a_kernel_as_its_limit_does(scale):
    """A kernel without null space fits all rows exactly, and says what they would be without each other."""
    rng = np.random.default_rng(0)
    Z, t = rng.normal(size=(ROWS, ROWS)), rng.normal(size=(ROWS, 1))
    decomposition = hold_out("dual", Z * scale)
    rows, rest = np.array([1, 6]), np.delete(np.arange(ROWS), [1, 6])
    held_out = decomposition.without(rows, np.zeros(1), decomposition.residual(t, np.zeros(1))[:, rows])
    K = Z @ Z.T
    expected = t[rows] - K[np.ix_(rows, rest)] @ np.linalg.solve(K[np.ix_(rest, rest)], t[rest])
    np.testing.assert_allclose(held_out[0], expected, rtol=1e-6)
