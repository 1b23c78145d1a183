"""Models whose formulas are tested: pipelines as people have them, with data that show every step."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from rankwise import AdditiveRanker, KernelRankRLS, RankRLS, RankSVM
from rankwise.model_selection import fit_ranker
from rankwise.preprocessing import QueryScaler

N_ROWS = 120


def rows(seed=0):
    """Return a matrix of columns on different scales, labels and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 4)) * [1, 30, 0.02, 5] + [0, 1000, 1, -3]
    y = np.digitize(X[:, 0] + X[:, 1] / 30 + rng.normal(size=N_ROWS), [32, 33, 34])
    return X, y, np.repeat(np.arange(12), 10)


def with_gaps(seed=0):
    """Return rows in which numbers are missing."""
    X, y, qid = rows(seed)
    X[np.random.default_rng(seed + 1).random(X.shape) < 0.15] = np.nan
    return X, y, qid


def frame(seed=0):
    """Return a table with numbers, gaps and categories."""
    X, y, qid = with_gaps(seed)
    table = pd.DataFrame(X, columns=["price", "age of it", "rate", "size"])
    rng = np.random.default_rng(seed + 2)
    table["brand"] = rng.choice(["red", "blue", 'o\'hara "x"', "grün"], N_ROWS).astype(object)
    table["grade"] = rng.choice([1.0, 2.0, 5.0], N_ROWS)
    table.loc[::17, "brand"] = None
    return table, y, qid


def table_steps():
    """Return what prepares such a table."""
    numbers, text = ["price", "age of it", "rate", "size"], ["brand"]
    return ColumnTransformer(
        [
            (
                "numbers",
                Pipeline([("fill", SimpleImputer(add_indicator=True)), ("scale", StandardScaler())]),
                numbers,
            ),
            ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), text),
            ("grade", OneHotEncoder(drop="first", sparse_output=False), ["grade"]),
        ]
    )


