"""The mean of several candidates: its scores, figure, file, formula and place in the choice."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import rankwise
from rankwise import AutoRanker, AverageRanker, KernelRankRLS, RankRLS, RankSVM
from rankwise.exceptions import InvalidInputError
from rankwise.formula.reading import formula_of
from rankwise.metrics import get_metric
from rankwise.model_selection import predict_scores
from rankwise.pairs.figures import spread_inside


@pytest.fixture(scope="module")
def offers():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 4))
    # Curves, and a product of three columns that only kernels find: their mean is ahead of what columns explain.
    worth = X[:, 0] + 0.5 * np.abs(X[:, 1]) + 0.45 * X[:, :3].prod(axis=1) + 0.6 * rng.normal(size=300)
    y = np.round(np.clip(worth, 0, 4))
    table = pd.DataFrame(X, columns=["price", "rating", "size", "age"])
    table["colour"] = np.where(X[:, 3] > 0, "red", "blue")
    table.loc[rng.random(300) < 0.1, "age"] = np.nan
    return table, y, np.arange(300) // 15


@pytest.fixture(scope="module")
def chosen(offers):
    table, y, qid = offers
    model = AutoRanker(
        "ndcg@10", methods=["rls", "curves", "kernel", "average"], prefer="accuracy", estimate=False
    ).fit(table, y, qid=qid)
    assert isinstance(model.best_estimator_, AverageRanker)
    return model


def test_its_scores_are_a_weighted_sum_of_spreads_of_one(offers):
    _, y, qid = offers
    X = np.random.default_rng(0).normal(size=(300, 3))
    weight = np.random.default_rng(1).uniform(0.5, 2, size=300)
    parts = [RankRLS(), KernelRankRLS("rbf")]
    model = AverageRanker(parts).fit(X, y, qid=qid, sample_weight=weight)
    for share, fitted in zip(model.weights_, model.rankers_, strict=True):
        scores = predict_scores(fitted, X, qid)
        own = [
            scores[qid == query] - np.average(scores[qid == query], weights=weight[qid == query])
            for query in range(20)
        ]
        spread = np.sqrt(np.average(np.concatenate(own) ** 2, weights=weight))
        assert spread_inside(scores, qid, weight) == pytest.approx(spread)
        assert share == pytest.approx(1 / (2 * spread))
    again = clone(model).fit(X, y, qid=qid, sample_weight=weight)
    assert again.predict(X, qid) == pytest.approx(model.predict(X, qid))
    assert model.rank(X, qid=qid).min() == 1
    with pytest.raises(InvalidInputError, match="rankers is empty"):
        AverageRanker().fit(X, y)


@pytest.mark.parametrize(
    "silent", [RankRLS(), RankSVM(), RankSVM(loss="squared_hinge"), KernelRankRLS("poly")]
)
def test_who_says_nothing_inside_queries_adds_nothing(silent):
    """A column that differs between queries alone has a coefficient of rounding, if any."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(20), 6)
    X = np.column_stack([rng.normal(size=120), rng.normal(size=20)[qid]])
    y = X[:, 0] + 0.1 * rng.normal(size=120)
    model = AverageRanker([RankRLS(), make_pipeline(FunctionTransformer(_of_queries), silent)])
    model.fit(X, y, qid=qid)
    assert model.weights_[1] == 0.0
    assert model.score(X, y, qid=qid) == RankRLS().fit(X, y, qid=qid).score(X, y, qid=qid)


def _of_queries(X):
    return X[:, 1:]


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_spreads_of_any_size(size):
    scores, qid = np.random.default_rng(0).normal(size=30), np.arange(30) // 5
    assert spread_inside(size * scores, qid) == pytest.approx(size * spread_inside(scores, qid))
    assert spread_inside(scores + 1e9, qid) == pytest.approx(spread_inside(scores, qid), rel=1e-6)


def test_its_figure_is_that_of_the_mean_of_held_out_scores(chosen):
    search = chosen.search_
    problem, best = search.problem, search.chosen
    parts = [next(one for one in search.trials if one.candidate == part) for part in best.candidate.parts]
    weights = chosen.best_estimator_.weights_
    mean = sum(weight * part.held_out for weight, part in zip(weights, parts, strict=True))
    assert best.held_out / len(parts) == pytest.approx(mean)
    value = get_metric("ndcg@10")(problem.pairs.y, mean, problem.columns.qid)
    assert chosen.best_score_ == pytest.approx(value)


def test_only_what_is_close_to_the_best_is_in_it_one_of_each_form(chosen):
    search = chosen.search_
    single = [one for one in search.trials if not one.candidate.parts]
    means = [one for one in search.trials if one.candidate.parts]
    assert means
    for mean in means:
        parts = [next(one for one in single if one.candidate == part) for part in mean.candidate.parts]
        assert all(search.is_close(part, search.best(single), 4.0) for part in parts)
        forms = [part.candidate.form for part in parts]
        assert len(set(forms)) == len(forms) > 1
        assert parts[0] is search.best(single)


def test_it_is_left_out_where_methods_are_named_without_it(offers):
    table, y, qid = offers
    board = AutoRanker("ndcg@10", methods=["rls", "curves"], cv=3).fit(table, y, qid=qid).candidates_
    assert {entry.method for entry in board} == {"rls", "curves"}


def test_a_file_holds_it(chosen, offers):
    table, _, qid = offers
    file = io.BytesIO()
    chosen.save(file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    assert (again.predict(table, qid) == chosen.predict(table, qid)).all()
    assert again.candidates_.chosen.description == chosen.candidates_.chosen.description
    assert again.candidates_.chosen.alpha is None
    assert "mean of " in again.describe()
    assert again.describe().count(", \n") == 0


def test_its_formula_gives_its_scores(chosen, offers):
    table, _, qid = offers
    why = rankwise.explain(chosen, table, qid, rows=[0, 7])
    scores = chosen.predict(table, qid)
    assert [one.total for one in why] == pytest.approx(scores[[0, 7]].tolist())
    formula = formula_of(chosen)
    assert formula.kernel is not None
    assert formula.terms


@pytest.mark.parametrize("target", ["python", "json", "c", "javascript"])
def test_it_is_exported(chosen, target):
    assert target in chosen.candidates_.chosen.exportable_to
    assert rankwise.export(chosen, target)


def test_two_kernels_have_no_formula(offers):
    _, y, _ = offers
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = AverageRanker([KernelRankRLS("rbf"), KernelRankRLS("rbf", gamma=2.0)]).fit(X, y)
    with pytest.raises(InvalidInputError, match="several models with kernels"):
        formula_of(model)


def test_names_of_columns_are_those_of_the_last_fit(offers):
    table, y, qid = offers
    numbers = table[["price", "rating"]]
    model = AverageRanker([RankRLS(), RankRLS(2.0)]).fit(numbers, y, qid=qid)
    assert model.feature_names_in_.tolist() == ["price", "rating"]
    assert model.fit(table[["size", "price"]], y, qid=qid).feature_names_in_.tolist() == ["size", "price"]
    assert not hasattr(model.fit(numbers.to_numpy(), y, qid=qid), "feature_names_in_")
