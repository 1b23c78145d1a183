"""The smoothed hinge: how its width shrinks, what it reads, what it proves; without bounds and inside them."""

import numpy as np
import pytest

from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.objectives import HingeObjective, HingePoint, SquaredObjective
from rankwise.pairs.labels import label_graph
from rankwise.pairs.margins import PreferenceMargins
from rankwise.solvers.bounded import Bounds
from rankwise.solvers.bounded_hinge import _plane_below, _Rounded, minimise_bounded_hinge
from rankwise.solvers.bundle import minimise_by_planes
from rankwise.solvers.certificate import StoppingRule
from rankwise.solvers.preconditioner import Curvature, Preconditioner
from rankwise.solvers.smoothing import _remaining, minimise_smoothed
from rankwise.solvers.solution import Status

MARGIN = 2.5  # of every pair: the loss at 0


def hinge(seed=0, rows=60, features=5, pairs=300, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(rows, features))
    winner = rng.integers(rows, size=pairs)
    loser = (winner + rng.integers(1, rows, size=pairs)) % rows
    swap = (X[winner] - X[loser]).sum(axis=1) + scale * 2 * rng.normal(size=pairs) < 0
    winner, loser = np.where(swap, loser, winner), np.where(swap, winner, loser)
    return HingeObjective(
        as_design(X), PreferenceMargins(rows, winner, loser, np.ones(pairs), np.full(pairs, MARGIN))
    )


def value(objective, alpha, w):
    return float(objective.at(w).value) + alpha * w @ w


def noted_widths(monkeypatch):
    widths, smoothed = [], HingePoint.smoothed

    def noted(self, delta):
        widths.append(delta)
        return smoothed(self, delta)

    monkeypatch.setattr(HingePoint, "smoothed", noted)
    return widths


def free(n=5):
    return Bounds(np.full(n, -np.inf), np.full(n, np.inf))


@pytest.mark.parametrize("alpha", [1e-1, 1e-3, 1e-5])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("is_warm", [False, True])
def test_reads_widths_and_proofs(monkeypatch, alpha, tol, is_warm):
    objective = hinge()
    start = np.full(5, 3.0) if is_warm else None  # where some pairs have their margin
    widths, told = noted_widths(monkeypatch), []
    before = objective.n_reads
    solution = minimise_smoothed(
        objective, alpha, tol=tol, start=start, monitor=lambda w, gap, n: told.append((w.copy(), gap, n))
    )
    assert solution.status is Status.CONVERGED
    assert solution.n_reads == objective.n_reads - before
    # The width starts at the mean margin, or at a tenth; then it becomes smaller by a half to a tenth at a time.
    shrinks = np.array(widths[1:]) / np.array(widths[:-1])
    assert widths[0] == pytest.approx(MARGIN * (0.1 if is_warm else 1.0))
    assert ((shrinks == 1) | ((shrinks >= 0.1 - 1e-12) & (shrinks <= 0.5 + 1e-12))).all()
    # An iteration reads twice, and a new width once; the start once or twice, and the limit of a large alpha, which is
    # looked at from 0, once, or thrice where the slope there is small enough.
    n_narrowed = np.count_nonzero(shrinks < 1)
    slope = objective.at(np.zeros(5)).gradient
    limit = 0 if is_warm else 1 if slope @ slope > 2 * alpha * MARGIN else 3
    assert solution.n_reads == 2 * solution.n_iter + n_narrowed + 1 + is_warm + limit
    assert solution.n_iter == len(solution.history) - 1
    assert [n for *_, n in told] == list(range(solution.n_iter))
    assert [gap for _, gap, _ in told] == solution.history[:-1]
    assert (np.diff(solution.history) <= 0).all()
    assert solution.certificate == solution.history[-1] <= tol * solution.gain * (1 + 1e-12)
    assert solution.gain == pytest.approx(
        MARGIN - value(objective, alpha, solution.coef) + solution.certificate, rel=1e-9
    )
    lowest = minimise_by_planes(objective, alpha, tol=1e-9)
    minimum = value(objective, alpha, lowest.coef)
    for w, gap, _ in told:
        assert value(objective, alpha, w) - minimum <= gap + 1e-12


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_twenty_columns_take_fewer_reads_than_cutting_planes_do(tol):
    reads = np.zeros(2)
    for seed in range(3):
        objective = hinge(seed, rows=300, features=20, pairs=3000)
        for index, solve in enumerate((minimise_smoothed, minimise_by_planes)):
            reads[index] += solve(objective, 1e-4, tol=tol).n_reads
    assert reads[0] <= 0.9 * reads[1]


