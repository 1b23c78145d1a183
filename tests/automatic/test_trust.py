"""What a choice can be trusted with: noise is told from signal, and what is not readable has to be ahead."""

import io
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from all_pairs import pairwise

mpl.use("Agg")
from matplotlib import pyplot as plt

import rankwise
from rankwise import AdditiveRanker, AdditiveRankerCV, AutoRanker, KernelRankRLSCV, KernelRankSVMCV
from rankwise.automatic.ranker import _widening
from rankwise.displays import CurvesDisplay
from rankwise.metrics import get_metric, per_query
from rankwise.model_selection import QueryKFold

SENTENCE = "No candidate is clearly better than a constant score."


@pytest.fixture(autouse=True)
def _no_figures_are_left():
    yield
    plt.close("all")


def noise(seed, signal=0.0):
    """Return 120 rows of 12 queries; without a signal labels have nothing to do with columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4))
    return X, signal * X[:, 0] + rng.normal(size=120), np.repeat(np.arange(12), 10)


@pairwise(metric=["pairwise_error", "ndcg@10"], signal=[0.0, 2.0], seed=range(3))
def test_the_best_candidate_is_compared_with_constant_scores_query_by_query(metric, signal, seed):
    X, y, qid = noise(seed, signal)
    y = np.clip(np.round(y), 0, 3) if metric == "ndcg@10" else y
    splits = list(QueryKFold(4).split(X, groups=qid))
    model = AutoRanker(metric, methods=["rls"], cv=splits).fit(X, y, qid=qid)
    board = model.candidates_
    constant = per_query(y, np.zeros(120), qid, metric=metric)
    assert board.constant == pytest.approx(constant.mean())
    scores = model.search_.best(model.search_.trials).held_out
    best = per_query(y, scores, qid, metric=metric)
    sign = 1 if get_metric(metric).greater_is_better else -1
    ahead = sign * (best.values[best.counted] - constant.values[best.counted])  # noqa: PD011
    is_clear = ahead.mean() > 2 * ahead.std(ddof=1) / np.sqrt(ahead.size)
    assert is_clear or not signal
    for text in (str(board), board._repr_html_(), model.describe()):
        assert f"A constant score has {metric} {board.constant:.4f}." in text
        assert (SENTENCE in text) == (not is_clear)
    file = io.BytesIO()
    model.save(file)
    assert str(rankwise.load(io.BytesIO(file.getvalue())).candidates_).count(SENTENCE) == (not is_clear)


def test_constant_scores_of_duels_and_of_an_evaluation_set():
    X, y, qid = noise(0, signal=1.0)
    pairs = np.random.default_rng(0).integers(120, size=(200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    duels = AutoRanker(methods=["rls"]).fit_pairs(X, pairs)
    assert duels.candidates_.constant == pytest.approx(0.5)
    half, y = qid < 6, np.clip(np.round(y), 0, 3)
    held_out = (X[~half], y[~half], qid[~half])
    model = AutoRanker("ndcg@10", methods=["rls"])
    model.fit(X[half], y[half], qid=qid[half], eval_set=held_out)
    expected = get_metric("ndcg@10")(y[~half], np.zeros((~half).sum()), qid[~half])
    assert model.candidates_.constant == pytest.approx(expected)


# --- the interval of the expected score ---


@pytest.mark.parametrize(("n_folds", "n_scored"), [(5, 5), (5, 3), (5, 1), (3, 2)])
def test_intervals_allow_for_folds_that_train_each_other(n_folds, n_scored):
    shared = np.random.default_rng(0).normal(size=(20_000, n_folds, n_folds))
    shared = np.triu(shared, 1) + np.triu(shared, 1).swapaxes(
        1, 2
    )  # a term of two folds is in the errors of both
    errors = shared.sum(axis=2)[:, :n_scored]
    widening = errors.sum(axis=1).std() / np.sqrt((errors.std(axis=0) ** 2).sum())
    rows = np.arange(60) % n_folds
    cv = [(np.flatnonzero(rows != fold), np.flatnonzero(rows == fold)) for fold in range(n_scored)]
    assert _widening(cv) == pytest.approx(widening, rel=0.03)


def test_intervals_stay_inside_the_bounds_of_the_metric():
    X, y, qid = noise(0, signal=20.0)
    low, high = AutoRanker("pairwise_error", methods=["rls"]).fit(X, y, qid=qid).expected_interval_
    assert low == 0.0 < high < 0.1


# --- sparse or not, by what is filled ---


@pytest.mark.parametrize("filled", [0.8, 0.2])
def test_a_sparse_matrix_is_an_array_where_most_of_it_is_filled(filled):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * (rng.random((120, 4)) < filled)
    y, qid = np.abs(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=120), np.repeat(np.arange(12), 10)
    methods = ["rls", "curves"]
    sparse = AutoRanker(methods=methods, cv=3, estimate=False).fit(sp.csr_matrix(X), y, qid=qid)
    array = AutoRanker(methods=methods, cv=3, estimate=False).fit(X, y, qid=qid)
    same = sparse.candidates_.as_dicts(times=False) == array.candidates_.as_dicts(times=False)
    assert same == (filled > 0.5)
    file = io.BytesIO()
    sparse.save(file)
    for model in (sparse, rankwise.load(io.BytesIO(file.getvalue()))):
        for rows in (sp.csr_matrix(X), sp.csc_matrix(X), X):
            assert model.predict(rows, qid) == pytest.approx(sparse.predict(X, qid))


def test_an_evaluation_set_is_stored_like_the_rows_of_the_fit():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(120, 4)), np.repeat(np.arange(12), 10)
    y = X[:, 0] + 0.3 * rng.normal(size=120)
    held_out = X * (rng.random((120, 4)) < 0.1)
    model = AutoRanker(methods=["rls"])
    model.fit(sp.csr_matrix(X), y, qid=qid, eval_set=(sp.csr_matrix(held_out), y, qid))
    assert (
        model.best_score_
        == AutoRanker(methods=["rls"]).fit(X, y, qid=qid, eval_set=(held_out, y, qid)).best_score_
    )


# --- names of columns ---


@pytest.fixture(scope="module")
def offers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["price", "rating", "size"])
    return table, table["price"] + table["rating"].abs() + 0.3 * rng.normal(size=200), np.arange(200) // 10


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("method", ["rls", "curves"])
@pytest.mark.parametrize("has_text", [False, True])
def test_columns_keep_their_names(offers, method, has_text):
    pytest.importorskip("matplotlib").use("Agg")
    table, y, qid = offers
    if has_text:
        table = table.assign(colour=np.where(table["size"] > 0, "red", "blue"))
    names = list(table.columns)
    chosen = AutoRanker(methods=[method], cv=3, estimate=False).fit(table, y, qid=qid)
    file = io.BytesIO()
    chosen.save(file)
    for model in (chosen, rankwise.load(io.BytesIO(file.getvalue()))):
        assert model.predict(table, qid) == pytest.approx(chosen.predict(table, qid))
        (why,) = rankwise.explain(model, table, qid, rows=[0])
        assert {part.name for part in why.parts} <= set(names)
        found = rankwise.feature_importance(model, table, y, qid, n_repeats=1)
        assert found.names == names
        assert found.importances.argmax() < 2  # what the labels are made of
        if method == "rls":
            continue
        titles = [ax.get_xlabel() for ax in CurvesDisplay.from_estimator(model).axes_]
        assert all(any(name in title for name in names) for title in titles)


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_mean_keeps_the_names_of_columns():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    worth = X[:, 0] + 0.5 * np.abs(X[:, 1]) + 0.3 * X.prod(axis=1) + 0.3 * rng.normal(size=200)
    table, qid = pd.DataFrame(X, columns=["price", "rating", "size"]), np.arange(200) // 10
    model = AutoRanker("ndcg@10", methods=["curves", "kernel", "average"], cv=3)
    model.fit(table, np.round(np.clip(worth, 0, 4)), qid=qid)
    assert model.candidates_.chosen.parts  # as it has to be here
    assert model.best_estimator_.feature_names_in_.tolist() == list(table.columns)
    (why,) = rankwise.explain(model, table, rows=[0])
    assert {part.name for part in why.parts if "basis row" not in part.name} <= set(table.columns)
    found = rankwise.feature_importance(model, table, worth, qid, n_repeats=1)
    assert found.names == list(table.columns)


def test_curves_are_drawn_through_a_pipeline_and_refused_where_there_are_none(offers):
    pytest.importorskip("matplotlib").use("Agg")
    table, y, qid = offers
    lone = CurvesDisplay.from_estimator(AdditiveRanker().fit(table, y, qid=qid))
    assert {ax.get_xlabel() for ax in lone.axes_[:3]} == set(table.columns)
    model = AutoRanker(methods=["rls"], cv=3).fit(table, y, qid=qid)
    with pytest.raises(rankwise.exceptions.InvalidInputError, match="has no curves"):
        CurvesDisplay.from_estimator(model)


def copied_noise(*, n_copies, n_distinct=200):
    """Return rows in a random order, some of them twice with the same label, and numbers that copies share."""
    rng = np.random.default_rng(0)
    code = rng.permutation(np.r_[np.arange(n_distinct), rng.integers(n_distinct, size=n_copies)])
    return rng.normal(size=(n_distinct, 6))[code], rng.normal(size=n_distinct)[code], code


CHOOSERS = {
    "auto": lambda cv: AutoRanker(methods=["kernel"], estimate=False, cv=cv),
    "additive": lambda cv: AdditiveRankerCV(interactions=[0, 15], surface_knots=9, cv=cv),
    "kernel": lambda cv: KernelRankRLSCV(gamma=1.0, cv=cv),
    "kernel-svm": lambda cv: KernelRankSVMCV(gamma=1.0, cv=cv),
}


@pytest.mark.parametrize("name", CHOOSERS)
def test_copies_of_rows_do_not_make_noise_look_like_a_signal(name):
    X, y, code = copied_noise(n_copies=160)
    if name == "additive":
        X[code % 9 == 0, 2] = np.nan
    model = CHOOSERS[name]("auto").fit(X, y)
    assert "folds of rows, equal ones together" in model.cv_
    assert model.best_score_ > 0.4
    one_by_one = CHOOSERS[name](5).fit(X, y)  # as scikit-learn's KFold does
    assert one_by_one.best_score_ < 0.2


def test_folds_divide_no_copies_unless_most_rows_are_copies():
    X, y, code = copied_noise(n_copies=100)
    few = AutoRanker(methods=["rls"]).fit(X, y)
    fold = few.search_.problem.fold
    assert len({*zip(code.tolist(), fold.tolist(), strict=True)}) == 200
    X, y, code = copied_noise(n_copies=300)
    many = AutoRanker(methods=["rls"], estimate=False).fit(X, y)
    fold = many.search_.problem.fold
    assert len({*zip(code.tolist(), fold.tolist(), strict=True)}) > 200
    assert "together" in few.cv_
    assert "together" not in many.cv_


def test_a_time_limit_has_room_for_less_where_others_take_the_processor(monkeypatch):
    X, y, _ = copied_noise(n_copies=0)
    search = AutoRanker(methods=["rls"], time_limit=100.0, estimate=False).fit(X, y).search_
    search.__dict__.update(_start=0.0, _processor=0.0, _estimated=0.0, _taken=0.0)
    rooms = []
    for processor in (5.0, 10.0, 20.0):  # half of one core, one, and two threads
        clocks = SimpleNamespace(monotonic=lambda: 10.0, process_time=lambda now=processor: now)
        monkeypatch.setattr("rankwise.automatic.search.time", clocks)
        rooms.append(search._room())
    assert rooms[0] == pytest.approx(rooms[1] / 2)
    assert rooms[2] == rooms[1]
