"""Additive models: what they minimise, what they show, what they refuse."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from hats import hat_matrix
from oracles import label_pairs
from rankwise import AdditiveRanker, AdditiveRankerCV, RankSVM
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import get_metric
from rankwise.selection.result import Selection


def make(seed=0, rows=300, missing=False, categories=False):
    """Rows with a bend, a product, a category and a column that is constant inside queries."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(rows // 10), 10)
    X = rng.uniform(-1, 1, size=(rows, 5))
    X[:, 3] = rng.integers(4, size=rows)
    X[:, 4] = qid
    y = 2 * X[:, 0] ** 2 + 3 * X[:, 1] * X[:, 2] + np.array([0.0, 1.0, -1.0, 0.5])[X[:, 3].astype(int)]
    y += rng.normal(0, 0.2, size=rows)
    if missing:
        X[rng.random(rows) < 0.1, 0] = np.nan
    return X, np.round(y, 2), qid


MODELS = {
    "curves": AdditiveRanker(interactions=0),
    "surfaces": AdditiveRanker(interactions=2),
    "auto": AdditiveRanker(),
    "squared": AdditiveRanker(loss="squared", interactions=1),
    "hinge": AdditiveRanker(loss="hinge", interactions=1),
    "categories": AdditiveRanker(categorical=[3], interactions=2),
    "bends": AdditiveRanker(penalty="second_difference", interactions=1),
    "ridge": AdditiveRanker(penalty="ridge", interactions=1),
    "listed": AdditiveRanker(interactions=[(2, 1), (0, 3)]),
    "monotone": AdditiveRanker(monotone={1: 1, 2: -1}, interactions=1),
    "monotone squared": AdditiveRanker(monotone=[0, 1, 0, 0, 0], loss="squared", interactions=1),
    "adapted": AdditiveRanker(adaptive=2, interactions=2),
    "selected": AdditiveRanker(adaptive=1, selective=2, interactions=2),
    "cv": AdditiveRankerCV(alphas=[1e-2, 1e-4], cv=3, interactions=[0, 1], n_knots=[4, 8]),
}


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_sums_of_what_is_read_off_curves_and_surfaces(name, missing):
    X, y, qid = make(missing=missing)
    model = MODELS[name].fit(X, y, qid=qid)
    assert model.constant_columns_.tolist() == [4]
    new = make(1, missing=missing)[0]
    new[0, :4] = 9.0  # outside
    total = np.zeros(len(new))
    for curve in model.curves_:
        total += [read_curve(curve, x) for x in new[:, curve.column]]
        present = np.append(curve.values, curve.missing)
        shares = np.append(curve.shares, 1 - curve.shares.sum())
        assert shares @ present == pytest.approx(0, abs=1e-6)  # codes hold positions to 2^-25
    for surface in model.surfaces_:
        total += [read_surface(surface, *row) for row in new[:, surface.columns]]
    np.testing.assert_allclose(model.predict(new), total, rtol=1e-12, atol=1e-12)
    strengths = [surface.importance for surface in model.surfaces_]
    assert strengths == sorted(strengths, reverse=True)
    assert model.score(X, y, qid=qid) > 0.6


def read_curve(curve, x):
    if np.isnan(x):
        return curve.missing
    if curve.is_levels:
        found = curve.knots == x
        return curve.values[found][0] if found.any() else curve.missing  # noqa: PD011
    return np.interp(x, curve.knots, curve.values)


def read_surface(surface, *point):
    """Interpolate along one axis, then along the other."""
    rows = [read_axis(surface, 1, point[1], line) for line in surface.values]  # noqa: PD011
    return read_axis(surface, 0, point[0], np.array(rows))


def read_axis(surface, axis, x, values):
    knots = surface.knots[axis]
    absent = values[knots.size] if surface.missing[axis] else 0.0
    if np.isnan(x):
        return absent
    if surface.is_levels[axis]:
        found = np.flatnonzero(knots == x)
        return values[found[0]] if found.size else absent
    return np.interp(x, knots, values[: knots.size])


