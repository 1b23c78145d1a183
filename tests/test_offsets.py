"""Pairs do not see what is added to a whole column: every estimator learns what it learns from centred columns."""

import io
from functools import cache, partial
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

import rankwise
from all_pairs import pairwise
from making_blocks import make_blocks, make_folds
from oracles import label_pairs, laplacian_matrix, solve_rankrls
from rankwise import (
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.data import open_store, save_store
from rankwise.design import as_design, comparing_design, shifted_design
from rankwise.design.offsets import FAR, find_shift
from rankwise.exceptions import MemoryLimitError
from rankwise.kernels import kmeans_rows
from rankwise.runtime.memory import MemoryBudget
from rankwise.selection.grids import POWERS_OF_TWO

QID = np.repeat(np.arange(15), 6)
N_COLUMNS = 5
TOLERANCE = 1e-8


@cache
def rows():
    """Rows with columns of unlike scales, labels, and pairs with their weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(QID.size, N_COLUMNS)) * [1.0, 0.3, 2.0, 1.0, 1e-3]
    y = np.round(X @ [1.0, -2.0, 0.5, 1.0, 300.0] + rng.normal(size=QID.size), 1)
    pairs = rng.permuted(np.tile(np.arange(QID.size), (150, 1)), axis=1)[:, :2]
    pairs = np.where((y[pairs[:, 0]] >= y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    return X, y, pairs


def moved(offsets):
    """Return rows with so many spreads added to their columns, and what was left of them by that without the offsets.

    The second differs from the rows that offsets were added to by what floating-point numbers near them cannot hold.
    """
    added = np.asarray(offsets) * rows()[0].std(axis=0)
    X = rows()[0] + added
    return X, X - added


FAR_OFF = np.array([0.0, 1e9, 0.0, -1e6, 1e9])


def in_store(X, folder):
    save_store([(sp.csr_matrix(X), np.zeros(X.shape[0]), None)], folder, dtype=np.float64)
    return open_store(folder).X


STORAGES = {
    "dense": lambda X, _: X,
    "sparse": lambda X, _: sp.csr_matrix(X),
    "store": in_store,
}


@pytest.fixture
def store_as(request, tmp_path, monkeypatch):
    """Return what puts rows into each storage; without room, nothing of the size of X may be copied."""
    name, _, no_room = request.param.partition(" without ")
    if no_room:
        monkeypatch.setattr("rankwise.design._COPY_SHARE", 1 << 60)
    return lambda X: STORAGES[name](X, tmp_path / "s")


def each_in_a_storage(argument, values):
    """Parametrize a test by values, each of them in one storage; the storages take turns."""
    storages = cycle([*STORAGES, "dense without room", "sparse without room"])
    return pytest.mark.parametrize(
        (argument, "store_as"), [(value, next(storages)) for value in values], indirect=["store_as"]
    )


def fit_in_calls(model, X, qid=None):
    y = rows()[1]
    for part in np.array_split(np.arange(QID.size), 5):
        model.partial_fit(X[part], y[part], None if qid is None else qid[part])
    return model


def labels(model, **options):
    return lambda X: model().fit(X, rows()[1], QID, **options)


def ranking(model):
    return lambda X: model().fit(X, rows()[1])


def listed(model, **options):
    return lambda X: model().fit_pairs(X, rows()[2], **options)


def watched(model):
    """Rows 0-59 train, the others score."""

    def fit(X):
        y = rows()[1]
        return model().fit(X[:60], y[:60], QID[:60], eval_set=(X[60:], y[60:], QID[60:]))

    return fit


def watched_pairs(model):
    def fit(X):
        return model().fit_pairs(X, rows()[2][:100], eval_set=(X, rows()[2][100:]))

    return fit


def kernels(model, **options):
    return {
        f"{model.__name__} {kernel} {', '.join(options)}": labels(partial(model, kernel, **options))
        for kernel in ("linear", "rbf")
    }


GRID = [0.1, 1.0, 10.0]
LINEAR = {
    "cv folds": labels(lambda: RankRLSCV(GRID, cv=3)),
    "cv folds converged": labels(lambda: RankRLSCV(GRID, cv=3, method="tikhonov", tol=1e-12)),
    "cv penalty power": labels(lambda: RankRLSCV(GRID, cv=3, penalty_power=0.5)),
    "leave-query-out": labels(lambda: RankRLSCV(GRID, cv="leave-query-out")),
    "leave-pair-out": ranking(lambda: RankRLSCV(GRID, cv="leave-pair-out")),
    "one ranking": ranking(lambda: RankRLSCV(GRID, cv=4)),
    "cv of pairs": listed(lambda: RankRLSCV(GRID, cv=3)),
    "leave-pair-out of pairs": listed(lambda: RankRLSCV(GRID, cv="leave-pair-out")),
    "eval_set": watched(lambda: RankRLSCV(GRID)),
    "eval_set of pairs": watched_pairs(lambda: RankRLSCV(GRID)),
    "ties excluded": labels(lambda: RankRLS(solver="cg", tol=1e-13, ties="exclude", cost="unit")),
    "relative": labels(lambda: RankRLS(solver="cg", tol=1e-13, ties="exclude", cost="relative")),
    "pairs": listed(lambda: RankRLS(solver="cg", tol=1e-13)),
    "pairs, direct": listed(lambda: RankRLS(solver="direct")),
    "early stopping": labels(lambda: RankRLS(0.1, solver="cg", early_stopping=True)),
    "early stopping, watched": watched(lambda: RankRLS(0.1, solver="egdm", early_stopping=True)),
    "partial_fit": lambda X: fit_in_calls(RankRLS(), X),
    "partial_fit by levels": lambda X: fit_in_calls(RankRLS(ties="exclude"), X),
    "partial_fit of queries": lambda X: fit_in_calls(RankRLS(), X, QID),
    "newton": labels(lambda: RankSVM(0.01, loss="squared_hinge", solver="newton", tol=1e-15)),
    "squared hinge": labels(lambda: RankSVM(0.01, loss="squared_hinge", tol=1e-15)),
    "logistic": listed(lambda: RankSVM(0.01, loss="logistic", tol=1e-12)),
    "margins, cv": labels(lambda: RankSVMCV([0.01, 0.1], loss="squared_hinge", cv=3, tol=1e-15)),
    "margins, eval_set": watched(lambda: RankSVMCV([0.01, 0.1], loss="squared_hinge", tol=1e-10)),
    "margins, early stopping": watched(
        lambda: RankSVM(0.01, loss="squared_hinge", early_stopping=True, tol=1e-10)
    ),
}
KERNELS = {
    **kernels(KernelRankRLS),
    **kernels(KernelRankRLS, solver="eigen"),
    **kernels(KernelRankRLS, solver="cg", tol=1e-10),
    **kernels(KernelRankRLS, solver="cg", tol=1e-10, memory_limit=1000),
    **kernels(KernelRankRLS, basis=np.arange(0, QID.size, 4)),
    **kernels(KernelRankRLSCV, alphas=GRID),
    **kernels(KernelRankRLSCV, alphas=GRID, cv=3),
    **kernels(KernelRankRLSCV, alphas=GRID, solver="cg", method="tikhonov", tol=1e-12),
    **kernels(KernelRankSVM, alpha=0.1, loss="squared_hinge", tol=1e-12),
    "kernel, pairs": listed(KernelRankRLS),
    "kernel, leave-pair-out": ranking(lambda: KernelRankRLSCV(alphas=GRID, cv="leave-pair-out")),
    "kernel, eval_set": watched(lambda: KernelRankRLSCV(alphas=GRID)),
    "kernel, one basis row": labels(lambda: KernelRankRLS(basis=np.array([7]))),
}


@cache
def from_centred_columns(name):
    return {**LINEAR, **KERNELS}[name](moved(FAR_OFF)[1])


@cache
def solution(by_query):
    C, qid = moved(FAR_OFF)[1], QID if by_query else None
    return solve_rankrls(C / C.std(axis=0), label_pairs(rows()[1], qid), 0.5)


def assert_same_model(model, expected, X, C):
    """The same coefficients, or scores up to a constant, and the same held-out values."""
    if hasattr(expected, "coef_"):
        spread = C.std(axis=0)
        mine, wanted = model.coef_ * spread, expected.coef_ * spread
    else:
        mine, wanted = model.predict(X), expected.predict(C)
        mine, wanted = mine - mine.mean(), wanted - wanted.mean()
    assert_allclose(mine, wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max())
    for name in ("alpha_", "cv_errors_", "best_score_", "gamma_", "history_"):
        if hasattr(expected, name):
            assert_allclose(getattr(model, name), getattr(expected, name), rtol=TOLERANCE, err_msg=name)


@each_in_a_storage(
    "solver", ["direct", "eigen", "cg", "gdm", "egdm", "egdm-power", "egdm-blocks", "stochastic"]
)
def test_every_solver_finds_the_solution_of_the_explicit_pairs(solver, store_as):
    X, C = moved(FAR_OFF)
    y, spread = rows()[1], C.std(axis=0)
    # The smallest column would otherwise ask gradient descent for thousands of steps.
    X = store_as(X / spread)
    for by_query in (True, False):
        model = RankRLS(0.5, solver=solver, tol=1e-12, max_iter=5000).fit(X, y, QID if by_query else None)
        wanted = solution(by_query)
        assert_allclose(model.coef_, wanted, rtol=0, atol=TOLERANCE * np.abs(wanted).max())


@each_in_a_storage("name", LINEAR)
def test_every_linear_estimator_learns_what_it_learns_from_centred_columns(name, store_as):
    X, C = moved(FAR_OFF)
    X = store_as(X)
    assert_same_model(LINEAR[name](X), from_centred_columns(name), X, C)


@each_in_a_storage("solver", ["auto", "bundle", "smoothing"])
def test_the_hinge_is_minimised_as_on_centred_columns(solver, store_as):
    X, C = moved(FAR_OFF)
    y, alpha = rows()[1], 0.1
    pairs = label_pairs(y, QID, ties="exclude", query_weight="equal")

    def value(coef):
        scores = C @ coef
        slack = np.maximum(0, 1 - (scores[pairs.winner] - scores[pairs.loser]))
        return pairs.weight @ slack / pairs.weight.sum() + alpha * coef @ coef

    model = RankSVM(alpha, solver=solver, tol=1e-9).fit(store_as(X), y, QID)
    best = RankSVM(alpha, solver=solver, tol=1e-9).fit(C, y, QID)
    assert abs(value(model.coef_) - value(best.coef_)) < TOLERANCE
    # The objective grows by alpha times the squared distance, at least, from its minimum.
    assert np.linalg.norm(model.coef_ - best.coef_) <= 2 * np.sqrt(2e-9 / alpha)


@each_in_a_storage("name", KERNELS)
def test_every_kernel_estimator_learns_what_it_learns_from_centred_rows(name, store_as):
    X, C = moved(FAR_OFF)
    X = store_as(X)
    assert_same_model(KERNELS[name](X), from_centred_columns(name), X, C)


@pytest.mark.parametrize("offset", [3.0, 10.0, 30.0, 99.0])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_kernels_are_exact_near_zero_too(offset, storage):
    """The smallest alpha of the default grid asks for the most digits."""
    X, C = moved(offset * np.ones(N_COLUMNS))
    wanted = RankRLS(POWERS_OF_TWO[0]).fit(C, rows()[1], QID).predict(C)
    for model in (KernelRankRLS, partial(KernelRankRLS, solver="eigen"), KernelRankSVM, KernelRankRLSCV):
        if model is KernelRankSVM:
            fit = labels(lambda: KernelRankSVM("linear", alpha=1e-3, loss="squared_hinge", tol=1e-13))
            assert_same_model(fit(STORAGES[storage](X, None)), fit(C), X, C)
            continue
        option = "alphas" if model is KernelRankRLSCV else "alpha"
        value = [POWERS_OF_TWO[0]] if model is KernelRankRLSCV else POWERS_OF_TWO[0]
        mine = labels(partial(model, "linear", **{option: value}))(STORAGES[storage](X, None)).predict(X)
        difference = (mine - mine.mean()) - (wanted - wanted.mean())
        assert np.abs(difference).max() <= TOLERANCE * np.abs(wanted - wanted.mean()).max()


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    offsets=st.lists(
        st.sampled_from([0.0, *(s * 10.0**k for k in range(1, 10) for s in (-1, 1))]),
        min_size=N_COLUMNS,
        max_size=N_COLUMNS,
    ),
    name=st.sampled_from([*LINEAR, *KERNELS]),
    is_sparse=st.booleans(),
)
def test_no_offset_of_columns_changes_a_model(offsets, name, is_sparse):
    X, C = moved(offsets)
    X = sp.csr_matrix(X) if is_sparse else X
    fit = {**LINEAR, **KERNELS}[name]
    assert_same_model(fit(X), fit(C), X, C)


def test_a_kernel_model_comes_back_from_a_file_with_the_same_scores():
    X, _ = moved(FAR_OFF)
    for kernel in ("linear", "rbf"):
        model = KernelRankRLS(kernel, basis=np.arange(0, QID.size, 3)).fit(X, rows()[1], QID)
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        assert_array_equal(rankwise.load(file).predict(X[::2]), model.predict(X[::2]))


@pairwise(model=[RankRLS, RankSVM], as_matrix=[np.asarray, sp.csr_matrix], n_columns=[1, 3])
def test_columns_that_are_constant_say_nothing_where_there_are_no_others(model, as_matrix, n_columns):
    """Of large ones, rounding would make coefficients."""
    rng = np.random.default_rng(n_columns)
    X = as_matrix(np.repeat(1e8 + rng.random((1, n_columns)), 30, axis=0))
    y, weight, prior = rng.normal(size=30), rng.random(30), rng.normal(size=n_columns)
    qid = np.arange(30) // 10
    assert_array_equal(model(0.01).fit(X, y, qid, weight).coef_, np.zeros(n_columns))
    assert_array_equal(model(0.01, prior=prior).fit(X, y, qid, weight).coef_, prior)


def test_gamma_does_not_see_where_columns_are():
    X, C = moved(FAR_OFF)
    weight = np.random.default_rng(1).integers(0, 3, QID.size)
    twice = KernelRankRLS().fit(np.repeat(X, weight, axis=0), np.repeat(rows()[1], weight)).gamma_
    for matrix in (X, sp.csr_matrix(X)):
        assert_allclose(KernelRankRLS().fit(matrix, rows()[1]).gamma_, 1 / C.var(axis=0).sum(), rtol=1e-10)
        weighted = KernelRankRLS().fit(matrix, rows()[1], sample_weight=weight)
        assert_allclose(weighted.gamma_, twice, rtol=1e-10)
    standard = StandardScaler().fit_transform(C)
    gamma = KernelRankRLS().fit(standard, rows()[1]).gamma_
    assert_allclose(gamma, 1 / (N_COLUMNS * standard.var()))  # what scikit-learn calls "scale"


def test_clusters_do_not_see_where_columns_are():
    X, C = moved(FAR_OFF)
    assert_array_equal(kmeans_rows(X, 12, 0), kmeans_rows(C, 12, 0))


# --- the design -------------------------------------------------------------------------------------------


@pytest.fixture(params=["dense", "dense float32", "sparse", "sparse float32", "store"])
def far_design(request, tmp_path, monkeypatch):
    """A design two of whose columns are kept a second time, and the matrix that it stands for."""
    monkeypatch.setattr("rankwise.design._COPY_SHARE", 1 << 60)
    monkeypatch.setattr("rankwise.design.csr.MANY_NONZEROS", 0)
    name, _, dtype = request.param.partition(" ")
    rng = np.random.default_rng(2)
    X = rng.integers(-20, 20, size=(60, 7)).astype(np.float64) * (rng.random((60, 7)) < 0.7)
    X[:, [1, 4]] = rng.integers(1, 20, size=(60, 2)) + np.array([1 << 20, -(1 << 22)])
    stored = STORAGES[name](X.astype(dtype or np.float64), tmp_path / "s")
    design = comparing_design(stored, 2)
    assert_array_equal(design.shift.columns, [1, 4])
    expected = X.copy()
    expected[:, [1, 4]] -= design.shift.values
    return design, expected


@pytest.mark.parametrize("coupling", ["all", "others", "relative"])
def test_products_of_a_shifted_design(far_design, coupling):
    design, X = far_design
    rng = np.random.default_rng(3)
    blocks = make_blocks(np.repeat(np.arange(6), 10), rng.integers(3, size=60), coupling)
    L = laplacian_matrix(blocks)
    weight = rng.random(60)
    for width in ((), (3,)):
        v, u = rng.normal(size=(7, *width)), rng.normal(size=(60, *width))
        assert_allclose(design.dot(v), X @ v, rtol=1e-12, atol=1e-12)
        assert_allclose(design.tdot(u), X.T @ u, rtol=1e-12, atol=1e-11)
        product = design.gram_product(blocks)
        assert (product is None) == (design.is_dense)
        if product is not None:
            assert_allclose(product(v), X.T @ (L @ (X @ v)), rtol=1e-12, atol=1e-9)
    assert_allclose(design.gram_matrix(blocks), X.T @ L @ X, rtol=1e-12, atol=1e-9)
    assert_allclose(design.gram_diagonal(blocks), np.diag(X.T @ L @ X), rtol=1e-12)
    one, other = rng.permutation(60), rng.permutation(60)
    differences = design.squared_differences(one, other, weight)
    assert_allclose(differences, weight @ (X[one] - X[other]) ** 2, rtol=1e-12)
    for some in (slice(3, 40), rng.permutation(60)[:20]):
        assert_allclose(design.rows(some).dot(np.eye(7)), X[some], rtol=1e-12)
    assert_allclose(design.gathered(one[:9]).dot(np.eye(7)), X[one[:9]], rtol=1e-12)
    matrix = design.matrix()
    assert_array_equal(matrix.toarray() if sp.issparse(matrix) else matrix, X)


@pytest.mark.parametrize("coupling", ["all", "others"])
def test_folds_of_a_shifted_design(far_design, coupling):
    design, X = far_design
    rng = np.random.default_rng(4)
    blocks = make_blocks(np.repeat(np.arange(6), 10), rng.integers(3, size=60), coupling)
    fold = rng.integers(-1, 3, size=60).astype(np.int32)
    folds = make_folds(blocks, fold, 3)
    product = design.gram_product(blocks, folds)
    if product is None:
        assert design.is_dense
        return
    v, held_out = rng.normal(size=(7, 3)), np.full(60, np.nan)
    plain, expected_held_out = as_design(sp.csr_matrix(X)).gram_product(blocks, folds), np.full(60, np.nan)
    assert_allclose(product(v, held_out), plain(v, expected_held_out), rtol=1e-11, atol=1e-9)
    assert_allclose(held_out, expected_held_out, rtol=1e-12)


@pytest.mark.parametrize("as_storage", [np.array, sp.csr_matrix])
def test_single_precision_is_not_copied_to_double(as_storage):
    X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    X[:, 1] += 1e6
    design = comparing_design(as_storage(X))
    assert design.shift is not None
    assert design.dtype == np.float32


@pytest.mark.parametrize("as_storage", [np.array, sp.csr_matrix])
def test_columns_that_are_near_enough_are_left_as_they_are(as_storage):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4)) + 0.5 * FAR * np.eye(4)[1]
    X[:, 2] = np.where(rng.random(300) < 0.05, 0.0, 1e9)  # two values a billion apart
    X[:, 3] = 1.0  # a constant
    stored = as_storage(X)
    design = comparing_design(stored)
    assert design.shift is None
    values = design.matrix().data if sp.issparse(stored) else design.matrix()
    assert np.shares_memory(values, stored.data if sp.issparse(stored) else stored)


@pytest.mark.parametrize("as_storage", [np.array, sp.csr_matrix])
def test_whole_numbers_stay_whole(as_storage):
    rng = np.random.default_rng(6)
    times = rng.integers(1_700_000_000, 1_700_000_900, size=400).astype(float)
    X = as_storage(np.column_stack([rng.normal(size=400), times, np.full(400, 1e9)]))
    design = comparing_design(X)
    assert_array_equal(design.shift.columns, [1, 2])
    left = design.dot(np.eye(3))
    assert_array_equal(left[:, 1], times - design.shift.values[0])
    assert_array_equal(left[:, 2], 0.0)
    assert_array_equal(left[:, 1] % 1, 0.0)


def test_rows_elsewhere_are_shifted_alike():
    X, _ = moved(FAR_OFF)
    shift = comparing_design(X[:40]).shift
    rest = X[40:].copy()
    rest[0, 1] = 0.0  # far from where that column is
    for other in (rest, sp.csr_matrix(rest)):
        design = shifted_design(other, shift)
        expected = rest.copy()
        expected[:, shift.columns] -= shift.values
        assert_array_equal(design.dot(np.eye(N_COLUMNS)), expected)


def test_huge_and_tiny_columns_are_looked_at_without_overflow():
    noise = np.random.default_rng(7).normal(size=(50, 3))
    for scale in (1e-300, 1e-140, 1e140):
        assert find_shift(scale * noise) is None
        shift = find_shift(scale * (noise + 1e5 * np.eye(3)[1]))
        assert_array_equal(shift.columns, [1])


def test_too_many_columns_far_from_zero_are_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    X = in_store(moved(FAR_OFF)[0], tmp_path / "s")
    monkeypatch.setattr(MemoryBudget, "allows", lambda *_: False)
    with pytest.raises(MemoryLimitError, match=r"3 columns of X \(1, 3, 4\)") as error:
        comparing_design(X)
    assert "subtract a constant" in str(error.value)
