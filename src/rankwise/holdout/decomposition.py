"""The matrix ``M`` of the hold-out formulas, read from a decomposition for any alpha."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.runtime.decompositions import diagonalise, singular
from rankwise.runtime.threads import large_algebra
from rankwise.solvers.direct import DualSpectrum
from rankwise.solvers.scales import EPS, are_unlike

__all__ = ["DualHoldOut", "HoldOut", "PrimalHoldOut", "Rows"]

_LIMIT = 45.0  # rounding errors: alpha = 0 as a limit


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
        """The size of the systems of `without`."""
        return int(self.values.size)

    @abstractmethod
    def spectral(self, alphas: Floats) -> Floats:
        """Return the spectral factors between the coordinates, (alphas, rank)."""

    @abstractmethod
    def centred(self, direction: Floats) -> Self:
        """Return the decomposition of ``M - uu'``, for the unit vector u that the factor sends to zero."""

    @abstractmethod
    def without(self, rows: Rows, alphas: Floats, residual: Floats) -> Floats:
        """Return ``M_UU^-1 e_U`` by a system of the size of the rank, (alphas, rows, outputs)."""

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
        """Return ``M_UU^-1 e_U`` by Woodbury: these are the normal equations of the other rows."""
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

    def without(self, rows: Rows, alphas: Floats, residual: Floats) -> Floats:
        """Return ``M_UU^-1 e_U``; no group is larger than the rank."""
        return np.asarray(np.linalg.solve(self.inside(rows, alphas), residual))
