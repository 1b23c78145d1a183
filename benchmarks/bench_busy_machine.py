"""Every estimator on a busy machine: what a fit takes beside its fair share.

A fit in one thread takes so many seconds of processor time on a quiet machine. Beside busy processes, a thread that
only computes gets one turn in so many; how many is measured by a plain loop before and after each fit, for the machine
may have other work too. Processor time times that is the fair share: with six busy processes on two processors,
(6 + 1) / 2 = 3.5 times the processor time. Caches that others use make the same fit take more processor time than on
the quiet machine. So the same fit held to one thread runs beside, under the same load: that is a fair share of what it
costs then. And what its processor time at that moment would have taken shows how much of the rest is waiting.

    python benchmarks/bench_busy_machine.py [--busy 6] [--rounds 5] [--against PYTHON]

`--against` runs the same under another interpreter, in which another version is installed, round by round in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

# Processor time of a measurement, in several fits if need be: shorter ones show where time slices happen to end.
LEAST_SECONDS = 0.3
# Ends with its parent, and in any case after twenty minutes.
SPIN = """
import os, sys, time
end = time.monotonic() + 1200
while os.getppid() == int(sys.argv[1]) and time.monotonic() < end:
    sum(range(100_000))
"""


@contextmanager
def busy_processes(number):
    """Run so many processes that only compute; they end with the block."""
    processes = []
    try:
        processes += [subprocess.Popen([sys.executable, "-c", SPIN, str(os.getpid())]) for _ in range(number)]
        time.sleep(2.0)  # they have started, and the scheduler has spread them
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def cases():
    """Return {name: fit}; only what older versions have as well."""
    import numpy as np  # noqa: PLC0415  the parent process imports nothing that has threads
    import scipy.sparse as sp  # noqa: PLC0415

    from rankwise import (  # noqa: PLC0415
        KernelRankRLS,
        KernelRankRLSCV,
        KernelRankSVM,
        RankRLS,
        RankRLSCV,
        RankSVM,
        RankSVMCV,
    )

    rng = np.random.default_rng(0)

    def labelled(X, n_rows, size):
        scores = X @ rng.normal(size=X.shape[1])
        noisy = scores / np.std(scores) + rng.normal(size=n_rows)
        return np.digitize(noisy, [-1.0, 0.5, 1.5]).astype(float), np.arange(n_rows) // size

    dense = rng.normal(size=(5000, 136))
    y, qid = labelled(dense, 5000, 50)
    sparse = sp.random(6000, 3000, density=0.02, format="csr", random_state=0)
    y_sparse, qid_sparse = labelled(sparse, 6000, 50)
    small = rng.normal(size=(400, 20))
    y_small, qid_small = labelled(small, 400, 20)
    wide = rng.normal(size=(1500, 900))
    y_wide, qid_wide = labelled(wide, 1500, 50)
    on_dense, on_sparse = (dense, y, qid), (sparse, y_sparse, qid_sparse)
    on_small, on_wide = (small, y_small, qid_small), (wide, y_wide, qid_wide)
    models = {
        "RankRLS direct, dense": (RankRLS(solver="direct"), on_dense),
        "RankRLS direct, 900 columns": (RankRLS(solver="direct"), on_wide),
        "RankRLS cg, dense": (RankRLS(solver="cg", tol=1e-10), on_dense),
        "RankRLS cg, sparse": (RankRLS(solver="cg"), on_sparse),
        "RankRLSCV, dense": (RankRLSCV(), on_dense),
        "RankRLSCV 5 folds, dense": (RankRLSCV(cv=5), on_dense),
        "RankRLSCV 5 folds, sparse": (RankRLSCV(cv=5), on_sparse),
        "RankSVM hinge, dense": (RankSVM(0.01), on_dense),
        "RankSVM hinge, sparse": (RankSVM(0.01), on_sparse),
        "RankSVM squared hinge, dense": (RankSVM(0.001, loss="squared_hinge"), on_dense),
        "RankSVM squared hinge, sparse": (RankSVM(0.001, loss="squared_hinge"), on_sparse),
        "RankSVMCV squared hinge, dense": (RankSVMCV([0.1, 1.0], cv=3, loss="squared_hinge"), on_dense),
        "KernelRankRLS": (KernelRankRLS(kernel="rbf"), on_small),
        "KernelRankRLS cg": (KernelRankRLS(kernel="rbf", solver="cg"), on_small),
        "KernelRankRLSCV": (KernelRankRLSCV(kernel="rbf"), on_small),
        "KernelRankRLS, 1,500 rows": (KernelRankRLS(kernel="rbf"), on_wide),
        "KernelRankSVM": (KernelRankSVM("rbf", alpha=0.01), on_small),
    }
    return {name: (lambda model=model, data=data: model.fit(*data)) for name, (model, data) in models.items()}


def serve(names):
    """Fit what each line of standard input names, and print wall and processor seconds and the price of a second."""
    import warnings  # noqa: PLC0415

    warnings.simplefilter("ignore")
    calls = cases()
    for call in (calls[name] for name in names):
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        call = calls[line.rstrip("\n")]
        before, times = price(), 0
        wall, processor = time.perf_counter(), time.process_time()
        while time.process_time() - processor < LEAST_SECONDS:
            call()
            times += 1
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print(json.dumps([wall / times, processor / times, (before + price()) / 2]), flush=True)


def price():
    """Return the wall time of a second of one thread's processor time, now."""
    wall, processor = time.perf_counter(), time.thread_time()
    while time.thread_time() - processor < 0.1:
        sum(range(1000))
    return (time.perf_counter() - wall) / (time.thread_time() - processor)


