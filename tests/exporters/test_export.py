"""Exported models, run by what they were written for, score as `predict` does."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

import rankwise
from exported import columns_of, insert_statements, run, run_all
from formulas import CURVES, KERNELS, NAMES, QUERIES, case, fit, rows, with_gaps
from rankwise import AdditiveRanker, KernelRankRLS, RankRLS
from rankwise.exceptions import InvalidInputError, MissingPackageError
from rankwise.exporters import TARGETS
from rankwise.formula.formula import Column, Formula, Surface, Term
from rankwise.formula.steps import Fill, Levels, Power, curve, stairs
from rankwise.model_selection import predict_scores
from rankwise.preprocessing import QueryScaler
from real_data import NEEDS_REAL_DATA, ohsumed

SINGLE = {"solr", "elasticsearch-ltr", "opensearch-ltr"}
GENERAL = ["python", "javascript", "c", "onnx", "sqlite", "duckdb", "vespa", "json"]
TEXTS = ["table", "ordinal table", "rare table", "filled texts"]


def agree(found, wanted, rounding=1e-11, name=""):
    np.testing.assert_allclose(
        found, wanted, rtol=0, atol=rounding * max(1.0, np.abs(wanted).max()), err_msg=str(name)
    )


def all_agree(target, cases, folder, rounding=1e-11):
    """Compare the scores of cases, by name: source, rows, queries, whether these come whole, and wanted scores."""
    found = run_all(target, [one[:4] for one in cases.values()], folder)
    for (name, one), scores in zip(cases.items(), found, strict=True):
        agree(scores, one[4], rounding, name)


def alike(found, wanted, qid, rounding):
    """Inside queries, scores differ as they should: a constant is nobody's."""
    for query in np.unique(qid):
        own = qid == query
        agree(found[own] - found[own][0], wanted[own] - wanted[own][0], rounding)


def refused(name, target):
    """Tell which models a target is known not to take."""
    if name == "normal quantiles":
        return target != "json"
    if name == "filled texts" and target == "onnx":  # which has no missing texts
        return True
    if target == "vespa":
        return name in {*KERNELS, *TEXTS, "query standard", "query rank", "filled, then by query"}
    return target in {"sqlite", "duckdb"} and name in KERNELS


@pytest.mark.parametrize("target", GENERAL)
def test_whole_pipelines_round_trip(target, tmp_path):
    cases = {}
    for name in NAMES:
        model, X, _, qid = case(name)
        if isinstance(X, pd.DataFrame) and target == "vespa":
            X = X.rename(columns=lambda one: one.replace(" ", "_"))
        arguments = {"feature_names": columns_of(X)[1], "whole_query": True}
        if refused(name, target):
            with pytest.raises(InvalidInputError):
                rankwise.export(model, target, **arguments)
            continue
        whole = name in QUERIES or name == "filled, then by query"
        cases[name] = (
            rankwise.export(model, target, **arguments),
            X,
            qid,
            whole,
            predict_scores(model, X, qid),
        )
    all_agree(target, cases, tmp_path, 1e-9)


@pytest.mark.parametrize("target", ["solr", "elasticsearch-ltr", "opensearch-ltr"])
@pytest.mark.parametrize("name", ["alone", "standard", "two scalers", "max-abs", "robust"])
def test_engines_get_weights_with_the_scaling_folded_in(name, target):
    model, X, _, qid = case(name)
    made = rankwise.export(model, target)
    found = run(target, made, X, qid, False, None)
    alike(found, model.predict(X), qid, 2e-4)


@pytest.mark.parametrize("target", ["solr", "elasticsearch-ltr", "opensearch-ltr"])
@pytest.mark.parametrize(
    ("name", "share"),
    [
        *(
            (name, 0.02)
            for name in ("splines", "bins", "min-max, clipped", "quantiles", "curves of scaled columns")
        ),
        ("curves", 0.05),
    ],
)
def test_engines_get_curves_as_trees_within_the_error_that_is_said(name, share, target):
    model, X, _, qid = case(name)
    X = np.nan_to_num(X).astype(np.float32).astype(float)
    error = share * np.ptp(model.predict(X))
    made = rankwise.export(model, target, error=error)
    found = run(target, made, X, qid, False, None)
    assert np.abs(found - model.predict(X)).max() <= error * (1 + 1e-4)


