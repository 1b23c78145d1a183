"""Which rows a worker gets: every row once, queries whole, in equal shares; no cluster is needed to know."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.data.queries import encode_queries
from rankwise.distributed.shares import cut
from rankwise.pairs.blocks import Folds, laplacian
from rankwise.pairs.labels import find_levels, label_graph
from rankwise.pairs.violations import ViolationSweep


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.integers(1, 8),
    st.sampled_from(["one", "runs", "scattered"]),
)
def test_every_row_is_in_one_share_and_queries_are_whole(seed, n_rows, n_shares, kind):
    rng = np.random.default_rng(seed)
    codes = rng.integers(max(1, n_rows // 4), size=n_rows)
    queries = None if kind == "one" else encode_queries(np.sort(codes) if kind == "runs" else codes)
    work = rng.integers(1, 50, size=n_rows)
    shares = cut(work, queries, n_shares)
    rows = np.arange(n_rows)
    held = [rows[share.rows] for share in shares]
    assert len(shares) <= n_shares
    assert all(own.size for own in held)
    assert np.array_equal(np.sort(np.concatenate(held)), rows)
    for number, own in enumerate(held):
        assert np.array_equal(shares.owners(own), np.full(own.size, number))
        assert np.array_equal(shares[number].positions(own), np.arange(own.size))
        first, last = n_rows // 3, n_rows // 3 + n_rows // 2
        where, chosen = shares[number].within(first, last)
        inside = own[(own >= first) & (own < last)]
        assert np.array_equal(rows[first:last][chosen], inside)
        assert inside.size == 0 or own[where] == inside[0]
    if queries is not None and len(queries) > 1:
        assert all(np.unique(shares.owners(rows[queries.codes == q])).size == 1 for q in range(len(queries)))
    values = rng.normal(size=(n_rows, 2))
    assert np.array_equal(shares.joined(shares.split(values)), values)


def test_shares_are_about_equal():
    work = np.random.default_rng(0).integers(1, 100, size=10_000)
    shares = cut(work, encode_queries(np.arange(10_000) // 5), 7)
    loads = [work[share.rows].sum() for share in shares]
    assert max(loads) <= 1.01 * min(loads)


@given(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from(["include", "exclude"]), st.booleans())
def test_the_laplacian_of_whole_queries_is_that_of_the_parts(seed, n_shares, ties, scattered):
    rng = np.random.default_rng(seed)
    codes = rng.integers(6, size=40)
    queries = encode_queries(codes if scattered else np.sort(codes))
    y, weight = rng.integers(3, size=40).astype(float), rng.integers(3, size=40).astype(float)
    graph = label_graph(y, queries, ties=ties, row_weight=weight)
    fold = rng.integers(2, size=40).astype(np.int32)
    degree, scale = rng.random((graph.blocks.degree.size, 2)), rng.random((graph.blocks.scale.size, 2))
    shares = cut(np.ones(40, dtype=np.int64), queries, n_shares)
    scores = rng.normal(size=(40, 2))
    for folds in (None, Folds(fold, degree, scale)):
        whole = laplacian(graph.blocks, scores, folds=folds)
        parts, is_cut = shares.parts(graph.blocks, folds)
        assert not is_cut
        own = [
            laplacian(blocks, part, folds=kept)
            for (blocks, kept), part in zip(parts, shares.split(scores), strict=True)
        ]
        assert np.allclose(shares.joined(own), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("is_scattered", [False, True])
def test_pairs_of_shares_are_the_pairs_of_all(is_scattered):
    rng = np.random.default_rng(5)
    qid = np.sort(rng.integers(12, size=200))
    qid = rng.permutation(qid) if is_scattered else qid
    y, weight = rng.integers(4, size=200).astype(float), rng.integers(3, size=200).astype(float)
    queries = encode_queries(qid)
    scale = rng.random(len(queries))
    sweep = ViolationSweep.from_levels(find_levels(y, queries), queries, row_weight=weight, scale=scale)
    shares = cut(np.ones(200, dtype=np.int64), queries, 3)
    owner = shares.query_owners(*sweep.query_rows)
    parts = [sweep.part(share.rows, np.flatnonzero(owner == number)) for number, share in enumerate(shares)]
    scores = rng.normal(size=200)
    found = [part.at(own) for part, own in zip(parts, shares.split(scores), strict=True)]
    whole = sweep.at(scores)
    assert np.isclose(sum(own.hinge() for own in found), whole.hinge())
    assert np.allclose(shares.joined([own.net_wins for own in found]), whole.net_wins)
    assert np.allclose(shares.joined([own.squared_hinge()[1] for own in found]), whole.squared_hinge()[1])
