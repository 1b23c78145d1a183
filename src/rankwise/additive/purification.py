"""Purification: main effects are moved from surfaces to curves, so that a curve shows the whole effect of its column.

A sum of a surface and two curves can be written in many ways, because an effect of one column may be part of either.
The purified surface is 0 on average along each of its lines under the training rows. Its main effects are added to the
curves of its columns, which get the surface's knots beside their own, so the scores do not change. A column that is
constant inside every query has no curve; its main effect, which no pair sees, is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankwise.arrays import Floats
from rankwise.design.terms import Curve, Terms

__all__ = ["main_effects", "purified", "with_knots_of_surfaces"]


def main_effects(grid: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return a and b so that ``grid - a[:, None] - b`` has the mean 0 along every line, weighted by `mass`.

    This is the weighted least-squares fit of a sum of two curves; lines without mass get 0.
    """
    n_first, n_second = grid.shape
    system = np.zeros((n_first + n_second,) * 2)
    system[:n_first, :n_first] = np.diag(mass.sum(axis=1))
    system[n_first:, n_first:] = np.diag(mass.sum(axis=0))
    system[:n_first, n_first:] = mass
    system[n_first:, :n_first] = mass.T
    wanted = np.concatenate([(mass * grid).sum(axis=1), (mass * grid).sum(axis=0)])
    found = np.linalg.lstsq(system, wanted, rcond=1e-12)[0]
    return found[:n_first], found[n_first:]


def purified(terms: Terms, values: Floats, masses: Sequence[Floats]) -> tuple[Floats, float]:
    """Return the values of terms whose surfaces hold no main effect and whose terms are all 0 on average.

    Parameters
    ----------
    terms : Terms
        Curves have the knots of surfaces among others (`with_knots_of_surfaces`).
    values : (n_values,) float64
    masses : sequence of (n_values of the term,) float64
        The weight that the training rows give to each value, term by term.

    Returns
    -------
    values : (n_values,) float64
    constant : float
        The constant subtracted from the score of every row.
    """
    values = values.copy()
    curve_of = {curve.column: (number, curve) for number, curve in enumerate(terms.curves)}
    for number, surface in enumerate(terms.surfaces, start=len(terms.curves)):
        shape = surface.first.n_values, surface.second.n_values
        grid = values[terms.values_of(number)].reshape(shape)
        effects = main_effects(grid, masses[number].reshape(shape))
        grid -= effects[0][:, None] + effects[1]
        for side, effect in zip((surface.first, surface.second), effects, strict=True):
            if side.column in curve_of:
                place, curve = curve_of[side.column]
                values[terms.values_of(place)] += _on_curve(side, effect, curve)
    constant = 0.0
    for number in range(len(terms.curves)):
        own = values[terms.values_of(number)]
        mean = float(np.average(own, weights=masses[number]))
        own -= mean
        constant += mean
    return values, constant


def with_knots_of_surfaces(terms: Terms, values: Floats) -> tuple[Terms, Floats]:
    """Add the knots of the surfaces of its column to every curve, without changing its function."""
    sides: dict[int, Curve] = {}
    for surface in terms.surfaces:
        sides |= {side.column: side for side in (surface.first, surface.second)}
    curves, parts = [], []
    for number, curve in enumerate(terms.curves):
        own, side = values[terms.values_of(number)], sides.get(curve.column)
        finer = curve
        if side is not None and not curve.is_levels:
            finer = replace(curve, knots=np.union1d(curve.knots, side.knots))
        curves.append(finer)
        parts.append(_on_curve(curve, own, finer))
    parts.append(values[terms.offsets[len(terms.curves)] :])
    return Terms(tuple(curves), terms.surfaces), np.concatenate(parts)


def _on_curve(side: Curve, effect: Floats, curve: Curve) -> Floats:
    """Read a curve of few knots at the values of a curve of more."""
    if side.is_levels or side.n_values == curve.n_values:
        return effect
    ids, weights = side.weights(curve.knots)
    read = (weights * effect[ids]).sum(axis=1)
    return np.append(read, effect[-1]) if curve.has_missing else read
