"""Gradient descent with momentum: estimated spectra, the pace they set, and recovery from a wrong one."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from all_pairs import pairwise
from counting import counting
from making_blocks import graph_of_outputs
from oracles import momentum_iterates
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.objectives import ScaledObjective, SquaredObjective
from rankwise.solvers.direct import DirectFactor
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.momentum import (
    estimated_descent,
    gradient_descent,
    lanczos_estimate,
    power_spectrum,
)
from rankwise.solvers.solution import Status
from strategies import make_problem

ESTIMATORS = ("lanczos", "power", "blocks")


def lanczos_spectrum(*problem, **options):
    return lanczos_estimate(*problem, **options)[0]


def with_spectrum(eigenvalues, seed=0, rows=None):
    """One ranking whose ``X'LX`` has exactly these eigenvalues."""
    eigenvalues = np.asarray(eigenvalues, dtype=float)
    n = eigenvalues.size
    rng = np.random.default_rng(seed)
    rows = 3 * n + 5 if rows is None else rows
    left = rng.normal(size=(rows, n))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(rng.normal(size=(n, n)))[0]
    X = left * np.sqrt(eigenvalues) @ right.T
    y = rng.normal(size=rows)
    return SquaredObjective(as_design(X), graph_of_outputs(y, check_qid(None, rows)))


SPECTRA = {
    "one value": [3.0] * 12,
    "two clusters": [1.0] * 20 + [100.0] * 20,
    "a gap on top": [*np.linspace(1, 2, 30), 500.0],
    "crowded on top": [*np.linspace(1, 10, 30), *np.linspace(99, 100, 10)],
    "tight pair on top": [*np.linspace(1, 10, 30), 99.9, 100.0],
    "geometric": np.geomspace(1e-3, 1e3, 40),
    "uniform": np.linspace(1, 1000, 60),
    "long tail": 1000.0 / np.arange(1, 81) ** 1.5,
    "singular": [*np.linspace(1, 10, 10), *[0.0] * 5],
}


@pairwise(name=SPECTRA, alpha=[1e-2, 1.0], estimator=ESTIMATORS)
def test_the_direct_solution_on_known_spectra(name, alpha, estimator):
    objective = with_spectrum(SPECTRA[name])
    exact = DirectFactor(objective).solve(alpha).coef
    solution = estimated_descent(objective, alpha, estimator=estimator, tol=1e-12)
    assert solution.status is Status.CONVERGED
    assert np.linalg.norm(solution.coef - exact) <= 1e-8 * np.linalg.norm(exact)
    # Few columns may be solved by the space of the estimate alone, and then there is nothing to descend.
    assert solution.certificate == min(solution.history, default=solution.certificate) <= 1e-12


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=25), st.integers(0, 1000), st.sampled_from([0.0, 0.5])
)
def test_the_safe_bound_on_any_spectrum(eigenvalues, seed, alpha):
    objective = with_spectrum(eigenvalues, seed)
    true = np.linalg.eigvalsh(objective.matrix())[-1] + alpha
    found = lanczos_spectrum(objective.product, objective.n_features, alpha, seed=seed)
    assert true <= found.largest <= 1.01 * true


@pytest.mark.parametrize("outputs", [1, 2])
def test_without_a_penalty_it_ends_in_the_least_norm(outputs):
    """Wide and of low rank: wherever the descent starts, nothing may point out of the range of H."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 4)) @ rng.normal(size=(4, 30))
    y = rng.normal(size=12) if outputs == 1 else rng.normal(size=(12, 2))
    objective = SquaredObjective(as_design(X), graph_of_outputs(y, check_qid(None, 12)))
    expected = np.linalg.pinv(objective.matrix(), rcond=1e-10) @ objective.rhs
    solution = estimated_descent(objective, 0.0, tol=1e-11)
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.coef, expected, atol=1e-8)


def test_the_papers_power_iteration():
    objective = with_spectrum(SPECTRA["a gap on top"])
    found = power_spectrum(objective.product, objective.n_features, 1.0, n_iter=200)
    assert found.largest == pytest.approx(501.0, rel=1e-6)
    # Twenty steps, as printed, leave the smallest eigenvalue where the paper's figures do: above the truth.
    products = counting(objective)
    early = power_spectrum(objective.product, objective.n_features, 1.0)
    assert sum(products) == 2 * 20
    assert early.smallest >= 2.0 - 1e-9
    assert early.largest <= 501.0 + 1e-9


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_every_iterate_is_the_papers(momentum):
    objective = with_spectrum(SPECTRA["uniform"])
    H = objective.matrix() + 2.0 * np.eye(60)
    rate = (1 + momentum) / (1 - momentum) / 1002.0
    expected = momentum_iterates(H, objective.rhs, rate, momentum, 25)
    for steps in (1, 2, 25):
        solution = gradient_descent(
            objective, 2.0, learning_rate=rate, momentum=momentum, tol=0.0, max_iter=steps
        )
        errors = [np.linalg.norm(H @ w - objective.rhs) for w in expected[: steps + 1]]
        np.testing.assert_allclose(solution.coef, expected[int(np.argmin(errors))], rtol=1e-9)
        np.testing.assert_allclose(solution.history, errors[1:] / np.linalg.norm(objective.rhs), rtol=1e-9)


@pytest.mark.parametrize(("factor", "momentum"), [(1.01, 0.9), (1e3, 0.0), (1e300, 0.9)])
def test_a_step_that_is_too_long_is_shrunk(factor, momentum):
    objective = with_spectrum(SPECTRA["geometric"])
    limit = 2 * (1 + momentum) / ((1 - momentum) * 1001.0)  # the longest stable one
    solution = gradient_descent(
        objective, 1.0, learning_rate=factor * limit, momentum=momentum, tol=1e-10, max_iter=20_000
    )
    assert solution.status is Status.CONVERGED
    exact = DirectFactor(objective).solve(1.0).coef
    np.testing.assert_allclose(solution.coef, exact, atol=1e-8)


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_an_underestimated_spectrum_is_survived(monkeypatch, share):
    """What the paper's twenty power steps can do: a largest eigenvalue that is too low diverges."""
    objective = with_spectrum(SPECTRA["uniform"])
    honest = power_spectrum

    def low(product, n_features, alpha, **options):
        found = honest(product, n_features, alpha, n_iter=2000)
        return found._replace(largest=share * found.largest)

    monkeypatch.setattr("rankwise.solvers.momentum.power_spectrum", low)
    solution = estimated_descent(objective, 1.0, estimator="power", tol=1e-10)
    assert solution.status is Status.CONVERGED
    assert solution.certificate == min(solution.history)


