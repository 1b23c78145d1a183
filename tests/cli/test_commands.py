"""What the commands do, held to what the library does."""

import csv
import json
import re
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import rankwise
from command_line import call, call_json, duels
from rankwise.data import load_svmlight, open_store
from rankwise.exporters import TARGETS
from rankwise.metrics import bootstrap_interval, compare_rankings, get_metric, preference_error
from rankwise.persistence import read_header

FEATURES = ",".join(f"f{at}" for at in range(1, 13))


def read(path):
    X, y, qid = load_svmlight(path)
    return X.toarray(), y, qid


def test_fit_chooses_what_the_library_would(capsys, searches, tmp_path):
    said = call_json(
        capsys, "fit", searches / "train.txt", "--valid", searches / "vali.txt", "-o", tmp_path / "model.rw"
    )
    assert said["metric"] == "ndcg@10"
    values = {(one["method"], one["scaling"]): one["value"] for one in said["tried"] if not one["options"]}
    methods = {one["method"] for one in said["tried"]}
    assert {"rls", "svm-squared", "kernel"} <= methods
    assert [one["value"] for one in said["tried"]] == sorted(
        (one["value"] for one in said["tried"]), reverse=True
    )
    assert {scaling for _, scaling in values} >= {"none", "standard", "query-minmax", "query-standard"}
    chosen = [one for one in said["tried"] if one["chosen"]]
    assert len(chosen) == 1
    assert chosen[0]["value"] == max(one["value"] for one in said["tried"])
    assert values["rls", "query-standard"] > values["rls", "none"]  # it pays on these data
    X, y, qid = read(searches / "train.txt")
    valid = read(searches / "vali.txt")
    model = rankwise.RankRLSCV(scoring="ndcg@10", method="tikhonov").fit(X, y, qid=qid, eval_set=valid)
    assert values["rls", "none"] == pytest.approx(model.best_score_)


def test_folds_choose_where_no_validation_file_is_given(capsys, searches, tmp_path):
    said = call_json(capsys, "fit", searches / "train.txt", "--method", "rls", "-o", tmp_path / "m.rw")
    assert "folds" in said["judged_by"]


@pytest.mark.parametrize("method", ["rls", "svm", "svm-squared", "kernel", "curves"])
def test_every_method_can_be_asked_for(capsys, searches, tmp_path, method):
    target = tmp_path / "model.rw"
    options = ["--method", method, "--scaling", "standard", "--metric", "map", "-o", target]
    code, out, err = call(capsys, "fit", searches / "train.txt", "--valid", searches / "vali.txt", *options)
    assert code == 0, err
    assert "map" in out
    code, _, err = call(capsys, "evaluate", target, searches / "test.txt", "--metrics", "map")
    assert code == 0, err
    code, _, err = call(capsys, "report", target, searches / "test.txt", "-o", tmp_path / "r.html")
    assert code == 0, err


def test_a_given_alpha_is_the_model_of_that_alpha(capsys, searches, tmp_path):
    target = tmp_path / "model.rw"
    options = [
        "--method",
        "rls",
        "--scaling",
        "none",
        "--alpha",
        "8",
        "--metric",
        "pairwise_error",
        "-o",
        target,
    ]
    assert call(capsys, "fit", searches / "train.txt", *options)[0] == 0
    X, y, qid = read(searches / "train.txt")
    expected = rankwise.RankRLS(alpha=8).fit(X, y, qid=qid)
    found = rankwise.load(target).best_estimator_
    assert found.coef_ == pytest.approx(expected.coef_, rel=1e-3, abs=1e-6)


def test_predictions_are_the_models(capsys, searches, tmp_path):
    target = tmp_path / "scores.txt"
    assert call(capsys, "predict", searches / "model.rw", searches / "test.txt", "-o", target)[0] == 0
    X, _, qid = read(searches / "test.txt")
    expected = rankwise.load(searches / "model.rw").predict(X)
    written = np.array([float(line) for line in target.read_text().splitlines()])
    assert (written == expected).all()
    code, out, _ = call(capsys, "predict", searches / "model.rw", searches / "test.txt", "--ranks")
    assert code == 0
    ranks = [1 + (expected[qid == q] > s).sum() for q, s in zip(qid, expected, strict=True)]
    assert [int(line) for line in out.split()] == ranks


