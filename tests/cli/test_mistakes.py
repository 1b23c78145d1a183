"""What the command line says to mistakes, and streams that are used for two things."""

import ast
import csv
import gzip
import io
import json
import pickle
import sys
from pathlib import Path

import pandas as pd
import pytest

import rankwise
from command_line import call, call_json, process
from rankwise.cli import remedies
from rankwise.data import load_run
from rankwise.exceptions import Change, InvalidInputError, UndefinedMetricError
from rankwise.runtime.memory import available_memory


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "train.txt", "-o", "m.rw", "--metric", "ndgc@10"),
        ("fit", "train.txt", "-o", "m.rw", "--alpha", "-1"),
        ("fit", "train.txt", "-o", "m.rw", "--alpha", "nan"),
        ("fit", "train.txt", "-o", "m.rw", "--seed", "-1"),
        ("evaluate", "model.rw", "test.txt", "--metrics", "map,ndcg@x"),
        ("report", "model.rw", "test.txt", "--metrics", "ndcg@x"),
        ("evaluate", "model.rw", "test.txt", "--level", "95"),
        ("select", "train.txt", "--plot", "s.foo"),
    ],
)
def test_values_that_no_option_takes_exit_with_2(capsys, monkeypatch, searches, arguments):
    monkeypatch.chdir(searches)
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert arguments[-2] in err


def test_figures_of_queries_on_standard_output_leave_the_rest_to_standard_error(searches):
    judged = ["evaluate", "model.rw", "test.txt", "--metrics", "map", "--per-query", "-"]
    said = process(*judged, "--json", cwd=searches)
    assert said.returncode == 0, said.stderr
    assert "map" in json.loads(said.stderr)["models"]["model.rw"]
    assert len(list(csv.DictReader(io.StringIO(said.stdout.decode())))) == 20
    said = process(*judged, cwd=searches)
    assert b"interval" in said.stderr
    assert said.stdout.startswith(b"qid,rows,map")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow"])
def test_tables_come_on_standard_input(searches, tmp_path, name):
    table = tmp_path / name
    assert process("convert", searches / "test.txt", "-o", table).returncode == 0
    from_file = process("predict", searches / "model.rw", table)
    said = process("predict", searches / "model.rw", "-", "--format", "table", stdin=table.read_bytes())
    assert said.returncode == 0, said.stderr
    assert said.stdout == from_file.stdout != b""


def test_missing_values_are_refused_by_the_option_that_helps(capsys, searches, tmp_path):
    holes = tmp_path / "holes.txt"
    holes.write_text((searches / "train.txt").read_text().replace(" 3:", " 3:nan 13:", 1))
    for command in (
        ("fit", holes, "-o", tmp_path / "m.rw"),
        ("predict", searches / "model.rw", holes, "--columns", 13),
    ):
        code, _, err = call(capsys, *command)
        assert code == 1
        assert "--missing nan" in err  # not missing='nan'
    code, _, err = call(capsys, "fit", holes, "-o", tmp_path / "m.rw", "--missing", "nan")
    assert code == 1
    assert "--missing zero" in err
    assert "HistGradientBoosting" not in err


def test_hints_name_options(capsys, tmp_path):
    (tmp_path / "mixed.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n0 qid:1 1:3\n")
    code, _, err = call(capsys, "convert", tmp_path / "mixed.txt", "-o", tmp_path / "mixed.store")
    assert code == 1
    assert "--regroup" in err
    assert "regroup=" not in err
    none = ["--method", "svm", "--alpha", "0", "-o", tmp_path / "m.rw"]
    assert "--alpha above 0" in call(capsys, "fit", tmp_path / "mixed.txt", *none)[2]
    (tmp_path / "zero.txt").write_text("1 qid:1 0:1\n0 qid:1 5:2\n")
    assert "--zero-based yes" in call(capsys, "inspect", tmp_path / "zero.txt", "--zero-based", "no")[2]
    assert "--columns" in call(capsys, "inspect", tmp_path / "zero.txt", "--columns", "2")[2]


