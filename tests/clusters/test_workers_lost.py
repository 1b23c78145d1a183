"""Workers are killed at random moments, and the answer is the undisturbed one; nothing waits for ever."""

import os
import signal
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import rankwise
from on_cluster import in_blocks, kill, local_cluster, ranking_data, wait_for_successor
from rankwise import RankRLS, RankRLSCV, RankSVM
from rankwise.distributed import distribute
from rankwise.distributed.loading import Loading
from rankwise.distributed.products import ClusterProduct
from rankwise.exceptions import ClusterError, MemoryLimitError


def model_of(kind):
    if kind == "least squares":
        return RankRLSCV(cv=3, tol=1e-12, max_iter=60, patience=60)
    return RankSVM(1e-3, tol=1e-5)


class Killer(threading.Thread):
    """Ends a worker at a random moment, by the signal that nobody can handle."""

    def __init__(self, client, rng, within):
        super().__init__(daemon=True)
        pids = client.run(os.getpid)
        self.address = sorted(pids)[rng.integers(len(pids))]
        self.process = pids[self.address]
        self.moment = float(rng.random() * within)

    def run(self):
        time.sleep(self.moment)
        os.kill(self.process, signal.SIGKILL)


def disturbed(client, kind, seed):
    """Fit undisturbed, and while a worker is killed; return how far apart the two are beside what they may be."""
    rng = np.random.default_rng(seed)
    X, y, qid = ranking_data(seed, sparse=bool(seed % 2), n_rows=400, n_columns=30)
    ids, model = qid if seed % 3 else None, model_of(kind)
    data = distribute(in_blocks(X, [100, 200]), y, ids, client=client, timeout=60)
    began = time.monotonic()
    alone = clone(model).fit(data.X, data.y, qid=data.qid)
    killer = Killer(client, rng, time.monotonic() - began)
    killer.start()
    other = clone(model).fit(data.X, data.y, qid=data.qid)
    killer.join()
    wait_for_successor(client, killer.address, 2)
    distance = np.linalg.norm(other.coef_ - alone.coef_)
    if kind == "least squares":
        return distance / (1e-8 * np.linalg.norm(alone.coef_))
    # A gap is at least alpha times the squared distance to the minimum; that it is small enough, fit itself checks.
    return distance / sum(np.sqrt(one.duality_gap_ / model.alpha) for one in (alone, other))


@pytest.mark.parametrize(("kind", "seed"), [("least squares", 1), ("margins", 2)])
def test_a_killed_worker_changes_nothing(client, kind, seed):
    assert disturbed(client, kind, seed) < 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["least squares", "margins"])
@pytest.mark.parametrize("seed", range(10, 35))
def test_fifty_killed_workers_change_nothing(client, kind, seed):
    assert disturbed(client, kind, seed) < 1


def test_a_worker_that_dies_in_a_product_is_replaced(client):
    X, y, qid = ranking_data(40, n_columns=30)
    data = distribute(in_blocks(X, [100]), y, qid, client=client, timeout=60)
    design = data.X.grouped(qid).as_design(1)
    before = design.dot(np.ones(30))
    lost = design.cluster.addresses[1]
    kill(client, lost)
    assert np.array_equal(design.dot(np.ones(30)), before)
    assert design.cluster.n_rebuilt == 1
    wait_for_successor(client, lost, 2)


def test_a_worker_that_dies_once_its_rows_have_come_is_replaced(client, monkeypatch):
    """The results of the tasks that filled it are gone too: waiting for them would be waiting for ever."""
    X, y, qid = ranking_data(43)
    data = distribute(in_blocks(X, [100]), y, qid, client=client, timeout=60)
    load, killed = Loading.load, []

    def load_and_kill(loading, handles, shares):
        silent = load(loading, handles, shares)
        if not killed:
            killed.append(handles[0].address)
            kill(client, killed[0])
        return silent

    monkeypatch.setattr(Loading, "load", load_and_kill)
    design = data.X.grouped(qid).as_design(1)
    assert np.allclose(design.dot(np.ones(10)), X.sum(axis=1))
    wait_for_successor(client, killed[0], 2)


def stop(client, address):
    """Stop a worker, and return its process once none of its threads goes on."""
    process = client.run(os.getpid)[address]
    os.kill(process, signal.SIGSTOP)
    end = time.monotonic() + 60
    while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end
        time.sleep(0.01)
    return process


