"""Closed forms against refits without the rows, one group and one alpha at a time."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from all_pairs import pairwise
from making_blocks import graph_of_outputs
from oracles import label_pairs, solve_rankrls
from pair_out import pair_out_differences
from rankwise import RankRLSCV
from rankwise.data.validation import check_qid
from rankwise.holdout import decomposition as decomposition_module
from rankwise.holdout.decomposition import (
    DualHoldOut,
    PrimalHoldOut,
    groups_of,
    held_out_residuals,
    solve_in_lockstep,
)
from rankwise.holdout.leave_pair_out import (
    leave_pair_out_error,
    leaves_one_level,
)
from rankwise.pairs.factor import factor_of
from rankwise.pairs.labels import label_graph
from rankwise.pairs.listed import PreferencePairs
from rankwise.pairs.pairs import ComparedRows
from rankwise.pairs.plan import Plan
from rankwise.pairs.preferences import preference_graph
from rankwise.runtime.threads import LARGE_MATRIX
from rankwise.solvers.direct import DualSpectrum
from strategies import make_problem

ALPHAS = np.array([1e-3, 0.1, 1.0, 30.0])
SETTINGS = [
    {},
    {"query_weight": "pairs"},
    {"query_weight": "equal", "cost": "unit"},
    {"ties": "exclude"},
    {"ties": "exclude", "cost": "unit", "query_weight": "pairs"},
    {"ties": "exclude", "cost": "relative", "query_weight": "equal"},
]


def differences_of(decomposition, y, u, pairs, alphas):
    """Return ``f(i) - f(j)`` of the models without i and j, (alphas, pairs, outputs)."""
    rankings = [ComparedRows(column, u**2, "magnitude", "size") for column in y.T]
    return np.stack([pair_out_differences(decomposition, one, pairs, alphas) for one in rankings], axis=-1)


def singular_design(rows, features):
    """More columns than rows would need: a repeated column and a repeated row."""
    X = np.random.default_rng(2).normal(size=(rows, features))
    X[:, -1] = X[:, 0]
    X[3] = X[2]
    return X


def refit_without(X, y, qid, weight, rows, alpha, settings):
    kept = np.setdiff1d(np.arange(y.size), rows)
    pairs = label_pairs(
        y[kept],
        None if qid is None else qid[kept],
        sample_weight=None if weight is None else weight[kept],
        **settings,
    )
    return X @ solve_rankrls(X[kept], pairs, alpha)


def centred_inside(scores, qid, weight, rows):
    """Scores without each query's mean: constants inside a query mean nothing."""
    out = np.zeros(rows.size)
    for q in np.unique(qid[rows]):
        own = rows[qid[rows] == q]
        w = np.ones(own.size) if weight is None else weight[own]
        out[np.isin(rows, own)] = np.where(w > 0, scores[own] - np.average(scores[own], weights=w), 0)
    return out


def decompose(kind, X, factor):
    if kind == "primal":
        return PrimalHoldOut.with_vectors(factor.apply(X))[0]
    return DualHoldOut.of_spectrum(DualSpectrum.of_matrix(factor.sandwich(X @ X.T)))


@pairwise(
    settings=SETTINGS, kind=["primal", "dual"], features=[4, 45], weighted=[False, True], folds=[False, True]
)
def test_groups_of_queries(settings, kind, features, weighted, folds):
    problem = make_problem(3, rows=36, weighted=weighted)
    if weighted:
        problem.sample_weight += 0.1
    X, y, qid, weight = singular_design(36, features), problem.y, problem.qid, problem.sample_weight
    queries = check_qid(qid, 36)
    graph = label_graph(y, queries, row_weight=weight, **settings)
    factor = factor_of(graph)
    target = factor.target(graph.pull)[:, None]
    codes = queries.codes % 3 if folds else queries.codes
    groups = groups_of(codes)
    # Rows without a pair have no place in the factor's coordinates.
    sees_pairs = (np.abs(factor.apply(np.eye(36))) > 1e-12).any(axis=1)
    residual = held_out_residuals(decompose(kind, X, factor), target, groups, ALPHAS, n_threads=2)
    for a, alpha in enumerate(ALPHAS):
        predicted = factor.values(target[:, 0] - residual[a, :, 0])
        for rows in groups:
            refit = refit_without(X, y, qid, weight, rows, alpha, settings)
            judged = rows[sees_pairs[rows]]
            np.testing.assert_allclose(
                centred_inside(predicted, qid, weight, judged),
                centred_inside(refit, qid, weight, judged),
                atol=1e-8,
            )


