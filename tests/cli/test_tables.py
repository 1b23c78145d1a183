"""Tables on the command line: which columns are what, said once, and remembered by the model."""

import json

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest

import rankwise
from command_line import call, call_json, duels
from rankwise.data import load_table
from rankwise.exceptions import InvalidInputError
from rankwise.persistence import read_header

FIT = ["--method", "rls", "--scaling", "none", "--alpha", "1"]
NAMED = ["--label", "grade", "--qid", "search", "--embedding", "vec", "--features", "price,clicks"]


def products(seed, rows=100):
    rng = np.random.default_rng(seed)
    X, vectors = rng.normal(size=(rows, 2)), rng.normal(size=(rows, 4))
    return pd.DataFrame(
        {
            "search": np.arange(rows) // 10,
            "title": "tea",
            "grade": np.clip(np.round(X[:, 0] + vectors[:, 0] + 1), 0, 4),
            "price": X[:, 0],
            "clicks": X[:, 1],
            "vec": list(vectors),
        }
    )


@pytest.fixture
def model(capsys, tmp_path):
    products(0).to_feather(tmp_path / "train.feather")
    products(1).to_parquet(tmp_path / "test.parquet")
    code, _, err = call(capsys, "fit", tmp_path / "train.feather", *NAMED, *FIT, "-o", tmp_path / "m.rw")
    assert code == 0, err
    return tmp_path / "m.rw"


def test_a_model_reads_tables_as_its_training_table_was_read(capsys, tmp_path, model):
    test = tmp_path / "test.parquet"
    code, out, err = call(capsys, "predict", model, test)
    assert code == 0, err
    assert out == call(capsys, "predict", model, test, *NAMED)[1]
    plain, named = (call_json(capsys, "evaluate", model, test, *more) for more in ([], NAMED))
    assert plain == named
    assert plain["data"] == {"file": str(test), "rows": 100, "queries": 10, "columns": 6}
    code, _, err = call(capsys, "report", model, test, "-o", tmp_path / "report.html")
    assert code == 0, err
    assert "vec[3]" in (tmp_path / "report.html").read_text()


def test_options_overrule_what_a_model_remembers(capsys, tmp_path, model):
    frame = products(1).rename(columns={"grade": "stars", "search": "session"})
    frame.to_parquet(tmp_path / "other.parquet")
    code, _, err = call(capsys, "evaluate", model, tmp_path / "other.parquet")
    assert code == 1
    assert "no column 'grade'" in err
    assert "--label" in err
    said = call_json(
        capsys, "evaluate", model, tmp_path / "other.parquet", "--label", "stars", "--qid", "session"
    )
    expected = call_json(capsys, "evaluate", model, tmp_path / "test.parquet")
    assert said["models"] == expected["models"]


def test_queries_that_are_not_there_are_worth_a_word(capsys, tmp_path, model):
    products(1).drop(columns="search").to_parquet(tmp_path / "one.parquet")
    code, _, err = call(capsys, "evaluate", model, tmp_path / "one.parquet", "--metrics", "pairwise_error")
    assert code == 0, err
    assert "no column search: all rows are judged as one ranking (--qid COLUMN)" in err


def test_a_column_that_lacks_is_named_with_the_options(capsys, tmp_path, model):
    for lacking, shown in (("vec", "vec[0]"), ("price", "price")):
        products(1).drop(columns=lacking).to_parquet(tmp_path / "less.parquet")
        code, _, err = call(capsys, "predict", model, tmp_path / "less.parquet")
        assert code == 1
        assert f"'{shown}'" in err
        assert "--embedding" in err


def test_other_columns_of_later_tables_are_not_looked_at(capsys, tmp_path, model):
    frame = products(1)
    frame["price_note"] = [
        None,
        *["7"] * 98,
        "dear",
    ]  # text in a column of numbers would be an error in training
    frame["empty"] = np.nan
    frame.drop(columns=["grade", "search"]).to_parquet(tmp_path / "more.parquet")
    code, out, err = call(capsys, "predict", model, tmp_path / "more.parquet")
    assert code == 0, err
    assert out == call(capsys, "predict", model, tmp_path / "test.parquet")[1]


