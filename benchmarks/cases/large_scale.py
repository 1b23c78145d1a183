"""The large-scale RankRLS paper: Table 1 and Figures 1 and 2.

Method 1 is Tikhonov regularisation over 21 lambdas, each run to 1e-5 or 500 iterations; method 2 stops early
without a penalty; method 3 does both. "One run each" is the paper's way, a fit for every lambda with rankwise's
products, so that the number of products differs and not the speed of one; "RankRLSCV" reads all of them from
one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from threadpoolctl import threadpool_limits

import data
import rcv1like
from cases.published import PUBLISHED, markdown
from drawing import panels
from harness import Case, Figure, Results, measured
from rankwise import RankRLS, RankRLSCV
from rankwise.metrics import pairwise_error

GRID = 2.0 ** np.arange(-10, 11)
METHODS = {"1": "tikhonov", "2": "early-stopping", "3": "hybrid"}
CLAIM = "large-scale paper"


@dataclass
class Task:
    """Rows to train, validate and test on; `pairs` replace the labels to train on."""

    train: tuple
    validation: tuple
    test: tuple
    pairs: np.ndarray | None = None


@cache
def load(name: str, quick: bool) -> Task:
    if name == "parse sample":
        (X, y, qid), test = data.parse_ranking()
        held = np.isin(qid, np.unique(qid)[::4])
        return Task((X[~held], y[~held], qid[~held]), (X[held], y[held], qid[held]), test)
    if name.startswith("Reuters"):
        reuters = data.reuters()
        y = reuters.labels(name.rpartition(" ")[2])
        train, test = (np.flatnonzero(reuters.split == side) for side in ("train", "test"))
        if quick:
            train = train[::10]
        parts = np.setdiff1d(train, train[::5]), train[::5], test
        return Task(*((reuters.X[rows], y[rows], None) for rows in parts))
    if name == "RCV1 sample":
        X, y = data.rcv1_sample()
        order = np.random.default_rng(0).permutation(y.size)
        parts = np.split(order, [y.size * 6 // 10, y.size * 8 // 10])
        return Task(*((X[rows], y[rows], None) for rows in parts))
    rows, held, tested, listed = (2_000, 500, 500, 2_000) if quick else (781_265, 8_149, 23_149, 1_000_000)
    X, y, _ = rcv1like.make(rows + held + tested)
    parts = np.split(np.arange(y.size), [rows, rows + held])
    task = Task(*((X[part], y[part], None) for part in parts))
    if "preferences" in name:
        rng = np.random.default_rng(0)
        task.pairs = np.column_stack([rng.choice(np.flatnonzero(y[:rows] == c), listed) for c in (1, 0)])
    return task


def some_pairs(y: np.ndarray, at_most: int = 100_000) -> np.ndarray:
    """Return pairs of positive and negative rows to validate on, at most so many."""
    rng = np.random.default_rng(1)
    return np.column_stack([rng.choice(np.flatnonzero(y == c), at_most) for c in (1, 0)])


def fit(model, task: Task, *, watched: bool):
    if task.pairs is not None:
        valid = (task.validation[0], some_pairs(task.validation[1])) if watched else None
        return model.fit_pairs(task.train[0], task.pairs, eval_set=valid)
    X, y, qid = task.train
    valid = task.validation if qid is not None else task.validation[:2]
    return model.fit(X, y, qid, eval_set=valid if watched else None)


def error(model, part: tuple) -> float:
    X, y, qid = part
    return float(pairwise_error(y, X @ model.coef_, qid))


def measure(name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    task = load(name, quick)
    for contender in contenders:
        way, number = contender.split(", method ")
        with threadpool_limits(1), measured() as cost:
            if way == "RankRLSCV":
                options = {"method": METHODS[number], "max_iter": 500, "n_threads": 1}
                model = fit(RankRLSCV(GRID, **options), task, watched=True)
                products = model.n_products_
            else:
                model, products, training = separate(task, number)
                yield Figure(contender, "seconds to train", training, processor_seconds=training)
        yield Figure(contender, "test error", error(model, task.test), n=task.test[1].size)
        spent = cost.processor_seconds
        yield Figure(contender, "seconds to choose", spent, processor_seconds=spent, peak_memory=cost.memory)
        yield Figure(contender, "products", float(products))
        if way == "RankRLSCV" and number == "1":
            yield from curves(model)
            X = task.train[0]
            parts = {"training": X, "validation": task.validation[0], "test": task.test[0]}
            for part, rows in parts.items():
                yield Figure(contender, f"{part} rows", float(rows.shape[0]))
            yield Figure(contender, "columns", float(X.shape[1]))
            yield Figure(contender, "share of non-zeros", X.nnz / (X.shape[0] * X.shape[1]))


def separate(task: Task, number: str):
    """Fit every lambda by itself; return the best on the validation part, all products, and its own seconds."""
    early = number != "1"
    options = {"solver": "cg", "max_iter": 500, "early_stopping": early, "n_threads": 1}
    models = []
    for alpha in [0.0] if number == "2" else GRID[::-1]:
        with measured() as cost:
            model = fit(RankRLS(float(alpha), **options), task, watched=early)
        models.append((error(model, task.validation), model, cost.processor_seconds))
    _, best, training = min(models, key=lambda one: one[0])
    return best, sum(model.n_iter_ for _, model, _ in models), training


def curves(model: RankRLSCV) -> Iterator[Figure]:
    """Figures 1 and 2: the validation error of five lambdas after each iteration."""
    table = np.asarray(model.surface_)
    table = table.reshape(table.shape[0], table.shape[1], -1)[:, :, 0]
    table = table if table.shape[0] == GRID.size else table.T
    for power in (-10, -5, 0, 5, 10):
        values = table[power + 10]
        values = values[np.isfinite(values)][:100]
        label = f"validation error at 2^{power}"
        yield Figure("RankRLSCV, method 1", label, float(values.min()), n=values.size, values=values.tolist())


# Case: the data needed, the published table, minutes.
TASKS = {
    "parse sample": (("rlscore",), "parse ranking", 0.3),
    "Reuters-21578 earn": (("reuters21578",), "scores", 0.5),
    "Reuters-21578 acq": (("reuters21578",), "scores", 0.5),
    "Reuters-21578 money-fx": (("reuters21578",), "scores", 0.5),
    "RCV1 sample": (("rcv1-small",), "scores", 0.3),
    "generated text": ((), "scores", 8.0),
    "generated text, preferences": ((), "preferences", 14.0),
}
CONTENDERS = tuple(f"{way}, method {number}" for number in METHODS for way in ("One run each", "RankRLSCV"))
CASES = [
    Case(CLAIM, name, CONTENDERS, partial(measure, name), needs, minutes, name == "generated text")
    for name, (needs, _, minutes) in TASKS.items()
]


FACTS = ("training rows", "validation rows", "test rows", "columns", "share of non-zeros")


def data_table(results: Results) -> str:
    """Return the topmost part of Table 1: what the paper's data are, and what stands in for them."""
    rows = [
        [
            f"{name}, in the paper",
            *(f"{value:,}" for value in facts[:4]),
            f"{facts[4]} %",
            "cannot be obtained",
        ]
        for name, facts in PUBLISHED["large scale data"].items()
    ]
    stand_ins = {
        "parse sample": "sample of the parse data",
        "Reuters-21578 acq": "stand-in, real text",
        "RCV1 sample": "sample of RCV1",
        "generated text": "stand-in, generated",
    }
    for name, kind in stand_ins.items():
        forms = ["{value:,.0f}"] * 4 + ["{value:.2%}"]
        cells = [
            results.show(form, CLAIM, name, "RankRLSCV, method 1", metric)
            for form, metric in zip(forms, FACTS, strict=True)
        ]
        rows.append([name, *cells[:-1], cells[-1].replace("%", " %"), kind])
    return markdown(["", "train", "validation", "test", "columns", "non-zeros", "data"], rows)


