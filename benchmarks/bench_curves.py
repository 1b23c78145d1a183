#!/usr/bin/env python3
"""Curves and surfaces beside boosted trees: pairwise error, NDCG@10 and processor time.

    python benchmarks/bench_curves.py search [--seeds 201 202 203] [--rows 60000] [--against "lambdarank, best"]
    python benchmarks/bench_curves.py sets [--sets ohsumed lightgbm ...] [--together] [--methods regression curves]
    python benchmarks/bench_curves.py ablation
    python benchmarks/bench_curves.py picture
    python benchmarks/bench_curves.py tune
    python benchmarks/bench_curves.py million [--rows 1000000]
    python benchmarks/bench_curves.py depth [--sets 227_cpu_small ...]
    python benchmarks/bench_curves.py choice [--sets lightgbm ...]

**search**: `letor_like.make`, with seeds that nothing was tuned on; training rows, and a quarter as many to validate
and to test on, one thread each, processor time. Settings are fixed by `tune`, which walks small grids on seed 0 judged
by its validation rows: those of LightGBM (leaves, rate, truncation), and alpha and the number of surfaces. LightGBM
chooses its number of trees by early stopping on the validation rows' pairwise error, inside the time. Bars: an error
not above the better of lambdarank and regression by more than one standard error of the difference (paired over test
queries), at most a fifth of lambdarank's time and at most regression's, NDCG@10 within .002 of lambdarank's.

**sets**: OHSUMED and LightGBM's ranking example by queries, PMLB's sets as one ranking each (of at most 8,000 rows, the
first of a random order). Five folds; a quarter of each fold's training part validates, and everybody is tuned by it:
linear RankSVM its alpha, lambdarank and regression their leaves and trees, and curves are `AdditiveRankerCV()`, which
chooses knots, surfaces and alpha. What "auto" tries there was settled on other folds (``folds(qid, seed=1)``).
Nobody is fitted again after. With `--together`, rows of one ranking that are equal in all columns are in one fold.
Standard errors are paired, over test queries or over folds of one ranking. Bar: not worse than the best of the others
by more than two of them on nine sets of ten.

**ablation**: what each part of the recipe is worth, on `letor_like.make` with another seed, scored by its test rows.
**depth**: what terms of three columns and more are worth: regression trees of depth 2, which are sums of terms of two
columns as curves and surfaces are, of depth 3 and of any depth, on two of the folds that "auto" was settled on.
**choice**: what choosing costs where few queries are held out: fixed settings of curves beside the chosen ones, linear
models and regression trees, on all folds that "auto" was settled on.
**million**: one fit of 20 surfaces on 10⁶ × 136 in single precision (the 46 columns of `letor_like.make`, and noisy
copies of them) beside 100 trees of LightGBM as it comes; one thread and a process each, processor seconds, and the most
memory beyond X. Bars: a third of the time of the trees, codes below 1.5 times X.
**picture**: the page of curves and surfaces in docs/curves.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lightgbm
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import data_sets
import letor_like
from harness import write_json
from rankwise import AdditiveRanker, AdditiveRankerCV, RankSVMCV
from rankwise.metrics import get_metric

ERROR, NDCG = get_metric("pairwise_error"), get_metric("ndcg@10")
SEEDS = (201, 202, 203)
SEARCH_ROWS = 60_000
MANY_ROWS = 200_000
# Found by `tune`.
CURVES = {"alpha": 1e-3, "interactions": 80, "tol": 1e-2}
MANY_CURVES = {**CURVES, "alpha": 5e-4, "interactions": 160}  # from 200,000 rows on: `tune --rows 200000`
TREES = {
    "lambdarank": {"num_leaves": 15, "learning_rate": 0.1, "lambdarank_truncation_level": 30},
    "lambdarank, best": {"num_leaves": 15, "learning_rate": 0.05, "lambdarank_truncation_level": 500},
    "regression": {"num_leaves": 31, "learning_rate": 0.05},
    "regression, fast": {"num_leaves": 15, "learning_rate": 0.1},
}
PATIENCE = 30
GRADES = 31  # as many as lambdarank takes by default
PMLB_ROWS = 8_000
GROUP = 1_000  # rows of one ranking that lambdarank gets as a query; it refuses more than 10,000


def split(rows, seed):
    """Return three parts of whole queries."""
    X, y, qid = letor_like.make(rows * 3 // 2, seed=seed)
    cut = np.searchsorted(qid, qid[[rows, rows + rows // 4]])
    return [(X[part], y[part], qid[part]) for part in np.split(np.arange(y.size), cut)]


def sizes(qid):
    return np.diff(np.flatnonzero(np.r_[True, qid[1:] != qid[:-1], True]))


def boosted(train, validation, objective, threads=1, **options):
    """Trees, stopped when the pairwise error on validation rows has not fallen for thirty of them."""
    scorer = ERROR.prepare(validation[1], validation[2])
    (X, y, qid), (V, z, vid) = train, validation
    if objective == "lambdarank":
        options["label_gain"] = list(range(GRADES + 1))  # linear: what the pairwise error counts
        if np.unique(qid).size == 1:
            order = np.random.default_rng(0).permutation(y.size)
            X, y, qid = X[order], y[order], np.arange(y.size) // GROUP
            edges = np.unique(np.quantile(y, np.linspace(0, 1, GRADES)))
            y = np.clip(np.searchsorted(edges, y), 0, GRADES - 1)
            z = np.clip(np.searchsorted(edges, z), 0, GRADES - 1)
            vid = np.arange(z.size) // GROUP
    data = lightgbm.Dataset(X, y, group=sizes(qid) if objective == "lambdarank" else None)
    watched = lightgbm.Dataset(V, z, group=sizes(vid) if objective == "lambdarank" else None, reference=data)
    parameters = {"objective": objective, "metric": "None", "num_threads": threads, "verbose": -1, **options}
    return lightgbm.train(
        parameters,
        data,
        2000,
        valid_sets=[watched],
        feval=lambda scores, _: ("pairwise error", scorer(scores), False),
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )


def search(args):
    """Compare on generated search data."""
    results = []
    for seed in args.seeds:
        train, validation, test = split(args.rows, seed)
        settings = MANY_CURVES if args.rows >= MANY_ROWS else CURVES
        contenders = {
            "curves": lambda t=train, s=settings: AdditiveRanker(n_threads=1, **s).fit(*t),
            "linear": lambda t=train, v=validation: RankSVMCV(
                (1e-4, 1e-5, 1e-6), loss="squared_hinge", n_threads=1
            ).fit(*t, eval_set=v),
        }
        for name in args.against or TREES:
            objective, options = name.split(",")[0], TREES[name]
            contenders[name] = lambda t=train, v=validation, o=objective, p=options: boosted(t, v, o, **p)
        error, gain = ERROR.prepare(test[1], test[2]), NDCG.prepare(test[1], test[2])
        found = {}
        for name, fit in contenders.items():
            taken = []
            for _ in range(args.repeats if name in {"curves", "regression", "regression, fast"} else 1):
                start = time.process_time()
                model = fit()
                taken.append(time.process_time() - start)
            scores = model.predict(test[0])
            found[name] = {
                "seconds": min(taken),
                "error": error(scores),
                "ndcg": gain(scores),
                "by_query": error.per_query(scores).values,
            }
        results.append({"seed": seed, "rows": args.rows, **report(found)})
    write_json(f"curves_search_{args.rows}", {}, results=results)


def report(found):
    """Print one line per contender, and the bars."""
    own = found["curves"]
    print(f"\n{'':18} {'CPU s':>7} {'error':>8} {'NDCG@10':>8}  error above curves (paired SE)")
    for name, row in found.items():
        difference = row["by_query"] - own["by_query"]
        difference = difference[~np.isnan(difference)]
        row["above"], row["se"] = difference.mean(), difference.std(ddof=1) / np.sqrt(difference.size)
        print(
            f"{name:18} {row['seconds']:7.2f} {row['error']:8.4f} {row['ndcg']:8.4f}  "
            f"{row['above']:+.4f} ({row['se']:.4f})",
            flush=True,
        )
    trees = [row for name, row in found.items() if name not in {"curves", "linear"}]
    best = min(trees, key=lambda row: row["error"])
    ranks = [row for name, row in found.items() if name.startswith("lambdarank")]
    bars = {
        "error": bool(-best["above"] <= best["se"]),
        "a fifth of lambdarank's time": bool(5 * own["seconds"] <= min(row["seconds"] for row in ranks)),
        "NDCG@10": bool(own["ndcg"] >= max(row["ndcg"] for row in ranks) - 0.002),
    }
    if "regression" in found:
        bars["regression's time"] = bool(own["seconds"] <= found["regression"]["seconds"])
    print("bars:", ", ".join(f"{name} {'met' if met else 'MISSED'}" for name, met in bars.items()))
    plain = {name: {k: v for k, v in row.items() if k != "by_query"} for name, row in found.items()}
    return {"contenders": plain, "bars": bars}


def tune(args):
    """Walk small grids on seed 0, scored by the validation rows."""
    train, validation, _ = split(args.rows, 0)
    error, gain = ERROR.prepare(validation[1], validation[2]), NDCG.prepare(validation[1], validation[2])

    def show(name, fit):
        start = time.process_time()
        model = fit()
        taken = time.process_time() - start
        scores = model.predict(validation[0])
        print(f"{name:60} {error(scores):.5f} {gain(scores):.4f} {taken:6.2f} s", flush=True)

    for n_pairs in (20, 40, 80, 160):
        for alpha in (2e-3, 1e-3, 5e-4):
            options = {**CURVES, "alpha": alpha, "interactions": n_pairs}
            show(f"curves {options}", lambda o=options: AdditiveRanker(n_threads=1, **o).fit(*train))
    for leaves in (15, 31, 63):
        for rate in (0.05, 0.1):
            options = {"num_leaves": leaves, "learning_rate": rate}
            show(f"regression {options}", lambda o=options: boosted(train, validation, "regression", **o))
            for truncation in (30, 500):
                more = {**options, "lambdarank_truncation_level": truncation}
                show(f"lambdarank {more}", lambda o=more: boosted(train, validation, "lambdarank", **o))


def ablation(args):
    """Print what each part of the recipe is worth."""
    train, _, test = split(args.rows, args.seeds[0])
    error, gain = ERROR.prepare(test[1], test[2]), NDCG.prepare(test[1], test[2])
    variants = {
        "linear (2 knots, no surfaces)": {"n_knots": 2, "interactions": 0},
        "curves of 8 knots": {"interactions": 0},
        "curves of 32 knots": {"n_knots": 32, "interactions": 0},
        "+ 20 surfaces": {"interactions": 20},
        "+ 40 surfaces": {"interactions": 40},
        "+ 80 surfaces: the recipe": {},
        "+ 160 surfaces": {"interactions": 160},
        "the recipe, squared loss": {"loss": "squared", "tol": 1e-3},
        "the recipe, hinge": {"loss": "hinge", "tol": 1e-2},
        "the recipe, ridge on values": {"penalty": "ridge"},
        "the recipe, second differences": {"penalty": "second_difference"},
        "the recipe, alpha / 10": {"alpha": CURVES["alpha"] / 10},
        "the recipe, alpha * 10": {"alpha": CURVES["alpha"] * 10},
        "the recipe, 12 knots": {"n_knots": 12},
    }
    rows = []
    print(f"{'':34} {'error':>8} {'NDCG@10':>8} {'CPU s':>7}")
    for name, options in variants.items():
        start = time.process_time()
        model = AdditiveRanker(n_threads=1, **{**CURVES, **options}).fit(*train)
        taken = time.process_time() - start
        scores = model.predict(test[0])
        rows.append({"name": name, "error": error(scores), "ndcg": gain(scores), "seconds": taken})
        print(f"{name:34} {rows[-1]['error']:8.4f} {rows[-1]['ndcg']:8.4f} {taken:7.2f}", flush=True)
    write_json("curves_ablation", {}, results=rows, seed=args.seeds[0], rows=args.rows)


def picture(args):
    """Draw the page of the documentation."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from rankwise.displays import CurvesDisplay  # noqa: PLC0415

    X, y, qid = ohsumed()
    model = AdditiveRanker(1e-2, interactions=8, monotone={0: 1}, n_threads=1).fit(X, y, qid=qid)
    display = CurvesDisplay.from_estimator(model, n_curves=8, n_surfaces=4)
    target = Path(__file__).parents[1] / "docs" / "images" / "curves.png"
    target.parent.mkdir(exist_ok=True)
    display.figure_.savefig(target, dpi=70)
    print(f"written: {target}, {target.stat().st_size / 1000:.0f} kB")


