#!/usr/bin/env python3
"""RankSVM on a cluster: pairs counted on the workers, against scores that come to the client, which counts them.

What the client sends and receives, and what its thread takes, per row and iteration, of the same fit both ways. Both
are counted, not timed: a busy machine changes nothing of the bytes, and little of the processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from unittest import mock

import numpy as np
from distributed import Client, LocalCluster

import rcv1like
from bench_dask import QUERY, in_files
from harness import write_json
from rankwise import RankSVM
from rankwise.distributed import distribute
from rankwise.distributed.connections import Connection
from rankwise.distributed.design import DaskDesign


class Counted:
    """Bytes over all connections of this process."""

    def __init__(self):
        self.n_bytes = 0

    def watch(self):
        send, answer = Connection.ask, Connection.answer

        def sent(connection, method, args, may_wait):
            self.n_bytes += size_of(args)
            return send(connection, method, args, may_wait)

        def received(connection, call, patience):
            found = answer(connection, call, patience)
            self.n_bytes += size_of(found)
            return found

        return mock.patch.multiple(Connection, ask=sent, answer=received)


def size_of(message):
    """Return the bytes of all arrays in a message."""
    if isinstance(message, np.ndarray):
        return message.nbytes
    if isinstance(message, (list, tuple)):
        return sum(size_of(one) for one in message)
    return size_of(list(vars(message).values())) if hasattr(message, "__dict__") else 0


def fitted(model, data, counted):
    """Fit; return the model, and the bytes and seconds of the client, loading included."""
    n_bytes, began = counted.n_bytes, time.thread_time()
    model.fit(data.X, data.y, qid=data.qid)
    return model, counted.n_bytes - n_bytes, time.thread_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--columns", type=int, default=500, help="of 47,152; so few that rows decide")
    arguments = parser.parse_args()
    rows = arguments.rows - arguments.rows % (16 * QUERY)
    X, y = rcv1like.make(rows)[:2]
    X = X[:, : arguments.columns].tocsr()
    qid = np.arange(rows) // QUERY
    options = {"dashboard_address": ":0", "host": "127.0.0.1", "memory_limit": "4GiB", "silence_logs": 60}
    counted, facts = Counted(), {"rows": rows}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
        counted.watch(),
    ):
        data = distribute(in_files(folder, X, 16), y, qid, client=client, n_threads=1)
        for loss in ("hinge", "squared_hinge"):
            for way in ("workers", "client"):
                found = []
                # Two fits, of which one goes on for longer: what they have in common is told once.
                for tol in (1e-1, 1e-6):
                    counting = DaskDesign.counting if way == "workers" else lambda *_: None
                    with mock.patch.object(DaskDesign, "counting", counting):
                        found.append(fitted(RankSVM(1e-4, loss=loss, tol=tol), data, counted))
                (few, few_bytes, few_seconds), (many, n_bytes, seconds) = found
                n_iter = many.n_iter_ - few.n_iter_
                per_row = (n_bytes - few_bytes) / n_iter / rows
                taken = (seconds - few_seconds) / n_iter / rows * 1e9
                facts[f"{loss}, {way}"] = {
                    "bytes per row and iteration": per_row,
                    "nanoseconds of the client per row and iteration": taken,
                    "bytes to begin with, per row": few_bytes / rows,
                    "iterations": many.n_iter_,
                    "duality gap": many.duality_gap_,
                }
                print(
                    f"{loss}, counted on the {way}: {per_row:.1f} bytes and {taken:.0f} ns of the client per row and "
                    f"iteration, {n_iter} of them; gap {many.duality_gap_:.1e}; "
                    f"{(n_bytes - few_bytes) / n_iter / X.shape[1] / 8:.1f} vectors of the columns"
                )
    write_json("counting", {}, **facts)


if __name__ == "__main__":
    main()
