"""Containers: sparse matrices whose indices do not fit, missing values of data frames, values that are not finite."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from optional import polars as pl
from rankwise import RankRLS
from rankwise.data import pairs_from_clicks, save_store
from rankwise.data.containers import check_sparse, is_moderate, is_null, readable
from rankwise.data.store import open_store, reopen_store
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import ndcg

rng = np.random.default_rng(0)
N_ROWS, N_COLUMNS = 24, 4
X = np.where(rng.random((N_ROWS, N_COLUMNS)) < 0.7, rng.normal(size=(N_ROWS, N_COLUMNS)), 0.0)
Y = rng.integers(0, 3, size=N_ROWS).astype(float)
QID = np.repeat(np.arange(4), 6)
PAIRS = np.array([[0, 1], [2, 3], [8, 5], [1, 7], [9, 2], [4, 6]])


DAMAGES = {
    "column beyond": ("indices", lambda a: np.where(np.arange(a.size) == 3, N_ROWS, a)),
    "column negative": ("indices", lambda a: np.where(np.arange(a.size) == 3, -1, a)),
    "pointers fall": ("indptr", lambda a: np.where(np.arange(a.size) == 3, 1, a)),
    "pointers late": ("indptr", lambda a: np.where(np.arange(a.size) == 0, 1, a)),
    "pointers beyond": ("indptr", lambda a: np.where(np.arange(a.size) == a.size - 1, 10**4, a)),
    "pointers too few": ("indptr", lambda a: a[:-1]),
    "data too few": ("data", lambda a: a[:-1]),
    "real": ("indices", lambda a: a.astype(float)),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
def test_indices_that_do_not_fit_are_refused(name, kind):
    attribute, damage = DAMAGES[name]
    matrix = kind(X)
    values = damage(getattr(matrix, attribute))
    setattr(matrix, attribute, values if values.dtype.kind == "f" else values.astype(np.int32))
    with pytest.raises(InvalidInputError, match=r"indices that do not fit its shape .*Hint: build it again"):
        RankRLS().fit(matrix, Y)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("container", ["matrix", "array"])
def test_every_sound_matrix_is_taken(kind, container):
    expected = RankRLS().fit(X, Y, QID).coef_
    matrix = getattr(sp, f"{kind}_{container}")(X)
    check_sparse("X", matrix)
    np.testing.assert_allclose(RankRLS().fit(matrix, Y, QID).coef_, expected, rtol=1e-9)
    check_sparse("X", type(matrix)((0, 3)))
    check_sparse("X", type(matrix)((3, 0)))


def test_sparse_arrays_of_other_dimensions_are_refused():
    vector = sp.coo_array(Y)
    if vector.ndim != 1:
        pytest.skip("this SciPy has no sparse arrays of one dimension: it makes them rows of a matrix")
    with pytest.raises(InvalidInputError, match=r"X has shape \(24,\)"):
        RankRLS().fit(vector, Y)


def test_a_matrix_on_disk_is_not_read_again(tmp_path):
    """Its store was checked when it was opened: here it was not, on purpose, and nobody notices."""
    save_store([(sp.csr_matrix(X), Y, QID)], tmp_path / "store")
    identity = open_store(tmp_path / "store").identity
    columns = np.load(tmp_path / "store" / "indices.npy")
    columns[0] = 99
    np.save(tmp_path / "store" / "indices.npy", columns)
    matrix = reopen_store(str(tmp_path / "store"), identity).X
    check_sparse("X", matrix)
    matrix.indices = matrix.indices.copy()  # no longer that of the store
    with pytest.raises(InvalidInputError, match="do not fit its shape"):
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
        with pytest.raises(InvalidInputError, match="do not fit its shape"):
            check_sparse("X", matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("bad", "size"), [(np.nan, 1), (-np.nan, 7), (np.inf, 7), (-np.inf, 1000), (np.nan, 1000)]
)
def test_values_that_are_not_finite_are_seen(dtype, bad, size):
    values = np.random.default_rng(0).normal(size=size).astype(dtype)
    assert is_moderate(values)
    for at in {0, size // 2, size - 1}:
        changed = values.copy()
        changed[at] = bad
        assert not is_moderate(changed)
        with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
            RankRLS().fit(np.column_stack([np.arange(size + 1), np.append(changed, 1)]), np.arange(size + 1))


def test_a_mask_without_entries_gives_the_plain_array():
    assert type(readable("X", np.ma.array(X, mask=False))) is np.ndarray
    with pytest.raises(InvalidInputError, match="X has masked entries"):
        readable("X", np.ma.masked_equal(X, X[0, 0]))


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


@pytest.mark.parametrize(
    ("dtype", "bad", "kind"),
    [
        (np.float32, np.nan, "csr"),
        (np.float64, np.inf, "csr"),
        (np.float64, np.nan, "csc"),
        (np.float32, -np.inf, "coo"),
    ],
)
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


@pytest.mark.parametrize(
    "value", [None, float("nan"), np.datetime64("NaT"), np.timedelta64("NaT"), Decimal("NaN")], ids=repr
)
def test_missing_values_of_every_type_are_null(value):
    assert is_null(value)
    assert not is_null(str(value))
    assert not is_null(Decimal(0))
