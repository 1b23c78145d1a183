"""The automatic choice: one set of folds, figures of held-out rows, paired errors, rules, limits, files."""

import io
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.sparse.linalg import aslinearoperator
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise
from rankwise import AutoRanker, KernelRankRLS, RankRLS, RankRLSCV
from rankwise.automatic import running as searching
from rankwise.automatic.candidates import METHODS, Candidate
from rankwise.automatic.figures import Figure, paired_difference, standard_error
from rankwise.automatic.reading import listed_pairs
from rankwise.automatic.search import JUDGED
from rankwise.automatic.stages import Facts, stages
from rankwise.data import validation
from rankwise.data.queries import encode_queries
from rankwise.data.validation import check_pairs
from rankwise.design import as_design
from rankwise.displays import CandidatesDisplay
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.metrics import get_metric, pairwise_error, per_query
from rankwise.model_selection import QueryKFold, make_ranking_scorer
from rankwise.preprocessing import QueryScaler
from rankwise.problems.training import PairData


@parametrize_with_checks([AutoRanker(methods=["rls"], rule="one-standard-error", cv=3)])
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks([AutoRanker(cv=5)])
def test_common_checks_of_all_methods(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    qid = np.repeat(np.arange(40), 10)[rng.permutation(400)]
    y = np.clip(np.round(X @ [1.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=400)), -1, 3) + 1
    return X, y, qid


@pytest.fixture(scope="module")
def curved():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(400, 2))
    return X, np.abs(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=400)


def test_where_kernels_are_ahead_a_rough_one_learns_from_all_rows():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(600, 3))
    y = np.sign(X).prod(axis=1) + 0.1 * rng.normal(size=600)  # nothing of it in any two columns
    model = AutoRanker(methods=["rls", "kernel"], cv=5).fit(X, y)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    board = rankwise.load(file).candidates_
    assert [entry.options for entry in board] == [entry.options for entry in model.candidates_]
    linear = min(entry.value for entry in board if entry.method == "rls")
    rough = [entry for entry in board if entry.options.get("kernel") == "laplacian"]
    (every,) = [entry for entry in rough if entry.options.get("basis") == "all"]
    reduced = [entry.value for entry in rough if "basis" not in entry.options]
    assert board.chosen.method == "kernel"
    assert every.value < min(reduced) < linear
    fixed = AutoRanker(methods=["rls", "kernel"], cv=5, basis=50).fit(X, y)
    assert not any("basis" in entry.options for entry in fixed.candidates_)


def test_ids_of_queries_are_read_once_and_not_for_every_model(graded, monkeypatch):
    X, y, qid = graded
    read = []
    monkeypatch.setattr(validation, "encode_queries", lambda ids: read.append(ids) or encode_queries(ids))
    counts = []
    for methods in (["rls"], ["rls", "svm-squared", "kernel"]):
        read.clear()
        AutoRanker(methods=methods, scalings=["none", "standard"]).fit(X, y, qid=qid)
        counts.append(len(read))
    assert counts == [1, 1]


def splits_of(qid):
    return list(QueryKFold(5).split(np.zeros((len(qid), 1)), groups=qid))


def test_the_figure_is_that_of_models_fitted_by_hand_without_each_fold(graded):
    X, y, qid = graded
    splits = splits_of(qid)
    model = AutoRanker("pairwise_error", cv=splits, methods=["rls"], scalings=["none"]).fit(X, y, qid=qid)
    for entry in model.candidates_:
        scores = np.zeros(len(y))
        for train, test in splits:
            options = dict(entry.options)
            by_rank = options.pop("labels", None) == "ranks"
            wanted = (rankdata(y[train]) - 0.5) / len(train) if by_rank else y[train]
            fold = RankRLS(entry.alpha, **options).fit(X[train], wanted, qid[train])
            scores[test] = fold.predict(X[test])
        by_query = per_query(y, scores, qid, metric="pairwise_error")
        assert entry.value == pytest.approx(by_query.mean(), abs=1e-12)
        values = by_query.values[by_query.counted]
        assert entry.standard_error == pytest.approx(values.std(ddof=1) / np.sqrt(values.size), rel=1e-9)


