"""What hold-out takes, said before it begins: operations counted one by one, and bytes against those allocated."""

import tracemalloc

import numpy as np
import pytest

from all_pairs import pairwise
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.exceptions import MemoryLimitError
from rankwise.fitting.problem import KernelProblem
from rankwise.holdout import leave_pair_out
from rankwise.holdout.compared_pairs import _survey
from rankwise.holdout.leave_pair_out import PairForm, pair_forms, refusal
from rankwise.holdout.spaces import (
    ColumnSpace,
    KernelSpace,
    _demand,
    _of_features,
    exact_bytes,
)
from rankwise.kernels import Kernel
from rankwise.pairs.factor import LabelFactor
from rankwise.pairs.labelled import LabelPairs
from rankwise.pairs.labels import label_graph
from rankwise.pairs.listed import PreferencePairs
from rankwise.pairs.pairs import ComparedRows
from rankwise.pairs.plan import Plan
from rankwise.pairs.preferences import preference_graph
from rankwise.runtime import memory
from rankwise.runtime.memory import MemoryBudget

GIB = 2**30


def compared(y, weight=None, **options):
    y = np.asarray(y, dtype=float)
    settings = {"ties": "include", "cost": "magnitude", "query_weight": "size", **options}
    return LabelPairs(y, check_qid(None, len(y)), weight, None, **settings).compared()


def bytes_of(*shapes):
    return sum(np.empty(shape).nbytes for shape in shapes)


UNEVEN = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.5, 1.0])


@pairwise(
    cost=["magnitude", "unit"], query_weight=["size", "pairs", "equal"], weight=[None, np.full(7, 2.0), UNEVEN],
    y=[np.arange(7), [0, 1, 1, 2, 5, 5, 5]], rank=[3, 50], n_alphas=[1, 4],
)  # fmt: skip
def test_where_every_two_rows_are_compared(cost, query_weight, weight, y, rank, n_alphas):
    """A product of the coordinates for each pair of rows, and two more with the steps of its labels."""
    (form,) = pair_forms(compared(y, weight, cost=cost, query_weight=query_weight), rank, n_alphas)
    rank = min(rank, 7)  # no more coordinates than rows
    sizes = np.unique(y, return_counts=True)[1]
    changes_alpha_alike = query_weight == "size" or (
        weight is not UNEVEN and (query_weight == "pairs" or len(set(sizes)) == 1)
    )
    nodes = 1 if changes_alpha_alike else leave_pair_out._NODES
    n_products = {"magnitude": 1, "unit": 3}[cost]
    price = 0
    for _ in range(n_alphas * nodes):
        for _ in range(7 * 7):
            price += n_products * rank + 20  # and what becomes of them
    # "auto" asks about rows alone where that is all that leave-pair-out ever takes.
    assert form.price == (0 if cost == "magnitude" and nodes == 1 else price)
    assert form.n_bytes == bytes_of(*[(7, rank)] * 3 * n_products)
    assert form.description == f"would take about {form.price:.0e} operations"


@pytest.mark.parametrize("query_weight", ["pairs", "equal"])
def test_the_nodes_that_are_counted_are_about_those_that_there_are(query_weight):
    rng = np.random.default_rng(0)
    ranking = ComparedRows(rng.normal(size=1000), rng.uniform(0.5, 2, 1000), "magnitude", query_weight)
    assert abs(_survey(ranking)[1].nodes.size - leave_pair_out._NODES) <= 1


def test_rows_that_weigh_nothing_take_nothing():
    y, weight = np.array([0.0, 1.0, 1.0, 4.0, 2.0]), np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    data = compared(y, weight, ties="exclude", cost="unit")
    kept = data[0].rows
    assert kept.tolist() == [0, 1, 3, 4]
    assert compared(y)[0].rows.tolist() == list(range(5))
    assert pair_forms(data, 9, 3) == pair_forms(compared(y[kept], ties="exclude", cost="unit"), 9, 3)


def form(price=0.0, n_bytes=0.0, description="is dear"):
    return PairForm(price, n_bytes, description)


@pytest.mark.parametrize(("is_asked_for", "most"), [(False, "_AFFORDABLE"), (True, "_MOST")])
def test_what_is_too_dear_is_refused(is_asked_for, most):
    most = getattr(leave_pair_out, most)
    assert refusal([form(most)], is_asked_for=is_asked_for) is None
    assert refusal([form(), form(1.01 * most)], is_asked_for=is_asked_for) == "is dear"
    two = [form(0.6 * most), form(0.6 * most)]
    assert refusal(two, is_asked_for=is_asked_for) == (
        f"would take about {1.2 * most:.0e} operations for 2 outputs"
    )
    forms = [form(most), form(np.inf, description="has none")]
    assert refusal(forms, is_asked_for=is_asked_for) == "has none"


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10 * GIB)
    forms = [form(n_bytes=0.5 * GIB), form(n_bytes=7.9 * GIB), form()]  # one after the other
    assert refusal(forms, is_asked_for=True) is None
    forms.append(form(n_bytes=8.5 * GIB))
    assert refusal(forms, is_asked_for=True) == "would take 8.5 GiB of memory"


