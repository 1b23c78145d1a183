"""How often 95 % intervals contain the truth, by simulation: the tables of docs/intervals.md."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np
import scipy.stats

from cases.published import markdown
from harness import Case, Figure, Results
from rankwise.metrics import auc_estimate, bootstrap_mean, get_metric

SIZES = (5, 10, 15, 40)
BAND = {5: (0.93, 1.0), 10: (0.93, 0.97), 15: (0.93, 0.97), 40: (0.93, 0.97)}
POOLED = get_metric("pairwise_error", average="pooled")

# Name: metric, standard deviation of the noise of the scores. Labels have the standard deviation 0.8.
METRICS = {
    "NDCG@10": ("ndcg@10", 1.0),
    "NDCG@10, nearly perfect": ("ndcg@10", 0.4),
    "NDCG@3": ("ndcg@3", 2.0),
    "MAP": ("average_precision", 1.0),
    "concordance": ("concordance", 1.0),
    "pairwise error, nearly perfect": ("pairwise_error", 0.4),
    "pairwise error over all pairs": (POOLED, 1.0),
    "Kendall's tau": ("kendall_tau", 1.0),
    "MRR": ("reciprocal_rank", 3.0),
    "precision@5": ("precision@5", 1.0),
    "precision@1": ("precision@1", 3.0),
}
DIFFERENCES = {
    "NDCG@10": ("ndcg@10", 1.0),
    "NDCG@3": ("ndcg@3", 1.0),
    "MAP": ("average_precision", 1.0),
    "concordance": ("concordance", 1.0),
    "pairwise error over all pairs": (POOLED, 1.0),
    "precision@5": ("precision@5", 1.0),
    "precision@1, most of them 0": ("precision@1", 3.0),
}
# Values that no metric is needed for: how to draw them, and their mean.
VALUES = {
    "normal": (lambda rng, shape: rng.normal(0.7, 0.1, size=shape), 0.7),
    "beta(6, 2)": (lambda rng, shape: rng.beta(6, 2, size=shape), 0.75),
}
AUCS = (0.75, 0.9, 0.97)
ROWS = ((10, 10), (10, 40), (40, 10), (10, 200), (40, 40))


def draw_values(rng, n_queries, metric, noise):
    """Draw queries, and return the metric of two rankers whose errors correlate, query by query, and its weights.

    A query has ten rows, or a geometric number where all pairs count together.
    """
    sizes = 3 + rng.geometric(0.1, n_queries) if metric is POOLED else np.full(n_queries, 10)
    qid = np.repeat(np.arange(n_queries), sizes)
    y = rng.integers(0, 3, size=qid.size)
    ends = np.cumsum(sizes)
    y[ends - sizes], y[ends - 1] = 2, 0  # every query counts
    shared, own, other = noise * rng.normal(size=(3, qid.size))
    evaluator = get_metric(metric).prepare(y, qid)
    first, second = y + 0.8 * shared + 0.6 * own, y + 0.8 * shared + 0.9 * other
    return *(evaluator.per_query(scores).values for scores in (first, second)), evaluator.shares


def cover(kind, name, n_queries, repeats, seed=0):
    """Return the share of intervals of `bootstrap_mean` that contain the truth, by samples of so many queries.

    `bootstrap_interval` and `compare_rankings` return this very interval of the values of their queries.
    """
    rng = np.random.default_rng([seed, n_queries])
    if kind == "values":
        draw, truth = VALUES[name]
        bounds, values, weight = None, draw(rng, (repeats, n_queries)), np.ones((repeats, n_queries))
    else:
        metric, noise = (METRICS if kind == "metrics" else DIFFERENCES)[name]
        low, high = get_metric(metric).bounds
        bounds = (low, high) if kind == "metrics" else (low - high, high - low)

        def draw(rng, n):
            first, second, weight = draw_values(rng, n, metric, noise)
            return (first if kind == "metrics" else first - second), weight

        population, share = draw(np.random.default_rng(99), 200_000)
        truth = np.average(population, weights=share)
        values, weight = (part.reshape(repeats, n_queries) for part in draw(rng, repeats * n_queries))
    found = [bootstrap_mean(*own, bounds=bounds) for own in zip(values, weight, strict=True)]
    return float(np.mean([one.low - 1e-12 <= truth <= one.high + 1e-12 for one in found]))


def draw_scores(rng, kind, auc, n_above, n_below):
    """Draw scores of positives and negatives with an AUC; ties change it, so it is returned."""
    if kind == "exponential":
        return rng.exponential(auc / (1 - auc), n_above), rng.exponential(1.0, n_below), auc
    spread = 2.0 if kind == "normal, unequal variances" else 1.0
    shift = np.hypot(spread, 1.0) * scipy.stats.norm.ppf(auc)
    above, below = rng.normal(shift, spread, n_above), rng.normal(size=n_below)
    if kind != "normal, rounded":
        return above, below, auc
    edges = np.arange(-12, 13) - 0.5
    p_above = np.diff(scipy.stats.norm.cdf(edges - shift))
    p_below = np.diff(scipy.stats.norm.cdf(edges))
    return above.round(), below.round(), float(p_above @ (np.cumsum(p_below) - p_below / 2))


KINDS = ("normal", "normal, unequal variances", "exponential", "normal, rounded")


def cover_auc(kind, auc, n_above, n_below, repeats, seed=0):
    """Return the coverage of `AucEstimate.interval`."""
    rng = np.random.default_rng([seed, n_above, n_below])
    y = np.repeat([1, 0], [n_above, n_below])
    held = 0
    for _ in range(repeats):
        above, below, truth = draw_scores(rng, kind, auc, n_above, n_below)
        low, high = auc_estimate(y, np.concatenate([above, below])).interval()[0]
        held += low <= truth <= high
    return held / repeats


FUNCTIONS = {
    "metrics": ("`bootstrap_interval`", METRICS),
    "differences": ("`compare_rankings`, difference", DIFFERENCES),
    "values": ("`bootstrap_mean` without bounds", VALUES),
}
OURS, CLAIM = "rankwise.metrics", "intervals"


def measure(kind: str, name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the coverage by samples of each size."""
    repeats = 20 if quick else 2000
    for n in SIZES[:: 3 if quick else 1]:
        yield Figure(OURS, f"coverage at {n} queries", cover(kind, name, n, repeats), n=repeats)


