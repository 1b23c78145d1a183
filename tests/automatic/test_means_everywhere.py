"""Means of several models exported, kept, explained, reported and chosen; and what a table of candidates promises."""

import io
import math
from functools import cache

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from exported import run, run_all
from formulas import frame, rows
from rankwise import AdditiveRanker, AutoRanker, AverageRanker, KernelRankRLS, RankRLS
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.targets import exportable_to
from rankwise.formula.reading import formula_of
from rankwise.formula.view import ModelView
from rankwise.metrics import get_metric
from rankwise.preprocessing import QueryScaler
from rankwise.report import Report

EXACT = ["python", "javascript", "c", "onnx", "sqlite", "duckdb", "vespa", "json"]
ENGINES = ["solr", "elasticsearch-ltr", "opensearch-ltr"]
LINEAR, CURVES = RankRLS(0.5), AdditiveRanker(interactions=2, alpha=0.01)
KERNEL = KernelRankRLS("rbf", gamma=0.3, basis=15, random_state=0)
MEANS = {
    "two linear ones": lambda: [LINEAR, make_pipeline(StandardScaler(), RankRLS(5.0))],
    "linear and curves": lambda: [make_pipeline(StandardScaler(), LINEAR), CURVES],
    "with a kernel": lambda: [
        make_pipeline(StandardScaler(), LINEAR),
        CURVES,
        make_pipeline(StandardScaler(), KERNEL),
    ],
    "minmax inside queries": lambda: [make_pipeline(QueryScaler("minmax"), LINEAR), CURVES],
    "everything inside queries": lambda: [
        make_pipeline(StandardScaler(), QueryScaler("standard", passthrough=True), LINEAR),
        make_pipeline(QueryScaler("minmax"), CURVES),
        make_pipeline(QueryScaler("rank"), KERNEL),
    ],
}
WITHIN = {"minmax inside queries", "everything inside queries"}
KERNELS = {"with a kernel", "everything inside queries"}


@cache
def mean(name):
    """Return a fitted mean and its rows, in single precision as engines have them."""
    X, y, qid = rows()
    X = X.astype(np.float32).astype(float)
    return AverageRanker(MEANS[name]()).fit(X, y, qid=qid), X, qid


def refused(name, target):
    if target in ENGINES:  # which take weights or trees
        return name != "two linear ones"
    if target == "vespa":
        return name in KERNELS
    return target in {"sqlite", "duckdb"} and name in KERNELS


@pytest.mark.parametrize("target", EXACT)
def test_a_mean_round_trips(target, tmp_path):
    cases, wanted = [], []
    for name in MEANS:
        model, X, qid = mean(name)
        if refused(name, target):
            with pytest.raises(InvalidInputError):
                rankwise.export(model, target, whole_query=True)
            continue
        cases.append((rankwise.export(model, target, whole_query=True), X, qid, name in WITHIN))
        wanted.append(model.predict(X, qid))
    for found, own in zip(run_all(target, cases, tmp_path), wanted, strict=True):
        np.testing.assert_allclose(found, own, rtol=0, atol=1e-11 * max(1.0, np.abs(own).max()))


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("name", MEANS)
def test_engines_get_a_mean_as_weights(name, target):
    model, X, qid = mean(name)
    if refused(name, target):
        with pytest.raises(InvalidInputError):
            rankwise.export(model, target)
        return
    wanted = model.predict(X, qid)
    found = run(target, rankwise.export(model, target), X, qid, False, None)
    # an engine has no constant for weights
    assert np.abs(found - found[0] - wanted + wanted[0]).max() <= 1e-3 * np.ptp(wanted)


# --- what the table of candidates of an automatic choice says ---


def test_candidates_are_exportable_to_what_the_table_of_candidates_says():
    X, y, qid = rows()
    model = AutoRanker("ndcg@10", prefer="accuracy", cv=2, estimate=False).fit(X, y, qid=qid)
    assert {"linear", "curves", "kernel", "average"} <= {one.form for one in model.candidates_}
    for trial, entry in told(model):
        if {trial.candidate.form, *(part.form for part in trial.candidate.parts)} & {"trees"}:
            assert entry.exportable_to == ()
            continue
        fitted = model.search_._fitted(trial).model
        assert list(entry.exportable_to) == exportable_to(formula_of(fitted)), entry.description


def told(model):
    """Return every candidate with its line of the table of candidates."""
    by_words = {entry.description: entry for entry in model.candidates_}
    return [(trial, by_words[trial.candidate.describe()]) for trial in model.search_.trials]


def test_texts_are_promised_to_nobody_who_cannot_read_them():
    X, y, qid = frame()
    model = AutoRanker("ndcg@10", methods=["rls", "curves", "average"], cv=2).fit(X, y, qid=qid)
    assert list(model.candidates_.chosen.exportable_to) == exportable_to(formula_of(model))
    with pytest.raises(InvalidInputError, match="texts"):
        AutoRanker("ndcg@10", target="solr").fit(X, y, qid=qid)


