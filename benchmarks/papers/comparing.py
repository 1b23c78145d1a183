"""What the experiments of the 2007 and 2009 RankRLS papers share: the grid, a choice by validation, tests, tables."""

from __future__ import annotations

import numpy as np
from scipy.stats import wilcoxon

GRID = 2.0 ** np.arange(-15, 16)
SIGNIFICANCE = 0.05


def choose(fit, judge, better=np.greater):
    """Fit every alpha of the grid; return ``(value, alpha, model)`` of the best, of equally good ones the largest.

    `fit` takes an alpha; `judge` takes the model and gives its value on rows that it did not see.
    """
    best = None
    for alpha in GRID[::-1]:
        model = fit(float(alpha))
        value = judge(model)
        if best is None or better(value, best[0]):
            best = (value, float(alpha), model)
    return best


def signed_rank(values, others):
    """The p-value of Wilcoxon's signed-rank test over paired values; 1 where all are equal."""
    difference = np.asarray(values) - np.asarray(others)
    difference = difference[np.isfinite(difference)]
    return 1.0 if not difference.any() else float(wilcoxon(difference).pvalue)


def verdict(values, others):
    """The same in words."""
    p = signed_rank(values, others)
    return f"p = {p:.3g}, {'significant' if p < SIGNIFICANCE else 'not significant'} at {SIGNIFICANCE}"


def print_rows(title, head, rows, note=""):
    """Print a table: the first column is text, numbers get three digits."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(str(line[c])) for line in [head, *cells]) for c in range(len(head))]
    print(f"\n{title}")
    for line in [head, *cells]:
        first, *rest = zip(line, widths, strict=True)
        print(f"  {first[0]:{first[1]}}  " + "  ".join(f"{text:>{width}}" for text, width in rest))
    if note:
        print(f"  {note}")


def _cell(value):
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
