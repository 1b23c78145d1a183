"""Pipelines, means, streams and files of models; scores of exported programs; a table of metrics."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

import rankwise
from exported import columns_of, run
from golden.cases import ALPHAS, CLOSE, SMALL, SMOOTH, Group, summary
from golden.problems import N_ROWS, problem, splits
from rankwise import (
    AdditiveRanker,
    AutoRanker,
    AverageRanker,
    KernelRankRLS,
    RankRLS,
    RankRLSCV,
    RankSVM,
    metrics,
)
from rankwise.model_selection import cross_validate_ranker, fit_ranker, predict_scores
from rankwise.preprocessing import QueryScaler, TableEncoder

# --- pipelines ----------------------------------------------------------------------------------------------


def table():
    """Return numbers, some of them missing, and texts."""
    of = problem("grades")
    frame = pd.DataFrame(of.X[:, :3], columns=["price", "age", "rate"])
    frame.loc[::7, "age"] = np.nan
    frame["brand"] = np.array(["red", "blue", "grün"], dtype=object)[np.arange(N_ROWS) * 5 % 7 % 3]
    frame.loc[::11, "brand"] = None
    frame["title"] = [f"{word} shoe {number % 4}" for number, word in enumerate(["big", "small", "old"] * 16)]
    return frame


def columns_by_hand():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    text = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(sparse_output=False)
    )
    return ColumnTransformer([("numbers", numbers, ["price", "age", "rate"]), ("text", text, ["brand"])])


MODELS = {
    "standard": lambda: make_pipeline(StandardScaler(), RankRLS(2.0)),
    "min-max, squared hinge": lambda: make_pipeline(
        MinMaxScaler(), RankSVM(0.02, loss="squared_hinge", tol=1e-14)
    ),
    "max-abs, curves": lambda: make_pipeline(MaxAbsScaler(), AdditiveRanker(0.02, interactions=1, tol=1e-14)),
    "quantiles": lambda: make_pipeline(QuantileTransformer(n_quantiles=10), RankRLS(2.0)),
    "splines": lambda: make_pipeline(SplineTransformer(4, degree=1), RankRLS(2.0)),
    "standard, kernel": lambda: make_pipeline(StandardScaler(), KernelRankRLS(gamma=0.2, alpha=2.0)),
    "query min-max": lambda: make_pipeline(QueryScaler("minmax"), RankRLS(2.0)),
    "query standard": lambda: make_pipeline(QueryScaler("standard"), RankRLS(2.0)),
    "query rank": lambda: make_pipeline(
        StandardScaler(), QueryScaler("rank", passthrough=True), RankRLS(2.0)
    ),
    "mean": lambda: AverageRanker(
        [
            RankRLS(2.0),
            make_pipeline(StandardScaler(), KernelRankRLS(gamma=0.2)),
            AdditiveRanker(0.02, interactions=0, tol=1e-14),
        ]
    ),
    "table": lambda: make_pipeline(TableEncoder(), RankRLS(2.0)),
    "table with words": lambda: make_pipeline(
        TableEncoder(words=["title"], n_words=64, crosses=["brand:age"], min_rows=2), RankRLS(2.0)
    ),
    "table by hand": lambda: make_pipeline(columns_by_hand(), RankRLS(2.0)),
    "chosen": lambda: AutoRanker("pairwise_error", methods=["rls"], alphas=ALPHAS, cv=splits(problem().fold)),
}


def closeness(model):
    return SMOOTH if model in {"min-max, squared hinge", "max-abs, curves", "mean"} else CLOSE


def rows_of(model, labels):
    of = problem(labels)
    frame = table() if model == "table with words" else table().drop(columns="title")
    return frame if model.startswith("table") else of.X, of.y, of.qid


@cache
def fitted(model, labels):
    X, y, qid = rows_of(model, labels)
    return fit_ranker(MODELS[model](), X, y, qid)


def fit_pipeline(case, folder):
    """Score the training rows by the model, and by the model that comes back from its file."""
    X, _, qid = rows_of(**case)
    model, path = fitted(**case), Path(folder, "model.rankwise")
    scores = summary(predict_scores(model, X, qid))
    rankwise.save(model, path)
    again = summary(predict_scores(rankwise.load(path), X, qid))
    close = closeness(case["model"])
    return {"predictions": (scores, close), "from the file": (again, close)}


# --- ways around a fit --------------------------------------------------------------------------------------


def in_parts(of):
    half = of.qid < 3
    model = RankRLS(2.0).partial_fit(of.X[half], of.y[half], qid=of.qid[half])
    return model.partial_fit(of.X[~half], of.y[~half], qid=of.qid[~half]).coef_


def cross_validated(of):
    made = make_pipeline(StandardScaler(), RankRLSCV(ALPHAS, cv="leave-query-out"))
    found = cross_validate_ranker(
        made, of.X, of.y, of.qid, scoring=["concordance", "pairwise_error"], cv=splits(of.fold)
    )
    return [found[f"test_{name}"] for name in ("concordance", "pairwise_error")]


def explained(of):
    model = AdditiveRanker(0.02, interactions=1, tol=1e-14).fit(of.X, of.y, qid=of.qid)
    return [
        [part.contribution for part in one.parts] for one in rankwise.explain(model, of.X[:3], of.qid[:3])
    ]


def probabilities(of):
    model = RankSVM(0.02, loss="logistic", tol=1e-14).fit_pairs(of.X, of.pairs)
    return model.predict_pairs(of.X, of.pairs)


WAYS = {
    "partial_fit": in_parts,
    "cross_validate_ranker": cross_validated,
    "explain": explained,
    "predict_pairs": probabilities,
    "curves of a pair": lambda of: [
        value
        for alpha in SMALL
        for value in AdditiveRanker(alpha, interactions=0, tol=1e-14).fit_pairs(of.X, of.pairs).values_
    ],
}


def go(case, folder):
    values = WAYS[case["way"]](problem(case["labels"]))
    close = CLOSE if case["way"] in {"partial_fit", "cross_validate_ranker"} else SMOOTH
    return {"values": (summary(np.concatenate([np.ravel(part) for part in values])), close)}


# --- exports ------------------------------------------------------------------------------------------------

ENGINES = {"solr", "elasticsearch-ltr", "opensearch-ltr"}
QUERY_SCALED = {"query min-max", "query standard"}
# Every target but PostgreSQL, which is not at hand everywhere; the tests of exports compare it with the others.
TARGETS = ["python", "javascript", "c", "onnx", "sqlite", "duckdb", "vespa", "json", *sorted(ENGINES)]


def is_exportable(*, model, target):
    if target in ENGINES:
        return model in {"standard", "min-max, squared hinge"}
    if target == "vespa":
        return model not in {"standard, kernel", "query standard", "table"}
    return target not in {"sqlite", "duckdb"} or model != "standard, kernel"


def run_export(case, folder):
    model, target = case["model"], case["target"]
    X, _, qid = rows_of(model, "grades")
    made = rankwise.export(fitted(model, "grades"), target, feature_names=columns_of(X)[1], whole_query=True)
    place = Path(folder, f"{model} {target}")
    place.mkdir(exist_ok=True)
    scores = run(target, made, X, qid, model in QUERY_SCALED, place)
    return {
        "scores": (summary(scores), 1e-5 if target in ENGINES else closeness(model))
    }  # engines: single precision


# --- metrics ------------------------------------------------------------------------------------------------

METRICS = [
    ["ndcg", {}],
    ["ndcg", {"k": 3}],
    ["ndcg", {"k": 3, "ties": "stable", "empty": "zero"}],
    ["ndcg", {"gain": "linear", "discount": "letor", "empty": "one"}],
    ["mean_ndcg", {}],
    ["average_precision", {}],
    ["average_precision", {"k": 3, "relevant": 2, "ties": "stable"}],
    ["precision", {"k": 3}],
    ["precision", {"k": 2, "relevant": 2, "empty": "zero"}],
    ["reciprocal_rank", {}],
    ["reciprocal_rank", {"k": 2, "relevant": 3, "ties": "stable"}],
    ["err", {"max_grade": 3}],
    ["err", {"k": 2, "max_grade": 4, "empty": "zero"}],
    ["pairwise_error", {}],
    ["pairwise_error", {"ties": 1.0, "average": "pooled"}],
    ["concordance", {}],
    ["concordance", {"ties": 0.0, "average": "pooled"}],
    ["auc", {"relevant": 2}],
    ["auc", {"relevant": 1, "average": "pooled"}],
    ["kendall_tau", {}],
]


def measure(case, folder):
    """Measure scores that agree with the labels in part; one query has nothing relevant."""
    of = problem("grades")
    y = np.where(of.qid == 4, 0.0, of.y)
    scores = of.X[:, 0] + of.X[:, 1]
    if case["scores"] == "tied":
        scores = np.floor(scores)
    function, options = case["metric"]
    more = {"sample_weight": of.sample_weight} if case["weights"] else {}
    value = getattr(metrics, function)(y, scores, of.qid if case["queries"] else None, **options, **more)
    return {"value": ([float(value)], 1e-13)}


def is_measured(*, metric, scores, queries, weights):
    name = metric[0]
    return not weights or name in {"pairwise_error", "concordance", "auc", "kendall_tau"}


OTHERS = {
    "pipelines": Group(
        {"model": list(MODELS), "labels": ["real", "grades"]},
        lambda *, model, labels: labels == "grades" or not model.startswith("table"),
        fit_pipeline,
    ),
    "ways": Group({"way": list(WAYS), "labels": ["real", "grades"]}, lambda **_: True, go),
    "exports": Group(
        {
            "model": [
                "standard",
                "min-max, squared hinge",
                "max-abs, curves",
                "standard, kernel",
                *sorted(QUERY_SCALED),
                "table",
            ],
            "target": TARGETS,
        },
        is_exportable,
        run_export,
    ),
    "metrics": Group(
        {
            "metric": METRICS,
            "scores": ["distinct", "tied"],
            "queries": [True, False],
            "weights": [False, True],
        },
        is_measured,
        measure,
    ),
}
