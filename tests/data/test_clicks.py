"""Clicks against a plain double loop over each list of results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.data import pairs_from_clicks
from rankwise.exceptions import InvalidInputError


def listed(session, position, clicked, against):
    """Every (clicked, passed by) pair of entries, one by one."""
    pairs = []
    for i in range(len(session)):
        for j in range(len(session)):
            if session[i] != session[j] or not clicked[i] or clicked[j]:
                continue
            if position[j] < position[i] or against == "all":
                pairs.append((i, j))
    return pairs


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), against=st.sampled_from(["above", "all"]))
def test_pairs_equal_those_of_the_double_loop(seed, against):
    rng = np.random.default_rng(seed)
    session = rng.integers(3, size=14)
    position = rng.permutation(14) + 1  # with gaps: not every result that was shown need be in the log
    clicked = rng.random(14) < 0.4
    pairs, weight = pairs_from_clicks(session, position, clicked, against=against)
    assert sorted(map(tuple, pairs.tolist())) == sorted(listed(session, position, clicked, against))
    np.testing.assert_array_equal(weight, np.ones(len(pairs)))
    weighted = pairs_from_clicks(session, position, clicked, against=against, propensity=position**-0.5)
    np.testing.assert_array_equal(weighted[0], pairs)
    np.testing.assert_allclose(weighted[1], np.sqrt(position[pairs[:, 0]]))


def test_the_example_of_the_paper():
    """Joachims (2002): of ten links the first, third and seventh were clicked."""
    clicked = np.isin(np.arange(1, 11), (1, 3, 7))
    pairs, _ = pairs_from_clicks(["q"] * 10, np.arange(1, 11), clicked)
    assert (pairs + 1).tolist() == [[3, 2], [7, 2], [7, 4], [7, 5], [7, 6]]


def test_a_log_without_preferences_gives_none():
    pairs, weight = pairs_from_clicks([1, 1], [1, 2], [True, False])
    assert pairs.shape == (0, 2)
    assert weight.shape == (0,)


LOG = {"session": [1, 1, 2], "position": [1, 2, 1], "clicked": [0, 1, 1]}
BAD = [
    ({"against": "below"}, "against='below' is not an option"),
    ({"position": [1, 1, 1]}, "Session .* has two results at position 1"),
    ({"position": [1, np.nan, 1]}, "position is NaN or infinite"),
    ({"position": ["top", 2, 1]}, "position must be numbers"),
    ({"clicked": [0, 2, 1]}, "clicked must be True or False"),
    ({"clicked": [0, 1]}, "clicked has 2 entries where 3"),
    ({"session": [1, 1]}, "session has 2 entries, but position has"),
    ({"propensity": [0.5, 0.0, 1.0]}, "probabilities above 0"),
    ({"propensity": [0.5, 0.2]}, "propensity has 2 entries"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_refusals_say_what_is_wrong_and_what_to_do(change, message):
    with pytest.raises(InvalidInputError, match=message) as caught:
        pairs_from_clicks(**{**LOG, **change})
    assert "Hint: " in str(caught.value)
