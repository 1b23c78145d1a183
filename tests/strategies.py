"""Hypothesis strategies shared by the tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

# ---- metrics --------------------------------------------------------------------------------------------

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
