"""Products of two columns of a table go along with the model: exported, explained, or refused with a way out."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from exported import insert_statements, run, run_all
from exporters import test_tables
from exporters.test_tables import as_given, needs_queries
from rankwise import AdditiveRanker, AutoRanker, AverageRanker, KernelRankRLS, RankRLS
from rankwise.exceptions import InvalidInputError
from rankwise.exporters import TARGETS
from rankwise.formula.formula import Column, Formula, Product, Table, Term, folded
from rankwise.formula.reading import formula_of, rows_for
from rankwise.formula.steps import Affine, Fill, IsMissing, Levels, QueryScale, clip, curve
from rankwise.model_selection import fit_ranker, predict_scores
from rankwise.preprocessing import QueryScaler, TableEncoder
from rankwise.report import Report

GENERAL = ["python", "javascript", "c", "onnx", "sqlite", "duckdb", "json"]
ENGINES = ["solr", "elasticsearch-ltr", "opensearch-ltr"]
COLUMNS = ["price", "season", "budget", "colour", "stock", "new", "postcode", "vector"]


def shop():
    """Return a table with columns that are constant inside queries, labels and queries."""
    table, y, qid = test_tables.shop()
    table["season"] = np.array(["summer", "winter", "spring"])[qid % 3]
    return table.assign(budget=qid % 5 * 10.0)[COLUMNS], y, qid


def fresh():
    """Return rows of the same shop, with levels that training did not have and other gaps."""
    table, qid = test_tables.fresh()
    table["season"] = np.array(["monsoon", None, "spring"], dtype=object)[np.minimum(qid, 2)]
    return table.assign(budget=qid % 5 * 10.0)[COLUMNS], qid


def known_and_fresh():
    """Return rows of training and fresh ones, in queries of their own."""
    (known, _, qid), (new, other) = shop(), fresh()
    return pd.concat([known[:120], new], ignore_index=True), np.append(qid[:120], 1000 + other)


def encoder():
    """Cross numbers, categories, flags and lists, with sides that are nothing but crossed."""
    crosses = [
        "price:stock",
        "price:season",
        "colour:season",
        "postcode:colour",
        "vector:new",
        "budget:price",
        "season:stock",
        "stock:stock",
    ]
    return TableEncoder(categories=["postcode"], crosses=crosses, min_rows=6)


def numbers():
    """Cross columns of numbers alone, which Vespa takes too."""
    return TableEncoder(
        ["price", "stock", "new", "budget"], crosses=["price:stock", "price:new", "price:budget"]
    )


MODELS = {
    "linear": [RankRLS()],
    "standardised": [StandardScaler(), RankRLS()],
    "query min-max": [QueryScaler("minmax"), RankRLS()],
    "query standard": [QueryScaler("standard"), RankRLS()],
    "query rank": [StandardScaler(), QueryScaler("rank"), RankRLS()],
    "curves": [AdditiveRanker(interactions=[(0, 15), (17, 18)], alpha=0.01)],
    "curves inside queries": [QueryScaler("minmax"), AdditiveRanker(alpha=0.01)],
    "kernel": [StandardScaler(), KernelRankRLS("rbf", basis=12)],
}


def fitted(own, steps):
    table, y, qid = shop()
    return fit_ranker(clone(make_pipeline(own, *steps)), table, y, qid)


@pytest.fixture(scope="module")
def models():
    made = {name: fitted(encoder(), steps) for name, steps in MODELS.items()}
    assert [made["linear"].steps[0][1].columns_[at].get("only_crossed") for at in (1, 2)] == [True, True]
    return made


@pytest.mark.parametrize("target", GENERAL)
def test_crossed_tables_round_trip(models, target, tmp_path):
    cases, wanted = [], []
    for name, model in models.items():
        if name == "kernel" and target in {"sqlite", "duckdb"}:
            with pytest.raises(InvalidInputError, match="kernel"):
                rankwise.export(model, target)
            continue
        made = rankwise.export(model, target, whole_query=True)
        table, qid = known_and_fresh()
        cases.append((made, as_given(table), qid, needs_queries(model)))
        wanted.append(predict_scores(model, table, qid))
    all_close(target, cases, wanted, tmp_path)


def all_close(target, cases, wanted, folder):
    for found, own in zip(run_all(target, cases, folder), wanted, strict=True):
        np.testing.assert_allclose(found, own, rtol=0, atol=1e-9 * max(1.0, np.abs(own).max()))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "kernel"])
def test_postgresql(models, name, postgresql):
    made = rankwise.export(models[name], "postgresql")
    table, qid = fresh()
    rows = insert_statements(as_given(table), qid)
    script = f"BEGIN;\n{rows}SELECT score FROM ({made}) AS s ORDER BY number;\nROLLBACK;\n"
    found = np.array([float(line) for line in postgresql(script).split()])
    wanted = predict_scores(models[name], table, qid)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * max(1.0, np.abs(wanted).max()))


def test_vespa_takes_crossed_numbers(tmp_path):
    table, qid = fresh()
    rows = table[["price", "stock", "new", "budget"]].astype(float)
    cases, wanted = [], []
    for steps in (MODELS["standardised"], MODELS["query min-max"], [AdditiveRanker(alpha=0.01)]):
        model = fitted(numbers(), steps)
        cases.append((rankwise.export(model, "vespa"), rows, qid, needs_queries(model)))
        wanted.append(predict_scores(model, table, qid))
    all_close("vespa", cases, wanted, tmp_path)


def test_a_mean_of_models_with_crosses_round_trips(tmp_path):
    table, y, qid = shop()
    own = encoder().fit(table, qid=qid)
    X = own.transform(table)
    parts = (RankRLS().fit(X, y, qid), KernelRankRLS("rbf", basis=10).fit(X, y, qid))
    model = Pipeline([("table", own), ("rank", AverageRanker(parts).fit(X, y, qid=qid))])
    found = run("c", rankwise.export(model, "c"), as_given(table), qid, False, tmp_path)
    np.testing.assert_allclose(found, model.predict(table), atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_explanations_add_up_and_name_the_crosses(models, name):
    model = models[name]
    for table, qid in (shop()[::2], fresh()):
        wanted = predict_scores(model, table, qid)
        size = max(1.0, np.abs(wanted).max())
        rows, seen = [0, 4, 13, 30, 31], set()
        for row, why in zip(rows, rankwise.explain(model, table, qid, rows=rows), strict=True):
            total = sum(part.contribution for part in why.parts) + why.constant
            assert abs(total - wanted[row]) <= 1e-12 * size
            seen |= {part.name for part in why.parts}
        why = rankwise.explain_pair(model, table, 30, 31, qid)
        assert abs(sum(part.contribution for part in why.parts) - (wanted[30] - wanted[31])) <= 1e-12 * size
    if name != "kernel":
        assert {"price:season", "price:stock", "budget:price", "vector[0]:new"} <= seen
        assert not {"season", "budget"} & seen
    if name == "curves":
        assert {"price × price:stock", "price:season × price:season"} <= seen


def test_an_explanation_shows_the_values_of_both_sides(models):
    table, _, qid = shop()
    row = int(np.flatnonzero(table["price"].notna())[0])
    (why,) = rankwise.explain(models["linear"], table, qid, rows=[row])
    shown = {part.name: part.values for part in why.parts}  # noqa: PD011 - no data frame
    assert shown["price:season"] == ((table["price"][row], table["season"][row]),)
    assert str(table["season"][row]) in why.text(n_parts=99)


def test_the_report_explains_crosses():
    table, y, qid = shop()
    table = table[["price", "stock", "new", "budget"]].astype(float)
    own = numbers().fit(table, qid=qid)
    model = Pipeline([("table", own), ("rank", RankRLS().fit(own.transform(table), y, qid))])
    report = Report(model, table, y, qid)
    constant = rankwise.explain(model, table, qid, rows=[0])[0].constant
    for query in report.opened:
        for row in query.rows:
            assert row.parts.sum() + constant == pytest.approx(report.scores[row.row], abs=1e-9)
    assert "price:stock" in report.html()


def test_a_model_that_was_saved_is_exported_alike(tmp_path):
    table, y, qid = shop()
    model = AutoRanker(methods=["rls"], encoder=encoder()).fit(table, y, qid=qid)
    assert {"sqlite", "onnx", "c", "json"} <= set(model.candidates_.chosen.exportable_to)
    assert not {*ENGINES, "vespa"} & set(model.candidates_.chosen.exportable_to)
    rankwise.save(model, tmp_path / "m.rw")
    again = rankwise.load(tmp_path / "m.rw")
    made = rankwise.export(again, "python")
    assert made == rankwise.export(model, "python")
    new, searches = fresh()
    found = run("python", made, as_given(new), searches, model.needs_queries_, tmp_path)
    wanted = model.predict(new, qid=searches) if model.needs_queries_ else model.predict(new)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("target", ENGINES)
def test_engines_refuse_products_with_a_way_out(target):
    model = fitted(numbers(), MODELS["standardised"])
    with pytest.raises(InvalidInputError, match=r"price:stock.*feature of its own"):
        rankwise.export(model, target, filled=True)
    table, y, qid = shop()
    with pytest.raises(InvalidInputError, match=r"price:stock.*feature of its own"):
        AutoRanker(methods=["rls"], target=target, encoder=numbers()).fit(table, y, qid=qid)


def test_automatic_choice_for_a_target_keeps_crosses():
    table, y, qid = shop()
    model = AutoRanker(methods=["rls", "curves"], target="vespa", encoder=numbers()).fit(table, y, qid=qid)
    assert "vespa" in model.candidates_.chosen.exportable_to
    assert "product" not in rankwise.export(model, "vespa")


# --- formulas ---


def product_of(first, second, *steps):
    return Column(Product(first, second), steps)


def test_levels_of_a_crossed_category_become_one_table(models):
    """As many products as the first side has columns; else databases would run out of columns."""
    formula = folded(formula_of(models["standardised"]))
    crossed = Counter(formula.title([term.column.inputs]) for term in formula.terms if term.column.sides)
    assert crossed == {
        "price:stock": 2,  # and the mark of what is missing
        "price:season": 2,
        "colour:season": 5,
        "postcode:colour": 3,
        "vector[0]:new": 1,
        "vector[1]:new": 1,
        "vector[2]:new": 1,
        "budget:price": 2,
        "season:stock": 1,
        "stock:stock": 1,
    }
    table, qid = fresh()
    rows = rows_for(models["standardised"], table)
    wanted = predict_scores(models["standardised"], table, qid)
    np.testing.assert_allclose(formula.evaluate(rows), wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.fixture(scope="module")
def wide():
    """Return a table with two categories of many levels, labels, queries and an encoder that crosses them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": rng.integers(0, 60, 900).astype(str), "b": rng.integers(0, 45, 900).astype(str)}
    )
    y, qid = rng.integers(0, 3, 900), np.arange(900) // 9
    own = TableEncoder(crosses=["a:b"], min_rows=1).fit(table, qid=qid)
    assert len(own.get_feature_names_out()) > 2500
    return table, y, qid, own


