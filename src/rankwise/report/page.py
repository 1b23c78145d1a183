"""The page around the sections: its head, what stands at the top, and the facts about data and model."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files

import numpy as np

import rankwise
from rankwise.arrays import MatrixLike, is_sparse
from rankwise.data.queries import Queries
from rankwise.data.summary import summarise
from rankwise.formula.view import Doubles, ModelView
from rankwise.json_values import Json
from rankwise.report.charts import alpha_name
from rankwise.report.evidence import Evidence
from rankwise.report.markup import counted, decimals, embed, name, number, plain, text
from rankwise.report.sections import in_words

__all__ = ["data_facts", "lead", "parameters", "tiles", "whole_page"]


def parameters(view: ModelView) -> dict[str, object]:
    """Return the parameters of a model and of what prepares its columns, as text."""
    found: dict[str, object] = {}
    for part in (*view.steps, view.ranker):
        kind = type(part).__name__
        for key, value in part.get_params(deep=False).items():
            if key != "rankers":
                found[f"{kind}.{key}"] = " ".join(repr(value).split())  # arrays break their lines
    for at, one in enumerate(getattr(view.ranker, "rankers_", ()), 1):  # of a mean
        found |= {f"{at}. {key}": value for key, value in parameters(ModelView.of(one)).items()}
    return found


def data_facts(
    X: MatrixLike, labels: Doubles | None, queries: Queries, n_pairs: int | None, thing: str
) -> dict[str, str]:
    """Count what there is to evaluate on."""
    summary = summarise(X if is_sparse(X) else np.asarray(X), labels, queries)
    facts = {f"{thing.capitalize()}s": number(summary.rows), "Columns": number(summary.columns)}
    facts["Filled cells"] = f"{summary.filled:.1%}" if summary.filled > 0.001 else f"{summary.filled:.2g}"
    if n_pairs is not None:
        facts["Preferences"] = number(n_pairs)
    if labels is not None and summary.queries > 1:
        low, middle, high = summary.sizes
        facts["Queries"] = number(summary.queries)
        facts["Rows in a query"] = (
            number(low) if low == high else f"{number(low)} to {number(high)}, median {number(middle, 3)}"
        )
    if labels is not None:
        facts["Pairs with different labels"] = number(summary.pairs)
    for problem in summary.problems:
        facts["Note"] = f"{facts['Note']}; {problem}" if "Note" in facts else problem
    return facts


def tiles(evidence: Evidence, facts: Mapping[str, str]) -> str:
    """Show the first figure large, and how much it was measured on."""
    first = evidence.figures[0]
    shown = in_words(first.name)
    brackets = (
        f' <span class="whole">[{decimals(first.model.low, 3)}, {decimals(first.model.high, 3)}]</span>'
        if np.isfinite(first.model.low)
        else ""
    )
    value = decimals(first.model.value)
    shown_tiles = f'<div class="tile main"><b>{value}</b><span>{text(shown)}{brackets}</span></div>'
    for key in ("Queries", "Preferences", "Rows", "Items", "Columns"):
        if key in facts:
            shown_tiles += (
                f'<div class="tile"><b>{text(facts[key])}</b><span>{text(key.lower())}</span></div>'
            )
    return f'<div class="tiles">{shown_tiles}</div>'


def lead(view: ModelView) -> str:
    """Say what the model is in one line."""
    words = [view.describe()]
    alpha = getattr(view.ranker, "alpha_", getattr(view.ranker, "alpha", None))
    if isinstance(alpha, (int, float)):
        words.append(f"alpha {alpha_name(float(alpha))}")
    steps = getattr(view.ranker, "best_iteration_", None)
    if isinstance(steps, int):
        words.append(counted(steps, "iteration"))
    return f'<p class="lead">{text(" · ".join(words))}</p>'


def whole_page(title: str, head: str, body: str, data: dict[str, Json], *, links: Mapping[str, str]) -> str:
    """Put everything together."""
    style, script = (
        files("rankwise.report").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Only our own script runs, whatever a file's feature names hold, and nothing is fetched.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    anchors = "".join(f'<a href="#{anchor}">{label}</a>' for anchor, label in links.items())
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{text(plain(title))}</title><style>{style}</style></head><body>'
        f'<header><h1>{name(title)}</h1>{head}<nav aria-label="Sections">{anchors}</nav></header>'
        f"<main>{body}</main><footer>Written by rankwise {text(rankwise.__version__)} on {written}.</footer>"
        f'<script type="application/json" id="embedded">{embed(data)}</script><script>{script}</script></body></html>\n'
    )