def test_what_is_returned_is_the_best_point_even_when_cut_short():
    objective = with_spectrum(SPECTRA["uniform"])
    for steps in range(1, 12):
        solution = gradient_descent(objective, 1.0, learning_rate=1.0, max_iter=steps)
        w = solution.coef
        residual = np.linalg.norm(objective.product(w) + w - objective.rhs) / np.linalg.norm(objective.rhs)
        assert residual == pytest.approx(solution.certificate)
        assert solution.certificate <= 1.0
        assert solution.status is Status.MAX_ITER


def test_products_are_counted_and_few():
    objective = with_spectrum(np.geomspace(1e-2, 100, 50))
    gradients = conjugate_gradients(objective, 1.0)
    estimate = lanczos_estimate(objective.product, 50, 1.0, rhs=objective.rhs)[1]
    products = counting(objective)
    descent = estimated_descent(objective, 1.0)
    assert sum(products) == descent.n_iter + estimate.n_steps + 1
    assert sum(products) <= 2.5 * gradients.n_iter
    plain = gradient_descent(objective, 1.0, momentum=0.0)
    assert plain.n_iter >= 5 * (descent.n_iter + estimate.n_steps + 1)


def test_several_outputs_and_scaled_columns():
    problem = make_problem(3, rows=60, features=6)
    y = np.column_stack([problem.y, problem.X[:, 0], np.zeros(60)])
    objective = SquaredObjective(
        as_design(sp.csr_matrix(problem.X)), graph_of_outputs(y, check_qid(problem.qid, 60))
    )
    scaled = ScaledObjective(objective, np.geomspace(0.5, 2, 6))
    for estimator in ESTIMATORS:
        solution = estimated_descent(scaled, 0.3, estimator=estimator, tol=1e-12)
        np.testing.assert_allclose(solution.coef, DirectFactor(scaled).solve(0.3).coef, atol=1e-9)
        np.testing.assert_array_equal(solution.coef[:, 2], 0.0)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_what_a_monitor_is_shown_ranks_as_the_iterate_and_is_no_worse_than_nothing(outputs, factor):
    objective, alpha = with_spectrum(SPECTRA["uniform"]), 1.0
    if outputs > 1:
        objective.__dict__["rhs"] = objective.rhs[:, None] * np.array([1.0, -2.0, 1e-3])
    rate = factor / (1000.0 + alpha)  # twice the inverse of the largest eigenvalue is where descent ends
    shown = []
    gradient_descent(
        objective, alpha, learning_rate=rate, momentum=0.0, max_iter=5,
        monitor=lambda coef, *_: shown.append(coef.copy()),
    )  # fmt: skip
    w = np.zeros_like(objective.rhs)
    for coef in shown[:3]:  # later, descent that diverged has been slowed down
        w = w - rate * (objective.product(w) + alpha * w - objective.rhs)
        value = np.sum(coef * (objective.product(coef) + alpha * coef - 2 * objective.rhs), axis=0)
        assert (value <= 1e-12).all()
        if factor < 1:
            np.testing.assert_allclose(coef, w, rtol=1e-12)
        same_way = w * (
            np.linalg.norm(coef, axis=0) / np.linalg.norm(w, axis=0)
        )  # 0 if no step along it helps
        np.testing.assert_allclose(coef, same_way, atol=1e-12)
