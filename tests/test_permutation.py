"""The permutation test: permuted outputs of one fit equal separate fits, and chance is recognised."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    AutoRanker,
    KernelRankRLS,
    KernelRankRLSCV,
    RankRLS,
    RankSVMCV,
)
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import pairwise_error
from rankwise.model_selection import fit_ranker, predict_scores
from rankwise.permutation import permutation_test
from rankwise.preprocessing import QueryScaler
from strategies import make_problem

ALPHAS = [0.1, 1.0, 10.0]


@pytest.mark.parametrize("settings", [{}, {"ties": "exclude"}])
def test_extra_outputs_are_separate_fits(settings):
    problem = make_problem(0)
    estimator = KernelRankRLSCV(alphas=ALPHAS, gamma=[0.1, 1.0], **settings)
    result = permutation_test(estimator, problem.X, problem.y, problem.qid, n_permutations=6)
    assert result.statistic == estimator.fit(problem.X, problem.y, problem.qid).best_score_
    rng = np.random.default_rng(0)
    for value in result.null_distribution:
        y = np.empty(40)
        noise = rng.random(40)
        for q in np.unique(problem.qid):
            rows = np.flatnonzero(problem.qid == q)
            y[rows] = problem.y[rows[np.argsort(noise[rows])]]
        assert value == pytest.approx(estimator.fit(problem.X, y, problem.qid).best_score_, abs=1e-12)
    assert result.p_value == (1 + (result.null_distribution <= result.statistic).sum()) / 7


@pytest.mark.parametrize("estimator", [KernelRankRLS(), RankRLS(), KernelRankRLSCV(alphas=ALPHAS)])
@pytest.mark.parametrize("with_qid", [False, True])
def test_signal_and_noise(estimator, with_qid):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    qid = np.arange(80) // 8 if with_qid else None
    assert permutation_test(estimator, X, X[:, 0], qid, n_permutations=39).p_value == 1 / 40
    assert permutation_test(estimator, X, rng.normal(size=80), qid, n_permutations=39).p_value > 1 / 40


def test_alphas_that_a_walk_did_not_come_to_do_not_matter():
    """RankSVMCV leaves NaN where smaller alphas had only made it worse."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 80))
    y, qid = X[:, 0] + rng.normal(size=120), np.arange(120) // 10
    estimator = RankSVMCV(10.0 ** np.arange(-4, 2), loss="squared_hinge", cv=3, random_state=2)
    result = permutation_test(estimator, X, y, qid, n_permutations=3)
    model = estimator.fit(X, y, qid)
    assert np.isnan(model.cv_errors_).any()
    assert result.statistic == model.best_score_
    assert np.isfinite(result.null_distribution).all()


def test_a_gain_counts_upwards():
    X = np.random.default_rng(2).normal(size=(60, 2))
    result = permutation_test(RankRLS(), X, X[:, 1], n_permutations=19, scoring="concordance")
    assert result.statistic > 0.9
    assert result.p_value == 0.05


def test_bad_input():
    with pytest.raises(InvalidInputError, match="n_permutations=0"):
        permutation_test(RankRLS(), np.eye(4), np.arange(4), n_permutations=0)


def test_a_chooser_with_its_default_scoring():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    found = permutation_test(RankSVMCV(), X, X[:, 0] + 0.1 * rng.normal(size=40), n_permutations=3)
    assert found.statistic < found.null_distribution.min()


SINGLE = {
    "curves in a pipeline": make_pipeline(StandardScaler(), AdditiveRanker(n_knots=4, interactions=0)),
    "scaled inside queries": make_pipeline(QueryScaler(), RankRLS()),
    "a chosen one": AutoRanker(methods=["rls"], estimate=False),
}


@pytest.mark.parametrize("name", SINGLE)
def test_pipelines_and_rankers_of_one_output(name):
    """Each permutation is cross-validated by itself, on the same folds."""
    rng = np.random.default_rng(3)
    X, qid = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"]), np.arange(40) // 4
    y = (2 * X["a"] + rng.normal(size=40)).round().to_numpy()
    found = permutation_test(SINGLE[name], X, y, qid, n_permutations=2)
    again = permutation_test(SINGLE[name], X, y, qid, n_permutations=1)
    assert found.statistic == pytest.approx(again.statistic, abs=1e-12)
    assert found.null_distribution[0] == pytest.approx(again.null_distribution[0], abs=1e-12)
    assert found.statistic < found.null_distribution.min()
    fold = np.random.default_rng(0).permutation(10)[qid] % 5
    scores = np.empty(40)
    for number in range(5):
        test = fold == number
        model = fit_ranker(clone(SINGLE[name]), X[~test], y[~test], qid[~test])
        scores[test] = predict_scores(model, X[test], qid[test])
    assert found.statistic == pytest.approx(pairwise_error(y, scores, qid), abs=1e-12)


def test_a_chooser_of_one_output_chooses_for_every_permutation():
    rng = np.random.default_rng(4)
    X, qid = rng.normal(size=(60, 2)), np.arange(60) // 6
    chooser = AdditiveRankerCV(n_knots=4, interactions=0, adaptive=0)
    found = permutation_test(chooser, X, X[:, 0], qid, n_permutations=2)
    assert found.statistic == clone(chooser).fit(X, X[:, 0], qid).best_score_
    assert found.statistic < found.null_distribution.min()
