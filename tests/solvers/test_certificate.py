"""Lower bounds from planes, the rule for stopping, and the limit of a large alpha."""

import numpy as np
import pytest

from rankwise.design import as_design
from rankwise.losses import HingeLoss, SquaredHingeLoss
from rankwise.objectives import MarginObjective
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.solvers.newton import LowerBound, StoppingRule, solve_linear_limit
from rankwise.solvers.solution import Status


def best_combination(planes, alpha):
    """The largest ``s - |g|²/(4 alpha)`` on the segment between two planes, by trying many."""
    (g, s), (h, t) = planes
    shares = np.linspace(0, 1, 20_001)[:, None]
    combined = (1 - shares) * g + shares * h
    return ((1 - shares[:, 0]) * s + shares[:, 0] * t - (combined**2).sum(axis=1) / (4 * alpha)).max()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_a_bound_is_that_of_the_best_combination_of_its_plane_and_the_new_one(seed, alpha):
    rng = np.random.default_rng(seed)
    first, _second = [(rng.normal(size=3), rng.normal() + 1.0) for _ in range(2)]
    bound = LowerBound(alpha)
    assert bound.value == 0.0
    bound.add(*first)
    alone = best_combination([(np.zeros(3), 0.0), first], alpha)  # the first plane of all is 0
    assert bound.value == pytest.approx(alone, abs=1e-6)
    whole = LowerBound(alpha)
    whole.add(np.zeros(3), 10.0)  # a plane that is wholly better than 0 takes its place
    assert whole.value == 10.0
    g, s = first[0], 10.0 + first[1]
    whole.add(g, s)
    expected = best_combination([(np.zeros(3), 10.0), (g, s)], alpha)
    assert whole.value == pytest.approx(max(expected, 10.0), abs=1e-6)
    kept = whole.value
    whole.add(100 * g, -100.0)
    assert whole.value == kept


def test_a_chain_of_planes_is_combined_with_what_is_kept():
    rng = np.random.default_rng(0)
    alpha, bound, kept = 0.3, LowerBound(0.3), (np.zeros(4), 0.0)
    for _ in range(30):
        plane = rng.normal(size=4), 1.5 * rng.random()
        (g, s), (h, t) = kept, plane
        shares = np.linspace(0, 1, 20_001)
        values = (1 - shares) * s + shares * t - (
            ((1 - shares) ** 2 * (g @ g) + 2 * shares * (1 - shares) * (g @ h) + shares**2 * (h @ h)) / (4 * alpha)
        )  # fmt: skip
        best = shares[np.argmax(values)]
        kept = (1 - best) * g + best * h, (1 - best) * s + best * t
        bound.add(*plane)
        assert bound.value == pytest.approx(values.max(), abs=1e-4)


MARGIN = 2.5  # of every pair: the hinge at 0


def objectives(scale):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(20, 3))
    winner = rng.integers(20, size=50)
    loser = (winner + rng.integers(1, 20, size=50)) % 20
    margins = PreferenceGraph(20, winner, loser, np.ones(50), np.full(50, MARGIN))
    D = X[winner] - X[loser]
    return (
        D,
        MarginObjective(as_design(X), margins, HingeLoss),
        MarginObjective(as_design(X), margins, SquaredHingeLoss),
    )


class TestLinearLimit:
    def solve(self, objective, alpha, tol=1e-3):
        point = objective.at(np.zeros(3))
        rule, gradient = StoppingRule(tol, float(point.value), alpha), point.gradient
        objective.at(np.ones(3)).gradient  # noqa: B018 - what was read before does not count
        before = objective.design.reads
        return gradient, solve_linear_limit(objective, rule, gradient), objective.design.reads - before

    @pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
    def test_of_the_hinge_it_is_exact_where_no_pair_reaches_its_margin(self, scale):
        D, hinge, _ = objectives(scale)
        steep = 100 * scale**2
        gradient, found, n_reads = self.solve(hinge, steep)
        np.testing.assert_allclose(found.coef, D.mean(axis=0) / (2 * steep), rtol=1e-12)
        assert (D @ found.coef).max() < MARGIN
        assert found.status is Status.CONVERGED
        assert (found.n_iter, n_reads) == (1, 2)
        assert found.certificate == found.history[0] == 0.0
        # F(0) - F(w) = |g|²/(4 alpha)
        assert found.gain == pytest.approx(gradient @ gradient / (4 * steep), rel=1e-9)
        assert not np.signbit(found.coef[found.coef == 0]).any()

    def test_nothing_pulls(self):
        _, hinge, _ = objectives(0.0)
        _, found, _ = self.solve(hinge, 1.0)
        assert found.status is Status.CONVERGED
        np.testing.assert_array_equal(found.coef, 0.0)
        assert not np.signbit(found.coef).any()
