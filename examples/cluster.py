"""Train on a cluster: here of two processes on this machine, elsewhere of as many as there are (docs/cluster.md).

The data are written as text first, as somebody else would have left them; the workers read them themselves.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from rankwise import RankRLSCV
from rankwise.data import save_svmlight
from rankwise.distributed import read


def searches(n_queries: int = 1000, size: int = 20, n_columns: int = 30) -> tuple[np.ndarray, ...]:
    """Make up graded results of searches."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_queries * size, n_columns)).round(3)
    utility = X @ rng.normal(size=n_columns) + 3 * rng.normal(size=n_queries * size)
    return X, np.digitize(utility, [0, 4, 8]).astype(float), np.repeat(np.arange(n_queries), size)


def main() -> None:
    """Fit on the cluster and here, and compare."""
    X, y, qid = searches()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        path = Path(folder, "searches.txt")
        save_svmlight(X, y, path, qid=qid)
        data = read(path, client=client, block_bytes=1 << 20)
        rows, columns = data.X.shape
        print(f"{rows} rows of {columns} columns, read in {len(data.X.source.blocks)} pieces by two workers")
        began = time.perf_counter()
        model = RankRLSCV(tol=1e-10).fit(data.X, data.y, qid=data.qid)
        print(f"on the cluster: alpha {model.alpha_:g}, pairwise error {model.best_score_:.4f}", end=" ")
        print(f"({time.perf_counter() - began:.1f} s)")
        here = RankRLSCV(tol=1e-10).fit(X, y, qid=qid)
        difference = np.abs(here.coef_ - model.coef_).max() / np.abs(here.coef_).max()
        print(f"here:           alpha {here.alpha_:g}, coefficients differ by {difference:.0e}")
        scores = model.predict(data.X)  # nothing is computed yet
        print(f"scores in {scores.npartitions} partitions; the first ones: {scores[:3].compute().round(3)}")


if __name__ == "__main__":
    main()
