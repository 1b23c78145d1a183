"""Intervals over pairs that share items, against sums over every two pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.metrics.comparison import compare_over_pairs
from rankwise.metrics.intervals import mean_over_pairs, variance_over_pairs


def explicit_variance(residuals, pairs):
    """Add up the products of every two pairs that share an item."""
    return sum(
        a * b
        for a, one in zip(residuals, pairs, strict=True)
        for b, other in zip(residuals, pairs, strict=True)
        if set(one) & set(other)
    )


def couples(residuals, pairs):
    """Add up the products of every two pairs of the same two items."""
    return sum(
        a * b
        for a, one in zip(residuals, pairs, strict=True)
        for b, other in zip(residuals, pairs, strict=True)
        if set(one) == set(other)
    )


@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(1, 25))
def test_the_variance_is_that_of_every_two_pairs(seed, n_items, n_pairs):
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n_pairs)])
    residuals = rng.normal(size=n_pairs)
    expected = max(explicit_variance(residuals, pairs.tolist()), couples(residuals, pairs.tolist()))
    assert variance_over_pairs(residuals, pairs) == pytest.approx(expected, abs=1e-9)


def test_pairs_without_common_items_are_independent():
    values = np.random.default_rng(0).integers(0, 2, 200).astype(float)
    found = mean_over_pairs(values, np.arange(400).reshape(200, 2))
    error = values.std() / np.sqrt(200)
    assert (found.high - found.low) / 2 == pytest.approx(1.966 * error, rel=1e-3)  # 1.966: t of 399
    assert found.n == 200
    assert found.unit == "pairs"


def test_weights_are_duplicates():
    rng = np.random.default_rng(1)
    pairs = np.array([rng.choice(12, 2, replace=False) for _ in range(40)])
    values, weight = rng.random(40), rng.integers(1, 4, 40)
    weighted = mean_over_pairs(values, pairs, weight.astype(float))
    twice = mean_over_pairs(np.repeat(values, weight), np.repeat(pairs, weight, axis=0))
    assert (weighted.value, weighted.low, weighted.high) == pytest.approx(
        (twice.value, twice.low, twice.high)
    )


def test_intervals_hold_what_they_promise_where_items_differ():
    rng = np.random.default_rng(2)
    held, believed = 0, 0
    for _ in range(200):
        effect = rng.normal(size=30) * 0.3  # an item whose score is wrong loses all of its pairs
        pairs = np.array([rng.choice(30, 2, replace=False) for _ in range(150)])
        values = effect[pairs].sum(axis=1) + rng.normal(size=150) * 0.2
        found = mean_over_pairs(values, pairs)
        held += found.low <= 0 <= found.high
        believed += abs(values.mean()) <= 1.96 * values.std() / np.sqrt(150)
    assert held >= 0.88 * 200  # dyadic variances of thirty items are a little small
    assert believed <= 0.8 * 200  # as if the pairs were independent


def test_a_comparison_is_of_the_differences():
    rng = np.random.default_rng(3)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(80)])
    first, second = rng.choice([0.0, 1.0, 2.0], p=[0.6, 0.3, 0.1], size=80), np.ones(80)
    found = compare_over_pairs(first, second, pairs)
    assert found.difference == mean_over_pairs(first - second, pairs)
    counts = (found.wins, found.losses, found.ties)
    assert counts == ((first < 1).sum(), (first > 1).sum(), (first == 1).sum())
    assert len(set(counts)) == 3
    assert found.p_value < 1e-3
    assert compare_over_pairs(first, first, pairs).p_value == 1.0
    # One ranking right and the other wrong about every pair: what differs most is no tie, and few items prove little.
    right, wrong = np.zeros(len(pairs)), np.ones(len(pairs))
    assert compare_over_pairs(right, wrong, pairs).p_value < 1e-3
    assert compare_over_pairs(right[:1], wrong[:1], pairs[:1]).p_value == 0.5
    # p is 0.05 where the interval ends at 0.
    edge = compare_over_pairs(first - found.difference.high, second, pairs)
    assert edge.p_value == pytest.approx(0.05)
