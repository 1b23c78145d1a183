"""Columns that only name rows: never learned from, and remembered by the model for what names rows later."""

import re

import numpy as np
import pytest

from command_line import call
from rankwise import load


def write(path, seed, *, with_text):
    rng = np.random.default_rng(seed)
    lines = ["sku,search,label,price,rating" + (",colour" if with_text else "")]
    for row in range(120):
        price, rating = rng.normal(size=2)
        grade = int(np.clip(np.round(rating - price), 0, 3))
        colour = f",{rng.choice(['red', 'blue'])}" if with_text else ""
        lines.append(f"{10 * row + grade:05d},{row // 12},{grade},{price:.3f},{rating:.3f}{colour}")
    path.write_text("\n".join(lines) + "\n")
    return [line.split(",")[0] for line in lines[1:]]


@pytest.mark.parametrize("with_text", [False, True])
def test_the_model_remembers_which_column_names_rows(tmp_path, capsys, with_text):
    train, test, model = tmp_path / "train.csv", tmp_path / "test.csv", tmp_path / "model.rw"
    write(train, 0, with_text=with_text)
    names = write(test, 1, with_text=with_text)
    options = ["--qid", "search", "--id", "sku", "--method", "rls", "-o", model]
    code, _, err = call(capsys, "fit", train, *options)
    assert code == 0, err
    assert "not used" not in err
    fitted = load(model)
    known = [str(name) for name in getattr(fitted, "feature_names_in_", [])]
    assert "sku" not in known
    assert fitted.n_features_in_ == 2 + with_text
    code, _, err = call(capsys, "predict", model, test, "-o", tmp_path / "ranked.tsv")
    assert code == 0, err
    lines = (tmp_path / "ranked.tsv").read_text().splitlines()
    assert [line.split("\t")[1] for line in lines[1:]] == names
    code, _, err = call(capsys, "report", model, test, "-o", tmp_path / "report.html")
    assert code == 0, err
    page = (tmp_path / "report.html").read_text()
    assert sum(f"<bdi>{name}</bdi>" in page for name in names) > 20


def test_rows_of_tables_without_that_column_are_numbered(tmp_path, capsys):
    write(tmp_path / "train.csv", 0, with_text=False)
    write(tmp_path / "test.csv", 1, with_text=False)
    text = (tmp_path / "test.csv").read_text().splitlines()
    (tmp_path / "test.csv").write_text("\n".join(line.partition(",")[2] for line in text) + "\n")
    model, ranked = tmp_path / "model.rw", tmp_path / "ranked.tsv"
    call(
        capsys,
        "fit",
        tmp_path / "train.csv",
        "--qid",
        "search",
        "--id",
        "sku",
        "--method",
        "rls",
        "-o",
        model,
    )
    code, _, err = call(capsys, "predict", model, tmp_path / "test.csv", "-o", ranked)
    assert code == 0, err
    assert ranked.read_text().splitlines()[1].split("\t")[1] == "row0"


def test_a_column_that_is_not_there_is_named(tmp_path, capsys):
    write(tmp_path / "train.csv", 0, with_text=False)
    code, _, err = call(capsys, "fit", tmp_path / "train.csv", "--id", "skew", "-o", tmp_path / "model.rw")
    assert code != 0
    assert "no column 'skew', which --id names" in err


def test_a_report_takes_the_column_of_items_that_is_named(tmp_path, capsys):
    write(tmp_path / "train.csv", 0, with_text=False)
    names = write(tmp_path / "test.csv", 1, with_text=False)
    model, page = tmp_path / "model.rw", tmp_path / "report.html"
    fit = ["--qid", "search", "--features", "price,rating", "--method", "rls", "-o", model]
    assert call(capsys, "fit", tmp_path / "train.csv", *fit)[0] == 0
    code, _, err = call(capsys, "report", model, tmp_path / "test.csv", "--item-id", "sku", "-o", page)
    assert code == 0, err
    assert sum(f"<bdi>{name}</bdi>" in page.read_text() for name in names) > 20
    code, _, err = call(capsys, "report", model, tmp_path / "test.csv", "--item-id", "skew", "-o", page, "-f")
    assert code != 0
    assert "no column 'skew', which --item-id names" in err


@pytest.mark.parametrize("with_text", [False, True])
def test_a_column_that_looks_like_query_ids_is_not_learned_from(tmp_path, capsys, with_text):
    train, model = tmp_path / "train.csv", tmp_path / "model.rw"
    write(train, 0, with_text=with_text)
    names, *rows = train.read_text().replace("sku,search", "id,search").splitlines()
    train.write_text("\n".join([names, *(row.replace(",", ",q", 1) for row in rows)]))
    fit = ["--method", "rls", "-o", model]
    code, _, err = call(capsys, "fit", train, *fit)
    assert code == 0, err
    assert "all rows are one ranking (--qid search)" in err
    assert "search: not learned from" in err
    assert load(model).n_features_in_ == 2 + with_text
    code, _, err = call(capsys, "predict", model, train, "-o", tmp_path / "ranked.tsv")
    assert code == 0, err
    code, _, err = call(capsys, "fit", train, *fit, "-f", "--features", "search,price")
    assert code == 0, err
    assert "search: not learned from" not in err


def test_the_page_of_explanations_runs_no_scripts(tmp_path, capsys):
    write(tmp_path / "train.csv", 0, with_text=False)
    model, page = tmp_path / "model.rw", tmp_path / "why.html"
    fit = ["--qid", "search", "--id", "sku", "--method", "rls", "-o", model]
    assert call(capsys, "fit", tmp_path / "train.csv", *fit)[0] == 0
    code, _, err = call(capsys, "explain", model, tmp_path / "train.csv", "-o", page)
    assert code == 0, err
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.read_text()).group(1)
    assert policy.split("; ") == ["default-src 'none'", "style-src 'unsafe-inline'"]