def test_errors_name_the_file(capsys, searches, tmp_path):
    broken = tmp_path / "broken.rw"
    broken.write_bytes((searches / "model.rw").read_bytes()[:-9])
    for path in (broken, searches / "test.txt"):
        code, _, err = call(capsys, "predict", path, searches / "test.txt")
        assert code == 1
        assert str(path) in err
    (tmp_path / "ragged.csv").write_text("label,qid,a\n1,1,2\n0,1\n1,1,3\n")
    err = call(capsys, "inspect", tmp_path / "ragged.csv")[2]
    assert "ragged.csv" in err
    assert "line 3 has 2 fields, the header has 3" in err
    pd.DataFrame({"label": [], "qid": [], "a": []}, dtype=float).to_parquet(tmp_path / "none.parquet")
    assert "none.parquet has no rows" in call(capsys, "inspect", tmp_path / "none.parquet")[2]


def test_common_slips_are_guessed(capsys, searches, tmp_path):
    code, _, err = call(capsys, "evaluate", searches / "test.txt", searches / "model.rw")
    assert code == 1
    assert "test.txt is not a rankwise model.\nHint: did you swap MODEL and DATA?" in err
    for command in (("fit", "-o", tmp_path / "new.rw"), ("evaluate", searches / "model.rw")):
        code, _, err = call(capsys, *command, searches / "model.rw")
        assert code == 1
        assert (
            "model.rw is a rankwise model, not data.\nHint: name the file with the rows in its place" in err
        )
    (tmp_path / "cut.rw").write_bytes((searches / "model.rw").read_bytes()[:500])
    code, _, err = call(capsys, "inspect", tmp_path / "cut.rw")
    assert code == 1
    assert "cut.rw" in err
    assert "Hint: " in err
    for metric, said in (
        ("ndgc", "Unknown metric 'ndgc'. Did you mean 'ndcg'?"),
        ("ndcg@0", "ndcg: the cutoff must be at least 1, got k=0. Use a whole number"),
    ):
        code, _, err = call(
            capsys, "evaluate", searches / "model.rw", searches / "test.txt", "--metrics", metric
        )
        assert code == 2
        assert said in err
    code, _, err = call(capsys, "fit", searches / "train.txt")
    assert code == 2
    assert "Missing -o: where should the model be saved?" in err


@pytest.mark.parametrize("name", ["x.json", "x.parqet"])
def test_convert_refuses_endings_that_say_nothing(capsys, searches, tmp_path, name):
    code, _, err = call(capsys, "convert", searches / "test.txt", "-o", tmp_path / name)
    assert code == 2
    assert ".parquet" in err
    assert not (tmp_path / name).exists()
    assert call(capsys, "convert", searches / "test.txt", "-o", tmp_path / name, "--to", "text")[0] == 0
    assert (tmp_path / name).read_text().startswith((searches / "test.txt").read_text()[:8])


def test_a_file_is_not_written_over_itself(capsys, tmp_path):
    source = tmp_path / "rows.txt"
    source.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    code, _, err = call(capsys, "convert", source, "-o", source, "--force")
    assert code == 1
    assert "another file" in err
    assert source.read_text() == "1 qid:1 1:1\n0 qid:1 1:2\n"


