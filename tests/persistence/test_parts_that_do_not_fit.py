"""Model files whose parts are each of a known kind and do not go together, and models that no file can hold."""

import io
from collections import UserList
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import rankwise
from identical import assert_identical
from model_checks import put_together, taken_apart, with_checksum, without_checksum
from rankwise import AdditiveRanker, AutoRanker, AverageRanker, RankRLS, RankSVM
from rankwise.exceptions import ModelFileError
from rankwise.persistence import read_header
from rankwise.persistence.reader import Reader
from rankwise.persistence.writer import Writer
from rankwise.preprocessing import TableEncoder

RARE = {"min_frequency": 2, "handle_unknown": "infrequent_if_exist"}


@cache
def saved(name):
    """Return the bytes of a model."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.arange(12.0) % 3
    made = {
        "mean": lambda: AverageRanker([RankRLS()]).fit(X, y),
        "curves": lambda: AdditiveRanker(interactions=1, n_knots=3).fit(X, y),
        "margin": lambda: RankSVM().fit(X, y),
        "ranking": lambda: RankRLS().partial_fit(X, y),
        "queries": lambda: RankRLS().partial_fit(X, y, qid=y // 2),
        "encoder": lambda: make_pipeline(OneHotEncoder(**RARE), RankRLS()).fit(np.round(X), y),
        "columns": lambda: make_pipeline(
            ColumnTransformer([("a", StandardScaler(), np.array([0, 2]))]), RankRLS()
        ).fit(X, y),
        "auto": lambda: AutoRanker(methods=["rls"], scalings="none", cv=2).fit(X, y),
        "table": lambda: AutoRanker(methods=["rls"], scalings="none", cv=2).fit(
            pd.DataFrame(X, columns=list("abc")).assign(d=np.where(X[:, 0] > 0, "x", "y")), y
        ),
    }
    stream = io.BytesIO()
    rankwise.save(made[name](), stream)
    return stream.getvalue()


def load(data):
    return rankwise.load(io.BytesIO(data))


def with_part(name, place, value):
    """Return a model's bytes with another value at a place of its header; a function makes one of the old one."""
    header, description, rest = taken_apart(without_checksum(saved(name)))
    *outer, last = place
    found = header
    for key in outer:
        found = found[key]
    found[last] = value(found[last]) if callable(value) else value
    return with_checksum(put_together(header, description, rest))


STEP, OWN = ("steps", 0), ("steps", 0, "attributes")
STREAM, TERMS = (*STEP, "stream"), (*OWN, "terms_", "$terms")
SURFACE = (*TERMS, "surfaces")


@pytest.mark.parametrize(
    ("model", "place", "value", "said"),
    [
        ("mean", (*OWN, "rankers_"), [], "mean of several models has none"),
        ("mean", (*OWN, "rankers_"), lambda rankers: rankers * 2, "not 2 numbers"),
        ("curves", (*OWN, "terms_"), 3, "has no curves"),
        ("curves", (*TERMS, "curves", 0, "column"), 3, "a column beyond the 3"),
        ("curves", (*OWN, "values_", "$array"), "importances_", "values_ are not"),
        ("curves", (*TERMS, "curves"), {}, "terms are no lists"),
        ("curves", SURFACE, lambda pairs: [pairs[0][:1]], "a surface has no two sides"),
        ("margin", (*STEP, "stream"), {}, "RankSVM does not learn from streams"),
        ("margin", (*STEP, "requests"), ["fit"], "metadata requests are no requests"),
        ("ranking", STREAM, lambda stream: {**stream, "n_rows": 1.5}, "of the wrong kind"),
        ("ranking", (*STREAM, "memory", 0), {}, "remembers no levels"),
        ("ranking", (*STREAM, "memory", 0, 0, 1), 12, "a level that is none"),
        ("queries", (*STREAM, "memory", 0), lambda arrays: arrays[:1], "is not complete"),
        ("encoder", (*OWN, "infrequent_categories_"), [], "is not an attribute to set"),
        ("encoder", (*OWN, "categories_"), 3, "the categories of an encoder are none"),
        ("encoder", (*OWN, "categories_"), lambda own: own[:2], "categories of other columns"),
        ("encoder", (*OWN, "_default_to_infrequent_mappings"), [None], "rare categories of other columns"),
        ("encoder", (*OWN, "_default_to_infrequent_mappings", 1), [0, 0, 1], "rare categories of an encoder are none"),
        ("encoder", (*OWN, "_n_features_outs"), ["a", "b", "c"], "one entry per column"),
        ("columns", (*STEP, "parameters"), {}, "lacks parameters"),
        ("auto", ("automatic", "parameters", "evil"), 1, "cannot have all of its parameters"),
        ("auto", ("automatic", "attributes", "best_score_"), "good", "'best_score_' is no attribute"),
        ("auto", ("automatic", "attributes", "n_features_in_"), 4, "takes other columns"),
        ("auto", ("automatic", "features"), 3, "the names of its columns are none"),
        ("auto", ("automatic", "features"), ["a", 3, "c"], "the names of its columns are none"),
        ("auto", ("automatic", "features"), ["a", "b"], "do not have a name each"),
        ("auto", ("automatic", "features"), ["a", "b", "a"], "do not have a name each"),
        ("auto", ("automatic", "leaderboard", "rows"), 3, "has no rows"),
        ("auto", ("automatic", "leaderboard", "rows", 0, "value"), "high", "its leaderboard is none"),
        ("auto", ("automatic", "leaderboard", "rows"), [], "does not say what was chosen"),
        ("table", ("steps", -1, "attributes", "n_features_in_"), lambda n: n - 1, "coefficients"),
        ("margin", (*OWN, "x_"), {"$dtype": "void"}, "a type of numbers is 'void'"),
        ("margin", (*OWN, "x_"), {"$numpy": "object", "value": 1}, "a number is a 'object'"),
        ("margin", (*OWN, "x_"), {"$kernel": {"name": "rbf", "parameters": [1]}}, r"parameters are \[1\]"),
        ("margin", (*OWN, "x_"), {"$objects": {"shape": [-1], "items": []}}, r"an array has shape \[-1\]"),
    ],
)  # fmt: skip
def test_parts_that_do_not_go_together_are_refused(model, place, value, said):
    if place[-1] in {"stream", "requests", "x_", "infrequent_categories_", "evil"} and not callable(value):
        damaged = with_part(model, place[:-1], lambda parts: {**parts, place[-1]: value})
    else:
        damaged = with_part(model, place, value)
    load(saved(model))
    with pytest.raises(ModelFileError, match=said):
        load(damaged)


