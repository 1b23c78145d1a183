"""Estimators fitted on a cluster are those fitted here, whatever the rows are stored in and however they are cut."""

import gc
import re
import subprocess
import sys
import time
import weakref

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from on_cluster import in_blocks, local_cluster, ranking_data
from rankwise import AutoRanker, KernelRankRLS, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.distributed import distribute
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.runtime import progress

QUERIES = [True, False]
STORAGES = [(False, np.float64), (True, np.float64), (True, np.float32)]


def agree(one, other, tolerance=1e-8):
    scale = np.abs(one).max()
    assert np.allclose(one / scale, other / scale, rtol=0, atol=tolerance)


def fitted(model, X, y, qid, cuts):
    """Fit here and on the cluster."""
    here = clone(model).fit(X, y, qid=qid)
    there = clone(model).fit(in_blocks(X, cuts), da.from_array(y, chunks=100), qid=qid)
    return here, there


@pytest.mark.parametrize(("sparse", "dtype"), STORAGES)
@pytest.mark.parametrize("with_queries", QUERIES)
def test_least_squares(client, sparse, dtype, with_queries):
    X, y, qid = ranking_data(5, sparse=sparse, dtype=dtype)
    qid = qid if with_queries else None
    models = [RankRLS(solver="cg", tol=1e-12), RankRLS(ties="exclude")]
    if not sparse:
        models += [RankRLS(solver="egdm", tol=1e-3), RankRLS(0.0, early_stopping=True, patience=5)]
    for model in models:
        here, there = fitted(model, X, y, qid, [37, 150])
        agree(here.coef_, there.coef_)
        assert there.n_pairs_ == here.n_pairs_
        assert there.n_features_in_ == 10


@pytest.mark.parametrize(("sparse", "dtype"), STORAGES)
@pytest.mark.parametrize("with_queries", QUERIES)
def test_the_surface(client, sparse, dtype, with_queries):
    X, y, qid = ranking_data(6, sparse=sparse, dtype=dtype)
    qid = qid if with_queries else None
    ties = "exclude" if sparse else "include"
    model = RankRLSCV(cv=3, tol=1e-12, ties=ties)
    here, there = fitted(model, X, y, qid, [5, 121])
    agree(here.surface_, there.surface_)
    agree(here.coef_, there.coef_)
    assert (here.alpha_, here.best_iteration_, here.cv_) == (there.alpha_, there.best_iteration_, there.cv_)


def test_margins(client):
    X, y, qid = ranking_data(7, sparse=True)
    for ids in (qid, None):
        for model in (RankSVM(1e-2, tol=1e-5), RankSVM(1e-2, loss="squared_hinge", tol=1e-8)):
            here, there = fitted(model, X, y, ids, [90])
            assert there.duality_gap_ <= 1.01 * here.duality_gap_ + 1e-12
            agree(here.coef_, there.coef_, 1e-4)
    here, there = fitted(RankSVMCV([1e-1, 1e-3], cv=3), X, y, qid, [90])
    agree(here.cv_errors_, there.cv_errors_)


def test_listed_pairs(client):
    X, y, _ = ranking_data(8)
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i, j in rng.integers(y.size, size=(400, 2)) if y[i] > y[j]]
    for model in (RankRLS(tol=1e-12, solver="cg", penalty_power=0.25), RankRLSCV(cv=3, tol=1e-12)):
        here = clone(model).fit_pairs(X, pairs)
        there = clone(model).fit_pairs(in_blocks(X, [60, 61]), pairs)
        agree(here.coef_, there.coef_)


def test_rows_that_weigh_something_else(client):
    X, y, qid = ranking_data(9)
    rng = np.random.default_rng(0)
    weight, importance = rng.integers(3, size=y.size).astype(float), (qid % 3).astype(float)
    for ids in (qid, None):
        here = RankRLSCV(cv=3, tol=1e-12).fit(X, y, qid=ids, sample_weight=weight)
        there = RankRLSCV(cv=3, tol=1e-12).fit(in_blocks(X, [60]), y, qid=ids, sample_weight=weight)
        agree(here.surface_, there.surface_)
    here = RankRLS(tol=1e-12, solver="cg").fit(X, y, qid=qid, query_importance=importance)
    there = RankRLS(tol=1e-12, solver="cg").fit(in_blocks(X, [60]), y, qid=qid, query_importance=importance)
    agree(here.coef_, there.coef_)