TEXTS = {
    "equal": ("1 qid:1 1:1\n1 qid:1 1:2\n1 qid:2 1:1\n", "all labels of {} are 1"),
    "equal_inside": (
        "1 qid:1 1:1\n1 qid:1 1:2\n0 qid:2 1:1\n",
        "{}: no query has two rows with different labels",
    ),
    "single_rows": ("1 qid:1 1:1\n0 qid:2 1:2\n", "{}: every query has a single row"),
    "one_row": ("1 qid:1 1:1\n", "{} has one row"),
    "no_columns": ("1 qid:1\n0 qid:1\n", "{} has no columns"),
    "constant": ("1 qid:1 1:3\n0 qid:1 1:3\n", "no column of {} varies"),
    "one_query": ("1 qid:1 1:3\n0 qid:1 1:4\n2 qid:1 1:2\n", "{} has one query"),
    "few_rows": ("1 1:3\n0 1:4\n2 1:2\n", "{} has too few rows"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_rows_that_nothing_can_be_learned_from_are_told_by_file(capsys, tmp_path, name):
    text, said = TEXTS[name]
    source = tmp_path / f"{name}.txt"
    source.write_text(text)
    code, _, err = call(capsys, "fit", source, "-o", tmp_path / "m.rw")
    assert code == 1
    assert said.format(source) in err
    assert "Hint: " in err
    for word in ("sample", " y ", "y_true", "RankRLSCV", "qid="):
        assert word not in err
    assert not (tmp_path / "m.rw").exists()


@pytest.mark.parametrize("name", ["equal", "equal_inside", "single_rows"])
def test_rows_that_cannot_judge_are_told_by_file(capsys, searches, tmp_path, name):
    text, said = TEXTS[name]
    source = tmp_path / f"{name}.txt"
    source.write_text(text)
    for command in (
        ("evaluate", searches / "model.rw", source),
        ("fit", searches / "train.txt", "--valid", source, "-o", tmp_path / "m.rw"),
    ):
        code, _, err = call(capsys, *command)
        assert code == 1
        assert said.format(source) in err
    code, _, err = call(capsys, "report", searches / "model.rw", source, "-o", tmp_path / "r.html")
    assert code == 1
    assert str(source) in err
    assert "y_true" not in err


def test_rows_of_which_none_is_relevant_cannot_judge(capsys, searches, tmp_path):
    source = tmp_path / "poor.txt"
    source.write_text("".join(f"{row % 2 / 2} qid:{row // 4} 1:{row} 2:{row % 3}\n" for row in range(40)))
    fit = ["fit", "-o", tmp_path / "m.rw", "--metric", "map", "--method", "rls"]
    code, _, err = call(capsys, *fit, searches / "train.txt", "--valid", source)
    assert code == 1
    assert f"{source} cannot score: no query has a relevant row" in err
    code, _, err = call(capsys, *fit, source)
    assert code == 1
    assert f"{source} has too few queries to score" in err
    code, _, err = call(capsys, "evaluate", searches / "model.rw", source, "--metrics", "map")
    assert code == 1
    assert f"{source}: no query has a relevant row" in err


def test_a_model_that_scales_inside_queries_asks_for_ids(capsys, searches, tmp_path):
    model = tmp_path / "m.rw"
    scaled = ["--method", "rls", "--scaling", "query-minmax", "--alpha", "1", "-o", model]
    assert call(capsys, "fit", searches / "train.txt", *scaled)[0] == 0
    text, table = tmp_path / "rows.txt", tmp_path / "rows.csv"
    text.write_text("1 1:3\n0 1:4\n")
    X = pd.DataFrame({f"feature {j}": [0.5, 1.0] for j in range(1, 13)})
    X.assign(label=[0, 1]).to_csv(table, index=False)
    for source, remedy in ((text, "write qid:"), (table, "--qid COLUMN")):
        for command in ("predict", "evaluate"):
            code, _, err = call(capsys, command, model, source)
            assert code == 1
            assert f"{source} has no query ids, and the model {model} scales inside queries" in err
            assert remedy in err
    code, _, err = call(capsys, "fit", searches / "train.txt", "--valid", text, "-o", tmp_path / "n.rw")
    assert code == 1
    assert f"{text} has no query ids" in err


def test_labels_that_lack_are_asked_for_by_option(capsys, searches, tmp_path):
    pd.DataFrame({f"feature {j}": [0.5, 1.0] for j in range(1, 13)}).to_csv(tmp_path / "t.csv", index=False)
    code, _, err = call(capsys, "evaluate", searches / "model.rw", tmp_path / "t.csv")
    assert code == 1
    assert "no column 'label'" in err
    assert "--label" in err


def test_more_columns_than_memory_are_refused(capsys, tmp_path):
    huge = tmp_path / "huge.txt"
    huge.write_text("1 qid:1 2000000000:1\n0 qid:1 1:2\n1 qid:2 2000000000:1\n0 qid:2 1:2\n")
    memory = 8 * 2_000_000_000 * 4
    if available_memory() >= memory:
        pytest.skip("this machine has room for them")
    for scaling in ("auto", "max-abs"):
        code, _, err = call(capsys, "fit", huge, "--scaling", scaling, "-o", tmp_path / "m.rw")
        assert code == 1
        assert str(huge) in err
        assert "2,000,000,000 columns" in err
        assert "hash" in err


def test_a_column_number_beyond_all_is_not_answered_with_an_option(capsys, tmp_path):
    (tmp_path / "rows.txt").write_text("1 qid:1 4294967296000:1\n")
    err = call(capsys, "inspect", tmp_path / "rows.txt")[2]
    assert "line 1" in err
    assert "2,147,483,647" in err
    assert "--columns" not in err


def test_tables_that_are_none(capsys, tmp_path):
    (tmp_path / "a.parquet").touch()
    assert "a.parquet is empty" in call(capsys, "inspect", tmp_path / "a.parquet")[2]
    (tmp_path / "b.parquet").write_bytes(bytes(range(256)))
    assert (
        "b.parquet is damaged, or is not in the format" in call(capsys, "inspect", tmp_path / "b.parquet")[2]
    )


def test_the_model_says_from_what_columns_count(capsys, searches, tmp_path):
    (tmp_path / "zero.txt").write_text("1 qid:1 0:1 3:1\n0 qid:1 1:2\n")
    code, _, err = call(capsys, "predict", searches / "model.rw", tmp_path / "zero.txt")
    assert code == 1
    assert "columns of the training data count from 1" in err
    assert "were said" not in err


def test_metrics_are_taken_in_any_case_and_add_up(capsys, searches):
    judged = ["evaluate", searches / "model.rw", searches / "test.txt"]
    said = call_json(capsys, *judged, "--metrics", "NDCG@10", "--metrics", "Map")
    assert list(said["conventions"]) == ["ndcg@10", "map"]


def test_p_values_are_shown_alone_and_adjusted(capsys, searches):
    model = searches / "model.rw"
    code, out, _ = call(
        capsys, "evaluate", model, searches / "test.txt", "--against", model, "--metrics", "map,err"
    )
    assert code == 0
    assert out.partition("Holm")[2].splitlines()[1].split()[-2:] == ["p", "adjusted"]


def test_compressed_csv_is_written_and_read(capsys, searches, tmp_path):
    packed, plain = tmp_path / "rows.csv.gz", tmp_path / "rows.csv"
    for target in (packed, plain):
        assert call(capsys, "convert", searches / "test.txt", "-o", target)[0] == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    code, _, err = call(capsys, "convert", packed, "-o", tmp_path / "back.txt")
    assert code == 0, err
    shouting = tmp_path / "SHOUTED.CSV.GZ"
    assert call(capsys, "convert", searches / "test.txt", "-o", shouting)[0] == 0
    assert gzip.decompress(shouting.read_bytes()) == plain.read_bytes()


def test_tables_that_compress_themselves_are_refused_before_anything_is_read(capsys, tmp_path):
    broken = tmp_path / "broken.txt"
    broken.write_text("what is this\n")
    for ending in ("gz", "ZST"):
        code, _, err = call(capsys, "convert", broken, "-o", tmp_path / f"rows.parquet.{ending}")
        assert code == 2
        assert "rows.parquet." in err
        assert "compressed twice" in err
    assert [file.name for file in tmp_path.iterdir()] == ["broken.txt"]


def test_missing_values_that_cannot_be_written_are_located(capsys, tmp_path):
    (tmp_path / "rows.txt").write_text("1 qid:1 1:1 2:NaN\n0 qid:1 1:2\n")
    store = tmp_path / "rows.store"
    assert call(capsys, "convert", tmp_path / "rows.txt", "--missing", "nan", "-o", store)[0] == 0
    code, _, err = call(capsys, "convert", store, "-o", tmp_path / "back.txt")
    assert code == 1
    assert f"{store}: a value is nan in row 0" in err
    assert "--missing nan" in err
    assert not (tmp_path / "back.txt").exists()


def test_shares_of_all_cells_are_not_rounded_to_all(capsys, tmp_path):
    lines = [f"{row % 2} qid:{row // 4} 1:{row + 1}\n" for row in range(4000)]
    lines[7] = "1 qid:1 2:1\n"
    (tmp_path / "rows.txt").write_text("".join(lines).replace("1:4000\n", "1:4000 2:1\n"))
    out = call(capsys, "inspect", tmp_path / "rows.txt")[1]
    assert "2, counted from 1" in out
    (tmp_path / "zero.txt").write_text("".join(f"{row % 2} qid:1 0:{row}\n" for row in range(4000)))
    out = call(capsys, "inspect", tmp_path / "zero.txt")[1]
    assert "99.98%" in out
    assert "counted from 0" in out


def test_hints_for_tables_and_labels_name_options_and_files(capsys, searches, tmp_path):
    def error(text, *more):
        (tmp_path / "t.csv").write_text(text)
        code, _, err = call(capsys, "fit", tmp_path / "t.csv", *more, "-o", tmp_path / "m.rw")
        assert code == 1
        assert "t.csv" in err
        assert "pipeline" not in err
        return err

    assert "--missing zero" in error("label,qid,a\n1,1,2\n0,1,\n", "--missing", "error")
    rows = "label,qid,a\n1,1,2\n0,1,3\n-1,2,2\n0,2,3\n"
    assert "has two roles among --label" in error(rows, "--features", "a,a")
    assert "--features" in error(rows, "--embedding", "a")
    # What metrics say of y_true is said of the file.
    large = "label,qid,a\n2000,1,2\n0,1,3\n1000,2,2\n0,2,3\n"
    levels = "label,qid,a\n2,1,2\n0,1,3\n1,2,2\n0,2,3\n"
    for text, metric, said in (
        (rows, "ndcg@10", "t.csv holds negative labels"),
        (large, "ndcg@10", "t.csv goes up to 2000"),
        (levels, "auc", "t.csv has more"),
    ):
        err = error(text, "--metric", metric)
        assert said in err
        assert "y_true" not in err


def test_what_a_file_is_is_told_or_asked(capsys, searches, tmp_path):
    (tmp_path / "empty.parquet").touch()
    assert "empty.parquet is empty" in call(capsys, "inspect", tmp_path / "empty.parquet")[2]
    (tmp_path / "folder").mkdir()
    code, _, err = call(capsys, "inspect", tmp_path / "folder")
    assert code == 1
    assert "rankwise convert" in err
    (tmp_path / "rows.dat").write_text("label,qid,a\n1,1,2\n0,1,3\n")
    assert ".csv" in call(capsys, "inspect", tmp_path / "rows.dat")[2]
    assert "ordered pairs" in call(capsys, "inspect", tmp_path / "rows.dat", "--format", "table")[1]
    for part in ("1", "2"):
        (tmp_path / "folder" / f"{part}.csv").write_text(f"label,qid,a\n1,{part},2\n0,{part},3\n")
    assert "4 rows, 2 queries" in call(capsys, "convert", tmp_path / "folder", "-o", tmp_path / "t.txt")[1]
    assert call(capsys, "convert", tmp_path / "folder", "-o", tmp_path / "t.store")[0] == 0


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("matplotlib.pyplot", "report", ("select", "train.txt", "--plot", "s.png")),
        ("pyarrow", "tables", ("fit", "train.txt", "--valid", "v.csv", "-o", "m.rw")),
        ("pyarrow", "tables", ("evaluate", "model.rw", "v.csv")),
        ("pyarrow", "tables", ("fit", "duels.txt", "--items", "items.txt", "-o", "m.rw")),
        ("pyarrow", "tables", ("convert", "train.txt", "-o", "t.parquet")),
        ("pyarrow", "tables", ("convert", "train.txt", "-o", "t.data", "--to", "table")),
        ("zstandard", "zstd", ("convert", "train.txt", "-o", "t.txt.zst")),
        ("zstandard", "zstd", ("fit", "train.txt", "--valid", "v.txt", "-o", "m.rw")),
    ],
)
def test_packages_that_lack_are_asked_for_before_any_work(
    capsys, monkeypatch, tmp_path, package, extra, arguments
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    for name in ("train.txt", "model.rw", "v.csv", "duels.txt", "items.txt"):
        (tmp_path / name).write_text("nobody reads this\n")
    (tmp_path / "v.txt").write_bytes(b"\x28\xb5\x2f\xfd compressed")
    before = sorted(tmp_path.iterdir())
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (1, "")
    assert f"pip install 'rankwise[{extra}]'" in err
    assert sorted(tmp_path.iterdir()) == before


def changes_in(folder):
    """Every change that a hint of the library tells, read from its source."""
    for file in folder.rglob("*.py"):
        if "cli" not in file.relative_to(folder).parts:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Change":
                    parameter, *value = (getattr(argument, "value", None) for argument in node.args)
                    yield Change(parameter, *value)


def test_hints_are_worded_from_what_they_change():
    told = set(changes_in(Path(rankwise.__file__).parent))
    # How many folds there may be is worded where it is known.
    assert {change for change in told if change.parameter != "cv"} == set(remedies._HINTS)
    for change, words in remedies._HINTS.items():
        error = InvalidInputError("wrong.", "in Python.", Change("cv"), change)
        assert remedies.hint_of(error) == remedies.hint_of(error.restated("t.csv: wrong.")) == words
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.changes) == (str(error), error.changes)
    assert remedies.hint_of(InvalidInputError("wrong.", "in Python.", Change("cv"))) == "in Python."
    assert "--folds 3 or fewer" in remedies.hint_of(
        InvalidInputError("wrong.", "in Python.", Change("cv", 3))
    )