def test_a_silent_worker_is_named(client):
    X, y, qid = ranking_data(41)
    data = distribute(in_blocks(X, [100]), y, qid, client=client, timeout=60)
    design = data.X.grouped(qid).as_design(1)
    # Only now: on a busy machine the rows themselves may take longer to come.
    design.cluster._actors.options = replace(data.X.options, timeout=2.0)
    address = design.cluster.addresses[0]
    stopped = stop(client, address)
    try:
        with pytest.raises(ClusterError, match=rf"worker {address} did not answer for 2 s.*Hint: look at it"):
            design.dot(np.ones(10))
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_rows_that_do_not_fit_into_workers_are_refused(client):
    X = da.zeros((1 << 15, 2560), chunks=(1 << 11, 2560))
    data = distribute(X, client=client)
    with pytest.raises(
        MemoryLimitError, match=r"0.31 GiB of rows, and may use 0.50 GiB.*Hint: use more workers"
    ):
        RankRLS().fit(data.X, np.arange(1 << 15))


def test_an_interrupted_client_keeps_the_best_model(client, monkeypatch):
    X, y, qid = ranking_data(42, n_rows=2000, n_columns=200)
    data = distribute(in_blocks(X, [900]), y, qid, client=client, timeout=60)
    multiply, n_products = ClusterProduct.__call__, []

    def interrupted(product, v, held_out=None):
        n_products.append(1)
        if len(n_products) == 8:  # Ctrl-C, while the workers multiply
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
        return multiply(product, v, held_out)

    monkeypatch.setattr(ClusterProduct, "__call__", interrupted)
    model = RankRLS(1e-12, solver="cg", tol=1e-15)
    with rankwise.keep_on_interrupt(), pytest.warns(UserWarning, match="interrupted"):
        model.fit(data.X, data.y, qid=data.qid)
    assert len(n_products) == 8
    assert model.score(X, y, qid=qid) > 0.6


def test_a_slow_worker_is_waited_for(client):
    X, _y, qid = ranking_data(44)
    design = distribute(in_blocks(X, [100]), client=client, timeout=120).X.grouped(qid).as_design(1)
    process = stop(client, design.cluster.addresses[0])
    threading.Timer(1.5, os.kill, (process, signal.SIGCONT)).start()
    assert np.allclose(design.dot(np.ones(10)), X.sum(axis=1))
    assert design.cluster.n_rebuilt == 0


def test_a_lost_connection_is_made_again(client):
    X, y, qid = ranking_data(45)
    design = distribute(in_blocks(X, [100]), client=client, timeout=120).X.grouped(qid).as_design(1)
    before = design.tdot(y)
    connection = design.cluster._actors[1].connection
    assert connection is not None
    connection._stream._socket.shutdown(socket.SHUT_RDWR)  # as a router does that forgets about it
    assert np.array_equal(design.tdot(y), before)
    assert design.cluster.n_rebuilt == 1
    assert design.cluster._actors[1].connection is not None


def use_up_memory():
    """Take more than the worker may: its nanny ends it."""
    taken = np.ones(1 << 26)
    while taken.all():
        time.sleep(0.01)


@pytest.mark.long
def test_workers_that_run_out_of_memory_or_come_later():
    """The nanny ends a worker at its limit; its rows go to one that came meanwhile, or to its successor."""
    X, y, qid = ranking_data(46)
    with local_cluster(2) as client:
        data = distribute(in_blocks(X, [100]), y, qid, client=client, timeout=120)
        design = data.X.grouped(qid).as_design(1)
        before, at_first = design.tdot(y), set(design.cluster.addresses)
        client.cluster.scale(3)
        client.wait_for_workers(3, timeout=120)
        lost = design.cluster.addresses[1]
        client.submit(use_up_memory, workers=[lost], pure=False, retries=0)
        end = time.monotonic() + 120
        while lost in client.nthreads():
            assert time.monotonic() < end, "nobody ended the worker"
            time.sleep(0.05)
        assert np.array_equal(design.tdot(y), before)
        assert design.cluster.n_rebuilt == 1
        assert set(design.cluster.addresses) - at_first  # the one that came later, or the successor
