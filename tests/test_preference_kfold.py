"""Folds of preferences: what must stay on one side does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.model_selection import PreferenceKFold, QueryKFold


def draw(seed, rows=40, n_pairs=300):
    rng = np.random.default_rng(seed)
    winner = rng.integers(rows, size=n_pairs)
    return np.column_stack([winner, (winner + rng.integers(1, rows, size=n_pairs)) % rows]), rng


def known(pairs, positions):
    return set(pairs[positions].ravel().tolist())


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_pairs_of_the_same_two_items_stay_together(seed):
    pairs, _ = draw(seed, rows=8, n_pairs=60)
    tested = []
    for train, test in PreferenceKFold(3).split(pairs):
        assert {frozenset(p) for p in pairs[train].tolist()}.isdisjoint(
            {frozenset(p) for p in pairs[test].tolist()}
        )
        assert train.size + test.size == len(pairs)
        tested.extend(test)
    assert sorted(tested) == list(range(len(pairs)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_item_of_a_test_pair_is_seen_in_training(seed):
    pairs, _ = draw(seed)
    for train, test in PreferenceKFold(4, by="items").split(pairs):
        assert known(pairs, train).isdisjoint(known(pairs, test))
        assert train.size > 0
        assert test.size > 0


def test_components_stay_together_and_lose_no_pair():
    """Answers to ten prompts, compared only inside a prompt."""
    rng = np.random.default_rng(0)
    prompt = rng.integers(10, size=200)
    answer = rng.integers(5, size=200)
    pairs = np.column_stack([prompt * 5 + answer, prompt * 5 + (answer + 1) % 5])
    tested = []
    for train, test in PreferenceKFold(5, by="components").split(pairs):
        assert known(pairs, train).isdisjoint(known(pairs, test))
        assert train.size + test.size == len(pairs)
        assert 20 <= test.size <= 60
        tested.extend(test)
    assert sorted(tested) == list(range(len(pairs)))


def test_groups_stay_together():
    pairs, rng = draw(1)
    groups = rng.choice(["a", "b", "c", "d"], size=len(pairs))
    splitter = PreferenceKFold(2, by="groups")
    assert splitter.get_n_splits() == 2
    for train, test in splitter.split(pairs, groups=groups):
        assert set(groups[train]).isdisjoint(groups[test])
        assert train.size + test.size == len(pairs)


BAD = [
    ({"by": "rows"}, [[0, 1]], InvalidInputError, "by='rows' is not an option"),
    ({"n_splits": 1}, [[0, 1]], InvalidInputError, "n_splits=1 makes no folds"),
    ({}, [], NoPairsError, "list of pairs is empty"),
    ({"n_splits": 2}, [[0, 0]], InvalidInputError, "to itself"),
    ({"n_splits": 2}, [["a", "b"]], InvalidInputError, "translate item ids"),
    ({"n_splits": 3}, [[0, 1], [1, 0], [2, 1]], InvalidInputError, "2 pairs cannot make 3 folds"),
    (
        {"n_splits": 2, "by": "components"},
        [[0, 1], [1, 2]],
        InvalidInputError,
        "1 components cannot make 2 folds",
    ),
    ({"n_splits": 2, "by": "items"}, [[0, 1]], InvalidInputError, "A fold has 0 pairs to test"),
    ({"n_splits": 2, "by": "groups"}, [[0, 1]], InvalidInputError, "needs groups"),
]


@pytest.mark.parametrize(("options", "pairs", "error", "message"), BAD)
def test_refusals_say_what_is_wrong_and_what_to_do(options, pairs, error, message):
    with pytest.raises(error, match=message) as caught:
        list(PreferenceKFold(**options).split(pairs))
    assert "Hint: " in str(caught.value)


def test_errors_speak_of_the_argument_that_was_passed():
    pairs, _ = draw(1)
    with pytest.raises(
        InvalidInputError, match=r"groups has 3 entries, but pairs has \d+ rows.*gives the group"
    ):
        list(PreferenceKFold(2, by="groups").split(pairs, groups=[1, 2, 3]))
    with pytest.raises(InvalidInputError, match="groups is missing"):
        list(PreferenceKFold(2, by="groups").split(pairs, groups=[None] * len(pairs)))
    with pytest.raises(InvalidInputError, match="groups has 2 entries, but X has 3 rows"):
        list(QueryKFold(2).split([[1], [2], [3]], groups=[1, 2]))