def test_an_argument_that_is_wrong_can_be_called_otherwise():
    error = UndefinedMetricError("holds nothing.", "fill it.", about="y_true")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert str(one) == "y_true holds nothing. Hint: fill it."
        assert (one.problem, one.about, one.predicate) == (
            "y_true holds nothing.",
            "y_true",
            "holds nothing.",
        )


def test_the_command_line_reads_no_messages():
    for file in Path(remedies.__file__).parent.rglob("*.py"):
        imported = {
            name.name
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Import)
            for name in node.names
        }
        assert "re" not in imported, file


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["fit"],
            "Missing TRAIN: which files hold the rows to learn from?\nHint: for example `rankwise fit train.txt",
        ),
        (
            ["report"],
            "Missing MODEL: which model file?\nHint: for example `rankwise report model.rw test.txt",
        ),
        (
            ["predict", "model.rw"],
            "Missing DATA: which files hold the rows?\nHint: for example `rankwise predict",
        ),
        (["evaluate", "model.rw"], "Missing DATA: which files hold the rows?"),
        (
            ["convert", "train.txt"],
            "Missing -o: where should it be written?\nHint: for example `rankwise convert",
        ),
        (["fit", "train.txt", "-o", "x.rw", "--time", "-5s"], "--time needs a value after it."),
        (["--verison"], "did you mean --version?"),
        (
            ["fit", "train.txt", "-o", "x.rw", "--method", "rls", "--folds", "1000"],
            "Hint: use --folds 40 or fewer",
        ),
        (["evaluate", "train.txt", "test.txt"], "Hint: name a file that `rankwise fit` wrote; if"),
        (["evaluate", "model.rw", "test.txt", "--metric", "ndgc"], "Did you mean 'ndcg'?"),
        (
            ["export", "model.rw", "--to", "solr", "--feature-names", "a,b"],
            "The model has 12 columns, and feature names of 2 were given.",
        ),
        (
            ["predict", "model.rw", "test.txt", "-o", "x.xlsx"],
            "predict writes no .xlsx files.\nHint: end it in .csv",
        ),
    ],
)
def test_what_is_missing_is_asked_for(capsys, monkeypatch, searches, arguments, said):
    monkeypatch.chdir(searches)
    code, _, err = call(capsys, *arguments)
    assert code != 0
    assert said in err
    assert not Path("x.xlsx").exists()


