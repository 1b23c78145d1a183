"""How long a product on a cluster takes, and what it needs: a model, its costs measured here, and how far it is off.

    python benchmarks/cluster_sizing.py                 # costs, checks against other runs, and the table
    python benchmarks/cluster_sizing.py --only table    # from the costs in the source
    python benchmarks/cluster_sizing.py --only check

The model. A client sends a vector of n columns to W workers and adds up what comes back: 16 n bytes with each. That
takes it `message + 16 n byte` per worker, its network card 16 n / bandwidth per worker, the network twice its latency,
and the slowest worker `call + nonzero · (its non-zeros) / threads`. None of them is taken to overlap: connections share
the card, so that most vectors arrive when the last one does.

Costs are fitted to processor time, with 1, 2 and 4 worker processes and three lengths of vectors. The checks are other
runs: how much longer products take through a process that delays every message and limits the bandwidth than through
the same process without either (`slow_network.py`), in the same round, and how much longer they should.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from unittest import mock

import numpy as np
from distributed import Client, LocalCluster

import rcv1like
from bench_dask import QUERY, design_on, in_files
from bench_fused_product import equal_queries
from slow_network import SlowNetwork


@dataclass(frozen=True)
class Costs:
    """Seconds: of the client per worker and per byte; of a worker per product and, on one thread, per non-zero."""

    # Fitted on two cores that nothing else used.
    message: float = 1.4e-4
    byte: float = 2e-10
    call: float = 1.6e-3
    nonzero: float = 1.7e-9


@dataclass(frozen=True)
class Network:
    """Seconds from one end to the other, and bytes a second of the client, each way."""

    latency: float = 1e-4
    bandwidth: float = 1.25e9  # 10 Gbit/s


def messages(costs, network, n_columns, workers, vectors=1):
    """Return the seconds of a product in which vectors travel."""
    n_bytes = 16 * n_columns * vectors
    each = costs.message + n_bytes * costs.byte + n_bytes / network.bandwidth
    return 2 * network.latency + workers * each


def product(costs, network, nnz, n_columns, workers, threads, vectors=1):
    """Return the seconds of a product; several vectors share the reading of the rows."""
    multiplying = costs.call + costs.nonzero * nnz / (workers * threads) * vectors**SEVERAL
    return multiplying + messages(costs, network, n_columns, workers, vectors)


def in_tree(costs, network, nnz, n_columns, workers, threads, fan=8):
    """Return the seconds of a product that is told and added up in a tree of workers: not built."""
    hops, left = 0.0, workers
    while left > 1:
        hops += messages(costs, network, n_columns, min(fan, left))
        left = -(-left // fan)
    return costs.call + costs.nonzero * nnz / (workers * threads) + hops


CASES = [
    (10**9, 50_000, 10),
    (10**9, 50_000, 100),
    (10**11, 50_000, 100),
    (10**11, 50_000, 1000),
    (10**11, 10**6, 100),
]
# Products of a fit, and vectors of each: what they take on text at the usual tolerances.
FITS = {"RankRLS": (70, 1), "RankRLSCV, 5 folds": (100, 6)}
ROW = 70  # non-zeros
SEVERAL = 0.86  # five vectors at a time take four times as long as one
# Latencies and bandwidths of the checks: from those of a continent to such that a busy machine hides nothing.
SLOW = [(5e-2, 1e12), (5e-1, 1e12), (0.0, 2e7), (0.0, 2e6), (2e-1, 4e6)]


def worker_bytes(nnz, n_columns, workers):
    """Return what a worker holds of float32 rows, and of 28 bytes per row beside them."""
    return nnz / workers * (6 if n_columns <= 1 << 16 else 8) + 28 * nnz / ROW / workers


def print_table(costs, network, threads=8):
    """Print what the model says of clusters that are not here."""
    print(f"{threads} threads per worker, {network}, {costs}")
    heads = ["non-zeros", "columns", "workers", "product", "in a tree", "memory per worker", *FITS]
    print(f"| {' | '.join(heads)} |\n{'| --- ' * len(heads)}|")
    for nnz, n_columns, workers in CASES:
        size = (nnz, n_columns, workers, threads)
        fits = [f"{n * product(costs, network, *size, k):.0f} s" for n, k in FITS.values()]
        cells = [f"10^{np.log10(nnz):.0f}", f"{n_columns:,}", f"{workers:,}"]
        cells += [f"{product(costs, network, *size):.2f} s", f"{in_tree(costs, network, *size):.2f} s"]
        print(f"| {' | '.join([*cells, f'{worker_bytes(nnz, n_columns, workers) / 1e9:.2g} GB', *fits])} |")
    for nnz in (10**9, 10**11):
        counts = np.arange(1, 3001)
        flat = [product(costs, network, nnz, 50_000, w, threads) for w in counts]
        tree = [in_tree(costs, network, nnz, 50_000, w, threads) for w in counts]
        best = int(counts[int(np.argmin(flat))])
        pays = int(counts[np.flatnonzero(np.array(tree) < 0.8 * np.array(flat))[0]])
        print(
            f"{nnz:.0e} non-zeros in 50,000 columns: fastest with {best} workers; a tree gains a fifth from {pays} on"
        )


def cluster_of(workers):
    """Start worker processes of one thread."""
    options = {"dashboard_address": ":0", "host": "127.0.0.1", "memory_limit": "2GiB", "silence_logs": 60}
    return LocalCluster(n_workers=workers, threads_per_worker=1, **options)


def small(client, folder, workers, n_columns):
    """Return the product of a few rows on every worker, and a vector."""
    X = rcv1like.make(QUERY * workers)[0]
    design = design_on(client, in_files(folder, X[:, :n_columns].tocsr(), workers))
    return design.gram_product(equal_queries(design.shape[0], QUERY)), np.ones(n_columns)


def measured_costs(repeats, nnz_rows):
    """Return the costs of messages and of non-zeros, by processor time."""
    rows, seconds = [], []
    for workers in (1, 2, 4):
        with (
            tempfile.TemporaryDirectory() as folder,
            cluster_of(workers) as cluster,
            Client(cluster) as client,
        ):
            for n_columns in (2_000, 20_000, 47_152):
                multiply, v = small(client, folder, workers, n_columns)
                multiply(v)
                began = time.thread_time()
                for _ in range(repeats):
                    multiply(v)
                taken = (time.thread_time() - began) / repeats
                print(f"{workers} workers, {n_columns:,} columns: {taken * 1e3:.2f} ms of the client")
                rows.append([workers, workers * 16 * n_columns])
                seconds.append(taken)
            if workers == 2:
                call, nonzero = worker_costs(client, folder, repeats, nnz_rows)
    message, byte = np.linalg.lstsq(np.array(rows, dtype=float), np.array(seconds), rcond=None)[0]
    off = np.array(rows) @ (message, byte) / seconds
    print(
        f"fitted: {message * 1e6:.0f} us and {byte * 1e9:.2f} ns a byte; "
        f"off by {off.min():.2f} to {off.max():.2f} times"
    )
    return Costs(max(float(message), 1e-6), max(float(byte), 1e-11), call, nonzero)


def worker_costs(client, folder, repeats, n_rows):
    """Return what a product takes of a worker whatever its rows are, and per non-zero."""
    taken, sizes = [], []
    for rows in (2 * QUERY, n_rows):
        X = rcv1like.make(rows)[0]
        multiply = design_on(client, in_files(folder, X, 2)).gram_product(equal_queries(rows, QUERY))
        v = np.ones(X.shape[1])
        multiply(v)
        before = client.run(time.process_time)
        for _ in range(repeats):
            multiply(v)
        after = client.run(time.process_time)
        taken.append(float(np.mean([after[one] - before[one] for one in before])) / repeats)
        sizes.append(X.nnz / 2)
    nonzero = (taken[1] - taken[0]) / (sizes[1] - sizes[0])
    print(f"a worker: {taken[0] * 1e3:.2f} ms a product, and {nonzero * 1e9:.2f} ns a non-zero")
    return taken[0], nonzero


def through(slow, client, folder, workers, n_columns):
    """Return a product whose vectors pass a slow network, and a vector."""
    with mock.patch("rankwise.distributed.connections.socket.create_connection", slow.connect):
        return small(client, folder, workers, n_columns)


def check(repeats, workers=4, n_columns=47_152):
    """Compare what slow networks add to products with what the model says they add."""
    heads = ["latency", "bandwidth", "longer, measured (quartiles)", "predicted", "ratio"]
    print(f"\n| {' | '.join(heads)} |\n{'| --- ' * len(heads)}|")
    free = Costs(0.0, 0.0, 0.0, 0.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster_of(workers) as cluster,
        Client(cluster) as client,
        SlowNetwork(0.0, 1e12) as fast,
    ):
        # By the same way: what the process in between takes itself is no property of a network.
        straight, v = through(fast, client, folder, workers, n_columns)
        for latency, bandwidth in SLOW:
            with SlowNetwork(latency, bandwidth) as slow:
                delayed, _ = through(slow, client, folder, workers, n_columns)
                longer = []
                for _ in range(repeats):
                    times = [time.perf_counter()]
                    for multiply in (straight, delayed):
                        multiply(v)
                        times.append(time.perf_counter())
                    longer.append(times[2] - 2 * times[1] + times[0])
                del delayed, multiply
            low, median, high = np.quantile(longer, (0.25, 0.5, 0.75)) * 1e3
            told = messages(free, Network(latency, bandwidth), n_columns, workers) * 1e3
            print(
                f"| {latency * 1e3:.0f} ms | {bandwidth / 1e6:,.0f} MB/s | {median:.0f} ms ({low:.0f} to {high:.0f}) | "
                f"{told:.0f} ms | {median / told:.2f} |"
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=["table", "check"])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    costs = Costs()
    if arguments.only is None:
        costs = measured_costs(2 * arguments.repeats, arguments.rows)
    if arguments.only != "table":
        check(arguments.repeats)
    print_table(costs, Network())


if __name__ == "__main__":
    main()
