"""The compiled module refuses arrays of another type, axis or length, whichever function they are given to.

Arrays inside kernels are trusted, so a wrong shape would read or write outside them, and a converted output would be
filled and thrown away. `CASES` holds a valid call of every function of the module; each of its
arrays is spoilt in turn.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import _core
from rankwise.design import additive, cells, gram, terms
from rankwise.design.terms import Curve, Surface, Terms

M, Q, N, K = 6, 2, 3, 2  # rows, queries, columns, vectors


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def small(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def reals(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape)


@dataclass
class Case:
    """A valid call.

    `free` names axes, as (argument, axis), whose length nothing else tells: what the function takes the length from.
    """

    call: Callable[..., Any]
    arguments: dict[str, Any]
    outputs: tuple[str, ...] = ()
    free: tuple[tuple[str, int], ...] = ()


def block_arguments(coupling: str = "others") -> dict[str, Any]:
    return {
        "order": ids(0, 2, 4, 1, 3, 5),
        "query_start": ids(0, 3, 6),
        "segment_start": ids(0, 1, 3, 5, 6),
        "query_segment": ids(0, 2, 4),
        "degree": np.ones(4),
        "scale": np.ones(Q),
        "coupling": coupling,
        "row_weight": np.ones(M),
        "level_value": np.arange(4.0),
    }


def blocks(coupling: str = "others") -> _core.Blocks:
    return _core.Blocks(**block_arguments(coupling))


def fold_arguments() -> dict[str, Any]:
    return {
        "fold": small(0, 1, 0, 1, -1, 0),
        "degree": np.ones((4, K)),
        "scale": np.ones((Q, K)),
        "held_out": np.zeros(M),
    }


def plan_arguments() -> dict[str, Any]:
    return {
        "chunk_start": ids(0, 3, 6),
        "chunk_query": ids(0, 1),
        "chunk_large": ids(-1, -1),
        "chunk_work": ids(0, 3, 6),
        "large_query": ids(),
        "large_start": ids(0),
        "colsum": np.zeros(0),
    }


def matrix_arguments() -> dict[str, Any]:
    return {
        "values": np.arange(1.0, M + 1),
        "ids": small(0, 1, 2, 0, 1, 2),
        "start": np.arange(M + 1, dtype=np.int64),
    }


def query_arguments() -> dict[str, Any]:
    codes = [_core.counting_code("brute"), _core.counting_code("levels")]
    return {
        "start": ids(0, 3, 6),
        "counting": np.array(codes, dtype=np.uint8),
        "n_levels": small(3, 3),
        "rank": small(0, 1, 2, 2, 0, 1),
        "weight": np.ones(M),
        "scale": np.ones(Q),
    }


def point_arguments() -> dict[str, Any]:
    return {
        "score": np.zeros(M),
        "order": small(0, 1, 2, 0, 1, 2),
        "sorted_score": np.zeros(M),
        "sorted_rank": small(0, 1, 2, 2, 0, 1),
    }


def grouping() -> dict[str, Any]:
    return {"rows": ids(0, 2, 4, 1, 3, 5), "offsets": ids(0, 3, 6)}


def top_metric(call: Callable[..., Any], sums: np.ndarray) -> Case:
    arguments = {
        **grouping(),
        "scores": reals(M, K),
        "values": np.full(M, 0.5),
        "discount_sums": sums,
        "k": 3,
        "stable": False,
        "out": np.zeros((K, Q)),
        "n_threads": 1,
    }
    return Case(call, arguments, ("out",))


def text_block() -> np.ndarray:
    return np.frombuffer(b"1 qid:1 1:0.5\n" + bytes(_core.TEXT_PADDING), dtype=np.uint8).copy()


def append_to(rows: Any) -> Case:
    arguments = {
        "block": text_block(),
        "size": text_block().size - _core.TEXT_PADDING,
        "base": 1,
        "base_is_sure": True,
        "last_column": 9,
        "missing": "error",
        "n_threads": 1,
    }
    return Case(rows.append, arguments)


def with_matrix(call: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    order = list(argument_names(call))
    both = {**matrix_arguments(), **arguments, "n_threads": 1, "disk": None}
    return {name: both[name] for name in order}


def argument_names(call: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments, from the first line of the docstring that nanobind writes."""
    signature = str(call.__doc__).splitlines()[0]
    inner = signature[signature.index("(") + 1 :]
    names = []
    depth = 0
    for part in inner.replace("[", " [ ").replace("]", " ] ").split():
        depth += (part == "[") - (part == "]")
        if depth == 0 and part.endswith(":"):
            names.append(part[:-1].lstrip("("))
    return names


