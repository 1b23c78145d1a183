#!/usr/bin/env python3
"""Margins on columns as they come: RankSVM over ten decades, and RankSVMCV beside RankRLSCV on the same folds.

    python benchmarks/bench_margin_paths.py [--repeats 5] [--rows 5000] [--cases decades,choice]

Contenders run in turn in every round, one thread, processor time. Writes benchmarks/results/margin_paths.json.

decades  one fit on standardised columns, and on the same columns times 10**uniform(-5, 5); normal and heavy-tailed
choice   RankSVMCV with hinge and squared hinge against RankRLSCV, five folds of queries: heavy-tailed columns scaled
         inside queries, standardised, raw with ranges from 1 to 1e9, and over ten decades
"""

import argparse
import functools
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from harness import interleave, print_table, write_json
from rankwise import RankRLSCV, RankSVM, RankSVMCV
from rankwise.model_selection import QueryKFold
from rankwise.preprocessing import QueryScaler

LOSSES = ("hinge", "squared_hinge")


def searches(rows, kind, columns=136, query=50, seed=0):
    """Correlated columns, normal or of heavy tails, and five grades in queries of 50 rows."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(rows, columns)) + rng.normal(size=(rows, 10)) @ rng.normal(size=(10, columns))
    coef = rng.normal(size=columns) * (rng.random(columns) < 0.3)
    noisy = signal @ coef / (signal @ coef).std() + 1.5 * rng.normal(size=rows)
    y = np.digitize(noisy, np.quantile(noisy, [0.5, 0.75, 0.9, 0.97])).astype(float)
    X = signal if kind == "normal" else np.exp(np.clip(signal * rng.uniform(0.2, 1, size=columns), -10, 12))
    return X, y, np.arange(rows) // query


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def over_decades(X):
    return standardised(X) * 10.0 ** np.random.default_rng(1).uniform(-5, 5, size=X.shape[1])


def raw(X):
    """Columns whose largest values are from 1 to 1e9."""
    return X / np.abs(X).max(axis=0) * 10.0 ** np.random.default_rng(2).uniform(0, 9, size=X.shape[1])


def decades(options):
    for kind in ("normal", "heavy-tailed"):
        X, y, qid = searches(options.rows, kind)
        for loss in LOSSES:
            for alpha in (1e-1, 1e-4, 1e-6):
                model = RankSVM(alpha, loss=loss, n_threads=1)
                yield (
                    f"{kind}, {loss}, alpha {alpha:g}",
                    {
                        name: functools.partial(model.fit, rows, y, qid)
                        for name, rows in {
                            "over ten decades": over_decades(X),
                            "standardised": standardised(X),
                        }.items()
                    },
                )


def choice(options):
    X, y, qid = searches(options.rows, "heavy-tailed")
    folds = list(QueryKFold(5).split(X, y, qid))
    columns = {
        "scaled inside queries": QueryScaler().fit_transform(X, qid=qid),
        "standardised": standardised(X),
        "raw, ranges of 1 to 1e9": raw(X),
        "over ten decades": over_decades(X),
    }
    for name, rows in columns.items():
        models = {"RankRLSCV": RankRLSCV(cv=folds, n_threads=1)}
        models |= {f"RankSVMCV, {loss}": RankSVMCV(loss=loss, cv=folds, n_threads=1) for loss in LOSSES}
        yield (
            f"choice of alpha, {name}",
            {title: functools.partial(model.fit, rows, y, qid) for title, model in models.items()},
        )


CASES = {"decades": decades, "choice": choice}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5000)
    options = parser.parse_args()
    tables, facts = {}, {}
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("error")  # a fit that does not end properly is no measurement
        for case in options.cases.split(","):
            for title, contenders in CASES[case](options):
                tables[title] = interleave(contenders, options.repeats, clock=time.process_time)
                print_table(f"{options.rows} x 136, {title}", tables[title])
                facts[title] = {}
                for name, call in contenders.items():
                    model = call.func.__self__.fit(*call.args)
                    reads = getattr(model, "n_reads_", None)
                    facts[title][name] = {"reads": reads, "error": 1 - model.score(*call.args)}
                    print(f"  {name}: {reads} reads, training error {facts[title][name]['error']:.4f}")
    write_json("margin_paths", tables, models=facts, rows=options.rows)


if __name__ == "__main__":
    main()