def real_sets():
    """Return ``{name: load}``: ``(X, y, qid)`` with the rows of a query together."""
    root = data_sets.root()
    sets = {"ohsumed": ohsumed, "lightgbm": lambda: lightgbm_example(root / "lightgbm-rank")}
    for path in sorted((root / "pmlb-regression-ordinal").glob("*.tsv.gz")):
        sets[path.name.removesuffix(".tsv.gz")] = lambda path=path: pmlb(path)
    return sets


def ohsumed():
    X, y, qid = (np.concatenate(columns) for columns in zip(*data_sets.ohsumed(), strict=True))
    qid = np.unique(qid, return_inverse=True)[1]
    order = np.argsort(qid, kind="stable")
    return X[order], y[order], qid[order]


def lightgbm_example(folder):
    parts = []
    for part in ("train", "test"):
        with gzip.open(folder / f"rank.{part}.gz", "rt") as text:
            rows = [line.split() for line in text]
        X = np.zeros((len(rows), 301))
        for number, row in enumerate(rows):
            for cell in row[1:]:
                column, value = cell.split(":")
                X[number, int(column)] = float(value)
        group = np.loadtxt(folder / f"rank.{part}.query", dtype=int)
        qid = np.repeat(np.arange(group.size), group) + (1_000_000 if part == "test" else 0)
        parts.append((X, np.array([float(row[0]) for row in rows]), qid))
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def pmlb(path):
    with gzip.open(path, "rt") as text:
        names = text.readline().split("\t")
        table = np.loadtxt(text, delimiter="\t")
    table = table[np.random.default_rng(0).permutation(len(table))[:PMLB_ROWS]]
    target = [name.strip() for name in names].index("target")
    return np.delete(table, target, axis=1), table[:, target], np.zeros(len(table), dtype=int)