def test_evaluation_is_that_of_the_metrics(capsys, searches, tmp_path):
    per_query = tmp_path / "queries.csv"
    said = call_json(
        capsys,
        "evaluate",
        searches / "model.rw",
        searches / "test.txt",
        "--per-query",
        per_query,
        "--level",
        "0.9",
    )
    X, y, qid = read(searches / "test.txt")
    scores = rankwise.load(searches / "model.rw").predict(X)
    (figures,) = said["models"].values()
    assert {"ndcg@10", "map", "pairwise_error", "mrr"} <= set(figures)
    assert set(said["conventions"]) == set(figures)
    for name, found in figures.items():
        expected = bootstrap_interval(y, scores, qid, metric=name, level=0.9)
        assert (found["value"], found["low"], found["high"]) == (expected.value, expected.low, expected.high)
    lines = list(csv.DictReader(per_query.read_text().splitlines()))
    assert len(lines) == 20
    assert np.mean([float(line["ndcg@10"]) for line in lines]) == pytest.approx(figures["ndcg@10"]["value"])


def test_letor_conventions_are_counted_when_asked_for(capsys, searches):
    said = call_json(
        capsys, "evaluate", searches / "model.rw", searches / "test.txt", "--convention", "letor4"
    )
    X, y, qid = read(searches / "test.txt")
    scores = rankwise.load(searches / "model.rw").predict(X)
    (figures,) = said["models"].values()
    assert figures["ndcg@5"]["value"] == get_metric("ndcg@5", convention="letor4")(y, scores, qid)
    assert "mean_ndcg" in figures


def test_models_are_compared_by_a_paired_test(capsys, searches, tmp_path):
    other = tmp_path / "other.rw"
    call(capsys, "fit", searches / "vali.txt", "--method", "svm", "--scaling", "none", "-o", other)
    arguments = [
        "evaluate",
        searches / "model.rw",
        searches / "test.txt",
        "--against",
        other,
        "--metrics",
        "ndcg@10,map",
    ]
    said = call_json(capsys, *arguments)
    X, y, qid = read(searches / "test.txt")
    first, second = (rankwise.load(path).predict(X) for path in (searches / "model.rw", other))
    expected = compare_rankings(y, first, second, qid, metric="ndcg@10")
    found = said["comparisons"][0]
    assert found["difference"]["value"] == expected.difference.value
    assert found["p_value"] == expected.p_value
    assert found["p_adjusted"] >= found["p_value"]
    code, out, _ = call(capsys, *arguments)
    assert code == 0
    assert str(other) in out
    assert "Holm" in out


def test_a_report_names_the_columns_as_the_file_does(capsys, searches, tmp_path):
    target = tmp_path / "report.html"
    code, out, _ = call(capsys, "report", searches / "model.rw", searches / "test.txt", "-o", target)
    assert code == 0
    assert "report.html" in out
    page = target.read_text("utf-8")
    assert "feature 12" in page
    assert "feature 0<" not in page
    assert "★ chosen" in page  # what was tried
    assert "The rows that this page judges the model by: <bdi>test.txt</bdi>" in page
    assert str(searches.parent) not in page  # a page is for others: no folders of this machine
    assert str(tmp_path.parent) not in page
    # How the model and the page were made: two commands, each by itself.
    commands = re.findall(r"<pre><code>(.*?)</code></pre>", page, flags=re.DOTALL)
    assert [command.split()[:2] for command in commands] == [["rankwise", "fit"], ["rankwise", "report"]]


def test_select_prints_and_draws_the_surface(capsys, searches, tmp_path):
    arguments = ["select", searches / "train.txt", "--method", "rls", "--scaling", "standard"]
    code, out, _ = call(capsys, *arguments, "--plot", tmp_path / "surface.png")
    assert code == 0
    assert "X" in out
    assert (tmp_path / "surface.png").read_bytes().startswith(b"\x89PNG")
    said = call_json(capsys, *arguments)
    X, y, qid = read(searches / "train.txt")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    chosen = next(one for one in said["tried"] if one["chosen"])
    model = rankwise.RankRLSCV(cv=5, scoring="ndcg@10", method="tikhonov", **chosen["options"]).fit(
        X, y, qid=qid
    )
    assert np.array(said["surface"]["values"], dtype=float)[1:] == pytest.approx(model.surface_, abs=1e-6)


