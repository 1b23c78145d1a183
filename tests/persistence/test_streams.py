"""What partial_fit remembers survives a file: the next call goes on as if nothing had happened."""

import io

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


HOSTILE = {
    "another matrix": lambda s: s["memory"][0].__setitem__(0, {"$array": "coef_"}),
    "no matrix": lambda s: s["memory"][0].__setitem__(0, 3),
    "too few": lambda s: s.update(memory=[]),
    "unknown ties": lambda s: s.update(options=["some", "magnitude", "size"]),
    "outputs without end": lambda s: s.update(label_shape=[2**40]),
    "ids that are none": lambda s: s.update(seen=[{"a": 1}]),
    "columns far away": lambda s: s["shift"].__setitem__(0, {"$array": "elsewhere"}),
    "one thing more": lambda s: s.update(more=1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_stream_is_refused(name):
    X, y, qid = next(batches())
    _, data = through_a_file(RankRLS().partial_fit(X, y, qid))
    container = opened(data)
    arrays = {**container.arrays, "elsewhere": np.array([900])}
    HOSTILE[name](container.header["steps"][0]["stream"])
    out = io.BytesIO()
    write_container(out, Container(container.header, arrays))
    with pytest.raises(ModelFileError):
        rankwise.load(io.BytesIO(out.getvalue()))
