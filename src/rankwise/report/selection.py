"""How the regularisation was chosen, as a report shows it: a surface, a curve, or a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Estimator
from rankwise.displays.reading import Reading, has_surface
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import Doubles
from rankwise.json_values import Json
from rankwise.metrics import get_metric
from rankwise.selection.result import Selection
from rankwise.selection.scorers import oriented, resolve_scoring

__all__ = ["AlphaCurve", "SurfaceTable", "Trial", "Tried", "read_curve", "read_surface", "read_trial"]

_STEPS = 90  # iterations that a table shows at most


@dataclass(frozen=True)
class SurfaceTable:
    """The value of a metric for every alpha at some iterations.

    Attributes
    ----------
    alphas : (alphas,) float64
        In increasing order; the first is 0.
    steps : (steps,) int64
        The iterations that are kept; all of them where they are few.
    values : (alphas, steps) float64
    choices : dict
        For each method the ``(alpha, iteration, value)`` that it chooses.
    chosen : str
        The method whose choice the model has.
    metric : str
    greater_is_better : bool
    judged_by : str
    n_iter : int
    """

    alphas: Doubles
    steps: npt.NDArray[np.int64]
    values: Doubles
    choices: dict[str, tuple[float, int, float]]
    chosen: str
    metric: str
    greater_is_better: bool
    judged_by: str
    n_iter: int

    def best_of(self, row: int) -> int:
        """Return the step at which an alpha is best."""
        found = np.nanargmax(self.values[row]) if self.greater_is_better else np.nanargmin(self.values[row])
        return int(found)


@dataclass(frozen=True)
class AlphaCurve:
    """The value of a metric for every alpha."""

    alphas: Doubles
    values: Doubles
    chosen: float
    metric: str
    greater_is_better: bool
    judged_by: str


@dataclass(frozen=True)
class Tried:
    """One candidate that the model was chosen from."""

    description: str
    alpha: float | None
    iterations: int | None
    value: float | None
    chosen: bool


@dataclass(frozen=True)
class Trial:
    """What was tried before the model was chosen.

    Attributes
    ----------
    candidates : list of Tried
    metric : str
    better : str
        "higher", "lower", or empty where the metric is unknown.
    judged_by : str
    constant : float or None
        The metric of scores that are all the same.
    is_clear : bool
        Whether some candidate is clearly better than that.
    """

    candidates: list[Tried]
    metric: str
    better: str
    judged_by: str
    constant: float | None
    is_clear: bool


def read_trial(notes: Mapping[str, Json] | None) -> Trial | None:
    """Read what `rankwise fit` noted of its choice; it comes from a file, so that anything may be missing."""
    tried = None if notes is None else notes.get("tried")
    if notes is None or not isinstance(tried, Sequence) or isinstance(tried, str):
        return None
    candidates = [_read_tried(one) for one in tried if isinstance(one, Mapping)]
    if not candidates:
        return None
    metric = str(notes.get("metric") or "value")
    try:
        better = "higher" if get_metric(metric).greater_is_better else "lower"
    except InvalidInputError:
        better = ""
    return Trial(
        candidates,
        metric,
        better,
        str(notes.get("judged_by") or ""),
        _number(notes.get("constant")),
        notes.get("is_clear") is not False,
    )


def _read_tried(one: Mapping[str, Json]) -> Tried:
    words = [str(one[key]) for key in ("method", "scaling") if one.get(key)]
    steps = _number(one.get("iterations"))
    return Tried(
        str(one.get("description") or ", ".join(words) or "unnamed"),
        _number(one.get("alpha")),
        None if steps is None else int(steps),
        _number(one.get("value")),
        one.get("chosen") is True,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and np.isfinite(value) else None


def read_surface(ranker: object) -> SurfaceTable | None:
    """Read the surface of a model of one output; None where it has none."""
    if not has_surface(ranker):
        return None
    reading = Reading.of(ranker, 0)
    n_iter = reading.values.shape[1]
    choices = reading.choices
    steps = np.arange(1, n_iter + 1)
    if n_iter > _STEPS:
        kept = np.round(np.geomspace(1, n_iter, _STEPS)).astype(np.int64)
        chosen = [int(choice[1]) for choice in choices.values()]
        steps = np.unique(np.concatenate([kept, np.array(chosen, dtype=np.int64)]))
    return SurfaceTable(
        reading.alphas,
        steps,
        reading.values[:, steps - 1],
        choices,
        reading.chosen,
        reading.metric,
        reading.greater_is_better,
        str(getattr(ranker, "cv_", "held-out rows")),
        n_iter,
    )


def read_curve(ranker: Estimator) -> AlphaCurve | None:
    """Read the held-out values of the alphas that a model tried; None where it chose from none."""
    selection = Selection.of_model(ranker)
    if selection is None or selection.alphas is None or selection.errors is None or np.ndim(ranker.alpha_):
        return None
    metric = resolve_scoring(ranker.scoring, getattr(ranker, "loss", None))
    # Several gammas: for each alpha its best.
    with np.errstate(invalid="ignore"):
        curve = np.fmin.reduce(selection.errors.reshape(-1, selection.alphas.size), axis=0)
    tried = np.isfinite(curve)  # NaN: not tried
    return AlphaCurve(
        selection.alphas[tried],
        oriented(curve[tried], greater_is_better=metric.greater_is_better),
        selection.chosen[0].alpha,
        metric.name.replace("_", " "),
        metric.greater_is_better,
        str(getattr(ranker, "cv_", "held-out rows")),
    )
