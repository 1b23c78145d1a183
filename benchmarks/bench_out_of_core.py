#!/usr/bin/env python3
"""RankRLSCV on a store that is several times larger than the memory it may use.

Makes a store of random text-like rows (Zipf columns, queries of 100 rows). Then, in a process of its own under a memory
control group that counts mapped pages and page cache alike, in rounds:

1. reads the store's arrays from front to back and does nothing with them, with plain large reads and with reads past
   the page cache: the speed that the disk allows;
2. fits RankRLSCV for a few iterations, counts how often it read the matrix, and watches its anonymous memory;
3. reads both ways once more.

Reported is how many bytes per second a fit went through, as a share of the fastest of the reads beside it.
A smaller store of which a fit in memory is possible too is then fitted under a third of its size, and the coefficients
are compared. Where no control group can be made, the limit is left out, and the peak of anonymous memory
is what counts.

    python benchmarks/bench_out_of_core.py [--gigabytes 8] [--limit 2] [--iterations 6] [--rounds 3] [--folder .]
"""

import argparse
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from harness import RESULTS, environment
from memory_group import AnonymousPeak, run_limited
from rankwise import RankRLSCV
from rankwise.data import open_store, save_store
from rankwise.design import as_design
from rankwise.estimators import linear

COLUMNS = 47_152
LENGTH = 300  # non-zeros a row


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


def rows_of(gigabytes):
    return int(gigabytes * 1e9 / (8 * LENGTH)) // 100 * 100


def arrays_of(folder):
    return [Path(folder, name) for name in ("data.npy", "indices.npy")]


def read_plainly(folder):
    """Read the arrays of the matrix with large reads, a process each; return bytes per second."""
    paths = arrays_of(folder)
    start = time.perf_counter()
    readers = [
        subprocess.Popen(["dd", f"if={path}", "of=/dev/null", "bs=8M"], stderr=subprocess.DEVNULL)
        for path in paths
    ]
    for reader in readers:
        reader.wait()
    return sum(path.stat().st_size for path in paths) / (time.perf_counter() - start)


def read_directly(folder):
    """Read the arrays past the page cache into huge pages, a thread each; return bytes per second."""
    paths = arrays_of(folder)
    start = time.perf_counter()
    with ThreadPoolExecutor(len(paths)) as executor:
        sizes = list(executor.map(read_file_directly, paths))
    return sum(sizes) / (time.perf_counter() - start)


