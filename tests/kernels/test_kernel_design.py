"""Products of kernels that are made a block at a time."""

import numpy as np
import pytest

from rankwise import kernels
from rankwise.data.validation import check_qid
from rankwise.kernels import Kernel
from rankwise.kernels import design as kernel_design
from rankwise.kernels.design import KernelDesign
from rankwise.pairs.labels import label_graph


@pytest.mark.parametrize("n_queries", [1, 7])
@pytest.mark.parametrize(
    "settings", [{}, {"ties": "exclude"}, {"ties": "exclude", "cost": "relative"}], ids=str
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_one_read_product(n_queries, settings, weighted, block, monkeypatch):
    for module in (kernels, kernel_design):
        monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(40, 3)), rng.integers(n_queries, size=40)
    weight = rng.integers(1, 3, size=40).astype(float) if weighted else None
    graph = label_graph(
        rng.integers(3, size=40).astype(float), check_qid(qid, 40), row_weight=weight, **settings
    )
    design = KernelDesign(Kernel("rbf", {"gamma": 0.5}), X, X[:6], rng.normal(size=(6, 4)))
    product = design.gram_product(graph.blocks)
    for v in (rng.normal(size=4), rng.normal(size=(4, 3))):
        expected = design.tdot(graph.laplacian(design.dot(v)))
        if product is None:
            assert block == 64
            assert n_queries == 7 or settings
        else:
            np.testing.assert_allclose(product(v), expected, atol=1e-10)
