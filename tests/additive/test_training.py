"""Training losses of additive models: the preconditioner made of a sample of the rows."""

import numpy as np
import pytest

from rankwise.additive.fitting import Blueprints
from rankwise.additive.training import Training, sample_of
from rankwise.data.queries import encode_queries
from rankwise.losses import SquaredHingeLoss
from rankwise.objectives import MarginObjective
from rankwise.pairs.labelled import LabelPairs
from rankwise.solvers.solution import Status

ROWS = 4000


def correlated(n_queries):
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(ROWS, 1)) + 0.1 * rng.normal(size=(ROWS, 6)))
    y = np.digitize(X[:, 0] * X[:, 1] + rng.normal(size=ROWS), [1.0, 3.0]).astype(float)
    return X, y, encode_queries(np.arange(ROWS) % n_queries)


def training_of(y, queries):
    pairs = LabelPairs(y, queries, None, None, "exclude", "magnitude", "equal")
    return Training(pairs, "squared_hinge", 1e-5, None)


@pytest.mark.parametrize("n_queries", [1, 100])
@pytest.mark.parametrize("surfaces", [(), ((0, 1), (2, 5))], ids=["curves", "surfaces"])
def test_a_sample_of_the_rows_preconditions_all_of_them(n_queries, surfaces):
    X, y, queries = correlated(n_queries)
    layout = Blueprints(X, queries, None, [], "difference", {}, 1).at(8, 5).layout(surfaces)
    training = training_of(y, queries)
    alpha = 1e-7
    plain = training.margin_fit.solve(layout.design, training.graph, alpha)
    reads = layout.design.reads
    found = training.on(layout.design, layout.coordinates.nonnegative)(alpha, None, 1e-5)
    assert plain.status is found.status is Status.CONVERGED
    assert layout.design.reads - reads < reads
    objective = MarginObjective(layout.design, training.graph, SquaredHingeLoss)
    values = [objective.at(one.coef).value + alpha * (one.coef @ one.coef) for one in (plain, found)]
    assert values[0] == pytest.approx(values[1], rel=1e-3)


def test_there_is_no_sample_of_few_rows_nor_without_pairs():
    X, y, queries = correlated(1)
    pairs = training_of(y, queries).pairs
    assert sample_of(pairs, ROWS // 2 + 1) is None
    rows, part = sample_of(pairs, 1000)
    np.testing.assert_array_equal(part.y, y[rows])
    rare = np.zeros(ROWS)
    rare[np.setdiff1d(np.arange(ROWS), rows)[0]] = 1.0
    training = training_of(rare, queries)
    assert sample_of(training.pairs, 1000) is None
    layout = Blueprints(X, queries, None, [], "difference", {}, 1).at(8, 5).layout(())
    assert training.on(layout.design, layout.coordinates.nonnegative)(1e-3, None, 1e-5).status.is_good
