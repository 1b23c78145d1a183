#!/usr/bin/env python3
"""A product on a Dask cluster of processes on this machine, against the fused product on as many threads.

Workers read their own parts of text-like data (`rcv1like`) from files, so that nothing is scattered. Three bars: the
product with two worker processes of one thread takes at most 1.5 times that on two threads; what a round trip costs
beside the product is below 10 ms at 16 partitions; a worker holds at most 1.3 times its share of the data.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

import rcv1like
from bench_fused_product import equal_queries
from harness import interleave, print_table, write_json
from rankwise.data.queries import encode_queries
from rankwise.design import CsrDesign
from rankwise.distributed import distribute
from rankwise.distributed.cluster import Cluster
from rankwise.distributed.design import DaskDesign
from rankwise.distributed.shares import cut

QUERY = 100


def in_files(folder, X, n_parts):
    """Write X in parts, and return it as a Dask array of what is read from there."""
    size = X.shape[0] // n_parts
    meta, blocks = sp.csr_matrix((0, 0), dtype=X.dtype), []
    for at in range(n_parts):
        path = f"{folder}/{X.shape[0]}-{at}.npz"
        sp.save_npz(path, X[at * size : (at + 1) * size], compressed=False)
        block = dask.delayed(sp.load_npz)(path)
        blocks.append(da.from_delayed(block, shape=(size, X.shape[1]), meta=meta))
    return da.concatenate(blocks)


def design_on(client, X):
    """Load rows, one share per worker, in whole queries."""
    data = distribute(X, client=client, n_threads=1)
    queries = encode_queries(np.arange(X.shape[0]) // QUERY)
    shares = cut(data.X.survey.work, queries, len(client.nthreads()))
    return DaskDesign(Cluster(client, data.X.source, data.X.survey, shares, timeout=300, n_threads=1), 2)


def status(key):
    with open("/proc/self/status") as lines:  # noqa: PTH123
        return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def trim():
    import ctypes  # noqa: PLC0415
    import gc  # noqa: PLC0415

    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)


def memory_of_workers(client):
    client.run(trim)
    return client.run(status, "RssAnon")


def round_trips(design, repeats=30):
    """Return the median seconds of a product that computes hardly anything."""
    blocks = equal_queries(design.shape[0], QUERY)
    product, v = design.gram_product(blocks), np.ones(design.shape[1])
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        product(v)
        taken.append(time.perf_counter() - began)
    return float(np.median(taken)), float(np.min(taken))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    rows = arguments.rows - arguments.rows % (arguments.parts * QUERY)
    tables, facts = {}, {"rows": rows, "parts": arguments.parts}
    X = rcv1like.make(rows)[0]
    for n_workers in arguments.workers:
        options = {"dashboard_address": ":0", "host": "127.0.0.1", "memory_limit": "4GiB"}
        with (
            tempfile.TemporaryDirectory() as folder,
            LocalCluster(n_workers=n_workers, threads_per_worker=1, **options) as cluster,
            Client(cluster, direct_to_workers=True) as client,
        ):
            name = f"{n_workers} workers"
            tables[name], facts[name] = measure(client, folder, X, arguments.parts, arguments.repeats)
    write_json("dask", tables, **facts)


def processor_time(client, product, v, repeats):
    """Return what a product takes of processors: on the workers, and at the client with the scheduler."""
    before, own = client.run(time.process_time), time.process_time()
    for _ in range(repeats):
        product(v)
    own, after = time.process_time() - own, client.run(time.process_time)
    return sum(after[one] - before[one] for one in before) / repeats, own / repeats


def measure(client, folder, X, n_parts, repeats):
    rows, n_workers = X.shape[0], len(client.nthreads())
    tiny = design_on(client, in_files(folder, X[: n_parts * QUERY], n_parts))
    median, fastest = round_trips(tiny)
    print(
        f"\n{n_workers} workers, {n_parts} partitions: {median * 1e3:.1f} ms a round trip, at best {fastest * 1e3:.1f}"
    )
    del tiny
    before = memory_of_workers(client)
    began = time.perf_counter()
    design = design_on(client, in_files(folder, X, n_parts))
    loading = time.perf_counter() - began
    blocks = equal_queries(rows, QUERY)
    product = design.gram_product(blocks)
    after = memory_of_workers(client)
    share = design.nnz * 8 / n_workers
    held = max(after[address] - before[address] for address in before) / share
    print(
        f"{design.nnz / 1e6:.1f} M non-zeros loaded in {loading:.1f} s; a worker holds {held:.2f} times its share"
    )
    local = CsrDesign(X, 2)
    here = local.gram_product(blocks, relabel=True)
    v = np.random.default_rng(0).standard_normal(design.shape[1])
    V = np.random.default_rng(0).standard_normal((design.shape[1], 5))
    difference = np.abs(here(v) - product(v)).max() / np.abs(here(v)).max()
    timings = interleave(
        {
            "local, 2 threads": lambda: here(v),
            f"{n_workers} workers": lambda: product(v),
            "local, 2 threads, 5 vectors": lambda: here(V),
            f"{n_workers} workers, 5 vectors": lambda: product(V),
        },
        repeats,
    )
    print_table(f"X'LXv, {rows} rows; largest relative difference {difference:.0e}", timings, per=design.nnz)
    on_workers, at_client = processor_time(client, product, v, repeats)
    _, here_alone = processor_time(client, here, v, repeats)
    print(
        f"processor time: {here_alone * 1e3:.1f} ms here, {on_workers * 1e3:.1f} ms on workers and "
        f"{at_client * 1e3:.1f} ms at client and scheduler: {(on_workers + at_client) / here_alone:.2f} times"
    )
    facts = {
        "processor_seconds": {"here": here_alone, "workers": on_workers, "client": at_client},
        "round_trip": median,
        "fastest_round_trip": fastest,
        "times_its_share": held,
        "difference": difference,
    }
    return timings, facts


if __name__ == "__main__":
    main()