DISCOUNTS = np.array([0.0, 1.0, 1.6, 2.1])

CASES: dict[str, Callable[[], Case]] = {
    "Blocks": lambda: Case(_core.Blocks, block_arguments()),
    "Folds": lambda: Case(_core.Folds, fold_arguments(), free=(("degree", 0), ("scale", 0))),
    "Plan": lambda: Case(_core.Plan, plan_arguments(), free=(("colsum", 0), ("large_query", 0))),
    "RankedQueries": lambda: Case(_core.RankedQueries, query_arguments()),
    "SortedScores": lambda: Case(_core.SortedScores, point_arguments()),
    "counting_code": lambda: Case(_core.counting_code, {"name": "levels"}),
    "laplacian": lambda: Case(
        _core.laplacian,
        {
            "blocks": blocks(),
            "folds": _core.Folds(**fold_arguments()),
            "F": reals(M, K),
            "out": np.zeros((M, K)),
            "n_threads": 1,
        },
        ("out",),
    ),
    "csr_dot": lambda: Case(
        _core.csr_dot,
        with_matrix(_core.csr_dot, rank=small(0, 1, 2), V=reals(N, K), out=np.zeros((M, K))),
        ("out",),
    ),
    "csr_transposed_dot": lambda: Case(
        _core.csr_transposed_dot,
        with_matrix(_core.csr_transposed_dot, rank=small(0, 1, 2), U=reals(M, K), out=np.zeros((N, K))),
        ("out",),
    ),
    "csr_fused": lambda: Case(
        _core.csr_fused,
        with_matrix(
            _core.csr_fused,
            rank=small(0, 1, 2),
            blocks=blocks(),
            folds=_core.Folds(**fold_arguments()),
            plan=_core.Plan(**plan_arguments()),
            V=reals(N, K),
            out=np.zeros((N, K)),
        ),
        ("out",),
    ),
    "csr_gram_diagonal": lambda: Case(
        _core.csr_gram_diagonal,
        with_matrix(_core.csr_gram_diagonal, blocks=blocks(), out=np.zeros(N)),
        ("out",),
        (("out", 0),),
    ),
    "csr_weighted_sum": lambda: Case(
        _core.csr_weighted_sum,
        with_matrix(
            _core.csr_weighted_sum,
            blocks=blocks(),
            folds=_core.Folds(**fold_arguments()),
            first=0,
            last=3,
            out=np.zeros((N, K)),
        ),
        ("out",),
        (("out", 0),),
    ),
    "count_columns": lambda: Case(
        _core.count_columns,
        {"ids": small(0, 1, 1), "out": np.zeros(N, dtype=np.int64), "n_threads": 1},
        ("out",),
        (("ids", 0), ("out", 0)),
    ),
    "rename_columns": lambda: Case(
        _core.rename_columns,
        {
            "ids": small(0, 1, 1),
            "rank": small(2, 1, 0),
            "out": np.zeros(3, dtype=np.uint16),
            "n_threads": 1,
        },
        ("out",),
        (("rank", 0),),
    ),
    "dense_gram": lambda: Case(
        _core.dense_gram,
        {
            "X": reals(M, N),
            "blocks": blocks(),
            "pull": np.zeros((M, 1)),
            "out": np.zeros((N, N)),
            "rhs": np.zeros((N, 1)),
            "buffer_rows": 8,
            "n_stripes": 1,
            "dsyrk": gram._DSYRK,
            "n_threads": 1,
        },
        ("out", "rhs"),
    ),
    "centre_queries": lambda: Case(
        _core.centre_queries,
        {
            "blocks": blocks(),
            "first": 0,
            "last": 2,
            "Z": reals(M, N),
            "sums": np.zeros((4, N)),
            "n_threads": 1,
        },
        ("Z", "sums"),
    ),
    "shift_rows": lambda: Case(
        _core.shift_rows,
        {
            "blocks": blocks(),
            "first": 0,
            "last": 6,
            "shift": np.zeros(N),
            "Z": reals(M, N),
            "sums": np.zeros((4, N)),
            "origin": 0,
        },
        ("Z", "sums"),
    ),
    "couple_relative": lambda: Case(
        _core.couple_relative,
        {
            "blocks": blocks("relative"),
            "first": 0,
            "last": 2,
            "sums": reals(4, N),
            "out": np.zeros((4, N)),
            "n_threads": 1,
        },
        ("out",),
    ),
    "sort_scores": lambda: Case(
        _core.sort_scores,
        {
            "queries": _core.RankedQueries(**query_arguments()),
            "score": reals(M),
            "presorted_from": 100,
            "order": np.zeros(M, dtype=np.int32),
            "sorted_score": np.zeros(M),
            "sorted_rank": np.zeros(M, dtype=np.int32),
            "n_threads": 1,
        },
        ("order", "sorted_score", "sorted_rank"),
    ),
    "violation_counts": lambda: Case(
        _core.violation_counts,
        {
            "queries": _core.RankedQueries(**query_arguments()),
            "point": _core.SortedScores(**point_arguments()),
            "margin": 1.0,
            "won": np.zeros(M),
            "lost": np.zeros(M),
            "n_threads": 1,
        },
        ("won", "lost"),
    ),
    "violation_laplacian": lambda: Case(
        _core.violation_laplacian,
        {
            "queries": _core.RankedQueries(**query_arguments()),
            "point": _core.SortedScores(**point_arguments()),
            "margin": 1.0,
            "won": np.ones(M),
            "lost": np.ones(M),
            "V": reals(M, K),
            "out": np.zeros((M, K)),
            "n_threads": 1,
        },
        ("out",),
    ),
    "smoothed_violations": lambda: Case(
        _core.smoothed_violations,
        {
            "queries": _core.RankedQueries(**query_arguments()),
            "point": _core.SortedScores(**point_arguments()),
            "margin": 1.0,
            "delta": 0.5,
            "won": np.zeros(M),
            "lost": np.zeros(M),
            "excess": np.zeros(M),
            "n_threads": 1,
        },
        ("won", "lost", "excess"),
    ),
    "preference_laplacian": lambda: Case(
        _core.preference_laplacian,
        {
            "start": ids(0, 1, 2),
            "neighbour": small(1, 0),
            "weight": np.ones(2),
            "F": reals(2, K),
            "out": np.zeros((2, K)),
            "n_threads": 1,
        },
        ("out",),
    ),
    "count_ridge_pairs": lambda: Case(
        _core.count_ridge_pairs,
        {
            "across": reals(M, M),
            "first_row": 0,
            "first_column": 0,
            "label": reals(M),
            "diagonal": np.ones(M),
            "residual": reals(M),
            "root_share": np.full(M, 0.4),
            "weighted": False,
            "rounding": 1e-12,
        },
        free=(("across", 0), ("across", 1)),
    ),
    "level_pairs": lambda: Case(
        _core.level_pairs,
        {
            **grouping(),
            "labels": np.arange(6.0),
            "weights": np.ones(M),
            "levels": np.zeros(M, dtype=np.int32),
            "n_levels": np.zeros(Q, dtype=np.int64),
            "totals": np.zeros((Q, 2)),
            "n_threads": 1,
        },
        ("levels", "n_levels", "totals"),
    ),
    "count_pairs": lambda: Case(
        _core.count_pairs,
        {
            **grouping(),
            "scores": reals(M, K),
            "levels": small(0, 1, 2, 0, 1, 2),
            "n_levels": ids(3, 3),
            "weights": np.ones(M),
            "out": np.zeros((K, Q, 3)),
            "n_threads": 1,
        },
        ("out",),
    ),
    "best_gains": lambda: Case(
        _core.best_gains,
        {
            **grouping(),
            "values": np.arange(6.0),
            "discount_sums": DISCOUNTS,
            "k": 3,
            "out": np.zeros(Q),
            "n_threads": 1,
        },
        ("out",),
    ),
    "discounted_gain": lambda: top_metric(_core.discounted_gain, DISCOUNTS),
    "mean_normalised_gain": lambda: top_metric(_core.mean_normalised_gain, DISCOUNTS),
    "relevant_at_top": lambda: top_metric(_core.relevant_at_top, np.zeros(0)),
    "summed_precision": lambda: top_metric(_core.summed_precision, np.zeros(0)),
    "reciprocal_rank": lambda: top_metric(_core.reciprocal_rank, np.zeros(0)),
    "expected_reciprocal_rank": lambda: top_metric(_core.expected_reciprocal_rank, np.zeros(0)),
    "TextRows32": lambda: append_to(_core.TextRows32()),
    "TextRows64": lambda: append_to(_core.TextRows64()),
    "write_svmlight": lambda: Case(
        _core.write_svmlight,
        {
            "values": np.ones(2),
            "columns": small(0, 1),
            "start": ids(0, 1, 2),
            "labels": np.ones(2),
            "run_start": ids(0, 1),
            "run_text": b"ab",
            "run_text_end": ids(1, 2),
            "base": 1,
            "n_threads": 1,
        },
    ),
    "compressed_misfit": lambda: Case(
        _core.compressed_misfit,
        {"start": ids(0, 1, 2), "indices": small(0, 1), "limit": 2, "n_threads": 1},
        free=(("start", 0), ("indices", 0)),  # it answers with what is wrong
    ),
    "values_fit": lambda: Case(
        _core.values_fit, {"values": np.ones(3), "limit": 2.0, "n_threads": 1}, free=(("values", 0),)
    ),
    "DirectFiles": lambda: Case(
        _core.DirectFiles, {"values": os.dup(0), "ids": os.dup(0), "values_begin": 0, "ids_begin": 0}
    ),
    "Disk": lambda: Case(_core.Disk, {"files": None, "first": 0, "window": 4}),
}