def test_small_data_are_assigned_to_folds_several_times(graded):
    X, y, qid = graded
    model = AutoRanker("pairwise_error", methods=["rls"], scalings=["none"]).fit(X, y, qid=qid)
    assert model.cv_ == "5 folds of queries, 4 times, all 40 queries"
    folds = model.search_.problem.folds
    assert len({fold.tobytes() for fold in folds}) == 4
    entry = next(one for one in model.candidates_ if not one.options)
    values = []
    for fold in folds:
        scores = np.zeros(len(y))
        for number in range(5):
            test = fold == number
            assert not set(qid[test]) & set(qid[~test])
            scores[test] = RankRLS(entry.alpha).fit(X[~test], y[~test], qid[~test]).predict(X[test])
        by_query = per_query(y, scores, qid, metric="pairwise_error")
        values.append(by_query.values[by_query.counted])
    steady = np.mean(values, axis=0)
    assert entry.value == pytest.approx(steady.mean(), abs=1e-12)
    assert entry.standard_error == pytest.approx(steady.std(ddof=1) / np.sqrt(steady.size), rel=1e-9)
    once = AutoRanker("pairwise_error", cv=5, methods=["rls"], scalings=["none"]).fit(X, y, qid=qid)
    assert once.cv_ == "5 folds of queries, all 40 queries"
    np.testing.assert_array_equal(once.search_.problem.folds[0], folds[0])


def test_assignments_that_hold_out_every_pair_at_once_are_left_out():
    """Two of six queries have pairs: were both in one fold, nothing would be left to train on."""
    rng = np.random.default_rng(5)
    X, y, qid = rng.normal(size=(60, 3)), np.zeros(60), np.repeat(np.arange(6), 10)
    y[[3, 50]] = 1
    folds = AutoRanker(methods=["rls"]).fit(X, y, qid=qid).search_.problem.folds
    assert len(folds) > 1
    assert all(fold[3] != fold[50] for fold in folds)


def test_one_ranking_again_is_no_more_rows(curved):
    X, y = curved
    model = AutoRanker(methods=["rls"], scalings=["none"]).fit(X, y)
    assert model.cv_ == "5 folds of rows, 4 times, all 400 rows"
    entry = next(one for one in model.candidates_ if not one.options)
    folds = model.search_.problem.folds
    values = [
        pairwise_error(
            y[fold == k], RankRLS(entry.alpha).fit(X[fold != k], y[fold != k]).predict(X[fold == k])
        )
        for fold in folds
        for k in range(5)
    ]
    assert entry.value == pytest.approx(np.mean(values), abs=1e-12)
    figure = next(trial.figure for trial in model.search_.trials if not trial.candidate.options)
    alone = Figure(figure.value, figure.per_unit, figure.share)
    assert figure.standard_error == pytest.approx(2 * alone.standard_error, rel=1e-12)
    assert paired_difference(figure, figure) == (0.0, 0.0)


def test_it_agrees_with_the_estimator_that_chose_the_regularisation(graded):
    X, y, qid = graded
    splits = splits_of(qid)
    alone = RankRLSCV(cv=splits, scoring="ndcg@10", method="tikhonov").fit(X, y, qid=qid)
    model = AutoRanker("ndcg@10", cv=splits, methods=["rls"], scalings=["none"]).fit(X, y, qid=qid)
    plain = next(entry for entry in model.candidates_ if not entry.options)
    assert plain.alpha == alone.alpha_
    assert plain.value == pytest.approx(alone.best_score_, abs=1e-6)  # converged to a tolerance, and solved


def test_one_ranking_is_judged_fold_by_fold(curved):
    X, y = curved
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = AutoRanker(cv=splits, methods=["rls"], scalings=["standard"]).fit(X, y)
    entry = next(one for one in model.candidates_ if not one.options)
    Z = StandardScaler().fit_transform(X)
    values = [
        pairwise_error(y[test], RankRLS(entry.alpha).fit(Z[train], y[train]).predict(Z[test]))
        for train, test in splits
    ]
    assert entry.value == pytest.approx(np.mean(values), abs=1e-12)
    assert 0 < entry.standard_error < 0.1
    assert model.cv_ == "the test sets of 4 given splits, all 400 rows"


def test_paired_errors_are_those_of_the_differences():
    rng = np.random.default_rng(0)
    a, b, share = rng.normal(size=30), rng.normal(size=30), np.full(30, 1 / 30)
    found = paired_difference(Figure(a.mean(), a, share), Figure(b.mean(), b, share))
    assert found == pytest.approx(((a - b).mean(), (a - b).std(ddof=1) / np.sqrt(30)), rel=1e-12)
    assert np.isnan(standard_error(np.ones(1), np.ones(1)))


def test_candidates_that_are_the_same_model_get_the_same_figure(graded):
    X, y, qid = graded
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = AutoRanker("pairwise_error", methods=["rls"], scalings=["none", "standard"]).fit(X, y, qid=qid)
    plain, scaled = (
        next(one for one in model.candidates_ if one.scaling == scaling and not one.options)
        for scaling in ("none", "standard")
    )
    assert plain.value == pytest.approx(scaled.value, abs=1e-12)
    assert plain.standard_error == pytest.approx(scaled.standard_error, abs=1e-12)


