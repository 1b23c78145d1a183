"""Curves and surfaces in the report: what is drawn, what is marked, and that the parts of scores add up."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from browser import NEEDS_BROWSER, Select
from rankwise import AdditiveRanker, RankRLS
from rankwise.formula.formula import Column
from rankwise.preprocessing import QueryScaler
from rankwise.report import Report
from rankwise.report.columns import Axis, marks_of

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    n_rows = 600
    X = pd.DataFrame(
        {
            "price": rng.lognormal(3, 1, n_rows),
            HOSTILE: np.where(rng.random(n_rows) < 0.2, np.nan, rng.uniform(1, 5, n_rows)),
            "stars": rng.integers(1, 6, n_rows).astype(float),
            "age": rng.normal(50, 9, n_rows),
        }
    )
    worth = np.abs(X[HOSTILE].fillna(2) - 3) - np.log(X["price"]) + 0.2 * X["stars"] * (X["age"] > 50)
    y = np.digitize(worth, np.quantile(worth, [0.4, 0.7, 0.9])).astype(float)
    qid = np.arange(n_rows) // 20
    return AdditiveRanker(interactions=2, categorical=["stars"]).fit(X, y, qid=qid), X, y, qid


@pytest.fixture(scope="module")
def report(fitted):
    return Report(*fitted)


def test_parts_of_scores_add_up(fitted, report):
    _, X, _, _ = fitted
    assert len(report.parts.names) == 6
    for query in report.opened:
        assert query.columns.size == 6
        sums = np.array([row.parts.sum() for row in query.rows])
        scores = np.array([row.score for row in query.rows])
        np.testing.assert_allclose(sums, scores, rtol=0, atol=1e-12)
        for part, value in zip(query.columns, query.rows[0].values, strict=True):
            named = report.parts.names[part]
            np.testing.assert_equal(value, X.loc[query.rows[0].row, named] if named in X else None)


def test_pictures_agree_with_the_model(fitted, report):
    model, X, _, qid = fitted
    parts, pictures = report.parts, report.pictures
    rows = np.arange(len(X))
    marks = marks_of(parts, pictures, rows)
    added = parts.of(rows)
    np.testing.assert_allclose(added.sum(axis=1), model.predict(X), atol=1e-12)
    tallest = max(
        np.ptp([0.0, *vars(one)["values"][:, 1], one.missing or 0.0])
        for one in pictures
        if len(one.axes) == 1
    )
    for at, one in enumerate(pictures):
        inside = added[:, one.part] - np.array([added[qid == q, one.part].mean() for q in qid])
        assert parts.spread[one.part] == pytest.approx(np.sqrt(np.mean(inside**2)))
        if len(one.axes) == 2:
            continue
        low, high = one.scale
        points = one.values  # noqa: PD011 - no frame
        assert (points[:, 1] > low).all()  # no curve is cut off
        assert (points[:, 1] < high).all()
        assert high - low <= 1.3 * max(np.ptp([0.0, *points[:, 1], one.missing or 0.0]), tallest / 4)
        down = 100 * (high - added[:, one.part]) / (high - low)
        np.testing.assert_allclose([point[1] for point in marks[at]], down, atol=0.051)
        known = X[parts.names[one.part]].notna().to_numpy()
        if not one.axes[0].labels:  # the line passes through the rows
            across = one.axes[0].places(X[parts.names[one.part]].to_numpy())
            drawn = np.interp(across[known], *points.T)
            np.testing.assert_allclose(drawn, added[known, one.part], atol=0.02 * (high - low))


@pytest.mark.parametrize(
    ("ends", "is_date", "words"),
    [
        ((11000.0, 19000.0), True, ["2010", "2020"]),
        ((19723.0, 19922.0), True, ["2024-03", "2024-05", "2024-07"]),
        ((0.0, 10.0), True, ["1970-01-06", "1970-01-11"]),
        ((5.25, 5.75), True, ["1970-01-06"]),
        ((1900.0, 2023.0), False, ["1900", "1950", "2000"]),
        ((25.0, 400.0), False, ["100", "200", "300", "400"]),
    ],
)
def test_ticks_are_round_dates_years_and_numbers(ends, is_date, words):
    assert [word for _, word in Axis(Column(0), (), np.array(ends), [], is_date).marks()] == words


def test_two_values_are_drawn_as_levels():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[:, 1] = X[:, 1] > 0
    report = Report(AdditiveRanker(interactions=0).fit(X, X.sum(axis=1)), X, X.sum(axis=1))
    assert {one.part: one.axes[0].labels for one in report.pictures} == {0: [], 1: ["0", "1"]}


def test_columns_scaled_beside_themselves_add_up():
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(300, 2)), np.arange(300) // 10
    y = np.digitize(np.abs(X[:, 0]), [0.5, 1.0]).astype(float)
    scaler = QueryScaler("rank", passthrough=True).fit(X, qid=qid)
    ranker = AdditiveRanker(interactions=0).fit(scaler.transform(X, qid=qid), y, qid=qid)
    report = Report(make_pipeline(scaler, ranker), X, y, qid, feature_names=["a", "b"])
    assert report.parts.names == ["a", "b"]
    assert "Which columns matter" in report.html()


def test_linear_models_show_weights_in_units_of_the_columns():
    rng = np.random.default_rng(1)
    X, qid = rng.normal(50, 9, size=(300, 3)), np.arange(300) // 10
    y = X @ [1.0, -2.0, 0.0] + rng.normal(size=300)
    scaler = StandardScaler().fit(X)
    ranker = RankRLS().fit(scaler.transform(X), y, qid=qid)
    for given in (X, sp.csr_array(X)):
        model = make_pipeline(scaler, ranker) if given is X else RankRLS().fit(X, y, qid=qid)
        parts = Report(model, given, y, qid).parts
        weights = ranker.coef_ / scaler.scale_ if given is X else model.coef_
        np.testing.assert_allclose(parts.weights, weights)
        centred = X - np.array([X[qid == q].mean(axis=0) for q in qid])
        np.testing.assert_allclose(parts.spread, np.abs(weights) * centred.std(axis=0), rtol=1e-6)


@pytest.fixture(scope="module")
def page(tmp_path_factory, report):
    path = tmp_path_factory.mktemp("curves") / "report.html"
    report.save(path)
    return path


@NEEDS_BROWSER
@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1100])
def test_the_query_one_looks_at_is_marked(browser, page, report, width):
    browser.open(page, width=width)
    assert browser.messages() == []
    assert browser.driver.title != "taken"
    assert browser.run("return document.documentElement.scrollWidth") <= width
    frames = browser.all("[data-picture]")
    assert len(frames) == 6
    for number in (2, 5):
        Select(browser.find("#pick-marked")).select_by_index(number)
        for frame in frames:
            assert len(frame.find_elements("css selector", ".rowmark")) == len(report.opened[number].rows)
    Select(browser.find("#pick-query")).select_by_index(3)
    assert Select(browser.find("#pick-marked")).first_selected_option.get_attribute("value") == "3"
    assert [mark.text for mark in frames[0].find_elements("css selector", ".rowmark.picked")] == ["A", "B"]
    browser.all("details[data-opened] summary")[1].click()
    opened = browser.all("details[data-opened]")[1].get_attribute("data-opened")
    assert Select(browser.find("#pick-marked")).first_selected_option.get_attribute("value") == opened


@NEEDS_BROWSER
@pytest.mark.long
def test_what_is_drawn_stays_inside_its_picture(browser, page):
    browser.open(page)
    outside = browser.run(
        "return [...document.querySelectorAll('[data-picture]')].filter(frame => {"
        "const box = frame.getBoundingClientRect();"
        "return [...frame.querySelectorAll('.rowmark')].some(mark => {"
        "const own = mark.getBoundingClientRect(), x = (own.left + own.right) / 2, y = (own.top + own.bottom) / 2;"
        "return x < box.left - 1 || x > box.right + 1 || y < box.top - 1 || y > box.bottom + 1; }); }).length"
    )
    assert outside == 0
