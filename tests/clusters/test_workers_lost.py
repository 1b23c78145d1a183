"""Workers are killed at random moments, and the answer is the undisturbed one; nothing waits for ever."""

import os
import signal
import threading
import time
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from on_cluster import in_blocks, kill, local_cluster, ranking_data, wait_for_successor
from rankwise import RankRLS, RankRLSCV, RankSVM
from rankwise.distributed import distribute
from rankwise.distributed.cluster import Cluster
from rankwise.exceptions import ClusterError, MemoryLimitError

pytestmark = pytest.mark.long


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


@pytest.mark.parametrize("kind", ["least squares", "margins"])
@pytest.mark.parametrize("seed", range(15))
def test_thirty_killed_workers_change_nothing(processes, kind, seed):
    client, rng = processes, np.random.default_rng(seed)
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
        assert distance < 1e-8 * np.linalg.norm(alone.coef_)
    else:
        # A gap is at least alpha times the squared distance to the minimum; fit itself checks that it is small.
        assert distance < sum(np.sqrt(one.duality_gap_ / model.alpha) for one in (alone, other))


def design_of(client, seed, timeout=120):
    X, y, qid = ranking_data(seed)
    return X, y, distribute(in_blocks(X, [100]), client=client, timeout=timeout).X.grouped(qid).as_design(1)


def test_a_worker_that_dies_in_a_product_is_replaced(processes):
    _X, y, design = design_of(processes, 40)
    before = design.tdot(y)
    lost = design.cluster.addresses[1]
    kill(processes, lost)
    assert np.array_equal(design.tdot(y), before)
    assert design.cluster.n_rebuilt == 1
    wait_for_successor(processes, lost, 2)


def test_a_worker_that_dies_once_its_rows_have_come_is_replaced(processes, monkeypatch):
    """The results of the tasks that filled it are gone too: waiting for them would be waiting for ever."""
    fill, killed = Cluster._fill, []

    def fill_and_kill(cluster, numbers):
        fill(cluster, numbers)
        if not killed:
            killed.append(cluster.addresses[0])
            kill(processes, killed[0])

    monkeypatch.setattr(Cluster, "_fill", fill_and_kill)
    X, _y, design = design_of(processes, 43)
    assert np.allclose(design.dot(np.ones(10)), X.sum(axis=1))
    wait_for_successor(processes, killed[0], 2)


def stop(client, address):
    """Stop a worker, and return its process once none of its threads goes on."""
    process = client.run(os.getpid)[address]
    os.kill(process, signal.SIGSTOP)
    end = time.monotonic() + 60
    while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end
        time.sleep(0.01)
    return process


def test_a_silent_worker_is_named(processes):
    _X, _y, design = design_of(processes, 41)
    design.cluster.timeout = 2.0  # only now: on a busy machine the rows themselves may take longer to come
    address = design.cluster.addresses[0]
    stopped = stop(processes, address)
    try:
        with pytest.raises(ClusterError, match=rf"worker {address} did not answer for 2 s.*Hint: look at it"):
            design.dot(np.ones(10))
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_a_slow_worker_is_waited_for(processes):
    X, _y, design = design_of(processes, 44)
    process = stop(processes, design.cluster.addresses[0])
    threading.Timer(1.5, os.kill, (process, signal.SIGCONT)).start()
    assert np.allclose(design.dot(np.ones(10)), X.sum(axis=1))
    assert design.cluster.n_rebuilt == 0


def test_rows_that_do_not_fit_into_workers_are_refused(processes):
    X = da.zeros((1 << 15, 2560), chunks=(1 << 11, 2560))
    data = distribute(X, client=processes)
    with pytest.raises(
        MemoryLimitError, match=r"0.31 GiB of rows, and may use 0.50 GiB.*Hint: use more workers"
    ):
        RankRLS().fit(data.X, np.arange(1 << 15))


@pytest.mark.parametrize("model", [RankRLSCV(cv=3, tol=1e-12), RankSVM(1e-2, tol=1e-6)])
def test_a_client_that_reaches_only_the_scheduler(processes, monkeypatch, model):
    X, y, qid = ranking_data(47)
    workers, connect = set(processes.nthreads()), processes.rpc.connect

    async def refuse(address, **options):
        assert address not in workers, "the client called a worker directly"
        return await connect(address, **options)

    monkeypatch.setattr(processes.rpc, "connect", refuse)
    data = distribute(in_blocks(X, [100]), y, qid, client=processes, timeout=60)
    there = clone(model).fit(data.X, data.y, qid=data.qid)
    here = clone(model).fit(X, y, qid=qid)
    assert np.allclose(here.coef_, there.coef_, rtol=0, atol=1e-3 * np.abs(here.coef_).max())


def use_up_memory():
    """Take more than the worker may: its nanny ends it."""
    taken = np.ones(1 << 26)
    while taken.all():
        time.sleep(0.01)


def test_workers_that_run_out_of_memory_or_come_later():
    """The nanny ends a worker at its limit; its rows go to one that came meanwhile, or to its successor."""
    with local_cluster(2) as client:
        _X, y, design = design_of(client, 46)
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
