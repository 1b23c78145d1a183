"""Preconditioned conjugate gradients for reduced sets, against the direct solution."""

import numpy as np
import pytest

from rankwise import KernelRankRLS
from rankwise.data.validation import check_qid
from rankwise.design import DenseDesign
from rankwise.objectives import SquaredObjective
from rankwise.pairs.blocks import sampled
from rankwise.pairs.labels import label_graph
from rankwise.solvers.direct import DirectFactor
from rankwise.solvers.nystrom import SampledSpectrum, preconditioned_gradients
from rankwise.solvers.solution import Status

ALPHAS = np.array([1e-3, 1.0, 100.0])


def problem(n_queries, *, rows=3000, columns=40, outputs=1, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)) * np.logspace(0, -3, columns) + 5
    qid = None if n_queries == 1 else rng.integers(n_queries, size=rows)
    Y = np.round(X[:, :outputs] + 0.1 * rng.normal(size=(rows, outputs)), 1)
    graph = label_graph(Y[:, 0] if outputs == 1 else Y, check_qid(qid, rows), **settings)
    return DenseDesign(X), graph


@pytest.mark.parametrize("n_queries", [1, 3, 300])
@pytest.mark.parametrize(
    "settings", [{}, {"query_weight": "pairs"}, {"ties": "exclude", "cost": "unit"}, {"outputs": 2}], ids=str
)
def test_all_alphas_in_lockstep(n_queries, settings):
    design, graph = problem(n_queries, **settings)
    objective = SquaredObjective(design, graph)
    spectrum = SampledSpectrum.of_rows(design, graph.blocks, 0)
    seen = []
    solution = preconditioned_gradients(
        objective, ALPHAS, spectrum, tol=1e-12, report=lambda n, _: seen.append(n)
    )
    assert solution.status is Status.CONVERGED
    assert seen == list(range(1, solution.n_iter + 1))
    assert solution.n_iter < 40  # without a preconditioner the spread of the columns takes far more
    for column, alpha in enumerate(np.tile(ALPHAS, settings.get("outputs", 1))):
        output = column // ALPHAS.size
        exact = DirectFactor(objective).solve(alpha).coef.reshape(40, -1)[:, output]
        H, b = objective.matrix() + alpha * np.eye(40), objective.rhs.reshape(40, -1)[:, output]
        value, least = (w @ H @ w - 2 * b @ w for w in (solution.coef[:, column], exact))
        assert value == pytest.approx(least, rel=1e-10)
        assert np.linalg.norm(H @ solution.coef[:, column] - b) < 1e-10 * np.linalg.norm(b)


def test_iterations_run_out():
    design, graph = problem(300)
    spectrum = SampledSpectrum.of_rows(design, graph.blocks, 0)
    solution = preconditioned_gradients(
        SquaredObjective(design, graph), ALPHAS, spectrum, tol=1e-14, max_iter=2
    )
    assert (solution.status, solution.n_iter) == (Status.MAX_ITER, 2)


@pytest.mark.parametrize("n_queries", [1, 300])
@pytest.mark.parametrize("settings", [{}, {"ties": "exclude"}], ids=str)
def test_the_sample_estimates_the_whole(n_queries, settings):
    design, graph = problem(n_queries, **settings)
    blocks = sampled(graph.blocks, 1500, 0)
    assert 1400 < blocks.order.size < 1700
    whole, estimate = design.gram_matrix(graph.blocks), design.gram_matrix(blocks)
    root = np.linalg.inv(np.linalg.cholesky(whole))
    ratios = np.linalg.eigvalsh(root @ estimate @ root.T)
    assert 0.5 < ratios.min() < ratios.max() < 2


@pytest.mark.parametrize("memory_limit", [None, 200_000])
@pytest.mark.parametrize("with_qid", [False, True])
def test_reduced_set_model(memory_limit, with_qid):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    y, qid = np.abs(X[:, 0]), np.arange(800) // 8 if with_qid else None
    options = {"basis": 30, "alpha": 0.1, "memory_limit": memory_limit}
    exact = KernelRankRLS(solver="direct", **options).fit(X, y, qid)
    model = KernelRankRLS(solver="cg", tol=1e-10, **options).fit(X, y, qid)
    assert 0 < model.n_iter_ < 40
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-6)
