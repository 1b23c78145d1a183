"""The automatic choice: one set of folds, held-out values, paired errors, budget, preferences, files."""

import io
import re
import time
import types
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise
from rankwise import AdditiveRanker, AdditiveRankerCV, AutoRanker, RankRLS, RankRLSCV
from rankwise.automatic import search as searching
from rankwise.automatic.calibration import calibrate
from rankwise.automatic.candidates import ADDITIVE, Candidate, Size
from rankwise.data import validation
from rankwise.data.queries import encode_queries
from rankwise.displays import CandidatesDisplay
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import get_metric, pairwise_error, per_query
from rankwise.model_selection import QueryKFold, make_ranking_scorer
from rankwise.pairs.figures import Figure, paired_difference


@parametrize_with_checks([AutoRanker(methods=["rls"], cv=3, estimate=False)])
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(
    [AutoRanker(cv=5, estimate=False), AutoRanker(cv=5, prefer="accuracy", estimate=False)]
)
def test_common_checks_of_all_methods(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    qid = np.repeat(np.arange(30), 10)[rng.permutation(300)]
    y = np.clip(np.round(X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=300)), -1, 3) + 1
    return X, y, qid


@pytest.fixture(scope="module")
def curved():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(300, 2))
    return X, np.abs(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=300)


def splits_of(qid):
    return list(QueryKFold(5).split(np.zeros((len(qid), 1)), groups=qid))


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def entry_of(model, method, scaling=None):
    entries = [one for one in model.candidates_ if one.method == method]
    return next(one for one in entries if scaling is None or one.scaling == scaling)


# --- values ---


def test_the_figure_is_that_of_models_fitted_by_hand_without_each_fold(graded):
    X, y, qid = graded
    splits, Z = splits_of(qid), standardised(X)
    model = AutoRanker("pairwise_error", cv=splits, methods=["rls"]).fit(X, y, qid=qid)
    entry, scores = entry_of(model, "rls", "standard"), np.zeros(len(y))
    for train, test in splits:
        scores[test] = RankRLS(entry.alpha).fit(Z[train], y[train], qid[train]).predict(Z[test])
    by_query = per_query(y, scores, qid, metric="pairwise_error")
    assert entry.value == pytest.approx(by_query.mean(), abs=1e-12)
    values = by_query.values[by_query.counted]
    assert entry.standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(values.size), rel=1e-9)


def test_it_agrees_with_the_estimator_that_chose_the_regularisation(graded):
    X, y, qid = graded
    splits = splits_of(qid)
    alone = RankRLSCV(cv=splits, scoring="ndcg@10", method="tikhonov").fit(standardised(X), y, qid=qid)
    model = AutoRanker("ndcg@10", cv=splits, methods=["rls"]).fit(X, y, qid=qid)
    plain = entry_of(model, "rls", "standard")
    assert plain.alpha == alone.alpha_
    assert plain.value == pytest.approx(alone.best_score_, abs=1e-6)  # converged to a tolerance, and solved


def test_curves_and_surfaces_have_the_held_out_scores_of_one_additive_search():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(240, 3))
    y, qid = np.abs(X[:, 0]) + 3 * X[:, 1] * X[:, 2], np.arange(240) // 12
    splits = splits_of(qid)
    model = AutoRanker("pairwise_error", cv=splits, methods=["curves", "surfaces"], estimate=False)
    model.fit(X, y, qid=qid)
    alone = AdditiveRankerCV(cv=splits).fit(X, y, qid=qid)
    surfaces, curves = entry_of(model, "surfaces"), entry_of(model, "curves")
    assert surfaces.is_chosen
    assert surfaces.value == pytest.approx(alone.best_score_, abs=1e-12)
    assert model.predict(X) == pytest.approx(alone.predict(X))
    tried = alone.cv_results_
    assert curves.value == pytest.approx(tried["score"][tried["interactions"] == 0].min(), abs=1e-12)
    # Loosely fitted models of folds are close to those that are fitted to the last digit.
    scores = np.zeros(len(y))
    for train, test in splits:
        fold = AdditiveRanker(**alone_parameters(alone)).fit(X[train], y[train], qid[train])
        scores[test] = fold.predict(X[test])
    assert pairwise_error(y, scores, qid) == pytest.approx(surfaces.value, abs=0.02)