def test_decimal_commas_and_missing_labels_are_told_as_such(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lines = [f"{row % 3};{row // 6};{row * 0.37 % 5:.2f}".replace(".", ",") for row in range(60)]
    Path("german.csv").write_text("\n".join(["grade;search;price", *lines]) + "\n")
    columns = ["--label", "grade", "--qid", "search"]
    code, _, err = call(capsys, "fit", "german.csv", *columns, "-o", "m.rw")
    assert code == 1
    assert (
        "column 'price', row 0 (line 2): '0,00' has a comma; numbers are written with a decimal point" in err
    )
    Path("german.csv").write_text("\n".join(["grade;search;price", "0;0;n/a", *lines]) + "\n")
    code, _, err = call(capsys, "fit", "german.csv", *columns, "-o", "m.rw")
    assert (
        "column 'price', row 1 (line 3): '0,00' has a comma; numbers are written with a decimal point" in err
    )
    Path("thousands.csv").write_text("grade,search,price\n" + '1,0,"1,234,567"\n0,0,"2,000.5"\n' * 5)
    code, _, err = call(capsys, "fit", "thousands.csv", *columns, "-o", "m.rw")
    assert "'1,234,567' has a comma; numbers are written with a decimal point and nothing between" in err
    Path("holes.csv").write_text("\n".join(["grade;search;price", ";0;1", *lines]).replace(",", ".") + "\n")
    code, _, err = call(capsys, "fit", "holes.csv", *columns, "-o", "m.rw")
    assert code == 1
    assert "column 'grade', row 0 (line 2): a missing value." in err
    assert "only features may be missing" in err


@pytest.mark.parametrize(
    ("head", "last"), [("label,qid,größe", "1,q,2"), ("label,qid,a", "1,Köln,2"), ("label,qid,a", "1,q,Köln")]
)
def test_text_of_another_encoding_is_told_as_such(capsys, tmp_path, head, last):
    path = tmp_path / "latin.csv"
    path.write_bytes(f"{head}\n0,q,Wien\n1,q,Graz\n0,p,Wien\n1,p,Graz\n{last}".encode("latin-1"))
    for command in (["inspect", path], ["fit", path, "-o", tmp_path / "m.rw"]):
        code, _, err = call(capsys, *command)
        assert code == 1
        assert "latin.csv" in err
        assert "as UTF-8" in err.partition("Hint: ")[2]


def test_scores_as_csv_are_a_table_and_a_run(capsys, searches, tmp_path):
    tables = {}
    for ending in ("csv", "tsv"):
        path = tmp_path / f"ranked.{ending}"
        assert call(capsys, "predict", searches / "model.rw", searches / "test.txt", "-o", path)[0] == 0
        tables[ending] = pd.read_csv(path, sep="," if ending == "csv" else "\t")
    assert list(tables["csv"].columns) == ["qid", "item", "rank", "score"]
    pd.testing.assert_frame_equal(tables["csv"], tables["tsv"])
    assert load_run(tmp_path / "ranked.csv") == load_run(tmp_path / "ranked.tsv")
    quoted = b'item,qid,score\n"a, ""b""",q1,0.5\n'
    assert load_run(io.BytesIO(quoted)) == {"q1": {'a, "b"': 0.5}}
