"""When a preconditioner is formed, renewed and rescaled, and what it then divides by."""

import numpy as np
import pytest

from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import label_graph
from rankwise.pairs.preferences import preference_graph
from rankwise.solvers.preconditioner import Curvature, Preconditioner

ALPHA = 0.3


def curvature_of(n_rows=40, scale=None, *, is_whole=True, listed=False, update_after=0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4)) * (np.geomspace(0.1, 10, 4) if scale is None else scale)
    if listed:
        winner = rng.integers(n_rows, size=60)
        loser = (winner + rng.integers(1, n_rows, size=60)) % n_rows
        graph = preference_graph(winner, loser, n_rows, weight=rng.random(60))
    else:
        graph = label_graph(rng.normal(size=n_rows), check_qid(np.arange(n_rows) // 10, n_rows))
    objective = SquaredObjective(as_design(X), graph)
    return X, Curvature(objective, is_whole=is_whole, update_after=update_after)


def inverse_of(preconditioner):
    return np.column_stack([preconditioner.solve(unit) for unit in np.eye(4)])


def matrix(hessian):
    return np.diag(hessian) if hessian.ndim == 1 else hessian


def used(curvature, rows=40, alpha=ALPHA, at_zero=1.0):
    preconditioner = Preconditioner(curvature, alpha, lambda: np.full(rows, at_zero))
    preconditioner.update(np.ones(rows))
    return preconditioner


@pytest.mark.parametrize("is_whole", [True, False])
def test_listed_pairs_have_their_squared_loss_as_much_of_it_as_there_is_curvature(is_whole):
    X, curvature = curvature_of(is_whole=is_whole, listed=True)
    rows = np.random.default_rng(1).random(40)
    curvature.follow(rows)
    L = SquaredObjective(as_design(np.eye(40)), curvature._objective.graph).matrix()
    expected = X.T @ L @ X * rows.sum() / np.trace(L)  # degrees that add up to those of the rows
    np.testing.assert_allclose(
        matrix(curvature.hessian), expected if is_whole else np.diag(np.diag(expected))
    )
    assert not curvature.can_follow


def test_squares_that_overflow_say_nothing():
    _, curvature = curvature_of(scale=1e200, is_whole=False)
    with np.errstate(over="ignore", invalid="ignore"):
        curvature.follow(np.ones(40))
    np.testing.assert_array_equal(curvature.hessian, np.zeros(4))


def test_a_query_in_which_nothing_curves_adds_nothing_and_breaks_nothing():
    X, curvature = curvature_of()
    rows = np.ones(40)
    rows[10:20] = 0.0
    curvature.follow(rows)
    expected = np.zeros((4, 4))
    for start in (0, 20, 30):
        own = X[start : start + 10]
        expected += (own - own.mean(axis=0)).T @ (own - own.mean(axis=0))
    np.testing.assert_allclose(curvature.hessian, expected, rtol=1e-9, atol=1e-9)


def test_where_nothing_is_known_a_gradient_is_its_own_direction():
    g = np.arange(4.0)
    for curvature in (None, curvature_of()[1]):
        preconditioner = Preconditioner(curvature, ALPHA, lambda: np.ones(40))
        assert preconditioner.is_identity
        solved = preconditioner.solve(g)
        np.testing.assert_array_equal(solved, g)
        assert solved is not g
        preconditioner.learn(g, 3.0)  # and there is nothing to learn
        np.testing.assert_array_equal(preconditioner.solve(g), g)


@pytest.mark.parametrize("is_whole", [True, False])
def test_rows_that_curve_now_and_a_twentieth_of_those_at_zero_make_the_matrix(is_whole):
    """Alpha is so small that a diagonal pays too."""
    _X, curvature = curvature_of(is_whole=is_whole)
    alpha, rows = 1e-9, np.random.default_rng(1).random(40)
    preconditioner = Preconditioner(curvature, alpha, lambda: np.full(40, 2.0))
    preconditioner.update(rows)
    assert not preconditioner.is_identity
    _, other = curvature_of(is_whole=is_whole)
    other.follow(rows + 0.1)
    np.testing.assert_allclose(curvature.hessian, other.hessian)
    P = matrix(curvature.hessian) + 2 * alpha * np.eye(4)
    np.testing.assert_allclose(inverse_of(preconditioner) @ P, np.eye(4), atol=1e-7)


def test_too_few_rows_that_curve_do_not_tell_a_matrix():
    """At first the rows at zero stand in for them; later what is known stays."""
    _, curvature = curvature_of()
    preconditioner = Preconditioner(curvature, ALPHA, lambda: np.full(40, 2.0))
    rows = np.zeros(40)
    rows[:3] = 1.0
    preconditioner.update(rows)
    _, other = curvature_of()
    other.follow(np.full(40, 2.0))
    np.testing.assert_allclose(curvature.hessian, other.hessian)
    kept = curvature.hessian
    preconditioner.update(rows)
    assert curvature.hessian is kept
    rows[3] = 1.0  # as many as columns
    preconditioner.update(rows)
    assert curvature.hessian is not kept


class TestWhenItIsDue:
    def test_first_after_sixteen_iterations_without(self):
        _, curvature = curvature_of()
        preconditioner = Preconditioner(curvature, ALPHA, lambda: np.ones(40))
        for age in range(16):
            assert not preconditioner.is_due
            assert preconditioner.n_plain == 16 - age
            preconditioner.learn(np.ones(4), 1.0)
        assert preconditioner.is_due
        preconditioner.update(np.ones(40))
        assert not preconditioner.is_due
        assert preconditioner.n_plain == np.inf
        several = Preconditioner(curvature_of()[1], ALPHA, lambda: np.ones(40))
        several.learn(np.ones(4), 1.0, 7)
        assert several.n_plain == 9

    def test_never_where_there_is_nothing_to_know(self):
        preconditioner = Preconditioner(None, ALPHA, lambda: np.ones(40))
        preconditioner.learn(np.ones(4), 1.0, 1000)
        assert not preconditioner.is_due
        assert preconditioner.n_plain == np.inf

    @pytest.mark.parametrize(("update_after", "wait"), [(0, 8), (5, 8), (20, 20)])
    def test_later_after_what_an_update_costs_and_then_twice_as_rarely(self, update_after, wait):
        _, curvature = curvature_of(update_after=update_after)
        preconditioner = used(curvature)
        step = np.ones(4)
        for patience in (wait, 2 * wait, 4 * wait):
            preconditioner.learn(step, 1.0, patience - 1)
            assert not preconditioner.is_due
            preconditioner.learn(step, 1.0)
            assert preconditioner.is_due
            preconditioner.update(np.ones(40))

    def test_listed_pairs_are_followed_once(self):
        _, curvature = curvature_of(listed=True)
        preconditioner = Preconditioner(curvature, ALPHA, lambda: np.ones(40))
        preconditioner.learn(np.ones(4), 1.0, 16)
        assert preconditioner.is_due
        preconditioner.update(np.ones(40))
        preconditioner.learn(np.ones(4), 1.0, 1000)
        assert not preconditioner.is_due

    def test_what_another_alpha_has_found_out_is_used_at_once(self):
        _, curvature = curvature_of()
        used(curvature)
        other = Preconditioner(curvature, 7.0, lambda: np.ones(40))
        assert not other.is_identity
        assert other.n_plain == np.inf
        P = curvature.hessian + 14.0 * np.eye(4)
        np.testing.assert_allclose(inverse_of(other) @ P, np.eye(4), atol=1e-9)


@pytest.mark.parametrize(("ratio", "pays"), [(0.5, False), (2.0, True)])
def test_a_diagonal_pays_only_where_the_steepest_column_is_ten_million_times_the_penalty(ratio, pays):
    _, known = curvature_of(is_whole=False)
    known.follow(np.full(40, 1.05))
    preconditioner = used(curvature_of(is_whole=False)[1], alpha=known.hessian.max() / (1e7 * 2 * ratio))
    assert preconditioner.is_identity is not pays
    preconditioner.learn(np.ones(4), 1.0, 1000)
    assert preconditioner.is_due is pays  # it is not asked again


class TestLearning:
    def along(self, preconditioner, curvature, step, share, alpha=ALPHA):
        """Tell it that the loss curves by so much of its estimate along a step."""
        whole = step @ matrix(curvature.hessian) @ step
        preconditioner.learn(step, share * whole + 2 * alpha * step @ step)

    @pytest.mark.parametrize("is_whole", [True, False])
    @pytest.mark.parametrize(
        ("share", "expected"), [(1.0, 1.0), (2.5, 1.0), (0.4, 1.0), (5.0, 5.0), (0.2, 0.2), (1e3, 10.0), (1e-4, 0.1)]
    )  # fmt: skip
    def test_a_share_is_followed_where_it_is_off_by_more_than_three_and_by_ten_at_most(
        self, is_whole, share, expected
    ):
        _, curvature = curvature_of(is_whole=is_whole)
        alpha = ALPHA if is_whole else 1e-8
        preconditioner = used(curvature, alpha=alpha)
        step = np.array([1.0, -2.0, 0.5, 0.3])
        preconditioner.solve(step)  # a factor that must not be kept
        self.along(preconditioner, curvature, step, share, alpha)
        P = expected * matrix(curvature.hessian) + 2 * alpha * np.eye(4)
        np.testing.assert_allclose(inverse_of(preconditioner) @ P, np.eye(4), atol=1e-6)
        self.along(preconditioner, curvature, step, expected, alpha)
        np.testing.assert_allclose(inverse_of(preconditioner) @ P, np.eye(4), atol=1e-6)

    def test_a_step_of_which_the_estimate_knows_nothing_tells_nothing(self):
        """The last column is constant, and the penalty is all there is along it."""
        _, curvature = curvature_of(scale=np.array([1.0, 1.0, 1.0, 0.0]))
        preconditioner = used(curvature)
        before = inverse_of(preconditioner)
        preconditioner.learn(np.array([0.0, 0.0, 0.0, 1.0]), 1e6)
        np.testing.assert_array_equal(inverse_of(preconditioner), before)

    def test_a_new_matrix_starts_with_a_share_of_one(self):
        _, curvature = curvature_of()
        preconditioner = used(curvature)
        self.along(preconditioner, curvature, np.ones(4), 5.0)
        preconditioner.update(np.ones(40))
        P = curvature.hessian + 2 * ALPHA * np.eye(4)
        np.testing.assert_allclose(inverse_of(preconditioner) @ P, np.eye(4), atol=1e-9)


def test_columns_that_are_the_same_have_a_factor_at_any_scale():
    rng = np.random.default_rng(0)
    column = rng.normal(size=(40, 1))
    X = np.hstack([column, column, 1e9 * column, rng.normal(size=(40, 1))])
    graph = label_graph(rng.normal(size=40), check_qid(None, 40))
    curvature = Curvature(SquaredObjective(as_design(X), graph), is_whole=True)
    preconditioner = used(curvature, alpha=1e-12)
    g = X.T @ rng.normal(size=40)
    solved = preconditioner.solve(g)
    assert np.isfinite(solved).all()
    assert g @ solved > 0
    # A matrix that rounding made indefinite is lifted until it has one.
    curvature.hessian = np.array([[1.0, 1.0 + 1e-9], [1.0 + 1e-9, 1.0]])
    two = Preconditioner(curvature, 1e-15, lambda: np.ones(40))
    assert np.isfinite(two.solve(np.array([1.0, -1.0]))).all()
