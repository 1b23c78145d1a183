"""The compiled module refuses arrays of another type, axis or length, whichever function they are given to.

Arrays inside kernels are trusted, so a wrong shape would read or write outside them, and a converted output would be
filled and thrown away. What the library passes to every function is recorded; each of its arrays is spoilt in turn.
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import AdditiveRanker, AdditiveRankerCV, RankRLS, RankRLSCV, RankSVM, _core, metrics
from rankwise.data import load_svmlight, save_svmlight
from rankwise.design import additive, csr, gram
from rankwise.design.terms import predict

FUNCTIONS = sorted(name for name in dir(_core) if not name.startswith("_") and callable(getattr(_core, name)))
WITHOUT_ARRAYS = {"DirectFiles", "Disk", "TextRows32", "TextRows64", "counting_code", "widest_instructions"}
# Axes whose length nothing else tells: what a function takes the length from, or rows that may be fewer than there is
# room for. `compressed_misfit` answers with what is wrong.
FREE = {
    "Folds": {("degree", 0), ("scale", 0)},
    "csr_gram_diagonal": {(4, 0)},
    "csr_weighted_sum": {(7, 0)},
    "count_columns": {(0, 0), (1, 0)},
    "rename_columns": {(1, 0)},
    "count_ridge_pairs": {(0, 0), (0, 1)},
    "compressed_misfit": {(0, 0), (1, 0)},
    "values_fit": {(0, 0)},
    "Additive": {("codes", 2)},
    "additive_encode": {(0, 0), (3, 2)},
    "additive_encode_csr": {(2, 0), (6, 2)},
}


class Recorder:
    """Stands in for the compiled module, and keeps what each function gets: of its calls that with most arrays."""

    def __init__(self):
        self.calls = {}

    def __getattr__(self, name):
        real = getattr(_core, name)

        def call(*given, **named):
            arguments = {at: copied(value) for at, value in [*enumerate(given), *named.items()]}
            if n_arrays(arguments) >= max(1, n_arrays(self.calls.get(name, {}))):
                self.calls[name] = arguments
            return real(*given, **named)

        return call if callable(real) else real


def copied(value):
    return value.copy(order="K") if isinstance(value, np.ndarray) else value


def arrays_of(arguments):
    return {at: value for at, value in arguments.items() if isinstance(value, np.ndarray)}


def n_arrays(arguments):
    return len(arrays_of(arguments))


def exercise():
    """Do what calls every function of the compiled module."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(61, 7)), rng.integers(0, 4, size=61).astype(float), np.arange(61) // 12
    weight, S = rng.random(61) + 0.5, sp.random(61, 9, density=0.5, random_state=0, format="csr")
    for rows in (X, S):
        RankRLS(solver="direct").fit(rows, y, qid, weight)
        RankRLS(solver="direct", ties="exclude", cost="relative").fit(rows, y, qid, weight)
        RankRLS(solver="eigen", ties="exclude").fit(rows, y, qid, weight)
        RankRLSCV([0.1, 1.0], cv="leave-query-out", ties="exclude").fit(rows, y, qid, weight)
        RankSVM(0.1).fit(rows, y, qid, weight)
    for ids in (qid, None):
        RankRLS(solver="cg", penalty_power=0.25).fit(S, y, ids, weight)
        RankRLSCV([0.1, 1.0], cv=3).fit(S, y, ids, weight)
        RankSVM(0.1, loss="squared_hinge").fit(S, y, ids, weight)
        AdditiveRanker(loss="squared", interactions=0).fit(X, y, ids, weight)
        AdditiveRankerCV([0.1], loss="squared", interactions=0, cv=2).fit(X, y, ids, weight)
    curves = AdditiveRanker(interactions=1).fit(X, y, qid, weight)
    for rows in (X, sp.csr_matrix(X)):
        additive.AdditiveDesign.encode(rows, curves.terms_)
        predict(rows, curves.terms_, np.zeros((curves.terms_.n_values, 2)))
    RankRLSCV([0.1, 1.0], cv="leave-pair-out", method="tikhonov").fit(X[:20], rng.normal(size=20))
    RankRLS().fit_pairs(X, [[0, 1], [2, 3], [3, 1]], weight=[1.0, 2.0, 3.0])
    for name in (
        "pairwise_error",
        "ndcg",
        "mean_ndcg",
        "precision",
        "average_precision",
        "reciprocal_rank",
        "err",
    ):
        options = {"max_grade": 3} if name == "err" else {}
        getattr(metrics, name)(y, X[:, 0], qid, **options)
    metrics.pairwise_error(y, X[:, 0], qid, sample_weight=weight)
    text = io.BytesIO()
    save_svmlight(S, y, text, qid=qid)
    load_svmlight(io.BytesIO(text.getvalue()))


@pytest.fixture(scope="module")
def calls():
    """Arguments of a valid call of every function that takes arrays, by name or place."""
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("rankwise.") and getattr(module, "_core", None) is _core:
                patch.setattr(module, "_core", recorder)
        patch.setattr(gram, "BLOCK_SIZE", 70)
        patch.setattr(csr, "MANY_NONZEROS", 0)
        patch.setattr(additive, "CHUNK_ROWS", 48)
        patch.setattr(additive, "CHUNK_WORK", 1 << 9)
        patch.setattr(additive, "PART_WORK", 1 << 11)
        exercise()
    found = recorder.calls
    # Sums of queries that are cut, as products of matrices and of codes ask for them.
    values, ids, start, blocks = (found["csr_gram_diagonal"][at] for at in range(4))
    folds, out = found["additive_fused"][2], np.zeros((9, 2))
    found["csr_weighted_sum"] = dict(
        enumerate([values, ids, start, blocks, None, 0, 3, out[:, :1].copy(), 1, None])
    )
    codes, blocks, _, _, table = (found["additive_fused"][at] for at in range(5))
    found["additive_weighted_sum"] = dict(enumerate([codes, blocks, folds, 0, 3, np.zeros_like(table), 1, 1]))
    found["append"] = {"block": text_block(), "size": text_block().size - _core.TEXT_PADDING, **TEXT_OPTIONS}
    return found


