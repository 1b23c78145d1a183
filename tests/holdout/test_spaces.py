"""Models of decomposed problems, in the space of the columns or of a kernel, against explicit pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from all_pairs import pairwise
from making_blocks import graph_of_outputs
from oracles import Pairs, label_pairs, solve_rankrls
from rankwise import RankRLS
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.fitting.problem import KernelProblem
from rankwise.holdout.spaces import ColumnSpace, KernelSpace
from rankwise.kernels import Kernel
from rankwise.pairs.factor import factor_of
from rankwise.pairs.listed import PreferencePairs
from rankwise.pairs.plan import Plan
from rankwise.pairs.preferences import preference_graph
from rankwise.runtime.memory import MemoryBudget

ALPHAS = np.array([1e-2, 1.0, 30.0])
ROWS = 18


def rows_of(columns):
    return np.random.default_rng(0).normal(size=(ROWS, columns)) * np.geomspace(0.1, 10, columns)


def labelled():
    """Two outputs, and three queries of which one has a single row."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(ROWS, 2)), np.minimum(np.arange(ROWS) // 8, 1) + (np.arange(ROWS) == 0) * 2


def listed():
    """Pairs inside three queries of six rows, one that weighs nothing, and one row in no pair."""
    rng = np.random.default_rng(2)
    block = rng.integers(3, size=40) * 6
    pairs = block[:, None] + np.array([rng.choice(5, 2, replace=False) for _ in range(40)])
    weight = rng.uniform(0.5, 2, size=40)
    weight[7] = 0.0
    return pairs, weight, rng.uniform(0.5, 2, size=40), block


def kernel_problem(X, basis=None):
    K = rbf_kernel(X, gamma=0.05) + 3.0
    return K, KernelProblem(Kernel("precomputed"), K, basis, MemoryBudget(), 1)


@pairwise(columns=[4, 40], storage=[np.asarray, sp.csr_matrix], power=[0.0, 0.5])
def test_columns_of_labelled_rows(columns, storage, power):
    X, (Y, qid) = rows_of(columns), labelled()
    space = ColumnSpace.of_design(as_design(storage(X)), power)
    graph = graph_of_outputs(Y, check_qid(qid, ROWS))
    decomposed = space.decompose(graph, factor_of(graph))
    for output in range(2):
        pairs = label_pairs(Y[:, output], qid)
        for alpha in ALPHAS:
            found = decomposed.model(output, alpha)
            if power == 0.0:
                np.testing.assert_allclose(found, solve_rankrls(X, pairs, alpha), rtol=1e-6, atol=1e-9)
            else:
                same = RankRLS(alpha, penalty_power=power, solver="eigen").fit(X, Y[:, output], qid)
                np.testing.assert_allclose(found, same.coef_, rtol=1e-6, atol=1e-9)


@pairwise(storage=[np.asarray, sp.csr_matrix], power=[0.0, 0.5], shares=[False, True])
def test_columns_of_listed_pairs(storage, power, shares):
    """Groups that share rows, or not: the same models, and the same differences of scores."""
    X, (listing, weight, magnitude, block) = rows_of(4), listed()
    graph = preference_graph(*listing.T, ROWS, magnitude=magnitude, weight=weight)
    space = ColumnSpace.of_design(as_design(storage(X)), power)
    factor, _ = PreferencePairs(None, graph).factored(
        graph, Plan.of_folds(np.arange(40) if shares else block)
    )
    decomposed = space.decompose(graph, factor)
    assert factor.is_square != shares
    pairs = Pairs(*listing.T, weight, magnitude, ROWS)
    for alpha in ALPHAS:
        w = decomposed.model(0, alpha)
        if power == 0.0:
            np.testing.assert_allclose(w, solve_rankrls(X, pairs, alpha), atol=1e-9)
        else:
            same = RankRLS(alpha, penalty_power=power, solver="eigen")
            same.fit_pairs(X, listing, magnitude, weight)
            np.testing.assert_allclose(w, same.coef_, rtol=1e-6, atol=1e-9)
        fitted = decomposed.target - decomposed.hold_out.residual(decomposed.target, np.array([alpha]))[0]
        expected = np.where(weight > 0, X[listing[:, 0]] @ w - X[listing[:, 1]] @ w, 0.0)
        found = factor.values(fitted)[:, 0]
        np.testing.assert_allclose(np.where(weight > 0, found, 0.0), expected, atol=1e-9)
        assert not shares or found[7] == 0


