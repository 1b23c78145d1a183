"""Tables: categories, missing values, dates and columns of the query reach curves, surfaces and trees as they are."""

import io

import numpy as np
import pandas as pd
import pytest

import rankwise
from exported import run_duckdb, run_python
from rankwise import AutoRanker
from rankwise.datasets import load_hotels
from rankwise.displays import CurvesDisplay
from rankwise.exceptions import InvalidInputError
from rankwise.report import Report


@pytest.fixture(scope="module")
def hotels():
    X, grade, search = load_hotels(return_X_y_qid=True)
    return X[:1200], grade[:1200], search[:1200]


@pytest.fixture(scope="module")
def model(hotels):
    X, grade, search = hotels
    return AutoRanker(methods=["rls", "surfaces"], estimate=False).fit(X, grade, qid=search)


def test_curves_and_surfaces_have_the_columns_and_values_of_the_table(model, hotels):
    X, grade, search = hotels
    curves = {curve.name: curve for curve in model.curves_}
    assert curves["kind"].labels == ["apartment", "hostel", "hotel"]
    assert curves["breakfast"].labels == ["False", "True"]
    assert curves["rating"].missing != 0
    assert "guests" not in curves  # one value in each search: it tells hotels apart in surfaces only
    first = model.surfaces_[0]
    assert first.names == ("kind", "guests")
    assert first.labels[0] == ["apartment", "hostel", "hotel"]
    assert list(model.feature_names_in_) == list(X)
    importances = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    assert importances["guests"] >= first.importance > 0
    assert model.best_estimator_.predict(X) == pytest.approx(model.predict(X))
    linear = AutoRanker(methods=["rls"], estimate=False).fit(X, grade, qid=search)
    assert model.best_score_ > linear.best_score_ + 0.03
    assert linear.coef_.size == len(linear.encoder_.get_feature_names_out())


def test_it_is_saved_explained_drawn_and_reported(model, hotels):
    X, grade, search = hotels
    file = io.BytesIO()
    rankwise.save(model, file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert [curve.labels for curve in again.curves_] == [curve.labels for curve in model.curves_]
    row = int(np.flatnonzero(X["rating"].isna())[0])
    (why,) = rankwise.explain(again, X, search, rows=[row])
    assert why.total == pytest.approx(model.predict(X)[row])
    assert any(part.name == "kind × guests" for part in why.parts)
    assert X["kind"][row] in why.text()
    assert "missing" in why.text()
    assert rankwise.feature_importance(again, X, grade, search, n_repeats=1).names == list(X)
    CurvesDisplay.from_estimator(again)
    assert Report(again, X, grade, search).scores == pytest.approx(model.predict(X))


def test_exports_give_its_scores(model, hotels):
    X, _, search = hotels
    given = X.assign(breakfast=X["breakfast"].astype(float))
    qid = np.asarray(search)
    found = run_python(rankwise.export(model, "python"), given, qid, False)
    assert found == pytest.approx(model.predict(X), abs=1e-9)
    found = run_duckdb(rankwise.export(model, "duckdb"), given, qid)
    assert found == pytest.approx(model.predict(X), abs=1e-9)
    assert {"python", "duckdb"} <= set(model.candidates_.chosen.exportable_to)


def test_choices_on_an_evaluation_set_and_estimates_on_few_rows_see_codes(hotels):
    X, grade, search = hotels
    parts = [(X[a:b], grade[a:b], search[a:b]) for a, b in ((0, 600), (600, 1200))]
    (X, y, qid), scored = parts
    watched = AutoRanker(methods=["rls", "surfaces"], estimate=False).fit(X, y, qid=qid, eval_set=scored)
    assert watched.encoder_.codes
    final = watched.metric_(scored[1], watched.predict(scored[0]), scored[2])
    assert watched.best_score_ == pytest.approx(final, abs=0.02)  # the search fits candidates loosely
    X, y, qid = X[:480], y[:480], qid[:480]
    small = AutoRanker(methods=["rls", "curves"]).fit(X, y, qid=qid)
    assert small.encoder_.codes
    low, high = small.expected_interval_
    assert low < small.expected_score_ < high
    assert abs(small.expected_score_ - small.best_score_) < 0.1


def test_trees_and_their_means_see_codes(hotels):
    X, grade, search = hotels
    X = X.assign(added=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(X)) % 50, unit="D"))
    model = AutoRanker(methods=["trees", "curves", "average"], prefer="accuracy", estimate=False)
    model.fit(X, grade, qid=search)
    mean = next(one for one in model.candidates_ if one.form == "average" and "trees" in one.description)
    assert "curves" in mean.description
    trees = AutoRanker(methods=["trees"], estimate=False).fit(X, grade, qid=search)
    assert trees.encoder_.codes
    file = io.BytesIO()
    rankwise.save(trees, file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.predict(X), trees.predict(X))
    (why,) = rankwise.explain(trees, X, search, rows=[3])
    assert {"kind", "guests"} <= {part.name for part in why.parts}
    assert f"{X['kind'][3]}" in why.text()


def test_duels_of_a_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"kind": rng.choice(["cup", "pot", None], 60), "price": rng.normal(size=60)})
    worth = X["price"] + 2 * (X["kind"] == "cup")
    pairs = rng.integers(60, size=(400, 2))
    pairs = pairs[worth.to_numpy()[pairs[:, 0]] > worth.to_numpy()[pairs[:, 1]]]
    model = AutoRanker(methods=["curves"]).fit_pairs(X, pairs)
    assert [curve.name for curve in model.curves_] == ["kind", "price"]
    assert model.predict_pairs_proba(X, pairs).mean() > 0.8


def test_wide_tables_have_no_curves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5001))
    model = AutoRanker(cv=3, estimate=False).fit(X, X[:, 0])
    assert "curves and surfaces: X has 5,001 columns, and they are for at most 5,000" in model.skipped_


def test_a_table_whose_fit_failed_is_forgotten():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model, table = AutoRanker(methods=["curves"], estimate=False), pd.DataFrame({"kind": ["a", "b"] * 30})
    with pytest.raises(InvalidInputError):
        model.fit(table, X[:-1, 0])
    assert model.fit(X, X[:, 0]).encoder_ is None
    assert model.score(X, X[:, 0]) > 0.9
