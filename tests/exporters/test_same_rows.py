"""What runs an exported model reads a row as `predict` does, or refuses it as `predict` does."""

import datetime as dt
import json
import shutil
import sqlite3
import subprocess
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.pipeline import Pipeline

import rankwise
from all_pairs import pairwise
from exported import insert_statements, run
from rankwise import RankRLS
from rankwise.exceptions import RankwiseError
from rankwise.model_selection import fit_ranker, predict_scores
from rankwise.preprocessing import QueryScaler, TableEncoder

DATABASES = ["sqlite", "duckdb", "postgresql"]
TARGETS = ["python", "javascript", "c", "onnx", "json", "sqlite", "duckdb", "postgresql"]

# --- texts ---

SPACES = [
    "",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\v",
    "\x1c",
    "\x85",
    "\u00a0",
    "\u2003",
    "\u200b",
    "\u3000",
    "\ufeff",
]
WORDS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "#N/A", "na", "NAN", "None", "none", "<NA>", "-", "0", "5",
         "5.0", "red", "Red", "grün", "gru\u0308n", "it's", 'a "b"', "a\\b"]  # fmt: skip
ODD = sorted(
    {
        before + word + after
        for before, word, after in product(SPACES, WORDS, SPACES)
        if not before * bool(after) or before == after
    }
)


@cache
def of_texts(has_missing):
    """Return a model of a column of texts, whose levels are padded and look alike."""
    rng = np.random.default_rng(0)
    levels = ["red", "Red", " red", "red ", " NA ", " ", "\u00a0", "grün", "5", *[None] * has_missing]
    texts = rng.choice(
        np.array([*levels, "rare"], dtype=object), 400, p=[*[0.99 / len(levels)] * len(levels), 0.01]
    )
    table = pd.DataFrame({"colour": texts, "x": rng.normal(size=400)})
    y = [(levels.index(text) * 7) % 5 if text in levels else 6 for text in texts]
    model = Pipeline([("table", TableEncoder(min_rows=8)), ("rank", RankRLS(0.1))]).fit(table, y)
    assert len(np.unique(model.predict(table.assign(x=0.0)).round(6))) > 4
    return model


def score(target, model, table, folder, postgresql=None):
    made, qid = rankwise.export(model, target), np.zeros(len(table), dtype=int)
    if target != "postgresql":
        return run(target, made, table, qid, False, folder)
    asked = f"SELECT score FROM ({made}) AS s ORDER BY number;\n"
    return np.array(
        postgresql(f"BEGIN;\n{insert_statements(table, qid)}{asked}ROLLBACK;\n").split(), dtype=float
    )


@pytest.mark.parametrize(("target", "has_missing"), list(zip(TARGETS, [True, False] * 4, strict=True)))
def test_texts_are_told_apart_as_predict_tells_them_apart(target, has_missing, tmp_path, request):
    server = request.getfixturevalue("postgresql") if target == "postgresql" else None
    model = of_texts(has_missing)
    table = pd.DataFrame({"colour": [*ODD, None], "x": 0.5})
    np.testing.assert_allclose(
        score(target, model, table, tmp_path, server), model.predict(table), atol=1e-12
    )


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
        min_size=1,
        max_size=30,
    )
)
@pytest.mark.parametrize("target", ["python", "json", "sqlite", "duckdb"])
def test_any_texts(target, texts, tmp_path):
    table = pd.DataFrame({"colour": ["red", *texts], "x": 0.5})
    model = of_texts(True)
    np.testing.assert_allclose(score(target, model, table, tmp_path), model.predict(table), atol=1e-12)


@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM"])
def test_a_collation_of_sqlite_changes_no_score(collation):
    model = of_texts(True)
    table = pd.DataFrame({"colour": ["red", "Red", "red ", " red", "RED"], "x": 0.5})
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE rows (x FLOAT8, colour TEXT COLLATE {collation})")
        connection.executemany("INSERT INTO rows (colour, x) VALUES (?, ?)", table.to_numpy().tolist())
        found = [row[-1] for row in connection.execute(rankwise.export(model, "sqlite"))]
    connection.close()
    np.testing.assert_allclose(found, model.predict(table), atol=1e-12)


# --- numbers, dates and columns that do not exist ---


def asked(target, model, columns, rows, request, *, select="score", options=None):
    """Return what a database answers of rows of literals, in columns of given types."""
    made = rankwise.export(model, target, **(options or {}))
    kinds = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    values = [f"INSERT INTO rows VALUES ({', '.join(row)})" for row in rows]
    script = [f"CREATE TABLE rows ({kinds})", *values]
    question = f"SELECT {select} FROM ({made}) AS s"
    if target == "postgresql":
        server = request.getfixturevalue("postgresql")
        lines = ["BEGIN", "SET TIME ZONE 'America/New_York'", *script, question, "ROLLBACK"]
        return [line.split("|") for line in server(";\n".join(lines) + ";\n").splitlines()]
    if target == "sqlite":
        connection = sqlite3.connect(":memory:")
    else:
        connection = pytest.importorskip("duckdb").connect()
        connection.execute("SET TimeZone = 'America/New_York'")
    try:
        for statement in script:
            connection.execute(statement)
        cursor = connection.execute(question)
        return (
            [[one[0] for one in cursor.description], *cursor.fetchall()]
            if select == "*"
            else cursor.fetchall()
        )
    finally:
        connection.close()