# --- files, explanations, reports, pairs ---


@pytest.mark.parametrize("name", MEANS)
def test_a_mean_comes_back_from_a_file_with_the_same_bits(name):
    model, X, qid = mean(name)
    file = io.BytesIO()
    model.save(file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    assert (again.predict(X, qid) == model.predict(X, qid)).all()
    assert (again.rank(X, qid=qid) == model.rank(X, qid=qid)).all()


@pytest.mark.parametrize("name", MEANS)
def test_what_explains_a_mean_adds_up(name):
    model, X, qid = mean(name)
    scores = model.predict(X, qid)
    for row, why in enumerate(rankwise.explain(model, X, qid)):
        total = why.constant + math.fsum(part.contribution for part in why.parts)
        assert total == pytest.approx(scores[row], abs=1e-12 * max(1.0, np.abs(scores).max()))
    pair = rankwise.explain_pair(model, X, 1, 4, qid)
    assert pair.total == pytest.approx(scores[1] - scores[4], abs=1e-11)


@pytest.mark.parametrize("name", MEANS)
def test_columns_of_a_mean_matter_as_far_as_they_are_read(name):
    model, X, qid = mean(name)
    _, y, _ = rows()
    found = rankwise.feature_importance(model, X, y, qid, n_repeats=2)
    metric = get_metric("concordance")
    assert found.score == pytest.approx(metric(y, model.predict(X, qid), qid))
    assert found.importances.argmax() in {0, 1}  # what the labels are made of


@pytest.mark.parametrize("name", MEANS)
def test_the_report_of_a_mean_says_what_it_is_made_of(name):
    model, X, qid = mean(name)
    page = Report(model, X, rows()[1], qid).html()
    assert "did not choose its regularisation" not in page
    made_of = page[page.index("The models of the mean") :]
    for ranker in model.rankers_:
        assert ModelView.of(ranker).describe() in made_of
    assert ("KernelRankRLS.gamma" in page) == (name in KERNELS)
    assert ("basis row" in page) == (name in KERNELS)


def test_a_mean_in_pipelines_and_searches():
    X, y, qid = rows()
    means = [MEANS["two linear ones"](), MEANS["minmax inside queries"]()]
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler(), AverageRanker().set_fit_request(qid=True).set_score_request(qid=True)
        )
        splits = GroupKFold(2).split(X, y, qid)
        search = GridSearchCV(model, {"averageranker__rankers": means}, cv=list(splits)).fit(X, y, qid=qid)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_.predict(X, qid=qid).shape == y.shape


def partly_curved():
    """Return rows whose worth curves and kernels each find a part of: their mean is ahead of both."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    worth = X[:, 0] + 0.5 * np.abs(X[:, 1]) + 0.3 * X.prod(axis=1) + 0.3 * rng.normal(size=200)
    return X, worth, rng


MEANS_OF_TWO = {"methods": ["curves", "kernel", "average"], "prefer": "accuracy", "estimate": False, "cv": 3}


def test_duels_choose_means_with_probabilities_that_add_up():
    X, worth, rng = partly_curved()
    pairs = rng.integers(200, size=(400, 2))
    pairs = pairs[worth[pairs[:, 0]] > worth[pairs[:, 1]]]
    model = AutoRanker(**MEANS_OF_TWO).fit_pairs(X, pairs)
    means = [trial for trial in model.search_.trials if trial.candidate.parts]
    assert means
    assert model.log_loss_ < np.log(2)
    chances = model.predict_pairs_proba(X, pairs)
    assert chances + model.predict_pairs_proba(X, pairs[:, ::-1]) == pytest.approx(1.0)
    scores = model.predict(X)
    assert model.predict_pairs(X, pairs) == pytest.approx(scores[pairs[:, 0]] - scores[pairs[:, 1]])


def test_for_an_engine_nothing_is_chosen_that_it_cannot_run():
    X, y, qid = rows()
    model = AutoRanker("ndcg@10", methods=["rls", "curves", "average"], target="solr").fit(X, y, qid=qid)
    assert all("solr" in entry.exportable_to for entry in model.candidates_)
    assert rankwise.export(model, "solr")


def test_a_choice_of_a_mean_is_told_with_its_parts():
    X, worth, _ = partly_curved()
    y, qid = np.round(np.clip(worth, 0, 4)), np.arange(200) // 10
    model = AutoRanker("ndcg@10", **MEANS_OF_TWO).fit(X, y, qid=qid)
    chosen = model.candidates_.chosen
    by_summary = {entry.summary: entry for entry in model.candidates_}
    assert len(chosen.parts) == 2
    assert all(part in by_summary for part in chosen.parts)
    told = model.describe()
    assert all(f"- {part}" in told for part in chosen.parts)
    file = io.BytesIO()
    model.save(file)
    assert rankwise.load(io.BytesIO(file.getvalue())).candidates_.chosen.parts == chosen.parts
