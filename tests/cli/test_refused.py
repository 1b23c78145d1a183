"""What commands refuse, with the remedy; and what they say instead of a figure that there is not."""

import itertools
import os
import signal
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from command_line import call, call_json, duels
from rankwise import AverageRanker, RankRLS
from rankwise.cli import main
from rankwise.cli.printing import show_warnings
from rankwise.data import open_store
from rankwise.persistence import save


@pytest.fixture(scope="module")
def files(tmp_path_factory, searches):
    """A folder with the files of the made-up searches, and others that do not go with them."""
    folder = tmp_path_factory.mktemp("refused")
    for path in searches.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    duels(folder)
    texts = {
        "zero.txt": "1 qid:1 0:1 3:1\n0 qid:1 1:2\n",
        "plain.txt": "".join(f"{row % 3} 1:{row * 7 % 5} 2:{row}\n" for row in range(30)),
        "rows.csv": "label,qid,a\n1,1,2\n0,1,3\n",
        "words.csv": "label,qid,a,sort\n"
        + "".join(f"{r % 3},{r // 6},{r * 7 % 5},{'xyz'[r % 3]}\n" for r in range(60)),
        "short.csv": "label,qid," + ",".join(f"feature {j}" for j in range(1, 12)) + "\n" + ",".join("1" * 13) + "\n",
        "clicks.csv": "session,position,clicked,item\n",
        "both.csv": "winner_a,loser_a,weight\n1,2,1\n3,2,x\n",
        "three.csv": "winner_a,loser_a\n1,2\n3,2\n4,1\n",
        "listed.csv": "winner,loser,amount\na,b,2\nb,a,1\n",
        "holes.csv": "label,qid,a,b\n" + "".join(f"{r % 3},{r // 6},{r * 7 % 5},{r % 4 or ''}\n" for r in range(60)),
        "one.txt": "1 qid:1 1:2\n0 qid:1 1:3\n",
        "a.run": "q1 Q0 a 1 2.0 x\nq1 Q0 b 2 1.0 x\n",
        "two.qrels": "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq2 0 b 0\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("test", "zero"):
        assert main(["convert", str(folder / f"{name}.txt"), "-o", str(folder / f"{name}.store")]) == 0
    words = [
        "fit",
        str(folder / "words.csv"),
        "--method",
        "rls",
        "--folds",
        "2",
        "-o",
        str(folder / "words.rw"),
    ]
    assert main(words) == 0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 12))
    save(RankRLS(alpha=1.0).fit(X, X[:, :2]), folder / "two.rw")
    (folder / "folder").mkdir()
    return folder


