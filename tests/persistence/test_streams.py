"""What partial_fit remembers survives a file: the next call goes on as if nothing had happened."""

import io
import re
import tracemalloc

import numpy as np
import pytest

import rankwise
from model_checks import opened
from rankwise import RankRLS
from rankwise.exceptions import InvalidInputError, ModelFileError
from rankwise.persistence.container import Container, write_container


def batches(seed=0, outputs=1):
    rng = np.random.default_rng(seed)
    for number in range(4):
        X = rng.normal(size=(30, 5)) + np.array([0, 1e6, 0, 0, 0])
        y = rng.integers(0, 3, size=(30, outputs) if outputs > 1 else 30).astype(float)
        yield X, y, np.arange(30) // 6 + 10 * number


def through_a_file(model):
    stream = io.BytesIO()
    model.save(stream)
    return rankwise.load(io.BytesIO(stream.getvalue())), stream.getvalue()


@pytest.mark.parametrize("options", [{}, {"ties": "exclude", "cost": "unit"}, {"query_weight": "equal"}])
@pytest.mark.parametrize("with_qid", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_stream_goes_on_where_it_was_saved(options, with_qid, outputs):
    model, again = RankRLS(**options), RankRLS(**options)
    for X, y, qid in batches(outputs=outputs):
        model.partial_fit(X, y, qid if with_qid else None)
        again.partial_fit(X, y, qid if with_qid else None)
        again, data = through_a_file(again)
        assert through_a_file(again)[1] == data
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.n_samples_seen_ == 120


def test_queries_that_came_before_are_still_known():
    X, y, qid = next(batches())
    again, _ = through_a_file(RankRLS().partial_fit(X, y, qid))
    with pytest.raises(InvalidInputError, match="came in an earlier call"):
        again.partial_fit(X, y, qid)


def test_what_learns_as_rows_come_starts_anew():
    X, y, qid = next(batches())
    again, _ = through_a_file(RankRLS(solver="stochastic").partial_fit(X, y, qid))
    assert "_stream" not in vars(again)


def parts_of(**options):
    """Return a file of a stream as something to write again, and what it says of the stream."""
    rng = np.random.default_rng(0)
    X, with_qid = rng.normal(size=(30, 5)) + np.array([0, 1e6, 0, 0, 1e5]), options.pop("with_qid", True)
    outputs = options.pop("outputs", 1)
    y = rng.integers(0, 3, size=(30, outputs) if outputs > 1 else 30).astype(float)
    _, data = through_a_file(RankRLS(**options).partial_fit(X, y, np.arange(30) // 6 if with_qid else None))
    container = opened(data)
    arrays = dict(container.arrays)

    def put(array):
        arrays[f"more {len(arrays)}"] = np.asarray(array)
        return {"$array": f"more {len(arrays) - 1}"}

    return Container(container.header, arrays), container.header["steps"][0]["stream"], put


def written_again(container):
    out = io.BytesIO()
    write_container(out, container)
    return rankwise.load(io.BytesIO(out.getvalue()))


def with_parts(**changes):
    return lambda stream, put: stream.update(
        {key: put(value) if isinstance(value, np.ndarray) else value for key, value in changes.items()}
    )


def with_shift(columns, values):
    def change(stream, put):
        stream["shift"] = [put(columns), put(values)]

    return change


def with_statistic(place, array):
    def change(stream, put):
        part = stream["memory"]
        for at in place[:-1]:
            part = part[at]
        part[place[-1]] = put(array) if isinstance(array, np.ndarray) else array

    return change


INCOMPLETE, KIND, LEVEL = "is not complete", "is of the wrong kind", "a level that is none"
OUTPUTS, PAIRS, OFFSETS = (
    "outputs that are none",
    "pairs of no known kind",
    "offsets of columns that are none",
)
HOSTILE = {
    "one thing more": (with_parts(more=1), INCOMPLETE),
    "one thing less": (lambda stream, _: stream.pop("seen"), INCOMPLETE),
    "queries by a number": (with_parts(with_qid=1), KIND),
    "a fraction of rows": (with_parts(n_rows=30.0), KIND),
    "rows that are true": (with_parts(n_rows=True), KIND),
    "ids that are text": (with_parts(seen="012"), KIND),
    "a number of pairs": (with_parts(n_pairs=7), KIND),
    "pairs of two outputs": (with_parts(n_pairs=np.array([1, 2])), KIND),
    "pairs that are fractions": (with_parts(n_pairs=np.array([1.0])), KIND),
    "queries ignored in fractions": (with_parts(n_ignored=np.array([1.0])), KIND),
    "pairs in a table": (with_parts(n_ignored=np.array([[1]])), KIND),
    "ids that are none": (with_parts(seen=[{"a": 1}]), "an id of a query is none"),
    "outputs by a number": (with_parts(label_shape=1), OUTPUTS),
    "outputs in a table": (with_parts(label_shape=[1, 1]), OUTPUTS),
    "no outputs": (with_parts(label_shape=[0]), OUTPUTS),
    "an output that is true": (with_parts(label_shape=[True]), OUTPUTS),
    "outputs without end": (with_parts(label_shape=[2**31]), OUTPUTS),
    "outputs almost without end": (with_parts(label_shape=[2**31 - 1]), KIND),
    "an output in a column": (with_parts(label_shape=[1]), r"not of shape \(5, 1\)"),
    "options that are text": (with_parts(options="abc"), PAIRS),
    "too few options": (with_parts(options=["include", "magnitude"]), PAIRS),
    "too many options": (with_parts(options=["include", "magnitude", "size", "size"]), PAIRS),
    "unknown ties": (with_parts(options=["some", "magnitude", "size"]), PAIRS),
    "unknown costs": (with_parts(options=["include", "some", "size"]), PAIRS),
    "unknown weights": (with_parts(options=["include", "magnitude", "some"]), PAIRS),
    "a list of weights": (with_parts(options=["include", "magnitude", ["size"]]), PAIRS),
    "offsets by a number": (with_parts(shift=3), OFFSETS),
    "columns alone": (with_parts(shift=[[1, 4]]), OFFSETS),
    "columns in a list": (with_parts(shift=[[1, 4], [1.0, 1.0]]), OFFSETS),
    "fewer offsets than columns": (with_shift([1, 4], [1.0]), OFFSETS),
    "more offsets than columns": (with_shift([1], [1.0, 2.0]), OFFSETS),
    "offsets in a table": (with_shift([1, 4], [[1.0, 2.0]]), OFFSETS),
    "columns in a table": (with_shift([[1, 4]], [1.0, 2.0]), OFFSETS),
    "columns of other integers": (with_shift(np.array([1, 4], dtype=np.int32), [1.0, 1.0]), OFFSETS),
    "whole offsets": (with_shift([1, 4], [1, 1]), OFFSETS),
    "the column after the last": (with_shift([1, 5], [1.0, 1.0]), OFFSETS),
    "the column before the first": (with_shift([-1, 4], [1.0, 1.0]), OFFSETS),
    "the same column twice": (with_shift([4, 4], [1.0, 1.0]), OFFSETS),
    "columns backwards": (with_shift([4, 1], [1.0, 1.0]), OFFSETS),
    "nothing remembered": (with_parts(memory=[]), "another number of outputs"),
    "two outputs remembered": (
        lambda stream, _: stream.update(memory=stream["memory"] * 2),
        "another number of outputs",
    ),
    "a dictionary remembered": (with_parts(memory={"0": []}), "another number of outputs"),
    "statistics that are a number": (with_parts(memory=[3]), INCOMPLETE),
    "a matrix alone": (lambda stream, _: stream["memory"][0].pop(), INCOMPLETE),
    "one array more": (lambda stream, put: stream["memory"][0].append(put(np.eye(5))), INCOMPLETE),
    "another matrix": (with_statistic([0, 0], np.eye(4)), r"not of shape \(5, 5\)"),
    "a matrix of halves": (with_statistic([0, 0], np.eye(5, dtype=np.float32)), r"not of shape \(5, 5\)"),
    "a matrix of texts": (with_statistic([0, 0], np.full((5, 5), "a")), r"not of shape \(5, 5\)"),
    "no matrix": (with_statistic([0, 0], 3), r"not of shape \(5, 5\)"),
    "another side": (with_statistic([0, 1], np.zeros((5, 1))), r"not of shape \(5,\)"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_stream_is_refused(name):
    container, stream, put = parts_of()
    change, said = HOSTILE[name]
    written_again(container)
    change(stream, put)
    with pytest.raises(ModelFileError, match=said):
        written_again(container)


@pytest.mark.parametrize("name", [None, "some"])
def test_a_stream_that_is_no_dictionary_is_refused(name):
    container, *_ = parts_of()
    container.header["steps"][0]["stream"] = [name]
    with pytest.raises(ModelFileError, match=INCOMPLETE):
        written_again(container)


@pytest.mark.parametrize("columns", [[], [0], [4], [0, 4], [0, 1, 2, 3, 4]])
def test_any_increasing_columns_may_have_offsets(columns):
    container, stream, put = parts_of()
    with_shift(np.array(columns, dtype=np.int64), np.ones(len(columns)))(stream, put)
    assert written_again(container)._stream.shift.columns.tolist() == columns
    stream["shift"] = None
    assert written_again(container)._stream.shift is None


GROUP = [
    (2, (5,), np.zeros(4)),
    (3, (), np.zeros(1)),
    (4, (5, 5), np.zeros((5, 4))),
    (5, (5,), np.zeros((5, 1))),
]


@pytest.mark.parametrize("options", [{}, {"ties": "exclude"}])
def test_a_hostile_level_is_refused(options):
    """One ranking is remembered whole, or by its levels."""
    for place, shape, other in GROUP:
        container, stream, put = parts_of(with_qid=False, **options)
        with_statistic([0, 0, place], other)(stream, put)
        with pytest.raises(ModelFileError, match=re.escape(f"not of shape {shape}")):
            written_again(container)
    for change in (
        lambda level, _: level.pop(),
        lambda level, put: level.append(put(np.zeros(5))),
        lambda level, _: level.__setitem__(0, 1),
        lambda level, _: level.__setitem__(1, 30),
        lambda level, _: level.__setitem__(1, None),
    ):
        container, stream, put = parts_of(with_qid=False, **options)
        change(stream["memory"][0][0], put)
        with pytest.raises(ModelFileError, match=LEVEL):
            written_again(container)
    container, stream, put = parts_of(with_qid=False, **options)
    stream["memory"][0][0] = put(np.zeros(6))
    with pytest.raises(ModelFileError, match=LEVEL):
        written_again(container)


def test_several_outputs_remember_a_count_each():
    container, stream, put = parts_of(outputs=2)
    assert written_again(container)._stream.n_pairs.shape == (2,)
    stream["n_pairs"] = put(np.array([1]))
    with pytest.raises(ModelFileError, match=KIND):
        written_again(container)


def test_many_columns_cost_nothing_before_what_is_remembered_of_them_is_there():
    """The matrix of so many would take 3 GB, and the file holds none."""
    container, _, put = parts_of()
    attributes = container.header["steps"][0]["attributes"]
    attributes.update(n_features_in_=20_000, coef_=put(np.zeros(20_000)))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"not of shape \(20000, 20000\)"):
        written_again(container)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24