def test_every_candidate_gets_the_same_splits(graded, monkeypatch):
    X, y, qid = graded
    seen = []
    original = searching._Run._setting

    def watched(run, candidate, problem, columns):
        setting = original(run, candidate, problem, columns)
        seen.append(tuple(part.tobytes() for part in itertools.chain(*setting.cv)))
        return setting

    monkeypatch.setattr(searching._Run, "_setting", watched)
    model = AutoRanker().fit(X, y, qid=qid)
    fitted = [entry for entry in model.candidates_ if entry.method != "average"]
    assert len(seen) >= len(fitted) > 5
    assert len(set(seen)) == 1


def test_what_is_tried_by_default(graded):
    X, y, qid = graded
    board = AutoRanker().fit(X, y, qid=qid).candidates_
    assert {"none", "standard", "query-minmax", "query-rank", "standard+query-rank"} <= {
        entry.scaling for entry in board
    }
    assert {"rls", "svm-squared", "kernel"} <= {entry.method for entry in board}
    assert {"ties": "exclude", "cost": "unit"} in [entry.options for entry in board]
    assert board.metric == "ndcg@10"
    assert sum(entry.is_chosen for entry in board) == 1
    values = [entry.value for entry in board]
    assert values == sorted(values, reverse=True)
    assert "± " in str(board)
    assert str(board).count("*") == 1


def test_a_curve_is_found(curved):
    X, y = curved
    model = AutoRanker().fit(X, y)
    assert model.candidates_[0].method != "rls"
    assert model.best_score_ < 0.15 < AutoRanker(methods=["rls"]).fit(X, y).best_score_


def test_one_standard_error_prefers_the_simple_and_exportable(graded):
    X, y, qid = graded
    board = AutoRanker(rule="one-standard-error").fit(X, y, qid=qid).candidates_
    close = [entry for entry in board if entry.difference <= entry.difference_error or entry is board[0]]
    assert board.chosen in close
    if any(entry.exportable_to for entry in close):
        assert board.chosen.exportable_to
    methods = ["rls", "svm-squared", "curves", "kernel"]
    assert AutoRanker(rule="best", methods=methods).fit(X, y, qid=qid).candidates_[0].is_chosen


def test_only_what_can_be_exported_is_tried_for_a_target(graded):
    X, y, qid = graded
    board = AutoRanker(target="json").fit(X, y, qid=qid).candidates_
    assert all("json" in entry.exportable_to for entry in board)
    with pytest.raises(InvalidInputError, match="'target' parameter of AutoRanker"):
        AutoRanker(target="moon").fit(X, y, qid=qid)


def test_a_sample_rules_out_and_all_rows_decide(graded, monkeypatch):
    X, y, qid = graded
    monkeypatch.setattr(searching, "_ALL", 1000)
    monkeypatch.setattr(searching, "_SAMPLED", 1000)
    monkeypatch.setattr(searching, "_FEWEST_ROWS", 100)
    model = AutoRanker(methods=["rls", "svm-squared"]).fit(X, y, qid=qid)
    judged = [entry.judged for entry in model.candidates_]
    assert judged == sorted(judged, key=JUDGED.index)
    assert model.candidates_.chosen.judged == "fold"  # both are linear: one finalist needs no race
    assert "the first of 5 folds of queries, 8 of 40 queries; the finalists were found by" in model.cv_
    assert "a sample of" in model.cv_
    same = AutoRanker("ndcg@10", methods=["rls"], scalings=[model.candidates_.chosen.scaling])
    assert model.predict(X, qid).shape == same.fit(X, y, qid=qid).predict(X, qid).shape


def test_curves_of_all_rows_begin_where_the_sample_ended(graded, monkeypatch):
    X, y, qid = graded
    for name, value in (("_ALL", 1000), ("_SAMPLED", 1000), ("_FEWEST_ROWS", 100)):
        monkeypatch.setattr(searching, name, value)
    model = AutoRanker(methods=["curves"], scalings=["none"]).fit(X, y, qid=qid)
    sample, fold = model.search_.trials
    assert (sample.judged, fold.judged) == ("sample", "fold")
    expected = sample.ranker.alpha_ * sample.n_rows / fold.n_rows  # the loss is a mean over pairs
    assert fold.ranker.alphas == pytest.approx([expected, 0.3 * expected, 0.1 * expected], rel=0.05)
    assert len(sample.ranker.cv) == 2  # folds of the sample choose its alpha, and all compare
    assert fold.held_out.size == (model.search_.problem.folds[0] == 0).sum()
    assert "the first of 5 folds of queries, 8 of 40 queries; the finalists were found by" in model.cv_
    # One finalist: the other folds would change nothing, and what the first chose is fitted to all rows.
    chosen = model.best_estimator_
    assert chosen.n_queries_ == 40
    assert chosen.alpha == pytest.approx(fold.ranker.alpha_ * fold.n_rows / len(y))


