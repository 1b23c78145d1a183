"""Small and middle-sized dense fits beside scikit-learn's ridge regression, which solves the same system.

`Ridge` gets rows and labels that are centred by query already, so its time is that of its own fit alone; a second
line includes the centering. The selection is exact leave-query-out, beside `RidgeCV` (leave-one-row-out) with the same
21 alphas. Wall time, and processor time, which a busy machine disturbs less.

    python benchmarks/bench_small_fits.py [--rounds 30]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.linear_model import Ridge, RidgeCV

from harness import interleave, print_table, write_json
from rankwise import RankRLS, RankRLSCV

SIZES = ((100, 5), (1000, 20), (10_000, 50), (100_000, 50), (100_000, 136))
QUERY = 20
ALPHAS = 2.0 ** np.arange(-10, 11)
SMALL = 1000  # rows up to which alpha is selected too


def make_data(n_rows, n_columns):
    """Return rows, grades and queries of 20."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    noisy = X[:, 0] - X[:, 1] + rng.normal(size=n_rows)
    return X, np.digitize(noisy, [0, 1, 2]).astype(float), np.arange(n_rows) // QUERY


def centred(X, y):
    """Return rows and labels minus their query's mean."""
    of_query = X.reshape(-1, QUERY, X.shape[1])
    labels = y.reshape(-1, QUERY)
    rows = (of_query - of_query.mean(axis=1, keepdims=True)).reshape(X.shape)
    return rows, (labels - labels.mean(axis=1, keepdims=True)).ravel()


def contenders(n_rows, n_columns):
    """Return {what: {name: call}} after a look that all fit the same model."""
    X, y, qid = make_data(n_rows, n_columns)
    Z, z = centred(X, y)
    ridge = Ridge(1.0, fit_intercept=False)
    np.testing.assert_allclose(RankRLS(1.0).fit(X, y, qid=qid).coef_, ridge.fit(Z, z).coef_, atol=1e-9)
    calls = {
        "fit": {
            "Ridge": lambda: ridge.fit(Z, z),
            "centering and Ridge": lambda: ridge.fit(*centred(X, y)),
            "RankRLS": lambda: RankRLS(1.0).fit(X, y, qid=qid),
        }
    }
    if n_rows <= SMALL:
        calls["selection"] = {
            "RidgeCV": lambda: RidgeCV(ALPHAS, fit_intercept=False).fit(Z, z),
            "RankRLSCV": lambda: RankRLSCV(ALPHAS, cv="leave-query-out").fit(X, y, qid=qid),
        }
    return calls


def main():
    """Time every size by both clocks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="for the larger sizes; small ones take more")
    rounds = parser.parse_args().rounds
    tables = {}
    for n_rows, n_columns in SIZES:
        for what, calls in contenders(n_rows, n_columns).items():
            repeats = rounds * (10 if n_rows <= SMALL else 1)
            for clock, name in ((time.perf_counter, "wall time"), (time.process_time, "processor time")):
                title = f"{what}, {n_rows} x {n_columns}, {name}"
                tables[title] = interleave(calls, repeats, clock=clock)
                print_table(title, tables[title])
    write_json("small_fits", tables)


if __name__ == "__main__":
    main()
