"""Duels, with what won and what lost in one row, as tables."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from optional import polars as pl
from rankwise import AutoRanker
from rankwise.data import stack_preferred
from rankwise.exceptions import InvalidInputError


def duels(n_players=60, n_duels=500, seed=0, *, with_text=True):
    rng = np.random.default_rng(seed)
    players = pd.DataFrame(
        {
            "age": rng.integers(18, 40, n_players),
            "form": np.where(rng.random(n_players) < 0.2, np.nan, rng.normal(size=n_players).round(3)),
            "hand": rng.choice(["left", "right"], n_players),
            "height": rng.normal(180, 9, n_players).round(1),
        }
    )
    if not with_text:
        players = players[["age", "height"]]
    worth = (
        -0.2 * players["age"] + 0.05 * players["height"] + (0 if not with_text else players["form"].fillna(0))
    )
    a, b = rng.integers(n_players, size=(2, n_duels))
    a, b = a[a != b], b[a != b]
    wins = worth.to_numpy()[a] + rng.logistic(size=a.size) > worth.to_numpy()[b]
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    sides = [players.iloc[side].reset_index(drop=True) for side in (winner, loser)]
    return players, np.column_stack([winner, loser]), sides


def one_table(sides):
    return pd.concat(
        [side.add_prefix(prefix) for side, prefix in zip(sides, ("winner_", "loser_"), strict=True)], axis=1
    )


FAST = {"methods": ["rls"]}


def test_all_forms_of_duels_are_the_same_duels():
    _, _, sides = duels()
    table = one_table(sides)
    first = AutoRanker(**FAST).fit_pairs(*sides)
    expected = first.predict_pairs(*sides)
    assert first.feature_names_in_.tolist() == ["age", "form", "hand", "height"]
    for convert in (pd.DataFrame, pa.Table.from_pandas, pl.from_pandas):
        form = convert(table)
        model = AutoRanker(**FAST).fit_pairs(form)
        np.testing.assert_allclose(model.predict_pairs(form), expected, rtol=1e-9)
        np.testing.assert_allclose(
            model.predict_pairs_proba(form), first.predict_pairs_proba(*sides), rtol=1e-9
        )
        assert model.best_score_ == pytest.approx(first.best_score_, abs=1e-12)


def test_two_matrices():
    _, _, sides = duels(with_text=False)
    rows = [np.column_stack([side.to_numpy(float), np.ones(len(side))]) for side in sides]
    model = AutoRanker(**FAST).fit_pairs(*rows)
    assert model.n_features_in_ == 3
    assert (model.predict_pairs(*rows) > 0).mean() > 0.6
    held = AutoRanker(**FAST).fit_pairs(rows[0][:300], rows[1][:300], eval_set=(rows[0][300:], rows[1][300:]))
    wrong = held.predict_pairs(rows[0][300:], rows[1][300:])
    assert held.best_score_ == pytest.approx(np.where(wrong == 0, 0.5, wrong < 0).mean(), abs=1e-12)


def test_what_two_competitors_did_is_in_one_fold():
    _, pairs, sides = duels(n_players=8, n_duels=200)
    model = AutoRanker(**FAST).fit_pairs(*sides)
    fold = model.search_.problem.fold
    of_pair = {}
    for (a, b), own in zip(pairs, fold, strict=True):
        of_pair.setdefault(frozenset((int(a), int(b))), set()).add(int(own))
    assert all(len(own) == 1 for own in of_pair.values())


def test_mistakes_in_python():
    _, _, sides = duels()
    with pytest.raises(InvalidInputError, match="winner_age and loser_age"):
        AutoRanker(**FAST).fit_pairs(sides[0])
    with pytest.raises(InvalidInputError, match="row k of both is duel k"):
        AutoRanker(**FAST).fit_pairs(sides[0], sides[1].iloc[:5])


def test_rows_of_two_columns_are_not_taken_for_pairs():
    rng = np.random.default_rng(0)
    winners = rng.normal(size=(40, 2))
    losers = winners - rng.uniform(0.1, 1.0, size=(40, 2))
    model = AutoRanker(methods=["rls"], estimate=False).fit_pairs(winners, losers)
    assert (model.predict_pairs(winners, losers) > 0).all()
    again = AutoRanker(methods=["rls"], estimate=False).fit_pairs(*stack_preferred(winners, losers))
    assert (model.predict(winners) == again.predict(winners)).all()
    numbers = np.column_stack([np.arange(30), rng.permutation(np.arange(10, 40))[:30]])
    numbers = numbers[numbers[:, 0] != numbers[:, 1]]
    for pairs in (numbers, numbers.astype(float), numbers.tolist()):  # joins make floats of row numbers
        assert model.predict_pairs(winners, pairs).shape == (len(numbers),)
        AutoRanker(methods=["rls"], estimate=False).fit_pairs(winners, pairs)


def test_a_mapping_is_no_table_of_duels():
    with pytest.raises(InvalidInputError, match="There are no pairs"):
        AutoRanker(**FAST).fit_pairs({"winner_a": [1.0, 2, 3, 4], "loser_a": [0.0, 1, 2, 2]}, None)