def test_finalists_race_until_one_is_ahead(graded, monkeypatch):
    X, y, qid = graded
    for name, value in (("_ALL", 1000), ("_SAMPLED", 1000), ("_FEWEST_ROWS", 100)):
        monkeypatch.setattr(searching, name, value)
    model = AutoRanker(methods=["rls", "curves"], scalings=["none", "standard"], random_state=2)
    search = model.fit(X, y, qid=qid).search_
    on_fold = {one.candidate: one for one in search.trials if one.judged == "fold"}
    raced = [one for one in search.trials if one.judged == "all"]
    assert len(on_fold) > 1  # as they have to be, for a race
    assert raced
    judge = search.scored_on
    for trial in raced:
        # Each fold by a model that did not see it, with the alpha that the first one chose.
        ranker = on_fold[trial.candidate].ranker
        if trial.candidate.method != "rls":
            continue
        _, Z, _ = search.problem.columns.get(trial.candidate.scaling)
        for fold in range(int(judge.folds[0].max()) + 1):
            test = judge.folds[0] == fold
            parameters = {name: getattr(ranker, name) for name in ("ties", "cost", "query_weight")}
            alone = RankRLS(ranker.alpha_, **parameters).fit(Z[~test], y[~test], qid[~test])
            assert trial.held_out[0, test] == pytest.approx(alone.predict(Z[test]), abs=1e-9)
        assert trial.figure.value == pytest.approx(judge.figure(trial.held_out).value)
    assert all(search.is_close(one, search.best(raced), 2.0) for one in raced)


def test_rivals_of_finalists_are_scored_by_the_same_rows(graded, monkeypatch):
    X, y, qid = graded
    for name, value in (("_ALL", 1000), ("_SAMPLED", 1000), ("_FEWEST_ROWS", 100)):
        monkeypatch.setattr(searching, name, value)
    model = AutoRanker(methods=["curves"], scalings=["none"], rivals=[RankRLS()]).fit(X, y, qid=qid)
    rival = next(entry for entry in model.candidates_ if entry.is_rival)
    assert rival.judged == model.candidates_.chosen.judged == "fold"
    test = model.search_.problem.folds[0] == 0
    alone = RankRLS().fit(X[~test], y[~test], qid[~test]).predict(X[test])
    assert rival.value == pytest.approx(get_metric("ndcg@10")(y[test], alone, qid[test]))


def test_candidates_that_are_the_same_model_have_the_same_figure(graded):
    X, y, qid = graded
    start = QueryScaler("minmax").fit(X, qid=qid).transform(X, qid=qid)
    model = AutoRanker(methods=["rls", "curves"], scalings=["none", "query-minmax"]).fit(start, y, qid=qid)
    of = {(one.method, one.scaling, str(one.options)): one.value for one in model.candidates_}
    same = [(key, (key[0], "query-minmax", key[2])) for key in of if key[1] == "none"]
    compared = [(of[a], of[b]) for a, b in same if b in of]
    assert compared
    assert all(a == pytest.approx(b, abs=1e-12) for a, b in compared)


@pytest.fixture
def large(monkeypatch):
    """Make a few hundred rows large data, of which a sample finds finalists and a larger one compares them."""
    for name, value in (("_ALL", 500), ("_SAMPLED", 600), ("_COMPARED", 1200), ("_FEWEST_ROWS", 100)):
        monkeypatch.setattr(searching, name, value)