def test_relative_costs_and_several_outputs(client):
    X, y, qid = ranking_data(10)
    both = np.column_stack((y, -y + X[:, 0].round()))
    for options in ({"cost": "relative", "ties": "exclude"}, {}):
        for ids in (qid, None):
            here, there = fitted(RankRLS(solver="cg", tol=1e-12, **options), X, both, ids, [33])
            agree(here.coef_, there.coef_)


def test_columns_far_from_zero(client):
    X, y, qid = ranking_data(11)
    X[:, 1] += 1e8
    here, there = fitted(RankRLS(solver="cg", tol=1e-12), X, y, qid, [100])
    agree(here.coef_, there.coef_, 1e-6)


def test_scattered_queries_come_together(client):
    X, y, qid = ranking_data(12)
    order = np.random.default_rng(1).permutation(y.size)
    X, y, qid = X[order], y[order], qid[order].astype(str)
    here, there = fitted(RankRLSCV(cv=3, tol=1e-12), X, y, qid, [77])
    agree(here.surface_, there.surface_)


def test_frames_have_named_columns(client):
    X, y, qid = ranking_data(13)
    names = [f"c{number}" for number in range(10)]
    frame = pd.DataFrame(X, columns=names).assign(label=y, query=qid)
    lazy = dd.from_pandas(frame, npartitions=3)
    model = RankRLS(tol=1e-12, solver="cg").fit(lazy[names], lazy["label"], qid=lazy["query"])
    agree(RankRLS(tol=1e-12, solver="cg").fit(X, y, qid=qid).coef_, model.coef_)
    assert model.feature_names_in_.tolist() == names
    scores = model.predict(lazy[names])
    assert scores.npartitions == 3
    assert np.allclose(scores.compute().to_numpy(), model.predict(frame[names]))
    swapped = lazy[names[::-1]]
    with pytest.raises(InvalidInputError, match="feature names"):
        model.predict(swapped).compute()
    with pytest.raises(InvalidInputError, match="same order"):
        RankRLS(early_stopping=True).fit(frame[names], y, qid=qid, eval_set=(swapped, lazy["label"], qid))


def test_scores_and_ranks_are_lazy(client):
    X, y, qid = ranking_data(14, sparse=True)
    model = RankRLS().fit(X, y, qid=qid)
    cut = int(np.searchsorted(qid, qid[120]))
    lazy = in_blocks(X, [cut])
    scores, ranks = model.predict(lazy), model.rank(lazy, qid=da.from_array(qid, chunks=lazy.chunks[0]))
    assert isinstance(scores, da.Array)
    assert isinstance(ranks, da.Array)
    assert np.array_equal(scores.compute(), model.predict(X))
    assert np.array_equal(ranks.compute(), model.rank(X, qid=qid))
    assert np.array_equal(model.rank(lazy, qid=qid).compute(), model.rank(X, qid=qid))
    assert model.score(lazy, y, qid=qid) == model.score(X, y, qid=qid)
    split = model.rank(in_blocks(X, [cut + 1]), qid=qid)
    with pytest.raises(InvalidInputError, match="rows in two partitions"):
        split.compute()
    whole = RankRLS().fit(X, y)
    assert np.array_equal(whole.rank(lazy).compute(), whole.rank(X))
    assert whole.rank(lazy).chunks == model.predict(lazy).chunks  # a block for each block of rows


def test_an_evaluation_set_may_be_here_or_there(client):
    X, y, qid = ranking_data(15)
    here = RankRLSCV(tol=1e-12).fit(X, y, qid=qid, eval_set=(X[:100], y[:100], qid[:100]))
    for rows in (X[:100], in_blocks(X[:100], [40])):
        model = RankRLSCV(tol=1e-12).fit(in_blocks(X, [40]), y, qid=qid, eval_set=(rows, y[:100], qid[:100]))
        agree(here.surface_, model.surface_)


