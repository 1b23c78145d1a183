"""Penalties of curves and surfaces: differences of neighbouring values, as a change of coordinates.

The values of a curve are ``v = C u`` with a small matrix C, and every solver penalises ``‖u‖²``. With *first
differences*, C cumulates: ``u`` are the steps from knot to knot, in units that make ``‖u‖²`` the integral of the
squared slope over knots evenly spaced from 0 to 1, so that the same alpha means the same smoothness for any number of
knots; and one more coordinate is the column itself, standardised, because knots at quantiles make the straight line
of a long tail expensive (on 209 computers of PMLB the error fell from .149 to .132, that of a linear model). With
*second differences* the first coordinate is a straight line and the others bend it. Levels of a category, and
the value of missing entries, are coordinates themselves: a plain ridge.

Curves are centred under the training rows (C's columns have mean 0), so that the value of missing entries shrinks
towards the average of the column. Means and variances of a curve are weighted by the share of the training rows at each
knot, where the rows of an interval count half at either end. So a standardised column has mean 0 and variance 1 over
its knots; over the rows its variance approaches 1 as the number of knots grows. A surface has ``V = C₁ U C₂'``, the
mixed differences of both sides: as a product of centred curves it contains hardly any main effect, which would be
penalised twice. On `benchmarks/letor_like.py` (30,000 rows, 40 pairs, alpha 1e-4) the pairwise error was .1122 with
these coordinates, .1130 with differences that start at a corner, and .1154 with a ridge on the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import Floats, Ints
from rankwise.design.terms import Curve, Terms

_FLOOR = 0.1  # of the root mean square of the coordinates

PENALTIES = ("difference", "second_difference", "ridge")


class PenaltyCoordinates:
    """The coordinates in which the penalty is a plain ridge: ``values = T u``.

    Parameters
    ----------
    terms : Terms
    masses : sequence of (n_values of the curve,) float64
        The share of the training rows' weight at each value of a curve.
    side_masses : mapping of column to (n_values,) float64
        The same for the sides of the surfaces.
    penalty : str
        One of `PENALTIES`.
    directions : mapping of column to int, optional
        1 for curves that must not fall, -1 for those that must not rise: their steps are not negative.

    """

    def __init__(
        self,
        terms: Terms,
        masses: Sequence[Floats],
        side_masses: Mapping[int, Floats],
        penalty: str = "difference",
        directions: dict[int, int] | None = None,
    ) -> None:
        self.terms, self.penalty = terms, penalty
        self.directions = directions or {}
        curves = [
            curve_basis(curve, mass, penalty, self.directions.get(curve.column, 1), has_line=True)
            for curve, mass in zip(terms.curves, masses, strict=True)
        ]
        self._curves = sp.block_diag(curves, format="csr") if curves else sp.csr_matrix((0, 0))
        of_side: dict[int, Floats] = {}
        pairs = []
        for surface in terms.surfaces:
            for side in (surface.first, surface.second):
                if side.column not in of_side:
                    of_side[side.column] = curve_basis(side, side_masses[side.column], penalty)
            pairs.append((of_side[surface.first.column], of_side[surface.second.column]))
        self.sizes = [c.shape[1] for c in curves] + [a.shape[1] * b.shape[1] for a, b in pairs]
        self.n_coordinates = int(sum(self.sizes))
        self._grids = _Grids.of(pairs, *self._curves.shape)

    @cached_property
    def _transposed(self) -> sp.csr_matrix:
        return self._curves.T.tocsr()

    def to_values(self, u: Floats) -> Floats:
        """Return ``T u``."""
        values = np.empty((self.terms.n_values, *u.shape[1:]))
        n_values, n_coordinates = self._curves.shape
        values[:n_values] = self._curves @ u[:n_coordinates]
        for grids in self._grids:
            grids.to_values(u, values)
        return values

    def from_values(self, g: Floats) -> Floats:
        """Return ``T' g``."""
        u = np.empty((self.n_coordinates, *g.shape[1:]))
        n_values, n_coordinates = self._curves.shape
        u[:n_coordinates] = self._transposed @ g[:n_values]
        for grids in self._grids:
            grids.from_values(g, u)
        return u

    @cached_property
    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """Which coordinates must not be negative: the steps of monotone curves."""
        mask = np.zeros(self.n_coordinates, dtype=np.bool_)
        first = 0
        for curve, size in zip(self.terms.curves, self.sizes, strict=False):
            if curve.column in self.directions and curve.knots.size > 1:
                mask[first : first + curve.knots.size] = True  # its steps, and the line
            first += size
        return mask

    def exact_values(self, u: Floats) -> Floats:
        """Return ``T u``, with the values of monotone curves monotone to the last bit."""
        values = self.to_values(u)
        for number, curve in enumerate(self.terms.curves):
            if curve.column in self.directions:
                at_knots = values[self.terms.values_of(number)][: curve.knots.size]
                direction = self.directions[curve.column]
                at_knots[:] = direction * np.maximum.accumulate(direction * at_knots)
        return values