def test_models_of_different_columns_are_compared_on_one_table(capsys, tmp_path, model):
    other = tmp_path / "other.rw"
    train = tmp_path / "train.feather"
    fit = ["fit", train, "--label", "grade", "--qid", "search", "--features", "clicks", *FIT, "-o", other]
    assert call(capsys, *fit)[0] == 0
    said = call_json(capsys, "evaluate", model, tmp_path / "test.parquet", "--against", other)
    assert set(said["models"]) == {str(model), str(other)}
    alone = call_json(capsys, "evaluate", other, tmp_path / "test.parquet")
    assert said["models"][str(other)] == alone["models"][str(other)]


def test_a_model_file_from_elsewhere_cannot_confuse_the_reader(capsys, tmp_path, model):
    notes = read_header(model)["notes"]
    assert notes["reading"]["embedding"] == ["vec"]
    notes["reading"] = {"label": ["grade"], "qid": 3, "features": "price", "embedding": [1], "unknown": "x"}
    rankwise.save(rankwise.load(model), tmp_path / "odd.rw", notes=notes)
    code, _, err = call(capsys, "predict", tmp_path / "odd.rw", tmp_path / "test.parquet", *NAMED)
    assert code == 0, err


def test_validation_tables_are_read_as_the_training_table(capsys, tmp_path, model):
    products(1).assign(more=1.0).to_parquet(tmp_path / "vali.parquet")
    named = ["--label", "grade", "--qid", "search"]
    valid = ["--valid", tmp_path / "vali.parquet"]
    code, _, err = call(
        capsys, "fit", tmp_path / "train.feather", *valid, *named, *FIT, "-o", tmp_path / "v.rw"
    )
    assert code == 0, err


def test_ids_and_columns_that_nobody_named_are_worth_a_word(capsys, tmp_path):
    frame = products(0).rename(columns={"search": "query_id", "grade": "label"})
    frame.to_parquet(tmp_path / "t.parquet")
    code, _, err = call(capsys, "fit", tmp_path / "t.parquet", *FIT, "-o", tmp_path / "m.rw")
    assert code == 0
    assert "no column qid: all rows are one ranking (--qid query_id)" in err
    described = rankwise.load(tmp_path / "m.rw").encoder_.describe()
    assert any(line.startswith("title: ") for line in described)
    assert "vec: lists of 4 numbers" in described
    code, _, err = call(
        capsys, "fit", tmp_path / "t.parquet", *FIT, "--embedding", "vec", "-o", tmp_path / "m.rw", "-f"
    )
    assert "price, clicks (numbers: --features" in err
    named = ["--qid", "query_id", "--features", "price"]
    code, _, err = call(capsys, "fit", tmp_path / "t.parquet", *FIT, *named, "-o", tmp_path / "m.rw", "-f")
    assert (code, err) == (0, "")
    assert "vec: lists of 4 numbers" in call(capsys, "inspect", tmp_path / "t.parquet")[1]


def test_lists_that_are_features_by_themselves_are_said_and_remembered_as_lists(capsys, tmp_path):
    names = {"search": "qid", "grade": "label"}
    products(0).rename(columns=names)[["label", "qid", "vec"]].to_parquet(tmp_path / "t.parquet")
    code, _, err = call(capsys, "inspect", tmp_path / "t.parquet")
    assert (code, err) == (0, "")
    model = tmp_path / "m.rw"
    code, _, err = call(capsys, "fit", tmp_path / "t.parquet", *FIT, "-o", model)
    assert (code, err) == (0, "")
    reading = {"features": [], "embedding": ["vec"], "label": "label", "qid": "qid"}
    assert read_header(model)["notes"]["reading"] == reading
    wide = products(1).rename(columns=names)  # with columns of numbers, which would else be the features
    wide.to_parquet(tmp_path / "wide.parquet")
    code, out, err = call(capsys, "predict", model, tmp_path / "wide.parquet")
    assert code == 0, err
    wide[["label", "qid", "vec"]].to_parquet(tmp_path / "narrow.parquet")
    assert out == call(capsys, "predict", model, tmp_path / "narrow.parquet")[1] != ""
    valid = ["--valid", tmp_path / "wide.parquet", "-o", tmp_path / "v.rw"]
    code, _, err = call(capsys, "fit", tmp_path / "t.parquet", *FIT, *valid)
    assert (code, err) == (0, "")
    wide.drop(columns="vec").to_parquet(tmp_path / "less.parquet")
    code, _, err = call(capsys, "predict", model, tmp_path / "less.parquet")
    assert code == 1
    assert "lacks 4 of the model's 4 columns, such as 'vec[0]'" in err
    products(0).rename(columns=names)[["label", "qid", "vec", "title"]].to_parquet(tmp_path / "t.parquet")
    assert "vec: lists of 4 numbers" in call(capsys, "inspect", tmp_path / "t.parquet")[1]