def test_a_picture_says_when_another_method_was_chosen(capsys, searches, tmp_path):
    target = tmp_path / "surface.svg"
    arguments = [
        "select",
        searches / "train.txt",
        "--valid",
        searches / "vali.txt",
        "--scaling",
        "query-minmax",
    ]
    with mpl.rc_context({"svg.fonttype": "none"}):  # words as words
        code, _, err = call(capsys, *arguments, "--plot", target)
    assert code == 0, err
    chosen = next(one for one in call_json(capsys, *arguments)["tried"] if one["chosen"])
    picture = target.read_text("utf-8")
    assert "Validation ndcg@10 of RankRLS" in picture
    assert "from 0 to 1" in picture
    assert ("Not what was chosen" in picture) == (chosen["method"] != "rls")


def test_inspecting_data_counts_what_is_there(capsys, tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("2 qid:a 1:0.5 3:1\n0 qid:a 1:0.5\n1 qid:a 1:0.5\n1 qid:b 1:0.5 2:0\n1 qid:b 1:0.5\n")
    said = call_json(capsys, "inspect", data)
    assert (said["rows"], said["columns"], said["queries"], said["pairs"], said["unordered"]) == (
        5,
        3,
        2,
        3,
        1,
    )
    assert said["labels"] == [{"label": "0", "rows": 1}, {"label": "1", "rows": 3}, {"label": "2", "rows": 1}]
    assert (said["empty_columns"], said["constant_columns"]) == (1, 1)
    assert said["filled"] == pytest.approx(6 / 15)
    code, out, _ = call(capsys, "inspect", data)
    assert code == 0
    assert "1 of 2 queries has no two rows with different labels" in out


def test_inspecting_a_model_tells_how_it_was_made(capsys, searches):
    code, out, _ = call(capsys, "inspect", searches / "model.rw")
    assert code == 0
    for word in ("StandardScaler, RankRLSCV", "train.txt", "ndcg@10", "feature"):
        assert word in out
    assert call_json(capsys, "inspect", searches / "model.rw")["columns"] == 12


def test_exported_weights_score_as_the_model_does(capsys, searches, tmp_path):
    code, out, _ = call(capsys, "export", searches / "model.rw")
    assert code == 0
    document = json.loads(out)
    X, _, _ = read(searches / "test.txt")
    scores = X @ np.array(list(document["weights"].values())) + document["intercept"]
    assert scores == pytest.approx(rankwise.load(searches / "model.rw").predict(X))
    query = tmp_path / "query.rw"
    call(capsys, "fit", searches / "train.txt", "--method", "rls", "--scaling", "query-rank", "-o", query)
    assert call(capsys, "export", query, "--to", "python")[0] == 0
    code, _, err = call(capsys, "export", query, "--to", "solr")
    assert code == 1
    assert "sees one row at a time" in err
    assert "Hint:" in err


def test_exporting_to_every_target_that_fit_names(capsys, searches, tmp_path):
    tried = call_json(capsys, "select", searches / "train.txt", "--method", "rls", "--for", "solr")["tried"]
    assert not any("query" in one["scaling"] for one in tried)
    options = ["--method", "rls", "--scaling", "standard", "--for", "solr", "-o", tmp_path / "m.rw"]
    said = call_json(capsys, "fit", searches / "train.txt", *options)
    assert "solr" in said["runs_in"]
    for target in said["runs_in"]:
        names = [f"--feature-names={','.join(f'f{at}' for at in range(1, 13))}"] if target == "vespa" else []
        made = tmp_path / f"made.{target}"
        code, _, err = call(capsys, "export", tmp_path / "m.rw", "--to", target, *names, "-o", made)
        assert code == 0, err
        assert made.stat().st_size > 0


def test_sql_is_what_a_model_is_for_and_a_dialect_what_it_is_written_in(searches, tmp_path, capsys):
    options = ["--method", "kernel", "--for", "sql", "-o", tmp_path / "m.rw"]
    assert "cannot run kernels" in call(capsys, "fit", searches / "train.txt", *options)[2]
    options = [
        "--method",
        "rls",
        "--alpha",
        "1",
        "--scaling",
        "query-rank",
        "--for",
        "sql",
        "-o",
        tmp_path / "m.rw",
    ]
    assert call(capsys, "fit", searches / "train.txt", *options)[0] == 0
    code, _, err = call(capsys, "export", tmp_path / "m.rw", "--to", "sql")
    assert code != 0
    assert "sqlite, postgresql or duckdb" in err
    assert len({TARGETS[dialect] for dialect in ("sqlite", "postgresql", "duckdb")}) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--to", "vespa", "--nonnegative", "--feature-names", FEATURES), "add --bounds COLUMN=LOW:HIGH"),
        (("--to", "sqlite", "--name", "qid"), "otherwise with --name"),
        (("--to", "c", "--name", "double"), "otherwise with --name"),
    ],
)
def test_remedies_of_an_export_are_options(capsys, searches, tmp_path, options, words):
    code, _, err = call(capsys, "export", searches / "model.rw", *options, "-o", tmp_path / "out")
    assert code == 1
    assert words in err
    assert "bounds={" not in err