@pytest.fixture
def without_collection():
    """Have nothing freed by the garbage collector, whose moment nobody knows."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def wait_until_freed(client, limit=10.0):
    """Return when the scheduler has no task left, and no worker a share of the rows."""
    end = time.monotonic() + limit
    while any(found := [tasks_of(client), *client.run(shares_here).values()]):
        assert time.monotonic() < end, found
        time.sleep(0.05)


def tasks_of(client):
    return client.run_on_scheduler(lambda dask_scheduler: [str(name) for name in dask_scheduler.tasks])


def shares_here():
    gc.collect()
    return [one.name for one in gc.get_objects() if type(one).__name__ == "WorkerRows"]


@pytest.mark.parametrize("kind", [RankRLS, RankRLSCV, RankSVM])
@pytest.mark.usefixtures("without_collection")
def test_a_fit_leaves_nothing_on_the_cluster(client, kind):
    X, y, qid = ranking_data(16)
    rows = distribute(in_blocks(X, [90])).X
    beside = {"eval_set": (in_blocks(X[:100], [40]), y[:100], qid[:100])} if hasattr(kind(), "cv") else {}
    model = kind().fit(rows, y, qid=qid, **beside)
    model.predict(rows).compute()
    wait_until_freed(client)
    seen = weakref.ref(model)
    del model
    assert seen() is None


@pytest.mark.usefixtures("without_collection")
def test_a_fit_that_fails_leaves_nothing_on_the_cluster(client):
    X, y, qid = ranking_data(17)
    with pytest.raises(InvalidInputError, match="NaN"):
        RankRLSCV().fit(in_blocks(X, [90]), y, qid=qid, eval_set=(in_blocks(X, [90]) * np.nan, y, qid))
    wait_until_freed(client)


@pytest.mark.parametrize("has_room", [True, False])
def test_a_choice_leaves_nothing_on_the_cluster_with_or_without_a_basis(client, monkeypatch, has_room):
    X, y, qid = ranking_data(18)
    here = RankRLSCV(cv=3, tol=1e-12).fit(X, y, qid=qid)
    if not has_room:
        monkeypatch.setattr("rankwise.selection.krylov.fits", lambda *_: False)
    there = RankRLSCV(cv=3, tol=1e-12).fit(in_blocks(X, [90]), y, qid=qid)
    assert there.keeps_basis_ == has_room
    agree(here.coef_, there.coef_)
    wait_until_freed(client)


@pytest.mark.parametrize("solver", ["stochastic", "egdm-blocks"])
def test_solvers_that_walk_through_rows_are_refused(client, solver):
    X, y, qid = ranking_data(16)
    with pytest.raises(UnsuitableSolverError, match=r"would travel to the client.*Hint: use solver='cg'"):
        RankRLS(solver=solver).fit(in_blocks(X, [50]), y, qid=qid)


def test_what_no_cluster_can_do_is_refused(client):
    X, y, qid = ranking_data(17)
    with pytest.raises(InvalidInputError, match="KernelRankRLS needs its rows in the memory of one machine"):
        KernelRankRLS().fit(in_blocks(X, [50]), y, qid=qid)
    table = dd.from_dask_array(in_blocks(X, [50]), columns=[f"x{column}" for column in range(X.shape[1])])
    with pytest.raises(InvalidInputError, match="AutoRanker needs its rows in the memory of one machine"):
        AutoRanker().fit(table, y, qid=qid)
    wide = da.zeros((10, 5000), chunks=(5, 5000))
    with pytest.raises(UnsuitableSolverError, match=r"matrix of 5000 × 5000, added up from every worker"):
        RankRLS(solver="direct").fit(wide, np.arange(10))
    X[3, 3] = np.nan
    with pytest.raises(InvalidInputError, match="X contains NaN"):
        RankRLS().fit(in_blocks(X, [50]), y, qid=qid)
    with pytest.raises(InvalidInputError, match="one finite number per row"):
        RankRLS().fit(in_blocks(ranking_data(17)[0], [50]), y[:-1], qid=qid)


def test_without_a_client_the_error_says_what_to_do():
    script = """
import sys
import numpy as np
import rankwise
from rankwise import RankRLS
RankRLS().fit(np.eye(4), np.arange(4))
assert not {"dask", "distributed"} & set(sys.modules)
import dask
import dask.array as da
try:
    RankRLS().fit(da.zeros((10, 2), chunks=(5, 2)), np.arange(10))
