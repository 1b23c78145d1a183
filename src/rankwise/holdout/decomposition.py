"""Groups of rows held out by the matrix ``M`` of the hold-out formulas, which a decomposition gives for any alpha.

Groups are whole queries, folds of them, or folds of the rows of one ranking. A large one is solved directly. A group
that is a small part of the data has little leverage: ``M_UU = I - H`` with ``H = Z_U (Z'Z + αI)^-1 Z_U'`` close to
zero, so a handful of steps of conjugate gradients from ``e_U`` itself solve its system to the last digit. A step
multiplies by ``Z_U`` twice for all alphas together, where forming and factorising ``M_UU`` takes a matrix an alpha.
Groups of about one size are padded to it with rows of zeros, whose equations read ``x = 0``, and so a batch is one
array. Where such a group has much leverage after all, the steps run out, and it is solved directly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats, Rows
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.decompositions import diagonalise, singular
from rankwise.runtime.threads import blas_held, large_algebra
from rankwise.solvers.direct import DualSpectrum
from rankwise.solvers.scales import EPS, are_unlike

_LIMIT = 45.0  # rounding errors: alpha = 0 as a limit
_BATCH_FEATURES = 1 << 18  # doubles of features in a batch: 2 MB stay in cache from step to step
# Measured for groups of 20 to 70 rows, 46 to 500 columns and 2 to 1000 rows a column: convergence takes 4 steps where
# groups have little leverage and up to 24 where a group is a twentieth of the data, at a sixth to two thirds of the
# price of a direct solution; where 24 do not suffice they have cost a third of it.
_STEPS = 24
_TOLERANCE = 1e-14  # of the residual
_LARGE = 500  # rows in a group, from which on its own linear algebra is worth several threads
_FEW = 1 << 20  # numbers in all systems together, below which starting threads takes longer than solving them
_BATCH = 1 << 20  # doubles in a batch of small systems: they stay in cache

Task = TypeVar("Task")


@dataclass(frozen=True)
class HoldOut(ABC):
    """``M = identity · I + Φ diag(spectral(α)) Φ'``, from a decomposition for any alpha.

    Attributes
    ----------
    coordinates : (rows, rank) float64
        Φ.
    values : (rank,) float64
        The eigenvalues σ.
    rounding : float
        The factor from the largest value to the rounding errors of all.
    """

    coordinates: Floats
    values: Floats
    rounding: float = EPS

    identity: ClassVar[float]

    @property
    def rank(self) -> int:
        """The number of coordinates, and of rows in the largest system of `without`."""
        return int(self.values.size)

    @abstractmethod
    def spectral(self, alphas: Floats) -> Floats:
        """Return the spectral factors between the coordinates, (alphas, rank)."""

    @abstractmethod
    def centred(self, direction: Floats) -> Self:
        """Return the decomposition of ``M - uu'``, for the unit vector u that the factor sends to zero."""

    def without(self, rows: Rows, alphas: Floats, residual: Floats) -> Floats:
        """Return ``M_UU^-1 e_U``, (alphas, rows, outputs)."""
        return np.asarray(np.linalg.solve(self.inside(rows, alphas), residual))

    def of_rows(self, rows: Rows) -> Self:
        """Return the same for some rows, where the others weigh nothing and so have neither pairs nor leverage."""
        return replace(self, coordinates=self.coordinates[rows])

    def residual(self, target: Floats, alphas: Floats) -> Floats:
        """Return ``M t`` for each alpha, (alphas, rows, outputs), from a target (rows, outputs)."""
        phi, factors = self.coordinates, self.spectral(alphas)
        # Φ is read twice, however many alphas there are.
        weighted = factors.T[:, :, None] * (phi.T @ target)[:, None, :]
        image = phi @ weighted.reshape(phi.shape[1], alphas.size * target.shape[1])
        image = np.moveaxis(image.reshape(phi.shape[0], *weighted.shape[1:]), 1, 0)
        return np.ascontiguousarray(self.identity * target + image)

    def diagonals(self, alphas: Floats) -> Floats:
        """Return the diagonal of ``M`` for each alpha, (alphas, rows)."""
        return np.asarray(self.identity + self.spectral(alphas) @ np.square(self.coordinates).T)

    def between(self, rows: slice, columns: slice, alpha: float) -> Floats:
        """Return entries of ``M``; only those off its diagonal are meant."""
        factors = self.spectral(np.array([alpha]))[0]
        return np.asarray((self.coordinates[rows] * factors) @ self.coordinates[columns].T)

    def inside(self, rows: Rows, alphas: Floats) -> Floats:
        """Return ``M_UU``, (alphas, rows, rows)."""
        factors = self.spectral(alphas)
        scaled = self.coordinates[rows] * np.sqrt(np.abs(factors))[:, None, :]
        out = scaled @ scaled.transpose(0, 2, 1)
        if self.identity:  # whose factors are negative
            np.negative(out, out=out)
            diagonal = np.einsum("aii->ai", out)
            diagonal += self.identity
        return np.asarray(out)