@pytest.mark.parametrize("basis", [None, np.arange(0, ROWS, 2)])
def test_a_kernel_of_labelled_rows(basis):
    """Dual coefficients of all rows, or of a reduced set; and of some rows alone, as folds need them."""
    K, problem = kernel_problem(rows_of(3), basis)
    Y, qid = labelled()
    space = KernelSpace(problem)
    graph = graph_of_outputs(Y, check_qid(qid, ROWS))
    decomposed = space.decompose(graph, factor_of(graph))
    columns = np.arange(ROWS) if basis is None else basis
    values, vectors = np.linalg.eigh(K[np.ix_(columns, columns)])
    Z = K[:, columns] @ (vectors / np.sqrt(values))  # its features
    train, test = np.flatnonzero(np.arange(ROWS) % 3), np.flatnonzero(np.arange(ROWS) % 3 == 0)
    own = graph_of_outputs(Y[train, :1], check_qid(qid[train], train.size))
    refitted = space.refitted(train, own, factor_of(own))
    for alpha in ALPHAS:
        for output in range(2):
            w = solve_rankrls(Z, label_pairs(Y[:, output], qid), alpha)
            scores = K[:, columns] @ decomposed.model(output, alpha)
            np.testing.assert_allclose(centred(scores, qid), centred(Z @ w, qid), atol=1e-7)
        w = solve_rankrls(Z[train], label_pairs(Y[train, 0], qid[train]), alpha)
        scores = space.scoring(test, train) @ refitted.model(0, alpha)
        np.testing.assert_allclose(scores - scores.mean(), Z[test] @ w - (Z[test] @ w).mean(), atol=1e-7)
    where = "on the pairs" if basis is None else "between basis rows"
    assert space.extremes[where][1] > 0


@pytest.mark.parametrize("basis", [None, np.arange(0, ROWS, 2)])
@pytest.mark.parametrize("shares", [False, True])
def test_a_kernel_of_listed_pairs(basis, shares):
    K, problem = kernel_problem(rows_of(3), basis)
    listing, weight, magnitude, block = listed()
    graph = preference_graph(*listing.T, ROWS, magnitude=magnitude, weight=weight)
    space = KernelSpace(problem)
    factor, _ = PreferencePairs(None, graph).factored(
        graph, Plan.of_folds(np.arange(40) if shares else block)
    )
    decomposed = space.decompose(graph, factor)
    # The dual has an unknown a row; else the features of the reduced set, or of all rows as one, are decomposed.
    assert set(space.extremes) == {"on the pairs" if basis is None and not shares else "between basis rows"}
    columns = np.arange(ROWS) if basis is None else basis
    values, vectors = np.linalg.eigh(K[np.ix_(columns, columns)])
    Z = K[:, columns] @ (vectors / np.sqrt(values))
    for alpha in ALPHAS:
        w = solve_rankrls(Z, Pairs(*listing.T, weight, magnitude, ROWS), alpha)
        scores = K[:, columns] @ decomposed.model(0, alpha)
        np.testing.assert_allclose(
            centred(scores, block_of_rows()), centred(Z @ w, block_of_rows()), atol=1e-7
        )


def block_of_rows():
    return np.arange(ROWS) // 6


def centred(scores, qid):
    """Scores without the mean of each query: constants inside mean nothing."""
    out = scores.copy()
    for query in np.unique(qid):
        out[qid == query] -= out[qid == query].mean()
    return out
