"""Pipelines that spread columns out are explained in the report by the columns that they began with."""

import json
import re

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

import rankwise
from rankwise import RankRLS
from rankwise.report import Report


@pytest.mark.parametrize("kind", ["splines", "filled"])
def test_the_parts_of_a_row_add_up_to_its_score(kind):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(120, 3)), rng.integers(0, 3, 120), np.arange(120) // 12
    steps = [("spline", SplineTransformer(4)), ("scale", StandardScaler())]
    if kind == "filled":
        X[::7, 1] = np.nan
        steps = [("fill", SimpleImputer(add_indicator=True)), ("scale", StandardScaler())]
    model = Pipeline([*steps, ("rank", RankRLS())]).fit(X, y, rank__qid=qid)
    report = Report(model, X, y, qid, feature_names=["price", "age", "clicks"])
    constant = rankwise.explain(model, X, qid, rows=[0])[0].constant
    for query in report.opened:
        for row in query.rows:
            assert row.parts.sum() + constant == pytest.approx(report.scores[row.row], abs=1e-9)
    page = report.html()
    assert "a sum of what each column adds" in page
    data = json.loads(
        re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL).group(1)
    )
    assert "price" in json.dumps(data)