def test_what_a_target_cannot_run_is_not_fitted_for_it(capsys, searches, tmp_path):
    for wrong in (("--method", "kernel"), ("--scaling", "query-rank")):
        code, _, err = call(
            capsys, "fit", searches / "train.txt", "--for", "solr", *wrong, "-o", tmp_path / "m.rw"
        )
        assert code == 1
        assert "--for solr" in err


@pytest.mark.parametrize("ending", [".txt", ".txt.gz", ".parquet", ".csv", ".tsv", ".feather", ".store"])
def test_converting_there_and_back_changes_nothing(capsys, searches, tmp_path, ending):
    there, back = tmp_path / f"rows{ending}", tmp_path / "back.txt"
    for source, target in ((searches / "test.txt", there), (there, back)):
        code, _, err = call(capsys, "convert", source, "-o", target)
        assert code == 0, err
    for own, expected in zip(read(back), read(searches / "test.txt"), strict=True):
        assert (own == expected).all()
    if ending != ".txt":
        assert (
            call(capsys, "predict", searches / "model.rw", searches / "test.txt", "-o", tmp_path / "a")[0]
            == 0
        )


@pytest.mark.parametrize(
    "way", [["s.store", "t.parquet"], ["t.parquet", "s.store"], ["t.arrow", "s.store", "u.pq"]]
)
def test_text_comes_back_byte_for_byte_by_way_of_stores_and_tables(capsys, tmp_path, way):
    text = "2 qid:a-1 1:0.1 2:0 7:-1e-300\n0 qid:a-1\n1 qid:b 3:0.30000000000000004\n0.5 qid:b 2:NaN\n"
    (tmp_path / "rows.txt").write_text(text)
    places = ["rows.txt", *way, "back.txt"]
    for source, target in pairwise(places):
        code, _, err = call(capsys, "convert", tmp_path / source, "-o", tmp_path / target, "--missing", "nan")
        assert code == 0, err
    assert (tmp_path / "back.txt").read_text() == text


@pytest.mark.parametrize("ending", [".txt", ".store", ".parquet"])
def test_comments_that_are_lost_are_told_once(capsys, tmp_path, ending):
    (tmp_path / "rows.txt").write_text("2 qid:1 1:1 # docid = G-1\n0 qid:1 1:2 # docid = G-2\n# end\n")
    code, _, err = call(capsys, "convert", tmp_path / "rows.txt", "-o", tmp_path / f"out{ending}")
    assert code == 0
    assert err.count("comments") == 1
    (tmp_path / "rows.txt").write_text("2 qid:1 1:1\n0 qid:1 1:2\n")
    code, _, err = call(capsys, "convert", tmp_path / "rows.txt", "-f", "-o", tmp_path / f"out{ending}")
    assert (code, err) == (0, "")


