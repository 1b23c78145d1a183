"""Where knots go, and what is penalised: each against its plain definition."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from hats import hat_matrix
from rankwise.additive import knots
from rankwise.additive.coordinates import (
    PENALTIES,
    PenaltyCoordinates,
    Rescaled,
    adapted_scale,
    curve_basis,
)
from rankwise.additive.knots import plan_knots
from rankwise.additive.shapes import main_effects, purified, with_knots_of_surfaces
from rankwise.data.validation import check_qid
from rankwise.design.terms import Curve, Surface, Terms


def find_knots(x, n_knots):
    return plan_knots(x[:, None], check_qid(None, x.size), n_knots, 2).curves[0].knots


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.booleans())
def test_knots_are_values_of_the_column_and_hold_its_extremes(seed, n_knots, has_ties):
    rng = np.random.default_rng(seed)
    x = np.append(rng.normal(size=rng.integers(1, 60)), 9.0)  # two values at least
    x = np.round(x) if has_ties else x
    knots = find_knots(x, n_knots)
    assert np.isin(knots, x).all()
    assert (np.diff(knots) > 0).all()
    assert knots[0] == x.min()
    assert knots[-1] == x.max()
    assert knots.size <= n_knots
    if np.unique(x).size <= n_knots:
        np.testing.assert_array_equal(knots, np.unique(x))


def test_knots_of_a_smooth_column_are_its_quantiles():
    x = np.random.default_rng(0).permutation(np.linspace(0, 1, 1001)) ** 3
    np.testing.assert_allclose(find_knots(x, 5), np.quantile(x, [0, 0.25, 0.5, 0.75, 1]), atol=5e-3)


def test_frequent_values_do_not_use_up_the_knots():
    x = np.concatenate([np.zeros(900), np.linspace(1, 2, 100)])
    knots = find_knots(x, 6)
    assert knots.size == 6  # plain quantiles would be 0, 0, 0, 0, 0, 2
    np.testing.assert_allclose(knots[1:-1], [1.2, 1.4, 1.6, 1.8], atol=0.02)


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_row_of_weight_2_is_two_rows(seed):
    rng = np.random.default_rng(seed)
    x, weight = np.round(rng.normal(size=40), 1), rng.integers(0, 4, size=40)
    if not weight.any():
        weight[0] = 1
    X, qid = x[:, None], np.zeros(40)
    one = plan_knots(X, check_qid(qid, 40), 5, 3, weight=weight.astype(float))
    copies = np.repeat(x, weight)[:, None]
    other = plan_knots(copies, check_qid(None, len(copies)), 5, 3)
    assert len(one.curves) == len(other.curves)
    for a, b in zip((*one.curves, *one.sides), (*other.curves, *other.sides), strict=True):
        np.testing.assert_array_equal(a.knots, b.knots)
    for a, b in zip(one.masses, other.masses, strict=True):
        np.testing.assert_allclose(a, b)


def test_columns_that_are_constant_inside_queries_get_no_curve():
    qid = np.array([1, 0, 1, 0, 2])
    of_query = qid * 10.0
    X = np.column_stack([of_query, np.arange(5.0), np.full(5, np.nan), [np.nan, 1, np.nan, 1, 7]])
    plan = plan_knots(X, check_qid(qid, 5), 8, 5)
    assert plan.constant.tolist() == [0, 2, 3]
    assert [curve.column for curve in plan.curves] == [1]
    assert [side.column for side in plan.sides] == [0, 1, 3]  # the other one is always missing


def test_many_rows_have_the_knots_of_some_and_their_own_extremes(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3)).astype(np.float32)
    X[[7, 13], 0] = [-9, 9]
    X[11, 1] = np.nan
    X[:, 2] = np.repeat(np.arange(200), 10)
    qid = np.repeat(np.arange(200), 10)
    monkeypatch.setattr(knots, "SAMPLED_ROWS", 200)  # every tenth row
    for order in (slice(None), rng.permutation(2000)):
        plan = plan_knots(X[order], check_qid(qid[order], 2000), 5, 3)
        assert plan.constant.tolist() == [2]
        first, second = plan.curves
        assert first.knots[[0, -1]].tolist() == [-9, 9]
        np.testing.assert_allclose(first.knots[1:-1], np.quantile(X[:, 0], [0.25, 0.5, 0.75]), atol=0.3)
        assert (first.has_missing, second.has_missing) == (False, True)
        assert plan.masses[1][-1] >= 1
        codes = np.round(X[order])
        kept = plan_knots(codes, check_qid(qid[order], 2000), 5, 3, levels=[0]).curves[0].knots
        np.testing.assert_array_equal(kept, np.unique(codes[:, 0]))


def test_missing_values_and_levels_have_values_of_their_own():
    X = np.array([[1.0, 3.0], [np.nan, 7.0], [2.0, 3.0], [5.0, 9.0]])
    plan = plan_knots(X, check_qid(None, 4), 8, 5, levels=[1])
    number, category = plan.curves
    assert number.has_missing
    assert number.knots.tolist() == [1, 2, 5]
    assert category.is_levels
    assert category.knots.tolist() == [3, 7, 9]
    assert plan.masses[0].tolist() == [1, 1, 1, 1]
    assert plan.masses[1].tolist() == [2, 1, 1]


def random_terms(seed, *, missing=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 4))
    X[:, 3] = rng.integers(3, size=50)
    if missing:
        X[rng.random(50) < 0.2, 0] = np.nan
    plan = plan_knots(X, check_qid(None, 50), 6, 3, levels=[3])
    sides = plan.sides
    terms = Terms(plan.curves, (Surface(sides[0], sides[1]), Surface(sides[1], sides[3])))
    return X, plan, terms, plan.side_masses


@pytest.mark.parametrize("penalty", PENALTIES)
def test_coordinates_are_a_matrix_and_its_adjoint(penalty):
    _, plan, terms, side_masses = random_terms(0)
    coordinates = PenaltyCoordinates(terms, plan.masses, side_masses, penalty)
    rng = np.random.default_rng(1)
    u, g = rng.normal(size=coordinates.n_coordinates), rng.normal(size=(terms.n_values, 2))
    assert coordinates.to_values(u).shape == (terms.n_values,)
    np.testing.assert_allclose(g.T @ coordinates.to_values(u), coordinates.from_values(g).T @ u)
    np.testing.assert_allclose(coordinates.exact_values(u), coordinates.to_values(u), atol=1e-14)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_surfaces_have_the_product_of_both_bases(penalty):
    _, plan, terms, side_masses = random_terms(0)
    coordinates = PenaltyCoordinates(terms, plan.masses, side_masses, penalty)
    of_curves = [
        curve_basis(c, m, penalty, has_line=True) for c, m in zip(plan.curves, plan.masses, strict=True)
    ]
    of_surfaces = [
        np.kron(*(curve_basis(side, side_masses[side.column], penalty) for side in (s.first, s.second)))
        for s in terms.surfaces
    ]
    T = scipy.linalg.block_diag(*of_curves, *of_surfaces)
    np.testing.assert_allclose(coordinates.to_values(np.eye(T.shape[1])), T, atol=1e-14)
    np.testing.assert_allclose(coordinates.from_values(np.eye(T.shape[0])), T.T, atol=1e-14)
    scale = np.arange(1.0, T.shape[1] + 1)
    rescaled = Rescaled(coordinates, scale)
    assert rescaled.n_coordinates == scale.size
    np.testing.assert_allclose(rescaled.to_values(np.eye(scale.size)), T * scale, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        rescaled.from_values(np.eye(T.shape[0])), (T * scale).T, rtol=1e-12, atol=1e-12
    )


def test_an_adapted_penalty_costs_the_model_what_it_did():
    u = np.array([0.0, 1e-9, -1.0, 3.0])
    scale = adapted_scale(u)
    assert np.sum((u / scale) ** 2) == pytest.approx(np.sum(u**2))
    assert scale[3] / scale[2] == pytest.approx(np.sqrt(3), rel=0.01)
    assert scale[0] == pytest.approx(scale[1])
    assert scale[0] > 0
    np.testing.assert_allclose(adapted_scale(7 * u), scale)
    np.testing.assert_array_equal(adapted_scale(np.zeros(3)), 1.0)


def test_a_penalty_that_selects_is_by_the_root_mean_square_of_each_term():
    u, sizes = np.array([3.0, -4.0, 0.0, 0.0, 0.0, 1.0]), [2, 3, 1]
    scale = adapted_scale(u, sizes)
    floor = 0.01 * np.mean(u**2)
    expected = []
    for term in np.split(u, np.cumsum(sizes)[:-1]):
        expected += [np.sqrt(np.mean(term**2) + floor)] * term.size
    np.testing.assert_allclose(scale / scale[0], np.array(expected) / expected[0], rtol=1e-12)
    assert np.sum((u / scale) ** 2) == pytest.approx(np.sum(u**2))
    np.testing.assert_allclose(adapted_scale(7 * u, sizes), scale)
    np.testing.assert_array_equal(adapted_scale(np.zeros(3), [1, 2]), 1.0)


def test_first_differences_make_the_penalty_the_squared_slope():
    curve = Curve(0, np.arange(5.0))
    C = curve_basis(curve, np.ones(5))
    u = np.random.default_rng(0).normal(size=4)
    assert u @ u == pytest.approx(4 * np.sum(np.diff(C @ u) ** 2))
    assert (C @ u).mean() == pytest.approx(0)  # under equal masses


def test_the_column_itself_is_a_coordinate_of_a_curve():
    curve, mass = Curve(0, np.array([0.0, 1.0, 10.0])), np.array([2.0, 1.0, 1.0])
    line = curve_basis(curve, mass, has_line=True)[:, -1]
    assert mass @ line == pytest.approx(0)
    assert mass @ line**2 / mass.sum() == pytest.approx(1)
    assert np.diff(line)[1] == pytest.approx(9 * np.diff(line)[0])


def test_second_differences_leave_a_straight_line_to_one_coordinate():
    curve = Curve(0, np.arange(6.0))
    C = curve_basis(curve, np.ones(6), "second_difference")
    np.testing.assert_allclose(np.diff(C[:, 0], 2), 0, atol=1e-14)
    u = np.random.default_rng(0).normal(size=5)
    np.testing.assert_allclose(np.diff(C @ u, 2) * 5**1.5, u[1:], atol=1e-12)


def test_smoothness_does_not_depend_on_the_number_of_knots():
    """The same straight line costs the same under any number of knots."""
    cost = []
    for size in (2, 5, 20):
        line = np.linspace(0, 1, size)
        u = np.linalg.lstsq(curve_basis(Curve(0, line), np.ones(size)), line - line.mean(), rcond=None)[0]
        cost.append(u @ u)
    np.testing.assert_allclose(cost, 1.0)


def test_main_effects_leave_no_mean_along_any_line():
    rng = np.random.default_rng(0)
    grid, mass = rng.normal(size=(4, 3)), rng.random((4, 3)) * (rng.random((4, 3)) < 0.8)
    mass[2] = 0.0
    a, b = main_effects(grid, mass)
    rest = mass * (grid - a[:, None] - b)
    np.testing.assert_allclose(rest.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rest.sum(axis=1), 0, atol=1e-12)


@settings(deadline=None)
@given(st.integers(0, 1000))
def test_purification_changes_no_prediction(seed):
    X, _, terms, _ = random_terms(seed)
    values = np.random.default_rng(seed).normal(size=terms.n_values)
    finer, same = with_knots_of_surfaces(terms, values)
    before = hat_matrix(X, terms) @ values
    np.testing.assert_allclose(hat_matrix(X, finer) @ same, before, atol=1e-12)
    share = np.full(len(X), 1 / len(X))
    masses = hat_matrix(X, finer).T @ share
    parts = [masses[finer.values_of(number)] for number in range(len(finer.all_terms))]
    pure, constant = purified(finer, same, parts)
    np.testing.assert_allclose(hat_matrix(X, finer) @ pure + constant, before, atol=1e-12)
    for number in range(len(finer.all_terms)):
        assert parts[number] @ pure[finer.values_of(number)] == pytest.approx(0, abs=1e-12)
    for number, surface in enumerate(finer.surfaces, start=len(finer.curves)):
        grid = (parts[number] * pure[finer.values_of(number)]).reshape(surface.first.n_values, -1)
        np.testing.assert_allclose(grid.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(grid.sum(axis=1), 0, atol=1e-12)
