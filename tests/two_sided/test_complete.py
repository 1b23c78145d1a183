"""Complete tables: models and held-out predictions equal refits with the explicit Kronecker matrix."""

import io

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import rankwise
from all_pairs import all_pairs
from rankwise import KernelRankRLS, TwoSidedRankRLS, TwoSidedRankRLSCV
from rankwise.metrics import per_query
from rankwise.two_sided.complete import Table
from rankwise.two_sided.sides import find_basis
from two_sided_oracle import centred, compared, comparison_errors, gram, refit, without

N, M = 6, 5
TABLES = ["random", "ties", "constant rows", "duplicates", "scales", "deficient"]


def features_of(kind, size, rng, wide):
    Z = rng.normal(size=(size, size + 1 if wide else size - 2))
    if kind == "duplicates":
        Z[1] = Z[0]
    elif kind == "scales":
        Z = rng.normal(size=(size, size))
        Z[:, 0] *= 1e6
        Z[:, -1] *= 1e-3
    elif kind == "deficient":
        Z[:, 1] = 3 * Z[:, 0]
        Z[:, -1] = 0.1
    return Z


def data(kind, *, wide=False, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = features_of(kind, N, rng, wide), features_of(kind, M, rng, wide)
    Y = rng.normal(size=(N, M))
    if kind == "ties":
        Y = np.round(Y)
    elif kind == "constant rows":
        Y[1], Y[:, 2] = 2.0, 0.5
    elif kind == "duplicates":
        Y[1] = Y[0]
    return rows, columns, Y


def kernels(kind, kernel):
    """Return the matrices that are passed, their exact kernels, and the labels."""
    rows, columns, Y = data(kind, wide=kernel == "wide")
    if kernel == "rbf":
        return rows, columns, rbf_kernel(rows, gamma=0.1), rbf_kernel(columns, gamma=0.1), Y
    passed = (rows @ rows.T, columns @ columns.T) if kernel == "precomputed" else (rows, columns)
    return *passed, gram(rows), gram(columns), Y


def options(kernel):
    name = {"wide": "linear"}.get(kernel, kernel)
    found = {"row_kernel": name, "column_kernel": name}
    if name == "rbf":
        found |= {"row_kernel_params": {"gamma": 0.1}, "column_kernel_params": {"gamma": 0.1}}
    return found


def allowed(kind="random", kernel="linear", **_):
    return kind != "scales" or kernel == "linear"  # products of features lose the small ones


FACTORS = {
    "kind": TABLES,
    "kernel": ["linear", "wide", "rbf", "precomputed"],
    "ranked": ["columns", "rows", "both"],
    "alpha": [1e-6, 1e-3, 1.0, 1e6],
}


def assert_close(found, expected, tolerance=1e-9):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max() + 1e-300)


@pytest.mark.parametrize(
    "case", all_pairs(FACTORS, allowed), ids=lambda case: "-".join(map(str, case.values()))
)
def test_a_model_is_the_refit(case):
    kind, kernel, ranked, alpha = case.values()
    rows, columns, D, T, Y = kernels(kind, kernel)
    model = TwoSidedRankRLS(alpha, ranked=ranked, **options(kernel)).fit(rows, columns, Y)
    found = model.predict(rows, columns)
    expected = refit(D, T, Y, without(Y.shape), alpha, ranked).astype(float)
    assert_close(found, expected)


# With this alpha the scores of one row are 2,000 times as small as those of another.
SMALL_SCORES = {"kind": "deficient", "kernel": "precomputed", "ranked": "both", "alpha": 1e6}


@pytest.mark.parametrize(
    "case", [*all_pairs(FACTORS, allowed), SMALL_SCORES], ids=lambda case: "-".join(map(str, case.values()))
)
def test_rows_and_entries_held_out_are_refits(case):
    kind, kernel, ranked, alpha = case.values()
    if ranked == "rows":
        ranked = "columns"
    rows, columns, D, T, Y = kernels(kind, kernel)
    model = TwoSidedRankRLS(alpha, ranked=ranked, **options(kernel))
    problem = model._read(rows, columns, Y)
    table = Table(Y, problem.columns, find_basis(problem.rows, centred=False), one_ranking=ranked == "both")
    found = table.without_row(alpha) @ table.columns.coordinates(problem.columns).T
    for row in range(N):
        expected = centred(refit(D, T, Y, without(Y.shape, rows=[row]), alpha, ranked)[row])
        assert_close(found[row] - found[row].mean(), expected)
    for row, scores in list(enumerate(table.without_entry(alpha)))[::3]:
        for entry in range(M):
            expected = centred(refit(D, T, Y, without(Y.shape, entry=(row, entry)), alpha, ranked)[row])
            assert_close(scores[entry] - scores[entry].mean(), expected)


