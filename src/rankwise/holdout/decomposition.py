"""The matrix ``M`` of the hold-out formulas, read from a decomposition for any alpha."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rankwise.arrays import Floats, Rows
from rankwise.runtime.decompositions import diagonalise, singular
from rankwise.runtime.threads import large_algebra
from rankwise.solvers.direct import DualSpectrum
from rankwise.solvers.scales import EPS, are_unlike

__all__ = ["DualHoldOut", "HoldOut", "PrimalHoldOut", "Rows"]

_LIMIT = 45.0  # rounding errors: alpha = 0 as a limit


class HoldOut(Protocol):
    """A decomposition from which ``M`` can be read for any alpha."""

    @property
    def rank(self) -> int:
        """The size of the systems of `without`."""

    @property
    def values(self) -> Floats:
        """The eigenvalues σ."""

    @property
    def coordinates(self) -> Floats:
        """Return Φ, (rows, rank), with ``M = identity · I + Φ diag(spectral(α)) Φ'``."""

    @property
    def identity(self) -> float:
        """1 or 0."""

    def spectral(self, alphas: Floats) -> Floats:
        """Return the spectral factors between the coordinates, (alphas, rank)."""

    def of_rows(self, rows: Rows) -> HoldOut:
        """Return the same for some rows, where the others weigh nothing and so have neither pairs nor leverage."""

    def centred(self, direction: Floats) -> HoldOut:
        """Return the decomposition of ``M - uu'``, for the unit vector u that the factor sends to zero."""

    def residual(self, target: Floats, alphas: Floats) -> Floats:
        """Return ``M t`` for each alpha, (alphas, rows, outputs), from a target (rows, outputs)."""

    def diagonals(self, alphas: Floats) -> Floats:
        """Return the diagonal of ``M`` for each alpha, (alphas, rows)."""

    def between(self, rows: slice, columns: slice, alpha: float) -> Floats:
        """Return entries of ``M``; only those off its diagonal are meant."""

    def of_pairs(self, i: Rows, j: Rows, alpha: float) -> Floats:
        """Return ``M_ij`` for pairs of different rows."""

    def inside(self, rows: Rows, alphas: Floats) -> Floats:
        """Return ``M_UU``, (alphas, rows, rows)."""

    def without(self, rows: Rows, alphas: Floats, residual: Floats) -> Floats:
        """Return ``M_UU^-1 e_U`` by a system of the size of the rank, (alphas, rows, outputs)."""


@dataclass(frozen=True)
class PrimalHoldOut:
    """From ``Z'Z = W diag(σ) W'``: few columns, or a reduced set.

    Attributes
    ----------
    features : (rows, rank) float64
        ``ZW``.
    values : (rank,) float64
        ``σ``.
    n_free : int
        So many columns at the end are orthonormal and not penalised: an intercept.
    rounding : float
        What the largest value is multiplied by to get the rounding errors of all.
    """

    features: Floats
    values: Floats
    n_free: int = 0
    rounding: float = EPS

    @classmethod
    def of_design(cls, Z: Floats) -> PrimalHoldOut:
        """Decompose a factored design ``Z = FX``."""
        return cls.with_vectors(Z)[0]

    @classmethod
    def with_vectors(cls, Z: Floats, X: Floats | None = None) -> tuple[PrimalHoldOut, Floats]:
        """Do the same, and return the W as well: coefficients are ``W (σ + α)^-1 (ZW)'t``."""
        with large_algebra(Z.shape[1]):
            if are_unlike(Z, X):
                triangle: Floats = np.asarray(np.linalg.qr(Z, mode="r"))
                _, values, vectors = singular(triangle)
                values, rounding = np.square(values), EPS**2
            else:
                values, vectors = diagonalise(Z.T @ Z, overwrite=True)
                values, rounding = np.maximum(values, 0.0), EPS
            return cls(Z @ vectors, values, rounding=rounding), vectors

    identity = 1.0

    @property
    def rank(self) -> int:
        """The number of columns."""
        return int(self.values.size)

    @property
    def coordinates(self) -> Floats:
        """Return Φ."""
        return self.features

    def spectral(self, alphas: Floats) -> Floats:
        """Return the spectral factors between the coordinates."""
        return -self.shrinkage(alphas)

    def of_rows(self, rows: Rows) -> PrimalHoldOut:
        """Return the same for some rows."""
        return replace(self, features=self.features[rows])

    def centred(self, direction: Floats) -> PrimalHoldOut:
        """Add a free column."""
        features = np.column_stack([self.features, direction])
        return replace(self, features=features, values=np.append(self.values, 1.0), n_free=self.n_free + 1)

    def _shifted(self, alphas: Floats) -> Floats:
        """``σ + α``, (alphas, rank); 1 for free columns."""
        penalty = np.repeat(alphas[:, None], self.rank, axis=1)
        penalty[:, self.rank - self.n_free :] = 0.0
        return self.values + penalty

    def shrinkage(self, alphas: Floats) -> Floats:
        """Return ``1 / (σ + α)``, (alphas, rank); 0 where that is undefined, and 1 for free columns."""
        shifted = self._shifted(alphas)
        # The free columns have length 1 whatever the units of the others: neither is to be lost beside the other.
        penalised = slice(self.rank - self.n_free)
        tiny = self.rounding * self.rank * self.values[penalised].max(initial=0.0)
        is_lost = np.zeros(shifted.shape, dtype=np.bool_)
        is_lost[:, penalised] = shifted[:, penalised] <= tiny
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=~is_lost)

    def residual(self, target: Floats, alphas: Floats) -> Floats:
        """Return ``M t``."""
        return np.asarray(target - _spectral(self.features, self.shrinkage(alphas), target))

    def diagonals(self, alphas: Floats) -> Floats:
        """Return the diagonal of ``M``."""
        return np.asarray(1.0 - self.shrinkage(alphas) @ np.square(self.features).T)

    def between(self, rows: slice, columns: slice, alpha: float) -> Floats:
        """Return entries of ``M`` off its diagonal."""
        d = self.shrinkage(np.array([alpha]))[0]
        return np.asarray((self.features[rows] * -d) @ self.features[columns].T)

    def of_pairs(self, i: Rows, j: Rows, alpha: float) -> Floats:
        """Return ``M_ij``."""
        d = self.shrinkage(np.array([alpha]))[0]
        return np.asarray(np.einsum("pk,k,pk->p", self.features[i], -d, self.features[j]))

    def inside(self, rows: Rows, alphas: Floats) -> Floats:
        """Return ``M_UU``."""
        scaled = self.features[rows] * np.sqrt(self.shrinkage(alphas))[:, None, :]
        out = scaled @ scaled.transpose(0, 2, 1)
        np.negative(out, out=out)
        diagonal = np.einsum("aii->ai", out)
        diagonal += 1.0
        return np.asarray(out)

    def without(self, rows: Rows, alphas: Floats, residual: Floats) -> Floats:
        """Return ``M_UU^-1 e_U`` by Woodbury: these are the normal equations of the other rows."""
        own = self.features[rows]
        # Divided by the roots of what stands on the diagonal: neither large columns nor small ones are to be lost.
        root = np.sqrt(self.shrinkage(alphas))[:, :, None]
        systems = -root * (own.T @ own) * root.transpose(0, 2, 1)
        diagonal = np.einsum("aii->ai", systems)
        diagonal += 1.0
        inner = root * np.linalg.solve(systems, root * (own.T @ residual))
        return np.asarray(residual + own @ inner)


