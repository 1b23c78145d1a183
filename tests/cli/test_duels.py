"""Duels, with what won and what lost in one row: from Python by tables, and through every command."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from command_line import call, call_json
from optional import polars as pl
from rankwise import AutoRanker, load
from rankwise.data.duels import same_rows
from rankwise.exceptions import InvalidInputError
from rankwise.metrics.intervals import mean_over_pairs
from rankwise.metrics.pairwise import wrong_pairs


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


def test_rows_are_numbered_by_what_they_hold():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    for form in (X, sp.csr_matrix(X)):
        found = same_rows(form)
        assert found[0] == found[2]
        assert len(set(found.tolist())) == 3


def test_mistakes_in_python():
    _, _, sides = duels()
    with pytest.raises(InvalidInputError, match="winner_age and loser_age"):
        AutoRanker(**FAST).fit_pairs(sides[0])
    with pytest.raises(InvalidInputError, match="row k of both is duel k"):
        AutoRanker(**FAST).fit_pairs(sides[0], sides[1].iloc[:5])


@pytest.mark.parametrize("with_text", [True, False])
def test_through_the_commands(tmp_path, capsys, with_text):
    _, _, sides = duels(with_text=with_text)
    table = one_table(sides)
    table["day"] = "monday"
    train, test, model = tmp_path / "train.csv", tmp_path / "test.csv", tmp_path / "model.rw"
    table.iloc[:400].to_csv(train, index=False)
    table.iloc[400:].to_csv(test, index=False)
    code, out, err = call(capsys, "fit", train, "--method", "rls", "-o", model)
    assert code == 0, err
    assert "400 preferences" in out
    assert "not used of" in err
    assert "day" in err
    found = call_json(capsys, "evaluate", model, test)
    assert "pairwise_error" in str(found)
    code, out, err = call(capsys, "predict", model, test)
    assert code == 0, err
    differences = np.array(out.split(), dtype=float)
    fitted = load(model)
    # A model of numbers alone was given an array, without names.
    held = (table.iloc[400:],) if with_text else [side.iloc[400:].to_numpy(float) for side in sides]
    np.testing.assert_allclose(differences, fitted.predict_pairs(*held), rtol=1e-9)
    assert (differences > 0).mean() > 0.6
    code, _, err = call(capsys, "report", model, test, "-o", tmp_path / "report.html")
    assert code == 0, err
    code, out, err = call(capsys, "inspect", train)
    assert code == 0, err
    assert "400" in out
    code, _, err = call(capsys, "predict", model, test, "-o", tmp_path / "ranked.tsv")
    assert code != 0
    assert "lists duels" in err


def test_equal_rows_are_left_out_and_said(tmp_path, capsys):
    _, _, sides = duels(with_text=False)
    table = one_table(sides)
    table.loc[3, ["loser_age", "loser_height"]] = table.loc[3, ["winner_age", "winner_height"]].to_numpy()
    table.to_csv(tmp_path / "duels.csv", index=False)
    code, out, err = call(
        capsys, "fit", tmp_path / "duels.csv", "--method", "rls", "-o", tmp_path / "model.rw"
    )
    assert code == 0, err
    assert "left out 1 duel of" in err
    assert f"{len(table) - 1} preferences, 60 items" in out
    code, _, err = call(
        capsys, "fit", tmp_path / "duels.csv", "--features", "weight", "-o", tmp_path / "other.rw"
    )
    assert code != 0
    assert "winner_weight and loser_weight" in err


@pytest.mark.parametrize("with_text", [True, False])
def test_competitors_of_duels_in_one_row_are_those_of_duels_by_id(capsys, tmp_path, with_text):
    """Two duels of one competitor are dependent, whether rows repeat what it is or name it."""
    players, pairs, sides = duels(n_players=12, with_text=with_text)
    one_table(sides).to_csv(tmp_path / "wide.csv", index=False)
    model = tmp_path / "m.rw"
    fit = ["fit", tmp_path / "wide.csv", "--method", "rls", "--scaling", "none", "-o", model]
    trained = call_json(capsys, *fit)["train"]
    found = call_json(capsys, "evaluate", model, tmp_path / "wide.csv")
    assert found["data"]["items"] == trained["items"] == len(players)
    own = players if with_text else players.to_numpy()
    scores = load(model).predict(own)
    expected = mean_over_pairs(wrong_pairs(scores, pairs), pairs, np.ones(len(pairs)))
    figure = found["models"][str(model)]["pairwise_error"]
    assert (figure["value"], figure["low"], figure["high"]) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    code, _, err = call(capsys, "report", model, tmp_path / "wide.csv", "-o", tmp_path / "r.html")
    assert code == 0, err
    assert f"{len(players)} rows fought" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("options", [[], ["--cross", "height:hand"], ["--features", "age,hand"]])
def test_items_with_texts_and_gaps_are_encoded_like_rows(capsys, tmp_path, options):
    players, pairs, _ = duels(n_players=40)
    players.insert(0, "id", [f"{at:03d}" for at in range(40)])
    players.to_csv(tmp_path / "items.csv", index=False)
    ids = players["id"].to_numpy()
    table = pd.DataFrame({"winner": ids[pairs[:, 0]], "loser": ids[pairs[:, 1]]})
    table[:300].to_csv(tmp_path / "train.csv", index=False)
    table[300:].to_csv(tmp_path / "test.csv", index=False)
    items, model = ["--items", tmp_path / "items.csv"], tmp_path / "m.rw"
    fit = [
        "fit",
        tmp_path / "train.csv",
        *items,
        "--method",
        "rls",
        "--scaling",
        "none",
        *options,
        "-o",
        model,
    ]
    code, out, err = call(capsys, *fit)
    assert code == 0, err
    assert "hand: a category of 2 values" in out
    gaps = f"form: a number, {int(players['form'].isna().sum())} missing"
    assert (gaps in out) == ("--features" not in options)
    assert "hand: a category" in call(capsys, "inspect", tmp_path / "train.csv", *items, *options)[1]
    code, out, err = call(capsys, "predict", model, tmp_path / "items.csv")
    assert (code, err) == (0, "")
    scores = np.array([float(line) for line in out.split()])
    np.testing.assert_allclose(scores, load(model).predict(players[list(load(model).feature_names_in_)]))
    found = call_json(capsys, "evaluate", model, tmp_path / "test.csv", *items)["models"][str(model)]
    assert found["pairwise_error"]["value"] == pytest.approx(wrong_pairs(scores, pairs[300:]).mean())
    held = call_json(capsys, *fit, "-f", "--valid", tmp_path / "test.csv")["tried"]
    again = call_json(capsys, "evaluate", model, tmp_path / "test.csv", *items)["models"][str(model)]
    (chosen,) = [one for one in held if one["chosen"]]
    assert chosen["value"] == pytest.approx(again["pairwise_error"]["value"])
    code, _, err = call(capsys, "report", model, tmp_path / "test.csv", *items, "-o", tmp_path / "r.html")
    assert code == 0, err
