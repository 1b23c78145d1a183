"""Values that displays read from a fitted model, and their formatting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Estimator, Floats, Ints
from rankwise.exceptions import InvalidInputError, MissingPackageError
from rankwise.selection.result import Selection, oriented, resolve_scoring

__all__ = ["Reading", "axes_to_draw_on", "check_axes", "has_surface", "import_pyplot", "write_alphas"]


def has_surface(estimator: Estimator) -> bool:
    """Tell whether a fitted model chose from a table of alphas and iterations.

    Exact hold-out, decompositions and margins know converged models only; and there must be an alpha to draw.
    """
    selection = Selection.of_model(estimator)
    return selection is not None and selection.tables is not None and bool((estimator.alphas_ > 0).any())


@dataclass(frozen=True)
class Reading:
    """The validation results of one output of a fitted model.

    Attributes
    ----------
    alphas : (alphas,) float64
        In increasing order; the first is 0, whether or not it is in the grid.
    values : (alphas, iterations) float64
        The value of the metric.
    choices : dict
        For each method the ``(alpha, iteration, value)`` that it chooses.
    chosen : str
        The method whose choice the model has. If it is "tikhonov", the run went on until every alpha had converged.
    metric : str
        The metric's name.
    greater_is_better : bool
    model : str
        The name of the chosen model.
    judged_by : str
    steps : (iterations,) int64
        The iterations of the values; all of them, unless `thinned`.
    """

    alphas: Floats
    values: Floats
    choices: dict[str, tuple[float, int, float]]
    chosen: str
    metric: str
    greater_is_better: bool
    model: str
    judged_by: str
    steps: Ints

    @property
    def chosen_row(self) -> int:
        """Return the place of the chosen alpha among the alphas."""
        return int(np.argmin(np.abs(self.alphas - self.choices[self.chosen][0])))

    @property
    def label(self) -> str:
        """Return the metric as the label of an axis."""
        return f"validation {self.metric} ({'higher' if self.greater_is_better else 'lower'} is better)"

    def best_of(self, row: int) -> int:
        """Return the place among the steps at which an alpha is best."""
        best = np.nanargmax if self.greater_is_better else np.nanargmin
        return int(best(self.values[row]))

    def thinned(self, at_most: int) -> Reading:
        """Return the values at fewer iterations, the chosen ones among them."""
        if self.steps.size <= at_most:
            return self
        kept = np.round(np.geomspace(1, self.steps.size, at_most)).astype(np.int64)
        chosen = np.array([step for _, step, _ in self.choices.values()], dtype=np.int64)
        steps = np.unique(np.concatenate([kept, chosen]))
        return replace(self, steps=steps, values=self.values[:, steps - 1])

    @classmethod
    def of(cls, estimator: Estimator, output: int) -> Reading:
        """Read a fitted model that has a surface: a `RankRLSCV`, or a `KernelRankRLSCV` by conjugate gradients."""
        check_is_fitted(estimator)
        name, selection = type(estimator).__name__, Selection.of_model(estimator)
        if selection is None or selection.tables is None or selection.unpenalised is None:
            judged = f": {estimator.cv_} scored converged models" if hasattr(estimator, "cv_") else ""
            raise InvalidInputError(
                f"This {name} has no regularisation surface{judged}.",
                "fit a RankRLSCV(cv=5), or a KernelRankRLSCV(solver='cg') without a basis, and pass that.",
            )
        if not has_surface(estimator):
            raise InvalidInputError("The grid of the model holds no alpha but 0.", "fit with several alphas.")
        n_outputs = len(selection.tables)
        if not isinstance(output, Integral) or not 0 <= output < n_outputs:
            raise InvalidInputError(
                f"output={output!r} is not one of the {n_outputs} outputs."
                if n_outputs > 1
                else f"output={output!r}, but the model has one output.",
                "count them from 0." if n_outputs > 1 else "leave it out.",
            )
        metric = resolve_scoring(estimator.scoring, getattr(estimator, "loss", None))
        positive = estimator.alphas_ > 0
        flip = partial(oriented, greater_is_better=metric.greater_is_better)
        unpenalised = selection.unpenalised[output]
        # An output that ended before the others has no values from then on.
        grown = np.isfinite(unpenalised)
        values = np.vstack([unpenalised, selection.tables[output][positive]])[:, grown]
        choices = {method: found[output] for method, found in (selection.choices or {}).items()}
        return cls(
            np.concatenate([[0.0], estimator.alphas_[positive]]),
            flip(values),
            {method: (one.alpha, one.step, flip(one.error)) for method, one in choices.items()},
            estimator.method_,
            metric.name.replace("_", " "),
            metric.greater_is_better,
            name.removesuffix("CV"),
            str(getattr(estimator, "cv_", "held-out rows")),
            np.arange(1, values.shape[1] + 1),
        )


def write_alphas(alphas: Floats) -> list[str]:
    """Write a grid that starts with 0 for matplotlib: as powers of two, if all the others are."""
    exponents = np.log2(alphas[1:])
    if (exponents == np.round(exponents)).all():
        return ["0", *(f"$2^{{{int(exponent)}}}$" for exponent in exponents)]
    return ["0", *(f"{alpha:.3g}" for alpha in alphas[1:])]


def import_pyplot() -> ModuleType:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only when something is drawn
    except ImportError as error:
        raise MissingPackageError(
            "Pictures need matplotlib, which is not installed.", "pip install 'rankwise[report]'."
        ) from error
    return plt


def axes_to_draw_on(ax: Any, size: tuple[float, float]) -> Any:
    """Return the given axes, or those of a new figure of this size in inches."""
    pyplot = import_pyplot()
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else check_axes(ax)


def check_axes(ax: Any) -> Any:
    """Return axes to draw on; raise where they are none."""
    if not hasattr(ax, "figure"):
        raise InvalidInputError(f"ax={ax!r} are no axes.", "pass axes of matplotlib, or leave ax out.")
    return ax