@dataclass(frozen=True)
class PrimalHoldOut(HoldOut):
    """From ``Z'Z = W diag(σ) W'``: few columns, or a reduced set. The coordinates are ``ZW``.

    Attributes
    ----------
    n_free : int
        So many columns at the end are orthonormal and not penalised: an intercept.
    """

    n_free: int = 0

    identity = 1.0

    @classmethod
    def with_vectors(cls, Z: Floats, X: Floats | None = None) -> tuple[PrimalHoldOut, Floats]:
        """Decompose a factored design ``Z = FX``, and return the W too: coefficients are ``W (σ + α)^-1 (ZW)'t``."""
        with large_algebra(Z.shape[1]):
            if are_unlike(Z, X):
                triangle: Floats = np.asarray(np.linalg.qr(Z, mode="r"))
                _, values, vectors = singular(triangle)
                values, rounding = np.square(values), EPS**2
            else:
                values, vectors = diagonalise(Z.T @ Z, overwrite=True)
                values, rounding = np.maximum(values, 0.0), EPS
            return cls(Z @ vectors, values, rounding), vectors

    def spectral(self, alphas: Floats) -> Floats:
        """Return ``-1 / (σ + α)``."""
        return -self.shrinkage(alphas)

    def centred(self, direction: Floats) -> PrimalHoldOut:
        """Add a free column."""
        coordinates = np.column_stack([self.coordinates, direction])
        values = np.append(self.values, 1.0)
        return replace(self, coordinates=coordinates, values=values, n_free=self.n_free + 1)

    def shrinkage(self, alphas: Floats) -> Floats:
        """Return ``1 / (σ + α)``, (alphas, rank); 0 where that is undefined, and 1 for free columns."""
        # The free columns have length 1 whatever the units of the others: neither is to be lost beside the other.
        penalised = slice(self.rank - self.n_free)
        shifted = np.repeat(self.values[None], alphas.size, axis=0)
        shifted[:, penalised] += alphas[:, None]
        tiny = self.rounding * self.rank * self.values[penalised].max(initial=0.0)
        is_lost = np.zeros(shifted.shape, dtype=np.bool_)
        is_lost[:, penalised] = shifted[:, penalised] <= tiny
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=~is_lost)

    def without(self, rows: Rows, alphas: Floats, residual: Floats) -> Floats:
        """Return ``M_UU^-1 e_U``, of large groups by Woodbury: these are the normal equations of the other rows."""
        if rows.size <= self.rank:
            return super().without(rows, alphas, residual)
        own = self.coordinates[rows]
        # Divided by the roots of what stands on the diagonal: neither large columns nor small ones are to be lost.
        root = np.sqrt(self.shrinkage(alphas))[:, :, None]
        systems = -root * (own.T @ own) * root.transpose(0, 2, 1)
        diagonal = np.einsum("aii->ai", systems)
        diagonal += 1.0
        inner = root * np.linalg.solve(systems, root * (own.T @ residual))
        return np.asarray(residual + own @ inner)


@dataclass(frozen=True)
class DualHoldOut(HoldOut):
    """From ``FKF' = V diag(σ) V'`` with V square: no digits are lost to ``1 - σ/(σ + α)``."""

    identity = 0.0

    @classmethod
    def of_spectrum(cls, spectrum: DualSpectrum) -> HoldOut:
        """Use a spectrum; one without its negative part or its null space is that of explicit features."""
        if spectrum.values.size == spectrum.vectors.shape[0]:
            return cls(spectrum.vectors, spectrum.values, spectrum.rounding)
        features = spectrum.vectors * np.sqrt(spectrum.values)
        return PrimalHoldOut(features, spectrum.values, spectrum.rounding)

    def spectral(self, alphas: Floats) -> Floats:
        """Return ``α / (σ + α)``."""
        smallest = _LIMIT * self.rounding * self.values.max(initial=0.0)
        alphas = np.maximum(alphas, smallest)[:, None]
        return alphas / (self.values + alphas)

    def centred(self, direction: Floats) -> DualHoldOut:
        """Project the direction out: subtracting it later would leave its rounding errors."""
        return replace(self, coordinates=self.coordinates - np.outer(direction, direction @ self.coordinates))


