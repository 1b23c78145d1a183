#!/usr/bin/env python3
"""RankRLSCV on a store that is several times larger than the memory it may use.

Makes a store of random text-like rows (Zipf columns, queries of 100 rows), then, in a process of its own under a memory
control group that counts mapped pages and page cache alike:

1. reads the store's arrays from front to back with plain large reads: the speed that the disk allows;
2. fits RankRLSCV for a few iterations, and counts how often it read the matrix.

Reported is how many bytes a second the fit went through, beside the plain reads. Without the right to make a control
group, the limit is left out and the peak of anonymous memory is reported instead. `--check` compares the coefficients
with those of a fit in memory on a store that fits.

    python benchmarks/bench_out_of_core.py [--gigabytes 8] [--limit 2] [--iterations 6] [--folder .]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from harness import RESULTS, environment
from rankwise import RankRLSCV
from rankwise.data import open_store, write_store
from rankwise.design import as_design
from rankwise.estimators import linear

COLUMNS = 47_152
LENGTH = 300  # non-zeros a row
GROUP = Path("/sys/fs/cgroup/memory/rankwise-bench")


def blocks(n_rows, step=20_000):
    """Rows with Zipf columns, whose values differ from block to block; labels depend on a hidden vector."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=COLUMNS)
    frequency = 1.0 / (np.arange(COLUMNS) + 60.0) ** 1.05
    cumulated = np.cumsum(frequency / frequency.sum())
    columns = np.searchsorted(cumulated, rng.random((step, LENGTH + 60))).clip(max=COLUMNS - 1)
    columns.sort(axis=1)
    keep = np.ones(columns.shape, dtype=bool)
    keep[:, 1:] = columns[:, 1:] != columns[:, :-1]
    start = np.concatenate(([0], np.cumsum(keep.sum(axis=1))))
    values = rng.random(start[-1], dtype=np.float32)
    X = sp.csr_matrix((values, columns[keep].astype(np.int32), start), shape=(step, COLUMNS))
    for number, first in enumerate(range(0, n_rows, step)):
        rows = min(step, n_rows - first)
        X.data = np.roll(values, number)
        scores = X @ truth
        y = np.clip(np.round((scores - scores.mean()) / scores.std() + rng.normal(size=step)), -2, 2) + 2
        yield X[:rows], y[:rows], np.arange(first, first + rows) // 100


def read_plainly(folder):
    """Read the arrays of the matrix with large reads, on two threads as the fit has them; return bytes and seconds."""
    names = ("values.bin", "columns.bin")
    start = time.perf_counter()
    readers = [
        subprocess.Popen(
            ["dd", f"if={Path(folder, name)}", "of=/dev/null", "bs=8M"], stderr=subprocess.DEVNULL
        )
        for name in names
    ]
    for reader in readers:
        reader.wait()
    return sum(Path(folder, name).stat().st_size for name in names), time.perf_counter() - start


def drop_from_cache(folder):
    """Make the system forget what it holds of the store: pages that others read would not count against the limit."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def limited_run(folder, iterations):
    """What runs under the limit; prints what it measured."""
    size, seconds = read_plainly(folder)
    report = {"matrix_gb": size / 1e9, "read_gb_per_second": size / seconds / 1e9}
    store = open_store(folder, verify=False)
    designs = []

    def counted(X, n_threads=None):
        designs.append(as_design(X, n_threads))
        return designs[-1]

    linear.as_design = counted  # the design counts how often it is read
    start = time.perf_counter()
    model = RankRLSCV(max_iter=iterations, patience=iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is meant to stop early
        model.fit(store.X, store.y, qid=store.qid)
    seconds = time.perf_counter() - start
    size, again = read_plainly(folder)
    report.update(
        fit_seconds=seconds,
        reads=designs[0].reads,
        fit_gb_per_second=designs[0].reads * size / seconds / 1e9,
        read_again_gb_per_second=size / again / 1e9,
        peak_anonymous_mb=anonymous_peak(),
        rows=store.header.rows,
        major_faults=resource.getrusage(resource.RUSAGE_SELF).ru_majflt,
    )
    print(json.dumps(report))


def anonymous_peak():
    with Path("/proc/self/status").open() as lines:
        found = dict(line.split(":", 1) for line in lines)
    return float(found["RssAnon"].split()[0]) / 1024


def under_limit(command, limit):
    """Run a command in a control group of its own, where that can be made; return its output and the group's peak."""
    try:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(limit))
    except OSError as error:
        print(f"no memory control group ({error}); running without a limit", file=sys.stderr)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout, None
    try:
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            preexec_fn=lambda: (GROUP / "cgroup.procs").write_text(str(os.getpid())),
        )
        return done.stdout, int((GROUP / "memory.max_usage_in_bytes").read_text())
    finally:
        GROUP.rmdir()


def check(folder):
    """Compare the coefficients from disk with those from memory on a store that fits."""
    write_store(Path(folder, "small"), blocks(20_000), dtype=np.float32)
    store = open_store(Path(folder, "small"))
    on_disk = RankRLSCV().fit(store.X, store.y, qid=store.qid)
    in_memory = RankRLSCV().fit(sp.csr_matrix(store.X, copy=True), store.y, qid=store.qid)
    return float(np.abs(on_disk.coef_ - in_memory.coef_).max() / np.abs(in_memory.coef_).max())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=8)
    parser.add_argument("--limit", type=float, default=2, help="gigabytes that may be used")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--folder", default=None, help="where to put the store; it is kept and used again")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        limited_run(arguments.folder, arguments.iterations)
        return
    with tempfile.TemporaryDirectory() as temporary:
        store = Path(arguments.folder or temporary, "large")
        if not store.exists():
            n_rows = int(arguments.gigabytes * 1e9 / (8 * LENGTH)) // 100 * 100
            start = time.perf_counter()
            write_store(store, blocks(n_rows), dtype=np.float32)
            print(f"written in {time.perf_counter() - start:.0f} s")
        drop_from_cache(store)
        command = [
            sys.executable,
            __file__,
            "--run",
            "--folder",
            str(store),
            "--iterations",
            str(arguments.iterations),
        ]
        said, peak = under_limit(command, int(arguments.limit * 1e9))
        report = json.loads(said)
        report.update(limit_gb=arguments.limit, group_peak_gb=None if peak is None else peak / 1e9)
        report["difference_from_memory"] = check(temporary)
    best = max(report["read_gb_per_second"], report["read_again_gb_per_second"])
    report["share_of_plain_reads"] = report["fit_gb_per_second"] / best
    for name, value in report.items():
        print(f"{name:28} {value:.4g}" if isinstance(value, (int, float)) else f"{name:28} {value}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "out_of_core.json").write_text(json.dumps({**report, "environment": environment()}, indent=1))


if __name__ == "__main__":
    main()
