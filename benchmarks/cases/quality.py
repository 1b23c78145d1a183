"""Contenders × sets × folds: the share of pairs in the right order, or NDCG@10 by queries.

Sets at 3,000 rows in five folds (claim "quality") and at full size in three splits of 80 and 20 per cent
("quality at full size"); rows that are equal in all columns are in one fold. Differences are tested by t,
paired over folds with 4 degrees of freedom, or over test queries with one less than queries; over overlapping
splits with 2, and with the variance of Nadeau and Bengio (2003), which counts the rows that two splits share.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import scipy.stats
from sklearn.model_selection import GroupKFold, GroupShuffleSplit
from threadpoolctl import threadpool_limits

import data
import letor_like
from cases.published import markdown
from contenders import CONTENDERS, OTHERS, Rows
from harness import Case, Figure, Results, measured, short, t_interval
from rankwise.metrics import get_metric

ROWS, FOLDS, SPLITS, TEST_SHARE = 3_000, 5, 3, 0.2
# Every second set, by name, was used while the automatic choice was developed.
DEVELOPED_ON = {"lightgbm", "1027_ESL", "218_house_8L", "227_cpu_small", "537_houses"}
TABLES_OF_PMLB = (
    "1027_ESL", "1028_SWD", "201_pol", "218_house_8L", "225_puma8NH", "227_cpu_small", "503_wind",
    "537_houses", "wine_quality_white",
)  # fmt: skip
SETS = ("ohsumed", "lightgbm", *TABLES_OF_PMLB)
LARGE = TABLES_OF_PMLB[2:]


@cache
def load(name: str, rows: int | None) -> Rows:
    """Return a set with at most so many rows of one ranking, and the groups that stay together."""
    if name == "generated":
        X, y, qid = letor_like.make(rows or ROWS, seed=5)
    elif name == "ohsumed":
        X, y, qid = data.join(data.ohsumed())
    elif name == "lightgbm":
        X, y, qid = data.lightgbm_example()
    else:
        X, y, qid = data.pmlb(name)
        X, y = X[:rows], y[:rows]
    if qid is None:
        groups = np.unique(X, axis=0, return_inverse=True)[1].ravel()
        return Rows(X, y, None, groups, "concordance")
    codes = np.unique(qid, return_inverse=True)[1]
    return Rows(X, y, codes, codes, "ndcg@10")


def folds(rows: Rows, whole: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows to train and to test on: groups stay together."""
    splitter = (
        GroupShuffleSplit(SPLITS, test_size=TEST_SHARE, random_state=0)
        if whole
        else GroupKFold(FOLDS, shuffle=True, random_state=0)
    )
    return splitter.split(rows.X, groups=rows.groups)


def few_rows(rows: Rows) -> np.ndarray:
    """Return 300 rows of one ranking, or the first 30 rows of twelve queries."""
    if rows.qid is None:
        return np.arange(300)
    return np.concatenate([np.flatnonzero(rows.qid == query)[:30] for query in range(12)])


def measure(
    load: Callable[..., Rows], name: str, whole: bool, contenders: tuple[str, ...], quick: bool
) -> Iterator[Figure]:
    """Yield the figure of each contender with its paired units, its seconds, prediction time and model size."""
    rows = load(name, None if whole else ROWS)
    if quick:
        rows = rows.part(few_rows(rows))
    for contender in contenders:
        units, seconds, memory, per_row, size = [], [], [], [], []
        for train, test in list(folds(rows, whole))[: 2 if quick else None]:
            held = rows.part(test)
            with threadpool_limits(1), measured() as cost:
                model = {**CONTENDERS, **OTHERS}[contender](rows.part(train), quick)
            start = time.perf_counter()
            by_query = contender.startswith("AutoRanker") and held.qid is not None
            scores = model.predict(held.X, held.qid) if by_query else model(held.X)
            per_row.append(1e6 * (time.perf_counter() - start) / held.y.size)
            size.append(len(pickle.dumps(model.model)) / 1024)
            seconds.append(cost.processor_seconds)
            memory.append(cost.memory)
            evaluator = get_metric(rows.metric).prepare(held.y, held.qid)
            own = [evaluator(scores)] if held.qid is None else evaluator.per_query(scores).values
            units += [float(value) for value in own if np.isfinite(value)]
        value, low, high = t_interval(units)
        yield Figure(
            contender, rows.metric, value, low, high, n=len(units), values=units,
            processor_seconds=float(np.mean(seconds)), peak_memory=max(memory),
        )  # fmt: skip
        yield Figure(contender, "µs to score a row", float(np.median(per_row)), n=len(per_row))
        yield Figure(contender, "KiB of the model", float(np.median(size)), n=len(size))


def needs(name: str) -> tuple[str, ...]:
    return {"ohsumed": ("OHSUMED",), "lightgbm": ("lightgbm-rank",), "generated": ()}.get(name, ("pmlb",))