# --- curves and surfaces, as additive models have them ---


def additive(seed=0):
    """Return a formula with curves, levels and surfaces, and rows that reach all of it."""
    rng = np.random.default_rng(seed)

    def term(at, missing=None):
        knots = np.sort(rng.normal(size=6)).astype(np.float32).astype(float)
        return Term(
            1.0, Column(at, (curve(tuple(knots.tolist()), tuple(rng.normal(size=6).tolist()), missing),))
        )

    def knots(n):
        return tuple(np.sort(rng.normal(size=n)).astype(np.float32).astype(float).tolist())

    def grid(n, m):
        return tuple(map(tuple, rng.normal(size=(n, m)).tolist()))

    terms = (
        term(0, 0.4),
        term(1),
        Term(2.0, Column(2, (Levels((1.0, 2.0, 5.0), (0.1, -0.2, 0.3), 0.7, -1.0),))),
    )
    surfaces = (
        Surface((Column(0), Column(1)), (knots(5), knots(5)), grid(6, 6)),
        Surface((Column(1), Column(3)), (knots(3), knots(4)), grid(3, 4)),
    )
    formula = Formula(("x0", "x1", "x2", "x3"), (False,) * 4, 0.25, terms, surfaces)
    X = (rng.normal(size=(200, 4)) * 1.5).astype(np.float32).astype(float)
    X[:, 2] = rng.choice([1.0, 2.0, 5.0, 7.0], 200)
    return formula, X, rng


def odd_shapes(seed=1):
    """Return a formula of what models seldom have: single knots, gaps of one column only, stairs without a step."""
    rng = np.random.default_rng(seed)

    def knots(n):
        return tuple(np.sort(rng.normal(size=n)).astype(np.float32).astype(float).tolist())

    surfaces = tuple(
        Surface(
            (Column(a), Column(b)),
            (knots(n), knots(m)),
            tuple(map(tuple, rng.normal(size=(n + gap, m + beside)).tolist())),
        )
        for a, b, n, m, gap, beside in [
            (0, 1, 1, 3, 1, 0),
            (1, 0, 3, 1, 0, 1),
            (0, 1, 3, 2, 1, 0),
            (1, 0, 2, 3, 0, 1),
        ]
    )
    terms = (
        Term(2.0, Column(0, (curve(knots(1), (0.3,), -0.7),))),
        Term(1.5, Column(2, (stairs((), (0.5,)),))),
    )
    formula = Formula(("x0", "x1", "x2"), (False,) * 3, 0.25, terms, surfaces)
    X = (rng.normal(size=(60, 3)) * 1.5).astype(np.float32).astype(float)
    X[::7, 0] = np.nan
    return formula, X


def many_knots():
    """Return a formula of a curve of many knots and of many levels."""
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=1000)).tolist()
    levels = Levels(tuple(map(float, range(300))), tuple(rng.normal(size=300).tolist()), 7.0, -2.0)
    terms = (
        Term(1.0, Column(0, (curve(knots, rng.normal(size=1000).tolist(), 0.5),))),
        Term(1.0, Column(1, (levels,))),
    )
    x = np.append(rng.normal(size=300), [*knots[:5], knots[-1], -9.0, 9.0, np.nan])
    return Formula(("x0", "x1"), (False,) * 2, terms=terms), np.column_stack(
        [x, rng.integers(-5, 310, x.size)]
    )


def small_formulas():
    """Return formulas and rows of a few numbers: logarithms, constants, codes of texts, marks of missing values."""
    places, one = np.array([[-3.5], [0.0], [7.25]]), (("x0",), (False,))
    for name, steps in {"constant": (), "log": (Power(0.0),), "square": (Power(2.0),)}.items():
        terms = (Term(2.0, Column(0, steps)),) if steps else ()
        yield name, Formula(*one, 0.25, terms), places
    positive = Term(2.0, Column(0, (Power(0.0, is_box_cox=True),)))
    yield "log of what is positive", Formula(*one, 0.25, (positive,)), np.array([[0.5], [1.0], [7.25]])
    mark = Levels((), (), 0.0, 1.0)  # as TableEncoder(categories=...) makes it, before a curve or alone
    terms = (Term(2.0, Column(0, (mark, curve((0.0, 1.0), (3.0, 7.0))))), Term(100.0, Column(0, (mark,))))
    yield "nothing but missing", Formula(*one, terms=terms), np.array([[1.0], [np.nan], [5.0]])
    kept = Term(2.0, Column(0, (curve((0.0, 1.0), (3.0, 7.0)), Fill(9.0))))
    yield "filled after a curve", Formula(*one, terms=(kept,)), np.array([[1.0], [np.nan], [5.0]])