MOMENTS = [
    "2024-05-01",
    "1969-12-31",
    "2024-02-29 23:59:59.999999",
    "2031-07-04T05:06",
    "2000-01-01T12:30:00.25Z",
    None,
]


@cache
def of_dates():
    days = pd.Series(
        pd.to_datetime(["2020-01-01", "2024-05-06 07:08:09", None, "1950-02-03"] * 10, format="ISO8601")
    )
    table = pd.DataFrame({"added": days, "x": np.arange(40.0) % 7})
    return Pipeline([("table", TableEncoder()), ("rank", RankRLS(1e-9))]).fit(table, np.arange(40) % 4)


def quoted(value):
    return "NULL" if value is None else str(value) if isinstance(value, float) else f"'{value}'"


@pytest.mark.parametrize("target", DATABASES)
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR", "FLOAT8"])
def test_dates_come_as_they_are_stored(target, kind, request):
    """In the type of training or as texts, with and without time zones, whatever the database's own zone is."""
    model = of_dates()
    moments = [None if one is None else pd.Timestamp(one).tz_localize(None) for one in MOMENTS]
    if kind == "DATE":
        moments = [None if one is None else one.date() for one in moments]
    column = pd.Series(moments, dtype=object)
    stored = [None if one is None else str(one) for one in moments]
    if kind == "VARCHAR":
        stored = [*MOMENTS, "", "NA"]
        column = pd.Series(stored, dtype=object)
    elif kind == "TIMESTAMPTZ":
        zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
        column = pd.Series([None if one is None else one.tz_localize(zone) for one in moments], dtype=object)
        stored = [None if one is None else str(one) for one in column]
    elif kind == "FLOAT8":
        stored = [None if one is None else (one - pd.Timestamp(0)) / pd.Timedelta(days=1) for one in moments]
    rows = [[quoted(one), "2.5"] for one in stored]
    found = asked(target, model, {"added": kind if target != "sqlite" else "", "x": "FLOAT8"}, rows, request)
    wanted = model.predict(pd.DataFrame({"added": column, "x": 2.5}))
    np.testing.assert_allclose([float(score) for (score,) in found], wanted, atol=1e-9)
    assert len(np.unique(wanted)) >= 5


@pytest.mark.parametrize(
    ("target", "stored"),
    [*zip(DATABASES, ["yesterday", "2024-13-01", " "], strict=True), ("postgresql", "yesterday"),
     *((target, " 2024-05-01x") for target in DATABASES)],
)  # fmt: skip
def test_what_is_no_date_is_refused(target, stored, request):
    model = of_dates()
    with pytest.raises(RankwiseError):
        model.predict(pd.DataFrame({"added": ["2024-01-01", stored], "x": 2.5}))
    with pytest.raises(Exception, match=r"(?i)malformed|conver|cast|date|timestamp|returned non-zero"):
        asked(target, model, {"added": "VARCHAR", "x": "FLOAT8"}, [[quoted(stored), "2.5"]], request)


def test_numbers_that_sqlite_keeps_as_texts_are_numbers_or_refused(request):
    """As the command line of SQLite imports CSV: in columns of texts, empty where there is nothing."""
    table = pd.DataFrame({"x": [1.0, 2.0, np.nan, 7.5] * 5, "z": np.arange(20.0) % 7})
    model = Pipeline([("table", TableEncoder()), ("rank", RankRLS())]).fit(table, np.arange(20) % 4)
    columns = {"x": "TEXT", "z": "TEXT"}
    stored = [["'7.5'", "'1'"], ["' -2e1 '", "'2'"], ["''", "'0.5'"], ["'NA'", "'3'"], ["NULL", "4"]]
    found = asked("sqlite", model, columns, stored, request)
    wanted = pd.DataFrame({"x": [7.5, -20.0, np.nan, np.nan, np.nan], "z": [1.0, 2.0, 0.5, 3.0, 4.0]})
    np.testing.assert_allclose([score for (score,) in found], model.predict(wanted), atol=1e-12)
    for wrong in ("'red'", "'1,5'", "'7 m'", "' '"):
        with pytest.raises(sqlite3.OperationalError):
            asked("sqlite", model, columns, [[wrong, "'1'"]], request)
        with pytest.raises(sqlite3.OperationalError):
            asked("sqlite", RankRLS().fit(wanted[["z"]], [0, 1, 2, 3, 4]), {"z": "TEXT"}, [[wrong]], request)


