"""Random and adversarial ranking problems, for pytest and for Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Problem:
    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray | None
    sample_weight: np.ndarray | None


def make_problem(seed=0, rows=40, features=5, queries=6, levels=4, *, weighted=False, real=False):
    """Interleaved queries of unequal size, one of a single row and one whose labels are all equal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    y = rng.normal(size=rows) if real else rng.integers(0, levels, size=rows).astype(float)
    qid = None
    if queries > 1:
        qid = rng.choice(queries, size=rows, p=rng.dirichlet(np.ones(queries)))
        qid[0] = queries  # a query of one row
        qid[1:4] = queries + 1  # a query of one level
        y[1:4] = y[1]
    weight = None
    if weighted:
        weight = rng.integers(0, 4, size=rows).astype(float)
        weight[rng.integers(rows, size=rows // 4)] = rng.random(rows // 4) * 2
    return Problem(X, y, qid, weight)
