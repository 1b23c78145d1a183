"""How the model was chosen: the table of candidates, the surface or curve of its regularisation, and convergence."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from rankwise.arrays import Floats
from rankwise.automatic.candidate_table import CandidateTable
from rankwise.displays.regularisation import Reading
from rankwise.formula.view import ModelView
from rankwise.json_values import Json
from rankwise.report import markup as html
from rankwise.report.evidence import in_words

# From best to worst; distinct in lightness, so that it survives printing and colour blindness.
_ANCHORS = "fde725 b5de2b 6ece58 35b779 1f9e89 26828e 31688e 3e4989 482878 440154"
_SHADES = 24
_SIGNS = {"hybrid": "★", "tikhonov": "◆", "early-stopping": "●"}
_STEPS = 90  # iterations that a table shows at most
_LINES = 5  # beside alpha = 0: as many as can be told apart by colour and by dashes
_GAP = 0.35  # sets alpha = 0 apart from the grid, in rows


alpha_name = partial(html.number, digits=3)  # the same way everywhere


def reading_of(view: ModelView) -> Reading | None:
    """Return how the regularisation was chosen, with the metric in words."""
    found = Reading.of(view.ranker)
    return None if found is None else replace(found.thinned(_STEPS), metric=in_words(found.metric))


def alpha_of(view: ModelView) -> tuple[float | None, int | None, bool]:
    """Return the alpha of a model, its iterations where they were chosen, and whether the alpha was."""
    found = Reading.of(view.ranker)
    if found is not None:
        return found.choice[0], found.choice[1] or None, True
    alpha = view.ranker.get_params(deep=False).get("alpha")
    return (float(alpha) if isinstance(alpha, int | float) else None), None, False


def choice_section(table: Reading | None, view: ModelView) -> str:
    """Show the candidates, the choice of the regularisation, and the convergence."""
    title, body = _regularisation(table, view)
    if view.candidates is not None:
        tried = _candidates(view.candidates)
        return html.section("choice", "How the model was chosen", f"{tried}<h3>{title}</h3>{body}")
    return html.section("choice", title, body)


def _candidates(found: CandidateTable) -> str:
    """Show the candidates of an automatic choice."""
    of_value = f"#{in_words(found.metric)} ± standard error"
    rows = [
        (
            html.name(one.description, 200) + " <small>★ chosen</small>" * one.is_chosen,
            alpha_name(one.alpha),
            html.number(one.iterations),
            f"{html.decimals(one.value)} ± {html.decimals(one.standard_error)}",
        )
        for one in found
    ]
    head = ["Candidate", "#alpha", "#iterations", of_value]
    shown = html.listing("Candidates", head, rows, "tried", found.entries.index(found.chosen))
    judged_by = html.name(found.judged_by, html.LONG)
    tried = f"{html.counted(len(found), 'candidate')} tried, scored by {judged_by}, the best first."
    return f"<p>{tried}</p>{shown}<p>{html.text(' '.join(found.remarks()))}</p>"


def _regularisation(table: Reading | None, view: ModelView) -> tuple[str, str]:
    if table is not None and (table.alphas > 0).any():
        _, head, rows = table.table()
        how = f"scored by {html.text(table.judged_by)}. "
        about = f"<p>Held-out {html.text(table.metric)} of {html.number(table.alphas.size)} alphas"
        if table.is_surface:
            alpha, step, value = table.choice
            chosen = f"alpha {alpha_name(alpha)}, iteration {step}: {table.metric} {html.number(value)}"
            shown = (
                f"{about} after each of {html.counted(int(table.steps[-1]), 'iteration')}, {how}"
                f'<span class="noprint">Hover, or use the arrow keys.</span></p>{_heatmap(table)}'
                f'<p id="surface-says" class="says" aria-live="polite">{html.text(chosen)} (the choice)</p>'
            )
        else:
            head, rows = [head[0], head[2]], [[row[0], row[2]] for row in rows]
            rows[table.chosen_row][0] += " (chosen)"
            chosen = html.text(alpha_name(table.choice[0]))
            shown = f"{about}, {how}Chosen: alpha {chosen}.</p>{_alpha_curve(table)}"
        shown += html.details("As a table", html.listing("As a table", [f"#{one}" for one in head], rows))
        shown += f"<h3>Convergence</h3>{_curves(table)[0]}" if table.is_surface else ""
        return "How the regularisation was chosen", shown
    if view.of_mean:
        return "The models of the mean", _parts_of_mean(view)
    fixed = alpha_of(view)[0]
    given = "" if fixed is None else f" alpha = {html.number(fixed)} was given."
    return "Regularisation", f"<p>This model did not choose its regularisation.{given}</p>"


def _parts_of_mean(view: ModelView) -> str:
    rows = []
    for weight, one in view.of_mean:
        alpha, _, is_chosen = alpha_of(one)
        rows.append(
            (
                html.text(one.describe()),
                html.number(alpha, 3) + " (chosen)" * is_chosen,
                html.number(weight, 3),
            )
        )
    return (
        "<p>A score is the sum of the scores of these models, each multiplied by its weight, which makes them spread "
        "alike inside queries. Each has a regularisation of its own.</p>"
        + html.listing("Models of the mean", ["Model", "#alpha", "#weight"], rows)
    )


def embedded_surface(table: Reading) -> dict[str, Json]:
    """Return the surface for the script."""
    return {
        "alphas": [alpha_name(value) for value in table.alphas],
        "steps": table.steps.tolist(),
        "values": [[html.short(value, 5) for value in row] for row in table.values],
        "metric": table.metric,
        "chosen": [table.chosen_row, int(np.searchsorted(table.steps, table.choice[1]))],
        "shown": _curves(table)[1],
    }


def _heatmap(table: Reading) -> str:
    """Draw the value of every alpha after every iteration; better is brighter."""
    n_alphas, n_steps = table.values.shape
    finite = table.values[np.isfinite(table.values)]
    best, worst = (finite.max(), finite.min()) if table.greater_is_better else (finite.min(), finite.max())
    # The square root spends most shades near the best value, where the choice is made.
    distance = np.sqrt(np.clip((table.values - best) / ((worst - best) or 1.0), 0, 1))
    shade = np.where(np.isfinite(distance), np.minimum(distance * _SHADES, _SHADES - 1), -1).astype(int)
    tops = [n_alphas - 1 - row + (_GAP if row == 0 else 0) for row in range(n_alphas)]
    shades = html.palette(_ANCHORS, _SHADES)
    drawn = html.cells(shade, shades, tops)
    heights = [(top + 0.5) / (n_alphas + _GAP) * 100 for top in tops]
    shown = [0, *range(1, n_alphas, max(1, -(-(n_alphas - 1) // 10)))]
    columns = range(0, n_steps, max(1, -(-n_steps // 8)))
    across = [((at + 0.5) / n_steps * 100, str(table.steps[at])) for at in columns]
    marks = across, [(heights[row], alpha_name(table.alphas[row])) for row in shown]
    signs, words = "", ""
    for method, (alpha, step, value) in table.choices.items():
        row, column = int(np.argmin(np.abs(table.alphas - alpha))), int(np.searchsorted(table.steps, step))
        sign, is_chosen = _SIGNS.get(method, "★"), method == table.chosen
        signs += (
            f'<span class="mark{" chosen" if is_chosen else ""}" aria-hidden="true" '
            f'style="left:{(column + 0.5) / n_steps * 100:.2f}%;top:{heights[row]:.2f}%">{sign}</span>'
        )
        line = html.text(
            f"{sign} {method}: alpha {alpha_name(alpha)}, iteration {step}, {html.number(value)}"
        )
        words += f"<span>{f'<strong>{line} (chosen)</strong>' if is_chosen else line}</span> "
    better = "higher" if table.greater_is_better else "lower"
    frame = (
        'id="surface" tabindex="0" role="application" aria-label="Surface over alpha and iteration. Arrow keys '
        f'move between cells." aria-describedby="surface-says" data-gap="{_GAP}"'
    )
    box, inside = f"{n_steps} {n_alphas + _GAP:g}", f'{signs}<span class="cell" hidden></span>'
    titles = "iteration", "alpha"
    label = f"Surface of {table.metric}"
    drawing = html.plot(drawn, marks, label, shape="tall", frame=frame, box=box, inside=inside, titles=titles)
    return (
        f'{drawing}<p class="scale"><span>{html.number(best)} <small>best</small></span>'
        f'<i style="background:linear-gradient(90deg,{",".join(shades)})"></i>'
        f"<span>{html.number(worst)} <small>worst</small></span></p>"
        f'<p class="legend">{words}<small>{html.text(table.metric)}, {better} is better; shades are finest near the '
        "best value</small></p>"
    )


def _curves(table: Reading) -> tuple[str, list[int]]:
    """Draw the course of a few alphas; return it and which alphas they are."""
    chosen, rows = table.chosen_row, table.some_rows(_LINES - 1)
    low, high = _padded(table.values[rows], 0.04)
    first, last = float(table.steps[0]), float(table.steps[-1])
    drawn, legend = {}, ""
    others = iter(("l1", "l2", "l3", "l4"))
    for row in rows:
        across = (html.span(first, last, step) for step in table.steps)
        down = (100 - html.span(low, high, value) for value in table.values[row])
        kind = "chosen" if row == chosen else "zero" if row == 0 else next(others)
        drawn[kind] = html.line(zip(across, down, strict=True), kind)
        note = " (no penalty)" * (row == 0) + " (chosen)" * (row == chosen)
        legend += (
            '<span><svg class="key" viewBox="0 0 34 6" aria-hidden="true">'
            f'<path class="line {kind}" d="M0 3H34"/></svg>{html.text(alpha_name(table.alphas[row]) + note)}</span> '
        )
    # The choice lies above the others; above it the dots of alpha = 0, along which small alphas run.
    order = sorted(drawn, key=lambda kind: ({"chosen": 1, "zero": 2}.get(kind, 0), kind))
    marks = [
        (html.span(first, last, tick), html.number(tick))
        for tick in html.ticks(first, last, 6)
        if tick == int(tick)
    ]
    lines = "".join(drawn[kind] for kind in order)
    return (
        _line_plot(lines, (low, high), marks, ("iteration", f"held-out {table.metric}"), "convergence")
        + f'<p class="legend">alpha: {legend}</p>',
        rows,
    )


def _alpha_curve(table: Reading) -> str:
    """Draw a value for each alpha, where there are no iterations to show."""
    positive = table.alphas > 0
    alphas, values = table.alphas[positive], table.values[positive, 0]
    where, (low, high) = np.log2(alphas), _padded(values, 0.08)
    both = zip(where, values, strict=True)
    points = [(html.span(where[0], where[-1], x), 100 - html.span(low, high, y)) for x, y in both]
    drawn = html.line(points, "chosen")
    dots = "".join(
        f'<span class="dot{" chosen" if alpha == table.choice[0] else ""}" style="left:{x:.2f}%;top:{y:.2f}%" '
        f'title="alpha {html.text(alpha_name(alpha))}: {html.number(value)}"></span>'
        for (x, y), alpha, value in zip(points, alphas, values, strict=True)
    )
    named = [(x, alpha_name(alpha)) for (x, _), alpha in zip(points, alphas, strict=True)]
    marks = named[:: max(1, -(-len(named) // 7))]
    return _line_plot(drawn, (low, high), marks, ("alpha", f"held-out {table.metric}"), "alphas", dots)


def _padded(values: Floats, share: float) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    pad = (high - low) * share or 0.01
    return low - pad, high + pad


def _line_plot(
    drawn: str,
    ends: tuple[float, float],
    marks: html.Marks,
    titles: tuple[str, str],
    name: str,
    inside: str = "",
) -> str:
    levels = [(100 - html.span(*ends, level), html.number(level)) for level in html.ticks(*ends, 4)]
    rules = "".join(f'<path class="rule" d="M0 {height:.2f}H100"/>' for height, _ in levels)
    guide = f'{inside}<span class="guide" hidden></span>'
    label = f"{titles[1]} against {titles[0]}"
    return html.plot(rules + drawn, (marks, levels), label, frame=f'id="{name}"', inside=guide, titles=titles)
