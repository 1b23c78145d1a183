"""Random and adversarial ranking problems, for pytest and for Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


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


# --- metrics ------------------------------------------------------------------------------------------------

QUERY_IDS = [7, -3, "a", "b", ("t", 1)]


@st.composite
def rankings(draw, max_rows=14, labels=None):
    """Labels, scores, interleaved ids of mixed types and weights, with many ties and one-row queries."""
    n = draw(st.integers(1, max_rows))
    labels = st.integers(0, 4) if labels is None else labels
    scores = draw(st.sampled_from([st.integers(-2, 2), st.floats(-1e3, 1e3), st.just(0.0)]))
    y = draw(st.lists(labels, min_size=n, max_size=n))
    s = draw(st.lists(scores, min_size=n, max_size=n))
    codes = draw(st.lists(st.integers(0, len(QUERY_IDS) - 1), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7]), min_size=n, max_size=n))
    return np.array(y, float), np.array(s, float), [QUERY_IDS[c] for c in codes], np.array(weights)