@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
def test_a_tolerance_of_zero_ends_near_rounding(alpha):
    objective = hinge()
    solution = minimise_smoothed(objective, alpha, tol=0.0)
    assert solution.status is Status.STAGNATED
    assert solution.certificate < 1e-10
    assert solution.n_iter < 700


def test_the_hinge_itself_is_counted_only_where_it_decides_something(monkeypatch):
    """Else it is at most half a width above the smoothed one: a second count of all pairs that nobody needs."""
    objective, counted = hinge(), []
    exact = HingePoint.value

    class Noted:
        def __get__(self, point, owner):
            counted.append(id(point))
            return exact.__get__(point, owner)

    monkeypatch.setattr(HingePoint, "value", Noted())
    solution = minimise_smoothed(objective, 1e-5, tol=1e-3)
    assert solution.status is Status.CONVERGED
    assert 1 < len(counted) < 0.6 * solution.n_iter


def test_iterations_run_out_and_a_monitor_stops():
    objective = hinge()
    whole = minimise_smoothed(objective, 1e-4, tol=1e-6)
    for n_iter in (0, 1, 5):
        cut = minimise_smoothed(objective, 1e-4, tol=1e-6, max_iter=n_iter)
        assert (cut.status, cut.n_iter, cut.history) == (Status.MAX_ITER, n_iter, whole.history[: n_iter + 1])
        stopped = minimise_smoothed(
            objective, 1e-4, tol=1e-6, monitor=lambda _, __, n, last=n_iter: n == last
        )
        assert (stopped.status, stopped.n_iter) == (Status.STOPPED, n_iter)
        np.testing.assert_array_equal(stopped.coef, cut.coef)
        assert cut.certificate == cut.history[-1]


def test_the_limit_of_a_large_alpha_is_found_from_any_start():
    objective = hinge()
    for start in (None, 1e-3 * np.ones(5), 10.0 * np.ones(5)):
        before = objective.n_reads
        solution = minimise_smoothed(objective, 1e3, tol=1e-6, start=start)
        assert solution.status is Status.CONVERGED
        np.testing.assert_allclose(solution.coef, -objective.at(np.zeros(5)).gradient / 2e3, rtol=1e-2)
        assert solution.n_reads == objective.n_reads - before - 2
        if start is None:
            assert solution.n_reads == 3


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_remains_is_what_a_quadratic_model_could_gain(is_whole):
    """With some caution, or by strong convexity where no curvature is known."""
    rng = np.random.default_rng(0)
    X, g, alpha = rng.normal(size=(40, 4)), rng.normal(size=4), 1e-9
    graph = label_graph(rng.normal(size=40), check_qid(None, 40))
    rule = StoppingRule(1e-3, 1.0, alpha)
    plain = Preconditioner(None, alpha, lambda: np.ones(0))
    assert _remaining(g, rule, plain) == pytest.approx(g @ g / (4 * alpha))
    curvature = Curvature(SquaredObjective(as_design(X), graph), is_whole=is_whole)
    preconditioner = Preconditioner(curvature, alpha, lambda: np.ones(40))
    preconditioner.update(np.ones(40))
    H = curvature.hessian if is_whole else np.diag(curvature.hessian)
    d = -np.linalg.solve(H + 2 * alpha * np.eye(4), g)
    gain = -(g @ d + d @ (H + 2 * alpha * np.eye(4)) @ d / 2)
    assert 100 * gain <= _remaining(g, rule, preconditioner) <= 1000 * gain