class Server:
    """A process that fits on request; it has been warmed up."""

    def __init__(self, python, names, **environment):
        self.process = subprocess.Popen(
            [python, __file__, "--serve", *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout.readline() == "ready\n"

    def fit(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.kill()
        self.process.wait()


def measure(pythons, names, n_busy, rounds):
    """Return {version: {name: facts}}."""
    one = {
        "RANKWISE_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    servers = {version: Server(python, names) for version, python in pythons.items()}
    alone = {version: Server(python, names, **one) for version, python in pythons.items()}
    facts = {version: {name: {} for name in names} for version in pythons}
    try:
        for name in names:
            quiet = _rounds(
                {
                    **{("threads", v): s for v, s in servers.items()},
                    **{("one", v): s for v, s in alone.items()},
                },
                name,
                rounds,
            )
            for version in pythons:
                facts[version][name]["processor"] = min(
                    processor for _, processor, _ in quiet["one", version]
                )
                facts[version][name]["quiet"] = statistics.median(
                    wall for wall, _, _ in quiet["threads", version]
                )
                facts[version][name]["quiet one thread"] = statistics.median(
                    w for w, _, _ in quiet["one", version]
                )
        with busy_processes(n_busy):
            for name in names:
                both = _rounds(
                    {**servers, **{("one", version): server for version, server in alone.items()}},
                    name,
                    rounds,
                )
                busy = {version: both[version] for version in pythons}
                for version in pythons:
                    own = facts[version][name]
                    own["beside one thread"] = statistics.median(
                        (wall / p) / (one_wall / one_p)
                        for (wall, _, p), (one_wall, _, one_p) in zip(
                            busy[version], both["one", version], strict=True
                        )
                    )
                    own["busy"] = statistics.median(wall for wall, _, _ in busy[version])
                    own["shares"] = sorted(wall / (own["processor"] * p) for wall, _, p in busy[version])
                    own["share"] = statistics.median(own["shares"])
                    own["waits"] = statistics.median(w / (processor * p) for w, processor, p in busy[version])
                    own["price"] = statistics.median(p for _, _, p in busy[version])
                    print_row(version, name, own)
    finally:
        for server in (*servers.values(), *alone.values()):
            server.close()
    return facts


def _rounds(servers, name, rounds):
    taken = {key: [] for key in servers}
    for _ in range(rounds):
        for key, server in servers.items():
            taken[key].append(server.fit(name))
    return taken


def print_row(version, name, own):
    print(
        f"{version:5}  {name:30}  processor {own['processor']:7.4f} s, quiet {own['quiet']:7.4f} s (one thread "
        f"{own['quiet one thread']:7.4f}), busy {own['busy']:8.4f} s: {own['share']:5.2f} fair shares "
        f"({own['shares'][0]:.2f} to {own['shares'][-1]:.2f}), {own['beside one thread']:.2f} of one thread's time "
        f"then, {own['waits']:.2f} of its own processor time, at {own['price']:.1f} s a processor second",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--busy", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--against", metavar="PYTHON", help="an interpreter with another version")
    parser.add_argument("--serve", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    from harness import RESULTS, environment  # noqa: PLC0415

    names = [name for name in cases() if options.only in name]
    pythons = {"this": sys.executable, **({"other": options.against} if options.against else {})}
    facts = measure(pythons, names, options.busy, options.rounds)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "busy_machine.json"
    path.write_text(
        json.dumps({"environment": environment(), "busy": options.busy, **facts}, indent=1) + "\n"
    )
    print(f"\nwritten: {path}")


if __name__ == "__main__":
    main()
