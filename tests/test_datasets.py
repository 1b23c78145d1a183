"""The data set of the examples."""

import numpy as np
import pytest

from rankwise.datasets import load_hotels

pd = pytest.importorskip("pandas")


def test_it_is_always_the_same_and_every_search_can_be_learned_from():
    frame = load_hotels()
    pd.testing.assert_frame_equal(frame, load_hotels())
    assert (frame.groupby("search")["grade"].nunique() > 1).all()
    assert (frame.groupby("search")["guests"].nunique() == 1).all()
    assert 0 < frame["rating"].isna().mean() < 0.1
    assert set(frame["grade"]) == {0, 1, 2, 3}


def test_the_parts_are_those_of_the_frame():
    frame = load_hotels()
    X, grade, search = load_hotels(return_X_y_qid=True)
    assert set(frame) - set(X) == {"grade", "search"}
    pd.testing.assert_frame_equal(X, frame[list(X)])
    np.testing.assert_array_equal(grade, frame["grade"])
    np.testing.assert_array_equal(search, frame["search"])