@pytest.mark.parametrize("kind", ["lists", "sparse"])
def test_items_without_numbers_are_remembered_as_they_were_read(capsys, tmp_path, kind):
    X, _ = duels(tmp_path)
    columns = {"vec": list(X)}
    if kind == "sparse":
        columns = {"indices": [list(range(X.shape[1]))] * len(X), "values": list(X)}
    items = pd.DataFrame({"id": [f"item {i}" for i in range(len(X))], **columns})
    items.to_parquet(tmp_path / "items.parquet")
    model = tmp_path / "m.rw"
    fit = ["fit", tmp_path / "duels.csv", "--items", tmp_path / "items.parquet", *FIT, "-o", model]
    code, _, err = call(capsys, *fit)
    assert (code, err) == (0, "")
    items.assign(clicks=1.0).to_parquet(tmp_path / "more.parquet")
    code, out, err = call(capsys, "predict", model, tmp_path / "more.parquet")
    assert code == 0, err
    assert out == call(capsys, "predict", model, tmp_path / "items.parquet")[1] != ""


def test_tables_of_preferences_are_parsed_once(capsys, monkeypatch, tmp_path):
    duels(tmp_path)
    parse, parsed = pyarrow.csv.read_csv, []

    def count(*given, **options):
        table = parse(*given, **options)
        parsed.append(table.column_names)
        return table

    monkeypatch.setattr(pyarrow.csv, "read_csv", count)
    data = [tmp_path / "duels.csv", "--items", tmp_path / "items.csv"]
    for command in (
        ("fit", *data, *FIT, "-o", tmp_path / "m.rw"),
        ("evaluate", tmp_path / "m.rw", *data),
        ("report", tmp_path / "m.rw", *data, "-o", tmp_path / "page.html"),
    ):
        code, _, err = call(capsys, *command)
        assert code == 0, err
        assert parsed == [["winner", "loser"], ["id", "price", "sugar", "size"]]
        parsed.clear()
    assert "item 29" in (tmp_path / "page.html").read_text()


def test_a_column_that_is_not_there_is_answered_with_those_that_are(capsys, tmp_path):
    frame = pd.DataFrame({"label": [1, 0], "qid": [1, 1], **{f"c{at}": [0.0, 1.0] for at in range(20)}})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InvalidInputError) as caught:
        load_table(tmp_path / "t.csv", label="labl")
    said = caught.value.hint
    assert said.startswith("did you mean 'label'? its columns are 'label', 'qid', 'c0'")
    assert said.endswith("'c9' and 10 more.")
    code, _, err = call(capsys, "inspect", tmp_path / "t.csv", "--qid", "quid", "--label", "labl")
    assert code == 1
    assert said.partition("? ")[2] in err
    assert "did you mean 'qid'?" in err


# Text, numbers, dates, yes and no; another name; a name that comes twice.
_PARTS = {
    name: "\n".join(
        [head, *(f"{label},{at // 2},{entries[at % 2]}" for at, label in enumerate("102021012102")), ""]
    )
    for name, head, entries in (
        ("text", "label,qid,c", ("x", "y")),
        ("numbers", "label,qid,c", ("7", "8")),
        ("dates", "label,qid,c", ("2020-01-01", "2020-01-02")),
        ("truth", "label,qid,c", ("true", "false")),
        ("renamed", "label,qid,d", ("x", "y")),
        ("twice", "label,qid,c,c", ("x,z", "y,z")),
    )
}


