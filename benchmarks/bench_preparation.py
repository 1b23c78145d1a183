#!/usr/bin/env python3
"""Scaling inside queries, model files and Parquet, each beside what one would write without rankwise.

python benchmarks/bench_preparation.py
"""

import io
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import rankwise
from harness import interleave, print_table, write_json
from rankwise.data import load_table, save_table
from rankwise.preprocessing import QueryScaler

ROWS, FEATURES, QUERIES = 140_000, 136, 1_200


def scaling(X, qid):
    """140,000 × 136 in 1,200 queries; pandas groups and transforms a column at a time."""
    frame = pd.DataFrame(X)
    groups = frame.groupby(qid)

    def by_pandas():
        low, high = groups.transform("min"), groups.transform("max")
        return ((frame - low) / (high - low)).fillna(0.0).to_numpy()

    scaler = QueryScaler().fit(X, qid=qid)
    np.testing.assert_allclose(scaler.transform(X, qid=qid), by_pandas(), atol=1e-12)
    calls = {"pandas groupby, minmax": by_pandas}
    for method in ("minmax", "standard", "rank"):
        one = QueryScaler(method).fit(X, qid=qid)
        calls[f"QueryScaler({method!r})"] = lambda one=one: one.transform(X, qid=qid)
    calls["pandas groupby, rank"] = lambda: groups.rank(pct=True).to_numpy()
    return interleave(calls, repeats=5)


def files(X, y, qid):
    """A kernel model that keeps 20,000 rows, about 21 MiB."""
    model = rankwise.KernelRankRLS(basis=200).fit(X[:20_000], y[:20_000], qid=qid[:20_000])
    model.X_fit_, model.dual_coef_ = X[:20_000], np.ones(20_000)
    model.basis_ = np.arange(20_000)
    stream = io.BytesIO()
    model.save(stream)
    own, pickled = stream.getvalue(), pickle.dumps(model)
    return interleave(
        {
            "pickle.dumps": lambda: pickle.dumps(model),
            "save": lambda: model.save(io.BytesIO()),
            "pickle.loads": lambda: pickle.loads(pickled),
            "load": lambda: rankwise.load(io.BytesIO(own)),
        },
        repeats=5,
    )


def tables(X, y, qid):
    """The same rows from Parquet, 137 columns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        save_table(X, y, path, qid=qid)

        def by_pandas():
            frame = pd.read_parquet(path)
            return (
                frame.drop(columns=["label", "qid"]).to_numpy(),
                frame["label"].to_numpy(),
                frame["qid"].to_numpy(),
            )

        assert by_pandas()[0].tobytes() == load_table(path).X.tobytes()
        return interleave(
            {"pandas.read_parquet": by_pandas, "load_table": lambda: load_table(path)}, repeats=5
        )


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES))
    y = rng.integers(0, 5, size=ROWS)
    qid = np.sort(rng.integers(QUERIES, size=ROWS))
    results = {"scaling": scaling(X, qid), "model files": files(X, y, qid), "tables": tables(X, y, qid)}
    for title, timings in results.items():
        print_table(title, timings)
    write_json("preparation", results)


if __name__ == "__main__":
    main()