@dataclass(frozen=True, eq=False)
class Rescaled:
    """Coordinates with a scale for each: ``values = T (scale * u)``.

    A coordinate of scale 2 is penalised a quarter as much.
    """

    base: PenaltyCoordinates
    scale: Floats

    @property
    def n_coordinates(self) -> int:
        """As many as before."""
        return self.base.n_coordinates

    def to_values(self, u: Floats) -> Floats:
        """Return the values of coordinates."""
        return self.base.to_values((u.T * self.scale).T)

    def from_values(self, g: Floats) -> Floats:
        """Return the adjoint."""
        return np.asarray((self.base.from_values(g).T * self.scale).T)


class Rounds(NamedTuple):
    """Numbers of rounds that adapt the penalty, first to the steps of a model, then to its curves and surfaces."""

    steps: int = 0
    terms: int = 0

    @property
    def one_less(self) -> Rounds:
        """All but the last."""
        return Rounds(self.steps, self.terms - 1) if self.terms else Rounds(self.steps - 1)


PLAIN = Rounds()


def adapted_scale(u: Floats, sizes: Sequence[int] | None = None) -> Floats:
    """Return the scale of each coordinate in the next fit, adapted to the coordinates of a model, or to its terms.

    Repeated ridge fits, each scaled by the model of the last, approach another penalty. With about ``√|u|``, it is the
    sum of ``|u|``: few large steps, as in trees, in place of many small ones. With the root mean square of the
    coordinates of a term, given the `sizes` of the terms, it is the number of terms: the few that matter are hardly
    penalised, and the others vanish. Squares are raised by a hundredth of their mean. The penalty of the model ``u``
    itself does not change, so that an alpha keeps its meaning.
    """
    square = float(np.mean(u**2))
    if not square > 0.0:
        return np.ones(u.size)
    if sizes is None:
        scale = (u**2 + _FLOOR**2 * square) ** 0.25
    else:
        of_term = np.repeat(np.arange(len(sizes)), sizes)
        mean = np.bincount(of_term, u**2, len(sizes)) / sizes
        scale = np.sqrt(mean + _FLOOR**2 * square)[of_term]
    return np.asarray(scale * np.sqrt(np.mean((u / scale) ** 2) / square))


