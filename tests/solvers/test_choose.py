"""Which solver is taken: by work that is counted one multiply-add at a time, by memory, by storages, by pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from rankwise.data.queries import encode_queries, one_query
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.exceptions import UnsuitableSolverError
from rankwise.losses import LOSSES, MARGIN_LOSSES
from rankwise.pairs.labels import find_levels, label_graph, pair_scale
from rankwise.pairs.violations import ViolationSweep
from rankwise.solvers import choose
from rankwise.solvers.choose import (
    MARGIN_SOLVERS,
    choose_margin_solver,
    choose_solver,
    column_scale,
    fits_direct,
    matrix_bytes,
    require_diagonal,
)


def dense(rows, columns):
    return as_design(np.ones((rows, columns)))


def sparse(rows, columns, per_row):
    indices = np.concatenate(
        [np.sort(np.random.default_rng(i).permutation(columns)[:per_row]) for i in range(rows)]
    )
    indptr = np.arange(rows + 1) * per_row
    return as_design(sp.csr_matrix((np.ones(indices.size), indices, indptr), shape=(rows, columns)))


def test_a_matrix_and_its_factor_must_fit(monkeypatch):
    assert matrix_bytes(1000) == 3 * np.zeros((1000, 1000)).nbytes
    asked = []

    def fits(n_bytes, *_):
        asked.append(n_bytes)
        return n_bytes <= matrix_bytes(80)

    monkeypatch.setattr(choose, "fits", fits)
    assert fits_direct(80)
    assert not fits_direct(81)
    assert asked == [matrix_bytes(80), matrix_bytes(81)]
    assert choose_solver(dense(5000, 80)) == "direct"
    assert choose_solver(dense(5000, 81)) == "cg"
    operator = as_design(aslinearoperator(np.ones((5, 81))))
    with pytest.raises(UnsuitableSolverError, match="81 × 81"):
        require_diagonal(operator)
    require_diagonal(as_design(aslinearoperator(np.ones((5, 80)))))
    require_diagonal(dense(5, 81))  # whose squares are at hand
    graph = label_graph(np.arange(5.0), check_qid(None, 5))
    with pytest.raises(UnsuitableSolverError):
        column_scale(operator, graph, 0.5)


def test_an_operator_is_iterated_on_and_a_storage_may_say_from_where_on():
    assert choose_solver(as_design(aslinearoperator(np.ones((500, 10))))) == "cg"
    design = dense(5000, 100)
    assert design.widest_matrix == np.inf
    assert choose_solver(design) == "direct"
    design.widest_matrix = 100
    assert choose_solver(design) == "direct"
    design.widest_matrix = 99
    assert choose_solver(design) == "cg"


def sweep(y, qid=None):
    queries = one_query(y.size) if qid is None else encode_queries(qid)
    levels = find_levels(y, queries)
    return ViolationSweep.from_levels(levels, queries, scale=pair_scale(levels, "equal"))


def test_cutting_planes_are_for_one_large_ranking_of_many_levels_at_a_loose_gap():
    y = np.random.default_rng(0).normal(size=20_000)
    large = sweep(y)
    assert choose_margin_solver("hinge", large, 1e-3) == "bundle"
    assert choose_margin_solver("hinge", large, 1e-4) == "bundle"
    assert choose_margin_solver("hinge", large, 0.9e-4) == "smoothing"
    assert choose_margin_solver("hinge", sweep(y[:-1]), 1e-3) == "smoothing"
    assert choose_margin_solver("hinge", sweep(np.round(np.clip(y, -1, 1))), 1e-3) == "smoothing"
    assert choose_margin_solver("hinge", sweep(y, np.arange(20_000) // 10_000), 1e-3) == "smoothing"
    for loss in MARGIN_LOSSES:
        if LOSSES[loss].is_smooth:
            assert choose_margin_solver(loss, large, 1e-3) == "newton"


def test_every_margin_loss_has_its_solver_and_smooth_ones_newtons():
    for loss in MARGIN_LOSSES:
        takes = {name for name, solver in MARGIN_SOLVERS.items() if loss in solver.losses}
        assert takes == ({"bundle", "newton"} if LOSSES[loss].is_smooth else {"bundle", "smoothing"})
        assert choose_margin_solver(loss, sweep(np.arange(5.0)), 1e-3) in takes
