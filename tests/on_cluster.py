"""Clusters of worker processes on this machine, and data cut into blocks for them."""

import itertools
import os
import signal
import time
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster


@contextmanager
def local_cluster(n_workers, memory_limit="512MiB"):
    """Start workers of one thread each; all of them have ended when the block ends.

    A `LocalCluster` that misses a worker some time after it was lost gives it up, also where it was lost a second time.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            host="127.0.0.1",
            memory_limit=memory_limit,
            silence_logs=60,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill(client, address):
    """End a worker by the signal that nobody can handle."""
    os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)


def wait_for_successor(client, address, n_workers, limit=60.0):
    """Return when a killed worker is gone, and its nanny has started another."""
    end = time.monotonic() + limit
    while address in client.nthreads() or len(client.nthreads()) < n_workers:
        assert time.monotonic() < end, f"{address} has no successor"
        time.sleep(0.05)


def in_blocks(X, cuts):
    """Return a Dask array of the blocks of X between cuts: arrays, or CSR matrices."""
    edges = [0, *cuts, X.shape[0]]
    parts = [X[low:high] for low, high in itertools.pairwise(edges)]
    meta = sp.csr_matrix((0, 0), dtype=X.dtype) if sp.issparse(X) else np.empty((0, 0), dtype=X.dtype)
    arrays = [da.from_delayed(dask.delayed(part), shape=part.shape, meta=meta) for part in parts]
    return da.concatenate(arrays)


def ranking_data(seed, *, sparse=False, dtype=np.float64, n_rows=240, n_columns=10, n_queries=24):
    """Return X, y with ties, and the ids of queries of different sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    if sparse:
        X *= rng.random(X.shape) < 0.4
    y = np.round(X @ rng.normal(size=n_columns) + rng.normal(size=n_rows))
    qid = np.sort(rng.integers(n_queries, size=n_rows))
    X = X.astype(dtype)
    return (sp.csr_matrix(X) if sparse else X), y, qid
