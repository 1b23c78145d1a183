"""Arrays that are not what they seem: sparse matrices whose arrays do not fit, masked arrays, missing values of frames.

What SciPy does with the former ends the process, so that a check that is lacking shows as a crash of the tests.
"""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from rankwise import KernelRankRLS, KernelRankRLSCV, KernelRankSVM, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.data import matrices, pairs_from_clicks, save_store, save_svmlight, save_table, stack_preferred
from rankwise.data.containers import check_magnitude, check_sparse, is_moderate, is_plain, unmasked
from rankwise.data.store.reading import open_store
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import auc_estimate, bootstrap_interval, ndcg, pairwise_error, preference_error
from rankwise.model_selection import PreferenceKFold, QueryKFold, cross_validate_ranker, predict_scores
from rankwise.permutation import permutation_test
from rankwise.preprocessing import QueryScaler
from rankwise.report import Report

ESTIMATORS = [
    RankRLS(),
    RankRLSCV(),
    RankSVM(),
    RankSVMCV(),
    KernelRankRLS(),
    KernelRankRLSCV(),
    KernelRankSVM(),
]

rng = np.random.default_rng(0)
N_ROWS, N_COLUMNS = 24, 4
X = np.where(rng.random((N_ROWS, N_COLUMNS)) < 0.7, rng.normal(size=(N_ROWS, N_COLUMNS)), 0.0)
Y = rng.integers(0, 3, size=N_ROWS).astype(float)
QID = np.repeat(np.arange(4), 6)
PAIRS = np.array([[0, 1], [2, 3], [8, 5], [1, 7], [9, 2], [4, 6]])


def _set(name, at, value):
    def damage(matrix):
        getattr(matrix, name)[at] = value

    return damage


def _replace(name, change):
    return lambda matrix: setattr(matrix, name, change(getattr(matrix, name)))


def _lengthen(matrix):
    matrix.data[0] = matrix.data[0] * 2


# A format, what is done to its arrays, and what the error says. Numbers are small: memory nearby is read, if it is.
MISFITS = {
    "csr column beyond": (
        "csr",
        _set("indices", 3, N_COLUMNS),
        "column 4, and columns are numbered from 0 to 3",
    ),
    "csr column negative": ("csr", _set("indices", 3, -1), "column -1"),
    "csr pointers fall": ("csr", _set("indptr", 3, 1), "indptr falls at row 2"),
    "csr pointers late": ("csr", _set("indptr", 0, 1), "indptr starts with 1"),
    "csr pointers beyond": ("csr", _set("indptr", -1, 10**4), "indptr ends with 10000"),
    "csr pointers negative": ("csr", _set("indptr", 1, -1), "indptr falls at row 0"),
    "csr pointers too few": ("csr", _replace("indptr", lambda a: a[:-1]), "24 entries, and 24 rows need 25"),
    "csr data too few": ("csr", _replace("data", lambda a: a[:-1]), "indptr ends with"),
    "csr indices too few": ("csr", _replace("indices", lambda a: a[:-1]), "indptr ends with"),
    "csr 64-bit": (
        "csr",
        _replace("indices", lambda a: a.astype(np.int64) + 2**40),
        r"column 10995116277\d\d",
    ),
    "csr real": ("csr", _replace("indices", lambda a: a.astype(float)), "indices is not a vector"),
    "csc row beyond": ("csc", _set("indices", 3, N_ROWS), "column 0 has an entry in row 24"),
    "csc pointers fall": ("csc", _set("indptr", 1, 10**4), "indptr falls at column 1"),
    "bsr column beyond": ("bsr", _set("indices", 3, N_COLUMNS), "column of blocks 4"),
    "bsr pointers beyond": ("bsr", _set("indptr", -1, 10**4), "indptr ends with 10000"),
    "coo row beyond": ("coo", _set("row", 3, N_ROWS), "entry 3 is in row 24"),
    "coo column negative": ("coo", _set("col", 3, -1), "entry 3 is in column -1"),
    "coo data too few": ("coo", _replace("data", lambda a: a[:-1]), "values and"),
    "lil column beyond": ("lil", _set("rows", 0, [0, 7]), "column 7|different lengths"),
    "lil lengths": ("lil", _lengthen, "different lengths"),
    "dia offsets": ("dia", _replace("offsets", lambda a: a[:-1]), "offsets for data"),
}


