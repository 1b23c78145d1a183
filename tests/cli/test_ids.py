"""Ids survive the pipe: from comments and columns to tables, runs and explanations."""

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import rankwise
from command_line import call, call_json
from rankwise.data import load_run, load_svmlight
from rankwise.metrics import get_metric


@pytest.fixture(scope="module")
def named(searches, tmp_path_factory):
    """The searches with a comment per row, as text and as a table."""
    folder = tmp_path_factory.mktemp("named")
    lines = (searches / "test.txt").read_text().splitlines()
    text = "\n".join(f"{line} # docid = D{number} extra" for number, line in enumerate(lines)) + "\n"
    (folder / "named.txt").write_text(text)
    return folder


def by_hand(searches):
    X, y, qid = load_svmlight(searches / "test.txt", n_features=12)
    return rankwise.load(searches / "model.rw").predict(X.toarray()), y, qid


@pytest.mark.parametrize("ending", ["tsv", "parquet"])
def test_tables_of_scores_have_query_item_rank_and_score(capsys, searches, named, ending):
    out = named / f"scores.{ending}"
    assert call(capsys, "predict", searches / "model.rw", named / "named.txt", "-o", out, "-f")[0] == 0
    scores, _, qid = by_hand(searches)
    if ending == "parquet":
        rows = [tuple(row.values()) for row in pq.read_table(out).to_pylist()]
    else:
        lines = out.read_text().splitlines()
        assert lines[0] == "qid\titem\trank\tscore"
        rows = [(q, i, int(r), float(s)) for q, i, r, s in (line.split("\t") for line in lines[1:])]
    assert [row[0] for row in rows] == [str(one) for one in qid]
    assert [row[1] for row in rows] == [f"D{number}" for number in range(scores.size)]
    assert [row[3] for row in rows] == pytest.approx(scores, rel=1e-12)
    for number, row in enumerate(rows):
        assert row[2] == 1 + sum((qid == qid[number]) & (scores > scores[number]))


def test_a_run_goes_round_to_the_same_figures(capsys, searches, named):
    out = named / "ours.run"
    assert (
        call(capsys, "predict", searches / "model.rw", named / "named.txt", "-o", out, "-f", "--tag", "x")[0]
        == 0
    )
    scores, y, qid = by_hand(searches)
    run = load_run(out)
    assert run[str(qid[3])]["D3"] == pytest.approx(scores[3], rel=1e-12)
    judged = "".join(
        f"{q} 0 D{number} {label:.0f}\n" for number, (q, label) in enumerate(zip(qid, y, strict=True))
    )
    (named / "qrels.txt").write_text(judged)
    found = call_json(
        capsys, "evaluate", "--qrels", named / "qrels.txt", "--run", out, "--metrics", "ndcg@10,map"
    )
    (figures,) = found["models"].values()
    for name in ("ndcg@10", "map"):
        assert figures[name]["value"] == pytest.approx(get_metric(name)(y, scores, qid), rel=1e-12)


def test_two_runs_are_compared(capsys, searches, named):
    scores, y, qid = by_hand(searches)
    worse = scores + np.random.default_rng(0).normal(size=scores.size) * 3
    for name, values in (("good", scores), ("bad", worse)):
        rows = enumerate(zip(qid, values.tolist(), strict=True))
        lines = [f"{q}	D{number}	0	{value!r}" for number, (q, value) in rows]
        (named / f"{name}.tsv").write_text("qid\titem\trank\tscore\n" + "\n".join(lines) + "\n")
    judged = "".join(
        f"{q} 0 D{number} {label:.0f}\n" for number, (q, label) in enumerate(zip(qid, y, strict=True))
    )
    (named / "qrels.txt").write_text(judged)
    code, out, err = call(
        capsys,
        "evaluate",
        "--qrels",
        named / "qrels.txt",
        "--run",
        named / "good.tsv",
        "--run",
        named / "bad.tsv",
    )
    assert code == 0, err
    assert "good" in out
    assert "bad" in out


def test_runs_and_models_do_not_mix(capsys, searches, named):
    for wrong in (["--run", "x"], [searches / "model.rw"], []):
        code, _, err = call(capsys, "evaluate", *wrong)
        assert code in {1, 2}
        assert "Hint:" in err or "No such file" in err


def test_a_column_of_ids_survives(capsys, searches, tmp_path):
    table = tmp_path / "t.csv"
    assert call(capsys, "convert", searches / "test.txt", "-o", table)[0] == 0
    lines = table.read_text().splitlines()
    with_ids = [f"{'sku' if not number else f'S{number}'},{line}" for number, line in enumerate(lines)]
    table.write_text("\n".join(with_ids) + "\n")
    out = tmp_path / "o.tsv"
    code, _, err = call(capsys, "predict", searches / "model.rw", table, "--item-id", "sku", "-o", out)
    assert code == 0, err
    assert out.read_text().splitlines()[1].split("\t")[1] == "S1"