@dataclass(frozen=True, eq=False)
class _Grids:
    """Surfaces whose bases have the same shapes: ``V = C₁ U C₂'`` of all of them at once, one side after the other.

    The products of both bases, which would do the same, have as many entries as the square of a grid.
    """

    first: Floats  # (surfaces, values, coordinates)
    second: Floats
    values: Ints  # (surfaces, values of a grid) where they stand among all values
    coordinates: Ints

    @classmethod
    def of(cls, pairs: Sequence[tuple[Floats, Floats]], value: int, coordinate: int) -> list[_Grids]:
        """Return pairs of bases by their shapes; their values and coordinates begin at these places."""
        alike: dict[tuple[int, ...], list[tuple[Floats, Floats, int, int]]] = {}
        for a, b in pairs:
            alike.setdefault((*a.shape, *b.shape), []).append((a, b, value, coordinate))
            value, coordinate = value + len(a) * len(b), coordinate + a.shape[1] * b.shape[1]
        found = []
        for (n, m, other_n, other_m), members in alike.items():
            first, second, values, coordinates = zip(*members, strict=True)
            at_values = np.array(values)[:, None] + np.arange(n * other_n)
            at_coordinates = np.array(coordinates)[:, None] + np.arange(m * other_m)
            found.append(cls(np.array(first), np.array(second), at_values, at_coordinates))
        return found

    def to_values(self, u: Floats, values: Floats) -> None:
        values[self.values] = _on_both_sides(self.first, self.second, u[self.coordinates])

    def from_values(self, g: Floats, u: Floats) -> None:
        u[self.coordinates] = _on_both_sides(
            self.first.transpose(0, 2, 1), self.second.transpose(0, 2, 1), g[self.values]
        )


def _on_both_sides(first: Floats, second: Floats, grids: Floats) -> Floats:
    """Return ``A U B'`` of each surface; `grids` (surfaces, cells) may hold several U of each, (surfaces, cells, k)."""
    n_surfaces, rest = grids.shape[0], grids.shape[2:]
    one = first @ grids.reshape(n_surfaces, first.shape[2], -1)
    both = second[:, None] @ one.reshape(n_surfaces, first.shape[1], second.shape[2], -1)
    return np.asarray(both.reshape(n_surfaces, -1, *rest))


def curve_basis(
    curve: Curve,
    mass: Floats,
    penalty: str = "difference",
    direction: int = 1,
    *,
    has_line: bool = False,
) -> Floats:
    """Return C, (values, coordinates), of one curve or of one side of a surface.

    Parameters
    ----------
    curve : Curve
    mass : (values,) float64
        How the training rows' weight is spread over its values.
    has_line : bool
        Whether first differences are joined by the column itself, standardised over its knots.
    """
    n_knots = curve.knots.size
    if curve.is_levels or penalty == "ridge" or n_knots < 2:
        basis = np.eye(curve.n_values)
        if n_knots and not curve.is_levels and penalty != "ridge":
            basis = basis[:, 1:]  # a single knot is a constant
        return _centred(basis, mass, n_knots) if not curve.is_levels else basis
    steps = np.tril(np.ones((n_knots, n_knots)))[:, 1:]
    if penalty == "difference":
        basis = steps / np.sqrt(n_knots - 1)
        if has_line:
            basis = np.column_stack([basis, _line(curve.knots, mass[:n_knots])])
        basis *= direction
    else:
        position = np.arange(n_knots) / (n_knots - 1)
        bends = np.maximum(np.arange(n_knots)[:, None] - np.arange(1, n_knots - 1), 0.0)
        basis = np.column_stack([position, bends / (n_knots - 1) ** 1.5])
    whole = np.zeros((curve.n_values, basis.shape[1] + curve.has_missing))
    whole[:n_knots, : basis.shape[1]] = basis
    if curve.has_missing:
        whole[n_knots, -1] = 1.0
    return _centred(whole, mass, n_knots)


def _line(knots: Floats, mass: Floats) -> Floats:
    """Return the column at its knots, with the mean 0 and the variance 1 under `mass`; halves do not overflow."""
    position = (knots / 2 - knots[0] / 2) / (knots[-1] / 2 - knots[0] / 2)
    mean = float(np.average(position, weights=mass))
    return np.asarray((position - mean) / np.sqrt(np.average((position - mean) ** 2, weights=mass)))


def _centred(basis: Floats, mass: Floats, n_knots: int) -> Floats:
    """Centre the values at the knots under `mass`; the value of missing entries does not change."""
    total = float(mass[:n_knots].sum())
    if total <= 0:
        return basis
    out = basis.copy()
    out[:n_knots] -= mass[:n_knots] @ basis[:n_knots] / total
    return out