def alone_parameters(model):
    return {
        "alpha": model.alpha_,
        "n_knots": model.n_knots_,
        "surface_knots": model.surface_knots_,
        "adaptive": model.adaptive_,
        "interactions": len(model.interactions_),
    }


def test_curves_are_fitted_to_all_rows_once_they_are_chosen(curved):
    X, y = curved
    model = AutoRanker(cv=3, estimate=False).fit(X, y)
    assert model.best_score_ < 0.1 < entry_of(model, "rls").value
    trial = next(one for one in model.search_.trials if one.candidate.method == "curves")
    fitted = model.search_._fitted(replace(trial, ranker=None)).model  # chosen or not
    assert fitted.predict(X) == pytest.approx(clone(trial.estimator).fit(X, y).predict(X))


def test_one_ranking_is_judged_fold_by_fold(curved):
    X, y = curved
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = AutoRanker(cv=splits, methods=["rls"]).fit(X, y)
    (entry,), Z = model.candidates_, standardised(X)
    values = [
        pairwise_error(y[test], RankRLS(entry.alpha).fit(Z[train], y[train]).predict(Z[test]))
        for train, test in splits
    ]
    assert entry.value == pytest.approx(np.mean(values), abs=1e-12)
    assert 0 < entry.standard_error < 0.1
    assert model.cv_ == "the test sets of 4 given splits, all 300 rows"


def test_paired_errors_are_those_of_the_differences():
    rng = np.random.default_rng(0)
    a, b, share = rng.normal(size=30), rng.normal(size=30), np.full(30, 1 / 30)
    found = paired_difference(Figure(a.mean(), a, share), Figure(b.mean(), b, share))
    assert found == pytest.approx(((a - b).mean(), (a - b).std(ddof=1) / np.sqrt(30)), rel=1e-12)
    assert np.isnan(Figure(1.0, np.ones(1), np.ones(1)).standard_error)


def test_all_candidates_are_scored_by_the_folds_of_the_additive_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    model = AutoRanker(methods=["rls", "curves"]).fit(X, X[:, 0] + rng.normal(size=3000))
    assert model.cv_ == "2 of 5 folds of rows, 1,200 of 3,000 rows"
    held = model.search_.problem.fold >= 0
    for trial in model.search_.trials:
        assert ((trial.held_out != 0) == held).all()


def test_ids_of_queries_are_read_once_and_not_for_every_model(graded, monkeypatch):
    X, y, qid = graded
    read = []
    monkeypatch.setattr(validation, "encode_queries", lambda ids: read.append(ids) or encode_queries(ids))
    AutoRanker(methods=["curves", "surfaces"], cv=3, estimate=False).fit(X, y, qid=qid)
    assert len(read) == 1


@pytest.mark.parametrize("n_columns", [3, 1001])
def test_held_out_scores_of_a_kernel_are_those_of_its_fits(n_columns):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(120, n_columns)), np.arange(120) // 10
    y = X[:, 0] + rng.normal(size=120)
    fixed = {"basis": 120, "gamma": [0.5 / n_columns]}  # of all rows the features are exact
    model = AutoRanker(methods=["kernel"], fixed=fixed, estimate=False).fit(X, y, qid)
    problem = model.search_.problem.with_ranks
    for trial in model.search_.trials:
        _, Z, _ = problem.columns.get(trial.candidate.scaling)
        again = problem.held_out(trial.estimator, trial.ranker, Z, None)
        assert trial.held_out == pytest.approx(again, abs=1e-6 * np.ptp(again))


