"""The sections about the model itself: its weights, how it was chosen, its settings; and about the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwise.report.charts import alpha_curve, alpha_name, curves, heatmap
from rankwise.report.markup import lines, name, number, section, signed, text
from rankwise.report.model_view import Doubles
from rankwise.report.selection import AlphaCurve, SurfaceTable

__all__ = ["choice_section", "data_section", "settings_section", "weights_section"]

_WEIGHTS = 20


def weights_section(weights: Doubles | None, names: Sequence[str], *, is_scaled: bool) -> str:
    """Show the largest weights."""
    if weights is None:
        return section("weights", "Weights", "<p>This model has no weight for each column.</p>")
    order = np.argsort(-np.abs(weights), kind="stable")[:_WEIGHTS]
    largest = float(np.abs(weights).max()) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{name(names[column])}</th><td class="n">{signed(float(weights[column]))}</td>'
        f'<td class="w"><div class="pull"><i class="{"up" if weights[column] > 0 else "down"}" '
        f'style="width:{50 * abs(weights[column]) / largest:.1f}%"></i></div></td></tr>'
        for column in order
    )
    zero = int((weights == 0).sum())
    units = (
        "of columns after scaling, so that they can be compared" if is_scaled else "of columns as they come"
    )
    note = f"The {order.size} largest of {number(weights.size)} weights, {units}."
    if not is_scaled:
        note += (
            " Columns with large values have small weights: compare them only where the units are the same."
        )
    note += f" {number(zero)} are exactly 0." if zero else ""
    return section(
        "weights",
        "Largest weights",
        f'<p class="note">{note}</p><table class="weights"><thead><tr><th>Column</th><th class="n">weight</th>'
        f"<th>lowers ← → raises the score</th></tr></thead><tbody>{rows}</tbody></table>",
    )


def choice_section(surface: SurfaceTable | None, curve: AlphaCurve | None, ranker: Any) -> str:
    """Show how the regularisation was chosen, and the course of the iterations."""
    if surface is not None:
        drawn, _ = curves(surface)
        rows = "".join(
            f'<tr><td class="n">{text(alpha_name(alpha))}</td><td class="n">{surface.steps[surface.best_of(row)]}</td>'
            f'<td class="n">{number(surface.values[row, surface.best_of(row)])}</td></tr>'
            for row, alpha in enumerate(surface.alphas)
            if np.isfinite(surface.values[row]).any()
        )
        return section(
            "choice",
            "How the regularisation was chosen",
            f"<p>Held-out {text(surface.metric)} of {number(surface.alphas.size)} alphas after each of "
            f"{number(surface.n_iter)} iterations, judged by {text(surface.judged_by)}. "
            "Hover, or use the arrow keys.</p>"
            f'{heatmap(surface)}<p id="surface-says" class="says" aria-live="polite"></p>'
            '<details><summary>As a table</summary><div class="scroll" tabindex="0" role="group" '
            'aria-label="Surface as a table">'
            f'<table><thead><tr><th class="n">alpha</th><th class="n">best iteration</th><th class="n">'
            f"{text(surface.metric)}</th></tr></thead><tbody>{rows}</tbody></table></div></details>"
            f"<h3>Convergence</h3>{drawn}",
        )
    convergence = _convergence_words(ranker)
    if curve is not None and (curve.alphas > 0).any():
        rows = "".join(
            f'<tr><td class="n">{text(alpha_name(alpha))}{" (chosen)" if alpha == curve.chosen else ""}</td>'
            f'<td class="n">{number(value)}</td></tr>'
            for alpha, value in zip(curve.alphas, curve.values, strict=True)
        )
        return section(
            "choice",
            "How the regularisation was chosen",
            f"<p>Held-out {text(curve.metric)} of {number(curve.alphas.size)} alphas, "
            f"judged by {text(curve.judged_by)}. Chosen: alpha {text(alpha_name(curve.chosen))}.</p>"
            f"{alpha_curve(curve)}"
            f"<details><summary>As a table</summary><div><table><thead><tr><th class='n'>alpha</th><th class='n'>"
            f"{text(curve.metric)}</th></tr></thead><tbody>{rows}</tbody></table></div></details>{convergence}",
        )
    alpha = getattr(ranker, "alpha", None)
    given = "" if not isinstance(alpha, (int, float)) else f" alpha = {number(float(alpha))} was given."
    return section(
        "choice",
        "Regularisation",
        f"<p>This model did not choose its regularisation.{given}</p>{convergence}",
    )


def _convergence_words(ranker: Any) -> str:
    words = []
    if getattr(ranker, "solver_", None):
        words.append(f"solver {ranker.solver_}")
    n_iter = getattr(ranker, "n_iter_", None)
    if n_iter is not None and np.ndim(n_iter) == 0 and n_iter > 0:
        words.append(f"{int(n_iter)} iterations")
    gap = getattr(ranker, "duality_gap_", None)
    if gap is not None and np.ndim(gap) == 0:
        words.append(f"proved relative duality gap {float(gap):.2g}")
    return f"<h3>Convergence</h3><p>{text(', '.join(words).capitalize())}.</p>" if words else ""


def data_section(facts: Mapping[str, str], grades: Sequence[tuple[str, int]]) -> str:
    """Describe the rows that were judged."""
    rows = "".join(f'<tr><th scope="row">{text(k)}</th><td>{text(v)}</td></tr>' for k, v in facts.items())
    total = sum(count for _, count in grades) or 1
    most = max((count for _, count in grades), default=1)
    bars = "".join(
        f'<span>{text(label)}</span><i style="width:{100 * count / most:.1f}%"></i>'
        f"<span>{number(count)} ({count / total:.0%})</span>"
        for label, count in grades
    )
    drawn = f'<h3>Labels</h3><div class="grades" role="group" aria-label="Rows with each label">{bars}</div>'
    return section("data", "The data", f"<table><tbody>{rows}</tbody></table>{drawn if grades else ''}")


def settings_section(settings: Mapping[str, object], commands: Sequence[str]) -> str:
    """List the parameters, and how to make this page again: one block a command, so that each can be copied."""
    rows = "".join(f'<tr><th scope="row">{text(k)}</th><td>{name(v)}</td></tr>' for k, v in settings.items())
    blocks = "".join(
        f'<div class="command"><pre><code>{lines(command)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for command in commands
    )
    again = f"<h3>To reproduce</h3>{blocks}" if blocks else ""
    return section(
        "settings",
        "Settings",
        f'{again}<details><summary>Parameters of the model</summary><div class="scroll" tabindex="0" role="group" '
        f'aria-label="Parameters"><table><tbody>{rows}</tbody></table></div></details>',
    )