def test_a_table_and_the_model_of_its_columns_belong_together():
    model, stream = load(saved("table")), io.BytesIO()
    model.encoder_ = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]}))
    model.save(stream)
    with pytest.raises(ModelFileError, match="other columns than its encoder gives"):
        load(stream.getvalue())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.ma.masked_array([1.0, 2.0]), "MaskedArray"),
        (np.complex64(1j), "complex64"),
        (lambda: 3, "function"),
    ],
)
def test_values_that_no_file_holds_are_refused_by_name(value, said):
    with pytest.raises(ModelFileError, match=f"(?s)extra_.*{said}"):
        Writer().write(value, "extra_")


def test_values_without_an_end_are_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ModelFileError, match="levels deep"):
        Writer().write(endless, "extra_")


def test_values_whose_names_meet_are_kept_apart():
    one, other = np.arange(3.0), np.arange(4.0)
    value = {"a/b": one, "a": {"b": other, "$": 1}, "c$d": UserList([1, 2])}
    writer = Writer()
    again = Reader(writer.arrays).read(writer.write(value, "x"))
    assert_identical({**value, "c$d": [1, 2]}, again)


def test_an_estimator_is_read_only_where_one_can_stand():
    with pytest.raises(ModelFileError, match="an estimator stands where none can"):
        Reader({}).read({"$step": {}})


class Slow(io.BytesIO):
    """A stream that gives less than it is asked for, and ends early where it is told to."""

    end = None

    def readinto(self, room):
        most = 1000 if self.end is None else min(1000, self.end - self.tell())
        found = self.read(max(0, min(len(room), most)))
        memoryview(room)[: len(found)] = found
        return len(found)


def test_a_stream_may_give_less_than_it_is_asked_for():
    data = saved("curves")
    model, again = load(data), rankwise.load(Slow(data))
    X = np.random.default_rng(1).normal(size=(5, 3))
    assert_identical(model.predict(X), again.predict(X))
    short = Slow(data)
    short.end = len(data) - 8
    with pytest.raises(ModelFileError, match="ends too early"):
        rankwise.load(short)


def test_large_files_are_looked_at_before_they_are_read(monkeypatch):
    data = saved("curves")
    monkeypatch.setattr("rankwise.persistence.container_reader._CHUNK", 256)
    X = np.random.default_rng(1).normal(size=(5, 3))
    assert_identical(load(data).predict(X), rankwise.load(Slow(data)).predict(X))
    assert read_header(Slow(data)) == read_header(io.BytesIO(data))


def test_a_header_that_no_reader_would_take_is_not_written(monkeypatch):
    monkeypatch.setattr("rankwise.persistence.container.MAX_HEADER", 1000)
    names = [f"a rather long name of column {number}" for number in range(40)]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 40)), columns=names)
    with pytest.raises(ModelFileError, match="shorten the feature names"):
        RankRLS().fit(X, np.arange(12.0)).save(io.BytesIO())
