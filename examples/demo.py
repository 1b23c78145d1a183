"""The main job in under a minute: learn to rank from scores and from graded queries, with alpha chosen for you."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from rankwise import RankRLSCV
from rankwise.metrics import get_metric


@dataclass
class Ranking:
    """Rows to learn from and rows to be scored by."""

    title: str
    train: tuple
    test: tuple
    metrics: tuple


def diabetes() -> Ranking:
    """442 patients, one global ranking by disease progression: real-valued labels, no queries."""
    X, y = load_diabetes(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    scaler = StandardScaler().fit(X_train)
    return Ranking(
        "Rank patients by disease progression (442 rows, real-valued labels, one ranking)",
        (scaler.transform(X_train), y_train, None),
        (scaler.transform(X_test), y_test, None),
        ("pairwise_error", "kendall_tau"),
    )


def search_results(queries: int = 2000, size: int = 20, features: int = 30) -> Ranking:
    """Graded results of made-up searches; query ids are strings, and rows of a query are scattered."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=features) * (rng.random(features) < 0.5)
    difficulty = rng.normal(scale=2.0, size=(queries, 1, features))  # shifts a whole query, orders nothing
    X = (rng.normal(size=(queries, size, features)) + difficulty).reshape(-1, features)
    noise = rng.normal(scale=3.0, size=queries * size)
    utility = (X - difficulty.repeat(size, axis=1).reshape(-1, features)) @ truth + noise
    y = np.digitize(utility, np.quantile(utility, [0.55, 0.75, 0.88, 0.96])).astype(float)
    qid = np.array([f"search {q}" for q in np.arange(queries).repeat(size)])
    held_out = np.isin(qid, rng.choice(np.unique(qid), queries // 4, replace=False))
    mixed = rng.permutation(np.flatnonzero(~held_out))
    return Ranking(
        f"Rank search results ({queries} queries of {size} rows, {features} columns, grades 0 to 4)",
        (X[mixed], y[mixed], qid[mixed]),
        (X[held_out], y[held_out], qid[held_out]),
        ("ndcg@10", "average_precision", "pairwise_error"),
    )


def run(ranking: Ranking) -> None:
    """Choose alpha, fit, evaluate, and say what was done."""
    X, y, qid = ranking.train
    start = time.perf_counter()
    model = RankRLSCV().fit(X, y, qid=qid)
    seconds = time.perf_counter() - start
    X_test, y_test, qid_test = ranking.test
    scores = model.predict(X_test)
    print(f"\n{ranking.title}")
    print(
        f"  chose alpha = {model.alpha_:g} after {model.best_iteration_} iterations from {model.surface_.size} "
        f"models\n  ({model.alphas_.size} alphas x {model.n_iter_} iterations, scored by {model.cv_}) "
        f"in {seconds:.2f} s"
    )
    for name in ranking.metrics:
        metric = get_metric(name)
        constant = metric(y_test, np.zeros(len(y_test)), qid_test)
        value = metric(y_test, scores, qid_test)
        print(f"  {name:15} {value:.4f}   (constant scores: {constant:.4f})")
        print(f"  {'':15} {metric.describe()}")


def main() -> None:
    """Run both rankings."""
    for ranking in (diabetes(), search_results()):
        run(ranking)
    print(
        "\nWhat to try next:\n"
        "  RankRLS(alpha).fit(X, y, qid=qid)            a model for one alpha, dense or sparse\n"
        "  RankRLSCV().fit(X, y, eval_set=(Xv, yv))     choose alpha on rows of your own\n"
        "  model.rank(X, qid=qid)                       1 is best inside each query\n"
        "  README.md                                    the rest"
    )


if __name__ == "__main__":
    main()