def table(results: Results) -> str:
    rows = []
    for name, (_, published, _) in TASKS.items():
        for number in METHODS:
            ways = [f"{way}, method {number}" for way in ("One run each", "RankRLSCV")]
            cells = [
                " / ".join(results.show("{value:.4g}", CLAIM, name, way, metric) for way in ways)
                for metric in ("test error", "products", "seconds to choose")
            ]
            cells.insert(1, results.show("{value:.4g}", CLAIM, name, ways[0], "seconds to train"))
            value, training, selection = PUBLISHED["large scale Table 1"][published][number]
            rows.append([name if number == "1" else "", number, *cells, f"{value:g}", training, selection])
    head = [
        "data",
        "method",
        "test error: one run each / RankRLSCV",
        "seconds to train",
        "products",
        "to choose",
    ]
    return markdown([*head, "published error", "training", "choosing"], rows)


def figures(results: Results) -> str:
    """Figures 1 and 2: validation error against iterations."""
    parts = {}
    for name in ("parse sample", "Reuters-21578 acq", "RCV1 sample"):
        lines = {}
        for power in (-10, -5, 0, 5, 10):
            line = results.find(CLAIM, name, "RankRLSCV, method 1", f"validation error at 2^{power}")
            if line:
                lines[f"lambda 2^{power}"] = (range(1, line["n"] + 1), line["values"])
        parts[name] = (lines, "iterations", "validation error", "x")
    return panels(
        "early-stopping", "Validation error by iterations: Figures 1 and 2 of the large-scale paper", parts
    )


TABLES = {"large-scale-data": data_table, "large-scale": table, "large-scale-figures": figures}
