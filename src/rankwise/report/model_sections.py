"""The sections about the model itself: its weights, how it was chosen, its settings; and about the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwise.automatic.average import AverageRanker
from rankwise.automatic.leaderboard import UNCLEAR
from rankwise.formula.view import Doubles, ModelView
from rankwise.report.charts import alpha_curve, alpha_name, choice_sentences, curves, heatmap
from rankwise.report.markup import alike, counted, decimals, lines, name, number, plain, section, text
from rankwise.report.selection import AlphaCurve, SurfaceTable, Trial

__all__ = ["choice_section", "data_section", "settings_section", "weights_section"]

_WEIGHTS = 20
_LONG = 1000  # characters of what a reader asked to see in full, such as the names of all files


def weights_section(weights: Doubles | None, names: Sequence[str], *, is_scaled: bool) -> str:
    """Show the largest weights."""
    if weights is None:
        return ""
    order = np.argsort(-np.abs(weights), kind="stable")[:_WEIGHTS]
    largest = float(np.abs(weights).max()) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{name(names[column])}</th><td class="n">{written}</td>'
        f'<td class="w"><div class="pull"><i class="{"up" if weights[column] > 0 else "down"}" '
        f'style="width:{50 * abs(weights[column]) / largest:.1f}%"></i></div></td></tr>'
        for column, written in zip(order, alike(weights[order].tolist(), with_sign=True), strict=True)
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


def choice_section(
    surface: SurfaceTable | None, curve: AlphaCurve | None, ranker: object, trial: Trial | None = None
) -> str:
    """Show what was tried, how the regularisation was chosen, and the course of the iterations."""
    title, body = _regularisation(surface, curve, ranker)
    if trial is not None:
        return section("choice", "How the model was chosen", f"{_tried_table(trial)}<h3>{title}</h3>{body}")
    return section("choice", title, body)


def _tried_table(trial: Trial) -> str:
    rows = "".join(
        f'<tr{" class=chosen" if one.chosen else ""}><th scope="row">{name(one.description, 200)}'
        f"{' <small>★ chosen</small>' if one.chosen else ''}</th>"
        f'<td class="n" data-label="alpha">{_tried_alpha(one.alpha)}</td>'
        f'<td class="n" data-label="iterations">{number(one.iterations)}</td>'
        f'<td class="n" data-label="{text(plain(trial.metric))}">{decimals(one.value)}</td></tr>'
        for one in trial.candidates
    )
    judge = f", judged on {name(trial.judged_by, _LONG)}" if trial.judged_by else ""
    better = f" by {name(trial.metric)}, {trial.better} is better" if trial.better else ""
    return (
        f"<p>{counted(len(trial.candidates), 'candidate')} tried{judge}{better}.</p>"
        '<div class="scroll" tabindex="0" role="group" aria-label="What was tried"><table class="tried"><thead><tr>'
        '<th>What was tried</th><th class="n">alpha</th><th class="n">iterations</th>'
        f'<th class="n">{name(trial.metric)}</th></tr></thead><tbody>{rows}</tbody></table></div>{_constant(trial)}'
    )


def _constant(trial: Trial) -> str:
    if trial.constant is None:
        return ""
    unclear = "" if trial.is_clear else f" {UNCLEAR}"
    return f"<p>A constant score has {name(trial.metric)} {decimals(trial.constant)}.{unclear}</p>"


def _tried_alpha(alpha: float | None) -> str:
    return "–" if alpha is None else text(alpha_name(alpha))


def _regularisation(
    surface: SurfaceTable | None, curve: AlphaCurve | None, ranker: object
) -> tuple[str, str]:
    if surface is not None:
        drawn, _ = curves(surface)
        told = [row for row in range(surface.alphas.size) if np.isfinite(surface.values[row]).any()]
        values = alike([float(surface.values[row, surface.best_of(row)]) for row in told])
        rows = "".join(
            f'<tr><td class="n">{text(alpha_name(surface.alphas[row]))}</td>'
            f'<td class="n">{surface.steps[surface.best_of(row)]}</td><td class="n">{value}</td></tr>'
            for row, value in zip(told, values, strict=True)
        )
        body = (
            f"<p>Held-out {text(surface.metric)} of {number(surface.alphas.size)} alphas after each of "
            f"{counted(surface.n_iter, 'iteration')}, scored by {text(surface.judged_by)}. "
            '<span class="noprint">Hover, or use the arrow keys.</span></p>'
            f'{heatmap(surface)}<p id="surface-says" class="says" aria-live="polite">'
            f"{text(choice_sentences(surface))}</p>"
            '<details><summary>As a table</summary><div class="scroll" tabindex="0" role="group" '
            'aria-label="Surface as a table">'
            f'<table><thead><tr><th class="n">alpha</th><th class="n">best iteration</th><th class="n">'
            f"{text(surface.metric)}</th></tr></thead><tbody>{rows}</tbody></table></div></details>"
            f"<h3>Convergence</h3>{drawn}"
        )
        return "How the regularisation was chosen", body
    if isinstance(ranker, AverageRanker):
        return "What the mean is made of", _parts_of_mean(ranker.rankers_, ranker.weights_)
    convergence = _convergence_sentence(ranker)
    if curve is not None and (curve.alphas > 0).any():
        rows = "".join(
            f'<tr><td class="n">{text(alpha_name(alpha))}{" (chosen)" if alpha == curve.chosen else ""}</td>'
            f'<td class="n">{value}</td></tr>'
            for alpha, value in zip(curve.alphas, alike(curve.values.tolist()), strict=True)
        )
        body = (
            f"<p>Held-out {text(curve.metric)} of {number(curve.alphas.size)} alphas, "
            f"scored by {text(curve.judged_by)}. Chosen: alpha {text(alpha_name(curve.chosen))}.</p>"
            f"{alpha_curve(curve)}"
            f"<details><summary>As a table</summary><div><table><thead><tr><th class='n'>alpha</th><th class='n'>"
            f"{text(curve.metric)}</th></tr></thead><tbody>{rows}</tbody></table></div></details>{convergence}"
        )
        return "How the regularisation was chosen", body
    alpha = getattr(ranker, "alpha", None)
    given = "" if not isinstance(alpha, (int, float)) else f" alpha = {number(float(alpha))} was given."
    return (
        "Regularisation",
        f"<p>This model did not choose its regularisation.{given}</p>{convergence}",
    )


def _parts_of_mean(rankers: Sequence[object], weights: Doubles) -> str:
    rows = ""
    for one, weight in zip(rankers, weights.tolist(), strict=True):
        view = ModelView.of(one)
        chosen = getattr(view.ranker, "alpha_", None)
        alpha = getattr(view.ranker, "alpha", None) if chosen is None else chosen
        shown = alpha_name(float(alpha)) if alpha is not None and np.ndim(alpha) == 0 else "–"
        rows += (
            f'<tr><th scope="row">{text(view.describe())}</th><td class="n">{text(shown)}'
            f'{"" if chosen is None else " (chosen)"}</td><td class="n">{number(weight, 3)}</td></tr>'
        )
    return (
        "<p>A score is the sum of the scores of these models, each multiplied by its weight, which makes them spread "
        "alike inside queries. Each has a regularisation of its own.</p><table><thead><tr><th>Model</th>"
        f'<th class="n">alpha</th><th class="n">weight</th></tr></thead><tbody>{rows}</tbody></table>'
    )


# How each solver works, inside "Solved by ..."; those that do not iterate have nothing to converge.
_EXACT = {"direct": "one Cholesky factorisation", "eigen": "one eigendecomposition"}
_ITERATIVE = {
    "cg": "conjugate gradients",
    "gdm": "gradient descent with momentum",
    "egdm": "gradient descent with momentum, at a pace estimated from the spectrum",
    "egdm-power": "gradient descent with momentum, at a pace estimated by power iteration",
    "egdm-blocks": "gradient descent with momentum, at a pace estimated from blocks of rows",
    "stochastic": "one read in blocks, and conjugate gradients from there",
    "smoothing": "a smoothed hinge and L-BFGS",
    "bundle": "cutting planes",
    "newton": "a truncated Newton method",
}


def _convergence_sentence(ranker: object) -> str:
    solver = str(getattr(ranker, "solver_", None) or "")
    n_iter = getattr(ranker, "n_iter_", None)
    steps = int(n_iter) if isinstance(n_iter, int | np.integer) and n_iter > 0 else 0
    sentence = ""
    if solver in _EXACT:
        sentence = f"Solved exactly, by {_EXACT[solver]}: there are no iterations. "
    elif solver:
        sentence = f"Solved by {_ITERATIVE.get(solver, solver)}"
        sentence += f" in {counted(steps, 'iteration')}. " if steps else ". "
    elif steps:
        sentence = f"Solved in {counted(steps, 'iteration')}. "
    gap = getattr(ranker, "duality_gap_", None)
    if gap is not None and np.ndim(gap) == 0:
        sentence += f"Proved duality gap: {number(float(gap), 2)}."
    return f"<h3>Convergence</h3><p>{text(sentence.strip())}</p>" if sentence else ""


def data_section(facts: Mapping[str, str], grades: Sequence[tuple[str, int]], source: str | None) -> str:
    """Describe the rows that the model was evaluated on."""
    named = f": {name(source, _LONG)}" if source else ""
    which = f"<p>The rows that this page judges the model by{named}.</p>"
    rows = "".join(f'<tr><th scope="row">{text(k)}</th><td>{text(v)}</td></tr>' for k, v in facts.items())
    total = sum(count for _, count in grades) or 1
    most = max((count for _, count in grades), default=1)
    bars = "".join(
        f'<span>{text(label)}</span><i style="width:{100 * count / most:.1f}%"></i>'
        f"<span>{number(count)} ({count / total:.0%})</span>"
        for label, count in grades
    )
    drawn = f'<h3>Labels</h3><div class="grades" role="group" aria-label="Rows with each label">{bars}</div>'
    return section(
        "data", "The data", f"{which}<table><tbody>{rows}</tbody></table>{drawn if grades else ''}"
    )


def settings_section(
    settings: Mapping[str, object], parameters: Mapping[str, object], commands: Sequence[str]
) -> str:
    """List the parameters, and how to make this page again: one block a command, so that each can be copied."""
    given, rows = (
        "".join(f'<tr><th scope="row">{name(k)}</th><td>{name(v, _LONG)}</td></tr>' for k, v in shown.items())
        for shown in (settings, parameters)
    )
    given = f'<table class="facts"><tbody>{given}</tbody></table>' if given else ""
    blocks = "".join(
        f'<div class="command"><pre><code>{lines(command)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for command in commands
    )
    again = f"<h3>To reproduce</h3>{blocks}" if blocks else ""
    return section(
        "settings",
        "Settings",
        f'{given}{again}<details><summary>Parameters of the model</summary><div class="scroll" tabindex="0" '
        f'role="group" aria-label="Parameters"><table class="facts long"><tbody>{rows}</tbody></table></div></details>',
    )