TEXT_OPTIONS = {"base": 1, "base_is_sure": True, "last_column": 9, "missing": "error", "n_threads": 1}


def text_block(text=b"1 qid:1 1:0.5\n"):
    return np.frombuffer(text + bytes(_core.TEXT_PADDING), dtype=np.uint8).copy()


def call(name, arguments, **changed):
    """Call a function by what was recorded, but for one argument; some have a place in place of a name."""
    function = _core.TextRows64().append if name == "append" else getattr(_core, name)
    arguments = {at: copied(value) for at, value in arguments.items()}
    for at, value in changed.items():
        arguments[next(own for own in arguments if str(own) == at)] = value
    places = [at for at in arguments if isinstance(at, int)]
    return function(*[arguments.pop(at) for at in places], **arguments)


def test_every_function_of_the_module_is_recorded(calls):
    assert set(calls) - {"append"} == set(FUNCTIONS) - WITHOUT_ARRAYS


NAMES = [*sorted(set(FUNCTIONS) - WITHOUT_ARRAYS), "append"]
# Rows and scores may have any strides.
STRIDED = {
    **dict.fromkeys(["additive_predict", "additive_encode", "dense_gram"], 0),
    **dict.fromkeys(["count_pairs", "discounted_gain", "mean_normalised_gain", "relevant_at_top"], 2),
    **dict.fromkeys(["summed_precision", "reciprocal_rank", "expected_reciprocal_rank"], 2),
}


@pytest.mark.parametrize("name", NAMES)
def test_other_types_and_axes_are_refused(name, calls):
    call(name, calls[name])
    for at, given in arrays_of(calls[name]).items():
        spoilt = [np.zeros(given.shape, dtype=np.complex64), given[None]]
        if given.dtype.itemsize > 1:
            spoilt.append(given.astype(given.dtype.newbyteorder()))
        if given.size > 1 and at != STRIDED.get(name):
            spoilt.append(np.repeat(given, 2, axis=-1)[..., ::2])
        for array in spoilt:
            with pytest.raises(TypeError):
                call(name, calls[name], **{str(at): array})


@pytest.mark.parametrize("name", NAMES)
def test_other_lengths_are_refused(name, calls):
    for at, given in arrays_of(calls[name]).items():
        for axis in range(given.ndim):
            if (at, axis) in FREE.get(name, ()) or given.shape[axis] == 0:
                continue
            shorter = np.ascontiguousarray(np.delete(given, -1, axis=axis))
            with pytest.raises(ValueError, match=r"\w"):
                call(name, calls[name], **{str(at): shorter})


def test_blocks_of_more_rows_than_the_matrix_are_refused(calls):
    fewer = {0: np.ones(60), 1: np.zeros(60, dtype=np.int32), 2: np.arange(61, dtype=np.int32)}
    with pytest.raises(ValueError, match="rows that are not there"):
        call("csr_gram_diagonal", {**calls["csr_gram_diagonal"], **fewer})


def test_chunks_that_runs_do_not_fill_are_refused(calls):
    """Kernels read and write sixteen rows at a time."""
    columns = calls["Additive"]["codes"].shape[1]
    with pytest.raises(ValueError, match="runs"):
        call("Additive", calls["Additive"], codes=np.zeros((99, columns, 8), dtype=np.uint32))


def test_an_output_that_would_be_converted_stays_as_it_is(calls):
    out = np.full(61, -1.0, dtype=np.float32)
    with pytest.raises(TypeError):
        _core.violation_counts(*{**calls["violation_counts"], 3: out}.values())
    assert (out == -1.0).all()


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("Blocks", "coupling", "some"),
        ("append", "missing", "maybe"),
        ("RankedQueries", "counting", np.full(6, 9, dtype=np.uint8)),
        ("Blocks", "order", np.full(20, -1)),
        ("Blocks", "query_start", np.array([0, 77, 6, 7, 8, 9, 20])),
        ("discounted_gain", "5", 0),
        ("centre_queries", "2", 99),
    ],
)
def test_values_outside_an_enumeration_or_a_range_are_refused(name, argument, value, calls):
    with pytest.raises(ValueError, match=r"\w"):
        call(name, calls[name], **{argument: value})


def test_enumerations_cross_by_name():
    assert len({_core.counting_code(name) for name in ("no_pairs", "brute", "levels", "fenwick")}) == 4
    for wrong in (lambda: _core.counting_code("guess"), lambda: _core.Disk(None, 0, 0)):
        with pytest.raises(ValueError, match=r"\w"):
            wrong()
    block = text_block(b"x 1:0.5\n")
    assert _core.TextRows64().append(block, 8, **TEXT_OPTIONS)[0] == "label"


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


def test_a_kernel_of_another_thread_is_not_interrupted(calls):
    """Signals are for the main thread; elsewhere kernels run to their end."""
    out = np.full((61, 1), np.nan)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_core.csr_dot, *{**calls["csr_dot"], 5: out}.values()).result()
    assert np.isfinite(out).all()
