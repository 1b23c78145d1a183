"""Parts of scores add up in the report: columns as they were before pipelines, and basis rows of kernels."""

import json
import re

import numpy as np
import pytest
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

import rankwise
from rankwise import AverageRanker, KernelRankRLS, RankRLS
from rankwise.preprocessing import QueryScaler
from rankwise.report import Report

RNG = np.random.default_rng(0)
X, ORDER = RNG.normal(size=(120, 3)), RNG.permutation(120)
GAPS = np.where((np.arange(120) % 7 == 0)[:, None] & (np.arange(3) == 1), np.nan, X)
Y, QID = np.digitize(X[:, 0] ** 2 - X[:, 1], [-0.5, 0.5]), np.array([f"q{at // 12}" for at in range(120)])
KERNEL = KernelRankRLS("rbf", basis=15)


def mean():
    parts = [RankRLS().fit(X, Y, QID), KERNEL.fit(X, Y, QID)]
    return AverageRanker(tuple(parts)).fit(X, Y, qid=QID)


MODELS = {  # steps, whether the model has columns, and basis rows
    "scaled": ([StandardScaler(), RankRLS()], True, False),
    "splines": ([SplineTransformer(4), StandardScaler(), RankRLS()], True, False),
    "filled": ([SimpleImputer(add_indicator=True), StandardScaler(), RankRLS()], True, False),
    "kernel": ([KERNEL], False, True),
    "kernel, scaled": ([StandardScaler(), KERNEL], False, True),
    "kernel, scaled inside queries": ([QueryScaler(), KERNEL], False, True),
    "mean": (None, True, True),
}


@pytest.mark.parametrize("made", MODELS)
@pytest.mark.parametrize("queries", ["sorted", "shuffled", "one"])
def test_the_parts_of_a_row_add_up_to_its_score(made, queries):
    steps, has_columns, has_basis = MODELS[made]
    rows = ORDER if queries == "shuffled" else np.arange(120)
    own, y, qid = (
        (GAPS if made == "filled" else X)[rows],
        Y[rows],
        np.full(120, "q") if queries == "one" else QID[rows],
    )
    if steps is None:
        model = mean()
    else:
        with sklearn.config_context(enable_metadata_routing=True):
            model = make_pipeline(*steps).fit(own, y, qid=qid)
    report = Report(model, own, y, qid, feature_names=["price", "age", "clicks"])
    constant = rankwise.explain(model, own, qid, rows=[0])[0].constant
    for query in report.opened:
        assert query.columns.size == (15 * has_basis + 3 * has_columns)
        for row in query.rows:
            assert row.parts.sum() + constant == pytest.approx(report.scores[row.row], abs=1e-9)
            for part, value in zip(query.columns, row.values, strict=True):
                np.testing.assert_equal(value, own[row.row, part] if part < 3 * has_columns else None)
    page = report.html()
    assert ("the contributions of the columns" in page) == has_columns
    assert ("the similarity of the row to each basis row" in page) == has_basis
    data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL).group(1)
    assert ("price" in json.dumps(json.loads(data))) == has_columns