def plain_objective(model, X, y, qid):
    """The objective of the curves and surfaces of a model, over listed pairs, as a function of coordinates."""
    data = model._labelled(X, y, qid, None, None)
    knots = model.n_knots, model.surface_knots
    blueprint = model._problem(data, *knots)[0].blueprints.at(*knots)
    number = {side.column: place for place, side in enumerate(blueprint.plan.sides)}
    pairs = [(number[a], number[b]) for a, b in model.interactions_]
    layout = blueprint.layout(pairs)
    Z = hat_matrix(X, layout.coordinates.terms) @ layout.coordinates.to_values(
        np.eye(layout.coordinates.n_coordinates)
    )
    listed = label_pairs(y, qid, query_weight="equal", ties="exclude")
    D = Z[listed.winner] - Z[listed.loser]
    return layout, D, listed.weight / listed.weight.sum()


@pytest.mark.parametrize("interactions", [1, [(0, 4), (1, 2)]], ids=["best", "a column of the query"])
def test_the_model_is_the_minimum_over_listed_pairs(interactions):
    X, y, qid = make(rows=60)
    model = AdditiveRanker(1e-2, n_knots=4, interactions=interactions, tol=1e-12).fit(X, y, qid=qid)
    layout, D, weight = plain_objective(model, X, y, qid)

    def value(u):
        t = np.maximum(1 - D @ u, 0)
        return weight @ t**2 + 1e-2 * u @ u, -2 * D.T @ (weight * t) + 2e-2 * u

    oracle = minimize(
        value, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    expected = hat_matrix(X, layout.coordinates.terms) @ layout.coordinates.to_values(oracle.x)
    # The main effect of a column of the query is dropped; inside queries nothing changes.
    difference = pd.Series(model.predict(X) - expected)
    np.testing.assert_allclose(difference - difference.groupby(qid).transform("mean"), 0, atol=1e-4)


def test_columns_of_the_query_act_through_surfaces():
    rng = np.random.default_rng(0)
    qid, X = np.repeat(np.arange(60), 10), rng.normal(size=(600, 4))
    X[:, 3] = np.repeat(rng.integers(1, 5, size=60), 10)
    y = X[:, 0] * (X[:, 3] - 2.5) + 0.3 * X[:, 1]
    for ranker in (AdditiveRanker(interactions=1), AdditiveRankerCV(cv=3, interactions=[0, 1])):
        model = ranker.fit(X, y, qid=qid)
        assert model.interactions_.tolist() == [[0, 3]]
        assert [curve.column for curve in model.curves_] == [0, 1, 2]
        assert model.score(X, y, qid=qid) > 0.9
        (surface,) = model.surfaces_
        rows = (X[:, 3:] == surface.knots[1]).astype(float)
        lines = np.array([np.interp(X[:, 0], surface.knots[0], line) for line in surface.values.T])  # noqa: PD011
        np.testing.assert_allclose(
            (rows.T * lines).sum(axis=1), 0, atol=1e-4
        )  # no main effect of the query's column


def step_sizes(layout, u):
    return np.abs(u)


def mean_squares_of_terms(layout, u):
    terms = np.split(u, np.cumsum(layout.coordinates.sizes)[:-1])
    return np.concatenate([np.full(term.size, np.mean(term**2)) for term in terms])


@pytest.mark.parametrize(
    ("rounds", "sizes", "power"), [("adaptive", step_sizes, 1), ("selective", mean_squares_of_terms, 2)]
)
def test_an_adapted_penalty_is_that_of_the_model_before(rounds, sizes, power):
    X, y, qid = make(rows=60)
    options = {"n_knots": 4, "interactions": 1, "tol": 1e-12}
    plain, model = (AdditiveRanker(1e-2, **{rounds: n}, **options).fit(X, y, qid=qid) for n in (0, 1))
    layout, D, weight = plain_objective(model, X, y, qid)

    def minimum(penalty):
        def value(u):
            t = np.maximum(1 - D @ u, 0)
            return weight @ t**2 + penalty @ u**2, -2 * D.T @ (weight * t) + 2 * penalty * u

        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000}
        return minimize(value, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", options=options).x

    def scores(u):
        found = hat_matrix(X, layout.coordinates.terms) @ layout.coordinates.to_values(u)
        return found - found.mean()

    first = minimum(np.full(D.shape[1], 1e-2))
    # Penalties of 1 / |u|, or of 1 over the mean square of a term, with a floor.
    size = (sizes(layout, first) ** (2 / power) + 0.01 * np.mean(first**2)) ** (power / 2)
    penalty = 1e-2 * np.sum(first**2) / np.sum(first**2 / size) / size
    for fitted, expected in ((plain, first), (model, minimum(penalty))):
        found = fitted.predict(X)
        np.testing.assert_allclose(found - found.mean(), scores(expected), atol=2e-4)
    assert np.abs(plain.predict(X) - model.predict(X)).max() > 0.01


def test_the_penalty_is_adapted_while_that_helps():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(800, 4))
    steps = np.sign(X[:, 0] - 0.3) + np.sign(X[:, 1]) * np.sign(X[:, 2] - 0.4) + 0.3 * rng.normal(size=800)
    options = {"cv": 3, "n_knots": 32, "surface_knots": 9, "interactions": [0, 1, 3]}
    model = AdditiveRankerCV(**options).fit(X, steps)
    results = model.cv_results_
    assert model.adaptive_ > 0
    assert model.best_score_ == results["score"][results["adaptive"] == model.adaptive_].min()
    assert model.best_score_ < results["score"][results["adaptive"] == 0].min()
    assert AdditiveRankerCV(adaptive=0, **options).fit(X, steps).adaptive_ == 0
    same = AdditiveRanker(
        model.alpha_,
        n_knots=32,
        surface_knots=9,
        interactions=len(model.interactions_),
        adaptive=model.adaptive_,
    ).fit(X, steps)
    assert same.interactions_.tolist() == model.interactions_.tolist()
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=0.05)