def test_finalists_are_compared_by_a_larger_sample_and_their_mean_is_fitted_to_all_rows(large, graded):
    X, _, qid = graded
    noise = np.random.default_rng(1).normal(size=400)
    # A little curved, and with more that neither of the two finds: both are close, and their mean is ahead.
    y = np.clip(np.round(X[:, 0] + 0.4 * np.abs(X[:, 1]) + 0.4 * X[:, :3].prod(axis=1) + noise), 0, 4)
    methods = ["rls", "curves", "average"]
    model = AutoRanker(methods=methods, scalings=["none"], random_state=7).fit(X, y, qid=qid)
    search, chosen = model.search_, model.candidates_.chosen
    compared = [trial for trial in search.trials if trial.judged == "fold"]
    assert {trial.candidate.method for trial in compared} == {"rls", "curves", "average"}
    assert (chosen.method, chosen.judged) == ("average", "fold")
    rows = search.scored_on  # the larger sample: its first two folds are held out
    assert 200 <= rows.n_rows < 300
    held = rows.folds[0] >= 0
    assert np.unique(rows.folds[0]).tolist() == [-1, 0, 1]
    assert model.cv_.startswith("the first 2 of 5 folds of queries, ")
    assert (
        f"{rows.describe()} of a sample of {rows.n_rows} of 400 rows; the finalists were found" in model.cv_
    )
    for trial in compared:
        if trial.candidate.method == "rls":
            own = {name: getattr(trial.ranker, name) for name in ("ties", "cost", "query_weight")}
            alone = RankRLS(trial.ranker.alpha_, **own).fit(
                rows.columns.X[~held], rows.y[~held], rows.queries.codes[~held]
            )
            assert trial.held_out[0] == pytest.approx(alone.predict(rows.columns.X[held]), abs=1e-9)
    parts = model.best_estimator_.rankers_
    assert all(part.n_queries_ == 40 for part in parts)  # of all rows
    curves = next(trial for trial in compared if trial.candidate.method == "curves")
    fitted = next(part for part in parts if hasattr(part, "curves_"))
    assert fitted.alpha == pytest.approx(curves.ranker.alpha_ * curves.n_rows / len(y))
    assert model.score(X, y, qid=qid) > 0.6


def test_several_models_are_not_fitted_where_that_would_take_long(large, curved, monkeypatch):
    X, y = curved
    monkeypatch.setattr(searching, "_ALL", 100)
    monkeypatch.setattr(searching, "_MEAN_WORK", 100)
    model = AutoRanker(methods=["rls", "curves", "average"], scalings=["none"]).fit(X, y)
    chosen = model.candidates_.chosen
    assert chosen.method == "curves"
    assert not any(trial.candidate.parts for trial in model.search_.trials)
    assert "a sample of" in model.cv_
    trial = model.search_.choose("best")
    expected = trial.ranker.alpha_ * trial.n_rows / len(y)
    assert model.best_estimator_.get_params()["alpha"] == pytest.approx(expected)
    assert pairwise_error(y, model.predict(X)) < 0.15


def test_a_time_limit_that_leaves_time_compares_by_all_rows(large, graded):
    X, y, qid = graded
    model = AutoRanker(methods=["rls", "curves"], scalings=["none"], time_limit=1e6).fit(X, y, qid=qid)
    assert model.search_.scored_on.n_rows == 400
    assert "; the finalists were found by" in model.cv_
    assert not model.stopped_


def test_from_many_rows_on_two_folds_choose_the_alpha_of_what_is_dear_and_all_compare(graded, monkeypatch):
    X, y, qid = graded
    monkeypatch.setattr(searching, "_ROWS_TO_CHOOSE", 400)
    model = AutoRanker(methods=["rls", "svm-squared"], scalings=["none"], cv=5).fit(X, y, qid=qid)
    folds = {one.candidate.method: len(one.ranker.cv) for one in model.search_.trials}
    assert folds == {"rls": 5, "svm-squared": 2}
    assert all(one.figure.per_unit.size == 40 for one in model.search_.trials)


def test_the_grid_of_curves_goes_on_where_its_end_is_best():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = X[:, 0] + 6 * rng.normal(size=300)  # nearly noise: the stronger the penalty the better
    model = AutoRanker(methods=["curves"], scalings=["none"], cv=5).fit(X, y)
    assert model.search_.trials[0].ranker.alpha_ > 0.1  # the largest of the grid


def test_labels_by_rank_are_not_tried_where_only_their_order_counts():
    def tried(options):
        search = Standings(Candidate("rls", "standard", options))
        facts = Facts("labels", True, False, False, True, True, False, True, True, 300)
        return [one for stage in stages(facts, ["rls", "kernel"], None, search) for one in stage]

    kernels = [one for one in tried((("ties", "exclude"), ("cost", "unit"))) if one.method == "kernel"]
    assert kernels
    assert not any(one.ranks_labels for one in kernels)
    assert any(one.ranks_labels for one in tried((("ties", "exclude"),)) if one.method == "kernel")


class Standings:
    """What is best, whatever was tried."""

    def __init__(self, best):
        self._best = best

    def best(self, *methods, **options):
        return self._best

    def ranker(self, candidate):
        return KernelRankRLS("rbf")

    def is_close(self, method):
        return True

    def promising(self, scalings):
        return list(scalings)


