"""What the command line says to mistakes, and streams that are used for two things."""

import csv
import io
import json

import pandas as pd
import pytest

from command_line import call, process


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
    assert "#3" in err
    pd.DataFrame({"label": [], "qid": [], "a": []}, dtype=float).to_parquet(tmp_path / "none.parquet")
    assert "none.parquet has no rows" in call(capsys, "inspect", tmp_path / "none.parquet")[2]


@pytest.mark.parametrize("name", ["x.json", "x.parqet"])
def test_convert_refuses_endings_that_say_nothing(capsys, searches, tmp_path, name):
    code, _, err = call(capsys, "convert", searches / "test.txt", "-o", tmp_path / name)
    assert code == 1
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