class Recorder:
    """Stands in for the compiled module, and keeps the arguments of the first call of each function."""

    def __init__(self, calls: dict[str, dict[str, Any]]) -> None:
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        real = getattr(_core, name)

        def call(*given: Any, **named: Any) -> Any:
            names = argument_names(real) if given else []
            self.calls.setdefault(name, {**dict(zip(names, given, strict=False)), **named})
            return real(*given, **named)

        return call


def additive_calls() -> dict[str, dict[str, Any]]:
    """Return valid arguments for the kernels of additive models: those of a small design."""
    calls: dict[str, dict[str, Any]] = {}
    curves = [Curve(0, np.array([0.0, 0.5, 1.0])), Curve(1, np.array([0.0, 1.0]))]
    X = np.random.default_rng(0).uniform(size=(M, 2))
    both = Terms(tuple(curves), (Surface(curves[0], curves[1]),))
    modules = (additive, cells, terms)
    try:
        for module in modules:
            module._core = Recorder(calls)
        for rows in (X, sp.csr_matrix(X)):
            design = additive.AdditiveDesign.encode(rows, both)
            terms.predict(rows, both, np.zeros((both.n_values, K)))
        design.dot(np.zeros((design.shape[1], K)))
        design.tdot(np.zeros((M, K)))
        design.matrix()
    finally:
        for module in modules:
            module._core = _core
    n = design.cells.n_entries
    shared = {"blocks": blocks(), "folds": _core.Folds(**fold_arguments()), "n_parts": 1, "n_threads": 1}
    calls["additive_fused"] = {
        "X": design.compiled,
        **shared,
        "plan": _core.Plan(**plan_arguments()),
        "V": np.zeros((n, K)),
        "out": np.zeros((n, K)),
    }
    calls["additive_weighted_sum"] = {
        "X": design.compiled,
        **shared,
        "first": 0,
        "last": 3,
        "out": np.zeros((n, K)),
    }
    of_curves = additive.AdditiveDesign.encode(X, Terms(tuple(curves)))
    n = of_curves.cells.n_entries
    calls["additive_squares"] = {
        "X": of_curves.compiled,
        "weight": np.ones(M),
        "out": np.zeros((n, n)),
        "n_threads": 1,
    }
    calls["additive_sums_of_units"] = {
        "X": of_curves.compiled,
        "rows": np.arange(M),
        "weight": np.ones(M),
        "start": ids(0, 2, M),
        "out": np.zeros((2, n)),
        "n_threads": 1,
    }
    return calls


