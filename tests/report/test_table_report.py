"""The page about a two-sided model: figures of each ranking, intervals, names, gaps."""

import numpy as np
import pytest

from rankwise import TwoSidedRankRLS, TwoSidedRankRLSCV
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import bootstrap_interval
from rankwise.report import TableReport
from report.test_report import balanced, visible_words


def drugs(n=24, m=15, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = rng.normal(size=(n, 4)), rng.normal(size=(m, 3))
    return rows, columns, rows @ rng.normal(size=(4, 3)) @ columns.T + rng.normal(size=(n, m))


@pytest.mark.parametrize("ranked", ["columns", "rows", "both"])
@pytest.mark.parametrize("has_gaps", [False, True])
def test_each_ranking_has_its_figure_and_interval(ranked, has_gaps):
    rows, columns, Y = drugs()
    if has_gaps:
        Y[np.random.default_rng(1).random(Y.shape) < 0.3] = np.nan
    model = TwoSidedRankRLS(ranked=ranked).fit(rows[:16], columns, Y[:16])
    report = TableReport(model, rows[16:], columns, Y[16:], metrics=["pairwise_error"])
    balanced(report.html())
    scores, labels = model.predict(rows[16:], columns), Y[16:]
    if ranked == "both":
        assert report.figures == {}
        known = ~np.isnan(labels)
        expected = bootstrap_interval(labels[known], scores[known], metric="pairwise_error")
        assert report.evidence.figures[0].model == expected
        return
    if ranked == "rows":
        scores, labels = scores.T, labels.T
    unit = {"columns": "row", "rows": "column"}[ranked]
    for at, (own, truth) in enumerate(zip(scores, labels, strict=True)):
        known = ~np.isnan(truth)
        expected = bootstrap_interval(truth[known], own[known], metric="pairwise_error")
        assert report.figures[f"{unit} {at}"] == expected
        assert f"[{expected.low:.3f}, {expected.high:.3f}]" in report.html()
    values = [one.value for one in report.figures.values()]
    assert values == sorted(values, reverse=True)
    assert report.evidence.figures[0].model.value == pytest.approx(np.mean(values))


def test_names_and_held_out_figures_are_shown(tmp_path):
    rows, columns, Y = drugs()
    model = TwoSidedRankRLSCV().fit(rows, columns, Y)
    names = [f"drug <{at}>" for at in range(24)]
    report = TableReport(model, rows, columns, Y, row_names=names, title="Kinases")
    page = report.html()
    balanced(page)
    words = " ".join(visible_words(page).split())
    low, high = model.interval_
    assert f"{model.best_score_:.4f} [{low:.3f}, {high:.3f}], by {model.cv_}." in words
    assert "drug &lt;7&gt;" in page
    assert "column 3" in page
    assert "Worst rows" in words
    assert 'href="#held-out"' in page
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page
    assert "held-out" not in TableReport(TwoSidedRankRLS().fit(rows, columns, Y), rows, columns, Y).html()


def test_bad_input_is_refused():
    rows, columns, Y = drugs()
    model = TwoSidedRankRLS().fit(rows, columns, Y)
    with pytest.raises(InvalidInputError, match="Y has shape"):
        TableReport(model, rows[:3], columns, Y)
    with pytest.raises(InvalidInputError, match="row_names has 2 names"):
        TableReport(model, rows, columns, Y, row_names=["a", "b"])
    with pytest.raises(InvalidInputError, match="name of its own"):
        TableReport(model, rows, columns, Y, column_names=["a"] * 15)
