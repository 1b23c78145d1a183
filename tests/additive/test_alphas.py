"""The alphas of curves: a grid by number, and how it goes on."""

import numpy as np
import pytest

from rankwise.additive.choosing import DEFAULT_ALPHAS, Ladder, is_worth


def test_the_default_grid_goes_on_at_both_ends_and_stops():
    ladder = Ladder(DEFAULT_ALPHAS)
    steps = np.array([ladder.at(step) for step in range(-6, 15)])
    assert steps[6:15].tolist() == list(DEFAULT_ALPHAS)
    np.testing.assert_allclose(steps[:-1] / steps[1:], np.sqrt(10), rtol=0.1)
    assert ladder.at(-7) is ladder.at(15) is None
    assert [ladder.is_beyond(step) for step in (-1, 0, 8, 9)] == [True, False, False, True]


def test_a_grid_that_somebody_chose_ends_where_it_ends():
    ladder = Ladder([1e-1, 1e-2, 1e-3])
    assert [ladder.at(step) for step in range(-1, 4)] == [None, 1e-1, 1e-2, 1e-3, None]


@pytest.mark.parametrize("before", [0.1, -0.8])
def test_a_gain_must_be_noticeable(before):
    assert is_worth(before - 0.01, before)
    assert not is_worth(before, before)
    assert not is_worth(before - 1e-5, before)
