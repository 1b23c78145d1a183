"""How often AutoRanker's 95 % interval contains the score of other rows, by simulation.

Sets of noise, whose labels are independent of the columns: the interval should contain the value of constant scores.
Sets with a signal: it should contain the value of the fitted model on thousands of fresh rows. Half of the sets have
labels of any size and are scored by the pairwise error, half have grades and are scored by NDCG@10; one ranking has
labels of any size.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from cases.published import markdown
from harness import Case, Figure, Results
from rankwise import AutoRanker

REPEATS, COLUMNS, ROWS_OF_A_QUERY = 100, 5, 8
# Name: queries; 1 is one ranking of 100 rows.
KINDS = {"12 queries": 12, "50 queries": 50, "200 queries": 200, "one ranking of 100 rows": 1}
SIGNALS = ("noise", "signal")
OURS, CLAIM = "AutoRanker", "expected score"


def draw(rng, n_queries, weights, graded):
    """Return rows, labels and queries: noise of unit spread, and a signal of the given weights with one bend."""
    n_rows = 100 * n_queries if n_queries == 1 else ROWS_OF_A_QUERY * n_queries
    X = rng.normal(size=(n_rows, COLUMNS))
    y = X @ weights + 0.5 * weights[0] * np.abs(X[:, 1]) + rng.normal(size=n_rows)
    if graded:
        y = np.searchsorted([0.0, 1.0, 2.0], y).astype(float)
    return X, y, None if n_queries == 1 else np.repeat(np.arange(n_queries), ROWS_OF_A_QUERY)


def covers(signal: str, n_queries: int, seed: int) -> tuple[bool, float]:
    """Return whether the interval of one set contains the truth, and how far the estimate is above it."""
    rng = np.random.default_rng([seed, n_queries, SIGNALS.index(signal)])
    graded = n_queries > 1 and seed % 2 == 1
    weights = rng.normal(size=COLUMNS) * (0.5 if signal == "signal" else 0.0)
    X, y, qid = draw(rng, n_queries, weights, graded)
    model = AutoRanker(random_state=seed, n_threads=1).fit(X, y, qid)
    truth = model.candidates_.constant
    if signal == "signal":
        rows, labels, queries = draw(rng, 20 if n_queries == 1 else 500, weights, graded)
        if n_queries == 1:
            queries = np.arange(labels.size) // 100
        scores = model.predict(rows, None if qid is None else queries)
        truth = model.metric_(labels, scores, queries)
    low, high = model.expected_interval_
    return low - 1e-12 <= truth <= high + 1e-12, model.expected_score_ - truth


def measure(signal: str, kind: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the share of intervals that contain the truth, and the mean error of the estimate."""
    found = [covers(signal, KINDS[kind], seed) for seed in range(1 if quick else REPEATS)]
    held, errors = zip(*found, strict=True)
    yield Figure(OURS, "coverage", float(np.mean(held)), n=len(held))
    yield Figure(OURS, "estimate minus truth", float(np.mean(errors)), n=len(errors), values=list(errors))


CASES = [
    Case(CLAIM, f"{signal}: {kind}", (OURS,), partial(measure, signal, kind), minutes=3.0,
         goals={(OURS, "coverage"): (">=", 0.9)})
    for signal in SIGNALS
    for kind in KINDS
]  # fmt: skip


def table(results: Results) -> str:
    """Return the coverage of each kind of set."""
    form = "{value:.0%}"
    rows = [
        [kind, *(results.show(form, CLAIM, f"{signal}: {kind}", OURS, "coverage") for signal in SIGNALS)]
        for kind in KINDS
    ]
    return markdown(["", *SIGNALS], rows).replace("%", " %")


TABLES = {"expected-score": table}
