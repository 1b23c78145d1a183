"""``rankwise select``: what there is to choose from, and the surface of alphas and iterations."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

from rankwise.automatic.problems import LabelledRows, Problem
from rankwise.automatic.search import Trial
from rankwise.cli.choosing import Choice, choose
from rankwise.cli.commands.fit import (
    choice_json,
    chosen_facts,
    print_encoding,
    print_tried,
    read_train_and_valid,
)
from rankwise.cli.printing import figure, print_facts, print_json, print_table, show_warnings, write
from rankwise.displays.reading import Reading
from rankwise.exceptions import InvalidInputError
from rankwise.report.charts import alpha_name
from rankwise.report.choice import read_curve, read_surface

__all__ = ["run"]

_SHADES = {True: " ░▒▓█", False: " .:*#"}
_WIDEST = 64
_TITLE = 72  # characters that fit into a line above the picture


def run(options: argparse.Namespace) -> int:
    """Choose, and show from what."""
    show_warnings()
    train, valid = read_train_and_valid(options)
    choice = choose(train, valid, options)
    # Only least squares has a surface; where another method was chosen, the same scaling shows one.
    search = choice.ranker.search_
    best = search.chosen
    squares = [one for one in search.trials if one.candidate.method == "rls"]
    related = [one for one in squares if one.candidate.scaling == best.candidate.scaling] or squares
    shown = best if best.candidate.method == "rls" else next(iter(related), None)
    is_choice = shown is best
    shown = None if shown is None else _with_surface(shown, search.problem)
    surface = None if shown is None else read_surface(shown.ranker)
    if options.plot is not None:
        _draw(shown, None if is_choice else best, choice, options.plot)
    if options.json:
        data: dict[str, Any] = {"train": train.facts(), **choice_json(choice)}
        if surface is not None:
            data["surface"] = {
                "alphas": surface.alphas,
                "iterations": surface.steps,
                "values": surface.values,
                "choices": surface.choices,
            }
        print_json(data)
        return 0
    print_facts({"train": train.describe()})
    print_encoding(train)
    print_facts({"scored by": f"{choice.scored_by}, {choice.metric.name}"})
    write(f"           {choice.convention}\n")
    print_tried(choice)
    write()
    print_facts(chosen_facts(choice))
    if surface is not None and shown is not None:
        write(f"\n{surface.metric} of {shown.candidate.describe()}: every alpha, every iteration")
        _print_surface(surface, "the choice" if is_choice else "the best here, not the choice")
    curve = read_curve(best.ranker)
    if curve is not None and not is_choice:
        write(f"\n{curve.metric} of {best.candidate.describe()}")
        lines = [
            [alpha_name(alpha), figure(value), "*" if alpha == curve.chosen else ""]
            for alpha, value in zip(curve.alphas, curve.values, strict=True)
        ]
        print_table(["alpha", curve.metric, ""], lines, left=(), indent="  ")
    if options.plot is not None:
        write(f"\nwrote {options.plot}")
    return 0


def _with_surface(trial: Trial, problem: Problem) -> Trial:
    """Fit least squares once more, on the same folds, by the iterations that draw the surface."""
    ranker = clone(trial.ranker)
    if isinstance(problem, LabelledRows) and problem.scored is None:
        ranker.set_params(cv=PredefinedSplit(problem.fold))
    _, X, scored = problem.columns.get(trial.candidate.scaling)
    return replace(trial, ranker=problem.fit(ranker, X, scored))


def _print_surface(surface: Reading, marked: str) -> None:
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    shades = _SHADES[encoding.startswith("utf")]
    kept = np.unique(
        np.linspace(0, surface.steps.size - 1, min(_WIDEST, surface.steps.size)).round().astype(int)
    )
    alpha, step, _ = surface.choices[surface.chosen]
    chosen_row = int(np.argmin(np.abs(surface.alphas - alpha)))
    chosen_column = int(np.argmin(np.abs(surface.steps[kept] - step)))
    values = surface.values[:, kept]
    best, worst = np.nanmin(values), np.nanmax(values)
    if surface.greater_is_better:
        best, worst = worst, best
    distance = np.sqrt(np.clip((values - best) / ((worst - best) or 1.0), 0, 1))
    level = np.nan_to_num((1 - distance) * (len(shades) - 1), nan=0.0).round().astype(int)
    names = [alpha_name(value) for value in surface.alphas]
    width = max(map(len, names))
    for row in range(surface.alphas.size - 1, -1, -1):
        cells = [shades[i] for i in level[row]]
        if row == chosen_row:
            cells[chosen_column] = "X"
        ending = surface.values[row, surface.best_of(row)]
        write(f"  {names[row]:>{width}} |{''.join(cells)}|  best {figure(float(ending))}")
    last = str(surface.steps[kept][-1])
    write(f"  {'alpha':>{width}}  1{last.rjust(len(kept) - 1)}  iterations; darker is better, X is {marked}")


def _draw(shown: Trial | None, chosen: Trial | None, choice: Choice, target: str) -> None:
    if shown is None:
        raise InvalidInputError(
            "The methods that were tried have no surface to draw.", "add --method rls, or leave --plot out."
        )
    import matplotlib as mpl  # noqa: PLC0415 - an optional package

    mpl.use("Agg")
    from rankwise.displays import SurfaceDisplay  # noqa: PLC0415
    from rankwise.files import replacing  # noqa: PLC0415

    lines = [f"Validation {choice.metric.name} of {shown.candidate.describe()}"]
    if chosen is not None:
        # Without a word the star would pass for the choice.
        reached = figure(chosen.figure.value)
        lines.append(
            f"Not what was chosen: {chosen.candidate.describe()}, reaches {reached} and has no surface"
        )
    title = "\n".join(fill(line, _TITLE) for line in lines)
    display = SurfaceDisplay.from_estimator(shown.ranker, title=title)
    with replacing(target) as stream:
        display.figure_.savefig(stream, format=Path(target).suffix[1:].lower(), dpi=150)