ALL = tuple(CONTENDERS)
CASES = [
    *(Case("quality", name, ALL, partial(measure, load, name, False), needs(name), 10.0, name == "generated")
      for name in (*SETS, "generated")),
    *(Case("quality at full size", name, ALL, partial(measure, load, name, True), needs(name), 20.0)
      for name in LARGE),
]  # fmt: skip


def behind(best: dict, own: dict, overlap: bool) -> bool:
    """Say whether a contender is significantly behind the best of the row (two-sided, 5 %)."""
    difference = np.array(best["values"]) - np.array(own["values"])
    n = difference.size
    share = 1 / n + (TEST_SHARE / (1 - TEST_SHARE) if overlap else 0.0)
    error = np.sqrt(share * difference.var(ddof=1))
    return bool(difference.mean() > scipy.stats.t.ppf(0.975, n - 1) * error)


def metric_of(name: str) -> str:
    return "ndcg@10" if name in {"ohsumed", "lightgbm"} else "concordance"


def table(results: Results, claim: str, sets: tuple[str, ...], *, complete: bool = False) -> str:
    """Return a row per contender, a column per set; bold: not significantly behind the best that was run.

    A contender that was not run on all sets is left out of a complete table, which says so.
    """
    columns = {name: {c: results.find(claim, name, c, metric_of(name)) for c in CONTENDERS} for name in sets}
    enough = all if complete else any
    contenders = [c for c in CONTENDERS if enough(columns[name][c] for name in sets)]
    shown = [name.lstrip("0123456789_") + (" †" if name in DEVELOPED_ON else "") for name in sets]
    rows = []
    for contender in contenders:
        cells, own = [], [line for name in sets if (line := columns[name][contender])]
        for name in sets:
            line = columns[name][contender]
            best = max(filter(None, columns[name].values()), key=lambda one: one["value"], default=None)
            text = f"{line['value']:.3f}".removeprefix("0") if line else "not run"
            cells.append(text if not line or behind(best, line, claim != "quality") else f"**{text}**")
        is_busy = any("busy" in line["machine"] for line in own)
        cells.append(short(np.mean([line["processor_seconds"] for line in own])) + " ‡" * is_busy)
        for metric in ("µs to score a row", "KiB of the model"):
            found = [line["value"] for name in sets if (line := results.find(claim, name, contender, metric))]
            cells.append(short(np.median(found)) if found else "not run")
        rows.append([f"{'rankwise ' if _is_ours(contender) else ''}{contender}", *cells])
    absent = "; ".join(c for c in CONTENDERS if c not in contenders)
    below = ("Not run on all sets" if complete else "Not run yet") + f": {absent}."
    made = markdown(["", *shown, "seconds", "µs a row", "KiB"], rows)
    return f"{made}\n\n{below}" if absent else made


def _is_ours(contender: str) -> bool:
    return contender.endswith("RankRLSCV") or contender.startswith(("AdditiveRankerCV", "AutoRanker"))


def summary(results: Results, claim: str = "quality", sets: tuple[str, ...] = SETS) -> str:
    """Say by set whether each AutoRanker is ahead of, level with or behind the best peer that was run."""
    said = (_compared(results, claim, sets, ours) for ours in ("AutoRanker", "AutoRanker, accuracy"))
    return f"Beside the best peer of each set, {' '.join(said)}"


def _compared(results: Results, claim: str, sets: tuple[str, ...], contender: str) -> str:
    found: dict[str, list[str]] = {"significantly ahead": [], "level": [], "significantly behind": []}
    for name in sets:
        ours = results.find(claim, name, contender, metric_of(name))
        found_peers = (results.find(claim, name, c, metric_of(name)) for c in CONTENDERS if not _is_ours(c))
        peers = list(filter(None, found_peers))
        if not ours or not peers:
            continue
        best = max(peers, key=lambda line: line["value"])
        verdict = "level"
        if behind(best, ours, claim != "quality"):
            verdict = "significantly behind"
        elif behind(ours, best, claim != "quality"):
            verdict = "significantly ahead"
        found[verdict].append(f"{name.lstrip('0123456789_')}: {best['contender']}")
    call = "`AutoRanker()`" if contender == "AutoRanker" else '`AutoRanker(prefer="accuracy")`'
    parts = [
        f"{word} on {len(names)}" + ("" if word == "level" else f" ({'; '.join(names)})")
        for word, names in found.items()
        if names
    ]
    if not parts:
        return f"{call}: not run."
    return f"{call} is {', '.join(parts)}."


TABLES = {
    "quality": lambda results: table(results, "quality", SETS),
    "quality-first-page": lambda results: table(results, "quality", SETS, complete=True),
    "quality-words": summary,
    "quality-full-words": lambda results: summary(results, "quality at full size", LARGE),
    "quality-full": lambda results: table(results, "quality at full size", LARGE),
}
