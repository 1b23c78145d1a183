#!/usr/bin/env python3
"""Metrics of one million rows in 10,000 ragged queries, against ranx and a loop over scikit-learn.

What each side is asked for favours the others: rankwise computes NDCG@10, MAP and the pairwise error from
plain arrays, encoding of the query ids included; ranx computes NDCG@10 and MAP (it has no pairwise error)
from its own Qrels and Run, whose construction is reported but not counted, after a warm-up that compiles it;
scikit-learn computes NDCG@10 alone. Rounds are interleaved; a ratio is taken inside a round. All count
queries without a relevant row as 0, as ranx does, and the figures must agree.

    python benchmarks/bench_metrics.py [--rows 1000000] [--queries 10000] [--rounds 5]
"""

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import ranx
from sklearn.metrics import ndcg_score

from rankwise.metrics import evaluate, get_metric, ndcg

RESULTS = Path(__file__).parent / "results" / "metrics.json"
BARS = {"ranx": 5.0, "scikit-learn": 50.0}
SKLEARN_QUERIES = 1000  # the loop is timed on that many queries and extrapolated by rows


def make(rows, queries):
    """Grades 0 to 4, scores that know a little, ids in blocks as log files have them."""
    rng = np.random.default_rng(0)
    sizes = rng.multinomial(rows - 2 * queries, rng.dirichlet(np.full(queries, 2.0))) + 2
    qid = np.repeat(np.arange(queries), sizes)
    y = rng.choice(5, size=rows, p=[0.55, 0.2, 0.13, 0.08, 0.04])
    return y, y + 2.0 * rng.normal(size=rows), qid


def as_ranx(y, scores, qid):
    starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
    ends = np.r_[starts[1:], qid.size]
    documents = [f"d{i}" for i in range(int((ends - starts).max()))]
    grades, predictions = {}, {}
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        key, names = f"q{qid[start]}", documents[: end - start]
        # ranx counts every row that is listed in Qrels with a grade of at least 1 as relevant
        grades[key] = dict(zip(names, y[start:end].tolist(), strict=True))
        predictions[key] = dict(zip(names, scores[start:end].tolist(), strict=True))
    return ranx.Qrels(grades), ranx.Run(predictions)


def sklearn_loop(y, scores, qid, n_queries):
    gains, total = 2.0**y - 1, 0.0
    ends = np.searchsorted(qid, np.arange(n_queries), side="right")
    start = 0
    for end in ends:
        total += ndcg_score(gains[None, start:end], scores[None, start:end], k=10)
        start = end
    return total / n_queries


def timed(work):
    start, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, time.perf_counter() - start, time.process_time() - cpu


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--queries", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    y, scores, qid = make(given.rows, given.queries)
    shuffled = np.random.default_rng(1).permutation(qid.size)
    mixed = y[shuffled], scores[shuffled], qid[shuffled]
    (qrels, run), build, _ = timed(lambda: as_ranx(y, scores, qid))
    part = min(SKLEARN_QUERIES, given.queries)
    scale = qid.size / np.searchsorted(qid, part)

    wanted = [get_metric("ndcg@10", empty="zero"), get_metric("map", empty="zero"), "pairwise_error"]
    contestants = {
        "rankwise": lambda: evaluate(y, scores, qid, metrics=wanted),
        "rankwise, rows shuffled": lambda: evaluate(*mixed, metrics=wanted),
        "ranx": lambda: ranx.evaluate(qrels, run, ["ndcg_burges@10", "map"]),
        "scikit-learn": lambda: {"ndcg@10": sklearn_loop(y, scores, qid, part)},
    }
    contestants["ranx"]()  # numba compiles
    values, seconds = {}, {name: [] for name in contestants}
    cpu_seconds = {name: [] for name in contestants}
    for _ in range(given.rounds):
        for name, work in contestants.items():
            factor = scale if name == "scikit-learn" else 1.0
            values[name], wall, cpu = timed(work)
            seconds[name].append(wall * factor)
            cpu_seconds[name].append(cpu * factor)

    ours = values["rankwise"]
    assert np.isclose(values["ranx"]["map"], ours["map"]), values
    assert np.isclose(values["ranx"]["ndcg_burges@10"], ours["ndcg@10"]), values
    timed_part = qid < part
    same_part = ndcg(y[timed_part], scores[timed_part], qid[timed_part], k=10, empty="zero")
    assert np.isclose(values["scikit-learn"]["ndcg@10"], same_part), values
    report = {
        "rows": given.rows,
        "queries": given.queries,
        "rounds": given.rounds,
        "cpus": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "ranx": version("ranx"),
        "scikit-learn": version("scikit-learn"),
        "ranx_build_seconds": build,
        "scikit-learn_extrapolated_from_queries": part,
        "contestants": {},
    }
    print(f"{given.rows:,} rows in {given.queries:,} queries; medians of {given.rounds} interleaved rounds")
    print(f"{'':26}{'wall s':>9}{'CPU s':>9}{'times rankwise':>24}")
    met = True
    for name, walls in seconds.items():
        ratios = np.array(walls) / np.array(seconds["rankwise"])
        low, median, high = np.quantile(ratios, [0, 0.5, 1])
        wall, cpu = float(np.median(walls)), float(np.median(cpu_seconds[name]))
        print(f"{name:26}{wall:9.3f}{cpu:9.3f}{median:12.1f} ({low:.1f} - {high:.1f})")
        bar = BARS.get(name)
        met &= bar is None or median >= bar
        report["contestants"][name] = {
            "values": {key: float(value) for key, value in values[name].items()},
            "wall": walls,
            "cpu": cpu_seconds[name],
            "ratio": [low, median, high],
            "bar": bar,
        }
    print("rankwise: NDCG@10, MAP and pairwise error, with encoding of ids. ranx: NDCG@10 and MAP only,")
    print(f"building its Qrels and Run ({build:.1f} s) not counted. scikit-learn: NDCG@10 only,")
    print(f"timed on {part:,} queries and extrapolated by rows.")
    print(
        f"bars (ranx {BARS['ranx']:g}, scikit-learn {BARS['scikit-learn']:g}): {'met' if met else 'MISSED'}"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
