#!/usr/bin/env python3
"""The experiments of the 2007 and 2009 RankRLS papers on what can be had, each figure beside the published one.

    RANKWISE_DATA=... python benchmarks/papers/preference_graphs.py [--only figure2 ohsumed ...]

Parameters come from the grid 2^-15, ..., 2^15 as in the papers; significance is Wilcoxon's signed-rank test at 0.05.
Each experiment's module says where its data differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from document_retrieval import disagreement, retrieval
from irrelevant_pairs import figure_2
from joke_ratings import jokes
from parse_candidates import parses
from topic_classes import topics
from training_time import training_times

import data_sets
from harness import write_json

EXPERIMENTS = {
    "figure2": figure_2,
    "ohsumed": retrieval,
    "disagreement": disagreement,
    "parses": parses,
    "reuters": topics,
    "jester": jokes,
    "times": training_times,
}
NEEDS_NO_DATA = {"figure2"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    args = parser.parse_args()
    results = {}
    for name in args.only:
        if name not in NEEDS_NO_DATA and not data_sets.available():
            print(f"\n{name}: skipped, set RANKWISE_DATA to the folder of the real data sets")
            continue
        start = time.perf_counter()
        results[name] = EXPERIMENTS[name]()
        print(f"  ({name}: {time.perf_counter() - start:.0f} s)", flush=True)
    whole = len(args.only) == len(EXPERIMENTS)
    write_json(
        "preference_graphs" if whole else f"preference_graphs_{'_'.join(args.only)}", {}, results=results
    )


if __name__ == "__main__":
    main()