@pytest.mark.parametrize("has_leverage", [False, True])
def test_small_groups_in_lockstep(has_leverage, monkeypatch):
    """Groups of little leverage converge; one of much is solved directly, and none is confused with another."""
    monkeypatch.setattr(decomposition_module, "_STEPS", 8)  # fewer than rows, so that steps can run out
    rng = np.random.default_rng(0)
    Z, target = rng.normal(size=(900, 12)), rng.normal(size=(900, 2))
    groups = np.split(rng.permutation(900), np.cumsum(rng.integers(2, 11, size=130)))
    groups = [rows for rows in groups if 0 < rows.size <= 12]
    large = int(np.argmax([rows.size for rows in groups]))
    if has_leverage:
        Z[groups[large]] *= np.logspace(0.5, 2.5, groups[large].size)[:, None]
    decomposition = PrimalHoldOut.with_vectors(Z)[0]
    _, converged = solve_in_lockstep(decomposition, groups, ALPHAS, decomposition.residual(target, ALPHAS))
    assert converged[large] != has_leverage
    assert np.delete(converged, large).all()
    residual = held_out_residuals(decomposition, target, groups, ALPHAS, n_threads=2)
    for a, alpha in enumerate(ALPHAS):
        for rows in groups:
            kept = np.setdiff1d(np.arange(900), rows)
            ridge = np.linalg.solve(Z[kept].T @ Z[kept] + alpha * np.eye(12), Z[kept].T @ target[kept])
            np.testing.assert_allclose(residual[a, rows], target[rows] - Z[rows] @ ridge, atol=1e-8)


@pytest.mark.parametrize("kind", ["primal", "dual"])
@pytest.mark.parametrize("features", [4, 45])
@pytest.mark.parametrize("weighted", [False, True])
class TestOneRanking:
    def setup(self, kind, features, weighted):
        m = 24
        rng = np.random.default_rng(0)
        X = singular_design(m, features)
        Y = np.column_stack([rng.integers(0, 3, size=m), rng.normal(size=m)]).astype(float)
        weight = rng.integers(1, 4, size=m).astype(float) if weighted else None
        graph = graph_of_outputs(Y, check_qid(None, m), weight)
        factor = factor_of(graph)
        share = np.ones(m) if weight is None else weight
        u = np.sqrt(share / share.sum())
        return X, Y, weight, factor.target(graph.pull), u, decompose(kind, X, factor)

    def test_pairs(self, kind, features, weighted):
        X, Y, weight, _, u, decomposition = self.setup(kind, features, weighted)
        i, j = np.triu_indices(Y.shape[0], 1)
        differences = differences_of(decomposition, Y, u, (i, j), ALPHAS)
        errors = leave_pair_out_error(decomposition, Y, u, ALPHAS)
        w = np.ones(Y.shape[0]) if weight is None else weight
        for c in range(2):
            gap = Y[i, c] - Y[j, c]
            for a, alpha in enumerate(ALPHAS):
                for p in np.flatnonzero(gap)[::7]:
                    f = refit_without(X, Y[:, c], None, weight, np.array([i[p], j[p]]), alpha, {})
                    np.testing.assert_allclose(differences[a, p, c], f[i[p]] - f[j[p]], atol=1e-8)
                tied = np.abs(differences[a, :, c]) < 1e-9  # rows 2 and 3 are the same
                wrong = np.where(tied, 0.5, differences[a, :, c] * gap < 0)
                expected = np.average(wrong[gap != 0], weights=(w[i] * w[j])[gap != 0])
                assert errors[a, c] == pytest.approx(expected, abs=1e-12)

    def test_folds_of_rows(self, kind, features, weighted):
        X, Y, weight, target, u, decomposition = self.setup(kind, features, weighted)
        groups = groups_of(np.arange(Y.shape[0]) % 5)
        residual = held_out_residuals(decomposition.centred(u), target, groups, ALPHAS)
        root = np.ones(Y.shape[0]) if weight is None else np.sqrt(weight)
        for a, alpha in enumerate(ALPHAS):
            held_out = Y - residual[a] / root[:, None]
            for rows in groups:
                kept = np.setdiff1d(np.arange(Y.shape[0]), rows)
                ridge = Ridge(alpha=alpha, solver="svd").fit(
                    X[kept], Y[kept], None if weight is None else weight[kept]
                )
                np.testing.assert_allclose(held_out[rows], ridge.predict(X[rows]), atol=1e-8)


