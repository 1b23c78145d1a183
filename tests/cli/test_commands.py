"""The commands agree with the library."""

import csv
import math
import re
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

import rankwise
from command_line import call, call_json, duels
from rankwise.data import load_svmlight
from rankwise.metrics import bootstrap_interval, compare_rankings, get_metric, preference_error

RLS = ("--methods", "rls")


def read(path):
    X, y, qid = load_svmlight(path, n_features=12)
    return X.toarray(), y, qid


def scored(searches):
    X, y, qid = read(searches / "test.txt")
    return rankwise.load(searches / "model.rw").predict(X, qid), y, qid


@pytest.fixture(scope="module")
def named(searches, tmp_path_factory):
    """The test searches with an id in a comment of each row."""
    path = tmp_path_factory.mktemp("named") / "named.txt"
    lines = (searches / "test.txt").read_text().splitlines()
    path.write_text("".join(f"{line} # docid = D{number} extra\n" for number, line in enumerate(lines)))
    return path


def test_fit_is_auto_ranker(capsys, searches, tmp_path):
    target = tmp_path / "m.rw"
    options = [
        "--methods",
        "rls,svm-squared",
        "--scoring",
        "average_precision",
        "--alphas",
        "1,100",
        "-o",
        target,
    ]
    said = call_json(capsys, "fit", searches / "train.txt", "--eval-set", searches / "vali.txt", *options)
    train, valid = read(searches / "train.txt"), read(searches / "vali.txt")
    ranker = rankwise.AutoRanker("average_precision", methods=["rls", "svm-squared"], alphas=[1.0, 100.0])
    ranker.fit(train[0], train[1], train[2], eval_set=valid)
    assert [one["value"] for one in said["tried"]] == [one.value for one in ranker.candidates_]
    assert said["constant"] == ranker.candidates_.constant
    assert said["metric"] == "average_precision"
    X, _, qid = read(searches / "test.txt")
    np.testing.assert_array_equal(rankwise.load(target).predict(X, qid), ranker.predict(X, qid))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cv", "3"), "3 folds of queries"),
        (("--time-limit", "60s"), "folds"),
        (("--target", "solr"), "solr"),
        (("--n-threads", "1"), "folds"),
    ],
)
def test_options_reach_the_ranker(capsys, searches, tmp_path, options, words):
    code, out, err = call(capsys, "fit", searches / "train.txt", *RLS, *options, "-o", tmp_path / "m.rw")
    assert code == 0, err
    assert words in out


@pytest.mark.parametrize("signal", [0.0, 3.0])
def test_constant_scores_stand_beside_the_candidates(capsys, tmp_path, signal):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = (signal * X[:, 0] + rng.normal(size=120) > 0).astype(int)
    lines = [
        f"{label} qid:{row // 10} 1:{a} 2:{b} 3:{c}\n"
        for row, (label, (a, b, c)) in enumerate(zip(y, X, strict=True))
    ]
    (tmp_path / "rows.txt").write_text("".join(lines))
    fit = ["fit", tmp_path / "rows.txt", "--methods", "rls,svm-squared", "-f", "-o", tmp_path / "m.rw"]
    code, out, err = call(capsys, *fit)
    assert code == 0, err
    assert "A constant score has " in out
    assert ("No candidate is clearly better than a constant score." in out) == (signal == 0)
    assert re.search(r"chose +method=\S+, scaling=\S+, (ties=\w+, cost=\w+, )?alpha=", out)
    assert "more within" in out
    assert "more within" not in call(capsys, *fit, "--verbose")[1]


