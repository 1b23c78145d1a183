#!/usr/bin/env python3
"""RankSVM against the plain bundle method and the published one: data reads and seconds.

    python benchmarks/bench_rank_svm.py [--cases real,small-alpha,queries,published,gap,paper,squared] [--repeats 3]
                                        [--threads 1] [--rows 100000] [--seconds 120]

Contenders run in turn in every round, and stop at an absolute gap, as the paper's does. Writes
benchmarks/results/rank_svm_<case>.json, a file a case.

real         real-valued scores, alpha 1e-5, gap 1e-3: plain planes, planes with line search, smoothing
small-alpha  the same at alpha 1e-6
queries      140,000 dense rows × 136 in 2,000 queries, five grades, alpha 1e-5. Plain planes are stopped after
             `--seconds` with the gap they have: their time, and so the ratio, is then a lower bound
published    400,000 real-valued rows: plain planes with a red-black tree, the paper's method, against the default
gap          a gap of 1e-6 against one of 1e-3
paper        RankSVM().fit on 512,000 rows, everything included
squared      squared hinge at 100,000 and 400,000 rows, to a gap of 1e-3 and of 1e-6
"""

import argparse
import functools
import time

import numpy as np
from threadpoolctl import threadpool_limits

import rcv1like
from harness import Timing, interleave, print_table, write_json
from ranksvm_methods import CountedPairs, by_red_black_tree, label_ranks, make_design, our_hinge, our_pairs
from rankwise import RankSVM
from rankwise.losses import SquaredHingeLoss
from rankwise.objectives import HingeObjective, MeanLoss
from rankwise.solvers.bundle import minimise_by_planes
from rankwise.solvers.newton import minimise_by_newton, minimise_smoothed

# The paper's rule for stopping, for all alike.
planes = functools.partial(minimise_by_planes, is_absolute=True)
plain = functools.partial(planes, line_search=False)
smoothing = functools.partial(minimise_smoothed, is_absolute=True)
newton = functools.partial(minimise_by_newton, is_absolute=True)


@functools.cache
def real_rows(rows):
    X, y, _ = rcv1like.make(rows, "real")
    return X, y


