"""What a report says, without a browser: figures, kinds of models, size, hostile names."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import rankwise
from rankwise import AutoRanker, RankRLS, RankRLSCV, RankSVMCV
from rankwise.displays.regularisation import Reading
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import bootstrap_interval, get_metric
from rankwise.report import Report
from rankwise.report.evidence import columns_to_try
from rankwise.report.markup import alike, histogram, ticks


def searches(queries=30, size=10, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, features))
    y = np.digitize(X @ rng.normal(size=features) + rng.normal(size=queries * size), [0, 1.5]).astype(float)
    return X, y, np.arange(queries).repeat(size)


class Balance(HTMLParser):
    """Collects elements that are closed in the wrong order."""

    VOID = frozenset({"meta", "link", "br", "img", "input"})

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID and tag not in {"path", "polyline", "rect"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in {"path", "polyline", "rect"}:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def balanced(page):
    parser = Balance()
    parser.feed(page)
    assert parser.wrong == []
    assert parser.open == []
    assert "nan" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).lower()
    return parser


def test_alphas_that_were_not_tried_are_not_shown():
    X, y, qid = searches()
    model = RankSVMCV().fit(X, y, qid=qid)
    model.cv_errors_[:2] = np.nan  # as where smaller alphas have only made it worse
    page = Report(model, X, y, qid).html()
    balanced(page)
    assert f"of {model.alphas_.size - 2} alphas" in page


@pytest.mark.parametrize("storage", ["dense", "sparse", "frame"])
def test_storage_does_not_matter(storage):
    X, y, qid = searches()
    names = [f"f{j}" for j in range(6)]
    model = RankRLS().fit(X, y, qid=qid)
    given = {"dense": X, "sparse": sp.csr_array(X), "frame": pd.DataFrame(X, columns=names)}[storage]
    if storage == "frame":
        model = RankRLS().fit(given, y, qid=qid)
    report = Report(model, given, y, qid, feature_names=names)
    reference = Report(RankRLS().fit(X, y, qid=qid), X, y, qid, feature_names=names)
    for own, expected in zip(report.evidence.figures, reference.evidence.figures, strict=True):
        assert own.model.value == pytest.approx(expected.model.value)
        assert own.single.value == pytest.approx(expected.single.value)
    assert report.evidence.best_column == reference.evidence.best_column
    assert [query.name for query in report.opened] == [query.name for query in reference.opened]


def test_figures_are_those_of_the_metrics():
    X, y, qid = searches()
    model = RankRLS().fit(X, y, qid=qid)
    report = Report(model, X, y, qid, metrics=["average_precision", "pairwise_error"])
    for figure in report.evidence.figures:
        assert figure.model == bootstrap_interval(y, model.predict(X), qid, metric=figure.name)
    # The expectation over random orders, by drawing some.
    rng = np.random.default_rng(0)
    drawn = [get_metric("average_precision")(y, rng.random(y.size), qid) for _ in range(300)]
    random = report.evidence.figures[0].random.value
    assert random == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(300))


def test_weights_of_rows_count():
    rng = np.random.default_rng(0)
    X, qid, weight = rng.normal(size=(200, 3)), np.arange(200) // 10, rng.integers(0, 3, 200)
    y = np.digitize(X[:, 0] + rng.normal(size=200), [0, 1])
    model = RankRLS().fit(X, y, qid=qid)
    assert len(Report(model, X, y, qid, metrics="average_precision").evidence.figures) == 1
    report = Report(model, X, y, qid, weight=weight)
    assert [one.name for one in report.evidence.figures] == ["pairwise_error", "kendall_tau"]
    expected = bootstrap_interval(y, model.predict(X), qid, metric="pairwise_error", sample_weight=weight)
    assert report.evidence.figures[0].model == expected


def test_the_single_column_is_chosen_on_other_queries():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(600, 40)), np.arange(600) // 10
    y = rng.integers(0, 3, size=600).astype(float)  # no column says anything
    report = Report(RankRLS(alpha=1e6).fit(X, y, qid=qid), X, y, qid, metrics=["concordance"])
    single = report.evidence.figures[0].single
    assert single.low < 0.5  # the best of 80 on these rows would be well above chance
    best = max(get_metric("concordance")(y, sign * X[:, j], qid) for j in range(40) for sign in (1, -1))
    assert single.value < best


def test_the_best_column_and_its_sign_are_found():
    X, y, qid = searches()
    X[:, 4] = -y
    report = Report(RankRLS().fit(X, y, qid=qid), X, y, qid)
    assert report.evidence.best_column == (4, -1)
    assert report.evidence.figures[0].single.value == 1.0


def test_opened_queries_are_the_best_and_the_worst():
    X, y, qid = searches(queries=40)
    report = Report(RankRLS().fit(X, y, qid=qid), X, y, qid, metrics=["ndcg@10"])
    values = report.evidence.per_query.values  # noqa: PD011
    worst = [query.value for query in report.opened if query.kind == "worst"]
    best = [query.value for query in report.opened if query.kind == "best"]
    assert worst == sorted(values)[: len(worst)]
    assert best == sorted(values, reverse=True)[: len(best)]


def test_good_rows_that_stand_low_are_shown():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.zeros(50)
    y[7] = 3
    X[7] = -5 * np.ones(3)
    qid = np.zeros(50, dtype=int)
    model = RankRLS().fit(rng.normal(size=(60, 3)) + np.arange(60)[:, None], np.arange(60))
    report = Report(model, X, y, qid)
    assert report.opened[0].rows[-1].row == 7


def test_one_ranking_of_real_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X[:, 0] - 5
    page = Report(RankRLSCV().fit(X, y), X, y).html()
    balanced(page)
    assert "One ranking" in page
    assert '<a href="#queries">Ranking</a>' in page
    assert "NDCG" not in page


def test_preferences_judge_instead_of_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    pairs = rng.integers(0, 50, size=(300, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = np.where((X[pairs[:, 0], 0] > X[pairs[:, 1], 0])[:, None], pairs, pairs[:, ::-1])
    model = RankRLSCV().fit_pairs(X, pairs)
    report = Report(model, X, pairs=pairs)
    assert report.evidence.figures[0].model.value == pytest.approx(1 - model.score_pairs(X, pairs))
    assert report.evidence.best_column == (0, 1)
    balanced(report.html())


def visible_words(page):
    """The page as read: without its style, its scripts and its tags."""
    return re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL))


def test_rows_are_called_by_their_names():
    X, y, qid = searches()
    model = RankRLS().fit(X, y, qid=qid)
    names = [f"document <{i}>" for i in range(len(y))]
    named = Report(model, X, y, qid, row_names=names)
    assert all(row.called == names[row.row] for query in named.opened for row in query.rows)
    page = named.html()
    balanced(page)
    assert "document &lt;" in page
    assert not re.search(r"\brow \d", visible_words(page))
    assert "Rows count from 0" not in page
    plain = Report(model, X, y, qid).html()
    assert "Rows count from 0" in plain
    assert '<a href="#queries">Queries</a>' in plain


def test_what_was_tried_is_listed_and_the_winner_marked(tmp_path):
    X, y, qid = searches()
    model = AutoRanker(scoring="average_precision", methods=["rls", "svm-squared"], cv=3).fit(X, y, qid=qid)
    board = model.candidates_
    board = replace(board, entries=(replace(board[0], description="RankSVM <hinge>"), *board[1:]))
    model.candidates_ = board
    page = Report(model, X, y, qid).html()
    balanced(page)
    (table,) = re.findall(r'<table class="tried">.*?</table>', page, flags=re.DOTALL)
    lines = re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], flags=re.DOTALL)
    assert len(lines) == len(board)
    for line, entry in zip(lines, board, strict=True):
        words = " ".join(visible_words(line).split())
        assert words.startswith(entry.description.replace("<", "&lt;").replace(">", "&gt;"))
        assert words.endswith(f"{entry.value:.4f} ± {entry.standard_error:.4f}")
        assert ("★ chosen" in words) == ("class=chosen" in line) == entry.is_chosen
    words = " ".join(visible_words(page).replace(" ,", ",").split())
    assert f"{len(board)} candidates tried, scored by {board.judged_by}, the best first" in words
    assert f"A constant score has average_precision {board.constant:.4f}." in words
    model.save(tmp_path / "model.rw")  # a file keeps the candidates
    assert table.replace("RankSVM &lt;hinge&gt;", "") in re.sub(
        "RankSVM &lt;hinge&gt;", "", Report(rankwise.load(tmp_path / "model.rw"), X, y, qid).html()
    )


def test_settings_and_source_are_shown_in_full():
    X, y, qid = searches()
    long = ", ".join(f"part-{i}.txt" for i in range(20)) + ": 12,345 rows"
    page = Report(RankRLS().fit(X, y, qid=qid), X, y, qid, notes={"train": long}, source=long[::-1]).html()
    assert long in page
    assert long[::-1] in page


def test_a_thousand_queries_stay_under_a_megabyte():
    X, y, qid = searches(queries=1000, size=20, features=136)
    page = Report(RankRLSCV().fit(X, y, qid=qid), X, y, qid).html()
    assert len(page.encode()) < 1_000_000


def test_many_sparse_columns():
    rng = np.random.default_rng(0)
    X = sp.random(200, 30_000, density=0.001, random_state=rng, format="csr")
    y = rng.integers(0, 3, size=200).astype(float)
    qid = np.arange(200) // 10
    page = Report(RankRLS().fit(X, y, qid=qid), X, y, qid).html()
    assert len(page.encode()) < 1_000_000


HOSTILE = [
    "</script><b>",
    "a\x00b\x1b[2J",
    "\u202egnp.exe",
    "&lt;&amp;",
    "'\"><svg onload=alert(1)>",
    "x" * 100_000,
]


def test_hostile_names_stay_text():
    X, y, qid = searches()
    ids = np.array([HOSTILE[q % 6] + str(q) for q in qid], dtype=object)
    model = RankRLSCV().fit(X, y, qid=ids)
    page = Report(model, X, y, ids, feature_names=HOSTILE, title=HOSTILE[0], command=HOSTILE[4]).html()
    tags = balanced(page).tags
    assert [name for name, _ in tags].count("script") == 2
    assert not any(key.startswith("on") for _, attributes in tags for key in attributes)
    assert not any(name == "b" and "tile" not in page for name, _ in tags)
    assert "\x00" not in page
    assert "\u202e" not in page
    assert len(page) < 500_000
    # Nothing is fetched: no address but the page's own places.
    assert all(not str(attributes.get("src", "")) for _, attributes in tags)
    assert all(str(attributes.get("href", "#")).startswith(("#", "data:")) for _, attributes in tags)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": [[0, 1]]}, "either labels or pairs"),
        ({"feature_names": ["one"]}, "feature names of 1 were given"),
        ({"metrics": ["ndgc"]}, "did you mean"),
        ({"row_names": ["a", "b"]}, "row_names has 2 entries"),
    ],
)
def test_mistakes_are_explained(change, message):
    X, y, qid = searches()
    with pytest.raises(InvalidInputError, match=message):
        Report(RankRLS().fit(X, y, qid=qid), X, y, qid, **change)


def test_several_outputs_have_no_page():
    X, y, qid = searches()
    with pytest.raises(InvalidInputError, match="several outputs"):
        Report(RankRLS().fit(X, np.column_stack([y, -y]), qid=qid), X, y, qid)


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ([1.755, 0.6661, 5.062e-5, -0.1174], ["1.755", "0.666", "0.000", "−0.117"]),
        ([1234.56, 0.25], ["1235", "0"]),
        ([2e-7, -1e-7], ["2e−7", "−1e−7"]),
        ([0.0, 0.0], ["0", "0"]),
        ([float("nan"), 0.5], ["–", "0.5000"]),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(values, written):
    assert alike(values) == written


def test_scores_and_weights_of_a_page_have_the_same_decimals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * [1.0, 1e-3, 1.0, 1.0]
    y = np.digitize(X[:, 0] - 0.01 * X[:, 2], [-0.5, 0.5])
    qid = np.arange(120) // 12
    page = Report(RankRLS().fit(X, y, qid=qid), X, y, qid).html()
    tables = re.findall(r"<table[ >].*?</table>", page, re.DOTALL)
    ranked = [table for table in tables if ">score</th>" in table]
    weights = next(table for table in tables if 'class="weights"' in table)
    for table in [*ranked, weights]:
        places = {len(one) for one in re.findall(r'<td class="n"[^>]*>[+−]?\d+\.(\d+)</td>', table)}
        assert len(places) == 1, table
    assert ranked


def test_a_column_is_not_chosen_where_nothing_else_is_left():
    X, y, qid = searches()
    y = np.where(qid == 0, y, 0.0)
    report = Report(RankRLS().fit(X, y, qid=qid), X, y, qid)
    balanced(report.html())
    column, sign = report.evidence.best_column
    scores = sign * X[:, column]
    assert report.evidence.figures[0].single.value == pytest.approx(
        report.evidence.figures[0].metric(y, scores, qid)
    )


def test_baselines_are_looked_for_among_the_first_of_very_many_columns():
    assert columns_to_try(np.zeros((3, 5))).tolist() == list(range(5))
    found = columns_to_try(np.zeros((10**6, 30)))
    assert found.tolist() == list(range(found.size))
    assert found.size < 30
    filled = sp.csr_matrix((np.ones(2), ([0, 1], [29, 29])), shape=(10**6, 30))
    assert 29 in columns_to_try(filled)


class Steps(BaseEstimator):
    """A ranker with no sum over columns."""

    def fit(self, X, y):
        self.cut_ = float(np.median(X[:, 0]))
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.where(X[:, 0] > self.cut_, 1.0, 0.0) + 0.1 * np.tanh(X[:, 1] * X[:, 2])


def test_a_model_without_a_sum_of_columns_is_shown_without_parts():
    X, y, qid = searches()
    page = Report(Steps().fit(X, y), X, y, qid).html()
    balanced(page)
    assert "no formula that is a sum over columns" in page


def test_long_surfaces_are_thinned_and_keep_what_was_chosen():
    X, y, qid = searches()
    model = RankRLSCV().fit(X, y, qid=qid)
    whole = Reading.of(model)
    thinned = whole.thinned(3)
    assert thinned.steps.size < whole.steps.size
    assert {step for _, step, _ in model.choices_.values()} <= set(thinned.steps.tolist())
    for at, step in enumerate(thinned.steps.tolist()):
        np.testing.assert_array_equal(thinned.values[:, at], whole.values[:, step - 1])  # noqa: PD011 - no frame


@pytest.mark.parametrize("values", [[2.0, 2.0], [-0.5, 0.5], [0.2, 0.9]])
def test_histograms_count_every_query(values):
    drawn = histogram(np.array(values), float(np.mean(values)), "tau")
    bars = re.findall(r"(\d+) quer\w+ from (\S+) to ([^<]+)<", drawn.replace("−", "-"))
    assert sum(int(count) for count, _, _ in bars) == len(values)
    for value in values:
        assert any(float(low) <= value <= float(high) for _, low, high in bars)
    balanced(f"<div>{drawn}</div>")
    assert ticks(2.0, 2.0) == [2.0]