@pytest.mark.parametrize(
    "case", all_pairs(FACTORS, allowed), ids=lambda case: "-".join(map(str, case.values()))
)
def test_columns_held_out_alone_and_with_a_row_are_refits(case):
    kind, kernel, ranked, alpha = case.values()
    if ranked == "rows":
        ranked = "columns"
    rows, columns, D, T, Y = kernels(kind, kernel)
    problem = TwoSidedRankRLS(alpha, ranked=ranked, **options(kernel))._read(rows, columns, Y)
    basis, Z = find_basis(problem.rows, centred=False), problem.columns
    for column in (0, M - 2):
        others = np.arange(M) != column
        part = Table(Y[:, others], Z[others], basis, one_ranking=ranked == "both")
        features = part.columns.coordinates(Z).T
        fitted, without_row = part.fitted(alpha) @ features, part.without_row(alpha) @ features
        by_others = refit(D, T, Y, without(Y.shape, columns=[column]), alpha, ranked)
        for row in (0, 1, N - 1):
            assert_close(fitted[row] - fitted[row].mean(), centred(by_others[row]))
            by_neither = refit(D, T, Y, without(Y.shape, rows=[row], columns=[column]), alpha, ranked)
            assert_close(without_row[row] - without_row[row].mean(), centred(by_neither[row]))


HELD_OUT = {
    "kind": TABLES,
    "kernel": ["linear", "rbf"],
    "ranked": ["columns", "rows", "both"],
    "cv": ["leave-row-out", "leave-column-out", "leave-entry-out", "leave-both-out"],
}


def expected_figures(D, T, Y, alpha, ranked, cv, scoring):
    """Return the held-out figure of each ranking by refits."""
    if ranked == "rows" or (ranked == "both" and cv == "leave-column-out"):
        exchanged = {"leave-row-out": "leave-column-out", "leave-column-out": "leave-row-out"}.get(cv, cv)
        turned = {"rows": "columns"}.get(ranked, ranked)
        return expected_figures(T, D, Y.T, alpha, turned, exchanged, scoring)
    n, m = Y.shape
    if cv != "leave-row-out":
        return comparison_errors(Y, compared(D, T, Y, alpha, ranked, cv))
    scores = [centred(refit(D, T, Y, without(Y.shape, rows=[i]), alpha, ranked)[i]) for i in range(n)]
    scores = np.round([row / np.abs(row).max() for row in scores], 10)
    return per_query(Y.ravel(), scores.ravel(), np.repeat(np.arange(n), m), metric=scoring).values


@pytest.mark.parametrize(
    "case", all_pairs(HELD_OUT, allowed), ids=lambda case: "-".join(map(str, case.values()))
)
def test_figures_are_those_of_refits(case):
    kind, kernel, ranked, cv = case.values()
    rows, columns, D, T, Y = kernels(kind, kernel)
    model = TwoSidedRankRLSCV([0.01, 10.0], cv=cv, ranked=ranked, **options(kernel)).fit(rows, columns, Y)
    expected = expected_figures(D, T, Y, model.alpha_, ranked, cv, "pairwise_error")
    np.testing.assert_allclose(model.figures_, expected, atol=1e-12)
    assert model.best_score_ == pytest.approx(np.nanmean(expected))
    assert model.best_score_ == model.cv_errors_[list(model.alphas_).index(model.alpha_)]
    assert model.interval_[0] <= model.best_score_ <= model.interval_[1]
    whole = TwoSidedRankRLS(model.alpha_, ranked=ranked, **options(kernel)).fit(rows, columns, Y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9, atol=1e-12 * np.abs(whole.coef_).max())


@pytest.mark.parametrize(
    "scoring", ["ndcg@3", "average_precision", "kendall_tau", "concordance", "reciprocal_rank"]
)
def test_any_metric_scores_held_out_rows(scoring):
    rows, columns, D, T, Y = kernels("random", "linear")
    Y = np.round(np.abs(Y))
    model = TwoSidedRankRLSCV([0.1, 1.0, 10.0], scoring=scoring).fit(rows, columns, Y)
    expected = expected_figures(D, T, Y, model.alpha_, "columns", "leave-row-out", scoring)
    np.testing.assert_allclose(model.figures_, expected, atol=1e-12)
    assert model.best_score_ == model.cv_errors_.max()


def test_other_metrics_take_the_place_of_a_held_out_entry():
    rows, columns, D, T, Y = kernels("random", "linear")
    Y = np.round(np.abs(2 * Y))
    model = TwoSidedRankRLSCV([1.0], cv="leave-entry-out", scoring="ndcg@3").fit(rows, columns, Y)
    scores = compared(D, T, Y, 1.0, "columns", "leave-entry-out")
    beaten = np.array(
        [[(row[k] > row).sum() - (row[k] < row).sum() for k, row in enumerate(each)] for each in scores]
    )
    expected = per_query(Y.ravel(), beaten.ravel(), np.repeat(np.arange(N), M), metric="ndcg@3").values
    np.testing.assert_allclose(model.figures_, expected)


