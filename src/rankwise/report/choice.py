"""How the model was chosen: the table of candidates, the surface or curve of its regularisation, and convergence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankwise.automatic.candidate_table import UNCLEAR
from rankwise.displays.regularisation import Reading
from rankwise.formula.view import ModelView
from rankwise.json_values import Json
from rankwise.report.charts import alpha_curve, alpha_name, choice_sentence, curves, heatmap
from rankwise.report.markup import (
    LONG,
    counted,
    decimals,
    details,
    listing,
    name,
    number,
    section,
    text,
    without_folders,
)

__all__ = ["alpha_of", "choice_section"]


def alpha_of(view: ModelView) -> tuple[float | None, int | None, bool]:
    """Return the alpha of a model, its iterations where they were chosen, and whether the alpha was."""
    found = Reading.of(view.ranker)
    if found is not None:
        return found.choice[0], found.choice[1] or None, True
    alpha = view.ranker.get_params(deep=False).get("alpha")
    return (float(alpha) if isinstance(alpha, int | float) else None), None, False


def choice_section(table: Reading | None, view: ModelView, notes: Mapping[str, Json]) -> str:
    """Show the candidates, the choice of the regularisation, and the convergence."""
    title, body = _regularisation(table, view)
    tried = _candidates(notes)
    if tried:
        return section("choice", "How the model was chosen", f"{tried}<h3>{title}</h3>{body}")
    return section("choice", title, body)


def _candidates(notes: Mapping[str, Json]) -> str:
    """Show the candidates that `rankwise fit` noted; notes come from a file, so that any of them may be missing."""
    listed = notes.get("tried")
    tried = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list | tuple) else []
    if not tried:
        return ""
    metric = str(notes.get("metric") or "value")
    judged = (
        f", judged on {name(without_folders(str(notes['judged_by'])), LONG)}"
        if notes.get("judged_by")
        else ""
    )
    constant, words = _number(notes.get("constant")), ""
    if constant is not None:
        unclear = f" {UNCLEAR}" if notes.get("is_clear") is False else ""
        words = f"<p>A constant score has {name(metric)} {decimals(constant)}.{unclear}</p>"
    head = ["Candidate", "#alpha", "#iterations", f"#{metric} ± standard error"]
    chosen = next((at for at, one in enumerate(tried) if one.get("chosen") is True), None)
    shown = listing("Candidates", head, list(map(_candidate, tried)), "tried", chosen)
    return f"<p>{counted(len(tried), 'candidate')} tried{judged} by {name(metric)}, the best first.</p>{shown}{words}"


def _candidate(one: Mapping[str, Json]) -> list[str]:
    words = ", ".join(str(one[key]) for key in ("method", "scaling") if one.get(key))
    called = name(one.get("description") or words or "unnamed", 200)
    called += " <small>★ chosen</small>" if one.get("chosen") is True else ""
    alpha, steps, error = (_number(one.get(key)) for key in ("alpha", "iterations", "standard_error"))
    value = decimals(_number(one.get("value"))) + ("" if error is None else f" ± {decimals(error)}")
    return [called, number(alpha, 3), number(steps), value]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and np.isfinite(value) else None


def _regularisation(table: Reading | None, view: ModelView) -> tuple[str, str]:
    if table is not None and (table.alphas > 0).any():
        _, head, rows = table.table()
        how = f"scored by {text(table.judged_by)}. "
        about = f"<p>Held-out {text(table.metric)} of {number(table.alphas.size)} alphas"
        if table.is_surface:
            shown = (
                f"{about} after each of {counted(int(table.steps[-1]), 'iteration')}, {how}"
                f'<span class="noprint">Hover, or use the arrow keys.</span></p>{heatmap(table)}'
                f'<p id="surface-says" class="says" aria-live="polite">{text(choice_sentence(table))}</p>'
            )
        else:
            head, rows = [head[0], head[2]], [[row[0], row[2]] for row in rows]
            rows[table.chosen_row][0] += " (chosen)"
            chosen = text(alpha_name(table.choice[0]))
            shown = f"{about}, {how}Chosen: alpha {chosen}.</p>{alpha_curve(table)}"
        shown += details("As a table", listing("As a table", [f"#{one}" for one in head], rows))
        shown += f"<h3>Convergence</h3>{curves(table)[0]}" if table.is_surface else ""
        return "How the regularisation was chosen", shown
    if view.of_mean:
        return "The models of the mean", _parts_of_mean(view)
    alpha = alpha_of(view)[0]
    given = "" if alpha is None else f" alpha = {number(alpha)} was given."
    return "Regularisation", f"<p>This model did not choose its regularisation.{given}</p>"


def _parts_of_mean(view: ModelView) -> str:
    rows = []
    for weight, one in view.of_mean:
        alpha, _, is_chosen = alpha_of(one)
        rows.append((text(one.describe()), number(alpha, 3) + " (chosen)" * is_chosen, number(weight, 3)))
    return (
        "<p>A score is the sum of the scores of these models, each multiplied by its weight, which makes them spread "
        "alike inside queries. Each has a regularisation of its own.</p>"
        + listing("Models of the mean", ["Model", "#alpha", "#weight"], rows)
    )
