"""What is made of a table with missing values and categories is exported with the model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from command_line import call, call_json
from exported import run, run_all
from rankwise import AdditiveRanker, AutoRanker, KernelRankRLS, RankRLS
from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import Column, Formula, Term
from rankwise.formula.steps import Levels
from rankwise.model_selection import fit_ranker, predict_scores
from rankwise.preprocessing import QueryScaler, TableEncoder

TARGETS = ["python", "javascript", "c", "onnx", "sqlite", "duckdb"]


def shop(seed=0, n_rows=240):
    """Return a table as people have them, labels and queries."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "price": np.where(rng.random(n_rows) < 0.2, np.nan, rng.lognormal(size=n_rows)),
            "sku": [f"S{at}" for at in range(n_rows)],
            "colour": rng.choice(
                ["red", "dark 'blue'", "grün", "rare one", None], n_rows, p=[0.4, 0.29, 0.2, 0.02, 0.09]
            ),
            "size": rng.choice(["s", "m", "l", "NA", ""], n_rows),
            "stock": rng.integers(0, 9, n_rows),
            "new": rng.random(n_rows) < 0.5,
            "postcode": rng.choice([1010, 2020, 3030], n_rows),
            "added": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D"),
            "constant": "one",
        }
    )
    table["vector"] = list(rng.normal(size=(n_rows, 3)))
    worth = (
        np.nan_to_num(table["price"], nan=2) + (table["colour"] == "red") - table["stock"] / 4 + table["new"]
    )
    labels = np.digitize(worth + rng.normal(size=n_rows), [-0.5, 1, 2])
    return table, labels, np.arange(n_rows) // 12


def fresh(seed=1):
    """Return rows of the same shop, with values that training did not have."""
    table, _, qid = shop(seed, 60)
    table.loc[:3, "colour"] = ["pink", "null", "NaN", None]
    table.loc[4:6, "size"] = ["xxl", "#N/A", None]
    table.loc[7, "postcode"] = 9999
    table["stock"] = table["stock"].astype(float)
    table.loc[8:9, "stock"] = np.nan
    return table, qid


def as_given(table, model=None):
    """Return the rows as whoever runs the model has them: dates as days, truth values as 1 and 0, lists apart."""
    if isinstance(model, AdditiveRanker):  # which leaves out names alone
        return as_given(table).drop(columns=[f"vector[{at}]" for at in range(3)]).assign(constant="one")
    out = table.drop(columns=["sku", "constant", "vector"], errors="ignore").assign(
        new=table["new"].astype(float)
    )
    if "added" in table:
        out["added"] = (out.pop("added") - pd.Timestamp(0)) / pd.Timedelta(days=1)
    for at in range(3):
        out[f"vector[{at}]"] = [row[at] for row in table["vector"]]
    return out.astype({"postcode": float, "stock": float})


def encoder():
    return TableEncoder(categories=["postcode"], min_rows=6)


RANKERS = {
    "linear": lambda: Pipeline([("table", encoder()), ("scale", StandardScaler()), ("rank", RankRLS())]),
    "inside queries": lambda: Pipeline(
        [("table", encoder()), ("scale", QueryScaler("standard")), ("rank", RankRLS())]
    ),
    "curves": lambda: Pipeline([("table", encoder()), ("rank", AdditiveRanker(interactions=1))]),
    "kernel": lambda: Pipeline(
        [("table", encoder()), ("scale", StandardScaler()), ("rank", KernelRankRLS("rbf", basis=12))]
    ),
    "chosen": lambda: AutoRanker(methods=["rls"], encoder=encoder()),
    "tables of curves": lambda: AdditiveRanker(
        interactions=[("price", "colour"), ("size", "new"), ("postcode", "added")], categorical=["postcode"]
    ),
}


def fitted(name):
    table, y, qid = shop()
    X = table.drop(columns="vector") if name == "tables of curves" else table
    return fit_ranker(RANKERS[name](), X, y, qid)


def needs_queries(model):
    return any(isinstance(step, QueryScaler) for _, step in getattr(model, "steps", []))


@pytest.fixture(scope="module")
def models():
    return {name: fitted(name) for name in RANKERS}


@pytest.mark.parametrize("target", TARGETS)
def test_tables_round_trip(models, target, tmp_path):
    cases, wanted = [], []
    for name, model in models.items():
        if name == "kernel" and target in {"sqlite", "duckdb"}:
            with pytest.raises(InvalidInputError, match="kernel"):
                rankwise.export(model, target)
            continue
        whole = needs_queries(getattr(model, "best_estimator_", model))
        made = rankwise.export(model, target, whole_query=True)
        (known, _, own), (new, other) = shop(), fresh()
        table, qid = pd.concat([known[:120], new], ignore_index=True), np.append(own[:120], 1000 + other)
        cases.append((made, in_order(as_given(table, model), table), qid, whole))
        wanted.append(predict_scores(model, table, qid))
    for found, own in zip(run_all(target, cases, tmp_path), wanted, strict=True):
        np.testing.assert_allclose(found, own, rtol=0, atol=1e-9 * max(1.0, np.abs(own).max()))


def in_order(given, table):
    """Return the columns in the order of the table."""
    lists = {"vector": [f"vector[{at}]" for at in range(3)]}
    names = [own for name in table.columns for own in lists.get(name, [name]) if own in given.columns]
    return given[names]