def test_curves_keep_missing_values_missing():
    *_, (_, formula, X) = small_formulas()
    assert formula.evaluate(X).tolist() == [14.0, 18.0, 14.0]


@pytest.mark.parametrize("target", GENERAL)
def test_formulas_round_trip(target, tmp_path):
    formula, X, rng = additive()
    X[rng.random(200) < 0.2, 0] = np.nan
    X[rng.random(200) < 0.1, 2] = np.nan
    formulas = {"additive": (formula, X), "odd shapes": odd_shapes()}
    formulas |= {name: (one, rows_of_it) for name, one, rows_of_it in small_formulas()}
    formulas |= {"many knots": many_knots()} if target != "vespa" else {}
    cases = {
        name: (rankwise.export(one, target), X, np.zeros(len(X), dtype=int), False, one.evaluate(X))
        for name, (one, X) in formulas.items()
    }
    all_agree(target, cases, tmp_path)


@pytest.mark.parametrize("target", ["solr", "elasticsearch-ltr"])
def test_curves_and_surfaces_as_trees(target):
    formula, X, _ = additive()
    made = rankwise.export(formula, target, error=0.2)
    found = run(target, made, X, np.zeros(200), False, None)
    assert np.abs(found - formula.evaluate(X)).max() <= 0.2 * (1 + 1e-5)


def test_the_error_of_trees_is_shared_and_their_number_bounded():
    formula, X, _ = additive()
    by_default = json.loads(rankwise.export(formula, "solr"))
    found = run("solr", json.dumps(by_default), X, np.zeros(200), False, None)
    levels = formula.terms[2].column.steps[0]
    curves = [np.array(term.column.steps[0].coefficients)[:, -1] for term in formula.terms[:2]]
    tables = [vars(one)["values"] for one in (levels, *formula.surfaces)]
    spread = sum(np.ptp(values) for values in (*tables, *curves))
    assert np.abs(found - formula.evaluate(X)).max() <= spread / 50
    with pytest.raises(InvalidInputError, match="leaves"):
        rankwise.export(formula, "solr", error=1e-6)


# --- refusals, names and options ---


@pytest.mark.parametrize(
    ("target", "name", "words"),
    [
        ("solr", "rbf", "kernel"),
        ("elasticsearch-ltr", "query min-max", "one row at a time"),
        ("opensearch-ltr", "table", "texts"),
        ("solr", "filled", "passes 0 for"),
        ("onnx", "query min-max", "whole_query"),
    ],
)
def test_targets_refuse_with_a_reason_and_an_alternative(target, name, words):
    model, *_ = case(name)
    with pytest.raises(InvalidInputError, match=words) as refusal:
        rankwise.export(model, target)
    assert refusal.value.hint


def test_what_is_filled_elsewhere_can_go_to_an_engine():
    model, X, _, qid = case("filled")
    whole = np.where(np.isnan(X), 1.0, X).astype(np.float32)
    found = run("solr", rankwise.export(model, "solr", filled=True), whole, qid, False, None)
    alike(found, predict_scores(model, whole.astype(float), qid), qid, 1e-3)


@pytest.mark.parametrize("target", ["solr", "elasticsearch-ltr", "opensearch-ltr"])
def test_trees_are_lifted_to_scores_from_zero(target):
    model, X, *_ = case("curves")
    X = np.where(np.isnan(X), 0.0, X).astype(np.float32).astype(float)
    X = np.concatenate(
        (X, *(np.where(np.arange(X.shape[1]) == at, knots, X[:1]) for at, knots in worst_of(model)))
    )
    found = run(target, rankwise.export(model, target, nonnegative=True, error=0.3), X, None, False, None)
    assert found.min() >= 0
    plain = run(target, rankwise.export(model, target, error=0.3), X, None, False, None)
    agree(found - found[0], plain - plain[0], 1e-4)


