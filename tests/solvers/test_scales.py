"""Norms and units of very large and very small numbers."""

import numpy as np
import pytest

from rankwise.solvers.scales import column_norms, is_out_of_range, powers_of_two


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_lengths_whose_squares_do_not_exist(scale):
    table = np.array([[3.0, 0.0, 1.0], [4.0, 0.0, -1.0]])
    np.testing.assert_allclose(column_norms(table * scale) / scale, [5.0, 0.0, np.sqrt(2)], rtol=1e-14)
    assert float(column_norms(table[:, 0] * scale)) / scale == pytest.approx(5.0)


def test_columns_of_different_scales_do_not_disturb_each_other():
    table = np.array([[3e200, 3e-200], [4e200, 4e-200]])
    np.testing.assert_allclose(column_norms(table), [5e200, 5e-200], rtol=1e-14)


def test_units_divide_exactly():
    values = np.array([[0.3, 0.0, 1e-310, 5e200], [-0.1, 0.0, 3e-310, np.pi]])
    unit = powers_of_two(values)
    assert np.all(np.frexp(unit)[0] == 0.5)
    np.testing.assert_array_equal(values / unit * unit, values)
    peak = np.abs(values / unit).max(axis=0)
    assert peak[1] == 0
    assert np.all((peak[[0, 2, 3]] >= 1) & (peak[[0, 2, 3]] < 2))


def test_what_is_out_of_range():
    assert is_out_of_range(np.inf, np.ones(2))
    assert is_out_of_range(np.nan, np.ones(2))
    assert is_out_of_range(1.0, np.array([np.inf, 1.0]))
    assert is_out_of_range(1e-310, np.array([1e-150]))
    assert not is_out_of_range(1e-310, np.zeros(2))  # nothing pulls
    assert not is_out_of_range(0.0, np.array([1e-16]))  # rounding of columns that are constant
    assert not is_out_of_range(1e200, np.ones(2))
    assert is_out_of_range(1e-291, np.array([0.0, -1e-101]))
    assert not is_out_of_range(1e-289, np.array([1e-101]))  # all digits are there
    assert not is_out_of_range(1e-291, np.array([1e-99]))  # a right-hand side that no such matrix has


def test_lengths_are_as_exact_at_the_edge_of_vanishing_squares_as_elsewhere():
    """Squares of 1e-160 have lost digits, and the length of 3 and 4 is 5 there too."""
    for size in (1e-139, 1e-141, 1e-155, 1e-160, 1e-161, 1e155):
        assert float(column_norms(size * np.array([3.0, 4.0]))) == pytest.approx(5 * size, rel=1e-15)
        many = column_norms(np.array([[3.0, 3.0 * size], [4.0, 4.0 * size]]))
        np.testing.assert_allclose(many, [5.0, 5.0 * size], rtol=1e-15)
    assert column_norms(np.array([np.inf, 1.0])) == np.inf
    assert column_norms(np.zeros((0, 2))).tolist() == [0.0, 0.0]