FIT = ["fit", "train.txt", "-o", "m.rw"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*FIT, "--method", "kernel", "--gamma", "0"], "0 is not a positive number"),
        ([*FIT, "--method", "kernel", "--gamma", "wide"], "wide is not a number"),
        ([*FIT, "--threads", "two"], "two is not a positive whole number"),
        ([*FIT, "--folds", "1"], "1 is not a number of folds, from 2 up"),
        ([*FIT, "--propensity", "-1"], "-1 is not a number from 0 up"),
        (["export", "model.rw", "--to", "c", "--bounds", "a=0"], "a=0 is not COLUMN=LOW:HIGH"),
        (["convert", "duels.csv", "--items", "items.csv", "-o", "x.store"], "convert the table of items"),
        (["evaluate", "--run", "a.run"], "--run and --qrels go together"),
        (["evaluate", "model.rw", "--run", "a.run", "--qrels", "two.qrels"], "leave the model out, or --run"),
        (["predict", "model.rw", "test.txt", "-o", "x.csv", "--ranks"], "--ranks is for one number per line"),
        (["predict", "model.rw", "test.txt", "--to", "parquet"], "name a file: -o ranked.parquet"),
        (["predict", "model.rw", "test.store", "--stream"], "--stream is for text and tables of rows"),
    ],
)
def test_what_cannot_be_meant_is_answered_by_how_to_write_it(capsys, monkeypatch, files, arguments, said):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said", "remedy"),
    [
        ([*FIT, "--method", "logistic"], "train.txt has labels", "--method svm-squared"),
        (["fit", "plain.txt", "--scaling", "query-standard", "-o", "m.rw"], "plain.txt has none", "--scaling standard"),
        ([*FIT, "--valid", "zero.store"], "do not both count their columns from 0", "--zero-based"),
        (["fit", "rows.csv", "--valid", "one.txt", "-o", "m.rw"], "one.txt has other columns than rows.csv", "same"),
        ([*FIT, "--valid", "rows.csv"], "rows.csv has other columns than train.txt", "same"),
        (["fit", "three.csv", "--valid", "rows.csv", "-o", "m.rw"], "are of different kinds", "for both"),
        (["fit", "both.csv", "-o", "m.rw"], "column 'weight' of both.csv", "number for each duel"),
        (["fit", "clicks.csv", "--items", "items.csv", "--clicks", "above", "-o", "m.rw"], "no rows", "check"),
        (["fit", "duels.csv", "--items", "rows.csv", "-o", "m.rw"], "rows.csv has no column 'id'", "--item-id COLUMN"),
        (["convert", "rows.csv", "--item-id", "nr", "-o", "x.store"], "no column 'nr', which --item-id", "label"),
        (["convert", "test.store", "test.store", "-o", "x.parquet"], "Several stores", "rankwise convert A B"),
        (["fit", "train.txt", "rows.csv", "-o", "m.rw"], "several kinds: table, text", "convert them to one"),
        (["demo", "-o", "train.txt"], "train.txt is a file", "name a folder"),
        (["predict", "folder", "test.txt"], "folder is a folder, not a model file", "rankwise fit -o"),
        (["predict", "words.rw", "test.txt"], "test.txt is no table", "the columns of the training table"),
        (["predict", "model.rw", "short.csv"], "short.csv has 11 columns", "rankwise inspect"),
        (["predict", "two.rw", "test.txt"], "two.rw has 2 outputs", "one output a model"),
        (["select", "train.txt", "--method", "svm-squared", "--plot", "s.png"], "no surface to draw", "--method rls"),
    ],
)  # fmt: skip
def test_files_that_do_not_go_together_are_named(capsys, monkeypatch, files, arguments, said, remedy):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (1, "")
    assert said in err.partition("Hint: ")[0]
    assert remedy in err.partition("Hint: ")[2]
    assert sorted(files.iterdir()) == before


def test_a_terminal_gets_no_bytes(capsys, monkeypatch, files):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, err = call(capsys, "export", files / "model.rw", "--to", "onnx")
    assert (code, out) == (2, "")
    assert "-o model.onnx" in err


def test_a_folder_that_may_not_be_written_is_named_before_any_work(capsys, monkeypatch, files, tmp_path):
    monkeypatch.setattr("rankwise.cli.outputs.os.access", lambda _, mode: mode != os.W_OK)
    code, _, err = call(capsys, "fit", files / "train.txt", "-o", tmp_path / "m.rw")
    assert code == 1
    assert f"permission denied in {tmp_path}" in err


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (PermissionError(13, "Permission denied", "a.txt"), "check that you may read it"),
        (IsADirectoryError(21, "Is a directory", "a.txt"), "name a file, not a folder"),
        (OSError(5, "Input/output error", "a.txt"), "check the path and the disk"),
        (MemoryError(), "use fewer rows"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
    ],
)
def test_what_the_system_refuses_has_a_remedy(capsys, monkeypatch, files, error, remedy):
    def refused(options):
        raise error

    monkeypatch.setattr("rankwise.cli.commands.inspect.run", refused)
    code, _, err = call(capsys, "inspect", files / "train.txt")
    assert code == 1
    assert remedy in err
    assert ("a.txt: " in err) == isinstance(error, OSError)


@pytest.mark.parametrize("kind", [RuntimeError, ZeroDivisionError])
def test_a_fault_of_ours_is_not_passed_off_as_a_mistake(monkeypatch, files, kind):
    def fails(options):
        raise kind("ours")

    monkeypatch.setattr("rankwise.cli.commands.inspect.run", fails)
    with pytest.raises(kind, match="ours"):
        main(["inspect", str(files / "train.txt")])


