"""Products of columns of queries with the others: offered to linear models, exported, explained and saved."""

import io

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from exported import run_duckdb, run_python
from rankwise import AutoRanker, RankRLS
from rankwise.automatic.average import AverageRanker
from rankwise.automatic.scaling import QueryProducts, of_queries
from rankwise.exceptions import InvalidInputError
from rankwise.formula.view import ModelView
from rankwise.model_selection import fit_ranker


@pytest.fixture(scope="module")
def choices():
    """Return offers of 60 searches, whose columns 3 and 4 are those of the search and tell what 1 and 2 are worth."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), 12)[rng.permutation(720)]
    offer, search = rng.normal(size=(720, 3)), rng.normal(size=(60, 2))[qid]
    worth = offer[:, 0] + 0.8 * search[:, 0] * offer[:, 2] - 0.6 * search[:, 1] * offer[:, 1]
    y = np.clip(np.floor(worth + 0.5 * rng.normal(size=720) - 1), 0, 4)
    return np.hstack([offer, search]), y, qid


@pytest.fixture(scope="module")
def model(choices):
    X, y, qid = choices
    return AutoRanker(estimate=False).fit(X, y, qid=qid)


def test_products_are_of_columns_of_queries_with_the_others(choices):
    X, _, qid = choices
    X = np.hstack([X, np.ones((len(X), 1))])  # a constant says nothing
    weight = np.arange(len(X)) % 3
    step = QueryProducts().fit(X, qid=qid, sample_weight=weight)
    assert step.of_query_.tolist() == [False, False, False, True, True, False]
    Z = StandardScaler().fit(X, sample_weight=weight).transform(X)
    made = np.column_stack([Z[:, list(columns)].prod(axis=1) for columns in step.made_of()])
    assert step.transform(X) == pytest.approx(made)
    assert made.shape[1] == 4 + 2 * 4


def test_a_column_that_varies_in_one_late_query_is_not_one_of_queries(choices):
    X, _, qid = choices
    X = X.copy()
    X[700, 3] += 1.0
    assert of_queries(X, qid).tolist() == [False, False, False, False, True]
    assert not of_queries(X, None).any()


def test_the_pipeline_is_fitted_again_with_query_ids_of_any_kind(choices, model):
    X, y, qid = choices
    again = fit_ranker(clone(model.best_estimator_), X, y, [f"search {one}" for one in qid])
    assert again.predict(X) == pytest.approx(model.predict(X))
    mean = AverageRanker([model.best_estimator_, RankRLS()]).fit(X, y, qid)
    assert mean.rankers_[0][0].of_query_.tolist() == [False, False, False, True, True]


@pytest.mark.parametrize("columns", [[0, 1, 2, 3, 4], [2, 3]])
def test_weights_are_named_by_the_columns_of_the_product(choices, columns):
    X, y, qid = choices
    names = [f"c{at}" for at in columns]
    step = QueryProducts()
    ranker = Pipeline([("products", step), ("ranker", RankRLS())])
    fit_ranker(ranker, X[:, columns], y, qid)
    found = ModelView.of(ranker).weights(names)
    said = [":".join(names[at] for at in parts) for parts in step.made_of()]
    assert found == dict(zip(said, ranker[-1].coef_.tolist(), strict=True))
    assert "c2:c3" in found


def test_columns_of_queries_alone_are_refused_in_words_about_them(choices):
    X, y, qid = choices
    with pytest.raises(InvalidInputError, match="Every column of X is constant inside each query"):
        AutoRanker().fit(X[:, 3:], y, qid=qid)


def test_they_are_chosen_where_they_are_ahead_and_linear_models_are_simpler(choices, model):
    X, y, qid = choices
    assert model.candidates_.chosen.description == "linear, squared loss, products"
    found = {one.candidate.scaling: one.candidate.complexity for one in model.search_.trials}
    assert found["standard"] < found["products"] < 1
    assert not model.needs_queries_
    plain = AutoRanker(estimate=False).fit(X[:, :3], y, qid=qid)
    assert "products" not in {one.scaling for one in plain.candidates_}
    hurried = AutoRanker(estimate=False, effort=1e-6).fit(X[:, :3], y, qid=qid)
    assert not any("products" in reason for reason in hurried.skipped_)
    assert model.best_score_ > plain.best_score_ + 0.05
    engine = AutoRanker(estimate=False, target="solr").fit(X, y, qid=qid)  # which multiplies nothing
    assert "products" not in {one.scaling for one in engine.candidates_}


def test_they_are_exported_explained_and_saved(choices, model):
    X, _, qid = choices
    scores = model.predict(X)
    for target, run in (("python", run_python), ("duckdb", run_duckdb)):
        assert target in model.candidates_.chosen.exportable_to
        arguments = (X, qid, False) if target == "python" else (X, qid)
        assert run(rankwise.export(model, target), *arguments) == pytest.approx(scores, abs=1e-9)
    (why,) = rankwise.explain(model, X, qid, rows=[3])
    assert why.total == pytest.approx(scores[3])
    assert {"x2:x3", "x1:x4"} <= {part.name for part in why.parts}
    importances = model.feature_importances_
    coef = dict(zip(model.best_estimator_[0].made_of(), np.abs(model.best_estimator_[-1].coef_), strict=True))
    assert importances[3] == pytest.approx(sum(size for columns, size in coef.items() if 3 in columns))
    assert not hasattr(model, "coef_")
    file = io.BytesIO()
    model.save(file)
    np.testing.assert_array_equal(rankwise.load(io.BytesIO(file.getvalue())).predict(X), scores)


def test_an_evaluation_set_has_its_own_products(choices):
    X, y, qid = choices
    held = qid >= 40
    model = AutoRanker("pairwise_error", estimate=False)
    model.fit(X[~held], y[~held], qid=qid[~held], eval_set=(X[held], y[held], qid[held]))
    trial = next(one for one in model.search_.trials if one.candidate.scaling == "products")
    assert trial.held_out == pytest.approx(trial.model.predict(X[held]))


def test_products_of_many_columns_are_left_to_surfaces():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(100), 20)
    X = np.hstack([rng.normal(size=(2000, 150)), rng.normal(size=(100, 40))[qid]])
    model = AutoRanker(estimate=False, prefer="readable").fit(X, X[:, 0] + rng.normal(size=2000), qid=qid)
    assert any(reason.endswith("products: more than a quarter of the budget") for reason in model.skipped_)
    assert "products" not in {one.scaling for one in model.candidates_}
