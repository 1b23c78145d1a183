"""How deep values may be nested in a model file: what is written can be read, and what is deeper is refused."""

import io
import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.model_selection import KFold

import rankwise
from identical import assert_identical
from model_checks import put_together, taken_apart, with_checksum, without_checksum
from rankwise import AutoRanker, RankRLS
from rankwise.design.terms import Curve, Surface, Terms
from rankwise.exceptions import ModelFileError
from rankwise.kernels import Kernel
from rankwise.metrics import get_metric
from rankwise.persistence.reader import Reader
from rankwise.persistence.values import DEPTH
from rankwise.persistence.writer import Writer


def objects(value):
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


# What holds a value, and its JSON.
INSIDE = {
    "a list": (lambda value: [value], lambda json: [json]),
    "a tuple": (lambda value: (value,), lambda json: {"$tuple": [json]}),
    "a dictionary": (lambda value: {"key": value}, lambda json: {"key": json}),
    "a dictionary of numbers": (lambda value: {1: value}, lambda json: {"$dict": [[1, json]]}),
    "an array of objects": (objects, lambda json: {"$objects": {"shape": [1], "items": [json]}}),
}
CURVES = (Curve(0, np.array([0.0, 1.0]), False, False), Curve(1, np.array([1.0, 2.0]), True, True))
# Each with the levels that it takes itself.
VALUES = {
    "nothing": (None, 0),
    "a number": (1.5, 0),
    "no number": (float("nan"), 0),
    "a number of NumPy": (np.float32(1.5), 0),
    "an array": (np.arange(3.0), 0),
    "a sparse matrix": (sp.csr_matrix(np.eye(2)), 0),
    "a range": (range(3), 0),
    "a slice": (slice(1, None), 0),
    "a type": (np.dtype("f4"), 0),
    "a list": ([1.5], 1),
    "a metric": (get_metric("ndcg", k=np.int64(3)), 2),
    "a kernel": (Kernel("rbf", {"gamma": np.float64(0.5)}), 2),
    "a splitter": (KFold(3, shuffle=True, random_state=np.int64(1)), 2),
    "curves": (Terms(CURVES, (Surface(*CURVES),)), 1),
}


def nested(value, inside, levels):
    for _ in range(levels):
        value = inside(value)
    return value


def test_a_model_nests_values_32_levels_deep():
    model = RankRLS().fit(np.eye(3), [0, 1, 2])
    for levels in (32, 33):
        model.notes_, stream = nested(1, INSIDE["a list"][0], levels), io.BytesIO()
        if levels == 32:
            model.save(stream)
            assert_identical(rankwise.load(io.BytesIO(stream.getvalue())).notes_, model.notes_)
        else:
            with pytest.raises(ModelFileError, match=r"^notes_(/0)+ is nested more than 32 levels deep"):
                model.save(stream)


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("name", VALUES)
def test_what_is_nested_as_deep_as_can_be_written_is_read(name, inside):
    (value, own), (enclosed, _), writer = VALUES[name], INSIDE[inside], Writer()
    deepest = nested(value, enclosed, DEPTH - own)
    written = writer.write(deepest, "x")
    assert_identical(deepest, Reader(writer.arrays).read(written))
    with pytest.raises(
        ModelFileError, match=rf"^x\S* is nested more than {DEPTH} levels deep.*Hint: flatten it"
    ):
        Writer().write(enclosed(deepest), "x")


def test_a_spline_is_nested_as_deep_as_can_be_written():
    spline, writer = BSpline(np.arange(6.0), np.array([1.0, 2.0, 3.0]), 2), Writer()
    again = Reader(writer.arrays).read(writer.write(nested(spline, INSIDE["a list"][0], DEPTH - 1), "x"))
    while isinstance(again, list):
        (again,) = again
    assert_identical([spline.t, spline.c, spline.k], [again.t, again.c, again.k])
    with pytest.raises(ModelFileError, match="levels deep"):
        Writer().write(nested(spline, INSIDE["a list"][0], DEPTH), "x")
    with pytest.raises(ModelFileError, match="levels deep"):
        Reader(writer.arrays).read(nested(writer.write(spline, "x"), INSIDE["a list"][1], DEPTH))


def test_keys_are_nested_as_deep_as_values_are():
    key, writer = nested(1, INSIDE["a tuple"][0], DEPTH - 1), Writer()
    assert_identical({key: 2}, Reader({}).read(writer.write({key: 2}, "x")))
    with pytest.raises(ModelFileError, match="levels deep"):
        writer.write({(key,): 2}, "x")
    with pytest.raises(ModelFileError, match="levels deep"):
        Reader({}).read({"$dict": [[{"$tuple": [writer.write(key, "x")]}, 2]]})


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("name", [name for name in VALUES if name not in {"nothing", "a number", "an array"}])
def test_what_is_nested_deeper_is_not_read(name, inside):
    """A dictionary takes plain values without looking at their depth: they go no further."""
    (value, own), (_, enclosed), writer = VALUES[name], INSIDE[inside], Writer()
    deepest = nested(writer.write(value, "x"), enclosed, DEPTH - own)
    Reader(writer.arrays).read(deepest)
    with pytest.raises(ModelFileError, match=f"something is nested more than {DEPTH} levels deep"):
        Reader(writer.arrays).read(enclosed(deepest))


def models_inside_models(levels):
    value = 1
    for _ in range(levels):
        value = {"$step": {"class": "RankRLS", "parameters": {}, "attributes": {"x_": value}}}
    return value


PLACES = {
    "an attribute": lambda header, value: header["steps"][0]["attributes"].update(x_=value),
    "a parameter": lambda header, value: header["steps"][0]["parameters"].update(alpha=value),
    "options of a pipeline": lambda header, value: header.update(pipeline={"verbose": value}),
    "a parameter of a choice": lambda header, value: header["automatic"]["parameters"].update(cv=value),
    "an attribute of a choice": lambda header, value: header["automatic"]["attributes"].update(x_=value),
}


@pytest.mark.parametrize("place", PLACES)
def test_models_inside_models_without_end_are_refused(place):
    """Each begins to count anew, so that all together may be deeper than Python calls itself."""
    X, y, stream = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0) % 3, io.BytesIO()
    is_choice = place.endswith("choice")
    model = AutoRanker(methods=["rls"], scalings="none", cv=2) if is_choice else RankRLS()
    rankwise.save(model.fit(X, y), stream)
    header, description, rest = taken_apart(without_checksum(stream.getvalue()))
    for levels, said in ((2, "how many features"), (300, "something is nested too deep")):
        PLACES[place](header, models_inside_models(levels))
        damaged = with_checksum(put_together(header, description, rest))
        with pytest.raises(ModelFileError, match=f"(?s){re.escape(said)}.*Hint: "):
            rankwise.load(io.BytesIO(damaged))