def test_test_sets_that_overlap_are_refused():
    X, qid = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) // 6
    splits = list(GroupShuffleSplit(3, random_state=0).split(X, X[:, 0], qid))
    model = AutoRanker(cv=splits, methods=["rls"], estimate=False)
    with pytest.raises(InvalidInputError, match=r"the same rows several times.*Hint: use a splitter"):
        model.fit(X, X[:, 0], qid)
    with pytest.raises(InvalidInputError, match=r"the same pairs several times.*Hint: use a splitter"):
        model.set_params(cv=ShuffleSplit(3, test_size=0.5, random_state=0)).fit_pairs(
            X, np.arange(60).reshape(-1, 2)
        )


def test_kernels_whose_features_do_not_fit_in_memory_are_left_out(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    monkeypatch.setattr("rankwise.runtime.memory._ALWAYS_FITS", 0)
    monkeypatch.setattr("rankwise.runtime.memory.available_memory", lambda: 8_000_000)
    model = AutoRanker(methods=["rls", "kernel"], fixed={"basis": 500}, estimate=False).fit(X, X[:, 0])
    assert [one.form for one in model.candidates_] == ["linear"]
    assert any("A kernel on 500 basis rows takes about" in words for words in model.skipped_)


def test_order_of_rows_and_names_of_queries_change_nothing_given_the_folds(graded):
    X, y, qid = graded
    order = np.random.default_rng(3).permutation(len(y))
    names = np.array([f"query {number}" for number in (qid * 7) % 30])

    def folds(fold):
        return [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(4)]

    first = AutoRanker(cv=folds(qid % 4), methods=["rls"]).fit(X, y, qid=qid)
    second = AutoRanker(cv=folds(qid[order] % 4), methods=["rls"]).fit(X[order], y[order], qid=names[order])
    for a, b in zip(first.candidates_, second.candidates_, strict=True):
        assert (a.description, a.alpha) == (b.description, b.alpha)
        assert a.value == pytest.approx(b.value, abs=1e-9)


@pytest.mark.parametrize("limit", ["problems._COPIED_BYTES", "scaling._SINGLE_BYTES", "scaling._KEPT_BYTES"])
def test_large_rows_are_not_copied_and_give_the_same_values(graded, monkeypatch, limit):
    X, y, qid = graded
    weight = np.where(np.arange(300) % 3, 1.0, 2.0)

    def values():
        fitted = AutoRanker(methods=["rls", "svm-squared"]).fit(X, y, qid=qid, sample_weight=weight)
        return {one.description: one.value for one in fitted.candidates_}

    usual = values()
    monkeypatch.setattr(f"rankwise.automatic.{limit}", 0)
    assert values() == pytest.approx(usual, abs=2e-3)


# --- the choice ---


def figure(values):
    values = np.asarray(values, dtype=float)
    return Figure(float(values.mean()), values, np.full(values.size, 1 / values.size))


def search_of(prefer, errors):
    """Return a search that tried candidates with these errors of each unit."""
    search = object.__new__(searching.Search)
    search.prefer = prefer
    search.problem = types.SimpleNamespace(metric=get_metric("pairwise_error"))
    search.trials = [
        searching.Trial(candidate, figure(values), np.zeros(1), 0.0, [], None, None)
        for candidate, values in errors.items()
    ]
    return search


def chosen_of(prefer, errors):
    return search_of(prefer, errors).chosen.candidate


NOISE = np.random.default_rng(0).normal(size=40)
NOISE = 0.1 * (NOISE - NOISE.mean()) / (NOISE.std(ddof=1) / np.sqrt(40))  # a standard error of .1
LINEAR, CURVES, SURFACES, INSIDE = (
    Candidate("rls"),
    Candidate("curves"),
    Candidate("surfaces"),
    Candidate("rls", "query-standard"),
)


@pytest.mark.parametrize(
    ("ahead", "readable", "accuracy"),
    [(0.04, LINEAR, CURVES), (0.06, CURVES, CURVES), (-0.01, LINEAR, LINEAR)],
)
def test_a_simpler_model_is_chosen_within_half_a_standard_error(ahead, readable, accuracy):
    errors = {LINEAR: np.full(40, 0.5), CURVES: 0.5 - ahead + NOISE}
    assert chosen_of("readable", errors) == readable
    assert chosen_of("accuracy", errors) == accuracy


@pytest.mark.parametrize("prefer", ["readable", "accuracy"])
@pytest.mark.parametrize(("ahead", "chosen"), [(0.09, LINEAR), (0.11, INSIDE)])
def test_columns_scaled_inside_queries_have_to_be_ahead_by_a_standard_error(prefer, ahead, chosen):
    assert chosen_of(prefer, {LINEAR: np.full(40, 0.5), INSIDE: 0.5 - ahead + NOISE}) == chosen


def test_of_equals_the_simplest_is_chosen():
    assert chosen_of("readable", {one: np.full(40, 0.5) for one in (SURFACES, CURVES, LINEAR)}) == LINEAR


def test_what_is_tried_by_default(graded):
    X, y, qid = graded
    readable, accuracy = (
        AutoRanker(cv=3, prefer=one, estimate=False).fit(X, y, qid=qid) for one in searching.PREFERENCES
    )
    tried = [one.candidate for one in readable.search_.trials]
    assert [one.method for one in tried[:2]] == ["rls", "svm-squared"]
    assert tried[2].scaling == "query-standard"
    forms = {one.form for one in readable.candidates_ if not one.is_rival}
    assert {"linear", "curves"} <= forms <= {"linear", "curves", "surfaces"}
    assert forms | {"kernel", "trees"} <= {one.form for one in accuracy.candidates_}
    values = [one.value for one in accuracy.candidates_]
    assert values == sorted(values, reverse=True)
    assert accuracy.candidates_.chosen.value == max(
        one.value for one in accuracy.candidates_ if not (one.needs_queries or one.is_rival) or one.is_chosen
    )


def test_only_what_can_be_exported_is_tried_for_a_target(graded):
    X, y, qid = graded
    board = AutoRanker(target="solr", cv=3, prefer="accuracy", estimate=False).fit(X, y, qid=qid).candidates_
    tried = [entry for entry in board if not entry.is_rival]
    assert all("solr" in entry.exportable_to for entry in tried)
    assert {"linear", "curves"} <= {one.form for one in tried} <= {"linear", "curves", "surfaces"}


# --- budget ---


def test_effort_enlarges_the_budget_and_no_budget_leaves_linear_models(graded, monkeypatch):
    X, y, qid = graded
    monkeypatch.setattr(searching, "_BUDGET", 1e-9)
    monkeypatch.setattr(searching, "_TIMES_RLS", 1)
    frugal = AutoRanker(cv=3, estimate=False).fit(X, y, qid=qid)
    assert {one.method for one in frugal.candidates_} == {"rls"}
    assert any(reason.startswith("curves: about") for reason in frugal.skipped_)
    assert "effort=" in frugal.describe()
    lavish = AutoRanker(cv=3, effort=1e9, estimate=False).fit(X, y, qid=qid)
    assert "curves" in {one.method for one in lavish.candidates_}
    assert not lavish.skipped_
    asked = AutoRanker(cv=3, methods=["curves"], estimate=False).fit(X, y, qid=qid)  # exactly these are tried
    assert {one.method for one in asked.candidates_} == {"curves"}


def test_time_that_is_left_goes_into_a_more_thorough_search(curved, monkeypatch):
    """Where estimates were too high for the full search, the clock shows room for it after a cheaper one."""
    X, y = curved
    used = []
    own = searching.Search._room
    monkeypatch.setattr(searching.Search, "_room", lambda self: own(self) if used else 0.004)
    search_additive = searching.Search._search_additive
    monkeypatch.setattr(
        searching.Search,
        "_search_additive",
        lambda self, *given: used.append(given[1]) or search_additive(self, *given),
    )
    model = AutoRanker(time_limit=1000.0).fit(X, y)
    assert len(used) == 2
    assert used[0]["interactions"] == 0
    assert "interactions" not in used[1]
    assert [one.form for one in model.candidates_].count("curves") == 1
    assert model.skipped_ == []


def test_a_time_limit_leaves_out_candidates_and_ends_the_additive_search(curved):
    X, y = curved
    none = AutoRanker(time_limit=0.0).fit(X, y)
    assert len(none.candidates_) == 1
    assert any("time limit of 0 s" in reason for reason in none.skipped_)
    ample = AutoRanker(methods=["curves", "surfaces"], time_limit=60.0).fit(X, y)
    asked = AutoRanker(methods=["curves", "surfaces"], estimate=False).fit(X, y)
    assert ample.candidates_.as_dicts(times=False) == asked.candidates_.as_dicts(times=False)
    assert ample.skipped_ == []
    model = AdditiveRankerCV()
    model.watch = searching.Watch(time.monotonic() - 1.0)
    model.fit(X, y)
    assert len(model.watch.search.tried) == 1  # without any the search would have nothing to choose
    assert model.alpha_ == model.watch.search.tried[0].alpha


# --- input and output ---


def test_an_evaluation_set_judges_instead_of_folds(graded):
    X, y, qid = graded
    train, test = qid < 20, qid >= 20
    model = AutoRanker("pairwise_error", methods=["rls", "curves"])
    model.fit(X[train], y[train], qid=qid[train], eval_set=(X[test], y[test], qid[test]))
    assert model.cv_ == f"an evaluation set of {test.sum()} rows"
    scores = model.predict(X[test], qid[test])
    assert model.best_score_ == pytest.approx(pairwise_error(y[test], scores, qid[test]), abs=5e-3)


def test_query_ids_are_asked_for_where_the_model_needs_them(graded):
    X, y, qid = graded
    units = np.exp(2 * np.random.default_rng(0).normal(size=(30, 4)))[qid]  # every query has its own
    model = AutoRanker("pairwise_error", cv=3, estimate=False).fit(X * units, y, qid=qid)
    assert model.needs_queries_
    with pytest.raises(MissingQueriesError, match="scales columns inside queries"):
        model.predict(X)
    assert set(model.rank(X, qid)) == set(range(1, 11))
    plain = AutoRanker(methods=["rls"], cv=3).fit(X, y, qid=qid)
    np.testing.assert_array_equal(plain.predict(X), plain.predict(X, qid))


def test_pipelines_and_searches_route_query_ids(graded):
    X, y, qid = graded
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), AutoRanker(methods=["rls"]))
        search = GridSearchCV(
            pipeline,
            {"autoranker__prefer": ["readable", "accuracy"]},
            cv=QueryKFold(2),
            scoring=make_ranking_scorer("ndcg@10"),
        ).fit(X, y, qid=qid)
        assert search.best_score_ > 0.5


