"""What hold-out takes, said before it begins: operations counted one by one, and bytes against those allocated."""

import tracemalloc

import numpy as np
import pytest

from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.exceptions import MemoryLimitError
from rankwise.fitting.problem import KernelProblem
from rankwise.holdout import leave_pair_out
from rankwise.holdout.leave_pair_out import refusal
from rankwise.holdout.spaces import (
    ColumnSpace,
    KernelSpace,
    _of_features,
    exact_bytes,
)
from rankwise.kernels import Kernel
from rankwise.pairs.factor import factor_of
from rankwise.pairs.labelled import LabelPairs
from rankwise.pairs.labels import label_graph
from rankwise.pairs.listed import PreferencePairs
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


def test_rows_that_weigh_nothing_take_nothing():
    y, weight = np.array([0.0, 1.0, 1.0, 4.0, 2.0]), np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    data = compared(y, weight, ties="exclude", cost="unit")
    kept = data[0].rows
    assert kept.tolist() == [0, 1, 3, 4]
    assert compared(y)[0].rows.tolist() == list(range(5))
    costs = [
        leave_pair_out._cost(own[0], 9, 3) for own in (data, compared(y[kept], ties="exclude", cost="unit"))
    ]
    assert costs[0] == costs[1]


def refused(monkeypatch, *costs, is_asked_for):
    """Why rankings of these prices and bytes are refused."""
    left = list(costs)
    monkeypatch.setattr(leave_pair_out, "_cost", lambda *_: left.pop(0))
    return refusal(compared([0.0, 1.0, 2.0]) * len(costs), 1, 1, is_asked_for=is_asked_for)


@pytest.mark.parametrize(("is_asked_for", "most"), [(False, "_AFFORDABLE"), (True, "_MOST")])
def test_what_is_too_dear_is_refused(is_asked_for, most, monkeypatch):
    most = getattr(leave_pair_out, most)
    assert refused(monkeypatch, (most, 0.0), is_asked_for=is_asked_for) is None
    two = (0.6 * most, 0.0), (0.6 * most, 0.0)
    found = refused(monkeypatch, *two, is_asked_for=is_asked_for)
    assert found == f"would take about {1.2 * most:.0e} operations"
    assert "closed form" in refusal(None, 1, 1, is_asked_for=is_asked_for)


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10 * GIB)
    costs = [(0.0, 0.5 * GIB), (0.0, 7.9 * GIB), (0.0, 0.0)]  # one after the other
    assert refused(monkeypatch, *costs, is_asked_for=True) is None
    found = refused(monkeypatch, *costs, (0.0, 8.5 * GIB), is_asked_for=True)
    assert found == "would take 8.5 GiB of memory"


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


def factor_of_pairs(graph, group):
    return PreferencePairs(None, graph).factored(graph, None if group is None else Plan.of_folds(group))[0]


@pytest.mark.parametrize("work", ["rows", "pairs"])
def test_a_kernel_asks_for_the_memory_that_its_decomposition_takes(work):
    rng, n = np.random.default_rng(0), 200
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)

    def decompose(limit=None):
        problem = KernelProblem(Kernel("linear"), X, None, MemoryBudget(limit), 1)
        if work == "rows":
            graph = label_graph(y, check_qid(None, n))
            return KernelSpace(problem).decompose(graph, factor_of(graph))
        graph, group = listed_pairs(n, n)
        return KernelSpace(problem).decompose(graph, factor_of_pairs(graph, group))

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
        return _of_features(X, graph, factor_of_pairs(graph, group), np.asarray, MemoryBudget(limit))

    decompose()
    assert asked / 2 < peak_of(decompose) < asked
    decompose(asked)
    with pytest.raises(MemoryLimitError, match=rf"from {n_units} rows or pairs.*0\.00 GiB.*Hint: use cv=5"):
        decompose(asked - 1)


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
    factor = factor_of(graph)
    space.decompose(graph, factor)
    assert asked / 2 < peak_of(lambda: space.decompose(graph, factor)) < 1.2 * asked
    monkeypatch.setattr(memory, "_ALWAYS_FITS", 0)
    monkeypatch.setattr(memory, "available_memory", lambda: asked)  # of which a part may be used
    with pytest.raises(MemoryLimitError, match=rf"{n_rows} rows and {n_columns} columns.*Hint: use cv=5"):
        ColumnSpace.of_design(design, 0.0)
