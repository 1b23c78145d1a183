"""The squared loss of curves and listed surfaces: all alphas at once, held out exactly or on the surface."""

import numpy as np
import pytest

from hats import hat_matrix
from oracles import label_pairs
from rankwise import AdditiveRanker, AdditiveRankerCV
from rankwise.design import AdditiveDesign
from rankwise.design.terms import Curve, Surface, Terms
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import get_metric
from rankwise.selection.result import Selection
from rankwise.solvers.choose import choose_solver
from rankwise.solvers.solution import Status

ALPHAS = [1e-1, 1e-2, 1e-3]
LISTED = {"curves": 0, "surfaces": [(0, 1), (1, 2)]}


def make(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(rows, 3))
    X[rng.random(rows) < 0.1, 2] = np.nan
    y = X[:, 0] ** 2 + X[:, 0] * X[:, 1] + np.nan_to_num(X[:, 2]) + rng.normal(0, 0.3, size=rows)
    return X, np.round(3 * y), np.arange(rows) // 10


def held_out_errors(model, X, y, qid, fold, interactions):
    """Refit without each fold over listed pairs, with the penalty of all rows; mean errors of queries, by alpha."""
    data = model._labelled(X, y, qid, None, None)
    knots = model.n_knots_, model.surface_knots_
    blueprint = model._problem(data, *knots)[0].blueprints.at(*knots)
    layout = blueprint.layout(interactions or ())
    Z = hat_matrix(X, layout.coordinates.terms) @ layout.coordinates.to_values(
        np.eye(layout.coordinates.n_coordinates)
    )
    pairs = label_pairs(y, qid, query_weight="equal", ties="include")
    D, z, weight = Z[pairs.winner] - Z[pairs.loser], y[pairs.winner] - y[pairs.loser], pairs.weight
    total = weight[z != 0].sum()  # ties have no weight of their own in the mean
    metric = get_metric("pairwise_error")
    errors = np.empty(len(ALPHAS))
    for number, alpha in enumerate(sorted(ALPHAS)):
        scores = np.empty(len(y))
        for held in range(fold.max() + 1):
            kept = np.where(fold[pairs.winner] != held, weight, 0.0)
            system = D.T @ (kept[:, None] * D) + alpha * total * np.eye(D.shape[1])
            scores[fold == held] = Z[fold == held] @ np.linalg.solve(system, D.T @ (kept * z))
        errors[number] = metric.prepare(y, qid)(scores)
    return errors


@pytest.mark.parametrize("terms", LISTED)
def test_every_query_is_held_out_exactly(terms):
    X, y, qid = make()
    options = {"loss": "squared", "interactions": LISTED[terms], "n_knots": 4, "surface_knots": 3}
    model = AdditiveRankerCV(ALPHAS, cv="leave-query-out", **options).fit(X, y, qid=qid)
    assert model.cv_ == "leave-query-out over 12 queries"
    expected = held_out_errors(model, X, y, qid, qid, LISTED[terms])
    np.testing.assert_allclose(model.cv_errors_, expected, atol=1e-9)
    assert model.alphas_.tolist() == sorted(ALPHAS)
    assert model.best_score_ == model.cv_errors_.min()
    # The model is that of its alpha, whoever fits it; "auto" leaves out queries too.
    same = AdditiveRanker(model.alpha_, **options).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-8)
    assert AdditiveRankerCV(ALPHAS, **options).fit(X, y, qid=qid).cv_ == model.cv_


def test_folds_and_an_evaluation_set_know_every_alpha_after_every_iteration():
    X, y, qid = make()
    options = {"loss": "squared", "interactions": 0, "n_knots": 4}
    model = AdditiveRankerCV(ALPHAS, cv=3, **options).fit(X, y, qid=qid)
    assert model.cv_ == "3 folds of queries"
    fold = model._labelled(X, y, qid, None, None).pairs.units().folds(3, 0)
    expected = held_out_errors(model, X, y, qid, fold, 0)
    np.testing.assert_allclose(model.cv_errors_, expected, atol=1e-9)
    np.testing.assert_allclose(np.nanmin(model.surface_[:, -1]), min(expected), atol=1e-9)
    same = AdditiveRanker(model.alpha_, **options).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-6)
    rows = qid < 8
    held = AdditiveRankerCV(ALPHAS, **options)
    held.fit(X[rows], y[rows], qid=qid[rows], eval_set=(X[~rows], y[~rows], qid[~rows]))
    assert held.best_score_ == pytest.approx(1 - held.score(X[~rows], y[~rows], qid=qid[~rows]), abs=1e-9)