def test_streaming_scores_the_same(capsys, searches, named, monkeypatch):
    monkeypatch.setattr("rankwise.cli.streaming._BLOCK", 3000)
    monkeypatch.setattr("rankwise.data.svmlight.PARSED_AT_ONCE", 1500)
    for ending in ("txt", "tsv", "run", "parquet"):
        outs = [named / f"{way}.{ending}" for way in ("whole", "stream")]
        for out, more in zip(outs, ([], ["--stream"]), strict=True):
            code, _, err = call(
                capsys, "predict", searches / "model.rw", named / "named.txt", *more, "-o", out, "-f"
            )
            assert code == 0, err
        if ending == "parquet":
            assert pq.read_table(outs[0]).equals(pq.read_table(outs[1]))
        else:
            assert outs[0].read_bytes() == outs[1].read_bytes()
    said = call_json(
        capsys, "predict", searches / "model.rw", named / "named.txt", "--stream", "-o", named / "s.txt", "-f"
    )
    assert said["data"]["rows"] == said["scores"] == 400
    assert said["data"]["queries"] == 20


def test_a_stream_refuses_a_query_that_comes_again(capsys, searches, tmp_path, monkeypatch):
    monkeypatch.setattr("rankwise.cli.streaming._BLOCK", 3000)
    monkeypatch.setattr("rankwise.data.svmlight.PARSED_AT_ONCE", 1500)
    lines = (searches / "test.txt").read_text().splitlines()
    (tmp_path / "mixed.txt").write_text("\n".join([*lines[1:], lines[0]]) + "\n")
    code, _, err = call(
        capsys, "predict", searches / "model.rw", tmp_path / "mixed.txt", "--stream", "--ranks"
    )
    assert code == 1
    assert "comes again" in err


def test_explaining_names_items_and_adds_up(capsys, searches, named):
    scores, _, qid = by_hand(searches)
    query = str(qid[25])
    said = call_json(
        capsys, "explain", searches / "model.rw", named / "named.txt", "--query", query, "--top", 2
    )
    own = np.flatnonzero(qid == qid[25])
    best = own[np.argsort(-scores[own])][:2]
    assert [one["title"] for one in said["explanations"]] == [f"D{best[0]}, rank 1", f"D{best[1]}, rank 2"]
    for one, row in zip(said["explanations"], best, strict=True):
        total = math.fsum([one["constant"], *(part["contribution"] for part in one["parts"])])
        assert total == pytest.approx(scores[row], rel=1e-10)
    (alone,) = call_json(
        capsys, "explain", searches / "model.rw", named / "named.txt", "--item", f"D{best[1]}"
    )["explanations"]
    assert alone == said["explanations"][1]
    arguments = ("explain", searches / "model.rw", named / "named.txt", "--item", "D0", "--pair", "D0", "D1")
    assert "not allowed with" in call(capsys, *arguments)[2]
    code, out, err = call(
        capsys, "explain", searches / "model.rw", named / "named.txt", "--pair", f"D{best[0]}", f"D{best[1]}"
    )
    assert code == 0, err
    assert f"D{best[0]} against D{best[1]}" in out
    page = named / "why.html"
    assert call(capsys, "explain", searches / "model.rw", named / "named.txt", "-o", page, "-f")[0] == 0
    assert "<table" in page.read_text()
    assert call(capsys, "explain", searches / "model.rw", named / "named.txt", "--pair", "D0", "none")[0] == 1
    assert call(capsys, "explain", searches / "model.rw", named / "named.txt", "--query", "none")[0] == 1


def test_an_item_of_several_queries_is_explained_in_the_one_that_is_named(capsys, searches, tmp_path):
    scores, _, qid = by_hand(searches)
    lines = (searches / "test.txt").read_text().splitlines()
    _, number = np.unique(qid, return_inverse=True)
    place = [int((number[:row] == number[row]).sum()) for row in range(qid.size)]
    text = "\n".join(f"{line} # docid = P{at}" for line, at in zip(lines, place, strict=True)) + "\n"
    (tmp_path / "shared.txt").write_text(text)
    ask = ("explain", searches / "model.rw", tmp_path / "shared.txt")
    code, _, err = call(capsys, *ask, "--item", "P0")
    assert code == 1
    assert "P0 names several rows" in err
    assert "or say which query with --query" in err
    query = qid[25]
    own = np.flatnonzero(qid == query)
    (one,) = call_json(capsys, *ask, "--item", "P1", "--query", query)["explanations"]
    assert one["total"] == pytest.approx(scores[own[1]], rel=1e-10)
    code, out, err = call(capsys, *ask, "--pair", "P0", "P1", "--query", query)
    assert (code, err) == (0, "")
    assert "P0 against P1" in out
    code, _, err = call(capsys, *ask, "--item", "P999", "--query", query)
    assert code == 1
    assert f"of query {query}" in err


