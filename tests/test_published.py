"""Figures that others published, to the digits they printed."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from rankwise import RankRLS, RankRLSCV
from rankwise.metrics import average_precision, get_metric, ndcg
from real_data import NEEDS_REAL_DATA, ROOT, housing, ohsumed, ohsumed_folds

pytestmark = NEEDS_REAL_DATA


@pytest.mark.parametrize("solver", ["direct", "eigen", "cg"])
@pytest.mark.parametrize(("alpha", "published"), [(1, 0.857257), (64, 0.857134), (512, 0.855995)])
def test_housing_prices_from_scores(solver, alpha, published):
    """Test concordance of RankRLS on all pairs, L = nI - 11'."""
    X, y = housing()
    model = RankRLS(alpha, query_weight="pairs", solver=solver, tol=1e-10).fit(X[:250], y[:250])
    assert round(model.score(X[250:], y[250:]), 6) == published


def test_housing_prices_left_out_by_pairs():
    """The 20 figures that RLScore's tutorial prints, to their eight digits."""
    printed = Path(ROOT, "rlscore-legacy", "expected_outputs", "ranking2.out").read_text(encoding="ascii")
    published = [float(number) for number in re.findall(r"0\.\d{8}", printed)]
    X, y = housing()
    alphas = 2.0 ** np.arange(-10, 10)
    model = RankRLSCV(alphas, cv="leave-pair-out", query_weight="pairs", scoring="concordance")
    model.fit(X[:250], y[:250])
    np.testing.assert_allclose(model.cv_errors_, published, atol=5e-9)
    assert (len(published), model.alpha_) == (20, 64)
    assert round(model.score(X[250:], y[250:]), 6) == 0.857134


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


def test_ohsumed_in_letors_five_folds():
    """At least the 0.447 and 0.443 of the 2007 paper, and a little more; alpha by validation MAP.

    On the default grid, which ends at 2^10. On the paper's, to 2^15, fold 1 chooses 2^14 and the means are the paper's.
    """
    scoring = get_metric("average_precision", relevant=1, convention="letor3")
    found = []
    for train, validation, (X, y, qid) in ohsumed_folds():
        model = RankRLSCV(method="tikhonov", query_weight="size", ties="include", scoring=scoring)
        scores = model.fit(*train, eval_set=validation).predict(X)
        found.append(
            [
                average_precision(y, scores, qid, relevant=1, convention="letor3"),
                ndcg(y, scores, qid, k=10, convention="letor3"),
            ]
        )
    precision, gain = np.mean(found, axis=0)
    assert precision >= 0.448
    assert gain >= 0.449
