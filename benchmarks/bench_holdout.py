"""Exact hold-out for a grid of 21 alphas: against the decomposition itself, and against the papers' recipe.

The baseline is the 2009 paper written plainly in NumPy: a general eigendecomposition of LK (its section 4.2) with
formula 33 for every query and alpha, and an eigendecomposition of K with formula 38 for every pair and alpha. Run with
``python benchmarks/bench_holdout.py`` (``--quick`` for small sizes). Rounds are interleaved, so ratios hold on a busy
machine.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.linalg

from harness import interleave, print_table, write_json
from rankwise import RankRLS
from rankwise.data.validation import check_qid
from rankwise.holdout import (
    ComparedRows,
    DualHoldOut,
    PrimalHoldOut,
    compared_pair_out_error,
    groups_of,
    held_out_residuals,
    leave_pair_out_differences,
    leave_pair_out_error,
)
from rankwise.kernels import Kernel
from rankwise.pairs.factor import LabelFactor
from rankwise.pairs.labels import label_graph
from rankwise.runtime.threads import default_threads
from rankwise.solvers.direct import DualSpectrum

ALPHAS = 2.0 ** np.arange(-10, 11)


def one_ranking(m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 10))
    return Kernel("rbf", {"gamma": 0.05}).matrix(X, X), X[:, 0] + rng.normal(size=m)


def queries(m, size, seed=0):
    K, y = one_ranking(m, seed)
    return K, y, np.arange(m) // size


# --- ours -----------------------------------------------------------------------------------------------------


def leave_pair_out(K, y):
    graph = label_graph(y, check_qid(None, y.size))
    spectrum = DualSpectrum.of_matrix(LabelFactor(graph.blocks).sandwich(K.copy()))
    share = np.full(y.size, y.size**-0.5)
    return leave_pair_out_error(
        DualHoldOut.of_spectrum(spectrum), y[:, None], share, ALPHAS, n_threads=default_threads()
    )


def compared_pair_out(K, y, weight, cost):
    graph = label_graph(y, check_qid(None, y.size), row_weight=weight, cost=cost, query_weight="pairs")
    spectrum = DualSpectrum.of_matrix(LabelFactor(graph.blocks).sandwich(K.copy()))
    ranking = ComparedRows(y, weight, cost, "pairs")
    return compared_pair_out_error(
        DualHoldOut.of_spectrum(spectrum), ranking, ALPHAS, n_threads=default_threads()
    )


def leave_query_out(K, y, qid):
    encoded = check_qid(qid, y.size)
    graph = label_graph(y, encoded)
    factor = LabelFactor(graph.blocks)
    hold_out = DualHoldOut.of_spectrum(DualSpectrum.of_matrix(factor.sandwich(K.copy())))
    target = factor.target(graph.pull)
    residual = held_out_residuals(
        hold_out, target[:, None], groups_of(encoded.codes), ALPHAS, n_threads=default_threads()
    )
    return factor.solve((target[:, None] - residual[:, :, 0].T).copy())


def primal_leave_query_out(X, y, qid):
    encoded = check_qid(qid, y.size)
    graph = label_graph(y, encoded)
    factor = LabelFactor(graph.blocks, default_threads())
    hold_out = PrimalHoldOut.of_design(factor.apply(X))
    target = factor.target(graph.pull)[:, None]
    residual = held_out_residuals(
        hold_out, target, groups_of(encoded.codes), ALPHAS, n_threads=default_threads()
    )
    return factor.solve((target - residual[:, :, 0].T).copy())


# --- the papers' recipe ---------------------------------------------------------------------------------------


def paper_leave_query_out(K, y, qid):
    """Formula 33: R = (LK + αI)^-1 by a general eigendecomposition, then a system a query."""
    m = y.size
    L = np.zeros((m, m))
    rows_of = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    for rows in rows_of:
        L[np.ix_(rows, rows)] = np.eye(rows.size) - 1 / rows.size
    values, V = scipy.linalg.eig(L @ K)
    inverse = np.linalg.inv(V)
    pull = L @ y
    scores = np.empty((m, ALPHAS.size))
    for a, alpha in enumerate(ALPHAS):
        R = ((V / (values + alpha)) @ inverse).real
        whole = R @ pull
        for U in rows_of:
            rest = np.setdiff1d(np.arange(m), U)
            inside = np.linalg.solve(R[np.ix_(U, U)], R[np.ix_(U, rest)] @ pull[rest])
            own = whole[rest] - R[np.ix_(rest, U)] @ pull[U] - R[np.ix_(rest, U)] @ inside
            scores[U, a] = K[np.ix_(U, rest)] @ own
    return scores


def paper_leave_pair_out(K, y):
    """Formula 38, vectorised over the partners of a row; weights of 1 a pair, so alpha (m - 2) is our alpha."""
    m = y.size
    values, V = np.linalg.eigh(K)
    wrong = np.zeros(ALPHAS.size)
    total = 0
    root = np.sqrt(m - 2)
    for a, alpha in enumerate(ALPHAS * (m - 2)):
        Q = (V * (values / (alpha + (m - 2) * values))) @ V.T
        QC, QDS = Q.sum(axis=1), Q @ ((m - 2) * y)
        CQC, CS, CQDS = QC.sum(), y.sum(), QDS.sum()
        R = np.array([[-1, root, 0], [-1, 0, root]])
        for i in range(m):
            for j in range(i + 1, m):
                if y[i] == y[j]:
                    continue
                U = [i, j]
                QUU = Q[np.ix_(U, U)]
                QCU = np.zeros((2, 3))
                QCU[:, 0] = QC[U]
                CtQC = np.zeros((3, 3))
                CtQC[0, 0] = CQC
                BQB = CtQC + R.T @ QCU + (R.T @ QCU).T + R.T @ QUU @ R
                BS = np.array([CS, 0, 0]) + R.T @ y[U]
                BQDS = np.array([CQDS, 0, 0]) + R.T @ QDS[U]
                QB = QCU + QUU @ R
                f = QDS[U] - QB @ BS - QB @ np.linalg.solve(BQB - np.eye(3), BQDS - BQB @ BS)
                wrong[a] += (f[0] - f[1]) * (y[i] - y[j]) < 0
                total += a == 0
    return wrong / total


def check_agreement():
    """Both recipes must say the same before they are timed."""
    K, y, qid = queries(60, 6)
    ours, theirs = leave_query_out(K, y, qid), paper_leave_query_out(K, y, qid)
    for q in np.unique(qid):
        centred = theirs[qid == q] - theirs[qid == q].mean(axis=0)
        np.testing.assert_allclose(ours[qid == q], centred, atol=1e-6)
    K, y = one_ranking(30)
    np.testing.assert_allclose(leave_pair_out(K, y)[:, 0], paper_leave_pair_out(K, y), atol=1e-9)
    pairs = np.array([0]), np.array([1])
    assert leave_pair_out_differences(
        DualHoldOut(np.eye(3), np.ones(3)), np.arange(3.0)[:, None], np.full(3, 3**-0.5), pairs, np.ones(1)
    ).shape == (1, 1, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    check_agreement()
    tables = {}

    def report(title, contenders, repeats):
        tables[title] = interleave(contenders, repeats=repeats)
        print_table(title, tables[title])

    m = 500 if quick else 2000
    K, y = one_ranking(m)
    report(
        f"leave-pair-out, all pairs, 21 alphas, m={m} (whole, decomposition included; bar: 4 = 1 + 3)",
        {"eigh": lambda: scipy.linalg.eigh(K, driver="evd"), "whole": lambda: leave_pair_out(K, y)},
        2,
    )
    m = 300 if quick else 1000
    K, y = one_ranking(m)
    ones, weight = np.ones(m), np.random.default_rng(1).lognormal(size=m)
    report(
        f"leave-pair-out of other graphs, 21 alphas, m={m}",
        {
            "eigh": lambda: scipy.linalg.eigh(K, driver="evd"),
            "weights, pairs of 1": lambda: compared_pair_out(K, y, weight, "magnitude"),
            "unit cost": lambda: compared_pair_out(K, y, ones, "unit"),
        },
        3,
    )
    m = 1000 if quick else 4000
    K, y, qid = queries(m, 20)
    report(
        f"leave-query-out, 21 alphas, m={m}, queries of 20 (whole; bar: 1.4 = 1 + 0.4)",
        {"eigh": lambda: scipy.linalg.eigh(K, driver="evd"), "whole": lambda: leave_query_out(K, y, qid)},
        1,
    )
    m = 300 if quick else 800
    K, y, qid = queries(m, 20)
    report(
        f"leave-query-out, 21 alphas, m={m}, against formula 33 (bar: 5)",
        {
            "papers' recipe": lambda: paper_leave_query_out(K, y, qid),
            "rankwise": lambda: leave_query_out(K, y, qid),
        },
        3,
    )
    K, y = one_ranking(60 if quick else 100)
    report(
        f"leave-pair-out, 21 alphas, m={y.size}, against formula 38 (bar: 5)",
        {"papers' recipe": lambda: paper_leave_pair_out(K, y), "rankwise": lambda: leave_pair_out(K, y)},
        3,
    )
    m = 14_000 if quick else 140_000
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(m, 136)), np.sort(rng.integers(0, m // 70, m))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=m)), 0, 4)
    report(
        f"leave-query-out, 21 alphas, {m} × 136 dense rows in {m // 70} queries (bar: 6 trainings)",
        {"training": lambda: RankRLS().fit(X, y, qid), "whole": lambda: primal_leave_query_out(X, y, qid)},
        2,
    )
    write_json("holdout" + ("_quick" if quick else ""), tables, alphas=ALPHAS.tolist())


if __name__ == "__main__":
    main()