def test_sparse_rows(graded):
    X, y, qid = graded
    X = np.where(np.abs(X) < 1.0, 0, X)
    model = AutoRanker().fit(sp.csr_matrix(X), y, qid=qid)
    assert {entry.scaling for entry in model.candidates_} == {"none"}
    assert model.skipped_ == ["curves and surfaces: X is sparse", "boosted trees as a yardstick: sparse X"]
    np.testing.assert_allclose(model.predict(sp.csr_matrix(X)), model.predict(X), rtol=1e-9)


def test_preferences(curved):
    X, y = curved
    rng = np.random.default_rng(0)
    a, b = rng.integers(len(y), size=(2, 900))
    winner = np.where(y[a] + 0.2 * rng.normal(size=900) > y[b], a, b)
    pairs = np.column_stack([winner, a + b - winner])[a != b]
    model = AutoRanker().fit_pairs(X, pairs)
    assert {"rls", "svm-squared", "logistic", "curves"} <= {entry.method for entry in model.candidates_}
    assert model.candidates_.chosen.form in {"curves", "surfaces"}
    assert model.cv_ == f"5 folds of pairs, all {len(pairs):,} pairs"
    # By hand: the scores of the models that did not see a pair.
    entry, Z = entry_of(model, "rls"), standardised(X)
    problem, wrong = model.search_.problem, np.zeros(len(pairs))
    for train, test in problem.cv:
        scores = RankRLS(entry.alpha).fit_pairs(Z, pairs[train]).predict(Z)
        wrong[test] = scores[pairs[test, 0]] < scores[pairs[test, 1]]
    assert entry.value == pytest.approx(wrong.mean(), abs=1e-12)
    trial = next(one for one in model.search_.trials if one.candidate.form == "curves")
    again = problem.held_out(clone(trial.estimator), None, X, None)
    assert np.mean((again > 0) == (trial.held_out > 0)) > 0.97  # the search fits loosely


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_probabilities_of_pairs_are_calibrated(calibration):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    worth = X @ [1.0, -1.0, 0.5]
    a, b = rng.integers(300, size=(2, 4000))
    a, b = a[a != b], b[a != b]
    probability = 1 / (1 + np.exp(worth[b] - worth[a]))
    wins = rng.random(a.size) < probability
    pairs = np.column_stack([np.where(wins, a, b), np.where(wins, b, a)])
    model = AutoRanker(methods=["rls"], calibration=calibration).fit_pairs(X, pairs)
    found = model.predict_pairs_proba(X[a], X[b])
    np.testing.assert_allclose(found + model.predict_pairs_proba(X[b], X[a]), 1, atol=1e-9)
    assert np.abs(found - probability).mean() < 0.04
    best = -np.mean(np.log(np.where(wins, probability, 1 - probability)))
    assert best - 0.01 < model.log_loss_ < best + 0.01
    assert f"log-loss {model.log_loss_:.4f}" in model.describe()
    np.testing.assert_array_equal(
        model.predict_pairs(X, np.column_stack([a, b])), model.predict_pairs(X[a], X[b])
    )
    file = io.BytesIO()
    model.save(file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.predict_pairs_proba(X[a], X[b]), found)
    with pytest.raises(InvalidInputError, match="there were none"):
        AutoRanker(methods=["rls"]).fit(X, worth).predict_pairs_proba(X, X)