@pytest.mark.parametrize("first", _PARTS)
@pytest.mark.parametrize("second", _PARTS)
def test_tables_whose_columns_differ_are_refused_by_the_name_of_the_column(capsys, tmp_path, first, second):
    for name, text in _PARTS.items():
        (tmp_path / f"{name}.csv").write_text(text)
    paths = [tmp_path / f"{name}.csv" for name in (first, second)]
    code, out, err = call(capsys, "inspect", *paths)
    if code:
        assert "'c'" in err or "'d'" in err
        assert "Hint: " in err
    else:  # what one file holds, or numbers and what counts as such
        assert first == second or {first, second} == {"numbers", "truth"}, out
    kinds = {"text", "numbers", "dates", "truth"}
    if {first, second} <= kinds:  # as the hint has it
        code, _, err = call(capsys, "inspect", *paths, "--category", "c")
        assert code == 0, err


def test_columns_of_sparse_tables_are_used(capsys, searches, tmp_path):
    (tmp_path / "rows.txt").write_text("1 qid:1 1:1\n0 qid:1 900:2\n1 qid:2 2:1\n0 qid:2 3:3\n")
    assert call(capsys, "convert", tmp_path / "rows.txt", "-o", tmp_path / "rows.parquet")[0] == 0
    code, _, err = call(capsys, "fit", tmp_path / "rows.parquet", *FIT, "-o", tmp_path / "m.rw")
    assert (code, err) == (0, "")
    assert call(capsys, "predict", tmp_path / "m.rw", tmp_path / "rows.parquet")[0] == 0


def test_preferences_by_other_names_are_remembered_too(capsys, tmp_path):
    duels(tmp_path)
    text = (tmp_path / "duels.csv").read_text()
    lines = text.replace("winner,loser", "better,worse,by,times").splitlines()
    renamed = "\n".join([lines[0], *(f"{line},2,3" for line in lines[1:])])
    (tmp_path / "renamed.csv").write_text(renamed + "\n")
    items = ["--items", tmp_path / "items.csv"]
    code, _, err = call(capsys, "fit", tmp_path / "renamed.csv", *items, "-o", tmp_path / "m.rw")
    assert code == 1
    assert "no column 'winner'" in err
    assert "which was named" not in err
    assert "--winner" in err
    named = ["--winner", "better", "--loser", "worse", "--magnitude", "by", "--weight", "times"]
    code, _, err = call(capsys, "fit", tmp_path / "renamed.csv", *items, *named, "-o", tmp_path / "m.rw")
    assert code == 0, err
    said = call_json(capsys, "evaluate", tmp_path / "m.rw", tmp_path / "renamed.csv", *items)
    assert said["data"]["preferences"] == len(lines) - 1
    page = ["report", tmp_path / "m.rw", tmp_path / "renamed.csv", *items, "-o", tmp_path / "page.html"]
    code, _, err = call(capsys, *page)
    assert code == 0, err
    code, _, err = call(capsys, "evaluate", tmp_path / "m.rw", tmp_path / "renamed.csv")
    assert code == 1
    assert "--items" in err
    code, _, err = call(
        capsys, "fit", tmp_path / "duels.csv", *items, "--weight", "wieght", "-o", tmp_path / "n.rw"
    )
    assert code == 1
    assert "'wieght', which --weight names" in err
    assert len(call(capsys, "predict", tmp_path / "m.rw", tmp_path / "items.csv")[1].split()) == 30


def test_preferences_try_margins_and_say_what_is_counted(capsys, tmp_path):
    duels(tmp_path)
    fit = ["fit", tmp_path / "duels.csv", "--items", tmp_path / "items.csv"]
    said = call_json(capsys, *fit, "-o", tmp_path / "m.rw")
    assert {"rls", "svm-squared", "logistic", "kernel"} <= {one["method"] for one in said["tried"]}
    assert said["convention"].startswith("share of the listed preferences")
    assert said["train"] == {
        "file": str(tmp_path / "duels.csv"),
        "preferences": 193,
        "items": 30,
        "columns": 3,
    }
    valid = ["--valid", tmp_path / "duels.csv"]
    for method in ("svm", "svm-squared", "logistic", "kernel"):
        code, _, err = call(capsys, *fit, *valid, "--method", method, "-o", tmp_path / "m.rw", "-f")
        assert code == 0, err
    lines = (tmp_path / "duels.csv").read_text().splitlines()
    (tmp_path / "duels.csv").write_text("\n".join([lines[0] + ",magnitude", *(f"{x},2" for x in lines[1:])]))
    said = call_json(capsys, *fit, "-o", tmp_path / "m.rw", "-f")
    assert "logistic" not in [one["method"] for one in said["tried"]]  # which knows no magnitudes


