"""Logs of clicks on the command line: the model that their preferences give by hand."""

import shlex

import numpy as np
import pandas as pd
import pytest

import rankwise
from command_line import call
from rankwise.data import pairs_from_clicks


@pytest.fixture
def log(tmp_path):
    """A log of 60 lists, with a click or two each, and the items that were shown."""
    rng = np.random.default_rng(0)
    items = pd.DataFrame(rng.normal(size=(30, 4)), columns=list("abcd"))
    items.insert(0, "id", [f"I{at}" for at in range(30)])
    rows = []
    for session in range(60):
        shown = rng.choice(30, 8, replace=False)
        worth = items.loc[shown, "a"].to_numpy() - items.loc[shown, "c"].to_numpy() + rng.normal(size=8)
        rows += [(f"s{session}", at + 1, int(worth[at] > 1), f"I{shown[at]}") for at in range(8)]
    frame = pd.DataFrame(rows, columns=["session", "position", "clicked", "item"])
    items.to_csv(tmp_path / "items.csv", index=False)
    frame.to_csv(tmp_path / "log.csv", index=False)
    return tmp_path, frame, items


def coef_in(path):
    found = rankwise.load(path)
    found = getattr(found, "best_estimator_", found)
    return getattr(found, "steps", [("", found)])[-1][1].coef_


@pytest.mark.parametrize("against", ["above", "above_and_next", "all"])
@pytest.mark.parametrize("propensity", [None, 0.7])
def test_a_log_gives_the_model_of_its_pairs(capsys, log, against, propensity):
    folder, frame, items = log
    more = [] if propensity is None else ["--propensity", propensity, "--max-weight", 3]
    options = ["--method", "rls", "--scaling", "none", "--alpha", 2]
    code, _, err = call(
        capsys, "fit", folder / "log.csv", "--items", folder / "items.csv", "--clicks", against, *more, *options, "-o",
        folder / "m.rw",
    )  # fmt: skip
    assert code == 0, err
    pairs, weight = pairs_from_clicks(
        frame["session"], frame["position"], frame["clicked"], against=against, propensity=propensity,
        max_weight=None if propensity is None else 3,
    )  # fmt: skip
    rows = np.array([int(name[1:]) for name in frame["item"]])
    by_hand = rankwise.RankRLS(alpha=2.0).fit_pairs(
        items[list("abcd")].to_numpy(), rows[pairs], weight=weight
    )
    np.testing.assert_allclose(coef_in(folder / "m.rw"), by_hand.coef_, rtol=1e-6)


def test_columns_have_other_names_and_flags(capsys, log):
    folder, frame, _ = log
    named = frame.rename(columns={"session": "list", "item": "sku"}).assign(clicked=frame["clicked"] == 1)
    named.to_parquet(folder / "log.parquet")
    common = ["--items", folder / "items.csv", "--method", "rls", "--alpha", 1, "-f"]
    for name, more in (("log.csv", []), ("log.parquet", ["--click-columns", "list,position,clicked,sku"])):
        code, _, err = call(
            capsys, "fit", folder / name, "--clicks", "above", *more, *common, "-o", folder / f"{name}.rw"
        )
        assert code == 0, err
    coefs = [coef_in(folder / f"{name}.rw") for name in ("log.csv", "log.parquet")]
    assert coefs[0].tolist() == coefs[1].tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--clicks", "above"], "add --items"),
        (["--items", "items.csv", "--propensity", "1"], "for logs of clicks"),
        (["--items", "items.csv", "--clicks", "above", "--click-columns", "a,b"], "four columns"),
        (["--items", "items.csv", "--clicks", "above", "--click-columns", "a,b,c,d"], "no column 'a'"),
    ],
)
def test_mistakes_have_remedies(capsys, log, monkeypatch, arguments, words):
    monkeypatch.chdir(log[0])
    code, _, err = call(capsys, "fit", "log.csv", *arguments, "-o", "m.rw")
    assert code in {1, 2}
    assert words in err


def test_a_log_without_a_passed_result_is_an_error(capsys, log):
    folder, frame, _ = log
    frame.assign(clicked=1).to_csv(folder / "all.csv", index=False)
    code, _, err = call(
        capsys,
        "fit",
        folder / "all.csv",
        "--items",
        folder / "items.csv",
        "--clicks",
        "above",
        "-o",
        folder / "m.rw",
    )
    assert code == 1
    assert "--clicks all" in err


def test_a_log_of_other_days_evaluates_as_the_next_line_says(capsys, log):
    folder, frame, _ = log
    later = frame["session"].isin(frame["session"].unique()[::2])
    frame[~later].to_csv(folder / "first.csv", index=False)
    frame[later].to_csv(folder / "second.csv", index=False)
    options = ["--items", folder / "items.csv", "--clicks", "all", "--propensity", 0.5, "--max-weight", 5.0]
    code, out, err = call(
        capsys, "fit", folder / "first.csv", *options, "--method", "rls", "-o", folder / "m.rw"
    )
    assert code == 0, err
    said = shlex.split(out.strip().splitlines()[-1].removeprefix("Next: rankwise "))
    code, out, err = call(capsys, *[folder / "second.csv" if word == "TEST" else word for word in said])
    assert code == 0, err
    assert "pairwise_error" in out
    second = frame[later]
    n_pairs = len(
        pairs_from_clicks(second["session"], second["position"], second["clicked"], against="all")[0]
    )
    assert f"{n_pairs:,} preferences" in out


def test_a_log_that_is_taken_as_preferences_says_what_it_is(capsys, log):
    folder, frame, _ = log
    items = ["--items", folder / "items.csv"]
    code, _, err = call(capsys, "fit", folder / "log.csv", *items, "-o", folder / "m.rw")
    assert code == 1
    assert "log.csv is a log of clicks" in err
    assert "--clicks above" in err
    frame.rename(columns={"session": "visit"}).to_csv(folder / "other.csv", index=False)
    code, _, err = call(
        capsys, "fit", folder / "other.csv", *items, "--clicks", "above", "-o", folder / "m.rw"
    )
    assert code == 1
    assert "other.csv has no column 'session' of a log of clicks.\nHint: --click-columns" in err
    named = ["--click-columns", "visit,position,click,item"]
    code, _, err = call(
        capsys, "fit", folder / "other.csv", *items, "--clicks", "above", *named, "-o", folder / "m.rw"
    )
    assert code == 1
    assert "no column 'click' of a log of clicks, which --click-columns names" in err
    assert "did you mean 'clicked'?" in err
