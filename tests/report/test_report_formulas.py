"""Pipelines that spread columns out are explained in the report by the columns that they began with."""

import json
import re

import numpy as np
import pytest
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

import rankwise
from rankwise import AverageRanker, KernelRankRLS, RankRLS
from rankwise.preprocessing import QueryScaler
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
    assert "a sum of the contributions of the columns" in page
    data = json.loads(
        re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL).group(1)
    )
    assert "price" in json.dumps(data)


@pytest.mark.parametrize("prepared", ["as they come", "scaled", "scaled inside queries"])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_kernel_is_explained_by_its_basis_rows(prepared, order):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(120, 3)), np.array([f"q{number // 12}" for number in range(120)])
    y = np.digitize(X[:, 0] ** 2 - X[:, 1], [-0.5, 0.5])
    if order == "shuffled":
        mixed = rng.permutation(120)
        X, y, qid = X[mixed], y[mixed], qid[mixed]
    scalers = {
        "as they come": [],
        "scaled": [("scale", StandardScaler())],
        "scaled inside queries": [("scale", QueryScaler())],
    }
    own = {"scale__qid": qid} if prepared == "scaled inside queries" else {}
    with sklearn.config_context(enable_metadata_routing=bool(own)):
        routed = {"qid": qid} if own else {"rank__qid": qid}
        model = Pipeline([*scalers[prepared], ("rank", KernelRankRLS("rbf", basis=15))]).fit(X, y, **routed)
        report = Report(model, X, y, qid)
    assert any(query.columns.size for query in report.opened)
    for query in report.opened:
        assert query.columns.size == 15
        for row in query.rows:
            assert row.parts.sum() == pytest.approx(report.scores[row.row], abs=1e-9)
    page = report.html()
    assert "the similarity of the row to each basis row" in page
    assert "basis row 3" in page


def test_one_ranking_by_a_kernel_is_explained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    report = Report(KernelRankRLS("rbf", basis=10).fit(X, X[:, 0] ** 2), X, X[:, 0] ** 2)
    for row in report.opened[0].rows:
        assert row.parts.sum() == pytest.approx(report.scores[row.row], abs=1e-9)


def test_a_mean_with_a_kernel_is_explained_by_columns_and_basis_rows():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(120, 3)), np.arange(120) // 12
    y = np.digitize(X[:, 0] ** 2 - X[:, 1], [-0.5, 0.5])
    parts = [RankRLS().fit(X, y, qid), KernelRankRLS("rbf", basis=10).fit(X, y, qid)]
    model = AverageRanker(tuple(parts)).fit(X, y, qid=qid)
    report = Report(model, X, y, qid, feature_names=["price", "age", "clicks"])
    constant = rankwise.explain(model, X, qid, rows=[0])[0].constant
    for query in report.opened:
        for row in query.rows:
            assert row.parts.sum() + constant == pytest.approx(report.scores[row.row], abs=1e-9)
    page = report.html()
    assert "the contributions of the columns" in page
    assert "basis row" in page
