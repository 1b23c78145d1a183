"""Write the coefficients of every estimator on public data to ``tests/data/golden.json``; a test compares them.

    python tests/golden.py

Run it when a change is meant to alter models, and list the change in the changelog under *Changed models*. The file is
there to notice changes that nobody meant; what is right is tested elsewhere, against oracles.
"""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import StandardScaler

from rankwise import (
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)

FILE = Path(__file__).parent / "data" / "golden.json"

MODELS = {
    "RankRLS": RankRLS(),
    "RankRLS, ties excluded": RankRLS(ties="exclude"),
    "RankRLS, conjugate gradients": RankRLS(solver="cg", tol=1e-10),
    "RankRLSCV": RankRLSCV(cv=3),
    "RankRLSCV, leave-query-out": RankRLSCV(cv="leave-query-out"),
    "RankSVM": RankSVM(tol=1e-9),
    "RankSVM, squared hinge": RankSVM(loss="squared_hinge", tol=1e-8),
    "RankSVMCV": RankSVMCV(cv=2, tol=1e-5),
    "KernelRankRLS": KernelRankRLS(gamma=0.1),
    "KernelRankRLS, basis": KernelRankRLS(gamma=0.1, basis=20),
    "KernelRankRLSCV": KernelRankRLSCV(gamma=0.1),
    "KernelRankSVM": KernelRankSVM(gamma=0.1, basis=20, tol=1e-5),
}
# How far scores may be off, as a share of their range: what the tolerance of a solver leaves open.
CLOSE = {"RankSVM": 1e-3, "RankSVMCV": 1e-2, "KernelRankSVM": 1e-2, "RankSVM, squared hinge": 1e-4}


def problems():
    """Yield names and (X, y, qid) of two data sets that come with scikit-learn; every tenth row makes a query."""
    for name, load in (("diabetes", load_diabetes), ("wine", load_wine)):
        X, y = load(return_X_y=True)
        rows = np.random.default_rng(0).permutation(len(y))[:120]
        yield name, (StandardScaler().fit_transform(X)[rows], y[rows].astype(float), np.arange(120) // 12)


def results():
    """Return the scores of the first rows by every model on every data set."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data, (X, y, qid) in problems():
            for name, model in MODELS.items():
                scores = model.fit(X, y, qid=qid).predict(X)
                found[f"{name}: {data}"] = (scores - scores.mean())[:25].tolist()
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(results(), indent=1) + "\n")