def test_order_of_rows_and_names_of_queries_change_nothing_given_the_folds(graded):
    X, y, qid = graded
    order = np.random.default_rng(3).permutation(len(y))
    names = np.array([f"query {number}" for number in (qid * 7) % 40])
    options = {"methods": ["rls"], "scalings": ["none", "query-standard"]}

    def folds(fold):
        return [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(4)]

    first = AutoRanker(cv=folds(qid % 4), **options).fit(X, y, qid=qid)
    second = AutoRanker(cv=folds(qid[order] % 4), **options).fit(X[order], y[order], qid=names[order])
    for a, b in zip(first.candidates_, second.candidates_, strict=True):
        assert (a.description, a.alpha) == (b.description, b.alpha)
        assert a.value == pytest.approx(b.value, abs=1e-9)


def test_time_limit_keeps_the_best_so_far(graded):
    X, y, qid = graded
    model = AutoRanker(time_limit=0.0).fit(X, y, qid=qid)
    assert len(model.candidates_) == 1
    assert "time limit" in model.stopped_
    assert model.score(X, y, qid=qid) > 0.6


def test_progress_says_which_candidate_how_many_remain_and_the_best_yet(graded, monkeypatch):
    X, y, qid = graded
    lines = []
    monkeypatch.setattr(searching.ProgressLine, "update", lambda _, text: lines.append(text))
    model = AutoRanker("ndcg@10", methods=["rls"], scalings=["none", "standard"]).fit(X, y, qid=qid)
    assert lines[0] == "candidate 1, at least 1 more: RankRLS, columns as they are"
    first = model.search_.trials[0].figure.value
    assert lines[1] == f"candidate 2: RankRLS, standardised columns; best yet ndcg@10 {first:.4f}"
    assert len(lines) == len(model.candidates_)


def test_nested_scores_rows_that_took_no_part(graded):
    X, y, qid = graded
    model = AutoRanker(methods=["rls"], scalings=["none", "standard"], nested=3).fit(X, y, qid=qid)
    assert 0.5 < model.nested_score_ < 1
    assert 0 < model.nested_error_ < 0.2
    assert "of the whole procedure" in model.describe()
    assert "selected on the same rows" in AutoRanker(methods=["rls"]).fit(X, y, qid=qid).describe()


def test_an_evaluation_set_judges_instead_of_folds(graded):
    X, y, qid = graded
    train, test = qid < 30, qid >= 30
    model = AutoRanker("pairwise_error", methods=["rls"], scalings=["none", "query-rank"])
    model.fit(X[train], y[train], qid=qid[train], eval_set=(X[test], y[test], qid[test]))
    assert model.cv_ == f"an evaluation set of {test.sum()} rows"
    scores = model.predict(X[test], qid[test])
    assert model.best_score_ == pytest.approx(pairwise_error(y[test], scores, qid[test]), abs=1e-12)


def test_query_ids_are_asked_for_where_the_model_needs_them(graded):
    X, y, qid = graded
    model = AutoRanker(scalings=["query-rank"], methods=["rls"]).fit(X, y, qid=qid)
    with pytest.raises(MissingQueriesError, match="scales columns inside queries"):
        model.predict(X)
    assert set(model.rank(X, qid)) == set(range(1, 11))
    plain = AutoRanker(scalings=["none"], methods=["rls"]).fit(X, y, qid=qid)
    np.testing.assert_array_equal(plain.predict(X), plain.predict(X, qid))


def test_pipelines_and_searches_route_query_ids(graded):
    X, y, qid = graded
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), AutoRanker(methods=["rls"], scalings=["query-standard"]))
        search = GridSearchCV(
            pipeline,
            {"autoranker__rule": ["best", "one-standard-error"]},
            cv=QueryKFold(2),
            scoring=make_ranking_scorer("ndcg@10"),
        ).fit(X, y, qid=qid)
        assert search.best_score_ > 0.5
        assert search.score(X, y, qid=qid) > 0.5


def test_sparse_rows(graded):
    X, y, qid = graded
    X = np.where(np.abs(X) < 1.0, 0, X)
    model = AutoRanker(methods=["rls"]).fit(sp.csr_matrix(X), y, qid=qid)
    assert {entry.scaling for entry in model.candidates_} == {"none", "max-abs"}
    np.testing.assert_allclose(model.predict(sp.csr_matrix(X)), model.predict(X), rtol=1e-9)


