"""Every objective against its matrix, written out pair by pair."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from all_pairs import pairwise
from making_blocks import graph_of_outputs
from oracles import label_pairs
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.losses import LOSSES
from rankwise.objectives import (
    MarginObjective,
    MatrixQuadratic,
    MinimisedObjective,
    ScaledObjective,
    SquaredObjective,
    parts_of,
    prior_scale,
)
from rankwise.pairs.labels import label_graph
from rankwise.pairs.preferences import preference_graph
from rankwise.pairs.violations import ViolationSweep
from strategies import make_problem

RNG = np.random.default_rng(0)


def squared(problem, design=None, **options):
    graph = label_graph(
        problem.y, check_qid(problem.qid, len(problem.y)), row_weight=problem.sample_weight, **options
    )
    return SquaredObjective(as_design(problem.X) if design is None else design, graph)


def explicit(problem, **options):
    """Return H and b, from the list of pairs."""
    pairs = label_pairs(problem.y, problem.qid, sample_weight=problem.sample_weight, **options)
    return problem.X.T @ pairs.laplacian @ problem.X, problem.X.T @ pairs.pull


def check(objective, H, b):
    """Compare all that an objective says of itself with its matrix and its linear term."""
    n = H.shape[0]
    assert objective.n_features == n
    np.testing.assert_allclose(objective.rhs, b, atol=1e-10)
    np.testing.assert_allclose(objective.matrix(), H, atol=1e-10)
    np.testing.assert_allclose(objective.diagonal(), np.diag(H), atol=1e-10)
    v, block = RNG.normal(size=n), RNG.normal(size=(n, 3))
    np.testing.assert_allclose(objective.product(v), H @ v, atol=1e-10)
    np.testing.assert_allclose(objective.product(block), H @ block, atol=1e-10)
    np.testing.assert_allclose(objective.at(v).hessian_product(block), 2 * H @ block, atol=1e-10)


def check_point(objective, H, b):
    """Compare value and gradient, without the constant."""
    v = RNG.normal(size=H.shape[0])
    point = objective.at(v)
    np.testing.assert_allclose(point.value, v @ H @ v - 2 * b @ v, atol=1e-9)
    np.testing.assert_allclose(point.gradient, 2 * (H @ v - b), atol=1e-9)


PROBLEMS = [make_problem(1, queries=6), make_problem(2, queries=1), make_problem(3, weighted=True)]


@pytest.mark.parametrize("problem", PROBLEMS, ids=["queries", "one ranking", "weighted"])
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_the_squared_loss(problem, ties):
    H, b = explicit(problem, ties=ties)
    for design in (as_design(problem.X), as_design(aslinearoperator(problem.X))):
        objective = squared(problem, design, ties=ties)
        check(objective, H, b)
        check_point(objective, H, b)
    kept = squared(problem, ties=ties)
    np.testing.assert_allclose(kept.matrix(), H, atol=1e-10)  # before the linear term was asked for
    np.testing.assert_allclose(kept.rhs, b, atol=1e-10)


def test_listed_pairs():
    X = RNG.normal(size=(12, 3))
    winner, loser = np.array([0, 3, 5, 7, 7]), np.array([1, 4, 2, 8, 9])
    weight, magnitude = RNG.random(5) + 0.5, RNG.random(5) + 0.5
    graph = preference_graph(winner, loser, 12, magnitude=magnitude, weight=weight)
    A = X[winner] - X[loser]
    H, b = A.T @ (weight[:, None] * A), A.T @ (weight * magnitude)
    check(SquaredObjective(as_design(X), graph), H, b)
    check(SquaredObjective(as_design(aslinearoperator(X)), graph), H, b)


def test_wide_matrices_are_made_in_pieces():
    """More columns than are multiplied at once, through products alone."""
    problem = SimpleNamespace(X=RNG.normal(size=(9, 150)), y=np.arange(9) % 3.0, qid=None, sample_weight=None)
    H, _ = explicit(problem)
    matrix = squared(problem, as_design(aslinearoperator(problem.X))).matrix()
    np.testing.assert_allclose(matrix, H, atol=1e-9)
    np.testing.assert_array_equal(matrix, matrix.T)


@pytest.mark.parametrize("outputs", [None, 2])
def test_other_coordinates(outputs):
    problem = PROBLEMS[0]
    H, b = explicit(problem)
    n = H.shape[0]
    scale = RNG.random(n) + 0.5
    origin = RNG.normal(size=n)
    whole = squared(problem)
    S = np.diag(scale)
    if outputs is not None:
        whole = MatrixQuadratic(H, np.column_stack([b, 2 * b]))
        b = np.column_stack([b, 2 * b])
        pulled = (H @ origin)[:, None]
    else:
        pulled = H @ origin
    check(ScaledObjective(whole, scale), S @ H @ S, S @ b)
    moved = ScaledObjective(whole, scale, origin)
    check(moved, S @ H @ S, S @ (b - pulled))
    check(ScaledObjective(whole, scale, np.zeros(n)), S @ H @ S, S @ b)
    u = RNG.normal(size=(n, 2))
    np.testing.assert_allclose(moved.to_coef(u), origin[:, None] + S @ u)
    np.testing.assert_allclose(moved.to_coef(u[:, 0]), origin + S @ u[:, 0])
    if outputs is None:
        check_point(moved, S @ H @ S, S @ (b - pulled))
        check_point(ScaledObjective(whole, scale), S @ H @ S, S @ b)


@pytest.mark.parametrize("is_singular", [False, True])
@pytest.mark.parametrize("outputs", [None, 2])
def test_some_columns_at_their_best(is_singular, outputs):
    problem = make_problem(4, features=5)
    if is_singular:
        problem.X[:, 3] = 2 * problem.X[:, 1]
    H, b = explicit(problem)
    b = b if outputs is None else np.column_stack([b, 2 * b])
    taken, others = np.array([1, 3]), np.array([0, 2, 4])
    inverse = np.linalg.pinv(H[np.ix_(taken, taken)], hermitian=True)
    left, b_left = H - H[:, taken] @ inverse @ H[taken], b - H[:, taken] @ inverse @ b[taken]
    found = MinimisedObjective(MatrixQuadratic(H, b), taken)
    np.testing.assert_allclose(found.matrix(), left, atol=1e-9)
    np.testing.assert_allclose(found.rhs, b_left, atol=1e-9)
    v = np.zeros(b.shape)
    v[others] = RNG.normal(size=v[others].shape)
    np.testing.assert_allclose(found.product(v), left @ v, atol=1e-9)
    for estimate in (found.diagonal(), found.sizes()):
        assert (estimate >= np.diag(left) - 1e-9).all()
        np.testing.assert_array_equal(estimate[taken], 0.0)
    whole = found.completed(v)
    np.testing.assert_array_equal(whole[others], v[others])
    np.testing.assert_allclose((H @ whole - b)[taken], 0.0, atol=1e-9)  # they can do no better


def test_scales_of_a_prior():
    objective = MatrixQuadratic(np.diag([4.0, 0.0, 9.0, -1e-20]), np.zeros(4))  # the last by rounding
    np.testing.assert_allclose(prior_scale(objective, 0.5), [0.5, 1.0, 1 / 3, 1.0])
    np.testing.assert_allclose(prior_scale(objective, 0.25), [4**-0.25, 1.0, 9**-0.25, 1.0])


def test_matrices():
    H, b = explicit(PROBLEMS[0])
    objective = MatrixQuadratic(H, b)
    check(objective, H, b)
    check_point(objective, H, b)


# --- parts ---


@pairwise(problem=PROBLEMS, n_rows=[1, 7, 1000], query_weight=["size", "pairs"])
def test_parts_add_up(problem, n_rows, query_weight):
    H, b = explicit(problem, query_weight=query_weight)
    n = H.shape[0]
    scale = RNG.random(n) + 0.5
    whole = squared(problem, query_weight=query_weight)
    for objective, S in ((whole, np.eye(n)), (ScaledObjective(whole, scale), np.diag(scale))):
        parts = list(parts_of(objective, n_rows))
        assert (len(parts) > 1) == (n_rows < 1000)
        np.testing.assert_allclose(sum(part.rhs for part in parts), S @ b, atol=1e-9)
        np.testing.assert_allclose(sum(part.product(S) for part in parts), S @ H @ S @ S, atol=1e-9)
        v = RNG.normal(size=n)
        np.testing.assert_allclose(sum(part.product(v) for part in parts), S @ H @ S @ v, atol=1e-9)
        np.testing.assert_allclose(sum(part.diagonal() for part in parts), np.diag(S @ H @ S), atol=1e-9)


def test_parts_of_several_outputs_and_of_weighted_rows():
    X, weight = RNG.normal(size=(30, 4)), RNG.integers(0, 3, size=30).astype(float)
    Y = RNG.normal(size=(30, 2))
    graph = graph_of_outputs(Y, check_qid(None, 30), weight)
    objective = SquaredObjective(as_design(X), graph)
    parts = list(parts_of(objective, 7))
    assert len(parts) == 5
    np.testing.assert_allclose(sum(part.rhs for part in parts), objective.rhs, atol=1e-10)
    np.testing.assert_allclose(sum(part.product(np.eye(4)) for part in parts), objective.matrix(), atol=1e-10)


def test_what_cannot_be_cut_is_one_part():
    problem = PROBLEMS[0]
    on_operator = squared(problem, as_design(aslinearoperator(problem.X)))
    assert list(parts_of(on_operator, 3)) == [on_operator]
    matrix = MatrixQuadratic(np.eye(2), np.ones(2))
    assert list(parts_of(matrix)) == [matrix]


@pytest.mark.parametrize("problem", PROBLEMS[:2], ids=["queries", "one ranking"])
def test_all_parts_take_one_read(problem):
    design = as_design(problem.X)
    assert len(list(parts_of(squared(problem, design), 7))) > 1
    assert design.reads == 1


# --- rows that pass by ---


# --- losses with a margin ---


def sweep(n=40, weighted=True):
    rng = np.random.default_rng(1)
    y = rng.permutation(n).astype(float)
    weight = rng.random(n) + 0.5 if weighted else None
    return ViolationSweep(y.astype(np.int64), np.array([0, n]), row_weight=weight), y, weight


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("has_base", [False, True])
def test_means_over_pairs(loss, has_base):
    pairs, y, weight = sweep()
    X = RNG.normal(size=(40, 3))
    base, scale = (RNG.normal(size=40), np.array([1.0, 2.0, 0.5])) if has_base else (None, None)
    design = as_design(X)
    objective = MarginObjective(design, pairs, LOSSES[loss], base, scale)
    S = np.diag(np.ones(3) if scale is None else scale)
    coef = RNG.normal(size=3)
    assert objective.n_features == 3
    np.testing.assert_allclose(objective.scores(coef), X @ S @ coef)
    block = RNG.normal(size=(40, 2))
    np.testing.assert_allclose(objective.pull_back(block), S @ X.T @ block)
    np.testing.assert_allclose(objective.pull_back(block[:, 0]), S @ X.T @ block[:, 0])
    np.testing.assert_array_equal(objective.zero_scores(), np.zeros(40))

    def value(w):
        f = X @ S @ w + (0 if base is None else base)
        gap = np.maximum(0.0, 1.0 - (f[:, None] - f[None, :]))
        omega = np.outer(weight, weight) * (y[:, None] > y[None, :])
        return (omega * gap ** (1 if loss == "hinge" else 2)).sum() / omega.sum()

    point = objective.at(coef)
    assert float(point.value) == pytest.approx(value(coef), rel=1e-10)
    step = 1e-6
    slope = [(value(coef + step * unit) - value(coef - step * unit)) / (2 * step) for unit in np.eye(3)]
    np.testing.assert_allclose(point.gradient, slope, rtol=1e-5, atol=1e-7)
    # The plane that touches the loss: at these scores it has the loss's value.
    assert point.offset + point.score_gradient @ (X @ S @ coef) == pytest.approx(value(coef), rel=1e-9)
    assert design.reads > 0
    if loss == "hinge":
        smooth = point.smoothed(0.5)
        assert 0 <= value(coef) - float(smooth.value) <= 0.25
        slopes = (
            [objective.at_scores(X @ S @ coef + s * unit).smoothed(0.5).gradient for unit in np.eye(40)]
            for s in (step, -step)
        )
        ahead, behind = (np.diagonal(found) for found in slopes)
        diagonal = point.smoothed_hessian_diagonal(0.5)
        np.testing.assert_allclose(diagonal, (ahead - behind) / (2 * step), atol=1e-5)
        below = smooth.active + smooth.gradient @ (X @ S @ (2 * coef))
        assert below <= value(2 * coef) + 1e-9
    else:
        units = [point.score_hessian_product(unit)[row] for row, unit in enumerate(np.eye(40))]
        np.testing.assert_allclose(point.score_hessian_diagonal(), units, atol=1e-12)
        product = [(objective.at(coef + step * u).gradient - point.gradient) / step for u in np.eye(3)]
        np.testing.assert_allclose(
            [point.hessian_product(u) for u in np.eye(3)], product, rtol=1e-3, atol=1e-4
        )
        assert objective.sample(5) is None


def test_a_sample_of_the_rows():
    n = 4000
    pairs, y, _ = sweep(n, weighted=False)
    base = RNG.normal(size=n)
    objective = MarginObjective(as_design(RNG.normal(size=(n, 1))), pairs, LOSSES["hinge"], base)
    rows, sample = objective.sample(500)
    assert rows.size == 500
    f = RNG.normal(size=500)
    based, labels = f + base[rows], y[rows]
    gap = np.maximum(0.0, 1.0 - (based[:, None] - based[None, :]))
    omega = labels[:, None] > labels[None, :]
    assert float(sample.at_scores(f).value) == pytest.approx(gap[omega].mean(), rel=1e-10)
    assert objective.sample(n) is None