def test_predictions_are_the_models(capsys, searches, named, tmp_path):
    scores, _, qid = scored(searches)
    ranks = [1 + int((scores[qid == q] > s).sum()) for q, s in zip(qid, scores, strict=True)]
    out = call(capsys, "predict", searches / "model.rw", searches / "test.txt")[1]
    assert [float(line) for line in out.split()] == scores.tolist()
    out = call(capsys, "predict", searches / "model.rw", searches / "test.txt", "--ranks")[1]
    assert [int(line) for line in out.split()] == ranks
    rows = [(str(q), f"D{at}", ranks[at], scores[at]) for at, q in enumerate(qid.tolist())]
    for ending in ("tsv", "csv", "parquet", "run"):
        target = tmp_path / f"scores.{ending}"
        code, _, err = call(capsys, "predict", searches / "model.rw", named, "-o", target)
        assert code == 0, err
        if ending == "parquet":
            found = [tuple(row.values()) for row in pq.read_table(target).to_pylist()]
        elif ending == "run":
            lines = [line.split() for line in target.read_text().splitlines()]
            assert [line[3] for line in lines] == [
                str(place) for _ in range(len(lines) // 20) for place in range(1, 21)
            ]
            trec = [(q, item, int(place), float(score)) for q, _, item, place, score, _ in lines]
            found = sorted(trec, key=lambda row: int(row[1][1:]))
        else:
            lines = list(
                csv.reader(target.read_text().splitlines(), delimiter="\t" if ending == "tsv" else ",")
            )
            assert lines[0] == ["qid", "item", "rank", "score"]
            found = [(q, item, int(rank), float(score)) for q, item, rank, score in lines[1:]]
        assert found == rows


def test_blocks_are_scored_as_the_whole(capsys, searches, tmp_path, monkeypatch):
    model = tmp_path / "m.rw"
    fit = ["fit", searches / "train.txt", *RLS, "--target", "solr", "-o", model]  # it sees single rows
    assert call(capsys, *fit)[0] == 0
    for name in ("t.parquet", "t.csv"):
        assert call(capsys, "convert", searches / "test.txt", "-o", tmp_path / name)[0] == 0
    whole = rankwise.load(model).predict(read(searches / "test.txt")[0])
    monkeypatch.setattr("rankwise.cli.reading._BLOCK", 3000)
    monkeypatch.setattr("rankwise.data.svmlight.PARSED_AT_ONCE", 1500)
    monkeypatch.setattr("rankwise.cli.reading.available_memory", lambda: 0)
    for path in (searches / "test.txt", tmp_path / "t.parquet", tmp_path / "t.csv"):
        code, out, err = call(capsys, "predict", model, path)
        assert code == 0, err
        np.testing.assert_allclose([float(line) for line in out.split()], whole, rtol=1e-12)


def test_evaluation_is_that_of_the_metrics(capsys, searches, tmp_path):
    per_query = tmp_path / "queries.csv"
    arguments = ["evaluate", searches / "model.rw", searches / "test.txt"]
    said = call_json(capsys, *arguments, "--per-query", per_query)
    scores, y, qid = scored(searches)
    (figures,) = said["models"].values()
    assert (
        {"ndcg@10", "average_precision", "pairwise_error", "reciprocal_rank"}
        <= set(figures)
        == set(said["conventions"])
    )
    for name, found in figures.items():
        expected = bootstrap_interval(y, scores, qid, metric=name)
        assert (found["value"], found["low"], found["high"]) == (expected.value, expected.low, expected.high)
    lines = list(csv.DictReader(per_query.read_text().splitlines()))
    assert len(lines) == 20
    assert np.mean([float(line["ndcg@10"]) for line in lines]) == pytest.approx(figures["ndcg@10"]["value"])
    (figures,) = call_json(capsys, *arguments, "--convention", "letor4")["models"].values()
    assert figures["ndcg@5"]["value"] == get_metric("ndcg@5", convention="letor4")(y, scores, qid)
    assert "mean_ndcg" in figures
    code, out, err = call(capsys, *arguments, "--metrics", "AVERAGE_PRECISION", "--per-query", "-")
    assert code == 0
    assert out.startswith("qid,rows,average_precision\n")
    assert "intervals" in err


def test_models_are_compared_by_a_paired_test(capsys, searches, tmp_path):
    other = tmp_path / "other.rw"
    assert call(capsys, "fit", searches / "vali.txt", "--methods", "svm", "-o", other)[0] == 0
    arguments = ["evaluate", searches / "model.rw", searches / "test.txt", "--against", other]
    arguments += ["--metrics", "ndcg@10,average_precision"]
    X, y, qid = read(searches / "test.txt")
    first, second = (rankwise.load(path).predict(X, qid) for path in (searches / "model.rw", other))
    expected = compare_rankings(y, first, second, qid, metric="ndcg@10")
    found = call_json(capsys, *arguments)["comparisons"][0]
    assert found["difference"]["value"] == expected.difference.value
    assert found["p_value"] == expected.p_value <= found["p_adjusted"]
    code, out, err = call(capsys, *arguments)
    assert code == 0, err
    assert "Holm" in out
    page = tmp_path / "r.html"
    code, _, err = call(capsys, "report", *arguments[1:5], "-o", page)
    assert code == 0, err
    assert "other.rw" in page.read_text()


def test_a_report_shows_columns_candidates_and_commands(capsys, searches, tmp_path):
    target = tmp_path / "report.html"
    assert call(capsys, "report", searches / "model.rw", searches / "test.txt", "-o", target)[0] == 0
    page = target.read_text("utf-8")
    assert "feature 12" in page
    assert "feature 0<" not in page
    assert "★ chosen" in page
    assert str(searches.parent) not in page  # no folders of this machine
    assert str(tmp_path.parent) not in page
    commands = re.findall(r"<pre><code>(.*?)</code></pre>", page, flags=re.DOTALL)
    assert [command.split()[:2] for command in commands] == [["rankwise", "fit"], ["rankwise", "report"]]


def test_explanations_add_up_to_scores(capsys, searches, named, tmp_path):
    scores, _, qid = scored(searches)
    own = np.flatnonzero(qid == qid[25])
    best = own[np.argsort(-scores[own])][:2]
    ask = ["explain", searches / "model.rw", named]
    said = call_json(capsys, *ask, "--query", qid[25], "--top", 2)["explanations"]
    assert [one["title"] for one in said] == [f"D{best[0]}, rank 1", f"D{best[1]}, rank 2"]
    for one, row in zip(said, best, strict=True):
        total = math.fsum([one["constant"], *(part["contribution"] for part in one["parts"])])
        assert total == pytest.approx(scores[row], rel=1e-10)
    assert call_json(capsys, *ask, "--item", f"D{best[1]}")["explanations"] == said[1:]
    (difference,) = call_json(capsys, *ask, "--pair", f"D{best[0]}", best[1])["explanations"]
    assert difference["total"] == pytest.approx(scores[best[0]] - scores[best[1]], rel=1e-9)
    assert call(capsys, *ask, "-o", tmp_path / "why.html")[0] == 0
    assert "Content-Security-Policy" in (tmp_path / "why.html").read_text()
    for wrong in (["--pair", "D0", "none"], ["--query", "none"], ["--item", "D0", "--pair", "D0", "D1"]):
        assert call(capsys, *ask, *wrong)[0] == 2


def test_inspecting_counts(capsys, searches, tmp_path):
    (tmp_path / "rows.txt").write_text("2 qid:1 1:1 3:5\n0 qid:1 1:2 3:5\n0 qid:2 3:7\n0 qid:2 2:1 3:7\n")
    said = call_json(capsys, "inspect", tmp_path / "rows.txt")
    assert (said["rows"], said["columns"], said["queries"], said["pairs"]) == (4, 3, 2, 1)
    assert (said["unordered"], said["query_columns"], said["first_column"]) == (1, [2], 1)
    assert said["labels"] == [["0", 3], ["2", 1]]
    said = call_json(capsys, "inspect", searches / "model.rw")
    assert said["model"].endswith("RankRLSCV")
    assert set(said["largest_weights"]) <= {
        f"feature {j}{more}" for j in range(1, 13) for more in ("", " (rank)")
    }
    for file in ("model.rw", "test.txt"):
        code, out, err = call(capsys, "inspect", searches / file)
        assert (code, err) == (0, "")
        assert out.startswith("file ")


def test_exports_run_where_fit_says(capsys, searches, tmp_path):
    options = [*RLS, "--target", "solr", "-o", tmp_path / "m.rw"]
    said = call_json(capsys, "fit", searches / "train.txt", *options)
    assert "solr" in said["runs_in"]
    assert not any("query" in one["scaling"] for one in said["tried"])
    names = ",".join(f"f{at}" for at in range(1, 13))
    for target in said["runs_in"]:
        made = tmp_path / f"made.{target}"
        options = ["--to", target, "--feature-names", names, "-o", made]
        code, _, err = call(capsys, "export", tmp_path / "m.rw", *options)
        assert code == 0, err
        expected = rankwise.export(rankwise.load(tmp_path / "m.rw"), target, feature_names=names.split(","))
        assert made.read_bytes() == (expected if isinstance(expected, bytes) else expected.encode())


@pytest.mark.parametrize(
    "way",
    [
        [".txt.gz"],
        [".csv"],
        [".tsv"],
        [".feather"],
        [".store", ".parquet"],
        [".parquet", ".store"],
        [".csv.gz"],
    ],
)
def test_converting_there_and_back_changes_nothing(capsys, tmp_path, way):
    rows = ["2 qid:a-1 1:0.1 2:0 7:-1e-300", "0 qid:a-1", "1 qid:b 3:0.30000000000000004"]
    text = "".join(f"{row} # docid = {item}\n" for row, item in zip(rows, "xyz", strict=True))
    (tmp_path / "rows.txt").write_text(text)
    places = ["rows.txt", *(f"t{number}{ending}" for number, ending in enumerate(way)), "back.txt"]
    for source, target in pairwise(places):
        code, _, err = call(capsys, "convert", tmp_path / source, "-o", tmp_path / target)
        assert code == 0, err
    own, expected = (load_svmlight(tmp_path / name, comments=True) for name in ("back.txt", "rows.txt"))
    assert (own[0].toarray() == expected[0].toarray()).all()
    kept = slice(1, 3 if ".store" in way else None)  # stores have no ids of items
    for a, b in zip(own[kept], expected[kept], strict=True):
        assert list(a) == list(b)


def test_missing_values_are_converted(capsys, tmp_path):
    text = "2 qid:1 1:0.5 2:NaN\n0 qid:1 1:1\n"
    (tmp_path / "rows.txt").write_text(text)
    for source, target in pairwise(["rows.txt", "s.store", "t.parquet", "back.txt"]):
        code, _, err = call(capsys, "convert", tmp_path / source, "-o", tmp_path / target, "--missing", "nan")
        assert code == 0, err
    assert (tmp_path / "back.txt").read_text() == text
    code, _, err = call(capsys, "inspect", tmp_path / "rows.txt")
    assert code == 2
    assert "line 1" in err
    assert "missing=" in err
    assert call_json(capsys, "inspect", tmp_path / "rows.txt", "--missing", "nan")["missing"] == 1
    assert call(capsys, "convert", tmp_path / "t.parquet", "-o", tmp_path / "u.txt")[0] == 2


@pytest.mark.parametrize("between", ["rows.store", "rows.parquet"])
def test_columns_count_as_in_training(capsys, tmp_path, between):
    """Text that lacks column 0 is read as the training text, whatever that was converted to."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(40, 4)).round(4).tolist()
    for name, first in (("rows.txt", 0), ("test.txt", 1)):
        lines = [
            f"{row % 3} qid:{row // 5} " + " ".join(f"{j}:{own[j]}" for j in range(first, 4)) + "\n"
            for row, own in enumerate(values)
        ]
        (tmp_path / name).write_text("".join(lines))
    assert call(capsys, "convert", tmp_path / "rows.txt", "-o", tmp_path / between)[0] == 0
    scores = []
    for name in ("rows.txt", between):
        fit = ["fit", tmp_path / name, *RLS, "--target", "solr", "-f", "-o", tmp_path / "m.rw"]
        assert call(capsys, *fit)[0] == 0
        code, out, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "test.txt")
        assert code == 0, err
        scores.append([float(line) for line in out.split()])
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)
    assert call(capsys, "convert", tmp_path / "test.txt", "-o", tmp_path / "test.store")[0] == 0
    code, _, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "test.store")
    assert code == 2
    assert "--zero-based" in err


def test_last_columns_that_do_not_occur_are_zero(capsys, searches, tmp_path):
    (tmp_path / "short.txt").write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.1 3:2\n")
    code, out, err = call(capsys, "predict", searches / "model.rw", tmp_path / "short.txt")
    assert code == 0
    assert len(out.split()) == 2
    assert "has 3 columns and the model 12" in err
    (tmp_path / "wide.txt").write_text("1 qid:1 1:0.5 20:1\n")
    code, _, err = call(capsys, "predict", searches / "model.rw", tmp_path / "wide.txt")
    assert code == 2
    assert "line 1" in err


def test_a_column_number_of_two_billion_costs_nothing(capsys, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 2000000000:1\n0 qid:1 1:2\n")
    said = call_json(capsys, "inspect", tmp_path / "wide.txt")
    assert said["columns"] == 2_000_000_000
    assert said["empty_columns"] == 2_000_000_000 - 2


def test_preferences_from_fit_to_report(capsys, tmp_path):
    X, pairs = duels(tmp_path)
    model, data = tmp_path / "m.rw", [tmp_path / "duels.csv", "--items", tmp_path / "items.csv"]
    code, out, err = call(capsys, "fit", *data, "--methods", "logistic", "-o", model)
    assert code == 0, err
    assert f"{len(pairs)} preferences, 30 items, 3 columns" in out
    (figures,) = call_json(capsys, "evaluate", model, *data)["models"].values()
    expected = preference_error(pairs, rankwise.load(model).predict(X))
    assert figures["pairwise_error"]["value"] == pytest.approx(expected)
    code, _, err = call(capsys, "report", model, *data, "-o", tmp_path / "r.html")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "sugar" in page
    assert f"<bdi>item {int(np.argmax(rankwise.load(model).predict(X)))}</bdi>" in page
    assert call_json(capsys, "inspect", *data)["preferences"] == len(pairs)
    held = ["--eval-set", tmp_path / "duels.csv", "--methods", "svm", "-o", tmp_path / "n.rw"]
    assert call_json(capsys, "fit", *data, *held)["scored_by"] == str(tmp_path / "duels.csv")
    lines = (tmp_path / "duels.csv").read_text().splitlines()
    lines = ["better,worse,magnitude,times", *(f"{line},{at % 2},3" for at, line in enumerate(lines[1:]))]
    (tmp_path / "renamed.csv").write_text("\n".join(lines) + "\n")
    options = ["--winner", "better", "--loser", "worse", "--weight", "times", *data[1:]]
    (figures,) = call_json(capsys, "evaluate", model, tmp_path / "renamed.csv", *options)["models"].values()
    decided = pairs[np.arange(len(pairs)) % 2 == 1]  # a magnitude of 0 is a tie
    expected = preference_error(decided, rankwise.load(model).predict(X))
    assert figures["pairwise_error"]["value"] == pytest.approx(expected)


def test_the_demo_runs_everything_and_its_page_stays(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rankwise-demo.html").write_text("somebody's")
    monkeypatch.setattr(
        "rankwise.cli.commands.demo._PARTS", {"train.txt": 20, "vali.txt": 10, "test.txt": 10}
    )
    code, out, err = call(capsys, "demo")
    assert code == 0, err
    assert all(f"$ rankwise {command}" in out for command in ("inspect", "fit", "evaluate", "report"))
    page = tmp_path / "rankwise-demo-2.html"
    assert page.read_text().startswith("<!doctype html>")
    assert f"The page stays: {page}." in out
    assert (tmp_path / "rankwise-demo.html").read_text() == "somebody's"
    assert call(capsys, "demo", "-o", tmp_path / "data")[0] == 0
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "test.txt",
        "train.txt",
        "vali.txt",
    ]
    assert call(capsys, "demo", "-o", tmp_path / "data")[0] == 2
