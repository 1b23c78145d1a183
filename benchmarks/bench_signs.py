#!/usr/bin/env python3
"""Coefficients of given signs, and columns without a penalty, beside plain fits: processor time of a fit, in turns.

    python benchmarks/bench_signs.py [--rows 20000] [--repeats 7]

Writes benchmarks/results/signs.json.
"""

import argparse
import time
from functools import partial

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from harness import interleave, print_table, write_json
from rankwise import RankRLS, RankRLSCV, RankSVM

MODELS = {
    "RankRLS": RankRLS(n_threads=1),
    "RankSVM": RankSVM(n_threads=1),
    "RankSVM, squared hinge": RankSVM(loss="squared_hinge", n_threads=1),
    "RankRLSCV, 5 folds": RankRLSCV(cv=5, n_threads=1),
}


def main():
    """Fit every model with and without signs and free columns."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(options.rows, 50)), np.arange(options.rows) // 20
    noisy = X @ rng.normal(size=50) / 7 + rng.normal(size=options.rows)
    y = np.digitize(noisy, [-0.5, 0.5, 1.5]).astype(float)
    tables = {}
    with threadpool_limits(1):
        for name, model in MODELS.items():
            kinds = {
                "any sign": {},
                "positive=True": {"positive": True},
                "three free columns": {"column_penalty": np.arange(50) >= 3},
                "both": {"positive": True, "column_penalty": np.arange(50) >= 3},
            }
            own = {kind: clone(model).set_params(**known) for kind, known in kinds.items()}
            fits = {kind: partial(made.fit, X, y, qid) for kind, made in own.items()}
            tables[name] = interleave(fits, options.repeats, "any sign", clock=time.process_time)
            print_table(f"{options.rows} x 50, {name}", tables[name])
    write_json("signs", tables)


if __name__ == "__main__":
    main()