def test_pairs_weighing_one_are_the_size_convention_at_a_smaller_alpha():
    """Equation 38 of the 2009 paper."""
    m, alpha = 15, 3.0
    X, y = singular_design(m, 4), np.random.default_rng(1).normal(size=m)
    factor = factor_of(label_graph(y, check_qid(None, m)))
    decomposition = decompose("dual", X, factor)
    pairs = np.array([0, 4]), np.array([9, 2])
    u = np.full(m, 1 / np.sqrt(m))
    found = differences_of(decomposition, y[:, None], u, pairs, np.array([alpha / (m - 2)]))
    for p, (i, j) in enumerate(zip(*pairs, strict=True)):
        f = refit_without(X, y, None, None, np.array([i, j]), alpha, {"query_weight": "pairs"})
        assert found[0, p, 0] == pytest.approx(f[i] - f[j], abs=1e-8)


def test_constant_predictions_are_half_wrong():
    m = 6
    decomposition = DualHoldOut(np.eye(m), np.zeros(m))  # the kernel that is zero: held-out scores are equal
    y = np.arange(m, dtype=float)[:, None]
    u = np.full(m, 1 / np.sqrt(m))
    differences = differences_of(decomposition, y, u, np.triu_indices(m, 1), np.ones(1))
    np.testing.assert_allclose(differences, 0, atol=1e-12)
    assert leave_pair_out_error(decomposition, y, u, np.ones(1)) == 0.5


