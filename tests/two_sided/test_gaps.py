"""Tables with gaps, kernels of one set with itself, folds, and mistakes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from all_pairs import all_pairs
from rankwise import TwoSidedRankRLS, TwoSidedRankRLSCV
from rankwise.exceptions import InvalidInputError, MemoryLimitError, NoPairsError
from rankwise.metrics import per_query
from rankwise.two_sided.gaps import Edges, Run, known_scores, make_folds
from two_sided_oracle import gram, refit

SIGNS = {"kronecker": 0, "symmetric": 1, "antisymmetric": -1}
TIGHT = 1e-13


def gappy(seed=0, n=7, m=6, share=0.7):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, m))
    Y[rng.random((n, m)) > share] = np.nan
    return rng.normal(size=(n, 3)), rng.normal(size=(m, 2)), Y


def one_set(seed=0, n=6):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, n))
    np.fill_diagonal(Y, np.nan)
    return rng.normal(size=(n, 3)), Y


FACTORS = {
    "pair_kernel": list(SIGNS),
    "kernel": ["linear", "rbf"],
    "ranked": ["columns", "rows", "both"],
    "alpha": [1e-6, 1e-2, 1.0, 1e6],
}


@pytest.mark.parametrize(
    "case", all_pairs(FACTORS, lambda **_: True), ids=lambda case: "-".join(map(str, case.values()))
)
def test_a_model_of_known_entries_is_the_explicit_one(case):
    pair_kernel, kernel, ranked, alpha = case.values()
    if pair_kernel == "kronecker":
        rows, columns, Y = gappy()
    else:
        rows, Y = one_set()
        columns = None
    options = {"row_kernel": kernel, "column_kernel": kernel, "pair_kernel": pair_kernel}
    model = TwoSidedRankRLS(alpha, ranked=ranked, tol=TIGHT, **options).fit(rows, columns, Y)
    right = rows if columns is None else columns
    D, T = (gram(Z) if kernel == "linear" else rbf_kernel(Z) for Z in (rows, right))
    expected = refit(D, T, Y, ~np.isnan(Y), alpha, ranked, SIGNS[pair_kernel]).astype(float)
    found = model.predict(rows, right)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    if SIGNS[pair_kernel]:
        new = np.random.default_rng(9).normal(size=(4, 3))
        np.testing.assert_allclose(model.predict(new), SIGNS[pair_kernel] * model.predict(new).T, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e6])
def test_few_known_entries_are_solved_in_the_dual(alpha):
    rows, columns, Y = gappy(n=12, m=12, share=0.15)
    run = Run(np.eye(12), np.eye(12), Edges.of(Y, "columns"), "kronecker", 5)
    assert not run.is_primal
    model = TwoSidedRankRLS(alpha, row_kernel="rbf", column_kernel="rbf", tol=TIGHT).fit(rows, columns, Y)
    expected = refit(rbf_kernel(rows), rbf_kernel(columns), Y, ~np.isnan(Y), alpha, "columns").astype(float)
    np.testing.assert_allclose(
        model.predict(rows, columns), expected, rtol=0, atol=1e-9 * np.abs(expected).max()
    )


def test_conjugate_gradients_and_decompositions_give_one_model():
    rows, columns, Y = gappy(share=1.0)
    for ranked in ("columns", "rows", "both"):
        whole = TwoSidedRankRLS(0.3, ranked=ranked).fit(rows, columns, Y)
        edges = TwoSidedRankRLS(0.3, ranked=ranked, tol=TIGHT).fit(rows, columns, sp.csr_array(Y))
        np.testing.assert_allclose(edges.coef_, whole.coef_, atol=1e-9)
        assert edges.n_iter_ > 0 == whole.n_iter_


def test_a_sparse_table_has_its_stored_entries():
    rows, columns, Y = gappy()
    Y[0, 0] = 0.0
    i, k = np.nonzero(~np.isnan(Y))
    stored = sp.coo_array((Y[i, k], (i, k)), shape=Y.shape)
    one, other = (TwoSidedRankRLS().fit(rows, columns, table) for table in (Y, stored))
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-12)


def test_products_with_edges_are_those_of_the_explicit_matrix():
    rows, columns, Y = gappy()
    edges = Edges.of(Y, "columns")
    explicit = np.kron(rows, columns)[(~np.isnan(Y)).ravel()]
    theta = np.random.default_rng(2).normal(size=(3, 2))
    np.testing.assert_allclose(
        known_scores(rows, theta, columns, edges), explicit @ theta.ravel(), atol=1e-12
    )
    many = np.random.default_rng(3).normal(size=(50, 2))  # long rows take another way
    whole = Edges.of(rows @ theta @ many.T, "columns")
    np.testing.assert_allclose(known_scores(rows, theta, many, whole), whole.labels, atol=1e-12)
    run = Run(rows, columns, edges, "kronecker", 3)
    np.testing.assert_allclose(run._gathered(edges.labels).ravel(), edges.labels @ explicit, atol=1e-12)


def test_the_surface_holds_the_iterates_of_conjugate_gradients():
    """After k steps the model of an alpha minimises the objective over the k-th Krylov space."""
    rows, columns, Y = gappy(n=9, m=8)
    edges = Edges.of(Y, "columns")
    explicit = np.kron(rows, columns)[(~np.isnan(Y)).ravel()]
    L = np.eye(edges.rows.size) - (edges.rows[:, None] == edges.rows) / np.bincount(edges.rows)[edges.rows]
    B, b = explicit.T @ L @ explicit, explicit.T @ L @ edges.labels
    run = Run(rows, columns, edges, "kronecker", 4)
    krylov = b[:, None]
    for k, _ in enumerate(run.steps(1.0, 0.0), 1):
        krylov, _ = np.linalg.qr(krylov)
        for alpha in (0.0, 0.1, 10.0):
            inner = krylov.T @ B @ krylov + alpha * np.eye(k)
            expected = krylov @ np.linalg.solve(inner, krylov.T @ b)
            np.testing.assert_allclose(run.model(alpha).ravel(), expected, atol=1e-9 * np.abs(expected).max())
        krylov = np.column_stack([krylov, B @ krylov[:, -1]])
    assert run.n_steps == 4


@pytest.mark.parametrize("held_out", ["rows", "columns", "entries", "both"])
@pytest.mark.parametrize("pair_kernel", ["kronecker", "antisymmetric"])
def test_folds_of_rows_columns_entries_and_both(held_out, pair_kernel):
    Y = gappy(n=12, m=12, share=0.8)[2]
    edges = Edges.of(Y, "columns")
    own = pair_kernel != "kronecker"
    splits = make_folds(edges, held_out, 3, Y.shape, 0, one_set=own)
    tested = np.sum([test for _, test in splits], axis=0)
    assert len(splits) == (9 if held_out == "both" and not own else 3)
    assert (tested == 1).all() or (own and held_out == "both")
    for train, test in ((edges.part(train), edges.part(test)) for train, test in splits):
        if held_out in {"rows", "both"}:
            assert not set(train.rows) & set(test.rows)
        if held_out in {"columns", "both"}:
            assert not set(train.columns) & set(test.columns)
        if own and held_out == "rows":
            assert not set(train.columns) & set(test.rows)
        if own and held_out == "entries":
            mirrored = {(k, i) for i, k in zip(test.rows, test.columns, strict=True)}
            assert not mirrored & set(zip(train.rows, train.columns, strict=True))


@pytest.mark.parametrize("held_out", ["rows", "columns", "both"])
@pytest.mark.parametrize("ranked", ["columns", "rows"])
def test_figures_of_folds_are_those_of_refits(held_out, ranked):
    rows, columns, Y = gappy(n=8, m=8, share=0.8)
    model = TwoSidedRankRLSCV([1.0], cv=(held_out, 2), ranked=ranked, tol=TIGHT).fit(rows, columns, Y)
    edges = Edges.of(Y, ranked)
    sums, counts = np.zeros(8), np.zeros(8)
    for train, test in make_folds(edges, held_out, 2, Y.shape, 0, one_set=False):
        known = np.zeros(Y.shape, dtype=bool)
        known[edges.rows[train], edges.columns[train]] = True
        scores = refit(gram(rows), gram(columns), np.nan_to_num(Y), known, 1.0, ranked).astype(float)
        part = edges.part(test)
        found = per_query(part.labels, scores[part.rows, part.columns], part.query, metric="pairwise_error")
        sums[found.ids[found.counted]] += found.values[found.counted]
        counts[found.ids[found.counted]] += 1
    expected = sums.sum() / counts.sum()
    assert model.surface_[0, -1] == pytest.approx(expected)
    assert model.best_score_ == model.surface_.min()


def test_leave_out_means_folds_where_there_are_gaps():
    rows, columns, Y = gappy(n=20, m=12)
    for cv, words in (
        ("leave-row-out", "5 folds of rows"),
        ("leave-column-out", "5 folds of columns"),
        ("leave-entry-out", "5 folds of entries"),
        ("leave-both-out", "9 folds of both"),
    ):
        model = TwoSidedRankRLSCV([0.1, 1.0], cv=cv).fit(rows, columns, Y)
        assert model.cv_ == words
        assert model.surface_.shape[0] == 2
        assert model.figures_.shape == (20,)
        assert model.n_iter_ == model.best_iteration_


def test_rock_paper_scissors():
    """An antisymmetric kernel learns preferences that no score of single objects can express."""
    objects = np.repeat(np.eye(3), 4, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(12, 3))
    kind = np.repeat(np.arange(3), 4)
    beats = (kind[:, None] - kind) % 3
    Y = np.where(beats == 1, 1.0, np.where(beats == 2, -1.0, 0.0))
    options = {"ranked": "both", "pair_kernel": "antisymmetric"}
    assert TwoSidedRankRLSCV(**options).fit(objects, None, Y).best_score_ < 0.05
    scores = TwoSidedRankRLS(0.1, **options).fit(objects, None, Y).predict(np.eye(3))
    assert min(scores[1, 0], scores[2, 1], scores[0, 2]) > 0.5


def test_too_few_iterations_warn():
    rows, columns, Y = gappy()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        TwoSidedRankRLS(1e-6, max_iter=2).fit(rows, columns, Y)


def test_basis_vectors_that_do_not_fit(monkeypatch):
    rows, columns, Y = gappy()
    monkeypatch.setattr("rankwise.two_sided.sides.fits", lambda _: False)
    with pytest.raises(MemoryLimitError, match="max_iter"):
        TwoSidedRankRLS().fit(rows, columns, Y)


R, C = np.arange(8.0).reshape(4, 2), np.arange(6.0).reshape(3, 2) ** 2
TABLE = np.arange(12.0).reshape(4, 3)
LOPSIDED = np.array([[1.0, 2, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
MISTAKES = {
    "shape": ({}, (R, C, TABLE.T), "Y has shape"),
    "text": ({}, (R, C, [["a"] * 3] * 4), "Y cannot be used"),
    "infinite": ({}, (R, C, np.full((4, 3), np.inf)), "Y cannot be used"),
    "asymmetric": ({"row_kernel": "precomputed"}, (LOPSIDED, C, TABLE), "not symmetric"),
    "indefinite": ({"row_kernel": "precomputed"}, (np.diag([1.0, 1, 1, -1]), C, TABLE), "indefinite"),
    "not square": ({"row_kernel": "precomputed"}, (R, C, TABLE), "square"),
    "constant rows": ({}, (R, C, np.ones((4, 3)) * np.arange(4)[:, None]), "No row of Y"),
    "constant table": ({"ranked": "both"}, (R, C, np.ones((4, 3))), "No table of Y"),
    "missing": ({}, (R, C, np.full((4, 3), np.nan)), "missing"),
    "one row": ({}, (R[:1], C, TABLE[:1]), "at least two rows"),
    "no columns": ({}, (R, None, TABLE), "features of both sides"),
    "two sets": ({"pair_kernel": "symmetric"}, (R, C, TABLE), "columns=None"),
    "unknown kernel": ({"row_kernel": "rfb"}, (R, C, TABLE), "row_kernel"),
    "kernel parameter": (
        {"row_kernel": "rbf", "row_kernel_params": {"gama": 1}},
        (R, C, TABLE),
        "row_kernel_params",
    ),
    "kernel shape": ({"column_kernel": lambda A, _: A}, (R, C, TABLE), "another shape"),
    "alpha": ({"alpha": 0}, (R, C, TABLE), "alpha"),
    "ranked": ({"ranked": "column"}, (R, C, TABLE), "did you mean 'columns'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_a_hint(name):
    options, data, words = MISTAKES[name]
    with pytest.raises(InvalidInputError, match=words) as error:
        TwoSidedRankRLS(**options).fit(*data)
    assert "Hint: " in str(error.value)


def test_mistakes_of_the_search_and_of_predictions():
    with pytest.raises(InvalidInputError, match=r"\('rows', 5\)"):
        TwoSidedRankRLSCV(cv=("row", 3)).fit(R, C, TABLE)
    with pytest.raises(InvalidInputError, match="alphas"):
        TwoSidedRankRLSCV([0.0, 1.0]).fit(R, C, TABLE)
    with pytest.raises(NoPairsError, match="fewer folds"):
        TwoSidedRankRLSCV(cv=("columns", 3)).fit(R, C, TABLE)
    model = TwoSidedRankRLS().fit(R, C, TABLE)
    with pytest.raises(InvalidInputError, match="same features"):
        model.predict(R[:, :1], C)
    with pytest.raises(InvalidInputError, match="predict\\(rows, columns\\)"):
        model.predict(R)
