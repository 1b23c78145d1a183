"""RankSVM as a user meets it: models, certificates, invariances, and every kind of bad input."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from oracles import label_pairs
from rankwise import RankSVM, RankSVMCV
from rankwise.exceptions import InvalidInputError, NoPairsError, UnsuitableSolverError
from rankwise.fitting import margins
from rankwise.metrics import pairwise_error
from rankwise.model_selection import PreferenceKFold, QueryKFold
from rankwise.selection import path as alpha_path
from strategies import make_problem

EVERY = [
    ("hinge", "smoothing"),
    ("hinge", "bundle"),
    ("squared_hinge", "newton"),
    ("squared_hinge", "bundle"),
]


def fit(problem, **options):
    model = RankSVM(**{"alpha": 1e-2, "tol": 1e-7, **options})
    return model.fit(problem.X, problem.y, qid=problem.qid, sample_weight=problem.sample_weight)


def objective(problem, coef, loss="hinge", alpha=1e-2, query_weight="equal"):
    """The weighted mean over explicit pairs, plus the penalty."""
    pairs = label_pairs(
        problem.y,
        problem.qid,
        ties="exclude",
        cost="unit",
        query_weight=query_weight,
        sample_weight=problem.sample_weight,
    )
    scores = problem.X @ coef
    t = np.maximum(0, 1 - (scores[pairs.winner] - scores[pairs.loser]))
    return pairs.weight @ (t if loss == "hinge" else t**2) / pairs.weight.sum() + alpha * coef @ coef


@pytest.mark.parametrize(("loss", "solver"), EVERY)
@pytest.mark.parametrize("query_weight", ["equal", "size", "pairs"])
def test_the_gap_bounds_the_distance_to_the_minimum(loss, solver, query_weight):
    problem = make_problem(2, rows=80, weighted=True)
    options = {"loss": loss, "query_weight": query_weight}
    tight = fit(problem, **options, tol=1e-9)
    minimum = objective(problem, tight.coef_, **options) - tight.duality_gap_
    for tol in (1e-1, 1e-3, 1e-5):
        model = fit(problem, **options, solver=solver, tol=tol)
        assert objective(problem, model.coef_, **options) - minimum <= model.duality_gap_ + 2e-9
        # tol is a share of what can be gained: of the value at 0 less what is proved of the minimum
        bound = objective(problem, model.coef_, **options) - model.duality_gap_
        at_zero = objective(problem, np.zeros_like(model.coef_), **options)
        assert model.duality_gap_ <= tol * (at_zero - bound) * (1 + 1e-9)
        assert model.solver_ == solver


def limit_of_large_alpha(problem, loss):
    """``-g₀``, twice alpha times what the minimum tends to, from explicit pairs."""
    pairs = label_pairs(problem.y, problem.qid, ties="exclude", cost="unit", query_weight="equal")
    D = problem.X[pairs.winner] - problem.X[pairs.loser]
    return D.T @ pairs.weight / pairs.weight.sum() * (1 if loss == "hinge" else 2)


@pytest.mark.parametrize("alpha", [1e8, 1.0, 0.1])
def test_small_columns_of_duels_still_tell_who_wins(alpha):
    rng = np.random.default_rng(0)
    X = 0.05 * rng.normal(size=(50, 4))
    one = rng.integers(0, 50, size=300)
    pairs = np.column_stack([one, (one + rng.integers(1, 50, size=300)) % 50])
    wrong = (X[pairs[:, 0]] - X[pairs[:, 1]]) @ [1.0, 2.0, -1.0, 0.5] < 0
    pairs[wrong] = pairs[wrong, ::-1]
    assert RankSVM(alpha, loss="logistic").fit_pairs(X, pairs).score_pairs(X, pairs) > 0.9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_the_choice_of_alpha_has_no_units_either(loss, scale):
    problem = make_problem(5, rows=120, queries=12)
    folds = list(QueryKFold(3).split(problem.X, problem.y, problem.qid))
    grid = 10.0 ** np.arange(-3, 7)  # alphas of which most have the same model
    models = [
        RankSVMCV(grid * c**2, loss=loss, cv=folds).fit(problem.X * c, problem.y, problem.qid)
        for c in (1.0, scale)
    ]
    assert models[1].alpha_ == pytest.approx(models[0].alpha_ * scale**2)
    np.testing.assert_allclose(models[1].cv_errors_, models[0].cv_errors_, atol=1e-12)
    np.testing.assert_array_equal(
        models[1].rank(problem.X * scale, problem.qid), models[0].rank(problem.X, problem.qid)
    )


def test_shifts_inside_queries_and_importance():
    problem = make_problem(6)
    shifted = make_problem(6)
    shifted.X = problem.X + np.random.default_rng(0).normal(size=(20, 5))[problem.qid]
    np.testing.assert_allclose(fit(shifted).coef_, fit(problem).coef_, atol=1e-2)
    only = RankSVM(1e-2, tol=1e-8).fit(
        problem.X, problem.y, problem.qid, query_importance=dict.fromkeys((1, 2), 0.0)
    )
    kept = ~np.isin(problem.qid, (1, 2))
    without = RankSVM(1e-2, tol=1e-8).fit(problem.X[kept], problem.y[kept], problem.qid[kept])
    np.testing.assert_allclose(only.coef_, without.coef_, atol=2e-3)


def test_warm_start():
    problem = make_problem(8, rows=200, features=20, queries=1, real=True)
    model = RankSVM(1e-4, tol=1e-6, warm_start=True).fit(problem.X, problem.y)
    first = model.n_iter_
    assert model.fit(problem.X, problem.y).n_iter_ < first
    model.fit(problem.X[:, :3], problem.y)  # other columns: the old start is of no use
    assert model.coef_.shape == (3,)


@pytest.mark.parametrize("solver", ["smoothing", "bundle"])
@pytest.mark.parametrize("with_eval_set", [True, False])
def test_early_stopping_keeps_the_iterate_that_held_out_rows_like_best(solver, with_eval_set):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = X[:, 0] + 2 * rng.normal(size=400)
    qid = np.arange(400) // 10
    model = RankSVM(1e-6, tol=1e-9, early_stopping=True, patience=5, solver=solver)
    eval_set = (X[300:], y[300:], qid[300:]) if with_eval_set else None
    model.fit(X[:300], y[:300], qid[:300], eval_set=eval_set)
    assert len(model.history_) == model.best_iteration_ + 5
    assert min(model.history_) == model.history_[model.best_iteration_ - 1]
    if with_eval_set:
        error = pairwise_error(y[300:], model.predict(X[300:]), qid[300:])
        assert error == pytest.approx(min(model.history_))


def test_early_stopping_of_several_outputs():
    problem = make_problem(3, rows=200, queries=20)
    Y = np.column_stack([problem.y, -problem.y])
    model = RankSVM(1e-4, early_stopping=True, scoring="ndcg@5").fit(problem.X, Y - Y.min(), problem.qid)
    assert len(model.history_) == 2
    assert model.best_iteration_.shape == (2,)


def test_a_large_ranking_of_unscaled_columns_goes_on_with_smoothing(monkeypatch):
    monkeypatch.setattr(margins, "_FIRST_TRY", 5)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4)) * [1.0, 1e2, 1e4, 1e6]
    y = X @ [1.0, 1e-2, -1e-4, 1e-6] + rng.normal(size=20_000)
    model = RankSVM().fit(X, y)
    assert model.solver_ == "smoothing"
    assert model.duality_gap_ <= 1e-3
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        assert RankSVM(max_iter=2).fit(X, y).n_iter_ == 2


def test_tol_zero_and_max_iter_warn():
    problem = make_problem(1)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = fit(problem, tol=0.0, max_iter=500)
    assert model.duality_gap_ < 1e-6
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        fit(problem, tol=1e-9, max_iter=2, alpha=1e-6)


def test_pairs_that_are_outside_the_margin_already():
    """Separable data and a start that satisfies every pair: nothing pulls but the penalty."""
    X = np.array([[0.0], [10.0], [20.0], [30.0]])
    model = RankSVM(1e-6, tol=1e-9, warm_start=True).fit(X, [0, 1, 2, 3])
    assert model.coef_[0] == pytest.approx(0.1, rel=1e-2)
    model.coef_ = np.array([50.0])
    model.fit(X, [0, 1, 2, 3])
    assert model.coef_[0] == pytest.approx(0.1, rel=1e-2)


@pytest.mark.parametrize("n_rows", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("levels", [2, None])
def test_one_query_of_many_rows_and_many_labels(levels, n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3)).astype(np.float32)
    y = X @ [1.0, -1.0, 0.0] + rng.normal(size=n_rows)
    y = y if levels is None else (y > 0).astype(float)
    model = RankSVM(1e-3).fit(X, y)
    assert model.n_pairs_ > 0.2 * n_rows**2
    assert model.score(X, y) > 0.75
    assert model.duality_gap_ <= 1e-3


class TestListedPairs:
    def data(self, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 4))
        winner = rng.integers(0, 50, size=200)
        pairs = np.column_stack([winner, (winner + rng.integers(1, 50, size=200)) % 50])
        better = (X[pairs[:, 0]] - X[pairs[:, 1]]) @ [1.0, -2.0, 0.0, 1.0] + rng.normal(size=200) > 0
        pairs[~better] = pairs[~better, ::-1]
        return X, pairs, rng.random(200) + 0.5, rng.random(200)

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_margins_and_weights(self, loss):
        X, pairs, magnitude, weight = self.data()
        D = X[pairs[:, 0]] - X[pairs[:, 1]]

        def value(w):
            t = np.maximum(0, magnitude - D @ w)
            return weight @ (t if loss == "hinge" else t**2) / weight.sum() + 1e-2 * w @ w

        model = RankSVM(1e-2, loss=loss, tol=1e-7).fit_pairs(X, pairs, magnitude, weight)
        rng = np.random.default_rng(1)
        for scale in (1e-3, 1e-1):
            for _ in range(50):
                other = model.coef_ + scale * rng.normal(size=4)
                assert value(model.coef_) <= value(other) + 1e-7
        assert model.score_pairs(X, pairs) > 0.7

    def test_labels_are_a_list_of_pairs(self):
        problem = make_problem(2)
        listed = label_pairs(problem.y, problem.qid, ties="exclude", cost="unit", query_weight="equal")
        expected = fit(problem, tol=1e-9)
        edges = np.column_stack([listed.winner, listed.loser])
        model = RankSVM(1e-2, tol=1e-9).fit_pairs(problem.X, edges, weight=listed.weight)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)

    def test_logistic_gives_probabilities(self):
        X, pairs, _, weight = self.data()
        model = RankSVM(1e-3, loss="logistic", tol=1e-8).fit_pairs(X, pairs, weight=weight)
        p = model.predict_pairs(X[pairs[:, 0]], X[pairs[:, 1]])
        assert ((p > 0) & (p < 1)).all()
        np.testing.assert_allclose(p + model.predict_pairs(X[pairs[:, 1]], X[pairs[:, 0]]), 1.0)
        hinge = RankSVM(1e-3).fit_pairs(X, pairs)
        assert hinge.predict_pairs(X[pairs[:, 0]], X[pairs[:, 1]]).max() > 1

    def test_probabilities_choose_alpha_by_their_log_loss(self):
        X, pairs, _, weight = self.data()
        alphas, folds = [1e-3, 1e-2, 1e-1], list(KFold(4).split(pairs))
        model = RankSVMCV(alphas, cv=folds, loss="logistic", tol=1e-10).fit_pairs(X, pairs, weight=weight)
        expected = []
        for alpha in alphas:
            errors = []
            for train, test in folds:
                one = RankSVM(alpha, loss="logistic", tol=1e-10).fit_pairs(
                    X, pairs[train], weight=weight[train]
                )
                given = one.predict_pairs(X, pairs[test])
                errors.append(np.average(-np.log(given), weights=weight[test]))
            expected.append(np.mean(errors))
        np.testing.assert_allclose(model.cv_errors_, expected, rtol=1e-6)
        assert model.alpha_ == alphas[int(np.argmin(expected))]
        assert model.best_score_ == min(model.cv_errors_)
        by_order = RankSVMCV(alphas, cv=folds, loss="logistic", scoring="concordance").fit_pairs(X, pairs)
        assert by_order.best_score_ == max(by_order.cv_errors_)

    def test_probabilities_have_the_scale_of_the_duels(self):
        # By the order alone a large alpha is as good as a small one where one column decides, and all
        # probabilities are near a half then.
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        edges = rng.integers(60, size=(4000, 2))
        edges = edges[edges[:, 0] != edges[:, 1]]
        turned = rng.random(len(edges)) > 1 / (1 + np.exp(-1.5 * (X[edges[:, 0], 0] - X[edges[:, 1], 0])))
        edges[turned] = edges[turned, ::-1]
        assert np.abs(RankSVMCV(loss="logistic").fit_pairs(X, edges).coef_ - [1.5, 0]).max() < 0.15

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
    @pytest.mark.parametrize("with_eval_set", [True, False])
    def test_early_stopping_watches_pairs(self, loss, with_eval_set):
        X, pairs, _, weight = self.data()
        model = RankSVM(1e-7, loss=loss, tol=1e-9, early_stopping=True, patience=3)
        eval_set = (X, pairs[150:], weight[150:]) if with_eval_set else None
        model.fit_pairs(X, pairs[:150], weight=weight[:150], eval_set=eval_set)
        assert min(model.history_) == model.history_[model.best_iteration_ - 1]
        if with_eval_set:
            error = 1 - model.score_pairs(X, pairs[150:], weight[150:])
            assert error == pytest.approx(min(model.history_))
        with pytest.raises(InvalidInputError, match="but is not used"):
            RankSVM().fit_pairs(X, pairs, eval_set=(X, pairs))

    def test_bad_pairs(self):
        X, pairs, magnitude, _ = self.data()
        with pytest.raises(InvalidInputError, match="Hint"):
            RankSVM().fit_pairs(X, pairs, np.where(magnitude > 1, np.inf, magnitude))
        with pytest.raises(InvalidInputError, match="two opposite pairs"):
            RankSVM(loss="logistic").fit_pairs(X, pairs, magnitude)
        with pytest.raises(NoPairsError):
            RankSVM().fit_pairs(X, pairs, 0.0)
        with pytest.raises(InvalidInputError, match="use fit_pairs"):
            RankSVM(loss="logistic").fit(X, np.arange(50))


@pytest.mark.parametrize("seed", [0, 1])
def test_few_pairs_to_a_tight_tolerance(seed):
    # A narrow kink over few pairs stops smoothing; what was asked for must be proved all the same, without a warning.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 30))
    y = X[:, 0] - X[:, 1] + 3 * rng.normal(size=400)
    for alpha in (1e-4, 1e-2):
        model = RankSVM(alpha, tol=1e-8).fit(X, y, np.arange(400) // 10)
        assert model.duality_gap_ <= 1e-8


class TestChoosingAlpha:
    def problem(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 30))
        y = X[:, 0] - X[:, 1] + 3 * rng.normal(size=400)
        return X, y, np.arange(400) // 10

    @pytest.mark.parametrize("grouped", [True, False])
    def test_folds(self, grouped):
        X, y, qid = self.problem()
        qid = qid if grouped else None
        model = RankSVMCV(alphas=[1e-4, 1.0, 1e-2], tol=1e-5).fit(X, y, qid)
        assert model.alphas_.tolist() == [1e-4, 1e-2, 1.0]
        assert model.cv_errors_.shape == (3,)
        assert model.best_score_ == np.nanmin(model.cv_errors_)
        assert model.cv_ == f"5 folds of {'queries' if grouped else 'rows'}"
        alone = RankSVM(model.alpha_, tol=1e-7).fit(X, y, qid)
        assert np.linalg.norm(model.coef_ - alone.coef_) <= np.sqrt(2e-5 / model.alpha_)

    def test_an_evaluation_set(self):
        X, y, qid = self.problem()
        held = qid >= 30
        model = RankSVMCV(alphas=[1e-4, 1e-1, 1.0], tol=1e-6)
        model.fit(X[~held], y[~held], qid[~held], eval_set=(X[held], y[held], qid[held]))
        for alpha, error in zip(model.alphas_, model.cv_errors_, strict=True):
            one = RankSVM(alpha, tol=1e-6).fit(X[~held], y[~held], qid[~held])
            assert pairwise_error(y[held], one.predict(X[held]), qid[held]) == pytest.approx(error, abs=0.02)
        assert model.best_score_ == pytest.approx(pairwise_error(y[held], model.predict(X[held]), qid[held]))

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
    def test_folds_of_pairs(self, loss):
        X, pairs, _, weight = TestListedPairs().data()
        model = RankSVMCV(
            [1e-3, 1e-1, 1.0], loss=loss, tol=1e-7, cv=PreferenceKFold(3), scoring="pairwise_error"
        )
        model.fit_pairs(X, pairs, weight=weight)
        expected = np.zeros(3)
        for train, test in PreferenceKFold(3).split(pairs):
            for k, alpha in enumerate(model.alphas_):
                one = RankSVM(alpha, loss=loss, tol=1e-7).fit_pairs(X, pairs[train], weight=weight[train])
                expected[k] += (1 - one.score_pairs(X, pairs[test], weight[test])) / 3
        np.testing.assert_allclose(model.cv_errors_, expected, atol=0.02)
        assert model.best_score_ == model.cv_errors_.min()
        alone = RankSVM(model.alpha_, loss=loss, tol=1e-9).fit_pairs(X, pairs, weight=weight)
        assert np.linalg.norm(model.coef_ - alone.coef_) <= np.sqrt(2e-7 / model.alpha_)

    def test_groups_and_evaluation_sets_of_pairs(self):
        X, pairs, magnitude, weight = TestListedPairs().data()
        model = RankSVMCV([1e-2, 1.0]).fit_pairs(X, pairs, magnitude, groups=pairs[:, 0] % 7)
        assert model.cv_ == "5 folds of groups"
        model = RankSVMCV([1e-2, 1.0], scoring="concordance")
        model.fit_pairs(X, pairs[:150], eval_set=(X, pairs[150:], weight[150:]))
        assert model.cv_ == "an evaluation set of 50 pairs"
        assert model.best_score_ == pytest.approx(model.score_pairs(X, pairs[150:], weight[150:]))
        with pytest.raises(InvalidInputError, match="pairs have none"):
            RankSVMCV(scoring="ndcg").fit_pairs(X, pairs)
        with pytest.raises(NoPairsError, match="Hint"):
            RankSVMCV(cv=[(np.arange(0), np.arange(200))]).fit_pairs(X, pairs)

    def test_large_alphas_are_judged_by_their_limit_and_not_as_ties(self):
        X, y, qid = self.problem()
        held = qid >= 30
        model = RankSVMCV([1e3, 1e8, 1e13, 1e18])
        model.fit(X[~held], y[~held], qid[~held], eval_set=(X[held], y[held], qid[held]))
        problem = make_problem(0)
        problem.X, problem.y, problem.qid = X[~held], y[~held], qid[~held]
        limit = X[held] @ limit_of_large_alpha(problem, "hinge")
        np.testing.assert_allclose(model.cv_errors_, pairwise_error(y[held], limit, qid[held]))
        assert model.alpha_ == 1e18  # the largest of equally good ones

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_the_walk_ends_where_smaller_alphas_only_make_it_worse(self, loss, monkeypatch):
        rng = np.random.default_rng(3)
        X, qid = rng.normal(size=(300, 100)), np.arange(300) // 10
        y = 2 * X[:, 0] + rng.normal(size=300)
        grid = 10.0 ** np.arange(-5, 2)
        model = RankSVMCV(grid, loss=loss, random_state=2).fit(X, y, qid)
        tried = np.isfinite(model.cv_errors_)
        assert not tried[0]
        assert tried[1 + np.flatnonzero(~tried).max() :].all()  # from the largest on
        monkeypatch.setattr(alpha_path.AlphaPath, "is_hopeless", False)
        whole = RankSVMCV(grid, loss=loss, random_state=2).fit(X, y, qid)
        assert np.isfinite(whole.cv_errors_).all()
        assert (model.alpha_, model.best_score_) == (whole.alpha_, whole.best_score_)
        np.testing.assert_array_equal(model.cv_errors_[tried], whole.cv_errors_[tried])
        # Both are within their gap of a minimum whose curvature is at least 2 alpha.
        radius = np.sqrt(max(model.duality_gap_, whole.duality_gap_) / model.alpha_)
        assert np.linalg.norm(model.coef_ - whole.coef_) <= 2 * radius


@pytest.mark.parametrize(("loss", "solver"), [("hinge", "newton"), ("squared_hinge", "smoothing")])
def test_solvers_that_cannot(loss, solver):
    with pytest.raises(UnsuitableSolverError, match="Hint: use solver='auto'"):
        fit(make_problem(0), loss=loss, solver=solver)
