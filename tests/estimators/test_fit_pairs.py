"""Learning from lists of pairs: against labels, against the normal equations, and what validation refuses."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

from all_pairs import is_valid_cost, pairwise
from oracles import Pairs, label_pairs, solve_rankrls
from rankwise import RankRLS, RankRLSCV
from rankwise.data import stack_preferred
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.pairs.labels import COSTS, TIES
from strategies import make_problem

SOLVERS = ["direct", "eigen", "cg"]


def draw(seed, rows=30, features=4, n_pairs=50):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    winner = rng.integers(rows, size=n_pairs)
    loser = (winner + rng.integers(1, rows, size=n_pairs)) % rows
    return X, np.column_stack([winner, loser]), rng.integers(0, 4, size=n_pairs) / 2.0, rng.random(n_pairs)


def close(actual, expected, tolerance=1e-8):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pairwise(is_valid_cost, ties=TIES, cost=COSTS, weighted=[False, True], queries=[1, 6], solver=SOLVERS)
def test_listing_the_pairs_of_labels_gives_the_model_of_the_labels(ties, cost, weighted, queries, solver):
    problem = make_problem(1, queries=queries, weighted=weighted)
    listed = label_pairs(
        problem.y, problem.qid, ties="include", query_weight="pairs", sample_weight=problem.sample_weight
    )
    model = RankRLS(0.3, query_weight="pairs", ties=ties, cost=cost, solver=solver, tol=1e-13)
    by_labels = model.fit(problem.X, problem.y, problem.qid, problem.sample_weight).coef_
    n_pairs = model.n_pairs_
    pairs = np.column_stack([listed.winner, listed.loser])
    model.fit_pairs(problem.X, pairs, listed.difference, listed.weight)
    close(model.coef_, by_labels)
    assert model.n_pairs_ == n_pairs


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize(
    "convert", [np.asarray, np.float32, scipy.sparse.csr_matrix, scipy.sparse.coo_array, aslinearoperator]
)
def test_every_storage_solves_the_normal_equations(solver, convert):
    X, pairs, magnitude, weight = draw(0)
    X = X.astype(np.float32).astype(np.float64)
    expected = solve_rankrls(X, Pairs(pairs[:, 0], pairs[:, 1], weight, magnitude, len(X)), 0.5)
    model = RankRLS(0.5, solver=solver, tol=1e-12).fit_pairs(convert(X), pairs, magnitude, weight)
    close(model.coef_, expected)
    assert model.coef_.shape == (4,)


@pytest.mark.parametrize("convert", [np.asarray, np.float32, scipy.sparse.csr_matrix])
def test_scaling_is_another_penalty(convert):
    X, pairs, magnitude, weight = draw(6)
    X = X.astype(np.float32).astype(np.float64) * np.logspace(-1, 1, 4)
    X = X.astype(np.float32).astype(np.float64)
    A = X[pairs[:, 0]] - X[pairs[:, 1]]
    H = A.T @ (weight[:, None] * A)
    expected = np.linalg.solve(H + 0.5 * np.diag(np.diag(H) ** 0.5), A.T @ (weight * magnitude))
    for solver in SOLVERS:
        model = RankRLS(0.5, solver=solver, penalty_power=0.25, tol=1e-12)
        close(model.fit_pairs(convert(X), pairs, magnitude, weight).coef_, expected)


def test_many_columns_need_no_matrix_for_its_diagonal():
    X = scipy.sparse.csr_matrix(([1.0, 1.0], ([0, 1], [0, 999_999])), shape=(2, 1_000_000))
    model = RankRLS(0.0, solver="cg", penalty_power=0.25).fit_pairs(X, [[0, 1]])
    close(model.coef_[[0, 999_999]], [0.5, -0.5])
    assert RankRLS().fit_pairs(X, [[0, 1]]).solver_ == "cg"
    with pytest.raises(UnsuitableSolverError, match="solver='cg'"):
        RankRLS(solver="gdm").fit_pairs(aslinearoperator(X), [[0, 1]])
    with pytest.raises(UnsuitableSolverError, match="penalty_power=0"):
        RankRLSCV(penalty_power=0.25).fit_pairs(aslinearoperator(X), [[0, 1]], eval_set=(X, [[0, 1]]))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cost=st.sampled_from(["magnitude", "unit"]))
def test_what_must_not_matter_does_not(seed, cost):
    X, pairs, magnitude, weight = draw(seed)
    magnitude[0] = 1.0
    rng = np.random.default_rng(seed)

    def fit(X, pairs, magnitude, weight, **options):
        return RankRLS(0.7, cost=cost, **options).fit_pairs(X, pairs, magnitude, weight).coef_

    coef = fit(X, pairs, magnitude, weight)
    order = rng.permutation(len(pairs))
    close(fit(X, pairs[order], magnitude[order], weight[order]), coef)
    place = rng.permutation(len(X))
    close(fit(X[np.argsort(place)], place[pairs], magnitude, weight), coef)
    close(fit(X + rng.normal(size=X.shape[1]), pairs, magnitude, weight), coef)
    close(fit(X, np.vstack([pairs] * 2), np.tile(magnitude, 2), np.tile(weight, 2) / 2), coef)
    close(fit(np.vstack([X, rng.normal(size=(3, X.shape[1]))]), pairs, magnitude, weight), coef)
    close(fit(X, pairs, magnitude, weight, query_weight="equal"), coef)
    one, three = (fit(X, pairs, magnitude, weight, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(three, one)


def test_a_pair_and_its_contradiction_say_that_the_two_tie():
    X, pairs, *_ = draw(2)
    both = np.vstack([pairs, [[0, 1], [1, 0]]])
    tied = np.vstack([pairs, [[0, 1]]])
    magnitude, weight = np.ones(len(tied)), np.ones(len(tied))
    magnitude[-1], weight[-1] = 0.0, 2.0
    model = RankRLS(0.1).fit_pairs(X, both)
    close(model.coef_, RankRLS(0.1).fit_pairs(X, tied, magnitude, weight).coef_)
    assert model.n_pairs_ == len(both)


def test_what_is_reported():
    X = np.arange(14.0).reshape(7, 2)
    model = RankRLS().fit_pairs(X, [[1, 0], [2, 1], [5, 4], [0, 2]], [1, 2, 1, 0])
    assert model.n_pairs_ == 3
    assert model.n_components_ == 2
    assert model.n_unpaired_rows_ == 2
    assert model.n_queries_ == 1
    assert model.n_features_in_ == 2
    assert model.score(X, np.arange(7)) == 1.0  # a model without query ids: score asks for none


def test_scores_and_differences_of_pairs():
    X = np.array([[0.0], [1.0], [2.0], [2.0]])
    model = RankRLS().fit_pairs(X, [[2, 0]])
    assert model.score_pairs(X, [[1, 0], [2, 1], [0, 3], [3, 2]]) == 2.5 / 4
    assert model.score_pairs(X, [[1, 0], [0, 3]], weight=[3, 1]) == 0.75
    step = model.coef_[0]
    close(model.predict_pairs([[3.0], [0.0]], [[1.0], [1.0]]), [2 * step, -step])
    with pytest.raises(InvalidInputError, match="There are 1 first rows and 2 second ones"):
        model.predict_pairs([[1.0]], [[1.0], [2.0]])


def test_a_pair_is_judged_by_one_output():
    X = np.arange(6.0).reshape(3, 2)
    model = RankRLS().fit(X, [[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]])
    with pytest.raises(InvalidInputError, match="2 outputs"):
        model.score_pairs(X, [[0, 1]])


def test_two_matrices():
    rng = np.random.default_rng(0)
    better, worse = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) - 1
    X, pairs = stack_preferred(better, worse)
    model = RankRLS().fit_pairs(X, pairs)
    assert model.n_components_ == 20
    D = better - worse
    close(model.coef_, np.linalg.solve(D.T @ D + np.eye(3), D.sum(axis=0)))
    assert model.score_pairs(X, pairs) == np.mean(model.predict_pairs(better, worse) > 0)


def test_the_relative_cost_wants_ties_left_out():
    X, pairs = [[0.0], [1.0], [3.0]], [[1, 0], [2, 1]]
    with pytest.raises(InvalidInputError, match="ties='exclude'"):
        RankRLS(cost="relative").fit_pairs(X, pairs, [1.0, 0.0])
    model = RankRLS(cost="relative", ties="exclude")
    close(model.fit_pairs(X, pairs, [1.0, 0.0]).coef_, model.fit_pairs(X, [[1, 0]]).coef_)
