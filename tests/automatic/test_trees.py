"""Boosted trees: scores of plain nodes, files, explanations, the yardstick and their place in the choice."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import rankwise
from rankwise import AutoRanker
from rankwise.automatic.trees import BoostedTrees
from rankwise.exceptions import InvalidInputError, ModelFileError
from rankwise.metrics import pairwise_error
from rankwise.report import Report


@pytest.fixture(scope="module")
def rows():
    """Return a product of three signs, which neither curves nor surfaces find, with missing values."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(500, 3))
    y = np.sign(X).prod(axis=1) + 0.1 * rng.normal(size=500)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


@pytest.mark.parametrize("has_queries", [False, True])
def test_nodes_give_the_scores_of_scikit_learn(rows, has_queries):
    X, y = rows
    qid = np.arange(500) // 10 if has_queries else None
    model = BoostedTrees(20, n_leaves=8).fit(X, y, qid)
    rank = (pd.Series(y).rank() - 0.5) / 500
    target = rank - rank.groupby(np.zeros(500) if qid is None else qid).transform("mean")
    grower = HistGradientBoostingRegressor(
        max_iter=20, max_leaf_nodes=8, early_stopping=False, random_state=0
    ).fit(X, target)
    assert model.predict(X) == pytest.approx(grower.predict(X), abs=1e-12)
    assert model.n_trees_ == 20


@pytest.mark.parametrize("weight", [None, np.arange(500) % 2])
def test_a_column_without_values_is_in_no_tree(rows, weight):
    X, y = rows
    empty = np.where(np.arange(500) % 2 == 0, 1.0, np.nan) if weight is not None else np.full(500, np.nan)
    model = BoostedTrees(20).fit(np.column_stack([X, empty]), y, sample_weight=weight)
    plain = BoostedTrees(20).fit(X, y, sample_weight=weight)
    assert (model.predict(np.column_stack([X, empty])) == plain.predict(X)).all()


def test_a_table_with_a_name_in_every_row_is_learned_from():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"price": rng.random(300), "name": [f"hotel {row}" for row in range(300)]})
    model = AutoRanker(estimate=False).fit(table, table["price"].round(1), qid=np.arange(300) // 10)
    assert model.candidates_.chosen.value < 0.1


@pytest.fixture(scope="module")
def chosen(rows):
    X, y = rows
    filled = pd.DataFrame(np.nan_to_num(X), columns=["a", "b", "c"])
    return (
        AutoRanker(methods=["rls", "trees", "average"], prefer="accuracy", cv=3, estimate=False).fit(
            filled, y
        ),
        filled,
        y,
    )


def test_they_are_chosen_saved_and_refused_by_exports(chosen):
    model, X, y = chosen
    assert model.candidates_.chosen.form == "trees"
    linear = next(one for one in model.candidates_ if one.form == "linear")
    assert pairwise_error(y, model.predict(X)) < 0.25 < linear.value
    file = io.BytesIO()
    model.save(file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert model.candidates_.chosen.exportable_to == ()
    with pytest.raises(InvalidInputError, match="prefer='readable'"):
        rankwise.export(model, "json")
    assert rankwise.feature_importance(model, X, y, n_repeats=1).importances.min() > 0
    assert "<html" in Report(model, X, y).html()


def test_a_file_whose_nodes_lead_back_is_refused(chosen, monkeypatch):
    model, _, _ = chosen
    monkeypatch.setattr("rankwise.persistence._try", lambda _: None)  # which would walk in circles
    broken = model.best_estimator_
    children = broken.children_.copy()
    try:
        broken.children_ = np.zeros_like(children)
        file = io.BytesIO()
        model.save(file)
        with pytest.raises(ModelFileError, match="leads back"):
            rankwise.load(io.BytesIO(file.getvalue()))
    finally:
        broken.children_ = children


def test_they_are_explained_by_masking_columns(chosen):
    model, X, _ = chosen
    scores = model.predict(X)
    for row, why in zip([0, 7], rankwise.explain(model, X, rows=[0, 7]), strict=True):
        assert why.total == pytest.approx(scores[row])
        assert {part.name for part in why.parts} <= {"a", "b", "c", "columns together"}
        others = X.iloc[np.unique(np.linspace(0, 499, 32).astype(int))]
        masked = pd.concat([X.iloc[[row]]] * len(others), ignore_index=True).assign(b=others["b"].to_numpy())
        part = next(part for part in why.parts if part.name == "b")
        assert part.contribution == pytest.approx(scores[row] - model.predict(masked).mean())
    pair = rankwise.explain_pair(model, X, 1, 4)
    assert pair.total == pytest.approx(scores[1] - scores[4])


def test_the_yardstick_says_whether_trees_are_ahead(rows):
    X, y = np.nan_to_num(rows[0]), rows[1]
    model = AutoRanker(cv=3).fit(X, y)
    rival = next(one for one in model.candidates_ if one.is_rival)
    values = []
    for train, test in model.search_.problem.cv:
        values.append(pairwise_error(y[test], BoostedTrees().fit(X[train], y[train]).predict(X[test])))
    assert rival.value == pytest.approx(np.mean(values))
    ahead = model.best_score_ - rival.value
    assert f"Boosted trees are ahead by {ahead:.4f} ± " in model.describe()
    assert "; prefer='accuracy' uses them." in model.describe()
    linear = AutoRanker(cv=3).fit(X, X[:, 0])
    assert "Boosted trees are not ahead (" in linear.describe()
    duels = AutoRanker().fit_pairs(X, np.arange(500).reshape(-1, 2))
    assert "boosted trees as a yardstick: listed pairs" in duels.skipped_


def test_an_evaluation_set_stops_growth_and_columns_without_values_are_left_alone(rows):
    X, y = rows
    qid = np.arange(500) // 10
    empty = np.column_stack([X, np.full(500, np.nan)])
    model = BoostedTrees(n_leaves=8).fit(
        empty[:400], y[:400], qid[:400], eval_set=(empty[400:], y[400:], qid[400:])
    )
    assert model.n_trees_ in {40, 60, 90, 135, 200, 300, 450}
    same = BoostedTrees(model.n_trees_, n_leaves=8).fit(X[:400], y[:400], qid[:400])
    assert model.predict(empty) == pytest.approx(same.predict(X), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_fold_that_stops_growth_has_labels_that_differ(seed):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 3)), np.arange(60) // 10
    y = np.where(qid < 2, X[:, 0].round(1), 1.0)
    model = AutoRanker(methods=["trees"], estimate=False, random_state=seed).fit(X, y, qid)
    trial = model.search_.trials[0]
    assert sorted(np.unique(qid[trial.held_out != 0])) == sorted(np.unique(qid))
    assert trial.figure.per_unit.size == 2
