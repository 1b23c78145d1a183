"""Figures that others published, to the digits they printed."""

import random

import numpy as np
import pytest

from rankwise import RankRLS
from real_data import NEEDS_REAL_DATA, housing, ohsumed

pytestmark = NEEDS_REAL_DATA


@pytest.mark.parametrize("solver", ["direct", "eigen", "cg"])
@pytest.mark.parametrize(("alpha", "published"), [(1, 0.857257), (64, 0.857134), (512, 0.855995)])
def test_housing_prices_from_scores(solver, alpha, published):
    """Test concordance of RankRLS on all pairs, L = nI - 11'."""
    X, y = housing()
    model = RankRLS(alpha, query_weight="pairs", solver=solver, tol=1e-10).fit(X[:250], y[:250])
    assert round(model.score(X[250:], y[250:]), 6) == published


def test_housing_prices_from_a_thousand_pairs():
    X, y = housing()
    random.seed(33)
    pairs = []
    while len(pairs) < 1000:
        a, b = random.randint(0, 249), random.randint(0, 249)
        if y[a] != y[b]:
            pairs.append((a, b) if y[a] > y[b] else (b, a))
    model = RankRLS(1.0).fit_pairs(X[:250], pairs)
    assert round(model.score(X[250:], y[250:]), 6) == 0.861997


def test_ohsumed():
    X, y, qid = ohsumed()
    assert X.shape == (16_140, 45)
    assert np.bincount(y.astype(int)).tolist() == [11_303, 2_585, 2_252]
    model = RankRLS().fit(X, y, qid)
    assert model.n_queries_ == 106
    assert model.n_pairs_ == 582_588
    assert model.score(X, y, qid) > 0.6