def test_a_reader_who_left_is_no_fault(capsys, monkeypatch, files):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        code = main(["inspect", str(files / "train.txt")])
        monkeypatch.undo()
    assert code == 128 + signal.SIGPIPE
    assert capsys.readouterr().err == ""


def test_warnings_are_remarks_and_come_once(capsys, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        show_warnings()
        for _ in range(2):
            warnings.warn("the rows are few", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "rankwise: warning: the rows are few\n"


def test_runs_are_judged_by_the_queries_they_share(capsys, files, tmp_path):
    judged = ["evaluate", "--run", files / "a.run", "--qrels", files / "two.qrels", "--metrics", "map"]
    code, out, err = call(capsys, *judged, "--per-query", tmp_path / "each.csv")
    assert code == 0
    assert "1 query of" in err
    assert f"wrote {tmp_path / 'each.csv'}" in out
    assert pd.read_csv(tmp_path / "each.csv")["qid"].tolist() == ["q1"]


def test_weights_go_with_the_metrics_that_take_them(capsys, files, tmp_path):
    X = pd.DataFrame(
        np.random.default_rng(1).normal(size=(40, 12)), columns=[f"feature {j}" for j in range(1, 13)]
    )
    table = X.assign(label=np.arange(40) % 3, qid=np.arange(40) // 8, weight=np.repeat([1.0, 2.0], 20))
    table.to_csv(tmp_path / "t.csv", index=False)
    judged = ["evaluate", files / "model.rw", tmp_path / "t.csv", "--weight", "weight"]
    said = call_json(capsys, *judged, "--metrics", "pairwise_error")
    table.drop(columns="weight").to_csv(tmp_path / "plain.csv", index=False)
    plain = call_json(capsys, *judged[:2], tmp_path / "plain.csv", "--metrics", "pairwise_error")
    assert said["models"] != plain["models"]
    code, _, err = call(capsys, *judged, "--metrics", "pairwise_error,map")
    assert code == 2
    assert "--weight: map does not weigh rows" in err


def test_shares_too_small_for_percents(capsys, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 1:1\n0 qid:1 90000000:1\n")
    assert "1.1e-08 of all" in call(capsys, "inspect", tmp_path / "wide.txt")[1]


def test_a_store_beyond_memory_is_scored_where_it_lies(capsys, monkeypatch, files):
    arguments = ["predict", files / "model.rw", files / "test.store"]
    whole = call(capsys, *arguments)
    monkeypatch.setattr("rankwise.cli.inputs.available_memory", lambda: 0)
    assert call(capsys, *arguments) == whole
    assert len(whole[1].splitlines()) == open_store(files / "test.store").X.shape[0]


def test_text_goes_to_standard_output(capfdbinary, files):
    for source in ("test.txt", "test.store"):
        assert main(["convert", str(files / source), "-o", "-", "--to", "text"]) == 0
        lines = capfdbinary.readouterr().out.splitlines()
        assert len(lines) == len((files / "test.txt").read_text().splitlines())
        assert lines[0].startswith(b"0 qid:") or lines[0][1:6] == b" qid:"


def test_lists_of_preferences_are_recognised(capsys, files):
    code, _, err = call(capsys, "inspect", files / "listed.csv")
    assert code == 0
    assert "listed.csv seems to list preferences (--items FILE)" in err


def test_preferences_are_chosen_by_the_error_of_pairs(capsys, files, tmp_path):
    fit = ["fit", files / "duels.csv", "--items", files / "items.csv", "--method", "rls", "--seed", "3"]
    said = call_json(capsys, *fit, "--metric", "pairwise_error", "--folds", "2", "-o", tmp_path / "m.rw")
    assert said["metric"] == "pairwise_error"
    code, _, err = call(capsys, *fit, "--metric", "map", "-o", tmp_path / "n.rw")
    assert code == 1
    assert "preferences have none" in err


def test_duels_have_weights(capsys, tmp_path):
    rng = np.random.default_rng(2)
    sides = rng.normal(size=(2, 80, 2))
    won = (sides @ [1.0, -0.5])[0] > (sides @ [1.0, -0.5])[1]
    winner, loser = np.where(won[:, None], sides[0], sides[1]), np.where(won[:, None], sides[1], sides[0])
    table = pd.DataFrame(np.hstack([winner, loser]), columns=["winner_a", "winner_b", "loser_a", "loser_b"])
    scores = {}
    for name, weight in {"once": 1.0, "twice": 2.0}.items():
        rows = table.assign(weight=weight) if name == "twice" else pd.concat([table, table])
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        model = tmp_path / f"{name}.rw"
        fit = [
            "fit",
            tmp_path / f"{name}.csv",
            "--method",
            "rls",
            "--scaling",
            "none",
            "--alpha",
            "1",
            "-o",
            model,
        ]
        assert call(capsys, *fit)[0] == 0
        scores[name] = np.array(call(capsys, "predict", model, tmp_path / "once.csv")[1].split(), dtype=float)
    assert np.allclose(scores["once"], scores["twice"], rtol=1e-6)


@pytest.mark.parametrize("name", ["rows.txt", "rows.csv"])
def test_rows_without_queries_are_streamed(capsys, files, tmp_path, name):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(50, 12)), columns=[f"feature {j}" for j in range(1, 13)])
    X.assign(label=np.arange(50) % 2).to_csv(tmp_path / "rows.csv", index=False)
    assert call(capsys, "convert", tmp_path / "rows.csv", "-o", tmp_path / "rows.txt")[0] == 0
    whole = call(capsys, "predict", files / "model.rw", tmp_path / name)
    assert call(capsys, "predict", files / "model.rw", tmp_path / name, "--stream") == whole
    assert len(whole[1].split()) == 50


def test_report_names_a_few_of_many_files(capsysbinary, files):
    sources = [
        files / "test.txt",
        files / "vali.txt",
        files / "train.txt",
        files / "test.txt",
        files / "vali.txt",
    ]
    assert main(list(map(str, ["report", files / "model.rw", *sources, "-o", "-"]))) == 0
    page = capsysbinary.readouterr().out.decode()
    assert page.startswith("<!doctype html>"), page[:50]
    assert "test.txt, vali.txt and 3 more" in page, page[:2000]


def test_select_without_least_squares_has_a_curve_and_no_surface(capsys, files):
    select = ["select", files / "train.txt", "--method", "svm-squared", "--scaling", "none", "--folds", "2"]
    assert "surface" not in call_json(capsys, *select)
    out = call(capsys, *select)[1]
    assert "every alpha, every iteration" not in out
    curve = [line.split() for line in out.partition("\nndcg@10 of RankSVM")[2].splitlines()[2:]]
    starred = [line[:2] for line in curve if line[2:] == ["*"]]
    assert starred == [max((line[:2] for line in curve), key=lambda line: float(line[1]))]


def test_a_surface_of_errors_is_darkest_where_they_are_least(capsys, files):
    for metric in ("concordance", "pairwise_error"):
        select = ["select", files / "train.txt", "--method", "rls", "--scaling", "none", "--folds", "2"]
        out = call(capsys, *select, "--metric", metric)[1]
        assert "X is the choice" in out
        rows = [line.partition("|")[2] for line in out.partition("every iteration")[2].splitlines()[1:-1]]
        values = [float(row.rpartition("best ")[2]) for row in rows]
        best = max(values) if metric == "concordance" else min(values)
        assert any("X" in row for row, value in zip(rows, values, strict=True) if value == best)


def test_inspect_shows_a_model_without_weights(capsys, files, tmp_path):
    fit = ["fit", files / "plain.txt", "--method", "kernel", "--folds", "2", "-o", tmp_path / "k.rw"]
    assert call(capsys, *fit)[0] == 0
    out = call(capsys, "inspect", tmp_path / "k.rw")[1]
    assert "alpha" in out
    assert "largest of" not in out


def test_inspect_shows_what_a_model_of_python_has(capsys, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 3))
    save(AverageRanker([RankRLS(), RankRLS(alpha=2.0)]).fit(X, X[:, 0]), tmp_path / "mean.rw")
    said = call_json(capsys, "inspect", tmp_path / "mean.rw")
    assert (said["queries"], said["columns"]) == (1, 3)
    assert not {"alpha", "pairs", "held_out_value"} & said.keys()


def test_a_row_is_named_by_its_number(capsys, files):
    code, out, _ = call(capsys, "explain", files / "model.rw", files / "test.txt", "--item", "5")
    assert code == 0
    total = out.partition("total")[2].split()[0]
    scores = call(capsys, "predict", files / "model.rw", files / "test.txt")[1].split()
    assert float(total) == pytest.approx(float(scores[5]), rel=1e-3)
    code, _, err = call(capsys, "explain", files / "model.rw", files / "test.txt", "--item", "400")
    assert code == 1
    assert "from 0 to 399" in err


def test_holes_among_numbers_are_filled_and_marked(capsys, files, tmp_path):
    out = call(
        capsys, "fit", files / "holes.csv", "--method", "rls", "--folds", "2", "-o", tmp_path / "m.rw"
    )[1]
    assert "b: a number, 15 missing: filled with 2, and marked in a column" in out


def test_a_figure_of_one_row_has_no_interval(capsys, files, tmp_path):
    (tmp_path / "few.txt").write_text("1 qid:1 1:1\n0 qid:2 1:2\n0.5 qid:2 1:3\n")
    out = call(capsys, "evaluate", files / "model.rw", tmp_path / "few.txt", "--metrics", "map")[1]
    assert ["map", "1.0000"] in [line.split() for line in out.splitlines()]


def test_a_store_is_made_of_a_store(capsys, files, tmp_path):
    for name in ("test", "zero"):
        assert call(capsys, "convert", files / f"{name}.store", "-o", tmp_path / f"{name}.store")[0] == 0
        old, new = open_store(files / f"{name}.store"), open_store(tmp_path / f"{name}.store")
        assert old.first_column == new.first_column
        assert (old.X.tocsr() != new.X.tocsr()).nnz == 0
        assert old.y.tolist() == new.y.tolist()
        assert old.qid.tolist() == new.qid.tolist()


@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("cuts", [(0, 12, 12, 60), (0, 0, 60), (0, 60, 60)])
def test_batches_without_rows_are_passed_by(capsys, files, tmp_path, opened, cuts):
    table = pa.Table.from_pandas(pd.read_csv(files / "words.csv"))
    with opened(tmp_path / "words.arrow", table.schema) as writer:
        for part in (table[low:high] for low, high in itertools.pairwise(cuts)):
            writer.write_batch(
                pa.RecordBatch.from_arrays([c.combine_chunks() for c in part.columns], part.column_names)
            )
    whole = call(capsys, "predict", files / "words.rw", files / "words.csv")
    assert call(capsys, "predict", files / "words.rw", tmp_path / "words.arrow", "--stream") == whole
    assert len(whole[1].split()) == 60


@pytest.mark.parametrize("through", ["rows.csv", "rows.store"])
@pytest.mark.parametrize(
    ("qid", "item", "said"),
    [("1", "x\n1 qid:1 1:5", "{}: ids of items have a line break in row 1"), ("a b", "x", "'a b'")],
)
def test_ids_that_text_cannot_hold_are_refused(capsys, tmp_path, through, qid, item, said):
    (tmp_path / "rows.csv").write_text(f'label,qid,id,a\n1,{qid},z,2\n0,{qid},"{item}",3\n')
    stored = call(capsys, "convert", tmp_path / "rows.csv", "-o", tmp_path / "rows.store")
    if through == "rows.store" and stored[0]:
        assert said in stored[2]
        return
    code, _, err = call(capsys, "convert", tmp_path / through, "-o", tmp_path / "rows.txt")
    assert code == 1
    assert said.format(tmp_path / through) in err
    assert not (tmp_path / "rows.txt").exists()
