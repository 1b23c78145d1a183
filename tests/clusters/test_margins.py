"""Losses with margins are evaluated on the workers, and equal those of all pairs."""

import numpy as np
import pytest
from sklearn.base import clone

from on_cluster import in_blocks, ranking_data
from rankwise import RankSVM, RankSVMCV
from rankwise.data.queries import encode_queries
from rankwise.distributed import distribute
from rankwise.distributed.design import DaskDesign
from rankwise.pairs.labels import find_levels
from rankwise.pairs.violations import ViolationSweep


def sweep_of(y, qid, rng):
    queries = encode_queries(qid)
    weight, scale = rng.integers(3, size=y.size).astype(float), rng.random(len(queries))
    return ViolationSweep.from_levels(find_levels(y, queries), queries, row_weight=weight, scale=scale)


def counted_on(client, X, qid, pairs):
    design = distribute(in_blocks(X, [90]), client=client, timeout=60).X.grouped(qid).as_design(1)
    found = design.counting(pairs)
    assert found is not None
    return design, *found


@pytest.mark.parametrize("is_scattered", [False, True])
def test_every_sum_is_the_one_of_all_pairs(client, is_scattered):
    X, y, qid = ranking_data(50)
    rng = np.random.default_rng(0)
    qid = rng.permutation(qid) if is_scattered else qid
    sweep = sweep_of(y, qid, rng)
    _, scores, pairs = counted_on(client, X, qid, sweep)
    one, other = rng.normal(size=(2, 10))
    here = sweep.at(X @ one - 0.3 * (X @ other))
    there = pairs.at(scores.dot(one) - 0.3 * scores.dot(other))

    def same(found, expected):
        assert np.allclose(found, expected, rtol=1e-11, atol=1e-11)

    same(there.hinge(), here.hinge())
    same(there.active, here.active)
    same(scores.tdot(there.net_wins / 2), X.T @ here.net_wins / 2)
    value, gradient = here.squared_hinge()
    own_value, own_gradient = there.squared_hinge()
    same(own_value, value)
    same(scores.tdot(own_gradient), X.T @ gradient)
    same(own_gradient @ scores.dot(other), gradient @ X @ other)
    for width in (None, 0.7):
        same(there.degrees(width), here.degrees(width))
    same(scores.tdot(there.laplacian(scores.dot(other))), X.T @ here.laplacian(X @ other))
    smoothed, own = here.smoothed(0.4), there.smoothed(0.4)
    same([own.value, own.active], [smoothed.value, smoothed.active])
    same(own.gradient @ scores.dot(one), smoothed.gradient @ X @ one)
    same(pairs.at(scores.zero_scores()).hinge(), sweep.at(np.zeros(y.size)).hinge())


def objective(model, X, y, qid):
    """The mean over queries of the mean loss, pair by pair, with its penalty."""
    assert model.query_weight == "equal"
    scores = X @ model.coef_
    means = []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        slack = [1 - (scores[i] - scores[j]) for i in rows for j in rows if y[i] > y[j]]
        if slack:
            means.append((np.maximum(slack, 0) ** (2 if model.loss == "squared_hinge" else 1)).mean())
    penalty = 1.0 if model.column_penalty is None else model.column_penalty
    return np.mean(means) + model.alpha * (penalty * model.coef_) @ model.coef_


@pytest.mark.parametrize(
    "model",
    [
        RankSVM(1e-2, tol=1e-6),
        RankSVM(1e-2, tol=1e-4, solver="bundle"),
        RankSVM(1e-3, loss="squared_hinge", tol=1e-8),
        RankSVM(1e-2, tol=1e-4, prior=np.linspace(-1, 1, 10)),
        RankSVM(1e-2, tol=1e-5, column_penalty=1.0 + np.arange(10) % 4),
    ],
    ids=["smoothing", "bundle", "newton", "prior", "penalties"],
)
def test_fits_exchange_no_scores(client, model, monkeypatch):
    X, y, qid = ranking_data(51)
    here = clone(model).fit(X, y, qid=qid)

    def refuse(design, v):
        raise AssertionError("scores came to the client")

    monkeypatch.setattr(DaskDesign, "dot", refuse)
    monkeypatch.setattr(DaskDesign, "tdot", refuse)
    there = clone(model).fit(in_blocks(X, [90]), y, qid=qid)
    allowed = here.duality_gap_ + there.duality_gap_ + 1e-12
    assert there.duality_gap_ <= 1.01 * here.duality_gap_ + 1e-12
    if model.prior is None:
        assert abs(objective(here, X, y, qid) - objective(there, X, y, qid)) <= allowed
    assert np.linalg.norm(here.coef_ - there.coef_) <= 2 * np.sqrt(allowed / model.alpha)


@pytest.mark.parametrize(
    "model",
    [
        RankSVM(1e-3, loss="squared_hinge", tol=1e-6, positive=True),
        RankSVM(1e-2, loss="squared_hinge", tol=1e-6, positive=True, column_penalty=np.arange(10) % 4),
    ],
    ids=["positive", "free and positive"],
)
def test_bounded_fits_are_those_of_a_local_fit(client, model):
    X, y, qid = ranking_data(51)
    here = clone(model).fit(X, y, qid=qid)
    there = clone(model).fit(in_blocks(X, [90]), y, qid=qid)
    assert np.allclose(here.coef_, there.coef_, rtol=0, atol=1e-6 * np.abs(here.coef_).max())


def test_paths_of_folds_are_those_of_a_local_fit(client):
    X, y, qid = ranking_data(52, sparse=True)
    model = RankSVMCV([1e-1, 1e-3], loss="squared_hinge", cv=3, tol=1e-8)
    here, there = clone(model).fit(X, y, qid=qid), clone(model).fit(in_blocks(X, [90]), y, qid=qid)
    assert np.allclose(here.cv_errors_, there.cv_errors_)
    assert here.alpha_ == there.alpha_
