"""Quasi-Newton directions against the dense updates that they stand for, and the line search against Wolfe."""

import numpy as np
import pytest

from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import label_graph
from rankwise.solvers.krylov import Curvature, Preconditioner
from rankwise.solvers.newton import LbfgsMemory, Trial, search_line

PLAIN = Preconditioner(None, 1.0, lambda: np.ones(0))


def whole_preconditioner(rows=40, features=6, alpha=0.3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features)) * np.geomspace(0.1, 10, features)
    graph = label_graph(rng.normal(size=rows), check_qid(None, rows))
    curvature = Curvature(SquaredObjective(as_design(X), graph), is_whole=True)
    preconditioner = Preconditioner(curvature, alpha, lambda: np.ones(rows))
    preconditioner.update(np.ones(rows))
    assert not preconditioner.is_identity
    return preconditioner


def updated_inverse(inverse, steps):
    """Apply the update of Broyden, Fletcher, Goldfarb and Shanno to an inverse Hessian, as it is defined."""
    identity = np.eye(len(inverse))
    for s, y in steps:
        move = identity - np.outer(s, y) / (s @ y)
        inverse = move @ inverse @ move.T + np.outer(s, s) / (s @ y)
    return inverse


@pytest.mark.parametrize("n_steps", [0, 1, 3, 5])
@pytest.mark.parametrize("preconditioner", [PLAIN, whole_preconditioner()], ids=["identity", "matrix"])
def test_a_direction_is_that_of_the_dense_updates_of_the_last_steps(n_steps, preconditioner):
    rng = np.random.default_rng(n_steps)
    root = rng.normal(size=(6, 6))
    hessian = root @ root.T + np.eye(6)
    memory, steps = LbfgsMemory(3), []
    for s in rng.normal(size=(n_steps, 6)):
        memory.add(s, hessian @ s)
        steps.append((s, hessian @ s))
    assert len(memory) == min(n_steps, 3)
    first = np.column_stack([preconditioner.solve(unit) for unit in np.eye(6)])
    if steps:  # in the units of the last step
        s, y = steps[-1]
        first *= (s @ y) / (y @ first @ y)
    gradient = rng.normal(size=6)
    kept = gradient.copy()
    np.testing.assert_allclose(
        memory.direction(gradient, preconditioner), -updated_inverse(first, steps[-3:]) @ gradient, rtol=1e-10
    )
    np.testing.assert_array_equal(gradient, kept)
    memory.forget()
    assert len(memory) == 0


def counted(function, slope):
    """A function of one variable as the line search sees it, and where it was asked for."""
    asked = []

    def at(length):
        asked.append(length)
        return Trial(length, function(length), slope(length), f"at {length}")

    return at, asked


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("first", [1e-3, 1.0, 1e3])
def test_any_sum_of_rounded_hinges_gets_a_step_that_satisfies_wolfe(seed, first):
    rng = np.random.default_rng(seed)
    kinks, slopes = rng.normal(size=30) * 3, rng.normal(size=30)
    width = 10.0 ** rng.uniform(-4, 0)

    def rounded(x):
        t = np.abs(slopes) - slopes * (x - kinks)
        return (
            np.where(t < 0, 0.0, np.where(t < width, t**2 / (2 * width), t - width / 2)).sum() + 0.01 * x**2
        )

    def slope(x):
        t = np.abs(slopes) - slopes * (x - kinks)
        return (-slopes * np.clip(t / width, 0, 1)).sum() + 0.02 * x

    direction = -np.sign(slope(0.0))
    at, asked = counted(lambda x: rounded(direction * x), lambda x: direction * slope(direction * x))
    start, steep = rounded(0.0), direction * slope(0.0)
    trial = search_line(at, start, steep, first)
    assert trial.value <= start + 1e-4 * trial.length * steep
    assert abs(trial.slope) <= 0.9 * abs(steep)
    assert len(set(asked)) == len(asked) <= 14


@pytest.mark.parametrize("steep", [1.0, 9.0])
def test_a_kink_is_closed_in_on_and_the_best_point_returned(steep):
    """No slope near a kink is flat; what comes back is the lowest value seen."""
    kink = np.pi / 10
    seen = []

    def at(length):
        seen.append(max(-(length - kink), steep * (length - kink)))
        return Trial(length, seen[-1], -1.0 if length < kink else steep, None)

    trial = search_line(at, kink, -1.0, 1.0)
    assert len(seen) == 30
    assert trial.value == min(seen) < 1e-6


def test_nothing_is_returned_where_no_step_goes_down():
    at, asked = counted(lambda x: 1.0 + x, lambda _: 1.0)
    assert search_line(at, 1.0, -1.0, 1.0) is None
    np.testing.assert_allclose(asked, 0.5 ** np.arange(len(asked)))
    assert len(asked) == 30