def many_columns(rows=240, columns=40):
    """Return few rows of many columns, of which three matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=rows), np.arange(rows) // 10


def test_few_columns_are_left_of_many_where_that_helps():
    X, y, qid = many_columns()
    options = {
        "cv": 3,
        "n_knots": 4,
        "surface_knots": 3,
        "interactions": [0, 5],
        "random_state": 2,
        "tol": 1e-5,
    }
    model = AdditiveRankerCV(**options).fit(X, y, qid=qid)
    results = model.cv_results_
    assert model.selective_ > 0
    assert set(results["selective"]) == set(range(9))  # all rounds, whatever the first are worth
    assert model.best_score_ == results["score"].min() < results["score"][results["selective"] == 0].min()
    importance = np.array([curve.importance for curve in model.curves_])
    assert importance[3:].max() < 0.05 * importance[:3].min()
    without = AdditiveRankerCV(selective=0, **options).fit(X, y, qid=qid)
    assert without.selective_ == 0
    assert without.best_score_ == results["score"][results["selective"] == 0].min()
    same = AdditiveRanker(
        model.alpha_,
        n_knots=4,
        interactions=0,
        selective=model.selective_,
        adaptive=model.adaptive_,
        tol=1e-5,
    ).fit(X, y, qid=qid)
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=0.02)


def test_curves_are_not_thinned_out_where_surfaces_are_wanted():
    X, y, qid = many_columns(columns=4)
    model = AdditiveRankerCV(cv=3, n_knots=4, surface_knots=3, interactions=[2]).fit(X, y, qid=qid)
    assert len(model.interactions_) == 2
    assert set(model.cv_results_["selective"]) == {0}


def test_monotone_curves_are_monotone_to_the_last_bit():
    X, y, qid = make(rows=600)
    for loss in ("squared_hinge", "squared"):
        model = AdditiveRanker(
            1e-5,
            n_knots=32,
            monotone={0: 1, 1: -1},
            loss=loss,
            interactions=1,
            adaptive=int(loss != "squared"),
            selective=1,
        ).fit(X, y, qid=qid)
        up, down = (curve.values for curve in model.curves_[:2])  # noqa: PD011
        assert (np.diff(up) >= 0).all()
        assert (np.diff(down) <= 0).all()
        assert np.ptp(up) > 0
        assert not set(model.interactions_.ravel()) & {0, 1}
        line = np.repeat(X[:1], 2000, axis=0)
        line[:, 0] = np.sort(np.random.default_rng(0).uniform(-1.2, 1.2, size=2000))
        assert (np.diff(model.predict(line)) >= 0).all()


def test_a_bound_that_does_not_bind_changes_nothing():
    X, _, qid = make()
    y = X[:, 0] + 0.1 * X[:, 1]
    free, bound = (
        AdditiveRanker(1e-2, interactions=0, monotone=monotone, tol=1e-12).fit(X, y, qid=qid)
        for monotone in (None, {0: 1})
    )
    np.testing.assert_allclose(free.predict(X), bound.predict(X), atol=1e-5)


def test_surfaces_hold_no_main_effect():
    X, y, qid = make(rows=1000)
    model = AdditiveRanker(1e-4, interactions=3).fit(X, y, qid=qid)
    for number, surface in enumerate(model.terms_.surfaces, start=len(model.terms_.curves)):
        place = model.terms_.values_of(number)
        mass = (model.shares_[place] * model.values_[place]).reshape(surface.first.n_values, -1)
        np.testing.assert_allclose(mass.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(mass.sum(axis=1), 0, atol=1e-12)


def test_importance_is_the_spread_inside_queries():
    X, y, qid = make()
    model = AdditiveRanker(interactions=1).fit(X, y, qid=qid)
    for curve in model.curves_:
        added = np.interp(X[:, curve.column], curve.knots, curve.values)
        inside = added - pd.Series(added).groupby(qid).transform("mean").to_numpy()
        assert curve.importance == pytest.approx(np.sqrt((inside**2).mean()), rel=1e-9)


def test_pairs_of_columns_that_act_together_are_found():
    X, y, qid = make(rows=1000)
    assert AdditiveRanker(interactions=1).fit(X, y, qid=qid).interactions_.tolist() == [[1, 2]]
    automatic = AdditiveRanker().fit(X, y, qid=qid)
    assert [1, 2] in automatic.interactions_.tolist()
    error = get_metric("pairwise_error").prepare(y, qid)
    alone = AdditiveRanker(interactions=0).fit(X, y, qid=qid)
    assert error(automatic.predict(X)) < 0.7 * error(alone.predict(X))


def test_cv_chooses_by_held_out_rows_and_never_pairs_by_them():
    X, y, qid = make(rows=600)
    options = {"cv": 3, "n_knots": 8, "surface_knots": 5, "interactions": [0, 1, 2]}
    model = AdditiveRankerCV([1e-1, 1e-2, 1e-3, 1e-4], **options).fit(X, y, qid=qid)
    results = model.cv_results_
    assert {name: values.size for name, values in results.items()} == dict.fromkeys(
        results, results["alpha"].size
    )
    best = int(np.argmin(results["score"]))
    assert model.alpha_ == results["alpha"][best]
    assert len(model.interactions_) == results["interactions"][best]
    assert model.best_score_ == results["score"][best]
    # The same folds by hand.
    again = []
    data = model._problem(model._labelled(X, y, qid, None, None), 8, 5)[0].data
    fold = data.pairs.units().folds(3, 0)
    for number in range(3):
        train, test = fold != number, fold == number
        own = AdditiveRanker(model.alpha_, interactions=0).fit(X[train], y[train], qid=qid[train])
        again.append(1 - own.score(X[test], y[test], qid=qid[test]))
    at = (results["interactions"] == 0) & (results["alpha"] == model.alpha_)
    if at.any():  # knots are those of all rows, and not of a fold's
        assert results["score"][at][0] == pytest.approx(np.mean(again), abs=0.03)


@pytest.mark.parametrize("surface_knots", [16, 40])
def test_fine_grids_have_the_surfaces_of_coarse_ones(surface_knots):
    X, y, qid = make(rows=600, missing=True)
    options = {"interactions": 2, "categorical": [3]}
    coarse, fine = (
        AdditiveRanker(surface_knots=number, **options).fit(X, y, qid=qid) for number in (5, surface_knots)
    )
    assert fine.interactions_[0].tolist() == coarse.interactions_[0].tolist() == [1, 2]
    assert max(surface.values.size for surface in fine.surfaces_) >= surface_knots**2  # noqa: PD011


@pytest.mark.long
def test_finer_knots_are_tried_while_they_help():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 3))
    y = np.sin(12 * X[:, 0]) + np.sin(6 * X[:, 1]) * np.sin(6 * X[:, 2])
    model = AdditiveRankerCV(cv=3, interactions=[0, 1]).fit(X, y)
    assert model.n_knots_ > 8
    assert model.surface_knots_ > 5
    assert model.interactions_.tolist() == [[1, 2]]
    results = model.cv_results_
    assert (np.diff(results["n_knots"])[results["interactions"][1:] == 0] >= 0).all()
    simple = AdditiveRankerCV(cv=3, interactions=[0, 1]).fit(X, X[:, 0] + 0.1 * rng.normal(size=2000))
    assert (simple.n_knots_, simple.surface_knots_) == (8, 5)
    few = AdditiveRankerCV(cv=3, interactions=[0, 1]).fit(X[:300], y[:300])  # too few rows for finer ones
    assert set(few.cv_results_["n_knots"]) == {8}
    assert set(few.cv_results_["surface_knots"]) == {5}
    only = AdditiveRankerCV(cv=3, n_knots=8, surface_knots=5, interactions=[0, 1]).fit(X, y)
    assert model.best_score_ < only.best_score_


def test_more_surfaces_are_tried_once_grids_are_finer():
    X, y, qid = make(rows=1000)
    y = y + np.sin(8 * X[:, 0]) * np.sin(8 * X[:, 1]) + X[:, 0] * X[:, 2]
    options = {"n_knots": 8, "surface_knots": [4, 9], "interactions": [0, 1, 2, 3]}
    model = AdditiveRankerCV(cv=3, random_state=1, **options).fit(X[:, :4], y, qid=qid)
    results = model.cv_results_
    assert model.surface_knots_ == 9
    chosen = results["surface_knots"] == 9
    assert set(results["interactions"][chosen]) >= set(range(min(results["interactions"][chosen]), 4))


def test_a_chosen_curve_is_a_selection_like_any_other():
    X, y, qid = make(rows=600)
    model = AdditiveRankerCV(cv=3, scoring="concordance", interactions=[0, 2]).fit(X, y, qid=qid)
    selection = Selection.of_model(model)
    assert [choice.alpha for choice in selection.chosen] == [model.alpha_]
    assert selection.error == -model.best_score_ == selection.errors.min()
    results = model.cv_results_
    same = (results["n_knots"] == model.n_knots_) & (results["surface_knots"] == model.surface_knots_)
    same &= results["interactions"] == len(model.interactions_)
    tried = set(
        zip(results["alpha"][same], results["score"][same], strict=True)
    )  # several rounds at an alpha
    assert set(zip(model.alphas_, model.cv_errors_, strict=True)) <= tried
    assert not hasattr(model, "coef_")


def test_the_default_grid_goes_on_beyond_its_ends():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    sharp = AdditiveRankerCV(cv=3, interactions=0, n_knots=32).fit(X, np.sin(9 * X[:, 0]) + X[:, 1])
    assert sharp.alpha_ < 1e-5
    # A grid that somebody chose is taken as it is, and the warning says what it lacks.
    given = AdditiveRankerCV([1e-2, 1e-3, 1e-4, 3e-5, 1e-1], cv=3, interactions=0, n_knots=32, selective=0)
    with pytest.warns(UserWarning, match=r"best alpha is the smallest of the grid.*Hint: "):
        given.fit(X, np.sin(9 * X[:, 0]) + X[:, 1])
    assert given.alpha_ == 3e-5


def test_an_evaluation_set_decides_alone():
    X, y, qid = make(rows=600)
    rows = qid < 40
    model = AdditiveRankerCV(alphas=[1e-1, 1e-3], interactions=[0, 1], tol=1e-5)
    model.fit(X[rows], y[rows], qid=qid[rows], eval_set=(X[~rows], y[~rows], qid[~rows]))
    assert model.best_score_ == pytest.approx(1 - model.score(X[~rows], y[~rows], qid=qid[~rows]), abs=2e-3)
    assert model.cv_ == "an evaluation set of 200 rows"


def test_two_knots_and_no_surface_is_a_linear_model_of_clamped_columns():
    X, y, qid = make()
    X = X[:, :3]
    low, high = X.min(axis=0), X.max(axis=0)
    options = {"n_knots": 2, "interactions": 0, "penalty": "second_difference"}  # one coordinate: the line
    curves = AdditiveRanker(1e-2, tol=1e-12, **options).fit(X, y, qid=qid)
    linear = RankSVM(1e-2, loss="squared_hinge", tol=1e-12).fit((X - low) / (high - low), y, qid=qid)
    scores = linear.predict((X - low) / (high - low))
    np.testing.assert_allclose(
        curves.predict(X) - curves.predict(X).mean(), scores - scores.mean(), atol=1e-5
    )


def test_listed_pairs_train_curves():
    X, y, _ = make()
    rng = np.random.default_rng(0)
    pairs = rng.integers(len(X), size=(2000, 2))
    pairs = np.where((y[pairs[:, 0]] > y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])[
        y[pairs[:, 0]] != y[pairs[:, 1]]
    ]
    for model in (
        AdditiveRanker(),
        AdditiveRankerCV([1e-2, 1e-3], cv=3),
        AdditiveRanker(loss="squared", interactions=1),
    ):
        assert model.fit_pairs(X, pairs).score_pairs(X, pairs) > 0.8
        assert model.n_queries_ == 1


def test_columns_are_named_by_their_frame():
    X, y, qid = make()
    frame = pd.DataFrame(X, columns=["bend", "one", "other", "kind", "query"])
    model = AdditiveRanker(interactions=[("one", "other")], monotone={"bend": 1}, categorical=["kind"])
    model.fit(frame, y, qid=qid)
    assert [curve.name for curve in model.curves_] == ["bend", "one", "other", "kind"]
    assert model.surfaces_[0].names == ("one", "other")
    assert model.curves_[3].is_levels


def test_columns_are_listed_in_any_way():
    X, y, qid = make()
    frame = pd.DataFrame(X, columns=["bend", "one", "other", "kind", "query"])
    wanted = AdditiveRanker(interactions=[(1, 2)], categorical=[0, 3]).fit(frame, y, qid=qid).predict(frame)
    for given in (["bend", 3], {"bend", "kind"}, {0: None, 3: None}.keys(), pd.Index(["bend", "kind"])):
        model = AdditiveRanker(interactions=[("one", 2)], categorical=given).fit(frame, y, qid=qid)
        np.testing.assert_array_equal(model.predict(frame), wanted)
    with pytest.raises(InvalidInputError, match=r"pass \['kind'\]"):
        AdditiveRanker(categorical="kind").fit(frame, y, qid=qid)


WRONG = {
    "no pair": {"interactions": [(1, 1)]},
    "unknown column": {"categorical": ["kind"]},
    "far column": {"categorical": [5]},
    "monotone": {"monotone": {0: 2}},
    "monotone length": {"monotone": [1, 1]},
    "monotone pair": {"monotone": {0: 1}, "interactions": [(0, 1)]},
    "monotone hinge": {"monotone": {0: 1}, "loss": "hinge"},
    "monotone category": {"monotone": {3: 1}, "categorical": [3]},
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_end_in_a_remedy(name):
    X, y, qid = make(rows=50)
    with pytest.raises(InvalidInputError, match="Hint: "):
        AdditiveRanker(**WRONG[name]).fit(X, y, qid=qid)


def test_more_mistakes_end_in_a_remedy():
    X, y, qid = make(rows=50)
    with pytest.raises(InvalidInputError, match=r"loss='hinge' is not\. Hint: use loss='squared_hinge'"):
        AdditiveRanker(monotone={0: 1}, loss="hinge").fit(X, y, qid=qid)
    with pytest.raises(InvalidInputError, match=r"penalty='ridge' does not have\. Hint: use penalty="):
        AdditiveRanker(monotone={0: 1}, penalty="ridge").fit(X, y, qid=qid)
    with pytest.raises(InvalidInputError, match=r"constant inside each query.*Hint"):
        AdditiveRanker().fit(X[:, 4:], y, qid=qid)
    with pytest.raises(InvalidInputError, match=r"both columns are constant inside every query.*Hint"):
        AdditiveRanker(interactions=[(4, 5)]).fit(np.column_stack([X, -X[:, 4]]), y, qid=qid)
    with pytest.raises(InvalidInputError, match=r"column 5 has one value everywhere.*Hint"):
        AdditiveRanker(interactions=[(0, 5)]).fit(np.column_stack([X, np.ones(50)]), y, qid=qid)
    with pytest.raises(InvalidInputError, match=r"2 columns.*Hint: fit one model per column"):
        AdditiveRanker().fit(X, np.column_stack([y, y]), qid=qid)
    with pytest.raises(InvalidInputError, match=r"infinity.*Hint"):
        AdditiveRanker().fit(np.where(X > 0.9, np.inf, X), y, qid=qid)
    with pytest.raises(InvalidInputError, match="alphas contains 0"):
        AdditiveRankerCV(alphas=[0.0, 1.0]).fit(X, y, qid=qid)
    with pytest.raises(InvalidInputError, match=r"n_knots=\[\] does not list"):
        AdditiveRankerCV(n_knots=[]).fit(X, y, qid=qid)
    with pytest.raises(InvalidInputError, match=r"surface_knots=\[1, 5\].*at least 2"):
        AdditiveRankerCV(n_knots=8, surface_knots=[1, 5]).fit(X, y, qid=qid)


class TestSamplesOfManyRows:
    """From 262,144 rows on, knots and pairs of columns are chosen by a sample."""

    N_ROWS = 262_200

    def test_labels_too_rare_for_a_sample_are_learned_from_all_rows(self):
        X = np.random.default_rng(1).integers(0, 2, size=(self.N_ROWS, 4)).astype(float)
        y = np.zeros(self.N_ROWS)
        y[[1, 3, 5, 7, 1001]] = 1
        assert AdditiveRanker(interactions=1, tol=0.5).fit(X, y).interactions_.shape == (1, 2)

    @pytest.mark.parametrize("tiny", [-1, 5])
    def test_a_tiny_query_does_not_choose_alone(self, tiny):
        X = np.random.default_rng(1).integers(0, 2, size=(self.N_ROWS, 4)).astype(float)
        y = (X[:, 2] != X[:, 3]) + 0.1 * X[:, 0]
        qid = np.zeros(self.N_ROWS, dtype=int)
        qid[:4] = tiny
        X[:4] = [[0, 0, 0, 1], [0, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]]
        y[:4] = [0, 1, 1, 0]
        model = AdditiveRanker(interactions=1, tol=0.1).fit(X, y, qid=qid)
        assert model.interactions_.tolist() == [[2, 3]]

    def test_knots_of_rows_that_come_in_a_fixed_order(self):
        place = np.arange(self.N_ROWS) % 10
        X = np.column_stack([place, np.random.default_rng(1).normal(size=self.N_ROWS)]).astype(float)
        y, qid = (place % 2 == 1) + 0.01 * X[:, 1], np.arange(self.N_ROWS) // 10
        model = AdditiveRanker(n_knots=16, interactions=0, tol=0.5).fit(X, y, qid=qid)
        np.testing.assert_array_equal(model.curves_[0].knots, np.arange(10))


def test_penalties_are_adapted_unless_finer_knots_were_tried_in_vain():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    y = (X[:, 0] > 0.5) + 0.3 * rng.normal(size=300)
    model = AdditiveRankerCV(n_knots=32, interactions=0).fit(X, y)  # nothing finer is tried
    assert set(model.cv_results_["adaptive"]) > {0}


@pytest.mark.parametrize("ranker", [AdditiveRanker(), AdditiveRankerCV()])
def test_text_with_many_columns_is_sent_to_linear_models(ranker):
    X = sp.random(20, 5001, density=0.01, format="csr", random_state=0)
    with pytest.raises(InvalidInputError, match=r"5,001 columns.*Hint: use RankRLSCV"):
        ranker.fit(X, np.arange(20.0))
