"""Options say something about the files at hand, or are refused; and files are what they are taken for."""

import numpy as np
import pandas as pd
import pytest

import rankwise
from command_line import call, call_json, duels
from rankwise.data import load_table
from rankwise.exceptions import InvalidInputError
from rankwise.persistence import read_header

FIT = ["--method", "rls", "--scaling", "none", "--alpha", "1"]


def weighted(seed, rows=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    grade = np.clip(np.round(X[:, 0] + rng.normal(size=rows) + 1), 0, 2)
    columns = {"qid": np.arange(rows) // 8, "label": grade, "a": X[:, 0], "b": X[:, 1]}
    return pd.DataFrame({**columns, "w": rng.integers(0, 4, size=rows)})


@pytest.fixture
def tables(capsys, monkeypatch, tmp_path):
    """A folder with train.csv, vali.csv, test.csv, rows.txt, rows.store, model.rw, duels.csv and items.csv."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(["train", "vali", "test"]):
        weighted(seed).to_csv(f"{name}.csv", index=False)
    for target in ("rows.txt", "rows.store"):
        assert call(capsys, "convert", "train.csv", "-o", target)[0] == 0
    assert call(capsys, "fit", "train.csv", "--features", "a,b", *FIT, "-o", "model.rw")[0] == 0
    duels(tmp_path)
    return tmp_path


@pytest.mark.parametrize("method", ["rls", "svm-squared", "kernel", "curves"])
def test_weights_of_rows_weigh_and_are_no_feature(capsys, tables, method):
    fit = ["fit", "train.csv", "--scaling", "none", "--alpha", "1", "--method", method]
    said = call_json(capsys, *fit, "--weight", "w", "-o", "w.rw")
    assert said["feature_names"] == ["a", "b"]
    frame = weighted(0)
    model = rankwise.load("w.rw")
    again = type(model)(**model.get_params())
    again.fit(frame[["a", "b"]].to_numpy(), frame["label"], qid=frame["qid"], sample_weight=frame["w"])
    np.testing.assert_allclose(
        model.predict(frame[["a", "b"]].to_numpy()), again.predict(frame[["a", "b"]].to_numpy()), rtol=1e-9
    )
    # Rows to score by need no weights, and may be of a table that has them.
    for valid in (weighted(1), weighted(1).drop(columns="w")):
        valid.to_csv("judging.csv", index=False)
        code, out, err = call(capsys, *fit, "--weight", "w", "--valid", "judging.csv", "-f", "-o", "v.rw")
        assert code == 0, err
        assert "80 rows, 10 queries, 2 columns, with weights" in out
        assert "scored by  judging.csv" in out
    code, _, err = call(capsys, "select", "train.csv", "--weight", "w", *FIT)
    assert code == 0, err
    assert call(capsys, "predict", "w.rw", "test.csv")[0] == 0


def test_evaluate_weighs_where_metrics_do(capsys, tables):
    frame = weighted(2)
    plain = call_json(capsys, "evaluate", "model.rw", "test.csv", "--metrics", "pairwise_error")
    said = call_json(capsys, "evaluate", "model.rw", "test.csv", "--weight", "w", "--against", "model.rw")
    assert set(said["conventions"]) == {"pairwise_error", "concordance", "kendall_tau"}
    scores = rankwise.load("model.rw").predict(frame[["a", "b"]].to_numpy())
    error = rankwise.metrics.pairwise_error(frame["label"], scores, frame["qid"], sample_weight=frame["w"])
    assert said["models"]["model.rw"]["pairwise_error"]["value"] == pytest.approx(error, rel=1e-12)
    assert plain["models"]["model.rw"]["pairwise_error"]["value"] != pytest.approx(error, rel=1e-3)
    assert all(one["difference"]["value"] == 0 for one in said["comparisons"])
    code, _, err = call(capsys, "evaluate", "model.rw", "test.csv", "--weight", "w", "--metrics", "map")
    assert code == 2
    assert "map does not weigh rows" in err
    assert "Hint: " in err


def test_inspect_shows_weights(capsys, tables):
    code, out, err = call(capsys, "inspect", "train.csv", "--weight", "w")
    assert code == 0, err
    assert "weights        0 to 3" in out
    assert call_json(capsys, "inspect", "train.csv", "--weight", "w")["columns"] == 2


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("-1", "line 2): a number is negative"),
        ("", "a missing value"),
        ("many", "'many' is not a number"),
        ("inf", "not finite"),
    ],
)
def test_weights_that_are_none_are_located(capsys, tables, entry, said):
    frame = weighted(0).astype({"w": object})
    frame.loc[0, "w"] = entry
    frame.to_csv("bad.csv", index=False)
    for command in (
        ["fit", "-o", "m.rw", "bad.csv"],
        ["evaluate", "model.rw", "bad.csv"],
        ["inspect", "bad.csv"],
    ):
        code, _, err = call(capsys, *command, "--weight", "w")
        assert code == 1
        assert "column 'w'" in err
        assert said in err
        assert "Hint: " in err


def test_weights_of_zero_alone_leave_nothing_to_learn_from(capsys, tables):
    weighted(0).assign(w=0).to_csv("zero.csv", index=False)
    code, _, err = call(capsys, "fit", "zero.csv", "--weight", "w", "-o", "m.rw")
    assert code == 1
    assert "zero.csv" in err
    assert "weight" in err


COMMANDS = [
    ["fit", "-o", "m.rw", "train.csv"],
    ["select", "train.csv"],
    ["predict", "model.rw", "test.csv"],
    ["evaluate", "model.rw", "test.csv"],
    ["report", "model.rw", "test.csv", "-o", "r.html"],
    ["inspect", "train.csv"],
    ["convert", "train.csv", "-o", "c.parquet"],
    ["convert", "train.csv", "-o", "c.store"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("role", ["label", "qid", "features", "embedding", "weight"])
def test_columns_that_are_not_there_are_named(capsys, tables, command, role):
    before = sorted(tables.iterdir())
    code, out, err = call(capsys, *command, f"--{role}", "lable" if role == "label" else "nonsense")
    if (command[0], role) == ("predict", "label"):  # rows to score often have no labels
        assert code == 0
        assert "has no column 'lable', which --label names. Scores need no labels." in err
        return
    assert code == (2 if role == "weight" and command[0] in {"predict", "report", "convert"} else 1)
    assert out == ""
    assert f"--{role}" in err
    if code == 1:
        assert "has no column" in err
        assert "did you mean 'label'?" in err if role == "label" else "its columns are 'qid', 'label'" in err
    assert sorted(tables.iterdir()) == before


@pytest.mark.parametrize(
    "more",
    [
        ["--label", "a", "--features", "a,b"],
        ["--label", "a", "--qid", "a"],
        ["--weight", "a", "--features", "a,b"],
        ["--weight", "label"],
        ["--weight", "qid"],
        ["--features", "a,a"],
    ],
    ids=" ".join,
)
def test_a_column_has_one_role(capsys, tables, more):
    for command in (["fit", "-o", "m.rw", "train.csv"], ["inspect", "train.csv"]):
        code, _, err = call(capsys, *command, *more)
        assert code == 1
        assert "has two roles among --label, --qid, --weight, --features, --embedding" in err


def test_a_column_of_preferences_has_one_role(capsys, tables):
    fit = ["fit", "duels.csv", "--items", "items.csv", "-o", "m.rw"]
    for more in (["--loser", "winner"], ["--magnitude", "loser"], ["--features", "id,price"]):
        code, _, err = call(capsys, *fit, *more)
        assert code == 1
        assert "has two roles among --" in err


OF_TEXT = [["--zero-based", "yes"], ["--columns", "9"]]
OF_PREFERENCES = [[f"--{role}", "id"] for role in ("winner", "loser", "magnitude", "item-id")]
OF_TABLES = [[f"--{role}", "a"] for role in ("label", "qid", "features", "embedding", "weight")]
PREFERENCES = ["evaluate", "model.rw", "duels.csv", "--items", "items.csv"]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        # Ids of items survive a conversion, and name the rows of a report.
        *(
            (command, [*OF_PREFERENCES[: 3 if command[0] in {"convert", "report"} else 4], *OF_TEXT])
            for command in COMMANDS[:-1]
        ),
        (["convert", "train.csv", "-o", "c.store"], [*OF_PREFERENCES[:3], ["--columns", "9"]]),
        *(([*command[:-1], "rows.txt"], [*OF_PREFERENCES, *OF_TABLES]) for command in COMMANDS[:4]),
        (["inspect", "rows.store"], [*OF_PREFERENCES, *OF_TABLES, *OF_TEXT, ["--missing", "zero"]]),
        (["fit", "rows.store", "-o", "m.rw"], [*OF_PREFERENCES, *OF_TABLES, *OF_TEXT, ["--missing", "zero"]]),
        (["inspect", "model.rw"], [*OF_PREFERENCES, *OF_TABLES, *OF_TEXT, ["--items", "items.csv"]]),
        (["convert", "rows.txt", "-o", "c.store"], [*OF_PREFERENCES, *OF_TABLES]),
        (["convert", "rows.txt", "-o", "c.csv"], [*OF_PREFERENCES, *OF_TABLES[2:], ["--regroup"]]),
        (["convert", "train.csv", "-o", "c.txt"], [["--regroup"]]),
        (["convert", "rows.store", "-o", "c.txt"], [["--missing", "zero"]]),
        (
            ["fit", "duels.csv", "--items", "items.csv", "-o", "m.rw"],
            [*OF_TABLES[:2], *OF_TEXT, ["--format", "text"]],
        ),
        (PREFERENCES, [["--metrics", "ndcg@10"], ["--convention", "letor3"], ["--per-query", "q.csv"]]),
        (["report", *PREFERENCES[1:], "-o", "r.html"], [["--metrics", "ndcg@10"]]),
        (["evaluate", "model.rw", "test.csv", "--metrics", "err"], [["--convention", "letor3"]]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_options_that_would_change_nothing_are_refused(capsys, tables, command, options):
    before = sorted(tables.iterdir())
    for option in options:
        code, out, err = call(capsys, *command, *option)
        assert (code, out) == (2, ""), err
        assert option[0] in err
        assert "Hint: " in err
    assert sorted(tables.iterdir()) == before


def test_converted_text_gets_the_names_that_are_given(capsys, tables):
    code, _, err = call(
        capsys, "convert", "rows.txt", "--label", "grade", "--qid", "search", "-o", "named.csv"
    )
    assert code == 0, err
    assert (tables / "named.csv").read_text().startswith('"search","grade"')


def test_an_id_of_items_without_items_leads_to_that_of_rows(capsys, tables):
    code, _, err = call(capsys, "fit", "train.csv", "--item-id", "a", *FIT, "-o", "other.rw")
    assert code != 0
    assert "--id COLUMN" in err
    code, _, err = call(capsys, "evaluate", "model.rw", "train.csv", "--item-id", "a")
    assert code != 0
    assert "--id COLUMN" not in err  # evaluate has no such option


def test_a_file_without_a_header_loses_no_row(capsys, tables):
    frame = weighted(0)[["label", "qid", "a", "b"]]
    frame.to_csv("bare.csv", index=False, header=False)
    X, y, _qid, names = load_table("bare.csv", label="1", qid="2")
    assert names == ["3", "4"]
    np.testing.assert_array_equal(X, frame[["a", "b"]])
    np.testing.assert_array_equal(y, frame["label"])
    with pytest.raises(
        InvalidInputError, match=r"no column 'label'.*no header line: its columns are '1', '2', '3', '4'"
    ):
        load_table("bare.csv")
    code, _, err = call(capsys, "fit", "bare.csv", *FIT, "-o", "bare.rw")
    assert code == 1
    assert "bare.csv has no header line: its columns are called 1 to 4" in err
    assert "--label" in err
    code, _, err = call(capsys, "fit", "bare.csv", "--label", "1", "--qid", "2", *FIT, "-o", "bare.rw")
    assert code == 0, err
    assert read_header("bare.rw")["notes"]["reading"]["features"] == ["3", "4"]
    code, out, err = call(capsys, "predict", "bare.rw", "bare.csv")
    assert code == 0, err
    code, expected, err = call(capsys, "predict", "model.rw", "train.csv")
    assert out == expected
    # One row, and the labels of a file that has none: columns are what they were.
    frame.head(1).to_csv("one.csv", index=False, header=False)
    assert call(capsys, "predict", "bare.rw", "one.csv")[1].split() == expected.split()[:1]
    frame[["a", "b"]].to_csv("less.csv", index=False, header=False)
    code, _, err = call(capsys, "predict", "bare.rw", "less.csv")
    assert code == 1
    assert "lacks 2 of the model's 2 columns" in err
    code, _, err = call(capsys, "inspect", "bare.csv", "--label", "1", "--qid", "2")
    assert code == 0


@pytest.mark.parametrize(
    ("first", "names"),
    [
        ("label,qid,1", None),
        ("0,1,2", None),  # what pandas writes for columns without names
        (",0,1", None),  # the same beside an index
        ('"2019","2020","2021"', None),  # quoted numbers are names
        ("2019,2020,2021", ["1", "2", "3"]),
        ("1,7,0.5", ["1", "2", "3"]),
        ("1,,-3e-2", ["1", "2", "3"]),
        ("\ufeff1,NA,nan", ["1", "2", "3"]),
        ("1\t7\t2", ["1", "2", "3"]),
        (" 1; 7; .5", ["1", "2", "3"]),
        ("NA,NULL,x", None),
    ],
)
def test_a_first_line_of_numbers_is_a_row(tmp_path, first, names):
    delimiter = next(one for one in ",\t;" if one in first)
    file = tmp_path / "rows.csv"
    file.write_text("\n".join([first, delimiter.join("567"), delimiter.join("234")]) + "\n")
    own = [word.strip('" ') for word in first.removeprefix("\ufeff").split(delimiter)]
    chosen = names or own
    table = load_table(file, label=None, qid=None, features=chosen, missing="nan")
    assert table.feature_names == chosen
    assert table.X.shape == (3 if names else 2, 3)
    np.testing.assert_array_equal(table.X[-2:], [[5, 6, 7], [2, 3, 4]])


def test_what_a_first_line_was_taken_for_is_said(capsys, tables):
    weighted(0)[["label", "qid", "a", "b"]].set_axis(range(4), axis=1).to_csv("counted.csv", index=False)
    code, _, err = call(capsys, "inspect", "counted.csv", "--label", "0", "--qid", "1")
    assert code == 0
    assert "the first line, which counts from 0, is taken as the names" in err
    code, _, err = call(capsys, "convert", "counted.csv", "--label", "0", "--qid", "1", "-o", "c.store")
    assert code == 0
    assert "counts from 0" in err


BINARY = bytes(np.random.default_rng(0).integers(0, 256, 3000, dtype=np.uint8))


@pytest.mark.parametrize("name", ["b.csv", "b.tsv", "b.txt", "b.parquet", "b.rw", "b.store.csv.gz"])
@pytest.mark.parametrize(
    "content",
    [
        BINARY,
        b"\x1b[31m,\x9b2J,\x07\n1,2,3\n",
        b"label,qid,\x1b[2J\n1,2,\x1b]0;x\x07",
        "label,a\n1,2\n".encode("utf-16"),
    ],
    ids=["random", "latin", "escapes", "utf-16"],
)
def test_nothing_that_stands_in_a_file_commands_the_terminal(capsys, tables, name, content):
    (tables / name).write_bytes(content)
    for command in (
        ["inspect", name],
        ["fit", name, "-o", "m.rw"],
        ["predict", "model.rw", name],
        ["predict", name, "train.csv"],
        ["convert", name, "-o", "c.txt"],
    ):
        code, out, err = call(capsys, *command)
        assert code == 1 or command[0] == "inspect"
        assert all(character == "\n" or character.isprintable() for character in out + err)
        if content is BINARY and command[0] != "predict" and name.endswith("sv"):
            assert err.count("error") == 1
            assert f"{name} is not text in UTF-8." in err
            assert "\N{REPLACEMENT CHARACTER}" not in err
            assert len(err) < 400


def test_errors_of_the_library_escape_too(tmp_path):
    error = InvalidInputError("bad \x1b[31m name\u009b", "rename \x07 it.\nTwice")
    assert str(error) == r"bad \x1b[31m name\x9b Hint: rename \x07 it." + "\nTwice"


def test_arguments_are_escaped(capsys):
    code, _, err = call(capsys, "fit", "--nonsense\x1b[31m")
    assert code == 2
    assert "\x1b" not in err