# Rows of X and of the codes may be fewer than there is room for.
ADDITIVE_FREE: dict[str, tuple[tuple[str, int], ...]] = {
    "Additive": (("codes", 2),),
    "additive_encode": (("X", 0), ("out", 0), ("out", 2)),
    "additive_encode_csr": (("start", 0), ("out", 0), ("out", 2)),
}
for _name, _arguments in additive_calls().items():
    CASES[_name] = lambda name=_name, given=_arguments: Case(
        getattr(_core, name),
        {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in given.items()},
        tuple({"out"} & set(given)),
        ADDITIVE_FREE.get(name, ()),
    )
_BINS = np.random.default_rng(0).integers(16, size=(N, M)).astype(np.uint8)
CASES["pair_histograms"] = lambda: Case(
    _core.pair_histograms,
    {
        "bins": _BINS,
        "g": reals(M),
        "h": np.ones(M),
        "first": ids(0, 1),
        "second": ids(1, 2),
        "out": np.zeros((2, 512)),
        "n_threads": 1,
    },
    ("out",),
)
CASES["widest_instructions"] = lambda: Case(_core.widest_instructions, {})


def spoilable() -> list[tuple[str, str]]:
    return [
        (name, argument)
        for name, make in CASES.items()
        for argument, value in make().arguments.items()
        if isinstance(value, np.ndarray)
    ]