def test_groups_of_pairs_stay_together(graded):
    X, y, _ = graded
    pairs = np.random.default_rng(0).integers(0, 300, size=(300, 2))
    pairs = pairs[y[pairs[:, 0]] > y[pairs[:, 1]]]
    groups = np.arange(len(pairs)) % 7
    model = AutoRanker(methods=["rls"], cv=7).fit_pairs(X, pairs, groups=groups)
    assert "groups" in model.cv_
    for train, test in model.search_.problem.cv:
        assert not set(groups[train]) & set(groups[test])


def test_rivals_are_scored_by_the_same_rows_and_named_where_they_are_ahead(curved):
    X, y = curved
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = AutoRanker(
        methods=["rls"], cv=splits, rivals=[AdditiveRanker(interactions=0)], estimate=False
    ).fit(X, y)
    rival = next(entry for entry in model.candidates_ if entry.is_rival)
    values = [
        pairwise_error(y[test], AdditiveRanker(interactions=0).fit(X[train], y[train]).predict(X[test]))
        for train, test in splits
    ]
    assert rival.value == pytest.approx(np.mean(values))
    assert f"AdditiveRanker is ahead by {model.best_score_ - rival.value:.4f} ± " in model.describe()
    behind = AutoRanker(methods=["curves"], cv=splits, rivals=[RankRLS()], estimate=False).fit(X, y)
    assert "is ahead" not in behind.describe()