def worst_of(model):
    """Return the knots of every column of a model of curves, as columns of rows."""
    return [(curve.column, np.float32(curve.knots)[:, None].astype(float)) for curve in model.terms_.curves]


def test_weights_without_a_constant_are_not_lifted():
    model, *_ = case("alone")
    for target in ("solr", "python"):
        with pytest.raises(InvalidInputError, match=r"works for trees only.*Hint: train curves"):
            rankwise.export(model, target, nonnegative=True)


def test_names_that_a_target_cannot_take():
    model, *_ = case("alone")
    with pytest.raises(InvalidInputError, match="is not a rank feature"):
        rankwise.export(model, "vespa", feature_names=["a b", "c", "d", "e"])
    with pytest.raises(InvalidInputError, match="not a valid name of a function"):
        rankwise.export(model, "c", name="two words")
    with pytest.raises(InvalidInputError, match="same name"):
        rankwise.export(model, "json", feature_names=["a", "a", "b", "c"])
    with pytest.raises(InvalidInputError, match="not an export format"):
        rankwise.export(model, "pmml")

    with pytest.raises(InvalidInputError, match="not a valid name of a rank profile"):
        rankwise.export(model, "vespa", name="two words")
    with pytest.raises(InvalidInputError, match="error must be positive"):
        rankwise.export(model, "solr", error=-1.0)


def test_what_a_target_cannot_say_is_refused_with_another_way():
    X, y, qid = rows()
    with pytest.raises(InvalidInputError, match="unbounded term, which trees cannot represent"):
        rankwise.export(case("splines, linear outside")[0], "solr")
    curves = fit([StandardScaler()], AdditiveRanker(interactions=1, alpha=0.01), X, y, qid)
    with pytest.raises(InvalidInputError, match="transformed columns cannot become trees"):
        rankwise.export(curves, "solr")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    numbered = fit([codes], RankRLS(0.5), np.round(X), y, qid)
    with pytest.raises(InvalidInputError, match="cannot represent NaN"):
        rankwise.export(numbered, "vespa")


@pytest.mark.parametrize("target", ["python", "javascript", "c"])
def test_functions_are_called_by_no_word_that_means_something_else(target):
    """Not by words of the language, nor by what any of the sources names outside of its functions."""
    words = {"python": "class None math", "javascript": "class eval module", "c": "double exp main"}[
        target
    ].split()
    for name in ("curves", "rbf", "query min-max", "query standard", "query rank"):
        source = rankwise.export(case(name)[0], target, name="f")
        words += re.findall(
            r"^(?:static )?(?:def|function|const|double|void|int) (\w+)", source, re.MULTILINE
        )
        words += re.findall(r"^([A-Z_]+)\b.* = ", source, re.MULTILINE)
    assert len(set(words)) > 6
    for word in set(words) - {"f", "double", "char", "struct"}:
        with pytest.raises(InvalidInputError, match=r"is a reserved word in.*\(name=\)"):
            rankwise.export(case("curves")[0], target, name=word)


ROWS_OF_QUERIES = [target for target in GENERAL if target != "vespa"]


@pytest.mark.parametrize("target", ROWS_OF_QUERIES)
def test_queries_are_scaled_with_missing_values_and_at_any_scale(target, tmp_path):
    X, y, qid = with_gaps()
    X[qid == 0, 0] = np.nan
    X[np.flatnonzero(qid == 1)[1:], 1] = np.nan
    X[qid == 2, 2] = np.where(np.isnan(X[qid == 2, 2]), np.nan, 4.0)
    cases = {}
    for method in ("minmax", "standard", "rank"):
        model = fit([QueryScaler(method), SimpleImputer(add_indicator=True)], RankRLS(), X, y, qid)
        cases[method] = (
            rankwise.export(model, target, whole_query=True),
            X,
            qid,
            True,
            predict_scores(model, X, qid),
        )
    for scale in (1e-200, 1e200):
        far = rows()[0] * scale
        model = fit([QueryScaler("standard")], RankRLS(), far, y, qid)
        cases[scale] = (
            rankwise.export(model, target, whole_query=True),
            far,
            qid,
            True,
            predict_scores(model, far, qid),
        )
    all_agree(target, cases, tmp_path, 1e-9)