def test_every_function_of_the_module_is_in_the_table():
    public = {name for name in dir(_core) if not name.startswith("_") and callable(getattr(_core, name))}
    assert public == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_calls_of_the_table_are_valid(name):
    case = CASES[name]()
    case.call(**case.arguments)


@pytest.mark.parametrize(("name", "argument"), spoilable())
def test_other_types_and_axes_are_refused(name, argument):
    case = CASES[name]()
    given = case.arguments[argument]
    spoilt = [given.astype(np.complex64), given[None]]
    if given.dtype.itemsize > 1:
        spoilt.append(given.astype(given.dtype.newbyteorder()))
    if given.dtype == np.float64 and argument not in {"values", "X"}:
        spoilt.append(given.astype(np.float32))  # which those two take
    if (
        given.size > 1 and argument not in {"X", "scores"}
    ) or argument in case.outputs:  # those may have any strides
        spoilt.append(np.repeat(given, 2, axis=-1)[..., ::2])
    for array in spoilt:
        before = array.copy()
        with pytest.raises(TypeError):
            case.call(**{**case.arguments, argument: array})
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize(("name", "argument"), spoilable())
def test_other_lengths_are_refused(name, argument):
    given = CASES[name]().arguments[argument]
    for axis in range(given.ndim):
        if (argument, axis) in CASES[name]().free or given.shape[axis] == 0:
            continue
        case = CASES[name]()
        shorter = np.ascontiguousarray(np.delete(given, -1, axis=axis))
        with pytest.raises(ValueError, match=r"\w"):
            case.call(**{**case.arguments, argument: shorter})


@pytest.mark.parametrize("name", ["csr_fused", "csr_gram_diagonal", "csr_weighted_sum"])
def test_blocks_of_more_rows_than_the_matrix_are_refused(name):
    case = CASES[name]()
    fewer = {"values": np.ones(M - 1), "ids": np.zeros(M - 1, dtype=np.int32), "start": np.arange(M)}
    with pytest.raises(ValueError, match="rows that are not there"):
        case.call(**{**case.arguments, **fewer})


