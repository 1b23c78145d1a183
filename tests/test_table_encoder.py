"""Tables as people have them, from every container, and again at prediction."""

import datetime as dt
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from optional import polars as pl
from rankwise import AutoRanker
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing import TableEncoder


def make(n=60, seed=0):
    rng = np.random.default_rng(seed)
    day = dt.date(2024, 1, 1)
    price = rng.normal(size=n).tolist()
    price[3] = None
    return {
        "id": [f"doc {at}" for at in range(n)],
        "price": price,
        "stock": [bool(at % 2) for at in range(n)],
        "country": [None if at == 5 else ["FI", "SE", "NO", "FI"][at % 4] for at in range(n)],
        "brand": ["rare" if at == 7 else f"brand {at % 3}" for at in range(n)],
        "since": [day + dt.timedelta(days=at) for at in range(n)],
        "vector": [[float(at), 1.0 - at] for at in range(n)],
        "same": ["x"] * n,
        "season": ["summer" if at // 10 % 2 else "winter" for at in range(n)],
        "title": [f"red {'car' if at % 2 else 'boat'} number{at}" for at in range(n)],
    }


CONTAINERS = {
    "pandas": pd.DataFrame,
    "polars": lambda data: pl.DataFrame(data, strict=False),
    "arrow": pa.table,
    "csv": lambda data: pd.read_csv(
        io.StringIO(pd.DataFrame(data).drop(columns="vector").to_csv(index=False))
    ).assign(vector=data["vector"])[list(data)],
}
QID = np.arange(60) // 10


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_gives_the_same_numbers(container):
    data = make()
    encoder = TableEncoder(words=["title"], method="tf-idf", n_words=5).fit(container(data), qid=QID)
    names = encoder.get_feature_names_out().tolist()
    X = encoder.transform(container(data)).toarray()
    column = dict(zip(names, X.T, strict=True))
    filled = np.array([np.nan if value is None else value for value in data["price"]])
    np.testing.assert_allclose(column["price"], np.where(np.isnan(filled), np.nanmedian(filled), filled))
    np.testing.assert_array_equal(np.flatnonzero(column["price missing"]), [3])
    np.testing.assert_array_equal(column["stock"], np.arange(60) % 2)
    assert column["country=(missing)"].sum() == 1
    assert column["brand=(other)"].sum() == 1
    np.testing.assert_array_equal(np.diff(column["since"]), 1)
    assert column["since"][0] == (dt.date(2024, 1, 1) - dt.date(1970, 1, 1)).days
    np.testing.assert_array_equal(column["vector[1]"], 1.0 - np.arange(60))
    assert len([name for name in names if name.startswith("title~")]) == 5
    said = dict(line.split(": ", 1) for line in encoder.describe())
    assert "an id, or a text of words" in said["id"]
    assert "one value everywhere" in said["same"]
    assert "one value inside every query" in said["season"]
    assert "1 missing: filled with" in said["price"]
    assert said["brand"] == "a category of 3 values, and 1 rare one"
    assert "season=summer" not in names


def test_what_training_did_not_have():
    train, new = make(), make(seed=1)
    encoder = TableEncoder(["price", "country", "brand"]).fit(pd.DataFrame(train))
    new["brand"] = ["unseen"] * 60
    new["country"] = ["DK"] * 60
    new["price"] = [None] * 60
    X = encoder.transform(pd.DataFrame(new).iloc[:, ::-1])
    column = dict(zip(encoder.get_feature_names_out(), X.T, strict=True))
    assert column["brand=(other)"].all()
    assert not any(column[name].any() for name in column if name.startswith("country="))
    assert column["price missing"].all()


def test_crosses():
    data = make()
    encoder = TableEncoder(["price", "country", "season"], crosses=["price:season", "country:season"])
    X = encoder.fit_transform(pd.DataFrame(data), qid=QID)
    column = dict(zip(encoder.get_feature_names_out(), X.T, strict=True))
    np.testing.assert_allclose(column["price:season=summer"], column["price"] * (QID % 2 == 1))
    assert "season=summer" not in column  # alone it cannot tell the rows of a query apart
    assert "country=FI:season=winter" in column
    with pytest.raises(InvalidInputError, match="does not name two columns"):
        TableEncoder(crosses=["price:nothing"]).fit(pd.DataFrame(data))


@pytest.mark.parametrize(
    ("name", "words"), [("same", "one value everywhere"), ("id", "nearly every row has its own text")]
)
def test_a_cross_with_a_column_that_is_left_out_says_why(name, words):
    table = pd.DataFrame({"price": np.arange(20.0), "same": 1.0, "id": [f"s{at}" for at in range(20)]})
    with pytest.raises(
        InvalidInputError, match=f"'{name}' is to be crossed, and is left out, because .*{words}"
    ):
        TableEncoder(crosses=[f"price:{name}"]).fit(table)


def test_categories_of_numbers_and_hashed_words():
    frame = pd.DataFrame({"zip": np.repeat([100, 200, 300], 20), "text": ["a b", "b c c"] * 30})
    encoder = TableEncoder(categories=["zip"], words=["text"], n_words=64).fit(frame)
    X = encoder.transform(frame)
    assert sp.issparse(X)
    assert encoder.get_feature_names_out()[:3].tolist() == ["zip=100", "zip=200", "zip=300"]
    assert X.shape == (60, 67)


def test_categories_that_are_numbers_of_many_digits_stay_apart():
    codes = np.repeat([1234567.0, 1234568.0, 2.0**53, 0.1, 0.1 + 2**-56, 0.0, -0.0], 10)
    encoder = TableEncoder(categories=["code"]).fit(pd.DataFrame({"code": codes}))
    X = encoder.transform(pd.DataFrame({"code": codes}))
    same = (X[:, None] == X[None]).all(axis=2)
    assert (same == (codes[:, None] == codes)).all()
    assert "code=1234567" in encoder.get_feature_names_out()


def test_a_category_stays_one_where_all_of_its_texts_look_like_dates():
    table = pd.DataFrame({"since": ["2020-01-01", "2021-01-01", "before"] * 10})
    encoder = TableEncoder().fit(table)
    rows = table[table["since"] != "before"]
    np.testing.assert_array_equal(encoder.transform(rows), encoder.transform(table)[rows.index])
    asked = TableEncoder(categories=["since"]).fit(rows)
    assert asked.get_feature_names_out().tolist() == ["since=2020-01-01", "since=2021-01-01"]
    assert asked.transform(rows)[:2].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert TableEncoder().fit(rows).get_feature_names_out().tolist() == ["since"]  # a date


def test_bytes_are_text_in_utf_8():
    words = ["Köln", "Wien"] * 10
    table = pa.table({"city": pa.array([word.encode() for word in words])})
    assert TableEncoder().fit(table).get_feature_names_out().tolist() == ["city=Köln", "city=Wien"]
    table = pa.table({"city": pa.array([word.encode("latin-1") for word in words])})
    assert TableEncoder().fit(table).get_feature_names_out().tolist() == [r"city=K\xf6ln", "city=Wien"]


def test_mistakes():
    data = make()
    encoder = TableEncoder(["price", "country"]).fit(pd.DataFrame(data))
    with pytest.raises(InvalidInputError, match="such as 'price'"):
        encoder.transform(pd.DataFrame(data).drop(columns="price"))
    with pytest.raises(InvalidInputError, match="held numbers in training, and holds texts here"):
        encoder.transform(pd.DataFrame({**data, "price": ["cheap"] * 60}))
    with pytest.raises(InvalidInputError, match="No column can tell"):
        TableEncoder(["same"]).fit(pd.DataFrame(data))
    with pytest.raises(InvalidInputError, match="different lengths"):
        TableEncoder().fit(pd.DataFrame({"v": [[1.0], [1.0, 2.0]] * 5}))
    assert clone(encoder).get_params() == encoder.get_params()


def test_what_is_left_out_says_why_truly():
    few = pd.DataFrame({"text": ["a", "b", "c", "d"] * 4, "price": range(16)})
    (left_out, _) = TableEncoder(min_rows=5).fit(few).describe()
    assert "none of its 4 texts comes in 5 rows" in left_out
    (kept, _) = TableEncoder(min_rows=4).fit(few).describe()
    assert "a category of 4 values" in kept


def test_the_remedy_for_missing_values_of_an_array_is_a_data_frame():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    X[::7, 0] = np.nan
    with pytest.raises(InvalidInputError, match="AutoRanker with a data frame"):
        AutoRanker(methods=["rls"]).fit(X, y, qid=qid)
    assert AutoRanker(methods=["rls"]).fit(pd.DataFrame(X), y, qid=qid).encoder_ is not None


def test_words_for_missing_values_stand_alone():
    """With spaces around them they are texts, which every program that runs an exported model can tell apart."""
    texts = ["red", " ", " NA ", "\u00a0", "NA", "", "#N/A", None] * 2
    encoder = TableEncoder(min_rows=1).fit(pd.DataFrame({"colour": texts}))
    names = encoder.get_feature_names_out().tolist()
    assert names == [f"colour={level}" for level in (*sorted([" ", " NA ", "red", "\u00a0"]), "(missing)")]
    rows = encoder.transform(pd.DataFrame({"colour": texts}))
    assert [names[at] for at in rows[4:8].argmax(axis=1)] == ["colour=(missing)"] * 4


def test_texts_that_look_like_dates_and_are_none_are_texts():
    days = pd.DataFrame({"day": ["2024-12-01", "2024-13-01"] * 3})
    assert TableEncoder(min_rows=1).fit(days).get_feature_names_out().tolist() == [
        "day=2024-12-01",
        "day=2024-13-01",
    ]