def test_one_ranking_and_listed_pairs_are_held_out_exactly_too():
    X, y, _ = make(60)
    options = {"loss": "squared", "interactions": 0, "n_knots": 4}
    model = AdditiveRankerCV(cv="leave-pair-out", **options).fit(X, y)
    assert model.cv_ == "leave-pair-out over 60 rows"
    rng = np.random.default_rng(0)
    pairs = rng.integers(60, size=(400, 2))
    pairs = pairs[y[pairs[:, 0]] > y[pairs[:, 1]]]
    groups = np.arange(len(pairs)) % 7
    listed = AdditiveRankerCV(cv="leave-query-out", **options).fit_pairs(X, pairs, groups=groups)
    assert listed.score_pairs(X, pairs) > 0.8
    assert "7 groups" in listed.cv_


def test_knots_and_the_default_grid_grow():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(700, 2))
    y, qid = np.sin(9 * X[:, 0]) + X[:, 1], np.arange(700) // 20
    model = AdditiveRankerCV(loss="squared", interactions=0).fit(X, y, qid=qid)
    assert model.n_knots_ == 16  # 32 would have 22 rows each
    assert model.alpha_ < 1e-5
    assert Selection.of_model(model).error == model.best_score_
    results = model.cv_results_
    assert set(results["n_knots"]) >= {8, model.n_knots_}
    assert results["score"].min() <= model.best_score_


def test_exact_hold_out_says_what_it_takes():
    X, y, qid = make()
    for options in (
        {"loss": "squared"},
        {"interactions": 0},
        {"loss": "squared", "interactions": 0, "monotone": {0: 1}},
    ):
        with pytest.raises(InvalidInputError, match=r"leave-query-out.*Hint: use loss='squared'.*cv=5"):
            AdditiveRankerCV(cv="leave-query-out", **options).fit(X, y, qid=qid)


def test_the_second_alpha_forms_the_matrix_that_the_others_share():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(2000, 100)), rng.normal(size=2000), np.arange(2000) // 4
    model = AdditiveRankerCV(loss="squared", tol=1e-10)
    problem, _ = model._problem(model._labelled(X, y, qid, None, None), 4, 5)
    layout = problem.blueprints.at(4, 5).curves
    solver = problem.training().on(layout.design, layout.coordinates.nonnegative)
    pairs = label_pairs(y, qid, query_weight="equal", ties="include")
    Z = layout.design.matrix()
    D, z = Z[pairs.winner] - Z[pairs.loser], y[pairs.winner] - y[pairs.loser]
    G, b = D.T @ (pairs.weight[:, None] * D), D.T @ (pairs.weight * z)
    assert len(G) > 300  # so that one alpha alone iterates
    iterates = []
    for alpha in (1e-2, 1e-3, 1e-4):
        before = layout.design.reads
        solution = solver(alpha, None, 1e-10)
        iterates.append((solution.status is not Status.EXACT, layout.design.reads - before))
        expected = np.linalg.solve(G + alpha * pairs.weight.sum() * np.eye(len(G)), b)
        np.testing.assert_allclose(solution.coef, expected, atol=1e-6 * np.abs(expected).max())
    assert [is_iterative for is_iterative, _ in iterates] == [True, False, False]
    assert iterates[2][1] == 0  # nothing is read again


def coded(n_columns, n_knots=8, n_surfaces=0, rows=20_000):
    """Return a design of columns that are all alike, encoded once."""
    knots = np.linspace(0, 1, n_knots)
    curves = [Curve(column, knots) for column in range(n_columns)]
    sides = [Curve(column, np.linspace(0, 1, 5)) for column in range(2 * n_surfaces)]
    surfaces = [Surface(*sides[2 * n : 2 * n + 2]) for n in range(n_surfaces)]
    X = np.random.default_rng(0).random((rows, n_columns), dtype=np.float32)
    return AdditiveDesign.encode(X, Terms(tuple(curves), tuple(surfaces)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"n_columns": 46}, ("direct", "direct")),
        ({"n_columns": 136}, ("cg", "direct")),
        ({"n_columns": 136, "n_surfaces": 40}, ("cg", "cg")),  # dense rows, multiplied
        ({"n_columns": 136, "rows": 1000}, ("cg", "cg")),  # the factor takes longer than products
    ],
    ids=str,
)
def test_the_matrix_of_curves_is_formed_where_codes_make_it_cheap(options, expected):
    design = coded(**options)
    assert tuple(choose_solver(design, n_alphas=n) for n in (1, 4)) == expected


def test_a_matrix_from_codes_is_estimated_by_what_it_adds():
    """A product adds one number for each code, the matrix four for each pair of columns: as measured, 40 and 113."""
    for n_columns, products in ((46, 40), (136, 113)):
        product, gram = coded(n_columns).work
        assert gram / product == pytest.approx(products, rel=0.1)
    # More knots add nothing to either; few values leave it to dense rows, as narrow as they are.
    assert coded(46, n_knots=64).work == coded(46).work
    assert coded(46, n_knots=2).work[1] < coded(46).work[1]