def test_outer_folds_estimate_the_score_of_small_data(graded):
    X, y, qid = graded
    model = AutoRanker(methods=["rls"], cv=splits_of(qid)).fit(X, y, qid=qid)
    low, high = model.expected_interval_
    assert low < model.expected_score_ < high < low + 0.3
    assert abs(model.expected_score_ - model.best_score_) < 0.1
    assert f"expect    ndcg@10 {model.expected_score_:.4f}, 95 % interval" in model.describe()
    assert "expect" not in AutoRanker(methods=["rls"], estimate=False).fit(X, y, qid=qid).describe()


@pytest.mark.parametrize(("n_queries", "cv"), [(12, 12), (12, np.int64(11)), (3, 3), (2, 2)])
def test_the_expected_score_takes_as_many_folds_as_there_are_queries(n_queries, cv):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(8 * n_queries, 3)), np.repeat(np.arange(n_queries), 8)
    model = AutoRanker(methods=["rls"], cv=cv).fit(X, X[:, 0] + rng.normal(size=X.shape[0]), qid=qid)
    assert model.cv_.startswith(f"{cv} folds of queries")
    assert 0 < model.expected_score_ < 0.6


def test_the_choice_is_repeated_on_units_drawn_at_random():
    """Of many candidates of pure chance the best is ahead by chance, which units that were not drawn show."""
    rng = np.random.default_rng(0)
    errors = {Candidate("rls", "none", (("kernel", n),)): rng.normal(0.5, 0.1, size=60) for n in range(20)}
    search = search_of("accuracy", errors)
    search.random_state = 0
    best = min(values.mean() for values in errors.values())
    assert best < 0.48 < search.expected().value < 0.52
    alone = search_of("accuracy", dict(list(errors.items())[:1]))
    alone.random_state = 0
    assert alone.expected().value == pytest.approx(alone.chosen.figure.value, abs=3e-3)


