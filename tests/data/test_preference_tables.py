"""Lists of comparisons by id: the same pairs as by row number, and errors that name ids and lines."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rankwise import RankRLS
from rankwise.data import load_preferences
from rankwise.exceptions import InvalidInputError, NoPairsError


@pytest.fixture
def files(tmp_path):
    items = tmp_path / "items.csv"
    pairs = tmp_path / "pairs.csv"
    items.write_text("id,sugar,price\n007,0,1\n08,10.6,2\nmilk,4.8,1\n")
    pairs.write_text("winner,loser,weight\n007,08,3\nmilk,08,1\n007,milk,2\n")
    return pairs, items


def test_ids_become_rows(files):
    table = load_preferences(*files)
    assert table.item_ids.tolist() == ["007", "08", "milk"]  # as they are written
    assert table.pairs.tolist() == [[0, 1], [2, 1], [0, 2]]
    assert table.weight.tolist() == [3, 1, 2]
    assert table.magnitude is None
    assert table.feature_names == ["sugar", "price"]
    model = RankRLS().fit_pairs(table.X, table.pairs, table.magnitude, table.weight)
    by_hand = RankRLS().fit_pairs([[0, 1], [10.6, 2], [4.8, 1]], [[0, 1], [2, 1], [0, 2]], weight=[3, 1, 2])
    assert model.coef_.tobytes() == by_hand.coef_.tobytes()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["int", "text", "mixed", "float"])
def test_agrees_with_looking_each_id_up(seed, kind, tmp_path):
    rng = np.random.default_rng(seed)
    ids = rng.permutation(1000)[:60]
    edges = np.array([rng.choice(60, size=2, replace=False) for _ in range(200)])
    own = ids.astype(str) if kind == "text" else ids
    other = own.astype(str) if kind == "mixed" else own.astype(float) if kind == "float" else own
    items = pd.DataFrame({"name": own, "a": rng.normal(size=60), "text": "t"})
    duels = pd.DataFrame({"better": other[edges[:, 0]], "worse": other[edges[:, 1]], "by": rng.random(200)})
    duels.to_parquet(tmp_path / "duels.parquet", row_group_size=37)
    table = load_preferences(
        tmp_path / "duels.parquet", items, item_id="name", winner="better", loser="worse", magnitude="by"
    )
    position = {str(value): row for row, value in enumerate(ids)}
    expected = [[position[str(ids[i])], position[str(ids[j])]] for i, j in edges]
    assert table.pairs.tolist() == expected
    assert table.magnitude.tobytes() == duels["by"].to_numpy().tobytes()
    assert (table.item_ids == own).all()
    assert table.weight is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "winner,loser\n007,08\nmilk,8\n" + "tea,08\n" * 9,
            r"pairs.csv, column 'winner', row 2 \(line 4\): the table of items lacks 'tea' \(9 comparisons\)",
        ),
        ("winner,loser\n007,\n", r"column 'loser', row 0 \(line 2\): the loser is missing"),
        ("winner,loser,magnitude\n007,08,x\n", r"column 'magnitude' does not hold numbers.*such as 'x'"),
        ("winner,loser,magnitude\n007,08,-1\n", r"magnitude of pair 0 is negative. Hint: swap"),
        ("winner,loser\n007,007\n", "prefers row 0 to itself"),
        ("winer,loser\n007,08\n", r"no column 'winner'.*did you mean 'winer'"),
    ],
)
def test_what_is_wrong_with_comparisons_is_named(content, message, files):
    pairs, items = files
    pairs.write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        load_preferences(pairs, items)


def test_what_is_wrong_with_items_is_named(files):
    pairs, items = files
    with pytest.raises(InvalidInputError, match=r"no column 'how_much', which was named as weight"):
        load_preferences(pairs, items, weight="how_much")
    with pytest.raises(InvalidInputError, match=r"no column 'id', which was named as item_id"):
        load_preferences(pairs, pa.table({"a": [1]}))
    pairs.write_text("winner,loser\n")
    with pytest.raises(NoPairsError):
        load_preferences(pairs, items)
    items.write_text("id,a\n007,1\n08,2\n007,3\n")
    with pytest.raises(InvalidInputError, match=r"Item '007' comes twice, in rows \[0, 2\]"):
        load_preferences(pairs, items)
