"""What is penalised of a curve: differences of neighbouring values, as a change of coordinates.

The values of a curve are ``v = C u`` with a small matrix C, and every solver penalises ``‖u‖²``. With *first
differences*, C cumulates: ``u`` are the steps from knot to knot, in units that make ``‖u‖²`` the integral of the
squared slope over knots evenly spaced from 0 to 1, so that the same alpha means the same smoothness for any number of
knots; and one more coordinate is the column itself, standardised, because knots at quantiles make the straight line
of a long tail expensive (on 209 computers of PMLB the error fell from .149 to .132, that of a linear model). With
*second differences* the first coordinate is a straight line and the others bend it. Levels of a category, and the
value of what is missing, are coordinates themselves: a plain ridge.

Curves are centred under the training rows (C's columns have mean 0), so that what is missing is drawn towards the
average of the column. A surface has ``V = C₁ U C₂'``, the mixed differences of both sides: as a product of centred
curves it holds hardly any main effect, which would be penalised twice. On `benchmarks/letor_like.py` (30,000 rows, 40
pairs, alpha 1e-4) that made the pairwise error .1122, where differences that start at a corner made .1130 and a ridge
on the values .1154.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from rankwise.arrays import Floats
from rankwise.cached import cached_property
from rankwise.terms import Curve, Terms

__all__ = ["PENALTIES", "PenaltyCoordinates", "curve_basis"]

PENALTIES = ("difference", "second_difference", "ridge")


class PenaltyCoordinates:
    """The coordinates in which the penalty is a plain ridge: ``values = T u``.

    Parameters
    ----------
    terms : Terms
    masses : sequence of (n_values of the curve,) float64
        How much of the training rows' weight the values of every curve get.
    side_masses : mapping of column to (n_values,) float64
        The same of the sides of the surfaces.
    penalty : str
        One of `PENALTIES`.
    directions : mapping of column to int, optional
        1 for curves that must not fall, -1 for those that must not rise: their steps are not negative.

    Attributes
    ----------
    matrix : CSR matrix (n_values, n_coordinates)
        T.
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
        self._masses = masses
        blocks = [
            curve_basis(curve, mass, penalty, self.directions.get(curve.column, 1), has_line=True)
            for curve, mass in zip(terms.curves, masses, strict=True)
        ]
        sides = {s.column: s for surface in terms.surfaces for s in (surface.first, surface.second)}
        of_side = {column: curve_basis(side, side_masses[column], penalty) for column, side in sides.items()}
        pairs = [(of_side[s.first.column], of_side[s.second.column]) for s in terms.surfaces]
        blocks += [np.asarray(np.kron(*pair), dtype=np.float64) for pair in pairs]
        self.sizes = [block.shape[1] for block in blocks]
        self.matrix = sp.block_diag(blocks, format="csr") if blocks else sp.csr_matrix((0, 0))

    @property
    def n_coordinates(self) -> int:
        """How many there are."""
        return int(self.matrix.shape[1])

    @cached_property
    def _transposed(self) -> sp.csr_matrix:
        return self.matrix.T.tocsr()

    def to_values(self, u: Floats) -> Floats:
        """Return ``T u``."""
        return np.asarray(self.matrix @ u)

    def from_values(self, g: Floats) -> Floats:
        """Return ``T' g``."""
        return np.asarray(self._transposed @ g)

    @cached_property
    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """Which coordinates must not be negative: the steps of monotone curves."""
        mask = np.zeros(self.n_coordinates, dtype=np.bool_)
        first = 0
        for curve, size in zip(self.terms.curves, self.sizes, strict=False):
            if curve.column in self.directions:
                mask[first : first + _n_steps(curve)] = True
            first += size
        return mask

    def exact_values(self, u: Floats) -> Floats:
        """Return ``T u``, the values of monotone curves by adding up their steps: monotone to the last bit."""
        values = self.to_values(u)
        first = 0
        for term, (curve, size) in enumerate(zip(self.terms.curves, self.sizes, strict=False)):
            n_knots = curve.knots.size
            if curve.column in self.directions and n_knots > 1:
                own = values[self.terms.values_of(term)]
                steps = np.concatenate([[0.0], np.cumsum(u[first : first + n_knots - 1])]) / np.sqrt(
                    n_knots - 1
                )
                line = u[first + n_knots - 1] * _line(curve.knots, self._masses[term][:n_knots])
                total = self.directions[curve.column] * (steps + line)
                own[:n_knots] = total + (own[0] - total[0])
            first += size
        return values


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
        Whether first differences are joined by the column itself, standardised.
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


def _n_steps(curve: Curve) -> int:
    """Return how many coordinates of a curve go up: steps, and the line."""
    return int(curve.knots.size) if curve.knots.size > 1 else 0


def _line(knots: Floats, mass: Floats) -> Floats:
    """Return the column at its knots, with the mean 0 and the variance 1 under the rows; halves do not overflow."""
    position = (knots / 2 - knots[0] / 2) / (knots[-1] / 2 - knots[0] / 2)
    mean = float(np.average(position, weights=mass))
    return np.asarray((position - mean) / np.sqrt(np.average((position - mean) ** 2, weights=mass)))


def _centred(basis: Floats, mass: Floats, n_knots: int) -> Floats:
    """Take off what the knots' values are on average; the value of what is missing has no part in it."""
    total = float(mass[:n_knots].sum())
    if total <= 0:
        return basis
    out = basis.copy()
    out[:n_knots] -= mass[:n_knots] @ basis[:n_knots] / total
    return out
