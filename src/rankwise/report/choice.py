"""How the model was chosen: the table of candidates, the surface or curve of its regularisation, and convergence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwise.arrays import Estimator, Floats
from rankwise.automatic.average import AverageRanker
from rankwise.automatic.candidate_table import UNCLEAR
from rankwise.displays.reading import Reading, has_surface
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import ModelView
from rankwise.json_values import Json
from rankwise.metrics import get_metric
from rankwise.report.charts import AlphaCurve, alpha_curve, alpha_name, choice_sentence, curves, heatmap
from rankwise.report.markup import (
    LONG,
    alike,
    counted,
    decimals,
    details,
    listing,
    name,
    number,
    section,
    text,
)
from rankwise.selection.result import Selection, oriented, resolve_scoring

__all__ = ["alpha_of", "choice_section", "read_curve", "read_surface"]

_STEPS = 90  # iterations that a table shows at most


def read_surface(ranker: Estimator) -> Reading | None:
    """Read the surface of a model of one output; None where it has none."""
    return Reading.of(ranker, 0).thinned(_STEPS) if has_surface(ranker) else None


def read_curve(ranker: Estimator) -> AlphaCurve | None:
    """Read the held-out values of the alphas that a model tried; None where it chose from none."""
    selection = Selection.of_model(ranker)
    if selection is None or selection.alphas is None or selection.errors is None or len(selection.chosen) > 1:
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


def alpha_of(ranker: Estimator) -> tuple[float | None, int | None, bool]:
    """Return the alpha of a model, its iterations where they were chosen, and whether the alpha was."""
    selection = Selection.of_model(ranker)
    if selection is not None and len(selection.chosen) == 1:
        return selection.chosen[0].alpha, selection.chosen[0].step or None, True
    alpha = ranker.get_params(deep=False).get("alpha")
    return (float(alpha) if isinstance(alpha, int | float) else None), None, False


def choice_section(
    surface: Reading | None, curve: AlphaCurve | None, ranker: Estimator, notes: Mapping[str, Json] | None
) -> str:
    """Show the candidates, the choice of the regularisation, and the convergence."""
    title, body = _regularisation(surface, curve, ranker)
    tried = candidates_table(notes or {})
    if tried:
        return section("choice", "How the model was chosen", f"{tried}<h3>{title}</h3>{body}")
    return section("choice", title, body)


def candidates_table(notes: Mapping[str, Json]) -> str:
    """Show the candidates that `rankwise fit` noted; notes come from a file, so that any of them may be missing."""
    listed = notes.get("tried")
    candidates = (
        [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list | tuple) else []
    )
    if not candidates:
        return ""
    metric = str(notes.get("metric") or "value")
    try:
        better = (
            f" by {name(metric)}, {'higher' if get_metric(metric).greater_is_better else 'lower'} is better"
        )
    except InvalidInputError:
        better = ""
    judged = str(notes.get("judged_by") or "")
    judge = f", judged on {name(judged, LONG)}" if judged else ""
    constant, words = _number(notes.get("constant")), ""
    if constant is not None:
        unclear = f" {UNCLEAR}" if notes.get("is_clear") is False else ""
        words = f"<p>A constant score has {name(metric)} {decimals(constant)}.{unclear}</p>"
    head = ["What was tried", "#alpha", "#iterations", f"#{metric} ± standard error"]
    rows = [_candidate(one) for one in candidates]
    chosen = next((at for at, one in enumerate(candidates) if one.get("chosen") is True), None)
    return (
        f"<p>{counted(len(candidates), 'candidate')} tried{judge}{better}.</p>"
        f"{listing('What was tried', head, rows, 'tried', chosen)}{words}"
    )


def _candidate(one: Mapping[str, Json]) -> list[str]:
    words = ", ".join(str(one[key]) for key in ("method", "scaling") if one.get(key))
    called = name(one.get("description") or words or "unnamed", 200)
    called += " <small>★ chosen</small>" if one.get("chosen") is True else ""
    alpha, steps, error = (_number(one.get(key)) for key in ("alpha", "iterations", "standard_error"))
    value = decimals(_number(one.get("value"))) + ("" if error is None else f" ± {decimals(error)}")
    return [called, number(alpha, 3), number(steps), value]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None


def _regularisation(surface: Reading | None, curve: AlphaCurve | None, ranker: Estimator) -> tuple[str, str]:
    title = "How the regularisation was chosen"
    rows: list[tuple[str, ...]]
    if surface is not None:
        told = [row for row in range(surface.alphas.size) if np.isfinite(surface.values[row]).any()]
        steps = [surface.best_of(row) for row in told]
        values = alike([float(surface.values[row, at]) for row, at in zip(told, steps, strict=True)])
        rows = [
            (alpha_name(surface.alphas[row]), str(surface.steps[at]), value)
            for row, at, value in zip(told, steps, values, strict=True)
        ]
        head = ["#alpha", "#best iteration", f"#{surface.metric}"]
        return title, (
            f"<p>Held-out {text(surface.metric)} of {number(surface.alphas.size)} alphas after each of "
            f"{counted(int(surface.steps[-1]), 'iteration')}, scored by {text(surface.judged_by)}. "
            '<span class="noprint">Hover, or use the arrow keys.</span></p>'
            f'{heatmap(surface)}<p id="surface-says" class="says" aria-live="polite">'
            f"{text(choice_sentence(surface))}</p>{details('As a table', listing('Surface as a table', head, rows))}"
            f"<h3>Convergence</h3>{curves(surface)[0]}"
        )
    if isinstance(ranker, AverageRanker):
        return "What the mean is made of", _parts_of_mean(ranker.rankers_, ranker.weights_)
    if curve is not None and (curve.alphas > 0).any():
        rows = [
            (alpha_name(alpha) + (" (chosen)" if alpha == curve.chosen else ""), value)
            for alpha, value in zip(curve.alphas, alike(curve.values.tolist()), strict=True)
        ]
        return title, (
            f"<p>Held-out {text(curve.metric)} of {number(curve.alphas.size)} alphas, "
            f"scored by {text(curve.judged_by)}. Chosen: alpha {text(alpha_name(curve.chosen))}.</p>"
            + alpha_curve(curve)
            + details("As a table", listing("Alphas as a table", ["#alpha", f"#{curve.metric}"], rows))
        )
    alpha = alpha_of(ranker)[0]
    given = "" if alpha is None else f" alpha = {number(alpha)} was given."
    return "Regularisation", f"<p>This model did not choose its regularisation.{given}</p>"


def _parts_of_mean(rankers: Sequence[object], weights: Floats) -> str:
    rows = []
    for one, weight in zip(rankers, weights.tolist(), strict=True):
        view = ModelView.of(one)
        alpha, _, is_chosen = alpha_of(view.ranker)
        rows.append((text(view.describe()), number(alpha, 3) + " (chosen)" * is_chosen, number(weight, 3)))
    return (
        "<p>A score is the sum of the scores of these models, each multiplied by its weight, which makes them spread "
        "alike inside queries. Each has a regularisation of its own.</p>"
        + listing("Models of the mean", ["Model", "#alpha", "#weight"], rows)
    )