def misfit(name, matrix=X):
    kind, damage, _ = MISFITS[name]
    out = getattr(sp, f"{kind}_matrix")(matrix)
    damage(out)
    return out


def sparse_calls():
    """Everything that takes a matrix, as functions of one."""
    calls = {}
    for model in ESTIMATORS:
        name = type(model).__name__
        calls[f"{name}.fit"] = lambda A, model=model: clone(model).fit(A, Y, QID)
        calls[f"{name}.predict"] = lambda A, model=model: clone(model).fit(X, Y, QID).predict(A)
        if hasattr(model, "fit_pairs"):
            calls[f"{name}.fit_pairs"] = lambda A, model=model: clone(model).fit_pairs(A, PAIRS)
    fitted = RankRLS().fit(X, Y, QID)
    calls |= {
        "partial_fit": lambda A: RankRLS().partial_fit(A, Y, QID),
        "score": lambda A: fitted.score(A, Y, QID),
        "rank": lambda A: fitted.rank(A, QID),
        "score_pairs": lambda A: fitted.score_pairs(A, PAIRS),
        "predict_pairs": lambda A: fitted.predict_pairs(X, A),
        "eval_set": lambda A: RankRLSCV().fit(X, Y, QID, eval_set=(A, Y, QID)),
        "early stopping": lambda A: RankRLS(early_stopping=True).fit(X, Y, QID, eval_set=(A, Y, QID)),
        "pair eval_set": lambda A: RankRLSCV().fit_pairs(X, PAIRS, eval_set=(A, PAIRS)),
        "rbf": lambda A: KernelRankRLS("rbf", basis=5).fit(A, Y, QID),
        "QueryScaler": lambda A: QueryScaler().fit(A, qid=QID),
        "QueryScaler.transform": lambda A: QueryScaler().fit(X, qid=QID).transform(A, qid=QID),
        "save_svmlight": lambda A: save_svmlight(A, Y, io.BytesIO()),
        "stack_preferred": lambda A: stack_preferred(A, A),
        "cross_validate_ranker": lambda A: cross_validate_ranker(
            RankRLS(), A, Y, QID, cv=2, error_score="raise"
        ),
        "predict_scores": lambda A: predict_scores(fitted, A),
        "permutation_test": lambda A: permutation_test(RankRLS(), A, Y, QID, n_permutations=2),
        "Report": lambda A: Report(fitted, A, Y, QID),
    }
    return calls


CALLS = sparse_calls()


@pytest.mark.parametrize("call", CALLS)
def test_everything_that_takes_a_matrix_refuses_arrays_that_do_not_fit(call):
    for name in ("csr column beyond", "csr pointers fall", "csc row beyond", "coo row beyond"):
        with pytest.raises(InvalidInputError, match=r"do not fit together: .* Hint: build it again"):
            CALLS[call](misfit(name))
    CALLS[call](sp.coo_matrix(X))


@pytest.mark.parametrize("name", MISFITS)
@pytest.mark.parametrize("call", ["RankRLS.fit", "save_svmlight", "QueryScaler"])
def test_misfits_are_named(name, call):
    with pytest.raises(InvalidInputError, match=MISFITS[name][2]):
        CALLS[call](misfit(name))


@pytest.mark.parametrize("name", MISFITS)
def test_stores_and_tables_refuse_them(tmp_path, name):
    with pytest.raises(InvalidInputError, match=f"X of block 0 is a .*({MISFITS[name][2]})"):
        save_store([(misfit(name), Y, QID)], tmp_path / "store")
    with pytest.raises(InvalidInputError, match=MISFITS[name][2]):
        save_table(misfit(name), Y, tmp_path / "table.parquet", qid=QID)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("container", ["matrix", "array"])
