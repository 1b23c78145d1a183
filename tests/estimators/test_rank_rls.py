"""The estimator as a user meets it: models, attributes, invariances, and every kind of bad input."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from oracles import label_pairs, solve_rankrls
from rankwise import RankRLS
from rankwise.exceptions import InvalidInputError, NoPairsError, UnsuitableSolverError
from rankwise.runtime import memory
from strategies import make_problem

TIGHT = {"tol": 1e-13}


def fit(problem, **options):
    model = RankRLS(**{**TIGHT, **options})
    return model.fit(problem.X, problem.y, qid=problem.qid, sample_weight=problem.sample_weight)


def test_attributes():
    problem = make_problem(0)
    model = fit(problem)
    pairs = label_pairs(problem.y, problem.qid, ties="exclude")
    assert model.n_pairs_ == pairs.winner.size
    assert model.n_queries_ == len(set(problem.qid))
    with_pairs = {problem.qid[i] for i in pairs.winner}
    assert model.n_ignored_queries_ == model.n_queries_ - len(with_pairs)
    assert model.n_ignored_queries_ >= 2
    assert model.coef_.shape == (5,)
    assert model.n_features_in_ == 5
    assert model.solver_ == "direct"
    assert model.n_iter_ == 0
    assert fit(problem, solver="cg").n_iter_ > 0


def test_one_global_ranking_is_ridge_regression():
    problem = make_problem(1, queries=1, real=True)
    ridge = Ridge(alpha=0.7).fit(problem.X, problem.y)
    np.testing.assert_allclose(fit(problem, alpha=0.7).coef_, ridge.coef_, rtol=1e-9)


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_queries_without_pairs_count_only_with_ties(ties):
    """A query of one level wants its scores equal where ties are compared, and says nothing where not."""
    problem = make_problem(2)
    lonely = np.isin(problem.qid, [6, 7])
    without = RankRLS(ties=ties).fit(problem.X[~lonely], problem.y[~lonely], qid=problem.qid[~lonely])
    same = np.allclose(without.coef_, RankRLS(ties=ties).fit(problem.X, problem.y, qid=problem.qid).coef_)
    assert same == (ties == "exclude")


def test_ranks_are_one_based_and_shared_by_ties():
    model = RankRLS(alpha=0.0).fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    X = np.array([[3.0], [1.0], [3.0], [0.0], [7.0], [2.0]])
    assert model.rank(X).tolist() == [2, 5, 2, 6, 1, 4]
    assert model.rank(X, qid=["a", "a", "a", "a", "b", "b"]).tolist() == [1, 3, 1, 4, 1, 2]
    assert model.rank(X, qid=["a", "b", "a", "b", "a", "b"]).tolist() == [2, 2, 2, 3, 1, 1]


@given(seed=st.integers(0, 10_000), ties=st.sampled_from(["include", "exclude"]))
@settings(max_examples=20, deadline=None)
def test_shifting_a_query_changes_nothing(seed, ties):
    problem = make_problem(seed % 5)
    rng = np.random.default_rng(seed)
    expected = fit(problem, ties=ties).coef_
    problem.y = problem.y + rng.integers(-8, 9, size=20)[problem.qid]  # whole numbers, which keep ties
    problem.X = problem.X + rng.normal(size=(20, 5))[problem.qid]
    np.testing.assert_allclose(fit(problem, ties=ties).coef_, expected, atol=1e-9)


def test_query_importance_multiplies_the_weight_of_its_pairs():
    problem = make_problem(6)
    importance = {0: 3.0, 1: 0.0}
    pairs = label_pairs(problem.y, problem.qid, query_importance=importance)
    model = RankRLS(**TIGHT).fit(problem.X, problem.y, problem.qid, query_importance=importance)
    np.testing.assert_allclose(model.coef_, solve_rankrls(problem.X, pairs, 1.0), atol=1e-10)


def test_a_linear_operator_is_enough():
    problem = make_problem(9)
    operator = aslinearoperator(problem.X)
    model = fit(problem)
    by_products = RankRLS(**TIGHT).fit(operator, problem.y, problem.qid)
    assert by_products.solver_ == "cg"
    np.testing.assert_allclose(by_products.coef_, model.coef_, atol=1e-9)
    np.testing.assert_allclose(by_products.predict(operator), model.predict(problem.X), atol=1e-9)
    with pytest.raises(InvalidInputError, match="columns"):
        by_products.predict(aslinearoperator(problem.X[:, :2]))


# --- bad input: one clear error each, ending in a remedy -------------------------------------------------------

X4 = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.5, 3.0]])
Y4 = np.array([0.0, 1.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("labels", "qid", "hint"),
    [
        (np.ones(4), None, "check that y"),
        (Y4, [1, 2, 3, 4], "single row"),
        (np.array([0.0, 0.0, 1.0, 1.0]), [1, 1, 2, 2], "check that y"),
    ],
)
def test_labels_that_order_nothing(labels, qid, hint):
    with pytest.raises(NoPairsError, match=f"No query has two different labels.*Hint: .*{hint}"):
        RankRLS().fit(X4, labels, qid)


def test_every_output_needs_a_pair():
    with pytest.raises(NoPairsError, match="output 1 of y"):
        RankRLS().fit(X4, np.column_stack([[0, 1, 0, 1], [0, 0, 1, 1]]), [1, 1, 2, 2])


def test_weights_that_leave_nothing_to_order():
    with pytest.raises(NoPairsError):
        RankRLS().fit(X4, Y4, sample_weight=[0, 1, 0, 1])


@pytest.mark.parametrize("labels", [[0, 1, 2], [[0, 1], [1, 0], [2, 2], [0, 0]], [[0, 1, 2, 0]]])
def test_labels_to_score_by_must_match_the_rows(labels):
    with pytest.raises(InvalidInputError, match=r"y has shape .*Hint: pass one label"):
        RankRLS().fit(X4, Y4).score(X4, labels)


def test_outputs_to_score_by_must_match_the_columns():
    two = np.column_stack([Y4, -np.asarray(Y4)])
    model = RankRLS().fit(X4, two)
    assert 0 <= model.score(X4, two) <= 1
    with pytest.raises(InvalidInputError, match=r"y has shape \(2, 4\).*Hint: "):
        model.score(X4, two.T)


def test_a_design_too_wide_for_direct_solvers(monkeypatch):
    monkeypatch.setattr(memory, "_ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    wide = sp.random(20, 3000, density=0.01, format="csr", random_state=0)
    y = np.arange(20.0)
    for solver in ("direct", "eigen"):
        with pytest.raises(UnsuitableSolverError, match=r"3000 × 3000.*Hint: use solver='cg'"):
            RankRLS(solver=solver).fit(wide, y)
    assert RankRLS().fit(wide, y).solver_ == "cg"


def test_alpha_zero_says_what_it_did_where_the_problem_is_singular():
    X = np.column_stack([X4, X4[:, 0]])
    with pytest.warns(scipy.linalg.LinAlgWarning, match=r"least norm was taken. Hint: use alpha > 0"):
        model = RankRLS(alpha=0).fit(X, Y4)
    expected = solve_rankrls(X, label_pairs(Y4), 0)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-10)


def test_stopping_short_warns_with_a_remedy():
    problem = make_problem(10)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations.*Hint: raise max_iter"):
        RankRLS(alpha=1e-3, solver="cg", max_iter=1).fit(problem.X, problem.y)
