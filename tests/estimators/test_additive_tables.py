"""Additive models of tables: texts, booleans, dates and missing values, as people write them."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import rankwise
from optional import polars
from rankwise import AdditiveRanker, AdditiveRankerCV
from rankwise.datasets import load_hotels
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing import TableEncoder


def shop(seed=0, rows=400):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["cup", "dish", "pot", "urn", None], rows, p=[0.4, 0.3, 0.19, 0.01, 0.1])
    table = pd.DataFrame(
        {
            "price": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows).round(3)),
            "kind": kind,
            "new": rng.random(rows) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, rows), unit="D"),
            "nothing": np.full(rows, np.nan),
            "name": [f"item {at}" for at in range(rows)],
        }
    )
    y = table["price"].fillna(1) + 2 * (kind == "cup") - (kind == "pot") + table["new"]
    return table, y + 0.1 * rng.normal(size=rows), np.arange(rows) // 20


def test_curves_are_labelled_as_people_write_values():
    X, y, qid = shop()
    model = AdditiveRanker(interactions=[("price", "kind")]).fit(X, y, qid=qid)
    curves = {curve.name: curve for curve in model.curves_}
    assert list(curves) == ["price", "kind", "new", "day"]  # the others tell no rows apart
    assert curves["price"].labels is None
    assert curves["kind"].labels == ["cup", "dish", "pot", "other"]
    assert curves["new"].labels == ["False", "True"]
    assert curves["day"].labels[0] == "2024-01-01"
    assert curves["kind"].missing != 0
    cup, _, pot, _ = curves["kind"].values  # noqa: PD011
    assert cup > 0 > pot
    assert model.surfaces_[0].labels == (None, ["cup", "dish", "pot", "other"])
    importances = dict(zip(model.feature_names_in_, model.feature_importances_, strict=True))
    assert importances["kind"] == curves["kind"].importance + model.surfaces_[0].importance
    assert importances["name"] == importances["nothing"] == 0
    assert model.score(X, y, qid=qid) > 0.9


@pytest.mark.parametrize(
    "ranker", [AdditiveRanker(interactions=2), AdditiveRankerCV(cv=3, interactions=[0, 1])]
)
def test_a_table_is_the_array_of_its_codes(ranker):
    X, y, qid = shop()
    codes = TableEncoder(codes=True).fit_transform(X)
    plain = clone(ranker).set_params(categorical=[1]).fit(codes, y, qid=qid)
    model = ranker.fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X), plain.predict(codes))
    order = X[X.columns[::-1]].assign(more="unknown")
    np.testing.assert_array_equal(model.predict(order), plain.predict(codes))


@pytest.mark.parametrize("made", [pa.Table.from_pandas, polars.from_pandas])
def test_a_table_may_be_of_any_package(made):
    X, y, qid = shop()
    model = AdditiveRanker(interactions=2)
    expected = clone(model).fit(X, y, qid=qid).predict(X)
    np.testing.assert_array_equal(model.fit(made(X), y, qid=qid).predict(X), expected)


def test_unknown_levels_are_taken_together_with_rare_ones():
    X, y, qid = shop()
    model = AdditiveRanker(interactions=0).fit(X, y, qid=qid)
    kind = next(curve for curve in model.curves_ if curve.name == "kind")
    new = X.iloc[[0] * 5].assign(kind=["cup", "urn", "vase", None, "NA"])
    at = dict(zip(kind.labels, kind.values, strict=True))
    wanted = np.array([at["cup"], at["other"], at["other"], kind.missing, kind.missing])
    found = model.predict(new)
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=1e-12)
    few = AdditiveRanker(interactions=0).fit(
        X[X["kind"].isin(["cup", "pot"])][["kind"]], y[X["kind"].isin(["cup", "pot"])]
    )
    np.testing.assert_allclose(few.predict(pd.DataFrame({"kind": ["vase", None]})), 0)  # the average


def test_thousands_of_levels():
    rng = np.random.default_rng(0)
    level = rng.integers(5000, size=40_000)
    X = pd.DataFrame({"shop": np.char.add("shop ", level.astype(str)), "price": rng.normal(size=40_000)})
    y = 3 * (level % 7 == 0) + X["price"]
    model = AdditiveRanker(interactions=0, tol=0.1).fit(X, y, qid=np.arange(40_000) // 10)
    curve = model.curves_[0]
    assert curve.labels[-1] == "other"
    assert len(curve.labels) == 1024
    is_high = np.array([int(label.removeprefix("shop ")) % 7 == 0 for label in curve.labels[:-1]])
    values = curve.values[:-1]  # noqa: PD011
    assert values[is_high].min() > values[~is_high].mean()


def test_saved_models_and_explanations_speak_of_the_table(tmp_path):
    X, y, qid = shop()
    model = AdditiveRanker(interactions=[("kind", "new")]).fit(X, y, qid=qid)
    rankwise.save(model, tmp_path / "model.rank")
    again = rankwise.load(tmp_path / "model.rank")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert [curve.labels for curve in again.curves_] == [curve.labels for curve in model.curves_]
    row = int(np.flatnonzero(X["kind"].isna())[0])
    text = rankwise.explain(again, X, qid, rows=[row])[0].text()
    assert f"missing, {X['new'][row]}" in text
    assert f"{X['day'][row]:%Y-%m-%d}" in text
    found = rankwise.feature_importance(again, X, y, qid, n_repeats=1)
    assert found.names == list(X)
    assert found.importances[1] > 0.1


def test_hotels_that_suit_families():
    X, grade, search = load_hotels(return_X_y_qid=True)
    model = AdditiveRanker(interactions=1).fit(X, grade, qid=search)
    (surface,) = model.surfaces_
    assert surface.names == ("kind", "guests")
    apartment = surface.labels[0].index("apartment")
    assert np.argmax(surface.values[apartment]) == 2  # noqa: PD011 - of 1, 2 and 4 guests
    made = TableEncoder(crosses=["kind:guests"]).fit(X, qid=search)
    assert "kind=hostel:guests" in made.get_feature_names_out()


def test_lists_are_sent_to_the_encoder():
    X, y, _ = shop(rows=40)
    X["vector"] = [[1.0, 2.0]] * 40
    with pytest.raises(InvalidInputError, match=r"no codes for lists.*vector.*Hint"):
        AdditiveRanker().fit(X, y)


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 5)), np.zeros((2, 7)), np.zeros(6), np.full((2, 6), np.inf), [["cup"] * 6]]
)
def test_arrays_that_are_no_codes_of_the_table_are_refused(wrong):
    X, y, qid = shop()
    model = AdditiveRanker(interactions=0).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(model.encoder_.transform(X)), model.predict(X))
    with pytest.raises(InvalidInputError, match=r"fitted to a table of 6 columns.*Hint"):
        model.predict(wrong)


def test_curves_of_another_table_read_nothing_beyond_its_columns():
    X, y, qid = shop()
    model = AdditiveRanker(interactions=0).fit(X, y, qid=qid)
    model.encoder_ = TableEncoder(codes=True).fit(X[["price", "kind"]])
    file = io.BytesIO()
    model.save(file)
    with pytest.raises(ValueError, match="columns that X has not"):
        rankwise.load(io.BytesIO(file.getvalue())).predict(X)