@dataclass(frozen=True)
class DualHoldOut:
    """From ``FKF' = V diag(σ) V'`` with V square: no digits are lost to ``1 - σ/(σ + α)``.

    Attributes
    ----------
    vectors : (rows, rows) float64
    values : (rows,) float64
    rounding : float
        What the largest value is multiplied by to get the rounding errors of all.
    """

    vectors: Floats
    values: Floats
    rounding: float = EPS

    @classmethod
    def of_spectrum(cls, spectrum: DualSpectrum) -> DualHoldOut | PrimalHoldOut:
        """Use a spectrum; one without its negative part or its null space is that of explicit features."""
        if spectrum.values.size == spectrum.vectors.shape[0]:
            return cls(spectrum.vectors, spectrum.values, spectrum.rounding)
        features = spectrum.vectors * np.sqrt(spectrum.values)
        return PrimalHoldOut(features, spectrum.values, rounding=spectrum.rounding)

    identity = 0.0

    @property
    def rank(self) -> int:
        """As many as rows: no group is larger."""
        return int(self.values.size)

    @property
    def coordinates(self) -> Floats:
        """Return Φ."""
        return self.vectors

    def of_rows(self, rows: Rows) -> DualHoldOut:
        """Return the same for some rows; eigenvectors that mix with the others' have the eigenvalue 0."""
        return replace(self, vectors=self.vectors[rows])

    def centred(self, direction: Floats) -> DualHoldOut:
        """Project the direction out: subtracting it later would leave its rounding errors."""
        return replace(self, vectors=self.vectors - np.outer(direction, direction @ self.vectors))

    def spectral(self, alphas: Floats) -> Floats:
        """Return ``α / (σ + α)``."""
        smallest = _LIMIT * self.rounding * self.values.max(initial=0.0)
        alphas = np.maximum(alphas, smallest)[:, None]
        return alphas / (self.values + alphas)

    def residual(self, target: Floats, alphas: Floats) -> Floats:
        """Return ``M t``."""
        return _spectral(self.vectors, self.spectral(alphas), target)

    def diagonals(self, alphas: Floats) -> Floats:
        """Return the diagonal of ``M``."""
        return np.asarray(self.spectral(alphas) @ np.square(self.vectors).T)

    def between(self, rows: slice, columns: slice, alpha: float) -> Floats:
        """Return entries of ``M``."""
        d = self.spectral(np.array([alpha]))[0]
        return np.asarray((self.vectors[rows] * d) @ self.vectors[columns].T)

    def of_pairs(self, i: Rows, j: Rows, alpha: float) -> Floats:
        """Return ``M_ij``."""
        d = self.spectral(np.array([alpha]))[0]
        return np.asarray(np.einsum("pk,k,pk->p", self.vectors[i], d, self.vectors[j]))

    def inside(self, rows: Rows, alphas: Floats) -> Floats:
        """Return ``M_UU``."""
        scaled = self.vectors[rows] * np.sqrt(self.spectral(alphas))[:, None, :]
        return np.asarray(scaled @ scaled.transpose(0, 2, 1))

    def without(self, rows: Rows, alphas: Floats, residual: Floats) -> Floats:
        """Return ``M_UU^-1 e_U``."""
        return np.asarray(np.linalg.solve(self.inside(rows, alphas), residual))


def _spectral(vectors: Floats, weights: Floats, target: Floats) -> Floats:
    """Return ``V diag(d) V't`` for each row d of weights, reading V twice however many there are."""
    weighted = weights.T[:, :, None] * (vectors.T @ target)[:, None, :]
    image = vectors @ weighted.reshape(vectors.shape[1], weights.shape[0] * target.shape[1])
    return np.ascontiguousarray(np.moveaxis(image.reshape(vectors.shape[0], *weighted.shape[1:]), 1, 0))