@pairwise(weighted=[False, True], query_weight=["size", "pairs", "equal"], cost=["magnitude", "unit"])
def test_leave_pair_out_ties_where_nothing_is_left_to_learn(cost, query_weight, weighted):
    """One row above all others is in every pair, and without it all labels are equal: rounding must not decide."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rng.integers(4, 9), 3))
        X[2] = X[1]
        y = np.arange(len(X)) == len(X) - 1
        weight = rng.lognormal(size=len(X)) if weighted else None
        model = RankRLSCV([1e-8, 1e-6, 1e-3, 1.0], cost=cost, query_weight=query_weight, cv="leave-pair-out")
        np.testing.assert_array_equal(model.fit(X, y, sample_weight=weight).cv_errors_, 0.5)


@pytest.mark.parametrize("kind", ["primal", "dual"])
def test_two_rows_that_leave_one_level_score_alike(kind):
    """To the last bit, and in that output alone."""
    X, y = singular_design(8, 3), np.column_stack([np.arange(8) == 5, np.arange(8)]).astype(float)
    factor = factor_of(label_graph(y[:, 0], check_qid(None, 8)))
    pairs = np.full(7, 5), np.delete(np.arange(8), 5)
    u = np.full(8, 8**-0.5)
    found = differences_of(decompose(kind, X, factor), y, u, pairs, ALPHAS)
    np.testing.assert_array_equal(found[:, :, 0], 0.0)
    assert (found[:, :, 1] != 0).all()


@pytest.mark.parametrize("n_levels", [2, 3, 4])
def test_pairs_that_leave_one_level(n_levels):
    for sizes in itertools.product([1, 2, 3, 8], repeat=n_levels):
        level = np.repeat(np.arange(n_levels), sizes)
        i, j = np.nonzero(np.triu(level[:, None] != level))
        expected = [len(set(np.delete(level, [a, b]))) <= 1 for a, b in zip(i, j, strict=True)]
        np.testing.assert_array_equal(leaves_one_level(level, i, j), expected)


@pairwise(units=[1e-9, 1e9], weighted=[False, True], kind=["primal", "dual"])
def test_units_of_labels_and_weights_do_not_matter(kind, weighted, units):
    """Twin rows tie, and others do not."""
    m, alphas = 20, ALPHAS[1:]  # a kernel of rank 4 has lost the others' digits to its decomposition
    X, y = singular_design(m, 4), np.random.default_rng(1).normal(size=(m, 1))
    weight = np.random.default_rng(2).lognormal(size=m) if weighted else np.ones(m)
    errors = []
    for unit in (1.0, units):
        factor = factor_of(label_graph(y[:, 0], check_qid(None, m), row_weight=weight * unit))
        u = np.sqrt(weight * unit / (weight * unit).sum())
        decomposition = decompose(kind, X, factor)
        errors.append(leave_pair_out_error(decomposition, y / unit, u, alphas * unit))
        twins = differences_of(decomposition, y / unit, u, (np.array([2]), np.array([3])), alphas * unit)
        np.testing.assert_allclose(twins * unit, 0.0, atol=1e-9)
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_offset_of_all_labels_changes_nothing(weighted):
    """Labels that are whole numbers stay so: not a digit needs to be lost."""
    m = 20
    X, y = singular_design(m, 4), np.random.default_rng(1).integers(0, 5, size=(m, 2)).astype(float)
    weight = np.random.default_rng(2).lognormal(size=m) if weighted else np.ones(m)
    factor = factor_of(label_graph(y[:, 0], check_qid(None, m), row_weight=weight))
    u = np.sqrt(weight / weight.sum())
    decomposition = decompose("dual", X, factor)
    pairs = np.triu_indices(m, 1)
    near, far = (
        differences_of(decomposition, y + offset * np.array([1, 3]), u, pairs, ALPHAS)
        for offset in (0.0, 2.0**40)
    )
    np.testing.assert_allclose(far, near, atol=1e-9)


def factored(graph, group):
    return PreferencePairs(None, graph).factored(graph, Plan.of_folds(group))


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 2)), min_size=6, max_size=24))
def test_rows_have_the_group_of_their_own_pairs(found):
    """Groups of three rows each, some in no pair; as many pairs as rows, and one fewer."""
    winner, step = np.array(found).T
    loser = winner // 3 * 3 + (winner + step) % 3
    paired = np.isin(np.arange(9), [winner, loser])
    factor, of_row = factored(preference_graph(winner, loser, 9), winner // 3)
    assert factor.is_square == (winner.size >= 9)
    if factor.is_square:
        assert of_row.tolist() == np.where(paired, np.arange(9) // 3, -1).tolist()
        group = np.append(winner // 3, 0)  # one more pair, between two groups
        graph = preference_graph(np.append(winner, 0), np.append(loser, winner.max()), 9)
        is_divided = winner.max() // 3 > 0 and paired[winner.max()]
        assert factored(graph, group)[0].is_square != is_divided


def test_a_row_that_alone_determines_a_column_is_left_to_others_in_lockstep():
    """Its system is singular to the last digit where alpha is nothing beside the column: no step leads anywhere."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=(40, 3)), np.arange(40) == 7])
    groups = [*np.delete(np.arange(40), [7, 39]).reshape(19, 2), np.array([7])]
    alphas = np.array([1e-300, 1.0])
    decomposition = PrimalHoldOut(Z, np.array([40.0, 40.0, 40.0, 1.0]))
    Z[7, :3] = 0.0
    residual = rng.normal(size=(2, 40, 1))
    with np.errstate(all="raise"):
        found, converged = solve_in_lockstep(decomposition, groups, alphas, residual)
    assert np.flatnonzero(~converged).tolist() == [19]
    assert np.isfinite(found).all()


def test_small_groups_beside_a_large_one():
    rng = np.random.default_rng(0)
    Z, target = rng.normal(size=(LARGE_MATRIX + 30, 4)), rng.normal(size=LARGE_MATRIX + 30)
    groups = [np.arange(LARGE_MATRIX), *np.arange(LARGE_MATRIX, LARGE_MATRIX + 30).reshape(10, 3)]
    hold_out = PrimalHoldOut.with_vectors(Z)[0]
    found = held_out_residuals(hold_out, target[:, None], groups, ALPHAS)
    for rows in groups:
        rest = np.setdiff1d(np.arange(len(Z)), rows)
        for alpha, own in zip(ALPHAS, found[:, rows, 0], strict=True):
            model = Ridge(alpha=alpha, fit_intercept=False).fit(Z[rest], target[rest])
            np.testing.assert_allclose(own, target[rows] - model.predict(Z[rows]), atol=1e-8)