def test_preferences(curved):
    X, y = curved
    rng = np.random.default_rng(0)
    a, b = rng.integers(len(y), size=(2, 1500))
    winner = np.where(y[a] + 0.2 * rng.normal(size=1500) > y[b], a, b)
    pairs = np.column_stack([winner, a + b - winner])[a != b]
    model = AutoRanker().fit_pairs(X, pairs)
    assert {"rls", "svm-squared", "logistic", "kernel"} <= {entry.method for entry in model.candidates_}
    assert model.candidates_[0].method not in {"rls", "svm-squared", "svm", "logistic"}
    assert model.cv_ == f"5 folds of pairs, all {len(pairs):,} pairs"
    assert 1 - model.score_pairs(X, pairs) < model.best_score_ + 0.02
    # By hand: the scores of the models that did not see a pair.
    entry = next(one for one in model.candidates_ if one.method == "rls" and one.scaling == "none")
    data = PairData.listed(as_design(X), check_pairs(pairs, len(X)), "include", "magnitude")
    problem = listed_pairs(data, get_metric("pairwise_error"), "auto", 0, None)
    wrong = np.zeros(len(pairs))
    for train, test in problem.cv:
        scores = RankRLS(entry.alpha).fit_pairs(X, pairs[train]).predict(X)
        wrong[test] = scores[pairs[test, 0]] < scores[pairs[test, 1]]
    assert entry.value == pytest.approx(wrong.mean(), abs=1e-12)


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
    model = AutoRanker(methods=["rls"], scalings=["none"], calibration=calibration).fit_pairs(X, pairs)
    found = model.predict_pairs_proba(X[a], X[b])
    np.testing.assert_allclose(found + model.predict_pairs_proba(X[b], X[a]), 1, atol=1e-9)
    assert np.abs(found - probability).mean() < 0.04
    best = -np.mean(np.log(np.where(wins, probability, 1 - probability)))
    assert best - 0.01 < model.log_loss_ < best + 0.01
    np.testing.assert_array_equal(
        model.predict_pairs(X, np.column_stack([a, b])), model.predict_pairs(X[a], X[b])
    )
    file = io.BytesIO()
    model.save(file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.predict_pairs_proba(X[a], X[b]), found)
    with pytest.raises(InvalidInputError, match="there were none"):
        AutoRanker(methods=["rls"]).fit(X, worth).predict_pairs_proba(X, X)


def test_the_picture(graded):
    pytest.importorskip("matplotlib").use("Agg")
    X, y, qid = graded
    model = AutoRanker(methods=["rls"]).fit(X, y, qid=qid)
    display = CandidatesDisplay.from_estimator(model)
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == [entry.description for entry in model.candidates_]
    assert "ndcg@10 (higher is better)" in display.ax_.get_xlabel()