def test_columns_of_a_table_are_named_on_the_way_to_a_store(capsys, tmp_path):
    frame = pd.DataFrame(
        {"grade": [1.0, 0.0], "search": ["x", "x"], "v": [[1.0, 2.0], [3.0, 4.0]], "w": [5, 6]}
    )
    frame.to_parquet(tmp_path / "rows")  # whose name says nothing
    options = [
        "--format",
        "table",
        "--label",
        "grade",
        "--qid",
        "search",
        "--embedding",
        "v",
        "--features",
        "w",
    ]
    code, _, err = call(capsys, "convert", tmp_path / "rows", *options, "-o", tmp_path / "rows.store")
    assert code == 0, err
    store = open_store(tmp_path / "rows.store")
    assert store.X.tolist() == [[5, 1, 2], [6, 3, 4]]
    assert store.qid.tolist() == ["x", "x"]


def test_tables_are_matched_by_name(capsys, searches, tmp_path):
    X, y, qid = read(searches / "train.txt")
    names = [f"f{j}" for j in range(12)]
    frame = pd.DataFrame(X, columns=names).assign(grade=y, search=qid)
    frame.to_parquet(tmp_path / "train.parquet")
    frame[["f11", "search", *names[:11]]].to_csv(tmp_path / "shuffled.csv", index=False)
    frame[names[:11]].to_csv(tmp_path / "less.csv", index=False)
    options = ["--label", "grade", "--qid", "search"]
    model = tmp_path / "model.rw"
    code, _, err = call(
        capsys,
        "fit",
        tmp_path / "train.parquet",
        *options,
        "--method",
        "rls",
        "--scaling",
        "none",
        "-o",
        model,
    )
    assert code == 0, err
    assert read_header(model)["notes"]["feature_names"] == names
    code, out, err = call(capsys, "predict", model, tmp_path / "shuffled.csv", *options)
    assert code == 0, err
    assert np.array(out.split(), dtype=float) == pytest.approx(rankwise.load(model).predict(X))
    code, _, err = call(capsys, "predict", model, tmp_path / "less.csv")
    assert code == 1
    assert "'f11'" in err


def test_preferences_from_fit_to_report(capsys, tmp_path):
    X, pairs = duels(tmp_path)
    model = tmp_path / "model.rw"
    items = ["--items", tmp_path / "items.csv"]
    linear = ["--method", "rls", "--scaling", "none"]  # whose page names the columns
    code, out, err = call(capsys, "fit", tmp_path / "duels.csv", *items, *linear, "-o", model)
    assert code == 0, err
    assert f"{len(pairs)} preferences" in out
    said = call_json(capsys, "evaluate", model, tmp_path / "duels.csv", *items)
    (figures,) = said["models"].values()
    expected = preference_error(pairs, rankwise.load(model).predict(X))
    assert figures["pairwise_error"]["value"] == pytest.approx(expected)
    code, _, err = call(capsys, "report", model, tmp_path / "duels.csv", *items, "-o", tmp_path / "r.html")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "sugar" in page
    best = int(np.argmax(rankwise.load(model).predict(X)))
    assert f"<bdi>item {best}</bdi>" in page  # items are called by their ids, not by row numbers
    assert "Compare row" not in page
    assert call_json(capsys, "inspect", tmp_path / "duels.csv", *items)["preferences"] == len(pairs)
    code, _, err = call(
        capsys, "fit", tmp_path / "duels.csv", *items, "--metric", "map", "-o", model, "--force"
    )
    assert code == 1
    assert "pairwise_error" in err