def test_weights_curves_and_importances_are_those_of_the_chosen_model(graded, curved):
    X, y, qid = graded
    linear = AutoRanker(methods=["rls"], estimate=False).fit(X, y, qid=qid)
    scores = linear.predict(X)
    assert X @ linear.coef_ - scores == pytest.approx((X @ linear.coef_ - scores)[0])
    assert linear.feature_importances_.argmax() < 2
    assert not hasattr(linear, "curves_")
    X, y = curved
    model = AutoRanker(methods=["curves"], estimate=False).fit(X, y)
    assert [curve.column for curve in model.curves_] == [0, 1]
    assert model.feature_importances_.argmax() == 0
    assert not hasattr(model, "coef_")
    assert model.surfaces_ == []


def test_progress_names_the_candidate_and_the_best_value(graded, monkeypatch):
    X, y, qid = graded
    lines = []
    monkeypatch.setattr(searching.ProgressLine, "update", lambda _, text: lines.append(text))
    model = AutoRanker("ndcg@10", methods=["rls", "svm-squared"]).fit(X, y, qid=qid)
    assert lines[0] == "linear, squared loss"
    first = model.search_.trials[0].figure.value
    assert lines[1] == f"best {first:.4f}, linear, squared hinge"


def test_progress_is_printed_where_it_is_asked_for(graded, capsys):
    X, y, qid = graded
    AutoRanker("ndcg@10", methods=["rls", "svm-squared"]).fit(X, y, qid=qid)
    assert capsys.readouterr().err == ""
    AutoRanker("ndcg@10", methods=["rls", "svm-squared"], time_limit=60, verbose=True).fit(X, y, qid=qid)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "choosing: linear, squared loss (0 of about 60 s)"
    assert re.fullmatch(r"choosing: best 0\.\d{4}, linear, squared hinge \(0 of about 60 s\)", lines[1])


def test_the_table_fits_80_columns_and_marks_the_choice(graded):
    X, y, qid = graded
    board = AutoRanker(prefer="accuracy", cv=3, estimate=False).fit(X, y, qid=qid).candidates_
    lines = str(board).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line.startswith("*") for line in lines].count(True) == 1
    assert " more within " in str(board)
    assert len(board.lines()) == len(board)
    assert "\n" not in repr(board)
    assert len(repr(board)) <= 100
    assert board._repr_html_().count("<tr>") == len(board) + 1
    display = CandidatesDisplay.from_estimator(AutoRanker(methods=["rls"]).fit(X, y, qid=qid))
    assert "ndcg@10 (higher is better)" in display.ax_.get_xlabel()