class TestInsideBounds:
    BOUNDS = Bounds.not_negative(np.array([True, True, True, False, False]))

    def test_the_rounded_hinge_has_the_slopes_and_curvatures_of_its_values(self):
        objective = hinge()
        rounded = _Rounded(objective, 0.7)
        rng = np.random.default_rng(0)
        w, d = rng.normal(size=(2, 5))
        h = 1e-6
        ends = [rounded.at(w + sign * h * d) for sign in (1, -1)]
        point = rounded.at(w)
        assert point.gradient @ d == pytest.approx((ends[0].value - ends[1].value) / (2 * h), rel=1e-6)
        np.testing.assert_allclose(
            point.hessian_product(d), (ends[0].gradient - ends[1].gradient) / (2 * h), atol=1e-6
        )
        assert rounded.n_features == 5
        assert rounded.n_reads == objective.n_reads

    def test_the_plane_of_the_rounded_hinge_lies_below_the_hinge(self):
        objective = hinge()
        rng = np.random.default_rng(0)
        for width in (0.1, 1.0):
            w = 0.3 * rng.normal(size=5)
            point = objective.at(w)
            above, slope = _plane_below(objective, point, w, width)
            np.testing.assert_allclose(slope, _Rounded(objective, width).at(w).gradient)
            assert 0 < above <= width / 4
            for v in w + rng.normal(size=(30, 5)):
                assert float(objective.at(v).value) >= float(point.value) - above + slope @ (v - w) - 1e-12

    @pytest.mark.parametrize("alpha", [1e-1, 1e-4])
    @pytest.mark.parametrize("is_warm", [False, True])
    def test_reads_widths_and_proofs(self, monkeypatch, alpha, is_warm):
        objective = hinge()
        start = np.full(5, -0.1) if is_warm else None  # which is not even allowed
        widths, told = noted_widths(monkeypatch), []
        before = objective.n_reads
        solution = minimise_bounded_hinge(
            objective, alpha, self.BOUNDS, tol=1e-6, start=start,
            monitor=lambda w, gap, n: told.append((w.copy(), gap, n)),
        )  # fmt: skip
        assert solution.status is Status.CONVERGED
        assert solution.n_reads == objective.n_reads - before
        shrinks = np.array(widths[1:]) / np.array(widths[:-1])
        assert widths[0] == pytest.approx(MARGIN * (0.1 if is_warm else 1.0))
        assert ((shrinks == 1) | ((shrinks >= 0.1 - 1e-12) & (shrinks <= 0.5 + 1e-12))).all()
        assert [gap for _, gap, _ in told] == solution.history[:-1]
        counts = [n for *_, n in told] + [solution.n_iter]
        assert counts[0] >= 1
        assert (np.diff(counts) >= 1).all()
        assert (np.diff(solution.history) <= 0).all()
        assert solution.certificate == solution.history[-1] <= 1e-6 * solution.gain
        gain = MARGIN - value(objective, alpha, solution.coef) + solution.certificate
        assert solution.gain == pytest.approx(gain, rel=1e-5)
        assert solution.n_iter <= 80

    def test_without_any_bound_it_is_the_hinge_as_it_is(self):
        objective = hinge()
        for alpha in (1e-1, 1e-3):
            inside = minimise_bounded_hinge(objective, alpha, free(), tol=1e-7)
            other = minimise_smoothed(objective, alpha, tol=1e-7)
            assert value(objective, alpha, inside.coef) == pytest.approx(
                value(objective, alpha, other.coef), abs=3e-7
            )
            assert inside.status is Status.CONVERGED

    def test_iterations_run_out_a_monitor_stops_and_zero_is_not_asked_for_ever(self):
        objective = hinge()
        cut = minimise_bounded_hinge(objective, 1e-4, self.BOUNDS, tol=1e-9, max_iter=3)
        assert cut.status is Status.MAX_ITER
        assert 3 <= cut.n_iter <= 4
        stopped = minimise_bounded_hinge(objective, 1e-4, self.BOUNDS, tol=1e-9, monitor=lambda *_: True)
        assert stopped.status is Status.STOPPED
        assert len(stopped.history) == 1
        whole = minimise_bounded_hinge(objective, 1e-4, self.BOUNDS, tol=0.0)
        assert whole.status is Status.STAGNATED
        assert whole.certificate < 1e-10
        assert whole.n_iter < 300