def test_ties_do_not_judge(capsys, tmp_path):
    duels(tmp_path)
    fit = [
        "fit",
        tmp_path / "duels.csv",
        "--items",
        tmp_path / "items.csv",
        "--method",
        "rls",
        "--alpha",
        "1",
    ]
    lines = (tmp_path / "duels.csv").read_text().splitlines()[1:60]
    tied = [f"{b},{a},0" for a, b in (line.split(",") for line in lines)]  # as if the other had won
    rows = "\n".join(["winner,loser,magnitude", *(f"{line},1" for line in lines), *tied]) + "\n"
    (tmp_path / "ties.csv").write_text(rows)
    (tmp_path / "no_ties.csv").write_text("\n".join(["winner,loser", *lines]) + "\n")
    values = []
    for name in ("ties.csv", "no_ties.csv"):
        said = call_json(capsys, *fit, "--valid", tmp_path / name, "-o", tmp_path / "m.rw", "-f")
        values.append(said["tried"][0]["value"])
    assert values[0] == values[1]


def test_errors_of_preferences_show_the_line(capsys, tmp_path):
    duels(tmp_path)
    lines = (tmp_path / "duels.csv").read_text().splitlines()
    items = ["--items", tmp_path / "items.csv"]
    rows = [lines[0] + ",weight", *(f"{line},{-1.5 if at == 2 else 1}" for at, line in enumerate(lines[1:]))]
    (tmp_path / "negative.csv").write_text("\n".join(rows) + "\n")
    code, _, err = call(capsys, "inspect", tmp_path / "negative.csv", *items)
    assert code == 1
    assert "negative.csv, column 'weight', row 2 (line 4): a number is negative" in err
    (tmp_path / "itself.csv").write_text("winner,loser\nitem 1,item 2\nitem 3,item 3\n")
    err = call(capsys, "inspect", tmp_path / "itself.csv", *items)[2]
    assert "itself.csv, column 'winner', row 1 (line 3): an item is preferred to itself" in err
    (tmp_path / "tied.csv").write_text("winner,loser,magnitude\nitem 1,item 2,0\n")
    err = call(capsys, "fit", tmp_path / "tied.csv", *items, "-o", tmp_path / "m.rw")[2]
    assert "tied.csv is a tie" in err
    err = call(capsys, "inspect", tmp_path / "duels.csv")[2]
    assert "--items" in err


def test_machines_get_numbers(capsys, searches, tmp_path):
    out = tmp_path / "scores.txt"
    said = call_json(capsys, "predict", searches / "model.rw", searches / "test.txt", "-o", out)
    assert said["data"] == {"file": str(searches / "test.txt"), "rows": 400, "queries": 20, "columns": 12}
    assert said["scores"] == 400
    said = call_json(capsys, "export", searches / "model.rw", "-o", tmp_path / "w.json")
    assert said["weights"] == 12
    assert json.loads((tmp_path / "w.json").read_text())["weights"]
    for name in ("t.parquet", "t.store"):
        said = call_json(capsys, "convert", searches / "test.txt", "-o", tmp_path / name)
        assert (said["rows"], said["queries"], said["columns"]) == (400, 20, 12)
        assert said["bytes"] > 0
    said = call_json(capsys, "demo", "-o", tmp_path / "demo")
    assert [one["queries"] for one in said["files"]] == [120, 40, 60]
    said = call_json(capsys, "inspect", searches / "model.rw")
    assert all(" " not in key and "-" not in key for key in said)
    for command in (("predict", searches / "model.rw", searches / "test.txt"), ("demo",)):
        assert call(capsys, *command, "--json")[0] == 2