@pytest.mark.parametrize("scaling", ["none", "standard", "standard+query-rank"])
def test_model_files(graded, scaling):
    X, y, qid = graded
    model = AutoRanker(methods=["rls"], scalings=[scaling], nested=2).fit(X, y, qid=qid)
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
        ({"rule": "worst"}, "'rule' parameter of AutoRanker"),
        ({"methods": ["forest"]}, "methods='forest'"),
        ({"scalings": "log"}, "scalings='log'"),
        ({"time_limit": -1}, "time_limit"),
        ({"cv": 100}, "100"),
        ({"fixed": ["ties"]}, "'fixed' parameter"),
        ({"rivals": RankRLS()}, "'rivals' parameter"),
        ({"methods": ["kernel"], "target": "solr"}, "No candidate can run in 'solr'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            AutoRanker(**options).fit(X, y, qid=qid)
    with pytest.raises(InvalidInputError, match="2 columns"):
        AutoRanker().fit(X, np.column_stack([y, y]), qid=qid)
    with pytest.raises(InvalidInputError, match="LinearOperator"):
        AutoRanker().fit(aslinearoperator(X), y, qid=qid)
    with pytest.raises(InvalidInputError, match="nested"):
        AutoRanker(nested=True).fit(X, y, qid=qid, eval_set=(X, y, qid))
    with pytest.raises(InvalidInputError, match="eval_set has none"):
        AutoRanker().fit(X, y, qid=qid, eval_set=(X, y))


def test_every_candidate_has_words():
    for method in METHODS:
        assert Candidate(method, "none").describe()


def test_a_race_out_of_time_keeps_what_its_last_whole_fold_said(monkeypatch):
    for name, small in (
        ("_ALL", 3000),
        ("_SAMPLED", 1500),
        ("_COMPARED", 3000),
        ("_FEWEST_ROWS", 300),
        ("_MEAN_WORK", 0),
    ):
        monkeypatch.setattr(searching, name, small)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1600, 4))
    y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * rng.normal(size=1600)
    on_fold, calls = searching._Run._on_fold, []

    def counted(*args):
        calls.append(1)
        return on_fold(*args)

    monkeypatch.setattr(searching._Run, "_on_fold", counted)
    monkeypatch.setattr(searching._Run, "_has_time", lambda *_: len(calls) < 4)
    monkeypatch.setattr(searching._Run, "_has_time_for_all", lambda *_: False)
    model = AutoRanker(rivals=[RankRLS()], time_limit=1000.0, random_state=1)
    model.fit(X, y, qid=np.arange(1600) // 10)
    assert model.stopped_ == "the time limit of 1000 s"
    assert len(calls) == 4
    raced = [trial for trial in model.search_.trials if trial.judged == "all"]
    n_queries = {trial.figure.per_unit.size for trial in raced}
    assert len(n_queries) == 1
    assert f"folds of queries, {n_queries.pop()} of " in model.cv_


def values_of(model):
    return {one.description: one.value for one in model.candidates_}


@pytest.mark.parametrize(
    "limit", ["labelled_rows._COPIED_BYTES", "scaling._SINGLE_BYTES", "scaling._KEPT_BYTES"]
)
@pytest.mark.parametrize("size", ["large", "small"])
def test_large_rows_are_not_copied_and_give_the_same_figures(request, graded, monkeypatch, limit, size):
    X, y, qid = graded
    if size == "large":
        request.getfixturevalue("large")
    weight = np.where(np.arange(400) % 3, 1.0, 2.0)
    methods = ["rls", "svm-squared"]
    model = AutoRanker(methods=methods, scalings=["none", "standard"], random_state=1)
    usual = values_of(model.fit(X, y, qid=qid, sample_weight=weight))
    monkeypatch.setattr(f"rankwise.automatic.{limit}", 0)
    found = values_of(model.fit(X, y, qid=qid, sample_weight=weight))
    assert found == pytest.approx(usual, abs=2e-3)


def test_splits_that_were_given_are_not_those_of_nested_rows(graded):
    X, y, qid = graded
    fold = qid % 4
    splits = [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(4)]
    model = AutoRanker(methods=["rls"], scalings=["none"], cv=splits, nested=2).fit(X, y, qid=qid)
    assert abs(model.nested_score_ - model.best_score_) < 0.1


def test_what_was_not_tried_and_what_pairs_are_worth_is_said(graded):
    X, y, qid = graded
    model = AutoRanker(methods=["rls", "kernel"], time_limit=1e-9).fit(X, y, qid=qid)
    assert f"stopped by {model.stopped_}" in model.describe()
    pairs = np.random.default_rng(0).integers(0, 400, size=(300, 2))
    pairs = np.where((y[pairs[:, 0]] > y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    duels = AutoRanker(methods=["rls"], scalings=["none"]).fit_pairs(
        X, pairs[y[pairs[:, 0]] > y[pairs[:, 1]]]
    )
    assert f"log-loss {duels.log_loss_:.4f}" in duels.describe()


def test_groups_of_pairs_stay_together(graded):
    X, y, _ = graded
    pairs = np.random.default_rng(0).integers(0, 400, size=(300, 2))
    pairs = pairs[y[pairs[:, 0]] > y[pairs[:, 1]]]
    groups = np.arange(len(pairs)) % 7
    model = AutoRanker(methods=["rls"], scalings=["none"], cv=7).fit_pairs(X, pairs, groups=groups)
    assert "groups" in model.cv_
    for train, test in model.search_.problem.cv:
        assert not set(groups[train]) & set(groups[test])


def test_an_evaluation_set_judges_finalists_of_large_data(large, graded):
    X, y, qid = graded
    half = qid % 2 == 0
    model = AutoRanker(methods=["rls", "curves"], scalings=["none"])
    model.fit(X[half], y[half], qid=qid[half], eval_set=(X[~half], y[~half], qid[~half]))
    final = model.search_.final_trials
    assert {trial.held_out.shape for trial in final} == {(1, int((~half).sum()))}
    for trial in final:
        value = model.metric_(y[~half], trial.held_out[0], qid[~half])
        assert trial.figure.value == pytest.approx(value)


def test_the_end_of_alphas_that_were_given_is_warned_of():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 50))
    y, qid = X[:, 0] + 2 * rng.normal(size=60), np.arange(60) // 6
    model = AutoRanker("pairwise_error", methods=["rls"], scalings=["none"], alphas=np.geomspace(1e-3, 10, 9))
    with pytest.warns(UserWarning, match="The best alpha is the largest of the grid"):
        model.fit(X, y, qid=qid)