def groups_of(codes: npt.NDArray[np.integer]) -> list[Rows]:
    """Return the rows of each code, as the groups that are held out in turn; negative codes never are."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(int(codes.max(initial=-1)) + 2))
    return [order[a:b] for a, b in pairwise(bounds) if b > a]


def held_out_residuals(
    decomposition: HoldOut,
    target: Floats,
    groups: Sequence[Rows],
    alphas: Floats,
    *,
    n_threads: int = 1,
) -> Floats:
    """Return the residual of each group under the model that was fitted without it.

    Parameters
    ----------
    decomposition : HoldOut
        For one global ranking, `HoldOut.centred`.
    target : (rows, outputs) float64
        ``t``. Predictions in the factor's coordinates are ``t`` minus the residuals.
    groups : sequence of row indices
        Disjoint; no pair joins a group to the other rows, unless there is one global ranking.
    alphas : (alphas,) float64
    n_threads : int
        The number of threads that share the groups.

    Returns
    -------
    (alphas, rows, outputs) float64
        NaN for rows in no group.
    """
    residual = decomposition.residual(target, alphas)
    out = np.full_like(residual, np.nan)

    def leave_out(rows: Rows) -> None:
        # A large group has one matrix for all alphas of a batch: batches of one would make it for every alpha.
        for some in _batches(alphas.size, min(rows.size, decomposition.rank) ** 2):
            try:
                out[some, rows] = decomposition.without(rows, alphas[some], residual[some][:, rows])
            except np.linalg.LinAlgError as error:
                raise InvalidInputError(
                    "The alphas vanish by rounding beside columns as large as these.",
                    "scale the columns, for example with sklearn.preprocessing.StandardScaler, or use larger alphas.",
                ) from error

    def leave_out_batch(batch: Sequence[Rows]) -> None:
        assert isinstance(decomposition, PrimalHoldOut)
        out[:, np.concatenate(batch)], converged = solve_in_lockstep(decomposition, batch, alphas, residual)
        for at in np.flatnonzero(~converged).tolist():
            leave_out(batch[at])

    largest = max((rows.size for rows in groups), default=0)
    if largest > _LARGE or len(groups) < n_threads:
        for rows in groups:
            with large_algebra(rows.size):
                leave_out(rows)
        return out
    rank = decomposition.rank
    if alphas.size * sum(rows.size * min(rows.size, rank) for rows in groups) < _FEW:
        n_threads = 1
    # Threads of the linear algebra library lose more by waiting for each other than they win here.
    with blas_held():
        if isinstance(decomposition, PrimalHoldOut) and largest <= decomposition.rank:
            _share_out(leave_out_batch, list(_batches_of_like_size(groups, decomposition.rank)), n_threads)
        else:
            _share_out(leave_out, groups, n_threads)
    return out


def _share_out(work: Callable[[Task], None], tasks: Sequence[Task], n_threads: int) -> None:
    """Call `work` with every task, on several threads where there are several tasks for them."""
    if min(n_threads, len(tasks)) == 1:
        for task in tasks:
            work(task)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, tasks))


def _batches(n_alphas: int, system_size: int) -> Iterator[slice]:
    step = max(1, _BATCH // max(1, system_size))
    for first in range(0, n_alphas, step):
        yield slice(first, first + step)


def _batches_of_like_size(groups: Sequence[Rows], n_columns: int) -> Iterator[list[Rows]]:
    """Yield groups of about the same size, in batches whose features fit in cache."""
    batch: list[Rows] = []
    for rows in sorted(groups, key=len):
        if batch and (
            (len(batch) + 1) * rows.size * n_columns > _BATCH_FEATURES or 4 * batch[0].size < 3 * rows.size
        ):
            yield batch
            batch = []
        batch.append(rows)
    if batch:
        yield batch


def solve_in_lockstep(
    decomposition: PrimalHoldOut, groups: Sequence[Rows], alphas: Floats, residual: Floats
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return ``M_UU^-1 e_U`` for the rows of one group after the other, and which groups converged.

    Parameters
    ----------
    residual : (alphas, all rows, outputs) float64

    Returns
    -------
    solution : (alphas, rows of the groups, outputs) float64
    converged : (groups,) bool
    """
    sizes = np.array([rows.size for rows in groups])
    is_row = np.arange(sizes.max()) < sizes[:, None]
    index = np.zeros(is_row.shape, dtype=np.int64)
    index[is_row] = np.concatenate(groups)
    n_alphas, _, n_outputs = residual.shape
    features = decomposition.coordinates[index]
    features[~is_row] = 0.0
    own = np.moveaxis(residual[:, index], 0, 2).reshape(*index.shape, n_alphas * n_outputs)
    own[~is_row] = 0.0
    shrinkage = np.repeat(decomposition.shrinkage(alphas).T, n_outputs, axis=1)
    solution, converged = _conjugate_gradients(features, shrinkage, own)
    return np.moveaxis(solution[is_row].reshape(-1, n_alphas, n_outputs), 1, 0), converged


def _conjugate_gradients(Z: Floats, d: Floats, e: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Solve ``(I - Z diag(d_c) Z') x_c = e_c``, column by column of a batch (groups, rows, columns)."""

    def leverage(v: Floats) -> Floats:
        inside = Z.transpose(0, 2, 1) @ v
        inside *= d
        return np.asarray(Z @ inside)

    x = e.copy()
    r = leverage(e)
    p = r.copy()
    rho = _dots(r, r)
    enough = _TOLERANCE**2 * _dots(e, e)
    for _ in range(_STEPS):
        if (rho <= enough).all():
            break
        q = p - leverage(p)
        curvature = _dots(p, q)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=(curvature > 0) & (rho > enough))
        x += step * p
        r -= step * q
        before, rho = rho, _dots(r, r)
        p *= np.divide(rho, before, out=np.zeros_like(rho), where=before > 0)
        p += r
    return x, np.asarray((rho <= enough).all(axis=(1, 2)))


def _dots(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("gic,gic->gc", a, b))[:, None, :]
