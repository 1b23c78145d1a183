"""Which rule chooses best, and whether curves want the squared loss too: on the sets that were developed on alone.

Of each table 300 to 800 rows train and the others test, as one ranking, cut into queries of 20 rows, and as queries of
five grades. ``rules`` fits `AutoRanker`, scores every candidate on the test rows, and reports what several rules would
have lost against the best of them. ``curves`` fits `AdditiveRankerCV` with both losses, and reports what choosing
between them by held-out figures gains.

    RANKWISE_DATA=... python benchmarks/bench_auto_rules.py rules
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from bench_auto import QUERY, _table, families, tables
from rankwise import AdditiveRankerCV, AutoRanker
from rankwise.automatic.search import Search
from rankwise.data.summary import is_graded
from rankwise.metrics import get_metric
from rankwise.model_selection import predict_scores

SIZES = (300, 500, 800)
LEVELS = (0.5, 0.75, 0.9, 0.97)


def settings(n_seeds):
    """Training and test rows of every table that was developed on, in every form."""
    developed, paths = list(families())[::2], tables()
    for seed in range(n_seeds):
        for name in (name for name in developed if name in paths):
            one = _table(name, paths[name])[0]
            order = np.random.default_rng(seed + 10).permutation(len(one.y))
            n = min(SIZES[seed % len(SIZES)], len(one.y) * 6 // 10)
            grades = np.digitize(one.y, np.quantile(one.y, LEVELS)).astype(float)
            forms = {"one ranking": one.y, "queries": one.y}
            if np.unique(one.y).size >= 12:
                forms["grades"] = grades
            for form, y in forms.items():
                yield f"{name}, {form}", one.X, y, order[:n], order[n:], form != "one ranking"


def scorer(y, rows, has_queries):
    """What loses how much on some rows, and the query ids of these."""
    qid = np.arange(len(rows)) // QUERY if has_queries else None
    metric = get_metric("ndcg@10" if has_queries and is_graded(y) else "pairwise_error")
    sign = -1 if metric.greater_is_better else 1
    return metric, qid, lambda scores: sign * metric(y[rows], scores, *(() if qid is None else (qid,)))


def choices(search: Search):
    """What each rule would choose."""
    trials = search.trials
    best = search.best(trials)
    single = [trial for trial in trials if not trial.candidate.parts]
    means = [trial for trial in trials if trial.candidate.parts]
    close = [trial for trial in means if search.is_close(trial, best, 1.0)]
    closer = [trial for trial in means if search.is_close(trial, best, 2.0)]
    return {
        "the rule: of close means the one of most parts": (close or [best])[0],
        "of close means the best": search.best(close or [best]),
        "the same within two standard errors": (closer or [best])[0],
        "the best figure": best,
        "the best single candidate": search.best(single),
        "one standard error": search.choose("one-standard-error"),
    }


def rules(n_seeds):
    lost = {}
    for name, X, y, train, test, has_queries in settings(n_seeds):
        metric, qid, _ = scorer(y, train, has_queries)
        _, test_qid, loss = scorer(y, test, has_queries)
        search = AutoRanker(metric, n_threads=1).fit(X[train], y[train], qid).search_
        losses = {one.candidate: loss(predict_scores(one.model, X[test], test_qid)) for one in search.trials}
        for rule, chosen in choices(search).items():
            lost.setdefault(rule, []).append(losses[chosen.candidate] - min(losses.values()))
        print(f"{name}: {next(iter(lost.values()))[-1]:.4f}", flush=True)
    now = np.array(next(iter(lost.values())))
    for rule, values in lost.items():
        change = np.array(values) - now
        error = change.std(ddof=1) / np.sqrt(now.size)
        print(f"{rule:48} regret {np.mean(values):.4f}, {change.mean():+.4f} ± {error:.4f} beside the rule")


def curves(n_seeds):
    found = []
    for _, X, y, train, test, has_queries in settings(n_seeds):
        metric, qid, _ = scorer(y, train, has_queries)
        _, _, loss = scorer(y, test, has_queries)
        row = []
        for kind in ("squared_hinge", "squared"):
            start = time.process_time()
            model = AdditiveRankerCV(interactions=0, cv=5, scoring=metric, loss=kind, n_threads=1)
            model.fit(X[train], y[train], qid)
            took = time.process_time() - start
            held_out = -model.best_score_ if metric.greater_is_better else model.best_score_
            row.append((held_out, loss(model.predict(X[test])), took))
        found.append(row)
    (by_hinge, hinge, hinge_s), (by_squared, squared, squared_s) = np.moveaxis(np.array(found), 0, 2)
    chosen = np.where(by_squared < by_hinge, squared, hinge)
    for words, change in (("squared", squared - hinge), ("chosen", chosen - hinge)):
        error = change.std(ddof=1) / np.sqrt(change.size)
        print(f"{words} less squared hinge: {change.mean():+.4f} ± {error:.4f}, {change.size} settings")
    print(f"seconds: squared hinge {hinge_s.mean():.2f}, squared {squared_s.mean():.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("rules", "curves"))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    {"rules": rules, "curves": curves}[options.what](options.seeds)


if __name__ == "__main__":
    main()