def test_what_auto_affords():
    """A weighted 1500 rows, with a kernel of them and the usual grid of alphas."""
    rng, n_alphas = np.random.default_rng(0), 21

    def refused(n_rows, weight=None, **options):
        y = rng.permutation(n_rows) % 3 + 0.0
        forms = pair_forms(compared(y, weight, **options), n_rows, n_alphas)
        return refusal(forms, is_asked_for=False)

    assert refused(100, ties="exclude").startswith("has no closed form for ties='exclude'")
    assert refused(1500, rng.lognormal(size=1500), query_weight="pairs") is None
    assert "operations" in refused(3000, rng.lognormal(size=3000), query_weight="pairs")


def peak_of(work):
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def listed_pairs(n_rows, size):
    """A ring of pairs in each group of so many rows, twice."""
    row = np.arange(n_rows)
    first = row // size * size
    winner = np.concatenate([row, row])
    loser = np.concatenate([first + (row - first + step) % size for step in (1, 2)])
    return preference_graph(winner, loser, n_rows), np.concatenate([first, first])


def factor_of(graph, group):
    return PreferencePairs(None, graph).factored(graph, None if group is None else Plan.of_folds(group))[0]


@pytest.mark.parametrize("work", ["rows", "pairs"])
def test_a_kernel_asks_for_the_memory_that_its_decomposition_takes(work):
    rng, n = np.random.default_rng(0), 200
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)

    def decompose(limit=None):
        problem = KernelProblem(Kernel("linear"), X, None, MemoryBudget(limit), 1)
        if work == "rows":
            graph = label_graph(y, check_qid(None, n))
            return KernelSpace(problem).decompose(graph, LabelFactor(graph.blocks))
        graph, group = listed_pairs(n, n)
        return KernelSpace(problem).decompose(graph, factor_of(graph, group))

    decompose()  # what is imported or cached stays
    peak = peak_of(decompose)
    decompose(int(1.06 * peak))
    with pytest.raises(MemoryLimitError, match=f"kernel of {n} rows.*Hint"):
        decompose(int(0.94 * peak))


@pytest.mark.parametrize(("n_rows", "n_columns"), [(300, 60), (120, 120)])
@pytest.mark.parametrize("shares", [False, True])
def test_pairs_of_explicit_columns_ask_for_what_they_take(n_rows, n_columns, shares):
    """Three arrays of the rows, or of the pairs where groups share rows, and three of the columns."""
    graph, group = listed_pairs(n_rows, 5)
    if shares:
        group = np.arange(group.size)
    n_units = group.size if shares else n_rows
    asked = bytes_of(*[(n_units, n_columns)] * 3, *[(n_columns, n_columns)] * 3)
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns))

    def decompose(limit=None):
        return _of_features(X, graph, factor_of(graph, group), np.asarray, MemoryBudget(limit))

    decompose()
    assert asked / 2 < peak_of(decompose) < asked
    decompose(asked)
    with pytest.raises(MemoryLimitError, match=rf"from {n_units} rows or pairs.*0\.00 GiB.*Hint: use cv=5"):
        decompose(asked - 1)


def test_the_memory_that_is_missing_is_said_in_gib():
    asked = bytes_of(*[(3000, 4000)] * 3, *[(4000, 4000)] * 3) / GIB
    with pytest.raises(MemoryLimitError, match=rf"about {asked:.2f} GiB, and 0\.25 GiB may be used"):
        _demand(MemoryBudget(GIB // 4), 3000, 4000)


@pytest.mark.parametrize("shape", [(300, 60), (120, 120), (110, 130)])
def test_columns_ask_for_what_their_decomposition_takes(shape, monkeypatch):
    n_rows, n_columns = shape
    smaller = min(shape)
    asked = bytes_of(*[(n_rows, smaller)] * 3, *[(smaller, smaller)] * 3)
    assert exact_bytes(shape) == asked
    rng = np.random.default_rng(0)
    design, graph = (
        as_design(rng.normal(size=shape)),
        label_graph(rng.normal(size=n_rows), check_qid(None, n_rows)),
    )
    space = ColumnSpace.of_design(design, 0.0)
    factor = LabelFactor(graph.blocks)
    space.decompose(graph, factor)
    assert asked / 2 < peak_of(lambda: space.decompose(graph, factor)) < 1.2 * asked
    monkeypatch.setattr(memory, "_ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: asked)  # of which a part may be used
    with pytest.raises(MemoryLimitError, match=rf"{n_rows} rows and {n_columns} columns.*Hint: use cv=5"):
        ColumnSpace.of_design(design, 0.0)