@cache
def of_queries(method):
    """Return a model of numbers and texts, scaled inside queries unless `method` is None."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"colour": rng.choice(["red", "blue"], 60), "x": rng.normal(size=60).round(1)})
    qid, y = np.arange(60) // 10, rng.integers(0, 3, 60)
    steps = [("table", TableEncoder()), *([("scale", QueryScaler(method))] if method else [])]
    return fit_ranker(Pipeline([*steps, ("rank", RankRLS())]), table, y, qid), table, qid


METHODS = [None, "minmax", "standard", "rank"]


@pytest.mark.parametrize("target", DATABASES)
@pytest.mark.parametrize("method", METHODS)
def test_the_answer_has_the_columns_of_the_table_and_the_score(target, method, request):
    """Once for each row, also where rows are the same, and where columns are called as those in between."""
    model, table, qid = of_queries(method)
    table, qid = pd.concat([table, table[:7]], ignore_index=True), np.append(qid, qid[:7])
    columns = {"note": "VARCHAR", "rw_row": "INTEGER", "x": "FLOAT8", "rw_x1": "INTEGER", "search": "VARCHAR",
               "colour": "VARCHAR", "R": "FLOAT8"}  # fmt: skip
    rows = [["'n'", str(at), str(x), "3", f"'q{q}'", f"'{colour}'", "NULL"]
            for at, (x, colour, q) in enumerate(zip(table["x"], table["colour"], qid, strict=True))]  # fmt: skip
    found = asked(target, model, columns, rows, request, select="*", options={"qid": "search"})
    if target != "postgresql":
        assert found.pop(0) == [*columns, "score"]
    assert {len(row) for row in found} == {len(columns) + 1}
    found = sorted(found, key=lambda row: int(row[1]))
    assert [int(row[1]) for row in found] == list(range(len(table)))
    wanted = predict_scores(model, table, qid)
    np.testing.assert_allclose([float(row[-1]) for row in found], wanted, atol=1e-12)


@pairwise(target=DATABASES, method=METHODS, lacking=["x", "colour", "qid"])
def test_a_column_that_does_not_exist_is_refused(target, method, lacking, request):
    model, *_ = of_queries(method)
    columns = {"x": "FLOAT8", "colour": "VARCHAR", "qid": "VARCHAR"}
    row = dict(zip(columns, ["1.5", "'red'", "'q1'"], strict=True))
    kept = {name: kind for name, kind in columns.items() if name != lacking}
    values = [[row[name] for name in kept]] * 3
    if lacking == "qid" and method is None:
        assert len(asked(target, model, kept, values, request)) == 3
        return
    with pytest.raises(
        Exception, match=r"(?i)no such column|does not have a column|not found|returned non-zero"
    ):
        asked(target, model, kept, values, request)


def test_a_linear_model_of_a_column_that_does_not_exist_is_refused(request):
    model = RankRLS().fit([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]], [0, 1, 2])
    for target in DATABASES:
        with pytest.raises(
            Exception, match=r"(?i)no such column|does not have a column|not found|returned non-zero"
        ):
            asked(target, model, {"x0": "FLOAT8"}, [["1.5"]], request)


ROWS = [["red"], ["red", 1.0, 2.0], [5, 1.0], [True, 1.0], ["red", "1,5"], ["red", ""], ["red", {}], []]


NODE = """
const { score } = require("./model.js");
const tried = JSON.parse(process.argv[1]).map((row) => {
  try { return [score(row), null]; } catch (error) { return [null, error.message]; }
});
console.log(JSON.stringify(tried));
"""


@pytest.mark.parametrize("method", [None, "standard"])
def test_functions_refuse_rows_of_other_columns(method, tmp_path):
    model, *_ = of_queries(method)
    module, good = {}, ["red", 1.0]
    exec(rankwise.export(model, "python"), module)
    given = [row if method is None else [good, row] for row in (good, *ROWS)]
    module["score"](given[0])
    for row in given[1:]:
        with pytest.raises((TypeError, ValueError)):
            module["score"](row)
    node = shutil.which("node") or pytest.skip("node is not installed")
    (tmp_path / "model.js").write_text(rankwise.export(model, "javascript"), encoding="utf-8")
    command = [node, "-e", NODE, json.dumps(given)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (_, first), *others = json.loads(found.stdout)
    assert first is None
    assert all("is no" in message or "A row has 2 values" in message for _, message in others)


def test_javascript_refuses_dates_that_are_no_days(tmp_path):
    node = shutil.which("node") or pytest.skip("node is not installed")
    (tmp_path / "model.js").write_text(rankwise.export(of_dates(), "javascript"), encoding="utf-8")
    script = 'const {score} = require("./model.js"); console.log(score([new Date(), 1]));'
    found = subprocess.run([node, "-e", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "is no number" in found.stderr
