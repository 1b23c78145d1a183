"""Web30K, Yahoo and Istella-S by ILMART's protocol, where their data are present.

The official split (Fold1 of Web30K): fitted on the training part, chosen by NDCG@10 of the validation part,
judged on the test part. NDCG as RankEval has it: gains 2^grade - 1, and a query without a relevant row counts
1. Published figures are those of ILMART (Lucchese et al., SIGIR 2022): NRGAM, EBM with 50 pairs, ILMART with 50
pairs, and full LambdaMART.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

import data
import letor_like
from cases.published import PUBLISHED, markdown
from harness import Case, Figure, Results, measured, t_interval
from rankwise import AdditiveRankerCV, RankRLSCV
from rankwise.data import save_svmlight
from rankwise.metrics import get_metric
from rankwise.model_selection import fit_ranker

CLAIM = "web search"
PARTS = ("train", "vali", "test")
NDCG = get_metric("ndcg@10", empty="one")
METRIC = "NDCG@10, RankEval's"


def load(name: str) -> list[tuple]:
    """Return training, validation and test rows."""
    if name == "generated":
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, f"{part}.txt") for part in PARTS]
            for seed, path in enumerate(paths):
                X, y, qid = letor_like.make(1_000, rows_a_query=40, seed=seed)
                save_svmlight(X, y, path, qid=qid)
            return data.read_svmlight(paths)
    found = [path for path in data.files(name) if "Fold1" in path.parts or name != "MSLR-WEB30K"]
    chosen = [
        next(path for path in found if part[:4] in path.stem.replace("valid", "vali")) for part in PARTS
    ]
    return data.read_svmlight(chosen)


def fit(name: str, train: tuple, valid: tuple, quick: bool):
    if name == "LightGBM, rank":
        from lightgbm import LGBMRanker  # noqa: PLC0415

        found = [
            fit_ranker(
                LGBMRanker(n_estimators=20 if quick else 500, num_leaves=leaves, n_jobs=1, verbose=-1), *train
            )
            for leaves in (32, 64, 128)
        ]
        return max(found, key=lambda model: NDCG(valid[1], model.predict(valid[0]), valid[2]))
    make = {"AdditiveRankerCV": AdditiveRankerCV, "RankRLSCV": RankRLSCV}[name]
    return make(scoring=NDCG, n_threads=1).fit(*train, eval_set=valid)


def measure(name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    train, valid, (X, y, qid) = load(name)
    for contender in contenders:
        with threadpool_limits(1), measured() as cost:
            model = fit(contender, train, valid, quick)
        units = NDCG.prepare(y, qid).per_query(model.predict(X)).values
        spent = {"processor_seconds": cost.processor_seconds, "peak_memory": cost.memory}
        yield Figure(contender, METRIC, *t_interval(units), n=units.size, **spent)


SETS = tuple(PUBLISHED["ILMART"])
CONTENDERS = ("RankRLSCV", "AdditiveRankerCV", "LightGBM, rank")
CASES = [
    *(Case(CLAIM, name, CONTENDERS, partial(measure, name), (name,), 60.0) for name in SETS),
    Case(CLAIM, "generated", CONTENDERS, partial(measure, "generated"), smoke=True),
]


def table(results: Results) -> str:
    names = ["NRGAM", "EBM", "ILMART", "LambdaMART"]
    rows = [[f"{name}, published", *(_published(one, name) for one in SETS)] for name in names]
    for contender in CONTENDERS:
        found = [results.show("{value:.4f}", CLAIM, one, contender, METRIC) for one in SETS]
        rows.append([contender, *(text.replace("not run", "not run: no data") for text in found)])
    return markdown([METRIC, *SETS], rows)


def _published(one: str, name: str) -> str:
    value = PUBLISHED["ILMART"][one].get(name)
    return f"{value:.4f}" if value else ""


TABLES = {"web": table}