def test_every_sound_matrix_is_taken(kind, container):
    expected = RankRLS().fit(X, Y, QID).coef_
    matrix = getattr(sp, f"{kind}_{container}")(X)
    check_sparse("X", matrix)
    np.testing.assert_allclose(RankRLS().fit(matrix, Y, QID).coef_, expected, rtol=1e-9)
    check_sparse("X", type(matrix)((0, 3)))
    check_sparse("X", type(matrix)((3, 0)))


def test_more_entries_than_the_pointers_tell_of_are_passed_over():
    matrix = sp.csr_matrix(X)
    matrix.data = np.concatenate([matrix.data, [5.0]])
    matrix.indices = np.concatenate([matrix.indices, [-7]]).astype(np.int32)
    np.testing.assert_allclose(RankRLS().fit(matrix, Y, QID).coef_, RankRLS().fit(X, Y, QID).coef_, rtol=1e-9)


def test_sparse_arrays_of_other_dimensions_are_refused():
    vector = sp.coo_array(Y)
    if vector.ndim != 1:
        pytest.skip("this SciPy has no sparse arrays of one dimension: it makes them rows of a matrix")
    with pytest.raises(InvalidInputError, match=r"X has shape \(24,\)"):
        RankRLS().fit(vector, Y)


def test_a_matrix_on_disk_is_not_read_again(tmp_path):
    """Its store was checked when it was opened: here it was not, on purpose, and nobody notices."""
    save_store([(X, Y, QID)], tmp_path / "store")
    columns = np.fromfile(tmp_path / "store" / "columns.bin", dtype=np.int32)
    columns[0] = 99
    columns.tofile(tmp_path / "store" / "columns.bin")
    matrix = open_store(tmp_path / "store", verify=False).X
    check_sparse("X", matrix)
    matrix.indices = matrix.indices.copy()  # no longer that of the store
    with pytest.raises(InvalidInputError, match="column 99"):
        check_sparse("X", matrix)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_compiled_pass_agrees_with_plain_comparisons(data):
    """Any pointers and indices, in all four pairs of types."""
    n_lines, n_across = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    types = st.sampled_from([np.int32, np.int64])
    pointer, index = data.draw(types), data.draw(types)
    start = np.array(
        data.draw(st.lists(st.integers(-1, 6), min_size=n_lines + 1, max_size=n_lines + 1)), pointer
    )
    extremes = st.sampled_from([np.iinfo(index).min, np.iinfo(index).max])
    ids = np.array(data.draw(st.lists(st.integers(-1, 5) | extremes, max_size=6)), index)
    matrix = sp.csr_matrix((n_lines, n_across))
    matrix.data, matrix.indices, matrix.indptr = np.ones(ids.size), ids, start
    fits = start[0] == 0 and (np.diff(start) >= 0).all() and start[-1] <= ids.size
    used = ids[: start[-1]] if fits else ids
    fits = bool(fits and ((used >= 0) & (used < n_across)).all())
    if fits:
        check_sparse("X", matrix)
    else:
        with pytest.raises(InvalidInputError, match="do not fit together"):
            check_sparse("X", matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_values_that_are_not_finite_are_seen(dtype, bad, size):
    values = np.random.default_rng(0).normal(size=size).astype(dtype)
    assert is_moderate(values)
    for at in {0, size // 2, size - 1}:
        changed = values.copy()
        changed[at] = bad
        assert not is_moderate(changed)
        with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
            RankRLS().fit(np.column_stack([np.arange(size + 1), np.append(changed, 1)]), np.arange(size + 1))


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_plain_matrix_needs_no_further_look(monkeypatch, container, dtype):
    rng = np.random.default_rng(0)
    X, y = container(rng.normal(size=(40, 3)).astype(dtype)), rng.integers(0, 3, size=40)
    thorough = RankRLS().fit(X.tocsc(), y)
    frame = pd.DataFrame(X.toarray(), columns=["a", "b", "c"])
    model = RankRLS().fit(frame, y)
    monkeypatch.setattr(matrices, "through_scikit_learn", None)
    model.fit(X, y)
    np.testing.assert_array_equal(model.coef_, thorough.coef_)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")


def test_what_is_not_plain_is_looked_at_thoroughly(tmp_path):
    rng = np.random.default_rng(0)
    X, y = sp.csr_matrix(rng.normal(size=(40, 3))), rng.normal(size=40)
    assert is_plain(X, y, 2)
    assert not is_plain(X.astype(np.int64), y, 2)
    assert not is_plain(X, y[:39], 2)
    assert not is_plain(X.tocsc(), y, 2)
    assert not is_plain(X[:1], y[:1], 2)
    assert not is_plain(sp.csr_matrix((40, 0)), y, 2)
    save_store([(X, y, np.zeros(40))], tmp_path / "rows")
    assert not is_plain(open_store(tmp_path / "rows").X, y, 2)
    X.data[5] = np.nan
    assert not is_plain(X, y, 2)
    with pytest.raises(InvalidInputError, match="NaN"):
        RankRLS().fit(X, y)


def test_what_is_moderate():
    assert is_moderate(np.array([1e150, -1e150, 0.0, 5e-324]))
    assert not is_moderate(np.array([1.0, np.nextafter(1e150, 2e150)]))
    assert is_moderate(np.array([np.finfo(np.float32).max], dtype=np.float32))
    assert not is_moderate(np.arange(3))  # not known yet
    assert not is_moderate(np.ones((4, 4))[::2, ::2])
    check_magnitude(np.array([1.0, 1e150]))


def masked(values, at=2):
    out = np.ma.array(values, mask=np.zeros(np.shape(values), dtype=bool))
    if at is not None:
        out[at] = np.ma.masked
    return out


def masked_calls():
    """Everything that takes an array, as functions of what becomes of it; `m` masks, or does not."""
    calls = {}
    for model in ESTIMATORS:
        name = type(model).__name__
        calls[f"{name} X"] = lambda m, model=model: clone(model).fit(m(X), Y, QID)
        calls[f"{name} y"] = lambda m, model=model: clone(model).fit(X, m(Y), QID)
        calls[f"{name} outputs"] = lambda m, model=model: clone(model).fit(
            X, m(np.column_stack([Y, -Y])), QID
        )
        calls[f"{name} qid"] = lambda m, model=model: clone(model).fit(X, Y, m(QID))
        calls[f"{name} weight"] = lambda m, model=model: clone(model).fit(
            X, Y, sample_weight=m(np.ones(N_ROWS))
        )
    fitted = RankRLS().fit(X, Y, QID)
    ones = np.ones(len(PAIRS))
    calls |= {
        "predict": lambda m: fitted.predict(m(X)),
        "score X": lambda m: fitted.score(m(X), Y, QID),
        "score y": lambda m: fitted.score(X, m(Y), QID),
        "score qid": lambda m: fitted.score(X, Y, m(QID)),
        "score weight": lambda m: fitted.score(X, Y, QID, m(np.ones(N_ROWS))),
        "rank": lambda m: fitted.rank(X, m(QID)),
        "importance": lambda m: RankRLS().fit(X, Y, QID, query_importance=m(np.ones(N_ROWS))),
        "partial_fit": lambda m: RankRLS().partial_fit(X, m(Y), QID),
        "pairs": lambda m: RankRLS().fit_pairs(X, m(PAIRS)),
        "magnitude": lambda m: RankRLS().fit_pairs(X, PAIRS, magnitude=m(ones)),
        "pair weight": lambda m: RankRLS().fit_pairs(X, PAIRS, weight=m(ones)),
        "score_pairs": lambda m: fitted.score_pairs(X, m(PAIRS)),
        "predict_pairs": lambda m: fitted.predict_pairs(m(X), X),
        "eval_set y": lambda m: RankRLSCV().fit(X, Y, QID, eval_set=(X, m(Y), QID)),
        "eval_set qid": lambda m: RankRLSCV().fit(X, Y, QID, eval_set=(X, Y, m(QID))),
        "eval_set pairs": lambda m: RankRLSCV().fit_pairs(X, PAIRS, eval_set=(X, m(PAIRS))),
        "eval_set weight": lambda m: RankRLSCV().fit_pairs(X, PAIRS, eval_set=(X, PAIRS, m(ones))),
        "groups": lambda m: RankRLSCV(cv=2).fit_pairs(X, PAIRS, groups=m(np.arange(6) // 2)),
        "alphas": lambda m: RankRLSCV(alphas=m(np.array([0.1, 1.0, 10.0]))).fit(X, Y, QID),
        "basis": lambda m: KernelRankRLS(basis=m(np.arange(5))).fit(X, Y, QID),
        "QueryScaler": lambda m: QueryScaler().fit(m(X), qid=QID),
        "QueryScaler qid": lambda m: QueryScaler().fit_transform(X, qid=m(QID)),
        "QueryKFold": lambda m: list(QueryKFold(2).split(X, Y, m(QID))),
        "PreferenceKFold": lambda m: list(PreferenceKFold(2).split(m(PAIRS))),
        "cross_validate_ranker": lambda m: cross_validate_ranker(RankRLS(), X, Y, m(QID), cv=2),
        "permutation_test": lambda m: permutation_test(RankRLS(), X, m(Y), QID, n_permutations=2),
        "Report": lambda m: Report(fitted, m(X), Y, QID),
        "stack_preferred": lambda m: stack_preferred(X, m(X)),
        "clicks": lambda m: pairs_from_clicks(np.zeros(6), np.arange(1, 7), m(np.array([0, 1, 0, 1, 0, 0]))),
        "positions": lambda m: pairs_from_clicks(
            np.zeros(6), m(np.arange(1, 7)), np.array([0, 1, 0, 1, 0, 0])
        ),
        "sessions": lambda m: pairs_from_clicks(
            m(np.zeros(6)), np.arange(1, 7), np.array([0, 1, 0, 1, 0, 0])
        ),
        "save_svmlight X": lambda m: save_svmlight(m(X), Y, io.BytesIO()),
        "save_svmlight y": lambda m: save_svmlight(X, m(Y), io.BytesIO()),
        "save_svmlight qid": lambda m: save_svmlight(X, Y, io.BytesIO(), qid=m(QID)),
        "metric y": lambda m: ndcg(m(Y), X[:, 0], QID),
        "metric scores": lambda m: ndcg(Y, m(X[:, 0]), QID),
        "metric qid": lambda m: ndcg(Y, X[:, 0], m(QID)),
        "metric weight": lambda m: pairwise_error(Y, X[:, 0], QID, sample_weight=m(np.ones(N_ROWS))),
        "preference_error": lambda m: preference_error(PAIRS, m(X[:, 0])),
        "auc_estimate": lambda m: auc_estimate(Y > 0, m(X)),
        "bootstrap": lambda m: bootstrap_interval(Y, m(X[:, 0]), QID, metric="ndcg", n_resamples=10),
    }
    return calls


MASKED = masked_calls()


@pytest.mark.parametrize("call", MASKED)
def test_what_a_mask_hides_is_no_data(call):
    with pytest.raises(InvalidInputError, match=r"masked array that hides .*Hint: drop those rows"):
        MASKED[call](masked)
    MASKED[call](lambda values: masked(values, at=None))


@pytest.mark.parametrize("kind", ["X", "y", "qid"])
def test_stores_and_tables_refuse_masks(tmp_path, kind):
    arrays = {"X": X, "y": Y, "qid": QID} | {kind: masked({"X": X, "y": Y, "qid": QID}[kind])}
    with pytest.raises(InvalidInputError, match="masked array that hides"):
        save_store([tuple(arrays.values())], tmp_path / "store")
    with pytest.raises(InvalidInputError, match="masked array that hides"):
        save_table(arrays["X"], arrays["y"], tmp_path / "table.parquet", qid=arrays["qid"])


def test_masked_rows_in_a_list_are_seen():
    with pytest.raises(InvalidInputError, match="X is a masked array that holds masked entries"):
        RankRLS().fit([masked(row) for row in X], Y)
    with pytest.raises(InvalidInputError, match="y is a masked array that holds masked entries"):
        RankRLS().fit(X, [*Y[:-1], np.ma.masked])


def test_a_mask_without_entries_gives_the_plain_array():
    assert type(unmasked("X", masked(X, at=None))) is np.ndarray
    expected = RankRLS().fit(X, Y, QID).coef_
    plain = RankRLS().fit(masked(X, at=None), masked(Y, at=None), masked(QID, at=None))
    np.testing.assert_array_equal(plain.coef_, expected)


# Columns with a missing value, as the packages that have such columns write them; the last row is whole.
def _lacking(values):
    return [None, *values[1:].tolist()]


FRAMES = {
    "pandas nullable": lambda values: pd.Series(_lacking(values), dtype="Float64"),
    "pandas arrow": lambda values: pd.Series(_lacking(values), dtype="float64[pyarrow]"),
    "polars": lambda values: pl.Series(_lacking(values)),
    "pyarrow": lambda values: pa.array(_lacking(values)),
    "pyarrow chunks": lambda values: pa.chunked_array([pa.array(_lacking(values))]),
}
TEXTS = {
    "pandas": lambda values: pd.Series(_lacking(values), dtype="string"),
    "polars": lambda values: pl.Series(_lacking(values)),
    "pyarrow": lambda values: pa.array(_lacking(values)),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_missing_numbers_of_frames_are_refused(frame):
    make = FRAMES[frame]
    score = X[:, 0]
    for call in (
        lambda: RankRLS().fit(X, make(Y), QID),
        lambda: RankRLS().fit(X, Y, make(QID)),
        lambda: RankRLS().fit(X, Y, QID, make(np.ones(N_ROWS))),
        lambda: RankRLS().fit_pairs(X, PAIRS, magnitude=make(np.ones(len(PAIRS)))),
        lambda: RankRLS().fit(X, Y, QID).score(X, make(Y), QID),
        lambda: ndcg(make(Y), score, QID),
        lambda: ndcg(Y, make(score), QID),
        lambda: pairs_from_clicks(np.zeros(6), np.arange(1, 7), make(np.ones(6))),
    ):
        with pytest.raises(InvalidInputError, match=r"(?i)nan|missing|must be numbers"):
            call()


@pytest.mark.parametrize("frame", TEXTS)
def test_missing_ids_of_frames_are_refused(frame):
    qid = np.array([f"q{i}" for i in QID])
    with pytest.raises(InvalidInputError, match="qid is missing"):
        RankRLS().fit(X, Y, TEXTS[frame](qid))


@pytest.mark.parametrize(
    "make",
    [
        lambda table: pd.DataFrame(table).astype("Float64").mask(table == table[0, 0]),
        lambda table: pl.DataFrame([pl.Series(f"c{c}", _lacking(table[:, c])) for c in range(N_COLUMNS)]),
        lambda table: pa.table({f"c{c}": _lacking(table[:, c]) for c in range(N_COLUMNS)}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_missing_cells_of_frames_are_refused(make):
    with pytest.raises(InvalidInputError, match=r"NaN|missing"):
        RankRLS().fit(make(X + 10), Y, QID)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_values_that_are_not_finite_are_seen_by_their_scores(dtype, bad, kind):
    """Also where the coefficient is 0, and where two infinities would cancel."""
    model = RankRLS().fit(X, Y, QID)
    model.coef_ = np.array([0.0, 1.0, 1.0, -1.0])
    for cells in ([(3, 0)], [(3, 1)], [(3, 1), (3, 3)]):
        rows = X.astype(dtype)
        for cell in cells:
            rows[cell] = bad
        with pytest.raises(InvalidInputError, match=r"X contains (NaN|infinity)|contains NaN, infinity"):
            model.predict(getattr(sp, f"{kind}_matrix")(rows))
