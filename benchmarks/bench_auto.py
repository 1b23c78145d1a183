"""The automatic choice beside what it chooses from, and beside what people would use instead.

Protocol, fixed before any result was looked at:

- Sets: OHSUMED (QueryLevelNorm and Feature-min), the ranking example of a boosting library, parse ranking, Boston
  housing, the small part of RCV1, and the tables of PMLB with at least 200 rows. Of each table at most 2,000 rows,
  drawn at random; each is used twice: as one ranking, and cut at random into queries of 20 rows.
- Sorted by name, every second set was developed on (``--half develop``), the others are reported (``--half report``).
- Five outer folds of whole queries, or of rows. The metric is what `AutoRanker` would choose: NDCG@10 for grades inside
  queries, otherwise the pairwise error (losses are printed: 1 - NDCG).
- Inside each outer fold every candidate that the search tried is kept as it was fitted to the training rows, and scored
  on the test rows. *Regret* is the value of the choice less that of the candidate with the best mean over the outer
  folds: an optimistic rival, chosen on the test rows. A candidate here is a method on scaled columns, with the options
  (ties, cost, labels by rank) that had the best held-out figure in that fold, or the mean of several; it must have been
  tried in every fold. *Fair* regret takes the rival's luck away: it is chosen on a random half of the test units and
  measured on the other half, 400 times (added later, before the runs that report it).
- "before" is what ``rankwise fit`` did until now: RankRLS on two or four scalings, by its own figure, then RankSVM.
- LightGBM has its defaults: LGBMRanker for grades inside queries, LGBMRegressor otherwise, because the ranker refuses
  real-valued labels and more than 10,000 rows a query.
- A difference is significant where it is more than two standard errors, paired over all held-out queries, or over
  blocks of 30 held-out rows of one ranking.

    RANKWISE_DATA=... python benchmarks/bench_auto.py --half report
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from lightgbm import LGBMRanker, LGBMRegressor
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import data_sets
from harness import write_json
from rankwise import AutoRanker, RankRLSCV, RankSVMCV
from rankwise.automatic.candidates import Candidate
from rankwise.data.summary import is_graded
from rankwise.metrics import get_metric
from rankwise.model_selection import QueryKFold, fit_ranker, predict_scores
from rankwise.preprocessing import QueryScaler

ROWS, QUERY, BLOCK, FOLDS = 2000, 20, 30, 5


@dataclass
class Set:
    name: str
    X: Any
    y: np.ndarray
    qid: np.ndarray | None

    @property
    def metric(self):
        return get_metric("ndcg@10" if self.qid is not None and is_graded(self.y) else "pairwise_error")


def tables():
    """The tables of PMLB with at least 200 rows, by name."""
    paths = sorted((data_sets.root() / "pmlb-regression-ordinal").glob("*.tsv.gz"))
    found = {path.name.removesuffix(".tsv.gz"): path for path in paths}
    for name, path in list(found.items()):
        with gzip.open(path, "rt") as file:
            if sum(1 for _ in file) <= 200:
                del found[name]
    return found


def _table(name, path):
    with gzip.open(path, "rt") as file:
        header = file.readline().rstrip("\n").split("\t")
        values = np.loadtxt(file, delimiter="\t")
    at = header.index("target")
    rows = np.random.default_rng(0).permutation(len(values))[:ROWS]
    return _both(name, np.delete(values, at, axis=1)[rows], values[rows, at])


def families():
    """What reads the sets of each name; those of one table together."""
    found = {f"OHSUMED-{one}": partial(_ohsumed, one) for one in ("QueryLevelNorm", "Feature-min")}
    found |= {"boosting-example": _boosting, "parses": _parses, "boston": _boston, "rcv1-small": _rcv1}
    found |= {name: partial(_table, name, path) for name, path in tables().items()}
    return dict(sorted(found.items()))


def _ohsumed(variant):
    X, y, qid = (np.concatenate(part) for part in zip(*data_sets.ohsumed(variant), strict=True))
    return [Set(f"OHSUMED-{variant}", X, y, qid)]


def _parses():
    X, y, qid = zip(*data_sets.parse_ranking(), strict=True)
    ids = np.concatenate([[f"{part}-{one}" for one in ids] for part, ids in enumerate(qid)])
    return [Set("parses", sp.vstack(X, format="csr"), np.concatenate(y), ids)]


def _boston():
    path = data_sets.root() / "boston-housing" / "boston_house_prices.csv"
    rows = np.loadtxt(path, delimiter=",", skiprows=2)
    return _both("boston", rows[:, :-1], rows[:, -1])


def _both(name, X, y):
    qid = np.random.default_rng(1).permutation(len(y)) // QUERY
    return [Set(f"{name}, one ranking", X, y, None), Set(f"{name}, queries", X, y, qid)]


def _boosting():
    folder = data_sets.root() / "lightgbm-rank"
    X, y, qid = [], [], []
    for part in ("train", "test"):
        with gzip.open(folder / f"rank.{part}.gz", "rt") as file:
            for line in file:
                label, *cells = line.split()
                row = np.zeros(301)
                for cell in cells:
                    column, value = cell.split(":")
                    row[int(column)] = float(value)
                X.append(row)
                y.append(float(label))
        sizes = np.loadtxt(folder / f"rank.{part}.query", dtype=int)
        qid.append(np.repeat(np.arange(sizes.size) + 1000 * (part == "test"), sizes))
    return [Set("boosting-example", np.array(X), np.array(y), np.concatenate(qid))]


def _rcv1():
    labels, start, indices, values = [], [0], [], []
    with gzip.open(data_sets.root() / "rcv1-vw-small" / "rcv1_small.dat.gz", "rt") as file:
        for line in file:
            head, _, cells = line.partition("|f")
            labels.append(float(head.split()[0]))
            for cell in cells.split():
                column, _, value = cell.partition(":")
                indices.append(int(column))
                values.append(float(value or 1))
            start.append(len(indices))
    X = sp.csr_matrix((values, indices, start))
    _, columns = np.unique(X.indices, return_inverse=True)
    X = sp.csr_matrix((X.data, columns.astype(np.int32), X.indptr))
    return [Set("rcv1-small", X, np.array(labels), None)]


def before(one, train, metric):
    """What ``rankwise fit`` did: scalings by least squares, then margins on the best."""
    X, y, qid = one.X[train], one.y[train], None if one.qid is None else one.qid[train]
    names = ["none", "max-abs" if sp.issparse(X) else "standard"]
    if qid is not None and not sp.issparse(X):
        names += ["query-minmax", "query-standard"]
    makers = {
        "none": lambda: None,
        "max-abs": MaxAbsScaler,
        "standard": StandardScaler,
        "query-minmax": lambda: QueryScaler("minmax"),
        "query-standard": lambda: QueryScaler("standard"),
    }
    sign = -1 if metric.greater_is_better else 1
    tried = []

    def attempt(name, ranker):
        scaler = makers[name]()
        Z = X
        if scaler is not None:
            Z = scaler.fit_transform(X, qid=qid) if name.startswith("query") else scaler.fit_transform(X)
        ranker.fit(Z, y, qid)
        tried.append((sign * ranker.best_score_, len(tried), name, scaler, ranker))

    for name in names:
        attempt(name, RankRLSCV(scoring=metric))
    best = min(tried)[2]
    attempt(best, RankSVMCV(scoring=metric, loss="squared_hinge"))
    if min(tried)[4] is tried[-1][4]:
        attempt(best, RankSVMCV(scoring=metric, loss="hinge"))
    _, _, name, scaler, ranker = min(tried)

    def score(rows):
        Z = one.X[rows]
        if scaler is not None:
            ids = None if one.qid is None else one.qid[rows]
            Z = scaler.transform(Z, qid=ids) if name.startswith("query") else scaler.transform(Z)
        return ranker.predict(Z)

    return score


def boosted(one, train, metric):
    """LightGBM with its defaults."""
    is_graded_query = metric.base_name == "ndcg"
    model = (LGBMRanker if is_graded_query else LGBMRegressor)(verbose=-1, n_jobs=1, random_state=0)
    if is_graded_query:
        fit_ranker(model, one.X[train], one.y[train], one.qid[train])
    else:
        model.fit(one.X[train], one.y[train])
    return lambda rows: model.predict(one.X[rows])


def judged(one, test, scores, seed):
    """The loss on test rows, and that of each query, or of blocks of one ranking."""
    metric = one.metric
    if one.qid is not None:
        units = metric.prepare(one.y[test], one.qid[test]).per_query(scores)
        per_unit = units.values[units.counted]
        value = float(np.mean(per_unit))
    else:
        blocks = np.random.default_rng(seed).permutation(len(test)) // BLOCK
        blocks = np.minimum(blocks, max(len(test) // BLOCK - 1, 0))
        units = metric.prepare(one.y[test], blocks).per_query(scores)
        value, per_unit = metric(one.y[test], scores), units.values[units.counted]
    return (1 - value, 1 - per_unit) if metric.greater_is_better else (value, per_unit)


def without_luck(choice, candidates, times=400):
    """Regret against the candidate that is best on half of the test units, measured on the other half."""
    units = np.array([np.concatenate([values for _, values in own]) for own in candidates.values()])
    rng, found = np.random.default_rng(0), []
    for _ in range(times):
        order = rng.permutation(choice.size)
        chosen_by, measured_on = order[: choice.size // 2], order[choice.size // 2 :]
        rival = units[np.argmin(units[:, chosen_by].mean(axis=1))]
        found.append(np.mean(choice[measured_on] - rival[measured_on]))
    return float(np.mean(found))


def run(one, options):
    """Losses of every method, unit by unit over all outer folds, and of every candidate."""
    metric = one.metric
    units = one.qid
    splits = (
        KFold(FOLDS, shuffle=True, random_state=0).split(one.y)
        if units is None
        else QueryKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros((len(one.y), 1)), groups=units)
    )
    losses, candidates, seconds = {}, {}, {}
    chosen = []
    for number, (train, test) in enumerate(splits):
        qid = None if units is None else units[train]

        def scorer(scores, test=test, number=number):
            return judged(one, test, scores, number)

        start = time.process_time()
        auto = AutoRanker(metric, basis=options.basis, n_threads=1).fit(one.X[train], one.y[train], qid)
        took = {"auto": time.process_time() - start}
        ids = None if units is None else units[test]
        scores, kinds = {}, {}
        for trial in sorted(auto.search_.trials, key=auto.search_.loss, reverse=True):
            scores[trial.candidate] = np.asarray(predict_scores(trial.model, one.X[test], ids))
            kinds[Candidate(trial.candidate.method, trial.candidate.scaling)] = trial.candidate
        for kind, best in kinds.items():
            candidates.setdefault(kind, []).append(scorer(scores[best]))
        found = {rule: scores[auto.search_.choose(rule).candidate] for rule in ("best", "one-standard-error")}
        chosen.append(auto.search_.choose("best").candidate.describe())
        start = time.process_time()
        rls = RankRLSCV(scoring=metric, n_threads=1).fit(one.X[train], one.y[train], qid)
        found["RankRLSCV()"] = rls.predict(one.X[test])
        took["RankRLSCV()"] = time.process_time() - start
        start = time.process_time()
        found["before"] = before(one, train, metric)(test)
        took["before"] = time.process_time() - start
        start = time.process_time()
        found["LightGBM"] = boosted(one, train, metric)(test)
        took["LightGBM"] = time.process_time() - start
        for name, own in found.items():
            losses.setdefault(name, []).append(scorer(own))
        for name, own in took.items():
            seconds.setdefault(name, []).append(own)
    everywhere = {one: values for one, values in candidates.items() if len(values) == FOLDS}
    best = min(everywhere, key=lambda one: np.mean([value for value, _ in everywhere[one]]))
    best_loss = float(np.mean([value for value, _ in everywhere[best]]))
    means = {name: float(np.mean([value for value, _ in own])) for name, own in losses.items()}
    per_unit = {name: np.concatenate([values for _, values in own]) for name, own in losses.items()}
    verdicts = {}
    for rule in ("best", "one-standard-error"):
        for peer in ("RankRLSCV()", "before", "LightGBM"):
            difference = per_unit[rule] - per_unit[peer]
            error = difference.std(ddof=1) / np.sqrt(difference.size)
            gap = means[rule] - means[peer]
            verdicts[f"{rule} / {peer}"] = (
                "worse" if gap > 2 * error else "better" if gap < -2 * error else ""
            )
    return {
        "set": one.name,
        "metric": metric.name,
        "rows": len(one.y),
        "means": means,
        "best candidate": "the mean of several" if best.method == "average" else best.describe(),
        "best candidate's loss": best_loss,
        "regret": {rule: means[rule] - best_loss for rule in ("best", "one-standard-error")},
        "regret without luck": {
            rule: without_luck(per_unit[rule], everywhere) for rule in ("best", "one-standard-error")
        },
        "verdicts": verdicts,
        "seconds": {name: float(np.mean(own)) for name, own in seconds.items()},
        "chosen": chosen,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--half", choices=("develop", "report", "all"), default="report")
    parser.add_argument("--only", nargs="+", help="sets whose name contains one of these")
    parser.add_argument("--basis", type=int, default=AutoRanker().basis)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = families()
    keep = {"develop": slice(0, None, 2), "report": slice(1, None, 2), "all": slice(None)}[options.half]
    results = []
    columns = ("best", "one-standard-error", "RankRLSCV()", "before", "LightGBM")
    print(
        f"{'set':32} {'metric':15} {'best':>7} {'1-se':>7} {'RLSCV':>7} {'before':>7} {'LGBM':>7} "
        f"{'regret':>7} {'1-se':>7} {'fair':>7} {'1-se':>7}  auto s  worse than (best; 1-se)"
    )
    for name in list(names)[keep]:
        if options.only and not any(part in name for part in options.only):
            continue
        for one in names[name]():
            found = run(one, options)
            results.append(found)
            worse = [
                ",".join(
                    peer
                    for peer in ("RankRLSCV()", "before", "LightGBM")
                    if found["verdicts"][f"{rule} / {peer}"] == "worse"
                )
                for rule in columns[:2]
            ]
            print(
                f"{one.name[:32]:32} {one.metric.name:15} "
                + " ".join(f"{found['means'][name]:7.4f}" for name in columns)
                + f" {found['regret']['best']:7.4f} {found['regret']['one-standard-error']:7.4f}"
                f" {found['regret without luck']['best']:7.4f}"
                f" {found['regret without luck']['one-standard-error']:7.4f}"
                f"  {found['seconds']['auto']:6.2f}  {worse[0]}; {worse[1]}   [{found['best candidate']}]",
                flush=True,
            )
    if not results:
        return
    for rule in columns[:2]:
        regret = np.mean([found["regret"][rule] for found in results])
        counts = {
            peer: sum(found["verdicts"][f"{rule} / {peer}"] == "worse" for found in results)
            for peer in ("RankRLSCV()", "before", "LightGBM")
        }
        fair = np.mean([found["regret without luck"][rule] for found in results])
        worse = f"significantly worse: {counts} of {len(results)}"
        print(f"{rule}: mean regret {regret:.4f}, fair {fair:.4f}; {worse}")
    if not options.only:
        write_json(f"auto-{options.half}", {}, results=results)


if __name__ == "__main__":
    main()
