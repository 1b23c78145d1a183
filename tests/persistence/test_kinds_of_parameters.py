"""What a model file may set parameters to: values of the kinds that each name has, and no others."""

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import rankwise
from rankwise import RankRLS
from rankwise.kernels import Kernel
from rankwise.metrics import get_metric
from rankwise.persistence.models import RANKERS
from rankwise.persistence.parameters import FIT_BY_TYPE, PARAMETERS, unfit_parameter

HALVES, MASK, COUNTS = np.array([0.5, 1.5]), np.array([True, False]), np.array([1, 2])
OTHER = object()

# One of each kind: a name, values that it takes, and values that it does not.
KINDS = {
    "flags": ("clip", [True, False, np.True_], [0, 1, "yes", None, 1.0]),
    "counts": ("patience", [0, 3, np.int64(3), np.uint8(3)], [True, np.True_, 3.0, "3", None, COUNTS]),
    "counts or none": ("max_iter", [None, 3], [True, 2.5, "3", []]),
    "numbers": ("alpha", [0, 0.5, np.float32(0.5), np.int8(1), np.inf], [True, "0.5", None, 1j, HALVES, [0.5]]),
    "texts": ("loss", ["hinge", ""], [None, 3, b"hinge", ["hinge"], OTHER]),
    "processes": (
        "n_jobs",
        [None, 1, -1, 256, -256, np.int64(256)],
        [257, -257, 10**30, True, "all", 2.0],
    ),
    "lists of numbers": (
        "prior",
        [None, [], [0.5, 1], (2.0,), range(3), HALVES, COUNTS, [np.float64(0.5)]],
        [0.5, "ab", ["a"], [0.5, None], [True], {0.5}, MASK, np.array(["a"]), np.array([1j]), [[0.5]]],
    ),
    "lists of texts": (
        "words",
        [[], ["a", "b"], ("a",), np.array([1.0])],
        ["ab", None, ["a", 1], [None], [["a"]], {"a": 1}, np.array(["a"])],
    ),
    "lists of counts or texts": (
        "categorical",
        [None, [0, "brand"], range(2), COUNTS],
        [3, "brand", [0.5], [True], [None]],
    ),
    "folds": (
        "cv",
        [
            None,
            "leave-query-out",
            5,
            KFold(3),
            [],
            [([0, 1], [2])],
            [[COUNTS, COUNTS], (MASK, MASK)],
            [([True, False], [False, True])],
            (np.array([[0, 1], [2, 3]]),),
        ],
        [
            2.5,
            True,
            OTHER,
            [3],
            [([0, 1],)],
            [([0], [1], [2])],
            [([0.5], [1])],
            [(["a"], [1])],
            [([0], None)],
            [(np.array(["a"]), COUNTS)],
            [(COUNTS, np.array([None, 1]))],
            ["ab"],
            {"a": ([0], [1])},
        ],
    ),
    "parameters of a kernel": (
        "kernel_params",
        [None, {}, {"gamma": 0.5, "metric": "l1"}],
        [3, [("gamma", 0.5)], {1: 0.5}, {"gamma": [0.5]}, {"gamma": None}, {"gamma": True}],
    ),
    "kernels": ("kernel", ["rbf", Kernel("rbf")], [None, 3, np.dot, ["rbf"]]),
    "metrics": ("scoring", ["ndcg", get_metric("ndcg")], [None, 3, max, ["ndcg"]]),
    "signs of columns": (
        "monotone",
        [None, [1, 0, -1], {"price": 1, 3: -1}, {}],
        ["up", {"price": 0.5}, {"price": True}, {0.5: 1}, {None: 1}, {"price": "up"}, 1],
    ),
    "what a search keeps fixed": (
        "fixed",
        [None, {}, {"a": 1.0, "b": "x", "c": True, "d": None, "e": [1, "x"], "f": HALVES}],
        [{"a": [[1.0]]}, {1: 1.0}, [1.0], {"a": OTHER}, {"a": [None]}, {"a": {}}],
    ),
    "types of numbers": (
        "dtype",
        [None, np.float64, np.int8, np.dtype("f4"), np.dtype(object)],
        [str, object, np.str_, np.bool_, "float64", 3, OTHER],
    ),
    "categories": (
        "categories",
        ["auto", [], [HALVES, np.array(["a"], dtype=object)], [["a", None], [1, 2.5]], (["a"],), ["a"]],
        [None, 3, [3], [OTHER], [[OTHER]], {"a": ["b"]}, [{"a": 1}]],
    ),
    "categories to drop": (
        "drop",
        [None, "first", ["a", None, 1.5], np.array([None, "a"], dtype=object)],
        [3, True, [OTHER], [["a"]], {"a": 1}],
    ),
    "values that are filled in": ("fill_value", [None, True, 0.5, "none", np.float32(0)], [[], [1], OTHER, HALVES]),
    "one transformer": (
        "remainder",
        ["passthrough", "drop", None, StandardScaler(), RankRLS()],
        ["os", "", 3, [], StandardScaler, [StandardScaler()]],
    ),
    "transformers beside each other": (
        "transformer_list",
        [[], [("a", StandardScaler())], (["a", "drop"], ("b", None))],
        [
            None,
            "ab",
            [("a",)],
            [("a", StandardScaler(), [0])],
            [(1, StandardScaler())],
            [("a", "os")],
            [("a", OTHER)],
            ["ab"],
            [{"a": 1, "b": 2}],
            StandardScaler(),
        ],
    ),
    "transformers of columns": (
        "transformers",
        [
            [("a", StandardScaler(), columns)]
            for columns in ("price", 3, slice(1, 3), ["price", 1], [True], range(2), COUNTS, MASK, np.array(["a"]))
        ]
        + [[("a", "passthrough", np.array(["a"], dtype=object)), ("b", "drop", [])]],
        [
            [("a", StandardScaler(), columns)]
            for columns in (None, 0.5, [0.5], HALVES, OTHER, np.dot, {"a": 1}, np.array([1j]))
        ]
        + [[("a", StandardScaler())], [("a", "os", [0])], [(1, "drop", [0])], [("a", "drop", [0], [1])]],
    ),
    "weights of transformers": (
        "transformer_weights",
        [None, {}, {"a": 0.5, "b": 2}],
        [3, [0.5], {"a": "b"}, {1: 0.5}, {"a": True}, {"a": None}],
    ),
    "models of a mean, which are those that were fitted": ("rankers", [()], [[], None, (RankRLS(),), [RankRLS()]]),
    "no code": ("func", [None], [np.dot, "numpy.dot", 3]),
    "pairs of columns": (
        "interactions",
        ["auto", 3, [1, 2], [(0, 1), ("a", 2)], COUNTS],
        [None, 2.5, True, [[0.5, 1]], [OTHER], {"a": 1}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_parameter_takes_values_of_its_kind_and_no_others(kind):
    name, taken, refused = KINDS[kind]
    for value in taken:
        assert unfit_parameter({name: value}) is None, value
    for value in refused:
        assert unfit_parameter({name: value}) == name, value


def test_the_first_parameter_that_does_not_fit_is_named():
    assert unfit_parameter({"alpha": 0.5, "loss": 3, "tol": "small"}) == "loss"
    assert unfit_parameter({"alpha": 0.5, "tol": "small", "loss": 3}) == "tol"
    assert unfit_parameter({}) is None


def test_a_name_that_nobody_knows_fits_nothing():
    for value in (None, True, 3, 0.5, "text", []):
        assert unfit_parameter({"evil": value}) == "evil"


def test_what_fits_by_its_type_is_what_the_tests_of_its_name_take():
    """A look at the type stands for the tests: both say the same of every value of such a type."""
    samples = {
        bool: [True, False],
        int: [0, -7, 10**30],
        float: [0.5, float("nan")],
        str: ["", "text", "os"],
        type(None): [None],
    }
    for name, tests in PARAMETERS.items():
        for kind, values in samples.items():
            fits = [any(test(value) for test in tests) for value in values]
            assert (name, kind) not in FIT_BY_TYPE or all(fits), (name, kind)
            assert [unfit_parameter({name: value}) is None for value in values] == fits, (name, kind)


def test_a_look_at_the_type_suffices_for_most_parameters():
    found = {
        (name, type(value))
        for kind in RANKERS
        for name, value in getattr(rankwise, kind)().get_params(deep=False).items()
        if type(value) in {bool, int, float, str, type(None)}
    }
    assert found <= FIT_BY_TYPE
    assert len({kind for _, kind in FIT_BY_TYPE}) == 5