@pytest.mark.parametrize("target", ["sqlite", "onnx"])
@pytest.mark.parametrize("kind", ["linear", "curves"])
def test_two_categories_of_many_levels(wide, kind, target, tmp_path):
    table, y, qid, own = wide
    X = own.transform(table)
    scale = StandardScaler().fit(X)
    ranker = RankRLS() if kind == "linear" else AdditiveRanker(alpha=0.1, interactions=0)
    model = Pipeline([("table", own), ("scale", scale), ("rank", ranker.fit(scale.transform(X), y, qid))])
    found = run(target, rankwise.export(model, target), table, qid, False, tmp_path)
    wanted = model.predict(table)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * max(1.0, np.abs(wanted).max()))


def test_centres_of_products_of_numbers_are_kept():
    """Far from zero, a difference that is taken late loses digits."""
    rng = np.random.default_rng(0)
    X = np.column_stack([1e9 + rng.normal(size=50), 1.0 + 1e-9 * rng.normal(size=50)])
    column = product_of(Column(0), Column(1))
    values = Table(X).values(column)
    formula = Formula(("a", "b"), (False, False), terms=(Term(3.0, column.then(Affine(values.mean(), 2.0))),))
    plain = folded(formula)
    assert plain.constant == 0
    np.testing.assert_allclose(plain.evaluate(X), 6 * (values - values.mean()), rtol=0, atol=1e-12)