@pytest.mark.parametrize("ranked", ["columns", "rows", "both"])
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 100.0])
def test_the_same_alpha_is_the_model_of_kernel_rank_rls(ranked, alpha):
    rows, columns, Y = data("random")
    D, T = rbf_kernel(rows), rbf_kernel(columns)
    qid = {"columns": np.repeat(np.arange(N), M), "rows": np.tile(np.arange(M), N), "both": None}[ranked]
    other = KernelRankRLS("precomputed", alpha=alpha).fit(np.kron(D, T), Y.ravel(), qid=qid)
    model = TwoSidedRankRLS(alpha, ranked=ranked, row_kernel="rbf", column_kernel="precomputed")
    model.fit(rows, T, Y)
    np.testing.assert_allclose(
        model.coef_.ravel(), other.dual_coef_, atol=1e-9 * np.abs(other.dual_coef_).max()
    )
    new = np.random.default_rng(5).normal(size=(3, rows.shape[1]))
    scores = other.predict(np.kron(rbf_kernel(new, rows), T[:2]))
    np.testing.assert_allclose(model.predict(new, T[:2]).ravel(), scores, atol=1e-9)


def test_features_and_their_kernel_are_one_model_for_new_objects():
    rows, columns, Y = data("random")
    new = np.random.default_rng(3).normal(size=(4, rows.shape[1]))
    plain = TwoSidedRankRLS(0.5).fit(rows, columns, Y)
    kernel = TwoSidedRankRLS(0.5, row_kernel="precomputed", column_kernel=lambda A, B: A @ B.T)
    kernel.fit(rows @ rows.T, columns, Y)
    np.testing.assert_allclose(kernel.predict(new @ rows.T, columns), plain.predict(new, columns), atol=1e-9)
    assert plain.coef_.shape == (rows.shape[1], columns.shape[1])
    assert plain.row_fit_ is None


def test_ranks():
    rows, columns, Y = data("random")
    for ranked, axis in (("columns", 1), ("rows", 0), ("both", None)):
        model = TwoSidedRankRLS(ranked=ranked).fit(rows, columns, Y)
        scores = model.predict(rows, columns)
        expected = (scores[..., None, None] < scores).sum(axis=(2, 3)) + 1
        if axis is not None:
            along = scores if axis == 1 else scores.T
            expected = (along[:, :, None] < along[:, None, :]).sum(axis=2) + 1
            expected = expected if axis == 1 else expected.T
        np.testing.assert_array_equal(model.rank(rows, columns), expected)


@pytest.mark.parametrize("cv", ["leave-column-out", "leave-both-out"])
def test_many_decompositions_are_announced(cv, monkeypatch):
    monkeypatch.setattr("rankwise.two_sided.estimators._LARGE", M - 1)
    rows, columns, Y = data("random")
    with pytest.warns(UserWarning, match=r"5 decompositions, about 0 s and .* GiB. Hint: use folds"):
        TwoSidedRankRLSCV([1.0], cv=cv).fit(rows, columns, Y)


def test_order_of_rows_and_columns_changes_nothing():
    rows, columns, Y = data("ties")
    rng = np.random.default_rng(1)
    p, q = rng.permutation(N), rng.permutation(M)
    for cv in ("leave-row-out", "leave-column-out", "leave-entry-out", "leave-both-out"):
        one = TwoSidedRankRLSCV([0.1, 1.0], cv=cv).fit(rows, columns, Y)
        other = TwoSidedRankRLSCV([0.1, 1.0], cv=cv).fit(rows[p], columns[q], Y[np.ix_(p, q)])
        np.testing.assert_allclose(other.cv_errors_, one.cv_errors_, atol=1e-12)
        np.testing.assert_allclose(other.figures_, one.figures_[p], atol=1e-12)


def test_an_offset_of_a_row_changes_nothing():
    rows, columns, Y = data("random")
    one = TwoSidedRankRLS().fit(rows, columns, Y)
    other = TwoSidedRankRLS().fit(rows, columns, Y + np.arange(N)[:, None])
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-12)


def test_few_features_make_no_matrix_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=(3000, 2)), rng.normal(size=(4, 2))
    Y = rows @ columns.T + rng.normal(size=(3000, 4))
    monkeypatch.setattr("rankwise.two_sided.sides.fits", lambda n_bytes: n_bytes < 8 * 3000 * 100)
    assert TwoSidedRankRLSCV().fit(rows, columns, Y).best_score_ < 0.3
    with pytest.raises(rankwise.exceptions.MemoryLimitError, match="row_kernel='linear'"):
        TwoSidedRankRLS(row_kernel="rbf").fit(rows, columns, Y)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_model_files(kernel):
    rows, columns, _, _, Y = kernels("random", kernel)
    for model in (TwoSidedRankRLS(**options(kernel)), TwoSidedRankRLSCV(**options(kernel))):
        file = io.BytesIO()
        model.fit(rows, columns, Y).save(file)
        again = rankwise.load(io.BytesIO(file.getvalue()))
        np.testing.assert_array_equal(again.predict(rows, columns), model.predict(rows, columns))
        assert again.get_params() == model.get_params()