def folds(qid, seed=0, alike=None):
    """Yield rows to train on, to validate and to test: whole queries, or the rows of one ranking.

    Rows of one ranking that are the same in `alike` stay together.
    """
    rng = np.random.default_rng(seed)
    if qid[0] != qid[-1]:
        units = np.unique(qid, return_inverse=True)[1]
    elif alike is None:
        units = np.arange(qid.size)
    else:
        units = np.unique(alike, axis=0, return_inverse=True)[1].reshape(-1)
    fold = rng.permutation(np.arange(units.max() + 1) % 20)[units]
    for number in range(5):
        test = fold // 4 == number
        validation = (fold // 4 != number) & (fold % 4 == 0)
        yield ~test & ~validation, validation, test


def candidates(train, validation):
    """Return every contender tuned by the validation rows."""
    scorer = ERROR.prepare(validation[1], validation[2])

    def best_of(objective):
        tried = [
            boosted(train, validation, objective, num_leaves=n, learning_rate=0.05)
            for n in (4, 8, 16, 31, 63)
        ]
        return min(tried, key=lambda model: scorer(model.predict(validation[0])))

    def linear():
        scaler = StandardScaler().fit(train[0])
        model = RankSVMCV(loss="squared_hinge", n_threads=1)
        model.fit(
            scaler.transform(train[0]),
            *train[1:],
            eval_set=(scaler.transform(validation[0]), *validation[1:]),
        )
        return make_pipeline(scaler, model)

    def curves():
        return AdditiveRankerCV(n_threads=1).fit(*train, eval_set=validation)

    return {
        "linear": linear,
        "lambdarank": lambda: best_of("lambdarank"),
        "regression": lambda: best_of("regression"),
        "curves": curves,
    }


METHODS = ("linear", "lambdarank", "regression", "curves")


def compare_set(name, load, methods=METHODS, *, keeps_together=False):
    """Print and return what five folds say about one set."""
    X, y, qid = load()
    is_one = qid[0] == qid[-1]
    errors, seconds = {}, {}
    for parts in folds(qid, alike=X if keeps_together else None):
        train, validation, test = ((X[part], y[part], qid[part]) for part in parts)
        error = ERROR.prepare(test[1], test[2])
        for method, fit in candidates(train, validation).items():
            if method not in methods:
                continue
            start = time.process_time()
            model = fit()
            seconds[method] = seconds.get(method, 0.0) + time.process_time() - start
            scores = model.predict(test[0])
            own = [error(scores)] if is_one else error.per_query(scores).values
            errors.setdefault(method, []).append(np.asarray(own))
    joined = {method: np.concatenate(parts) for method, parts in errors.items()}
    means = {method: float(np.nanmean(values)) for method, values in joined.items()}
    best = min((method for method in means if method != "curves"), key=means.get)
    difference = joined["curves"] - joined[best]
    difference = difference[~np.isnan(difference)]
    se = float(difference.std(ddof=1) / np.sqrt(difference.size))
    met = bool(difference.mean() <= 2 * se)
    print(
        f"{name:22} {len(y):6} {X.shape[1]:4} "
        + " ".join(f"{means.get(method, np.nan):8.4f}" for method in METHODS)
        + f"   {best:10} {difference.mean():+.4f} ({se:.4f}) {'' if met else 'MISSED'}"
        + "   CPU s: "
        + ", ".join(f"{method} {taken:.1f}" for method, taken in seconds.items()),
        flush=True,
    )
    return {"name": name, "errors": means, "best_other": best, "difference": float(difference.mean()), "se": se,
            "met": met, "seconds": seconds}  # fmt: skip


def sets(args):
    """Compare on real sets."""
    known = real_sets()
    print(
        f"{'':22} {'rows':>6} {'cols':>4}   linear lambdarank regression curves   best other, curves less it (SE)"
    )
    rows = [
        compare_set(name, known[name], args.methods, keeps_together=args.together)
        for name in args.sets or known
    ]
    print(f"\nbar met on {sum(row['met'] for row in rows)} of {len(rows)}")
    write_json("curves_sets", {}, results=rows)


DEPTHS = {2: (4,), 3: (8,), -1: (4, 8, 16, 31)}  # and their numbers of leaves
DEPTH_SETS = ("227_cpu_small", "197_cpu_act", "294_satellite_image", "537_houses")


def depth(args):
    """Print the errors of trees by their depth, beside curves."""
    known, results = real_sets(), []
    for name in args.sets or DEPTH_SETS:
        X, y, qid = known[name]()
        for parts in list(folds(qid, seed=1))[:2]:
            train, validation, test = ((X[part], y[part], qid[part]) for part in parts)
            watch, error = ERROR.prepare(*validation[1:]), ERROR.prepare(*test[1:])
            found = {}
            for most, leaves in DEPTHS.items():
                tried = [
                    boosted(train, validation, "regression", num_leaves=n, learning_rate=0.05, max_depth=most)
                    for n in leaves
                ]
                best = min(tried, key=lambda model: watch(model.predict(validation[0])))
                found["any depth" if most < 0 else f"depth {most}"] = error(best.predict(test[0]))
            model = AdditiveRankerCV(n_threads=1).fit(*train, eval_set=validation)
            found["curves"] = error(model.predict(test[0]))
            results.append({"name": name, **found})
            print(
                f"{name:22} " + ", ".join(f"{kind} {value:.4f}" for kind, value in found.items()), flush=True
            )
    write_json("curves_depth", {}, results=results)


FIXED = [
    (n, count, alpha) for n, count in ((2, 0), (8, 0), (16, 0), (8, 80)) for alpha in (0.1, 0.03, 0.01, 0.003)
]


def choice(args):
    """Print the errors of settings that nobody chose, and of those that were chosen."""
    known, results = real_sets(), []
    for name in args.sets or ("lightgbm",):
        X, y, qid = known[name]()
        errors = {}
        for parts in folds(qid, seed=1):
            train, validation, test = ((X[part], y[part], qid[part]) for part in parts)
            error, own = ERROR.prepare(*test[1:]), candidates(train, validation)
            fits = {f"{method}, chosen": own[method] for method in ("regression", "linear", "curves")}
            for n, count, alpha in FIXED:
                fixed = AdditiveRanker(alpha, n_knots=n, interactions=count, n_threads=1)
                fits[f"curves of {n} knots, {count} surfaces, alpha {alpha}"] = lambda m=fixed, t=train: (
                    m.fit(*t)
                )
            for what, fit in fits.items():
                errors.setdefault(what, []).append(error.per_query(fit().predict(test[0])).values)
        joined = {what: np.concatenate(values) for what, values in errors.items()}
        for what, values in joined.items():
            difference = values - joined["regression, chosen"]
            difference = difference[~np.isnan(difference)]
            se = difference.std(ddof=1) / np.sqrt(difference.size)
            results.append({"name": name, "what": what, "error": np.nanmean(values), "se": se})
            print(
                f"{name:14} {what:46} {np.nanmean(values):.4f} {difference.mean():+.4f} ({se:.4f})",
                flush=True,
            )
    write_json("curves_choice", {}, results=results)


MILLION = ("curves", "lambdarank", "regression")
WIDE = 136


def million(args):
    """Measure every contender in a process of its own."""
    rows = args.rows if args.rows != SEARCH_ROWS else 1_000_000
    results = []
    with tempfile.TemporaryDirectory() as folder:
        X, y, qid = letor_like.make(rows)
        rng = np.random.default_rng(0)
        wide = np.empty((rows, WIDE), dtype=np.float32)
        wide[:, : X.shape[1]] = X
        for column in range(X.shape[1], WIDE):
            wide[:, column] = X[:, column % X.shape[1]] + rng.normal(0, 0.2, size=rows)
        for name, array in (("X", wide), ("y", y), ("qid", qid)):
            np.save(Path(folder) / f"{name}.npy", array)
        del X, wide
        for name in args.contenders or MILLION:
            command = [sys.executable, __file__, "million", "--one", name, "--folder", folder]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            results.append({"name": name, "rows": rows, **found})
            print(
                f"{name:12} {found['seconds']:8.1f} processor s, {found['memory']:.2f} times X beyond X, "
                f"error on its training rows {found['error']:.4f}",
                flush=True,
            )
    write_json(f"curves_million_{rows}", {}, results=results)


def resident(which):
    """Return the bytes of this process in memory, now or at most; `ru_maxrss` counts the parent's before the call."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(which)) * 1024


def one_of_a_million(args):
    """Print what one contender takes, as JSON."""
    X, y, qid = (np.load(Path(args.folder) / f"{name}.npy") for name in ("X", "y", "qid"))
    before = resident("VmRSS")
    start = time.process_time()
    if args.one == "curves":
        model = AdditiveRanker(n_threads=1, **{**CURVES, "interactions": 20}).fit(X, y, qid)
    else:
        is_ranking = args.one == "lambdarank"
        data = lightgbm.Dataset(X, y, group=sizes(qid) if is_ranking else None)
        model = lightgbm.train({"objective": args.one, "num_threads": 1, "verbose": -1}, data, 100)
    seconds = time.process_time() - start
    used = resident("VmHWM") - before
    error = ERROR.prepare(y, qid)(model.predict(X))
    print(json.dumps({"seconds": seconds, "memory": used / X.nbytes, "error": error}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tasks = ("search", "sets", "ablation", "picture", "tune", "million", "depth", "choice")
    parser.add_argument("what", choices=tasks)
    parser.add_argument("--rows", type=int, default=SEARCH_ROWS)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument(
        "--together", action="store_true", help="`sets`: rows of one ranking with equal columns in one fold"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=METHODS, help="the contenders of `sets`"
    )
    parser.add_argument("--against", nargs="+", choices=TREES, help="the trees of `search`; all by default")
    parser.add_argument("--contenders", nargs="+", choices=MILLION)
    parser.add_argument("--one", choices=MILLION, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    calls = {
        "search": search,
        "sets": sets,
        "ablation": ablation,
        "picture": picture,
        "tune": tune,
        "million": one_of_a_million if args.one else million,
        "depth": depth,
        "choice": choice,
    }
    calls[args.what](args)


if __name__ == "__main__":
    main()
