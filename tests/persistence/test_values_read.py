"""Each kind of value that a model file holds: what is exactly at its bounds is made, and what is beyond is refused."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.model_selection import KFold

from identical import assert_identical
from rankwise.design.terms import Curve
from rankwise.exceptions import ModelFileError
from rankwise.kernels import Kernel
from rankwise.metrics import get_metric
from rankwise.model_selection import QueryKFold
from rankwise.persistence.reader import Reader
from rankwise.persistence.values import SCALARS, SPLITTERS, is_splitter
from rankwise.persistence.writer import Writer


def read(value, **arrays):
    """Return what JSON stands for; arrays are in their places already, as they are when a file is read."""
    return Reader(arrays).read(value)


def refuse(value, said):
    with pytest.raises(ModelFileError, match=f"(?s)cannot be understood: .*{said}.*Hint: upgrade rankwise"):
        read(value)


# --- numbers ---


@pytest.mark.parametrize("kind", [kind for kind in SCALARS if "int" in kind])
def test_whole_numbers_reach_to_the_ends_of_their_type(kind):
    bounds = np.iinfo(kind)
    for value in (bounds.min, 0, bounds.max):
        assert_identical(read({"$numpy": kind, "value": int(value)}), np.dtype(kind).type(value))
    for value in (int(bounds.min) - 1, int(bounds.max) + 1, True, 1.0, "1", None, [1]):
        refuse({"$numpy": kind, "value": value}, re.escape(f"{value!r} is no {kind}"))


@pytest.mark.parametrize("kind", [kind for kind in SCALARS if "float" in kind])
def test_floats_reach_to_the_ends_of_their_type(kind):
    greatest = float(np.finfo(kind).max)
    for value in (greatest, -greatest, 0.0, -0.0):
        assert_identical(read({"$numpy": kind, "value": value}), np.dtype(kind).type(value))
    for text in ("inf", "-inf", "nan"):
        found = read({"$numpy": kind, "value": {"$float": text}})
        assert_identical(found, np.dtype(kind).type(text))
    beyond = [] if kind == "float64" else [np.nextafter(greatest, np.inf), -np.nextafter(greatest, np.inf)]
    for value in (*map(float, beyond), 1, True, "1.5", None):
        refuse({"$numpy": kind, "value": value}, re.escape(f"{value!r} is no {kind}"))


def test_truth_values_and_texts_of_numpy_are_of_their_type():
    for value in (True, False):
        assert_identical(read({"$numpy": "bool", "value": value}), np.bool_(value))
    assert_identical(read({"$numpy": "str", "value": "text"}), np.str_("text"))
    for value in (0, 1, None, "True"):
        refuse({"$numpy": "bool", "value": value}, f"{value!r} is no bool")
    for value in (1, None, True):
        refuse({"$numpy": "str", "value": value}, "a number is a 'str'")


def test_numbers_of_numpy_have_a_kind_and_a_value_and_nothing_else():
    refuse({"$numpy": "int8"}, "a number is a 'int8'")
    refuse({"$numpy": "int8", "value": 1, "more": 2}, "a number is a 'int8'")
    refuse({"$numpy": ["int8"], "value": 1}, r"a number is a \['int8'\]")
    refuse({"$numpy": "text", "value": "1"}, "a number is a 'text'")
    refuse({"$numpy": "float64", "value": {"$numpy": "float64", "value": 1.5}}, r"does not have [$]float")
    refuse({"$numpy": "float64", "value": {"$float": "nan", "more": 1}}, r"does not have [$]float")


def test_numbers_that_json_does_not_have_go_by_three_names():
    assert read({"$float": "inf"}) == np.inf
    assert read({"$float": "-inf"}) == -np.inf
    assert np.isnan(read({"$float": "nan"}))
    for text in ("Infinity", "1.5", "NaN", 1.5, None):
        refuse({"$float": text}, re.escape(f"a number is {text!r}"))


@pytest.mark.parametrize("kind", SCALARS)
def test_types_go_by_the_names_of_numbers(kind):
    assert read({"$dtype": kind}) == np.dtype(kind)
    assert read({"$type": kind}) is np.dtype(kind).type
    for value in (np.dtype(kind), np.dtype(kind).type):
        assert_identical(read(Writer().write(value, "x")), value)


def test_types_of_anything_else_are_refused():
    assert read({"$dtype": "object"}) == np.dtype(object)
    refuse({"$type": "object"}, "a type of numbers is 'object'")
    for name in ("f8", "str", "void", 3, ["int8"], None):
        refuse({"$dtype": name}, re.escape(f"a type of numbers is {name!r}"))
        refuse({"$type": name}, re.escape(f"a type of numbers is {name!r}"))


# --- what holds other values ---


@pytest.mark.parametrize("bounds", [[None, None, None], [0, 8, 2], [-1, None, -1], ["a", "c", None]])
def test_slices_have_three_bounds(bounds):
    assert read({"$slice": bounds}) == slice(*bounds)
    assert Writer().write(slice(*bounds), "x") == {"$slice": bounds}


@pytest.mark.parametrize(
    "bounds", [[0, 8], [0, 8, 1, 1], [0, 8.0, 1], [0, True, 1], 3, "abc", {"a": 1, "b": 2, "c": 3}]
)
def test_other_slices_and_ranges_are_refused(bounds):
    refuse({"$range": bounds}, "a range is no range")
    refuse({"$slice": bounds}, "a slice is none")


def test_ranges_have_three_whole_numbers():
    assert read({"$range": [1, 9, 3]}) == range(1, 9, 3)
    refuse({"$range": [1, None, 3]}, "a range is no range")
    refuse({"$range": [1, 9, 0]}, "range does not take what it holds")


def test_dictionaries_are_lists_of_pairs():
    assert_identical(read({"$dict": [[1, "a"], ["b", [2]], [None, {}]]}), {1: "a", "b": [2], None: {}})
    assert read({"$dict": []}) == {}
    assert_identical(read({"$dict": [[{"$tuple": [1, 2]}, 3]]}), {(1, 2): 3})
    for pairs in ([[1]], [[1, 2, 3]], [1], {"a": 1}, 3, ["ab"], [{"a": 1, "b": 2}]):
        refuse({"$dict": pairs}, "a dictionary is no list of pairs")
    refuse({"$dict": [[[1], 2]]}, "dict does not take what it holds .*unhashable")


def test_only_keys_that_begin_with_a_dollar_are_kinds():
    plain = {"a$": 1, "b$c": [2.5], "": None}
    assert_identical(read(plain), plain)
    assert_identical(read(Writer().write({"$a": 1}, "x")), {"$a": 1})
    refuse({"$b": 1, "a": 2}, "a kind of value that is not known here: [$]b, a")
    refuse({"$array": "a", "b": 1}, "a kind of value that is not known here")
    refuse({"$tuple": 3}, "a list is 3")
    refuse({"$array": 3}, "it has no array 3")
    refuse({"$array": "a"}, "it has no array 'a'")


@pytest.mark.parametrize(
    ("shape", "is_fine"),
    [
        ([0, 2**48 - 1], True),
        ([0, 2**48], False),
        ([0, 2**47, 2**8], True),
        ([0, 2**47, 2**9], False),
        ([2**47, 2**9, 0], False),
        ([2**47, 2**20, 0], False),
        ([0] + [1] * 31, True),
        ([0] + [1] * 32, False),
        ([0, -1], False),
        ([0.0], False),
        ([False], False),
        ({"a": 0}, False),
        (0, False),
    ],
)
def test_objects_have_a_shape_that_an_array_can_have(shape, is_fine):
    content = {"$objects": {"shape": shape, "items": []}}
    if is_fine:
        assert read(content).shape == tuple(shape)
    else:
        refuse(content, "an array has shape")


def test_as_many_objects_as_their_shape_says():
    found = read({"$objects": {"shape": [2, 1], "items": ["a", [1]]}})
    assert found.shape == (2, 1)
    assert found.ravel().tolist() == ["a", [1]]
    for items in ([], ["a"], ["a"] * 3):
        refuse(
            {"$objects": {"shape": [2], "items": items}},
            rf"{len(items)} objects do not make an array of shape \[2\]",
        )
    refuse({"$objects": {"shape": [2], "items": "ab"}}, "a list is 'ab'")


# --- matrices ---


def matrix(kind, shape, data, indices, indptr):
    parts = {"data": data, "indices": indices, "indptr": indptr}
    arrays = {key: np.asarray(part) if isinstance(part, list) else part for key, part in parts.items()}
    return {"$sparse": {"kind": kind, "shape": shape, **arrays}}


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_matrix", "csc_array"])
def test_sparse_matrices_need_not_be_square(kind):
    dense = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    for own in (dense, dense.T, np.zeros((0, 3)), np.zeros((2, 0)), dense != 0, dense.astype(np.int8)):
        value, writer = getattr(sp, kind)(own), Writer()
        found = Reader(writer.arrays).read(writer.write(value, "x"))
        assert_identical(found, value)


def test_sparse_matrices_are_of_a_known_kind_and_of_two_axes():
    arrays = ([1.0], [0], [0, 1])
    assert read(matrix("csr_matrix", [1, 1], *arrays)).shape == (1, 1)
    for kind in ("coo_matrix", "csr", None, ["csr_matrix"]):
        refuse(matrix(kind, [1, 1], *arrays), "a sparse matrix is of no known kind")
    for shape in ([1], [1, 1, 1], []):
        refuse(matrix("csr_matrix", shape, *arrays), "a sparse matrix is of no known kind")
    refuse(matrix("csr_matrix", [1, -1], *arrays), "an array has shape")


@pytest.mark.parametrize(
    "parts",
    [
        ([1.0, 2.0], [0, 1], [0, 1]),  # the last entry belongs to no row
        ([1.0, 2.0], [0], [0, 1]),
        ([1.0], [0, 1], [0, 1]),
        ([1.0], [0], [0, 2]),
        ([1.0], [0], [0, 0]),
        ([1.0], [2], [0, 1]),
        ([1.0], [-1], [0, 1]),
        ([[1.0]], [0], [0, 1]),
        (np.array(1.0), [0], [0, 1]),
        ([1.0], [[0]], [0, 1]),
        ([1.0], [0], [[0, 1]]),
        ([1.0], [0.0], [0, 1]),
        ([1.0], [0], [0.0, 1.0]),
        (["a"], [0], [0, 1]),
        ([1j], [0], [0, 1]),
        (1.0, [0], [0, 1]),
        ([1.0], 0, [0, 1]),
        ([1.0], [0], 1),
    ],
)
def test_sparse_matrices_whose_parts_do_not_fit_are_refused(parts):
    refuse(matrix("csr_matrix", [1, 2], *parts), "a sparse matrix is none")


# --- curves and splines ---


def curve(column=0, knots=(0.0, 1.0), is_levels=False, has_missing=False):
    return {
        "column": column,
        "knots": np.asarray(knots) if isinstance(knots, tuple) else knots,
        "is_levels": is_levels,
        "has_missing": has_missing,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"column": 2**31 - 1},
        {"knots": (3.0,)},
        {"knots": np.arange(2.0**16 - 1)},
        {"is_levels": True},
        {"has_missing": True},
    ],
)
def test_curves_at_their_bounds_are_made(changes):
    content = curve(**changes)
    found = read({"$terms": {"curves": [content], "surfaces": [[curve(), content]]}})
    for made in (found.curves[0], found.surfaces[0].second):
        assert_identical(made, Curve(**content))
    assert_identical(found.surfaces[0].first, Curve(**curve()))


@pytest.mark.parametrize(
    "changes",
    [
        {"column": 2**31},
        {"column": -1},
        {"column": True},
        {"column": 1.0},
        {"knots": np.zeros(0)},
        {"knots": np.arange(2.0**16)},
        {"knots": np.array(3.0)},
        {"knots": np.array([[0.0, 1.0]])},
        {"knots": np.array([0, 1])},
        {"knots": np.array([0, 1], dtype=np.float32)},
        {"knots": np.array(["a", "b"])},
        {"knots": [0.0, 1.0]},
        {"knots": (1.0, 1.0)},
        {"knots": (0.0, 2.0, 1.0)},
        {"knots": (0.0, np.nan)},
        {"knots": (0.0, np.inf)},
        {"is_levels": 1},
        {"has_missing": 0},
    ],
)
def test_curves_beyond_their_bounds_are_refused(changes):
    refuse(
        {"$terms": {"curves": [curve(), curve(**changes)], "surfaces": []}},
        "a curve has no column, or no increasing",
    )


def test_terms_are_two_lists_and_surfaces_have_two_sides():
    for terms in ({"curves": {}, "surfaces": []}, {"curves": [], "surfaces": {}}):
        refuse({"$terms": terms}, "terms are no lists")
    for sides in ([curve()], [curve()] * 3, curve(), 3):
        refuse({"$terms": {"curves": [], "surfaces": [sides]}}, "a surface has no two sides")
    refuse({"$terms": {"curves": []}}, "does not have curves, surfaces")
    refuse({"$terms": {"curves": [], "surfaces": [], "more": []}}, "does not have curves, surfaces")


def spline(degree=1, n_knots=None, **changes):
    n_knots = 2 * degree + 2 if n_knots is None else n_knots
    content = {"t": np.arange(float(n_knots)), "c": np.ones(max(n_knots - degree - 1, 0)), "k": degree}
    return {"$spline": {**content, "extrapolate": True, **changes}}


@pytest.mark.parametrize("degree", [0, 1, 99])
@pytest.mark.parametrize("extrapolate", [True, False, "periodic"])
def test_splines_come_back(degree, extrapolate):
    content = spline(degree, extrapolate=extrapolate)
    found, parts = read(content), content["$spline"]
    assert isinstance(found, BSpline)
    assert_identical(
        [found.t, found.c, found.k, found.extrapolate], [parts[key] for key in ("t", "c", "k", "extrapolate")]
    )
    writer = Writer()
    assert_identical(Reader(writer.arrays).read(writer.write(found, "x")).c, found.c)


@pytest.mark.parametrize(
    "content",
    [
        spline(100),
        spline(-1, n_knots=4),
        spline(k=True),
        spline(k=1.0),
        spline(t=[0.0, 1.0, 2.0, 3.0]),
        spline(t=np.arange(4, dtype=np.float32)),
        spline(c=np.ones(2, dtype=np.int64)),
        spline(c=None),
        spline(c=np.array(["a", "b"])),
        spline(extrapolate="always"),
        spline(extrapolate=1),
        spline(extrapolate=None),
    ],
)
def test_splines_that_are_none_are_refused(content):
    refuse(content, "a spline is none")


def test_splines_with_too_few_knots_are_refused():
    refuse(spline(2, n_knots=5), "BSpline does not take what it holds")


# --- objects by name ---


def test_metrics_kernels_and_splitters_are_found_by_name():
    for value in (
        get_metric("ndcg", k=5, gain="linear"),
        get_metric("pairwise_error"),
        Kernel("rbf", {"gamma": 0.5}),
        Kernel("precomputed"),
        KFold(3, shuffle=True, random_state=7),
        QueryKFold(4),
    ):
        writer = Writer()
        assert_identical(Reader(writer.arrays).read(writer.write(value, "x")), value)
    for kind, said in (("$metric", "options"), ("$kernel", "parameters"), ("$splitter", "parameters")):
        for name in ("nobody", None, ["ndcg"], 3):
            refuse({kind: {"name": name, said: {}}}, re.escape(f"{kind[1:]} {name!r} is not known here"))
        refuse({kind: {"name": "ndcg"}}, f"does not have name, {said}")
        refuse({kind: {"name": "ndcg", said: {}, "more": 1}}, f"does not have name, {said}")


def test_their_parameters_go_by_names():
    for kind, name in (("$kernel", "rbf"), ("$splitter", "KFold")):
        for parameters in ([1], 3, {"$dict": [[1, 2]]}, None):
            refuse({kind: {"name": name, "parameters": parameters}}, "parameters are ")
    refuse({"$splitter": {"name": "KFold", "parameters": {"folds": 3}}}, "KFold does not take what it holds")


class Mine(KFold):
    """Somebody's own, which has the name of none that is known."""


def test_splitters_are_known_by_their_class():
    assert is_splitter(KFold(3))
    assert not is_splitter(Mine(3))
    assert not is_splitter(type("KFold", (KFold,), {})(3))
    assert not is_splitter(3)
    for name in SPLITTERS:
        assert Reader({}).read({"$splitter": {"name": name, "parameters": {}}}).__class__.__name__ == name


def test_what_is_said_of_long_values_is_short():
    for content in (
        {"$float": "9" * 5000},
        {"$array": "9" * 5000},
        {"$tuple": "9" * 5000},
        {"$" + "9" * 5000: 1},
    ):
        with pytest.raises(ModelFileError) as caught:
            read(content)
        assert 70 < str(caught.value).count("9") <= 80