@pytest.mark.parametrize("target", ["python", "javascript", "c", "onnx", "json"])
def test_rows_far_from_every_basis_row_are_scored(target, tmp_path):
    X, y, qid = rows()
    model = KernelRankRLS("rbf", gamma=0.3, basis=15, random_state=0).fit(X, y, qid)
    far = np.vstack([X[:3], X[:3] * 1e200])
    wanted = model.predict(far)
    agree(run(target, rankwise.export(model, target), far, qid[:6], False, tmp_path), wanted, 1e-9)
    assert not wanted[3:].any()


def test_columns_may_be_called_as_we_call_what_is_in_between(tmp_path):
    X, y, qid = rows()
    model = fit([StandardScaler(), QueryScaler("standard")], RankRLS(), X, y, qid)
    names = ["rw_1", "rw_step1", "rw__1", "b"]
    for target in ("sqlite", "duckdb"):
        made = rankwise.export(model, target, feature_names=names)
        found = run(target, made, pd.DataFrame(X, columns=names), qid, True, tmp_path)
        agree(found, predict_scores(model, X, qid), 1e-9)


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("sqlite", {"feature_names": ["RW_1", "RW_2_mean", "a", "b"]}),
        ("duckdb", {"qid": "rw_1", "table": "Rw_Step2"}),
        ("sqlite", {"qid": "RW_2", "table": "rw_step1"}),
        ("duckdb", {"name": "rw_1"}),
    ],
)
def test_no_name_of_the_table_is_taken_for_what_is_in_between(names, target):
    X, y, qid = rows()
    model = fit([StandardScaler(), QueryScaler("standard")], RankRLS(), X, y, qid)
    columns = names.get("feature_names", ["x0", "x1", "x2", "x3"])
    table, ids, scores = (
        names.get(key, own) for key, own in (("table", "rows"), ("qid", "qid"), ("name", "score"))
    )
    # The tests' own table, under the names that the statement is for.
    renamed = ", ".join(
        [f'"qid" AS "{ids}"', *(f'c{at} AS "{name}"' for at, name in enumerate(columns)), "number"]
    )
    made = rankwise.export(model, target, **names)
    whole = f'WITH "{table}" AS (SELECT {renamed} FROM main."rows") SELECT number, "{scores}" AS score FROM ({made})'
    found = run(target, whole, pd.DataFrame(X, columns=["c0", "c1", "c2", "c3"]), qid, True, None)
    agree(found, predict_scores(model, X, qid), 1e-9)


@pytest.mark.parametrize("target", ["sqlite", "duckdb", "postgresql"])
def test_scores_are_called_like_no_column(target):
    model, *_ = case("alone")
    for names in (
        {"feature_names": ["score", "b", "c", "d"]},
        {"name": "x2"},
        {"name": "qid"},
        {"qid": "id", "name": "id"},
    ):
        with pytest.raises(InvalidInputError, match=r"would be called that too.*\(name=\)"):
            rankwise.export(model, target, **names)


@pytest.mark.parametrize("target", ["sqlite", "duckdb"])
def test_columns_that_a_database_takes_for_one_are_refused(target):
    model, *_ = case("alone")
    names = ["price", "age", "Price", "size"]
    with pytest.raises(InvalidInputError, match="does not distinguish 'Price' from another column"):
        rankwise.export(model, target, feature_names=names)
    with pytest.raises(InvalidInputError, match="would be called that too"):
        rankwise.export(model, target, name="X0")
    assert '"Price"' in rankwise.export(model, "postgresql", feature_names=names)