def read_file_directly(path, at_once=1 << 22, huge_page=1 << 21):
    size = path.stat().st_size
    with mmap.mmap(-1, at_once + huge_page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as room:
        room.madvise(mmap.MADV_HUGEPAGE)
        first = -np.frombuffer(room, dtype=np.uint8).ctypes.data % huge_page
        with memoryview(room)[first : first + at_once] as buffer:
            file = os.open(path, os.O_RDONLY | os.O_DIRECT)
            for at in range(0, size, at_once):
                os.preadv(file, [buffer], at)
            os.close(file)
    return size


def read_alone(folder):
    """Return the speed of both ways of reading."""
    return [read_plainly(folder), read_directly(folder)]


def drop_from_cache(folder):
    """Make the system forget what it holds of the store: pages that others read would not count against the limit."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def counted_fit(store, **options):
    """Fit; return the model, how often the matrix was read, the seconds, and the peak of anonymous memory."""
    designs = []

    def counted(X, n_threads=None):
        designs.append(as_design(X, n_threads))
        return designs[-1]

    linear.as_design = counted  # the design counts how often it is read
    start = time.perf_counter()
    with warnings.catch_warnings(), AnonymousPeak() as memory:
        warnings.simplefilter("ignore")  # it is meant to stop early
        model = RankRLSCV(**options).fit(store.X, store.y, qid=store.qid)
    return model, designs[0].reads, time.perf_counter() - start, memory


def speed_run(folder, iterations, rounds):
    """What runs under the limit; prints what it measured."""
    store = open_store(folder)
    size = store.X.data.nbytes + store.X.indices.nbytes
    report = {"matrix_gb": size / 1e9, "rows": store.X.shape[0], "rounds": []}
    before = read_alone(folder)
    for _ in range(rounds):
        _, reads, seconds, memory = counted_fit(store, max_iter=iterations, patience=iterations)
        after = read_alone(folder)
        speed = reads * size / seconds
        report["rounds"].append(
            {
                "fit_gb_per_second": speed / 1e9,
                "plain_gb_per_second": [before[0] / 1e9, after[0] / 1e9],
                "direct_gb_per_second": [before[1] / 1e9, after[1] / 1e9],
                "share": speed / max(before + after),
                "reads": reads,
                "peak_anonymous_mb": memory.most / 1e6,
                "anonymous_mb_before": memory.before / 1e6,
            }
        )
        before = after
    print(json.dumps(report))


def coefficient_run(folder, iterations):
    """Fit, and keep the coefficients."""
    model, reads, _, memory = counted_fit(open_store(folder), max_iter=iterations, patience=iterations)
    np.save(Path(folder).with_suffix(".npy"), model.coef_)
    print(json.dumps({"reads": reads, "peak_anonymous_mb": memory.most / 1e6}))


def limited(kind, folder, limit, iterations, rounds=1):
    """Run this script on a store under a limit; return its report."""
    drop_from_cache(folder)
    command = [sys.executable, __file__, "--run", kind, "--folder", str(folder)]
    command += ["--iterations", str(iterations), "--rounds", str(rounds)]
    said, peak = run_limited(command, int(limit))
    return {
        **json.loads(said),
        "limit_gb": limit / 1e9,
        "group_peak_gb": None if peak is None else peak / 1e9,
    }


def compare_coefficients(folder, gigabytes, iterations):
    """Fit from disk under a third of the store's size, and in memory; return the largest relative difference."""
    path = Path(folder, "small")
    save_store(blocks(rows_of(gigabytes)), path, dtype=np.float32)
    store = open_store(path)
    report = limited("coefficients", path, (store.X.data.nbytes + store.X.indices.nbytes) / 3, iterations)
    store.X = sp.csr_matrix(store.X, copy=True)
    in_memory, *_ = counted_fit(store, max_iter=iterations, patience=iterations)
    on_disk = np.load(path.with_suffix(".npy"))
    difference = float(np.abs(on_disk - in_memory.coef_).max() / np.abs(in_memory.coef_).max())
    return {**report, "rows": store.X.shape[0], "difference_from_memory": difference}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=8)
    parser.add_argument("--limit", type=float, default=2, help="gigabytes that may be used")
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compared", type=float, default=1.5, help="gigabytes that are fitted in memory too")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where to put the store; it is kept and used again"
    )
    parser.add_argument("--run", choices=["speed", "coefficients"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run == "speed":
        speed_run(arguments.folder, arguments.iterations, arguments.rounds)
        return
    if arguments.run == "coefficients":
        coefficient_run(arguments.folder, arguments.iterations)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        store = (arguments.folder or Path(temporary)) / "large"
        if not store.exists():
            start = time.perf_counter()
            save_store(blocks(rows_of(arguments.gigabytes)), store, dtype=np.float32)
            print(f"written in {time.perf_counter() - start:.0f} s")
        iterations = arguments.iterations
        speed = limited("speed", store, arguments.limit * 1e9, iterations, arguments.rounds)
        compared = compare_coefficients(temporary, arguments.compared, iterations)
    shares = sorted(one["share"] for one in speed["rounds"])
    speed["share_of_reads_alone"] = statistics.median(shares)
    print(f"{speed['matrix_gb']:.1f} GB, {speed['rows']} rows; limit {speed['limit_gb']:.1f} GB")
    for one in speed["rounds"]:
        plain, direct = (
            " and ".join(f"{rate:.2f}" for rate in one[f"{way}_gb_per_second"]) for way in ("plain", "direct")
        )
        print(
            f"  {one['reads']} reads at {one['fit_gb_per_second']:.2f} GB/s; alone, plain reads {plain} and direct "
            f"ones {direct}: share {one['share']:.2f}; anonymous memory {one['peak_anonymous_mb']:.0f} MB at its peak, "
            f"{one['anonymous_mb_before']:.0f} before"
        )
    print(f"share {shares[0]:.2f} to {shares[-1]:.2f}, median {speed['share_of_reads_alone']:.2f} (bar 0.5)")
    print(
        f"difference from memory at {compared['rows']} rows: {compared['difference_from_memory']:.1e} (bar 1e-8)"
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "out_of_core.json").write_text(
        json.dumps({"speed": speed, "compared": compared, "environment": environment()}, indent=1)
    )


if __name__ == "__main__":
    main()