def items_of(path):
    return [line.split("\t")[1] for line in path.read_text().splitlines()[1:]]


def test_ids_survive_every_conversion(capsys, searches, named, tmp_path):
    whole = tmp_path / "whole.tsv"
    assert call(capsys, "predict", searches / "model.rw", named / "named.txt", "-o", whole)[0] == 0
    chain = [
        named / "named.txt",
        "a.store",
        "b.txt",
        "c.parquet",
        "d.store",
        "e.csv",
        "f.txt",
        "g.store",
        "h.parquet",
    ]
    for source, target in itertools.pairwise(chain):
        code, _, err = call(capsys, "convert", tmp_path / source, "-o", tmp_path / target)
        assert code == 0, err
        out = tmp_path / f"{target}.tsv"
        code, _, err = call(capsys, "predict", searches / "model.rw", tmp_path / target, "-o", out)
        assert code == 0, err
        assert items_of(out) == items_of(whole)
        assert out.read_text().splitlines()[0] == whole.read_text().splitlines()[0]


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
@pytest.mark.parametrize("model", ["plain", "encoded"])
def test_tables_are_streamed(capsys, searches, tmp_path, monkeypatch, ending, model):
    monkeypatch.setattr("rankwise.cli.streaming._BLOCK", 3000)
    rng = np.random.default_rng(3)
    n_rows = 400
    frame = pd.DataFrame(
        {
            "label": rng.integers(0, 3, n_rows),
            "qid": [f"q{at // 13}" for at in range(n_rows)],
            "id": [f"I{at}" for at in range(n_rows)],
            "price": rng.normal(size=n_rows),
            "stock": rng.integers(0, 50, n_rows),
        }
    )
    if model == "encoded":
        frame["colour"] = rng.choice(["red", "green", None], n_rows)
        frame.loc[::9, "price"] = np.nan
    table = tmp_path / f"t.{ending}"
    frame.to_parquet(table) if ending == "parquet" else frame.to_csv(table, index=False)
    saved = tmp_path / "m.rw"
    code, _, err = call(capsys, "fit", table, "-o", saved, "--method", "rls", "--id", "id")
    assert code == 0, err
    for target in ("tsv", "txt"):
        outs = [tmp_path / f"{way}.{target}" for way in ("whole", "stream")]
        for out, more in zip(outs, ([], ["--stream"]), strict=True):
            code, _, err = call(capsys, "predict", saved, table, "-o", out, *more)
            assert code == 0, err
        assert outs[0].read_bytes() == outs[1].read_bytes()
    assert items_of(tmp_path / "stream.tsv")[:2] == ["I0", "I1"]
    frame.iloc[np.r_[20:400, 0:20]].to_csv(tmp_path / "again.csv", index=False)
    code, _, err = call(
        capsys, "predict", saved, tmp_path / "again.csv", "-o", tmp_path / "x.tsv", "--stream"
    )
    assert code == 1
    assert "comes again" in err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("others", ["numbers", "texts"])