def test_names_with_quotes_and_rank_features(tmp_path):
    X, y, qid = rows()
    model = RankRLS().fit(X, y, qid)
    names = ['a "quoted" one', "it's", "select", "naïve"]
    for target in ("sqlite", "duckdb"):
        made = rankwise.export(model, target, feature_names=names)
        table = pd.DataFrame(X, columns=[name.replace('"', '""') for name in names])
        agree(run(target, made, table, qid, False, tmp_path), model.predict(X))
    made = rankwise.export(
        model, "vespa", feature_names=["bm25(title)", "price", "fieldMatch(body).proximity", "query(age)"]
    )
    assert "bm25(title)" in made
    assert "attribute(price)" in made


def test_a_file_is_written_whole(tmp_path):
    model, *_ = case("standard")
    made = rankwise.export(model, "python", path=tmp_path / "model.py")
    assert (tmp_path / "model.py").read_text(encoding="utf-8") == made
    assert (
        rankwise.export(model, "onnx", path=tmp_path / "model.onnx") == (tmp_path / "model.onnx").read_bytes()
    )


def test_wide_models_are_no_long_sums(tmp_path):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(8, 1500)), rng.integers(0, 3, 8), np.zeros(8, dtype=int)
    model = fit([StandardScaler()], RankRLS(), X, y, None)
    # SQLite takes 2,000 columns, and expressions that are 1,000 deep.
    for target in ("python", "c", "javascript", "onnx", "sqlite"):
        agree(run(target, rankwise.export(model, target), X, qid, False, tmp_path), model.predict(X), 1e-10)


def test_every_target_is_tried():
    assert set(TARGETS) == {*GENERAL, *SINGLE, "postgresql"}


def test_without_onnx_the_way_to_it_is_named(monkeypatch):
    model, *_ = case("alone")
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"rankwise\[onnx\]"):
        rankwise.export(model, "onnx")


@pytest.mark.parametrize(
    "name",
    [
        *QUERIES,
        "standard",
        "splines",
        "power",
        "filled",
        "filled, then by query",
        "table",
        "rare table",
        *CURVES,
    ],
)
def test_postgresql(name, postgresql):
    model, X, _, qid = case(name)
    made = rankwise.export(model, "postgresql", feature_names=columns_of(X)[1])
    script = (
        f"BEGIN;\n{insert_statements(X, qid)}SELECT score FROM ({made}) AS s ORDER BY number;\nROLLBACK;\n"
    )
    found = np.array([float(line) for line in postgresql(script).split()])
    agree(found, predict_scores(model, X, qid), 1e-9)


# --- real data ---


STEPS_OF_OHSUMED = {
    "standard": ([StandardScaler()], ["python", "onnx", "vespa", "solr", "opensearch-ltr"]),
    "imputer": ([SimpleImputer(), StandardScaler()], ["json", "duckdb", "elasticsearch-ltr"]),
    "query": ([QueryScaler()], ["javascript", "c", "sqlite"]),
}


@pytest.mark.parametrize("real_rows", [8, pytest.param(106, marks=pytest.mark.long)], indirect=True)
@pytest.mark.parametrize(
    ("steps", "target"), [(name, target) for name, (_, own) in STEPS_OF_OHSUMED.items() for target in own]
)
@pytest.mark.real_data
def test_ohsumed_is_ordered_as_predict_orders_it(target, steps, tmp_path, real_rows):
    X, y, qid = real_rows
    chain = STEPS_OF_OHSUMED[steps][0]
    model = fit(chain, RankRLS(1.0), X, y, qid)
    made = rankwise.export(model, target, whole_query=True, filled=steps == "imputer")
    found, wanted = run(target, made, X, qid, steps == "query", tmp_path), predict_scores(model, X, qid)
    rounding = 1e-4 if target in SINGLE else 1e-10
    alike(found, wanted, qid, rounding)
    for query in np.unique(qid):
        own = qid == query
        order = np.argsort(-wanted[own], kind="stable")
        # Neighbours that the target can tell apart stand in the same order.
        gaps = -np.diff(found[own][order])
        assert (gaps >= -2 * rounding * np.abs(wanted).max()).all()


@pytest.fixture(scope="module")
def real_rows(request):
    X, y, qid = ohsumed()
    few = np.isin(qid, np.unique(qid)[: request.param])
    return X[few], y[few], qid[few]


test_ohsumed_is_ordered_as_predict_orders_it.pytestmark += NEEDS_REAL_DATA
