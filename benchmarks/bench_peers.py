#!/usr/bin/env python3
"""rankwise beside the libraries that people know, on real sets: the table on the first page.

    RANKWISE_DATA=... python benchmarks/bench_peers.py [--write]
    ... bench_peers.py --sets ohsumed lightgbm --methods "rankwise RankRLSCV" "rankwise AutoRanker"

What every contender reached on every test query or fold is kept in `peers.json`, with the day and the version. `--sets`
and `--methods` measure these anew, on the folds of the others (a fingerprint of rows and folds is compared), and the
table compares them with what is kept; `--methods` without a name only makes the table.

OHSUMED and LightGBM's ranking example by queries (NDCG@10), tables of PMLB as one ranking each (share of pairs in the
right order; of at most 3,000 rows, the first of a random order). Five folds of queries or rows, the same for all; one
thread each; processor time of choosing and fitting; standard errors over test queries, or over folds of one ranking.

Fixed before looking:

=====================  ===============================================================================================
LightGBM, XGBoost,     their rankers as they come: lambdarank, rank:ndcg (rank:pairwise over one ranking), YetiRank
CatBoost
CatBoost, regression   `CatBoostRegressor` as it comes; added later than the others
LightGBM, tuned        lambdarank and regression, four sizes of trees each, as many trees as a quarter of the training
                       part likes best (bench_curves.py), the best of all by that quarter
scikit-learn           `RidgeCV` on standardised columns, labels centred by query; `HistGradientBoostingRegressor`
RLScore's recipe       RankRLS with a Gaussian kernel over all rows, regularisation and width by leave-query-out, or
                       ten folds of one ranking: gamma 1, 1/4 and 1/16 over the number of columns; above 4,000
                       rows the linear kernel; standardised columns. Computed by rankwise, for RLScore's package is not
                       built by pip alone: the same model, other seconds
RankRLSCV              standardised columns
AutoRanker             as it comes
=====================  ===============================================================================================

Grades for lambdarank over one ranking: 31 quantiles; rows in groups of 1,000, as it refuses longer queries.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import sklearn
import xgboost
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import bench_curves
from harness import environment
from rankwise import AutoRanker, KernelRankRLSCV, RankRLSCV
from rankwise.metrics import get_metric
from rankwise.model_selection import fit_ranker

SETS = (
    "ohsumed",
    "lightgbm",
    "1027_ESL",
    "1028_SWD",
    "201_pol",
    "218_house_8L",
    "225_puma8NH",
    "227_cpu_small",
    "503_wind",
    "537_houses",
    "wine_quality_white",
)
README = Path(__file__).parents[1] / "README.md"
KEPT = Path(__file__).parent / "peers.json"
VERSIONS = {
    "LightGBM": lightgbm.__version__,
    "LightGBM, tuned": lightgbm.__version__,
    "XGBoost": xgboost.__version__,
    "CatBoost": catboost.__version__,
    "CatBoost, regression": catboost.__version__,
    "RidgeCV": sklearn.__version__,
    "HistGradientBoosting": sklearn.__version__,
    "RLScore's recipe": version("rankwise"),
    "rankwise RankRLSCV": version("rankwise"),
    "rankwise AutoRanker": version("rankwise"),
}  # in the order of the table
ROWS = 3_000  # of a table
ALPHAS = 2.0 ** np.arange(-10, 11)


def contenders(train, validation):
    """Return ``{name: fit}``; only the tuned trees set rows apart themselves."""
    joined = tuple(np.concatenate(columns) for columns in zip(train, validation, strict=True))
    order = np.argsort(joined[2], kind="stable")
    X, y, qid = (column[order] for column in joined)
    is_one = qid[0] == qid[-1]
    grades, groups = (_grades(y), np.arange(y.size) // bench_curves.GROUP) if is_one else (y, qid)

    def tuned():
        tried = [
            bench_curves.boosted(train, validation, objective, num_leaves=leaves, learning_rate=0.05)
            for objective in ("lambdarank", "regression")
            for leaves in (4, 8, 16, 31)
        ]
        error = bench_curves.ERROR.prepare(*validation[1:])
        return min(tried, key=lambda model: error(model.predict(validation[0])))

    def ridge():
        means = np.bincount(qid, y) / np.maximum(np.bincount(qid), 1)
        return make_pipeline(StandardScaler(), RidgeCV(ALPHAS)).fit(X, y - means[qid])

    def recipe():
        cv = 10 if is_one else "leave-query-out"
        if y.size > 4_000:
            model = RankRLSCV(ALPHAS, cv=cv, n_threads=1)
        else:
            widths = [4.0**power / X.shape[1] for power in (-2, -1, 0)]
            model = KernelRankRLSCV("rbf", alphas=ALPHAS, gamma=widths, cv=cv, n_threads=1)
        return make_pipeline(StandardScaler(), model)

    return {
        "LightGBM": lambda: fit_ranker(lightgbm.LGBMRanker(n_jobs=1, verbose=-1), X, grades, groups),
        "LightGBM, tuned": tuned,
        "XGBoost": lambda: fit_ranker(
            xgboost.XGBRanker(n_jobs=1, objective="rank:pairwise" if is_one else "rank:ndcg"), X, y, groups
        ),
        "CatBoost": lambda: fit_ranker(
            catboost.CatBoostRanker(thread_count=1, allow_writing_files=False), X, y, groups
        ),
        "CatBoost, regression": lambda: catboost.CatBoostRegressor(
            thread_count=1, allow_writing_files=False, verbose=False
        ).fit(X, y),
        "RidgeCV": ridge,
        "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0).fit(X, y),
        "RLScore's recipe": lambda: fit_ranker(recipe(), X, y, None if is_one else qid),
        "rankwise RankRLSCV": lambda: fit_ranker(
            make_pipeline(
                StandardScaler(), RankRLSCV(n_threads=1)
            ),
            X, y, None if is_one else qid,
        ),
        "rankwise AutoRanker": lambda: AutoRanker(
            n_threads=1, scoring="pairwise_error" if is_one else "ndcg@10"
        ).fit(X, y, qid=None if is_one else qid),
    }  # fmt: skip


def _grades(y):
    edges = np.unique(np.quantile(y, np.linspace(0, 1, bench_curves.GRADES)))
    return np.clip(np.searchsorted(edges, y), 0, bench_curves.GRADES - 1)


def measure(name, load, methods, kept):
    """Return what is kept of one set, with the named methods measured anew."""
    X, y, qid = load()
    qid = np.unique(qid, return_inverse=True)[1]
    is_one = qid[0] == qid[-1]
    if is_one:
        X, y, qid = X[:ROWS], y[:ROWS], qid[:ROWS]
    metric = get_metric("concordance" if is_one else "ndcg@10")
    parts_of_folds = list(bench_curves.folds(qid))
    fingerprint = hashlib.sha256(
        b"".join(np.ascontiguousarray(a).tobytes() for a in (X, y, qid, *parts_of_folds))
    )
    facts = {
        "rows": int(y.size),
        "columns": int(X.shape[1]),
        "metric": metric.name,
        "fingerprint": fingerprint.hexdigest()[:16],
    }
    if kept and {key: kept[key] for key in facts} != facts:
        if set(methods) != set(VERSIONS):
            raise SystemExit(
                f"{name}: what is kept is of other rows or folds. Measure all methods of this set anew."
            )
        kept = None
    figures, seconds = {}, {}
    for parts in parts_of_folds:
        train, validation, test = ((X[part], y[part], qid[part]) for part in parts)
        prepared = metric.prepare(test[1], test[2])
        fits = contenders(train, validation)
        for method in methods:
            start = time.process_time()
            model = fits[method]()
            seconds[method] = seconds.get(method, 0.0) + time.process_time() - start
            ids = {"qid": test[2]} if isinstance(model, AutoRanker) and not is_one else {}
            scores = np.asarray(model.predict(test[0], **ids), dtype=float)
            own = [prepared(scores)] if is_one else prepared.per_query(scores).values
            figures.setdefault(method, []).append(np.asarray(own))
    measured = {
        method: {
            "values": [
                None if np.isnan(value) else round(float(value), 6) for value in np.concatenate(parts)
            ],
            "seconds": round(seconds[method] / 5, 4),
            "version": VERSIONS[method],
            "measured": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        }
        for method, parts in figures.items()
    }
    return {**facts, "methods": {**(kept["methods"] if kept else {}), **measured}}


def compare(name, kept):
    """Return what five folds say about one set: figures that are better when higher, and how far behind the best."""
    values = {
        method: np.array(kept["methods"][method]["values"], dtype=float)
        for method in VERSIONS
        if method in kept["methods"]
    }
    best = max(values, key=lambda method: np.nanmean(values[method]))
    rows = {}
    for method, own in values.items():
        behind = values[best] - own
        behind = behind[~np.isnan(behind)]
        rows[method] = {
            "figure": float(np.nanmean(own)),
            "behind": float(behind.mean()),
            "se": float(behind.std(ddof=1) / np.sqrt(behind.size)),
            "seconds": kept["methods"][method]["seconds"],
        }
    print(f"\n{name}: {kept['rows']} rows, {kept['columns']} columns, {kept['metric']}")
    for method, row in sorted(rows.items(), key=lambda item: -item[1]["figure"]):
        mark = " " if row["behind"] <= 2 * row["se"] else "-"
        behind = f"{-row['behind']:+.4f} ± {row['se']:.4f}"
        made = f"{kept['methods'][method]['version']}, {kept['methods'][method]['measured']}"
        print(
            f"  {mark} {method:22} {row['figure']:.4f}  {behind}  {row['seconds']:7.2f} s  ({made})",
            flush=True,
        )
    return {**kept, "name": name, "methods": rows}


def first_page(results):
    """Return the table of the README: a row per contender, a column per set."""
    names = [f"{result['name']}<br>{result['rows']:,} × {result['columns']}" for result in results]
    lines = [f"| | {' | '.join(names)} | seconds |", "|" + " --- |" * (len(names) + 2)]
    for method in VERSIONS:
        rows = [result["methods"][method] for result in results]
        cells = [f"{row['figure']:.3f}" for row in rows]
        cells = [
            f"**{text}**" if row["behind"] <= 2 * row["se"] else text
            for text, row in zip(cells, rows, strict=True)
        ]
        seconds = np.mean([row["seconds"] for row in rows])
        lines.append(f"| {method} | {' | '.join(cells)} | {seconds:.2g} |")
    return "\n".join(lines)


def main():
    """Measure what is named, keep it, and print the table of the first page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument(
        "--methods", nargs="*", choices=VERSIONS, default=list(VERSIONS), help="none: the table alone"
    )
    parser.add_argument("--write", action="store_true", help="write the table into the README")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"sets": {}}
    known = bench_curves.real_sets() if options.methods else {}
    with threadpool_limits(1):
        for name in options.sets if options.methods else ():
            kept["sets"][name] = measure(name, known[name], options.methods, kept["sets"].get(name))
            kept["environment"] = environment()
            KEPT.write_text(_one_method_per_line(kept), encoding="utf-8")
            compare(name, kept["sets"][name])
    missing = [
        f"{method} on {name}"
        for name in SETS
        for method in VERSIONS
        if method not in kept["sets"].get(name, {"methods": ()})["methods"]
    ]
    if missing:
        raise SystemExit(f"\nNo table yet: {len(missing)} are still to be measured, first {missing[0]}.")
    table = first_page([compare(name, kept["sets"][name]) for name in SETS])
    print(f"\n{table}")
    if options.write:
        page = README.read_text(encoding="utf-8")
        before, rest = page.split("<!-- peers -->\n")
        after = rest.partition("<!-- /peers -->")[2]
        README.write_text(f"{before}<!-- peers -->\n{table}\n<!-- /peers -->{after}", encoding="utf-8")


def _one_method_per_line(kept):
    """Return JSON whose changes can be read: a line for each method of a set."""
    sets = []
    for name, facts in kept["sets"].items():
        lines = [
            f"   {json.dumps(m)}: {json.dumps(facts['methods'][m])}"
            for m in VERSIONS
            if m in facts["methods"]
        ]
        others = json.dumps({key: value for key, value in facts.items() if key != "methods"})[1:-1]
        sets.append(f'  {json.dumps(name)}: {{{others}, "methods": {{\n' + ",\n".join(lines) + "\n  }}")
    body = ",\n".join(sets)
    return f'{{"environment": {json.dumps(kept["environment"])},\n "sets": {{\n{body}\n }}}}\n'


if __name__ == "__main__":
    main()