def test_a_column_called_id_names_rows_whatever_it_holds(capsys, tmp_path, ending, others):
    """Numbers of rows say nothing of other rows; in a CSV file they were taken for a broken column of numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": np.arange(100, 160), "a": rng.normal(size=60), "b": rng.normal(size=60), "label": np.arange(60) % 4}
    )  # fmt: skip
    if others == "texts":
        frame["colour"] = rng.choice(["red", "green"], 60)
    table, model = tmp_path / f"rows.{ending}", tmp_path / "m.rw"
    frame.to_parquet(table) if ending == "parquet" else frame.to_csv(table, index=False)
    code, _, err = call(capsys, "fit", table, "-o", model, "--method", "rls")
    assert code == 0, err
    assert "id names the rows, and is not learned from (--features" in err
    weighted = call_json(capsys, "inspect", model)["largest_weights"]
    assert {"a", "b"} <= weighted.keys()
    assert not any(name.startswith("id") for name in weighted)
    code, _, err = call(capsys, "predict", model, table, "-o", tmp_path / "ranked.tsv")
    assert code == 0, err
    assert sorted(items_of(tmp_path / "ranked.tsv")) == [str(at) for at in range(100, 160)]
    code, _, err = call(capsys, "inspect", table)
    assert code == 0, err
    assert "id names the rows" in err


@pytest.mark.parametrize("more", [[], ["--id", "sku"]])
def test_numbers_that_pandas_writes_before_rows_are_not_learned_from(capsys, tmp_path, more):
    """Rows that are sorted by their labels would be told apart by their numbers alone."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=60), "sku": np.arange(60), "id": np.arange(60), "label": np.arange(60) // 15}
    )
    frame.to_csv(tmp_path / "rows.csv")
    pd.read_csv(tmp_path / "rows.csv").to_parquet(tmp_path / "rows.parquet")
    for name, called in (("rows.csv", "the column without a name"), ("rows.parquet", "Unnamed: 0")):
        code, _, err = call(
            capsys, "fit", tmp_path / name, "-o", tmp_path / "m.rw", "--method", "rls", "-f", *more
        )
        assert code == 0, err
        assert f"{called} names the rows, and is not learned from" in err
        weighted = call_json(capsys, "inspect", tmp_path / "m.rw")["largest_weights"]
        assert weighted.keys() == ({"a"} if more else {"a", "sku"})
        code, _, err = call(
            capsys, "predict", tmp_path / "m.rw", tmp_path / name, "-o", tmp_path / "p.tsv", "-f"
        )
        assert code == 0, err


@pytest.mark.parametrize("others", ["numbers", "texts"])
def test_numbers_before_the_items_of_duels_are_not_learned_from(capsys, tmp_path, others):
    rng = np.random.default_rng(0)
    items = pd.DataFrame(
        {"id": [f"I{at}" for at in range(30)], "a": rng.normal(size=30), "b": rng.normal(size=30)}
    )
    if others == "texts":
        items["colour"] = rng.choice(["red", "green"], 30)
    pairs = rng.permuted(np.tile(np.arange(30), (200, 1)), axis=1)[:, :2]
    better = items["a"].to_numpy()[pairs[:, 0]] > items["a"].to_numpy()[pairs[:, 1]]
    pairs = np.where(better[:, None], pairs, pairs[:, ::-1])
    items.to_csv(tmp_path / "items.csv")
    duels = pd.DataFrame(
        {"winner": items["id"].to_numpy()[pairs[:, 0]], "loser": items["id"].to_numpy()[pairs[:, 1]]}
    )
    duels.to_csv(tmp_path / "duels.csv", index=False)
    of_items = ["--items", tmp_path / "items.csv"]
    code, _, err = call(
        capsys, "fit", tmp_path / "duels.csv", *of_items, "-o", tmp_path / "m.rw", "--method", "rls"
    )
    assert code == 0, err
    assert "the column without a name names the rows, and is not learned from" in err
    weighted = call_json(capsys, "inspect", tmp_path / "m.rw")["largest_weights"]
    assert {"a", "b"} <= weighted.keys()
    assert "" not in weighted
    code, _, err = call(capsys, "evaluate", tmp_path / "m.rw", tmp_path / "duels.csv", *of_items)
    assert code == 0, err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_called_id_is_learned_from_where_it_is_listed(capsys, tmp_path, ending):
    frame = pd.DataFrame({"id": np.arange(30), "a": np.arange(30) % 7, "label": np.arange(30) % 4})
    table, model = tmp_path / f"rows.{ending}", tmp_path / "m.rw"
    frame.to_parquet(table) if ending == "parquet" else frame.to_csv(table, index=False)
    code, _, err = call(capsys, "fit", table, "-o", model, "--method", "rls", "--features", "id,a")
    assert code == 0, err
    assert "names the rows" not in err
    assert call_json(capsys, "inspect", model)["largest_weights"].keys() == {"id", "a"}
    for more in ([], ["--stream"]):
        code, _, err = call(capsys, "predict", model, table, "-o", tmp_path / "scores.txt", "-f", *more)
        assert code == 0, err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_that_are_numbers_go_along_into_a_store(capsys, tmp_path, ending):
    frame = pd.DataFrame({"id": np.arange(7, 37), "a": np.arange(30) % 7, "label": np.arange(30) % 4})
    table = tmp_path / f"rows.{ending}"
    frame.to_parquet(table) if ending == "parquet" else frame.to_csv(table, index=False)
    code, _, err = call(capsys, "convert", table, "-o", tmp_path / "rows.store")
    assert code == 0, err
    store = rankwise.data.open_store(tmp_path / "rows.store")
    assert store.X.shape == (30, 1)
    assert store.item_ids.tolist() == [str(at) for at in range(7, 37)]
