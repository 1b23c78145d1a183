"""Columns that a model takes as text are read as text, though a CSV file does not say what it holds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from command_line import call, call_json
from rankwise import AutoRanker, RankRLS, load, save
from rankwise.model_selection import predict_scores
from rankwise.preprocessing import TableEncoder

FIT = ["--method", "rls", "--scaling", "none", "--alpha", "1"]


def shop(seed, codes):
    rng = np.random.default_rng(seed)
    n = 20 * len(codes)
    code = rng.choice(codes, size=n)
    price = rng.uniform(1, 9, size=n).round(3)
    worth = np.array([codes.index(one) for one in code]) - 0.1 * price
    return pd.DataFrame({"label": worth.round(3), "qid": np.arange(n) // 10, "code": code, "price": price})


def fitted(capsys, folder, codes, *options):
    shop(0, codes).to_csv(folder / "train.csv", index=False)
    model = folder / "m.rw"
    code, _, err = call(capsys, "fit", folder / "train.csv", *FIT, *options, "-o", model, "-f")
    assert code == 0, err
    return model


def expected(model, rows):
    """Score rows in Python, where the column is text."""
    ranker = load(model)
    return predict_scores(ranker, rows[list(ranker.feature_names_in_)], rows["qid"].to_numpy())


KINDS = {
    "zeros": ["00100", "00200", "90210", "10115"],
    "sizes": ["10", "12", "XL", "S", "M", "L"],
    "truth": ["true", "false", "perhaps", "never"],
    "dates": ["2020-01-01", "2021-01-01", "before", "after", "later"],
}
_NEW = {
    "zeros": KINDS["zeros"][:2],
    "sizes": ["10", "12"],
    "truth": ["true"],
    "dates": ["2020-01-01", "2021-01-01"],
}


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_categories_stay_texts_where_new_rows_look_like_something_else(capsys, tmp_path, kind, way):
    model = fitted(capsys, tmp_path, KINDS[kind], "--category", "code")
    rows = shop(1, KINDS[kind])
    rows = rows[rows["code"].isin(_NEW[kind])]
    assert len(rows) > 5
    path = tmp_path / "new.csv"
    rows.to_csv(path, index=False)
    options = ["--stream"] if way == "stream" else []
    code, out, err = call(capsys, "predict", model, path, *options)
    assert code == 0, err
    assert np.unique(np.round(expected(model, rows), 1)).size > 1
    np.testing.assert_allclose([float(line) for line in out.split()], expected(model, rows), atol=1e-12)


def test_rows_to_validate_on_are_read_as_those_to_train_on(capsys, tmp_path):
    codes = KINDS["zeros"]
    shop(1, codes).to_csv(tmp_path / "valid.csv", index=False)
    options = ["--category", "code", "--valid", tmp_path / "valid.csv", "--metric", "pairwise_error"]
    model = fitted(capsys, tmp_path, codes, *options)
    tried = load(model).best_score_
    found = call_json(capsys, "evaluate", model, tmp_path / "valid.csv", "--metrics", "pairwise_error")
    assert found["models"][str(model)]["pairwise_error"]["value"] == pytest.approx(tried)
    assert tried < 0.1


def test_a_model_of_the_texts_and_one_of_the_numbers_are_compared_on_the_same_rows(capsys, tmp_path):
    codes = KINDS["zeros"]
    text = fitted(capsys, tmp_path, codes, "--category", "code").rename(tmp_path / "text.rw")
    number = fitted(capsys, tmp_path, codes)
    shop(1, codes).to_csv(tmp_path / "new.csv", index=False)
    for first, second in ((text, number), (number, text)):
        both = call_json(capsys, "evaluate", first, tmp_path / "new.csv", "--against", second)["models"]
        for model in (first, second):
            alone = call_json(capsys, "evaluate", model, tmp_path / "new.csv")["models"]
            assert both[str(model)] == alone[str(model)]
        page = ["report", first, tmp_path / "new.csv", "--against", second, "-o", tmp_path / "r.html", "-f"]
        code, _, err = call(capsys, *page)
        assert code == 0, err


def test_duels_of_categories_are_read_as_training_was(capsys, tmp_path):
    rng = np.random.default_rng(0)
    codes = np.array(KINDS["zeros"])
    a, b = rng.integers(4, size=(2, 300))
    a, b = a[a != b], b[a != b]
    duels = pd.DataFrame({"winner_code": codes[np.maximum(a, b)], "loser_code": codes[np.minimum(a, b)]})
    duels.to_csv(tmp_path / "duels.csv", index=False)
    model = tmp_path / "m.rw"
    call_json(capsys, "fit", tmp_path / "duels.csv", "--category", "code", "--method", "rls", "-o", model)
    assert "code=00100" in load(model).encoder_.get_feature_names_out()
    found = call_json(capsys, "evaluate", model, tmp_path / "duels.csv")
    assert found["models"][str(model)]["pairwise_error"]["value"] == 0


@pytest.mark.parametrize("kind", ["automatic", "pipeline", "numbers", "automatic numbers"])
def test_models_that_python_saved_know_the_columns_of_a_table(capsys, tmp_path, kind):
    rows = shop(0, KINDS["sizes"])
    columns = ["price"] if "numbers" in kind else ["code", "price"]
    X, y, qid = rows[columns], rows["label"], rows["qid"]
    if kind.startswith("automatic"):
        model = AutoRanker(methods=["rls"]).fit(X, y, qid=qid)
    elif kind == "numbers":
        model = RankRLS().fit(X, y, qid=qid)
    else:
        model = make_pipeline(TableEncoder(), RankRLS()).fit(X, y, rankrls__qid=qid)
    save(model, tmp_path / "m.rw")
    new = shop(1, KINDS["sizes"])[["price", "qid", "code", "label"]].assign(more=1.0)
    new.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "new.csv")
    assert (code, err) == (0, "")
    np.testing.assert_allclose([float(line) for line in out.split()], model.predict(new[columns]), atol=1e-12)


def test_numbers_that_are_written_as_text_say_how_they_can_be_taken(capsys, tmp_path):
    shop(0, KINDS["zeros"]).to_parquet(tmp_path / "t.parquet")
    fit = ["fit", tmp_path / "t.parquet", *FIT, "-o", tmp_path / "m.rw"]
    code, _, err = call(capsys, *fit)
    assert code == 1
    assert "column 'code' holds numbers that are written as text, such as '" in err
    for option in ("--category code", "--id code"):
        assert option in err
        code, _, err_then = call(capsys, *fit, *option.split(), "-f")
        assert code == 0, err_then


def mixed(seed):
    """Return rows with a column that nothing can be learned from, and one of ids."""
    rows = shop(seed, KINDS["sizes"])
    return rows.assign(
        empty="",
        since=[f"2020-01-{1 + at % 28:02d}" for at in range(len(rows))],
        sku=[f"{at:05d}" for at in rows.index],
    )


@pytest.fixture
def saved(capsys, tmp_path):
    mixed(0).to_csv(tmp_path / "train.csv", index=False)
    fit = ["fit", tmp_path / "train.csv", *FIT, "--category", "code", "--id", "sku", "-o", tmp_path / "m.rw"]
    code, _, err = call(capsys, *fit)
    assert code == 0, err
    return tmp_path / "m.rw"


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "report"])
def test_a_column_that_was_left_out_need_not_be_there(capsys, tmp_path, saved, command):
    rows = mixed(1).drop(columns="empty").assign(note=[f"{at}" if at % 3 else "n.a." for at in range(120)])
    rows.to_csv(tmp_path / "new.csv", index=False)
    options = ["-o", tmp_path / "page.html"] if command == "report" else []
    code, _, err = call(capsys, command, saved, tmp_path / "new.csv", *options)
    assert (code, err) == (0, "")


def test_a_column_that_is_not_there_is_named(capsys, tmp_path, saved):
    mixed(1).rename(columns={"price": "PRICE"}).to_csv(tmp_path / "new.csv", index=False)
    code, _, err = call(capsys, "predict", saved, tmp_path / "new.csv")
    assert code == 1
    assert "new.csv lacks 1 of the model's 3 columns, such as 'price'" in err
    assert "did you mean 'PRICE'?" in err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"since": 20200304}, "'since' held dates in training, and holds numbers here"),
        ({"since": "04.03.2020"}, "'since' held dates in training, and holds texts here"),
        ({"price": "2020-03-04"}, "'price' held numbers in training, and holds dates here"),
        ({"price": float("inf")}, "'price' is infinite in row 0"),
    ],
)
def test_columns_that_hold_something_else_are_refused(capsys, tmp_path, saved, changed, said):
    mixed(1).assign(**changed).to_csv(tmp_path / "new.csv", index=False)
    for command in ("predict", "evaluate", "explain"):
        code, out, err = call(capsys, command, saved, tmp_path / "new.csv")
        assert (code, out) == (1, "")
        assert said in err
    nothing = dict.fromkeys(changed, "")
    mixed(1).assign(**nothing).to_csv(tmp_path / "new.csv", index=False)
    assert call(capsys, "predict", saved, tmp_path / "new.csv")[0] == 0


def test_ranks_of_rows_without_queries_are_said_to_be_of_one_ranking(capsys, tmp_path, saved):
    mixed(1).drop(columns="qid").to_csv(tmp_path / "new.csv", index=False)
    said = "new.csv has no column qid: all rows are ranked as one ranking (--qid COLUMN)"
    assert said in call(capsys, "predict", saved, tmp_path / "new.csv", "--ranks")[2]
    assert said in call(capsys, "predict", saved, tmp_path / "new.csv", "-o", tmp_path / "ranked.csv")[2]
    assert call(capsys, "predict", saved, tmp_path / "new.csv")[2] == ""


@pytest.mark.parametrize("option", ["--category", "--words"])
def test_a_column_that_an_option_names_must_be_there(capsys, tmp_path, option):
    shop(0, KINDS["sizes"]).to_csv(tmp_path / "t.csv", index=False)
    code, _, err = call(capsys, "inspect", tmp_path / "t.csv", option, "cod")
    assert code == 1
    assert f"t.csv has no column 'cod' to learn from, which {option} names" in err
    assert "did you mean 'code'?" in err


@pytest.mark.parametrize("command", [["explain"], ["predict", "--stream"], ["predict"]])
def test_a_column_of_ids_that_is_named_must_be_there(capsys, tmp_path, saved, command):
    mixed(1).to_csv(tmp_path / "new.csv", index=False)
    shop(0, ["1", "2", "3"]).to_csv(tmp_path / "numbers.csv", index=False)
    numbers = tmp_path / "numbers.rw"
    assert call(capsys, "fit", tmp_path / "numbers.csv", *FIT, "-o", numbers)[0] == 0
    for model, data in ((saved, "new.csv"), (numbers, "numbers.csv")):
        name, *options = command
        target = ["-o", tmp_path / "ranked.tsv"] if name == "predict" else []
        code, _, err = call(capsys, name, model, tmp_path / data, *options, "--item-id", "skuu", *target)
        assert code == 1
        assert "has no column 'skuu', which --item-id names" in err