def measure_auc(kind: str, auc: float, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the coverage by samples of so many positives and negatives."""
    repeats = 20 if quick else 1000
    for above, below in ROWS[:: 4 if quick else 1]:
        value = cover_auc(kind, auc, above, below, repeats)
        yield Figure(OURS, f"coverage at {above} and {below} rows", value, n=repeats)


CASES = [
    Case(
        CLAIM,
        f"{kind}: {name}",
        (OURS,),
        partial(measure, kind, name),
        minutes=0.1,
        smoke=name == "normal",
    )
    for kind, (_, names) in FUNCTIONS.items()
    for name in names
] + [
    Case(CLAIM, f"AUC {auc}, {kind}", (OURS,), partial(measure_auc, kind, auc), minutes=0.1)
    for kind in KINDS
    for auc in AUCS
]


def means_table(results: Results) -> str:
    """Return means and differences over queries; in bold where the goal is missed."""
    rows = []
    for kind, (function, names) in FUNCTIONS.items():
        for name in names:
            found = {
                n: results.find(CLAIM, f"{kind}: {name}", OURS, f"coverage at {n} queries") for n in SIZES
            }
            rows.append([f"{function}: {name}", *(_cell(line, BAND[n]) for n, line in found.items())])
    return markdown(["", "5 queries", "10", "15", "40"], rows)


def auc_table(results: Results) -> str:
    """Return the coverage of the AUC; in bold where fewer than 93 % cover."""
    heads = [f"{above} and {below}" for above, below in ROWS]
    rows = []
    for kind, auc in product(KINDS, AUCS):
        found = [results.find(CLAIM, f"AUC {auc}, {kind}", OURS, f"coverage at {n} rows") for n in heads]
        rows.append([f"{kind}, {auc}", *(_cell(line, (0.93, 1.0)) for line in found)])
    return markdown(["scores, AUC", *heads], rows)


def _cell(line: dict | None, band: tuple[float, float]) -> str:
    if line is None:
        return "not run"
    text = f"{line['value']:.3f}".removeprefix("0")
    return text if band[0] <= line["value"] <= band[1] else f"**{text}**"


TABLES = {"coverage": means_table, "coverage-auc": auc_table}