def letor_like(rows=140_000, columns=136, queries=2000, seed=0):
    """Dense rows of correlated columns, five grades inside queries of 70 rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) @ (rng.normal(size=(columns, columns)) / np.sqrt(columns))
    signal = X @ rng.normal(size=columns) / np.sqrt(columns) + rng.normal(size=rows)
    y = np.digitize(signal, np.quantile(signal, [0.5, 0.75, 0.9, 0.97])).astype(float)
    return X.astype(np.float32), y, np.arange(rows) // (rows // queries)


class Case:
    def __init__(self, title, contenders, repeats):
        self.title, self.repeats = title, repeats
        self.solutions = {}
        self.contenders = {
            name: functools.partial(self._run, name, solve) for name, solve in contenders.items()
        }

    def _run(self, name, solve):
        self.solutions[name] = solve()

    def _once(self):
        """Time contenders that take minutes a single time, without a round to warm up."""
        taken = {}
        for name, call in self.contenders.items():
            start = time.perf_counter()
            call()
            taken[name] = time.perf_counter() - start
        reference = next(iter(taken.values()))
        return [Timing(name, own, own, *[reference / own] * 3) for name, own in taken.items()]

    def measure(self):
        timings = interleave(self.contenders, self.repeats) if self.repeats else self._once()
        print_table(self.title, timings)
        for name, s in self.solutions.items():
            print(
                f"  {name}: {s.n_iter} iterations, {s.n_reads} reads, gap {s.certificate:.1e}, {s.status.name}"
            )
        return timings, {
            name: {
                "reads": s.n_reads,
                "iterations": s.n_iter,
                "gap": float(s.certificate),
                "status": s.status.name,
            }
            for name, s in self.solutions.items()
        }


def stop_after(seconds):
    """Return a monitor that stops a solver."""
    end = time.perf_counter() + seconds
    return lambda *_: time.perf_counter() > end


def hinge_case(title, objective, alpha, *, repeats, tol=1e-3):
    solvers = {
        "plain planes": plain,
        "planes + line search": planes,
        "smoothing": smoothing,
    }
    contenders = {
        name: functools.partial(solve, objective, alpha, tol=tol) for name, solve in solvers.items()
    }
    return Case(title, contenders, repeats)


def real(options, alpha=1e-5):
    X, y = real_rows(options.rows)
    objective = our_hinge(make_design(X, options.threads), y)
    yield hinge_case(
        f"{options.rows} real-valued rows, alpha {alpha}, gap 1e-3", objective, alpha, repeats=options.repeats
    )


def small_alpha(options):
    yield from real(options, 1e-6)


def queries(options):
    X, y, qid = letor_like()
    objective = our_hinge(make_design(X, options.threads), y, qid)
    yield Case(
        "140,000 x 136 in 2,000 queries, alpha 1e-5, gap 1e-3",
        {
            "plain planes": lambda: plain(objective, 1e-5, monitor=stop_after(options.seconds)),
            "planes + line search": lambda: planes(objective, 1e-5),
            "smoothing": lambda: smoothing(objective, 1e-5),
        },
        repeats=0,
    )
    yield Case(
        "the same, ours again",
        {
            "smoothing": lambda: smoothing(objective, 1e-5),
            "planes + line search": lambda: planes(objective, 1e-5),
        },
        options.repeats,
    )


def published(options):
    rows = max(400_000, options.rows)
    X, y = real_rows(rows)
    design = make_design(X, options.threads)
    ours = our_hinge(design, y)
    theirs = HingeObjective(design, CountedPairs(label_ranks(y), by_red_black_tree))
    yield Case(
        f"{rows} real-valued rows, alpha 1e-5, gap 1e-3",
        {
            "the paper's: plain planes, red-black tree": lambda: plain(theirs, 1e-5, tol=1e-3),
            "planes + line search": lambda: planes(ours, 1e-5, tol=1e-3),
            "smoothing": lambda: smoothing(ours, 1e-5, tol=1e-3),
        },
        repeats=0,
    )


def gap(options):
    X, y = real_rows(options.rows)
    objective = our_hinge(make_design(X, options.threads), y)
    yield Case(
        f"{options.rows} real-valued rows, alpha 1e-5: the price of a gap",
        {
            "1e-6, smoothing": lambda: smoothing(objective, 1e-5, tol=1e-6),
            "1e-3, smoothing": lambda: smoothing(objective, 1e-5, tol=1e-3),
            "1e-6, planes + line search": lambda: planes(objective, 1e-5, tol=1e-6),
            "1e-3, planes + line search": lambda: planes(objective, 1e-5, tol=1e-3),
        },
        options.repeats,
    )


def squared(options):
    for rows in (100_000, 400_000):
        X, y = real_rows(rows)
        objective = MeanLoss(make_design(X, 1), our_pairs(y), SquaredHingeLoss())
        yield Case(
            f"{rows} real-valued rows, squared hinge, alpha 1e-5, one thread",
            {f"gap {tol}": functools.partial(newton, objective, 1e-5, tol=tol) for tol in (1e-3, 1e-6)},
            options.repeats,
        )


def paper(options):
    X, y = real_rows(512_000)
    start = time.perf_counter()
    model = RankSVM(1e-5, n_threads=options.threads).fit(X, y)
    seconds = time.perf_counter() - start
    print(
        f"\n512,000 rows: RankSVM(1e-5).fit took {seconds:.1f} s, {model.n_reads_} reads, solver {model.solver_}"
    )
    return {"seconds": seconds, "reads": model.n_reads_, "gap": float(model.duality_gap_)}


CASES = {
    "real": real,
    "small-alpha": small_alpha,
    "queries": queries,
    "published": published,
    "gap": gap,
    "squared": squared,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join([*CASES, "paper"]))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument(
        "--seconds", type=float, default=120, help="the most that plain planes may take on queries"
    )
    options = parser.parse_args()
    with threadpool_limits(1, user_api="blas"):
        for name in options.cases.split(","):
            tables, reads, facts = {}, {}, {}
            if name == "paper":
                facts["paper"] = paper(options)
            else:
                for case in CASES[name](options):
                    tables[case.title], reads[case.title] = case.measure()
            write_json(f"rank_svm_{name}", tables, reads=reads, threads=options.threads, **facts)


if __name__ == "__main__":
    main()
