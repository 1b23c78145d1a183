"""A searched regularisation surface as the attributes of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arrays import Floats
from rankwise.metrics import Metric
from rankwise.selection.reading import METHODS, best_cells
from rankwise.selection.surface import SurfaceSearch, Trial

__all__ = ["surface_attributes"]


def surface_attributes(search: SurfaceSearch, best: Trial, alphas: Floats, metric: Metric) -> dict[str, Any]:
    """Return what `RankRLSCV` says about its choice among the caller's alphas, and those that came to them."""
    shown = alphas if search.method == "early-stopping" else best.grid
    grid = np.searchsorted(best.alphas, shown).tolist()
    several = search.problem.several_outputs
    sign = -1.0 if metric.greater_is_better else 1.0  # tables hold errors, attributes values
    n_iter = max(len(surface.errors) for surface in best.surfaces)
    tables = np.full((len(best.surfaces), best.alphas.size, n_iter), np.nan)
    for table, surface in zip(tables, best.surfaces, strict=True):
        table[:, : len(surface.errors)] = sign * surface.table
    per_alpha = np.array(
        [[best_cells(search.method, [s], [i])[0].error for s in best.surfaces] for i in grid]
    )
    choices = {
        method: [
            (float(best.alphas[cell.alpha_index]), cell.step, sign * cell.error)
            for cell in best_cells(method, best.surfaces, [0] if method == "early-stopping" else grid)
        ]
        for method in METHODS
    }

    def one_or_all(values: Any, as_type: Any) -> Any:
        return np.array(values) if several else as_type(values[0])

    return {
        "alphas_": best.alphas[grid],
        "surface_": tables[:, grid] if several else tables[0, grid],
        "unpenalised_": tables[:, 0] if several else tables[0, 0],
        "cv_errors_": sign * (per_alpha if several else per_alpha[:, 0]),
        "choices_": choices if several else {method: found[0] for method, found in choices.items()},
        "alpha_": one_or_all([best.alphas[cell.alpha_index] for cell in best.cells], float),
        "best_iteration_": one_or_all([cell.step for cell in best.cells], int),
        "best_score_": one_or_all([sign * cell.error for cell in best.cells], float),
        "scaling_": best.power,
        "n_iter_": n_iter,
        "keeps_basis_": all(fit.keeps_basis for fit in best.fits),
    }
