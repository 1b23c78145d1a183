"""Curves and surfaces in the report: what is drawn, what is marked, and that the parts of scores add up."""

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.support.ui import Select
from sklearn.pipeline import make_pipeline

from browser import NEEDS_BROWSER, Browser
from rankwise import AdditiveRanker
from rankwise.preprocessing import QueryScaler
from rankwise.report import Report

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
    model, X, _, _ = fitted
    assert len(report._parts.names) == 6
    for query in report.opened:
        assert query.columns.size == 6
        sums = np.array([row.parts.sum() for row in query.rows])
        scores = np.array([row.score for row in query.rows])
        np.testing.assert_allclose(sums, scores, rtol=0, atol=1e-12)
        first = query.rows[0]
        for part, value in zip(query.columns, first.values, strict=True):
            expected = X.iloc[first.row, model.terms_.curves[part].column] if part < 4 else np.nan
            np.testing.assert_equal(value, expected)


def test_rows_are_marked_where_their_curves_pass(fitted, report):
    model = fitted[0]
    pictures = report._pictures
    low, high = pictures.range
    for query, marks in zip(report.opened, report._marks, strict=True):
        assert len(marks) == 6
        for curve, points in zip(pictures.curves, marks[:4], strict=True):
            alone = next(k for k, own in enumerate(model.terms_.curves) if own.column == curve.column)
            at = query.columns.tolist().index(alone)
            added = np.array([row.parts[at] for row in query.rows])
            down = np.clip(100 * (high - added) / (high - low), 0, 100)
            np.testing.assert_allclose([point[1] for point in points], down, atol=0.051)


def test_columns_scaled_beside_themselves_are_named():
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(300, 2)), np.arange(300) // 10
    y = np.digitize(np.abs(X[:, 0]), [0.5, 1.0]).astype(float)
    scaler = QueryScaler("rank", passthrough=True).fit(X, qid=qid)
    ranker = AdditiveRanker(interactions=0).fit(scaler.transform(X, qid=qid), y, qid=qid)
    report = Report(make_pipeline(scaler, ranker), X, y, qid, feature_names=["a", "b"])
    assert len(report._parts.names) == 4
    assert report._parts.names[:2] == ["a", "b"]
    assert len(set(report._parts.names)) == 4


@pytest.fixture(scope="module")
def page(tmp_path_factory, report):
    path = tmp_path_factory.mktemp("curves") / "report.html"
    report.save(path)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@NEEDS_BROWSER
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
