"""The design of additive models: every product against the expanded matrix, one number at a time."""

import functools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from all_pairs import pairwise
from hats import hat_matrix
from making_blocks import make_blocks, make_folds
from rankwise import _core
from rankwise.additive.fitting import MOST_BINS, pair_histograms
from rankwise.data import open_store, save_store
from rankwise.design import AdditiveDesign, Design, additive
from rankwise.design.additive import coded_gram
from rankwise.design.terms import Curve, Surface, Terms, predict

# Codes round positions: to 2^-28 of an interval for eight knots, and the tests have sums of a few hundred of them.
CODED = {"rtol": 1e-6, "atol": 1e-6}
EXACT = {"rtol": 1e-12, "atol": 1e-12}
INSTRUCTIONS = ("plain", "avx2", "avx512")
CHUNKS = ("small", "large")


def knots(*values):
    return np.array(values, dtype=np.float64)


def every_kind_of_term():
    """Curves that share columns, levels, missing values, one knot, none, many; surfaces on other knots than curves."""
    coarse = Curve(0, knots(-0.8, 0, 0.9), has_missing=True)
    levels = Curve(3, knots(0, 2), is_levels=True, has_missing=True)
    return Terms(
        (
            Curve(0, knots(-1.0, -0.5, 0, 0.3, 1.2)),
            Curve(1, knots(-2, 0, 2), has_missing=True),
            Curve(3, knots(0, 1, 3), is_levels=True, has_missing=True),
            Curve(4, knots(1), has_missing=True),
            Curve(0, knots(-0.7, 0.7)),
            Curve(2, knots(), has_missing=True),
            Curve(2, np.linspace(-2, 2, 40)),
            Curve(1, np.linspace(-2, 2, 14)),
            Curve(5, np.array([-1e308, 1.0, 1.5e308])),
        ),
        (
            Surface(coarse, Curve(1, knots(-1, 1))),
            Surface(levels, Curve(2, knots(-1, 0, 0.5), has_missing=True)),
            Surface(coarse, Curve(3, knots(0, 1, 2, 3), is_levels=True)),
            Surface(Curve(4, knots(1)), Curve(1, np.linspace(-1, 1, 9))),
        ),
    )


def plain_terms(n_columns=4, n_knots=8):
    return Terms(tuple(Curve(j, np.linspace(-1.5, 1.5, n_knots)) for j in range(n_columns)))


def values(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 6)).round(2)
    X[:, 3] = rng.integers(0, 4, n_rows)
    X[:, 4] = 1.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.05] = np.inf
    X[rng.random(X.shape) < 0.05] = -np.inf
    return X


def weights_of(curve, x):
    """The weights of one number, by the definition."""
    out = np.zeros(curve.n_values)
    own = curve.knots.tolist()
    if (x not in own) if curve.is_levels else (np.isnan(x) or not own):
        if curve.has_missing:
            out[-1] = 1.0
    elif curve.is_levels:
        out[own.index(x)] = 1.0
    else:
        # Halves, for numpy's interp subtracts knots too.
        x = min(max(x, own[0]), own[-1])
        hats = np.eye(len(own))
        out[: len(own)] = [np.interp(x / 2, curve.knots / 2, hat) for hat in hats]
    return out


