"""The regularisation chosen for preferences: every cell against its model, folds in lockstep, bad input."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, ShuffleSplit

from all_pairs import pairwise
from oracles import label_pairs
from rankwise import RankRLS, RankRLSCV
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics import get_metric, preference_error
from rankwise.model_selection import PreferenceKFold
from rankwise.selection.krylov import ColumnCoordinates
from rankwise.selection.plan import held_out_share, plan_of
from rankwise.selection.surface import EXACT, SurfaceSearch
from strategies import make_problem

GRID = 2.0 ** np.arange(-6, 7, 3)
STORAGES = [np.asarray, np.float32, sp.csr_matrix, aslinearoperator]


class Drawn:
    """Noisy preferences among rows, with ties, weights, repetitions and contradictions."""

    def __init__(self, seed=0, rows=80, features=12, n_pairs=400):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(rows, features)).astype(np.float32).astype(np.float64)
        value = self.X[:, :3] @ [2.0, -1.0, 1.0] + rng.normal(size=rows)
        ends = rng.integers(rows - 2, size=(n_pairs, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        gain = value[ends[:, 0]] - value[ends[:, 1]] + rng.normal(size=len(ends))
        self.pairs = np.where(gain[:, None] > 0, ends, ends[:, ::-1])
        self.magnitude = np.where(np.abs(gain) < 0.3, 0.0, np.round(np.abs(gain), 2))
        self.weight = rng.integers(0, 4, size=len(ends)) / 2.0
        self.lists = (self.pairs, self.magnitude, self.weight)

    def some(self, chosen):
        return self.pairs[chosen], self.magnitude[chosen], self.weight[chosen]

    def error(self, model, chosen):
        """The oracle: pairs that weigh something and have a winner, judged one by one."""
        chosen = np.flatnonzero(
            (self.weight > 0) & (self.magnitude > 0) & np.isin(range(len(self.pairs)), chosen)
        )
        return preference_error(self.pairs[chosen], model.predict(self.X), self.weight[chosen])


def close(actual, expected, tolerance=1e-8):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def cg(alpha, steps, X, *lists, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RankRLS(alpha, solver="cg", max_iter=int(steps), tol=1e-15, **options).fit_pairs(X, *lists)


@pytest.mark.parametrize("convert", STORAGES)
@pytest.mark.parametrize("scoring", ["pairwise_error", "concordance"])
def test_every_cell_is_the_error_of_the_model_it_stands_for(convert, scoring):
    train, validation = Drawn(0), Drawn(1)
    model = RankRLSCV(GRID, scoring=scoring).fit_pairs(
        convert(train.X), *train.lists, eval_set=(convert(validation.X), validation.pairs, validation.weight)
    )
    assert model.surface_.shape == (GRID.size, model.n_iter_)
    assert model.cv_ == f"an evaluation set of {len(validation.pairs)} pairs"
    problem = model._listed(convert(train.X), *train.lists)
    plan = model._listed_eval_set(problem, (convert(validation.X), validation.pairs, validation.weight))
    search = SurfaceSearch(model._metric, "hybrid", "folds", model.patience, EXACT)
    (surface, column) = search.grow(problem, plan, GRID, ColumnCoordinates(problem.design)).columns[0]
    rows = [*zip(model.alphas_, model.surface_, strict=True), (0.0, model.unpenalised_)]
    for alpha, row in rows:
        for step in range(model.n_iter_):
            fitted = cg(alpha, step + 1, train.X, *train.lists)
            error = preference_error(validation.pairs, fitted.predict(validation.X), validation.weight)
            assert row[step] == pytest.approx(error if scoring == "pairwise_error" else 1 - error, abs=2e-3)
            coef = surface.coefficients(column, alpha, step + 1)
            error = preference_error(validation.pairs, validation.X @ coef, validation.weight)
            assert row[step] == pytest.approx(error if scoring == "pairwise_error" else 1 - error)
    best = min if scoring == "pairwise_error" else max
    assert model.best_score_ == best(model.surface_.ravel())
    assert model.score_pairs(validation.X, validation.pairs, validation.weight) == pytest.approx(
        1 - model.best_score_ if scoring == "pairwise_error" else model.best_score_
    )


@pytest.mark.parametrize("penalty_power", [0.0, 0.25])
@pytest.mark.parametrize("folds", [True, False])
def test_hybrid_is_reproducible_as_early_stopped_cg(penalty_power, folds):
    train, validation = Drawn(2), Drawn(3)
    X = train.X * np.logspace(-0.3, 0.3, 12)
    eval_set = None if folds else (validation.X * np.logspace(-0.3, 0.3, 12), validation.pairs)
    model = RankRLSCV(GRID, penalty_power=penalty_power).fit_pairs(X, *train.lists, eval_set=eval_set)
    close(
        model.coef_,
        cg(model.alpha_, model.best_iteration_, X, *train.lists, penalty_power=penalty_power).coef_,
    )
    assert model.choices_["hybrid"] == (model.alpha_, model.best_iteration_, model.best_score_)
    plain = RankRLS().fit_pairs(X, *train.lists)
    for name in ("n_pairs_", "n_components_", "n_unpaired_rows_", "n_queries_", "n_features_in_"):
        assert getattr(model, name) == getattr(plain, name)
    close(model.predict_pairs(X[:3], X[3:6]), (X[:3] - X[3:6]) @ model.coef_)


SPLITTERS = [
    PreferenceKFold(3),
    PreferenceKFold(3, by="items"),
    PreferenceKFold(3, by="groups"),
    KFold(4),
    ShuffleSplit(
        3, test_size=0.4, random_state=0
    ),  # test sets may overlap: a pair judges every fold without it
]


@pairwise(cv=[*SPLITTERS, 4, "auto"], averaging=["folds", "pooled"], cost=["magnitude", "unit"])
def test_folds_in_lockstep_equal_separate_fits(cv, averaging, cost):
    data = Drawn(4)
    ignores_groups = isinstance(cv, (KFold, ShuffleSplit))  # and warns if it gets any
    groups = None if ignores_groups else data.pairs.min(axis=1) % 11
    model = RankRLSCV(GRID, cv=cv, averaging=averaging, cost=cost, method="tikhonov", tol=1e-11)
    model.fit_pairs(data.X, *data.lists, groups=groups)
    splits = split(cv, model, data, groups)
    for index, alpha in enumerate(GRID):
        errors, weights = [], []
        for train, test in splits:
            fitted = RankRLS(alpha, cost=cost).fit_pairs(data.X, *data.some(train))
            errors.append(data.error(fitted, test))
            weights.append((data.weight * (data.magnitude > 0))[test].sum())
        expected = np.mean(errors) if averaging == "folds" else np.average(errors, weights=weights)
        assert model.cv_errors_[index] == pytest.approx(expected, abs=1e-9)
    assert model.alpha_ == GRID[::-1][np.argmin(model.cv_errors_[::-1])]
    close(model.coef_, RankRLS(model.alpha_, cost=cost).fit_pairs(data.X, *data.lists).coef_, 1e-7)


def split(cv, model, data, groups):
    if not isinstance(cv, (str, int)):
        return list(cv.split(data.pairs, None, groups))
    plan = plan_of(cv, model._listed(data.X, *data.lists, groups).pairs, model._metric, 0)
    out, words = plan, plan.description
    assert words == model.cv_ == f"{out.n_folds} folds of groups"
    tests = [out.held[out.fold == c] for c in range(out.n_folds)]
    for test in tests:
        inside = np.isin(np.arange(len(groups)), test)
        assert not set(groups[inside]) & set(groups[~inside])
    return [(np.setdiff1d(np.arange(len(data.pairs)), test), test) for test in tests]


def test_comparisons_of_the_same_rows_share_a_fold():
    data = Drawn(5, rows=12)
    model = RankRLSCV(GRID, cv=3).fit_pairs(data.X, *data.lists)
    plan = plan_of(3, model._listed(data.X, *data.lists).pairs, model._metric, 0)
    out, words = plan, plan.description
    assert words == model.cv_ == "3 folds of pairs"
    fold = np.empty(len(data.pairs), dtype=int)
    fold[out.held] = out.fold
    of_couple = {}
    for pair, c in zip(np.sort(data.pairs, axis=1).tolist(), fold, strict=True):
        assert of_couple.setdefault(tuple(pair), c) == c


@pytest.mark.parametrize("method", ["hybrid", "tikhonov", "early-stopping"])
@pytest.mark.parametrize("sparse", [False, True])
def test_listing_the_pairs_of_labels_gives_the_surface_of_the_labels(method, sparse):
    problem = make_problem(3, rows=120, features=8, queries=1)
    validation = make_problem(4, rows=60, features=8, queries=1)
    convert = sp.csr_matrix if sparse else np.asarray
    listed = label_pairs(problem.y, problem.qid, ties="include", query_weight="pairs")
    to_score = label_pairs(validation.y, validation.qid, ties="exclude", query_weight="pairs")
    labels = RankRLSCV(GRID, query_weight="pairs", method=method)
    labels.fit(convert(problem.X), problem.y, eval_set=(convert(validation.X), validation.y))
    pairs = RankRLSCV(GRID, method=method).fit_pairs(
        convert(problem.X),
        np.column_stack([listed.winner, listed.loser]),
        listed.difference,
        eval_set=(convert(validation.X), np.column_stack([to_score.winner, to_score.loser])),
    )
    close(pairs.surface_, labels.surface_)
    assert (pairs.alpha_, pairs.best_iteration_) == (labels.alpha_, labels.best_iteration_)
    close(pairs.coef_, labels.coef_)


# --- early stopping ----------------------------------------------------------------------------------------------


def test_early_stopping_holds_a_share_of_the_pairs_out():
    data = Drawn(9)
    model = RankRLS(0.5, early_stopping=True, validation_fraction=0.25, scoring="concordance")
    model.fit_pairs(data.X, *data.lists)
    n_components, n_pairs = model.n_components_, model.n_pairs_
    out = held_out_share(model._listed(data.X, *data.lists).pairs, 0.25, 0)
    assert out.held.size == pytest.approx(0.25 * (data.weight > 0).sum(), rel=0.1)
    train = np.setdiff1d(np.arange(len(data.pairs)), out.held)
    fitted = cg(0.5, model.best_iteration_, data.X, *data.some(train))
    close(model.coef_, fitted.coef_)
    assert max(model.history_) == pytest.approx(1 - data.error(fitted, out.held))
    whole = RankRLS(0.5).fit_pairs(data.X, *data.lists)
    assert (n_components, n_pairs) == (whole.n_components_, whole.n_pairs_)
    other = RankRLS(0.5, early_stopping=True, random_state=1).fit_pairs(data.X, *data.lists)
    assert not np.allclose(other.coef_, model.coef_)


@pytest.mark.parametrize("estimator", [RankRLS(early_stopping=True), RankRLSCV(GRID)])
def test_nothing_of_an_earlier_fit_lingers(estimator):
    data = Drawn(10)
    y = np.round(data.X[:, 0])
    of_pairs = {"n_components_", "n_unpaired_rows_"}
    estimator.fit_pairs(data.X, *data.lists)
    assert of_pairs <= set(vars(estimator))
    estimator.fit(data.X, y, np.arange(80) // 8)
    assert not of_pairs & set(vars(estimator))
    assert estimator.n_queries_ == 10
    estimator.fit_pairs(data.X, *data.lists)
    assert (estimator.n_queries_, estimator.fitted_with_qid_) == (1, False)
    if isinstance(estimator, RankRLS):
        estimator.early_stopping = False
        estimator.fit_pairs(data.X, *data.lists)
        assert not {"history_", "best_iteration_"} & set(vars(estimator))


# --- interruption and bad input -------------------------------------------------------------------------------------


X4, PAIRS = np.array([[0.0], [1.0], [2.0], [3.0]]), [[1, 0], [3, 2], [2, 0], [3, 1]]


@pytest.mark.parametrize("eval_set", [None, (X4, PAIRS)])
@pytest.mark.parametrize(
    "make", [lambda s: RankRLS(early_stopping=True, scoring=s), lambda s: RankRLSCV(scoring=s)]
)
def test_pairs_are_judged_by_metrics_of_pairs(make, eval_set):
    for scoring in ("ndcg@5", get_metric("kendall_tau")):
        with pytest.raises(
            InvalidInputError, match=r"needs rows with labels.*Hint: use scoring='pairwise_error'"
        ):
            make(scoring).fit_pairs(X4, PAIRS, eval_set=eval_set)


class SeesItsTest:
    def split(self, X, y=None, groups=None):
        yield np.arange(4), np.array([0])


class MakesNoFolds:
    def split(self, X, y=None, groups=None):
        return iter(())


BAD_FITS = [
    (RankRLS(), {"eval_set": (X4, PAIRS)}, "set early_stopping=True"),
    (RankRLSCV(cv=9), {}, "at least 9 pairs, got 4"),
    (RankRLSCV(cv=3), {"groups": [0, 0, 1, 1]}, "at least 3 groups, got 2"),
    (RankRLSCV(), {"groups": [0, 0]}, "Hint"),
    (RankRLSCV(), {"groups": [0, 0, 0, 0]}, "pass an eval_set"),
    (RankRLSCV(cv=PreferenceKFold(2, by="groups")), {}, "groups"),
    (RankRLSCV(cv=SeesItsTest()), {}, "trains on pairs that it tests"),
    (RankRLSCV(cv=MakesNoFolds()), {}, "makes no folds"),
    (RankRLSCV(cv=2), {"magnitude": [1, 0, 0, 0]}, "no pair with a winner to train on"),
    (RankRLSCV(cv=KFold(2)), {"magnitude": [1, 0, 0, 0]}, "no pair with a winner to train on"),
    (RankRLS(early_stopping=True), {"pairs": [[1, 0], [0, 1]]}, "the same two rows"),
    (RankRLSCV(), {"pairs": [[1, 0], [0, 1]]}, "pass an eval_set"),
]


@pytest.mark.parametrize(("estimator", "change", "message"), BAD_FITS)
def test_refusals_say_what_is_wrong_and_what_to_do(estimator, change, message):
    with pytest.raises((InvalidInputError, NoPairsError), match=message) as caught:
        estimator.fit_pairs(**{"X": X4, "pairs": PAIRS, **change})
    assert "Hint: " in str(caught.value)