CASES = {
    "numbers": product_of(Column(0), Column(1)),
    "a number and a category": product_of(Column(0), Column(1, (Levels((1.0, 2.0), (3.0, -2.0), 0.5),))),
    "clipped": product_of(Column(0, (Affine(1.0, 2.0),)), Column(1, (clip(-1.0, 1.0),)), Affine(0.5, -1.0)),
    "a curve of it": product_of(Column(0), Column(1), curve((-4.0, 0.0, 5.0), (1.0, -3.0, 2.0))),
    "marks": product_of(Column(0, (Fill(1.5),)), Column(1, (IsMissing(),))),
    "thrice": product_of(product_of(Column(0), Column(1)), Column(1, (Fill(2.0),)), Affine(1.0)),
}


@pytest.mark.parametrize("target", ["python", "javascript", "c", "onnx", "vespa", "duckdb", "json"])
def test_products_round_trip(target, tmp_path):
    rng = np.random.default_rng(0)
    X, cases, wanted = np.column_stack([rng.normal(size=40), rng.integers(0, 4, 40)]), [], []
    for column in CASES.values():
        formula = Formula(("x0", "x1"), (False, False), 0.25, (Term(-1.5, column), Term(1.0, Column(0))))
        for filled in (False, True):
            cases.append((rankwise.export(formula, target, filled=filled), X, np.zeros(40), False))
            wanted.append(formula.evaluate(X))
    all_close(target, cases, wanted, tmp_path)


@pytest.mark.parametrize("target", ["python", "javascript", "c", "onnx", "sqlite", "duckdb", "json"])
def test_a_side_may_be_scaled_inside_queries(target, tmp_path):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(40, 2)), np.arange(40) // 8
    inner = product_of(
        Column(0, (QueryScale("minmax"),)), Column(1, (Affine(0.5),)), Affine(0.1), QueryScale("rank")
    )
    formula = Formula(
        ("x0", "x1"), (False, False), terms=(Term(2.0, inner), Term(1.0, Column(0, (QueryScale("minmax"),))))
    )
    made = rankwise.export(formula, target, whole_query=True)
    np.testing.assert_allclose(
        run(target, made, X, qid, True, tmp_path), formula.evaluate(X, qid), atol=1e-12
    )
    with pytest.raises(InvalidInputError, match="must come last"):
        rankwise.export(Formula(("x0", "x1"), (False, False), terms=(Term(1.0, product_of(
            Column(0, (QueryScale("minmax"),)), Column(1))),)), "vespa")  # fmt: skip


def test_every_target_takes_crosses_or_says_why_not():
    assert {*GENERAL, *ENGINES, "vespa", "postgresql"} == set(TARGETS)