except rankwise.exceptions.ClusterError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert re.search("no client of a cluster.*Hint: make one", done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("n_workers", [1, 3, 4, 8])
def test_any_number_of_workers(n_workers):
    with local_cluster(n_workers):
        for seed in range(3):
            for with_queries in QUERIES:
                X, y, qid = ranking_data(seed, sparse=seed % 2 == 1)
                cuts = np.sort(np.random.default_rng(seed).integers(1, y.size, size=6)).tolist()
                ids = qid if with_queries else None
                here, there = fitted(RankRLSCV(cv=3, tol=1e-12), X, y, ids, cuts)
                agree(here.surface_, there.surface_)
                agree(here.coef_, there.coef_)
                here, there = fitted(RankSVM(1e-2, tol=1e-6), X, y, ids, cuts)
                assert there.duality_gap_ <= 1.01 * here.duality_gap_ + 1e-12


def test_a_terminal_shows_how_far_it_has_come(client, monkeypatch):
    X, y, qid = ranking_data(18)
    shown = []
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_REFRESH", 0.0)
    monkeypatch.setattr(progress, "_put", lambda parts, _ending: shown.append(", ".join(parts)))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    RankSVM(1e-2).fit(in_blocks(X, [90]), y, qid=qid)
    assert any(re.search(r"iteration \d+, gap \S+, cluster: \d+ products", line) for line in shown)
    assert any("cluster: [" in line and "loading block" in line for line in shown)


def in_parts(*parts):
    """Return a Dask array of blocks that need not go together."""
    meta = np.empty((0, 0))
    lazy = [da.from_delayed(dask.delayed(part), shape=part.shape, meta=meta) for part in parts]
    return da.concatenate(lazy)


def odd_blocks():
    X, y, qid = ranking_data(3, n_rows=40, n_columns=3, n_queries=4)
    wide = sp.csr_matrix(np.eye(20, 5))
    yield in_parts(X[:20], sp.csr_matrix(X[20:])), y, qid, "dense and sparse blocks"
    yield in_parts(X[:20], np.array([["a"] * 3] * 20)), y, qid, "which is not numeric"
    yield da.from_array(X[:, 0], chunks=20), y, qid, "of 1 dimensions"
    yield da.from_array(X[:0], chunks=(20, 3)), y[:0], None, "X has no rows"
    halves = da.concatenate([in_blocks(wide, [10])[:, :3], in_blocks(wide, [10])[:, 3:]], axis=1)
    yield halves, y[:20], qid[:20], "rows are cut into 2 pieces"


@pytest.mark.parametrize("number", range(5))
def test_blocks_that_do_not_go_together_are_refused(client, number):
    X, y, qid, said = list(odd_blocks())[number]
    with pytest.raises(InvalidInputError, match=said) as refusal:
        RankRLS().fit(X, y, qid)
    assert refusal.value.hint


@pytest.mark.parametrize("kind", [RankRLS, RankRLSCV, RankSVMCV])
def test_rows_without_columns_are_refused(client, kind):
    nothing = pd.DataFrame(index=range(10))
    for X in (da.zeros((10, 0), chunks=(5, 1)), dd.from_pandas(nothing, npartitions=2)):
        with pytest.raises(InvalidInputError, match=r"X has no columns. Hint"):
            kind().fit(X, np.arange(10.0))
    with pytest.raises(InvalidInputError, match=r"X has no columns. Hint"):
        kind().fit(nothing, np.arange(10.0))


def test_the_number_of_columns_may_be_unknown(client):
    X, y, qid = ranking_data(19)
    unknown = da.from_delayed(dask.delayed(X), shape=(np.nan, np.nan), dtype=float)
    agree(RankRLS().fit(X, y, qid).coef_, RankRLS().fit(unknown, y, qid).coef_)


def test_rows_that_are_cut_into_pieces_are_put_together(client):
    X, y, qid = ranking_data(4, n_rows=60, n_columns=4)
    found = RankRLS().fit(da.from_array(X, chunks=(20, 3)), y, qid)
    agree(found.coef_, RankRLS().fit(X, y, qid).coef_)


def test_ids_in_one_piece_need_partitions_of_known_sizes(client):
    X, y, qid = ranking_data(5, n_rows=60, n_columns=3)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)
    model = RankRLS().fit(X, y, qid)
    unknown = frame.map_partitions(lambda part: part).to_dask_array()
    with pytest.raises(InvalidInputError, match="unknown sizes"):
        model.rank(unknown, qid=qid)