def test_an_output_that_would_be_converted_stays_as_it_is():
    case = CASES["violation_counts"]()
    out = np.full(M, -1.0, dtype=np.float32)
    with pytest.raises(TypeError):
        case.call(**{**case.arguments, "won": out})
    assert (out == -1.0).all()


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("Blocks", "coupling", "some"),
        ("counting_code", "name", "guess"),
        ("TextRows64", "missing", "maybe"),
        ("RankedQueries", "counting", np.array([1, 9], dtype=np.uint8)),
        ("RankedQueries", "n_levels", np.array([3, 9], dtype=np.int32)),
        ("Blocks", "order", ids(0, 2, 4, 1, 3, -1)),
        ("Blocks", "query_start", ids(0, 7, 6)),
        ("Disk", "window", 0),
        ("discounted_gain", "k", 0),
        ("centre_queries", "last", 3),
    ],
)
def test_values_outside_an_enumeration_or_a_range_are_refused(name, argument, value):
    case = CASES[name]()
    with pytest.raises(ValueError, match=r"\w"):
        case.call(**{**case.arguments, argument: value})


def test_enumerations_cross_by_name():
    assert len({_core.counting_code(name) for name in ("no_pairs", "brute", "levels", "fenwick")}) == 4
    rows = _core.TextRows64()
    case = append_to(rows)
    text = np.frombuffer(b"x 1:0.5\n" + bytes(_core.TEXT_PADDING), dtype=np.uint8).copy()
    assert rows.append(**{**case.arguments, "block": text, "size": 8})[0] == "label"


# Each would take a minute or more, in little memory.
LONG_CALLS = {
    "a sparse product": """
        n = 10**7
        start, out = np.arange(0, n + 1, n // 100), np.zeros((100, 20_000))
        columns = np.tile(np.arange(10, dtype=np.int32), n // 10)
        _core.csr_dot(np.ones(n, dtype=np.float32), columns, start, None, np.ones((10, 20_000)), READY(out), 2)
    """,
    "a dense Gram matrix": """
        from rankwise.design import gram
        m, n = 5_000_000, 400
        whole = np.array([0, m])
        blocks = _core.Blocks(
            order=np.arange(m), query_start=whole, segment_start=whole, query_segment=np.array([0, 1]),
            degree=np.ones(1), scale=np.ones(1), coupling="all", row_weight=None, level_value=None,
        )
        X = np.broadcast_to(np.arange(float(n)), (m, n))
        _core.dense_gram(
            X, blocks, np.zeros((m, 1)), READY(np.zeros((n, n))), np.zeros((n, 1)), 300, 32, gram._DSYRK, 2
        )
    """,
    "a metric": """
        n = 1 << 20
        scores = np.broadcast_to(np.random.default_rng(0).normal(size=(n, 1)), (n, 1000))
        _core.count_pairs(
            np.arange(n), np.array([0, n]), scores, np.arange(n, dtype=np.int32), np.array([n]), None,
            READY(np.zeros((1000, 1, 3))), 1,
        )
    """,
}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
@pytest.mark.parametrize("call", LONG_CALLS.values(), ids=list(LONG_CALLS))
def test_ctrl_c_ends_a_kernel_inside_its_call(call):
    script = textwrap.dedent(
        """
        import threading
        import numpy as np
        import rankwise._core as _core

        def READY(argument):
            # Once the call has begun, which the main thread is about to do.
            threading.Timer(0.3, print, ["ready"], {"flush": True}).start()
            return argument

        try:
        {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    ).replace("{call}", textwrap.indent(textwrap.dedent(call), "    "))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait() == 0


def test_a_kernel_of_another_thread_is_not_interrupted():
    """Signals are for the main thread; elsewhere kernels run to their end."""
    case = CASES["csr_dot"]()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(case.call, **case.arguments).result()
    assert np.isfinite(case.arguments["out"]).all()
