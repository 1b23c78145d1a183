"""Choosing the regularisation: three readings of one surface, folds and evaluation sets, bad input."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold

from rankwise import RankRLS, RankRLSCV
from rankwise.exceptions import InvalidInputError, MissingQueriesError, NoPairsError
from rankwise.metrics import get_metric
from rankwise.selection import krylov
from rankwise.selection.krylov import ColumnCoordinates
from rankwise.selection.plan import plan_of
from rankwise.selection.surface import EXACT, SurfaceSearch
from strategies import make_problem

GRID = 2.0 ** np.arange(-6, 7, 3)


def noisy(seed=0, rows=300, features=30, queries=40):
    problem = make_problem(seed, rows=rows, features=features, queries=queries)
    rng = np.random.default_rng(seed)
    problem.y = np.round(problem.X[:, :4] @ [2.0, -1.0, 1.0, 0.5] + 2 * rng.normal(size=rows))
    return problem


def split(problem, rows=200):
    train = (problem.X[:rows], problem.y[:rows], problem.qid[:rows])
    return train, (problem.X[rows:], problem.y[rows:], problem.qid[rows:])


def quiet_cg(alpha, steps, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RankRLS(alpha, solver="cg", max_iter=steps, tol=1e-15, **options).fit(*data)


def test_hybrid_is_reproducible_as_early_stopped_cg():
    problem = noisy()
    train, validation = split(problem)
    model = RankRLSCV(GRID).fit(*train, eval_set=validation)
    again = quiet_cg(model.alpha_, model.best_iteration_, *train)
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-8, atol=1e-10)
    folds = RankRLSCV(GRID).fit(problem.X, problem.y, problem.qid)
    refitted = quiet_cg(folds.alpha_, folds.best_iteration_, problem.X, problem.y, problem.qid)
    np.testing.assert_allclose(folds.coef_, refitted.coef_, rtol=1e-8, atol=1e-10)


def test_the_refit_takes_as_many_steps_as_the_folds_chose():
    # On all rows the tolerance may be met sooner than in the last of the folds; the choice was made on iterates.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 5))
    y = X @ [1.0, 2.0, 3.0, 4.0, 5.0] + 3 * rng.normal(size=3000)
    X[:, 0] *= 1e6
    qid = np.arange(3000) // 10
    model = RankRLSCV(method="tikhonov").fit(X, y, qid)
    # The condition number is 1e12, where plain conjugate gradients lose their orthogonality: ask the direct solver.
    np.testing.assert_allclose(
        model.coef_, RankRLS(model.alpha_, solver="direct").fit(X, y, qid).coef_, rtol=1e-3
    )
    assert abs(1 - model.score(X, y, qid) - model.best_score_) < 0.01


@pytest.mark.parametrize("with_eval_set", [True, False])
def test_tikhonov_equals_rank_rls_at_the_chosen_alpha(with_eval_set):
    train, validation = split(noisy(1))
    options = {"eval_set": validation} if with_eval_set else {}
    model = RankRLSCV(GRID, method="tikhonov", tol=1e-10).fit(*train, **options)
    np.testing.assert_allclose(model.coef_, RankRLS(model.alpha_).fit(*train).coef_, rtol=1e-7, atol=1e-8)


def test_every_cell_is_the_error_of_the_model_it_stands_for():
    train, (X, y, qid) = split(noisy(2))
    metric = get_metric("ndcg@5")
    y = y - y.min()
    model = RankRLSCV(GRID, scoring=metric).fit(*train, eval_set=(X, y, qid))
    assert model.surface_.shape == (GRID.size, model.n_iter_)
    problem = model._labelled(*train, None, None)
    plan = model._labelled_eval_set(problem, (X, y, qid))
    search = SurfaceSearch(metric, "hybrid", "folds", model.patience, EXACT)
    (surface, column) = search.grow(problem, plan, GRID, ColumnCoordinates(problem.design)).columns[0]
    for index, alpha in enumerate(model.alphas_):
        for step in (0, model.n_iter_ - 1):
            coef = surface.coefficients(column, alpha, step + 1)
            assert model.surface_[index, step] == pytest.approx(metric(y, X @ coef, qid))
    assert model.best_score_ == np.nanmax(model.surface_)
    np.testing.assert_allclose(model.cv_errors_, model.surface_.max(axis=1))


def test_early_stopping_reads_the_row_without_penalty():
    train, validation = split(noisy(3))
    model = RankRLSCV(GRID, method="early-stopping").fit(*train, eval_set=validation)
    assert model.alpha_ == 0
    stopped = RankRLS(0.0, early_stopping=True).fit(*train, eval_set=validation)
    assert stopped.best_iteration_ == model.best_iteration_
    np.testing.assert_allclose(stopped.coef_, model.coef_, rtol=1e-8, atol=1e-10)
    metric = get_metric("pairwise_error")
    X, y, qid = validation
    kept = stopped.history_[stopped.best_iteration_ - 1]
    assert kept == min(stopped.history_) == pytest.approx(metric(y, stopped.predict(X), qid))
    assert stopped.n_iter_ == len(stopped.history_)


def test_early_stopping_holds_a_share_out():
    problem = noisy(4)
    model = RankRLS(0.0, early_stopping=True, validation_fraction=0.2).fit(problem.X, problem.y, problem.qid)
    assert model.best_iteration_ < model.n_iter_
    named = RankRLS(0.0, early_stopping=True, validation_fraction=0.2)
    named.fit(problem.X, problem.y, problem.qid.astype(str))
    np.testing.assert_allclose(named.coef_, model.coef_, atol=1e-8)
    rows = RankRLS(0.0, early_stopping=True).fit(problem.X, problem.y)
    assert rows.best_iteration_ >= 1


def test_folds_are_judged_by_models_that_did_not_see_them():
    problem = noisy(5)
    splitter = GroupKFold(4)
    model = RankRLSCV(GRID, cv=splitter, method="tikhonov", tol=1e-10).fit(problem.X, problem.y, problem.qid)
    metric = get_metric("pairwise_error")
    for index, alpha in enumerate(GRID):
        scores = np.empty(300)
        for train, test in splitter.split(problem.X, None, problem.qid):
            fitted = RankRLS(alpha).fit(problem.X[train], problem.y[train], problem.qid[train])
            scores[test] = fitted.predict(problem.X[test])
        assert model.cv_errors_[index] == pytest.approx(metric(problem.y, scores, problem.qid), abs=1e-9)


def folds_of_rows(cv, data):
    return plan_of(cv, data.pairs, get_metric("pairwise_error"), 0).groups


@pytest.mark.parametrize("averaging", ["folds", "pooled"])
def test_rows_of_one_ranking_averaged_or_pooled(averaging):
    problem = noisy(6, queries=1)
    model = RankRLSCV(GRID, cv=3, averaging=averaging, method="tikhonov", tol=1e-10)
    model.fit(problem.X, problem.y)
    assert model.cv_ == "3 folds of rows"
    fold = folds_of_rows(3, model._labelled(problem.X, problem.y, None, None, None))
    metric = get_metric("pairwise_error")
    for index, alpha in enumerate(GRID):
        scores, errors = np.empty(300), []
        for c in range(3):
            train, test = fold != c, fold == c
            fitted = RankRLS(alpha).fit(problem.X[train], problem.y[train])
            scores[test] = fitted.predict(problem.X[test])
            errors.append(metric(problem.y[test], scores[test]))
            # Folds have different models; pooled, they are compared where their training rows are.
            scores[test] += np.mean(problem.y[train] - fitted.predict(problem.X[train]))
        expected = np.mean(errors) if averaging == "folds" else metric(problem.y, scores)
        assert model.cv_errors_[index] == pytest.approx(expected, abs=1e-9)


def test_scaling_is_a_third_axis():
    train, validation = split(noisy(9))
    train = (train[0] * np.logspace(-1, 1, 30), *train[1:])
    validation = (validation[0] * np.logspace(-1, 1, 30), *validation[1:])
    both = RankRLSCV(GRID, penalty_power=[0.0, 0.25, 0.5]).fit(*train, eval_set=validation)
    alone = {s: RankRLSCV(GRID, penalty_power=s).fit(*train, eval_set=validation) for s in (0.0, 0.25, 0.5)}
    assert both.best_score_ == min(model.best_score_ for model in alone.values())
    np.testing.assert_array_equal(both.coef_, alone[both.penalty_power_].coef_)
    again = quiet_cg(alone[0.5].alpha_, alone[0.5].best_iteration_, *train, penalty_power=0.5)
    np.testing.assert_allclose(alone[0.5].coef_, again.coef_, rtol=1e-7, atol=1e-9)
    tikhonov = RankRLSCV(GRID, penalty_power=0.25, method="tikhonov", tol=1e-10).fit(
        *train, eval_set=validation
    )
    direct = RankRLS(tikhonov.alpha_, penalty_power=0.25).fit(*train)
    np.testing.assert_allclose(tikhonov.coef_, direct.coef_, rtol=1e-6, atol=1e-8)


def test_the_order_of_the_grid_does_not_matter():
    train, validation = split(noisy(11))
    expected = RankRLSCV(GRID).fit(*train, eval_set=validation)
    shuffled = np.concatenate([GRID[::-1], GRID[:2], [0.0]])
    actual = RankRLSCV(shuffled).fit(*train, eval_set=validation)
    np.testing.assert_array_equal(actual.alphas_, [0.0, *GRID])
    np.testing.assert_array_equal(
        actual.surface_[1:, : expected.n_iter_], expected.surface_[:, : actual.n_iter_]
    )


def test_a_basis_that_does_not_fit_gives_the_same_model(monkeypatch):
    train, validation = split(noisy(12))
    stored = RankRLSCV(GRID).fit(*train, eval_set=validation)
    monkeypatch.setattr(krylov, "fits", lambda _: False)
    short = RankRLSCV(GRID).fit(*train, eval_set=validation)
    assert stored.keeps_basis_
    assert not short.keeps_basis_
    assert (short.alpha_, short.best_iteration_) == (stored.alpha_, stored.best_iteration_)
    np.testing.assert_allclose(short.coef_, stored.coef_, rtol=1e-6, atol=1e-8)


def test_pickled_models_predict():
    train, validation = split(noisy(13))
    model = RankRLSCV(GRID).fit(*train, eval_set=validation)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(validation[0]), model.predict(validation[0]))


def test_few_judging_rows_are_a_fixed_choice_of_whole_queries(monkeypatch):
    problem = noisy(14)
    whole = RankRLSCV(GRID).fit(problem.X, problem.y, problem.qid)
    monkeypatch.setattr("rankwise.estimators.base.SCORED_ENTRIES", 100)
    model = RankRLSCV(GRID).fit(problem.X, problem.y, problem.qid)
    again = RankRLSCV(GRID).fit(problem.X, problem.y, problem.qid)
    assert model.best_score_ == again.best_score_
    assert model.best_score_ != whole.best_score_


def test_an_evaluation_set_wins_over_cv():
    train, validation = split(noisy(18))
    alone = RankRLSCV(GRID).fit(*train, eval_set=validation)
    both = RankRLSCV(GRID, cv=3).fit(*train, eval_set=validation)
    assert both.cv_ == alone.cv_ == "an evaluation set of 100 rows"
    np.testing.assert_array_equal(both.surface_, alone.surface_)


# --- interruption ----------------------------------------------------------------------------------------------


# --- bad input -------------------------------------------------------------------------------------------------

X6 = np.arange(12.0).reshape(6, 2) ** 1.5
Y6 = np.array([0.0, 1.0, 2.0, 1.0, 0.0, 2.0])
Q6 = np.array([0, 0, 1, 1, 2, 2])


def test_a_splitter_by_query_needs_queries():
    problem = noisy(21)
    with pytest.raises(MissingQueriesError, match=r"splits by query.*Hint: "):
        RankRLSCV(GRID, cv=GroupKFold(3)).fit(problem.X, problem.y)


@pytest.mark.parametrize("estimator", [RankRLSCV(GRID), RankRLS(early_stopping=True)])
def test_a_fold_that_has_nothing_to_train_on(estimator):
    # All ordered pairs are in one query, so whoever is scored by it knows nothing.
    y = np.append(np.arange(30.0), 0.0)
    qid = np.append(np.zeros(30), 1)
    X = np.random.default_rng(0).normal(size=(31, 4))
    with pytest.raises(NoPairsError, match=r"fold 0 has no pair with a winner to train on.*Hint: "):
        estimator.fit(X, y, qid)
    assert RankRLSCV(GRID, cv=KFold(3)).fit(X, y, qid).n_queries_ == 2


def test_bad_eval_sets():
    model = RankRLSCV()
    with pytest.raises(MissingQueriesError, match="Hint: pass eval_set="):
        model.fit(X6, Y6, Q6, eval_set=(X6, Y6))
    with pytest.raises(NoPairsError, match="eval_set has no two rows"):
        model.fit(X6, Y6, Q6, eval_set=(X6, np.ones(6), Q6))
    with pytest.raises(InvalidInputError, match=r"tuple \(X, y\) or"):
        model.fit(X6, Y6, Q6, eval_set=X6)
    with pytest.raises(InvalidInputError, match="features"):
        model.fit(X6, Y6, Q6, eval_set=(X6[:, :1], Y6, Q6))
    with pytest.raises(InvalidInputError, match="outputs"):
        model.fit(X6, Y6, Q6, eval_set=(X6, np.column_stack([Y6, Y6]), Q6))
    with pytest.raises(InvalidInputError, match="set early_stopping=True"):
        RankRLS().fit(X6, Y6, Q6, eval_set=(X6, Y6, Q6))


def test_too_few_iterations_warn():
    problem = noisy(16)
    with pytest.warns(ConvergenceWarning, match="max_iter=2.*Hint: raise max_iter"):
        RankRLSCV(GRID, cv=5, method="tikhonov", max_iter=2).fit(problem.X, problem.y, problem.qid)
