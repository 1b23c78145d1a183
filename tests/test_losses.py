"""Every loss of the table against explicit pairs and finite differences."""

import numpy as np
import pytest

from oracles import label_pairs
from rankwise import RankSVM
from rankwise.automatic.candidates import METHODS
from rankwise.data.queries import encode_queries
from rankwise.exceptions import InvalidInputError
from rankwise.losses import LOSSES
from rankwise.pairs.labels import find_levels, label_graph, pair_scale
from rankwise.pairs.preferences import PreferenceGraph, preference_graph
from rankwise.pairs.violations import ViolationSweep
from rankwise.solvers.choose import MARGIN_SOLVERS
from strategies import make_problem

COSTS_OF_A_PAIR = {
    "squared": lambda z, difference: (z - difference) ** 2,
    "hinge": lambda z, difference: np.maximum(z - difference, 0),
    "squared_hinge": lambda z, difference: np.maximum(z - difference, 0) ** 2,
    "logistic": lambda z, difference: z * np.logaddexp(0, -difference),  # z is 1
}


def labelled(name, weighted):
    """The pairs of labels as the loss takes them, and listed one by one."""
    problem = make_problem(3, rows=60, weighted=weighted)
    options = {"query_weight": "equal", "ties": "exclude"}
    queries = encode_queries(problem.qid)
    weight = problem.sample_weight
    listed = label_pairs(problem.y, problem.qid, cost="unit", sample_weight=weight, **options)
    if name == "squared":
        return label_graph(problem.y, queries, cost="unit", row_weight=weight, **options), listed
    levels = find_levels(problem.y, queries, weight)
    scale = pair_scale(levels, "equal")
    return ViolationSweep.from_levels(levels, queries, row_weight=weight, scale=scale), listed


def listed_pairs(name, seed=0):
    rng = np.random.default_rng(seed)
    winner, shift = rng.integers(0, 60, size=150), rng.integers(1, 60, size=150)
    magnitude = np.ones(150) if name == "logistic" else rng.random(150) * 3
    graph = preference_graph(
        winner, (winner + shift) % 60, 60, magnitude=magnitude, weight=rng.random(150), ties="exclude"
    )
    return graph if name == "squared" else graph.ordered(), graph


def explicit(name, graph, scores):
    pair_weight = getattr(graph, "weight" if not hasattr(graph, "pair_weight") else "pair_weight")
    difference = scores[graph.winner] - scores[graph.loser]
    return pair_weight @ COSTS_OF_A_PAIR[name](graph.difference, difference)


def cases():
    for name in LOSSES:
        yield pytest.param(name, "listed", id=f"{name}-listed")
        if name != "logistic":
            yield pytest.param(name, "labels", id=f"{name}-labels")
            yield pytest.param(name, "weighted labels", id=f"{name}-weighted")


@pytest.mark.parametrize(("name", "kind"), list(cases()))
def test_values_and_derivatives(name, kind):
    pairs, oracle = listed_pairs(name) if kind == "listed" else labelled(name, kind.startswith("weighted"))
    rng = np.random.default_rng(1)
    for offset in (0.0, 1000.0):  # only differences count
        scores = rng.normal(size=60) + offset
        point = LOSSES[name](pairs, scores)
        expected = explicit(name, oracle, scores)
        assert point.value == pytest.approx(expected, rel=1e-9 if offset else 1e-12)
        if offset:
            continue  # differences of values would only measure the offset's rounding
        direction = rng.normal(size=60)
        step = 1e-6
        ahead, behind = (LOSSES[name](pairs, scores + s * direction) for s in (step, -step))
        slope = (ahead.value - behind.value) / (2 * step)
        assert point.gradient @ direction == pytest.approx(slope, rel=1e-5, abs=1e-5)
        if name != "squared":
            assert point.offset == pytest.approx(float(point.value) - point.gradient @ scores, abs=1e-9)
        if name != "hinge":
            change = (ahead.gradient - behind.gradient) / (2 * step)
            np.testing.assert_allclose(point.hessian_product(direction), change, atol=1e-4)
        if name in {"squared_hinge", "logistic"}:
            diagonal = [point.hessian_product(unit)[row] for row, unit in enumerate(np.eye(60))]
            np.testing.assert_allclose(point.hessian_diagonal(), diagonal, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["listed", "labels"])
def test_the_smoothed_hinge_tends_to_the_hinge(kind):
    pairs, _ = listed_pairs("hinge") if kind == "listed" else labelled("hinge", weighted=True)
    scores = np.random.default_rng(2).normal(size=60)
    point = LOSSES["hinge"](pairs, scores)
    for delta in (1.0, 0.1, 1e-4):
        smooth = point.smoothed(delta)
        assert 0 <= point.value - smooth.value <= delta / 2 * pairs.weight
    np.testing.assert_allclose(smooth.gradient, point.gradient, atol=1e-2)
    # The plane of the slopes lies below the hinge everywhere: what the certificate rests on.
    for seed in range(20):
        other = np.random.default_rng(seed).normal(size=60) * 3
        below = point.smoothed(1.0).active + point.smoothed(1.0).gradient @ other
        assert below <= LOSSES["hinge"](pairs, other).value + 1e-9


@pytest.mark.parametrize("kind", ["listed", "labels"])
@pytest.mark.parametrize("delta", [0.05, 0.7, 3.0])
def test_the_smoothed_hinge_curves_where_pairs_are_near_their_margin(kind, delta):
    pairs, _ = listed_pairs("hinge") if kind == "listed" else labelled("hinge", weighted=True)
    scores = np.random.default_rng(2).normal(size=60)
    diagonal = LOSSES["hinge"](pairs, scores).smoothed_hessian_diagonal(delta)
    step = 1e-7
    for row, unit in enumerate(np.eye(60)):
        ahead, behind = (
            LOSSES["hinge"](pairs, scores + s * unit).smoothed(delta).gradient[row] for s in (step, -step)
        )
        assert diagonal[row] == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-5)


def test_satisfied_pairs_cost_nothing():
    _, graph = listed_pairs("hinge")
    order = np.argsort(graph.winner, kind="stable")[:1]
    one = PreferenceGraph(60, graph.winner[order], graph.loser[order], np.ones(1), np.ones(1))
    scores = np.zeros(60)
    scores[one.winner] = 5.0
    for name in ("hinge", "squared_hinge"):
        point = LOSSES[name](one, scores)
        assert point.value == 0
        assert not point.gradient.any()


def test_everybody_reads_the_one_table():
    """Solvers, estimators and AutoRanker offer the losses of the table, by its names."""
    margins = [name for name, loss in LOSSES.items() if loss.has_margin]
    assert {name for solver in MARGIN_SOLVERS.values() for name in solver.losses} == set(margins)
    methods = [loss.method for loss in LOSSES.values() if loss.method]
    assert {"rls", *methods, "curves", "surfaces", "kernel", "trees"} == set(METHODS)
    for name in margins:
        RankSVM(loss=name)._check_parameters()
    for name in set(LOSSES) - set(margins):
        with pytest.raises(InvalidInputError, match="loss"):
            RankSVM(loss=name)._check_parameters()