def test_last_columns_that_do_not_occur_are_zero(capsys, searches, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.1 3:2\n")
    code, out, err = call(capsys, "predict", searches / "model.rw", short)
    assert code == 0
    assert len(out.split()) == 2
    assert "has 3 columns and the model 12" in err
    wide = tmp_path / "wide.txt"
    wide.write_text("1 qid:1 1:0.5 20:1\n")
    code, _, err = call(capsys, "predict", searches / "model.rw", wide)
    assert code == 1
    assert "has 20 columns" in err
    assert "trained on 12" in err


def test_nothing_is_overwritten_without_force(capsys, searches, tmp_path):
    target = tmp_path / "scores.txt"
    target.write_text("precious")
    arguments = ["predict", searches / "model.rw", searches / "test.txt", "-o", target]
    code, _, err = call(capsys, *arguments)
    assert code == 1
    assert "--force" in err
    assert target.read_text() == "precious"
    assert call(capsys, *arguments, "--force")[0] == 0
    assert target.read_text() != "precious"


def test_missing_values_are_read_as_told(capsys, tmp_path, searches):
    data = tmp_path / "null.txt"
    data.write_text("1 qid:1 1:NULL 12:1\n0 qid:1 1:2 2:0.1\n")
    code, _, err = call(capsys, "inspect", data)
    assert code == 1
    assert "line 1" in err
    assert "missing" in err
    said = call_json(capsys, "inspect", data, "--missing", "nan")
    assert said["missing"] == 1
    assert call(capsys, "predict", searches / "model.rw", data, "--missing", "zero")[0] == 0


def test_several_files_are_one(capsys, searches):
    code, out, _ = call(capsys, "inspect", searches / "test.txt", searches / "vali.txt")
    assert code == 0
    assert "700" in out


def test_the_demo_runs_everything_and_its_page_stays(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rankwise-demo.html").write_text("somebody's")
    code, out, _ = call(capsys, "demo")
    assert code == 0
    for command in ("inspect", "fit", "evaluate", "report"):
        assert f"$ rankwise {command}" in out
    page = tmp_path / "rankwise-demo-2.html"
    assert page.read_text().startswith("<!doctype html>")
    assert f"The page stays: {page}." in out
    assert (tmp_path / "rankwise-demo.html").read_text() == "somebody's"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rankwise-demo-2.html", "rankwise-demo.html"]


def test_one_of_a_thing_is_said_so(capsys, tmp_path):
    rows = "".join(f"{row % 2} qid:{row // 4} 1:{row * 0.37 % 1:.3f}\n" for row in range(40))
    (tmp_path / "rows.txt").write_text(rows)
    model = tmp_path / "m.rw"
    plain = ["--method", "rls", "--scaling", "none", "--alpha", 1]
    code, out, err = call(capsys, "fit", tmp_path / "rows.txt", *plain, "-o", model)
    assert code == 0, err
    assert "40 rows, 10 queries, 1 column\n" in out
    (tmp_path / "one.txt").write_text("".join(rows.splitlines(keepends=True)[:4]))
    code, out, err = call(capsys, "evaluate", model, tmp_path / "one.txt", "--metrics", "ndcg@10")
    assert code == 0, err
    assert "4 rows, 1 query, 1 column\n" in out
    assert "over 1 query," in out or "over 4 rows," in out
    assert "largest of 1 weight\n" in call(capsys, "inspect", model)[1]
    (tmp_path / "row.txt").write_text("1 qid:1 1:2\n")
    assert ": 1 score of " in call(capsys, "predict", model, tmp_path / "row.txt", "-o", tmp_path / "s")[2]
    (tmp_path / "runs.txt").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n2 0 b 0\n")
    (tmp_path / "a.run").write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 1.0 x\n")
    judged = call(capsys, "evaluate", "--qrels", tmp_path / "runs.txt", "--run", tmp_path / "a.run")
    assert "1 query of " in judged[2]
    assert "is not in every run, and does not count" in judged[2]


def test_a_model_of_a_table_is_shown_in_its_columns(capsys, tmp_path):
    colours = ["red", "blue", "green"]
    rows = "".join(f"{row % 3},{row // 6},{row * 0.37 % 1:.3f},{colours[row * 7 % 3]}\n" for row in range(60))
    (tmp_path / "rows.csv").write_text(f"label,qid,price,colour\n{rows}")
    model = tmp_path / "m.rw"
    fit = ["fit", tmp_path / "rows.csv", "--method", "rls", "--scaling", "standard+query-rank", "-o", model]
    tried = call_json(capsys, *fit)["tried"]
    code, out, err = call(capsys, "inspect", model)
    assert code == 0, err
    assert "2 of a table, 4 as numbers\n" in out
    assert "colour: a category of 3 values\n" in out
    found = call_json(capsys, "inspect", model)
    made = ["price", "colour=blue", "colour=green", "colour=red"]
    assert set(found["largest_weights"]) == {*made, *(f"{name} (rank)" for name in made)}
    assert found["encoding"] == ["price: a number", "colour: a category of 3 values"]
    (chosen,) = [one for one in tried if one["chosen"]]
    assert found["held_out_value"] == chosen["value"]