def expanded(X, terms):
    """The rows of E, one number at a time."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    E = np.zeros((X.shape[0], terms.n_values))
    for i, x in enumerate(X):
        parts = [weights_of(c, x[c.column]) for c in terms.curves]
        for s in terms.surfaces:
            one, other = weights_of(s.first, x[s.first.column]), weights_of(s.second, x[s.second.column])
            parts.append(np.outer(one, other).ravel())
        E[i] = np.concatenate([np.zeros(0), *parts])
    return E


@functools.cache
def every_kind_of_row(n_rows=200):
    """Rows, terms of every kind, and what the rows expand to."""
    X, terms = values(n_rows), every_kind_of_term()
    return X, terms, expanded(X, terms)


@functools.cache
def pairs_and_laplacian(kind, coupling, n_rows=200):
    """Blocks of weighted rows with ties, and their Laplacian as a matrix."""
    rng = np.random.default_rng(4)
    y, weight = rng.integers(0, 3, n_rows), rng.random(n_rows)
    blocks = make_blocks(queries(kind, n_rows), y, coupling, weight=weight)
    return blocks, oracles.laplacian_matrix(blocks)


class Cumulative:
    """A change of coordinates: cumulative sums, term by term."""

    def __init__(self, terms):
        blocks = [np.tril(np.ones((t.n_values, t.n_values))) for t in terms.all_terms]
        self.T = sp.block_diag(blocks).toarray() if blocks else np.zeros((0, 0))
        self.n_coordinates = self.T.shape[1]

    def to_values(self, u):
        return self.T @ u

    def from_values(self, g):
        return self.T.T @ g


@pytest.fixture
def instructions(request, monkeypatch):
    if INSTRUCTIONS.index(request.param) > INSTRUCTIONS.index(_core.widest_instructions()):
        pytest.skip("this processor has no such instructions")
    monkeypatch.setattr(additive, "INSTRUCTIONS", request.param)
    return request.param


@pytest.fixture
def chunks(request, monkeypatch):
    """Chunks, parts and threads as large matrices have them, if they are to be small."""
    if getattr(request, "param", "small") == "small":
        monkeypatch.setattr(additive, "CHUNK_ROWS", 48)
        monkeypatch.setattr(additive, "CHUNK_WORK", 1 << 9)
        monkeypatch.setattr(additive, "PART_WORK", 1 << 11)
        monkeypatch.setattr(additive, "MANY_CODES", 1)


STORED = {
    "C, float64": np.ascontiguousarray,
    "F, float64": np.asfortranarray,
    "C, float32": lambda X: X.astype(np.float32),
    "F, float32": lambda X: np.asfortranarray(X.astype(np.float32)),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "CSR, float64": lambda X: sp.csr_matrix(np.nan_to_num(X, posinf=9.0, neginf=-9.0)),
    "CSR, float32": lambda X: sp.csr_matrix(np.nan_to_num(X, posinf=9.0, neginf=-9.0).astype(np.float32)),
    "CSR, NaN": sp.csr_matrix,
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("n_rows", [0, 1, 17, 130])
def test_encoding_and_predicting(stored, n_rows):
    X = STORED[stored](values(n_rows))
    terms = every_kind_of_term()
    E = expanded(X, terms)
    v = np.random.default_rng(1).standard_normal((terms.n_values, 3))
    np.testing.assert_allclose(hat_matrix(X, terms).toarray(), E, **EXACT)
    np.testing.assert_allclose(predict(X, terms, v), E @ v, **EXACT)
    np.testing.assert_allclose(predict(X, terms, v[:, 0].copy()), E @ v[:, 0], **EXACT)
    design = AdditiveDesign.encode(X, terms)
    assert design.shape == E.shape
    np.testing.assert_allclose(design.matrix(), E, rtol=0, atol=2.0**-25)
    np.testing.assert_allclose(design.dot(v), E @ v, **CODED)


def on_all(**factors):
    """Parametrize a test by pairs of settings, sets of instructions and sizes of chunks."""
    return pairwise(indirect=["instructions", "chunks"], instructions=INSTRUCTIONS, chunks=CHUNKS, **factors)


@on_all(k=[None, 1, 2, 5, 8, 11])
def test_products(k, instructions, chunks):
    X, terms, E = every_kind_of_row()
    design = AdditiveDesign.encode(X, terms, n_threads=2)
    rng = np.random.default_rng(2)
    v = rng.standard_normal((terms.n_values, *(() if k is None else (k,))))
    u = rng.standard_normal((X.shape[0], *(() if k is None else (k,))))
    np.testing.assert_allclose(design.dot(v), E @ v, **CODED)
    np.testing.assert_allclose(design.tdot(u), E.T @ u, **CODED)
    part = design.rows(slice(37, 122))
    np.testing.assert_allclose(part.dot(v), E[37:122] @ v, **CODED)
    np.testing.assert_allclose(part.tdot(u[37:122]), E[37:122].T @ u[37:122], **CODED)


@pytest.mark.parametrize("n_knots", range(1, 20))
@pytest.mark.parametrize("instructions", INSTRUCTIONS, indirect=True)
def test_every_number_of_knots(n_knots, instructions):
    X, terms = values(70), plain_terms(n_knots=n_knots)
    E = expanded(X, terms)
    design = AdditiveDesign.encode(X, terms)
    u = np.random.default_rng(2).standard_normal(70)
    np.testing.assert_allclose(design.tdot(u), E.T @ u, **CODED)
    np.testing.assert_allclose(design.dot(E[0]), E @ E[0], **CODED)


def test_no_terms():
    design = AdditiveDesign.encode(values(5), Terms(()))
    assert design.shape == (5, 0)
    assert np.array_equal(design.dot(np.zeros(0)), np.zeros(5))
    assert design.tdot(np.zeros(5)).shape == (0,)


def queries(kind, n_rows):
    rng = np.random.default_rng(3)
    return {
        "small": np.sort(rng.integers(0, n_rows // 7, n_rows)),
        "one": np.zeros(n_rows, dtype=int),
        "scattered": rng.integers(0, 5, n_rows),
        "shuffled nearby": np.sort(rng.integers(0, n_rows // 9, n_rows))[
            np.argsort(np.arange(n_rows) + rng.integers(0, 12, n_rows), kind="stable")
        ],
        "uneven": np.repeat([0, 1, 2, 3], [1, n_rows - 30, 28, 1]),
    }[kind]


@on_all(
    coupling=["all", "others", "relative"], kind=["small", "one", "scattered", "shuffled nearby", "uneven"]
)
def test_gram_products(coupling, kind, instructions, chunks):
    X, terms, E = every_kind_of_row()
    blocks, L = pairs_and_laplacian(kind, coupling)
    product = AdditiveDesign.encode(X, terms, n_threads=2).gram_product(blocks)
    assert product is not None or kind != "small"
    if product is None:
        return
    v = np.random.default_rng(4).standard_normal((terms.n_values, 6))
    expected = E.T @ (L @ (E @ v))
    np.testing.assert_allclose(product(v), expected, **CODED)
    np.testing.assert_allclose(product(v[:, 0]), expected[:, 0], **CODED)


@pairwise(
    coupling=["all", "others", "relative"],
    kind=["small", "one", "scattered"],
    with_coordinates=[False, True],
    chunks=CHUNKS,
    indirect=["chunks"],
)
def test_gram_matrices(coupling, kind, with_coordinates, chunks):
    X, terms, E = every_kind_of_row()
    blocks, L = pairs_and_laplacian(kind, coupling)
    coordinates = Cumulative(terms) if with_coordinates else None
    Z = E @ coordinates.T if with_coordinates else E
    G = Z.T @ L @ Z
    design = AdditiveDesign.encode(X, terms, coordinates, n_threads=2)
    np.testing.assert_allclose(design.gram_matrix(blocks), G, **CODED)
    np.testing.assert_allclose(design.gram_diagonal(blocks), np.diag(G), **CODED)
    product = design.gram_product(blocks)
    if product is not None:
        v = np.random.default_rng(4).standard_normal(terms.n_values)
        np.testing.assert_allclose(product(v), G @ v, rtol=1e-6, atol=1e-5)


@on_all(coupling=["all", "others"], kind=["small", "one", "scattered"], weighted=[False, True])
def test_gram_matrices_from_codes(monkeypatch, coupling, kind, weighted, instructions, chunks):
    # More columns than meet at a time, of every kind; sums of a few queries at a time.
    monkeypatch.setattr(additive, "_pays", lambda *_: True)
    monkeypatch.setattr(additive, "_SUMS", 1)
    X = np.tile(values(200), (1, 4))
    curves = [
        replace(curve, column=curve.column + 6 * n) for n in range(4) for curve in every_kind_of_term().curves
    ]
    terms = Terms(tuple(curves))
    rng = np.random.default_rng(9)
    y, weight = rng.integers(0, 3, 200), rng.uniform(0.1, 2, 200) if weighted else None
    blocks = make_blocks(queries(kind, 200), y, coupling, weight=weight)
    L = oracles.laplacian_matrix(blocks)
    E = expanded(X, terms)
    design = AdditiveDesign.encode(X, terms, n_threads=2)
    found = coded_gram(design, blocks)
    np.testing.assert_allclose(found, E.T @ L @ E, **CODED)
    assert np.array_equal(found, found.T)
    by_rows = Design.gram_matrix(design, blocks)
    np.testing.assert_allclose(found, by_rows, rtol=1e-10, atol=1e-10 * np.abs(by_rows).max())


@pytest.mark.parametrize("coupling", ["all", "others"])
@pytest.mark.parametrize("kind", ["small", "one"])
@pytest.mark.parametrize("chunks", CHUNKS, indirect=True)
def test_folds_in_lockstep(coupling, kind, chunks):
    n_rows, k = 200, 3
    X, terms, E = every_kind_of_row()
    rng = np.random.default_rng(5)
    blocks, _ = pairs_and_laplacian(kind, coupling)
    fold = rng.integers(-1, k, n_rows)
    folds = make_folds(blocks, fold, k)
    product = AdditiveDesign.encode(X, terms, n_threads=2).gram_product(blocks, folds)
    assert product is not None or kind != "small"
    if product is None:
        return
    v = rng.standard_normal((terms.n_values, k))
    held_out = np.full(n_rows, np.nan)
    actual = product(v, held_out)
    for c in range(k):
        L = oracles.laplacian_matrix(blocks, hidden=fold == c)
        np.testing.assert_allclose(actual[:, c], E.T @ (L @ (E @ v[:, c])), **CODED)
    seen = fold >= 0
    np.testing.assert_allclose(held_out[seen], (E @ v)[seen, fold[seen]], **CODED)


def test_moments_and_rows():
    X, terms, E = every_kind_of_row()
    coordinates = Cumulative(terms)
    E = E @ coordinates.T
    design = AdditiveDesign.encode(X, terms, coordinates)
    rng = np.random.default_rng(6)
    weight = rng.random(200)
    one, other = rng.integers(0, 200, (2, 200))
    expected = weight[:200] @ (E[one] - E[other]) ** 2
    np.testing.assert_allclose(design.squared_differences(one, other, weight[:200]), expected, **CODED)
    for index in (slice(5, 99), slice(0, 0), slice(1, 180, 7), rng.permutation(200)[:60], weight > 0.5):
        np.testing.assert_allclose(design.rows(index).matrix(), E[index], rtol=0, atol=1e-6)
    again = design.rows(slice(20, 180)).rows(slice(10, 140)).gathered(np.array([3, 1, 120]))
    np.testing.assert_allclose(again.matrix(), E[[33, 31, 150]], rtol=0, atol=1e-6)


@pytest.mark.usefixtures("chunks")
def test_threads_do_not_change_a_bit():
    X, terms = values(333), every_kind_of_term()
    rng = np.random.default_rng(7)
    v, u = rng.standard_normal((terms.n_values, 5)), rng.standard_normal((333, 5))
    blocks = make_blocks(queries("small", 333), rng.integers(0, 3, 333), "others")
    one, two, five = (AdditiveDesign.encode(X, terms, n_threads=t) for t in (1, 2, 5))
    for other in (two, five):
        assert np.array_equal(one.codes, other.codes)
        assert np.array_equal(one.dot(v), other.dot(v))
        assert np.array_equal(one.tdot(u), other.tdot(u))
        assert np.array_equal(one.gram_product(blocks)(v), other.gram_product(blocks)(v))
    few = Terms(terms.curves)
    found = [AdditiveDesign.encode(X, few, n_threads=t).gram_matrix(blocks) for t in (1, 2, 5)]
    assert coded_gram(AdditiveDesign.encode(X, few), blocks) is not None
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("instructions", INSTRUCTIONS, indirect=True)
def test_ties_and_constants_lose_no_digits(instructions):
    # Every row in one cell: sums of second differences must not blur what no row reads.
    X = np.full((1000, 4), 0.25)
    terms = plain_terms()
    u = np.random.default_rng(8).standard_normal(1000)
    gradient = AdditiveDesign.encode(X, terms).tdot(u)
    np.testing.assert_allclose(gradient, expanded(X, terms).T @ u, rtol=0, atol=1e-6, err_msg=instructions)
    read_by_none = expanded(X[:1], terms)[0] == 0
    assert np.abs(gradient[read_by_none]).max() < 1e-12 * np.abs(u).sum()


def test_codes_take_four_bytes():
    X = values(100_000).astype(np.float32)
    terms = Terms(
        tuple(Curve(j, np.linspace(-2, 2, 8)) for j in range(6)),
        tuple(
            Surface(Curve(j, np.linspace(-2, 2, 5)), Curve(j + 1, np.linspace(-2, 2, 5))) for j in range(5)
        ),
    )
    assert AdditiveDesign.encode(X, terms).codes.nbytes < 1.01 * X.nbytes


def test_encoding_from_a_store(tmp_path, monkeypatch):
    X = sp.random(300, 6, density=0.4, random_state=1, format="csr", dtype=np.float32)
    save_store([(X, np.zeros(300), np.arange(300) // 10)], tmp_path / "rows.store")
    terms = plain_terms()
    monkeypatch.setattr(additive, "ENCODED_ROWS", 70)
    stored = AdditiveDesign.encode(open_store(tmp_path / "rows.store").X, terms)
    assert np.array_equal(stored.codes, AdditiveDesign.encode(X, terms).codes)


def test_column_offsets_move_codes_by_rounding_only():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((500, 4))
    terms = plain_terms()
    moved = Terms(tuple(Curve(c.column, c.knots + 1000.0) for c in terms.curves))
    E, shifted = (AdditiveDesign.encode(x, t).matrix() for x, t in ((X, terms), (X + 1000.0, moved)))
    np.testing.assert_allclose(shifted, E, rtol=0, atol=1e-8)


def test_terms_are_pickled_without_compiled_arrays():
    terms = every_kind_of_term()
    X = values(20)
    v = np.random.default_rng(1).standard_normal(terms.n_values)
    expected = predict(X, terms, v)
    again = pickle.loads(pickle.dumps(terms))
    assert np.array_equal(predict(X, again, v), expected)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_pair_statistics(n_threads):
    rng = np.random.default_rng(10)
    n_columns, n_rows = 7, 200
    bins = rng.integers(0, MOST_BINS, (n_columns, n_rows)).astype(np.uint8)
    bins[3] = 5
    g, h = rng.standard_normal(n_rows), rng.random(n_rows)
    first, second = np.triu_indices(n_columns, 1)
    sum_g, sum_h = pair_histograms(bins, g, h, first, second, n_threads)
    for p, (i, j) in enumerate(zip(first, second, strict=True)):
        cells = bins[i].astype(int) * MOST_BINS + bins[j]
        shape = (MOST_BINS, MOST_BINS)
        G = np.bincount(cells, g, MOST_BINS**2).reshape(shape)
        H = np.bincount(cells, h, MOST_BINS**2).reshape(shape)
        np.testing.assert_allclose(sum_g[p], G, **EXACT)
        np.testing.assert_allclose(sum_h[p], H, **EXACT)
