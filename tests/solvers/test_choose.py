"""Which solver is taken: by work that is counted one multiply-add at a time, by memory, by storages, by pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from rankwise.data.queries import encode_queries, one_query
from rankwise.data.validation import check_qid
from rankwise.design import DenseDesign, as_design, protocol
from rankwise.exceptions import UnsuitableSolverError
from rankwise.losses import LOSSES, MARGIN_LOSSES
from rankwise.objectives import SquaredObjective
from rankwise.objectives.moved import MatrixQuadratic
from rankwise.pairs.labels import find_levels, label_graph, pair_scale
from rankwise.pairs.violations import ViolationSweep
from rankwise.solvers import choose
from rankwise.solvers.choose import (
    ITERATIVE,
    MARGIN_SOLVERS,
    SOLVERS,
    SolverOptions,
    choose_margin_solver,
    choose_solver,
    column_scale,
    fits_direct,
    matrix_bytes,
    matrix_reads,
    require_diagonal,
)
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.momentum import estimated_descent, gradient_descent
from rankwise.solvers.stochastic import stochastic


def dense(rows, columns):
    return as_design(np.ones((rows, columns)))


def sparse(rows, columns, per_row):
    indices = np.concatenate(
        [np.sort(np.random.default_rng(i).permutation(columns)[:per_row]) for i in range(rows)]
    )
    indptr = np.arange(rows + 1) * per_row
    return as_design(sp.csr_matrix((np.ones(indices.size), indices, indptr), shape=(rows, columns)))


def gram_work(X):
    """Multiply-adds of ``X'X``, row by row: every stored value with every other of its row."""
    return sum(float(np.count_nonzero(row)) ** 2 for row in X)


DESIGNS = {
    "tall": lambda: dense(2000, 70),
    "square": lambda: dense(100, 100),
    "wide": lambda: dense(20, 3000),
    "sparse": lambda: sparse(400, 100, 5),
    "sparse and wide": lambda: sparse(300, 2000, 4),
}


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("forms_matrix", [True, False])
def test_forming_the_matrix_is_priced_by_its_multiply_adds_in_reads_of_the_data(name, forms_matrix):
    design = DESIGNS[name]()
    X = design.matrix()
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    n, stored = X.shape[1], np.count_nonzero(X)
    product = protocol._PRODUCT * stored  # two reads
    form = gram_work(X) * (protocol._DENSE_GRAM if design.is_dense else protocol._SPARSE_GRAM)
    if not forms_matrix:  # a product per column instead, which for dense rows costs twice the matrix
        form = 2 * form if design.is_dense else n * product
    expected = (form + choose._FACTOR * n**3) / (product / 2)
    assert matrix_reads(design, forms_matrix=forms_matrix) == pytest.approx(expected)
    # Fifty products are what iterations usually take; of few columns the matrix is formed anyway.
    for n_alphas in (1, 7):
        direct = form + n_alphas * choose._FACTOR * n**3
        cheaper = direct <= n_alphas * choose._ITERATIONS * product
        assert choose_solver(design, forms_matrix=forms_matrix, n_alphas=n_alphas) == (
            "direct" if cheaper or n <= 64 else "cg"
        )


def test_designs_on_both_sides_are_looked_at():
    assert {choose_solver(make()) for make in DESIGNS.values()} == {"direct", "cg"}
    assert choose_solver(dense(1, 64)) == "direct"
    assert choose_solver(sparse(2, 64, 1), forms_matrix=False) == "direct"
    assert choose_solver(sparse(2, 65, 1), forms_matrix=False) == "cg"
    empty = as_design(sp.csr_matrix((3, 100)))
    assert matrix_reads(empty) > 0
    assert choose_solver(empty) == "cg"


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


def test_a_storage_may_price_itself():
    class Priced(DenseDesign):
        work = (3.0, 8.0)

    design = Priced(np.ones((5000, 100)))
    assert matrix_reads(design) == pytest.approx((8.0 + choose._FACTOR * 1e6) / 1.5)
    assert choose_solver(design) == "cg"


def test_units_of_columns_are_powers_of_their_curvature():
    X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 10.0, 100.0]
    graph = label_graph(np.random.default_rng(1).normal(size=30), check_qid(None, 30))
    diagonal = np.diag(SquaredObjective(as_design(X), graph).matrix())
    for power in (0.0, 0.25, 0.5):
        scale = column_scale(as_design(X), graph, power)
        np.testing.assert_allclose(scale / scale[0], (diagonal / diagonal[0]) ** -power, rtol=1e-9)


def quadratic():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 12)) * np.geomspace(0.3, 3, 12)
    return MatrixQuadratic(root @ root.T, rng.normal(size=12))


# What each reads beside tol, max_iter and a monitor.
CALLS = {
    "cg": (conjugate_gradients, {"precondition"}, {}),
    "gdm": (gradient_descent, {"learning_rate", "momentum"}, {}),
    "egdm": (estimated_descent, set(), {"estimator": "lanczos"}),
    "egdm-power": (estimated_descent, set(), {"estimator": "power"}),
}


OPTIONS = [
    {},
    {"tol": 1e-2},
    {"max_iter": 3},
    {"precondition": "jacobi"},
    {"learning_rate": 1e-2, "max_iter": 20},
    {"momentum": 0.5},
]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_solver_in_the_table_takes_the_options_that_concern_it(name, options):
    found = SOLVERS[name](quadratic(), 0.1, SolverOptions(**options))
    solve, own, fixed = CALLS[name]
    read = {key: value for key, value in options.items() if key in own | {"tol", "max_iter"}}
    expected = solve(quadratic(), 0.1, **read, **fixed)
    np.testing.assert_array_equal(found.coef, expected.coef)
    assert (found.status, found.history) == (expected.status, expected.history)


def test_blocks_of_rows_take_their_options_too():
    rng = np.random.default_rng(0)
    graph = label_graph(rng.normal(size=50), check_qid(None, 50))
    objective = SquaredObjective(as_design(rng.normal(size=(50, 8)) * np.geomspace(0.1, 3, 8)), graph)
    for options in ({}, {"tol": 1e-9}, {"max_iter": 3}):
        blocks = SOLVERS["egdm-blocks"](objective, 0.1, SolverOptions(**options))
        expected = estimated_descent(objective, 0.1, estimator="blocks", **options)
        assert blocks.history == expected.history
        one_read = SOLVERS["stochastic"](objective, 0.1, SolverOptions(**options))
        assert one_read.history == stochastic(objective, 0.1, **options).history


@pytest.mark.parametrize("name", SOLVERS)
def test_those_that_iterate_tell_a_monitor(name):
    rng = np.random.default_rng(0)
    graph = label_graph(rng.normal(size=50), check_qid(None, 50))
    objective = SquaredObjective(as_design(rng.normal(size=(50, 8))), graph)
    told = []
    SOLVERS[name](objective, 0.1, SolverOptions(monitor=lambda *_: told.append(1)))
    assert (len(told) > 0) == (name in ITERATIVE)


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
