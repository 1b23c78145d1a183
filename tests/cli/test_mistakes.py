"""Mistakes: one clear error with a hint and exit code 2, before anything is written."""

import sys
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

import rankwise
from command_line import call
from rankwise import RankRLS
from rankwise.cli.printing import show_warnings
from rankwise.data import load_svmlight, open_store
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing import QueryScaler

CSV = "label,qid,a,b\n" + "".join(
    f"{at % 3},{at // 6},{at * 0.37 % 1:.3f},{at * 0.71 % 1:.3f}\n" for at in range(60)
)
TEXT = "".join(f"{at % 3} qid:{at // 6} 1:{at * 0.37 % 1:.3f} 2:{at * 0.71 % 1:.3f}\n" for at in range(60))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with good and bad files."""
    folder = tmp_path_factory.mktemp("files")
    for name, content in {
        "rows.csv": CSV,
        "rows.txt": TEXT,
        "empty.csv": "",
        "empty.txt": "",
        "header.csv": "label,qid,a\n",
        "equal.csv": "label,qid,a\n" + "1,1,2\n1,1,3\n1,2,4\n",
        "equal.txt": "1 qid:1 1:2\n1 qid:1 1:3\n",
        "single.txt": "1 qid:1 1:2\n0 qid:2 1:3\n",
        "constant.txt": "".join(f"{at % 2} qid:{at // 4} 1:7\n" for at in range(40)),
        "infinite.csv": "label,qid,a\n1,1,inf\n0,1,2\n",
        "comma.csv": 'label,qid,a\n1,1,"1,5"\n0,1,"2,5"\n2,1,"3,5"\n',
        "typo.csv": CSV + "1,9,x,0.5\n",
        "no_label.csv": CSV.replace("label", "grade"),
        "bad_label.csv": CSV + "good,9,1,1\n",
        "twice.csv": CSV.replace("a,b", "a,a"),
        "wrong.txt": TEXT + "1 qid:99 1:x\n",
        "quote.csv": 'label,qid,a\n1,1,"2\n0,1,3\n',
        "battles.csv": "model_a,model_b,winner\nx,y,model_a\n",
        "wins.csv": "winner,loser\nx,y\ny,z\n",
        "items.csv": "id,price\nx,1\ny,2\n",
        "weights.csv": "label,qid,a,w\n1,1,2,-1\n0,1,3,1\n",
        "garbage.rw": "nothing",
        "book.xlsx": "PK\3\4 and so on",
        "rows.jsonl": '{"label": 1}\n',
        "wide.txt": "1 qid:1 1:2\n0 qid:1 5000:3\n",
        "spaces.csv": "id,sku,qid,a,b\ntwo words,x,1,1,2\ny,x,1,2,2\n",
        "mixed.csv": "label,qid,a,b\n1,1,red,2\n",
    }.items():
        (folder / name).write_text(content)
    (folder / "latin.csv").write_bytes("label,qid,a\n1,1,Köln\n".encode("latin-1"))
    (folder / "folder").mkdir()
    command = ["fit", str(folder / "rows.csv"), "--methods", "rls", "-o", str(folder / "m.rw")]
    assert rankwise.cli.main(command) == 0
    command = ["fit", str(folder / "rows.txt"), "--methods", "rls", "-o", str(folder / "t.rw")]
    assert rankwise.cli.main(command) == 0
    return folder


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fti", "there is no command fti; did you mean fit?"),
        ("fit rows.csv --lable x", "fit has no option --lable; did you mean --label?"),
        ("fit rows.csv", "-o model.rw"),
        ("fit", "arguments are required: DATA"),
        ("fit rows.csv --n-threads 0 -o x", "0 is not a positive whole number"),
        ("fit rows.csv --alphas x -o x", "x is not a list of numbers"),
        ("fit rows.csv --time-limit soon -o x", "soon is not a time, such as 60s"),
        ("fit rows.csv --format excel -o x", "invalid choice"),
        ("fit rows.csv --methods ranksvm -o x", "methods is one of"),
        ("fit rows.csv --scoring ncdg -o x", "Unknown metric"),
        ("fit rows.csv --cv 1 -o x", "rows.csv"),
        ("fit rows.csv --alphas 0 -o x", "alphas"),
        ("fit rows.csv --target fortran -o x", "target"),
        ("fit rows.csv --json -o -", "both go to standard output"),
        ("fit none.csv -o x", "none.csv: No such file"),
        ("fit rows.csv -o none/x", "there is no folder"),
        ("fit rows.csv -o folder", "folder is a folder"),
        ("fit empty.csv -o x", "empty.csv is empty"),
        ("fit empty.txt -o x", "empty.txt: there are no rows"),
        ("fit header.csv -o x", "header.csv has no rows"),
        ("fit equal.csv -o x", "equal.csv: No query has two different labels"),
        ("fit equal.txt -o x", "equal.txt: No query has two different labels"),
        ("fit single.txt -o x", "single.txt: "),
        ("fit constant.txt -o x", "constant.txt: "),
        ("fit infinite.csv -o x", "'a', row 0 (line 2): a value is not finite"),
        ("fit comma.csv -o x", "decimal point"),
        ("fit typo.csv -o x", "'x' is text in a column of numbers"),
        ("fit bad_label.csv -o x", "'good' is text in a column of numbers"),
        ("fit no_label.csv -o x", "name it with --label; the columns are 'grade', 'qid'"),
        ("fit rows.csv --label lable -o x", "has no column 'lable', which was named as label"),
        ("fit rows.csv --features a,c -o x", "has no column 'c', which was named as features"),
        ("fit rows.csv --id sku -o x", "has no column 'sku', which was named as id"),
        ("fit rows.csv --label label --features label,a -o x", "has two roles"),
        ("fit rows.csv --categories c -o x", "categories names 'c'"),
        ("fit twice.csv -o x", "has 2 columns named 'a'"),
        ("fit weights.csv --weight w -o x", "is negative"),
        ("fit quote.csv -o x", "quote.csv"),
        ("fit latin.csv -o x", "UTF-8"),
        ("fit book.xlsx -o x", "is an Excel workbook"),
        ("fit rows.jsonl -o x", "is JSON"),
        ("fit wrong.txt -o x", "wrong.txt, line 61"),
        ("fit battles.csv -o x", "rankwise leaderboard battles.csv"),
        ("fit wins.csv -o x", "add --items FILE"),
        ("fit wins.csv --items items.csv -o x", "the table of items lacks 'z'"),
        ("fit wins.csv --items rows.csv -o x", "has no column 'id' with the ids of the items"),
        ("fit rows.csv --items items.csv -o x", "no column 'winner'"),
        ("fit rows.csv rows.txt -o x", "have different formats: table, text"),
        ("fit m.rw -o x", "m.rw is a model, not data"),
        ("fit rows.csv --eval-set rows.txt -o x", "rows.txt"),
        ("predict m.rw", "arguments are required: DATA"),
        ("predict garbage.rw rows.csv", "The model file is damaged, or is not one"),
        ("predict folder rows.csv", "folder"),
        ("predict rows.csv m.rw", "The model file is damaged, or is not one"),
        ("predict m.rw items.csv", "lacks 2 of the model's 2 columns, such as 'a'"),
        ("predict m.rw mixed.csv", "mixed.csv, column 'a'"),
        ("predict m.rw rows.csv -o x.xlsx", "does not write .xlsx files"),
        ("predict m.rw rows.csv --to parquet", "-o ranked.parquet"),
        ("predict m.rw rows.csv -o x.tsv --ranks", "leave --ranks out"),
        ("predict - -", "Standard input is named twice"),
        ("evaluate m.rw", "arguments are required: DATA"),
        ("evaluate m.rw equal.csv", "equal.csv"),
        ("evaluate m.rw rows.csv --metrics best", "Unknown metric"),
        (
            "evaluate m.rw rows.csv --weight a --metrics average_precision",
            "average_precision takes no weights",
        ),
        ("predict m.rw spaces.csv -o x.run", "ids without spaces, unlike 'two words'"),
        ("predict m.rw spaces.csv --id sku -o x.run", "here one comes twice"),
        ("evaluate m.rw - --against t.rw", "Standard input can be read once"),
        ("export m.rw --to sql", "sqlite, postgresql, duckdb"),
        ("export m.rw --to c --name double", "name"),
        ("convert rows.txt -o rows.xyz", "does not name a known format"),
        ("convert rows.txt -o x.parquet.gz", "does not name the format"),
        (
            "convert wide.txt -o x.parquet",
            "has 5,000 sparse columns, and a table would have a column for each",
        ),
        ("convert no_label.csv -o x.txt", "--label"),
        ("convert no_label.csv -o x.store", "--label"),
        ("convert wins.csv --items items.csv -o x.txt", "convert does not read preferences"),
        ("inspect folder", "folder"),
        ("inspect rows.csv --qid \udcff", "surrogates not allowed"),
        ("report -- m.rw --", "arguments are required: DATA"),
        ("demo -o rows.csv", "rows.csv is a file"),
    ],
)
def test_mistakes(capsys, monkeypatch, files, line, words):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    code, out, err = call(capsys, *line.split())
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("rankwise: error: ") == 1
    assert "\nHint: " in err
    assert sorted(files.iterdir()) == before


def test_nothing_is_replaced_without_force(capsys, files, tmp_path):
    target = tmp_path / "scores.txt"
    target.write_text("precious")
    arguments = ["predict", files / "m.rw", files / "rows.csv", "-o", target]
    code, _, err = call(capsys, *arguments)
    assert code == 2
    assert "--force" in err
    assert target.read_text() == "precious"
    assert call(capsys, *arguments, "--force")[0] == 0
    assert target.read_text() != "precious"
    code, _, err = call(capsys, "convert", target, "-o", target, "--force")
    assert code == 2
    assert "read and written" in err


def test_a_model_that_needs_queries_asks_for_them(capsys, searches, tmp_path):
    lines = (searches / "test.txt").read_text().splitlines()
    (tmp_path / "plain.txt").write_text(
        "".join(" ".join([w for w in line.split() if "qid" not in w]) + "\n" for line in lines)
    )
    X, y, qid = load_svmlight(searches / "train.txt")
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(QueryScaler(), RankRLS()).fit(X.toarray(), y, qid=qid)
    rankwise.save(model, tmp_path / "m.rw")
    assert call(capsys, "predict", tmp_path / "m.rw", searches / "test.txt")[0] == 0
    code, _, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "plain.txt")
    assert code == 2
    assert "plain.txt: " in err
    assert "qid" in err


def test_optional_packages_are_named(capsys, monkeypatch, files):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = call(capsys, "inspect", files / "rows.csv")
    assert code == 2
    assert "pip install 'rankwise[tables]'" in err


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (PermissionError(13, "Permission denied", "x.txt"), 2, "x.txt: Permission denied"),
        (OSError(28, "No space left on device"), 1, "check the path and the disk"),
        (MemoryError(), 1, "do not fit in memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failures_of_the_system(capsys, monkeypatch, files, error, expected, words):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("rankwise.cli.reading.read_data", fail)
    code, _, err = call(capsys, "inspect", files / "rows.csv")
    assert code == expected
    assert words in err


def test_a_fault_of_ours_is_not_passed_off_as_a_mistake(monkeypatch, files):
    def fail(*arguments, **options):
        raise ZeroDivisionError

    monkeypatch.setattr("rankwise.cli.reading.read_data", fail)
    with pytest.raises(ZeroDivisionError):
        rankwise.cli.main(["inspect", str(files / "rows.csv")])


def test_warnings_are_remarks_and_come_once(capsys):
    with warnings.catch_warnings():
        show_warnings()
        for _ in range(2):
            warnings.showwarning(UserWarning("careful"), UserWarning, "x.py", 1)
    assert capsys.readouterr().err == "rankwise: warning: careful\n"


def test_a_store_beyond_memory_is_scored_from_disk(capsys, monkeypatch, files, tmp_path):
    assert call(capsys, "convert", files / "rows.txt", "-o", tmp_path / "s.store")[0] == 0
    assert open_store(tmp_path / "s.store").X.shape == (60, 2)
    expected = call(capsys, "predict", files / "t.rw", files / "rows.txt")[1]
    assert call(capsys, "predict", files / "t.rw", tmp_path / "s.store")[1] == expected
    monkeypatch.setattr("rankwise.cli.reading.available_memory", lambda: 0)
    assert call(capsys, "predict", files / "t.rw", tmp_path / "s.store")[1] == expected


BINARY = bytes(np.random.default_rng(0).integers(0, 256, 3000, dtype=np.uint8))


@pytest.mark.parametrize("name", ["b.csv", "b.txt", "b.parquet", "b.rw", "b.csv.gz"])
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
def test_nothing_in_a_file_commands_the_terminal(capsys, monkeypatch, files, tmp_path, name, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    for command in (
        ["inspect", name],
        ["fit", name, "-o", "m.rw"],
        ["predict", files / "m.rw", name],
        ["predict", name, files / "rows.csv"],
        ["convert", name, "-o", "c.txt"],
    ):
        code, out, err = call(capsys, *command)
        assert code == 2 or command[0] == "inspect"
        assert all(character == "\n" or character.isprintable() for character in out + err)
        assert len(err) < 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_hostile_names_reach_neither_terminal_nor_page(capsys, tmp_path):
    evil = "<script>alert(1)</script>\x1b[2J"
    (tmp_path / "t.csv").write_text(CSV.replace("a,b", f"{evil},b"))
    model, page = tmp_path / "m.rw", tmp_path / "r.html"
    for command in (
        ["fit", tmp_path / "t.csv", "--methods", "rls", "-o", model],
        ["inspect", model],
        ["explain", model, tmp_path / "t.csv"],
        ["evaluate", model, tmp_path / "t.csv"],
        ["report", model, tmp_path / "t.csv", "-o", page],
        ["explain", model, tmp_path / "t.csv", "-o", tmp_path / "e.html"],
    ):
        code, out, err = call(capsys, *command)
        assert code == 0, err
        assert "\x1b" not in out + err
    for made in (page, tmp_path / "e.html"):
        assert "<script>alert" not in made.read_text()


def test_errors_and_arguments_are_escaped(capsys):
    error = InvalidInputError("bad \x1b[31m name\u009b", "rename \x07 it.\nTwice")
    assert str(error) == r"bad \x1b[31m name\x9b Hint: rename \x07 it." + "\nTwice"
    code, _, err = call(capsys, "fit", "--nonsense\x1b[31m")
    assert code == 2
    assert "\x1b" not in err


def test_ids_that_text_cannot_hold(capsys, tmp_path):
    (tmp_path / "rows.csv").write_text("label,qid,id,a\n1,a b,x,2\n0,a b,y,3\n")
    code, _, err = call(capsys, "convert", tmp_path / "rows.csv", "-o", tmp_path / "rows.txt")
    assert code == 2
    assert "'a b'" in err
    assert not (tmp_path / "rows.txt").exists()
    (tmp_path / "rows.csv").write_text('label,qid,id,a\n1,1,"x\n1 qid:1 1:5",2\n0,1,y,3\n')
    assert call(capsys, "convert", tmp_path / "rows.csv", "-o", tmp_path / "rows.txt")[0] == 0
    assert load_svmlight(tmp_path / "rows.txt")[0].shape == (2, 1)  # on one line
