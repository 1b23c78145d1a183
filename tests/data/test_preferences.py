"""Validation of preferences: what is taken, what is refused, and with which messages."""

import numpy as np
import pytest
import scipy.sparse

from rankwise.data import stack_preferred
from rankwise.data.preferences import check_pairs
from rankwise.exceptions import InvalidInputError, NoPairsError


def test_pairs_come_out_as_columns():
    checked = check_pairs([[0, 1], [2, 1]], 3, [1, 0], 2)
    assert checked.winner.tolist() == [0, 2]
    assert checked.loser.tolist() == [1, 1]
    assert checked.magnitude.tolist() == [1.0, 0.0]
    assert checked.weight.tolist() == [2.0, 2.0]
    assert len(checked) == 2
    assert check_pairs([[0, 1]], 2).magnitude is None
    assert check_pairs([[0, 1]], 2).weight is None


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.float64])
def test_any_type_that_holds_whole_numbers_will_do(dtype):
    checked = check_pairs(np.array([[0, 1], [2, 1]], dtype=dtype), 3)
    assert checked.winner.dtype == np.int64
    assert checked.winner.tolist() == [0, 2]


def test_data_frames_of_pairs(frames):
    checked = check_pairs(frames.DataFrame({"winner": [0, 2], "loser": [1, 1]}), 3, frames.Series([1.5, 2.0]))
    assert checked.winner.tolist() == [0, 2]
    assert checked.magnitude.tolist() == [1.5, 2.0]


@pytest.fixture(params=["pandas", "polars"])
def frames(request):
    return pytest.importorskip(request.param)


def test_repetitions_and_contradictions_are_legal():
    assert len(check_pairs([[0, 1], [0, 1], [1, 0]], 2)) == 3


BAD = [
    ([], {}, NoPairsError, "list of pairs is empty"),
    (np.empty((0, 2), dtype=int), {}, NoPairsError, "list of pairs is empty"),
    ([0, 1], {}, InvalidInputError, r"must have shape \(pairs, 2\), got \(2,\)"),
    ([[0, 1, 2]], {}, InvalidInputError, r"got \(1, 3\)"),
    ([[0, 1], [0, 3]], {}, InvalidInputError, r"Pair 1 is \(0, 3\), but rows are numbered from 0 to 2"),
    ([[-1, 1]], {}, InvalidInputError, r"Pair 0 is \(-1, 1\)"),
    ([[0, 1], [2, 2]], {}, InvalidInputError, "Pair 1 prefers row 2 to itself"),
    ([[0.5, 1]], {}, InvalidInputError, "row numbers .integers., got float64"),
    ([[np.nan, 1]], {}, InvalidInputError, "drop pairs with missing entries"),
    ([[2**63, 1]], {}, InvalidInputError, "Pair 0 is .*rows are numbered"),
    ([[-1e300, 1]], {}, InvalidInputError, "Pair 0 is .*rows are numbered"),
    (np.array([[2**64 - 1, 1]], dtype=np.uint64), {}, InvalidInputError, "Pair 0 is .*rows are numbered"),
    ([["a", "b"]], {}, InvalidInputError, "translate item ids to row numbers"),
    ([[True, False]], {}, InvalidInputError, "got bool"),
    (
        [[0, 1]],
        {"weight": [-1.0]},
        InvalidInputError,
        "weight of pair 0 is negative.*use 0 to leave a pair out",
    ),
    ([[0, 1]], {"weight": [np.nan]}, InvalidInputError, "weight contains NaN or infinity, first for pair 0"),
    ([[0, 1]], {"weight": [1.0, 2.0]}, InvalidInputError, r"weight must have shape \(1,\), got \(2,\)"),
    ([[0, 1]], {"weight": ["heavy"]}, InvalidInputError, "weight must be numbers"),
    ([[0, 1]], {"weight": [0.0]}, InvalidInputError, "weight is zero for every pair"),
    (
        [[0, 1]],
        {"magnitude": [-0.5]},
        InvalidInputError,
        "magnitude of pair 0 is negative.*swap winner and loser",
    ),
    (
        [[0, 1], [1, 2]],
        {"magnitude": [1.0, np.inf]},
        InvalidInputError,
        "magnitude contains.*first for pair 1",
    ),
    ([[0, 1]], {"magnitude": [[1.0]]}, InvalidInputError, "magnitude must have shape"),
]


@pytest.mark.parametrize(("pairs", "options", "error", "message"), BAD)
def test_refusals_say_what_is_wrong_and_what_to_do(pairs, options, error, message):
    with pytest.raises(error, match=message) as caught:
        check_pairs(pairs, 3, **options)
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_two_matrices_become_one(convert):
    rng = np.random.default_rng(0)
    preferred, rejected = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    X, pairs = stack_preferred(convert(preferred), convert(rejected))
    rows = X.toarray() if scipy.sparse.issparse(X) else X
    np.testing.assert_array_equal(rows[pairs[:, 0]], preferred)
    np.testing.assert_array_equal(rows[pairs[:, 1]], rejected)
    assert scipy.sparse.issparse(X) == (convert is not np.asarray)


@pytest.mark.parametrize("shapes", [((4, 3), (5, 3)), ((4, 3), (4, 2)), ((4,), (4,))])
def test_two_matrices_must_match(shapes):
    with pytest.raises(InvalidInputError, match="two matrices of the same shape"):
        stack_preferred(*map(np.ones, shapes))