PLAIN = {
    "alone": [],
    "standard": [StandardScaler()],
    "two scalers": [StandardScaler(), MinMaxScaler()],
    "min-max, clipped": [MinMaxScaler(clip=True)],
    "max-abs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "splines": [SplineTransformer(n_knots=4)],
    "splines, linear outside": [
        SplineTransformer(n_knots=3, degree=2, extrapolation="linear", include_bias=False)
    ],
    "lines, linear outside": [SplineTransformer(n_knots=4, degree=1, extrapolation="linear")],
    "splines that go on": [SplineTransformer(n_knots=3, extrapolation="continue"), StandardScaler()],
    "splines of degree 0": [MinMaxScaler(clip=True), SplineTransformer(n_knots=4, degree=0)],
    "bins": [KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf")],
    "numbered bins": [KBinsDiscretizer(3, encode="ordinal", strategy="uniform"), StandardScaler()],
    "power": [PowerTransformer()],
    "power of what is positive": [MinMaxScaler(feature_range=(1, 2), clip=True), PowerTransformer("box-cox")],
    "quantiles": [QuantileTransformer(n_quantiles=10)],
    "quantiles that repeat": [
        KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
        QuantileTransformer(n_quantiles=10),
    ],
    "normal quantiles": [QuantileTransformer(n_quantiles=10, output_distribution="normal")],
    "some as they are": [
        ColumnTransformer(
            [("scale", StandardScaler(), [1]), ("keep", "passthrough", [3]), ("leave", "drop", [0])],
            remainder="passthrough",
        )
    ],
    "by slices and by flags": [
        ColumnTransformer(
            [
                ("slice", StandardScaler(), slice(0, 2)),
                ("flags", MinMaxScaler(), [False, False, True, True]),
                ("beside", Pipeline([("as it is", "passthrough"), ("all", None)]), slice(1, 3)),
            ]
        )
    ],
    "side by side": [
        FeatureUnion(
            [("a", StandardScaler()), ("b", SplineTransformer(n_knots=3))], transformer_weights={"a": 2.0}
        )
    ],
}
QUERIES = {
    "query min-max": [QueryScaler("minmax")],
    "query standard": [QueryScaler("standard")],
    "query rank": [QueryScaler("rank")],
    "scaled, then by query": [StandardScaler(), QueryScaler("minmax")],
}
GAPS = {
    "filled": [SimpleImputer(add_indicator=True), StandardScaler()],
    "filled with medians": [SimpleImputer(strategy="median")],
    "filled, then by query": [SimpleImputer(), QueryScaler("standard")],
}
KERNELS = {
    "linear": KernelRankRLS("linear", basis=15, random_state=0),
    "rbf": KernelRankRLS("rbf", gamma=0.3, basis=15, random_state=0),
    "polynomial": KernelRankRLS("poly", gamma=0.2, kernel_params={"degree": 2}, basis=15, random_state=0),
    "laplacian": KernelRankRLS("laplacian", gamma=0.3, basis=15, random_state=0),
    "sigmoid": KernelRankRLS("sigmoid", gamma=0.01, basis=15, random_state=0),
}


def fit(steps, ranker, X, y, qid):
    """Fit a pipeline; queries reach what scales by them."""
    parts = [(f"step{number}", step) for number, step in enumerate(steps)]
    return fit_ranker(Pipeline([*parts, ("ranker", ranker)]) if parts else ranker, X, y, qid)


@cache
def case(name):  # noqa: C901, PLR0911 - one branch per kind of data
    """Return a fitted model, rows, labels and query ids, by the name of a pipeline; made once, to be looked at."""
    if name == "filled texts":
        X, y, qid = frame()
        brand = [
            SimpleImputer(strategy="constant", fill_value="none"),
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        ]
        return fit(brand, RankRLS(0.5), X[["brand"]], y, qid), X[["brand"]], y, qid
    if name == "rare table":
        X, y, qid = frame()
        codes = OneHotEncoder(
            handle_unknown="infrequent_if_exist", min_frequency=30, drop="first", sparse_output=False
        )
        return fit([codes], RankRLS(0.5), X[["brand", "grade"]], y, qid), X[["brand", "grade"]], y, qid
    if name in {"table", "ordinal table"}:
        X, y, qid = frame()
        if name == "table":
            return fit([table_steps()], RankRLS(0.5), X, y, qid), X, y, qid
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
        return (
            fit([codes, StandardScaler()], RankRLS(0.5), X[["brand", "grade"]], y, qid),
            X[["brand", "grade"]],
            y,
            qid,
        )
    if name == "curves":
        X, y, qid = with_gaps()
        return AdditiveRanker(interactions=2, alpha=0.01).fit(X, y, qid), X, y, qid
    if name == "curves of one value":
        X, y, qid = rows()
        X[np.random.default_rng(6).random(len(X)) < 0.4, 3] = np.nan
        X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, 2.5)
        return AdditiveRanker(interactions=[(0, 3), (1, 3)], alpha=0.01).fit(X, y, qid), X, y, qid
    if name == "curves and levels":
        X, y, qid = with_gaps()
        X[:, 3] = np.random.default_rng(5).integers(0, 4, len(X))
        model = AdditiveRanker(interactions=[(0, 1), (0, 3)], categorical=[3], alpha=0.01)
        return model.fit(X, y, qid), X, y, qid
    if name == "curves of scaled columns":
        X, y, qid = rows()
        return fit([StandardScaler()], AdditiveRanker(interactions=0, alpha=0.01), X, y, qid), X, y, qid
    if name in KERNELS:
        X, y, qid = rows()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The kernel is indefinite")
            return fit([StandardScaler()], KERNELS[name], X, y, qid), X, y, qid
    if name in GAPS:
        X, y, qid = with_gaps()
        return fit(GAPS[name], RankRLS(0.5), X, y, qid), X, y, qid
    X, y, qid = rows()
    return fit({**PLAIN, **QUERIES}[name], RankSVM(0.1), X, y, qid), X, y, qid


CURVES = ["curves", "curves and levels", "curves of one value", "curves of scaled columns"]
NAMES = [*PLAIN, *QUERIES, *GAPS, *KERNELS, *CURVES, "table", "ordinal table", "rare table", "filled texts"]