@pytest.mark.parametrize("method", ["rls", "curves"])
def test_model_files(graded, method):
    X, y, qid = graded
    model = AutoRanker(methods=[method], cv=3).fit(X, y, qid=qid)
    file = io.BytesIO()
    model.save(file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    assert isinstance(again, AutoRanker)
    np.testing.assert_array_equal(again.predict(X, qid), model.predict(X, qid))
    assert again.candidates_.as_dicts(times=False) == model.candidates_.as_dicts(times=False)
    assert again.describe().splitlines()[0] == model.describe().splitlines()[0]
    once_more = io.BytesIO()
    AutoRanker(**model.get_params()).fit(X, y, qid=qid).save(once_more)
    assert once_more.getvalue() == file.getvalue()  # the same data, the same file
    assert clone(again).get_params() == model.get_params()


def test_mistakes(graded):
    X, y, qid = graded
    for options, message in (
        ({"methods": ["forest"]}, "methods='forest'"),
        ({"cv": 100}, "100"),
        ({"methods": ["kernel"], "target": "solr"}, "No candidate can run in 'solr'"),
        ({"fixed": {"basis": "all"}}, "basis"),
        ({"fixed": {"gamma": []}}, "gamma"),
        ({"fixed": {"gamma": np.array([])}}, "gamma"),
        ({"scoring": np.array(["ndcg", "auc"])}, "Unknown metric"),
        ({"methods": ["kernel"], "fixed": {"gamma": object()}}, "gamma"),
        ({"rivals": [RankRLS]}, "not an estimator"),
        ({"rivals": ["LGBMRanker"]}, "not an estimator"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            AutoRanker(**options).fit(X, y, qid=qid)
    with pytest.raises(InvalidInputError, match="2 columns"):
        AutoRanker().fit(X, np.column_stack([y, y]), qid=qid)
    with pytest.raises(InvalidInputError, match="LinearOperator"):
        AutoRanker().fit(aslinearoperator(X), y, qid=qid)
    with pytest.raises(InvalidInputError, match="eval_set has none"):
        AutoRanker().fit(X, y, qid=qid, eval_set=(X, y))


def test_the_end_of_alphas_that_were_given_is_warned_of():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 50))
    y, qid = X[:, 0] + 2 * rng.normal(size=60), np.arange(60) // 6
    model = AutoRanker("pairwise_error", methods=["rls"], alphas=np.geomspace(1e-3, 10, 9))
    with pytest.warns(UserWarning, match="The best alpha is the largest of the grid"):
        model.fit(X, y, qid=qid)


def test_ties_of_pairs_score_what_the_metric_says():
    X = np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [1.0]])
    pairs = np.array(
        [[1, 0], [3, 2], [5, 4], [5, 0], [1, 2], [2, 0], [4, 2], [0, 4]]
    )  # three have equal rows
    for ties in (0.0, 0.5, 1.0):
        scoring = get_metric("pairwise_error", ties=ties)
        model = AutoRanker(scoring, methods=["rls"], cv=KFold(2), estimate=False).fit_pairs(X, pairs)
        assert model.best_score_ == pytest.approx(3 / 8 * ties)


def test_names_of_exact_folds_are_refused_with_a_hint(graded):
    X, y, qid = graded
    for cv in ("leave-query-out", "leave-pair-out"):
        with pytest.raises(InvalidInputError, match="Hint: use cv=5"):
            AutoRanker(cv=cv).fit(X, y, qid=qid)
        with pytest.raises(InvalidInputError, match="Hint: use cv=5"):
            AutoRanker(cv=cv).fit_pairs(X, [[0, 1], [2, 3], [4, 5]])


def test_the_log_loss_of_a_step_is_finite():
    """Five pairs that one column orders but for the last: the sigmoid of the first four is a step."""
    won, weight, fold = np.array([1.0, 1.0, 1.0, 1.0, -1.0]), np.ones(5), np.array([0, 0, 1, 1, 2])
    _, loss = calibrate(won, weight, fold, "sigmoid")
    assert np.isfinite(loss)


def test_pairs_of_many_columns_cost_more_than_the_budget():
    """Ranking them is dear however few rows there are: 3,000 columns have 4.5 million pairs."""
    size = Size(200, 3000, 600_000, 5)
    budget = max(searching._BUDGET, searching._TIMES_RLS * size.rls())
    assert all(size.additive(level) > budget for level in ADDITIVE if level.get("interactions", 1) != 0)
    assert size.additive(ADDITIVE[-1]) < budget