@pytest.mark.parametrize("name", ["linear", "inside queries", "curves", "chosen", "tables of curves"])
def test_explanations_are_of_the_columns_of_the_table(models, name):
    model = models[name]
    table, qid = fresh()
    wanted = predict_scores(model, table, qid)
    for row, why in zip((0, 4, 8), rankwise.explain(model, table, qid, rows=[0, 4, 8]), strict=True):
        total = sum(part.contribution for part in why.parts) + why.constant
        assert abs(total - wanted[row]) <= 1e-12 * max(1.0, np.abs(wanted).max())
        assert all(part.name.split(" × ")[0].split("[")[0] in table.columns for part in why.parts)


def test_json_says_what_becomes_of_each_column(models):
    document = json.loads(rankwise.export(models["linear"], "json"))
    names = document["names"]
    assert document["is_text"][names.index("colour")]
    assert "sku" not in names
    steps = [step for term in document["terms"] for step in term["column"]["steps"]]
    assert {"Fill", "IsMissing", "Levels"} <= {step["kind"] for step in steps}
    rows = as_given(fresh()[0])
    total = np.full(len(rows), document["constant"])
    for term in document["terms"]:
        values = [None if pd.isna(one) else one for one in rows[names[term["column"]["input"]]]]
        for step in term["column"]["steps"]:
            values = [apply(step, value) for value in values]
        total += term["weight"] * np.array(values, dtype=float)
    np.testing.assert_allclose(total, predict_scores(models["linear"], *fresh()), atol=1e-9)


def apply(step, value):
    """Do one step of the document to one value."""
    if step["kind"] == "Fill":
        return step["value"] if value is None else value
    if step["kind"] == "IsMissing":
        return float(value is None)
    if step["kind"] == "Affine":
        return (value - step["center"]) * step["scale"] + step["shift"]
    assert step["kind"] == "Levels"
    if value is None:
        return step["missing"]
    return dict(zip(step["levels"], step["values"], strict=True)).get(value, step["other"])


def test_engines_refuse_texts_with_a_reason(models):
    for target in ("solr", "vespa"):
        with pytest.raises(InvalidInputError, match="takes numbers, and the model has texts: colour"):
            rankwise.export(models["linear"], target)


def test_what_has_no_formula_is_refused():
    table, y, _ = shop()
    table["title"] = ["a few words" if at % 2 else "some others" for at in range(len(table))]
    for own in (TableEncoder(words=["title"]), TableEncoder(words=["title"], crosses=["title:price"])):
        model = Pipeline([("table", own), ("rank", RankRLS())]).fit(table, y)
        with pytest.raises(InvalidInputError, match="split into words"):
            rankwise.export(model, "python")


@pytest.mark.parametrize("target", TARGETS)
def test_categories_that_are_numbers_of_many_digits_are_exported(target, tmp_path):
    codes = np.repeat([1234567.0, 1234568.0, 0.1, 1e-7, 2.0**53], 20)
    rows = pd.DataFrame({"code": codes, "x": np.arange(100.0) % 7})
    model = Pipeline([("table", TableEncoder(categories=["code"])), ("rank", RankRLS())])
    model.fit(rows, np.arange(100) % 3 + (codes == 1234568.0))
    found = run(target, rankwise.export(model, target), rows, np.zeros(100), False, tmp_path)
    np.testing.assert_allclose(found, model.predict(rows), atol=1e-12)


@pytest.mark.parametrize("target", ["sqlite", "python"])
def test_the_command_line_exports_what_it_learned_from_a_table(capsys, tmp_path, target):
    table, y, qid = shop()
    plain = table.drop(columns=["vector", "added"]).assign(label=y, qid=qid)
    plain.to_csv(tmp_path / "t.csv", index=False)
    model, made = tmp_path / "m.rw", tmp_path / "made"
    code, _, err = call(capsys, "fit", tmp_path / "t.csv", "-o", model, "--methods", "rls",
                        "--target", target, "--crosses", "price:colour")  # fmt: skip
    assert code == 0, err
    code, _, err = call(capsys, "export", model, "--to", target, "-o", made)
    assert code == 0, err
    code, _, err = call(capsys, "predict", model, tmp_path / "t.csv", "-o", tmp_path / "scores.txt")
    assert code == 0, err
    wanted = np.loadtxt(tmp_path / "scores.txt")
    rows = plain.drop(columns=["sku", "constant", "label", "qid"]).assign(new=plain["new"].astype(float))
    source = made.read_text()
    found = run(target, source, rows, qid, "def score(rows)" in source, tmp_path)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * max(1.0, np.abs(wanted).max()))
    found = call_json(capsys, "explain", model, tmp_path / "t.csv", "--top", 1)["explanations"][0]
    assert {part["name"] for part in found["parts"]} <= {*plain.columns, "price:colour"}


@pytest.mark.parametrize("target", TARGETS)
def test_codes_of_texts_may_have_levels_of_their_own(target, tmp_path):
    """As OrdinalEncoder makes them and AdditiveRanker(categorical=...) takes them."""
    codes, values = (
        Levels(("red", "blue"), (0.0, 1.0), 2.0, 3.0),
        Levels((0.0, 2.0, 3.0), (5.0, -1.0, 4.0), 0.5),
    )
    formula = Formula(("x0", "x1"), (True, False), terms=(Term(2.0, Column(0, (codes, values))),))
    X = pd.DataFrame({"x0": ["red", "blue", "green", None], "x1": [1.0, 2.0, 3.0, 4.0]})
    found = run(target, rankwise.export(formula, target), X, np.zeros(4), False, tmp_path)
    assert found.tolist() == [10.0, 1.0, -2.0, 8.0]
