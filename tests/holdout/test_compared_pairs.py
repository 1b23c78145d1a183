"""Leave-pair-out where every two rows are compared, against refits with explicit pairs."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from all_pairs import pairwise
from oracles import label_pairs
from pair_out import pair_out_differences
from rankwise.data.validation import check_qid
from rankwise.holdout import leave_pair_out
from rankwise.holdout.decomposition import DualHoldOut, PrimalHoldOut
from rankwise.holdout.leave_pair_out import (
    Interpolation,
    compared_pair_out_error,
)
from rankwise.pairs.factor import factor_of
from rankwise.pairs.labels import label_graph
from rankwise.pairs.pairs import ComparedRows
from rankwise.solvers.direct import DualSpectrum

ALPHAS = np.array([1e-3, 0.1, 1.0, 30.0])
ROWS = 12
LABELS = {
    "distinct": np.random.default_rng(0).normal(size=ROWS),
    "ties": np.random.default_rng(1).integers(0, 4, size=ROWS).astype(float),
    "two levels": (np.arange(ROWS) < 2).astype(float),
}
WEIGHTS = {
    "ones": np.ones(ROWS),
    "even": np.full(ROWS, 2.5),
    "integers": np.random.default_rng(2).integers(1, 4, size=ROWS).astype(float),
    "any": np.random.default_rng(3).lognormal(size=ROWS),
    "one dominates": np.where(np.arange(ROWS) == 3, 1e4, 1.0),
    "one is huge": np.where(np.arange(ROWS) == 3, 1e6, 1.0),
    "two dominate": np.where(np.isin(np.arange(ROWS), [0, 7]), 300.0, 0.5),
}


def problem_of(kind, y, weight, options):
    """Features of a singular kernel, and the decomposition of its graph."""
    X = np.random.default_rng(4).normal(size=(y.size, 3))
    X[2] = X[1]
    graph = label_graph(y, check_qid(None, y.size), row_weight=weight, **options)
    factor = factor_of(graph)
    if kind == "features":
        return X, PrimalHoldOut.with_vectors(factor.apply(X))[0]
    K = rbf_kernel(X, gamma=0.4)
    values, vectors = np.linalg.eigh(K)
    decomposition = DualHoldOut.of_spectrum(DualSpectrum.of_matrix(factor.sandwich(K.copy())))
    return vectors * np.sqrt(np.maximum(values, 0)), decomposition


def refit_difference(Z, y, weight, i, j, alpha, options):
    """Least squares over explicit pairs: normal equations would lose half of the digits to large weights."""
    kept = np.setdiff1d(np.arange(y.size), [i, j])
    pairs = label_pairs(y[kept], sample_weight=weight[kept], **options)
    root, own = np.sqrt(pairs.weight), Z[kept]
    rows = np.vstack(
        [root[:, None] * (own[pairs.winner] - own[pairs.loser]), np.sqrt(alpha) * np.eye(Z.shape[1])]
    )
    target = np.append(root * pairs.difference, np.zeros(Z.shape[1]))
    return (Z[i] - Z[j]) @ np.linalg.lstsq(rows, target, rcond=None)[0]


def check(kind, y, weight, options, every=3):
    Z, decomposition = problem_of(kind, y, weight, options)
    ranking = ComparedRows(y, weight, options["cost"], options["query_weight"])
    is_huge = weight.max() > 1e5
    i, j = np.nonzero(np.triu(y[:, None] != y))
    found = pair_out_differences(decomposition, ranking, (i, j), ALPHAS)
    for a, alpha in enumerate(ALPHAS):
        for p in range(a % every, i.size, every):
            expected = refit_difference(Z, y, weight, i[p], j[p], alpha, options)
            assert found[a, p] == pytest.approx(expected, abs=1e-4 if is_huge else 1e-7)
    sign, is_tie = np.sign(y[i] - y[j]), np.abs(found) < (1e-4 if is_huge else 1e-9)
    weigh = partial(np.average, axis=1, weights=weight[i] * weight[j])
    expected = weigh(np.where(is_tie, 0.5, found * sign < 0))
    errors = compared_pair_out_error(decomposition, ranking, ALPHAS, n_threads=2)
    # Beside a millionfold weight a third of the digits is left, and ties of twin rows may break; nothing else does.
    assert (np.abs(errors - expected) <= 1e-12 + (weigh(is_tie) / 2 if is_huge else 0.0)).all()


@pairwise(
    labels=LABELS,
    weights=WEIGHTS,
    cost=["magnitude", "unit"],
    query_weight=["size", "pairs", "equal"],
    kind=["features", "kernel"],
)
def test_refits(labels, weights, cost, query_weight, kind):
    ties = "exclude" if labels == "distinct" else "include"
    options = {"ties": ties, "cost": cost, "query_weight": query_weight}
    check(kind, LABELS[labels], WEIGHTS[weights], options, every=11)


@given(
    y=st.lists(st.integers(0, 3), min_size=4, max_size=9),
    seed=st.integers(0, 99),
    scale=st.sampled_from([0.0, 0.3, 2.0]),
    cost=st.sampled_from(["magnitude", "unit"]),
    query_weight=st.sampled_from(["size", "pairs", "equal"]),
    kind=st.sampled_from(["features", "kernel"]),
)
@hypothesis_settings(max_examples=12, deadline=None)
def test_any_labels_and_weights(y, seed, scale, cost, query_weight, kind):
    assume(len(set(y)) > 1)
    weight = np.exp(scale * np.random.default_rng(seed).normal(size=len(y)))
    options = {"ties": "include", "cost": cost, "query_weight": query_weight}
    check(kind, np.array(y, dtype=float), weight, options)


@pytest.mark.parametrize("cost", ["magnitude", "unit"])
@pytest.mark.parametrize("query_weight", ["pairs", "equal"])
def test_blocks_of_any_size_make_the_same_error(cost, query_weight, monkeypatch):
    rng = np.random.default_rng(5)
    y, weight = rng.integers(0, 6, size=40).astype(float), rng.lognormal(size=40)
    _, decomposition = problem_of(
        "kernel", y, weight, {"ties": "include", "cost": cost, "query_weight": query_weight}
    )
    ranking = ComparedRows(y, weight, cost, query_weight)
    errors = []
    for block in (1 << 16, 100):
        monkeypatch.setattr(leave_pair_out, "_BLOCK", block)
        errors.append(compared_pair_out_error(decomposition, ranking, ALPHAS))
    np.testing.assert_allclose(*errors, atol=1e-12)


def scale_of(y, weight, query_weight):
    """``s S`` of the rows that there are, pair by pair; None where no pair is ordered."""
    pairs = [(a, b) for b in range(y.size) for a in range(b) if y[a] != y[b]]
    if not pairs:
        return None
    ordered = sum(weight[a] * weight[b] for a, b in pairs)
    return {"size": 1.0, "pairs": weight.sum(), "equal": weight.sum() / ordered}[query_weight]


@given(
    y=st.lists(st.integers(0, 3), min_size=3, max_size=8),
    weight=st.sampled_from(["ones", "even", "any", "one is huge", "tiny"]),
    query_weight=st.sampled_from(["size", "pairs", "equal"]),
)
@hypothesis_settings(max_examples=60)
def test_alpha_without_two_rows(y, weight, query_weight):
    """What it is multiplied with is how the scale of the graph changes, and 0 where nothing is left to learn."""
    y = np.array(y, dtype=float)
    weight = WEIGHTS["any"][: y.size] * 1e-9 if weight == "tiny" else WEIGHTS[weight][: y.size]
    ranking = ComparedRows(y, weight, "magnitude", query_weight)
    i, j = np.nonzero(np.triu(y[:, None] != y))
    found, expected = ranking.alpha_factor(i, j), []
    for a, b in zip(i, j, strict=True):
        kept = np.setdiff1d(np.arange(y.size), [a, b])
        after = scale_of(y[kept], weight[kept], query_weight)
        expected.append(0.0 if after is None else scale_of(y, weight, query_weight) / after)
    # Beside a millionfold weight the sums have lost six digits.
    expected = np.array(expected)
    learns = expected > 0
    np.testing.assert_allclose(found[learns], expected[learns], rtol=1e-8)
    if query_weight == "equal":
        np.testing.assert_array_equal(found[~learns], 0.0)
    assert np.isfinite(found).all()
    if ranking.is_even and i.size:
        np.testing.assert_allclose(found, found[0], rtol=1e-12)


@given(y=st.lists(st.integers(-2, 3), min_size=2, max_size=9), seed=st.integers(0, 9))
def test_labels_of_unit_cost_are_weights_below_minus_above(y, seed):
    y = np.array(y, dtype=float)
    weight = np.random.default_rng(seed).lognormal(size=y.size)
    expected = [weight[y < own].sum() - weight[y > own].sum() for own in y]
    np.testing.assert_allclose(ComparedRows(y, weight, "unit", "size").labels, expected, atol=1e-12)


@pytest.mark.parametrize("cost", ["magnitude", "unit"])
@pytest.mark.parametrize("query_weight", ["size", "equal"])
def test_an_offset_of_all_labels_changes_nothing(cost, query_weight):
    """Labels that are whole numbers stay so: not a digit needs to be lost."""
    y, weight = LABELS["ties"], WEIGHTS["any"]
    options = {"ties": "include", "cost": cost, "query_weight": query_weight}
    _, decomposition = problem_of("kernel", y, weight, options)
    pairs = np.nonzero(np.triu(y[:, None] != y))
    near, far = (
        pair_out_differences(
            decomposition, ComparedRows(y + offset, weight, cost, query_weight), pairs, ALPHAS
        )
        for offset in (0.0, 2.0**40)
    )
    np.testing.assert_allclose(far, near, atol=1e-9)


@pairwise(
    of_labels=[1e-9, 1e9],
    of_weights=[1e-6, 1e6],
    cost=["magnitude", "unit"],
    query_weight=["size", "pairs", "equal"],
    weights=["any", "one dominates"],
)
def test_units_do_not_matter(of_labels, of_weights, cost, query_weight, weights):
    """Twin rows tie, and others do not, whatever the units of labels and weights."""
    y, weight = LABELS["distinct"], WEIGHTS[weights]
    options = {"ties": "include", "cost": cost, "query_weight": query_weight}
    power = {"size": 1, "pairs": 2, "equal": 0}[query_weight]
    errors = []
    for labels, share in ((1.0, 1.0), (of_labels, of_weights)):
        _, decomposition = problem_of("features", y * labels, weight * share, options)
        ranking = ComparedRows(y * labels, weight * share, cost, query_weight)
        errors.append(compared_pair_out_error(decomposition, ranking, ALPHAS * share**power))
        twins = pair_out_differences(
            decomposition, ranking, (np.array([1]), np.array([2])), ALPHAS * share**power
        )
        np.testing.assert_allclose(twins / labels if cost == "magnitude" else twins, 0.0, atol=1e-8)
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-12)


@pytest.mark.parametrize("cost", ["magnitude", "unit"])
@pytest.mark.parametrize("query_weight", ["size", "pairs", "equal"])
def test_models_that_fit_every_row_leave_no_ties(cost, query_weight):
    """There the diagonal of T is as small as alpha, and rounding is measured by it."""
    rng, alphas = np.random.default_rng(0), np.array([1e-9, 1e-6])
    K = np.eye(ROWS) + 0.1 * rbf_kernel(rng.normal(size=(ROWS, 2)))
    y, weight = LABELS["distinct"], WEIGHTS["any"]
    options = {"ties": "include", "cost": cost, "query_weight": query_weight}
    graph = label_graph(y, check_qid(None, ROWS), row_weight=weight, **options)
    spectrum = DualSpectrum.of_matrix(factor_of(graph).sandwich(K.copy()))
    decomposition, Z = DualHoldOut.of_spectrum(spectrum), np.linalg.cholesky(K)
    ranking = ComparedRows(y, weight, cost, query_weight)
    for a, error in enumerate(compared_pair_out_error(decomposition, ranking, alphas)):
        wrong = total = 0.0
        for i, j in itertools.combinations(range(ROWS), 2):
            difference = refit_difference(Z, y, weight, i, j, alphas[a], options)
            wrong += weight[i] * weight[j] * (difference * (y[i] - y[j]) < 0)
            total += weight[i] * weight[j]
        assert error == pytest.approx(wrong / total, abs=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 1 + 1e-9, 1.00001, 1.001, 1.3, 4.0, 16.0])
def test_interpolation(ratio):
    """``α / (σ + α)`` for eigenvalues of any size, to the last digits."""
    interpolation = Interpolation(0.7, 0.7 * ratio)
    at = 0.7 * ratio ** np.linspace(0, 1, 57)
    for sigma in np.append(10.0 ** np.arange(-9, 10), 0.0):
        values = interpolation.nodes / (sigma + interpolation.nodes)
        found = np.tensordot(values, interpolation.weights(at), 1)
        np.testing.assert_allclose(found, at / (sigma + at), rtol=1e-12)
    assert interpolation.nodes.size <= 24
