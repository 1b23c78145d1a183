#!/usr/bin/env python3
"""Nonlinear ranking at scale: reduced-set RankRLS beside a linear model and LightGBM's lambdarank.

    python benchmarks/bench_nonlinear.py [--rows 60000] [--basis 50 100 200 500 1000] [--tune]

On `letor_like.make`: training rows, and a quarter as many to validate and to test on. The bar: the reduced set closes
half of the gap in pairwise error between the linear model and LightGBM, in no more time than LightGBM takes.

What each may choose: LightGBM its number of trees by early stopping on the validation rows' pairwise error, RankRLS its
alpha by exact leave-query-out on the training rows; both are inside the time. Leaves, truncation and learning rate of
LightGBM and gamma of the kernel come from `--tune`, which walks a small grid of each, judged on the validation rows,
and are not. "Quantiles" maps each column to its ranks first, inside the time; a tree does so by itself.
"""

from __future__ import annotations

import argparse
import time

import lightgbm
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

import letor_like
from harness import interleave, print_table, write_json
from rankwise import KernelRankRLSCV, RankRLSCV
from rankwise.metrics import get_metric
from rankwise.runtime.threads import default_threads

METRIC = get_metric("pairwise_error")
ALPHAS = 2.0 ** np.arange(-8, 3, 2)
GAMMAS = {"quantiles": 0.05, "as they come": 0.1}  # found by --tune
TREES = {  # the fastest of the good ones, and the best, found by --tune
    "LightGBM": {"num_leaves": 15, "learning_rate": 0.1, "lambdarank_truncation_level": 30},
    "LightGBM, best": {"num_leaves": 15, "learning_rate": 0.05, "lambdarank_truncation_level": 500},
}
_PATIENCE = 30


class Data:
    """Three parts of whole queries."""

    def __init__(self, rows):
        X, y, qid = letor_like.make(rows * 3 // 2)
        cut = np.searchsorted(qid, qid[[rows, rows + rows // 4]])
        self.train, self.validation, self.test = (
            (X[part], y[part], qid[part]) for part in np.split(np.arange(y.size), cut)
        )

    @staticmethod
    def judge(part):
        return METRIC.prepare(part[1], part[2])


def linear(data):
    return RankRLSCV(method="tikhonov").fit(*data.train, eval_set=data.validation)


def boosted(data, **options):
    """Lambdarank, stopped when the pairwise error on validation rows has not fallen for thirty trees."""
    judge = data.judge(data.validation)
    train, validation = (
        lightgbm.Dataset(X, y, group=np.unique(qid, return_counts=True)[1])
        for X, y, qid in (data.train, data.validation)
    )
    validation.set_reference(train)
    parameters = {
        "objective": "lambdarank",
        "metric": "None",
        "num_threads": default_threads(),
        "verbose": -1,
        **options,
    }
    return lightgbm.train(
        parameters,
        train,
        2000,
        valid_sets=[validation],
        feval=lambda scores, _: ("pairwise error", judge(scores), False),
        callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
    )


def reduced(data, basis, columns="quantiles", gamma=None):
    """KernelRankRLS with a random reduced set, alpha by exact leave-query-out."""
    X, y, qid = data.train
    model = KernelRankRLSCV(gamma=gamma or GAMMAS[columns], basis=basis, alphas=ALPHAS)
    if columns == "as they come":
        return model.fit(X, y, qid)
    ranks = QuantileTransformer(n_quantiles=100, subsample=10_000, random_state=0)
    pipeline = make_pipeline(ranks, model)
    return pipeline.fit(X, y, kernelrankrlscv__qid=qid)


def tune(data):
    """Print the validation error over small grids of what is fixed above."""
    X = data.validation[0]
    judge = data.judge(data.validation)
    for leaves in (15, 31, 63):
        for truncation in (30, 500):
            for rate in (0.05, 0.1):
                model = boosted(
                    data, num_leaves=leaves, lambdarank_truncation_level=truncation, learning_rate=rate
                )
                print(
                    f"LightGBM, {leaves} leaves, truncation {truncation}, rate {rate}: {judge(model.predict(X)):.5f}"
                    f" after {model.best_iteration} trees",
                    flush=True,
                )
    for columns in GAMMAS:
        for gamma in (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4):
            print(
                f"basis 200, {columns}, gamma {gamma}: {judge(reduced(data, 200, columns, gamma).predict(X)):.5f}"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--basis", type=int, nargs="+", default=[50, 100, 200, 500, 1000])
    parser.add_argument("--columns", nargs="+", choices=GAMMAS, default=list(GAMMAS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tune", action="store_true")
    args = parser.parse_args()
    data = Data(args.rows)
    if args.tune:
        tune(data)
        return
    contenders = {name: (lambda options=options: boosted(data, **options)) for name, options in TREES.items()}
    contenders["linear"] = lambda: linear(data)
    for columns in args.columns:
        for basis in args.basis:
            contenders[f"reduced set {basis}, {columns}"] = lambda b=basis, c=columns: reduced(data, b, c)
    judge = data.judge(data.test)
    kept = {}
    timed = {
        name: (lambda name=name, fit=fit: kept.__setitem__(name, fit())) for name, fit in contenders.items()
    }
    start = time.perf_counter()
    timings = interleave(timed, repeats=args.repeats, reference="LightGBM")
    print_table(f"Training, {args.rows} rows of 46 columns", timings)
    error = {name: judge(model.predict(data.test[0])) for name, model in kept.items()}
    best = min(error[name] for name in TREES)
    print(
        f"\n{'test pairwise error':28}           share of the gap closed, linear to the best LightGBM (bar: 0.5)"
    )
    for name, value in error.items():
        print(f"{name:28} {value:9.4f} {(error['linear'] - value) / (error['linear'] - best):6.2f}")
    print(f"\n{METRIC.describe()}\n{time.perf_counter() - start:.0f} s")
    write_json("nonlinear", {"training": timings}, error=error, rows=args.rows)


if __name__ == "__main__":
    main()
